#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the bombs of fuzz/corpus/symbols: small ELF files whose names would take all memory, or for ever.

    fuzz/make_symbols_corpus.py

  bomb_sections  as many packed sections as libdw knows, all of the same 60 KB, each 60 MB unpacked
  bomb_units     a packed .debug_info of five million empty units, each of which libdw keeps 250 bytes for
  bomb_ranges    thousands of units that refer to one list of four million empty ranges
  bomb_abbrevs   thousands of units whose only entry has the last of a hundred thousand abbreviations
  bomb_symbols   a symbol table whose names all lie in one long string, and stand at one address
"""

import pathlib
import struct
import zlib

FOLDER = pathlib.Path(__file__).resolve().parent / 'corpus' / 'symbols'
MB = 1 << 20
ELF_BYTES, SEGMENT_BYTES = 64, 56
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB = 1, 2, 3
SHF_EXECINSTR, SHF_ALLOC, SHF_COMPRESSED = 4, 2, 0x800
DW_TAG_compile_unit, DW_AT_ranges, DW_FORM_sec_offset = 0x11, 0x55, 0x17
CODE_AT, CODE_BYTES = 0x1000, 64

LIBDW_SECTIONS = ['.debug_info', '.debug_types', '.debug_abbrev', '.debug_addr', '.debug_aranges', '.debug_line', '.debug_line_str',
                  '.debug_frame', '.debug_loc', '.debug_loclists', '.debug_pubnames', '.debug_str', '.debug_str_offsets',
                  '.debug_macinfo', '.debug_macro', '.debug_ranges', '.debug_rnglists']


def packed(contents):
    """A section of SHF_COMPRESSED: its header, and what zlib makes of the contents."""
    return struct.pack('<IIQQ', 1, 0, len(contents), 1) + zlib.compress(contents, 9)


def section(name, contents, flags=0, kind=SHT_PROGBITS, link=0, entry_bytes=0):
    return {'name': name, 'contents': contents, 'flags': flags, 'kind': kind, 'link': link, 'entry_bytes': entry_bytes}


def elf(sections):
    """A shared object of one segment. Sections with the same contents (the same object) are the same bytes of the file."""
    sections = [section('.text', b'\xc3' * CODE_BYTES, SHF_EXECINSTR | SHF_ALLOC)] + sections
    names = b'\0' + b''.join(s['name'].encode() + b'\0' for s in sections) + b'.shstrtab\0'
    sections.append(section('.shstrtab', names, kind=SHT_STRTAB))
    image = bytearray(CODE_AT)
    offsets, headers, name_at = {}, [bytes(64)], 1
    for s in sections:
        at = offsets.setdefault(id(s['contents']), len(image))
        if at == len(image):
            image += s['contents'] + bytes(-len(s['contents']) % 16)
        headers.append(struct.pack('<IIQQQQIIQQ', name_at, s['kind'], s['flags'], CODE_AT if s['name'] == '.text' else 0, at,
                                   len(s['contents']), s['link'], 0, 1, s['entry_bytes']))
        name_at += len(s['name']) + 1
    struct.pack_into('<16sHHIQQQIHHHHHH', image, 0, b'\x7fELF\x02\x01\x01', 3, 62, 1, 0, ELF_BYTES, len(image), 0, ELF_BYTES,
                     SEGMENT_BYTES, 1, 64, len(headers), len(headers) - 1)
    struct.pack_into('<IIQQQQQQ', image, ELF_BYTES, 1, 5, CODE_AT, CODE_AT, CODE_AT, CODE_BYTES, CODE_BYTES, 0x1000)
    return bytes(image) + b''.join(headers)


def unit(entry):
    """One of DWARF 4, without anything but its first entry."""
    body = struct.pack('<HIB', 4, 0, 8) + entry
    return struct.pack('<I', len(body)) + body


def abbreviation(code, attributes=b''):
    return leb128(code) + leb128(DW_TAG_compile_unit) + b'\0' + attributes + b'\0\0'


def leb128(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def debug(name, contents):
    return section(name, packed(contents), SHF_COMPRESSED)


def bomb_sections():
    zeros = packed(bytes(60 * MB))
    return elf([section(name, zeros, SHF_COMPRESSED) for name in LIBDW_SECTIONS])


def bomb_units():
    one = unit(leb128(1))
    return elf([debug('.debug_info', one * (60 * MB // len(one))), debug('.debug_abbrev', abbreviation(1) + b'\0')])


def bomb_ranges():
    one = unit(leb128(1) + struct.pack('<I', 0))
    attributes = leb128(DW_AT_ranges) + leb128(DW_FORM_sec_offset)
    return elf([debug('.debug_info', one * 20000), debug('.debug_abbrev', abbreviation(1, attributes) + b'\0'),
                debug('.debug_ranges', struct.pack('<QQ', 1, 1) * (60 * MB // 16))])


def bomb_abbrevs():
    n = 100000
    table = b''.join(abbreviation(code) for code in range(1, n + 1)) + b'\0'
    return elf([debug('.debug_info', unit(leb128(n)) * 20000), debug('.debug_abbrev', table)])


def bomb_symbols():
    n, text = 120000, b'\0' + b'a' * (8 * MB) + b'\0'
    symbols = bytes(24) + b''.join(struct.pack('<IBBHQQ', 1 + i, 0x12, 0, 1, CODE_AT, 8) for i in range(n))
    return elf([section('.symtab', packed(symbols), SHF_COMPRESSED, SHT_SYMTAB, 3, 24),
                section('.strtab', packed(text), SHF_COMPRESSED, SHT_STRTAB)])


def main():
    for make in (bomb_sections, bomb_units, bomb_ranges, bomb_abbrevs, bomb_symbols):
        contents = make()
        (FOLDER / make.__name__).write_bytes(contents)
        print(f'{make.__name__}: {len(contents):,} bytes')


if __name__ == '__main__':
    main()
