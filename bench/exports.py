#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What exports of a big recording cost.

Usage: bench/exports.py [BUILD_FOLDER] [--stacks N] [--threads N] [--format NAME]...

Makes a recording with N distinct stacks (default: a million, each sampled once; see bench/stacks.c), all of one
thread and of four (--threads: of so many alone), and exports it in each format, or in those named. Prints seconds of
CPU time, seconds by the clock, the most memory the program had at a time, and the size of what it wrote. Exits with 1
where a format takes more than 10 s of CPU time or 200 MB, of 10^6 bytes.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

MAX_SECONDS, MAX_BYTES = 10, 200e6
THREADS = 4, 1


def formats(binary):
    """All that are views of stacks, by --help."""
    said = subprocess.run([binary, "flamegraph", "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"--format=FORMAT(.*?)(?=\n\s+-)", said, re.S).group(1)
    return re.findall(r"(\w+)\s+\(", listed)


def export(binary, name, recording):
    """Seconds of CPU and by the clock, bytes of memory at most, bytes written."""
    out = "out." + name
    started = time.monotonic()
    process = subprocess.Popen([binary, "export", recording, "--to", name, "-o", out, "-q"])
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return None
    size = os.path.getsize(out)
    os.unlink(out)
    return usage.ru_utime + usage.ru_stime, took, usage.ru_maxrss * 1024, size


def measure(build, names, n_stacks, n_threads):
    """Whether all formats keep within what they may take. Prints a table."""
    binary = os.path.join(build, "src", "cli", "probing")
    maker = os.path.join(build, "bench", "bench_stacks")
    made = subprocess.run([maker, "big.db", str(n_stacks), str(n_threads)], check=True, capture_output=True, text=True)
    print("\n%s, threads: %d, %.0f MB\n" % (made.stdout.strip(), n_threads, os.path.getsize("big.db") / 1e6))
    print("| format | CPU, s | clock, s | memory, MB | written, MB |\n|---|---|---|---|---|")
    is_good = True
    for name in names or formats(binary):
        costs = export(binary, name, "big.db")
        if costs is None:
            print("| %s | failed | | | |" % name)
            is_good = False
            continue
        cpu, took, memory, size = costs
        print("| %s | %.1f | %.1f | %.0f | %.1f |" % (name, cpu, took, memory / 1e6, size / 1e6), flush=True)
        is_good &= cpu <= MAX_SECONDS and memory <= MAX_BYTES
    os.unlink("big.db")
    return is_good


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--stacks", type=int, default=1000000)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--format", action="append", dest="formats")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        is_good = [measure(build, options.formats, options.stacks, n)
                   for n in ([options.threads] if options.threads else THREADS)]
        os.chdir("/")
    return 0 if all(is_good) else 1


if __name__ == "__main__":
    sys.exit(main())
