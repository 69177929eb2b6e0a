# SPDX-License-Identifier: MIT
"""Whole recordings: what they are, in other formats, written anew, several as one."""
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import probing_test as t
from probing_test import fixture, probing

SAME_FOR_ALL_USERS = True
TOGETHER = True  # by recorded()

FIELDS = ("timestamp", "pid", "tid", "cpu", "weight", "verdict", "stack_end", "gil", "gc", "state")


def ask(path, sql):
    return json.loads(probing("sql", path, sql, "-f", "json", check=t.OK).stdout)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def info(path, *options):
    return json.loads(probing("info", "--json", path, *options, check=t.OK).stdout)[0]


def samples(path):
    """Samples in their order, with the names on their stacks."""
    names = {None: ()}
    for row in ask(path, "SELECT stack, parent, name, line FROM stack JOIN named_frame USING (frame) ORDER BY depth"):
        names[row["stack"]] = names[row["parent"]] + ((row["name"], row["line"]),)
    return [tuple(row[field] for field in FIELDS) + (names[row["stack"]],)
            for row in ask(path, "SELECT %s, stack FROM sample ORDER BY rowid" % ", ".join(FIELDS))]


@t.shared
def recorded(folder):
    """Where one.db, two.db and three.db are, and the two processes' numbers."""
    at = lambda name: os.path.join(folder, name)
    with fixture("demo.py") as target:
        for name in ("one.db", "two.db"):
            t.record_cpu(target, 0.7, 299, at(name))
        pid = target.pid
    with fixture("threads.py") as target:
        t.record_cpu(target, 0.7, 299, at("three.db"))
        return folder, pid, target.pid


class Archive(t.Case):
    def setUp(self):
        super().setUp()
        self.folder, self.pid, self.other_pid = recorded()
        for name in ("one.db", "two.db", "three.db"):
            shutil.copy(os.path.join(self.folder, name), name)


class Info(Archive):
    def test_text(self):
        text = probing("info", "one.db", check=t.OK).stdout
        for pattern in (r"^one\.db\n", r"command +.*demo\.py", r"process +%d\n" % self.pid,
                        r"ended +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, after \d+\.\d s", r"mode +cpu, 299 Hz of cpu-clock, stack source",
                        r"samples +[\d,]+ there, \d+ lost", r"size +\d+ [KM]B", r"version \d+ of the tables"):
            self.assertRegex(text, pattern)

    def test_json_is_what_the_file_says(self):
        about = info("one.db", "--check")
        run, = ask("one.db", "SELECT * FROM run")
        for key in ("command", "pid", "mode", "hz", "host", "kernel", "cpus", "probing", "python", "event"):
            self.assertEqual(run[key], about["runs"][0][key], key)
        self.assertAlmostEqual(run["started"], about["runs"][0]["started"], places=4)
        count, = ask("one.db", "SELECT count(*) AS n, max(timestamp) AS last FROM sample")
        self.assertEqual(count["n"], about["samples"])
        self.assertAlmostEqual(count["last"], about["last_sample"], places=4)
        self.assertEqual({"sound": True, "verified": True, "n_wrong": 0, "wrong": []}, about["check"])
        if about["bytes"] is not None:
            self.assertEqual(os.path.getsize("one.db"), about["file_bytes"])
            self.assertGreater(about["bytes"]["samples"], 0)
            # pages of the auto_vacuum's own are nobody's
            self.assertLessEqual(abs(sum(about["bytes"].values()) - about["file_bytes"]), 4 * 4096)

    def test_one_bad_file_does_not_hide_the_others(self):
        with open("bad.db", "w") as bad:
            bad.write("no recording")
        done = probing("info", "one.db", "bad.db", "two.db", check=t.BAD_DATA)
        self.assertIn("one.db\n", done.stdout)
        self.assertIn("two.db\n", done.stdout)
        self.assertSentence(done.stderr, "bad.db")
        done = probing("info", "missing.db", "--json", check=t.NO_INPUT)
        self.assertEqual([], json.loads(done.stdout))

    def test_default_file(self):
        probing("info", check=t.NO_INPUT)
        os.rename("one.db", "probing.db")
        self.assertRegex(probing("info", check=t.OK).stdout, r"^probing\.db\n")

    def test_names_that_are_none(self):
        with contextlib.closing(sqlite3.connect("one.db")) as db, db:
            db.execute("UPDATE run SET command = 'a\x1b[31mb' || CAST(x'ff0a' AS TEXT)")
        self.assertNotIn("\x1b", probing("info", "one.db", check=t.OK).stdout)
        info("one.db")

    def test_extension(self):
        path = probing("info", "--extension", check=t.OK).stdout.strip()
        version = probing("--version").stdout.split()[1]
        shell = subprocess.run([t.need_program("sqlite3"), "-cmd", ".load " + path, "one.db", "SELECT probing_version()"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((version, ""), (shell.stdout.strip(), shell.stderr))
        probing("info", "--extension", "one.db", check=t.USAGE)


class Export(Archive):
    def test_sqlite_is_all_of_it_as_plain_tables(self):
        probing("export", "one.db", "--to", "sqlite", check=t.OK)
        self.assertEqual(samples("one.db"), samples("one.sqlite"))
        with contextlib.closing(sqlite3.connect("file:one.sqlite?mode=ro", uri=True)) as db:
            self.assertEqual("ok", db.execute("PRAGMA integrity_check").fetchone()[0])
            count, = db.execute("SELECT count(*) FROM sample").fetchone()
            self.assertEqual(info("one.db")["samples"], count)
            plain = {name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            self.assertIn(("seconds since 1970",), db.execute(
                "SELECT 'seconds since 1970' FROM sqlite_schema WHERE name = 'run' AND sql LIKE '%seconds since 1970%'").fetchall())
        self.assertLessEqual({"run", "process", "thread", "module", "function", "frame", "stack", "stack_total", "sample",
                              "counter"}, plain)
        self.assertEqual(["one.db", "one.sqlite", "three.db", "two.db"], sorted(os.listdir(".")))
        probing("report", "one.sqlite", check=t.OK)

    def test_formats_are_those_of_flamegraph(self):
        for name in ("folded", "svg"):
            ours = probing("export", "one.db", "--to", name, "-o", "-", check=t.OK).stdout
            probing("flamegraph", "one.db", "--format", name, "-o", "other", check=t.OK)
            with open("other") as other:
                text = other.read()
            strip = lambda text: re.sub(r"<title>.*?</title>|<text[^>]*class=\"title\".*?</text>", "", text)
            if name == "folded":
                self.assertEqual(text, ours)
            self.assertEqual(len(strip(text).splitlines()) > 1, len(strip(ours).splitlines()) > 1)

    def test_by_ending_and_by_name(self):
        probing("export", "one.db", "-o", "out.folded", check=t.OK)
        probing("export", "one.db", "--to", "svg", "--by-thread", check=t.OK)
        self.assertTrue(os.path.exists("out.folded") and os.path.exists("one.svg"))

    def test_what_nobody_named_is_not_overwritten(self):
        for name in ("svg", "sqlite"):
            write("one." + name, "precious")
            said = probing("export", "one.db", "--to", name, check=t.NO_OUTPUT)
            self.assertSentence(said.stderr, "one.%s exists" % name)
            self.assertEqual(b"precious", contents("one." + name))
            probing("export", "one.db", "--to", name, "--force", check=t.OK)
            self.assertGreater(os.path.getsize("one." + name), 1000)

    def test_a_picture_that_is_named_is_replaced(self):
        """By all who make one."""
        for command in (("export", "one.db", "--to", "svg"), ("flamegraph", "one.db"), ("diff", "one.db", "two.db")):
            write("named.svg", "older")
            probing(*command, "-o", "named.svg", check=t.OK)
            self.assertIn(b"<svg", contents("named.svg"))

    def test_a_recording_is_no_picture(self):
        """Whoever errs in a name loses nothing, by whichever verb, neither its own recording nor another one."""
        before = contents("two.db")
        for command in (("export", "one.db", "--to", "svg"), ("export", "one.db", "--to", "svg", "--force"),
                        ("export", "two.db", "--to", "folded"), ("export", "one.db", "--to", "sqlite"),
                        ("flamegraph", "one.db", "--format", "svg"), ("flamegraph", "two.db", "--format", "pprof"),
                        ("diff", "one.db", "two.db", "--format", "svg")):
            said = probing(*command, "-o", "two.db", check=t.NO_OUTPUT)
            self.assertSentence(said.stderr, "two.db (exists|is a recording)")
        probing("flamegraph", "one.db", "-o", "two.db", check=t.USAGE)  # no picture's name ends so
        self.assertEqual(before, contents("two.db"))

    def test_mistakes(self):
        for arguments in ([], ["--to", "pdf"], ["--to", "sqlite", "-o", "-"], ["--to", "sqlite", "--pid", "1"],
                          ["-o", "out.unknown"]):
            probing("export", "one.db", *arguments, check=t.USAGE)
        probing("export", "missing.db", "--to", "sqlite", check=t.NO_INPUT)
        probing("flamegraph", "one.db", "--format", "sqlite", check=t.USAGE)


class Compact(Archive):
    def test_in_place(self):
        before, size, mode = samples("one.db"), os.path.getsize("one.db"), 0o640
        os.chmod("one.db", mode)
        said = probing("compact", "one.db", check=t.OK).stderr
        self.assertRegex(said, r"^probing: one\.db: .* \(%d bytes\) before, .* \(%d bytes\) now\n$" % (
            size, os.path.getsize("one.db")))
        self.assertLessEqual(os.path.getsize("one.db"), size + 4 * 4096)  # a page a table may come and go
        self.assertEqual(before, samples("one.db"))
        self.assertEqual(mode, os.stat("one.db").st_mode & 0o777)
        about = info("one.db", "--check")
        self.assertTrue(about["check"]["verified"])
        self.assertEqual(0, about["bytes"]["free"] if about["bytes"] else 0)
        probing("symbolize", "-q", "one.db", check=t.OK)

    def test_what_others_have_put_into_it(self):
        with contextlib.closing(sqlite3.connect("one.db")) as db, db:
            db.execute("CREATE TABLE note(text, bytes)")
            db.execute("INSERT INTO note VALUES('mine', x'00ff')")
            db.execute("CREATE VIEW busy AS SELECT sum(samples) AS n FROM stack_total")
        probing("compact", "-q", "one.db", "-o", "new.db", check=t.OK)
        self.assertEqual([{"text": "mine", "bytes": "00ff"}], ask("new.db", "SELECT * FROM note"))
        self.assertEqual(ask("one.db", "SELECT * FROM busy"), ask("new.db", "SELECT * FROM busy"))

    def test_a_tracepoint(self):
        t.need_tracefs()
        done = subprocess.run(t.WITH_TRACEFS + [t.BINARY, "record", "-e", "syscalls:sys_enter_write", "-q", "-o", "writes.db", "--",
                                         "sh", "-c", "for i in 1 2 3 4 5; do echo $i; done"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(t.OK, done.returncode, done.stderr)
        sql = ("SELECT s.timestamp, s.weight, w.* FROM sample AS s JOIN \"syscalls:sys_enter_write\" AS w ON w.sample = s.rowid"
               " ORDER BY s.rowid")
        before = ask("writes.db", sql)
        self.assertGreater(len(before), 4)
        probing("compact", "-q", "writes.db", check=t.OK)
        self.assertEqual(before, ask("writes.db", sql))
        probing("export", "writes.db", "--to", "sqlite", check=t.OK)
        self.assertEqual(before, ask("writes.sqlite", sql))
        probing("merge", "writes.db", "one.db", "-o", "both.db", check=t.BAD_DATA)
        self.assertFalse(os.path.exists("both.db"))

    def test_interrupted(self):
        """Wherever it is, the old file is as it was and nothing is beside it."""
        with open("one.db", "rb") as file:
            before = file.read()
        for delay in (0, 0.005, 0.02):
            process = subprocess.Popen([t.BINARY, "compact", "one.db"], stderr=subprocess.PIPE)
            time.sleep(delay)
            process.send_signal(signal.SIGTERM)
            process.communicate()
            self.assertIn(process.returncode, (t.OK, -signal.SIGTERM))
            self.assertEqual(["one.db", "three.db", "two.db"], sorted(os.listdir(".")))
            info("one.db", "--check")
            if process.returncode != t.OK:
                with open("one.db", "rb") as file:
                    self.assertEqual(before, file.read())
                continue
            shutil.copy(os.path.join(self.folder, "one.db"), "one.db")

    def test_a_reader_at_work(self):
        """The file of somebody who reads it is not taken away: that reader has it, and a log would belong to neither."""
        with contextlib.closing(sqlite3.connect("file:one.db?mode=ro", uri=True)) as db:
            reading = db.execute("SELECT * FROM frame")
            first = reading.fetchone()
            done = probing("compact", "one.db")
            self.assertIn(done.returncode, (t.OK, t.NO_OUTPUT), done.stderr)
            self.assertIsNotNone(first)
            self.assertGreater(len(reading.fetchall()), 10)
        info("one.db", "--check")

    def test_mistakes(self):
        probing("compact", "missing.db", check=t.NO_INPUT)
        probing("compact", "one.db", "two.db", check=t.USAGE)
        said = probing("compact", "one.db", "-o", "two.db", check=t.NO_OUTPUT)
        self.assertSentence(said.stderr, "exists")


class Merge(Archive):
    def test_parts_of_one_process(self):
        one, two = samples("one.db"), samples("two.db")
        probing("merge", "two.db", "one.db", "-o", "both.db", check=t.OK)
        about = info("both.db", "--check")
        self.assertTrue(about["check"]["verified"])
        self.assertEqual(2, len(about["runs"]))
        self.assertEqual(1, about["processes"])
        self.assertEqual(sorted(one + two), sorted(samples("both.db")))
        times = [sample[0] for sample in samples("both.db")]
        self.assertEqual(sorted(times), times)
        # the process is in both runs: the time tells
        times = [info(name)["samples"] for name in ("one.db", "two.db")]
        self.assertEqual(sorted(times), sorted(row["n"] for row in ask("both.db", "SELECT count(*) AS n FROM sample GROUP BY run")))
        # equal functions and stacks are one
        self.assertLess(about["functions"], info("one.db")["functions"] + info("two.db")["functions"])
        self.assertLess(about["stacks"], info("one.db")["stacks"] + info("two.db")["stacks"])
        weight = lambda path: ask(path, "SELECT sum(weight) AS n FROM stack_total")[0]["n"]
        self.assertEqual(weight("one.db") + weight("two.db"), weight("both.db"))

    def test_other_processes(self):
        probing("merge", "one.db", "three.db", "-o", "both.db", check=t.OK)
        self.assertEqual([{"run": 1, "pid": self.pid, "was": self.pid}, {"run": 2, "pid": self.other_pid, "was": self.other_pid}],
                         ask("both.db", "SELECT * FROM run_process ORDER BY run"))
        probing("report", "both.db", check=t.OK)
        self.assertEqual([{"run": 1, "n": info("one.db")["samples"]}, {"run": 2, "n": info("three.db")["samples"]}],
                         ask("both.db", "SELECT run, count(*) AS n FROM sample GROUP BY run ORDER BY run"))
        said = probing("sql", "one.db", "SELECT run, count(*) FROM sample GROUP BY 1", check=t.BAD_DATA)
        self.assertIn("samples of a merged one", said.stderr)
        by_pid = {row["pid"]: row["n"] for row in ask("both.db", "SELECT pid, count(*) AS n FROM sample GROUP BY pid")}
        self.assertEqual({self.pid: info("one.db")["samples"], self.other_pid: info("three.db")["samples"]}, by_pid)

    def test_one_number_on_two_hosts(self):
        with contextlib.closing(sqlite3.connect("two.db")) as db, db:
            db.execute("UPDATE run SET host = 'elsewhere'")
        said = probing("merge", "one.db", "two.db", "-o", "both.db", check=t.OK).stderr
        self.assertIn("1 process got another number", said)
        moved = self.pid + 10000000
        self.assertEqual([(1, self.pid, self.pid), (2, moved, self.pid)],
                         [tuple(row.values()) for row in ask("both.db", "SELECT run, pid, was FROM run_process ORDER BY run")])
        text = probing("export", "both.db", "--to", "folded", "--counts", "-o", "-", "--pid", moved, check=t.OK).stdout
        self.assertEqual(info("two.db")["samples"], sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines()))
        info("both.db", "--check")

    def test_what_cannot_be_added_up(self):
        with contextlib.closing(sqlite3.connect("two.db")) as db, db:
            db.execute("UPDATE run SET mode = 'wall'")
        said = probing("merge", "one.db", "two.db", "-o", "both.db", check=t.BAD_DATA)
        self.assertSentence(said.stderr, "two.db cannot be added: .*wall.*cpu")
        self.assertFalse(os.path.exists("both.db"))

    def test_another_recordings_log(self):
        """It would be taken for a part of the new file."""
        for there in (True, False):
            with fixture("demo.py") as target, t.recorder("--pid", target.pid, "-o", "killed.db") as process:
                t.wait_for_samples("killed.db")
                process.kill()
                process.wait()
            before = info("killed.db")["samples"]
            if not there:
                os.unlink("killed.db")
            self.assertTrue(os.path.exists("killed.db-wal"))
            said = probing("merge", "one.db", "two.db", "-o", "killed.db", "--force", check=t.NO_OUTPUT)
            self.assertSentence(said.stderr, "-wal")
            if there:
                self.assertEqual(before, info("killed.db", "--check")["samples"])
            self.assertEqual([], [name for name in os.listdir(".") if name.startswith(".")])

    def test_mistakes(self):
        probing("merge", "one.db", "-o", "both.db", check=t.USAGE)
        probing("merge", "one.db", "two.db", check=t.USAGE)
        probing("merge", "one.db", "missing.db", "-o", "both.db", check=t.NO_INPUT)
        self.assertSentence(probing("merge", "one.db", "two.db", "-o", "three.db", check=t.NO_OUTPUT).stderr, "exists")
        probing("merge", "one.db", "two.db", "-o", "three.db", "--force", check=t.OK)
        self.assertEqual(["one.db", "three.db", "two.db"], sorted(os.listdir(".")))


if __name__ == "__main__":
    sys.exit(unittest.main())
