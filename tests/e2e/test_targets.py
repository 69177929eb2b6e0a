# SPDX-License-Identifier: MIT
"""Whom probing record records, and which of the samples; and which part of a recording is shown."""
import collections
import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

import by_work
import probing_test as t
from probing_test import fixture, probing

HZ = 499
WORKS = ("parent_work", "child_work", "grandchild_work", "thread_work", "late_work")


def memory_refusal():
    """Why an ordinary user may not read the memory of processes of that user's own; None: may."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as scope:
            value = int(scope.read())
    except OSError:
        return None
    return "kernel.yama.ptrace_scope is %d" % value if value and os.geteuid() != 0 else None


def need_memory():
    if memory_refusal():
        raise unittest.SkipTest(memory_refusal())


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)


# Each way that stacks are read, and what it needs; the cases below are done with each.

class WithBpf:
    source = "bpf"
    need = staticmethod(t.need_bpf)


class WithRead:
    source = "wakeup"

    @staticmethod
    def need():
        t.need_perf()
        need_memory()


class WithPoll:
    source = "poll"
    need = staticmethod(need_memory)


def works_of(path):
    """Of a recording, also one that is being written: which of the works above are in which process."""
    found = collections.defaultdict(set)
    try:
        recording = t.Recording(path)
    except (sqlite3.Error, KeyError):
        return found
    for sample in recording.samples:
        for frame in recording.python(sample.stack) if sample.stack else []:
            if frame.name in WORKS:
                found[sample.pid].add(frame.name)
    return found


def all_works(path):
    return set().union(*works_of(path).values())


def sampled_pids(path):
    """Of a recording, also one that is being written."""
    try:
        with contextlib.closing(t.connect(path)) as db:
            return {pid for (pid,) in db.execute("SELECT DISTINCT pid FROM sample")}
    except sqlite3.Error:
        return set()


class Family:
    """Mixed with the source."""

    @classmethod
    def setUpClass(cls):
        cls.need()

    @contextlib.contextmanager
    def recorded(self, *options):
        """A family that is recorded by these options, with whoever records it."""
        with fixture("family.py") as family:
            pids = family.truth["pids"]
            options = [",".join(str(pids.get(word, word)) for word in option.split(",")) for option in options]
            with t.recorder("-F", HZ, "--no-symbols", "--source", self.source, "-o", "out.db", *options) as process:
                yield family, pids, process

    def until(self, *works):
        t.wait_until(lambda: set(works) <= all_works("out.db"), 30, "%s in the recording" % (works,))

    def test_children_from_now_on(self):
        with self.recorded("--pid", "parent_work") as (family, pids, process):
            self.until("parent_work")
            os.kill(family.pid, signal.SIGUSR1)
            self.until("thread_work", "late_work")
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        self.assertEqual({"parent_work", "thread_work", "late_work"}, all_works("out.db"))

    def test_children_that_are_there(self):
        with self.recorded("--subprocesses", "--pid", "parent_work") as (family, pids, process):
            self.until("parent_work", "child_work", "grandchild_work")
            os.kill(family.pid, signal.SIGUSR1)
            self.until("late_work")
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        found = works_of("out.db")
        for work, pid in pids.items():
            self.assertIn(work, found[pid])
        self.assertLessEqual(set(pids.values()), {row["pid"] for row in t.Recording("out.db").processes})

    def test_no_children_but_all_threads(self):
        with self.recorded("--no-subprocesses", "--pid", "parent_work") as (family, pids, process):
            self.until("parent_work")
            os.kill(family.pid, signal.SIGUSR1)
            self.until("thread_work")
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        recording = t.Recording("out.db")
        self.assertEqual({"parent_work", "thread_work"}, all_works("out.db"))
        self.assertEqual({family.pid}, {sample.pid for sample in recording.samples})
        self.assertEqual({family.pid}, {row["pid"] for row in recording.processes})

    def test_several_until_the_last_has_ended(self):
        """One of two is no descendant of the other's; each has its threads; the end of one is none."""
        with self.recorded("--pid", "child_work,grandchild_work", "-p", "child_work") as (family, pids, process):
            self.until("child_work", "grandchild_work")
            os.kill(pids["grandchild_work"], signal.SIGKILL)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.5)
            n_before = len(t.Recording("out.db").samples)
            t.wait_until(lambda: len(t.Recording("out.db").samples) > n_before + 10, 30, "samples of the other")
            os.kill(pids["child_work"], signal.SIGKILL)
            self.assertEqual(t.OK, process.wait(20))
            said = process.stderr.read()
        found = works_of("out.db")
        self.assertEqual({pids[work]: {work} for work in ("child_work", "grandchild_work")}, dict(found))
        self.assertRegex(said, r"recording 2 processes: %d \(.*\), %d" % (pids["child_work"], pids["grandchild_work"]))
        self.assertEqual(1, t.Recording("out.db").run["clean"])


class FamilyByBpf(WithBpf, Family, Scratch):
    pass


class FamilyByRead(WithRead, Family, Scratch):
    pass


class FamilyByPoll(WithPoll, Family, Scratch):
    pass


class Chosen(Scratch):
    """By name and user."""

    def setUp(self):
        super().setUp()
        need_memory()
        self.name = "fam%d" % os.getpid()

    def check_recorded(self, wanted, *options):
        """Just these processes have samples; all of them use CPU time."""
        with t.recorder("-F", HZ, "--no-symbols", "-o", "out.db", *options) as process:
            t.wait_until(lambda: wanted <= sampled_pids("out.db"), 40, "samples of %s" % wanted)
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        self.assertEqual(wanted, sampled_pids("out.db"))

    def test_by_name(self):
        with fixture("family.py", "--name", self.name) as family:
            pids = family.truth["pids"]
            for name, works in ((self.name, ["parent_work"]),
                                ("nobody,%s-[cd]" % self.name, ["child_work", "grandchild_work"])):
                with self.subTest(name):
                    self.check_recorded({pids[work] for work in works}, "--no-subprocesses", "--comm", name)

    def test_by_the_name_of_the_executable(self):
        shutil.copy(os.path.join(t.BUILT_FIXTURES, "native_only"), self.name)
        os.symlink(self.name, "another")  # which is what it is called then
        with t.target([os.path.abspath("another"), "threads", str(t.LONGEST_TARGET_S)]) as other:
            self.check_recorded({other.pid}, "--comm", self.name)

    def test_by_user_and_name(self):
        with fixture("family.py", "--name", self.name) as family:
            self.check_recorded({family.truth["pids"]["parent_work"]}, "--user", os.geteuid(), "--comm", self.name)
            done = probing("record", "--user", 54321, "--comm", self.name, check=t.NO_INPUT)
            self.assertIn("no process called %s of the user 54321" % self.name, done.stderr)

    def test_a_command_without_its_children(self):
        t.need_perf()
        probing("record", "--no-subprocesses", "--no-symbols", "-F", HZ, "-o", "out.db", "--",
                *t.fixture_command("family.py", "--seconds", 4), check=t.OK)
        self.assertEqual({"parent_work"}, all_works("out.db"))
        self.assertEqual(1, len(t.Recording("out.db").processes))

    def test_who_is_not_there_is_said(self):
        with fixture("demo.py") as target:
            done = probing("record", "--pid", target.pid, "--pid", 4194303, "-d", 0.5, "-o", "out.db", check=t.OK)
        self.assertIn("no process 4194303: recording the others", done.stderr)

    def test_who_may_not_be_looked_at_is_said(self):
        if os.geteuid() == 0:
            self.skipTest("root may look at all")
        with fixture("demo.py") as target:
            done = probing("record", "--pid", "%d,1" % target.pid, "-d", 1, "-o", "out.db", check=t.OK)
            self.assertEqual({target.pid}, {row["pid"] for row in t.Recording("out.db").processes})
        self.assertRegex(done.stderr, r"not recorded \(no permission\): 1 \(.+: run as root")
        done = probing("record", "--user", "root", "-d", 1, "-o", "none.db", check=t.NOT_PERMITTED)
        self.assertRegex(done.stderr, r"^probing: no permission to record any of the processes: \d+ \(.+: run as root")
        self.assertFalse(os.path.exists("none.db"))


class Mistakes(Scratch, t.Case):
    def setUp(self):
        Scratch.setUp(self)

    def fails(self, status, *arguments):
        done = probing("record", "-o", "out.db", *arguments, check=status)
        self.assertFalse(os.path.exists("out.db"))
        return done.stderr

    def test_nobody(self):
        self.assertSentence(self.fails(t.NO_INPUT, "--comm", "no-such-name,nor-this"),
                            "no process called no-such-name,nor-this")
        self.assertSentence(self.fails(t.NO_INPUT, "--user", "no-such-user"), "no user no-such-user")
        self.assertSentence(self.fails(t.NO_INPUT, "--pid", "4194303,4194302"), "no process 4194303, 4194302")
        self.assertSentence(self.fails(t.NO_INPUT, "--pid", "4194303"), "no process 4194303")

    def test_wrong_options(self):
        for arguments, said in (((), "no target"),
                                (("--pid", "1x"), "process id"),
                                (("--pid", ","), "process id"),
                                (("--pid", "1,0"), "process id"),
                                (("--comm", ","), "--comm needs a name"),
                                (("--comm", "a", "--", "true"), "not both"),
                                (("--idle", "--source", "wakeup", "--pid", "1"), "--idle takes --source poll")):
            with self.subTest(arguments):
                self.assertIn(said, self.fails(t.USAGE, *arguments))


# ---- Which samples ----

def functions_of(recording, sample):
    return {frame.name for frame in recording.python(sample.stack)} if sample.stack else set()


def held(path):
    """By which of fixtures/gil.py's functions a sample is in: its gil and gc, each with its samples."""
    result = collections.defaultdict(collections.Counter)
    recording = t.Recording(path)
    with contextlib.closing(t.connect(path, "rw")) as db:
        for stack, gil, gc in db.execute("SELECT stack, gil, gc FROM sample WHERE stack IS NOT NULL"):
            frames = recording.path(stack)
            for name in {"holding", "hashing", "collecting"} & {f.name for f in frames if f.kind == "python"}:
                result[name][gil, gc] += 1
    return result


GIL, GC = 0, 1
ENOUGH = 25


def known(counts, which):
    return sum(n for what, n in counts.items() if what[which] is not None)


class Gil:
    """Mixed with the source. fixtures/gil.py knows which of its functions holds the GIL."""

    interpreter = t.interpreters()[0]

    @classmethod
    def setUpClass(cls):
        cls.need()
        t.need_interpreter(cls.interpreter)
        folder = t.scratch()
        folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with fixture("gil.py", python=cls.interpreter.path, place=cls.interpreter.place) as target:
            with t.recorder("--pid", target.pid, "-F", HZ, "--no-symbols", "-o", "gil.db", "--source", cls.source) as process:
                t.wait_until(cls.has_enough, 40, "samples of which it is known")
                _, _, cls.said = t.stop_politely(process)
            by_work.record(target, 1, HZ, "held.db", "--no-symbols", "--gil", "--source", cls.source)
        cls.held = held("gil.db")

    def setUp(self):
        pass

    @staticmethod
    def has_enough():
        time.sleep(0.3)  # it takes the time of those who are looked at
        if not t.has_samples("gil.db"):
            return False
        try:
            counts = held("gil.db")
        except KeyError:  # it was written between two questions
            return False
        return len(counts) == 3 and all(known(samples, which) >= ENOUGH for samples in counts.values()
                                        for which in (GIL, GC))

    def share(self, name, which):
        """Of the samples in a function of which it is known: where it is so."""
        counts = self.held[name]
        return sum(n for what, n in counts.items() if what[which]) / known(counts, which)

    @t.statistical("threads take turns between a sample and its reading", 0.0005)
    def test_who_holds_it(self):
        """Of polled samples memory is as of a little later: threads take turns in between."""
        least = 0.6 if self.source == "poll" else 0.85
        self.assertShare(least, self.share("holding", GIL), self.held)
        self.assertShare(0.85, 1 - self.share("hashing", GIL), self.held)

    @t.statistical("threads take turns between a sample and its reading", 0.0005)
    def test_who_collects(self):
        least = 0.6 if self.source == "poll" else 0.85
        self.assertShare(least, self.share("collecting", GC), self.held)
        self.assertShare(0.9, 1 - self.share("hashing", GC), self.held)
        self.assertShare(0.9, 1 - self.share("holding", GC), self.held)

    @t.statistical("bounds a share of random samples", 0.0002)
    def test_most_is_known(self):
        """Read afterwards it is known of a thread that stood still for so long, and of one in bytecode."""
        for name, counts in self.held.items():
            if self.source != "wakeup":
                self.assertShare(0.8, known(counts, GIL) / sum(counts.values()), (name, counts))

    def test_only_who_holds_it(self):
        with contextlib.closing(t.connect("held.db", "rw")) as db:
            self.assertEqual([(1,)], db.execute("SELECT DISTINCT gil FROM sample").fetchall())
            left_out, = db.execute("SELECT value FROM counter WHERE name = 'left out'").fetchone()
        self.assertGreater(left_out, 0)

    def test_shares_are_told(self):
        pattern = r"([\d.]+) % with the GIL, ([\d.]+) % collecting garbage"
        told = re.search(pattern, self.said)
        with contextlib.closing(t.connect("gil.db", "rw")) as db:
            shares = db.execute("SELECT 100.0 * sum(weight * (gil IS 1)) / sum(weight),"
                                " 100.0 * sum(weight * (gc IS 1)) / sum(weight) FROM sample").fetchone()
        for number, share in zip(told.groups(), shares):
            self.assertAlmostEqual(float(number), share, delta=0.1)
        self.assertEqual(told.group(), re.search(pattern, probing("report", "gil.db", check=t.OK).stdout).group())


class GilByBpf(WithBpf, Gil, t.Case):
    pass


# One of each way to keep it, beside that one's.
@t.for_each_interpreter(globals(), lambda: [i for i in t.interpreters()
                                            if i.label in ("3_6", "3_8", "3_12", "3_13", "sid_3_15")])
class GilOfOthers(WithBpf, Gil, t.Case):
    test_only_who_holds_it = test_shares_are_told = test_most_is_known = None


class GilByRead(WithRead, Gil, t.Case):
    pass


class GilByPoll(WithPoll, Gil, t.Case):
    pass


@contextlib.contextmanager
def idle_program():
    """One that waits: it has used its CPU time by now."""
    with subprocess.Popen(["sleep", "60"]) as idle:
        try:
            t.wait_until(lambda: t.state_of(idle.pid) == "S", 30, "the program to sleep")
            yield idle
        finally:
            idle.kill()


class Wanted(Scratch):
    """Samples that are left out as they come."""

    def setUp(self):
        super().setUp()
        t.need_perf()
        need_memory()

    def recording(self, target, *options):
        return by_work.record(target, 0.7, HZ, "out.db", "--no-symbols", *options)

    def test_threads(self):
        with fixture("threads.py", "--busy", 3) as target:
            for wanted, functions in (("busy-1", {"burn_green"}), ("busy-[02]", {"burn_red", "burn_blue"})):
                with self.subTest(wanted):
                    recording = self.recording(target, "--threads", wanted)
                    found = set().union(*(functions_of(recording, sample) for sample in recording.samples))
                    self.assertEqual(functions, found & {"burn_red", "burn_green", "burn_blue"})
                    self.assertGreater(recording.counters["left out"], 0)
            tid = recording.samples[0].tid
            self.assertEqual({tid}, {sample.tid for sample in self.recording(target, "--threads", tid).samples})

    def test_nothing_is_left(self):
        """An empty recording is no sign that nothing ran."""
        with fixture("demo.py") as target:
            said = by_work.record(target, 0.5, 499, "probing.db", "--function", "nobody").said
        for text in (said, probing("report", check=t.BAD_DATA).stderr):
            self.assertRegex(text, r"no samples: --threads, --function or --gil dropped all")

    def test_a_recorder_that_was_killed_at_once(self):
        """Of a program that uses no CPU time, so that there is nothing to write, however late it is killed."""
        with idle_program() as idle, t.recorder("--pid", idle.pid, "-F", 1) as recorder:
            t.await_recording(recorder)
            recorder.kill()
            recorder.wait()
        self.assertRegex(probing("report", check=t.BAD_DATA).stderr, "no samples: nothing has been written yet, or its recorder ended")

    def test_idle_programs(self):
        with idle_program() as idle:
            said = probing("record", "--pid", idle.pid, "-d", 0.2, check=t.OK).stderr
        self.assertRegex(said, "no samples: .* used no CPU time.* --mode wall")

    def test_names_that_only_python_knows(self):
        with fixture("gil.py") as target:
            recording = self.recording(target, "--threads", "hol*")
        self.assertAllIn("holding", recording)
        self.assertFalse(recording.all_names() & {"hashing", "collecting"})

    def test_function(self):
        with fixture("threads.py", "--busy", 2) as target:
            recording = self.recording(target, "--function", "burn_gr*")
        self.assertAllIn("burn_green", recording)
        self.assertGreater(recording.counters["left out"], 0)

    def test_python_frames_only(self):
        with fixture("demo.py") as target:
            recording = self.recording(target, "--no-native")
        kinds = {frame.kind for sample in recording.samples if sample.stack for frame in recording.path(sample.stack)}
        # On a loaded machine, CPU time may be left without a sample. Its one frame says so, and is of no language.
        self.assertEqual({"python"}, kinds - {"unsampled"})

    def assertAllIn(self, name, recording):
        """An approximate stack has only those frames that its captured bytes prove."""
        there = [sample for sample in recording.samples if name in functions_of(recording, sample)]
        missing = [(sample, recording.names(sample.stack)) for sample in recording.samples if sample not in there]
        self.assertGreater(len(there), len(missing))
        self.assertEqual([], [one for one in missing if one[0].verdict != "approximate"])


class Idle(Scratch):
    @t.statistical("polls divide time by chance", 0.0002)
    def test_threads_that_wait(self):
        need_memory()
        with fixture("threads.py", "--busy", 1, "--idle", 1) as target:
            done = probing("record", "--pid", target.pid, "-d", 2, "-F", 99, "-o", "out.db", "--idle", check=t.OK)
        recording = t.Recording("out.db")
        weights = collections.Counter()
        for sample in recording.samples:
            for name in {"burn_red", "wait_for"} & functions_of(recording, sample):
                weights[name] += sample.weight / 1e9
        self.assertEqual(("poll", "wall"), (recording.run["stack_source"], recording.run["mode"]))
        self.assertIn("s of threads' time", done.stderr)
        # Of the same time, whichever of them runs; what the first and the last look take is missing.
        for name in ("burn_red", "wait_for"):
            self.assertGreater(weights[name], 1, weights)
            self.assertLess(weights[name], 10, weights)
        self.assertAlmostEqual(weights["burn_red"], weights["wait_for"], delta=0.5)


# ---- Which part is shown ----

def read_folded(text):
    return {tuple(line.rsplit(" ", 1)[0].split(";")): int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}


class Views(t.Case):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        need_memory()
        folder = t.scratch()
        folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with fixture("threads.py", "--busy", 2) as one, fixture("gil.py") as other:
            by_work.record([one, other], 2, HZ, "probing.db")
            cls.pids = one.pid, other.pid

    def setUp(self):
        pass

    def folded(self, *options):
        return read_folded(probing("flamegraph", "--format", "folded", "--counts", "-o", "-", *options, check=t.OK).stdout)

    def sums(self, *conditions):
        with contextlib.closing(t.connect("probing.db", "rw")) as db:
            return db.execute("SELECT count(*) FROM (SELECT * FROM sample WHERE stack IS NULL OR stack NOT IN "
                              "(SELECT stack FROM stack JOIN named_frame USING (frame) WHERE kind = 'unsampled')) " +
                              " ".join(conditions)).fetchone()[0]

    def test_everything(self):
        self.assertEqual(self.sums(), sum(self.folded().values()))

    def test_processes(self):
        for pid in self.pids:
            self.assertEqual(self.sums("WHERE pid = %d" % pid), sum(self.folded("--pid", pid).values()))
        self.assertEqual(self.sums(), sum(self.folded("--pid", "%d,%d" % self.pids).values()))

    def test_threads(self):
        stacks = self.folded("--threads=busy-*", "--by-thread")
        self.assertEqual({"busy-0", "busy-1"}, {stack[0].split()[0] for stack in stacks})
        self.assertEqual(self.sums("JOIN thread USING (pid, tid) WHERE name LIKE 'busy-%'"), sum(stacks.values()))
        with contextlib.closing(t.connect("probing.db", "rw")) as db:
            tid, = db.execute("SELECT tid FROM thread WHERE name = 'busy-1'").fetchone()
        self.assertEqual(self.folded("--threads=busy-1"), self.folded("--threads=%d" % tid))

    def test_split_by_either_word(self):
        self.assertEqual(self.folded("--by-thread"), self.folded("--threads"))

    def test_a_function_as_the_start(self):
        whole, part = self.folded(), self.folded("--function", "burn_red")
        self.assertEqual({"burn_red (threads.py)"}, {stack[0] for stack in part})
        expected = collections.Counter()
        for stack, n in whole.items():
            names = [name.split(" ")[0] for name in stack]
            if "burn_red" in names:
                expected[stack[names.index("burn_red"):]] += n
        self.assertEqual(dict(expected), part)

    def test_stacks_through_a_function(self):
        whole, part = self.folded(), self.folded("--focus", "burn_*", "--pid", self.pids[0])
        expected = {stack[1:]: n for stack, n in whole.items()
                    if any(name.startswith("burn_") for name in stack) and str(self.pids[0]) in stack[0]}
        self.assertEqual(expected, part)

    def test_who_held_the_gil(self):
        self.assertEqual(self.sums("WHERE gil = 1"), sum(self.folded("--gil").values()))
        with contextlib.closing(t.connect("probing.db", "rw")) as db:
            n, = db.execute("SELECT count(*) FROM sample WHERE gil IS NOT 1").fetchone()
        self.assertGreater(n, 0)

    def test_python_frames_alone(self):
        whole, part = self.folded(), self.folded("--no-native")
        self.assertEqual(sum(whole.values()), sum(part.values()))
        for stack in part:
            self.assertTrue(all(re.search(r" \(.*\)$|^\[no Python\]$", name) for name in stack), stack)
        self.assertEqual(whole, self.folded("--no-native", "--native"))

    def test_everything_of_the_interpreter(self):
        self.assertEqual(self.folded("--interpreter-frames"), self.folded("--native-all"))
        self.assertNotEqual(self.folded(), self.folded("--native-all"))

    def test_reports(self):
        shown = probing("report", "--function", "burn_red", "-n", 1000, check=t.OK).stdout
        self.assertRegex(shown, r" 100\.0 .* burn_red ")
        self.assertNotRegex(shown, "burn_green|holding|Thread.run")
        self.assertNotIn("with the GIL", shown)  # that is of the whole recording
        self.assertIn("with the GIL", probing("report", check=t.OK).stdout)
        shown = probing("report", "--no-native", "-n", 1000, check=t.OK).stdout
        self.assertNotRegex(shown, r" native | builtin ")

    def test_nothing_and_mistakes(self):
        for verb in ("report", "flamegraph"):
            for options in (("--function", "no_such"), ("--pid", "1"), ("--threads=nobody",)):
                with self.subTest(verb=verb, options=options):
                    done = probing(verb, *options, check=t.NO_INPUT)
                    self.assertSentence(done.stderr, "no samples in probing.db match the filter")
            self.assertIn("--pid needs", probing(verb, "--pid", "x", check=t.USAGE).stderr)
        self.assertIn("--threads needs a list", probing("report", "--threads", check=t.USAGE).stderr)
        self.assertFalse(os.path.exists("flamegraph.svg"))

    def test_files_from_before(self):
        shutil.copy("probing.db", "old.db")
        with contextlib.closing(t.connect("old.db", "rw")) as db:
            t.drop_views(db)
            db.executescript("DELETE FROM counter WHERE name LIKE 'g%'; PRAGMA user_version = 1;"
                             "CREATE TABLE rows AS SELECT timestamp, pid, tid, cpu, weight, verdict, stack_end, stack"
                             " FROM sample; ALTER TABLE rows RENAME TO sample; DROP TABLE sample_block;")
        self.assertNotIn("with the GIL", probing("report", "old.db", check=t.OK).stdout)
        self.assertSentence(probing("report", "old.db", "--gil", check=t.BAD_DATA).stderr, "older probing")


if __name__ == "__main__":
    unittest.main()
