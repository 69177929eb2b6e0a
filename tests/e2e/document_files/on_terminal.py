# SPDX-License-Identifier: MIT
"""Runs a command on a terminal of its own, and types q each second: on_terminal.py COMMAND [ARGUMENT...]"""
import os
import pty
import select
import sys
import time

pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], sys.argv[1:])
begun = typed = time.monotonic()
while True:
    if time.monotonic() > typed + 1:
        os.write(terminal, b"q")
        typed = time.monotonic()
    if time.monotonic() > begun + 30:
        os.kill(pid, 9)
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            if not os.read(terminal, 65536):
                break
        except OSError:  # the command has ended
            break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
