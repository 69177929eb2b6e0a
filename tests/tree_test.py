#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the tree promises to people who read it: licences, names, pages for each reader, one of each part.

Usage: tree_test.py SOURCE_ROOT
"""
import os
import re
import subprocess
import sys

SOURCES = ("base", "src", "symbolize", "unwind")
TOP = ("meson.build", "src", "unwind", "symbolize", "tests", "fixtures")

# Names that docs/glossary.md and the field's terms have replaced.
RETIRED_NAMES = (
    "capture_stands_still", "is_wide", "told_switches", "wakes_for_news", "ripe_ns", "is_seldom", "evaluation_place", "many_db",
    "waits_enter", "waits_leave", "waits_make", "waits_doubt", "waits_ran", "waits_portion", "store_settle", "lost_looks", "is_sealed")
RETIRED_FILES = {
    "still", "follow_reader", "paces", "pairs", "streams", "hold", "keep", "view_keep", "known", "forget", "changes", "trim", "rename", "naming",
    "fence", "living", "ahead", "roster", "many", "ends", "working", "comparing"}
RETIRED_PREFIXES = r"\b(MOST|LEAST)_(?!OF_IT\b)[A-Z]"  # MAX_ and MIN_

# One implementation each: what only the named file may contain.
ONLY = (
    ("the event loop", r"^int event_loop_init\(", ["src/target/event_loop.c", "src/target/target.h"]),
    ("the interner", r"^struct interner \{", ["base/interner.h"]),
    ("the writer of JSON", r"^void to_json_put_bool\(", ["base/json.c", "base/json.h"]),
    ("a second library for JSON", r"#include <(yajl|json-c|cjson)", []),
)
MAX_SMALL_SHARE = 0.26  # of the headers: those with fewer than 30 lines


def files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [path for path in listed.stdout.split("\n") if path and os.path.exists(os.path.join(root, path))]
    return [os.path.relpath(os.path.join(at, name), root) for top in SOURCES + ("tests", "tools", "fuzz", "bench", "scripts")
            for at, _, names in os.walk(os.path.join(root, top)) for name in names if "__pycache__" not in at]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def licences(root, paths):
    for path in paths:
        if re.search(r"(\.(c|h|py|sh|c\.in|bpf\.c)|/meson\.build|^meson\.build)$", path) and not path.startswith("fuzz/corpus/"):
            text = read(root, path)
            if text.strip() and "SPDX-License-Identifier" not in text[:300] and not path.startswith(("fixtures/", "examples/", "tests/e2e/document_files/")):
                yield "%s has no SPDX line" % path


def names(root, paths):
    words = re.compile(r"\b(%s)\b|%s" % ("|".join(RETIRED_NAMES), RETIRED_PREFIXES))
    for path in paths:
        if not path.startswith(SOURCES) or not path.endswith((".c", ".h")):
            continue
        if os.path.basename(path).rsplit(".", 1)[0] in RETIRED_FILES:
            yield "%s has a name that another one has replaced" % path
        found = words.search(read(root, path))
        if found:
            yield "%s: %s has been replaced by another name" % (path, found.group())


def only(root, paths):
    for what, pattern, where in ONLY:
        found = [path for path in paths if path.startswith(SOURCES) and path.endswith((".c", ".h")) and re.search(pattern, read(root, path), re.M)]
        if sorted(found) != where:
            yield "%s: it is in %s, not in %s" % (what, found, where)


def small_headers(root, paths):
    lines = [read(root, path).count("\n") for path in paths if path.startswith(SOURCES) and path.endswith(".h")]
    small = sum(n < 30 for n in lines)
    if small > MAX_SMALL_SHARE * len(lines):
        yield "%d of %d headers have fewer than 30 lines: merge those that are only read together" % (small, len(lines))


def people(root):
    for path in TOP + ("CONTRIBUTING.md", "SECURITY.md", "docs/glossary.md", ".editorconfig", ".clang-format", "bench/NOTEBOOK.md"):
        if not os.path.exists(os.path.join(root, path)):
            yield "%s is missing" % path
    index = read(root, "docs/README.md")
    for reader in ("users", "operators", "contributors"):
        if "\n## For %s\n" % reader not in index:
            yield "docs/README.md has no part for %s" % reader
    guide = read(root, "CONTRIBUTING.md")
    for part in ("meson test", "run.py test_", "**Errors**", "**Ownership**", "**Names**", "## Commits"):
        if part not in guide:
            yield "CONTRIBUTING.md has no '%s'" % part


def main(root):
    paths = files(root)
    wrong = [one for of in (licences, names, only, small_headers) for one in of(root, paths)] + list(people(root))
    if sum(path.endswith(".c") for path in paths) < 500:
        wrong.append("only %d files were found" % len(paths))
    print("\n".join(wrong) or "%d files" % len(paths))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
