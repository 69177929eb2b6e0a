#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What probes cost in a process: bench/probes.py [--seconds N] [PYTHON...]

For each interpreter, CPU nanoseconds a call of an empty function: without probes; timed, by attach --config and by config
probing.trace; of another function meanwhile, which is called, and which raises an exception; and the CPU time a second of a program
with one variable watched each 10 ms. The least of many rounds counts, since other load only adds. PROBING_BINARY: default
build/src/cli/probing.
"""
import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("PROBING_BINARY") or os.path.join(ROOT, "build", "src", "cli", "probing")

PROGRAM = """
import sys, time
clock = time.thread_time if hasattr(time, "thread_time") else time.process_time
def timed(): pass
def other(): pass
def raises(): raise KeyError
def catch():
    try: raises()
    except KeyError: pass
def per_call(function, seconds):
    least, end = 1e9, time.time() + seconds
    while time.time() < end:
        begun = clock()
        for _ in range(2000): function()
        least = min(least, clock() - begun)
    return least / 2000 * 1e9
def watched(seconds):
    value, n = 1, 0
    begun, end = clock(), time.time() + seconds
    all_before = time.process_time()
    while time.time() < end: time.sleep(0.05)
    return (time.process_time() - all_before) / seconds * 1e3
print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""


class Program:
    def __init__(self, python):
        self.process = subprocess.Popen([python, "-u", "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def attach(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            subprocess.run([BINARY, "attach", str(self.process.pid), "--config", file.name], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


    def configure(self, assignment):
        subprocess.run([BINARY, str(self.process.pid), "config", assignment], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)


def measure(python, seconds):
    program = Program(python)
    try:
        names = "timed", "other", "catch"
        before = [program.ask("per_call(%s, %r)" % (name, seconds)) for name in names]
        idle = program.ask("watched(%r)" % seconds)
        program.attach("functions: [timed]")
        after = [program.ask("per_call(%s, %r)" % (name, seconds)) for name in names]
        program.attach("variables: [value@watched]\ninterval: 0.01")
        watching = program.ask("watched(%r)" % seconds) - idle
        program.attach("variables: [value@watched]\ninterval: 3600")
        program.configure("probing.trace=timed")
        traced = [program.ask("per_call(%s, %r)" % (name, seconds)) for name in names]
        return before, after, traced, watching
    finally:
        program.process.kill()
        program.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("python", nargs="*", default=[sys.executable])
    arguments = parser.parse_args()
    print("python  ns a call without, by attach --config, by probing.trace: timed; another; one that raises;"
          "  a variable read each 10 ms: CPU ms a second")
    for python in arguments.python:
        version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout.strip()
        *costs, watching = measure(python, arguments.seconds)
        print("%-7s %s   %.2f" % (version, "  ".join("%.0f -> %.0f, %.0f" % three for three in zip(*costs)), watching))


if __name__ == "__main__":
    main()
