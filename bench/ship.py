#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What shipping to ClickHouse costs, and whether samples survive faults.

Usage: bench/ship.py cost [--seconds N] [--rounds N]
                                               bytes and CPU time of a sample; rows per CPU second of the server
       bench/ship.py faults [--faults N]      failing networks, servers, shippers, recorders, disks and clocks,
                                               until N; exact or not

Servers: Debian's clickhouse-server 18.16, and 26.7 from the npm package chdb (tests/e2e/clickhouse.py). One that is missing is
named. Times are CPU time by the kernel, so that a busy machine changes little.
"""
import argparse
import os
import pathlib
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import clickhouse  # noqa: E402
import fault_proxy  # noqa: E402
import fleet_attack  # noqa: E402

BINARY = os.environ.get("PROBING_BINARY") or str(ROOT / "build/src/cli/probing")
SERVERS = (clickhouse.Old, clickhouse.New)
LOAD = """
import hashlib, json, sys, threading, time
end = time.time() + float(sys.argv[1])
def work(n):
    while time.time() < end:
        sum(i * i for i in range(300)); json.dumps({str(i): i for i in range(200)}); hashlib.sha256(b"x" * 10000).digest()
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def run(*arguments, **more):
    return subprocess.run([BINARY, *map(str, arguments)], check=True, capture_output=True, text=True,
                          env=dict(os.environ, PROBING_FLEET_PASSWORD=clickhouse.PASSWORD), **more)


def record(path, seconds, rate=1500):
    run("record", "-o", path, "--rate", rate, "--", "/usr/bin/python3", "-c", LOAD, seconds)


def samples_of(path):
    with sqlite3.connect(path) as db:
        return db.execute("SELECT sum(samples), sum(weight) FROM sample_block").fetchone()


def cpu_s(pid):
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost(options):
    for kind in SERVERS:
        if kind.missing():
            print("%s: %s" % (kind.name, kind.missing()))
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "load.db"
            record(path, options.seconds, 5000)
            server = kind().start()
            proxy = fault_proxy.Proxy(server.http)
            try:
                measure(server, proxy, path, folder, options.rounds)
            finally:
                proxy.close()
                server.stop()


def children_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ship(server, port, path, folder, database):
    """CPU seconds of the shipper, of its start and of the server; the database is new."""
    to = ["--to", server.url(database, port=port), "--state", os.path.join(folder, database)]
    run("ship", "--init", "--keep-days", 0, "--keep-totals-days", 0, *to)
    before, server_before = children_s(), cpu_s(server.process.pid)
    run("ship", path, *to)
    after, server_after = children_s(), cpu_s(server.process.pid)
    run("ship", path, *to)  # nothing is left to send
    start = children_s() - after
    return after - before - start, start, server_after - server_before


def spread(values, scale, digits):
    values = sorted(value * scale for value in values)
    return "%.*f (%.*f to %.*f)" % (digits, statistics.median(values), digits, values[0], digits, values[-1])


def measure(server, proxy, path, folder, rounds):
    n = samples_of(path)[0]
    ship(server, proxy.address, path, folder, "probing")
    sizes = proxy.sizes
    own, start, theirs = zip(*(ship(server, None, path, folder, "round%d" % i) for i in range(rounds)))  # the proxy is slow
    theirs = statistics.median(theirs)
    print("%s, %d samples: %.2f B a sample on the wire, and %.2f B of totals, %.2f of stacks and functions"
          % (server.name, n, sizes["samples"] / n, sizes["totals"] / n, (sizes["stacks"] + sizes["functions"]) / n))
    print("  shipper: %s us CPU a sample, and %s ms for its start; server: %.2f million samples per CPU second"
          % (spread(own, 1e6 / n, 2), spread(start, 1e3, 0), n / theirs / 1e6 if theirs else float("inf")))
    for table in ("samples", "totals"):
        query = ("SELECT sum(%s) FROM system.parts WHERE active AND database = 'probing' AND table = '%s_local'"
                 % ("bytes_on_disk" if server.name.endswith("26.7") else "bytes", table))
        print("  disk: %s %.2f B a sample" % (table, server.number(query) / n))


def faults(options):
    for kind in SERVERS:
        if kind.missing():
            print("%s: %s" % (kind.name, kind.missing()))
            continue
        with tempfile.TemporaryDirectory() as folder:
            server = kind().start()
            try:
                counts, rounds = fleet_attack.attack_until(BINARY, server, folder, options.faults, samples_of)
            finally:
                server.stop()
            print("%s: %d rounds exact; %d faults: %s" % (kind.name, rounds, sum(counts.values()), dict(counts)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("cost")
    one.add_argument("--seconds", type=float, default=60, help="of the recording, at 5000 Hz")
    one.add_argument("--rounds", type=int, default=7, help="each to a new database; medians are printed")
    one.set_defaults(run=cost)
    two = verbs.add_parser("faults")
    two.add_argument("--faults", type=int, default=500)
    two.set_defaults(run=faults)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
