# SPDX-License-Identifier: MIT
"""A filter of system calls, as systemd's SystemCallFilter= makes it."""
import ctypes

# linux/filter.h, linux/prctl.h, linux/seccomp.h
LOAD, IS_EQUAL, ANSWER = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K
SECCOMP_RET_ALLOW, SECCOMP_RET_EPERM = 0x7fff0000, 0x00050001
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("if_true", ctypes.c_ubyte), ("if_false", ctypes.c_ubyte), ("value", ctypes.c_uint)]


class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("filters", ctypes.POINTER(Filter))]


def restrict(numbers):
    """For this process and those it starts: all but these system calls fail with EPERM."""
    lines = [Filter(LOAD, 0, 0, 0)]
    for number in numbers:
        lines += [Filter(IS_EQUAL, 0, 1, number), Filter(ANSWER, 0, 0, SECCOMP_RET_ALLOW)]
    lines.append(Filter(ANSWER, 0, 0, SECCOMP_RET_EPERM))
    program = Program(len(lines), (Filter * len(lines))(*lines))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
