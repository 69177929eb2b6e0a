#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/remote_core and fuzz/corpus/core_file: small core files, sound and damaged.

Recipe: fuzz/make_core_corpus.py
"""
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"
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

NT_PRSTATUS, NT_PRPSINFO, NT_AUXV, NT_FILE = 1, 3, 6, 0x46494c45


def note(kind, contents, owner=b"CORE\0"):
    return (struct.pack("<III", len(owner), len(contents), kind) + owner + bytes(-len(owner) % 4) +
            contents + bytes(-len(contents) % 4))


def thread(tid, signal=0):
    return note(NT_PRSTATUS, struct.pack("<12xh18xI76x27Q8x", signal, tid, *range(100, 127)))


def who(pid, name, command):
    return note(NT_PRPSINFO, struct.pack("<24xI12x16s80s", pid, name, command))


def files(rows, n=None, page_bytes=4096):
    table = b"".join(struct.pack("<QQQ", start, end, page) for start, end, page, _ in rows)
    paths = b"".join(path + b"\0" for _, _, _, path in rows)
    return note(NT_FILE, struct.pack("<QQ", len(rows) if n is None else n, page_bytes) + table + paths)


def auxiliary(*pairs):
    return note(NT_AUXV, b"".join(struct.pack("<QQ", kind, value) for kind, value in pairs))


def told(*notes):
    """A core file of a page of memory and these notes."""
    contents = b"".join(notes)
    offset = EHDR + 2 * PHDR
    return (header(2) + program(0, offset, len(contents), 0, PT_NOTE) +
            program(0x1000, offset + len(contents), 64, 4096) + contents + text(64))


WHO = who(4242, b"python3", b"python3 train.py ")
MAPPED = [(0x400000, 0x401000, 0, b"/usr/bin/python3"), (0x7f0000, 0x7f2000, 1, b"/usr/lib/libc.so.6 (deleted)")]
SAID = {
    "plain": told(thread(4242, 11), WHO, auxiliary((3, 0x400040), (33, 0x7fff0000), (0, 0)), files(MAPPED),
                  *(thread(4243 + i) for i in range(5))),
    "no_thread": told(WHO, files(MAPPED)),
    "short_thread": told(note(NT_PRSTATUS, bytes(100))),
    "short_who": told(thread(1), note(NT_PRPSINFO, bytes(100))),
    "too_many_files": told(thread(1), files(MAPPED, n=3)),
    "countless_files": told(thread(1), files(MAPPED, n=2 ** 61)),
    "huge_pages": told(thread(1), files([(1, 2, 3, b"/a")], page_bytes=2 ** 63)),
    "files_twice": told(thread(1), files(MAPPED), files(MAPPED)),
    "path_without_end": told(thread(1), note(NT_FILE, struct.pack("<QQQQQ", 1, 4096, 1, 2, 0) + b"/no/end")),
    "odd_auxiliary": told(thread(1), note(NT_AUXV, bytes(range(23)))),
    "of_another": told(note(NT_PRSTATUS, bytes(336), b"LINUX\0"), thread(7)),
    "notes_past_the_file": header(1) + program(0, EHDR + PHDR, 2 ** 40, 0, PT_NOTE),
}

if __name__ == "__main__":
    for folder, contents_by_name in (("remote_core", FILES), ("core_file", SAID)):
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
        for name, contents in contents_by_name.items():
            (CORPUS / folder / name).write_bytes(contents)
