# SPDX-License-Identifier: MIT
"""Native stacks in shapes that are hard to unwind, in a program without Python."""
import collections
import sys
import unittest

import by_work
import probing_test as t


class Shape(t.Case):
    mode = None
    place = t.MACHINE
    source = "auto"

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_place(cls.place)
        cls.recording, _ = by_work.record_fixture("native_only", cls.mode, seconds=1.5, hz=499, place=cls.place,
                                                  source=cls.source)

    def names(self, sample):
        return self.recording.names(sample.stack)

    def check_whole(self, least=0.99):
        ends = self.recording.ends()
        self.assertGreater(len(self.recording.samples), 40, "too few samples to judge")
        self.assertShare(least, (ends["complete"] + ends["completed"]) / sum(ends.values()), str(ends))
        self.assertEqual({"no_python"}, set(self.recording.verdicts()))

    def check_order(self, wanted, least, samples=None):
        samples = samples if samples is not None else self.recording.samples
        share = sum(t.subsequence(self.names(s), wanted) for s in samples if s.stack) / max(1, len(samples))
        self.assertShare(least, share, " > ".join(wanted))


class Threads(Shape):
    mode = "threads"

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_whole(self):
        self.check_whole()

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_order_per_thread(self):
        helper = {thread["tid"] for thread in self.recording.threads if thread["name"] == "helper"}
        self.assertEqual(1, len(helper))
        for is_helper, wanted in ((True, ["helper_outer", "helper_inner", "work"]),
                                  (False, ["main", "run_threads", "outer", "middle", "inner", "work"])):
            samples = [s for s in self.recording.samples if (s.tid in helper) == is_helper]
            self.assertGreater(len(samples), 40)
            self.check_order(wanted, 0.95, samples)

    def test_file_and_line(self):
        frame = next(f for s in self.recording.samples for f in self.recording.path(s.stack) if f.name == "middle")
        self.assertTrue(frame.file.endswith("native_only.c"), frame)
        self.assertGreater(frame.line, 0)


class ThreadsReadAtOnce(Threads):
    """While the reader has the sampled thread's processor, and no interpreter to read."""

    source = "wakeup"


class SignalFrames(Shape):
    mode = "signal"

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_whole(self):
        self.check_whole()

    @t.statistical("bounds a share of random samples", 0.0002)
    def test_handler_stands_on_what_it_interrupted(self):
        samples = [s for s in self.recording.samples if "handler_burn" in self.names(s)]
        self.assertGreater(len(samples), len(self.recording.samples) * 0.2)
        self.check_order(["main", "interrupted_burn", "on_alarm", "handler_burn", "work"], 0.95, samples)


class RealignedStack(Shape):
    mode = "realign"

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_whole(self):
        self.check_whole()

    @t.statistical("bounds a share of random samples", 0.0002)
    def test_five_nested_calls(self):
        samples = [s for s in self.recording.samples if self.names(s)[-1] == "work"]
        self.assertGreater(len(samples), 40)
        self.check_order(["main", "run_realign"] + ["realigned"] * 5 + ["work"], 0.99, samples)


class DeepRecursion(Shape):
    mode = "recursion"

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_completed(self):
        self.check_whole()
        self.assertGreater(self.recording.ends()["completed"], 0)

    @t.statistical("some samples fall on the way down to the whole depth", 0.0002)
    def test_every_frame_is_there(self):
        counts = collections.Counter(sum(t.same_name(name, "descend") for name in self.names(s))
                                     for s in self.recording.samples if s.stack)
        self.assertShare(0.98, counts[5000] / sum(counts.values()), str(counts.most_common(3)))


class Callbacks(Shape):
    mode = "qsort"

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_whole(self):
        self.check_whole()

    @t.statistical("bounds a share of random samples", 0.0002)
    def test_through_libc_and_back(self):
        samples = [s for s in self.recording.samples if s.stack and self.names(s)[-1] == "compare_numbers"]
        self.assertGreater(len(samples), 20)
        self.check_order(["main", "run_qsort", "qsort", "compare_numbers"], 0.98, samples)


if __name__ == "__main__":
    sys.exit(unittest.main())
