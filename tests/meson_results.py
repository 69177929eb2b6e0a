#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts the results of 'meson test' from its log (meson-logs/testlog.json).

Usage: meson_results.py LABEL LOG

A cmocka program counts as its tests, any other as one. A line per test that failed or was
skipped, a failed one with the end of its output, and a closing 'N passed, N failed, N skipped'.
A skip without a reason is a failure: the test prints it before it calls skip().
"""
import json
import re
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}
# What cmocka prints around each test; the list after the last one repeats names.
EVENT = re.compile(r"^\[ *(RUN|OK|SKIPPED|FAILED) *\] (\w+)$")
END = re.compile(r"^\[=+\] .* test\(s\) run\.$")


# What a sanitizer adds once a test has failed in the middle: what that test would have freed.
LEAKS = re.compile(r"^=+\n==\d+==ERROR: LeakSanitizer: .*", re.MULTILINE | re.DOTALL)


def without_leaks(text):
    """What a failed test said, as far as it tells why: without the leaks, if it failed before they were looked for."""
    return LEAKS.sub("", text) if "[  FAILED  ]" in text else text


def last_words(text, lines):
    return "\n".join(text.strip().splitlines()[-lines:])


def cmocka_results(test):
    """(name, outcome, reason of a skip) of each test of a cmocka program; nothing of another program."""
    results, said = {}, []
    for line in test.get("stdout", "").splitlines():
        event = EVENT.match(line)
        if END.match(line):
            break
        if not event:
            said.append(line.strip())
        elif event.group(1) == "RUN":
            said = []
        elif event.group(1) == "OK":
            results[event.group(2)] = "passed", None
        elif event.group(1) == "SKIPPED":
            reason = next((words for words in reversed(said) if words), "")
            results[event.group(2)] = "skipped", re.sub(r"^skip(ped)?: *", "", reason, flags=re.IGNORECASE)
    for line in test.get("stdout", "").splitlines() + test.get("stderr", "").splitlines():
        event = EVENT.match(line)
        if event and event.group(1) == "FAILED":
            results[event.group(2)] = "failed", None
    return [(name, *result) for name, result in results.items()]


def results_of(test):
    """(name, outcome, reason of a skip) of what one entry of the log counts as."""
    said = test.get("stdout", "") + test.get("stderr", "")
    results = cmocka_results(test)
    if test["result"] in PASSED | SKIPPED:
        return results or [("", "passed", None) if test["result"] in PASSED else ("", "skipped", last_words(said, 1))]
    if not any(outcome == "failed" for _, outcome, _ in results):
        results.append(("", "failed", None))  # it crashed, or took too long
    return results


def count(label, log):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with open(log, encoding="utf-8") as lines:
        tests = {test["name"]: test for test in map(json.loads, lines)}
    for name, test in tests.items():
        for part, outcome, reason in results_of(test):
            full = "%s: %s" % (label, name + ("." + part if part else ""))
            if outcome == "skipped" and not reason:
                print("FAIL  %s: skipped without a reason" % full)
                outcome = "failed"
            elif outcome == "skipped":
                print("skip  %s: %s" % (full, reason))
            elif outcome == "failed":
                print("FAIL  %s (%s)" % (full, test["result"]))
            counts[outcome] += 1
        if test["result"] not in PASSED | SKIPPED:
            print(last_words(without_leaks(test.get("stdout", "") + test.get("stderr", "")), 60))
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)


if __name__ == "__main__":
    count(*sys.argv[1:])
