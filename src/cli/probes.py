# SPDX-License-Identifier: MIT
# What runs in the target for `probing attach PID --config FILE` and the tables it fills: Python code that works in CPython 3.6 and later
# alike.
#
# arm(spec) replaces the probes of the process; spec has a probe a line: "function NAME", "variable NAME@PLACE", "interval SECONDS",
# "torch". It arms all of them or none, and prints a note a line; where it arms none, the earlier probes stay. read(table) prints rows, a
# line each, columns separated by tabs. Probes live in sys._probing_agent, where the agent finds disarm() at its end, and where a child
# disarms itself after a fork.
#
# Before this text comes that of python/probing/_inside.py: names of functions, and stand-ins for their code.
#
# A part (Monitor, Trampolines, Watcher, Torch) changes the process from begin() to end() only, and may begin again after its end.
#
# From CPython 3.12 on sys.monitoring calls us at the timed functions alone. Before that, a timed function gets the code of a
# trampoline, which calls a copy of the function: nothing else of the program changes its speed.
import sys
import _thread

OWNER = "attach --config"
MAX_CALLS, MAX_VALUES, MAX_DEPTH = 10000, 10000, 1000


# ---- Rows ----

def keep(rows, most, row):
    """Append to a list, of which the newest rows are kept. A list because a deque cannot be copied while others append, without a GIL."""
    rows.append(row)
    if len(rows) >= most + most // 8:
        del rows[:-most]


# ---- Times ----

class Tally(object):
    """The runs of one function in one thread, in nanoseconds."""
    __slots__ = ("calls", "runs", "total", "least", "most", "raised")

    def __init__(self):
        self.calls, self.runs, self.total, self.least, self.most, self.raised = 0, 0, 0, None, 0, 0


class Times(object):
    """The runs of one function. Each thread has a tally of its own: two that add to the same number may lose one of the two."""
    __slots__ = ("name", "tallies")

    def __init__(self, name):
        self.name, self.tallies = name, {}  # by the thread's ident: a new thread continues the tally of an ended one

    def here(self, ident=_thread.get_ident):
        """This thread's tally."""
        ident = ident()
        try:
            return self.tallies[ident]
        except KeyError:
            return self.tallies.setdefault(ident, Tally())

    def row(self):
        tallies = list(self.tallies.values())
        calls, runs, total, raised = (sum(getattr(t, name) for t in tallies) for name in ("calls", "runs", "total", "raised"))
        least = min((t.least for t in tallies if t.least is not None), default=None)
        return self.name, calls, runs, total, least, max(t.most for t in tallies) if runs else None, raised


def clocks():
    import time
    if hasattr(time, "perf_counter_ns"):
        return time.perf_counter_ns, time.time
    return (lambda counter=time.perf_counter: int(counter() * 1e9)), time.time


def recorder(calls):
    clock, now = clocks()
    ident = getattr(_thread, "get_native_id", lambda: None)

    def record(times, begun, raised):
        spent, tally = clock() - begun, times.here()
        tally.runs += 1
        tally.total += spent
        tally.raised += raised
        if spent > tally.most:
            tally.most = spent
        if tally.least is None or spent < tally.least:
            tally.least = spent
        keep(calls, MAX_CALLS, (now(), ident(), times.name, spent, raised))
    return clock, record


class Monitor(object):
    """By sys.monitoring. A generator or coroutine has a run between each two of its suspensions."""

    def __init__(self, calls):
        monitoring = sys.monitoring
        # by id(), since code objects are equal by value; watched has them all, so that none of these ids is another's
        self.events, self.codes, self.watched = monitoring.events, {}, []
        earlier = space().get("probes")  # they end before these begin
        self.tool, self.has_tool = free_tool(None if earlier is None else earlier.tool), False
        self.local = threads = type("Local", (_thread._local,), {})()
        clock, record = recorder(calls)
        codes = self.codes

        def resume(code, offset, *value):
            try:
                threads.stack.append((code, clock()))
            except AttributeError:
                threads.stack = [(code, clock())]

        def start(code, offset):
            codes[id(code)].here().calls += 1
            resume(code, offset)

        def leave(code, offset, value, raised=0):
            stack = getattr(threads, "stack", None)
            while stack:
                which, begun = stack.pop()
                if which is code:  # else the end of that one was not seen
                    record(codes[id(code)], begun, raised)
                    return

        def unwind(code, offset, exception):
            if id(code) in codes:
                leave(code, offset, exception, 1)

        def throw(code, offset, exception):
            if id(code) in codes:
                resume(code, offset)

        self.callbacks = {"PY_START": start, "PY_RESUME": resume, "PY_RETURN": leave, "PY_YIELD": leave,
                          "PY_UNWIND": unwind, "PY_THROW": throw}

    def arm(self, function, times):
        self.codes[id(function.__code__)] = times
        self.watched.append(function.__code__)

    def begin(self):
        monitoring, events = sys.monitoring, self.events
        monitoring.use_tool_id(self.tool, "probing")
        self.has_tool = True
        for name, callback in self.callbacks.items():
            monitoring.register_callback(self.tool, getattr(events, name), callback)
        for code in self.watched:
            monitoring.set_local_events(self.tool, code, events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD)
        monitoring.set_events(self.tool, events.PY_UNWIND | events.PY_THROW)  # these two exist for all functions only

    def end(self):
        monitoring = sys.monitoring
        if not self.has_tool:
            return
        monitoring.set_events(self.tool, 0)
        for code in self.watched:
            monitoring.set_local_events(self.tool, code, 0)
        for name in self.callbacks:
            monitoring.register_callback(self.tool, getattr(self.events, name), None)
        monitoring.free_tool_id(self.tool)
        self.has_tool = False


def trampoline(*args, **kwargs):
    clock = "probing clock"  # each a constant, in whose place code() puts an object
    record = "probing record"
    call = "probing call"
    times = "probing times"
    times.here().calls += 1
    begun = clock()
    raised = 1
    try:
        value = call(*args, **kwargs)
        raised = 0
        return value
    finally:
        record(times, begun, raised)


class Trampolines(object):
    """By a code that calls a copy of the function, with what it needs among its constants."""

    def __init__(self, calls):
        self.clock, self.record = recorder(calls)
        self.functions = []  # (function, what makes the trampoline's code)

    def arm(self, function, times):
        check_callable(function, times.name)

        def make(code):
            return with_constants(trampoline, code, {"probing clock": self.clock, "probing record": self.record,
                                                     "probing call": copy_of(function, code), "probing times": times})
        self.functions.append((function, make))

    def begin(self):
        for function, make in self.functions:
            replace_code(function, OWNER, make)

    def end(self):
        restore_code(OWNER)


# ---- Variables ----

def cell_of(value):
    """As read() prints it."""
    return "n" if value is None else "i%d" % value if type(value) is int else "f" + repr(value) if type(value) is float else "t" + value


class Watcher(object):
    """Reads variables from time to time, and keeps a row where one has changed."""

    def __init__(self, interval):
        self.interval, self.stop = interval, None  # the lock that the thread waits for
        self.by_code, self.codes, self.of_modules = {}, [], []  # by id(): see Monitor
        self.last, self.values = {}, []

    def arm(self, text):
        name, place = text.split("@")
        found = None
        try:
            found = find(place)
        except Refused:
            pass
        if isinstance(found, type(sys)):
            self.of_modules.append((place, name, found))
            return
        code = code_of(function_of(place))
        if name not in code.co_varnames + code.co_cellvars + code.co_freevars:
            raise Refused("%s has no variable %s" % (place, name))
        if not has_gil():
            raise Refused("without a GIL the variables of a running function cannot be read safely: watch a module's, %s@MODULE" % name)
        self.by_code.setdefault(id(code), []).append((place, name))
        self.codes.append(code)

    def begin(self):
        if not self.by_code and not self.of_modules:
            return
        self.now = clocks()[1]
        stop = _thread.allocate_lock()
        stop.acquire()
        _thread.start_new_thread(self.run, (stop,))
        self.stop = stop

    def end(self):
        if self.stop is not None:
            self.stop.release()
            self.stop = None

    def run(self, stop):
        while not stop.acquire(True, self.interval):
            try:
                self.look()
            except Exception:  # a variable that cannot be shown now; the next look may
                pass

    def keep(self, seen, key, tid, value):
        value = seen[key] = cell_of(plain(value))
        if self.last.get(key) != value:
            keep(self.values, MAX_VALUES, (self.now(), None) + key[1:] + (value, tid))

    def look(self):
        seen = {}
        for place, name, module in self.of_modules:
            if name in module.__dict__:
                self.keep(seen, (None, place, name), None, module.__dict__[name])
        if self.by_code:
            threads = getattr(sys.modules.get("threading"), "_active", {})
            for ident, frame in sys._current_frames().items():
                self.look_at(seen, ident, getattr(threads.get(ident), "native_id", None), frame)
        self.last = seen

    def look_at(self, seen, ident, tid, frame):
        for depth in range(MAX_DEPTH):
            if frame is None:
                return
            for place, name in self.by_code.get(id(frame.f_code), ()):
                key = (ident, place, name)
                if key not in seen:  # of a recursive function the innermost
                    values = frame.f_locals
                    if name in values:
                        self.keep(seen, key, tid, values[name])
                    values = None
            frame = frame.f_back


# ---- torch ----

class Torch(object):
    """The forward pass of each module, by torch's own hooks."""

    def __init__(self, calls):
        self.clock, self.record = recorder(calls)
        self.handles, self.times = [], {}

    def begin(self):
        from torch.nn.modules import module
        local = type("Local", (_thread._local,), {})()

        def enter(which, inputs):
            try:
                local.stack.append((which, self.clock()))
            except AttributeError:
                local.stack = [(which, self.clock())]

        def leave(which, inputs, output):
            stack = getattr(local, "stack", None)
            while stack:
                one, begun = stack.pop()
                if one is which:
                    kind = type(which)
                    times = self.times.get(kind)
                    if times is None:
                        times = self.times.setdefault(kind, Times("%s.%s.forward" % (kind.__module__, kind.__qualname__)))
                    times.here().calls += 1
                    self.record(times, begun, 0)
                    return

        self.handles.append(module.register_module_forward_pre_hook(enter))
        self.handles.append(module.register_module_forward_hook(leave))

    def end(self):
        while self.handles:
            self.handles.pop().remove()


# ---- All of them ----

class Probes(object):
    def __init__(self, spec):
        self.calls, self.times, self.parts, self.notes = [], [], [], []
        lines = [line.split(" ", 1) for line in spec.splitlines()]
        functions = [rest[0] for kind, *rest in lines if kind == "function"]
        interval = [float(rest[0]) for kind, *rest in lines if kind == "interval"]
        self.watcher, self.torch = Watcher(interval[0] if interval else 1.0), None
        self.tool = None  # of sys.monitoring
        for kind, *rest in lines:
            if kind == "variable":
                self.watcher.arm(rest[0])
        if functions:
            self.time(functions)
        self.parts.append(self.watcher)
        if ["torch"] in lines:
            if "torch" in sys.modules:
                self.torch = Torch(self.calls)
                self.parts.append(self.torch)
            else:
                self.notes.append("torch is not loaded in the process, and nothing was armed for it: attach again after its import")

    def time(self, names):
        timer = (Monitor if hasattr(sys, "monitoring") else Trampolines)(self.calls)
        by_code = {}
        for name in names:
            function = function_of(name)
            code = code_of(function)
            if id(code) in by_code:
                raise Refused("%s and %s are the same function" % (by_code[id(code)], name))
            by_code[id(code)] = name
            self.times.append(Times(name))
            timer.arm(function, self.times[-1])
        self.tool = getattr(timer, "tool", None)
        self.parts.append(timer)

    def begin(self):
        for part in self.parts:
            part.begin()

    def end(self):
        for part in self.parts:
            part.end()


def disarm(_=None):
    """All probes are gone, and what they have seen. The agent calls this at its end."""
    probes = space().pop("probes", None)
    if probes is not None:
        probes.end()
    write = space().get("write")
    if write is not None:
        write(b"\3\0")


def replace(old, probes):
    """Probes in place of others, which stay where these cannot begin."""
    try:
        if old is not None:
            old.end()
        space()["probes"] = probes
        probes.begin()
    except BaseException:
        probes.end()
        space()["probes"] = old
        if old is None:
            disarm()
        else:
            begin_again(old)
        raise


def begin_again(old):
    try:
        old.end()
        old.begin()
    except BaseException:
        disarm()


def arm(spec):
    old = space().get("probes")
    try:
        probes = Probes(spec.decode())
    except Refused as why:
        print("%s %s" % ("refused" if old is None else "kept", why))
        return
    space()["disarm"] = disarm
    space()["write"](b"\3\1")
    replace(old, probes)
    watch_forks()
    for note in probes.notes:
        print("note " + note)


def watch_forks():
    os = sys.modules.get("os")
    if hasattr(os, "register_at_fork") and not space().get("watches_forks"):
        agent = space()
        agent["watches_forks"] = True
        os.register_at_fork(after_in_child=lambda: agent.get("disarm", len)(""))


def read(table):
    probes = space().get("probes")
    if probes is None:
        print("unarmed")
        return
    if table == b"function_time":
        rows = [times.row() for times in probes.times + list(probes.torch.times.values() if probes.torch else ())]
    elif table == b"function_call":
        rows = probes.calls[-MAX_CALLS:]
    else:
        rows = probes.watcher.values[-MAX_VALUES:]
    if table == b"variables":  # of its values cell_of() has been taken
        print("\n".join("\t".join(map(cell_of, row[:4])) + "\t" + row[4] + "\t" + cell_of(row[5]) for row in rows))
    else:
        print("\n".join("\t".join(map(cell_of, row)) for row in rows))
