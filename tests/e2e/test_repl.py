# SPDX-License-Identifier: MIT
"""Python's prompt in a process that runs: on a terminal, and as a script from a pipe."""
import os
import signal
import subprocess
import tempfile
import unittest

import probing_test as p
import terminal
from test_inject import InjectCase, need_injection

PROGRAM = """
import gc, sys, threading, time
class Model:
    def __init__(self):
        self.weights = [1, 2, 3]
        self.weight_decay = 0.5
    @property
    def wrong(self):
        global computed
        computed += 1
computed = 0
def make():
    return Model()
holder = [make()]
print("ready {}", flush=True)
while True:
    time.sleep(0.01)
"""
FIND = "[x for x in gc.get_objects() if type(x).__name__ == 'Model'][0].weights"


@p.for_each_interpreter(globals())
class Script(InjectCase):
    def test_a_script_from_a_pipe(self):
        with self.program(PROGRAM) as target:
            script = "import gc\n%s\ndef f(n):\n    if n:\n        return n * 2\n\n    return 0\nf(21)\nfor i in range(2):\n    i\n" % FIND
            done = p.probing("-t", target.pid, "repl", input=script, stdin=None, check=p.OK)
            self.assertEqual("[1, 2, 3]\n42\n0\n1\n", done.stdout)
            done = p.probing("repl", target.pid, input="1\n1/0\n2\n", stdin=None, check=p.FAILED)
            self.assertEqual("1\n", done.stdout)
            self.assertRegex(done.stderr, "Traceback(.|\n)*ZeroDivisionError")
            self.assertNotIn("evaluate", done.stderr)
            done = p.probing("repl", target.pid, input="1 +\n", stdin=None, check=p.FAILED)
            self.assertIn("SyntaxError", done.stderr)
            # its stdin, its exit() and its names stay the program's
            self.assertEqual("", p.probing("repl", target.pid, input="exit()\n", stdin=None, check=p.OK).stdout)
            done = p.probing("repl", target.pid, input="input()\n", stdin=None, check=p.FAILED)
            self.assertIn("EOFError", done.stderr)
            done = p.probing("repl", target.pid, input="import sys; sys.stdin.closed\n'_' in dir(__builtins__), 'step' in globals()\n",
                             stdin=None, check=p.OK)
            self.assertEqual("False\n(False, False)\n", done.stdout)
            self.assertTrue(target.is_running())


class Prompt(unittest.TestCase):
    def setUp(self):
        need_injection()
        terminal.need_pyte()
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.environment = {"HOME": home.name, "XDG_STATE_HOME": home.name}

    def target(self):
        return p.target([p.DEBIAN_PYTHON, "-c", PROGRAM])

    def open(self, pid):
        screen = terminal.Terminal([p.BINARY, str(pid), "repl"], rows=40, columns=160, environment=self.environment)
        self.addCleanup(screen.__exit__)
        screen.wait_for(lambda lines: ">>>" in lines)
        return screen

    def answers(self, screen, line, expected):
        screen.press(line + "\r")
        screen.wait_for(lambda lines: lines[-1 - lines[::-1].index(">>>")] == ">>>" and expected in lines if ">>>" in lines else False)

    def test_lines_history_and_completion(self):
        with self.target() as target:
            screen = self.open(target.pid)
            self.assertRegex(screen.text(), r"process %d \(.*\), Python 3\." % target.pid)
            self.answers(screen, "6 * 7", "42")
            self.answers(screen, "import gc", ">>> import gc")
            self.answers(screen, FIND, "[1, 2, 3]")
            screen.press("def twice(x):\r")
            screen.wait_for(lambda lines: "..." in lines)
            screen.press("    return 2 * x\r", "\r")
            self.answers(screen, "twice(holder[0].weight_decay)", "1.0")
            self.answers(screen, "1 / 0", "ZeroDivisionError: division by zero")
            self.answers(screen, "model = holder[0]", ">>> model = holder[0]")
            screen.press("mode\t.weight\t\t")
            screen.wait_for("weight_decay  weights")
            screen.press("s\r")
            screen.wait_for(lambda lines: lines.count("[1, 2, 3]") == 2)
            screen.press("model.wrong.\t\x15")  # a property is not computed to complete what comes behind it
            self.answers(screen, "computed", "0")
            screen.press(terminal.UP, terminal.UP, "\r")
            screen.wait_for(lambda lines: lines.count("[1, 2, 3]") == 3)
            screen.press("exit()\r")
            self.assertEqual(p.OK, screen.wait())
            self.assertTrue(target.is_running())
            with open(os.path.join(self.environment["XDG_STATE_HOME"], "probing", "python_history")) as kept:
                self.assertIn("twice", kept.read())

    def test_interrupts(self):
        with self.target() as target:
            screen = self.open(target.pid)
            screen.press("if not print('ru' + 'ns', flush=True):\r")
            screen.wait_for(lambda lines: "..." in lines)
            screen.press("    while True: pass\r", "\r")
            screen.wait_for(lambda lines: "runs" in lines)
            screen.press("\x03")
            screen.wait_for("KeyboardInterrupt")
            self.answers(screen, "'next'", "'next'")
            screen.press("half a line\x03")
            self.answers(screen, "1 + 1", "2")
            screen.press("\x04")
            self.assertEqual(p.OK, screen.wait())
            self.assertTrue(target.is_running())

    def test_the_end_of_the_program(self):
        with self.target() as target:
            screen = self.open(target.pid)
            os.kill(target.pid, signal.SIGKILL)
            screen.wait_for("process %d, or its agent, has ended" % target.pid)
            self.assertEqual(p.FAILED, screen.wait())
            self.assertTrue(screen.has_old_modes())

    def test_the_end_in_the_middle_of_code(self):
        with self.target() as target:
            screen = self.open(target.pid)
            screen.press("import os; os._exit(0)\r")
            screen.wait_for("ended")
            self.assertEqual(p.FAILED, screen.wait())

    def test_a_process_that_is_not_there(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        p.probing(gone.pid, "repl", check=p.NO_INPUT)
