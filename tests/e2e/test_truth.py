# SPDX-License-Identifier: MIT
"""What is called verified was so, whatever happens between a sample and the look at memory.

Most samples are (bench/truth.py measures how many), for the reader takes the processor from the sampled
thread; of those that are, next to none may be what cannot have been. The fixtures say what that is
(truth_judge.py); bench/truth.py measures the same for longer, and test_bpf asks it of frames that are
read inside the interrupt.
"""
import math
import os
import sys
import unittest

import probing_test as t
import truth_judge


class Truth(t.Case):
    """Records one fixture once for all its tests."""

    source = "wakeup"
    arguments = ()
    cpu_s = 1
    hz = 999
    make_judge = None

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        with t.scratch(), t.fixture(*cls.arguments, python=cls.interpreter.path, place=cls.interpreter.place) as target:
            cls.recording = t.record_cpu(target, cls.cpu_s, cls.hz, "probing.db", "--source", cls.source)
            cls.judge = cls.make_judge(cls.recording, target.truth)

    def check_claims(self, may_be_wrong=0.001):
        """Of what claims to be exact none is wrong, of what claims to be verified one in a thousand at most."""
        counts, wrong = self.judge.judge()
        self.assertGreater(sum(counts.values()), 20, "too few samples to judge")
        if counts["exact", False]:
            raise t.Impossible("exact, and wrong: %s" % wrong[:3])
        n = counts["verified", True] + counts["verified", False]
        self.assertLessEqual(counts["verified", False], n * may_be_wrong, "%s %s" % (counts, wrong[:3]))


    def check_share(self, least):
        """So many of all samples claim to be right. Those that are read late do not: how many they are depends on who else
        wants the processors, unless the recorder comes before these."""
        if os.geteuid() != 0:
            self.skipTest("an ordinary user may not raise the recorder's priority: how many samples it reads in time is others' load")
        verdicts = self.recording.verdicts()
        claimed = sum(verdicts[verdict] for verdict in truth_judge.CLAIM)
        self.assertGreaterEqual(claimed, sum(verdicts.values()) * least, verdicts)


@t.for_each_interpreter(globals(), lambda: t.interpreters() + t.compiling_interpreters())
class CallTree(Truth):
    """Each function has one caller, and its own name tells which."""

    arguments = ("flutter.py", "--mode", "tree")
    make_judge = truth_judge.Tree

    @t.statistical("bounds the share of verified samples that are wrong", 0.0002)
    def test_no_caller_that_cannot_be(self):
        self.check_claims(0)


@t.for_each_interpreter(globals())
class Calls(Truth):
    """Short calls of C: what is innermost says who called it."""

    arguments = ("truth_calls.py",)
    make_judge = truth_judge.Calls

    @t.statistical("bounds the share of verified samples that are wrong: 1 of 22,000 from 3.12 on, and a case has some hundred", 0.01)
    def test_no_caller_that_cannot_be(self):
        self.check_claims()

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_nearly_all_are_verified(self):
        self.check_share(0.8)


@t.for_each_interpreter(globals())
class ReusedAddresses(Truth):
    """Functions that are made, called once and dropped: the next is where the last was."""

    arguments = ("flutter.py", "--mode", "reused")
    make_judge = truth_judge.Reused

    @t.statistical("bounds the share of verified samples that are wrong: 1 of 22,000 from 3.12 on, and a case has some hundred", 0.01)
    def test_no_function_of_before(self):
        self.check_claims()


@t.for_each_interpreter(globals())
class Turns(Truth):
    """Functions that call a third by turns, stacks deeper than what is captured, and times that are known."""

    arguments = ("truth_turns.py",)
    cpu_s = 1.5
    make_judge = truth_judge.Turns

    @t.statistical("bounds the share of verified samples that are wrong: 1 of 22,000 from 3.12 on, and a case has some hundred", 0.01)
    def test_no_caller_that_cannot_be(self):
        self.check_claims()

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_nearly_all_are_verified(self):
        self.check_share(0.8)

    def test_everything_is_seen(self):
        seen = {self.judge.witness(sample) for sample in self.judge.samples()}
        self.assertEqual(set(), set(self.judge.truth["chains"]) - seen)

    def test_what_was_learnt_of_the_interpreter_is_kept(self):
        found = {place["holds"] for place in self.recording.evaluation_places if place["agreed"] > 0}
        self.assertIn("bytecode", found, self.recording.evaluation_places)

    @t.statistical("shares of random samples, within twice what 999 of 1,000 keep to", 0.0002)
    def test_time_is_what_the_program_measured(self):
        """Within what chance allows in 999 of 1,000 cases, twice: samples that follow each other are alike."""
        seen = self.judge.shares()
        n = sum(seen.values())
        self.assertGreater(n, 100, seen)
        for name, share in self.judge.truth["shares"].items():
            may_differ = 2 * 3.29 * math.sqrt(share * (1 - share) / n) + 0.03
            self.assertLessEqual(abs(seen[name] / n - share), may_differ, "%s: %s" % (name, seen))


if __name__ == "__main__":
    sys.exit(unittest.main())
