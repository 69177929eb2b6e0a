#!/usr/bin/python3
"""Runs the end-to-end tests and counts them.

Usage: run.py [PATTERN...]   a pattern is a part of a test's name, e.g. test_stacks

A line per test while it runs, failures in full, then the closing line
'N passed, N failed, N skipped'. A test with a failing subtest has failed once.
Exit status 1 iff something failed.
"""
import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True  # this tree may not be ours to write to


class Result(unittest.TestResult):
    """Says what happened as it happens; keeps one outcome per test."""

    def __init__(self):
        super().__init__()
        self.outcomes = {}
        self.started = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.started = time.monotonic()  # of what a class does before its tests

    def say(self, outcome, test, text=""):
        name = test.id() if hasattr(test, "id") else str(test)
        if self.outcomes.get(name) in ("FAIL", outcome):
            return
        self.outcomes[name] = outcome
        took = time.monotonic() - self.started
        print("%-4s %6.1f s  %s%s" % (outcome, took, name, text), flush=True)

    def addSuccess(self, test):
        self.say("ok", test)

    def addSkip(self, test, reason):
        self.say("skip", test, ": " + reason)

    def fail(self, test, err):
        self.say("FAIL", test)
        print(self._exc_info_to_string(err, test), flush=True)

    def addFailure(self, test, err):
        self.fail(test, err)

    def addError(self, test, err):
        self.fail(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.fail(test, err)
            print("in %s" % subtest, flush=True)

    def addUnexpectedSuccess(self, test):
        self.say("FAIL", test, ": succeeded unexpectedly")


def main(patterns):
    sys.path.insert(0, HERE)
    __import__("probing_test")  # says once, and here, if there is nothing to test
    loader = unittest.TestLoader()
    loader.testNamePatterns = ["*%s*" % pattern for pattern in patterns] or None
    result = Result()
    loader.discover(HERE, "test_*.py", HERE).run(result)
    outcomes = list(result.outcomes.values())
    failed = outcomes.count("FAIL")
    print("%d passed, %d failed, %d skipped" % (outcomes.count("ok"), failed, outcomes.count("skip")))
    if not outcomes:
        sys.exit("no test matches")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
