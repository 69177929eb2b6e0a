#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/cfi: small shared objects with CFI of every kind, and stacks over them.

Recipe: fuzz/make_cfi_corpus.py, with cc and objcopy on the PATH. The layout of
an input stands at the top of fuzz_cfi.c.
"""
import pathlib
import struct
import subprocess
import tempfile

MAPPED_AT = 0x10000000
STACK_AT = 0x7ffd00000000
STACK_BYTES = 1024
CORPUS = pathlib.Path(__file__).parent / "corpus" / "cfi"

# Name, directives of each function; four bytes of code each.
OBJECTS = {
    "plain": [".cfi_def_cfa_offset 48\n.cfi_offset 3, -24\n.cfi_offset 12, -16",
              ".cfi_def_cfa 6, 16\n.cfi_offset 6, -16", ".cfi_undefined 16"],
    "states": ["nop\n.cfi_remember_state\n.cfi_def_cfa_offset 16\nnop\n.cfi_restore_state\n.cfi_offset 6, -16",
               ".cfi_register 16, 5", ".cfi_same_value 3\n.cfi_undefined 6"],
    "signal": [".cfi_signal_frame\n.cfi_escape 0x0f, 3, 0x77, 0xa0, 0x00\n.cfi_escape 0x10, 16, 2, 0x77, 16",
               ".cfi_def_cfa 6, 16\n.cfi_offset 6, -16"],
    "memory": [".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n.cfi_escape 0x10, 6, 2, 0x76, 0\n"
               ".cfi_escape 0x10, 3, 2, 0x76, 0x70", ".cfi_def_cfa 3, 64"],
    "expressions": [".cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22",
                    ".cfi_escape 0x16, 3, 5, 0x9c, 0x23, 0x10, 0x1f, 0x20\n.cfi_escape 0x14, 12, 2",
                    ".cfi_offset 3, -80000\n.cfi_def_cfa 10, 0"],
    "hanging": [".cfi_escape 0x10, 3, 12, 0x73, 0, 0x13, 0x73, 0, 0x13, 0x73, 0, 0x13, 0x73, 0, 0x13",
                ".cfi_def_cfa 3, 64"],
    "personality": [".cfi_personality 0x1b, f0\n.cfi_lsda 0x1b, f0\n.cfi_def_cfa_offset 16",
                    ".cfi_def_cfa_offset 32"],
}


def source(functions, sections):
    parts = [".cfi_sections %s\n.text\n" % sections]
    for i, directives in enumerate(functions):
        parts.append(".globl f%d\n.hidden f%d\n.type f%d, @function\nf%d:\n.cfi_startproc\n%s\nnop\nnop\nnop\nnop\n"
                     ".cfi_endproc\n.size f%d, . - f%d\n" % (i, i, i, i, directives, i, i))
    return "".join(parts) + '.section .note.GNU-stack,"",@progbits\n'


def build(functions, sections):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "a.S").write_text(source(functions, sections))
        subprocess.run(["cc", "-shared", "-nostdlib", "-Wl,-z,noseparate-code", "-Wl,-z,norelro",
                        "-Wl,--hash-style=gnu", "-o", "a.so", "a.S"], cwd=folder, check=True)
        subprocess.run(["objcopy", "--strip-unneeded", "-R", ".comment", "a.so"], cwd=folder, check=True)
        return (folder / "a.so").read_bytes()


def symbols(image):
    """Where f0, f1... are: the offsets of runs of four nops will do, in order."""
    found, at = [], image.find(b"\x90" * 4)
    while at >= 0:
        found.append(at)
        at = image.find(b"\x90" * 4, at + 4)
    return found


def stack(places):
    """Return addresses all over, so that most rows lead on; frame pointers among them."""
    words = []
    for i in range(STACK_BYTES // 8):
        if i % 3 == 2:
            words.append(STACK_AT + 8 * ((i + 5) % (STACK_BYTES // 8)))
        else:
            words.append(MAPPED_AT + places[i // 2 % len(places)] + 2)
    return struct.pack("<%dQ" % len(words), *words)


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, functions in OBJECTS.items():
        for sections in (".eh_frame", ".debug_frame") if name == "plain" else (".eh_frame",):
            image = build(functions, sections)
            places = symbols(image)
            head = struct.pack("<2I", places[0] + 1, places[-1] + 1)
            file = CORPUS / (name + sections.replace(".eh_frame", "").replace(".", "-"))
            file.write_bytes(head + stack(places) + image)
            print(file.name, len(image), [hex(p) for p in places])


if __name__ == "__main__":
    main()
