# SPDX-License-Identifier: MIT
"""probing export: callgrind, pstats and html, read by readers that are not ours, and held against SQL on the file."""
import collections
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest

import probing_test as t
from probing_test import probing

# A function is a name, a file and a module; what is on a stack counts once, however often it stands there.
PLACES = """WITH RECURSIVE
  walk(stack, at) AS (SELECT DISTINCT stack, stack FROM stack_total WHERE stack > 0
    UNION ALL SELECT walk.stack, parent FROM walk JOIN stack ON stack.stack = at WHERE parent IS NOT NULL),
  place(stack, frame) AS (SELECT walk.stack, frame FROM walk JOIN stack ON stack.stack = at
    UNION SELECT place.stack, inlined_into FROM place JOIN frame USING (frame) WHERE inlined_into IS NOT NULL)
"""
INCLUSIVE = PLACES + """SELECT name, file, module, sum(samples), sum(weight)
  FROM (SELECT DISTINCT stack, name, file, module FROM place JOIN named_frame USING (frame)) JOIN stack_total USING (stack)
  GROUP BY 1, 2, 3"""
# Time that was not sampled has a weight, and is no sample.
SAMPLES = """(SELECT sum(samples) FROM stack_total WHERE stack NOT IN
  (SELECT stack FROM stack JOIN named_frame USING (frame) WHERE kind = 'unsampled'))"""
OWN = """SELECT name, file, module, sum(CASE WHEN kind = 'unsampled' THEN 0 ELSE samples END), sum(weight)
  FROM stack_total JOIN stack USING (stack) JOIN named_frame USING (frame) GROUP BY 1, 2, 3"""

# Prints what pstats has as JSON; for every Python, also one that sees another root.
READ_PSTATS = """
import json, os, pstats, sys, tempfile

SAME_FOR_ALL_USERS = True
handle, path = tempfile.mkstemp()
os.write(handle, getattr(sys.stdin, "buffer", sys.stdin).read())
os.close(handle)
stats = pstats.Stats(path)
os.unlink(path)
rows = [[list(key), list(value[:4]), [[list(k), list(v)] for k, v in value[4].items()]] for key, value in stats.stats.items()]
with open(os.devnull, "w") as stats.stream:
    stats.strip_dirs().sort_stats("cumulative").print_stats(10)
    stats.print_callers(10)
    stats.print_callees(10)
print(json.dumps([stats.total_tt, rows]))
"""


def read_callgrind_annotate(inclusive):
    """Costs and samples by (file, function, object), as callgrind_annotate prints them."""
    said = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no",
                           "--inclusive=" + ("yes" if inclusive else "no"), "out.callgrind"], capture_output=True, text=True, check=True)
    if said.stderr:
        raise AssertionError(said.stderr)
    rows, labels = {}, set(t.labels_of("probing.db").values())
    for line in said.stdout.splitlines():
        match = re.fullmatch(r" *([\d,]+) +([\d,]+)  (\S.*?):(.+) \[(.*)\]", line)
        if match:
            ns, samples, file, name, module = match.groups()
            shown = re.fullmatch(r"(.+) \((.+)\)('2)?", name)
            if shown and shown.group(2) in labels:
                name = shown.group(1) + (shown.group(3) or "")
            rows[file, name, module] = int(ns.replace(",", "")), int(samples.replace(",", ""))
    return rows


class Exports(t.RecordedCase):
    def ask(self, sql):
        db = sqlite3.connect("probing.db")
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def expected(self, sql, key):
        sums = collections.defaultdict(lambda: [0, 0])
        for name, file, module, samples, ns in self.ask(sql):
            found = sums[key(name, file, module)]
            found[0] += ns
            found[1] += samples
        return {key: tuple(value) for key, value in sums.items()}

    def make(self, name, *options):
        probing("export", "probing.db", "-o", name, "--force", "-q", *options, check=t.OK)


class Callgrind(Exports):
    def setUp(self):
        super().setUp()
        t.need_program("callgrind_annotate")
        self.make("out.callgrind", "--interpreter-frames")

    @staticmethod
    def key(name, file, module):
        kind = "[python]" if module is None and file is not None else "???"
        return (file or "???"), name, (module or kind)

    def compare(self, sql, found):
        """The object of what has none depends on the kind of frame, and files are shown relative to this folder."""
        here = os.getcwd() + "/"
        expected = {(file[len(here):] if file.startswith(here) else file, name): value
                    for (file, name, _), value in self.merged(self.expected(sql, self.key)).items()}
        found = {(file, name): value for (file, name, _), value in self.merged(found).items()}
        missing = {key for key in expected if key not in found}
        self.assertEqual(set(), missing)
        wrong = {key: (value, found[key]) for key, value in expected.items() if found[key] != value}
        self.assertEqual({}, wrong)

    @staticmethod
    def merged(rows):
        """callgrind_annotate knows functions by file and name, whatever the module."""
        sums = collections.defaultdict(lambda: (0, 0))
        for (file, name, _), (ns, samples) in rows.items():
            before = sums[file, name, ""]
            sums[file, name, ""] = before[0] + ns, before[1] + samples
        return sums

    def test_own_cost_of_each_function_equals_sql(self):
        rows = read_callgrind_annotate(False)
        nested = {key: rows.pop(key) for key in list(rows) if key[1].endswith("'2")}
        for (file, name, module), (ns, samples) in nested.items():
            plain = rows.get((file, name[:-2], module), (0, 0))
            rows[file, name[:-2], module] = plain[0] + ns, plain[1] + samples
        self.compare(OWN, rows)

    def test_inclusive_cost_of_python_functions_equals_sql(self):
        """Of those, no two share file and name."""
        found = read_callgrind_annotate(True)
        expected = {(file, name): (ns, samples) for name, file, module, samples, ns in self.ask(INCLUSIVE)
                    if module is None and file and file.endswith("demo.py")}
        self.assertGreater(len(expected), 10)
        got = {(file, name): value for (file, name, module), value in found.items() if module == "[python]"}
        self.assertEqual(expected, {key: got.get(key) for key in expected})

    def test_inclusive_cost_of_libraries_equals_sql(self):
        found = read_callgrind_annotate(True)
        for name, file, module, samples, ns in self.ask(INCLUSIVE):
            if name in ("deflate", "sqlite3_step", "sqlite3VdbeExec"):
                self.assertEqual((ns, samples), found[file or "???", name, module], name)

    def test_lines_are_annotated(self):
        """The source is shown with what its lines cost."""
        said = subprocess.run(["callgrind_annotate", "--auto=yes", "--show-percs=no", "out.callgrind"], capture_output=True,
                              text=True, check=True).stdout
        ((line, samples),) = self.ask(
            "SELECT line, sum(samples) FROM stack_total JOIN stack USING (stack) JOIN named_frame USING (frame)"
            " WHERE name = 'edit_distance' AND kind = 'python' GROUP BY 1 ORDER BY 2 DESC LIMIT 1")
        with open(os.path.join(t.FIXTURES, "demo.py"), encoding="utf-8") as source:
            text = source.read().splitlines()[line - 1]
        shown = [row.split() for row in said.splitlines() if row.endswith("  " + text)]
        self.assertEqual(str(samples), shown[0][1].replace(",", ""), shown)

    def test_totals(self):
        with open("out.callgrind", encoding="utf-8") as text:
            totals = re.search(r"^totals: (\d+) (\d+)$", text.read(), re.M).groups()
        self.assertEqual(self.ask("SELECT sum(weight), %s FROM stack_total" % SAMPLES), [tuple(map(int, totals))])


class Pstats(Exports):
    def read(self, *python):
        with open("out.pstats", "rb") as file:
            said = subprocess.run([*python, "-c", READ_PSTATS], stdin=file, capture_output=True, text=True, check=True,
                                  env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
        self.assertEqual("", said.stderr)
        return json.loads(said.stdout)

    def expected_by_key(self, sql):
        return self.expected(sql, lambda name, file, module: (file or module or "~", name))

    def test_functions_equal_sql(self):
        self.make("out.pstats", "--interpreter-frames")
        total, rows = self.read(sys.executable)
        self.assertAlmostEqual(self.ask("SELECT sum(weight) FROM stack_total")[0][0] / 1e9, total, places=6)
        by_key = collections.defaultdict(list)
        for (file, _, name), (calls, primitive, own, cumulative), _ in rows:
            self.assertEqual(calls, primitive)
            by_key[file, name].append((calls, own, cumulative))
        own = self.expected_by_key(OWN)
        for key, (ns, _) in own.items():
            self.assertAlmostEqual(ns / 1e9, sum(row[1] for row in by_key[key]), places=6, msg=key)
        inclusive = self.expected_by_key(INCLUSIVE)
        n_compared = 0
        for key, found in by_key.items():
            if len(found) == 1 and key in inclusive and key[0].endswith("demo.py"):
                n_compared += 1
                self.assertAlmostEqual(inclusive[key][0] / 1e9, found[0][2], places=6, msg=key)
                self.assertEqual(inclusive[key][1], found[0][0], key)
        self.assertGreater(n_compared, 10)

    def test_callers_add_up(self):
        """What does not call itself has all its time from its callers."""
        self.make("out.pstats")
        _, rows = self.read(sys.executable)
        key, value, callers = next(row for row in rows if row[0][2] == "edit_distance")
        self.assertIn("find_similar", [caller[0][2] for caller in callers])
        for i, number in enumerate(value):
            self.assertAlmostEqual(number, sum(caller[1][i] for caller in callers), places=6)
        self.assertEqual(self.ask("SELECT first_line FROM function WHERE name = 'edit_distance'"), [(key[1],)])

    def test_every_python_reads_it(self):
        self.make("out.pstats")
        expected = self.read(sys.executable)
        for python in t.interpreters():
            with self.subTest(python.label):
                t.need_interpreter(python)
                root = [] if os.path.exists(python.path) else ["chroot", t.SID_ROOT]
                total, rows = self.read(*root, python.path)
                self.assertAlmostEqual(expected[0], total, places=6)
                self.assertEqual(sorted(row[:2] for row in expected[1]), sorted(row[:2] for row in rows))

    def test_what_is_no_time_is_refused(self):
        db = sqlite3.connect("probing.db")
        db.execute("UPDATE run SET unit = 'count', event = 'page-faults'")
        db.commit()
        db.close()
        said = probing("export", "probing.db", "--to", "pstats", check=t.BAD_DATA)
        self.assertSentence(said.stderr, "events", "pstats")
        self.assertEqual(["probing.db"], os.listdir("."))
        self.make("out.callgrind")
        with open("out.callgrind", encoding="utf-8") as text:
            self.assertIn("events: page_faults samples\n", text.read())


class Html(Exports):
    def setUp(self):
        super().setUp()
        said = probing("export", "probing.db", "-o", "out.html", "--interpreter-frames")
        if said.returncode == t.FAILED and "built without" in said.stderr:
            self.assertSentence(said.stderr, "-Dhtml=enabled")
            raise unittest.SkipTest("built without d3-flame-graph")
        self.assertEqual(t.OK, said.returncode, said.stderr)
        with open("out.html", encoding="utf-8") as text:
            self.text = text.read()

    def data(self):
        return json.loads(re.search(r'<script type="application/json" id="profile">(.*?)</script>', self.text, re.S).group(1))

    def walk(self, data):
        """Nodes as (number, callers' labels and its own, what is spent there)."""
        nodes, values = data["nodes"], self.values(data)
        names, paths = self.names(data), []
        for i, (label, up) in enumerate(zip(nodes["label"], nodes["up"])):
            paths.append((*paths[i - up], names[label]) if i else ())
            yield i, paths[i], values[i] * data["scale"]

    @staticmethod
    def names(data):
        """Labels as (text, file, module)."""
        labels, string = data["labels"], [None, *data["strings"]]
        return [tuple(string[labels[column][i]] for column in ("text", "file", "module")) for i in range(len(labels["text"]))]

    @staticmethod
    def values(data):
        """What is spent in each node, with what it calls, in all threads: cells summed up."""
        values = [0] * len(data["nodes"]["up"])
        for node, value in zip(itertools.accumulate(data["cells"]["node"]), data["cells"]["value"]):
            values[node] += value
        for i in range(len(values) - 1, 0, -1):
            values[i - data["nodes"]["up"][i]] += values[i]
        return values

    def test_functions_equal_sql(self):
        data = self.data()
        self.assertEqual(0, data["left_out"])
        sums = collections.Counter()
        for _, path, value in self.walk(data):
            if path and path[-1] not in path[:-1]:
                sums[path[-1]] += value
        n_compared, labels = 0, t.labels_of("probing.db")
        for name, file, module, _, ns in self.ask(INCLUSIVE):
            if module is None and file:
                n_compared += 1
                self.assertEqual(ns, sums["%s (%s)" % (name, labels[file]), file, None], name)
        self.assertGreater(n_compared, 10)
        self.assertEqual(self.ask("SELECT %s, sum(weight) FROM stack_total" % SAMPLES),
                         [(data["samples"], sum(data["cells"]["value"]) * data["scale"])])

    def test_function_sums_equal_sql(self):
        """The table of functions, self and total, of all threads; and of each thread, how much it ran."""
        data = self.data()
        own, total, names = collections.Counter(), collections.Counter(), self.names(data)
        for label, one, all_of_it in zip(*(data["functions"][column] for column in ("label", "self", "total"))):
            own[names[label]] += one * data["scale"]
            total[names[label]] += all_of_it * data["scale"]
        expected = {(name, file): ns for name, file, module, _, ns in self.ask(OWN) if module is None and file}
        n_compared, labels = 0, t.labels_of("probing.db")
        for name, file, module, _, ns in self.ask(INCLUSIVE):
            if module is None and file:
                n_compared += 1
                key = "%s (%s)" % (name, labels[file]), file, None
                self.assertEqual((ns, expected.get((name, file), 0)), (total[key], own[key]), name)
        self.assertGreater(n_compared, 10)
        found, cells, at = {}, data["cells"]["value"], 0
        for thread in data["threads"]:
            found[thread["tid"]] = sum(cells[at:at + thread["cells"]]) * data["scale"]
            at += thread["cells"]
        ran = dict(self.ask("SELECT tid, sum(weight) FROM stack_total GROUP BY 1"))
        self.assertEqual(ran, found)
        self.assertGreater(len(found), 1)

    def test_aspects_equal_samples(self):
        """The root has all samples: how many of each verdict, and how many held the GIL."""
        data = self.data()
        aspects = {one["name"]: dict(zip(one["values"], (sum(column) * data["scale"] for column in one["sums"])))
                   for one in data["aspects"]}
        said = probing("sql", "probing.db", "--format", "json", "SELECT verdict, gil, weight FROM sample", check=t.OK).stdout
        rows = json.loads(said)
        for verdict, ns in aspects["verdict"].items():
            self.assertEqual(sum(row["weight"] for row in rows if row["verdict"] == verdict), ns, verdict)
        self.assertEqual(sum(row["weight"] for row in rows if row["gil"] == 1), aspects["gil"]["held"])
        self.assertEqual(sum(row["weight"] for row in rows if row["gil"] == 0), aspects["gil"]["not held"])

    def test_nothing_is_fetched(self):
        self.assertIn("default-src 'none'", self.text)
        self.assertNotRegex(self.text, r"<(link|img|iframe|script src)")
        self.assertNotIn("@import", self.text)

    def test_licences_are_inside(self):
        licences = self.text[self.text.index('id="licences"'):]
        self.assertRegex(licences, r"d3-flame-graph 4[\d.]+ \(Apache-2.0\)")
        self.assertRegex(licences, r"d3-selection [\d.]+ \(ISC\)")
        self.assertIn("Apache License", licences)

    def test_leaves_first(self):
        self.make("out.html", "--inverted", "--no-native")
        with open("out.html", encoding="utf-8") as text:
            self.text = text.read()
        data = self.data()
        self.assertTrue(data["inverted"])
        first = {path[0][0]: value for _, path, value in self.walk(data) if len(path) == 1}
        self.assertIn("edit_distance (demo.py)", first)
        self.assertEqual(sum(data["cells"]["value"]) * data["scale"], sum(first.values()))


if __name__ == "__main__":
    sys.exit(unittest.main())
