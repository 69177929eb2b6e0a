#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the agent's signal handler takes, warm and cold: bench/handler.py [--build build] [INTERPRETER...]

A program that is so many Python frames deep, each of another function, is recorded with --source agent, and sends itself
signals as its timer does (bench/handler.c), thousands of them. Printed are medians in µs:

- handler: warm, one signal directly after the other, less the same signal with an empty handler. The stack of the Python
  frames, and 16 KB of stack;
- with its delivery: the whole way from the sending of a signal to the next instruction, with 16 KB of stack. Warm, and
  cold: the program writes 4 MB in between, more than the processor's own caches hold.

Other load disturbs a median little. It needs the right to inject.
"""
import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STACK_BYTES, COLD_BYTES = 16384, 4 << 20
# Each line of stdin is one measurement: signal, bytes of stack, bytes of other memory. Few at a time: the ring takes some megabytes.
PROGRAM = """
import array, ctypes, json, sys, time
library = ctypes.CDLL(sys.argv[2])
library.time_signals.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
library.take_empty(35)
def measure():
    print("ready", flush=True)
    for line in sys.stdin:
        signal, stack_bytes, cold_bytes = map(int, line.split())
        times = []
        for batch in range(int(sys.argv[3])):
            taken = array.array("Q", bytes(8 * 41))
            wrong = library.time_signals(signal, 41, stack_bytes, cold_bytes, taken.buffer_info()[0])
            if wrong: sys.exit("signals cannot be sent: %d" % wrong)
            times += taken[1:]  # the first is colder
            time.sleep(0.03)
        print(json.dumps(times), flush=True)
call = measure
for n in range(int(sys.argv[1]) - 2):
    scope = {'inner': call}
    exec('def f%d(): inner()' % n, scope)
    call = scope['f%d' % n]
call()
"""
EMPTY = 35


def real_time_signals(pid):
    """That the program has handlers for."""
    with open("/proc/%d/status" % pid) as status:
        bits = int(re.search(r"SigCgt:\s*([0-9a-f]+)", status.read()).group(1), 16)
    return {number for number in range(34, 65) if bits >> (number - 1) & 1}


@contextlib.contextmanager
def sampled(build, python, depth, batches, folder):
    """(program, its signal). No timer expires meanwhile: the program hardly runs a second."""
    probing = os.path.join(build, "src", "cli", "probing")
    program = subprocess.Popen([python, "-W", "ignore", "-c", PROGRAM, str(depth), os.path.join(build, "bench", "libhandler.so"),
                                str(batches)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    recorder = None
    try:
        assert program.stdout.readline() == "ready\n"
        subprocess.run([probing, "inject", str(program.pid)], check=True, stdout=subprocess.DEVNULL)
        recorder = subprocess.Popen([probing, "record", "-q", "--source", "agent", "--pid", str(program.pid), "-F", "1",
                                     "--stack-bytes", str(STACK_BYTES), "-o", os.path.join(folder, "handler.db")])
        while not real_time_signals(program.pid) - {EMPTY}:
            if recorder.poll() is not None:
                sys.exit("the recorder has ended")
            time.sleep(0.01)
        time.sleep(1)  # it has described the interpreter then
        signal, = real_time_signals(program.pid) - {EMPTY}
        yield program, signal
    finally:
        program.kill()
        program.communicate()
        if recorder:
            recorder.wait()


def median_us(program, signal, stack_bytes, cold_bytes):
    program.stdin.write("%d %d %d\n" % (signal, stack_bytes, cold_bytes))
    program.stdin.flush()
    return statistics.median(json.loads(program.stdout.readline())) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"), help="Meson's build folder")
    parser.add_argument("--depths", default="2,20,100", help="Python frames, separated by commas")
    parser.add_argument("--batches", type=int, default=60, help="of 40 signals each")
    parser.add_argument("python", nargs="*", default=["/usr/bin/python3"])
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    print("| CPython | frames | handler, warm | … 16 KB of stack | with its delivery, 16 KB of stack, warm | … cold | an empty handler, warm | … cold |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for python in arguments.python:
        version = subprocess.run([python, "-c", "import platform; print(platform.python_version())"], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout.strip()
        for depth in map(int, arguments.depths.split(",")):
            with tempfile.TemporaryDirectory() as folder, sampled(build, python, depth, arguments.batches, folder) as (program, signal):
                empty, empty_cold = [median_us(program, EMPTY, STACK_BYTES, cold) for cold in (0, COLD_BYTES)]
                bare, warm, cold = [median_us(program, signal, *sizes) for sizes in
                                    ((0, 0), (STACK_BYTES, 0), (STACK_BYTES, COLD_BYTES))]
            print("| %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |" % (
                version, depth, bare - empty, warm - empty, warm, cold, empty, empty_cold), flush=True)


if __name__ == "__main__":
    main()
