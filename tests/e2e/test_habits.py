# SPDX-License-Identifier: MIT
"""What people type in py-spy, perf, austin and the older probing, and what they expect of it."""
import contextlib
import glob
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import probing_test as t
from probing_test import probing
from test_targets import Scratch, need_memory

BUSY = """
import threading, time
def work(until):
    while time.monotonic() < until:
        sum(range(300))
def helper_work(until):
    work(until)
until = time.monotonic() + %d
helper = threading.Thread(target=helper_work, args=(until,), daemon=True)
helper.start()
print('ready {"tid": %%d}' %% getattr(helper, "native_id", 0), flush=True)
work(until)
""" % t.LONGEST_TARGET_S

SLEEPY = "import time; print('ready {}', flush=True); time.sleep(%d)" % t.LONGEST_TARGET_S

# A server as gunicorn is one: it forks its workers, and sleeps.
PREFORK = """
import os, signal, time
def serve():
    until = time.monotonic() + %d
    while time.monotonic() < until:
        sum(range(300))
children = []
for i in range(2):
    pid = os.fork()
    if pid == 0:
        serve()
        os._exit(0)
    children.append(pid)
signal.signal(signal.SIGTERM, lambda *_: [os.kill(pid, 9) for pid in children] and os._exit(0))
print('ready {"children": %%s}' %% children, flush=True)
while True:
    time.sleep(1)
""" % t.LONGEST_TARGET_S


@contextlib.contextmanager
def program(code, *arguments):
    with t.target([t.DEBIAN_PYTHON, "-c", code] + list(arguments)) as started:
        yield started


@contextlib.contextmanager
def prefork():
    with program(PREFORK) as master:
        try:
            yield master
        finally:
            for pid in master.truth["children"]:
                os.kill(pid, signal.SIGKILL)


def is_asleep(pid):
    """Whether all threads of a process sleep in the kernel."""
    states = []
    for path in glob.glob("/proc/%d/task/*/stat" % pid):
        with open(path) as stat:
            states.append(stat.read().rpartition(")")[2].split()[0])
    return set(states) == {"S"}


class Habit(Scratch):
    def setUp(self):
        need_memory()
        super().setUp()

    def record(self, *arguments, until=(), **more):
        """(stdout, stderr) of record, until each of these processes has computed for 0.4 s, however long a busy machine takes for that."""
        with t.recorder(*arguments, **more) as recorder:
            said = t.await_recording(recorder)
            for pid in until:
                t.wait_for_cpu(0.4, pid)
            status, out, rest = t.stop_politely(recorder)
        self.assertEqual(t.OK, status, said + rest)
        return out, said + rest

    def run_column(self, path, column):
        with contextlib.closing(t.connect(path)) as db:
            return db.execute("SELECT %s FROM run" % column).fetchone()[0]

    def rows(self, path, sql):
        with contextlib.closing(t.connect(path)) as db:
            return db.execute(sql).fetchall()


class RecordAndExport(Habit):
    def test_the_ending_says_what_is_written(self):
        signs = {"p.svg": "<svg", "p.html": "<html", "p.json": "speedscope", "p.folded": "work ", "p.trace.json": "traceEvents"}
        with program(BUSY) as target:
            for name, sign in signs.items():
                _, said = self.record("-o", name, "--pid", target.pid, "-F", 499, until=[target.pid])
                recording = re.sub(r"\.\w+$", ".db", name)
                with open(name, encoding="utf-8", errors="replace") as file:
                    self.assertIn(sign, file.read(), name)
                self.assertIn("written to " + recording, said)
                self.assertIn("wrote " + name, said)
                self.assertGreater(self.rows(recording, "SELECT count(*) FROM sample")[0][0], 0)
        self.assertEqual({"p.db", "p.db.old", "p.trace.db"} | set(signs), set(os.listdir()))

    def test_an_ending_that_nobody_writes_is_refused_first(self):
        with program(BUSY) as target:
            begun = time.monotonic()
            done = probing("record", "-o", "p.pdf", "-p", target.pid, "-d", 50, check=t.USAGE)
            self.assertLess(time.monotonic() - begun, 50, "it has not recorded before")
        self.assertRegex(done.stderr, r"no format ends in \.pdf.*\.svg.*speedscope")
        self.assertEqual([], os.listdir())

    def test_a_place_that_cannot_be_written_is_refused_first(self):
        with program(BUSY) as target:
            probing("record", "-o", "missing/p.svg", "-p", target.pid, "-d", 30, check=t.NO_OUTPUT)
        self.assertEqual([], os.listdir())

    def test_format_alone_and_with_a_recording(self):
        command = ("--", t.DEBIAN_PYTHON, "-c", "import time\nwhile time.process_time() < 0.2: sum(range(300))")
        probing("record", "-f", "raw", *command, check=t.OK)
        self.assertEqual({"probing.db", "flamegraph.folded"}, set(os.listdir()))
        probing("record", "-f", "flamegraph", "-o", "run.db", *command, check=t.OK)
        self.assertTrue({"run.db", "run.svg"} <= set(os.listdir()))

    def test_stdout_leaves_no_file(self):
        os.mkdir("tmp")
        with program(BUSY) as target:
            folded, _ = self.record("-f", "raw", "-o", "-", "-p", target.pid, "-F", 999, until=[target.pid],
                                    env=dict(os.environ, TMPDIR=os.path.abspath("tmp")))
        self.assertRegex(folded, r"(?m);work .* \d+$")
        self.assertEqual((["tmp"], []), (os.listdir(), os.listdir("tmp")))

    def test_a_command_keeps_its_exit_status(self):
        code = "import sys, time\nwhile time.process_time() < 0.4: sum(range(300))\nsys.exit(3)"
        probing("record", "-o", "p.svg", "--", t.DEBIAN_PYTHON, "-c", code, check=3)
        with open("p.svg", encoding="utf-8") as file:
            self.assertIn("<svg", file.read())

    def test_no_samples_no_picture(self):
        with program(SLEEPY) as target:
            t.wait_until(lambda: is_asleep(target.pid), what="the program to sleep")
            done = probing("record", "-o", "p.svg", "-p", target.pid, "-d", "300ms", check=t.BAD_DATA)
        self.assertIn("has no samples", done.stderr)
        self.assertFalse(os.path.exists("p.svg"))

    def test_py_spys_line(self):
        with program(BUSY) as target:
            done = probing("record", "-n", "-s", "-t", "-g", "-r", 499, "-d", "2s", "-f", "raw", "-o", "-",
                           "--nonblocking", "--full-filenames", "--pid", target.pid, check=t.OK)
            self.assertIn("helper_work", done.stdout)
            roots = {line.split(";")[1] if len(line.split(";")) > 1 else "" for line in done.stdout.splitlines()}
            self.assertGreaterEqual(len({line.split(";")[0] for line in done.stdout.splitlines()} | roots), 2)
            self.record("--threads", "-p", target.pid, "-F", 999, "-o", "t.folded", until=[target.pid])
            with open("t.folded", encoding="utf-8") as file:
                self.assertRegex(file.read(), r"\(%d\);" % target.truth["tid"])

    def test_idle_threads(self):
        with program(SLEEPY) as target:
            probing("record", "-i", "-d", "500ms", "-o", "p.svg", target.pid, check=t.OK)
        self.assertGreater(os.path.getsize("p.svg"), 0)

    def test_unlimited_is_until_it_is_ended(self):
        with program(BUSY) as target, t.recorder("-d", "unlimited", "-o", "p.svg", "-p", target.pid) as recorder:
            t.wait_for_samples("p.db")
            t.stop_politely(recorder)
            self.assertEqual(t.OK, recorder.returncode)
        self.assertTrue(os.path.exists("p.svg"))


class Whom(Habit):
    def test_a_bare_pid(self):
        with program(BUSY) as target:
            self.record(target.pid, until=[target.pid])
            self.assertEqual([(target.pid,)], self.rows("probing.db", "SELECT DISTINCT pid FROM sample"))

    def test_lists_do_not_swallow_options(self):
        with program(BUSY) as target:
            done = probing("record", "--comm", "-p", target.pid, check=t.USAGE)
            self.assertIn("--comm needs a value, and -p is an option", done.stderr)
            probing("record", "--threads", "-p", target.pid, "-d", "300ms", check=t.OK)

    def test_perfs_line(self):
        with program(BUSY) as target:
            begun = time.monotonic()
            probing("record", "-F", 99, "-g", "--call-graph", "dwarf", "-p", target.pid, "-o", "perf.data", "--", "sleep", "3",
                    check=t.OK)
            self.assertGreaterEqual(time.monotonic() - begun, 3)
            done = probing("report", "-i", "perf.data", "--stdio", "--no-children", check=t.OK)
        self.assertIn("work", done.stdout)

    def test_all_processes(self):
        with program(BUSY) as target:
            probing("record", "-a", "-F", 49, "-q", "-d", "2s", "--no-native", check=t.OK)
            self.assertIn((target.pid,), self.rows("probing.db", "SELECT DISTINCT pid FROM sample"))

    def test_one_thread(self):
        with program(BUSY) as target:
            tid = target.truth["tid"]
            self.record("-t", tid, "-F", 499, until=[target.pid])
            self.assertEqual([(target.pid, tid)], self.rows("probing.db", "SELECT DISTINCT pid, tid FROM sample"))
        probing("record", "-t", 4194000, "-d", 1, check=t.NO_INPUT)

    def test_austins_line(self):
        with program(BUSY) as target:
            probing("record", "-i", "10ms", "-x", "300ms", "-C", "-p", target.pid, "-o", "a.db", check=t.OK)
            probing("record", "-i", "5000", "-d", "300ms", "-p", target.pid, "-o", "b.db", check=t.OK)
        self.assertAlmostEqual(100, self.run_column("a.db", "hz"), places=3)
        self.assertAlmostEqual(200, self.run_column("b.db", "hz"), places=3)

    def test_a_sleeping_master_names_its_workers(self):
        with prefork() as master:
            done = probing("record", "--pid", master.pid, "-d", "500ms", check=t.OK)
            self.assertIn("probing record --pid %d --subprocesses" % master.pid, done.stderr)
            for pid in master.truth["children"]:
                self.assertIn(str(pid), done.stderr)
            self.record("--pid", master.pid, "-s", "-F", 499, until=master.truth["children"])
            self.assertEqual(set(master.truth["children"]),
                             {pid for (pid,) in self.rows("probing.db", "SELECT DISTINCT pid FROM sample")} - {master.pid})
        split = probing("flamegraph", "-f", "raw", "-o", "-", check=t.OK).stdout
        merged = probing("flamegraph", "-f", "raw", "-o", "-", "--merge-processes", check=t.OK).stdout
        in_serve = re.compile(r"(?m)^.*;serve \S+ \d+$|^.*;serve \([^)]*\) \d+$")
        self.assertGreater(len(in_serve.findall(split)), len(in_serve.findall(merged)))
        self.assertRegex(split, r"\(%d\);" % master.truth["children"][0])
        self.assertNotRegex(merged, r"\(%d\);" % master.truth["children"][0])

    def check_joining(self, source):
        marker = "marker-%d" % os.getpid()
        with t.recorder("--cmdline", "mark?r-%d" % os.getpid(), "--wait", "-F", 499, "-d", 300, "-o", "m.db",
                        "--source", source) as recorder:
            self.assertIn("waiting for a process", recorder.stderr.readline())
            with program(BUSY, marker) as first:
                t.wait_for_samples("m.db")
                with program(BUSY, marker) as second:
                    t.wait_until(lambda: (second.pid,) in self.rows("m.db", "SELECT DISTINCT pid FROM sample"),
                                 what="samples of the second process")
                    said = t.stop_politely(recorder)[2]
        self.assertIn((first.pid,), self.rows("m.db", "SELECT DISTINCT pid FROM sample"))
        self.assertRegex(said, r"[1-9]\d* more process(es were| was) recorded, started meanwhile")

    def test_by_command_line_also_those_to_come(self):
        self.check_joining("poll")

    def test_by_command_line_with_events(self):
        t.need_perf()
        self.check_joining("wakeup")

    def test_by_command_line_with_bpf(self):
        t.need_bpf()
        self.check_joining("bpf")

    def test_waiting_ends_when_it_is_told_to(self):
        with t.recorder("--comm", "no-such-process", "--wait") as recorder:
            self.assertIn("waiting for a process", recorder.stderr.readline())
            t.stop_politely(recorder)
            self.assertEqual(t.FAILED, recorder.returncode)
        done = probing("record", "--comm", "no-such-process", check=t.NO_INPUT)
        self.assertIn("--wait waits for one to start", done.stderr)

    def test_waits_of_one_that_joins_begin_when_it_does(self):
        if t.perf_refusal():
            raise unittest.SkipTest(t.perf_refusal())
        marker = "marker-%d" % os.getpid()
        with program(BUSY, marker) as first, \
                t.recorder("--cmdline", marker, "--mode", "wall", "-o", "m.db") as recorder:
            t.wait_for_samples("m.db")
            time.sleep(2)
            with program(SLEEPY, marker) as second:
                t.wait_until(lambda: (second.pid,) in self.rows("m.db", "SELECT DISTINCT pid FROM sample"),
                             what="samples of the second process")
                time.sleep(2)
                t.stop_politely(recorder)
        seconds = dict(self.rows("m.db", "SELECT pid, sum(weight) / 1e9 FROM sample WHERE tid = pid GROUP BY pid"))
        self.assertLess(seconds[second.pid], seconds[first.pid] - 1.5)
        self.assertGreater(seconds[second.pid], 1)


class Times(Habit):
    def test_units(self):
        with program(BUSY) as target:
            for text, seconds in (("400ms", 0.4), ("0.01m", 0.6), ("500000us", 0.5)):
                done = probing("record", target.pid, "-d", text, check=t.OK)
                took, = re.findall(r"samples? in (\d+\.\d) s", done.stderr)
                # A busy machine ends it late, but the next longer unit is 60 times as long, or more.
                self.assertGreaterEqual(float(took), seconds)
                self.assertLess(float(took), seconds * 60)
            done = probing("record", target.pid, "-d", "5parsecs", check=t.USAGE)
            self.assertIn("a time such as 10, 500ms, 2m or 1h", done.stderr)
            probing("top", target.pid, "-d", "100ms", "-w", "1m", "--once", check=t.OK)
            probing("sql", target.pid, "SELECT 1", "--timeout", "2m", check=t.OK)


class Live(Habit):
    def test_a_process_is_recorded_and_shown(self):
        os.mkdir("tmp")
        with program(BUSY) as target:
            environment = dict(os.environ, TMPDIR=os.path.abspath("tmp"))
            done = probing(target.pid, "flamegraph", "-d", "1500ms", "-o", "f.svg", check=t.OK, env=environment)
            self.assertIn("recording process %d for 1.5 s" % target.pid, done.stderr)
            done = probing("-t", target.pid, "report", "-d", "1500ms", check=t.OK, env=environment)
            self.assertIn("work", done.stdout)
            done = probing("export", target.pid, "--to", "folded", "-o", "-", "-d", "1500ms", check=t.OK, env=environment)
            self.assertIn("work", done.stdout)
            done = probing("report", "-p", target.pid, "-d", "1500ms", check=t.OK, env=environment)
            self.assertIn("recording process %d for 1.5 s" % target.pid, done.stderr)
            self.assertIn("work", done.stdout)
        self.assertEqual(([], {"tmp", "f.svg"}), (os.listdir("tmp"), set(os.listdir())))

    def test_an_interrupt_shows_what_there_is(self):
        with program(BUSY) as target:
            process = subprocess.Popen([t.BINARY, str(target.pid), "flamegraph", "-d", "1h"], stderr=subprocess.PIPE, text=True)
            with process.stderr:
                while "recording Python" not in process.stderr.readline():
                    self.assertIsNone(process.poll())
                t.wait_for_cpu(1, target.pid)
                process.send_signal(signal.SIGINT)
                self.assertEqual(t.OK, process.wait(t.HANG_S))
        self.assertTrue(os.path.exists("flamegraph.svg"))

    def test_a_terminal_shows_how_far_it_is(self):
        far_enough = r"\r[1-9]\d* s  [1-9]\d+ samples"
        ours, theirs = os.openpty()
        with program(BUSY) as target:
            process = subprocess.Popen([t.BINARY, str(target.pid), "report", "-d", "50s"], stdout=subprocess.PIPE, stderr=theirs,
                                       text=True)
            os.close(theirs)
            said = ""
            with process.stdout:
                with contextlib.suppress(OSError):  # it has ended
                    while not re.search(far_enough, said):
                        said += os.read(ours, 1 << 16).decode()
                process.send_signal(signal.SIGINT)
                report = process.stdout.read()
            status = process.wait(t.HANG_S)
        with contextlib.suppress(OSError):  # what was written since
            while part := os.read(ours, 1 << 16):
                said += part.decode()
        os.close(ours)
        self.assertEqual(t.OK, status, said + report)
        self.assertIn("work", report, said)
        self.assertRegex(said, far_enough)

    def test_nobody_there(self):
        done = probing(4194000, "flamegraph", check=t.NO_INPUT)
        self.assertIn("there is no process 4194000", done.stderr)
        done = probing("report", "-p", 4194000, check=t.NO_INPUT)
        self.assertIn("there is no process 4194000; 'probing VERB FILE --pid 4194000'", done.stderr)

    def test_a_process_of_a_recording(self):
        """-p of a named recording is a filter, wherever it is written."""
        with program(BUSY) as one, program(BUSY) as other:
            self.record("-p", "%d,%d" % (one.pid, other.pid), "-F", 499, until=[one.pid, other.pid])
        for arguments in (["probing.db", "-p", one.pid], ["-p", one.pid, "probing.db"], ["-p", one.pid, "-i", "probing.db"]):
            found = json.loads(probing("report", *arguments, "--by", "process", "--json", check=t.OK).stdout)
            self.assertEqual([one.pid], [row["pid"] for row in found["rows"]], arguments)
        both = json.loads(probing("report", "probing.db", "-p", "%d,%d" % (one.pid, other.pid), "--by", "process", "--json",
                                  check=t.OK).stdout)
        self.assertEqual({one.pid, other.pid}, {row["pid"] for row in both["rows"]})
        probing("flamegraph", "probing.db", "-p", one.pid, check=t.OK)
        with open("flamegraph.svg", encoding="utf-8") as file:
            self.assertIn("(process %d)" % one.pid, file.read())
        refused = probing("export", "probing.db", "-p", one.pid, "--to", "sqlite", check=t.USAGE)
        self.assertIn("omit the options that filter its stacks", refused.stderr)
        refused = probing("report", "-p", "%d,%d" % (one.pid, other.pid), check=t.USAGE)
        self.assertIn("-p without a recording takes one process id", refused.stderr)
        probing("report", "probing.db", "-p", "python3", check=t.USAGE)
        probing("report", "probing.db", "-p", one.pid, "-p", other.pid, check=t.USAGE)


class Reports(Habit):
    def test_not_cut_without_a_terminal_and_as_wide_as_columns_says(self):
        folder = "a-folder-with-a-name-" + 60 * "x"
        os.mkdir(folder)
        path = os.path.join(os.path.abspath(folder), "a_source.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import time\ndef a_function_of_24_columns():\n    end = time.process_time() + 1\n"
                       "    while time.process_time() < end:\n        sum(range(300))\n"
                       "a_function_of_24_columns()\n")
        probing("record", "-q", "-F", 499, "--", t.DEBIAN_PYTHON, path, *40 * ["many", "words"], check=t.OK)
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        report = ("report", "--no-native", "--full-paths")
        whole = probing(*report, check=t.OK, env=environment).stdout
        self.assertRegex(whole, re.escape(path) + r":\d")
        command = probing("info", check=t.OK, env=environment).stdout
        self.assertRegex(command, r"(?m)^ +command +\S*python3 %s( many words){40}$" % re.escape(path))
        narrow = probing(*report, check=t.OK, env=dict(environment, COLUMNS="80")).stdout
        self.assertLessEqual(max(map(len, narrow.splitlines())), 80)
        self.assertIn("a_function_of_24_columns", narrow)
        self.assertRegex(narrow, r" …/?a?_?source\.py:\d")

    def test_annotate_prefers_sources_that_are_here(self):
        for name, part in (("gone", 0.6), ("here", 0.25)):
            with open(name + "_source.py", "w", encoding="utf-8") as file:
                file.write("import time\ndef run():\n    end = time.process_time() + %g\n    while time.process_time() < end:\n"
                           "        sum(range(300))\n" % part)
        with open("start.py", "w", encoding="utf-8") as file:
            file.write("import gone_source, here_source\ngone_source.run()\nhere_source.run()\n")
        probing("record", "-q", "-F", 499, "--", t.DEBIAN_PYTHON, "-B", os.path.abspath("start.py"), check=t.OK)
        os.remove("gone_source.py")
        done = probing("annotate", "-n", 1, "--no-native", check=t.OK)
        self.assertIn("here_source.py", done.stdout.splitlines()[0] + done.stdout.splitlines()[2])
        self.assertIn("without a source", done.stdout)

    def test_a_part_says_so_in_its_title(self):
        with program(BUSY) as target:
            self.record(target.pid, "-F", 499, until=[target.pid, target.pid])
        probing("flamegraph", "--since", "0.1", "--function", "helper_work", "-g", check=t.OK)
        with open("flamegraph.svg", encoding="utf-8") as file:
            self.assertIn("(since 0.1; in helper_work; GIL held)", file.read())
        probing("flamegraph", "--title", "Mine", "-g", check=t.OK)
        with open("flamegraph.svg", encoding="utf-8") as file:
            self.assertNotIn("GIL held", file.read())
        formats = {"part.html": "html", "part.json": "speedscope", "part.trace.json": "chrome", "part.gecko.json": "gecko",
                   "part.callgrind": "callgrind", "part.pb.gz": "pprof"}
        for name in formats:
            probing("export", "probing.db", "-o", name, "--to", formats[name], "--ignore", "helper*", check=t.OK)
            opened = gzip.open if name.endswith(".gz") else open
            with opened(name, "rb") as file:
                self.assertIn(b"(without helper*)", file.read(), name)
        probing("diff", "probing.db", "probing.db", "--focus", "work", "-o", "change.svg", check=t.OK)
        with open("change.svg", encoding="utf-8") as file:
            self.assertIn("What has changed (through work)", file.read())

    def test_a_recording_of_a_part_says_so_in_its_title(self):
        with program(BUSY) as target:
            self.record(target.pid, "-F", 499, "--function", "helper_work", "-o", "p.svg", until=[target.pid, target.pid])
        with open("p.svg", encoding="utf-8") as file:
            self.assertIn("(filtered while recording)</title>", file.read())


class Backtraces(Habit):
    THREADS = """
import sys, threading, time
def inner(data):
    while True:
        time.sleep(100)
def outer(data):
    inner(data)
def wait(event):
    event.wait()
event = threading.Event()
waiters = [threading.Thread(target=wait, args=(event,), daemon=True, name="waiter-%d" % i) for i in range(20)]
for waiter in waiters:
    waiter.start()
def places():
    frames = sys._current_frames()
    return {(frames[waiter.ident].f_code.co_qualname, frames[waiter.ident].f_lasti) for waiter in waiters}
while len(places()) > 1 or places().pop()[0] != "Condition.wait":
    time.sleep(0.01)
print("ready {}", flush=True)
outer(list(range(1000000, 1000040)))
"""
    TASKS = """
import asyncio
async def child():
    await asyncio.sleep(100)
async def main():
    tasks = [asyncio.ensure_future(child()) for i in range(30)]
    await asyncio.sleep(0)
    print("ready {}", flush=True)
    await asyncio.gather(*tasks)
asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
"""

    def test_threads_alike_are_printed_once(self):
        with program(self.THREADS) as target:
            t.wait_until(lambda: is_asleep(target.pid), what="all threads to sleep")
            text = probing("bt", target.pid, "--no-native", check=t.OK).stdout
            self.assertEqual(2, len(re.findall(r"(?m)^Thread ", text)))
            self.assertIn("and 19 threads like it: ", text)
            found = json.loads(probing("dump", "--pid", target.pid, "-j", "-n", check=t.OK).stdout)
            self.assertEqual(21, len(found["threads"]))

    def test_an_object_is_printed_once(self):
        with program(self.THREADS) as target:
            t.wait_until(lambda: is_asleep(target.pid), what="all threads to sleep")
            text = probing("dump", "--pid", target.pid, "-l", check=t.OK).stdout
        self.assertEqual(1, text.count("data = [1000000, 1000001"))
        self.assertIn("data = <same object as data in inner above>", text)

    def test_tasks_alike_are_printed_once(self):
        with program(self.TASKS) as target:
            text = probing("b", target.pid, "--async", "--no-native", check=t.OK).stdout
        self.assertIn("and 29 tasks like it: ", text)

    def test_a_missing_process(self):
        probing("dump", "--pid", 4194000, "-l", check=t.NO_INPUT)


class OlderProbing(Habit):
    def test_processes_are_listed(self):
        with program(BUSY, "listed-%d" % os.getpid()) as target:
            for verb in (["ls"], ["list", "-v"], ["l", "--tree"]):
                line, = (line for line in probing(*verb, check=t.OK).stdout.splitlines()
                         if line.split()[0] == str(target.pid))
                self.assertRegex(line, r"\s3\.\d+\s")
                self.assertIn("python3", line)

    def test_a_program_that_reads_an_interpreter_runs_none(self):
        """As a profiler does it: the file is mapped, its code is not."""
        code = ("import mmap, os, sys; file = open(sys.argv[1], 'rb'); kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); "
                "print('ready {}', flush=True); import time; time.sleep(60)")
        with t.scratch():
            shutil.copy(t.DEBIAN_PYTHON, "renamed")  # by its name it is no interpreter
            with open("libpython3.11.so.1.0", "wb") as file:
                file.write(b"\0" * 4096)
            with t.target([os.path.abspath("renamed"), "-c", code, "libpython3.11.so.1.0"]) as target:
                self.assertNotRegex(probing("list", check=t.OK).stdout, r"(?m)^ *%d " % target.pid)

    def test_short_verbs(self):
        with program(BUSY) as target:
            probing(target.pid, "b", check=t.OK)
            done = probing(target.pid, "q", "SELECT count(*) > 0 AS some FROM python.backtrace", "-f", "csv", check=t.OK)
        self.assertEqual("some\n1\n", done.stdout)

    def test_top_with_children_that_run(self):
        with prefork() as master:
            without = probing("top", master.pid, "-b", "-n", 1, "-d", 1, "--no-native", check=t.OK).stdout
            done = probing("top", "--pid", master.pid, "-s", "-b", "-n", 1, "-d", 1, "--no-native", check=t.OK).stdout
        self.assertNotIn("serve", without)
        self.assertIn("serve", done)


# Long options that are one meaning of a letter: a number of things to show or to do, the format, and who held the GIL.
SYNONYMS = [{"--rows", "--files", "--runs", "--iterations"}, {"--format", "--to", "--from"}, {"--gil", "--show-gil"}]

# Letters without a long option of their own, and the long option of other verbs that has that meaning.
ALONE = {"-p": "--pid"}


class Letters(unittest.TestCase):
    """The options of every verb, as --help lists them."""
    SAME_FOR_ALL_USERS = True

    @classmethod
    def setUpClass(cls):
        text = probing("--help", check=t.OK).stdout
        verbs = re.findall(r"(?m)^  ([a-z]+) ", text.split("Verbs:")[1].split("\n\n")[0])
        cls.help = {verb: probing(verb, "--help", check=t.OK).stdout for verb in verbs}
        with open(os.path.join(t.ROOT, "docs", "habits.md"), encoding="utf-8") as file:
            cls.page = file.read()

    def own(self):
        """(verb, letter, whether it takes an argument, long option)"""
        for verb, text in self.help.items():
            for letters, long, argument in re.findall(r"(?m)^  ((?:-\w, )+)(--[\w-]+)(=?)", text):
                for letter in re.findall(r"-\w", letters):
                    yield verb, letter, bool(argument), long
            for letter in re.findall(r"(?m)^  (-\w) [A-Z]", text):
                yield verb, letter, True, ALONE[letter]

    def others(self):
        for verb, text in self.help.items():
            listed = re.sub(r"\s+", " ", text).partition("Options of other tools: ")[2].partition(".")[0]
            for letter, argument, means in re.findall(r"(?:^|, )(-\w)( [XN])? \(([^)]*)\)", listed):
                yield verb, letter, bool(argument), means.partition("=")[0]

    def meaning(self, long):
        return next((min(names) for names in SYNONYMS if long in names), long)

    def test_a_letter_has_one_meaning_in_all_verbs(self):
        meanings = {}
        for verb, letter, has_argument, long in self.own():
            meanings.setdefault((letter, has_argument), {}).setdefault(self.meaning(long), []).append(verb)
        self.assertGreater(len(meanings), 12)
        for letter, found in meanings.items():
            self.assertEqual(1, len(found), (letter, found))

    def test_a_letter_of_another_tool_that_differs_is_documented(self):
        meanings = {}
        for verb, letter, _, long in list(self.own()) + list(self.others()):
            if long != "always on":
                meanings.setdefault(letter, set()).add(self.meaning(long))
        differing = {letter for letter, found in meanings.items() if len(found) > 1}
        listed = self.page.split("\nTools disagree", 1)[1].split("\n## ")[0]
        self.assertLessEqual({"-c", "-d", "-i", "-n", "-r", "-t"}, differing)
        self.assertLessEqual(differing, set(re.findall(r"`(-\w)`", listed)))

    def test_each_letter_is_in_the_table_of_letters(self):
        table = self.page.split("\n## Letters\n")[1].split("\n\n- ")[0]
        for verb, letter, has_argument, long in list(self.own()) + list(self.others()):
            if letter == "-h":
                continue
            shape = re.escape(letter) + (r" [A-Z=]+" if has_argument else "") + "`"
            self.assertRegex(table, r"(?m)^\|.*`%s.*\|.*\|.*(\b%s\b|every verb|\.\.\.)" % (shape, verb),
                             (verb, letter, has_argument, long))

    def test_each_option_is_in_its_column(self):
        """argp loses count of columns after some long lines with two names for one option."""
        for verb, text in self.help.items():
            self.assertNotRegex(text, r"(?m)^ +(?:-\w, ?)+ {2,}--", verb)

    def test_each_duration_takes_units(self):
        n = 0
        for verb, text in self.help.items():
            for long in re.findall(r"(--[\w-]+)=TIME", text):
                refused = probing(verb, long + "=5parsecs", check=t.USAGE)
                self.assertIn("5parsecs", refused.stderr)
                probing(verb, long + "=0.05m", "--help", check=t.OK)
                n += 1
            self.assertNotRegex(text, r"(?i)--[\w-]+=(SECONDS|SECS?|MS|MSEC|MINUTES|DAYS)\b", verb)
        self.assertGreater(n, 12)


class Documented(unittest.TestCase):
    SAME_FOR_ALL_USERS = True

    @classmethod
    def setUpClass(cls):
        with open(os.path.join(t.ROOT, "src", "cli", "aliases.c"), encoding="utf-8") as file:
            cls.rows = re.findall(r'\{ "(\w+)", "(-[^"]+)", "([^"]*)", "([^"]+)" \}', file.read())

    def test_each_alias_is_in_the_documentation(self):
        with open(os.path.join(t.ROOT, "docs", "habits.md"), encoding="utf-8") as file:
            text = file.read()
        self.assertGreater(len(self.rows), 30)
        for verb, typed, _, whose in self.rows:
            section = text.split("\n## " + whose.split(",")[0] + "\n")[1].split("\n## ")[0]
            word = typed.split()[0]
            verb = {"backtrace": "dump"}.get(verb, verb)
            self.assertRegex(section, r"(?m)^\| .*%s.*%s" % (verb, re.escape(word)), (verb, typed))

    def test_each_alias_is_an_option_of_its_verb(self):
        arguments = {"--to": "svg", "--tid": "1", "--interval": "10000", "--duration": "1", "--delay": "1"}
        for verb, typed, means, _ in self.rows:
            words = typed.split()[:1] + ([arguments.get(means, "root")] if " " in typed else [])
            probing(verb, *words, "--help", check=t.OK)

    def test_help_lists_those_of_a_verb(self):
        done = probing("record", "--help", check=t.OK)
        self.assertRegex(re.sub(r"\s+", " ", done.stdout), r"Options of other tools: -n \(--native\), -s \(--subprocesses\)")


if __name__ == "__main__":
    unittest.main()
