# SPDX-License-Identifier: MIT
"""The timeline: its columns against SQL, what may be asked over HTTP, recordings that go on, rows of programs, imported traces."""
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import probing_test as t
import test_rings
from probing_test import probing
from test_serve import Answer, commands_of, serving

sys.path.insert(0, os.path.join(t.ROOT, "tests", "browser"))
import axe  # noqa: E402
import devtools  # noqa: E402

NAME = "<img src=x>.db"
TOKEN = "a token of the test"
TRACE = os.path.join(t.FIXTURES, "traces", "torch-2.11-cuda.json.gz")
ALL_TESTS_S = 600  # a target outlives all tests of its case, on a busy machine, too
# Time without samples has rows, and no lane.
SAMPLES = "FROM sample LEFT JOIN stack USING (stack) LEFT JOIN frame USING (frame) WHERE kind IS NOT 'unsampled' AND state IS NOT 'await'"
LOOP = r"""
import threading, time
def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def train(n):
    for i in range(n):
        probing.step(i)
        with probing.span('outer'):
            with probing.span('inner'):
                busy(0.02)
            time.sleep(0.01)
    probing.span('open').__enter__()
"""


def timeline(*arguments):
    return json.loads(probing("timeline", *arguments, check=t.OK).stdout)


def rows_of(path, sql):
    return [list(row.values()) for row in json.loads(probing("sql", path, sql, "-f", "json", check=t.OK).stdout)]


def slices(numbers):
    return [numbers[i:i + 4] for i in range(0, len(numbers), 4)]


def names_of(answer, row):
    return {answer["names"][name][0] for _, _, name, _ in slices(row)}


def lanes_of(answer, kind):
    return [lane for lane in answer["events"] if lane["kind"] == kind]


class Lanes(t.Case):
    """Of a recording with threads that hold the GIL, let it go, and wait."""

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(t.scratch())
            target = stack.enter_context(t.fixture("gil.py", "--seconds", ALL_TESTS_S))
            probing("record", "--pid", target.pid, "-d", 2, "-F", 199, "--mode", "wall", "-o", "train.db", check=t.OK)
            process, link = stack.enter_context(serving("train.db", str(target.pid), PROBING_AUTH_TOKEN=TOKEN))
            cls.pid, cls.server, cls.folder = target.pid, process, folder
            cls.path = os.path.join(folder, "train.db")
            cls.port = int(re.match(r"http://127\.0\.0\.1:(\d+)/", link).group(1))
            cls.addClassCleanup(stack.pop_all().close)

    def ask(self, parameters="", token=TOKEN, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(connection.close)
        if token:
            headers["Authorization"] = "Bearer " + token
        connection.request("GET", "/apis/timeline" + parameters, headers=headers)
        return Answer(connection.getresponse())

    def check_shape(self, answer):
        self.assertEqual(0, answer["column_ns"] & (answer["column_ns"] - 1))
        for thread in answer["threads"]:
            rows = thread.get("rows", [])
            for row in [*rows, thread["states"], thread["held"]]:
                end = 0
                for first, n, _, _ in slices(row):
                    self.assertGreaterEqual(first, end)
                    self.assertGreater(n, 0)
                    end = first + n
                self.assertLessEqual(end, answer["columns"])
            for above, below in zip(rows, rows[1:]):  # each call lies within its caller
                for first, n, _, _ in slices(below):
                    self.assertTrue(any(a <= first and first + n <= a + m for a, m, _, _ in slices(above)))

    def test_all_samples_are_there_at_any_width(self):
        n = dict(rows_of(self.path, "SELECT tid, count(*) %s GROUP BY tid" % SAMPLES))
        for pixels in (16, 100, 8192):
            answer = timeline(self.path, "--pixels", pixels, "--depth", 256)
            self.check_shape(answer)
            self.assertLessEqual(answer["column_ns"], (answer["end_ns"] - answer["begin_ns"]) / pixels)
            self.assertEqual(n, {thread["tid"]: sum(one[3] for one in slices(thread["rows"][0])) for thread in answer["threads"]})
            self.assertEqual(n, {thread["tid"]: thread["samples"] for thread in answer["threads"]})

    def test_functions_states_and_the_holder_of_the_gil(self):
        answer = timeline(self.path, "--pixels", 300)
        threads = {thread["name"]: thread for thread in answer["threads"]}
        self.assertTrue({"holder", "free", "collector"} <= set(threads))
        self.assertIn("holding", set().union(*(names_of(answer, row) for row in threads["holder"]["rows"])))
        self.assertNotIn("holding", set().union(*(names_of(answer, row) for row in threads["free"]["rows"])))
        fine = timeline(self.path, "--pixels", 8192)
        states = {fine["states"][state] for thread in fine["threads"] if thread["name"] == "holder" for _, _, state, _ in slices(thread["states"])}
        self.assertIn("running", states)
        self.assertTrue(states & {"gil", "runnable", "lock"}, states)  # the collector takes turns with it
        [gil] = answer["gil"]
        self.assertEqual(self.pid, gil["pid"])
        held = {}
        for _, n, thread, share in slices(gil["slices"]):
            name = answer["threads"][thread]["name"]
            held[name] = held.get(name, 0) + n * share
        self.assertEqual({"holder", "collector"}, set(sorted(held, key=held.get)[-2:]), held)
        self.assertIn("memory (RSS)", [curve["name"] for curve in answer["curves"]])
        curve = next(curve for curve in answer["curves"] if curve["name"] == "memory (RSS)")
        self.assertAlmostEqual(rows_of(self.path, "SELECT max(rss) FROM process_usage WHERE pid = %d" % self.pid)[0][0] / 2 ** 20,
                               curve["top"], delta=1)

    def test_a_part_of_it(self):
        whole = timeline(self.path)
        tid = next(thread["tid"] for thread in whole["threads"] if thread["name"] == "holder")
        answer = timeline(self.path, "--since", "500ms", "--until", 1, "--threads", tid, "--depth", 1, "--pixels", 50)
        self.check_shape(answer)
        self.assertTrue(500e6 - answer["column_ns"] < answer["first_ns"] <= 500e6)
        self.assertEqual([tid], [thread["tid"] for thread in answer["threads"] if "rows" in thread])
        [shown] = [thread for thread in answer["threads"] if "rows" in thread]
        self.assertEqual(1, len(shown["rows"]))
        self.assertGreater(shown["depth"], 1)
        # A microsecond is one call, as long as the view. It is one with samples: a machine that is busy leaves gaps.
        fine = timeline(self.path, "--since", "500ms", "--until", 1, "--threads", tid, "--depth", 1, "--pixels", 8192)
        [shown] = [thread for thread in fine["threads"] if "rows" in thread]
        first, n, _, _ = max(slices(shown["rows"][0]), key=lambda one: one[1])
        at = (fine["first_ns"] + (first + n / 2) * fine["column_ns"]) / 1e9
        answer = timeline(self.path, "--since", "%.9f" % at, "--until", "%.9f" % (at + 1e-6), "--threads", tid, "--pixels", 600)
        self.assertEqual(1, answer["column_ns"])
        [shown] = [thread for thread in answer["threads"] if "rows" in thread]
        self.assertLessEqual(len(slices(shown["rows"][0])), 2)

    def test_over_http(self):
        answer = self.ask("?target=train.db&pixels=100&since=0.5&until=1")
        self.assertEqual((200, "application/json"), (answer.status, answer.headers["Content-Type"]))
        self.assertEqual(timeline(self.path, "--pixels", 100, "--since", 0.5, "--until", 1), answer.json)
        first = commands_of(self.server)
        self.assertEqual(200, self.ask("?pixels=200").status)
        self.assertEqual(first, commands_of(self.server))  # it stays, and has the recording
        self.assertEqual(1, len(first))
        os.kill(first[0], signal.SIGKILL)
        self.assertEqual(200, self.ask("?pixels=200").status)
        self.assertNotEqual(first, commands_of(self.server))

    def test_who_and_what_is_refused(self):
        self.assertEqual(401, self.ask(token=None).status)
        self.assertEqual(403, self.ask(Host="evil.example:%d" % self.port).status)
        self.assertEqual(403, self.ask(Origin="http://evil.example").status)
        for wrong in ("pixels=0", "pixels=9999", "depth=1000", "threads=a", "since=1&until=0", "since=1%0Asince=2", "pixels=100%26depth=0",
                      "threads=" + ",".join("1" * 65), "since=" + "1" * 2000):
            answer = self.ask("?" + wrong)
            self.assertEqual(400, answer.status, wrong)
            self.assertTrue(answer.error)
        self.assertEqual(404, self.ask("?target=/etc/passwd").status)
        answer = self.ask("?target=%d" % self.pid)
        self.assertEqual(400, answer.status)
        self.assertIn("probing record -p %d" % self.pid, answer.error)
        self.assertEqual(200, self.ask().status)

    def test_wrong_options(self):
        for wrong in (["--pixels", "3"], ["--threads", "x"], ["--since", "2", "--until", "1"]):
            probing("timeline", self.path, *wrong, check=t.USAGE)
        self.assertIn("nothing.db", probing("timeline", "nothing.db", check=t.NO_INPUT).stderr)
        with open("text.db", "w") as file:
            file.write("no recording")
        self.addCleanup(os.unlink, "text.db")
        self.assertIn("text.db", probing("timeline", "text.db", check=t.BAD_DATA).stderr)


class Following(t.Case):
    def test_a_recording_that_goes_on(self):
        t.need_perf()
        with t.scratch(), t.fixture("demo.py") as target, t.recorder("--pid", target.pid, "-o", "live.db") as recorder:
            recorder.stderr.readline()
            with subprocess.Popen([t.BINARY, "timeline", "live.db", "--requests"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asked:
                def ask(question):
                    asked.stdin.write(question + b"\n")
                    asked.stdin.flush()
                    word, rest = asked.stdout.readline().split(b" ", 1)
                    return json.loads(asked.stdout.read(int(rest))) if word == b"ok" else rest.decode()

                def grown(least, condition=lambda answer: True):
                    end = time.monotonic() + 30
                    while time.monotonic() < end:
                        answer = ask(b"pixels=100")
                        if not isinstance(answer, str) and answer["samples"] > least and condition(answer):
                            return answer
                        time.sleep(0.1)
                    self.fail("it does not grow")

                first = grown(0)
                self.assertTrue(first["live"])
                second = grown(first["samples"])
                self.assertGreater(second["end_ns"], first["end_ns"])
                self.assertEqual("64 pixels needs a number from 16 to 8192\n", ask(b"pixels=1"))
                recorder.send_signal(signal.SIGINT)
                recorder.wait(30)
                last = grown(second["samples"] - 1, lambda answer: not answer["live"])
                self.assertEqual(rows_of("live.db", "SELECT count(*) " + SAMPLES)[0][0], last["samples"])
                asked.stdin.close()
                self.assertEqual(0, asked.wait(20))


    def test_a_recording_that_is_replaced(self):
        """The one that stays for questions answers from the file that has the name, and survives one that cannot be read."""
        t.need_perf()
        with t.scratch(), t.fixture("demo.py") as target:
            for name, cpu_s in (("a.db", 0.3), ("b.db", 0.6)):
                t.record_cpu(target, cpu_s, 499, name)
            first, second = ([rows_of(name, "SELECT count(*) " + SAMPLES)[0][0]] for name in ("a.db", "b.db"))
            with open("text", "w") as file:
                file.write("no recording")
            with subprocess.Popen([t.BINARY, "timeline", "a.db", "--requests"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asked:
                def ask():
                    asked.stdin.write(b"pixels=100\n")
                    asked.stdin.flush()
                    word, rest = asked.stdout.readline().split(b" ", 1)
                    return [json.loads(asked.stdout.read(int(rest)))["samples"]] if word == b"ok" else rest.decode()

                self.assertEqual(first, ask())
                os.replace("b.db", "a.db")
                self.assertEqual(second, ask())
                os.rename("a.db", "b.db")
                self.assertIn("a.db", ask())
                os.rename("text", "a.db")
                self.assertTrue(ask().startswith("65 "))
                self.assertTrue(ask().startswith("65 "))
                os.replace("b.db", "a.db")
                self.assertEqual(second, ask())
                asked.stdin.close()
                self.assertEqual(0, asked.wait(20))


class OfPrograms(test_rings.RingCase):
    def test_steps_and_spans(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        host = self.begin()
        self.run_in(host, LOOP)
        with t.recorder("--pid", host.pid, "-o", "out.db", env=self.environment) as recorder:
            recorder.stderr.readline()
            self.run_in(host, "train(20)")
            time.sleep(1)
            recorder.send_signal(signal.SIGINT)
            self.assertEqual(0, recorder.wait(30))
        answer = timeline("out.db", "--pixels", 4000)
        [steps] = lanes_of(answer, "steps")
        self.assertEqual({"step %d" % i for i in range(20)}, names_of(answer, steps["rows"][0]))
        [spans] = lanes_of(answer, "spans")
        self.assertEqual((20 * 2 + 1, host.pid, host.pid), (spans["events"], spans["pid"], spans["tid"]))
        outer, inner = spans["rows"]
        self.assertEqual({"outer", "open"}, names_of(answer, outer))
        self.assertEqual({"inner"}, names_of(answer, inner))
        for (first, n, name, _), (inner_first, inner_n, _, _) in zip(slices(outer), slices(inner)):
            self.assertTrue(first - 1 <= inner_first and inner_first + inner_n <= first + n)  # two that meet in a column share it
        for (first, n, name, _) in slices(outer):
            if answer["names"][name][0] == "outer":
                self.assertGreater(n * answer["column_ns"], 30e6 - 2 * answer["column_ns"])
        coarse = timeline("out.db", "--pixels", 16)
        [steps] = lanes_of(coarse, "steps")
        self.assertEqual(20, sum(n for _, _, _, n in slices(steps["rows"][0])))


class OfTraces(t.Case):
    def test_kernels_by_stream(self):
        with t.scratch():
            probing("import", TRACE, "-o", "gpu.db", check=t.OK)
            wanted = rows_of("gpu.db", "SELECT count(*), min(start_ns), max(start_ns + duration_ns) FROM gpu_kernel")[0]
            answer = timeline("gpu.db", "--pixels", 8192)
            kernels = lanes_of(answer, "GPU kernels")
            self.assertEqual(wanted[0], sum(lane["events"] for lane in kernels))
            counted = sum(n for lane in kernels for row in lane["rows"] for _, _, _, n in slices(row))
            self.assertEqual(wanted[0], counted)
            ends = [first + n for lane in kernels for row in lane["rows"] for first, n, _, _ in slices(row)]
            begins = [first for lane in kernels for row in lane["rows"] for first, _, _, _ in slices(row)]
            self.assertAlmostEqual((wanted[2] - wanted[1]) / answer["column_ns"], max(ends) - min(begins), delta=3)
            self.assertTrue(lanes_of(answer, "torch operations"))


class InABrowser(t.Case):
    """The view of the page, by pointer, wheel and keys; of a recording that is finished, and of one that goes on."""
    NIGHTLY_FOR_USERS = True  # a browser draws alike for all

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        browser = devtools.find_browser()
        if browser is None:
            raise unittest.SkipTest("there is no Chromium here")
        with contextlib.ExitStack() as stack:
            cls.path = os.path.join(stack.enter_context(t.scratch()), NAME)
            target = stack.enter_context(t.fixture("gil.py", "--seconds", ALL_TESTS_S))
            probing("record", "--pid", target.pid, "-d", 2, "-F", 199, "--mode", "wall", "-o", NAME, check=t.OK)
            answer = timeline(NAME)
            cls.length = (answer["end_ns"] - answer["begin_ns"]) / 1e9
            recorder = stack.enter_context(t.recorder("--pid", target.pid, "-o", "live.db"))
            recorder.stderr.readline()
            probing("import", TRACE, "-o", "gpu.db", check=t.OK)
            _, cls.link = stack.enter_context(serving(NAME, "gpu.db", "live.db"))
            cls.page = stack.enter_context(devtools.opened(browser))
            cls.page.resize(1300, 900)
            cls.page.send("Page.navigate", url=cls.link)
            cls.page.until("document.querySelectorAll('nav a').length > 2")
            cls.addClassCleanup(stack.pop_all().close)

    def open(self, target=NAME, more=""):
        self.page.run("location.hash = '#view=timeline&target=%s%s'" % (target.replace("<", "%3C").replace(">", "%3E").replace("=", "%3D"), more))
        self.page.until("document.querySelectorAll('.timeline .names button').length > 0 && "
                        "document.querySelector('.timeline [role=status]').textContent === '' && "
                        "document.querySelector('.timeline canvas').getAttribute('aria-label').includes(' from ')")
        self.page.settle()

    def text(self, selector):
        return self.page.run("document.querySelector('.timeline %s').innerText" % selector)

    def hash(self):
        return dict(part.split("=") for part in self.page.run("location.hash")[1:].split("&"))

    def range(self):
        """In seconds, as the URL has it."""
        self.page.until("location.hash.includes('since=')")
        return float(self.hash()["since"]), float(self.hash()["until"])

    def place(self):
        return self.page.run("(box => [box.x, box.y, box.width, box.height])(document.querySelector('.timeline canvas').getBoundingClientRect())")

    def wheel(self, x, y, delta):
        self.page.send("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)

    def drag(self, x, y, to):
        self.page.mouse("mouseMoved", x, y)
        self.page.mouse("mousePressed", x, y)
        for i in range(1, 5):
            self.page.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + (to - x) * i / 4, y=y, button="left", buttons=1)
        self.page.mouse("mouseReleased", to, y)

    def colours(self, x, y, width, height):
        """How many colours a part of the picture has."""
        return self.page.run("(() => { const canvas = document.querySelector('.timeline canvas'), ratio = devicePixelRatio;"
                             "const data = new Uint32Array(canvas.getContext('2d').getImageData(%d * ratio, %d * ratio, %d * ratio, %d * ratio).data.buffer);"
                             "return new Set(data).size; })()" % (x, y, width, height))

    def test_lanes_zoom_and_the_flame_graph_of_a_range(self):
        self.open()
        names = self.text(".names")
        for name in ("holder", "free", "collector", "GIL", "memory (RSS)"):
            self.assertIn(name, names)
        x, y, width, height = self.place()
        self.assertGreater(self.colours(0, 30, width, height - 40), 8)
        self.wheel(x + width / 2, y + height / 2, -400)
        since, until = self.range()
        self.assertAlmostEqual(1.25 ** -4, (until - since) / self.length, delta=0.05)
        self.page.run("document.querySelector('.timeline canvas').focus()")
        self.page.press("d")
        self.page.until("!location.hash.includes('since=%s')" % self.hash()["since"])
        self.assertGreater(self.range()[0], since)
        for _ in range(40):
            self.page.press("w")
        self.page.until("document.querySelector('.timeline .range').innerText.includes('µs')")
        self.page.settle()
        self.assertGreater(self.colours(0, 30, width, height - 40), 3)  # a microsecond has its calls, too
        self.page.press("Home")
        self.page.until("!location.hash.includes('since=')")
        self.drag(x + width * 0.25, y + 10, x + width * 0.5)  # on the times
        self.page.until("document.querySelector('.timeline .details h3').textContent === 'Range'")
        self.page.click("[...document.querySelectorAll('.timeline .details a')].find(one => one.textContent === 'Flame graph of this range')")
        self.page.until("location.hash.includes('view=flame')")
        since, until = self.range()
        self.assertAlmostEqual(0.25, (until - since) / self.length, delta=0.02)
        self.open(NAME, "&since=0.5&until=1")
        self.page.until("document.querySelector('.timeline .range').innerText.includes('0.5')")
        self.assertIn("500 ms", self.text(".range"))
        self.assertEqual([], self.page.errors)

    def test_details_marks_and_lanes_that_close(self):
        self.open(NAME, "&thread=holder")
        self.assertNotIn("collector", self.text(".names"))
        x, y, width, _ = self.place()
        answer = timeline(self.path, "--pixels", int(width))
        [holder] = [thread for thread in answer["threads"] if thread["name"] == "holder"]
        first, n, _, _ = max(slices(holder["rows"][0]), key=lambda one: one[1])
        whole = answer["end_ns"] - answer["begin_ns"]
        x += width * (answer["first_ns"] + (first + n / 2) * answer["column_ns"] - answer["begin_ns"]) / whole
        top = self.page.run("[...document.querySelectorAll('.timeline .names button')].find(one => one.innerText.includes('holder')).offsetTop")
        self.page.mouse("mouseMoved", x, y + top + 20)
        self.page.until("!document.querySelector('.timeline .tip').hidden")
        self.assertIn("holder", self.text(".tip"))
        for kind in ("mousePressed", "mouseReleased"):
            self.page.mouse(kind, x, y + top + 20)
        self.page.until("document.querySelector('.timeline .details').innerText.includes('Length')")
        self.assertIn("holder", self.text(".details"))
        target = self.page.run("[...document.querySelectorAll('.timeline .details a')].find(one => one.textContent.includes('this function')).href")
        self.assertIn("function=", target)
        self.assertIn("view=flame", target)
        self.page.run("(input => { input.value = 'holding'; input.dispatchEvent(new Event('input')); })(document.querySelector('.timeline input'))")
        self.page.settle()
        mark = "(() => { const canvas = document.querySelector('.timeline canvas');" \
               "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data; let n = 0;" \
               "for (let i = 0; i < data.length; i += 4) n += data[i] === %d && data[i + 1] === %d && data[i + 2] === %d; return n; })()"
        self.assertGreater(self.page.run(mark % (255, 95, 176)), 100)  # --mark
        self.page.run("document.querySelector('.timeline canvas').focus()")
        self.page.press("Escape")
        self.page.settle()
        self.assertEqual(0, self.page.run(mark % (255, 95, 176)))
        before = self.page.run("document.querySelector('.timeline .names').offsetHeight")
        button = "[...document.querySelectorAll('.timeline .names button')].find(one => one.innerText.includes('holder'))"
        self.page.click(button)
        self.assertEqual("false", self.page.run(button + ".getAttribute('aria-expanded')"))
        self.page.click(button)
        self.assertEqual("true", self.page.run(button + ".getAttribute('aria-expanded')"))
        self.assertEqual(before, self.page.run("document.querySelector('.timeline .names').offsetHeight"))
        self.assertEqual([], self.page.errors)

    def test_the_table_and_both_themes(self):
        self.open()
        self.page.click("document.querySelector('.timeline summary')")
        self.page.until("document.querySelectorAll('.timeline tbody tr').length > 3")
        table = self.text("table")
        self.assertRegex(table, r"holder \(\d+\)\t\w+ \d+ %.*\t.+ \d+ %")
        self.assertEqual(0, self.page.run("document.querySelectorAll('.timeline img').length"))
        light = self.page.run("document.querySelector('.timeline canvas').toDataURL().length")
        self.page.prefer(color_scheme="dark")
        self.page.until("getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)'")
        self.page.settle()
        pixel = self.page.run("[...document.querySelector('.timeline canvas').getContext('2d').getImageData(3, 3, 1, 1).data]")
        self.assertLess(max(pixel[:3]), 90)
        self.page.prefer(color_scheme="light")
        self.page.until("getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'")
        self.assertGreater(light, 1000)
        self.page.click("document.querySelector('.timeline summary')")

    def test_axe_finds_nothing(self):
        script = axe.source()
        self.open()
        for theme in ("light", "dark"):
            self.page.prefer(color_scheme=theme, reduced_motion="reduce")
            self.page.settle()
            self.assertEqual([], axe.violations(self.page, script))
        self.page.prefer(color_scheme="light")

    def test_a_training_that_goes_on(self):
        self.open("live.db")
        self.assertIn("live", self.text(".range"))
        first = float(re.search(r"to ([\d.]+) s", self.text(".range")).group(1))
        self.page.until("Number(/to ([\\d.]+) s/.exec(document.querySelector('.timeline .range').innerText)[1]) > %f" % (first + 1))
        self.assertEqual([], self.page.errors)

    def test_a_view_that_is_left_changes_and_asks_nothing(self):
        self.open("live.db")
        for _ in range(3):  # while it asks, too
            self.page.run("location.hash = '#view=flame&target=live.db&since=0.25&until=0.5'")
            self.page.run("location.hash = '#view=timeline&target=live.db'")
        self.page.run("location.hash = '#view=flame&target=live.db&since=0.25&until=0.5'")
        time.sleep(1.5)
        self.assertEqual("#view=flame&target=live.db&since=0.25&until=0.5", self.page.run("location.hash"))
        self.page.fetched.clear()
        time.sleep(3)
        self.page.run("1")
        self.assertEqual([], [url for url in self.page.fetched if "/apis/timeline" in url])
        self.page.errors.clear()  # that part may have no samples on a busy machine: there is no flame graph of it then

    def test_kernels(self):
        self.open("gpu.db")
        self.assertRegex(self.text(".names"), r"stream 7 · .*H100")
        self.assertIn("profiler steps", self.text(".names"))
        _, _, width, height = self.place()
        self.assertGreater(self.colours(0, 30, width, height - 40), 4)
