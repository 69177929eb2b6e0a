# SPDX-License-Identifier: MIT
"""A real training step: Python, torch's Python, libtorch's C++ in one stack."""
import collections
import subprocess
import sys
import unittest

import probing_test as t


class Train(t.Case):
    @classmethod
    def setUpClass(cls):
        t.need_perf()
        if not t.has_modules(t.DEBIAN_PYTHON, "torch", "torchvision"):
            raise unittest.SkipTest("torch and torchvision are not installed for " + t.DEBIAN_PYTHON)
        with t.scratch(), subprocess.Popen(t.fixture_command("train.py", "--seconds", 300), env=t.fixture_environment(), text=True,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            try:
                target = t.Target(process, t.await_ready(process, 300))  # it imports torch, on a busy machine
                cls.recording = t.record_cpu(target, 2, 299)  # some 600 samples
            finally:
                process.kill()

    def main_thread(self):
        pid = self.recording.run["pid"]
        return [s for s in self.recording.samples if s.stack and s.tid == pid]

    @t.statistical("a forward pass must be met by so many samples", 0.0005)
    def test_forward_pass_from_script_to_kernel(self):
        """train.py, then torch/nn, then libtorch with a C++ name, in this order."""
        found = 0
        for sample in self.main_thread():
            path = self.recording.path(sample.stack)
            python = [f for f in path if f.kind == "python"]
            names = [f.name for f in python]
            if not t.subsequence(names, ["train_step", "Trainer.forward", "Conv2d.forward"]):
                continue
            places = [i for i, f in enumerate(path) if f.kind == "python"]
            below = path[places[-1] + 1:]
            self.assertTrue(python[names.index("Trainer.forward")].file.endswith("train.py"))
            found += any("libtorch_cpu" in (f.module or "") and f.name.startswith("at::") for f in below)
        self.assertGreater(found, 10)

    def test_backward_pass_has_python_at_its_root(self):
        self.assertTrue(any("Tensor.backward" in self.recording.names(s.stack) for s in self.main_thread()))

    @t.statistical("a sample that is read late is not verified: how many are late is chance", 0.0005)
    def test_whole_stacks_and_verdicts(self):
        ends, verdicts = self.recording.ends(), collections.Counter(s.verdict for s in self.main_thread())
        self.assertShare(0.9, (ends["complete"] + ends["completed"]) / sum(ends.values()), str(ends))
        # The rest is what the thread had left by the time it was read: more on a busy machine.
        self.assertShare(0.6, (verdicts["verified"] + verdicts["exact"]) / sum(verdicts.values()), str(verdicts))

    def test_nothing_is_lost(self):
        self.assertEqual(0, self.recording.counters["lost"])


if __name__ == "__main__":
    sys.exit(unittest.main())
