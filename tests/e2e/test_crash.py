# SPDX-License-Identifier: MIT
"""Crash reports: what they have, and that a process ends as it would have ended without them."""
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import textwrap
import threading
import unittest

import probing_test as p
from test_inject import need_injection

WANTED = ("debian", "3_8", "3_13")

# The first argument is how it ends; the second one, code to run before.
PROGRAM = textwrap.dedent("""
    import ctypes, faulthandler, os, signal, sys, threading, time
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    def waits():
        time.sleep(60)
    def segv():
        ctypes.string_at(8)
    def segv_in_a_thread():
        thread = threading.Thread(target=segv)
        thread.start()
        thread.join()
    def segv_at_once():
        barrier.wait()
        libc.strlen(8)
    def segv_in_all():
        global barrier
        barrier = threading.Barrier(8)
        threads = [threading.Thread(target=segv_at_once) for _ in range(8)]
        for thread in threads:
            thread.start()
        threads[0].join()
    def abort():
        os.abort()
    def killed():
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(5)
    def raises():
        attempt = 7
        raise ValueError("no such \\x1b[31mthing")
    def child():
        pid = os.fork() or segv()
        print(os.waitpid(pid, 0)[1])
        os._exit(0)
    def look_at(tid):
        with open("/proc/self/task/%d/status" % tid) as status:
            return [line.split()[1] for line in status if line.startswith(("State", "voluntary", "nonvoluntary"))]
    waiting = [threading.Thread(target=waits, daemon=True) for _ in range(2)]
    for thread in waiting:
        thread.start()
        before = None
        while before is None or before != look_at(thread.native_id) or before[0] != "S":  # it sleeps, and not for the GIL
            before = look_at(thread.native_id)
            time.sleep(0.02)
    for line in sys.argv[2:]:
        exec(line)
    print("ready {}", flush=True)
    if sys.argv[1] == "told":
        for line in sys.stdin:
            exec(line)
            print("done", flush=True)
    else:
        globals()[sys.argv[1]]()
    """)
# What kernels of other machines name otherwise, and what differs from run to run.
VARIES = re.compile(r"0x[0-9a-f]+|line \d+|Thread-?\d+|probing: .*\n")


def interpreters():
    return [one for one in p.interpreters() if one.label in WANTED]


class CrashCase(unittest.TestCase):
    interpreter = p.Interpreter(p.DEBIAN_PYTHON, None, "debian")

    def setUp(self):
        need_injection()
        p.need_interpreter(self.interpreter)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONFAULTHANDLER")}
        self.environment.update(PROBING_DATA_DIR=self.folder, XDG_STATE_HOME=self.folder)
        with open(os.path.join(self.folder, "crashes.py"), "w") as file:
            file.write(PROGRAM)

    def start(self, *words, crash="1", **more):
        prefix = [p.BINARY, "run"] if crash else []
        environment = dict(self.environment, PROBING_CRASH=crash) if crash else self.environment
        return subprocess.Popen(prefix + [self.interpreter.path, "-u", "-W", "ignore", "crashes.py"] + list(words),
                                cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                universal_newlines=True, env=environment, preexec_fn=self.limit_cores, **more)

    @staticmethod
    def limit_cores():
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        wanted = 1 << 16
        resource.setrlimit(resource.RLIMIT_CORE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))

    def end(self, process):
        """(wait status, stdout, stderr, pid)"""
        limit = threading.Timer(60, process.kill)
        limit.start()
        out, err = process.stdout.read(), process.stderr.read()
        status = os.waitpid(process.pid, 0)[1]
        process.returncode = 0
        limit.cancel()
        for stream in process.stdin, process.stdout, process.stderr:
            stream.close()
        return status, out, err, process.pid

    def run_one(self, *words, **more):
        return self.end(self.start(*words, **more))

    def report(self, *words, check=p.OK):
        return p.probing("crash", *words, check=check, env=self.environment)

    def crash(self, *words):
        """It ends with and without reports in the same way. Returns the report, and stderr."""
        status, _, without, _ = self.run_one(*words, crash="")
        now, _, err, pid = self.run_one(*words)
        self.assertEqual(status, now)
        self.assertEqual(VARIES.sub("", without), VARIES.sub("", err))
        self.assertIn("probing: a crash report was written: probing crash %d\n" % pid, err)
        return self.report(pid).stdout, err, status

    def thread_with(self, report, function):
        """The lines of the thread that runs a function."""
        found = [thread for thread in report.split("\nThread ")[1:] if re.search(r"\n  (and .*\n  )?.*\b%s  \(crashes.py" % function, thread)]
        self.assertEqual(1, len(found), report)
        return [line.split("  ")[1] for line in found[0].split("\n\n")[0].splitlines()[1:]]


@p.for_each_interpreter(globals(), interpreters)
class Crash(CrashCase):
    interpreter = None

    def test_fault_in_a_thread(self):
        report, _, status = self.crash("segv_in_a_thread")
        self.assertEqual(signal.SIGSEGV, os.WTERMSIG(status))
        self.assertRegex(report, r"(?m)^probing crash report of process \d+$")
        self.assertRegex(report, r"(?m)^command: .* crashes.py segv_in_a_thread$")
        self.assertRegex(report, r"(?m)^reason:  SIGSEGV \(Segmentation fault\) in thread \d+, address 0x8$")
        names = self.thread_with(report, "segv")
        self.assertLess(names.index("__restore_rt"), names.index("string_at"))
        self.assertLess(names.index("string_at"), names.index("segv"))
        self.assertIn("segv_in_a_thread", self.thread_with(report, "segv_in_a_thread"))
        self.assertIn("waits", self.thread_with(report, "waits"))
        self.assertRegex(report, r"(?m)^rdi 0000000000000008 ")

    def test_all_threads_at_once(self):
        report, _, status = self.crash("segv_in_all")
        self.assertEqual(signal.SIGSEGV, os.WTERMSIG(status))
        self.assertEqual(1, len(self.report("--list").stdout.splitlines()))
        self.assertIn("segv_at_once", report)

    def test_abort(self):
        report, _, status = self.crash("abort")
        self.assertEqual(signal.SIGABRT, os.WTERMSIG(status))
        self.assertRegex(report, r"(?m)^reason:  SIGABRT \(Aborted\) in thread \d+, raised by the process itself$")
        self.assertIn("abort", self.thread_with(report, "abort"))

    def test_uncaught_exception_rows_and_spans(self):
        lines = ("import probing; probing.step(3); [probing.log(epoch=i, loss=1 / (i + 1)) for i in range(30)]",
                 "span = probing.span('load', rank=3); span.__enter__()")
        pid, err = self.run_one("raises", *lines)[3:1:-1]
        self.assertIn("ValueError: no such", err)
        report = self.report(pid).stdout
        self.assertRegex(report, r"(?m)^reason:  an uncaught exception in thread %d$" % pid)
        self.assertRegex(report, r'(?m)^  File ".*crashes.py", line \d+, in raises$')
        self.assertIn("ValueError: no such \\x1b[31mthing\n", report)
        self.assertIn("waits", self.thread_with(report, "waits"))
        rows = report.split("== Last rows of training_logs ==\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual(["29", "28"], [line.split()[1] for line in rows[2:4]])
        self.assertEqual(22, len(rows))
        self.assertRegex(report, r"== Open spans ==\n.*\n.*\nload +1 .*\{\"rank\": 3\}")

    def test_faulthandler(self):
        report, err, _ = self.crash("segv", "faulthandler.enable()")
        self.assertIn("Fatal Python error: Segmentation fault", err)
        self.assertIn("SIGSEGV", report)
        # enabled before the agent comes
        status, _, err, pid = self.told("faulthandler.enable()")
        self.assertEqual(signal.SIGSEGV, os.WTERMSIG(status))
        self.assertIn("Fatal Python error: Segmentation fault", err)
        self.assertIn("segv", self.report(pid).stdout)

    def told(self, before, *configured, command="segv()"):
        process = self.start("told", before, crash="")
        p.await_ready(process)
        for value in configured or ("probing.crash=on",):
            p.probing(process.pid, "config", value, check=p.OK, env=self.environment)
        process.stdin.write(command + "\n")
        process.stdin.flush()
        return self.end(process)

    def test_handlers_of_the_program(self):
        exits = "libc.signal(11, ctypes.cast(libc._exit, ctypes.c_void_p))"  # its argument is the number of the signal
        status, _, _, pid = self.told(exits)
        self.assertEqual(11, os.WEXITSTATUS(status))
        self.assertIn("SIGSEGV", self.report(pid).stdout)
        # one that comes later has taken the signal
        status, _, _, pid = self.told("1", command=exits + "; segv()")
        self.assertEqual(11, os.WEXITSTATUS(status))
        self.report(pid, check=p.NO_INPUT)
        # one that is ignored, and one that the program survives
        lines = "signal.signal(signal.SIGSEGV, signal.SIG_IGN); signal.signal(signal.SIGABRT, lambda *_: print('abrt'))"
        status, out, _, pid = self.told(lines, command="os.kill(os.getpid(), 11); [os.kill(os.getpid(), 6) for _ in range(2)]; os._exit(3)")
        self.assertEqual((3, 2), (os.WEXITSTATUS(status), out.count("abrt\n")))
        self.assertEqual(1, len([line for line in self.report("--list").stdout.splitlines() if "/%d-" % pid in line]))

    def test_set_again_below_what_the_program_has_put_above(self):
        chain = "old = sys.excepthook; sys.excepthook = lambda *error: (print('mine', flush=True), old(*error))"
        for command, said in ("os.abort()", "Fatal Python error: Aborted"), ("raises()", "ValueError: no such"):
            process = self.start("told")
            p.await_ready(process)
            for line in "faulthandler.enable()", chain:
                process.stdin.write(line + "\n")
                process.stdin.flush()
                self.assertEqual("done\n", process.stdout.readline())
            for value in "off", "on", self.folder:
                p.probing(process.pid, "config", "probing.crash=" + value, check=p.OK, env=self.environment)
            process.stdin.write(command + "\n")
            process.stdin.flush()
            status, out, err, pid = self.end(process)
            self.assertEqual(1, err.count(said), err[-3000:])
            self.assertEqual((0, signal.SIGABRT) if command == "os.abort()" else (1, 0), (os.WEXITSTATUS(status), os.WTERMSIG(status)))
            self.assertEqual(0 if command == "os.abort()" else 1, out.count("mine\n"))
            self.assertEqual(1, len([name for name in os.listdir(self.folder) if name.startswith("%d-" % pid)]))

    def test_set_again_where_the_program_has_removed_it(self):
        for command in "os.abort()", "raises()":
            process = self.start("told")
            p.await_ready(process)
            process.stdin.write("libc.signal(6, None); sys.excepthook = sys.__excepthook__\n")
            process.stdin.flush()
            self.assertEqual("done\n", process.stdout.readline())
            p.probing(process.pid, "config", "probing.crash=on", check=p.OK, env=self.environment)
            process.stdin.write(command + "\n")
            process.stdin.flush()
            self.assertIn("reason: ", self.report(self.end(process)[3]).stdout)

    def test_it_is_undone(self):
        state = "hook = sys.excepthook is sys.__excepthook__; " \
                "print(hook, {l.split()[0]: int(l.split()[1], 16) >> 10 & 1 for l in open('/proc/self/status') if 'SigCgt' in l})"
        self.assertIn("True {'SigCgt:': 0}", self.told("1", "probing.crash=on", "probing.crash=off",
                                                       command=state + "; os._exit(0)")[1])
        self.assertIn("False {'SigCgt:': 1}", self.told("1", command=state + "; os._exit(0)")[1])
        status, _, _, pid = self.told("1", "probing.crash=on", "probing.crash=default")
        self.assertEqual(signal.SIGSEGV, os.WTERMSIG(status))
        self.report(pid, check=p.NO_INPUT)

    def test_a_forked_child(self):
        status, out, _, _ = self.run_one("child")
        self.assertEqual(0, status)
        self.assertEqual(signal.SIGSEGV, os.WTERMSIG(int(out.split()[-1])))
        self.report(check=p.NO_INPUT)


class Beside(CrashCase):
    """The process that writes reports."""

    def writer_of(self, pid):
        def find():
            for entry in os.listdir("/proc"):
                try:
                    with open("/proc/%s/cmdline" % entry, "rb") as file:
                        words = file.read().split(b"\0")
                    if words[1:3] == [b"crash", b"--write"] and os.path.samestat(os.stat("/proc/%s/fd/%d" % (entry, int(words[3]))),
                                                                                   self.page_of(pid)):
                        return int(entry)
                except (OSError, ValueError):
                    pass
            return None
        p.wait_until(lambda: find() is not None, 10, "the process that writes reports")
        return find()

    @staticmethod
    def page_of(pid):
        for name in os.listdir("/proc/%d/map_files" % pid):
            path = "/proc/%d/map_files/%s" % (pid, name)
            if "probing-crash" in os.readlink(path):
                return os.stat(path)
        raise OSError

    def test_it_is_no_child_and_ends_with_the_process(self):
        p.need_root()  # map_files
        process = self.start("told", "signal.signal(signal.SIGCHLD, lambda *_: print('child'))")
        p.await_ready(process)
        writer = self.writer_of(process.pid)
        process.stdin.write("import contextlib; suppress = contextlib.suppress(ChildProcessError)\n")
        process.stdin.write("with suppress: print('waited for', os.wait())\n")
        process.stdin.write("os._exit(5)\n")
        process.stdin.flush()
        status, out, _, _ = self.end(process)
        self.assertEqual((5, "done\ndone\n"), (os.WEXITSTATUS(status), out))
        p.wait_until(lambda: not os.path.exists("/proc/%d" % writer), 10, "its end")

    def test_another_key_that_is_refused_leaves_it_alone(self):
        p.need_root()
        process = self.start("told", "1")
        p.await_ready(process)
        writer = self.writer_of(process.pid)
        said = p.probing(process.pid, "config", "probing.trace=crashes.none", env=self.environment)
        self.assertIn("crashes.none was not found", said.stderr)
        self.assertEqual(writer, self.writer_of(process.pid))
        process.stdin.write("os._exit(0)\n")
        process.stdin.flush()
        self.end(process)

    def test_off_that_is_refused_leaves_it_on(self):
        process = self.start("told")
        p.await_ready(process)
        waits = "import os, time\nprint(1, flush=True)\nwhile not os.path.exists('goes_on'): time.sleep(0.01)"
        busy = subprocess.Popen([p.BINARY, str(process.pid), "eval", waits], stdout=subprocess.PIPE, env=self.environment)
        self.assertEqual(b"1\n", busy.stdout.readline())
        said = p.probing(process.pid, "config", "probing.crash=off", env=self.environment)
        self.assertIn("an evaluation has not ended yet", said.stderr)
        with open(os.path.join(self.folder, "goes_on"), "w"):
            pass
        busy.communicate()
        process.stdin.write("segv()\n")
        process.stdin.flush()
        self.assertIn("SIGSEGV", self.report(self.end(process)[3]).stdout)

    def test_it_was_killed(self):
        p.need_root()
        process = self.start("told", "1")
        p.await_ready(process)
        os.kill(self.writer_of(process.pid), signal.SIGKILL)
        process.stdin.write("segv()\n")
        process.stdin.flush()
        status = self.end(process)[0]
        self.assertEqual(signal.SIGSEGV, os.WTERMSIG(status))
        self.report(process.pid, check=p.NO_INPUT)


class Verb(CrashCase):
    def test_reports(self):
        self.assertIn("has no report: a process has them with PROBING_CRASH=1", self.report(check=p.NO_INPUT).stderr)
        folder = os.path.join(self.folder, "reports")
        os.mkdir(folder)
        _, _, _, pid = self.run_one("abort", crash=folder)
        names = os.listdir(folder)
        self.assertRegex(names[0], r"^%d-\d{8}-\d{6}\.txt$" % pid)
        path = os.path.join(folder, names[0])
        self.assertEqual(0o600, os.stat(path).st_mode & 0o777)
        self.assertEqual(self.report(path).stdout, self.report(folder).stdout)
        self.assertEqual(path + "\n", self.report("--list", folder).stdout)
        self.report(pid, check=p.NO_INPUT)
        self.report(os.path.join(folder, "none"), check=p.NO_INPUT)
        with open(path, "w") as file:
            file.write("a \x1b[31m\n")
        self.assertEqual("a \\x1b[31m\n", self.report(path).stdout)
        self.report("a", "b", check=p.USAGE)
        self.report("--write", "0", "0", check=p.USAGE)

    def test_why_there_are_none(self):
        _, _, err, _ = self.run_one("abort", crash="maybe")
        self.assertIn("probing.crash cannot be 'maybe': it is on or off, or an absolute path of a folder for reports", err)
        none = os.path.join(self.folder, "none")
        said = "no report can be written in %s: make it a folder that its user can write" % none
        self.assertIn("probing: crash was not set: %s\n" % said, self.run_one("abort", crash=none)[2])
        process = self.start("told")
        p.await_ready(process)
        self.assertIn(said, p.probing(process.pid, "config", "probing.crash=" + none, env=self.environment).stderr)
        process.stdin.write("segv()\n")  # as it was set before
        process.stdin.flush()
        self.assertIn("SIGSEGV", self.report(self.end(process)[3]).stdout)


if __name__ == "__main__":
    unittest.main()
