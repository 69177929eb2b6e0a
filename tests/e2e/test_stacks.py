# SPDX-License-Identifier: MIT
"""The stacks themselves, against what each interpreter knows about its own.

Every class exists once per interpreter: Debian's stripped static ones, also those of
the newest releases in a root of their own, and shared builds of 2.7 and 3.6 to 3.13.
"""
import collections
import sys
import unittest

import by_work
import probing_test as t
import truth_judge

# Of the verified samples, how many may contradict the truth.
MAY_CONTRADICT = 0.01


class Stacks(t.Case):
    """Records one fixture once for all its tests."""

    arguments = ()
    seconds = 2
    hz = 499
    source = "auto"

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        if cls.source == "bpf":
            t.need_bpf()
        t.need_interpreter(cls.interpreter)
        cls.recording, cls.truth = by_work.record_fixture(*cls.arguments, seconds=cls.seconds, hz=cls.hz,
                                                          python=cls.interpreter.path,
                                                          place=cls.interpreter.place, source=cls.source)

    def name(self, qualname):
        """What the interpreter knows of a qualified name: all of it from 3.11."""
        return qualname if self.version() >= (3, 11) else qualname.rsplit(".", 1)[-1]

    @classmethod
    def version(cls):
        return tuple(map(int, cls.interpreter.version.split(".")))

    def samples(self, verdict=None):
        return [s for s in self.recording.samples if s.stack and verdict in (None, s.verdict)]

    def python(self, sample):
        return self.recording.python(sample.stack)

    def often_verified(self):
        """How many samples at least are verified whose callers take turns. From 3.11 on that depends on how late they are read."""
        return 0.3 if self.version() < (3, 11) else 0

    def check_quality(self, verified):
        """Whole stacks, and verdicts that are worth something."""
        ends, verdicts = self.recording.ends(), self.recording.verdicts()
        n = len(self.recording.samples)
        self.assertGreater(n, 40, "too few samples to judge")
        self.assertNearlyAll(ends["complete"] + ends["completed"], n, "stacks to the thread's start; %s" % ends)
        self.assertShare(verified, (verdicts["verified"] + verdicts["exact"]) / n, "verified; %s" % verdicts)
        self.assertLessEqual(verdicts["python"], n * 0.01, verdicts)


class Chains(Stacks):
    """Fixtures whose truth lists the chains of callers that lead to a leaf."""

    def between_marks(self, sample):
        """The Python frames between Truth.round and Truth.burn, None where these are not there."""
        frames = self.python(sample)
        names = [frame.name for frame in frames]
        first, last = self.name("Truth.round"), self.name("Truth.burn")
        if first not in names or last not in names:
            return None
        return frames[names.index(first) + 1:names.index(last)]

    def check_chains(self):
        """Every chain is seen, and no sample that claims to be verified shows another one."""
        expected = {tuple(map(tuple, chain)) for chain in self.truth["stacks"]}
        seen, wrong = collections.Counter(), collections.Counter()
        for sample in self.samples():
            frames = self.between_marks(sample)
            if frames is None:
                continue
            chain = tuple((frame.name, frame.line) for frame in frames)
            if chain in expected:
                seen[chain] += 1
            elif sample.verdict in t.SURE:
                wrong[chain] += 1
        n_wrong, n = sum(wrong.values()), sum(seen.values())
        self.assertGreater(n, 20, "too few samples in leaves")
        self.assertLessEqual(n_wrong, max(n * MAY_CONTRADICT, 2), "%d of %d: %s" % (n_wrong, n, wrong.most_common(3)))
        self.assertEqual(set(), expected - set(seen), "never seen")


@t.for_each_interpreter(globals(), t.all_interpreters)
class Callbacks(Chains):
    arguments = ("callbacks.py",)
    hz = 999

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_quality(self):
        self.check_quality(self.often_verified())

    @t.statistical(
        "one verified sample in a thousand may be wrong, and each chain of callers must be met by a sample", 0.0002)
    def test_order_of_python_frames_and_their_lines(self):
        self.check_chains()

    @t.statistical("one verified sample in a thousand may be wrong", 0.0002)
    def test_native_frames_stand_between_caller_and_callee(self):
        seen = collections.Counter()
        for sample in self.samples():
            names = self.recording.names(sample.stack)
            for caller, native, callee in self.truth["between"]:
                if callee not in names or caller not in names:
                    continue
                between = names[names.index(caller) + 1:names.index(callee)]
                is_there = any(t.same_name(name, native) for name in between)
                if is_there or sample.verdict in t.SURE:
                    seen[caller, native, callee, is_there] += 1
        for caller, native, callee in self.truth["between"]:
            right, wrong = (seen[caller, native, callee, found] for found in (True, False))
            with self.subTest("%s > %s > %s" % (caller, native, callee)):
                self.assertGreater(right, 0)
                self.assertLessEqual(wrong, (right + wrong) * 0.02)


@t.for_each_interpreter(globals())
class Generators(Chains):
    arguments = ("generators.py",)
    hz = 999

    @classmethod
    def setUpClass(cls):
        if cls.version() < (3, 6):
            raise unittest.SkipTest("generators.py is written for CPython 3.6 and later")
        super().setUpClass()

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_quality(self):
        self.check_quality(self.often_verified())

    @t.statistical(
        "one verified sample in a thousand may be wrong, and each chain of callers must be met by a sample", 0.0002)
    def test_order_and_lines(self):
        self.check_chains()

    def test_qualified_names(self):
        names = {frame.name for sample in self.samples() for frame in self.python(sample)}
        wanted = {"outer.<locals>.inner", "run_lambda.<locals>.<lambda>", "run_genexpr.<locals>.<genexpr>",
                  "run_class_body.<locals>.Body", "Shelf.Book.__init__", "Shelf.Book.leaf_static", "Pause.__await__"}
        self.assertEqual(set(), set(map(self.name, wanted)) - names)


@t.for_each_interpreter(globals())
class Lines(Stacks):
    arguments = ("lines.py",)
    seconds = 1
    hz = 999

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_quality(self):
        self.check_quality(self.often_verified())

    @t.statistical("bounds the share of samples on a loop's other lines", 0.0002)
    def test_executing_lines_of_callers_and_leaf(self):
        expected = {tuple(map(tuple, chain[:-1])) for chain in self.truth["stacks"]}
        seen, wrong, leaf_lines = set(), collections.Counter(), collections.Counter()
        for sample in self.samples():
            frames = self.python(sample)
            names = [frame.name for frame in frames]
            first = self.name("Truth.round")
            if names[-1:] != ["leaf"] or first not in names:
                continue
            chain = tuple((f.name, f.line) for f in frames[names.index(first) + 1:-1])
            if chain in expected:
                seen.add(chain)
            elif sample.verdict in t.SURE:
                wrong[chain] += 1
            leaf_lines[frames[-1].line] += 1
        n = sum(leaf_lines.values())
        self.assertLessEqual(sum(wrong.values()), max(n * MAY_CONTRADICT, 2), wrong.most_common(3))
        self.assertEqual(set(), expected - seen, "never seen")
        self.assertShare(0.97, leaf_lines[self.truth["leaf_line"]] / n, "leaf on its loop's line; %s" % leaf_lines)


class Deep(Stacks):
    def burning(self):
        """Samples taken in the leaf, where the depth is known."""
        found = [s for s in self.samples() if any(f.name.startswith("leaf_") for f in self.python(s))]
        self.assertGreater(len(found), 20)
        return found

    def check_depth(self, functions):
        counts = collections.Counter(sum(frame.name in functions for frame in self.python(sample))
                                     for sample in self.burning())
        n = sum(counts.values())
        self.assertNearlyAll(counts[self.truth["frames"]], n,
                             "%d frames; counted: %s" % (self.truth["frames"], counts.most_common(3)))


@t.for_each_interpreter(globals())
class DeepPython(Deep):
    arguments = ("deep.py",)
    seconds = 1
    hz = 399

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_quality(self):
        self.check_quality(self.often_verified())

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_every_frame_is_there(self):
        self.check_depth({"descend"})


@t.for_each_interpreter(globals())
class Deepest(Deep):
    arguments = ("deep.py", "--depth", "20000")
    hz = 19

    @t.statistical("some of 38 samples may fall on the way down to the whole depth", 0.0005)
    def test_no_frame_is_missing(self):
        counts = collections.Counter(sum(frame.name == "descend" for frame in self.python(sample))
                                     for sample in self.samples())
        self.assertNearlyAll(counts[20000], sum(counts.values()), counts)
        self.assertGreater(counts[20000], 2)
        self.assertEqual(0, self.recording.counters["python cut"])


@t.for_each_interpreter(globals(), t.compiling_interpreters)
class DeepCompiled(Deep):
    """Python's own machine code has no CFI, and stands in for the loop on the native stack."""

    arguments = ("deep.py",)
    hz = 199

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_every_frame_is_there(self):
        self.check_depth({"descend"})


@t.for_each_interpreter(globals())
class DeepThroughC(Deep):
    arguments = ("deep.py", "--mode", "c", "--depth", "600")
    seconds = 1
    hz = 399

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_every_frame_is_there(self):
        self.check_depth({"through_sorted", "through_reduce"})

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_stacks_are_complete(self):
        ends = self.recording.ends()
        self.assertNearlyAll(ends["complete"] + ends["completed"], sum(ends.values()), str(ends))
        self.assertGreater(ends["completed"], 0, "more than a stack copy holds, yet never completed")


@t.for_each_interpreter(globals(), t.all_interpreters)
class Threads(Stacks):
    arguments = ("threads.py", "--busy", "2", "--idle", "10", "--churn")
    seconds = 1
    hz = 999

    def of_thread(self, name):
        tids = {thread["tid"] for thread in self.recording.threads if thread["name"] == name}
        return [sample for sample in self.samples() if sample.tid in tids]

    @t.statistical("bounds the share of samples on a thread's first steps", 0.0002)
    def test_each_thread_runs_its_own_function(self):
        for name, function in self.truth["threads"].items():
            with self.subTest(name):
                samples = self.of_thread(name)
                self.assertGreater(len(samples), 20)
                right = sum(function in self.recording.names(sample.stack) for sample in samples)
                self.assertShare(0.97, right / len(samples), "in " + function)
                others = set(self.truth["threads"].values()) - {function}
                self.assertFalse(any(others & set(self.recording.names(sample.stack)) for sample in samples))

    @t.statistical("bounds a share of few samples, in threads that live for milliseconds", 0.001)
    def test_threads_that_came_and_went(self):
        churned = {thread["tid"]: thread for thread in self.recording.threads
                   if thread["name"].startswith("churn-") and thread["ended"]}
        samples = [sample for sample in self.samples() if sample.tid in churned]
        self.assertGreater(len({sample.tid for sample in samples}), 1)
        right = sum("burn_churn" in self.recording.names(sample.stack) for sample in samples)
        self.assertShare(0.5, right / len(samples), "in burn_churn, not on the way there")

    @t.statistical("a thread that waits wakes up at times, and may be sampled then", 0.0002)
    def test_idle_threads_cost_nothing(self):
        idle = [sample for i in range(10) for sample in self.of_thread("idle-%d" % i)]
        self.assertLessEqual(len(idle), len(self.recording.samples) * 0.01)


@t.for_each_interpreter(globals())
class TruthCalls(Stacks):
    """The hardest load: the thread is elsewhere by the time its interpreter is read.

    How many samples can be verified depends on how late that is, so nothing is asked
    of it. But the captured bytes name the function that ran, whatever memory says.
    """

    arguments = ("truth_calls.py",)
    seconds = 1.5
    hz = 1999

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_quality(self):
        self.check_quality(0)

    def lost(self):
        """Functions of whose C calls the captured bytes tell nothing yet: what memory shows later stands there."""
        return {"ff"} if self.version() >= (3, 15) else set()  # its loop keeps the bytecode elsewhere for str.join

    def native_witness(self, sample):
        """Which function must have called what is seen natively, None where nothing says so."""
        return truth_judge.Calls(self.recording, self.truth).witness(sample)

    def claims(self, sample):
        return [f.name for f in self.python(sample) if f.name in self.truth["functions"]]

    @t.statistical("one verified sample in a thousand may be wrong", 0.0002)
    def test_no_native_leaf_below_the_wrong_function(self):
        for verdict, may_be_wrong in (("exact", 0.001), ("verified", 0.01), ("approximate", 0.05)):
            right, wrong = collections.Counter(), collections.Counter()
            samples = self.samples(verdict)
            if verdict == "approximate":
                samples = samples[len(samples) // 2:]  # where the loop keeps its pointer is learnt first
            for sample in samples:
                witness, claimed = self.native_witness(sample), self.claims(sample)
                if witness is None or "json" in str([f.file for f in self.python(sample)]):
                    continue
                if verdict == "approximate" and witness in self.lost():
                    continue
                if claimed == [witness]:
                    right[witness] += 1
                elif claimed:
                    wrong[witness, tuple(claimed)] += 1
            n_wrong, n = sum(wrong.values()), sum(right.values()) + sum(wrong.values())
            with self.subTest(verdict):
                self.assertLessEqual(n_wrong, max(n * may_be_wrong, {"exact": 0, "verified": 2, "approximate": 5}[verdict]), "%d of %d: %s" % (n_wrong, n, wrong.most_common(3)))
        seen = {self.native_witness(sample) for sample in self.samples()} - {None}
        self.assertEqual(set(self.truth["callers"].values()), seen)

    @t.statistical("one verified sample in a thousand may be wrong", 0.0002)
    def test_python_leaves_below_the_right_function(self):
        owner = {"key_of_fe": "fe", self.name("JSONEncoder.iterencode"): "fd",
                 self.name("_make_iterencode.<locals>._iterencode_dict"): "fd",
                 self.name("_make_iterencode.<locals>._iterencode_list"): "fd"}
        wrong, n = collections.Counter(), 0
        for sample in self.samples("verified") + self.samples("exact"):
            names = [frame.name for frame in self.python(sample)]
            if names and names[-1] in owner:
                n += 1
                if owner[names[-1]] not in names:
                    wrong[names[-1], tuple(names)] += 1
        self.assertLessEqual(sum(wrong.values()), max(n * 0.01, 2), wrong.most_common(3))
        self.assertTrue(any(self.python(sample)[-1:] and self.python(sample)[-1].name in owner
                            for sample in self.samples()))

    @t.statistical("each function must have its share of random samples", 0.0002)
    def test_time_is_shared_as_the_work_is(self):
        """Every function is seen, whatever the verdict: dropping the hard ones would bias the profile."""
        seen = collections.Counter(name for sample in self.samples() for name in set(self.claims(sample)))
        # Of a stack that was left before it could be read, the innermost function is certain.
        seen["fd"] += sum("json" in (self.python(sample)[-1].file or "") and "fd" not in self.claims(sample)
                          for sample in self.samples() if self.python(sample))
        for name in set(self.truth["functions"]) - self.lost():
            self.assertGreater(seen[name], len(self.recording.samples) * 0.01, seen)


@t.for_each_interpreter(globals())
class Builtins(Stacks):
    """What C code is called from Python has the name that Python gives it."""

    arguments = ("demo.py",)
    seconds = 1.5
    hz = 999

    def builtins_below(self, function):
        """Names of builtins that a Python function called, and how often it was seen."""
        found, n = set(), 0
        for sample in self.samples():
            is_below = False
            n += any(frame.name == function for frame in self.python(sample))
            for frame in self.recording.path(sample.stack):
                if frame.kind == "python":
                    is_below = frame.name == function
                elif is_below and frame.role == "builtin":
                    found.add(frame.name)
        return found, n

    def test_builtins_are_named(self):
        n_judged = 0
        for function, builtin in (("compress", "compress"), ("rank", "sorted"), ("make_record", "join"),
                                  ("ring_sum", "sum")):
            with self.subTest(builtin):
                found, n = self.builtins_below(function)
                if n < 30:  # on a busy machine the program hardly got there
                    continue
                n_judged += 1
                self.assertTrue(any(t.same_name(name, builtin) for name in found), found)
        self.assertGreater(n_judged, 0)

    def test_c_libraries_below_python(self):
        for function, module in (("compress", "libz.so"), ("ask_questions", "libsqlite3.so")):
            with self.subTest(module):
                self.assertTrue(any(function in (f.name for f in self.python(s)) and
                                    module in (self.recording.path(s.stack)[-1].module or "")
                                    for s in self.samples()))

    def test_json_scanner(self):
        below = {frame.name for sample in self.samples() for frame in self.recording.path(sample.stack)
                 if "raw_decode" in " ".join(f.name for f in self.python(sample)) and frame.kind == "native"}
        self.assertTrue(any("scan" in name.lower() for name in below), sorted(below))

    def test_no_raw_addresses(self):
        raw = [name for name in self.recording.all_names() if name.startswith("0x")]
        self.assertEqual([], raw)

    def test_both_threads(self):
        samples = collections.Counter(sample.tid for sample in self.samples())
        named = {thread["tid"]: thread["name"] for thread in self.recording.threads}
        self.assertIn("archive", [named[tid] for tid in samples])
        self.assertEqual(2, len(samples))


if __name__ == "__main__":
    sys.exit(unittest.main())
