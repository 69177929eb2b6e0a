#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The overhead of record --tasks, by the number of pending asyncio tasks.

Usage: tasks.py PROBING [SECONDS [TASKS...]]

Each program runs an event loop that wakes up every millisecond, with pending tasks of two coroutines each. It is recorded
for SECONDS (default: 4) with --mode wall, without and with --tasks. Prints for each number of tasks (default: 10 100 1000
5000) how often they were read, the milliseconds of a reading, and the CPU time of the recorder in percent of one core.
"""
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile

PROGRAM = """
import asyncio, sys
async def inner():
    await asyncio.sleep(1000)
async def handler():
    await inner()
async def main():
    tasks = [asyncio.ensure_future(handler()) for i in range(int(sys.argv[1]))]
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    while True:
        await asyncio.sleep(0.001)
asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
"""


def record(probing, pid, seconds, path, *more):
    """CPU time of the recorder, with the processes that read files for it, in percent of one core."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([probing, "record", "--mode", "wall", "--pid", str(pid), "-d", str(seconds), "-q", "-o", path, *more], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 100 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / seconds


def counter(path, name):
    db = sqlite3.connect(path)
    try:
        return (db.execute("SELECT value FROM counter WHERE name = ?", (name,)).fetchone() or (0,))[0]
    finally:
        db.close()


def measure(probing, seconds, n_tasks):
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(n_tasks)], stdout=subprocess.PIPE, text=True)
    try:
        program.stdout.readline()
        without = record(probing, program.pid, seconds, "without.db")
        with_tasks = record(probing, program.pid, seconds, "with.db", "--tasks")
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()
        program.stdout.close()
    reads = counter("with.db", "task reads")
    print("%6d tasks  %4d readings of %7.2f ms  recorder %5.1f %% without, %5.1f %% with" % (
        n_tasks, reads, counter("with.db", "task read ns") / 1e6 / max(reads, 1), without, with_tasks), flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    probing = os.path.abspath(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 4
    with tempfile.TemporaryDirectory(prefix="probing-bench.") as folder:
        os.chdir(folder)
        for n_tasks in map(int, sys.argv[3:] or ["10", "100", "1000", "5000"]):
            measure(probing, seconds, n_tasks)


if __name__ == "__main__":
    main()
