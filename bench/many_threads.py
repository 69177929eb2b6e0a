#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long `probing backtrace` takes of processes of more and more threads.

Usage: many_threads.py [--build FOLDER] [--rounds N] [THREADS...]

Starts fixtures/many_threads with so many threads each (default: 1000, 5000, 15000; fewer where the system allows no
more) and looks at it N times (default 5). A line each: threads, and the median of seconds, of our CPU time, and of
microseconds of CPU time a thread, which stays the same where nothing is gone through once for each thread.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def look(binary, pid):
    """(seconds, seconds of CPU) of one look."""
    began, began_cpu = time.monotonic(), cpu_s()
    subprocess.run([binary, "backtrace", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began, cpu_s() - began_cpu


def measure(build, n_threads, rounds):
    with subprocess.Popen([os.path.join(build, "fixtures", "many_threads"), str(n_threads), "600"],
                          stdout=subprocess.PIPE, text=True) as target:
        try:
            n = json.loads(target.stdout.readline().partition(" ")[2])["threads"]
            looks = [look(os.path.join(build, "src", "cli", "probing"), target.pid) for _ in range(rounds)]
        finally:
            target.kill()
    seconds, cpu = (statistics.median(column) for column in zip(*looks))
    print("%7d threads  %6.2f s  %6.2f s of CPU  %5.0f us of CPU a thread" % (n, seconds, cpu, cpu / n * 1e6), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("threads", type=int, nargs="*", default=[1000, 5000, 15000])
    arguments = parser.parse_args()
    for n_threads in arguments.threads:
        measure(arguments.build, n_threads, arguments.rounds)


if __name__ == "__main__":
    main()
