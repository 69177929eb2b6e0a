# SPDX-License-Identifier: MIT
"""probing serve: each path on a recording and on a process, who may ask, limits, and how it ends."""
import contextlib
import csv
import functools
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse
import xml.etree.ElementTree

import probing_test as t
from probing_test import probing

sys.path.insert(0, os.path.join(t.ROOT, "tests", "browser"))
import devtools  # noqa: E402

TOKEN = "a token of the test"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
HALF_OPEN = 1000
MARKUP = "<img src=x onerror=alert(1)>"
LONG_S = 600  # of a target that many tests use, or a browser: longer than they take on a busy machine


@contextlib.contextmanager
def serving(*arguments, launcher=(), **environment):
    """The process, and what it printed."""
    process = subprocess.Popen([*launcher, t.BINARY, "serve", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **environment})
    try:
        link = process.stdout.readline().strip()
        if not link:
            message = process.stderr.read()
            if "without libmicrohttpd" in message:
                raise unittest.SkipTest("built without libmicrohttpd")
            raise AssertionError(message)
        yield process, link
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        finally:
            process.kill()
            process.communicate()


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def misfits(value, schema, document, where="$"):
    """Where a value is not as a schema of OpenAPI 3.0 has it."""
    if "$ref" in schema:
        return misfits(value, functools.reduce(dict.__getitem__, schema["$ref"].split("/")[1:], document), document, where)
    if value is None:
        return [] if schema.get("nullable") else [where + " is null"]
    kind = TYPES.get(schema.get("type"), object)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object)):
        return ["%s is no %s" % (where, schema["type"])]
    if value not in schema.get("enum", [value]):
        return ["%s is %r" % (where, value)]
    if isinstance(value, list):
        return [found for i, one in enumerate(value) for found in misfits(one, schema.get("items", {"nullable": True}), document, "%s[%d]" % (where, i))]
    if not isinstance(value, dict):
        return []
    missing = ["%s has no %s" % (where, name) for name in schema.get("required", []) if name not in value]
    return missing + [found for name, one in schema.get("properties", {}).items() if name in value
                      for found in misfits(value[name], one, document, where + "." + name)]


def commands_of(process):
    """The verbs that answer: children of any thread."""
    tasks = "/proc/%d/task" % process.pid
    found = []
    for tid in os.listdir(tasks):
        with contextlib.suppress(FileNotFoundError), open("%s/%s/children" % (tasks, tid)) as children:
            found += [int(pid) for pid in children.read().split()]
    return found


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Served(t.Case):
    """One server with a recording and a process, for all tests; and one with little time for a query: the start of its command counts."""

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(t.scratch())
            target = stack.enter_context(t.fixture("demo.py", "--seconds", LONG_S))
            t.record_cpu(target, 0.5, 199, "train.db")
            shutil.copy("train.db", MARKUP + ".db")
            words = ("train.db", str(target.pid), MARKUP + ".db", "--limit", "5")
            process, link = stack.enter_context(serving(*words, "--timeout", "60s", PROBING_AUTH_TOKEN=TOKEN))
            _, hasty = stack.enter_context(serving(*words, "--timeout", "1s", PROBING_AUTH_TOKEN=TOKEN))
            cls.pid, cls.server, cls.link, cls.folder = str(target.pid), process, link, folder
            cls.port, cls.hasty = (int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=[0-9a-f]{64}", one).group(1)) for one in (link, hasty))
            cls.addClassCleanup(stack.pop_all().close)

    def ask(self, path, method="GET", body=None, token=TOKEN, port=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
        self.addCleanup(connection.close)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers["Authorization"] = "Bearer " + token
        connection.request(method, path, body, headers)
        return Answer(connection.getresponse())

    def query(self, sql, target="train.db", **headers):
        return self.ask("/query?target=" + target, "POST", sql, **headers)

    # ---- Paths ----

    def test_query_of_a_recording(self):
        answer = self.query("SELECT pid, command FROM run")
        self.assertEqual((200, "application/json"), (answer.status, answer.headers["Content-Type"]))
        wanted = json.loads(probing("sql", os.path.join(self.folder, "train.db"), "SELECT pid, command FROM run", "-f", "json",
                                    check=t.OK).stdout)
        self.assertEqual(wanted, answer.json)
        self.assertEqual(self.pid, str(answer.json[0]["pid"]))

    def test_query_of_a_process_as_csv(self):
        answer = self.query("SELECT func, depth FROM python.backtrace WHERE func = '<module>'", self.pid, Accept="text/csv")
        self.assertEqual((200, "text/csv; charset=utf-8"), (answer.status, answer.headers["Content-Type"]))
        rows = list(csv.DictReader(answer.text.splitlines()))
        self.assertIn("<module>", [row["func"] for row in rows])

    def test_rows_are_limited_and_that_is_said(self):
        answer = self.query("SELECT value FROM generate_series(1, 100)")
        if answer.status == 400:  # SQLite without that extension
            answer = self.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT i FROM n")
        self.assertEqual(5, len(answer.json))
        self.assertIn("5", answer.headers["Probing-Note"])

    def test_nothing_can_be_changed_or_opened(self):
        before = open(os.path.join(self.folder, "train.db"), "rb").read()
        other = os.path.join(self.folder, MARKUP + ".db")
        for sql in ("DELETE FROM run", "DROP TABLE run", "ATTACH '%s' AS other" % other, "ATTACH '/tmp/x' AS x",
                    "PRAGMA writable_schema = 1", "SELECT load_extension('x')", "VACUUM INTO '/tmp/x'"):
            with self.subTest(sql):
                answer = self.query(sql)
                self.assertEqual(400, answer.status, answer.text)
                self.assertTrue(answer.error)
        self.assertEqual(before, open(os.path.join(self.folder, "train.db"), "rb").read())

    def test_wrong_queries_are_answered_with_a_sentence(self):
        self.assertIn("no such table", self.query("SELECT * FROM xyzzy").error)
        self.assertEqual(400, self.query("").status)
        self.assertEqual(400, self.query("SELECT 1\0").status)
        self.assertEqual(415, self.query('{"expr": "SELECT 1"}', Content_Type="application/json").status)
        self.assertEqual(404, self.query("SELECT 1", "/etc/passwd").status)
        self.assertEqual(200, self.query("-- --write\nSELECT 1").status)

    def test_an_endless_query_ends_at_its_time(self):
        start = time.monotonic()
        answer = self.query(ENDLESS, port=self.hasty)
        self.assertEqual(504, answer.status, answer.text)
        self.assertIn("longer than 1 s", answer.error)
        self.assertLess(time.monotonic() - start, 20)

    def test_overview(self):
        recording, process, hostile = self.ask("/apis/overview").json["targets"]
        self.assertEqual(("train.db", "recording"), (recording["target"], recording["kind"]))
        self.assertIn("samples", recording["info"])
        self.assertEqual(int(self.pid), recording["info"]["runs"][0]["pid"])
        self.assertEqual((self.pid, "process", int(self.pid), True),
                         (process["target"], process["kind"], process["pid"], process["running"]))
        self.assertIn("demo.py", process["command"])
        self.assertRegex(process["python"], r"\d\.\d+")
        self.assertEqual(MARKUP + ".db", hostile["target"])

    def test_flame_graphs(self):
        for path in ("/apis/flamegraph", "/apis/flamegraph?seconds=3&target=" + self.pid):
            with self.subTest(path):
                answer = self.ask(path)
                self.assertEqual((200, "image/svg+xml"), (answer.status, answer.headers["Content-Type"]), answer.text[:300])
                titles = [one.text for one in xml.etree.ElementTree.fromstring(answer.text).iter("{http://www.w3.org/2000/svg}title")]
                self.assertTrue(any("demo.py" in (title or "") for title in titles), titles[:5])
                self.assertIn("sandbox allow-scripts;", answer.headers["Content-Security-Policy"])
        self.assertEqual(400, self.ask("/apis/flamegraph?format=pprof").status)
        self.assertEqual(400, self.ask("/apis/flamegraph?seconds=1e9&target=" + self.pid).status)

    def test_callstack(self):
        path = "/apis/pythonext/callstack?target=" + self.pid
        text = self.ask(path)
        self.assertEqual((200, "text/plain; charset=utf-8"), (text.status, text.headers["Content-Type"]))
        self.assertIn("demo.py", text.text)
        self.assertIn("demo.py", self.ask(path + "&tid=" + self.pid).text)
        self.assertEqual(int(self.pid), self.ask(path, Accept="application/json").json["pid"])
        self.assertEqual(400, self.ask(path + "&tid=-1").status)
        self.assertIn(self.ask(path + "&tid=1").status, (400, 404))
        self.assertEqual(400, self.ask("/apis/pythonext/callstack").status)

    def stayers(self):
        """The verbs that wait for the next question about stacks."""
        found = []
        for pid in commands_of(self.server):
            with contextlib.suppress(OSError), open("/proc/%d/cmdline" % pid, "rb") as words:
                if words.read().split(b"\0")[1:3] == [b"backtrace", b"--requests"]:
                    found.append(pid)
        return found

    def test_callstacks_for_a_page_come_from_one_verb_that_stays(self):
        path = "/apis/pythonext/callstack?target=" + self.pid
        first = self.ask(path, Accept="application/json").json
        (stayer,) = self.stayers()
        again = self.ask(path + "&tid=" + self.pid, Accept="application/json").json
        self.assertEqual([stayer], self.stayers())
        self.assertEqual([int(self.pid)], [thread["tid"] for thread in again["threads"]])
        wanted = json.loads(probing("backtrace", self.pid, "--json", check=t.OK).stdout)
        for one in (first, again):
            self.assertEqual(list(wanted), list(one))
            self.assertEqual(wanted["command"], one["command"])
            self.assertEqual(list(wanted["threads"][0]), list(one["threads"][0]))
        self.assertEqual(404, self.ask(path + "&tid=4194304", Accept="application/json").status)
        os.kill(stayer, signal.SIGKILL)
        self.assertEqual(int(self.pid), self.ask(path, Accept="application/json").json["pid"])  # by another one
        self.assertNotEqual([stayer], self.stayers())

    def test_nodes(self):
        (node,) = self.ask("/apis/nodes").json
        self.assertEqual((int(self.pid), "running"), (node["pid"], node["status"]))

    def test_openapi_describes_each_path(self):
        """What it describes is there; the source's table of paths has no more; parameters that it does not allow are refused."""
        described = self.ask("/openapi.json").json
        self.assertEqual("3.0", described["openapi"][:3])
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                with self.subTest(path=path, method=method):
                    self.assertEqual(405, self.ask(path, "DELETE").status)
                    self.assertEqual(200 if operation.get("security") == [] else 401, self.ask(path, method.upper(), token=None).status)
                    for parameter in operation["parameters"]:
                        if "enum" in parameter["schema"]:
                            self.assertEqual(400, self.ask("%s?%s=xyzzy" % (path, parameter["name"]), method.upper(), "SELECT 1" if method == "post" else None)
                                             .status, parameter)
                        elif "minimum" in parameter["schema"] and method == "get":
                            number = parameter["schema"]["minimum"] - 1
                            self.assertEqual(400, self.ask("%s?target=%s&%s=%d" % (
                                path, "train.db" if path.endswith("timeline") else self.pid, parameter["name"], number)).status, parameter)
        source = os.path.join(t.ROOT, "src", "serve", "answers.c")
        if not os.path.exists(source):
            self.skipTest("the source is not here")
        with open(source) as file:
            table = re.findall(r'\{ "(GET|POST)", "(/[^"]*)", (?:true|false), answer_', file.read())
        self.assertEqual({(method, path) for method, path in table} | {("GET", "/")},
                         {(method.upper(), path) for path, methods in described["paths"].items() for method in methods})

    def test_metrics(self):
        answer = self.ask("/metrics")
        self.assertEqual(200, answer.status, answer.text)
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        values = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
        self.assertGreater(float(values['probing_process_resident_bytes{pid="%s"}' % self.pid]), 1e6)
        self.assertGreater(float(values["probing_machine_memory_bytes"]), 1e8)
        for name in values:
            self.assertIn("# TYPE %s " % name.split("{")[0], answer.text)

    def test_no_code_is_run(self):
        answer = self.ask("/apis/pythonext/eval", "POST", "print(1)")
        self.assertEqual(403, answer.status)
        self.assertIn("no code is run over HTTP", answer.error)

    def test_other_paths_and_methods(self):
        self.assertEqual(404, self.ask("/xyzzy").status)
        self.assertEqual(404, self.ask("/../../etc/passwd").status)
        self.assertEqual(405, self.ask("/query").status)
        self.assertEqual(405, self.ask("/", "DELETE").status)

    # ---- Who may ask ----

    def test_only_health_is_for_everybody(self):
        self.assertEqual("ok", self.ask("/health", token=None).json["status"])
        for path in ("/", "/serve/page/main.js", "/metrics", "/apis/overview", "/apis/flamegraph", "/xyzzy"):
            for token in (None, "wrong", TOKEN[:-1], TOKEN + "x", ""):
                with self.subTest(path=path, token=token):
                    answer = self.ask(path, token=token)
                    self.assertEqual((401, "Bearer"), (answer.status, answer.headers["WWW-Authenticate"]))
        self.assertEqual(401, self.ask("/query", "POST", "SELECT 1", token="wrong").status)

    def test_a_foreign_host_or_origin_is_refused(self):
        for host in ("evil.example", "evil.example:%d" % self.port, "127.0.0.1", "127.0.0.1:1"):
            self.assertEqual(403, self.ask("/health", Host=host).status, host)
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
            self.assertEqual(403, self.ask("/query", "POST", "SELECT 1", Origin=origin).status, origin)
        self.assertEqual(200, self.query("SELECT 1", Origin="http://127.0.0.1:%d" % self.port).status)

    def test_it_listens_on_loopback_only(self):
        wanted = "%04X" % self.port
        with open("/proc/net/tcp") as table:
            listening = [line.split()[1] for line in table if line.split()[3] == "0A" and line.split()[1].endswith(":" + wanted)]
        self.assertEqual(["0100007F:" + wanted], listening)

    def test_all_answers_forbid_what_they_do_not_need(self):
        for path in ("/", "/serve/page/style.css", "/serve/page/main.js", "/health", "/apis/overview", "/xyzzy"):
            headers = self.ask(path).headers
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"], path)
            self.assertNotIn("unsafe", headers["Content-Security-Policy"], path)
            self.assertEqual(("nosniff", "no-store", "no-referrer"), (
                headers["X-Content-Type-Options"], headers["Cache-Control"], headers["Referrer-Policy"]), path)

    def test_the_page_asks_nobody_else(self):
        """All its files: what each imports, or refers to, is served too."""
        left, seen = ["/"], set()
        while left:
            path = left.pop()
            seen.add(path)
            answer = self.ask(path)
            self.assertEqual(200, answer.status, path)
            if not path.endswith(".txt"):  # licences
                self.assertEqual([], re.findall(r"https?://(?!www\.w3\.org/2000/svg)", answer.text), path)
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
                self.assertNotIn(word, answer.text, path)
            here = urllib.parse.urljoin("/", path)
            found = [urllib.parse.urljoin(here, name) for name in re.findall(r'(?:import\(|import |from )"(\.[^"]+)"', answer.text)]
            if path == "/":
                found += re.findall(r'(?:src|href)="(/[^"]+)"', answer.text)
            left += [name for name in found if name not in seen and name not in left]
        self.assertLess({"/", "/serve/page/main.js", "/serve/page/style.css", "/export/html/dom.js", "/serve/page/libraries/editor.js",
                         "/serve/page/libraries/plot.js", "/serve/page/libraries/licences.page.txt"}, seen)
        self.assertEqual(405, self.ask("/serve/page/main.js", "POST", "x").status)

    # ---- Limits ----

    def test_too_large_a_body_is_refused_unread(self):
        self.assertEqual(200, self.query("SELECT 1 --" + "x" * 500000).status)
        for body, status in ((b"Content-Length: 99999999999", b" 413 "), (b"Transfer-Encoding: chunked", b" 411 ")):
            with socket.create_connection(("127.0.0.1", self.port), 20) as client:
                client.sendall(b"POST /query HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n"
                               % (self.port, TOKEN.encode(), body))
                self.assertIn(status, client.recv(100))
        self.assertEqual(401, self.ask("/query", "POST", "x" * 900000, token="wrong").status)  # read to its end
        self.assertEqual(431, self.ask("/health", X="x" * 40000).status)

    def test_clients_that_do_nothing_hold_up_nobody(self):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= limits[1] < 2 * HALF_OPEN:
            self.skipTest("may not open %d files" % (2 * HALF_OPEN))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2 * HALF_OPEN), limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection(("127.0.0.1", self.port), 20)) for _ in range(HALF_OPEN)]
            for i, client in enumerate(clients):
                client.sendall(b"POST /query HTTP/1.1\r\nHost: 127"[:i % 30])
            start = time.monotonic()
            self.assertEqual(200, self.query("SELECT 1").status)
            self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(200, self.query("SELECT 1").status)

    def test_a_body_of_a_gigabyte_is_refused_unread(self):
        """Its client sends on; others are answered meanwhile."""
        with socket.create_connection(("127.0.0.1", self.port), 20) as client:
            client.sendall(b"POST /query HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                           % (self.port, TOKEN.encode(), 1 << 30))
            sent = 0
            with contextlib.suppress(OSError):  # the server has closed it
                while sent < 1 << 30:
                    sent += client.send(b"x" * (1 << 20))
                    if sent == 1 << 20:
                        self.assertEqual(200, self.query("SELECT 1").status)
            self.assertLess(sent, 64 << 20)  # what sockets keep
        self.assertEqual(200, self.query("SELECT 1").status)

    def test_many_endless_queries_leave_the_rest_alone(self):
        statuses, end = [], time.monotonic() + 60

        def ask_on():
            """Until one is refused: that takes as many at a time as may run, and threads start when they can."""
            while 503 not in statuses and time.monotonic() < end:
                statuses.append(self.query(ENDLESS, port=self.hasty).status)

        threads = [threading.Thread(target=ask_on) for _ in range(12)]
        for thread in threads:
            thread.start()
        self.assertEqual("ok", self.ask("/health", port=self.hasty).json["status"])
        for thread in threads:
            thread.join()
        self.assertEqual({503, 504}, set(statuses))
        self.assertEqual(200, self.ask("/apis/pythonext/callstack?target=" + self.pid, port=self.hasty).status)  # a command, too, with 20 s

    def test_curl(self):
        t.need_program("curl")
        done = subprocess.run(["curl", "-sS", "-H", "Authorization: Bearer " + TOKEN, "-d", "SELECT 40 + 2 AS n",
                               "http://localhost:%d/query" % self.port], capture_output=True, text=True, check=True)
        self.assertEqual([{"n": 42}], json.loads(done.stdout))


class Long(t.Case):
    """Answers of any length, and queries that want more memory than there is for them."""

    LIMIT = 300000
    ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "

    @classmethod
    def setUpClass(cls):
        recording = os.path.join(t.FIXTURES, "recordings", "version_1.db")
        with contextlib.ExitStack() as stack:
            _, link = stack.enter_context(serving(recording, "--timeout", "600s", "--limit", str(cls.LIMIT), "--memory", "32M", PROBING_AUTH_TOKEN=TOKEN))
            cls.place = link.split("/")[2]
            cls.addClassCleanup(stack.pop_all().close)

    def query(self, sql, parameters="", **headers):
        connection = http.client.HTTPConnection(self.place, timeout=600)
        self.addCleanup(connection.close)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", "/query" + parameters, sql, {"Authorization": "Bearer " + TOKEN, **headers})
        return Answer(connection.getresponse())

    def raw(self, sql):
        """All bytes of a streamed answer, as they come."""
        host, port = self.place.split(":")
        with socket.create_connection((host, int(port)), 600) as client:
            client.sendall(("POST /query?stream=1 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                            % (self.place, TOKEN, len(sql), sql)).encode())
            with client.makefile("rb") as answer:
                return answer.read()

    def test_a_stream_has_all_rows(self):
        """More than an answer may have otherwise."""
        sql = self.ROWS % 200000 + "SELECT i, printf('%0200d', i) AS text FROM n"  # 44 MB
        self.assertEqual(413, self.query(sql, Accept="text/csv").status)
        answer = self.query(sql, "?stream=1", Accept="text/csv")
        self.assertEqual((200, "text/csv; charset=utf-8", "chunked"),
                         (answer.status, answer.headers["Content-Type"], answer.headers["Transfer-Encoding"]))
        lines = answer.body.split(b"\r\n")
        self.assertEqual((200002, b"200000,%0200d" % 200000), (len(lines), lines[-2]))

    def test_a_cut_stream_says_so_at_its_end(self):
        body = self.raw(self.ROWS % (self.LIMIT + 1) + "SELECT i FROM n").split(b"\r\n\r\n", 1)[1]
        self.assertTrue(body.endswith(b"\r\n\r\n"))
        self.assertIn(b"\r\n0\r\nProbing-Note: there are more rows than the %d" % self.LIMIT, body[-200:])

    def test_a_short_stream_is_an_answer_as_any_other(self):
        answer = self.query("SELECT 1 AS a", "?stream=1")
        self.assertEqual((200, [{"a": 1}]), (answer.status, answer.json))
        self.assertIsNone(answer.headers["Transfer-Encoding"])
        self.assertEqual(400, self.query("SELECT * FROM xyzzy", "?stream=1").status)

    def test_a_failure_amid_a_stream_cuts_it(self):
        sql = self.ROWS % 200000 + "SELECT CASE WHEN i < 200000 THEN i ELSE abs(-9223372036854775807 - i / 200000) END AS value FROM n"
        with self.assertRaises(http.client.IncompleteRead):
            self.query(sql, "?stream=1")
        self.assertEqual(400, self.query(sql).status)

    ENDLESS_ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"

    def test_a_client_that_leaves_a_stream_ends_its_query(self):
        host, port = self.place.split(":")

        def streams():
            with socket.create_connection((host, int(port)), 600) as client:
                client.sendall(("POST /query?stream=1 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (
                    self.place, TOKEN, len(self.ENDLESS_ROWS), self.ENDLESS_ROWS)).encode())
                return b"200 OK" in client.recv(100)

        for _ in range(10):  # more than may run at a time; those before take a moment to end
            t.wait_until(streams, 30, "a stream")
        t.wait_until(lambda: self.query("SELECT 1").status == 200, 30, "an answer")

    def test_arrow(self):
        answer = self.query("SELECT 1 AS a", Accept="application/vnd.apache.arrow.stream")
        self.assertEqual((200, "application/vnd.apache.arrow.stream"), (answer.status, answer.headers["Content-Type"]))
        done = subprocess.run([t.BINARY, "sql", "-f", "arrow", os.path.join(t.FIXTURES, "recordings", "version_1.db"), "SELECT 1 AS a"],
                              capture_output=True, check=True)
        self.assertEqual(done.stdout, answer.body)  # which test_arrow.py reads

    def test_a_query_that_wants_gigabytes_ends_in_a_sentence(self):
        for sql in ("SELECT length(zeroblob(200000000) || 'x')",
                    self.ROWS % 10000000 + "SELECT length(group_concat(printf('%01000d', i))) FROM n",
                    self.ROWS % 10000000 + "SELECT count(*) FROM (SELECT DISTINCT printf('%01000d', i) FROM n)"):  # sorts in a file
            with self.subTest(sql):
                answer = self.query(sql)
                self.assertEqual((400, "the query needs more memory than the 32 MiB that it may take (--memory)"), (answer.status, answer.error))
                self.assertEqual(200, self.query("SELECT count(*) FROM frame").status)


class Alone(t.Case):
    """Servers of their own, of a process."""

    def setUp(self):
        super().setUp()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        stack.enter_context(t.scratch())
        self.target = stack.enter_context(t.fixture("demo.py", "--seconds", LONG_S))
        self.pid = str(self.target.pid)

    def get(self, link, path, **headers):
        connection = http.client.HTTPConnection(link.split("/")[2], timeout=30)
        self.addCleanup(connection.close)
        connection.request("GET", path, None, headers)
        return Answer(connection.getresponse())

    def test_the_link_opens_one_browser(self):
        with serving(self.pid, PROBING_AUTH_TOKEN="") as (process, link):
            token = link.split("=")[1]
            path = "/" + link.rsplit("/", 1)[1]
            self.assertEqual(200, self.get(link, "/metrics", Authorization="Bearer " + token).status)
            self.assertEqual(403, self.get(link, path[:-1] + ("a" if path[-1] != "a" else "b")).status)
            first = self.get(link, path)
            self.assertEqual((303, "/"), (first.status, first.headers["Location"]))
            cookie, *attributes = first.headers["Set-Cookie"].split("; ")
            self.assertEqual(["HttpOnly", "SameSite=Strict", "Path=/"], attributes)
            self.assertNotIn(token, cookie)
            page = self.get(link, "/", Cookie=cookie)
            self.assertEqual(200, page.status)
            self.assertIn("<title>probing</title>", page.text)
            self.assertEqual(303, self.get(link, path, Cookie=cookie).status)
            self.assertEqual(401, self.get(link, "/", Cookie=cookie, **{"Sec-Fetch-Site": "cross-site"}).status)
            second = self.get(link, path)
            self.assertEqual(403, second.status)
            self.assertIsNone(second.headers["Set-Cookie"])
            self.assertEqual(401, self.get(link, "/metrics", Authorization="Bearer " + token).status)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
            self.assertNotIn(token, out + err)  # the link was the only line that had it

    def test_ctrl_c_ends_it_amid_requests(self):
        with serving(self.pid, PROBING_AUTH_TOKEN=TOKEN) as (process, link):
            statuses = []
            path = "/apis/flamegraph?seconds=50"
            thread = threading.Thread(target=lambda: statuses.append(self.cut(link, path)))
            thread.start()
            t.wait_until(lambda: commands_of(process), 20, "a command")
            commands = commands_of(process)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            self.assertEqual(0, process.wait(20))
            self.assertLess(time.monotonic() - start, 15)
            thread.join()
            self.assertEqual([], [pid for pid in commands if os.path.exists("/proc/%d" % pid)])
            self.assertIn(statuses[0], (503, None))

    def test_a_command_ends_with_its_client(self):
        with serving(self.pid, PROBING_AUTH_TOKEN=TOKEN) as (process, link):
            host, port = link.split("/")[2].split(":")
            with socket.create_connection((host, int(port)), 20) as client:
                client.sendall(b"GET /apis/flamegraph?seconds=50 HTTP/1.1\r\nHost: %s:%s\r\nAuthorization: Bearer %s\r\n\r\n"
                               % (host.encode(), port.encode(), TOKEN.encode()))
                t.wait_until(lambda: commands_of(process), 20, "a command")
            t.wait_until(lambda: not commands_of(process), 15, "its end")
            self.assertEqual("ok", self.get(link, "/health").json["status"])

    def cut(self, link, path):
        try:
            return self.get(link, path, Authorization="Bearer " + TOKEN).status
        except (http.client.HTTPException, OSError):
            return None

    def test_a_process_that_has_ended_is_gone(self):
        with serving(self.pid, PROBING_AUTH_TOKEN=TOKEN) as (_, link):
            os.kill(int(self.pid), signal.SIGKILL)
            self.target.process.wait()
            authorization = "Bearer " + TOKEN
            answer = self.get(link, "/apis/pythonext/callstack", Authorization=authorization)
            self.assertEqual((410, "process %s has ended" % self.pid), (answer.status, answer.error))
            self.assertFalse(self.get(link, "/apis/overview", Authorization=authorization).json["targets"][0]["running"])

    def test_a_unix_socket_is_for_its_user(self):
        with serving(self.pid, "--socket", "here.sock") as (process, path):
            self.assertEqual("here.sock", path)
            self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))
            connection = http.client.HTTPConnection("localhost")
            self.addCleanup(connection.close)
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(path)
            connection.request("POST", "/query", "SELECT count(*) AS n FROM process.envs")
            self.assertGreater(Answer(connection.getresponse()).json[0]["n"], 0)
            connection.request("GET", "/health", headers={"Origin": "http://evil.example"})
            self.assertEqual(403, Answer(connection.getresponse()).status)
            again = probing("serve", self.pid, "--socket", "here.sock", check=t.NO_OUTPUT)
            self.assertIn("here.sock exists", again.stderr)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(0, process.wait(20))
            self.assertFalse(os.path.exists(path))

    def test_the_page_in_a_browser(self):
        browser = devtools.find_browser()
        if browser is None:
            self.skipTest("there is no Chromium here")
        t.record_cpu(self.target, 0.5, 199, MARKUP + ".db")
        with serving(MARKUP + ".db", self.pid) as (_, link), devtools.opened(browser) as page:
            page.send("Page.navigate", url=link)
            page.until("document.querySelectorAll('#overview tbody tr').length === 2")
            self.assertEqual("/", page.run("location.pathname + location.search"))
            self.assertEqual("", page.run("document.cookie"))  # HttpOnly
            self.assertEqual(MARKUP + ".db", page.run("document.querySelector('#overview td').textContent"))
            self.assertEqual(2, page.run("[...document.querySelectorAll('#overview td:last-child')].filter("
                                         "one => one.textContent.includes('demo.py')).length"))
            page.run("location.hash = '#view=flame'")
            page.until("document.querySelector('.flame .frame:not([hidden]) iframe:not(.loading)')"
                       " && document.getElementById('graph-note').textContent === ''")
            self.assertEqual([200], page.run("performance.getEntriesByType('resource').filter("
                                             "one => one.initiatorType === 'iframe').map(one => one.responseStatus)"))
            page.click("[...document.querySelectorAll('nav a')].find(one => one.textContent === 'Tables')")
            page.until("!!document.getElementById('sql') && document.getElementById('sql').value")
            page.run("document.getElementById('target').selectedIndex = 1;"
                     "document.getElementById('target').dispatchEvent(new Event('change'))")
            page.run("location.hash += '&view=backtrace'")
            page.until("document.getElementById('stack') && document.getElementById('stack').textContent.includes('demo.py')")
            self.assertEqual(0, page.run("document.querySelectorAll('img').length"))
            unnamed = "[...document.querySelectorAll('button, select, input, textarea, iframe')].filter(" \
                      "one => !(one.textContent || one.title || one.labels && one.labels.length)).length"
            self.assertEqual(0, page.run(unnamed))
            origin = link.split("/?")[0] + "/"
            self.assertEqual([], [url for url in page.fetched if not url.startswith((origin, "data:"))])
            self.assertEqual([], page.errors)
            page.prefer(color_scheme="dark", reduced_motion="reduce")
            self.assertNotEqual("rgb(255, 255, 255)", page.run("getComputedStyle(document.body).backgroundColor"))

    def test_answers_fit_their_schema(self):
        t.need_perf()
        t.record_cpu(self.target, 0.5, 199, "a.db")
        shutil.copy("a.db", "b.db")
        with serving("a.db", "b.db", self.pid, "--timeout", "600s", PROBING_AUTH_TOKEN=TOKEN) as (_, link):
            def ask(path, method="GET"):
                connection = http.client.HTTPConnection(link.split("/")[2], timeout=600)
                self.addCleanup(connection.close)
                connection.request(method, path, "SELECT 1 AS a" if method == "POST" else None,
                                   {"Authorization": "Bearer " + TOKEN, "Accept": "application/json"})
                return Answer(connection.getresponse())

            described = ask("/openapi.json").json
            for path, parameters, method in (("/apis/overview", "", "GET"), ("/apis/nodes", "", "GET"), ("/apis/backtrace", "", "GET"),
                                             ("/apis/timeline", "", "GET"), ("/apis/compare", "?base=b.db", "GET"), ("/health", "", "GET"),
                                             ("/apis/pythonext/callstack", "?target=" + self.pid, "GET"), ("/query", "", "POST"),
                                             ("/apis/ranks/query", "", "POST")):
                with self.subTest(path):
                    answer = ask(path + parameters, method)
                    self.assertEqual(200, answer.status, answer.text[:300])
                    schema = described["paths"][path][method.lower()]["responses"]["200"]["content"]["application/json"]["schema"]
                    self.assertEqual([], misfits(answer.json, schema, described))
            self.assertEqual([], misfits(ask("/xyzzy").json, described["components"]["schemas"]["error"], described))

    def test_a_full_disk(self):
        """A sort that wants a file ends in a sentence; what needs no file goes on."""
        t.need_root()
        os.mkdir("small")
        launcher = ("unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=64k tmpfs small && exec \"$@\"", "sh")
        done = subprocess.run([*launcher, "true"], stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            self.skipTest("may not mount a tmpfs: " + done.stderr.strip())
        recording = os.path.join(t.FIXTURES, "recordings", "version_1.db")
        with serving(recording, self.pid, launcher=launcher, PROBING_AUTH_TOKEN=TOKEN, SQLITE_TMPDIR=os.path.abspath("small")) as (_, link):
            def query(sql, target):
                connection = http.client.HTTPConnection(link.split("/")[2], timeout=60)
                self.addCleanup(connection.close)
                connection.request("POST", "/query?target=" + urllib.parse.quote(target), sql, {"Authorization": "Bearer " + TOKEN})
                return Answer(connection.getresponse())

            large = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT count(*) FROM (SELECT DISTINCT printf('%01000d', i) FROM n)"
            for target in (recording, self.pid):
                answer = query(large, target)
                self.assertNotEqual(200, answer.status)
                self.assertRegex(answer.error, "disk|memory")
                self.assertEqual(200, query("SELECT 1", target).status)

    def test_all_processes(self):
        with serving("--all", PROBING_AUTH_TOKEN=TOKEN) as (_, link):
            targets = self.get(link, "/apis/overview", Authorization="Bearer " + TOKEN).json["targets"]
            self.assertEqual({"process"}, {one["kind"] for one in targets})
            self.assertTrue(int(self.pid) in [one["pid"] for one in targets] or len(targets) == 64)  # it serves no more

    def test_wrong_arguments(self):
        self.assertIn("does not exist", probing("serve", "none.db", check=t.NO_INPUT).stderr)
        self.assertEqual(t.NO_INPUT, probing("serve", "4194000").returncode)
        self.assertEqual(t.USAGE, probing("serve", self.pid, "--port", "70000").returncode)
        self.assertEqual(t.USAGE, probing("serve", self.pid, "--port", "1", "--socket", "x").returncode)
        self.assertEqual(t.USAGE, probing("serve", self.pid, env={**os.environ, "PROBING_AUTH_TOKEN": "short"}).returncode)

    def test_it_starts_without_standard_input_and_with_children_ignored(self):
        start = ("import os, signal, sys; os.close(0); os.close(2); signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
                 "os.execv(sys.argv[1], sys.argv[1:])")
        with serving(self.pid, launcher=(sys.executable, "-c", start), PROBING_AUTH_TOKEN=TOKEN) as (_, link):
            self.assertEqual(200, self.get(link, "/metrics", Authorization="Bearer " + TOKEN).status)

    def test_a_port_that_is_in_use(self):
        with serving(self.pid) as (_, link):
            port = re.search(r":(\d+)/", link).group(1)
            self.assertIn("is in use", probing("serve", self.pid, "--port", port, check=t.NO_OUTPUT).stderr)


if __name__ == "__main__":
    unittest.main()
