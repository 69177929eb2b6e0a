# SPDX-License-Identifier: MIT
"""The agent loaded into programs that run already: all interpreters, hard loads, our own death at any moment."""
import ctypes
import os
import re
import signal
import struct
import subprocess
import time
import unittest

import probing_test as p
from test_agent import find_library, threads_of


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


@p.for_each_interpreter(globals(), p.all_interpreters)
class Inject(InjectCase):
    ONE_FOR_USERS = True

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
            done = p.probing("eval", target.pid, "while True: pass", "--timeout", "1s", check=p.FAILED)
            self.assertRegex(done.stderr, "KeyboardInterrupt")
            self.assertEqual(("20\n", ""), (lambda done: (done.stdout, done.stderr))(p.probing("eval", target.pid, "x", check=p.OK)))


# As Open MPI does: it writes into functions of libc, whose code is several mappings from then on.
PATCHED = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
with open("/proc/self/maps") as maps:
    start, end = next([int(part, 16) for part in line.split()[0].split("-")] for line in maps if "r-xp" in line and "/libc.so" in line)
page = start + (end - start) // 2 & ~4095
def protect(how):
    assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), how) == 0
protect(7)
ctypes.memmove(page, page, 1)
protect(5)
with open("/proc/self/maps") as maps:
    assert len([line for line in maps if "r-xp" in line and "/libc.so" in line]) == 3
"""


class Patched(unittest.TestCase):
    def test_code_of_libc_that_the_program_has_changed(self):
        need_injection()
        with p.target([p.DEBIAN_PYTHON, "-c", PATCHED + SLEEPS]) as target:
            p.probing("inject", target.pid, check=p.OK)
            self.assertEqual("42\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)


class Eval(unittest.TestCase):
    def setUp(self):
        need_injection()

    def test_code_of_a_file(self):
        with p.scratch(), p.target([p.DEBIAN_PYTHON, "-c", SLEEPS]) as target:
            with open("look.py", "w") as file:
                file.write("def twice(n):\n    return n * 2\nprint('of a file')\ntwice(answer)\n")
            self.assertEqual("of a file\n82\n", p.probing("eval", target.pid, "--file", "look.py", check=p.OK).stdout)
            p.probing("eval", target.pid, "--file", "nowhere.py", check=p.NO_INPUT)
            p.probing("eval", target.pid, "1", "--file", "look.py", check=p.USAGE)

    def test_ctrl_c_ends_the_code_alone(self):
        """The first two have a group of their own, as at a terminal: the signal is theirs, not the program's."""
        with p.target([p.DEBIAN_PYTHON, "-c", SLEEPS]) as target:
            p.probing("inject", target.pid, check=p.OK)
            for code, status, says in (("print('runs', flush=True)\nwhile True: pass", p.FAILED, "KeyboardInterrupt"),
                                       ("try:\n    print('runs', flush=True)\n    while True: time.sleep(0.001)\nexcept KeyboardInterrupt: answer += 1", p.OK, "^$")):
                with subprocess.Popen([p.BINARY, "eval", str(target.pid), code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
                    self.assertEqual("runs\n", process.stdout.readline())
                    os.killpg(process.pid, signal.SIGINT)
                    self.assertRegex(process.stderr.read(), says)
                    self.assertEqual(status, process.wait(30))
            self.assertEqual("43\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)
            self.assertTrue(target.is_running())

    def test_another_network_namespace(self):
        """An abstract socket is not reachable across one."""
        refusal = p.namespaces_refusal()
        if refusal:
            self.skipTest(refusal)
        with p.target(["unshare", "--net", p.DEBIAN_PYTHON, "-c", SLEEPS]) as target:
            self.assertNotEqual(os.readlink("/proc/self/ns/net"), os.readlink("/proc/%d/ns/net" % target.pid))
            self.assertEqual("42\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)
            p.probing("config", target.pid, "follow_forks=on", check=p.OK)
            p.probing("detach", target.pid, check=p.OK)
            self.assertTrue(target.is_running())

    def test_what_an_idle_agent_costs(self):
        """At most 2 MB, and no work at all."""
        def memory_kib():
            with open("/proc/%d/status" % target.pid) as status:
                return int(re.search(r"(?m)^VmRSS:\s*(\d+)", status.read()).group(1))

        def work():
            found = []
            for tid in sorted(os.listdir("/proc/%d/task" % target.pid)):
                with open("/proc/%d/task/%s/comm" % (target.pid, tid)) as comm:
                    name = comm.read().strip()
                with open("/proc/%d/task/%s/status" % (target.pid, tid)) as status:
                    if name.startswith("probing-"):
                        found.append([name] + re.findall(r"(?m)^(?:State|.*voluntary_ctxt_switches):\s*(\w+)", status.read()))
            return found
        with p.target([p.DEBIAN_PYTHON, "-c", "import threading, time; print('ready {}', flush=True); time.sleep(60)"]) as target:
            before = memory_kib()
            p.probing("inject", target.pid, check=p.OK)
            p.wait_until(lambda: len(work()) == 2, 10, "the agent's threads")
            p.wait_until(lambda: {words[1] for words in work()} == {"S"}, 20, "the agent's threads to sleep")
            begun = work()
            time.sleep(2)
            self.assertEqual(begun, work())
            self.assertLess(memory_kib() - before, 2048)


class Loads(unittest.TestCase):
    """Dozens of injections into programs that check themselves (fixtures/guarded.py), in a part of them with probing killed."""
    NIGHTLY_FOR_USERS = True  # what is injected does not depend on rights
    alone = True

    def setUp(self):
        need_injection()

    def load(self, *names):
        done = subprocess.run([p.DEBIAN_PYTHON, os.path.join(p.ROOT, "bench", "inject.py"), "--injections", str(6 * len(names)), "--killed",
                               "0.3", "--load"] + list(names), capture_output=True, text=True, timeout=300,
                              env=dict(os.environ, PROBING_BINARY=p.BINARY, PROBING_FIXTURES=p.BUILT_FIXTURES))
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
        self.assertRegex(done.stdout, r"%d injections, \d+ killed, 0 broken\n$" % (6 * len(names)))

    def test_python(self):
        self.load("allocate", "fork", "imports", "calls", "sleep")

    def test_threads(self):
        self.load("threads")

    def test_registers_heap_and_calls(self):
        self.load("native")


# A program that filters its own system calls: arguments are the number of one, the action, and what its third argument has (0: anything).
FILTERED = """
import ctypes, struct, sys, threading, time
number, action, bits = int(sys.argv[1]), int(sys.argv[2], 16), int(sys.argv[3])
def one(code, true, false, k):
    return struct.pack("=HBBI", code, true, false, k)
code = (one(0x20, 0, 0, 0) + one(0x15, 0, 3 if bits else 1, number) +
        (one(0x20, 0, 0, 32) + one(0x45, 0, 1, bits) if bits else b"") + one(6, 0, 0, action) + one(6, 0, 0, 0x7fff0000))
class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("code", ctypes.c_char_p)]
program, libc = Program(len(code) // 8, code), ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, ctypes.get_errno()
"""
CLOSE_RANGE, SOCKET, MMAP, CLONE, CLONE3 = 436, 41, 9, 56, 435
PIPE2, TIMER_CREATE, LINKAT, NEWFSTATAT, ACCEPT4, GETTID, GETEUID = 293, 222, 265, 262, 288, 186, 107
KILLS, REFUSES, NOT_NOW, NOT_THERE, EXECUTE = "80000000", "00050001", "0005000b", "00050026", 4


def sid_interpreters():
    return [interpreter for interpreter in p.interpreters() if interpreter.label.startswith("sid_")]


@p.for_each_interpreter(globals(), sid_interpreters)
class ByInterpreter(InjectCase):
    """CPython 3.14 and later load the agent themselves (PEP 768), in a container whose only place to write is TMPDIR."""

    def program(self, source, *environment):
        return p.target(self.interpreter.place.prefix + ["env", "TMPDIR=/mnt"] + list(environment) +
                        [self.interpreter.path, "-W", "ignore", "-u", "-c", source], stderr=subprocess.PIPE)

    def left_behind(self, pid):
        return [name for name in os.listdir("/proc/%d/root/mnt" % pid) if "probing" in name]

    def test_there_and_back_and_there(self):
        with self.program(SLEEPS) as target:
            for _ in range(3):
                done = p.probing("inject", target.pid, "--method", "interpreter", check=p.OK)
                self.assertEqual("the agent is in process %d (its Python loaded it)\n" % target.pid, done.stdout)
                self.assertEqual("42\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)
                p.probing("detach", target.pid, check=p.OK)
                # in turns with the other way it is the same library
                p.probing("inject", target.pid, "--method", "thread", check=p.OK)
                p.probing("detach", target.pid, check=p.OK)
            with open("/proc/%d/maps" % target.pid) as maps:
                self.assertEqual(1, len({line.split()[4] for line in maps if "libprobing-agent" in line}))  # inodes
            self.assertEqual([], self.left_behind(target.pid))
            target.process.kill()
            self.assertEqual("", target.process.communicate()[1])

    def test_in_a_container_that_is_traced(self):
        """Only memory need be written: another tracer is no matter."""
        libc = ctypes.CDLL(None, use_errno=True)
        with self.program(SLEEPS) as target:
            self.assertEqual(0, libc.ptrace(0x4206, target.pid, None, None))  # PTRACE_SEIZE
            self.assertRegex(p.probing("inject", target.pid, check=p.OK).stdout, "its Python loaded it")
            p.probing("detach", target.pid, check=p.OK)
            self.assertRegex(p.probing("inject", target.pid, "--method", "thread", check=p.NOT_PERMITTED).stderr, "is being traced by")

    def test_where_that_is_switched_off(self):
        with self.program(SLEEPS, "PYTHON_DISABLE_REMOTE_DEBUG=1") as target:
            done = p.probing("inject", target.pid, "--method", "interpreter", check=p.FAILED)
            self.assertRegex(done.stderr, "does not load the agent itself: its interpreter was started without remote debugging\n$")
            self.assertRegex(p.probing("inject", target.pid, check=p.OK).stdout, "a thread was used")

    def test_where_an_audit_hook_forbids_it(self):
        hook = ("import sys\ndef hook(event, arguments):\n    if event.startswith('%s'): raise RuntimeError('no')\n"
                "sys.addaudithook(hook)\n")
        for event, why in ("ctypes.dlopen", "could not load it: RuntimeError"), ("cpython.remote", "did not run the script"):
            with self.program(hook % event + SLEEPS) as target:
                done = p.probing("inject", target.pid, "--method", "interpreter", check=p.FAILED)
                self.assertRegex(done.stderr, why)
                self.assertEqual([], self.left_behind(target.pid))
                p.probing("inject", target.pid, "--method", "thread", check=p.OK)
                self.assertEqual("42\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)

    def test_a_thread_that_sleeps_on_is_left_to_the_other_way(self):
        with self.program(SLEEPS.replace("0.01", "1000")) as target:
            self.assertRegex(p.probing("inject", target.pid, check=p.OK).stdout, "a thread was used")
            self.assertEqual([], self.left_behind(target.pid))

    def test_a_thread_whose_own_filter_kills_is_left_out(self):
        """It runs, and would be asked first."""
        p.need_root()
        source = ("import sys, threading\nsys.argv += ['%d', '%s', '0']\n"
                  "def filtered():\n    exec(%r, {})\n    is_filtered.set()\n    while True: sum(range(1000))\n"
                  "is_filtered = threading.Event()\nthreading.Thread(target=filtered, daemon=True).start()\nis_filtered.wait()\n"
                  % (SOCKET, KILLS, FILTERED))
        with self.program(source + SLEEPS) as target:
            p.probing("inject", target.pid, "--method", "interpreter", check=p.OK)
            self.assertEqual("42\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)

    def test_a_thread_that_sleeps_and_runs_in_turn_is_asked(self):
        with self.program(SLEEPS.replace("0.01", "0.00005")) as target:
            for _ in range(60):
                p.probing("inject", target.pid, "--method", "interpreter", check=p.OK)
                p.probing("detach", target.pid, check=p.OK)

    def test_what_a_signal_handler_raises_meanwhile_reaches_the_program(self):
        source = ("import signal, sys, time\nclass Mine(Exception): pass\ndef handler(number, frame): raise Mine(7)\n"
                  "signal.signal(signal.SIGUSR1, handler)\n"
                  "todo = [signal.SIGUSR1]\nsys.addaudithook(lambda event, a: event == 'ctypes.dlopen' and todo and signal.raise_signal(todo.pop()))\n"
                  "print('ready {}', flush=True)\n"
                  "end = time.monotonic() + 30\ntry:\n    while time.monotonic() < end: sum(range(1000))\n    print('not raised', flush=True)\n"
                  "except Mine as error:\n    print('caught', error.args[0], flush=True)\n"
                  "time.sleep(60)\n")
        with self.program(source) as target:
            p.probing("inject", target.pid, "--method", "interpreter")
            self.assertEqual("caught 7\n", target.process.stdout.readline())


class Filters(unittest.TestCase):
    """Programs whose own seccomp filter refuses a system call that the agent needs, or ends the program for it."""

    def setUp(self):
        need_injection()

    def program(self, number, action, bits=0, prefix=(), python=p.DEBIAN_PYTHON):
        return p.target([*prefix, python, "-u", "-c", FILTERED + SLEEPS, str(number), action, str(bits)])

    def mappings(self, pid):
        with open("/proc/%d/maps" % pid) as maps:
            return [line.split()[1:] for line in maps if "[heap]" not in line]

    def mode(self, pid):
        with open("/proc/%d/status" % pid) as status:
            return int(re.search(r"^Seccomp:\s*(\d+)", status.read(), re.MULTILINE)[1])

    def test_one_that_kills(self):
        p.need_root()
        for number, name in (SOCKET, "socket"), (CLOSE_RANGE, "close_range"), (CLONE3, "clone3"):
            with self.subTest(name), self.program(number, KILLS) as target:
                for verb in ["inject", target.pid], ["eval", target.pid, "1"], ["inject", target.pid, "--trust-filter"]:
                    done = p.probing(*verb, check=p.NOT_PERMITTED)
                    self.assertEqual("probing: process %d has a seccomp filter that ends it if it calls %s, which the agent needs: "
                                     "nothing was loaded\n" % (target.pid, name), done.stderr)
                self.assertTrue(target.is_running())

    def test_strict_mode(self):
        """Only read, write, exit and sigreturn: any other call ends the thread, and no filter can be read."""
        source = "import ctypes\nprctl = ctypes.CDLL(None).prctl\nprint('ready {}', flush=True)\nprctl(22, 1, 0, 0, 0)\nwhile True: pass"
        with p.target([p.DEBIAN_PYTHON, "-c", source]) as target:
            p.wait_until(lambda: self.mode(target.pid) == 1, 10, "strict mode")
            for verb in ["inject", target.pid], ["eval", target.pid, "1"], ["inject", target.pid, "--trust-filter"]:
                done = p.probing(*verb, check=p.NOT_PERMITTED)
                self.assertEqual("probing: process %d is in seccomp's strict mode, which ends it for any call of the agent: "
                                 "nothing was loaded\n" % target.pid, done.stderr)
            self.assertTrue(target.is_running())

    def test_one_that_answers_with_an_error(self):
        p.need_root()
        for number, bits, says in ((MMAP, EXECUTE, r"cannot call mmap, which the agent needs: .* \(it has a seccomp filter\)\n$"),
                                   (SOCKET, 0, "switched itself off: it cannot have a unix socket\n$")):
            with self.subTest(number), self.program(number, REFUSES, bits) as target:
                before, files = self.mappings(target.pid), os.listdir("/proc/%d/fd" % target.pid)
                self.assertRegex(p.probing("inject", target.pid).stderr, says)
                self.assertTrue(target.is_running())
                self.assertEqual(files, os.listdir("/proc/%d/fd" % target.pid))
                p.wait_until(lambda: not [name for name in threads_of(target.pid) if "probing" in name], what="the end of the agent's threads")
                if number == MMAP:
                    self.assertEqual(before, self.mappings(target.pid))

    def test_one_that_kills_for_a_part_of_the_agent(self):
        """The agent works; what would end the program is refused when it is switched on."""
        p.need_root()
        parts = ((TIMER_CREATE, "timer_create", ["record", "--source", "agent", "-d", "1", "-o", "x.db", "--pid"], []),
                 (PIPE2, "pipe2", ["config"], ["crash=on"]), (LINKAT, "linkat", ["config"], ["trace=threading.Thread.start"]))
        for number, name, before, after in parts:
            with self.subTest(name), p.scratch(), self.program(number, KILLS) as target:
                said = p.probing("inject", target.pid, check=p.OK).stderr
                self.assertEqual(number == LINKAT, "drops rows, because a seccomp filter would end the process" in said, said)
                done = p.probing(*before, target.pid, *after)
                self.assertNotEqual(p.OK, done.returncode)
                self.assertRegex(done.stderr, r"process %d has a seccomp filter that ends it if it calls %s, which (sampling|a crash "
                                 "report|writing rows) needs" % (target.pid, name))
                p.probing("config", target.pid, "crash=off", check=p.OK)
                event = "import probing; probing.event('here')" if number == LINKAT else "answer"
                p.probing("eval", target.pid, event, check=p.OK)
                self.assertEqual("42\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)
                self.assertTrue(target.is_running())

    def test_one_that_comes_after_the_agent(self):
        """Of all threads, as libseccomp installs it where a program wants that: the agent is not even connected to."""
        p.need_root()
        install = "\n".join(line for line in FILTERED.splitlines() if not line.startswith(("number", "assert")))
        install += "\nassert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.syscall(317, 1, 1, ctypes.byref(program)) == 0, ctypes.get_errno()\n"
        with p.target([p.DEBIAN_PYTHON, "-u", "-c", SLEEPS]) as target:
            p.probing("inject", target.pid, check=p.OK)
            p.probing("eval", target.pid, "number, action, bits = %d, 0x%s, 0\n%s" % (ACCEPT4, KILLS, install), check=p.OK)
            for verb, *words in ["eval", "1"], ["config", "follow_forks=on"], ["detach"]:
                done = p.probing(verb, target.pid, *words, check=p.NOT_PERMITTED)
                self.assertEqual("probing: process %d has a seccomp filter that ends it if it calls accept4, which the agent needs: "
                                 "nothing was sent to it\n" % target.pid, done.stderr)
            self.assertRegex(p.probing("backtrace", target.pid, check=p.OK).stdout, "<module>")
            self.assertTrue(target.is_running())

    def test_a_thread_that_has_one_of_its_own(self):
        """It does not become the agent's, and is not sampled."""
        p.need_root()
        source = ("import sys, threading\nsys.argv = ['', '%d', '%s', '0']\ndef spin():\n    exec(%r, {})\n    ready.set()\n    while True: pass\n"
                  "ready = threading.Event()\nthreading.Thread(target=spin, daemon=True).start()\nready.wait()\n" % (GETTID, KILLS, FILTERED))
        with p.scratch(), p.target([p.DEBIAN_PYTHON, "-u", "-c", source + SLEEPS]) as target:
            p.probing("inject", target.pid, "--wait", "30s", check=p.OK)
            done = p.probing("record", "--source", "agent", "-d", "1", "-o", "x.db", "--pid", target.pid, check=p.FAILED)
            self.assertRegex(done.stderr, "does not sample it: process %d has a seccomp filter that ends it if it calls gettid, which "
                             "sampling needs" % target.pid)
            self.assertEqual("42\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)

    def test_a_thread_of_its_own_that_rows_would_kill(self):
        """It is left out of the injection for its filter, and writes a row then."""
        p.need_root()
        source = ("import select, sys, threading\nsys.argv = ['', '%d', '%s', '0']\ntodo, done = [], []\ndef wait():\n    exec(%r, {})\n"
                  "    is_filtered.set()\n    while True:\n        select.poll().poll(20)\n        while todo: done.append(todo.pop()())\n"
                  "is_filtered = threading.Event()\nthreading.Thread(target=wait, daemon=True).start()\nis_filtered.wait()\n"
                  % (GETEUID, KILLS, FILTERED))
        with p.scratch(), p.target([p.DEBIAN_PYTHON, "-u", "-c", source + SLEEPS]) as target:
            self.assertIn("drops rows, because a seccomp filter would end the process", p.probing("inject", target.pid, check=p.OK).stderr)
            p.probing("eval", target.pid, "import probing; todo.append(lambda: probing.event('here'))", check=p.OK)
            p.wait_until(lambda: p.probing("eval", target.pid, "print(len(done))", check=p.OK).stdout == "1\n", what="the thread's row")
            self.assertTrue(target.is_running())

    def test_one_that_a_debugger_hides_from_root(self):
        p.need_root()
        libc = ctypes.CDLL(None, use_errno=True)
        with self.program(CLONE3, NOT_THERE) as target:
            p.probing("inject", target.pid, check=p.OK)
            self.assertEqual(0, libc.ptrace(0x4206, target.pid, None, None))  # PTRACE_SEIZE
            done = p.probing("config", target.pid, "crash=on", check=p.NOT_PERMITTED)
            self.assertRegex(done.stderr, "the seccomp filter of thread %d of process %d cannot be read.*a debugger traces the thread" %
                             (target.pid, target.pid))
            self.assertNotIn("root", done.stderr)
            p.probing("inject", target.pid, "--trust-filter", check=p.OK)
            p.probing("config", target.pid, "crash=on", check=p.OK)

    def test_a_user_who_may_not_read_it(self):
        """One sentence with what to do; trust, once given, holds for all parts."""
        with p.scratch(), self.program(CLONE3, NOT_THERE) as target:
            if os.geteuid() == 0:
                self.skipTest("root may read filters")
            p.probing("inject", target.pid, "--trust-filter", check=p.OK)
            for command in (["record", "--source", "agent", "-d", "0.2", "-o", "x.db", "--pid", target.pid],
                            ["config", target.pid, "trace=threading.Thread.start"], ["detach", target.pid]):
                p.probing(*command, check=p.OK)

    def sizes(self, pid):
        """Of all mappings but the heap, in all and executable ones."""
        with open("/proc/%d/maps" % pid) as maps:
            lines = [line.split() for line in maps if "[heap]" not in line]
        sizes = [(line[1], int(line[0].split("-")[1], 16) - int(line[0].split("-")[0], 16)) for line in lines]
        self.assertEqual([], [line for line in lines if "probing" in line[-1]])
        return sum(size for _, size in sizes), sum(size for how, size in sizes if "x" in how)

    def test_what_fails_in_the_process_leaves_nothing(self):
        """No thread, or a library that cannot be loaded. libc keeps the first one's stack and heap for its next thread."""
        for number, action, says in ((CLONE3, NOT_NOW, "can have no more threads: Resource temporarily unavailable"),
                                     (NEWFSTATAT, REFUSES, "cannot load the agent: .*Operation not permitted")):
            with self.subTest(number), self.program(number, action) as target:
                files = os.listdir("/proc/%d/fd" % target.pid)
                for i in range(3):
                    self.assertRegex(p.probing("inject", target.pid, "--trust-filter", "--method", "thread").stderr, says)
                    p.wait_until(lambda: len(threads_of(target.pid)) == 1, what="the end of the stub's thread")
                    if i == 0:
                        before = self.sizes(target.pid)
                self.assertEqual(before, self.sizes(target.pid))
                self.assertEqual(files, os.listdir("/proc/%d/fd" % target.pid))
                self.assertTrue(target.is_running())

    def test_one_that_does_no_harm(self):
        """As containers have it: clone3 is not there, and libc uses clone."""
        with self.program(CLONE3, NOT_THERE) as target:
            if os.geteuid() != 0:
                done = p.probing("inject", target.pid, check=p.NOT_PERMITTED)
                self.assertIn("has a seccomp filter of its own, which only root may read", done.stderr)
                p.probing("inject", target.pid, "--trust-filter", check=p.OK)
            self.assertEqual("42\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)


OUTSIDER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class UserNamespace(unittest.TestCase):
    """A container of an ordinary user, who is root in it: by that user, by the container's root, and by root outside."""

    def setUp(self):
        need_injection()
        self.owner = OUTSIDER if os.geteuid() == 0 else []
        done = subprocess.run([*self.owner, "unshare", "-Ur", p.BINARY, "--version"], capture_output=True, text=True)
        if done.returncode:
            self.skipTest("an ordinary user has no user namespaces here, or cannot run this build: " + done.stderr.strip())

    def run_by(self, prefix, *command):
        done = subprocess.run([*prefix, p.BINARY, *map(str, command)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual((p.OK, ""), (done.returncode, done.stderr), command)
        return done.stdout

    def container(self, *flags):
        return p.target([*self.owner, "unshare", "-Ur", *flags, p.DEBIAN_PYTHON, "-c", SLEEPS], env=dict(os.environ, HOME="/nonexistent"))

    def there_and_back(self, prefix, pid):
        self.assertRegex(self.run_by(prefix, "inject", pid), "the agent is in process")
        self.assertEqual("42 0\n", self.run_by(prefix, "eval", pid, "import os; print(answer + 1, os.getuid())"))
        self.run_by(prefix, "config", pid, "sample_rate=0.25")
        self.assertRegex(self.run_by(prefix, "config", pid), r"probing\.sample_rate *= *0\.25")
        self.assertRegex(self.run_by(prefix, "detach", pid), "has ended")

    def test_each_in_turn(self):
        for flags in [], ["--net"]:
            with self.subTest(flags), self.container(*flags) as target:
                inside = [*self.owner, "nsenter", "--preserve-credentials", "--user", *flags, "--target", str(target.pid)]
                for prefix in [self.owner, inside] + ([[]] if self.owner else []):
                    self.there_and_back(prefix, target.pid)
                self.assertTrue(target.is_running())

    def test_a_stranger(self):
        """Root of another container is nobody here."""
        with self.container() as target:
            if not self.owner:
                self.skipTest("needs a second user, so root")
            stranger = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "unshare", "-Ur", p.BINARY, "eval", str(target.pid), "1"]
            p.probing("inject", target.pid, check=p.OK)
            done = subprocess.run(stranger, capture_output=True, text=True, timeout=60)
            self.assertNotEqual(p.OK, done.returncode)
            self.assertEqual(("", 1), (done.stdout, done.stderr.count("\n")), done.stderr)
            self.assertEqual("42\n", p.probing("eval", target.pid, "answer + 1", check=p.OK).stdout)


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

    def start(self, *command, **more):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        p.wait_until(lambda: p.state_of(process.pid) == "S", 20, "the program's start")
        time.sleep(0.3)
        return process

    def test_another_user(self):
        p.need_root()
        process = self.start(p.DEBIAN_PYTHON, "-c", "import time; time.sleep(60)")
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", p.BINARY, "inject", str(process.pid)],
                              capture_output=True, text=True, timeout=30)
        if "Permission denied" in done.stderr and not done.stderr.startswith("probing:"):
            self.skipTest("the binary is out of that user's reach")
        self.assertEqual(p.NOT_PERMITTED, done.returncode, done.stderr)
        self.assertEqual(1, done.stderr.count("\n"), done.stderr)

    def test_a_filter_without_ptrace(self):
        process = self.start(p.DEBIAN_PYTHON, "-c", "import time; time.sleep(60)")
        done = subprocess.run([os.path.join(p.BUILT_FIXTURES, "without_perf"), "--memory", p.BINARY, "inject", str(process.pid)],
                              capture_output=True, text=True, timeout=30)
        self.assertEqual(p.NOT_PERMITTED, done.returncode, done.stderr)
        self.assertRegex(done.stderr, "seccomp")
        self.assertEqual(1, done.stderr.count("\n"), done.stderr)

    def test_a_tracer(self):
        process = self.start(p.DEBIAN_PYTHON, "-c", "import time; time.sleep(60)")
        self.assertEqual(0, ctypes.CDLL(None).ptrace(0x4206, process.pid, None, None))  # PTRACE_SEIZE
        done = p.probing("inject", process.pid, check=p.NOT_PERMITTED)
        self.assertRegex(done.stderr, "is being traced by process %d " % os.getpid())

    def test_another_version(self):
        library = find_library()
        if not os.path.exists(library):
            self.skipTest("built without the agent")
        build_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", library], capture_output=True, text=True).stdout)
        with p.scratch() as folder:
            with open(library, "rb") as file:
                code = file.read()
            identity = bytes.fromhex(build_id.group(1))
            with open("libprobing-agent.so", "wb") as file:
                file.write(code.replace(identity, identity[::-1]))
            process = self.start(p.DEBIAN_PYTHON, "-c",
                                 "import ctypes, time; ctypes.CDLL('%s/libprobing-agent.so'); time.sleep(60)" % folder)
            for verb, status in ("inject", p.FAILED), ("detach", p.FAILED):
                self.assertRegex(p.probing(verb, process.pid, check=status).stderr, "another version of the agent is in process")

    def test_musl(self):
        with p.scratch():
            with open("ld-musl-x86_64.so.1", "wb") as copy, open("/bin/true", "rb") as file:
                copy.write(file.read())
            maps = ("import mmap, time; file = open('ld-musl-x86_64.so.1', 'rb'); "
                    "m = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC); time.sleep(60)")
            self.refused([p.DEBIAN_PYTHON, "-c", maps], "runs on musl: the agent is for glibc")

    def test_static(self):
        """A program without a dynamic loader has no Python that could be found, and nothing to load into."""
        with p.scratch() as folder:
            with open("main.c", "w") as file:
                file.write("#include <unistd.h>\nint main(void) { sleep(60); }\n")
            subprocess.run(["cc", "-static", "-o", "main", "main.c"], check=True, timeout=60)
            self.refused([folder + "/main"], "no Python was found")

    def test_a_program_of_32_bits(self):
        """A file of one page that waits for ever: pause(2) of the i386 kind, in a loop."""
        code = b"\xb8\x1d\x00\x00\x00\xcd\x80\xeb\xf7"
        base, size = 0x8048000, 52 + 32 + len(code)
        header = b"\x7fELF\x01\x01\x01".ljust(16, b"\0") + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
        with p.scratch() as folder:
            with open("main", "wb") as file:
                file.write(header + struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096) + code)
            os.chmod("main", 0o755)
            try:
                self.refused([folder + "/main"], "is a 32-bit program: the agent is for those of this machine's kind")
            except OSError as error:
                self.skipTest("this kernel runs no 32-bit programs: %s" % error)

    def test_the_gil_is_held_in_c(self):
        """The agent gets in, eval keeps its time and runs nothing later, and the view from outside works."""
        holds = ("import ctypes, subprocess, time; answer = 41; child = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL)\n"
                 "wait = ctypes.PyDLL(None).waitpid; print('ready {\"child\": %d}' % child.pid, flush=True)\n"
                 "wait(child.pid, None, 0); answer += 1; time.sleep(60)")
        with p.target([p.DEBIAN_PYTHON, "-c", holds]) as target:
            try:
                p.wait_until(lambda: p.state_of(target.pid) == "S", 20, "the call")
                p.probing("inject", target.pid, check=p.OK)
                done = p.probing("eval", target.pid, "answer = 0", "--timeout", "1s", check=p.FAILED)
                self.assertRegex(done.stderr, "was not run")
                # without a limit of its own it says early what it waits for
                with subprocess.Popen([p.BINARY, "eval", str(target.pid), "answer"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True) as waiting:
                    self.assertRegex(waiting.stderr.readline(), "sleeps in C code and holds the GIL: the code waits")
                    waiting.send_signal(signal.SIGINT)
                    self.assertRegex(waiting.stderr.read(), "was not run")
                self.assertRegex(p.probing("backtrace", target.pid, check=p.OK).stdout, "wait(pid|4)")
            finally:
                os.kill(target.truth["child"], signal.SIGKILL)
            # another thread may have the GIL between the program's call and its next line
            p.wait_until(lambda: p.probing("eval", target.pid, "answer", check=p.OK).stdout == "42\n", 20, "the program's next line")

    def test_stopped(self):
        process = subprocess.Popen([p.DEBIAN_PYTHON, "-c", "import time; time.sleep(60)"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        p.wait_until(lambda: p.state_of(process.pid) == "S", 20, "the program's start")
        process.send_signal(signal.SIGSTOP)
        p.wait_until(lambda: p.state_of(process.pid) == "T", 20, "the stop")
        self.assertRegex(p.probing("inject", process.pid).stderr, "is stopped .*kill -CONT")
        self.assertEqual("T", p.state_of(process.pid))

    def test_stopped_while_the_code_waits_for_the_gil(self):
        """No thread runs then, but none holds the GIL in a sleep."""
        holds = ("import re, time; goes_on = False; print('ready {}', flush=True)\n"
                 "while not goes_on: time.sleep(0.01)\nre.match('(a+)+$', 'a' * 60 + 'b')")

        def waits_of_worker():  # for the GIL it waits 5 ms at a time
            for tid in os.listdir("/proc/%d/task" % target.pid):
                with open("/proc/%d/task/%s/status" % (target.pid, tid)) as status:
                    text = status.read()
                if text.startswith("Name:\tprobing-worker\n"):
                    return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.MULTILINE)[1])
        with p.target([p.DEBIAN_PYTHON, "-c", holds]) as target:
            p.probing("eval", target.pid, "goes_on = True", check=p.OK)
            p.wait_until(lambda: p.state_of(target.pid) == "R", 20, "the search")
            before = waits_of_worker()
            with subprocess.Popen([p.BINARY, "eval", str(target.pid), "1"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) as waiting:
                try:
                    p.wait_until(lambda: waits_of_worker() > before + 3, 20, "the worker")
                    os.kill(target.pid, signal.SIGSTOP)
                    self.assertRegex(waiting.stderr.readline(), "process %d is stopped .*`kill -CONT %d`" % (target.pid, target.pid))
                finally:
                    os.kill(target.pid, signal.SIGKILL)
                self.assertRegex(waiting.stderr.read(), "ended before the code did")


if __name__ == "__main__":
    unittest.main()
