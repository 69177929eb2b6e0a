#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes fuzz/corpus/seccomp: a system call (struct seccomp_data), then the instructions of a filter (struct sock_filter)."""
import os
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "seccomp")
X86_64, SOCKET, ALLOW, KILL, ERRNO = 0xC000003E, 41, 0x7FFF0000, 0x80000000, 0x00050000
LD_ABS, LD_IMM, LDX_IMM, LD_MEM, ST, RET, RET_A, JA, JEQ, DIV_X, LSH, AND, OR, NEG, TAX, TXA = (
    0x20, 0x00, 0x01, 0x60, 0x02, 0x06, 0x16, 0x05, 0x15, 0x3C, 0x64, 0x54, 0x44, 0x84, 0x07, 0x87)


def call(number, *arguments):
    return struct.pack("=iIQ6Q", number, X86_64, 0x7F0000000000, *(arguments + (0,) * (6 - len(arguments))))


def code(*instructions):
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def one(operation, k=0, true=0, false=0):
    return operation, true, false, k


CORPUS = {
    "kills": call(SOCKET, 1) + code(one(LD_ABS, 0), one(JEQ, SOCKET, 0, 1), one(RET, KILL), one(RET, ALLOW)),
    "allows": call(39) + code(one(LD_ABS, 0), one(JEQ, SOCKET, 0, 1), one(RET, KILL), one(RET, ALLOW)),
    "calculates": call(SOCKET, 1 << 40 | 7) + code(
        one(LD_ABS, 16), one(ST, 3), one(TAX), one(LD_MEM, 3), one(LSH, 4), one(NEG), one(AND, 0xFF), one(OR, ERRNO), one(TXA), one(RET_A)),
    "divides_by_zero": call(1) + code(one(LD_IMM, 8), one(LDX_IMM, 0), one(DIV_X), one(RET, ALLOW)),
    "jumps_out": call(1) + code(one(JA, 0xFFFFFFFF), one(RET, ALLOW)),
    "reads_outside": call(1) + code(one(LD_ABS, 64), one(RET, ALLOW)),
    "memory_outside": call(1) + code(one(ST, 16), one(RET, ALLOW)),
    "no_end": call(1) + code(one(LD_IMM, 8)),
    "no_code": call(1),
    "half": (call(1) + code(one(RET, ALLOW)))[:-3],
}

os.makedirs(HERE, exist_ok=True)
for name, content in CORPUS.items():
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(content)
