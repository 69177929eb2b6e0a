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
import contextlib
import multiprocessing
import multiprocessing.connection
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
MAX_WAIT_S = 1  # for a job's end, where a program that it left holds its pipes open
FORK = multiprocessing.get_context("fork")
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


class Job:
    """Cases in a process of their own. What they print goes to a file, so that it is there even if the process dies."""

    def __init__(self, cases):
        """@cases: lists of tests, by place; they share what one of them prepares."""
        self.cases, self.done = cases, {}
        self.said = tempfile.TemporaryFile("w+")
        self.results, into = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=self.run, args=(into,))
        self.process.start()
        into.close()

    def run(self, into):
        with contextlib.redirect_stdout(self.said):
            try:
                for at, tests in self.cases.items():
                    into.send((at, run_case(tests)))
            finally:
                sys.modules["probing_test"].end_shared()
                sys.stdout.flush()

    def has_ended(self):
        """Takes what has come; a program that the cases left may hold the pipe open, so the process is what counts."""
        is_alive = self.process.is_alive()
        with contextlib.suppress(EOFError):
            while self.results.poll():
                at, done = self.results.recv()
                self.done[at] = done
        return not is_alive

    def end(self):
        """Prints what the cases said, and returns Done of each by its place. Those that their process left have failed."""
        self.process.join()
        self.said.seek(0)
        shutil.copyfileobj(self.said, sys.stdout)
        self.said.close()
        self.results.close()
        for at, tests in self.cases.items():
            if at not in self.done:
                print("FAIL    0.0 s  %s: its process ended with status %s" % (name_of(tests), self.process.exitcode))
                self.done[at] = Done({test.id(): "FAIL" for test in tests}, 0.0, 0.0, set())
        sys.stdout.flush()
        return self.done


def jobs_of(places):
    """The cases at these places of the list, by job: {place: tests} of one of them, or of all of a module whose cases run together."""
    jobs = {}
    for at in places:
        module = sys.modules[type(CASES[at][0]).__module__]
        jobs.setdefault(module if getattr(module, "TOGETHER", False) else at, {})[at] = CASES[at]
    return list(jobs.values())


def is_light(cases):
    """Whether all cases of a job wait most of their time."""
    return all(getattr(tests[0], "light", False) for tests in cases.values())


def run_jobs(jobs, n_at_once):
    """What run_case() returns, by place. @jobs: each the cases of one Job. So many run at once, and one that is light beside them."""
    waiting, running, results = list(jobs), [], {}
    while waiting or running:
        for light, room in ((True, 1), (False, n_at_once)):
            room -= sum(is_light(job.cases) == light for job in running)
            for cases in [cases for cases in waiting if is_light(cases) == light][:room]:
                waiting.remove(cases)
                running.append(Job(cases))
        multiprocessing.connection.wait([of_job for job in running for of_job in (job.process.sentinel, job.results)], MAX_WAIT_S)
        for job in [job for job in running if job.has_ended()]:
            running.remove(job)
            results.update(job.end())
    return results


def run_first(jobs):
    """What run_case() returns, of each case; several at once, then those that want to be alone."""
    is_alone = [jobs == 1 or getattr(tests[0], "alone", False) for tests in CASES]
    results = run_jobs(jobs_of(at for at in range(len(CASES)) if not is_alone[at]), jobs)
    for cases in jobs_of(at for at in range(len(CASES)) if is_alone[at]):
        results.update(run_jobs([cases], 1))
    return [results[at] for at in range(len(CASES))]


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
        done = run_jobs([{i: tests}], 1)[i]
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
