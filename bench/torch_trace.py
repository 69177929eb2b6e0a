#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tracing torch costs a training: resnet18 and a small transformer, batch 1 and 32.

    bench/torch_trace.py [--device cuda] [--rounds N] [--steps N] [--model NAME]

Each round trains the same model for some steps in each way, in turn: off, 5 % of the steps, all, all with a variable. A way's cost is the
median over the rounds of its time against the time without in the same round; beside it is that of two rounds without against each
other, which is what the machine itself changes. Times are of the thread's CPU on the CPU and real on a GPU. It needs torch (and torchvision
for resnet18) in the Python that runs it, and the agent's library: $PROBING_AGENT, or build/src/agent/libprobing-agent.so.
"""
import argparse
import ctypes
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WAYS = [("off", "off"), ("off again", "off"), ("5 % of the steps", "0.05"), ("all steps", "on"), ("and a variable", "on,exprs=loss@steps"),
        ("all, forward only", "on,backward=off")]


def transformer(torch):
    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    return torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 2), torch.nn.Linear(128, 1000))


def resnet18(torch):
    import torchvision
    return torchvision.models.resnet18()


class Training(object):
    def __init__(self, torch, name, batch, device):
        torch.manual_seed(0)
        self.torch, self.device = torch, device
        self.model = (resnet18 if name == "resnet18" else transformer)(torch).to(device)
        size = 224 if batch == 1 else 32  # ImageNet's, as in examples/imagenet.py -b 1; CIFAR's
        self.x = torch.randn(*((batch, 3, size, size) if name == "resnet18" else (batch, 64, 128)), device=device)
        self.y = torch.randint(0, 1000, (batch,) if name == "resnet18" else (batch * 64,), device=device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)

    def steps(self, n):
        """Nanoseconds a step."""
        clock = time.perf_counter_ns if self.device == "cuda" else time.thread_time_ns
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        began = clock()
        for _ in range(n):
            self.optimizer.zero_grad()
            loss = self.torch.nn.functional.cross_entropy(self.model(self.x).flatten(0, -2), self.y)
            loss.backward()
            self.optimizer.step()
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        return (clock() - began) / n


def measure(probing, training, n_rounds, n_steps):
    found = {way: [] for way, _ in WAYS}
    ways = list(WAYS)
    for i in range(n_rounds + 1):
        ways = ways[1:] + ways[:1]
        for way, spec in ways:
            probing.enable_torch_profiling(spec)
            training.steps(1)  # the caches are warm again
            ns = training.steps(n_steps)
            probing.disable_torch_profiling()
            if i > 0:  # the first one warms up
                found[way].append(ns)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20, help="of a round and way: 5 %% of 20 is one")
    parser.add_argument("--model", action="append", choices=("resnet18", "transformer"))
    parser.add_argument("--batch", action="append", type=int)
    options = parser.parse_args()
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
    for name in options.model or ["resnet18", "transformer"]:
        for batch in options.batch or [1, 32]:
            found = measure(probing, Training(torch, name, batch, options.device), options.rounds, options.steps)
            base = found["off"]
            print("%-12s batch %2d  %8.2f ms a step" % (name, batch, statistics.median(base) / 1e6), end="")
            for way, _ in WAYS[1:]:
                shares = [(mine / its - 1) * 100 for mine, its in zip(found[way], base)]
                print("   %s %+.2f %%" % (way, statistics.median(shares)), end="")
            print("   (all: %+.0f us a step)" % (statistics.median(a - b for a, b in zip(found["all steps"], base)) / 1e3), flush=True)


if __name__ == "__main__":
    main()
