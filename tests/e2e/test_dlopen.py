# SPDX-License-Identifier: MIT
"""Libraries that are mapped while the recording runs."""
import sys
import unittest

import probing_test as t


@t.for_each_interpreter(globals())
class LateLibraries(t.Case):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        with t.scratch(), t.fixture("dlopen.py", "--delay", 0.6, python=cls.interpreter.path, place=cls.interpreter.place) as started:
            cls.recording = t.record_cpu(started, 1.1, 999)

    def stacks_with(self, *names):
        return [s for s in self.recording.samples if s.stack and t.subsequence(self.recording.names(s.stack), names)]

    @t.statistical("a function that runs for a part of the time must be met by so many samples", 0.0002)
    def test_own_library_is_named_with_its_lines(self):
        found = self.stacks_with("main", "use_native_lib", "native_burn", "native_work")
        self.assertGreater(len(found), 50)
        leaf = [frame for frame in self.recording.path(found[0].stack) if frame.kind != "kernel"][-1]
        self.assertTrue((leaf.file or "").endswith("native_lib.c"), leaf)
        self.assertGreater(leaf.line or 0, 0)

    def test_extension_module_is_named(self):
        self.assertTrue(self.stacks_with("use_bz2", "compress"))
        self.assertTrue(any("libbz2" in (self.recording.path(s.stack)[-1].module or "")
                            for s in self.stacks_with("main", "use_bz2")))

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_stacks_are_whole(self):
        ends = self.recording.ends()
        self.assertNearlyAll(ends["complete"] + ends["completed"], sum(ends.values()), str(ends))


if __name__ == "__main__":
    sys.exit(unittest.main())
