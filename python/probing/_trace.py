# SPDX-License-Identifier: MIT
"""The key probing.trace: each call of the functions that it names becomes a row of profiling_data.

From CPython 3.12 on sys.monitoring calls the agent's C code (src/agent/trace.c) at these functions; before that a function
has a stand-in, which calls it through C code. Functions that a starting program has not defined yet are looked for by a
thread of ours, until all are found.
"""
import sys
import _thread

from probing import _inside, _rows
from probing._inside import Refused

OWNER = "probing.trace"
ROWS = 1 << 16
COLUMNS = {"operation_name": str, "duration_ms": float, "step": int, "span": int, "tid": int, "error": str}
SUSPENDS = 0x2a0  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
FIRST_WAIT_S, LAST_WAIT_S = 0.005, 0.25  # between two looks for names that are not defined yet

_now = None  # the Trace; None: nothing is timed


def builtins():
    rings = getattr(sys, "_probing_rings", None)
    if not rings or len(rings) < 2 or rings[1] is None:
        raise Refused("this Python lacks what the agent needs to time functions")
    return rings[1]


def ring():
    """append() of the table, which is created."""
    table = _rows.ExternalTable.get_or_create("profiling_data", COLUMNS, rows=ROWS, text_bytes={"error": 32})
    append = table._append or table._open(("", 0.0, 0, 0, 0, ""))
    if append is _rows._nothing:
        raise Refused("no rows can be kept: its other tables take the place, or %s is no folder for them"
                      % "PROBING_DATA_DIR or /dev/shm")
    return append


def stand_in(*args, **kwargs):
    call = "probing call"  # a constant, in whose place comes what calls the function
    return call(*args, **kwargs)


class Monitor(object):
    """By sys.monitoring."""

    def __init__(self):
        self.tool = None
        self.codes = []

    def begin(self, functions):
        monitoring, events = sys.monitoring, sys.monitoring.events
        set_codes, start, leave, unwind = (builtins()[at] for at in (1, 3, 4, 5))
        codes = [function.__code__ for _, function in functions]
        if self.tool is None:
            tool = _inside.free_tool()
            monitoring.use_tool_id(tool, "probing.trace")
            self.tool = tool
            monitoring.register_callback(tool, events.PY_START, start)
            monitoring.register_callback(tool, events.PY_RETURN, leave)
            monitoring.register_callback(tool, events.PY_UNWIND, unwind)
            monitoring.set_events(tool, events.PY_UNWIND)  # it exists for all functions only
        set_codes([(code, name, bool(code.co_flags & SUSPENDS)) for (name, _), code in zip(functions, codes)])
        for code in codes:
            monitoring.set_local_events(self.tool, code, events.PY_START | events.PY_RETURN)
        kept = set(map(id, codes))
        for code in self.codes:
            if id(code) not in kept:
                monitoring.set_local_events(self.tool, code, 0)
        self.codes = codes

    def end(self):
        monitoring, events = sys.monitoring, sys.monitoring.events
        if self.tool is None:
            return
        for code in self.codes:
            monitoring.set_local_events(self.tool, code, 0)
        monitoring.set_events(self.tool, 0)
        for event in (events.PY_START, events.PY_RETURN, events.PY_UNWIND):
            monitoring.register_callback(self.tool, event, None)
        monitoring.free_tool_id(self.tool)
        self.tool, self.codes = None, []


class StandIns(object):
    """By code in place of the functions'."""

    def begin(self, functions):
        wrap = builtins()[6]
        made = []
        for name, function in functions:
            _inside.check_replaceable(function, name, OWNER)
            made.append((function, _inside.with_constants(stand_in, _inside.code_of(function), {
                "probing call": wrap(name, _inside.copy_of(function))})))
        _inside.restore_code(OWNER)
        for function, code in made:
            _inside.replace_code(function, code, OWNER)

    def end(self):
        _inside.restore_code(OWNER)


class Trace(object):
    def __init__(self, names):
        self.by = Monitor() if hasattr(sys, "monitoring") else StandIns()
        self.functions, self.missing = [], list(names)
        self.stop = None  # the lock that the thread waits for

    def find(self, may_be_missing):
        """Functions of names that are defined by now. Refused: one of them cannot be timed."""
        missing, functions = [], list(self.functions)
        for name in self.missing:
            try:
                function = _inside.function_of(name)
            except _inside.NotFound:
                if not may_be_missing:
                    raise
                missing.append(name)
                continue
            for other, its in functions:
                if its.__code__ is function.__code__:
                    raise Refused("%s and %s are the same function" % (other, name))
            functions.append((name, function))
        return missing, functions

    def look(self):
        missing, functions = self.find(True)
        if len(functions) > len(self.functions):
            self.by.begin(functions)
        self.missing, self.functions = missing, functions

    def wait(self, stop):
        """What the thread runs."""
        wait_s = FIRST_WAIT_S
        while not stop.acquire(True, wait_s):
            wait_s = min(wait_s * 1.02, LAST_WAIT_S)
            try:
                self.look()
            except Refused as refused:
                _inside.say("probing.trace: %s" % refused)
                return
            if not self.missing:
                return

    def begin(self, may_be_missing):
        self.missing, functions = self.find(may_be_missing)
        self.by.begin(functions)
        self.functions = functions
        if self.missing:
            self.stop = _thread.allocate_lock()
            self.stop.acquire()
            _thread.start_new_thread(self.wait, (self.stop,))

    def end(self):
        if self.stop is not None:
            self.stop.release()
            self.stop = None
        self.by.end()


def end():
    global _now
    trace, _now = _now, None
    if trace is not None:
        builtins()[2]()
        trace.end()
    _inside.undo(OWNER, None)


def configure(key, text):
    """Time the functions that a text names, with commas between them, in place of the earlier ones; none: "". """
    global _now
    names = text.split(",") if text else []
    if not names:
        end()
        return
    trace = Trace(names)
    trace.find(_inside.starts())  # before the earlier ones end
    append = ring()
    end()
    if not builtins()[0](append, vars(_rows), _rows._current):
        raise Refused("no rows of probing.trace can be kept")
    _now = trace
    _inside.undo(OWNER, end)
    try:
        trace.begin(_inside.starts())
    except BaseException:
        end()
        raise
