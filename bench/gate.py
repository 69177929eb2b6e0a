#!/usr/bin/env python3
"""How often 'probing check' finds a planted slowdown, and how often it finds one that is not there.

    bench/gate.py [--trials N] [--runs N] [--scale S] [--frequency HZ] [--build DIR] [--json FILE]

fixtures/slower.py does some percent more work in one function. A trial records it N times without, as the baseline, and N
times with each of 0, 3, 5 and 10 %; all of them in turn, in an order that changes, so that whatever slows the machine down
for a while meets all of them. Then each level is checked against the baseline by each rule. Printed is a Markdown
table of how many trials ended with which answer; docs/comparing.md says what they mean.

Needs the permission to sample. The figures in the document are of 50 trials on a machine that does nothing else:
about half an hour.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"
LEVELS = (0, 3, 5, 10)
RULES = (
    ("self(func=planted)>+0%", ["--no-native"]),
    ("self(func=planted)>+5%", ["--no-native"]),
    ("total>+2%", []),
    ("any>+5%", ["--no-native"]),
    ("any>+5%", []),
)
ANSWERS = {0: "passed", 2: "regressed", 3: "cannot tell"}


def interval(k, n):
    """Wilson's, 95 %, of k out of n; in percent."""
    z, share = 1.96, k / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * ((share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5) / (1 + z * z / n)
    return 100 * max(middle - half, 0), 100 * min(middle + half, 1)


class Gate:
    def __init__(self, arguments):
        self.arguments = arguments
        self.probing = str(arguments.build / "src" / "cli" / "probing")
        self.answers = collections.Counter()  # (rule, level, answer)
        self.errors = collections.defaultdict(list)  # level: estimated minus planted, in percent
        self.shuffle = random.Random(1)

    def record(self, path, percent):
        subprocess.run([self.probing, "record", "-q", "-F", str(self.arguments.frequency), "-o", path, "--", PYTHON,
                        str(ROOT / "fixtures" / "slower.py"), str(percent), "--scale", str(self.arguments.scale)], check=True)

    def check(self, folder, level, rule, options):
        done = subprocess.run([self.probing, "check", "-q", "--baseline", os.path.join(folder, "base.*.db"),
                               os.path.join(folder, "%d.*.db" % level), "--fail-on", rule] + options)
        if done.returncode not in ANSWERS:
            sys.exit("gate: check ended with status %d" % done.returncode)
        return ANSWERS[done.returncode]

    def estimate(self, folder, level):
        text = subprocess.run([self.probing, "diff", os.path.join(folder, "base.*.db"), os.path.join(folder, "%d.*.db" % level),
                               "-f", "json", "--no-native"], check=True, stdout=subprocess.PIPE, text=True).stdout
        for row in json.loads(text)["functions"]:
            if row["name"] == "planted":
                return 100 * row["self"]["change"]
        sys.exit("gate: the planted function was not sampled")

    def trial(self, folder):
        names = [("base", 0)] + [(str(level), level) for level in LEVELS]
        for run in range(self.arguments.runs):
            self.shuffle.shuffle(names)
            for name, percent in names:
                self.record(os.path.join(folder, "%s.%d.db" % (name, run)), percent)
        errors = {level: self.estimate(folder, level) - level for level in LEVELS}
        answers = collections.Counter((i, level, self.check(folder, level, rule, options))
                                      for level in LEVELS for i, (rule, options) in enumerate(RULES))
        self.answers += answers  # a trial that was interrupted counts for nothing
        for level, error in errors.items():
            self.errors[level].append(error)

    def run_all(self):
        """How many trials there were; an interrupt ends them early."""
        n = 0
        with contextlib.suppress(KeyboardInterrupt):
            while n < self.arguments.trials:
                with tempfile.TemporaryDirectory(prefix="probing-gate.") as folder:
                    self.trial(folder)
                n += 1
                print("\rtrial %d of %d" % (n, self.arguments.trials), end="", file=sys.stderr)
        print(file=sys.stderr)
        return n

    def print(self, n):
        print("| rule | planted | regressed | cannot tell | passed | regressed, of all trials |")
        print("|---|--:|--:|--:|--:|--:|")
        for i, (rule, options) in enumerate(RULES):
            for level in LEVELS:
                counts = [self.answers[i, level, answer] for answer in ("regressed", "cannot tell", "passed")]
                low, high = interval(counts[0], n)
                print("| `%s` | %d %% | %d | %d | %d | %.0f %% (%.0f to %.0f) |" % (
                    " ".join([rule] + options), level, *counts, 100 * counts[0] / n, low, high))
        print("\n| planted | estimated, mean of trials | furthest off |")
        print("|--:|--:|--:|")
        for level in LEVELS:
            errors = self.errors[level]
            print("| %d %% | %+.1f %% | %.1f points |" % (level, level + sum(errors) / n, max(map(abs, errors))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--runs", type=int, default=10, help="of each level, and of the baseline")
    parser.add_argument("--scale", type=float, default=2.5, help="2.5 makes a run take some 0.35 s")
    parser.add_argument("--frequency", type=int, default=999)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path, help="what came out, for programs")
    arguments = parser.parse_args()
    gate = Gate(arguments)
    n = gate.run_all()
    if n == 0:
        sys.exit("gate: no trial was finished")
    gate.print(n)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "trials": n, "runs": arguments.runs, "scale": arguments.scale, "frequency": arguments.frequency,
            "answers": [[RULES[i][0], RULES[i][1], level, answer, n] for (i, level, answer), n in sorted(gate.answers.items())],
            "errors": gate.errors}, indent=1))


if __name__ == "__main__":
    main()
