# SPDX-License-Identifier: MIT
"""Children: by fork, by exec of Python and of something else, by spawn."""
import collections
import os
import signal
import subprocess
import sys
import time
import unittest

import by_work
import probing_test as t
from probing_test import fixture_command, probing


class Children:
    """The same expectations for both ways of recording."""

    def of_function(self, name):
        """pid -> samples whose stack holds that function."""
        return collections.Counter(s.pid for s in self.recording.samples
                                   if s.stack and name in self.recording.names(s.stack))

    def check_child(self, function):
        pids = self.of_function(function)
        self.assertEqual(1, len(pids), "%s ran in %s" % (function, pids))
        pid, n = pids.popitem()
        self.assertNotEqual(self.recording.run["pid"], pid)
        self.assertGreater(n, 20)
        return next(process for process in self.recording.processes if process["pid"] == pid)

    def test_the_parent(self):
        self.assertEqual([self.recording.run["pid"]], list(self.of_function("parent_work")))

    def test_forked_child(self):
        child = self.check_child("child_of_fork")
        self.assertEqual(self.recording.run["pid"], child["parent_pid"])

    def test_forked_child_keeps_the_stack_of_its_parent(self):
        sample = next(s for s in self.recording.samples
                      if s.stack and "child_of_fork" in self.recording.names(s.stack))
        self.assertTrue(t.subsequence([f.name for f in self.recording.python(sample.stack)],
                                      ["<module>", "main", "child_of_fork"]))

    def test_executed_interpreter(self):
        child = self.check_child("exec_of_python")
        self.assertIn("--exec-of-python", child["command"])
        self.assertRegex(child["python"], r"^3\.")

    def test_spawned_worker(self):
        self.check_child("spawned_worker")

    @t.statistical("the first samples after an exec may still be of the program before", 0.0002)
    def test_executed_shell(self):
        shells = {process["pid"] for process in self.recording.processes if process["name"] in ("sh", "dash", "bash")}
        samples = [sample for sample in self.recording.samples if sample.pid in shells]
        self.assertGreater(len(samples), 20)
        native = sum(sample.verdict == "no_python" for sample in samples)
        self.assertShare(0.95, native / len(samples), "the shell has no Python")


class Attached(Children, t.Case):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        with t.scratch(), t.target(by_work.gated("forks.py", "--seconds", 3.5)) as target, \
                t.recorder("--pid", target.pid, "-F", 499, "-o", "out.db") as process:
            t.await_recording(process)
            os.kill(target.pid, signal.SIGUSR1)
            said = process.communicate(timeout=60)[1]
            if process.returncode != t.OK:
                raise AssertionError(said)
            cls.recording = t.Recording("out.db")


class Launched(Children, t.Case):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        with t.scratch():
            command = fixture_command("forks.py", "--seconds", 3.5)
            probing("record", "-F", 499, "-o", "out.db", "--", *command, check=t.OK)
            cls.recording = t.Recording("out.db")


class WhileNobodyLooks(t.Case):
    """Children that come and go before the recorder has read of them."""
    LOOP = "while read line; do sleep 0.1; (exit 0); done"

    def test_times_and_names_are_those_of_the_events(self):
        t.need_perf()
        shell = subprocess.Popen(["/bin/sh", "-c", self.LOOP], stdin=subprocess.PIPE)
        with t.scratch(), t.recorder("--pid", shell.pid, "-o", "out.db") as recorder:
            t.await_recording(recorder)
            recorder.send_signal(signal.SIGSTOP)
            before = time.time()
            shell.communicate(b"once\n")
            after = time.time()
            time.sleep(0.5)
            recorder.send_signal(signal.SIGCONT)
            recorder.communicate(timeout=30)
            children = sorted((row for row in t.Recording("out.db").processes if row["pid"] != shell.pid), key=lambda row: row["started"])
        self.assertEqual(["sleep", "sh"], [row["name"] for row in children])
        for row in children:
            self.assertLessEqual(before, row["started"] + 0.001)
            self.assertLessEqual(row["ended"], after + 0.001)
        self.assertGreaterEqual(children[0]["ended"] - children[0]["started"], 0.1)

if __name__ == "__main__":
    sys.exit(unittest.main())
