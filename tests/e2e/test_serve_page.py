# SPDX-License-Identifier: MIT
"""The page of probing serve in Chromium and Firefox: each view on a recording and on a process, by keys, in both themes, narrow and wide."""
import contextlib
import http.client
import http.server
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import urllib.parse

import probing_test as t
from probing_test import probing
import machines
from test_agent import LIBRARY, PRELOADED
import test_cluster
from test_serve import Answer, serving

sys.path.insert(0, os.path.join(t.ROOT, "tests", "browser"))
import axe  # noqa: E402
import devtools  # noqa: E402
import marionette  # noqa: E402

TOKEN = "a token of the test"
MARKUP = "<img src=x onerror=alert(1)>"
# A training with a second thread, which wants the GIL too. Each 20th step is slow, because of checkpoint(): slower than a busy machine has made others.
TRAINING = """
import ctypes, os, sys, threading, time
sys.path.insert(0, os.environ["PACKAGE"])
import probing
ctypes.CDLL(os.environ["AGENT"]).probing_agent_start(0)

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))

def forward():
    burn(0.004)

def checkpoint(seconds):
    time.sleep(seconds)

def evaluate():
    while True:
        burn(0.05)

def train():
    step, longest = 0, 0.12
    while True:
        probing.step(step)
        began = time.monotonic()
        with probing.span("forward"):
            forward()
        longest = min(max(longest, time.monotonic() - began), 0.5)
        if step % 20 == 7:
            checkpoint(2 * longest)
        step += 1

threading.Thread(target=evaluate, name="evaluator", daemon=True).start()
print("ready {}", flush=True)
train()
"""
# Two threads: five steps of the one for each of the other, whatever the machine does meanwhile.
UNEVEN = """
import ctypes, os, sys, threading, time
sys.path.insert(0, os.environ["PACKAGE"])
import probing
ctypes.CDLL(os.environ["AGENT"]).probing_agent_start(0)
fast, slow, done = (threading.Semaphore(0) for _ in range(3))

def steps(turn):
    while True:
        turn.acquire()
        probing.step()
        done.release()

for name, turn in (("fast", fast), ("slow", slow)):
    threading.Thread(target=steps, args=(turn,), name=name, daemon=True).start()
print("ready {}", flush=True)
n = 0
while True:
    (slow if n % 6 == 5 else fast).release()
    done.acquire()
    n += 1
    time.sleep(0.02)
"""
# The same of two ranks: each step of the second needs five of the first.
UNEVEN_RANKS = """
import ctypes, os, sys, time
sys.path.insert(0, os.environ["PACKAGE"])
import probing
ctypes.CDLL(os.environ["AGENT"]).probing_agent_start(0)
if os.environ["RANK"] == "0":
    with open(sys.argv[1], "wb", buffering=0) as tokens:
        while True:
            probing.step()
            tokens.write(b"x")
            time.sleep(0.02)
with open(sys.argv[1], "rb", buffering=0) as tokens:
    while True:
        for _ in range(5):
            tokens.read(1)
        probing.step()
"""
LINK = "[...document.querySelectorAll('nav a')].find(one => one.textContent === %r)"
EDITOR = "document.getElementById('sql').shadowRoot"
CHOSEN = EDITOR + "?.querySelector('.cm-tooltip-autocomplete [aria-selected]')"


@contextlib.contextmanager
def foreign_site():
    """The address of a page of somebody else, on another port."""
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><link rel=icon href='data:,'><title>elsewhere</title><body>")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "http://127.0.0.1:%d/" % server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


class Training(t.Case):
    """One program, two recordings of it, one server and one page for all tests of a browser."""
    NIGHTLY_FOR_USERS = True  # a browser draws alike for all

    name = finder = None

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        cls.browser = cls.finder()
        if cls.browser is None:
            cls.skipTest(cls, "there is no %s here" % cls.name)
        if not os.path.exists(LIBRARY):
            cls.skipTest(cls, "built without the agent")
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(t.scratch())
            with open("train.py", "w") as file:
                file.write(TRAINING)
            environment = dict(os.environ, AGENT=LIBRARY, PACKAGE=os.path.join(t.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1",
                               PROBING_DATA_DIR=folder, **PRELOADED)
            stack.enter_context(cls.variables(PROBING_DATA_DIR=folder))
            program = subprocess.Popen([t.DEBIAN_PYTHON, "train.py", MARKUP], stdout=subprocess.PIPE, env=environment, text=True)
            stack.callback(program.communicate)
            stack.callback(program.kill)
            t.await_ready(program)
            cls.pid, cls.folder = str(program.pid), folder
            for name, mode in (("train.db", "wall"), (MARKUP + ".db", "cpu")):
                probing("record", "--pid", cls.pid, "-d", "3", "-F", "199", "--mode", mode, "--metrics=200ms", "-o", name, check=t.OK)
            cls.server, cls.link = stack.enter_context(serving("train.db", MARKUP + ".db", cls.pid, *cls.options()))
            cls.page = stack.enter_context(cls.open_page())
            cls.page.until("document.querySelectorAll('#target option').length === 3")
            cls.addClassCleanup(stack.pop_all().close)

    @staticmethod
    def options():
        return ("--allow-eval",)

    @staticmethod
    @contextlib.contextmanager
    def variables(**values):
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def go(self, **state):
        self.page.run("location.hash = %s" % json.dumps("#" + urllib.parse.urlencode(state)))

    def text(self, selector):
        return self.page.run("[...document.querySelectorAll(%s)].map(one => one.textContent)" % json.dumps(selector))

    def await_text(self, selector, part):
        self.page.until("[...document.querySelectorAll(%s)].some(one => one.textContent.includes(%s))" % (json.dumps(selector), json.dumps(part)))

    def state(self):
        return dict(urllib.parse.parse_qsl(self.page.run("location.hash.slice(1)")))

    def tearDown(self):
        self.assertEqual([], self.page.errors)
        self.assertEqual(0, self.page.run("document.querySelectorAll('img').length"))
        super().tearDown()

    def open_tables(self, target):
        """The view, when its catalogue is there, which completion needs."""
        self.go(view="tables", target=target)
        self.await_text(".catalogue summary", "hot_function")
        if self.page.run("!%s" % EDITOR):
            self.skipTest("built without the page's libraries")

    def await_choice(self, label):
        """The list is open, and this is chosen."""
        self.page.until("%s?.querySelector('.cm-completionLabel').textContent === %s" % (CHOSEN, json.dumps(label)))

    def await_value(self, text):
        self.page.until("document.getElementById('sql').value === %s" % json.dumps(text))

    def write(self, text):
        """In place of what the editor has."""
        self.page.run("document.getElementById('sql').focus(); document.getElementById('sql').select()")
        self.page.type(text)
        self.page.press("Escape")

    def run_sql(self, text):
        self.write(text)
        self.page.press("Enter", modifiers=devtools.CONTROL)
        self.page.until("document.getElementById('note').textContent && document.getElementById('note').textContent !== 'Running.'")
        return self.text("#note")[0]

    def check_access(self, script, targets):
        """Each view of the targets: axe-core finds nothing, and nothing is wider than the window."""
        for target in targets:
            self.go(view="overview", target=target)
            self.page.until("document.getElementById('target').value === %s" % json.dumps(target))
            for name in self.page.run("[...document.querySelectorAll('nav li:not([hidden]) a')].map(one => one.textContent)"):
                with self.subTest(target=target, view=name):
                    self.page.click(LINK % name)
                    self.page.settle()
                    self.assertEqual([], axe.violations(self.page, script))
                    self.assertLessEqual(self.page.run("document.documentElement.scrollWidth - innerWidth"), 0)


class Page(Training):
    name, finder = "Chromium", staticmethod(devtools.find_browser)

    @classmethod
    @contextlib.contextmanager
    def open_page(cls):
        with devtools.opened(cls.browser) as page:
            page.prefer(color_scheme="light", reduced_motion="reduce")
            page.resize(1280)
            page.send("Page.navigate", url=cls.link)
            yield page

    def go(self, **state):
        self.page.errors.clear()
        super().go(**state)

    # ---- Overview ----

    def test_overview_of_a_recording(self):
        self.go(view="overview", target="train.db")
        self.await_text(".overview h3.name", "train.db")
        tiles = dict(zip(self.text(".tile dt"), self.text(".tile strong")))
        self.assertRegex(tiles["CPU"], r"^[0-9.]+ cores$")
        self.assertRegex(tiles["Memory"], r"^[0-9.]+ MiB$")
        rate = probing("sql", os.path.join(self.folder, "train.db"), "SELECT (count(*) - 1) / (max(timestamp) - min(timestamp)) FROM python.steps", "-f", "csv",
                       "--no-header", check=t.OK).stdout
        self.assertAlmostEqual(float(rate), float(tiles["Steps"].split()[0]), delta=0.01 * float(rate))
        self.assertTrue(any("GIL contention" in one for one in self.text(".warnings a")), self.text(".warnings"))
        self.page.until("(one => one && new Set(new Uint32Array(one.getContext('2d').getImageData(0, 0, one.width, one.height).data.buffer)).size > 2)"
                        "(document.querySelector('.tile canvas'))")  # a line over its area
        self.assertIn("evaluator", self.text(".overview td"))
        self.assertIn(MARKUP + ".db", self.text("#overview td"))
        self.page.click("[...document.querySelectorAll('.overview .detail td a')].find(one => one.textContent === %r)" % self.pid)
        self.assertEqual(("flame", self.pid), (self.state()["view"], self.state()["rank"]))

    def test_overview_of_a_process_goes_on(self):
        self.go(view="overview", target=self.pid)
        self.await_text(".tile dt", "CPU")  # of a second reading
        self.assertGreater(float(self.text(".tile strong")[0].split()[0]), 0)
        self.await_text(".warnings a", "GIL contention: threads waited for it")  # the training and the evaluator
        self.page.click("[...document.querySelectorAll('.warnings a')].find(one => one.textContent.startsWith('GIL'))")
        self.assertEqual(("tables", "SELECT * FROM python.gil"), (self.state()["view"], self.state()["sql"]))

    def test_links_of_views_and_back(self):
        self.go(view="overview", target="train.db", since="0.5")
        self.page.until("!!" + LINK % "Tables")
        self.page.click(LINK % "Tables")
        self.assertEqual({"view": "tables", "target": "train.db", "since": "0.5"}, self.state())
        self.assertEqual(["Tables"], self.text("nav a[aria-current]"))
        self.page.run("history.back()")
        self.page.until("document.querySelector('nav a[aria-current]').textContent === 'Overview'")

    # ---- Tables ----

    def test_sql_by_keyboard_alone(self):
        self.open_tables("train.db")
        self.page.run("document.getElementById('sql').focus(); document.getElementById('sql').select()")
        self.page.type("SELECT name FROM hot_f")
        self.await_choice("hot_function")
        self.assertEqual(self.page.run(CHOSEN + ".id"), self.page.run(EDITOR + ".activeElement.getAttribute('aria-activedescendant')"))
        self.assertEqual([], axe.violations(self.page, axe.source()))
        self.page.press("Tab")
        self.page.type(" WHERE self_s")
        self.page.until(CHOSEN + "?.querySelector('.cm-completionLabel').textContent.startsWith('self_s')")
        while self.page.run(CHOSEN + ".querySelector('.cm-completionLabel').textContent") != "self_share":
            self.page.press("ArrowDown")
        self.page.press("Enter")
        self.await_value("SELECT name FROM hot_function WHERE self_share")
        self.page.type(" > 0 LIMIT 3")
        self.page.press("Escape")
        self.page.press("Enter", modifiers=devtools.CONTROL)
        self.await_text("#note", "3 rows")
        self.assertEqual("SELECT name FROM hot_function WHERE self_share > 0 LIMIT 3", self.state()["sql"])
        self.page.press("Escape", "Tab")  # out of the editor
        self.assertEqual("Run", self.page.run("document.activeElement.textContent"))

    def test_the_editor(self):
        """Columns are known before FROM is written, and by the alias of a table; words have colours; undo goes back."""
        self.open_tables("train.db")
        self.write("SELECT h.to FROM hot_function AS h")
        self.page.press("Home")
        self.page.press(*["ArrowRight"] * len("SELECT h.to"))
        self.page.type("t")
        self.await_choice("total_samples")
        self.page.press("Escape")
        self.write("SELECT self_sha FROM hot_function")
        self.page.press("Home")
        self.page.press(*["ArrowRight"] * len("SELECT self_sha"))
        self.page.type("r")
        self.await_choice("self_share")
        self.page.press("Enter")
        self.await_value("SELECT self_share FROM hot_function")
        colours = "[...new Set([...%s.querySelectorAll('.cm-line span')].map(one => getComputedStyle(one).color))].length" % EDITOR
        self.write("SELECT 'text', 1 -- remark")
        self.assertEqual(3, self.page.run(colours))
        self.assertEqual("SQL", self.page.run(EDITOR + ".querySelector('[role=textbox]').ariaLabel")[:3])
        self.page.press("z", modifiers=devtools.CONTROL)
        self.await_value("SELECT self_share FROM hot_function")

    def test_results(self):
        self.go(view="tables", target="train.db", sql="SELECT '%s' AS markup, 7 AS n, NULL AS empty" % MARKUP)  # a link that was shared
        self.await_text(".result th", "markup")
        self.await_text("#note", "1 row")
        self.assertEqual([MARKUP, "7", ""], self.text(".result td"))
        self.assertIn("2 rows, 1 row", self.run_sql("SELECT 1 AS a UNION SELECT 2; SELECT 9007199254740993 AS big"))
        self.assertEqual(["1", "2", "9007199254740993"], self.text(".result td"))
        self.assertIn("no such table", self.run_sql("SELECT * FROM xyzzy"))
        self.page.take_error("400")
        self.run_sql("SELECT 'a]\"[' AS name, 3 AS n UNION SELECT 'b', 5")
        self.page.click("[...document.querySelectorAll('#query button')].find(one => one.textContent === 'Chart')")
        self.page.until("!!document.querySelector('.bars')")
        self.assertEqual(["3", "5"], self.text(".bars .value"))
        self.run_sql("WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 9) SELECT x, x * x AS y FROM t")
        self.assertEqual(["y by x: 1 to 81"], self.text(".charts figcaption"))
        self.page.until("!!document.querySelector('.charts canvas')")
        self.page.mouse("mouseMoved", *self.page.middle_of("document.querySelector('.charts .u-over')"))
        self.await_text(".charts .u-value", "25")  # of 5, which is in the middle
        self.assertEqual("y by x: 1 to 81", self.page.run("document.querySelector('.charts canvas').closest('[role=img]').ariaLabel"))
        texts = self.page.run("[...document.querySelectorAll('#query select option')].map(one => one.value)")
        self.assertIn("SELECT * FROM xyzzy", texts)

    def test_downloads(self):
        self.go(view="tables", target="train.db")
        self.page.until("document.getElementById('sql')?.value && document.getElementById('target').value === 'train.db'")
        self.run_sql("SELECT 1 AS a, 'x,y' AS b")
        self.page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=self.folder)
        for kind, wanted in (("CSV", 'a,b\n1,"x,y"\n'), ("JSON", [{"a": 1, "b": "x,y"}])):
            self.page.click("[...document.querySelectorAll('#query button')].find(one => one.textContent === %r)" % kind)
            path = os.path.join(self.folder, "query." + kind.lower())
            t.wait_until(lambda: os.path.exists(path), 20, path)  # pylint: disable=cell-var-from-loop
            text = open(path).read().replace("\r\n", "\n")
            self.assertEqual(wanted, json.loads(text) if kind == "JSON" else text)
        self.page.click("[...document.querySelectorAll('#query button')].find(one => one.textContent === 'Arrow')")
        path = os.path.join(self.folder, "query.arrows")
        t.wait_until(lambda: os.path.exists(path), 20, path)
        with open(path, "rb") as file:
            self.assertEqual(b"\xff\xff\xff\xff", file.read(4))

    # ---- Flame graphs ----

    def picture(self, part="target=train.db"):
        """The address of the picture that is shown, when that of this address is there; else the sentence that says why not."""
        self.page.until("document.querySelector('.flame iframe')?.src.includes(%s)" % json.dumps(part))
        self.page.until("document.getElementById('graph-note') && ['', 'error'].includes(document.getElementById('graph-note').className)"
                        " && !document.querySelector('iframe.loading') && !document.getElementById('graph-note').textContent.endsWith('made.')")
        return self.page.run("document.querySelector('.flame iframe') && document.querySelector('.flame iframe').src"), self.text("#graph-note")[0]

    def parameters(self, address):
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))

    def test_flame_graphs_of_a_recording(self):
        self.go(view="flame", target="train.db")
        address, note = self.picture()
        self.assertEqual("", note)
        self.assertEqual("train.db", self.parameters(address)["target"])
        self.assertEqual([200], self.page.run("performance.getEntriesByType('resource').filter(one => one.initiatorType === 'iframe')"
                                              ".map(one => one.responseStatus)"))
        self.page.click("[...document.querySelectorAll('.flame button')].find(one => one.textContent === 'Reversed')")
        self.page.until("document.querySelector('.flame iframe').src.includes('inverted=1')")
        self.assertEqual("1", self.state()["inverted"])
        for state, wanted in (({"by": "step"}, {"by": "step"}), ({"thread": "evaluator"}, {"threads": "evaluator"}),
                              ({"base": "window", "baseUntil": "1", "since": "1"}, {"base": "train.db", "base-until": "1", "since": "1"}),
                              ({"base": MARKUP + ".db"}, {"base": MARKUP + ".db", "normalize": "samples"})):
            with self.subTest(state):
                self.go(view="flame", target="train.db", **state)
                self.page.until("document.querySelector('.flame iframe:not(.loading)').src.includes(%s)" % json.dumps(
                    urllib.parse.urlencode(dict([list(wanted.items())[0]]))))
                address, note = self.picture()
                self.assertEqual("", note)
                self.assertLess(wanted.items(), self.parameters(address).items())

    def test_a_filter_that_leaves_nothing_is_said(self):
        self.go(view="flame", target="train.db", function="xyzzy")
        self.await_text("#graph-note", "match")
        while self.page.errors:  # of the picture, and of the question why it is not there
            self.page.take_error("404")

    def test_a_flame_graph_of_a_process(self):
        self.go(view="flame", target=self.pid, seconds="1")
        self.page.until("!!document.getElementById('seconds') && document.getElementById('seconds').value === '1'")
        self.page.click("[...document.querySelectorAll('.flame button')].find(one => one.textContent === 'Draw')")
        self.page.until("document.querySelector('.flame iframe:not(.loading)')?.src.includes('target=%s')" % self.pid)

    # ---- Backtrace ----

    def test_backtrace(self):
        self.go(view="backtrace", target=self.pid)
        self.await_text("#stack .card h3", "MainThread")
        self.assertTrue(any(one.startswith("evaluator") for one in self.text("#stack h3")))
        self.await_text("#stack .call.python", "train train.py:")
        self.page.click("[...document.querySelectorAll('.backtrace button')].find(one => one.textContent === 'Merged')")
        self.page.until("document.getElementById('stack').className === 'tree'")
        self.assertEqual("1", self.state()["merged"])
        self.await_text("#stack.tree .soft", "evaluator (")
        self.go(view="backtrace", target=self.pid, thread="evaluator", python="1", period="1")
        self.await_text("#stack-note", "1 thread")
        first = self.text("#stack-note")
        self.page.until("document.getElementById('stack-note').textContent !== %s" % json.dumps(first[0]))
        self.assertEqual(0, self.page.run("document.querySelectorAll('#stack .call.native').length"))

    # ---- Compare ----

    def test_slow_steps_are_slow_by_what_only_they_do(self):
        self.go(view="compare", target="train.db", base="slow")
        self.await_text(".changes td", "checkpoint")
        self.assertIn("steps", self.text(".sides")[0])
        rows = self.page.run("[...document.querySelectorAll('.changes tbody tr')].map(one => [...one.children].map(cell => cell.textContent))")
        total = next(row[3:6] for row in rows if row[6] == "checkpoint")
        self.assertGreater(float(total[2] or 0), 3 * float(total[1] or 0), rows[:5])
        self.page.until("!!document.querySelector('.compare iframe:not(.loading)')")

    def test_comparisons(self):
        self.go(view="compare", target="train.db", base=MARKUP + ".db")
        self.await_text(".sides", "They differ in more than the code: mode")
        self.assertIn(MARKUP + ".db", self.text(".sides")[0])
        self.go(view="compare", target="train.db", base="window", baseUntil="1", since="1")
        self.page.until("document.querySelectorAll('.changes tbody tr').length > 3 && !document.querySelector('.sides').textContent.includes('differ')")
        wanted = json.loads(probing("diff", os.path.join(self.folder, "train.db"), os.path.join(self.folder, "train.db"), "--base-until=1", "--since=1",
                                    "--normalize=samples", "-f", "json", check=t.OK).stdout)
        self.assertEqual({one["name"] for one in wanted["functions"]}, set(self.text(".changes td:nth-child(7)")))
        self.page.until("!!document.querySelector('.compare iframe:not(.loading)')")

    # ---- Console ----

    def run_code(self, text):
        """The last line of the output."""
        before = len(self.text("#console-output pre"))
        self.page.run("document.getElementById('code').focus()")
        self.page.type(text)
        self.page.press("Enter", modifiers=devtools.CONTROL)
        self.page.until("document.querySelectorAll('#console-output pre').length >= %d" % (before + 2))
        return self.text("#console-output pre")[-1]

    def test_console(self):
        self.go(view="console", target=self.pid)
        self.page.until("!!document.getElementById('code')")
        self.assertEqual("42", self.run_code("40 + 2"))
        self.assertEqual(MARKUP, self.run_code("print(sys.argv[1])"))
        self.assertIn("ZeroDivisionError", self.run_code("1 / 0"))
        self.assertEqual("error", self.page.run("document.querySelector('#console-output pre:last-child').className"))
        self.page.press("ArrowUp", modifiers=devtools.CONTROL)
        self.assertEqual("1 / 0", self.page.run("document.getElementById('code').value"))

    def test_an_output_of_code_that_is_too_long(self):
        asked = "fetch('/apis/pythonext/eval?seconds=60&target=%s', {method: 'POST', body: \"print('x' * (34 << 20))\"}).then(one => one.status)" % self.pid
        self.assertEqual(413, self.page.run(asked))
        self.page.take_error("413")

    def test_names_of_tables_that_are_patterns(self):
        """A file of somebody else may have a table of any name."""
        self.open_tables("train.db")
        found = self.page.run("import('/serve/page/libraries/editor.js').then(({ columnsOf }) => columnsOf('FROM a(+.b WHERE x',"
                              " new Map([['a(+.b', [{ column_name: 'xyzzy' }]], ['(a+)+.c', [{ column_name: 'xenon' }]]])).map((one) => one.label))")
        self.assertEqual(["xyzzy"], found)

    # ---- Other pages ----

    def test_another_site_reads_and_runs_nothing(self):
        """A page of another port, which is the same site for a browser, and a name that leads to this machine (DNS rebinding)."""
        wanted = json.dumps({"method": "POST", "mode": "no-cors", "credentials": "include", "body": "import builtins; builtins.owned = 1"})
        with serving(self.pid, "--allow-eval") as (_, link), devtools.opened(self.browser) as page, foreign_site() as elsewhere:
            own = link.split("/?")[0]
            page.send("Page.navigate", url=link)
            page.until("document.querySelectorAll('#target option').length === 1")  # the browser has its cookie
            page.send("Page.navigate", url=elsewhere)
            page.until("document.title === 'elsewhere'")
            page.run("fetch(%s, %s).catch(() => 0).then(() => 0)" % (json.dumps(own + "/apis/pythonext/eval?target=" + self.pid), wanted))
            page.take_error("NotSameOrigin")
            for options in ({"credentials": "include"}, {"credentials": "include", "mode": "no-cors"}):
                self.assertEqual("", page.run("fetch(%s, %s).then(one => one.text(), () => '')" % (json.dumps(own + "/apis/overview"), json.dumps(options))))
            page.run("new Promise(done => document.body.append(Object.assign(document.createElement('iframe'), {src: %s, onload: () => done(0)})))" % json.dumps(own + "/"))
            self.assertEqual(1, page.run("frames.length"))
            self.assertTrue(page.run("(() => { try { return frames[0].document === null; } catch { return true; } })()"))
            rebound = own.replace("127.0.0.1", "evil.localhost")
            page.send("Page.navigate", url=rebound + "/")
            page.until("location.hostname === 'evil.localhost' && document.readyState === 'complete'")
            self.assertEqual([403, 403, 403], page.run("Promise.all([['/'], ['/apis/overview'], ['/apis/pythonext/eval?target=%s', %s]]"
                                                       ".map(one => fetch(...one).then(answer => answer.status)))" % (self.pid, wanted)))
        self.go(view="console", target=self.pid)
        self.page.until("!!document.getElementById('code') && document.getElementById('target').value === '%s'" % self.pid)
        self.assertEqual("False", self.run_code("hasattr(__import__('builtins'), 'owned')"))

    # ---- All views ----

    def test_every_view_by_keyboard(self):
        """Tab goes to its link, Enter opens it, Tab goes into it and out again."""
        self.go(view="overview", target=self.pid)
        self.await_text(".warnings a", "GIL")
        focus = "(one => one === document.body ? '' : one.closest('section') ? 'view' : one.closest('nav') ? one.textContent : 'head')(document.activeElement)"
        for target in (self.pid, "train.db"):
            self.go(view="tables", target=target)
            self.page.until("document.getElementById('target').value === %s" % json.dumps(target))
            for name in self.page.run("[...document.querySelectorAll('nav li:not([hidden]) a')].map(one => one.textContent)"):
                with self.subTest(target=target, view=name):
                    self.page.run("document.querySelector('.skip').focus()")
                    self.tab_until(focus, lambda at, name=name: at == name)
                    self.page.press("Enter")
                    self.page.until("document.querySelector('nav a[aria-current]').textContent === %s" % json.dumps(name))
                    self.page.until("!!document.querySelector('section:not([hidden]) :is(a, button, input, select, textarea, canvas, [tabindex])')")
                    self.tab_until(focus, lambda at: at == "view")
                    self.tab_until(focus, lambda at: at != "view")

    def tab_until(self, focus, is_there):
        for _ in range(400):
            self.page.press("Tab")
            at = self.page.run(focus)
            if is_there(at):
                return
        self.fail("Tab stays at %s" % self.page.run("document.activeElement.outerHTML.slice(0, 200)"))

    def test_a_view_that_is_refreshed_loses_no_click_and_no_focus(self):
        self.go(view="overview", target=self.pid)
        self.await_text(".warnings a", "GIL contention: threads waited for it")
        link = "[...document.querySelectorAll('.warnings a')].find(one => one.textContent.startsWith('GIL'))"
        self.page.run("window.before = %s; before.focus()" % link)
        self.page.until("!before.isConnected && document.activeElement.textContent.startsWith('GIL')")
        self.page.run("document.querySelector('#target').focus()")  # the press takes it
        x, y = self.page.middle_of(link)
        self.page.mouse("mouseMoved", x, y)
        self.page.mouse("mousePressed", x, y)
        self.page.run("window.before = " + link)
        self.page.fetched.clear()
        while len([url for url in self.page.fetched if "/query" in url]) < 2:  # refreshed, or it would be
            self.page.run("1")
        self.assertTrue(self.page.run("before.isConnected"))
        self.page.mouse("mouseReleased", x, y)
        self.page.until("location.hash.includes('view=tables')")

    def test_charts_that_are_gone_are_ended(self):
        """Also those of a view that was hidden when it got other contents: uPlot listens to the window for each."""
        self.go(view="overview", target=self.pid)
        self.page.until("document.querySelectorAll('.tile .uplot').length >= 2")
        self.page.run("""window.made = document.querySelectorAll('.uplot').length; for (const [name, by] of [['addEventListener', 1], ['removeEventListener', -1]]) {
            const before = window[name]; window[name] = function (kind, ...rest) { made += kind === 'dppxchange' ? by : 0; return before.call(this, kind, ...rest); }; } 0""")
        self.go(view="tables", target=self.pid)
        self.page.until("!document.querySelector('.overview').checkVisibility()")
        self.page.run("document.querySelector('.overview .detail').replaceChildren()")
        self.go(view="overview", target=self.pid)
        self.page.until("document.querySelectorAll('.tile .uplot').length >= 2")
        self.page.until("made <= document.querySelectorAll('.uplot').length")

    def test_everybody_can_use_it(self):
        """In both themes, narrow and wide: axe-core finds nothing, and nothing is wider than the window."""
        script = axe.source()
        for scheme, width in (("light", 800), ("dark", 2560)):
            self.page.prefer(color_scheme=scheme, reduced_motion="reduce")
            self.page.resize(width)
            with self.subTest(scheme=scheme):
                self.check_access(script, ("train.db", self.pid))
        self.page.resize(1280)
        self.page.prefer(color_scheme="light", reduced_motion="reduce")


class Warnings(t.Case):
    """What the overview warns of, beside losses and the GIL: limits of cgroups, throttled GPUs, stragglers."""
    NIGHTLY_FOR_USERS = True

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        if devtools.find_browser() is None:
            cls.skipTest(cls, "there is no Chromium here")
        if not os.path.exists(LIBRARY):
            cls.skipTest(cls, "built without the agent")
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(t.scratch())
            environment = dict(os.environ, AGENT=LIBRARY, PACKAGE=os.path.join(t.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1",
                               PROBING_DATA_DIR=folder, **PRELOADED)
            program = stack.enter_context(t.target([t.DEBIAN_PYTHON, "-c", UNEVEN], env=environment))
            cls.pid = str(program.pid)
            probing("record", "--pid", cls.pid, "-d", "2", "-o", "uneven.db", check=t.OK)
            counts = json.loads(probing("sql", "uneven.db", "SELECT tid FROM steps GROUP BY tid ORDER BY count(*)", "-f", "json", check=t.OK).stdout)
            cls.slow = str(counts[0]["tid"])
            cls.write_limits("limits.db")
            shutil.copy(os.path.join(t.FIXTURES, "recordings", "version_1.db"), "version_1.db")
            _, link = stack.enter_context(serving("uneven.db", "limits.db", "version_1.db", cls.pid))
            cls.page = stack.enter_context(devtools.opened(devtools.find_browser()))
            cls.page.send("Page.navigate", url=link)
            cls.page.until("document.querySelectorAll('#target option').length === 4")
            cls.addClassCleanup(stack.pop_all().close)

    @staticmethod
    def write_limits(path):
        """A recording of a cgroup that was stopped in half of its periods, and of a GPU that was too hot in half of the time."""
        shutil.copy("uneven.db", path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("DROP TABLE IF EXISTS cgroup_usage")
            db.execute("CREATE TABLE cgroup_usage(timestamp REAL, path TEXT, periods INTEGER, throttled_periods INTEGER,"
                       " throttled_ns INTEGER, oom_kills INTEGER, host TEXT)")
            db.execute("DROP TABLE IF EXISTS gpu_metrics")
            db.execute("CREATE TABLE gpu_metrics(timestamp REAL, device INTEGER, gpu_util INTEGER, memory_used_mb REAL,"
                       " memory_total_mb REAL, temperature_c INTEGER, power_w REAL, throttled INTEGER, throttle_reasons TEXT, host TEXT)")
            for n in range(11):
                db.execute("INSERT INTO cgroup_usage VALUES(?, ?, ?, ?, ?, ?, 'h')", (1e9 + n, "/" + MARKUP, 10 * n, 5 * n, n * 10 ** 8, n // 5))
                db.execute("INSERT INTO cgroup_usage VALUES(?, '/free', ?, 0, 0, 0, 'h')", (1e9 + n, 10 * n))
                for device in (0, 1):
                    hot = int(device == 1 and n % 2 == 0)
                    db.execute("INSERT INTO gpu_metrics VALUES(?, ?, 50, 1000.0, 80000.0, 60, 300.0, ?, ?, 'h')",
                               (1e9 + n, device, hot, "thermal" if hot else None))
            db.commit()

    def warnings(self, target, first):
        """Those of a target, when there is one that begins so."""
        self.page.run("location.hash = %s" % json.dumps("#" + urllib.parse.urlencode({"view": "overview", "target": target})))
        self.page.until("document.querySelector('.overview h3.name')?.textContent.endsWith(%s)" % json.dumps(target))
        self.page.until("[...document.querySelectorAll('.warnings a')].some(one => one.textContent.startsWith(%s))" % json.dumps(first))
        return self.page.run("[...document.querySelectorAll('.warnings a')].map(one => one.textContent)")

    def tearDown(self):
        self.assertEqual([], self.page.errors)
        self.assertEqual(0, self.page.run("document.querySelectorAll('img').length"))
        super().tearDown()

    def follow(self, first):
        """Where its link leads."""
        href = self.page.run("[...document.querySelectorAll('.warnings a')].find(one => one.textContent.startsWith(%s)).href" % json.dumps(first))
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(href).fragment))

    def test_a_straggler_of_a_recording(self):
        (found,) = [one for one in self.warnings("uneven.db", "Straggler") if one.startswith("Straggler")]
        self.assertRegex(found, r"^Straggler: thread %s makes [0-9.]+ steps/s, others [0-9.]+$" % self.slow)
        state = self.follow("Straggler")
        self.assertEqual(("flame", self.slow), (state["view"], state["thread"]))

    def test_a_straggler_of_a_process(self):
        (found,) = [one for one in self.warnings(self.pid, "Straggler") if one.startswith("Straggler")]
        self.assertRegex(found, r"^Straggler: thread %s makes " % self.slow)
        self.assertEqual("backtrace", self.follow("Straggler")["view"])

    def test_a_recording_of_version_1(self):
        """Its samples are rows, not blocks."""
        self.page.run("location.hash = '#view=overview&target=version_1.db'")
        self.page.until("document.querySelector('.overview h3.name')?.textContent === 'version_1.db'")
        self.assertEqual([], self.page.run("[...document.querySelectorAll('.overview .error')].map(one => one.textContent)"))
        self.assertEqual("57", self.page.run("[...document.querySelectorAll('.tile')].find(one => one.textContent.startsWith('Samples')).querySelector('strong').textContent"))

    def test_limits_and_heat(self):
        found = [one for one in self.warnings("limits.db", "GPU") if not one.startswith("Straggler")]
        self.assertEqual("CPU limit: the cgroup /%s was stopped in 50 %% of its periods, 1 s in all" % MARKUP, found[0])
        self.assertEqual("Memory limit: 2 processes of the cgroup /%s killed" % MARKUP, found[1])
        self.assertEqual("GPU 1: power or heat held its clock down 54.5 % of the time (thermal)", found[2])
        self.assertEqual(3, len(found), found)
        self.assertEqual("SELECT * FROM gpu_metrics", self.follow("GPU")["sql"])


class PageInFirefox(Training):
    """The views, as far as a browser may differ: modules, keys, canvas, frames, layout."""

    name, finder = "Firefox", staticmethod(marionette.find_browser)

    @classmethod
    def setUpClass(cls):
        if not os.environ.get("PROBING_NIGHTLY"):
            cls.skipTest(cls, "takes a minute: scripts/test --nightly runs it")
        super().setUpClass()

    @classmethod
    @contextlib.contextmanager
    def open_page(cls):
        with marionette.opened(cls.browser) as page:
            page.resize(1280)
            page.open_url(cls.link)
            yield page

    def test_overview(self):
        self.go(view="overview", target="train.db")
        self.await_text(".overview h3.name", "train.db")
        self.assertIn("CPU", self.text(".tile dt"))
        self.go(view="overview", target=self.pid)
        self.await_text(".tile dt", "CPU")  # of a second reading

    def test_tables_by_keyboard(self):
        self.open_tables("train.db")
        self.page.run("document.getElementById('sql').focus(); document.getElementById('sql').select()")
        self.page.type("SELECT name FROM hot_f")
        self.await_choice("hot_function")
        self.page.press("Tab")
        self.await_value("SELECT name FROM hot_function")
        self.assertIn("1 row", self.run_sql("SELECT '%s' AS markup, 7 AS n" % MARKUP))
        self.assertEqual([MARKUP, "7"], self.text(".result td"))
        self.run_sql("SELECT 'a' AS name, 3 AS n UNION SELECT 'b', 5")
        self.page.click("[...document.querySelectorAll('#query button')].find(one => one.textContent === 'Chart')")
        self.page.until("!!document.querySelector('.bars')")
        self.assertEqual(["3", "5"], self.text(".bars .value"))

    def test_timeline(self):
        """Something is drawn, and zoom by a key changes the range of the address."""
        self.go(view="timeline", target="train.db")
        self.page.until("document.querySelectorAll('.timeline .names button').length > 0")
        self.page.until("(canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size > 8)"
                        "(document.querySelector('.timeline canvas'))")
        self.page.run("document.querySelector('.timeline canvas').focus()")
        self.page.press("+", "+", "+")
        self.page.until("location.hash.includes('since=')")

    def test_flame_graph(self):
        self.go(view="flame", target="train.db")
        self.page.until("!!document.querySelector('.flame iframe:not(.loading)') && document.getElementById('graph-note').textContent === ''")

    def test_backtrace(self):
        self.go(view="backtrace", target=self.pid)
        self.await_text("#stack .call.python", "train train.py:")
        self.page.click("[...document.querySelectorAll('.backtrace button')].find(one => one.textContent === 'Merged')")
        self.page.until("document.getElementById('stack').className === 'tree'")

    def test_compare(self):
        self.go(view="compare", target="train.db", base="slow")
        self.await_text(".changes td", "checkpoint")
        self.page.until("!!document.querySelector('.compare iframe:not(.loading)')")

    def test_console(self):
        self.go(view="console", target=self.pid)
        self.page.until("!!document.getElementById('code')")
        self.page.run("document.getElementById('code').focus()")
        self.page.type("40 + 2")
        self.page.press("Enter", modifiers=devtools.CONTROL)
        self.page.until("[...document.querySelectorAll('#console-output pre')].some(one => one.textContent === '42')")

    def test_everybody_can_use_it(self):
        script = axe.source()
        for width, target in ((2560, "train.db"), (800, self.pid)):
            self.page.resize(width)
            self.check_access(script, (target,))
        self.page.resize(1280)


class Ranks(t.Case):
    """Ranks of a job, one of which is elsewhere: their tree with the ranks of each branch, and their list."""

    @classmethod
    def setUpClass(cls):
        if devtools.find_browser() is None:
            cls.skipTest(cls, "there is no Chromium here")
        with contextlib.ExitStack() as stack:
            stack.enter_context(t.scratch())
            cls.processes = stack.enter_context(test_cluster.job(3, 4029))
            _, cls.link = stack.enter_context(serving(*(str(one.pid) for one in cls.processes), PROBING_AUTH_TOKEN=TOKEN))
            cls.page = stack.enter_context(devtools.opened(devtools.find_browser()))
            cls.page.send("Page.navigate", url=cls.link)
            cls.page.until("document.querySelectorAll('#target option').length === 3")
            cls.addClassCleanup(stack.pop_all().close)

    def ask(self, path, method="GET", body=None):
        connection = http.client.HTTPConnection(self.link.split("/")[2], timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, path, body, {"Authorization": "Bearer " + TOKEN})
        return Answer(connection.getresponse())

    def test_one_tree_of_all_ranks(self):
        self.page.run("location.hash = '#view=backtrace&all=1&python=1&period=1'")
        self.page.until("document.querySelectorAll('.classes li').length === 2")
        odd, usual = self.page.run("[...document.querySelectorAll('.classes li')].map(one => one.textContent)")
        self.assertRegex(odd, r"^rank 2 load_batch ranks\.py:\d+")
        self.assertRegex(usual, r"^ranks 0,1 all_reduce ranks\.py:\d+")
        self.assertEqual(["ranks 0-2", "rank 2", "ranks 0,1"], self.page.run("[...document.querySelectorAll('#stack .who')].map(one => one.textContent)"))
        self.assertEqual(0, self.page.run("document.querySelectorAll('#stack .call.native').length"))
        before = self.page.run("document.getElementById('stack-note').textContent")
        self.page.until("document.getElementById('stack-note').textContent !== %s" % json.dumps(before))  # it is refreshed
        self.page.click("[...document.querySelectorAll('.backtrace button')].find(one => one.textContent === 'All threads')")
        self.page.until("document.getElementById('stack').textContent.includes('background')")
        self.page.run("location.hash = '#view=backtrace&all=1&thread=nobody&period=1'")  # who is waited for
        self.page.until("document.getElementById('stack-note').textContent.endsWith(': 0 threads')")
        before = self.page.run("document.getElementById('stack-note').textContent")
        self.page.until("document.getElementById('stack-note').textContent !== %s" % json.dumps(before))
        self.page.run("location.hash = '#view=overview&thread='")
        self.assertEqual([], self.page.errors)

    def test_the_overview_lists_them(self):
        self.page.run("location.hash = '#view=overview'")
        self.page.until("document.querySelectorAll('.overview .part table').length === 2")
        rows = self.page.run("[...document.querySelectorAll('.overview .part:nth-child(2) tbody tr')].map(one => [...one.children].map(cell => cell.textContent))")
        self.assertEqual([[str(rank), str(one.pid), "running"] for rank, one in enumerate(self.processes)], [[row[0], *row[2:4]] for row in rows])

    def test_one_query_of_all_ranks(self):
        rows = self.ask("/apis/ranks/query", "POST", "SELECT rank, pid FROM memory_usage").json
        self.assertEqual([(rank, one.pid) for rank, one in enumerate(self.processes)], [(row["rank"], row["pid"]) for row in rows])
        each = self.ask("/apis/ranks/query?each=1", "POST", "SELECT count(*) AS n FROM python.backtrace").json
        self.assertEqual([0, 1, 2], [row["rank"] for row in each])
        self.assertEqual(400, self.ask("/apis/ranks/query", "POST", "").status)
        self.assertEqual(400, self.ask("/apis/ranks/query", "POST", "DELETE FROM memory_usage").status)
        wrong = self.ask("/apis/ranks/query", "POST", "SELECT max(nosuch) FROM memory_usage a JOIN memory_usage b USING (rank)")
        self.assertRegex(wrong.error, "no such column: nosuch")
        much = self.ask("/apis/ranks/query", "POST", "SELECT length(zeroblob(500000000) || 'x')")
        self.assertEqual((400, "the query needs more memory than the 384 MiB that it may take (--memory)"), (much.status, much.error))
        self.assertEqual({"probing_cluster", "classes", "hosts"}, set(self.ask("/apis/backtrace").json) - {"version"})


class WithoutLibraries(t.Case):
    """What a build without npm has in their place."""

    def test_a_plain_field(self):
        path = os.path.join(t.ROOT, "src", "serve", "page", "libraries", "none", "editor.js")
        if not os.path.exists(path):
            self.skipTest("the source tree is not here")
        if devtools.find_browser() is None:
            self.skipTest("there is no Chromium here")
        with open(path, encoding="utf-8") as file:
            module = "data:text/javascript," + urllib.parse.quote(file.read())
        with devtools.opened(devtools.find_browser()) as page:
            page.run("import(%s).then(({ makeEditor }) => { window.ran = 0; window.field = makeEditor('SQL', () => ran++); document.body.append(field);"
                     " field.setCatalogue(new Map()); field.value = 'x'; field.select(); field.focus(); })" % json.dumps(module))
            page.type("SELECT 1")
            page.press("Enter", modifiers=devtools.CONTROL)
            self.assertEqual(["SELECT 1", 1, "SQL"], page.run("[field.value, ran, field.ariaLabel]"))
            page.press("Tab")
            self.assertNotEqual("TEXTAREA", page.run("document.activeElement.tagName"))
            self.assertEqual([], page.errors)


class Windows(t.Case):
    def test_two_windows_of_one_recording(self):
        """diff of a recording with itself: its first half against its second one."""
        t.need_perf()
        with t.scratch(), t.fixture("demo.py") as target:
            probing("record", "--pid", target.pid, "-d", 2, "-F", 299, "-o", "out.db", check=t.OK)
            both = json.loads(probing("diff", "out.db", "out.db", "--base-until", "1", "--since", "1", "-f", "json", check=t.OK).stdout)
            counts = [probing("sql", "out.db", "WITH r AS (SELECT started + 1 AS half FROM run) SELECT count(*) FROM sample, r "
                              "WHERE timestamp %s half AND stack NOT IN (SELECT stack FROM stack_path JOIN named_frame "
                              "USING (frame) WHERE name = '[not sampled]')" % sign, "-f", "csv", "--no-header", check=t.OK).stdout.strip() for sign in ("<", ">=")]
            self.assertEqual(counts, [str(both[side][0]["samples"]) for side in ("base", "head")])
            self.assertIn("--base-since needs a time", probing("diff", "out.db", "out.db", "--base-since", "x", check=t.USAGE).stderr)


class RanksOfMachines(t.Case):
    """serve --hosts: ranks on two machines, of which the server has only the names."""

    @classmethod
    def setUpClass(cls):
        if devtools.find_browser() is None:
            cls.skipTest(cls, "there is no Chromium here")
        if not os.path.exists(LIBRARY):
            cls.skipTest(cls, "built without the agent")
        with contextlib.ExitStack() as stack:
            cls.machines = stack.enter_context(machines.Machines(2))
            stack.enter_context(t.scratch())
            tokens = os.path.join(cls.machines.folder, "tokens")
            os.mkfifo(tokens)
            for rank, machine in enumerate(cls.machines.all):
                own = os.path.join(cls.machines.folder, machine.name)
                os.mkdir(own)
                environment = dict(os.environ, AGENT=LIBRARY, PACKAGE=os.path.join(t.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1",
                                   PROBING_DATA_DIR=own, RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE="2", MASTER_PORT="4031", **PRELOADED)
                process = machine.start(t.DEBIAN_PYTHON, "-c", UNEVEN_RANKS, tokens, env=environment, stderr=subprocess.DEVNULL)
                stack.callback(process.wait, 20)
                stack.callback(process.kill)
            probing("record", "--metrics-only", "--pid", os.getpid(), "-d", "1", "-o", "any.db", check=t.OK)
            cls.hosts = ("--hosts", "node[0-1]", "--ssh", cls.machines.ssh, "--remote-probing", os.path.abspath(t.BINARY))
            t.wait_until(cls.both_have_steps, 60, "steps of both ranks")
            _, link = stack.enter_context(serving("any.db", *cls.hosts))
            cls.page = stack.enter_context(devtools.opened(devtools.find_browser()))
            cls.page.send("Page.navigate", url=link)
            cls.page.until("document.querySelectorAll('nav a').length > 1")
            cls.addClassCleanup(stack.pop_all().close)

    @classmethod
    def both_have_steps(cls):
        done = probing("cluster", "query", "-f", "json", *cls.hosts, "--each", "SELECT count(*) AS n FROM steps")
        return done.returncode == 0 and [min(row["n"] or 0, 3) for row in json.loads(done.stdout or "[]") if row.get("rank") is not None] == [3, 3]

    def test_the_overview_lists_ranks_and_names_the_straggler(self):
        self.page.run("location.hash = '#view=overview'")
        self.page.until("document.querySelectorAll('.overview .part:nth-child(2) tbody tr').length === 2")
        rows = self.page.run("[...document.querySelectorAll('.overview .part:nth-child(2) tbody tr')].map(one => [...one.children].map(cell => cell.textContent))")
        self.assertEqual([["0", "node0", "running"], ["1", "node1", "running"]], [[row[0], row[1], row[3]] for row in rows])
        self.assertEqual("", rows[0][5])
        self.assertRegex(rows[1][5], r"^Straggler: others make [0-9.]+ steps/s$")
        self.assertLess(float(rows[1][4]), 0.5 * float(rows[0][4]))
        self.assertEqual([], self.page.errors)

    def test_one_tree_of_ranks_of_both_machines(self):
        self.page.run("location.hash = '#view=overview'")
        self.page.until("document.querySelectorAll('.overview .part:nth-child(2) tbody tr').length === 2 && !%s.parentNode.hidden" % (LINK % "Backtrace"))
        self.page.click(LINK % "Backtrace")  # also where no target is a process
        self.page.until("document.querySelectorAll('#stack .who').length > 0")
        self.assertTrue(self.page.run("document.getElementById('stack-note').textContent").endswith(": 2 threads"))
        self.assertEqual([], self.page.errors)


if __name__ == "__main__":
    import unittest
    unittest.main()
