#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The program's own functions against those of the libraries that it is linked with.

Usage: symbols_test.py PROGRAM. A function of ours that is called as one of theirs is called in its
stead, by us and by the libraries, and nobody says so.
"""
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def defined(output):
    """Names of functions and data in nm's output; @ sets versions apart."""
    return {line.split()[2].split("@")[0] for line in output.splitlines()
            if len(line.split()) == 3 and line.split()[1] in "TDBRVW"}


def main():
    program = sys.argv[1]
    # What nm tells of the program has copies of the libraries' data in it, with a version.
    ours = {name for name in defined("\n".join(
        line for line in run("nm", "--defined-only", program).splitlines() if "@" not in line))
            if not name.startswith("_")}
    failed = 0
    for library in re.findall(r"=> (/\S+)", run("ldd", program)):
        if re.search(r"/lib(asan|ubsan|clang_rt)", library):
            continue
        for name in sorted(ours & defined(run("nm", "-D", "--defined-only", library))):
            print("%s is in %s, too" % (name, library))
            failed = 1
    if not ours:
        sys.exit("the program has no symbols to compare")
    sys.exit(failed)


main()
