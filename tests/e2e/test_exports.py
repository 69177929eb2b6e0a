# SPDX-License-Identifier: MIT
"""probing export: formats of others, read by readers of others, function by function against the file itself.

scripts/readers installs those that come from npm.
"""
import base64
import collections
import contextlib
import csv
import functools
import glob
import html
import http.server
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import threading
import unittest

import probing_test as t
from probing_test import probing

SAME_FOR_ALL_USERS = True

READERS = os.path.abspath(os.environ.get("PROBING_READERS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "probing", "readers"))
SCRIPTS = os.path.join(t.ROOT, "tests", "readers")
DEBIANS_PYTHON = "/usr/bin/python3"
BROWSER = ["--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--window-size=1300,4000", "--virtual-time-budget=20000",
           "--dump-dom"]


def need_readers():
    if not shutil.which("node"):
        raise unittest.SkipTest("Node.js is not installed")
    if not os.path.isdir(os.path.join(READERS, "node_modules")) or not os.path.isdir(SCRIPTS):
        raise unittest.SkipTest("readers of exports are not there; scripts/readers installs them")


def node(script, *arguments):
    done = subprocess.run(["node", os.path.join(SCRIPTS, script), *arguments], capture_output=True, text=True,
                          env={**os.environ, "PROBING_READERS": READERS}, timeout=60)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def read_otlp(path):
    """An OTLP file's resource, and its profiles by their type, read by Google's protobuf."""
    if subprocess.run([DEBIANS_PYTHON, "-c", "import google.protobuf"], capture_output=True, check=False).returncode != 0:
        raise unittest.SkipTest("Debian's python3-protobuf is not installed")
    done = subprocess.run([DEBIANS_PYTHON, os.path.join(SCRIPTS, "read_otlp.py"), path], capture_output=True, text=True,
                          timeout=60, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    (found,) = json.loads(done.stdout)
    return found["resource"], {tuple(profile["type"]): profile for profile in found["profiles"]}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *arguments):  # pylint: disable=redefined-builtin
        pass


@contextlib.contextmanager
def receiver():
    """An address; what was sent there as (path, headers, body); and answers (status, body) to give, where it is not 200."""
    requests, answers = [], []

    class Receiver(Quiet):
        def do_POST(self):  # pylint: disable=invalid-name
            requests.append((self.path, self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
            status, body = answers.pop(0) if answers else (200, b"")
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield "http://127.0.0.1:%d" % server.server_port, requests, answers
        finally:
            server.shutdown()


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    raise unittest.SkipTest("there is no Chromium here")


def show(page, *options):
    """The page as it is when its scripts have come to rest."""
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    done = subprocess.run([browser(), *BROWSER, *options, *root, "--user-data-dir=" + os.path.abspath("profile"), page],
                          capture_output=True, text=True, timeout=120)
    if "No usable sandbox" in done.stderr or "Failed to move to new namespace" in done.stderr:
        raise unittest.SkipTest("Chromium cannot make its sandbox here")
    return done.stdout or done.stderr[-2000:]


@contextlib.contextmanager
def served(folder):
    """The address of a folder's files, for pages that load others."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield "http://127.0.0.1:%d" % server.server_port
        finally:
            server.shutdown()


def chrome_viewer():
    """Files of Chrome's trace viewer, of the newest Go that has them."""
    found = sorted(glob.glob("/usr/share/go-*/src/cmd/trace/static/*") +
                   glob.glob("/usr/share/go-*/src/internal/trace/traceviewer/static/*"))
    folders = [os.path.dirname(path) for path in found if path.endswith("/trace_viewer_full.html")]
    if not folders:
        raise unittest.SkipTest("Chrome's trace viewer is not there; Debian's golang-go has it")
    return [path for path in found if os.path.dirname(path) == folders[-1]]


def ask_perfetto(path, sql):
    """The rows of a query over a trace, by Perfetto's own trace processor."""
    names = [os.environ.get("PROBING_TRACE_PROCESSOR"), "trace_processor", "trace_processor_shell"]
    found = next((shutil.which(name) for name in names if name and shutil.which(name)), None)
    if not found:
        raise unittest.SkipTest("Perfetto's trace_processor is not there; PROBING_TRACE_PROCESSOR names it")
    done = subprocess.run([found, "-Q", sql, path], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


def text_of(hexadecimal):
    """Names come as their bytes: the program escapes nothing."""
    return bytes.fromhex(hexadecimal).decode("utf-8")


PERFETTO_ERRORS = "SELECT name, value FROM stats WHERE value > 0 AND severity <> 'info'"


class Truth:
    """What a recording says, from its tables alone: what each Python function weighs with all that it calls."""

    def __init__(self, path):
        db, labels = sqlite3.connect(path), t.labels_of(path)
        with t.contextlib.closing(db):
            frames = dict((frame, "%s (%s)" % (name, labels[file]) if kind == "python" else None)
                          for frame, kind, name, file in db.execute("SELECT frame, kind, name, file FROM named_frame"))
            stacks = {stack: (parent, frames[frame])
                      for stack, parent, frame in db.execute("SELECT stack, parent, frame FROM stack")}
            self.totals = db.execute("SELECT tid, stack, samples, weight FROM stack_total").fetchall()
        self.by_thread = collections.defaultdict(collections.Counter)
        self.samples = collections.Counter()
        for tid, stack, samples, weight in self.totals:
            functions = set()
            while stack:
                stack, name = stacks[stack]
                functions.add(name)
            for name in functions - {None}:
                self.by_thread[tid][name] += weight
                self.samples[name] += samples
        self.functions = sum(self.by_thread.values(), collections.Counter())
        self.weight = sum(row[3] for row in self.totals)


class Exports(t.RecordedCase):
    LATE_S = 0.05  # how much later than it was a slice may be drawn

    def setUp(self):
        super().setUp()
        self.truth = Truth("probing.db")
        self.assertGreater(len(self.truth.functions), 5)
        self.assertIn("edit_distance (demo.py)", self.truth.functions)

    def export(self, to, *options):
        out = "out." + to
        probing("export", "--to", to, "-o", out, "--force", *options, check=t.OK)
        return os.path.abspath(out)

    def load(self, to, *options):
        with open(self.export(to, *options), encoding="utf-8") as file:
            return json.load(file)

    # ---- pprof ----

    def pprof(self, *options):
        need_readers()
        return json.loads(node("read_pprof.mjs", self.export("pprof", *options)))

    def test_pprof(self):
        read = self.pprof()
        self.assertEqual([["samples", "count"], [self.MODE, "nanoseconds"]], read["types"])
        found, samples = collections.Counter(), collections.Counter()
        for sample in read["samples"]:
            names = {line["name"] for place in sample["places"] for line in place["inlined"] if place["module"] is None}
            for name in names:
                found[name] += sample["values"][1]
                samples[name] += sample["values"][0]
        for name, weight in self.truth.functions.items():
            self.assertEqual(weight, found[name], name)
            self.assertEqual(self.truth.samples[name], samples[name], name)
        self.assertEqual(self.truth.weight, sum(sample["values"][1] for sample in read["samples"]))

    def test_pprof_labels_are_columns_of_samples(self):
        found = collections.Counter()
        for sample in self.pprof()["samples"]:
            found[sample["labels"]["tid"], sample["labels"]["verdict"]] += sample["values"][0]
        text = probing("sql", "probing.db", "SELECT tid, verdict, count(*) FROM sample GROUP BY 1, 2", "--format", "csv",
                       check=t.OK).stdout
        rows = [line.split(",") for line in text.splitlines()[1:]]
        self.assertEqual({(int(tid), verdict): int(n) for tid, verdict, n in rows}, dict(found))

    def test_pprof_places(self):
        """Native places have a module with a build id, an address inside, and a name."""
        db = sqlite3.connect("probing.db")
        with t.contextlib.closing(db):
            build_ids = dict(db.execute("SELECT path, build_id FROM module"))
        places = [place for sample in self.pprof()["samples"] for place in sample["places"]]
        native = [place for place in places if place["module"]]
        self.assertTrue(native)
        for place in native:
            self.assertTrue(place["inside"], place)
            self.assertEqual(build_ids[place["module"]] or "", place["buildId"])
        self.assertTrue(any(len(place["inlined"]) > 1 for place in native) or not self.has_inlined())
        self.assertTrue(any(line["line"] > 0 for place in places for line in place["inlined"]))

    def has_inlined(self):
        db = sqlite3.connect("probing.db")
        with t.contextlib.closing(db):
            return db.execute("SELECT count(*) FROM frame WHERE inlined_into IS NOT NULL").fetchone()[0] > 0

    def test_pprof_in_gos_pprof(self):
        tool = [shutil.which("pprof")] if shutil.which("pprof") else ["go", "tool", "pprof"] if shutil.which("go") else None
        if not tool:
            raise unittest.SkipTest("neither pprof nor go is installed")
        done = subprocess.run([*tool, "-top", "-cum", "-nodecount=100000", "-unit=ns", self.export("pprof")], capture_output=True, text=True, check=True)
        self.assertIn("edit_distance", done.stdout)

    # ---- OTLP ----

    def otlp(self, *options, ending="otlp"):
        """The resource, and its profiles by type; read_otlp.py checks all rules of the format."""
        return read_otlp(self.export_to("out." + ending, *options))

    def export_to(self, out, *options):
        probing("export", "-o", out, *options, check=t.OK)
        return os.path.abspath(out)

    def test_otlp(self):
        """Each function weighs what the tables say, and so do samples."""
        _, profiles = self.otlp()
        name = {"offcpu": "off_cpu"}.get(self.MODE, self.MODE)
        self.assertEqual({(name, "nanoseconds"), ("samples", "count")}, set(profiles))
        for (kind, truth) in ((name, self.truth.functions), ("samples", self.truth.samples)):
            found, labels = collections.Counter(), t.labels_of("probing.db")
            samples = profiles[kind, "count" if kind == "samples" else "nanoseconds"]["samples"]
            for sample in samples:
                for function in {"%s (%s)" % (line["name"], labels[line["file"]]) for place in sample["places"]
                                 if place["type"] == "cpython" for line in place["inlined"]}:
                    found[function] += sum(sample["values"])
            for function, value in truth.items():
                self.assertEqual(value, found[function], (kind, function))
        self.assertEqual(self.truth.weight, sum(sum(sample["values"]) for sample in profiles[name, "nanoseconds"]["samples"]))

    def test_otlp_samples_have_times_and_attributes(self):
        """Those of the table sample, one by one."""
        profile = next(iter(self.otlp()[1].values()))
        found, wanted = [], []
        for sample in profile["samples"]:
            it = sample["attributes"]
            key = it["process.pid"], it["thread.id"], it["thread.name"], it.get("probing.verdict"), it.get("probing.state"), \
                it.get("probing.gil")
            found += [(time / 1e9, *key, value) for time, value in zip(sample["times"], sample["values"])]
        sql = ("SELECT pid, tid, (SELECT name FROM thread WHERE thread.pid = sample.pid AND thread.tid = sample.tid) AS name,"
               " verdict, state, gil, timestamp, weight FROM sample")
        for row in json.loads(probing("sql", "probing.db", sql, "--format", "json", check=t.OK).stdout):
            gil = None if row["gil"] is None else bool(row["gil"])
            wanted.append((row["timestamp"], row["pid"], row["tid"], row["name"], row["verdict"], row["state"], gil, row["weight"]))
        self.assertTrue(wanted)
        self.assertEqual(len(wanted), len(found))
        order = lambda row: (row[2], row[0], repr(row))
        for one, other in zip(sorted(wanted, key=order), sorted(found, key=order)):
            self.assertAlmostEqual(one[0], other[0], delta=1e-6)
            self.assertEqual(one[1:], other[1:])

    def test_otlp_places(self):
        """Native places have a module with a build id, and a type of frame."""
        with t.contextlib.closing(sqlite3.connect("probing.db")) as db:
            build_ids = dict(db.execute("SELECT path, build_id FROM module"))
        places = [place for sample in next(iter(self.otlp()[1].values()))["samples"] for place in sample["places"]]
        native = [place for place in places if place["type"] == "native" and place["module"]]
        self.assertTrue(native)
        for place in native:
            self.assertEqual(build_ids[place["module"]] or "", place["buildId"])
        self.assertLessEqual({place["type"] for place in places}, {"cpython", "native", "kernel", None})
        self.assertTrue(any(line["line"] > 0 and line["start"] > 0 for place in places for line in place["inlined"]))

    def test_otlp_resource(self):
        resource, _ = self.otlp("--min-share", "2", ending="otlp.gz")
        with open("out.otlp.gz", "rb") as file:
            self.assertEqual(b"\x1f\x8b", file.read(2))
        with t.contextlib.closing(sqlite3.connect("probing.db")) as db:
            host, pid, command, python = db.execute("SELECT host, pid, command, python FROM run").fetchone()
        self.assertEqual({"service.name": "demo.py", "host.name": host, "process.pid": pid, "process.command_line": command,
                          "process.executable.name": os.path.basename(command.split()[0]), "process.runtime.name": "cpython",
                          "process.runtime.version": python}, resource)
        self.assertEqual("trainer", self.otlp("--service", "trainer")[0]["service.name"])
        os.environ["OTEL_SERVICE_NAME"] = "from outside"
        self.addCleanup(os.environ.pop, "OTEL_SERVICE_NAME")
        self.assertEqual("from outside", self.otlp()[0]["service.name"])
        self.assertIn("--service is for otlp", probing("export", "--to", "pprof", "--service", "x", check=t.USAGE).stderr)

    def test_otlp_is_sent(self):
        """The same bytes as in a file, once, with the headers of the environment; refusals are errors."""
        self.export_to("out.otlp.gz")
        with open("out.otlp.gz", "rb") as file:
            wanted = file.read()
        os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = "Authorization=Bearer%20abc, x-scope=1"
        self.addCleanup(os.environ.pop, "OTEL_EXPORTER_OTLP_HEADERS", None)
        with receiver() as (address, requests, answers):
            self.assertIn("sent", probing("export", "-o", address, check=t.OK).stderr)
            ((path, headers, body),) = requests
            self.assertEqual("/v1development/profiles", path)
            self.assertEqual(wanted, body)
            self.assertEqual(["application/x-protobuf", "gzip", "Bearer abc", "1"],
                             [headers[name] for name in ("Content-Type", "Content-Encoding", "Authorization", "X-Scope")])
            for status, answer, said in ((200, b"\x0a\x09\x08\x02\x12\x05quota", "refused 2 of 2 profiles: quota"), (404, b"", "receives no profiles"),
                                         (503, b"busy", "answers 503: busy; try again later"), (401, b"", "refuses the sender"),
                                         (200, b"<html>", "is not a receiver of OTLP")):
                answers.append((status, answer))
                self.assertIn(said, probing("export", "-o", address + "/other", check=t.NO_OUTPUT).stderr)
            self.assertEqual(["/other"] * 5, [request[0] for request in requests[1:]])
            self.assertIn("only otlp is sent", probing("export", "--to", "svg", "-o", address, check=t.USAGE).stderr)
            os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = "a=b%0d%0ac"
            self.assertIn("OTEL_EXPORTER_OTLP_HEADERS", probing("export", "-o", address, check=t.USAGE).stderr)
        del os.environ["OTEL_EXPORTER_OTLP_HEADERS"]
        self.assertIn("127.0.0.1", probing("export", "-o", "http://127.0.0.1:1", check=t.NO_OUTPUT).stderr)

    # ---- speedscope ----

    def test_speedscope_schema(self):
        need_readers()
        node("check_speedscope.mjs", self.export("speedscope"))

    def test_speedscope_is_in_the_order_of_time(self):
        """Stacks and weights of each thread are those of its samples, in that order."""
        read = self.load("speedscope")
        text = probing("sql", "probing.db", "SELECT tid, weight FROM sample ORDER BY timestamp", "--format", "csv",
                       check=t.OK).stdout
        wanted = collections.defaultdict(list)
        for line in text.splitlines()[1:]:
            tid, weight = line.split(",")
            wanted[int(tid)].append(int(weight))
        for profile in read["profiles"]:
            tid = int(re.search(r"\((\d+)\)$", profile["name"]).group(1))
            self.assertEqual(wanted.pop(tid), profile["weights"])
            self.assertEqual(sum(profile["weights"]), profile["endValue"])
            self.assertEqual(len(profile["weights"]), len(profile["samples"]))
        self.assertFalse(wanted)

    def sandwich(self, index):
        """Speedscope's own table of functions, of one of the profiles: name to nanoseconds."""
        read = self.load("speedscope")
        read["activeProfileIndex"] = index
        return read["profiles"][index], self.shown_by_speedscope(read)

    def shown_by_speedscope(self, read):
        need_readers()
        with open("load.js", "w", encoding="ascii") as file:
            file.write('speedscope.loadFileFromBase64("a.json", "%s")'
                       % base64.b64encode(json.dumps(read).encode()).decode())
        page = "file://%s/node_modules/speedscope/dist/release/index.html#localProfilePath=%s&view=sandwich" % (
            READERS, os.path.abspath("load.js"))
        shown = show(page)
        units = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
        found = {}
        for row in re.findall(r"<tr.*?</tr>", shown, re.DOTALL):
            cells = [html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
            match = re.match(r"([\d.]+)(ns|µs|ms|s) \(", cells[0]) if len(cells) == 3 else None
            if match:
                found[cells[2].strip()] = float(match.group(1)) * units[match.group(2)]
        self.assertTrue(found, shown)
        return found

    def test_speedscope_in_speedscope(self):
        profile, found = self.sandwich(0)
        tid = int(re.search(r"\((\d+)\)$", profile["name"]).group(1))
        shown = {name: weight for name, weight in self.truth.by_thread[tid].items() if name in found}
        self.assertTrue(shown)
        for name, weight in shown.items():
            self.assertAlmostEqual(weight, found[name], delta=max(0.006 * weight, 6e3), msg=name)

    # ---- Chrome ----

    def test_chrome(self):
        """Slices nest, callers first, and all slices of a function last as long as its samples weigh."""
        found, slices = collections.Counter(), collections.Counter()
        open_slices, last = collections.defaultdict(list), collections.Counter()
        for event in self.load("chrome")["traceEvents"]:
            key = event["pid"], event["tid"]
            if event["ph"] == "M":
                self.assertIn(event["name"], ("process_name", "thread_name"))
                continue
            if event["ph"] == "C":  # of the recording's metrics: test_torch_trace.Tracks
                continue
            self.assertEqual("X", event["ph"])
            self.assertGreaterEqual(event["ts"], last[key])
            last[key] = event["ts"]
            self.assertGreater(event["dur"], 0)
            # Binary fractions that are whole nanoseconds: no reader's addition is off.
            self.assertEqual((0, 0), (event["ts"] * 8 % 1, event["dur"] * 8 % 1))
            around = open_slices[key]
            end = event["ts"] + event["dur"]
            while around and around[-1][1] < event["ts"]:
                around.pop()
            if around:
                self.assertGreater(around[-1][1], event["ts"], "what ends ends before another begins")
                self.assertLessEqual(end, around[-1][1])
            if event["name"] not in (name for name, _ in around):
                found[event["name"]] += event["dur"] * 1000
                slices[event["name"]] += 1
            around.append((event["name"], end))
        for name, weight in self.truth.functions.items():
            # A slice is an eighth of a microsecond shorter, and its beginning and end are rounded to one.
            self.assertAlmostEqual(weight, found[name] + 125 * slices[name], delta=1000 + 125 * slices[name], msg=name)

    def test_chrome_in_speedscope(self):
        """Its reader of trace events finds each function of a thread with the time that its samples weigh."""
        read = self.load("chrome")
        tid = next(event["tid"] for event in read["traceEvents"] if event["ph"] == "X")
        read["traceEvents"] = [event for event in read["traceEvents"] if event["tid"] == tid]
        found = self.shown_by_speedscope(read)
        shown = {name: weight for name, weight in self.truth.by_thread[tid].items() if name in found}
        self.assertTrue(shown)
        for name, weight in shown.items():
            self.assertAlmostEqual(weight, found[name], delta=max(0.006 * weight, 6e3), msg=name)

    def test_chrome_in_chromes_viewer(self):
        """It has nothing to warn of, and each function of each thread lasts as long as its samples weigh."""
        os.makedirs("viewer", exist_ok=True)
        for path in [*chrome_viewer(), os.path.join(SCRIPTS, "chrome_viewer.html")]:
            shutil.copy(path, "viewer")
        shutil.copy(self.export("chrome"), "viewer/trace.json")
        with served(os.path.abspath("viewer")) as address:
            shown = show(address + "/chrome_viewer.html")
        match = re.search(r'<pre id="found">(.+?)</pre>', shown, re.DOTALL)
        self.assertTrue(match, shown)
        read = json.loads(html.unescape(match.group(1)))
        self.assertEqual([], read["warnings"])
        self.assertEqual({str(tid) for tid in self.truth.by_thread}, set(read["threads"]))
        for tid, functions in self.truth.by_thread.items():
            for name, weight in functions.items():
                found = read["threads"][str(tid)]["names"][name]
                self.assertAlmostEqual(weight, found["ms"] * 1e6 + 125 * found["n"], delta=1000 + 125 * found["n"], msg=name)

    def test_chrome_in_perfetto(self):
        """It counts no error, and has each function of each thread with its slices, names and what its samples weigh."""
        path = self.export("chrome")
        self.assertEqual([], ask_perfetto(path, PERFETTO_ERRORS))
        found = collections.defaultdict(dict)
        for tid, thread, process, name, n, ns in ask_perfetto(
                path, "SELECT tid, hex(thread.name), hex(process.name), hex(it.name), count(*), sum(dur)"
                      " FROM slice it JOIN thread_track ON it.track_id = thread_track.id JOIN thread USING (utid)"
                      " JOIN process USING (upid) WHERE NOT EXISTS (SELECT 1 FROM ancestor_slice(it.id) WHERE name = it.name)"
                      " GROUP BY 1, 2, 3, 4"):
            found[int(tid), text_of(thread), text_of(process)][text_of(name)] = int(n), int(ns)
        with t.contextlib.closing(sqlite3.connect("probing.db")) as db:
            names = {row[0]: row for row in db.execute("SELECT tid, thread.name, process.name FROM thread JOIN process USING (pid)")}
        self.assertEqual({names[tid] for tid in self.truth.by_thread}, set(found))
        for tid, functions in self.truth.by_thread.items():
            for name, weight in functions.items():
                n, ns = found[names[tid]][name]
                self.assertAlmostEqual(weight, ns + 125 * n, delta=1000 + 125 * n, msg=name)
        slices = [event for event in self.load("chrome")["traceEvents"] if event["ph"] == "X"]
        self.assertEqual([[str(len(slices))]], ask_perfetto(path, "SELECT count(*) FROM slice"))

    @t.statistical("slices lie end to end, so a sample whose timer was late moves those behind it", 0.0005)
    def test_chrome_times_are_those_of_samples(self):
        """Slices begin and end with the recording, but for what samples weigh more than passed."""
        text = probing("sql", "probing.db", "SELECT max(timestamp + weight / 1e9 * (state IS NOT NULL AND state <> 'running'))"
                       " - (SELECT started FROM run) AS s FROM sample", "--format", "csv", check=t.OK).stdout
        last_s = float(text.split()[1])
        times = [event["ts"] + event["dur"] for event in self.load("chrome")["traceEvents"] if "dur" in event]
        self.assertLess(max(times) / 1e6, last_s + self.LATE_S)
        self.assertGreater(max(times) / 1e6, last_s - 0.05)

    # ---- Firefox ----

    def test_gecko(self):
        need_readers()
        path = self.export("gecko")
        tool = os.path.join(READERS, "node_modules", "@firefox-devtools", "profiler-cli", "dist", "profiler-cli.js")
        environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": os.path.abspath("sessions")}

        def is_ready():
            """Who asks while it reads may wait for ever for an answer."""
            with contextlib.suppress(FileNotFoundError), open("sessions/test.log", encoding="utf-8") as log:
                return "Profile loaded" in log.read()

        def ask(*arguments):
            done = subprocess.run(["node", tool, *arguments, "--session", "test"], capture_output=True, text=True,
                                  timeout=60, env=environment)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            return done.stdout

        # Its command "load" gives this half a second to begin.
        daemon = subprocess.Popen(["node", tool, "--daemon", path, "--session", "test"], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        t.wait_until(is_ready, 60, "the reader to read %s" % path)
        with open(path, encoding="utf-8") as file:
            threads = [thread["tid"] for thread in json.load(file)["threads"]]
        for index, tid in enumerate(threads):
            read = json.loads(ask("thread", "functions", "--thread", "t-%d" % index, "--include-idle", "--json"))
            self.assertEqual("tracing-ms", read["weightType"])
            found = collections.Counter()
            for function in read["functions"]:
                found[function["name"]] += function["totalSamples"] * 1e6
            for name, weight in self.truth.by_thread[tid].items():
                self.assertAlmostEqual(weight, found[name], delta=1000, msg=name)

    def test_gecko_times(self):
        text = probing("sql", "probing.db", "SELECT tid, timestamp FROM sample ORDER BY timestamp", "--format", "csv",
                       check=t.OK).stdout
        wanted = collections.defaultdict(list)
        for line in text.splitlines()[1:]:
            tid, timestamp = line.split(",")
            wanted[int(tid)].append(float(timestamp))
        read = self.load("gecko")
        for thread in read["threads"]:
            times = [(read["meta"]["startTime"] + time) / 1000 for time in thread["samples"]["time"]]
            self.assertEqual(len(wanted[thread["tid"]]), len(times))
            for one, other in zip(wanted[thread["tid"]], times):
                self.assertAlmostEqual(one, other, delta=2e-6)

    # ---- All ----

    def test_views_hold_everywhere(self):
        """The same part of the recording, whichever format."""
        options = ("--focus", "edit_distance", "--no-native", "--since", "0.2")
        folded = probing("export", "--to", "folded", "--counts", "-o", "-", *options, check=t.OK).stdout
        n = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())
        self.assertEqual(n, sum(len(profile["samples"]) for profile in self.load("speedscope", *options)["profiles"]))
        gecko = self.load("gecko", *options)
        self.assertEqual(n, sum(thread["samples"]["length"] for thread in gecko["threads"]))
        self.assertEqual(n, sum(sample["values"][0] for sample in self.pprof(*options)["samples"]))
        names = {event["name"] for event in self.load("chrome", *options)["traceEvents"] if event["ph"] == "X"}
        self.assertIn("edit_distance (demo.py)", names)
        self.assertFalse(any("libpython" in name or "deflate" in name for name in names), names)

    def test_min_share_holds_everywhere(self):
        """Small functions are gone, no time is."""
        usual, large = self.load("speedscope"), self.load("speedscope", "--min-share", "10")
        whole = [sum(sum(profile["weights"]) for profile in read["profiles"]) for read in (usual, large)]
        self.assertEqual(whole[0], whole[1])
        read = self.pprof("--min-share", "10")
        self.assertEqual(self.truth.weight, sum(sample["values"][1] for sample in read["samples"]))
        found = collections.Counter()
        for sample in read["samples"]:
            for name in {line["name"] for place in sample["places"] for line in place["inlined"]} - {"[rest]"}:
                found[name] += sample["values"][1]
        self.assertTrue(found)
        self.assertTrue(all(weight >= 0.0999 * self.truth.weight for weight in found.values()), found)

    def test_same_bytes_again(self):
        for to in ("speedscope", "pprof", "otlp", "chrome", "gecko"):
            with open(self.export(to), "rb") as one:
                first = one.read()
            with open(self.export(to), "rb") as other:
                self.assertEqual(first, other.read())

    def test_endings(self):
        for ending in ("speedscope.json", "pb.gz", "otlp", "otlp.gz", "trace.json", "gecko.json"):
            probing("flamegraph", "-o", "out." + ending, check=t.OK)
            self.assertGreater(os.path.getsize("out." + ending), 100)


class Waiting(Exports):
    """The same with time in which threads waited: weights are of different lengths, times go up and down."""
    MODE = "wall"
    LATE_S = 0.5  # what ran is known by samples, and moves the waits behind it


class Deep(t.Case):
    """A stack of 3,000 calls, whose innermost ones no reader may lose."""

    def setUp(self):
        super().setUp()
        t.need_perf()
        with t.fixture("deep.py") as target:
            t.record_cpu(target, 0.8, 99, "deep.db")
        probing("export", "deep.db", "--to", "chrome", "-o", "deep.trace.json", check=t.OK)
        with open("deep.trace.json", encoding="utf-8") as file:
            self.slices = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]

    def test_levels(self):
        ends, deepest, inside = [], 0, set()
        for event in self.slices:
            while ends and ends[-1] < event["ts"]:
                ends.pop()
            ends.append(event["ts"] + event["dur"])
            deepest = max(deepest, len(ends))
            if len(ends) > 129:
                inside.add(event["name"])
        self.assertLessEqual(deepest, 512)
        self.assertGreater(deepest, 256)
        self.assertTrue({"descend (deep.py)", "leaf_python (deep.py)"} <= inside, inside)
        self.assertTrue(any(re.fullmatch(r"\[2\d{3} calls left out\]", event["name"]) for event in self.slices))

    def test_in_perfetto(self):
        self.assertEqual([], ask_perfetto("deep.trace.json", PERFETTO_ERRORS))
        self.assertEqual([[str(len(self.slices))]], ask_perfetto("deep.trace.json", "SELECT count(*) FROM slice"))


class Events(t.Case):
    """Numbers of events are no time."""

    def test_counts(self):
        t.need_perf()
        with t.fixture("demo.py") as target:
            with t.recorder("--pid", target.pid, "-e", "page-faults", "-c", "1", "-o", "faults.db") as recorder:
                t.wait_for_samples("faults.db")
                self.assertEqual(t.OK, t.stop_politely(recorder)[0])
        said = probing("export", "faults.db", "--to", "chrome", "-o", "out", check=t.BAD_DATA)
        self.assertSentence(said.stderr, "faults.db", "chrome")
        probing("export", "faults.db", "--to", "speedscope", "-o", "out", check=t.OK)
        with open("out", encoding="utf-8") as file:
            read = json.load(file)
        self.assertEqual({"none"}, {profile["unit"] for profile in read["profiles"]})
        self.assertIn("page-faults", read["name"])


if __name__ == "__main__":
    unittest.main()
