#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Time that a profiler takes from the thread it looks at.

A Python thread, 20 frames deep, spins in C and sums what is taken from it
(bench/spin.c). Runs without a profiler, under `perf record` and under
`probing record` with each of its stack sources alternate, so that what the
machine does beside falls on all of them; medians are compared. Prints a
Markdown table.

    bench/stolen.py [--build build] [--rounds 5] [--seconds 4] [--idle 0] [--busy 0]
                    [--hz 99,999] [--profilers perf,bpf,wakeup]
"""
import argparse
import contextlib
import ctypes
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMES = 20


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
    os._exit(0)


def profiler(name, hz, pid, build, folder):
    if name == "interrupt":
        return ["perf", "record", "-q", "-F", str(hz), "-e", "cpu-clock", "-o", os.path.join(folder, "perf.data"), "-p", str(pid)]
    if name == "perf":
        return ["perf", "record", "-q", "-F", str(hz), "--call-graph", "dwarf,16384", "-e", "cpu-clock",
                "-o", os.path.join(folder, "perf.data"), "-p", str(pid)]
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


def settle(watcher, name):
    """Wait until a profiler has started up and looked the first names up."""
    time.sleep(2)
    before, quiet = cpu_of(watcher.pid), 0
    for _ in range(20):
        time.sleep(0.5)
        if watcher.poll() is not None:
            sys.exit("%s did not start" % name)
        now = cpu_of(watcher.pid)
        quiet = quiet + 1 if now - before <= 0.02 else 0
        before = now
        if quiet == 2:
            return


def measure(case, arguments, folder):
    """One run: (stolen %, stolen in short gaps %, the profiler's own CPU %, median gap in us)."""
    library = os.path.join(arguments.build, "bench/libspin.so")
    child = subprocess.Popen([sys.executable, __file__, "--target", library, "--seconds", str(arguments.seconds),
                              "--idle", str(arguments.idle), "--busy", str(arguments.busy)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    own, watcher = 0.0, None
    if case and case[0] == "agent":
        subprocess.run([os.path.join(arguments.build, "src/cli/probing"), "inject", str(child.pid)], check=True,
                       stdout=subprocess.DEVNULL)
    if case:
        watcher = subprocess.Popen(profiler(*case, child.pid, arguments.build, folder),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        settle(watcher, case[0])
        own = cpu_of(watcher.pid)
    child.stdin.write("\n")
    child.stdin.flush()
    answer = child.stdout.readline().split()
    if watcher:
        own = (cpu_of(watcher.pid) - own) / arguments.seconds * 100
        watcher.send_signal(signal.SIGINT)
        watcher.wait()
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
    parser.add_argument("--profilers", default="perf,bpf,wakeup", help="interrupt (perf, nothing copied), perf (stacks), or a stack source of probing (agent: no more samples than the kernel has clock ticks)")
    parser.add_argument("--target", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.target:
        return target(arguments.target, arguments.seconds, arguments.idle, arguments.busy)
    cases = [None] + [(name, int(hz)) for hz in arguments.hz.split(",") for name in arguments.profilers.split(",")]
    results = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for case in cases:
                results[case].append(measure(case, arguments, folder))
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
