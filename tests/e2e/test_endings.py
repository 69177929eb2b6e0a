# SPDX-License-Identifier: MIT
"""Python code that the program does not call itself: finalizers, atexit, the interpreter's end."""
import collections
import os
import signal
import sys
import unittest

import probing_test as t


@t.for_each_interpreter(globals())
class Endings(t.Case):
    """Recorded to the target's own end."""

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        command = t.fixture_command("endings.py", python=cls.interpreter.path, place=cls.interpreter.place)
        with t.scratch(), t.target(command) as started:
            with t.recorder("--pid", started.pid, "-F", 499, "-o", "probing.db") as process:
                t.await_recording(process)
                os.kill(started.pid, signal.SIGUSR1)
                cls.said = process.communicate(timeout=60)[1]
                cls.status = process.returncode
            cls.recording, cls.truth = t.Recording("probing.db"), started.truth

    def chains(self):
        """Counts of the Python functions of a sample, the burning one last, by verdict and chain."""
        found = collections.Counter()
        for sample in self.recording.samples:
            names = [frame.name for frame in self.recording.python(sample.stack)] if sample.stack else []
            if "burn_for" in names:
                found[sample.verdict, tuple(names[:names.index("burn_for") + 1])] += 1
        return found

    def test_recording_ends_with_the_program(self):
        self.assertEqual(t.OK, self.status, self.said)
        self.assertTrue(self.recording.run["clean"], self.recording.run)

    def test_each_phase_is_seen_below_its_own_functions(self):
        chains = self.chains()
        seen = {chain for _, chain in chains}
        for phase, functions in self.truth["phases"].items():
            with self.subTest(phase):
                self.assertIn(tuple(functions), seen)

    @t.statistical("one verified sample in a thousand may be wrong", 0.0005)
    def test_what_is_verified_is_one_of_them(self):
        wanted = {tuple(functions) for functions in self.truth["phases"].values()}
        chains = self.chains()
        wrong = {key: n for key, n in chains.items() if key[0] in t.SURE and key[1] not in wanted}
        if any(verdict == "exact" for verdict, _ in wrong):
            raise t.Impossible("exact, and wrong: %s" % wrong)
        self.assertEqual({}, wrong, chains)

    @t.statistical("the first sample in a finalizer may be read late", 0.0002)
    def test_garbage_is_collected_below_its_caller(self):
        """The native frames of the collector stand between its caller and the finalizer."""
        finalizer = self.truth["phases"]["garbage"][-2]
        for sample in self.recording.samples:
            frames = self.recording.path(sample.stack) if sample.stack else []
            names = [frame.name for frame in frames]
            if "collect_garbage" in names and finalizer in names:
                between = frames[names.index("collect_garbage") + 1:names.index(finalizer)]
                self.assertTrue(between and all(frame.kind == "native" for frame in between), between)
                return
        self.fail("never seen")


if __name__ == "__main__":
    sys.exit(unittest.main())
