#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The oldest glibc that files run with: the highest version of a symbol that they need.

Usage: glibc_test.py LIMIT FILE...   LIMIT: the highest version that is allowed, as 2.17
Prints a line for each file. Exit status: 0 no file needs more, 1 one does, and the symbols are named; 77 the files are not for glibc.
"""
import os
import re
import subprocess
import sys


def version(text):
    return tuple(map(int, text.split(".")))


def needs(path):
    """{version: names} of a file's undefined symbols."""
    listed = subprocess.run(["readelf", "-W", "--dyn-syms", path], stdout=subprocess.PIPE, check=True, text=True,
                            env=dict(os.environ, LC_ALL="C")).stdout
    result = {}
    for name, needed in re.findall(r" UND +(\S+?)@+GLIBC_([0-9.]+)", listed):
        result.setdefault(version(needed), []).append(name)
    return result


def main(limit, paths):
    n_above = 0
    for path in paths:
        found = needs(path)
        if not found:
            print("skip: %s needs no symbol with a version of glibc" % path)
            return 77
        print("%s needs glibc %s" % (os.path.basename(path), ".".join(map(str, max(found)))))
        for above in sorted(needed for needed in found if needed > limit):
            print("  %s: %s" % (".".join(map(str, above)), ", ".join(sorted(found[above]))))
            n_above += 1
    return 1 if n_above else 0


if __name__ == "__main__":
    sys.exit(main(version(sys.argv[1]), sys.argv[2:]))
