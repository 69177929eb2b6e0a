# SPDX-License-Identifier: MIT
"""probing record --event: samples at other events than CPU time, and what they count.

fixtures/events.py counts its own events, or has the kernel count them. What a recording says
of each of its functions is held against that.
"""
import ctypes
import errno
import functools
import json
import os
import shutil
import statistics
import unittest

import by_work
import probing_test as t
from probing_test import probing

HARDWARE = 0  # PERF_TYPE_HARDWARE; its event 0 is cycles


@functools.lru_cache(maxsize=None)
def hardware_refusal():
    """Why cycles cannot be counted here, asked without the program under test; None: they can."""
    attr = t.PerfAttr(type=HARDWARE, size=ctypes.sizeof(t.PerfAttr), config=0, flags=0x1 | 0x20 | 0x40)
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
    fd = libc.syscall(number, ctypes.byref(attr), 0, -1, -1, 0)
    if fd >= 0:
        os.close(fd)
        return None
    return "perf_event_open says %s" % errno.errorcode.get(ctypes.get_errno())


def paranoid():
    with open("/proc/sys/kernel/perf_event_paranoid") as file:
        return int(file.read())


def sees_kernel():
    return os.geteuid() == 0 or paranoid() <= 1


def need_kernel_side():
    if not sees_kernel():
        raise unittest.SkipTest("the kernel's side of events needs root, or perf_event_paranoid 1")


def once(event, *more, prefix=(), names=False):
    """(recording, truth, what was said) of the fixture run once under the recorder; names: of native functions, too."""
    more = [str(a) for a in more] + ([] if names else ["--no-symbols"])
    command = list(prefix) + [t.BINARY, "record", "-e", event] + more + ["--"] + t.fixture_command(
        "events.py", "--once")
    done = t.subprocess.run(command, stdin=t.subprocess.DEVNULL, stdout=t.subprocess.PIPE, stderr=t.subprocess.PIPE,
                            text=True, timeout=60, env=t.fixture_environment(), check=False)
    if done.returncode != 0:
        raise AssertionError("exit status %d: %s" % (done.returncode, done.stderr))
    return t.Recording("probing.db"), json.loads(done.stdout), done.stderr


def counted(recording, function):
    """The weight of all samples under a Python function."""
    return sum(sample.weight for sample in recording.samples if sample.stack and
               any(t.same_name(frame.name, function) for frame in recording.python(sample.stack)))


def rows(sql, path="probing.db"):
    with t.contextlib.closing(t.connect(path, "rw")) as db:
        return db.execute(sql).fetchall()


class Software(t.Case):
    def test_each_page_fault(self):
        recording, truth, said = once("page-faults", "-c", 1)
        self.assertEqual((recording.run["event"], recording.run["unit"], recording.run["period"],
                          recording.run["mode"]), ("page-faults", "count", 1, "event"))
        self.assertEqual({sample.weight for sample in recording.samples}, {1})
        faults, lost = truth["touch_pages"]["faults"], recording.counters["lost"]
        self.assertGreaterEqual(faults, 2048)
        # Mapping and unmapping take faults of the kernel's, which an ordinary user does not see.
        self.assertGreaterEqual(counted(recording, "touch_pages") + lost, 0.95 * faults)
        self.assertLessEqual(counted(recording, "touch_pages"), 1.05 * faults)
        self.assertRegex(said, r"[\d,]+ samples in [\d.]+ s \([\d,]+ page-faults\)")
        self.assertRegex(said, r"\d+ samples, \S+( k)? page-faults")

    def test_one_of_so_many(self):
        recording, truth, _ = once("page-faults")
        self.assertEqual(recording.run["period"], 100)
        self.assertEqual({sample.weight for sample in recording.samples}, {100})
        # Up to a period of each thread and processor is not full.
        faults = truth["touch_pages"]["faults"]
        self.assertGreater(counted(recording, "touch_pages"), faults - 100 * (os.cpu_count() + 2))
        self.assertLess(counted(recording, "touch_pages"), faults + 100 * (os.cpu_count() + 2))

    @t.statistical("the kernel adapts the period as it goes, and the sum is as good as its guesses", 0.0005)
    def test_at_a_frequency(self):
        """The kernel waits for ever more of them, up to thousands: the sum stays what it was."""
        recording, truth, said = once("page-faults", "-F", 4999)
        self.assertIsNone(recording.run["period"])
        self.assertEqual(recording.run["hz"], 4999)
        self.assertIn("(about ", said)
        total = sum(sample.weight for sample in recording.samples)
        self.assertGreater(total, 0.2 * truth["touch_pages"]["faults"])
        self.assertLess(total, 1.2 * truth["all_faults"] + 500)

    def test_stacks_are_of_the_instant(self):
        """Those that claim it. Outside the interrupt an ordinary user's may all not: the reader, which has no priority then, can
        be late for all of a burst of some milliseconds."""
        recording, _, _ = once("page-faults", "-c", 7)
        mine = [sample for sample in recording.samples if sample.stack and
                any(t.same_name(frame.name, "touch_pages") for frame in recording.path(sample.stack))]
        self.assertGreater(len(mine), 100)
        if os.geteuid() == 0:
            self.assertGreater(sum(sample.verdict in t.SURE for sample in mine), 0)
        if recording.run["stack_source"] == "bpf":
            self.assertEqual({sample.verdict for sample in mine}, {"exact"})
        for sample in mine:
            if sample.verdict in t.SURE:
                self.assertEqual(recording.python(sample.stack)[-1].name, "touch_pages")

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0005)
    def test_frames_read_afterwards(self):
        recording, truth, _ = once("minor-faults", "-c", 20, "--source", "wakeup")
        self.assertEqual(recording.run["stack_source"], "wakeup")
        self.assertGreater(counted(recording, "touch_pages"), 0.7 * truth["touch_pages"]["faults"])

    @t.statistical("bounds the share of switches whose stacks are found", 0.0002)
    def test_context_switches(self):
        need_kernel_side()
        recording, truth, said = once("context-switches")
        self.assertEqual(recording.run["period"], 1)
        switches = truth["take_naps"]["switches"]
        self.assertGreaterEqual(switches, truth["naps"])
        self.assertGreater(counted(recording, "take_naps"), 0.9 * switches)
        self.assertLess(counted(recording, "take_naps"), 1.1 * switches + 2)
        self.assertIn("context-switches)", said)

    def test_context_switches_are_the_kernels(self):
        if sees_kernel():
            self.skipTest("this user sees the kernel's side")
        done = probing("record", "-e", "context-switches", "--", "true", check=t.NOT_PERMITTED)
        self.assertIn("sysctl kernel.perf_event_paranoid=1", done.stderr)
        self.assertFalse(os.path.exists("probing.db"))

    def test_usual_clock(self):
        recording, _, _ = once("cpu-clock", "--source", "wakeup")
        self.assertEqual((recording.run["event"], recording.run["unit"], recording.run["mode"], recording.run["hz"]),
                         ("cpu-clock", "ns", "cpu", 99))

    def test_other_clock(self):
        recording, _, said = once("task-clock", "-F", 499)
        self.assertEqual((recording.run["event"], recording.run["unit"], recording.run["mode"]),
                         ("task-clock", "ns", "cpu"))
        self.assertIn("s of CPU time", said)
        weights = [sample.weight for sample in recording.samples
                   if not any(frame.kind == "unsampled" for frame in recording.path(sample.stack))]
        # Each processor has a timer of its own: a sample after a migration may come early, and weighs less then. One that a
        # virtual machine lets come late weighs several periods.
        period = 1000000000 // 499
        self.assertEqual(period, statistics.mode(weights))
        self.assertEqual([], [weight for weight in weights if weight > period and weight % period])
        self.assertGreater(min(weights), 0)
        self.assertEqual(sum(weights), recording.counters["sampled ns"])

    @t.statistical("bounds a share of random samples", 0.0002)
    def test_running_process(self):
        with t.fixture("events.py") as target:
            recording = by_work.record(target, 1, None, "probing.db", "-e", "page-faults", "-c", 50)
        self.assertIn("one in 50 of its page-faults", recording.said)
        share = counted(recording, "touch_pages") / sum(sample.weight for sample in recording.samples)
        self.assertGreater(share, 0.5)


class Shown(t.Case):
    """Counts are shown as counts, nowhere as time."""
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        cls.recording, _, _ = once("page-faults", "-c", 10)
        cls.total = sum(sample.weight for sample in cls.recording.samples)

    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(self.folder, "probing.db"), "probing.db")

    def test_report(self):
        shown = probing("report", check=t.OK).stdout
        self.assertRegex(shown.splitlines()[0], r"^\d+ samples, %d page-faults$" % self.total)
        self.assertNotRegex(shown, r"\d (ms|us|s)\b")

    def test_durations(self):
        """An event has none, as a row of profiling_data."""
        shown = probing("sql", "SELECT count(*), count(duration_ms) FROM profiling_data", "-f", "csv", "--no-header", check=t.OK).stdout
        self.assertEqual("%d,0" % len(self.recording.samples), shown.strip())

    def test_flame_graph(self):
        picture = probing("flamegraph", "-o", "-", check=t.OK).stdout
        self.assertIn("%d samples · %d page-faults</text>" % (len(self.recording.samples), self.total), picture)
        self.assertNotRegex(picture, r"samples · [\d.]+ s\b")

    def test_files_of_before(self):
        """They have no such columns, and are of time."""
        shutil.copy("probing.db", "old.db")
        with t.contextlib.closing(t.connect("old.db", "rw")) as db:
            t.drop_views(db)
            for column in ("event", "unit", "period"):
                db.execute("ALTER TABLE run DROP COLUMN " + column)
            db.commit()
        self.assertRegex(probing("report", "old.db", check=t.OK).stdout.splitlines()[0], r"^\d+ samples, \d+ us$")
        probing("symbolize", "old.db", check=t.OK)


class Hardware(t.Case):
    def test_cycles(self):
        if hardware_refusal():
            done = probing("record", "-e", "cycles", "--", "true", check=t.FAILED)
            self.assertIn("this machine cannot count cycles", done.stderr)
            self.assertIn("--event cpu-clock", done.stderr)
            self.assertFalse(os.path.exists("probing.db"))
            self.skipTest("hardware events could not be tried: " + hardware_refusal())
        recording, _, said = once("cycles", "-F", 999)
        self.assertEqual(recording.run["unit"], "count")
        self.assertGreater(len(recording.samples), 10)
        self.assertIn("cycles)", said)


class Tracepoints(t.Case):
    def setUp(self):
        super().setUp()
        t.need_tracefs()

    def once(self, event, *more, names=False):
        # Small stacks, so that a burst fits into the rings.
        return once(event, "--stack-bytes", 4096, *more, prefix=t.WITH_TRACEFS, names=names)

    def test_values_are_the_programs(self):
        recording, truth, _ = self.once("syscalls:sys_enter_write", names=True)
        self.assertEqual((recording.run["event"], recording.run["period"]), ("syscalls:sys_enter_write", 1))
        mine = rows('SELECT sample.rowid, tracepoint.count, sample.stack, verdict FROM sample JOIN '
                    '"syscalls:sys_enter_write" AS tracepoint ON tracepoint.sample = sample.rowid '
                    'WHERE sample.pid = %d AND tracepoint.fd = %d ORDER BY 2' % (truth["pid"], truth["fd"]))
        self.assertEqual(mine, rows("SELECT rowid, count, stack, verdict FROM sample WHERE pid = %d AND fd = %d ORDER BY 2"
                                    % (truth["pid"], truth["fd"])))
        self.assertEqual(recording.counters["lost"], 0)
        self.assertEqual([count for _, count, _, _ in mine], list(range(truth["writes"])))
        for _, _, stack, verdict in mine:
            self.assertTrue(t.subsequence(recording.names(stack), ["write"]), recording.names(stack))
            if verdict in t.SURE:  # none may be: the burst may be over before memory can be read
                self.assertEqual(recording.python(stack)[-1].name, "write_nothing")

    def test_stacks_are_of_the_instant(self):
        t.need_bpf()
        with t.fixture("events.py") as target:
            recording = by_work.record(target, 1, None, "probing.db", "-e", "syscalls:sys_enter_write", "--source", "bpf",
                                       "--stack-bytes", 4096, prefix=t.WITH_TRACEFS)
        exact = [sample for sample in recording.samples if sample.verdict == "exact"]
        self.assertEqual({recording.python(sample.stack)[-1].name for sample in exact}, {"write_nothing"})
        # Threads come and go, and are seen to the end. The first samples are taken before the interpreter is known.
        self.assertGreater(len({sample.tid for sample in exact}), 2)
        last = recording.samples[-200:]
        self.assertEqual(len(last), 200)
        self.assertEqual({sample.verdict for sample in last}, {"exact"})

    def test_every_sample_has_its_row(self):
        recording, _, _ = self.once("raw_syscalls:sys_enter")
        self.assertGreater(len(recording.samples), 500)
        self.assertEqual(rows('SELECT count(*) FROM sample LEFT JOIN "raw_syscalls:sys_enter" AS call '
                              'ON call.sample = sample.rowid WHERE call.id IS NULL'), [(0,)])
        self.assertEqual(rows('SELECT count(*) > 50 FROM "raw_syscalls:sys_enter" WHERE syscall = \'write\''), [(1,)])
        self.assertLessEqual({"mmap", "munmap"}, {name for (name,) in rows(
            'SELECT DISTINCT syscall FROM "raw_syscalls:sys_enter"')})
        # Six numbers, as text.
        self.assertEqual({len(args.split()) for (args,) in rows('SELECT args FROM "raw_syscalls:sys_enter"')}, {6})

    @t.statistical("bounds the share of switches whose stacks are found", 0.0002)
    def test_text(self):
        recording, truth, _ = self.once("sched:sched_switch")
        names = rows('SELECT prev_comm, count(*) FROM "sched:sched_switch" WHERE prev_pid IN (SELECT tid FROM thread '
                     'WHERE pid = %d) GROUP BY 1 ORDER BY 2' % truth["pid"])
        self.assertTrue(names and names[-1][0].startswith("python"), names)
        self.assertGreater(counted(recording, "take_naps"), 0.9 * truth["take_naps"]["switches"])

    def test_one_of_so_many(self):
        recording, truth, _ = self.once("syscalls:sys_enter_write", "-c", 10)
        self.assertEqual({sample.weight for sample in recording.samples}, {10})
        # These writes are over before memory can be read.
        of_thread = sum(sample.weight for sample in recording.samples if sample.tid != truth["pid"])
        self.assertAlmostEqual(of_thread, truth["writes"], delta=10 * (os.cpu_count() + 2))

    def test_in_sql(self):
        self.once("syscalls:sys_enter_write")
        shown = probing("sql", "probing.db", 'SELECT max(count) FROM "syscalls:sys_enter_write"', "--format", "csv",
                        check=t.OK).stdout
        self.assertEqual(shown.splitlines()[-1].isdigit(), True)

    def test_list(self):
        done = t.subprocess.run(t.WITH_TRACEFS + [t.BINARY, "record", "--event", "list"], stdout=t.subprocess.PIPE,
                                stderr=t.subprocess.DEVNULL,
                                text=True, check=True)
        self.assertIn("\nsched:sched_switch\n", done.stdout)
        self.assertIn("\nsyscalls:sys_enter_write\n", done.stdout)

    def test_none_of_that_name(self):
        done = t.subprocess.run(t.WITH_TRACEFS + [t.BINARY, "record", "-e", "sched:nothing", "--", "true"],
                                stderr=t.subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, t.FAILED)
        self.assertIn("no tracepoint sched:nothing", done.stderr)


class Refusals(t.Case):
    def test_no_tracefs(self):
        if os.path.exists("/sys/kernel/tracing/events") or os.path.exists("/sys/kernel/debug/tracing/events"):
            self.skipTest("tracefs is mounted here, and may be read")
        done = probing("record", "-e", "sched:sched_switch", "--", "true")
        self.assertIn(done.returncode, (t.FAILED, t.NOT_PERMITTED))
        self.assertRegex(done.stderr, "`mount -")
        self.assertFalse(os.path.exists("probing.db"))

    def test_mistakes(self):
        for arguments, words in (
                (["-e", "page_faults"], "--event list"),
                (["-e", "a:b:c"], "GROUP:NAME"),
                (["-e", "page-faults", "--source", "poll"], "poll"),
                (["-e", "sched:sched_switch", "-c", 2, "--source", "bpf"], "--count"),
                (["-e", "context-switches", "--no-kernel"], "--no-kernel"),
                (["-e", "task-clock", "-c", 5], "-F"),
                (["-c", 5], "--event"),
                (["-e", "page-faults", "-c", 5, "-F", 9], "not both"),
                (["-e", "page-faults", "-c", 0], "the count")):
            with self.subTest(" ".join(map(str, arguments))):
                done = probing("record", *arguments, "--", "true", check=t.USAGE)
                self.assertIn(words, done.stderr)
                self.assertFalse(os.path.exists("probing.db"))

    def test_list(self):
        done = probing("record", "--event", "list", check=t.OK)
        self.assertEqual(probing("record", "--events", check=t.OK).stdout, done.stdout)
        names = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertIn("page-faults", names)
        self.assertEqual("context-switches" in names, sees_kernel())
        self.assertEqual("cycles" in names, hardware_refusal() is None)


if __name__ == "__main__":
    unittest.main()
