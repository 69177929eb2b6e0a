#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Small perf.data files for fuzz/corpus/import_perf: make_perf_corpus.py FOLDER

Written by hand after tools/perf/Documentation/perf.data-file-format.txt: one event (cpu-clock), a process that maps
/usr/bin/env, and samples with registers and stack (dwarf), with a chain (fp), and with a place alone (flat).
"""
import os
import struct
import sys

IP, TID, TIME, CALLCHAIN, CPU, PERIOD = 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 7, 1 << 8
REGS, STACK = 1 << 12, 1 << 13
SAMPLE_ID_ALL, FREQ = 1 << 18, 1 << 10
REGS_MASK = 0xff0fff
BASE, PID, TID_OTHER = 0x555500000000, 4711, 4712
KERNEL, USER = 0xffffffffffffff80, 0xfffffffffffffe00


def attr(sample_type):
    flags = SAMPLE_ID_ALL | FREQ
    return struct.pack("<IIQQQQQIIQQQQIiQIHHIIQQ", 1, 136, 0, 199, sample_type, 4, flags, 0, 0, 0, 0, 0,
                       REGS_MASK if sample_type & REGS else 0, 1024 if sample_type & STACK else 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def record(kind, misc, body):
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def trailer(time, tid=PID):
    return struct.pack("<IIQII", PID, tid, time, 0, 0)


def text(string):
    string = string.encode() + b"\0"
    return string + b"\0" * (-len(string) % 8)


def sample(sample_type, time, ip, tid=PID, kernel=()):
    body = struct.pack("<QIIQIIQ", ip, PID, tid, time, 1, 0, 5000000)
    if sample_type & CALLCHAIN:
        chain = ([KERNEL, *kernel] if kernel else []) + ([] if sample_type & STACK else [USER, ip, BASE + 0x3010, BASE + 0x3020])
        body += struct.pack("<Q%dQ" % len(chain), len(chain), *chain)
    if sample_type & REGS:
        regs = [0] * 20
        regs[6], regs[7], regs[8] = 0x7ffe1100, 0x7ffe1000, ip  # BP, SP, IP
        body += struct.pack("<Q20Q", 2, *regs)
    if sample_type & STACK:
        stack = struct.pack("<32Q", *(BASE + 0x3000 + 8 * i for i in range(32)))
        body += struct.pack("<Q", 1024) + stack.ljust(1024, b"\0") + struct.pack("<Q", len(stack))
    return record(9, 1 if kernel else 2, body)


def features():
    def string(value):
        value = value.encode() + b"\0"
        value += b"\0" * (-len(value) % 64)
        return struct.pack("<I", len(value)) + value
    build_id = struct.pack("<i", PID) + bytes(range(20)) + struct.pack("<I", 0) + text("/usr/bin/env")
    return {2: record(67, 2, build_id), 3: string("box"), 4: string("6.1.0"), 7: struct.pack("<II", 2, 2),
            11: struct.pack("<I", 2) + string("perf") + string("record"), 29: struct.pack("<IIQQ", 1, 1, 1700000000 * 10**9, 10**9)}


def kernel_map(start, n_bytes, offset, name):
    """As perf writes of the kernel's image (the offset is the address of _text) and of modules."""
    return record(1, 1, struct.pack("<IIQQQ", 0xffffffff, 0, start, n_bytes, offset) + text(name) + trailer(0))


def perf_data(sample_type, maps=b""):
    data = maps + record(3, 0, struct.pack("<II", PID, PID) + text("env") + trailer(0))
    data += record(10, 2, struct.pack("<IIQQQIIQQII", PID, PID, BASE, 0x9000, 0x2000, 0, 0, 0, 0, 5, 2)
                   + text("/usr/bin/env") + trailer(0))
    data += sample(sample_type, 10**9 + 3000, BASE + 0x3000, kernel=(0xffffffff81000010, 0xffffffff81000020))
    data += sample(sample_type, 10**9 + 2000, BASE + 0x3008)
    data += record(7, 0, struct.pack("<IIIIQ", PID, PID, TID_OTHER, PID, 10**9) + trailer(10**9))
    data += record(3, 0, struct.pack("<II", PID, TID_OTHER) + text("helper") + trailer(10**9 + 1, TID_OTHER))
    data += sample(sample_type, 10**9 + 4000, BASE + 0x3008, TID_OTHER)
    data += record(68, 0, b"")
    parts = features()
    attrs_at = 104
    data_at = attrs_at + 136 + 16
    at = data_at + len(data) + 16 * len(parts)
    table, bodies, bits = b"", b"", 0
    for bit in sorted(parts):
        table += struct.pack("<QQ", at + len(bodies), len(parts[bit]))
        bodies += parts[bit]
        bits |= 1 << bit
    head = b"PERFILE2" + struct.pack("<QQQQQQQQ4Q", 104, 152, attrs_at, 152, data_at, len(data), 0, 0, bits, 0, 0, 0)
    return head + attr(sample_type) + struct.pack("<QQ", 0, 0) + data + table + bodies


def main():
    common = IP | TID | TIME | CPU | PERIOD
    kinds = {"dwarf": common | CALLCHAIN | REGS | STACK, "fp": common | CALLCHAIN, "flat": common}
    for name, sample_type in kinds.items():
        with open(os.path.join(sys.argv[1], name + ".data"), "wb") as file:
            file.write(perf_data(sample_type))


if __name__ == "__main__":
    main()
