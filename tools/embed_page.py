#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Turn the files of the page into a C table: embed_page.py SOURCE OUTPUT.c FILE...

SOURCE is the folder src. A file's address is its path below it, with "/" in front, so that a module's imports mean the same in the
tree and over HTTP. The table ends with an entry without an address. src/serve/page.h declares it.
"""
import os
import sys

sys.dont_write_bytecode = True
from embed import literal  # noqa: E402

TYPES = {'.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json'}


def main():
    source, target, *paths = sys.argv[1:]
    with open(target, 'w', encoding='ascii') as out:
        out.write('#include "src/serve/page.h"\n\nconst struct page_file page_files[] = {\n')
        for path in paths:
            with open(path, encoding='utf-8') as file:
                lines = file.read().splitlines(keepends=True)
            kind = TYPES[os.path.splitext(path)[1]]
            out.write('\t{ %s, "%s%s",\n\t  %s },\n' % (
                literal('/' + os.path.relpath(path, source)), kind, '; charset=utf-8' if kind.startswith('text/') else '',
                '\n\t  '.join(map(literal, lines)) or '""'))
        out.write('\t{ 0 },\n};\n')


if __name__ == '__main__':
    main()
