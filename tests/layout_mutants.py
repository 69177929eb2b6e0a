#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Moves each field of each CPython layout by eight bytes, and expects that a unit test fails.

Usage: layout_mutants.py BUILD [RELEASE...]   (default: all that unwind/cpython/releases has)

The programs of BUILD that read images of interpreters' memory contain the table of layouts; a mutant is a copy of one with
another number there, so nothing is compiled. A row 'word', which tells where the interpreter itself has an offset, is moved
by one word. A survivor is a row whose fault no test sees. Those that are known, with the reason, are in
layout_survivors.txt beside this file; exit status 1 iff another one survives, or one of these does not.
"""
import concurrent.futures
import fnmatch
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
RELEASES = os.path.join(ROOT, "unwind", "cpython", "releases")
SURVIVORS = os.path.join(HERE, "layout_survivors.txt")
# In the order in which they are tried: the most likely to fail, the fastest first.
PROGRAMS = ("test_images", "test_asyncio", "test_layout")
HEAD = struct.Struct("<BBBxH")  # struct release of unwind/cpython/layout.c, up to its two arrays
TIMEOUT_S = 60
MOVE_BYTES = 8


def fields():
    with open(os.path.join(ROOT, "unwind", "cpython", "layout.h"), encoding="utf-8") as file:
        listed = file.read().split("#define LAYOUT_FIELDS(X)")[1].split("\nenum ")[0]
    return re.findall(r"X\((\w+)\)", listed)


def rows(release):
    """(kind, field, number) of a release's file."""
    with open(os.path.join(RELEASES, release), encoding="ascii") as file:
        for line in file:
            kind, *rest = line.split()
            if kind in ("offset", "word"):
                yield kind, rest[0], int(rest[1])


class Program:
    """A test program, whose table of layouts can be changed."""

    def __init__(self, build, name):
        self.path = os.path.join(build, "tests", "unit", name)
        self.fields = fields()
        self.entry_bytes = HEAD.size + 2 * 2 * len(self.fields)
        with open(self.path, "rb") as file:
            self.contents = file.read()
        self.table = self.find_table(len(os.listdir(RELEASES)))

    def find_table(self, n):
        """Where it lies in the file: by its symbol, and the section of that."""
        wanted = n * self.entry_bytes
        sections = subprocess.run(["readelf", "-SW", self.path], stdout=subprocess.PIPE, text=True, check=True).stdout
        for line in subprocess.run(["nm", "-S", self.path], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            words = line.split()
            if len(words) == 4 and words[3] == "releases" and int(words[1], 16) == wanted:
                address = int(words[0], 16)
                break
        else:
            sys.exit("layout_mutants: %s has no table of %d layouts with %d fields" % (self.path, n, len(self.fields)))
        for match in re.finditer(r"\] \.\S+\s+PROGBITS\s+(\w+) (\w+) (\w+) ", sections):
            start, offset, size = (int(word, 16) for word in match.groups())
            if start <= address < start + size:
                return address - start + offset
        sys.exit("layout_mutants: %s: no section has the table" % self.path)

    def place(self, release, kind, field):
        """Where a row's number is in the file."""
        major, minor, free_threaded = re.fullmatch(r"(\d+)\.(\d+)(t?)", release).groups()
        at = self.table
        while HEAD.unpack_from(self.contents, at)[:3] != (int(major), int(minor), bool(free_threaded)):
            at += self.entry_bytes
        n = self.fields.index(field) + (len(self.fields) if kind == "word" else 0)
        return at + HEAD.size + 2 * n

    def fails(self, folder, release, row):
        """Whether a program with that row moved fails."""
        kind, field, number = row
        at = self.place(release, kind, field)
        if struct.unpack_from("<H", self.contents, at)[0] != number + 1:
            sys.exit("layout_mutants: %s is not built from these sources" % self.path)
        moved = struct.pack("<H", number + 1 + (1 if kind == "word" else MOVE_BYTES))
        return self.run(folder, release, self.contents[:at] + moved + self.contents[at + 2:], row)

    def run(self, folder, release, contents, row):
        path = os.path.join(folder, "_".join((os.path.basename(self.path), release) + tuple(map(str, row))))
        with open(path, "wb") as file:
            file.write(contents)
        os.chmod(path, 0o700)
        images = release[:-1] + ".*t*.image" if release.endswith("t") else release + ".*[0-9].image"
        try:
            return subprocess.run([path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False,
                                  env=dict(os.environ, PROBING_SOURCE_ROOT=ROOT, PROBING_IMAGES=images)).returncode != 0
        except subprocess.TimeoutExpired:
            return True
        finally:
            os.remove(path)


def known_survivors():
    """(pattern of releases, kind, pattern of fields, reason)"""
    with open(SURVIVORS, encoding="utf-8") as file:
        return [tuple(line.strip().split(maxsplit=3)) for line in file if line.strip() and not line.startswith("#")]


def is_known(known, release, row):
    return any(fnmatch.fnmatchcase(release, releases) and row[0] == kind and fnmatch.fnmatchcase(row[1], names)
               for releases, kind, names, _ in known)


def images_of(release):
    suffix = "t*" if release.endswith("t") else ""
    found = glob.glob(os.path.join(ROOT, "fixtures", "images", "%s.*%s.image" % (release.rstrip("t"), suffix)))
    return [path for path in found if suffix or re.search(r"\d\.image$", path)]


def main(build, releases):
    programs = [Program(build, name) for name in PROGRAMS]
    known, n_rows, n_known, wrong = known_survivors(), 0, 0, []
    with tempfile.TemporaryDirectory(prefix="probing-mutants.") as folder, \
            concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for release in releases:
            if not images_of(release):
                print("%s: no image of it" % release)
                continue
            for program in programs:
                if program.run(folder, release, program.contents, ("unchanged",)):
                    sys.exit("layout_mutants: %s fails as it is" % program.path)
            mutants = list(rows(release))
            killed = list(pool.map(lambda row, release=release: any(
                program.fails(folder, release, row) for program in programs), mutants))
            for row, dead in zip(mutants, killed):
                n_rows += 1
                expected = is_known(known, release, row)
                n_known += expected and not dead
                if dead == expected:
                    wrong.append("%s: %s %s %s" % (release, row[0], row[1], "is killed, and listed as a survivor" if dead else "survives"))
            print("%s: %d of %d killed" % (release, sum(killed), len(killed)), flush=True)
    print("\n".join(wrong))
    print("%d rows, %d known survivors, %d not as expected" % (n_rows, n_known, len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or not shutil.which("readelf"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:] or sorted(os.listdir(RELEASES), key=lambda name: (
        [int(part) for part in name.rstrip("t").split(".")], name))))
