# SPDX-License-Identifier: MIT
"""A program on a terminal of its own, and what stands on it: a pseudo-terminal and pyte.

Debian's python3-pyte is for every Python 3, so it is looked for where Debian puts it, too. It does not
know all that an xterm does (repeated characters, scrolling by several lines), so the terminal is of the kind
that the console of Linux is.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
import unittest

DEBIAN_PACKAGES = "/usr/lib/python3/dist-packages"
HANG_S = 60  # as in probing_test.py


def need_pyte():
    try:
        import pyte
    except ImportError:
        sys.path.append(DEBIAN_PACKAGES)
        try:
            import pyte
        except ImportError as error:
            raise unittest.SkipTest("python3-pyte is not installed: %s" % error)
    return pyte


class Terminal:
    """The program is started with the terminal as its standard streams, and as its controlling one."""

    def __init__(self, command, rows=24, columns=80, environment=None, encoding="utf-8"):
        pyte = need_pyte()
        self.encoding = encoding
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.Stream(self.screen)
        self.raw = b""
        self.pid = None
        self.status = None
        self.master, self.slave = pty.openpty()
        self.resize_only(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            self.become(command, environment or {})

    def become(self, command, environment):
        try:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(self.slave, fd)
            os.closerange(3, 256)
            known = dict(os.environ, TERM="linux", LC_ALL="C.UTF-8")
            known.pop("NO_COLOR", None)
            known.pop("COLUMNS", None)
            known.pop("LINES", None)
            known.update(environment)
            os.execvpe(command[0], command, known)
        finally:
            os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)

    def resize_only(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.resize_only(rows, columns)  # the kernel tells the program

    def take(self, seconds):
        """Show what the program writes within a time."""
        stop = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self.master], [], [], max(0, stop - time.monotonic()))
            if not ready:
                return
            try:
                piece = os.read(self.master, 65536)
            except OSError:
                return
            if not piece:
                return
            self.raw += piece
            self.stream.feed(piece.decode(self.encoding, "replace"))

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def wait_for(self, what, timeout_s=HANG_S):
        """Until the text, or a function of the lines, holds; returns the lines."""
        holds = what if callable(what) else lambda lines: what in "\n".join(lines)
        stop = time.monotonic() + timeout_s
        while True:
            is_last = time.monotonic() > stop  # before the screen is read: meanwhile this process may not run
            self.take(0.05)
            if holds(self.lines()):
                return self.lines()
            if is_last:
                raise AssertionError("waited %d s for %s on this screen:\n%s" % (
                    timeout_s, what if isinstance(what, str) else "something", self.text()))
            if self.ended():
                self.take(0.2)
                if holds(self.lines()):
                    return self.lines()
                raise AssertionError("ended with %s before %s: %s" % (self.status, what, self.text()))

    def press(self, *keys):
        for key in keys:
            os.write(self.master, key.encode() if isinstance(key, str) else key)

    def ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def wait(self, timeout_s=HANG_S):
        """The exit status."""
        stop = time.monotonic() + timeout_s
        while not self.ended():
            self.take(0.05)
            if time.monotonic() > stop:
                raise AssertionError("did not end:\n%s" % self.text())
        self.take(0.05)
        return self.status

    def has_old_modes(self):
        """As stty would show them."""
        return termios.tcgetattr(self.slave) == self.before

    def is_restored(self):
        """The modes are those of before, the cursor is there, the other screen has been left."""
        raw = self.raw
        return (self.has_old_modes() and
                (b"\x1b[?1049h" not in raw or raw.rfind(b"\x1b[?1049l") > raw.rfind(b"\x1b[?1049h")) and
                raw.rfind(b"\x1b[?25l") <= raw.rfind(b"\x1b[?25h"))


# As the console sends them.
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
PAGE_UP, PAGE_DOWN, HOME, END = "\x1b[5~", "\x1b[6~", "\x1b[1~", "\x1b[4~"
F1, F10, BACK_TAB, ESCAPE, ENTER, BACKSPACE = "\x1b[[A", "\x1b[21~", "\x1b\t", "\x1b", "\r", "\x7f"
