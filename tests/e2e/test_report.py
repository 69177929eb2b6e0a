# SPDX-License-Identifier: MIT
"""probing report: the top functions as text."""
import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import termios
import unittest

import probing_test as t
from probing_test import probing

SAME_FOR_ALL_USERS = True


def on_terminal(command, columns):
    """What a command shows on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
                               env=dict(os.environ, NO_COLOR="1", COLUMNS=""))
    os.close(theirs)
    shown = b""
    while True:
        try:
            text = os.read(ours, 4096)
        except OSError:  # the other side is gone
            break
        if not text:
            break
        shown += text
    os.close(ours)
    process.stderr.close()
    if process.wait() != 0:
        raise AssertionError("exit status %d" % process.returncode)
    return shown.decode("utf-8").replace("\r", "")


def shares(line):
    """(self %, total %) of a function's line; None for other lines."""
    match = re.match(r" *(\d+\.\d) +(?:0|\S+ \S+) +(\d+\.\d) ", line)
    return tuple(map(float, match.groups())) if match else None


class Report(t.RecordedCase):
    def test_top_function_leads(self):
        text = probing("report", check=t.OK).stdout
        self.assertIn("edit_distance", text)
        self.assertIn("demo.py", text)

    def test_what_was_lost_is_said(self):
        self.assertNotIn("lost", probing("report", check=t.OK).stdout)
        shutil.copy("probing.db", "lossy.db")
        with contextlib.closing(sqlite3.connect("lossy.db")) as db:
            db.execute("UPDATE counter SET value = 7 WHERE name = 'lost'")
            db.commit()
        self.assertIn("\n7 more were lost while recording\n", probing("report", "lossy.db", check=t.OK).stdout)

    def test_totals_never_exceed_the_whole(self):
        text = probing("report", "probing.db", check=t.OK).stdout
        lines = [shares(line) for line in text.splitlines() if shares(line)]
        self.assertGreaterEqual(len(lines), 10)
        for own, total in lines:
            self.assertLessEqual(own, total)
            self.assertLessEqual(total, 100.0)
        self.assertLessEqual(sum(own for own, _ in lines), 100.5)

    def test_recursion_counts_once(self):
        with t.fixture("deep.py", "--depth", 50) as target:
            t.record_cpu(target, 0.8, 199, "deep.db")
        text = probing("report", "deep.db", "-n", 1000, check=t.OK).stdout
        line = next(line for line in text.splitlines() if "descend" in line)
        self.assertLessEqual(shares(line)[1], 100.0)

    def test_fits_the_terminal(self):
        for columns in (60, 80, 132):
            with self.subTest(columns):
                text = on_terminal([t.BINARY, "report", "probing.db"], columns)
                self.assertLessEqual(max(map(len, text.splitlines())), columns)
                self.assertIn("edit_dist", text)

    def report(self, *arguments):
        return json.loads(probing("report", "probing.db", "--json", "-n", 1000, *arguments, check=t.OK).stdout)

    def of_file(self, query):
        """The same question to the file itself."""
        with contextlib.closing(sqlite3.connect("probing.db")) as db:
            return db.execute(query).fetchall()

    def test_what_is_told_apart(self):
        for what in ("function", "line", "module", "thread", "process"):
            with self.subTest(what):
                told = self.report("--by", what)
                self.assertEqual(what, told["by"])
                self.assertEqual(0, told["left_out"])
                parts = [row.get("self", row["total"]) for row in told["rows"]]
                self.assertEqual(told["weight"], sum(parts))
                self.assertEqual(parts, sorted(parts, reverse=True))

    def test_threads_are_those_of_the_file(self):
        wanted = self.of_file("SELECT pid, tid, sum(weight), sum(CASE WHEN stack IN (SELECT stack FROM stack JOIN named_frame USING (frame)"
                              " WHERE kind = 'unsampled') THEN 0 ELSE samples END) FROM stack_total GROUP BY 1, 2")
        told = self.report("--by", "thread")["rows"]
        self.assertEqual(sorted(wanted), sorted((row["pid"], row["tid"], row["total"], row["samples"]) for row in told))

    def test_lines_of_a_function_are_its_self_time(self):
        function = next(row for row in self.report()["rows"] if row["name"] == "edit_distance")
        lines = [row for row in self.report("--by", "line")["rows"] if row["name"] == "edit_distance"]
        self.assertGreater(len(lines), 1)
        self.assertEqual(function["self"], sum(row["self"] for row in lines))
        self.assertEqual(len(lines), len({row["line"] for row in lines}))

    def test_callers_and_callees_are_two_ends_of_a_call(self):
        callers = self.report("--callers", "edit_distance")["functions"]
        self.assertEqual(["edit_distance"], [function["name"] for function in callers])
        outer = next(row for row in callers[0]["callers"] if row["name"] == "find_similar")
        callees = self.report("--callees", "find_similar")["functions"][0]["callees"]
        inner = next(row for row in callees if row["name"] == "edit_distance")
        self.assertEqual(outer["total"], inner["total"])
        self.assertGreater(outer["of_it"], 50)

    def test_callers_as_text(self):
        text = probing("report", "--callers", "edit_dist*", check=t.OK).stdout
        self.assertIn("function, its callers", text)
        self.assertRegex(text, r"100\.0 py +edit_distance")
        self.assertRegex(text, r"py +find_similar")

    def test_nobody_is_called_so(self):
        said = probing("report", "--callers", "no_such_function", check=t.NO_INPUT)
        self.assertSentence(said.stderr, "no function")
        self.assertEqual("", said.stdout)

    def test_two_questions_at_once(self):
        probing("report", "--callers", "a", "--callees", "b", check=t.USAGE)
        said = probing("report", "--callers", "a", "--by", "line", check=t.USAGE)
        self.assertIn("omit --by", said.stderr)
        probing("report", "--by", "colour", check=t.USAGE)

    def test_no_colour_in_a_pipe(self):
        self.assertNotIn("\x1b", probing("report", "probing.db", check=t.OK).stdout)

    def test_no_such_recording(self):
        self.assertSentence(probing("report", "missing.db", check=t.NO_INPUT).stderr, "missing.db")

    def test_output_that_fails(self):
        with open("/dev/full", "w") as full:
            for command in (["report", "probing.db"], ["info", "probing.db"], ["info", "--json", "probing.db"]):
                said = subprocess.run([t.BINARY] + command, stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(t.IO, said.returncode, command)
                self.assertSentence(said.stderr, "No space left")


CALL = """
def callee():
    return sum(i for i in range(30000))

def caller():
    total = 0
    for i in range(200000):
        total += i
    return total + callee()

for _ in range(20):
    caller()
"""


class Calls(t.Case):
    def test_place_of_a_caller_is_its_call(self):
        """caller() takes most time in its loop, and calls from another line."""
        with open("call.py", "w") as file:
            file.write(CALL)
        probing("record", "-q", "-F", 999, "--", t.DEBIAN_PYTHON, "call.py", check=t.OK)
        function, = json.loads(probing("report", "--callers", "callee", "--json", check=t.OK).stdout)["functions"]
        self.assertEqual([("caller", 9)], [(row["name"], row["line"]) for row in function["callers"]])
        function, = json.loads(probing("report", "--callees", "caller", "--json", check=t.OK).stdout)["functions"]
        self.assertIn(function["line"], (7, 8))


if __name__ == "__main__":
    sys.exit(unittest.main())
