#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kills recorders at random moments, and looks whether what they leave is what it should be.

Usage: kills.py [--rounds 500] [--at-once 4] [--seed N] BINARY

Each round records fixtures/demo.py into a file of its own, reads from outside how many samples have been
committed, and ends the recorder by SIGKILL: every other one within a second of its first instruction, the rest
within a second of its first commit. Then
'probing info --check' must find the file sound, not ended cleanly, and with all the samples that had been
committed before; or there is no file yet, or one without a run, where it was killed that early.
Prints a line for each round that is not so, and a summary. Exit status 1 iff there was one.
"""
import argparse
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LONGEST_S = 1.0


def committed(path):
    """Samples that a reader sees just now; 0 where there is nothing to read yet."""
    with contextlib.suppress(sqlite3.Error):
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True, timeout=5)) as db:
            return db.execute("SELECT coalesce(sum(samples), 0) FROM stack_total").fetchone()[0]
    return 0


def judge(binary, path, seen):
    """(what is wrong or None, samples) of what a killed recorder left."""
    if not os.path.exists(path):
        return (None if seen == 0 else "the file is gone"), 0
    done = subprocess.run([binary, "info", "--check", "--json", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60)
    if done.returncode == 65 and seen == 0 and "is not a recording (empty" in done.stderr:
        return None, 0  # killed before the tables were made
    if done.returncode != 0:
        return "info --check: status %d: %s" % (done.returncode, done.stderr.strip()), 0
    about, = json.loads(done.stdout)
    if any(run["clean"] or run["ended"] for run in about["runs"]):
        return "it claims to have ended", about["samples"]
    if about["samples"] < seen:
        return "%d samples are there, %d had been committed" % (about["samples"], seen), about["samples"]
    if about["samples"] > 0 and not about["last_sample"]:
        return "it does not say how far it reaches", about["samples"]
    if about["is_being_recorded"]:
        return "it seems to be recorded still", about["samples"]
    return None, about["samples"]


def kill_some(binary, pid, paths, rng):
    """Record into all of them at once, end each at a moment of its own; (path, what is wrong, samples) of each."""
    recorders = {}
    try:
        for path in paths:
            process = subprocess.Popen([binary, "record", "-q", "-F", "999", "--pid", str(pid), "-o", path],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            recorders[path] = process
        delays = {path: rng.uniform(0, LONGEST_S) for path in paths}
        begins = {path: time.monotonic() if i % 2 == 0 else None for i, path in enumerate(paths)}
        seen = dict.fromkeys(paths, 0)
        give_up = time.monotonic() + 20
        while any(process.returncode is None for process in recorders.values()):
            now = time.monotonic()
            for path, process in recorders.items():
                if process.returncode is not None:
                    continue
                if now > give_up or (begins[path] is not None and now > begins[path] + delays[path]):
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    continue
                seen[path] = max(seen[path], committed(path) if os.path.exists(path) else 0)
                if begins[path] is None and seen[path] > 0:
                    begins[path] = time.monotonic()
            time.sleep(0.005)
    finally:
        for process in recorders.values():
            if process.poll() is None:
                process.kill()
            process.wait()
    return [(path,) + judge(binary, path, seen[path]) for path in paths]


def run(binary, rounds, at_once, seed, say=print):
    """(rounds that went wrong, rounds that had samples)."""
    rng = random.Random(seed)
    wrong, with_samples = [], 0
    target = subprocess.Popen(["/usr/bin/python3", "-B", os.path.join(ROOT, "fixtures", "demo.py"), "--seconds",
                               str(30 + rounds * 4)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        target.stdout.readline()
        for first in range(0, rounds, at_once):
            with tempfile.TemporaryDirectory(prefix="probing-kills.") as folder:
                paths = [os.path.join(folder, "%d.db" % i) for i in range(min(at_once, rounds - first))]
                for path, reason, n_samples in kill_some(binary, target.pid, paths, rng):
                    with_samples += n_samples > 0
                    if reason:
                        wrong.append(reason)
                        say("round %d: %s" % (first + paths.index(path), reason))
    finally:
        target.kill()
        target.wait()
        target.stdout.close()
    return wrong, with_samples


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("binary")
    arguments = parser.parse_args()
    print("seed %d" % arguments.seed, flush=True)
    wrong, with_samples = run(arguments.binary, arguments.rounds, arguments.at_once, arguments.seed)
    print("%d rounds, %d with samples, %d wrong" % (arguments.rounds, with_samples, len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
