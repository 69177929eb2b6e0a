# SPDX-License-Identifier: MIT
"""Runs a command, and gives it Ctrl-C a second after it has begun to listen to that: interrupted.py COMMAND [ARGUMENT...]"""
import os
import signal
import sys
import time


def listens(pid):
    """Whether a process catches SIGINT, or blocks it, as those do who read signals."""
    with open("/proc/%d/status" % pid) as status:
        fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    bit = 1 << (signal.SIGINT - 1)
    return any(int(fields[name], 16) & bit for name in ("SigCgt", "SigBlk"))


signal.signal(signal.SIGINT, signal.SIG_DFL)  # before the command is executed nobody listens
pid = os.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
interrupt_at, status = None, None
while True:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        break
    if interrupt_at is None and listens(pid):
        interrupt_at = time.monotonic() + 1
    if interrupt_at and time.monotonic() > interrupt_at:
        os.kill(pid, signal.SIGINT)
        status = os.waitpid(pid, 0)[1]
        break
    time.sleep(0.02)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
