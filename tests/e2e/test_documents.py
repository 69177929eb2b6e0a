# SPDX-License-Identifier: MIT
"""Every command of README.md and docs/ runs as a reader would paste it: block after block, in one shell for each document.

A block of ```sh is run, one of ```sql is a query of train.db. A comment on the line before a block changes that:

    <!-- not run: REASON -->        counts as a skip with that reason
    <!-- exit status: N -->         the command that ends with N is right
    <!-- output has: A, B -->       the block prints each of these
    <!-- query: FILE -->            the recording, or the PID, of a block of SQL

README.md and the tutorial find what a fresh clone has, and no more. Other documents find what they take for granted:
recordings, the programs of document_files/, and the process 4242 with its thread 4250 (see prepared()). Long durations are made
short, and a command that would go on until Ctrl-C gets it a second after it has begun to listen to that.
"""
import contextlib
import getpass
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

import probing_test as t
from probing_test import probing
from test_agent import LIBRARY

TOGETHER = True  # by prepared()
TIMEOUT_S = 400  # for one document; a second or two on a quiet machine
IN_CLONE = ("README.md", "docs/tutorial.md")  # whose reader has a clone and nothing else

BLOCK = re.compile(r"(?:^ *<!-- (?P<key>[a-z ]+): (?P<value>[^\n]*?) -->\n)?^(?P<indent> *)```(?P<language>sh|sql)\n"
                   r"(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
KEYS = (None, "not run", "exit status", "output has", "query")

SLEEP = "import time; time.sleep(600)"
READERS_FILES = os.path.join(t.HERE, "document_files")  # programs that documents take for granted

# What stands in for the installed program: Ctrl-C for what would go on without an end, as a reader gives it.
INSTALLED = """#!/bin/sh
case " $* " in
*" --once "*) exec {binary} "$@" ;;
*" --batch "* | *" -b "*) exec {python} {interrupted} {binary} "$@" ;;
*" top "*) exec {python} {terminal} {binary} "$@" ;;
*" -- "* | *" --help "* | *" -d "* | *" --duration "* | *" list "*) exec {binary} "$@" ;;
*" record "* | *" serve "*) exec {python} {interrupted} {binary} "$@" ;;
*) exec timeout 60 {binary} "$@" ;;
esac
"""

# begun() waits for a program's function main. Each failing command is one line on descriptor 9: the document's line, the status, the command.
PRELUDE = ("begun() { until probing backtrace $1 --no-native 2>/dev/null | grep -q '^ *main  ('; do sleep 0.1; done; }; "
           "EXPECTED=0 MET=0; set -E; trap 'S=$?; if [ $S = $EXPECTED ]; then MET=1; else echo \"$LINENO $S $BASH_COMMAND\" >&9; fi' ERR;"
           " trap 'trap - ERR; kill $(jobs -p) 2>/dev/null || :' EXIT; ")


def documents():
    """Paths from the project's folder, as far as they are here: an ordinary user's copy has some of them."""
    return [os.path.relpath(path, t.ROOT) for path in
            [os.path.join(t.ROOT, "README.md")] + sorted(glob.glob(os.path.join(t.ROOT, "docs", "**", "*.md"), recursive=True))
            if os.path.exists(path)]


def read(document):
    with open(os.path.join(t.ROOT, document), encoding="utf-8") as file:
        return file.read()


def anchors_of(text):
    """Names of a document's headings, as GitHub makes them; a repeated one has a number."""
    found = {}
    for heading in re.findall(r"(?m)^#{1,6} +(.*?) *$", re.sub(r"(?ms)^ *```.*?^ *```$", "", text)):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        earlier = found.setdefault(name, [])
        earlier.append("%s-%d" % (name, len(earlier)) if earlier else name)
    return {anchor for names in found.values() for anchor in names}


class Block:
    def __init__(self, document, text, found):
        self.document = document
        self.line = text.count("\n", 0, found.start("indent")) + 1  # of its first fence
        self.language = found.group("language")
        self.text = textwrap.dedent(found.group("text"))
        self.key, self.value = found.group("key"), found.group("value")

    @property
    def reason(self):
        return self.value if self.key == "not run" else None


def blocks_of(document):
    with open(os.path.join(t.ROOT, document), encoding="utf-8") as file:
        text = file.read()
    return [Block(document, text, found) for found in BLOCK.finditer(text)]


def shortened(text):
    """Durations of a second, where a reader waits for longer; four runs instead of ten. What runs in the background stays. Where a reader's
    program has begun before the next line is typed, the script waits for that."""
    def line(one):
        if one.rstrip().endswith("&"):
            return one.replace("train.py &", "train.py 600 &")
        one = re.sub(r"^sleep 1$", "begun $!; sleep 1", one)
        one = re.sub(r"^(python3 fixtures/demo\.py .*& PID=\$!)", r"\1; begun $!", one)
        one = re.sub(r"probing bench (?!.*-n )", "probing bench -n 4 ", one)
        return re.sub(r"(-d|--duration|--seconds) (?:[2-9]|\d\d+|\dm)(?:\.\d+)?[sm]?(?![\d.])", r"\1 1", one)
    return "\n".join(map(line, text.split("\n")))


def script_of(blocks, processes):
    """A script whose line N is the document's line N. @processes: what stands for PIDs of the text."""
    lines = [PRELUDE]

    def put(number, line):
        lines.extend([""] * (number - len(lines)))
        lines[number - 1] += line
    for block in blocks:
        text = shortened(block.text)
        for stands, real in processes.items():
            text = re.sub(r"\b%s\b" % stands, str(real), text)
        first, last = block.line, block.line + block.text.count("\n") + 1
        begin, end = "echo '=== line %d'; " % block.line, "echo '=== end'; "
        if block.key == "exit status":
            begin += "EXPECTED=%s MET=0; " % block.value
            end += "[ $MET = 1 ] || echo '%d 0 not one exit status is %s' >&9; EXPECTED=0; " % (block.line, block.value)
        if block.language == "sql":
            source = block.value if block.key == "query" else "train.db"
            begin += "probing sql %s -f csv <<'END_OF_BLOCK'" % source
            put(last, "END_OF_BLOCK")
            last += 1
        put(first, begin)
        for at, one in enumerate(text.rstrip("\n").split("\n")):
            put(first + 1 + at, one)
        put(last, end)
    return "\n".join(lines) + "\n"


@t.shared
def prepared(folder):
    """What documents take for granted, in a folder that each gets a copy of."""
    def path(name):
        return os.path.join(folder, name)
    shutil.copytree(READERS_FILES, folder, dirs_exist_ok=True)
    for name in ("demo.py", "fixture.py"):
        shutil.copy(os.path.join(t.FIXTURES, name), folder)
    with open(os.path.join(t.ROOT, "docs", "rings.md"), encoding="utf-8") as file, open(path("probes.yaml"), "w") as probes:
        probes.write(re.search(r"```yaml\n(.*?)```", file.read(), re.S).group(1))
    with tempfile.TemporaryDirectory() as home:
        installed(home)
        done = probing("record", "--mode", "wall", "--tasks", "-F", 199, "-o", "train.db", "--", t.DEBIAN_PYTHON, "train.py", "2",
                       cwd=folder, env=reader_environment(home, PROBING="1"), check=t.OK)
    counted = probing("sql", path("train.db"), "SELECT count(*) FROM sample", "-f", "csv", "--no-header", check=t.OK).stdout
    if int(counted) < 20:
        raise AssertionError("train.db has %s samples; record said: %s" % (counted.strip(), done.stderr))
    with contextlib.suppress(FileNotFoundError):  # so busy that it took not ten steps
        os.unlink(path("train.running"))
    for name in ("probing.db", "run.db", "rank0.db", "rank1.db"):
        shutil.copy(path("train.db"), path(name))
    return folder


def installed(folder):
    """Programs and the Python package, as an installation for one user has them."""
    os.mkdir(os.path.join(folder, "programs"))
    with open(os.path.join(folder, "programs", "probing"), "w") as file:
        file.write(INSTALLED.format(binary=t.BINARY, python=t.DEBIAN_PYTHON, terminal=os.path.join(READERS_FILES, "on_terminal.py"),
                                    interrupted=os.path.join(READERS_FILES, "interrupted.py")))
    os.chmod(file.name, 0o755)
    for name in ("python", "python3"):
        os.symlink(t.DEBIAN_PYTHON, os.path.join(folder, "programs", name))
    site = os.path.join(folder, "lib", "python" + t.version_of(t.DEBIAN_PYTHON), "site-packages")
    os.makedirs(site)
    os.symlink(os.path.join(t.ROOT, "python", "probing"), os.path.join(site, "probing"))
    for name in ("probing.pth", "probing.start"):
        shutil.copy(os.path.join(t.ROOT, "python", name), site)


def reader_environment(folder, **more):
    """Of a reader's shell. @folder: the home, with what is installed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PROBING")}
    environment.update(PYTHONDONTWRITEBYTECODE="1", PYTHONUSERBASE=folder, PROBING_AGENT=LIBRARY, PROBING_BINARY=t.BINARY,
                       PROBING_FIXTURES=t.BUILT_FIXTURES, TERM="dumb", HOME=folder, USER=getpass.getuser(), **more)
    environment["PATH"] = os.path.join(folder, "programs") + os.pathsep + environment["PATH"]
    return environment


class Document(t.Case):
    document = None

    def setUp(self):
        super().setUp()
        installed(".")
        self.environment = reader_environment(os.getcwd())

    def processes(self):
        """The reader's program runs already, with the agent in it."""
        started, second, third = [subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL) for command in (
            [t.BINARY, "run", "python3", "train.py", "600"], ["python3", "-c", SLEEP], ["python3", "-c", SLEEP])]
        for process in started, second, third:
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        t.wait_until(lambda: os.path.exists("train.running"), what="the first steps of train.py")
        threads = [int(task) for task in os.listdir("/proc/%d/task" % started.pid) if int(task) != started.pid]
        return {4242: started.pid, 4243: second.pid, 4244: third.pid, 4250: threads[0]}

    def test_commands(self):
        blocks = [block for block in blocks_of(self.document) if not block.reason]
        if not blocks:
            self.skipTest("no block to run")
        for folder in (".config/fish/completions", "debug", "here/image"):
            os.makedirs(folder)
        os.chdir("here")
        processes = {}
        if self.document in IN_CLONE:
            for name in ("fixtures", "examples"):
                shutil.copytree(os.path.join(t.ROOT, name), name, ignore=shutil.ignore_patterns("images", "nvml*", "stacks", "traces"))
        else:
            shutil.copytree(prepared(), ".", dirs_exist_ok=True)
            if any(re.search(r"\b42(4[2-4]|50)\b", block.text) or block.value == "4242" for block in blocks):
                processes = self.processes()
        self.assertCommands(script_of(blocks, processes))

    def assertCommands(self, script):
        checked = subprocess.run(["bash", "-n"], input=script, stderr=subprocess.PIPE, text=True)
        self.assertEqual("", checked.stderr, "%s is no shell script" % self.document)
        with open("../script", "w") as file:
            file.write(script)
        with open("../failed", "w+") as failed, open("../said", "w+") as said:
            shell = subprocess.Popen(["bash", "-c", "exec 9>../failed; exec bash ../script"], env=self.environment, start_new_session=True,
                                     stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
            try:
                shell.wait(TIMEOUT_S)
            finally:
                with contextlib.suppress(ProcessLookupError):  # what runs in the background
                    os.killpg(shell.pid, signal.SIGKILL)
                shell.wait()
            said.seek(0)
            output = said.read()
            failures = failed.read()
        self.assertEqual("", failures, "%s: commands (line, exit status, command) failed; they said:\n%s" % (
            self.document, self.output_of(failures, output)))
        self.assertOutput(output)

    def assertOutput(self, output):
        """Each block came to its end, and printed what the document shows."""
        printed = {int(line): text for line, text in re.findall(r"^=== line (\d+)\n(.*?)^=== end$", output, re.M | re.S)}
        for block in blocks_of(self.document):
            if block.reason:
                continue
            with self.subTest("%s:%d" % (self.document, block.line)):
                self.assertIn(block.line, printed, output[-2000:])
                for part in block.value.split(", ") if block.key == "output has" else ():
                    self.assertIn(part, printed[block.line])

    @staticmethod
    def output_of(failures, output):
        """What the blocks said in which a command failed."""
        lines = [int(line.split()[0]) for line in failures.split("\n") if line.split() and line.split()[0].isdigit()]
        parts = re.split(r"^(?==== line )", output, flags=re.M)
        begins = [int(re.match(r"=== line (\d+)", part).group(1)) for part in parts if part.startswith("=== line")]
        wanted = {max((begin for begin in begins if begin <= line), default=0) for line in lines}
        return "\n".join(part[-3000:] for part in parts
                         if part.startswith("=== line") and int(re.match(r"=== line (\d+)", part).group(1)) in wanted)


def name_of(document):
    return re.sub(r"\W", "_", re.sub(r"\.md$", "", document))


def cases_of(names, module, base=Document):
    """Test cases by name, of these documents, for a module."""
    return {"Document_" + name_of(one): type("Document_" + name_of(one), (base,), {
        "document": one, "__module__": module, "SAME_FOR_ALL_USERS": one not in IN_CLONE, "NIGHTLY_FOR_USERS": one != "README.md"})
        for one in names if any(not block.reason for block in blocks_of(one))}


del Document  # has no document: test_clone.py has those of IN_CLONE
globals().update(cases_of([one for one in documents() if one not in IN_CLONE], __name__))


class NotRun(t.Case):
    """Blocks that cannot run here: one skip for each reason, which names them."""
    SAME_FOR_ALL_USERS = True


def skip_for(reason, blocks):
    def test(self):
        self.skipTest("%s: %s" % (reason, ", ".join("%s:%d" % (block.document, block.line) for block in blocks)))
    return test


def reasons():
    by_reason = {}
    for document in documents():
        for block in blocks_of(document):
            if block.reason:
                by_reason.setdefault(block.reason, []).append(block)
    return by_reason


for number, (one, found) in enumerate(sorted(reasons().items()), 1):
    setattr(NotRun, "test_" + re.sub(r"\W+", "_", one)[:40], skip_for(one, found))


class Text(t.Case):
    """Of all documents."""
    SAME_FOR_ALL_USERS = True

    def test_directives_are_known(self):
        for document in documents():
            for block in blocks_of(document):
                with self.subTest("%s:%d" % (document, block.line)):
                    self.assertIn(block.key, KEYS)

    def test_languages_are_known(self):
        """A block of another name for a shell would never run."""
        for document in documents():
            with open(os.path.join(t.ROOT, document), encoding="utf-8") as file:
                languages = set(re.findall(r"^ *```(\S+)", file.read(), re.M))
            with self.subTest(document):
                self.assertLessEqual(languages, {"sh", "sql", "c", "python", "yaml", "meson"})

    def test_links_lead_to_files(self):
        for document in documents():
            with open(os.path.join(t.ROOT, document), encoding="utf-8") as file:
                links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)", file.read())
            for link in links:
                with self.subTest("%s: %s" % (document, link)):
                    self.assertTrue(os.path.exists(os.path.join(t.ROOT, os.path.dirname(document), link)))

    def test_links_lead_to_headings(self):
        n = 0
        for document in documents():
            for file, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", read(document)):
                target = os.path.normpath(os.path.join(os.path.dirname(document), file)) if file else document
                if not target.endswith(".md") or not os.path.exists(os.path.join(t.ROOT, target)):
                    continue  # test_links_lead_to_files says so; an ordinary user's copy has not all
                n += 1
                with self.subTest("%s: %s#%s" % (document, file, anchor)):
                    self.assertIn(anchor, anchors_of(read(target)))
        if os.path.exists(os.path.join(t.ROOT, "docs", "security.md")):
            self.assertGreater(n, 100)

    def test_the_readme_has_500_words_of_prose(self):
        """Commands and the table are not counted, nor the targets of links."""
        text = re.sub(r"(?ms)<!--.*?-->|^```.*?^```$|^\|[^\n]*$", "", read("README.md"))
        self.assertLessEqual(len(re.sub(r"\]\([^)]*\)", "]", text).split()), 500)

    def test_every_document_is_listed(self):
        with open(os.path.join(t.ROOT, "docs", "README.md"), encoding="utf-8") as file:
            index = file.read()
        for document in documents():
            if document not in ("README.md", "docs/README.md"):
                with self.subTest(document):
                    self.assertIn("(%s)" % os.path.relpath(document, "docs"), index)


if __name__ == "__main__":
    sys.exit(unittest.main())
