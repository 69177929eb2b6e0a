# SPDX-License-Identifier: MIT
"""probing doctor: what it says of this machine and of processes, and that its remedies are some."""
import contextlib
import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import unittest

import probing_test as t

ORDINARY_USER = 65534
GROUPS = ["sampling", "rights", "names and files", "process", "python", "agent"]
SLEEPER = "import time; print('ready {}', flush=True); time.sleep(60)"


def need_memory():
    """An ordinary user may not read the memory of processes of that user's own everywhere."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/yama/ptrace_scope") as scope:
        value = int(scope.read())
        if value and os.geteuid() != 0:
            raise unittest.SkipTest("kernel.yama.ptrace_scope is %d" % value)


class Doctor:
    """What probing doctor --json says."""

    def __init__(self, *arguments, command=(), **more):
        done = subprocess.run([*command, *map(str, arguments)] if command else
                              [t.BINARY, "doctor", "--json", *map(str, arguments)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * t.HANG_S, **more)
        self.status, self.message = done.returncode, done.stderr
        if not done.stdout:
            raise AssertionError("it said nothing, but %s" % done.stderr)
        self.all = json.loads(done.stdout)
        self.checks = {check["name"]: check for check in self.all["checks"]}

    def __getitem__(self, name):
        return self.checks[name]

    def state(self, name):
        return self.checks[name]["state"]


class Case(t.Case):
    def setUp(self):
        """What is refused here is what this is about."""
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def as_ordinary_user(self, *arguments, program="probing"):
        """The command of a copy that an ordinary user may run; root's own build may lie where that one cannot go."""
        binary = os.path.join(os.getcwd(), program)
        if not os.path.exists(binary):
            shutil.copy(t.BINARY, binary)
        os.chmod(os.getcwd(), 0o755)
        drop = [t.need_program("setpriv"), "--reuid=%d" % ORDINARY_USER, "--regid=%d" % ORDINARY_USER, "--clear-groups"]
        return (drop if os.geteuid() == 0 else []) + [binary, "doctor", "--json", *map(str, arguments)]


class Machine(Case):
    def test_every_check_is_whole(self):
        said = Doctor()
        self.assertIsNone(said.all["pid"])
        self.assertEqual("", said.message)
        self.assertEqual(GROUPS[:3], list(dict.fromkeys(check["group"] for check in said.all["checks"])))
        for name, check in said.checks.items():
            with self.subTest(name):
                self.assertIn(check["state"], ("ok", "limited", "missing"))
                self.assertTrue(check["purpose"])
                self.assertTrue(check["found"])
                if check["state"] == "ok":
                    self.assertEqual((None, None), (check["means"], check["remedy"]))

    def test_what_it_found_is_so(self):
        said = Doctor()
        self.assertEqual(t.perf_refusal() is None, said.state("perf_event") == "ok", said["perf_event"])
        self.assertEqual(t.bpf_refusal() is None and t.perf_refusal() is None, said.state("bpf") == "ok", said["bpf"])
        has_types = os.path.exists("/sys/kernel/btf/vmlinux")
        self.assertEqual(said.state("bpf") == "ok" and has_types, said.state("switches") == "ok", said["switches"])
        by_tables = has_types and platform.machine() == "x86_64" and tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 2)
        self.assertEqual(said.state("bpf") == "ok" and by_tables, said.state("direct_map") == "ok", said["direct_map"])
        with open("/proc/kallsyms") as names:
            shown = any(line.split()[0].strip("0") for line in names)
        self.assertEqual(shown, said.state("kernel_names") == "ok")
        with open("/proc/sys/kernel/perf_event_paranoid") as level:
            self.assertIn(level.read().strip(), said["perf_event_paranoid"]["found"])
        self.assertIn(str(resource.getrlimit(resource.RLIMIT_NOFILE)[1]), said["descriptors"]["found"])
        self.assertIn("3.15", said["python_versions"]["found"])

    def test_page_tables_can_be_refused(self):
        t.need_bpf()
        said = Doctor(env=dict(os.environ, PROBING_DIRECT_MAP="0"))
        self.assertEqual("limited", said.state("direct_map"))
        self.assertIn("PROBING_DIRECT_MAP=0", said["direct_map"]["found"])
        self.assertEqual("ok", said.state("bpf"))

    def test_it_foretells_how_stacks_are_taken(self):
        said = Doctor()
        done = t.probing("record", "-o", "out.db", "-d", 0.2, "--", "true")
        self.assertEqual(said.status == 0, done.returncode == 0, done.stderr)
        if said.status == 0:
            self.assertTrue(done.stderr.startswith("stack source: %s (" % said.all["recording"]), done.stderr)

    def test_text(self):
        done = t.probing("doctor")
        self.assertEqual("", done.stderr)
        self.assertRegex(done.stdout, r"(?m)^sampling\n  (ok|limited|missing) +perf_event +\w")
        self.assertRegex(done.stdout, r"\n\nRecording (works|does not work)")
        self.assertNotIn("\033", done.stdout)

    def test_wrong_arguments(self):
        for arguments in (("x",), ("0",), ("1", "2"), ("--nonsense",)):
            t.probing("doctor", *arguments, check=t.USAGE)

    def test_output_that_is_full(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([t.BINARY, "doctor"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(t.IO, done.returncode)
        self.assertSentence(done.stderr, "standard output failed")


class Filtered(Case):
    """In a container's place: a seccomp filter."""

    def look(self, *arguments, more=()):
        return Doctor(command=[os.path.join(t.BUILT_FIXTURES, "without_perf"), *more, t.BINARY, "doctor", "--json",
                               *map(str, arguments)])

    def test_without_events(self):
        said = self.look()
        self.assertEqual((0, "poll"), (said.status, said.all["recording"]))
        self.assertEqual(("missing", "limited"), (said.state("perf_event"), said.state("seccomp")))
        self.assertIn("perf_event_open", said["seccomp"]["found"])
        self.assertNotIn("process_vm_readv", said["seccomp"]["found"])
        self.assertIn("--cap-add PERFMON", said["perf_event"]["remedy"])

    def test_without_memory_nothing_works(self):
        with t.target([t.DEBIAN_PYTHON, "-c", SLEEPER]) as started:
            for arguments in ((), (started.pid,)):
                said = self.look(*arguments, more=["--memory"])
                self.assertEqual((t.NOT_PERMITTED, None), (said.status, said.all["recording"]))
                self.assertEqual("missing", said.state("seccomp"))
                self.assertIn("process_vm_readv, ptrace", said["seccomp"]["found"])
            self.assertEqual(["missing"] * 3, [said.state(name) for name in ("memory", "stopping", "python")])

    def test_in_namespaces(self):
        refusal = t.namespaces_refusal()
        if refusal:
            self.skipTest(refusal)
        said = Doctor(command=t.UNSHARE + ["--mount-proc", t.BINARY, "doctor", "--json"])
        self.assertEqual("limited", said.state("namespaces"))
        self.assertIn("process ids are its own", said["namespaces"]["found"])
        self.assertNotEqual("ok", said.state("bpf"))

    def test_in_a_user_namespace(self):
        enter = ["unshare", "--user", "--map-root-user"]
        if subprocess.run(enter + ["true"], capture_output=True).returncode != 0:
            self.skipTest("user namespaces are not allowed here")
        said = Doctor(command=enter + [t.BINARY, "doctor", "--json"])
        self.assertIn("users are its own", said["namespaces"]["found"])
        self.assertEqual(("limited", None), (said.state("capabilities"), said["capabilities"]["remedy"]))
        self.assertNotEqual("ok", said.state("bpf"))


@t.for_each_interpreter(globals(), t.all_interpreters)
class Python(Case):
    ONE_FOR_USERS = True

    def test_which_it_is(self):
        need_memory()
        t.need_interpreter(self.interpreter)
        with t.fixture("parked.py", python=self.interpreter.path, place=self.interpreter.place) as started:
            said = Doctor(started.pid)
            n_threads = len(os.listdir("/proc/%d/task" % started.pid))
            executable = os.readlink("/proc/%d/exe" % started.pid)
        self.assertEqual((0, started.pid), (said.status, said.all["pid"]))
        self.assertEqual(GROUPS, list(dict.fromkeys(check["group"] for check in said.all["checks"])))
        self.assertRegex(said["python"]["found"], r"^CPython %s\." % re.escape(self.interpreter.version))
        own_offsets = tuple(map(int, self.interpreter.version.split("."))) >= (3, 13)
        self.assertEqual(own_offsets, "debug offsets" in said["python"]["found"])
        self.assertEqual((executable, "ok"), (said["executable"]["found"], said.state("executable")))
        self.assertEqual(str(n_threads), said["threads"]["found"])
        for name in ("process", "owner", "dumpable", "width", "memory", "stopping", "tracer", "interpreter"):
            self.assertEqual("ok", said.state(name), said[name])
        if self.interpreter.place is not t.MACHINE:
            self.assertIn("its own PID is 1", said["process_namespaces"]["found"])
            self.assertIn("other mounts", said["agent_files"]["found"])
        version = tuple(map(int, self.interpreter.version.split(".")))
        if os.uname().machine == "x86_64":
            self.assertEqual("not possible: the checks below say why" if version < (3, 6) else
                             "possible: its Python loads the agent" if version >= (3, 14) else
                             "possible: a stopped thread loads the agent", said["inject"]["found"])


class Processes(Case):
    def test_nobody_there(self):
        said = Doctor(4194304)
        self.assertEqual((t.NO_INPUT, None, "missing"), (said.status, said.all["recording"], said.state("process")))
        self.assertNotIn("memory", said.checks)

    def test_main_thread_that_has_ended(self):
        with t.target([t.DEBIAN_PYTHON, "-c", t.WITHOUT_MAIN_THREAD]) as target:
            t.wait_until(lambda: t.state_of(target.pid) == "Z", what="the main thread's end")
            said = Doctor(target.pid)
        self.assertEqual((t.OK, "ok"), (said.status, said.state("process")))
        self.assertRegex(said["process"]["found"], "main thread has ended; others run")

    def test_zombie(self):
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        said = Doctor(child.pid)
        child.wait()
        self.assertEqual(t.NO_INPUT, said.status)
        self.assertRegex(said["process"]["found"], "zombie")

    def test_not_python(self):
        need_memory()
        with t.fixture("native_only", "threads") as started:
            said = Doctor(started.pid)
        self.assertEqual(("missing", "ok"), (said.state("python"), said.state("process")))
        self.assertIn("none", said["python"]["found"])
        self.assertEqual(("missing", "no Python was found in it"), (said.state("inject"), said["agent_host"]["found"]))

    def test_traced_and_then_not(self):
        """Whoever traces is named, and the remedy ends that."""
        need_memory()
        tracer = ("import ctypes, sys, time\n"
                  "if ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) != 0: sys.exit('refused')\n"
                  "print('ready {}', flush=True)\n"
                  "time.sleep(60)\n")
        with t.target([t.DEBIAN_PYTHON, "-c", SLEEPER]) as started:
            with t.target([t.DEBIAN_PYTHON, "-c", tracer, str(started.pid)]) as other:
                said = Doctor(started.pid)
                self.assertEqual(("limited", "missing"), (said.state("tracer"), said.state("stopping")))
                self.assertIn("process %d " % other.pid, said["tracer"]["found"])
                self.assertEqual("kill %d" % other.pid, said["tracer"]["remedy"])
                self.assertEqual(("missing", "missing"), (said.state("inject"), said.state("agent_by_thread")))
                self.assertNotEqual(0, t.probing("inject", started.pid).returncode)
                subprocess.run(said["tracer"]["remedy"].split(), check=True)
                other.process.wait()
            after = Doctor(started.pid)
            self.assertEqual(("ok", "ok"), (after.state("tracer"), after.state("stopping")))
            self.assertEqual("ok", after.state("inject"))
            t.probing("inject", started.pid, check=t.OK)

    def test_another_network(self):
        if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("needs the right to make a network namespace")
        with t.target(["unshare", "--net", t.DEBIAN_PYTHON, "-c", SLEEPER]) as started:
            said = Doctor(started.pid)
            self.assertIn("another network namespace, which you may enter", said["agent_network"]["found"])
            self.assertEqual("2\n", t.probing("eval", started.pid, "1 + 1", check=t.OK).stdout)

    def test_nothing_is_stopped(self):
        child = subprocess.Popen(["sleep", "60"])
        try:
            os.kill(child.pid, signal.SIGSTOP)
            os.waitpid(child.pid, os.WUNTRACED)
            Doctor(child.pid)
            with open("/proc/%d/stat" % child.pid) as stat:
                self.assertEqual("T", stat.read().rsplit(")", 1)[1].split()[0])
            os.kill(child.pid, signal.SIGCONT)
            os.waitpid(child.pid, os.WCONTINUED)
            Doctor(child.pid)
            self.assertEqual((0, 0), os.waitpid(child.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED))
        finally:
            child.kill()
            child.wait()

    def test_executable_that_was_deleted(self):
        need_memory()
        shutil.copy("/bin/sleep", "sleeper")
        child = subprocess.Popen([os.path.abspath("sleeper"), "60"])
        try:
            t.wait_until(lambda: os.readlink("/proc/%d/exe" % child.pid).endswith("sleeper"))
            os.remove("sleeper")
            self.assertRegex(Doctor(child.pid)["executable"]["found"], "deleted")
        finally:
            child.kill()
            child.wait()

    def test_tasks_of_an_event_loop(self):
        need_memory()
        program = ("import asyncio\n"
                   "async def wait(): await asyncio.sleep(60)\n"
                   "async def main():\n"
                   "    tasks = [asyncio.create_task(wait()) for _ in range(3)]\n"
                   "    await asyncio.sleep(0)\n"
                   "    print('ready {}', flush=True)\n"
                   "    await asyncio.gather(*tasks)\n"
                   "asyncio.run(main())\n")
        with t.target([t.DEBIAN_PYTHON, "-c", program]) as started:
            self.assertIn("4 tasks of 1 event loops", Doctor(started.pid)["event_loops"]["found"])


class Remedies(Case):
    """The command that stands below a fault is run as it stands, and the fault is gone."""

    def test_capabilities_of_the_file(self):
        t.need_root()
        t.need_program("setcap")
        with open("/proc/sys/kernel/perf_event_paranoid") as level:
            if int(level.read()) > 2:
                self.skipTest("with this perf_event_paranoid perf events take more")
        with t.target([t.DEBIAN_PYTHON, "-c", SLEEPER]) as started:
            command = self.as_ordinary_user(started.pid)
            before = Doctor(command=command)
            self.assertEqual((t.NOT_PERMITTED, None), (before.status, before.all["recording"]))
            for name in ("owner", "memory", "sampling", "stopping"):
                self.assertEqual("missing", before.state(name), before[name])
                self.assertTrue(before[name]["as_root"])
            self.assertEqual("limited", before.state("capabilities"))
            done = subprocess.run(["sh", "-c", before["owner"]["remedy"]], capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest("capabilities cannot be given to a file here: %s" % done.stderr.strip())
            after = Doctor(command=command)
        self.assertEqual(0, after.status)
        self.assertIn(after.all["recording"], ("wakeup", "bpf"))
        for name in ("owner", "memory", "sampling", "stopping", "capabilities", "perf_event_paranoid", "python"):
            self.assertEqual("ok", after.state(name), after[name])

    def test_descriptors(self):
        t.need_program("prlimit")
        few = "prlimit --nofile=32:32 --pid $$"
        look = "%s doctor --json" % t.BINARY
        before = Doctor(command=["sh", "-c", "%s && %s" % (few, look)])
        self.assertEqual("limited", before.state("descriptors"))
        remedy = before["descriptors"]["remedy"]
        self.assertTrue(remedy.startswith("prlimit --pid $$ --nofile="), remedy)
        t.need_root()
        allowed = subprocess.run(["sh", "-c", "%s && %s" % (few, remedy)], capture_output=True, text=True)
        if allowed.returncode != 0:
            self.skipTest("this root may not raise limits: %s" % allowed.stderr.strip())
        after = Doctor(command=["sh", "-c", "%s && %s && %s" % (few, remedy, look)])
        self.assertEqual("ok", after.state("descriptors"), after["descriptors"])

    def test_a_folder_to_write_into(self):
        os.mkdir("closed", 0o555)
        before = Doctor(command=self.as_ordinary_user(), cwd="closed")
        self.assertEqual("missing", before.state("disk"))
        self.assertEqual("cd /tmp", before["disk"]["remedy"])
        after = Doctor(command=["sh", "-c", before["disk"]["remedy"] + " && exec \"$@\"", "sh"] + self.as_ordinary_user())
        self.assertNotEqual("missing", after.state("disk"))

    def test_other_verbs_point_here(self):
        t.need_root()
        with t.target([t.DEBIAN_PYTHON, "-c", SLEEPER]) as started:
            doctor = self.as_ordinary_user()
            front, binary = doctor[:-2], doctor[-3]
            for arguments in (["record", "-d", "1", "--pid"], ["record", "--source", "poll", "-d", "1", "--pid"],
                              ["backtrace"]):
                done = subprocess.run(front[:-1] + [binary] + arguments + [str(started.pid)], capture_output=True, text=True)
                self.assertEqual(t.NOT_PERMITTED, done.returncode, done.stderr)
                self.assertSentence(done.stderr, r"run `probing doctor( %d)?` for details" % started.pid)


if __name__ == "__main__":
    sys.exit(unittest.main())
