# SPDX-License-Identifier: MIT
"""PROBING_RECORD: a recording of a program from its first to its last moment, which nobody attaches to; record --background."""
import glob
import os
import re
import signal
import subprocess
import sys
import unittest

import probing_test as t
from container_case import ContainerCase, run_in_container
from test_metrics import limited_group
from test_start import StartCase

BURN = """
import sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(i * i for i in range(500))
"""
ENDS = {  # how a program ends, and its exit status then
    "exit": ("burn(0.8)", 0),
    "exception": ("burn(0.8); raise ValueError('wrong')", 1),
    "kill -9": ("import os; burn(0.8); os.kill(os.getpid(), 9)", -9),
    "crash": ("import os; burn(0.8); os.abort()", -6),
}


def is_recorder(pid, path):
    """Whether a process writes this recording; the processes that read files for it have no such argument."""
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as file, open("/proc/%s/stat" % pid) as stat:
            arguments, parent = file.read().split(b"\0"), int(stat.read().rsplit(")", 1)[1].split()[1])
        with open("/proc/%d/cmdline" % parent, "rb") as file:
            return path.encode() in arguments and path.encode() not in file.read().split(b"\0")
    except (OSError, IndexError):
        return False


class AlwaysOnCase:
    """How it is started: run_program(code, PROBING_RECORD=...), in self.folder."""

    def path(self, name):
        return os.path.join(self.folder, name)

    def await_recorder(self, said):
        """Until the recorder of which the program has said the PID has ended."""
        pid = int(re.search(r"^probing: recording into .* \(process (\d+)\)$", said, re.MULTILINE).group(1))
        t.wait_until(lambda: not os.path.exists("/proc/%d" % pid), 30, "the end of the recorder")

    def assertRecorded(self, name, function="burn", least=0.6):
        """The file is whole, and has the program's 0.8 s but three periods at most.

        Timers that expire in the kernel give an ordinary user no sample. Such time is in the file without a stack, and is the
        lesser part.
        """
        recording = t.Recording(self.path(name))
        self.assertEqual("ok", recording.integrity)
        self.assertEqual(1, recording.run["clean"])
        in_function = sum(s.weight for s in recording.samples if function in recording.names(s.stack)) / 1e9
        without = sum(s.weight for s in recording.samples if "[not sampled]" in recording.names(s.stack)) / 1e9
        self.assertGreater(in_function + without, least, recording.all_names())
        self.assertGreater(in_function, least / 2, recording.all_names())
        return recording

    def test_ends(self):
        for name, (code, status) in ENDS.items():
            with self.subTest(name):
                file = name.replace(" ", "") + ".db"
                done = self.run_program(BURN + code, PROBING_RECORD=file)
                self.assertEqual(status, done.returncode, done.stderr)
                self.assertEqual(1, done.stderr.count("recording into %s" % self.path(file)), done.stderr)
                self.await_recorder(done.stderr)
                recording = self.assertRecorded(file)
                self.assertEqual(19, recording.run["hz"])
                self.assertEqual(self.source, recording.run["stack_source"])
                self.assertFalse(os.path.exists(self.path(file + ".log")))
                info = subprocess.run([t.BINARY, "info", self.path(file)], stdout=subprocess.PIPE, text=True, check=True).stdout
                self.assertRegex(info, r"samples +[1-9]")

    def test_children_and_exec(self):
        """One recorder for all of them: of a child that forks, of a Python that is started, and of the next program."""
        child = BURN.replace("def burn", "def in_started").replace("burn(", "in_started(") + "in_started(1.2)"
        done = self.run_program(BURN + """
import os, subprocess
def in_forked(): burn(1.2)
pid = os.fork()
if pid == 0:
    in_forked()
    os._exit(0)
os.waitpid(pid, 0)
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1].replace("in_started", "after_exec")])
""", child, PROBING="2", PROBING_RECORD="out.db")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(1, done.stderr.count("recording into"), done.stderr)
        self.assertEqual(3, done.stderr.count("active in process"), done.stderr)
        self.await_recorder(done.stderr)
        for function in "in_forked", "in_started", "after_exec":
            self.assertRecorded("out.db", function, 0.4)


class Plain(AlwaysOnCase, StartCase, t.Case):
    light = True
    source = "bpf"

    def setUp(self):
        super().setUp()
        t.need_perf()
        self.source = "wakeup" if t.bpf_refusal() else "bpf"

    def environment(self, **more):
        return super().environment(PROBING_BINARY=t.BINARY, **more)

    def run_program(self, code, *arguments, PROBING="1", **more):
        return self.run_python("-c", code, *arguments, PROBING=PROBING, **more)

    def test_it_is_no_child_and_holds_nothing(self):
        """The program's children are its own, its pipes end with it, and Ctrl-C in its terminal does not reach the recorder."""
        code = """
import os, signal
try:
    print(os.wait())
except ChildProcessError:
    print("no child")
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.killpg(0, signal.SIGINT)
print(signal.getsignal(signal.SIGCHLD), os.environ.get("PROBING_RECORD"), len(os.listdir("/proc/self/fd")))
__import__("sys").stdout.flush()
""" + BURN + "burn(0.8)"
        done = subprocess.run([self.interpreter, "-c", code], env=self.environment(PROBING="1", PROBING_RECORD="out.db"),
                              cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=60, start_new_session=True)
        self.assertEqual("no child\n0 None 4\n", done.stdout, done.stderr)
        self.await_recorder(done.stderr)
        self.assertRecorded("out.db")

    def test_a_short_program(self):
        done = self.run_program("pass", PROBING_RECORD="out.db")
        self.assertEqual(0, done.returncode)
        self.await_recorder(done.stderr)
        recording = t.Recording(self.path("out.db"))
        self.assertEqual(("ok", 1), (recording.integrity, recording.run["clean"]))

    def test_mistakes_are_one_line(self):
        """And the program goes on."""
        folder = self.folder
        for environment, says in (
                ({"PROBING_RECORD": "nowhere/out.db"}, "not recorded: %s/nowhere/out.db cannot be " % folder),
                ({"PROBING_RECORD": "out.db,frequency=fast"}, "not recorded: the number of samples|not recorded: .*frequency .*fast"),
                ({"PROBING_RECORD": "out.db,colour=red"}, "not recorded: PROBING_RECORD has no key colour: the keys are retention, "),
                ({"PROBING_RECORD": "%x.db"}, "not recorded: %x in PROBING_RECORD means nothing: it is %p, %h, %t, %r or %%"),
                ({"PROBING_RECORD": ",retention=1h"}, "not recorded: PROBING_RECORD=,retention=1h names no file"),
                ({"PROBING_RECORD": "out.db", "PROBING_BINARY": "/nowhere"}, "not recorded: the program /nowhere is not there")):
            with self.subTest(environment):
                more = dict(self.environment(PROBING="1"), **environment)
                done = subprocess.run([self.interpreter, "-c", "print('goes on')"], env=more, cwd=folder, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual((0, "goes on\n"), (done.returncode, done.stdout), done.stderr)
                self.assertEqual(2, done.stderr.count("\n"), done.stderr)
                self.assertRegex(done.stderr, "(?m)^probing: " + says)
                self.assertEqual([], glob.glob(self.path("*.db*")))

    def test_quiet(self):
        done = self.run_program("pass", PROBING_RECORD="out.db", PROBING_LOGLEVEL="error")
        self.assertEqual("", done.stderr)
        t.wait_until(lambda: not any(os.path.exists(self.path("out.db" + end)) for end in ("-wal", "-shm", ".log")), 20,
                     "the end of the recorder")
        self.assertEqual(1, t.Recording(self.path("out.db")).run["clean"])

    def test_placeholders_and_keys(self):
        done = self.run_program("import os, sys; print(os.getpid(), os.uname().nodename)",
                                PROBING_RECORD="a-%p-%h-%t-%r-%%.db,retention=1h,max-size=50M,frequency=7,source=wakeup", RANK="3")
        pid, host = done.stdout.split()
        self.await_recorder(done.stderr)
        path, = glob.glob(self.path("*.db"))
        self.assertRegex(os.path.basename(path), r"^a-%s-%s-\d{8}-\d{6}-3-%%\.db$" % (pid, re.escape(host)))
        run = t.Recording(path).run
        self.assertEqual((7, "wakeup"), (run["hz"], run["stack_source"]))

    def test_several_processes_of_one_file(self):
        """A second process at the same time, and ranks of a launcher, put their PID into its name."""
        hold = "import os; print('ready {}', flush=True); __import__('sys').stdin.read()"
        with self.program([self.interpreter, "-c", hold], PROBING="1", PROBING_RECORD="out.db") as first:
            done = self.run_program("import os; print(os.getpid())", PROBING_RECORD="out.db")
            self.assertIn("recording into %s " % self.path("out.%s.db" % done.stdout.strip()), done.stderr)
            self.await_recorder(done.stderr)
            _, said = first.communicate("", timeout=30)
            self.await_recorder(said)
        self.assertEqual(2, len(glob.glob(self.path("*.db"))))
        done = self.run_program("import os; print(os.getpid())", PROBING_RECORD="rank.db", RANK="0", WORLD_SIZE="2")
        self.await_recorder(done.stderr)
        self.assertTrue(os.path.exists(self.path("rank.%s.db" % done.stdout.strip())), done.stderr)

    def test_one_after_the_other(self):
        for _ in range(2):
            done = self.run_program("pass", PROBING_RECORD="out.db")
            self.await_recorder(done.stderr)
        self.assertEqual(["out.db", "out.db.old"], sorted(name for name in os.listdir(self.folder) if name.startswith("out")))

    def test_no_room(self):
        """The program goes on, the file holds what had room, and the log says why there is no more."""
        t.need_root()
        small = self.path("small")
        os.mkdir(small)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", small], stderr=subprocess.PIPE)
        if mounted.returncode != 0:
            self.skipTest("may not mount a tmpfs: %s" % mounted.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        many = "".join("def f%d():\n    for _ in range(20000): pass\n" % i for i in range(300))
        done = self.run_program(many + BURN + "end = time.process_time() + 4\nwhile time.process_time() < end:\n"
                                + "".join("    f%d()\n" % i for i in range(300)), PROBING_RECORD="small/out.db,frequency=999")
        self.assertEqual(0, done.returncode)
        self.assertEqual(2, done.stderr.count("\n"), done.stderr)
        self.await_recorder(done.stderr)
        with open(os.path.join(small, "out.db.log")) as log:
            self.assertRegex(log.read(), "recording stopped: .*(?i:full|no space)")
        info = subprocess.run([t.BINARY, "info", os.path.join(small, "out.db")], stdout=subprocess.PIPE, text=True)
        self.assertEqual(0, info.returncode)
        self.assertRegex(info.stdout, r"samples +[1-9]")

    def test_out_of_memory(self):
        """The kernel ends the program, the largest of its cgroup, in which the recorder is, too."""
        with limited_group("probing-test-%d" % os.getpid()) as joins:
            if not joins:
                self.skipTest("no cgroup with limits may be made here")
            joins = [join for join in joins if "/cpu/" not in join]
            code = BURN + "burn(0.8)\nkept = []\nwhile True: kept.append(bytearray(1 << 20))"
            for more in "", ",source=agent":
                with self.subTest(more):
                    name = "out%s.db" % len(more)
                    done = subprocess.run(["sh", "-c", 'echo $$ > "$1" && shift && exec "$@"', "sh", *joins, self.interpreter, "-c", code],
                                          env=self.environment(PROBING="1", PROBING_RECORD=name + more), cwd=self.folder, text=True,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
                    self.assertEqual(-9, done.returncode, done.stderr)
                    self.await_recorder(done.stderr)
                    recording = self.assertRecorded(name)
                    self.assertEqual("agent" if more else self.source, recording.run["stack_source"])

    def test_killed_with_its_recorder(self):
        """As where a whole container is ended: the file opens, and has what was written."""
        for more in "", ",source=agent":
            with self.subTest(more), self.program([self.interpreter, "-c", BURN + "print('ready {}', flush=True); burn(100)"], PROBING="1",
                                                  PROBING_RECORD="out%d.db%s" % (len(more), more)) as process:
                path = self.path("out%d.db" % len(more))
                t.wait_for_samples(path)
                recorder, = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_recorder(pid, path)]
                for pid in recorder, process.pid:
                    os.kill(pid, signal.SIGKILL)
                t.wait_until(lambda: not os.path.exists("/proc/%d" % recorder), 30, "the end of the recorder")
                recording = t.Recording(path)
                self.assertEqual("ok", recording.integrity)
                self.assertIn("burn", recording.all_names())
                done = subprocess.run([t.BINARY, "flamegraph", "--format", "folded", path, "-o", "-"], stdout=subprocess.PIPE, text=True)
                self.assertEqual(0, done.returncode)
                self.assertIn("burn", done.stdout)

    def test_first_process_of_a_container(self):
        """It takes all others with it when it ends, so it ends the recorder itself."""
        refusal = t.namespaces_refusal()
        if refusal:
            self.skipTest(refusal)
        for code, status in (("burn(0.8)", 0), ("burn(0.8); raise ValueError('wrong')", 1)):
            done = subprocess.run(t.UNSHARE + ["--mount-proc", self.interpreter, "-c", BURN + code], cwd=self.folder, text=True,
                                  env=self.environment(PROBING="1", PROBING_RECORD="out.db"), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(status, done.returncode, done.stderr)
            self.assertRecorded("out.db")


class Container(AlwaysOnCase, ContainerCase):
    """The stricter filter: test_agent_source has the other one."""
    filter_name = "--strict"
    light = True
    source = "agent"

    def run_program(self, code, *arguments, PROBING="1", **more):
        if sys.version_info < (3, 9):
            self.skipTest("subprocess changes users from 3.9 on")
        return subprocess.run([*self.filter, t.DEBIAN_PYTHON, "-c", code, *arguments], cwd=self.folder,
                              env=self.environment(PROBING=PROBING, **more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, **self.user)


    def test_container_as_it_is(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, for namespaces")
        run_in_container(self, self.folder, self.user["user"], self.filter, self.binary, t.DEBIAN_PYTHON, self.environment())


class Background(t.Case):
    """record --background by hand."""

    def setUp(self):
        t.need_perf()
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def test_returns_when_it_records(self):
        with t.fixture("demo.py") as target:
            done = t.probing("record", "--pid", target.pid, "--background", "-F", 499, "-o", "out.db", check=t.OK)
            pid, path = done.stdout.split()
            self.assertEqual(os.path.realpath("out.db"), path)
            t.wait_for_samples("out.db")
            os.kill(int(pid), signal.SIGTERM)
            t.wait_until(lambda: not os.path.exists("/proc/" + pid), 20, "the end of the recorder")
        self.assertEqual(1, t.Recording("out.db").run["clean"])
        with open("out.db.log") as log:
            said = log.read()
        self.assertRegex(said, r"^stack source: ")
        self.assertIn("written to out.db", said)

    def test_errors_are_the_commands_own(self):
        for arguments, status, says in (
                (["--pid", 2 ** 22 - 1], t.NO_INPUT, "there is no process"),
                (["--", "true"], t.USAGE, "--background is for running processes"),
                (["--pid", os.getpid(), "-f", "folded", "-o", "-"], t.USAGE, "--background writes a file")):
            done = t.probing("record", "--background", *arguments, check=status)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
