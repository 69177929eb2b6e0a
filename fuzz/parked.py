"""Stands still in a stack with a bit of everything, to be made a snapshot of.

Recipe of fuzz/corpus/cpython (ninja fuzz/snapshot_python first):
  python3.NN fuzz/parked.py &            # says its pid and a thread's id
  BUILD/fuzz/snapshot_python PID TID fuzz/corpus/cpython/3.NN
The paths of the library's files are in it. The other files of the corpus are
changes of these: lists that run in circles, offsets that cannot be, and what
the fuzzer found to reach more of the reader (found_*).
"""
import functools
import os
import threading
import time

# Names of one, two and four bytes a character.
NAMES = """
class Größe:
    def 测量(self, n):
        return self.测量(n - 1) if n else list(delegating())
"""


def park():
    print(os.getpid(), threading.get_native_id(), flush=True)
    time.sleep(1000)


def generator():
    yield park()


def delegating():
    yield from generator()


def run():
    sorted((2, 1), key=functools.partial(globals()["Größe"]().测量))


exec(compile(NAMES, "\N{SNAKE}.py", "exec"))
threading.Thread(target=run).start()
