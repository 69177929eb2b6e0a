# SPDX-License-Identifier: MIT
"""probing flamegraph: both formats, read by readers that are not ours."""
import collections
import os
import re
import sqlite3
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import probing_test as t
from probing_test import probing

SAME_FOR_ALL_USERS = True

FLAMEGRAPH_PL = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
SVG = "{http://www.w3.org/2000/svg}"


def read_folded(text):
    """Stacks with their counts; a line that is not 'a;b;c N' is a mistake."""
    stacks = collections.Counter()
    for line in text.splitlines():
        match = re.fullmatch(r"(.+) (\d+)", line)
        if match is None:
            raise AssertionError("not a folded line: %r" % line)
        stacks[tuple(match.group(1).split(";"))] += int(match.group(2))
    return stacks


class Flamegraph(t.RecordedCase):
    def folded(self, *options):
        return read_folded(probing("flamegraph", "--format", "folded", "--counts", "-o", "-", *options, check=t.OK).stdout)

    def svg(self, *options):
        probing("flamegraph", "probing.db", "-o", "out.svg", *options, check=t.OK)
        with open("out.svg", encoding="utf-8") as text:
            return text.read()

    def test_svg_is_well_formed_and_self_contained(self):
        text = self.svg()
        root = xml.etree.ElementTree.fromstring(text)
        self.assertEqual(SVG + "svg", root.tag)
        for element in root.iter():
            for name, value in element.attrib.items():
                if name.rsplit("}", 1)[-1] in ("href", "src"):
                    self.assertTrue(value.startswith("#"), value)
        links = set(re.findall(r"https?://[^\s\"'<>]+", text))
        self.assertEqual([], [link for link in links if not link.startswith("http://www.w3.org/")])  # namespaces

    def test_svg_shows_functions_with_share_and_samples(self):
        root = xml.etree.ElementTree.fromstring(self.svg())
        titles = [title.text or "" for title in root.iter(SVG + "title")]
        mine = [title for title in titles if "edit_distance" in title]
        self.assertTrue(mine, titles[:10])
        self.assertRegex(mine[0], r"\d[\d,. ]* samples?")
        self.assertRegex(mine[0], r"\d+(\.\d+)? ?%")

    def test_default_is_flamegraph_svg_from_probing_db(self):
        probing("flamegraph", check=t.OK)
        self.assertEqual(SVG + "svg", xml.etree.ElementTree.parse("flamegraph.svg").getroot().tag)

    def test_ending_chooses_the_format(self):
        probing("flamegraph", "-o", "out.folded", check=t.OK)
        with open("out.folded") as text:
            self.assertTrue(read_folded(text.read()))

    def test_folded_adds_up_to_the_samples(self):
        self.assertEqual(len(self.recording.samples), sum(self.folded().values()))

    def test_folded_per_function_equals_sql(self):
        stacks = self.folded()
        inclusive = sum(n for stack, n in stacks.items() if "edit_distance" in " ".join(stack))
        self.assertEqual(sum("edit_distance" in self.recording.names(s.stack)
                             for s in self.recording.samples if s.stack), inclusive)

    def test_python_stands_above_native(self):
        """The caller first: process > compress > zlib's builtin > libz."""
        wanted = ["main", "produce", "process", "compress"]
        found = [stack for stack in self.folded() if t.subsequence(list(stack), wanted)]
        self.assertTrue(found)
        leaves = [name for stack in found for name in stack[-3:]]
        self.assertTrue(any("deflate" in name or "libz" in name for name in leaves), leaves)

    @t.statistical("bounds the share of samples whose Python could not be read", 0.0002)
    def test_plumbing_is_folded_away_unless_asked_for(self):
        hidden, shown = self.folded(), self.folded("--interpreter-frames")
        self.assertEqual(sum(hidden.values()), sum(shown.values()))
        depth = [sum(len(stack) * n for stack, n in stacks.items()) for stacks in (hidden, shown)]
        self.assertLess(depth[0], depth[1])
        # Where a stack is nothing but internal functions (its Python could not be read), its innermost stays.
        glue = {stack: n for stack, n in hidden.items() if "_PyEval_EvalFrameDefault" in stack[-1]}
        self.assertFalse(any("_PyEval_EvalFrameDefault" in name for stack in hidden for name in stack[:-1]))
        self.assertTrue(all(len(stack) <= 2 for stack in glue), glue)
        self.assertLessEqual(sum(glue.values()), sum(hidden.values()) * 0.02, glue)

    def test_threads_are_split_on_request(self):
        roots = {stack[0] for stack in self.folded("--threads")}
        self.assertEqual(2, len(roots), roots)
        self.assertTrue(any("archive" in root for root in roots), roots)

    def test_flamegraph_pl_reads_folded(self):
        if not os.path.exists(FLAMEGRAPH_PL):
            raise unittest.SkipTest("flamegraph.pl (libdevel-nytprof-perl) is not installed")
        text = probing("flamegraph", "--format", "folded", "-o", "-", check=t.OK).stdout
        drawn = subprocess.run(["perl", FLAMEGRAPH_PL], input=text, capture_output=True, text=True, check=True)
        self.assertEqual("", drawn.stderr)
        self.assertIn("edit_distance", drawn.stdout)

    def test_unknown_format(self):
        said = probing("flamegraph", "--format", "painting", check=t.USAGE)
        self.assertIn("painting", said.stderr)
        self.assertIn("folded", probing("flamegraph", "--help", check=t.OK).stdout)
        self.assertEqual(["probing.db"], os.listdir("."))

    def test_no_such_recording(self):
        said = probing("flamegraph", "missing.db", check=t.NO_INPUT)
        self.assertSentence(said.stderr, "missing.db")
        self.assertEqual(["probing.db"], os.listdir("."))

    def test_output_that_cannot_be_made(self):
        said = probing("flamegraph", "-o", "missing/out.svg", check=t.NO_OUTPUT)
        self.assertSentence(said.stderr, "missing/out.svg")

    def test_output_that_fails(self):
        with open("/dev/full", "w") as full:
            said = subprocess.run([t.BINARY, "flamegraph", "--format", "folded", "-o", "-"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(t.IO, said.returncode)
        self.assertSentence(said.stderr)

    def test_reader_that_goes_away(self):
        done = subprocess.run("%s flamegraph --format folded -o - | head -c 10" % t.BINARY, shell=True,
                              capture_output=True, text=True)
        self.assertEqual("", done.stderr)


class Damaged(t.Case):
    """Files that are not good recordings are refused by every reader alike."""

    def refused(self, status, *patterns):
        for verb in (["flamegraph", "bad.db"], ["report", "bad.db"], ["sql", "bad.db", "SELECT 1"]):
            with self.subTest(verb[0]):
                said = probing(*verb, check=status)
                self.assertSentence(said.stderr, "bad.db", *patterns)
                self.assertEqual("", said.stdout)

    def make(self, *statements):
        db = sqlite3.connect("bad.db")
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()

    def test_text(self):
        with open("bad.db", "w") as text:
            text.write("this is not a database at all, only a line of text\n" * 30)
        self.refused(t.BAD_DATA)

    def test_empty(self):
        open("bad.db", "w").close()
        self.refused(t.BAD_DATA)

    def test_foreign_database(self):
        self.make("CREATE TABLE song(title)")
        self.refused(t.BAD_DATA)

    def test_newer_schema(self):
        self.make("CREATE TABLE run(run)", "PRAGMA application_id = 0x50726f62", "PRAGMA user_version = 4711")
        self.refused(t.BAD_DATA, "4711|newer")

    def test_folder(self):
        os.mkdir("bad.db")
        for verb in (["flamegraph", "bad.db"], ["report", "bad.db"], ["sql", "bad.db", "SELECT 1"]):
            said = probing(*verb)
            self.assertIn(said.returncode, (t.BAD_DATA, t.NO_INPUT))
            self.assertSentence(said.stderr, "bad.db")

    def test_cut_short(self):
        busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
        probing("record", "-o", "good.db", "-F", "999", "--", "sh", "-c", busy, check=0)
        with open("good.db", "rb") as good, open("bad.db", "wb") as bad:
            text = good.read()
            bad.write(text[:len(text) // 2])
        for verb in (["flamegraph", "bad.db"], ["report", "bad.db"]):
            with self.subTest(verb[0]):
                self.assertSentence(probing(*verb, check=t.BAD_DATA).stderr, "bad.db")
        left = sorted(name for name in os.listdir(".") if not name.startswith("bad.db-"))
        self.assertEqual(["bad.db", "good.db"], left)


if __name__ == "__main__":
    sys.exit(unittest.main())
