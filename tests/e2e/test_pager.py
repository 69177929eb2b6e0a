# SPDX-License-Identifier: MIT
"""Colours, width and pager of what people read, on a terminal and elsewhere."""
import os
import re
import shutil
import unittest

import probing_test as t
from probing_test import probing
from terminal import Terminal

SAME_FOR_ALL_USERS = True

COLOUR = "\x1b["
ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT 'row ' || i AS x FROM n"

WISHES = ("NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "PAGER", "PROBING_PAGER", "LESS", "ARGP_HELP_FMT")


def clean(**more):
    """The environment of a user without wishes of their own."""
    return dict({name: value for name, value in os.environ.items() if name not in WISHES}, **more)


class Elsewhere(t.Case):
    """In a pipe."""

    def setUp(self):
        super().setUp()
        with open("pager", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\ntouch paged\ncat\n")
        os.chmod("pager", 0o755)

    def doctor(self, *options, **more):
        said = probing(*options, env=clean(TERM="xterm", PROBING_PAGER="./pager", **more))
        self.assertFalse(os.path.exists("paged"))
        return COLOUR in said.stdout

    def test_colours(self):
        self.assertFalse(self.doctor("doctor"))
        self.assertTrue(self.doctor("doctor", "--color=always"))
        self.assertTrue(self.doctor("doctor", "--colour", "always"))
        self.assertTrue(self.doctor("--color=always", "doctor"))
        self.assertTrue(self.doctor("--no-pager", "--color", "always", "doctor", NO_COLOR="1"))
        self.assertTrue(self.doctor("doctor", CLICOLOR_FORCE="1"))
        self.assertFalse(self.doctor("doctor", CLICOLOR_FORCE="0"))
        self.assertFalse(self.doctor("doctor", CLICOLOR_FORCE="1", NO_COLOR="1"))
        self.assertFalse(self.doctor("doctor", "--color=never", CLICOLOR_FORCE="1"))

    def test_other_words_are_refused(self):
        for words in (["doctor", "--color=green"], ["--color=green", "doctor"]):
            said = probing(*words, check=t.USAGE)
            self.assertIn("auto, always or never, not green", said.stderr)

    def test_a_wide_screen_has_wide_help_and_a_narrow_one_keeps_examples_whole(self):
        usual = probing("report", "--help", env=clean(), check=t.OK).stdout
        wide = probing("report", "--help", env=clean(COLUMNS="200"), check=t.OK).stdout
        self.assertLess(len(wide.splitlines()), len(usual.splitlines()))
        self.assertEqual(usual, probing("report", "--help", env=clean(COLUMNS="30"), check=t.OK).stdout)

    def test_filters_are_explained_once(self):
        explained = probing("help", "filters", check=t.OK).stdout
        names = re.findall(r"(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)", explained)
        self.assertGreater(len(names), 15)
        for verb in ("report", "flamegraph", "annotate", "export", "diff", "check"):
            text = re.sub(r"\s+", " ", probing(verb, "--help", check=t.OK).stdout)
            listed, _, rest = text.partition("Filters: ")[2].partition("; probing help filters explains them.")
            self.assertTrue(rest or text.endswith("; probing help filters explains them. "), verb)
            self.assertEqual(sorted(names), sorted(listed.split(", ")), verb)
            for name in names:
                self.assertNotRegex(text.partition("Filters: ")[0], r"%s=(TIME|LIST) Only" % name, verb)


class OnTerminal(t.Case):
    def setUp(self):
        super().setUp()
        with open("a.folded", "w", encoding="utf-8") as file:
            file.write("main;work 3\n")
        probing("import", "a.folded", "-o", "a.db", check=t.OK)
        # It shows all that it gets, and ends at a line from the terminal.
        self.pager('echo "LESS is $LESS."; sed s/^/P:/; read -r word < /dev/tty; echo went on')

    def pager(self, script):
        with open("pager", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script + "\n")
        os.chmod("pager", 0o755)

    def shown(self, *words, press=(), rows=60, **more):
        """What the screen has at the end. @press: pairs of what to wait for, and what to type then."""
        command = ["env"] + ["--unset=" + name for name in WISHES]
        command += ["PROBING_PAGER=./pager"] + ["%s=%s" % wish for wish in more.items()]
        command += ["sh", "-c", 'trap : INT; "$@"; echo "status $?"', "sh", t.BINARY]
        with Terminal(command + list(words), rows=rows, columns=100) as terminal:
            for wait, keys in press:
                terminal.wait_for(wait)
                terminal.press(keys)
            terminal.wait_for("status ")
            terminal.wait()
            self.assertTrue(terminal.has_old_modes())
            return "\n".join(line for line in terminal.lines() if line)

    def test_it_is_waited_for_and_has_all(self):
        text = self.shown("doctor", "--help", press=[("P:Usage: probing doctor", "x\n")])
        self.assertIn("LESS is FRX.", text)
        self.assertRegex(text, r"went on\s+status 0")

    def test_verbs_that_print_for_people_have_it(self):
        pid = str(os.getpid())
        for words in (["timeline", "a.db"], ["memory", pid], ["cluster", "nodes", "--pid", pid],
                      ["cluster", "query", "--pid", pid, "SELECT 'a row' AS x"], ["cluster", "backtrace", "--pid", pid],
                      ["cluster", "report", "--help"]):
            with self.subTest(words=words):
                self.assertIn("went on", self.shown(*words, press=[("P:", "x\n")]))
                self.assertNotIn("P:", self.shown("--no-pager", *words))

    def test_requests_have_none(self):
        text = self.shown("timeline", "a.db", "--requests", press=[("", "pixels=x\n\x04")])
        self.assertRegex(text, r"bad 64 .*pixels")
        self.assertNotIn("P:", text)

    def test_not_where_it_is_not_wanted(self):
        for words, more in ((["--no-pager", "doctor", "--help"], {}), (["doctor", "--no-pager", "--help"], {}),
                            (["doctor", "--help"], {"PROBING_PAGER": ""}), (["doctor", "--help"], {"PROBING_PAGER": "cat"}),
                            (["doctor", "--help"], {"TERM": "dumb"}),
                            (["doctor", "--help"], {"PROBING_PAGER": "there-is-no-such-pager -x"})):
            with self.subTest(words=words, more=more):
                text = self.shown(*words, **more)
                self.assertNotIn("P:", text)
                self.assertIn("Usage: probing doctor", text)
                self.assertIn("status 0", text)

    def test_who_quits_early_made_no_mistake(self):
        self.pager("read -r line; echo ready; read -r word < /dev/tty")
        text = self.shown("sql", "a.db", ROWS % 1000000, press=[("ready", "x\n")])
        self.assertEqual("status 0", text.splitlines()[-1])

    def test_ctrl_c_leaves_the_terminal_to_it(self):
        self.pager("trap 'echo interrupted' INT; read -r line; echo ready\n"
                   "while ! read -r word < /dev/tty; do :; done; echo \"read $word.\"")
        text = self.shown("sql", "a.db", ROWS % 1000000, press=[("ready", "\x03"), ("interrupted", "x\n")])
        self.assertRegex(text, r"read x\.\s+status 130")

    @unittest.skipUnless(shutil.which("less"), "less is not installed")
    def test_less(self):
        short = self.shown("sql", "a.db", "SELECT 'short' AS x", PROBING_PAGER="less")
        self.assertRegex(short, r"short\s+status 0")
        text = self.shown("sql", "a.db", ROWS % 100000, PROBING_PAGER="less", press=[("row 20", "q")])
        self.assertRegex(text, r"row 20\s[^$]*status 0")


if __name__ == "__main__":
    unittest.main()
