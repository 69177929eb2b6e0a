#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/kernel_types: descriptions of types (BTF) as a kernel has them.

    fuzz/make_kernel_types_corpus.py

  types       a function, and a structure with a nameless union and structure inside
  every_kind  a type of each kind before them
  circle      a nameless structure that contains itself
  many        a structure of more members than there are words
  cut_*       a description that ends within each of its parts
  strings     strings that do not end

Layout: Documentation/bpf/btf.rst, Linux 6.18.
"""
import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / "corpus" / "kernel_types"
INT, ARRAY, STRUCT, UNION, ENUM, FUNC, FUNC_PROTO, VAR, DATASEC, DECL_TAG, ENUM64 = 1, 3, 4, 5, 6, 12, 13, 14, 15, 17, 19
WORDS = {INT: (1, 0), ARRAY: (3, 0), STRUCT: (0, 3), UNION: (0, 3), ENUM: (0, 2), FUNC_PROTO: (0, 2), VAR: (1, 0), DATASEC: (0, 3),
         DECL_TAG: (1, 0), ENUM64: (0, 3)}


class Description:
    def __init__(self):
        self.words, self.strings, self.n_types = [], b"\0", 0

    def name(self, text):
        if not text:
            return 0
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text) - 1

    def add(self, kind, name="", size=4, members=(), parts=None):
        self.words += [self.name(name), kind << 24 | (len(members) if parts is None else parts), size]
        self.n_types += 1
        for member in members:
            self.words += [self.name(member[0]), *member[1:]]

    def bytes(self):
        types = struct.pack("<%dI" % len(self.words), *self.words)
        return struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(types), len(types), len(self.strings)) + types + self.strings


def types(made):
    first = made.n_types
    made.add(FUNC, "run", 1)
    made.add(STRUCT, "", 16, [("inner", 1, 0), ("wanted", 1, 64)])
    made.add(UNION, "", 16, [("other", 1, 0), ("", first + 2, 0)])
    made.add(STRUCT, "outer", 32, [("first", 1, 0), ("", first + 3, 128), ("last", 1, 256)])
    return made


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    plain = types(Description()).bytes()
    every = Description()
    for kind in range(1, 20):
        fixed, each = WORDS.get(kind, (0, 0))
        every.add(kind, "kind%d" % kind, parts=2 if each else 0)
        every.words += [1] * (fixed + 2 * each)
    circle = Description()
    circle.add(STRUCT, "outer", 8, [("", 1, 0)])
    many = Description()
    many.add(STRUCT, "outer", 8, [("first", 1, 0)], parts=0xffffff)
    files = {"types": plain, "every_kind": types(every).bytes(), "circle": circle.bytes(), "many": many.bytes(),
             "strings": plain[:-1] + b"x"}
    for n in (4, 23, 24, 60, len(plain) - 3):
        files["cut_%d" % n] = plain[:n]
    for name, content in files.items():
        (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    main()
