#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Bundle the libraries of the page of probing serve: page_bundle.py NODE SOURCE MODULES SCRIPT... LICENCES

MODULES is the folder that html_modules.py filled. SCRIPT... become modules for browsers, made of the scripts of the same names in SOURCE; LICENCES gets
the name, the version and the licence of each package in them.
"""
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
from html_bundle import licences_of, run_esbuild  # noqa: E402

NEEDED = {'@codemirror/view', 'uplot'}


def main():
    node, source, modules, *scripts, licences = map(os.path.abspath, sys.argv[1:])
    names = [os.path.basename(script) for script in scripts]
    with tempfile.TemporaryDirectory() as folder:
        packages = run_esbuild(node, modules, folder, '--format=esm', '--loader:.css=text', '--line-limit=200', *(os.path.join(source, name) for name in names))
        for name, script in zip(names, scripts):
            shutil.copyfile(os.path.join(folder, name), script)
    if not NEEDED <= set(packages):
        sys.exit('page_bundle: only %s were bundled' % ', '.join(packages))
    with open(licences, 'w', encoding='utf-8') as file:
        file.write(licences_of(modules, packages))


if __name__ == '__main__':
    main()
