# SPDX-License-Identifier: MIT
"""The agent loaded into programs that run already: all interpreters, hard loads, our own death at any moment."""
import os
import random
import signal
import subprocess
import time
import unittest

import probing_test as p

# Checks its own computation, its system calls and its children, and says so when it is asked to end.
CHECKED = """
import hashlib, os, signal, sys, threading, time
kind = sys.argv[1]
ends = []
signal.signal(signal.SIGTERM, lambda number, frame: ends.append(number))
expected = hashlib.md5(b"x" * 100000).hexdigest()
def allocate():
    return sum(len(bytearray(n)) for n in range(1000, 60000, 997)) == sum(range(1000, 60000, 997))
def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    return os.waitpid(pid, 0)[1] >> 8 == 7
def imports():
    for name in ("json", "json.decoder", "json.encoder", "json.scanner", "colorsys"):
        sys.modules.pop(name, None)
    import json, colorsys
    return json.loads("[1, 2]") == [1, 2]
def calls():
    r, w = os.pipe()
    os.write(w, b"abc")
    got = os.read(r, 10)
    os.close(r), os.close(w)
    return got == b"abc"
def sleep():
    before = time.monotonic()
    time.sleep(0.003)
    return time.monotonic() - before >= 0.003
works = {"allocate": allocate, "fork": fork, "imports": imports, "calls": calls, "sleep": sleep, "threads": calls}
work = works[kind]
rounds = wrong = 0
def run():
    global rounds, wrong
    while not ends:
        if not work() or hashlib.md5(b"x" * 100000).hexdigest() != expected:
            wrong += 1
        rounds += 1
more = [threading.Thread(target=run) for _ in range(100 if kind == "threads" else 0)]
[thread.start() for thread in more]
print("ready {}", flush=True)
run()
[thread.join() for thread in more]
print("rounds", rounds, "wrong", wrong, flush=True)
"""


def need_injection():
    if os.uname().machine != "x86_64":
        raise unittest.SkipTest("x86-64 only")


class InjectCase(unittest.TestCase):
    interpreter = None

    def setUp(self):
        need_injection()
        p.need_interpreter(self.interpreter)
        if self.interpreter.version == "2.7":
            self.skipTest("test_refusals has 2.7")

    def program(self, source, *arguments, **more):
        return p.target(self.interpreter.place.prefix + [self.interpreter.path, "-W", "ignore", "-u", "-c", source] +
                        list(arguments), stderr=subprocess.PIPE, **more)


SLEEPS = "import threading, time; answer = 41; print('ready {}', flush=True)\nwhile True: time.sleep(0.01)"


@p.for_each_interpreter(globals())
class Inject(InjectCase):
    def test_there_and_back(self):
        with self.program(SLEEPS) as target:
            self.assertRegex(p.probing("inject", target.pid, check=p.OK).stdout, r"^the agent is in process %d \(" % target.pid)
            self.assertRegex(p.probing(target.pid, "inject", check=p.OK).stdout, "has the agent already")
            self.assertEqual("42\n", p.probing(target.pid, "eval", "answer + 1", check=p.OK).stdout)
            self.assertRegex(p.probing("detach", target.pid, check=p.OK).stdout, "has ended")
            p.wait_until(lambda: len(os.listdir("/proc/%d/task" % target.pid)) == 1, 10, "the end of the agent's threads")
            done = p.probing("detach", target.pid, check=p.FAILED)
            self.assertEqual("probing: process %d has no agent\n" % target.pid, done.stderr)
            p.probing("-t", target.pid, "inject", check=p.OK)
            done = p.probing("e", target.pid, "answer = 1\nprint('two')\n1/0", check=p.FAILED)
            self.assertEqual("two\n", done.stdout)
            self.assertRegex(done.stderr, "Traceback(.|\n)*ZeroDivisionError")
            self.assertTrue(target.is_running())

    def test_eval_loads_it_and_says_so(self):
        with self.program(SLEEPS) as target:
            done = p.probing("eval", target.pid, "-", input="x = 20\nx + 1\n", stdin=None, check=p.OK)
            self.assertEqual("21\n", done.stdout)
            self.assertRegex(done.stderr, "^probing: the agent was loaded into process %d" % target.pid)
            done = p.probing("eval", target.pid, "while True: pass", "--timeout", "200ms", check=p.FAILED)
            self.assertRegex(done.stderr, "KeyboardInterrupt")
            self.assertEqual(("20\n", ""), (lambda done: (done.stdout, done.stderr))(p.probing("eval", target.pid, "x", check=p.OK)))


class Loads(unittest.TestCase):
    """Hundreds of injections, a part of them with probing killed: the program notices nothing."""
    ROUNDS, KILLED = int(os.environ.get("PROBING_INJECT_ROUNDS", "25")), 3

    def setUp(self):
        need_injection()
        self.interpreter = p.Interpreter(p.DEBIAN_PYTHON, None, "debian")

    def load(self, kind):
        with p.target([p.DEBIAN_PYTHON, "-W", "ignore", "-c", CHECKED, kind], stderr=subprocess.PIPE) as target:
            injected = 0
            for i in range(self.ROUNDS):
                self.assertTrue(target.is_running(), "round %d" % i)
                if i % self.KILLED == 0:
                    self.kill_one(target.pid)
                done = p.probing("inject", target.pid, "--wait", "10s")
                self.assertIn(done.returncode, (p.OK, p.FAILED), done.stderr)
                if done.returncode == p.OK:
                    injected += 1
                    p.probing("detach", target.pid, check=p.OK)
            target.process.send_signal(signal.SIGTERM)
            out, err = target.process.communicate(timeout=60)
            self.assertEqual((0, ""), (target.process.returncode, err))
            self.assertRegex(out, r"^rounds [1-9]\d* wrong 0\n$")
            self.assertGreaterEqual(injected, self.ROUNDS * 0.9)

    @staticmethod
    def kill_one(pid):
        """At a random moment of what takes some 50 ms."""
        process = subprocess.Popen([p.BINARY, "inject", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 0.06))
        process.kill()
        process.wait()


for kind in ("allocate", "fork", "imports", "calls", "sleep", "threads"):
    setattr(Loads, "test_" + kind, lambda self, kind=kind: self.load(kind))


class Refusals(unittest.TestCase):
    def setUp(self):
        need_injection()

    def refused(self, command, *patterns):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        p.wait_until(lambda: p.state_of(process.pid) == "S", 20, "the program's start")
        time.sleep(0.2)
        done = p.probing("inject", process.pid)
        self.assertNotEqual(p.OK, done.returncode)
        self.assertEqual(1, done.stderr.count("\n"), done.stderr)
        for pattern in patterns:
            self.assertRegex(done.stderr, pattern)
        self.assertIsNone(process.poll())

    def test_no_python(self):
        self.refused(["sleep", "60"], "no Python was found")

    def test_python_2(self):
        found = [i for i in p.interpreters() if i.version == "2.7" and i.path]
        if not found:
            self.skipTest("no CPython 2.7")
        self.refused([found[0].path, "-c", "import time; time.sleep(60)"], "runs Python 2.7.*for 3.6 and later")

    def test_nobody(self):
        done = p.probing("inject", 4194303, check=p.NO_INPUT)
        self.assertRegex(done.stderr, "there is no process 4194303")
        p.probing("inject", check=p.USAGE)
        p.probing("eval", 1, check=p.USAGE)

    def test_stopped(self):
        process = subprocess.Popen([p.DEBIAN_PYTHON, "-c", "import time; time.sleep(60)"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        p.wait_until(lambda: p.state_of(process.pid) == "S", 20, "the program's start")
        process.send_signal(signal.SIGSTOP)
        p.wait_until(lambda: p.state_of(process.pid) == "T", 20, "the stop")
        self.assertRegex(p.probing("inject", process.pid).stderr, "is stopped .*kill -CONT")
        self.assertEqual("T", p.state_of(process.pid))


if __name__ == "__main__":
    unittest.main()
