# SPDX-License-Identifier: MIT
"""probing record: attaching, launching, ending, and everything that can go wrong."""
import contextlib
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import by_work
import probing_test as t
from probing_test import fixture, fixture_command, probing, record, recorder

BUSY = 'i=0; while [ $i -lt %d ]; do i=$((i+1)); done'
FOR_LONG = 20000000  # half a minute, and not for ever should anything go wrong
# Works until SIGUSR1, then ends by itself.
UNTIL_TOLD = """
import signal
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
def work():
    while not told:
        sum(range(1000))
print("ready {}", flush=True)
work()
"""
# The demonstration load for some CPU time, in one thread.
DEMO_FOR = """
import sys, time
sys.path.insert(0, %r)
import demo
while time.process_time() < %g:
    demo.process(60)
print("done", flush=True)
"""


def demo_command(cpu_s):
    return [t.DEBIAN_PYTHON, "-B", "-c", DEMO_FOR % (t.FIXTURES, cpu_s)]


class Attach(t.Case):
    def test_writes_what_was_recorded(self):
        with fixture("demo.py") as target:
            result = record(target.pid, 2, 199)
        self.assertEqual("ok", result.integrity)
        self.assertEqual((target.pid, 199, "cpu", 1), tuple(result.run[k] for k in ("pid", "hz", "mode", "clean")))
        self.assertIn("demo.py", result.run["command"])
        self.assertRegex(result.run["python"], r"^3\.")
        self.assertGreater(result.run["ended"], result.run["started"])
        self.assertIn(target.pid, [process["pid"] for process in result.processes])
        self.assertEqual(len(result.samples), result.total_samples)
        self.assertEqual(len(result.samples), result.counters["samples"])
        self.assertIn("lost", result.counters)
        self.assertTrue(all(result.run["started"] - 1 <= s.timestamp <= result.run["ended"] + 1
                            for s in result.samples))

    def test_weights_add_up_to_the_cpu_time(self):
        with fixture("native_only", "threads") as target:
            before = target.cpu_s()
            with recorder("--pid", target.pid, "-F", 499, "-o", "out.db") as process:
                t.wait_for_samples("out.db")
                began = target.cpu_s()
                t.wait_until(lambda: target.cpu_s() > began + 1.5, 40, "the target to run")
                ended = target.cpu_s()
                self.assertEqual(0, t.stop_politely(process)[0])
            used = target.cpu_s() - before
        recorded = sum(sample.weight for sample in t.Recording("out.db").samples) / 1e9
        # the target also works while the recorder starts and ends
        self.assertLess(recorded, used * 1.02 + 0.05)
        self.assertGreater(recorded, (ended - began) * 0.98 - 0.05)

    def test_duration_is_real_time(self):
        """Not CPU time: of that, two threads have twice as much, and sleeping ones hardly any. Load only makes a recording longer, and
        its samples fewer: the other bounds hold for the best of three recordings."""
        for arguments in ("native_only", "threads"), ("threads.py", "--idle", 1):
            with self.subTest(arguments), fixture(*arguments) as target:
                results = [record(target.pid, 0.7, 999, "%d.db" % i) for i in range(3)]
            lasted = [result.run["ended"] - result.run["started"] for result in results]
            self.assertGreaterEqual(min(lasted), 0.7)
            self.assertLess(min(lasted), 1.2, lasted)
            if arguments[0] == "native_only":
                spans = [result.samples[-1].timestamp - result.samples[0].timestamp if result.samples else 0 for result in results]
                self.assertTrue(all(span <= seconds for span, seconds in zip(spans, lasted)), (spans, lasted))
                self.assertGreater(max(spans), 0.42, spans)

    def test_target_is_neither_stopped_nor_traced(self):
        with fixture("threads.py", "--busy", 2) as target:
            with recorder("--pid", target.pid, "-F", 999, "-o", "out.db") as process:
                seen, n_looks, enough = set(), 0, target.cpu_s() + 1
                while n_looks < 300 or target.cpu_s() < enough:
                    self.assertIsNone(process.poll())
                    seen |= states(target.pid)
                    n_looks += 1
                    time.sleep(0.002)
                self.assertEqual(0, t.stop_politely(process)[0])
            self.assertTrue(target.is_running())
        self.assertEqual({"0"}, {tracer for tracer, _ in seen})
        self.assertLessEqual({state for _, state in seen}, set("RSD"))

    def test_losses_are_said(self):
        with fixture("demo.py") as target:
            said = by_work.record(target, 1, 99, "out.db").said
        self.assertRegex(said, r"\b\d+ (samples )?lost\b|\blost:? +\d+|no(ne| samples)? lost")

    def test_ends_with_the_target(self):
        with t.target([t.DEBIAN_PYTHON, "-c", UNTIL_TOLD]) as target, \
                recorder("--pid", target.pid, "-F", 999, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            t.wait_for_cpu(0.2, target.pid)
            os.kill(target.pid, signal.SIGUSR1)
            self.assertEqual(0, wait(process))
        result = t.Recording("out.db")
        self.assertEqual(1, result.run["clean"])
        self.assertGreater(len(result.samples), 20)

    def test_default_file_and_rate(self):
        with fixture("demo.py") as target:
            probing("record", "--pid", target.pid, "-d", 1, check=t.OK)
        self.assertEqual(99, t.Recording("probing.db").run["hz"])

    def test_short_report_at_the_end(self):
        with fixture("demo.py") as target:
            said = by_work.record(target, 2, 99, "out.db").said
        self.assertIn("edit_distance", said)

    def test_existing_file_is_kept(self):
        with open("out.db", "w") as old:
            old.write("precious")
        with fixture("demo.py") as target:
            said = probing("record", "--pid", target.pid, "-d", 0.5, "-o", "out.db", check=t.OK)
        self.assertIn("out.db.old", said.stderr)
        with open("out.db.old") as old:
            self.assertEqual("precious", old.read())
        self.assertEqual("ok", t.Recording("out.db").integrity)

    def test_not_python_is_recorded_natively_and_said(self):
        with fixture("native_only", "threads") as target:
            result = by_work.record(target, 1, 199, "out.db")
        self.assertRegex(result.said, "(?i)no(t| ).*python")
        self.assertIsNone(result.run["python"])
        self.assertEqual({"no_python"}, set(result.verdicts()))

    def test_virtual_environment(self):
        subprocess.run([t.DEBIAN_PYTHON, "-m", "venv", "--without-pip", "--symlinks", "a venv"], check=True)
        command = fixture_command("demo.py", "--seconds", t.LONGEST_TARGET_S, python=os.path.abspath("a venv/bin/python"))
        with t.target(command) as target:
            result = by_work.record(target, 1, 199)
        self.assertIn("edit_distance", result.all_names())

    def test_readable_while_it_is_written(self):
        with fixture("demo.py") as target, \
                recorder("--pid", target.pid, "-F", 499, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            first = count_samples("out.db")
            t.wait_until(lambda: count_samples("out.db") > first, 30, "more samples")
            said = probing("sql", "out.db", "SELECT count(*) FROM sample", "-f", "csv", check=t.OK)
            self.assertGreater(int(said.stdout.split()[-1]), first)
            self.assertEqual(0, t.stop_politely(process)[0])


def states(pid):
    """(TracerPid, state) of all threads of a process at this moment."""
    found = set()
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/status" % (pid, tid)) as status:
            fields = dict(line.split(":", 1) for line in status)
            found.add((fields["TracerPid"].strip(), fields["State"].split()[0]))
    return found


def read_all(terminal, timeout_s=20):
    """What a terminal shows until nobody writes to it any more."""
    shown = b""
    while select.select([terminal], [], [], timeout_s)[0]:
        try:
            text = os.read(terminal, 4096)
        except OSError:  # the other side is gone
            break
        shown += text
    return shown.decode("utf-8", "replace")


def wait(process, timeout_s=20):
    process.communicate(timeout=timeout_s)
    return process.returncode


def is_clean(path):
    """Whether a recording has been written to its end."""
    try:
        with contextlib.closing(t.connect(path)) as db:
            return db.execute("SELECT clean FROM run").fetchall() == [(1,)]
    except t.sqlite3.Error:
        return False


def newest_sample(path):
    with contextlib.closing(t.connect(path)) as db:
        return db.execute("SELECT max(timestamp) FROM sample").fetchone()[0]


def count_samples(path):
    with contextlib.closing(t.connect(path)) as db:
        return db.execute("SELECT count(*) FROM sample").fetchone()[0]


class Ending(t.Case):
    """However a recorder ends, the file is good and the target lives on."""

    def end_by(self, number):
        with fixture("demo.py") as target, \
                recorder("--pid", target.pid, "-F", 499, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            status, _, _ = t.stop_politely(process, number)
            self.assertTrue(target.is_running())
        return status, t.Recording("out.db")

    def test_interrupt_finishes(self):
        status, result = self.end_by(signal.SIGINT)
        self.assertEqual((0, 1), (status, result.run["clean"]))
        self.assertFalse(os.path.exists("out.db-wal"))

    def test_terminate_finishes(self):
        status, result = self.end_by(signal.SIGTERM)
        self.assertEqual((0, 1), (status, result.run["clean"]))

    def test_kill_leaves_all_but_the_last_second(self):
        with fixture("demo.py") as target, \
                recorder("--pid", target.pid, "-F", 499, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            flushed = [newest_sample("out.db")]  # what has reached the file, flush by flush
            began, gaps_s = None, []
            while len(gaps_s) < 3:
                t.wait_until(lambda: newest_sample("out.db") > flushed[-1], 30, "another flush")
                began, before = time.monotonic(), began
                gaps_s += [began - before] if before else []
                flushed.append(newest_sample("out.db"))
            process.kill()
            process.wait()
            before = target.cpu_s()
            t.wait_until(lambda: target.cpu_s() > before, 30, "the target to go on")
            self.assertEqual({("0")}, {tracer for tracer, _ in states(target.pid)})
            result = t.Recording("out.db")
        self.assertEqual("ok", result.integrity)
        self.assertEqual((0, None), (result.run["clean"], result.run["ended"]))
        # A recorder or a target that waits for a processor flushes later, or has nothing to flush, but never more often.
        self.assertLess(min(gaps_s), 1.7, gaps_s)
        self.assertGreaterEqual(result.samples[-1].timestamp, flushed[-1])
        self.assertIn("edit_distance", result.all_names())
        probing("report", "out.db", check=t.OK)

    def test_full_disk(self):
        t.need_root()
        os.mkdir("small")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", "small"], stderr=subprocess.PIPE)
        if mounted.returncode != 0:
            raise unittest.SkipTest("may not mount a tmpfs: %s" % mounted.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", os.path.abspath("small")], check=True)
        with fixture("demo.py") as target:
            said = probing("record", "--pid", target.pid, "-F", 1999, "-o", "small/out.db", check=t.IO,
                           timeout=2 * t.LONGEST_TARGET_S)
            self.assertTrue(target.is_running())
        self.assertRegex(said.stderr, "small/out.db.*(?i:full|no space)|(?i:full|no space).*small/out.db")
        shutil.copy("small/out.db", "out.db")
        if os.path.exists("small/out.db-wal"):
            shutil.copy("small/out.db-wal", "out.db-wal")
        result = t.Recording("out.db")
        self.assertEqual("ok", result.integrity)
        self.assertGreater(len(result.samples), 0)
        self.assertEqual(0, result.run["clean"])


class Launch(t.Case):
    """record -- CMD: as if the command had been run without us."""

    def launch(self, *command, options=("-o", "out.db"), **more):
        return probing("record", *options, "--", *command, **more)

    def test_records_from_the_start(self):
        self.launch(*demo_command(1.5), options=("-F", "499", "-o", "out.db"), check=0)
        result = t.Recording("out.db")
        self.assertEqual(1, result.run["clean"])
        self.assertIn("import demo", result.run["command"])
        names = result.all_names()
        self.assertIn("edit_distance", names)
        # imports happen only at the start
        self.assertTrue(any(name.startswith("_find_and_load") for name in names), sorted(names)[:50])

    def test_exit_status(self):
        self.launch("sh", "-c", "exit 7", check=7)
        self.launch("true", check=0)

    def test_death_by_a_signal_is_the_recorders_own(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            with self.subTest(number):
                self.launch("sh", "-c", "kill -%d $$" % number, check=-number)

    def test_input_and_output_pass_through(self):
        with open("input", "w") as text:
            text.write("one\ntwo\n")
        with open("input") as text:
            said = self.launch("sh", "-c", "cat; echo aside >&2", stdin=text, check=0)
        self.assertEqual("one\ntwo\n", said.stdout)
        self.assertIn("aside\n", said.stderr)

    def test_arguments_and_environment_pass_through(self):
        said = self.launch("sh", "-c", 'echo "$1" "$GREETING"', "sh", "--pid -o x",
                           env=dict(os.environ, GREETING="hello"), check=0)
        self.assertEqual("--pid -o x hello\n", said.stdout)

    def test_no_such_command(self):
        said = self.launch("no-such-command", check=t.NOT_FOUND)
        self.assertSentence(said.stderr, "no-such-command")
        self.assertEqual([], os.listdir("."))

    def test_command_that_cannot_be_executed(self):
        with open("plain", "w") as text:
            text.write("plain text")
        said = self.launch("./plain", check=t.NOT_EXECUTABLE)
        self.assertSentence(said.stderr, "plain")
        self.assertEqual(["plain"], os.listdir("."))

    def test_failed_launch_keeps_an_older_recording(self):
        self.launch("sh", "-c", BUSY % 200000, check=0)
        before = t.Recording("out.db").run["started"]
        self.launch("no-such-command", check=t.NOT_FOUND)
        self.assertEqual(before, t.Recording("out.db").run["started"])

    def test_interrupt_from_the_terminal(self):
        """Ctrl-C reaches command and recorder; the command hears it once, the recorder finishes."""
        script = 'trap "echo caught; exit 5" INT; echo set; ' + BUSY % FOR_LONG
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(t.BINARY, [t.BINARY, "record", "-F", "499", "-o", "out.db", "--", "sh", "-c", script])
        try:
            shown = ""
            while "set\r\n" not in shown:
                shown += os.read(terminal, 4096).decode()
            t.wait_for_samples("out.db")
            os.write(terminal, b"\x03")
            shown += read_all(terminal)
        finally:
            os.close(terminal)
            status = t.end(pid)
        self.assertEqual(5, os.waitstatus_to_exitcode(status), shown)
        self.assertEqual(1, shown.count("caught"), shown)
        self.assertEqual(1, t.Recording("out.db").run["clean"])

    def test_signals_reach_the_command(self):
        script = 'trap "echo caught; exit 5" %s; echo set; ' + BUSY % FOR_LONG
        for name in ("TERM", "HUP", "USR1", "INT"):
            with self.subTest(name), recorder("-o", "out.db", "--", "sh", "-c", script % name) as process:
                self.assertEqual("set\n", process.stdout.readline())
                process.send_signal(getattr(signal, "SIG" + name))
                out, _ = process.communicate(timeout=20)
                self.assertEqual((5, "caught\n"), (process.returncode, out))

    def test_duration_ends_the_recording_not_the_command(self):
        os.mkfifo("gate")
        with recorder("-d", "0.5", "-o", "out.db", "--", "sh", "-c", "read line < gate; echo done") as process:
            t.wait_until(lambda: is_clean("out.db"), 30, "the end of the recording")
            with open("gate", "w") as gate:  # waits for the command, which reads
                ended = time.time()
                gate.write("go\n")
            self.assertEqual((0, "done\n"), (process.wait(30), process.stdout.read()))
        result = t.Recording("out.db")
        self.assertGreaterEqual(result.run["ended"] - result.run["started"], 0.5)
        self.assertLess(result.run["ended"], ended)

    def test_a_command_shorter_than_a_period(self):
        """The kernel accounts its CPU time, so the recording holds that time; a timer of one second of it cannot expire."""
        done = self.launch("true", options=("-F", "1", "-o", "out.db"), check=0)
        self.assertRegex(done.stderr, r"(?m)^0 samples in ")
        self.assertNotIn("reach the thread's start", done.stderr)
        result = t.Recording("out.db")
        self.assertEqual({("[not sampled]",)}, {tuple(result.names(sample.stack)) for sample in result.samples})
        self.assertEqual({"true"}, {process["name"] for process in result.processes})
        self.assertIn("[not sampled]", probing("report", "out.db", check=t.OK).stdout)
        probing("flamegraph", "out.db", "-o", "out.svg", check=t.OK)

    def test_a_recording_of_no_samples(self):
        """No thread has the name that the filter asks for."""
        self.launch("true", options=("--threads", "nobody", "-o", "out.db"), check=0)
        result = t.Recording("out.db")
        self.assertEqual(("ok", 1), (result.integrity, result.run["clean"]))
        for verb in (["report", "out.db"], ["flamegraph", "out.db", "-o", "out.svg"]):
            self.assertSentence(probing(*verb, check=t.BAD_DATA).stderr, "out.db", "no samples")
        self.assertEqual(["out.db"], os.listdir("."))


class Mistakes(t.Case):
    """One sentence, the documented status, nothing left behind."""

    def refuse(self, status, *arguments, patterns=()):
        said = probing(*arguments, check=status)
        self.assertSentence(said.stderr, *patterns)
        self.assertEqual("", said.stdout)
        self.assertEqual([], os.listdir("."))

    def test_arguments(self):
        for arguments in (["record"], ["record", "--pid", "x"], ["record", "--pid", "-4"],
                          ["record", "--pid", "1", "--", "true"], ["record", "--pid", "1", "-F", "0"],
                          ["record", "--pid", "1", "-F", "many"], ["record", "--pid", "1", "-d", "-1"],
                          ["record", "--pid", "1", "-d", "soon"], ["record", "--nonsense", "--", "true"],
                          ["record", "--"], ["nonsense"]):
            with self.subTest(arguments):
                said = probing(*arguments, check=t.USAGE)
                self.assertRegex(said.stderr, "^probing( record)?: ")
                self.assertLessEqual(len(said.stderr.splitlines()), 2, said.stderr)
                self.assertEqual([], os.listdir("."))

    def test_no_verb_shows_the_verbs(self):
        said = probing(check=t.USAGE)
        self.assertIn("record", said.stderr)

    def test_help(self):
        for arguments in (["--help"], ["record", "--help"], ["flamegraph", "--help"], ["sql", "--help"],
                          ["report", "--help"]):
            with self.subTest(arguments):
                said = probing(*arguments, check=t.OK)
                self.assertGreater(len(said.stdout.splitlines()), 3)

    def test_version(self):
        self.assertRegex(probing("--version", check=t.OK).stdout, r"^probing \d+\.\d+\.\d+")

    def test_no_such_process(self):
        process = subprocess.Popen(["true"])
        process.wait()
        self.refuse(t.NO_INPUT, "record", "--pid", process.pid, "-o", "out.db", patterns=[str(process.pid)])

    def test_output_in_a_folder_that_is_not_there(self):
        with fixture("demo.py") as target:
            self.refuse(t.NO_OUTPUT, "record", "--pid", target.pid, "-d", 1, "-o", "missing/out.db",
                        patterns=["missing/out.db"])

    def test_output_that_is_a_folder(self):
        with fixture("demo.py") as target, tempfile.TemporaryDirectory() as folder:
            self.refuse(t.NO_OUTPUT, "record", "--pid", target.pid, "-d", 1, "-o", folder)


class Permissions(t.Case):
    """What an ordinary user may and may not."""

    def test_another_users_process_is_refused(self):
        if os.geteuid() == 0:
            said = self.as_nobody(os.getpid())
        else:
            said = probing("record", "--pid", 1, "-d", 1, "-o", "out.db")
        self.assertEqual(t.NOT_PERMITTED, said.returncode, said.stderr)
        self.assertSentence(said.stderr, "CAP_[A-Z_]+|root|kernel\\.[a-z_]+|user")
        self.assertEqual([], [name for name in os.listdir(".") if name.endswith(".db")])

    def as_nobody(self, pid):
        """The recorder as user 65534, in a folder and from a copy which that user can reach."""
        shutil.copy(t.BINARY, "probing")
        os.chmod(".", 0o777)
        return subprocess.run([t.need_program("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups",
                               os.path.abspath("probing"), "record", "--pid", str(pid), "-d", "1", "-o", "out.db"],
                              text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_own_process_as_an_ordinary_user(self):
        if os.geteuid() == 0:
            raise unittest.SkipTest("is about ordinary users; root is not one")
        with fixture("demo.py") as target:
            # Small stacks: rings hold all samples of 3 s, for which the recorder may wait for a processor.
            result = by_work.record(target, 1.5, 299, "probing.db", "--stack-bytes", 4096)
        self.assertGreater(len(result.samples), 40)
        self.assertIn("edit_distance", result.all_names())
        self.assertEqual(0, result.counters["lost"])


if __name__ == "__main__":
    sys.exit(unittest.main())
