#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/asyncio: images of interpreters whose event loops have tasks, and changes of them.

Recipe: fuzz/make_asyncio_corpus.py [BUILD [INTERPRETER...]]
(default: build, and 3.7, 3.9, 3.11 to 3.13 in ~/.pyenv/versions and those in the root that scripts/roots
makes, for which it takes root)
  3.NN     tasks.py under an interpreter, cut by tools/cut_image.c
  3.NN_*   with tasks in a circle, or a layout that cannot be
Files called found_* are what the fuzzer found to reach more of the reader: they stay.
"""
import glob
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "corpus", "asyncio")
SID = os.path.join(os.environ.get("PROBING_ROOTS") or os.path.expanduser("~/.cache/probing/roots"), "sid")
# Words of what asyncio says of its layout, from 3.14.
TASK_BYTES, TASK_NODE, THREAD_TASKS = 0, 6, 12


def command(interpreter, program):
    return (["chroot", SID] if interpreter.startswith("/usr/bin") else []) + [interpreter, "-E", "-S", "-c", program]


def cut(build, interpreter, name):
    path = os.path.join(CORPUS, name)
    with open(os.path.join(HERE, "tasks.py"), encoding="utf-8") as file:
        program = file.read()
    process = subprocess.Popen(command(interpreter, program), stdout=subprocess.PIPE, cwd="/",
                               env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]})
    try:
        process.stdout.readline()
        subprocess.run([os.path.join(build, "fuzz", "cut_image"), path, "process=%d" % process.pid,
                        "thread=%d" % process.pid, "tasks=1"], check=True)
    finally:
        process.kill()
        process.wait()
    with open(path, "rb") as file:
        contents = file.read()
    home = os.path.expanduser("~").encode()
    contents = contents.replace(home, b"/home".ljust(len(home), b"_")[:len(home)])
    with open(path, "wb") as file:
        file.write(contents)
    return contents


def changes(contents):
    section = struct.unpack_from("<Q", contents)[0]

    def changed(word, value):
        return contents + struct.pack("<QHQ", section + 8 * word, 8, value)
    yield "task_of_no_size", changed(TASK_BYTES, 0)
    yield "node_beyond_the_task", changed(TASK_NODE, 1 << 19)
    yield "tasks_elsewhere", changed(THREAD_TASKS, 8)


def main(build, interpreters):
    os.makedirs(CORPUS, exist_ok=True)
    for interpreter in interpreters:
        name = re.search(r"python(\d\.\d+)$", interpreter)[1]
        contents = cut(build, interpreter, name)
        if struct.unpack_from("<Q", contents)[0] != 0:
            for change, bytes_ in changes(contents):
                with open(os.path.join(CORPUS, name + "_" + change), "wb") as file:
                    file.write(bytes_)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build", sys.argv[2:] or sorted(
        path for path in glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3.*"))
        if re.search(r"python3\.(7|9|11|12|13)$", path)) + ["/usr/bin/python3.14", "/usr/bin/python3.15"])
