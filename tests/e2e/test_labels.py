# SPDX-License-Identifier: MIT
"""Names of files and functions are the same in all outputs, and tell functions of one name in several files apart.

The program has three packages, each with an __init__.py and a base.py, whose functions have the same names.
"""
import collections
import html
import itertools
import json
import os
import re
import shutil
import subprocess
import unittest

import probing_test as t
from probing_test import probing
from test_flamegraph import read_folded

SAME_FOR_ALL_USERS = True

PACKAGES = ("alpha", "beta", "gamma")
BASE = """
def work(seconds):
    import time
    end = time.process_time() + seconds
    n = 0
    while time.process_time() < end:
        n += sum(i * i for i in range(200))
    return n
"""
INIT = """
from . import base

def run(seconds):
    return base.work(seconds)
"""
MAIN = """
import sys, time
import alpha, beta, gamma
spin = lambda seconds: gamma.run(seconds)
for _ in range(25):
    alpha.run(0.02)
    beta.run(0.03)
    spin(0.05)
    time.sleep(0.02)
"""
LABELS = {"%s/%s" % (package, file) for package in PACKAGES for file in ("base.py", "__init__.py")}


def make_program(folder):
    for package in PACKAGES:
        os.makedirs(os.path.join(folder, package))
        for name, text in (("base.py", BASE), ("__init__.py", INIT)):
            with open(os.path.join(folder, package, name), "w", encoding="ascii") as file:
                file.write(text)
    with open(os.path.join(folder, "main.py"), "w", encoding="ascii") as file:
        file.write(MAIN)
    return os.path.join(folder, "main.py")


def record(folder, path, *options):
    # -E: no site of a user is in the way; -B: sources may stand where this user cannot write
    probing("record", "-F", "499", "-o", path, *options, "--", t.DEBIAN_PYTHON, "-EB", make_program(folder), check=t.OK)


class Labels(t.Case):
    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        record(cls.folder, "probing.db", *cls.OPTIONS)
        os.makedirs("elsewhere")
        record(os.path.abspath("elsewhere"), "elsewhere.db", *cls.OPTIONS)

    def setUp(self):
        super().setUp()
        for name in ("probing.db", "elsewhere.db"):
            shutil.copy(os.path.join(self.folder, name), name)
        self.labels = t.labels_of("probing.db")

    def export(self, to, *options):
        return probing("export", "--to", to, "-o", "-", *options, check=t.OK).stdout

    def report(self, *options):
        return json.loads(probing("report", "--json", "-n", "1000", *options, check=t.OK).stdout)

    def functions(self, *options):
        """Each Python function of the report as other outputs call it, and what it weighs: self and total."""
        return {"%s (%s)" % (row["name"], row["file_label"]): (row["self"], row["total"])
                for row in self.report(*options)["rows"] if row["kind"] == "python"}

    def expected(self):
        return {"%s (%s/%s)" % (name, package, file)
                for package in PACKAGES for name, file in (("work", "base.py"), ("run", "__init__.py"))}

    def assertNames(self, names, what, has_narrow=True):
        """The names of functions in an output are those of the report; pictures leave out frames that are too narrow to see."""
        functions = {name: total for name, (_, total) in self.functions().items() if "importlib" not in name}
        least = 0 if has_narrow else self.report()["weight"] / 100
        found = {name for name in names if re.search(r"\((.*\.py|<.*>)\)$", name) and "importlib" not in name}
        self.assertLessEqual(self.expected(), found, what)
        self.assertLessEqual({name for name, total in functions.items() if total >= least}, found, what)
        self.assertLessEqual(found, set(functions), what)

    def test_labels_are_the_shortest_ends_that_are_unique(self):
        self.assertLessEqual(LABELS | {"main.py"}, set(self.labels.values()))
        for row in self.report()["rows"]:
            self.assertEqual(self.labels.get(row["file"]), row["file_label"], row)

    def test_report(self):
        text = probing("report", "-n", "1000", check=t.OK).stdout
        for package in PACKAGES:
            self.assertRegex(text, r" py +work +%s/base\.py:\d+\n" % package)
        self.assertNotIn(self.folder, text)

    def test_report_by_module(self):
        rows = {row["module"]: row["total"] for row in self.report("--by", "module")["rows"]}
        text = probing("report", "--by", "module", "-n", "1000", check=t.OK).stdout
        for package in PACKAGES:
            path = os.path.join(self.folder, package, "base.py")
            self.assertRegex(text, r" py +%s/base\.py +%s\n" % (package, re.escape(path)))
            self.assertGreater(rows[path], 0)

    def test_folded(self):
        stacks = read_folded(self.export("folded"))
        self.assertNames({name for stack in stacks for name in stack}, "folded")

    def test_sql(self):
        """The same of stacks that are read one by one, and of all of them."""
        exported = {";".join(stack) for stack in read_folded(self.export("folded", "--counts"))}
        sql = "SELECT DISTINCT folded(stack) AS path FROM stack_total%s"
        for where, found in (("", self.assertEqual), (" ORDER BY samples DESC LIMIT 5", self.assertGreaterEqual)):
            text = probing("sql", "probing.db", "--format", "json", sql % where, check=t.OK).stdout
            found(exported, {row["path"] for row in json.loads(text)})
        text = probing("sql", "probing.db", "SELECT stack_text(stack) FROM stack_total", "--format", "json", check=t.OK).stdout
        self.assertRegex(text, r"work \(gamma/base\.py:\d+\)")

    def test_svg(self):
        titles = re.findall(r"<g><title>(.*)\n", self.export("svg"))
        self.assertNames(set(map(html.unescape, titles)), "svg", has_narrow=False)

    def test_html(self):
        text = self.export("html")
        data = json.loads(re.search(r'id="profile">(.*?)</script>', text, re.DOTALL).group(1))
        self.assertNames({data["strings"][i - 1] for i in data["labels"]["text"]}, "html", has_narrow=False)

    def test_speedscope(self):
        read = json.loads(self.export("speedscope"))
        self.assertNames({frame["name"] for frame in read["shared"]["frames"]}, "speedscope")

    def test_chrome_and_gecko(self):
        read = json.loads(self.export("gecko"))
        self.assertNames({read["shared"]["stringArray"][i] for i in read["shared"]["funcTable"]["name"]}, "gecko")
        found = {event["name"] for event in json.loads(self.export("chrome"))["traceEvents"] if event["ph"] == "X"}
        self.assertLessEqual(self.expected(), found)

    def test_callgrind(self):
        names = re.findall(r"^c?fn=\(\d+\) (.*?)(?:'2)?$", self.export("callgrind"), re.MULTILINE)
        self.assertNames(set(names), "callgrind")

    def pprof(self, *options):
        """What Go's pprof says of functions: {name: flat ns}."""
        tool = [shutil.which("pprof")] if shutil.which("pprof") else ["go", "tool", "pprof"] if shutil.which("go") else None
        if not tool:
            raise unittest.SkipTest("neither pprof nor go is installed")
        probing("export", "--to", "pprof", "-o", "out.pb.gz", *options, check=t.OK)
        done = subprocess.run([*tool, "-top", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", "-unit=ns", "out.pb.gz"],
                              capture_output=True, text=True, check=True)
        rows = re.findall(r"^ *(\d+(?:\.\d+)?)(?:ns)? +\S+% +\S+% +(\d+(?:\.\d+)?)(?:ns)? +\S+% +(.*?)(?: \(inline\))?$", done.stdout,
                          re.MULTILINE)
        self.assertTrue(rows, done.stdout)
        return {name: float(flat) for flat, _, name in rows}

    def test_pprof(self):
        self.assertNames(set(self.pprof()), "pprof")

    def test_angle_brackets_in_pprof(self):
        names = set(self.pprof())
        self.assertLessEqual({"<module> (main.py)", "<lambda> (main.py)"}, names)
        self.assertTrue(any(name.endswith("<genexpr> (alpha/base.py)") for name in names), names)
        self.assertFalse([name for name in names if "<unknown>" in name or name.startswith(" ")])

    def test_annotate(self):
        text = probing("annotate", "probing.db", "work", check=t.OK).stdout
        for package in PACKAGES:
            self.assertRegex(text, r"(?m)^%s/base\.py$" % package)
        self.assertIn("n += sum(i * i for i in range(200))", text)

    # ---- Whole paths ----

    def test_full_paths(self):
        path = os.path.join(self.folder, "beta", "base.py")
        name = "work (%s)" % path
        self.assertIn(name, {one for stack in read_folded(self.export("folded", "--full-paths")) for one in stack})
        for to in ("svg", "html", "speedscope", "callgrind", "gecko", "chrome"):
            self.assertIn(name, self.export(to, "--full-paths"), to)
        self.assertRegex(probing("report", "-n", "1000", "--full-paths", check=t.OK).stdout, r" work +%s:\d+\n" % re.escape(path))
        self.assertRegex(probing("report", "--full-paths", "--by", "module", check=t.OK).stdout, r" py +%s\n" % re.escape(path))
        self.assertRegex(probing("annotate", "probing.db", "work", "--full-paths", check=t.OK).stdout, r"(?m)^%s$" % re.escape(path))

    # ---- All formats give the same shares of time ----

    def shares(self, found, all_of_it):
        """Of the functions that run themselves."""
        return {name: found.get(name, 0) / all_of_it for name in self.running}

    def assertShares(self, expected, found, what, delta=1e-4):
        self.assertEqual(set(expected), set(found), what)
        for name, share in expected.items():
            self.assertAlmostEqual(share, found[name], delta=delta, msg="%s: %s" % (what, name))

    def own_times(self, *options):
        """By format: what each function has itself, as a share."""
        self.running = [name for name, (own, _) in self.functions().items() if own > 0]
        leaf = collections.Counter()
        for stack, value in read_folded(self.export("folded", *options)).items():
            leaf[stack[-1]] += value
        yield "folded", self.shares(leaf, sum(leaf.values()))
        scope, leaf = json.loads(self.export("speedscope", *options)), collections.Counter()
        for profile in scope["profiles"]:
            for stack, weight in zip(profile["samples"], profile["weights"]):
                leaf[scope["shared"]["frames"][stack[-1]]["name"]] += weight
        yield "speedscope", self.shares(leaf, sum(leaf.values()))
        gecko, leaf = json.loads(self.export("gecko", *options)), collections.Counter()
        tables = gecko["shared"]
        for thread in gecko["threads"]:
            for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
                function = tables["frameTable"]["func"][tables["stackTable"]["frame"][stack]]
                leaf[tables["stringArray"][tables["funcTable"]["name"][function]]] += weight
        yield "gecko", self.shares(leaf, sum(leaf.values()))
        text = re.search(r'id="profile">(.*?)</script>', self.export("html", *options), re.DOTALL).group(1)
        data, leaf = json.loads(text), collections.Counter()
        nodes, strings, values = data["nodes"], data["strings"], collections.Counter()
        for node, value in zip(itertools.accumulate(data["cells"]["node"]), data["cells"]["value"]):
            values[node] += value
        for i, label in enumerate(nodes["label"]):
            leaf[strings[data["labels"]["text"][label] - 1]] += values[i]
        if data["left_out"] == 0:
            yield "html", self.shares(leaf, sum(values.values()))
        leaf, name = collections.Counter(), {}
        text = self.export("callgrind", *options)
        column = re.search("^events: (.*)", text, re.MULTILINE).group(1).split().index("samples" if "--counts" in options else "ns")
        called = False
        for line in text.splitlines():
            match = re.fullmatch(r"(c?)fn=\((\d+)\)(?: (.*?)(?:'2)?)?", line)
            if match:
                name.setdefault(match.group(2), match.group(3))
                current = current if match.group(1) else name[match.group(2)]
            elif re.fullmatch(r"\d+( \d+)+", line) and not called:
                leaf[current] += int(line.split()[1 + column])
            called = line.startswith("calls=")
        yield "callgrind", self.shares(leaf, sum(leaf.values()))
        tool = self.pprof(*options)
        yield "pprof", self.shares(tool, sum(tool.values()))

    def test_shares_of_time(self):
        all_of_it = self.report()["weight"]
        expected = {name: own / all_of_it for name, (own, _) in self.functions().items() if own > 0}
        self.assertGreater(len(expected), 3)
        for what, found in self.own_times():
            # pprof rounds what it prints
            self.assertShares(expected, found, what, delta=1e-3 if what == "pprof" else 1e-4)

    def test_shares_of_samples(self):
        found = dict(self.own_times("--counts"))
        for what, shares in found.items():
            self.assertShares(found["folded"], shares, what, delta=1e-3 if what == "pprof" else 1e-9)
        n_samples = self.report()["samples"]
        self.assertEqual(n_samples, sum(read_folded(self.export("folded", "--counts")).values()))
        for to in ("chrome", "pstats"):
            said = probing("export", "--to", to, "--counts", "-o", "-", check=t.BAD_DATA)
            self.assertSentence(said.stderr, "--counts")

    # ---- A part of the recording has the names of the whole ----

    def test_names_do_not_depend_on_what_is_shown(self):
        part = {name for stack in read_folded(self.export("folded", "--module", "beta/base.py")) for name in stack}
        self.assertIn("work (beta/base.py)", part)
        self.assertLess(part, {name for stack in read_folded(self.export("folded")) for name in stack})


class Waiting(Labels):
    """The same of a recording whose samples weigh differently."""
    OPTIONS = ("--mode", "wall")

    def test_folded_is_in_microseconds(self):
        values = read_folded(self.export("folded"))
        self.assertAlmostEqual(self.report()["weight"] / 1e3, sum(values.values()), delta=1)
        self.assertNotEqual(self.report()["samples"], sum(values.values()))

