# SPDX-License-Identifier: MIT
"""axe-core, which finds what keeps people from using a page: names, roles, order, contrast of WCAG 2.1 A and AA.

npm fetches the version of package-lock.json into the user's cache; nothing of it is in the program.
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FETCH = os.path.join(HERE, '..', '..', 'tools', 'html_modules.py')
CACHE = os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'probing', 'browser-tests')
OPTIONS = {'runOnly': ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'], 'resultTypes': ['violations'], 'iframes': False}


def source():
    """Its script. Skips a test where it cannot be fetched."""
    npm = shutil.which('npm')
    if npm is None or not os.path.exists(FETCH):
        raise unittest.SkipTest('axe-core is fetched by npm, with the source tree')
    done = subprocess.run([sys.executable, FETCH, npm, HERE, CACHE], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise unittest.SkipTest('axe-core cannot be fetched: ' + done.stderr.strip())
    with open(os.path.join(CACHE, 'node_modules', 'axe-core', 'axe.min.js'), encoding='utf-8') as file:
        return file.read()


def violations(page, script):
    """Of the page as it is: a line for each rule and element."""
    page.run(script + '; true')
    found = page.run('axe.run(document, %s).then(found => found.violations.flatMap(one => one.nodes.map(node => '
                     '`${one.id}: ${node.target.join(" ")}: ${node.failureSummary}`)))' % json.dumps(OPTIONS))
    return found
