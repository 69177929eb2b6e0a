# SPDX-License-Identifier: MIT
"""A recording is shipped while everything fails that can: the network, servers, shippers, the recorder, disks and clocks.

The tables of samples and totals are plain MergeTree, in which rows that arrive twice stay two.
"""
import collections
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

import clickhouse
import fault_proxy

PYTHON = "/usr/bin/python3"
LOAD = """
import hashlib, json, threading, time
def work():
    while True:
        sum(i * i for i in range(300)); json.dumps({str(i): i for i in range(200)}); hashlib.sha256(b"x" * 10000).digest()
threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
[thread.start() for thread in threads]
time.sleep(600)
"""
FULL_DISK = 74, "cannot be written"  # status and words of a shipper whose plan does not fit


def plain_tables(run, server, database, to):
    """Create the tables as plain MergeTree. run: runs probing and returns its output."""
    settings = {} if isinstance(server, clickhouse.Old) else {"allow_suspicious_low_cardinality_types": 1}
    for statement in run("ship", "--init", "--print", "--keep-days", 0, "--keep-totals-days", 0, *to).split(";\n"):
        if re.search("(samples|totals)_local", statement.split("(")[0]):
            statement = statement.replace("ReplacingMergeTree()", "MergeTree()")
        if statement.strip():
            server.query(statement, **settings)


def fill_the_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


class Attack:
    """One recording, from its beginning to its arrival. run() returns the numbers of faults by kind."""

    def __init__(self, binary, server, folder, seed):
        self.binary, self.server, self.folder = binary, server, folder
        self.database, self.path = "attack%d" % seed, os.path.join(folder, "attack%d.db" % seed)
        self.chance = random.Random(seed)
        self.proxy = fault_proxy.Proxy(server.http, share=0.4, seed=seed)
        self.to = ["--to", server.url(self.database, port=self.proxy.address), "--state", os.path.join(folder, "state%d" % seed)]
        self.counts = collections.Counter()
        self.environment = dict(os.environ, PROBING_FLEET_PASSWORD=clickhouse.PASSWORD, FAKETIME_DONT_FAKE_MONOTONIC="1")

    def probing(self, *arguments):
        return subprocess.run([self.binary, *map(str, arguments)], env=self.environment, check=True, capture_output=True,
                              text=True).stdout

    def start_recorder(self):
        recorder = subprocess.Popen([self.binary, "record", "-q", "-o", self.path, "--rate", "500", "--", PYTHON, "-c", LOAD],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    start_new_session=True)
        return recorder

    def start_shipper(self):
        """One in four has another time, one in eight a full disk."""
        clock, more = [], {}
        kind = self.chance.randrange(8)
        if kind < 2 and shutil.which("faketime"):
            clock = ["faketime", "-f", self.chance.choice(("-30h", "+30h"))]
            self.counts["clock jumped"] += 1
        elif kind == 2:
            more = {"preexec_fn": fill_the_disk, "restore_signals": False}  # SIGXFSZ stays ignored: the write fails
        words = clock + [self.binary, "ship", self.path, "-q", "--rows", "200", "--every", "0.2s", *self.to]
        return subprocess.Popen(words, env=self.environment, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                **more), kind == 2

    def strike(self):
        """One of what happens to a server."""
        if self.chance.random() < 0.5:
            self.server.kill()
            self.server.start()
            self.counts["server killed"] += 1
        else:
            os.kill(self.server.process.pid, signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(self.server.process.pid, signal.SIGCONT)
            self.counts["server stopped"] += 1

    def ship_once(self, is_last):
        """Returns whether the shipper has ended by itself."""
        shipper, has_full_disk = self.start_shipper()
        try:
            _, said = shipper.communicate(timeout=600 if is_last else self.chance.uniform(0.5, 2))
            if shipper.returncode == 0:
                return True
            if has_full_disk and shipper.returncode == FULL_DISK[0] and FULL_DISK[1] in said:
                self.counts["disk full"] += 1
                return False
            raise AssertionError("ship ended with %d: %s" % (shipper.returncode, said))
        except subprocess.TimeoutExpired:
            self.strike()
            os.killpg(shipper.pid, signal.SIGKILL)
            self.counts["shipper killed"] += 1
            return False
        finally:
            if shipper.poll() is None:
                os.killpg(shipper.pid, signal.SIGKILL)
            shipper.wait()
            shipper.stderr.close()

    def run(self, samples_of, n_kills=6):
        plain_tables(self.probing, self.server, self.database, self.to)
        recorder = self.start_recorder()
        try:
            while not (os.path.exists(self.path) and self.is_begun()) and recorder.poll() is None:
                time.sleep(0.05)
            is_done = False
            while not is_done:
                if sum(self.counts[kind] for kind in ("shipper killed", "disk full")) >= n_kills // 2 and recorder.poll() is None:
                    os.killpg(recorder.pid, signal.SIGKILL)
                    recorder.wait()
                    self.counts["recorder killed"] += 1
                is_done = self.ship_once(sum(self.counts[kind] for kind in ("shipper killed", "disk full")) >= n_kills)
        finally:
            if recorder.poll() is None:
                os.killpg(recorder.pid, signal.SIGKILL)
                recorder.wait()
            self.proxy.close()
        self.check(samples_of(self.path))
        return self.counts + self.proxy.faults

    def is_begun(self):
        done = subprocess.run([self.binary, "sql", self.path, "SELECT count(*) FROM sample_block"], capture_output=True, text=True,
                              check=False)
        return done.returncode == 0 and int(done.stdout.split()[-1]) > 0

    def check(self, wanted):
        found = [tuple(map(int, self.server.query(sql % self.database)[0])) for sql in (
            "SELECT count(), sum(weight) FROM %s.samples", "SELECT sum(samples), sum(weight) FROM %s.totals")]
        if found != [wanted, wanted]:
            raise AssertionError("%s: %s there, %s here; faults: %s" % (self.server.name, found, wanted,
                                                                       dict(self.counts + self.proxy.faults)))


def attack_until(binary, server, folder, n_faults, samples_of):
    """Rounds until so many faults; each is exact, or an AssertionError. Returns the faults by kind, and the rounds."""
    counts, rounds = collections.Counter(), 0
    while sum(counts.values()) < n_faults:
        rounds += 1
        counts += Attack(binary, server, folder, rounds).run(samples_of)
    return counts, rounds
