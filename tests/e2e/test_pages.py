# SPDX-License-Identifier: MIT
"""Flame graphs as pages, HTML and SVG, used in Chromium with real keys: focus, words for who listens, themes, widths,
the address, tables of functions, threads, and sources that are hostile."""
import json
import os
import re
import sys
import unittest

import probing_test as t
from probing_test import probing

sys.path.insert(0, os.path.join(t.ROOT, "tests", "browser"))
import devtools  # noqa: E402

SAME_FOR_ALL_USERS = True

READERS = os.path.abspath(os.environ.get("PROBING_READERS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "probing", "readers"))
AXE = os.path.join(READERS, "node_modules", "axe-core", "axe.min.js")
BIDI = "\u202egnihton\u202c"
HOSTILE = "</script><script>window.owned = 1</script>"
SOURCE = """# a source that is shown
def work():
    text = '%s'  # %s
\treturn text * 1000 <!-- <b>&amp;</b>
""" % (HOSTILE, BIDI)

# How far a colour is from another: WCAG 2.2, "contrast ratio". Of each box that has a label: its fill, of patterns each part.
CONTRAST = """(() => {
  const context = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas").getContext("2d", {willReadFrequently: true});
  const paint = (colour, under) => {
    context.clearRect(0, 0, 1, 1);
    for (const one of [...under, colour]) { context.globalAlpha = one[1]; context.fillStyle = one[0]; context.fillRect(0, 0, 1, 1); }
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const page = [getComputedStyle(document.body || document.querySelector("svg.flame")).backgroundColor, 1];
  const fills = rect => {
    const style = getComputedStyle(rect), pattern = /url\\("?#([^")]+)"?\\)/.exec(style.fill), opacity = Number(style.fillOpacity);
    if (!pattern)
      return [paint([style.fill, opacity], [page])];
    const layers = [...document.getElementById(pattern[1]).querySelectorAll("rect")].map(one => [getComputedStyle(one).fill, Number(getComputedStyle(one).fillOpacity) * opacity]);
    return [paint(layers[0], [page]), paint(layers[1], [page, layers[0]])];
  };
  let worst = Infinity, which = "", n = 0;
  for (const box of document.querySelectorAll(".graph g.frame, .frames > g")) {
    const text = box.querySelector(".d3-flame-graph-label, text"), rect = box.querySelector("rect");
    if (!text || !text.textContent) continue;
    const style = getComputedStyle(text), colour = paint([text.tagName === "text" ? style.fill : style.color, 1], []);
    for (const fill of fills(rect)) {
      n++;
      const found = ratio(fill, colour);
      if (found < worst) { worst = found; which = `${text.textContent}: ${fill} under ${colour}`; }
    }
  }
  return {worst, which, n};
})()"""

# Pairs of what may not lie over each other, and what is wider than the page.
OVERLAPS = """(selectors => {
  const found = [], seen = [...document.querySelectorAll(selectors)].map(one => [one, one.getBoundingClientRect()]).filter(([, box]) => box.width > 0 && box.height > 0);
  for (const [one, box] of seen) {
    if (box.right > innerWidth + 1 || box.left < -1) found.push(`${one.tagName}.${one.className.baseVal ?? one.className} leaves the page: ${box.left} ${box.right}`);
    for (const [other, its] of seen)
      if (one !== other && !one.contains(other) && !other.contains(one) && box.left < its.right - 1 && its.left < box.right - 1 && box.top < its.bottom - 1 && its.top < box.bottom - 1)
        found.push(`${one.tagName}.${one.className.baseVal ?? one.className} over ${other.tagName}.${other.className.baseVal ?? other.className}`);
  }
  return found;
})(%s)"""


def speedscope(path, slower=1):
    """Two threads: main calls work, of source.py, and a name that turns its neighbours round; poll calls work, too."""
    place = os.path.abspath("source.py")
    frames = [{"name": "main", "file": "/app/main.py", "line": 1}, {"name": "work", "file": place, "line": 3},
              {"name": "work", "file": place, "line": 4}, {"name": "say_" + BIDI, "file": "/app/main.py", "line": 9},
              {"name": "poll", "file": "/app/poll.py", "line": 2}, {"name": HOSTILE, "file": "/app/poll.py", "line": 7}]
    main = [([0, 1], 300), ([0, 2], 200 * slower), ([0, 3, 1], 100), ([0], 50), ([0, 3], 150 // slower)]
    poll = [([4, 1], 120), ([4, 5], 60), ([4], 20)]
    profiles = [{"type": "sampled", "name": name, "unit": "milliseconds", "startValue": 0, "endValue": sum(weight for _, weight in rows),
                 "samples": [stack for stack, _ in rows], "weights": [weight for _, weight in rows]}
                for name, rows in (("main", main), ("poll", poll))]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames}, "profiles": profiles}, file)


class Pages(t.Case):
    light = True

    @classmethod
    def setUpClass(cls):
        program = devtools.find_browser()
        if not program:
            raise unittest.SkipTest("there is no Chromium here")
        browser = devtools.opened(program)
        cls.page = browser.__enter__()
        cls.addClassCleanup(browser.__exit__, None, None, None)

    def setUp(self):
        super().setUp()
        with open("source.py", "w", encoding="utf-8") as file:
            file.write(SOURCE)
        speedscope("one.speedscope.json")
        probing("import", "one.speedscope.json", "-o", "one.db", check=t.OK)
        self.page.resize(1300, 800)
        self.page.prefer(color_scheme="light", reduced_motion="reduce")
        self.page.errors.clear()
        self.page.fetched.clear()

    def tearDown(self):
        self.assertEqual([], self.page.errors)
        self.assertEqual([], [url for url in self.page.fetched if not url.startswith(("file://" + os.getcwd(), "about:", "data:"))])

    def make(self, out, *options):
        said = probing("flamegraph", "one.db", "-o", out, *options)
        if said.returncode == t.FAILED and "built without" in said.stderr:
            raise unittest.SkipTest("built without d3-flame-graph")
        self.assertEqual(t.OK, said.returncode, said.stderr)
        return said.stderr

    def make_diff(self, out):
        speedscope("two.speedscope.json", 3)
        probing("import", "two.speedscope.json", "-o", "two.db", "--force", check=t.OK)
        probing("diff", "one.db", "two.db", "-o", out, check=t.OK)

    def hash(self):
        return self.page.run("decodeURIComponent(location.hash)")

    def current(self):
        """What who listens is told to have the focus."""
        return self.page.run("(host => document.getElementById(host.getAttribute('aria-activedescendant')).textContent)(document.activeElement)")

    # ---- Keys ----

    def test_html_by_keyboard(self):
        self.make("out.html")
        self.page.open("out.html")
        for _ in range(20):
            self.page.press("Tab")
            if self.page.run("document.activeElement.getAttribute('role') === 'tree'"):
                break
        self.assertRegex(self.current(), r"^all, 100 %$")
        self.page.press("ArrowUp")
        self.assertRegex(self.current(), r"^main \(main.py\), 80 %")
        self.page.press("ArrowRight")
        self.assertRegex(self.current(), r"^poll \(poll.py\), 20 %")
        self.page.press("ArrowRight")  # there is none
        self.page.press("ArrowLeft", "ArrowUp")
        self.assertRegex(self.current(), r"^work \(source.py\), 50 %")
        self.assertIn("work (source.py)", self.page.run("document.querySelector('.note').textContent"))
        self.assertEqual("polite", self.page.run("document.querySelector('.note').getAttribute('role') === 'status' ? 'polite' : ''"))
        self.assertEqual(["3", "treeitem"], self.page.run(
            "(item => [item.getAttribute('aria-level'), item.getAttribute('role')])(document.getElementById(document.activeElement.getAttribute('aria-activedescendant')))"))
        box = self.page.run("(box => [box.width, box.height])(document.activeElement.querySelector('.focus').getBoundingClientRect())")
        self.assertGreater(box[0], 500)
        self.assertEqual(18, box[1])
        self.page.press("Enter")
        self.page.settle()
        self.assertRegex(self.hash(), r"^#zoom=\d+$")
        self.page.press("Escape")
        self.assertEqual("#", self.hash() or "#")
        self.page.press("f", modifiers=devtools.CONTROL)
        self.page.type("poll")
        self.assertEqual("#search=poll", self.hash())
        self.page.press("Enter")
        self.assertRegex(self.current(), r"^poll")

    def test_tabs_by_keyboard(self):
        self.make("out.html")
        self.page.open("out.html")
        self.page.run("document.querySelector('[role=tab][aria-selected=true]').focus()")
        self.page.press("ArrowRight")
        self.assertEqual("#view=functions", self.hash())
        self.assertEqual("Functions", self.page.run("document.activeElement.textContent"))
        self.page.press("ArrowLeft", "ArrowLeft")
        self.assertEqual("#view=callers", self.hash())
        self.page.run("history.back()")
        self.page.until("!location.hash.includes('callers')")

    def test_svg_by_keyboard(self):
        self.make("out.svg")
        self.page.open("out.svg")
        self.page.run("document.querySelector('.frames > [tabindex]').focus()")
        name = "document.activeElement.getAttribute('aria-label')"
        self.assertRegex(self.page.run(name), "^all, 100 %")
        self.page.press("ArrowUp", "ArrowRight")
        self.assertRegex(self.page.run(name), r"^poll \(poll.py\), 20 %")
        self.assertEqual(["button", 1], self.page.run("[document.activeElement.getAttribute('role'), document.querySelectorAll('.frames [tabindex]').length]"))
        self.assertEqual("3px", self.page.run("getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth"))
        self.page.press("Enter")
        self.assertRegex(self.hash(), r"^#zoom=\d+$")
        self.page.press("Escape")
        self.assertEqual("#", self.hash() or "#")

    # ---- The address ----

    def test_address_is_restored(self):
        self.make("out.html", "--sources")
        self.page.open("out.html", "#view=functions&search=work&sort=-total&thread=")
        self.assertEqual(["work", "ascending", 1], self.page.run(
            "[document.querySelector('input').value, document.querySelector('th.total').getAttribute('aria-sort'), document.querySelectorAll('.functions tbody tr').length]"))
        self.page.open("out.html", "#zoom=2&icicle=1&colour=module")
        self.assertEqual(["module", "true"], self.page.run("[document.querySelector('.colours').value, document.querySelector('.icicle').getAttribute('aria-pressed')]"))
        self.page.open("out.html", "#view=sources&line=4")
        self.assertIn("return text", self.page.run("document.querySelector('.here').textContent"))
        for wrong in ("#view=toString&zoom=99999&thread=x&colour=__proto__&function=1e9&source=-1&line=%00", "#view=callers&function=99999", "#view=sources&source=7"):
            self.page.open("out.html", wrong)
            self.assertEqual(1, self.page.run("[...document.querySelectorAll('.view')].filter(one => !one.hidden).length"), wrong)

    def test_icicle_keeps_its_root_in_sight(self):
        """Of a stack that is higher than the window."""
        with open("deep.folded", "w", encoding="utf-8") as file:
            file.write(";".join("f%d" % i for i in range(300)) + " 10\n")
        probing("import", "deep.folded", "-o", "one.db", "--force", check=t.OK)
        self.make("out.html")
        self.page.open("out.html")
        root = ("(() => { const box = [...document.querySelectorAll('g.frame')].find(one => one.querySelector('title').textContent.startsWith('all')).getBoundingClientRect(),"
                " view = document.querySelector('.view').getBoundingClientRect(); return box.top >= view.top - 1 && box.bottom <= view.bottom + 1; })()")
        self.assertTrue(self.page.run(root))
        self.page.click("document.querySelector('.icicle')")
        self.page.settle()
        self.assertTrue(self.page.run(root))
        self.page.click("document.querySelector('.icicle')")
        self.page.settle()
        self.assertTrue(self.page.run(root))

    # ---- Looks ----

    def check_contrast(self, path):
        for scheme in ("light", "dark"):
            self.page.prefer(color_scheme=scheme, reduced_motion="reduce")
            self.page.open(path)
            colours = self.page.run("[...document.querySelectorAll('.colours option')].map(one => one.value)") or [""]
            for colour in colours:
                with self.subTest(path, scheme=scheme, colour=colour):
                    if colour:
                        self.page.open(path, "#colour=" + colour)
                    found = self.page.run(CONTRAST)
                    self.assertGreater(found["n"], 3)
                    self.assertGreaterEqual(found["worst"], 4.5, found["which"])
                    self.page.run("document.querySelectorAll('input')[0].focus()")
                    self.page.type("work")
                    found = self.page.run(CONTRAST)
                    self.assertGreaterEqual(found["worst"], 4.5, found["which"])
            page = self.page.run("getComputedStyle(document.body || document.documentElement).backgroundColor")
            self.assertEqual(scheme == "dark", page == "rgb(22, 24, 28)", page)

    def test_contrast_in_both_themes(self):
        self.make("out.html")
        self.make("out.svg")
        self.check_contrast("out.html")
        self.check_contrast("out.svg")

    def test_comparison_has_contrast_and_signs(self):
        self.make("out.html")
        for path in ("diff.html", "diff.svg"):
            self.make_diff(path)
            self.check_contrast(path)
            self.page.prefer(color_scheme="light", reduced_motion="reduce")
            self.page.open(path)
            boxes = self.page.run("[...document.querySelectorAll('.graph g.frame, .frames > g')].map(box => [box.querySelector('title').textContent,"
                                  " (box.querySelector('.d3-flame-graph-label, text') || {}).textContent || '', getComputedStyle(box.querySelector('rect')).fill])")
            signs = set()
            for title, label, fill in boxes:
                change = re.search(r"was .*: ([-+])[0-9.]+ %", title)
                if not change or not label or re.search(r"[-+]0\.[0-4]", change.group(0)):
                    continue
                more = change.group(1) == "+"
                signs.add(more)
                self.assertTrue(label.startswith("+ " if more else "− "), (title, label))
                self.assertEqual(not more, fill.startswith("url("), (title, fill))
            self.assertEqual({True, False}, signs, boxes)

    def test_nothing_overlaps(self):
        self.make("out.html", "--sources", "--title", "a long title of what was recorded, with all of its arguments " * 3)
        self.make("out.svg", "--title", "a long title of what was recorded, with all of its arguments " * 3)
        for width in (400, 800, 1600):
            self.page.resize(width, 800)
            for view in ("flame", "functions", "callers", "sources"):
                with self.subTest(width=width, view=view):
                    self.page.open("out.html", "#view=" + view)
                    self.assertEqual([], self.page.run(OVERLAPS % json.dumps("h1, .summary, .controls > *, main, footer > *")))
                    self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)
                    self.assertEqual(0, self.page.run("(view => view.scrollWidth - view.clientWidth)([...document.querySelectorAll('.view')].find(one => !one.hidden))"))
            with self.subTest(width=width, view="svg"):
                self.page.open("out.svg")
                self.assertEqual([], self.page.run(OVERLAPS % json.dumps(".head .name, .head .note, .head .legend, .controls input, .frames > g:first-child")))

    def test_reduced_motion(self):
        self.make("out.html")
        for motion, wanted in (("reduce", 0), ("no-preference", 200)):
            self.page.prefer(reduced_motion=motion)
            self.page.open("out.html")
            box = "[...document.querySelectorAll('g.frame')].find(one => one.querySelector('title').textContent.startsWith('poll'))"
            # D3 keeps the transitions of an element at the element.
            planned = self.page.run("(box => { box.dispatchEvent(new MouseEvent('click', {bubbles: true}));"
                                    " return Object.values(box.__transition || {}).map(one => one.duration); })(%s)" % box)
            self.assertEqual({wanted}, set(planned) or {0}, motion)
            self.page.until("%s.querySelector('rect').getBoundingClientRect().width > 1000" % box)

    # ---- Words ----

    def test_axe_finds_nothing(self):
        if not os.path.exists(AXE):
            raise unittest.SkipTest("axe-core is not there; scripts/readers installs it")
        with open(AXE, encoding="utf-8") as file:
            axe = file.read()
        self.make("out.html", "--sources")
        self.make("out.svg")
        self.make_diff("diff.html")
        pages = [("out.html", "#view=" + view) for view in ("flame", "functions", "callers", "sources")]
        for path, fragment in [*pages, ("out.html", "#zoom=2&search=work"), ("diff.html", ""), ("out.svg", "")]:
            for scheme in ("light", "dark"):
                with self.subTest(path + fragment, scheme=scheme):
                    self.page.prefer(color_scheme=scheme, reduced_motion="reduce")
                    self.page.open(path, fragment)
                    if path == "out.svg":  # axe knows documents of HTML: there the picture stands as a part of one
                        with open(path, encoding="utf-8") as file:
                            picture = file.read().split("?>", 1)[1]
                        with open("inline.html", "w", encoding="utf-8") as file:
                            file.write("<!DOCTYPE html><html lang=en><title>a picture</title><main><h1>a picture</h1>%s</main>" % picture.replace("<![CDATA[", "").replace("]]>", ""))
                        self.page.open("inline.html")
                    self.page.run(axe + "; 0")
                    found = self.page.run("axe.run(document, {resultTypes: ['violations']}).then(said => said.violations.map(one =>"
                                          " `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 200)).join(' | ')}`))")
                    self.assertEqual([], found)

    def test_names_that_turn_their_neighbours_are_spelled(self):
        for out in ("out.html", "out.svg"):
            self.make(out, "--title", "title " + BIDI)
            with open(out, encoding="utf-8") as file:
                text = file.read()
            self.assertNotIn("\u202e", text)
            self.assertIn("say_\\u202egnihton" if out == "out.svg" else "say_\\\\u202egnihton", text)
            self.page.open(out)
            self.assertIsNone(self.page.run("window.owned || null"))

    # ---- Functions, callers, threads ----

    def rows(self):
        return {row[2]: (float(row[0]), float(row[1])) for row in self.page.run(
            "[...document.querySelectorAll('.functions tbody tr')].map(row => [...[...row.querySelectorAll('.amount b')].map(one => one.textContent.replace(' %', '')),"
            " row.querySelector('.name').textContent])")}

    def test_functions_equal_report(self):
        self.make("out.html")
        self.page.open("out.html", "#view=functions")
        found = self.rows()
        report = json.loads(probing("report", "one.db", "--json", check=t.OK).stdout)
        expected = {}
        for row in report["rows"]:
            key = row["name"].replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
            expected[key] = row["self_share"], row["total_share"]
        self.assertEqual(len(expected), len(found))
        for name, (own, total) in found.items():
            key = re.sub(r" \(\w+\.py\)$", "", name)
            self.assertAlmostEqual(expected[key][0], own, places=1, msg=name)
            self.assertAlmostEqual(expected[key][1], total, places=1, msg=name)
        self.assertAlmostEqual(100, sum(own for own, _ in found.values()), places=1)

    def test_functions_are_sorted_and_filtered(self):
        self.make("out.html")
        self.page.open("out.html", "#view=functions")
        own = [row[0] for row in self.rows().values()]
        self.assertEqual(sorted(own, reverse=True), own)
        self.page.click("document.querySelector('th.name button')")
        names = list(self.rows())
        self.assertEqual(sorted(names), names)
        self.assertEqual("ascending", self.page.run("document.querySelector('th.name').getAttribute('aria-sort')"))
        self.page.run("document.querySelector('input').focus()")
        self.page.type("poll\\.py")
        self.assertEqual(2, len(self.rows()))

    def test_callers_and_callees_add_up(self):
        self.make("out.html")
        self.page.open("out.html", "#view=functions")
        total = next(total for name, (_, total) in self.rows().items() if name.startswith("work"))
        self.page.click("[...document.querySelectorAll('.link')].find(one => one.textContent.startsWith('work'))")
        self.page.settle()
        self.assertIn("view=callers", self.hash())
        callers, callees = self.page.run("[...document.querySelectorAll('.callers .graph')].map(graph => [...graph.querySelectorAll('g.frame title')].map(one => one.textContent.split('\\n')))")
        share = {lines[0]: float(re.search(r"([0-9.]+) %", "\n".join(lines[1:])).group(1)) for lines in callers}
        self.assertEqual({"work (source.py)": total}, {lines[0]: float(re.search(r"([0-9.]+) %", "\n".join(lines[1:])).group(1)) for lines in callees})
        self.assertAlmostEqual(total, share["work (source.py)"])
        direct = [float(re.search(r"([0-9.]+) %", "\n".join(lines[1:])).group(1)) for lines in callers if lines[0].startswith(("poll", "say_"))]
        main = max(float(re.search(r"([0-9.]+) %", "\n".join(lines[1:])).group(1)) for lines in callers if lines[0].startswith("main"))
        self.assertAlmostEqual(total, sum(direct) + main, delta=0.1)

    def test_threads_are_picked(self):
        self.make("out.html")
        self.page.open("out.html", "#view=functions")
        words = self.page.run("[...document.querySelectorAll('.threads option')].map(one => one.textContent)")
        self.assertEqual(3, len(words), words)
        self.assertRegex(words[1], "^main")
        self.page.run("(select => { select.selectedIndex = 2; select.dispatchEvent(new Event('change')); })(document.querySelector('.threads'))")
        found = self.rows()
        self.assertEqual(3, len(found), found)
        self.assertAlmostEqual(12, next(own for name, (own, _) in found.items() if name.startswith("work")), places=1)
        self.assertRegex(self.hash(), r"thread=\d+/\d+")
        self.assertIn("0.2 s", self.page.run("document.querySelector('.summary').textContent"))
        self.page.open("out.html", self.page.run("location.hash").replace("functions", "flame"))
        names = self.page.run("[...document.querySelectorAll('g.frame title')].map(one => one.textContent.split('\\n')[0])")
        self.assertFalse([name for name in names if name.startswith("main")], names)
        self.assertTrue([name for name in names if name.startswith("poll")], names)

    # ---- Sources ----

    def test_sources_are_embedded_and_harmless(self):
        self.make("out.html", "--sources")
        with open("out.html", encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn(HOSTILE, text)
        self.assertNotIn("\u202e", text)
        self.page.open("out.html", "#view=sources")
        lines = self.page.run("[...document.querySelectorAll('.sources tbody tr')].map(row => [...row.children].map(cell => cell.textContent))")
        self.assertEqual([str(number) for number in range(1, 5)], [line[0] for line in lines])
        self.assertEqual(["52 %", "52 %"], lines[2][1:3])
        self.assertIn(HOSTILE, lines[2][3])
        self.assertIn("\\u202egnihton", lines[2][3])
        self.assertIn("<b>&amp;</b>", lines[3][3])
        self.assertIsNone(self.page.run("window.owned || null"))
        self.assertEqual(0, self.page.run("document.querySelectorAll('.sources b').length"))
        self.page.open("out.html", "#view=callers")
        self.page.click("document.querySelector('.to-source')")
        self.assertIn("view=sources", self.hash())

    def test_sources_are_bounded(self):
        with open("source.py", "w", encoding="utf-8") as file:
            file.write("\n\nwork()\nwork()  # %s\n" % ("x" * (3 << 20)))
        said = self.make("out.html", "--sources")
        self.assertIn("2 MB", said)
        self.assertLess(os.path.getsize("out.html"), 1 << 20)
        with open("source.py", "w", encoding="utf-8") as file:
            file.write("line\n" * 300000)
        self.make("out.html", "--sources")
        self.assertLess(os.path.getsize("out.html"), 3 << 20)

    def test_sources_are_for_pages(self):
        said = probing("flamegraph", "one.db", "-o", "out.svg", "--sources", check=t.USAGE)
        self.assertSentence(said.stderr, "svg", "html")
        said = probing("export", "one.db", "--to", "folded", "--sources", check=t.USAGE)
        self.assertSentence(said.stderr, "folded", "html")
        self.assertFalse(os.path.exists("out.svg"))


if __name__ == "__main__":
    sys.exit(unittest.main())
