# SPDX-License-Identifier: MIT
"""probing backtrace: what it shows, of whom, and that those it looks at never notice."""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import probing_test as t
from terminal import Terminal

N_KILLED = int(os.environ.get("PROBING_KILLED") or 300)
ORDINARY_USER = 65534

Thread = t.collections.namedtuple("Thread", "tid name python_name state verdict stack_end interpreter "
                                          "holds_gil waits_for_gil gc idle stopped_us not_stopped wchan wait frames")
Frame = t.collections.namedtuple("Frame", "kind function file line module")


class Backtrace:
    """What probing backtrace --json says."""

    def __init__(self, *arguments, **more):
        done = t.probing("backtrace", "--json", *arguments, check=t.OK, **more)
        self.message = done.stderr
        self.all = json.loads(done.stdout)
        self.threads = [Thread(**dict(thread, frames=[Frame(**frame) for frame in thread["frames"]]))
                        for thread in self.all["threads"]]

    def named(self, name):
        found = [thread for thread in self.threads if thread.name == name]
        if len(found) != 1:
            raise AssertionError("%d threads are named %s: %s" % (
                len(found), name, [thread.name for thread in self.threads]))
        return found[0]


def python(thread):
    return [[frame.function, frame.line] for frame in thread.frames if frame.kind == "python"]


def functions(thread):
    """Innermost first."""
    return [frame.function for frame in thread.frames]


def task(pid, tid, file):
    with open("/proc/%d/task/%d/%s" % (pid, tid, file)) as text:
        return text.read()


def states(pid):
    """State letters of all threads, by tid."""
    found = {}
    for tid in map(int, os.listdir("/proc/%d/task" % pid)):
        with contextlib.suppress(OSError):
            found[tid] = task(pid, tid, "stat").rsplit(")", 1)[1].split()[0]
    return found


def rests(pid):
    """Whether all threads sleep at one moment: none ran between two looks at them."""
    def look():
        found = {}
        for tid in states(pid):
            with contextlib.suppress(OSError):
                found[tid] = re.findall(r"(?m)^(?:State|(?:non)?voluntary_ctxt_switches):\s*(\w+)", task(pid, tid, "status"))
        return found
    before = look()
    return {found[0] for found in before.values()} == {"S"} and before == look()


def await_rest(pid):
    """Threads that go on after a look run for a moment, before they wait again."""
    t.wait_until(lambda: rests(pid), 40, "waits of all threads")


def await_functions(pid, wanted):
    """Until each thread that is named is in its function: it has its name on the way there. Nobody who waits there goes on by itself."""
    def are_there():
        found = {thread.name: functions(thread) for thread in Backtrace(pid).threads}
        return all(function in found.get(name, ()) for name, function in wanted.items())
    t.wait_until(are_there, 40, "threads in %s" % ", ".join(sorted(set(wanted.values()))))


class Case(t.Case):
    def setUp(self):
        """Nothing is sampled here: the right to perf_event_open does not matter."""
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)


@t.for_each_interpreter(globals(), t.all_interpreters)
class Blocked(Case):
    """What threads wait for, against what they themselves know."""
    ONE_FOR_USERS = True

    @classmethod
    def setUpClass(cls):
        t.need_interpreter(cls.interpreter)
        with t.fixture("blocked.py", python=cls.interpreter.path, place=cls.interpreter.place) as started:
            cls.truth = started.truth
            cls.pid = started.pid

            def look(*arguments):
                await_rest(started.pid)
                return Backtrace(started.pid, *arguments)
            # The second look meets calls that the first one has interrupted.
            cls.looks = [look(), look()]
            cls.one = look(cls.looks[0].named("relocking").tid)
            cls.memory = look("--no-stop")
            await_rest(started.pid)
            cls.text = t.probing("backtrace", started.pid, check=t.OK).stdout

    def waits(self, name):
        """What was interrupted goes on as restart_syscall. Where libc makes all calls in one place, nothing says which it was."""
        found = [look.named(name).wait for look in self.looks + [self.memory]]
        return found[:1] + [wait for wait in found[1:] if wait["call"] != "restart_syscall"]

    def test_descriptors(self):
        for name, wanted in self.truth["waits"].items():
            for wait in self.waits(name):
                with self.subTest(name):
                    found = [[one["descriptor"], one["target"]] for one in wait["descriptors"]]
                    self.assertEqual(wanted, found)
                    self.assertEqual(0, wait["more_descriptors"])
                    self.assertIsNone(wait["child"])

    def test_names_of_calls(self):
        for name, call in (("accepting", "accept"), ("receiving", "recv"), ("reading", "read"), ("selecting", "select"),
                           ("polling", "poll"), ("watching", "epoll"), ("locking", "futex"), ("joining", "wait4"),
                           ("sleeping", "nanosleep|select")):
            for wait in self.waits(name):
                self.assertRegex(wait["call"], call, name)

    def test_locks(self):
        for wait in self.waits("flocking"):
            self.assertEqual(("file lock", self.pid), (wait["lock"], wait["holder"]))
        for wait in self.waits("locking") + self.waits("getting"):
            self.assertEqual(("threading.Lock", None), (wait["lock"], wait["holder"]))
            self.assertTrue(wait["lock_address"])
        for wait in self.waits("relocking") + [self.one.threads[0].wait]:
            if self.interpreter.version == "2.7": # written in Python
                self.assertEqual("threading.Lock", wait["lock"])
                continue
            self.assertEqual(("threading.RLock", 2), (wait["lock"], wait["depth"]))
            self.assertEqual(self.looks[0].named("holding").tid, wait["holder"])

    def test_child(self):
        for wait in self.waits("joining"):
            self.assertEqual(self.truth["child"], wait["child"])

    def test_in_words(self):
        for name, wanted in self.truth["waits"].items():
            if name == "polling": # has been interrupted: see waits()
                continue
            self.assertRegex(self.text, r'"%s"[^\n]*\n  waits in \w+ for descriptor %d: ' % (name, wanted[0][0]))
        self.assertRegex(self.text, r'"joining"[^\n]*\n  waits in wait\w+ for process %d\n' % self.truth["child"])
        self.assertRegex(self.text, r'"sleeping"[^\n]*\n  \S+  [[(]')


class BlockedElsewhere(Case):
    def test_a_file_that_another_process_has_locked(self):
        code = ("import fcntl, time\nfile = open('locked', 'w')\nfcntl.flock(file, fcntl.LOCK_EX)\n"
                "print('ready {}', flush=True)\ntime.sleep(1000)")
        with t.target([t.DEBIAN_PYTHON, "-c", code]) as holder:
            waiting = subprocess.Popen(["flock", "locked", "true"])
            self.addCleanup(waiting.wait)
            self.addCleanup(waiting.kill)
            t.wait_until(lambda: "lock" in task(waiting.pid, waiting.pid, "wchan"), what="a wait for the lock")
            look = Backtrace(waiting.pid)
            wait = look.threads[0].wait
            self.assertEqual("file lock", wait["lock"])
            self.assertTrue(wait["descriptors"][0]["target"].endswith("/locked"), wait)
            self.assertEqual(holder.pid, wait["holder"])

    def test_the_holder_of_a_mutex(self):
        code = ("import ctypes, threading, time\n"
                "libc = ctypes.CDLL(None)\n"
                "mutex = ctypes.create_string_buffer(64)\n"
                "libc.pthread_mutex_lock(mutex)\n"
                "threading.Thread(target=libc.pthread_mutex_lock, args=(mutex,), daemon=True).start()\n"
                "print('ready {}', flush=True)\ntime.sleep(1000)")
        with t.target([t.DEBIAN_PYTHON, "-c", code]) as started:
            await_rest(started.pid)
            look = Backtrace(started.pid)
            wait = [thread.wait for thread in look.threads if thread.tid != started.pid][0]
            self.assertEqual(("mutex", started.pid), (wait["lock"], wait["holder"]))

    def test_the_holder_of_the_gil(self):
        with t.fixture("gil.py") as started:
            def waits():
                look = Backtrace(started.pid)
                return [thread.wait for thread in look.threads if thread.waits_for_gil and thread.wait]
            found = []
            t.wait_until(lambda: found.extend(wait for wait in waits() if wait["holder"]) or found, 40, "a holder of the GIL")
            self.assertEqual("GIL", found[0]["lock"])


@t.for_each_interpreter(globals(), t.all_interpreters)
class Parked(Case):
    """Stacks that stand still, against what the interpreter knows of them."""
    ONE_FOR_USERS = True

    @classmethod
    def setUpClass(cls):
        t.need_interpreter(cls.interpreter)
        with t.fixture("parked.py", python=cls.interpreter.path, place=cls.interpreter.place) as started:
            cls.pid, cls.truth = started.pid, started.truth

            def look(*arguments):
                await_rest(cls.pid)
                return Backtrace(cls.pid, *arguments)
            cls.whole = look()
            cls.with_interpreter = look("--interpreter-frames")
            cls.running = look("--no-stop")
            cls.tid = cls.whole.named("sorting").tid
            cls.one = look(cls.tid, "--no-native")
            await_rest(cls.pid)
            cls.text = t.probing("backtrace", cls.pid, check=t.OK).stdout
            await_rest(cls.pid)

    def test_process(self):
        self.assertEqual(self.pid, self.whole.all["pid"])
        self.assertIn("parked.py", self.whole.all["command"])
        self.assertTrue(self.whole.all["python"].startswith(self.interpreter.version + "."), self.whole.all["python"])
        self.assertEqual("", self.whole.message)
        self.assertEqual(len(self.truth["threads"]) + 1, len(self.whole.threads))
        self.assertEqual(self.pid, self.whole.threads[0].tid)

    def test_python_frames_and_lines(self):
        for name, frames in self.truth["threads"].items():
            with self.subTest(name):
                self.assertEqual(frames, python(self.whole.named(name)))

    def test_every_stack_is_exact_and_whole(self):
        for thread in self.whole.threads:
            with self.subTest(thread.name):
                self.assertEqual(("exact", "S", None), (thread.verdict, thread.state, thread.not_stopped))
                self.assertIn(thread.stack_end, ("complete", "completed"))
                self.assertGreater(thread.stopped_us, 0)

    def test_nobody_holds_the_gil(self):
        for thread in self.whole.threads + self.running.threads:
            self.assertEqual((0, False, False, False), (thread.interpreter, thread.holds_gil, thread.waits_for_gil,
                                                        thread.gc), thread.name)
            self.assertTrue(thread.idle, thread.name)

    def test_native_frames_stand_between(self):
        for name, caller, native, callee in self.truth["between"]:
            with self.subTest(name):
                names = functions(self.whole.named(name))
                between = names[names.index(callee) + 1:names.index(caller)]
                self.assertTrue(any(t.same_name(each, native) for each in between), between)

    def test_native_frames_have_their_module(self):
        calling = self.whole.named("calling")
        self.assertIn("native_lib.so", [os.path.basename(frame.module) for frame in calling.frames
                                        if frame.function == "call_back"])
        files = {os.path.basename(frame.file) for frame in calling.frames if frame.kind == "python"}
        self.assertIn("parked.py", files)

    def test_interpreter_frames_on_demand(self):
        for thread in self.with_interpreter.threads:
            folded = self.whole.named(thread.name)
            self.assertEqual(python(folded), python(thread))
            self.assertGreater(len(thread.frames), len(folded.frames))
        main = functions(self.with_interpreter.threads[0])
        self.assertIn("_start", main)
        self.assertNotIn("_start", functions(self.whole.threads[0]))

    def test_from_memory_alone(self):
        for name, frames in self.truth["threads"].items():
            with self.subTest(name):
                thread = self.running.named(name)
                self.assertEqual(frames, python(thread))
                self.assertEqual({"python"}, {frame.kind for frame in thread.frames})
                self.assertEqual(("python", None), (thread.verdict, thread.stopped_us))
                self.assertEqual("--no-stop", thread.not_stopped)

    def test_one_thread_without_native_frames(self):
        self.assertEqual([self.tid], [thread.tid for thread in self.one.threads])
        self.assertEqual(self.truth["threads"]["sorting"], python(self.one.threads[0]))
        self.assertEqual({"python"}, {frame.kind for frame in self.one.threads[0].frames})

    def test_text(self):
        head, *threads = self.text.split("\n\n")
        build = "" if t.has_gil(self.interpreter) else r" \(free-threaded\)"
        self.assertRegex(head, r"^Process %d, Python %s[^\s:]+%s: .*parked\.py" % (self.pid, re.escape(self.interpreter.version), build))
        self.assertEqual(len(self.whole.threads), len(threads))
        block = next(block for block in threads if block.startswith('Thread %d "sorting", idle' % self.tid))
        self.assertRegex(block, r'^Thread \d+ "sorting", idle( in \w[\w.]*)?\n')
        self.assertIn("\n  waits for a threading.Lock\n", block)
        shown = [line for line in block.splitlines()[2:] if "  [" not in line]
        files = [os.path.basename(f.file) for f in self.one.threads[0].frames]
        self.assertEqual(["  %s  (%s:%d)" % (name, file, line) for (name, line), file in
                          zip(self.truth["threads"]["sorting"], files)], shown)
        self.assertRegex(block, r"\n  sorted  \[\S+\]")
        self.assertNotIn("\033", self.text)


@t.for_each_interpreter(globals())
class Busy(Case):
    """Threads that are stopped wherever they happen to be."""
    ONE_FOR_USERS = True

    @t.statistical(
        "60 looks must meet a holder of the GIL and one who waits for it, and few functions being entered", 0.0005)
    def test_each_thread_is_in_its_function(self):
        t.need_interpreter(self.interpreter)
        seen, gil = t.collections.Counter(), t.collections.Counter()
        with t.fixture("threads.py", "--busy", 3, "--idle", 2, python=self.interpreter.path,
                       place=self.interpreter.place) as started:
            await_functions(started.pid, dict(started.truth["threads"], **{"idle-0": "wait_for", "idle-1": "wait_for"}))
            await_idle(started.pid, 2)
            for _ in range(20):
                taken = Backtrace(started.pid)
                for name, function in started.truth["threads"].items():
                    thread = taken.named(name)
                    self.assertIn(function, functions(thread), thread)
                    seen[thread.verdict] += 1
                    gil[thread.holds_gil, thread.waits_for_gil] += 1
                for i in range(2):
                    idle = taken.named("idle-%d" % i)
                    self.assertIn("wait_for", functions(idle))
                    self.assertEqual((False, False, True), (idle.holds_gil, idle.waits_for_gil, idle.idle))
            if t.has_gil(self.interpreter):
                t.wait_until(lambda: '", waits for the GIL\n' in t.probing("backtrace", started.pid, check=t.OK).stdout,
                             20, "backtrace to show a thread that waits for the GIL")
        if t.has_gil(self.interpreter):
            # Of three threads that compute, one runs and two wait; each is looked at in a moment of its own.
            self.assertLessEqual(set(gil), {(True, False), (False, True), (False, False)})
            self.assertGreater(gil[True, False], 0, "of 60 looks at threads that compute, one must meet the GIL's holder")
            self.assertGreater(gil[False, True], 0, "and one must meet somebody who waits for it")
        else:
            self.assertEqual({(False, False)}, set(gil))
        # An evaluation that is being entered or left is not linked yet, or no more.
        self.assertNearlyAll(seen["exact"], sum(seen.values()), "exact; %s" % seen)


@t.for_each_interpreter(globals())
class Hanging(Case):
    """One thread in C for good, and one that cannot be stopped."""
    ONE_FOR_USERS = True

    def test_both_are_shown(self):
        t.need_interpreter(self.interpreter)
        with t.fixture("parked.py", "--hang", python=self.interpreter.path,
                       place=self.interpreter.place) as started:
            t.wait_until(lambda: "D" in states(started.pid).values(), 40, "the thread in vfork")
            await_function(started.pid, "native_burn")
            taken = Backtrace(started.pid)
            text = t.probing("backtrace", started.pid, check=t.OK).stdout
            after = states(started.pid)
            burning, asleep = taken.named("burning"), taken.named("asleep")
            place = task(started.pid, asleep.tid, "wchan")
        self.assertTrue(t.subsequence(functions(burning), ["native_burn", "burn_in_c", "named"]), burning)
        self.assertEqual("exact", burning.verdict)
        self.assertEqual(("D", "not possible", None, "python"),
                         (asleep.state, asleep.not_stopped, asleep.stopped_us, asleep.verdict))
        self.assertEqual("hang_in_c", functions(asleep)[0])
        # Some kernels do not know (Linux 5.10, for one).
        self.assertEqual(None if place == "0" else place, asleep.wchan)
        self.assertRegex(text, r'"asleep", not stopped: D \(uninterruptible sleep\)' +
                               ("" if place == "0" else " in " + place) + '; '
                               r'Python frames from memory\n  hang_in_c  \(parked\.py:\d+\)\n')
        self.assertFalse({"t", "T"} & set(after.values()), after)
        for name, frames in started.truth["threads"].items():
            self.assertEqual(frames, python(taken.named(name)))


class MainThreadHangs(Case):
    """All that a process has is one thread that nothing reaches."""

    PROGRAM = ("import ctypes, os, sys\n"
               "library = ctypes.CDLL(os.path.join(os.environ['PROBING_FIXTURES'], 'native_lib.so'))\n"
               "def hang(): library.native_hang()\n"
               "print('ready {}', flush=True)\n"
               "hang()\n")

    def test_it_is_read_and_left_alone(self):
        with t.target([t.DEBIAN_PYTHON, "-c", self.PROGRAM]) as started:
            t.wait_until(lambda: states(started.pid) == {started.pid: "D"})
            main, = Backtrace(started.pid).threads
            text = t.probing("backtrace", started.pid, "--locals", check=t.OK).stdout
            self.assertEqual({started.pid: "D"}, states(started.pid))
        self.assertEqual(("D", "not possible", "python"), (main.state, main.not_stopped, main.verdict))
        self.assertEqual(["hang", "<module>"], functions(main))
        self.assertIn(", not stopped: D (uninterruptible sleep)", text)


class ManyThreads(Case):
    alone = True  # thousands of threads leave others no processor

    def test_a_hundred(self):
        with t.fixture("threads.py", "--busy", 1, "--idle", 98) as started:
            await_functions(started.pid, dict({"idle-%d" % i: "wait_for" for i in range(98)}, **{"busy-0": "burn_red"}))
            await_idle(started.pid, 98)
            taken = Backtrace(started.pid)
        self.assertEqual(100, len(taken.threads))
        self.assertEqual({"idle-%d" % i for i in range(98)} | {"busy-0"},
                         {thread.name for thread in taken.threads[1:]})
        for thread in taken.threads[1:-1]:
            self.assertIn("wait_for", functions(thread))
            self.assertEqual("exact", thread.verdict)
        self.assertIn("burn_red", functions(taken.named("busy-0")))

    # Linux's default limits let an ordinary user have some thousands.
    N_THREADS = 12000 if os.geteuid() == 0 else 2000

    def test_thousands(self):
        with t.fixture("many_threads", self.N_THREADS) as started:
            t.wait_until(lambda: {"S"} == set(states(started.pid).values()), 60, "all threads to sleep")
            taken = Backtrace(started.pid)
            self.assertEqual(started.truth["threads"], len(taken.threads))
            self.assertGreater(len(taken.threads), 1000)
            self.assertEqual(len(taken.threads), len({thread.tid for thread in taken.threads}))
            self.assertEqual({("no_python", "complete")}, {(thread.verdict, thread.stack_end) for thread in taken.threads})
            for thread in taken.threads:
                self.assertIn("park", functions(thread))
            self.assertEqual("", taken.message)
            t.wait_until(lambda: {"S"} == set(states(started.pid).values()), what="waits of all threads")

    def test_a_terminal_shows_how_far_it_is(self):
        """Each tenth of a second, in which a fast machine reads a thousand threads or two."""
        with t.fixture("many_threads", max(self.N_THREADS, 8000)) as started, \
                Terminal(["sh", "-c", "exec \"$@\" >stacks", "sh", t.BINARY, "backtrace", str(started.pid)]) as terminal:
            self.assertEqual(t.OK, terminal.wait(60))
            n_threads = started.truth["threads"]
        shown = re.findall(r"\r([\d,. kM]+) of ([\d,. kM]+) threads read\x1b\[K", terminal.raw.decode())
        self.assertGreater(len(shown), 1, terminal.raw)
        self.assertEqual(len(shown), len(set(shown)), shown)
        self.assertEqual("", terminal.text().strip())
        with open("stacks") as file:
            stacks = file.read()
        alike = re.findall(r"(?m)^  and (\d+) threads? like it: ", stacks)
        self.assertEqual(n_threads, stacks.count("  park ") + sum(map(int, alike)))

    def test_threads_that_come_and_go(self):
        with t.fixture("threads.py", "--busy", 1, "--churn") as started:
            await_functions(started.pid, {"busy-0": "burn_red"})
            for _ in range(20):
                taken = Backtrace(started.pid)
                self.assertIn("burn_red", functions(taken.named("busy-0")))


def await_idle(pid, n):
    """Until so many threads of that name wait, and not for the GIL."""
    def n_idle():
        return sum(thread.idle and thread.verdict == "exact" for thread in Backtrace(pid).threads if thread.name.startswith("idle-"))
    t.wait_until(lambda: n_idle() == n, 40, "idle threads")


def await_function(pid, name, least=1):
    """Look until a thread is in a function, in so many frames of it: 'ready' is said on the way there. Returns that thread."""
    found = []

    def is_there():
        found[:] = [thread for thread in Backtrace(pid).threads
                    if sum(t.same_name(each, name) for each in functions(thread)) >= least]
        return bool(found)
    t.wait_until(is_there, 40, "a thread in " + name)
    return found[0]


class NotPython(Case):
    def test_native_frames(self):
        with t.fixture("native_only", "threads") as started:
            await_function(started.pid, "helper_outer")
            for _ in range(10):
                taken = Backtrace(started.pid)
                self.assertIsNone(taken.all["python"])
                self.assertTrue(t.subsequence(functions(taken.threads[0]), ["outer", "run_threads", "main"]), taken.threads)
                self.assertIn("helper_outer", functions(taken.named("helper")))
                for thread in taken.threads:
                    self.assertEqual(("no_python", "complete"), (thread.verdict, thread.stack_end))

    def test_lines(self):
        with open(os.path.join(t.FIXTURES, "native_only.c")) as source:
            loop = 1 + next(i for i, line in enumerate(source) if line.strip() == "helper_inner();")
        with t.fixture("native_only", "threads") as started:
            helper = await_function(started.pid, "helper_outer")
        frame = next(frame for frame in helper.frames if frame.function == "helper_outer")
        self.assertEqual("native_only.c", os.path.basename(frame.file))
        self.assertLessEqual(abs(frame.line - loop), 2)

    def test_nothing_to_show_without_stopping(self):
        with t.fixture("native_only", "threads") as started:
            done = t.probing("backtrace", "--no-stop", started.pid, check=t.FAILED)
            self.assertSentence(done.stderr, "no Python .* in process %d" % started.pid)

    def test_more_stack_than_is_copied(self):
        with t.fixture("native_only", "recursion") as started:
            main = await_function(started.pid, "descend", 5000)
        self.assertEqual("completed", main.stack_end)
        self.assertEqual(5000, sum(t.same_name(name, "descend") for name in functions(main)))


class Nobody(Case):
    def test_no_such_process(self):
        done = t.probing("backtrace", 4194304, check=t.NO_INPUT)
        self.assertSentence(done.stderr, "there is no process 4194304")

    def test_no_such_thread(self):
        with t.fixture("native_only", "threads") as started:
            done = t.probing("backtrace", started.pid, 1, check=t.NO_INPUT)
            self.assertSentence(done.stderr, "process %d has no thread 1" % started.pid)
            tid = max(states(started.pid))
            done = t.probing("backtrace", tid, check=t.NO_INPUT)
            self.assertSentence(done.stderr, "%d is a thread of process %d: probing backtrace %d %d" % (
                tid, started.pid, started.pid, tid))

    def test_zombie(self):
        child = subprocess.Popen(["true"])
        t.wait_until(lambda: states(child.pid) == {child.pid: "Z"})
        done = t.probing("backtrace", child.pid, check=t.NO_INPUT)
        child.wait()
        self.assertSentence(done.stderr, "process %d has ended" % child.pid, "process %d," % os.getpid(), "zombie")

    def test_main_thread_has_ended_before_others(self):
        program = ("import ctypes, threading, time\n"
                   "def stay(): time.sleep(60)\n"
                   "threading.Thread(target=stay).start()\n"
                   "print('ready {}', flush=True)\n"
                   "ctypes.CDLL(None).pthread_exit(None)\n")
        with t.target([t.DEBIAN_PYTHON, "-c", program]) as started:
            t.wait_until(lambda: states(started.pid)[started.pid] == "Z")
            await_function(started.pid, "stay")
            main, other = Backtrace(started.pid).threads
        self.assertEqual(("Z", "it has ended", []), (main.state, main.not_stopped, main.frames))
        self.assertIn("stay", functions(other))

    def test_kernel_thread(self):
        pid = next((int(pid) for pid in os.listdir("/proc") if pid.isdigit() and self.is_of_kernel(pid)), None)
        if pid is None:
            self.skipTest("no thread of the kernel is seen here")
        done = t.probing("backtrace", pid, check=t.FAILED)
        self.assertSentence(done.stderr, "process %d is a kernel thread" % pid)

    @staticmethod
    def is_of_kernel(pid):
        try:
            with open("/proc/%s/stat" % pid) as stat:
                return int(stat.read().rsplit(")", 1)[1].split()[6]) & 0x200000
        except OSError:
            return False

    def test_wrong_arguments(self):
        for arguments in ((), ("x",), ("0",), ("1", "2", "3"), ("1", "y")):
            t.probing("backtrace", *arguments, check=t.USAGE)

    def test_output_that_is_full(self):
        with t.fixture("native_only", "threads") as started, open("/dev/full", "w") as full:
            done = subprocess.run([t.BINARY, "backtrace", str(started.pid)], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(t.IO, done.returncode)
        self.assertSentence(done.stderr, "standard output failed")


class Subprocesses(Case):
    """A process and all that descend from it, each under its own heading."""

    PROGRAM = """
import json, os, subprocess, time
hears, told = os.pipe()
def grandchild():
    os.write(told, b"2")
    time.sleep(60)
def child():
    if os.fork() == 0:
        return grandchild()
    os.write(told, b"1")
    time.sleep(60)
def parent(secret="of the parent"):
    if os.fork() == 0:
        return child()
    other = subprocess.Popen(["sleep", "60"])
    ended = subprocess.Popen(["true"])
    os.read(hears, 1), os.read(hears, 1)
    print("ready", json.dumps({"other": other.pid, "ended": ended.pid}), flush=True)
    time.sleep(60)
parent()
"""

    @contextlib.contextmanager
    def family(self):
        # A session of its own: its members end with it, whatever happens here.
        with t.target([t.DEBIAN_PYTHON, "-c", self.PROGRAM], start_new_session=True) as started:
            try:
                t.wait_until(lambda: states(started.truth["ended"]) == {started.truth["ended"]: "Z"})
                self.await_rest_of_all(started)
                yield started
            finally:
                os.killpg(started.pid, signal.SIGKILL)

    @staticmethod
    def await_rest_of_all(started):
        children = t.children_of(started.pid)
        for pid in [started.pid] + children + [pid for child in children for pid in t.children_of(child)]:
            if pid != started.truth["ended"]:
                await_rest(pid)

    def take(self, pid, *arguments):
        """By process id."""
        done = t.probing("backtrace", "--json", "--subprocesses", pid, *arguments, check=t.OK)
        return {process["pid"]: process for process in json.loads(done.stdout)}

    @staticmethod
    def functions(process):
        return [frame["function"] for thread in process["threads"] for frame in thread["frames"]]

    def test_everybody_is_there(self):
        with self.family() as started:
            shown = self.take(started.pid)
            self.await_rest_of_all(started)
            running = self.take(started.pid, "--no-stop", "--async", "--locals")
            text = t.probing("backtrace", "--subprocesses", started.pid, check=t.OK).stdout
            t.wait_until(lambda: sorted((set(states(pid).values()) for pid in shown), key=sorted) == [{"S"}] * 4 + [{"Z"}],
                         what="waits of all threads")
        self.assertEqual(list(shown), list(running))
        self.assertEqual(5, len(shown))
        self.assertEqual((started.pid, None), (list(shown)[0], shown[started.pid]["parent"]))
        found = {}
        for name in ("parent", "child", "grandchild"):
            found[name] = next(pid for pid, process in shown.items() if self.functions(process)[-2:-1] == [name] or
                               name in self.functions(process)[:4])
            self.assertTrue(set(self.functions(running[found[name]])) <= set(self.functions(shown[found[name]])))
            self.assertIn(name, self.functions(running[found[name]]))
            self.assertEqual({"exact"}, {thread["verdict"] for thread in shown[found[name]]["threads"]})
        self.assertEqual(started.pid, found["parent"])
        self.assertEqual(started.pid, shown[found["child"]]["parent"])
        self.assertEqual(found["child"], shown[found["grandchild"]]["parent"])
        secrets = [local for process in running.values() for thread in process["threads"]
                   for frame in thread["frames"] for local in frame.get("locals", ()) if local["name"] == "secret"]
        self.assertIn("'of the parent'", {local["value"] for local in secrets})

        other, ended = started.truth["other"], started.truth["ended"]
        self.assertIsNone(shown[other]["problem"])
        self.assertTrue(self.functions(shown[other]))
        self.assertIn("no Python", running[other]["problem"])
        self.assertRegex(shown[ended]["problem"], "has ended.*zombie")
        self.assertEqual([], shown[ended]["threads"])

        headings = [block.splitlines()[0] for block in text.split("\n\n") if block.startswith("Process ")]
        self.assertEqual(list(shown), [int(heading.split()[1].rstrip(",:")) for heading in headings])
        self.assertRegex(headings[0], r"^Process \d+, Python 3")
        self.assertTrue(all(", child of %d" % shown[pid]["parent"] in heading
                            for pid, heading in list(zip(shown, headings))[1:]), headings)

    def test_one_that_waits_in_vfork_and_its_child(self):
        """The parent cannot be stopped, and the two share their memory."""
        with t.fixture("parked.py", "--hang") as started:
            t.wait_until(lambda: "D" in states(started.pid).values(), 40, "the thread in vfork")
            shown = self.take(started.pid)
            self.assertEqual(2, len(shown))
            parent, child = shown.values()
            asleep = next(thread for thread in parent["threads"] if thread["name"] == "asleep")
            self.assertEqual(("D", "not possible"), (asleep["state"], asleep["not_stopped"]))
            self.assertEqual("hang_in_c", asleep["frames"][0]["function"])
            self.assertEqual((started.pid, None), (child["parent"], child["problem"]))
            self.assertEqual([None], [thread["not_stopped"] for thread in child["threads"]])
            self.assertFalse({"t", "T"} & set(states(started.pid).values()))

    def test_what_was_stopped_stays_stopped(self):
        with self.family() as started:
            others = [pid for pid in self.take(started.pid) if pid not in (started.pid, started.truth["ended"])]
            for pid in others:
                os.kill(pid, signal.SIGSTOP)
            t.wait_until(lambda: all(set(states(pid).values()) == {"T"} for pid in others))
            shown = self.take(started.pid)
            self.assertEqual([["T"]] * 3, [[thread["state"] for thread in shown[pid]["threads"]] for pid in others])
            t.wait_until(lambda: all(set(states(pid).values()) == {"T"} for pid in others))
            t.wait_until(lambda: {"S"} == set(states(started.pid).values()), what="waits of all threads")

    def test_one_alone(self):
        with t.fixture("native_only", "threads") as started:
            shown = self.take(started.pid)
        self.assertEqual([started.pid], list(shown))

    def test_threads_of_the_kernel(self):
        if not Nobody.is_of_kernel(2):
            self.skipTest("no thread of the kernel is seen here")
        done = t.probing("backtrace", 2, "--json", "--subprocesses", check=t.FAILED)
        self.assertSentence(done.stderr, "process 2 and its descendants cannot be shown")
        self.assertTrue(all("kernel thread" in process["problem"] or "ended" in process["problem"]
                            for process in json.loads(done.stdout)))

    def test_nobody_and_wrong_arguments(self):
        done = t.probing("backtrace", 4194304, "--subprocesses", check=t.NO_INPUT)
        self.assertEqual("", done.stdout)
        self.assertSentence(done.stderr, "there is no process 4194304")
        for arguments in (("1", "1", "--subprocesses"), ("--core", "x", "--subprocesses")):
            t.probing("backtrace", *arguments, check=t.USAGE)


# At each line of its stdin it maps other files, in place of those before; "exec" makes it another program.
MAPS = """
import ctypes, os, sys
libc, held = ctypes.CDLL(None), []
libc.mmap.restype = ctypes.c_void_p
def asked():
    return sys.stdin.readline()
while asked() == "map\\n":
    while held:
        libc.munmap(ctypes.c_void_p(held.pop()), 4096)
    for _ in range(4000):
        file = os.memfd_create("x")
        held.append(libc.mmap(None, ctypes.c_size_t(4096), 1, 1, file, 0))
        os.close(file)
    print("mapped", flush=True)
os.execv(sys.executable, [sys.executable, "-c", "def another():\\n  print('execed', flush=True)\\n  input()\\nanother()"])
"""


class Requests(Case):
    """A verb that stays, as serve has it for a page."""
    NIGHTLY_FOR_USERS = True  # rights are those of any backtrace

    @staticmethod
    def ask(verb, line):
        verb.stdin.write(line + b"\n")
        verb.stdin.flush()
        word, _, rest = verb.stdout.readline().decode().strip().partition(" ")
        if word == "bad":
            return rest
        return json.loads(verb.stdout.read(int(rest.split()[0])))

    def test_it_keeps_up_with_the_process_and_does_not_grow(self):
        with contextlib.ExitStack() as stack:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            target = stack.enter_context(subprocess.Popen([t.DEBIAN_PYTHON, "-c", MAPS], **pipes))
            stack.callback(target.kill)
            verb = stack.enter_context(subprocess.Popen([t.BINARY, "backtrace", "--requests", str(target.pid)], **pipes))
            stack.callback(verb.kill)

            def tell(word, answer):
                target.stdin.write(word + b"\n")
                target.stdin.flush()
                self.assertEqual(answer, target.stdout.readline().strip())

            def size_kb():
                with open("/proc/%d/status" % verb.pid) as status:
                    return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

            def names(line):
                return [frame["function"] for frame in self.ask(verb, line)["threads"][0]["frames"]]

            self.assertEqual("64 a request is too long", self.ask(verb, b"9" * 1000))  # one answer
            self.assertEqual("64 a request is a TID, or empty", self.ask(verb, b"x"))
            sizes = []
            for _ in range(15):  # 10,000 files are seen after 3
                tell(b"map", b"mapped")
                self.assertEqual(target.pid, self.ask(verb, b"")["pid"])
                sizes.append(size_kb())
            self.assertLess(sizes[-1] - sizes[3], 4000, sizes)
            t.wait_until(lambda: "asked" in names(b""), 60, "the program waits for a line")
            tell(b"exec", b"execed")
            t.wait_until(lambda: "another" in names(str(target.pid).encode()), 60, "the other program")
            verb.stdin.close()
            self.assertEqual(0, verb.wait(60))


class Users(Case):
    """Whom one may look at."""

    def as_ordinary_user(self, *arguments):
        t.need_root()
        t.need_program("setpriv")
        binary = os.path.join(os.getcwd(), "probing")
        shutil.copy(t.BINARY, binary)
        os.chmod(os.getcwd(), 0o755)
        user = ["setpriv", "--reuid", str(ORDINARY_USER), "--regid", str(ORDINARY_USER), "--clear-groups"]
        return [word for word in user + [binary if word is None else word for word in arguments]]

    def test_own_process(self):
        with t.target(self.as_ordinary_user(t.DEBIAN_PYTHON, "-c", "import time; print('ready {}', flush=True); time.sleep(60)")) as started:
            await_rest(started.pid)
            done = subprocess.run(self.as_ordinary_user(None, "backtrace", "--json", str(started.pid)),
                                  capture_output=True, text=True)
        if done.returncode == t.NOT_PERMITTED:
            self.assertSentence(done.stderr, "ptrace_scope")
            self.skipTest("kernel.yama.ptrace_scope forbids it")
        self.assertEqual(t.OK, done.returncode, done.stderr)
        self.assertEqual("exact", json.loads(done.stdout)["threads"][0]["verdict"])

    def test_process_of_another_user(self):
        with t.fixture("native_only", "threads") as started:
            done = subprocess.run(self.as_ordinary_user(None, "backtrace", str(started.pid)),
                                  capture_output=True, text=True)
        self.assertEqual((t.NOT_PERMITTED, ""), (done.returncode, done.stdout))
        self.assertSentence(done.stderr, "process %d belongs to uid 0 and you are uid %d" % (started.pid, ORDINARY_USER),
                            "CAP_SYS_PTRACE")

    def test_process_of_root(self):
        if os.geteuid() == 0:
            self.skipTest("this is root")
        done = t.probing("backtrace", 1, check=t.NOT_PERMITTED)
        self.assertSentence(done.stderr, "process 1 belongs to uid 0")

    def test_process_that_is_being_traced(self):
        """Stopping is refused, reading is not."""
        tracer = ("import ctypes, os, sys, time\n"
                  "for tid in os.listdir('/proc/%s/task' % sys.argv[1]):\n"
                  "    if ctypes.CDLL(None).ptrace(0x4206, int(tid), None, None) != 0: sys.exit('refused')\n"
                  "print('ready {}', flush=True)\n"
                  "time.sleep(60)\n")
        with t.fixture("parked.py") as started:
            with t.target([t.DEBIAN_PYTHON, "-c", tracer, str(started.pid)]) as other:
                taken = Backtrace(started.pid)
                self.assertRegex(taken.message, "process %d is being traced by process %d" % (started.pid, other.pid))
                for name, frames in started.truth["threads"].items():
                    thread = taken.named(name)
                    self.assertEqual(frames, python(thread))
                    self.assertEqual(("python", "not permitted"), (thread.verdict, thread.not_stopped))
            self.assertEqual({"exact"}, {thread.verdict for thread in Backtrace(started.pid).threads})
        with t.fixture("native_only", "threads") as started:
            with t.target([t.DEBIAN_PYTHON, "-c", tracer, str(started.pid)]):
                done = t.probing("backtrace", started.pid, check=t.NOT_PERMITTED)
                self.assertSentence(done.stderr, "is being traced")


class Unharmed(Case):
    """A program goes on as if nobody had looked."""
    NIGHTLY_FOR_USERS = True  # stopping works alike for all who may do it

    @contextlib.contextmanager
    def counting(self):
        path = os.path.join(os.getcwd(), "numbers")
        with t.fixture("counting.py", path) as started:
            self.path = path
            t.wait_until(lambda: all(self.numbers()), 40, "all threads to count")
            yield started

    def numbers(self):
        with open(self.path, "rb") as numbers:
            return struct.unpack("=3Q", numbers.read())

    def assertGoesOn(self, started):
        before = self.numbers()
        t.wait_until(lambda: all(now > then for now, then in zip(self.numbers(), before)), 20,
                     "all threads to go on; %s, %s" % (before, states(started.pid)))
        self.assertFalse({"t", "T"} & set(states(started.pid).values()), states(started.pid))

    def kill_at_random(self, started, longest_s, *arguments):
        """Whether it was killed before it ended by itself."""
        looking = subprocess.Popen([t.BINARY, "backtrace", str(started.pid)] + list(arguments),
                                   stdout=subprocess.DEVNULL)
        time.sleep(random.uniform(0, longest_s))
        looking.kill()
        return looking.wait() == -signal.SIGKILL

    @staticmethod
    def seconds_of_a_look(started):
        began = time.monotonic()
        Backtrace(started.pid, "--no-native")
        return time.monotonic() - began

    @t.statistical("a quarter of the random moments must lie within a look", 0.0002)
    def test_probing_may_be_killed_at_any_moment(self):
        """Half of them while threads are being stopped, and not when names are looked for later."""
        random.seed(1)
        n_killed = n_in_time = 0
        while n_killed < N_KILLED:
            with self.counting() as started:
                whole = min(self.seconds_of_a_look(started) for _ in range(3))  # nobody else took the processor in one of them
                began = time.monotonic()
                while n_killed < N_KILLED and time.monotonic() < began + t.LONGEST_TARGET_S / 3:
                    n_in_time += self.kill_at_random(started, whole, "--no-native") if n_killed % 2 else \
                        self.kill_at_random(started, 5 * whole)
                    n_killed += 1
                    self.assertGoesOn(started)
                self.assertTrue(started.is_running())
                self.assertEqual({"exact"}, {thread.verdict for thread in Backtrace(started.pid).threads})
        self.assertGreater(n_in_time, N_KILLED / 4)

    def test_stopped_process_stays_stopped(self):
        with self.counting() as started:
            os.kill(started.pid, signal.SIGSTOP)
            t.wait_until(lambda: set(states(started.pid).values()) == {"T"})
            before = self.numbers()
            for _ in range(10):
                taken = Backtrace(started.pid)
                self.assertEqual({"T"}, {thread.state for thread in taken.threads})
                self.assertEqual({"exact"}, {thread.verdict for thread in taken.threads})
                t.wait_until(lambda: set(states(started.pid).values()) == {"T"})
            self.assertIn(", stopped by a signal\n", t.probing("backtrace", started.pid, check=t.OK).stdout)
            t.wait_until(lambda: set(states(started.pid).values()) == {"T"})
            self.assertEqual(before, self.numbers())
            os.kill(started.pid, signal.SIGCONT)
            self.assertGoesOn(started)

    def test_stopped_process_when_probing_is_killed(self):
        random.seed(2)
        with self.counting() as started:
            os.kill(started.pid, signal.SIGSTOP)
            t.wait_until(lambda: set(states(started.pid).values()) == {"T"})
            before = self.numbers()
            for _ in range(30):
                self.kill_at_random(started, 0.02)
                t.wait_until(lambda: set(states(started.pid).values()) == {"T"})
            self.assertEqual(before, self.numbers())
            os.kill(started.pid, signal.SIGCONT)
            self.assertGoesOn(started)

    def test_sleep_is_not_cut_short(self):
        """A system call that was interrupted goes on for the rest of its time."""
        program = ("import time\n"
                   "print('ready {}', flush=True)\n"
                   "start = time.monotonic()\n"
                   "time.sleep(1.5)\n"
                   "print(time.monotonic() - start, flush=True)\n"
                   "time.sleep(60)\n")
        with t.target([t.DEBIAN_PYTHON, "-c", program]) as started:
            for _ in range(5):
                Backtrace(started.pid)
            slept = float(started.process.stdout.readline())
        self.assertGreaterEqual(slept, 1.5)

    def test_parent_is_told_of_stops_as_before(self):
        """Whoever waits for the process sees its own stop once, and nothing of ours."""
        child = subprocess.Popen(["sleep", "60"])
        try:
            Backtrace(child.pid)
            self.assertEqual((0, 0), os.waitpid(child.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED))
            os.kill(child.pid, signal.SIGSTOP)
            pid, status = os.waitpid(child.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(status))
            Backtrace(child.pid)
            self.assertEqual((0, 0), os.waitpid(child.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED))
        finally:
            child.kill()
            child.wait()


if __name__ == "__main__":
    sys.exit(unittest.main())
