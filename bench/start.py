#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""CPU time that `record` and `top` take to start: until samples are taken.

    bench/start.py [--build build] [--before FOLDER] [--rounds 15] [--sources bpf,wakeup,poll]

Attaches to fixtures/demo.py and reads the CPU time of the command's main thread when `record` announces the recording, or when `top`
has printed its first frame. Prints the median in ms and the middle half. --before measures another build, too, in turn with
this one's. Name --build and --before by their folders. Load by others makes all of these times longer: compare within one run.
"""
import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FRAME_S = 0.2


def cpu_ms(pid):
    with open("/proc/%d/task/%d/schedstat" % (pid, pid)) as file:
        return int(file.read().split()[0]) / 1e6


def start_record(build, source, pid, folder):
    process = subprocess.Popen([build / "src/cli/probing", "record", "--source", source, "--pid", str(pid), "-o", folder + "/out.db"],
                               stderr=subprocess.PIPE, text=True)
    with process.stderr:
        while "Ctrl-C ends it" not in (line := process.stderr.readline()):
            if not line:
                raise RuntimeError("%s ended" % build)
        used = cpu_ms(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate()
    return used


def start_top(build, source, pid, folder):
    process = subprocess.Popen([build / "src/cli/probing", "top", "--source", source, "-b", "-d", str(FRAME_S), str(pid)],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=dict(os.environ, TMPDIR=folder))
    with process.stdout:
        if not process.stdout.readline():
            raise RuntimeError("%s ended" % build)
        used = cpu_ms(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate()
    return used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sources", default="bpf,wakeup,poll")
    options = parser.parse_args()
    builds = {"now": options.build}
    if options.before:
        builds = {"before": options.before, "now": options.build}
    found = {}
    target = subprocess.Popen(["/usr/bin/python3", ROOT / "fixtures/demo.py"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(1)
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(options.rounds):
                for source in options.sources.split(","):
                    for verb, start in (("record", start_record), ("top", start_top)):
                        for name, build in builds.items():
                            found.setdefault((verb, source, name), []).append(start(build, source, target.pid, folder))
    finally:
        target.kill()
        target.wait()
    for (verb, source, name), times in found.items():
        low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
        print("%-6s %-6s %-6s %6.1f ms (%.1f to %.1f)" % (verb, source, name, middle, low, high))


if __name__ == "__main__":
    main()
