# SPDX-License-Identifier: MIT
"""Names that try to act on the terminal they are shown on: escape sequences, and marks that turn the direction of writing."""
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import unittest

import probing_test as t
from probing_test import probing

SAME_FOR_ALL_USERS = True

# Clear the screen; the title of the window; C1's CSI; DEL; right to left, isolates, marks; a line of its own.
HOSTILE = "a\x1b[2J\x1b]0;b\x07\x9bc\x7fd\u202ee\u2066f\u2069g\u200eh\u200fi\nprobing: j\r"
HAZARDS = [c for c in map(chr, list(range(0x20)) + list(range(0x7f, 0xa0)) + [0x200e, 0x200f] +
                          list(range(0x202a, 0x202f)) + list(range(0x2066, 0x206a))) if c != "\n"]


class HostileNames(t.RecordedCase):
    def setUp(self):
        super().setUp()
        with contextlib.closing(sqlite3.connect("probing.db")) as db:
            for change in ("UPDATE function SET name = ?1 || function, file = ?1", "UPDATE thread SET name = ?1",
                           "UPDATE process SET name = ?1, command = ?1", "UPDATE module SET path = '/' || ?1 || module",
                           "UPDATE run SET command = ?1, host = ?1, kernel = ?1, python = ?1, probing = ?1"):
                db.execute(change, (HOSTILE,))
            db.commit()

    def assertHarmless(self, text, lines=None):
        found = sorted({"U+%04X" % ord(c) for c in text if c in HAZARDS})
        self.assertEqual([], found, text[:400])
        if lines is not None:
            self.assertEqual(lines, text.count("\n"), text)

    def on_a_terminal(self, *arguments):
        """What comes there, but for what the terminal makes of line ends."""
        master, slave = os.openpty()
        try:
            done = subprocess.Popen([t.BINARY] + list(arguments), stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                                    env=dict(os.environ, NO_COLOR="1"))
            os.close(slave)
            raw = b""
            with contextlib.suppress(OSError):
                while piece := os.read(master, 65536):
                    raw += piece
            self.assertIn(done.wait(), (t.OK, t.BAD_DATA, t.NO_INPUT, t.USAGE))
        finally:
            os.close(master)
        return raw.decode().replace("\r\n", "\n").replace("\r\n", "\n")

    def test_text_that_is_for_the_eye(self):
        for verb in (["report", "probing.db"], ["report", "probing.db", "--by", "thread"], ["info", "probing.db"],
                     ["annotate", "probing.db"], ["tables", "probing.db"]):
            with self.subTest(verb):
                done = probing(*verb)
                if done.returncode == t.USAGE:
                    continue  # no such option
                self.assertHarmless(done.stdout + done.stderr)

    def test_sql(self):
        sql = "SELECT name, file FROM function LIMIT 3"
        for name in ("table", "box", "markdown"):
            with self.subTest(name):
                done = probing("sql", "probing.db", sql, "-f", name, check=t.OK)
                self.assertHarmless(done.stdout)
                self.assertIn("a\\x1b[2J\\x1b]0;b", done.stdout.replace("\\\\", "\\").replace("\\[", "[").replace("\\]", "]"))

    def test_csv_is_exact_for_programs_and_harmless_on_a_terminal(self):
        sql = "SELECT host FROM run"
        self.assertEqual('host\r\n"%s"\r\n' % HOSTILE, subprocess.run(
            [t.BINARY, "sql", "probing.db", sql, "-f", "csv"], stdout=subprocess.PIPE, check=True).stdout.decode())
        shown = self.on_a_terminal("sql", "probing.db", sql, "-f", "csv")
        self.assertHarmless(shown, 2)
        self.assertIn(r"a\x1b[2J\x1b]0;b\x07\x9bc\x7fd\u202ee\u2066f\u2069g\u200eh\u200fi\nprobing: j\r", shown)

    def test_json_is_exact(self):
        rows = json.loads(probing("sql", "probing.db", "SELECT host FROM run", "-f", "json", check=t.OK).stdout)
        self.assertEqual([{"host": HOSTILE}], rows)
        self.assertEqual(HOSTILE, json.loads(probing("info", "--json", "probing.db", check=t.OK).stdout)[0]["runs"][0]["host"])

    def test_messages(self):
        lost = "lost" + HOSTILE.replace("/", "")
        for arguments, status in ((["info", lost], t.NO_INPUT), (["report", lost], t.NO_INPUT), (["report", "probing.db", lost], t.USAGE),
                                  (["compact", "probing.db", lost], t.USAGE), ([lost], t.USAGE),
                                  (["record", "-o", "x.db", "--", "./" + lost], t.NOT_FOUND),
                                  (["backtrace", lost], t.USAGE), (["export", "probing.db", "--to", lost], t.USAGE)):
            with self.subTest(arguments):
                done = probing(*arguments)
                self.assertEqual(status, done.returncode, done.stderr)
                self.assertHarmless(done.stderr)
                if status != t.USAGE:
                    self.assertSentence(done.stderr, r"a\\x1b\[2J")
                self.assertIn("\\x1b", done.stderr)

    def test_a_mistake_in_sql(self):
        done = probing("sql", "probing.db", 'SELECT "%s" FROM run' % HOSTILE.replace('"', ""))
        self.assertHarmless(done.stderr + done.stdout.replace("\n", ""))
        shown = self.on_a_terminal("sql", "probing.db", "SELECT [x\x1b[2J\u202ey] FROM run")
        self.assertHarmless(shown)
        self.assertGreater(shown.count("\n"), 1)  # the place and a caret have lines of their own

    def test_a_live_process(self):
        script = "\u202ex\x1b[2Jy.py"
        with open(script, "w") as out:
            out.write("import time\nopen('/proc/self/comm', 'w').write('c\\x1b[1m\\u202e')\nprint('ready {}', flush=True)\ntime.sleep(60)\n")
        with t.target([t.DEBIAN_PYTHON, script]) as target:
            for verb in (["backtrace", str(target.pid)], ["doctor", str(target.pid)],
                         ["record", "-d", "0.2", "-o", "x.db", "--pid", str(target.pid)], ["backtrace", str(target.pid), "--locals"]):
                with self.subTest(verb):
                    done = probing(*verb)
                    self.assertHarmless(done.stdout + done.stderr)
            text = json.loads(probing("backtrace", "--json", target.pid, check=t.OK).stdout)
        self.assertIn(script, text["command"])
        self.assertEqual("c\x1b[1m\u202e", text["threads"][0]["name"])


if __name__ == "__main__":
    sys.exit(unittest.main())
