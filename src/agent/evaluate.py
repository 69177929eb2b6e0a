# SPDX-License-Identifier: MIT
# What runs in the target for `probing PID eval`: Python code that works in CPython 3.6 and later alike.
#
# evaluate(source, name, write) runs text in __main__ and returns bytes: one that says how it ended (enum outcome of
# protocol.h), then the value's repr() or the traceback. write(bytes) takes what the code prints, after one byte that says
# where: 1 stdout, 2 stderr. What other threads print meanwhile goes where it always went. The code has no stdin.
#
# Nothing is imported but what is built into the interpreter; `traceback` where there is one to print.
def evaluate(source, name, write):
    import sys
    import _ast
    import _thread
    me = _thread.get_ident()
    VALUE, NOTHING, EXCEPTION, INTERRUPTED = b"\0", b"\1", b"\2", b"\3"

    def encode(text):
        return text.encode("utf-8", "backslashreplace")

    class Stream(object):
        def __init__(self, real, number):
            self._real, self._number = real, number

        def write(self, text):
            if _thread.get_ident() != me:
                return self._real.write(text)
            if not isinstance(text, str):
                raise TypeError("write() argument must be str, not " + type(text).__name__)
            write(self._number + encode(text))
            return len(text)

        def writelines(self, lines):
            for line in lines:
                self.write(line)

        def flush(self):
            if _thread.get_ident() != me:
                self._real.flush()

        def isatty(self):
            return _thread.get_ident() != me and self._real.isatty()

        def __getattr__(self, attribute):
            return getattr(self._real, attribute)

    class Input(object):
        # the program's own is not to be read, waited for, or closed by quit()
        def __init__(self, real):
            self._real = real

        def read(self, *n):
            return "" if _thread.get_ident() == me else self._real.read(*n)

        def readline(self, *n):
            return "" if _thread.get_ident() == me else self._real.readline(*n)

        def fileno(self):
            if _thread.get_ident() == me:
                raise OSError("evaluated code has no stdin")
            return self._real.fileno()

        def __iter__(self):
            return iter(()) if _thread.get_ident() == me else iter(self._real)

        def close(self):
            if _thread.get_ident() != me:
                self._real.close()

        def __getattr__(self, attribute):
            return getattr(self._real, attribute)

    def run():
        space = sys.modules["__main__"].__dict__
        tree = compile(source, name, "exec", 0x400, True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
        exec(compile(tree, name, "exec", 0, True), space)
        if last is None:
            return None
        return eval(compile(_ast.Expression(last.value), name, "eval", 0, True), space)

    def describe(error):
        # from the frame of the code itself on
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != name:
            trace = trace.tb_next
        try:
            import traceback
            return "".join(traceback.format_exception(type(error), error, trace))
        except Exception:
            return "%s: %s\n" % (type(error).__name__, error)

    out, err, nothing = Stream(sys.stdout, b"\1"), Stream(sys.stderr, b"\2"), Input(sys.stdin)
    before = sys.stdout, sys.stderr, sys.stdin
    try:
        try:
            sys.stdout, sys.stderr, sys.stdin = out, err, nothing
            value = run()
            return NOTHING if value is None else VALUE + encode(repr(value))
        except KeyboardInterrupt as error:
            return INTERRUPTED + encode(describe(error))
        except BaseException as error:
            return EXCEPTION + encode(describe(error))
    finally:
        # unless the code has put others there
        if sys.stdout is out:
            sys.stdout = before[0]
        if sys.stderr is err:
            sys.stderr = before[1]
        if sys.stdin is nothing:
            sys.stdin = before[2]
