#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What it costs that foreign files are read by a process without privilege: CPU time and memory of two recorders.

    bench/confine.py BEFORE [--after build/src/cli/probing] [--hz 999] [--seconds 10] [--rounds 7] [LOAD...]

BEFORE is the program of another build, which is compared with AFTER. Both record the same running load in turns. CPU time is that of
the recorder and of all processes it starts, from its beginning to its end, with the names that it finds and the report that it
prints. Memory is the sum of their proportional shares (Pss), shortly before the recording ends.
Prints each round; ends with the median of each, and of what the second takes more than the first in the same round, with the
middle half of the rounds.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
TORCH = """
import torch
torch.set_num_threads(1)
layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
optimizer = torch.optim.Adam(layers.parameters())
print("ready", flush=True)
while True:
    loss = layers(torch.rand(16, 64)).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOADS = {
    "demo": [PYTHON, os.path.join(HERE, "..", "fixtures", "demo.py"), "--seconds", "100000"],
    "torch": [PYTHON, "-c", TORCH],
}


def below(pid):
    """A process and all that it has started."""
    found = [pid]
    for one in found:
        try:
            with open("/proc/%d/task/%d/children" % (one, one)) as children:
                found += [int(child) for child in children.read().split()]
        except OSError:
            pass
    return found


def pss_kib(pid):
    try:
        with open("/proc/%d/smaps_rollup" % pid) as rollup:
            return sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    except OSError:
        return 0


def record(probing, pid, options, folder):
    """(milliseconds of CPU time, MiB)"""
    command = [probing, "record", "-F", str(options.hz), "-d", str(options.seconds), "-o", os.path.join(folder, "out.db"), "-p", str(pid)]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(options.seconds * 0.9)
    memory = sum(pss_kib(one) for one in below(recorder.pid)) / 1024
    _, status, usage = os.wait4(recorder.pid, 0)
    if status != 0 or memory == 0:
        sys.exit("%s ended with %d" % (probing, status))
    return (usage.ru_utime + usage.ru_stime) * 1000, memory


def spread(values):
    """The median, and where the middle half begins and ends."""
    low, middle, high = statistics.quantiles(values, n=4)
    return middle, low, high


def compare(name, options, folder):
    load = subprocess.Popen(LOADS[name], stdout=subprocess.PIPE, text=True)
    figures = {options.before: [], options.after: []}
    try:
        load.stdout.readline()
        for i in range(options.rounds + 1):
            order = [options.before, options.after]
            for probing in order if i % 2 else reversed(order):
                taken = record(probing, load.pid, options, folder)
                if i > 0:  # in the first round files come from the disk
                    figures[probing].append(taken)
            if i > 0:
                print("%s: %.0f ms, %.1f MiB; then %.0f ms, %.1f MiB"
                      % ((name,) + figures[options.before][-1] + figures[options.after][-1]), flush=True)
    finally:
        load.send_signal(signal.SIGKILL)
        load.wait()
    before, after = figures[options.before], figures[options.after]
    print("%s, medians of %d: %.0f ms and %.1f MiB; then %.0f ms and %.1f MiB"
          % ((name, options.rounds) + tuple(statistics.median(column) for rows in (before, after) for column in zip(*rows))))
    print("  CPU %+.1f %% (%+.1f to %+.1f)" % spread([100 * (b[0] / a[0] - 1) for a, b in zip(before, after)]))
    print("  memory %+.1f MiB (%+.1f to %+.1f)" % spread([b[1] - a[1] for a, b in zip(before, after)]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("--after", default=os.path.join(HERE, "..", "build", "src", "cli", "probing"))
    parser.add_argument("--hz", type=float, default=999)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("loads", nargs="*", help="of %s (default: all)" % ", ".join(LOADS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="probing-confine.") as folder:
        for name in options.loads or LOADS:
            compare(name, options, folder)


if __name__ == "__main__":
    main()
