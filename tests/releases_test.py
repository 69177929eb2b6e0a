#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The files of unwind/cpython/releases against the headers that are installed.

Usage: releases_test.py SOURCE_ROOT. Exit status 77: no headers of any CPython.
"""
import glob
import os
import re
import subprocess
import sys


def found_headers():
    """Folders with the headers of a CPython, internal ones included where it has such."""
    roots = ["/usr", "/usr/local", os.environ.get("PROBING_ROOTS") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "probing", "roots", "sid", "usr")]
    roots += glob.glob(os.path.expanduser("~/.pyenv/versions/*"))
    for root in roots:
        for folder in sorted(glob.glob(os.path.join(root, "include", "python[23].*"))):
            if os.path.exists(os.path.join(folder, "Python.h")):
                yield folder


def variants():
    """Options of tools/layout_probe.py: each release, and what it is without a GIL."""
    for headers in found_headers():
        yield [headers]
        with open(os.path.join(headers, "patchlevel.h"), encoding="utf-8") as file:
            minor = re.search(r"define PY_MINOR_VERSION\s+(\d+)", file.read())
        if int(minor.group(1)) >= 13:
            yield ["--free-threaded", headers]


def lines_of(text):
    return sorted(line for line in text.splitlines() if line and not line.startswith(("#", "checksum ")))


def main(source_root):
    n_checked, n_wrong = 0, 0
    for options in variants():
        headers = options[-1]
        done = subprocess.run([os.path.join(source_root, "tools", "layout_probe.py")] + options,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            print("FAIL %s: %s" % (headers, done.stderr))
            n_wrong += 1
            continue
        release = next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("release"))
        with open(os.path.join(source_root, "unwind", "cpython", "releases", release), encoding="ascii") as file:
            kept = lines_of(file.read())
        differences = set(kept) ^ set(lines_of(done.stdout))
        print("%s %s, %d lines, by %s" % ("FAIL" if differences else "ok", release, len(kept), headers))
        for line in sorted(differences):
            print("  %s: %s" % ("only in the file" if line in kept else "only in the headers", line))
        n_checked += 1
        n_wrong += bool(differences)
    if n_checked == 0 and n_wrong == 0:
        print("no headers of any CPython are installed")
        return 77
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
