#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What probing.watch_vars costs a training: bench/watch_vars.py [--rounds N] [PYTHON...]

A small training (torch where it is installed, else lists of numbers), a step of about a millisecond: CPU time of a step with
loss and acc1 of train() watched, against without, in turns. Prints the least of each, the median of both, and the rows that were
written. PROBING_BINARY: default build/src/cli/probing.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("PROBING_BINARY") or os.path.join(ROOT, "build", "src", "cli", "probing")

PROGRAM = """
import sys, time
try:
    import torch
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(4)], torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data, labels = torch.randn(64, 128), torch.randint(0, 10, (64,))
except ImportError:
    torch = None
def forward():
    return sum(i * i for i in range(10000))
def train(n):
    for step in range(n):
        if torch:
            optimizer.zero_grad()
            output = model(data)
            loss = torch.nn.functional.cross_entropy(output, labels)
            loss.backward()
            optimizer.step()
            acc1 = (output.argmax(1) == labels).sum()
        else:
            loss = forward()
            acc1 = loss / 2
def steps(n):
    begun = time.process_time()
    train(n)
    return (time.process_time() - begun) / n * 1e6
print("ready", torch and torch.__version__, flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""


def measure(python, rounds):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.py")
        with open(path, "w") as file:
            file.write(PROGRAM)
        process = subprocess.Popen([python, "-u", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            torch = process.stdout.readline().split()[1]

            def ask(line):
                process.stdin.write(line + "\n")
                process.stdin.flush()
                return float(process.stdout.readline())

            def configure(value):
                subprocess.run([BINARY, str(process.pid), "config", "probing.watch_vars=" + value], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            ask("steps(100)")
            times = {"default": [], "loss@train,acc1@train": []}
            for _ in range(rounds):
                for value, found in times.items():
                    configure(value)
                    found.append(ask("steps(100)"))
            rows = json.loads(subprocess.run([BINARY, "sql", str(process.pid), "SELECT count(*) AS n FROM python.variables", "-f",
                                              "json"], check=True, stdout=subprocess.PIPE, text=True).stdout)[0]["n"]
            return torch, list(times.values()), rows
        finally:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("python", nargs="*", default=[sys.executable])
    arguments = parser.parse_args()
    print("python  torch   us a step without, watched: least            median            rows")
    for python in arguments.python:
        version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout.strip()
        torch, (before, after), rows = measure(python, arguments.rounds)
        pairs = [(kind(before), kind(after)) for kind in (min, statistics.median)]
        print("%-7s %-7s %s   %d" % (version, torch, "   ".join("%.0f, %.0f (%+.1f %%)" % (one, other, (other / one - 1) * 100)
                                                               for one, other in pairs), rows))


if __name__ == "__main__":
    main()
