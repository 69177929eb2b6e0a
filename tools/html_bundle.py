#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Bundle the HTML flame graph's script and style: html_bundle.py NODE SOURCE MODULES OUTPUT.c LICENCES

MODULES is the folder that html_modules.py filled. OUTPUT.c gets html_script, html_style and html_licences as strings;
LICENCES the last of them as text: of each package that went into the bundle, its name, its version and its licence.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from embed import literal  # noqa: E402

LINE = 120
OPTIONS = ['--bundle', '--minify', '--keep-names', '--format=iife', '--target=es2020', '--charset=ascii',
           '--legal-comments=none', '--log-level=warning']


def run_esbuild(node, source, modules, folder):
    """The script, the style, and the files that they are made of."""
    esbuild = os.path.join(modules, 'node_modules', 'esbuild', 'bin', 'esbuild')
    meta = os.path.join(folder, 'meta.json')
    subprocess.run([node, esbuild, os.path.join(source, 'main.js'), *OPTIONS, '--metafile=' + meta,
                    '--outfile=' + os.path.join(folder, 'bundle.js')], check=True, cwd=modules,
                   env={**os.environ, 'NODE_PATH': os.path.join(modules, 'node_modules')})
    texts = []
    for name in ('bundle.js', 'bundle.css'):
        with open(os.path.join(folder, name), encoding='ascii') as file:
            texts.append(file.read())
    with open(meta, encoding='utf-8') as file:
        return (*texts, json.load(file)['inputs'])


def packages_of(inputs):
    """Their folders below node_modules; the names of scoped ones have two parts."""
    found = set()
    for path in inputs:
        _, here, inside = path.rpartition('node_modules/')
        if here:
            parts = inside.split('/')
            found.add('/'.join(parts[:2] if inside.startswith('@') else parts[:1]))
    return sorted(found)


def licence_of(folder):
    with open(os.path.join(folder, 'package.json'), encoding='utf-8') as file:
        about = json.load(file)
    names = [name for name in sorted(os.listdir(folder)) if name.upper().split('.')[0] in ('LICENSE', 'LICENCE', 'COPYING')]
    if not names:
        sys.exit('html_bundle: %s has no licence' % folder)
    with open(os.path.join(folder, names[0]), encoding='utf-8') as file:
        return '%s %s (%s)\n\n%s\n' % (about['name'], about['version'], about['license'], file.read().strip())


def write_string(file, name, text):
    """Long lines in pieces, for compilers and people."""
    pieces = [line[i:i + LINE] for line in text.splitlines(keepends=True) for i in range(0, len(line), LINE)]
    file.write('extern const char %s[];\nconst char %s[] =\n\t' % (name, name))
    file.write('\n\t'.join(map(literal, pieces)) or '""')
    file.write(';\n')


def main():
    node, source, modules, output, licences_path = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        script, style, inputs = run_esbuild(node, source, modules, folder)
    packages = packages_of(inputs)
    if 'd3-flame-graph' not in packages:
        sys.exit('html_bundle: d3-flame-graph is not among what was bundled: %s' % packages)
    if '</script' in script.lower() or '</style' in style.lower():
        sys.exit('html_bundle: the bundle would end its own element')
    licences = ('\n' + '-' * 70 + '\n\n').join(licence_of(os.path.join(modules, 'node_modules', name)) for name in packages)
    with open(licences_path, 'w', encoding='utf-8') as file:
        file.write(licences)
    with open(output, 'w', encoding='ascii') as file:
        write_string(file, 'html_script', script)
        write_string(file, 'html_style', style)
        write_string(file, 'html_licences', licences)


if __name__ == '__main__':
    main()
