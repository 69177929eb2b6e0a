#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How often 'probing check' finds a planted slowdown, and how often it finds one that is not there.

    bench/gate.py [--trials N] [--runs N] [--scale S] [--frequency HZ] [--seed N] [--build DIR] [--json FILE]
    bench/gate.py --merge FILE...

fixtures/slower.py does some percent more work in one function. A trial records it N times without, as the baseline, and N
times with each of 0, 3, 5 and 10 %; all of them in turn, in an order that changes, so that whatever slows the machine down
for a while meets all of them. Native functions are not looked up: the rules are of Python's. Then each level is checked
against the baseline by each rule. Printed is a Markdown table of how many trials ended with which answer;
docs/comparing.md says what they mean.

Needs the permission to sample. 50 trials take about half an hour. Where as many processors are free, several may go on at
once, each with a seed and a --json of its own; --merge prints what they found together.
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
PERS = ("rest", "run")
RULES = tuple((rule, ["--no-native", "--normalize", per]) for rule in ("self(func=planted)>+0%", "self(func=planted)>+5%", "any>+5%")
              for per in PERS) + (("total>+2%", ["--normalize", "run"]),)
ANSWERS = {0: "passed", 2: "regressed", 3: "inconclusive"}


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
        self.errors = collections.defaultdict(list)  # (per, level): estimated minus planted, in percent
        self.shuffle = random.Random(arguments.seed)

    def record(self, path, percent):
        subprocess.run([self.probing, "record", "-q", "--no-symbols", "-F", str(self.arguments.frequency), "-o", path,
                        "--", PYTHON, str(ROOT / "fixtures" / "slower.py"), str(percent), "--scale",
                        str(self.arguments.scale)], check=True)

    def check(self, folder, level, rule, options):
        done = subprocess.run([self.probing, "check", "-q", "--baseline", os.path.join(folder, "base.*.db"),
                               os.path.join(folder, "%d.*.db" % level), "--fail-on", rule] + options)
        if done.returncode not in ANSWERS:
            sys.exit("gate: check ended with status %d" % done.returncode)
        return ANSWERS[done.returncode]

    def estimate(self, folder, per, level):
        text = subprocess.run([self.probing, "diff", os.path.join(folder, "base.*.db"), os.path.join(folder, "%d.*.db" % level),
                               "-f", "json", "--no-native", "--normalize", per], check=True, stdout=subprocess.PIPE, text=True).stdout
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
        errors = {(per, level): self.estimate(folder, per, level) - level for per in PERS for level in LEVELS}
        answers = collections.Counter((i, level, self.check(folder, level, rule, options))
                                      for level in LEVELS for i, (rule, options) in enumerate(RULES))
        self.answers += answers  # a trial that was interrupted counts for nothing
        for key, error in errors.items():
            self.errors[key].append(error)

    def run_all(self):
        """How many trials there were; an interrupt ends them early."""
        n = 0
        with contextlib.suppress(KeyboardInterrupt):
            while n < self.arguments.trials:
                with tempfile.TemporaryDirectory(prefix="probing-gate.") as folder:
                    self.trial(folder)
                n += 1
                if self.arguments.json:
                    self.store(self.arguments.json, n)
                print("\rtrial %d of %d" % (n, self.arguments.trials), end="", file=sys.stderr)
        print(file=sys.stderr)
        return n

    def print(self, n):
        print("| rule | planted | regressed | inconclusive | passed | regressed, of all trials |")
        print("|---|--:|--:|--:|--:|--:|")
        for i, (rule, options) in enumerate(RULES):
            for level in LEVELS:
                counts = [self.answers[i, level, answer] for answer in ("regressed", "inconclusive", "passed")]
                low, high = interval(counts[0], n)
                print("| `%s` | %d %% | %d | %d | %d | %.0f %% (%.0f to %.0f) |" % (
                    " ".join([rule] + options), level, *counts, 100 * counts[0] / n, low, high))
        print("\n| `--normalize` | planted | estimated, mean of trials | half of them within | furthest off |")
        print("|---|--:|--:|--:|--:|")
        for per in PERS:
            for level in LEVELS:
                errors = sorted(map(abs, self.errors[per, level]))
                print("| `%s` | %d %% | %+.1f %% | %.1f points | %.1f points |" % (
                    per, level, level + sum(self.errors[per, level]) / n, errors[len(errors) // 2], errors[-1]))

    def store(self, path, n):
        path.write_text(json.dumps({
            "trials": n, "runs": self.arguments.runs, "scale": self.arguments.scale, "frequency": self.arguments.frequency,
            "answers": [[*RULES[i], level, answer, count] for (i, level, answer), count in sorted(self.answers.items())],
            "errors": [[per, level, errors] for (per, level), errors in self.errors.items()]}, indent=1))

    def load(self, path):
        """Adds what another one stored; how many trials those were."""
        stored = json.loads(path.read_text())
        for rule, options, level, answer, count in stored["answers"]:
            self.answers[RULES.index((rule, options)), level, answer] += count
        for per, level, errors in stored["errors"]:
            self.errors[per, level] += errors
        return stored["trials"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--runs", type=int, default=10, help="of each level, and of the baseline")
    parser.add_argument("--scale", type=float, default=1.5, help="1.5 makes a run take some 0.3 s")
    parser.add_argument("--frequency", type=int, default=4999)
    parser.add_argument("--seed", type=int, default=1, help="of the order in which runs are made")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path, help="what came out so far, for programs")
    parser.add_argument("--merge", type=pathlib.Path, nargs="+", help="record nothing: print what these, made by --json, say together")
    arguments = parser.parse_args()
    gate = Gate(arguments)
    n = sum(map(gate.load, arguments.merge)) if arguments.merge else gate.run_all()
    if n == 0:
        sys.exit("gate: no trial was finished")
    gate.print(n)


if __name__ == "__main__":
    main()
