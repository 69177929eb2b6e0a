#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/cpython: images of interpreters that stand still, and changes of them.

Recipe: fuzz/make_cpython_corpus.py [BUILD [INTERPRETER...]]
(default: build, and the interpreters in ~/.pyenv/versions and fixtures/images)
  3.NN     parked.py under an interpreter, cut by tools/cut_image.c
  3.NN     or an image in fixtures/images, cut smaller
  3.NN_*   with frames or threads in a circle, or with debug offsets that cannot be
Files called found_* are what the fuzzer found to reach more of the reader: they stay.
The format of all is described in tests/unit/memory_image.h.
"""
import glob
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
CORPUS = os.path.join(HERE, "corpus", "cpython")
HEAD_BYTES = 4 + 6 * 8 + 8 * 4
RUNTIME_AT, INTERPRETERS_AT = 4, 4 + 2 * 8


class Image:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.memory = {}
        at = HEAD_BYTES
        while at < len(self.bytes):
            address, n = struct.unpack_from("<QH", self.bytes, at)
            self.memory.update((address + i, self.bytes[at + 10 + i]) for i in range(n))
            at += 10 + n

    def word(self, address):
        return struct.unpack("<Q", bytes(self.memory.get(address + i, 0) for i in range(8)))[0]

    def head(self, at):
        return struct.unpack_from("<Q", self.bytes, at)[0]

    def changed(self, address, value):
        """A later piece goes over the earlier ones."""
        return self.bytes + struct.pack("<QHQ", address, 8, value)


def offsets(image, release):
    found = {}
    with open(os.path.join(ROOT, "unwind", "cpython", "releases", release), encoding="ascii") as file:
        for line in file:
            kind, *rest = line.split()
            if kind == "offset":
                found[rest[0]] = int(rest[1])
            elif kind == "word":
                found[rest[0]] = image.word(image.head(RUNTIME_AT) + 8 * int(rest[1]))
    return found


def threads(image, at):
    """Thread states of the first interpreter."""
    head = image.head(INTERPRETERS_AT)
    if "RUNTIME_INTERPRETERS" in at:
        head = image.head(RUNTIME_AT) + at["RUNTIME_INTERPRETERS"]
    thread = image.word(image.word(head) + at["INTERPRETER_THREADS"])
    while thread:
        yield thread
        thread = image.word(thread + at["THREAD_NEXT"])


def frames(image, at, thread):
    if "THREAD_CFRAME" in at:
        frame = image.word(image.word(thread + at["THREAD_CFRAME"]) + at["CFRAME_FRAME"])
    else:
        frame = image.word(thread + at["THREAD_FRAME"])
    while frame:
        yield frame
        frame = image.word(frame + at["FRAME_PREVIOUS"])


def changes(image, release):
    at = offsets(image, release)
    states = list(threads(image, at))
    stacks = [list(frames(image, at, thread)) for thread in states]
    stack = max(stacks, key=len)
    yield "threads_in_a_circle", image.changed(states[0] + at["THREAD_NEXT"], states[0])
    yield "frames_in_a_circle", image.changed(stack[4] + at["FRAME_PREVIOUS"], stack[1])


def offset_changes(image):
    runtime = image.head(RUNTIME_AT)
    yield "offsets_of_another_build", image.changed(runtime + 8, 0x030d01f0)
    yield "offset_too_large", image.changed(runtime + 8 * 22, 1 << 40)
    yield "field_beyond_what_is_read", image.changed(runtime + 8 * 35, 4096)
    yield "type_beyond_what_is_read", image.changed(runtime + 8 * 45, 304)


def write(name, contents):
    with open(os.path.join(CORPUS, name), "wb") as file:
        file.write(contents)


def cut(build, name, *arguments):
    subprocess.run([os.path.join(build, "fuzz", "cut_image"), os.path.join(CORPUS, name), *arguments], check=True)


def hide_home(name):
    """Another folder of the same length for the home that the interpreters are in."""
    home = os.path.expanduser("~").encode()
    with open(os.path.join(CORPUS, name), "rb") as file:
        contents = file.read()
    write(name, contents.replace(home, b"/home".ljust(len(home), b"_")[:len(home)]))


def cut_live(build, interpreter, name):
    environment = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    # By exec, so that the file's name has no folder.
    program = "exec(compile(open('parked.py', 'rb').read(), 'parked.py', 'exec'))"
    process = subprocess.Popen([interpreter, "-B", "-c", program], stdout=subprocess.PIPE, env=environment, cwd=HERE)
    try:
        pid, thread = process.stdout.readline().split()
        cut(build, name, "process=%d" % int(pid), "thread=%d" % int(thread))
    finally:
        process.kill()
        process.wait()
    hide_home(name)


def cut_fixture(build, path):
    """The threads with a generator and with wide names."""
    with open(path.replace(".image", ".truth"), encoding="utf-8") as file:
        numbers = re.findall(r"^thread (\d+) (?:generator|wide)$", file.read(), re.M)
    name = re.sub(r"^(\d\.\d+)\.\d+", r"\1", os.path.basename(path)[:-len(".image")])
    cut(build, name, "image=" + path, *("thread=" + number for number in numbers))
    return name


def main(build, interpreters, fixtures):
    names = [cut_fixture(build, path) for path in fixtures]
    for interpreter in interpreters:
        name = re.fullmatch(r".*/python(\d\.\d+t?)", interpreter)
        if name:
            cut_live(build, interpreter, name[1])
            names.append(name[1])
    for name in names:
        image = Image(os.path.join(CORPUS, name))
        for change, contents in changes(image, name.replace("tc", "")):
            write(name + "_" + change, contents)
        if name == "3.13":
            for change, contents in offset_changes(image):
                write(name + "_" + change, contents)
    # Writable memory, of which nothing is there, up to the end of all addresses.
    write("nothing_to_the_end", struct.pack("<I6Q32x", 1, 0, 0, 0, 0, 2 ** 64 - 2 ** 26 - 1, 2 ** 64 - 1))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(sys.argv[1], sys.argv[2:], [])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "build",
             sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python?.*"))),
             sorted(glob.glob(os.path.join(ROOT, "fixtures", "images", "*.image"))))
