# SPDX-License-Identifier: MIT
"""Distributed jobs: which rank is odd, what is missing, other machines, documents."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import probing_test as t

AWAY = 2  # this rank skips a collective operation


def line_of(text):
    """Where ranks.py has it."""
    with open(os.path.join(t.FIXTURES, "ranks.py"), encoding="utf-8") as source:
        return [line.strip() for line in source].index(text) + 1


def need_no_foreign_python():
    """A Python of another user may be a rank that this user cannot read: each command says so, in a line that no test here expects."""
    for pid in (entry for entry in os.listdir("/proc") if entry.isdigit() and os.geteuid() != 0):
        with contextlib.suppress(OSError), open("/proc/%s/comm" % pid) as comm:
            if comm.read().startswith("python") and os.stat("/proc/" + pid).st_uid != os.geteuid():
                raise unittest.SkipTest("process %s is another user's Python, and might be a rank" % pid)


@contextlib.contextmanager
def job(n, port, python=t.DEBIAN_PYTHON, world_size=None, first=0):
    """Ranks without torch, which wait for each other as in a collective operation; yields their processes."""
    need_no_foreign_python()
    with contextlib.ExitStack() as stack:
        processes = []
        for rank in range(first, first + n):
            environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size or n),
                               MASTER_PORT=str(port))
            processes.append(stack.enter_context(t.target(
                [python, os.path.join(t.FIXTURES, "ranks.py"), str(AWAY)], env=environment)))
        yield processes


def backtrace(*arguments, **more):
    return t.probing("cluster", "backtrace", *arguments, **more)


class Ranks(t.Case):
    """One job on this machine."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.processes = cls.stack.enter_context(job(4, 4001))
        cls.local = ("--job", "4001")

    def text(self, *arguments):
        return backtrace(*self.local, *arguments, check=t.OK).stdout

    def test_the_odd_one_is_first_with_its_line(self):
        lines = self.text("--no-native").splitlines()
        self.assertEqual("Job 4001: 4 of 4 ranks read", lines[0])
        at = lines.index("2 classes of equal stacks, outliers first:")
        self.assertRegex(lines[at + 1], r"^  rank 2  \(pid %d on " % self.processes[AWAY].pid)
        self.assertIn("load_batch  (ranks.py:%d)" % line_of("time.sleep(LIFE_S)"), lines[at + 2])
        self.assertRegex(lines[at + 3], "^  ranks 0,1,3: 3 alike")
        self.assertIn("all_reduce  (ranks.py:%d)" % line_of("os.read(PIPE[0], 1)"), lines[at + 4])
        self.assertIn("read for descriptor", lines[at + 4])

    def test_the_tree_has_the_ranks_of_each_branch(self):
        tree = self.text().split("outermost frame first:\n\n")[1]
        self.assertRegex(tree, re.compile(r"^<module>  \(ranks.py:\d+\)\nrank 2:\n  train  .*\n  load_batch  .*\n  time.sleep  "
                                          r".*^ranks 0,1,3:\n  train  .*\n  all_reduce  .*\n  posix.read  ", re.M | re.S))

    def test_other_threads_on_request(self):
        self.assertNotIn("background", self.text())
        self.assertRegex(self.text("--threads"), r"ranks 0-3: 4 alike.*\n      background  \(ranks.py:%d\)"
                         % (line_of("def background():") + 1))

    def test_all_frames_show_the_start(self):
        self.assertNotIn("_start", self.text())
        self.assertRegex(self.text("--all-frames"), "outermost frame first:\n\n_start")

    def test_by_launcher_pattern_and_pid(self):
        mine = sorted(p.pid for p in self.processes)
        for arguments in (["--launcher", str(os.getpid()), *self.local], ["ranks.py", *self.local],
                          ["--pid", ",".join(map(str, mine))]):
            with self.subTest(arguments):
                read = json.loads(backtrace("--json", *arguments, check=t.OK).stdout)
                self.assertEqual(mine, sorted(rank["pid"] for rank in read["hosts"][0]["ranks"]))

    def test_some_pids_miss_nobody(self):
        self.assertNotIn("missing", backtrace("--pid", str(self.processes[0].pid), check=t.OK).stdout)

    def test_json_is_shown_again(self):
        with t.scratch():
            backtrace(*self.local, "-o", "all.json", check=t.OK)  # by the name
            shown = backtrace("--from", "all.json", check=t.OK).stdout
            self.assertRegex(shown, r"rank 2  \(pid %d on " % self.processes[AWAY].pid)
            with open("all.json", "a", encoding="utf-8") as file:
                file.write("{")
            self.assertIn("no document", backtrace("--from", "all.json", check=t.BAD_DATA).stderr)

    def test_pictures_name_ranks(self):
        for form in "svg", "html":
            with self.subTest(form):
                done = backtrace(*self.local, "--format", form)
                if "this build of probing cannot write" in done.stderr:
                    continue
                self.assertEqual(t.OK, done.returncode, done.stderr)
                self.assertIn("[rank 2]", done.stdout)
                self.assertIn("[ranks 0,1,3]", done.stdout)

    def test_a_stopped_rank_is_odd_and_stays_stopped(self):
        pid = self.processes[1].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            t.wait_until(lambda: t.state_of(pid) == "T")
            text = self.text()
            self.assertEqual("T", t.state_of(pid))
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertRegex(text, r"  rank 1  \(pid %d .*\n.*; stopped by a signal" % pid)

    def test_ranks_of_others_are_named(self):
        """A process that ends meanwhile, and one that never was."""
        text = backtrace("--pid", "%d,%d" % (self.processes[0].pid, 4194303), check=t.OK).stdout
        self.assertRegex(text, r"pid 4194303 \(host .*\): gone: there is no process 4194303")


def query(sql, *arguments, **more):
    """Rows as Python's values."""
    done = t.probing("cluster", "query", "-f", "json", *arguments, sql, check=t.OK, **more)
    return json.loads(done.stdout), done.stderr


class Rows(t.Case):
    """SQL over the ranks of one job."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.processes = cls.stack.enter_context(job(4, 4005, world_size=5))
        cls.local = ("--job", "4005")

    def test_nodes(self):
        nodes = json.loads(t.probing("cluster", "nodes", *self.local, "-f", "json", check=t.OK).stdout)
        self.assertEqual([(rank, rank, 5, "4005", self.processes[rank].pid, "running") for rank in range(4)] +
                         [(4, None, 5, "4005", None, "missing")],
                         [tuple(node[key] for key in ("rank", "local_rank", "world_size", "job", "pid", "status"))
                          for node in nodes])
        self.assertLess(abs(time.time() - nodes[0]["timestamp"]), 60)

    def test_a_process_before_the_verb_means_its_job(self):
        for pid in self.processes[3].pid, os.getpid():
            rows = json.loads(t.probing("-t", pid, "cluster", "query", "-f", "json",
                                        "SELECT rank FROM cluster.nodes WHERE job = '4005' AND pid > 0", check=t.OK).stdout)
            self.assertEqual([0, 1, 2, 3], [row["rank"] for row in rows])

    def test_rows_of_all_ranks_come_by_rank(self):
        rows, said = query("SELECT * FROM memory_usage", *self.local)
        self.assertEqual(["host", "rank", "local_rank"], list(rows[0])[:3])
        self.assertEqual([(rank, self.processes[rank].pid) for rank in range(4)], [(row["rank"], row["pid"]) for row in rows])
        self.assertEqual("", said)

    def test_the_rank_that_is_elsewhere(self):
        rows, _ = query("SELECT rank, lineno FROM python.backtrace WHERE func = 'load_batch'", *self.local)
        self.assertEqual([{"rank": AWAY, "lineno": line_of("time.sleep(LIFE_S)")}], rows)

    def test_an_average_is_one_of_all_rows(self):
        """Ranks have different numbers of rows: an average of averages would be another number."""
        rows, _ = query("SELECT avg(depth) AS mean, count(*) AS n, sum(depth) AS sum FROM python.backtrace", *self.local)
        each, _ = query("SELECT avg(depth) AS mean, count(*) AS n FROM python.backtrace", "--each", *self.local)
        self.assertEqual([0, 1, 2, 3], [row["rank"] for row in each])
        self.assertEqual(rows[0]["n"], sum(row["n"] for row in each))
        self.assertGreater(len({row["n"] for row in each}), 1)
        self.assertAlmostEqual(rows[0]["sum"] / rows[0]["n"], rows[0]["mean"])
        self.assertAlmostEqual(sum(row["mean"] * row["n"] for row in each) / rows[0]["n"], rows[0]["mean"])

    def test_ranks_answer_in_part(self):
        """Against the same statement in one SQLite database of all rows; the stacks of ranks that wait do not change."""
        rows, _ = query("SELECT * FROM python.backtrace", *self.local)
        with contextlib.closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE TABLE backtrace(%s)" % ", ".join(rows[0]))
            db.executemany("INSERT INTO backtrace VALUES(%s)" % ", ".join("?" * len(rows[0])), [list(row.values()) for row in rows])
            for sql in ("SELECT count(*) AS n, sum(depth) AS sum, avg(depth) AS mean, min(depth) AS low, max(depth) AS high FROM %s",
                        "SELECT func, count(*) AS n, avg(lineno) FROM %s GROUP BY func HAVING count(*) > 1 ORDER BY n DESC, func",
                        "SELECT rank, count(*) FROM %s WHERE thread = 'MainThread' GROUP BY rank ORDER BY rank",
                        "SELECT rank, func, depth FROM %s ORDER BY depth DESC, rank, func LIMIT 3"):
                with self.subTest(sql):
                    found, said = query(sql % "python.backtrace", *self.local)
                    self.assertEqual("", said)
                    columns = [column[0] for column in db.execute(sql % "backtrace").description]
                    self.assertEqual([dict(zip(columns, row)) for row in db.execute(sql % "backtrace")], found)

    def test_percentiles(self):
        sql = "SELECT percentile_disc(lineno, 0.5) AS p FROM python.backtrace"
        exact, said = query(sql, "--exact", *self.local)
        self.assertEqual("probing: all rows of its tables are transferred, since the statement cannot be split: percentiles are to be exact\n",
                         said)
        about, said = query(sql, *self.local)
        self.assertEqual("probing: percentiles are within 1 %; --exact computes them from all values\n", said)
        self.assertAlmostEqual(exact[0]["p"], about[0]["p"], delta=0.011 * exact[0]["p"])

    def test_what_cannot_be_split_says_so(self):
        rows, said = query("SELECT count(DISTINCT rank) AS n FROM memory_usage", *self.local)
        self.assertEqual([{"n": 4}], rows)
        self.assertRegex(said, "^probing: all rows of its tables are transferred, since the statement cannot be split: it has an aggregate "
                               "with DISTINCT.*\n$")
        self.assertIn("no rank can answer the statement, for the reasons above",
                      t.probing("cluster", "query", *self.local, "SELECT count(*) FROM no_such_table", check=t.BAD_DATA).stderr)

    def test_a_join_of_two_ranks(self):
        rows, _ = query("SELECT a.rank AS a, b.rank AS b FROM memory_usage a JOIN memory_usage b ON b.rank = a.rank + 1 "
                        "JOIN cluster.nodes n ON n.pid = b.pid", *self.local)
        self.assertEqual([(0, 1), (1, 2), (2, 3)], sorted((row["a"], row["b"]) for row in rows))

    def test_a_table_that_no_rank_may_have_costs_one_line(self):
        rows, said = query("SELECT * FROM python.variables", *self.local)
        self.assertEqual([], rows)
        self.assertRegex(said, r"^probing: ranks 0-3: python.variables: process \d+ has no agent: .*\n$")

    def test_nothing_is_changed_or_opened(self):
        with t.scratch():
            for sql in "DELETE FROM memory_usage", "ATTACH 'x.db' AS x", "SELECT * FROM no_such_table":
                with self.subTest(sql):
                    t.probing("cluster", "query", *self.local, sql, check=t.BAD_DATA)
            self.assertEqual([], os.listdir("."))

    def test_usage(self):
        t.probing("cluster", "query", check=t.USAGE)
        t.probing("cluster", "query", "SELECT 1", "SELECT 2", check=t.USAGE)
        t.probing("cluster", "nodes", "-f", "pdf", check=t.USAGE)


class Together(t.Case):
    """What is done to all ranks at once."""

    def test_attach(self):
        with job(2, 4006) as processes, t.scratch():
            local = ("--job", "4006")
            with open("probes.yaml", "w", encoding="utf-8") as file:
                file.write("functions: [train]\n")
            loaded = t.probing("cluster", "attach", *local, check=t.OK).stdout.splitlines()
            for rank, line in enumerate(loaded):
                self.assertRegex(line, "^rank %d on .*: the agent is in process %d " % (rank, processes[rank].pid))
            armed = t.probing("cluster", "attach", *local, "--config", "probes.yaml", check=t.OK).stdout
            self.assertEqual(2, armed.count(" has probes on 1 functions and 0 variables\n"))
            rows, said = query("SELECT rank, func FROM python.function_time", *local)
            self.assertEqual(([{"rank": 0, "func": "train"}, {"rank": 1, "func": "train"}], ""), (rows, said))
            with open("probes.yaml", "a", encoding="utf-8") as file:
                file.write("nonsense: 1\n")
            failed = t.probing("cluster", "attach", *local, "--config", "probes.yaml", check=t.FAILED).stderr
            self.assertIn("2 of the ranks and hosts failed", failed)
            self.assertRegex(failed, "probing: rank 1 on .*probes.yaml:2:1: ")

    def test_rows_of_a_main_thread_that_computes(self):
        """It never waits for the interpreter's lock by itself, and another thread loads the agent."""
        environment = dict(os.environ, RANK="0", WORLD_SIZE="1", MASTER_PORT="4015", PYTHONPATH=os.path.join(t.ROOT, "python"))
        with t.target([t.DEBIAN_PYTHON, os.path.join(t.FIXTURES, "ranks.py"), "--slow", "0"], env=environment) as process:
            t.probing("cluster", "attach", "--job", "4015", check=t.OK)
            t.wait_until(lambda: t.probing("sql", process.pid, "SELECT * FROM python.steps").returncode == t.OK, 30, "its steps")

    def test_record(self):
        t.need_perf()
        with job(2, 4007) as processes, t.scratch():
            done = t.probing("cluster", "record", "--job", "4007", "--", "-d", "1s", "--mode", "wall", "-o", "all.db", check=t.OK)
            self.assertIn("recording rank 0 (pid %d), rank 1 (pid %d)\n" % tuple(p.pid for p in processes), done.stderr)
            with contextlib.closing(t.connect("all.db")) as db:
                self.assertLessEqual({p.pid for p in processes}, {pid for pid, in db.execute("SELECT pid FROM process")})


class Slow(t.Case):
    def stacks(self):
        """The paths in which the odd rank differs from the others, by their ends."""
        report = json.loads(t.probing("cluster", "report", "--job", "4008", "-d", "1s", "--json", "--paths", "9", check=t.OK).stdout)
        rank = report["jobs"][0]["ranks"][AWAY]
        self.assertTrue(rank["differs"], report)
        return {re.search(r"train_slowly > \w+", stack["stack"]).group(): stack for stack in rank["stacks"] if "train_slowly > " in stack["stack"]}

    def test_usage(self):
        self.assertIn("--diff chooses the rank of a picture", t.probing("cluster", "report", "--diff", "1", check=t.USAGE).stderr)
        self.assertIn("text, json, svg", t.probing("cluster", "report", "--format", "pdf", check=t.USAGE).stderr)

    def test_the_rank_that_computes_while_the_others_wait(self):
        with contextlib.ExitStack() as stack:
            for rank in range(4):
                stack.enter_context(t.target(
                    [t.DEBIAN_PYTHON, os.path.join(t.FIXTURES, "ranks.py"), "--slow", str(AWAY)],
                    env=dict(os.environ, RANK=str(rank), WORLD_SIZE="4", MASTER_PORT="4008",
                             PYTHONPATH=os.path.join(t.ROOT, "python"))))
            t.probing("cluster", "attach", "--job", "4008", check=t.OK)  # from here on, steps are rows
            text = t.probing("cluster", "report", "--job", "4008", "-d", "3s", check=t.OK).stdout
            found = self.stacks()
            with t.scratch():
                for name in "diff.svg", "diff.html":
                    done = t.probing("cluster", "report", "--job", "4008", "-d", "0.3", "--samples", "10", "--diff", str(AWAY), "-o", name)
                    if "this build of probing cannot write" in done.stderr:
                        continue
                    self.assertEqual(t.OK, done.returncode, done.stderr)
                    with open(name, encoding="utf-8") as file:
                        picture = file.read()
                    self.assertIn("rank %d against the others" % AWAY, picture)
                    self.assertIn("compute", picture)
        self.assertGreater(found["train_slowly > compute"]["share"], 0.5)
        self.assertLess(found["train_slowly > compute"]["others"], 0.1)
        self.assertLess(found["train_slowly > wait_for_others"]["share"], 0.1)
        odd = text.split("rank 2 (pid ")[1].split("\n\n")[0]
        self.assertRegex(odd, r"\n  \d+ % of samples in compute  \(ranks.py\); the median of all is 0 % \(p < 0.0001\)")
        self.assertRegex(text, r"\n\* +2 .*% compute  \(ranks.py\)\n")
        self.assertRegex(text, r"\n[ *] +0 .* \d+\.\d\d ms +\d+ % wait_for_others  \(ranks.py\)\n")


class Recorded(t.Case):
    """Recordings know the ranks of their processes; merged ones, too."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        environment = dict(os.environ, WORLD_SIZE="3", MASTER_PORT="4010")
        for rank in range(3):
            cls.stack.enter_context(t.target([t.DEBIAN_PYTHON, os.path.join(t.FIXTURES, "ranks.py"), "--slow", str(AWAY)],
                                             env=dict(environment, RANK=str(rank), LOCAL_RANK=str(rank))))
        cls.folder = cls.stack.enter_context(tempfile.TemporaryDirectory(prefix="probing-test."))
        paths = [cls.path("rank%d.db" % rank) for rank in (0, AWAY)]
        options = ("--mode", "wall", "-d", "1", "--no-native")
        t.probing("cluster", "record", "--job", "4010", "--", *options, "-o", cls.path("all.db"), check=t.OK)
        nodes, _ = query("SELECT rank, pid FROM cluster.nodes", "--job", "4010")
        cls.pids = {node["rank"]: node["pid"] for node in nodes}
        for rank, path in zip((0, AWAY), paths):
            t.probing("record", "--pid", cls.pids[rank], *options, "-o", path, check=t.OK)
        t.probing("merge", *paths, "-o", cls.path("merged.db"), check=t.OK)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def rows(self, name, sql):
        return json.loads(t.probing("sql", self.path(name), "-f", "json", sql, check=t.OK).stdout)

    def test_processes_have_host_and_rank(self):
        for path, ranks in (("all.db", [0, 1, 2]), ("merged.db", [0, AWAY])):
            rows = self.rows(path, "SELECT host, rank, local_rank, world_size, job, pid FROM process ORDER BY rank")
            self.assertEqual([(os.uname().nodename, rank, rank, 3, "4010", self.pids[rank]) for rank in ranks],
                             [tuple(row.values()) for row in rows], path)

    def test_sql_by_rank(self):
        for path in "all.db", "merged.db":
            rows = self.rows(path, "SELECT DISTINCT rank FROM sample_function WHERE func = 'compute'")
            self.assertEqual([{"rank": AWAY}], rows, path)
            rows = self.rows(path, "SELECT rank, sum(weight) AS ns, min(host) AS host FROM sample_function WHERE "
                                   "func = 'wait_for_others' GROUP BY rank ORDER BY rank")
            self.assertNotIn(AWAY, [row["rank"] for row in rows])
            self.assertGreater(rows[0]["ns"], 3e8)
            self.assertEqual(os.uname().nodename, rows[0]["host"])

    def test_report_and_picture_by_rank(self):
        for path, ranks in (("all.db", ["0", "1", "2"]), ("merged.db", ["0", "2"])):
            report = json.loads(t.probing("report", self.path(path), "--by", "rank", "--json", check=t.OK).stdout)
            self.assertEqual(ranks, sorted(row["rank"] for row in report["rows"]))
            folded = t.probing("flamegraph", self.path(path), "--by", "rank", "--format", "folded", "-o", "-", check=t.OK).stdout
            self.assertEqual({"rank " + rank for rank in ranks},
                             {frame for line in folded.splitlines() for frame in line.rsplit(" ", 1)[0].split(";") if frame.startswith("rank ")})
            only = t.probing("report", self.path(path), "--where", "rank = %d" % AWAY, check=t.OK).stdout
            self.assertIn("compute", only)
            self.assertNotIn("wait_for_others", only)

    def test_a_process_without_a_rank(self):
        with t.target([t.DEBIAN_PYTHON, "-c", "print('ready {}', flush=True)\nimport time\ntime.sleep(60)"]) as plain:
            t.probing("record", "--pid", plain.pid, "--mode", "wall", "-d", "0.3", "-o", self.path("plain.db"), check=t.OK)
        self.assertEqual([{"host": os.uname().nodename, "rank": None, "job": None}],
                         self.rows("plain.db", "SELECT host, rank, job FROM process"))
        self.assertIn("[no rank]", t.probing("report", self.path("plain.db"), "--by", "rank", check=t.OK).stdout)


AHEAD_S = 1000  # of the wrong clock: faketime's below
# As ssh: hosts see the ranks of their own job; one has a wrong clock, and one a slow link.
CLOCK_SSH = """#!/bin/sh
host=$1 program=$2 verb=$4
shift 4
job=--job=$host
[ $verb = clock ] && job=
[ $host$verb = 4999clock ] && { while read line; do sleep 0.05; echo "$line"; done | $program cluster clock "$@"; exit; }
[ $host = 4012 ] || exec sh -c "$program cluster $verb $job $*"
FAKETIME_DONT_FAKE_MONOTONIC=1 exec faketime -f +1000s sh -c "$program cluster $verb $job $*"
"""


class RecordedHosts(t.Case):
    """Two machines, of which one has a clock that is ahead; one behind a slow link, which fails."""

    @classmethod
    def setUpClass(cls):
        t.need_program("faketime")
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        for rank, port in enumerate((4011, 4012)):
            environment = dict(os.environ, WORLD_SIZE="2", MASTER_PORT=str(port), RANK=str(rank), LOCAL_RANK="0")
            cls.stack.enter_context(t.target([t.DEBIAN_PYTHON, os.path.join(t.FIXTURES, "ranks.py"), "--slow", "1"],
                                             env=environment))
        cls.folder = cls.stack.enter_context(tempfile.TemporaryDirectory(prefix="probing-test."))
        ssh = os.path.join(cls.folder, "ssh")
        with open(ssh, "w", encoding="utf-8") as file:
            file.write(CLOCK_SSH)
        os.chmod(ssh, 0o755)
        cls.hosts = ("--hosts", "4011,4999,4012", "--ssh", ssh, "--remote-probing", t.BINARY)
        cls.picture = os.path.join(cls.folder, "ranks.folded")
        cls.recording = os.path.join(cls.folder, "ranks.db")
        cls.said = t.probing("cluster", "flamegraph", *cls.hosts, "--", "--mode", "wall", "-d", "5", "--no-native", "-o",
                             cls.picture, check=t.OK).stderr

    def rows(self, sql):
        return json.loads(t.probing("sql", self.recording, "-f", "json", sql, check=t.OK).stdout)

    def test_the_wrong_clock_is_measured_and_said(self):
        offsets = [row["clock_offset"] for row in self.rows("SELECT * FROM run JOIN process USING (pid) ORDER BY rank")]
        self.assertAlmostEqual(0, offsets[0], delta=0.2)
        self.assertAlmostEqual(AHEAD_S, offsets[1], delta=0.2)
        self.assertTrue(all(0 < row["clock_error"] < 0.2 for row in self.rows("SELECT clock_error FROM run")))
        self.assertRegex(self.said, r"the clock of 4012 is \d+\.\d+ ms ahead \(\+- \d+\.\d+ ms\): its times are corrected\n")
        self.assertIn("probing: host 4999: no rank of the job 4999 runs here\n", self.said)

    def test_the_slow_link_is_said(self):
        self.assertEqual(["4999"], re.findall(r"probing: host (\S+): its link is slow: the shortest round trip takes \d+\.\d ms, the "
                                              r"median of all hosts \d+\.\d ms\n", self.said))

    def test_both_recorded_at_the_same_time(self):
        for column in "started", "ended":
            low, high = self.rows("SELECT min(%s) AS low, max(%s) AS high FROM run" % (column, column))[0].values()
            self.assertLess(high - low, AHEAD_S / 2)  # a busy machine is slow to begin
        spans = self.rows("SELECT rank, min(timestamp) AS first, max(timestamp) AS last FROM sample GROUP BY rank ORDER BY 1")
        self.assertEqual([0, 1], [span["rank"] for span in spans])
        self.assertGreater(min(span["last"] for span in spans), max(span["first"] for span in spans))

    def test_the_picture_has_ranks_as_groups(self):
        with open(self.picture, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertTrue(any(";rank 1;" in line and "compute" in line for line in lines), lines)
        self.assertFalse(any(";rank 0;" in line and "compute" in line for line in lines), lines)

    def test_a_signal_leaves_nothing_here(self):
        with tempfile.TemporaryDirectory(prefix="probing-test.") as folder:
            process = subprocess.Popen([t.BINARY, "cluster", "record", *self.hosts, "--", "-d", "60", "-o", os.path.join(folder, "x.db")],
                                       env=dict(os.environ, TMPDIR=folder), stderr=subprocess.DEVNULL)
            try:
                t.wait_until(lambda: os.listdir(folder), 20, "the folder for recordings")  # hosts are asked for their time now
                process.send_signal(signal.SIGINT)
                self.assertEqual(-signal.SIGINT, t.await_end(process))
            finally:
                process.kill()
                process.wait(20)
            self.assertEqual([], os.listdir(folder))

    def test_an_older_recording_is_kept(self):
        options = ("--", "--mode", "wall", "-d", "0.3", "--no-native", "-o", os.path.join(self.folder, "again.db"))
        for _ in range(2):
            t.probing("cluster", "record", *self.hosts, *options, check=t.OK)
        self.assertEqual({"again.db", "again.db.old"}, {name for name in os.listdir(self.folder) if name.startswith("again")})
        t.probing("cluster", "record", *self.hosts, "--", "-o", "picture.svg", check=t.USAGE)


class Environments(t.Case):
    """Processes with the variables that launchers document: who is which rank of which job."""
    LAUNCHERS = {
        "torchrun": ({"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "run7", "MASTER_PORT": "29500",
                      "ROLE_NAME": "trainer", "SLURM_PROCID": "0"}, (5, 1, 8, "run7:29500")),
        "an operator": ({"RANK": "2", "WORLD_SIZE": "4", "MASTER_PORT": "23456"}, (2, None, 4, "23456")),
        "Slurm": ({"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NTASKS": "16", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "2"},
                  (3, 1, 16, "77:2")),
        "Open MPI": ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4",
                      "PMIX_NAMESPACE": "prterun-a-1"}, (2, 0, 4, "prterun-a-1")),
        "Intel MPI": ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}, (1, 1, 2, None)),
        "PMIx": ({"PMIX_RANK": "6", "PMIX_NAMESPACE": "ns"}, (6, None, None, "ns")),
        "Kubernetes": ({"JOB_COMPLETION_INDEX": "9", "JOB_NAME": "train"}, (9, None, None, "train")),
    }

    def test_each_launcher(self):
        clean = {name: value for name, value in os.environ.items()
                 if not re.match("RANK|LOCAL_RANK|WORLD_SIZE|MASTER_|SLURM_|OMPI_|PMI|MPI_|JOB_|TORCHELASTIC", name)}
        with contextlib.ExitStack() as stack:
            for launcher, (variables, expected) in self.LAUNCHERS.items():
                process = stack.enter_context(t.target([t.DEBIAN_PYTHON, "-c", "import time; print('ready {}', flush=True); time.sleep(60)"],
                                                       env=dict(clean, **variables)))
                nodes = json.loads(t.probing("cluster", "nodes", "--pid", process.pid, "-f", "json", check=t.OK).stdout)
                with self.subTest(launcher):
                    self.assertEqual([expected], [tuple(node[name] for name in ("rank", "local_rank", "world_size", "job"))
                                                  for node in nodes if node["pid"] == process.pid])


class Missing(t.Case):
    def test_a_killed_rank_is_missing(self):
        with job(3, 4002, world_size=4, first=1) as processes:
            os.kill(processes[1].pid, signal.SIGKILL)
            processes[1].process.wait()
            text = backtrace("--job", "4002", check=t.OK).stdout
        self.assertIn("Job 4002: 2 of 4 ranks read\nranks 0,2: missing: the hosts that answered have no process of them\n",
                      text)

    def test_ranks_of_another_user_are_counted(self):
        t.need_root()
        t.need_program("setpriv")
        with job(1, 4009), t.scratch():
            with open("document", "w", encoding="utf-8") as file:
                subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", t.BINARY,
                                "cluster", "nodes", "--local"], stdout=file, check=True, cwd="/")
            text = backtrace("--from", "document").stdout
        self.assertRegex(text, r"host .*: \d+ Python process(es)? may not be read, and may be ranks: run probing there as root\n")

    def test_no_ranks(self):
        self.assertIn("no rank of the job", backtrace("--job", "no such job", check=t.NO_INPUT).stderr)
        self.assertIn("no Python process here has", backtrace("no such command line", check=t.NO_INPUT).stderr)

    def test_usage(self):
        for line in (["--hosts", "-oProxyCommand=x"], ["--hosts", "a[x]"], ["--hosts", "a", "--pid", "1"],
                     ["--format", "pdf"], ["a", "b"], ["--from", "x", "--hosts", "a"], ["--ssh", " "]):
            with self.subTest(line):
                backtrace(*line, check=t.USAGE)
        t.probing("cluster", check=t.USAGE)
        self.assertIn("no verb dance of cluster", t.probing("cluster", "dance", check=t.USAGE).stderr)


# As ssh: the host, then words that a shell reads. Each host sees the ranks of its own job.
SSH = """#!/bin/sh
host=$1
shift
echo "$host: $*" >>"$(dirname "$0")/log"
case $host in
silent) exec sleep 60 ;;
refused) echo 'Permission denied (publickey).' >&2; exit 255 ;;
old) echo '{"probing_cluster":99,"hosts":[]}' ;;
noise) echo 'Welcome to noise' ;;
*)
    program=$1 verb=$3
    shift 3
    sh -c "$program cluster $verb --job=$host $*" ;;
esac
"""


class Hosts(t.Case):
    """Two machines, of which each has half of a job; three that fail."""
    light = True  # it waits for machines that do not answer

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.stack.enter_context(job(2, 4003, world_size=5))
        cls.stack.enter_context(job(2, 4004, world_size=5, first=2))

    def ask(self, hosts, *arguments, **more):
        with t.scratch():
            with open("ssh", "w", encoding="utf-8") as file:
                file.write(SSH)
            os.chmod("ssh", 0o755)
            done = backtrace("--hosts", hosts, "--ssh", os.path.abspath("ssh"), "--remote-probing", t.BINARY, *arguments,
                             **more)
            with open("log", encoding="utf-8") as file:
                return done, file.read()

    def test_each_failure_is_a_line(self):
        # The others are as slow as a busy machine: only the silent one needs more.
        done, _ = self.ask("4003,4004,4999,silent,refused,old,noise", "--host-timeout", "20s", check=t.OK)
        for line in ("host refused: Permission denied (publickey).", "host silent: no answer in time",
                     "host old: it has another version of probing, with another format: install this version there",
                     "host 4999: no rank was found there", "host noise: its answer is not a document of probing cluster"):
            self.assertIn(line + "\n", done.stdout)
        self.assertIn("Job 4003: 2 of 5 ranks read\nranks 2-4: missing", done.stdout)
        self.assertRegex(done.stdout, r"rank 2  \(pid \d+ on 4004\)\n      load_batch")

    def test_a_recording_has_the_words_of_ssh(self):
        with t.scratch():
            with open("ssh", "w", encoding="utf-8") as file:
                file.write(SSH)
            os.chmod("ssh", 0o755)
            done = t.probing("cluster", "record", "--hosts", "refused", "--ssh", os.path.abspath("ssh"), check=t.FAILED)
        self.assertIn("host refused: Permission denied (publickey).\n", done.stderr)

    def test_brackets_and_a_pattern_that_no_shell_may_see(self):
        done, log = self.ask("400[3-4]", "--no-native", "it's \"$(x)\" ranks", check=None)
        self.assertEqual(["4003", "4004"], sorted(line.split(":")[0] for line in log.splitlines()))
        self.assertIn("--matching=it%27s%20%22%24%28x%29%22%20ranks", log)
        self.assertEqual(t.FAILED, done.returncode)

    def test_rows_of_other_machines(self):
        sql = "SELECT host, rank, func AS \"it's\" FROM python.backtrace WHERE func = 'load_batch' OR 'a''b' = 'x'"
        with t.scratch():
            with open("ssh", "w", encoding="utf-8") as file:
                file.write(SSH)
            os.chmod("ssh", 0o755)
            rows, said = query(sql, "--hosts", "4003,refused,4004", "--ssh", os.path.abspath("ssh"), "--remote-probing",
                               t.BINARY)
            nodes, _ = query("SELECT addr, rank, status, problem FROM cluster.nodes WHERE status <> 'missing'", "--hosts",
                             "4003,refused,4004", "--ssh", os.path.abspath("ssh"), "--remote-probing", t.BINARY)
        self.assertEqual([{"host": "4004", "rank": AWAY, "it's": "load_batch"}], rows)
        self.assertIn("probing: host refused: Permission denied (publickey).\n", said)
        self.assertEqual([("4003", 0), ("4003", 1), ("4004", 2), ("4004", 3), ("refused", None)],
                         sorted((node["addr"], node["rank"]) for node in nodes))

    def test_a_command_without_a_shell(self):
        rows, _ = query("SELECT DISTINCT host, rank FROM python.backtrace WHERE func = 'load_batch'", "--hosts", "x", "--ssh",
                        "env HOST=%h", "--remote-probing", t.BINARY, "--job", "4004")
        self.assertEqual([{"host": "x", "rank": AWAY}], rows)

    def test_namespaces_as_machines(self):
        t.need_root()
        t.need_program("ip")
        names = ["probing-%d-%s" % (os.getpid(), letter) for letter in "ab"]
        if subprocess.run(["ip", "netns", "add", names[0]], capture_output=True).returncode != 0:
            raise unittest.SkipTest("network namespaces cannot be made here")
        self.addCleanup(subprocess.run, ["ip", "netns", "del", names[0]], check=True)
        subprocess.run(["ip", "netns", "add", names[1]], check=True)
        self.addCleanup(subprocess.run, ["ip", "netns", "del", names[1]], check=True)
        # Both read the same processes at once: a thread has one tracer, and the other reads Python frames from memory.
        done = backtrace("--hosts", ",".join(names), "--ssh", "ip netns exec", "--remote-probing", t.BINARY, "--job", "4004",
                         "--no-native", check=t.OK)
        for name in names:
            self.assertRegex(done.stdout, r"pid \d+ on %s" % name)
        self.assertRegex(done.stdout, r"  rank 2: 2 alike .*\n      load_batch")

    def test_a_file_of_hosts(self):
        with t.scratch():
            with open("hosts", "w", encoding="utf-8") as file:
                file.write("# ours\n4003 slots=8\n\n  400[4-4]  # last\n")
            path = os.path.abspath("hosts")
            done = backtrace("--hosts-file", path, "--ssh", "sh -c true", check=t.FAILED)
        self.assertIn("host 4003: its answer", done.stdout)
        self.assertIn("host 4004: its answer", done.stdout)


class Torch(t.Case):
    """A real process group of gloo: one rank skips a collective operation."""

    @classmethod
    def setUpClass(cls):
        if not t.has_modules(t.DEBIAN_PYTHON, "torch"):
            raise unittest.SkipTest("torch is not installed for " + t.DEBIAN_PYTHON)

    def test_the_rank_that_skips_a_collective_operation(self):
        environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        with t.scratch():
            command = [t.DEBIAN_PYTHON, "-m", "torch.distributed.run", "-r", "2", "-t", "2", "--log_dir", os.getcwd(),
                       "--nproc_per_node", "4", "--master_addr", "127.0.0.1", "--master_port", "29531",
                       os.path.join(t.FIXTURES, "ranks.py"), "--torch", str(AWAY)]
            launcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
            try:
                for _ in range(4):
                    self.assertIn("ready", launcher.stdout.readline())
                wanted = ("\nranks 0,1,3 are in all_reduce, called by all_reduce  (ranks.py:%d)\n"
                          "  rank 2: not there, but in load_batch  (ranks.py:%d), in time.sleep"
                          % (line_of("torch.distributed.all_reduce(torch.zeros(4))"), line_of("time.sleep(LIFE_S)")))
                t.wait_until(lambda: wanted in backtrace("--launcher", str(launcher.pid)).stdout, 120, "the deadlock")
                found = backtrace("--launcher", str(launcher.pid), check=t.OK).stdout
                self.assertIn("Job none:29531: 4 of 4 ranks read\n", found)
                self.assertRegex(found, r"\nranks 0,1,3:\n(  .*\n)*  all_reduce  \(distributed_c10d.py:\d+\)\n(  .*\n)*"
                                        r"  .*\[libtorch")
            finally:
                for pid in t.children_of(launcher.pid):
                    os.kill(pid, signal.SIGKILL)  # they are in a collective operation, which SIGTERM does not end
                launcher.kill()
                launcher.wait(60)
                launcher.stdout.close()


if __name__ == "__main__":
    sys.exit(unittest.main())
