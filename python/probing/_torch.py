# SPDX-License-Identifier: MIT
"""Times of torch's modules, optimizers and data loaders, as rows of the ring torch_trace: docs/torch.md.

Global hooks of torch.nn.Module see each forward pass. They are the agent's (src/agent/torch*.c); what is rare is here. The backward pass of a module begins when the gradient of its output
is there (a hook before that node of the graph), and ends when the last of its nodes has run that leads to its input (a hook
after that). Steps end with an optimizer's step. In a step that is not sampled the hooks are not registered.

Nothing here raises into the training: the first exception ends tracing, with one line on stderr. Hooks belong to torch's
global lists and to nodes of a graph, never to a module or a tensor: copies and pickles do not contain them.
"""
import os
import sys
import threading
import time
import weakref
from collections import OrderedDict

from probing import _comm, _inside, _rows
from probing._inside import Refused

ROWS = 20000
MAX_TREES = 1000  # searches for names of modules that came later
MAX_STREAMS = 1000
MAX_PENDING = 100000  # rows whose time the GPU does not know yet
COLUMNS = {"step": int, "seq": int, "module": str, "stage": str, "allocated": float, "max_allocated": float, "cached": float,
           "max_cached": float, "time_offset": float, "duration": float, "operation_name": str, "duration_ms": float,
           "local_step": int, "global_step": int, "rank": int, "tid": int, "began": float, "host_ms": float,
           "allocated_before": float}
MB = 1e6
_ALLOWED = "on, off, RATE[:LAYER_RATE], ordered:RATE or random:RATE, then ,backward=on|off ,sync=on|off ,memory=on|off|RATE " \
    ",comm=on|off ,exprs=VARIABLE@FUNCTION"


# ---- Settings ----

class Settings(object):
    """What is traced.

    rate        share of the steps, 0 to 1
    ordered     every 1/rate-th step; else those whose hash is below rate: the same ones in each process
    layer_rate  share of the modules in a sampled step
    backward    backward passes, too
    sync        wait for the GPU before and after each module
    memory      share of the sampled steps whose passes have the allocator's numbers: they take longer to read than events
    exprs       [(variable, function)] that are read at the end of each sampled step
    comm        collectives and messages of torch.distributed (_comm.py), in all steps; by default unless the rate is 0
    """

    def __init__(self, spec="on"):
        self.spec = spec = spec.strip()
        self.rate, self.layer_rate, self.ordered, self.backward, self.sync, self.exprs = 1.0, 1.0, True, True, False, []
        self.comm, self.memory = None, 0.1
        first, rest = True, []
        for word in spec.split(","):
            name, is_named, value = word.strip().partition("=")
            if not is_named and not first and "@" in name and self.exprs:  # exprs=a@f,b@f
                self._expression(name)
            elif not is_named and first:
                self._steps(name)
            elif name in ("backward", "sync", "comm"):
                setattr(self, name, self._switch(name, value))
            elif name == "memory" and value not in ("on", "off"):
                self.memory = self._share(value)
            elif name == "memory":
                self.memory = float(value == "on")
            elif name == "exprs":
                for one in value.replace(";", "+").split("+"):
                    self._expression(one)
            else:
                rest.append(word)
            first = False
        if rest:
            raise Refused("'%s' is not understood in probing.torch.profiling=%s: write %s" % (rest[0], spec, _ALLOWED))

    def takes_comm(self):
        return self.rate > 0 if self.comm is None else self.comm

    def is_off(self):
        return self.rate == 0 and not self.takes_comm()

    def _share(self, text):
        try:
            share = float(text)
        except ValueError:
            share = -1
        if not 0 <= share <= 1:
            raise Refused("'%s' in probing.torch.profiling=%s is no share from 0 to 1: write %s" % (text, self.spec, _ALLOWED))
        return share

    def _steps(self, text):
        if text in ("on", "true", "yes", ""):
            return
        if text in ("off", "false", "no"):
            self.rate = 0.0
            return
        kind, has_kind, rest = text.partition(":")
        if has_kind and kind in ("ordered", "random"):
            self.ordered = kind == "ordered"
            kind, has_kind, rest = rest.partition(":")
        self.rate = self._share(kind)
        if has_kind:
            self.layer_rate = self._share(rest)

    def _switch(self, name, value):
        if value not in ("on", "off", "1", "0", "true", "false"):
            raise Refused("%s cannot be '%s' in probing.torch.profiling=%s: it is on or off" % (name, value, self.spec))
        return value in ("on", "1", "true")

    def _expression(self, text):
        name, _, function = text.strip().partition("@")
        if not name.isidentifier() or not all(part.isidentifier() for part in function.split(".")):
            raise Refused("'%s' in probing.torch.profiling=%s is no variable: write VARIABLE@FUNCTION" % (text, self.spec))
        self.exprs.append((name, function))

    def takes(self, number):
        """Whether a step is sampled: by its number alone, so that all processes of a training choose the same ones."""
        if self.rate >= 1 or self.rate <= 0:
            return self.rate > 0
        if self.ordered:
            return _is_next(number, self.rate)
        return _hash(number) < self.rate

    def takes_memory(self, number):
        """Whether the sampled step of that number has the allocator's numbers: the first one has."""
        return self.memory > 0 and _is_next(number, self.memory)


def _is_next(number, rate):
    """Whether a number is one of those that are taken at equal distances, beginning with 0."""
    return int((number + 1) * rate) > int(number * rate) or number == 0


def _hash(number):
    """0 to 1, by the number alone: the finalizer of splitmix64 (Steele, Lea, Flood 2014)."""
    number = (number + 1) * 0x9e3779b97f4a7c15 & 0xffffffffffffffff
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9 & 0xffffffffffffffff
    number = (number ^ number >> 27) * 0x94d049bb133111eb & 0xffffffffffffffff
    return (number ^ number >> 31) / 2.0 ** 64


# ---- Modules and their calls ----

class Known(object):
    """A module, by its name in its model."""
    __slots__ = ("ref", "name", "kind", "is_root", "number", "prefix")

    def __init__(self, ref, name, kind, is_root, number):
        self.ref, self.name, self.kind, self.is_root, self.number = ref, name, kind, is_root, number
        self.prefix = ""  # of a root: what its modules' names begin with, where another model has the same names


class Local(threading.local):
    """Of a thread: its number, and the optimizers that step. The agent puts the calls that it is in here, as `state`."""

    def __init__(self):
        self.tid = _rows.get_native_id()
        self.optimizers = []


def builtins():
    """Of src/agent/torch.h."""
    if _rows._rings is None or len(_rows._rings) < 3 or _rows._rings[2] is None:
        raise Refused("this agent, or this Python, lacks what it needs to trace torch")
    return _rows._rings[2]


_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "FullyShardedDataParallel": "module",
             "OptimizedModule": "_orig_mod"}


def _named(module, prefix, name):
    """(module, its name, its class) of a model; wrappers leave the names of what they wrap as they are."""
    inner = getattr(module, _WRAPPERS.get(type(module).__name__, ""), None)
    yield module, name or prefix, type(module).__name__
    if inner is not None:
        for one in _named(inner, prefix, type(inner).__name__ if not prefix else prefix):
            yield one
        return
    for child_name, child in list(module._modules.items()):  # another thread may add one
        if child is not None:
            for one in _named(child, prefix + "." + child_name if prefix else child_name, None):
                yield one


# ---- Tracing ----

class Trace(object):
    """All of it: made once torch is there. Its settings may change at any time."""

    def __init__(self, settings):
        import torch
        import torch.nn.modules.module
        import torch.optim.optimizer
        import torch.utils.data.dataloader
        self.torch, self.settings = torch, settings
        self.modules = sys.modules["torch.nn.modules.module"]
        self.table = _rows.ExternalTable.get_or_create("torch_trace", COLUMNS, rows=ROWS,
                                                       text_bytes={"module": 96, "stage": 8, "operation_name": 40})
        self.variables = None
        self.local, self.lock, self.switching = Local(), threading.Lock(), threading.RLock()
        self.known, self.n_trees = {}, 0
        self.handles, self.registered, self.mode = [], (None, None), None
        self.is_wanted = self.has_passed_one = False
        self.step = self.local_step = self.n_inferences = self.n_sampled = 0
        self.global_step = None
        self.has_optimizer, self.follows_program = False, False
        self.last_optimizer, self.seen_optimizers, self.n_since = None, {}, 0
        self.rank = self.lost = 0
        self.is_on = False
        self.undo = []
        self.cuda = self.append = None
        self.step_began = time.perf_counter()
        self.call_code = torch.nn.Module._call_impl.__code__
        self.is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or \
            getattr(torch._utils, "is_compiling", None)  # torch 2.0
        self.make_hooks()
        os.register_at_fork(after_in_child=self.know_thread)
        if hasattr(torch, "compile"):  # it would tell the program that hooks are called for a compiled model itself
            import warnings
            warnings.filterwarnings("ignore", message=r"Using `torch\.compile\(module\)` when there are global hooks")

    # -- what ends it --

    def fail(self, error=None, where=None):
        """An exception of ours: say it once, and trace no more. Called where it is handled, or by the agent, with it."""
        if error is None:
            _, error, where = sys.exc_info()
        if not self.is_on:
            return
        self.stop()
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = "src/agent/torch*.c" if where is None else "%s:%d" % (
            os.path.basename(where.tb_frame.f_code.co_filename), where.tb_lineno)
        _say("tracing of torch has stopped, the program continues: %s: %s (%s)" % (type(error).__name__, error, place))

    def know_thread(self):
        """In a forked child, whose only thread has another number."""
        self.local.tid = _rows.get_native_id()

    # -- hooks of modules --

    def make_hooks(self):
        """The hooks of modules: the agent's (src/agent/torch*.c), which set those of the graph's nodes."""
        torch, known = self.torch, self.known
        is_grad_enabled, is_compiling = torch.is_grad_enabled, self.is_compiling
        self.agent = agent = builtins()
        with torch.inference_mode(False), torch.enable_grad():
            node = torch.zeros(1, requires_grad=True, device="cpu").view(1).grad_fn
        has_prehooks = hasattr(node, "register_prehook")  # since torch 2.0
        agent["begin"](self, self.local, is_grad_enabled, getattr(torch._C, "_get_tracing_state", lambda: None), torch.Tensor,
                       type(node.next_functions[0][0]), None if has_prehooks else lambda: torch.empty(0, device="cpu"), OrderedDict)
        self.new_seq = agent["sequence"]
        enter, leave = agent["enter"], agent["leave"]
        if is_compiling is not None:  # code that is compiled must not contain them
            def enter(module, inputs, enter=enter):
                if not is_compiling():
                    enter(module, inputs)

            def leave(module, inputs, output, leave=leave):
                if not is_compiling():
                    leave(module, inputs, output)

        def glance(module, inputs):
            """In a step that is not sampled: the first module tells whether this is the training or an inference."""
            if is_compiling is not None and is_compiling():
                return
            try:
                if is_grad_enabled():
                    self.switch("none")
                    return
                one = known.get(id(module))
                if one is None or one.ref() is not module:
                    one = self.identify(module)
                if one is not None and one.is_root and self.takes_this_inference():
                    enter(module, inputs)
            except Exception:
                self.fail()

        def enter_by_mode(module, inputs):
            if self.mode == "full":
                enter(module, inputs)
            elif self.mode == "light":
                glance(module, inputs)

        def leave_by_mode(module, inputs, output):
            if self.mode == "full":
                leave(module, inputs, output)

        self.hooks = {"full": (enter, leave), "light": (glance, None), "none": (None, None)}
        if not _inside.has_gil():  # torch iterates over its hooks in other threads: they stay the same ones
            self.hooks = dict.fromkeys(self.hooks, (enter_by_mode, leave_by_mode))

    def frames_of_calls(self):
        """The modules whose forward pass this thread is in, the innermost first."""
        frame, code = sys._getframe(2), self.call_code
        while frame is not None:
            if frame.f_code is code:
                yield frame
            frame = frame.f_back

    def is_outermost(self):
        """Whether the innermost call is the only one: those on the stack were left by exceptions."""
        calls = self.frames_of_calls()
        return next(calls, None) is not None and next(calls, None) is None

    def identify(self, module):
        """Names for all modules of the model that this one belongs to. None: it is not traced."""
        worker = sys.modules.get("torch.utils.data._utils.worker")
        if worker is not None and getattr(worker, "_worker_info", None) is not None:
            self.stop()  # a process that loads data, forked from the training
            return None
        root = module
        for frame in self.frames_of_calls():
            root = frame.f_locals.get("self", root)
        with self.lock:
            if self.n_trees < MAX_TREES:
                self.n_trees += 1
                self.name_tree(root)
            one = self.known.get(id(module))
            if one is None or one.ref() is not module:
                one = self.name_one(module, type(module).__name__, type(module).__name__, root is module)
        return one

    def name_tree(self, root):
        tree = list(_named(root, "", type(root).__name__))
        known = self.known.get(id(root))
        if known is None or known.ref() is not root:
            is_copy = getattr(root, "_is_replica", False)  # of DataParallel: its names are the model's
            names = () if is_copy else {one.name for one in list(self.known.values()) if one.ref() is not None}
            name, n = type(root).__name__, 2
            while name in names:
                name, n = "%s#%d" % (type(root).__name__, n), n + 1
            known = self.name_one(root, name, type(root).__name__, True)
            known.prefix = name + "." if any(name in names for _, name, _ in tree[1:]) else ""
        for module, name, kind in tree[1:]:
            one = self.known.get(id(module))
            if one is None or one.ref() is not module:
                self.name_one(module, known.prefix + name, kind, False)

    def name_one(self, module, name, kind, is_root):
        key, known = id(module), self.known
        name, kind = (text.encode("utf-8", "backslashreplace").decode() for text in (name, kind))  # a lone surrogate is no text of a row

        def forget(ref):
            one = known.get(key)
            if one is not None and one.ref is ref:
                del known[key]
                agent_forgets(key)
        agent_forgets = self.agent["forget"]
        one = known[key] = Known(weakref.ref(module, forget), name, kind, is_root, len(known))
        self.agent["know"](module, one.number, name, kind, is_root)
        return one

    # -- which steps --

    def switch(self, mode, wait_s=0):
        """full: all hooks; light: the one that finds inference; none. While another thread does it, the next step will."""
        if (mode == self.mode and self.is_on) or not self.switching.acquire(timeout=wait_s):
            return
        try:
            self.exchange_hooks(mode)
        finally:
            self.switching.release()

    def exchange_hooks(self, mode):
        hooks, before = self.hooks[mode] if self.is_on else (None, None), self.handles
        if self.is_on and hooks == self.registered:
            self.mode = mode
            return
        self.handles, self.registered, self.mode = [], hooks, mode
        registers = self.modules.register_module_forward_pre_hook, self.modules.register_module_forward_hook
        handles = [register(hook) for register, hook in zip(registers, hooks) if hook is not None]
        if not self.is_on:  # it was stopped meanwhile, in another thread
            before, handles, self.registered, self.mode = before + handles, [], (None, None), "none"
        self.handles = handles
        for handle in before:
            handle.remove()

    def begin_outermost(self, grad):
        """Whether the forward pass that begins is traced."""
        if grad and not self.is_wanted:
            self.switch("none")
            return False
        if self.cuda is None and self.torch.cuda.is_initialized():
            self.cuda = Cuda(self)
            self.cuda.reads_memory = self.settings.takes_memory(max(0, self.n_sampled - 1))
            self.agent["cuda"](self.cuda)
        return self.cuda is None or self.cuda.begin_outermost()

    def takes_inference(self):
        self.n_inferences += 1
        return self.settings.takes(self.n_inferences)

    def counts_inferences(self):
        """In a program that has not trained yet each inference is a step. Later ones are sampled by their own number."""
        return not self.has_optimizer and not self.follows_program

    def takes_this_inference(self):
        if not self.counts_inferences():
            if self.takes_inference():
                self.switch("full")
        elif self.has_passed_one:
            self.advance()
        self.has_passed_one = self.mode != "full"
        return not self.has_passed_one

    def end_inference(self):
        if self.counts_inferences():
            self.has_passed_one = False
            self.advance()
        elif not self.takes_inference():
            self.switch("light")

    def advance(self, number=None):
        """A step has ended."""
        if self.cuda is not None:
            self.cuda.collect()
        self.local_step += 1
        self.global_step = number
        self.begin_step()

    def begin_step(self):
        self.step = self.global_step if self.global_step is not None else self.local_step
        self.rank = self.get_rank()
        settings = self.settings
        self.is_wanted = settings.takes(self.step)
        self.step_began = time.perf_counter()
        if self.is_wanted:
            if self.cuda is not None:
                self.cuda.reads_memory = settings.takes_memory(self.n_sampled)
            self.n_sampled += 1
        if self.is_wanted or self.append is None:
            self.append = self.table._append or self.table._open(())
        self.agent["step"](self.append, self.step, self.local_step, self.global_step, self.rank, self.step_began,
                           settings.layer_rate, settings.backward)
        self.switch("full" if self.is_wanted else "light")

    def get_rank(self):
        distributed = sys.modules.get("torch.distributed")
        try:
            if distributed is not None and distributed.is_available() and distributed.is_initialized():
                return distributed.get_rank()
            return int(os.environ.get("RANK", "0"))
        except Exception:  # a process group that ends now, or somebody's own RANK
            return 0

    # -- optimizers --

    def begin_optimizer(self, optimizer, *ignored):
        try:
            if not self.is_on:
                return
            running = self.local.optimizers
            if running:
                self.drop_left(running)
            event = self.cuda.begin() if self.cuda is not None and self.is_wanted else None
            running.append((optimizer, time.perf_counter(), event))
        except Exception:
            self.fail()

    @staticmethod
    def drop_left(running):
        """Take off what an exception has left: steps of which no caller is on the stack."""
        caller = frame = sys._getframe(2)
        n = -1
        while frame is not None:
            n += frame.f_code is caller.f_code
            frame = frame.f_back
        del running[n:]

    def end_optimizer(self, optimizer, *ignored):
        now = time.perf_counter()
        try:
            running = self.local.optimizers
            if not self.is_on or not running:
                return
            while running and running[-1][0] is not optimizer:
                running.pop()
            if not running:
                return
            _, began, event = running.pop()
            if running:  # its class' step() has called that of its base, or it belongs to another optimizer
                return
            if self.is_wanted:
                self.add_row("step", type(optimizer).__name__, type(optimizer).__name__, began, now, event)
                if self.settings.exprs:
                    self.read_variables()
            self.has_optimizer = True
            self.end_step_of(optimizer)
        except Exception:
            self.fail()

    def end_step_of(self, optimizer):
        """Of several optimizers that take turns, the last one of each turn ends a step."""
        if self.follows_program:
            return
        seen, key = self.seen_optimizers, id(optimizer)
        self.n_since += 1
        known = seen.get(key)
        if known is None or known() is not optimizer:
            is_first = not seen
            if len(seen) > 64:
                seen.clear()
            seen[key] = weakref.ref(optimizer)
            self.last_optimizer = key
            if not is_first:
                return
        if key == self.last_optimizer or self.n_since > 64:
            self.last_optimizer, self.n_since = key, 0
            self.advance()

    def add_row(self, stage, name, kind, began, now, event=None):
        if event is not None:
            self.cuda.add(stage, self.new_seq(), name, kind, began, now, event)
            return
        self.append(self.step, self.new_seq(), name, stage, None, None, None, None, began - self.step_began, now - began,
                    kind, (now - began) * 1e3, self.local_step, self.global_step, self.rank, self.local.tid, began,
                    (now - began) * 1e3, None)

    def current_step(self):
        return self.step

    def take_step(self, number):
        """probing.step(): the program counts its steps itself."""
        try:
            if self.is_on:
                self.follows_program = True
                self.advance(number)
        except Exception:
            self.fail()

    # -- variables --

    def read_variables(self):
        frame = sys._getframe(2)
        left = list(self.settings.exprs)
        while frame is not None and left:
            code = frame.f_code
            for one in [one for one in left if code.co_name == one[1].rsplit(".", 1)[-1]]:
                name, function = one
                if name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
                    left.remove(one)
                    self.put_variable(name, function, _inside.local_of(frame, name))
            frame = frame.f_back

    def put_variable(self, name, function, value):
        if self.variables is None:
            self.variables = _rows.ExternalTable.get_or_create(
                "probing_variables", {"func": str, "name": str, "number": object, "text": str, "step": int, "tid": int},
                rows=1 << 15, text_bytes={"name": 48, "text": 96})
        if isinstance(value, self.torch.Tensor):
            if value.numel() != 1:
                return
            if value.is_cuda:
                self.cuda.read_later(self.variables, self.step, function, name, value)
                return
            value = value.item()
        if isinstance(value, (int, float)):
            self.variables.append(function, name, value, None, self.step, _rows.get_native_id())

    # -- begin and end --

    def start(self):
        if self.is_on:
            return
        self.is_on = True
        try:
            self.agent["start"]()
            self.hook_registration()
            self.hook_optimizers()
            self.hook_loaders()
            self.begin_step()
        except BaseException:
            self.stop()
            raise

    def stop(self):
        self.is_on = False
        self.agent["end"]()
        self.switch("none", 1)
        undo, self.undo = self.undo, []
        for one in reversed(undo):
            one()
        try:
            if self.cuda is not None:
                self.cuda.collect()
        except Exception:  # the GPU has failed: its last rows are missing
            self.cuda = None

    def hook_registration(self):
        """torch calls this function for each hook of a node: the agent's registers ours quickly, and calls torch's for all others."""
        owner = self.torch.autograd.Function
        register = getattr(owner, "_register_hook", None)
        if register is None or "_register_hook" in vars(owner):
            return
        owner._register_hook = ours = self.agent["registrar"](register)

        def restore():
            if vars(owner).get("_register_hook") is ours:
                del owner._register_hook
        self.undo.append(restore)

    def hook_optimizers(self):
        module = sys.modules["torch.optim.optimizer"]
        if hasattr(module, "register_optimizer_step_post_hook"):
            self.undo += [module.register_optimizer_step_pre_hook(self.begin_optimizer).remove,
                          module.register_optimizer_step_post_hook(self.end_optimizer).remove]
            return
        self.hook_old_optimizers(module.Optimizer)

    def hook_old_optimizers(self, base):
        """torch before 2.0: step() of each class, of those that come later, and of objects whose scheduler has replaced it."""
        classes = [base]
        for one in classes:  # the list grows
            classes += one.__subclasses__()
        for one in classes[1:]:
            self.wrap_step(one)
        hook_for_profile = base._hook_for_profile

        def with_trace(optimizer):
            hook_for_profile(optimizer)
            if self.is_on:
                self.wrap_step(type(optimizer))
        base._hook_for_profile = with_trace

        def restore():
            if base.__dict__.get("_hook_for_profile") is with_trace:
                base._hook_for_profile = hook_for_profile
        self.undo.append(restore)
        import gc
        # Not all objects: who refers to a tensor while torch ends it, in another thread, has torch warn
        for one in gc.get_referrers(*classes) if sys.version_info >= (3, 9) else gc.get_objects():
            if issubclass(type(one), base) and "step" in one.__dict__:  # isinstance() runs code of proxies
                self.wrap_step(one)

    def wrap_step(self, owner):
        """@owner: a class, or an optimizer that has a step() of its own."""
        import functools
        step = owner.__dict__.get("step")
        if step is None or getattr(step, "_of_probing", None) is self:
            return
        begin, end, reference = self.begin_optimizer, self.end_optimizer, weakref.ref(owner)
        of_class = isinstance(owner, type)

        @functools.wraps(step)
        def traced(*arguments, **named):
            optimizer = arguments[0] if of_class else reference()
            begin(optimizer)
            result = step(*arguments, **named)
            end(optimizer)
            return result
        traced._of_probing = self
        owner.step = traced

        def restore():
            one = reference()
            if one is not None and one.__dict__.get("step") is traced:
                one.step = step
        self.undo.append(restore)

    def hook_loaders(self):
        base = sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter
        following = base.__next__

        def traced(iterator):
            if not self.is_wanted or not self.is_on:
                return following(iterator)
            began = time.perf_counter()
            value = following(iterator)  # the end of the data is no batch
            try:
                self.add_row("data", "DataLoader", type(iterator._dataset).__name__, began, time.perf_counter())
            except Exception:
                self.fail()
            return value
        base.__next__ = traced

        def restore():
            if base.__dict__.get("__next__") is traced:
                base.__next__ = following
        self.undo.append(restore)


class Cuda(object):
    """Times on the GPU, by events, which are read when they are done; nothing waits for them."""

    def __init__(self, trace):
        self.trace, self.cuda = trace, trace.torch.cuda
        self.events, self.pending, self.pid = _inside.events(trace.torch), [], os.getpid()
        self.statistics = getattr(trace.torch._C, "_cuda_memoryStats", None)
        self.is_capturing = getattr(trace.torch.cuda, "is_current_stream_capturing", lambda: False)
        self.reads_memory, self.collecting = True, threading.Lock()
        self.key_of_stream = getattr(trace.torch._C, "_cuda_getCurrentStream", None)
        self.streams = {}
        import atexit
        atexit.register(self.at_exit)
        os.register_at_fork(after_in_child=self.forget)

    def at_exit(self):
        try:
            self.collect()
        except Exception:  # the GPU has failed, and the program has said so
            pass

    def forget(self):
        """In a forked child, which cannot use the GPU, nor free what it may still write to."""
        self.events.kept.append(self.pending)
        self.pending, self.trace.cuda = [], None
        self.trace.agent["cuda"](None)

    def begin_outermost(self):
        return not self.is_capturing()  # an event of a captured graph has no time

    def record(self):
        """None: a graph is being captured, which must not contain our events, nor wait."""
        if self.is_capturing():
            return None
        device = self.cuda.current_device()
        event = self.events.take(device)
        if self.trace.settings.sync:
            self.cuda.synchronize()
        if self.key_of_stream is None:
            event.record()
        else:
            event.record(self.current_stream(device))
        return event

    def begin(self):
        """The event at the beginning of a pass. It keeps the memory that is allocated then; as record(), it may be None."""
        allocated = self.memory()[0] if self.reads_memory and not self.is_capturing() else None  # takes longer than the event
        event = self.record()
        if event is not None:
            event.probing_allocated = allocated
        return event

    def current_stream(self, device):
        """torch makes an object at each question, which takes longer than to record the event."""
        key = self.key_of_stream(device)
        stream = self.streams.get(key)
        if stream is None:
            if len(self.streams) >= MAX_STREAMS:
                self.streams.clear()
            stream = self.streams[key] = self.cuda.current_stream(device)
        return stream

    def memory(self):
        """MB: allocated and its peak, reserved and its peak."""
        if self.statistics is None:
            return None, None, None, None
        found = self.statistics(self.cuda.current_device())
        allocated, cached = found["allocated_bytes"]["all"], found["reserved_bytes"]["all"]
        return allocated["current"] / MB, allocated["peak"] / MB, cached["current"] / MB, cached["peak"] / MB

    def end(self, pass_, output):
        """False: the module has not run on the GPU. @pass_: (event, seq, name, kind, began, now)"""
        kind, tensor = type(output), self.trace.torch.Tensor  # isinstance() runs code of proxies
        if issubclass(kind, dict):
            output = tuple(output.values())
        parts = output if issubclass(kind, (dict, tuple, list)) else (output,)
        if not any(issubclass(type(one), tensor) and one.is_cuda for one in parts):
            self.events.give(pass_[0])
            return False
        event, seq, name, kind, began, now = pass_
        self.add("forward", seq, name, kind, began, now, event)
        return True

    def end_backward(self, pass_):
        event, seq, name, kind, began, now = pass_
        self.add("backward", seq, name, kind, began, now, event)

    def add(self, stage, seq, name, kind, began, now, event):
        trace, ended = self.trace, self.record()
        if ended is None:
            self.events.give(event)
            return
        allocated, max_allocated, cached, max_cached = self.memory() if self.reads_memory else (None, None, None, None)
        self.pending.append((event, ended, now - began,
                             [trace.step, seq, name, stage, allocated, max_allocated, cached, max_cached,
                              began - trace.step_began, None, kind, None, trace.local_step, trace.global_step, trace.rank,
                              trace.local.tid, began, (now - began) * 1e3, event.probing_allocated]))

    def read_later(self, table, step, function, name, value):
        """A variable on the GPU: it is copied when the GPU comes to it."""
        if self.is_capturing():
            return
        torch = self.trace.torch
        copy = torch.empty((), dtype=value.dtype, pin_memory=True)
        with torch.no_grad():
            copy.copy_(value.detach().reshape(()), non_blocking=True)
        self.pending.append((None, self.record(), copy, (table, step, function, name, _rows.get_native_id())))

    def collect(self):
        """Rows of what the GPU has done."""
        if not self.pending or os.getpid() != self.pid or self.is_capturing():  # a question ends the capture of a graph
            return
        if not self.collecting.acquire(False):  # another thread does it
            return
        try:
            self.collect_first()
        finally:
            self.collecting.release()

    def collect_first(self):
        """Of the oldest ones, up to the first that is not done."""
        pending, trace = self.pending, self.trace
        n = 0
        for begin, end, value, row in pending:
            if not end.query():
                break
            n += 1
            if begin is None:
                table, step, function, name, tid = row
                table.append(function, name, value.item(), None, step, tid)
            else:
                try:
                    row[11] = begin.elapsed_time(end)
                    row[9] = row[11] / 1e3
                except (RuntimeError, ValueError):  # of two devices
                    trace.lost += 1
                trace.append(*row)
            self.events.give(begin, end)
        del pending[:n]
        if len(pending) > MAX_PENDING:
            trace.lost += len(pending) // 2
            for begin, end, _, _ in pending[:len(pending) // 2]:
                self.events.give(begin, end)
            del pending[:len(pending) // 2]


# ---- On and off ----

_trace = None
_wanted = None  # settings, until torch is imported


def _say(sentence):
    if os.environ.get("PROBING_LOGLEVEL") == "off":
        return
    try:
        os.write(2, ("probing: %s\n" % sentence).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


class _Finder(object):
    """First of sys.meta_path until torch is imported: then tracing begins. Programs also ask for its spec and do not import it."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torch":
            return None
        for other in list(sys.meta_path):
            spec = other.find_spec(name, path, target) if other is not cls and hasattr(other, "find_spec") else None
            if spec is not None:
                cls.follow(spec.loader)
                return spec
        return None

    @classmethod
    def follow(cls, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None or not hasattr(loader, "__dict__") or isinstance(loader, type):
            return

        def exec_module(module):
            execute(module)
            if module.__name__ != "torch":  # of a loader of several modules
                return
            loader.__dict__.pop("exec_module", None)
            try:
                if cls in sys.meta_path:
                    sys.meta_path.remove(cls)
                _begin()
            except Exception as error:
                _say("torch is not traced: %s: %s" % (type(error).__name__, error))
        loader.exec_module = exec_module


def _begin():
    global _trace, _wanted
    settings, _wanted = _wanted, None
    if settings is None:
        return
    if settings.takes_comm():
        _comm.enable()
    else:
        _comm.disable()
    if settings.rate == 0:
        _stop_trace()
        return
    if _trace is None:
        _trace = Trace(settings)
    _trace.settings = settings
    _rows._on_step = _trace.take_step
    _comm.step_of = _trace.current_step
    if _trace.is_on:
        _trace.begin_step()
    else:
        _trace.start()


def _await_torch():
    """Whether torch is imported: wait for an import that another thread is in."""
    for _ in range(600):
        torch = sys.modules.get("torch")
        if torch is None:
            return False
        if not getattr(getattr(torch, "__spec__", None), "_initializing", False):
            return True
        time.sleep(0.05)
    raise Refused("torch is being imported for 30 seconds: try again")


def start(spec="on"):
    """Trace torch from now on, or from its import on; "off" ends that. Refused: the text has no meaning."""
    settings = Settings(spec)
    if settings.is_off():
        stop()
    else:
        begin(settings)


def begin(settings):
    global _wanted
    _wanted = settings
    if "undo" in getattr(sys, "_probing_agent", ()):
        _inside.undo("torch", stop)  # with the agent, and in a forked child
    if _await_torch():
        _begin()
    elif _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


_settings = {}  # the keys of `probing config`


def configure(key, text):
    """probing config PID probing.torch.profiling=... and probing.torch.sample_rate=...; "": the key is unset."""
    changed = dict(_settings, **{key: text})
    rate = changed.get("torch.sample_rate")
    spec = changed.get("torch.profiling") or ("on" if rate else "off")
    settings = Settings(spec)
    if rate and settings.rate > 0:
        settings.rate = settings._share(rate)
    if settings.is_off():
        stop()
    else:
        begin(settings)
    _settings.update(changed)
    for one, value in changed.items():
        _inside.undo(one, _forget if value else None)


def _forget():
    """The agent ends, or this is a forked child."""
    _settings.clear()
    stop()


def stop(_=None):
    """Hooks are gone; rows remain."""
    global _wanted
    _wanted = None
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)
    _comm.disable()
    _stop_trace()


def _stop_trace():
    _rows._on_step = None
    _comm.step_of = None
    if _trace is not None and _trace.is_on:
        _trace.stop()


def enable_torch_profiling(spec="on"):
    """Trace torch's modules, optimizers and data loaders: rows of python.torch_trace (docs/torch.md).

    spec  "on": each step; "0.05": 5 % of the steps; "0.05:0.5": and half of the modules in them; "ordered:0.1": every tenth
          step; "random:0.1"; then ",backward=off", ",sync=on", ",memory=on", ",comm=off", ",exprs=loss@train"; "off"

    Without an agent in the process it does nothing. ValueError: the text has no meaning.
    """
    if _rows._rings is None:
        return
    try:
        start(spec)
    except Refused as error:
        raise ValueError(str(error)) from None


def disable_torch_profiling():
    """Remove all hooks of enable_torch_profiling(). Its rows remain."""
    stop()
