# SPDX-License-Identifier: MIT
"""probing top: on a terminal of its own, in batches, and without what it needs.

What stands on the screen is compared with what the fixtures say of themselves, and with the clock of
the program; what was a terminal before must be the same terminal afterwards.
"""
import contextlib
import itertools
import os
import re
import signal
import subprocess
import termios
import time
import unittest

from probing_test import (BINARY, DEBIAN_PYTHON, NO_INPUT, NOT_FOUND, OK, USAGE, child_of, fixture,
                          fixture_command, need_perf, probing, scratch, state_of, statistical, target, wait_until)
from terminal import (BACK_TAB, DOWN, END, ENTER, ESCAPE, F1, F10, HOME, LEFT, PAGE_DOWN, PAGE_UP, RIGHT,
                      UP, Terminal, need_pyte)

COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-7]m")
TIME = r"(?:0|[\d.]+ \w+|\d+m \d+s)"
# Targets of tests with many keys and views live longer than a busy machine takes for them. A target that must end gets its signal once it was seen.
LONG_S = 300
SPIN = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_IGN) # of a leader of its session that leaves
signal.signal(signal.SIGUSR1, lambda *_: sys.exit())
def warm(): return sum(i * i for i in range(20000))
def cold():
    total = 0
    for i in range(20000): total += i * i
    return total
print("ready", flush=True)
stop = time.monotonic() + float(sys.argv[1])
while time.monotonic() < stop:
    cold()
    cold()
    cold()
    warm()
"""


HEAD = r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}\n"  # of each frame of a batch


def top_on_terminal(*arguments, rows=24, columns=80, environment=None, encoding="utf-8"):
    command = [BINARY, "top", "-d", "0.2", "-F", "199"] + [str(a) for a in arguments]
    return Terminal(command, rows, columns, environment, encoding)


def rows_of(lines):
    """(self %, total %, the rest) of the rows of a table."""
    for line in lines:
        row = re.match(r" *(\d+\.\d) +%s +(\d+\.\d) +%s (.*)$" % (TIME, TIME), line)
        if row:
            yield float(row.group(1)), float(row.group(2)), row.group(3).strip()


def shows_cold(lines):
    """In a row, not in the command line above."""
    return any("cold" in rest for _, _, rest in rows_of(lines))


def number_of_samples(lines):
    found = re.search(r"(\d+) samples?", "\n".join(lines))
    return int(found.group(1)) if found else 0


def has_samples(lines):
    return number_of_samples(lines) > 20


@contextlib.contextmanager
def spinning(seconds=LONG_S):
    process = subprocess.Popen([DEBIAN_PYTHON, "-c", SPIN, str(seconds)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class OnTerminal(unittest.TestCase):
    NIGHTLY_FOR_USERS = True  # keys and screens do not depend on rights

    def setUp(self):
        need_pyte()

    def assert_left(self, terminal, status=OK):
        self.assertEqual(terminal.wait(), status, terminal.text())
        self.assertTrue(terminal.is_restored(), terminal.raw[-300:])

    def test_keys_and_views(self):
        with target(fixture_command("threads.py", "--seconds", LONG_S)) as program, top_on_terminal(program.pid, "--sort", "total") as terminal:
            lines = terminal.wait_for(lambda lines: has_samples(lines) and "burn_red" in "\n".join(lines))
            self.assertIn("probing top", lines[0])
            self.assertIn("threads.py", lines[0])
            self.assertIn("pid %d" % program.pid, lines[1])
            self.assertRegex(lines[1], r"Python 3\.\d+")
            self.assertRegex(lines[1], r"4 threads")
            self.assertRegex(lines[2], r"^last \d.*\d+ lost")
            self.assertIn(">total%", lines[3])
            self.assertIn("? help", lines[23])
            for keys, expected in (
                    ("n", "no native"), ("n", "? help"), ("l", " line "), ("m", " module "), ("m", "threads.py"),
                    ("t", " thread "), ("t", "busy-"), ("c", "call tree"), ("c", "- named"), ("f", " function "),
                    ("\t", " line "), (BACK_TAB, " function "), ("2", ">total%"), ("3", ">function"), ("1", ">self%"),
                    ("R", "^self%"), ("R", ">self%"), (">", ">total%"), ("<", ">self%"), ("w", "since start"),
                    ("w", "last "), ("+", "last "), ("x", "interpreter"), ("x", "? help"), ("K", "no kernel"),
                    ("K", "? help"), ("p", "PAUSED"), ("p", "last "), ("?", "Keys (arrows scroll"), ("z", "self%"),
                    (F1, "Keys (arrows scroll"), (ESCAPE, "self%"), ("/", "/_"), ("burn_b", "/burn_b_"),
                    (ENTER, "burn_blue"), (ESCAPE, "  burn "), ("\x0c", "self%")):
                terminal.press(keys)
                terminal.wait_for(expected)
            terminal.press(F10)
            self.assert_left(terminal)

    def test_selecting(self):
        def selected():
            """Rows drawn the other way round, but for the head of the table."""
            return [y for y in range(4, 23) if terminal.screen.buffer[y][0].reverse]
        with fixture("threads.py") as target, top_on_terminal(target.pid, "-w", 0) as terminal:
            terminal.wait_for(lambda lines: len(list(rows_of(lines))) > 8)
            self.assertEqual(selected(), [4])
            terminal.press("p")  # so that rows stay where they are
            terminal.wait_for("PAUSED")
            for keys, row in ((DOWN, 5), ("j", 6), (UP, 5), ("k", 4), (UP, 4), (HOME, 4)):
                terminal.press(keys)
                terminal.wait_for(lambda _, row=row: selected() == [row])
            before = terminal.lines()[4:23]
            terminal.press(END)
            terminal.wait_for(lambda _: len(selected()) == 1 and selected() != [4])
            terminal.press(PAGE_UP, PAGE_UP, PAGE_DOWN, PAGE_UP, HOME)
            terminal.wait_for(lambda lines: selected() == [4] and lines[4:23] == before)
            terminal.press("q")
            self.assert_left(terminal)

    def test_callers_and_callees(self):
        with fixture("threads.py") as target, top_on_terminal(target.pid, "--no-native", "-w", 0) as terminal:
            terminal.wait_for(has_samples)
            terminal.press("/", "burn_green", ENTER)
            terminal.wait_for(lambda lines: len(list(rows_of(lines))) == 1)
            terminal.press(ENTER, )
            terminal.wait_for("called by")
            terminal.press("/", ENTER)  # no filter
            lines = terminal.wait_for(lambda lines: len(list(rows_of(lines))) >= 3)
            text = "\n".join(lines)
            self.assertLess(text.index("called by"), text.index("named"))
            self.assertLess(text.index("named"), text.index("the function"))
            self.assertLess(text.index("the function"), text.index("burn_green"))
            self.assertRegex(text[text.index("calls (total"):], r"\bburn\b")
            terminal.press(LEFT)
            terminal.wait_for(lambda lines: "called by" not in "\n".join(lines))
            terminal.press("t")
            terminal.wait_for("busy-0")
            terminal.press(RIGHT)
            lines = terminal.wait_for(lambda lines: "thread %d" % target.pid not in lines[2] and "thread" in lines[2])
            self.assertEqual(sum(name in "\n".join(lines) for name in ("burn_red", "burn_green", "burn_blue")), 1)
            terminal.press("q")
            self.assert_left(terminal)

    def test_pause_and_reset(self):
        with fixture("threads.py") as target, top_on_terminal(target.pid, "-w", 0) as terminal:
            terminal.wait_for(has_samples)
            terminal.press(" ")
            terminal.wait_for("PAUSED")
            before = terminal.lines()[2:22]
            terminal.take(1)
            self.assertEqual(terminal.lines()[2:22], before)
            terminal.press("p")
            n = number_of_samples(before)
            terminal.wait_for(lambda lines: number_of_samples(lines) > n)
            terminal.wait_for(lambda lines: number_of_samples(lines) > 60)
            os.kill(target.pid, signal.SIGSTOP)  # no new samples: who looks late sees few, too
            wait_until(lambda: state_of(target.pid) == "T", what="a stop")
            for keys, expected in (("p", "PAUSED"), ("p", "since start")):  # those of before have been taken then
                terminal.press(keys)
                terminal.wait_for(lambda lines, expected=expected: expected in "\n".join(lines) and ("PAUSED" in "\n".join(lines)) == (expected == "PAUSED"))
            self.assertGreater(number_of_samples(terminal.lines()), 60)
            terminal.press("r")
            terminal.wait_for(lambda lines: number_of_samples(lines) < 40)
            terminal.press("q")
            self.assert_left(terminal)

    def test_sizes(self):
        with fixture("threads.py") as target, top_on_terminal(target.pid) as terminal:
            terminal.wait_for(has_samples)
            terminal.resize(40, 132)
            terminal.wait_for(lambda lines: "? help" in lines[39] and "GIL" in lines[1])
            terminal.resize(8, 40)
            lines = terminal.wait_for(lambda lines: "function" in lines[2] and "self%" in lines[2])
            self.assertNotIn("kind", lines[2])
            terminal.resize(2, 10)
            terminal.wait_for("too small")
            terminal.resize(24, 80)
            terminal.wait_for(lambda lines: "? help" in lines[23] and lines[0].startswith("probing top"))
            terminal.press("q")
            self.assert_left(terminal)

    def test_a_small_terminal_from_the_start(self):
        with spinning() as process, top_on_terminal(process.pid, rows=5, columns=30) as terminal:
            terminal.wait_for("cold")
            terminal.press("q")
            self.assert_left(terminal)

    def test_colours(self):
        with spinning() as process:
            for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "vt100"}, False)):
                with self.subTest(environment), top_on_terminal(process.pid, environment=environment) as terminal:
                    terminal.wait_for(shows_cold)
                    self.assertEqual(bool(COLOUR.search(terminal.raw)), coloured)
                    terminal.press("q")
                    self.assert_left(terminal)

    def test_other_encodings(self):
        with fixture("names.py") as target:
            for locale in ("C.UTF-8", "C"):
                with self.subTest(locale), top_on_terminal(target.pid, "-w", 0, "-F", 499, "--no-native", environment={
                        "LC_ALL": locale}, encoding="utf-8" if locale == "C.UTF-8" else "ascii") as terminal:
                    terminal.wait_for(has_samples)
                    lines = terminal.wait_for(lambda lines: len(list(rows_of(lines))) > 3)
                    wide = [line for line in lines if not line.isascii()]
                    self.assertEqual(bool(wide), locale == "C.UTF-8", terminal.text())
                    if locale == "C":
                        self.assertFalse([byte for byte in terminal.raw if byte > 0x7e])
                    self.assertIn("? help", lines[23])
                    terminal.press("q")
                    self.assert_left(terminal)

    def test_the_end_of_the_process(self):
        with spinning() as process, top_on_terminal(process.pid) as terminal:
            terminal.wait_for(shows_cold)
            process.send_signal(signal.SIGUSR1)
            process.wait()
            lines = terminal.wait_for("the process has ended")
            self.assertIn("ended", lines[0])
            terminal.take(1)
            self.assertFalse(terminal.ended())
            self.assertTrue(shows_cold(terminal.lines()))  # what was seen stays
            terminal.press("q")
            self.assert_left(terminal)

    def test_leaving_with_the_process(self):
        with spinning() as process, top_on_terminal(process.pid, "--exit") as terminal:
            terminal.wait_for(shows_cold)
            process.send_signal(signal.SIGUSR1)
            self.assert_left(terminal)

    def test_signals(self):
        with spinning() as process:
            for number, status in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, OK)):
                # with a second screen, which has to be left
                with self.subTest(number), top_on_terminal(process.pid, environment={
                        "TERM": "xterm-256color"}) as terminal:
                    terminal.wait_for("self%")
                    self.assertIn(b"\x1b[?1049h", terminal.raw)
                    os.kill(terminal.pid, number)
                    self.assert_left(terminal, status)
            with top_on_terminal(process.pid) as terminal:
                terminal.wait_for("self%")
                terminal.press("\x03")
                self.assert_left(terminal)
            self.assertIsNone(process.poll())

    def test_stopping_and_going_on(self):
        with spinning() as process, top_on_terminal(process.pid) as terminal:
            terminal.wait_for(shows_cold)
            os.kill(terminal.pid, signal.SIGTSTP)
            wait_until(lambda: state_of(terminal.pid) == "T", what="a stop")
            terminal.take(0.1)
            self.assertTrue(terminal.has_old_modes())
            terminal.screen.reset()
            os.kill(terminal.pid, signal.SIGCONT)
            terminal.wait_for(shows_cold)
            terminal.press("q")
            self.assert_left(terminal)


    def test_a_terminal_that_is_held(self):
        """Nothing waits for it: keys are served, samples are taken, and leaving works."""
        with spinning() as process, top_on_terminal(process.pid, "-w", 0) as terminal:
            terminal.wait_for(shows_cold)
            termios.tcflow(terminal.slave, termios.TCOOFF)
            terminal.take(0.3)
            before = terminal.lines()
            terminal.take(1.2)
            self.assertEqual(terminal.lines(), before)
            termios.tcflow(terminal.slave, termios.TCOON)
            terminal.wait_for(lambda lines: number_of_samples(lines) > number_of_samples(before))
            terminal.press("q")
            self.assert_left(terminal)


class Commands(unittest.TestCase):
    def setUp(self):
        need_pyte()

    def command(self, seconds):
        return ["--", DEBIAN_PYTHON, "-c", SPIN, str(seconds)]

    def is_running(self, pid):
        try:
            with open("/proc/%d/stat" % pid) as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False

    def test_its_output_does_not_reach_the_screen(self):
        with scratch(), top_on_terminal("--output", "out.txt", *self.command(60)) as terminal:
            terminal.wait_for(shows_cold)
            os.kill(child_of(terminal.pid), signal.SIGUSR1)
            terminal.wait_for("the process has ended")
            self.assertNotIn("ready", terminal.text())
            terminal.press("q")
            self.assertEqual(terminal.wait(), OK)
            self.assertTrue(terminal.is_restored())
            with open("out.txt") as out:
                self.assertEqual(out.read(), "ready\n")

    def test_leaving_asks_what_becomes_of_it(self):
        for key, survives in (("q", False), ("d", True)):
            with self.subTest(key), top_on_terminal(*self.command(60)) as terminal:
                terminal.wait_for(shows_cold)
                child = child_of(terminal.pid)
                terminal.press("q")
                terminal.wait_for("q: end the command, too")
                terminal.press("f")
                terminal.wait_for("? help")
                terminal.press("q")
                terminal.wait_for("q: end the command, too")
                terminal.press(key)
                self.assertEqual(terminal.wait(), OK)
                self.assertTrue(terminal.is_restored())
                if survives:
                    time.sleep(0.2)
                    self.assertTrue(self.is_running(child))
                    os.kill(child, signal.SIGKILL)
                wait_until(lambda: not self.is_running(child), what="the end of the command")

    def test_a_command_that_is_not_there(self):
        done = probing("top", "--once", "--", "no-such-command-at-all", check=NOT_FOUND)
        self.assertIn("command not found", done.stderr)


class PrintsFrames:
    """What holds whatever the source of stacks. A mixin: its tests are those of the classes below."""
    source = "auto"

    def frames(self, *arguments, check=OK, **more):
        more.setdefault("env", dict(os.environ, COLUMNS="132"))
        done = probing("top", "-F", "199", *arguments, check=check, **more)
        return self.split(done.stdout)

    @staticmethod
    def split(text):
        return [part.split("\n") for part in re.split(HEAD, text)[1:]]

    def frame_of(self, n, seconds, *arguments):
        """The one frame of at least so many samples: a process that gets little of a processor is looked at for longer."""
        for i in range(5):
            frames = self.frames(*arguments, "--once", "-d", seconds * 2 ** i)
            self.assertEqual(len(frames), 1)
            if number_of_samples(frames[0]) >= n:
                break
        self.assertGreaterEqual(number_of_samples(frames[0]), n, frames[0])
        return frames[0]

    @statistical("bounds shares of random samples", 0.0005)
    def test_one_frame(self):
        with spinning() as process:
            lines = self.frame_of(150, 1.5, process.pid, "--no-native", "--source", self.source)
        self.assertIn("pid %d" % process.pid, lines[1])
        rows = {rest.split()[1]: (self_share, total_share) for self_share, total_share, rest in rows_of(lines)}
        # It calls cold three times for each warm, whose loop takes twice as long at most: 60 %, which 150 samples leave by 20 points
        # once in two millions (5 standard errors).
        self.assertGreater(rows["cold"][0], 40)
        self.assertGreater(rows["cold"][0], rows.get("warm", (0, 0))[1])
        self.assertGreater(rows["<module>"][1], 90)
        self.assertLess(max(total for _, total in rows.values()), 100.1)
        self.assertAlmostEqual(sum(self_share for self_share, _ in rows.values()), 100, delta=1)

    def test_until_the_end(self):
        """The program ends when a frame, which is not the first one, has shown what it does."""
        words = [BINARY, "top", "-F", "199", "-b", "-d", "0.5", "-w", "0", "--by", "tree", "--no-native", "--rows", "60",
                 "--source", self.source, "--", DEBIAN_PYTHON, "-c", SPIN, "60"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, COLUMNS="132")) as top:
            try:
                said = ""
                while not any(re.search(r"- <module>", "\n".join(lines)) for lines in self.split(said)[1:]):
                    line = top.stdout.readline()
                    self.assertTrue(line, said)
                    said += line
                os.kill(child_of(top.pid), signal.SIGUSR1)
                rest, errors = top.communicate(timeout=30)
            finally:
                top.kill()
        self.assertEqual(top.returncode, OK, errors)
        frames = self.split(said + rest)
        self.assertGreaterEqual(len(frames), 2)
        last = frames[-1]
        self.assertIn("the process has ended", last[1])
        # Which of the two: reading afterwards has to learn first where each keeps its frames.
        self.assertRegex("\n".join(last), r"- <module>[^\n]*\n[^\n]*  (- )?(cold|warm) ")


class Batches(PrintsFrames, unittest.TestCase):
    def test_several_frames(self):
        with spinning() as process:
            frames = self.frames(process.pid, "-b", "-n", 3, "-d", "0.7", "-w", 0, "--rows", 2, "--source", self.source)
        self.assertEqual(len(frames), 3)
        samples = [number_of_samples(lines) for lines in frames]
        self.assertEqual(samples, sorted(samples))
        self.assertLess(samples[0], samples[2])
        self.assertTrue(all(len(list(rows_of(lines))) <= 2 for lines in frames))

    def test_views_and_filter(self):
        with fixture("threads.py") as target:
            options = ["--once", "-d", "0.7"]
            # Three threads take turns: that 60 samples leave one of them out happens once in 10 billions.
            lines = self.frame_of(60, 0.7, target.pid, "--by", "thread")
            self.assertEqual({rest.split()[0] for _, _, rest in rows_of(lines)} - {"python3"},
                             {"busy-0", "busy-1", "busy-2"})
            lines = self.frames(target.pid, "--by", "line", "--filter", "threads.py", *options)[0]
            self.assertTrue(all("threads.py:" in rest for _, _, rest in rows_of(lines)), lines)
            lines = self.frames(target.pid, "--by", "module", "--sort", "total", *options)[0]
            totals = [total for _, total, _ in rows_of(lines)]
            self.assertEqual(totals, sorted(totals, reverse=True))

    def test_a_process_that_is_idle(self):
        process = subprocess.Popen([DEBIAN_PYTHON, "-c", "import time; print(flush=True); time.sleep(30)"],
                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        try:
            process.stdout.readline()
            lines = self.frames(process.pid, "--once", "-d", "0.5", "--source", self.source)[0]
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        self.assertIn("no samples", "\n".join(lines))


class BatchesRead(PrintsFrames, unittest.TestCase):
    source = "wakeup"

    def setUp(self):
        need_perf()
        if os.geteuid() != 0:
            self.skipTest("as an ordinary user, auto is read")


class BatchesPoll(PrintsFrames, unittest.TestCase):
    source = "poll"


class Refusals(unittest.TestCase):
    def test_no_terminal(self):
        done = probing("top", os.getpid(), check=USAGE)
        self.assertIn("not a terminal", done.stderr)
        self.assertIn("probing record", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_terminals_that_cannot_be_drawn_on(self):
        need_pyte()
        with spinning() as process:
            for kind in ("dumb", "no-such-terminal"):
                with self.subTest(kind), top_on_terminal(process.pid, columns=200, environment={"TERM": kind}) as terminal:
                    self.assertEqual(terminal.wait(), USAGE)
                    self.assertIn("probing record", terminal.text())
                    self.assertTrue(terminal.has_old_modes())

    def test_arguments(self):
        for arguments, sentence in (
                ([], "of which process"), (["1", "2"], "one process at a time"), (["x"], "process id must be a number"),
                (["1", "--", "true"], "not both"), (["1", "--by", "colour"], "--by must be function, line"),
                (["1", "--sort", "x"], "--sort must be self, total or name"), (["1", "-w", "301"], "from 0 to 300"),
                (["1", "--output", "x"], "--output is for a command"), (["1", "-n", "1.5"], "whole number")):
            with self.subTest(arguments):
                self.assertIn(sentence, probing("top", *arguments, check=USAGE).stderr)

    def test_no_such_process(self):
        self.assertIn("there is no process", probing("top", "--once", "4194303", check=NO_INPUT).stderr)

    def test_nothing_is_left_behind(self):
        with scratch() as folder, spinning() as process:
            probing("top", "--once", "-d", "0.3", process.pid, check=OK, env=dict(os.environ, TMPDIR=folder))
            self.assertEqual(os.listdir(folder), [])

    def test_where_no_file_can_be_made(self):
        """It goes on in the next folder."""
        with spinning() as process:
            probing("top", "--once", "-d", "0.3", process.pid, check=OK, env=dict(os.environ, TMPDIR="/proc"))

    def test_a_reader_who_goes_away(self):
        with spinning() as process:
            done = subprocess.run("%s top -b -d 0.2 %d | head -1" % (BINARY, process.pid), shell=True, timeout=30,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.stderr, "")


class Cost(unittest.TestCase):
    def test_memory_does_not_grow_with_time(self):
        """Once all stacks have been seen, samples take no more. (Names of native functions would, for a while.)"""
        def resident(pid):
            with open("/proc/%d/statm" % pid) as statm:
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        with spinning() as process:
            live = subprocess.Popen([BINARY, "top", "-b", "-d", "0.2", "-F", "999", "-w", "1", "--source",
                                     "poll", str(process.pid)], stdout=subprocess.PIPE, text=True)
            try:
                # Frames, each of a fifth of a second: how late it starts does not matter.
                heads = (None for line in live.stdout if re.match(HEAD, line))
                self.assertEqual(len(list(itertools.islice(heads, 7))), 7)
                before = resident(live.pid)
                self.assertEqual(len(list(itertools.islice(heads, 7))), 7)
                self.assertLess(resident(live.pid) - before, 8 << 20)
            finally:
                live.kill()
                live.wait()
                live.stdout.close()


if __name__ == "__main__":
    unittest.main()
