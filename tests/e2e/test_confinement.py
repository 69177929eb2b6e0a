# SPDX-License-Identifier: MIT
"""What a recorder may do after it has attached, who reads foreign files, and that recordings do not suffer from it."""
import contextlib
import ctypes
import glob
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import probing_test as t
from probing_test import fixture, probing, recorder

WAIT_S = 20
SYS_PIDFD_GETFD = 438  # on all machines; Linux 5.6
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


def readers_of(pid, name="probing-names"):
    """(the process that keeps it, the process that reads files), of a recorder."""
    keeper, = (child for child in t.children_of(pid) if t.comm_of(child) == name)
    return keeper, t.children_of(keeper)[0]


def has_filters():
    """Sanitizers trace the process they are in, so that a recorder built with one has none."""
    with open(t.BINARY, "rb") as binary:
        return b"__asan_init" not in binary.read()


def is_confined(pid):
    found = statuses_of(pid)
    return len(found) > 1 and all(status.get("NoNewPrivs") == "1" for status in found)


def file_of(pid, number):
    """(name, flags) of a descriptor; None: it has been closed meanwhile."""
    while True:
        try:
            name = os.readlink("/proc/%d/fd/%s" % (pid, number))
            with open("/proc/%d/fdinfo/%s" % (pid, number)) as info:
                flags = int(dict(line.split(":\t") for line in info if ":\t" in line)["flags"], 8)
            if name == os.readlink("/proc/%d/fd/%s" % (pid, number)):  # else the number is another file's by now
                return name, flags
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def nobody_asks(pid, recorder_pid, reader):
    """Meanwhile the program is stopped, and its reader has answered all questions: it waits for the next one."""
    seen = []

    def is_idle():
        statuses = [status_of(reader)] + statuses_of(recorder_pid)
        seen.append((all(status["State"].startswith("S") for status in statuses), statuses[0]["voluntary_ctxt_switches"]))
        return len(seen) >= 30 and len(set(seen[-30:])) == 1 and seen[-1][0]  # longer than between two looks into the rings
    os.kill(pid, signal.SIGSTOP)
    try:
        t.wait_until(is_idle, what="the reader to be asked no more")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def recording(pid, *more, **options):
    """(recorder, its keeper, its reader), once it has given up what it does not need, and has samples of each function."""
    with recorder("--pid", pid, "-F", 499, "-o", "out.db", *more, **options) as process:
        t.wait_until(lambda: is_confined(process.pid), WAIT_S, "the recorder to be confined")
        t.wait_for_samples("out.db")
        t.wait_for_cpu(0.5, pid)
        yield (process,) + readers_of(process.pid)


class Privileges(t.Case):
    def check_threads(self, pid):
        for status in statuses_of(pid):
            self.assertEqual("1", status["NoNewPrivs"])
            self.assertEqual("2" if has_filters() else "0", status["Seccomp"])

    def check_reader(self, pid, name):
        status = status_of(pid)
        self.assertEqual([name, "1", "2"], [status[field] for field in ("Name", "NoNewPrivs", "Seccomp")])
        for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            self.assertEqual(0, int(status[kind], 16), kind)
        if os.geteuid() == 0:
            self.assertEqual(["65534"] * 4, status["Uid"].split())
            self.assertEqual("", status["Groups"].strip())

    def check_priority(self, recorder, readers):
        """The capturing thread waits for their answers, so they are as urgent."""
        wanted = os.getpriority(os.PRIO_PROCESS, recorder)
        self.assertEqual([wanted] * len(readers), [os.getpriority(os.PRIO_PROCESS, pid) for pid in readers])
        if os.geteuid() == 0:
            self.assertLess(wanted, 0)

    def check_files(self, pid):
        """Its socket, modules and debug files, which were handed over: nothing that is written but /dev/null, and no network."""
        if os.geteuid() != 0:
            return
        with open("/proc/net/unix") as sockets:
            local = {"socket:[%s]" % line.split()[6] for line in sockets.readlines()[1:]}
        for name, flags in filter(None, [file_of(pid, number) for number in os.listdir("/proc/%d/fd" % pid)]):
            if name.startswith("socket:"):
                self.assertIn(name, local)
            if flags & os.O_ACCMODE != os.O_RDONLY:
                self.assertRegex(name, "^(socket:|/dev/null$|.* \\(deleted\\)$)")

    def test_while_recording(self):
        with fixture("demo.py") as target, recording(target.pid) as (process, keeper, reader):
            self.check_threads(process.pid)
            others = readers_of(process.pid, "probing-cfi")
            self.check_priority(process.pid, others)
            for pid in (keeper, reader) + others:
                self.check_reader(pid, "probing-cfi" if pid in others else "probing-names")
                self.check_files(pid)
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        result = t.Recording("out.db")
        self.assertEqual((1, "ok"), (result.run["clean"], result.integrity))
        self.assertIn("edit_distance", result.all_names())
        self.assertGreater(result.counters["elf questions"], 10)
        for pid in (keeper, reader) + others:
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
                if "recording a context switch took" not in said.stderr:
                    self.assertNotRegex(said.stderr, "context switches \\([0-9]{4,}", said.stderr)
                self.assertEqual("ok", t.Recording("out.db").integrity)


class Deaths(t.Case):
    def test_of_the_reader(self):
        with fixture("demo.py") as target, recording(target.pid) as (process, keeper, reader):
            os.kill(reader, signal.SIGKILL)
            t.wait_for_cpu(1, target.pid)
            status, _, stderr = t.stop_politely(process)
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
            t.wait_for_cpu(0.5, target.pid)
            status, _, _ = t.stop_politely(process)
        self.assertEqual(t.OK, status)
        result = t.Recording("out.db")
        self.assertEqual((1, "ok"), (result.run["clean"], result.integrity))
        self.assertIn("edit_distance", result.all_names(), "Python's own names are no file's")
        self.assertGreaterEqual(len(ended), 1)

    def test_of_the_recorder(self):
        """Nobody is left behind."""
        with fixture("demo.py") as target, recording(target.pid) as (process, keeper, reader):
            others = (keeper, reader) + readers_of(process.pid, "probing-cfi")
            process.kill()
            process.wait()
            t.wait_until(lambda: not any(map(status_of, others)), WAIT_S, "the others to end")


N_LIBRARIES = 100

# Loads libraries when a file appears, one after another; functions of each run for a moment.
PROGRAM = """
import ctypes, os, time

def run_for(seconds, function):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        function(20000)

print("ready {}", flush=True)
while not os.path.exists("go"):
    run_for(0.02, range)
while True:
    for i in range(%d):
        library = ctypes.CDLL(os.path.abspath("burning%%d.so" %% i))
        run_for(0.03, library.burn_0)
        run_for(0.03, library.burn_1)
""" % N_LIBRARIES


@contextlib.contextmanager
def recording_of_libraries():
    """(recorder, the keeper of its process that reads ELF files, that process, the program), before the libraries are loaded."""
    source = "".join("int burn_%d(int n);\nint burn_%d(int n)\n{\n\tvolatile int sum = %d;\n\n\tfor (int i = 0; i < n; i++)\n"
                     "\t\tsum += i;\n\treturn sum;\n}\n" % (i, i, i) for i in range(2))
    subprocess.run(["cc", "-x", "c", "-", "-O1", "-shared", "-fPIC", "-o", "burning0.so"], input=source, text=True, check=True)
    for i in range(1, N_LIBRARIES):
        shutil.copy("burning0.so", "burning%d.so" % i)
    with t.target([t.DEBIAN_PYTHON, "-c", PROGRAM]) as target, recording(target.pid) as (process, _, _):
        yield (process,) + readers_of(process.pid, "probing-cfi") + (target.pid,)


def go():
    with open("go", "w"):
        pass


WIRE_CFI = 14  # src/pipeline/name_wire.h


def head(contents):
    """A message of src/pipeline/cfi_wire.h."""
    return struct.pack("<2I", WIRE_CFI, len(contents)) + contents


OPEN, CLOSE, SYMBOL, SECTION, FUNCTION, ROWS = range(6)
NONSENSE = (b"", b"nonsense, and more of it", struct.pack("<2I", WIRE_CFI, 0xffffffff), head(b"\0"), head(b"\0" * 30000),
            head(b"\0" * 4 + b"\xff" * 100))


def false_answer(question):
    """Of the right form: rows that lead nowhere, segments and symbols that are not there."""
    kind, _, n_addresses, address = struct.unpack_from("<2I2Q", question, 8)
    if kind == ROWS:
        row = struct.pack("<2I4Bi8h", 0, 1, 2, 7, 0, 0, 0x7ffffff0, *(-8,) * 8)
        addresses = struct.unpack_from("<%dQ" % n_addresses, question, 24)
        return head(struct.pack("<i", 0) + b"".join(struct.pack("<2I2QI", number, 20 + len(row), at, at + 1, 1) + row
                                                    for number, at in enumerate(addresses)))
    if kind == OPEN:
        segments = [struct.pack("<4Q2I", 1 << n, 1 << 62, 1 << n, 1 << n, 0, 1) for n in range(64)]
        return head(struct.pack("<i3I", 0, 62, 32, len(segments)) + b"\xff" * 32 + b"".join(segments))
    return head(struct.pack("<i4x2Q", 0, address, 0xffffffffffffffff))


class ElfFiles(t.Case):
    """Whoever reads ELF files dies, or is taken over: files are given up and counted, and the recording goes on."""

    def setUp(self):
        super().setUp()
        t.need_program("cc")

    def steal_socket(self, pid):
        """Speak for a process, which is stopped. A file could have it do the same."""
        def is_socket(number):
            try:
                return os.readlink("/proc/%d/fd/%s" % (pid, number)).startswith("socket:")
            except FileNotFoundError:  # closed meanwhile
                return False

        def sockets():
            return [int(number) for number in os.listdir("/proc/%d/fd" % pid) if is_socket(number)]

        t.wait_until(lambda: len(sockets()) == 1, WAIT_S, "it to have closed its keeper's")
        os.kill(pid, signal.SIGSTOP)
        libc, pidfd = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid)
        stolen = libc.syscall(SYS_PIDFD_GETFD, pidfd, sockets()[0], 0)
        os.close(pidfd)
        self.assertGreaterEqual(stolen, 0, os.strerror(ctypes.get_errno()))
        return socket.socket(fileno=stolen)

    def finish(self, process, pid):
        """What the recorder said, and the recording, which has gone on to the end."""
        t.wait_for_cpu(1, pid)
        status, _, stderr = t.stop_politely(process)
        self.assertEqual(t.OK, status, stderr)
        result = t.Recording("out.db")
        self.assertEqual((1, "ok"), (result.run["clean"], result.integrity))
        self.assertIn("run_for", result.all_names(), "Python's own names are no file's")
        return stderr, result

    @t.statistical("bounds the share of samples that are unwound while a new reader starts", 0.0005)
    def test_death(self):
        with recording_of_libraries() as (process, _, reader, pid):
            with nobody_asks(pid, process.pid, reader):  # else it could die of a file
                os.kill(reader, signal.SIGKILL)
            go()
            stderr, result = self.finish(process, pid)
        self.assertIn("the process that reads call frame information died 1 time\n", stderr)
        self.assertNotIn("elf files given up", result.counters)
        stacks = [result.names(sample.stack) for sample in result.samples if sample.stack]
        burning = [names for names in stacks if any(name.startswith("burn_") for name in names)]
        self.assertGreater(len(burning), 20)
        self.assertShare(0.9, sum("run_for" in names for names in burning) / len(burning), "unwound to Python")

    def test_death_of_both(self):
        with recording_of_libraries() as (process, keeper, reader, pid):
            os.kill(keeper, signal.SIGKILL)
            os.kill(reader, signal.SIGKILL)
            go()
            stderr, result = self.finish(process, pid)
        self.assertRegex(stderr, "files? (is|are) unwound without call frame information, the first is /")
        self.assertGreaterEqual(result.counters["elf files given up"], 1)

    def test_nonsense(self):
        t.need_root()
        with recording_of_libraries() as (process, keeper, _, pid):
            go()
            for nonsense in NONSENSE:
                reader, = t.children_of(keeper)
                with self.steal_socket(reader) as stolen:
                    stolen.send(nonsense)
                t.wait_until(lambda: t.children_of(keeper) not in ([], [reader]), WAIT_S, "another reader")
            stderr, result = self.finish(process, pid)
        self.assertIn("the process that reads call frame information died %d times\n" % len(NONSENSE), stderr)
        self.assertGreaterEqual(result.counters["elf files given up"], 1)

    def test_false_answers(self):
        t.need_root()
        n = 0
        with recording_of_libraries() as (process, _, reader, pid):
            with nobody_asks(pid, process.pid, reader):  # else it has taken a question that nobody answers
                stolen = self.steal_socket(reader)
            with stolen:
                stolen.settimeout(WAIT_S)  # until the program has its first library
                go()
                with contextlib.suppress(OSError):  # no more is asked
                    while n < 40:
                        stolen.send(false_answer(stolen.recv(4096)))
                        n += 1
                        stolen.settimeout(2)
            os.kill(reader, signal.SIGKILL)
            self.finish(process, pid)
        self.assertGreater(n, 0)


if __name__ == "__main__":
    sys.exit("run tests/e2e/run.py")
