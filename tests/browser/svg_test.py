#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Use a flame graph in a real browser: svg_test.py FLAMEGRAPH.svg

Chromium opens a copy of the picture with svg_checks.js behind its own script.
Exit status: 0 all well, 1 not, 77 no Chromium here.
"""
import sys

sys.dont_write_bytecode = True
import browser  # noqa: E402


def with_checks(picture):
    """The picture's text with the checks as its last script."""
    return browser.insert_before(picture, '</svg>', '<script><![CDATA[\n' + browser.checks('svg_checks.js') + ']]></script>\n')


if __name__ == '__main__':
    sys.exit(browser.main('svg_test', with_checks, 'desc', __doc__))
