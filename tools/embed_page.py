#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Turn the files of the page into a C table: embed_page.py SOURCE OUTPUT.c FILE... [--at ADDRESS FILE...]

SOURCE is the folder src. A file's address is its path below it, with "/" in front, so that a module's imports mean the same in the
tree and over HTTP. Files behind --at, which the build has made, have their names below ADDRESS. The table ends with an entry without an
address. src/serve/page.h declares it.
"""
import os
import sys

sys.dont_write_bytecode = True
from embed import literal, literals  # noqa: E402

TYPES = {'.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json', '.txt': 'text/plain'}


def addresses(source, words):
    """Pairs of an address and a path."""
    below = None
    words = iter(words)
    for word in words:
        if word == '--at':
            below = next(words)
        else:
            yield '/' + os.path.relpath(word, source) if below is None else below + '/' + os.path.basename(word), word


def main():
    source, target, *words = sys.argv[1:]
    with open(target, 'w', encoding='ascii') as out:
        out.write('#include "src/serve/page.h"\n\nconst struct page_file page_files[] = {\n')
        for address, path in addresses(source, words):
            with open(path, encoding='utf-8') as file:
                text = file.read()
            kind = TYPES[os.path.splitext(path)[1]]
            out.write('\t{ %s, "%s%s",\n\t%s },\n' % (literal(address), kind, '; charset=utf-8' if kind.startswith('text/') else '', literals(text)))
        out.write('\t{ 0 },\n};\n')


if __name__ == '__main__':
    main()
