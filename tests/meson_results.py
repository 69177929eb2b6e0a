#!/usr/bin/python3
"""Counts the results of 'meson test' from its log (meson-logs/testlog.json).

Usage: meson_results.py LABEL LOG. A line per test that failed or was skipped,
with the end of what it said, and a closing 'N passed, N failed, N skipped'.
"""
import json
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}


def last_words(test, lines):
    said = (test.get("stdout", "") + test.get("stderr", "")).strip().splitlines()
    return "\n".join(said[-lines:])


def main(label, log):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with open(log) as results:
        for line in results:
            test = json.loads(line)
            if test["result"] in PASSED:
                counts["passed"] += 1
            elif test["result"] in SKIPPED:
                counts["skipped"] += 1
                print("skip  %s: %s: %s" % (label, test["name"], last_words(test, 1)))
            else:
                counts["failed"] += 1
                print("FAIL  %s: %s (%s)\n%s" % (label, test["name"], test["result"], last_words(test, 60)))
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)


if __name__ == "__main__":
    main(*sys.argv[1:])
