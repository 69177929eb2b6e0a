#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/ring: files of rings, whole and spoilt. See src/ring/layout.h."""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
TO = os.path.join(HERE, "corpus", "ring")
HEADER_BYTES = 8192
INTEGER, REAL, NUMBER, TEXT = 1, 2, 3, 4


def ring(name=b"table", columns=((b"n", INTEGER, 8), (b"loss", REAL, 8), (b"any", NUMBER, 8), (b"text", TEXT, 16)), n_rows=8,
         head=11, sequences=None, texts=b"t\xc3\xa9xt", **changed):
    row_bytes = 32 + sum(column[2] for column in columns)
    fields = dict(magic=0x676e6972626f7270, version=1, n_columns=len(columns), file_bytes=HEADER_BYTES + n_rows * row_bytes,
                  n_rows=n_rows, pid=42, start=4711, offset=10 ** 18)
    fields.update(changed)
    header = struct.pack("=QIIQQiIQq64sQ", fields["magic"], fields["version"], fields["n_columns"], fields["file_bytes"],
                         fields["n_rows"], fields["pid"], 0, fields["start"], fields["offset"], name, 0)
    header += struct.pack("=Q56x", head) + struct.pack("=QQQ40x", 1, 2, 3)
    header += b"".join(struct.pack("=56sII", *column) for column in columns)
    if sequences is None:
        sequences = [2 * (head - 1 - (head - 1 - slot) % n_rows) + 2 for slot in range(n_rows)]
    body = struct.pack("=%dQ" % n_rows, *sequences)
    body += struct.pack("=%dQ" % n_rows, *range(1000, 1000 + n_rows))
    body += struct.pack("=%dQ" % n_rows, *([0, 1, 2, 15] * n_rows)[:n_rows])
    body += struct.pack("=%dQ" % n_rows, *([0, 4] * n_rows)[:n_rows])
    for _, kind, n_bytes in columns:
        cell = texts[:n_bytes].ljust(n_bytes, b"\0") if kind == TEXT else struct.pack("=d", 1.5)
        body += cell * n_rows
    return header.ljust(HEADER_BYTES, b"\0") + body


def main():
    os.makedirs(TO, exist_ok=True)
    files = {
        "whole": ring(), "empty": ring(head=0, sequences=[0] * 8), "no_columns": ring(columns=()),
        "claimed": ring(sequences=[17, 20, 5, 8, 10, 12, 13, 16]), "ahead": ring(sequences=[2 ** 64 - 2, 2 ** 64 - 1] + [2 ** 63] * 6),
        "same_row": ring(sequences=[18] * 8), "bad_text": ring(texts=b"\xff\xed\xa0\x80\xf0\x9f\x90\xc3\xf5\xe0\x80\x80\xf4\x90\x80\x80"),
        "other_version": ring(version=2), "bad_magic": ring(magic=1), "many_columns": ring(n_columns=65),
        "huge": ring(file_bytes=2 ** 63), "many_rows": ring(n_rows=8, file_bytes=HEADER_BYTES + (2 ** 61) * 72 % 2 ** 64),
        "bad_name": ring(name=b"a\nb"), "endless_name": ring(name=b"a" * 64), "short": ring()[:-16], "header_only": ring()[:HEADER_BYTES],
        "nothing": b"", "bad_type": ring(columns=((b"n", 9, 8),)), "odd_cell": ring(columns=((b"t", TEXT, 12),)),
        "wide": ring(columns=((b"t", TEXT, 4096),), n_rows=8), "most_columns": ring(columns=tuple((b"c%d" % i, NUMBER, 8) for i in range(64))),
    }
    for name, content in files.items():
        with open(os.path.join(TO, name), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main()
