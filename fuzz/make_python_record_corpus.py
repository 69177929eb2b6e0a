#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/python_record: images that the BPF program is run on, and records.

Recipe: fuzz/make_python_record_corpus.py
  image_*   those of fuzz/corpus/cpython that differ in how frames are chained
  record_*  made here: whole, with a circle, with counts that do not fit
Formats: fuzz/fuzz_python_record.c, base/python_record.h.
"""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGES = os.path.join(HERE, "corpus", "cpython")
CORPUS = os.path.join(HERE, "corpus", "python_record")
KINDS = ("2.7", "3.8", "3.11", "3.12", "3.13", "3.14t", "3.11_frames_in_a_circle", "3.13_threads_in_a_circle")
STATE, SHIM_OWNER, MARK = 0x5000, 3, 0x50790000


def image(name):
    with open(os.path.join(IMAGES, name), "rb") as file:
        return file.read()


def entry(address, previous, instruction=0, code=0x9000, kind=0, owner=0, is_entry=0):
    return struct.pack("<11Q3I4B", address, previous, instruction, 0, code, 0x9100, 0x9200, 0x9300, 10, 0, 0,
                       1, 1, 0, kind, owner, is_entry, 0)


def record(release, top, entries, n_entries=None, n_states=1):
    states = struct.pack("<3Q", STATE, 0x4000, top) + bytes(3 * 24)
    head = struct.pack("<3IQ2IQ4I", MARK, 1, 1, 0, 0, 0, 1, len(entries) if n_entries is None else n_entries, n_states, 0, 0)
    raw = head + states + b"".join(entries)
    body = struct.pack("<I", len(raw)) + raw
    return b"\1" + struct.pack("<H", len(body)) + body + image(release)


RECORDS = {
    "objects": record("2.7", 0x1000, [entry(0x1000, 0x2000), entry(0x2000, 0)]),
    "cframes": record("3.11", 0x1000, [entry(0x1000, STATE + 336, 0x2000, kind=1), entry(0x2000, 0, is_entry=1)]),
    "shims": record("3.13", 0x1000, [entry(0x1000, 0x2000), entry(0x2000, 0, owner=SHIM_OWNER, code=0)]),
    "no_frames": record("3.12", STATE + 272, []),
    "circle": record("3.13", 0x1000, [entry(0x1000, 0x2000), entry(0x2000, 0x1000)]),
    "cframes_in_a_circle": record("3.12", 0x1000, [entry(0x1000, 0x1000, 0x2000, kind=1)]),
    "too_many_entries": record("3.13", 0x1000, [entry(0x1000, 0)], n_entries=513),
    "fewer_entries_than_said": record("3.13", 0x1000, [entry(0x1000, 0)], n_entries=2),
    "too_many_states": record("3.13", 0x1000, [entry(0x1000, 0)], n_states=5),
}


def main():
    os.makedirs(CORPUS, exist_ok=True)
    for kind in KINDS:
        with open(os.path.join(CORPUS, "image_" + kind), "wb") as file:
            file.write(b"\0" + image(kind))
    for name, content in RECORDS.items():
        with open(os.path.join(CORPUS, "record_" + name), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main()
