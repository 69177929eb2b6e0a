#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a recorder that is always on takes: its CPU time at 19 Hz, with limits, ten seconds after ten seconds.

    bench/always_on.py [--build build] [--hz 19] [--warmup 10] [--seconds 60] [PROGRAM...]

PROGRAM (default: fixtures/demo.py) runs under Debian's Python and is recorded with --max-size and --retention. What the recorder's
threads and those of its processes have used is what /proc/PID/task/*/schedstat says, in percent of one processor; the program's names are
looked up in the warm-up for the most part. Ends with the median of the tens, and the whole.
"""
import argparse
import contextlib
import glob
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
STEP_S = 10


def below(pid):
    """A recorder, and the processes that read files for it."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError), open("/proc/%d/task/%d/children" % (one, one)) as children:
            found += [int(child) for child in children.read().split()]
    return found


def cpu_ms(pid):
    total = 0
    for path in (path for one in below(pid) for path in glob.glob("/proc/%d/task/*/schedstat" % one)):
        with open(path) as file:
            total += int(file.read().split()[0])
    return total / 1e6


def measure(recorder, seconds):
    """Percent of a processor, of each step."""
    shares = []
    before, since = cpu_ms(recorder.pid), time.monotonic()
    for _ in range(max(1, int(seconds / STEP_S))):
        time.sleep(STEP_S)
        if recorder.poll() is not None:
            sys.exit("the recorder ended with %d" % recorder.returncode)
        now, at = cpu_ms(recorder.pid), time.monotonic()
        shares.append((now - before) / (at - since) / 10)
        before, since = now, at
        print("%.3f %%" % shares[-1], flush=True)
    return shares


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--hz", type=float, default=19)
    parser.add_argument("--warmup", type=float, default=10, help="seconds that do not count")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("program", nargs="*", default=[os.path.join(HERE, "..", "fixtures", "demo.py")])
    arguments = parser.parse_args()
    probing = os.path.join(arguments.build, "src", "cli", "probing")
    with tempfile.TemporaryDirectory(prefix="probing-always.") as folder:
        target = subprocess.Popen([PYTHON] + arguments.program, stdout=subprocess.DEVNULL)
        recorder = subprocess.Popen([probing, "record", "-q", "-F", str(arguments.hz), "--max-size", "100M", "--retention", "1h",
                                     "-o", os.path.join(folder, "always.db"), "-p", str(target.pid)])
        try:
            time.sleep(arguments.warmup)
            shares = measure(recorder, arguments.seconds)
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
            target.kill()
            target.wait()
    print("median of %d s: %.3f %% of a processor; in all %.3f %%" % (STEP_S, statistics.median(shares), statistics.mean(shares)))


if __name__ == "__main__":
    main()
