#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The rules of docs/glossary.md that a program can check, over documents, help, messages and public headers.

Usage: language_test.py SOURCE_ROOT

A sentence has at most MAX_WORDS words; code in backticks is one word. No text has a word of the glossary's third column.
"""
import os
import re
import subprocess
import sys

MAX_WORDS = 25
FOLDERS = ("base", "src", "symbolize", "unwind")

# Words of the third column that have a second, right meaning: no program can tell which one is meant.
AMBIGUOUS = {"ahead", "forget", "group", "keep", "leave out", "let go", "look", "look up", "name", "node", "own", "run", "settle", "trim",
             "walk", "who is wanted", "worker"}
# No prose: keywords of SQL, and scripts of shells.
NOT_PROSE = ("src/sql/dialect_expressions.c", "src/cli/completion.c")

ABBREVIATION = re.compile(r"\b(e\.g|i\.e|vs|etc|No)\.\0")
# "probing reads it. libc does not.": names of programs and of code begin sentences, too.
BOUNDARY = re.compile(r"(?<=[^.][.!?])[)\"'*]*\s+(?=\S)|(?<=\.\.\.)\s+(?=[A-Z])")
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
BETWEEN = re.compile(r"\s*(?:[A-Z][A-Za-z0-9_]+(?:\([^()]*\))?\s*)?")  # of parts of one string: nothing, or a macro as PRIu64
MARKUP = re.compile(r"[<{]|\\t|\.SH|\.TP|\b(?:SELECT|CREATE|INSERT|UPDATE|WITH|DELETE|PRAGMA|WHERE|ORDER BY)\b")


def sentences(text, more=None):
    """@more: a pattern of what ends a sentence besides a full stop."""
    text = BOUNDARY.sub("\0", text.replace("<br>", " \0"))
    text = ABBREVIATION.sub(r"\1. ", text)
    for one in text.split("\0"):
        yield from re.split(more, one) if more else [one]


def n_words(sentence):
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


def paragraphs(page):
    """(line, text, whether it is a cell of a table) of a document, without code, links and remarks."""
    page = re.sub(r"(?ms)^ *```.*?^ *```$|<!--.*?-->", lambda found: "\n" * found.group().count("\n"), page)
    page = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", page)
    start, parts = 0, []
    for number, line in enumerate(page.split("\n") + [""], 1):
        line = line.strip()
        is_item = re.match(r"([-*]|\d+\.) ", line)
        if parts and (not line or line[0] in "|#" or is_item):
            yield start, " ".join(parts), False
            parts = []
        if line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line)[1:-1]:
                yield number, cell.strip(), True
        elif line and line[0] != "#":
            start = start if parts else number
            parts.append(re.sub(r"^([-*]|\d+\.) +", "", line) if is_item else line)


def document_sentences(page):
    for line, text, is_cell in paragraphs(page):
        text = re.sub(r"`[^`]*`", "`", text)
        for one in sentences(text, r";\s" if is_cell else None):
            yield line, one


def tokens(source):
    """[line, text, whether it is a comment] of C: comments, and strings joined with those that follow at once."""
    found, end = [], 0
    for token in TOKEN.finditer(source):
        text, line = token.group(), source.count("\n", 0, token.start()) + 1
        if text[0] == "/":
            found.append([line, re.sub(r"^/\*+|\*/$|^//", "", text), True])
        elif text[0] == "\"":
            gap = source[end:token.start()]
            if found and not found[-1][2] and end and BETWEEN.fullmatch(gap):
                found[-1][1] += ("X" if gap.strip() else "") + text[1:-1]
            else:
                found.append([line, text[1:-1], False])
        end = token.end() if text[0] == "\"" else 0
    return found


def string_sentences(source):
    for line, text, is_comment in tokens(source):
        if is_comment or MARKUP.search(text):
            continue
        text = text.replace("\\n", "\n").replace("\\v", "\n\n").replace("\\\"", "\"")
        text = re.sub(r"(?m)^  .*$", "", text)  # examples
        for part in re.split(r"\n\s*\n", text):
            for one in sentences(" ".join(part.split()), r"[;:]\s"):
                yield line, one


def comment_sentences(source):
    for line, text, is_comment in tokens(source):
        if not is_comment or "clang-format" in text:
            continue
        parts = [""]
        for one in text.split("\n"):
            one = re.sub(r"^\s*\* ?", "", one)
            if re.search(r"\S {2,}\S|^ {6,}", one):  # a table, a drawing
                parts.append("")
                continue
            begins = not one.strip() or re.match(r"\s*(@|Errors:|Source:|Returns? |[-*] |\w+ - )", one)
            if begins:
                parts.append("")
            parts[-1] += " " + re.sub(r"^\s*(@[\w, @]+:|Errors:|Source:)", "", one).strip()
        for part in parts:
            for one in sentences(part, r"[;:]\s"):
                yield line, one


def avoided(glossary):
    """The third column: words that no text has."""
    rows = re.findall(r"(?m)^\|[^|\n]*\|[^|\n]*\|([^|\n]*)\|$", glossary)
    words = {word.strip() for row in rows for word in row.split(",")} - {"", "---", "do not say"}
    return words - AMBIGUOUS, AMBIGUOUS - words


def complaints(where, found, words):
    for line, sentence in found:
        if n_words(sentence) > MAX_WORDS:
            yield "%s:%d: %d words: %s" % (where, line, n_words(sentence), sentence.strip()[:120])
        for word in words:
            if re.search(r"\b%s\b" % re.escape(word), sentence):
                yield "%s:%d: '%s' is a word that docs/glossary.md replaces: %s" % (where, line, word, sentence.strip()[:120])


def check_itself():
    """What must be found, and what must not."""
    long = "One " + "word " * MAX_WORDS
    expected = (
        (document_sentences, long + "more. Short.", 1), (document_sentences, "| a | %s; %s |" % ("w " * 20, "w " * 20), 0),
        (document_sentences, "```\n%s\n```\n" % long, 0), (document_sentences, "The plumbing.", 1),
        (string_sentences, "cli_fail(1, \"%s\"\n\t\"%s\");" % ("w " * 20, "w " * 20), 1), (string_sentences, "/* %s */" % long, 0),
        (string_sentences, "f(\"%s: %s\");" % ("w " * 20, "w " * 20), 0), (comment_sentences, "/*\n * %s\n * %s\n */" % (long, long), 1),
        (comment_sentences, "/*\n * a      %s\n */" % long, 0), (comment_sentences, "int a; /* the plumbing */", 1))
    for of, text, n in expected:
        if len(list(complaints("", of(text), {"plumbing"}))) != n:
            return "%s finds not %d in %r" % (of.__name__, n, text)
    return None


def files(root):
    """Paths of the checkout, or of an archive without a repository."""
    listed = subprocess.run(["git", "-C", root, "ls-files"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if listed.returncode == 0 and listed.stdout:
        return sorted(path for path in listed.stdout.split("\n") if os.path.exists(os.path.join(root, path)))
    return sorted(os.path.relpath(os.path.join(at, name), root) for top in FOLDERS + ("docs",) for at, _, names in os.walk(os.path.join(root, top))
                  for name in names) + ["README.md", "CONTRIBUTING.md", "SECURITY.md"]


def main(root):
    wrong, counts = [check_itself()], {"documents": 0, "sources": 0, "headers": 0}
    with open(os.path.join(root, "docs", "glossary.md"), encoding="utf-8") as file:
        words, unknown = avoided(file.read())
    if len(words) < 10 or unknown:
        wrong.append("docs/glossary.md: the third column has %d words, and not %s" % (len(words), ", ".join(sorted(unknown)) or "enough"))
    for path in files(root):
        is_c = path.startswith(FOLDERS) and path.endswith((".c", ".h"))
        is_page = path in ("README.md", "CONTRIBUTING.md", "SECURITY.md") or (path.startswith("docs/") and path.endswith(".md"))
        if not is_c and not is_page or path in NOT_PROSE:
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        if is_page:
            counts["documents"] += 1
            wrong += complaints(path, document_sentences(text), () if path == "docs/glossary.md" else words)
            continue
        counts["sources"] += 1
        wrong += complaints(path, string_sentences(text), words)
        if path.endswith(".h"):
            counts["headers"] += 1
            wrong += complaints(path, comment_sentences(text), words)
    if counts["documents"] < 20 or counts["sources"] < 500 or counts["headers"] < 200:
        wrong.append("only %s were found" % counts)
    wrong = [one for one in wrong if one]
    print("\n".join(wrong) or "%(documents)d documents, %(sources)d sources, %(headers)d headers" % counts)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
