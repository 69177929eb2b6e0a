# SPDX-License-Identifier: MIT
"""Recordings of probing, from Python.

    import probing
    probing.query("SELECT name, count(*) FROM function GROUP BY name")            # ./probing.db
    probing.query("SELECT * FROM sample", "train.db")
    probing.query("SELECT run, count(*) FROM sample GROUP BY run", ["a.db", "b.db"])
    probing.query("SELECT * FROM python.backtrace", 4242)                          # a process
    probing.query("SELECT epoch, avg(loss) FROM training_logs GROUP BY epoch")     # this process, if the agent is in it

    probing.log(epoch=1, loss=0.5)          # rows about this program, for probing to read from outside: docs/rings.md
    with probing.span("load"): ...
    probing.event("restart", reason="nan")

query() runs the program 'probing', so whatever that can be asked can be asked here, and nothing of it is loaded
into this process. connect() is Python's own sqlite3 with probing's extension in it.

CPython 3.8 or newer; nothing but the standard library is needed. Where pandas can be imported, query() answers
with a DataFrame.
"""
__version__ = "0.1.0"  # that of meson.build: the agent compares

_PLACES = {
    "Error": "_binary", "binary": "_binary", "connect": "_connect", "query": "_query",
    "ExternalTable": "_rows", "event": "_rows", "log": "_rows", "span": "_rows", "step": "_rows", "table": "_rows",
    "dump_flight_recorder": "_flight", "disable_torch_profiling": "_torch", "enable_torch_profiling": "_torch",
}

__all__ = ["Error", "ExternalTable", "binary", "connect", "disable_torch_profiling", "dump_flight_recorder", "enable_torch_profiling",
           "event", "log",
           "query", "span", "step", "table"]


def _begin():
    """What probing.start names: _start.py is imported only where the environment asks for it."""
    import os
    if os.environ.get("PROBING") or os.environ.get("PROBING_TORCH_PROFILING"):
        from probing._start import begin
        begin()


# The start hook (_start.py) imports this package into programs that use none of these: each comes when it is first used (PEP 562).
def __getattr__(name):
    if name not in _PLACES:
        raise AttributeError("module 'probing' has no attribute %r" % name)
    from importlib import import_module
    value = globals()[name] = getattr(import_module("probing." + _PLACES[name]), name)
    return value


def __dir__():
    return sorted(set(globals()) | set(__all__))
