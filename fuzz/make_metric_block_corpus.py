#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/metric_block: blocks of metrics as src/store/metric_block.h has them, good ones and such as no recorder writes."""
import os
import struct
import zlib

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "metric_block")


def number(value):
    out = bytearray()
    while True:
        out.append(value & 0x7f | (0x80 if value > 0x7f else 0))
        value >>= 7
        if value == 0:
            return bytes(out)


def signed(value):
    return number(value << 1 if value >= 0 else -value * 2 - 1)


def value_of(value):
    if value is None:
        return b"\0"
    if isinstance(value, int):
        return b"\1" + signed(value)
    if isinstance(value, float):
        return b"\2" + struct.pack("<d", value)
    return b"\3" + number(len(value)) + value.encode()


def frame(content):
    """A Zstandard frame with one raw block. Source: RFC 8878, 3.1.1."""
    assert len(content) < 256
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(content)]) + struct.pack("<I", 1 | len(content) << 3)[:3] + content


def block(rows):
    """@rows: (timestamp, [distance, value, ...]) each"""
    content, before = b"", 0
    for timestamp, values in rows:
        bits, = struct.unpack("<q", struct.pack("<d", timestamp))
        content += signed(bits - before) + b"".join(map(value_of, values))
        before = bits
    body = number(len(rows)) + number(len(rows[0][1])) + number(len(content)) + frame(content)
    return b"\1" + struct.pack("<I", zlib.crc32(body)) + body


SEEDS = {
    "good": block([(1.5, [0, 7, 100, 0.5, "a"]), (1.5, [0, 8, None, None, "b"]), (2.5, [2, 0, 10, 0, 0]), (2.5, [2, 0, 5, 1.5, "c"])]),
    "one": block([(1e9, [0, 1])]),
    "no_columns": block([(1.0, [0]), (2.0, [1])]),
    "too_far": block([(1.0, [0, 1]), (2.0, [2, 1])]),
    "backwards": block([(1.0, [0, 1]), (2.0, [-1, 1])]),
    "text_and_number": block([(1.0, [0, "a"]), (2.0, [1, 5])]),
    "distance_is_text": block([(1.0, ["a", 1])]),
    "time_zero": block([(0.0, [0, 1])]),
    "time_infinite": block([(float("inf"), [0, 1])]),
    "wraps": block([(1.0, [0, 2 ** 63 - 1]), (2.0, [1, 2 ** 63 - 1])]),
    "empty": b"\1\0\0\0\0",
}

if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    for name, data in SEEDS.items():
        with open(os.path.join(FOLDER, name), "wb") as file:
            file.write(data)
