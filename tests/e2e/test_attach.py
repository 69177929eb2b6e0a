# SPDX-License-Identifier: MIT
"""Probes armed in running programs by attach --config: what they count, see and leave, in all interpreters."""
import contextlib
import json
import os
import subprocess
import tempfile
import textwrap
import threading
import unittest

import probing_test as p
from test_inject import InjectCase, need_injection

# It runs a command of the test a line, and knows itself what it has called.
PROGRAM = textwrap.dedent("""
    import os, sys, threading, time
    threshold = 5
    def decorate(function):
        import functools
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)
        return wrapper
    def plain(a, b=2, *rest, c=3, **more):
        return a, b, rest, c, more
    @decorate
    def decorated(n):
        return n + 1
    @decorate
    def other(n):
        return n - 1
    def nap(seconds):
        time.sleep(seconds)
    def fails(n):
        raise ValueError(n)
    def recursive(n):
        return n and 1 + recursive(n - 1)
    class Base:
        def method(self):
            return "base"
    class Derived(Base):
        def method(self):
            return super().method() + "derived"
        @classmethod
        def made(cls, n):
            return cls.__name__, n
        @staticmethod
        def static(n):
            return n * 2
    def steps(n):
        for i in range(n):
            yield i
    def train(until):
        loss = 0.5
        label = "a\\tb"
        big = object()
        until.wait(30)
        loss = 7
        until.clear()
        until.wait(30)
        return loss
    alias = plain
    before = plain.__code__
    event = threading.Event()
    threading.Thread(target=event.is_set).start()  # up to CPython 3.6 a program without threads has no GIL to take
    print("ready {}", flush=True)
    for line in sys.stdin:
        exec(line)
        print("done", flush=True)
    """)


@contextlib.contextmanager
def conversation(command, program=PROGRAM):
    """The program, which runs lines until its stdin ends; a limit ends one that hangs."""
    process = subprocess.Popen(command + ["-W", "ignore", "-u", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    limit = threading.Timer(120, process.kill)
    limit.daemon = True
    limit.start()
    try:
        yield p.Target(process, p.await_ready(process))
    finally:
        limit.cancel()
        process.kill()
        process.communicate()


class AttachCase(InjectCase):
    def start(self):
        return conversation(self.interpreter.place.prefix + [self.interpreter.path])

    def run_line(self, target, line):
        return p.run_in(target.process, line)

    def attach(self, target, text, check=p.OK):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "probes.yaml")
            with open(path, "w") as file:
                file.write(text)
            return p.probing("attach", target.pid, "--config", path, check=check)

    def ask(self, target, sql):
        return json.loads(p.probing("sql", target.pid, sql, "-f", "json", check=p.OK).stdout)

    def times(self, target):
        return {row["func"]: row for row in self.ask(target, "SELECT * FROM python.function_time")}


@p.for_each_interpreter(globals(), p.all_interpreters)
class Attach(AttachCase):
    ONE_FOR_USERS = True

    def monitors(self):
        return tuple(map(int, self.interpreter.version.split("."))) >= (3, 12)

    def test_functions_are_timed(self):
        with self.start() as target:
            self.assertEqual("process %d has probes on 8 functions and 0 variables\n" % target.pid, self.attach(target, """
                functions: [plain, __main__.decorated, nap, fails, recursive, Derived.method, Derived.made, Derived.static]
                """).stdout)
            said = self.run_line(target, "print(alias(1), plain(1, 5, 6, c=7, d=8), decorated(1), other(1), recursive(4))")
            self.assertEqual("(1, 2, (), 3, {}) (1, 5, (6,), 7, {'d': 8}) 2 0 4\n", said)
            self.assertEqual("basederived ('Derived', 3) 8\n",
                             self.run_line(target, "print(Derived().method(), Derived.made(3), Derived.static(4))"))
            self.run_line(target, "nap(0.05); nap(0.1)")
            self.run_line(target, "exec('for i in range(3):\\n try: fails(i)\\n except ValueError: pass')")
            self.run_line(target, "ts = [threading.Thread(target=lambda: [decorated(i) for i in range(2000)]) for _ in range(4)]; "
                                  "[t.start() for t in ts]; [t.join() for t in ts]")
            times = self.times(target)
            wanted = {"plain": 2, "__main__.decorated": 8001, "nap": 2, "fails": 3, "recursive": 5, "Derived.method": 1,
                      "Derived.made": 1, "Derived.static": 1}
            self.assertEqual(wanted, {name: row["calls"] for name, row in times.items()})
            self.assertEqual(wanted, {name: row["runs"] for name, row in times.items()})
            self.assertEqual({"fails": 3}, {name: row["raised"] for name, row in times.items() if row["raised"]})
            nap = times["nap"]
            self.assertLessEqual(150e6, nap["total_ns"])  # load makes it longer only
            self.assertLessEqual(50e6, nap["min_ns"])
            self.assertLessEqual(100e6, nap["max_ns"])
            self.assertEqual(nap["total_ns"], nap["min_ns"] + nap["max_ns"])
            rows = self.ask(target, "SELECT func, count(*) AS n, sum(duration_ns) AS total_ns, count(DISTINCT tid) AS tids, "
                                    "min(timestamp) > 1.7e9 AS is_now FROM python.function_call GROUP BY func")
            self.assertEqual({name: (row["runs"], row["total_ns"]) for name, row in times.items()},
                             {row["func"]: (row["n"], row["total_ns"]) for row in rows})
            if self.interpreter.version not in ("3.6", "3.7"):
                self.assertEqual(5, {row["func"]: row["tids"] for row in rows}["__main__.decorated"])

    def test_rows_are_read_while_threads_add_some(self):
        with self.start() as target:
            self.attach(target, "functions: [__main__.decorated]")
            self.run_line(target, "ended = []; ts = [threading.Thread(target=lambda: [decorated(i) for i in iter(lambda: len(ended), 1)]) "
                                  "for _ in range(3)]; [t.start() for t in ts]; None")
            p.wait_until(lambda: self.times(target)["__main__.decorated"]["calls"] > 11000, 60, "more calls than rows are kept")
            for _ in range(5):
                [row] = self.ask(target, "SELECT count(*) AS n, count(DISTINCT func) AS funcs FROM python.function_call")
                self.assertEqual({"n": 10000, "funcs": 1}, row)
            self.run_line(target, "ended.append(1); [t.join() for t in ts]; None")
            times = self.times(target)["__main__.decorated"]
            self.assertEqual(times["calls"], times["runs"])

    def test_detach_leaves_the_program_as_it_was(self):
        with self.start() as target:
            self.attach(target, "functions: [plain]\nvariables: [threshold@__main__]\ninterval: 0.01")
            self.run_line(target, "plain(1)")
            self.attach(target, "functions: [nap]\nvariables: [threshold@__main__]\ninterval: 0.01")  # in place of these
            self.assertEqual("True\n", self.run_line(target, "print(plain.__code__ is before)"))
            self.assertEqual(["nap"], list(self.times(target)))
            self.attach(target, "functions: [plain]")
            p.probing("detach", target.pid, check=p.OK)
            self.assertEqual("True True\n", self.run_line(
                target, "print(plain.__code__ is before, not hasattr(sys, 'monitoring') or "
                        "all(sys.monitoring.get_tool(i) is None for i in range(6)))"))
            p.wait_until(lambda: len(os.listdir("/proc/%d/task" % target.pid)) == 1, 10, "the end of the threads")
            self.assertEqual("(1, 2, (), 3, {})\n", self.run_line(target, "print(plain(1))"))
            done = p.probing("sql", target.pid, "SELECT * FROM python.function_time", check=p.NO_INPUT)
            self.assertIn("process %d has no agent" % target.pid, done.stderr)
            _, err = target.process.communicate("", timeout=20)
            self.assertEqual((0, ""), (target.process.returncode, err))

    def test_variables_are_watched(self):
        with self.start() as target:
            if not p.has_gil(self.interpreter):
                self.check_variables_without_a_gil(target)
                return
            self.attach(target, """
                variables: [loss@train, label@train, big@train, threshold@__main__]
                interval: 0.01
                """)
            self.run_line(target, "t = threading.Thread(target=train, args=(event,)); t.start()")

            def values(name):
                return [row["value"] for row in self.ask(
                    target, "SELECT value FROM python.variables WHERE name = '%s' ORDER BY timestamp" % name)]
            p.wait_until(lambda: [values("loss"), values("threshold")] == [[0.5], [5]], 20, "the first values")
            self.run_line(target, "event.set(); threshold = 6")
            p.wait_until(lambda: values("loss") == [0.5, 7], 20, "the second value")
            self.assertEqual([repr("a\tb")], values("label"))
            self.assertEqual(["<builtins.object>"], values("big"))
            p.wait_until(lambda: values("threshold") == [5, 6], 20, "the module's variable")
            row = self.ask(target, "SELECT func, tid FROM python.variables WHERE name = 'loss'")[0]
            self.assertEqual("train", row["func"])
            if self.interpreter.version not in ("3.6", "3.7"):
                self.assertNotEqual(None, row["tid"])
            self.run_line(target, "event.set(); t.join()")

    def check_variables_without_a_gil(self, target):
        self.assertIn("without a GIL the variables of a running function cannot be read safely: watch a module's",
                      self.attach(target, "variables: [loss@train]", check=p.FAILED).stderr)
        self.attach(target, "variables: [threshold@__main__]\ninterval: 0.01")

        def has_values(*wanted):
            return self.ask(target, "SELECT value FROM python.variables ORDER BY timestamp") == [{"value": value} for value in wanted]
        p.wait_until(lambda: has_values(5), 20, "the first value")
        self.run_line(target, "threshold = 6")
        p.wait_until(lambda: has_values(5, 6), 20, "the second value")

    def test_detach_waits_for_the_gil(self):
        with self.start() as target:
            self.attach(target, "functions: [plain]")
            target.process.stdin.write("import ctypes; ctypes.PyDLL(None).usleep(1500000)\n")
            target.process.stdin.flush()
            p.probing("detach", target.pid, check=p.OK)
            self.assertEqual("done\n", target.process.stdout.readline())
            self.assertEqual("True\n", self.run_line(target, "print(plain.__code__ is before)"))

    def test_generators(self):
        with self.start() as target:
            done = self.attach(target, "functions: [steps]", check=p.OK if self.monitors() else p.FAILED)
            if not self.monitors():
                self.assertIn("steps is a generator or coroutine: CPython 3.12 and later can time those", done.stderr)
                return
            self.run_line(target, "list(steps(3))")
            row = self.times(target)["steps"]
            self.assertEqual((1, 4), (row["calls"], row["runs"]))

    def test_a_forked_child_has_no_probes(self):
        if self.interpreter.version == "3.6":
            self.skipTest("CPython 3.6 has no os.register_at_fork()")
        with self.start() as target:
            self.attach(target, "functions: [plain]")
            self.assertEqual("True\n", self.run_line(target, (
                "pid = os.fork(); pid or (print(plain.__code__ is before and (not hasattr(sys, 'monitoring') or "
                "sys.monitoring.get_tool(4) is None), flush=True), os._exit(0)); os.waitpid(pid, 0)")))
            self.run_line(target, "plain(1)")
            self.assertEqual(1, self.times(target)["plain"]["calls"])

    def test_names_that_cannot_be_probed(self):
        with self.start() as target:
            for text, why in (("functions: [nowhere.f]", "nowhere.f was not found: name a function of a loaded module"),
                              ("functions: [Derived]", "Derived is a class: name one of its methods"),
                              ("functions: [time.sleep]", "time.sleep is no Python function"),
                              ("functions: [plain, alias]", "plain and alias are the same function"),
                              ("variables: [nothing@train]", "train has no variable nothing")):
                with self.subTest(text):
                    self.assertIn("process %d has no probes: %s" % (target.pid, why),
                                  self.attach(target, text, check=p.FAILED).stderr)
            self.assertEqual("True True\n", self.run_line(
                target, "print(plain.__code__ is before, not hasattr(sys, 'monitoring') or "
                        "all(sys.monitoring.get_tool(i) is None for i in range(6)))"))
            done = p.probing("sql", target.pid, "SELECT * FROM python.variables", check=p.NO_INPUT)
            self.assertIn("process %d has no probes" % target.pid, done.stderr)

    def test_a_refused_file_leaves_the_earlier_probes(self):
        with self.start() as target:
            self.attach(target, "functions: [plain, nap]\nvariables: [threshold@__main__]\ninterval: 0.01")
            self.run_line(target, "plain(1)")
            p.wait_until(lambda: self.ask(target, "SELECT value FROM python.variables"), 20, "the variable's value")
            for text, why in (("functions: [plain, nowhere.f]", "nowhere.f was not found"),
                              ("functions: [plain, alias]", "plain and alias are the same function"),
                              ("variables: [nothing@plain]", "plain has no variable nothing")):
                with self.subTest(text):
                    self.assertIn("process %d keeps its earlier probes: %s" % (target.pid, why),
                                  self.attach(target, text, check=p.FAILED).stderr)
                    self.run_line(target, "plain(1); threshold += 1")
            self.assertEqual({"plain": 4, "nap": 0}, {name: row["calls"] for name, row in self.times(target).items()})
            p.wait_until(lambda: self.ask(target, "SELECT max(value) AS most FROM python.variables") == [{"most": 8}], 20,
                         "the variable's last value")
            # The function's own variables still, not ours.
            self.attach(target, "functions: [plain]\nvariables: [%s]" % ("a@plain" if p.has_gil(self.interpreter) else "threshold@__main__"))
            self.run_line(target, "plain(1)")
            self.assertEqual({"plain": 1}, {name: row["calls"] for name, row in self.times(target).items()})
            p.probing("detach", target.pid, check=p.OK)
            self.assertEqual("True\n", self.run_line(target, "print(plain.__code__ is before)"))

    def test_probes_that_cannot_begin_leave_the_earlier_ones(self):
        with self.start() as target:
            self.attach(target, "functions: [plain]")
            self.run_line(target, "import _thread; start = _thread.start_new_thread; _thread.start_new_thread = None")
            done = self.attach(target, "functions: [nap]\nvariables: [threshold@__main__]", check=p.FAILED)
            self.assertIn("TypeError", done.stderr)
            self.run_line(target, "_thread.start_new_thread = start; plain(1)")
            self.assertEqual({"plain": 1}, {name: row["calls"] for name, row in self.times(target).items()})
            p.probing("detach", target.pid, check=p.OK)
            self.assertEqual("True True\n", self.run_line(
                target, "print(plain.__code__ is before, not hasattr(sys, 'monitoring') or "
                        "all(sys.monitoring.get_tool(i) is None for i in range(6)))"))

    def test_torch_that_is_not_loaded(self):
        with self.start() as target:
            self.assertIn("torch is not loaded in the process", self.attach(target, "torch: on\nfunctions: [plain]").stderr)


class Files(AttachCase):
    def test_mistakes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "probes.yaml")
            with open(path, "w") as file:
                file.write("functions: [f]\nwatch: [g]\n")
            done = p.probing("attach", "--check", "--config", path, check=p.BAD_DATA)
            self.assertEqual("probing: %s:2:1: there is no key 'watch': the keys are functions, variables, interval, sampling and "
                             "torch\n" % path, done.stderr)
            self.assertIn("cannot be read", p.probing("attach", "--check", "--config", path + "x", check=p.NO_INPUT).stderr)
            self.assertIn("--config FILE", p.probing("attach", 1, check=p.USAGE).stderr)

    def setUp(self):
        pass


class Torch(AttachCase):
    def setUp(self):
        need_injection()
        if not p.has_modules(p.DEBIAN_PYTHON, "torch"):
            self.skipTest("no torch")

    def test_modules_are_timed(self):
        program = PROGRAM.replace("threshold = 5", "import torch; torch.set_num_threads(1); net = torch.nn.Sequential("
                                  "torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))")
        with conversation([p.DEBIAN_PYTHON], program) as target:
            self.attach(target, "torch: on\nvariables: [scalar@__main__]\ninterval: 0.01")
            self.run_line(target, "scalar = torch.tensor(2.5)")
            self.run_line(target, "[net(torch.ones(2, 8)).sum().backward() for _ in range(5)]")
            times = self.times(target)
            self.assertEqual({"torch.nn.modules.linear.Linear.forward": 10, "torch.nn.modules.activation.ReLU.forward": 5,
                              "torch.nn.modules.container.Sequential.forward": 5},
                             {name: row["calls"] for name, row in times.items()})
            inner = sum(row["total_ns"] for name, row in times.items() if "container" not in name)
            self.assertLess(inner, times["torch.nn.modules.container.Sequential.forward"]["total_ns"])
            p.wait_until(lambda: self.ask(target, "SELECT value FROM python.variables") == [{"value": 2.5}], 20, "the tensor")
            p.probing("detach", target.pid, check=p.OK)
            self.assertEqual("0 0\n", self.run_line(
                target, "from torch.nn.modules import module as m; "
                        "print(len(m._global_forward_hooks), len(m._global_forward_pre_hooks))"))


if __name__ == "__main__":
    unittest.main()
