#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Time that a profiler takes from the thread it looks at.

A Python thread, 20 frames deep, spins in C and sums what is taken from it
(bench/spin.c). Runs without a profiler, under `perf record`, under
`probing record` with each of its stack sources and under other profilers
alternate, so that what the machine does beside falls on all of them; medians
are compared. Prints a Markdown table. A profiler that is not there is skipped,
with the reason on stderr.

    bench/stolen.py [--build build] [--rounds 5] [--seconds 4] [--idle 0] [--busy 0]
                    [--hz 99,999] [--profilers perf,bpf,wakeup] [--python PROGRAM [--root FOLDER]]

Profilers:
    interrupt                 perf record, nothing copied
    perf                      perf record, with 16 KiB of stack
    bpf, wakeup, agent, poll  probing record --source NAME; the kernel's clock tick limits agent
    stop, nonstop             frames read from outside in py-spy's way, while all threads are stopped, and while they run
                              (bench/outside.c)
    py-spy, py-spy-nonblocking
                              py-spy itself, if it is in PATH
    sampling, sampling-blocking
                              CPython's own (python -m profiling.sampling, from 3.15), of the interpreter --python

The newest CPythons are in a root file system of scripts/roots:

    bench/stolen.py --root ~/.cache/probing/roots/sid --python /usr/bin/python3.15 --hz 99 \
                    --profilers interrupt,bpf,agent,stop,nonstop,sampling,sampling-blocking
"""
import argparse
import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMES = 20
PERF_STYLE = {"interrupt": [], "perf": ["--call-graph", "dwarf,16384"]}
OUTSIDE = ("stop", "nonstop")
PY_SPY = {"py-spy": [], "py-spy-nonblocking": ["--nonblocking"]}
SAMPLING = {"sampling": [], "sampling-blocking": ["--blocking"]}
# What those say at their end that have read something.
HAS_READ = r"^[1-9]\d* readings, [1-9]|^Captured [1-9]\d* samples"

# Goes on as a program of another root, with this machine's processes and, in /mnt, what is needed from here. Arguments: root, this folder,
# the built one, command.
ENTER = """
set -e
mount -t tmpfs none "$1/mnt"
mkdir "$1/mnt/bench" "$1/mnt/built"
mount --bind "$2" "$1/mnt/bench"
mount --bind "$3" "$1/mnt/built"
mount --rbind /proc "$1/proc"
root=$1
shift 3
exec chroot "$root" "$@"
"""


class Place:
    """Where the program runs, and CPython's own profiler: on this machine, or in a root file system."""

    def __init__(self, arguments):
        self.python, built = arguments.python, os.path.abspath(os.path.join(arguments.build, "bench"))
        self.prefix, self.bench, self.built = [], HERE, built
        if arguments.root:
            self.prefix = ["unshare", "--mount", "sh", "-c", ENTER, "sh", os.path.abspath(arguments.root), HERE, built]
            self.bench, self.built = "/mnt/bench", "/mnt/built"

    def command(self, *arguments):
        """Its process has the number of the one that is started."""
        return [*self.prefix, self.python, *arguments]

    def beside(self, pid, *arguments):
        """A command that sees the files of that process by the same paths."""
        return [*(["nsenter", "--target", str(pid), "--mount", "--root"] if self.prefix else []), self.python, *arguments]

    def has(self, module):
        return subprocess.run(self.command("-c", "import %s" % module), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Gaps(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_double), ("stolen", ctypes.c_double),
                ("stolen_short", ctypes.c_double), ("n", ctypes.c_uint64),
                ("median", ctypes.c_double)]


def target(library, seconds, n_idle, n_busy):
    """Child: other threads, then one spinning FRAMES deep; prints the shares in percent."""
    spin = ctypes.CDLL(library).spin
    spin.argtypes = [ctypes.c_double, ctypes.POINTER(Gaps)]
    gaps, gate = Gaps(), threading.Event()
    for _ in range(n_idle):
        threading.Thread(target=gate.wait, daemon=True).start()
    for _ in range(n_busy):
        threading.Thread(target=lambda: spin(3600, ctypes.byref(Gaps())), daemon=True).start()

    def descend(depth):
        if depth > 1:
            return descend(depth - 1)
        # Busy in the same place until told to begin: what a profiler does once is then done.
        while not select.select([sys.stdin], [], [], 0)[0]:
            spin(0.2, ctypes.byref(gaps))
        return spin(seconds, ctypes.byref(gaps))

    print("ready", flush=True)
    descend(FRAMES)
    print(100 * gaps.stolen / gaps.seconds, 100 * gaps.stolen_short / gaps.seconds, 1e6 * gaps.median, flush=True)
    sys.stdin.read()
    os._exit(0)


def why_not(name, place):
    """Why a profiler cannot be used here; None where it can."""
    if name in PERF_STYLE and not shutil.which("perf"):
        return "there is no program perf in PATH"
    if name in PY_SPY and not shutil.which("py-spy"):
        return "there is no program py-spy in PATH"
    if name in SAMPLING and not place.has("profiling.sampling"):
        return "%s has no module profiling.sampling, which CPython 3.15 has: --python, --root" % place.python
    return None


def profiler(name, hz, pid, build, folder, place):
    if name in PERF_STYLE:
        return ["perf", "record", "-q", "-F", str(hz), *PERF_STYLE[name], "-e", "cpu-clock", "-o", os.path.join(folder, "perf.data"),
                "-p", str(pid)]
    if name in OUTSIDE:
        return [os.path.join(build, "bench", "bench_outside"), str(pid), str(hz), name]
    if name in PY_SPY:
        return ["py-spy", "record", *PY_SPY[name], "--rate", str(hz), "--duration", "unlimited", "--format", "raw",
                "--output", os.path.join(folder, "py-spy.txt"), "--pid", str(pid)]
    if name in SAMPLING:
        return place.beside(pid, "-m", "profiling.sampling", "attach", *SAMPLING[name], "--sampling-rate", str(hz), str(pid))
    return [os.path.join(build, "src/cli/probing"), "record", "-q", "-F", str(hz), "--source", name,
            "--stack-bytes=16384", "-o", os.path.join(folder, "probing.db"), "-p", str(pid)]


def below(pid):
    """A recorder, and the processes that read files for it."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError), open("/proc/%d/task/%d/children" % (one, one)) as children:
            found += [int(child) for child in children.read().split()]
    return found


def cpu_of(pid):
    ticks = 0
    for one in below(pid):
        with contextlib.suppress(OSError), open("/proc/%d/stat" % one) as stat:
            ticks += sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def fail_if_ended(watcher, name, said):
    if watcher.poll() is not None:
        with open(said) as text:
            sys.exit("%s has ended: %s" % (name, text.read()))


def settle(watcher, name, said):
    """Wait until a profiler has started up and looked the first names up."""
    time.sleep(2)
    before, quiet = cpu_of(watcher.pid), 0
    for _ in range(20):
        time.sleep(0.5)
        fail_if_ended(watcher, name, said)
        now = cpu_of(watcher.pid)
        quiet = quiet + 1 if now - before <= 0.02 else 0
        before = now
        if quiet == 2:
            return


def measure(case, arguments, folder, place):
    """One run: (stolen %, stolen in short gaps %, the profiler's own CPU %, median gap in us)."""
    child = subprocess.Popen(place.command(os.path.join(place.bench, os.path.basename(__file__)), "--target",
                                           os.path.join(place.built, "libspin.so"), "--seconds", str(arguments.seconds),
                                           "--idle", str(arguments.idle), "--busy", str(arguments.busy)),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    own, watcher = 0.0, None
    if case and case[0] == "agent":
        subprocess.run([os.path.join(arguments.build, "src/cli/probing"), "inject", str(child.pid)], check=True,
                       stdout=subprocess.DEVNULL)
    if case:
        said = os.path.join(folder, "said")
        with open(said, "w") as output:
            watcher = subprocess.Popen(profiler(*case, child.pid, arguments.build, folder, place), stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output)
        settle(watcher, case[0], said)
        own = cpu_of(watcher.pid)
    child.stdin.write("\n")
    child.stdin.flush()
    answer = child.stdout.readline().split()
    if watcher:
        own = (cpu_of(watcher.pid) - own) / arguments.seconds * 100
        fail_if_ended(watcher, case[0], said)
        watcher.send_signal(signal.SIGINT)
        watcher.wait()
        with open(said) as text:
            if case[0] in (*OUTSIDE, *SAMPLING) and not re.search(HAS_READ, text.read(), re.MULTILINE):
                sys.exit("%s has read no frames" % case[0])
    child.stdin.close()
    child.wait()
    return float(answer[0]), float(answer[1]), own, float(answer[2])


def spread(values, form="%+.3f"):
    return "%s (%s … %s)" % tuple(form % value for value in (statistics.median(values), min(values), max(values)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"), help="Meson's build folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--idle", type=int, default=0, help="idle threads beside the busy one")
    parser.add_argument("--busy", type=int, default=0, help="more busy threads beside it")
    parser.add_argument("--hz", default="99,999", help="frequencies, separated by commas")
    parser.add_argument("--profilers", default="perf,bpf,wakeup", help="see above")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the program")
    parser.add_argument("--root", help="the root file system in which that interpreter is; needs root")
    parser.add_argument("--target", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.target:
        return target(arguments.target, arguments.seconds, arguments.idle, arguments.busy)
    place, names = Place(arguments), []
    for name in arguments.profilers.split(","):
        missing = why_not(name, place)
        if missing:
            print("%s is skipped: %s" % (name, missing), file=sys.stderr)
        else:
            names.append(name)
    cases = [None] + [(name, int(hz)) for hz in arguments.hz.split(",") for name in names]
    results = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for case in cases:
                results[case].append(measure(case, arguments, folder, place))
    base = [statistics.median(run[i] for run in results[None]) for i in range(2)]
    print("| profiler | Hz | stolen, all gaps (%) | gaps below 400 µs (%) | a gap of 10 to 400 µs (µs) | its own CPU (%) |\n|---|---|---|---|---|---|")
    for case in cases:
        runs = results[case]
        less = base if case else [0, 0]
        print("| %s | %s | %s | %s | %s | %.2f |" % (
            case[0] if case else "none", case[1] if case else "",
            spread([run[0] - less[0] for run in runs]), spread([run[1] - less[1] for run in runs]),
            spread([run[3] for run in runs], "%.1f"),
            statistics.median(run[2] for run in runs)))
    print("\n%d rounds of %g s, idle threads: %d, more busy ones: %d; median (lowest … highest); profilers' rows "
          "are differences to none." % (arguments.rounds, arguments.seconds, arguments.idle, arguments.busy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
