#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the end-to-end tests and counts them.

Usage: run.py [--jobs N] [--by-user] [PATTERN...]   a pattern is a part of a test's name, e.g. test_stacks

A line per test, failures in full, then the closing line
'N passed, N failed, N skipped'. A test with a failing subtest has failed once.
Exit status 1 iff something failed.

N cases run at once (default: as many as there are processors), each in a process
of its own; its lines come when it is done. Cases that say 'alone = True' measure what
others would disturb: they run after the rest, one by one. Cases that say 'light = True' wait most of their time,
whatever runs beside them: one of them runs in addition to the N.

With --by-user only what may depend on who runs it: not the modules and cases that say
'SAME_FOR_ALL_USERS = True', as they are about what is made of a recording, whoever made it. Those that
say 'NIGHTLY_FOR_USERS = True' run with PROBING_NIGHTLY only, and so do cases that say 'ONE_FOR_USERS = True'
of other interpreters than Debian's: rights do not depend on the version that is read.

Cases of a module that says 'TOGETHER = True' share what one of them has prepared, and run one after the other.

The slowest cases are listed before the closing line: their time with all that their classes prepare, and the CPU time
of all processes they started.

All tests of a class count as skipped, or as failed, if the class's preparation is. Tests share a temporary folder; what
they leave there is one more failure, which names the files. A program that was killed may have its files for a moment longer.

A failure is final, with one exception: a test marked @statistical (probing_test.py) whose assertion fails runs once more at
the end, alone and from a recording of its own. A line 'N needed a second run: ...' names the cases that passed then; more
than two of them fail the run. Where more than two cases failed so, none runs again: that is no chance. Errors, crashes
and failures to prepare a class are final for marked tests, too.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import io
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True  # this tree may not be ours to write to


def mark_of(test):
    """Its (reason, probability) of @statistical, or its case's; None: it has none."""
    method = getattr(type(test), getattr(test, "_testMethodName", ""), None)
    return getattr(method, "statistical", None) or getattr(type(test), "statistical", None)


class Result(unittest.TestResult):
    """Says what happened as it happens; keeps one outcome per test."""

    def __init__(self, tests):
        super().__init__()
        self.tests = tests
        self.outcomes = {}
        self.final = set()  # names of the tests whose failure was not an assertion of a marked one
        self.started = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.started = time.monotonic()  # of what a class does before its tests

    def of_class(self, holder):
        """The tests that do not run because their class, or their module, could not be prepared."""
        return [test for test in self.tests if test.id() not in self.outcomes] if holder.id().startswith("setUp") else []

    def affected(self, test):
        """The test, or those of the class that could not be prepared."""
        return [test] if isinstance(test, unittest.TestCase) else self.of_class(test) or [test]

    def say(self, outcome, test, text=""):
        for one in self.affected(test):
            if self.outcomes.get(one.id()) in ("FAIL", outcome):
                continue
            self.outcomes[one.id()] = outcome
            took = time.monotonic() - self.started
            print("%-4s %6.1f s  %s%s" % (outcome, took, one.id(), text), flush=True)

    def addSuccess(self, test):
        self.say("ok", test)

    def addSkip(self, test, reason):
        self.say("skip", test, ": " + reason)

    def fail(self, test, err):
        if not isinstance(test, unittest.TestCase) or not mark_of(test) or not issubclass(err[0], test.failureException):
            self.final.update(one.id() for one in self.affected(test))
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
        self.final.add(test.id())
        self.say("FAIL", test, ": succeeded unexpectedly")


CASES = []  # all that are to be run, each as the list of its tests
MAX_CASES_AGAIN = 2  # scripts/test has the same bound for all its runs together
N_SLOWEST = 60
MAX_ENDING_S = 20  # until the files of programs that were killed are gone

# What running a case gives. outcomes: by name of the test; chance: names of the failed ones that may run again.
Done = collections.namedtuple("Done", "outcomes seconds cpu chance")


def cases_of(suite):
    """The test cases of a suite, each as the list of its tests."""
    cases = {}

    def gather(item):
        if isinstance(item, unittest.TestSuite):
            for part in item:
                gather(part)
        else:
            cases.setdefault(type(item), []).append(item)
    gather(suite)
    return list(cases.values())


def may_differ_by_user(tests):
    case = type(tests[0])
    is_of_night = getattr(case, "NIGHTLY_FOR_USERS", False) or (
        getattr(case, "ONE_FOR_USERS", False) and case.interpreter.label != "debian")
    if is_of_night and not os.environ.get("PROBING_NIGHTLY"):
        return False
    return not any(getattr(where, "SAME_FOR_ALL_USERS", False) for where in (case, sys.modules[case.__module__]))


def cpu_seconds():
    """Of this process and of its children that have ended."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def run_case(tests):
    """Done, of one case's tests."""
    result, began, spent = Result(tests), time.monotonic(), cpu_seconds()
    unittest.TestSuite(tests).run(result)
    failed = {name for name, outcome in result.outcomes.items() if outcome == "FAIL"}
    return Done(result.outcomes, time.monotonic() - began, cpu_seconds() - spent, failed - result.final)


def run_together(cases):
    """What run_case() returns of each of these, which share what one of them prepares."""
    try:
        return [run_case(tests) for tests in cases]
    finally:
        sys.modules["probing_test"].end_shared()


def run_quietly(places):
    """In a process of its own: run_together() of the cases at these places of the list, and their output."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        done = run_together([CASES[at] for at in places])
    return done, said.getvalue()


def jobs_of(places):
    """Lists of places that run in one process each: one of them, or all of a module whose cases run together."""
    jobs = {}
    for at in places:
        module = sys.modules[type(CASES[at][0]).__module__]
        jobs.setdefault(module if getattr(module, "TOGETHER", False) else at, []).append(at)
    return list(jobs.values())


def is_light(places):
    """Whether all cases of a job wait most of their time."""
    return all(getattr(CASES[at][0], "light", False) for at in places)


def run_first(jobs):
    """What run_case() returns, of each case; several at once, then those that want to be alone."""
    is_alone = [jobs == 1 or getattr(tests[0], "alone", False) for tests in CASES]
    together = [i for i in range(len(CASES)) if not is_alone[i]]
    results = [None] * len(CASES)
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(jobs, fork) as pool, concurrent.futures.ProcessPoolExecutor(1, fork) as beside:
        running = {(beside if is_light(places) else pool).submit(run_quietly, places): places for places in jobs_of(together)}
        for done in concurrent.futures.as_completed(running):
            of_places, said = done.result()
            for at, one in zip(running[done], of_places):
                results[at] = one
            print(said, end="", flush=True)
    for places in jobs_of(i for i in range(len(CASES)) if is_alone[i]):
        for at, done in zip(places, run_together([CASES[at] for at in places])):
            results[at] = done
    return results


def name_of(tests):
    return ".".join((type(tests[0]).__module__, type(tests[0]).__qualname__))


def print_slowest(results):
    """@results: as run_first() returns them."""
    total, total_cpu = sum(done.seconds for done in results), sum(done.cpu for done in results)
    print("cases took %.0f s, %.0f s of CPU time; the slowest:" % (total, total_cpu))
    for tests, done in sorted(zip(CASES, results), key=lambda pair: -pair[1].seconds)[:N_SLOWEST]:
        print("%6.1f s, %6.1f s CPU  %s%s" % (
            done.seconds, done.cpu, name_of(tests), " (alone)" if getattr(tests[0], "alone", False) else ""))


def print_marks():
    """How often a run without a defect would need second runs, by what the marks say."""
    marks = [mark for tests in CASES for mark in map(mark_of, tests) if mark]
    print("%d tests are statistical; by their marks %.2f a run fail by chance" % (
        len(marks), sum(mark.probability for mark in marks)))


def run_again(results):
    """Once, what may have failed by chance; it gets its new outcomes in @results. Returns the names of the cases that pass now."""
    again = [i for i, done in enumerate(results) if done.chance]
    if len(again) > MAX_CASES_AGAIN:
        print("%d statistical cases failed, and that is no chance: none runs again" % len(again), flush=True)
        return []
    second = []
    for i in again:
        tests = [test for test in CASES[i] if test.id() in results[i].chance]
        for test in tests:
            print("again: %s: %s (%g)" % (test.id(), *mark_of(test)), flush=True)
        done, = run_together([tests])
        results[i].outcomes.update(done.outcomes)
        if "FAIL" not in done.outcomes.values():
            second.append(name_of(CASES[i]))
    return second


def run_all(jobs):
    """Outcomes by name, and the names of the cases that passed the second time only."""
    results = run_first(jobs)
    print_slowest(results)
    print_marks()
    second = run_again(results)
    return {name: outcome for done in results for name, outcome in done.outcomes.items()}, second


@contextlib.contextmanager
def temporary_folder():
    """The only temporary folder meanwhile, like /tmp for everybody; gives the list of what is left there, filled at the end."""
    left, before = [], os.environ.get("TMPDIR")
    folder = tempfile.mkdtemp(prefix="probing-e2e.")
    os.chmod(folder, 0o1777)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    try:
        yield left
    finally:
        stop = time.monotonic() + MAX_ENDING_S
        while os.listdir(folder) and time.monotonic() < stop:
            time.sleep(0.1)
        left += sorted(os.listdir(folder))
        shutil.rmtree(folder, ignore_errors=bool(left))  # what is left may belong to a program that goes on
        tempfile.tempdir = None
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before


def main():
    parser = argparse.ArgumentParser(usage="run.py [--jobs N] [--by-user] [PATTERN...]")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--by-user", action="store_true")
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    sys.path.insert(0, HERE)
    __import__("probing_test")  # says once, and here, if there is nothing to test
    loader = unittest.TestLoader()
    loader.testNamePatterns = ["*%s*" % pattern for pattern in arguments.patterns] or None
    cases = cases_of(loader.discover(HERE, "test_*.py", HERE))
    CASES.extend(tests for tests in cases if not arguments.by_user or may_differ_by_user(tests))
    with temporary_folder() as left:
        by_name, second = run_all(arguments.jobs)
    outcomes = list(by_name.values())
    failed = outcomes.count("FAIL")
    if left:
        print("FAIL  left in the temporary folder: %s" % ", ".join(left))
        failed += 1
    if second:
        print("%d needed a second run: %s" % (len(second), ", ".join(second)))
    print("%d passed, %d failed, %d skipped" % (outcomes.count("ok"), failed, outcomes.count("skip")))
    if not outcomes:
        sys.exit("no test matches")
    return 1 if failed or len(second) > MAX_CASES_AGAIN else 0


if __name__ == "__main__":
    sys.exit(main())
