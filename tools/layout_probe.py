#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Reads a CPython release's headers and says where it keeps what probing reads.

Usage: layout_probe.py [--free-threaded] HEADERS [FILE]
  HEADERS  the folder that holds Python.h and internal/, e.g. .../include/python3.12
  FILE     default: standard output; unwind/cpython/releases/3.12 to add a release
  --free-threaded  as the build without a GIL sees the same headers (3.13 and later)

Compiles tools/layout_probe.c with $CC (cc). Exit status 1, with the reason on
stderr, where the headers do not compile or contradict themselves.
"""
import os
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from layout_table import checksum  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def probe(headers, free_threaded):
    """What the compiled probe prints, as text."""
    options = ["-DPy_GIL_DISABLED=1"] if free_threaded else []
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "layout_probe")
        # Initialisers name functions that only the library has; none is called.
        done = subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-w", *options, "-I" + headers, "-I" + headers + "/internal",
                               "-idirafter", os.path.dirname(headers),  # pyconfig.h may be a door to the machine's own
                               "-Wl,--unresolved-symbols=ignore-all", "-no-pie", "-o", program,
                               os.path.join(HERE, "layout_probe.c")], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit("layout_probe: %s: %s" % (headers, done.stderr.strip()))
        return subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout


def release_file(text):
    """The same as a file of unwind/cpython/releases."""
    lines = [line.split() for line in text.splitlines()]
    wrong = [line[1] for line in lines if line[0] == "wrong"]
    if wrong:
        sys.exit("layout_probe: the runtime tells another offset than the headers: " + ", ".join(wrong))
    head = {line[0]: line[1] for line in lines if line[0].isupper()}
    version = int(head["VERSION"], 16)
    number = "%d.%d" % (version >> 24, version >> 16 & 255)
    free_threaded = head["FREE_THREADED"] == "1"
    result = ["# CPython %s%s, from the headers of %s.%d, by tools/layout_probe.py" % (
        number, "t" if free_threaded else "", number, version >> 8 & 255)]
    result.append("release %s%s" % (number, "t" if free_threaded else ""))
    if "N_WORDS" in head:
        result.append("words %s" % head["N_WORDS"])
    for line in lines:
        if line[0] == "offset":
            result.append("offset %s %s" % (line[1], line[2]))
        elif line[0] == "word":
            result.append("word %s %s" % (line[1], line[2]))
    text = "\n".join(result) + "\n"
    return text + "checksum %s\n" % checksum(text)


def main(arguments):
    free_threaded = "--free-threaded" in arguments
    arguments = [argument for argument in arguments if argument != "--free-threaded"]
    if not 1 <= len(arguments) <= 2:
        sys.exit(__doc__.strip())
    text = release_file(probe(arguments[0], free_threaded))
    if len(arguments) == 1:
        sys.stdout.write(text)
        return
    with open(arguments[1], "w", encoding="ascii") as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
