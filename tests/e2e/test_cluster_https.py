# SPDX-License-Identifier: MIT
"""probing serve --listen and probing cluster --hosts https://...: who is answered, what may be asked, and hosts that ask others."""
import collections
import contextlib
import http.client
import http.server
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import probing_test as t
from test_serve import serving

JOB = "4020"
ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]  # all of them are this machine
NOBODY = "https://127.0.0.4:9"


def openssl(*arguments):
    subprocess.run([t.need_program("openssl"), *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates(folder, names):
    """ca.pem, node.pem with node.key for these addresses, and other.pem, an authority that signed nothing."""
    def at(name):
        return os.path.join(folder, name)
    for name in "ca", "other":
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", at(name + ".key"),
                "-out", at(name + ".pem"), "-days", "2", "-subj", "/CN=" + name)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", at("node.key"), "-out",
            at("node.csr"), "-subj", "/CN=node")
    with open(at("names"), "w", encoding="utf-8") as file:
        file.write("subjectAltName=" + ",".join("IP:" + name for name in names))
    openssl("x509", "-req", "-in", at("node.csr"), "-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial", "-days", "2",
            "-extfile", at("names"), "-out", at("node.pem"))
    with open(at("token"), "w", encoding="utf-8") as file:
        file.write("a token of this test\n")
    os.chmod(at("token"), 0o600)
    os.chmod(at("node.key"), 0o600)


@contextlib.contextmanager
def answering(document):
    """A host that answers each question with this document. Yields its address."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "http://127.0.0.1:%d" % server.server_port
        finally:
            server.shutdown()
            thread.join()


class Https(t.Case):
    @classmethod
    def setUpClass(cls):
        t.need_program("openssl")
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.folder = cls.stack.enter_context(tempfile.TemporaryDirectory(prefix="probing-test."))
        make_certificates(cls.folder, ADDRESSES + ["::1"])
        cls.served = ("--tls-certificate", cls.path("node.pem"), "--tls-key", cls.path("node.key"), "--token-file",
                      cls.path("token"), "--ca-file", cls.path("ca.pem"))
        cls.urls = [cls.stack.enter_context(serving("--listen", address + ":0", *cls.served))[1] for address in ADDRESSES]
        environment = dict(os.environ, RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_PORT=JOB)
        cls.rank = cls.stack.enter_context(t.target([t.DEBIAN_PYTHON, os.path.join(t.FIXTURES, "ranks.py"), "--slow", "0"],
                                                    env=environment))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def ask(self, verb, *arguments, hosts=None, token="token", ca="ca.pem", **more):
        done = t.probing("cluster", verb, "--hosts", ",".join(hosts or self.urls), "--token-file", self.path(token), "--ca-file",
                         self.path(ca), "--job", JOB, *arguments, **more)
        if "built without libcurl" in done.stdout + done.stderr:
            raise unittest.SkipTest("built without libcurl")
        return done

    def nodes(self, *arguments, **more):
        return json.loads(self.ask("nodes", "-f", "json", *arguments, **more).stdout)

    def request(self, body, path="/cluster", **headers):
        context = ssl.create_default_context(cafile=self.path("ca.pem"))
        address = self.urls[0][len("https://"):].split(":")
        connection = http.client.HTTPSConnection(address[0], int(address[1]), timeout=20, context=context)
        try:
            connection.request("POST", path, body, {"Authorization": "Bearer a token of this test", **headers})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    # ---- Answers ----

    def test_nodes_of_all_hosts(self):
        self.assertEqual([(0, url, self.rank.pid) for url in self.urls],
                         sorted((node["rank"], node["addr"], node["pid"]) for node in self.nodes()))

    def test_a_host_asks_the_others(self):
        """With one connection from here, the first one asks the second, and that the third."""
        self.assertEqual(sorted(self.urls), sorted(node["addr"] for node in self.nodes("--fan-out", "1")))

    def test_a_dead_host_costs_itself_alone(self):
        """Wherever it is in the tree: also as the one that asks the others."""
        for i in range(4):
            hosts = self.urls[:i] + [NOBODY] + self.urls[i:]
            for fan_out in "1", "2", "64":
                with self.subTest(hosts=i, fan_out=fan_out):
                    found = {node["addr"]: node["status"] for node in self.nodes("--fan-out", fan_out, hosts=hosts)}
                    self.assertEqual({**{url: "running" for url in self.urls}, NOBODY: "unreachable"}, found)

    def test_a_host_speaks_of_no_other(self):
        """What it says of a host that it was not asked for is not shown, nor is the rest of that document."""
        rank = {"rank": 7, "pid": 4, "status": "read", "job": JOB}
        with answering({"probing_cluster": 1, "hosts": [{"host": "own", "ranks": [rank]},
                                                        {"host": "forged", "address": "https://10.9.9.9:1", "ranks": [rank]}]}) as url:
            for hosts in [url], [url, self.urls[0]]:
                nodes = self.nodes("--fan-out", "1", hosts=hosts)
                self.assertEqual(sorted(hosts), sorted(node["addr"] for node in nodes))
                self.assertEqual(["its answer is not a document of probing cluster"], [node["problem"] for node in nodes if node["addr"] == url])

    def test_rows_and_stacks_pass_through(self):
        rows = json.loads(self.ask("query", "--fan-out", "1", "-f", "json", "SELECT host, rank, rss_mb > 1 AS big, 'it''s' AS x FROM "
                                   "memory_usage ORDER BY host", check=t.OK).stdout)
        self.assertEqual([{"host": url, "rank": 0, "big": 1, "x": "it's"} for url in sorted(self.urls)], rows)
        text = self.ask("backtrace", "--fan-out", "1", "--no-native", check=t.OK).stdout
        self.assertIn("compute  (ranks.py:", text)
        for url in self.urls:
            self.assertIn("pid %d on %s" % (self.rank.pid, url), text)

    def test_this_machine_and_others(self):
        addresses = [node["addr"] for node in self.nodes(hosts=[".", self.urls[1]])]
        self.assertEqual({None, self.urls[1]}, set(addresses))

    def test_report(self):
        self.assertIn("2 ranks, ", self.ask("report", "--fan-out", "1", "-d", "0.5", hosts=self.urls[:2], check=t.OK).stdout)

    def test_record(self):
        recording = self.path("all.db")
        self.ask("record", "--", "--mode", "wall", "-d", "0.5", "--no-native", "-o", recording, hosts=self.urls[:2], check=t.OK)
        rows = json.loads(t.probing("sql", recording, "-f", "json", "SELECT rank, clock_error FROM process JOIN run USING (pid)",
                                    check=t.OK).stdout)
        self.assertTrue(rows and all(row["rank"] == 0 and 0 < row["clock_error"] < 1 for row in rows), rows)

    # ---- Who may ----

    def test_a_wrong_token_and_a_wrong_authority(self):
        with open(self.path("bad"), "w", encoding="utf-8") as file:
            file.write("another token of a test")
        self.assertEqual(["it refuses the token"], [node["problem"] for node in self.nodes(token="bad", hosts=self.urls[:1])])
        problem = self.nodes(ca="other.pem", hosts=self.urls[:1])[0]["problem"]
        self.assertIn("certificate", problem)

    def test_requests_of_pages_and_without_a_token(self):
        self.assertEqual(401, self.request("nodes", Authorization="Bearer x")[0])
        self.assertEqual(401, self.request("nodes", Authorization="")[0])
        for header in {"Origin": "https://127.0.0.1"}, {"Sec-Fetch-Site": "same-origin"}:
            self.assertEqual(403, self.request("nodes", **header)[0])

    def test_what_may_be_asked(self):
        self.assertEqual(200, self.request("nodes\n--job=%s" % JOB)[0])
        for body in ("", "attach", "eval\nprint(1)", "nodes\n--ssh=sh", "record\n--\nsh\n-c\nid", "record\n--\n-o\n/tmp/x", "rows",
                     "query\n--\nSELECT 1", "nodes\n--below=https://a/x"):
            with self.subTest(body):
                self.assertEqual(400, self.request(body)[0])
        self.assertEqual(403, self.request("1", "/apis/pythonext/eval")[0])
        self.assertEqual(413, self.request("x", **{"Content-Length": str(2 << 20)})[0])
        self.assertIn("is not for other machines", self.request("nodes\n--pid=1")[1])
        self.assertIn("the question is none of",
                      self.ask("attach", hosts=self.urls[:1], check=t.FAILED).stderr)

    def test_statements_only_read(self):
        for sql in "ATTACH '%s' AS x" % self.path("x.db"), "DELETE FROM memory_usage":
            done = self.ask("query", "--each", sql, hosts=self.urls[:1])
            self.assertNotEqual("", done.stderr)
        self.assertFalse(os.path.exists(self.path("x.db")))

    def test_what_does_not_listen(self):
        os.chmod(self.path("token"), 0o600)
        for options, said in ((["--listen", "0.0.0.0:0"], "needs --token-file"),
                              (["--listen", "0.0.0.0:0", "--token-file", self.path("token")], "beyond loopback"),
                              (["--listen", "::1:7070", "--token-file", self.path("token")], "put an IPv6 address in brackets: [::1]:7070"),
                              (["--listen", "[10.0.0.1]:7070", "--token-file", self.path("token")], "10.0.0.1 is no IPv6 address"),
                              (["--listen", "[fe80::1%nothing]:7070", "--token-file", self.path("token")], "no IPv6 address"),
                              (["--listen", "[::2]:0", "--token-file", self.path("token")], "beyond loopback"),
                              (["--listen", "localhost", "--token-file", self.path("token")], "ADDRESS:PORT"),
                              (["--listen", "127.0.0.1:0", "--port", "0"], "not two of them"),
                              (["--listen", "127.0.0.1:0", "--token-file", self.path("token"), "--allow-eval"], "for this machine alone"),
                              (["--tls-key", self.path("node.key")], "go with --listen")):
            self.assertIn(said, t.probing("serve", *options, check=t.USAGE).stderr)
        for name in "loose", "short":
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write("a token of this test\n" if name == "loose" else "short\n")
        os.chmod(self.path("loose"), 0o644)
        os.chmod(self.path("short"), 0o600)
        self.assertIn("can be read or written by others", t.probing("serve", "--listen", "127.0.0.1:0", "--token-file",
                                                                    self.path("loose"), check=t.USAGE).stderr)
        self.assertIn("must have 16 to 256", t.probing("serve", "--listen", "127.0.0.1:0", "--token-file", self.path("short"),
                                                       check=t.USAGE).stderr)
        done = t.probing("serve", "--listen", "127.0.0.1:0", "--token-file", self.path("token"), "--tls-certificate",
                         self.path("token"), "--tls-key", self.path("node.key"), check=t.BAD_DATA)
        self.assertIn("are not a certificate and its key", done.stderr)

    def test_more_requests_than_are_taken(self):
        """Guesses of the token are refused by and by; whoever has it is still answered."""
        with serving("--listen", "127.0.0.1:0", *self.served) as (_, url):
            address = url[len("https://"):].split(":")
            context = ssl.create_default_context(cafile=self.path("ca.pem"))
            connection = http.client.HTTPSConnection(address[0], int(address[1]), timeout=20, context=context)
            seen = collections.Counter()
            while 429 not in seen:
                connection.request("POST", "/cluster", "nodes", {"Authorization": "Bearer x"})
                answer = connection.getresponse()
                said = answer.read().decode()
                seen[answer.status] += 1
            connection.close()
            self.assertGreaterEqual(seen[401], 16)
            self.assertIn("too many requests: the next one is taken in ", said)
            self.assertEqual([self.rank.pid], [node["pid"] for node in self.nodes(hosts=[url])])

    def test_more_connections_than_are_taken(self):
        """Of one address 120: the next one is closed at once, and another address is served."""
        n = 120
        with serving("--listen", "0.0.0.0:0", *self.served) as (process, url):
            port = int(url.rsplit(":", 1)[1])
            with contextlib.ExitStack() as stack:
                os.kill(process.pid, signal.SIGSTOP)  # they are in the queue, and are accepted in a row
                try:
                    sockets = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 20)) for _ in range(n + 1)]
                finally:
                    began = time.monotonic()
                    os.kill(process.pid, signal.SIGCONT)
                closed = select.select(sockets, [], [], 60)[0]
                self.assertIn(sockets[-1], closed)
                if time.monotonic() - began < 8:  # later, silence closes the others, too
                    self.assertEqual([sockets[-1]], closed)
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(b"", sockets[-1].recv(1))
                other = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, source_address=("127.0.0.2", 0),
                                                    context=ssl.create_default_context(cafile=self.path("ca.pem")))
                stack.callback(other.close)
                other.request("POST", "/cluster", "nodes\n--job=%s" % JOB, {"Authorization": "Bearer a token of this test"})
                self.assertEqual(200, other.getresponse().status)

    def test_a_longer_answer_than_is_sent(self):
        """A text of 34 MB, of which 32 MiB would pass. On a busy machine, a rank makes it in more than the ten seconds that it has by default."""
        done = self.ask("query", "--each", "--timeout", "50s", "SELECT printf('%.*c', 34000000, 'x') AS x", hosts=self.urls[:1])
        self.assertIn("the answer is longer than 32 MiB: ask for less", done.stderr)
        self.assertEqual([self.rank.pid], [node["pid"] for node in self.nodes(hosts=self.urls[:1])])

    def test_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6) as free:
                free.bind(("::1", 0))
        except OSError as error:
            raise unittest.SkipTest("no IPv6 on loopback: %s" % error)
        with serving("--listen", "[::1]:0", "--token-file", self.path("token")) as (_, url):
            self.assertRegex(url, r"^http://\[::1\]:\d+$")
            self.assertEqual([self.rank.pid], [node["pid"] for node in self.nodes(hosts=[url])])
        with serving("--listen", "[::]:0", *self.served) as (_, url):  # IPv4, too
            port = url.rsplit(":", 1)[1]
            both = ["https://127.0.0.1:" + port, "https://[::1]:" + port]
            self.assertEqual([self.rank.pid] * 2, [node["pid"] for node in self.nodes(hosts=both)])
            asked = self.nodes("--fan-out", "1", hosts=both)  # the first one asks the second
            self.assertEqual(sorted(both), sorted(node["addr"] for node in asked))

    def test_loopback_in_the_clear(self):
        with serving("--listen", "127.0.0.1:0", "--token-file", self.path("token")) as (_, url):
            self.assertTrue(url.startswith("http://127.0.0.1:"))
            self.assertEqual([self.rank.pid], [node["pid"] for node in self.nodes(hosts=[url])])
        address = "http://[::1]:9"  # no list in brackets
        self.assertEqual([address], [node["addr"] for node in self.nodes(hosts=[address])])
        for url in "http://10.9.9.9:7070", "http://127.0.0.1.a:7070", "http://127.0.0.1@a:7070", "https://a:b@c":
            self.assertIn("others on the network could read the token", self.ask("nodes", hosts=[url], check=t.USAGE).stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
