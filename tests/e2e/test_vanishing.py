# SPDX-License-Identifier: MIT
"""A library that is truncated while the program that has it mapped is recorded."""
import contextlib
import os
import signal
import subprocess
import sys
import time
import unittest

import probing_test as t

N_FUNCTIONS = 60

# Calls half of the functions until SIGUSR1, and the others shortly before the library is gone; then Python alone.
PROGRAM = """
import ctypes, os, signal, sys, time
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
library = ctypes.CDLL(sys.argv[1])
functions = [getattr(library, "burn_%%d" %% i) for i in range(%d)]

def call_while(condition, some):
    while condition():
        for function in some:
            function(100000)

def go_on():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        sum(i * i for i in range(1000))

print("ready {}", flush=True)
call_while(lambda: not told, functions[:30])
end = time.process_time() + 0.5
call_while(lambda: time.process_time() < end, functions[30:])
os.truncate(sys.argv[1], int(sys.argv[2]))
print("truncated", flush=True)
go_on()
""" % N_FUNCTIONS


def make_library(path):
    source = "".join("int burn_%d(int n);\nint burn_%d(int n)\n{\n\tvolatile int sum = %d;\n\n\tfor (int i = 0; i < n; i++)\n"
                     "\t\tsum += i;\n\treturn sum;\n}\n" % (i, i, i) for i in range(N_FUNCTIONS))
    subprocess.run(["cc", "-x", "c", "-", "-O1", "-g", "-shared", "-fPIC", "-o", path], input=source, text=True, check=True)


class TruncatedLibrary(t.Case):
    def check(self, n_left):
        path = os.path.abspath("burning.so")
        make_library(path)
        with t.target([t.DEBIAN_PYTHON, "-c", PROGRAM, path, str(n_left)]) as target, \
                t.recorder("--pid", target.pid, "-F", 499, "-o", "probing.db") as process:
            said = t.await_recording(process)
            t.wait_for_cpu(1, target.pid)
            os.kill(target.pid, signal.SIGUSR1)
            self.assertEqual("truncated\n", target.process.stdout.readline())
            truncated = time.time()
            t.wait_for_cpu(2, target.pid)
            status, _, rest = t.stop_politely(process, timeout_s=60)
            said += rest
            self.assertEqual(t.OK, status, said)
            recording = t.Recording("probing.db")
            self.assertEqual(n_left, os.path.getsize(path))
            self.assertTrue(target.is_running())
        # by name or by offset: names are looked up some time after the samples
        self.assertIn("burn", "".join(recording.all_names()))
        self.assertGreater(sum("go_on" in recording.names(s.stack) for s in recording.samples if s.stack), 200)
        # The recorder goes on until the test ends it, and 2 s of CPU time take at least 2 s.
        self.assertGreater(max(s.timestamp for s in recording.samples), truncated + 1.9)
        # How many had been read by then is a matter of time; those that had not are counted, and said.
        n_nameless = sum(name.startswith("burning.so+0x") for name in recording.all_names())
        with contextlib.closing(t.connect("probing.db")) as db:
            n = sum(value for value, in db.execute("SELECT value FROM counter WHERE name = 'names given up'"))
        self.assertLessEqual(n_nameless, n)
        self.assertEqual(n > 0, "native addresses have no names: %s (" % path in said, said)
        t.probing("info", "--check", "probing.db", check=t.OK)

    def test_nothing_is_left_of_it(self):
        t.need_perf()
        t.need_program("cc")
        with t.scratch():
            self.check(0)

    def test_its_beginning_is_left(self):
        t.need_perf()
        t.need_program("cc")
        with t.scratch():
            self.check(4096)


if __name__ == "__main__":
    sys.exit(unittest.main())
