#!/usr/bin/python3
"""Use a flame graph in a real browser: svg_test.py FLAMEGRAPH.svg

Chromium opens a copy of the picture with svg_checks.js behind its own script.
Exit status: 0 all well, 1 not, 77 no Chromium here.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

OPTIONS = ['--headless', '--disable-gpu', '--disable-quic', '--no-first-run',
           '--disable-background-networking', '--disable-component-update', '--disable-sync',
           '--window-size=1300,700', '--virtual-time-budget=20000', '--dump-dom']
SECONDS = 120


def find_browser():
    for name in ('chromium', 'chromium-browser', 'google-chrome'):
        path = shutil.which(name)
        if path:
            return path
    return None


def with_checks(picture):
    """The picture's text with the checks as its last script."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'svg_checks.js')
    with open(path, encoding='utf-8') as file:
        script = file.read()
    body, end, rest = picture.rpartition('</svg>')
    if not end:
        sys.exit('svg_test: this is not an SVG picture')
    return body + '<script><![CDATA[\n' + script + ']]></script>\n' + end + rest


def run_browser(browser, folder, page):
    command = [browser, *OPTIONS, '--user-data-dir=' + os.path.join(folder, 'profile')]
    if os.geteuid() == 0:
        command.append('--no-sandbox')  # Chromium refuses to run as root otherwise
    done = subprocess.run([*command, 'file://' + page], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=SECONDS, check=False, encoding='utf-8', errors='replace')
    found = re.search(r'<desc class="checks">(.*?)</desc>', done.stdout, re.DOTALL)
    if not found:
        sys.exit('svg_test: the checks did not end (exit status %d)\n%s'
                 % (done.returncode, done.stderr[-2000:]))
    return json.loads(html.unescape(found.group(1)))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    browser = find_browser()
    if not browser:
        print('svg_test: skipped, there is no Chromium here')
        return 77
    with open(sys.argv[1], encoding='utf-8') as file:
        page_text = with_checks(file.read())
    with tempfile.TemporaryDirectory(prefix='svg_test.', ignore_cleanup_errors=True) as folder:
        page = os.path.join(folder, 'page.svg')
        with open(page, 'w', encoding='utf-8') as file:
            file.write(page_text)
        result = run_browser(browser, folder, page)
    for failure in result['failures'][:20]:
        print('svg_test: ' + failure)
    print('svg_test: %d frames, %d failures' % (result['frames'], len(result['failures'])))
    return 1 if result['failures'] else 0


if __name__ == '__main__':
    sys.exit(main())
