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
from embed import literals  # noqa: E402

OPTIONS = ['--bundle', '--minify', '--target=es2020', '--charset=ascii', '--legal-comments=none', '--log-level=warning']


def run_esbuild(node, modules, folder, *more):
    """Bundles into a folder. Returns the packages that went into it."""
    esbuild = os.path.join(modules, 'node_modules', 'esbuild', 'bin', 'esbuild')
    meta = os.path.join(folder, 'meta.json')
    subprocess.run([node, esbuild, *OPTIONS, *more, '--metafile=' + meta, '--outdir=' + folder], check=True, cwd=modules,
                   env={**os.environ, 'NODE_PATH': os.path.join(modules, 'node_modules')})
    with open(meta, encoding='utf-8') as file:
        return packages_of(json.load(file)['inputs'])


def read_bundle(folder, name):
    with open(os.path.join(folder, name), encoding='ascii') as file:
        return file.read()


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


def licences_of(modules, packages):
    return ('\n' + '-' * 70 + '\n\n').join(licence_of(os.path.join(modules, 'node_modules', name)) for name in packages)


def write_string(file, name, text):
    file.write('extern const char %s[];\nconst char %s[] =\n\t%s;\n' % (name, name, literals(text)))


def main():
    node, source, modules, output, licences_path = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        packages = run_esbuild(node, modules, folder, '--format=iife', '--keep-names', os.path.join(source, 'main.js'))
        script, style = (read_bundle(folder, name) for name in ('main.js', 'main.css'))
    if 'd3-flame-graph' not in packages:
        sys.exit('html_bundle: d3-flame-graph is not among what was bundled: %s' % packages)
    if '</script' in script.lower() or '</style' in style.lower():
        sys.exit('html_bundle: the bundle would end its own element')
    licences = licences_of(modules, packages)
    with open(licences_path, 'w', encoding='utf-8') as file:
        file.write(licences)
    with open(output, 'w', encoding='ascii') as file:
        write_string(file, 'html_script', script)
        write_string(file, 'html_style', style)
        write_string(file, 'html_licences', licences)


if __name__ == '__main__':
    main()
