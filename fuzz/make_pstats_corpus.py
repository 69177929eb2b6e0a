#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Profiles of Python's own profilers for fuzz/corpus/import_pstats: make_pstats_corpus.py FOLDER

Runs a small program under cProfile and under profile, and dumps what they have in each version of marshal, as every
Python from 2.7 on would; and one by hand in which functions call each other in circles.
"""
import cProfile
import marshal
import os
import profile
import sys


def leaf(n):
    return sum(i * i for i in range(n))


def light():
    return leaf(200)


def heavy():
    return leaf(600)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def work():
    for _ in range(10):
        light()
        heavy()
    fib(8)
    sorted(range(20), key=lambda x: -x)


def stats_of(profiler):
    profiler.runcall(work)
    profiler.create_stats()
    return {(os.path.basename(file), line, name): (cc, nc, tt, ct, {
        (os.path.basename(f), l, n): row for (f, l, n), row in callers.items()})
        for (file, line, name), (cc, nc, tt, ct, callers) in profiler.stats.items()}


def circle():
    """a calls b and c, b calls c, c calls a; nothing calls a first."""
    a, b, c = ("x.py", 1, "a"), ("x.py", 2, "b"), ("x.py", 3, "c")
    return {a: (1, 2, 1.0, 6.0, {c: (1, 1, 0.5, 2.0)}),
            b: (1, 1, 2.0, 5.0, {a: (1, 1, 2.0, 5.0)}),
            c: (1, 2, 3.0, 4.0, {a: (1, 1, 1.0, 1.5), b: (1, 1, 2.0, 2.5)})}


def main():
    folder = sys.argv[1]
    stats = stats_of(cProfile.Profile())
    for version in range(5):
        with open(os.path.join(folder, "cprofile.%d" % version), "wb") as file:
            file.write(marshal.dumps(stats, version))
    with open(os.path.join(folder, "profile.4"), "wb") as file:
        file.write(marshal.dumps(stats_of(profile.Profile()), 4))
    with open(os.path.join(folder, "circle.2"), "wb") as file:
        file.write(marshal.dumps(circle(), 2))


if __name__ == "__main__":
    main()
