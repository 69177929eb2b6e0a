# SPDX-License-Identifier: MIT
"""Collectives and messages of torch.distributed, as rows of the ring comm_metrics: docs/torch.md.

Methods of torch's class ProcessGroup are replaced, which all functions of torch.distributed call. The reducer of
DistributedDataParallel calls them from C++, past Python: it gets a group of Python's in place of the real one, which calls
the real one. The same calls with the same arguments, so results are equal to the bit.

An operation ends when its future is done (gloo), when wait() returns, or when the GPU has come to an event behind it (NCCL),
whichever is seen first. Nothing here raises into the program: the first exception of ours ends all rows, with one line on
stderr.
"""
import atexit
import collections
import itertools
import os
import sys
import threading
import time
import weakref

from probing import _inside, _rows

ROWS = 20000
MAX_PENDING = 10000   # operations whose end has not been seen; the oldest are given up
MAX_ASKED = 16        # events that are asked whether the GPU has come to them, before each operation
DRAIN_S = 10          # at exit: torch waits for its operations then, too
COLUMNS = {"op": str, "src_rank": int, "dst_rank": int, "bytes": int, "latency_ms": float, "group": str, "seq": int, "rank": int,
           "world_size": int, "file": str, "line": int, "func": str, "step": int, "async": int, "backend": str, "call": int}
TEXTS = {"op": 32, "group": 32, "file": 128, "func": 64, "backend": 16}
STARTED = ("op", "src_rank", "dst_rank", "bytes", "group", "seq", "rank", "world_size", "file", "line", "func", "step", "async",
           "backend", "call")

# Methods of ProcessGroup: the name in torch.distributed, what it does, and which argument holds what this rank sends; of
# "from root" and "receive" what it gets. To and from the root: its rank is in the options.
ALL, FROM_ROOT, TO_ROOT, SEND, RECEIVE, RECEIVE_ANY = range(6)
METHODS = {
    "allreduce": ("all_reduce", ALL, 0),
    "allreduce_coalesced": ("all_reduce_coalesced", ALL, 0),
    "allgather": ("all_gather", ALL, 1),
    "_allgather_base": ("all_gather_into_tensor", ALL, 1),
    "allgather_coalesced": ("all_gather_coalesced", ALL, 1),
    "allgather_into_tensor_coalesced": ("all_gather_into_tensor_coalesced", ALL, 1),
    "reduce_scatter": ("reduce_scatter", ALL, 1),
    "_reduce_scatter_base": ("reduce_scatter_tensor", ALL, 1),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_tensor_coalesced", ALL, 1),
    "all_gather_single": ("all_gather_single", ALL, 1),  # these names: torch 2.14
    "all_gather_single_coalesced": ("all_gather_single_coalesced", ALL, 1),
    "reduce_scatter_single": ("reduce_scatter_single", ALL, 1),
    "reduce_scatter_single_coalesced": ("reduce_scatter_single_coalesced", ALL, 1),
    "all_to_all_single": ("all_to_all_single", ALL, 1),
    "gather_single": ("gather_single", TO_ROOT, 1),
    "gather_into_tensor": ("gather_into_tensor", TO_ROOT, 1),
    "alltoall": ("all_to_all", ALL, 1),
    "alltoall_base": ("all_to_all_single", ALL, 1),
    "barrier": ("barrier", ALL, None),
    "broadcast": ("broadcast", FROM_ROOT, 0),
    "scatter": ("scatter", FROM_ROOT, 0),
    "reduce": ("reduce", TO_ROOT, 0),
    "gather": ("gather", TO_ROOT, 1),
    "send": ("send", SEND, 0),
    "recv": ("recv", RECEIVE, 0),
    "recv_anysource": ("recv", RECEIVE_ANY, 0),
}
# What the C++ of DistributedDataParallel calls, and a Python class may override (PyProcessGroup.hpp, torch 1.13 to 2.11).
REDUCER_METHODS = ("allreduce", "broadcast", "allgather", "reduce_scatter", "barrier", "send", "recv")


_OWN = (lambda: None).__code__.co_filename


step_of = None  # of a trace of torch's modules: its step, for programs that do not call probing.step()


def _say(sentence):
    if os.environ.get("PROBING_LOGLEVEL") in _rows._QUIET:
        return
    try:
        os.write(2, ("probing: %s\n" % sentence).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


class Group(object):
    """What does not change in a process group."""
    __slots__ = ("name", "backend", "rank", "ranks", "world_size", "n_calls", "n_messages", "batch")

    def __init__(self, name, backend, rank, ranks, world_size):
        self.name, self.backend, self.rank, self.ranks, self.world_size = name, backend, rank, ranks, world_size
        self.n_calls = itertools.count(1)  # of collectives, as the other ranks count them, too
        self.n_messages = {}  # a count of each sender and receiver
        self.batch = None  # calls between _start_coalescing() and _end_coalescing()

    def next_message(self, src, dst):
        """The number of a message: the same one for both of its ranks."""
        return next(self.n_messages.get((src, dst)) or self.n_messages.setdefault((src, dst), itertools.count(1)))

    def global_rank(self, rank):
        return self.ranks[rank] if self.ranks is not None and 0 <= rank < len(self.ranks) else rank


class Call(object):
    """An operation that has begun. Its row is written once, by the first of those who see its end."""
    __slots__ = ("row", "device", "about", "began", "has_future", "begin_event", "end_event", "is_done", "__weakref__")

    def __init__(self, about, row, device):
        self.about, self.row, self.device = about, row, device
        self.has_future, self.begin_event, self.end_event, self.is_done = False, None, None, False
        self.began = time.perf_counter()


class Comm(object):
    """All of it: made once torch is there."""

    def __init__(self, torch, distributed):
        self.torch, self.distributed = torch, distributed
        self.c10d = sys.modules["torch.distributed.distributed_c10d"]
        self.folder = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.table = _rows.ExternalTable.get_or_create("comm_metrics", COLUMNS, rows=ROWS, text_bytes=TEXTS)
        self.started = _rows.ExternalTable.get_or_create("comm_started", dict((name, COLUMNS[name]) for name in STARTED),
                                                         rows=ROWS, text_bytes=TEXTS)
        self.groups = weakref.WeakKeyDictionary()
        self.waited = {}  # id(work): (weak reference to it, call), where nothing but wait() tells the end
        self.pending = {}  # calls without a row, by number; threads of torch remove some, which an OrderedDict of 3.13t does not survive
        self.on_gpu = collections.deque()  # calls whose end is an event of the GPU
        self.lock = threading.Lock()
        self.proxies = weakref.WeakKeyDictionary()  # reducer: its group of Python's
        self.numbers = itertools.count(1)
        self.callbacks = set()  # weak references to those of futures that threads of torch have yet to call, or to free
        self.undo = []
        self.is_on = False

    # -- on and off --

    def replace(self, owner, name, new):
        self.undo.append((owner, name, owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name)))
        setattr(owner, name, new)

    def start(self):
        if self.is_on:
            return
        self.is_on = True
        group_class, work_class = self.distributed.ProcessGroup, self.c10d.Work
        for name in METHODS:
            if hasattr(group_class, name):
                self.replace(group_class, name, self.wrap(name, getattr(group_class, name)))
        for name in ("_start_coalescing", "_end_coalescing"):
            if hasattr(group_class, name):
                self.replace(group_class, name, getattr(self, "wrap" + name)(getattr(group_class, name)))
        self.replace(work_class, "wait", self.wrap_end(work_class.wait))
        self.replace(work_class, "is_completed", self.wrap_end(work_class.is_completed, is_question=True))
        if hasattr(self.distributed, "Reducer"):
            self.replace(self.distributed, "Reducer", self.wrap_reducer(self.distributed.Reducer, group_class))
        atexit.register(self.drain)

    def stop(self):
        """Methods are as they were; groups that a reducer was given pass calls on as before."""
        self.is_on = False
        while True:
            try:
                owner, name, old = self.undo.pop()
            except IndexError:  # also where another thread stops it, too
                break
            if old is None:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
        try:
            self.collect()
        except Exception:  # the GPU has failed: its last rows are missing
            pass
        self.pending.clear()
        self.waited.clear()
        self.on_gpu.clear()
        if not self.callbacks:
            atexit.unregister(self.drain)

    def fail(self):
        """An exception of ours: say it once, and write no more rows. Called where it is handled."""
        error = sys.exc_info()
        where = error[2]
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        self.stop()
        _say("rows of comm_metrics have ended, the program continues: %s: %s (%s:%d)" % (
            error[0].__name__, error[1], os.path.basename(where.tb_frame.f_code.co_filename), where.tb_lineno))

    def drain(self):
        """At exit, so that futures do not call into an interpreter that has ended. A thread of torch that asks for the GIL
        then ends the process by std::terminate: also after the row is written, when it frees the callback."""
        until = time.monotonic() + DRAIN_S
        self.collect()
        while self.callbacks and time.monotonic() < until:
            time.sleep(0.001)
            self.collect()

    # -- the call --

    def about(self, group):
        found = self.groups.get(group)
        if found is None:
            found = self.groups.setdefault(group, self.make_group(group))
        return found

    def make_group(self, group):
        c10d = self.c10d
        rank, size = group.rank(), group.size()
        try:
            ranks = list(self.distributed.get_process_group_ranks(group))
        except Exception:  # one that torch.distributed does not know, or before 1.13
            ranks = None
        name = getattr(group, "group_name", None) or getattr(c10d, "_pg_names", {}).get(group)
        if name is None and hasattr(c10d, "_world"):
            name = c10d._world.pg_names.get(group)
        try:
            backend = str(self.distributed.get_backend(group))
        except Exception:
            backend = group.name() if hasattr(group, "name") else None
        return Group(None if name is None else str(name), backend, rank, ranks, size)

    def place(self):
        """(file, line, function, whether the caller gets a handle) of the innermost frame outside of torch. The outermost
        function of torch.distributed tells: send() waits for its isend(). None: somebody else calls the group."""
        frame, is_async, inner = sys._getframe(3), None, None
        while frame is not None:
            code = frame.f_code
            path = code.co_filename
            if not path.startswith(self.folder) and path != _OWN:
                return path, frame.f_lineno, code.co_name, is_async
            if path == _OWN and code.co_name == "forwarded":  # the reducer waits for sums when the backward pass ends
                is_async = True if frame.f_locals.get("name") == "allreduce" else None
            elif path.endswith("distributed_c10d.py") and not code.co_name.startswith("_"):
                is_async = code.co_name in ("isend", "irecv", "batch_isend_irecv") or \
                    ("async_op" in code.co_varnames and bool(frame.f_locals.get("async_op")))
            inner = inner or (path, frame.f_lineno, code.co_name)
            frame = frame.f_back
        return (inner or (None, None, None)) + (is_async,)

    def step(self):
        return _rows._step if _rows._step is not None or step_of is None else step_of()

    def device(self, about, values):
        """The GPU of an operation that NCCL does: its end is then the GPU's. None: it is none of NCCL."""
        if about.backend is None or "nccl" not in about.backend:
            return None
        first = self.first_tensor(values)
        if first is not None:
            return first.device if first.is_cuda else None
        return self.torch.device("cuda", self.torch.cuda.current_device()) if about.backend == "nccl" else None

    def first_tensor(self, value):
        if isinstance(value, self.torch.Tensor):
            return value
        found = None
        for one in value if isinstance(value, (list, tuple)) else ():
            found = self.first_tensor(one)
            if found is not None:
                break
        return found

    def tensors_bytes(self, value):
        if isinstance(value, self.torch.Tensor):
            return value.numel() * value.element_size()
        return sum(self.tensors_bytes(one) for one in value) if isinstance(value, (list, tuple)) else 0

    def row_of(self, group, method, arguments, named):
        op, kind, tensors = METHODS[method]
        about = self.about(group)
        own = about.global_rank(about.rank)
        src, dst, seq = own, None, None
        values = arguments + tuple(named.values())
        if kind in (FROM_ROOT, TO_ROOT):
            options = next((one for one in values if hasattr(one, "rootRank")), None)
            root = about.global_rank(options.rootRank) if options is not None else None
            if root is None:
                root = next((about.global_rank(one) for one in values if type(one) is int), None)
            src, dst = (root, own) if kind == FROM_ROOT else (own, root)
        elif kind in (SEND, RECEIVE):
            peer = about.global_rank(next((one for one in values if type(one) is int), -1))
            src, dst = (own, peer) if kind == SEND else (peer, own)
        elif kind == RECEIVE_ANY:
            src, dst = None, own
        if kind in (SEND, RECEIVE):
            seq = about.next_message(src, dst)
        elif kind == RECEIVE_ANY:
            seq = None  # of messages of one sender
        else:
            seq = next(about.n_calls)
        n_bytes = self.tensors_bytes(values[tensors]) if tensors is not None and len(values) > tensors else 0
        path, line, function, is_async = self.place()
        return about, self.device(about, values), is_async is False, [op, src, dst, n_bytes, None, about.name, seq, own, about.world_size, path, line, function, self.step(),
                       int(bool(is_async)), about.backend, next(self.numbers)]

    def wrap(self, method, old):
        def wrapper(group, *arguments, **named):
            if not self.is_on or _rows._rings is None or isinstance(group, self.proxy_class):
                return old(group, *arguments, **named)
            try:
                about, device, is_waited, row = self.row_of(group, method, arguments, named)
                call = self.begin(about, row, device)
            except Exception:
                self.fail()
                return old(group, *arguments, **named)
            try:
                work = old(group, *arguments, **named)
            except BaseException:
                self.refused(call)
                raise
            if self.is_on:
                try:
                    self.follow(about, call, work, is_waited)
                except Exception:
                    self.fail()
            return work

        wrapper.__name__, wrapper.__doc__, wrapper.__wrapped__ = method, old.__doc__, old
        return wrapper

    proxy_class = ()

    def begin(self, about, row, device):
        self.started.append(*(row[:4] + row[5:]))
        call = Call(about, row, device)
        self.pending[row[-1]] = call
        if self.on_gpu:
            self.collect(MAX_ASKED)
        self.pending.pop(row[-1] - MAX_PENDING, None)
        if device is not None and self.can_record():
            call.begin_event = self.event(device)
        return call

    # -- the end --

    def end(self, call, latency_ms=None, is_known=True):
        """Write its row, unless somebody has."""
        now = time.perf_counter()
        with self.lock:
            if call.is_done:
                return
            call.is_done = True
        if is_known:
            call.row[4] = (now - call.began) * 1e3 if latency_ms is None else latency_ms
        self.pending.pop(call.row[-1], None)
        self.table.append(*call.row)

    def follow(self, about, call, work, is_waited=False):
        """Find a way to see its end. @is_waited: torch.distributed calls wait() before it returns, which tells; a callback
        of the future would cost a change of threads."""
        if about.batch is not None:
            about.batch.append((call, work))
            return
        future = None
        try:
            future = None if work is None else work.get_future()
        except RuntimeError:  # gloo's messages have none
            pass
        if call.device is not None:
            self.follow_gpu(call, future)
        elif work is None:
            self.end(call)  # it has ended with the call
        else:
            self.watch(work, call)
            if future is not None and not is_waited:
                call.has_future = True
                callback = lambda _: self.end(call)
                self.callbacks.add(weakref.ref(callback, self.callbacks.discard))
                future.add_done_callback(callback)

    def refused(self, call):
        """The call has raised: its operation does not hang."""
        try:
            self.end(call, is_known=False)
        except Exception:
            self.fail()

    def watch(self, work, call):
        """Its wait() and is_completed() tell."""
        key = id(work)

        def forget(_):
            self.waited.pop(key, None)
            if not call.has_future:  # nobody can see its end any more
                self.pending.pop(call.row[-1], None)
        self.waited[key] = weakref.ref(work, forget), call

    def wrap_end(self, old, is_question=False):
        def wrapper(work, *arguments, **named):
            result = old(work, *arguments, **named)
            if self.waited and (result or not is_question):
                found = self.waited.pop(id(work), None)
                if found is not None and found[0]() is work:
                    self.seen(found[1], work)
            return result

        wrapper.__name__, wrapper.__doc__, wrapper.__wrapped__ = old.__name__, old.__doc__, old
        return wrapper

    def seen(self, call, work):
        try:
            if call.row[1] is None and call.row[0] == "recv":  # of any source: now it is known
                source = work._source_rank() if hasattr(work, "_source_rank") else work.source_rank()
                call.row[1] = call.about.global_rank(source)
                call.row[6] = call.about.next_message(call.row[1], call.row[2])
            self.end(call)
        except Exception:
            self.fail()

    # -- GPUs --

    def can_record(self):
        cuda = self.torch.cuda
        return cuda.is_initialized() and not (hasattr(cuda, "is_current_stream_capturing") and cuda.is_current_stream_capturing())

    def event(self, device):
        stream = self.torch.cuda.current_stream(device)
        event = _inside.events(self.torch).take(stream.device.index)
        event.record(stream)
        return event

    def follow_gpu(self, call, future):
        """An event behind the operation: a future of NCCL is done at once, and its callbacks run on a stream that waits."""
        def record(_):
            if call.end_event is None:
                call.end_event = self.event(call.device)
        if call.begin_event is None:  # a graph is being captured: its operation runs later, perhaps many times
            self.end(call, is_known=False)
            return
        if future is None:
            record(None)  # of the current stream, which has waited where the call is synchronous
        else:
            future.add_done_callback(record)
        self.on_gpu.append(call)
        while len(self.on_gpu) > MAX_PENDING:
            self.on_gpu.popleft()

    def collect(self, most=None):
        """Rows of what the GPU has done. Not while a stream captures a graph: questions are not allowed then.

        @most: ask so many events, in turn with the others: operations of one stream end in order, those of several do not
        """
        if not self.on_gpu or not self.can_record():
            return
        n = len(self.on_gpu)
        for _ in range(n if most is None else min(most, n)):
            try:
                call = self.on_gpu.popleft()
            except IndexError:  # another thread was here
                return
            if call.end_event is None or not call.end_event.query():
                self.on_gpu.append(call)
            elif not call.is_done:
                try:
                    self.end(call, call.begin_event.elapsed_time(call.end_event))
                except (RuntimeError, ValueError):  # of two devices
                    self.end(call, is_known=False)
                _inside.events(self.torch).give(call.begin_event, call.end_event)

    # -- several operations at once --

    def wrap_start_coalescing(self, old):
        def wrapper(group, *arguments, **named):
            result = old(group, *arguments, **named)
            if self.is_on:
                try:
                    self.about(group).batch = []
                except Exception:
                    self.fail()
            return result
        wrapper.__name__, wrapper.__wrapped__ = "_start_coalescing", old
        return wrapper

    def wrap_end_coalescing(self, old):
        def wrapper(group, *arguments, **named):
            work = old(group, *arguments, **named)
            if self.is_on:
                try:
                    about = self.about(group)
                    batch, about.batch = about.batch, None
                    for call, own in batch or ():
                        self.follow(about, call, own if work is None else work)
                except Exception:
                    self.fail()
            return work
        wrapper.__name__, wrapper.__wrapped__ = "_end_coalescing", old
        return wrapper

    # -- DistributedDataParallel --

    def wrap_reducer(self, old, group_class):
        comm = self

        class Proxy(group_class):
            """The group that the C++ of a reducer calls. Its name is none that C++ casts to a class of its own."""

            def __init__(self, real):
                group_class.__init__(self, real.rank(), real.size())
                self.real = real

            def getBackendName(self):
                return "probing"

        def forward(name):
            def forwarded(self, *arguments):
                return getattr(self.real, name)(*arguments)
            return forwarded
        for name in REDUCER_METHODS:
            setattr(Proxy, name, forward(name))
        self.proxy_class = Proxy

        def reducer(*arguments, **named):
            proxy = None
            try:
                if comm.is_on and _rows._rings is not None:
                    arguments = list(arguments)
                    for at, one in itertools.chain(enumerate(arguments), list(named.items())):
                        if isinstance(one, group_class) and proxy is None:
                            proxy = Proxy(one)
                            (named if isinstance(at, str) else arguments)[at] = proxy
            except Exception:
                comm.fail()
            made = old(*arguments, **named)
            if proxy is not None:
                comm.proxies[made] = proxy  # C++ holds only its own half
            return made
        reducer.__name__, reducer.__doc__, reducer.__wrapped__ = "Reducer", old.__doc__, old
        return reducer


_comm = None


def enable():
    """Write rows of comm_metrics from now on. False: torch is not imported, or has no torch.distributed."""
    global _comm
    torch, distributed = sys.modules.get("torch"), sys.modules.get("torch.distributed")
    if torch is None or distributed is None or not distributed.is_available():
        return False
    if _comm is None:
        _comm = Comm(torch, distributed)
    try:
        _comm.start()
    except Exception:
        _comm.fail()
        return False
    return True


def disable():
    """Methods of torch are as they were. Rows remain."""
    if _comm is not None and _comm.is_on:
        _comm.stop()
