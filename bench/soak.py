#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whether a recorder that runs for days grows: hours of churn in minutes.

Records fixtures/churn.py, whose threads, processes, libraries and functions come and go, with
--max-size and --retention. Looks at the recorder all the while, and prints, as a Markdown table,
its memory, descriptors and threads after the warm-up (the first third) and at the end, the size of
the file at its largest, what was lost, and what SQLite says of the file. The exit status is
1 if something has grown, was lost without being counted, or is damaged.

    bench/soak.py [--build build] [--minutes 20] [--pace 40] [--hz 499] [--source auto]
                  [--max-size 8M] [--retention 60]

At --pace 40, 20 minutes make about as many threads and processes as 8 hours of a server
that starts five threads a second and a child every two seconds.
"""
import argparse
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# Memory that differs between two moments of a recorder that does not grow: pages of symbol tables
# come and go, and the allocator's are given back late.
SLACK_BYTES, SLACK_SHARE = 6 << 20, 0.10


def below(pid):
    """A recorder, and the processes that read files for it."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError), open("/proc/%d/task/%d/children" % (one, one)) as children:
            found += [int(child) for child in children.read().split()]
    return found


def memory_bytes(pid, key):
    total = 0
    for one in below(pid):
        with contextlib.suppress(OSError), open("/proc/%d/status" % one) as status:
            total += sum(int(line.split()[1]) * 1024 for line in status if line.startswith(key + ":"))
    return total


def ticks_of(pid):
    with open("/proc/%d/stat" % pid) as stat:
        return sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))


def look(pid, path):
    """The recorder at this moment; anonymous memory apart, since pages of files are the kernel's to take back."""
    size = sum(os.path.getsize(path + end) for end in ("", "-wal") if os.path.exists(path + end))
    ticks = sum(map(ticks_of, below(pid)))
    return {"time": time.monotonic(), "anonymous": memory_bytes(pid, "RssAnon"), "rss": memory_bytes(pid, "VmRSS"),
            "descriptors": len(os.listdir("/proc/%d/fd" % pid)), "threads": len(os.listdir("/proc/%d/task" % pid)),
            "file": size, "cpu_s": ticks / os.sysconf("SC_CLK_TCK")}


def watch(recorder, path, seconds, every=1.0):
    looks, stop = [], time.monotonic() + seconds
    while time.monotonic() < stop and recorder.poll() is None:
        with contextlib.suppress(OSError):
            looks.append(look(recorder.pid, path))
        time.sleep(every)
    return looks


def middle(looks, key):
    values = sorted(one[key] for one in looks)
    return values[len(values) // 2]


def extension_of(binary):
    return os.path.join(os.path.dirname(os.path.abspath(binary)), "..", "extension", "probing_sqlite.so")


def judge_file(path, extension):
    """What is wrong with the recording, and some of its figures."""
    wrong = []
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.enable_load_extension(True)
        db.load_extension(extension)
        one = lambda sql: db.execute(sql).fetchone()[0]
        figures = {"kept": one("SELECT count(*) FROM sample"), "counters": dict(db.execute("SELECT * FROM counter")),
                   "span": one("SELECT max(timestamp) - min(timestamp) FROM sample") or 0}
        if one("PRAGMA integrity_check") != "ok":
            wrong.append("integrity_check")
        if one("SELECT count(*) FROM sample") != one("SELECT coalesce(sum(samples), 0) FROM stack_total"):
            wrong.append("totals are not the samples'")
        if one("SELECT count(*) FROM sample_block WHERE block_error(samples, data) IS NOT NULL"):
            wrong.append("damaged blocks of samples")
        if one("SELECT count(*) FROM sample LEFT JOIN stack ON stack.stack = sample.stack"
               " WHERE sample.stack IS NOT NULL AND stack.stack IS NULL"):
            wrong.append("samples without their stack")
        if one("SELECT count(*) FROM stack LEFT JOIN frame USING (frame) WHERE frame.frame IS NULL"):
            wrong.append("stacks without their frame")
        if one("SELECT count(*) FROM stack AS s LEFT JOIN stack AS p ON p.stack = s.parent"
               " WHERE s.parent IS NOT NULL AND p.stack IS NULL"):
            wrong.append("stacks without their caller's")
        if one("SELECT count(*) FROM frame LEFT JOIN function USING (function)"
               " WHERE frame.function IS NOT NULL AND function.function IS NULL"):
            wrong.append("frames without their function")
        counters = figures["counters"]
        if counters["samples"] != figures["kept"] + counters["dropped"]:
            wrong.append("samples are neither there nor counted as dropped")
    return wrong, figures


def judge_growth(looks):
    """(before, after, what has grown) of the second and the last third."""
    third = max(1, len(looks) // 3)
    before, after, grown = looks[third:2 * third], looks[-third:], []
    allowed = SLACK_BYTES + SLACK_SHARE * middle(before, "anonymous")
    if middle(after, "anonymous") > middle(before, "anonymous") + allowed:
        grown.append("memory")
    for key in ("descriptors", "threads"):
        # processes that live just then have some
        if middle(after, key) > middle(before, key) + 4:
            grown.append(key)
    return before, after, grown


def soak(binary, fixtures, seconds, pace, options, path, user_command=()):
    """Record churn; returns looks, what the target made, and what the recorder said."""
    environment = dict(os.environ, PROBING_FIXTURES=fixtures)
    command = [sys.executable, "-B", os.path.join(ROOT, "fixtures", "churn.py"), "--seconds", str(seconds + 30),
               "--pace", str(pace)]
    target = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    recorder = None
    try:
        target.stdout.readline()
        recorder = subprocess.Popen(list(user_command) + [binary, "record", "--pid", str(target.pid), "-o", path]
                                    + options, stderr=subprocess.PIPE, text=True)
        looks = watch(recorder, path, seconds)
        recorder.send_signal(signal.SIGINT)
        said = recorder.communicate(timeout=60)[1]
        target.send_signal(signal.SIGUSR1)
        made = json.loads(target.communicate(timeout=30)[0].split("ended ")[1])
        return looks, made, said, recorder.returncode
    finally:
        for process in filter(None, (recorder, target)):
            if process.poll() is None:
                process.kill()
            process.wait()


def megabytes(value):
    return "%.1f MB" % (value / 1e6)


def report(looks, made, figures, wrong):
    before, after, grown = judge_growth(looks)
    cpu = (looks[-1]["cpu_s"] - looks[0]["cpu_s"]) / (looks[-1]["time"] - looks[0]["time"])
    print("| | after warm-up | at the end |\n|---|---|---|")
    for key, show in (("anonymous", megabytes), ("rss", megabytes), ("descriptors", str), ("threads", str)):
        print("| %s | %s | %s |" % (key, show(middle(before, key)), show(middle(after, key))))
    print("\nmade: %s" % ", ".join("%d %s" % (n, what) for what, n in made.items()))
    print("file at its largest: %s; %d samples taken, %d kept (of %.0f s), %d lost; %.1f %% of a CPU" % (
        megabytes(max(one["file"] for one in looks)), figures["counters"]["samples"], figures["kept"], figures["span"],
        figures["counters"]["lost"], cpu * 100))
    print("wrong: %s" % (", ".join(wrong + [what + " has grown" for what in grown]) or "nothing"))
    return not wrong and not grown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--pace", type=float, default=40)
    parser.add_argument("--hz", type=float, default=499)
    parser.add_argument("--source", default="auto")
    parser.add_argument("--max-size", default="8M")
    parser.add_argument("--retention", default="60")
    parser.add_argument("--looks", help="write all looks into this file, as JSON")
    arguments = parser.parse_args()
    options = ["-F", str(arguments.hz), "--source", arguments.source, "--max-size", arguments.max_size,
               "--retention", arguments.retention]
    with tempfile.TemporaryDirectory(prefix="probing-soak.") as folder:
        path = os.path.join(folder, "soak.db")
        binary = os.path.join(arguments.build, "src", "cli", "probing")
        looks, made, said, status = soak(binary, os.path.join(arguments.build, "fixtures"), arguments.minutes * 60,
                                         arguments.pace, options, path)
        if arguments.looks:
            with open(arguments.looks, "w") as file:
                json.dump(looks, file)
        if status != 0:
            sys.exit("the recorder ended with %d: %s" % (status, said))
        wrong, figures = judge_file(path, extension_of(binary))
    sys.exit(0 if report(looks, made, figures, wrong) else 1)


if __name__ == "__main__":
    main()
