# SPDX-License-Identifier: MIT
"""Reading a fleet from ClickHouse, of the oldest and the newest version: the same pictures as of the merged recordings.

The tables are filled here from the recordings' own tables, as docs/fleet.md describes them.
"""
import collections
import contextlib
import hashlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

import clickhouse
import probing_test as t
import test_serve
from probing_test import probing

sys.path.insert(0, os.path.join(t.ROOT, "tests", "browser"))
import axe  # noqa: E402
import devtools  # noqa: E402

MICRO_COLUMNS = {
    "samples": "job String, run UInt64, rank Int32, pid UInt32, tid UInt32, cpu UInt16, %(time)s, number UInt16, stack UInt64,"
               " leaf UInt16, weight UInt64, flags UInt16, block UInt32",
    "totals": "job String, minute DateTime, run UInt64, rank Int32, stack UInt64, gil Int8, state Int8, samples UInt32, weight UInt64,"
              " block UInt32",
    "stacks": "stack UInt64, functions Array(UInt64), seen Date DEFAULT today()",
    "functions": "function UInt64, kind String, role String, name String, file String, line UInt32, module String, build_id String",
    "runs": "run UInt64, job String, host String, command String, mode String, unit String, event String, stack_source String,"
            " python String, kernel String, probing String, hz Float64, cpus UInt32, started DateTime, ended DateTime, version UInt64",
    "threads": "run UInt64, pid UInt32, tid UInt32, rank Int32, name String, process String, version UInt64",
    "shipments": "run UInt64, block UInt32, job String, raw UInt8",
}
TIMES = {
    clickhouse.Old: "time DateTime, ms UInt16, time_ms UInt64 ALIAS toUInt64(toUInt32(time)) * 1000 + ms",
    clickhouse.New: "time DateTime64(3, 'UTC'), time_ms UInt64 ALIAS toUnixTimestamp64Milli(time)",
}
VERDICTS = ("exact", "verified", "approximate", "no_python")


def number_of(*parts):
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little")


def half_dead(server):
    """A second cluster, one of whose shards nobody serves."""
    path = server.folder / "config.xml"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        dead = probe.getsockname()[1]
    shard = ("<shard><replica><host>127.0.0.1</host><port>%d</port><user>admin</user><password>%s</password></replica></shard>")
    text = path.read_text().replace("</remote_servers>", "<half>%s%s</half></remote_servers>" % (
        shard % (server.tcp, clickhouse.PASSWORD), shard % (dead, clickhouse.PASSWORD)))
    path.write_text(text)
    return dead


class Rows:
    """The rows of a recording, from its own tables."""

    def __init__(self, path, job, rank):
        self.job, self.rank = job, rank
        db = sqlite3.connect(path)
        db.row_factory = sqlite3.Row
        with contextlib.closing(db):
            self.run_row = dict(db.execute("SELECT * FROM run").fetchone())
            self.threads = [tuple(row) for row in db.execute(
                "SELECT pid, tid, thread.name, process.name FROM thread JOIN process USING (pid)")]
            frames = {row["frame"]: dict(row) for row in db.execute(
                "SELECT frame.frame, frame.kind, frame.is_eval, frame.inlined_into, function.role, coalesce(function.name, n.name) AS name,"
                " function.file, function.first_line, module.path, module.build_id FROM frame LEFT JOIN function USING (function)"
                " LEFT JOIN named_frame AS n ON n.frame = frame.frame"
                " LEFT JOIN module ON module.module = coalesce(frame.module, function.module)")}
            parents = {row["stack"]: (row["parent"], row["frame"]) for row in db.execute("SELECT stack, parent, frame FROM stack")}
        self.run = number_of(path, self.run_row["started"])
        self.functions, self.stacks, self.stack_of = {}, {}, {0: 0, None: 0}
        for stack in parents:
            self.stack_of[stack] = self.add_stack(stack, parents, frames)
        text = probing("sql", path, "SELECT timestamp, pid, tid, cpu, stack, weight, verdict, gil FROM sample", "-f", "json", check=t.OK)
        self.samples = json.loads(text.stdout)

    def add_stack(self, stack, parents, frames):
        path = []
        while stack:
            stack, frame = parents[stack]
            is_eval = frames[frame]["is_eval"]  # of all functions that are inlined there
            while frame:
                path.append(self.add_function({**frames[frame], "is_eval": is_eval}))
                frame = frames[frame]["inlined_into"]
        path.reverse()
        self.stacks[number_of(path)] = path
        return number_of(path)

    def add_function(self, it):
        row = (it["kind"], "eval" if it["is_eval"] else it["role"] or "", it["name"], it["file"] or "", it["first_line"] or 0,
               it["path"] or "", it["build_id"] or "")
        self.functions[number_of(row)] = row
        return number_of(row)


def fields(values):
    escaped = (str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("'", "\\'") for value in values)
    return "\t".join(escaped)


class Fleet:
    """A server with the tables of a fleet."""

    def __init__(self, kind, certificate=None):
        self.kind, self.server = kind, kind(certificate=certificate)
        self.dead = half_dead(self.server)
        self.server.start()
        self.server.query("CREATE DATABASE probing")
        for table, columns in MICRO_COLUMNS.items():
            self.server.query("CREATE TABLE probing.%s (%s) ENGINE = Memory" % (table, columns % {"time": TIMES[kind]}))

    def insert(self, table, rows, columns=""):
        text = "\n".join(fields(row) for row in rows)
        self.server.query("INSERT INTO probing.%s %s FORMAT TabSeparated\n%s" % (table, columns, text))

    def ship(self, rows, raw=True):
        it = rows.run_row
        self.insert("runs", [(rows.run, rows.job, it["host"], it["command"], it["mode"], it["unit"], "", it["stack_source"],
                              it["python"] or "", it["kernel"], it["probing"], it["hz"], it["cpus"], int(it["started"]),
                              int(it["ended"]), version) for version in (1, 2)])
        self.insert("threads", [(rows.run, pid, tid, rows.rank, name, process, 1) for pid, tid, name, process in rows.threads])
        # Servers forget the second row of a key only when they merge parts.
        self.insert("functions", [(key, *row) for key, row in rows.functions.items()] * 2)
        self.insert("stacks", [(key, "[%s]" % ",".join(map(str, path))) for key, path in rows.stacks.items()] * 2,
                    "(stack, functions)")
        self.insert("shipments", [(rows.run, 1, rows.job, int(raw))])
        samples, totals = [], collections.Counter()
        for number, sample in enumerate(rows.samples):
            ms = int(sample["timestamp"] * 1000)
            flags = VERDICTS.index(sample["verdict"]) | {None: 0, 0: 1, 1: 2}[sample["gil"]] << 6
            time = (ms // 1000, ms % 1000) if self.kind is clickhouse.Old else ("%d.%03d" % (ms // 1000, ms % 1000),)
            stack = rows.stack_of[sample["stack"]]
            samples.append((rows.job, rows.run, rows.rank, sample["pid"], sample["tid"], sample["cpu"], *time, number % 65536, stack, 0,
                            sample["weight"], flags, 1))
            key = ms // 60000 * 60, rows.run, rows.rank, stack
            totals[key, "samples"] += 1
            totals[key, "weight"] += sample["weight"]
        if raw:
            self.insert("samples", samples)
        self.insert("totals", [(rows.job, key[0], key[1], key[2], key[3], -1, 0, n, totals[key, "weight"], 1)
                               for (key, what), n in totals.items() if what == "samples"])


class Reading:
    """For each version of the server."""
    KIND = None

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        missing = cls.KIND.missing()
        if missing:
            raise unittest.SkipTest(missing)
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        for name in ("a.db", "b.db"):
            with t.fixture("demo.py") as target:
                t.record_cpu(target, 2, 499, name)
        probing("merge", "a.db", "b.db", "-o", "both.db", check=t.OK)
        cls.fleet = Fleet(cls.KIND)
        cls.addClassCleanup(cls.fleet.server.stop)
        cls.rows = [Rows(name, "train", rank) for rank, name in enumerate(("a.db", "b.db"))]
        for rows in cls.rows:
            cls.fleet.ship(rows)
        sums = Rows("a.db", "sums", 0)
        sums.run += 1
        cls.fleet.ship(sums, raw=False)

    def setUp(self):
        super().setUp()
        for name in ("a.db", "b.db", "both.db"):
            shutil.copy(os.path.join(self.folder, name), name)
        os.environ["PROBING_FLEET_PASSWORD"] = clickhouse.PASSWORD
        self.addCleanup(os.environ.pop, "PROBING_FLEET_PASSWORD", None)
        self.address = "clickhouse://admin@127.0.0.1:%d/probing" % self.fleet.server.http
        self.train = self.address + "?job=train"

    def folded(self, recording, *options):
        return probing("export", recording, "--to", "folded", "-o", "-", *options, check=t.OK).stdout

    def test_the_picture_is_that_of_the_merged_recordings(self):
        for options in ((), ("--no-native",), ("--interpreter-frames",), ("--counts",), ("--focus", "edit_distance"), ("--by-thread",),
                        ("--merge-processes",), ("--inverted",), ("--merge-processes", "--no-native")):
            self.assertEqual(self.folded("both.db", *options), self.folded(self.train, *options), options)
        self.assertIn("edit_distance (demo.py)", self.folded(self.train))

    def assertSamePart(self, *options, fleet=None):
        """A native name has its file if several files have such a function, here in the part, there in the whole recording."""
        found, wanted = (self.folded(where, *options) for where in (fleet or self.train, "both.db"))
        self.assertEqual(self.sum(wanted), self.sum(found), options)
        self.assertEqual(*(self.folded(where, "--no-native", *options) for where in ("both.db", fleet or self.train)), options)

    @staticmethod
    def sum(folded):
        return sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())

    def test_a_part_of_the_ranks_is_the_recording_of_that_rank(self):
        self.assertEqual(self.folded("a.db"), self.folded(self.train, "--rank", "0"))
        self.assertEqual(self.folded("b.db"), self.folded(self.train + "&rank=1-7"))
        self.assertEqual(self.folded("both.db"), self.folded(self.train, "--rank", "0,1"))
        self.assertIn("such as 0,8-15", probing("report", self.train, "--rank", "x", check=t.USAGE).stderr)

    def test_conditions_are_applied_by_the_server(self):
        for where in ("gil = 1", "weight > 0 AND verdict != 'approximate'", "pid = %d" % self.rows[0].run_row["pid"], "weight >= 1"):
            self.assertSamePart("--counts", "--where", where)
        self.assertSamePart("--counts", "--gil")
        for where in ("1=1) OR (1=1", "sleep(3) = 0", "pid = 1; DROP TABLE samples", "verdict = 'exact'' OR 1"):
            said = probing("export", self.train, "--to", "folded", "-o", "-", "--where", where, check=t.USAGE).stderr
            self.assertIn("--where is not a condition on samples", said)

    def test_times(self):
        """Times are milliseconds there: a moment between two samples that are further apart."""
        with contextlib.closing(sqlite3.connect("both.db")) as db:
            started = db.execute("SELECT min(started) FROM run").fetchone()[0]
        times = sorted(sample["timestamp"] for rows in self.rows for sample in rows.samples)
        gaps = sorted(range(20, len(times) - 20), key=lambda i: times[i - 1] - times[i])[:5]  # seconds have parts before and after them
        self.assertGreater(times[gaps[4]] - times[gaps[4] - 1], 0.002)
        for gap in gaps:
            middle = (times[gap] + times[gap - 1]) / 2
            self.assertGreater(middle, started)
            for option in ("--since", "--until"):
                self.assertSamePart("--counts", option, "%.3f" % middle)
        self.assertEqual(self.folded(self.train, "--since", "%.3f" % middle), self.folded(self.train + "&since=%.3f" % middle))

    def test_verbs(self):
        merged, fleet = (json.loads(probing("report", where, "--json", check=t.OK).stdout) for where in ("both.db", self.train))
        for rows in (merged["rows"], fleet["rows"]):
            for row in rows:
                row.pop("line")  # the hottest one: rows of a fleet are functions
        self.assertEqual(merged["rows"], fleet["rows"])
        self.assertIn("edit_distance", probing("report", self.train, check=t.OK).stdout)
        probing("export", self.train, "--to", "speedscope", check=t.OK)
        self.assertGreater(os.path.getsize("fleet.speedscope.json"), 1000)
        self.assertIn("is a fleet", probing("info", self.train, check=t.USAGE).stderr)
        self.assertIn("is a fleet", probing("export", self.train, "--to", "sqlite", "-o", "x.sqlite", check=t.USAGE).stderr)
        self.assertIn("single samples", probing("export", self.train, "--to", "gecko", check=t.BAD_DATA).stderr)
        probing("flamegraph", self.train, "-o", "fleet.svg", check=t.OK)
        self.assertGreater(os.path.getsize("fleet.svg"), 1000)
        same = probing("diff", self.train + "&rank=0", "a.db", "-n", "5", check=t.OK).stdout
        self.assertIn("edit_distance", same)
        probing("check", "--baseline", self.train, self.train, "--fail-on", "total>+900%", "--allow", "all", check=t.OK)

    def test_a_fleet_is_served(self):
        token = "a token of the test"
        with test_serve.serving(self.train, PROBING_AUTH_TOKEN=token) as (_, link):
            def ask(path, body=None):
                request = urllib.request.Request("http://%s%s" % (link.split("/")[2], path), body, {"Authorization": "Bearer " + token})
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.read().decode()

            self.assertEqual([{"target": self.train, "kind": "fleet"}], json.loads(ask("/apis/overview"))["targets"])
            sql = "SELECT count() AS n FROM samples"
            self.assertEqual(json.loads(probing("sql", self.train, sql, "-f", "json", check=t.OK).stdout), json.loads(ask("/query", sql.encode())))
            self.assertIn("edit_distance", ask("/apis/flamegraph"))
            for path in ("/apis/timeline", "/apis/pythonext/callstack"):
                with self.assertRaisesRegex(urllib.error.HTTPError, "400"):
                    ask(path)

    def test_the_page_of_a_fleet(self):
        """Each view that a fleet has, in Chromium."""
        browser = devtools.find_browser()
        if browser is None:
            self.skipTest("there is no Chromium here")
        with test_serve.serving(self.train) as (_, link), devtools.opened(browser) as page:
            page.prefer(color_scheme="light", reduced_motion="reduce")
            page.send("Page.navigate", url=link)
            page.until("document.querySelector('.overview .detail')?.textContent.startsWith('A fleet has')")
            self.assertEqual(["Overview", "Flame graph", "Tables", "Compare"], page.run("[...document.querySelectorAll('nav li:not([hidden])')].map(one => one.textContent)"))
            page.click("document.querySelector('.overview .detail a')")
            page.until("[...document.querySelectorAll('.result td')].some(one => one.textContent === 'shipments')")
            page.until("[...document.querySelectorAll('.catalogue summary')].some(one => one.textContent === 'samples')")
            page.run("location.hash += '&sql=' + encodeURIComponent('SELECT rank, count() AS n FROM samples WHERE job = \\'train\\' GROUP BY rank ORDER BY rank')")
            page.until("document.querySelector('.result th:nth-child(2)')?.textContent === 'n'")
            self.assertEqual([[str(rows.rank), str(len(rows.samples))] for rows in self.rows],
                             page.run("[...document.querySelectorAll('.result tbody tr')].map(row => [...row.children].map(one => one.textContent))"))
            page.click("[...document.querySelectorAll('nav a')].find(one => one.textContent === 'Flame graph')")
            page.until("!!document.querySelector('.flame iframe:not(.loading)') && document.getElementById('graph-note').textContent === ''")
            page.click("[...document.querySelectorAll('nav a')].find(one => one.textContent === 'Compare')")
            page.until("!!document.querySelector('.compare select')")
            self.assertEqual([], page.errors)
            self.assertEqual([], axe.violations(page, axe.source()))

    def test_shippers_that_send_sums_alone(self):
        sums = self.address + "?job=sums"
        self.assertEqual(self.folded("a.db", "--merge-processes"), self.folded(sums, "--merge-processes"))
        self.assertIn("no single samples", probing("report", sums, "--where", "gil = 1", check=t.USAGE).stderr)
        self.assertIn("whole minutes", probing("report", sums, "--since", "1.5", check=t.USAGE).stderr)

    def test_the_job_must_be_clear(self):
        self.assertRegex(probing("report", self.address, check=t.USAGE).stderr, "choose one with --job: (live, )?(odd, )?sums, (torn, )?train")
        self.assertIn("no recording of the job", probing("report", self.address, "--job", "x' OR '1", check=t.BAD_DATA).stderr)
        self.assertIn("by these hosts", probing("report", self.train, "--host", "nobody-*", check=t.BAD_DATA).stderr)
        self.assertIn("are for a fleet", probing("report", "a.db", "--rank", "1", check=t.USAGE).stderr)

    def test_refusals(self):
        os.environ["PROBING_FLEET_PASSWORD"] = "wrong"
        self.assertIn("refuses the user admin", probing("report", self.train, check=t.NO_INPUT).stderr)
        del os.environ["PROBING_FLEET_PASSWORD"]
        with open("password", "w", encoding="ascii") as file:
            file.write(clickhouse.PASSWORD + "\n")
        self.assertEqual(self.folded("both.db"), self.folded(self.train + "&password-file=password"))
        self.addCleanup(os.environ.pop, "PROBING_FLEET_PASSWORD_FILE", None)
        os.environ.update(PROBING_FLEET_PASSWORD="wrong", PROBING_FLEET_PASSWORD_FILE="password")
        self.assertEqual(self.folded("both.db"), self.folded(self.train))
        said = probing("report", self.train.replace("admin@", "admin:secret@"), check=t.USAGE).stderr
        self.assertIn("PROBING_FLEET_PASSWORD", said)
        self.assertNotIn("secret", said)
        self.assertIn("is not a parameter of a fleet's address", probing("report", self.train + "&sql=1", check=t.USAGE).stderr)
        self.assertIn("127.0.0.1:1", probing("report", "clickhouse://127.0.0.1:1/probing", check=t.NO_INPUT).stderr)

    def test_missing_rows_are_an_error(self):
        """Of another job, so that other tests see none of it."""
        rows = Rows("a.db", "torn", 0)
        rows.run += 2
        rows.stacks = {}
        key = number_of("nowhere")
        rows.stack_of = collections.defaultdict(lambda: key)
        self.fleet.ship(rows)
        torn = self.address + "?job=torn"
        self.assertIn("1 of 1 stacks are missing", probing("report", torn, check=t.BAD_DATA).stderr)
        self.assertIn("[no stack]", self.folded(torn, "--partial"))

    def test_a_missing_shard_is_an_error(self):
        server = self.fleet.server
        server.query("CREATE DATABASE IF NOT EXISTS half")
        for table in MICRO_COLUMNS:
            server.query("CREATE TABLE IF NOT EXISTS half.%s AS probing.%s ENGINE = Distributed(half, probing, %s)" % (table, table, table))
        half = self.train.replace("/probing?", "/half?")
        self.assertIn("--partial", probing("report", half, check=t.NO_INPUT).stderr)
        done = probing("export", half, "--partial", "--to", "folded", "-o", "-", check=t.OK)
        self.assertEqual(self.folded("both.db"), done.stdout)
        self.assertIn("1 of 2 shards", done.stderr)
        self.assertIn("127.0.0.1:%d" % self.fleet.dead, done.stderr)

    def test_the_rank_that_differs(self):
        """Of six ranks of a job one is in another function, and uses a quarter of the time."""
        for rank in range(6):
            rows = Rows("a.db", "odd", rank)
            rows.run += 10 + rank
            for sample in rows.samples:
                sample["weight"] = int((0.5e9 if rank == 4 else 2e9) * (rows.run_row["ended"] - rows.run_row["started"]) / len(rows.samples))
            if rank == 4:
                other = {"kind": "python", "role": None, "name": "swap", "file": "/srv/odd.py", "first_line": 1, "is_eval": 0,
                         "path": None, "build_id": None}
                rows.stacks[number_of("odd")] = [rows.add_function(other)]
                rows.stack_of = collections.defaultdict(lambda: number_of("odd"))
            self.fleet.ship(rows)
        odd = self.address + "?job=odd"
        by_totals = probing("cluster", "report", odd, check=t.OK).stdout
        self.assertRegex(by_totals, r"Job: 6 ranks, \d+ samples\n\nrank 4 \(pid %d on .*\) differs:\n  CPU: 0\.\d+ CPUs; "
                                    % self.rows[0].run_row["pid"])
        self.assertRegex(by_totals, r"\n  100 % of samples in swap  \(odd\.py\); the median of all is 0 % \(p < 0\.0001\)\n")
        self.assertEqual(1, by_totals.count("differs:"))
        self.assertEqual(by_totals, probing("cluster", "report", odd, "--where", "weight >= 1", check=t.OK).stdout)
        others = probing("cluster", "report", self.address, "--job", "odd", "--rank", "0-3,5", check=t.OK).stdout
        self.assertIn("No rank differs from the others by more than chance.", others)
        self.assertIn("only --job is for it", probing("cluster", "report", odd, "-d", "1s", check=t.USAGE).stderr)
        self.assertIn("are for a fleet", probing("cluster", "report", "--rank", "1", check=t.USAGE).stderr)
        self.assertIn("no recording of the job", probing("cluster", "report", self.address, "--job", "none", check=t.BAD_DATA).stderr)

    def test_top(self):
        """The last samples of a job, which is asked for again and again."""
        n = [len(rows.samples) for rows in self.rows]
        shown = probing("top", self.train, "--once", "--window", "300s", "--rows", "50", check=t.OK).stdout
        self.assertRegex(shown, r"2 ranks on 1 host; newest sample \d\d:\d\d:\d\d, \d+ s ago")
        self.assertRegex(shown, r"\b%d samples  fleet, 499 Hz" % sum(n))
        self.assertIn("edit_distance", shown)
        shown = probing("top", self.train, "--once", "--window", "300s", "--rank", "1", "--by", "thread", check=t.OK).stdout
        self.assertRegex(shown, r"1 rank on 1 host; .*\n.*\b%d samples" % n[1])
        self.assertIn("rank 1: ", shown)
        self.assertIn("no single samples", probing("top", self.address + "?job=sums", "--once", check=t.USAGE).stderr)
        self.assertIn("no recording of the job", probing("top", self.address, "--job", "x", "--once", check=t.BAD_DATA).stderr)
        self.assertIn("are for a fleet", probing("top", "1", "--rank", "1", "--once", check=t.USAGE).stderr)
        first, second = (Rows("a.db", "live", 0) for _ in range(2))
        first.run, second.run = first.run + 30, first.run + 31
        self.fleet.ship(first)
        words = [t.BINARY, "top", self.address, "--job", "live", "-b", "--delay", "0.2", "--window", "300s"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as top:
            try:
                self.read_until(top.stdout, " %d samples " % n[0])
                self.fleet.ship(second)
                self.read_until(top.stdout, " %d samples " % (2 * n[0]))
            finally:
                top.kill()

    def test_top_stays_with_its_job(self):
        """Another job begins while it shows the only one there was."""
        url = self.fleet.server.url("growing")
        probing("ship", "--init", "--to", url, check=t.OK)
        probing("ship", "--to", url, "--job", "first", "--state", os.path.abspath("state"), "a.db", check=t.OK)
        words = [t.BINARY, "top", self.address.replace("/probing", "/growing"), "-b", "--delay", "0.1", "--window", "300s"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as top:
            try:
                shown = " %d samples " % len(self.rows[0].samples)
                self.read_until(top.stdout, shown)
                probing("ship", "--to", url, "--job", "second", "--state", os.path.abspath("state"), "b.db", check=t.OK)
                for _ in range(25):  # it looks for new recordings at each tenth
                    self.read_until(top.stdout, shown)
            finally:
                top.kill()
        self.assertIn("several jobs", probing("top", words[2], "--once", check=t.USAGE).stderr)

    def read_until(self, lines, text):
        for line in lines:
            if text in line:
                return
        self.fail("the view ended before it showed %r" % text)

    def test_sql(self):
        sql = "SELECT rank, count() AS n, max(pid) AS pid, toString(run) AS text, 'a\\tb' AS tab, NULL AS nothing, 0.5 AS half" \
            " FROM samples WHERE job = 'train' GROUP BY rank, run ORDER BY rank"
        rows = json.loads(probing("sql", self.address, sql, "-f", "json", check=t.OK).stdout)
        self.assertEqual([{"rank": it.rank, "n": len(it.samples), "pid": it.samples[0]["pid"], "text": str(it.run), "tab": "a\tb",
                           "nothing": None, "half": 0.5} for it in self.rows], rows)
        shown = probing("sql", self.address, "SELECT 1 AS one, 'x' AS two", check=t.OK).stdout
        self.assertEqual("one  two\n---  ---\n  1  x\n", shown)
        self.assertEqual(shown, probing("sql", self.address, check=t.OK, input="SELECT 1 AS one, 'x' AS two", stdin=None).stdout)
        for change in ("DROP TABLE samples", "INSERT INTO samples (pid) VALUES (1)", "SET readonly = 0"):
            self.assertTrue(probing("sql", self.address, change, check=t.NO_INPUT).stderr, change)
        self.assertIn("omit FORMAT from the statement", probing("sql", self.address, "SELECT 1 FORMAT JSON", check=t.BAD_DATA).stderr)


    def test_what_ship_sends_is_read_back(self):
        """The same picture, whatever filled the tables."""
        url = self.fleet.server.url("shipped")
        probing("ship", "--init", "--to", url, check=t.OK)
        for rank, name in enumerate(("a.db", "b.db")):
            probing("ship", "--to", url, "--job", "train", "--rank", rank, "--state", os.path.abspath("state"), name, check=t.OK)
        shipped = self.train.replace("/probing?", "/shipped?")
        for options in ((), ("--interpreter-frames",), ("--by-thread",), ("--merge-processes",)):
            self.assertEqual(self.folded("both.db", *options), self.folded(shipped, *options), options)
        self.assertSamePart("--counts", "--gil", fleet=shipped)
        self.assertSamePart("--counts", "--where", "verdict != 'approximate'", fleet=shipped)
        self.assertEqual(self.folded("b.db"), self.folded(shipped, "--rank", "1"))
        here, there = ({(row["name"], row["file"], row["line"]): row["self"] for row in json.loads(probing(
            "report", where, "--by", "line", "--no-native", "--json", "-n", "9999", check=t.OK).stdout)["rows"] if row["self"] and row["line"]}
            for where in ("both.db", shipped))
        self.assertGreater(len(here), 5)
        self.assertEqual(here, there)
        self.assertRegex(self.folded(shipped, "--lines", "--no-native"), r"edit_distance \(demo\.py:\d+\) \d+\n")
        shown = probing("annotate", shipped, "edit_distance", check=t.OK).stdout
        self.assertRegex(shown, r"[1-9].* row\[j\] = min\(")


class Old(Reading, t.Case):
    NIGHTLY_FOR_USERS = True  # servers do not ask who ships and reads
    KIND = clickhouse.Old


class New(Reading, t.Case):
    NIGHTLY_FOR_USERS = True  # servers do not ask who ships and reads
    KIND = clickhouse.New
