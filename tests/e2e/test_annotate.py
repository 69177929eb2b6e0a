# SPDX-License-Identifier: MIT
"""probing annotate: time beside the lines of Python and native sources."""
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import unittest

import probing_test as t
from probing_test import probing

SAME_FOR_ALL_USERS = True


def lines_with_time(told):
    return [line for file in told["files"] for line in file["lines"] if line["total"] > 0]


class Python(t.RecordedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.source = os.path.join(t.FIXTURES, "demo.py")

    def annotate(self, *arguments):
        return json.loads(probing("annotate", "probing.db", "--json", *arguments, check=t.OK).stdout)

    def test_lines_are_the_sources(self):
        with open(self.source) as source:
            text = source.read().split("\n")
        told = self.annotate("edit_distance")
        self.assertEqual([self.source], [file["file"] for file in told["files"]])
        for line in told["files"][0]["lines"]:
            self.assertEqual(text[line["line"] - 1], line["text"])
        hottest = max(lines_with_time(told), key=lambda line: line["self"])
        self.assertIn("min(cost", hottest["text"])

    def test_times_are_those_of_the_file(self):
        with contextlib.closing(sqlite3.connect("probing.db")) as db:
            samples, = db.execute("SELECT sum(weight) FROM stack_total").fetchone()
        told = self.annotate("demo.py", "--all")
        report = json.loads(probing("report", "probing.db", "--by", "line", "-n", 100000, "--json", check=t.OK).stdout)
        wanted = sum(row["self"] for row in report["rows"]
                     if row["file"] == self.source and row["line"])
        self.assertEqual(samples, told["weight"])
        self.assertEqual(wanted, told["files"][0]["self"])
        self.assertEqual(wanted, sum(line["self"] for line in lines_with_time(told)))

    def test_as_text(self):
        text = probing("annotate", "probing.db", "edit_distance", "--context", 0, check=t.OK).stdout
        self.assertRegex(text, r"\Ademo\.py\nself .* of .*; source: %s\n" % re.escape(self.source))
        self.assertRegex(text, r"(?m)^ +\d+\.\d +\S+ \S+ +\d+\.\d +\S+ \S+ +\d+  +row\[j\] = min\(")
        self.assertNotIn("\x1b", text)

    def test_another_place(self):
        os.makedirs("copy/fixtures")
        shutil.copy(self.source, "copy/fixtures/demo.py")
        for root in ("copy", "copy/fixtures", t.FIXTURES + "=copy/fixtures"):
            with self.subTest(root):
                found = self.annotate("edit_distance", "--source-root", root)["files"][0]
                self.assertEqual("copy/fixtures/demo.py", found["source"])

    def test_a_source_that_was_changed(self):
        os.mkdir("copy")
        shutil.copy(self.source, "copy/demo.py")
        os.utime("copy/demo.py", (time.time() + 5, time.time() + 5))
        said = probing("annotate", "probing.db", "edit_distance", "--source-root", "copy", "--json", check=t.OK)
        self.assertSentence(said.stderr, "changed after the recording began")
        self.assertTrue(json.loads(said.stdout)["files"][0]["newer"])

    def test_a_source_that_is_not_there(self):
        with contextlib.closing(sqlite3.connect("probing.db")) as db:
            db.execute("UPDATE function SET file = '/nowhere/at\x1b[2Jall.py' WHERE name = 'edit_distance'")
            db.commit()
        said = probing("annotate", "probing.db", "edit_distance", check=t.NO_INPUT)
        self.assertIn("[edit_distance]", said.stdout)
        self.assertSentence(said.stderr, "--source-root")
        self.assertNotIn("\x1b", said.stdout + said.stderr)

    def test_mistakes(self):
        self.assertSentence(probing("annotate", "probing.db", "no_such_function", check=t.NO_INPUT).stderr, "no source line")
        said = probing("annotate", "probing.db", "--source-root", "/proc/999999999/root", check=t.USAGE)
        self.assertIn("has the process ended?", said.stderr)
        self.assertSentence(probing("annotate", "missing.db", check=t.NO_INPUT).stderr, "missing.db")


BURN = """
#include <stdlib.h>
static volatile unsigned long sink;
int main(int argc, char **argv)
{
	for (unsigned long i = 0; i < 1000000ul * strtoul(argv[argc - 1], NULL, 10); i++)
		sink += i * i; /* here */
	return 0;
}
"""


class Native(t.Case):
    def test_where_it_was_compiled(self):
        """The compiler was given a relative name, and nobody says where sources are."""
        t.need_perf()
        t.need_program("gcc")
        os.mkdir("src")
        os.mkdir("build")
        with open("src/burn.c", "w") as source:
            source.write(BURN)
        subprocess.run(["gcc", "-g", "-O1", "../src/burn.c", "-o", "burn"], cwd="build", check=True)
        probing("record", "-F", 499, "--", "build/burn", 30, check=t.OK)
        told = json.loads(probing("annotate", "probing.db", "main", "--json", check=t.OK).stdout)
        hottest = max(lines_with_time(told), key=lambda line: line["self"])
        self.assertEqual(os.path.realpath("src/burn.c"), os.path.realpath(told["files"][0]["source"]))
        self.assertRegex(hottest["text"], r"for \(|here")

    def test_source_by_debug_information(self):
        t.need_perf()
        with t.fixture("native_only", "recursion") as target:
            t.record(target.pid, 1, 499)
        told = json.loads(probing("annotate", "probing.db", "native_only.c", "--json", "--source-root", t.FIXTURES,
                                  check=t.OK).stdout)
        with open(os.path.join(t.FIXTURES, "native_only.c")) as source:
            text = source.read().split("\n")
        lines = lines_with_time(told)
        self.assertTrue(lines)
        for line in lines:
            self.assertEqual(text[line["line"] - 1], line["text"])


if __name__ == "__main__":
    sys.exit(unittest.main())
