#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/cache: files of the cache of names (symbolize/cache_entry.h), sound and damaged.

    fuzz/make_cache_corpus.py

  whole       symbols, methods, internal functions, an index and the debug sections of corpus/symbols/dwarf5
  empty       a head alone
  no_index    debug sections without an index of units
  bad_names   names that begin behind the strings
  bad_order   tables out of order
  bad_units   an index that leads into the midst of entries, and behind the end
  bad_parts   parts that lie outside the file, overlap, or are no whole elements
  packed      debug sections that claim to be packed
"""

import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / 'corpus'
SYMBOLS, METHODS, INTERNAL, UNITS, RANGES, STRINGS, IMAGE = range(7)
HEAD_BYTES, KEY_BYTES, STEP, PAGE = 352, 184, 32, 4096
SHF_COMPRESSED = 0x800


def sections(elf):
    """Name -> contents of an ELF file."""
    at, = struct.unpack_from('<Q', elf, 40)
    n, names = struct.unpack_from('<HH', elf, 60)
    headers = [struct.unpack_from('<IIQQQQIIQQ', elf, at + 64 * i) for i in range(n)]

    def name(offset):
        start = headers[names][4] + offset
        return elf[start:elf.index(b'\0', start)].decode()
    return {name(h[0]): elf[h[4]:h[4] + h[5]] for h in headers[1:]}


def image(parts, flags=0):
    """As fill_headers() in symbolize/unpack.c makes it."""
    names = b'\0' + b''.join(name.encode() + b'\0' for name in parts) + b'.shstrtab\0'
    out, headers, name_at = bytearray(64), [bytes(64)], 1
    for name, contents in [*parts.items(), ('.shstrtab', names)]:
        kind = 3 if name == '.shstrtab' else 1
        headers.append(struct.pack('<IIQQQQIIQQ', name_at, kind, flags if kind == 1 else 0, 0, len(out), len(contents), 0, 0, 1, 0))
        out += contents + bytes(-len(contents) % 16)
        name_at += len(name) + 1
    struct.pack_into('<16sHHIQQQIHHHHHH', out, 0, b'\x7fELF\x02\x01\x01', 3, 62, 1, 0, 0, len(out), 0, 64, 0, 0, 64, len(headers),
                     len(headers) - 1)
    return bytes(out) + b''.join(headers)


def entry(parts, table=None):
    """A file; @table: where parts are said to be, instead of where they are. The target sets size and checksum."""
    out, places = bytearray(HEAD_BYTES), {}
    for part in sorted(parts):
        out += bytes(-len(out) % (PAGE if part == IMAGE else STEP))
        places[part] = (len(out), len(parts[part]))
        out += parts[part]
    places.update(table or {})
    struct.pack_into('<8sIIQQ', out, 0, b'prbNames', 2, 1, len(out), 0)
    for part in range(7):
        struct.pack_into('<QQ', out, 32 + KEY_BYTES + 16 * part, *places.get(part, (0, 0)))
    return bytes(out)


def symbol(address, name, size=16, parent=0):
    return struct.pack('<QQQIIBBB5x', address, parent, parent, size, name, 0, 0, 1)


def method(address, owner, member, kind=0):
    return struct.pack('<QIIBBBB4x', address, owner, member, kind, 0, 0, 0)


def main():
    debug = {name: contents for name, contents in sections((FOLDER / 'symbols' / 'dwarf5').read_bytes()).items()
             if name.startswith('.debug_') and name not in ('.debug_aranges', '.debug_loclists')}
    header_bytes = 12  # of a unit of DWARF 5
    whole = {
        SYMBOLS: symbol(0x1000, 1) + symbol(0x1010, 7, 0) + symbol(0x1020, 1, 16, 0x1000) + symbol(0x1030, 1, 16, 2**64 - 1),
        METHODS: method(0x1000, 1, 7) + method(0x1010, 0, 7, 1) + method(0x1020, 1, 0, 3),
        INTERNAL: struct.pack('<2Q', 0x1000, 0x1040),
        UNITS: struct.pack('<Q', header_bytes),
        RANGES: struct.pack('<3Q', 0x1000, 0x1100, 0),
        STRINGS: b'\0outer\0inner\0',
        IMAGE: image(debug),
    }
    far = struct.pack('<I', 0xffffffff)
    files = {
        'whole': entry(whole),
        'empty': entry({}),
        'no_index': entry({part: whole[part] for part in (STRINGS, IMAGE)}),
        'bad_names': entry({**whole, SYMBOLS: symbol(0x1000, 13) + symbol(0x1010, 1), METHODS: method(1, 13, 1)}),
        'bad_order': entry({**whole, SYMBOLS: symbol(0x1010, 1) + symbol(0x1000, 1), METHODS: method(2, 1, 1) + method(1, 1, 1),
                            INTERNAL: struct.pack('<2Q', 2, 1), RANGES: struct.pack('<6Q', 9, 12, 0, 1, 4, 0)}),
        'bad_units': entry({**whole, UNITS: struct.pack('<4Q', 13, 40, 0, 2**63), RANGES: b''.join(
            struct.pack('<3Q', 0x1000 + 0x10 * i, 0x1010 + 0x10 * i, i) for i in range(4))}),
        'bad_unit_number': entry({**whole, RANGES: struct.pack('<3Q', 0x1000, 0x1100, 1)}),
        'bad_strings': entry({**whole, STRINGS: b'\0outer\0inner'}),
        'bad_parts': entry(whole, {SYMBOLS: (HEAD_BYTES, 41)}),
        'bad_overlap': entry(whole, {METHODS: (HEAD_BYTES, 24), INTERNAL: (HEAD_BYTES, 48), STRINGS: (HEAD_BYTES, 2**64 - 1)}),
        'bad_offset': entry(whole, {IMAGE: (2**64 - PAGE, PAGE)}),
        'packed': entry({**whole, IMAGE: image(debug, SHF_COMPRESSED)}),
        'cut_image': entry({**whole, IMAGE: whole[IMAGE][:-70]}),
        'other_section': entry({**whole, IMAGE: image({**debug, '.gnu_debugaltlink': b'/dev/zero\0' + far})}),
    }
    (FOLDER / 'cache').mkdir(exist_ok=True)
    for name, contents in files.items():
        (FOLDER / 'cache' / name).write_bytes(contents)


if __name__ == '__main__':
    main()
