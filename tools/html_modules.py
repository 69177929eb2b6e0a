#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Fetch what the HTML flame graph and the page are bundled from: html_modules.py NPM SOURCE BUILD

Runs "npm ci" in BUILD for the package.json and the lock in SOURCE; no script of any package is run. What is there
already and of the same lock is kept, so that no network is needed again.
"""
import os
import shutil
import subprocess
import sys

SECONDS = 300


def read(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except FileNotFoundError:
        return None


def main():
    npm, source, build = sys.argv[1:]
    lock = os.path.join(source, 'package-lock.json')
    stamp = os.path.join(build, 'fetched.json')
    os.makedirs(build, exist_ok=True)
    if read(stamp) == read(lock) and os.path.isdir(os.path.join(build, 'node_modules')):
        return 0
    for name in ('package.json', 'package-lock.json'):
        shutil.copy(os.path.join(source, name), build)
    try:
        done = subprocess.run([npm, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=1'],
                              cwd=build, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except (subprocess.SubprocessError, OSError) as error:
        sys.exit('html_modules: %s' % error)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith(('npm error', 'npm ERR!'))]
        sys.exit('html_modules: npm ci failed; ' + '; '.join(said[:2]))
    shutil.copy(lock, stamp)
    return 0


if __name__ == '__main__':
    sys.exit(main())
