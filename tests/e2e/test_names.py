# SPDX-License-Identifier: MIT
"""Names from a program may hold anything: they arrive whole, and do no harm in any output."""
import csv
import io
import json
import os
import sys
import unicodedata
import unittest
import xml.etree.ElementTree

import probing_test as t
from probing_test import probing
from test_flamegraph import read_folded


def commands(characters):
    """Those of some characters that a terminal could take for commands."""
    return {c for c in characters if unicodedata.category(c) == "Cc" and c != "\n"}


@t.for_each_interpreter(globals())
class Names(t.Case):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with t.fixture("names.py", python=cls.interpreter.path, place=cls.interpreter.place) as started:
            cls.recording, cls.truth = t.record_cpu(started, 0.5, 299), started.truth
            cls.backtrace = probing("backtrace", started.pid, check=t.OK).stdout
            cls.backtrace_json = probing("backtrace", "--json", started.pid, check=t.OK).stdout

    def setUp(self):
        """The recording is in the scratch folder of the class."""
        os.chdir(self.folder)

    def output(self, *arguments):
        return probing(*arguments, check=t.OK, env=dict(os.environ, LC_ALL="C.UTF-8")).stdout

    def test_names_and_file_arrive_whole(self):
        wanted = self.truth["names"]
        chains = [[f.name for f in self.recording.python(s.stack) if f.file == self.truth["file"]]
                  for s in self.recording.samples if s.stack]
        self.assertIn(wanted, chains)

    def test_a_folded_stack_is_one_line(self):
        stacks = read_folded(self.output("flamegraph", "--format", "folded", "--counts", "-o", "-"))
        self.assertEqual(len(self.recording.samples), sum(stacks.values()))
        deepest = max(stacks, key=len)
        self.assertTrue(any("burn" in frame for frame in deepest), deepest)
        self.assertEqual(set(), commands("".join(deepest)))
        shown = [name.split(" (")[0] for name in deepest]
        for name in ("plain", "caf\xe9", "\u0438\u043c\u044f", "\U0001d4bb\U0001d4f7"):
            self.assertIn(name, shown)
        # A ';' in a name or a file would make two frames of one.
        first = shown.index("plain")
        self.assertEqual(first + len(self.truth["names"]), shown.index("burn_until"), shown)

    def test_svg_is_well_formed(self):
        probing("flamegraph", "-o", "out.svg", check=t.OK)
        text = open("out.svg", encoding="utf-8").read()
        titles = [e.text or "" for e in xml.etree.ElementTree.fromstring(text).iter() if e.tag.endswith("}title")]
        self.assertTrue(any("quote\"'<&>" in title for title in titles))
        self.assertEqual(set(), commands(text) - {"\t", "\r"})

    def test_texts_hold_no_commands(self):
        for arguments in (["report", "-n", "1000"], ["sql", "probing.db", "SELECT name, file FROM named_frame"]):
            with self.subTest(arguments[0]):
                text = self.output(*arguments)
                self.assertIn("plain", text)
                self.assertEqual(set(), commands(text))
        self.assertIn("plain", self.backtrace)
        self.assertEqual(set(), commands(self.backtrace))

    def test_data_holds_the_names_as_they_are(self):
        sql = "SELECT DISTINCT name FROM named_frame WHERE kind = 'python'"
        rows = {row[0] for row in csv.reader(io.StringIO(self.output("sql", "-f", "csv", "probing.db", sql), newline=""))}
        self.assertLessEqual(set(self.truth["names"]), rows)
        rows = json.loads(self.output("sql", "-f", "json", "probing.db", sql))
        self.assertLessEqual(set(self.truth["names"]), {row["name"] for row in rows})
        threads = json.loads(self.backtrace_json)["threads"]
        self.assertLessEqual(set(self.truth["names"]), {f["function"] for th in threads for f in th["frames"]})


if __name__ == "__main__":
    sys.exit(unittest.main())
