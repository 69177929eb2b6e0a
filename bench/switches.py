#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What recording waits costs a program that does nothing but switch.

Usage: switches.py PROBING PINGPONG [ROUNDS [KIND...]]

Two threads throw a byte to and fro on one processor, once in about 10 us of CPU time. Stretches with a recorder attached to both take turns
with stretches without one, and the medians of what a turn takes are compared: so neither a machine that gets
slower meanwhile nor who else uses its processors matters. Prints a line for each kind of recording: a
turn in nanoseconds with and without, what it takes more in percent, and what the recorder itself used of one core.

What of it is the kernel's own price is told by `perf record`, with the events that we have, or parts of them, one by one:
events of threads that count nothing, that sample at 99 Hz of a clock, that tell of switches besides; and events of all
processors that tell of switches. Kinds are chosen by their names, as in the first column.
"""
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SECONDS = 1.0
WORK_NS = 8500
PROBING = {
    "cpu": ("cpu", "auto"),
    "offcpu": ("offcpu", "auto"),
    "wall": ("wall", "auto"),
    "wall-read": ("wall", "wakeup"),
}
PERF = {
    "perf-thread": ("-e", "dummy", "-p"),
    "perf-thread-clock": ("-e", "cpu-clock", "-F", "99", "-p"),
    "perf-thread-switches": ("-e", "dummy", "--switch-events", "-p"),
    "perf-thread-both": ("-e", "cpu-clock", "-F", "99", "--switch-events", "-p"),
    "perf-all": ("-e", "dummy", "-a"),
    "perf-all-switches": ("-e", "dummy", "--switch-events", "-a"),
}


def turn_ns(process, seconds):
    """CPU time of a turn, the median over stretches of 100 ms."""
    end, seen = time.monotonic() + seconds, []
    while time.monotonic() < end:
        seen.append(int(process.stdout.readline()))
    return statistics.median(seen[1:-1] or seen)


def recorder(probing, pid, kind, path):
    if kind in PERF:
        options = PERF[kind] + ((str(pid),) if PERF[kind][-1] == "-p" else ())
        command = ["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-o", path, *options]
    else:
        mode, source = PROBING[kind]
        command = [probing, "record", "-q", "--mode", mode, "--source", source, "-p", str(pid), "--no-symbols",
                   "-o", path]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL if kind in PERF else None)


def measure(probing, pingpong, rounds, kind, folder):
    with_one, without, used, stretch = [], [], 0.0, 0.0
    for i in range(rounds):
        game = subprocess.Popen([pingpong, str(2 * SECONDS + 4), str(WORK_NS)], stdout=subprocess.PIPE, text=True)
        time.sleep(0.2)
        without.append(turn_ns(game, SECONDS))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        probe = recorder(probing, game.pid, kind, os.path.join(folder, "%s%d" % (kind, i)))
        time.sleep(1)
        turn_ns(game, 0.1)
        with_one.append(turn_ns(game, SECONDS))
        probe.send_signal(2)
        probe.wait()
        stretch += time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        game.kill()
        game.wait()
        game.stdout.close()
    return statistics.median(without), statistics.median(with_one), used / stretch


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    kinds = sys.argv[4:] or [kind for kind in (*PROBING, *PERF) if kind in PROBING or shutil.which("perf")]
    print("%-20s %12s %12s %8s %14s" % ("kind", "without ns", "with ns", "cost %", "recorder core %"))
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            without, with_one, used = measure(sys.argv[1], sys.argv[2], rounds, kind, folder)
            print("%-20s %12.0f %12.0f %8.1f %14.1f" % (kind, without, with_one, 100 * (with_one / without - 1),
                                                       100 * used), flush=True)


if __name__ == "__main__":
    main()
