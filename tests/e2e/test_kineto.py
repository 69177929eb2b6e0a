# SPDX-License-Identifier: MIT
"""Traces of torch.profiler as recordings: of the torch that is installed, and with a GPU, in Kineto's form."""
import collections
import contextlib
import gzip
import json
import os
import sqlite3
import subprocess
import sys
import unittest

import probing_test as t
from probing_test import probing

sys.path.append(os.path.join(t.ROOT, "fuzz"))
import make_kineto_corpus as kineto

SAME_FOR_ALL_USERS = True

CORPUS = os.path.join(t.ROOT, "fuzz", "corpus", "import_kineto")
TRACES = os.path.join(t.ROOT, "fixtures", "traces")
TRAINING = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, record_function
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for with_stack in (False, True):
    with profile(activities=[ProfilerActivity.CPU], with_stack=with_stack, record_shapes=with_stack) as profiler:
        for _ in range(3):
            with record_function("forward_pass"):
                loss = model(torch.randn(16, 64)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()
    profiler.export_chrome_trace(sys.argv[1 + with_stack])
"""


def ask(path, sql):
    return json.loads(probing("sql", path, sql, "-f", "json", check=t.OK).stdout)


def folded(path, *more):
    lines = probing("export", path, "--to", "folded", "-o", "-", *more, check=t.OK).stdout.splitlines()
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}


class Kineto(t.Case):
    def setUp(self):
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def imported(self, path):
        done = probing("import", path, "-o", "out.db", "--force", check=t.OK)
        about = json.loads(probing("info", "--check", "--json", "out.db", check=t.OK).stdout)[0]
        self.assertTrue(about["check"]["sound"] and about["check"]["verified"], about)
        return done.stderr

    def test_tree_with_a_gpu(self):
        """Each moment of the host has one stack; a kernel is below the call that launched it."""
        self.assertIn("22 samples, 7 rows of GPUs (kineto)", self.imported(os.path.join(CORPUS, "small.json")))
        stacks = folded("out.db")
        step = "ProfilerStep;step (train.py)"
        mm = step + ";forward (train.py);<built-in method mm of type object>;aten::mm"
        self.assertEqual(300, stacks[step + ";data (train.py)"])
        self.assertEqual(190, stacks[mm])
        self.assertEqual(200, stacks[mm + ";cudaLaunchKernel;void gemm<float>(float const*, float*)"])
        self.assertEqual(1000 + 200 + 100 + 10, sum(stacks.values()))
        gpu = folded("out.db", "--threads=GPU 0 stream 7")
        self.assertEqual(310, sum(gpu.values()))
        self.assertEqual(["GPU 0 stream 7", "trainer"],
                         [row["name"] for row in ask("out.db", "SELECT name FROM thread ORDER BY name")])
        self.assertIn("gemm", probing("flamegraph", "out.db", "-o", "-", check=t.OK).stdout)

    def test_tables_with_a_gpu(self):
        self.imported(os.path.join(CORPUS, "small.json"))
        self.assertEqual([{"name": "relu_kernel(float*)", "stream": 7, "grid_x": 4, "device": "NVIDIA H100 80GB HBM3 (0)"}],
                         ask("out.db", "SELECT name, stream, grid_x, device FROM gpu.kernels WHERE duration_ns = 100000"))
        self.assertEqual([{"kind": "DtoH", "bytes": 4096, "source": "Device", "destination": "Pinned"}],
                         ask("out.db", "SELECT kind, bytes, source, destination FROM gpu.memcpy"))
        self.assertEqual([20000, 20000], [row["delay_ns"] for row in ask("out.db", "SELECT delay_ns FROM gpu.launches")])
        self.assertEqual([{"name": "aten::mm", "self_ns": 190000, "gpu_ns": 200000, "step": 1, "sequence": 9,
                           "python": "train.py(3): forward", "shapes": "[[64,64],[64,64]]"}],
                         ask("out.db", "SELECT name, self_ns, gpu_ns, step, sequence, python, shapes FROM torch.ops "
                                       "WHERE name = 'aten::mm'"))
        self.assertEqual([{"number": 1, "duration_ns": 1000000, "gpu_busy_ns": 310000}],
                         ask("out.db", "SELECT number, duration_ns, gpu_busy_ns FROM torch.steps"))
        self.assertEqual([{"bytes": 16384, "device": "cuda:0", "op": "aten::mm"}],
                         ask("out.db", "SELECT bytes, device, op FROM torch.memory"))
        self.assertEqual([{"started": kineto.BASE_NS / 1e9, "format": "kineto"}],
                         ask("out.db", "SELECT started, format FROM gpu_trace"))

    def test_idle_time_of_a_gpu(self):
        """Gaps are what is left of the trace; each belongs to what the launching thread did until the launch."""
        self.imported(os.path.join(CORPUS, "small.json"))
        self.assertEqual([{"start_ns": 0, "gap_ns": 220000}, {"start_ns": 420000, "gap_ns": 310000},
                          {"start_ns": 840000, "gap_ns": 160000}],
                         ask("out.db", "SELECT start_ns, gap_ns FROM gpu.idle GROUP BY start_ns HAVING sum(duration_ns) = gap_ns"))
        self.assertEqual([{"function": "train.py(7): data", "us": 280}, {"function": "aten::relu", "us": 10},
                          {"function": "cudaLaunchKernel", "us": 20}],
                         ask("out.db", "SELECT function, duration_ns / 1000 AS us FROM gpu.idle WHERE start_ns = 420000"))
        self.imported(os.path.join(CORPUS, "gap_without_launch.json"))
        self.assertEqual([{"function": None, "tid": None, "us": 220}], ask(
            "out.db", "SELECT function, tid, duration_ns / 1000 AS us FROM gpu.idle WHERE start_ns = 0"))

    def test_report(self):
        """What GPUs did, how long kernels waited, and what GPUs waited for; in text and in JSON."""
        self.imported(os.path.join(CORPUS, "small.json"))
        text = probing("report", "out.db", check=t.OK).stdout
        self.assertIn("GPU NVIDIA H100 80GB HBM3 (0): busy 31.0 % (310 us), idle 69.0 % (690 us) of 1 ms; 2 kernels, 1 copy\n", text)
        self.assertIn("From launch to start of 2 kernels: median 20 us, 90 % within 20 us, longest 20 us", text)
        self.assertRegex(text, r"(?m)^ 64\.5 +200 us +1 void gemm")
        self.assertRegex(text, r"(?m)^ +40\.6 +280 us +1 train\.py\(7\): data$")
        self.assertRegex(text, r"(?m)^ +7\.2 +50 us +1 aten::mm  in train\.py\(3\): forward$")
        gpu = json.loads(probing("report", "--json", "out.db", check=t.OK).stdout)["gpu"]
        self.assertEqual([{"name": "NVIDIA H100 80GB HBM3 (0)", "busy_ns": 310000, "idle_ns": 690000, "kernels": 2, "copies": 1}],
                         gpu["devices"])
        self.assertEqual((2, 20000), (gpu["launch_to_start"]["count"], gpu["launch_to_start"]["median_ns"]))
        self.assertEqual({"function": "train.py(7): data", "python": "train.py(7): data", "launched": False, "ns": 280000,
                          "share": 40.58, "count": 1}, gpu["idle"][0])
        self.assertEqual([200000, 100000, 10000], [row["ns"] for row in gpu["work"]])
        for more in (["--by", "line"], ["--threads=trainer"]):  # of a part there is no section
            self.assertNotIn("busy", probing("report", "out.db", *more, check=t.OK).stdout)

    def test_report_of_odd_numbers(self):
        """Many calls of one correlation, as 0; and times of a foreign recording that 64 bits cannot add up."""
        with open("odd.json", "w") as file:
            json.dump(kineto.trace(traceEvents=[
                {"ph": "X", "cat": category, "name": category, "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5,
                 "args": {"correlation": 0, "device": 0, "stream": 7}}
                for i in range(3) for category in ("cuda_runtime", "kernel")]), file)
        self.imported("odd.json")
        self.assertIn("From launch to start of 3 kernels", probing("report", "out.db", check=t.OK).stdout)
        for table in ("gpu_kernel", "gpu_idle"):
            with contextlib.closing(sqlite3.connect("out.db")) as db:
                db.execute("UPDATE %s SET duration_ns = 9e18" % table)
                db.commit()
            self.assertIn("3 kernels, 0 copies", probing("report", "out.db", check=t.OK).stdout)

    def test_other_forms_say_the_same(self):
        """Compressed; and times since 1970, as before torch 2.3."""
        self.imported(os.path.join(CORPUS, "small.json"))
        stacks = folded("out.db")
        for name in ("small.json.gz", "epoch.json"):
            self.imported(os.path.join(CORPUS, name))
            self.assertEqual(stacks, folded("out.db"), name)
            self.assertEqual(kineto.BASE_NS / 1e9, ask("out.db", "SELECT started FROM gpu_trace")[0]["started"])

    def test_of_torch(self):
        """What the installed torch writes, with and without stacks, against the file itself."""
        if not t.has_modules(t.DEBIAN_PYTHON, "torch"):
            self.skipTest("no torch for %s" % t.DEBIAN_PYTHON)
        subprocess.run([t.DEBIAN_PYTHON, "-c", TRAINING, "plain.json", "stacks.json"], check=True, stderr=subprocess.DEVNULL,
                       timeout=300)
        for name in ("plain.json", "stacks.json"):
            self.imported(name)
            with open(name) as file:
                trace = json.load(file)
            events = [one for one in (trace["traceEvents"] if isinstance(trace, dict) else trace)
                      if one["ph"] == "X" and one.get("cat", "cpu_op") in ("cpu_op", "user_annotation")]
            self.assertGreater(len(events), 100)
            names = collections.Counter(one["name"] for one in events)
            rows = ask("out.db", "SELECT name, count(*) AS n, sum(duration_ns) AS total, sum(self_ns) AS self FROM torch.ops GROUP BY name")
            self.assertEqual(names, collections.Counter({row["name"]: row["n"] for row in rows}))
            # Of events that do not nest within another of the same thread, the whole is the time of the tree.
            covered, last = 0, collections.defaultdict(lambda: float("-inf"))
            for one in sorted(events, key=lambda one: one["ts"]):
                end = one["ts"] + one["dur"]
                covered += max(0, end - max(one["ts"], last[one["tid"]]))
                last[one["tid"]] = max(last[one["tid"]], end)
            self.assertAlmostEqual(covered * 1000, sum(row["self"] for row in rows), delta=covered * 10)  # 1 %: what rounding lets overlap is cut
            self.assertTrue(any("aten::addmm" in stack and "forward_pass" in stack for stack in folded("out.db")))

    def test_of_torch_2_with_stacks(self):
        """A trace that fixtures/kineto_cuda.py --stack wrote with torch 2.14: Python functions around operations, steps, memory."""
        path = os.path.join(TRACES, "torch-2.14-cpu-stack.json.gz")
        self.imported(path)
        with gzip.open(path, "rt") as file:
            events = json.load(file)["traceEvents"]
        stacks = folded("out.db")
        self.assertTrue(any(stack.startswith("<module> (kineto_cuda.py);main (kineto_cuda.py);trace (kineto_cuda.py);ProfilerStep;"
                                             "train (kineto_cuda.py);nn.Module: Sequential_0;_call_impl (module.py)")
                            and stack.endswith(";aten::addmm") for stack in stacks), "\n".join(stacks))
        sleep, = [stack for stack in stacks if stack.endswith("<built-in function sleep>")]
        self.assertTrue(sleep.endswith("load;load (kineto_cuda.py);<built-in function sleep>"), sleep)
        slept = sum(one["dur"] for one in events if one["ph"] == "X" and one["name"] == "<built-in function sleep>")
        self.assertAlmostEqual(slept, stacks[sleep], delta=2)
        whole = max(one["dur"] for one in events if one["ph"] == "X" and one.get("cat") == "python_function")
        self.assertAlmostEqual(whole, sum(stacks.values()), delta=len(stacks))
        steps = {int(one["name"].split("#")[1]): one["dur"] for one in events if one["name"].startswith("ProfilerStep#")}
        self.assertEqual(steps, {row["number"]: row["duration_ns"] / 1e3 for row in
                                 ask("out.db", "SELECT number, duration_ns FROM torch.steps")})
        self.assertEqual([{"python": "torch/nn/modules/linear.py(130): forward", "n": 4}],
                         ask("out.db", "SELECT python, count(*) AS n FROM torch.ops WHERE name = 'aten::linear' GROUP BY 1"))
        self.assertEqual([{"n": sum(one["name"] == "[memory]" for one in events), "live": max(
            one["args"]["Total Allocated"] for one in events if one["name"] == "[memory]")}],
            ask("out.db", "SELECT count(*) AS n, max(allocated_bytes) AS live FROM torch.memory"))

    def test_of_a_gpu(self):
        """Traces that fixtures/kineto_cuda.py wrote with torch 2.11 on an H100: sums against the file itself."""
        for name in ("torch-2.11-cuda.json.gz", "torch-2.11-cuda-stack.json.gz"):
            path = os.path.join(TRACES, name)
            self.imported(path)
            with gzip.open(path, "rt") as file:
                events = [one for one in json.load(file)["traceEvents"] if one["ph"] == "X"]
            work = sorted((one["ts"], one["ts"] + one["dur"]) for one in events
                          if one["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"))
            busy, last = 0, float("-inf")
            for begin, end in work:
                busy += max(0, end - max(begin, last))
                last = max(last, end)
            kernels = [one for one in events if one["cat"] == "kernel"]
            calls = {one["args"]["correlation"]: one for one in events if one["cat"] in ("cuda_runtime", "cuda_driver")
                     and "correlation" in one["args"]}
            delays = sorted(one["ts"] - calls[one["args"]["correlation"]]["ts"] for one in kernels)
            gpu = json.loads(probing("report", "--json", "out.db", check=t.OK).stdout)["gpu"]
            device, = gpu["devices"]
            self.assertEqual(("NVIDIA H100 80GB HBM3 (0)", len(kernels), len(work) - len(kernels)),
                             (device["name"], device["kernels"], device["copies"]))
            self.assertAlmostEqual(busy * 1000, device["busy_ns"], delta=len(work))
            run, = ask("out.db", "SELECT max(start_ns + duration_ns) - min(start_ns) AS ns FROM (SELECT start_ns, duration_ns FROM "
                                 "torch.ops UNION ALL SELECT start_ns, duration_ns FROM gpu.api_calls)")
            self.assertGreater(device["busy_ns"] + device["idle_ns"], run["ns"] * 0.99)
            self.assertEqual(len(delays), gpu["launch_to_start"]["count"])
            self.assertAlmostEqual(delays[(len(delays) - 1) // 2] * 1000, gpu["launch_to_start"]["median_ns"], delta=2)
            self.assertAlmostEqual(delays[-1] * 1000, gpu["launch_to_start"]["longest_ns"], delta=2)
            by_name = collections.Counter()
            for one in kernels:
                by_name[one["name"]] += one["dur"] * 1000
            self.assertAlmostEqual(by_name.most_common(1)[0][1], gpu["work"][0]["ns"], delta=len(kernels))
            self.assertEqual(by_name.most_common(1)[0][0], gpu["work"][0]["name"])
            # load() sleeps in each step: that is what the GPU waited for most.
            self.assertEqual("<built-in function sleep>" if "stack" in name else "load", gpu["idle"][0]["function"])
            self.assertGreater(gpu["idle"][0]["ns"], 3e6 * len(ask("out.db", "SELECT 1 FROM torch.steps")) - 1e5)
            self.assertTrue(any(stack.startswith("ProfilerStep;") if "stack" not in name else ";forward (linear.py);" in stack
                                for stack in folded("out.db", "--threads=GPU 0 stream 7")))
            self.assertAlmostEqual(sum(one["dur"] for one in kernels) * 1000,
                                   ask("out.db", "SELECT sum(duration_ns) AS ns FROM gpu.kernels")[0]["ns"], delta=len(kernels))

    def refused(self, contents, *wanted, name="bad.json"):
        with open(name, "wb") as file:
            file.write(contents)
        done = probing("import", name, "-o", "bad.db", "--from", "kineto", check=t.BAD_DATA)
        for words in wanted:
            self.assertIn(words, done.stderr)
        self.assertFalse(os.path.exists("bad.db"))

    def test_bad_files(self):
        small = json.dumps(kineto.trace()).encode()
        self.refused(small[:len(small) // 2], "ends within an event", "did not finish writing it")
        self.refused(gzip.compress(small)[:-200], "cannot be decompressed", name="bad.json.gz")
        self.refused(json.dumps(kineto.trace(traceEvents={})).encode(), "no list traceEvents")
        self.refused(json.dumps(kineto.trace(traceEvents=[])).encode(), "no measurements")
        self.refused(b'{"traceEvents": [nonsense]}', "an event is not JSON")
        self.refused(json.dumps([{"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": ts, "dur": 1 + abs(ts)}
                                 for ts in (-3900000000000000, 3900000000000000)]).encode(), "decades apart")
        self.refused(b'{"traceEvents": [' + b"[" * 200000 + b"]" * 200000 + b"]}", "not JSON")
        self.refused(gzip.compress(b'{"traceEvents": [' + b" " * (300 << 20)), "expand to more than 256 MiB", name="bomb.json.gz")
        for event in ({"ts": "soon"}, {"ts": 1e300}, {"dur": -1}, {"tid": -5}, {"name": 7}):
            with open("odd.json", "w") as file:
                json.dump(kineto.changed("train.py(7): data", **event), file)
            self.assertIn("1 entry of odd.json could not be parsed", self.imported("odd.json"))

    def test_many_events(self):
        with open("many.json", "w") as file:
            file.write('{"traceEvents": [')
            for i in range(200000):
                file.write('%s{"ph": "X", "cat": "cpu_op", "name": "op%d", "pid": 1, "tid": %d, "ts": %d, "dur": 2}'
                           % ("," if i else "", i % 100, i % 3, i))
            file.write("]}")
        self.assertIn("(kineto)", self.imported("many.json"))
        self.assertEqual([{"n": 200000, "ns": 400000000}], ask("out.db", "SELECT count(*) AS n, sum(self_ns) AS ns FROM torch.ops"))

    def test_merged(self):
        """Rows of two traces stay apart."""
        self.imported(os.path.join(CORPUS, "small.json"))
        probing("merge", "out.db", "out.db", "-o", "two.db", check=t.OK)
        self.assertEqual([{"trace": 1, "n": 3}, {"trace": 2, "n": 3}],
                         ask("two.db", "SELECT trace, count(*) AS n FROM torch.ops GROUP BY trace"))
        self.assertEqual([{"n": 4}], ask("two.db", "SELECT count(*) AS n FROM gpu.launches"))


if __name__ == "__main__":
    unittest.main()
