# SPDX-License-Identifier: MIT
"""The key probing.trace: each call of the functions that it names becomes a row of profiling_data.

From CPython 3.12 on sys.monitoring calls the agent's C code (src/agent/trace.c) at these functions; before that a function
has a stand-in, which calls it through C code.
"""
import sys

from probing import _inside, _rows
from probing._inside import Refused

OWNER = "probing.trace"
ROWS = 1 << 16
COLUMNS = {"operation_name": str, "duration_ms": float, "step": int, "span": int, "tid": int, "error": str}
SUSPENDS = 0x2a0  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR

_now = None  # the Trace; None: nothing is timed


def builtins():
    rings = getattr(sys, "_probing_rings", None)
    if not rings or len(rings) < 2 or rings[1] is None:
        raise Refused("this Python lacks what the agent needs to time functions")
    return rings[1]


def ring():
    """append() of the table, which is created."""
    table = _rows.ExternalTable.get_or_create("profiling_data", COLUMNS, rows=ROWS, text_bytes={"error": 32})
    return _inside.opened(table)


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
        for name, function in functions:
            _inside.check_callable(function, name)
        _inside.restore_code(OWNER)
        for name, function in functions:
            _inside.replace_code(function, OWNER, self.maker(name, function))

    @staticmethod
    def maker(name, function):
        wrap = builtins()[6]

        def make(code):
            return _inside.with_constants(stand_in, code, {"probing call": wrap(name, _inside.copy_of(function, code))})
        return make

    def end(self):
        _inside.restore_code(OWNER)


def check(functions):
    by_code = {}
    for name, function in functions:
        other = by_code.setdefault(id(_inside.code_of(function)), name)
        if other != name:
            raise Refused("%s and %s are the same function" % (other, name))


class Trace(object):
    def __init__(self, names):
        self.by = Monitor() if hasattr(sys, "monitoring") else StandIns()
        self.names = _inside.Waiting(OWNER, zip(names, names), self.begin)
        check(self.names.find(_inside.starts())[1])  # before the earlier ones end

    def begin(self, functions):
        check(functions)
        self.by.begin(functions)

    def end(self):
        self.names.end()
        self.by.end()


def end():
    global _now
    trace, _now = _now, None
    if trace is not None:
        builtins()[2]()
        trace.end()
    _inside.undo(OWNER, None)


def configure(key, text):
    """Time the functions that a text names, with commas between them, in place of the earlier ones; "": none."""
    global _now
    if not text:
        end()
        return
    trace = Trace(text.split(","))
    append = ring()
    end()
    if not builtins()[0](append, vars(_rows), _rows._current):
        raise Refused("no rows of probing.trace can be kept")
    _now = trace
    _inside.undo(OWNER, end)
    try:
        trace.names.start()
    except BaseException:
        end()
        raise
