# SPDX-License-Identifier: MIT
"""probing ship to a receiver of OpenTelemetry's profiles: what arrives is decoded by the published schema (readers/read_otlp.py)."""
import contextlib
import os
import re
import shutil
import sqlite3
import unittest

import probing_test as t
from probing_test import probing
from test_exports import read_otlp, receiver

TOGETHER = True  # one recording for all
ALL_REFUSED = r"; at least 8 shipments in a row were refused, so all of them and the others wait\n$"

LOAD = """
import json, sys, time
end = time.process_time() + float(sys.argv[1])
def pack():
    json.dumps({str(i): i for i in range(200)})
while time.process_time() < end:
    pack(); sum(i * i for i in range(300))
"""


@t.shared
def recording(folder):
    path = os.path.join(folder, "load.db")
    probing("record", "-o", path, "--rate", 999, "--", t.DEBIAN_PYTHON, "-c", LOAD, 1.5, check=t.OK)
    return path


def samples_of(path):
    with t.connect(path) as db:
        return db.execute("SELECT sum(samples), sum(weight) FROM sample_block").fetchone()


def rejects(n_profiles):
    """An answer: so many profiles are refused."""
    return bytes([0x0a, 6, 0x08, n_profiles, 0x12, 2]) + b"no"


def unsampled_of(path):
    with t.connect(path) as db:
        return db.execute("SELECT count(*) FROM sample JOIN stack USING(stack) JOIN frame USING(frame)"
                          " WHERE frame.kind = 'unsampled'").fetchone()[0]


class ShipOtlp(t.Case):
    light = True
    NIGHTLY_FOR_USERS = True  # it sends what is in a file of whoever sends it

    def setUp(self):
        super().setUp()
        t.need_perf()
        if "without libcurl" in probing("ship", "x", "--to", "http://127.0.0.1/x").stderr:
            self.skipTest("built without libcurl")
        shutil.copy(recording(), "load.db")

    @staticmethod
    def ship(address, *more, check=t.OK):
        return probing("ship", "load.db", "--to", "otlp+" + address, "--state", "state", *more, check=check)

    def decode(self, requests):
        """Of all requests: number and weight of samples, functions, times, and the resources."""
        n, weight, functions, times, resources = 0, 0, set(), [], []
        for path, headers, body in requests:
            self.assertEqual("/v1development/profiles", path)
            self.assertEqual(("application/x-protobuf", "gzip"), (headers["Content-Type"], headers["Content-Encoding"]))
            with open("body.otlp.gz", "wb") as file:
                file.write(body)
            resource, profiles = read_otlp("body.otlp.gz")
            resources.append(resource)
            for kind, profile in profiles.items():
                for sample in profile["samples"]:
                    if kind == ("samples", "count"):
                        n += sum(sample["values"])
                        continue
                    weight += sum(sample["values"])
                    times += sample["times"]
                    functions |= {line["name"] for place in sample["places"] for line in place["inlined"]}
        return n, weight, functions, times, resources

    def assertArrived(self, requests, path="load.db"):
        n, weight, functions, times, resources = self.decode(requests)
        self.assertEqual(samples_of(path), (len(times), weight))
        self.assertEqual(len(times) - unsampled_of(path), n)  # time without a sample has a weight alone
        self.assertIn("pack", functions)
        return resources

    def test_all_samples_arrive(self):
        with receiver() as (address, requests, _):
            n = samples_of("load.db")[0]
            rows = n // 3
            said = self.ship(address, "--rows", rows, "--job", "llm-7").stderr
            self.assertIn("%d samples sent in %d shipments" % (n, len(requests)), said)
            self.assertEqual(-(-n // rows), len(requests))
            resources = self.assertArrived(requests)
            self.assertEqual({"llm-7"}, {resource["service.name"] for resource in resources})
            self.assertIn("0 samples sent", self.ship(address).stderr)
            status = self.ship(address, "--status").stdout.splitlines()[1].split()
            self.assertEqual([str(n)] * 2, status[1:3])
            self.assertEqual(-(-n // rows), len(requests))

    def test_what_passes_is_waited_for(self):
        """A busy receiver is asked again; another answer is one sentence, and the next ship continues there."""
        with receiver() as (address, requests, answers):
            answers += [(503, b"busy"), (429, b"slowly"), (200, b""), (405, b"no profiles here")]
            rows = samples_of("load.db")[0] // 3
            done = self.ship(address, "--rows", rows, check=t.NO_OUTPUT)
            self.assertSentence(done.stderr, "answers 405: no profiles here")
            self.assertEqual(4, len(requests))
            self.assertEqual(requests[0][2], requests[2][2])  # the same bytes again
            self.ship(address, "--rows", rows)
            self.assertArrived(requests[2:3] + requests[4:])
            os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = "Authorization=Bearer%20abc"
            self.addCleanup(os.environ.pop, "OTEL_EXPORTER_OTLP_HEADERS")
            self.ship(address, "--state", "other")
            self.assertEqual("Bearer abc", requests[-1][1]["Authorization"])

    def status(self, address):
        """Sent, waiting and refused samples or shipments."""
        words = self.ship(address, "--status").stdout.splitlines()[1].split()
        return int(words[2]), int(words[4]), int(words[6])

    def test_a_refused_shipment_is_set_aside(self):
        """The others do not wait behind it, and it is sent again on request."""
        with receiver() as (address, requests, answers):
            n = samples_of("load.db")[0]
            rows = n // 4
            answers += [(200, b""), (400, b"no such sample")]
            done = self.ship(address, "--rows", rows, check=t.NO_OUTPUT)
            n_requests = len(requests)
            self.assertEqual(-(-n // rows), n_requests)
            self.assertRegex(done.stderr, r"load\.db: %d samples \(%d to %d\) are set aside: .* answers 400: no such sample\n" % (
                rows, rows + 1, 2 * rows))
            self.assertRegex(done.stderr, r"%d samples were refused, and are still in the recording: .*--retry-refused\n$" % rows)
            self.assertEqual((n - rows, 0, rows), self.status(address))
            self.ship(address)
            self.assertEqual(n_requests, len(requests))
            self.ship(address, "--retry-refused")
            self.assertEqual(requests[1][2], requests[-1][2])
            self.assertEqual((n, 0, 0), self.status(address))
            self.assertArrived(requests[:1] + requests[2:])

    def test_all_are_refused(self):
        """Then it is not for their samples: all wait, and each further ship tries one of them."""
        with receiver() as (address, requests, answers):
            n = samples_of("load.db")[0]
            answers += [(422, b"no")] * 20
            for n_requests in 8, 9, 10:
                done = self.ship(address, "--rows", n // 12, check=t.NO_OUTPUT)
                self.assertRegex(done.stderr, ALL_REFUSED)
                self.assertEqual(n_requests, len(requests))
                self.assertEqual((0, 8, 0), self.status(address))
            self.assertEqual(requests[0][2], requests[9][2])
            del answers[:]
            self.ship(address)
            self.assertEqual((n, 0, 0), self.status(address))
            self.assertArrived(requests[10:])

    def test_dropped_samples_end_no_row(self):
        """The receiver has taken nothing: the next ship still tries one shipment."""
        with receiver() as (address, requests, answers):
            rows = samples_of("load.db")[0] // 12
            answers += [(422, b"no")] * 20
            self.assertRegex(self.ship(address, "--rows", rows, check=t.NO_OUTPUT).stderr, ALL_REFUSED)
            with contextlib.closing(sqlite3.connect("load.db")) as db, db:  # the first shipment's samples are gone
                for first, in db.execute("SELECT first FROM sample_block ORDER BY first DESC").fetchall():
                    db.execute("UPDATE sample_block SET first = first + ? WHERE first = ?", (rows, first))
            self.assertRegex(self.ship(address, "--rows", rows, check=t.NO_OUTPUT).stderr, ALL_REFUSED)
            self.assertEqual(9, len(requests))

    def test_refusals_in_a_row_of_several_ships(self):
        """A ship that ends between them forgets none."""
        with receiver() as (address, requests, answers):
            n = samples_of("load.db")[0]
            rows = n // 12
            answers += [(400, b"no")] * 5 + [(405, b"gone")] + [(400, b"no")] * 3
            self.assertIn("answers 405", self.ship(address, "--rows", rows, check=t.NO_OUTPUT).stderr)
            self.assertEqual((0, 1, 5 * rows), self.status(address))
            self.assertRegex(self.ship(address, "--rows", rows, check=t.NO_OUTPUT).stderr, ALL_REFUSED)
            self.assertEqual(9, len(requests))
            self.assertEqual((0, 8, 0), self.status(address))
            # It takes one: those before were not refused for their samples. Three more in a row are.
            answers += [(200, b"")] + [(400, b"no")] * 3
            self.ship(address, "--rows", rows, check=t.NO_OUTPUT)
            self.assertEqual((n - 3 * rows, 0, 3 * rows), self.status(address))
            self.ship(address, "--retry-refused")
            self.assertArrived(requests[9:10] + requests[13:])

    def test_a_part_is_refused(self):
        """The receiver does not say which, so nothing of it is sent again unasked, and no row of them ends the ship."""
        with receiver() as (address, requests, answers):
            n = samples_of("load.db")[0]
            rows = n // 12
            answers += [(200, rejects(1))] * 9
            done = self.ship(address, "--rows", rows, check=t.NO_OUTPUT)
            self.assertRegex(done.stderr, r"samples \(1 to %d\) are taken in part, and set aside: \S+ refused 1 of 2 profiles: no\n" % rows)
            self.assertRegex(done.stderr, r"%d samples were refused, .*--retry-refused; .* that part arrives twice then\n$" % (9 * rows))
            self.assertEqual((n - 9 * rows, 0, 9 * rows), self.status(address))
            self.ship(address, "--retry-refused")
            self.assertEqual((n, 0, 0), self.status(address))
            self.assertEqual([body for _, _, body in requests[:9]], [body for _, _, body in requests[-9:]])
            answers += [(200, rejects(2))] * 8
            self.assertRegex(self.ship(address, "--rows", rows, "--state", "other", check=t.NO_OUTPUT).stderr, ALL_REFUSED)

    def test_a_shipment_that_is_too_large(self):
        """Two halves of it are sent, and all later shipments are as small."""
        with receiver() as (address, requests, answers):
            n = samples_of("load.db")[0]
            answers += [(413, b"too large")] * 2
            self.ship(address, "--rows", n - 10)
            self.assertEqual((n, 0, 0), self.status(address))
            self.assertArrived(requests[2:])
            sizes = [len(body) for _, _, body in requests]
            self.assertTrue(sizes[0] > sizes[1] > sizes[2], sizes)
            self.assertEqual(6, len(requests))  # whole, half; a quarter, the other half and the other quarter, and the last ten

    def test_a_damaged_recording_stops_no_other(self):
        with open("a.db", "wb") as file:
            file.write(b"no recording" * 1000)
        with receiver() as (address, requests, _):
            done = probing("ship", "a.db", "missing.db", "load.db", "--to", "otlp+" + address, "--state", "state", check=t.BAD_DATA)
            self.assertRegex(done.stderr, r"\ba\.db\b")
            self.assertRegex(done.stderr, r"\bmissing\.db\b")
            self.assertRegex(done.stderr, r"a\.db cannot be read; all recordings that can are sent\n$")
            self.assertArrived(requests)

    def test_record_sends_meanwhile(self):
        with receiver() as (address, requests, _):
            os.environ["XDG_STATE_HOME"] = os.path.abspath("state_home")
            self.addCleanup(os.environ.pop, "XDG_STATE_HOME")
            done = probing("record", "-o", "one.db", "--rate", 500, "--to", "otlp+" + address, "--", t.DEBIAN_PYTHON, "-c", LOAD, 1,
                           check=t.OK)
            shipper = int(re.search(r"process (\d+) sends the recording to otlp", done.stderr)[1])
            t.wait_until(lambda: not os.path.exists("/proc/%d" % shipper), 60, "the shipper's end")
            with open("one.db.ship.log") as log:
                self.assertRegex(log.read(), "samples sent in")
            self.assertArrived(requests, "one.db")

    def test_mistakes(self):
        for words, said in ((("--verify",), "only --status"), (("--raw", "no"), "--raw is for ClickHouse"),
                            (("--to", "http://a/b"), "one --to with otlp")):
            self.assertIn(said, self.ship("http://127.0.0.1:1", *words, check=t.USAGE).stderr)
        self.assertIn("--retry-refused is for OTLP",
                      probing("ship", "load.db", "--to", "http://127.0.0.1:1/a", "--retry-refused", check=t.USAGE).stderr)
        self.assertIn("OTEL_EXPORTER_OTLP_HEADERS", self.ship("http://me@127.0.0.1:1", check=t.USAGE).stderr)
        done = probing("record", "-o", "new.db", "--to", "otlp+https://me:hunter2@h", "--", t.DEBIAN_PYTHON, "-c", "1", check=t.USAGE)
        self.assertNotIn("hunter2", done.stderr)
        self.assertFalse(os.path.exists("new.db"))


if __name__ == "__main__":
    unittest.main()
