# SPDX-License-Identifier: MIT
"""probing ship to a receiver of OpenTelemetry's profiles: what arrives is decoded by the published schema (readers/read_otlp.py)."""
import os
import re
import shutil
import unittest

import probing_test as t
from probing_test import probing
from test_exports import read_otlp, receiver

TOGETHER = True  # one recording for all

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


def unsampled_of(path):
    with t.connect(path) as db:
        return db.execute("SELECT count(*) FROM sample JOIN stack USING(stack) JOIN frame USING(frame)"
                          " WHERE frame.kind = 'unsampled'").fetchone()[0]


class ShipOtlp(t.Case):
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
        """A busy receiver is asked again; a refusal is one sentence, and the next ship continues there."""
        with receiver() as (address, requests, answers):
            answers += [(503, b"busy"), (429, b"slowly"), (200, b""), (400, b"no profiles here")]
            rows = samples_of("load.db")[0] // 3
            done = self.ship(address, "--rows", rows, check=t.NO_OUTPUT)
            self.assertSentence(done.stderr, "answers 400: no profiles here")
            self.assertEqual(4, len(requests))
            self.assertEqual(requests[0][2], requests[2][2])  # the same bytes again
            self.ship(address, "--rows", rows)
            self.assertArrived(requests[2:3] + requests[4:])
            os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = "Authorization=Bearer%20abc"
            self.addCleanup(os.environ.pop, "OTEL_EXPORTER_OTLP_HEADERS")
            self.ship(address, "--state", "other")
            self.assertEqual("Bearer abc", requests[-1][1]["Authorization"])

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
        self.assertIn("OTEL_EXPORTER_OTLP_HEADERS", self.ship("http://me@127.0.0.1:1", check=t.USAGE).stderr)
        done = probing("record", "-o", "new.db", "--to", "otlp+https://me:hunter2@h", "--", t.DEBIAN_PYTHON, "-c", "1", check=t.USAGE)
        self.assertNotIn("hunter2", done.stderr)
        self.assertFalse(os.path.exists("new.db"))


if __name__ == "__main__":
    unittest.main()
