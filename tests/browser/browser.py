# SPDX-License-Identifier: MIT
"""What the tests in a browser share: Chromium, headless, with a page of ours and a script of checks in it; and what its clients
by a protocol (devtools.py, marionette.py) have in common."""
import contextlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

OPTIONS = ['--headless', '--disable-gpu', '--disable-quic', '--no-first-run',
           '--disable-background-networking', '--disable-component-update', '--disable-sync',
           '--window-size=1300,700', '--virtual-time-budget=60000', '--dump-dom']
SECONDS = 120


class Failure(Exception):
    """What the browser or a script in it said went wrong."""


class AnyPage:
    """A page of a client that can run() scripts."""

    def until(self, condition):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(Failure):  # of a page that goes
                if self.run(condition):
                    return
            time.sleep(0.02)
        raise Failure('not within %d s: %s' % (SECONDS, condition))

    def middle_of(self, element):
        """Where it is in the window, once it is in view. @element: an expression."""
        return self.run('(element => { element.scrollIntoView({block: "nearest"}); const box = element.getBoundingClientRect();'
                        ' return [box.x + box.width / 2, box.y + box.height / 2]; })(%s)' % element)


def await_end(process):
    """Give a browser 20 s to end, then kill it."""
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def opened(client, program):
    """A page of a new browser. @client: the class that starts the program."""
    with tempfile.TemporaryDirectory(prefix='browser.', ignore_cleanup_errors=True) as folder:
        browser = client(program, folder)
        try:
            yield browser.open_page()
        finally:
            browser.close()


def find_browser():
    for name in ('chromium', 'chromium-browser', 'google-chrome'):
        path = shutil.which(name)
        if path:
            return path
    return None


def checks(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, encoding='utf-8') as file:
        return file.read()


def insert_before(text, end, inserted):
    """Before the last such element's end."""
    body, found, rest = text.rpartition(end)
    if not found:
        sys.exit('there is no %s in this page' % end)
    return body + inserted + found + rest


def run_browser(browser, folder, page, element):
    command = [browser, *OPTIONS, '--user-data-dir=' + os.path.join(folder, 'profile')]
    if os.geteuid() == 0:
        command.append('--no-sandbox')  # Chromium refuses to run as root otherwise
    done = subprocess.run([*command, 'file://' + page], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=SECONDS, check=False, encoding='utf-8', errors='replace')
    found = re.search(r'<%s class="checks">(.*?)</%s>' % (element, element), done.stdout, re.DOTALL)
    if not found:
        sys.exit('the checks did not end (exit status %d)\n%s' % (done.returncode, done.stderr[-2000:]))
    return json.loads(html.unescape(found.group(1)))


def main(name, with_checks, element, usage):
    """Opens the page of the command line with its checks. Returns the exit status: 0, 1, or 77 without Chromium."""
    if len(sys.argv) != 2:
        sys.exit(usage)
    browser = find_browser()
    if not browser:
        print(name + ': skipped, there is no Chromium here')
        return 77
    with open(sys.argv[1], encoding='utf-8') as file:
        text = with_checks(file.read())
    with tempfile.TemporaryDirectory(prefix=name + '.', ignore_cleanup_errors=True) as folder:
        page = os.path.join(folder, 'page' + os.path.splitext(sys.argv[1])[1])
        with open(page, 'w', encoding='utf-8') as file:
            file.write(text)
        result = run_browser(browser, folder, page, element)
    for failure in result['failures'][:20]:
        print(name + ': ' + failure)
    print('%s: %d frames, %d failures' % (name, result['frames'], len(result['failures'])))
    return 1 if result['failures'] else 0
