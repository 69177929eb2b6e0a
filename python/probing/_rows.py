# SPDX-License-Identifier: MIT
"""Rows that a program writes about itself, for probing to read from outside.

They go to tables of fixed size in shared memory (docs/rings.md): the newest rows stay readable while the program hangs and
after it has died. Where no agent is in the process, every call returns at once and does nothing, so that calls may stay in
code. No call raises an exception of its own: values that a column has no type for become NULL, and are counted.
"""
import itertools
import os
import sys
import time

try:
    from _thread import get_native_id
except ImportError:  # before 3.8
    from _thread import get_ident as get_native_id
try:
    from contextvars import ContextVar
except ImportError:  # before 3.7: of this thread
    from threading import local

    class ContextVar(local):
        def __init__(self, name, default):
            self.value = default

        def get(self):
            return self.value

        def set(self, value):
            self.value = value

ROWS = 10000
TEXT_BYTES = 64
ATTRIBUTE_BYTES = 128
INTEGER, REAL, NUMBER, TEXT = 1, 2, 3, 4  # src/ring/ring.h
_TYPES = {int: INTEGER, bool: INTEGER, float: REAL, str: TEXT, "int": INTEGER, "bool": INTEGER, "float": REAL, "str": TEXT}
_QUIET = ("off", "error", "warn")  # of PROBING_LOGLEVEL

_rings = None  # (open,): src/agent/rows.c; None: no agent has been in this process
_is_refused = False


def _activate(offered):
    global _rings
    _rings = offered


def _nothing(*ignored):
    return None


def _refuse(name, why):
    """One line, once: a program must not find out later that it has written into the void."""
    global _is_refused
    if _is_refused or os.environ.get("PROBING_LOGLEVEL") in _QUIET:
        return
    _is_refused = True
    try:
        os.write(2, ("probing: no rows of %s are kept: %s\n" % (name, why)).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


# ---- Tables ----

class ExternalTable(object):
    """A table of rows in shared memory.

    name     of the table in SQL
    columns  names, or a dict of names to types: int, float, str; of another type, or without one: the first row decides
             between text and numbers
    rows     that are kept; new ones evict the oldest
    text_bytes  that are kept of a text; or a dict of columns to bytes

    In SQL it has a first column timestamp, the time of append().
    """
    _all = {}

    def __init__(self, name, columns, rows=ROWS, text_bytes=TEXT_BYTES):
        self._define(name, columns, rows, text_bytes)
        ExternalTable._all[self.name] = self

    def _define(self, name, columns, rows=ROWS, text_bytes=TEXT_BYTES):
        types = columns if isinstance(columns, dict) else {}
        self.name = str(name)
        self.columns = tuple(str(column) for column in columns)
        self.rows = rows
        self._bytes = tuple(text_bytes.get(column, TEXT_BYTES) if isinstance(text_bytes, dict) else text_bytes
                            for column in columns)
        self._types = [_TYPES.get(types.get(column)) for column in columns]
        self._append = None
        self._take = self._drop = _nothing

    @classmethod
    def get(cls, name):
        """The table of that name in this process; None: there is none."""
        return cls._all.get(name)

    @classmethod
    def get_or_create(cls, name, columns, **more):
        found = cls._all.get(name)
        if found is None:
            made = cls.__new__(cls)
            made._define(name, columns, **more)
            found = cls._all.setdefault(made.name, made)  # threads that ask at the same time have the same one
        return found

    def append(self, *values, **named):
        """A row: its values, or a list of them, or column=value; those that are missing are NULL."""
        if _rings is None:
            return
        if named:
            values = [named.get(column) for column in self.columns]
        elif len(values) == 1 and type(values[0]) in (list, tuple):
            values = values[0]
        (self._append or self._open(values))(*values)

    def append_many(self, rows):
        """A row of each list of values."""
        if _rings is None:
            return
        append = self._append
        for values in rows:
            append = append or self._open(values)
            append(*values)

    def take(self, n=-1):
        """The newest n rows (all: -1), the oldest first: [(seconds since 1970, (value, ...)), ...]"""
        return [(row[0], row[1:]) for row in self._take(n) or ()]

    def drop(self):
        """Remove the table with its rows. The next append() begins it again. ExternalTable.drop(name) does the same."""
        table = ExternalTable._all.get(self) if isinstance(self, str) else self
        if table is None:
            return
        table._drop()
        table.__dict__.pop("_opened", None)
        table._append, table._take, table._drop = None, _nothing, _nothing
        if ExternalTable._all.get(table.name) is table:
            ExternalTable._all.pop(table.name, None)

    def _open(self, values):
        """append() of the ring, which is created; one that takes nothing where that fails."""
        values = tuple(values) + (None,) * len(self.columns)
        types = tuple(kind or (TEXT if isinstance(value, str) else NUMBER) for kind, value in zip(self._types, values))
        opened = _rings[0](self.name, self.rows, self.columns, types, self._bytes)
        if opened is None:  # the agent has been detached; another may come
            return _nothing
        if isinstance(opened, str):
            _refuse(self.name, opened)
            opened = _nothing, _nothing, _nothing
        first = self.__dict__.setdefault("_opened", opened)  # one step: threads may come here at once
        if first is not opened:
            opened[2]()
        self._append, self._take, self._drop = first
        return self._append


def table(cls=None, name=None, rows=ROWS, text_bytes=TEXT_BYTES):
    """Decorator: a dataclass whose objects are rows of a table.

        @probing.table
        @dataclasses.dataclass
        class Batch:
            step: int
            loss: float

        Batch.append(Batch(1, 0.5)); Batch.append(2, 0.4); Batch.append_many([...]); Batch.take(10); Batch.drop()

    The table has the name of the class, or the given one: @probing.table("batches"). take() returns objects.
    """
    if cls is None or isinstance(cls, str):
        return lambda real: table(real, cls or name, rows, text_bytes)
    import dataclasses
    import operator
    if not dataclasses.is_dataclass(cls):
        cls = dataclasses.dataclass(cls)
    fields = {field.name: field.type for field in dataclasses.fields(cls) if field.init}
    names = tuple(fields)
    ring = ExternalTable(name or cls.__name__, fields, rows, text_bytes)
    values_of = operator.attrgetter(*names) if len(names) > 1 else lambda one: tuple(getattr(one, field) for field in names)

    def append(*row, **named):
        if _rings is None:
            return
        if named:
            row = values_of(cls(*row, **named))
        elif len(row) == 1 and isinstance(row[0], cls):
            row = values_of(row[0])
        (ring._append or ring._open(row))(*row)

    def append_many(objects):
        if _rings is None:
            return
        for one in objects:
            append(one)

    def take(n=-1):
        return [cls(**dict(zip(names, row[1:]))) for row in ring._take(n) or ()]

    cls.append, cls.append_many, cls.take, cls.drop = map(staticmethod, (append, append_many, take, ring.drop))
    return cls


# ---- Logs, events and steps ----

_logs = {}  # names of the values: a table of them
_step = None


def log(**values):
    """A row of training_logs: probing.log(epoch=1, loss=0.5). Other names than before are further columns."""
    if _rings is None:
        return
    names = tuple(values)
    logs = _logs.get(names)
    if logs is None:
        logs = _logs.setdefault(names, ExternalTable("training_logs", names))
    values = tuple(values.values())
    (logs._append or logs._open(values))(*values)


def _plain(value):
    """For JSON, of what it does not know: scalars of NumPy and torch are numbers."""
    for convert in (int if hasattr(value, "__index__") else float, float):
        try:
            return convert(value)
        except Exception:
            pass
    return str(value)


def _text(attributes):
    if not attributes:
        return None
    import json
    try:
        text = json.dumps(attributes, default=_plain, ensure_ascii=False)
        while len(text.encode("utf-8", "replace")) > ATTRIBUTE_BYTES:  # whole JSON, of the first ones
            attributes = dict(list(attributes.items())[:-1])
            text = json.dumps(attributes, default=_plain, ensure_ascii=False)
        return text
    except Exception:  # of somebody's __str__()
        return None


_ATTRIBUTES = {"attributes": ATTRIBUTE_BYTES, "phase": 8, "error": 32}
_events = ExternalTable("events", {"name": str, "step": int, "span": int, "tid": int, "attributes": str}, text_bytes=_ATTRIBUTES)
_steps = ExternalTable("steps", {"step": int, "last_ms": float, "tid": int, "attributes": str}, text_bytes=_ATTRIBUTES)
_step_began = None
_on_step = None  # called with the number of each step: _torch.py


def event(name, **attributes):
    """A row of events: something that happened, with what belongs to it."""
    if _rings is None:
        return
    _events.append(name, _step, _current.get() or None, get_native_id(), _text(attributes))


def step(number=None, **attributes):
    """A row of steps: a step of a training begins, and the last one ends. Without a number it is the next one (the first
    is 0). Later rows of events and spans have its number. Returns the number; None: there is no agent."""
    global _step, _step_began
    if _rings is None:
        return None
    now, began = time.monotonic(), _step_began
    if number is None:  # another thread may begin a step of its own at any time
        number = 0 if _step is None else _step + 1
    _step, _step_began = number, now
    _steps.append(number, None if began is None else (now - began) * 1e3, get_native_id(), _text(attributes))
    if _on_step is not None:
        _on_step(number)
    return number


# ---- Spans ----

_spans = ExternalTable("spans", {"span": int, "parent": int, "phase": str, "name": str, "tid": int, "step": int,
                                 "duration_ms": float, "error": str, "attributes": str}, text_bytes=_ATTRIBUTES)
_current = ContextVar("probing_span", default=0)  # of this thread, or task
_next_span = itertools.count(1).__next__
COROUTINE, GENERATOR = 0x80, 0x20  # of co_flags: CO_COROUTINE, CO_GENERATOR


def _decorate(function, name, attributes):
    """The span is of each call, and begins with it: decide then whether there is an agent."""
    import functools
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & COROUTINE:
        @functools.wraps(function)
        async def wrapped(*arguments, **named):
            with span(name, **attributes):
                return await function(*arguments, **named)
    elif flags & GENERATOR:
        @functools.wraps(function)
        def wrapped(*arguments, **named):
            with span(name, **attributes):
                return (yield from function(*arguments, **named))
    else:
        @functools.wraps(function)
        def wrapped(*arguments, **named):
            if _rings is None:
                return function(*arguments, **named)
            with span(name, **attributes):
                return function(*arguments, **named)
    return wrapped


class _Idle(object):
    """A span where there is no agent. Without __init__(), whose call would take a third of the time."""
    __slots__ = ("name", "attributes")

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        return None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *ignored):
        return None

    def __call__(self, function):
        return _decorate(function, self.name, self.attributes)


class _Span(object):
    __slots__ = ("name", "attributes", "number", "parent", "began")

    def __init__(self, name, attributes):
        self.name = name
        self.attributes = attributes

    def __enter__(self):
        self.number = _next_span()
        self.parent = _current.get()
        _current.set(self.number)
        self._put("begin", None, None)
        self.began = time.monotonic()
        return self

    def __exit__(self, kind, error, trace):
        duration_ms = (time.monotonic() - self.began) * 1e3
        _current.set(self.parent)
        self._put("end", duration_ms, None if kind is None else kind.__name__)

    async def __aenter__(self):
        return self.__enter__()

    async def __aexit__(self, *what):
        self.__exit__(*what)

    def __call__(self, function):
        return _decorate(function, self.name, self.attributes)

    def _put(self, phase, duration_ms, error):
        _spans.append(self.number, self.parent or None, phase, self.name, get_native_id(), _step, duration_ms, error,
                      _text(self.attributes))


_idle = {}
MAX_IDLE = 1024


def _make_idle(name):
    """One without attributes, kept for the next span of its name."""
    idle = _Idle()
    idle.name = name
    idle.attributes = {}
    if len(_idle) < MAX_IDLE:
        _idle[name] = idle
    return idle


def span(name, **attributes):
    """A time with a name: with probing.span("load", rank=3): ..., or @probing.span("load") on a function, also async.

    A row of spans at its beginning, and one at its end with the duration: a span that has only the first is open.
    parent is the span around it in the same thread or task.
    """
    if _rings is not None:
        return _Span(name, attributes)
    if attributes:
        idle = _Idle()
        idle.name = name
        idle.attributes = attributes
        return idle
    return _idle.get(name) or _make_idle(name)


_activate(getattr(sys, "_probing_rings", None))  # last: an agent that comes now finds _activate()
