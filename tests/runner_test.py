#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What tests/e2e/run.py runs a second time: assertions of marked tests, once, and nothing else; and what scripts/test says of failures.

Usage: runner_test.py SOURCE_ROOT. The tests it runs are made here; no program is recorded.
"""
import contextlib
import io
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

os.environ["PROBING_BINARY"] = "/bin/true"
os.environ.pop("PROBING_NIGHTLY", None)
ROOT = sys.argv.pop(1)
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.dont_write_bytecode = True
import probing_test  # noqa: E402
import run  # noqa: E402
from probing_test import statistical  # noqa: E402


def case_of(*tests, prepare=lambda: None, mark=None):
    """A case whose tests are these functions: the list of them, as run.py has it."""
    made = type("Made", (unittest.TestCase,), {"test_%d" % i: test for i, test in enumerate(tests)})
    made.setUpClass = classmethod(lambda cls: prepare())
    if mark:
        made = mark(made)
    return [made("test_%d" % i) for i in range(len(tests))]


class Fails:
    """A test that fails so many times, by an assertion or otherwise; n_runs: how often it was run, in whatever process."""

    def __init__(self, times, error=AssertionError("too few")):
        self.times, self.error, self.runs = times, error, multiprocessing.Value("i")

    @property
    def n_runs(self):
        return self.runs.value

    def __get__(self, test, owner=None):
        return self if test is None else self.run

    def run(self):
        self.runs.value += 1
        if self.n_runs <= self.times:
            raise self.error


MARK = statistical("half of the samples", 0.001)


class SecondRuns(unittest.TestCase):
    def run_cases(self, *cases):
        """(outcomes in the order of the tests, names of the cases that needed a second run, what was printed)."""
        run.CASES[:] = cases
        with contextlib.redirect_stdout(io.StringIO()) as said:
            results = [run.run_case(tests) for tests in cases]
            second = run.run_again(results)
        return [sorted(done.outcomes.items()) for done in results], second, said.getvalue()

    def outcomes(self, *cases):
        outcomes, second, _ = self.run_cases(*cases)
        return [[outcome for _, outcome in of_case] for of_case in outcomes], len(second)

    def test_unmarked_failures_are_final(self):
        test = Fails(1)
        self.assertEqual(([["FAIL"]], 0), self.outcomes(case_of(test)))
        self.assertEqual(1, test.n_runs)

    def test_a_marked_one_runs_once_more(self):
        test, steady = MARK(Fails(1)), Fails(0)
        outcomes, second, said = self.run_cases(case_of(test, steady))
        self.assertEqual(["ok", "ok"], [outcome for _, outcome in outcomes[0]])
        self.assertEqual((2, 1, 1), (test.n_runs, steady.n_runs, len(second)))
        self.assertRegex(said, r"again: .*Made.test_0: half of the samples \(0\.001\)")

    def test_not_a_third_time(self):
        test = MARK(Fails(2))
        self.assertEqual(([["FAIL"]], 0), self.outcomes(case_of(test)))
        self.assertEqual(2, test.n_runs)

    def test_errors_and_crashes_are_final(self):
        for error in (OSError("gone"), probing_test.Crashed("signal 11"), probing_test.Impossible("exact, and wrong")):
            test = MARK(Fails(1, error))
            self.assertEqual(([["FAIL"]], 0), self.outcomes(case_of(test)), error)
            self.assertEqual(1, test.n_runs)

    def test_subtests(self):
        def both(self, errors=[AssertionError("few"), OSError("gone")]):
            for error in errors:
                with self.subTest(error):
                    raise error

        def one(self):
            with self.subTest("one"):
                raise AssertionError("few")
        with contextlib.redirect_stdout(io.StringIO()):
            results = [run.run_case(case_of(MARK(test))) for test in (both, one)]
        self.assertEqual([0, 1], [len(done.chance) for done in results])

    def test_a_class_that_cannot_be_prepared(self):
        def prepare():
            raise AssertionError("no recording")
        test = MARK(Fails(0))
        self.assertEqual(([["FAIL"]], 0), self.outcomes(case_of(test, prepare=prepare)))
        self.assertEqual(0, test.n_runs)

    def test_the_mark_of_a_case(self):
        test = Fails(1)
        self.assertEqual(([["ok"]], 1), self.outcomes(case_of(test, mark=MARK)))

    def test_more_than_two_are_no_chance(self):
        tests = [MARK(Fails(1)) for _ in range(3)]
        outcomes, second = self.outcomes(*(case_of(test) for test in tests))
        self.assertEqual(([["FAIL"]] * 3, 0), (outcomes, second))
        self.assertEqual([1, 1, 1], [test.n_runs for test in tests])

    def test_cases_of_a_module_that_run_together(self):
        def of_module(name, together):
            module = types.ModuleType(name)
            module.TOGETHER = together
            sys.modules[name] = module
            self.addCleanup(sys.modules.pop, name)
            case = case_of(Fails(0))
            type(case[0]).__module__ = name
            return case
        run.CASES[:] = [case_of(Fails(0))] + [of_module(*one) for one in (("one", True), ("two", False))] * 2
        run.CASES[3] = case_of(Fails(0))
        type(run.CASES[3][0]).__module__ = "one"
        self.assertEqual([[0], [1, 3], [2], [4]], [list(cases) for cases in run.jobs_of(range(5))])

    def test_a_case_whose_process_dies(self):
        """It fails by its name, with what it said until then; the others go on."""
        run.CASES[:] = [case_of(Fails(0), lambda self: os.kill(os.getpid(), signal.SIGKILL)), case_of(Fails(0))]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            results = run.run_first(2)
        self.assertEqual([["FAIL", "FAIL"], ["ok"]], [list(done.outcomes.values()) for done in results])
        self.assertEqual([set(), set()], [done.chance for done in results])
        self.assertRegex(said.getvalue(), r"ok .*Made.test_0\nFAIL .*Made: its process ended with status -9\n")

    def test_a_light_case_runs_beside_the_others(self):
        """Both jobs wait until the light one has run."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        waits = [case_of(lambda test: test.assertTrue(select.select([reading], [], [], 60)[0])) for _ in range(2)]
        light = case_of(lambda test: test.assertEqual(1, os.write(writing, b"x")))
        type(light[0]).light = True
        run.CASES[:] = waits + [light]
        with contextlib.redirect_stdout(io.StringIO()):
            results = run.run_first(2)
            self.assertEqual([{"ok"}] * 3, [set(done.outcomes.values()) for done in results])

    def test_one_interpreter_is_for_users(self):
        class Interpreter:
            label = "debian"
        case = case_of(Fails(0))
        made = type(case[0])
        made.interpreter, made.ONE_FOR_USERS = Interpreter, True
        self.assertTrue(run.may_differ_by_user(case))
        Interpreter.label = "3_8"
        self.assertFalse(run.may_differ_by_user(case))
        with unittest.mock.patch.dict(os.environ, PROBING_NIGHTLY="1"):
            self.assertTrue(run.may_differ_by_user(case))
        made.ONE_FOR_USERS = False
        self.assertTrue(run.may_differ_by_user(case))
        made.NIGHTLY_FOR_USERS = True
        self.assertFalse(run.may_differ_by_user(case))
        with unittest.mock.patch.dict(os.environ, PROBING_NIGHTLY="1"):
            self.assertTrue(run.may_differ_by_user(case))

    def test_what_is_shared_is_made_once_and_goes(self):
        made = []

        @probing_test.shared
        def share(folder):
            made.append(folder)
            return folder
        self.assertEqual(share(), share())
        self.assertTrue(os.path.isdir(made[0]))
        probing_test.end_shared()
        self.assertFalse(os.path.exists(made[0]))
        share()
        self.assertEqual(2, len(made))
        probing_test.end_shared()

    def test_marks_say_why_and_how_often(self):
        for reason, probability in (("", 0.001), ("a reason", 0), ("a reason", 0.02), ("a reason", 1)):
            with self.assertRaises(ValueError):
                statistical(reason, probability)


class ListOfFailures(unittest.TestCase):
    def failures_of(self, *lines):
        """What scripts/test lists of a runner's output, by line."""
        with open(os.path.join(ROOT, "scripts", "test"), encoding="utf-8") as file:
            function, = re.findall(r"(?ms)^failures_of\(\) \{$.*?^\}$", file.read())
        with tempfile.NamedTemporaryFile("w") as output:
            output.write("".join(line + "\n" for line in lines))
            output.flush()
            done = subprocess.run(["bash", "-c", function + "\nfailures_of root " + output.name], stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.splitlines()

    def test_each_with_its_reason(self):
        self.assertEqual(["FAIL  root:   1.2 s  a.B.test_c", "    Traceback", "    AssertionError: 1 != 2", "FAIL  root: suite/other"],
                         self.failures_of("ok      0.1 s  a.B.test_a", "FAIL    1.2 s  a.B.test_c", "Traceback", "AssertionError: 1 != 2",
                                          "ok      0.1 s  a.B.test_d", "FAIL  suite/other", "1 passed, 2 failed, 0 skipped"))

    def test_the_end_of_a_long_one_and_its_errors(self):
        listed = self.failures_of("FAIL  one", "an Error", *map(str, range(100)))
        self.assertEqual(["FAIL  root: one", "    an Error"] + ["    %d" % i for i in range(75, 100)], listed)

    def test_not_what_passed_when_it_ran_again(self):
        self.assertEqual(["FAIL  root:   1.0 s  a.B.test_c"],
                         self.failures_of("FAIL    1.0 s  a.B.test_a", "few", "FAIL    1.0 s  a.B.test_c", "again: a.B.test_a: shares (0.0002)",
                                          "ok      0.9 s  a.B.test_a"))

    def test_both_times_of_what_failed_twice(self):
        self.assertEqual(["FAIL  root:   1.0 s  a.B.test_a", "    few", "FAIL  root:   0.9 s  a.B.test_a", "    fewer"],
                         self.failures_of("FAIL    1.0 s  a.B.test_a", "few", "again: a.B.test_a: shares (0.0002)", "FAIL    0.9 s  a.B.test_a", "fewer"))

    def test_a_name_that_two_have(self):
        self.assertEqual(["FAIL  root: a"], self.failures_of("FAIL  a", "ok    a"))


if __name__ == "__main__":
    unittest.main()
