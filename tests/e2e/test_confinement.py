# SPDX-License-Identifier: MIT
"""What a recorder may do after it has attached, who reads foreign files, and that recordings do not suffer from it."""
import contextlib
import glob
import os
import signal
import sys
import time

import probing_test as t
from probing_test import fixture, probing, recorder

WAIT_S = 20
# Bits of CapEff. Source: include/uapi/linux/capability.h
DAC_OVERRIDE, DAC_READ_SEARCH, KILL, SETGID, SETUID, SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, SYSLOG, PERFMON, BPF = (
    1 << n for n in (1, 2, 5, 6, 7, 16, 17, 19, 21, 34, 38, 39))


def status_of(pid, tid=None):
    """{field: text} of a thread; {} where it has ended."""
    try:
        with open("/proc/%d/task/%d/status" % (pid, tid or pid)) as status:
            return dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
    except OSError:
        return {}


def statuses_of(pid):
    return [status_of(pid, int(os.path.basename(path))) for path in glob.glob("/proc/%d/task/*" % pid)]


def readers_of(pid):
    """(the process that keeps it, the process that reads files), of a recorder."""
    keeper, = (child for child in t.children_of(pid) if t.comm_of(child) == "probing-names")
    return keeper, t.children_of(keeper)[0]


def has_filters():
    """Sanitizers trace the process they are in, so that a recorder built with one has none."""
    with open(t.BINARY, "rb") as binary:
        return b"__asan_init" not in binary.read()


def is_confined(pid):
    found = statuses_of(pid)
    return len(found) > 1 and all(status.get("NoNewPrivs") == "1" for status in found)


@contextlib.contextmanager
def recording(pid, *more, **options):
    """(recorder, its keeper, its reader), once it has given up what it does not need."""
    with recorder("--pid", pid, "-F", 499, "-o", "out.db", *more, **options) as process:
        t.wait_until(lambda: is_confined(process.pid), WAIT_S, "the recorder to be confined")
        t.wait_for_samples("out.db")
        yield (process,) + readers_of(process.pid)


class Privileges(t.Case):
    def check_threads(self, pid):
        for status in statuses_of(pid):
            self.assertEqual("1", status["NoNewPrivs"])
            self.assertEqual("2" if has_filters() else "0", status["Seccomp"])

    def check_reader(self, pid):
        status = status_of(pid)
        self.assertEqual(["probing-names", "1", "2"], [status[field] for field in ("Name", "NoNewPrivs", "Seccomp")])
        for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            self.assertEqual(0, int(status[kind], 16), kind)
        if os.geteuid() == 0:
            self.assertEqual(["65534"] * 4, status["Uid"].split())
            self.assertEqual("", status["Groups"].strip())

    def check_files(self, pid):
        """Its socket, modules and debug files, which were handed over: nothing that is written but /dev/null."""
        if os.geteuid() != 0:
            return
        for path in glob.glob("/proc/%d/fdinfo/*" % pid):
            with open(path) as info:
                flags = int(dict(line.split(":\t") for line in info if ":\t" in line)["flags"], 8)
            name = os.readlink(path.replace("fdinfo", "fd"))
            if flags & os.O_ACCMODE != os.O_RDONLY:
                self.assertRegex(name, "^(socket:|/dev/null$|.* \\(deleted\\)$)")

    def test_while_recording(self):
        with fixture("demo.py") as target, recording(target.pid) as (process, keeper, reader):
            self.check_threads(process.pid)
            for pid in (keeper, reader):
                self.check_reader(pid)
                self.check_files(pid)
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        result = t.Recording("out.db")
        self.assertEqual((1, "ok"), (result.run["clean"], result.integrity))
        self.assertIn("edit_distance", result.all_names())
        for pid in (keeper, reader):
            self.assertEqual({}, status_of(pid), "it has ended with the recorder")

    def test_capabilities_that_are_left(self):
        t.need_root()
        with fixture("demo.py") as target, recording(target.pid) as (process, _, _):
            kept = {tid == str(process.pid): int(status_of(process.pid, int(tid))["CapEff"], 16)
                    for tid in os.listdir("/proc/%d/task" % process.pid)}
            bounding = int(status_of(process.pid)["CapBnd"], 16)
        capture, writer = kept[True], kept[False]
        self.assertTrue(capture & SYS_PTRACE and capture & DAC_READ_SEARCH)
        for mask in (capture, writer):
            self.assertEqual(0, mask & (DAC_OVERRIDE | KILL | SETGID | SETUID | SYS_MODULE | SYS_RAWIO))
        self.assertEqual(0, writer & (PERFMON | BPF | SYS_ADMIN))
        self.assertEqual(0, capture & SYSLOG)
        self.assertEqual(0, bounding & ~capture, "no program could have more")

    def test_in_a_folder_of_somebody_else(self):
        """SQLite makes and removes files there, up to the end."""
        t.need_root()
        os.mkdir("theirs")
        os.chown("theirs", 65534, 65534)
        os.chmod("theirs", 0o700)
        with fixture("demo.py") as target:
            probing("record", "--pid", target.pid, "-d", 1, "-o", "theirs/out.db", check=t.OK)
        self.assertEqual(["out.db"], os.listdir("theirs"))
        self.assertEqual("ok", t.Recording("theirs/out.db").integrity)

    def test_a_command_keeps_its_own(self):
        """It is started before anything is given up, and may start others that gain rights."""
        mine, script = status_of(os.getpid()), "cat /proc/self/status > status"
        probing("record", "-o", "out.db", "--", "sh", "-c", script, check=t.OK)
        with open("status") as status:
            its = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
        for field in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Uid"):
            self.assertEqual(mine[field], its[field], field)

    def test_waits_are_recorded_to_the_end(self):
        """What recording a switch takes is measured at the end, with events and programs of the kernel's."""
        for source in ("wakeup", "bpf"):
            with self.subTest(source=source):
                if source == "bpf":
                    t.need_bpf()
                said = probing("record", "--mode", "wall", "--source", source, "-o", "out.db", "--", t.DEBIAN_PYTHON, "-c",
                               "import time\nfor i in range(4000): time.sleep(0.0002)", check=t.OK, timeout=120)
                if "to record a switch took" not in said.stderr:
                    self.assertNotRegex(said.stderr, "switches away from a CPU \\([0-9]{4,}", said.stderr)
                self.assertEqual("ok", t.Recording("out.db").integrity)


class Deaths(t.Case):
    def test_of_the_reader(self):
        with fixture("demo.py") as target, recording(target.pid) as (process, keeper, reader):
            os.kill(reader, signal.SIGKILL)
            status, _, stderr = self.stop_later(process)
        self.assertEqual(t.OK, status)
        self.assertNotEqual("", stderr)
        result = t.Recording("out.db")
        self.assertEqual((1, "ok"), (result.run["clean"], result.integrity))
        self.assertIn("edit_distance", result.all_names())

    def test_of_each_reader(self):
        """A file that each one dies of: nothing has names any more, and the recording goes on."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to stop another user's process")
        ended = set()
        with fixture("demo.py") as target, recording(target.pid) as (process, keeper, _):
            stop = time.monotonic() + 4
            while time.monotonic() < stop:
                for reader in t.children_of(keeper):
                    with contextlib.suppress(OSError):
                        os.kill(reader, signal.SIGKILL)
                        ended.add(reader)
                time.sleep(0.01)
            status, _, _ = self.stop_later(process, 1)
        self.assertEqual(t.OK, status)
        result = t.Recording("out.db")
        self.assertEqual((1, "ok"), (result.run["clean"], result.integrity))
        self.assertIn("edit_distance", result.all_names(), "Python's own names are no file's")
        self.assertGreaterEqual(len(ended), 1)

    def stop_later(self, process, seconds=2):
        time.sleep(seconds)
        return t.stop_politely(process)

    def test_of_the_recorder(self):
        """Nobody is left behind."""
        with fixture("demo.py") as target, recording(target.pid) as (process, keeper, reader):
            process.kill()
            process.wait()
            t.wait_until(lambda: not status_of(keeper) and not status_of(reader), WAIT_S, "the others to end")


if __name__ == "__main__":
    sys.exit("run tests/e2e/run.py")
