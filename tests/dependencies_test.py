#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The libraries that the build asks for, against docs/development.md and against the licences that scripts/portable collects.

Usage: dependencies_test.py SOURCE_ROOT
"""
import glob
import os
import re
import sys

# Of glibc, of tests, or not linked: src/serve and src/http load them.
NOT_LINKED = {"threads", "dl", "m", "cmocka", "libmicrohttpd", "libcurl"}
# Debian's packages, where their name is another.
PACKAGES = {"zlib": "zlib1g-dev", "sqlite3": "libsqlite3-dev", "jansson": "libjansson-dev", "yaml-0.1": "libyaml-dev", "ncursesw": "libncurses-dev",
            "tinfo": "libncurses-dev", "iberty": "libiberty-dev"}


def read(root, *names):
    with open(os.path.join(root, *names), encoding="utf-8") as file:
        return file.read()


def asked_for(root):
    """{name of a library: file that asks for it}."""
    found = {}
    for top in ("meson.build", "base", "symbolize", "unwind", "src", "tests"):
        at = os.path.join(root, top)
        for path in [at] if os.path.isfile(at) else glob.glob(os.path.join(at, "**", "meson.build"), recursive=True):
            for name in re.findall(r"(?:\bdependency|\.find_library)\('([^']+)'", read(path)):
                found.setdefault(name, os.path.relpath(path, root))
    return found


def main(root):
    asked = asked_for(root)
    if len(asked) < 15:
        print("only %d dependencies found: has the build another form now?" % len(asked))
        return 1
    page, wrong = read(root, "docs", "development.md").partition("\n## Dependencies\n")[2].partition("\n## Releasing\n")[0], []
    linked = re.search(r"^linked=\((.*?)\)$", read(root, "scripts", "portable"), re.M | re.S).group(1).split()
    for name, where in sorted(asked.items()):
        if not re.search(r"(?<![\w-])(lib)?%s(?![\w-])" % re.escape(name), page):
            wrong.append("docs/development.md has no %s, which %s asks for" % (name, where))
        package = PACKAGES.get(name, (name if name.startswith("lib") else "lib" + name) + "-dev")
        if name not in NOT_LINKED and package not in linked:
            wrong.append("scripts/portable: no %s among 'linked', for %s of %s" % (package, name, where))
    print("\n".join(wrong) or "%d libraries" % len(asked))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
