# SPDX-License-Identifier: MIT
"""The agent alone, loaded by the program itself: what it answers, whom, and what it leaves of the program as it was."""
import json
import os
import re
import socket
import struct
import subprocess
import textwrap
import threading
import unittest

import agent_client as agent
import probing_test as p



def find_library():
    """Beside the program, as in a copy for another user, or where it is built."""
    folder = os.path.dirname(p.BINARY)
    beside = os.path.join(folder, "libprobing-agent.so")
    return os.path.abspath(beside if os.path.exists(beside) else os.path.join(folder, "..", "agent", "libprobing-agent.so"))


LIBRARY = os.environ.get("PROBING_AGENT") or find_library()

# A sanitized agent needs its sanitizer's library from the start of the interpreter.
PRELOADED = {"LD_PRELOAD": os.environ["PROBING_AGENT_PRELOAD"]} if os.environ.get("PROBING_AGENT_PRELOAD") else {}

# ThreadSanitizer has a thread of its own in the process.
N_OTHER_THREADS = 2 if "tsan" in PRELOADED.get("LD_PRELOAD", "") else 1

# Loads the agent as the start hook of an interpreter would, then runs a line of its own at each line of stdin.
HOST = """
import ctypes, sys, threading, time, os
library = ctypes.CDLL(os.environ["AGENT"])
print("started", library.probing_agent_start(int(os.environ.get("AGENT_OPTIONS", "0"))))
answer = 41
for i in range(1000):
    if os.path.exists("/proc/self/fd") and b"@probing-%d" % os.getpid() in open("/proc/net/unix", "rb").read():
        break
    time.sleep(0.01)
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


def threads_of(pid):
    names = []
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid)) as comm:
                names.append(comm.read().strip())
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
    return sorted(names)


def greets(pid):
    try:
        with agent.Client(pid) as client:
            return client.ask(agent.HELLO)[0] == agent.WELCOME
    except (EOFError, ConnectionError):
        return False


def sys_prefix(python):
    return subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True).stdout.strip()


class Contents(unittest.TestCase):
    """What the file of the library may call, and what it shows to the program."""

    def symbols(self, *flags):
        done = subprocess.run([p.need_program("nm"), "-D", *flags, LIBRARY], capture_output=True, text=True, check=True)
        return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}

    def test_names(self):
        if PRELOADED or not os.path.exists(LIBRARY):
            self.skipTest("built without the agent, or with a sanitizer")
        self.assertEqual({"probing_agent_start", "probing_agent_configure", "probing_agent_spawn"}, self.symbols("--defined-only"))
        called = self.symbols("--undefined-only")
        self.assertIn("dlsym", called)
        forbidden = r"_*(printf|fprintf|vprintf|vfprintf|dprintf|puts|fputs|putchar|fwrite|perror)(_chk)?|" \
            "exit|abort|quick_exit|raise|setlocale|uselocale|signal|fork|system|_?Py.*"
        self.assertEqual([], sorted(name for name in called if re.fullmatch(forbidden, name)))

    def test_it_needs_libc_alone(self):
        if PRELOADED or not os.path.exists(LIBRARY):
            self.skipTest("built without the agent, or with a sanitizer")
        done = subprocess.run([p.need_program("readelf"), "-d", LIBRARY], capture_output=True, text=True, check=True)
        self.assertLessEqual({name.split(".so")[0] for name in re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)},
                             {"libc", "libpthread", "libdl", "ld-linux-x86-64", "ld-linux-aarch64"})


class Host:
    """A program with the agent in it. One that hangs is killed, and what waits for its output reads its end."""
    MAX_S = 120

    def __init__(self, python, source=HOST, **environment):
        self.process = subprocess.Popen(
            [python, "-u", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, AGENT=LIBRARY, **PRELOADED, **environment))
        self.pid = self.process.pid
        self.limit = threading.Timer(self.MAX_S, self.process.kill)
        self.limit.daemon = True
        self.limit.start()
        self.first = self.process.stdout.readline()
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise AssertionError("%r %r %r" % (self.first, line, self.process.communicate()))

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.limit.cancel()
        self.process.kill()
        self.process.communicate()

    def begin(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def run(self, line):
        """What the line prints, in the main thread."""
        self.begin(line)
        return p.await_done(self.process)

    def end(self):
        """(status, stdout, stderr) once its stdin has ended."""
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


class AgentCase(unittest.TestCase):
    interpreter = None
    ONE_FOR_USERS = True

    def setUp(self):
        p.need_interpreter(self.interpreter)
        if self.interpreter.version == "2.7":
            self.skipTest("the agent is for Python 3.6 and later")
        if not os.path.exists(LIBRARY):
            self.skipTest("built without the agent")
        if self.interpreter.place.prefix:
            self.skipTest("the library is not in that place; test_inject takes it there")

    def host(self, **environment):
        return Host(self.interpreter.path, **environment)


def evaluating_interpreters():
    return [interpreter for interpreter in p.interpreters() if interpreter.version != "2.7"]


class Evaluation(AgentCase):
    def test_values_output_and_errors(self):
        with self.host() as host, agent.Client(host.pid) as client:
            self.assertEqual("started 0\n", host.first)
            kind, pid, version = client.ask(agent.HELLO)
            self.assertEqual((agent.WELCOME, host.pid), (kind, pid))
            self.assertTrue(version.decode().startswith(self.interpreter.version), version)
            self.assertEqual((agent.VALUE, "42", "", ""), client.evaluate("answer + 1"))
            self.assertEqual((agent.NOTHING, "", "", ""), client.evaluate("answer = 7"))
            self.assertEqual("7\n", host.run("print(answer)"))
            self.assertEqual((agent.NOTHING, "", "a\u00e9\nb\n", "c"), client.evaluate(
                "import sys\nfor x in 'a\u00e9', 'b':\n    print(x)\nsys.stderr.write('c') and None"))
            outcome, text, out, _ = client.evaluate("print(1)\n1/0")
            self.assertEqual((agent.EXCEPTION, "1\n"), (outcome, out))
            self.assertRegex(text, r'^Traceback.*\n  File "<probing>", line 2, in <module>\nZeroDivisionError: .*\n$')
            self.assertNotIn("evaluate", text)
            outcome, text, _, _ = client.evaluate("def f(:")
            self.assertEqual(agent.EXCEPTION, outcome)
            self.assertIn("SyntaxError", text)
            # neither the end of the program nor of the agent
            self.assertEqual(agent.EXCEPTION, client.evaluate("import sys; sys.exit(3)")[0])
            self.assertEqual("True\n", host.run("print(sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__)"))
            status, out, err = host.end()
            self.assertEqual((0, "", ""), (status, out, err))

    def test_much_output_comes_whole(self):
        with self.host() as host, agent.Client(host.pid) as client:
            outcome, _, out, err = client.evaluate(
                "import sys\nfor i in range(20000):\n    print(i)\n    i % 1000 or print(i, file=sys.stderr)")
            self.assertEqual(agent.NOTHING, outcome)
            self.assertEqual("".join("%d\n" % i for i in range(20000)), out)
            self.assertEqual("".join("%d\n" % i for i in range(0, 20000, 1000)), err)

    def test_other_threads_keep_their_output(self):
        with self.host() as host, agent.Client(host.pid) as client:
            host.begin("for mine in range(20000): print('mine', mine)")  # in the same namespace as the evaluations
            for i in range(50):
                self.assertEqual((agent.NOTHING, "", "yours\n" * 20, ""),
                                 client.evaluate("for i in range(20): print('yours')"))
            lines = []
            while not lines or lines[-1] != "done\n":
                lines.append(host.process.stdout.readline())
            self.assertEqual(["mine %d\n" % i for i in range(20000)], lines[:-1])

    def test_a_print_goes_on_after_the_evaluation(self):
        """print() before CPython 3.14 borrows sys.stdout: what stands for it during an evaluation must outlive that."""
        with self.host() as host, agent.Client(host.pid) as client:
            self.assertEqual(agent.NOTHING, client.evaluate(textwrap.dedent("""
                import sys, threading, time
                entered, left = threading.Event(), threading.Event()
                class Slow:
                    def __str__(self):
                        entered.set()
                        left.wait(20)
                        return 'slow'
                def hold():
                    while sys.stdout is sys.__stdout__:
                        time.sleep(0.001)
                    print(Slow(), 'and more')
                    print(Slow(), 'and more', file=sys.stdout)
                """))[0])
            host.begin("hold()")
            self.assertEqual(agent.VALUE, client.evaluate("entered.wait(20)")[0])
            self.assertEqual(agent.NOTHING, client.evaluate(
                "more = [type('T%d' % i, (), {})() for i in range(2000)]\nleft.set()")[0])
            self.assertEqual(["slow and more\n", "slow and more\n", "done\n"],
                             [host.process.stdout.readline() for _ in range(3)])
            self.assertEqual("True\n", host.run("print(sys.stdout is sys.__stdout__)"))

    def test_the_program_redirects_its_output_meanwhile(self):
        with self.host() as host, agent.Client(host.pid) as client:
            self.assertEqual(agent.NOTHING, client.evaluate(textwrap.dedent("""
                import contextlib, io, sys, threading, time
                first, second, third, mine = threading.Event(), threading.Event(), threading.Event(), io.StringIO()
                def redirect():
                    while sys.stdout is sys.__stdout__:
                        time.sleep(0.001)
                    with contextlib.redirect_stdout(mine):
                        first.set()
                        second.wait(20)
                        print('in')
                    print('out')
                    third.set()
                """))[0])
            host.begin("redirect()")
            self.assertEqual((agent.VALUE, "True", "", ""), client.evaluate("first.wait(20)"))
            self.assertEqual((agent.VALUE, "True", "", ""), client.evaluate("second.set(); third.wait(20)"))
            self.assertEqual(["out\n", "done\n"], [host.process.stdout.readline() for _ in range(2)])
            self.assertEqual((agent.NOTHING, "", "in\n\n", ""), client.evaluate("print(mine.getvalue())"))
            self.assertEqual("True\n", host.run("print(sys.stdout is sys.__stdout__)"))

    def test_an_interrupt_at_any_moment_hits_the_code_alone(self):
        with self.host() as host, agent.Client(host.pid) as client:
            for i in range(100):
                client.begin("while True: pass")
                if i % 2:
                    self.assertEqual(agent.STARTED, client.receive()[0])
                client.send(agent.INTERRUPT)
                outcome, text, out, err = client.finish()
                self.assertIn(outcome, (agent.INTERRUPTED,) if i % 2 else (agent.INTERRUPTED, agent.NOT_STARTED), text)
                # and one that comes too late hits nothing
                client.begin("answer")
                client.send(agent.INTERRUPT)
                self.assertIn(client.finish()[0], (agent.VALUE, agent.INTERRUPTED, agent.NOT_STARTED))
                self.assertEqual((agent.VALUE, "41", "", ""), client.evaluate("answer"))
            self.assertEqual((0, "", ""), host.end())

    def test_who_asked_has_gone(self):
        with self.host() as host:
            with agent.Client(host.pid) as client:
                client.begin("n = 0\nwhile True: n += 1")
                self.assertEqual(agent.STARTED, client.receive()[0])
            with agent.Client(host.pid) as client:
                p.wait_until(lambda: client.evaluate("1")[0] == agent.VALUE, 20, "the end of what nobody waits for")


class Times(AgentCase):
    """Evaluations that have so much time, and what they leave of the program's speed."""
    alone = True  # it expects an answer while the program still runs the code that it received

    # Words of the interpreter's state, each at the lowest of many readings: requests to leave the evaluation loop come and go.
    STATE = (r"exec('import ctypes\napi = ctypes.pythonapi\napi.PyInterpreterState_Get.restype = ctypes.c_void_p\n"
             r"words = lambda: (ctypes.c_int * 256).from_address(api.PyInterpreterState_Get())[:]\n"
             r"lowest = lambda: [min(each) for each in zip(*(words() for i in range(300)))]')")
    TAKEN_BACK = "api.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), None)"
    RAISED = (r"exec('try:\n api.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(KeyError))\n"
              r" while True: pass\nexcept KeyError: pass')")

    def test_the_program_is_as_fast_as_before(self):
        """Up to CPython 3.12 PyThreadState_SetAsyncExc(NULL) leaves all threads on the slow path of the evaluation loop: its request
        stays set. Another host does it, and shows which words of the state say so."""
        if not (3, 9) <= tuple(map(int, self.interpreter.version.split(".")[:2])) <= (3, 12):
            self.skipTest("only CPython 3.9 to 3.12 show it in the interpreter's state")
        with self.host() as host, self.host() as other, agent.Client(host.pid) as client:
            for one in host, other:
                one.run(self.STATE)
            states = [json.loads(other.run(line + "; print(lowest())")) for line in ("pass", self.TAKEN_BACK, self.RAISED)]
            requests = [i for i, values in enumerate(zip(*states)) if values == (0, 1, 0)]
            self.assertGreaterEqual(len(requests), 2, "eval_breaker and async_exc")
            for _ in range(3):
                self.assertEqual(agent.VALUE, client.evaluate("answer")[0])
            client.begin("while True: pass")
            self.assertEqual(agent.STARTED, client.receive()[0])
            client.send(agent.INTERRUPT)
            self.assertEqual(agent.INTERRUPTED, client.finish()[0])
            state = json.loads(host.run("print(lowest())"))
            self.assertEqual([0] * len(requests), [state[i] for i in requests])

    def test_an_evaluation_is_interrupted(self):
        with self.host() as host, agent.Client(host.pid) as client:
            client.begin("while True: pass")
            self.assertEqual(agent.STARTED, client.receive()[0])
            client.send(agent.INTERRUPT)
            outcome, text, _, _ = client.finish()
            self.assertEqual(agent.INTERRUPTED, outcome)
            self.assertIn("KeyboardInterrupt", text)
            outcome, _, _, _ = client.evaluate("while True: pass", 1000)
            self.assertEqual(agent.INTERRUPTED, outcome)
            # what comes after is not
            for i in range(20):
                self.assertEqual((agent.VALUE, str(i), "", ""), client.evaluate("sum([1] * %d)" % i))
            self.assertEqual("41\n", host.run("print(answer)"))

    def test_one_that_is_in_c_code_is_abandoned(self):
        with self.host() as host, agent.Client(host.pid) as client, agent.Client(host.pid) as other:
            self.assertEqual(agent.ABANDONED, client.evaluate(
                "import _thread\ngate = _thread.allocate_lock()\ngate.acquire()\ngate.acquire()", 1000)[0])
            outcome, why, _, _ = other.evaluate("1")
            self.assertEqual((None, "another evaluation has not ended yet"), (outcome, why))
            host.run("gate.release()")
            p.wait_until(lambda: other.evaluate("2")[0] == agent.VALUE, 20, "the abandoned evaluation's end")

    def test_where_the_lock_is_not_to_be_had_nothing_runs(self):
        if not p.has_gil(self.interpreter):
            self.skipTest("without a GIL an evaluation may begin beside a call that keeps the thread's state")
        with self.host() as host, agent.Client(host.pid) as client:
            host.begin("ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(5), 5)")
            p.wait_until(lambda: p.state_of(host.pid) == "S", 10, "the call")
            self.assertEqual((agent.NOT_STARTED, "", "", ""), client.evaluate("answer = 'late'", 200))
            host.begin("goes")  # the call takes the line
            self.assertEqual("done\n", host.process.stdout.readline())
            self.assertEqual("41\n", host.run("print(answer)"))
            self.assertEqual((agent.VALUE, "41", "", ""), client.evaluate("answer"))


class Life(AgentCase):
    def test_detach_leaves_nothing_that_runs(self):
        with self.host() as host:
            self.assertEqual(["probing-agent", "probing-worker"], [name for name in threads_of(host.pid) if "probing" in name])
            with agent.Client(host.pid) as client:
                self.assertEqual(agent.VALUE, client.evaluate("1")[0])
                self.assertEqual(agent.BYE, client.ask(agent.DETACH)[0])
            p.wait_until(lambda: len(threads_of(host.pid)) == N_OTHER_THREADS, 10, "the agent's threads to end")
            with self.assertRaises(ConnectionRefusedError):
                agent.Client(host.pid)
            self.assertEqual("0\n", host.run("print(library.probing_agent_start(0))"))
            p.wait_until(lambda: len(threads_of(host.pid)) == N_OTHER_THREADS + 2, 10, "it is there again")

    def test_the_program_has_no_file_more(self):
        with self.host() as host:
            with agent.Client(host.pid) as client:
                client.evaluate("1")
                files = {os.readlink("/proc/%d/fd/%s" % (host.pid, fd)).split(":")[0]
                         for fd in os.listdir("/proc/%d/fd" % host.pid)}
            self.assertEqual({"pipe"}, files)

    def test_its_end_is_as_ever(self):
        for ending, status in (("sys.exit(5)", 5), ("os._exit(6)", 6), ("raise SystemExit", 0)):
            with self.host() as host, agent.Client(host.pid) as client:
                client.begin("while True: pass")
                self.assertEqual(agent.STARTED, client.receive()[0])
                host.begin(ending)
                self.assertEqual((status, "", ""), host.end(), ending)

    def test_children(self):
        fork = "pid = os.fork(); pid or os._exit(len(os.listdir('/proc/self/task'))); print(os.waitpid(pid, 0)[1] >> 8)"
        with self.host(PYTHONWARNINGS="ignore") as host:
            self.assertEqual("1\n", host.run(fork))
        with self.host(PYTHONWARNINGS="ignore", AGENT_OPTIONS="1") as host:
            self.assertEqual("3\n", host.run(fork))
            out = host.run("pid = os.fork(); pid or (time.sleep(60), os._exit(0)); print(pid)")
            child = int(out)
            p.wait_until(lambda: ("@probing-%d\n" % child) in open("/proc/net/unix").read(), 10, "the child's agent")
            with agent.Client(child) as client, agent.Client(host.pid) as parent:
                self.assertEqual((agent.VALUE, str(child), "", ""), client.evaluate("os.getpid()"))
                self.assertEqual((agent.VALUE, str(host.pid), "", ""), parent.evaluate("os.getpid()"))
                os.kill(child, 9)

    def test_children_of_another_thread(self):
        """The main thread is in C code meanwhile, and calls nothing that is queued for it."""
        if not p.has_gil(self.interpreter):
            self.skipTest("WithoutGil has it")
        fork = textwrap.dedent("""
            import threading
            def fork():
                for i in range(40):
                    pid = os.fork()
                    if pid == 0:
                        for j in range(2000):
                            if len(os.listdir('/proc/self/task')) == 3:
                                os._exit(7)
                            time.sleep(0.01)
                        os._exit(8)
                    print(os.waitpid(pid, 0)[1] >> 8)
            def all_of_them():
                thread = threading.Thread(target=fork)
                thread.start()
                thread.join()
            """)
        with self.host(PYTHONWARNINGS="ignore", AGENT_OPTIONS="1") as host:
            with agent.Client(host.pid) as client:
                self.assertEqual(agent.NOTHING, client.evaluate(fork)[0])
            self.assertEqual("7\n" * 40, host.run("all_of_them()"))

    def test_it_is_configured_while_the_program_forks(self):
        forks = "n = 0\nwhile not (done and n):\n    pid = os.fork()\n    pid or os._exit(0)\n    n += os.waitpid(pid, 0)[1] == 0\nprint(n > 0)"
        with self.host(PYTHONWARNINGS="ignore") as host, agent.Client(host.pid) as client:
            host.run("done = False")
            host.begin("exec(%r)" % forks)
            for i in range(200):
                kind, _, text = client.ask(agent.CONFIGURE, b"follow_forks=on" if i % 2 else b"follow_forks=off")
                self.assertEqual(agent.CONFIGURATION, kind)
                self.assertIn("follow_forks=" + ("on" if i % 2 else "off"), text.decode())
            self.assertEqual(agent.NOTHING, client.evaluate("done = True")[0])
            self.assertEqual("True\n", host.process.stdout.readline())

    def test_the_kernel_changes_all_threads_ids(self):
        """setgid(2) by libc waits for all threads: none of ours may keep its signal from coming."""
        with self.host() as host:
            self.assertEqual("ok\n", host.run("os.setgid(os.getgid()); print('ok')"))


    def test_a_program_that_it_executes_has_none(self):
        with self.host() as host:
            host.begin("os.execv('/bin/cat', ['cat'])")
            p.wait_until(lambda: "cat" in threads_of(host.pid), 10, "the other program")
            host.begin("executed")
            self.assertEqual("executed\n", host.process.stdout.readline())
            self.assertEqual([], [name for name in threads_of(host.pid) if "probing" in name])
            with self.assertRaises(ConnectionRefusedError):
                agent.Client(host.pid)

    def test_signals_locale_and_errno_stay(self):
        state = textwrap.dedent("""
            import signal, locale
            def state():
                with open('/proc/self/status') as status:
                    masks = [line for line in status if line.startswith(('SigBlk', 'SigIgn', 'SigCgt'))]
                return masks, locale.setlocale(locale.LC_ALL), [signal.getsignal(n) for n in range(1, 32)]
            libc = ctypes.CDLL(None, use_errno=True)
            ctypes.set_errno(17)
            before = state()
            """)
        with self.host() as host, agent.Client(host.pid) as client:
            host.run("exec(%r)" % state)
            self.assertEqual((agent.VALUE, "1", "", ""), client.evaluate("1"))
            client.begin("while True: pass")
            self.assertEqual(agent.STARTED, client.receive()[0])
            client.send(agent.INTERRUPT)
            self.assertEqual(agent.INTERRUPTED, client.finish()[0])
            self.assertEqual(agent.EXCEPTION, client.evaluate("open('/nowhere')")[0])
            self.assertEqual(agent.BYE, client.ask(agent.DETACH)[0])
            self.assertEqual("True 17\n", host.run("print(state() == before, ctypes.get_errno())"))

    def test_several_interpreters(self):
        """Code runs in the first one, while others run and when they have ended."""
        ways = textwrap.dedent("""
            import threading
            def run(source):
                try:
                    from concurrent import interpreters
                    return interpreters.create().exec(source)
                except ImportError:
                    pass
                try:
                    import _interpreters
                    return _interpreters.exec(_interpreters.create('legacy'), source)
                except ImportError:
                    pass
                try:
                    import _xxsubinterpreters as interpreters
                    return interpreters.run_string(interpreters.create(), source)
                except ImportError:
                    import _testcapi
                    return _testcapi.run_in_subinterp(source)
            source = "import time\\nend = time.time() + 1\\nwhile time.time() < end: time.sleep(0.001)"
            thread = threading.Thread(target=run, args=(source,))
            """)
        with self.host() as host, agent.Client(host.pid) as client:
            host.run("exec(%r)" % ways)
            if "True" not in host.run("exec(\"try: run('pass'); print(True)\\nexcept Exception as error: print(error)\")"):
                self.skipTest("no second interpreter")
            host.run("thread.start()")
            for _ in range(20):
                self.assertEqual((agent.VALUE, "41", "", ""), client.evaluate("answer"))
            host.run("thread.join()")
            self.assertEqual((agent.VALUE, "41", "", ""), client.evaluate("answer"))
            status, out, err = host.end()
            self.assertEqual((0, "", ""), (status, out, err))


EMBEDDING = r"""
#include <Python.h>
#include <dlfcn.h>
#include <stdio.h>
static void wait_for_line(const char *says)
{
	char line[16];
	puts(says);
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		_exit(3);
}
int main(void)
{
	int (*start)(unsigned);
	for (int i = 0; i < 2; i++) {
		Py_InitializeEx(0);
		*(void **)&start = dlsym(dlopen(getenv("AGENT"), RTLD_NOW), "probing_agent_start");
#if PY_VERSION_HEX < 0x03070000 /* a thread makes the GIL there; joined, for none may outlive its interpreter */
		if (PyRun_SimpleString("import threading; t = threading.Thread(target=int); t.start(); t.join()") != 0)
			return 1;
#endif
		if (start(0) != 0)
			return 1;
		Py_BEGIN_ALLOW_THREADS
		wait_for_line("runs");
		Py_END_ALLOW_THREADS
		Py_Finalize();
		wait_for_line("ended");
	}
	return 0;
}
"""


class Embedded(AgentCase):
    """An interpreter ends before its process, and another begins."""

    def test_the_end_of_the_interpreter_and_another_one(self):
        script = ("import sysconfig; get = sysconfig.get_config_var; "
                  "print(get('LIBDIR') + '/' + str(get('INSTSONAME')), sysconfig.get_paths()['include'], get('LIBDIR'))")
        library, include, folder = subprocess.run([self.interpreter.path, "-c", script], capture_output=True, text=True,
                                                  check=True).stdout.split()
        if not os.path.exists(library) or library.endswith(".a") or not os.path.exists(include + "/Python.h"):
            self.skipTest("no shared library of this interpreter, or no headers")
        with p.scratch():
            with open("main.c", "w") as file:
                file.write(EMBEDDING)
            subprocess.run([p.need_program("cc"), "-o", "main", "main.c", "-I" + include, library, "-Wl,-rpath," + folder], check=True,
                           timeout=60)
            process = subprocess.Popen(["./main"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       env=dict(os.environ, AGENT=LIBRARY, PYTHONHOME=sys_prefix(self.interpreter.path), **PRELOADED))
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            for _ in range(2):
                self.assertEqual("runs\n", process.stdout.readline())
                p.wait_until(lambda: greets(process.pid), 10, "the agent")
                with agent.Client(process.pid) as client:
                    self.assertEqual((agent.VALUE, "42", "", ""), client.evaluate("6 * 7"))
                    process.stdin.write("\n")
                    process.stdin.flush()
                    self.assertEqual("ended\n", process.stdout.readline())
                    outcome, why, _, _ = client.evaluate("1")
                    self.assertEqual((None, "the interpreter has ended"), (outcome, why))
                    self.assertEqual(agent.BYE, client.ask(agent.DETACH)[0])
                p.wait_until(lambda: not any("probing" in name for name in threads_of(process.pid)), 10, "the agent's threads to end")
                process.stdin.write("\n")
                process.stdin.flush()
            self.assertEqual(0, process.wait(20))


class Foreigners(AgentCase):
    def test_other_users_are_not_heard(self):
        p.need_root()
        ask = textwrap.dedent("""
            import os, socket, sys
            os.setgid(65534), os.setuid(65534)
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(20)
            s.connect("\\0probing-%s" % sys.argv[1])
            try:
                s.sendall(b"\\x08\\0\\0\\0\\1\\0\\1\\0")
                print(len(s.recv(100)))
            except ConnectionError:
                print(0)
            """)
        with self.host() as host:
            done = subprocess.run([p.DEBIAN_PYTHON, "-c", ask, str(host.pid)], capture_output=True, text=True, timeout=30)
            self.assertEqual(("0\n", ""), (done.stdout, done.stderr))
            with agent.Client(host.pid) as client:
                self.assertEqual(agent.WELCOME, client.ask(agent.HELLO)[0])

    def test_nonsense_ends_that_conversation_alone(self):
        with self.host() as host, agent.Client(host.pid) as steady:
            for bytes_sent in (b"\xff" * 64, struct.pack("=IHH", 1 << 31, agent.EVALUATE, 1),
                               struct.pack("=IHH", 8, agent.RESULT, 1), struct.pack("=IHH", 8, agent.HELLO, 99)):
                with agent.Client(host.pid) as client:
                    client.socket.sendall(bytes_sent)
                    self.assertEqual(agent.REFUSED, client.receive()[0])
                    with self.assertRaises((EOFError, ConnectionResetError)):
                        client.receive()
            self.assertEqual((agent.VALUE, "1", "", ""), steady.evaluate("1"))

    def test_more_than_it_serves(self):
        with self.host() as host:
            clients = [agent.Client(host.pid) for _ in range(12)]
            answered = 0
            for client in clients:
                try:
                    answered += client.ask(agent.HELLO)[0] == agent.WELCOME
                except (EOFError, ConnectionError):
                    pass
                client.socket.close()
            self.assertEqual(8, answered)
            p.wait_until(lambda: greets(host.pid), 10, "a free place")

    def test_a_name_that_is_taken(self):
        squatter = HOST.replace("library =", "import socket; s = socket.socket(socket.AF_UNIX);"
                                " s.bind('\\0probing-%d' % os.getpid()); s.listen(1); library =", 1)
        with Host(self.interpreter.path, squatter) as host:
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(20)
            p.wait_until(lambda: ("@probing-%d-1\n" % host.pid) in open("/proc/net/unix").read(), 10, "another name")
            client.connect("\0probing-%d-1" % host.pid)
            client.close()


class WithoutGil(AgentCase):
    def test_children_of_another_thread(self):
        """Their interpreter keeps a pointer to the main thread's state, which it frees: they, and their children, have no agent."""
        fork = textwrap.dedent("""
            import threading
            def fork(depth):
                pid = os.fork()
                if pid:
                    print(os.waitpid(pid, 0)[1] >> 8, flush=True)
                    return
                status = library.probing_agent_start(0)
                for i in range(20):
                    sum(range(1000))
                    time.sleep(0.01)
                if depth:
                    fork(depth - 1)
                os._exit(10 * (status == -errno.EOPNOTSUPP) + len(os.listdir('/proc/self/task')))
            def all_of_them():
                thread = threading.Thread(target=fork, args=(1,))
                thread.start()
                thread.join()
            """)
        with self.host(PYTHONWARNINGS="ignore", AGENT_OPTIONS="1") as host:
            with agent.Client(host.pid) as client:
                self.assertEqual(agent.NOTHING, client.evaluate("import errno" + fork)[0])
            self.assertEqual("11\n11\n", host.run("all_of_them()"))
            with agent.Client(host.pid) as client:
                self.assertEqual((agent.VALUE, "42", "", ""), client.evaluate("answer + 1"))


for case in (Evaluation, Times, Life, Embedded, Foreigners):
    p.for_each_interpreter(globals(), evaluating_interpreters)(case)
p.for_each_interpreter(globals(), p.free_threaded_interpreters)(WithoutGil)
del AgentCase, Evaluation, Times, Life, Embedded, Foreigners, WithoutGil, case

if __name__ == "__main__":
    unittest.main()
