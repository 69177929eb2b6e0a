# SPDX-License-Identifier: MIT
"""Frames that are read inside the sampling interrupt: what is called exact is what was.

Unlike what is read afterwards, nothing here depends on how late that is: nearly all samples
must be exact, and of those none may contradict the truth.
"""
import collections
import contextlib
import glob
import os
import re
import resource
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

import by_work
import probing_test as t
import truth_judge
from probing_test import probing
from test_lifecycle import Commands
from test_stacks import Stacks
from test_truth import Truth

SOME_VERSIONS = ("2_7", "3_8", "3_11", "3_12", "3_13", "own_pids", "sid_3_15")
MAX_STEPS = 8000  # of the verifier: Linux 6.18 takes 5,352
MOSTLY = 0.7  # be exact; on a loaded machine and in a short recording, too


def by_labels(*labels):
    return [interpreter for interpreter in t.all_interpreters() if interpreter.label in labels]


def some_interpreters():
    return by_labels(*SOME_VERSIONS)


class Exact:
    """What is asked of each recording."""

    source = "bpf"
    hz = 999

    def test_says_what_it_is(self):
        self.assertEqual("bpf", self.recording.run["stack_source"])

    @t.statistical("bounds the share of exact samples; pages that are not in memory cost some", 0.0002)
    def test_most_are_exact(self):
        verdicts = self.recording.verdicts()
        with_python = sum(verdicts.values()) - verdicts["no_python"]
        self.assertGreater(with_python, 20, "too few samples to judge")
        self.assertShare(MOSTLY, verdicts["exact"] / with_python, "exact; %s" % verdicts)

    @t.statistical("some frames are read before and after the time that is sampled", 0.0002)
    def test_each_has_its_sample(self):
        """But for those that the kernel had no room for, which it counts: a loaded machine may come too late for them."""
        n, lost = len(self.recording.samples), self.recording.counters["lost"]
        self.assertLessEqual(self.recording.counters["python unpaired"], n * 0.01 + lost)

    def exact(self):
        return self.samples("exact")


class ExactTruth:
    """Programs that say what cannot have been; what changes faster than memory can be read is no harder."""

    source = "bpf"

    @classmethod
    def setUpClass(cls):
        t.need_bpf()
        super().setUpClass()

    def test_none_is_impossible(self):
        self.check_claims()


@t.for_each_interpreter(globals(), lambda: t.interpreters() + t.compiling_interpreters())
class ExactCallTree(Exact, ExactTruth, Truth):
    arguments = ("flutter.py", "--mode", "tree")
    make_judge = truth_judge.Tree
    hz = 1999


@t.for_each_interpreter(globals(), some_interpreters)
class CopiedCallTree(Exact, ExactTruth, Truth):
    """The same where memory cannot be read by page tables."""

    arguments = ("flutter.py", "--mode", "tree")
    make_judge = truth_judge.Tree
    hz = 1999

    @classmethod
    def setUpClass(cls):
        with unittest.mock.patch.dict(os.environ, PROBING_DIRECT_MAP="0"):
            super().setUpClass()


@t.for_each_interpreter(globals(), some_interpreters)
class ExactCalls(Exact, ExactTruth, Truth):
    """Calls of C from one function after the other: what runs natively names its only caller."""

    arguments = ("truth_calls.py",)
    make_judge = truth_judge.Calls
    hz = 1999


@t.for_each_interpreter(globals(), some_interpreters)
class ExactReused(ExactTruth, Truth):
    """Codes that are gone when the sample arrives are not told from memory: such samples are not exact."""

    arguments = ("flutter.py", "--mode", "reused")
    make_judge = truth_judge.Reused
    hz = 3999


@t.for_each_interpreter(globals(), some_interpreters)
class ExactTurns(Exact, ExactTruth, Truth):
    """Whoever of two calls a third for some microseconds is told, though nothing but the instant tells."""

    arguments = ("truth_turns.py", "--mode", "shared")
    make_judge = truth_judge.Turns
    hz = 1999


@t.for_each_interpreter(globals(), some_interpreters)
class ExactLines(Exact, Stacks):
    arguments = ("callbacks.py",)

    def test_chains_of_callers_and_their_lines(self):
        """Each exact stack between two marks is one that the interpreter itself lists, line by line."""
        expected = {tuple(map(tuple, chain)) for chain in self.truth["stacks"]}
        first, last = self.name("Truth.round"), self.name("Truth.burn")
        found = collections.Counter()
        for sample in self.exact():
            chain = [(frame.name, frame.line) for frame in self.python(sample)]
            names = [name for name, _ in chain]
            if first in names and last in names:
                found[tuple(chain[names.index(first) + 1:names.index(last)])] += 1
        self.assertGreater(sum(found.values()), 20, "too few samples in leaves")
        self.assertEqual(set(), set(found) - expected)


def depth(sample, recording, function):
    return sum(frame.name == function for frame in recording.python(sample.stack))


class AllFrames(Exact):
    seconds = 1

    @t.statistical("some samples fall on the way down to the whole depth", 0.0002)
    def test_all_frames(self):
        function, n = self.truth["function"], self.truth["frames"]
        depths = collections.Counter(depth(sample, self.recording, function) for sample in self.exact())
        self.assertNearlyAll(depths[n], sum(depths.values()), str(depths))


@t.for_each_interpreter(globals(), lambda: by_labels("2_7", "3_8"))
class DeepInCalls(AllFrames, Stacks):
    """Each frame is a call in C: a stack that was not captured as a whole is not exact."""

    arguments = ("deep.py", "--depth", "30")


@t.for_each_interpreter(globals(), lambda: by_labels("3_11", "3_13", "sid_3_15"))
class DeepInOneCall(AllFrames, Stacks):
    arguments = ("deep.py", "--depth", "400")


@t.for_each_interpreter(globals(), lambda: by_labels("3_8", "3_13"))
class TooDeep(Stacks):
    """Deeper than is read in an interrupt: the rest is read afterwards, and no such stack is exact."""

    arguments = ("deep.py", "--depth", "2000")
    source = "bpf"
    seconds = 1
    hz = 999

    def test_whole_but_not_exact(self):
        function, n = self.truth["function"], self.truth["frames"]
        deep = [sample for sample in self.samples() if depth(sample, self.recording, function) == n]
        self.assertGreater(len(deep), 20)
        self.assertNotIn("exact", {sample.verdict for sample in deep})


class Followed(t.Case):
    """Children by fork, by exec and by spawn, in a command that is launched."""

    @classmethod
    def setUpClass(cls):
        t.need_bpf()
        with t.scratch():
            command = t.fixture_command("forks.py", "--seconds", 4)
            probing("record", "--source", "bpf", "-F", 1999, "-o", "out.db", "--", *command, check=t.OK)
            cls.recording = t.Recording("out.db")

    @t.statistical("bounds the share of exact samples in children that are just beginning", 0.0005)
    def test_each_is_read_inside(self):
        for function in ("child_of_fork", "exec_of_python", "spawned_worker", "parent_work"):
            with self.subTest(function):
                verdicts = collections.Counter(s.verdict for s in self.recording.samples
                                               if s.stack and function in self.recording.names(s.stack))
                self.assertShare(MOSTLY, verdicts["exact"] / max(sum(verdicts.values()), 1), str(verdicts))


class Threads(t.Case):
    """Threads that begin while the recording runs."""

    @classmethod
    def setUpClass(cls):
        t.need_bpf()
        cls.recording, cls.truth = by_work.record_fixture("threads.py", "--busy", "1", "--idle", "20", "--churn",
                                                          hz=1999, source="bpf")

    @t.statistical("bounds a share of few samples, in threads that live for milliseconds", 0.001)
    def test_each_is_found_at_once(self):
        threads = {thread["tid"] for thread in self.recording.threads}
        verdicts = collections.Counter(s.verdict for s in self.recording.samples
                                       if s.stack and "burn_churn" in self.recording.names(s.stack))
        self.assertGreater(len(threads), 2)
        self.assertGreater(sum(verdicts.values()), 8)
        self.assertShare(MOSTLY, verdicts["exact"] / sum(verdicts.values()), str(verdicts))


def waits_of(pid):
    """How often a process has gone to sleep."""
    with open("/proc/%d/status" % pid) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))


def newest_sample(path):
    with contextlib.closing(t.connect(path)) as db:
        return db.execute("SELECT max(timestamp) FROM sample").fetchone()[0]


class SeldomWoken(t.Case):
    """The sampled thread pays for each time the recorder is woken: it is not for stacks that are captured whole."""

    @t.statistical("bounds wake-ups by the number of samples", 0.0002)
    def test_fewer_times_than_samples(self):
        t.need_bpf()
        with t.scratch(), t.fixture("threads.py", "--busy", "1") as started, \
                t.recorder("--source", "bpf", "--pid", started.pid, "-F", "999", "-q", "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            before, since = waits_of(process.pid), time.time()
            t.wait_for_cpu(1.5, started.pid)
            waits, elapsed = waits_of(process.pid) - before, time.time() - since
            self.assertEqual(t.OK, t.stop_politely(process)[0])
            samples = sum(since < sample.timestamp < since + elapsed for sample in t.Recording("out.db").samples)
        self.assertGreater(samples, 100, "too few to judge")
        # Besides, some ten times a second, whatever the thread does.
        self.assertLess(waits, samples / 4, "in %.1f s" % elapsed)


class AlwaysOn(t.Case):
    """With limits and few samples a second, all waits for the next look, seconds later, but what cannot wait."""

    hz = 19

    def record(self, target, *more):
        return t.recorder("--source", "bpf", "--pid", target.pid, "-F", self.hz, "--retention", "1h", "-q", "-o", "out.db",
                          *more)

    def await_use(self, target, seconds):
        """Until so much more CPU time was used: on a loaded machine that takes its time."""
        end = target.cpu_s() + seconds
        t.wait_until(lambda: target.cpu_s() >= end, 240, "the target's running")

    def await_slowness(self):
        """As long as there was few to do."""
        time.sleep(3.5)

    @t.statistical("bounds wake-ups by the number of samples, of which some fall in the kernel", 0.0005)
    def test_woken_for_a_part_of_the_samples(self):
        t.need_bpf()
        with t.fixture("threads.py", "--busy", "1") as started, self.record(started) as process:
            t.wait_for_samples("out.db")
            self.await_use(started, 1)
            self.await_slowness()
            waits, since, used = waits_of(process.pid), time.time(), started.cpu_s()
            self.await_use(started, 1.5)
            used = started.cpu_s() - used
            waits, elapsed = waits_of(process.pid) - waits, time.time() - since
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        # Some samples are of the kernel's code, and a signal or two may come.
        self.assertLess(waits, used * self.hz / 3 + elapsed, "%d samples in %d s" % (used * self.hz, elapsed))
        n = sum(since < sample.timestamp < since + elapsed for sample in t.Recording("out.db").samples)
        self.assertGreater(n, 0.8 * used * self.hz)

    def test_what_is_asked_for_is_as_of_now(self):
        t.need_bpf()
        with t.fixture("threads.py", "--busy", "1") as started, self.record(started, "--control", "control,reply") as process:
            commands = Commands()
            t.wait_for_samples("out.db")
            for ask in ("flush", None, "flush"):
                self.await_slowness()
                since = time.time()
                self.await_use(started, 0.3)
                if ask:
                    self.assertEqual("ok flush", commands.ask(ask))
                else:
                    process.send_signal(signal.SIGUSR1)
                    t.wait_until(lambda: newest_sample("out.db") > since, 1.5, "what the signal asks for, before the next look")
                self.assertGreater(newest_sample("out.db"), since)
            commands.close()
            self.assertEqual(t.OK, t.stop_politely(process)[0])

    @t.statistical("bounds a share of some 50 samples", 0.0005)
    def test_functions_that_are_gone_by_then(self):
        t.need_bpf()
        with t.fixture("passing.py") as started, self.record(started) as process:
            t.wait_for_samples("out.db")
            self.await_slowness()
            since = time.time()
            self.await_use(started, 3)
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        result = t.Recording("out.db")
        samples = [sample for sample in result.samples if sample.timestamp > since and sample.stack]
        named = [sample for sample in samples if any(name.startswith("passing_") for name in result.names(sample.stack))]
        self.assertGreater(len(samples), 20, "too few to judge")
        self.assertShare(MOSTLY, len(named) / len(samples), "have the name of what ran")
        self.assertShare(MOSTLY, sum(s.verdict == "exact" for s in named) / len(named), "exact")


class Crowd(t.Case):
    """More threads than there may be events: all processors are sampled, and what is foreign left out."""

    @classmethod
    def setUpClass(cls):
        t.need_bpf()
        limit = 64 + 6 * os.cpu_count()
        with t.scratch(), t.fixture("threads.py", "--busy", "2", "--idle", "150") as started:
            cls.recording, cls.pid = by_work.record(
                started, 1, 999, "out.db", "--source", "bpf",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))), started.pid

    def test_nothing_foreign(self):
        self.assertEqual({self.pid}, {process["pid"] for process in self.recording.processes})
        self.assertEqual({self.pid}, {sample.pid for sample in self.recording.samples})

    @t.statistical("bounds the share of exact samples", 0.0002)
    def test_most_are_exact(self):
        verdicts = self.recording.verdicts()
        self.assertGreater(sum(verdicts.values()), 20, "too few samples to judge")
        self.assertShare(MOSTLY, verdicts["exact"] / sum(verdicts.values()), str(verdicts))


class Refused(t.Case):
    """Without the privilege: said in one sentence where it was asked for, done without where it was not."""

    def check(self, missing, *prefix):
        with t.scratch():
            done = subprocess.run(list(prefix) + [t.BINARY, "record", "--source", "bpf", "-o", "out.db", "--", "true"],
                                  text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual((t.NOT_PERMITTED, 1), (done.returncode, done.stderr.count("\n")), done.stderr)
            self.assertRegex(done.stderr, "^probing: --source bpf needs (%s)" % missing)
            self.assertFalse(os.path.exists("out.db"))
            done = subprocess.run(list(prefix) + [t.BINARY, "record", "-o", "out.db", "--", "true"], text=True,
                                  capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual(t.OK, done.returncode, done.stderr)
            self.assertRegex(done.stderr.splitlines()[0], r"^stack source: wakeup \(.*; bpf needs (%s)" % missing)
            self.assertEqual("wakeup", t.Recording("out.db").run["stack_source"])

    def test_ordinary_user(self):
        t.need_perf()
        if t.bpf_refusal() != "needs root, or CAP_BPF and CAP_PERFMON":
            self.skipTest("this user may")
        self.check("root, or CAP_BPF and CAP_PERFMON|a build with clang and libbpf")

    def test_root_without_the_capabilities(self):
        t.need_bpf()
        t.need_root()
        with open("/proc/sys/kernel/perf_event_paranoid") as level:
            if int(level.read()) > 2:
                self.skipTest("here perf events themselves take CAP_SYS_ADMIN")
        self.check("root, or CAP_BPF and CAP_PERFMON", t.need_program("setpriv"), "--bounding-set=-sys_admin,-cap_39")

    def test_inside_of_a_container(self):
        t.need_bpf()
        refusal = t.namespaces_refusal()
        if refusal:
            self.skipTest(refusal)
        self.check("the initial PID namespace", *t.UNSHARE, "--mount-proc")


def verified_steps(pid):
    """Instructions that the kernel checked, of each BPF program of a process. Source: bpf_prog_show_fdinfo(), Linux 5.16."""
    steps = []
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with open(path) as info:
            fields = dict(line.split(":\t") for line in info if ":\t" in line)
        if "prog_type" in fields:
            steps.append(int(fields.get("verified_insns", 0)))
    return steps


class Verified(t.Case):
    """The kernel checks each way through the programs before a recording begins, which takes most of its start."""

    def test_few_steps(self):
        t.need_root()
        t.need_bpf()
        with t.scratch(), t.fixture("demo.py") as target, \
                t.recorder("--source", "bpf", "--pid", target.pid, "-o", "out.db") as process:
            while "Ctrl-C ends it" not in (line := process.stderr.readline()):
                self.assertTrue(line, "the recorder ended")
            steps = verified_steps(process.pid)
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        if steps == [0] * len(steps):
            self.skipTest("this kernel does not count what it verifies")
        self.assertLess(max(steps), MAX_STEPS)


class Said(t.Case):
    def test_first_line(self):
        t.need_bpf()
        with t.scratch():
            done = probing("record", "--", "true", check=t.OK)
        self.assertEqual("stack source: bpf (exact: frames are read inside the sampling interrupt)",
                         done.stderr.splitlines()[0])

    def test_sources_that_there_are(self):
        done = probing("record", "--source", "nonsense", "--", "true", check=t.USAGE)
        self.assertIsNotNone(re.search("must be auto, bpf, wakeup, poll or agent, not nonsense", done.stderr), done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
