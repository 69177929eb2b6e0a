#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long one look at a process takes: the first one, later ones, and other programs that do the same.

Usage: look.py [--build FOLDER] [--before FOLDER] [--realtime] [--rounds N] [TARGET...]      TARGET: demo, sleeping, torch (default: those that are here)

Starts the targets and looks at each N times (default 15), all programs in turns:

  first       probing backtrace with an empty cache
  second      with what the first one has left there
  no cache    probing backtrace --no-cache
  no native   probing backtrace --no-native
  version     probing --version: what any command takes
  py-spy      py-spy dump --native, of PATH or $PY_SPY
  gdb         gdb --batch -ex 'thread apply all bt'
  eu-stack    eu-stack -p

--before measures the first look and the one without a cache of another build, too, in turn with this one's. --realtime runs
every program with SCHED_RR (as root), so that a busy machine does not delay it.

A line each: the median of milliseconds until the last byte of the answer, until the program has ended (the first look keeps
what it found after it has answered), and of CPU time, each with the range of the middle half. A program that is not here is
named and left out. 'demo' is stopped (SIGSTOP) at another place in each round: what a busy program shows is
another place each time. The last line of a target says where the second look stands to py-spy's.
"""
import argparse
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SLEEP = "import time; time.sleep(3600)"
LONGEST_S = 60


def programs_of(options, cache, empty, pid):
    """{name: (command, environment, what to do before)}; the reasons of those that are missing."""
    probing = os.path.join(options.build, "src", "cli", "probing")
    found, missing = {}, []

    def forget():
        shutil.rmtree(empty, ignore_errors=True)
        os.mkdir(empty, 0o700)

    found["first"] = ([probing, "backtrace", pid], {"XDG_CACHE_HOME": empty}, forget)
    found["second"] = ([probing, "backtrace", pid], {"XDG_CACHE_HOME": cache}, None)
    found["no cache"] = ([probing, "backtrace", "--no-cache", pid], {}, None)
    found["no native"] = ([probing, "backtrace", "--no-native", pid], {}, None)
    found["version"] = ([probing, "--version"], {}, None)
    if options.before:
        before = os.path.join(options.before, "src", "cli", "probing")
        found["first, before"] = ([before, "backtrace", pid], {"XDG_CACHE_HOME": empty}, forget)
        found["no cache, before"] = ([before, "backtrace", "--no-cache", pid], {}, None)
    others = {"py-spy": [os.environ.get("PY_SPY") or "py-spy", "dump", "--native", "--pid", pid],
              "gdb": ["gdb", "--batch", "-p", pid, "-ex", "thread apply all bt"], "eu-stack": ["eu-stack", "-p", pid]}
    for name, command in others.items():
        if shutil.which(command[0]):
            found[name] = (command, {}, None)
        else:
            missing.append("%s is not here" % name)
    return found, missing


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def real_time():
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def run(command, environment, before, is_real_time):
    """(seconds until the answer is whole, until the end, seconds of CPU), or None where it failed."""
    if before:
        before()
    began, began_cpu = time.monotonic(), cpu_s()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=dict(os.environ, **environment), preexec_fn=real_time if is_real_time else None)
    alarm = threading.Timer(LONGEST_S, process.kill)  # wait(timeout=) would look every 50 ms
    alarm.start()
    answered = began
    while os.read(process.stdout.fileno(), 1 << 20):
        answered = time.monotonic()
    process.wait()
    process.stdout.close()
    took = answered - began, time.monotonic() - began, cpu_s() - began_cpu
    alarm.cancel()
    return took if process.returncode == 0 else None


def middle_half(values):
    if len(values) < 4:
        return min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def describe(looks):
    return "   ".join("%6.1f ms (%.1f to %.1f)" % tuple(1000 * v for v in (statistics.median(column), *middle_half(column)))
                      for column in zip(*looks))


def measure(name, process, options):
    with tempfile.TemporaryDirectory(prefix="probing-look.") as folder:
        cache, empty = os.path.join(folder, "cache"), os.path.join(folder, "empty")
        os.mkdir(cache, 0o700)
        programs, missing = programs_of(options, cache, empty, str(process.pid))
        looks = {program: [] for program in programs}
        run(*programs["second"], options.realtime)
        for _ in range(options.rounds):
            if name == "demo":
                process.send_signal(signal.SIGCONT)
                time.sleep(0.05)
                process.send_signal(signal.SIGSTOP)
            for program, how in programs.items():
                took = run(*how, options.realtime)
                if took:
                    looks[program].append(took)
    print("%-17s %31s" % ("%s (process %d)" % (name, process.pid), "answered") + "%31s%31s" % ("ended", "CPU"))
    for program, values in looks.items():
        print("  %-16s %s" % (program, describe(values) if values else "failed each time"), flush=True)
    for reason in missing:
        print("  skip: %s" % reason)
    if looks.get("py-spy"):
        ours, theirs = (statistics.median(v[0] for v in looks[program]) for program in ("second", "py-spy"))
        print("  the second look takes %.2f of py-spy's time" % (ours / theirs))


def targets():
    """{name: command}; the reasons of those that are missing."""
    found, missing = {"demo": ["/usr/bin/python3", "-B", os.path.join(ROOT, "fixtures", "demo.py"), "--seconds", "3600"]}, []
    python = os.environ.get("PROBING_PYTHON") or os.path.expanduser("~/.pyenv/versions/3.12.1/bin/python3")
    if os.path.exists(python):
        found["sleeping"] = [python, "-c", SLEEP]
    else:
        missing.append("sleeping: %s is not here (PROBING_PYTHON names another)" % python)
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0:
        found["torch"] = ["/usr/bin/python3", "-c", "import torch; " + SLEEP]
    else:
        missing.append("torch: /usr/bin/python3 cannot import it")
    return found, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--before")
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    found, missing = targets()
    for name in options.targets or found:
        if name not in found:
            sys.exit("no target %s: %s" % (name, "; ".join(missing) or ", ".join(found)))
        with subprocess.Popen(found[name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                time.sleep(4 if name == "torch" else 1)
                measure(name, process, options)
            finally:
                process.kill()
    for reason in missing if not options.targets else []:
        print("skip: " + reason)


if __name__ == "__main__":
    main()
