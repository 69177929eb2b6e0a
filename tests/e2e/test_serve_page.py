# SPDX-License-Identifier: MIT
"""The page of probing serve in Chromium and Firefox: each view on a recording and on a process, by keys, in both themes, narrow and wide."""
import contextlib
import http.client
import json
import os
import subprocess
import sys
import urllib.parse

import probing_test as t
from probing_test import probing
from test_agent import LIBRARY, PRELOADED
import test_cluster
from test_serve import Answer, serving

sys.path.insert(0, os.path.join(t.ROOT, "tests", "browser"))
import axe  # noqa: E402
import devtools  # noqa: E402
import marionette  # noqa: E402

TOKEN = "a token of the test"
MARKUP = "<img src=x onerror=alert(1)>"
# A training with a second thread, which wants the GIL too. Each 20th step is slow, because of checkpoint().
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

def checkpoint():
    time.sleep(0.25)

def evaluate():
    while True:
        burn(0.05)

def train():
    step = 0
    while True:
        probing.step(step)
        with probing.span("forward"):
            forward()
        if step % 20 == 7:
            checkpoint()
        step += 1

threading.Thread(target=evaluate, name="evaluator", daemon=True).start()
print("ready {}", flush=True)
train()
"""
LINK = "[...document.querySelectorAll('nav a')].find(one => one.textContent === %r)"


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
        self.assertIn("evaluator", self.text(".overview td"))
        self.assertIn(MARKUP + ".db", self.text("#overview td"))
        self.page.click("[...document.querySelectorAll('.overview .detail td a')].find(one => one.textContent === %r)" % self.pid)
        self.assertEqual(("flame", self.pid), (self.state()["view"], self.state()["rank"]))

    def test_overview_of_a_process_goes_on(self):
        self.go(view="overview", target=self.pid)
        self.await_text(".tile dt", "CPU")  # of a second reading
        self.assertGreater(float(self.text(".tile strong")[0].split()[0]), 0)

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
        self.go(view="tables", target="train.db")
        self.await_text(".catalogue summary", "hot_function")
        self.page.run("document.getElementById('sql').focus(); document.getElementById('sql').select()")
        self.page.type("SELECT name FROM hot_f")
        self.page.until("!document.getElementById('suggestions').hidden")
        self.assertEqual("suggestion-0", self.page.run("document.activeElement.getAttribute('aria-activedescendant')"))
        self.page.press("Tab")
        self.page.type(" WHERE self_s")
        self.await_text("#suggestions li", "self_share")
        self.page.press("ArrowDown", "Enter")
        self.assertEqual("SELECT name FROM hot_function WHERE self_share", self.page.run("document.getElementById('sql').value"))
        self.page.type(" > 0 LIMIT 3")
        self.page.press("Escape")
        self.page.press("Enter", modifiers=devtools.CONTROL)
        self.await_text("#note", "3 rows")
        self.assertEqual("SELECT name FROM hot_function WHERE self_share > 0 LIMIT 3", self.state()["sql"])

    def test_results(self):
        self.go(view="tables", target="train.db", sql="SELECT '%s' AS markup, 7 AS n, NULL AS empty" % MARKUP)  # a link that was shared
        self.await_text("#note", "1 row")
        self.assertEqual([MARKUP, "7", ""], self.text(".result td"))
        self.assertIn("2 rows, 1 row", self.run_sql("SELECT 1 AS a UNION SELECT 2; SELECT 9007199254740993 AS big"))
        self.assertEqual(["1", "2", "9007199254740993"], self.text(".result td"))
        self.assertIn("no such table", self.run_sql("SELECT * FROM xyzzy"))
        self.assertIn("400", self.page.errors.pop())
        self.run_sql("SELECT 'a]\"[' AS name, 3 AS n UNION SELECT 'b', 5")
        self.page.click("[...document.querySelectorAll('#query button')].find(one => one.textContent === 'Chart')")
        self.page.until("!!document.querySelector('.bars')")
        self.assertEqual(["3", "5"], self.text(".bars .value"))
        self.run_sql("WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 9) SELECT x, x * x AS y FROM t")
        self.assertEqual(["y by x: 1 to 81"], self.text(".charts figcaption"))
        texts = self.page.run("[...document.querySelectorAll('#query select option')].map(one => one.value)")
        self.assertIn("SELECT * FROM xyzzy", texts)

    def test_downloads(self):
        self.go(view="tables", target="train.db")
        self.page.until("!!document.getElementById('sql')")
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

    def picture(self):
        """The address of the picture that is shown, when it is there; else the sentence that says why not."""
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
        self.page.errors.clear()  # the failed request

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
        self.page.errors.clear()  # the browser's line about the status

    def test_names_of_tables_that_are_patterns(self):
        """A file of somebody else may have a table of any name."""
        found = self.page.run("import('/serve/page/complete.js').then(({ suggestionsOf }) => suggestionsOf('FROM a(+.b WHERE x', 'x',"
                              " new Map([['a(+.b', [{ column_name: 'xyzzy' }]], ['(a+)+.c', [{ column_name: 'xenon' }]]])).map(([word]) => word))")
        self.assertEqual(["xyzzy"], found)

    # ---- All views ----

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
        self.go(view="tables", target="train.db")
        self.await_text(".catalogue summary", "hot_function")
        self.page.run("document.getElementById('sql').focus(); document.getElementById('sql').select()")
        self.page.type("SELECT name FROM hot_f")
        self.page.until("!document.getElementById('suggestions').hidden")
        self.page.press("Tab")
        self.assertEqual("SELECT name FROM hot_function", self.page.run("document.getElementById('sql').value"))
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


if __name__ == "__main__":
    import unittest
    unittest.main()
