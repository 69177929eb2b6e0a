# SPDX-License-Identifier: MIT
# -*- coding: utf-8 -*-
"""Stands still in a stack with a bit of everything, to be made an image of.

Says its pid and a thread's id. For 2.7 and up; see make_cpython_corpus.py.
"""
import ctypes
import functools
import os
import sys
import threading
import time

SYS_gettid = {"x86_64": 186, "aarch64": 178}[os.uname()[4]]

# Names of one, two and four bytes a character, and a generator that delegates.
NEW = u"""
class Größe:
    def 测量(self, n):
        return self.测量(n - 1) if n else list(delegating())

def delegating():
    yield from generator()

method = Größe().测量
"""
OLD = """
class Size(object):
    def measure(self, n):
        return self.measure(n - 1) if n else list(delegating())

def delegating():
    for x in generator():
        yield x

method = Size().measure
"""


class Point(object):
    def __init__(self, x, y):
        self.x = x
        self.y = y


class Slotted(object):
    __slots__ = ("left",)

    def __init__(self):
        self.left = u"\xfc"


def park():
    sys.stdout.write("%d %d\n" % (os.getpid(), ctypes.CDLL(None).syscall(SYS_gettid)))
    sys.stdout.flush()
    time.sleep(1000)


def generator():
    numbers = [0, -1, 1 << 70, 1.5, 2j, True, None]
    items = {"a": (1, "b"), 2: {3}, None: frozenset([b"c"])}
    point = Point(numbers, Slotted())
    error = ValueError(u"\u540d", point)
    yield park()


def run():
    sorted((2, 1), key=functools.partial(globals()["method"]))


if sys.version_info[0] > 2:
    exec(compile(NEW, u"\U0001f40d.py", "exec"))
else:
    exec(compile(OLD, "old.py", "exec"))
thread = threading.Thread(target=run)
thread.daemon = True
thread.start()
time.sleep(1000)
