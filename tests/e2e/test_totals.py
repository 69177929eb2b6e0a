# SPDX-License-Identifier: MIT
"""Sums: what a recording weighs is what the kernel accounts to the program and its children, however short these are."""
import collections
import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import unittest

import by_work
import probing_test as t
from probing_test import fixture_command, probing

HZ = 199
# The daemon writes its number, and ends; its starter looks until there is no such process.
GONE = """(setsid sh -c 'echo $$ > number; exec sleep 0.3' &)
until [ -s number ]; do sleep 0.05; done
for i in $(seq 200); do
    kill -0 $(cat number) 2> /dev/null || { echo gone after $i; exit; }
    sleep 0.05
done
echo still there; exit 1"""
# One that works, and its children, which wait for its end.
FAMILY = """import os
read, write = os.pipe()
for _ in range(100):
    if os.fork() == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
print("ready{}", flush=True)
while True: sum(range(1000))"""
# A child uses CPU time, then sleeps. At SIGUSR1 its parent lets it end, waits for it, and works for a little.
HEIR = """import os, signal, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: sum(range(1000))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
read, write = os.pipe()
if os.fork() == 0:
    work(1)
    print("ready{}", flush=True)
    os.close(write)
    os.read(read, 1)
    os._exit(0)
signal.sigwait([signal.SIGUSR1])
os.close(write)
os.wait()
work(0.2)
print("waited", flush=True)
time.sleep(1000)"""
ROOM_S = 0.05  # before the exec and after the program's last look at itself; clock ticks


@contextlib.contextmanager
def others_that_spin(n):
    started = [subprocess.Popen(["timeout", "120", "sh", "-c", "while :; do :; done"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in started:
            process.terminate()
            process.wait()


class Sums(t.Case):
    """Whatever the source is, the sum is right."""

    def setUp(self):
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def record(self, work, source, *more):
        command = fixture_command("totals.py", work)
        done = probing("record", "--source", source, "-F", HZ, "-o", "out.db", *more, "--", *command, check=t.OK,
                       timeout=300)
        self.said = done.stderr
        truth = json.loads(done.stdout.splitlines()[1])
        return t.Recording("out.db"), truth

    @staticmethod
    def weight_s(samples):
        return sum(sample.weight for sample in samples) / 1e9

    def assertSum(self, recording, wanted_s):
        """Within two hundredths, or three standard errors of samples that were met by chance."""
        sampled = [sample for sample in recording.samples if not recording.is_unsampled(sample)]
        error_s = 3 * math.sqrt(len(sampled)) / HZ
        self.assertAlmostEqual(wanted_s, self.weight_s(recording.samples), delta=max(0.02 * wanted_s, error_s) + ROOM_S,
                               msg=self.said)

    def assertSums(self, work, source):
        recording, truth = self.record(work, source)
        self.assertSum(recording, truth["own"] + truth["children"])
        self.assertIn("by the kernel's account", self.said)
        # A system's own account of it is not what was sampled alone: the rest is said.
        counters = recording.counters
        self.assertAlmostEqual(truth["own"] + truth["children"], counters["cpu ns"] / 1e9,
                               delta=0.1 * (truth["own"] + truth["children"]) + ROOM_S)
        self.assertEqual(sum(sample.weight for sample in recording.samples),
                         counters["sampled ns"] + counters["not sampled ns"])
        return recording, truth


class EverySource:
    """The same programs for each source; see below."""
    source = None

    def need(self):
        pass

    def check(self, work):
        self.need()
        return self.assertSums(work, self.source)

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_one_program_beside_others(self):
        """Two that never sleep take turns with it: what a hypervisor takes meanwhile is no time of the program's."""
        with others_that_spin(2):
            self.check("alone")

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_short_children(self):
        self.check("short")

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_a_shell_loop(self):
        t.need_program("bash")
        t.need_program("git")
        self.check("shell")

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_a_build(self):
        t.need_program("make")
        t.need_program("gcc")
        self.check("build")

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_posix_spawn(self):
        self.check("spawn")

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_threads(self):
        self.check("threads")

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_a_chain_of_programs(self):
        self.check("chain")

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_a_tree_of_forks(self):
        self.check("tree")


class WithEvents(EverySource):
    """Records of switches tell how long each thread ran, whether it was sampled or not."""

    def by_command(self, recording):
        names = {process["pid"]: process["name"] for process in recording.processes}
        sums = collections.Counter()
        for sample in recording.samples:
            sums[names[sample.pid]] += sample.weight / 1e9
        return sums

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_a_daemon(self):
        self.check("daemon")

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_two_programs_have_their_shares(self):
        self.need()
        for name in ("first", "second"):
            shutil.copy(t.need_program("bash"), name)
        recording, truth = self.record("two", self.source)
        sums, programs = self.by_command(recording), truth["programs"]
        for name in programs:
            self.assertAlmostEqual(programs[name], sums[name], delta=0.1 * programs[name] + 0.02, msg=self.said)
        self.assertAlmostEqual(programs["second"] / sum(programs.values()),
                               sums["second"] / (sums["first"] + sums["second"]), delta=0.03)

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_short_children_stand_under_their_command(self):
        self.need()
        recording, truth = self.record("short", self.source)
        self.assertGreater(self.by_command(recording)["true"], 0.7 * truth["children"], self.said)


class ByDefault(WithEvents, Sums):
    NIGHTLY_FOR_USERS = True  # an ordinary user's default is ByReading's source
    source = "auto"

    def need(self):
        t.need_perf()


    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_thousands_of_children(self):
        """A parent that starts a child more often than once a period has samples nevertheless."""
        recording, truth = self.check("many")
        own = self.weight_s(sample for sample in recording.samples
                            if not recording.is_unsampled(sample) and any("many" in name for name in recording.names(sample.stack)))
        self.assertGreater(own, 0.5 * truth["own"], self.said)


class ByReading(WithEvents, Sums):
    source = "wakeup"

    def need(self):
        t.need_perf()


class ByPolling(EverySource, Sums):
    NIGHTLY_FOR_USERS = True  # root polls as everybody does
    source = "poll"

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_a_daemon(self):
        recording, truth = self.check("daemon")
        # It has samples of its own, under its own number.
        burnt = self.weight_s(sample for sample in recording.samples if any("burn" in name for name in recording.names(sample.stack)))
        self.assertGreater(burnt, 0.8 * truth["children"], self.said)

    def test_a_daemon_that_ends_leaves_no_zombie(self):
        """Who waits for it to be gone waits for the recorder, which is its parent then."""
        done = probing("record", "--source", "poll", "-o", "out.db", "--", "sh", "-c", GONE, check=t.OK)
        self.assertRegex(done.stdout, r"gone after \d+")


class What(Sums):
    """What of it is said, and when."""

    def test_what_was_not_sampled_is_said_and_shown(self):
        recording, truth = self.record("short", "poll", "-F", 9)  # most children come and go between two ticks
        missing_s = self.weight_s(s for s in recording.samples if s.stack and recording.is_unsampled(s))
        self.assertGreater(missing_s, 0.2 * truth["children"])
        self.assertRegex(self.said, r"CPU time by the kernel's account \d+\.\d\d s, sampled \d+\.\d\d s, not sampled \d+\.\d\d s "
                                    r"\(\d+\.\d %\)")
        self.assertRegex(self.said, r"(?m)^processes that ended between two polls have no samples: raise -F$")
        self.assertIn("[not sampled]", probing("report", "out.db", check=t.OK).stdout)
        self.assertIn("[not sampled]", probing("flamegraph", "out.db", "-f", "folded", "-o", "-", check=t.OK).stdout)

    def test_why_time_is_not_sampled(self):
        t.need_perf()
        short = r"(?m)^threads that ended before their next sample have no samples: raise -F$"
        kernel = r"(?m)^time in the kernel has no samples"
        self.record("threads", "wakeup", "-F", 49)  # each runs for a few milliseconds
        self.assertRegex(self.said, short)
        self.record("alone", "wakeup", "-F", 49)
        self.assertNotRegex(self.said, short)
        self.assertNotRegex(self.said, kernel)
        self.record("calls", "wakeup", "-F", 49, "--no-kernel")
        self.assertRegex(self.said, kernel + r" \(--no-kernel\)$")
        self.record("calls", "wakeup", "-F", 49)
        if t.Recording("out.db").run["kernel_frames"]:
            self.assertNotRegex(self.said, kernel)
        else:
            self.assertRegex(self.said, kernel + ": `sysctl kernel.perf_event_paranoid=1`, or record as root$")

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_one_that_does_not_fork_has_all_of_its_time_in_samples(self):
        t.need_perf()
        probing("record", "-F", HZ, "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c",
                "import time\nwhile time.process_time() < 1: sum(range(100000))", check=t.OK)
        recording = t.Recording("out.db")
        # An ordinary user has no samples of the kernel: few system calls. A hypervisor that takes the processor away makes timers
        # late, and that time has no sample either.
        missing_s = self.weight_s(s for s in recording.samples if recording.is_unsampled(s))
        self.assertLess(missing_s, 0.1)
        self.assertAlmostEqual(1, self.weight_s(recording.samples), delta=0.1)

    def test_filters_leave_it_out(self):
        self.record("short", "poll", "--gil")
        self.assertNotIn("[not sampled]", t.Recording("out.db").all_names())

    def test_a_command_that_no_tick_meets(self):
        """Its time is a row, which is no sample, and reports show it."""
        done = probing("record", "--source", "poll", "-F", "1", "-o", "out.db", "--", "true", check=t.OK)
        recording = t.Recording("out.db")
        self.assertEqual([["[not sampled]"]], [recording.names(sample.stack) for sample in recording.samples], done.stderr)
        self.assertEqual(recording.counters["cpu ns"], sum(sample.weight for sample in recording.samples))
        self.assertRegex(done.stderr, r"(?m)^0 samples, ")
        done = probing("flamegraph", "out.db", "-f", "folded", "--counts", "-o", "-", check=t.NO_INPUT)
        self.assertIn("no samples in", done.stderr)

    def test_why_a_filter_leaves_nothing(self):
        t.need_perf()
        done = probing("record", "--source", "wakeup", "-F", "1", "--threads", "nobody", "-o", "out.db", "--", "true", check=t.OK)
        self.assertIn("the program used too little CPU time for a sample", done.stderr)
        done = probing("record", "--source", "poll", "-F", HZ, "--threads", "nobody", "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c",
                       "import time\nwhile time.process_time() < 0.3: pass", check=t.OK)
        self.assertIn("--threads, --function or --gil dropped all samples", done.stderr)

    @t.statistical("sums of samples that are met by chance, within three standard errors", 0.0005)
    def test_attached_to_one_that_forks(self):
        t.need_perf()
        with t.target(by_work.gated("totals.py", "short", "--delay", 0.01)) as target, \
                t.recorder("--pid", target.pid, "-F", HZ, "-o", "out.db") as process:
            self.said = t.await_recording(process)
            os.kill(target.pid, signal.SIGUSR1)
            truth = json.loads(target.process.stdout.read().splitlines()[1])  # after 'ready'
            self.said += process.communicate(timeout=60)[1]
            self.assertEqual(t.OK, process.returncode, self.said)
        self.assertSum(t.Recording("out.db"), truth["own"] + truth["children"])

    def check_together_with_many(self, source):
        if source == "wakeup":
            t.need_perf()
        elif source == "bpf":
            t.need_bpf()
        with t.target([t.DEBIAN_PYTHON, "-c", FAMILY]) as target:
            recording = by_work.record(target, 0.4, HZ, "out.db", "--subprocesses", "--source", source)
        counters = recording.counters
        self.assertGreater(counters["cpu ns"], 0, recording.said)
        # No sample that counts as sampled is missing in the file.
        self.assertEqual(sum(sample.weight for sample in recording.samples), counters["sampled ns"] + counters["not sampled ns"])
        self.assertLess(counters["cpu ns"] - counters["sampled ns"], 4e9 / HZ, recording.said)

    def check_heir(self, source, *more):
        if source == "wakeup":
            t.need_perf()
        with t.scratch(), t.target([t.DEBIAN_PYTHON, "-c", HEIR]) as target, \
                t.recorder("--pid", target.pid, *more, "--source", source, "-F", HZ, "-o", "out.db") as process:
            t.await_recording(process)
            os.kill(target.pid, signal.SIGUSR1)
            self.assertEqual("waited\n", target.process.stdout.readline())
            self.assertEqual(t.OK, t.stop_politely(process)[0])
            counters = t.Recording("out.db").counters
        self.assertGreater(counters["cpu ns"], 0.1e9)
        self.assertLess(counters["cpu ns"], 0.9e9)

    def test_attached_parent_waits_for_child(self):
        """The kernel adds the child's whole life to its parent's account. Its CPU time from before the recording does not count."""
        self.check_heir("wakeup", "--subprocesses")

    def test_attached_parent_waits_for_child_by_poll(self):
        self.check_heir("poll", "--subprocesses")

    def test_attached_parent_waits_for_child_that_is_not_recorded(self):
        self.check_heir("wakeup")

    def test_attached_parent_waits_for_child_that_is_not_recorded_by_poll(self):
        self.check_heir("poll")

    def test_attached_together_with_many(self):
        """The recorder reads the maps of 100 processes before it begins. CPU time from before is not missing in the sum."""
        self.check_together_with_many("wakeup")

    def test_attached_together_with_many_by_bpf(self):
        self.check_together_with_many("bpf")

    def test_attached_together_with_many_by_poll(self):
        self.check_together_with_many("poll")


if __name__ == "__main__":
    unittest.main()
