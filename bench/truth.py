#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures how many samples show functions that cannot have been there, and prints Markdown tables.

    bench/truth.py [--seconds N] [--hz N] [--source SOURCE] [--hogs N] [--python LABEL ...] [--program NAME ...]
                   [--push HZ]

Each program is recorded under each interpreter and judged as the tests do
(tests/e2e/truth_judge.py). PROBING_BINARY and PROBING_FIXTURES as for tests/e2e/run.py;
docs/accuracy.md says what the numbers mean. The kernel's clock tick limits how often the agent samples: with --source agent,
--push HZ sends the program's main thread that many more signals a second, at random moments, as its timer does. Exits with 1 if any stack is wrong that claims to be right.
"""
import argparse
import collections
import contextlib
import ctypes
import os
import random
import re
import struct
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", "e2e"), os.path.join(ROOT, "fixtures")]

import probing_test as t  # noqa: E402
import truth_judge  # noqa: E402

VERDICTS = ("exact", "verified", "approximate", "no_python", "python")


@contextlib.contextmanager
def hogs(n):
    """Programs that keep n processors busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


SYS_RT_TGSIGQUEUEINFO, SI_TIMER = 297, -2  # x86-64, as the agent's source


def agents_signal(pid):
    """The highest real-time signal that the process has a handler for; None: it has none."""
    with open("/proc/%d/status" % pid) as status:
        bits = int(re.search(r"SigCgt:\s*([0-9a-f]+)", status.read()).group(1), 16)
    return max((number for number in range(34, 65) if bits >> (number - 1) & 1), default=None)


def record_pushed(pid, options):
    """A recording during which its main thread, the agent's first, samples itself at other moments than clock ticks, too."""
    libc = ctypes.CDLL(None, use_errno=True)
    with t.recorder("--source", "agent", "--pid", pid, "-F", options.hz, "-o", "probing.db") as recorder:
        recorder.stderr.readline()
        t.wait_until(lambda: agents_signal(pid), 20, "the agent's handler")
        signal, ends = agents_signal(pid), time.monotonic() + options.seconds
        info = struct.pack("=iiiiiiQ", signal, 0, SI_TIMER, 0, 0, 0, 0).ljust(128, b"\0")
        while time.monotonic() < ends:
            time.sleep(random.expovariate(options.push))
            if libc.syscall(SYS_RT_TGSIGQUEUEINFO, pid, pid, signal, info) < 0:
                raise AssertionError(os.strerror(ctypes.get_errno()))
        status, _, said = t.stop_politely(recorder)
    if status != 0:
        raise AssertionError(said)
    return t.Recording("probing.db")


def measure(interpreter, program, options):
    """(all samples by verdict, judged by (verdict, right), by end, wrong stacks)."""
    _, arguments, judge = program
    more = ["--source", options.source] if options.source else []
    with t.scratch(), t.fixture(*arguments, python=interpreter.path, place=interpreter.place) as target:
        if options.source == "agent":
            t.probing("inject", target.pid, check=t.OK)
        if options.push:
            recording = record_pushed(target.pid, options)
        else:
            recording = t.record(target.pid, options.seconds, options.hz, "probing.db", *more)
        counts, wrong = judge(recording, target.truth).judge()
        return recording.verdicts(), counts, recording.ends(), wrong


def row(cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description="how often a stack is wrong")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--hz", type=float, default=999)
    parser.add_argument("--source")
    parser.add_argument("--push", type=float, default=0, help="more samples a second, of --source agent")
    parser.add_argument("--hogs", type=int, default=0)
    parser.add_argument("--python", nargs="*")
    parser.add_argument("--program", nargs="*")
    parser.add_argument("--show", type=int, default=2, help="wrong stacks to show of each")
    options = parser.parse_args()
    total, failed = collections.Counter(), False
    row(["CPython", "program", "samples", "verified or exact", "judged", "wrong", "approximate", "wrong", "ends"])
    row(["---"] * 9)
    with hogs(options.hogs):
        for interpreter in t.interpreters():
            if interpreter.path is None or interpreter.place.missing:
                continue
            if options.python and interpreter.label not in options.python:
                continue
            for program in truth_judge.PROGRAMS:
                if options.program and program[0] not in options.program:
                    continue
                try:
                    verdicts, counts, ends, wrong = measure(interpreter, program, options)
                except AssertionError as error:
                    print("%s %s: %s" % (interpreter.label, program[0], error), file=sys.stderr)
                    continue
                n = sum(verdicts.values())
                claimed = sum(verdicts[v] for v in truth_judge.CLAIM)
                judged = sum(counts[v, right] for v in truth_judge.CLAIM for right in (True, False))
                approximate = sum(counts["approximate", right] for right in (True, False))
                row([interpreter.label, program[0], n, "%.1f %%" % (100.0 * claimed / max(n, 1)), judged, len(wrong),
                     approximate, counts["approximate", False], " ".join("%s %d" % end for end in ends.items())])
                for names in wrong[:options.show]:
                    print("  wrong:", " ".join(names[:8]), "...", " ".join(names[-12:]), flush=True)
                failed |= bool(wrong)
                for key, value in counts.items():
                    total[key] += value
                total["all"] += n
    print("\nAll: %d samples" % total.pop("all", 0))
    for verdict in VERDICTS:
        right, wrong = total[verdict, True], total[verdict, False]
        if right + wrong:
            print("%s: %d wrong of %d judged" % (verdict, wrong, right + wrong))
    return failed


if __name__ == "__main__":
    sys.exit(main())
