#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Injections into programs under hard load: bench/inject.py [--injections N] [--killed SHARE] [--load LOAD...]

Each load of fixtures/guarded.py gets its share of injections, an eval and a detach after each, up to 25 in one process. In
a share of them probing is killed: at any moment of its run, or as soon as it traces the process, up to 2 ms later. Afterwards the process says
whether its computation, memory, registers, system calls and children were right: one that was wrong, died or hangs is broken.
Prints a row for each load, and "N injections, N killed, N broken"; the exit status is 1 where any was broken.
PROBING_BINARY: default build/src/cli/probing. PROBING_FIXTURES: where guarded.so is.
"""
import argparse
import os
import random
import re
import select
import signal
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import agent_client as agent

BINARY = os.environ.get("PROBING_BINARY") or os.path.join(ROOT, "build", "src", "cli", "probing")
FIXTURES = os.environ.get("PROBING_FIXTURES") or os.path.join(os.path.dirname(BINARY), "..", "..", "fixtures")
LOADS = ("allocate", "fork", "imports", "calls", "sleep", "threads", "native", "torch")
PER_TARGET, READY_S, END_S = 25, 120, 120


class Broken(Exception):
    pass


class Load:
    """What happened to all processes of one load."""

    def __init__(self, name, python):
        self.name, self.python = name, python
        self.injected = self.killed = self.killed_traced = self.refused = 0
        self.broken, self.seconds, self.stopped_ms, self.tries = [], [], [], []

    # ---- One process ----

    def start(self):
        process = subprocess.Popen(
            ["nice", "-n", "5", self.python, "-W", "ignore", os.path.join(ROOT, "fixtures", "guarded.py"), self.name],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, PROBING_FIXTURES=FIXTURES))
        ready, _, _ = select.select([process.stdout], [], [], READY_S)
        if not ready or not process.stdout.readline().startswith("ready"):
            process.kill()
            sys.exit("inject: the load %s cannot be started: %s" % (self.name, process.communicate()[1]))
        return process

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        try:
            out, err = process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            raise Broken("it hangs: " + where(process.pid)) from None
        if process.returncode != 0 or err or not re.search(r"^rounds [1-9]\d* wrong 0$", out, re.M):
            raise Broken("status %s, %r %r" % (process.returncode, out, err[-500:]))

    def run(self, n, killed):
        """Injections into one process, which then judges."""
        process = self.start()
        try:
            for _ in range(n):
                if process.poll() is not None:
                    raise Broken("it died with status %d" % process.returncode)
                if random.random() < killed:
                    self.kill_one(process.pid)
                self.inject(process.pid)
            self.end(process)
        except Broken as broken:
            self.broken.append(str(broken))
            print("%s: process %d: %s" % (self.name, process.pid, broken), file=sys.stderr, flush=True)
        finally:
            process.kill()
            process.wait()

    # ---- One injection ----

    def kill_one(self, pid):
        probing = subprocess.Popen([BINARY, "inject", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if random.random() < 0.3:
            typical = statistics.median(self.seconds) if self.seconds else 0.1
            time.sleep(random.uniform(0, typical))
        else:
            while probing.poll() is None and not is_traced(pid):
                pass
            due = time.monotonic() + random.uniform(0, 0.002)
            while time.monotonic() < due:
                pass
            self.killed_traced += is_traced(pid)
        self.killed += probing.poll() is None
        probing.kill()
        probing.wait()

    def inject(self, pid):
        since = time.monotonic()
        done = subprocess.run([BINARY, "inject", str(pid), "--wait", "10s"], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            self.refused += 1
            if "ended" in done.stderr or "no process" in done.stderr:
                raise Broken(done.stderr)
            print("%s: %s" % (self.name, done.stderr.strip()), file=sys.stderr, flush=True)
            return
        self.injected += 1
        self.seconds.append(time.monotonic() - since)
        how = re.search(r"used for ([\d.]+) ms, after (\d+) tries", done.stdout)
        if how:
            self.stopped_ms.append(float(how.group(1)))
            self.tries.append(int(how.group(2)))
        try:
            with agent.Client(pid, 60) as client:
                if client.evaluate("6 * 7")[:2] != (agent.VALUE, "42"):
                    raise Broken("eval is wrong")
                if client.ask(agent.DETACH)[0] != agent.BYE:
                    raise Broken("detach is refused")
        except OSError as error:
            raise Broken("the agent cannot be talked to: %s; %s" % (error, where(pid))) from error

    def row(self):
        return "| %s | %d | %d (%d) | %d | %d | %s | %s | %s |" % (
            self.name, self.injected, self.killed, self.killed_traced, self.refused, len(self.broken),
            quantiles(self.seconds, 1000), quantiles(self.stopped_ms), quantiles(self.tries))


def quantiles(values, scale=1):
    if not values:
        return "-"
    values = sorted(values)
    return "%.4g, %.4g" % (statistics.median(values) * scale, values[min(len(values) - 1, int(len(values) * 0.95))] * scale)


def is_traced(pid):
    """Any of its threads, in the order in which they are tried."""
    try:
        tids = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return False
    for tid in tids:
        try:
            with open("/proc/%d/task/%s/status" % (pid, tid), encoding="ascii", errors="replace") as status:
                if "\nTracerPid:\t0\n" not in status.read(400):
                    return True
        except OSError:
            pass
    return False


def where(pid):
    done = subprocess.run([BINARY, "backtrace", str(pid)], capture_output=True, text=True)
    return (done.stdout + done.stderr)[:3000]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--injections", type=int, default=3000)
    parser.add_argument("--killed", type=float, default=0.2, help="share of them before which another is begun and killed")
    parser.add_argument("--load", nargs="+", choices=LOADS, default=LOADS)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    print("| load | injections | killed (while tracing) | refused | broken | ms p50, p95 | stopped ms | tries |\n" + "|---" * 8 + "|")
    loads = [Load(name, arguments.python) for name in arguments.load]
    for load in loads:
        left = arguments.injections // len(loads)
        while left > 0:
            load.run(min(left, PER_TARGET), arguments.killed)
            left -= PER_TARGET
        print(load.row(), flush=True)
    broken = sum(len(load.broken) for load in loads)
    print("%d injections, %d killed, %d broken" % (
        sum(load.injected for load in loads), sum(load.killed for load in loads), broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
