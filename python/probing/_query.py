# SPDX-License-Identifier: MIT
"""Questions in SQL, asked through the program."""
import json
import os
import subprocess
import sys

from probing._binary import Error, binary

_EXACT_AS_FLOAT = 2 ** 53


def _argument(source):
    """One source as the program takes it: a path can be taken for nothing else."""
    if isinstance(source, int) and not isinstance(source, bool):
        return str(source)
    path = os.fspath(source)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not os.path.exists(path):
        raise Error("%s does not exist: check the name and its folder" % path, 66)
    return path if os.path.isabs(path) else os.path.join(".", path)


def _arguments(source):
    if source is None:
        return []
    if isinstance(source, (list, tuple)):
        if not source:
            raise Error("no recording is named: give at least one, or None for probing.db")
        return [_argument(one) for one in source]
    return [_argument(source)]


def _value(value):
    """What JSON has no word for comes as an object."""
    if isinstance(value, dict):
        return bytes.fromhex(value["blob"]) if "blob" in value else float(value["real"])
    return value


def _unique(names):
    """A second column called x is x_2, as in the program's own JSON."""
    result = []
    for name in names:
        unique, n = name, 2
        while unique in result:
            unique, n = "%s_%d" % (name, n), n + 1
        result.append(unique)
    return result


def _parse(text):
    """(columns, rows) of the last result in the program's answer; no columns: it gave none."""
    columns, rows = [], []
    for line in text.split("\n"):
        if not line:
            continue
        part = json.loads(line)
        if isinstance(part, dict):
            columns, rows = _unique(part["columns"]), []
        else:
            rows.append([_value(value) for value in part])
    return columns, rows


def _default():
    """This process, whose agent offers rings to programs; None: there is no agent."""
    return os.getpid() if getattr(sys, "_probing_rings", None) is not None else None


def _run(sql, source, timeout):
    command = [binary(), "sql", "-f", "rows"] + _arguments(source)
    try:
        done = subprocess.run(command, input=sql.encode("utf-8"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Error("no answer in %g s: ask for less, or give a longer timeout" % timeout) from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        sentence = said.split("\n")[0] or "probing ended with status %d" % done.returncode
        if sentence.startswith("probing: "):
            sentence = sentence[len("probing: "):]
        raise Error(sentence, done.returncode)
    return done.stdout.decode("utf-8")


def _series(pandas, values):
    """A column. Integers that a float cannot hold stay integers, also where some are missing."""
    integers = [value for value in values if isinstance(value, int)]
    if len(integers) < len(values) and any(abs(value) > _EXACT_AS_FLOAT for value in integers):
        return pandas.Series(values, dtype=object)
    return pandas.Series(values, dtype=None if values else object)


def _frame(pandas, columns, rows):
    named = {name: _series(pandas, [row[i] for row in rows]) for i, name in enumerate(columns)}
    return pandas.DataFrame(named, columns=columns)


def _pandas():
    try:
        import pandas
    except ImportError:
        return None
    return pandas


def query(sql, source=None, *, pandas=None, timeout=None):
    """Ask a recording, or a process, in SQL.

    sql      a statement; of several the last one's answer is returned
    source   a file, a list of files, the number of a process, or None: this process if the agent is in it (its own rows, its
             memory, its threads), else probing.db in this folder
    pandas   True: a pandas.DataFrame; False: a list of dicts, one a row; None: a DataFrame where pandas is there
    timeout  seconds to wait for the answer; None: for ever

    Integers are exact, however large; NULL is None in a dict, and what pandas makes of None in a DataFrame (NaN among
    numbers; integers beyond 2**53 stay integers there, in a column of objects); a blob is bytes. A second column
    called x is x_2. Raises probing.Error with the program's own sentence.
    """
    module = None if pandas is False else _pandas()
    if pandas is True and module is None:
        raise Error("pandas cannot be imported: install it, or ask with pandas=False")
    columns, rows = _parse(_run(sql, _default() if source is None else source, timeout))
    if module is not None:
        return _frame(module, columns, rows)
    return [dict(zip(columns, row)) for row in rows]
