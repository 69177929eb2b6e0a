# SPDX-License-Identifier: MIT
"""A recording's life: pauses, commands, limits, load, and ends of every kind."""
import contextlib
import importlib.util
import os
import pty
import re
import select
import signal
import sqlite3
import stat
import sys
import textwrap
import time
import unittest

import by_work
import probing_test as t
from probing_test import fixture, fixture_command, probing, recorder

WAIT_S = 20


def load_soak():
    spec = importlib.util.spec_from_file_location("soak", os.path.join(t.ROOT, "bench", "soak.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(path, sql):
    with contextlib.closing(t.connect(path)) as db:
        return db.execute(sql).fetchall()


def pauses(path):
    """Ends of the pauses of a recording that is being written."""
    try:
        return rows(path, "SELECT ended FROM pause ORDER BY started")
    except sqlite3.Error:
        return []


def read_line(stream, timeout_s=WAIT_S):
    ready, _, _ = select.select([stream], [], [], timeout_s)
    return stream.readline() if ready else ""


class Commands:
    """The FIFOs of a recorder, as a script has them."""

    def __init__(self, control="control", reply="reply"):
        t.wait_until(lambda: os.path.exists(reply), 15, "the FIFOs")
        self.control = os.open(control, os.O_WRONLY)
        self.reply = os.fdopen(os.open(reply, os.O_RDONLY | os.O_NONBLOCK))

    def say(self, text):
        os.write(self.control, text.encode())

    def ask(self, command):
        self.say(command + "\n")
        return read_line(self.reply).rstrip("\n")

    def close(self):
        os.close(self.control)
        self.reply.close()


@contextlib.contextmanager
def commanded(*arguments):
    """(recorder, its commands); both are ended."""
    with recorder("--control", "control,reply", "-o", "out.db", *arguments) as process:
        commands = Commands()
        try:
            yield process, commands
        finally:
            commands.close()


class Pausing:
    """The same expectations of each source."""
    source, has_native = None, True

    def names_after(self, result, since):
        """pid -> names of all functions in samples taken after that time."""
        found = {}
        for sample in result.samples:
            if sample.timestamp > since and sample.stack:
                found.setdefault(sample.pid, set()).update(result.names(sample.stack))
        return found

    def test_stacks_after_a_pause_are_right(self):
        with fixture("pauses.py") as target, \
                commanded("--pid", target.pid, "-F", 299, "--source", self.source) as (process, commands):
            t.wait_for_samples("out.db")
            os.kill(target.pid, signal.SIGUSR1)
            child = int(read_line(target.process.stdout).split("forked ")[1])
            t.wait_until(lambda: (child,) in rows("out.db", "SELECT DISTINCT pid FROM sample"), WAIT_S, "the child")
            self.assertEqual("ok pause", commands.ask("pause"))
            paused = time.time()
            os.kill(target.pid, signal.SIGUSR1)
            late = int(read_line(target.process.stdout).split("changed ")[1])
            resumed = time.time()
            self.assertEqual("ok resume", commands.ask("resume"))
            answered = time.time()
            for pid in (target.pid, child, late):
                t.wait_until(lambda pid=pid: rows("out.db", "SELECT count(*) FROM sample WHERE pid = %d AND timestamp"
                                                  " > %f" % (pid, answered))[0][0] > 20, WAIT_S, "samples of %d" % pid)
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        result = t.Recording("out.db")
        self.assertEqual([], [s for s in result.samples if paused < s.timestamp < resumed])
        names = self.names_after(result, answered)
        self.assertIn("after_exec", names[child])
        self.assertNotIn("before_exec", names[child])
        self.assertIn("forked_late", names[late])
        self.assertIn("after_change", names[target.pid])
        if self.has_native:
            self.assertTrue(any(t.same_name(name, "native_burn") for name in names[target.pid]), names[target.pid])
        (started, ended), = rows("out.db", "SELECT started, ended FROM pause")
        self.assertLess(started, paused)
        self.assertGreater(ended, resumed)

    def test_time_in_a_pause_is_in_no_sample(self):
        with fixture("demo.py") as target, commanded("--pid", target.pid, "-F", 99, "--source", self.source,
                                                     "--paused") as (process, commands):
            time.sleep(0.5)
            self.assertRegex(commands.ask("status"), "^ok paused seconds=0.0 samples=0 lost=0")
            before = target.cpu_s()
            commands.ask("resume")
            t.wait_for_samples("out.db")
            commands.ask("pause")
            used = target.cpu_s() - before
            time.sleep(0.5)
            self.assertRegex(commands.ask("status"), "^ok paused")
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        result = t.Recording("out.db")
        self.assertLess(sum(s.weight for s in result.samples) / 1e9, used * 1.02 + 0.06)
        self.assertEqual(2, rows("out.db", "SELECT count(*) FROM pause WHERE ended > started")[0][0])


class PausingRead(Pausing, t.Case):
    source = "wakeup"


class PausingPoll(Pausing, t.Case):
    source, has_native = "poll", False


class PausingBpf(Pausing, t.Case):
    source = "bpf"

    def setUp(self):
        t.need_bpf()
        super().setUp()


class Orders(t.Case):
    """Signals, FIFOs, times."""

    def test_commands_to_the_recorder_of_a_command(self):
        command = fixture_command("demo.py", "--seconds", t.LONGEST_TARGET_S)
        # Small stacks: rings hold all samples of 10 s, for which the recorder may wait for a processor.
        with commanded("--stack-bytes", 4096, "--", *command) as (process, commands):
            self.assertTrue(all(stat.S_ISFIFO(os.stat(name).st_mode) for name in ("control", "reply")))
            t.wait_for_samples("out.db")
            self.assertEqual("ok pause", commands.ask("pause"))
            self.assertEqual("ok flush", commands.ask("flush"))
            n = rows("out.db", "SELECT count(*) FROM sample")[0][0]
            self.assertRegex(commands.ask("status"), r"^ok paused seconds=[\d.]+ samples=%d lost=0 bytes=\d+$" % n)
            self.assertEqual("error unknown command 'dance'", commands.ask("dance"))
            commands.say("\n  \n")
            self.assertEqual("ok resume", commands.ask(" resume "))
            self.assertTrue(commands.ask("x" * 1000).startswith("error"))
            t.wait_until(lambda: rows("out.db", "SELECT count(*) FROM sample")[0][0] > n, WAIT_S, "more samples")
            self.assertEqual("ok stop", commands.ask("stop"))
            # Who reads it at its end would keep its log beside it.
            t.wait_until(lambda: not os.path.exists("out.db-wal"), WAIT_S, "the recording's end")
            self.assertEqual([(1,)], rows("out.db", "SELECT clean FROM run"))
            child = t.child_of(process.pid)
            os.kill(child, 0)  # the command goes on
            os.kill(child, signal.SIGTERM)
            _, said = process.communicate(timeout=WAIT_S)
        self.assertEqual(-signal.SIGTERM, process.returncode)
        self.assertIn("'dance'", said)
        self.assertEqual(["out.db"], os.listdir("."))

    def test_each_flush_is_answered(self):
        """Also one that the end of the recording overtakes, as happens to a third of these."""
        os.mkfifo("gate")
        for i in range(6):
            with commanded("--", "sh", "-c", "read line < gate") as (process, commands), open("gate", "w") as gate:
                commands.say("flush\nflush\nstop\n")
                time.sleep(0.002 * i)
                gate.write("go\n")
                gate.flush()
                process.communicate(timeout=WAIT_S)
                self.assertEqual(["ok flush", "ok flush", "ok stop"], sorted(commands.reply.read().splitlines()))

    def test_a_fifo_of_the_users_stays(self):
        os.mkfifo("mine")
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-o", "out.db", "--control", "mine") as process:
            t.wait_for_samples("out.db")
            with open("mine", "w") as control:
                control.write("status\nstop\n")
            _, said = process.communicate(timeout=WAIT_S)
        self.assertEqual(t.OK, process.returncode)
        self.assertRegex(said, r"(?m)^recording seconds=[\d.]+ samples=\d+")
        self.assertTrue(stat.S_ISFIFO(os.stat("mine").st_mode))

    def test_what_is_no_fifo_is_refused(self):
        with open("file", "w") as text:
            text.write("precious")
        with fixture("demo.py") as target:
            for control in ("file", "new,file", ".", "missing/control", "same,same"):
                said = probing("record", "--pid", target.pid, "-o", "out.db", "--control", control)
                self.assertIn(said.returncode, (t.NO_OUTPUT, t.USAGE))
                self.assertSentence(said.stderr)
        self.assertEqual(["file"], os.listdir("."))

    def test_a_pause_that_nobody_could_end_is_refused(self):
        said = probing("record", "--paused", "-o", "out.db", "--", "true", check=t.USAGE)
        self.assertIn("--control", said.stderr)

    def test_signals(self):
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-F", 499, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            process.send_signal(signal.SIGUSR2)
            t.wait_until(lambda: pauses("out.db") == [(None,)], WAIT_S, "the pause")
            n = rows("out.db", "SELECT count(*) FROM sample")[0][0]
            process.send_signal(signal.SIGUSR2)
            process.send_signal(signal.SIGUSR1)
            t.wait_until(lambda: rows("out.db", "SELECT count(*) FROM sample")[0][0] > n, WAIT_S, "more samples")
            self.assertEqual(t.OK, t.stop_politely(process)[0])

    def test_pauses_are_no_part_of_the_duration(self):
        os.mkfifo("mine")
        control = os.open("mine", os.O_RDWR)
        self.addCleanup(os.close, control)
        os.write(control, b"pause\n")  # so that it is read as soon as the recording begins
        with fixture("demo.py") as target, \
                recorder("--pid", target.pid, "-d", 1, "-o", "out.db", "--control", "mine") as process:
            t.wait_until(lambda: pauses("out.db") == [(None,)], WAIT_S, "the pause")
            time.sleep(1.5)
            self.assertIsNone(process.poll())
            resumed = time.time()
            os.write(control, b"resume\n")
            process.communicate(timeout=WAIT_S)
        run = t.Recording("out.db").run
        self.assertEqual((t.OK, 1), (process.returncode, run["clean"]))
        self.assertGreater(run["ended"], resumed)

    def test_the_time_that_is_said_is_what_was_recorded(self):
        """Not what it took to begin, of which a program for the kernel is most."""
        with fixture("demo.py") as target:
            result = by_work.record(target, 0.2, 499, "out.db")
        said, run = result.said, result.run
        seconds = float(re.search(r"samples in ([\d.]+) s", said).group(1))
        self.assertLessEqual(seconds, run["ended"] - run["started"] + 0.05, said)
        self.assertGreaterEqual(seconds, 0.2)

    def test_delay(self):
        with fixture("demo.py") as target:
            probing("record", "--pid", target.pid, "-d", 3, "-F", 199, "--delay", 1, "-o", "out.db", check=t.OK)
        result = t.Recording("out.db")
        (started, ended), = rows("out.db", "SELECT started, ended FROM pause")
        self.assertGreaterEqual(ended - started, 1)
        self.assertGreaterEqual(min(s.timestamp for s in result.samples), started + 1)
        self.assertGreaterEqual(result.run["ended"], ended + 3)

    def test_the_line_on_the_terminal(self):
        with fixture("demo.py") as target:
            pid, terminal = pty.fork()
            if pid == 0:
                os.execv(t.BINARY, [t.BINARY, "record", "--pid", str(target.pid), "--stack-bytes", "4096", "-o", "out.db"])
            shown = b""
            try:
                for wanted in (rb"\d+ s  \d+ samples  0 lost  \d+ KB", rb"KB  paused"):
                    stop = time.monotonic() + WAIT_S
                    while time.monotonic() < stop and not re.search(wanted, shown):
                        if select.select([terminal], [], [], 1)[0]:
                            shown += os.read(terminal, 4096)
                    self.assertRegex(shown, wanted)
                    os.kill(pid, signal.SIGUSR2)
                os.write(terminal, b"\x03")
                with contextlib.suppress(OSError):
                    while select.select([terminal], [], [], WAIT_S)[0]:
                        shown += os.read(terminal, 4096)
            finally:
                status = t.end(pid)
                os.close(terminal)
        self.assertEqual(0, os.waitstatus_to_exitcode(status), shown)
        self.assertRegex(shown, rb"samples in [\d.]+ s")


class Losses(t.Case):
    """The kernel drops records while the recorder does not read."""

    PROGRAM = textwrap.dedent("""\
        import json, os, signal
        begun = []
        signal.signal(signal.SIGUSR1, lambda *_: begun.append(1))
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # its ring, and no other, has to be full
        print("ready", json.dumps({"pid": os.getpid()}), flush=True)
        while not begun:
            pass
        import hashlib
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 10)
        print("done", flush=True)
        while True:
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 10000)
    """)

    def test_a_library_that_was_mapped_meanwhile(self):
        with t.target([t.DEBIAN_PYTHON, "-c", self.PROGRAM]) as target:
            with recorder("--pid", target.pid, "-F", 999, "-o", "out.db") as process:
                t.wait_for_samples("out.db")
                os.kill(process.pid, signal.SIGSTOP)
                enough = target.cpu_s() + 0.5
                t.wait_until(lambda: target.cpu_s() >= enough, 30, "500 samples with 32 KB each, for rings of 4 MB")
                os.kill(target.pid, signal.SIGUSR1)
                self.assertEqual("done\n", read_line(target.process.stdout))
                os.kill(process.pid, signal.SIGCONT)
                seen = time.time()
                t.wait_until(lambda: rows("out.db", f"SELECT count(*) FROM sample WHERE timestamp > {seen + 2}") > [(100,)],
                             30, "samples after the loss")
                t.stop_politely(process)
        result = t.Recording("out.db")
        self.assertGreater(result.counters["lost"], 0)
        after = [s for s in result.samples if s.timestamp > seen + 2]
        inside = [s for s in after if any("libcrypto" in (frame.module or "") for frame in result.path(s.stack))]
        self.assertGreater(len(inside), 0.9 * len(after))


class Ends(t.Case):
    """Whoever dies, the other is well, and the file good."""

    def test_the_target_crashes(self):
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-F", 499, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            os.kill(target.pid, signal.SIGSEGV)
            process.communicate(timeout=WAIT_S)
        result = t.Recording("out.db")
        self.assertEqual((t.OK, 1, "ok"), (process.returncode, result.run["clean"], result.integrity))

    def test_the_target_ends_in_a_pause(self):
        with fixture("demo.py") as target, commanded("--pid", target.pid) as (process, commands):
            t.wait_for_samples("out.db")
            commands.ask("pause")
            os.kill(target.pid, signal.SIGKILL)
            process.communicate(timeout=WAIT_S)
        self.assertEqual((t.OK, 1), (process.returncode, t.Recording("out.db").run["clean"]))
        self.assertEqual([(1,)], rows("out.db", "SELECT count(*) FROM pause WHERE ended > started"))

    def test_nobody_reads_what_it_says(self):
        """As with `2>&1 | head -1`: messages and report go nowhere, and the recording ends by itself."""
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-F", 499, "-d", 1, "-o", "out.db") as process:
            self.assertTrue(read_line(process.stderr))
            process.stdout.close()
            process.stderr.close()
            self.assertIn(process.wait(timeout=WAIT_S), (t.OK, t.IO))
        result = t.Recording("out.db")
        self.assertEqual((1, "ok"), (result.run["clean"], result.integrity))
        self.assertGreater(result.run["ended"] - result.run["started"], 0.9)

    def test_the_recorder_crashes(self):
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-F", 499, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            process.send_signal(signal.SIGSEGV)
            process.communicate(timeout=WAIT_S)
            before = target.cpu_s()
            t.wait_until(lambda: target.cpu_s() > before, WAIT_S, "the target to go on")
        result = t.Recording("out.db")
        self.assertEqual((-signal.SIGSEGV, 0, "ok"), (process.returncode, result.run["clean"], result.integrity))
        self.assertGreater(len(result.samples), 0)

    def test_the_recorder_of_a_command_is_killed(self):
        command = fixture_command("demo.py", "--seconds", t.LONGEST_TARGET_S)
        with recorder("-F", 499, "-o", "out.db", "--", *command) as process:
            t.wait_for_samples("out.db")
            child = t.child_of(process.pid)
            process.kill()
            process.wait()
            try:
                t.wait_until(lambda: t.state_of(child) in "RS", WAIT_S, "the command to go on")
            finally:
                os.kill(child, signal.SIGKILL)
        self.assertEqual("ok", t.Recording("out.db").integrity)


class Limits(t.Case):
    """What is kept is the newest, and all that belongs to it."""

    def check(self, path):
        wrong, figures = load_soak().judge_file(path, os.path.abspath(t.EXTENSION))
        self.assertEqual([], wrong)
        return figures

    def need_root_once(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("what is kept does not depend on who records: root's run shows it")

    def test_max_size(self):
        self.need_root_once()
        most, sizes = 1 << 20, []
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-F", 5999, "--max-size", "1M", "-o", "out.db",
                                                    "-q") as process:
            t.wait_until(lambda: os.path.exists("out.db"), WAIT_S, "the file")
            first = None
            stop = time.monotonic() + t.LONGEST_TARGET_S - 10  # on a busy machine there are few samples a second
            while time.monotonic() < stop:
                time.sleep(0.1)
                sizes.append(sum(os.path.getsize(name) for name in ("out.db", "out.db-wal") if os.path.exists(name)))
                with contextlib.suppress(sqlite3.Error):
                    oldest, = rows("out.db", "SELECT min(timestamp) FROM sample")[0]
                    first = first or oldest
                    tree, = rows("out.db", "SELECT min(stack) FROM stack")[0]
                    if oldest and oldest > first and tree > 1:  # also stacks have gone
                        break
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        figures = self.check("out.db")
        result = t.Recording("out.db")
        self.assertGreater(figures["counters"]["dropped"], 0)
        self.assertGreater(min(s.timestamp for s in result.samples), first)
        self.assertGreater(rows("out.db", "SELECT min(stack) FROM stack")[0][0], 1)
        self.assertLess(max(sizes), most * 1.5, sizes)  # readers may keep the log from being emptied
        self.assertLess(os.path.getsize("out.db"), most)
        self.assertIn("edit_distance", result.all_names())
        probing("report", "out.db", check=t.OK)

    def test_retention(self):
        self.need_root_once()
        with fixture("demo.py") as target:
            # Small stacks: rings hold all samples of 2 s, for which the recorder may wait for a processor.
            said = probing("record", "--pid", target.pid, "-F", 499, "--stack-bytes", 4096, "--retention", 1, "-d", 4, "-o", "out.db",
                           check=t.OK)
        figures = self.check("out.db")
        self.assertIn("newest", said.stderr)
        self.assertGreater(figures["counters"]["dropped"], 0)
        # a 32nd part may be older, and what the last flush brought is not looked through any more
        self.assertLess(figures["span"], 33 / 32 + 2)
        self.assertEqual(0, figures["counters"]["lost"])

    def test_limits_that_make_no_sense(self):
        for option in (("--max-size", "1K"), ("--max-size", "M"), ("--max-size", "-4M"), ("--max-size", "2X"),
                       ("--retention", "0"), ("--retention", "1w"), ("--retention", ""), ("--delay", "-2")):
            with self.subTest(option):
                said = probing("record", *option, "-o", "out.db", "--", "true", check=t.USAGE)
                self.assertRegex(said.stderr, "^probing( record)?: ")

    def test_nothing_grows(self):
        """A short soak; bench/soak.py is the long one."""
        soak = load_soak()
        looks, made, said, status = soak.soak(t.BINARY, t.BUILT_FIXTURES, 6, 20,
                                              ["-F", "499", "--retention", "4", "--max-size", "2M"], "out.db")
        self.assertEqual(t.OK, status, said)
        figures = self.check("out.db")
        self.assertGreater(min(made[what] for what in ("threads", "forks", "execs", "libraries")), 5, made)
        before, after, _ = soak.judge_growth(looks)
        self.assertEqual(soak.middle(before, "threads"), soak.middle(after, "threads"))
        # libraries that are met late keep their files open, children do not
        self.assertLess(soak.middle(after, "descriptors"), soak.middle(before, "descriptors") + 20 + made["forks"] // 3)
        self.assertLess(max(one["file"] for one in looks), (2 << 20) * 1.5)
        self.assertGreater(figures["kept"], 0)


FOUR = """
import os, sys, time
def busy(seconds):
    stop = sum(os.times()[:2]) + seconds
    while sum(os.times()[:2]) < stop:
        sum(i * i for i in range(1000))
for _ in range(4):
    if os.fork() == 0:
        busy(0.6)
        os._exit(0)
for _ in range(4):
    os.wait()
sys.stdout.write("%f" % sum(os.times()[:4]))
"""


class Load(t.Case):
    alone = True

    @t.statistical("bounds a number of samples", 0.0005)
    def test_four_busy_processes(self):
        """More of them than processors, perhaps: what is not there has been counted."""
        said = probing("record", "-F", 999, "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c", FOUR, check=t.OK)
        result = t.Recording("out.db")
        expected = float(said.stdout) * 999
        found = len(result.samples) + result.counters["lost"]
        if result.run["stack_source"] == "poll":
            raise unittest.SkipTest("looks do not sample each thread's time alike")
        self.assertGreater(found, expected * 0.85)
        self.assertLess(found, expected * 1.15)
        self.assertEqual(5, len({s.pid for s in result.samples}))


if __name__ == "__main__":
    sys.exit(unittest.main())
