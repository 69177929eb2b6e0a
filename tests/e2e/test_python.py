# SPDX-License-Identifier: MIT
"""The package 'probing': questions from Python, under several interpreters."""
import json
import os
import shutil
import subprocess
import sys
import unittest

import probing_test as t
from probing_test import fixture

PACKAGE = os.path.join(t.ROOT, "python")

TYPES = r"""
import json, probing
sql = ("SELECT 9007199254740993 AS big, -5 AS small, NULL AS absent, 2.0 AS whole, 0.1 AS real, 9e999 AS inf, "
       "'\u00fc' || char(10) || '\"' AS text, x'00ff' AS blob, 7 AS big")
row, = probing.query(sql, "out.db", pandas=False)
assert list(row) == ["big", "small", "absent", "whole", "real", "inf", "text", "blob", "big_2"], row
assert row["big"] == 2 ** 53 + 1 and isinstance(row["big"], int), row
assert row["small"] == -5 and row["absent"] is None and row["inf"] == float("inf"), row
assert isinstance(row["whole"], float) and row["real"] == 0.1, row
assert row["text"] == "\u00fc\n\"" and row["blob"] == b"\x00\xff" and row["big_2"] == 7, row
assert probing.query("SELECT 1 AS a WHERE 0", "out.db", pandas=False) == []
assert probing.query("SELECT 1 AS a; SELECT 2 AS b;", "out.db", pandas=False) == [{"b": 2}]
"""

SOURCES = r"""
import pathlib, sqlite3, probing
with sqlite3.connect("file:out.db?mode=ro", uri=True) as db:
    expected = [dict(zip(("pid", "n"), row)) for row in db.execute(
        "SELECT pid, sum(samples) FROM stack_total GROUP BY pid")]
sql = "SELECT pid, sum(samples) AS n FROM stack_total GROUP BY pid"
assert expected
assert probing.query(sql, "out.db", pandas=False) == expected
assert probing.query(sql, pathlib.Path("out.db"), pandas=False) == expected
assert probing.query(sql, ["out.db"], pandas=False) == expected
both = probing.query("SELECT run, sum(samples) AS n FROM stack_total GROUP BY run", ["out.db", pathlib.Path("probing.db")], pandas=False)
assert both == [{"run": run, "n": sum(row["n"] for row in expected)} for run in (1, 2)], both
assert probing.query(sql, pandas=False) == expected  # ./probing.db
assert len(probing.query("SELECT * FROM named_frame", "out.db", pandas=False)) > 100
"""

ERRORS = r"""
import probing
def fails(*arguments, **more):
    try:
        probing.query(*arguments, **more)
    except probing.Error as error:
        return error
    raise SystemExit("%r did not fail" % (arguments,))
error = fails("SELECT nme FROM function", "out.db")
assert "nme" in str(error) and error.status == 65 and not str(error).startswith("probing"), error
assert "missing.db does not exist" in str(fails("SELECT 1", "missing.db")), error
assert fails("SELECT 1", "text").status == 65
assert "at least one" in str(fails("SELECT 1", []))
assert "would change the recording" in str(fails("DELETE FROM run", "out.db"))
error = fails("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", "out.db", timeout=0.2)
assert "timeout" in str(error), error
import os
os.environ["PROBING_BINARY"] = "/nowhere"
assert "PROBING_BINARY" in str(fails("SELECT 1", "out.db"))
"""

WITH_PANDAS = r"""
import math, pandas, probing
frame = probing.query("SELECT * FROM stack_total", "out.db")
assert isinstance(frame, pandas.DataFrame) and len(frame) > 10, frame
assert str(frame["weight"].dtype) == "int64", frame.dtypes
frame = probing.query("SELECT 9007199254740993 AS big, 1 AS some, 'a' AS text UNION ALL SELECT NULL, NULL, NULL", "out.db")
assert frame["big"][0] == 2 ** 53 + 1, frame
assert math.isnan(frame["some"][1]) and frame["some"][0] == 1, frame
assert frame["text"][1] is None, frame
empty = probing.query("SELECT 1 AS a, 2 AS b WHERE 0", "out.db")
assert list(empty.columns) == ["a", "b"] and len(empty) == 0, empty
assert isinstance(probing.query("SELECT 1 AS a", "out.db", pandas=False), list)
with_extension = pandas.read_sql("SELECT * FROM sample", probing.connect("out.db"))
assert len(with_extension) == probing.query("SELECT count(*) AS n FROM sample", "out.db")["n"][0]
"""

CONNECT = r"""
import sqlite3, probing
try:
    db = probing.connect("out.db")
except probing.Error as error:
    assert not hasattr(sqlite3.Connection, "enable_load_extension"), error
    assert "loadable extensions" in str(error) and "probing.query()" in str(error), error
    print("refused")
else:
    assert db.execute("SELECT count(*) FROM sample").fetchone()[0] > 0
    assert db.execute("SELECT probing_version()").fetchone()[0].startswith("0.")
    try:
        db.execute("DELETE FROM run")
        raise SystemExit("it was written to")
    except sqlite3.OperationalError:
        pass
    print("loaded")
"""


class Package(t.Case):
    wanted = ("debian", "3_8", "3_13")

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with fixture("demo.py") as target:
            t.record_cpu(target, 0.7, 299, "out.db")
        shutil.copy("out.db", "probing.db")
        with open("text", "w") as text:
            text.write("no recording")

    def setUp(self):
        super().setUp()
        for name in ("out.db", "probing.db", "text"):
            shutil.copy(os.path.join(self.folder, name), name)

    def environment(self):
        return dict(os.environ, PYTHONPATH=PACKAGE, PROBING_BINARY=t.BINARY, PYTHONDONTWRITEBYTECODE="1")

    def run_code(self, python, code, **more):
        done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                              env=self.environment(), **more)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout.strip()

    def for_each(self, code):
        said = {}
        for interpreter in t.interpreters():
            if interpreter.label not in self.wanted or interpreter.path is None:
                continue
            with self.subTest(interpreter.label):
                said[interpreter.label] = self.run_code(interpreter.path, code)
        self.assertIn("debian", said)
        return said

    def test_types(self):
        self.for_each(TYPES)

    def test_sources(self):
        self.for_each(SOURCES)

    def test_errors(self):
        self.for_each(ERRORS)

    def test_connect(self):
        self.assertEqual("loaded", self.for_each(CONNECT)["debian"])

    def test_pandas(self):
        if subprocess.run([t.DEBIAN_PYTHON, "-c", "import pandas"], stderr=subprocess.DEVNULL).returncode != 0:
            raise unittest.SkipTest("python3-pandas is not installed")
        self.run_code(t.DEBIAN_PYTHON, "import warnings; warnings.simplefilter('ignore')\n" + WITH_PANDAS)

    def test_as_a_program(self):
        done = subprocess.run([t.DEBIAN_PYTHON, "-m", "probing", "info", "out.db", "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=self.environment())
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual("out.db", json.loads(done.stdout)[0]["path"])

    def test_installed(self):
        """Moved to where it is installed, it finds the program of its own installation, and that the extension."""
        folder = os.path.join(os.getcwd(), "prefix")
        package = os.path.join(folder, "lib", "python3", "dist-packages")
        shutil.copytree(os.path.join(PACKAGE, "probing"), os.path.join(package, "probing"))
        os.mkdir(os.path.join(folder, "bin"))
        shutil.copy(t.BINARY, os.path.join(folder, "bin", "probing"))
        environment = dict(self.environment(), PYTHONPATH=package)
        del environment["PROBING_BINARY"]
        done = subprocess.run([t.DEBIAN_PYTHON, "-c", "import probing; print(probing.binary())"], stdout=subprocess.PIPE,
                              text=True, env=environment)
        self.assertEqual(os.path.join(folder, "bin", "probing"), done.stdout.strip())


if __name__ == "__main__":
    sys.exit(unittest.main())
