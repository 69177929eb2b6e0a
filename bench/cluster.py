#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What it costs to merge the answers of many ranks: time and memory of `probing cluster backtrace` beyond the slowest host.

Usage: cluster.py [--ranks N,...] [PROBING]

Answers are canned: hosts of eight ranks, printed by `cat` instead of ssh, with stacks of 60 frames. Most ranks wait in one
collective operation; one in a hundred is elsewhere, and the innermost native frames of all differ, as those of threads that poll.
The line of each size has the wall time with all answers, that of the same commands alone (the "slowest host"), and the
memory at its highest.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS_OF_HOST = 8
FRAMES = 60


def frame(kind, function, file=None, line=None, module=None):
    return {"kind": kind, "function": function, "file": file, "line": line, "module": module}


def stack(rank):
    library = "/usr/lib/python3/dist-packages/torch/nn/modules/module%d.py"
    own = [frame("python", "step_%d" % i, "/home/user/train.py", 100 + i) for i in range(8)]
    between = [frame("python", "call_%d" % i, library % i, 10 * i) for i in range(FRAMES - 20)]
    if rank % 100 == 7:
        inner = [frame("builtin", "posix.read"), frame("python", "load_%d" % (rank % 3), "/home/user/data.py", 31)]
    else:
        inner = [frame("native", "poll_%d" % (rank % 5), None, None, "/usr/lib/libtorch_cpu.so"),
                 frame("native", "c10d::Work::wait", None, None, "/usr/lib/libtorch_cpu.so"),
                 frame("python", "all_reduce", "/usr/lib/python3/dist-packages/torch/distributed/c10d.py", 1541)]
    start = [frame("python", "<module>", "/home/user/train.py", 1), frame("native", "main", None, None, "/usr/bin/python3")]
    return inner + own[::-1] + between[::-1] + start


def document(host, n_ranks):
    ranks = [{"rank": rank, "local_rank": rank % RANKS_OF_HOST, "world_size": n_ranks, "job": "bench", "role": None,
              "pid": 1000 + rank, "status": "read", "problem": None, "time_ns": 1, "python": "3.11.2", "command": "train.py",
              "threads": [{"tid": 1000 + rank, "name": "python3", "python_name": "MainThread", "state": "S", "wait": "futex",
                           "holds_gil": False, "approximate": False, "frames": stack(rank)}]}
             for rank in range(host * RANKS_OF_HOST, min(n_ranks, (host + 1) * RANKS_OF_HOST))]
    return {"probing_cluster": 1, "version": "0.1.0",
            "hosts": [{"host": "node%d" % host, "address": None, "version": "0.1.0", "problem": None, "ranks": ranks}]}


def timed(command, **more):
    """(seconds, CPU seconds of it and of children it waited for, highest resident MB, what it printed)"""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.stdout.close()
    if status != 0:
        sys.exit("%s failed" % " ".join(command))
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, printed


def measure(probing, n_ranks, folder):
    n_hosts = -(-n_ranks // RANKS_OF_HOST)
    n_bytes = 0
    for host in range(n_hosts):
        with open(os.path.join(folder, "node%d" % host), "w", encoding="utf-8") as file:
            n_bytes += file.write(json.dumps(document(host, n_ranks), separators=(",", ":")))
    answer = os.path.join(folder, "answer")
    with open(answer, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec cat \"${0%/*}/$1\"\n")
    os.chmod(answer, 0o755)
    hosts = "node[0-%d]" % (n_hosts - 1)
    whole, _, memory, printed = timed([probing, "cluster", "backtrace", "--hosts", hosts, "--ssh", answer])
    if "%d of %d ranks read" % (n_ranks, n_ranks) not in printed:
        sys.exit("not all ranks were read")
    alone, _, _, _ = timed(["sh", "-c", "for i in $(seq 0 %d); do %s node$i & done >/dev/null; wait" % (n_hosts - 1, answer)])
    files = [word for host in range(n_hosts) for word in ("--from", os.path.join(folder, "node%d" % host))]
    merging, merging_cpu, _, _ = timed([probing, "cluster", "backtrace", *files])
    print("%6d ranks  %5d hosts  %6.1f MB of answers  %6.3f s, %.3f s of them the commands alone; "
          "merging alone %6.3f s, %.3f s of CPU; %.0f MB"
          % (n_ranks, n_hosts, n_bytes / 1e6, whole, alone, merging, merging_cpu, memory))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="125,250,500,1000,2000,4000")
    parser.add_argument("probing", nargs="?", default=os.path.join(HERE, "..", "build", "src", "cli", "probing"))
    options = parser.parse_args()
    for n_ranks in map(int, options.ranks.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            measure(os.path.abspath(options.probing), n_ranks, folder)


if __name__ == "__main__":
    main()
