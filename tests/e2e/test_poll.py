# SPDX-License-Identifier: MIT
"""probing record --source poll: memory alone, looked at on a timer, where perf events are not to be had.

Frames and weights are held against what the programs know of themselves. How often a thread
is seen depends on the machine; what is seen, and the sum of the weights, does not.
"""
import collections
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import unittest

import by_work
import probing_test as t
from probing_test import fixture, fixture_command, probing, recorder
from test_record import demo_command

HZ = 499
# Where several interpreters, or the way from one program to the next, are at stake.
SOME_VERSIONS = ("2_7", "3_8", "debian", "3_12", "3_13", "own_pids", "sid_3_15")


def memory_refusal():
    """Why an ordinary user may not read the memory of processes of that user's own; None: may."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as scope:
            value = int(scope.read())
    except OSError:
        return None
    return "kernel.yama.ptrace_scope is %d" % value if value and os.geteuid() != 0 else None


class Polled(t.Case):
    def setUp(self):
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)
        if memory_refusal():
            self.skipTest(memory_refusal())

    @staticmethod
    def record(target, seconds=1, hz=HZ, **started):
        return by_work.record(target, seconds, hz, "out.db", "--source", "poll", **started)

    def python_names(self, recording, sample):
        return [frame.name for frame in recording.python(sample.stack)] if sample.stack else []

    def assertPolled(self, recording):
        """What holds of each such recording."""
        self.assertEqual(("ok", "poll", 1), (recording.integrity, recording.run["stack_source"],
                                             recording.run["clean"]))
        self.assertEqual(0, recording.run["kernel_frames"])
        self.assertLessEqual(set(recording.verdicts()), {"python", "approximate", "no_python"})
        self.assertEqual({"truncated"}, set(recording.ends()))
        self.assertGreater(min(sample.weight for sample in recording.samples), 0)
        self.assertEqual(len(recording.samples), recording.counters["samples"])
        self.assertGreater(recording.counters["poll ticks"], 0)
        self.assertIn("skipped poll ticks", recording.counters)
        for sample in recording.samples:
            kinds = {frame.kind for frame in recording.path(sample.stack)} if sample.stack else set()
            self.assertLessEqual(kinds, {"python"})
            self.assertEqual(sample.verdict == "no_python" or not kinds, not kinds, sample)


class OfOneInterpreter(Polled):
    """A recording of one fixture for all its tests."""

    @classmethod
    def setUpClass(cls):
        if memory_refusal():
            raise unittest.SkipTest(memory_refusal())
        t.need_interpreter(cls.interpreter)
        with t.scratch(), fixture(*cls.arguments, python=cls.interpreter.path, place=cls.interpreter.place) as target:
            cls.recording, cls.truth = cls.record(target), target.truth

    def name(self, qualname):
        """What the interpreter knows of a qualified name: all of it from 3.11."""
        has_all = tuple(map(int, self.interpreter.version.split("."))) >= (3, 11)
        return qualname if has_all else qualname.rsplit(".", 1)[-1]


@t.for_each_interpreter(globals())
class Chains(OfOneInterpreter):
    """The chains of callers that the interpreter itself lists, with their lines."""

    arguments = ("callbacks.py",)

    def chain(self, sample):
        """Between Truth.round and Truth.burn; None where these are not there."""
        frames = self.recording.python(sample.stack) if sample.stack else []
        names = [frame.name for frame in frames]
        first, last = self.name("Truth.round"), self.name("Truth.burn")
        if first not in names or last not in names:
            return None
        return tuple((frame.name, frame.line) for frame in frames[names.index(first) + 1:names.index(last)])

    @t.statistical("a thread runs on while its memory is read: the share of torn stacks is bounded", 0.0002)
    def test_functions_and_lines(self):
        expected = {tuple(map(tuple, chain)) for chain in self.truth["stacks"]}
        seen = collections.Counter(filter(None, map(self.chain, self.recording.samples)))
        n_right = sum(n for chain, n in seen.items() if chain in expected)
        self.assertNearlyAll(n_right, sum(seen.values()), "chains that there are; not %s" %
                             [chain for chain in seen if chain not in expected][:2])
        self.assertGreater(len(seen), 0)

    @t.statistical("bounds the share of polls that found no stack", 0.0002)
    def test_all_of_it_is_python(self):
        self.assertPolled(self.recording)
        # what is owed when recording ends has no stack
        without = [sample for sample in self.recording.samples if not sample.stack]
        self.assertLessEqual(len(without), max(3, 0.05 * len(self.recording.samples)))


@t.for_each_interpreter(globals(), lambda: [i for i in t.all_interpreters() if i.label in SOME_VERSIONS])
class CallTree(OfOneInterpreter):
    """Functions that call each other faster than they can be read: each has one caller, by its name.

    How many readings agree depends on who runs meanwhile; what they show must have been.
    """

    arguments = ("flutter.py", "--mode", "tree")

    @t.statistical("a thread runs on while its memory is read: the share of torn stacks is bounded", 0.0005)
    def test_no_caller_that_cannot_be(self):
        prefix, counts, wrong = self.truth["prefix"], collections.Counter(), []
        for sample in self.recording.samples:
            names = [name for name in self.python_names(self.recording, sample) if name.startswith(prefix)]
            is_right = all(name[:-1] == caller for name, caller in zip(names, [prefix] + names[:-1]))
            counts[sample.verdict, is_right] += 1
            if not is_right:
                wrong.append(names)
        self.assertLessEqual(len(wrong), max(2, 0.01 * sum(counts.values())), (counts, wrong[:2]))
        deep = [sample for sample in self.recording.samples if prefix + "a" in self.python_names(self.recording, sample)]
        self.assertGreater(len(deep), 0, counts)


class Weights(Polled):
    """What the samples add up to, against the program's own clock."""

    PROGRAM = """
import threading, time
def burn(cpu_s):
    stop = time.thread_time() + cpu_s
    while time.thread_time() < stop:
        sum(range(1000))
threads = [threading.Thread(target=burn, args=(0.4,)) for i in range(2)]
for thread in threads: thread.start()
burn(0.4)
for thread in threads: thread.join()
print(time.process_time(), flush=True)
"""

    @t.statistical("polls divide time by chance", 0.0005)
    def test_sum_is_the_programs_own(self):
        said = probing("record", "--source", "poll", "-F", 199, "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c",
                       self.PROGRAM, check=t.OK)
        recording = t.Recording("out.db")
        self.assertPolled(recording)
        used = float(said.stdout)
        self.assertAlmostEqual(used, sum(sample.weight for sample in recording.samples) / 1e9, delta=used * 0.15)
        of_threads = collections.Counter()
        for sample in recording.samples:
            if "burn" in self.python_names(recording, sample):
                of_threads[sample.tid] += sample.weight / 1e9
        self.assertEqual(3, len(of_threads))
        for tid, seconds in of_threads.items():
            self.assertAlmostEqual(0.4, seconds, delta=0.25, msg=of_threads)
        # and what is printed is that sum
        printed = float(re.search(r"\(([0-9.]+) s of CPU time\)", said.stderr).group(1))
        self.assertAlmostEqual(printed, sum(sample.weight for sample in recording.samples) / 1e9, delta=0.006)

    def test_other_programs_have_weights_and_no_frames(self):
        with fixture("native_only", "threads") as target:
            recording = self.record(target, 0.7)
        self.assertPolled(recording)
        self.assertEqual({"no_python"}, set(recording.verdicts()))
        self.assertEqual({None}, {sample.stack for sample in recording.samples})

    def test_reading_it(self):
        """Reports, drawings and questions work on it as on any other."""
        with fixture("demo.py") as target:
            self.record(target, 0.7)
        self.assertIn("edit_distance", probing("report", "out.db", check=t.OK).stdout)
        probing("flamegraph", "out.db", "-o", "out.svg", check=t.OK)
        with open("out.svg") as drawing:
            self.assertIn("edit_distance", drawing.read())
        self.assertIn("edit_distance", probing("flamegraph", "out.db", "--format", "folded", "-o", "-", check=t.OK).stdout)
        said = probing("sql", "out.db", "SELECT stack_source FROM run", "-f", "csv", check=t.OK)
        self.assertEqual(["stack_source", "poll"], said.stdout.split())


class Threads(Polled):
    @t.statistical("a thread runs on while its memory is read: the share of torn stacks is bounded", 0.0002)
    def test_each_has_its_own_functions(self):
        with fixture("threads.py", "--busy", 3, "--idle", 30, "--churn") as target:
            recording, truth = self.record(target, 2), target.truth["threads"]
        self.assertPolled(recording)
        names = {thread["tid"]: thread["name"] for thread in recording.threads}
        wrong, seen = collections.Counter(), collections.Counter()
        for sample in recording.samples:
            colours = [name for name in self.python_names(recording, sample) if name.startswith("burn_")]
            thread = names[sample.tid]
            if not colours:
                continue
            seen[thread.split("-")[0]] += 1
            wrong[thread, colours[0]] += colours != [truth.get(thread, "burn_churn")]
        self.assertNearlyAll(sum(seen.values()) - sum(wrong.values()), sum(seen.values()), +wrong)
        self.assertIn("busy", seen)
        self.assertEqual(set(truth), set(names.values()) & set(truth))


class Processes(Polled):
    def test_children_of_every_kind(self):
        """From a command's start to its end, each in a function of its own."""
        said = probing("record", "--source", "poll", "-F", 199, "-o", "out.db", "--",
                       *fixture_command("processes.py", "--cpu", 0.4), env=t.fixture_environment(), check=t.OK)
        pids = json.loads(said.stdout.splitlines()[-1][len("ended "):])
        recording = t.Recording("out.db")
        self.assertPolled(recording)
        for function, pid in pids.items():
            with self.subTest(function):
                seconds, others = 0, collections.Counter()
                for sample in recording.samples:
                    names = self.python_names(recording, sample) if sample.pid == pid else []
                    seconds += sample.weight / 1e9 if function in names else 0
                    others.update(set(names) & set(pids) - {function})
                self.assertGreater(seconds, 0.02)
                self.assertEqual([], list(others))
                self.assertIn(pid, [process["pid"] for process in recording.processes])

    def test_what_is_executed_is_not_read_as_what_ran_before(self):
        other = [i for i in t.interpreters() if i.label == "3_12"][0]
        t.need_interpreter(other)
        with t.target(fixture_command("exec_chain.py", other.path)) as target, \
                recorder("--source", "poll", "--pid", target.pid, "-F", 199, "-o", "out.db") as process:
            t.await_recording(process)
            target.process.send_signal(signal.SIGUSR1)
            _, said = process.communicate(timeout=60)  # with the end of the target
            self.assertEqual(0, process.returncode, said)
        recording = t.Recording("out.db")
        self.assertPolled(recording)
        order = [next((name for name in self.python_names(recording, sample) if name.endswith("_program")), None)
                 for sample in recording.samples]
        changes = [name for i, name in enumerate(order) if name and name not in order[:i]]
        self.assertEqual(["first_program", "second_program"], changes)
        last = max(i for i, name in enumerate(order) if name == "first_program")
        self.assertLess(last, order.index("second_program"))
        end = max(i for i, name in enumerate(order) if name)
        shell = [sample for sample in recording.samples[end + 1:] if not sample.stack]
        self.assertGreater(sum(sample.weight for sample in shell), 0.05e9)


class Ending(Polled):
    def test_interrupt_finishes(self):
        with fixture("demo.py") as target, \
                recorder("--source", "poll", "--pid", target.pid, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            status, _, said = t.stop_politely(process)
            self.assertTrue(target.is_running())
        self.assertEqual(0, status, said)
        self.assertPolled(t.Recording("out.db"))

    def test_the_command_keeps_its_status(self):
        probing("record", "--source", "poll", "-o", "out.db", "--", "sh", "-c", "exit 7", check=7)
        self.assertEqual("poll", t.Recording("out.db").run["stack_source"])


class Pace(Polled):
    def test_looks_that_cannot_be_are_said(self):
        """Nobody looks at 200 threads 20000 times a second."""
        with fixture("threads.py", "--busy", 2, "--idle", 200) as target:
            recording = self.record(target, 1.5, 20000)
        self.assertPolled(recording)
        self.assertGreater(recording.counters["skipped poll ticks"], recording.counters["poll ticks"])
        self.assertLess(recording.counters["poll ticks"], 20000 / 1.5 * (recording.run["ended"] - recording.run["started"]))
        self.assertRegex(recording.said, r"\d+ of \d+ polls skipped.*the period grew to [0-9.]+ ms.*-F")


class Refused(Polled):
    """Where perf_event_open is forbidden, as in containers, and where more is."""

    WITHOUT_PERF = [os.path.join(t.BUILT_FIXTURES, "without_perf")]

    def without_perf(self, *arguments, more=(), **keywords):
        command = [*self.WITHOUT_PERF, *more, t.BINARY, "record", *map(str, arguments)]
        done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, **keywords)
        return done

    def assertFallsBack(self, said, *patterns):
        first = said.splitlines()[0]
        self.assertRegex(first, r"^stack source: poll \(")
        for pattern in patterns:
            self.assertRegex(first, pattern)

    def test_a_process(self):
        with fixture("demo.py") as target:
            recording = by_work.record(target, 0.7, HZ, "out.db", prefix=self.WITHOUT_PERF)
        self.assertFallsBack(recording.said, "seccomp", "--cap-add PERFMON")
        self.assertPolled(recording)
        self.assertIn("edit_distance", recording.all_names())

    def test_a_command(self):
        said = self.without_perf("-F", HZ, "-o", "out.db", "--", *demo_command(0.7))
        self.assertEqual(0, said.returncode, said.stderr)
        self.assertFallsBack(said.stderr, "seccomp")
        self.assertEqual("done\n", said.stdout)
        recording = t.Recording("out.db")
        self.assertPolled(recording)
        names = recording.all_names()
        self.assertIn("edit_distance", names)
        # imports happen only at the start
        self.assertTrue(any(name.startswith("_find_and_load") for name in names), sorted(names)[:50])

    def test_who_asks_for_more_is_told(self):
        with fixture("demo.py") as target:
            said = self.without_perf("--source", "wakeup", "--pid", target.pid, "-d", 1, "-o", "out.db")
        self.assertEqual(t.NOT_PERMITTED, said.returncode)
        self.assertSentence(said.stderr, "seccomp", "--cap-add PERFMON")
        self.assertEqual([], os.listdir("."))

    def test_without_memory_there_is_nothing(self):
        with fixture("demo.py") as target:
            for arguments in (["--pid", target.pid], ["--source", "poll", "--pid", target.pid],
                              ["--source", "poll", "--", "true"], ["--", "true"]):
                with self.subTest(arguments):
                    said = self.without_perf("-d", 1, "-o", "out.db", *arguments, more=["--memory"])
                    self.assertEqual(t.NOT_PERMITTED, said.returncode, said.stderr)
                    self.assertSentence(said.stderr, "seccomp|CAP_SYS_PTRACE")
                    self.assertEqual([], os.listdir("."))

    def test_another_users_process(self):
        if os.geteuid() == 0:
            self.skipTest("is about ordinary users; root is not one")
        said = probing("record", "--source", "poll", "--pid", 1, "-d", 1, "-o", "out.db", check=t.NOT_PERMITTED)
        self.assertSentence(said.stderr, "process 1 ", "root|CAP_SYS_PTRACE")
        self.assertEqual([], os.listdir("."))


class Limits(Polled):
    """Few descriptors, little memory that may be locked."""
    alone = True  # the kernel counts what all recorders of a user lock

    def limited(self, which, soft, hard, *arguments, user=None):
        def set_limit():
            resource.setrlimit(which, (soft, hard))
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
        command = [t.BINARY, "record", *map(str, arguments)]
        if user:
            shutil.copy(t.BINARY, "probing")
            os.chmod(".", 0o777)
            command[0] = os.path.abspath("probing")
        return subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, preexec_fn=set_limit)

    def test_what_does_not_fit_is_polled(self):
        t.need_perf()
        with fixture("threads.py", "--busy", 2, "--idle", 40) as target:
            recording = by_work.record(target, 0.7, HZ, "out.db",
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
            refused = self.limited(resource.RLIMIT_NOFILE, 64, 64, "--source", "wakeup", "--pid", target.pid, "-d", 1)
        if t.bpf_refusal() is None:  # one event a processor does it
            self.assertEqual("bpf", recording.run["stack_source"])
        else:
            self.assertRegex(recording.said.splitlines()[0], r"^stack source: poll \(.*file descriptors.*ulimit -n \d+")
            self.assertPolled(recording)
        self.assertIn("burn_red", recording.all_names())
        self.assertEqual(t.FAILED, refused.returncode)
        self.assertSentence(refused.stderr, "ulimit -n")

    def test_the_soft_limit_is_raised(self):
        t.need_perf()
        with fixture("threads.py", "--busy", 2, "--idle", 40) as target:
            said = self.limited(resource.RLIMIT_NOFILE, 64, 1024, "--pid", target.pid, "-d", 0.5, "-o", "out.db")
        if os.cpu_count() > 16:
            self.skipTest("40 threads on %d CPUs take more" % os.cpu_count())
        self.assertEqual(0, said.returncode, said.stderr)
        self.assertRegex(said.stderr.splitlines()[0], "^stack source: (?!poll)")

    def test_a_commands_own_limit_is_not_raised(self):
        for source in ("auto", "poll"):
            with self.subTest(source):
                said = self.limited(resource.RLIMIT_NOFILE, 64, 1024, "--source", source, "-o", "out.db", "--",
                                    "sh", "-c", "ulimit -n")
                self.assertEqual("64\n", said.stdout, said.stderr)

    def test_smaller_rings_are_said(self):
        t.need_perf()
        user = 65534 if os.geteuid() == 0 else None
        said = self.limited(resource.RLIMIT_MEMLOCK, 0, 0, "-d", 0.3, "-o", "out.db", "--", "sleep", "0.3", user=user)
        self.assertEqual(0, said.returncode, said.stderr)
        if t.perf_refusal_of(65534 if user else os.geteuid()):
            self.skipTest("ordinary users may not sample here")
        small = [line for line in said.stderr.splitlines() if re.match(r"rings of \d+ KiB per CPU", line)]
        self.assertEqual(1, len(small), said.stderr)
        self.assertRegex(small[0], "perf_event_mlock_kb.*CAP_IPC_LOCK")


class FirstLine(Polled):
    def test_says_how_stacks_are_taken(self):
        with fixture("demo.py") as target:
            for arguments in (["--pid", target.pid], ["--source", "poll", "--pid", target.pid],
                              ["--", "true"], ["--source", "poll", "--", "true"]):
                with self.subTest(arguments):
                    said = probing("record", "-d", 0.2, "-o", "out.db", *arguments, check=t.OK)
                    lines = said.stderr.splitlines()
                    self.assertRegex(lines[0], r"^stack source: %s \(.+\)$" % ("poll" if "poll" in arguments else r"\w+"))
                    self.assertEqual(1, said.stderr.count("stack source"))
                    os.remove("out.db")
            quiet = probing("record", "-q", "--source", "poll", "--pid", target.pid, "-d", 0.2, "-o", "out.db", check=t.OK)
            self.assertEqual("", quiet.stderr)

    def test_an_unknown_one(self):
        said = probing("record", "--source", "guess", "--pid", 1, check=t.USAGE)
        self.assertRegex(said.stderr, "auto.*wakeup.*poll.*guess")


if __name__ == "__main__":
    sys.exit(unittest.main())
