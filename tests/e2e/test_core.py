# SPDX-License-Identifier: MIT
"""probing backtrace --core: what a core file shows is what the process showed while it lived."""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import unittest

import probing_test as t
from test_backtrace import Case, await_rest

PATTERN = "/proc/sys/kernel/core_pattern"


def need_core_files():
    with open(PATTERN) as text:
        pattern = text.read().strip()
    if "/" in pattern or pattern.startswith("|"):
        raise unittest.SkipTest("core files go elsewhere here: %s is %s" % (PATTERN, pattern))
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        raise unittest.SkipTest("the size of core files is limited (ulimit -c)")


def allow_core_files():
    """For a child, before its exec."""
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def dump(process, number=signal.SIGABRT):
    """End a child by a signal; the path of its core file in the current folder."""
    process.send_signal(number)
    status = process.wait(timeout=60)
    found = [name for name in os.listdir(".") if name.startswith("core")]
    if status != -number or len(found) != 1:
        raise AssertionError("exit status %d, core files: %s" % (status, found))
    return found[0]


def look(*arguments):
    done = t.probing("backtrace", "--json", *arguments, check=t.OK)
    return json.loads(done.stdout), done.stderr


def stacks(backtrace):
    return {thread["tid"]: thread["frames"] for thread in backtrace["threads"]}


def machine_interpreters():
    """Those that can write into the current folder."""
    return [interpreter for interpreter in t.interpreters() if interpreter.place == t.MACHINE]


@t.for_each_interpreter(globals(), machine_interpreters)
class Dead(Case):
    ONE_FOR_USERS = True

    def test_the_same_stacks_as_alive(self):
        need_core_files()
        t.need_interpreter(self.interpreter)
        command = t.fixture_command("parked.py", "--seconds", t.LONGEST_TARGET_S, python=self.interpreter.path)
        with t.target(command, preexec_fn=allow_core_files) as started:
            await_rest(started.pid)
            alive, _ = look(started.pid)
            await_rest(started.pid)
            core = dump(started.process)
            dead, said = look("--core", core)
        self.assertEqual("", said)
        self.assertEqual((started.pid, signal.SIGABRT, started.pid), (dead["pid"], dead["signal"], dead["signalled"]))
        self.assertEqual(alive["python"], dead["python"])
        self.assertEqual(started.pid, dead["threads"][0]["tid"])
        self.assertEqual({("exact", "complete")}, {(th["verdict"], th["stack_end"].replace("completed", "complete"))
                                                   for th in dead["threads"]})
        self.assertEqual(stacks(alive), stacks(dead))


@t.for_each_interpreter(globals(), machine_interpreters)
class Copied(Case):
    """gdb's gcore writes no segment at all for what its filter leaves out, which is program code by default."""
    ONE_FOR_USERS = True

    # core(5): which mappings are dumped. The default; without the first pages of files; all of them.
    FILTERS = (0x33, 0x23, 0x7f)

    def copy(self, pid, name):
        done = subprocess.run([self.gcore, "-o", name, str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60)
        path = "%s.%d" % (name, pid)
        if done.returncode != 0 or not os.path.exists(path):
            raise unittest.SkipTest("gcore: " + (done.stdout.strip().splitlines() or ["it says nothing"])[-1])
        return path

    def test_the_same_stacks_as_alive(self):
        self.gcore = t.need_program("gcore")
        t.need_interpreter(self.interpreter)
        with t.fixture("parked.py", python=self.interpreter.path) as started:
            await_rest(started.pid)
            alive, _ = look(started.pid)
            for wanted in self.FILTERS:
                with self.subTest("%#x" % wanted):
                    with open("/proc/%d/coredump_filter" % started.pid, "w") as coredump_filter:
                        coredump_filter.write("%#x" % wanted)
                    await_rest(started.pid)
                    core = self.copy(started.pid, "core-%x" % wanted)
                    dead, said = look("--core", core)
                    os.unlink(core)
                    self.assertEqual("", said)
                    self.assertEqual((started.pid, alive["python"]), (dead["pid"], dead["python"]))
                    self.assertEqual({("exact", "complete")},
                                     {(th["verdict"], th["stack_end"].replace("completed", "complete")) for th in dead["threads"]})
                    self.assertEqual(stacks(alive), stacks(dead))

    def test_nothing_was_dumped(self):
        self.gcore = t.need_program("gcore")
        t.need_interpreter(self.interpreter)
        with t.fixture("parked.py", python=self.interpreter.path) as started:
            with open("/proc/%d/coredump_filter" % started.pid, "w") as coredump_filter:
                coredump_filter.write("0")
            dead, _ = look("--core", self.copy(started.pid, "core"))
        self.assertEqual(started.pid, dead["pid"])
        self.assertEqual(set(), {frame["kind"] for thread in dead["threads"] for frame in thread["frames"]} - {"native", "builtin"})


class Files(Case):
    """Files that are not what the process had mapped."""

    def crash(self, program):
        """A core file of a program that ends itself by reading from address 0."""
        done = subprocess.run([program, "-c", "import ctypes\ndef crash(): ctypes.string_at(0)\ncrash()"],
                              preexec_fn=allow_core_files, capture_output=True)
        self.assertEqual(-signal.SIGSEGV, done.returncode, done.stderr)
        found = [name for name in os.listdir(".") if name.startswith("core")]
        self.assertEqual(1, len(found))
        return found[0]

    def setUp(self):
        super().setUp()
        need_core_files()
        shutil.copy(os.path.realpath(t.DEBIAN_PYTHON), "prog")

    def functions(self, backtrace):
        return [frame["function"] for frame in backtrace["threads"][0]["frames"]]

    def test_crash(self):
        core = self.crash("./prog")
        dead, said = look("--core", core)
        self.assertEqual(("", signal.SIGSEGV), (said, dead["signal"]))
        names = self.functions(dead)
        self.assertLess(names.index("string_at"), names.index("crash"))
        self.assertNotEqual("string_at", names[0])  # what was called from it is native
        self.assertEqual("<module>", [f["function"] for f in dead["threads"][0]["frames"] if f["kind"] == "python"][-1])
        text = t.probing("backtrace", "--core", core, check=t.OK).stdout
        self.assertRegex(text, r"Ended by signal 11 \(Segmentation fault\), which thread %d received" % dead["pid"])

    def test_the_program_has_moved(self):
        core = self.crash("./prog")
        os.rename("prog", "moved")
        without, said = look("--core", core)
        self.assertRegex(said, "1 of its mapped files are missing")
        self.assertIsNone(without["python"])
        done = t.probing("backtrace", "--core", core, "./lost", check=t.NO_INPUT)
        self.assertSentence(done.stderr, "./lost cannot be read: No such file")
        found, said = look("--core", core, "./moved")
        self.assertEqual("", said)
        self.assertIn("crash", self.functions(found))

    def test_another_program_at_its_place(self):
        core = self.crash("./prog")
        shutil.copy("/bin/sleep", "prog")
        other, said = look("--core", core)
        self.assertRegex(said, "1 of its mapped files are missing or have changed")
        self.assertIsNone(other["python"])

    def test_one_thread(self):
        core = self.crash("./prog")
        pid = look("--core", core)[0]["pid"]
        one, _ = look("--core", core, pid)
        self.assertEqual([pid], [thread["tid"] for thread in one["threads"]])
        done = t.probing("backtrace", "--core", core, 1, check=t.NO_INPUT)
        self.assertSentence(done.stderr, "has no thread 1")


class Mistakes(Case):
    def test_no_core_file(self):
        with open("empty", "w"):
            pass
        for path in ("empty", "/bin/sleep", t.__file__):
            done = t.probing("backtrace", "--core", path, check=t.BAD_DATA)
            self.assertSentence(done.stderr, "is not a core file")
        done = t.probing("backtrace", "--core", "missing", check=t.NO_INPUT)
        self.assertSentence(done.stderr, "missing cannot be read: No such file")

    def test_usage(self):
        for arguments in (["--core", "a", "--no-stop"], ["--core", "a", "b", "c"], ["--core", "a", "1", "b", "c"]):
            t.probing("backtrace", *arguments, check=t.USAGE)


if __name__ == "__main__":
    sys.exit(unittest.main())
