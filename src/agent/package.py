# SPDX-License-Identifier: MIT
# What makes `import probing` work in a process whose Python has no such package: the agent has its modules, and this finds them there.
# It runs in the namespace of evaluate.py. CPython 3.6 and 3.7 come by here, too, and get a sentence.
#
# The finder asks the others first: a package that is installed for the program is the one that is imported. It comes before them, since
# a folder probing/ without a package in it would be one, too (a namespace package). call() refuses one of another version. After `probing detach` the finder and the modules remain; they then do nothing.
#
# undo(key, function) is for modules that change the program: function() undoes that, when the agent ends, and in a forked child.
#
# source(name) is the agent's: the text of a module, None: it has none of that name; version is that of the agent.
import sys

PACKAGE, FIRST = "probing", (3, 8)


class Sentence(str):
    """What a call has refused: its repr() is what probing prints."""
    __repr__ = str.__str__


class Finder(object):
    """The package's modules, as an importer of PEP 451."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != PACKAGE and not name.startswith(PACKAGE + "."):
            return None
        text = source(name)
        if text is None or name != PACKAGE and getattr(sys.modules.get(PACKAGE), "__loader__", None) is not cls:
            return None
        if name == PACKAGE:
            found = cls.find_elsewhere(name, path, target)
            if found is not None:
                return found
        if sys.version_info < FIRST:
            raise ImportError("the package probing needs CPython 3.8 or newer: this is %d.%d" % sys.version_info[:2])
        from _frozen_importlib import ModuleSpec
        return ModuleSpec(name, cls, origin="probing's agent", is_package=name == PACKAGE)

    @classmethod
    def find_elsewhere(cls, *what):
        for other in list(sys.meta_path):
            found = other.find_spec(*what) if other is not cls and hasattr(other, "find_spec") else None
            if found is not None and getattr(found, "origin", None) not in (None, "namespace"):
                return found
        return None

    @staticmethod
    def create_module(spec):
        return None

    @classmethod
    def exec_module(cls, module):
        name = module.__name__
        # a file of no folder: tracebacks find its lines by get_source()
        file = "<probing>/%s.py" % (name[len(PACKAGE) + 1:] or "__init__")
        exec(compile(source(name), file, "exec", 0, True), module.__dict__)

    @staticmethod
    def get_source(name):
        return source(name)

    @staticmethod
    def is_package(name):
        return name == PACKAGE


def offer():
    """Have imports find the package."""
    if not any(type(one) is type and one.__name__ == "Finder" and one.__module__ == Finder.__module__ for one in sys.meta_path):
        sys.meta_path.insert(0, Finder)


Finder.__module__ = "probing_agent"


def package(name):
    """The module probing.NAME of this version; ImportError: why there is none."""
    offer()
    if sys.version_info < FIRST:
        raise ImportError("CPython 3.8 or newer is needed for that, and this is %d.%d" % sys.version_info[:2])
    from importlib import import_module
    found = import_module(PACKAGE)
    if getattr(found, "__version__", None) != version:
        raise ImportError("its Python has another package probing (%s, %s): install probing %s there, or rename that one"
                          % (getattr(found, "__version__", "of no version"), getattr(found, "__file__", None), version))
    return import_module(PACKAGE + "." + name)


def call(name, function, *arguments):
    """probing.NAME.FUNCTION(*arguments). Returns None, or the sentence of a refusal."""
    try:
        module = package(name)
    except ImportError as error:
        return Sentence(error)
    refused = sys.modules[PACKAGE + "._inside"].Refused if PACKAGE + "._inside" in sys.modules else ()
    try:
        getattr(module, function)(*arguments)
    except refused as error:
        return Sentence(error)
    return None


def apply(what):
    """A key that is set as the program begins: (module, key, text)."""
    global starts
    starts = True
    try:
        problem = call(what[0], "configure", *what[1:])
    except Exception as error:
        problem = "%s: %s" % (type(error).__name__, error)
    starts = False
    if problem:
        say("%s was not set: %s" % (what[1], problem))


starts = False


def say(sentence):
    import posix
    if posix.environ.get(b"PROBING_LOGLEVEL") not in (b"off", b"error", b"warn"):
        posix.write(2, ("probing: %s\n" % sentence).encode("utf-8", "backslashreplace"))


# ---- Undo ----

undoes = {}  # key: function


def undo(key, function):
    """Have function() called at the agent's end, and in a forked child. None: there is nothing left to undo."""
    undoes.pop(key, None)
    if function is not None:
        undoes[key] = function
        watch_forks_once()
    has_undo(len(undoes) > 0)


def undo_all(_=None):
    while undoes:
        key, function = undoes.popitem()
        try:
            function()
        except Exception as error:  # the others are undone all the same
            say("%s was not undone: %s: %s" % (key, type(error).__name__, error))
    has_undo(False)


def watch_forks_once():
    os = sys.modules.get("os")
    if not is_watching and hasattr(os, "register_at_fork"):
        is_watching.append(True)
        os.register_at_fork(after_in_child=undo_all)


is_watching = []
