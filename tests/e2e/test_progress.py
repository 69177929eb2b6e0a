# SPDX-License-Identifier: MIT
"""How far long work is: one line on a terminal, with a total and the time left; nothing in a pipe or with --quiet.

No test waits for a time. Work is held by what it waits for, or takes long on any machine.
"""
import http.server
import json
import os
import re
import threading
import unittest

import probing_test as t
from probing_test import probing
from terminal import Terminal

SAME_FOR_ALL_USERS = True

N_STACKS = {"many": 120000, "some": 40000}  # import and export take half a second of CPU time for many, compact and merge for some
N_SAMPLES = 4000
WAIT_S = 120


@t.shared
def stacks(folder):
    """Different stacks, of which each verb has much to do."""
    for name, n in N_STACKS.items():
        path = os.path.join(folder, name)
        with open(path + ".folded", "w", encoding="utf-8") as file:
            file.writelines("main;f%d;g%d 3\n" % (i // 100, i) for i in range(n))
        probing("import", path + ".folded", "-o", path + ".db", check=t.OK)
    return folder


@t.shared
def samples(folder):
    """A recording whose samples have times, as an importer of times makes it."""
    path = os.path.join(folder, "timed.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "main"}]},
                   "profiles": [{"type": "sampled", "name": "a", "unit": "milliseconds", "startValue": 0, "endValue": N_SAMPLES,
                                 "samples": [[0]] * N_SAMPLES, "weights": [1] * N_SAMPLES}]}, file)
    out = os.path.join(folder, "timed.db")
    probing("import", path, "-o", out, check=t.OK)
    return out


class Holding(http.server.ThreadingHTTPServer):
    """A receiver of OTLP that answers a request once the test lets it."""
    daemon_threads = True

    def __init__(self):
        self.let = threading.Semaphore(0)
        super().__init__(("127.0.0.1", 0), Answer)


class Answer(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):  # pylint: disable=arguments-differ
        pass

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.let.acquire()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Files(t.Case):
    """Verbs that read and write files."""

    def setUp(self):
        super().setUp()
        self.folded, self.db, self.some = (os.path.join(stacks(), name) for name in ("many.folded", "many.db", "some.db"))

    def shown(self, *words):
        """All that the terminal got."""
        with Terminal([t.BINARY, *map(str, words)], columns=100) as terminal:
            self.assertEqual(t.OK, terminal.wait(WAIT_S), terminal.raw[-500:])
            return terminal.raw.decode()

    def assertShown(self, pattern, *words):
        """On a terminal, and gone at the end; but not with --quiet, and not in a pipe."""
        raw = self.shown(*words, "-o", "shown.db")
        self.assertRegex(raw, r"\r%s(, \d+ (s|min) left)?\x1b\[K" % pattern)
        self.assertRegex(raw, r"\r\x1b\[Kprobing: [^\r]*\r\n$")
        self.assertEqual("", self.shown(*words, "-q", "-o", "quiet.db"))
        self.assertNotRegex(probing(*words, "-o", "piped.db", check=t.OK).stderr, "[\r\x1b]")

    def test_import(self):
        self.assertShown(r"[\d,]+ rows, \d+ % read", "import", self.folded)

    def test_import_of_times(self):
        probing("export", self.db, "--to", "speedscope", "-o", "a.json", check=t.OK)
        self.assertRegex(self.shown("import", "a.json", "-o", "b.db"), r"\r[\d,]+ rows, \d+ % (read|written)")

    def test_export(self):
        self.assertShown(r"[\d,]+ of [\d,]+ rows", "export", self.db, "--to", "sqlite")

    def test_compact(self):
        self.assertShown(r"[\d,]+ of [\d,]+ (stacks|frames|functions)", "compact", self.some)

    def test_merge(self):
        self.assertShown(r"[\d,]+ of [\d,]+ (stacks|frames|functions)", "merge", self.some, self.some)


class Ship(t.Case):
    def setUp(self):
        super().setUp()
        if "without libcurl" in probing("ship", "x", "--to", "http://127.0.0.1/x").stderr:
            self.skipTest("built without libcurl")

    def test_sent_all_and_time_left(self):
        total = "{:,}".format(N_SAMPLES)
        with Holding() as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            words = ["ship", samples(), "--to", "otlp+http://127.0.0.1:%d" % server.server_port, "--state", "state", "--rows", "1000"]
            with Terminal([t.BINARY, *words], columns=100) as terminal:
                terminal.wait_for("0 of %s samples" % total, WAIT_S)
                server.let.release()
                terminal.wait_for(lambda lines: re.search(r"1,000 of %s samples, \d+ (s|min) left" % total, "\n".join(lines)),
                                  WAIT_S)
                server.let.release(10)
                terminal.wait_for("%d samples sent in 4 shipments" % N_SAMPLES, WAIT_S)
                self.assertEqual(t.OK, terminal.wait(WAIT_S))
                self.assertNotIn("left", terminal.text())
            with Terminal([t.BINARY, *words, "--quiet"], columns=100, environment={"XDG_STATE_HOME": os.path.abspath("x")}) as terminal:
                self.assertEqual(t.OK, terminal.wait(WAIT_S))
                self.assertEqual(b"", terminal.raw)
            server.shutdown()


if __name__ == "__main__":
    unittest.main()
