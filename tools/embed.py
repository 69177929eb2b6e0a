#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Turn text files, one behind the other, into a C string constant: embed.py NAME INPUT... OUTPUT."""
import sys

LINE = 120
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


def literals(text):
    """A text as literals, one after the other: long lines in pieces, for compilers and people."""
    return '\n\t'.join(literal(line[i:i + LINE]) for line in text.splitlines(keepends=True) for i in range(0, len(line), LINE)) or '""'


def main():
    name, *sources, target = sys.argv[1:]
    text = ''
    for source in sources:
        with open(source, encoding='utf-8') as file:
            text += file.read()
    with open(target, 'w', encoding='ascii') as file:
        file.write('extern const char %s[];\nconst char %s[] =\n\t%s;\n' % (name, name, literals(text)))


if __name__ == '__main__':
    main()
