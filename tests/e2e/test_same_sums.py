# SPDX-License-Identifier: MIT
"""One recording has the same sums in every output: what each function has itself, and with all that it calls.

What is compared with is the table stack_total with the names that SQL gives its stacks. Each reader knows one format from its
description, and nothing of the others.
"""
import collections
import gzip
import json
import marshal
import os
import re
import unittest
import xml.etree.ElementTree

import probing_test as t
import test_exports
from probing_test import fixture_command, probing
from test_flamegraph import SVG, read_folded

SAME_FOR_ALL_USERS = True

# Waits, a lock, short children, recursion, and functions of one name: all that outputs treat in their own ways.
PROGRAM = """
import subprocess, threading, time, zlib
def alpha(seconds): beta(seconds); burn(seconds)
def beta(seconds): gamma(seconds); burn(seconds)
def gamma(seconds): delta(seconds); burn(seconds)
def delta(seconds): burn(seconds)
def fall(n):
    return fall(n - 1) if n else burn(0.004)
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        zlib.compress(bytes(2000))
def wait(lock):
    with lock:
        burn(0.01)
alpha(0.03)
lock = threading.Lock()
for turn in range(40):
    alpha(0.004)  # who looks late meets them, too
    lock.acquire()
    thread = threading.Thread(target=wait, args=(lock,), name="waiter")
    thread.start()
    burn(0.003)
    time.sleep(0.005)
    lock.release()
    fall(7)
    thread.join()
for _ in range(40):
    subprocess.run(["/bin/true"])
"""


MAX_ALL = 20000  # the SVG has a box for each sample of so many: it leaves out what is less than 1/20000


class Sums:
    """Of functions: @own and @total, by name; @all of it. @error: how far off one stack's value may be."""

    def __init__(self, error=0.0):
        self.own, self.total = collections.Counter(), collections.Counter()
        self.all, self.error, self.n_stacks = 0, error, 1

    @classmethod
    def of_stacks(cls, stacks, error=0.0):
        """@stacks: (names from the outermost on, value). A function counts once, however often it is in a stack."""
        sums = cls(error)
        for names, value in stacks:
            names = [plain(name) for name in names]
            sums.all += value
            sums.own[names[-1]] += value
            sums.n_stacks += 1
            for name in set(names):
                sums.total[name] += value
        return sums


def plain(name):
    """As it is called without what folded adds or replaces."""
    return re.sub(r"_\[k\]$", "", name).replace(";", ":")


# ---- Readers ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Of a protobuf message: (number, integer or bytes)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        yield key >> 3, value


def packed(value):
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        one, at = varint(value, at)
        found.append(one)
    return found


def group(data):
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def read_pprof(data, index):
    """Source: profile.proto of github.com/google/pprof. @index: of the sample's values."""
    profile = group(gzip.decompress(data))
    strings = [text.decode() for text in profile[6]]
    functions = {one[1][0]: strings[one[2][0]] for one in map(group, profile[5])}
    places = {}
    for one in map(group, profile[4]):
        lines = [functions[line[1][0]] for line in map(group, one[4])]
        places[one[1][0]] = lines[::-1]  # the caller, whom the others are inlined into, is last
    stacks = []
    for sample in map(group, profile[2]):
        ids = [number for value in sample[1] for number in packed(value)]
        values = [number for value in sample[2] for number in packed(value)]
        stacks.append(([name for number in reversed(ids) for name in places[number]], values[index]))
    return Sums.of_stacks(stacks)


def read_speedscope(text):
    """Source: speedscope's file-format-schema.json."""
    read = json.loads(text)
    names = [frame["name"] for frame in read["shared"]["frames"]]
    return Sums.of_stacks(([names[i] for i in stack], weight) for profile in read["profiles"]
                          for stack, weight in zip(profile["samples"], profile["weights"]))


def read_gecko(text, scale):
    """Source: "processed profile format" of github.com/firefox-devtools/profiler, version 60."""
    read = json.loads(text)
    tables = read["shared"]
    stacks, strings = tables["stackTable"], tables["stringArray"]

    def path(stack):
        names = []
        while stack is not None:
            function = tables["frameTable"]["func"][stacks["frame"][stack]]
            names.append(strings[tables["funcTable"]["name"][function]])
            stack = stacks["prefix"][stack]
        return names[::-1]
    paths = {}
    found = []
    for thread in read["threads"]:
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            paths[stack] = paths.get(stack) or path(stack)
            found.append((paths[stack], weight * scale))
    return Sums.of_stacks(found, error=1)


def read_chrome(text):
    """Slices nest, and end an eighth of a microsecond early. Source: "Trace Event Format", Google."""
    sums = Sums(error=300)
    tracks = collections.defaultdict(list)
    for event in json.loads(text)["traceEvents"]:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
    for events in tracks.values():
        open_slices = []
        for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
            while open_slices and open_slices[-1]["ts"] + open_slices[-1]["dur"] <= event["ts"]:
                open_slices.pop()
            ns, name = (event["dur"] + 0.125) * 1000, plain(event["name"])
            if open_slices:
                sums.own[plain(open_slices[-1]["name"])] -= ns
            else:
                sums.all += ns
            sums.own[name] += ns
            if name not in {plain(outer["name"]) for outer in open_slices}:
                sums.total[name] += ns
            sums.n_stacks += 1
            open_slices.append(event)
    return sums


def read_callgrind(text, column):
    """Source: "Callgrind Format Specification" of Valgrind. What recurs has another name there, with '2.

    The function all, which calls the outermost ones, may share its name with others: its time stands in the totals, too.
    """
    sums, name, called = Sums(), {}, False
    inclusive = collections.Counter()
    index = re.search("^events: (.*)", text, re.MULTILINE).group(1).split().index(column)
    for line in text.splitlines():
        match = re.fullmatch(r"(c?)fn=\((\d+)\)(?: (.*))?", line)
        if match:
            name.setdefault(match.group(2), match.group(3))
            current = current if match.group(1) else name[match.group(2)]
        elif re.fullmatch(r"[+-]?\d+( \d+)+", line):
            value = int(line.split()[1 + index])
            inclusive[current] += value
            if not called:
                sums.own[plain(re.sub("'2$", "", current))] += value
        called = line.startswith("calls=")
    sums.all = int(re.search("^totals: (.*)", text, re.MULTILINE).group(1).split()[index])
    sums.total.update({plain(name): value for name, value in inclusive.items() if not name.endswith("'2")})
    return sums


def read_pstats(data, labels):
    """Names are apart from files there, and only Python's have one that is a label: the others are by name alone."""
    sums = Sums(error=1000)
    for (file, _, name), (_, _, own, total, _) in marshal.loads(data).items():
        key = "%s (%s)" % (name, labels[file]) if file in labels else plain(name)
        sums.own[key] += own * 1e9
        sums.total[key] += total * 1e9
        sums.all += own * 1e9
    return sums


def nest(boxes):
    """Of (depth, name, value) in order, callers first: sums as of stacks."""
    sums, path = Sums(), []
    for depth, name, value in boxes:
        del path[depth:]
        if path:
            sums.own[path[-1]] -= value
        else:
            sums.all += value
        sums.own[name] += value
        if name not in path:
            sums.total[name] += value
        path.append(name)
    return sums


def read_svg(text, column):
    """Of the boxes that are drawn, their titles. The root stands for all threads."""
    boxes = []
    for box in xml.etree.ElementTree.fromstring(text).iter(SVG + "g"):
        title, rect = box.find(SVG + "title"), box.find(SVG + "rect")
        if title is None or rect is None:
            continue
        lines = title.text.split("\n")
        amount = re.match(r"[\d.]+ % · (\d+) samples?(?: · ([\d.]+) s)?", lines[-1])
        value = int(amount.group(1)) if column == "samples" else float(amount.group(2)) * 1e9
        boxes.append((float(rect.get("y")), float(rect.get("x")), plain(lines[0]), value))
    levels = sorted({box[0] for box in boxes}, reverse=True)
    # In the order of drawing a box follows its caller.
    sums = nest((levels.index(y), name, value) for y, _, name, value in boxes)
    sums.error = 0 if column == "samples" else 500000
    sums.n_stacks = 2 * len(boxes)
    return sums


def read_html(text):
    """Boxes, and the table of functions, which leaves out what is less than 1/20000."""
    data = json.loads(re.search(r'id="profile">(.*?)</script>', text, re.DOTALL).group(1))
    names = [plain(data["strings"][i - 1]) for i in data["labels"]["text"]]
    scale = data["scale"] or 1  # 0: values are samples
    sums = Sums()
    sums.all = sum(data["cells"]["value"]) * scale
    sums.error = sums.all / 20000 if data["left_out"] else 0
    for label, own, total in zip(*(data["functions"][column] for column in ("label", "self", "total"))):
        sums.own[names[label]] += own * scale
        sums.total[names[label]] += total * scale
    return sums


def read_report(text):
    read, sums = json.loads(text), Sums()
    for row in read["rows"]:
        name = "%s (%s)" % (row["name"], row["file_label"]) if row["kind"] == "python" else plain(row["name"])
        sums.own[name] += row["self"]
        sums.total[name] += row["total"]
    sums.all = read["weight"]
    return sums


class Everywhere(t.Case):
    """At a steady rate: all samples weigh the same, but for time that was not sampled."""
    OPTIONS = ("-F", "499")
    TIME_UNIT = True
    NO_STACKS = {"[not sampled]", "[no stack]"}
    CERTAIN = {"<module>", "alpha", "beta", "gamma", "delta", "burn", "fall", "wait"}  # what PROGRAM's time goes to

    @classmethod
    def setUpClass(cls):
        cls.need()
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        probing("record", "-o", "probing.db", *cls.OPTIONS, "--", t.DEBIAN_PYTHON, "-c", PROGRAM, check=t.OK)
        with open("probing.db", "rb") as file:
            cls.recording = file.read()
        rows = json.loads(probing("sql", "probing.db", "--format", "json",
                                  "SELECT folded(stack) AS path, sum(samples) AS samples, sum(weight) AS weight,"
                                  " stack IN (SELECT stack FROM stack JOIN named_frame USING (frame) WHERE kind = 'unsampled')"
                                  " AS unsampled FROM stack_total GROUP BY stack", check=t.OK).stdout)
        cls.labels = t.labels_of("probing.db")
        cls.rows = rows

    @classmethod
    def need(cls):
        t.need_perf()

    def setUp(self):
        super().setUp()
        with open("probing.db", "wb") as file:
            file.write(self.recording)
        self.by_weight = Sums.of_stacks((self.path_of(row), row["weight"]) for row in self.rows)
        self.by_count = Sums.of_stacks((self.path_of(row), row["samples"]) for row in self.rows if not row["unsampled"])
        self.assertGreater(len(self.by_weight.total), 10)
        self.assertLessEqual(self.CERTAIN, {label.split(" (")[0] for label in self.by_weight.total})

    @staticmethod
    def path_of(row):
        return row["path"].split(";") if row["path"] else ["[no stack]"]

    def export(self, to, *options):
        probing("export", "--to", to, "-o", "out." + to, "--force", *options, check=t.OK)
        with open("out." + to, "rb") as file:
            return file.read()

    def text(self, to, *options):
        return self.export(to, *options).decode()

    def assertSame(self, expected, found, what, names=None):
        """@names: of which functions something is known there; None: all."""
        error = found.error * found.n_stacks ** 0.5 + 2 * found.error + 1e-6 * expected.all
        self.assertAlmostEqual(expected.all, found.all, delta=error, msg=what)
        for column in ("own", "total"):
            wanted, got = getattr(expected, column), getattr(found, column)
            for name in names if names is not None else set(wanted):
                self.assertAlmostEqual(wanted[name], got[name], delta=error, msg="%s: %s of %s" % (what, column, name))

    def python(self):
        return {name for name in self.by_weight.total if re.search(r"\((.*\.py|<.*>)\)$", name)}

    # ---- Time, or what else samples weigh ----

    def test_folded(self):
        folded = read_folded(self.text("folded"))
        differ = len({row["weight"] / row["samples"] for row in self.rows}) > 1 or any(row["unsampled"] for row in self.rows)
        if not differ:
            self.assertSame(self.by_count, Sums.of_stacks(folded.items()), "folded")
        else:
            scale = 1000 if self.TIME_UNIT else 1
            self.assertSame(self.by_weight, Sums.of_stacks([(names, value * scale) for names, value in folded.items()],
                                                           error=scale), "folded")

    def test_speedscope(self):
        self.assertSame(self.by_weight, read_speedscope(self.text("speedscope")), "speedscope")

    def test_gecko(self):
        self.assertSame(self.by_weight, read_gecko(self.text("gecko"), 1e6 if self.TIME_UNIT else 1), "gecko")

    def test_pprof(self):
        self.assertSame(self.by_weight, read_pprof(self.export("pprof"), 1), "pprof")
        self.assertSame(self.by_count, read_pprof(self.export("pprof"), 0), "pprof, samples")

    def test_otlp(self):
        probing("export", "-o", "out.otlp", check=t.OK)
        _, profiles = test_exports.read_otlp(os.path.abspath("out.otlp"))
        sums = {key: sum(sum(sample["values"]) for sample in profile["samples"]) for key, profile in profiles.items()}
        self.assertEqual(self.by_count.all, sums.pop(("samples", "count")))
        ((unit, weight),) = [(key[1], value) for key, value in sums.items()]
        self.assertEqual(("nanoseconds" if self.TIME_UNIT else "count", self.by_weight.all), (unit, weight))

    def test_callgrind(self):
        text = self.text("callgrind")
        column = re.search("^events: (.*)", text, re.MULTILINE).group(1).split()[0]
        names = self.python() | self.NO_STACKS  # the others may share a name and be several
        self.assertSame(self.by_weight, read_callgrind(text, column), "callgrind", names)
        self.assertSame(self.by_count, read_callgrind(text, "samples"), "callgrind, samples", names)

    def test_html(self):
        self.assertSame(self.by_weight, read_html(self.text("html")), "html", self.python() | self.NO_STACKS)

    def test_report(self):
        text = probing("report", "--json", "-n", "100000", check=t.OK).stdout
        found = read_report(text)
        self.assertSame(self.by_weight, found, "report", self.python() | self.NO_STACKS)
        self.assertEqual(self.by_count.all, json.loads(text)["samples"])
        for by in ("thread", "process"):
            rows = json.loads(probing("report", "--json", "-n", "100000", "--by", by, check=t.OK).stdout)["rows"]
            self.assertEqual(self.by_weight.all, sum(row["total"] for row in rows), by)
        rows = json.loads(probing("report", "--json", "-n", "100000", "--by", "module", check=t.OK).stdout)["rows"]
        self.assertEqual(self.by_weight.all, sum(row["self"] for row in rows))

    def test_sql(self):
        rows = json.loads(probing("sql", "probing.db", "--format", "json", "SELECT * FROM hot_function", check=t.OK).stdout)
        self.assertEqual(self.by_weight.all, sum(row["self_weight"] for row in rows))
        self.assertEqual(self.by_weight.own["[not sampled]"],
                         sum(row["self_weight"] for row in rows if row["name"] == "[not sampled]"))
        for (sums,) in ([row["n"] for row in json.loads(probing("sql", "probing.db", "--format", "json", sql, check=t.OK).stdout)]
                        for sql in ("SELECT sum(weight) AS n FROM sample", "SELECT sum(weight) AS n FROM stack_total")):
            self.assertEqual(self.by_weight.all, sums)

    # ---- Counts ----

    def test_counts(self):
        readers = {"folded": lambda: Sums.of_stacks(read_folded(self.text("folded", "--counts")).items()),
                   "speedscope": lambda: read_speedscope(self.text("speedscope", "--counts")),
                   "gecko": lambda: read_gecko(self.text("gecko", "--counts"), 1),
                   "callgrind": lambda: read_callgrind(self.text("callgrind", "--counts"), "samples"),
                   "svg": lambda: read_svg(self.text("svg", "--counts", "--min-share", "0"), "samples")}
        self.assertLess(self.by_count.all, MAX_ALL)
        for to, read in readers.items():
            found = read()
            self.assertEqual(self.by_count.all, found.all, to)
            for column in ("own", "total"):
                wanted, got = getattr(self.by_count, column), getattr(found, column)
                for name in self.python():
                    self.assertEqual(wanted[name], round(got[name]), (to, column, name))
        self.assertSame(self.by_count, read_html(self.text("html", "--counts")), "html", self.python())


class Times(Everywhere):
    """Formats that know time alone."""

    def test_chrome(self):
        self.assertSame(self.by_weight, read_chrome(self.text("chrome")), "chrome")

    def test_pstats(self):
        self.assertSame(self.by_weight, read_pstats(self.export("pstats"), self.labels), "pstats", self.python())

    def test_svg(self):
        self.assertSame(self.by_weight, read_svg(self.text("svg"), "weight"), "svg", self.python())


class Waits(Times):
    """Samples weigh differently, and most of the time is waiting."""
    OPTIONS = ("-F", "499", "--mode", "wall")


class Polled(Times):
    """Each sample weighs what it found; short children are not sampled."""
    OPTIONS = ("-F", "499", "--source", "poll")

    @classmethod
    def need(cls):
        pass

    def test_something_was_not_sampled(self):
        self.assertGreater(self.by_weight.own["[not sampled]"], 0)


class Events(Everywhere):
    """Samples count events."""
    OPTIONS = ("--event", "minor-faults", "-c", "100")  # a fast machine has a million faults; see MAX_ALL
    TIME_UNIT = False
    CERTAIN = {"<module>", "exec"}  # memory is new while modules are imported


del Everywhere

if __name__ == "__main__":
    unittest.main()
