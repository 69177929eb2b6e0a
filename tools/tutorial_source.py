#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Extract a C file that a document shows.

usage: tutorial_source.py DOCUMENT OUTPUT

The file is the block of C that begins with the comment which names it as OUTPUT is named. It is compiled as part of
the tests, so that what the document says to write can be written.
"""
import os
import re
import sys
import textwrap


def main(document, output):
    begin = "/* %s - " % os.path.basename(output)
    with open(document, encoding="utf-8") as file:
        blocks = [textwrap.dedent(found.group(2)) for found in re.finditer(r"^( *)```c\n(.*?)^\1```$", file.read(), re.M | re.S)]
    sources = [block for block in blocks if block.startswith(begin)]
    if len(sources) != 1:
        sys.exit("%s: %d blocks of C begin with %r; one should" % (document, len(sources), begin))
    with open(output, "w", encoding="utf-8") as file:
        file.write(sources[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
