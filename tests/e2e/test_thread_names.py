# SPDX-License-Identifier: MIT
"""Threads are called in recordings as they are in Python."""
import contextlib
import json

import probing_test as t
from probing_test import probing


@t.for_each_interpreter(globals(), t.all_interpreters)
class ThreadNames(t.Case):
    """Names in every table and picture; fixtures/named_threads.py says what they are."""

    @classmethod
    def setUpClass(cls):
        t.need_interpreter(cls.interpreter)
        t.need_perf()
        folder = t.scratch()
        folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with t.fixture("named_threads.py", python=cls.interpreter.path, place=cls.interpreter.place) as started:
            probing("record", "--mode", "wall", "--pid", started.pid, "-d", "1", check=t.OK)
            cls.truth = started.truth["threads"]
            cls.pid = started.pid

    def setUp(self):
        pass

    def rows(self, sql):
        with contextlib.closing(t.connect("probing.db")) as db:
            return db.execute(sql).fetchall()

    def test_each_thread_has_its_name(self):
        found = {function: {name for (name,) in self.rows(
            "WITH RECURSIVE path(pid, tid, stack) AS (SELECT pid, tid, stack FROM stack_total UNION"
            " SELECT pid, tid, parent FROM path JOIN stack USING (stack) WHERE parent IS NOT NULL)"
            " SELECT DISTINCT thread.name FROM path JOIN stack USING (stack) JOIN named_frame USING (frame)"
            " JOIN thread USING (pid, tid) WHERE named_frame.kind = 'python' AND"
            " (named_frame.name = '%s' OR named_frame.name LIKE '%%.%s')" % (function, function))}
            for function in self.truth}
        self.assertEqual({function: {name} for function, name in self.truth.items()}, found)

    def test_main_thread(self):
        self.assertEqual([("MainThread",)], self.rows("SELECT name FROM thread WHERE tid = pid"))

    def test_report_and_picture(self):
        report = probing("report", "--by", "thread", "--json", check=t.OK).stdout
        picture = probing("flamegraph", "--format", "folded", "--by-thread", "-o", "-", check=t.OK).stdout
        for name in self.truth.values():
            self.assertIn(name, report)
            self.assertIn(name, picture)

    def test_filters(self):
        burning = probing("flamegraph", "--format", "folded", "--threads=" + self.truth["burn_named"], "-o", "-",
                          check=t.OK).stdout
        self.assertIn("burn_named (named_threads.py)", burning)
        for other in set(self.truth) - {"burn_named"}:
            self.assertNotIn(other + " (named_threads.py)", burning)  # its thread's name may stand in [held by ...]


class ChangingNames(t.Case):
    """Threads that change their names, and programs that follow each other, while they are recorded."""

    def test_renamed_while_recorded(self):
        program = ("import threading, time\n"
                   "thread = threading.current_thread()\n"
                   "while time.process_time() < 1: pass\n"
                   "thread.name = 'second half'\n"
                   "while time.process_time() < 2.5: pass\n")
        probing("record", "--", t.DEBIAN_PYTHON, "-c", program, check=t.OK)
        with contextlib.closing(t.connect("probing.db")) as db:
            self.assertEqual([("second half",)], db.execute("SELECT name FROM thread").fetchall())

    def test_threads_one_after_the_other(self):
        """Each gets the number of the one before in Python (threading.get_ident()), not its name."""
        program = ("import json, threading, time\n"
                   "names = {}\n"
                   "def burn():\n"
                   "    names[threading.get_native_id()] = threading.current_thread().name\n"
                   "    while time.thread_time() < 0.03: pass\n"
                   "for i in range(40):\n"
                   "    thread = threading.Thread(target=burn, name='job-%d' % i)\n"
                   "    thread.start(); thread.join()\n"
                   "print(json.dumps(names))\n")
        done = probing("record", "-F", "499", "-o", "probing.db", "--", t.DEBIAN_PYTHON, "-c", program, check=t.OK)
        names = {int(tid): name for tid, name in json.loads(done.stdout).items()}
        with contextlib.closing(t.connect("probing.db")) as db:
            found = {tid: name for tid, name in db.execute("SELECT tid, name FROM thread") if tid in names}
        wrong = {tid: name for tid, name in found.items() if name.startswith("job-") and name != names[tid]}
        self.assertEqual({}, wrong, names)
        self.assertGreater(sum(name == names[tid] for tid, name in found.items()), 20)  # of the others no name could be read in time

    def test_no_name_outlives_its_program(self):
        program = ("import os, threading, time\n"
                   "threading.current_thread().name = 'the first program'\n"
                   "while time.process_time() < 0.7: pass\n"
                   "os.execlp('sh', 'sh', '-c', 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done')\n")
        probing("record", "--", t.DEBIAN_PYTHON, "-c", program, check=t.OK)
        with contextlib.closing(t.connect("probing.db")) as db:
            self.assertEqual([("sh",)], db.execute("SELECT name FROM thread").fetchall())

    def test_a_forked_child(self):
        program = ("import os, threading, time\n"
                   "def burn():\n"
                   "    while time.thread_time() < 0.7: pass\n"
                   "pid = os.fork()\n"
                   "thread = threading.Thread(target=burn, name='of the child' if pid == 0 else 'of the parent')\n"
                   "thread.start(); thread.join()\n"
                   "if pid: os.wait()\n")
        probing("record", "--", t.DEBIAN_PYTHON, "-c", program, check=t.OK)
        with contextlib.closing(t.connect("probing.db")) as db:
            names = {name for (name,) in db.execute("SELECT name FROM thread")}
        self.assertLessEqual({"of the child", "of the parent"}, names)


if __name__ == "__main__":
    import unittest

    unittest.main()
