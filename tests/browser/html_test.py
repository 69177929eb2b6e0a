#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Use an HTML flame graph in a real browser: html_test.py FLAMEGRAPH.html

Chromium opens a copy of the page with html_checks.js behind its own script.
Exit status: 0 all well, 1 not, 77 no Chromium here.
"""
import sys

sys.dont_write_bytecode = True
import browser  # noqa: E402


# Where nothing is painted no frame ever comes, and transitions go by frames.
FRAMES = '<script>window.requestAnimationFrame = draw => setTimeout(() => draw(performance.now()), 17);</script>\n'


def with_checks(page):
    """The page with frames by the clock, and the checks as its last script."""
    page = page.replace('<body>\n', '<body>\n' + FRAMES, 1)
    return browser.insert_before(page, '</body>', '<script>\n' + browser.checks('html_checks.js') + '</script>\n')


if __name__ == '__main__':
    sys.exit(browser.main('html_test', with_checks, 'p', __doc__))
