# SPDX-License-Identifier: MIT
"""What is shown of a recording: the options that report, flamegraph and export share, against SQL on the file."""
import collections
import json
import os
import sqlite3
import unittest

import probing_test as t
from probing_test import probing
from test_flamegraph import read_folded

SAME_FOR_ALL_USERS = True


class Views(t.RecordedCase):
    def folded(self, *options):
        return read_folded(probing("export", "--to", "folded", "--counts", "-o", "-", *options, check=t.OK).stdout)

    def sql(self, query):
        """Rows of a query on the single samples."""
        text = probing("sql", "probing.db", query, "--format", "csv", check=t.OK).stdout
        return [line.split(",") for line in text.splitlines()[1:]]

    def count(self, condition):
        return int(self.sql("SELECT count(*) FROM sample WHERE " + condition)[0][0])

    def start(self):
        db = sqlite3.connect("probing.db")
        with t.contextlib.closing(db):
            return db.execute("SELECT started FROM run").fetchone()[0]

    # ---- Time and SQL ----

    def test_time_since_the_start(self):
        start = self.start()
        wanted = self.count("timestamp >= %r AND timestamp < %r" % (start + 0.5, start + 1.25))
        self.assertGreater(wanted, 0)
        self.assertLess(wanted, len(self.recording.samples))
        self.assertEqual(wanted, sum(self.folded("--since", "0.5", "--until", "1250ms").values()))

    def test_time_of_day(self):
        moment = int(self.start()) + 1
        wanted = self.count("timestamp >= %d" % moment)
        for text in (str(moment), t.time.strftime("%H:%M:%S", t.time.localtime(moment)),
                     t.time.strftime("%Y-%m-%d %H:%M:%S", t.time.localtime(moment)),
                     t.time.strftime("%Y-%m-%dT%H:%M:%SZ", t.time.gmtime(moment))):
            with self.subTest(text):
                self.assertEqual(wanted, sum(self.folded("--since", text).values()))

    def test_where(self):
        for condition in ("verdict <> 'no_python'", "cpu = 0 OR gil = 1", "stack IN (SELECT stack FROM stack WHERE depth > 5) -- x"):
            with self.subTest(condition):
                wanted = self.count("(%s\n)" % condition)
                self.assertGreater(wanted, 0)
                self.assertEqual(wanted, sum(self.folded("--where", condition).values()))

    def test_where_with_time_and_gil(self):
        start = self.start()
        wanted = self.count("gil = 1 AND timestamp >= %r AND weight > 0" % (start + 1))
        self.assertEqual(wanted, sum(self.folded("--gil", "--since", "1", "--where", "weight > 0").values()))
        wanted = self.count("gil = 1 AND timestamp >= %r" % (start + 1))
        self.assertEqual(wanted, sum(self.folded("--gil", "--since", "1").values()))

    def test_where_that_is_no_condition(self):
        for condition in ("colour = 3", "cpu =", "max(cpu) > 1", "1); SELECT (1", "1) UNION SELECT (2"):
            with self.subTest(condition):
                said = probing("report", "--where", condition, check=t.BAD_DATA)
                self.assertSentence(said.stderr)
                self.assertEqual("", said.stdout)
        said = probing("report", "--where", "colour = 3", check=t.BAD_DATA)
        self.assertSentence(said.stderr, "colour", "probing tables sample")

    def test_nothing_of_it(self):
        said = probing("report", "--since", "1h", check=t.NO_INPUT)
        self.assertSentence(said.stderr, "probing.db", "match the filter")

    def test_times_that_are_none(self):
        for text in ("yesterday", "-5", "12:", "25:99", "2026-13-45", "1x", "", "12:30:xx", "nan"):
            with self.subTest(text):
                said = probing("report", "--since", text, check=t.USAGE)
                self.assertIn("--since", said.stderr)

    # ---- Stacks ----

    def names(self, stack):
        return " ".join(stack)

    def test_ignore_is_what_focus_leaves(self):
        through = self.folded("--focus", "edit_distance")
        without = self.folded("--ignore", "edit_distance")
        self.assertTrue(all("edit_distance" in self.names(stack) for stack in through))
        self.assertFalse(any("edit_distance" in self.names(stack) for stack in without))
        self.assertEqual(len(self.recording.samples), sum(through.values()) + sum(without.values()))

    def test_module(self):
        db = sqlite3.connect("probing.db")
        with t.contextlib.closing(db):
            wanted = db.execute(
                "WITH RECURSIVE here AS (SELECT stack FROM stack JOIN named_frame USING(frame) WHERE module LIKE '%/libz.so%'"
                " UNION SELECT child.stack FROM stack AS child JOIN here ON child.parent = here.stack)"
                " SELECT sum(samples) FROM stack_total WHERE stack IN here").fetchone()[0]
        self.assertEqual(wanted, sum(self.folded("--module", "libz.so*").values()))
        self.assertEqual(sum(self.folded("--module", "demo.py").values()),
                         sum(n for stack, n in self.folded().items() if "demo.py" in self.names(stack)))

    def test_modules_as_they_are_listed(self):
        """What report --by module lists can be asked for by that name, "[kernel]" too, though it looks like a glob."""
        def report(*options):
            return json.loads(probing("report", "--json", *options, check=t.OK).stdout)

        listed = report("--by", "module", "--total", "-n", 1000)["rows"]
        asked = [row for row in listed if row["module"].startswith("[") or row["module"].endswith(".py")]
        for row in asked:
            self.assertEqual(row["total"], report("--module", row["module"])["weight"], row["module"])
        self.assertGreater(len(asked), 2)

    def test_process(self):
        db = sqlite3.connect("probing.db")
        with t.contextlib.closing(db):
            name, pid = db.execute("SELECT name, pid FROM process").fetchone()
        for wanted in (name, str(pid), name[:2] + "*", "nobody,%d" % pid):
            self.assertEqual(len(self.recording.samples), sum(self.folded("--process", wanted).values()))
        probing("report", "--process", "nobody", check=t.NO_INPUT)

    def test_inverted(self):
        usual, inverted = self.folded(), self.folded("--inverted")
        self.assertEqual({stack[::-1]: n for stack, n in usual.items()}, dict(inverted))

    @t.statistical("a share of time is compared with a share of samples", 0.0002)
    def test_min_share(self):
        """Nothing small is left, nothing is lost, and what stays is what it was."""
        usual, large = self.folded(), self.folded("--min-share", "5")
        whole = sum(usual.values())
        self.assertEqual(whole, sum(large.values()))

        def totals(stacks):
            found = collections.Counter()
            for stack, n in stacks.items():
                for depth in range(1, len(stack) + 1):
                    found[stack[:depth]] += n
            return found

        before, after = totals(usual), totals(large)
        for stack, n in after.items():
            if stack != ("[rest]",):
                self.assertEqual(before[stack], n)
                self.assertGreaterEqual(n, whole * 0.045)  # shares are of time, these are samples
        self.assertLess(len(large), len(usual))

    def test_lines(self):
        self.assertTrue(any(":" in stack[-1] and "(demo.py:" in self.names(stack) for stack in self.folded("--lines")))

    def test_every_verb_takes_them(self):
        for verb in (["report"], ["flamegraph", "-o", "out.svg"], ["export", "--to", "folded", "-o", "out.folded"]):
            probing(*verb, "--since", "0.1", "--until", "60s", "--where", "cpu >= 0", "--ignore", "no_such", check=t.OK)

    # ---- What a file does not know ----

    def test_sums_alone(self):
        """A file without single samples: all that needs none of them works, the rest is a sentence."""
        db = sqlite3.connect("probing.db")
        with t.contextlib.closing(db):
            db.execute("DELETE FROM sample_block")
            db.commit()
        usual = self.folded()
        self.assertEqual(len(self.recording.samples), sum(usual.values()))
        for option in (["--since", "1"], ["--until", "1"], ["--where", "cpu = 1"]):
            said = probing("report", *option, check=t.BAD_DATA)
            self.assertSentence(said.stderr, "probing.db", "single samples")
        for to in ("chrome", "gecko"):
            said = probing("export", "--to", to, "-o", "out", check=t.BAD_DATA)
            self.assertSentence(said.stderr, to)
            self.assertFalse(os.path.exists("out"))
        for to in ("speedscope", "pprof"):
            probing("export", "--to", to, "-o", "out." + to, check=t.OK)


if __name__ == "__main__":
    unittest.main()
