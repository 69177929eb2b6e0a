#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What reading frames inside the sampling interrupt takes: bench/inside.py [INTERPRETER...]

For a program that burns so many Python frames deep, what one run of the BPF program takes, by the
kernel's own count (kernel.bpf_stats_enabled, switched on meanwhile): the median of the means of stretches of 0.1 s, and the
least of them, which what else runs on the machine disturbs less. As root.
PROBING_BINARY: default build/src/cli/probing.
"""
import contextlib
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("PROBING_BINARY") or os.path.join(ROOT, "build", "src", "cli", "probing")
STATS = "/proc/sys/kernel/bpf_stats_enabled"
DEPTHS = (2, 20, 100)
SECONDS, STRETCH, HZ = 4, 0.1, 999
# Each function is another code object, as in real programs.
PROGRAM = """
import sys, time
def burn():
    end = time.time() + 60
    while time.time() < end:
        for i in range(1000): pass
call = burn
for n in range(int(sys.argv[1]) - 2):
    scope = {'inner': call}
    exec('def f%d(): inner()' % n, scope)
    call = scope['f%d' % n]
call()
"""


@contextlib.contextmanager
def counting():
    with open(STATS, encoding="ascii") as file:
        before = file.read()
    with open(STATS, "w", encoding="ascii") as file:
        file.write("1")
    try:
        yield
    finally:
        with open(STATS, "w", encoding="ascii") as file:
            file.write(before)


def run_counts(pid):
    """Time and number of runs of the program that a process has loaded."""
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with open(path, encoding="ascii") as file:
            text = file.read()
        if "run_cnt:" in text:
            return [int(re.search(name + r":\s*(\d+)", text).group(1)) for name in ("run_time_ns", "run_cnt")]
    sys.exit("inside: no program is loaded; it needs root, and a build with clang and libbpf")


def measure(interpreter, depth, folder):
    with subprocess.Popen([interpreter, "-c", PROGRAM, str(depth)]) as target:
        time.sleep(0.3)
        with subprocess.Popen([BINARY, "record", "-q", "--source", "bpf", "--pid", str(target.pid), "-F", str(HZ),
                               "-d", str(SECONDS), "-o", os.path.join(folder, "inside.db")]) as recorder:
            time.sleep(0.6)
            means, (time_ns, n) = [], run_counts(recorder.pid)
            while len(means) < (SECONDS - 1) / STRETCH:
                time.sleep(STRETCH)
                (time_before, n_before), (time_ns, n) = (time_ns, n), run_counts(recorder.pid)
                means.append((time_ns - time_before) / max(n - n_before, 1) / 1000)
        target.kill()
    return statistics.median(means), min(means)


def main():
    interpreters = sys.argv[1:] or ["/usr/bin/python3"]
    print("| µs a sample, frames deep | %s |\n|---|%s" % (" | ".join(map(str, DEPTHS)), "---|" * len(DEPTHS)))
    with counting(), tempfile.TemporaryDirectory() as folder:
        for interpreter in interpreters:
            version = subprocess.run([interpreter, "-V"], capture_output=True, text=True, check=True)
            print("| %s | %s |" % ((version.stdout or version.stderr).strip(), " | ".join(
                "%.1f (%.1f)" % measure(interpreter, depth, folder) for depth in DEPTHS)))


if __name__ == "__main__":
    main()
