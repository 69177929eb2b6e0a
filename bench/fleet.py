#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a fleet costs its servers: a generated job of many hosts, sent in blocks as probing ship sends them.

Usage: bench/fleet.py [--hosts N] [--minutes N] [--version old|new]

Each host has 8 ranks of 4 threads at 19 Hz, and sends a block of samples and one of totals each minute. Stacks are drawn without
memory, by a power law: real ones repeat more, and take less. Printed, for a quarter, a half and all of the hosts: rows per CPU
second of the server with merges, bytes a sample, and CPU seconds of the query for the top functions; then the same samples on two
servers, and with the whole stack in each row. Times are the servers' CPU time by the kernel. Needs Debian's python3-numpy, and a
server (tests/e2e/clickhouse.py).
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time
import urllib.parse

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import clickhouse  # noqa: E402

BINARY = os.environ.get("PROBING_BINARY") or str(ROOT / "build/src/cli/probing")
RANKS, THREADS, HZ = 8, 4, 19
N_FUNCTIONS, N_STACKS, WHOLE_ROWS = 4000, 2500, 300000
START = int(time.time()) // 86400 * 86400 - 86400 + 36000
TOP = """SELECT name, sum(weight) AS seconds FROM (
  SELECT function, sum(weight) AS weight
  FROM (SELECT stack, sum(weight) AS weight FROM {db}.{table} WHERE job = 'llm' GROUP BY stack) AS t
  ANY LEFT JOIN (SELECT stack, any(functions[length(functions)]) AS function FROM {db}.stacks GROUP BY stack) AS s USING stack
  GROUP BY function) AS u
ANY LEFT JOIN (SELECT function, any(name) AS name FROM {db}.functions GROUP BY function) AS f USING function
GROUP BY name ORDER BY seconds DESC LIMIT 20"""


def cpu_s(pid):
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def text(value):
    return varint(len(value.encode())) + value.encode()


def native(columns):
    """A Native block: columns of (name, type, array of numbers or list of texts)."""
    parts = [varint(len(columns)), varint(len(columns[0][2]))]
    for name, kind, values in columns:
        parts += [text(name), text(kind)]
        parts.append(values.tobytes() if isinstance(values, numpy.ndarray) else b"".join(map(text, values)))
    return b"".join(parts)


def insert(server, table, columns):
    names = ", ".join(name for name, _, _ in columns)
    query = urllib.parse.quote("INSERT INTO fleet.%s_local (%s) FORMAT Native" % (table, names))
    server.post("/?query=" + query, native(columns))


class Job:
    """Functions, stacks, and samples of each host and minute, the same for each server."""

    def __init__(self):
        random = numpy.random.default_rng(1)
        self.functions = random.integers(1, 1 << 63, N_FUNCTIONS, dtype=numpy.uint64)
        self.names = ["Model%d.layer_%d" % (i % 97, i) for i in range(N_FUNCTIONS)]
        self.stacks = random.integers(1, 1 << 63, N_STACKS, dtype=numpy.uint64)
        trunk = random.integers(0, N_FUNCTIONS, 12)
        self.paths = [numpy.concatenate([trunk, random.integers(0, N_FUNCTIONS, random.integers(8, 28))]) for _ in range(N_STACKS)]
        weights = 1 / numpy.arange(1, N_STACKS + 1) ** 1.1
        self.shares = weights / weights.sum()

    def send_names(self, server):
        insert(server, "functions", [("function", "UInt64", self.functions), ("kind", "String", ["python"] * N_FUNCTIONS),
                                     ("name", "String", self.names),
                                     ("file", "String", ["/srv/job/model_%d.py" % (i % 97) for i in range(N_FUNCTIONS)])])
        rows = "\n".join("%d\t[%s]" % (stack, ",".join(str(self.functions[i]) for i in path))
                         for stack, path in zip(self.stacks, self.paths))
        server.query("INSERT INTO fleet.stacks_local (stack, functions) FORMAT TabSeparated\n" + rows)

    def minute(self, host, minute):
        """Samples of a host in a minute, as arrays by column."""
        random = numpy.random.default_rng(host * 10007 + minute)
        n_threads, each = RANKS * THREADS, HZ * 60
        n = n_threads * each
        steps = random.normal(1000 / HZ, 2, (n_threads, each)).cumsum(axis=1)
        times = numpy.minimum(steps, 59999).astype(numpy.int64) + (START + minute * 60) * 1000
        rank = numpy.repeat(numpy.arange(n_threads) // THREADS + host * RANKS, each)
        chosen = random.choice(N_STACKS, n, p=self.shares)
        return {"n": n, "run": host * 2654435761 % (1 << 61) + 1, "rank": rank.astype(numpy.int32),
                "pid": (rank % RANKS + 1000).astype(numpy.uint32), "tid": (numpy.repeat(numpy.arange(n_threads), each) + 1000).astype(numpy.uint32),
                "cpu": random.integers(0, 64, n).astype(numpy.uint16), "ms": times.ravel(), "stack": self.stacks[chosen],
                "leaf": (chosen % 50 + 10).astype(numpy.uint16), "chosen": chosen}


def send_minute(server, job, host, minute):
    it = job.minute(host, minute)
    n, is_old = it["n"], isinstance(server, clickhouse.Old)
    number = lambda value, kind: numpy.full(n, value, dtype=kind)
    times = [("time", "DateTime('UTC')", (it["ms"] // 1000).astype(numpy.uint32)), ("ms", "UInt16", (it["ms"] % 1000).astype(numpy.uint16))] \
        if is_old else [("time", "DateTime64(3, 'UTC')", it["ms"])]
    insert(server, "samples", [
        ("job", "String", ["llm"] * n), ("run", "UInt64", number(it["run"], numpy.uint64)), ("rank", "Int32", it["rank"]),
        ("pid", "UInt32", it["pid"]), ("tid", "UInt32", it["tid"]), ("cpu", "UInt16", it["cpu"]), *times,
        ("number", "UInt16", number(0, numpy.uint16)), ("stack", "UInt64", it["stack"]), ("leaf", "UInt16", it["leaf"]),
        ("weight", "UInt64", number(10 ** 9 // HZ, numpy.uint64)), ("flags", "UInt16", number(0x141, numpy.uint16)),
        ("block", "UInt32", number(minute + 1, numpy.uint32))])
    keys, counts = numpy.unique(it["rank"].astype(numpy.int64) * N_STACKS + it["chosen"], return_counts=True)
    m = len(keys)
    full = lambda value, kind: numpy.full(m, value, dtype=kind)
    insert(server, "totals", [
        ("job", "String", ["llm"] * m), ("minute", "DateTime('UTC')", full(START + minute * 60, numpy.uint32)),
        ("run", "UInt64", full(it["run"], numpy.uint64)), ("rank", "Int32", (keys // N_STACKS).astype(numpy.int32)),
        ("stack", "UInt64", job.stacks[keys % N_STACKS]), ("gil", "Int8", full(-1, numpy.int8)), ("state", "Int8", full(0, numpy.int8)),
        ("samples", "UInt32", counts.astype(numpy.uint32)), ("weight", "UInt64", counts.astype(numpy.uint64) * (10 ** 9 // HZ)),
        ("block", "UInt32", full(minute + 1, numpy.uint32))])
    return n


def settle(server):
    """Until no merge runs, twice in a row."""
    quiet = 0
    while quiet < 2:
        quiet = quiet + 1 if server.number("SELECT count() FROM system.merges") == 0 else 0
        time.sleep(0.5)


def bytes_of(server, table):
    column = "bytes" if isinstance(server, clickhouse.Old) else "bytes_on_disk"
    return server.number("SELECT sum(%s) FROM system.parts WHERE active AND database = 'fleet' AND table = '%s'" % (column, table))


def query_cpu_s(servers, sql):
    """The mean of ten, behind one that loads marks: the kernel's clock has ticks of 10 ms. Without what the servers take anyway."""
    servers[0].query(sql, timeout=600)

    def taken(act):
        before, began = sum(cpu_s(server.process.pid) for server in servers), time.monotonic()
        act()
        return sum(cpu_s(server.process.pid) for server in servers) - before, time.monotonic() - began
    idle, idle_s = taken(lambda: time.sleep(5))
    cost, cost_s = taken(lambda: [servers[0].query(sql, timeout=600) for _ in range(10)])
    return (cost - idle * cost_s / idle_s) / 10


def init(servers, *words):
    to = [word for server in servers for word in ("--to", server.url("fleet"))]
    subprocess.run([BINARY, "ship", "--init", "--keep-days", "0", "--keep-totals-days", "0", *words, *to], check=True, capture_output=True,
                   env=dict(os.environ, PROBING_FLEET_PASSWORD=clickhouse.PASSWORD))


def one_server(kind, job, options):
    server = kind().start()
    try:
        init([server])
        job.send_names(server)
        sent, cost, top = 0, 0.0, []  # samples; CPU seconds; those of the query, for each number of hosts
        for hosts in (options.hosts // 4, options.hosts // 2, options.hosts):
            first = sent // (RANKS * THREADS * HZ * 60 * options.minutes)
            before = cpu_s(server.process.pid)
            for minute in range(options.minutes):
                for host in range(first, hosts):
                    sent += send_minute(server, job, host, minute)
            settle(server)
            cost += cpu_s(server.process.pid) - before
            totals = server.number("SELECT count() FROM fleet.totals_local")
            top.append(query_cpu_s([server], TOP.format(db="fleet", table="samples")))
            print("  %4d hosts, %6.2f M samples: %.2f M rows per CPU second with merges, of them %.2f M samples; %.2f B a sample raw, %.2f by minute "
                  "totals; top functions %.3f CPU s raw, %.3f by totals" % (
                      hosts, sent / 1e6, (sent + totals) / cost / 1e6, sent / cost / 1e6, bytes_of(server, "samples_local") / sent, bytes_of(server, "totals_local") / sent,
                      top[-1], query_cpu_s([server], TOP.format(db="fleet", table="totals"))), flush=True)
        whole_stacks(server, bytes_of(server, "samples_local") / sent)
        return top
    finally:
        server.stop()


def whole_stacks(server, ours):
    """Each row has the names, files and lines of its stack, as where no id stands for it."""
    function = "arrayMap(it -> concat('Model', toString(it %% 97), '.layer_', toString(it %% %d)), functions)" % N_FUNCTIONS
    server.query("CREATE TABLE fleet.whole (time DateTime, rank Int32, weight UInt64, address Array(UInt64), name Array(String), file Array(String),"
                 " line Array(UInt32)) ENGINE = MergeTree PARTITION BY toDate(time) ORDER BY time SETTINGS index_granularity = 8192")
    server.query("INSERT INTO fleet.whole SELECT toDateTime(time) AS time, rank, weight, functions AS address, %s AS name,"
                 " arrayMap(it -> concat('/srv/job/model_', toString(it %% 97), '.py'), functions) AS file,"
                 " arrayMap(it -> toUInt32(it %% 500), functions) AS line FROM (SELECT * FROM fleet.samples LIMIT %d) AS a"
                 " ANY LEFT JOIN (SELECT stack, functions FROM fleet.stacks) AS b USING stack" % (function, WHOLE_ROWS), timeout=600)
    settle(server)
    whole = bytes_of(server, "whole") / server.number("SELECT count() FROM fleet.whole")
    print("  whole stacks in each row: %.0f B a sample, %.0f times as many" % (whole, whole / ours), flush=True)


def two_servers(kind, job, options, _, half, whole):
    """@half, whole: CPU seconds of one server for the query of so many of the hosts."""
    servers = [kind(), kind()]
    shard = "<shard><replica><host>127.0.0.1</host><port>%d</port><user>admin</user><password>%s</password></replica></shard>"
    both = "<both>%s</both></remote_servers>" % "".join(shard % (server.tcp, clickhouse.PASSWORD) for server in servers)
    try:
        for server in servers:
            path = server.folder / "config.xml"
            path.write_text(path.read_text().replace("</remote_servers>", both))
            server.start()
        init(servers, "--cluster", "both")
        for server in servers:
            job.send_names(server)
        for minute in range(options.minutes):
            for host in range(options.hosts):
                send_minute(servers[host % 2], job, host, minute)
        for server in servers:
            settle(server)
        two = query_cpu_s(servers, TOP.format(db="fleet", table="samples"))
        print("  two shards: top functions %.3f CPU s raw; for each sample %.2f times as many as one shard with as many samples as each, "
              "%.2f times as one with all" % (two, two / half / 2, two / whole), flush=True)
    finally:
        for server in servers:
            server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--minutes", type=int, default=2)
    parser.add_argument("--version", choices=("old", "new"), help="of the server (default: both)")
    options = parser.parse_args()
    job = Job()
    for kind, name in ((clickhouse.Old, "old"), (clickhouse.New, "new")):
        if options.version not in (None, name):
            continue
        if kind.missing():
            print("%s: %s" % (kind.name, kind.missing()))
            continue
        print("%s, %d ranks of %d threads at %d Hz, %d minutes" % (kind.name, options.hosts * RANKS, THREADS, HZ, options.minutes), flush=True)
        two_servers(kind, job, options, *one_server(kind, job, options))


if __name__ == "__main__":
    main()
