#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a recorder that is always on takes: its CPU time at 19 Hz, with limits, ten seconds after ten seconds.

    bench/always_on.py [--build build] [--hz 19] [--warmup 10] [--seconds 60] [--from-start [--container]]
                       [--sleeping N | PROGRAM...]

PROGRAM (default: fixtures/demo.py; with --sleeping a thread that computes, and N that sleep) runs under Debian's Python and is recorded with --max-size and --retention. What the recorder's
threads and those of its processes have used is what /proc/PID/task/*/schedstat says, in percent of one processor; the program's names are
looked up in the warm-up for the most part. Ends with the median of the tens, and the whole.

With --from-start the program has PROBING=1 PROBING_RECORD=FILE, without limits; the CPU time of the agent's threads comes besides. With
--container all is under a filter that refuses perf events, BPF and reading memory, so that the threads sample themselves.
"""
import argparse
import contextlib
import glob
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
STEP_S = 10
SLEEPING = """
import sys, threading
for _ in range(int(sys.argv[1])):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
def step(): return sum(i * i for i in range(500))
while True: step()
"""


def below(pid):
    """A recorder, and the processes that read files for it."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError), open("/proc/%d/task/%d/children" % (one, one)) as children:
            found += [int(child) for child in children.read().split()]
    return found


def cpu_ms(pid):
    total = 0
    for path in (path for one in below(pid) for path in glob.glob("/proc/%d/task/*/schedstat" % one)):
        with open(path) as file:
            total += int(file.read().split()[0])
    return total / 1e6


def agent_ms(pid):
    """Of the agent's threads in a program."""
    total = 0
    for task in glob.glob("/proc/%d/task/*" % pid):
        with contextlib.suppress(OSError), open(task + "/comm") as comm, open(task + "/schedstat") as counts:
            total += int(counts.read().split()[0]) if comm.read().startswith("probing-") else 0
    return total / 1e6


def measure(recorder, seconds):
    """Percent of a processor, of each step."""
    shares = []
    before, since = cpu_ms(recorder), time.monotonic()
    for _ in range(max(1, int(seconds / STEP_S))):
        time.sleep(STEP_S)
        now, at = cpu_ms(recorder), time.monotonic()
        if now == 0:
            sys.exit("the recorder has ended")
        shares.append((now - before) / (at - since) / 10)
        before, since = now, at
        print("%.3f %%" % shares[-1], flush=True)
    return shares


def start_both(arguments, folder):
    """(program, its recorder's PID). The package is where a user's own are."""
    version = subprocess.run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], check=True, stdout=subprocess.PIPE,
                             text=True).stdout.strip()
    site = os.path.join(folder, "lib", "python" + version, "site-packages")
    os.makedirs(site)
    os.symlink(os.path.abspath(os.path.join(HERE, "..", "python", "probing")), os.path.join(site, "probing"))
    with open(os.path.join(site, "probing.pth"), "w") as to, open(os.path.join(HERE, "..", "python", "probing.pth")) as hook:
        to.write(hook.read())
    build = os.path.abspath(arguments.build)
    environment = dict(os.environ, PROBING="1", PYTHONUSERBASE=folder, PROBING_BINARY=os.path.join(build, "src", "cli", "probing"),
                       PROBING_AGENT=os.path.join(build, "src", "agent", "libprobing-agent.so"),
                       PROBING_RECORD="%s,frequency=%g" % (os.path.join(folder, "always.db"), arguments.hz))
    within = [os.path.join(build, "fixtures", "without_perf"), "--container"] if arguments.container else []
    target = subprocess.Popen(within + [PYTHON] + arguments.program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env=environment)
    for line in target.stderr:
        found = re.search(r"recording into .* \(process (\d+)\)$", line)
        if found:
            return target, int(found.group(1))
        if "not active" in line or "not recorded" in line:
            sys.exit(line)
    sys.exit("the program has ended")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--hz", type=float, default=19)
    parser.add_argument("--warmup", type=float, default=10, help="seconds that do not count")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--from-start", action="store_true", help="by PROBING_RECORD")
    parser.add_argument("--container", action="store_true", help="the same under a filter, by the agent")
    parser.add_argument("--sleeping", type=int, metavar="N", help="threads of the program that sleep")
    parser.add_argument("program", nargs="*", default=[os.path.join(HERE, "..", "fixtures", "demo.py")])
    arguments = parser.parse_args()
    if arguments.sleeping is not None:
        arguments.program = ["-c", SLEEPING, str(arguments.sleeping)]
    probing = os.path.join(arguments.build, "src", "cli", "probing")
    with tempfile.TemporaryDirectory(prefix="probing-always.") as folder:
        recorder = None
        if arguments.from_start:
            target, pid = start_both(arguments, folder)
        else:
            target = subprocess.Popen([PYTHON] + arguments.program, stdout=subprocess.DEVNULL)
            recorder = subprocess.Popen([probing, "record", "-q", "-F", str(arguments.hz), "--max-size", "100M", "--retention", "1h",
                                         "-o", os.path.join(folder, "always.db"), "-p", str(target.pid)])
            pid = recorder.pid
        try:
            time.sleep(arguments.warmup)
            agent, since = agent_ms(target.pid), time.monotonic()
            shares = measure(pid, arguments.seconds)
            agent = (agent_ms(target.pid) - agent) / (time.monotonic() - since) / 10
        finally:
            target.kill()
            target.wait()
            if recorder:
                recorder.send_signal(signal.SIGINT)
                recorder.wait()
            else:  # it ends with the program
                while os.path.exists("/proc/%d" % pid):
                    time.sleep(0.1)
    print("median of %d s: %.3f %% of a processor; in all %.3f %%" % (STEP_S, statistics.median(shares), statistics.mean(shares)))
    if arguments.from_start:
        print("threads of the agent: %.3f %%" % agent)


if __name__ == "__main__":
    main()
