# SPDX-License-Identifier: MIT
"""Recordings that last until the target has done some work, so that a busy machine makes them longer, not empty."""
import os
import time

import probing_test as t

# Executes a Python program of fixtures/, given with its arguments, when SIGUSR1 says that it is recorded. Its imports come
# before: their CPU time is in no recording.
GATED = """
import argparse, ctypes, json, multiprocessing, os, resource, runpy, signal, subprocess, sys, threading, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready {}", flush=True)
signal.sigwait([signal.SIGUSR1])
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
del sys.argv[0]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def gated(name, *arguments):
    """The command line of a Python fixture that waits for SIGUSR1 before its first line."""
    return [t.DEBIAN_PYTHON, "-B", "-c", GATED, os.path.join(t.FIXTURES, name)] + [str(a) for a in arguments]


def record(targets, seconds=2, hz=499, path="probing.db", *more, cpu_s=None, **started):
    """Record for so many seconds, and on until each target has used cpu_s of CPU time (default: half of the seconds).

    @targets: one Target, or several
    @hz: None: none, as of events that are counted
    Returns the recording; its attribute 'said' is what the recorder printed.
    """
    targets = targets if isinstance(targets, (list, tuple)) else [targets]
    pids = [target.pid for target in targets]
    with t.recorder("--pid", ",".join(map(str, pids)), *(["-F", hz] if hz else []), "-o", path, *more, **started) as process:
        said = t.await_recording(process)
        end = time.monotonic() + seconds
        t.wait_for_cpu(seconds / 2 if cpu_s is None else cpu_s, *pids)
        time.sleep(max(0, end - time.monotonic()))
        status, out, rest = t.stop_politely(process, timeout_s=60)
    if status != t.OK:
        raise (t.Crashed if status < 0 else AssertionError)("probing record: exit status %d: %s%s%s" % (status, out, said, rest))
    recording = t.Recording(path)
    recording.said = said + rest + out
    return recording


def record_fixture(name, *arguments, seconds=2, hz=499, python=t.DEBIAN_PYTHON, place=t.MACHINE, source="auto"):
    """(recording, truth) of a fixture in a scratch folder that is gone afterwards."""
    with t.scratch(), t.fixture(name, *arguments, python=python, place=place) as target:
        return record(target, seconds, hz, "probing.db", "--source", source), target.truth
