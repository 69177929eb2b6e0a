#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the recorder that is always on takes a day: CPU time, memory and the size of its file, of some minutes.

    bench/service.py [--minutes 3] [--busy 1] [--idle 3] [--build build]

systemd/always-on records with the settings of systemd/probing.conf, but only the programs that this one starts: --busy ones run fixtures/demo.py, --idle ones
sleep. CPU time is that of all threads of its processes (/proc/PID/task/*/schedstat), after a warm-up of 20 s in which most names are looked up.
"""
import argparse
import contextlib
import glob
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from always_on import below, cpu_ms

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WARMUP_S, DAY_S = 20, 86400


def memory_kb(pid):
    total = 0
    for one in below(pid):
        with open("/proc/%d/smaps_rollup" % one) as file:
            total += int(re.search(r"^Pss: +(\d+)", file.read(), re.M).group(1))
    return total


def size(folder):
    """Of what the recording holds, in its log, too."""
    path, = glob.glob(os.path.join(folder, "*.db"))
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        pages, free, page_bytes = (db.execute("PRAGMA " + name).fetchone()[0] for name in ("page_count", "freelist_count", "page_size"))
    return (pages - free) * page_bytes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--busy", type=int, default=1)
    parser.add_argument("--idle", type=int, default=3)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="probing-service.") as folder:
        python = os.path.join(folder, "served%d" % os.getpid())
        shutil.copy(os.path.realpath("/usr/bin/python3"), python)
        with open(os.path.join(ROOT, "systemd", "probing.conf")) as given, open(os.path.join(folder, "probing.conf"), "w") as to:
            to.write(re.sub("(?m)^processes = .*", "processes = " + os.path.basename(python), given.read()))
        with open(os.path.join(ROOT, "systemd", "always-on.in")) as given, open(os.path.join(folder, "always-on"), "w") as to:
            to.write(given.read().replace("@bindir@", os.path.abspath(os.path.join(arguments.build, "src", "cli"))))
        programs = [subprocess.Popen([python, "-B", os.path.join(ROOT, "fixtures", "demo.py")], stdout=subprocess.DEVNULL) for _ in range(arguments.busy)]
        programs += [subprocess.Popen([python, "-c", "import time; time.sleep(1e6)"]) for _ in range(arguments.idle)]
        service = subprocess.Popen(["bash", os.path.join(folder, "always-on"), os.path.join(folder, "probing.conf")],
                                   env=dict(os.environ, STATE_DIRECTORY=folder, RUNTIME_DIRECTORY=folder))
        try:
            time.sleep(WARMUP_S)
            cpu, bytes_before, began = cpu_ms(service.pid), size(folder), time.monotonic()
            time.sleep(arguments.minutes * 60)
            seconds = time.monotonic() - began
            share, grown, memory = (cpu_ms(service.pid) - cpu) / seconds / 1000, (size(folder) - bytes_before) / seconds, memory_kb(service.pid)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()
            for program in programs:
                program.kill()
                program.wait()
    print("%d busy, %d idle programs, %.0f s: %.3f %% of a processor, %.0f s of CPU time a day; file %.0f KB/h, %.0f MB/day; memory %.0f MB" % (
        arguments.busy, arguments.idle, seconds, share * 100, share * DAY_S, grown * 3600 / 1e3, grown * DAY_S / 1e6, memory / 1e3))


if __name__ == "__main__":
    main()
