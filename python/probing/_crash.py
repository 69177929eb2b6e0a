# SPDX-License-Identifier: MIT
"""The key probing.crash: the part about uncaught exceptions. That about signals is src/agent/crash.c, which the agent has set
before it calls this."""
import sys
import time

from probing import _inside
from probing._inside import Refused

OWNER = "probing.crash"
WAIT_S = 6  # longer than the agent waits for the process that writes reports
MAX_BYTES = 6000  # src/agent/agent.h

_previous = None  # the hook in whose place ours is; None: ours is not there, nor below somebody else's that may call it


def wait_for_signals():
    """Why there are no reports; "": there are."""
    end = time.monotonic() + WAIT_S
    while True:
        why = _inside.space()["crash_why"]("")
        if why is not None or time.monotonic() > end:
            return "the agent did not answer" if why is None else why
        time.sleep(0.002)


def text_of(kind, value, trace):
    import traceback
    text = "".join(traceback.format_exception(kind, value, trace)).encode("utf-8", "backslashreplace")
    if len(text) > MAX_BYTES:  # the outermost calls, and the innermost ones
        text = text[:MAX_BYTES // 4] + b"\n  ...\n" + text[-MAX_BYTES // 4 * 3 + 8:]
    return text


def hook(kind, value, trace):
    try:
        if issubclass(kind, Exception) and not hasattr(sys, "ps1") and not sys.flags.interactive:
            _inside.space()["crash_tell"](text_of(kind, value, trace))
    except Exception:  # of the exception's own __str__(): the program's hook comes next all the same
        pass
    (_previous or sys.__excepthook__)(kind, value, trace)


def end():
    global _previous
    if sys.excepthook is hook and _previous is not None:  # else somebody else's hook may call ours
        sys.excepthook = _previous
        _previous = None
    _inside.undo(OWNER, None)


def configure(key, text):
    global _previous
    if text in ("", "off", "0"):
        end()
        return
    why = wait_for_signals()
    if why:
        raise Refused(why)
    if _previous is None or sys.excepthook is sys.__excepthook__:
        _previous, sys.excepthook = sys.excepthook, hook
    _inside.undo(OWNER, end)
