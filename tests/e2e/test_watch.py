# SPDX-License-Identifier: MIT
"""The key probing.watch_vars: each assignment to a local variable is a row of python.variables."""
import json
import os
import subprocess
import textwrap
import unittest

import probing_test as p
from test_trace import AWAITS_KEY, TraceCase, interpreters

PROGRAM = textwrap.dedent('''
    import asyncio, contextlib, os, sys, threading, time
    def step(loss):
        return loss / 2
    def train(epoch, n, flag=None):
        """Its first statement is this text."""
        loss = 8.0
        for i in range(n):
            loss = step(
                loss)
            if i == 1: label = "x"
        with contextlib.suppress(ValueError):
            loss += 1; failed = epoch < 0
            if failed:
                raise ValueError
            loss = [loss]
        return loss
    def closure(n):
        total = 0
        def add(one):
            nonlocal total
            total += one
            return total
        return [add(i) for i in range(n)]
    class Net:
        def __init__(self):
            self.seen = 0
        def forward(self, x):
            super().__init__()
            y = x * 2
            return y
    async def fetch(n):
        got = n
        await asyncio.sleep(0)
        got = n + 1
        return got
    def spin(until):
        value = 0
        while not until.is_set():
            value += 1
            time.sleep(0.01)
    before = {name: function.__code__ for name, function in list(globals().items()) if hasattr(function, "__code__")}
    print("ready {}", flush=True)
    for line in sys.stdin:
        exec(line)
        print("done", flush=True)
    ''')
UNCHANGED = "print([name for name in before if globals()[name].__code__ is not before[name]], " \
            "[sys.monitoring.get_tool(i) for i in (3, 4)] if hasattr(sys, 'monitoring') else [None, None])"


@p.for_each_interpreter(globals(), interpreters)
class Watch(TraceCase):
    interpreter = None

    def begin(self, prefix=(), program=PROGRAM, **more):
        path = os.path.join(self.folder, "train.py")
        with open(path, "w") as file:
            file.write(program)
        host = subprocess.Popen(list(prefix) + [self.interpreter.path, "-u", "-W", "ignore", path], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                                env=dict(self.environment, **more))
        self.addCleanup(self.end, host)
        p.await_ready(host)
        return host

    def since(self, version):
        return tuple(map(int, p.version_of(self.interpreter.path).split("."))) >= version

    def values(self, host, where="1"):
        return self.ask(host.pid, "SELECT func, name, value FROM python.variables WHERE %s ORDER BY timestamp" % where)

    def test_each_assignment_is_a_row(self):
        host = self.begin()
        self.configure(host, "watch_vars=loss@train,epoch@train,i@train,label@train,y@Net.forward")
        self.assertEqual("[3.0] 4\n", self.run_in(host, "print(train(7, 2), Net().forward(2))"))
        self.assertEqual([["train", "epoch", 7], ["train", "loss", 8.0], ["train", "i", 0], ["train", "loss", 4.0], ["train", "i", 1],
                          ["train", "loss", 2.0], ["train", "label", "'x'"], ["train", "loss", 3.0], ["train", "loss", "<builtins.list>"],
                          ["Net.forward", "y", 4]], self.values(host))
        # an exception, and a second call
        self.run_in(host, "import probing; probing.step(5); train(-1, 0)")
        self.assertEqual([[-1], [8.0], [9.0]], self.ask(host.pid, "SELECT value FROM python.variables WHERE step = 5"))
        self.assertEqual([[host.pid]], self.ask(host.pid, "SELECT DISTINCT tid FROM python.variables"))
        done = p.probing(host.pid, "SELECT * FROM python.variables", check=p.OK, env=self.environment)
        self.assertRegex(done.stdout, r"^ *timestamp +step +func +name +value +tid *\n")

    def test_a_function_that_is_traced_too(self):
        host = self.begin()
        changed = self.run_in(host, UNCHANGED)
        n_values = n_calls = 0
        for first, second in (("trace=train", "watch_vars=loss@train"), ("watch_vars=loss@train", "trace=train")):
            self.configure(host, first)
            self.configure(host, second)
            self.run_in(host, "train(1, 0)")
            n_values, n_calls = n_values + 3, n_calls + 1
            self.assertEqual((n_values, {"train": n_calls}), (len(self.values(host)), self.calls(host)))
            self.configure(host, first.split("=")[0] + "=default")
            self.configure(host, second.split("=")[0] + "=default")
            self.assertEqual(changed, self.run_in(host, UNCHANGED))

    def test_at_the_limit_of_recursion(self):
        """A call of ours more is one level less, but nothing of ours fails in the program. Before 3.10 it must, or CPython ends."""
        host = self.begin(program=PROGRAM.replace("class Net:", textwrap.dedent("""
            def deep(n):
                left = n
                return left and deep(left - 1)
            def limit():
                for n in range(1000):
                    try:
                        deep(n)
                    except RecursionError:
                        return n
            class Net:"""), 1))
        self.run_in(host, "sys.setrecursionlimit(300)")
        before = int(self.run_in(host, "print(limit())"))
        self.configure(host, "watch_vars=left@deep")
        self.assertLessEqual(before - int(self.run_in(host, "print(limit())")), 1 if self.since((3, 10)) else 4)
        self.assertGreater(len(self.values(host)), 200)

    def test_closures_and_coroutines(self):
        host = self.begin()
        self.configure(host, "probing.torch.watch_vars=total@closure,got@fetch")
        self.run_in(host, "closure(3); asyncio.run(fetch(3))")
        self.assertEqual([["closure", "total", 0], ["fetch", "got", 3], ["fetch", "got", 4]], self.values(host))

    def test_it_is_undone(self):
        host = self.begin()
        changed = self.run_in(host, UNCHANGED)
        self.configure(host, "watch_vars=loss@train")
        self.assertNotEqual(changed, self.run_in(host, UNCHANGED))
        for wrong, says in (("nope@train", "train has no variable nope"), ("x@nothing", "nothing was not found"),
                            ("x@sys", "sys is a module: name one of its functions")):
            self.assertIn(says, self.configure(host, "watch_vars=" + wrong, check=p.FAILED).stderr)
        self.configure(host, "watch_vars=y@Net.forward,loss@train")
        self.run_in(host, "train(1, 0); Net().forward(1)")
        self.assertEqual(3, len(self.values(host, "name = 'loss'")))
        self.configure(host, "watch_vars=default")
        self.assertEqual(changed, self.run_in(host, UNCHANGED))
        self.configure(host, "watch_vars=loss@train", "trace=step")
        p.probing("detach", host.pid, check=p.OK)
        self.assertEqual(changed, self.run_in(host, UNCHANGED))
        n = len(self.values(host))
        self.run_in(host, "train(1, 1)")
        self.assertEqual(n, len(self.values(host)))
        # after its death, too, and beside what attach --config reads
        p.probing("inject", host.pid, check=p.OK)
        path = os.path.join(self.folder, "probes.yaml")
        with open(path, "w") as file:
            file.write("variables: [before@__main__]\ninterval: 0.05\n")
        p.probing("attach", host.pid, "--config", path, check=p.OK)
        p.wait_until(lambda: self.values(host, "name = 'before'") == [["__main__", "before", "<builtins.dict>"]], 20, "the value")
        self.assertEqual(n + 1, len(self.values(host)))
        self.end(host)
        done = p.probing("sql", host.pid, "SELECT count(*) AS n FROM python.variables", "-f", "json", check=p.OK, env=self.environment)
        self.assertEqual([{"n": n}], json.loads(done.stdout))

    def test_from_the_start(self):
        program = PROGRAM.replace("before =", AWAITS_KEY % "_watch" + "before =", 1)
        host = self.begin([p.BINARY, "run"], program, PROBING_TORCH_WATCH_VARS="loss@train")
        self.run_in(host, "train(1, 0)")
        self.assertEqual([["train", "loss", 8.0], ["train", "loss", 9.0], ["train", "loss", "<builtins.list>"]], self.values(host))

    def test_a_function_that_runs_already(self):
        host = self.begin()
        self.run_in(host, "until = threading.Event(); thread = threading.Thread(target=spin, args=(until,)); thread.start()")
        self.configure(host, "watch_vars=value@spin")
        if self.monitors:
            p.wait_until(lambda: len(self.values(host)) > 2, 20, "values of the running call")
        self.run_in(host, "until.set(); thread.join(); until.clear()")
        self.run_in(host, "thread = threading.Thread(target=spin, args=(until,)); thread.start()")
        p.wait_until(lambda: [["spin", "value", 0], ["spin", "value", 1]] == self.values(host, "value < 2")[-2:], 20, "the next call")
        self.run_in(host, "until.set(); thread.join()")

    def test_a_source_that_has_changed(self):
        host = self.begin()
        with open(os.path.join(self.folder, "train.py"), "w") as file:
            file.write("# another line\n" + PROGRAM.replace("loss / 2", "loss / 4").replace("loss = 8.0", "loss = 9"))
        done = self.configure(host, "watch_vars=loss@train", check=p.OK if self.monitors else p.FAILED)
        if not self.monitors:
            self.assertRegex(done.stderr, r"train is not what its source \S+train.py has now: probing attach --config with "
                                          r'"variables: \[loss@train\]" reads it from time to time')
        self.run_in(host, "train(1, 0)")

    def test_a_table_of_the_programs(self):
        host = self.begin()
        p.probing("inject", host.pid, check=p.OK)
        self.run_in(host, "import probing; probing.ExternalTable('probing_variables', ['a']).append(1)")
        done = p.probing("sql", host.pid, "SELECT * FROM python.variables", check=p.BAD_DATA, env=self.environment)
        self.assertIn("the ring probing_variables of process %d is not probing's" % host.pid, done.stderr)


if __name__ == "__main__":
    unittest.main()
