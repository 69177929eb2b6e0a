#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run a benchmark under probing, compare it with a baseline, and write a comment and a differential flame graph.

    regression.py [OPTION...] -- COMMAND [ARGUMENT...]

With --store the baseline is a recording of an earlier job: FOLDER/baseline.db. A first run has none; it passes, and says so. With --update
this run becomes the baseline unless it is slower: give it on the main branch alone. With --base the command runs in that folder, too,
in turn with the current one: the baseline is then of the same machine and the same minutes, and detects smaller changes.

Writes into --out:
  comment.md    the result and the comparison, for a review
  change.svg    flame graph of this run, red where it takes more time than the baseline, blue where less
  junit.xml     a test case for each rule
  head.db, base.db   the recordings
  result        one word: passed, regressed, inconclusive or first

Exit status: 0 passed, first, or inconclusive; 1 regressed; 3 inconclusive, with --strict; 2 something failed.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

MARKER = "<!-- probing regression check: %s -->"  # by which a job finds its earlier comment
WORDS = {0: "passed", 2: "regressed", 3: "inconclusive"}
TITLES = {"passed": "no regression", "regressed": "slower than the baseline", "inconclusive": "inconclusive",
          "first": "no baseline yet"}
FAILED = 2


def fail(sentence):
    print("regression.py: " + sentence, file=sys.stderr)
    sys.exit(FAILED)


def as_code(text):
    """Text in a line of Markdown, as it is: neither a backtick nor the end of a line in it ends the code."""
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    space = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return fence + space + re.sub(r"\s", " ", text) + space + fence


class Job:
    def __init__(self, options):
        self.options = options
        self.out = os.path.abspath(options.out)

    def path(self, name):
        return os.path.join(self.out, name)

    def probing(self, *arguments, cwd=None, statuses=(0,)):
        try:
            done = subprocess.run([self.options.probing] + list(arguments), cwd=cwd)
        except OSError as error:
            fail("%s cannot be run: %s; give the program with --probing" % (self.options.probing, error.strerror))
        if done.returncode not in statuses:
            fail("probing %s ended with status %d" % (arguments[0], done.returncode))
        return done.returncode

    def bench(self, path, runs, warmup, cwd=None):
        self.probing("bench", "-q", "--force", "--no-timing", "-n", str(runs), "--warmup", str(warmup), "-F", str(self.options.frequency),
                     "-o", path, "--", *self.options.command, cwd=cwd)

    def measure(self):
        """Record this run as head.db. Returns the baseline's path, None: there is none."""
        if self.options.base is None:
            self.bench(self.path("head.db"), self.options.runs, 1)
            stored = os.path.join(self.options.store, "baseline.db")
            if not os.path.exists(stored):
                return None
            shutil.copy(stored, self.path("base.db"))
            return self.path("base.db")
        self.measure_in_turn()
        return self.path("base.db")

    def measure_in_turn(self):
        """What slows the machine down for a while meets both sides."""
        sides = {"base": os.path.abspath(self.options.base), "head": os.getcwd()}
        with tempfile.TemporaryDirectory() as folder:
            for i in range(self.options.runs):
                for side in sorted(sides, reverse=i % 2 == 1):
                    self.bench(os.path.join(folder, "%s.%d.db" % (side, i)), 1, 1 if i == 0 else 0, cwd=sides[side])
            for side in sides:
                parts = [os.path.join(folder, "%s.%d.db" % (side, i)) for i in range(self.options.runs)]
                self.probing("merge", "-q", "--force", "-o", self.path(side + ".db"), *parts)

    def compare(self, base):
        """The result, in a word."""
        options = ["--normalize", self.options.normalize] + ([] if self.options.native else ["--no-native"])
        rules = [word for rule in self.options.fail_on for word in ("--fail-on", rule)]
        allow = ["--allow=" + self.options.allow] if self.options.allow else []
        status = self.probing("check", "--baseline", base, self.path("head.db"), *options, *rules, *allow,
                              "--markdown", self.path("check.md"), "--junit", self.path("junit.xml"), statuses=WORDS)
        self.probing("diff", base, self.path("head.db"), *options, "-f", "svg", "-o", self.path("change.svg"))
        return WORDS[status]

    def write_comment(self, result):
        text = "%s\n### probing: %s\n\n" % (MARKER % self.options.name, TITLES[result])
        text += "%s, %d runs%s\n\n" % (as_code(" ".join(self.options.command)), self.options.runs,
                                        ", in turn with the base" if self.options.base else "")
        if result == "first":
            text += "There is no baseline to compare with. %s\n" % (
                "This run is the baseline from now on." if self.options.update else
                "A run with `--update` (on the main branch) stores one.")
        else:
            with open(self.path("check.md"), encoding="utf-8") as check:
                text += check.read()
            os.unlink(self.path("check.md"))
            if result == "inconclusive":
                text += "\nInconclusive is no failure: the text above names the reason.\n"
            text += "\nThe job's files have `change.svg`, a flame graph that is red where this change takes more time.\n"
        with open(self.path("comment.md"), "w", encoding="utf-8") as comment:
            comment.write(text)
        with open(self.path("result"), "w", encoding="utf-8") as file:
            file.write(result + "\n")
        self.tell_github(text, result)

    def tell_github(self, text, result):
        """The job's summary, and the action's outputs, if this is such a job."""
        for name, line in (("GITHUB_STEP_SUMMARY", text), ("GITHUB_OUTPUT", "result=%s\n" % result)):
            if os.environ.get(name):
                with open(os.environ[name], "a", encoding="utf-8") as file:
                    file.write(line)

    def store(self, result):
        """A slower run does not become the baseline: the next one would pass."""
        if result == "regressed":
            print("the stored baseline stays: this run is slower", flush=True)
            return
        os.makedirs(self.options.store, exist_ok=True)
        new = os.path.join(self.options.store, ".baseline.db.new")
        shutil.copy(self.path("head.db"), new)
        os.replace(new, os.path.join(self.options.store, "baseline.db"))

    def run(self):
        os.makedirs(self.out, exist_ok=True)
        base = self.measure()
        result = self.compare(base) if base else "first"
        self.write_comment(result)
        if self.options.update:
            self.store(result)
        print("probing: %s; %s has the comment" % (TITLES[result], self.path("comment.md")), flush=True)
        return 1 if result == "regressed" else 3 if result == "inconclusive" and self.options.strict else 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--store", metavar="FOLDER", help="where the baseline is kept between jobs")
    where.add_argument("--base", metavar="FOLDER", help="a checkout of the base: run the command there, too, in turn")
    parser.add_argument("--update", action="store_true", help="with --store: this run becomes the baseline unless it is slower")
    parser.add_argument("--out", default="probing-ci", help="folder for the results (default: %(default)s)")
    parser.add_argument("--name", default="default", help="of the benchmark: each name has a comment of its own (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="runs a side, at least 4 (default: %(default)s)")
    parser.add_argument("--frequency", type=float, default=1999, help="samples per second of CPU time (default: %(default)g)")
    parser.add_argument("--fail-on", action="append", metavar="RULE",
                        help="a rule of 'probing check' (repeatable; default: any>+10%%)")
    parser.add_argument("--normalize", default="rest", help="as in 'probing check' (default: %(default)s)")
    parser.add_argument("--allow", default="", help="differences of the environment to accept, as in 'probing check'")
    parser.add_argument("--native", action="store_true", help="compare native functions, too")
    parser.add_argument("--strict", action="store_true", help="fail if the result is inconclusive")
    parser.add_argument("--probing", default=os.environ.get("PROBING_BINARY") or "probing", help="the program (default: %(default)s)")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    options = parser.parse_args(arguments)
    options.command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not options.command:
        parser.error("the command is missing: -- COMMAND")
    if not re.fullmatch(r"[\w.-]+", options.name):
        parser.error("--name has letters, digits, '.', '-' and '_' alone")
    if options.runs < 4:
        parser.error("--runs must be 4 or more: fewer runs show no variation, and each result would be inconclusive")
    if options.update and options.base:
        parser.error("--update is for --store")
    options.fail_on = options.fail_on or ["any>+10%"]
    return options


if __name__ == "__main__":
    sys.exit(Job(parse(sys.argv[1:])).run())
