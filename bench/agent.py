#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the agent costs where nobody uses it: bench/agent.py [--seconds N] [PYTHON...]

For each interpreter: the instructions that the start hook (python/probing.pth) adds to `python -c pass` where PROBING is not set, beside
another .pth, as counted by valgrind; the time that PROBING=1 adds to it, the least of 40 runs each; and of a program that sleeps, with the agent loaded: resident memory it adds, and context
switches and CPU time of its two threads in N seconds (10). PROBING_BINARY: default build/src/cli/probing.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("PROBING_BINARY") or os.path.join(ROOT, "build", "src", "cli", "probing")


def make_environment(folder, version, has_hook):
    site = os.path.join(folder, str(has_hook), "lib", "python" + version, "site-packages")
    os.makedirs(site)
    with open(os.path.join(site, "another.pth"), "w") as file:
        file.write("import sys\n")
    if has_hook:
        for name in "probing.pth", "probing":
            os.symlink(os.path.join(ROOT, "python", name), os.path.join(site, name))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PROBING", "PYTHON"))}
    environment.update(PYTHONUSERBASE=os.path.join(folder, str(has_hook)), PYTHONHASHSEED="0")
    return environment


def instructions(python, environment):
    command = [python, "-c", "pass"]
    subprocess.run(command, env=environment, check=True)  # writes what is compiled once
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"] + command, env=environment,
                          stderr=subprocess.PIPE, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def start_ms(python, environment):
    """What PROBING=1 adds."""
    library = os.path.join(os.path.dirname(BINARY), "..", "agent", "libprobing-agent.so")
    least = {}
    for _ in range(40):
        for mode in "0", "1":
            begun = time.perf_counter()
            subprocess.run([python, "-c", "pass"], env=dict(environment, PROBING=mode, PROBING_AGENT=library, PROBING_LOGLEVEL="error"),
                           check=True)
            least[mode] = min(least.get(mode, 1e9), (time.perf_counter() - begun) * 1e3)
    return least["1"] - least["0"]


def status(pid, key):
    with open("/proc/%s/status" % pid) as file:
        return int(re.search(r"(?m)^%s:\s*(\d+)" % key, file.read()).group(1))


def threads(pid):
    """{name: (context switches, nanoseconds on a processor)} of the agent's threads."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        task = "%d/task/%s" % (pid, tid)
        with open("/proc/%s/comm" % task) as comm, open("/proc/%s/schedstat" % task) as schedstat:
            found[comm.read().strip()] = (status(task, "voluntary_ctxt_switches") + status(task, "nonvoluntary_ctxt_switches"),
                                          int(schedstat.read().split()[0]))
    return {name: values for name, values in found.items() if name.startswith("probing-")}


def idle(python, seconds):
    process = subprocess.Popen([python, "-c", "import time; time.sleep(600)"])
    try:
        time.sleep(1)
        before = status(process.pid, "VmRSS")
        subprocess.run([BINARY, "inject", str(process.pid)], check=True, stdout=subprocess.DEVNULL)
        time.sleep(1)
        grown, first = status(process.pid, "VmRSS") - before, threads(process.pid)
        time.sleep(seconds)
        last = threads(process.pid)
    finally:
        process.kill()
        process.wait()
    return grown, sum(last[name][0] - first[name][0] for name in first), sum(last[name][1] - first[name][1] for name in first)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("python", nargs="*", default=[sys.executable])
    arguments = parser.parse_args()
    print("python  hook, instructions          ms when on  agent idle: KiB  context switches  CPU ms in %d s" % arguments.seconds)
    for python in arguments.python:
        version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout.strip()
        with tempfile.TemporaryDirectory() as folder:
            environments = [make_environment(folder, version, has_hook) for has_hook in (False, True)]
            without, with_hook = (instructions(python, environment) for environment in environments)
            on_ms = start_ms(python, environments[1])
        print("%-7s +%d of %d (%.2f %%)  %10.1f  %15d  %16d  %.3f" % (
            (version, with_hook - without, without, 100 * (with_hook - without) / without, on_ms) + idle_row(python, arguments.seconds)))


def idle_row(python, seconds):
    grown, switches, ns = idle(python, seconds)
    return grown, switches, ns / 1e6


if __name__ == "__main__":
    main()
