# SPDX-License-Identifier: MIT
"""Where the program is, and what it says when something goes wrong."""
import os
import shutil


class Error(Exception):
    """What went wrong, as the program says it; status is its exit status (None: it did not run)."""

    def __init__(self, sentence, status=None):
        super().__init__(sentence)
        self.status = status


def _beside():
    """The program of the installation that this package is part of; None: there is none."""
    folder = os.path.dirname(os.path.abspath(__file__))
    for _ in range(6):  # PREFIX/lib/python3.11/site-packages/probing, at most
        folder = os.path.dirname(folder)
        program = os.path.join(folder, "bin", "probing")
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def binary():
    """The path of the program: PROBING_BINARY, else the one installed with this package, else from the PATH."""
    wanted = os.environ.get("PROBING_BINARY")
    if wanted:
        if os.path.isfile(wanted) and os.access(wanted, os.X_OK):
            return wanted
        raise Error("PROBING_BINARY is %s, and that is no program: name the program probing, or unset it" % wanted)
    found = _beside() or shutil.which("probing")
    if not found:
        raise Error("the program probing is neither beside this package nor in the PATH: install it, or name it in "
                    "PROBING_BINARY")
    return found
