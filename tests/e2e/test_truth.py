"""What is called verified was so, whatever happens between a sample and the look at memory.

How many samples can be verified depends on how late that look is, so nothing is asked of
that; what cannot have been must not be among them at all. test_bpf has the same for frames
that are read inside the interrupt.
"""
import collections
import sys
import unittest

import probing_test as t
from test_stacks import Stacks


class Flutter(Stacks):
    seconds = 2
    hz = 999
    source = "read"

    def judge(self, is_possible):
        """Counts of (verdict, possible) and the impossible ones; is_possible() may be None: cannot be told."""
        counts, impossible = collections.Counter(), []
        for sample in self.samples():
            possible = is_possible(sample)
            if possible is None:
                continue
            counts[sample.verdict, possible] += 1
            if not possible and sample.verdict in t.SURE:
                impossible.append(self.recording.names(sample.stack))
        self.assertGreater(sum(counts.values()), 20, "too few samples to judge")
        return counts, impossible


class CallTrees:
    """Each function has one caller, and its own name tells which."""

    arguments = ("flutter.py", "--mode", "tree")

    def is_possible(self, sample):
        names = [f.name for f in self.python(sample) if f.name.startswith(self.truth["prefix"])]
        if not names:
            return None
        callers = [self.truth["prefix"]] + names[:-1]
        return all(name[:-1] == caller for name, caller in zip(names, callers))

    def test_no_caller_that_cannot_be(self):
        counts, impossible = self.judge(self.is_possible)
        self.assertEqual([], impossible[:3], counts)


class Reused:
    """Functions that are made, called once and dropped: the next is where the last was."""

    arguments = ("flutter.py", "--mode", "reused")

    def is_possible(self, sample):
        """By the library that the native part of the stack is in, below the last function made."""
        made = below = None
        for frame in self.recording.path(sample.stack):
            module = (frame.module or "").rsplit("/", 1)[-1]
            if frame.kind == "python" and frame.name.startswith((self.truth["crc"], self.truth["sha"])):
                made, below = frame.name[:4], None
            elif made and module.startswith("libz."):
                below = self.truth["crc"]
            elif made and module.startswith("libcrypto."):
                below = self.truth["sha"]
        return made == below if below else None

    def test_no_function_of_before(self):
        counts, impossible = self.judge(self.is_possible)
        n = sum(counts[verdict, possible] for verdict in t.SURE for possible in (True, False))
        self.assertLessEqual(len(impossible), n * 0.001, impossible[:3])


@t.for_each_interpreter(globals(), lambda: t.interpreters() + t.compiling_interpreters())
class CallTree(CallTrees, Flutter):
    pass


@t.for_each_interpreter(globals())
class ReusedAddresses(Reused, Flutter):
    pass


if __name__ == "__main__":
    sys.exit(unittest.main())
