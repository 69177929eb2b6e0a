#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Turn text files, one behind the other, into a C string constant: embed.py NAME INPUT... OUTPUT."""
import sys

ESCAPES = {'\\': '\\\\', '"': '\\"', '\n': '\\n', '\t': '\\t', '?': '\\?'}


def literal(line):
    """One line of text as a C string literal."""
    parts = []
    for byte in line.encode():
        char = chr(byte)
        if char in ESCAPES:
            parts.append(ESCAPES[char])
        elif 32 <= byte < 127:
            parts.append(char)
        else:
            parts.append('\\%03o' % byte)
    return '"' + ''.join(parts) + '"'


def main():
    name, *sources, target = sys.argv[1:]
    lines = []
    for source in sources:
        with open(source, encoding='utf-8') as file:
            lines += file.read().splitlines(keepends=True)
    with open(target, 'w', encoding='ascii') as file:
        file.write('extern const char %s[];\nconst char %s[] =\n\t' % (name, name))
        file.write('\n\t'.join(map(literal, lines)) or '""')
        file.write(';\n')


if __name__ == '__main__':
    main()
