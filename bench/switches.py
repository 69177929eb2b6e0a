#!/usr/bin/python3
"""What recording waits costs a program that does nothing but switch.

Usage: switches.py PROBING PINGPONG [ROUNDS]

Two threads throw a byte to and fro on one processor, once in about 10 us of CPU time. Stretches with a recorder attached to both take turns
with stretches without one, and the medians of what a turn takes are compared: so neither a machine that gets
slower meanwhile nor who else uses its processors matters. Prints a line for each kind of recording: a
turn in nanoseconds with and without, what it takes more in percent, and what the recorder itself used of one core.
"""
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SECONDS = 1.0
WORK_NS = 8500
KINDS = (("cpu", "auto"), ("offcpu", "auto"), ("wall", "auto"), ("wall", "read"))


def turn_ns(process, seconds):
    """CPU time of a turn, the median over stretches of 100 ms."""
    end, seen = time.monotonic() + seconds, []
    while time.monotonic() < end:
        seen.append(int(process.stdout.readline()))
    return statistics.median(seen[1:-1] or seen)


def recorder(probing, pid, mode, source, path):
    return subprocess.Popen([probing, "record", "-q", "--mode", mode, "--source", source, "-p", str(pid),
                             "--no-symbols", "-o", path], stdout=subprocess.DEVNULL)


def measure(probing, pingpong, rounds, mode, source, folder):
    with_one, without, used, stretch = [], [], 0.0, 0.0
    for i in range(rounds):
        game = subprocess.Popen([pingpong, str(2 * SECONDS + 4), str(WORK_NS)], stdout=subprocess.PIPE, text=True)
        time.sleep(0.2)
        without.append(turn_ns(game, SECONDS))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        probe = recorder(probing, game.pid, mode, source, os.path.join(folder, "%s%d.db" % (mode, i)))
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
    print("%-8s %-6s %12s %12s %8s %14s" % ("mode", "source", "without ns", "with ns", "cost %", "recorder core %"))
    with tempfile.TemporaryDirectory() as folder:
        for mode, source in KINDS:
            without, with_one, used = measure(sys.argv[1], sys.argv[2], rounds, mode, source, folder)
            print("%-8s %-6s %12.0f %12.0f %8.1f %14.1f" % (mode, source, without, with_one,
                                                           100 * (with_one / without - 1), 100 * used), flush=True)


if __name__ == "__main__":
    main()
