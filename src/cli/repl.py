# SPDX-License-Identifier: MIT
# What runs in the target for `probing PID repl`: Python code that works in CPython 3.6 and later alike.
#
# step(source) takes what was typed so far and returns "more", "done" or "exit"; run(source) takes a whole script and returns
# "done", "exit" or "failed"; complete(source) returns the names that the end of it may become, one a line.
# What code of theirs prints is the agent's business, the value of an expression is printed here. builtins._ is left alone: a
# program may have its translations there.
NAME = "<probing>"


def space():
    import sys
    return sys.modules["__main__"].__dict__


def show(value):
    if value is not None:
        print(repr(value))


def describe(error):
    import sys
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != NAME:
        trace = trace.tb_next
    try:
        import traceback
        text = "".join(traceback.format_exception(type(error), error, trace))
    except Exception:
        text = "%s: %s\n" % (type(error).__name__, error)
    sys.stderr.write(text)


def execute(code):
    import sys
    before = sys.displayhook
    sys.displayhook = show
    try:
        exec(code, space())
    except SystemExit:
        return "exit"
    except BaseException as error:
        describe(error)
        return "failed"
    finally:
        if sys.displayhook is show:
            sys.displayhook = before
    return "done"


def step(source):
    import codeop
    try:
        code = codeop.compile_command(source.decode("utf-8", "replace"), NAME, "single")
    except (SyntaxError, ValueError, OverflowError) as error:
        error.__traceback__ = None
        describe(error)
        return "done"
    if code is None:
        return "more"
    result = execute(code)
    return "done" if result == "failed" else result


def run(source):
    import _ast
    try:
        statements = compile(source, NAME, "exec", 0x400, True).body
    except (SyntaxError, ValueError) as error:
        error.__traceback__ = None
        describe(error)
        return "failed"
    for statement in statements:
        tree = _ast.Interactive([statement])
        result = execute(compile(tree, NAME, "single", 0, True))
        if result != "done":
            return result
    return "done"


WORDS = ("and as assert async await break class continue def del elif else except finally for from global if import in is "
         "lambda nonlocal not or pass raise return try while with yield False None True").split()


def is_computed(value, name):
    # a property would run the program's code
    for kind in type(value).__mro__:
        if name in kind.__dict__:
            return isinstance(kind.__dict__[name], property)
    return False


def names_of(path):
    import builtins
    names = space()
    if not path:
        return list(names) + dir(builtins) + WORDS
    value = names[path[0]] if path[0] in names else getattr(builtins, path[0])
    for name in path[1:]:
        if is_computed(value, name):
            return []
        value = getattr(value, name)
    return dir(value)


def complete(source):
    path = source.decode("utf-8", "replace").split(".")
    try:
        names = names_of(path[:-1])
    except Exception:
        return ""
    wanted = path[-1]
    fits = sorted({name for name in names if isinstance(name, str) and name.startswith(wanted)})
    if not wanted.startswith("_"):
        fits = [name for name in fits if not name.startswith("_")]
    print("\n".join(fits[:1000]), end="")
