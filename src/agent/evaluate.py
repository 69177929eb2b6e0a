# SPDX-License-Identifier: MIT
# What runs in the target for `probing PID eval`: Python code that works in CPython 3.6 and later alike.
#
# The agent calls begin(writer), run(source, name), absorb() and end(), in this order (python.c). run() executes text in __main__ and
# returns bytes: one that says how it ended (enum outcome of protocol.h), then the value's repr() or the traceback. Only run() may be
# interrupted. writer(bytes) takes what the code prints, after one byte that says where: 1 stdout, 2 stderr; it returns false where
# nobody listens (a forked child). What other threads print meanwhile goes where it always went. The code has no stdin.
#
# Nothing is imported but what is built into the interpreter; `traceback` where there is one to print.
import sys
import _ast
import _thread

VALUE, NOTHING, EXCEPTION, INTERRUPTED = b"\0", b"\1", b"\2", b"\3"
MAX_STAND_INS = 64

thread = write = None  # of the evaluation that runs

# print() and input() of CPython before 3.14 borrow sys.stdout and sys.stdin: a thread of the program may be in them, and use a stand-in
# after the evaluation has ended. So stand-ins are kept, and used again for the same stream. The namespace itself lives as long as the interpreter.
stand_ins = []


def encode(text):
    return text.encode("utf-8", "backslashreplace")


class Output(object):
    """Stands for a stream while code runs: for the agent's thread it is the agent, for all others the stream itself."""

    def __init__(self, real, number):
        self._real, self._number = real, number

    def write(self, text):
        if _thread.get_ident() == thread:
            if not isinstance(text, str):
                raise TypeError("write() argument must be str, not " + type(text).__name__)
            if write(self._number + encode(text)):
                return len(text)
        # without a stream (a daemon's None), print() does nothing
        return len(text) if self._real is None else self._real.write(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        if _thread.get_ident() != thread and self._real is not None:
            self._real.flush()

    def isatty(self):
        return _thread.get_ident() != thread and self._real is not None and self._real.isatty()

    def __getattr__(self, attribute):
        return getattr(self._real, attribute)


class Input(object):
    """Stands for stdin: the program's own is not to be read, waited for, or closed by quit()."""
    _number = b"\0"

    def __init__(self, real, number):
        self._real = real

    def read(self, *n):
        return "" if _thread.get_ident() == thread else self._real.read(*n)

    def readline(self, *n):
        return "" if _thread.get_ident() == thread else self._real.readline(*n)

    def fileno(self):
        if _thread.get_ident() == thread:
            raise OSError("evaluated code has no stdin")
        return self._real.fileno()

    def __iter__(self):
        return iter(()) if _thread.get_ident() == thread else iter(self._real)

    def close(self):
        if _thread.get_ident() != thread:
            self._real.close()

    def __getattr__(self, attribute):
        return getattr(self._real, attribute)


STREAMS = ("stdin", Input, b"\0"), ("stdout", Output, b"\1"), ("stderr", Output, b"\2")


def stand_in(real, kind, number):
    if type(real) in (Input, Output):  # the program has put it back
        return real
    for one in stand_ins:
        if one._real is real and one._number == number:
            return one
    one = kind(real, number)
    stand_ins.append(one)
    del stand_ins[:-MAX_STAND_INS]
    return one


def begin(writer):
    global thread, write
    write, thread = writer, _thread.get_ident()
    for name, kind, number in STREAMS:
        setattr(sys, name, stand_in(getattr(sys, name, None), kind, number))


def end():
    global thread, write
    thread = write = None
    for name, kind, _ in STREAMS:
        stream = getattr(sys, name, None)
        if type(stream) is kind:  # else the code has put another there
            setattr(sys, name, stream._real)


def execute(source, name):
    space = sys.modules["__main__"].__dict__
    tree = compile(source, name, "exec", 0x400, True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
    exec(compile(tree, name, "exec", 0, True), space)
    if last is None:
        return None
    return eval(compile(_ast.Expression(last.value), name, "eval", 0, True), space)


def describe(error, name):
    # from the frame of the code itself on
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    try:
        import traceback
        return "".join(traceback.format_exception(type(error), error, trace))
    except Exception:
        return "%s: %s\n" % (type(error).__name__, error)


def run(source, name):
    try:
        value = execute(source, name)
        return NOTHING if value is None else VALUE + encode(repr(value))
    except KeyboardInterrupt as error:
        return INTERRUPTED + encode(describe(error, name))
    except BaseException as error:
        return EXCEPTION + encode(describe(error, name))


def absorb():
    # An interrupt that has come too late for run() is raised here.
    for _ in range(100):
        pass
