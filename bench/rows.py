#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What rows cost the program that writes them: each call without an agent, and rows per second with one.

Usage: bench/rows.py [--agent LIBRARY] [PYTHON...]   (default: build/src/agent/libprobing-agent.so, this Python)

Figures are the best of several rounds, in CPU time. Exit status 1: a call without an agent takes more than 100 ns (200: a span
with attributes, which is an object), or a table takes less than 500000 rows/s.
"""
import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_IDLE_NS, MAX_SPAN_NS, MIN_ROWS = 100, 200, 500000

CODE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import probing
if sys.argv[2]:
    import ctypes
    if ctypes.CDLL(sys.argv[2]).probing_agent_start(0) != 0:
        sys.exit("the agent does not start")
N = 200000
table = probing.ExternalTable("bench", {"step": int, "loss": float, "rate": float, "phase": str})
row = [1, 0.5, 0.1, "forward"]
many = [row] * 1000
spans = probing.span("load")
def best(function, n):
    took = []
    for _ in range(7):
        start = time.process_time()
        function()
        took.append((time.process_time() - start) / n * 1e9)
    return min(took)
def loop(statement, setup=""):
    space = dict(globals())
    exec("def run():\\n %s\\n for _ in range(N): %s\\n" % (setup or "pass", statement), space)
    return best(space["run"], N)
empty = loop("pass")
def put(name, statement, n=1):
    print("%s\\t%.0f" % (name, (loop(statement) - empty) / n), flush=True)
put("append(a, b, c, d)", "table.append(1, 0.5, 0.1, 'forward')")
put("append([a, b, c, d])", "table.append(row)")
put("log(epoch=, loss=)", "probing.log(epoch=1, loss=0.5)")
put("event(name)", "probing.event('restart')")
put("step()", "probing.step()")
if sys.argv[2]:
    print("append_many(), a row\\t%.0f" % best(lambda: [table.append_many(many) for _ in range(200)], 200000), flush=True)
    put("with span(name): 2 rows", "\\n  with probing.span('load'): pass")
else:
    put("span(name)", "probing.span('load')")
    put("span(name, rank=3)", "probing.span('load', rank=3)")
    put("with span(name), each of 3 calls", "\\n  with probing.span('load'): pass", 3)
"""


def measure(python, library):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, "-c", CODE, os.path.join(ROOT, "python"), library],
                              env=dict(os.environ, PROBING_DATA_DIR="/dev/shm" if os.path.isdir("/dev/shm") else folder),
                              stdout=subprocess.PIPE, universal_newlines=True, check=True)
    return [(name, float(ns)) for name, ns in (line.split("\t") for line in done.stdout.splitlines())]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent", default=os.path.join(ROOT, "build", "src", "agent", "libprobing-agent.so"))
    parser.add_argument("python", nargs="*", default=[sys.executable])
    arguments = parser.parse_args()
    fails = False
    for python in arguments.python:
        version = subprocess.run([python, "-V"], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout.strip()
        print("%s, no agent:" % version)
        for name, ns in measure(python, ""):
            print("  %-34s %6.0f ns" % (name, ns))
            fails |= ns > (MAX_SPAN_NS if "rank" in name else MAX_IDLE_NS)
        print("%s, agent:" % version)
        for name, ns in measure(python, arguments.agent):
            print("  %-34s %6.0f ns %8.0f rows/s" % (name, ns, 1e9 / ns))
            fails |= name.startswith("append") and 1e9 / ns < MIN_ROWS
    sys.exit(fails)


if __name__ == "__main__":
    main()
