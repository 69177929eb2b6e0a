# SPDX-License-Identifier: MIT
"""Rows that a program writes, in its recording: the same names and values as live; children, losses, retention, merge."""
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import time
import unittest

import probing_test as p
from test_agent import LIBRARY, PRELOADED
from test_rings import PACKAGE, RingCase

# A training: slow steps do something that others do not.
LOOP = r"""
import os, time
def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def load():
    busy(0.004)
def compute():
    busy(0.006)
def checkpoint():
    busy(0.12)
def train(n):
    for i in range(n):
        probing.step(i)
        with probing.span('load'):
            load()
        with probing.span('forward'):
            with probing.span('attention'):
                compute()
            if i % 20 == 7:
                checkpoint()
        probing.log(epoch=i // 10, loss=1 / (i + 1), note='step %d' % i)
"""

# Steps of which each touches as many pages, whatever the machine does meanwhile, and waits where it is slow.
PAGES = r"""
import mmap, time
def touch(n):
    pages = mmap.mmap(-1, n * mmap.PAGESIZE)
    for i in range(n):
        pages[i * mmap.PAGESIZE] = 1
        end = time.monotonic() + 0.0002
        while time.monotonic() < end:
            pass
def load():
    touch(20)
def compute():
    touch(30)
def checkpoint():
    touch(200)
    time.sleep(0.3)
def train(n):
    for i in range(n):
        probing.step(i)
        load()
        compute()
        if i % 20 == 7:
            checkpoint()
"""


class Rows(RingCase):
    NIGHTLY_FOR_USERS = True  # a recorder reads rings as any reader does: test_rings is for users, too

    def record(self, host, code, *options, out="out.db"):
        """Record while the program runs the code. Returns what the recorder says."""
        often = [] if "--count" in options else ["-F", "499"]
        recorder = subprocess.Popen([p.BINARY, "record", "--pid", str(host.pid), "-o", out] + often + list(options),
                                    stderr=subprocess.PIPE, universal_newlines=True, env=self.environment)
        self.addCleanup(recorder.stderr.close)
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        recorder.stderr.readline()  # it has attached
        self.printed = self.run_in(host, code)
        time.sleep(0.5)
        recorder.send_signal(2)
        said = recorder.communicate()[1]
        self.assertEqual(0, recorder.returncode, said)
        return said

    def rows(self, path, sql):
        return [list(row.values()) for row in json.loads(p.probing("sql", path, sql, "-f", "json", check=p.OK).stdout)]

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def test_as_live(self):
        host = self.begin()
        self.run_in(host, LOOP + "\nprobing.log(epoch=-1, loss=9)\n")
        said = self.record(host, "busy(0.05)\ntrain(60)\nprobing.ExternalTable('backtrace', ['timestamp', 'process']).append(1, 'x')")
        self.assertIn("rows of ", said)
        self.assertNotIn("lost: the program", said)
        for sql in ("SELECT * FROM training_logs ORDER BY time_ns",
                    "SELECT epoch, avg(loss), count(*) FROM python.training_logs GROUP BY epoch ORDER BY epoch",
                    "SELECT time_ns, process, step FROM steps ORDER BY time_ns",
                    "SELECT span, parent, phase, name, tid, step, duration_ms, error, attributes FROM spans ORDER BY time_ns",
                    "SELECT timestamp_, process_ FROM python.backtrace_",
                    "SELECT column_name, data_type, remarks FROM information_schema.columns WHERE table_name = 'training_logs' "
                    "ORDER BY ordinal_position"):
            live, kept = self.ask(host.pid, sql), self.rows("out.db", sql)
            self.assertGreater(len(live), 0, sql)
            self.assertEqual(len(live), len(kept), sql)
            for one, other in zip(live, kept):
                for value, again in zip(one, other):
                    if isinstance(value, float):  # timestamp is by the clock of the recording
                        self.assertAlmostEqual(value, again, delta=0.05, msg=sql)
                    else:
                        self.assertEqual(value, again, sql)
        listed = json.loads(p.probing("tables", "out.db", "python.training%", "--json", check=p.OK).stdout)
        self.assertEqual(["training_logs"], [one["name"] for one in listed])
        first, last = self.rows("out.db", "SELECT min(timestamp), max(timestamp) FROM sample")[0]
        self.assertEqual([[60]], self.rows("out.db", "SELECT count(*) FROM steps WHERE timestamp BETWEEN %r AND %r"
                                           % (first - 0.1, last + 0.1)))
        self.assertRegex(p.probing("info", "--check", "out.db", check=p.OK).stdout,
                         r"rows +[\d,]+ of backtrace, spans, steps, training_logs\n")
        p.probing("export", "out.db", "--to", "sqlite", "-o", "plain.sqlite", check=p.OK)
        plain = sqlite3.connect("plain.sqlite")
        self.addCleanup(plain.close)
        self.assertEqual([tuple(row) for row in self.rows("out.db", "SELECT epoch, loss, note, process FROM training_logs ORDER BY time_ns")],
                         plain.execute("SELECT epoch, loss, note, process FROM training_logs ORDER BY time_ns").fetchall())
        self.assertEqual([(60,)], plain.execute("SELECT count(*) FROM steps").fetchall())
        p.probing("compact", "out.db", "-o", "small.db", check=p.OK)
        p.probing("merge", "out.db", "small.db", "-o", "both.db", check=p.OK)
        count = "SELECT count(*), count(DISTINCT process), sum(step) FROM steps"
        n, processes, total = self.rows("out.db", count)[0]
        self.assertEqual([n, processes, total], self.rows("small.db", count)[0])
        self.assertEqual([[3]], self.rows("small.db", "SELECT count(*) FROM row_block JOIN row_table USING (row_table) "
                                          "WHERE name IN ('steps', 'spans', 'backtrace')"))
        self.assertEqual([2 * n, 2 * total], [self.rows("both.db", count)[0][i] for i in (0, 2)])
        for path in ("small.db", "both.db"):
            p.probing("info", "--check", path, check=p.OK)
        os.rename("out.db", "cut.db")
        self.assertEqual(0, subprocess.run(["sqlite3", "cut.db", "UPDATE row_block SET data = zeroblob(30)"]).returncode)
        done = p.probing("info", "--check", "cut.db", check=p.BAD_DATA)
        self.assertIn("blocks of rows are damaged", done.stdout + done.stderr)
        done = p.probing("sql", "cut.db", "SELECT * FROM steps", check=p.BAD_DATA)
        self.assertIn("a block of rows of steps is damaged", done.stderr)

    def test_children_new_rings_and_losses(self):
        host = self.begin()
        self.run_in(host, LOOP)
        said = self.record(host, r"""
for i in range(3):
    pid = os.fork()
    if pid == 0:
        for j in range(10): probing.step(1000 * (i + 1) + j)
        time.sleep(0.7 * i)
        os._exit(0)
    os.waitpid(pid, 0)
t = probing.ExternalTable('fast', ['n'], rows=1000)
for i in range(200000): t.append(i)
u = probing.ExternalTable('again', ['a'])
u.append(1); time.sleep(2.5); u.drop()
u = probing.ExternalTable('again', ['a', 'b'])
u.append(2, 'x')
print(os.getpid())""")
        self.assertIn("lost: the program wrote them faster than they were read", said)
        self.assertEqual([[1000, 1009, 10], [2000, 2009, 10], [3000, 3009, 10]], self.rows(
            "out.db", "SELECT min(step), max(step), count(*) FROM steps WHERE process <> %d GROUP BY process ORDER BY 1" % host.pid))
        self.assertEqual([[200000]], self.rows("out.db", "SELECT (SELECT count(*) FROM fast) + lost FROM row_table WHERE name = 'fast'"))
        self.assertEqual([[0]], self.rows("out.db", "SELECT count(*) - count(DISTINCT n) FROM fast"))
        self.assertEqual([[1, None], [2, "x"]], self.rows("out.db", "SELECT a, b FROM again ORDER BY 1"))

    def test_a_program_that_ends_soon(self):
        """Its rings come after the recorder has looked, and it has ended before the next look: they are read after its end."""
        with open("soon.py", "w") as file:
            file.write("import ctypes, os, sys\nsys.path.insert(0, os.environ['PACKAGE'])\nimport probing\n"
                       "ctypes.CDLL(os.environ['AGENT']).probing_agent_start(0)\nfor i in range(30): probing.log(epoch=i)\n")
        environment = dict(self.environment, AGENT=LIBRARY, PACKAGE=PACKAGE, PYTHONDONTWRITEBYTECODE="1", **PRELOADED)
        p.probing("record", "-o", "soon.db", "--", self.interpreter.path, "soon.py", check=p.OK, env=environment)
        self.assertEqual([[30, 29]], self.rows("soon.db", "SELECT count(*), max(epoch) FROM training_logs"))

    def test_rows_of_several_recordings(self):
        host = self.begin()
        self.run_in(host, LOOP)
        self.record(host, "train(5); probing.ExternalTable('thread', ['n']).append(1)", out="a.db")
        self.record(host, "train(7); probing.ExternalTable('late', ['n']).append(2)", out="b.db")
        rows = lambda sql: [list(row.values()) for row in json.loads(p.probing("sql", "a.db", "b.db", sql, "-f", "json", check=p.OK).stdout)]
        n = [self.rows(path, "SELECT count(*) FROM training_logs")[0][0] for path in ("a.db", "b.db")]
        self.assertEqual([[1, n[0], host.pid], [2, n[1], host.pid]],
                         rows("SELECT run, count(*), min(process) FROM training_logs GROUP BY run"))
        self.assertEqual([[2, 2]], rows("SELECT run, n FROM late"))
        self.assertEqual([[1, 1], [2, 1]], rows("SELECT run, n FROM python.thread"))
        self.assertGreater(rows("SELECT count(*) FROM thread")[0][0], 1)  # the table of recordings, whose name comes first
        done = p.probing("sql", "a.db", "b.db", "SELECT * FROM training_logs LIMIT 1", "-f", "csv", check=p.OK)
        self.assertEqual("run,timestamp,epoch,loss,note", done.stdout.splitlines()[0])  # others are hidden, as of one recording
        self.assertGreater(rows("SELECT count(*) FROM sample JOIN steps USING (run, step)")[0][0], 0)
        joined = "SELECT count(*), sum(a.epoch = b.epoch) FROM training_logs AS a JOIN training_logs AS b ON b.timestamp = a.timestamp AND b.time_ns = a.time_ns"
        self.assertEqual([[n[0], n[0]]], self.rows("a.db", joined))  # each row asks for those of a moment
        ends = "(SELECT %s(timestamp) FROM training_logs)"
        either = "SELECT count(*) FROM training_logs WHERE (timestamp = %s AND epoch >= 0) OR (timestamp = %s AND epoch < 100)" % (ends % "min", ends % "max")
        self.assertEqual([[2]], self.rows("a.db", either))

    def test_many_columns_of_several_recordings(self):
        """There is a limit for a table, and each run may have logged others: those beyond it are left out."""
        host = self.begin()
        self.record(host, "probing.log(loss=0.5)", out="one.db")
        paths = ["wide%d.db" % i for i in range(5)]
        for path in paths:
            shutil.copy("one.db", path)
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                for ring in range(8):
                    db.execute("INSERT INTO row_table SELECT ?, pid, 'wide', 0, 0, 0, 0 FROM process LIMIT 1", (1000 + ring,))
                    db.executemany("INSERT INTO row_column VALUES(?, ?, ?, 'REAL')",
                                   [(1000 + ring, i, "%s_%d_%d" % (path[:-3], ring, i)) for i in range(60)])
        done = p.probing("sql", *paths, "SELECT count(*), count(wide0_0_0), count(wide1_7_59) FROM wide WHERE wide1_0_0 IS NULL", "-f", "csv", check=p.OK)
        self.assertEqual("0,0,0", done.stdout.splitlines()[1])
        self.assertEqual("5", p.probing("sql", *paths, "SELECT count(loss) FROM training_logs", "-f", "csv", check=p.OK).stdout.splitlines()[1])

    def test_names_of_tables_of_metrics(self):
        """A recorder that was killed leaves a file whose metrics may be in blocks: temporary tables show them."""
        host = self.begin()
        self.record(host, "for name in 'process_usage', 'memory_usage', 'mine': probing.ExternalTable(name, ['n']).append(7)")
        with contextlib.closing(sqlite3.connect("out.db")) as db, db:
            db.execute("UPDATE run SET ended = NULL")
        self.assertEqual([[7, 7]], self.rows("out.db", "SELECT a.n, b.n FROM python.process_usage AS a, python.memory_usage AS b"))
        done = p.probing("export", "out.db", "--to", "sqlite", "-o", "plain.sqlite", check=p.OK)
        self.assertNotIn("cannot be a table", done.stderr)
        with contextlib.closing(sqlite3.connect("plain.sqlite")) as db:
            self.assertEqual((7, 7, 7), db.execute("SELECT a.n, b.n, c.n FROM process_usage_ AS a, memory_usage_ AS b, mine AS c").fetchone())
            self.assertGreater(db.execute("SELECT count(rss_mb) FROM memory_usage").fetchone()[0], 0)

    def test_variables_and_no_rows(self):
        host = self.begin()
        self.record(host, "probing.ExternalTable('probing_variables', {'func': str, 'name': str, 'number': None, 'text': str, "
                    "'step': int, 'tid': int}).append_many([('f', 'loss', 0.5, None, 1, 7), ('f', 'mode', None, 'train', 1, 7)])")
        self.assertEqual([[1, "f", "loss", 0.5, 7], [1, "f", "mode", "train", 7]], self.rows(
            "out.db", "SELECT step, func, name, value, tid FROM python.variables ORDER BY name"))
        said = self.record(host, "probing.log(a=1)", "--no-rows")
        self.assertNotIn("rows of", said)
        self.assertEqual([[0]], self.rows("out.db", "SELECT count(*) FROM row_table"))

    def test_retention(self):
        host = self.begin()
        self.run_in(host, LOOP)
        self.record(host, "for i in range(60): probing.step(i); busy(0.1)", "--retention", "2")
        first, = self.rows("out.db", "SELECT min(timestamp) FROM sample")[0]
        kept = [step for step, in self.rows("out.db", "SELECT step FROM steps ORDER BY step")]
        self.assertLess(len(kept), 50)
        self.assertEqual(59, kept[-1])
        self.assertEqual([[1]], self.rows("out.db", "SELECT min(timestamp) < %r FROM steps" % first))

    def test_samples_have_step_span_and_phase(self):
        host = self.begin()
        self.run_in(host, LOOP + r"""
def helper(n):
    import threading
    ready = threading.Event()
    def spin():
        ready.wait()
        busy(0.3)
    thread = threading.Thread(target=spin)
    thread.start()
    with probing.span('backward'):
        with probing.span('inner'):
            probing.step(n)
            ready.set()
            thread.join()
    return thread.native_id
""")
        self.record(host, "train(60)\nprint(helper(1000))")
        helper = int(self.printed)
        self.assertEqual([["helper"]], [[name] for name, in self.rows(
            "out.db", "SELECT DISTINCT CASE WHEN tid = %d THEN 'helper' END FROM sample_function WHERE func = 'busy' AND step = 1000"
            % helper)])
        for step, span, phase, n, weight in self.rows(
                "out.db", "SELECT step, span, phase, count(*), sum(weight) FROM sample WHERE tid = %d GROUP BY 1, 2, 3" % host.pid):
            self.assertIn((span, phase), [("load", "load"), ("attention", "forward"), ("forward", "forward"), (None, None),
                                          ("inner", "backward"), ("backward", "backward")])
            if (span, phase) == ("backward", "backward"):  # between the begin of the one and that of the other
                self.assertLess(n, 3)
            if (span, phase) == ("forward", "forward") and n > 2:
                self.assertEqual(7, step % 20)
        self.assertEqual([[7], [27], [47]], self.rows(
            "out.db", "SELECT step FROM sample s JOIN stack_path USING (stack) JOIN named_frame USING (frame) "
            "WHERE name = 'checkpoint' AND verdict <> 'approximate' GROUP BY 1 ORDER BY 1"))  # inner frames of these may be newer
        self.assertEqual([[1000, None, "backward"]], self.rows(  # a worker: in the step and the phase of the main thread
            "out.db", "SELECT step, span, phase FROM sample WHERE tid = %d GROUP BY 1, 2, 3 HAVING sum(weight) > 50e6" % helper))
        p.probing("flamegraph", "out.db", "--where", "step BETWEEN 20 AND 30", "-o", "f.folded", check=p.OK)
        with open("f.folded") as folded:
            text = folded.read()
        self.assertIn("checkpoint", text)
        p.probing("flamegraph", "out.db", "--where", "step BETWEEN 8 AND 20", "-o", "g.folded", check=p.OK)
        with open("g.folded") as folded:
            self.assertNotIn("checkpoint", folded.read())
        by = {name: {row[name]: row for row in json.loads(p.probing("report", "out.db", "--by", name, "--json", "-n", 100, check=p.OK)
                                                          .stdout)["rows"]} for name in ("step", "span", "phase")}
        self.assertLessEqual({"7", "27", "47"}, set(sorted(by["step"], key=lambda step: -by["step"][step]["total"])[:4]))
        self.assertLessEqual({"load", "attention", "forward"}, set(by["span"]))
        self.assertEqual({"load", "forward", "backward"}, set(by["phase"]) - {None})
        text = p.probing("report", "out.db", "--by", "phase", check=p.OK).stdout
        self.assertRegex(text, r"total %\s+total\s+phase\s+most self time in")
        for by in "step", "rank":
            said = p.probing("report", os.path.join(p.ROOT, "fixtures", "recordings", "version_1.db"), "--by", by, check=p.BAD_DATA).stderr
            self.assertIn("have no ranks, steps, spans", said)

    def test_slow_steps(self):
        host = self.begin()
        self.run_in(host, PAGES)
        self.record(host, "train(100)", "--event", "page-faults", "--count", "1")
        done = p.probing("diff", "out.db", "--slow-steps", "--format", "json", check=p.OK)
        self.assertRegex(done.stderr, r"slow steps: 5 of (99|98), .* ms each; the median of the others is .* ms \(step ")
        named = [int(word) for word in done.stderr.split("(step ")[1].rstrip(")\n").split(", ")]
        self.assertLessEqual(3, len([step for step in named if step % 20 == 7]), named)  # others waited for the CPU
        # Times of all functions are longer in steps in which others took the processor; faults are not.
        rows = {row["name"]: row["total"] for row in json.loads(done.stdout)["functions"]}
        self.assertEqual({"load": False, "compute": False, "checkpoint": True},
                         {name: rows[name]["changed"] for name in ("load", "compute", "checkpoint")}, rows)
        self.assertGreater(rows["checkpoint"]["head"], 5 * rows["checkpoint"]["base"])
        text = p.probing("diff", "out.db", "--slow-steps=5", check=p.OK).stdout
        self.assertRegex(text, r"base  \d+ other steps of out.db\nhead  5 slow steps of out.db\nevents in a step; ")
        p.probing("diff", "out.db", "out.db", "--slow-steps", check=p.USAGE)
        p.probing("diff", "out.db", "--slow-steps", "--where", "step < 5", check=p.OK)
        self.run_in(host, LOOP)
        self.record(host, "train(100)", out="times.db")
        text = p.probing("diff", "times.db", "--slow-steps=5", check=p.OK).stdout
        self.assertRegex(text, r"base  \d+ other steps of times.db\nhead  5 slow steps of times.db\ntime in a step; ")
        done = p.probing("diff", "times.db", "--slow-steps", "--format", "json", check=p.OK)
        checkpoint = next(row["total"] for row in json.loads(done.stdout)["functions"] if row["name"] == "checkpoint")
        self.assertTrue(checkpoint["changed"])
        self.assertGreater(checkpoint["head"], 5 * checkpoint["base"])
        self.record(host, "busy(0.3)", out="none.db")
        done = p.probing("diff", "none.db", "--slow-steps", check=p.BAD_DATA)
        self.assertIn("has 0 whole steps, and --slow-steps needs 8: let the program call probing.step()", done.stderr)


if __name__ == "__main__":
    unittest.main()
