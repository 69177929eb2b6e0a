#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts the results of 'meson test' from its logs (meson-logs/testlog.json).

Usage: meson_results.py LABEL LOG...   a line per test that failed or was skipped,
           with the end of what it said, and a closing 'N passed, N failed, N skipped';
           a test that is in several logs counts as in the last
       meson_results.py --failed LOG   names of the tests that failed
Logs that are not there count as empty, but for the first.
"""
import json
import os
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}


def last_words(test, lines):
    said = (test.get("stdout", "") + test.get("stderr", "")).strip().splitlines()
    return "\n".join(said[-lines:])


def outcome(test):
    return "passed" if test["result"] in PASSED else "skipped" if test["result"] in SKIPPED else "failed"


def read(logs):
    """The tests by name, each as in the last of the logs that has it."""
    tests = {}
    for log in logs[:1] + [log for log in logs[1:] if os.path.exists(log)]:
        with open(log) as results:
            tests.update((test["name"], test) for test in map(json.loads, results))
    return tests


def failed(log):
    for name, test in read([log]).items():
        if outcome(test) == "failed":
            print(name.split(" / ")[-1])  # after project and suite


def count(label, logs):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, test in read(logs).items():
        counts[outcome(test)] += 1
        if outcome(test) == "skipped":
            print("skip  %s: %s: %s" % (label, name, last_words(test, 1)))
        elif outcome(test) == "failed":
            print("FAIL  %s: %s (%s)\n%s" % (label, name, test["result"], last_words(test, 60)))
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)


if __name__ == "__main__":
    if sys.argv[1] == "--failed":
        failed(sys.argv[2])
    else:
        count(sys.argv[1], sys.argv[2:])
