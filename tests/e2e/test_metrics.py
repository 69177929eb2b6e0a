# SPDX-License-Identifier: MIT
"""Memory, CPU time and I/O of processes and of the machine, once a second in a recording."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import probing_test as t
from probing_test import probing

# Allocates 8 MB in each tenth of a second, writes to a disk, and uses CPU time; says what it has used.
GROWS = """
import os, resource, sys, time
kept = []
with open(sys.argv[1], "wb") as file:
    for _ in range(45):
        kept.append(bytearray(os.urandom(1)) * 8000000)
        file.write(kept[-1][:1000000])
        file.flush()
        os.fsync(file.fileno())
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        time.sleep(0.08)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime, usage.ru_oublock * 512, flush=True)
os._exit(0)  # a look while the interpreter gives its memory back would see it shrink
"""
MB = 1 << 20


def record_idle(seconds, *options, out="out.db"):
    with subprocess.Popen(["sleep", "1000"]) as target:
        try:
            probing("record", "--pid", target.pid, "-d", seconds, *options, "-o", out, check=t.OK)
        finally:
            target.kill()


def rows(path, sql):
    return json.loads(probing("sql", path, sql, "-f", "json", check=t.OK).stdout)


def rows_of_both(one, other, table):
    sql = "SELECT run, count(*) AS n FROM %s GROUP BY run" % table
    return json.loads(probing("sql", one, other, sql, "-f", "json", check=t.OK).stdout)


BUSY = "while True: pass"
CGROUPS = "/sys/fs/cgroup"


@contextlib.contextmanager
def limited_group(name, quota_us=20000, memory=256 * MB):
    """A cgroup with a fifth of a CPU and 256 MB, of version 1 or 2; yields where a process joins it, and its path. None: none may be made.

    @memory: None: no limit
    """
    with contextlib.ExitStack() as stack:
        joins = []
        for controller, files in (("cpu", {"cpu.cfs_quota_us": str(quota_us)}),
                                  ("memory" if memory else None, {"memory.limit_in_bytes": str(memory)}),
                                  ("", {"cpu.max": "%d 100000" % quota_us, **({"memory.max": str(memory)} if memory else {})})):
            if controller is None:
                continue
            folder = os.path.join(CGROUPS, controller, name)
            if os.path.exists(os.path.join(CGROUPS, controller, "cgroup.procs")):
                try:
                    os.mkdir(folder)
                    stack.callback(remove_group, folder)
                    for file, text in files.items():
                        with open(os.path.join(folder, file), "w") as out:
                            out.write(text)
                    joins.append(os.path.join(folder, "cgroup.procs"))
                except OSError:
                    joins.clear()
                    break
        yield joins or None


def throttling(joins):
    """A group's periods, those in which it was throttled, and for how many nanoseconds, by the kernel."""
    for file in joins:
        try:
            with open(os.path.join(os.path.dirname(file), "cpu.stat")) as stat:
                found = {word: int(number) for word, number in map(str.split, stat)}
        except OSError:
            continue
        if "nr_periods" in found:
            return found["nr_periods"], found["nr_throttled"], found.get("throttled_time", found.get("throttled_usec", 0) * 1000)
    raise AssertionError("no cpu.stat of the group")


def remove_group(folder):
    for _ in range(100):  # a killed process leaves it some time later
        try:
            return os.rmdir(folder)
        except OSError:
            time.sleep(0.05)
    raise AssertionError(folder + " is not empty")


def state_of(pid):
    with open("/proc/%d/stat" % pid) as stat:
        return stat.read().rpartition(")")[2].split()[0]


class Metrics(t.Case):
    light = True

    def test_a_process_that_grows(self):
        began = time.time()
        with open("said", "w+") as said:
            subprocess.run([t.BINARY, "record", "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c", GROWS, "written"], stdout=said,
                           stderr=subprocess.DEVNULL, check=True)
            said.seek(0)
            cpu_s, written = said.readline().split()
        found = rows("out.db", "SELECT * FROM process_usage JOIN process USING (pid) WHERE name LIKE 'python%' ORDER BY timestamp")
        times = [row["timestamp"] for row in found]
        self.assertGreaterEqual(len(found), 3)
        self.assertTrue(began - 1 < times[0] and times[-1] < time.time() + 1, times)
        # A late tick does not move those after it: n + 1 periods of a second begin and end between the ticks around n others.
        for i, first in enumerate(times):
            for n, later in enumerate(times[i + 2:], 1):
                self.assertGreater(later - first, n - 0.01, times)
        for column in ("rss", "anonymous", "user_ns", "written_bytes"):
            values = [row[column] for row in found]
            self.assertEqual(sorted(values), values, column)
        last = found[-1]
        self.assertGreater(last["rss"] - found[0]["rss"], 80 * MB)
        self.assertEqual(1, last["threads"])
        self.assertLessEqual((last["user_ns"] + last["system_ns"]) / 1e9, float(cpu_s) + 0.02)
        self.assertGreater((last["user_ns"] + last["system_ns"]) / 1e9, 0.1)
        if int(written) > 0:  # a file system in memory writes nothing
            self.assertGreater(last["written_bytes"], 0)
        memory = rows("out.db", "SELECT max(peak_rss_mb) peak, max(rss_mb) rss, max(memory_mb) own FROM memory_usage"
                                " WHERE timestamp > now() - interval '5 minutes'")[0]
        self.assertEqual(memory["peak"], memory["rss"])
        self.assertTrue(80 < memory["own"] <= memory["rss"], memory)

    def test_the_machine(self):
        record_idle(3)
        found = rows("out.db", "SELECT * FROM machine_usage ORDER BY timestamp")
        self.assertGreaterEqual(len(found), 2)
        self.assertEqual({os.uname().nodename}, {row["host"] for row in found})
        with open("/proc/meminfo") as meminfo:
            memory = int(dict(line.split(":") for line in meminfo)["MemTotal"].split()[0]) * 1024
        self.assertEqual({memory}, {row["memory"] for row in found})
        kinds = ("user_ns", "system_ns", "idle_ns", "iowait_ns", "steal_ns")
        first, last = (sum(row[kind] for kind in kinds) for row in (found[0], found[-1]))
        seconds = (last - first) / 1e9 / os.sysconf("SC_NPROCESSORS_ONLN")
        self.assertAlmostEqual(found[-1]["timestamp"] - found[0]["timestamp"], seconds, delta=0.3)

    def test_an_idle_process_has_rows(self):
        record_idle(3, "--metrics", "500ms")
        self.assertGreaterEqual(rows("out.db", "SELECT count(*) n FROM process_usage")[0]["n"], 2)

    def test_a_limited_cgroup(self):
        """Against the group's own file: how often it is throttled depends on who else wants the processors."""
        name = "probing_test_%d" % os.getpid()
        with limited_group(name) as joins:
            if not joins:
                self.skipTest("no cgroup with limits may be made here")
            with subprocess.Popen([t.DEBIAN_PYTHON, "-c", BUSY]) as busy:
                try:
                    for file in joins:
                        with open(file, "w") as out:
                            out.write(str(busy.pid))
                    began, before = time.monotonic(), throttling(joins)
                    probing("record", "--pid", busy.pid, "-d", 4, "-o", "out.db", check=t.OK)
                    found = rows("out.db", "SELECT * FROM cgroup_usage WHERE path = '/%s' ORDER BY timestamp" % name)
                    most = [max(row[column] for row in found) for column in ("throttled_periods", "throttled_ns")]
                    t.wait_until(lambda: all(one < other for one, other in zip(most, throttling(joins)[1:])), 60,
                                 "the group to be throttled, and to go on: the time counts then")
                    same = None
                    busy.send_signal(signal.SIGSTOP)
                    t.wait_until(lambda: state_of(busy.pid) == "T", 60, "the program to stop, and so the numbers soon")
                    while same != throttling(joins):
                        same, ended = throttling(joins), time.monotonic()
                        now = [row for row in rows(busy.pid, "SELECT * FROM cgroup_usage") if row["path"] == "/" + name]
                finally:
                    busy.kill()
        self.assertGreaterEqual(len(found), 3)
        self.assertEqual(1, len(now))
        for row in found + now:
            self.assertEqual([0.2, 256 * MB], [row["cpu_limit"], row["memory_limit"]])
            self.assertTrue(0 <= row["memory"] <= 256 * MB, row)
        told = [tuple(row[column] for column in ("periods", "throttled_periods", "throttled_ns")) for row in found + now]
        self.assertEqual(same, told[-1])
        for earlier, later in zip([before] + told, told):
            self.assertTrue(all(one <= other for one, other in zip(earlier, later)), told)
        self.assertGreater(told[-2][0], told[0][0])
        self.assertTrue(all(one < other for one, other in zip(told[0], told[-1])), told)
        self.assertLessEqual(same[0] - before[0], (ended - began) / 0.1 + 1)  # each period takes 0.1 s

    def test_disks_networks_and_pressure(self):
        """Against the same files, read before and after."""
        def of_file(path, key, column):
            with open(path) as file:
                return {line.replace(":", " ").split()[key]: int(line.replace(":", " ").split()[column])
                        for line in file if len(line.split()) > column and "|" not in line}
        def state():
            return of_file("/proc/diskstats", 2, 5), of_file("/proc/net/dev", 0, 1)
        before = state()
        record_idle(3)
        after = state()
        for table, key, column, unit, n in (("disk_usage", "device", "read_bytes", 512, 0),
                                            ("network_usage", "interface", "received_bytes", 1, 1)):
            own = "" if n == 0 else " WHERE namespace = %d" % os.stat("/proc/self/ns/net").st_ino
            found = rows("out.db", "SELECT * FROM %s%s ORDER BY timestamp" % (table, own))
            for row in found:
                self.assertTrue(before[n][row[key]] * unit <= row[column] <= after[n][row[key]] * unit, row)
            used = {name for name, number in before[n].items() if number > 0}
            self.assertEqual(used, used & {row[key] for row in found})
            self.assertEqual(used, used & {row[key] for row in rows(os.getpid(), "SELECT * FROM " + table)})
        if not os.path.exists("/proc/pressure/cpu"):
            self.skipTest("this kernel has no pressure stall information")
        found = rows("out.db", "SELECT * FROM pressure WHERE cgroup = '' ORDER BY timestamp")
        self.assertEqual({"cpu", "memory", "io"}, {row["resource"] for row in found})
        with open("/proc/pressure/io") as file:
            total_us = int(file.readline().split("total=")[1])
        self.assertLessEqual(max(row["some_ns"] for row in found if row["resource"] == "io"), total_us * 1000)

    def test_a_process_in_a_network_namespace_of_its_own(self):
        t.need_program("ip")
        if subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no network namespace may be made here")
        script = ("import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                  "while True: s.sendto(b'x' * 1000, ('127.0.0.1', 9)); time.sleep(0.01)")
        with subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && exec %s -c \"$0\"" % t.DEBIAN_PYTHON, script]) as sender:
            try:
                t.wait_until(lambda: t.comm_of(sender.pid).startswith("python"))
                time.sleep(0.5)
                namespace = os.stat("/proc/%d/ns/net" % sender.pid).st_ino
                probing("record", "--pid", sender.pid, "-d", 3, "-o", "out.db", check=t.OK)
            finally:
                sender.kill()
        found = rows("out.db", "SELECT interface, max(sent_bytes) - min(sent_bytes) AS sent, count(*) AS n FROM network_usage"
                               " WHERE namespace = %d GROUP BY interface" % namespace)
        self.assertEqual(["lo"], [row["interface"] for row in found])
        self.assertGreaterEqual(found[0]["n"], 2)
        self.assertGreater(found[0]["sent"], 10000)

    def test_never(self):
        record_idle(2, "--metrics", "0")
        self.assertEqual([0, 0, 0], [rows("out.db", "SELECT count(*) n FROM " + table)[0]["n"]
                                     for table in ("process_usage", "machine_usage", "memory_usage")])

    def test_compact_and_merge_keep_them(self):
        for name in ("a.db", "b.db"):
            record_idle(2, out=name)
        count = "SELECT (SELECT count(*) FROM process_usage) processes, (SELECT count(*) FROM machine_usage) machines"
        a, b = (rows(name, count)[0] for name in ("a.db", "b.db"))
        self.assertGreater(a["processes"], 0)
        probing("compact", "a.db", "-o", "compact.db", check=t.OK)
        self.assertEqual(a, rows("compact.db", count)[0])
        probing("merge", "a.db", "b.db", "-o", "merged.db", check=t.OK)
        self.assertEqual({key: a[key] + b[key] for key in a}, rows("merged.db", count)[0])
        self.assertEqual(2, rows("merged.db", "SELECT count(DISTINCT pid) n FROM process_usage JOIN process USING (pid)")[0]["n"])

    def test_many_rows_are_compressed(self):
        record_idle(2)
        with contextlib.closing(sqlite3.connect("out.db")) as db:  # as of a recording of an hour and some minutes
            db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) INSERT INTO process_usage"
                       " SELECT pid, timestamp + i, rss + i / 100 * 4096, anonymous, i, virtual, threads, user_ns + 1000000 * (i * 7 % 10), system_ns,"
                       " major_faults, NULL, written_bytes, read_chars + i, written_chars"
                       " FROM (SELECT * FROM process_usage ORDER BY timestamp DESC LIMIT 1), n")
            db.commit()
        probing("compact", "out.db", "-o", "packed.db", check=t.OK)
        (blocks,) = rows("packed.db", "SELECT sum(rows) AS n, total(length(data)) AS bytes FROM metric_block WHERE name = 'process_usage'")
        self.assertGreater(blocks["n"], 4000)
        self.assertLess(blocks["bytes"], 12 * blocks["n"])  # plain: 58
        everything = "SELECT * FROM process_usage ORDER BY timestamp, pid"
        usage = rows("out.db", everything)
        self.assertEqual(usage, rows("packed.db", everything))
        memory = "SELECT * FROM memory_usage ORDER BY timestamp, pid"
        self.assertEqual(rows("out.db", memory), rows("packed.db", memory))
        end = usage[-1]["timestamp"]
        recent = "SELECT count(*) AS n FROM process_usage WHERE timestamp > %r" % (end - 10.5)
        self.assertEqual([{"n": 11}], rows("packed.db", recent))
        self.assertEqual([{"run": 1, "n": len(usage)}, {"run": 2, "n": len(usage)}], rows_of_both("out.db", "packed.db", "process_usage"))
        self.assertEqual([{"run": 1, "n": len(usage)}, {"run": 2, "n": len(usage)}], rows_of_both("out.db", "packed.db", "memory_usage"))
        listed = [one for one in json.loads(probing("tables", "packed.db", "--json", check=t.OK).stdout) if one["name"] == "process_usage"]
        self.assertEqual([len(usage)], [one["rows"] for one in listed])
        self.assertEqual(timeline("out.db"), timeline("packed.db"))
        self.assertIn("intact", probing("info", "--check", "packed.db", check=t.OK).stdout)
        for command in (["export", "packed.db", "--to", "sqlite", "-o", "plain.sqlite"], ["merge", "packed.db", "out.db", "-o", "merged.db"],
                        ["compact", "packed.db", "-o", "again.db"]):
            probing(*command, check=t.OK)
        self.assertEqual([{"n": len(usage)}], rows("merged.db", "SELECT count(*) AS n FROM process_usage"))
        self.assertEqual(usage, rows("again.db", everything))
        with contextlib.closing(sqlite3.connect("plain.sqlite")) as db:  # for any tool
            self.assertEqual((len(usage), end), db.execute("SELECT count(*), max(timestamp) FROM process_usage").fetchone())
            self.assertEqual([], db.execute("SELECT name FROM sqlite_schema WHERE name = 'metric_block'").fetchall())
        with contextlib.closing(sqlite3.connect("packed.db")) as db:
            db.execute("UPDATE metric_block SET data = zeroblob(40)")
            db.commit()
        damage = probing("info", "--check", "packed.db", check=t.BAD_DATA)
        self.assertIn("blocks of metrics are damaged", damage.stdout + damage.stderr)
        self.assertIn("a block of rows of process_usage is damaged", probing("sql", "packed.db", everything, check=t.BAD_DATA).stderr)

    def test_retention_drops_them(self):
        with t.fixture("demo.py") as target:
            probing("record", "--pid", target.pid, "-F", 499, "--retention", 1, "-d", 5, "-o", "out.db", check=t.OK)
        kept = rows("out.db", "SELECT (SELECT min(timestamp) FROM sample) sample, min(timestamp) usage, count(*) n FROM process_usage")[0]
        self.assertGreaterEqual(kept["usage"], kept["sample"])
        self.assertGreater(kept["n"], 0)

    def test_older_recordings_have_none(self):
        path = os.path.join(t.ROOT, "fixtures", "recordings", "version_1.db")
        self.assertEqual([], rows(path, "SELECT * FROM memory_usage"))

    def test_a_running_process(self):
        row, = rows(os.getpid(), "SELECT * FROM memory_usage")
        self.assertEqual(os.getpid(), row["pid"])

    def test_statements_that_people_type(self):
        """As older documentation has them: of a recording, and of a running process."""
        began = time.time()
        record_idle(2)
        for source in ("out.db", os.getpid()):
            hours = rows(source, "SELECT hour(timestamp) AS hour, avg(memory_mb) AS mb FROM memory_usage GROUP BY hour(timestamp)")
            self.assertGreater(len(hours), 0)
            for row in hours:
                self.assertIn(row["hour"], {time.gmtime(began).tm_hour, time.gmtime().tm_hour})
                self.assertGreater(row["mb"], 0)
            for since in ("now() - interval '5 min'", "now() - interval '5 minutes'", "now() - 300"):
                self.assertGreater(rows(source, "SELECT count(*) AS n FROM memory_usage WHERE timestamp > " + since)[0]["n"], 0)
            self.assertEqual(0, rows(source, "SELECT count(*) AS n FROM memory_usage WHERE timestamp < now() - interval '5 min'")[0]["n"])
            self.assertEqual(1, len(rows(source, "SELECT avg(gpu_util) AS busy FROM gpu_metrics WHERE timestamp > now() - 60")))

    def test_any_sqlite_reads_the_view(self):
        record_idle(2)
        with contextlib.closing(sqlite3.connect("out.db")) as db:
            self.assertGreater(db.execute("SELECT count(*) FROM memory_usage WHERE rss_mb > 0").fetchone()[0], 0)

    def test_a_period_that_is_no_time(self):
        said = probing("record", "--metrics", "often", "--", "true", check=t.USAGE)
        self.assertIn("--metrics", said.stderr)


def timeline(path, *options, columns=60):
    said = probing("report", "--timeline", path, *options, check=t.OK, env=dict(os.environ, COLUMNS=str(columns), TZ="UTC"))
    return said.stdout.splitlines()


def n_looks(path):
    """Of a recording that is being written: at how many times this process was looked at."""
    try:
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
            return db.execute("SELECT count(DISTINCT timestamp) FROM process_usage WHERE pid = ?", (os.getpid(),)).fetchone()[0]
    except sqlite3.Error:
        return 0


class MetricsOnly(t.Case):
    """record --metrics-only, and report --timeline of it."""
    light = True

    def test_a_process_and_its_children(self):
        def n_rows(name):
            try:
                with contextlib.closing(sqlite3.connect("file:out.db?mode=ro", uri=True)) as db:
                    return db.execute("SELECT count(*) FROM process_usage JOIN process USING (pid) WHERE name GLOB ?",
                                      (name,)).fetchone()[0]
            except sqlite3.Error:
                return 0
        # Each child lives until the other side of a FIFO is opened.
        script = ("sleep 1000 & read line < first; kill $!; wait $! 2> /dev/null;"
                  " %s -c 'x = bytearray(50000000); open(\"second\").read()'; exit 3" % t.DEBIAN_PYTHON)
        for name in ("first", "second"):
            os.mkfifo(name)
        with subprocess.Popen(["sh", "-c", script]) as target, \
                t.recorder("--metrics-only", "--metrics", "200ms", "--pid", target.pid, "-o", "out.db") as recorder:
            self.addCleanup(target.kill)
            for fifo, name, n in (("first", "sleep", 2), ("second", "python*", 9)):
                t.wait_until(lambda name=name, n=n: n_rows(name) >= n, 30, "rows of " + name)
                self.assertIsNone(recorder.poll())
                with open(fifo, "w") as to:
                    to.write("go\n")
            self.assertEqual(3, target.wait())
            said = recorder.communicate(timeout=30)[1]
            self.assertEqual(t.OK, recorder.returncode, said)
        found = rows("out.db", "SELECT name, count(*) AS n, max(rss) AS rss, min(ended - started) AS seconds FROM process_usage"
                               " JOIN process USING (pid) GROUP BY pid ORDER BY rss")
        self.assertLessEqual({"sh", "sleep"}, {row["name"] for row in found})
        python, = (row for row in found if row["name"].startswith("python"))
        self.assertGreater(python["rss"], 50000000)
        self.assertGreaterEqual(python["n"], 8)
        self.assertEqual([{"stack_source": "none", "hz": 0, "clean": 1}], rows("out.db", "SELECT stack_source, hz, clean FROM run"))
        self.assertEqual([], rows("out.db", "SELECT * FROM sample"))
        self.assertGreater(rows("out.db", "SELECT count(*) AS n FROM cgroup_usage")[0]["n"] +
                           rows("out.db", "SELECT count(*) AS n FROM machine_usage")[0]["n"], 8)
        self.assertNotIn("probing", {row["name"] for row in found})
        probing("merge", "out.db", "out.db", "-o", "merged.db", check=t.OK)
        self.assertGreater(rows("merged.db", "SELECT count(*) AS n FROM process_usage")[0]["n"], 0)

    def test_the_machine_until_a_signal(self):
        with subprocess.Popen([t.BINARY, "record", "--metrics-only", "-o", "out.db"], stderr=subprocess.PIPE, text=True) as recorder:
            t.wait_until(lambda: n_looks("out.db") >= 2, 30, "two looks")
            recorder.send_signal(signal.SIGINT)
            said = recorder.communicate()[1]
            self.assertEqual(0, recorder.returncode)
        self.assertIn("and the machine every 1 s, without samples", said)
        self.assertIn("probing report --timeline out.db draws them", said)
        self.assertIn(os.getpid(), {row["pid"] for row in rows("out.db", "SELECT DISTINCT pid FROM process_usage")})
        self.assertGreaterEqual(rows("out.db", "SELECT count(DISTINCT timestamp) AS n FROM process_usage")[0]["n"], 2)

    def test_under_nohup_the_end_of_the_terminal_is_not_that_of_the_recording(self):
        for how in (["--metrics-only"], ["--source", "poll"]):
            with self.subTest(how), subprocess.Popen(["sleep", "60"]) as target:
                self.addCleanup(target.kill)
                began = time.monotonic()
                with t.recorder(*how, "--pid", target.pid, "-d", 3, "-o", how[-1] + ".db",
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as recorder:
                    t.wait_until(lambda: os.path.exists(how[-1] + ".db"), 15, "the recorder")
                    recorder.send_signal(signal.SIGHUP)
                    said = recorder.communicate(timeout=30)[1]
                target.kill()
                self.assertEqual(t.OK, recorder.returncode, said)
                self.assertGreater(time.monotonic() - began, 2.9, said)

    def test_in_the_background(self):
        said = probing("record", "--metrics-only", "--background", "-d", 2, "-o", "out.db", check=t.OK)
        pid = int(re.search(r"\d+", said.stdout).group())
        t.wait_until(lambda: not os.path.exists("/proc/%d" % pid) or t.state_of(pid) == "Z", 60, "the end of the recorder")
        self.assertGreater(rows("out.db", "SELECT count(*) AS n FROM process_usage")[0]["n"], 1)

    def test_by_name(self):
        seconds = "77.%d" % os.getpid()  # no other test run has that one
        with subprocess.Popen(["sleep", seconds]) as target:
            try:
                probing("record", "--metrics-only", "--cmdline", "sleep " + seconds, "-d", 2, "-o", "out.db", check=t.OK)
            finally:
                target.kill()
        self.assertEqual([{"pid": target.pid}], rows("out.db", "SELECT DISTINCT pid FROM process_usage"))

    def test_retention(self):
        began = time.time()
        with subprocess.Popen(["sh", "-c", "sleep 0.5; sleep 0.6; sleep 1000"]) as target:
            try:
                probing("record", "--metrics-only", "--pid", target.pid, "--metrics", "300ms", "--retention", 1, "-d", 6, "-o", "out.db",
                        check=t.OK)
            finally:
                for child in t.children_of(target.pid):
                    os.kill(child, signal.SIGKILL)
                target.kill()
        kept = rows("out.db", "SELECT min(timestamp) AS first, max(timestamp) AS last FROM process_usage")[0]
        self.assertGreater(kept["first"], began + 1)
        self.assertGreater(kept["last"], kept["first"] + 0.5)
        processes = rows("out.db", "SELECT pid, parent_pid FROM process")  # the first children have ended, and are dropped
        self.assertEqual(2, len(processes), processes)
        self.assertEqual([target.pid], [row["parent_pid"] for row in processes if row["pid"] != target.pid])

    def test_what_makes_no_sense(self):
        for options, word in ((["--", "true"], "running processes"), (["-F", "99"], "no samples"), (["--metrics", "0"], "nothing"),
                              (["-o", "x.svg"], "--timeline"), (["--paused"], "pause")):
            self.assertIn(word, probing("record", "--metrics-only", *options, check=t.USAGE).stderr)

    def check_picture(self, line, start, points, base, since, until):
        """Each column against the mean of its points."""
        levels = ".:-=+*#@"
        picture = line[start:].rsplit("  ", 1)[0]
        low = min(value for _, value in points) if base is None else base
        high = max(value for _, value in points)
        n_checked = 0
        for column, character in enumerate(picture):
            begin, end = (since + (until - since) * (column + n) / len(picture) for n in (0, 1))
            values = [value for seconds, value in points
                      if (begin <= seconds or column == 0) and (seconds < end or column + 1 == len(picture))]
            if values:
                level = min(7, int((sum(values) / len(values) - low) / (high - low) * 8)) if high > low else 7
                self.assertIn(levels.index(character) - level, (-1, 0, 1), (line, column))  # a mean on the edge of two
                n_checked += 1
        self.assertGreaterEqual(n_checked, 8)

    def test_the_timeline(self):
        script = ("import os, sys, time\nsys.stdin.readline()\nkept = []\nfor i in range(20):\n  kept.append(b'x' * 10000000)\n"
                  "  end = time.process_time() + (0.15 if i >= 10 else 0)\n  while time.process_time() < end: pass\n  time.sleep(0.1)\n"
                  "os._exit(0)")  # as it is, without giving memory back first
        with subprocess.Popen([t.DEBIAN_PYTHON, "-c", script], stdin=subprocess.PIPE, text=True) as target, \
                t.recorder("--metrics-only", "--metrics", "100ms", "--pid", target.pid, "-o", "out.db") as recorder:
            t.await_recording(recorder)
            target.communicate("go\n")
            said = recorder.communicate(timeout=30)[1]
            self.assertEqual(t.OK, recorder.returncode, said)
        lines = timeline("out.db", "--ascii", "--pid", str(target.pid))
        self.assertRegex(lines[0], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d to \d\d:\d\d:\d\d UTC$")
        self.assertRegex(lines[-1], r"^a column is [0-9.]+ s$")
        series = {line[:21].strip(): line for line in lines[1:-1]}
        for line in lines:
            self.assertLessEqual(len(line), 60)
            self.assertTrue(line.isascii(), line)
        usage = rows("out.db", "SELECT timestamp, rss, user_ns + system_ns AS ns FROM process_usage ORDER BY timestamp")
        self.assertGreaterEqual(len(usage), 10)
        rates = [(after["timestamp"], (after["ns"] - before["ns"]) / (after["timestamp"] - before["timestamp"]) / 1e9)
                 for before, after in zip(usage, usage[1:])]
        start = re.search(r"^memory \(RSS\) +", series["memory (RSS)"]).end()  # it has no blank at first
        machine = rows("out.db", "SELECT min(timestamp) AS first, max(timestamp) AS last FROM machine_usage")[0]
        for name, points, base in (("memory (RSS)", [(row["timestamp"], row["rss"]) for row in usage], None), ("CPU", rates, 0)):
            self.check_picture(series[name], start, points, base, machine["first"], machine["last"])
        self.assertIn("▁", "".join(timeline("out.db")))
        self.assertGreater(max(map(len, timeline("out.db", columns=120))), 60)
        self.assertIn("no metrics", probing("report", "--timeline", "out.db", "--pid", "1", "--until", "2020-01-01 00:00", check=t.NO_INPUT).stderr)
        self.assertIn("--timeline", probing("report", "--timeline", "out.db", "--focus", "x", check=t.USAGE).stderr)
        self.assertIn("--metrics-only", probing("report", "--timeline", os.getpid(), check=t.USAGE).stderr)

    def test_the_timeline_of_a_programs_steps(self):
        record_idle(2)
        with contextlib.closing(sqlite3.connect("out.db")) as db:
            db.execute("CREATE TABLE training_logs(timestamp REAL, step INTEGER, loss REAL)")
            db.executemany("INSERT INTO training_logs SELECT min(timestamp) + ?1 * 0.1, ?1 * 5, 1.0 FROM machine_usage",
                           [(n,) for n in range(20)])
            db.commit()
            db.execute("CREATE TABLE \"\x1b[31m\"(timestamp REAL, step INTEGER)")
            db.executemany("INSERT INTO \"\x1b[31m\" SELECT timestamp, step * ?1 FROM training_logs", [(1e300,), (1,)])
            db.commit()
        lines = timeline("out.db")
        line, = (line for line in lines if line.startswith("steps of training_logs"))
        self.assertTrue(line.endswith("50.0 to 50.0 /s"), line)
        self.assertNotIn("\x1b", "".join(lines))
        self.assertTrue(any(line.startswith("steps of ?[31m") for line in lines), lines)
        for when in (1e17, 1e300):  # in no year of localtime(3); no time_t
            with contextlib.closing(sqlite3.connect("out.db")) as db:
                db.execute("INSERT INTO training_logs VALUES(?, 1000, 1.0)", (when,))
                db.commit()
            self.assertIn("steps of training_logs", "".join(timeline("out.db")))
