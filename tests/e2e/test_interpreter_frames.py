# SPDX-License-Identifier: MIT
"""Frames of the interpreter that matter to its user by other names, or not at all: collector, methods' bodies, imports."""
import contextlib
import re
import sqlite3
import unittest

import by_work
import probing_test as t

COLLECTING = """
import gc, time
class Node:
    def __init__(self):
        self.me = self
    def __del__(self):
        for _ in range(1000):
            pass
def churn():
    kept = [[i] for i in range(50000)]
    for _ in range(50):
        for _ in range(100):
            Node()
        gc.collect()
print("ready {}", flush=True)
while True:
    churn()
"""

SELECTING = """
import os, select
readable = [os.pipe()[0]] * 300
print("ready {}", flush=True)
def wait():
    while True:
        select.select(readable, [], [], 0)
wait()
"""

IMPORTING = """
import sys
sys.path.insert(0, ".")
with open("imported.py", "w") as file:
    file.write("def work():\\n    for _ in range(50000):\\n        pass\\nwork()\\n" + "value = [1, 2, 3]\\n" * 20)
def again():
    import imported
    del sys.modules["imported"]
print("ready {}", flush=True)
while True:
    again()
"""


class Frames(t.Case):
    def record(self, program, *more, seconds=1.5):
        with open("program.py", "w") as file:
            file.write(program)
        with t.target([t.DEBIAN_PYTHON, "program.py"]) as started:
            by_work.record(started, seconds, 999, "probing.db", *more)

    def query(self, sql):
        with contextlib.closing(sqlite3.connect("probing.db")) as db:
            return db.execute(sql).fetchall()

    def folded(self, *more):
        """[(frames, count)]"""
        lines = t.probing("flamegraph", "--format", "folded", "-o", "-", *more, check=t.OK).stdout.splitlines()
        return [(line.rpartition(" ")[0].split(";"), int(line.rpartition(" ")[2])) for line in lines]


class Collector(Frames):
    @t.statistical("bounds shares of random samples", 0.0002)
    def test_it_is_a_frame(self):
        self.record(COLLECTING)
        if not self.query("SELECT 1 FROM function WHERE name = 'deduce_unreachable'"):
            self.skipTest("this Python's static functions have no names here (python3.11-dbg)")
        collecting = finalizing = 0
        for frames, count in self.folded():
            inside = [name for name in frames if re.match(r"deduce_unreachable|finalize_garbage|Node\.__del__", name)]
            if not inside:
                continue
            collecting += count
            collector = [i for i, name in enumerate(frames) if name == "[GC]"]
            self.assertEqual(1, len(collector), frames)
            self.assertLess(collector[0], frames.index(inside[0]), frames)
            self.assertRegex(";".join(frames[:collector[0]]), r"churn|Node\.__init__", frames)
            self.assertEqual([], [name for name in frames if "gc_collect" in name], frames)
            finalizing += count if "__del__" in frames[-1] else 0
        total = sum(count for _, count in self.folded())
        self.assertShare(0.2, collecting / total, "inside the collector")
        self.assertGreater(finalizing, 0)
        shown = [frames for frames, _ in self.folded("--interpreter-frames") if "[GC]" in frames]
        self.assertTrue(shown)


class Methods(Frames):
    @t.statistical("bounds a share of random samples", 0.0002)
    def test_a_body_has_its_methods_name(self):
        self.record(SELECTING)
        frames = [(frames, count) for frames, count in self.folded() if any("wait" in name for name in frames)]
        total = sum(count for _, count in frames)
        named = sum(count for frames, count in frames if "select.select" in frames)
        self.assertShare(0.9, named / total, "select.select below wait: %s" % frames)
        self.assertEqual([], self.query("SELECT name FROM function WHERE name GLOB 'select_select*'"))


class Imports(Frames):
    MACHINERY = re.compile(r"_find_and_load|_bootstrap|_call_with_frames_removed|SourceFileLoader|exec_module")

    def machinery(self, *more):
        return sum(count for frames, count in self.folded(*more) if any(map(self.MACHINERY.search, frames)))

    @t.statistical("bounds shares of random samples, and code that is freed before it is read", 0.0005)
    def test_the_machinery_is_folded(self):
        self.record(IMPORTING)
        self.assertEqual(0, self.machinery())
        self.assertEqual(0, self.machinery("--no-native"))
        stacks = self.folded("--no-native")
        total = sum(count for _, count in stacks)
        self.assertShare(0.1, self.machinery("--interpreter-frames") / total, "in the import machinery")
        # What was imported stands below who imports it, where the module's code was not freed before it was read.
        work = [([name.split(" ")[0] for name in frames], count) for frames, count in stacks
                if any(name.startswith("work ") for name in frames)]
        in_work = sum(count for _, count in work)
        self.assertShare(0.1, in_work / total, "in what was imported")
        below = sum(count for names, count in work if names[-3:] == ["again", "<module>", "work"])
        self.assertShare(0.9, below / in_work, "work below the module that was imported: %s" % work)

    def test_backtrace_folds_too(self):
        with open("program.py", "w") as file:
            file.write(IMPORTING.replace("range(50000)", "range(10**9)"))
        with t.target([t.DEBIAN_PYTHON, "program.py"]) as started:
            def take():
                return t.probing("backtrace", started.pid, "--no-native", check=t.OK).stdout
            t.wait_until(lambda: "work" in take(), 30, "the program to work")
            shown = take()
            everything = t.probing("backtrace", started.pid, "--interpreter-frames", check=t.OK).stdout
        self.assertIn("again", shown)
        self.assertIn("work", shown)
        self.assertNotRegex(shown, self.MACHINERY)
        self.assertRegex(everything, self.MACHINERY)


if __name__ == "__main__":
    unittest.main()
