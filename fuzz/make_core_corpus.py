#!/usr/bin/env python3
"""Makes fuzz/corpus/remote_core: small core files, sound and damaged.

Recipe: fuzz/make_core_corpus.py
"""
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus" / "remote_core"
ET_CORE, PT_LOAD, PT_NOTE, PN_XNUM = 4, 1, 4, 0xffff
EHDR, PHDR, SHDR = 64, 56, 64


def header(n_headers, phoff=EHDR, shoff=0, e_type=ET_CORE, elf_class=2, order=1):
    ident = b"\x7fELF" + bytes([elf_class, order, 1]) + bytes(9)
    return ident + struct.pack("<HHIQQQIHHHHHH", e_type, 62, 1, 0, phoff, shoff, 0, EHDR, PHDR, n_headers, SHDR, 0, 0)


def program(address, offset, n_file, n_memory=None, kind=PT_LOAD):
    return struct.pack("<IIQQQQQQ", kind, 6, offset, address, 0, n_file, n_file if n_memory is None else n_memory, 1)


def text(n):
    return bytes(1 + i % 251 for i in range(n))


def core(programs, n_bytes=512, **how):
    return header(len(programs), **how) + b"".join(programs) + text(n_bytes)


def counted_in_section(programs):
    section = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, len(programs), 0, 0)
    return header(PN_XNUM, phoff=EHDR + SHDR, shoff=EHDR) + section + b"".join(programs) + text(256)


DATA = EHDR + 4 * PHDR
FOUR = [program(0x7000, DATA, 128), program(0x1000, DATA + 128, 128), program(0x7080, DATA + 256, 64, 4096),
        program(0, DATA + 320, 64, kind=PT_NOTE)]
FILES = {
    "plain": core(FOUR),
    "cut": core(FOUR)[:DATA + 200],
    "headers_cut": core(FOUR)[:EHDR + 2 * PHDR + 3],
    "overlapping": core([program(0x1000, DATA, 128), program(0x107f, DATA, 128)]),
    "at_the_end": core([program(2 ** 64 - 64, DATA, 64), program(2 ** 64 - 128, DATA, 64)]),
    "past_the_end": core([program(2 ** 64 - 64, DATA, 128, 2 ** 64 - 1)]),
    "past_the_file": core([program(0x1000, 2 ** 63 - 1, 128), program(0x2000, DATA, 2 ** 64 - 1, 2 ** 64 - 1)]),
    "not_dumped": core([program(0x1000, DATA, 0, 4096), program(0x2000, DATA, 64)]),
    "no_segments": core([]),
    "counted_in_section": counted_in_section(FOUR[:2]),
    "no_core": core(FOUR, e_type=3),
    "of_32_bits": core(FOUR, elf_class=1),
    "other_order": core(FOUR, order=2),
}

if __name__ == "__main__":
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, contents in FILES.items():
        (CORPUS / name).write_bytes(contents)
