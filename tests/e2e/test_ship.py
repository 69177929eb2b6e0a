# SPDX-License-Identifier: MIT
"""probing ship against real servers: ClickHouse 18.16 and 26.7, on loopback, with faults on the way."""
import collections
import contextlib
import glob
import http.server
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

import clickhouse
import fault_proxy
import fleet_attack
import probing_test as t
from probing_test import probing

TOGETHER = True  # one recording for all

# Text of the target that would end a statement, were it ever a part of one.
HOSTILE = "x'); DROP TABLE samples_local; --\\"
JOB = "job '\\ \" of the test"

# For so many seconds of CPU time, or until there is a file "enough": a busy machine makes neither fewer samples nor an earlier end.
LOAD = """
import hashlib, json, os, sys, threading, time
end = time.process_time() + float(sys.argv[1])
def leaf(n):
    return sum(i * i for i in range(n))
leaf.__code__ = leaf.__code__.replace(co_name=sys.argv[2], **({"co_qualname": sys.argv[2]} if sys.version_info >= (3, 11) else {}))
def work():
    while time.process_time() < end and not os.path.exists("enough"):
        leaf(300); json.dumps({str(i): i for i in range(200)}); hashlib.sha256(b"x" * 10000).digest()
threads = [threading.Thread(target=work, name=sys.argv[2]) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@t.shared
def recording(folder):
    path = os.path.join(folder, "load.db")
    probing("record", "-o", path, "--rate", 1500, "--", t.DEBIAN_PYTHON, "-c", LOAD, 2.5, HOSTILE, check=t.OK)
    return path


def samples_of(path):
    """Number and weight of all samples in it."""
    with t.connect(path) as db:
        return db.execute("SELECT sum(samples), sum(weight) FROM sample_block").fetchone()


class ShipCase(t.Case):
    """Tests on one server, which starts once; each has a database of its own."""
    light = True
    NIGHTLY_FOR_USERS = True  # it sends what is in a file of whoever sends it
    kind = None

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        if cls.kind is None:
            raise unittest.SkipTest("the cases of each version inherit from it")
        if cls.kind.missing():
            raise unittest.SkipTest(cls.kind.missing())
        if "without libcurl" in probing("ship", "x", "--to", "http://127.0.0.1/x").stderr:
            raise unittest.SkipTest("built without libcurl")
        cls.server = cls.kind(**cls.more())
        cls.addClassCleanup(cls.server.stop)
        cls.server.start()

    @classmethod
    def more(cls):
        return {}

    def setUp(self):
        super().setUp()
        self.database = "p" + self._testMethodName[len("test"):][:40]
        self.addCleanup(os.environ.pop, "PROBING_FLEET_PASSWORD", None)
        os.environ["PROBING_FLEET_PASSWORD"] = clickhouse.PASSWORD
        shutil.copy(recording(), "load.db")

    def to(self, port=None, user="admin"):
        return ["--to", self.server.url(self.database, user, port), "--state", "state"]

    def ship(self, *arguments, port=None, user="admin", check=t.OK, **more):
        return probing("ship", *arguments, *self.to(port, user), check=check, **more)

    def init(self, *arguments):
        return self.ship("--init", *arguments)

    def init_plain(self):
        """The tables of samples and totals as plain MergeTree, in which rows that arrive twice stay two."""
        fleet_attack.plain_tables(lambda *words: probing(*words, check=t.OK).stdout, self.server, self.database, self.to())

    def number(self, sql):
        return self.server.number(sql.replace("DB", self.database))

    def arrived(self):
        """Number and weight of samples there, by themselves and by totals."""
        return [tuple(map(int, self.server.query(sql.replace("DB", self.database))[0])) for sql in (
            "SELECT count(), sum(weight) FROM DB.samples", "SELECT sum(samples), sum(weight) FROM DB.totals")]

    def assertExact(self, port=None):
        self.assertEqual([samples_of("load.db")] * 2, self.arrived())
        found = self.ship("load.db", "--verify", port=port).stdout
        self.assertRegex(found, r" 0 lost, 0 doubled; 0 not sent yet\n$")


class Cases:
    """What holds on both versions."""

    def test_all_arrives_once(self):
        self.init()
        done = self.ship("load.db", "--job", JOB)
        self.assertRegex(done.stderr, "samples sent in 1 shipments")
        self.assertExact()
        self.assertRegex(self.ship("load.db").stderr, "0 samples sent")  # another time changes nothing
        self.assertExact()
        self.assertEqual([[JOB.replace("\\", "\\\\").replace("'", "\\'")]],
                         self.server.query("SELECT DISTINCT job FROM %s.samples" % self.database))
        self.assertEqual(0, self.number("SELECT count() FROM (SELECT stack, uniqExact(hash) AS n FROM DB.stacks GROUP BY stack) WHERE n > 1"))
        status = self.ship("load.db", "--status").stdout.splitlines()[1].split()
        self.assertEqual([str(samples_of("load.db")[0])] * 2, status[1:3])

    def test_stacks_are_those_of_the_recording(self):
        """Samples of each leaf function, and of each function anywhere: by us in SQLite, by the server in its tables."""
        self.init()
        self.ship("load.db")
        here = collections.Counter()
        with t.connect("load.db") as db:
            for name, n in db.execute("SELECT name, sum(samples) FROM stack_total JOIN stack USING(stack) "
                                      "JOIN named_frame USING(frame) GROUP BY name"):
                here[name] += n
            every = {name for name, in db.execute("SELECT DISTINCT name FROM function JOIN frame USING(function)")}
        self.assertIn(HOSTILE, " ".join(every))
        there = self.server.query("SELECT DISTINCT name FROM %s.functions WHERE NOT match(name, '^\\\\[|\\\\+0x')" % self.database)
        self.assertLessEqual({self.unquote(name) for name, in there}, every)
        self.assertEqual(1, self.number("SELECT uniqExact(name) FROM DB.functions WHERE position(name, 'DROP TABLE') > 0"))
        there = {self.unquote(name): int(n) for name, n in self.server.query("""
            SELECT name, sum(samples) FROM (
              SELECT name, stack FROM (SELECT DISTINCT stack, functions[length(functions)] AS function FROM DB.stacks) AS a
              ANY LEFT JOIN (SELECT function, name FROM DB.functions) AS b USING function) AS c
            ANY LEFT JOIN (SELECT stack, sum(samples) AS samples FROM DB.totals GROUP BY stack) AS d USING stack
            GROUP BY name""".replace("DB", self.database))}
        self.assertEqual(dict(here), there)
        names = self.server.query("SELECT DISTINCT name FROM %s.threads" % self.database)
        self.assertIn(HOSTILE[:15], self.unquote(" ".join(map(" ".join, names))))

    @staticmethod
    def unquote(text):
        return text.replace("\\'", "'").replace("\\\\", "\\")

    def test_faults_on_the_way(self):
        """Cut bodies, lost answers, dying servers and shippers: no sample is lost, and none is there twice."""
        self.init_plain()
        proxy = fault_proxy.Proxy(self.server.http, share=0.4)
        self.addCleanup(proxy.close)
        chance = random.Random(7)
        for turn in range(7):
            process = subprocess.Popen([t.BINARY, "ship", "load.db", "-q", "--rows", "80", *self.to(proxy.address)],
                                       stderr=subprocess.PIPE, text=True)
            try:
                _, said = process.communicate(timeout=chance.uniform(0.5, 3.5) if turn < 6 else 300)
                break
            except subprocess.TimeoutExpired:
                if turn % 2:
                    self.server.kill()
                    self.server.start()
            finally:
                process.kill()
                process.communicate()
        self.assertEqual((0, ""), (process.returncode, said))
        self.assertGreater(sum(proxy.faults.values()), 15, proxy.faults)
        self.assertGreater(len(proxy.faults), 3, proxy.faults)
        self.assertExact(proxy.address)
        self.control(proxy)

    @unittest.skipUnless(os.environ.get("PROBING_NIGHTLY"), "500 faults take minutes: PROBING_NIGHTLY=1")
    def test_five_hundred_faults(self):
        """Of the network, servers, shippers, recorders, disks and clocks: what the recorder wrote is there, once."""
        counts, rounds = fleet_attack.attack_until(t.BINARY, self.server, os.getcwd(), 500, samples_of)
        self.assertGreaterEqual(sum(counts.values()), 500)
        print("%s: %d rounds exact; %d faults: %s" % (self.server.name, rounds, sum(counts.values()), dict(counts)))

    def test_a_recording_over_midnight(self):
        """Samples of two days (UTC) in one range: a shipment, a partition and totals of each; and both are one picture."""
        t.need_program("faketime")
        midnight = int(time.time()) // 86400 * 86400
        os.environ["FAKETIME_DONT_FAKE_MONOTONIC"] = "1"
        self.addCleanup(os.environ.pop, "FAKETIME_DONT_FAKE_MONOTONIC")
        for name, started in (("before.db", midnight - 900), ("after.db", midnight + 60)):
            done = subprocess.run(["faketime", "-f", time.strftime("@%Y-%m-%d %H:%M:%S", time.localtime(started)), t.BINARY, "record",
                                   "-o", name, "--rate", "500", "--", t.DEBIAN_PYTHON, "-c", LOAD, "1", "leaf"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual(0, done.returncode, done.stderr)
        os.unlink("load.db")
        probing("merge", "before.db", "after.db", "-o", "load.db", check=t.OK)
        self.init("--keep-days", 0)
        self.assertIn("samples sent in 2 shipments", self.ship("load.db", "--job", "night").stderr)
        self.assertExact()
        days = [time.strftime("%Y-%m-%d", time.gmtime(midnight + offset)) for offset in (-1, 0)]
        parts = [samples_of(name) for name in ("before.db", "after.db")]
        for sql in ("SELECT toDate(time), count(), sum(weight) FROM DB.samples GROUP BY toDate(time) ORDER BY toDate(time)",
                    "SELECT toDate(minute), sum(samples), sum(weight) FROM DB.totals GROUP BY toDate(minute) ORDER BY toDate(minute)",
                    "SELECT day, sum(samples), sum(weight) FROM DB.shipments GROUP BY day ORDER BY day"):
            self.assertEqual([[day, *map(str, part)] for day, part in zip(days, parts)],
                             self.server.query(sql.replace("DB", self.database)))
        for table in ("samples", "totals"):
            self.assertEqual(2, self.number("SELECT uniqExact(partition) FROM system.parts WHERE active AND database = 'DB'"
                                            " AND table = '%s_local'" % table))
        address = "clickhouse://admin@127.0.0.1:%d/%s" % (self.server.http, self.database)
        # A day by its own recording: of the merged one, a name may have its file because of a function of the other day.
        for name, options in (("load.db", ()), ("before.db", ("--until", midnight)), ("after.db", ("--since", midnight)),
                              ("after.db", ("--merge-processes", "--since", midnight))):
            here, there = (probing("export", where, "--to", "folded", "-o", "-", *options, check=t.OK).stdout
                           for where in (name, address))
            self.assertEqual(here, there, options)

    def control(self, proxy):
        """The same body sent once more, as one without a check would: the rows are there twice, and --verify says so."""
        path, body = next((path, body) for path, body in proxy.inserts if "samples_local" in path)
        path = re.sub("&(insert_deduplication_token|query_id)=[^&]*", "", path)
        before = self.arrived()[0][0]
        self.server.post(path, body)
        self.assertGreater(self.arrived()[0][0], before)
        done = self.ship("load.db", "--verify", port=proxy.address, check=t.BAD_DATA)
        self.assertRegex(done.stdout, r"shipment \d+: \d+ samples there, \d+ here\n")
        self.assertRegex(done.stdout, r" 0 lost, [1-9]\d* doubled")

    def test_a_lost_plan_is_read_from_the_server(self):
        self.init()
        self.ship("load.db", "--rows", 500, "--job", JOB)
        shutil.rmtree("state")  # and the job with it
        self.assertRegex(self.ship("load.db").stderr, "0 samples sent")
        self.assertExact()

    def test_looking_names_no_job(self):
        self.init()
        self.ship("load.db", "--status")
        self.ship("load.db", "--job", "mine")
        self.assertEqual([["mine"]], self.server.query("SELECT DISTINCT job FROM %s.samples" % self.database))
        for action in ("--status", "--verify"):
            done = probing("ship", "load.db", action, "--to", self.server.url(self.database), "--state", "/proc/none", check=None)
            self.assertSentence(done.stderr, "plan of shipments cannot be opened")

    def test_totals_without_their_plan_are_not_doubled(self):
        """A shipper that was killed after the totals, and whose plan is lost."""
        self.init()
        self.ship("load.db", "--raw", "no", "-q")
        shutil.rmtree("state")
        self.server.query("DROP TABLE %s.shipments_local" % self.database)
        self.init()
        self.assertSentence(self.ship("load.db", "--raw", "no", check=t.BAD_DATA).stderr, "whose plan is lost")
        self.assertEqual(samples_of("load.db"), self.arrived()[1])

    def test_days_are_of_utc(self):
        """The server's are not: a block would fall apart at its midnight, and could arrive in half."""
        self.init()
        self.ship("load.db", "-q")
        for table, time_of in (("samples", "time"), ("totals", "minute")):
            self.assertEqual([["1"]], self.server.query("SELECT min(toString(%s) = toString(%s, 'UTC')) FROM %s.%s" % (
                time_of, time_of, self.database, table)))
        self.assertEqual(0, self.number("SELECT count() FROM system.columns WHERE database = 'DB' AND table LIKE '%_local'"
                                        " AND type LIKE 'DateTime%' AND type NOT LIKE '%UTC%'"))

    def test_what_was_dropped_before_it_was_sent_is_counted(self):
        """As --max-size leaves it: the numbers of its samples begin later."""
        self.init()
        n = 12345
        with sqlite3.connect("load.db") as db:
            for first, in db.execute("SELECT first FROM sample_block ORDER BY first DESC").fetchall():
                db.execute("UPDATE sample_block SET first = first + ? WHERE first = ?", (n, first))
        db.close()
        self.assertIn("%d samples were dropped from the recording before they were sent" % n, self.ship("load.db", "--rows", 1000).stderr)
        self.assertExact()
        self.assertEqual(str(n), self.ship("load.db", "--status").stdout.splitlines()[1].split()[5])
        self.assertEqual(n, self.number("SELECT sum(last - first + 1 - samples) FROM DB.shipments"))

    def test_totals_alone(self):
        self.init()
        self.ship("load.db", "--raw", "no")
        self.assertEqual(0, self.number("SELECT count() FROM DB.samples"))
        self.assertEqual(samples_of("load.db"), self.arrived()[1])
        self.assertRegex(self.ship("load.db", "--verify").stdout, " 0 lost, 0 doubled")

    def test_what_does_not_pass_is_one_sentence(self):
        self.assertSentence(self.ship("load.db", check=t.NO_INPUT).stderr, r"ship --init")
        os.environ["PROBING_FLEET_PASSWORD"] = "wrong"
        self.assertSentence(self.ship("load.db", check=t.NOT_PERMITTED).stderr, r"refuses the user admin or the password")
        with open("password", "w") as file:
            file.write(clickhouse.PASSWORD + "\n")
        self.ship("--init", "--password-file", "password")
        self.addCleanup(os.environ.pop, "PROBING_FLEET_PASSWORD_FILE", None)
        os.environ["PROBING_FLEET_PASSWORD_FILE"] = "password"  # before the variable with the password, as in reading
        self.ship("load.db", "-q")
        os.environ["PROBING_FLEET_PASSWORD_FILE"] = "absent"
        self.assertSentence(self.ship("load.db", check=t.NO_INPUT).stderr, "absent")
        del os.environ["PROBING_FLEET_PASSWORD_FILE"]
        for url in ("http://me:secret@127.0.0.1/d", "127.0.0.1/d", "http://127.0.0.1/", "http://127.0.0.1/a`b"):
            done = probing("ship", "load.db", "--to", url, check=None)
            self.assertIn(done.returncode, (t.USAGE, t.NOT_PERMITTED), url)
            self.assertNotIn("secret", done.stderr.replace(url, ""))

    def test_a_running_recording_is_followed(self):
        self.init()
        with t.recorder("-o", "live.db", "--rate", 500, "--", t.DEBIAN_PYTHON, "-c", LOAD, t.LONGEST_TARGET_S, "leaf") as recorder:
            t.wait_for_samples("live.db")
            process = subprocess.Popen([t.BINARY, "ship", "live.db", "--every", "0.5s", *self.to()],
                                       stderr=subprocess.PIPE, text=True)
            try:
                t.wait_until(lambda: self.number("SELECT count() FROM DB.shipments") > 1, 60, "two shipments at the server")
                self.assertIsNone(recorder.poll())
                self.assertGreater(self.number("SELECT count() FROM DB.samples"), 0)
                with open("enough", "w"):
                    recorder.wait(30)
                _, said = process.communicate(timeout=60)
            finally:
                process.kill()
                process.wait()
                process.stderr.close()
        self.assertEqual(0, process.returncode, said)
        self.assertGreater(int(re.search(r"in (\d+) shipments", said)[1]), 1)
        for suffix in ("", "-wal", "-shm"):  # the shipper may have read as the recorder ended, which then leaves its log
            if os.path.exists("live.db" + suffix):
                os.rename("live.db" + suffix, "load.db" + suffix)
        self.assertExact()

    def test_a_recording_that_takes_the_place_of_another(self):
        """The other file has other stacks under the same ids, and samples of other numbers."""
        self.init()
        shutil.copy("load.db", "next.db")
        with t.recorder("-o", "live.db", "--rate", 500, "--", t.DEBIAN_PYTHON, "-c", LOAD, t.LONGEST_TARGET_S, "leaf") as recorder:
            t.wait_for_samples("live.db")
            process = subprocess.Popen([t.BINARY, "ship", "live.db", "--every", "0.5s", *self.to()],
                                       stderr=subprocess.PIPE, text=True)
            try:
                t.wait_until(lambda: self.number("SELECT count() FROM DB.samples") > 0, 60, "samples at the server")
                self.assertIsNone(recorder.poll())
                os.kill(process.pid, signal.SIGSTOP)
                with open("enough", "w"):
                    recorder.wait(30)
                for name in glob.glob("live.db-*"):
                    os.unlink(name)
                os.replace("next.db", "live.db")
                os.kill(process.pid, signal.SIGCONT)
                _, said = process.communicate(timeout=60)
            finally:
                process.kill()
                process.wait()
                process.stderr.close()
        self.assertEqual(0, process.returncode, said)
        self.assertIn("live.db is another recording now", said)
        run = int(self.ship("load.db", "--status").stdout.splitlines()[1].split()[0], 16)
        sql = "SELECT stack, sum(samples), sum(weight) FROM %%s.totals WHERE run = %d GROUP BY stack ORDER BY stack" % run
        there = self.server.query(sql % self.database)
        self.database += "_alone"
        self.init()
        self.ship("load.db", "-q")
        self.assertEqual(self.server.query(sql % self.database), there)

    def test_record_sends_meanwhile(self):
        """record --to: the recorder ends at its time, also when no server answers; what is missing goes later."""
        self.init()
        os.environ["XDG_STATE_HOME"] = os.path.abspath("state_home")
        self.addCleanup(os.environ.pop, "XDG_STATE_HOME")
        done = probing("record", "-o", "one.db", "--rate", 500, "--to", self.server.url(self.database), "--",
                       t.DEBIAN_PYTHON, "-c", LOAD, 1, "leaf", check=t.OK)
        shipper = int(re.search(r"process (\d+) sends the recording to http", done.stderr)[1])
        t.wait_until(lambda: not os.path.exists("/proc/%d" % shipper), 60, "the shipper's end")
        os.rename("one.db", "load.db")
        self.assertEqual([samples_of("load.db")] * 2, self.arrived())
        done = probing("record", "-o", "two.db", "--rate", 500, "--to", self.server.url(self.database, port=1), "--",
                       t.DEBIAN_PYTHON, "-c", LOAD, 1, "leaf", check=t.OK)
        shipper = int(re.search(r"process (\d+) sends the recording to http", done.stderr)[1])
        self.assertIn(t.state_of(shipper), "RS")  # it still tries, and the recorder has not waited for it
        os.kill(shipper, signal.SIGTERM)
        t.wait_until(lambda: not os.path.exists("/proc/%d" % shipper), 60, "the shipper's end")  # it writes here until then
        self.assertGreater(samples_of("two.db")[0], 0)
        with open("one.db.ship.log") as log:
            self.assertRegex(log.read(), "samples sent in")

    def test_new_columns_come_while_others_send(self):
        self.init()
        self.server.query("ALTER TABLE %s.samples_local DROP COLUMN leaf" % self.database)
        self.assertSentence(self.ship("load.db", check=t.BAD_DATA).stderr, "ship --init adds new columns")
        self.assertIn("ADD COLUMN leaf", self.init().stdout)
        self.ship("load.db")
        self.assertExact()


class NoServer(t.Case):
    """What answers is no ClickHouse, or nobody."""
    light = True

    def setUp(self):
        super().setUp()
        t.need_perf()
        shutil.copy(recording(), "load.db")

    def answer(self, body):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # the name that the library calls
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_):
                pass
        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return "127.0.0.1:%d/d" % server.server_port

    def test_answers_of_others_end_it(self):
        """Waiting does not shorten an answer."""
        if "without libcurl" in probing("ship", "x", "--to", "http://127.0.0.1/x").stderr:
            self.skipTest("built without libcurl")
        for body, sentence in ((b"x" * (17 << 20), "longer than expected"), (b"<html>", "is not ClickHouse")):
            place = self.answer(body)
            self.assertSentence(probing("ship", "load.db", "--to", "http://" + place, "--state", "state", check=None, timeout=20).stderr, sentence)
            self.assertIn(sentence, probing("report", "clickhouse://" + place, check=None).stderr)

    def test_passwords_in_addresses_are_not_repeated(self):
        for url in ("http://me:secret@127.0.0.1/d", "me:secret@127.0.0.1/d", "http://me:secret@127.0.0.1/d?x"):
            done = probing("ship", "load.db", "--to", url, "--state", "state", check=t.USAGE)
            self.assertNotIn("secret", done.stderr, url)
            done = probing("record", "-o", "new.db", "--to", url, "--", t.DEBIAN_PYTHON, "-c", "1", check=t.USAGE)
            self.assertNotIn("secret", done.stderr, url)
            self.assertFalse(os.path.exists("new.db"))



class OldServer(Cases, ShipCase):
    kind = clickhouse.Old

    @classmethod
    def more(cls):
        folder = t.scratch()
        cls.certificate = os.path.join(folder.__enter__(), "certificate.pem")
        cls.addClassCleanup(folder.__exit__, None, None, None)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", cls.certificate, "-out",
                        cls.certificate + ".crt"], check=True, stderr=subprocess.DEVNULL)
        with open(cls.certificate, "a") as whole, open(cls.certificate + ".crt") as public:
            whole.write(public.read())
        return {"certificate": cls.certificate}

    def test_certificates_are_verified(self):
        self.init()
        url = "https://admin@127.0.0.1:%d/%s" % (self.server.https, self.database)
        done = probing("ship", "load.db", "--to", url, "--state", "state", check=t.NOT_PERMITTED)
        self.assertSentence(done.stderr, "--ca-file")
        probing("ship", "load.db", "--to", url, "--state", "state", "--ca-file", self.certificate + ".crt", check=t.OK)
        self.assertEqual(samples_of("load.db"), self.arrived()[0])
        done = probing("ship", "load.db", "--to", url, "--state", "other", "--ca-file", "absent.crt", check=None)
        self.assertNotEqual(0, done.returncode)


class NewServer(Cases, ShipCase):
    kind = clickhouse.New

    def test_users_insert_or_read(self):
        """The statements as --init prints them, but the creation: this server has no place for users of SQL."""
        for name in ("writer", "reader"):
            with open(name, "w") as file:
                file.write("the %s's\n" % name)
        self.init()
        said = self.init("--print", "--writer-password-file", "writer", "--reader-password-file", "reader").stdout
        self.assertNotIn("the writer's", said)
        for name in ("writer", "reader"):
            user = "%s_%s" % (self.database, name)
            self.assertIn("CREATE USER OR REPLACE %s IDENTIFIED WITH sha256_hash" % user, said)
            self.server.add_user(user, "the %s's" % name, re.findall(r"GRANT (.*) TO %s;" % user, said))
        self.server.kill()
        self.server.start()
        done = probing("ship", *self.to(), "--init", "--writer-password-file", "writer", "--reader-password-file", "reader")
        self.assertRegex(done.stderr, "Code: (514|495)")  # no place for users, but the statement is understood
        writer, reader = self.database + "_writer", self.database + "_reader"
        self.ship("load.db", "--password-file", "writer", user=writer)
        self.assertRegex(self.ship("load.db", "--verify", "--password-file", "writer", user=writer).stdout, " 0 lost, 0 doubled")
        self.ship("load.db", "--state", "other", "--password-file", "writer", user=writer)  # which reads the plan from there
        with self.assertRaises(clickhouse.Error) as refused:
            self.server.query("SELECT stack FROM %s.samples_local" % self.database, writer, "the writer's")
        self.assertEqual(497, refused.exception.code)
        self.server.query("SELECT stack FROM %s.samples LIMIT 1" % self.database, reader, "the reader's")
        with self.assertRaises(clickhouse.Error) as refused:
            self.server.query("INSERT INTO %s.runs_local (run) VALUES (1)" % self.database, reader, "the reader's")
        self.assertEqual(497, refused.exception.code)
        self.assertExact()


if __name__ == "__main__":
    unittest.main()
