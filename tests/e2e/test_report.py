"""probing report: the top functions as text."""
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import unittest

import probing_test as t
from probing_test import probing


def on_terminal(command, columns):
    """What a command shows on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
                               env=dict(os.environ, NO_COLOR="1", COLUMNS=""))
    os.close(theirs)
    shown = b""
    while True:
        try:
            text = os.read(ours, 4096)
        except OSError:  # the other side is gone
            break
        if not text:
            break
        shown += text
    os.close(ours)
    process.stderr.close()
    if process.wait() != 0:
        raise AssertionError("exit status %d" % process.returncode)
    return shown.decode("utf-8").replace("\r", "")


def shares(line):
    """(self %, total %) of a function's line; None for other lines."""
    match = re.match(r" *(\d+\.\d) +(?:0|\S+ \S+) +(\d+\.\d) ", line)
    return tuple(map(float, match.groups())) if match else None


class Report(t.Case):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with t.fixture("demo.py") as target:
            cls.recording = t.record(target.pid, 2, 499)

    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(self.folder, "probing.db"), "probing.db")

    def test_top_function_leads(self):
        text = probing("report", check=t.OK).stdout
        self.assertIn("edit_distance", text)
        self.assertIn("demo.py", text)

    def test_totals_never_exceed_the_whole(self):
        text = probing("report", "probing.db", check=t.OK).stdout
        lines = [shares(line) for line in text.splitlines() if shares(line)]
        self.assertGreaterEqual(len(lines), 10)
        for own, total in lines:
            self.assertLessEqual(own, total)
            self.assertLessEqual(total, 100.0)
        self.assertLessEqual(sum(own for own, _ in lines), 100.5)

    def test_recursion_counts_once(self):
        with t.fixture("deep.py", "--depth", 50) as target:
            t.record(target.pid, 1, 199, "deep.db")
        text = probing("report", "deep.db", "-n", 1000, check=t.OK).stdout
        line = next(line for line in text.splitlines() if "descend" in line)
        self.assertLessEqual(shares(line)[1], 100.0)

    def test_fits_the_terminal(self):
        for columns in (60, 80, 132):
            with self.subTest(columns):
                text = on_terminal([t.BINARY, "report", "probing.db"], columns)
                self.assertLessEqual(max(map(len, text.splitlines())), columns)
                self.assertIn("edit_dist", text)

    def test_no_colour_in_a_pipe(self):
        self.assertNotIn("\x1b", probing("report", "probing.db", check=t.OK).stdout)

    def test_no_such_recording(self):
        self.assertSentence(probing("report", "missing.db", check=t.NO_INPUT).stderr, "missing.db")

    def test_output_that_fails(self):
        with open("/dev/full", "w") as full:
            said = subprocess.run([t.BINARY, "report", "probing.db"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(t.IO, said.returncode)


if __name__ == "__main__":
    sys.exit(unittest.main())
