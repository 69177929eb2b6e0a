#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/go_table, and the tables of tests/unit/test_go_table.c: function tables as Go's linker writes them.

    fuzz/make_go_table_corpus.py

  go1_16, go1_18, go1_20   two functions, one with another one inlined into it, in each layout
  zero_text                the header does not have the start of the code, as in position-independent programs
  no_module_data           trees of inlined calls cannot be found
  circle                   the inlined call leads to itself
  many                     more functions than there are bytes
  cut_*                    a table that ends within each of its parts

Layouts: Go 1.16, 1.19 and 1.20, src/runtime/symtab.go and runtime2.go.
"""
import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / 'corpus' / 'go_table'
DATA, CODE = 0x10000, 0x401000
MAGICS = {16: 0xfffffffa, 18: 0xfffffff0, 20: 0xfffffff1}
OUTER_BYTES, INNER_BYTES = 64, 32


def varint(value):
    made = b''
    while value >= 0x80:
        made += bytes([value & 0x7f | 0x80])
        value >>= 7
    return made + bytes([value])


def by_pc(pairs):
    """(value, bytes of code) ... as a table by PC."""
    made, last = b'', -1
    for value, length in pairs:
        change = value - last
        made += varint((change << 1) ^ (change >> 63) if change >= 0 else ((-change) << 1) - 1) + varint(length)
        last = value
    return made + b'\0'


def table(layout, text=CODE, module_data=True, call_at=8, n_functions=2):
    names, offsets = b'\0', {}
    for name in ('main.outer', 'main.inner', 'main.other'):
        offsets[name] = len(names)
        names += name.encode() + b'\0'
    files = b'\0/src/outer.go\0/src/inner.go\0'
    units = struct.pack('<3I', 1, 15, 0xffffffff)
    tables, at = b'\0', {}
    for key, pairs in (('file', [(0, 16), (1, 16), (0, 32)]), ('line', [(10, 16), (77, 16), (12, 32)]),
                       ('inlined', [(-1, 16), (0, 16), (-1, 32)]), ('other file', [(0, 32)]), ('other line', [(30, 32)])):
        at[key] = len(tables)
        tables += by_pc(pairs)
    if layout == 20:
        tree = struct.pack('<B3xiii', 0, offsets['main.inner'], call_at, 70)
    else:
        tree = struct.pack('<hBxiiii', -1, 0, 0, 11, offsets['main.inner'], call_at)

    def record(entry, name, file, line, inlined):
        head = struct.pack('<Q' if layout == 16 else '<I', entry)
        n_items = 3 if inlined else 0
        made = head + struct.pack('<iiIIIIII', offsets[name], 0, 0, 0, file, line, n_items, 0)
        made += struct.pack('<i', 1) if layout == 20 else b''
        made += struct.pack('<BBBB', 0, 0, 0, 4 if inlined else 0)
        if inlined:
            made += struct.pack('<3I', 0, 0, inlined)
            if layout == 16:
                made += b'\0' * (-len(made) % 8) + struct.pack('<4Q', 0, 0, 0, TREE)
            else:
                made += struct.pack('<4I', 0xffffffff, 0xffffffff, 0xffffffff, 0)
        return made + b'\0' * (-len(made) % 8)

    parts = [names, units, files, tables]
    head_bytes = 72 if layout != 16 else 64
    starts, offset = [], head_bytes
    for part in parts:
        starts.append(offset)
        offset += len(part) + -len(part) % 8
    width = 'Q' if layout == 16 else 'I'
    size = struct.calcsize(width)
    list_bytes = (2 * 2 + 1) * size + -((2 * 2 + 1) * size) % 8
    relative = layout != 16
    base = 0 if relative else CODE
    global TREE
    TREE = 0
    for _ in range(2):  # a tree's address depends on the records' size
        first = record(base, 'main.outer', at['file'], at['line'], at['inlined'])
        second = record(base + OUTER_BYTES, 'main.other', at['other file'], at['other line'], 0)
        TREE = DATA + offset + list_bytes + len(first) + len(second)
    functions = struct.pack('<5' + width, base, list_bytes, base + OUTER_BYTES, list_bytes + len(first),
                            base + OUTER_BYTES + INNER_BYTES)
    header = struct.pack('<IBBBBQQ', MAGICS[layout], 0, 0, 1, 8, n_functions, 2)
    header += struct.pack('<Q', text) if relative else b''
    header += struct.pack('<5Q', *(starts + [offset]))
    made = header
    for part in parts:
        made += part + b'\0' * (-len(part) % 8)
    made += functions + b'\0' * (-len(functions) % 8) + first + second
    assert DATA + len(made) == TREE
    made += tree + b'\0' * (-len(tree) % 8)
    if module_data:
        data = bytearray(512)
        struct.pack_into('<QQ', data, 0, DATA, DATA + starts[0])
        struct.pack_into('<Q', data, 320 if layout == 20 else 304, TREE)
        made += data
    return made


def elf(data):
    """An ELF file with one writable segment, which is its section .gopclntab."""
    names = b'\0.gopclntab\0.shstrtab\0'
    n_head = 64 + 56 + 3 * 64 + len(names)
    n_head += -n_head % 8
    made = struct.pack('<16sHHIQQQIHHHHHH', b'\x7fELF\2\1\1', 2, 62, 1, 0, 64, 64 + 56, 0, 64, 56, 1, 64, 3, 2)
    made += struct.pack('<IIQQQQQQ', 1, 6, n_head, DATA, DATA, len(data), len(data), 8)
    made += bytes(64)
    made += struct.pack('<IIQQQQIIQQ', 1, 1, 2, DATA, n_head, len(data), 0, 0, 8, 0)
    made += struct.pack('<IIQQQQIIQQ', 12, 3, 0, 0, 64 + 56 + 3 * 64, len(names), 0, 0, 1, 0)
    made += names
    return made + b'\0' * (n_head - len(made)) + data


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    whole = table(18)
    made = {'go1_%d' % layout: table(layout) for layout in MAGICS}
    made.update({
        'zero_text': table(18, text=0),
        'no_module_data': table(18, module_data=False),
        'circle': table(20, call_at=20),
        'many': table(18, n_functions=1 << 22),
    })
    made = {name + '.elf': elf(data) for name, data in made.items()}
    for at in range(0, len(whole) - 512, 24):
        made['cut_%03d' % at] = whole[:at]
    for name, data in made.items():
        (FOLDER / name).write_bytes(data)


if __name__ == '__main__':
    main()
