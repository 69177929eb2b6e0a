# SPDX-License-Identifier: MIT
"""What probing sql can be asked of: several recordings, a running process; formats, limits, the prompt."""
import contextlib
import csv
import io
import json
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import unittest

import probing_test as t
from probing_test import probing
from terminal import Terminal

ORDINARY_USER = 65534
FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine())

# Says where it stands, and then stands still.
TARGET = """
import os, threading, time
def wait_for_ever():
    time.sleep(60)
def hold_a_file():
    with open("held", "w") as held:
        held.write("12345")
        held.flush()
        print("ready {}", flush=True)
        wait_for_ever()
threading.Thread(target=wait_for_ever, name="a sleeper", daemon=True).start()
hold_a_file()
"""


def ask(*arguments, **more):
    """The rows, as lists of values."""
    done = probing("sql", *arguments, "-f", "json", check=t.OK, **more)
    return [list(row.values()) for row in json.loads(done.stdout or "[]")]


class Folder(unittest.TestCase):
    """A scratch folder for each test; nothing is recorded."""

    def setUp(self):
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    assertSentence = t.Case.assertSentence


# ---- Several recordings ----

class Several(t.Case):
    """One recording, two copies in which something differs, and the same tables made by Python."""

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with t.fixture("demo.py") as target:
            t.record_cpu(target, 0.8, 199, "a.db")
        shutil.copy("a.db", "b.db")
        shutil.copy("a.db", "c.db")
        cls.change("b.db", "UPDATE run SET command = 'the second'", "DELETE FROM counter",
                   "UPDATE stack_total SET samples = samples + 1000")
        cls.change("c.db", "UPDATE run SET command = 'the third'", "ALTER TABLE run ADD COLUMN extra INTEGER DEFAULT 5",
                   "CREATE TABLE only_here(run TEXT, value TEXT)", "INSERT INTO only_here VALUES('mine', '7'), ('yours', '10')",
                   "DROP VIEW named_frame")
        cls.truth = cls.union(["a.db", "b.db", "c.db"])
        cls.addClassCleanup(cls.truth.close)

    @staticmethod
    def change(path, *statements):
        with sqlite3.connect(path) as db:
            for statement in statements:
                db.execute(statement)
        db.close()

    @staticmethod
    def union(paths):
        """Real tables of all rows, in the order of the files."""
        truth = sqlite3.connect(":memory:")
        for run, path in enumerate(paths, 1):
            db = sqlite3.connect(path)
            names = db.execute("SELECT name FROM sqlite_master WHERE (type = 'table' OR name = 'named_frame') "
                               "AND name NOT IN ('run', 'sample') AND name NOT LIKE 'sample\\_%' ESCAPE '\\' "
                               "AND name NOT LIKE 'sqlite%'").fetchall()
            for (name,) in names:
                info = db.execute("PRAGMA table_info(%s)" % name).fetchall()
                columns = ", ".join("%s %s" % (row[1] + ("_" if row[1] == "run" else ""), row[2]) for row in info)
                truth.execute("CREATE TABLE IF NOT EXISTS %s(run INTEGER, %s)" % (name, columns))
                truth.executemany("INSERT INTO %s VALUES(%s)" % (name, ", ".join("?" * (len(info) + 1))),
                                  [(run,) + row for row in db.execute("SELECT * FROM %s" % name)])
            db.close()
        return truth

    def setUp(self):
        super().setUp()
        self.files = [os.path.join(self.folder, name) for name in ("a.db", "b.db", "c.db")]

    def check_same(self, sql):
        key = lambda row: [(value is not None, str(value)) for value in row]
        wanted = sorted(([value for value in row] for row in self.truth.execute(sql)), key=key)
        self.assertEqual(wanted, sorted(ask(*self.files, sql), key=key), sql)

    def test_all_rows_of_all_tables(self):
        for (name,) in self.truth.execute("SELECT name FROM sqlite_master").fetchall():
            with self.subTest(name):
                self.check_same("SELECT * FROM %s" % name)

    def test_comparisons_that_are_passed_on(self):
        for where in ("run = 2", "run <> 2", "run IN (1, 3)", "run > 1", "run >= 2 AND run < 3", "run = 2.0", "run = '2'",
                      "run = 9", "run < -5", "run = NULL", "run IS NULL", "run BETWEEN 2 AND 9", "run > 1.5",
                      "depth = 0", "depth IN (1, 2, 77) AND run = 3", "depth <= 3 AND depth > 1", "depth < '3'",
                      "stack = 5", "stack = '5'", "stack IN (SELECT stack FROM stack_total)", "parent IS NULL",
                      "parent = NULL", "NOT depth > 2", "stack = 5 OR run = 1", "stack = 5 OR depth = 2 OR run = 3"):
            with self.subTest(where):
                self.check_same("SELECT * FROM stack WHERE " + where)
        for where in ("name = 'spin'", "name = 'SPIN' COLLATE NOCASE", "name > 'm'", "name LIKE '%s%'",
                      "kind = 'python' AND file IS NOT NULL", "role = 'builtin' AND run = 1"):
            with self.subTest(where):
                self.check_same("SELECT * FROM named_frame WHERE " + where)
        self.check_same("SELECT * FROM only_here WHERE value = 7")
        # Rows that are equal in all that is asked: none may be taken for another.
        self.check_same("SELECT kind FROM named_frame WHERE kind = 'python' OR run = 2")
        self.check_same("SELECT depth FROM stack WHERE depth = 4 OR depth = 5 OR run = 2")
        self.check_same("SELECT a.depth, b.samples FROM stack a LEFT JOIN stack_total b ON a.stack = b.stack AND a.run = b.run")
        self.check_same("SELECT * FROM only_here WHERE run_ = 'mine' AND run = 3")

    def test_joins(self):
        self.check_same("SELECT run, name, sum(samples) FROM stack_total JOIN stack USING(run, stack) "
                        "JOIN named_frame USING(run, frame) GROUP BY run, name")
        self.check_same("SELECT a.samples - b.samples FROM stack_total a JOIN stack_total b USING(pid, tid, stack) "
                        "WHERE a.run = 1 AND b.run = 2")
        self.check_same("WITH RECURSIVE up(run, stack, n) AS (SELECT run, stack, 0 FROM stack WHERE depth = 3 UNION ALL "
                        "SELECT s.run, s.parent, n + 1 FROM up JOIN stack s USING(run, stack) WHERE s.parent IS NOT NULL) "
                        "SELECT run, n, count(*) FROM up GROUP BY run, n")

    def test_samples(self):
        per_file = ask(self.files[0], "SELECT count(*), sum(weight), min(timestamp) FROM sample")[0]
        self.assertGreater(per_file[0], 0)
        self.assertEqual([[run] + per_file for run in (1, 2, 3)],
                         ask(*self.files, "SELECT run, count(*), sum(weight), min(timestamp) FROM sample GROUP BY run"))
        self.assertEqual([[per_file[0]]], ask(*self.files, "SELECT count(*) FROM sample WHERE run = 2 AND weight > 0"))

    def test_the_table_run(self):
        rows = ask(*self.files, "SELECT run, file, command, extra FROM run")
        self.assertEqual([[1, self.files[0]], [2, self.files[1]], [3, self.files[2]]], [row[:2] for row in rows])
        self.assertEqual(["the second", "the third"], [row[2] for row in rows[1:]])
        self.assertEqual([None, None, 5], [row[3] for row in rows])

    def test_machines(self):
        """Of one file, of several, and of the file that is made of these."""
        files = [shutil.copy(self.files[0], name) for name in ("a.db", "b.db", "c.db")]
        self.change("b.db", "UPDATE run SET host = 'other', started = started - 10, ended = NULL")
        host, kernel, cpus, started, ended = ask("a.db", "SELECT host, kernel, cpus, started, ended FROM run")[0]
        self.assertEqual([[host, kernel, cpus, 1, started, ended]], ask("a.db", "SELECT * FROM cluster.node"))
        wanted = sorted([[host, kernel, cpus, 2, started, ended], ["other", kernel, cpus, 1, started - 10, None]])
        self.assertEqual(wanted, ask(*files, "SELECT * FROM cluster.node"))
        probing("merge", "-q", "-o", "all.db", *files[:2], check=t.OK)
        self.assertEqual(sorted([[host, kernel, cpus, 1, started, ended]] + [row for row in wanted if row[0] == "other"]),
                         ask("all.db", "SELECT * FROM cluster.node"))

    def test_what_a_file_lacks(self):
        self.assertEqual([[1], [2]], ask(*self.files, "SELECT DISTINCT run FROM named_frame"))
        self.assertEqual([[3, "mine", "7"], [3, "yours", "10"]], ask(*self.files, "SELECT * FROM only_here"))

    def test_more_than_sqlite_attaches(self):
        rows = ask(*(self.files[:1] * 40), "SELECT count(*), count(DISTINCT run), max(run) FROM run")
        self.assertEqual([[40, 40, 40]], rows)
        one = ask(self.files[0], "SELECT sum(samples) FROM stack_total")[0][0]
        self.assertEqual([[40 * one]], ask(*(self.files[:1] * 40), "SELECT sum(samples) FROM stack_total"))
        self.assertEqual([[40, one]], ask(*(self.files[:1] * 40), "SELECT run, sum(samples) FROM stack_total WHERE run > 39"))

    def test_files_are_not_written(self):
        before = [os.stat(path).st_mtime_ns for path in self.files]
        for statement in ("DELETE FROM stack", "CREATE TABLE x(y)", "UPDATE run SET command = ''"):
            self.assertNotEqual(0, probing("sql", *self.files, statement).returncode, statement)
        self.assertSentence(probing("sql", *self.files, "--write", "SELECT 1", check=t.USAGE).stderr, "one recording")
        self.assertEqual(before, [os.stat(path).st_mtime_ns for path in self.files])

    def test_a_file_that_is_none(self):
        with open(self.files[0], "rb") as whole, open("cut.db", "wb") as cut:
            cut.write(whole.read(3000))
        with open("text.db", "w") as text:
            text.write("this is no database")
        sqlite3.connect("other.db").execute("CREATE TABLE t(x)").connection.close()
        for name, status in (("cut.db", t.BAD_DATA), ("text.db", t.BAD_DATA), ("other.db", t.BAD_DATA),
                             ("nowhere.db", t.NO_INPUT)):
            with self.subTest(name):
                done = probing("sql", self.files[0], name, self.files[1], "SELECT 1", check=status)
                self.assertSentence(done.stderr, re.escape(name))

    def test_a_mistake(self):
        self.assertSentence(probing("sql", *self.files, "SELECT nmae FROM function", check=t.BAD_DATA).stderr,
                            "did you mean name")

    def test_tables(self):
        rows = json.loads(probing("tables", *self.files, "--json", check=t.OK).stdout)
        by_name = {row["name"]: row for row in rows}
        self.assertIn("only_here", by_name)
        self.assertTrue(by_name["run"]["columns"].startswith("run, file, started"))
        self.assertTrue(by_name["stack"]["description"])
        one = json.loads(probing("tables", self.files[0], "stack_", "--json", check=t.OK).stdout)
        self.assertEqual(["stack_function", "stack_path", "stack_total"], [row["name"] for row in one])
        with sqlite3.connect(self.files[0]) as db:
            self.assertEqual(db.execute("SELECT count(*) FROM stack_total").fetchone()[0], one[-1]["rows"])
        db.close()
        self.assertIn("stack_total", probing("tables", self.files[0], check=t.OK).stdout)
        self.assertSentence(probing("tables", self.files[0], "nothing_like_it", check=t.NO_INPUT).stderr, "no table like")

    def test_changing_one(self):
        shutil.copy(self.files[0], "mine.db")
        self.assertSentence(probing("sql", "mine.db", "DELETE FROM counter", check=t.BAD_DATA).stderr, "--write")
        probing("sql", "mine.db", "--write", "CREATE TABLE note(text); INSERT INTO note VALUES('kept')", check=t.OK)
        probing("sql", "mine.db", "--write", "BEGIN; DELETE FROM note", check=t.OK)  # not committed
        db = sqlite3.connect("mine.db")
        self.assertEqual([("kept",)], db.execute("SELECT text FROM note").fetchall())
        db.close()
        self.assertFalse(os.path.exists("mine.db-wal"))

    def test_a_recording_that_is_written(self):
        with t.recorder("-o", "live.db", "-d", 30, "--", t.DEBIAN_PYTHON, "-c", "while True: pass") as recorder:
            t.wait_for_samples("live.db")
            done = probing("sql", "live.db", "--write", "DELETE FROM counter")
            self.assertNotEqual(0, done.returncode)
            self.assertIn("live.db", done.stderr)
            self.assertEqual([[1], [2]], ask("live.db", self.files[0], "SELECT run FROM run"))
            t.stop_politely(recorder)


# ---- A process ----

def sleeps(pid, tid):
    """In a call of its own, not on its way there, and not for the GIL."""
    with open("/proc/%d/task/%d/stat" % (pid, tid)) as stat:
        state = stat.read().rpartition(")")[2].split()[0]
    try:
        with open("/proc/%d/task/%d/syscall" % (pid, tid)) as call:
            number = call.read().split()[0]
    except PermissionError:
        number = ""
    return state == "S" and number not in ("running", FUTEX)


class Process(Folder):
    @contextlib.contextmanager
    def target(self):
        """One that stands still: "ready" is said a little earlier."""
        with t.target([t.DEBIAN_PYTHON, "-c", TARGET], env={"PATH": os.environ["PATH"], "ODD": "a=b\tc", "EMPTY": ""}) as target:
            t.wait_until(lambda: all(sleeps(target.pid, int(tid)) for tid in os.listdir("/proc/%d/task" % target.pid)),
                         what="the target to sleep")
            yield target

    def ask_process(self, pid, sql):
        done = probing("sql", pid, sql, "-f", "json")
        if done.returncode == t.NOT_PERMITTED and "ptrace_scope" in done.stderr:
            self.skipTest("kernel.yama.ptrace_scope forbids it")
        self.assertEqual(t.OK, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def test_backtrace(self):
        lines = [line.strip() for line in TARGET.splitlines()]
        with self.target() as target:
            rows = self.ask_process(target.pid, "SELECT * FROM python.backtrace")
            native = self.ask_process(target.pid, "SELECT b.ip, m.path, m.permissions FROM python.backtrace b LEFT JOIN "
                                      "process.maps m ON b.ip >= m.start AND b.ip < m.end WHERE frame_type = 'Native'")
        self.assertEqual(["tid", "thread", "ip", "file", "func", "lineno", "depth", "frame_type"], list(rows[0]))
        main = [row for row in rows if row["tid"] == target.pid and row["frame_type"] == "Python"]
        self.assertEqual(["wait_for_ever", "hold_a_file", "<module>"], [row["func"] for row in main])
        self.assertEqual([lines.index("time.sleep(60)") + 1, lines.index("wait_for_ever()") + 1,
                          lines.index("hold_a_file()") + 1], [row["lineno"] for row in main])
        self.assertEqual({"MainThread", "a sleeper"}, {row["thread"] for row in rows})
        for tid in {row["tid"] for row in rows}:
            self.assertEqual(list(range(sum(row["tid"] == tid for row in rows))),
                             [row["depth"] for row in rows if row["tid"] == tid])
        self.assertTrue(all(row["ip"] is None for row in main))
        self.assertTrue(native)
        self.assertTrue(all("x" in row["permissions"] for row in native), native)
        self.assertTrue(any("libc" in row["path"] for row in native), native)

    def test_who_waits_for_the_gil(self):
        busy = ("import threading, time\ndef spin():\n    while True:\n        pass\n"
                "for name in ('one', 'two'):\n    threading.Thread(target=spin, name=name, daemon=True).start()\n"
                "print('ready {}', flush=True)\ntime.sleep(600)\n")
        seen = {}

        def look():
            """Sums of several looks: the kernel may have run one of them alone meanwhile."""
            for row in self.ask_process(target.pid, "SELECT * FROM python.gil"):
                of = seen.setdefault(row["thread"], {"readings": 0, "held": 0, "waited": 0})
                for name in of:
                    of[name] += row[name]
            return all(seen.get(name, {}).get(what, 0) > 0 for name in ("one", "two") for what in ("held", "waited"))

        def is_asleep():
            """The main thread needs the GIL once more after it has printed; from then on it sleeps."""
            with open("/proc/%d/syscall" % target.pid) as syscall:
                return syscall.read().split()[0] == {"x86_64": "230", "aarch64": "115"}[os.uname().machine]  # clock_nanosleep

        with t.target([t.DEBIAN_PYTHON, "-c", busy]) as target:
            t.wait_until(is_asleep, 60, "the main thread to sleep")
            t.wait_until(look, 60, "both threads to hold the GIL, and to wait for it")
            with open("/proc/%d/status" % target.pid) as status:
                self.assertIn("TracerPid:\t0\n", status.read())
        self.assertEqual({"MainThread", "one", "two"}, set(seen))
        self.assertEqual([0, 0], [seen["MainThread"]["held"], seen["MainThread"]["waited"]])
        for of in seen.values():
            self.assertLessEqual(of["held"] + of["waited"], of["readings"])
        with subprocess.Popen(["sleep", "60"]) as other:  # has none
            try:
                self.assertEqual([], self.ask_process(other.pid, "SELECT * FROM python.gil"))
            finally:
                other.kill()

    def test_environment(self):
        with self.target() as target:
            rows = self.ask_process(target.pid, "SELECT name, value FROM process.envs")
        self.assertEqual({"PATH": os.environ["PATH"], "ODD": "a=b\tc", "EMPTY": ""},
                         {row["name"]: row["value"] for row in rows})

    def test_files(self):
        with self.target() as target:
            rows = self.ask_process(target.pid, "SELECT * FROM process.fds")
            wanted = sorted(int(fd) for fd in os.listdir("/proc/%d/fd" % target.pid))
        self.assertEqual(wanted, sorted(row["fd"] for row in rows))
        held = [row for row in rows if row["target"] == os.path.join(os.getcwd(), "held")]
        self.assertEqual([("file", "w,cloexec", 5)], [(row["kind"], row["flags"], row["position"]) for row in held])
        self.assertEqual(["pipe"], [row["kind"] for row in rows if row["fd"] == 1])

    def test_maps(self):
        with self.target() as target:
            rows = self.ask_process(target.pid, "SELECT * FROM process.maps")
            with open("/proc/%d/maps" % target.pid) as maps:
                wanted = [line.split(None, 5) for line in maps]
            with open("/proc/%d/status" % target.pid) as status:
                resident_kb = int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
        self.assertEqual([(row[0], row[1], int(row[2], 16), row[5].strip() if len(row) > 5 else None) for row in wanted],
                         [("%08x-%08x" % (row["start"] % 2 ** 64, row["end"] % 2 ** 64), row["permissions"], row["offset"], row["path"])
                          for row in rows])
        self.assertTrue(all(row["size"] == row["end"] - row["start"] for row in rows))
        # The kernel's own count lags behind by some pages for each CPU.
        self.assertLess(abs(sum(row["rss"] for row in rows) / 1024 - resident_kb), 2048)

    def test_memory_usage(self):
        with self.target() as target:
            row = self.ask_process(target.pid, "SELECT * FROM memory_usage")
            with open("/proc/%d/status" % target.pid) as status:
                size_kb = int(re.search(r"VmSize:\s+(\d+)", status.read()).group(1))
        self.assertEqual(1, len(row))
        self.assertAlmostEqual(size_kb / 1024, row[0]["vms_mb"])
        self.assertLess(0, row[0]["private_mb"])
        self.assertLessEqual(row[0]["private_mb"], row[0]["pss_mb"])
        self.assertLess(row[0]["pss_mb"], row[0]["vms_mb"])
        self.assertLess(abs(time.time() - row[0]["timestamp"]), 60)

    def test_tasks(self):
        with self.target() as target:
            rows = self.ask_process(target.pid, "SELECT * FROM cpu.tasks ORDER BY tid")
            wanted = sorted(int(tid) for tid in os.listdir("/proc/%d/task" % target.pid))
        self.assertEqual(wanted, [row["tid"] for row in rows])
        self.assertEqual({"S"}, {row["state"] for row in rows})
        self.assertLessEqual({row["syscall"] for row in rows}, {"clock_nanosleep", "select", "pselect6", "restart_syscall"})
        self.assertTrue(all(row["voluntary_switches"] > 0 for row in rows))
        self.assertTrue(all(row["policy"] == "other" for row in rows))

    def test_processes_and_cpus(self):
        with self.target() as target:
            rows = self.ask_process(target.pid, "SELECT * FROM system.process")
            cpus = self.ask_process(target.pid, "SELECT cpu, utilization FROM cpu.utilization")
        mine = {row["pid"]: row for row in rows}[target.pid]
        self.assertEqual((os.getpid(), 2, os.geteuid()), (mine["ppid"], mine["threads"], mine["uid"]))
        self.assertEqual(t.version_of(t.DEBIAN_PYTHON), mine["python"])
        self.assertTrue(mine["command"].startswith(t.DEBIAN_PYTHON))
        self.assertIn(os.getpid(), [row["pid"] for row in rows])
        self.assertLess(0, time.time() - mine["started"])
        self.assertEqual(os.sysconf("SC_NPROCESSORS_ONLN"), len(cpus))
        self.assertTrue(all(0 <= row["utilization"] <= 1 for row in cpus))

    def test_joined_threads_are_looked_at_once(self):
        """A table that is joined, or asked twice, is the same look."""
        with self.target() as target:
            rows = self.ask_process(target.pid, "SELECT count(*) AS n, count(DISTINCT b.tid) AS tids FROM cpu.tasks t JOIN "
                                    "python.backtrace b USING(tid) JOIN python.backtrace c USING(tid, depth)")
            single = self.ask_process(target.pid, "SELECT count(*) AS n FROM python.backtrace")
        self.assertEqual([single[0]["n"], 2], [rows[0]["n"], rows[0]["tids"]])

    def test_ways_to_say_it(self):
        sql = "SELECT tid FROM cpu.tasks WHERE tid = (SELECT min(tid) FROM cpu.tasks)"
        with self.target() as target:
            pid = str(target.pid)
            for words in (["sql", pid, sql], ["query", pid, sql], [pid, sql], [pid, "query", sql], ["-t", pid, "sql", sql],
                          ["--target=" + pid, "query", sql], ["--target", pid, sql]):
                with self.subTest(words):
                    said = probing(*words, "-f", "csv", check=t.OK).stdout
                    self.assertEqual(["tid", pid], said.split())
            tables = probing(pid, "tables", check=t.OK).stdout
            for name in ("python.backtrace", "system.process", "process.envs", "process.maps", "process.fds", "memory_usage",
                         "cpu.tasks", "cpu.utilization"):
                self.assertIn(name, tables)
            self.assertIn("process.envs", probing("tables", pid, "process.%", check=t.OK).stdout)
            self.assertSentence(probing(pid, check=t.USAGE).stderr, "probing backtrace " + pid)
            self.assertSentence(probing("-t", check=t.USAGE).stderr, "needs a process")
            self.assertSentence(probing(pid, "bactrace", check=t.USAGE).stderr, "did you mean backtrace")
            self.assertSentence(probing("sql", pid, pid, "SELECT 1", check=t.USAGE).stderr, "one process")

    def test_record_with_the_process_first(self):
        t.need_perf()
        with self.target() as target:
            probing(target.pid, "record", "-d", 0.2, "-o", "first.db", check=t.OK)
            self.assertEqual([[target.pid]], ask("first.db", "SELECT pid FROM run"))

    def test_nothing_is_changed(self):
        with self.target() as target:
            for statement in ("DELETE FROM process.envs", "CREATE TABLE x(y)", "ATTACH 'made.db' AS made; CREATE TABLE made.x(y)"):
                self.assertEqual(t.BAD_DATA, probing("sql", target.pid, statement).returncode, statement)
        self.assertEqual(["held"], os.listdir("."))

    def test_no_process(self):
        done = subprocess.Popen(["true"])
        done.wait()
        self.assertSentence(probing("sql", done.pid, "SELECT 1", check=t.NO_INPUT).stderr, "no process %d" % done.pid)
        self.assertSentence(probing("sql", "99999999999999999999", "SELECT 1", check=t.NO_INPUT).stderr, "no process")

    def test_a_thread_is_no_process(self):
        with self.target() as target:
            tid = max(int(tid) for tid in os.listdir("/proc/%d/task" % target.pid))
            self.assertSentence(probing("sql", tid, "SELECT 1", check=t.NO_INPUT).stderr,
                                "%d is a thread of process %d" % (tid, target.pid))

    def as_ordinary_user(self, *arguments):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be two users")
        binary = os.path.join(os.getcwd(), "probing")
        shutil.copy(t.BINARY, binary)
        os.chmod(os.getcwd(), 0o777)
        return ["setpriv", "--reuid", str(ORDINARY_USER), "--regid", str(ORDINARY_USER), "--clear-groups"] + [
            binary if word is None else str(word) for word in arguments]

    def test_process_of_another_user(self):
        with self.target() as target:
            for table in ("python.backtrace", "process.envs", "process.maps", "process.fds"):
                with self.subTest(table):
                    done = subprocess.run(self.as_ordinary_user(None, "sql", target.pid, "SELECT * FROM " + table),
                                          capture_output=True, text=True)
                    self.assertEqual((t.NOT_PERMITTED, ""), (done.returncode, done.stdout))
                    self.assertSentence(done.stderr, "process %d belongs to uid 0 and you are uid %d" % (
                        target.pid, ORDINARY_USER), "probing doctor %d" % target.pid)
            done = subprocess.run(self.as_ordinary_user(None, "sql", target.pid, "SELECT rss_mb FROM memory_usage"),
                                  capture_output=True, text=True)
            self.assertEqual(0, done.returncode, done.stderr)

    def test_own_process_of_an_ordinary_user(self):
        with t.target(self.as_ordinary_user(t.DEBIAN_PYTHON, "-c", TARGET)) as target:
            for table in ("python.backtrace", "process.envs", "process.maps", "process.fds", "cpu.tasks"):
                with self.subTest(table):
                    done = subprocess.run(self.as_ordinary_user(None, "sql", target.pid, "SELECT * FROM " + table),
                                          capture_output=True, text=True)
                    if done.returncode == t.NOT_PERMITTED and "ptrace_scope" in done.stderr:
                        self.skipTest("kernel.yama.ptrace_scope forbids it")
                    self.assertEqual(0, done.returncode, done.stderr)

    def test_process_of_root(self):
        if os.geteuid() == 0:
            self.skipTest("this is root")
        for table in ("python.backtrace", "process.envs", "process.maps", "process.fds"):
            done = probing("sql", 1, "SELECT * FROM " + table, check=t.NOT_PERMITTED)
            self.assertEqual("", done.stdout)
            self.assertSentence(done.stderr, "process 1 belongs to uid 0")


# ---- Formats and limits: of values alone, a process serves ----

HARD = ("SELECT 'a|b' AS \"x|y\", 'back\\slash \\| both' AS b, '<module>' AS m, '__init__' AS u, 'weight' AS w, NULL AS n, "
        "'two\nlines' AS l, 1.5 AS r, 'größe 本' AS g, '' AS e, x'00ff' AS h")
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n%s) SELECT i FROM n"


def markdown_rows(text):
    """As the specification of GFM has it: cells are split at pipes that no backslash escapes."""
    rows = []
    for line in text.splitlines():
        cells = re.findall(r"((?:\\.|[^|\\])*)\|", line)
        rows.append([re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", cell.strip()) for cell in cells[1:]])
    return rows


class Formats(Folder):
    def run_on_myself(self, *arguments, **more):
        return probing("sql", os.getpid(), *arguments, **more)

    def test_markdown(self):
        header, rule, row = markdown_rows(self.run_on_myself(HARD, "-f", "markdown", check=t.OK).stdout)
        self.assertEqual(["x|y", "b", "m", "u", "w", "n", "l", "r", "g", "e", "h"], header)
        self.assertEqual({"---"}, set(rule))
        self.assertEqual(["a|b", "back\\slash \\| both", "<module>", "__init__", "weight", "", "two\\nlines", "1.5",
                          "größe 本", "", "00ff"], row)

    def test_markdown_means_nothing_else(self):
        text = self.run_on_myself("SELECT '<module>' AS a, '__init__' AS weight, '*x* `y` [z](u) &lt;' AS c", "-f", "markdown",
                                  check=t.OK).stdout
        self.assertIn("| weight |", text)
        self.assertIsNone(re.search(r"(?<!\\)[<*`\[&]", text), text)
        self.assertIn(r"\_\_init\_\_", text)

    def test_jsonl(self):
        text = self.run_on_myself(COUNT % " LIMIT 3" + "; " + HARD, "-f", "jsonl", check=t.OK).stdout
        rows = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([{"i": 1}, {"i": 2}, {"i": 3}], rows[:3])
        self.assertEqual(("two\nlines", None, 1.5), (rows[3]["l"], rows[3]["n"], rows[3]["r"]))
        self.assertEqual("", self.run_on_myself("SELECT 1 WHERE 0", "-f", "jsonl", check=t.OK).stdout)

    def test_box(self):
        lines = self.run_on_myself("SELECT 'größe' AS name, 7 AS n UNION ALL SELECT '本', 1234", "-f", "box",
                                   check=t.OK).stdout.splitlines()
        self.assertEqual(["┌───────┬──────┐", "│ name  │    n │", "├───────┼──────┤", "│ größe │    7 │", "│ 本    │ 1234 │",
                          "└───────┴──────┘"], lines)

    def test_no_header(self):
        self.assertEqual("1,x\n", self.run_on_myself("SELECT 1 AS a, 'x' AS b", "-f", "csv", "--no-header", check=t.OK).stdout)
        self.assertEqual("1  x\n", self.run_on_myself("SELECT 1 AS a, 'x' AS b", "--no-header", check=t.OK).stdout)

    def test_csv_is_the_same_in_all(self):
        asked = self.run_on_myself(HARD, "-f", "csv", check=t.OK).stdout
        self.assertEqual("a|b", list(csv.reader(io.StringIO(asked)))[1][0])

    def test_limit(self):
        done = self.run_on_myself(COUNT % "", "--limit", 3, "-f", "json", check=t.OK)
        self.assertEqual([{"i": 1}, {"i": 2}, {"i": 3}], json.loads(done.stdout))
        self.assertIn("more rows than the 3", done.stderr)
        done = self.run_on_myself(COUNT % " LIMIT 3", "--limit", 3, "-f", "json", check=t.OK)
        self.assertEqual(("", 3), (done.stderr, len(json.loads(done.stdout))))
        done = self.run_on_myself("SELECT 1 AS a; " + COUNT % " LIMIT 5" + "; SELECT 2 AS b", "--limit", 2, "-f", "csv", check=t.OK)
        self.assertEqual(["a", "1", "i", "1", "2", "b", "2"], done.stdout.split())
        self.assertEqual(t.USAGE, self.run_on_myself("SELECT 1", "--limit", 0).returncode)

    def test_timeout(self):
        endless = "SELECT count(*) FROM (%s)" % (COUNT % "")
        done = self.run_on_myself(endless, "--timeout", 0.2, check=t.FAILED)
        self.assertSentence(done.stderr, "longer than 0.2 seconds")
        self.run_on_myself("SELECT 1", "--timeout", 20, check=t.OK)
        self.assertEqual(t.USAGE, self.run_on_myself("SELECT 1", "--timeout", "x").returncode)


class TimeoutOfSeveral(t.Case):
    def test_it_ends_what_the_files_do(self):
        """The long step is one of a file's own connection, which must be stopped as well."""
        with t.recorder("-o", "a.db", "-d", 0.3, "--", "true") as recorder:
            recorder.wait()
        db = sqlite3.connect("a.db")
        db.execute("CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                   "SELECT max(i) AS i FROM n")
        db.commit()
        db.close()
        done = probing("sql", "a.db", "a.db", "SELECT * FROM endless", "--timeout", 0.3, check=t.FAILED, timeout=30)
        self.assertSentence(done.stderr, "longer than")


# ---- The prompt ----

class Prompt(Folder):
    def terminal(self, *arguments):
        return Terminal([t.BINARY, "sql", str(os.getpid())] + list(arguments), rows=40, columns=120,
                        environment={"HOME": os.getcwd(), "XDG_STATE_HOME": os.getcwd()})

    def say(self, terminal, line, wanted):
        terminal.press(line + "\n")
        terminal.wait_for(wanted)

    def test_commands(self):
        with open("script.sql", "w") as script:
            script.write("SELECT 'from ' || 'a file';\nSELECT 1;\n")
        with self.terminal() as terminal:
            terminal.wait_for("process %d" % os.getpid())
            self.say(terminal, ".tables", "python.backtrace")
            self.say(terminal, ".tables envs", lambda lines: sum("process.envs" in line for line in lines) == 2)
            self.say(terminal, ".schema process.fds", "append, nonblock")
            self.say(terminal, ".mode markdown", "probing>")
            self.say(terminal, "SELECT 6 * 7 AS answer;", "| 42 |")
            self.say(terminal, ".mode xml", "the mode is one of")
            self.say(terminal, ".timing on", "probing>")
            self.say(terminal, "SELECT 1;", lambda lines: any(re.fullmatch(r"\d+\.\d{3} s", line) for line in lines))
            self.say(terminal, ".run script.sql", "from a file")
            self.say(terminal, ".run nowhere.sql", "nowhere.sql cannot be read")
            self.say(terminal, ".output answers", "probing>")
            self.say(terminal, "SELECT 'kept ' || 'aside';", lambda lines: sum(line.endswith(" s") for line in lines) >= 3)
            self.say(terminal, ".output", "probing>")
            self.say(terminal, "SELECT 'here ' || 'again';", "here again")
            self.say(terminal, ".output /nowhere/x", "cannot be written")
            self.say(terminal, ".nothing", "there is no command .nothing")
            terminal.press(".quit\n")
            self.assertEqual(0, terminal.wait())
        with open("answers") as answers:
            self.assertIn("kept aside", answers.read())

    def test_help(self):
        with self.terminal() as terminal:
            terminal.wait_for("probing>")
            terminal.press(".help\n")
            terminal.wait_for(lambda lines: all(any(word in line for line in lines) for word in (
                ".tables", ".schema", ".mode", ".timing", ".run", ".output", "Ctrl-C")))

    def test_completion(self):
        erase = "\x15"
        with self.terminal() as terminal:
            terminal.wait_for("probing>")
            for typed, completed in (
                    ("SELECT count(*) FROM python.ba\t WHERE dep\t", "FROM python.backtrace WHERE depth"),
                    ("SELECT t.uti\t", "SELECT t.utilization"),  # of a table that is not named yet
                    ("SELECT gro\t", "SELECT group"), ("", ""),
                    (".sch\t", "> .schema"), (".schema process.en\t", ".schema process.envs"), (".mode mark\t", ".mode markdown")):
                if not typed:  # once more: there are several
                    terminal.press("\t")
                    terminal.wait_for("group_concat")
                    continue
                terminal.press(erase + typed)
                terminal.wait_for(completed)

    def test_interrupt(self):
        with self.terminal() as terminal:
            terminal.wait_for("probing>")
            self.interrupt(terminal, "SELECT count(*) FROM (%s);" % (COUNT % ""))

    def interrupt(self, terminal, sql):
        terminal.press(sql)
        terminal.wait_for(sql[-20:])
        row = terminal.screen.cursor.y
        terminal.press("\n")  # taken when it is echoed; before that Ctrl-C would drop the line
        terminal.wait_for(lambda lines: terminal.screen.cursor.y > row)
        for _ in range(50):
            if "the query was interrupted" in terminal.text():
                break
            terminal.press("\x03")
            terminal.take(0.2)
        terminal.wait_for("the query was interrupted")
        self.say(terminal, "SELECT 'still ' || 'here';", "still here")
        terminal.press(".quit\n")
        self.assertEqual(0, terminal.wait())


class PromptOfSeveral(t.Case):
    def test_interrupt(self):
        with t.recorder("-o", "a.db", "-d", 0.3, "--", "true") as recorder:
            recorder.wait()
        db = sqlite3.connect("a.db")
        db.execute("CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                   "SELECT max(i) AS i FROM n")
        db.commit()
        db.close()
        with Terminal([t.BINARY, "sql", "a.db", "a.db"], rows=40, columns=120,
                      environment={"HOME": os.getcwd(), "XDG_STATE_HOME": os.getcwd()}) as terminal:
            terminal.wait_for("2 recordings")
            terminal.press(".help\n")
            terminal.wait_for("USING (run, stack)")
            Prompt.interrupt(self, terminal, "SELECT * FROM endless;")

    def say(self, terminal, line, wanted):
        Prompt.say(self, terminal, line, wanted)


if __name__ == "__main__":
    sys.exit(unittest.main())
