#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the bombs of fuzz/corpus/import_*: small files of other profilers that would become much.

    fuzz/make_import_bombs.py

  import_pprof/bomb_strings    40 KB that unpack to twenty million empty strings
  import_pprof/bomb_locations  a sample of a million locations
  import_nsys/bomb_branches    a table all of whose branches are the same page
"""
import gzip
import os
import pathlib
import sqlite3
import struct
import tempfile

CORPUS = pathlib.Path(__file__).resolve().parent / 'corpus'


def strings():
    return gzip.compress(b'\x32\x00' * (20 << 20), 9, mtime=0)


def locations():
    sample_type = b'\x0a\x04\x08\x01\x10\x02'
    return gzip.compress(sample_type + b'\x12\x84\x80\x40\x0a\x80\x80\x40' + b'\x01' * (1 << 20), 9, mtime=0)


def branches():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'db')
        db = sqlite3.connect(path)
        db.execute('PRAGMA page_size = 512')
        db.execute('CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER)')
        db.executemany('INSERT INTO NVTX_EVENTS VALUES(?, ?, 59, ?, 1)', ((i, i + 1, 'x' * 40) for i in range(300)))
        db.commit()
        root = db.execute('SELECT rootpage FROM sqlite_schema').fetchone()[0]
        db.close()
        contents = bytearray(pathlib.Path(path).read_bytes())
    at = (root - 1) * 512
    assert contents[at] == 5, 'the root is no interior page'
    cells = struct.unpack_from('>%dH' % struct.unpack_from('>H', contents, at + 3)[0], contents, at + 12)
    for cell in cells:
        contents[at + cell:at + cell + 4] = contents[at + cells[0]:at + cells[0] + 4]
    return bytes(contents)


def main():
    for name, make in (('import_pprof/bomb_strings', strings), ('import_pprof/bomb_locations', locations),
                       ('import_nsys/bomb_branches', branches)):
        (CORPUS / name).write_bytes(make())


if __name__ == '__main__':
    main()
