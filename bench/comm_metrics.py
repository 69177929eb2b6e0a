#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a row of comm_metrics costs: all_reduce() of ten numbers in a group of one rank, with and without.

    PROBING_AGENT=build/src/agent/libprobing-agent.so /usr/bin/python3 bench/comm_metrics.py

CPU time is the calling thread's, without that of gloo's threads. Both ways take turns.
"""
import ctypes
import os
import statistics
import sys
import tempfile
import time

ROUNDS, CALLS = 9, 1000


def measure(distributed, tensor):
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(CALLS):
        distributed.all_reduce(tensor)
    return (time.thread_time() - cpu) / CALLS * 1e6, (time.perf_counter() - wall) / CALLS * 1e6


def main():
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
    import torch
    import torch.distributed as distributed
    from probing import _comm
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(GLOO_SOCKET_IFNAME="lo", PROBING_DATA_DIR=folder)
        if ctypes.CDLL(os.path.abspath(os.environ["PROBING_AGENT"])).probing_agent_start(0) != 0:
            raise SystemExit("the agent did not start")
        distributed.init_process_group("gloo", init_method="file://" + os.path.join(folder, "store"), rank=0, world_size=1)
        tensor = torch.ones(10)
        measure(distributed, tensor)
        results = {False: [], True: []}
        for i in range(2 * ROUNDS):
            (_comm.enable if i % 2 else _comm.disable)()
            results[bool(i % 2)].append(measure(distributed, tensor))
        for is_on, rows in results.items():
            print("%-7s %5.1f us of CPU time, %5.1f us a call" % (("without", "with")[is_on],
                                                               statistics.median(row[0] for row in rows),
                                                               statistics.median(row[1] for row in rows)))
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
