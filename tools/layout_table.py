#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Turns the files of unwind/cpython/releases into a C table.

Usage: layout_table.py OUTPUT RELEASE... Each file becomes one initialiser of
struct release (unwind/cpython/layout.c); numbers are kept plus one, so that what
a file does not name is zero: absent.

The last line of a file is a checksum of the others, by layout_probe.py. So a row that was not measured from
headers is refused on every machine, also where no test has an interpreter or a memory image that needs it.
"""
import hashlib
import re
import sys


def checksum(text):
    """Of the lines but comments and the checksum itself."""
    rows = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "checksum "))]
    return hashlib.sha256("\n".join(rows).encode("ascii")).hexdigest()[:16]


def initialiser(path):
    offsets, words, number, n_words = [], [], None, 0
    with open(path, encoding="ascii") as file:
        text = file.read()
    if not text.endswith("\nchecksum %s\n" % checksum(text)):
        sys.exit("layout_table: %s: its rows are not those that tools/layout_probe.py measured: run that again" % path)
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith(("#", "checksum "))]
    for line in lines:
        if line[0] == "release" and len(line) == 2:
            number = re.fullmatch(r"(\d+)\.(\d+)(t?)", line[1])
        elif line[0] == "words" and len(line) == 2:
            n_words = int(line[1])
        elif line[0] in ("offset", "word") and len(line) == 3:
            (offsets if line[0] == "offset" else words).append("[%s] = %d + 1" % (line[1], int(line[2])))
        else:
            sys.exit("layout_table: %s: cannot read '%s'" % (path, " ".join(line)))
    if number is None:
        sys.exit("layout_table: %s: no line 'release MAJOR.MINOR'" % path)
    major, minor, free_threaded = number.groups()
    return "{ %s, %s, %s, %d,\n  { %s },\n  { %s } },\n" % (
        major, minor, "true" if free_threaded else "false", n_words, ", ".join(offsets), ", ".join(words) or "0")


def main(output, paths):
    text = "".join(map(initialiser, paths))
    with open(output, "w", encoding="ascii") as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
