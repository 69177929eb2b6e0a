#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What it costs to merge the answers of many ranks: time and memory of `probing cluster backtrace` beyond the slowest host.

Usage: cluster.py [--ranks N,...] [--nodes N,...] [PROBING]

Answers are canned: hosts of eight ranks, printed by `cat` instead of ssh, with stacks of 60 frames. Most ranks wait in one
collective operation; one in a hundred is elsewhere, and the innermost native frames of all differ, as those of threads that poll.
The line of each size has the wall time with all answers, that of the same commands alone (the "slowest host"), and the
memory at its highest.

--nodes asks so many hosts over HTTP instead: a server on loopback answers for all of them, each with its own address. As a first host of
a group it answers at once for the hosts below it, so that the times are those of the client alone: of all connections by itself
(--fan-out 1024), and of groups (the default of 64).
"""
import argparse
import contextlib
import http.server
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

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


class Canned(http.server.BaseHTTPRequestHandler):
    """All nodes: the address of the connection says which one is asked."""
    protocol_version = "HTTP/1.1"
    n_nodes = connections = 0
    texts = {}

    def setup(self):
        type(self).connections += 1
        super().setup()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked = ["http://" + self.headers["Host"]]
        for line in body.splitlines():
            if line.startswith("--below="):
                asked += line[len("--below="):].split(",")
        hosts = [self.texts[url] for url in asked]
        answer = ('{"probing_cluster":1,"version":"0.1.0","hosts":[%s]}' % ",".join(hosts)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_GET(self):
        answer = str(self.connections).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 2048


def address(node, port):
    return "http://127.1.%d.%d:%d" % (node // 250, node % 250 + 1, port)


def serve(n_nodes, pipe):
    server = Server(("0.0.0.0", 0), Canned)
    port = server.server_address[1]
    for node in range(n_nodes):
        host = document(node, n_nodes * RANKS_OF_HOST)["hosts"][0]
        host["address"] = address(node, port)
        Canned.texts[host["address"]] = json.dumps(host, separators=(",", ":"))
    pipe.send(port)
    server.serve_forever()


@contextlib.contextmanager
def serving(n_nodes):
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(n_nodes, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def connections(port):
    with urllib.request.urlopen("http://127.0.0.1:%d/" % port) as answer:
        return int(answer.read())


def measure_nodes(probing, n_nodes, folder):
    n_ranks = n_nodes * RANKS_OF_HOST
    with serving(n_nodes) as port:
        hosts = os.path.join(folder, "hosts")
        with open(hosts, "w", encoding="utf-8") as file:
            file.write("".join(address(node, port) + "\n" for node in range(n_nodes)))
        for fan_out in 1024, 64:
            before = connections(port)
            whole, cpu, memory, printed = timed([probing, "cluster", "backtrace", "--hosts-file", hosts, "--fan-out", str(fan_out)],
                                                env=dict(os.environ, PROBING_AUTH_TOKEN="a token of a benchmark"))
            if "%d of %d ranks read" % (n_ranks, n_ranks) not in printed:
                sys.exit("not all ranks were read:\n" + printed[:2000])
            print("%5d hosts  %6d ranks  %5d connections  %6.3f s, %6.3f s of CPU; %.0f MB"
                  % (n_nodes, n_ranks, connections(port) - before - 1, whole, cpu, memory), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="125,250,500,1000,2000,4000")
    parser.add_argument("--nodes", help="for example 10,100,1000")
    parser.add_argument("probing", nargs="?", default=os.path.join(HERE, "..", "build", "src", "cli", "probing"))
    options = parser.parse_args()
    if options.nodes:
        for n_nodes in map(int, options.nodes.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                measure_nodes(os.path.abspath(options.probing), n_nodes, folder)
        return
    for n_ranks in map(int, options.ranks.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            measure(os.path.abspath(options.probing), n_ranks, folder)


if __name__ == "__main__":
    main()
