#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes fuzz/corpus/sample_ring: rings as an agent writes them, and broken ones (src/agent/sample_ring.h)."""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
DATA_BYTES = 1 << 19
MARK = 0x50790000
SIZES = {"python": 152, "entry": 104}


def commit(position):
    return (position + 1) * 0x9e3779b97f4a7c15 % (1 << 64)


def python(n_entries):
    """struct python_record with that many entries."""
    head = struct.pack("<4IQ2IQ4I", 0, MARK, 7, 7, 0, 0, 0, 1, n_entries, 1, 0, 0)
    return head.ljust(SIZES["python"], b"\1") + b"\2" * (n_entries * SIZES["entry"])


def sample(position, frames=b"", stack=b"", **changes):
    """struct sample_record with what follows it."""
    n_bytes = (336 + len(frames) + len(stack) + 15) // 16 * 16
    values = dict(commit=commit(position), n_bytes=n_bytes, kind=1, tid=42, python_bytes=len(frames), stack_bytes=len(stack))
    values.update(changes)
    head = struct.pack("<QIIQQiIII", values["commit"], values["n_bytes"], values["kind"], 1000, 10, values["tid"], 0,
                       values["python_bytes"], values["stack_bytes"])
    return (head.ljust(336, b"\3") + frames + stack).ljust(n_bytes, b"\0")


def ring(*records, head=None, tail=0):
    data = b"".join(records)
    return struct.pack("<QQ", len(data) if head is None else head, tail) + data


def two():
    first = sample(0, python(2), b"s" * 64)
    return ring(first, sample(len(first), b"", b"t" * 8))


CASES = {
    "empty": ring(),
    "two": two(),
    "padding": ring(struct.pack("<QII", commit(0), 32, 0) + bytes(16), sample(32, python(1), b"u" * 16)),
    "in_the_making": ring(sample(0, python(1), commit=0)),
    "head_too_far": ring(sample(0), head=DATA_BYTES + 16),
    "head_odd": ring(sample(0), head=8),
    "record_too_small": ring(sample(0, n_bytes=0)),
    "record_too_large": ring(sample(0, n_bytes=1 << 30)),
    "record_beyond_end": ring(b"", head=DATA_BYTES, tail=DATA_BYTES - 16),
    "stack_too_large": ring(sample(0, python(1), b"v" * 8, stack_bytes=0xfffffff8)),
    "python_too_large": ring(sample(0, python(1), python_bytes=0xffffffff)),
    "entries_too_many": ring(sample(0, python(3)[:SIZES["python"] + SIZES["entry"]])),
    "no_kind": ring(sample(0, kind=7)),
}


def main():
    folder = os.path.join(HERE, "corpus", "sample_ring")
    os.makedirs(folder, exist_ok=True)
    for name, content in CASES.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main()
