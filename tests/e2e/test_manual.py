# SPDX-License-Identifier: MIT
"""Manual pages as mandoc reads them, and completion as bash, zsh and fish do it."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import probing_test as p
import terminal

SAME_FOR_ALL_USERS = True

BASH = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
compopt() { :; }
_probing
printf '%s\\n' "${COMPREPLY[@]}"
"""


def environment():
    return dict(os.environ, PATH=os.path.dirname(p.BINARY) + ":" + os.environ["PATH"], TERM="xterm")


def run(*command, folder=None):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=3 * p.HANG_S,
                          env=environment(), cwd=folder)
    if done.returncode != 0:
        raise AssertionError("%s: %s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout


def verbs():
    return [line.split("\t")[0] for line in run(p.BINARY, "help", "--words", "verbs").splitlines()]


def need(program):
    if not shutil.which(program):
        raise unittest.SkipTest("no " + program)


class Manual(unittest.TestCase):
    def test_pages_have_no_mistakes(self):
        need("mandoc")
        for verb in [None, "schema", "format"] + verbs():
            page = run(p.BINARY, "help", "--man", *([verb] if verb else []))
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=page, stdout=subprocess.PIPE, text=True, check=False)
            found = [line for line in done.stdout.splitlines() if "missing date" not in line]
            self.assertEqual([], found, verb)

    def test_pages_have_each_option_of_the_help(self):
        need("mandoc")
        for verb in verbs():
            page = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=1000"], input=run(p.BINARY, "help", "--man", verb),
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
            page = re.sub(r".\x08", "", page)
            options = re.findall(r"^ {2,6}(?:-\w, )*(--[a-z-]+)", run(p.BINARY, verb, "--help"), re.M)
            self.assertTrue(options)
            for option in options:
                self.assertRegex(page, r"(?m)^ +(-\w, )*(--[a-z-]+, )*%s\b" % option, verb)

    def test_the_page_of_cluster_has_its_verbs(self):
        page = run(p.BINARY, "help", "--man", "cluster")
        for line in run(p.BINARY, "help", "--words", "cluster-verbs").splitlines():
            verb = line.split("\t")[0]
            section = page.split('.SH "cluster %s"\n' % verb)[1].split(".SH")[0]
            for option in re.findall(r"^ {2,6}(?:-\w, )*(--[a-z-]+)", run(p.BINARY, "cluster", verb, "--help"), re.M):
                self.assertIn("\\fB%s\\fR" % option.replace("-", "\\-"), section)

    def test_pages_of_tables_and_file_format(self):
        """Each table that probing tables lists, with each column; and the version that a recording has."""
        schema, file_format = run(p.BINARY, "help", "--man", "schema"), run(p.BINARY, "help", "--man", "format")
        tables = [line.split("\t")[0] for line in run(p.BINARY, "help", "--words", "tables").splitlines()]
        self.assertGreater(len(tables), 50)
        for table in tables:
            name = table if "." in table else "main." + table
            section = schema.split('.SH "%s"\n' % name)[1].split(".SH")[0]
            self.assertIn(".TP\n", section, name)
        self.assertIn("\\fBtimestamp\\fR  REAL (seconds since 1970)", schema)
        for text in (".TH PROBING\\-FORMAT 5", "0x50726f62", ".B sample_block\n", ".B stack\n"):
            self.assertIn(text, file_format)
        self.assertNotIn(".B hot_function\n", file_format)  # a view

    def test_unknown_verbs_and_shells(self):
        self.assertIn("did you mean record", self.refused("help", "--man", "recrod"))
        self.assertIn("bash, zsh or fish", self.refused("help", "--completion", "tcsh"))
        self.assertIn("no words of the kind stones", self.refused("help", "--words", "stones"))

    def test_mistyped_options(self):
        said = self.refused("record", "--durration", "5")
        self.assertIn("there is no option --durration; did you mean --duration?", said)
        self.assertIn("did you mean --quiet?", self.refused("compact", "--qiuet"))

    def refused(self, *arguments):
        done = subprocess.run([p.BINARY] + list(arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        self.assertNotEqual(0, done.returncode)
        return done.stderr


class Completes:
    """What a shell offers for a command line whose last word is begun. Subclasses have shell and offered()."""
    def setUp(self):
        need(self.shell)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.script = os.path.join(self.folder, "_probing")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(run(p.BINARY, "help", "--completion", self.shell))

    def test_verbs(self):
        self.assertEqual({"record", "report", "repl"}, self.offered("probing", "re"))
        self.assertEqual({"backtrace"}, self.offered("probing", "help", "ba"))
        self.assertEqual({"filters"}, self.offered("probing", "help", "fi"))
        self.assertEqual({"record", "report"}, self.offered("probing", "cluster", "re"))

    def test_options(self):
        self.assertEqual({"--paused", "--pid"}, self.offered("probing", "record", "--p"))
        self.assertEqual({"--locals"}, self.offered("probing", "bt", "--lo"))

    def test_formats_and_events(self):
        self.assertEqual({"speedscope", "sqlite", "svg"}, self.offered("probing", "export", "--to", "s"))
        self.assertEqual({"page-faults"}, self.offered("probing", "record", "-e", "page-fa"))

    def test_functions_and_tables(self):
        self.assertEqual({"sample_function"}, self.offered("probing", "tables", "sample_fu"))
        with open(os.path.join(self.folder, "a.folded"), "w", encoding="utf-8") as file:
            file.write("main;work_hard;work_on 3\n")
        run(p.BINARY, "import", "a.folded", "-o", "probing.db", folder=self.folder)
        os.environ["PROBING_DATA_DIR"] = self.folder
        self.addCleanup(os.environ.pop, "PROBING_DATA_DIR")
        self.assertEqual({"work_hard", "work_on"}, self.offered("probing", "report", "--function", "work"))

    def test_processes(self):
        with p.target([p.DEBIAN_PYTHON, "-c", "import time; print('ready {}', flush=True); time.sleep(60)"]) as target:
            pid = str(target.pid)
            self.assertIn(pid, self.offered("probing", "backtrace", pid[:-1]))
            self.assertIn(pid, self.offered("probing", "record", "--pid", pid[:-1]))


class CompletesInBash(Completes, unittest.TestCase):
    shell = "bash"

    def offered(self, *words):
        done = run("bash", "--norc", "-c", BASH, "bash", self.script, *words, folder=self.folder)
        return {word.rstrip("=") for word in done.splitlines()}

    def test_value_after_an_equals_sign(self):
        self.assertEqual({"svg"}, self.offered("probing", "export", "--to", "=", "sv"))

    def test_names_are_not_run(self):
        name = "open('/proc/self/comm', 'w').write('$(>pwned) a')"
        with p.target([p.DEBIAN_PYTHON, "-c", "import time; %s; print('ready {}', flush=True); time.sleep(60)" % name]):
            self.assertIn("\\$\\(\\>pwned\\)\\ a", self.offered("probing", "record", "--comm", ""))
        self.assertEqual(["_probing"], os.listdir(self.folder))

    def test_files_with_spaces(self):
        open(os.path.join(self.folder, "a b.db"), "w", encoding="utf-8").close()
        self.assertEqual({"a b.db"}, self.offered("probing", "merge", "a"))

    def test_command(self):
        self.assertIn("printf", self.offered("probing", "record", "--", "print"))


class CompletesInZsh(Completes, unittest.TestCase):
    """In a terminal, where alone zsh completes; Ctrl-X lists what fits."""
    shell = "zsh"

    def offered(self, *words):
        typed = " ".join(words)
        with terminal.Terminal(["zsh", "-f", "-i"], rows=100, columns=200, environment=environment()) as zsh:
            zsh.press("PS1='> '; fpath=(%s $fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=1000\r" % self.folder)
            zsh.press("bindkey '^X' list-choices; clear; print rea''dy\r")
            zsh.wait_for("ready")
            zsh.wait_for(lambda lines: ">" in lines)  # its editor has the terminal: the kernel shows no typed character by itself
            zsh.press(typed, "\x18")

            def found(lines):
                rest = lines[lines.index("> " + typed) + 1:] if "> " + typed in lines else []
                one = "%s\\S*" % re.escape(words[-1])  # words of one description share its line
                return {word for line in rest for word in re.findall(r"(?:^|\s)(%s)(?=(?:\s+%s)*\s+-- )" % (one, one), line)}

            def is_whole(lines):
                """It is written from above to below, and then the cursor goes back behind what was typed."""
                cursor = zsh.screen.cursor
                return found(lines) and lines[cursor.y] == "> " + typed and cursor.x == len("> " + typed)
            return found(zsh.wait_for(is_whole))


class CompletesInFish(Completes, unittest.TestCase):
    shell = "fish"

    def offered(self, *words):
        found = run("fish", "--no-config", "-c", "source %s; complete -C '%s'" % (self.script, " ".join(words)))
        return {line.split("\t")[0] for line in found.splitlines()}


if __name__ == "__main__":
    unittest.main()
