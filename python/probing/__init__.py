# SPDX-License-Identifier: MIT
"""Recordings of probing, from Python.

    import probing
    probing.query("SELECT name, count(*) FROM function GROUP BY name")            # ./probing.db
    probing.query("SELECT * FROM sample", "train.db")
    probing.query("SELECT run, count(*) FROM sample GROUP BY run", ["a.db", "b.db"])
    probing.query("SELECT * FROM python.backtrace", 4242)                          # a process

query() runs the program 'probing', so whatever that can be asked can be asked here, and nothing of it is loaded
into this process. connect() is Python's own sqlite3 with probing's extension in it.

CPython 3.8 or newer; nothing but the standard library is needed. Where pandas can be imported, query() answers
with a DataFrame.
"""
from probing._binary import Error, binary
from probing._connect import connect
from probing._query import query

__all__ = ["Error", "binary", "connect", "query"]
