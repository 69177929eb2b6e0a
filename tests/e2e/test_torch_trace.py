# SPDX-License-Identifier: MIT
"""Rows of torch's modules, optimizers and data loaders: what they say, and that the training computes the same with them."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

import probing_test as p
import test_exports
from test_agent import LIBRARY
from test_start import StartCase

AS_TYPED = "SELECT module, COUNT(*), AVG(duration), MAX(allocated) FROM python.torch_trace GROUP BY module"
CASES = os.path.join(p.ROOT, "fixtures", "torch_cases.py")
RESNET = """
import sys, torch, torchvision
torch.manual_seed(0)
model = torchvision.models.resnet18()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.randn(8, 3, 32, 32), torch.randint(0, 1000, (8,)))
def steps(n):
    for i in range(n):
        for images, target in torch.utils.data.DataLoader(data, batch_size=2):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), target).backward()
            optimizer.step()
steps(1)
print("ready {}", flush=True)
for line in sys.stdin:
    steps(1)
    print("done", flush=True)
"""


class TorchCase(StartCase):
    """Programs with the start hook, and a folder of their own for rings."""
    rings = None
    ready_s = 120  # they import torch, on a busy machine: only a program that hangs takes so long

    def setUp(self):
        super().setUp()
        if not p.has_modules(self.python, "torch", "torchvision"):
            self.skipTest("torch and torchvision are not installed for " + self.python)
        self.rings = self.rings or self.folder
        os.chmod(self.folder, 0o700)

    def environment(self, **more):
        return super().environment(PROBING_DATA_DIR=self.rings, **more)

    def sql(self, pid, query):
        done = p.probing("sql", pid, query, "-f", "json", check=p.OK, env=self.environment())
        return [list(row.values()) for row in json.loads(done.stdout)]


class Resnet(TorchCase):
    """One program that trains, for all tests of it."""

    @classmethod
    def setUpClass(cls):
        cls.process, cls.rings = None, tempfile.mkdtemp()

    @classmethod
    def tearDownClass(cls):
        if cls.process is not None:
            cls.process.kill()
            cls.process.communicate()
        shutil.rmtree(cls.rings)

    def setUp(self):
        super().setUp()
        if self.process is None:
            environment = self.environment(PROBING="1", PROBING_TORCH_PROFILING="on")
            type(self).process = subprocess.Popen([self.python, "-c", RESNET], env=environment, text=True, cwd=self.rings,
                                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            p.await_ready(self.process, self.ready_s)
        self.pid = self.process.pid

    def test_as_typed(self):
        done = p.probing(self.pid, AS_TYPED, check=p.OK, env=self.environment())
        self.assertRegex(done.stdout, r"(?m)^layer3\.0\.conv2 +8 ")
        self.assertRegex(done.stdout, r"(?m)^DataLoader +\d+ ")
        self.assertRegex(done.stdout, r"(?m)^SGD +\d+ ")

    def test_each_module_forward_and_backward(self):
        names = subprocess.run([self.python, "-c", "import torchvision\nfor name, module in torchvision.models.resnet18()."
                                "named_modules(): print(name or 'ResNet', type(module).__name__)"], check=True, text=True,
                               capture_output=True).stdout.split("\n")[:-1]
        self.assertEqual(68, len(names))
        for stage in ("forward", "backward"):
            found = self.sql(self.pid, "SELECT module || ' ' || operation_name, count(*) FROM torch_trace WHERE stage = '%s' AND step = 1 "
                             "GROUP BY 1" % stage)
            self.assertEqual(sorted(names), sorted(name for name, _ in found))
            twice = {name.split()[0] for name, n in found if n == 2}  # each block uses its ReLU twice
            self.assertEqual({"layer%d.%d.relu" % (layer, block) for layer in range(1, 5) for block in (0, 1)}, twice)

    def test_times_add_up(self):
        """Children lie within their parent, and follow each other; the whole takes no longer than the step."""
        for stage in ("forward", "backward"):
            rows = self.sql(self.pid, "SELECT sum(duration) FILTER (WHERE module = 'ResNet'), sum(duration) FILTER (WHERE module IN "
                            "('conv1', 'bn1', 'relu', 'maxpool', 'layer1', 'layer2', 'layer3', 'layer4', 'avgpool', 'fc')) "
                            "FROM torch_trace WHERE stage = '%s' GROUP BY step" % stage)
            self.assertEqual(4, len(rows))
            for whole, parts in rows:
                self.assertLess(parts, whole * 1.001)
            # The program may be stopped between two children, for longer than the step takes: not in each step.
            self.assertGreater(max(parts / whole for whole, parts in rows), 0.5, rows)
        bad = self.sql(self.pid, "SELECT a.module, a.step FROM torch_trace a JOIN torch_trace b ON a.step = b.step AND a.stage = b.stage "
                       "AND b.module = 'layer3' AND a.module LIKE 'layer3.%' WHERE a.time_offset < b.time_offset - 1e-6 OR "
                       "a.time_offset + a.duration > b.time_offset + b.duration + 1e-6")
        self.assertEqual([], bad)

    def test_self_times(self):
        """The query of docs/torch.md: what modules take themselves adds up to the model's total."""
        with open(os.path.join(p.ROOT, "docs", "torch.md")) as file:
            query = file.read().split("```sql\n")[1].split("```")[0].replace("LIMIT 20", "")
        rows = self.sql(self.pid, query)
        for stage in ("forward", "backward"):
            (total,), whole = [row[4] for row in rows if row[0] == "ResNet" and row[2] == stage], sum(
                row[5] for row in rows if row[1] != "CrossEntropyLoss" and row[2] == stage)
            self.assertAlmostEqual(total, whole, delta=total * 0.001)
            self.assertEqual(68, len([row for row in rows if row[1] != "CrossEntropyLoss" and row[2] == stage]))

    def test_report(self):
        """report --by torch of the running process: all modules, whose self times add up to the model's time."""
        done = p.probing("report", self.pid, "--by", "torch", "--json", "-n", "100", check=p.OK, env=self.environment())
        report = json.loads(done.stdout)
        rows = {row["name"]: row for row in report["rows"]}
        modules = [row for row in report["rows"] if row["sort"] == "module"]
        self.assertEqual((68, 4, 0), (len(modules), report["steps"], report["left_out"]))
        self.assertEqual({"SGD": "optimizer", "DataLoader": "data"}, {row["name"]: row["sort"] for row in rows.values()
                                                                     if row["sort"] != "module"})
        self.assertEqual(["layer3.0", "layer3", "ResNet", None], [rows[name]["parent"] for name in (
            "layer3.0.conv2", "layer3.0", "layer3", "ResNet")])
        for stage in ("forward", "backward"):
            whole = rows["ResNet"][stage]["total"]
            self.assertAlmostEqual(whole, sum(row[stage]["self"] for row in modules), delta=whole * 0.01)
        self.assertLess(sum(row["total_share"] for row in rows.values() if row["parent"] is None), 100.1)
        text = p.probing("report", self.pid, "--by", "torch", check=p.OK, env=self.environment()).stdout
        self.assertRegex(text, r"(?m)^ *[\d.]+ .* 4 +ResNet$")
        self.assertRegex(text, r"(?m)   layer3 \(Sequential\)$")
        self.assertRegex(text, r"(?m)\[optimizer\] SGD$")
        self.assertRegex(text, r"\(48 more\)\n$")

    def test_columns(self):
        row = self.sql(self.pid, "SELECT typeof(timestamp), step, seq, stage, coalesce(allocated, allocated_before), time_offset > 0, duration_ms / duration, local_step, "
                       "global_step, rank FROM torch_trace WHERE module = 'SGD' AND step = 1")[0]
        self.assertEqual(["real", 1, "step", None, 1, 1, None, 0], row[:2] + row[3:6] + row[7:])
        self.assertAlmostEqual(1000, row[6], delta=0.001)
        self.assertEqual([[0]], self.sql(self.pid, "SELECT count(*) - count(DISTINCT seq) FROM torch_trace WHERE step = 1"))
        self.assertEqual([["TensorDataset", "data"]], self.sql(
            self.pid, "SELECT DISTINCT operation_name, stage FROM torch_trace WHERE module = 'DataLoader'"))


# As transformers and accelerate do: the spec first, perhaps a module in vain, then the import.
LOOKS_FIRST = """
import importlib.util, sys
assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch")
import torch
from probing import _torch
print(_torch._trace is not None and _torch._trace.is_on, _torch._Finder in sys.meta_path, "exec_module" in vars(torch.__loader__))
"""


class Imported(TorchCase):
    def test_its_spec_was_asked_for_before(self):
        done = subprocess.run([self.python, "-c", LOOKS_FIRST], text=True, capture_output=True, timeout=2 * self.ready_s,
                              env=self.environment(PROBING="1", PROBING_TORCH_PROFILING="on"))
        self.assertEqual("True False False\n", done.stdout, done.stderr)


NESTED = """
import time, torch
def wait(seconds):
    time.sleep(seconds)
def burn(seconds):  # of CPU time: there are as many samples of it on a busy machine
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
class Leaf(torch.nn.Module):
    def __init__(self, work, seconds):
        super().__init__()
        self.work, self.seconds, self.weight = work, seconds, torch.nn.Parameter(torch.ones(1))
    def forward(self, x):
        self.work(self.seconds)
        return x * self.weight
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Leaf(wait, 0.02), Leaf(wait, 0.04)
    def forward(self, x):
        time.sleep(0.03)
        return self.second(self.first(x))
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x + 1
    @staticmethod
    def backward(context, gradient):
        burn(0.05)
        return gradient
class Tail(torch.nn.Module):
    def forward(self, x):
        return Slow.apply(x)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.head, self.tail = Block(), Leaf(burn, 0.1), Tail()
    def forward(self, x):
        return self.tail(self.head(self.block(x)))
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(10):
    optimizer.zero_grad()
    net(torch.ones(2, requires_grad=True)).sum().backward()
    optimizer.step()
"""


class KeptCase(TorchCase):
    """One recording, which the first test makes, for all tests of a class."""
    file = None

    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.mkdtemp()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.kept)


class Recorded(KeptCase):
    """A recording of modules within modules, whose times are known."""
    def setUp(self):
        super().setUp()
        if self.file is not None:
            return
        type(self).file = os.path.join(self.kept, "nested.db")
        script = self.write("nested.py", NESTED)
        p.probing("record", "-q", "-F", "200", "-o", self.file, "--", self.python, script, check=p.OK, timeout=300,
                  env=self.environment(PROBING="1", PROBING_TORCH_PROFILING="on", OMP_NUM_THREADS="1"))

    def test_recording(self):
        report = json.loads(p.probing("report", "--by", "torch", "--json", self.file, check=p.OK).stdout)
        rows = {row["name"]: row for row in report["rows"]}
        self.assertEqual(["Net", "block", "block.first", "block.second", "head", "tail", "SGD"], sorted(rows, key=lambda name: (
            rows[name]["sort"], name)))
        for name, self_ms, total_ms in (("Net", 0, 1900), ("block", 300, 900), ("block.first", 200, 200), ("block.second", 400, 400),
                                        ("head", 1000, 1000)):
            row = rows[name]
            self.assertEqual((10, 10), (row["calls"], row["backward"]["calls"]))
            self.assertGreaterEqual(row["forward"]["total"] / 1e6, total_ms)
            self.assertGreaterEqual(row["forward"]["self"] / 1e6, self_ms)
            inner = sum(one["total"] for one in rows.values() if one["parent"] == name)
            self.assertAlmostEqual(row["total"], row["self"] + inner, delta=row["total"] * 0.01)
        self.assertGreaterEqual(rows["tail"]["backward"]["self"] / 1e6, 500)
        self.assertLess(rows["Net"]["self_share"], 10)
        self.assertGreater(rows["Net"]["total_share"], 90)
        some = p.probing("report", "--by", "torch", "--until", "2020-01-01 00:00", self.file, check=p.NO_INPUT)
        self.assertIn("no passes of torch's modules", some.stderr)
        none = p.probing("report", "--by", "torch", os.getpid(), check=p.NO_INPUT)
        self.assertIn("'probing config %d probing.torch.profiling=on'" % os.getpid(), none.stderr)
        self.assertIn("filter by --pid, --since and --until only", p.probing("report", "--by", "torch", "--gil", self.file, check=p.USAGE).stderr)
        self.assertIn("--by torch shows the modules of torch", p.probing("report", "--by", "module", self.file, check=p.OK).stderr)


    def test_samples_below_modules(self):
        """Stacks of a function are below the module that calls it, forward and backward, in the share of its time."""
        folded = p.probing("flamegraph", self.file, "--by", "torch", "--format", "folded", "--no-native", "-o", "-", check=p.OK).stdout
        burnt = {}
        for line in folded.splitlines():
            stack, weight = line.rsplit(" ", 1)
            if "burn (nested.py)" in stack:
                group = stack.split(";")[0]
                burnt[group] = burnt.get(group, 0) + int(weight)
        whole = sum(burnt.values())
        self.assertGreater(burnt["head forward"], 0)
        self.assertAlmostEqual(whole, burnt["head forward"] + burnt["tail backward"], delta=0.05 * whole)
        # 100 ms and 50 ms. Of 300 samples, 200 Hz in 1.5 s of CPU time, the share would have a standard error of 0.027 if each of
        # them fell at random; they follow each other at equal intervals.
        self.assertAlmostEqual(2 / 3, burnt["head forward"] / whole, delta=0.12)
        self.assertIn("[no torch module];", folded)
        sums = {(module, stage): ms for module, stage, ms in (row.values() for row in json.loads(p.probing(
            "sql", self.file, "SELECT torch_module, torch_stage, sum(weight) FROM sample_function WHERE tid = pid GROUP BY 1, 2", "-f", "json",
            check=p.OK).stdout))}
        self.assertGreaterEqual(sums["head", "forward"], burnt["head forward"])
        self.assertGreaterEqual(sums["tail", "backward"], burnt["tail backward"])
        self.assertLess(sums.get(("block.second", "forward"), 0), 0.1 * sums["head", "forward"])  # it sleeps
        self.assertEqual(json.loads(p.probing("sql", self.file, "SELECT sum(weight) AS w FROM sample WHERE tid = pid", "-f", "json",
                                              check=p.OK).stdout)[0]["w"], sum(sums.values()))
        through = p.probing("flamegraph", self.file, "--by", "torch", "--function", "Leaf.forward", "--format", "folded", "-o", "-", check=p.OK)
        self.assertRegex(through.stdout, r"(?m)^head forward;Leaf\.forward \(nested\.py\);burn \(nested\.py\)")
        groups = {}
        for verb, by in (("export", "stage"), ("export", "module"), ("flamegraph", "stage")):
            option = ["--to" if verb == "export" else "--format", "folded"]
            for line in p.probing(verb, self.file, "--by", by, *option, "--no-native", "-o", "-", check=p.OK).stdout.splitlines():
                group = line.split(";")[0].rsplit(" ", 1)[0] if ";" not in line else line.split(";")[0]
                groups.setdefault((verb, by), {}).setdefault(group, 0)
                groups[verb, by][group] += int(line.rsplit(" ", 1)[1])
        self.assertEqual({"forward", "backward", "[no torch module]"},
                         set(groups["export", "stage"]) - {"[not sampled]", "step"})  # an optimizer's is short
        self.assertEqual(groups["export", "stage"], groups["flamegraph", "stage"])
        self.assertLessEqual({"head", "tail", "[no torch module]"}, set(groups["export", "module"]))
        whole = sum(groups["export", "stage"].values())
        self.assertAlmostEqual(whole, sum(groups["export", "module"].values()), delta=whole * 0.01)
        head = sums["head", "forward"] + sums.get(("head", "backward"), 0)
        self.assertAlmostEqual(head, groups["export", "module"]["head"] * 1000, delta=head * 0.01)  # microseconds of each stack
        self.assertIn("does not group", p.probing("export", self.file, "--by", "stage", "--to", "chrome", "-o", "-", check=p.USAGE).stderr)
        self.assertIn("does not group", p.probing("flamegraph", self.file, "--by", "torch", "-f", "gecko", "-o", "-", check=p.USAGE).stderr)


# Steps, spans, modules, communication, memory: what a timeline shows beside stacks.
TRACKS = """
import sys, time, torch, torch.distributed as distributed, probing
distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(10, 14):
    probing.step(i)
    with probing.span("epoch"):
        with probing.span("load \\"quoted\\""):
            time.sleep(0.1)
        until = time.thread_time() + 0.5
        while time.thread_time() < until:
            model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        distributed.all_reduce(torch.ones(4))
distributed.destroy_process_group()  # ends the threads of gloo
probing.span("open").__enter__()
time.sleep(0.3)
"""


class Tracks(KeptCase):
    """export --to chrome: each row of the recording is a slice, or a value of a counter, at its time."""
    def setUp(self):
        super().setUp()
        if self.file is not None:
            return
        type(self).file = os.path.join(self.kept, "tracks.db")
        p.probing("record", "-q", "-F", "200", "-o", self.file, "--", self.python, self.write("tracks.py", TRACKS),
                  os.path.join(self.folder, "store"), check=p.OK, timeout=300,
                  env=self.environment(PROBING="1", PROBING_TORCH_PROFILING="on", OMP_NUM_THREADS="1"))

    def export(self, *options):
        out = os.path.join(self.kept, "tracks.trace.json")
        p.probing("export", self.file, "--to", "chrome", "-q", *options, "-o", out, check=p.OK)
        return out

    def test_perfetto(self):
        """Perfetto's own reader counts no error, and has all slices and values."""
        out = self.export()
        with open(out) as opened:
            kinds = [one["ph"] for one in json.load(opened)["traceEvents"]]
        self.assertEqual([], test_exports.ask_perfetto(out, test_exports.PERFETTO_ERRORS))
        self.assertEqual([[str(kinds.count("X"))]], test_exports.ask_perfetto(out, "SELECT count(*) FROM slice"))
        self.assertEqual([[str(kinds.count("C"))]], test_exports.ask_perfetto(out, "SELECT count(*) FROM counter"))

    def test_timeline(self):
        """Modules, communication and steps are lanes of the timeline, with all their rows."""
        lanes = json.loads(p.probing("timeline", self.file, check=p.OK).stdout)["events"]
        for kind, condition in (("torch modules", "torch_trace WHERE host_ms IS NOT NULL"), ("communication", "comm_metrics WHERE latency_ms IS NOT NULL"),
                                ("steps", "steps")):
            (row,) = json.loads(p.probing("sql", self.file, "SELECT count(*) AS n FROM " + condition, "-f", "json", check=p.OK).stdout)
            self.assertGreater(row["n"], 0, kind)
            self.assertEqual(row["n"], sum(lane["events"] for lane in lanes if lane["kind"] == kind), kind)

    def test_chrome(self):
        file = self.file
        with open(self.export()) as opened:
            events = json.load(opened)["traceEvents"]
        rows = lambda sql: [list(row.values()) for row in json.loads(p.probing("sql", file, sql, "-f", "json", check=p.OK).stdout)]
        names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["ph"] == "M" and one["name"] == "thread_name"}
        (pid,), = rows("SELECT DISTINCT process FROM steps")
        tracks, ends = {}, {}
        for one in events:
            if one["ph"] == "X" and one["tid"] >= 1 << 30:
                self.assertEqual((pid, 0, 0), (one["pid"], one["ts"] * 8 % 1, one["dur"] * 8 % 1))
                self.assertGreater(one["dur"], 0)
                around = ends.setdefault(one["tid"], [])
                while around and around[-1] < one["ts"]:
                    around.pop()
                self.assertLessEqual(one["ts"] + one["dur"], around[-1] if around else float("inf"), "slices of a track nest")
                around.append(one["ts"] + one["dur"])
                tracks.setdefault(names[pid, one["tid"]], []).append(one)
        self.assertEqual({"step", "torch step", "torch of thread %d" % pid, "span of thread %d" % pid, "communication"}, set(tracks))
        self.assertEqual(["step 10", "step 11", "step 12", "step 13"], [one["name"] for one in tracks["step"]])
        took = [one["dur"] / 1e3 for one in tracks["step"]]  # the last one goes on to the end
        begins = [one for one, in rows("SELECT time_ns FROM steps ORDER BY step")]
        for begin, end, shown in zip(begins, begins[1:], took):
            self.assertAlmostEqual((end - begin) / 1e6, shown, delta=0.001)
        self.assertGreater(took[3], 600)
        for stage in "forward", "backward":
            shown = [one["dur"] for one in tracks["torch of thread %d" % pid] if one["name"] == "0 " + stage]
            (n, ms), = rows("SELECT count(*), sum(host_ms) FROM torch_trace WHERE module = '0' AND stage = '%s'" % stage)
            self.assertEqual(n, len(shown))
            self.assertAlmostEqual(ms * 1e3, sum(shown), delta=n * 0.375)
        spans = tracks["span of thread %d" % pid]
        self.assertEqual(4 * ["epoch", 'load "quoted"'] + ["open"], [one["name"] for one in spans])
        self.assertGreater(spans[-1]["dur"], 0.25e6)
        for around, load in zip(spans[:8:2], spans[1:8:2]):
            self.assertGreaterEqual(load["dur"], 0.1e6)
            self.assertLess(load["ts"] + load["dur"], around["ts"] + around["dur"] - 0.4e6)
        calls = tracks["communication"]
        latencies = [row[0] for row in rows("SELECT latency_ms FROM comm_metrics WHERE op = 'all_reduce' ORDER BY call")]
        self.assertEqual(4, len(latencies))
        self.assertRegex(calls[-1]["name"], "^all_reduce")
        for one, ms in zip(calls[-4:], latencies):
            self.assertAlmostEqual(ms * 1e3, one["dur"], delta=1)
        # Samples and steps have one clock: the loop of step 11 is in step 11.
        step = tracks["step"][1]
        loads = [one for one in events if one["ph"] == "X" and one["tid"] == pid and one["name"].startswith("Module._call_impl")]
        inside = sum(one["dur"] for one in loads if step["ts"] <= one["ts"] < step["ts"] + step["dur"])
        self.assertGreater(inside, 0)
        counters = {}
        for one in events:
            if one["ph"] == "C":
                counters.setdefault((one["pid"], one["name"]), []).append(one["args"]["value"])
        self.assertEqual([row[0] for row in rows("SELECT round(rss / 1e6, 3) FROM process_usage ORDER BY timestamp")],
                         counters[pid, "resident memory (MB)"])
        self.assertIn((1 << 30, "available memory (MB)"), counters)
        self.assertTrue(all(0 <= value < 64 for value in counters[pid, "CPU (processors)"]), counters)
        # A part of the time has the part of each track that is in it.
        with open(self.export("--since", "1.5s")) as opened:
            late = [one for one in json.load(opened)["traceEvents"] if one["ph"] == "X"]
        self.assertTrue(late)
        self.assertTrue(all(one["ts"] >= 1.3e6 for one in late), min(one["ts"] for one in late))


class Injected(TorchCase):
    """A process that runs for long: its model, optimizer and scheduler are there when tracing begins."""

    def test_config(self):
        scheduler = "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)\nsteps(1)\n"
        with self.program([self.python, "-c", RESNET.replace("steps(1)\n", scheduler, 1)]) as program:
            def run():
                program.stdin.write("\n")
                program.stdin.flush()
                self.assertEqual("done\n", program.stdout.readline())

            def config(*words, **more):
                return p.probing("config", program.pid, *words, env=self.environment(), **more)

            self.assertEqual("probing.torch.profiling=on\n", config("probing.torch.profiling=on", check=p.OK).stdout)
            run()
            names = {row[0] for row in self.sql(program.pid, "SELECT DISTINCT module FROM torch_trace WHERE stage = 'backward'")}
            self.assertEqual(68, len(names))
            self.assertIn("layer3.0.conv2", names)
            steps = "SELECT count(DISTINCT step), max(step) FROM torch_trace"
            self.assertEqual([[4, 3]], self.sql(program.pid, steps + " WHERE stage = 'step'"))
            done = config("probing.torch.profiling=fast", check=p.FAILED)
            self.assertIn("'fast' in probing.torch.profiling=fast is no share from 0 to 1: write on, off, ", done.stderr)
            config("probing.torch.sample_rate=0.25", check=p.OK)
            run()
            run()
            self.assertEqual([[6, 11]], self.sql(program.pid, steps + " WHERE stage = 'step'"))
            config("probing.torch.profiling=off", check=p.OK)
            run()
            self.assertEqual([[6, 11]], self.sql(program.pid, steps + " WHERE stage = 'step'"))
            config("probing.torch.sample_rate=default", "probing.torch.profiling=on", check=p.OK)
            run()
            # torch 2.0 has hooks of all optimizers; before, probing replaces step() of the classes.
            hooks = ("import sys, torch; hooks = getattr(sys.modules['torch.optim.optimizer'], '_global_optimizer_post_hooks', None); "
                     "print(len(torch.nn.modules.module._global_forward_hooks), {len(hooks) > 0} if hooks is not None else "
                     "{'traced' in step.__code__.co_name for step in (torch.optim.SGD.step, optimizer.step)})")
            self.assertEqual("1 {True}\n", p.probing("eval", program.pid, hooks, check=p.OK).stdout)
            p.probing("detach", program.pid, check=p.OK)
            run()
            p.probing("inject", program.pid, check=p.OK)
            self.assertEqual("0 {False}\n", p.probing("eval", program.pid, hooks, check=p.OK).stdout)


# Runs programs, a line of JSON each, one after the other, and writes what each has written.
ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys, traceback
for line in sys.stdin:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            exec(json.loads(line), {"__name__": "__main__"})
        except Exception:
            traceback.print_exc(file=said)
    print(json.dumps(said.getvalue()), flush=True)
"""
# kept(): how many nodes of Saves are still there.
ODD = """
import gc, time, weakref
import torch, torch.nn as nn, torch.nn.functional as F
import probing, probing._torch as ours
probing.disable_torch_profiling()  # of the program before
probing.enable_torch_profiling('on')
x, saved = torch.ones(2, 4), []
class Big(object):
    pass
class Save(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.big = Big()
        saved.append(weakref.ref(ctx.big))
        return x * 2
    @staticmethod
    def backward(ctx, y):
        return y * 2
class Saves(nn.Module):
    def forward(self, x):
        return Save.apply(x)
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.ones(4, 4))
    def forward(self, x):
        return F.relu(F.linear(F.relu(F.linear(x, self.a)), self.b))
def kept():
    gc.collect()
    return sum(one() is not None for one in saved)
"""


class Unharmed(TorchCase):
    NIGHTLY_FOR_USERS = True  # a program's own calls do not depend on rights; Resnet's go through its files

    def test_everything_computes_the_same(self):
        """Checkpoints, AMP, jit, DDP, hooks of others, pickles, inference, exceptions, retained graphs: bit by bit."""
        with self.program([self.python, CASES], PROBING="1") as program:
            answer = json.loads(self.first_line)
            self.assertGreaterEqual(len(answer["cases"]), 15)
            for case, (off, on, half) in answer["cases"].items():
                with self.subTest(case):
                    self.assertRegex(off, r"^[0-9a-f]{16}")
                    self.assertEqual((off, off), (on, half))
            self.check_rows(program.pid)
            self.assertEqual(2 * [["train", "i", 0], ["train", "i", 1]], [row for row in answer["variables"] if row[1] == "i"])
            losses = [value for _, name, value in answer["variables"] if name == "loss"]
            self.assertEqual(4, len(losses))
            self.assertTrue(all(0 < value < 10 for value in losses), losses)
            _, said = program.communicate()  # ends its stdin
            self.assertNotIn("tracing of torch has stopped", said)

    def test_a_mistake_of_ours_ends_tracing_only(self):
        """Each kind of hook raises in turn: one line, and the training goes on."""
        code = ("import sys; sys.path.insert(0, %r)\nimport torch, torch_cases as cases, probing, probing._torch as ours\ndef run():\n"
                "    torch.manual_seed(1)\n    return cases.plain()\nwanted = run()\n"
                "for name in ('new_seq', 'append', 'settings', 'local_step', 'cuda', 'identify', 'begin_outermost'):\n"
                "    probing.enable_torch_profiling('on')\n    setattr(ours._trace, name, 1 if name == 'cuda' else None)\n"
                "    print(run() == wanted, ours._trace.is_on, len(torch.nn.modules.module._global_forward_hooks))\n"
                "    ours._trace = None\n" % os.path.join(p.ROOT, "fixtures"))
        done = self.run_python("-c", code, PROBING="1")
        self.assertEqual("True False 0\n" * 7, done.stdout, done.stderr)
        said = [line for line in done.stderr.splitlines() if "tracing of torch has stopped, the program continues: " in line]
        self.assertEqual(7, len(said), done.stderr)

    def test_no_hook_stays_that_was_registered_meanwhile(self):
        """Another thread stops tracing while this one begins a step: before hooks are registered, and between two of them."""
        code = ("import torch, probing, probing._torch as ours, torch.nn.modules.module as modules\n"
                "def stop(real):\n    def stops(*what):\n        ours.stop()\n        return real(*what)\n    return stops\n"
                "for owner, name in ((None, 'get_rank'), (modules, 'register_module_forward_hook')):\n"
                "    probing.enable_torch_profiling('0.0001')\n    owner = owner or ours._trace\n"
                "    real = getattr(owner, name)\n    setattr(owner, name, stop(real))\n    ours._trace.settings.rate = 1\n"
                "    ours._trace.advance()\n    setattr(owner, name, real)\n"
                "    print(len(modules._global_forward_hooks), len(modules._global_forward_pre_hooks), ours._trace.is_on)\n")
        done = self.run_python("-c", code, PROBING="1")
        self.assertEqual("0 0 False\n" * 2, done.stdout, done.stderr)

    def test_without_a_gil_the_hooks_stay_the_same_ones(self):
        """torch iterates over its hooks in other threads meanwhile. What is traced is the same as with one."""
        code = textwrap.dedent("""
            import json, probing, probing._inside as inside
            if %r:
                inside.has_gil = lambda: False
            import torch, torch.nn.modules.module as modules, probing._torch as ours
            model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 1)))
            optimizer, seen, modes = torch.optim.SGD(model.parameters(), lr=0.1), set(), set()
            def hooks():
                return tuple(modules._global_forward_pre_hooks) + (0,) + tuple(modules._global_forward_hooks)
            probing.enable_torch_profiling("ordered:0.5")
            for i in range(20):
                model(torch.ones(2, 4)).sum().backward()
                seen.add(hooks())
                modes.add(ours._trace.mode)
                optimizer.step()
                seen.add(hooks())
                modes.add(ours._trace.mode)
                with torch.no_grad():
                    model(torch.ones(2, 4))
            rows = [[row[name] for name in ("step", "stage", "module")] for row in probing.query(
                "SELECT step, stage, module FROM torch_trace ORDER BY time_ns", pandas=False)]
            probing.disable_torch_profiling()
            print(json.dumps([len(seen), sorted(modes), hooks(), rows]))
            """)
        found = {}
        for is_free in False, True:
            done = self.run_python("-c", code % is_free, PROBING="1", OMP_NUM_THREADS="1", PROBING_BINARY=p.BINARY)
            n_seen, modes, left, found[is_free] = json.loads(done.stdout or self.fail(done.stderr))
            self.assertEqual((["full", "light", "none"], [0]), (modes, left))
            (self.assertEqual if is_free else self.assertLess)(1, n_seen)
        self.assertEqual(found[False], found[True])
        self.assertEqual({"forward", "backward", "step"}, {stage for _, stage, _ in found[True]} - {"data"})
        self.assertGreater(len(found[True]), 60)

    one_after_another = None  # a process for all programs with ODD: each of its own would import torch

    @classmethod
    def tearDownClass(cls):
        if cls.one_after_another is not None:
            cls.one_after_another.kill()
            cls.one_after_another.communicate()
            shutil.rmtree(cls.rings)

    def odd(self, code):
        """What a program with ODD says, whose tracing goes on."""
        case = type(self)
        if case.one_after_another is None:
            case.rings = self.rings = tempfile.mkdtemp()
            packages = shutil.copytree(self.folder, os.path.join(self.rings, "packages"), symlinks=True)  # they stay after this test
            case.one_after_another = subprocess.Popen(
                [self.interpreter, "-c", ONE_AFTER_ANOTHER], env=dict(self.environment(PROBING="1"), PYTHONUSERBASE=packages), text=True,
                cwd=self.rings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        process = case.one_after_another
        process.stdin.write(json.dumps(ODD + code + "print(ours._trace.is_on)\n") + "\n")
        process.stdin.flush()
        said = next((line for line in process.stdout if line.startswith('"')), '"it has ended"')
        said = json.loads(said).splitlines()
        self.assertEqual("True", said[-1:] and said[-1], said)
        return said[:-1]

    def test_hooks_of_the_program_at_the_same_nodes(self):
        """The agent registers its own without torch's handles; those of the program have theirs. Afterwards torch's function is back."""
        self.assertEqual(["0 True", "['kept']", "False"], self.odd(
            "model, seen, ids = nn.Linear(4, 4), [], torch.utils.hooks.RemovableHandle\nmodel(x)\nbefore = ids.next_id\n"
            "y = model(x)\nprint(ids.next_id - before, '_register_hook' in vars(torch.autograd.Function))\n"
            "kept = y.grad_fn.register_hook(lambda *what: seen.append('kept'))\n"
            "removed = y.grad_fn.register_hook(lambda *what: seen.append('removed'))\nremoved.remove()\n"
            "y.sum().backward()\nprint(seen)\nprobing.disable_torch_profiling()\n"
            "print('_register_hook' in vars(torch.autograd.Function))\nprobing.enable_torch_profiling('on')\n"))

    def test_a_module_is_frozen_whose_end_was_known(self):
        """The way from its last node to its first one ends early, as nothing before needs a gradient any more."""
        self.odd("model = nn.Sequential(nn.Linear(4, 4), Two())\nmodel(x).sum().backward()\n"
                 "model[0].requires_grad_(False)\nmodel[1].a.requires_grad_(False)\nmodel(x).sum().backward()\n")

    def test_arguments_that_are_proxies(self):
        """isinstance() of a proxy runs code, and raises where its object is dead."""
        self.assertEqual(["[]"], self.odd(
            "import weakref\nasked = []\nclass Lazy(object):\n    @property\n    def __class__(self):\n        asked.append(1)\n"
            "        return torch.Tensor\nclass Pass(nn.Module):\n    def forward(self, *what):\n        return what\n"
            "dead = weakref.proxy(nn.Linear(1, 1))\nmodel = nn.Sequential()\nfor odd in dead, Lazy():\n    Pass()(x.clone(), odd)\n"
            "print(asked)\n"))

    def test_a_tensor_that_refuses_and_a_name_that_is_no_text(self):
        self.odd("class Refuses(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, function, types, args=(), kwargs=None):\n"
                 "        if getattr(function, '__name__', '') == '__get__':\n            raise TypeError(str(function))\n"
                 "        return super().__torch_function__(function, types, args, kwargs or {})\n"
                 "nn.Linear(4, 4)(x.as_subclass(Refuses))\nmodel = nn.Sequential()\nmodel.add_module('\\ud800', nn.Linear(4, 4))\nmodel(x)\n")

    def test_a_pass_around_the_training_keeps_no_graph(self):
        """A module's forward() trains: what the graph of a step has saved ends with the step."""
        self.assertEqual(["[0, 0, 0]"], self.odd(
            "class Trainer(nn.Module):\n    def forward(self, x):\n        left = []\n"
            "        for _ in range(3):\n            model(x).sum().backward()\n            optimizer.step()\n            left.append(kept())\n"
            "        return left\nmodel = nn.Sequential(nn.Linear(4, 4), Saves())\n"
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nprint(Trainer()(x))\n"))

    def test_tracing_that_ends_within_a_pass_keeps_no_graph(self):
        """In a thread that lives on: no later pass of it clears what was there."""
        self.assertEqual(["0"], self.odd(
            "import threading\ninside, ended = threading.Event(), threading.Event()\ngo, rest = threading.Event(), threading.Event()\n"
            "class Stops(nn.Module):\n    def forward(self, x):\n        inside.set()\n        go.wait(30)\n        return x\n"
            "model = nn.Sequential(nn.Linear(4, 4), Saves(), Stops())\n"
            "def run():\n    model(x)\n    ended.set()\n    rest.wait(30)\n"
            "one = threading.Thread(target=run)\none.start()\ninside.wait(30)\nprobing.disable_torch_profiling()\ngo.set()\n"
            "ended.wait(30)\nprint(kept())\nrest.set()\none.join()\nprobing.enable_torch_profiling('on')\n"))

    def test_nested_modules_that_pass_all_outputs_on(self):
        """Of n modules there are 2^n ways from the first one's output to the outer ones."""
        self.assertEqual(["True"], self.odd(
            "class Nest(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.inner = Nest(n - 1) if n else None\n"
            "    def forward(self, x):\n        y = self.inner(x) if self.inner else [x * 2]\n        return y + [y[-1] * 2]\n"
            "began = time.process_time()\nsum(Nest(40)(x.requires_grad_())).sum().backward()\n"
            "print(time.process_time() - began < 20)\n"))

    def test_it_is_switched_on_beside_a_thread_that_trains(self):
        """torch warns where somebody refers to a tensor that it ends, and would access it afterwards."""
        code = textwrap.dedent("""
            import threading, torch, probing
            model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(8)])
            optimizer, ends = torch.optim.SGD(model.parameters(), lr=0.1), threading.Event()
            def train():
                while not ends.is_set():
                    model(torch.ones(2, 8)).sum().backward()
                    optimizer.step()
            kept = [[i] for i in range(300000)]
            thread = threading.Thread(target=train)
            thread.start()
            for _ in range(10):
                probing.enable_torch_profiling("on")
                probing.disable_torch_profiling()
            ends.set()
            thread.join()
            print("end")
            """)
        done = self.run_python("-W", "always", "-c", code, PROBING="1", PROBING_LOGLEVEL="warn", OMP_NUM_THREADS="1")
        self.assertEqual(("end\n", ""), (done.stdout, done.stderr))

    def check_rows(self, pid):
        names = {tuple(row) for row in self.sql(pid, "SELECT DISTINCT module, operation_name FROM torch_trace WHERE stage = 'backward'")}
        for name in (("blocks.1.first", "Linear"), ("0.layers.1.self_attn", "MultiheadAttention"), ("0.layers.1.linear2", "Linear"),
                     ("Model", "Model"), ("1", "Own"), ("DistributedDataParallel", "DistributedDataParallel")):
            if self.python == p.DEBIAN_PYTHON:
                self.assertIn(name, names)
            else:  # of the newest torch, a module may be told by the path from another one that contains it
                self.assertTrue(any(found == name or found[1] == name[1] and found[0].endswith("." + name[0]) for found in names), (name, names))
        for stage, ms in (("forward", 40), ("backward", 100)):  # the least of 8 steps: a busy machine adds to it, not in each step
            took = dict(self.sql(pid, "SELECT module, min(duration_ms) FROM torch_trace WHERE stage = '%s' AND module LIKE '%%pauser%%' OR "
                                 "stage = '%s' AND operation_name = 'Pausers' OR stage = '%s' AND module = 'beside' GROUP BY module" % (
                                     stage, stage, stage)))
            self.assertTrue(ms <= took["pauser"] < ms * 2, took)
            self.assertTrue(took["pauser"] <= took["Pausers"] < ms * 3, took)
            self.assertLess(took["beside"], ms / 2)

    @contextlib.contextmanager
    def program(self, command, **more):
        """The first line is what has been found."""
        process = subprocess.Popen(command, env=self.environment(**more), cwd=self.folder, text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.first_line = process.stdout.readline() or self.fail(process.stderr.read())
            self.assertEqual("ready {}\n", process.stdout.readline())
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                process.communicate()


RANKS = """
import os, sys, torch, torch.distributed as distributed
distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(os.environ["RANK"]), world_size=2)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(40):
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
del model, optimizer  # with them, the group's last owner is gone: its threads end while the interpreter lives
distributed.destroy_process_group()
"""


class Ranks(TorchCase):
    def test_all_sample_the_same_steps(self):
        script, store = self.write("train.py", RANKS), os.path.join(self.folder, "store")
        ranks = [subprocess.Popen([self.interpreter, script, store], stderr=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment(
            PROBING="1", PROBING_TORCH_PROFILING="random:0.3", OMP_NUM_THREADS="1", RANK=str(rank))) for rank in (0, 1)]
        try:
            said = [process.communicate(timeout=2 * self.ready_s)[1] for process in ranks]
        finally:
            for process in ranks:
                process.kill()
                process.wait()
                process.stderr.close()
        self.assertEqual([0, 0], [process.returncode for process in ranks], said)
        steps = [self.sql(process.pid, "SELECT step FROM torch_trace WHERE stage = 'backward' AND module = '0' AND rank = %d ORDER BY step"
                          % rank) for rank, process in enumerate(ranks)]
        self.assertEqual(steps[0], steps[1])
        self.assertTrue(4 < len(steps[0]) < 25, steps[0])


class Example(TorchCase):
    def test_as_typed(self):
        """PROBING=1 python examples/imagenet.py -a resnet18 --dummy -b 1: one line on stderr, and rows while it trains."""
        example = os.path.join(p.ROOT, "examples", "imagenet.py")
        process = subprocess.Popen([self.python, "-W", "ignore", example, "-a", "resnet18", "--dummy", "-b", "1", "-j", "1", "-p", "1"],
                                   env=self.environment(PROBING="1", PROBING_TORCH_PROFILING="on", TMPDIR=self.folder), text=True, cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            lines = [process.stdout.readline() for _ in range(3)]
            self.assertRegex(lines[0], r"^Epoch: \[0\]\[1/1281167\]\tTime .*\tLoss ")
            done = p.probing(process.pid, AS_TYPED, check=p.OK, env=self.environment())
            self.assertRegex(done.stdout, r"(?m)^layer3\.0\.conv2 +\d+ ")
            self.assertRegex(done.stdout, r"(?m)^CrossEntropyLoss +\d+ ")
            self.assertEqual([["Dummy"]], self.sql(process.pid, "SELECT DISTINCT operation_name FROM torch_trace WHERE stage = 'data'"))
            loss = float(lines[1].split("Loss ")[1].split()[0])
            logged, = self.sql(process.pid, "SELECT loss FROM training_logs WHERE step = 2")[0]
            self.assertAlmostEqual(loss, logged, delta=abs(loss) * 1e-4)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that load data
            _, said = process.communicate()
        self.assertRegex(said, r"^probing: active in process \d+ \(.*\)\n$")


# Events as CUDA's are: a process that did not make one is ended by its destruction. The child ends as CHILD says.
EVENTS = """
import os, sys
from probing import _inside
parent = os.getpid()
class Torch:
    class cuda:
        class Event:
            def __init__(self, enable_timing):
                pass
            def __del__(self):
                if os.getpid() != parent:
                    os.abort()
events = _inside.events(Torch)
held = events.take(0)
again = events.take(0)
events.give(again)
assert events.take(1) is not again  # torch refuses to record it on another GPU
assert events.take(0) is again is not held and len(events.kept) == 3
pid = os.fork()
if pid == 0:
    del held, again, events
    _inside._events = None
    CHILD
print(os.waitpid(pid, 0)[1])
"""


# A step of training within the capture of a graph: a question about an event, or a wait, would end the capture.
CAPTURED = """
import types
from probing import _inside, _torch
is_capturing, calls = True, []
class Event:
    def __init__(self, enable_timing):
        pass
    def __getattr__(self, name):
        return lambda *_: calls.append(name) or 1.0
cuda = types.SimpleNamespace(Event=Event, current_device=lambda: 0, synchronize=lambda: calls.append("synchronize"),
                             is_current_stream_capturing=lambda: is_capturing)
trace = types.SimpleNamespace(torch=types.SimpleNamespace(cuda=cuda, _C=None), settings=types.SimpleNamespace(sync=True), rows=[],
                              step=0, step_began=0, local_step=0, global_step=None, rank=0, append=lambda *row: trace.rows.append(row), local=types.SimpleNamespace(tid=1))
now = trace.cuda = _torch.Cuda(trace)
def step():
    event = now.begin()
    now.add("step", 0, "SGD", "SGD", 0, 1, event)
    now.read_later(None, 0, "train", "loss", None)
    now.collect()
is_capturing = False
now.add("step", 0, "SGD", "SGD", 0, 1, now.begin())
del calls[:]
is_capturing = True
step()
print(calls, len(trace.rows))
is_capturing = False
now.collect()
print("query" in calls, len(trace.rows))
"""


# On a GPU with two streams: which steps have the allocator's numbers, and on which stream an event is.
SHARES = """
import types
from probing import _torch
for spec in "on", "on,memory=on", "on,memory=off", "on,memory=0.5":
    settings = _torch.Settings(spec)
    print([i for i in range(21) if settings.takes_memory(i)] if settings.memory < 1 else "all")
streams, made, on, now = {1: "first", 2: "second"}, [], [], 1
class Event:
    def __init__(self, enable_timing):
        pass
    def record(self, stream):
        on.append(stream)
def current_stream(device):
    made.append(now)
    return streams[now]
memory = dict.fromkeys(("allocated_bytes", "reserved_bytes"), {"all": {"current": 2e6, "peak": 6e6}})
C = types.SimpleNamespace(_cuda_getCurrentStream=lambda device: (now, device, 1), _cuda_memoryStats=lambda device: memory)
torch = types.SimpleNamespace(cuda=types.SimpleNamespace(Event=Event, current_device=lambda: 0, current_stream=current_stream), _C=C)
trace = types.SimpleNamespace(torch=torch, settings=_torch.Settings(), step=0, step_began=0, local_step=0, global_step=None, rank=0,
                              local=types.SimpleNamespace(tid=1))
cuda = _torch.Cuda(trace)
for now in 1, 2, 1, 2:
    cuda.record()
print(on, made)
for cuda.reads_memory in True, False:
    memory["allocated_bytes"]["all"]["current"] = 2e6
    event = cuda.begin()
    memory["allocated_bytes"]["all"]["current"] = 5e6
    cuda.add("forward", 0, "fc", "Linear", 0, 1, event)
print([row[4:8] + row[18:] for _, _, _, row in cuda.pending], len(cuda.pending[0][3]) == len(_torch.COLUMNS))
del cuda.pending[:]
"""


# A variable is read, and `del` still ends the others. The program's own dict of them stays as it is, and so does what a tracer sees.
READ = """
import sys, weakref
from probing import _inside
class Big(object):
    pass
def read(frame, name):
    return _inside.local_of(frame, name)
def drops():
    big, loss = Big(), 2.5
    of = weakref.ref(big)
    found = read(sys._getframe(), "loss"), read(sys._getframe(), "none")
    del big
    return found, of()
def has_a_dict():
    a, b = 1, 2
    mine = locals()
    return read(sys._getframe(), "b"), mine["a"], mine["b"], sorted(locals())
def traced():
    a, b = 1, 2
    read(sys._getframe(), "a")
    return a, b
print(drops(), has_a_dict())
sys.settrace(lambda frame, event, value: read(frame, "a") and None)
print(traced())
sys.settrace(None)
x = 3
read(sys._getframe(), "x")
print(x)
"""


class Variables(unittest.TestCase):
    def test_those_that_are_read_do_not_keep_the_others(self):
        for one in p.interpreters():
            if one.label in ("debian", "3_8", "3_12", "3_13"):
                p.need_interpreter(one)
                done = subprocess.run([one.path, "-c", READ], capture_output=True, text=True, timeout=60,
                                      env=dict(os.environ, PYTHONPATH=os.path.join(p.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1"))
                self.assertEqual(("((2.5, None), None) (2, 1, 2, ['a', 'b', 'mine'])\n(1, 2)\n3\n", ""), (done.stdout, done.stderr), one.label)


class Events(unittest.TestCase):
    def test_the_capture_of_a_graph_is_left_alone(self):
        done = subprocess.run([p.DEBIAN_PYTHON, "-c", CAPTURED], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, PYTHONPATH=os.path.join(p.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1"))
        self.assertEqual(("[] 0\nTrue 1\n", ""), (done.stdout, done.stderr))

    def test_streams_and_memory(self):
        done = subprocess.run([p.DEBIAN_PYTHON, "-c", SHARES], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, PYTHONPATH=os.path.join(p.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1"))
        self.assertEqual(["[0, 9, 19]", "all", "[]", "[0, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]",
                          "['first', 'second', 'first', 'second'] [1, 2]", "[[5.0, 6.0, 5.0, 6.0, 2.0], [None, None, None, None, None]] True"],
                         done.stdout.splitlines(), done.stderr)

    def test_a_forked_child_destroys_none(self):
        for child in "os._exit(0)", "sys.exit(0)":
            done = subprocess.run([p.DEBIAN_PYTHON, "-c", EVENTS.replace("CHILD", child)], capture_output=True, text=True, timeout=60,
                                  env=dict(os.environ, PYTHONPATH=os.path.join(p.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1"))
            self.assertEqual(("0\n", ""), (done.stdout, done.stderr), child)


def python_with_cuda():
    """An interpreter whose torch sees a GPU: $PROBING_TORCH_PYTHON, this one, that of Debian. None: there is none."""
    for one in (os.environ.get("PROBING_TORCH_PYTHON"), sys.executable, p.DEBIAN_PYTHON):
        if one and subprocess.run([one, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"],
                                  capture_output=True).returncode == 0:
            return one
    return None


# Runs a program with the agent and the package, neither of which is installed.
WITH_AGENT = """
import ctypes, os, runpy, sys
assert ctypes.CDLL(os.environ["PROBING_AGENT"]).probing_agent_start(0) == 0
sys.path.insert(0, os.environ["PACKAGE"])
for _ in range(1000): pass  # the agent hands over its functions between two instructions
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Gpu(unittest.TestCase):
    """On a real GPU. It needs the agent's library and an interpreter with torch, nothing else that is built or installed."""
    NIGHTLY_FOR_USERS = True  # a program's own calls do not depend on rights; Resnet's go through its files

    @classmethod
    def setUpClass(cls):
        cls.python = python_with_cuda()
        if cls.python is None:
            raise unittest.SkipTest("no torch here sees a CUDA device ($PROBING_TORCH_PYTHON names an interpreter)")
        cls.rings = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.rings)
        cls.said, cls.facts = cls.run_fixture("torch_cuda.py")
        print(json.dumps(cls.facts), file=sys.stderr)

    @classmethod
    def run_fixture(cls, name, *words):
        """What it says on stderr, and the JSON of its first line."""
        environment = dict(os.environ, PROBING_AGENT=LIBRARY, PACKAGE=os.path.join(p.ROOT, "python"), PROBING_DATA_DIR=cls.rings,
                           TORCH_DEVICE="cuda", CUBLAS_WORKSPACE_CONFIG=":4096:8", PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run([cls.python, "-c", WITH_AGENT, os.path.join(p.ROOT, "fixtures", name)] + list(words), env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        return done.stderr, json.loads(done.stdout.splitlines()[0])

    def test_times_are_those_of_the_gpu(self):
        facts, sleep = self.facts, self.facts["sleep_ms"]
        self.assertNotIn("tracing of torch has stopped", self.said)
        self.assertAlmostEqual(sleep, facts["sleeper_forward_ms"][0], delta=sleep * 0.1)
        self.assertAlmostEqual(2 * sleep, facts["sleeper_backward_ms"][0], delta=sleep * 0.2)
        self.assertGreater(facts["model_forward_ms"][0], facts["sleeper_forward_ms"][0])
        self.assertGreater(facts["model_backward_ms"][0], facts["sleeper_backward_ms"][0])
        self.assertTrue(0 < facts["sgd_ms"][0] < sleep, facts["sgd_ms"])

    def test_each_module(self):
        wanted = [[name, stage] for name in ("0", "1", "2", "3", "Sequential") for stage in ("backward", "forward")]
        self.assertEqual(sorted(wanted + [["SGD", "step"]]), self.facts["stages"])

    def test_nothing_waits(self):
        self.assertLess(self.facts["forward_host_ms"], self.facts["sleep_ms"] / 2)

    def test_memory(self):
        (before,), (after,), (peak,), (cached,), (max_cached,), (at_begin,) = self.facts["hoarder"]
        self.assertGreaterEqual(after, before)
        self.assertAlmostEqual(before, at_begin, delta=1)  # nothing happens between the two modules
        self.assertGreaterEqual(after, 64)
        self.assertGreaterEqual(peak, after)
        self.assertGreaterEqual(cached, after)
        self.assertGreaterEqual(max_cached, cached)
        self.assertAlmostEqual(self.facts["torch_allocated"], after, delta=16)

    def test_variable(self):
        real, read = self.facts["loss"]
        self.assertEqual(real, read)

    def test_a_captured_graph_is_the_same(self):
        self.assertTrue(self.facts["graph"])

    def test_everything_computes_the_same(self):
        said, answer = self.run_fixture("torch_cases.py")
        self.assertNotIn("tracing of torch has stopped", said)
        for case, (off, on, half) in answer["cases"].items():
            with self.subTest(case):
                self.assertRegex(off, r"^[0-9a-f]{16}")
                self.assertEqual((off, off), (on, half))


class Settings(TorchCase):
    def test_what_is_said(self):
        for environment, says in (({"PROBING_TORCH_PROFILING": "on"}, "PROBING_TORCH_PROFILING has no effect without the agent: set PROBING=1"),
                                  ({"PROBING": "1", "PROBING_TORCH_PROFILING": "2"}, r".*'2' in .* is no share from 0 to 1: write on, off, RATE"),
                                  ({"PROBING": "1", "PROBING_TORCH_PROFILING": "on,what=1"}, ".*'what=1' is not understood in ")):
            with self.subTest(environment):
                done = self.run_python("-c", "print(1)", **environment)
                self.assertEqual((0, "1\n"), (done.returncode, done.stdout))
                self.assertRegex(done.stderr, "(?m)^probing: " + says)
        self.assertEqual("", self.run_python("-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', '1'])",
                                             PROBING="1", PROBING_TORCH_PROFILING="on", PROBING_LOGLEVEL="error").stderr)
        self.assertEqual("", self.run_python("-c", "1", PROBING_TORCH_PROFILING="off").stderr)

    def test_each_process_samples_the_same_steps(self):
        code = ("import sys; sys.path.insert(0, %r)\nfrom probing._torch import Settings\n"
                "print([[i for i in range(1000) if Settings(spec).takes(i)] for spec in "
                "('0.05', 'ordered:0.05', 'random:0.05', 'random:0.05:0.5')])" % os.path.join(p.ROOT, "python"))
        first, second = (json.loads(self.run_python("-c", code, PYTHONHASHSEED=seed).stdout) for seed in "12")
        self.assertEqual(first, second)
        plain, ordered, some, layers = first
        self.assertEqual(ordered, plain)
        self.assertEqual(50, len([step for step in ordered if step]))
        self.assertEqual({20}, {b - a for a, b in zip(ordered[1:], ordered[2:])})
        self.assertTrue(25 < len(some) < 75, some)
        self.assertEqual(some, layers)


if __name__ == "__main__":
    unittest.main()
