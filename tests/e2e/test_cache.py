# SPDX-License-Identifier: MIT
"""The cache of names: a second look says the same, who may use it, and that a recorder's reader is given it to read."""
import glob
import os
import stat

import probing_test as t
from probing_test import fixture, probing, recorder


def environment(**more):
    """With a cache of the test's own, in the current folder."""
    return dict(os.environ, XDG_CACHE_HOME=os.getcwd(), PROBING_CACHE="", **more)


def cached():
    return sorted(glob.glob("probing/names/*"))


def frames(text):
    """Without what changes between two looks: how a thread waits."""
    return [line for line in text.splitlines() if line.startswith("  ")]


def state_in(path):
    with open(path) as stat:
        return stat.read().rpartition(")")[2].split()[0]


class Looks(t.Case):
    def setUp(self):
        """Nothing is sampled here: the right to perf_event_open does not matter."""
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def look(self, pid, *options, **more):
        """Once all threads stand where they stay; after the look before, they wake up for a moment."""
        tasks = glob.glob("/proc/%d/task/*/stat" % pid)
        t.wait_until(lambda: {state_in(path) for path in tasks} == {"S"}, what="all threads to sleep")
        return frames(probing("backtrace", pid, *options, check=t.OK, env=environment(**more)).stdout)

    def test_second_look(self):
        with fixture("parked.py") as target:
            without = self.look(target.pid, "--no-cache")
            self.assertEqual([], cached())
            first = self.look(target.pid)
            self.assertNotEqual([], cached())
            written = [os.stat(path) for path in cached()]
            second = self.look(target.pid)
            self.assertEqual(without, first)
            self.assertEqual(without, second)
            self.assertEqual([s.st_ino for s in written], [os.stat(path).st_ino for path in cached()], "nothing was found out anew")
            for path in ["probing", "probing/names"]:
                self.assertEqual(0o700, stat.S_IMODE(os.stat(path).st_mode))
            for entry in written:
                self.assertEqual(0o600, stat.S_IMODE(entry.st_mode))
                self.assertEqual(os.geteuid(), entry.st_uid)

    def test_python_alone_needs_no_symbols(self):
        """So that it takes the same time with and without a cache."""
        with fixture("parked.py") as target:
            self.assertTrue(self.look(target.pid, "--no-native"))
            self.assertEqual([], cached())

    def test_switched_off(self):
        with fixture("parked.py") as target:
            self.assertTrue(frames(probing("backtrace", target.pid, check=t.OK,
                                           env=dict(environment(), PROBING_CACHE="0")).stdout))
            self.assertFalse(os.path.exists("probing"))

    def test_damaged(self):
        with fixture("parked.py") as target:
            first = self.look(target.pid)
            for path in cached():
                with open(path, "r+b") as file:
                    file.seek(os.path.getsize(path) // 2)
                    file.write(b"\xff" * 100)
            damaged = [os.stat(path).st_ino for path in cached()]
            self.assertEqual(first, self.look(target.pid))
            self.assertNotEqual(damaged, [os.stat(path).st_ino for path in cached()], "written anew")

    def test_folder_that_others_may_write_to(self):
        with fixture("parked.py") as target:
            os.mkdir("probing")
            os.chmod("probing", 0o777)
            self.assertTrue(self.look(target.pid))
            self.assertEqual([], os.listdir("probing"))


class Recorder(t.Case):
    def reader_maps(self, recorder_pid):
        text = ""
        for keeper in t.children_of(recorder_pid):
            for reader in t.children_of(keeper):
                try:
                    with open("/proc/%d/maps" % reader) as maps:
                        text += maps.read()
                except OSError:  # it ends, or may not be looked at: it gave its privileges up
                    pass
        return text

    def test_reader_is_given_files_to_read(self):
        if os.geteuid() != 0:
            self.skipTest("an ordinary user may not look at the process that reads names")
        with t.scratch(), fixture("threads.py", "--busy", 1) as target:
            probing("backtrace", target.pid, check=t.OK, env=environment())
            before = {path: os.stat(path).st_mtime_ns for path in cached()}
            with recorder("--pid", target.pid, "-F", 499, "-o", "out.db", env=environment()) as process:
                t.wait_until(lambda: "/probing/names/" in self.reader_maps(process.pid), what="the reader to map a cached file")
            self.assertEqual(before, {path: os.stat(path).st_mtime_ns for path in cached()}, "a recorder writes none")
