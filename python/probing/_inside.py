# SPDX-License-Identifier: MIT
"""What our features in a process share: names of its functions, stand-ins for their code, refusals, and what to undo.

CPython 3.6 or newer: src/cli/probes.py has this text before its own, where there is no package.
"""
import sys
import _thread


class Refused(Exception):
    """Its text is a clause, which `probing` prints after "process PID: "."""


class NotFound(Refused):
    pass


def space():
    return sys._probing_agent


def undo(key, function):
    """Have function() called when the agent ends, and in a forked child. None: there is nothing left to undo.
    Where no agent has been in this process, nothing of ours runs in it, either."""
    space()["undo"](key, function)


def starts():
    """Whether the program has just begun: its modules are not loaded yet, and nobody waits for an answer."""
    return space().get("starts", False)


def say(sentence):
    """A line on stderr, where nobody waits for an answer."""
    space()["say"](sentence)


# ---- Events of CUDA ----
class Events(object):
    """Events with a time, which are used again and never destroyed. torch ends a process by SIGABRT that destroys one and
    cannot use the GPU: a forked child, such as a worker of a DataLoader."""

    MOST = 250000  # kept; a program that holds more of them has a mistake of ours

    def __init__(self, torch):
        import ctypes
        self.Event, self.free, self.kept = torch.cuda.Event, {}, []
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.kept))  # also when the interpreter ends

    def take(self, device):
        """One to record on the GPU of that number: an event belongs to the GPU that it was first recorded on."""
        free = self.free.get(device)
        try:
            return free.pop()
        except (AttributeError, IndexError):  # of None; another thread may take the last one
            event = self.Event(enable_timing=True)
            event.probing_device = device
            if len(self.kept) < self.MOST:
                self.kept.append(event)
            return event

    def give(self, *events):
        for event in events:
            if event is not None:
                self.free.setdefault(event.probing_device, []).append(event)


_events = None


def events(torch):
    """Those of this process."""
    global _events
    if _events is None:
        _events = Events(torch)
    return _events


# ---- Names ----
def attribute(owner, name):
    """What a module or class has under a name, without running code of the program; KeyError."""
    if name in getattr(owner, "__dict__", ()) and not isinstance(owner, type):
        return owner.__dict__[name]
    for base in type.mro(owner if isinstance(owner, type) else type(owner)):
        if name in base.__dict__:
            return base.__dict__[name]
    raise KeyError(name)


def follow(owner, names):
    for name in names:
        owner = attribute(owner, name)
    return owner


def is_main(name):
    """Whether the script that runs has this name, NAME.py: it is __main__."""
    path = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    return path.replace("\\", "/").rsplit("/", 1)[-1] == name + ".py"


def find(dotted):
    """The object with a name: of a loaded module, or of the script that runs."""
    names = dotted.split(".")
    main = sys.modules.get("__main__")
    places = [(sys.modules.get(".".join(names[:n])), names[n:]) for n in range(len(names), 0, -1)]
    places += [(main, names), (main, names[1:] if is_main(names[0]) else names)]
    for module, rest in places:
        try:
            if module is not None:
                return follow(module, rest)
        except (KeyError, AttributeError, TypeError):
            pass
    raise NotFound("%s was not found: name a function of a loaded module, as MODULE.FUNCTION or MODULE.CLASS.METHOD" % dotted)


def local_of(frame, name):
    """The value of a function's variable, None where it has none now; of a frame of this thread. Before CPython 3.13 f_locals is a dict that
    the frame keeps, and all variables in it, beyond `del`: if nobody else has that dict, or is to write it back, it is emptied."""
    values = frame.f_locals
    value = values.get(name)
    if type(values) is dict and frame.f_code.co_flags & 1 and sys.gettrace() is None and sys.getrefcount(values) == 3:  # CO_OPTIMIZED
        values.clear()
    return value


def code_of(function):
    """The code that it has by itself."""
    entry = replaced().get(id(function))
    return entry[1] if entry is not None and function.__code__ is entry[3] else function.__code__


def function_of(dotted):
    """The Python function behind decorators, methods and properties."""
    found = find(dotted)
    for _ in range(100):
        inner = getattr(found, "fget", None) if type(found) is property else found.__dict__.get("__wrapped__") \
            if hasattr(found, "__dict__") and not isinstance(found, type) else None
        if inner is None and type(found) in (staticmethod, classmethod, type(space_method)):
            inner = found.__func__
        if inner is None:
            break
        found = inner
    if isinstance(found, type):
        raise Refused("%s is a class: name one of its methods" % dotted)
    if type(found) is type(sys):  # a script of the function's name, which has not defined it yet
        raise NotFound("%s is a module: name one of its functions" % dotted)
    if type(found) is not type(space):
        raise Refused("%s is no Python function: only those can be probed" % dotted)
    return found


class Method(object):
    def method(self):
        pass


space_method = Method().method


class Waiting(object):
    """Functions of names, which begin(functions) gets as a list of (name, function): at once, or, as a program starts, when they
    are defined. Then a thread of ours looks for them, until all are found.

    key     of the configuration, for messages
    wanted  (name, name of its function) each
    """
    FIRST_S, LAST_S = 0.005, 0.25  # between two looks
    LOOK_S = 1  # that end() waits for one; in a forked child nobody ends it

    def __init__(self, key, wanted, begin):
        self.key, self.missing, self.begin = key, list(wanted), begin
        self.functions = []
        self.stop = None  # the lock that the thread waits for
        self.looks = _thread.allocate_lock()  # while the thread looks, and begins what it has found

    def find(self, may_be_missing):
        """(what is not defined yet, the functions found by now). Refused: one of them is none."""
        missing, functions = [], list(self.functions)
        for name, place in self.missing:
            try:
                functions.append((name, function_of(place)))
            except NotFound:
                if not may_be_missing:
                    raise
                missing.append((name, place))
        return missing, functions

    def look(self, may_be_missing):
        missing, functions = self.find(may_be_missing)
        if len(functions) > len(self.functions):
            self.begin(functions)
        self.missing, self.functions = missing, functions

    def run(self, stop):
        wait_s = self.FIRST_S
        while self.missing and not stop.acquire(True, wait_s):
            wait_s = min(wait_s * 1.0005, self.LAST_S)  # 35 ms after a minute
            with self.looks:
                if self.stop is not stop:
                    return
                try:
                    self.look(True)
                except Refused as refused:
                    say("%s: %s" % (self.key, refused))
                    return

    def start(self):
        self.look(starts())
        if self.missing:
            self.stop = _thread.allocate_lock()
            self.stop.acquire()
            _thread.start_new_thread(self.run, (self.stop,))

    def end(self):
        stop, self.stop = self.stop, None
        if stop is not None:
            stop.release()
            if self.looks.acquire(True, self.LOOK_S):  # what it begins now would stay
                self.looks.release()


def opened(table):
    """append() of a table of _rows, which is created."""
    append = table._append or table._open(())
    if not hasattr(append, "__self__"):
        raise Refused("no rows of %s can be kept: python.rings has the size of its other tables, and PROBING_DATA_DIR, or "
                      "/dev/shm, must be a folder that it can write" % table.name)
    return append


# ---- Values ----

MAX_TEXT = 200
PLAIN = (bool, int, float, str, bytes, type(None))


def clean(text):
    return "".join(c if c.isprintable() else "?" for c in text)


def plain(value):
    """A value as a number, a text, or None. Runs no code of the program: what is not plain is shown by its type and shape."""
    kind = type(value)
    if kind is bool:
        return int(value)
    if kind is int:
        return value if -1 << 63 <= value < 1 << 63 else repr(value if value.bit_length() < 600 else "a large int")
    if kind is float or value is None:
        return value
    if kind in (str, bytes):
        text = repr(value[:MAX_TEXT])
        return text if len(value) <= MAX_TEXT else text + "..."
    module = kind.__module__.split(".")[0]
    if module == "numpy" and getattr(value, "size", 0) == 1:
        return plain(value.item()) if type(value.item()) in PLAIN else clean(kind.__name__)
    if module == "torch" and hasattr(value, "numel"):
        # the value of a tensor on a GPU would wait for that
        if value.numel() == 1 and value.device.type == "cpu":
            return plain(value.item())
        return clean("%s(%s, %s)" % (kind.__name__, list(value.shape), value.device))
    return clean("<%s.%s>" % (kind.__module__, kind.__qualname__))


# ---- Stand-ins: before CPython 3.12 a function gets other code ----

# Several features may have one for the same function: each is made from the code of those before it.
OWNERS = ("probing.watch_vars", "attach --config", "probing.trace")


def replaced():
    """{id: [function, its own code, {owner: make(code), which returns other code}, the code that it has now]}"""
    return space().setdefault("replaced", {})


def copy_of(function, code):
    copy = type(function)(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    return copy


def with_constants(template, code, constants):
    """The code of a template for one with other code: constants that are keys of a dict become its values."""
    mine = template.__code__
    constants = tuple(constants.get(one, one) for one in mine.co_consts)
    if hasattr(mine, "replace"):
        return mine.replace(co_consts=constants, co_name=code.co_name, co_freevars=code.co_freevars)
    return type(mine)(mine.co_argcount, mine.co_kwonlyargcount, mine.co_nlocals, mine.co_stacksize, mine.co_flags, mine.co_code,
                      constants, mine.co_names, mine.co_varnames, mine.co_filename, code.co_name, mine.co_firstlineno,
                      mine.co_lnotab, code.co_freevars, ())


def replace_constants(code, constants):
    """A code with other constants: those that are keys of a dict become its values."""
    return code.replace(co_consts=tuple(constants.get(one, one) if type(one) is str else one for one in code.co_consts))


def check_callable(function, name):
    if code_of(function).co_flags & 0x2a0:  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
        raise Refused("%s is a generator or coroutine: CPython 3.12 and later can time those" % name)


def rebuild(entry):
    function, code, layers, now = entry
    if function.__code__ is not now:  # somebody else has replaced it since
        layers.clear()
    for owner in OWNERS:
        if owner in layers:
            code = layers[owner](code)
    if function.__code__ is now:
        entry[3] = function.__code__ = code
    if not layers:
        replaced().pop(id(function), None)


def replace_code(function, owner, make):
    entry = replaced().get(id(function))
    if entry is None or function.__code__ is not entry[3]:
        entry = replaced()[id(function)] = [function, function.__code__, {}, function.__code__]
    entry[2][owner] = make
    rebuild(entry)


def restore_code(owner):
    for entry in list(replaced().values()):
        if entry[2].pop(owner, None) is not None:
            rebuild(entry)


# ---- The GIL ----

def has_gil():
    """Whether it stays. sys._is_gil_enabled() is true for a moment where a build without one imports an extension."""
    return "t" not in getattr(sys, "abiflags", "") or getattr(sys.flags, "gil", None) == 1


# ---- Tools of sys.monitoring ----

def free_tool(mine=None):
    """The number of a tool that is free, or this one of ours."""
    for tool in (4, 3, sys.monitoring.OPTIMIZER_ID):  # CPython itself uses that for nothing
        if tool == mine or sys.monitoring.get_tool(tool) is None:
            return tool
    raise Refused("all tools of sys.monitoring are in use: end another profiler or debugger of the process first")
