# SPDX-License-Identifier: MIT
"""A fleet on two real servers, each a shard of one cluster: tables, shipping, reading, and a server that is away."""
import hashlib
import os
import shutil
import sqlite3
import struct
import subprocess
import unittest

import clickhouse
import probing_test as t
from probing_test import probing

TOGETHER = True  # one recording for all

LOAD = """
import json, sys, time
end = time.process_time() + float(sys.argv[1])
def pack():
    json.dumps({str(i): i for i in range(200)})
def work():
    while time.process_time() < end:
        pack(); sum(i * i for i in range(300))
work()
"""
N_RANKS = 4


@t.shared
def recording(folder):
    path = os.path.join(folder, "load.db")
    probing("record", "-o", path, "--rate", 999, "--", t.DEBIAN_PYTHON, "-c", LOAD, 1, check=t.OK)
    return path


def run_of(path):
    """The number of a recording, as docs/fleet.md has it: of what no two recordings share."""
    with t.connect(path) as db:
        host, command, started = db.execute("SELECT host, command, started FROM run").fetchone()
    text = host.encode() + b"\0" + command.encode() + b"\0" + struct.pack("<d", started)
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def samples_of(path):
    with t.connect(path) as db:
        return db.execute("SELECT sum(samples) FROM sample_block").fetchone()[0]


def recorded():
    return samples_of(recording())


def cluster_of(servers):
    shard = "<shard><replica><host>127.0.0.1</host><port>%d</port><user>admin</user><password>%s</password></replica></shard>"
    return "".join(shard % (server.tcp, clickhouse.PASSWORD) for server in servers)


class Shards:
    """For each version of the servers. 18.16 and 26.7 do not understand each other: shards are of one version."""
    NIGHTLY_FOR_USERS = True  # servers do not ask who ships and reads
    KIND = None

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        if cls.KIND.missing():
            raise unittest.SkipTest(cls.KIND.missing())
        if "without libcurl" in probing("ship", "x", "--to", "http://127.0.0.1/x").stderr:
            raise unittest.SkipTest("built without libcurl")
        cls.servers = [cls.KIND(), cls.KIND()]
        for server in cls.servers:
            cls.addClassCleanup(server.stop)
        for server in cls.servers:
            path = server.folder / "config.xml"
            path.write_text(path.read_text().replace("</remote_servers>", "<both>%s</both></remote_servers>" % cluster_of(cls.servers)))
        for server in cls.servers:
            server.start()

    def setUp(self):
        super().setUp()
        os.environ["PROBING_FLEET_PASSWORD"] = clickhouse.PASSWORD
        self.addCleanup(os.environ.pop, "PROBING_FLEET_PASSWORD", None)
        self.database = "p" + self._testMethodName[len("test"):]
        self.to = [word for server in self.servers for word in ("--to", server.url(self.database))] + ["--state", "state"]
        probing("ship", "--init", "--cluster", "both", *self.to, check=t.OK)
        self.files = self.make_ranks()

    def make_ranks(self):
        """Recordings of four ranks, two for each shard: the number of a run selects it."""
        files = [[], []]
        for n in range(200):
            if min(map(len, files)) == N_RANKS // 2:
                break
            name = "rank%d.db" % sum(map(len, files))
            shutil.copy(recording(), name)
            with sqlite3.connect(name) as db:
                db.execute("UPDATE run SET command = command || ?", (" --rank %d" % n,))
            db.close()
            if len(files[run_of(name) % 2]) < N_RANKS // 2:
                files[run_of(name) % 2].append(name)
        return files

    def ship(self, *more, check=t.OK):
        for rank, name in enumerate(sorted(self.files[0] + self.files[1])):
            probing("ship", name, "--job", "train", "--rank", rank, *self.to, *more, check=check)

    def address(self, shard=0):
        return "clickhouse://admin@127.0.0.1:%d/%s?job=train" % (self.servers[shard].http, self.database)

    @staticmethod
    def folded(recording, *options, check=t.OK):
        return probing("export", recording, "--to", "folded", "-o", "-", *options, check=check)

    def merged(self, files, *options):
        probing("merge", *files, "-o", "merged.db", check=t.OK)
        picture = self.folded("merged.db", *options).stdout
        os.unlink("merged.db")
        return picture

    def number(self, shard, sql):
        return self.servers[shard].number(sql.replace("DB", self.database))

    def test_each_shard_has_its_runs_and_shows_all(self):
        self.ship()
        n = samples_of(recording())
        for shard in (0, 1):
            runs = {run_of(name) for name in self.files[shard]}
            found = self.servers[shard].query("SELECT DISTINCT run FROM %s.samples_local" % self.database)
            self.assertEqual(runs, {int(run) for run, in found})
            self.assertEqual(2 * n, self.number(shard, "SELECT count() FROM DB.samples_local"))
            self.assertEqual(4 * n, self.number(shard, "SELECT count() FROM DB.samples"))
            self.assertEqual(4 * n, self.number(shard, "SELECT sum(samples) FROM DB.totals"))
        everything = sorted(self.files[0] + self.files[1])
        said = probing("ship", *everything, "--verify", *self.to, check=t.OK).stdout
        self.assertEqual(4, said.count(" 0 lost, 0 doubled; 0 not sent yet\n"))
        again = probing("ship", *everything, *self.to, check=t.OK).stderr  # a run stays where it began
        self.assertIn("0 samples sent", again)
        for options in (("--merge-processes",), ("--merge-processes", "--where", "weight >= 1")):  # by totals, by samples
            picture = self.merged(everything, *options)
            for shard in (0, 1):
                self.assertEqual(picture, self.folded(self.address(shard), *options).stdout, options)
        report = probing("cluster", "report", self.address(), check=t.OK).stdout
        self.assertIn(": 4 ranks, %d samples\n" % (4 * n), report)
        self.assertIn("No rank differs", report)

    def test_a_missing_server_is_an_error(self):
        """Of two servers one is killed: reading says so, shipping waits, and all is there when it has returned."""
        self.ship()
        everything = sorted(self.files[0] + self.files[1])
        whole = self.merged(everything, "--merge-processes")
        self.servers[1].kill()
        try:
            for words in (("report", self.address()), ("export", self.address(), "--to", "folded", "-o", "-"),
                          ("cluster", "report", self.address())):
                self.assertIn("--partial", probing(*words, check=t.NO_INPUT).stderr)
            done = self.folded(self.address(), "--partial", "--merge-processes")
            self.assertEqual(self.merged(self.files[0], "--merge-processes"), done.stdout)
            self.assertIn("1 of 2 shards", done.stderr)
            self.assertIn("127.0.0.1:%d" % self.servers[1].tcp, done.stderr)
            self.assertEqual(self.folded(self.address() + "&partial", "--merge-processes").stdout, done.stdout)
            report = probing("cluster", "report", self.address(), "--partial", check=t.OK)
            self.assertIn(": 2 ranks, ", report.stdout)
            self.assertIn("1 of 2 shards", report.stderr)
            shutil.copy(self.files[1][0], "late.db")
            with sqlite3.connect("late.db") as db:
                db.execute("UPDATE run SET started = started + 2")
            db.close()
            n = 0
            while run_of("late.db") % 2 == 0:
                n += 1
                with sqlite3.connect("late.db") as db:
                    db.execute("UPDATE run SET command = ?", ("late %d" % n,))
                db.close()
            with open("said", "w+") as said:
                shipper = subprocess.Popen([t.BINARY, "ship", "late.db", "--job", "late", *self.to], stderr=said)
                try:
                    t.wait_until(lambda: "samples wait in the recording" in open("said").read(), 60, "the shipper's sentence")
                    self.assertIsNone(shipper.poll())
                    self.servers[1].start()
                    self.assertEqual(0, shipper.wait(180))
                finally:
                    shipper.kill()
                    shipper.wait()
        finally:
            if self.servers[1].process.poll() is not None:
                self.servers[1].start()
        self.assertEqual(whole, self.folded(self.address(), "--merge-processes").stdout)
        self.assertIn(" 0 lost, 0 doubled; 0 not sent yet", probing("ship", "late.db", "--verify", *self.to, check=t.OK).stdout)


class Replicas(t.Case):
    """One shard on two servers, by ZooKeeper. 26.7 in chdb is a clickhouse-local, which has no port for other replicas."""
    light = True
    NIGHTLY_FOR_USERS = True  # servers do not ask who ships and reads

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        for kind in (clickhouse.Old, clickhouse.ZooKeeper):
            if kind.missing():
                raise unittest.SkipTest(kind.missing())
        if "without libcurl" in probing("ship", "x", "--to", "http://127.0.0.1/x").stderr:
            raise unittest.SkipTest("built without libcurl")
        keeper = clickhouse.ZooKeeper()
        cls.addClassCleanup(keeper.stop)
        cls.servers = [clickhouse.Old(), clickhouse.Old()]
        shard = cluster_of(cls.servers).replace("</shard><shard>", "")
        for n, server in enumerate(cls.servers):
            cls.addClassCleanup(server.stop)
            path = server.folder / "config.xml"
            path.write_text(path.read_text().replace("</remote_servers>", (
                "<one>%s</one></remote_servers><interserver_http_port>%d</interserver_http_port>"
                "<interserver_http_host>127.0.0.1</interserver_http_host><zookeeper><node><host>127.0.0.1</host><port>%d</port></node>"
                "</zookeeper><macros><shard>1</shard><replica>replica%d</replica></macros>") % (
                    shard.replace("<shard>", "<shard><internal_replication>true</internal_replication>"), clickhouse.free_port(), keeper.port, n)))
            server.start()

    def setUp(self):
        super().setUp()
        os.environ["PROBING_FLEET_PASSWORD"] = clickhouse.PASSWORD
        self.addCleanup(os.environ.pop, "PROBING_FLEET_PASSWORD", None)

    def ship(self, name, server, *more):
        return probing("ship", name, "--job", "train", "--to", server.url("twice"), "--state", "state", *more, check=t.OK)

    def await_rows(self, n):
        for server in self.servers:
            t.wait_until(lambda one=server: one.number("SELECT count() FROM twice.samples_local") == n
                         and one.number("SELECT sum(samples) FROM twice.totals_local") == n
                         and one.number("SELECT count() FROM twice.shipments_local") * recorded() == n, 180, "%d rows in each replica" % n)

    def test_each_replica_has_all(self):
        """Also of a recording that was sent while one was away; and a shipment that the other replica has is not sent again."""
        first, second = self.servers
        to = [word for server in self.servers for word in ("--to", server.url("twice"))]
        probing("ship", "--init", "--replicated", "--cluster", "one", *to, check=t.OK)
        probing("ship", "--init", "--replicated", "--cluster", "one", *to, check=t.OK)  # an upgrade
        shutil.copy(recording(), "a.db")
        n = recorded()
        self.assertIn("%d samples sent in 1 shipments" % n, self.ship("a.db", first).stderr)
        self.await_rows(n)
        self.assertIn("0 samples sent in 0 shipments", self.ship("a.db", second).stderr)
        first.kill()
        try:
            shutil.copy(recording(), "b.db")
            with sqlite3.connect("b.db") as db:
                db.execute("UPDATE run SET started = started + 2")
            db.close()
            self.assertIn("%d samples sent in 1 shipments" % n, self.ship("b.db", second).stderr)
        finally:
            first.start()
        self.await_rows(2 * n)
        probing("merge", "a.db", "b.db", "-o", "merged.db", check=t.OK)
        folded = ("--to", "folded", "-o", "-", "--merge-processes")
        merged = probing("export", "merged.db", *folded, check=t.OK).stdout
        self.assertIn("0 samples sent in 0 shipments", self.ship("b.db", first).stderr)
        for server in self.servers:
            for name in "a.db", "b.db":
                self.assertIn(" 0 lost, 0 doubled; 0 not sent yet", self.ship(name, server, "--verify").stdout)
            there = probing("export", "clickhouse://admin@127.0.0.1:%d/twice?job=train" % server.http, *folded, check=t.OK).stdout
            self.assertEqual(merged, there)


class Old(Shards, t.Case):
    KIND = clickhouse.Old


class New(Shards, t.Case):
    KIND = clickhouse.New


if __name__ == "__main__":
    unittest.main()
