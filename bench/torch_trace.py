#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tracing torch costs a training: resnet18 and a small transformer, batch 1 and 32; a tiny transformer; and layers that compute nothing.

    bench/torch_trace.py [--device cuda] [--rounds N] [--steps N] [--model NAME] [--batch N] [--instructions]

Each round trains the same model for some steps in each way, in turn: off, a rate that takes none of these steps, all steps, all with a
variable. A way's cost compares the first quartiles of all its steps' times; "off again" against "off" is what the machine itself changes. 5 %
of the steps is 0.95 of a step that is not taken and 0.05 of one that is. Times are of the thread's CPU on the CPU; on a GPU they are real,
and a time is the mean of a round. It needs torch (and torchvision
for resnet18) in the Python that runs it, and the agent's library: $PROBING_AGENT, or build/src/agent/libprobing-agent.so.

--instructions counts those of one step in each way instead, with callgrind: other programs do not disturb it, and it takes about 70 times
as long. The steps are the text of exec(), whose C function nothing else calls then.
"""
import argparse
import ctypes
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WAYS = [("off", "off"), ("off again", "off"), ("not taken", "ordered:0.0001"), ("all", "on"), ("with a variable", "on,exprs=loss@steps"),
        ("forward only", "on,backward=off")]


def transformer(torch):
    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    return torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 2), torch.nn.Linear(128, 1000))


def tiny(torch):
    """Its kernels take next to no time, as those of a GPU take none of the host's: 57 calls of modules."""
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 6), torch.nn.Linear(64, 100))


def resnet18(torch):
    import torchvision
    return torchvision.models.resnet18()


def layers(torch):
    """81 calls that compute next to nothing: what a call costs shows here, whatever else the machine does."""
    return torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(inplace=True), torch.nn.LayerNorm(4))
                                 for _ in range(20)])


MODELS = {"resnet18": (resnet18, None), "transformer": (transformer, (64, 128)), "layers": (layers, (2, 4)),
          "tiny": (tiny, (8, 64))}
CLASSES = {"layers": 4, "tiny": 100}


class Training(object):
    def __init__(self, torch, name, batch, device):
        torch.manual_seed(0)
        self.torch, self.device = torch, device
        make, shape = MODELS[name]
        self.model = make(torch).to(device)
        size = 224 if batch == 1 else 32  # ImageNet's, as in examples/imagenet.py -b 1; CIFAR's
        self.x = torch.randn(*((batch,) + (shape or (3, size, size))), device=device)
        self.y = torch.randint(0, CLASSES.get(name, 1000), (batch * (shape[0] if shape else 1),), device=device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)

    def steps(self, n):
        """Nanoseconds of each step."""
        clock = time.perf_counter_ns if self.device == "cuda" else time.thread_time_ns
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        times = [clock()]
        for _ in range(n):
            self.optimizer.zero_grad()
            loss = self.torch.nn.functional.cross_entropy(self.model(self.x).flatten(0, -2), self.y)
            loss.backward()
            self.optimizer.step()
            times.append(clock())
        if self.device == "cuda":
            self.torch.cuda.synchronize()
            return [(clock() - times[0]) / n]
        return [b - a for a, b in zip(times, times[1:])]


def measure(probing, training, n_rounds, n_steps):
    found = {way: [] for way, _ in WAYS}
    ways = list(WAYS)
    for i in range(n_rounds + 1):
        ways = ways[1:] + ways[:1]
        for way, spec in ways:
            probing.enable_torch_profiling(spec)
            training.steps(1)  # the caches are warm again
            times = training.steps(n_steps)
            probing.disable_torch_profiling()
            if i > 0:  # the first one warms up
                found[way] += times
    return {way: statistics.quantiles(times, n=4)[0] for way, times in found.items()}


class Counter(object):
    """Instructions of calls, in a process that callgrind runs: it writes a file after each."""
    FOLDER = "PROBING_BENCH_CALLGRIND"
    OPTIONS = ("--tool=callgrind", "--toggle-collect=PyRun_StringFlags", "--dump-after=PyRun_StringFlags")

    def __init__(self):
        self.folder = os.environ[self.FOLDER]

    def count(self, call):
        exec("call()", {"call": call})
        newest = max((name for name in os.listdir(self.folder) if name.startswith("out.")), key=lambda name: int(name[4:]))
        with open(os.path.join(self.folder, newest)) as lines:
            return int(re.search(r"^(?:summary|totals): (\d+)", lines.read(), re.M).group(1))

    @classmethod
    def run_again(cls):
        with tempfile.TemporaryDirectory(prefix="probing-torch-trace.") as folder:
            command = ["valgrind", "-q", *cls.OPTIONS, "--callgrind-out-file=" + os.path.join(folder, "out"), sys.executable, *sys.argv]
            return subprocess.run(command, env=dict(os.environ, **{cls.FOLDER: folder})).returncode


def count(probing, training, counter):
    """Instructions of a step in each way: the third one of that way, which has what the first ones have made."""
    found = {}
    for way, spec in WAYS:
        probing.enable_torch_profiling(spec)
        training.steps(2)
        found[way] = counter.count(lambda: training.steps(1))
        probing.disable_torch_profiling()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10, help="of a round and way")
    parser.add_argument("--model", action="append", choices=sorted(MODELS))
    parser.add_argument("--batch", action="append", type=int)
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    if options.instructions and Counter.FOLDER not in os.environ:
        sys.exit(Counter.run_again())
    agent = os.environ.get("PROBING_AGENT", os.path.join(ROOT, "build", "src", "agent", "libprobing-agent.so"))
    if ctypes.CDLL(agent).probing_agent_start(0) != 0:
        sys.exit("torch_trace: the agent could not be started")
    sys.path.insert(0, os.path.join(ROOT, "python"))
    for _ in range(1000):  # the agent hands over its functions between two instructions
        pass
    import torch
    import probing
    torch.set_num_threads(1)
    print("torch %s, CPython %d.%d, %s" % (torch.__version__, sys.version_info[0], sys.version_info[1],
                                          torch.cuda.get_device_name() if options.device == "cuda" else "CPU, one thread"))
    counter = Counter() if options.instructions else None
    for name in options.model or sorted(MODELS):
        for batch in options.batch or [1, 32]:
            training = Training(torch, name, batch, options.device)
            found = count(probing, training, counter) if counter else measure(probing, training, options.rounds, options.steps)
            base = found["off"]
            found["5 %"] = 0.95 * found["not taken"] + 0.05 * found["all"]
            print("%-12s batch %2d  %8.2f %s a step" % (name, batch, base / 1e6, "million" if options.instructions else "ms"), end="")
            for way in ["off again", "5 %"] + [way for way, _ in WAYS[2:]]:
                print("   %s %+.2f %%" % (way, (found[way] / base - 1) * 100), end="")
            print("   (all: %+.0f %s)" % ((found["all"] - base) / 1e3, "thousand" if options.instructions else "us"), flush=True)


if __name__ == "__main__":
    main()
