# SPDX-License-Identifier: MIT
"""Dumps of PyTorch's Flight Recorder, while the program runs or hangs: docs/torch.md."""
import os
import sys

# The functions of torch._C._distributed_c10d, and how the files of each begin: NCCL's recorder, and that of gloo and others.
_RECORDERS = (("_dump_nccl_trace", "nccl_rank_"), ("_dump_fr_trace", "rank_"))


def _has_operations(dump):
    import pickle  # what this process has just made
    return bool(pickle.loads(dump).get("entries"))


def dump_flight_recorder(folder="."):
    """Write what PyTorch's Flight Recorder has of this rank to files in a folder, which is made; returns their paths.

    `probing import FOLDER` makes a recording of those of all ranks. A collective that hangs does not prevent it.
    RuntimeError: torch is not there, or its recorder is off or empty; OSError: a file cannot be written.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        raise RuntimeError("this process has not imported torch.distributed")
    c10d = sys.modules["torch"]._C._distributed_c10d
    rank = distributed.get_rank() if distributed.is_initialized() else int(os.environ.get("RANK", 0))
    dumps = [(prefix, getattr(c10d, name)()) for name, prefix in _RECORDERS if hasattr(c10d, name)]
    if not dumps:
        raise RuntimeError("torch %s has no Flight Recorder" % sys.modules["torch"].__version__)
    paths = []
    for prefix, dump in dumps:
        if _has_operations(dump):
            os.makedirs(folder, exist_ok=True)
            paths.append(os.path.join(folder, "%s%d" % (prefix, rank)))
            with open(paths[-1], "wb") as file:
                file.write(dump)
    if not paths:
        raise RuntimeError("the Flight Recorder has no operation: start the program with TORCH_FR_BUFFER_SIZE=2000 "
                           "(TORCH_NCCL_TRACE_BUFFER_SIZE before torch 2.8)")
    return paths
