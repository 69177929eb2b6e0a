# SPDX-License-Identifier: MIT
"""Threads that sample themselves: --source agent. What it records, what it leaves of the program as it was, and that it
needs nothing that a container refuses."""
import collections
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import probing_test as t
import truth_judge
from container_case import ContainerCase
from test_inject import need_injection

# A thread's own clock says how much it has burnt; lines of stdin are executed.
HOST = """
import os, signal, sys, threading, time
clock = getattr(time, "thread_time", time.process_time)
def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
def burn(seconds):
    end = clock() + seconds
    while clock() < end:
        leaf(500)
print("ready {}", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
OPENBLAS = os.path.join(os.environ.get("PROBING_UNPACKED") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "probing", "unpacked"), "libopenblas0-pthread")
TRUE_PROGRAMS = {name: (arguments, judge) for name, arguments, judge in truth_judge.PROGRAMS}


def caught_signals(pid, line="SigCgt"):
    with open("/proc/%d/status" % pid) as status:
        bits = int(re.search(r"%s:\s*([0-9a-f]+)" % line, status.read()).group(1), 16)
    return {number for number in range(1, 65) if bits >> (number - 1) & 1}


def timers(pid):
    """POSIX timers of a process. Source: proc_pid_timers(5)."""
    with open("/proc/%d/timers" % pid) as file:
        return file.read().count("notify:")


def cpu_times(pid):
    """Seconds that each thread has run. Source: sched-stats.rst, "/proc/<pid>/schedstat"."""
    found = {}
    for tid in map(int, os.listdir("/proc/%d/task" % pid)):
        with open("/proc/%d/task/%d/schedstat" % (pid, tid)) as file:
            found[tid] = int(file.read().split()[0]) / 1e9
    return found


class Host:
    """A program that executes lines."""

    def __init__(self, python=t.DEBIAN_PYTHON, source=HOST, prefix=(), **more):
        self.process = subprocess.Popen([*prefix, python, "-W", "ignore", "-u", "-c", source], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.pid = self.process.pid
        t.await_ready(self.process)

    def begin(self, code):
        code = textwrap.dedent(code)
        self.process.stdin.write("exec(%r)\n" % code if "\n" in code else code + "\n")
        self.process.stdin.flush()

    def end(self):
        """What it has printed meanwhile."""
        return t.await_done(self.process)

    def run(self, code):
        self.begin(code)
        return self.end()

    def close(self):
        """Ends it as its user would, and returns its exit status and stderr."""
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said


@contextlib.contextmanager
def hosted(**more):
    host = Host(**more)
    try:
        yield host
    finally:
        host.process.kill()
        host.process.communicate()


class AgentSource(t.Case):
    def setUp(self):
        need_injection()
        folder = t.scratch()  # and no perf events are needed
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    @contextlib.contextmanager
    def recorded(self, host, *arguments, hz=199):
        """Records while the block runs; afterwards `result` has a Recording and what the recorder said."""
        result = {}
        with t.recorder("--source", "agent", "--pid", host.pid, "-F", hz, "-o", "out.db", *arguments) as recorder:
            first = recorder.stderr.readline()
            self.assertRegex(first, r"^stack source: agent \(exact")
            yield result
            status, _, said = t.stop_politely(recorder, timeout_s=60)
        self.assertEqual(0, status, said)
        result["said"] = first + said
        result["recording"] = t.Recording("out.db")

    def assertExact(self, recording, least=0.95, least_samples=20):
        self.assertEqual("agent", recording.run["stack_source"])
        self.assertGreater(len(recording.samples), least_samples)
        verdicts = recording.verdicts()
        self.assertGreaterEqual(verdicts["exact"], least * sum(verdicts.values()), verdicts)

    def assertUnchanged(self, host, caught):
        """Nothing of it is left in the process."""
        t.wait_until(lambda: timers(host.pid) == 0, 20, "the end of its timers")
        t.wait_until(lambda: caught_signals(host.pid) == caught, 20, "the end of its signal handler")


@t.for_each_interpreter(globals())
class EachInterpreter(AgentSource):
    def test_samples_are_exact_and_add_up(self):
        t.need_interpreter(self.interpreter)
        if self.interpreter.version == "2.7" or self.interpreter.place is not t.MACHINE:
            self.skipTest("the agent is for CPython 3.6 and later, and this test for this machine")
        with hosted(python=self.interpreter.path) as host:
            t.probing("inject", host.pid, check=t.OK)
            caught = caught_signals(host.pid)
            with self.recorded(host) as result:
                host.run("import time; before = time.process_time(); burn(2); print(time.process_time() - before)")
                used = float(host.run("print(time.process_time() - before)"))
            self.assertUnchanged(host, caught)
            self.assertEqual((0, ""), host.close())
        recording = result["recording"]
        self.assertExact(recording)
        weight = sum(sample.weight for sample in recording.samples) / 1e9
        self.assertAlmostEqual(used, weight, delta=0.02 * used + 0.01)
        burning = [sample for sample in recording.samples if "burn" in recording.names(sample.stack)]
        self.assertGreater(len(burning), 0.95 * len(recording.samples))
        for sample in burning:
            names = [frame.name for frame in recording.python(sample.stack)]
            self.assertEqual("burn", [name for name in names if name in ("burn", "leaf")][0], names)
        ends = recording.ends()
        self.assertGreater(ends["complete"] + ends["completed"], 0.95 * sum(ends.values()), ends)


class Truth(AgentSource):
    """The programs that judge the other sources. Code that is gone when the recorder comes, and stacks of more frames than
    a record has, are approximate there, too."""
    HARD = ("deep", "reused")

    def test_nothing_exact_is_wrong(self):
        judged, verdicts = 0, {True: collections.Counter(), False: collections.Counter()}
        for interpreter in t.interpreters():
            # Debian's is 3.11: another build of the same sources is for the night.
            if interpreter.path is None or interpreter.place is not t.MACHINE or \
               interpreter.version not in ("3.8", "3.11", "3.12", "3.13") or \
               (interpreter.label == "3_11" and not os.environ.get("PROBING_NIGHTLY")):
                continue
            for name, (arguments, make_judge) in TRUE_PROGRAMS.items():
                with self.subTest(python=interpreter.label, program=name), t.scratch(), \
                     t.fixture(*arguments, python=interpreter.path) as target:
                    t.probing("inject", target.pid, check=t.OK)
                    recording = t.record_cpu(target, 1, 999, "out.db", "--source", "agent")
                    verdicts[name in self.HARD] += recording.verdicts()
                    counts, wrong = make_judge(recording, target.truth).judge()
                    self.assertEqual(0, counts["exact", False] + counts["verified", False], wrong[:3])
                    judged += counts["exact", True]
        self.assertGreater(judged, 200, "too few samples to judge")
        for is_hard, least in ((False, 0.9), (True, 0.4)):
            self.assertGreater(verdicts[is_hard]["exact"], least * sum(verdicts[is_hard].values()), verdicts)


class InHost(AgentSource):
    def sampled_host(self, **more):
        host = self.enter(hosted(**more))
        t.probing("inject", host.pid, check=t.OK)
        return host

    def enter(self, manager):
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value


class Harmless(InHost):
    """The program goes on as if nobody looked."""

    def test_system_calls_are_not_interrupted(self):
        """By libc itself: Python would try again."""
        host = self.sampled_host()
        host.run("""
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            class poll_fd(ctypes.Structure): _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]
            def wait_and_burn(n):
                failed = 0
                for _ in range(n):
                    burn(0.01)
                    failed += libc.poll(None, 0, 3) != 0
                    burn(0.01)
                    failed += libc.usleep(2000) != 0
                return failed
            """)
        with self.recorded(host, hz=999) as result:
            failed = int(host.run("print(wait_and_burn(70))"))
        self.assertEqual(0, failed)
        self.assertExact(result["recording"])

    def test_errno_is_kept(self):
        host = self.sampled_host()
        host.run("""
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            def check(seconds):
                ends, wrong = clock() + seconds, 0
                while clock() < ends:
                    ctypes.set_errno(77)
                    libc.qsort((ctypes.c_int * 20000)(*range(20000)), 20000, 4, libc.abs)
                    wrong += ctypes.get_errno() != 77
                return wrong
            """)
        with self.recorded(host, hz=999) as result:
            wrong = int(host.run("print(check(1.5))"))
        self.assertEqual(0, wrong)
        self.assertExact(result["recording"], 0.5)

    def test_faulthandler_wakeup_fd_and_asyncio(self):
        host = self.sampled_host()
        host.run("import asyncio, faulthandler, socket, tempfile")  # whose code vanishes before the recorder reads its name
        with self.recorded(host, hz=499) as result:
            said = host.run("""
                faulthandler.enable(tempfile.TemporaryFile())
                ours, theirs = socket.socketpair()
                theirs.setblocking(False)
                signal.set_wakeup_fd(theirs.fileno())
                got = []
                signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
                async def work():
                    loop = asyncio.get_running_loop()
                    loop.add_signal_handler(signal.SIGUSR2, got.append, 2)
                    for _ in range(100):
                        burn(0.01)
                        await asyncio.sleep(0.001)
                    os.kill(os.getpid(), signal.SIGUSR2)
                    await asyncio.sleep(0.1)
                    loop.remove_signal_handler(signal.SIGUSR2)
                asyncio.run(work())
                signal.set_wakeup_fd(theirs.fileno())
                os.kill(os.getpid(), signal.SIGUSR1)
                burn(0.5)
                ours.setblocking(False)
                print(got, list(ours.recv(100)), signal.SIGUSR1)
                """)
        self.assertRegex(said, r"^\[2, 1\] \[10\] ")
        self.assertExact(result["recording"])

    def test_children(self):
        """Started programs have neither timers nor the handler; a forked child without an agent has none either."""
        host = self.sampled_host()
        host.run("import json, subprocess")
        with self.recorded(host, hz=499) as result:
            caught = set(json.loads(host.run("""
                look = "import re; print(re.search(r'SigCgt:\\\\s*(.*)', open('/proc/self/status').read()).group(1))"
                bits = set()
                for _ in range(20):
                    burn(0.02)
                    bits.add(int(subprocess.run([sys.executable, "-c", look], stdout=subprocess.PIPE, check=True).stdout, 16))
                print(json.dumps([number for number in range(33, 65) for b in bits if b >> (number - 1) & 1]))
                """)))
            timers_in_children = host.run("""
                counts = set()
                for _ in range(20):
                    burn(0.02)
                    pid = os.fork()
                    if pid == 0:
                        burn(0.05)
                        os._exit(open("/proc/self/timers").read().count("ID:"))
                    counts.add(os.waitpid(pid, 0)[1])
                print(counts)
                """)
        self.assertEqual(set(), caught)
        self.assertEqual("{0}\n", timers_in_children)
        self.assertExact(result["recording"])

    def test_followed_children_are_sampled(self):
        host = self.sampled_host()
        t.probing("config", host.pid, "follow_forks=on", check=t.OK)
        with self.recorded(host, hz=199) as result:
            host.run("""
                def in_the_child():
                    while "ID:" not in open("/proc/self/timers").read(): leaf(500)
                    burn(2)
                pid = os.fork()
                if pid == 0:
                    in_the_child()
                    os._exit(0)
                print(os.waitpid(pid, 0))
                """)
        recording = result["recording"]
        in_child = [sample for sample in recording.samples if "in_the_child" in recording.names(sample.stack)]
        self.assertGreater(len(in_child), 100)
        self.assertGreater(sum(sample.verdict == "exact" for sample in in_child), 0.9 * len(in_child))
        self.assertNotIn(host.pid, {sample.pid for sample in in_child})

    def test_exec_ends_it(self):
        host = self.sampled_host()
        with t.recorder("--source", "agent", "--pid", host.pid, "-F", 499, "-o", "out.db") as recorder:
            recorder.stderr.readline()
            host.run("burn(1)")
            host.begin("os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(1); print(open(\"/proc/self/timers\").read().count(\"ID:\"))'])")
            self.assertEqual("0\n", host.process.stdout.readline())
            self.assertEqual(0, host.process.wait(60))
            self.assertEqual(0, recorder.wait(60), recorder.stderr.read())
        self.assertExact(t.Recording("out.db"))

    def test_threads_that_come_and_go(self):
        host = self.sampled_host()
        with self.recorded(host, hz=499) as result:
            used = float(host.run("""
                def short(): burn(0.02)
                def long(): burn(0.4)
                before = time.process_time()
                for _ in range(4):
                    threads = [threading.Thread(target=f) for f in [long] + 20 * [short]]
                    for thread in threads: thread.start()
                    for thread in threads: thread.join()
                print(time.process_time() - before)
                """))
            t.wait_until(lambda: timers(host.pid) == 1, 5, "the end of the threads' timers")
        recording = result["recording"]
        long = sum(s.weight for s in recording.samples if "long" in recording.names(s.stack)) / 1e9
        self.assertAlmostEqual(1.6, long, delta=0.2)
        everything = sum(sample.weight for sample in recording.samples) / 1e9
        self.assertAlmostEqual(used, everything, delta=0.05 * used + 0.05)

    def test_the_program_takes_the_signal(self):
        """Then it is the program's, and the recorder says so."""
        host = self.sampled_host()
        with self.recorded(host, hz=499) as result:
            host.run("burn(1)")
            (number,) = {n for n in caught_signals(host.pid) if n > signal.SIGRTMIN}
            host.run("count = []; signal.signal(%d, lambda *_: count.append(1))" % number)
            t.wait_until(lambda: timers(host.pid) == 0, 5, "the end of its timers")
            host.run("count.clear(); burn(0.5)")
            self.assertEqual("0\n", host.run("print(len(count))"))
            host.run("os.kill(os.getpid(), %d); burn(0.1)" % number)
            self.assertEqual("1\n", host.run("print(len(count))"))
        self.assertIn("sampling ended in 1 process: the program uses the signal of the agent itself now", result["said"])
        self.assertExact(result["recording"])
        self.assertEqual((0, ""), host.close())

    def test_a_thread_that_blocks_the_signal(self):
        host = self.sampled_host()
        host.run("signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))")
        with self.recorded(host, hz=499) as result:
            host.run("burn(0.7)")
            self.assertEqual("set()\n", host.run("print(signal.sigpending() or set())"))
        self.assertIn("1 thread blocks the signal of the agent", result["said"])
        host.run("signal.pthread_sigmask(signal.SIG_UNBLOCK, range(1, signal.NSIG)); burn(0.2)")
        self.assertEqual((0, ""), host.close())

    def test_a_killed_recorder_leaves_nothing(self):
        host = self.sampled_host()
        caught = caught_signals(host.pid)
        for _ in range(3):
            with t.recorder("--source", "agent", "--pid", host.pid, "-F", 499, "-o", "out.db") as recorder:
                recorder.stderr.readline()
                host.run("burn(0.3)")
                t.wait_until(lambda: timers(host.pid) == 1, 20, "its timer")
                recorder.kill()
                recorder.wait()
            self.assertUnchanged(host, caught)
            host.run("burn(0.1)")
        os.remove("out.db")
        with self.recorded(host) as result:
            host.run("burn(0.5)")
        self.assertExact(result["recording"])
        self.assertEqual((0, ""), host.close())

    def test_a_foreign_signal_ends_the_program_as_ever(self):
        host = self.sampled_host()
        with t.recorder("--source", "agent", "--pid", host.pid, "-F", 199, "-o", "out.db") as recorder:
            recorder.stderr.readline()
            host.run("burn(0.3)")
            (number,) = {n for n in caught_signals(host.pid) if n > signal.SIGRTMIN}
            os.kill(host.pid, number)
            self.assertEqual(-number, host.process.wait(60))
            recorder.wait(60)

    def test_pauses(self):
        host = self.sampled_host()
        with self.recorded(host, "--paused", hz=199) as result:
            pass  # a recording from a pause on begins without timers
        self.assertEqual(0, len(result["recording"].samples))
        self.assertEqual(0, timers(host.pid))

    def test_detach_meanwhile(self):
        host = self.sampled_host()
        caught = caught_signals(host.pid)
        with self.recorded(host, hz=499) as result:
            host.run("burn(0.5)")
            t.probing("detach", host.pid, check=t.OK)
            self.assertUnchanged(host, caught)
            host.run("burn(0.1)")
        self.assertExact(result["recording"])


# A result that does not depend on the moment: of numbers, strings, containers, closures and generated code.
ALLOCATING = """
import hashlib
def work(seed):
    numbers, kept, digest = seed * 7919 + 1, [], hashlib.sha256()
    for i in range(60):
        numbers = (numbers * 1103515245 + 12345) % 2147483648
        kept.append({str(k): bytes([k % 256]) * (numbers % 5000 + 1) for k in range(numbers % 40)})
        if i % 20 == 0:
            scope = {}
            exec("def made(x): return [x + %d for _ in range(100)]" % i, scope)
            kept.append(scope["made"](seed))
        if len(kept) > 10:
            digest.update(repr(sorted(map(repr, kept.pop(numbers % 10)))).encode())
    return digest.hexdigest()
def all_results(n):
    results = [None] * n
    def run(seed): results[seed] = work(seed)
    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(n)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return results
"""


class Programs(InHost):
    """Libraries and habits that signals could disturb: each computes, sampled, what it computes without."""

    def assertSame(self, host, expression, hz=999, least=0.9, assembly=None):
        """`expression` has the same value before and during the recording. Stacks end in functions whose name begins
        with `assembly`, which have no unwind information."""
        before = host.run("print(%s)" % expression)
        with self.recorded(host, hz=hz) as result:
            self.assertEqual(before, host.run("print(%s)" % expression))
            host.run("burn(0.3)")
        recording = result["recording"]
        ended = collections.Counter(sample.verdict for sample in recording.samples if assembly and sample.stack_end == "no unwind info"
                                    and recording.path(sample.stack)[-1].name.startswith(assembly))
        verdicts = recording.verdicts() - ended
        self.assertGreaterEqual(verdicts["exact"] + verdicts["no_python"], least * sum(verdicts.values()), verdicts)
        self.assertGreater(verdicts["exact"], 0)  # on a busy machine time slices may end between two clock ticks
        self.assertEqual((0, ""), host.close())
        return recording

    def test_a_hundred_threads_that_allocate(self):
        """On small stacks: a signal's frame, with the processor's vector state, has room besides."""
        host = self.sampled_host()
        host.run(ALLOCATING + "threading.stack_size(131072)")
        self.assertSame(host, "all_results(100)", least=0.7)  # code that was made at once may be gone when the recorder comes

    def test_multiprocessing(self):
        host = self.sampled_host()
        host.run("""
            import math, multiprocessing
            def square(n):
                burn(0.01)
                return n * n
            def by_pools():
                found = []
                for method, function in ("fork", square), ("spawn", math.factorial), ("forkserver", math.factorial):
                    with multiprocessing.get_context(method).Pool(3) as pool:
                        found.append(pool.map(function, range(20)))
                        pool.close()
                        pool.join()
                queue = multiprocessing.get_context("fork").Queue()
                child = multiprocessing.get_context("fork").Process(target=lambda: (burn(0.05), queue.put(7)))
                child.start()
                found += [queue.get(), child.join(), child.exitcode]
                return found
            """)
        self.assertSame(host, "by_pools()")

    def test_threads_of_blas(self):
        """OpenBLAS' own pool, in which Debian's numpy computes where that library is."""
        folders = glob.glob(os.path.join(OPENBLAS, "usr", "lib", "*", "openblas-pthread"))
        if not folders:
            self.skipTest("%s is not there: scripts/packages test" % OPENBLAS)
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("OpenBLAS has no pool on one processor")
        host = self.sampled_host(env=dict(os.environ, LD_LIBRARY_PATH=folders[0], OPENBLAS_NUM_THREADS="4"))
        if "no" in host.run("""
                try:
                    import numpy
                    some = numpy.random.RandomState(1).rand(500, 500)
                    some @ some
                except ImportError:
                    print("no")
                """):
            self.skipTest("no numpy")
        host.run("""
            def products():
                total = some
                for _ in range(30): total = (total @ some) / 250
                return total.tobytes().hex()[:4000], len(os.listdir("/proc/self/task")) > 3  # itself, and the agent's two
            """)
        self.assertIn("True", host.run("print(products()[1], 'libopenblas' in open('/proc/self/maps').read())").split())
        recording = self.assertSame(host, "products()", hz=499, assembly="dgemm_kernel_")
        of_pool = [sample for sample in recording.samples if sample.tid != host.pid]
        self.assertGreater(len(of_pool), 0)
        self.assertEqual({"no_python"}, {sample.verdict for sample in of_pool})

    def test_threads_of_openmp(self):
        host = self.sampled_host(env=dict(os.environ, OMP_NUM_THREADS="4"))
        if "no" in host.run("""
                try:
                    import torch
                    torch.manual_seed(1)
                    some = torch.rand(1 << 20)
                    torch.set_num_threads(4)
                except ImportError:
                    print("no")
                """):
            self.skipTest("no torch")
        host.run("""
            def sums():
                total = some
                for _ in range(60): total = torch.sin(total) + some * 0.5
                return float(total.sum()), len(os.listdir("/proc/self/task")) > 4
            """)
        self.assertSame(host, "sums()", hz=499)

    def test_its_own_timers_and_signals(self):
        """The highest real-time signal is the program's already, and it has timers of its own."""
        host = self.sampled_host()
        host.run("""
            got = []
            signal.signal(signal.SIGRTMAX, lambda *_: got.append("highest"))
            signal.signal(signal.SIGPROF, lambda *_: got.append("profile"))
            signal.signal(signal.SIGALRM, lambda *_: got.append("alarm"))
            """)
        with self.recorded(host, hz=499) as result:
            t.wait_until(lambda: timers(host.pid) == 1, 5, "its timer")
            host.run("""
                signal.setitimer(signal.ITIMER_PROF, 0.02, 0.02)
                while got.count("profile") < 5: burn(0.02)
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.alarm(1)
                while "alarm" not in got: burn(0.02)
                for _ in range(50):
                    burn(0.005)
                    os.kill(os.getpid(), signal.SIGRTMAX)
                burn(0.01)
                """)
            self.assertEqual("50\n", host.run("print(got.count('highest'))"))
        self.assertNotIn("uses the signal", result["said"])
        self.assertExact(result["recording"], 0.9, 0)
        self.assertEqual((0, ""), host.close())

    def test_long_system_calls(self):
        """Threads that have run and then wait for long, in calls that end with EINTR if a signal comes."""
        host = self.sampled_host()
        host.run("""
            import ctypes, select
            libc = ctypes.CDLL(None, use_errno=True)
            def waits():
                failed, hears, says = [], *os.pipe()
                with select.epoll() as epoll:
                    epoll.register(hears, select.EPOLLIN)
                    calls = {"read": lambda: libc.read(hears, ctypes.create_string_buffer(1), 1) - 1,
                             "epoll_wait": lambda: libc.epoll_wait(epoll.fileno(), ctypes.create_string_buffer(64), 1, 300),
                             "nanosleep": lambda: libc.nanosleep(ctypes.byref((ctypes.c_long * 2)(0, 300000000)), None),
                             "select": lambda: libc.select(0, None, None, None, ctypes.byref((ctypes.c_long * 2)(0, 300000))),
                             "pause of a mutex": lambda: 0 if lock.acquire(timeout=0.3) else 0}
                    def run(name):
                        for _ in range(3):
                            burn(0.02)
                            if calls[name]() != 0: failed.append((name, ctypes.get_errno()))
                    lock = threading.Lock()
                    lock.acquire()
                    threads = [threading.Thread(target=run, args=(name,)) for name in calls]
                    for thread in threads: thread.start()
                    for _ in range(3):
                        burn(0.2)
                        libc.usleep(200000)
                    for thread in threads:
                        if thread is not threads[0]: thread.join()
                    os.write(says, b"abc")
                    threads[0].join()
                return failed
            """)
        with self.recorded(host, hz=999) as result:
            self.assertEqual("[]\n", host.run("print(waits())"))
        self.assertExact(result["recording"], 0.9, 0)

    def test_the_rate_is_said(self):
        """What the kernel's clock tick allows, and that the sum is right all the same."""
        host = self.sampled_host()
        tick_hz = round(1 / time.clock_getres(6))  # CLOCK_MONOTONIC_COARSE
        for hz, is_more in (10000, True), (19, False):
            said = t.probing("record", "--source", "agent", "--pid", host.pid, "-F", hz, "-d", 0.2, "-o", "%d.db" % hz, check=t.OK).stderr
            self.assertEqual(is_more, "at most %d samples per second of CPU time" % tick_hz in said, said)
        with self.recorded(host, hz=10000) as result:
            used = float(host.run("before = time.process_time(); burn(1); print(time.process_time() - before)"))
        weight = sum(sample.weight for sample in result["recording"].samples) / 1e9
        self.assertAlmostEqual(used, weight, delta=0.05 * used + 0.05)


class Refused(AgentSource):
    def test_who_has_no_agent_is_told(self):
        with hosted() as host:
            said = t.probing("record", "--source", "agent", "--pid", host.pid, "-d", 1, "-o", "out.db", check=t.FAILED)
            self.assertRegex(said.stderr, "needs the agent in process %d: run `probing inject %d`" % (host.pid, host.pid))
            self.assertEqual([], os.listdir("."))

    def test_one_recorder_at_a_time(self):
        with hosted() as host:
            t.probing("inject", host.pid, check=t.OK)
            with self.recorded(host):
                said = t.probing("record", "--source", "agent", "--pid", host.pid, "-d", 1, "-o", "b.db", check=t.FAILED)
                self.assertIn("another recorder samples it already", said.stderr)
                host.run("burn(0.3)")

    def test_what_it_cannot_do(self):
        for more, says in ((["--", "true"], "PROBING=1"),
                           (["--event", "page-faults", "--pid", 1], "has no other events"),
                           (["--idle", "--pid", 1], "--idle takes --source poll")):
            with self.subTest(more):
                self.assertIn(says, t.probing("record", "--source", "agent", *more, check=t.USAGE).stderr)


# Each thread waits for one thing, by the clock, and again.
WAITING = """
import queue, socket, threading, time
lock, full, pair = threading.Lock(), queue.Queue(), socket.socketpair()
def holder():
    while True:
        with lock: time.sleep(0.2)
        time.sleep(0.05)
def takes_lock():
    while True:
        with lock: pass
        time.sleep(0.05)
def gets_from_queue():
    while True: full.get()
def receives():
    while True: pair[0].recv(1)
def sleeps():
    while True: time.sleep(0.5)
def feeds():
    while True:
        time.sleep(0.3)
        full.put(1)
        pair[1].send(b"x")
def burns():
    clock = getattr(time, "thread_time", time.process_time)
    while True:
        began, end = time.monotonic(), clock() + 0.02
        while clock() < end: pass
        time.sleep(time.monotonic() - began)  # as long as it ran, or waited for the processor
for step in (holder, takes_lock, gets_from_queue, receives, sleeps, feeds, burns):
    threading.Thread(target=step, daemon=True).start()
print("ready {}", flush=True)
time.sleep(1000)
"""


class Container(ContainerCase, AgentSource):
    def test_record_and_flamegraph(self):
        if sys.version_info < (3, 9):
            self.skipTest("subprocess changes users from 3.9 on")
        with hosted(prefix=self.filter, env=self.environment(PROBING="1"), cwd=self.folder, **self.user) as host:
            t.wait_until(lambda: b"@probing-%d" % host.pid in open("/proc/net/unix", "rb").read(), 10, "its agent")
            host.run("threading.Thread(target=burn, args=(1000,), daemon=True).start()")
            for source in ("agent", "auto"):
                with self.subTest(source):
                    said = self.probing("record", "--source", source, "--pid", host.pid, "-d", 3, "-F", 199, "-o", source + ".db")
                    self.assertRegex(said.splitlines()[0], r"^stack source: agent \(")
                    if source == "auto":
                        self.assertIn("seccomp", said.splitlines()[0])
                    recording = t.Recording(os.path.join(self.folder, source + ".db"))
                    self.assertExact(recording, 0.8, 5)  # in a fixed time, on whatever runs besides
                    self.assertIn("leaf", recording.all_names())
                    ends = recording.ends()
                    self.assertGreater(ends["complete"] + ends["completed"], 0.95 * sum(ends.values()), ends)
            self.probing("flamegraph", "auto.db", "-o", "out.svg")
            with open(os.path.join(self.folder, "out.svg")) as picture:
                self.assertIn("leaf", picture.read())

    def test_waits(self):
        """What each thread waits for, and how long, without a right to see its switches."""
        if sys.version_info < (3, 9):
            self.skipTest("subprocess changes users from 3.9 on")
        with hosted(source=WAITING, prefix=self.filter, env=self.environment(PROBING="1"), cwd=self.folder, **self.user) as host:
            before = cpu_times(host.pid)
            with subprocess.Popen([*self.filter, self.binary, "record", "--mode", "wall", "--pid", str(host.pid), "-o", "waits.db"], text=True,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.folder, env=self.environment(),
                                  **self.user) as recorder:
                try:
                    said = ""
                    while "Ctrl-C ends it" not in said:
                        line = recorder.stderr.readline()
                        self.assertNotEqual("", line, said)
                        said += line
                    first = cpu_times(host.pid)
                    time.sleep(3)
                    last = cpu_times(host.pid)
                    recorder.send_signal(signal.SIGINT)
                    said += recorder.stderr.read()
                    self.assertEqual(0, recorder.wait(60), said)
                finally:
                    recorder.kill()
            after = cpu_times(host.pid)
        self.assertRegex(said.splitlines()[0], r"^stack source: agent \(.*seccomp")
        self.assertIn("context switches are counted, not recorded", said)
        with contextlib.closing(t.connect(os.path.join(self.folder, "waits.db"))) as db:
            rows = db.execute("SELECT stack, state, weight / 1e9, tid, verdict FROM sample").fetchall()
        recording = t.Recording(os.path.join(self.folder, "waits.db"))
        recorded = sum(row[2] for row in rows if row[3] == host.pid)  # the main thread sleeps; a busy machine may end it late
        self.assertGreater(recorded, 2.7)
        for step, state, name, least, most in (
                ("takes_lock", "lock", "acquire", 0.4, 1), ("gets_from_queue", "lock", "wait", 0.8, 1),
                ("receives", "io", "recv", 0.8, 1), ("sleeps", "sleep", "sleep", 0.7, 1), ("burns", "sleep", "sleep", 0.15, 0.7),
                ("burns", "running", "burns", None, None)):
            with self.subTest(step, state=state):
                found = [row for row in rows if row[0] and step in recording.names(row[0])]
                tid, = {row[3] for row in found}
                whole = sum(row[2] for row in rows if row[3] == tid)
                self.assertAlmostEqual(recorded, whole, delta=0.1 * recorded)
                its = [row for row in found if row[1] == state]
                time_s = sum(row[2] for row in its)
                if state == "running":  # by the kernel's clock of the thread, within the recording and around it
                    self.assertGreater(time_s, 0.95 * (last[tid] - first[tid]) - 0.02)
                    self.assertLess(time_s, 1.05 * (after[tid] - before[tid]) + 0.02)
                else:
                    self.assertGreater(time_s / whole, least, rows)
                    self.assertLessEqual(time_s / whole, most)
                self.assertTrue(any(name in part for row in its for part in recording.names(row[0])),
                                [recording.names(row[0]) for row in its][:3])
        report = subprocess.run([t.BINARY, "report", "--by", "wait", os.path.join(self.folder, "waits.db")], text=True,
                                stdout=subprocess.PIPE, check=True).stdout
        self.assertRegex(report, r"receives · \[io\] \S*recv\S* \[unix socket\]")
        self.assertRegex(report, r"sleeps · \[sleep\]")

