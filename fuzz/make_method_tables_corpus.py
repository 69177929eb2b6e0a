#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes those files of fuzz/corpus/method_tables whose code stores functions into method tables.

    fuzz/make_method_tables_corpus.py

  stored        two methods: stored by address, and through a word as the global offset table has one
  stored-cut    the same, and the last instruction is not whole
  stored-other  stores behind what forgets registers, beside tables, and of no functions

fuzz_method_tables.c lays the same bytes out as data and as code.
"""

import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / 'corpus' / 'method_tables'
DATA, CODE = 0x1000, 0x100000
METHODS, WORD, NAMES, FUNCTIONS, START = 0, 0x80, 0xa0, 0x100, 0x140
RAX, RCX = 0, 1
METH_VARARGS, METH_STATIC = 1, 0x20


def relative(opcode, register, at, target):
    """LEA, MOV to and MOV from a register, with an address relative to the next instruction."""
    return struct.pack('<BBBi', 0x48, opcode, register << 3 | 5, target - (at + 7))


def code(stores):
    made = b''
    for opcode, register, target in stores:
        if isinstance(opcode, bytes):
            made += opcode
        else:
            made += relative(opcode, register, CODE + START + len(made), target)
    return made


def image(made):
    data = bytearray(START)
    struct.pack_into('<QQQQ', data, METHODS, DATA + NAMES, 0, METH_VARARGS | METH_STATIC, 0)
    struct.pack_into('<QQQQ', data, METHODS + 32, DATA + NAMES + 4, 0, METH_VARARGS, 0)
    struct.pack_into('<Q', data, WORD, DATA + METHODS)
    data[NAMES:NAMES + 8] = b'add\0exp\0'
    data[FUNCTIONS:FUNCTIONS + 2] = data[FUNCTIONS + 16:FUNCTIONS + 18] = b'\x90\xc3'
    return bytes(data) + made


LEA, LOAD, STORE = 0x8d, 0x8b, 0x89
STORED = [(LEA, RAX, CODE + FUNCTIONS), (STORE, RAX, DATA + METHODS + 8),
          (LOAD, RAX, DATA + WORD), (LEA, RCX, CODE + FUNCTIONS + 16),
          (b'\x48\x89\x48\x28', None, None), (b'\xc3' + bytes(8), None, None)]  # mov %rcx, 0x28(%rax); ret
OTHER = [(LEA, RAX, CODE + FUNCTIONS), (b'\xe8' + bytes(4), None, None), (STORE, RAX, DATA + METHODS + 8),
         (LEA, RAX, DATA + NAMES), (STORE, RAX, DATA + METHODS + 8),
         (LEA, RAX, CODE + FUNCTIONS), (STORE, RAX, DATA + METHODS + 16), (STORE, RAX, 0x7fffff00),
         (b'\x48\x89\x04\x8d' + bytes(4), None, None), (b'\x41\x58\x58' + bytes(8), None, None)]

if __name__ == '__main__':
    (FOLDER / 'stored').write_bytes(image(code(STORED)))
    (FOLDER / 'stored-cut').write_bytes(image(code(STORED[:4]) + b'\x48\x89\x88'))
    (FOLDER / 'stored-other').write_bytes(image(code(OTHER)))
