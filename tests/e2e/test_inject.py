# SPDX-License-Identifier: MIT
"""The agent loaded into programs that run already: all interpreters, hard loads, our own death at any moment."""
import ctypes
import os
import re
import signal
import subprocess
import time
import unittest

import probing_test as p
from test_agent import find_library


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
            done = p.probing("eval", target.pid, "while True: pass", "--timeout", "200ms", check=p.FAILED)
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
                        found.append([name] + re.findall(r"(?m)^.*voluntary_ctxt_switches:\s*(\d+)", status.read()))
            return found
        with p.target([p.DEBIAN_PYTHON, "-c", "import threading, time; print('ready {}', flush=True); time.sleep(60)"]) as target:
            before = memory_kib()
            p.probing("inject", target.pid, check=p.OK)
            p.wait_until(lambda: len(work()) == 2, 10, "the agent's threads")
            time.sleep(0.5)
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
                self.assertRegex(p.probing("backtrace", target.pid, check=p.OK).stdout, "wait(pid|4)")
            finally:
                os.kill(target.truth["child"], signal.SIGKILL)
            self.assertEqual("42\n", p.probing("eval", target.pid, "answer", check=p.OK).stdout)

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
