#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each row of each CPython layout, with another number: the build refuses it, on every machine.

Usage: layout_rows_test.py SOURCE_ROOT. What the numbers mean is tested on interpreters and on images of their memory
(tests/unit/test_images.c); layout_mutants.py tells which of these rows such a test needs.
"""
import contextlib
import glob
import io
import os
import re
import sys
import tempfile
import unittest

ROOT = sys.argv.pop(1)
sys.path.insert(0, os.path.join(ROOT, "tools"))
sys.dont_write_bytecode = True
import layout_table  # noqa: E402


class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "release")

    def refusal(self, text):
        """Why the build refuses such a file; None: it takes it."""
        with open(self.path, "w", encoding="ascii") as file:
            file.write(text)
        try:
            layout_table.initialiser(self.path)
        except SystemExit as refused:
            return str(refused)
        return None

    def test_each_row(self):
        n_rows = 0
        for path in sorted(glob.glob(os.path.join(ROOT, "unwind", "cpython", "releases", "*"))):
            with open(path, encoding="ascii") as file:
                text = file.read()
            self.assertIsNone(self.refusal(text), path)
            for row in re.finditer(r"^(?:offset|word|words) .*?(\d+)$", text, re.MULTILINE):
                n_rows += 1
                mutant = text[:row.start(1)] + str(int(row[1]) + 8) + text[row.end(1):]
                self.assertIn("layout_probe.py", self.refusal(mutant) or "", (path, row[0]))
                self.assertIn("layout_probe.py", self.refusal(text[:row.start()] + text[row.end() + 1:]) or "", (path, row[0]))
        self.assertGreater(n_rows, 1000)

    def test_the_table_of_a_changed_file_is_not_made(self):
        with open(os.path.join(ROOT, "unwind", "cpython", "releases", "3.12"), encoding="ascii") as file:
            text = file.read()
        with open(self.path, "w", encoding="ascii") as file:
            file.write(text.replace("offset FRAME_INSTRUCTION ", "offset FRAME_INSTRUCTION 1"))
        table = os.path.join(os.path.dirname(self.path), "table.h")
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            layout_table.main(table, [self.path])
        self.assertFalse(os.path.exists(table))


if __name__ == "__main__":
    unittest.main()
