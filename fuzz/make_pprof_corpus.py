#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A small profile as pprof's profile.proto has it: make_pprof_corpus.py OUTPUT [--plain]

Encoded by hand, field by field, from the comments in proto/profile.proto; packed with gzip unless --plain.
"""
import gzip
import sys


def varint(value):
    out = b""
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def bytes_of(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def packed(field, values):
    return bytes_of(field, b"".join(map(varint, values)))


STRINGS = ["", "samples", "count", "cpu", "nanoseconds", "main.main", "/src/main.go", "main.work", "/src/work.go",
           "runtime.memmove", "/bin/prog", "thread_id", "helper", "/src/train.py", "abcdef0123"]
AT = {text: i for i, text in enumerate(STRINGS)}


def profile():
    out = bytes_of(1, number(1, AT["samples"]) + number(2, AT["count"]))
    out += bytes_of(1, number(1, AT["cpu"]) + number(2, AT["nanoseconds"]))
    # outermost last: main.main <- main.work, into which runtime.memmove is inlined
    out += bytes_of(2, packed(1, [2, 1]) + packed(2, [7, 70000000]))
    out += bytes_of(2, packed(1, [1]) + packed(2, [1, 10000000]))
    out += bytes_of(2, number(1, 3) + number(1, 1) + number(2, 2) + number(2, 20000000)
                    + bytes_of(3, number(1, AT["thread_id"]) + number(3, 77)))
    out += bytes_of(2, packed(1, [4, 1]) + packed(2, [1, 10000000]))
    out += bytes_of(3, number(1, 1) + number(2, 0x400000) + number(3, 0x500000) + number(5, AT["/bin/prog"])
                    + number(6, AT["abcdef0123"]))
    out += bytes_of(4, number(1, 1) + number(2, 1) + number(3, 0x401000) + bytes_of(4, number(1, 1) + number(2, 12)))
    out += bytes_of(4, number(1, 2) + number(2, 1) + number(3, 0x402000)
                    + bytes_of(4, number(1, 3) + number(2, 33)) + bytes_of(4, number(1, 2) + number(2, 21)))
    out += bytes_of(4, number(1, 3) + bytes_of(4, number(1, 4) + number(2, 5)))
    out += bytes_of(4, number(1, 4) + number(2, 1) + number(3, 0x400123))
    out += bytes_of(5, number(1, 1) + number(2, AT["main.main"]) + number(4, AT["/src/main.go"]) + number(5, 10))
    out += bytes_of(5, number(1, 2) + number(2, AT["main.work"]) + number(4, AT["/src/work.go"]) + number(5, 20))
    out += bytes_of(5, number(1, 3) + number(2, AT["runtime.memmove"]))
    out += bytes_of(5, number(1, 4) + number(2, AT["helper"]) + number(4, AT["/src/train.py"]))
    for text in STRINGS:
        out += bytes_of(6, text.encode())
    return out + number(9, 1700000000000000000) + number(10, 2000000000)


def main():
    plain = "--plain" in sys.argv
    with open(sys.argv[1], "wb") as file:
        file.write(profile() if plain else gzip.compress(profile(), mtime=0))


if __name__ == "__main__":
    main()
