#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a sample by the agent takes from the sampled thread: bench/agent_source.py [INTERPRETER...]

Programs that burn so many Python frames deep, each of another function, load the agent and are recorded with --source
agent. Printed is the mean CPU time of the signal handler (the counter 'handler ns'), without the delivery of the signal,
which bench/stolen.py --profilers agent contains.
PROBING_BINARY: default build/src/cli/probing. It needs the right to inject.
"""
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

import inside

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("PROBING_BINARY") or os.path.join(ROOT, "build", "src", "cli", "probing")
SECONDS, HZ = 4, 999


@contextlib.contextmanager
def started(python, depth):
    program = subprocess.Popen([python, "-W", "ignore", "-c", inside.PROGRAM, str(depth)])
    try:
        time.sleep(1)  # then it burns
        subprocess.run([BINARY, "inject", str(program.pid)], check=True, stdout=subprocess.DEVNULL)
        yield program.pid
    finally:
        program.kill()
        program.wait()


def measure(python, depth, path):
    """(samples, mean time of the handler in µs)."""
    with started(python, depth) as pid:
        subprocess.run([BINARY, "record", "-q", "--source", "agent", "--pid", str(pid), "-F", str(HZ), "-d", str(SECONDS),
                        "-o", path], check=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        counters = dict(db.execute("SELECT name, value FROM counter"))
    return counters["samples"], counters["handler ns"] / counters["samples"] / 1000


def main():
    pythons = sys.argv[1:] or ["/usr/bin/python3"]
    print("| CPython | frames | samples | handler (µs) |\n|---|---|---|---|")
    for python in pythons:
        version = subprocess.run([python, "-c", "import platform; print(platform.python_version())"], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout.strip()
        for depth in inside.DEPTHS:
            with tempfile.TemporaryDirectory() as folder:
                n, handler = measure(python, depth, os.path.join(folder, "probing.db"))
            print("| %s | %d | %d | %.1f |" % (version, depth, n, handler), flush=True)


if __name__ == "__main__":
    main()
