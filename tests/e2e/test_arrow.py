# SPDX-License-Identifier: MIT
"""Results as Arrow IPC, read by Arrow's own library."""
import contextlib
import json
import os
import shutil
import subprocess
import unittest

import probing_test as t
from probing_test import probing

SAME_FOR_ALL_USERS = True
READERS = os.path.abspath(os.environ.get("PROBING_READERS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "probing", "readers"))
SCRIPT = os.path.join(t.ROOT, "tests", "readers", "read_arrow.mjs")
RECORDING = os.path.join(t.FIXTURES, "recordings", "version_1.db")
COUNT = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %d) "


def need_reader():
    if not shutil.which("node"):
        raise unittest.SkipTest("Node.js is not installed")
    if not os.path.isdir(os.path.join(READERS, "node_modules", "apache-arrow")) or not os.path.exists(SCRIPT):
        raise unittest.SkipTest("apache-arrow is not there; scripts/readers installs it")


def read(path):
    """The streams of a file: fields, rows of each batch, columns."""
    done = subprocess.run(["node", SCRIPT, path], capture_output=True, text=True, env={**os.environ, "PROBING_READERS": READERS}, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Arrow(t.Case):
    @classmethod
    def setUpClass(cls):
        need_reader()
        with contextlib.ExitStack() as stack:
            stack.enter_context(t.scratch())
            cls.addClassCleanup(stack.pop_all().close)

    def streams(self, sql):
        with open("out.arrows", "wb") as file:
            done = subprocess.run([t.BINARY, "sql", RECORDING, sql, "-f", "arrow"], stdout=file, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return read("out.arrows")

    def test_types_and_values(self):
        stream, = self.streams("SELECT 9007199254740993 AS i, 0.5 AS r, 'größe' AS t, x'00ff' AS b, NULL AS n, CAST(x'61ff' AS TEXT) AS broken, -9e999 AS f "
                               "UNION ALL SELECT NULL, 2, NULL, 'z', NULL, '', 1")
        self.assertEqual([["i", "Int64", True], ["r", "Float64", True], ["t", "Utf8", True], ["b", "Binary", True], ["n", "Utf8", True],
                          ["broken", "Utf8", True], ["f", "Float64", True]], stream["fields"])
        self.assertEqual([["9007199254740993", None], [0.5, 2], ["größe", None], ["00ff", "7a"], [None, None], ["a\ufffd", ""], ["-Infinity", 1]],
                         stream["columns"])

    def test_numbers_beside_texts_are_texts(self):
        stream, = self.streams("SELECT 1 AS a UNION ALL SELECT 'x' UNION ALL SELECT 2.5 UNION ALL SELECT NULL")
        self.assertEqual((["a", "Utf8", True], ["1", "x", "2.5", None]), (stream["fields"][0], stream["columns"][0]))

    def test_batches(self):
        stream, = self.streams(COUNT % 40000 + "SELECT i, nullif(i % 3, 0) AS part, 'row ' || i AS name FROM n")
        self.assertEqual([16384, 16384, 7232], stream["batches"])
        self.assertEqual([[str(i) for i in range(40000)], [str(i % 3) if i % 3 else None for i in range(40000)], ["row %d" % i for i in range(40000)]],
                         stream["columns"])

    def test_a_stream_for_each_result(self):
        first, second, third = self.streams("SELECT 1 AS a; SELECT pid, command FROM run WHERE 0; SELECT 'b' AS b, 'c' AS b")
        self.assertEqual([["1"]], first["columns"])
        self.assertEqual(([["pid", "Int64", True], ["command", "Utf8", True]], [0], [[], []]), (second["fields"], second["batches"], second["columns"]))
        self.assertEqual(["b", "b"], [field[0] for field in third["fields"]])

    def test_the_recording_itself(self):
        """All of a table, against the same in JSON."""
        stream, = self.streams("SELECT * FROM frame")
        rows = json.loads(probing("sql", RECORDING, "SELECT * FROM frame", "-f", "json", check=t.OK).stdout)
        self.assertGreater(len(rows), 10)
        for (name, kind, _), values in zip(stream["fields"], stream["columns"]):
            self.assertEqual([row[name] for row in rows], [int(value) if kind == "Int64" and value is not None else value for value in values], name)

    def test_a_type_that_changes_is_refused(self):
        sql = COUNT % 20000 + "SELECT i, CASE WHEN i < 19000 THEN i ELSE 'x' END AS value FROM n"
        done = subprocess.run([t.BINARY, "sql", RECORDING, sql, "-f", "arrow"], capture_output=True, check=False)
        self.assertEqual(t.BAD_DATA, done.returncode)
        self.assertIn(b"values of column value have another type", done.stderr)


if __name__ == "__main__":
    unittest.main()
