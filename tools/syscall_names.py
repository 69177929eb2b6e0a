#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes the system calls of the machine that a compiler compiles for, one SYSCALL(number, "name") a line.

Usage: syscall_names.py OUTPUT COMPILER...

The numbers are those of the kernel's own header, <asm/unistd.h>.
"""
import re
import subprocess
import sys

HEADER = "#include <asm/unistd.h>\n"


def preprocess(compiler, text, *options):
    return subprocess.run(compiler + ["-E", *options, "-x", "c", "-"], input=text, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def names(compiler):
    found = re.findall(r"^#define __NR_(\w+) ", preprocess(compiler, HEADER, "-dM"), re.MULTILINE)
    return sorted(name for name in found if name not in ("syscalls", "arch_specific_syscall"))


def main(output, *compiler):
    compiler = list(compiler)
    # Some are defined by others: the preprocessor knows best.
    asked = HEADER + "".join("@%s __NR_%s\n" % (name, name) for name in names(compiler))
    known = re.findall(r"^@(\w+) (\d+)$", preprocess(compiler, asked, "-P"), re.MULTILINE)
    with open(output, "w", encoding="ascii") as out:
        for number, name in sorted((int(number), name) for name, number in known):
            out.write('SYSCALL(%d, "%s")\n' % (number, name))
    return 0 if len(known) > 200 else "fewer system calls than there are"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
