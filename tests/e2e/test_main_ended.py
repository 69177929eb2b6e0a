# SPDX-License-Identifier: MIT
"""A process whose main thread has ended while others go on is looked at like any other."""
import json
import os
import signal
import time

import by_work
import probing_test as t


def sources():
    return ["poll", "wakeup"] + ([] if t.bpf_refusal() else ["bpf"])


def await_main_end(pid):
    t.wait_until(lambda: t.state_of(pid) == "Z", 20, "the main thread's end")


def is_another_program(target):
    """Whether the target's thread has executed the program again, and that one has set up its threads."""
    return t.state_of(target.pid) != "Z" and len(os.listdir("/proc/%d/task" % target.pid)) == 3 and \
        "--exec" not in command_of(target.pid)


def command_of(pid):
    with open("/proc/%d/cmdline" % pid) as command:
        return command.read()


def without_nap(result):
    """Samples of the threads that compute. The other one uses CPU time, too, each time it wakes up."""
    naps = {row["tid"] for row in result.threads if row["name"] == "nap"}
    return [s for s in result.samples if s.tid not in naps and not result.is_unsampled(s)]


def is_of_spin(names):
    return any(name and name.endswith("spin") for name in names)


class Ended(t.Case):
    """It has ended before anybody looks."""

    def setUp(self):
        super().setUp()
        started = t.fixture("without_main.py")
        self.target = started.__enter__()
        self.pid = self.target.pid
        self.addCleanup(started.__exit__, None, None, None)
        await_main_end(self.pid)

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0005)
    def test_recorded_by_each_source(self):
        for source in sources():
            with self.subTest(source=source):
                result = by_work.record(self.target, 1, 199, source + ".db", "--source", source)
                self.assertGreater(len(result.samples), 10)
                samples = without_nap(result)
                self.assertNearlyAll(sum(is_of_spin(result.names(s.stack)) for s in samples), len(samples), "in spin")
                self.assertEqual([None], [row["ended"] for row in result.processes])
                self.assertIn("without_main.py", result.processes[0]["command"])
                if source != "poll":
                    self.check_native(result)

    def check_native(self, result):
        """Stacks are whole, with names out of files that were found."""
        self.assertNearlyAll(sum(s.stack_end in ("complete", "completed") for s in result.samples), len(result.samples),
                             "whole stacks")
        self.assertTrue(any(t.subsequence(result.names(s.stack), ["spin", "deflate"]) for s in result.samples),
                        sorted(filter(None, result.all_names())))

    def test_recorded_by_its_name(self):
        name = os.path.basename(os.readlink("/proc/%d/task/%s/exe" % (self.pid, self.threads()[-1])))
        done = t.probing("record", "--comm", name, "-d", 1, "-o", "all.db", timeout=60)
        self.assertEqual(t.OK, done.returncode, done.stderr)
        self.assertIn(self.pid, [row["pid"] for row in t.Recording("all.db").processes])

    def threads(self):
        return sorted(os.listdir("/proc/%d/task" % self.pid), key=int)

    def test_top(self):
        done = t.probing("top", self.pid, "-b", "-n", 2, "-d", 2, "-F", 199, "-w", 0, "--sort", "total", check=t.OK)
        self.assertRegex(done.stdout, r"(?m)^ *\d+\.\d .*\bspin\b")

    def test_backtrace(self):
        for options in ((), ("--no-stop",)):
            done = t.probing("backtrace", self.pid, "--json", *options, check=t.OK)
            said = json.loads(done.stdout)
            stacks = [[f["function"] for f in thread["frames"]] for thread in said["threads"]]
            self.assertIn("without_main.py", said["command"])
            self.assertEqual([], stacks[0])
            self.assertTrue(is_of_spin(stacks[1]) and "nap" in stacks[2], stacks)

    def test_doctor(self):
        done = t.probing("doctor", self.pid, "--json", check=t.OK)
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertRegex(checks["process"]["found"], "main thread has ended; others run")
        self.assertEqual(["ok", "ok", "ok"], [checks[name]["state"] for name in ("process", "memory", "python")])

    def test_tables_of_it(self):
        self.assertEqual([["spin"]], self.ask("SELECT func FROM python.backtrace WHERE func = 'spin'"))
        self.assertEqual([[1]], self.ask("SELECT count(*) > 10 FROM process.maps"))
        self.assertEqual([[1]], self.ask("SELECT rss_mb > 1 FROM memory_usage"))
        self.assertEqual([[os.environ["PATH"]]], self.ask("SELECT value FROM process.envs WHERE name = 'PATH'"))
        self.assertEqual([["/dev/null", "file"]], self.ask("SELECT target, coalesce(nullif(kind, 'device'), 'file')"
                                                           " FROM process.fds WHERE fd = 0"))
        (version, command), = self.ask("SELECT python, command FROM system.process WHERE pid = %d" % self.pid)
        self.assertRegex(version, r"^\d\.\d+$")
        self.assertIn("without_main.py", command)

    def ask(self, sql):
        done = t.probing("sql", self.pid, sql, "-f", "json", check=t.OK)
        return [list(row.values()) for row in json.loads(done.stdout)]


class Ends(t.Case):
    """It ends while somebody looks."""
    alone = True  # a stack that is read late beside other cases is not the one that was sampled

    @t.statistical("of some 200 samples two may be read late", 0.001)
    def test_recording_goes_on(self):
        for source in sources():
            with self.subTest(source=source), t.fixture("without_main.py", "--main", 2) as started:
                result, since = self.record(started, source, lambda: t.state_of(started.pid) == "Z")
                ended = {row["tid"]: row["ended"] for row in result.threads}
                self.assertEqual("Z", t.state_of(started.pid))
                if source != "poll":  # it is told of no thread's end that stays in /proc
                    self.assertIsNotNone(ended[started.pid])
                late = self.check_late(result, since)
                if source == "bpf":
                    self.assertNearlyAll(sum(s.verdict == "exact" for s in late), len(late), "read inside the interrupt")

    @t.statistical("of some 200 samples two may be read late", 0.001)
    def test_a_thread_executes_a_program(self):
        """It is the main thread then, and the process one like any other."""
        for source in sources():
            with self.subTest(source=source), t.fixture("without_main.py", "--main", 0.2, "--exec", 2) as started:
                await_main_end(started.pid)
                result, since = self.record(started, source, lambda: is_another_program(started))
                self.assertNotEqual("Z", t.state_of(started.pid))
                self.check_late(result, since)

    @t.statistical("of some 200 samples two may be read late", 0.001)
    def test_it_does_so_in_a_pause(self):
        """By a Python that lies elsewhere each time, as Debian's does not."""
        python = next((one.path for one in t.interpreters()[1:]
                       if one.path and one.place is t.MACHINE and one.version.startswith("3.1")), None)
        if python is None:
            self.skipTest("no other Python here")
        with t.fixture("without_main.py", "--main", 0.2, "--exec", 2, python=python) as started:
            await_main_end(started.pid)
            with t.recorder("--pid", started.pid, "-o", "paused.db", "-F", 199) as process:
                t.wait_for_samples("paused.db")
                os.kill(process.pid, signal.SIGUSR2)
                t.wait_until(lambda: is_another_program(started), 30, "another program")
                os.kill(process.pid, signal.SIGUSR2)
                since = self.await_late(started)
                status, _, said = t.stop_politely(process)
                self.assertEqual(t.OK, status, said)
            self.check_late(t.Recording("paused.db"), since)

    def record(self, target, source, has_changed):
        """(recording, when the samples begin that are judged) of a program that changes meanwhile."""
        with t.recorder("--pid", target.pid, "-F", 199, "-o", source + ".db", "--source", source) as process:
            t.await_recording(process)
            t.wait_until(has_changed, 30, "the change")
            since = self.await_late(target)
            status, _, said = t.stop_politely(process)
            self.assertEqual(t.OK, status, said)
        return t.Recording(source + ".db"), since

    @staticmethod
    def await_late(target):
        """Work that is not judged, as the recorder learns of a change some time later, and then some that is."""
        t.wait_for_cpu(0.2, target.pid)
        time.sleep(0.3)
        since = time.time()
        t.wait_for_cpu(0.5, target.pid)
        return since

    def check_late(self, result, since):
        self.assertEqual([None], [row["ended"] for row in result.processes])
        late = [s for s in without_nap(result) if s.timestamp > since]
        self.assertGreater(len(late), 10)
        self.assertNearlyAll(sum(is_of_spin(result.names(s.stack)) for s in late), len(late), "late in spin")
        return late

    def test_the_end_is_the_last_threads(self):
        """Which its parent sees."""
        command = t.fixture_command("without_main.py", "--main", 0.3, "--seconds", 1.5)
        parent = "import subprocess, sys, time; subprocess.run(sys.argv[1:], check=True); print(time.time())"
        began = time.time()
        done = t.probing("record", "-F", 199, "-o", "command.db", "--", t.DEBIAN_PYTHON, "-c", parent, *command, check=t.OK)
        ended = float(done.stdout.splitlines()[-1])
        result = t.Recording("command.db")
        process, = (row for row in result.processes if row["command"].endswith("1.5") and "subprocess" not in row["command"])
        left, = (row["ended"] for row in result.threads if row["tid"] == process["pid"])
        self.assertLess(left, process["ended"] - 0.5)
        self.assertTrue(began + 1.5 < process["ended"] <= ended + 0.001, (began, process, ended))
        self.assertGreaterEqual(process["ended"] + 0.001, max(s.timestamp for s in result.samples if s.pid == process["pid"]))
