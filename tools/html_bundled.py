#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The bundles of the HTML flame graph and of the page in a release's archive, so that building it takes neither npm nor a network.

Usage: html_bundled.py make         as Meson's dist script: puts what this build has bundled into the archive
       html_bundled.py check SOURCE whether SOURCE/bundled is there and was made of the files that are in SOURCE now

SOURCE is the folder src/export/html. The folder bundled has the files that html_bundle.py and page_bundle.py make, and SHA256SUMS: of
these, and of all that they were made of, with paths relative to SOURCE. Exit status: 0 it fits; 1 it does not, with
the reason on stderr; 2 it is not there.
"""
import hashlib
import os
import shutil
import subprocess
import sys

HERE = os.path.join('src', 'export', 'html')
LIBRARIES = os.path.join('..', '..', 'serve', 'page', 'libraries')
MADE = ('html_page.c', 'licences.html-flame-graph.txt', 'editor.js', 'plot.js', 'licences.page.txt')
TOOLS = ('html_bundle.py', 'page_bundle.py', 'embed.py')


def digest(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def covered(source):
    """Paths relative to @source of what was made, and of what it was made of."""
    own = [name for name in os.listdir(source) if name.endswith(('.js', '.css', '.json'))]
    own += [os.path.join(LIBRARIES, name) for name in os.listdir(os.path.join(source, LIBRARIES)) if name.endswith('.js')]
    tools = [os.path.join('..', '..', '..', 'tools', name) for name in TOOLS]
    return [os.path.join('bundled', name) for name in MADE] + sorted(own) + tools


def sums(source):
    return ''.join('%s  %s\n' % (digest(os.path.join(source, path)), path) for path in covered(source))


def make():
    build, source = os.environ['MESON_BUILD_ROOT'], os.path.join(os.environ['MESON_DIST_ROOT'], HERE)
    targets = [os.path.join(HERE, name) for name in MADE]
    if subprocess.run(['ninja', '-C', build, *targets], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        sys.exit('html_bundled: this build has no bundles, which an archive must have: set it up with -Dhtml=enabled')
    os.makedirs(os.path.join(source, 'bundled'))
    for name in MADE:
        shutil.copy(os.path.join(build, HERE, name), os.path.join(source, 'bundled', name))
    with open(os.path.join(source, 'bundled', 'SHA256SUMS'), 'w', encoding='ascii') as file:
        file.write(sums(source))


def check(source):
    path = os.path.join(source, 'bundled', 'SHA256SUMS')
    if not os.path.exists(path):
        sys.exit(2)
    with open(path, encoding='ascii') as file:
        kept = file.read()
    try:
        changed = sorted({line.split()[1] for line in set(kept.splitlines()) ^ set(sums(source).splitlines())})
    except FileNotFoundError as error:
        changed = [error.filename]
    if changed:
        sys.exit('html_bundled: not of these files: %s' % ', '.join(changed))


if __name__ == '__main__':
    {'make': make, 'check': check}[sys.argv[1]](*sys.argv[2:])
