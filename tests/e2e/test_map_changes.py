# SPDX-License-Identifier: MIT
"""Code that comes, goes and changes at one place while it is recorded."""
import collections
import os
import sys
import unittest

import by_work
import probing_test as t

# What stands between a phase and burn(); None: generated code without a name.
CALLED = {"phase_a": "a_work", "phase_b": "b_work", "phase_jit": None, "phase_rewritten": None,
          "phase_gone": "a_work", "phase_replaced": "a_work"}


class MapChanges(t.Case):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        cls.recording, _ = by_work.record_fixture("map_changes", 30, seconds=3, hz=999)

    def burning(self):
        """Samples in burn(), by phase, as what stands between the two."""
        found = collections.defaultdict(list)
        for sample in self.recording.samples:
            names = self.recording.names(sample.stack) if sample.stack else []
            if "burn" not in names:
                continue
            phase = next((name for name in names if name in CALLED), None)
            between = names[names.index(phase) + 1:names.index("burn")] if phase else []
            between = [name for name in between if name != "call_generated"]
            found[phase].append(between)
        return found

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_stacks_are_whole(self):
        ends = self.recording.ends()
        self.assertNearlyAll(ends["complete"] + ends["completed"], sum(ends.values()), str(ends))

    def test_generated_code_is_marked(self):
        # A file that is gone is read out of the process, while it has it mapped: 30 ms here.
        own = [path for path in self.recording.modules_without_cfi
               if path is None or os.path.basename(path) not in ("gone.so", "replaced.so")]
        self.assertEqual([None], own)

    @t.statistical("bounds the share of samples that fall between two phases", 0.0005)
    def test_every_phase_is_seen_and_nothing_else(self):
        found = self.burning()
        self.assertEqual(set(CALLED), set(found) - {None})
        self.assertLessEqual(len(found[None]), sum(map(len, found.values())) * 0.005)

    @t.statistical("bounds the share of samples that fall on a change of mappings", 0.0005)
    def test_function_between_is_the_one_that_was_there(self):
        for phase, calls in self.burning().items():
            if phase is None:
                continue
            right = other = 0
            for between in calls:
                foreign = {"a_work", "b_work"} - {CALLED[phase]}
                self.assertFalse(foreign & set(between), (phase, between))
                # Of a file that is gone, one who may not follow map_files has no names.
                right += len(between) == 1
                other += len(between) != 1
            with self.subTest(phase):
                self.assertNearlyAll(right, right + other, "one frame between; %s" % [c for c in calls if len(c) != 1][:3])
                if phase in ("phase_a", "phase_b"):
                    self.assertNearlyAll(sum(b == [CALLED[phase]] for b in calls), len(calls), "named")


if __name__ == "__main__":
    sys.exit(unittest.main())
