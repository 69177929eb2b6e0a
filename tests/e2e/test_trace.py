# SPDX-License-Identifier: MIT
"""Keys that Python code applies: probing.trace, whose functions write a row for each call."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest

import probing_test as p
from test_inject import need_injection

WANTED = ("debian", "3_8", "3_11", "3_12", "3_13")

PROGRAM = textwrap.dedent("""
    import asyncio, contextlib, os, sys, threading, time
    class Net:
        def forward(self, n):
            return n * 2
    def work(n):
        if n < 0:
            raise ValueError(n)
        return n
    def nap(seconds):
        time.sleep(seconds)
    def outer(n):
        return work(n)
    def recursive(n):
        return n and 1 + recursive(n - 1)
    def steps(n):
        yield from range(n)
    async def fetch(seconds):
        began = time.monotonic()
        await asyncio.sleep(seconds)
        return time.monotonic() - began
    async def fetch_all():
        async def measured(seconds):
            began = time.monotonic()
            within = await fetch(seconds)
            return [1000 * within, 1000 * (time.monotonic() - began)]
        print(await asyncio.gather(measured(0.05), measured(0.1)))
    alias = work
    before = {name: function.__code__ for name, function in list(globals().items()) if hasattr(function, "__code__")}
    suppress = contextlib.suppress(ValueError)
    print("ready {}", flush=True)
    for line in sys.stdin:
        exec(line)
        print("done", flush=True)
    """)


# Functions of a key that is set from the start are looked for from time to time: until all are found. Its argument is the key's module.
AWAITS_KEY = """
def has_begun():
    now = getattr(sys.modules.get("probing.%s"), "_now", None)
    return now is not None and not now.names.missing
while not has_begun():
    time.sleep(0.01)
"""


def interpreters():
    return [one for one in p.interpreters() if one.label in WANTED]


class TraceCase(unittest.TestCase):
    interpreter = p.Interpreter(p.DEBIAN_PYTHON, None, "debian")

    def setUp(self):
        need_injection()
        p.need_interpreter(self.interpreter)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self.environment["PROBING_DATA_DIR"] = self.folder
        self.monitors = tuple(map(int, p.version_of(self.interpreter.path).split("."))) >= (3, 12)

    def begin(self, program=PROGRAM, prefix=(), **more):
        host = subprocess.Popen(list(map(str, prefix)) + [self.interpreter.path, "-u", "-W", "ignore", "-c", program],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                                env=dict(self.environment, **more))
        self.addCleanup(self.end, host)
        p.await_ready(host)
        return host

    @staticmethod
    def end(host):
        if host.returncode is None:
            host.kill()
            host.said = host.communicate()
        return host.said

    def run_in(self, host, line):
        return p.run_in(host, line)

    def ask(self, pid, sql):
        done = p.probing(pid, "query", sql, "-f", "json", check=p.OK, env=self.environment)
        return [list(row.values()) for row in json.loads(done.stdout)]

    def configure(self, host, *words, check=p.OK):
        return p.probing(host.pid, "config", *words, check=check, env=self.environment)

    def calls(self, host):
        return dict(self.ask(host.pid, "SELECT operation_name, count(*) FROM profiling_data GROUP BY 1"))


@p.for_each_interpreter(globals(), interpreters)
class Trace(TraceCase):
    interpreter = None

    def test_each_call_is_a_row(self):
        host = self.begin()
        self.assertEqual("probing.trace=work,Net.forward,nap,recursive\n",
                         self.configure(host, "probing.trace=work,Net.forward,nap,recursive").stdout)
        self.run_in(host, "[outer(i) for i in range(10)]; Net().forward(1); recursive(2); nap(0.02)")
        self.run_in(host, "with suppress: outer(-1)")
        self.run_in(host, "thread = threading.Thread(target=work, args=(1,)); thread.start(); thread.join()")
        self.run_in(host, "import probing; probing.step(3)")
        self.run_in(host, "with probing.span('batch'): work(2)")
        self.assertEqual({"work": 13, "Net.forward": 1, "recursive": 3, "nap": 1}, self.calls(host))
        # as it is documented
        done = p.probing(host.pid, "SELECT operation_name, avg(duration_ms), count(*) FROM profiling_data GROUP BY 1", check=p.OK,
                         env=self.environment)
        mean_ms, = re.findall(r"(?m)^nap +([0-9.]+) +1$", done.stdout)
        self.assertGreaterEqual(float(mean_ms), 20)  # load makes it longer only
        self.assertEqual([["ValueError", 1]], self.ask(
            host.pid, "SELECT error, count(*) FROM profiling_data WHERE error IS NOT NULL GROUP BY 1"))
        self.assertEqual([["work", 3, 1, host.pid]], self.ask(
            host.pid, "SELECT operation_name, d.step, d.span, d.tid FROM profiling_data d JOIN spans s USING (span) "
                      "WHERE s.name = 'batch' AND s.phase = 'end'"))
        self.assertEqual(2, self.ask(host.pid, "SELECT count(DISTINCT tid) FROM profiling_data")[0][0])
        self.assertEqual([[0]], self.ask(host.pid, "SELECT count(*) FROM profiling_data WHERE NOT duration_ms BETWEEN 0 AND 60000"))

    def test_it_is_undone(self):
        host = self.begin()
        unchanged = "print([name for name in before if globals()[name].__code__ is not before[name]], " \
                    "[sys.monitoring.get_tool(i) for i in (3, 4)] if hasattr(sys, 'monitoring') else [None, None])"
        changed = self.run_in(host, unchanged)
        self.configure(host, "trace=work")
        self.assertNotEqual(changed, self.run_in(host, unchanged))
        self.run_in(host, "work(1)")
        # another list takes its place; one with a mistake leaves it
        self.configure(host, "trace=nap,work")
        self.assertRegex(self.configure(host, "trace=nap,nothing", check=p.FAILED).stderr,
                         "^probing: process %d: nothing was not found: name a function of a loaded module" % host.pid)
        self.assertRegex(self.configure(host, "trace=nap,Net", check=p.FAILED).stderr, "Net is a class: name one of its methods")
        self.assertRegex(self.configure(host, "trace=alias,work", check=p.FAILED).stderr, "alias and work are the same function")
        self.run_in(host, "work(1); nap(0)")
        self.assertEqual({"work": 2, "nap": 1}, self.calls(host))
        self.assertEqual("probing.trace=default  (none)\n", self.configure(host, "trace=default").stdout)
        self.assertEqual(changed, self.run_in(host, unchanged))
        self.run_in(host, "work(1)")
        self.configure(host, "trace=nap")
        p.probing("detach", host.pid, check=p.OK)
        self.assertEqual(changed, self.run_in(host, unchanged))
        self.run_in(host, "work(1); nap(0)")
        self.assertEqual({"work": 2, "nap": 1}, self.calls(host))
        p.probing("inject", host.pid, check=p.OK)
        self.assertEqual("probing.trace=default  (none)\n", self.configure(host, "trace").stdout)

    def test_forked_children_are_not_timed(self):
        host = self.begin()
        self.configure(host, "trace=work")
        unchanged = "print(work.__code__ is before['work'], work(1)); os._exit(0)"
        self.assertEqual("True 1\n", self.run_in(host, "pid = os.fork() or exec(%r); os.waitpid(pid, 0)" % unchanged))
        self.run_in(host, "work(1)")
        self.assertEqual({"work": 1}, self.calls(host))

    def test_beside_attach(self):
        host = self.begin()
        path = os.path.join(self.folder, "probes.yaml")
        with open(path, "w") as file:
            file.write("functions: [work]\n")
        p.probing("attach", host.pid, "--config", path, check=p.OK)
        self.configure(host, "trace=work")
        self.run_in(host, "work(1)")
        self.assertEqual({"work": 1}, self.calls(host))
        self.assertEqual([["work", 1]], self.ask(host.pid, "SELECT func, calls FROM python.function_time"))
        if self.monitors:  # else it needs a source file
            self.configure(host, "watch_vars=n@work")
            self.run_in(host, "work(1)")
            self.assertEqual([["n", 1]], self.ask(host.pid, "SELECT name, value FROM python.variables"))
        self.configure(host, "trace=nap")
        p.probing("attach", host.pid, "--config", path, check=p.OK)
        self.run_in(host, "work(1); nap(0)")
        self.assertEqual([["work", 1]], self.ask(host.pid, "SELECT func, calls FROM python.function_time"))
        self.configure(host, "trace=work")
        p.probing("detach", host.pid, check=p.OK)
        self.assertEqual("True\n", self.run_in(host, "print(work.__code__ is before['work'])"))

    def test_calls_that_are_suspended(self):
        host = self.begin()
        done = self.configure(host, "trace=steps,fetch", check=p.OK if self.monitors else p.FAILED)
        if not self.monitors:
            self.assertRegex(done.stderr, "steps is a generator or coroutine: CPython 3.12 and later can time those")
            return
        (short, shorter_than), (long, longer_than) = json.loads(self.run_in(host, "list(steps(3)); asyncio.run(fetch_all())"))
        rows = self.ask(host.pid, "SELECT operation_name, duration_ms FROM profiling_data ORDER BY time_ns")
        self.assertEqual(["steps", "fetch", "fetch"], [name for name, _ in rows])
        # a moment within the call, and one around it: load makes all three longer
        self.assertTrue(45 < short < rows[1][1] < shorter_than, (short, rows, shorter_than))
        self.assertTrue(90 < long < rows[2][1] < longer_than, (long, rows, longer_than))

    def test_from_the_start(self):
        program = PROGRAM.replace("alias = work", AWAITS_KEY % "_trace")
        for prefix, environment in ((["run"], {"PROBING_TRACE": "work,nap"}), (["run", "-D", "trace=work,nap"], {})):
            host = self.begin(program, [p.BINARY] + prefix, **environment)
            self.run_in(host, "work(1); nap(0)")
            self.assertEqual({"work": 1, "nap": 1}, self.calls(host))
            self.assertEqual("probing.trace=work,nap\n", self.configure(host, "trace").stdout)
            self.assertNotIn("was not set", self.end(host)[1])


# A look has found its function when the key is unset.
ENDS = """
import sys, time
from probing import _inside
sys._probing_agent, said = {"starts": True}, []
def begin(functions):
    said.append("begins")
    time.sleep(0.3)
    said.append("has begun")
waiting = _inside.Waiting("probing.trace", [("late", "late")], begin)
waiting.start()
def late():
    pass
while not said:
    time.sleep(0.001)
waiting.end()
said.append("ended")
time.sleep(0.4)
print(said)
"""
# One of those that are to be undone fails: the program has freed our tool of sys.monitoring, say.
UNDOES = """
import sys
undone, space = [], {"has_undo": lambda _: None}
exec(open(sys.argv[1]).read(), space)
for key in "abc":
    space["undo"](key, lambda key=key: undone.append(1 / (key != "b")))
space["undo_all"]()
print(undone)
"""


class Parts(unittest.TestCase):
    def run_code(self, *words):
        return subprocess.run([p.DEBIAN_PYTHON, "-c"] + list(words), capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, PYTHONPATH=os.path.join(p.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1"))

    def test_nothing_begins_after_the_end(self):
        done = self.run_code(ENDS)
        self.assertEqual(("['begins', 'has begun', 'ended']\n", ""), (done.stdout, done.stderr))

    def test_what_cannot_be_undone_stops_nothing(self):
        done = self.run_code(UNDOES, os.path.join(p.ROOT, "src", "agent", "package.py"))
        self.assertEqual(("[1.0, 1.0]\n", "probing: b was not undone: ZeroDivisionError: division by zero\n"), (done.stdout, done.stderr))


class Cost(TraceCase):
    def test_no_thread_waits_for_names_that_are_there(self):
        host = self.begin()
        self.configure(host, "trace=work")
        self.assertEqual("1\n", self.run_in(host, "print(threading.active_count())"))
        self.assertEqual(3, len(os.listdir("/proc/%d/task" % host.pid)))  # the agent's two


if __name__ == "__main__":
    unittest.main()
