# SPDX-License-Identifier: MIT
"""What the end-to-end tests share: the binary, interpreters, targets, recordings.

A test starts a program of fixtures/ under a real interpreter, records it with
the real binary, and reads the result with Python's own sqlite3, so that nothing
of ours stands between the file and the assertion.

Environment: PROBING_BINARY (default: build/src/cli/probing of this tree),
PROBING_FIXTURES (default: the fixtures folder of that build),
PROBING_EXTENSION (default: SQLite's extension of that build),
PROBING_INTERPRETERS (paths, separated by colons; default: what is found),
PROBING_ROOTS (where scripts/roots puts root file systems).
"""
import collections
import contextlib
import ctypes
import errno
import functools
import glob
import json
import os
import platform
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FIXTURES = os.path.join(ROOT, "fixtures")
BINARY = os.environ.get("PROBING_BINARY") or os.path.join(ROOT, "build", "src", "cli", "probing")
BUILT_FIXTURES = os.environ.get("PROBING_FIXTURES") or os.path.join(
    os.path.dirname(BINARY), "..", "..", "fixtures")
DEBIAN_PYTHON = "/usr/bin/python3"
WANTED_VERSIONS = ("2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
SID_VERSIONS = ("3.14", "3.15")  # as scripts/roots has them
FREE_THREADED_VERSIONS = ("3.13", "3.14", "3.15")  # as `scripts/roots free-threaded` builds them
ROOTS = os.path.abspath(os.environ.get("PROBING_ROOTS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "probing", "roots"))
SID_ROOT = os.path.join(ROOTS, "sid")
# Whether their Python frames can be read; where not, test_containers has what can be asked of them.
READS_CONTAINERS = True
OWN_PIDS = "own_pids"  # the label of Debian's own in a PID namespace
SURE = ("exact", "verified")  # the verdicts that must not be wrong
LONGEST_TARGET_S = 60  # so that no target outlives a test run that was killed
HANG_S = 60  # whoever takes so long hangs: a program that has lost its processors to others for seconds does not

os.environ["PROBING_PAGER"] = ""  # tests on terminals read what probing prints; test_pager has pagers

# src/cli/cli.h
OK, FAILED, USAGE, BAD_DATA, NO_INPUT, NO_OUTPUT, IO, NOT_PERMITTED = 0, 1, 64, 65, 66, 73, 74, 77
NOT_EXECUTABLE, NOT_FOUND = 126, 127

# Where a program runs: the fixtures as it sees them, the command that takes it there, and
# why that cannot be done (None: it can).
Place = collections.namedtuple("Place", "fixtures built_fixtures prefix missing")
MACHINE = Place(FIXTURES, BUILT_FIXTURES, [], None)

# path: as seen in its place; None: there is none
Interpreter = collections.namedtuple("Interpreter", "path version label place", defaults=[MACHINE])


# ---- What this machine has ----

def version_of(path):
    """'3.11' of an interpreter, None where it cannot be run."""
    try:
        return subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                              capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def candidate_interpreters():
    if os.environ.get("PROBING_INTERPRETERS"):
        yield from os.environ["PROBING_INTERPRETERS"].split(":")
        return
    yield from sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python")))
    for version in WANTED_VERSIONS:
        path = shutil.which("python" + version)
        if path:
            yield path


def interpreters():
    """Debian's own, and one of each wanted version; a missing one has no path. That with its own PIDs is for each case by
    night: it is Debian's own once more, which all_interpreters() has for cases in which PIDs matter."""
    return [one for one in all_interpreters() if one.label != OWN_PIDS or os.environ.get("PROBING_NIGHTLY")]


@functools.lru_cache(maxsize=None)
def all_interpreters():
    result = [Interpreter(DEBIAN_PYTHON, version_of(DEBIAN_PYTHON), "debian")]
    by_version = {}
    for path in candidate_interpreters():
        # Starting one takes time, above all where it is a script of pyenv's: whoever has all need not go on.
        if all(version in by_version for version in WANTED_VERSIONS):
            break
        if os.path.realpath(path) != os.path.realpath(DEBIAN_PYTHON):
            by_version.setdefault(version_of(path), path)
    for version in WANTED_VERSIONS:
        result.append(Interpreter(by_version.get(version), version, version.replace(".", "_")))
    if READS_CONTAINERS:
        result += container_interpreters()
    return result + [one for one in free_threaded_interpreters() if one.path]


@functools.lru_cache(maxsize=None)
def has_modules(python, *names):
    """Whether a Python finds these modules. It does not import them: that takes seconds for torch."""
    look = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"
    return subprocess.run([python, "-c", look, *names], capture_output=True).returncode == 0


def is_final(path):
    """Of a pre-release, and where it cannot be run: no."""
    done = subprocess.run([path, "-c", "import sys; sys.exit(sys.version_info.releaselevel != 'final')"], capture_output=True)
    return done.returncode == 0


@functools.lru_cache(maxsize=None)
def free_threaded_interpreters():
    """Builds without a GIL, 3_13t and so on; without a path where `scripts/roots free-threaded` has built none."""
    result = []
    for version in FREE_THREADED_VERSIONS:
        path = os.path.join(ROOTS, "free-threaded", version + "t", "bin", "python%st" % version)
        is_there = os.access(path, os.X_OK) and is_final(path)
        result.append(Interpreter(path if is_there else None, version, version.replace(".", "_") + "t"))
    return result


# The first process of new namespaces, which ends with unshare.
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]

# Goes on as a program whose root is a folder, read-only, as container runtimes do it: what the
# program maps has no path outside. Arguments: root, fixtures, built fixtures, command.
ENTER = """
set -e
mount --bind -o ro "$1" "$1"
mount -t tmpfs none "$1/mnt"
mkdir "$1/mnt/fixtures" "$1/mnt/built"
mount --bind "$2" "$1/mnt/fixtures"
mount --bind "$3" "$1/mnt/built"
mount -t proc proc "$1/proc"
cd "$1"
pivot_root . .
umount -l .
shift 3
export PROBING_FIXTURES=/mnt/built
exec "$@"
"""


@functools.lru_cache(maxsize=None)
def namespaces_refusal():
    """Why we may not make namespaces; None where we may."""
    if os.geteuid() != 0:
        return "needs root, for namespaces"
    done = subprocess.run(UNSHARE + ["--mount-proc", "true"], capture_output=True, text=True, timeout=20)
    return done.stderr.strip() if done.returncode != 0 else None


def own_pids():
    """This machine in a PID namespace of its own."""
    return Place(FIXTURES, BUILT_FIXTURES, UNSHARE + ["--mount-proc"], namespaces_refusal())


def sid():
    """What scripts/roots made, with namespaces of its own."""
    missing = namespaces_refusal()
    if missing is None and not os.path.isdir(SID_ROOT):
        missing = "%s is not there; scripts/roots makes it" % SID_ROOT
    enter = ["sh", "-c", ENTER, "sh", SID_ROOT, FIXTURES, BUILT_FIXTURES]
    return Place("/mnt/fixtures", "/mnt/built", UNSHARE + enter, missing)


def container_interpreters():
    """Debian's own with its own PIDs, and the newest in a root of their own."""
    result = [Interpreter(DEBIAN_PYTHON, version_of(DEBIAN_PYTHON), OWN_PIDS, own_pids())]
    for version in SID_VERSIONS:
        result.append(Interpreter("/usr/bin/python" + version, version, "sid_" + version.replace(".", "_"), sid()))
    return result


def has_gil(interpreter):
    return not interpreter.label.endswith("t")


def compiling_interpreters():
    """The newest, with their own compiler to machine code switched on."""
    place = sid()._replace(prefix=sid().prefix + ["env", "PYTHON_JIT=1"])
    return [Interpreter("/usr/bin/python" + version, version, "compiling_" + version.replace(".", "_"), place)
            for version in SID_VERSIONS]


def for_each_interpreter(namespace, find=interpreters):
    """Class decorator: one copy of the test case per interpreter, named after it."""
    def expand(case):
        for interpreter in find():
            name = "%s_%s" % (case.__name__, interpreter.label)
            namespace[name] = type(name, (case,), {"interpreter": interpreter,
                                                   "__module__": case.__module__})
        return None  # the original has no interpreter and must not be collected
    return expand


# reason: why a sound program may exceed the bound; probability: how often it does, in one run on two processors.
Statistical = collections.namedtuple("Statistical", "reason probability")
MAX_FALSE_FAILURE = 0.01  # a test that fails more often needs another bound, or more samples


def statistical(reason, probability):
    """Decorator of a test, or of a case for all its tests: its assertion bounds a number that chance decides, as counts and
    shares of samples. run.py runs it once more where that assertion fails, and nothing else. Use it for no other reason:
    what load disturbs runs alone, or asserts what load cannot change."""
    if not reason or not 0 < probability <= MAX_FALSE_FAILURE:
        raise ValueError("a mark has a reason and a probability of at most %g" % MAX_FALSE_FAILURE)

    def mark(test):
        test.statistical = Statistical(reason, probability)
        return test
    return mark


def need_place(place):
    if place.missing:
        raise unittest.SkipTest(place.missing)


def need_interpreter(interpreter):
    need_place(interpreter.place)
    if interpreter.path is None:
        raise unittest.SkipTest("no CPython %s that this user can run" % interpreter.version if has_gil(interpreter) else
                                "no CPython %st: `scripts/roots free-threaded` builds one" % interpreter.version)


class PerfAttr(ctypes.Structure):
    """struct perf_event_attr, as far as a clock event needs it."""
    _fields_ = [("type", ctypes.c_uint32), ("size", ctypes.c_uint32), ("config", ctypes.c_uint64),
                ("period", ctypes.c_uint64), ("sample_type", ctypes.c_uint64),
                ("read_format", ctypes.c_uint64), ("flags", ctypes.c_uint64),
                ("rest", ctypes.c_uint8 * 80)]


@functools.lru_cache(maxsize=None)
def perf_refusal():
    """Why the kernel does not let us sample ourselves; None where it does.

    Asked without the program under test, whose own mistakes must not look
    like a missing permission.
    """
    syscall_number = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
    if syscall_number is None:
        return "perf_event_open's number is not known on " + platform.machine()
    attr = PerfAttr(type=1, size=ctypes.sizeof(PerfAttr), config=1, flags=0x1 | 0x20 | 0x40)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(syscall_number, ctypes.byref(attr), 0, -1, -1, 0)
    if fd >= 0:
        os.close(fd)
        return None
    return "perf_event_open says %s" % errno.errorcode.get(ctypes.get_errno())


def perf_refusal_of(user):
    """The same of another user, for whom this is root."""
    if os.geteuid() == user:
        return perf_refusal()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os._exit(1 if perf_refusal.__wrapped__() else 0)
        finally:
            os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, 1):
        raise AssertionError("perf_event_open could not be tried as user %d" % user)
    return "ordinary users may not sample here" if status == 1 else None


def need_perf():
    refusal = perf_refusal()
    if refusal:
        raise unittest.SkipTest(refusal)


def need_root():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root")


def capabilities():
    with open("/proc/self/status") as status:
        return int(re.search(r"CapEff:\s*(\w+)", status.read()).group(1), 16)


@functools.lru_cache(maxsize=None)
def bpf_refusal():
    """Why frames cannot be read inside the interrupt; None where they can.

    Asked without the program under test, but for whether it was built with that.
    """
    sys_admin, perfmon, bpf = 1 << 21, 1 << 38, 1 << 39
    have = capabilities()
    if not have & sys_admin and have & (perfmon | bpf) != perfmon | bpf:
        return "needs root, or CAP_BPF and CAP_PERFMON"
    with open("/proc/self/uid_map") as uid_map:
        if uid_map.read().split() != ["0", "0", "4294967295"]:
            return "needs the initial user namespace"
    if os.stat("/proc/self/ns/pid").st_ino != 0xeffffffc:
        return "needs the initial PID namespace"
    with contextlib.suppress(OSError), open("/sys/kernel/security/lockdown") as lockdown:
        if "[confidentiality]" in lockdown.read():
            return "the kernel is locked down"
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if tuple(map(int, release.groups())) < (5, 17) or not os.path.exists("/proc/sys/kernel/unprivileged_bpf_disabled"):
        return "needs Linux 5.17 with CONFIG_BPF_SYSCALL"
    return None if is_linked_with("libbpf") else "built without clang or libbpf"


def need_bpf():
    need_perf()
    refusal = bpf_refusal()
    if refusal:
        raise unittest.SkipTest("frames inside the interrupt: " + refusal)


# A mount namespace of its own, in which tracefs is mounted: this machine stays as it is.
WITH_TRACEFS = ["unshare", "--mount", "sh", "-c", 'mount -t tracefs none /sys/kernel/tracing && exec "$@"', "sh"]


@functools.lru_cache(maxsize=None)
def tracefs_refusal():
    """Why there are no tracepoints here; None: there are."""
    if os.geteuid() != 0:
        return "tracepoints need root"
    done = subprocess.run(WITH_TRACEFS + ["true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return None if done.returncode == 0 else "no tracefs of our own: " + done.stdout.strip()


@functools.lru_cache(maxsize=None)
def is_linked_with(library):
    """Whether the binary was built with an optional library."""
    listed = subprocess.run([need_program("ldd"), BINARY], stdout=subprocess.PIPE, text=True, check=True).stdout
    return any(line.strip().startswith(library + ".so") for line in listed.splitlines())


def need_tracefs():
    need_program("unshare")
    if tracefs_refusal():
        raise unittest.SkipTest(tracefs_refusal())
    if not is_linked_with("libtraceevent"):
        raise unittest.SkipTest("fields of tracepoints: built without libtraceevent")


def need_program(name):
    path = shutil.which(name)
    if path is None:
        raise unittest.SkipTest("%s is not installed" % name)
    return path


# ---- Running things ----

class Crashed(Exception):
    """A signal ended the binary. No assertion: a statistical test that meets it fails for good."""


class Impossible(Exception):
    """A sample that must not be, however many there are. No assertion, for the same reason."""


def probing(*arguments, timeout=3 * HANG_S, check=None, **more):
    """Run the binary to its end. check: the exit status it must have."""
    more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([BINARY] + [str(a) for a in arguments], text=True, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if check is not None and done.returncode != check:
        raise (Crashed if done.returncode < 0 else AssertionError)("probing %s: exit status %d, not %d; it said: %s%s" % (
            " ".join(map(str, arguments)), done.returncode, check, done.stdout[-2000:], done.stderr[-2000:]))
    return done


def fixture_command(name, *arguments, python=DEBIAN_PYTHON, place=MACHINE):
    """The command line of a fixture: 'demo.py' for Python, 'native_only' for C."""
    if name.endswith(".py"):
        # -B: sources may stand where this user cannot write
        program = [python, "-B", os.path.join(place.fixtures, name)]
    else:
        program = [os.path.join(place.built_fixtures, name)]
    return place.prefix + program + [str(a) for a in arguments]


def fixture_environment():
    return dict(os.environ, PROBING_FIXTURES=BUILT_FIXTURES)


class Target:
    """A running fixture; 'truth' is what it said about itself when it was ready."""

    def __init__(self, process, truth):
        self.process = process
        # with --fork, unshare waits for the program, its only child
        self.pid = child_of(process.pid) if process.args[:len(UNSHARE)] == UNSHARE else process.pid
        self.truth = truth

    def cpu_s(self):
        return cpu_s_of(self.pid)

    def is_running(self):
        return self.process.poll() is None


def cpu_s_of(pid):
    """CPU time that a process has used up to now, by all threads."""
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_cpu(cpu_s, *pids):
    """Until each process has computed for so long, from now on, however long a busy machine takes for that."""
    enough = [(pid, cpu_s_of(pid) + cpu_s) for pid in pids]
    wait_until(lambda: all(cpu_s_of(pid) >= end for pid, end in enough), HANG_S, "%g s of work by each of %s" % (cpu_s, pids))


def comm_of(pid):
    with open("/proc/%d/comm" % pid) as comm:
        return comm.read().strip()


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
        return [int(child) for child in children.read().split()]


def child_of(pid):
    """The program that a process has started; a recorder also has processes of its own, which soon have names of their own.
    Until then, and until its program is executed, a child has its parent's name."""
    own = ("probing-names", "probing-cfi", "probing-gpu", "probing-fetch")
    found = []

    def is_alone():
        children = [(child, comm_of(child)) for child in children_of(pid)]
        found[:] = [child for child, name in children if name not in own]
        return len(found) == 1 and (comm_of(pid) != "probing" or all(name != "probing" for _, name in children))
    wait_until(is_alone, HANG_S, "the recorder's own processes to be named")
    return found[0]


def await_ready(process, timeout_s=HANG_S):
    ready, _, _ = select.select([process.stdout], [], [], timeout_s)
    line = process.stdout.readline() if ready else ""
    if not line.startswith("ready"):
        raise AssertionError("the target did not get ready: %r" % line)
    return json.loads(line[len("ready"):] or "{}")


@contextlib.contextmanager
def target(command, **more):
    """Start a target, wait until it is ready, and end it afterwards."""
    more.setdefault("env", fixture_environment())
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **more)
    try:
        yield Target(process, await_ready(process))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def fixture(name, *arguments, python=DEBIAN_PYTHON, place=MACHINE):
    if name.endswith(".py"):
        arguments = ("--seconds", LONGEST_TARGET_S) + arguments
    else:
        arguments = arguments + (LONGEST_TARGET_S,)
    return target(fixture_command(name, *arguments, python=python, place=place))


@contextlib.contextmanager
def scratch():
    """A folder of its own, also the current one meanwhile."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="probing-test.") as folder:
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


SHARED = {}  # what shared() has made: by function, its folder and its result


def shared(make):
    """Decorator: what a function makes in a folder, which is its argument, is made once for the cases of a module that
    run together (run.py), and gone after them."""
    @functools.wraps(make)
    def made():
        if make not in SHARED:
            folder = tempfile.TemporaryDirectory(prefix="probing-test.")
            SHARED[make] = folder, make(folder.name)
        return SHARED[make][1]
    return made


def end_shared():
    for folder, _ in SHARED.values():
        folder.cleanup()
    SHARED.clear()


def drop_views(db):
    """SQLite changes no table under a view; and files of before had few."""
    for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
        db.execute('DROP VIEW main."%s"' % name)


def record(pid, seconds=2, hz=499, path="probing.db", *more):
    """Attach, record, and open the result."""
    probing("record", "--pid", pid, "-d", seconds, "-F", hz, "-o", path, *more, check=OK)
    return Recording(path)


def record_fixture(name, *arguments, seconds=2, hz=499, python=DEBIAN_PYTHON, place=MACHINE, source="auto"):
    """(recording, truth) of a fixture in a scratch folder that is gone afterwards."""
    with scratch(), fixture(name, *arguments, python=python, place=place) as started:
        return record(started.pid, seconds, hz, "probing.db", "--source", source), started.truth


@contextlib.contextmanager
def recorder(*arguments, prefix=(), **more):
    """A recorder in the background; killed if the test leaves it running. prefix: the command that starts it."""
    process = subprocess.Popen([*prefix, BINARY, "record"] + [str(a) for a in arguments], text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


# The last line that a recorder prints before it records, of one process or several.
HAS_BEGUN = re.compile(r"\brecording (Python|its|metrics|\d+ processes)\b")


def await_recording(process):
    """Read a recorder's stderr until it records; what it has said by then. Nothing stays in a buffer, which communicate() ignores."""
    said = ""
    while not HAS_BEGUN.search(said):
        text = os.read(process.stderr.fileno(), 4096).decode()
        if not text:
            raise AssertionError("the recorder ended: " + said)
        said += text
    return said


def record_for_cpu(pid, cpu_s, path, *arguments, **more):
    """Record a process until it has computed for so long, however long a busy machine takes for that. Returns what the recorder said."""
    with recorder("--pid", pid, "-o", path, *arguments, **more) as process:
        said = await_recording(process)
        wait_for_cpu(cpu_s, pid)
        wait_for_samples(path)  # a recorder that has not run meanwhile begins only now
        status, _, rest = stop_politely(process)
    if status != OK:
        raise (Crashed if status < 0 else AssertionError)("probing record: exit status %d: %s%s" % (status, said, rest))
    return said + rest


def record_cpu(target, cpu_s, hz=499, path="probing.db", *more):
    """Attach, record until the target has computed for so long, and open the result."""
    record_for_cpu(target.pid, cpu_s, path, "-F", hz, *more)
    return Recording(path)


# Its main thread ends, another goes on. The system call is the thread's end alone; pthread_exit(3) would unwind Python.
WITHOUT_MAIN_THREAD = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(%d,), daemon=True).start()
print("ready {}", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
""" % LONGEST_TARGET_S


def state_of(pid):
    """The letter of proc(5) of a process' main thread."""
    with open("/proc/%d/stat" % pid) as stat:
        return stat.read().rpartition(")")[2].split()[0]


def wait_until(condition, timeout_s=HANG_S, what="a condition"):
    stop = time.monotonic() + timeout_s
    while True:
        is_last = time.monotonic() > stop  # before it is asked: meanwhile this process may not run
        if condition():
            return
        if is_last:
            raise AssertionError("waited %d s for %s" % (timeout_s, what))
        time.sleep(0.02)


EXTENSION = os.environ.get("PROBING_EXTENSION") or os.path.join(
    os.path.dirname(BINARY), "..", "extension", "probing_sqlite.so")


def connect(path, mode="ro"):
    """A recording as the stock sqlite3 has it, and the table `sample` by the extension."""
    db = sqlite3.connect("file:%s?mode=%s" % (path, mode), uri=True)
    try:
        db.enable_load_extension(True)
        db.load_extension(os.path.abspath(EXTENSION))
    except AttributeError:
        raise unittest.SkipTest("the sqlite3 of this Python loads no extensions")
    except BaseException:
        db.close()
        raise
    return db


def has_samples(path):
    """Whether a recording that is being written holds samples already."""
    try:
        with contextlib.closing(connect(path)) as db:
            return db.execute("SELECT count(*) FROM sample").fetchone()[0] > 0
    except sqlite3.Error:
        return False


def wait_for_samples(path):
    wait_until(lambda: has_samples(path), HANG_S, "the first samples in " + path)


def await_done(process):
    """What a line of code prints in a program that reads such lines, and prints "done" after each."""
    printed = []
    for line in iter(process.stdout.readline, "done\n"):
        if not line:
            raise AssertionError("the program has ended: %s" % printed)
        printed.append(line)
    return "".join(printed)


def run_in(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return await_done(process)


def end(pid, timeout_s=HANG_S):
    """Wait for a child that should be ending; kill it if it does not. Returns its wait status."""
    stop = time.monotonic() + timeout_s
    while time.monotonic() < stop:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


# ---- Reading a recording ----

Frame = collections.namedtuple("Frame", "kind name role file line module is_eval")
Sample = collections.namedtuple("Sample", "timestamp pid tid weight verdict stack_end stack")


class Recording:
    """A recording, read into memory with the stock sqlite3."""

    def __init__(self, path):
        with contextlib.closing(connect(path)) as db:
            self.integrity = db.execute("PRAGMA integrity_check").fetchone()[0]
            self.run = self._one(db, "SELECT * FROM run")
            self.counters = dict(db.execute("SELECT name, value FROM counter"))
            self.processes = self._all(db, "SELECT * FROM process")
            self.threads = self._all(db, "SELECT * FROM thread")
            self.modules = self._all(db, "SELECT * FROM module")
            self.evaluation_places = self._all(db, "SELECT * FROM anchor_location JOIN module USING (module)")
            self.samples = [Sample(*row) for row in db.execute(
                "SELECT timestamp, pid, tid, weight, verdict, stack_end, stack FROM sample ORDER BY timestamp")]
            self.total_samples = db.execute("SELECT sum(samples) FROM stack_total").fetchone()[0]
            self._load_frames(db)
            # The C runtime's own beginning and end of each file have none.
            self.modules_without_cfi = [path for (path,) in db.execute(
                "SELECT DISTINCT path FROM frame LEFT JOIN module USING (module) LEFT JOIN function USING (function)"
                " WHERE without_cfi AND coalesce(name, '') NOT IN ('_init', '_fini', '__do_global_dtors_aux', 'frame_dummy',"
                " 'register_tm_clones', 'deregister_tm_clones')")]
        self._paths = {}

    @staticmethod
    def _all(db, sql):
        cursor = db.execute(sql)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row)) for row in cursor]

    def _one(self, db, sql):
        rows = self._all(db, sql)
        return rows[0] if len(rows) == 1 else None

    def _load_frames(self, db):
        self._frames, self._inlined_into = {}, {}
        for row in db.execute("SELECT frame, kind, name, role, file, line, module, is_eval, inlined_into "
                              "FROM named_frame"):
            self._frames[row[0]] = Frame(*row[1:8])
            self._inlined_into[row[0]] = row[8]
        self._stacks = {row[0]: row[1:] for row in db.execute("SELECT stack, parent, frame FROM stack")}

    def _with_inlined(self, frame):
        """A place and the functions it was inlined into, outermost first."""
        chain = []
        while frame is not None:
            chain.append(self._frames[frame])
            frame = self._inlined_into[frame]
        return chain[::-1]

    def path(self, stack):
        """All frames of a stack, root to leaf, nothing hidden."""
        if stack not in self._paths:
            pieces, at = [], stack
            while at is not None:
                at, frame = self._stacks[at]
                pieces.append(self._with_inlined(frame))
            self._paths[stack] = [frame for piece in reversed(pieces) for frame in piece]
        return self._paths[stack]

    def python(self, stack):
        """The Python frames of a stack, root to leaf."""
        return [frame for frame in self.path(stack) if frame.kind == "python"]

    def names(self, stack):
        return [frame.name for frame in self.path(stack)]

    def is_unsampled(self, sample):
        return self.names(sample.stack) == ["[not sampled]"]

    def share(self, condition):
        """Share of the samples that fulfil a condition."""
        return sum(map(bool, map(condition, self.samples))) / max(1, len(self.samples))

    def verdicts(self):
        return collections.Counter(sample.verdict for sample in self.samples)

    def ends(self):
        return collections.Counter(sample.stack_end for sample in self.samples)

    def all_names(self):
        return {frame.name for sample in self.samples if sample.stack for frame in self.path(sample.stack)}


def file_labels(paths):
    """How files are called: the shortest end that no other path has; see base/file_labels.h, which does it otherwise."""
    ends = {path: ["/".join(path.split("/")[i:]) for i in range(path.count("/"), -1, -1)] for path in set(paths)}
    met = collections.Counter(end for some in ends.values() for end in some)
    labels = {}
    for path, some in ends.items():
        found = next((i for i, end in enumerate(some) if met[end] == 1 and end), len(some) - 1)
        if some[0] in ("__init__.py", "__main__.py"):
            found = min(max(found, 1), len(some) - 1)
        root = re.match(r".*/((site|dist)-packages|(?<=/lib/)python[2-9][^/]*|(?<=/lib64/)python[2-9][^/]*)/", path)
        imported = path[root.end():] if root and found > 0 else ""
        labels[path] = max(some[found], imported, key=len)
    return labels


def labels_of(path):
    """The labels of a recording's files and modules."""
    with contextlib.closing(connect(path)) as db:
        return file_labels(path for row in db.execute("SELECT DISTINCT file, module FROM named_frame") for path in row if path)


def same_name(name, wanted):
    """Whether a shown name is that function: 'reduce' is also '_functools.reduce', 'qsort'
    also 'qsort_r', 'descend' also 'descend.constprop.0', 'main' also 'main (demo.py)'."""
    return re.search(r"(^|[.:])(__GI_+)?%s(_r)?($|\.(constprop|isra|part|cold)| ?\()" % re.escape(wanted),
                     name) is not None


def subsequence(names, wanted):
    """Whether the wanted names occur in this order, others between them allowed."""
    rest = iter(names)
    return all(any(same_name(name, one) for name in rest) for one in wanted)


class Case(unittest.TestCase):
    """A test case in a scratch folder of its own."""

    def setUp(self):
        need_perf()
        folder = scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    @classmethod
    def tearDownClass(cls):
        cls.recording = None  # they are large

    def assertSentence(self, text, *patterns):
        """One sentence on stderr, in our form, that names what it must."""
        lines = text.strip().splitlines()
        self.assertEqual(1, len(lines), text)
        self.assertTrue(lines[0].startswith("probing: "), text)
        for pattern in patterns:
            self.assertRegex(lines[0], pattern)

    def assertNearlyAll(self, n_right, n, what):
        """99 of 100, where two may always be wrong: a thread's very first and last steps are samples too."""
        self.assertGreater(n, 0, what)
        self.assertLessEqual(n - n_right, max(2, n * 0.01), "%s: %d of %d" % (what, n_right, n))

    def assertShare(self, least, share, what):
        self.assertGreaterEqual(share, least, "%s: %.2f %%" % (what, share * 100))


class RecordedCase(Case):
    """Each test finds a recording of the demonstration load as probing.db; it is made once for all of a class. The load computes for
    SECONDS meanwhile, in one thread at a time."""
    SECONDS, MODE = 2, "cpu"

    @classmethod
    def setUpClass(cls):
        need_perf()
        folder = scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with fixture("demo.py") as target:
            cls.recording = record_cpu(target, cls.SECONDS, 499, "probing.db", "--mode", cls.MODE)

    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(self.folder, "probing.db"), "probing.db")


def stop_politely(process, number=signal.SIGINT, timeout_s=HANG_S):
    """Signal a recorder and collect what it said: (status, stdout, stderr)."""
    process.send_signal(number)
    out, err = process.communicate(timeout=timeout_s)
    return process.returncode, out, err


def what_it_does(pid):
    """State, masks of signals and kernel function of a process and its children, for a message."""
    found = []
    for each in [pid] + children_of(pid):
        try:
            with open("/proc/%d/status" % each) as status, open("/proc/%d/wchan" % each) as where, \
                    open("/proc/%d/cmdline" % each) as command:
                said = [" ".join(line.split()) for line in status
                        if line.startswith(("State:", "TracerPid:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:"))]
                found.append("%d %s: %s; in %s" % (each, command.read().replace("\0", " "), ", ".join(said), where.read()))
        except OSError as error:
            found.append("%d: %s" % (each, error))
    return "\n".join(found)


def await_end(process, timeout_s=HANG_S):
    """Its exit status; one that does not end is described."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise AssertionError("it has not ended in %d s:\n%s" % (timeout_s, what_it_does(process.pid)))


# Started in the background or by nohup we ignore these, and so would all that we start;
# a handler of ours is not inherited through exec.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, lambda number, frame: None)

if not os.access(BINARY, os.X_OK):
    sys.exit("%s is not there; build first, or set PROBING_BINARY" % BINARY)
