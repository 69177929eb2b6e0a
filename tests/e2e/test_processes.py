# SPDX-License-Identifier: MIT
"""Python wherever it runs: several interpreters, embedded ones, children of every kind, odd files.

A recording goes on until it shows what is asked for, so that a busy machine makes it
longer, not wrong.
"""
import collections
import contextlib
import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import unittest

import by_work
import probing_test as t
from probing_test import probing

LONGEST_S = 30  # until what is asked for is seen
HZ = 999


def by_labels(labels):
    return [interpreter for interpreter in t.interpreters() if interpreter.label in labels]


def by_label(label):
    return by_labels([label])[0]


def version(interpreter):
    return tuple(map(int, interpreter.version.split(".")))


def seen(path):
    """Names of the Python functions in a recording that is being written."""
    try:
        with contextlib.closing(t.connect(path)) as db:
            return {name for (name,) in db.execute("SELECT name FROM named_frame WHERE kind = 'python'")}
    except sqlite3.Error:
        return set()


class Attached:
    """A recorder of a running process, until it is told to stop."""

    def __init__(self, process, path):
        self.process, self.path, self.said = process, path, None

    def until(self, *names):
        """Record until these functions were seen."""
        t.wait_until(lambda: set(names) <= seen(self.path), LONGEST_S, "%s in the recording" % (names,))

    def until_verified(self, *names):
        """Record until there is something to judge of each of these functions."""
        self.until(*names)
        t.wait_until(lambda: self.least_verified(names) >= 10, LONGEST_S, "verified samples of %s" % (names,))

    def least_verified(self, names):
        return self.least_samples(names, t.SURE)

    def least_samples(self, names, verdicts=None):
        recording, found = t.Recording(self.path), collections.Counter()
        for sample in recording.samples:
            if sample.stack and (verdicts is None or sample.verdict in verdicts):
                found.update({frame.name for frame in recording.python(sample.stack)})
        return min(found[name] for name in names)

    def until_samples(self):
        t.wait_for_samples(self.path)

    def until_begun(self):
        t.await_recording(self.process)

    def stop(self):
        status, _, self.said = t.stop_politely(self.process)
        if status != t.OK:
            raise AssertionError("probing record: exit status %d; it said: %s" % (status, self.said))
        return t.Recording(self.path)


@contextlib.contextmanager
def attached(pid, path="probing.db"):
    with t.recorder("--pid", pid, "-F", HZ, "-o", path) as process:
        yield Attached(process, path)


def record_until(pid, *names):
    """A hundred samples of each of these functions: if 2 % are read late, a bound of 10 % is 5.7 standard errors away."""
    with attached(pid) as recorder:
        recorder.until(*names)
        t.wait_until(lambda: recorder.least_samples(names) >= 100, LONGEST_S, "samples of %s" % (names,))
        return recorder.stop()


class Processes(t.Case):
    def python_names(self, recording, sample):
        return [frame.name for frame in recording.python(sample.stack)] if sample.stack else []

    def samples_with(self, recording, name):
        return [s for s in recording.samples if name in self.python_names(recording, s)]


# ---- Several interpreters in one process ----

# One of each way to make them, and of each way that stacks are read.
SEVERAL_VERSIONS = ("3_7", "3_8", "3_10", "debian", "3_12", "3_13", "sid_3_14", "sid_3_15")


@t.for_each_interpreter(globals(), lambda: by_labels(SEVERAL_VERSIONS))
class Interpreters(Processes):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        with t.scratch(), t.fixture("interpreters.py", python=cls.interpreter.path,
                                    place=cls.interpreter.place) as started, attached(started.pid) as recorder:
            names, late = started.truth["interpreters"], started.truth["late"]
            recorder.until("first_interpreter", *cls.functions(names))
            os.kill(started.pid, signal.SIGUSR1)
            recorder.until(*cls.functions([late]))
            recorder.until_verified(*(name + "_thread" for name in names + [late]))
            cls.names = names + [late]
            cls.recording = recorder.stop()

    @staticmethod
    def functions(names):
        return [name + suffix for name in names for suffix in ("_main", "_thread")]

    def interpreter_of(self, names):
        return {name.split("_")[0] for name in names if name in self.functions(self.names) or name.endswith("_leaf")}

    @t.statistical("one verified sample in a thousand may be wrong", 0.0002)
    def test_each_leaf_has_its_own_caller(self):
        """No stack shows functions of two interpreters' own code."""
        found = collections.Counter()
        for sample in self.recording.samples:
            names = self.python_names(self.recording, sample)
            if names and names[-1].endswith("_leaf") and sample.verdict in t.SURE:
                found[len(self.interpreter_of(names)), names[-2] in self.functions(self.names)] += 1
        self.assertNearlyAll(found[1, True], sum(found.values()), str(found))

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_whole_stacks_lead_from_one_interpreter_into_the_other(self):
        """What a thread runs in another interpreter stands below what it ran in its own."""
        names_of = {True: ["Thread.run", "<module>"], False: ["run", "<module>"]}[version(self.interpreter) >= (3, 11)]
        for name in self.functions(self.names)[::2]:
            with self.subTest(name):
                samples = self.samples_with(self.recording, name)
                right = sum(t.subsequence(self.python_names(self.recording, sample), names_of + [name])
                            for sample in samples)
                self.assertShare(0.9, right / len(samples), str(collections.Counter(
                    tuple(self.python_names(self.recording, sample)) for sample in samples).most_common(2)))

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_other_interpreters_are_not_lost_when_the_thread_is_at_its_leaf(self):
        """Threads that are in another interpreter hardly ever seem to be in their own only."""
        tids = {sample.tid for name in self.functions(self.names)[::2]
                for sample in self.samples_with(self.recording, name)}
        outside = collections.Counter()
        for sample in self.recording.samples:
            if sample.tid in tids and sample.stack and any(
                    t.subsequence(self.recording.names(sample.stack), [way, "PyEval_EvalCode"])
                    for way in ("PyRun_StringFlags", "exec")):
                names = set(self.python_names(self.recording, sample))
                outside["<module>" in names or "_find_and_load" in names] += 1
        self.assertShare(0.9, outside[True] / sum(outside.values()), str(outside))

    @t.statistical("a sample that is read late may show another function", 0.0002)
    def test_threads_show_one_function_each(self):
        tids = collections.defaultdict(set)
        for sample in self.recording.samples:
            for name in set(self.python_names(self.recording, sample)) & set(self.functions(self.names)):
                tids[name].add(sample.tid)
        self.assertEqual({name: 1 for name in self.functions(self.names)},
                         {name: len(found) for name, found in tids.items()})
        self.assertEqual(len(self.functions(self.names)), len(set.union(*tids.values())))



# ---- Inside another program ----

EMBEDDED_VERSIONS = ("2_7", "3_8", "3_13")


def libpython(interpreter):
    """The shared object of an interpreter, and the flags to build with it."""
    said = subprocess.run([interpreter.path, "-c", """
import sysconfig, os
get = sysconfig.get_config_var
print(os.path.join(get("LIBDIR"), get("INSTSONAME")))
print(sysconfig.get_paths()["include"])
"""], capture_output=True, text=True, check=True).stdout.splitlines()
    return said[0], ["-I" + said[1], said[0], "-Wl,-rpath," + os.path.dirname(said[0])]


def build_embedded(path, *flags):
    """A program with Python inside, whose name says nothing of it."""
    subprocess.run([t.need_program("cc"), "-O2", "-g", os.path.join(t.FIXTURES, "embedded.c"), "-o", path,
                    *flags, "-ldl"], check=True)


@t.for_each_interpreter(globals(), lambda: by_labels(EMBEDDED_VERSIONS))
class Embedded(Processes):
    def setUp(self):
        super().setUp()
        t.need_interpreter(self.interpreter)
        self.libpython, self.flags = libpython(self.interpreter)
        if not os.path.exists(self.libpython):
            self.skipTest("%s is not there" % self.libpython)

    def check_work(self, recording):
        """Below the program's own main, all of it."""
        samples = self.samples_with(recording, "embedded_leaf")
        right = sum(t.subsequence(recording.names(s.stack), ["main", "<module>", "embedded_work", "embedded_leaf"])
                    for s in samples)
        self.assertNearlyAll(right, len(samples), "below main")
        [process] = recording.processes
        self.assertTrue(process["python"].startswith(self.interpreter.version + "."), process)

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_linked(self):
        build_embedded("server", "-DLINKED", *self.flags)
        with t.target(["./server"]) as started:
            self.check_work(record_until(started.pid, "embedded_leaf"))

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_opened_during_the_recording(self):
        build_embedded("server")
        with t.target(["./server", self.libpython]) as started, attached(started.pid) as recorder:
            recorder.until_samples()
            os.kill(started.pid, signal.SIGUSR1)
            recorder.until("embedded_leaf")
            recording = recorder.stop()
        self.check_work(recording)
        self.assertRegex(recorder.said, "no Python in process %d" % started.pid)
        before = [s for s in recording.samples if s.stack and "native_before" in recording.names(s.stack)]
        self.assertEqual({"no_python"}, {s.verdict for s in before})

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_beside_a_runtime_that_never_starts(self):
        """Two of the same library: the program's own one is alive."""
        build_embedded("server", "-DLINKED", *self.flags)
        shutil.copy(self.libpython, "other.so")
        with t.target(["./server", os.path.abspath("other.so")]) as started:
            self.check_work(record_until(started.pid, "embedded_leaf"))


class StaticBesideShared(Processes):
    """The live interpreter is in a program called server, a dead one in libpython."""

    def test_the_live_one_is_found(self):
        python = by_label("debian")
        shared, flags = libpython(python)
        archive = os.path.splitext(shared.split(".so")[0] + ".a")[0] + ".a"
        if not (os.path.exists(archive) and os.path.exists(shared) and os.path.exists(flags[0][2:] + "/Python.h")):
            self.skipTest("needs %s, %s and their headers (libpython3-dev)" % (archive, shared))
        build_embedded("server", "-DLINKED", "-no-pie", "-rdynamic", flags[0], archive, "-lz", "-lexpat", "-lm", "-lpthread")
        with t.target(["./server", shared]) as started:
            with open("/proc/%d/maps" % started.pid) as maps:
                self.assertIn("libpython", maps.read())
            recording = record_until(started.pid, "embedded_leaf")
        self.assertGreater(len(self.samples_with(recording, "embedded_leaf")), 0)


# ---- Children ----

class Children(Processes):
    WORKERS = ("worker_0", "worker_1", "worker_2", "by_fork", "by_spawn", "by_forkserver", "by_subprocess")

    def found(self, recording):
        """(function of WORKERS or parent_work, sample) of all samples that have one."""
        functions = set(self.WORKERS + ("parent_work",))
        return [(name, sample) for sample in recording.samples
                for name in set(self.python_names(recording, sample)) & functions]

    def check(self, recording, pids):
        found = self.found(recording)
        elsewhere = [(name, sample.pid, sample.verdict, recording.names(sample.stack)) for name, sample in found
                     if sample.pid != pids[name]]
        self.assertEqual([], [each for each in elsewhere if each[2] in t.SURE])
        self.assertNearlyAll(len(found) - len(elsewhere), len(found), "in its own process: %s" % elsewhere[:5])
        self.assertEqual(set(pids.items()), {(name, sample.pid) for name, sample in found if sample.pid == pids[name]})
        rows = {process["pid"]: process for process in recording.processes}
        for name, pid in pids.items():
            self.assertRegex(rows[pid]["python"] or "", r"^3\.", name)
        for name in ("worker_0", "worker_1", "worker_2"):
            with self.subTest(name):
                self.check_forked(recording, name, pids[name])

    def check_forked(self, recording, name, pid):
        """A forked child has Python frames from its first sample on, and its parent's among them."""
        samples = [sample for sample in recording.samples if sample.pid == pid]
        found = [self.python_names(recording, sample)[:2] for sample in samples]
        self.assertGreater(len(samples), 50)
        # What is approximate was read late, and says so.
        sure = [names for sample, names in zip(samples, found) if sample.verdict in t.SURE]
        self.assertGreater(len(sure), 0)
        self.assertNearlyAll(sum(names == ["<module>", "main"] for names in sure), len(sure), "below main of the parent")
        self.assertIn(["<module>", "main"], found[:3])

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0005)
    def test_of_a_command(self):
        done = probing("record", "-F", HZ, "-o", "out.db", "--",
                       *t.fixture_command("processes.py", "--cpu", 0.6), check=t.OK, env=t.fixture_environment())
        self.check(t.Recording("out.db"), json.loads(done.stdout.split("ended ")[1]))

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0005)
    def test_of_a_running_process(self):
        with t.target(t.fixture_command("processes.py", "--wait", "--cpu", 0.6)) as started, attached(started.pid) as recorder:
            recorder.until_begun()
            os.kill(started.pid, signal.SIGUSR1)
            said = started.process.stdout.readline()
            recorder.process.communicate(timeout=60)
        self.check(t.Recording("probing.db"), json.loads(said.split("ended ")[1]))


class Exec(Processes):
    def test_another_python_then_a_shell(self):
        others = [i for i in t.interpreters() if i.place is t.MACHINE and i.path and version(i) >= (3, 6)
                  and i.version != by_label("debian").version]
        if not others:
            self.skipTest("there is one Python only")
        with t.target(t.fixture_command("exec_chain.py", others[0].path)) as started:
            with attached(started.pid) as recorder:
                recorder.until_begun()
                os.kill(started.pid, signal.SIGUSR1)
                started.process.wait(60)
                recorder.process.communicate(timeout=60)
            recording = t.Recording("probing.db")
        order = [[name for name in self.python_names(recording, sample)
                  if name in ("first_program", "second_program")] or [sample.verdict]
                 for sample in recording.samples]
        first, second = order.index(["first_program"]), order.index(["second_program"])
        last = max(i for i, found in enumerate(order) if found == ["second_program"])
        self.assertLess(max(i for i, found in enumerate(order) if found == ["first_program"]), second)
        self.assertLess(first, second)
        self.assertEqual({started.pid}, {sample.pid for sample in recording.samples})
        after = collections.Counter(sample.verdict for sample in recording.samples[last + 1:])
        self.assertGreater(after["no_python"], 20, "samples of the shell")
        shell = [sample for sample in recording.samples if sample.stack and any(
            (frame.module or "").endswith(("/dash", "/bash", "/sh")) for frame in recording.path(sample.stack))]
        self.assertGreater(len(shell), 20)
        self.assertEqual({"no_python"}, {sample.verdict for sample in shell})


# ---- Files that are gone, moved or oddly called ----

class Files(Processes):
    SCRIPT = """import sys
def leaf_of_script():
    n = 0
    for i in range(20000):
        n += i
def main():
    print("ready {}")
    sys.stdout.flush()
    while True:
        leaf_of_script()
main()
"""

    def copied(self, folder):
        """An interpreter of its own in a virtual environment, by copy."""
        subprocess.run([t.DEBIAN_PYTHON, "-m", "venv", "--copies", "--without-pip", folder], check=True)
        return os.path.realpath(os.path.join(folder, "bin", "python"))

    def script(self, path):
        with open(path, "w") as file:
            file.write(self.SCRIPT)
        return os.path.abspath(path)

    def check(self, recording, path):
        samples = self.samples_with(recording, "leaf_of_script")
        files = {frame.file for sample in samples for frame in recording.python(sample.stack)}
        self.assertEqual({path}, files)
        right = sum(t.subsequence(recording.names(sample.stack), ["_start", "main", "leaf_of_script"])
                    for sample in samples)
        self.assertShare(0.9, right / len(samples), "named from the first function on")

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_spaces_and_other_scripts(self):
        python, script = self.copied("a b/ü 蛇"), self.script("a b/naïve файл.py")
        with t.target([python, script]) as started:
            recording = record_until(started.pid, "leaf_of_script")
        self.check(recording, script)
        self.assertIn(python, [module["path"] for module in recording.modules])

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_removed_while_it_runs(self):
        t.need_root()  # an ordinary user cannot open a file that has no path
        python, script = self.copied("gone"), self.script("gone/script.py")
        with t.target([python, script]) as started:
            shutil.rmtree("gone")
            recording = record_until(started.pid, "leaf_of_script")
        self.check(recording, script)

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_replaced_while_it_runs(self):
        t.need_root()
        python, script = self.copied("upgraded"), self.script("script.py")
        with t.target([python, script]) as started:
            shutil.copy("/bin/true", "upgraded/new")
            os.rename("upgraded/new", python)
            recording = record_until(started.pid, "leaf_of_script")
        self.check(recording, script)

    def test_libpython_mounted_under_another_name(self):
        refusal = t.namespaces_refusal()
        if refusal:
            self.skipTest(refusal)
        interpreter = by_label("3_13")
        t.need_interpreter(interpreter)
        shared, _ = libpython(interpreter)
        build_embedded("server")
        touched = os.path.abspath("interp")
        open(touched, "w").close()
        move = ["unshare", "--mount", "sh", "-c", 'mount --bind "$1" "$2" && exec ./server "$2"', "sh", shared, touched]
        with t.target(move) as started, attached(started.pid) as recorder:
            recorder.until_samples()
            os.kill(started.pid, signal.SIGUSR1)
            recorder.until("embedded_leaf")
            recording = recorder.stop()
        self.assertIn(touched, [module["path"] for module in recording.modules])
        self.assertGreater(len(self.samples_with(recording, "embedded_leaf")), 0)


# ---- What cannot be read ----

class Refused(Processes):
    def test_debug_build(self):
        python = next(filter(None, map(shutil.which, ("python3-dbg", "python3d", "python3.11d"))), None)
        if python is None:
            self.skipTest("there is no debug build of CPython (python3-dbg)")
        with t.target([python, "-c", "print('ready {}', flush=True)\nwhile True: pass"]) as started:
            recording = by_work.record(started, 0.5, 99, "out.db")
            self.assertRegex(recording.said, r"Python 3[.0-9]+ \(debug build\) in process %d cannot be read .*"
                             "recording its native frames" % started.pid)
        self.assertEqual({"no_python"}, {sample.verdict for sample in recording.samples})

    def build_32_bit(self):
        built = subprocess.run([t.need_program("cc"), "-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie",
                                os.path.join(t.FIXTURES, "ia32.c"), "-o", "ia32"], capture_output=True, text=True)
        if built.returncode != 0:
            self.skipTest("no 32-bit program can be built: " + built.stderr.strip().splitlines()[-1])
        try:
            with subprocess.Popen(["./ia32"]) as program:
                program.kill()
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            self.skipTest("this kernel executes no 32-bit programs")

    def test_32_bit_program(self):
        self.build_32_bit()
        program = subprocess.Popen(["./ia32"])
        try:
            recording = by_work.record(t.Target(program, None), 0.5, 99, "out.db")
        finally:
            program.kill()
            program.wait()
        self.assertRegex(recording.said, "process %d is a 32-bit program" % program.pid)
        self.assertNotIn("no Python in process", recording.said)
        self.assertEqual({"no_python"}, {sample.verdict for sample in recording.samples})

    def test_32_bit_command(self):
        self.build_32_bit()
        done = probing("record", "-o", "out.db", "--", "sh", "-c", "ulimit -t 1; exec ./ia32")
        self.assertRegex(done.stderr, r"\d+ samples are of a 32-bit program and have no stacks")
        self.assertNotIn("no Python was found", done.stderr)


# ---- Threads that Python did not start ----

NATIVE_THREAD_VERSIONS = ("debian", "2_7", "3_8", "3_13")


@t.for_each_interpreter(globals(), lambda: by_labels(NATIVE_THREAD_VERSIONS))
class NativeThreads(Processes):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        with t.scratch(), t.fixture("native_threads.py", python=cls.interpreter.path,
                                    place=cls.interpreter.place) as started, attached(started.pid) as recorder:
            recorder.until("sometimes_leaf", "mortal_leaf")
            os.kill(started.pid, signal.SIGUSR1)
            cls.leaves = started.truth["leaves"]
            recorder.until_verified(*cls.leaves.values())
            cls.recording = recorder.stop()

    def of_thread(self, name):
        tids = {thread["tid"] for thread in self.recording.threads if thread["name"] == name}
        return [sample for sample in self.recording.samples if sample.tid in tids and sample.stack]

    def test_never_in_python(self):
        samples = self.of_thread("never")
        self.assertGreater(len(samples), 20)
        self.assertEqual({"no_python"}, {sample.verdict for sample in samples})

    @t.statistical("one verified sample in a thousand may be wrong", 0.0002)
    def test_each_has_its_own_leaf(self):
        for name, leaf in self.leaves.items():
            with self.subTest(name):
                found = collections.Counter(tuple(self.python_names(self.recording, sample)[:1])
                                            for sample in self.of_thread(name) if sample.verdict in t.SURE)
                self.assertGreater(found[leaf,], 0)
                self.assertNearlyAll(found[leaf,], sum(found.values()), str(found))

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0002)
    def test_python_frames_only_while_in_python(self):
        for name, native in (("sometimes", "sometimes_python"), ("late", "late_python")):
            with self.subTest(name):
                burning = [sample for sample in self.of_thread(name)
                           if t.same_name(self.recording.path(sample.stack)[-1].name, "burn_ms")]
                self.assertEqual(0, sum(len(self.recording.python(sample.stack)) for sample in burning))


if __name__ == "__main__":
    sys.exit(unittest.main())
