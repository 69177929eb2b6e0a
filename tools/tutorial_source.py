#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Extract the C file that a tutorial shows.

usage: tutorial_source.py DOCUMENT OUTPUT

The file is the document's first block of C, which begins with the comment that names it. It is compiled as part of
the tests, so that what a tutorial says to write can be written.
"""
import re
import sys
import textwrap


def main(document, output):
    with open(document, encoding="utf-8") as file:
        found = re.search(r"^( *)```c\n(.*?)^\1```$", file.read(), re.M | re.S)
    if not found or not re.match(r"\s*/\* \w+\.c - ", found.group(2)):
        sys.exit("%s: no block of C that begins with the name of its file" % document)
    with open(output, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(found.group(2)))


if __name__ == "__main__":
    main(*sys.argv[1:])
