# SPDX-License-Identifier: MIT
"""probing record --mode wall and offcpu: how long threads wait, and what for.

What the recording says is held against the program's own clock, over the time that both know of. Sums
are exact by construction, so the bounds leave room only for what a program's clock cannot see: what
it does between two of its steps, and to wait for a processor before it looks at the clock.
"""
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

import by_work
import probing_test as t
from probing_test import fixture, probing
from test_inject import need_injection

SECONDS = 2
OFF = {"runnable", "sleep", "lock", "gil", "io", "child", "blocked"}
TYPES = "/sys/kernel/btf/vmlinux"
# Half a second of the processor's time, after naps in which there may be nobody else on it.
NAP_AND_BURN = """
import time
def burn():
    while time.process_time() < 0.5:
        sum(range(1000))
for i in range(10):
    time.sleep(0.02)
burn()
"""
Row = collections.namedtuple("Row", "start weight tid state verdict names object")


def names_and_object(recording, stack):
    """Names from root to leaf, and the object of the wait, which has a frame below that of its kind."""
    path = recording.path(stack) if stack else []
    names = [frame.name for frame in path]
    if [frame.kind for frame in path[-2:]] == ["wait", "wait"]:
        return names[:-1], names[-1]
    return names, None


def rows_of(path):
    """Every sample with its state, its names from root to leaf, and what it waited for."""
    recording = t.Recording(path)
    with contextlib.closing(t.connect(path, "rw")) as db:
        return recording, [Row(start, weight / 1e9, tid, state, verdict, *names_and_object(recording, stack))
                           for start, weight, tid, state, verdict, stack in db.execute(
                               "SELECT timestamp, weight, tid, state, verdict, stack FROM sample ORDER BY 1")]


class Waits(t.Case):
    """A recording of the fixture for all tests of a class."""
    alone = True
    mode = "wall"
    source = "auto"
    # A recorder that waits for a processor finds room in the rings for many small stacks: each switch takes one.
    more = ("--stack-bytes", 4096)

    @classmethod
    def setUpClass(cls):
        if cls.source == "agent":
            need_injection()
        else:
            t.need_perf()
        if cls.source == "bpf":
            t.need_bpf()
        with t.scratch(), fixture("waits.py") as target:
            if cls.source == "agent":
                probing("inject", target.pid, check=t.OK)
            cls.said = by_work.record(target, SECONDS, 499, "out.db", "--mode", cls.mode, "--source", cls.source, *cls.more).said
            target.process.send_signal(signal.SIGUSR1)
            cls.truth = json.loads(target.process.stdout.readline())
            cls.recording, cls.rows = rows_of("out.db")
            with contextlib.closing(t.connect("out.db")) as db:
                cls.held = db.execute("SELECT state, gil FROM sample").fetchall()
                cls.threads = db.execute("SELECT name FROM thread").fetchall()
            cls.folded = probing("flamegraph", "out.db", "--format", "folded", "-o", "-", check=t.OK).stdout
            cls.folded_python = probing("flamegraph", "out.db", "--format", "folded", "--no-native", "-o", "-", check=t.OK).stdout
            cls.by_wait = json.loads(probing("report", "out.db", "--by", "wait", "-n", 1000, "--json", check=t.OK).stdout)
            cls.report = probing("report", "out.db", check=t.OK).stdout
        parked = cls.of("do_park")
        cls.begin = min(row.start for row in parked)
        cls.end = cls.begin + sum(row.weight for row in parked)

    @classmethod
    def tearDownClass(cls):
        cls.recording = cls.rows = cls.truth = None

    @classmethod
    def of(cls, step):
        """The rows of a step's thread."""
        return [row for row in cls.rows if row.tid == cls.truth["names"][step]]

    def by_own_clock(self, step):
        """How long the thread was in its step while it was recorded."""
        return sum(max(0, min(end, self.end) - max(start, self.begin))
                   for _, name, start, end in self.truth["spans"] if name == step)

    @classmethod
    def thread_names(cls):
        return {name for (name,) in cls.threads}

    def in_step(self, step):
        return [row for row in self.of(step) if step in row.names]

    def assertAbout(self, wanted, found, what, share=0.1, more=0.06):
        self.assertLessEqual(abs(found - wanted), wanted * share + more, "%s: %.3f s, not %.3f" % (what, found, wanted))


class Common:
    """What holds in both modes."""

    def test_of_the_recording(self):
        self.assertEqual(("ok", self.mode, 1), (self.recording.integrity, self.recording.run["mode"],
                                                self.recording.run["clean"]))
        self.assertGreater(min(row.weight for row in self.rows), 0)
        self.assertEqual((0, 0), (self.recording.counters["unknown ns"], self.recording.counters["lost"]))
        self.assertLessEqual({row.state for row in self.rows}, OFF | {"running"})

    def test_a_thread_that_waits_all_the_time(self):
        """It does not switch even once. Nobody knows of it but who looks."""
        parked = self.of("do_park")
        self.assertEqual(["lock"], [row.state for row in parked])
        self.assertIn("do_park", parked[0].names)
        lasted = self.recording.run["ended"] - self.recording.run["started"]
        self.assertGreaterEqual(lasted, SECONDS)
        self.assertAbout(lasted, parked[0].weight, "parked", 0.05, 0.3)

    def test_each_wait_by_its_own_clock(self):
        for step, state in (("do_sleep", "sleep"), ("do_lock", "lock"), ("do_read", "io"), ("do_child", "child")):
            with self.subTest(step):
                waited = [row for row in self.in_step(step) if row.state in OFF]
                own = self.by_own_clock(step)
                self.assertGreater(own, 0.5)
                # All of a step but some computing is waiting.
                self.assertLessEqual(sum(row.weight for row in waited), own * 1.02 + 0.03)
                self.assertGreaterEqual(sum(row.weight for row in waited), own * 0.75 - 0.1)
                states = collections.Counter()
                for row in waited:
                    states[row.state] += row.weight
                self.assertGreater(states[state], 0.15 * own, states)
                # To know when to go on, it also waits for the interpreter and for a processor.
                known = states[state] + states["gil"] + states["runnable"] + states["blocked"] + \
                    (states["sleep"] if step == "do_lock" else 0) + (states["io"] if step == "do_child" else 0)
                self.assertGreater(known, 0.97 * sum(states.values()), states)

    def test_the_gil_is_told_from_other_locks(self):
        """One thread computes all the time: whoever comes back has to wait for it."""
        waits = sum(row.weight for row in self.rows if row.state == "gil")
        self.assertGreater(waits, 0.05)
        for row in self.of("do_compute"):
            self.assertNotEqual("lock", row.state, row)

    def test_who_waits_for_the_gil_does_not_hold_it(self):
        told = collections.Counter((state == "gil", gil) for state, gil in self.held if state != "running")
        self.assertEqual({(True, 0), (False, None)}, set(told))

    def test_threads_that_come_and_go(self):
        sums = collections.Counter()
        for row in self.rows:
            sums[row.tid] += row.weight if row.state != "running" else 0
        whole = [(tid, end - start) for tid, _, start, end in self.truth["brief"]
                 if start > self.begin + 0.1 and end < self.end - 0.1]
        self.assertGreater(len(whole), 3)
        for tid, own in whole:
            self.assertGreaterEqual(sums[tid], 0.039, tid)
            self.assertLessEqual(sums[tid], own + 0.5, tid)

    def test_the_state_is_the_innermost_frame(self):
        for row in self.rows:
            if row.state in OFF:
                self.assertEqual("[%s]" % row.state, row.names[-1])
            else:
                self.assertFalse(any(name.startswith("[") and name[1:-1] in OFF for name in row.names), row)
        self.assertRegex(self.folded, r"do_sleep[^\n]*;\[sleep\] \d+")
        self.assertRegex(self.folded, r"do_lock[^\n]*;\[lock\] \d+")

    def test_the_object_of_a_wait(self):
        """A pipe's end, and who computes, of long waits: these last until it has been read."""
        objects = collections.Counter()
        for row in self.rows:
            objects[row.tid, row.state, row.object] += row.weight
        tid = self.truth["names"]["do_read"]
        known, unknown = objects[tid, "io", "[pipe]"], objects[tid, "io", None]
        self.assertGreater(known, 4 * unknown, objects)
        self.assertEqual({None}, {row.object for row in self.rows if row.state not in ("io", "lock", "gil")})
        holders = {row.object for row in self.rows if row.state == "gil"} - {None}
        self.assertTrue(holders)
        # A thread that has just started, or ends, has no other name than Python's yet, or any more.
        self.assertEqual(set(), {holder for holder in holders - {"[held by %s]" % name for name in self.thread_names()}
                                 if not re.fullmatch(r"\[held by Thread-\d+ \((loop|live_briefly)\)\]", holder)})

    def test_waits_say_where(self):
        """The line that waits, what for and in which native function; all waits of the recording once."""
        waited = sum(row.weight for row in self.rows if row.state in OFF)
        self.assertAbout(waited, sum(row["total"] for row in self.by_wait["rows"]) / 1e9, "all waits", 0.001, 0.001)
        with open(os.path.join(t.ROOT, "fixtures", "waits.py")) as source:
            lines = source.read().splitlines()
        for step, state, function, line in (("do_sleep", "sleep", r"sleep", "time.sleep(0.05)"),
                                            ("do_lock", "lock", r"acquire|wait", "with held:"),
                                            ("do_read", "io", r"read", "os.read(reading, 1)")):
            with self.subTest(step):
                rows = [row for row in self.by_wait["rows"] if (row["name"], row["state"]) == (step, state)]
                self.assertTrue(rows, self.by_wait["rows"])
                longest = rows[0]
                self.assertEqual(line, lines[longest["line"] - 1].strip())
                self.assertTrue(longest["file"].endswith("fixtures/waits.py"), longest)
                self.assertRegex(longest["wait_function"] or "", function)
                if step == "do_read":
                    self.assertEqual(["pipe"], [found["name"] for found in longest["wait_objects"]])
                    self.assertLessEqual(longest["wait_objects"][0]["total"], longest["total"])
                self.assertEqual(1, longest["threads"])
                self.assertAbout(self.by_own_clock(step), longest["total"] / 1e9, step, 0.9, 0.1)
        self.assertRegex(self.report, r"The longest waits [^\n]*\n[^\n]*threads")
        self.assertRegex(self.report, r" · \[sleep\] \S*sleep ")

    def test_one_wait_is_one_stack(self):
        """Whether it was read as the thread left its CPU, with the kernel's functions, or later. These are in the file."""
        for line in self.folded.splitlines():
            self.assertNotRegex(line, r"_\[k\];\[(sleep|lock|gil|io|child|runnable)\]( |;)")

    def test_python_alone_keeps_what_it_waits_for(self):
        self.assertRegex(self.folded_python, r"do_sleep[^\n;]*;\[sleep\] \d+")
        self.assertRegex(self.folded_python, r"do_read[^\n;]*;\[io\];\[pipe\] \d+")
        self.assertNotIn("nanosleep", self.folded_python)

    def test_what_is_said_at_the_end(self):
        self.assertRegex(self.said, r"off CPU: [^\n]*sleep [\d.]+ m?s")
        self.assertRegex(self.said, r"\d context switches ")
        self.assertRegex(self.said, r"the recorder used [\d.]+ % of a CPU")

    @t.statistical("bounds the share of waits that are over before they can be looked at", 0.0005)
    def test_long_waits_are_seen_where_they_are(self):
        long_ones = [row for row in self.rows if row.state in OFF and row.weight > 0.02 and row.state != "runnable"]
        self.assertGreater(len(long_ones), 30)
        seen = [row for row in long_ones if len(row.names) > 1]
        # The first ones may be over before they can be looked at.
        self.assertGreaterEqual(len(seen), 0.9 * len(long_ones) - 8)

    def test_stacks_of_waits_are_never_of_another_place(self):
        """Who stands still is read at one instant."""
        for row in self.rows:
            if row.state in ("sleep", "io", "child", "lock") and row.verdict == "exact" and row.names[:-1]:
                own = {step for step, tid in self.truth["names"].items() if tid == row.tid}
                self.assertLessEqual(set(row.names) & set(self.truth["names"]), own, row)


class Whole(Common):
    """Of wall recordings."""

    def test_the_states_of_a_thread_add_up_to_its_time(self):
        """Against another thread's time, which is one single wait, and is held against the clock outside."""
        for step, tid in self.truth["names"].items():
            with self.subTest(step):
                self.assertAbout(self.end - self.begin, sum(row.weight for row in self.of(step)), step, 0.01, 0.03)

    def test_computing_is_running_or_waiting_to_run(self):
        states = collections.Counter()
        for row in self.of("do_compute"):
            states[row.state] += row.weight
        self.assertGreater(states["running"] + states["runnable"] + states["gil"], 0.9 * (self.end - self.begin), states)
        self.assertGreater(states["running"], 0.1)


class OfWall(Whole, Waits):
    NIGHTLY_FOR_USERS = True  # an ordinary user's default is OfWallRead's source


class OfWallRead(Whole, Waits):
    """Memory is read afterwards, and events are of single threads."""
    source = "wakeup"


class OfOffCpu(Common, Waits):
    mode = "offcpu"

    def test_nothing_runs(self):
        self.assertLessEqual({row.state for row in self.rows}, OFF)


class ByAgent:
    """Neither perf events nor records of switches: the kernel's counts of each thread, and looks at those that wait."""
    source = "agent"

    def test_of_the_recording(self):
        self.assertEqual(("ok", self.mode, 1), (self.recording.integrity, self.recording.run["mode"],
                                                self.recording.run["clean"]))
        self.assertGreater(min(row.weight for row in self.rows), 0)
        self.assertLessEqual({row.state for row in self.rows}, OFF | {"running"})
        # Children of do_child that ended between two looks.
        self.assertLess(self.recording.counters["unknown ns"] / 1e9, 0.02 * sum(row.weight for row in self.rows))

    def test_threads_that_come_and_go(self):
        """They are seen at some looks, each 10 ms: what one does between the last of these and its end is a guess."""
        off, every = collections.Counter(), collections.Counter()
        for row in self.rows:
            off[row.tid] += row.weight if row.state != "running" else 0
            every[row.tid] += row.weight
        whole = [(tid, end - start) for tid, _, start, end in self.truth["brief"]
                 if start > self.begin + 0.1 and end < self.end - 0.1]
        self.assertGreater(len(whole), 3)
        seen = [(tid, own) for tid, own in whole if every[tid] > 0]  # looks come late where others compute
        self.assertGreaterEqual(len(seen), 0.6 * len(whole))
        self.assertGreater(sum(off[tid] for tid, _ in seen), 0.7 * 0.04 * len(seen))
        for tid, own in seen:
            if self.mode == "wall":
                self.assertGreaterEqual(every[tid], 0.039, tid)
            self.assertLessEqual(off[tid], own + 0.5, tid)

    def test_the_agents_own_threads_are_not_the_programs(self):
        self.assertEqual(set(), {name for name in self.thread_names() if name and name.startswith("probing-")})


class OfWallAgent(ByAgent, Whole, Waits):
    pass


class OfOffCpuAgent(ByAgent, Common, Waits):
    mode = "offcpu"
    NIGHTLY_FOR_USERS = True

    def test_nothing_runs(self):
        self.assertLessEqual({row.state for row in self.rows}, OFF)


# Each thread waits for one thing, all the time. What holds their locks sleeps.
WAITERS = """
import ctypes, fcntl, json, os, select, socket, sys, tempfile, threading, time
libc = ctypes.CDLL(None)
recursive, plain = threading.RLock(), threading.Lock()
mutex = ctypes.create_string_buffer(64)
os.mkfifo("a fifo")
holder_of_fifo = os.open("a fifo", os.O_RDWR)
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
reading, writing = os.pipe()
other, _ = os.pipe()
pair = socket.socketpair()
numbers = {}
def hold(ready):
    with recursive, plain:
        libc.pthread_mutex_lock(mutex)
        ready.set()
        time.sleep(1000)
def file_lock():
    with open("a lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
steps = {
    "rlock": recursive.acquire,
    "lock": plain.acquire,
    "mutex": lambda: libc.pthread_mutex_lock(mutex),
    "pipe": lambda: os.read(reading, 1),
    "fifo": lambda: os.read(holder_of_fifo, 1),
    "to_server": lambda: client.recv(1),
    "from_client": lambda: accepted.recv(1),
    "accept": server.accept,
    "unix": lambda: pair[0].recv(1),
    "two": lambda: select.select([reading, other], [], []),
    "file_lock": file_lock,
    "sleep": lambda: time.sleep(1000),
}
def run(name, step):
    numbers[name] = int(os.readlink("/proc/thread-self").rsplit("/", 1)[1])
    step()
ready = threading.Event()
threading.Thread(target=hold, args=(ready,), name="the holder", daemon=True).start()
ready.wait()
locked = open("a lock", "w")
fcntl.flock(locked, fcntl.LOCK_EX)
for name, step in steps.items():
    threading.Thread(target=run, args=(name, step), name=name, daemon=True).start()
while len(numbers) < len(steps):
    time.sleep(0.01)
print("ready " + json.dumps({"tids": numbers, "port": server.getsockname()[1]}), flush=True)
time.sleep(1000)
"""

# One thread computes, and two want its lock.
COMPUTERS = """
import os, threading, time
def compute(until):
    while time.monotonic() < until:
        sum(range(2000))
def nap(until):
    while time.monotonic() < until:
        time.sleep(0.001)
until = time.monotonic() + %d
threading.Thread(target=compute, args=(until,), name="the computer", daemon=True).start()
for i in range(2):
    threading.Thread(target=nap, args=(until,), name="napper-%%d" %% i, daemon=True).start()
print("ready {}", flush=True)
time.sleep(1000)
""" % t.LONGEST_TARGET_S


def since(*version):
    """The interpreters of this machine from a version on."""
    return [interpreter for interpreter in t.interpreters() if interpreter.path and interpreter.place is t.MACHINE and
            tuple(map(int, interpreter.version.split("."))) >= version]


def await_rest(pid):
    """Until all threads wait, and none has run between two looks: then each is in its last wait."""
    def look():
        found = {}
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, tid)) as status:
                fields = dict(line.split(":", 1) for line in status)
            found[tid] = fields["State"].split()[0], fields["voluntary_ctxt_switches"], fields["nonvoluntary_ctxt_switches"]
        return found

    def rests():
        before = look()
        time.sleep(0.1)
        return before == look() and {state for state, _, _ in before.values()} == {"S"}
    t.wait_until(rests, 30, "all threads to wait")


class Objects(t.Case):
    """What a wait is for, beside its kind: of threads that each wait for one thing."""
    alone = True

    def check_objects(self, python, source="auto"):
        t.need_perf()
        with t.scratch() as folder, t.target([python, "-c", WAITERS]) as target:
            await_rest(target.pid)
            probing("record", "-q", "--mode", "wall", "--source", source, "--pid", target.pid, "-d", 1, "-o", "out.db", check=t.OK)
            _, rows = rows_of("out.db")
            table = probing("sql", "out.db", "SELECT state, object, weight FROM wait_object", "-f", "csv", check=t.OK).stdout
            report = probing("report", "out.db", "--by", "wait", "-n", 1000, check=t.OK).stdout
            folded = probing("flamegraph", "out.db", "-f", "folded", "-o", "-", check=t.OK).stdout
        port, tids, folder = target.truth["port"], target.truth["tids"], os.path.realpath(folder)
        expected = {
            "rlock": ("lock", "[held by the holder]"), "lock": ("lock", None), "mutex": ("lock", "[held by the holder]"),
            "pipe": ("io", "[pipe]"), "fifo": ("io", "[%s/a fifo]" % folder),
            "to_server": ("io", "[tcp to 127.0.0.1:%d]" % port), "from_client": ("io", "[tcp 127.0.0.1:%d from 127.0.0.1]" % port),
            "accept": ("io", "[tcp 127.0.0.1:%d, listening]" % port), "unix": ("io", "[unix socket]"),
            "two": ("io", "[pipe, and 1 more]"), "file_lock": ("lock", "[%s/a lock]" % folder), "sleep": ("sleep", None),
        }
        found = {step: {(row.state, row.object) for row in rows if row.tid == tid} for step, tid in tids.items()}
        self.assertEqual({step: {wanted} for step, wanted in expected.items()}, found)
        self.assertIn("\nio,\"tcp 127.0.0.1:%d, listening\"," % port, table)
        self.assertRegex(table, r"(?m)^lock,held by the holder,\d+$")
        self.assertRegex(report, r" · \[io\] \S*recv \[tcp to 127\.0\.0\.1:%d\] " % port)
        self.assertRegex(folded, r"(?m);\[lock\];\[held by the holder\] \d+$")
        self.assertNotRegex(folded, r"_\[k\];\[(io|lock)\];")

    def test_read_during_the_wait(self):
        for interpreter in since(3, 8):
            with self.subTest(interpreter.label):
                self.check_objects(interpreter.path)

    def test_read_by_a_user(self):
        """The files of a process say it, to whom may read its memory."""
        self.check_objects(t.DEBIAN_PYTHON, "wakeup")

    def test_who_has_the_gil(self):
        t.need_perf()
        for interpreter in since(3, 6):
            with self.subTest(interpreter.label), t.scratch(), t.target([interpreter.path, "-c", COMPUTERS]) as target:
                probing("record", "-q", "--mode", "wall", "--pid", target.pid, "-d", 1, "-o", "out.db", check=t.OK)
                _, rows = rows_of("out.db")
                held = collections.Counter()
                for row in rows:
                    if row.state == "gil":
                        held[row.object] += row.weight
                if not t.has_gil(interpreter):
                    self.assertEqual({}, dict(held))
                    continue
                self.assertLessEqual(set(held) - {None}, {"[held by %s]" % name for name in
                                                          ("the computer", "napper-0", "napper-1", "MainThread")})
                self.assertGreater(held["[held by the computer]"], 0.5 * sum(held.values()), held)


def need_gunicorn():
    if subprocess.run([t.DEBIAN_PYTHON, "-c", "import gunicorn"], capture_output=True).returncode != 0:
        raise unittest.SkipTest("python3-gunicorn is not installed")


class Gunicorn(t.Case):
    """A server whose master and worker wait nearly all the time."""
    alone = True
    APPLICATION = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
"""

    @contextlib.contextmanager
    def serve(self):
        with open("shop_site.py", "w", encoding="utf-8") as file:
            file.write(self.APPLICATION)
        process = subprocess.Popen([t.DEBIAN_PYTHON, "-m", "gunicorn", "--workers", "1", "--bind", "127.0.0.1:0",
                                    "shop_site:application"], stderr=subprocess.PIPE, text=True)
        try:
            said = ""
            while "Booting worker with pid" not in said:
                line = process.stderr.readline()
                self.assertTrue(line, said)
                said += line
            yield process.pid, int(re.search(r"Listening at: http://127\.0\.0\.1:(\d+)", said).group(1))
        finally:
            process.terminate()
            process.wait(20)
            process.stderr.close()

    def test_each_process_says_where_it_waits_and_for_what(self):
        t.need_perf()
        need_gunicorn()
        with self.serve() as (master, port):
            # The worker serves, and so its master has gone on to wait for it.
            with urllib.request.urlopen("http://127.0.0.1:%d/" % port, timeout=30) as answer:
                self.assertEqual(b"hello", answer.read())
            t.wait_until(lambda: {t.state_of(pid) for pid in [master] + t.children_of(master)} == {"S"}, 30, "both to wait")
            probing("record", "-q", "--mode", "wall", "--pid", master, "-s", "-d", 3, "-o", "out.db", check=t.OK)
        text = probing("report", "out.db", "--by", "wait", check=t.OK).stdout
        rows = json.loads(probing("report", "out.db", "--by", "wait", "--json", check=t.OK).stdout)["rows"]
        self.assertRegex(text, r" Arbiter\.sleep · \[io\] select\.select \[pipe\] +(gunicorn/)?arbiter\.py:\d+\n")
        self.assertRegex(text, r" SyncWorker\.wait · \[io\] select\.select \[tcp 127\.0\.0\.1:%d, listening, and 1 more\] +"
                               r"(\S*/)?sync\.py:\d+\n" % port)
        for name, source in (("Arbiter.sleep", "select.select([self.PIPE[0]], [], [], 1.0)"),
                             ("SyncWorker.wait", "select.select(self.wait_fds, [], [], timeout)")):
            row, = (row for row in rows if row["name"] == name and row["state"] == "io")  # not: waits for a processor
            with open(row["file"], encoding="utf-8") as file:
                self.assertIn(source, file.read().splitlines()[row["line"] - 1])
            self.assertGreater(row["total"], 2.7e9)


class OnItsOwn(t.Case):
    def test_a_command(self):
        began = time.time()
        probing("record", "--mode", "wall", "-q", "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c",
                "import time, subprocess; time.sleep(0.4); subprocess.run(['sleep', '0.3'])", check=t.OK)
        took = time.time() - began
        recording, rows = rows_of("out.db")
        root = recording.run["pid"]
        total = sum(row.weight for row in rows if row.tid == root)
        self.assertGreater(total, 0.7)
        self.assertLess(total, took)
        states = collections.Counter()
        for row in rows:
            states[row.tid == root, row.state] += row.weight
        self.assertGreater(states[True, "sleep"], 0.39)
        self.assertGreater(states[True, "child"] + states[True, "io"], 0.2)
        self.assertGreater(states[False, "sleep"], 0.29, "the child")

    def test_programs_that_follow_each_other(self):
        """Threads of the former one are no more, also where one of them has started the other program."""
        code = ("import os, sys, threading, time\n"
                "sleeper = threading.Thread(target=time.sleep, args=(9,), daemon=True)\n"
                "sleeper.start()\n"
                "time.sleep(0.3)\n"
                "again = lambda: os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], sys.argv[1], 'last'])\n"
                "if len(sys.argv) == 2: threading.Thread(target=again).start(); time.sleep(9)")
        began = time.time()
        probing("record", "--mode", "wall", "-q", "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c", code, code, check=t.OK)
        took = time.time() - began
        recording, rows = rows_of("out.db")
        sums, sleeps = collections.Counter(), collections.Counter()
        for row in rows:
            sums[row.tid] += row.weight
            sleeps[row.tid] += row.weight if row.state == "sleep" else 0
        root = recording.run["pid"]
        self.assertGreater(sleeps[root], 0.59)
        self.assertLess(max(sums.values()), took)
        self.assertEqual(3, len([tid for tid in sums if tid != root]), sums)
        self.assertEqual(0, recording.counters["unknown ns"])

    def test_what_many_switches_cost_is_said(self):
        code = ("import os, threading, time\n"
                "there, back = os.pipe(), os.pipe()\n"
                "def echo():\n"
                "    while os.read(there[0], 1) == b'x': os.write(back[1], b'x')\n"
                "threading.Thread(target=echo).start()\n"
                "stop = time.time() + 1.5\n"
                "while time.time() < stop: os.write(there[1], b'x'); os.read(back[0], 1)\n"
                "os.write(there[1], b'.')")
        said = probing("record", "--mode", "wall", "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c", code, check=t.OK).stderr
        self.assertRegex(said, r"recording a context switch took about \d+ ns: [\d.]+ % of (the threads' time on )?a CPU; the recorder")

    def test_very_short_waits_and_very_long_ones_add_up(self):
        """Threads that switch as often as they can, then not at all, and some that are there but briefly."""
        code = ("import os, threading, time\n"
                "there, back, spans, begun = os.pipe(), os.pipe(), {}, {}\n"
                "def timed(run):\n"
                "    began = time.monotonic()\n"
                "    run()\n"
                "    spans[threading.current_thread()] = time.monotonic() - began\n"
                "def start(run):\n"
                "    thread = threading.Thread(target=timed, args=(run,), name=run.__name__)\n"
                "    begun[thread] = time.monotonic()\n"
                "    thread.start()\n"
                "    return thread\n"
                "def await_end(thread):\n"
                "    thread.join()\n"
                "    while os.path.exists('/proc/self/task/%d' % thread.native_id): time.sleep(0.001)\n"
                "    print(thread.name, thread.native_id, spans[thread], time.monotonic() - begun[thread])\n"
                "def echo():\n"
                "    while os.read(there[0], 1) == b'x': os.write(back[1], b'x')\n"
                "    time.sleep(0.7)\n"
                "def brief():\n"
                "    time.sleep(0.02)\n"
                "def play():\n"
                "    stop = time.time() + 1\n"
                "    while time.time() < stop: os.write(there[1], b'x'); os.read(back[0], 1)\n"
                "    os.write(there[1], b'.')\n"
                "    for i in range(20):\n"
                "        await_end(start(brief))\n"
                "    time.sleep(0.7)\n"
                "threads = [start(run) for run in (echo, play)]\n"
                "for thread in threads: await_end(thread)")
        for source in ("auto", "wakeup"):
            with self.subTest(source):
                done = probing("record", "--mode", "wall", "--source", source, "-q", "-o", "out.db", "--", t.DEBIAN_PYTHON,
                               "-c", code, check=t.OK)
                recording, rows = rows_of("out.db")
                sums, waits = collections.Counter(), collections.Counter()
                for row in rows:
                    sums[row.tid] += row.weight
                    waits[row.tid] += row.weight if row.state in OFF else 0
                self.assertEqual((0, 0), (recording.counters["unknown ns"], recording.counters["lost"]))
                self.assertGreater(recording.counters["switches"], 1000)
                spans = [(name, int(tid), float(took), float(lived))
                         for name, tid, took, lived in map(str.split, done.stdout.splitlines())]
                self.assertEqual(22, len(spans))
                for name, tid, took, lived in spans:
                    # Its step, and at most from before its start until it was gone.
                    self.assertGreaterEqual(sums[tid], took * 0.999)
                    self.assertLessEqual(sums[tid], lived * 1.001 + 0.001)
                    self.assertGreater(waits[tid], 0.019 if name == "brief" else 0.69)

    def test_a_main_thread_that_has_ended(self):
        """It stands in /proc while others go on, and waits for nothing any more."""
        with t.target([t.DEBIAN_PYTHON, "-c", t.WITHOUT_MAIN_THREAD]) as target:
            t.wait_until(lambda: t.state_of(target.pid) == "Z", what="the main thread's end")
            probing("record", "--mode", "wall", "-q", "-d", 0.5, "-o", "out.db", "--pid", target.pid, check=t.OK)
            _, rows = rows_of("out.db")
        self.assertTrue(rows)
        self.assertNotIn(target.pid, {row.tid for row in rows})

    def test_threads_at_their_end(self):
        """A thread leaves the processor once more when it has no number any more."""
        code = ("import threading, time\n"
                "def make():\n"
                "    for _ in range(400):\n"
                "        brief = threading.Thread(target=sum, args=(range(20000),))\n"
                "        brief.start()\n"
                "        brief.join()\n"
                "makers = [threading.Thread(target=make) for _ in range(2)]\n"
                "for maker in makers: maker.start()")
        probing("record", "--mode", "wall", "-q", "-F", 99, "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c", code, check=t.OK)
        recording, rows = rows_of("out.db")
        self.assertGreater(len({row.tid for row in rows}), 100)
        self.assertGreater(min(row.tid for row in rows), 0)
        probing("report", "out.db", check=t.OK)

    def test_who_is_pushed_off_its_processor_is_runnable(self):
        """Two that compute all the time, and one processor for them."""
        code = ("import os, time; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); child = os.fork()\n"
                "stop = time.time() + 0.8\n"
                "while time.time() < stop: pass\n"
                "if child == 0: os._exit(0)\n"
                "os.waitpid(child, 0)")
        probing("record", "--mode", "wall", "-q", "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c", code, check=t.OK)
        recording, rows = rows_of("out.db")
        for process in recording.processes:
            states = collections.Counter()
            for row in rows:
                if row.tid == process["pid"]:
                    states[row.state] += row.weight
            self.assertGreater(states["running"], 0.02, process)
            self.assertGreater(states["runnable"], 0.02, process)
            self.assertGreater(states["running"] + states["runnable"], 0.7, process)
        self.assertEqual(2, len(recording.processes))

    @t.statistical("half a second of CPU time must have so many samples", 0.0002)
    def test_without_the_kernels_types(self):
        """Records of events tell of switches, then: also that a processor has come to nothing."""
        t.need_bpf()
        t.need_root()
        if not os.path.exists(TYPES) or t.namespaces_refusal():
            self.skipTest(t.namespaces_refusal() or "this kernel does not describe its types")
        hidden = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', TYPES]
        done = subprocess.run(hidden + [t.BINARY, "record", "-q", "--mode", "wall", "--source", "bpf", "-F", "199", "-o",
                                        "out.db", "--", t.DEBIAN_PYTHON, "-c", NAP_AND_BURN],
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual((t.OK, ""), (done.returncode, done.stderr))
        burnt = [row for row in rows_of("out.db")[1] if row.state == "running" and "burn" in row.names]
        self.assertGreater(len(burnt), 50)

    def test_cpu_recordings_have_no_states(self):
        probing("record", "-q", "-F", 999, "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c",
                "sum(range(3000000))", check=t.OK)
        recording, rows = rows_of("out.db")
        self.assertEqual("cpu", recording.run["mode"])
        self.assertEqual({None}, {row.state for row in rows})

    def test_polling_sees_no_switches(self):
        done = probing("record", "--mode", "wall", "--source", "poll", "--pid", os.getpid(), check=t.USAGE)
        self.assertRegex(done.stderr, "--mode wall needs perf events")
        self.assertFalse(os.path.exists("probing.db"))

    def test_there_are_three_modes(self):
        done = probing("record", "--mode", "sleep", "--pid", os.getpid(), check=t.USAGE)
        self.assertRegex(done.stderr, "--mode must be cpu, wall or offcpu, not sleep")


if __name__ == "__main__":
    sys.exit(unittest.main())
