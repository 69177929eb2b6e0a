# SPDX-License-Identifier: MIT
"""Recordings against recordings: what has changed, the gate, and what measures for it."""
import json
import os
import re
import shutil
import sqlite3
import contextlib
import subprocess
import time
import unittest
import xml.etree.ElementTree as ElementTree

import probing_test as t
from probing_test import probing

TOGETHER = True  # by measured()
REGRESSED, CANNOT_TELL = 2, 3
SLOWER = os.path.join(t.FIXTURES, "slower.py")
N_RUNS = 8  # 12,870 deals: what lies apart is known, however many functions are asked


def bench(path, percent, *options, program=SLOWER, runs=N_RUNS):
    probing("bench", "-q", "-n", runs, "--warmup", 0, "-o", path, *options, "--", t.DEBIAN_PYTHON, program, percent, check=t.OK,
            timeout=240)


@t.shared
def measured(folder):
    """Where base.db, same.db and slow.db are: 0, 0 and 300 % more work."""
    for name, percent in (("base", 0), ("same", 0), ("slow", 300)):
        bench(os.path.join(folder, name + ".db"), percent)
    return folder


class Compare(t.Case):
    def setUp(self):
        super().setUp()
        for name in ("base.db", "same.db", "slow.db"):
            shutil.copy(os.path.join(measured(), name), name)

    def diff(self, *arguments):
        return json.loads(probing("diff", *arguments, "-f", "json", check=t.OK).stdout)

    def row(self, diff, name):
        return next(row for row in diff["functions"] if row["name"] == name)


class Bench(Compare):
    NIGHTLY_FOR_USERS = True  # it records as record does

    def test_a_recording_with_all_runs(self):
        with contextlib.closing(sqlite3.connect("base.db")) as db:
            rows = db.execute("SELECT bench_run, run, command, wall, user, max_rss, exit_status FROM bench_run").fetchall()
            runs, = db.execute("SELECT count(*) FROM run WHERE cpu_model <> ''").fetchone()
            samples = dict(db.execute("SELECT run, sum(samples) FROM stack_total JOIN run_process USING (pid) GROUP BY run"))
        self.assertEqual(2 * N_RUNS, len(rows))
        self.assertEqual(N_RUNS, runs)
        self.assertEqual(list(range(1, N_RUNS + 1)), [row[1] for row in rows if row[1] is not None])
        self.assertEqual(set(range(1, N_RUNS + 1)), set(samples))
        for _, run, command, wall, user, max_rss, status in rows:
            self.assertTrue(0.02 < wall < 60, wall)
            self.assertEqual((run is None, run is None), (user is not None, max_rss is not None))
            self.assertEqual(("%s %s 0" % (t.DEBIAN_PYTHON, SLOWER), 0), (command, status))
        # in turn: never three of a kind
        self.assertNotRegex("".join("t" if row[1] is None else "r" for row in rows), "ttt|rrr")
        probing("info", "--check", "base.db", check=t.OK)
        self.assertEqual(["base.db", "same.db", "slow.db"], sorted(os.listdir(".")))

    def test_merging_and_compacting_keep_it(self):
        probing("merge", "base.db", "slow.db", "-o", "both.db", check=t.OK)
        probing("compact", "base.db", "-o", "small.db", check=t.OK)
        sql = "SELECT b.run, b.command, b.wall, r.command FROM bench_run AS b LEFT JOIN run AS r USING (run) ORDER BY bench_run"
        read = {}
        for name in ("base", "slow", "both", "small"):
            with contextlib.closing(sqlite3.connect(name + ".db")) as db:
                read[name] = db.execute(sql).fetchall()
        self.assertEqual(read["base"], read["small"])
        self.assertEqual([row[1:] for row in read["base"] + read["slow"]], [row[1:] for row in read["both"]])
        self.assertEqual(list(range(1, 2 * N_RUNS + 1)), [row[0] for row in read["both"] if row[0] is not None])

    def test_a_command_that_fails(self):
        done = probing("bench", "-n", 2, "-o", "failed.db", "--", "sh", "-c", "exit 7", check=t.FAILED)
        self.assertSentence(done.stderr, "status 7")
        self.assertEqual(["base.db", "same.db", "slow.db"], sorted(os.listdir(".")))
        probing("bench", "-q", "-n", 2, "-o", "failed.db", "--ignore-failure", "--", t.DEBIAN_PYTHON, "-c",
                "sum(range(10**6)); raise SystemExit(7)", check=t.OK)
        with contextlib.closing(sqlite3.connect("failed.db")) as db:
            self.assertEqual([(7,)], db.execute("SELECT DISTINCT exit_status FROM bench_run").fetchall())

    def test_what_is_there_stays(self):
        before = os.stat("base.db").st_mtime_ns
        done = probing("bench", "-o", "base.db", "--", "true", check=t.NO_OUTPUT)
        self.assertSentence(done.stderr, "base.db exists")
        self.assertEqual(before, os.stat("base.db").st_mtime_ns)
        probing("bench", "--", "no-such-command", check=t.NOT_FOUND)
        probing("bench", check=t.USAGE)

    def test_an_interrupt_leaves_nothing(self):
        started = subprocess.Popen([t.BINARY, "bench", "-q", "-n", "50", "-o", "long.db", "--", "sleep", "0.2"],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        started.terminate()
        self.assertEqual(-15, started.wait(20))
        self.assertEqual(["base.db", "same.db", "slow.db"], sorted(os.listdir(".")))

    def test_options_of_record(self):
        bench("user.db", 0, "--no-timing", "--no-kernel", "-F", 499, runs=1)
        run, = json.loads(probing("info", "--json", "user.db", check=t.OK).stdout)[0]["runs"]
        self.assertEqual((499, False), (run["hz"], run["kernel_frames"]))


class Diff(Compare):
    SAME_FOR_ALL_USERS = True

    @t.statistical("tests of significance on eight runs", 0.001)
    def test_the_planted_function_is_found(self):
        diff = self.diff("base.db", "slow.db", "--no-native")
        planted = self.row(diff, "planted")["self"]
        self.assertTrue(planted["changed"], planted)
        self.assertTrue(1.5 < planted["change"] < 6, planted)
        self.assertTrue(planted["low"] < planted["change"] < planted["high"], planted)
        self.assertGreater(min(diff["wall"]["base"], diff["wall"]["head"]), 0)
        self.assertEqual("planted", diff["functions"][0]["name"])
        self.assertEqual(N_RUNS, sum(run["recorded"] for run in diff["base"]))
        text = probing("diff", "base.db", "slow.db", "--no-native", check=t.OK).stdout
        self.assertRegex(text, r"\+\d+\.\d %.*planted +slower\.py")

    def test_what_has_not_changed_is_not_said_to(self):
        """Of two recordings one in twenty may say so by chance, and others' load changes both. Here only one function differs."""
        shutil.copy("base.db", "edited.db")
        with contextlib.closing(sqlite3.connect("edited.db")) as db, db:
            db.execute("UPDATE stack_total SET weight = weight * 4 WHERE stack IN ("
                       "WITH RECURSIVE under(stack) AS (SELECT stack FROM stack JOIN named_frame USING (frame) WHERE name = 'planted'"
                       " UNION SELECT stack.stack FROM stack JOIN under ON stack.parent = under.stack) SELECT stack FROM under)")
        diff = self.diff("base.db", "edited.db", "--no-native")
        planted, steady = (self.row(diff, name)["self"] for name in ("planted", "steady"))
        self.assertTrue(planted["changed"], planted)
        self.assertAlmostEqual(3, planted["change"], places=6)
        self.assertEqual((False, 0), (steady["changed"], steady["change"]))
        text = probing("diff", "base.db", "edited.db", "--no-native", check=t.OK).stdout
        self.assertRegex(text, r"\+300\.0 %.*planted +slower\.py")
        self.assertRegex(text, r"~ .*steady +slower\.py")

    def test_numbers_are_those_of_the_file(self):
        diff = self.diff("base.db", "base.db", "--no-native", "--stacks")
        with contextlib.closing(sqlite3.connect("base.db")) as db:
            weight, = db.execute("SELECT sum(weight) / 1e9 FROM stack_total").fetchone()
        self.assertAlmostEqual(weight / N_RUNS, diff["whole"]["base"], places=6)
        self.assertFalse([row["name"] for row in diff["functions"] if row["self"]["changed"] or row["self"]["change"] != 0])
        shares = self.diff("base.db", "base.db", "--no-native", "--normalize", "samples", "--min-change-share", 0)
        self.assertLessEqual(sum(row["self"]["base"] for row in shares["functions"]), 1.0001)
        self.assertGreater(sum(row["self"]["base"] for row in shares["functions"]), 0.9)
        main = next(row for row in diff["stacks"] if row["stack"] == "<module>;main")
        self.assertGreater(main["total"]["base"], main["self"]["base"])

    def test_the_same_files_give_the_same_answer(self):
        once, again = (probing("diff", "base.db", "slow.db", "-f", "json", "--stacks", env=dict(os.environ, LC_ALL=locale),
                               check=t.OK).stdout for locale in ("C", "de_DE.UTF-8"))
        self.assertEqual(once, again)

    def test_a_renamed_program_in_another_folder(self):
        os.mkdir("elsewhere")
        with open(SLOWER) as source, open("elsewhere/renamed.py", "w") as copy:
            copy.write("\n\n\n" + source.read())
        bench("moved.db", 0, "--no-timing", program="elsewhere/renamed.py")
        planted = self.row(self.diff("base.db", "moved.db", "--no-native"), "planted")
        self.assertEqual(("renamed.py", "slower.py"), (planted["place"], planted["was_place"]))
        self.assertGreater(planted["self"]["base"], 0)
        self.assertGreater(planted["self"]["head"], 0)

    def test_ways_to_name_them(self):
        named = self.diff("base.db", "slow.db")["whole"]
        self.assertEqual(named, self.diff("base.db", "--against", "slow.db")["whole"])
        self.assertEqual(named, self.diff("bas?.db", "sl*.db")["whole"])
        several = self.diff("base.db", "same.db", "--against", "slow.db")
        self.assertEqual(several["whole"], self.diff("base.db,same.db", "slow.db")["whole"])
        self.assertEqual(2 * N_RUNS, sum(run["recorded"] for run in several["base"]))
        for wrong in ((), ("base.db",), ("base.db", "same.db", "slow.db")):
            probing("diff", *wrong, check=t.USAGE)
        probing("diff", "base.db", "missing.db", check=t.NO_INPUT)

    def test_markdown_and_picture(self):
        text = probing("diff", "base.db", "slow.db", "--no-native", "-f", "markdown", check=t.OK).stdout
        self.assertRegex(text, r"\| <code>planted</code> <code>slower.py</code> \|.*\+\d")
        probing("diff", "base.db", "slow.db", "--no-native", "-o", "change.svg", check=t.OK)
        root = ElementTree.parse("change.svg").getroot()
        boxes = root.findall(".//{*}g[@class='frames']/{*}g")
        width = lambda box: float(box.find("{*}rect").get("width"))
        # A function has a box for each way that leads to it: the widest.
        by_name = {box.find("{*}title").text.split("\n")[0]: box for box in sorted(boxes, key=width)}
        self.assertRegex(by_name["planted"].find("{*}rect").get("class"), r"^m[345]$")
        self.assertRegex(by_name["planted"].find("{*}title").text, r"was .*: \+\d")
        self.assertLessEqual(width(by_name["planted"]), width(by_name["all"]))

    def test_page(self):
        done = probing("diff", "base.db", "slow.db", "--no-native", "-o", "change.html")
        if "was built without" in done.stderr:
            raise unittest.SkipTest("this build has no HTML")
        self.assertEqual((t.OK, ""), (done.returncode, done.stderr))
        with open("change.html", encoding="utf-8") as page:
            data = json.loads(page.read().split('id="profile">\n', 1)[1].split("</script>", 1)[0])
        names = [data["strings"][text - 1] for text in data["labels"]["text"]]
        nodes, diff = data["nodes"], data["diff"]
        self.assertEqual({len(names)}, {len(column) for column in (*(nodes[name] for name in ("label", "up", "value")), *(
            diff[name] for name in ("shade", "is_known", "says")))})
        inside = [0] * len(names)
        for i, up in enumerate(nodes["up"]):
            if i > 0:
                inside[i - up] += nodes["value"][i]
        for i, value in enumerate(nodes["value"]):
            self.assertLessEqual(inside[i], value + len(names), names[i])  # each is rounded
        planted = max((i for i, name in enumerate(names) if name == "planted"), key=lambda i: nodes["value"][i])
        self.assertGreaterEqual(diff["shade"][planted], 3)
        self.assertRegex(diff["says"][planted], r"^[\d.]+ % · .*, was .*: \+\d")
        whole = json.loads(probing("diff", "base.db", "slow.db", "--no-native", "-f", "json", check=t.OK).stdout)["whole"]
        self.assertIn("%+.1f %%" % (100 * (whole["head"] / whole["base"] - 1)), diff["says"][0])

    def test_by_wall_and_by_counter(self):
        wall = self.diff("base.db", "slow.db", "--normalize", "wall")["whole"]
        self.assertTrue(0.02 < wall["base"] < 1.3, wall)  # one thread that computes, and others beside it
        done = probing("diff", "base.db", "slow.db", "--normalize", "requests", check=t.BAD_DATA)
        self.assertSentence(done.stderr, "requests")

    def slow_down(self, path, times):
        """As if the machine had been so many times as slow: each sample weighs as much more."""
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE stack_total SET weight = weight * ?", (times,))

    @t.statistical("tests of significance on eight runs", 0.001)
    def test_by_the_rest(self):
        per = ("--no-native", "--normalize", "rest")
        run = self.row(self.diff("base.db", "slow.db", "--no-native"), "planted")["self"]
        diff = self.diff("base.db", "slow.db", *per)
        planted, steady = (self.row(diff, name)["self"] for name in ("planted", "steady"))
        self.assertEqual(("of the rest", "time relative to the rest of the same run"), (diff["unit"], diff["quantity"]))
        self.assertTrue(planted["changed"] and 1.5 < planted["change"] < 6, planted)
        self.assertLess(steady["change"], 0)
        self.assertIsNone(diff["whole"]["base"])
        with contextlib.closing(sqlite3.connect("base.db")) as db:
            rows = dict(db.execute("SELECT run, sum(weight) / 1e9 FROM stack_total JOIN run_process USING (pid) GROUP BY run"))
        self.assertAlmostEqual(planted["base"], run["base"] / (sum(rows.values()) / N_RUNS - run["base"]), delta=0.1 * planted["base"])
        self.slow_down("slow.db", 2)
        again = self.row(self.diff("base.db", "slow.db", *per), "planted")["self"]
        for key in ("base", "head", "change"):
            self.assertAlmostEqual(planted[key], again[key], places=9)
        self.assertAlmostEqual(2, self.row(self.diff("base.db", "slow.db", "--no-native"), "planted")["self"]["head"] / run["head"], places=6)
        text = probing("diff", "base.db", "slow.db", *per, check=t.OK).stdout
        self.assertIn("time relative to the rest of the same run; ~ no significant change", text)
        self.assertNotIn("  total", text)
        self.assertRegex(text, r"\d %\s+\d+\.\d %\s+\+\d+\.\d %.*planted +slower\.py")
        probing("diff", "base.db", "slow.db", *per, "-o", "rest.svg", check=t.OK)
        root = ElementTree.parse("rest.svg").getroot()
        titles = [title.text for title in root.findall(".//{*}g[@class='frames']/{*}g/{*}title")]
        self.assertTrue([title for title in titles if re.search(r"planted.*%, was \d+\.\d %: \+\d", title, re.S)], titles[:5])

    def test_events_are_not_time(self):
        with t.fixture("demo.py") as target:
            t.record_cpu(target, 0.3, 99, "time.db")
            probing("record", "--pid", target.pid, "-d", 0.5, "-e", "page-faults", "-c", 1, "-o", "events.db", check=t.OK)
        if not self.has_samples("events.db"):
            raise unittest.SkipTest("no page fault was sampled")
        done = probing("diff", "time.db", "events.db", check=t.BAD_DATA)
        self.assertSentence(done.stderr, "page-faults")

    def has_samples(self, path):
        return json.loads(probing("info", "--json", path, check=t.OK).stdout)[0]["samples"] > 0


class Check(Compare):
    SAME_FOR_ALL_USERS = True

    def check(self, *arguments, status):
        return probing("check", "--baseline", *arguments, check=status).stdout

    @t.statistical("tests of significance on eight runs", 0.001)
    def test_statuses(self):
        rule = "self(func=planted)>+15%"
        self.assertIn("REGRESSED", self.check("base.db", "slow.db", "--no-native", "--fail-on", rule, status=REGRESSED))
        self.check("slow.db", "base.db", "--no-native", "--fail-on", "self(func=planted)>+80%", status=t.OK)
        self.check("base.db", "slow.db", "--no-native", "--fail-on", "self(func=planted)>+900%", status=t.OK)
        self.check("base.db", "base.db", "--fail-on", "total>+80%", status=t.OK)
        self.check("base.db", "slow.db", "--no-native", "--fail-on", "any>+15%", status=REGRESSED)
        done = probing("check", "--baseline", "base.db", "slow.db", "--fail-on", "wall>+5%")  # others may be at work here
        self.assertIn(done.returncode, (t.OK, REGRESSED, CANNOT_TELL))
        self.assertRegex(done.stdout, r"wall>\+5%: wall time without a recorder: [\d.]+ m?s to [\d.]+ m?s")
        probing("check", "base.db", check=t.USAGE)
        probing("check", "--baseline", "base.db", "slow.db", "--fail-on", "planted>5%", check=t.USAGE)

    @t.statistical("tests of significance on eight runs", 0.001)
    def test_a_slow_machine_is_no_regression(self):
        bench("more.db", 30, "--no-timing", "-F", 1999)
        bench("less.db", 0, "--no-timing", "-F", 1999)
        shutil.copy("base.db", "twice.db")
        with contextlib.closing(sqlite3.connect("twice.db")) as db, db:
            db.execute("UPDATE stack_total SET weight = weight * 2")
        rules = ("--no-native", "--fail-on", "self(func=planted)>+0%", "--fail-on", "any>+5%")
        self.check("base.db", "twice.db", *rules, status=REGRESSED)
        self.check("base.db", "twice.db", *rules, "--normalize", "rest", status=t.OK)
        with contextlib.closing(sqlite3.connect("more.db")) as db, db:
            db.execute("UPDATE stack_total SET weight = weight / 2")
        rule = ("--no-native", "--fail-on", "self(func=planted)>+0%")
        self.check("less.db", "more.db", *rule, status=t.OK)  # half as slow a machine hides it
        self.assertRegex(self.check("less.db", "more.db", *rule, "--normalize", "rest", status=REGRESSED), r"planted.*\+\d+\.\d %")
        text = self.check("less.db", "more.db", "--no-native", "--normalize", "rest", status=CANNOT_TELL)  # total>+5%
        self.assertIn("shares always add up to the same", text)

    def test_another_machine_cannot_be_told(self):
        with contextlib.closing(sqlite3.connect("slow.db")) as db, db:
            db.execute("UPDATE run SET cpu_model = 'Another'")
        self.assertRegex(self.check("base.db", "slow.db", status=CANNOT_TELL), r"inconclusive +processor: differs: .*Another")
        self.check("base.db", "slow.db", "--allow", "cpu_model", "--fail-on", "total>+5%", status=REGRESSED)
        probing("check", "--baseline", "base.db", "slow.db", "--allow", "everything", check=t.USAGE)

    def test_too_few_runs_cannot_be_told(self):
        bench("one.db", 0, runs=1)
        self.assertIn("too few", self.check("one.db", "one.db", status=CANNOT_TELL))

    @t.statistical("tests of significance on eight runs", 0.0005)
    def test_formats_of_others(self):
        probing("check", "-q", "--baseline", "base.db", "slow.db", "--no-native", "--fail-on", "self(func=planted)>+15%",
                "--fail-on", "self(func=nobody)>+1%", "--junit", "junit.xml", "--github-benchmark", "github.json",
                "--hyperfine", "hyperfine.json", "--go-benchmark", "go.txt", "--markdown", "m.md", "--json", "c.json",
                check=REGRESSED)
        suite = ElementTree.parse("junit.xml").getroot().find("testsuite")
        self.assertEqual(("2", "1", "1"), (suite.get("tests"), suite.get("failures"), suite.get("skipped")))
        self.assertEqual("planted (slower.py)", suite.find("testcase[failure]").get("name"))
        with open("github.json") as file:
            entries = json.load(file)
        self.assertEqual({"name", "unit", "value", "range"}, set(entries[0]))
        self.assertIn("planted (slower.py)", [entry["name"] for entry in entries])
        with open("hyperfine.json") as file:
            results = json.load(file)["results"]
        self.assertEqual(2, len(results))
        self.assertEqual(N_RUNS, len(results[0]["times"]))
        self.assertTrue(results[0]["min"] <= results[0]["median"] <= results[0]["max"])
        with open("go.txt") as file:
            lines = file.read().splitlines()
        for line in lines[3:]:
            self.assertRegex(line, r"^Benchmark\S+ 1 \d+ ns/op$")
        self.assertEqual(N_RUNS, sum(line.startswith("BenchmarkSelf/planted@slower.py ") for line in lines))
        with open("m.md") as file:
            comment = file.read()
        self.assertTrue(comment.startswith("### Profile: REGRESSED\n"), comment)
        self.assertRegex(comment, r"(?m)^- REGRESSED <code>self\(func=planted\)&gt;\+15%</code>, planted \(slower.py\)")
        self.assertRegex(comment, r"(?m)^- inconclusive <code>self\(func=nobody\)")
        self.assertTrue(json.load(open("c.json"))["functions"])


if __name__ == "__main__":
    unittest.main()
