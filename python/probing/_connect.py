# SPDX-License-Identifier: MIT
"""Python's own sqlite3, with probing's extension loaded."""
import os
import sqlite3
import subprocess
import urllib.parse

from probing._binary import Error, binary


def _extension():
    done = subprocess.run([binary(), "info", "--extension"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Error(done.stderr.decode("utf-8", "replace").strip().replace("probing: ", "", 1), done.returncode)
    return os.fsdecode(done.stdout.rstrip(b"\n"))


def _load(db, path):
    if not hasattr(db, "enable_load_extension"):
        raise Error("this Python was built without loadable extensions for sqlite3: use the system's Python "
                    "(/usr/bin/python3), or probing.query(), which needs none")
    try:
        db.enable_load_extension(True)
        db.load_extension(path)
        db.enable_load_extension(False)
    except sqlite3.Error as error:
        raise Error("%s cannot be loaded: %s; probing.query() does without" % (path, error)) from error


def connect(file="probing.db", **more):
    """A sqlite3.Connection to a recording, read-only, in which all of its tables can be asked.

    more is passed on to sqlite3.connect(). Raises probing.Error where this Python cannot load extensions.
    """
    path = os.path.abspath(os.fspath(file))
    if not os.path.exists(path):
        raise Error("%s does not exist: check the name and its folder" % file, 66)
    extension = _extension()
    db = sqlite3.connect("file:%s?mode=ro" % urllib.parse.quote(path), uri=True, **more)
    try:
        _load(db, extension)
    except Error:
        db.close()
        raise
    return db
