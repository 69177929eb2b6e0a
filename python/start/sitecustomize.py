# SPDX-License-Identifier: MIT
# What `probing run` puts before PYTHONPATH: the start hook where the package is not installed, and then the sitecustomize that
# would have been imported without it. Python 2 comes by here, too, and is left alone.
import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))


def _leave(is_passed_on):
    sys.path[:] = [path for path in sys.path if path != _folder]
    if is_passed_on:
        return
    os.environ.pop("PROBING_AGENT", None)
    left = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != _folder]
    if left:
        os.environ["PYTHONPATH"] = os.pathsep.join(left)
    else:
        os.environ.pop("PYTHONPATH", None)


def _begin():
    passes_on = True
    if sys.version_info >= (3, 6):
        path = os.path.join(_folder, "_start.py")
        with open(path, "rb") as source:
            space = {"__name__": "probing._start", "__file__": path}
            exec(compile(source.read(), path, "exec"), space)
        passes_on = space["begin"]()
    _leave(passes_on)


_begin()
_own = sys.modules.pop("sitecustomize")
try:
    import sitecustomize  # noqa: the next one
except ImportError as _error:
    if getattr(_error, "name", "sitecustomize") != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = _own  # an import machinery that finds nothing there calls it a mistake
