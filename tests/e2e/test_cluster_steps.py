# SPDX-License-Identifier: MIT
"""probing cluster report of a real training: times of passes, communication and data by rank, and since which step a rank is slow."""
import contextlib
import json
import os
import re
import subprocess
import sys
import unittest

import probing_test as t
from test_comm import has_torch
from test_start import StartCase

N_RANKS, SLOW, FIRST_SLOW, N_STEPS = 3, 1, 120, 220
TRAINING = os.path.join(t.FIXTURES, "ranks_train.py")


class Steps(StartCase):
    """
    The training has ended its steps when it is asked: a busy machine changes no row any more. While another program works, some ten
    steps in a row are alike, so there are a hundred of each kind.
    """

    def setUp(self):
        if not has_torch(self.python):
            self.skipTest("no torch.distributed for %s" % self.python)
        super().setUp()
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data, 0o700)

    @contextlib.contextmanager
    def training(self):
        with contextlib.ExitStack() as stack:
            processes = []
            for rank in range(N_RANKS):
                environment = self.environment(
                    PROBING="1", PROBING_TORCH_PROFILING="on", PROBING_LOGLEVEL="error", PROBING_DATA_DIR=self.data, RANK=str(rank),
                    LOCAL_RANK=str(rank), WORLD_SIZE=str(N_RANKS), STORE=os.path.join(self.folder, "store"), GLOO_SOCKET_IFNAME="lo",
                    OMP_NUM_THREADS="1")
                processes.append(stack.enter_context(subprocess.Popen(
                    [self.python, TRAINING, str(SLOW), str(FIRST_SLOW), str(N_STEPS)], env=environment, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)))
                stack.callback(processes[-1].kill)
            for process in processes:
                t.await_ready(process, 300)  # three import torch, on a busy machine
            yield ",".join(str(process.pid) for process in processes)

    def report(self, *arguments):
        return t.probing("cluster", "report", "-d", "0.2", "--samples", "1", *arguments, check=t.OK, env=self.environment()).stdout

    def test_report(self):
        with self.training() as pids:
            found = json.loads(self.report("--json", "--pid", pids))
            text = self.report("--pid", pids)
        ranks = found["jobs"][0]["ranks"]
        self.assertEqual([0, 1, 2], [rank["rank"] for rank in ranks])
        numbers = [{number["name"]: number["value"] for number in rank["numbers"]} for rank in ranks]
        for number in numbers:
            for name in "step", "forward", "backward", "communication", "data":
                self.assertGreater(number[name], 0, (name, numbers))
            self.assertGreater(number["memory"], 20)
            self.assertGreater(number["data"], 1.9)  # a sleep of 2 ms
            self.assertGreater(number["step"], 49)   # all wait for the slow one
        self.assertGreater(numbers[SLOW]["forward"], 49)
        # The others wait in the operations: what the slow rank sleeps longer, they have on top of its time there.
        self.assertGreater(numbers[0]["communication"], numbers[SLOW]["communication"])
        slow = ranks[SLOW]["slow"]
        self.assertIsNotNone(slow, ranks)
        self.assertEqual(("outside communication", False, False), (slow["of"], slow["is_whole"], slow["is_over"]))
        self.assertTrue(abs(slow["first_step"] - FIRST_SLOW) <= 5, slow)
        self.assertGreater(slow["change"], 0.5)
        self.assertLess(slow["p"], 0.01)
        self.assertRegex(text, r"\nrank 1 \(pid \d+ on .*\) differs:\n  slower by \d+ % since step \d+ \(kept are \d+ to \d+\), in its steps "
                               r"without communication \(p [<=] 0\.0\d+\)\n")
        heads = re.search(r"\n +RANK.*\n", text).group().split("  ")
        for head in "MEMORY", "STEP", "FORWARD", "BACKWARD", "COMM", "DATA":
            self.assertIn(head, [one.strip() for one in heads])


if __name__ == "__main__":
    sys.exit(unittest.main())
