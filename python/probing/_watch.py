# SPDX-License-Identifier: MIT
"""The key probing.watch_vars: each assignment to a local variable of a function becomes a row of python.variables.

From CPython 3.12 on sys.monitoring calls us at the lines of these functions; the value is read at the first line, or return,
after the assignment. Before that a function gets code that is compiled from its source, with a call of ours behind each
assignment. No other function of the program becomes slower, and none is traced.
"""
import sys

from probing import _inside, _rows, _trace
from probing._inside import Refused
from probing._rows import get_native_id

OWNER = "probing.watch_vars"
RING = "probing_variables"  # src/live/python_probes.c shows it as python.variables
COLUMNS = {"func": str, "name": str, "number": float, "text": str, "step": int, "tid": int}
ROWS = 1 << 15
BYTES = {"name": 48, "text": 96}
ENDS_PROGRAM = sys.version_info < (3, 10)  # one that catches a RecursionError and goes on into further calls (bpo-42500)

_now = None  # the Watch; None: nothing is watched


def ring():
    columns = dict(COLUMNS, number=object)  # integers and reals
    table = _rows.ExternalTable.get_or_create(RING, columns, rows=ROWS, text_bytes=BYTES)
    return _inside.opened(table)


def keeper(append):
    """keep(function's name, variable's name, value): append a row."""
    plain = _inside.plain

    def keep(place, name, value):
        try:
            value = plain(value)
        except RecursionError:
            raise
        except Exception:  # of a value that NumPy or torch cannot give now
            value = "?"
        if isinstance(value, str):
            append(place, name, None, value, _rows._step, get_native_id())
        else:
            append(place, name, value, None, _rows._step, get_native_id())
    return keep


def check(functions):
    for wanted, function in functions:
        name = wanted.split("@")[0]
        code = _inside.code_of(function)
        if name not in code.co_varnames + code.co_cellvars + code.co_freevars:
            raise Refused("%s has no variable %s" % (wanted.split("@")[1], name))


# ---- By sys.monitoring ----

class Lines(object):
    """Which lines of a code assign, by the offset of the instruction that a line begins with."""

    def __init__(self, code):
        self.code, self.wanted = code, {}  # name: function's name
        self.assigning = {}  # offset: [(name, whether it is certain)]

    def add(self, name, place):
        self.wanted[name] = place
        self.assigning.clear()

    def arguments(self):
        code = self.code
        n = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        return [(name, True) for name in code.co_varnames[:n] if name in self.wanted]

    def names_at(self, offset):
        """What is assigned between this instruction and the next one that begins a line; behind a jump, it may not be."""
        names = self.assigning.get(offset)
        if names is None:
            import dis
            import re
            names, is_certain = {}, True
            jumps = set(dis.hasjrel + dis.hasjabs)
            for instruction in dis.get_instructions(self.code):
                if instruction.offset < offset:
                    continue
                if instruction.offset > offset and instruction.starts_line:  # a number before 3.13, then true
                    break
                is_certain = is_certain and instruction.opcode not in jumps
                of = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
                for kind, name in zip(re.findall("STORE|LOAD", instruction.opname), of):  # STORE_FAST_LOAD_FAST has two
                    if kind == "STORE" and name in self.wanted:
                        names[name] = names.get(name) or is_certain
            names = self.assigning[offset] = list(names.items())
        return names


class Monitor(object):
    def __init__(self, append):
        self.tool, self.lines = None, {}  # by id() of the code, which self.lines keeps
        self.keep = keeper(append)

    def callbacks(self):
        read, keep, lines = _trace.builtins()[7], self.keep, self.lines
        frame_of = sys._getframe
        frames = {}  # id of a frame: [names that were assigned since it was looked at, {name: id of its value}]

        def quiet(callback):
            """What fails in it misses a row, and never reaches the program: it may be at the limit of its recursion, or at its end."""
            def called(*what):
                try:
                    callback(*what)
                except Exception:
                    pass
            return called

        def look(which, frame, names, values):
            for name, is_certain in names:
                try:
                    value = read(frame, name)
                except NameError:  # an exception came first, or it was deleted
                    continue
                if is_certain or values.get(name) != id(value):  # while a variable has a value, no other has its id
                    keep(which.wanted[name], name, value)
                values[name] = id(value)

        def start(code, offset):
            which = lines.get(id(code))
            if which is not None:
                frame, values = frame_of(2), {}
                frames[id(frame)] = [(), values]
                look(which, frame, which.arguments(), values)

        def line(code, number):
            which = lines.get(id(code))
            if which is None:
                return
            frame = frame_of(2)
            state = frames.get(id(frame))
            if state is None:  # it ran before it was watched
                state = frames[id(frame)] = [(), {}]
            if state[0]:
                look(which, frame, *state)
            state[0] = which.names_at(frame.f_lasti)

        def leave(code, offset, value):
            frame = frame_of(2)
            state = frames.pop(id(frame), None)
            which = lines.get(id(code))
            if state and state[0] and which is not None:
                look(which, frame, *state)
        return quiet(start), quiet(line), quiet(leave)

    def begin(self, functions):
        monitoring, events = sys.monitoring, sys.monitoring.events
        if self.tool is None:
            tool = _inside.free_tool()
            monitoring.use_tool_id(tool, OWNER)
            self.tool = tool
            for event, callback in zip((events.PY_START, events.LINE, events.PY_RETURN), self.callbacks()):
                monitoring.register_callback(tool, event, callback)
        for wanted, function in functions:
            name, place = wanted.split("@")
            code = function.__code__
            if id(code) not in self.lines:
                self.lines[id(code)] = Lines(code)
            self.lines[id(code)].add(name, place)
            monitoring.set_local_events(self.tool, code, events.PY_START | events.LINE | events.PY_RETURN)

    def end(self):
        monitoring, events = sys.monitoring, sys.monitoring.events
        if self.tool is None:
            return
        for which in self.lines.values():
            monitoring.set_local_events(self.tool, which.code, 0)
        for event in (events.PY_START, events.LINE, events.PY_RETURN):
            monitoring.register_callback(self.tool, event, None)
        monitoring.free_tool_id(self.tool)
        self.tool = None
        self.lines.clear()


# ---- By compiling the source again ----

def assigned(ast, node, names):
    """Names that a statement assigns itself; not those of its body."""
    found = []
    blocks = ("body", "orelse", "finalbody", "handlers", "cases")
    todo = [value for field, value in ast.iter_fields(node) if field not in blocks]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        elif isinstance(one, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        elif isinstance(one, ast.AST):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id in names:
                found.append(one.id)
            todo += [value for _, value in ast.iter_fields(one)]
    return sorted(set(found))


def report(ast, names, at):
    """Statements that call a constant with each variable; with_constants() puts a function in its place."""
    made = []
    for name in names:
        # "x" or 0: else the compiler warns that a text is called
        callee = ast.BoolOp(ast.Or(), [ast.Constant("probing watch " + name), ast.Constant(0)])
        made.append(ast.Expr(ast.Call(callee, [ast.Name(name, ast.Load())], [])))
    for one in made:
        ast.copy_location(one, at)
        ast.fix_missing_locations(one)
    return made


def add_reports(ast, body, names):
    """The statements of a block, with reports behind those that assign."""
    changed = []
    for node in body:
        changed.append(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        stored = assigned(ast, node, names)
        blocks = [block for block in ("body", "orelse", "finalbody") if getattr(node, block, None)]
        for block in blocks:
            setattr(node, block, add_reports(ast, getattr(node, block), names))
        for one in list(getattr(node, "handlers", ())) + list(getattr(node, "cases", ())):
            one.body = add_reports(ast, one.body, names)
        if "body" in blocks and stored:  # for x in, with as x, while (x := ...)
            node.body[:0] = report(ast, stored, node.body[0])
        elif stored:
            changed += report(ast, stored, node)
    return changed


def find_code(code, function):
    """The code of that name and line within a module's."""
    for one in code.co_consts:
        if isinstance(one, type(code)):
            if one.co_name == function.co_name and one.co_firstlineno == function.co_firstlineno:
                return one
            found = find_code(one, function)
            if found is not None:
                return found
    return None


def find_definition(ast, tree, code):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name and \
                code.co_firstlineno in [node.lineno] + [one.lineno for one in node.decorator_list]:
            return node
    return None


def compile_with_reports(function, names, place):
    """The function's code with a call of a constant behind each assignment to one of these variables."""
    import ast
    import linecache
    code = _inside.code_of(function)
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    instead = "probing attach --config with \"variables: [%s@%s]\" reads it from time to time" % (names[0], place)
    if not source:
        raise Refused("the source of %s, %s, cannot be read: %s" % (place, code.co_filename, instead))
    try:
        same = find_code(compile(source, code.co_filename, "exec", 0, True), code)
        tree = ast.parse(source, code.co_filename)
    except SyntaxError:
        same = None
    if same is None or same.co_code != code.co_code or same.co_names != code.co_names:
        raise Refused("%s is not what its source %s has now: %s" % (place, code.co_filename, instead))
    node = find_definition(ast, tree, code)
    arguments = node.args
    given = [one.arg for one in getattr(arguments, "posonlyargs", []) + arguments.args + arguments.kwonlyargs +
             [one for one in (arguments.vararg, arguments.kwarg) if one is not None]]
    node.body = add_reports(ast, node.body, names)
    first = 1 if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant) and len(node.body) > 1 else 0
    node.body[first:first] = report(ast, [name for name in names if name in given], node.body[first])
    made = find_code(compile(tree, code.co_filename, "exec", 0, True), code)
    if made is None or made.co_freevars != code.co_freevars:
        raise Refused("%s cannot be compiled again: %s" % (place, instead))
    return made


class StandIns(object):
    def __init__(self, append):
        self.keep = keeper(append)

    def reporter(self, place, name):
        keep = self.keep

        def report(value):
            try:
                keep(place, name, value)
            except RecursionError:
                if ENDS_PROGRAM:
                    raise
            except Exception:  # as above
                pass
        return report

    def begin(self, functions):
        names = {}
        for wanted, function in functions:
            name, place = wanted.split("@")
            names.setdefault(id(function), (function, place, []))[2].append(name)
        made = []
        for function, place, variables in names.values():
            code = compile_with_reports(function, variables, place)
            reports = {"probing watch " + name: self.reporter(place, name) for name in variables}
            made.append((function, _inside.replace_constants(code, reports)))
        _inside.restore_code(OWNER)
        for function, code in made:
            _inside.replace_code(function, OWNER, lambda _, code=code: code)

    def end(self):
        _inside.restore_code(OWNER)


# ---- All ----

class Watch(object):
    def __init__(self, wanted):
        if not _inside.has_gil():
            raise Refused("without a GIL the variables of a running function cannot be read safely")
        self.names = _inside.Waiting(OWNER, [(one, one.split("@")[1]) for one in wanted], self.begin)
        check(self.names.find(_inside.starts())[1])  # before the earlier ones end
        self.by = None

    def begin(self, functions):
        check(functions)
        self.by.begin(functions)

    def start(self, append):
        self.by = Monitor(append) if hasattr(sys, "monitoring") else StandIns(append)
        self.names.start()

    def end(self):
        self.names.end()
        if self.by is not None:
            self.by.end()


def end():
    global _now
    watch, _now = _now, None
    if watch is not None:
        watch.end()
    _inside.undo(OWNER, None)


def configure(key, text):
    """Watch the variables that a text names, VARIABLE@FUNCTION with commas between them, in place of the earlier ones."""
    global _now
    if not text:
        end()
        return
    watch = Watch(text.split(","))
    append = ring()
    end()
    _now = watch
    _inside.undo(OWNER, end)
    try:
        watch.start(append)
    except BaseException:
        end()
        raise
