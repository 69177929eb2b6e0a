#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Turn a file into a C array of bytes, aligned for whatever it holds: embed_bytes.py NAME INPUT OUTPUT."""
import sys


def main():
    name, source, target = sys.argv[1:]
    with open(source, 'rb') as file:
        content = file.read()
    with open(target, 'w', encoding='ascii') as file:
        file.write('static const unsigned char %s[] __attribute__((aligned(16))) = {\n' % name)
        for i in range(0, len(content), 24):
            file.write('\t' + ''.join('%d,' % byte for byte in content[i:i + 24]) + '\n')
        file.write('};\n')


main()
