# SPDX-License-Identifier: MIT
"""probing sql: answers, formats, mistakes, and the prompt."""
import contextlib
import csv
import hashlib
import io
import json
import os
import pty
import re
import select
import shutil
import sqlite3
import subprocess
import sys
import time
import unittest

import probing_test as t
from probing_test import probing

SAME_FOR_ALL_USERS = True

TOP = ("SELECT name, sum(samples) AS samples FROM stack_total JOIN stack USING(stack) "
       "JOIN named_frame USING(frame) GROUP BY name ORDER BY samples DESC LIMIT 5")


def digest(path):
    with open(path, "rb") as content:
        return hashlib.sha256(content.read()).hexdigest()


class Sql(t.RecordedCase):
    SECONDS = 1.5

    def test_table(self):
        lines = probing("sql", "probing.db", TOP, check=t.OK).stdout.splitlines()
        self.assertIn("name", lines[0] + lines[1])
        self.assertGreaterEqual(len(lines), 6)

    def test_csv(self):
        text = probing("sql", "probing.db", TOP, "-f", "csv", check=t.OK).stdout
        rows = list(csv.reader(io.StringIO(text)))
        self.assertEqual(["name", "samples"], rows[0])
        self.assertEqual(6, len(rows))

    def test_csv_quotes(self):
        hard = "SELECT 'a,b' AS x, 'say \"hi\"' AS y, NULL AS z, 'two\nlines' AS w"
        text = probing("sql", "probing.db", hard, "-f", "csv", check=t.OK).stdout
        self.assertEqual([["x", "y", "z", "w"], ["a,b", 'say "hi"', "", "two\nlines"]],
                         list(csv.reader(io.StringIO(text))))

    def test_json(self):
        rows = json.loads(probing("sql", "probing.db", TOP, "-f", "json", check=t.OK).stdout)
        self.assertEqual(5, len(rows))
        self.assertEqual(["name", "samples"], list(rows[0]))
        self.assertIsInstance(rows[0]["samples"], int)

    def test_json_of_every_type(self):
        every = "SELECT 1 AS i, 0.5 AS r, 'ü\"\n' AS s, NULL AS n"
        rows = json.loads(probing("sql", "probing.db", every, "-f", "json", check=t.OK).stdout)
        self.assertEqual([{"i": 1, "r": 0.5, "s": 'ü"\n', "n": None}], rows)

    def test_default_file(self):
        self.assertIn("42", probing("sql", "SELECT 6 * 7 AS answer", check=t.OK).stdout)

    def test_same_answer_as_the_stock_shell(self):
        shell = t.need_program("sqlite3")
        ours = probing("sql", "probing.db", TOP, "-f", "csv", check=t.OK).stdout
        stock = subprocess.run([shell, "-csv", "-header", "probing.db", TOP],
                               capture_output=True, text=True, check=True)
        self.assertEqual(list(csv.reader(io.StringIO(stock.stdout))), list(csv.reader(io.StringIO(ours))))

    def test_samples_in_the_stock_shell(self):
        shell = t.need_program("sqlite3")
        asked = ("SELECT rowid, printf('%.6f', timestamp) AS at, pid, tid, cpu, weight, verdict, stack_end, stack, gil, gc,"
                 " state, event, idle FROM sample ORDER BY rowid")  # the shell shows fewer digits
        ours = probing("sql", "probing.db", asked, "-f", "csv", check=t.OK).stdout
        with t.contextlib.closing(t.connect("probing.db")) as db:
            python = db.execute(asked).fetchall()
        self.assertEqual(len(self.recording.samples), len(python))
        stock = subprocess.run([shell, "-csv", "-header", "-cmd", ".load " + os.path.abspath(t.EXTENSION), "probing.db", asked],
                               capture_output=True, text=True, check=True)
        self.assertEqual(list(csv.reader(io.StringIO(stock.stdout))), list(csv.reader(io.StringIO(ours))))
        # And without the extension all the rest is there.
        alone = subprocess.run([shell, "probing.db", "SELECT sum(samples) FROM sample_block; SELECT count(*) FROM sample"],
                               capture_output=True, text=True)
        self.assertEqual("%d\n" % len(python), alone.stdout)
        self.assertIn("no such table: sample", alone.stderr)

    def test_samples_add_up(self):
        said = probing("sql", "probing.db", "SELECT (SELECT sum(samples) FROM stack_total) AS a, (SELECT count(*) FROM sample)"
                       " AS b, (SELECT sum(samples) FROM sample_total) AS c, (SELECT sum(samples) FROM sample_block) AS d,"
                       " (SELECT value FROM counter WHERE name = 'samples') AS e", "-f", "csv", check=t.OK)
        self.assertEqual({len(self.recording.samples)}, {int(n) for n in said.stdout.split()[1].split(",")})

    def test_a_damaged_block_is_named(self):
        with t.contextlib.closing(t.connect("probing.db", "rw")) as db:
            db.execute("UPDATE sample_block SET data = substr(data, 1, 100) || x'00' || substr(data, 102)")
            db.commit()
        said = probing("sql", "probing.db", "SELECT count(*) FROM sample", check=t.BAD_DATA)
        self.assertIn("block 1 of sample_block is damaged", said.stderr)
        self.assertIn("rowid >=", said.stderr)
        probing("report", "probing.db", check=t.OK)  # needs no samples

    def test_every_documented_table_is_there(self):
        for table in ("run", "process", "thread", "module", "function", "frame", "stack", "stack_total", "sample",
                      "sample_block", "sample_total", "anchor_location", "counter", "pause", "named_frame"):
            with self.subTest(table):
                probing("sql", "probing.db", "SELECT * FROM %s LIMIT 1" % table, check=t.OK)

    def test_every_table_can_be_read(self):
        tables = json.loads(probing("sql", "probing.db", "SELECT * FROM information_schema.tables", "-f", "json",
                                    check=t.OK).stdout)
        names = {"%s.%s" % (table["table_schema"], table["table_name"]) for table in tables}
        for name in ("main.hot_function", "main.sample", "python.backtrace", "information_schema.columns"):
            self.assertIn(name, names)
        everything = ";".join("SELECT * FROM %s LIMIT 1" % name.replace("main.", "") for name in sorted(names))
        probing("sql", "probing.db", everything, check=t.OK)

    def ask(self, sql):
        return json.loads(probing("sql", "probing.db", sql, "-f", "json", check=t.OK).stdout)

    def test_hot_function_adds_up(self):
        """Here and for others: self times are all there is, and no total is more."""
        ours = self.ask("SELECT name, self_samples, total_samples FROM hot_function")
        everything = self.ask("SELECT sum(samples) AS n FROM stack_total WHERE folded(stack) <> '[not sampled]'")[0]["n"]
        self.assertEqual(everything, sum(row["self_samples"] for row in ours))
        self.assertTrue(all(row["self_samples"] <= row["total_samples"] <= everything for row in ours))
        with contextlib.closing(sqlite3.connect("probing.db")) as db:
            stock = db.execute("SELECT name, self_samples, total_samples FROM hot_function").fetchall()
        self.assertEqual(sorted(stock), sorted((row["name"], row["self_samples"], row["total_samples"]) for row in ours))

    def test_views_are_of_all_samples(self):
        whole = self.ask("SELECT count(*) AS n, sum(weight) AS ns FROM sample")[0]
        self.assertEqual(whole["n"], self.ask("SELECT sum(samples) AS n FROM timeline")[0]["n"])
        self.assertEqual(whole["ns"], self.ask("SELECT sum(cpu_ns + waiting_ns) AS ns FROM timeline")[0]["ns"])
        self.assertEqual(whole["ns"], self.ask("SELECT sum(cpu_ns + waiting_ns) AS ns FROM thread_time")[0]["ns"])
        self.assertEqual(whole["ns"], self.ask("SELECT sum(held_ns + free_ns + ifnull(waiting_ns, 0) + unknown_ns) AS ns"
                                               " FROM gil")[0]["ns"])
        operations = self.ask("SELECT count(*) AS n, round(sum(duration_ms) * 1e6) AS ns FROM profiling_data")[0]
        self.assertEqual(whole["n"], operations["n"])
        self.assertAlmostEqual(whole["ns"], operations["ns"], delta=1000)

    def test_backtrace_is_the_last_stack(self):
        rows = self.ask("SELECT * FROM python.backtrace")
        self.assertEqual(["tid", "thread", "ip", "file", "func", "lineno", "depth", "frame_type"], list(rows[0]))
        threads = {}
        for row in rows:
            threads.setdefault(row["tid"], []).append(row)
        for tid, frames in threads.items():
            self.assertEqual(list(range(len(frames))), [frame["depth"] for frame in frames], tid)
        self.assertTrue(any(row["frame_type"] == "Python" and row["lineno"] for row in rows))

    def test_folded_is_what_flame_graphs_name(self):
        probing("flamegraph", "probing.db", "--format", "folded", "--counts", "-o", "out.folded", check=t.OK)
        with open("out.folded", encoding="utf-8") as file:
            exported = dict(line.rstrip("\n").rsplit(" ", 1) for line in file)
        ours = self.ask("SELECT stack, sum(samples) AS n, folded(stack) AS path FROM stack_total"
                        " WHERE folded(stack) <> '[not sampled]' GROUP BY folded(stack)")
        self.assertEqual({path: int(n) for path, n in exported.items()}, {row["path"]: row["n"] for row in ours})

    def test_old_files_get_the_views(self):
        with contextlib.closing(sqlite3.connect("probing.db")) as db:
            t.drop_views(db)
            db.commit()
        before = digest("probing.db")
        self.assertTrue(self.ask("SELECT * FROM hot_line LIMIT 1"))
        self.assertTrue(self.ask("SELECT * FROM timeline LIMIT 1"))
        self.assertTrue(self.ask("DESCRIBE thread_time"))
        self.assertEqual(before, digest("probing.db"))

    def test_read_only(self):
        before = digest("probing.db")
        for statement in ("DELETE FROM sample", "DROP TABLE run", "CREATE TABLE mine(x)", "UPDATE run SET hz = 1",
                          "PRAGMA query_only = 0; DELETE FROM sample",
                          "ATTACH 'other.db' AS other; CREATE TABLE other.x(y)",
                          "VACUUM INTO 'other.db'", "PRAGMA journal_mode = DELETE; DELETE FROM run"):
            with self.subTest(statement):
                said = probing("sql", "probing.db", statement)
                self.assertEqual(t.BAD_DATA, said.returncode, said.stderr)
                self.assertEqual(before, digest("probing.db"))
                self.assertFalse(os.path.exists("other.db"))

    def test_mistake_names_the_place(self):
        said = probing("sql", "probing.db", "SELECT nme FROM function", check=t.BAD_DATA)
        self.assertSentence(said.stderr, "nme")
        said = probing("sql", "probing.db", "SELEC 1", check=t.BAD_DATA)
        self.assertSentence(said.stderr, "SELEC")

    def test_unknown_format(self):
        self.assertIn("xml", probing("sql", "probing.db", "SELECT 1", "-f", "xml", check=t.USAGE).stderr)

    def test_statements_from_a_pipe(self):
        said = subprocess.run([t.BINARY, "sql", "probing.db", "-f", "csv"], input="SELECT 1 AS a;\nSELECT 2 AS b;\n",
                              capture_output=True, text=True, check=True)
        self.assertEqual(["a", "1", "b", "2"], said.stdout.split())

    def test_reader_that_goes_away(self):
        done = subprocess.run("%s sql probing.db 'SELECT * FROM sample' -f csv | head -1" % t.BINARY, shell=True,
                              capture_output=True, text=True)
        self.assertEqual("", done.stderr)

    def test_output_that_fails(self):
        with open("/dev/full", "w") as full:
            said = subprocess.run([t.BINARY, "sql", "probing.db", "SELECT 1"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(t.IO, said.returncode)

    def test_prompt_on_a_terminal(self):
        text, status = converse([t.BINARY, "sql", "probing.db"],
                                ["SELECT 6 * 7 AS answer;\n", "SELECT nothing;\n",
                                 "SELECT 'still', 'here';\n", ".quit\n"], "probing> ")
        self.assertEqual(0, status, text)
        self.assertIn("42", text)
        self.assertIn("nothing", text)
        self.assertIn("still", text)


class Documented(t.Case):
    """docs/sql.md: every example, on a recording of all threads' time."""

    def test_every_example(self):
        t.need_perf()
        with open(os.path.join(t.ROOT, "docs", "sql.md"), encoding="utf-8") as file:
            text = re.sub(r"<!-- (?:not run|query): [^\n]*\n```sql\n.*?```", "", file.read(), flags=re.S)  # of other targets
        blocks = re.findall(r"```sql\n(.*?)```", text, re.S)
        self.assertGreater(len(blocks), 5)
        with t.scratch(), t.fixture("demo.py") as target:
            t.record(target.pid, 1, 199, "probing.db", "--mode", "wall")
            for block in blocks:
                for statement in filter(str.strip, block.split(";\n")):
                    with self.subTest(statement):
                        said = probing("sql", "probing.db", statement, "-f", "csv", check=t.OK)
                        self.assertGreater(len(said.stdout.splitlines()), 0)
            said = probing("sql", "probing.db", "DESCRIBE smaple", check=t.BAD_DATA)
            self.assertSentence(said.stderr, "did you mean sample?")


def converse(command, lines, prompt, timeout_s=60):
    """Run a command on a terminal of its own, type a line at each prompt, return all it showed and its status."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, dict(os.environ, TERM="dumb", HOME=os.getcwd()))
    shown, stop = "", time.monotonic() + timeout_s
    pending = list(lines)
    try:
        while time.monotonic() < stop:
            ready, _, _ = select.select([terminal], [], [], 0.5)
            if ready:
                try:
                    text = os.read(terminal, 4096)
                except OSError:  # the other side is gone
                    break
                if not text:
                    break
                shown += text.decode("utf-8", "replace")
            elif pending and shown.endswith(prompt):
                os.write(terminal, pending.pop(0).encode())
    finally:
        os.close(terminal)
        status = t.end(pid)
    return shown, os.waitstatus_to_exitcode(status)


class FileOfVersion1(t.Case):
    """A recording whose samples are rows of a plain table (fixtures/recordings)."""

    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(t.FIXTURES, "recordings", "version_1.db"), "probing.db")

    def test_samples(self):
        said = probing("sql", "SELECT count(*) AS n, sum(weight) AS w, sum(gil = 1) AS held FROM sample", "-f", "csv", check=t.OK)
        self.assertEqual("57,575757570,19", said.stdout.split()[1])
        with t.contextlib.closing(t.connect("probing.db")) as db:
            self.assertEqual([(57,)], db.execute("SELECT count(*) FROM sample").fetchall())

    def test_report_and_pictures(self):
        said = probing("report", check=t.OK).stdout
        self.assertIn("57 samples", said)
        self.assertIn("with the GIL", said)
        self.assertIn("pack", said)
        self.assertIn("19 samples", probing("report", "--gil", check=t.OK).stdout)
        probing("flamegraph", check=t.OK)
        self.assertTrue(os.path.exists("flamegraph.svg"))

    def test_timeline(self):
        answer = json.loads(probing("timeline", check=t.OK).stdout)
        self.assertEqual([57], [thread["samples"] for thread in answer["threads"]])

    def test_verdicts_of_before(self):
        """Where no Python runs on a thread, such a file says native."""
        probing("info", "--check", check=t.OK)
        probing("compact", check=t.OK)
        said = probing("sql", "SELECT verdict, count(*) FROM sample GROUP BY 1", "-f", "csv", "--no-header", check=t.OK)
        self.assertEqual(["approximate,1", "exact,55", "no_python,1"], said.stdout.split())

    def test_names_are_looked_up(self):
        probing("symbolize", check=t.OK)
        self.assertIn("57", probing("sql", "SELECT count(*) FROM sample", check=t.OK).stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
