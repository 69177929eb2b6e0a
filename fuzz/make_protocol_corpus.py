#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes fuzz/corpus/protocol: conversations with the agent as src/agent/protocol.h describes them, and broken ones."""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION = 1
HELLO, EVALUATE, INTERRUPT, DETACH, WELCOME, STARTED, OUTPUT, RESULT, REFUSED, BYE, CONFIGURE, CONFIGURATION, SAMPLE, SAMPLING, LAYOUT = range(1, 16)
PROBING, AGENT = b"\0", b"\1"


def message(kind, payload=b"", version=VERSION, n_bytes=None):
    return struct.pack("=IHH", 8 + len(payload) if n_bytes is None else n_bytes, kind, version) + payload


def number(value, text=b""):
    return struct.pack("=I", value) + text


CORPUS = {
    "asks": PROBING + message(HELLO) + message(EVALUATE, number(500, b"1 + 1")) + message(INTERRUPT) + message(DETACH),
    "answers": AGENT + message(WELCOME, number(42, b"3.11.2")) + message(STARTED) + message(OUTPUT, number(1, b"hi\n")) +
    message(RESULT, number(0, b"2")) + message(REFUSED, b"why") + message(BYE),
    "wrong_direction": PROBING + message(WELCOME, number(42)),
    "wrong_version": PROBING + message(HELLO, version=2),
    "no_kind": AGENT + message(11),
    "samples": PROBING + message(SAMPLE, struct.pack("=II", 99000, 32768)) + message(LAYOUT, b"l" * 300),
    "sampling": AGENT + message(SAMPLING),
    "sample_without_size": PROBING + message(SAMPLE, number(99000)),
    "sample_too_often": PROBING + message(SAMPLE, struct.pack("=II", 1 << 31, 0)),
    "too_short": PROBING + message(EVALUATE, n_bytes=9),
    "too_long": PROBING + message(EVALUATE, number(1), n_bytes=1 << 30),
    "half": AGENT + message(OUTPUT, number(2, b"x" * 100))[:40],
    "wrong_outcome": AGENT + message(RESULT, number(6, b"")),
    "hello_with_text": PROBING + message(HELLO, b"x"),
}

for name, content in CORPUS.items():
    with open(os.path.join(HERE, "corpus", "protocol", name), "wb") as file:
        file.write(content)
