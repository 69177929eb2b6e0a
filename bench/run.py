#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures what unwinding and sampling cost, and prints Markdown tables.

    bench/run.py [unwind|attach|stolen ...] [--quick] [--build DIR]

Without names, everything is measured; docs/performance.md says what the numbers
mean. DIR is a release build (default: build). Needs the permission to sample
(root, or kernel.perf_event_paranoid <= 1), and `perf` for the comparison with
it. Quiet machines give the best numbers; each is a median, with the lowest and
the highest beside it.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"


def fail(text):
    sys.exit("bench: " + text)


def built(arguments, name):
    path = arguments.build / name
    if not path.exists():
        fail("%s is not there; build first: meson setup build && ninja -C build" % path)
    return str(path)


@contextlib.contextmanager
def running(command, **options):
    """A program that works until we are done with it."""
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def table(title, columns, rows):
    print("\n%s\n" % title)
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


# ---- Unwinding ----

# Something to compile for a minute: many instantiations, deep recursion in the compiler.
CPLUSPLUS = "#include <algorithm>\n#include <functional>\n#include <map>\n#include <regex>\n#include <string>\n" + \
    "".join("""struct s%(i)d { int a; std::string b; bool operator<(const s%(i)d &o) const { return b < o.b; } };
int f%(i)d(std::map<s%(i)d, std::function<int(s%(i)d)>> &m, std::vector<s%(i)d> v) {
  std::sort(v.begin(), v.end()); std::regex r("(a|b%(i)d)*c");
  int n = 0; for (auto &x : v) { n += std::regex_match(x.b, r) ? m[x](x) : x.a; } return n; }
""" % {"i": i} for i in range(400))


def torch_is_there():
    return subprocess.run([PYTHON, "-c", "import torch, torchvision"], capture_output=True,
                          check=False).returncode == 0


def unwind_loads(folder):
    """Name, command, stack bytes."""
    if os.path.exists(PYTHON):
        yield "Python: demo.py", [PYTHON, str(ROOT / "fixtures/demo.py")], 16384
    compiler = shutil.which("clang++") or shutil.which("g++")
    if compiler:
        source = folder / "many.cc"
        source.write_text(CPLUSPLUS)
        command = [compiler, "-std=c++17", "-O2", "-c", "-o", str(folder / "many.o"), str(source)]
        if "clang" not in compiler:
            command = gcc_itself(command)
        for stack_bytes in (16384, 32768, 65528):
            yield "C++: " + os.path.basename(compiler), command, stack_bytes
    if torch_is_there():
        for stack_bytes in (16384, 32768):
            yield "PyTorch: train.py", [PYTHON, str(ROOT / "fixtures/train.py")], stack_bytes


def gcc_itself(command):
    """g++ only starts the compiler proper; that is the one to look at."""
    shown = subprocess.run(command[:1] + ["-###"] + command[1:], capture_output=True, text=True, check=True)
    line = next(x for x in shown.stderr.splitlines() if "cc1plus" in x)
    return [x.strip('"') for x in line.split()]


def spread(values):
    return "**%.1f** (%.1f–%.1f)" % tuple(values)


def unwind_row(name, stack_bytes, result):
    frames = result["frames"] / result["samples"]
    ended = sum(n for key, n in result.items() if key in ("end_complete", "end_completed"))
    return [name, "%d KB" % round(stack_bytes / 1024), "%d" % result["samples"], "%.1f" % frames,
            "%.0f %%" % (100 * ended / result["samples"]), spread(result["streamed_ns"]),
            spread(result["hot_ns"]), "%.1f" % result["words_ns"][0], "%.1f" % result["lines_ns"][0],
            "%.0f" % result["first_ns"][0], "%.1f" % result["new_place_us"],
            spread(result["libdwfl_ns"]), "%.1f" % (result["libdwfl_ns"][0] / result["streamed_ns"][0]),
            spread(result["shared_ns"]), "%.1f" % (result["libdwfl_shared_ns"][0] / result["shared_ns"][0]),
            "%.3f %%" % (100 * result["agreement"]), "%.2f %%" % (100 * result["halves"])]


def measure_unwind(arguments):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command, stack_bytes in unwind_loads(pathlib.Path(folder)):
            with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as target:
                time.sleep(6 if "torch" in name.lower() else 2)
                done = subprocess.run([built(arguments, "bench/bench_unwind"), "-F", "999",
                                       "-d", "3" if arguments.quick else "10",
                                       "-s", str(stack_bytes), str(target.pid)],
                                      capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    fail("%s: %s" % (name, done.stderr.strip()))
                rows.append(unwind_row(name, stack_bytes, json.loads(done.stdout)))
    table("Unwinding, CPU time in ns per frame: median (lowest–highest)",
          ["load", "dump", "samples", "frames a sample", "reach the start in the dump", "warm, streamed",
           "warm, hot", "memory: words", "memory: lines", "first pass", "µs a new place", "libdwfl, streamed",
           "times faster", "from the shared cache", "times faster there", "agreement", "right in half a dump"], rows)


# ---- Attaching ----

def attach(arguments, pid, folder):
    """Seconds from the start of the command to the first sample, peak of memory in KB, CPU seconds."""
    path = str(folder / "attach.db")
    started = time.time()
    process = subprocess.Popen([built(arguments, "src/cli/probing"), "record", "-q", "-F", "999", "-d", "5",
                                "-o", path, "-p", str(pid)])
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        fail("probing record ended with %d" % status)
    with sqlite3.connect(path) as db:
        db.enable_load_extension(True)
        db.load_extension(str(built(arguments, "src/extension/probing_sqlite.so")))
        (first,) = db.execute("SELECT min(timestamp) FROM sample").fetchone()
        ends = dict(db.execute("SELECT stack_end, count(*) FROM sample GROUP BY 1"))
    os.unlink(path)
    return first - started, usage.ru_maxrss, usage.ru_utime + usage.ru_stime, ends


def attach_loads(folder):
    yield from unwind_loads(folder)
    command = [PYTHON, str(ROOT / "fixtures/threads.py"), "--busy", "1", "--idle", "199"]
    yield "200 threads", command, 16384


def measure_attach(arguments):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command, stack_bytes in attach_loads(pathlib.Path(folder)):
            if stack_bytes != 16384:
                continue
            with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as target:
                time.sleep(6 if "torch" in name.lower() else 1)
                runs = [attach(arguments, target.pid, pathlib.Path(folder))
                        for _ in range(1 if arguments.quick else 3)]
            first, memory, cpu = (sorted(run[i] for run in runs)[len(runs) // 2] for i in range(3))
            ends = collections.Counter()
            for run in runs:
                ends.update(run[3])
            whole = (ends["complete"] + ends["completed"]) / sum(ends.values())
            rows.append([name, "%.0f" % (first * 1e3), "%.0f" % (memory / 1024), "%.2f" % (cpu / 5 * 100),
                         "%d" % sum(ends.values()), "%.2f %%" % (100 * whole)])
    table("Attaching at 999 Hz for 5 s, medians of 3; names included",
          ["load", "ms to the first sample", "peak memory (MB, file pages included)", "CPU (% of one core)",
           "samples of all", "whole stacks"], rows)


# ---- Stolen time ----

def measure_stolen(arguments):
    for n_idle in (1, 100):
        print("\nTime stolen from a busy thread, in percent of its time; idle threads beside it: %d\n" % n_idle)
        sys.stdout.flush()
        subprocess.run([PYTHON, str(ROOT / "bench/stolen.py"), "--build", str(arguments.build), "--idle", str(n_idle)]
                       + (["--rounds", "2", "--seconds", "1"] if arguments.quick else []), check=True)


# ---- ----

MEASUREMENTS = {"unwind": measure_unwind, "attach": measure_attach, "stolen": measure_stolen}


def describe_machine():
    print("%s, Linux %s, %d processors, load %.1f" % (
        time.strftime("%Y-%m-%d"), os.uname().release.split("-")[0], os.cpu_count(), os.getloadavg()[0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="unwind|stolen", help="what to measure")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs, to see that it works")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", metavar="DIR")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in MEASUREMENTS:
            parser.error("there is no measurement '%s'" % name)
    describe_machine()
    for name, measure in MEASUREMENTS.items():
        if not arguments.names or name in arguments.names:
            measure(arguments)


if __name__ == "__main__":
    main()
