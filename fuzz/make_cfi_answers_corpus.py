#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/cfi_answers: what the process that reads ELF files answers, well and badly.

    fuzz/make_cfi_answers_corpus.py

The layout of an input stands at the top of fuzz_cfi_answers.c, that of answers in src/pipeline/cfi_wire.h and
unwind/native/function_rows.c. Rows are those of x86-64.
"""
import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / "corpus" / "cfi_answers"
MAPPED_AT, STACK_AT, STACK_BYTES, IMAGE_BYTES = 0x10000000, 0x7ffd00000000, 1024, 8192
EM_X86_64, BUILD_ID_MAX, N_SAVED = 62, 32, 8
ENOMEM = 12
FP, SP = 6, 7
CFA_NONE, CFA_REGISTER, CFA_DEREF, CFA_EXPRESSION = range(4)
SAME, UNDEFINED, EXPRESSION = -32768, -32767, -32766
DW_OP_deref, DW_OP_call_frame_cfa, DW_OP_breg7, DW_OP_plus_uconst, DW_OP_regx, DW_OP_drop = 0x06, 0x9c, 0x77, 0x23, 0x90, 0x13
WITHOUT_HEAD = 0x8000
PC = 0x1010


def packet(contents, without_head=False):
    return struct.pack("<H", len(contents) | (WITHOUT_HEAD if without_head else 0)) + contents


def segment(address=0x1000, offset=0x1000, file_bytes=0x1000, memory_bytes=0x1000, executable=1):
    return struct.pack("<4Q2I", address, offset, file_bytes, memory_bytes, 0, executable)


def summary(segments=(segment(0, 0, 0x1000, 0x1000, 0), segment()), error=0, n=None, n_id=20):
    head = struct.pack("<i3I", error, EM_X86_64, n_id, len(segments) if n is None else n)
    return head + bytes(range(BUILD_ID_MAX)) + b"".join(segments)


def pair(first, second, error=0):
    return struct.pack("<i4x2Q", error, first, second)


def row(start, end, kind=CFA_REGISTER, register=SP, offset=8, saved=(-8,) + (SAME,) * (N_SAVED - 1), expressions=b"", signal=0):
    return struct.pack("<2I4Bi%dh" % N_SAVED, start, end, kind, register, signal, 0, offset, *saved) + expressions


def operations(*ops):
    return struct.pack("<B", len(ops)) + b"".join(struct.pack("<B2Q", *(op + (0,) * (3 - len(op)))) for op in ops)


def part(number, start, end, *those, n=None, n_bytes=None):
    """The rows around one address of a question."""
    contents = struct.pack("<2QI", start, end, len(those) if n is None else n) + b"".join(those)
    return struct.pack("<2I", number, len(contents) if n_bytes is None else n_bytes) + contents


def parts(*those, error=0):
    return struct.pack("<i", error) + b"".join(those)


def rows(start, end, *those, n=None, error=0):
    return parts(part(0, start, end, *those, n=n), error=error)


def stack():
    """Return addresses all over, so that most rows lead on; frame pointers among them."""
    n = STACK_BYTES // 8
    words = [STACK_AT + 8 * ((i + 5) % n) if i % 3 == 2 else MAPPED_AT + PC + i for i in range(n)]
    return struct.pack("<%dQ" % n, *words)


OPENED = [summary(), pair(0x1100, 64), pair(0x1200, 128), pair(0x1000, 0x1100)]
FUNCTION = rows(0x1000, 0x1100, row(0, 0x20), row(0x20, 0x80, CFA_REGISTER, FP, 16, (-8, -16) + (SAME,) * 6),
                row(0x80, 0x100, CFA_DEREF, FP, -8))
HUGE = 0xffffffffffffffff
BY_EXPRESSIONS = rows(
    0x1000, 0x1100,
    row(0, 0x80, CFA_EXPRESSION, 0, 0, expressions=operations((DW_OP_breg7, 0xa0), (DW_OP_deref,))),
    row(0x80, 0x100, saved=(EXPRESSION, EXPRESSION) + (SAME,) * 6,
        expressions=operations((DW_OP_breg7, HUGE), (DW_OP_deref,)) + operations((DW_OP_call_frame_cfa,), (DW_OP_plus_uconst, 8))))

ANSWERS = {
    # Well.
    "function": OPENED + [FUNCTION] * 4,
    "functions": OPENED + [rows(PC + i, PC + i + 1, row(0, 1)) for i in range(24)],
    "expressions": OPENED + [BY_EXPRESSIONS],
    "signal": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, signal=1))],
    "outermost": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, saved=(UNDEFINED,) + (SAME,) * 7))],
    "without_cfi": OPENED + [rows(PC, PC + 1)] * 4,
    "not_found": [summary(), pair(0, 0, -2), pair(0, 0, -2), pair(0, 0, -2), rows(0, 1, error=-2)],
    "several": OPENED + [parts(part(0, PC, PC + 1, row(0, 1)), part(1, PC + 1, PC + 2, row(0, 1)), part(3, PC + 3, PC + 8, row(0, 5)))] * 4,
    "several_without_cfi": OPENED + [parts(part(0, PC, PC + 1, row(0, 1)), part(1, PC + 1, PC + 2), part(2, PC + 2, PC + 3))],
    "beside_known": OPENED + [rows(PC, PC + 1, row(0, 1)), rows(0x1000, 0x1100, row(0, 0x10), row(0x10, 0x11), row(0x11, 0x100))],
    # Badly.
    "no_first_part": OPENED + [parts(part(1, PC, PC + 1, row(0, 1)))],
    "no_part": OPENED + [parts()],
    "parts_in_disorder": OPENED + [parts(part(0, PC, PC + 1, row(0, 1)), part(2, PC + 2, PC + 3, row(0, 1)), part(1, PC + 1, PC + 2, row(0, 1)))],
    "same_part_twice": OPENED + [parts(part(0, PC, PC + 1, row(0, 1)), part(0, PC, PC + 1, row(0, 1)))],
    "part_beyond_the_question": OPENED + [parts(part(0, PC, PC + 1, row(0, 1)), part(16, PC + 1, PC + 2, row(0, 1)))],
    "long_part": OPENED + [parts(part(0, 0x1000, 0x1100, row(0, 0x100), n_bytes=0xffffffff))],
    "short_part": OPENED + [parts(part(0, 0x1000, 0x1100, row(0, 0x100), n_bytes=20))],
    "cut_part": OPENED + [parts(part(0, PC, PC + 1, row(0, 1)), part(1, PC + 1, PC + 2, row(0, 1))[:-1])],
    "parts_overlap": OPENED + [parts(part(0, 0x1000, 0x1100, row(0, 0x100)), part(1, 0x1000, 0x1200, row(0, 0x80), row(0x80, 0x200)))],
    "no_elf": [summary((), -8)],
    "out_of_memory": [summary(), pair(0, 0, -ENOMEM), pair(0, 0, -ENOMEM), pair(0, 0, -ENOMEM), rows(0, 1, error=-ENOMEM)],
    "many_segments": [summary((segment(),) * 65)],
    "more_segments": [summary(n=0xffffffff)],
    "long_build_id": [summary(n_id=33)],
    "all_segments": [summary((segment(),) * 64)] + OPENED[1:] + [FUNCTION],
    "segments_beyond": [summary((segment(0x1000, 0x7fffffffffff0000, HUGE, HUGE), segment(HUGE, HUGE, HUGE, 1),
                                 segment(0x1000, IMAGE_BYTES - 1, 2, 2)))] + OPENED[1:] + [FUNCTION],
    "another_function": OPENED[:3] + [pair(0x5000, 0x6000), FUNCTION],
    "empty_function": OPENED[:3] + [pair(HUGE, 0), FUNCTION],
    "short_pair": OPENED[:1] + [b"\0\0\0"],
    "long_pair": OPENED[:1] + [pair(1, 2) + b"\0"],
    "many_rows": OPENED + [rows(0x1000, 0x1100, row(0, 0x100), n=0xffffffff)],
    "no_rows": OPENED + [rows(0x1000, 0x1100, n=1)],
    "elsewhere": OPENED + [rows(0x5000, 0x5100, row(0, 0x100))],
    "whole_space": OPENED + [rows(0, HUGE, row(0, 0xffffffff))],
    "four_gigabytes": OPENED + [rows(0, 0xffffffff, row(0, 0xffffffff)), rows(0x1000, 0x1100, row(0, 0x100))],
    "overlapping": OPENED + [rows(0x1000, 0x1100, row(0, 0x20), row(0x10, 0x100))],
    "backwards": OPENED + [rows(0x1000, 0x1100, row(0x80, 0x20))],
    "told_before": OPENED + [rows(PC, PC + 1, row(0, 1)), rows(0x1000, 0x1100, row(0, 0x100), row(0x100, 0x100))],
    "unknown_kind": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, CFA_EXPRESSION + 1))],
    "unknown_register": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, register=255))],
    "no_operations": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, CFA_EXPRESSION, expressions=b"\0"))],
    "many_operations": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, CFA_EXPRESSION, expressions=operations(*((DW_OP_breg7,),) * 65)))],
    "odd_operations": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, CFA_EXPRESSION, expressions=operations(
        (DW_OP_regx, HUGE), (DW_OP_drop,), (DW_OP_drop,), (0xff, HUGE, HUGE))))],
    "cut_operations": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, CFA_EXPRESSION, expressions=b"\2\6"))],
    "in_circles": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, offset=0, saved=(0,) + (SAME,) * 7))],
    "far_away": OPENED + [rows(0x1000, 0x1100, row(0, 0x100, CFA_DEREF, SP, 0x7fffffff, (32767,) * N_SAVED))],
}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    head = struct.pack("<I", PC) + stack()
    for name, answers in ANSWERS.items():
        (FOLDER / name).write_bytes(head + b"".join(packet(answer) for answer in answers))
    (FOLDER / "nothing").write_bytes(head + packet(b"", True))
    (FOLDER / "nonsense").write_bytes(head + packet(b"nonsense, and more of it", True))
    (FOLDER / "wrong_head").write_bytes(head + packet(summary()) + packet(struct.pack("<2I", 14, 0xffffffff), True))


if __name__ == "__main__":
    main()
