#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""CPU time in a recording, in percent of the CPU time by getrusage(2).

Records each program of fixtures/totals.py by each source of stacks, as this user and, as root, also as an ordinary user, and
prints a Markdown table. A cell has the sum of all weights, and in brackets the part of it that is `[not sampled]`. The last
line is the time that the hypervisor took from this machine, in percent of the time that it was busy.

    bench/totals.py [--build build] [--hz 199] [--rounds 1] [--programs short,build] [--columns bpf,user:wakeup] [--hogs 0]
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ["alone", "short", "shell", "build", "spawn", "many", "threads", "chain", "tree", "two", "daemon"]
USER = 65534
LIMIT_S = 300


def machine_ticks():
    """(busy, stolen) of all processors, in clock ticks."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, interrupt, soft, stolen = map(int, stat.readline().split()[1:9])
    return user + nice + system + interrupt + soft + stolen, stolen


@contextlib.contextmanager
def hogs(n):
    """Other programs that want a processor."""
    started = [subprocess.Popen(["timeout", str(LIMIT_S), "sh", "-c", "while :; do :; done"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in started:
            process.terminate()
            process.wait()


def stage(build, folder):
    """Copies that an ordinary user can reach."""
    for path in (build / "src/cli/probing", ROOT / "fixtures/totals.py"):
        shutil.copy(path, folder)
    for name in ("first", "second"):
        shutil.copy("/bin/bash", folder / name)
    folder.chmod(0o755)


def measure(staged, column, program, hz):
    """(all weights, those that are not sampled) in seconds by the kernel's account; None: refused."""
    user, _, source = column.rpartition(":")
    prefix = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"] if user else []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        for program_name in ("first", "second"):
            (folder / program_name).symlink_to(staged / program_name)
        done = subprocess.run(prefix + [staged / "probing", "record", "-q", "-F", str(hz), "--source", source, "-o", "totals.db",
                                        "--", sys.executable, staged / "totals.py", program],
                              cwd=folder, env=dict(os.environ, HOME=name), capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode != 0:
            print("%s, %s: %s" % (column, program, done.stderr.strip()), file=sys.stderr)
            return None
        with contextlib.closing(sqlite3.connect(folder / "totals.db")) as db:
            counters = dict(db.execute("SELECT name, value FROM counter"))
    truth = json.loads(done.stdout.splitlines()[-1])
    wanted = truth["own"] + truth["children"]
    missing = counters["not sampled ns"] / 1e9
    return (counters["sampled ns"] / 1e9 + missing) / wanted, missing / wanted, counters.get("lost", 0)


def cell(results):
    results = [result for result in results if result]
    if not results:
        return "refused"
    lost = sum(result[2] for result in results)
    return "%.1f (%.1f)%s" % (100 * statistics.median(result[0] for result in results),
                              100 * statistics.median(result[1] for result in results), ", %d lost" % lost if lost else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--hz", type=float, default=199)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--columns", default="bpf,wakeup,user:wakeup,poll" if os.getuid() == 0 else "wakeup,poll")
    parser.add_argument("--hogs", type=int, default=0)
    options = parser.parse_args()
    columns = options.columns.split(",")
    print("| program | %s |\n|---|%s" % (" | ".join(columns), "---|" * len(columns)))
    busy, stolen = machine_ticks()
    with tempfile.TemporaryDirectory() as name, hogs(options.hogs):
        folder = pathlib.Path(name)
        stage(options.build, folder)
        for program in options.programs.split(","):
            cells = [cell([measure(folder, column, program, options.hz) for _ in range(options.rounds)]) for column in columns]
            print("| %s | %s |" % (program, " | ".join(cells)), flush=True)
    busy, stolen = (now - before for now, before in zip(machine_ticks(), (busy, stolen)))
    print("\nThe hypervisor took %.1f %% of the busy time." % (100 * stolen / max(1, busy)))


if __name__ == "__main__":
    main()
