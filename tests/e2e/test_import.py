# SPDX-License-Identifier: MIT
"""What other profilers wrote, as recordings: their numbers in our tables, told by readers that are not ours."""
import collections
import contextlib
import csv
import gzip
import json
import os
import pstats
import re
import resource
import sqlite3
import struct
import subprocess
import sys
import unittest

import probing_test as t
from probing_test import probing

sys.path.append(os.path.join(t.ROOT, "fuzz"))
import make_perf_corpus as perf_corpus

SAME_FOR_ALL_USERS = True

CORPUS = os.path.join(t.ROOT, "fuzz", "corpus")
NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def given(name):
    return os.path.join(CORPUS, "import_" + name)


def ask(path, sql):
    return json.loads(probing("sql", path, sql, "-f", "json", check=t.OK).stdout)


def imported(name, *more):
    """Import a file of the corpus; the recording must be sound."""
    probing("import", given(name), "-o", "out.db", "--force", *more, check=t.OK)
    about = json.loads(probing("info", "--check", "--json", "out.db", check=t.OK).stdout)[0]
    assert about["check"]["sound"] and about["check"]["verified"], about
    assert about["runs"][0]["mode"] == "imported", about
    return about


def folded(path, *more):
    lines = probing("export", path, "--to", "folded", "--counts", "-o", "-", *more, check=t.OK).stdout.splitlines()
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}


class Import(t.Case):
    def setUp(self):
        """No perf events are needed to read what others wrote."""
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)


class Folded(Import):
    def test_there_and_back(self):
        """What we write ourselves comes back as it was, to the byte."""
        golden = os.path.join(t.ROOT, "tests", "golden", "training.folded")
        with open(golden) as file:
            text = file.read()
        probing("import", golden, "-o", "out.db", check=t.OK)
        self.assertEqual(text, probing("export", "out.db", "--to", "folded", "-o", "-", check=t.OK).stdout)

    def test_places_and_kinds(self):
        about = imported("folded/pyspy.folded")
        self.assertEqual("count", about["runs"][0]["unit"])
        rows = {row["name"]: row for row in ask("out.db", "SELECT name, kind, file, self_samples, total_samples FROM hot_function")}
        self.assertEqual(("python", "model.py", 120), tuple(rows["forward"][key] for key in ("kind", "file", "self_samples")))
        self.assertEqual(("kernel", 7), tuple(rows["do_syscall_64"][key] for key in ("kind", "self_samples")))
        self.assertEqual(59, rows["at::gemm<float>(int)"]["total_samples"])
        self.assertEqual(2, rows["[no stack]"]["self_samples"])

    def test_lines_that_are_none_are_told(self):
        done = probing("import", given("folded/pyspy.folded"), "-o", "out.db", check=t.OK)
        self.assertIn("1 entry of", done.stderr)


class Nvprof(Import):
    SUMMARY = re.compile(r"^(?: *(GPU activities|API calls|Range):)? +([\d.]+%) +(\S+) +(\d+) +(\S+) +(\S+) +(\S+) +(.+)$")

    def printed(self, name):
        """The rows of a summary, as they stand in the log."""
        rows, kind = [], None
        with open(given(name)) as file:
            for line in file.read().split("NVTX result:")[0].splitlines():
                match = self.SUMMARY.match(line)
                if match:
                    kind = match.group(1) or kind
                    rows.append((kind, *match.groups()[1:]))
        return rows

    def test_summary_is_printed_as_it_was(self):
        imported("nvprof/summary.nvprof")
        ours = [tuple(str(value) for value in row.values())
                for row in ask("out.db", "SELECT * FROM gpu.nvprof WHERE type <> 'NVTX ranges'")]
        self.assertEqual([tuple(value.replace("1.86200s", "1.8620s").replace("1.86100s", "1.8610s") for value in row)
                          for row in self.printed("nvprof/summary.nvprof")], ours)

    def test_csv_says_the_same_as_text(self):
        imported("nvprof/summary.nvprof")
        sql = "SELECT type, calls, time_ns, min_ns, max_ns, name FROM gpu.summary WHERE type <> 'NVTX ranges'"
        text = ask("out.db", sql)
        imported("nvprof/summary.csv")
        self.assertEqual(text, ask("out.db", sql))
        self.assertEqual(9, len(text))

    def test_ranges_do_not_count_activities_twice(self):
        imported("nvprof/summary.nvprof")
        self.assertEqual([{"n": 2}], ask("out.db", "SELECT count(*) AS n FROM gpu.kernels"))
        self.assertEqual([{"name": "forward", "calls": 2, "duration_ns": 250000000}],
                         ask("out.db", "SELECT name, calls, duration_ns FROM gpu.ranges"))

    def test_trace(self):
        imported("nvprof/trace.csv")
        with open(given("nvprof/trace.csv")) as file:
            rows = [row for row in csv.reader(file) if len(row) == 20 and row[0][0].isdigit()]
        kernels = [row for row in rows if row[2]]
        ours = ask("out.db", "SELECT * FROM gpu.kernels ORDER BY start_ns")
        self.assertEqual([(round(float(row[0]) * 1e6), round(float(row[1]) * 1e3), int(row[2]), int(row[5]), int(row[8]),
                           round(float(row[9]) * 1024), int(row[10]), int(row[17]), int(row[19])) for row in kernels],
                         [(row["start_ns"], row["duration_ns"], row["grid_x"], row["block_x"], row["registers"],
                           row["static_shared_bytes"], row["dynamic_shared_bytes"], row["stream"], row["correlation"])
                          for row in ours])
        self.assertEqual({"axpy(float, float*, float*)"}, {row["name"] for row in ours})
        launch = ask("out.db", "SELECT k.start_ns - a.start_ns AS ns FROM gpu.kernels AS k JOIN gpu.api_calls AS a USING (correlation)")
        self.assertEqual([100000, 50000], [row["ns"] for row in launch])

    def test_before_there_was_a_column_for_types(self):
        imported("nvprof/old.nvprof")
        self.assertEqual(["subtract(float const *, int)", "[CUDA memcpy DtoH]", "cudaDeviceSynchronize"],
                         [row["name"] for row in ask("out.db", "SELECT name FROM gpu.summary")])

    def test_report_and_flame_graph(self):
        imported("nvprof/summary.nvprof")
        stacks = folded("out.db", "--by-thread")
        self.assertEqual(120, stacks["GPU activities (1);void sgemm_128x64<float, bool=1>(float const *, float*, int)"])
        self.assertIn("relu_forward", probing("report", "out.db", check=t.OK).stdout)

    def test_into_a_recording(self):
        imported("folded/pyspy.folded")
        before = ask("out.db", "SELECT * FROM stack_total")
        probing("import", given("nvprof/summary.nvprof"), "--into", "out.db", check=t.OK)
        probing("import", given("nsys/small.sqlite"), "--into", "out.db", check=t.OK)
        about = json.loads(probing("info", "--check", "--json", "out.db", check=t.OK).stdout)[0]
        self.assertTrue(about["check"]["sound"] and about["check"]["verified"], about)
        self.assertEqual(before, ask("out.db", "SELECT * FROM stack_total"))
        self.assertEqual([("nvprof", 2), ("nsys", 3)], [tuple(row.values()) for row in ask(
            "out.db", "SELECT format, count(*) FROM gpu.kernels JOIN gpu_trace USING (trace) GROUP BY trace")])
        probing("compact", "out.db", check=t.OK)
        self.assertEqual(5, len(ask("out.db", "SELECT * FROM gpu.kernels")))

    def test_merged(self):
        """Each with its own trace, and its rows with it."""
        probing("import", given("nvprof/summary.nvprof"), "-o", "one.db", check=t.OK)
        probing("import", given("nvprof/trace.csv"), "-o", "two.db", check=t.OK)
        probing("merge", "one.db", "two.db", "-o", "both.db", check=t.OK)
        about = json.loads(probing("info", "--check", "--json", "both.db", check=t.OK).stdout)[0]
        self.assertTrue(about["check"]["sound"], about)
        self.assertEqual([(1, 3821, 2), (2, 2119, 2)], [tuple(row.values()) for row in ask(
            "both.db", "SELECT trace, pid, count(*) FROM gpu.kernels JOIN gpu_trace USING (trace) GROUP BY trace")])
        self.assertEqual(sum(row["calls"] for path in ("one.db", "two.db") for row in ask(path, "SELECT calls FROM gpu.summary")),
                         ask("both.db", "SELECT sum(calls) AS n FROM gpu.summary")[0]["n"])

    def test_a_recording_without_gpus_has_empty_tables(self):
        imported("folded/pyspy.folded")
        self.assertEqual([], ask("out.db", "SELECT * FROM gpu.kernels"))
        self.assertEqual([], ask("out.db", "SELECT * FROM gpu.nvprof"))


class Nsys(Import):
    def test_rows_are_those_of_the_export(self):
        about = imported("nsys/small.sqlite")
        self.assertEqual(1700000000, about["runs"][0]["started"])
        db = sqlite3.connect(given("nsys/small.sqlite"))
        theirs = db.execute("SELECT s.value, k.start, k.end - k.start, gridX, blockX, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL"
                            " AS k JOIN StringIds AS s ON s.id = demangledName").fetchall()
        self.assertEqual(theirs, [tuple(row.values()) for row in ask(
            "out.db", "SELECT name, start_ns, duration_ns, grid_x, block_x, correlation FROM gpu.kernels")])
        self.assertEqual([("HtoD", 1048576, "Pageable", "Device"), ("memset", 4096, "Device", None)],
                         [tuple(row.values()) for row in ask("out.db", "SELECT kind, bytes, source, destination FROM gpu.memcpy")])
        self.assertEqual([("cudaLaunchKernel", 3, 4711, 4712), ("cudaMemcpy", 1, 4711, 4712)], [tuple(row.values()) for row in ask(
            "out.db", "SELECT name, count(*) AS n, pid, tid FROM gpu.api_calls GROUP BY name")])
        self.assertEqual(["step", "load"], [row["name"] for row in ask("out.db", "SELECT name FROM gpu.ranges")])

    def test_a_recording_of_ours_is_none(self):
        imported("folded/pyspy.folded")
        done = probing("import", "out.db", "-o", "again.db", check=t.BAD_DATA)
        self.assertSentence(done.stderr, "unrecognised format")


class Pstats(Import):
    def compare(self, path):
        """Own time and calls of each function are those that pstats says."""
        stats = pstats.Stats(path).stats
        theirs = collections.Counter()
        for (file, line, name), (_, calls, own, _, _) in stats.items():
            theirs[(name, line or None, "calls")] += calls
            theirs[(name, line or None, "ns")] += round(own * 1e9)
        ours = collections.Counter()
        for row in ask("out.db", "SELECT f.name, f.first_line, sum(t.samples) AS calls, sum(t.weight) AS ns FROM stack_total AS t"
                                 " JOIN stack USING (stack) JOIN frame USING (frame) JOIN function AS f USING (function)"
                                 " GROUP BY function"):
            ours[(row["name"], row["first_line"], "calls")] += row["calls"]
            ours[(row["name"], row["first_line"], "ns")] += row["ns"]
        self.assertEqual({key for key, value in theirs.items() if value > 0}, {key for key, value in ours.items() if value > 0})
        for key, value in theirs.items():
            self.assertLessEqual(abs(value - ours[key]), 1, key)

    def test_each_version_of_marshal(self):
        for name in ["cprofile.%d" % version for version in range(5)] + ["profile.4", "circle.2"]:
            with self.subTest(name):
                imported("pstats/" + name)
                self.compare(given("pstats/" + name))

    def test_each_interpreter_here(self):
        with open("work.py", "w") as file:
            file.write("def leaf(n):\n    return sum([i * i for i in range(n)])\n\n\ndef outer():\n    return leaf(20000)\n\n\nouter()\n")
        for interpreter in t.interpreters():
            if not interpreter.path or interpreter.place.missing or interpreter.place.prefix:
                continue
            with self.subTest(interpreter.label):
                subprocess.run([interpreter.path, "-m", "cProfile", "-o", "work.prof", "work.py"], check=True, timeout=60)
                probing("import", "work.prof", "-o", "out.db", "--force", check=t.OK)
                stacks = folded("out.db")
                self.assertTrue(any("outer (work.py);leaf (work.py)" in stack for stack in stacks), stacks)

    def test_times_with_callers(self):
        """Where contexts do not differ, whole times are right, too."""
        imported("pstats/cprofile.4")
        stats = pstats.Stats(given("pstats/cprofile.4")).stats
        whole = {row["name"]: row["total_weight"] for row in ask("out.db", "SELECT name, total_weight FROM hot_function")}
        for (_, _, name), (_, _, _, total, _) in stats.items():
            if name in ("work", "leaf", "light", "heavy"):
                self.assertAlmostEqual(total * 1e9, whole[name], delta=max(3000, total * 1e7), msg=name)


class Speedscope(Import):
    def test_samples_and_events(self):
        imported("speedscope/small.speedscope.json")
        self.assertEqual({"main (train.py)": 3, "main (train.py);forward (model.py)": 1, "main (train.py);forward (model.py);gemm": 1,
                          "main (train.py);gemm": 1, "[no stack]": 1}, folded("out.db"))
        sums = ask("out.db", "SELECT thread.name, sum(weight) AS ns FROM stack_total JOIN thread USING (pid, tid) GROUP BY tid")
        self.assertEqual([("worker", 40000000), ("loader", 25000000)], [tuple(row.values()) for row in sums])
        self.assertEqual([{"s": 0.03}], ask("out.db", "SELECT round(max(timestamp) - min(timestamp), 4) AS s FROM sample"))

    def test_there_and_back(self):
        """Places that stand in names since speedscope shows nothing else are no part of them."""
        golden = os.path.join(t.ROOT, "tests", "golden", "training")
        probing("import", golden + ".speedscope.json", "-o", "out.db", check=t.OK)
        with open(golden + ".folded") as file:
            wanted = {frame.replace("_[k]", "") for line in file for frame in line.rsplit(" ", 1)[0].split(";")}
        self.assertEqual(wanted, {frame for stack in folded("out.db") for frame in stack.split(";")})
        named = ask("out.db", "SELECT name FROM hot_function WHERE kind = 'python'")
        self.assertIn({"name": "Trainer.train"}, named)
        self.assertEqual([], [row for row in named if "(" in row["name"]])

    def test_what_does_not_fit_is_refused(self):
        for name, what in (("close", "closed"), ("frame", "missing frame"), ("weights", "weights"), ("deep", "JSON")):
            with self.subTest(name):
                done = probing("import", given("speedscope/%s.json" % name), "-o", "out.db", check=t.BAD_DATA)
                self.assertSentence(done.stderr, what)
                self.assertEqual([], os.listdir("."))


class Pprof(Import):
    def test_packed_or_not(self):
        for name in ("small.pb.gz", "small.pb"):
            with self.subTest(name):
                about = imported("pprof/" + name)
                self.assertEqual((1700000000, 1700000002), (about["runs"][0]["started"], about["runs"][0]["ended"]))
                self.assertEqual({"main.main": 1, "main.main;main.work;runtime.memmove": 7, "main.main;prog+0x123": 1,
                                  "main.main;helper (train.py)": 2}, folded("out.db"))
                self.assertEqual([(1, 90000000), (77, 20000000)], [tuple(row.values()) for row in ask(
                    "out.db", "SELECT tid, sum(weight) AS ns FROM stack_total GROUP BY tid")])


class KernelAddresses(Import):
    """They tell where a boot had put the kernel, so none comes into a recording."""
    TEXT, MODULE = 0xffffffff81000000, 0xffffffffc0100000

    def frames(self, maps):
        common = perf_corpus.IP | perf_corpus.TID | perf_corpus.TIME | perf_corpus.CPU | perf_corpus.PERIOD
        with open("perf.data", "wb") as file:
            file.write(perf_corpus.perf_data(common | perf_corpus.CALLCHAIN, maps))
        probing("import", "perf.data", "-o", "out.db", "--force", check=t.OK)
        return [row["address"] for row in ask("out.db", "SELECT address FROM frame WHERE kind = 'kernel' ORDER BY frame DESC")]

    def test_perf_data_says_where_the_image_lies(self):
        image = perf_corpus.kernel_map(self.TEXT, 0x3f000000, self.TEXT, "[kernel.kallsyms]_text")
        self.assertEqual([0x10, 0x20], sorted(self.frames(image)))

    def test_perf_data_with_code_of_modules(self):
        """Of a module it is not known from where its places count."""
        image = perf_corpus.kernel_map(self.TEXT - 0x100000, 0x3f000000, self.TEXT - 0x100000, "[kernel.kallsyms]_text")
        module = perf_corpus.kernel_map(self.TEXT, 0x10000, 0, "[made]")
        self.assertEqual({None}, set(self.frames(image + module)))

    def test_perf_data_that_does_not_say_it(self):
        self.assertEqual({None}, set(self.frames(b"")))

    def test_pprof(self):
        """A location without a function: of a mapping whose offset is its address, and of none."""
        def field(number, value):
            def varint(n):
                return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])
            if isinstance(value, int):
                return varint(number << 3) + varint(value)
            return varint(number << 3 | 2) + varint(len(value)) + value
        texts = ("", "samples", "count", "[kernel.kallsyms]_text")
        profile = field(1, field(1, 1) + field(2, 2))
        for i, mapping in enumerate((1, 0), 1):
            profile += field(2, field(1, bytes([i])) + field(2, bytes([3])))
            profile += field(4, field(1, i) + (field(2, mapping) if mapping else b"") + field(3, self.TEXT + 0x10))
        profile += field(3, field(1, 1) + field(2, self.TEXT) + field(3, self.TEXT + 0x100000) + field(4, self.TEXT) + field(5, 3))
        profile += b"".join(field(6, one.encode()) for one in texts)
        with gzip.open("profile.pb.gz", "wb") as file:
            file.write(profile)
        probing("import", "profile.pb.gz", "-o", "out.db", "--force", check=t.OK)
        self.assertEqual(["[kernel.kallsyms]_text", "[kernel]"],
                         [row["name"] for row in ask("out.db", "SELECT name FROM named_frame ORDER BY frame")])


class Perf(Import):
    OURS = {"work", "inner", "middle", "outer", "run_threads", "main", "helper_inner", "helper_outer"}

    def perf(self, *options):
        perf = t.need_program("perf")
        done = subprocess.run([perf, "record", "-q", "-F", "199", "-e", "cpu-clock", "-o", "perf.data", *options, "--",
                               *t.fixture_command("native_only", "threads", "0.7")], capture_output=True, text=True, timeout=60)
        if done.returncode != 0 or not os.path.exists("perf.data"):
            raise unittest.SkipTest("perf record does not work here: " + done.stderr.strip())
        probing("import", "perf.data", check=t.OK)
        about = json.loads(probing("info", "--check", "--json", "perf.db", check=t.OK).stdout)[0]
        self.assertTrue(about["check"]["sound"], about)
        return perf

    def theirs(self, perf):
        """Stacks as perf script has them, of functions of the fixture alone, in order of time."""
        text = subprocess.run([perf, "script", "-i", "perf.data", "-F", "tid,time,ip,sym", "--no-inline"], capture_output=True, text=True,
                              check=True, timeout=60).stdout
        stacks = []
        for sample in text.strip().split("\n\n"):
            head, *frames = sample.splitlines()
            names = [frame.split()[1] for frame in frames if len(frame.split()) > 1]
            stacks.append((int(head.split()[0]), tuple(name for name in reversed(names) if name in self.OURS)))
        return stacks

    def ours(self):
        names = {None: ()}
        for row in ask("perf.db", "SELECT stack, parent, name FROM stack JOIN named_frame USING (frame) ORDER BY depth"):
            names[row["stack"]] = names[row["parent"]] + ((row["name"],) if row["name"] in self.OURS else ())
        return [(row["tid"], names[row["stack"]]) for row in ask("perf.db", "SELECT tid, stack FROM sample ORDER BY rowid")]

    @t.statistical("a sample may fall into a prologue, which the two unwind differently", 0.0002)
    def test_dwarf_stacks_are_those_of_perf_script(self):
        perf = self.perf("--call-graph", "dwarf,8192")
        theirs, ours = self.theirs(perf), self.ours()
        self.assertGreater(len(ours), 20)
        self.assertEqual(len(theirs), len(ours))
        same = sum(one == other for one, other in zip(theirs, ours))
        self.assertNearlyAll(same, len(ours), "stacks")
        self.assertIn(("run_threads", "outer", "middle", "inner", "work"), {stack[-5:] for _, stack in ours})

    def test_without_stacks(self):
        perf = self.perf()
        # perf names the function that holds the code, and we the one that was inlined there
        ours = ask("perf.db", """
            WITH RECURSIVE held(frame, holder) AS (
              SELECT frame, frame FROM frame WHERE inlined_into IS NULL
              UNION ALL SELECT frame.frame, holder FROM frame JOIN held ON frame.inlined_into = held.frame)
            SELECT name, count(*) AS n FROM sample JOIN stack USING (stack) JOIN held ON held.frame = stack.frame
            JOIN named_frame ON named_frame.frame = holder WHERE kind = 'native' GROUP BY name""")
        self.assertEqual(self.theirs_flat(perf), collections.Counter({row["name"]: row["n"] for row in ours if row["name"] in self.OURS}))

    def theirs_flat(self, perf):
        text = subprocess.run([perf, "script", "-i", "perf.data", "-F", "ip,sym"], capture_output=True, text=True, check=True,
                              timeout=60).stdout
        return collections.Counter(line.split()[1] for line in text.splitlines() if len(line.split()) > 1 and line.split()[1] in self.OURS)

    def test_time_is_that_of_the_clock(self):
        self.perf("-k", "CLOCK_MONOTONIC", "--call-graph", "fp")
        now = os.stat("perf.data").st_mtime
        first, = ask("perf.db", "SELECT min(timestamp) AS first, max(timestamp) AS last FROM sample")
        self.assertTrue(now - 30 < first["first"] < first["last"] < now + 1, (now, first))

    def test_by_hand(self):
        for name, n_frames in (("flat", 1), ("fp", 3)):
            with self.subTest(name):
                imported("perf/%s.data" % name)
                self.assertEqual([("env", 4711, 2), ("helper", 4712, 1)], [tuple(row.values()) for row in ask(
                    "out.db", "SELECT name, tid, (SELECT count(*) FROM sample WHERE sample.tid = thread.tid) AS n FROM thread")])
                self.assertEqual([{"t": 1700000000.000002, "depth": n_frames - 1}], ask(
                    "out.db", "SELECT round(timestamp, 6) AS t, depth FROM sample JOIN stack USING (stack) ORDER BY sample.rowid LIMIT 1"))


class Bombs(Import):
    """Small files that would become much. Each is refused with a reason, and takes bounded memory."""

    def refused(self, contents, *wanted, path="bomb", **more):
        if contents is not None:
            with open(path, "wb") as file:
                file.write(contents)
        more.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([t.BINARY, "import", path, "-o", "out.db", "-q"], stderr=subprocess.PIPE, text=True, **more)
        said = process.stderr.read()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(t.BAD_DATA, process.returncode, said)
        for words in wanted:
            self.assertIn(words, said)
        self.assertLess(usage.ru_maxrss, 1800 << 10, said)
        self.assertFalse(os.path.exists("out.db"))

    def test_packed(self):
        self.refused(gzip.compress(bytes(300 << 20), 9), "expand to more than 256 MiB", "gunzip")

    def test_tables_of_pprof(self):
        self.refused(gzip.compress(b"\x32\x00" * (20 << 20), 9), "more than 16777216 strings")

    def test_one_sample_of_pprof(self):
        self.refused(gzip.compress(b"\x0a\x04\x08\x01\x10\x02" + b"\x12\x84\x80\x40" + b"\x0a\x80\x80\x40" + b"\x01" * (1 << 20), 9),
                     "more than 65536 locations")

    def test_values_of_speedscope(self):
        self.refused(b'{"$schema":"https://www.speedscope.app/file-format-schema.json","x":[' + b"0," * (18 << 20) + b"0]}",
                     "more than 16777216 values")

    def test_values_of_pstats(self):
        self.refused(b"{(\x03\0\0\0NNN(" + struct.pack("<I", 18 << 20) + b"N" * (18 << 20) + b"0", "more than 16777216 values")

    def test_branches_of_nsys_that_are_the_same(self):
        with contextlib.closing(sqlite3.connect("bomb")) as db:
            db.execute("CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER)")
            db.executemany("INSERT INTO NVTX_EVENTS VALUES(?, ?, 59, ?, 1)", ((i, i + 1, "x" * 100) for i in range(300)))
            db.commit()
            root = db.execute("SELECT rootpage FROM sqlite_schema").fetchone()[0]
        with open("bomb", "rb") as file:
            contents = bytearray(file.read())
        size = struct.unpack_from(">H", contents, 16)[0]
        at = (root - 1) * size
        self.assertEqual(5, contents[at])  # an interior page of a table
        cells = struct.unpack_from(">%dH" % struct.unpack_from(">H", contents, at + 3)[0], contents, at + 12)
        for cell in cells:
            contents[at + cell:at + cell + 4] = contents[at + cells[0]:at + cells[0] + 4]
        self.refused(bytes(contents), "rows of NVTX_EVENTS come twice")

    def test_stdin_without_end(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        with open("/dev/zero", "rb") as zeros:
            self.refused(None, "stdin has more than 256 MiB", path="-", stdin=zeros, preexec_fn=limit)


class Files(Import):
    def test_what_is_none(self):
        with open("text.txt", "w") as file:
            file.write("hello\nworld\n")
        self.assertSentence(probing("import", "text.txt", check=t.BAD_DATA).stderr, "unrecognised format")
        self.assertSentence(probing("import", "none.txt", check=t.NO_INPUT).stderr, "none.txt")
        self.assertSentence(probing("import", ".", check=t.BAD_DATA).stderr, "no file of the format flight")  # the one of folders
        self.assertSentence(probing("import", "/dev/zero", check=t.NO_INPUT).stderr, "/dev/zero")
        probing("import", "text.txt", "--from", "nonsense", check=t.USAGE)
        self.assertEqual(["text.txt"], os.listdir("."))

    def test_nothing_is_replaced_unless_told_to(self):
        imported("folded/pyspy.folded")
        done = probing("import", given("nvprof/summary.nvprof"), "-o", "out.db", check=t.NO_OUTPUT)
        self.assertSentence(done.stderr, "out.db")
        self.assertEqual([], ask("out.db", "SELECT * FROM gpu_trace"))

    def test_stdin(self):
        with open(given("folded/pyspy.folded")) as file:
            probing("import", "-", "-o", "out.db", stdin=file, check=t.OK)
        self.assertEqual(120, folded("out.db")["<module> (train.py);train (train.py);forward (model.py)"])

    def test_stacks_do_not_go_into_a_recording(self):
        imported("folded/pyspy.folded")
        done = probing("import", given("pprof/small.pb"), "--into", "out.db", check=t.USAGE)
        self.assertSentence(done.stderr, "stacks of its own")

    def test_help_names_each_format(self):
        text = probing("import", "--help", check=t.OK).stdout
        for name in sorted(os.listdir(CORPUS)):
            if name.startswith("import_"):
                self.assertIn(name[len("import_"):], text)


if __name__ == "__main__":
    unittest.main()
