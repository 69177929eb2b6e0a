# SPDX-License-Identifier: MIT
"""Rows that a program writes: seen from outside while it runs, while it hangs, and after its death; and by nobody else."""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import probing_test as p
from test_agent import LIBRARY, PRELOADED
from test_inject import need_injection

ORDINARY_USER = 65534
PACKAGE = os.path.join(p.ROOT, "python")
WANTED = ("debian", "3_8", "3_11", "3_13")

# Runs a line of its own at each line of stdin, with the package, and the agent unless AGENT is empty.
HOST = """
import ctypes, os, sys, threading, time
sys.path.insert(0, os.environ["PACKAGE"])
import probing
if os.environ["AGENT"]:
    print("started", ctypes.CDLL(os.environ["AGENT"]).probing_agent_start(0))
print("ready {}", flush=True)
space = globals()
for line in sys.stdin:
    exec(line.replace("\\0", "\\n"), space)
    print("done", flush=True)
"""


def interpreters():
    return [one for one in p.interpreters() if one.label in WANTED]


class RingCase(unittest.TestCase):
    interpreter = p.Interpreter(p.DEBIAN_PYTHON, None, "debian")

    def setUp(self):
        p.need_interpreter(self.interpreter)
        if not os.path.exists(LIBRARY):
            self.skipTest("built without the agent")
        self.folder = tempfile.mkdtemp()
        os.chmod(self.folder, 0o777)
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = dict(os.environ, PROBING_DATA_DIR=self.folder)

    def begin(self, agent=LIBRARY, prefix=()):
        environment = dict(self.environment, AGENT=agent, PACKAGE=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        # for the interpreter alone: util-linux does not bear ThreadSanitizer
        preloaded = ["env"] + ["%s=%s" % item for item in PRELOADED.items()] if PRELOADED else []
        host = subprocess.Popen(list(prefix) + preloaded + [self.interpreter.path, "-u", "-c", HOST], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, env=environment)
        self.addCleanup(self.end, host)
        line = host.stdout.readline()
        if agent:
            self.assertEqual("started 0\n", line)
            line = host.stdout.readline()
        self.assertEqual("ready {}\n", line)
        return host

    @staticmethod
    def end(host):
        host.kill()
        return host.communicate()

    def run_in(self, host, code):
        """What the code prints; it may have several lines."""
        return p.run_in(host, code.replace("\n", "\0"))

    def ask(self, pid, sql, status=p.OK, **more):
        done = p.probing("sql", pid, sql, "-f", "json", check=status, env=self.environment, **more)
        self.said = done.stderr
        return [list(row.values()) for row in json.loads(done.stdout or "[]")]


@p.for_each_interpreter(globals(), interpreters)
class Rings(RingCase):
    def test_while_it_runs_hangs_and_after_its_death(self):
        host = self.begin()
        sql = "SELECT epoch, loss FROM training_logs WHERE timestamp > now() - interval '5 minutes' ORDER BY time_ns"
        self.run_in(host, "for i in range(3): probing.log(epoch=i, loss=i / 4)")
        self.assertEqual([[0, 0.0], [1, 0.25], [2, 0.5]], self.ask(host.pid, sql))
        self.assertEqual([[3, host.pid]], self.ask(
            host.pid, "SELECT count(*), t.tid FROM training_logs, cpu.tasks t WHERE t.tid = %d" % host.pid))
        self.assertEqual([["timestamp", "REAL"], ["epoch", ""], ["loss", ""]], self.ask(
            host.pid, "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'training_logs' "
            "ORDER BY ordinal_position"))
        listed = json.loads(p.probing("tables", host.pid, "python.training%", "--json", check=p.OK, env=self.environment).stdout)
        self.assertEqual([("python", "training_logs", "timestamp, epoch, loss")],
                         [(one["schema"], one["name"], one["columns"]) for one in listed])
        os.kill(host.pid, signal.SIGSTOP)
        self.assertEqual(3, len(self.ask(host.pid, sql)))
        os.kill(host.pid, signal.SIGCONT)
        self.run_in(host, "probing.log(epoch=9, accuracy=0.5)")
        self.end(host)  # by SIGKILL
        self.assertEqual(3, len(self.ask(host.pid, sql + " LIMIT 3")))
        self.assertIn("process %d has ended: only the rows that it wrote are left" % host.pid, self.said)
        self.assertEqual([[9, None, 0.5]], self.ask(
            host.pid, "SELECT epoch, loss, accuracy FROM training_logs WHERE epoch = 9"))
        self.assertEqual([], self.ask(host.pid, "SELECT * FROM cpu.tasks", status=p.BAD_DATA))
        done = p.probing(host.pid, "SELECT count(*) AS n FROM training_logs", check=p.OK, env=self.environment)
        self.assertEqual("4", done.stdout.split()[-1])
        p.probing("backtrace", host.pid, check=p.NO_INPUT)

    def test_tables(self):
        host = self.begin()
        self.assertEqual("None\n", self.run_in(host, "t = probing.ExternalTable('mine', ['a', 'b'])\n"
                                                     "t.append([1, 'x']); t.append(2, 'y'); t.append(b='z'); t.append(4)\n"
                                                     "t.append_many([[5, 'v'], (6, 'w')])\n"
                                                     "print(probing.ExternalTable.get('other'))"))
        rows = [[1, "x"], [2, "y"], [None, "z"], [4, None], [5, "v"], [6, "w"]]
        self.assertEqual(rows, self.ask(host.pid, "SELECT a, b FROM python.mine"))
        taken = self.run_in(host, "print([list(row) for _, row in t.take()], [row for _, row in t.take(1)], t.take(0),"
                                  "abs(t.take()[0][0] - time.time()) < 60, probing.ExternalTable.get('mine') is t,"
                                  "probing.ExternalTable.get_or_create('mine', ['q']) is t)")
        self.assertEqual("%s [(6, 'w')] [] True True True\n" % rows, taken)
        self.run_in(host, "t.drop()")
        self.assertEqual([], self.ask(host.pid, "SELECT name FROM python.rings"))
        self.run_in(host, "t.append(7, 'again'); probing.ExternalTable.drop('none')")
        self.assertEqual([[7, "again"]], self.ask(host.pid, "SELECT a, b FROM mine"))

    def test_queries_of_the_program_itself(self):
        host = self.begin()
        self.assertEqual("[{'epoch': 1}]\n", self.run_in(
            host, "os.environ['PROBING_BINARY'] = %r; probing.log(epoch=1)\n"
            "print(probing.query('SELECT epoch FROM training_logs', pandas=False))" % os.path.abspath(p.BINARY)))

    def test_values(self):
        host = self.begin()
        self.run_in(host, """
import decimal
class Index(object):
    def __index__(self): return 7
class Float(object):
    def __float__(self): return 0.5
class Bad(object):
    def __float__(self): raise ValueError("no")
class Text(str): pass
t = probing.ExternalTable("typed", {"i": int, "f": float, "s": str, "any": object})
for value in True, 2 ** 63, -2 ** 63, Index(), Float(), Bad(), decimal.Decimal("1.5"), None, b"b", [1], 10 ** 400, float("inf"):
    t.append(value, value, None, value)
t.append(None, None, Text("sub"))
t.append(None, None, chr(0xd800))
t.append(None, None, "\\U0001f40d" * 20)
t.append(1, 2.0, "x", 4, 5)
""")
        inf = {"real": "inf"}
        self.assertEqual([
            [1, 1.0, None, 1], [None, 2.0 ** 63, None, 2.0 ** 63], [-2 ** 63, -2.0 ** 63, None, -2 ** 63], [7, 7.0, None, 7],
            [None, 0.5, None, 0.5], [None] * 4, [None, 1.5, None, 1.5], [None] * 4, [None] * 4, [None] * 4, [None] * 4],
            self.ask(host.pid, "SELECT i, f, s, \"any\" FROM typed LIMIT 11"))
        self.assertEqual([[None, 1]], self.ask(host.pid, "SELECT i, f > 1e308 FROM typed LIMIT 1 OFFSET 11"))
        self.assertEqual([["sub"], [None], ["\U0001f40d" * 16], ["x"]], self.ask(host.pid, "SELECT s FROM typed LIMIT 4 OFFSET 12"))
        self.assertIn("values are NULL, as their columns have another type", self.said)

    def test_scalars_of_other_packages(self):
        if PRELOADED:
            self.skipTest("torch does not load under a sanitizer")
        if not p.has_modules(self.interpreter.path, "numpy"):
            self.skipTest("this Python has no NumPy")
        host = self.begin()
        self.run_in(host, "import numpy; probing.log(i=numpy.int32(3), f=numpy.float32(0.5), b=numpy.bool_(True), "
                          "z=numpy.array(2.5), s=numpy.str_('s'))")
        self.assertEqual([[3, 0.5, 1, 2.5, "s"]], self.ask(host.pid, "SELECT i, f, b, z, s FROM training_logs"))
        if p.has_modules(self.interpreter.path, "torch"):
            self.run_in(host, "import torch; probing.log(loss=torch.tensor(0.25, requires_grad=True), n=torch.tensor(4))")
            self.assertEqual([[0.25, 4]], self.ask(host.pid, "SELECT loss, n FROM training_logs WHERE n IS NOT NULL"))

    def test_dataclasses(self):
        host = self.begin()
        self.run_in(host, """
import dataclasses
@probing.table
@dataclasses.dataclass
class Batch:
    step: int
    loss: float = 0.5
    what: str = "x"
@probing.table("singles")
@dataclasses.dataclass
class Single:
    value: "float"
Batch.append(Batch(1)); Batch.append(2, 1.5, "y"); Batch.append(step=3); Batch.append_many([Batch(4), Batch(5)])
Single.append(Single(0.5))
""")
        self.assertEqual([[1, 0.5, "x"], [2, 1.5, "y"], [3, 0.5, "x"], [4, 0.5, "x"], [5, 0.5, "x"]],
                         self.ask(host.pid, "SELECT step, loss, what FROM Batch"))
        self.assertEqual([[0.5]], self.ask(host.pid, "SELECT value FROM singles"))
        self.assertEqual("[Batch(step=4, loss=0.5, what='x'), Batch(step=5, loss=0.5, what='x')] []\n",
                         self.run_in(host, "print(Batch.take(2), (Batch.drop(), Batch.take())[1])"))

    def test_spans_events_and_steps(self):
        host = self.begin()
        self.assertEqual("None 0 8 9\n", self.run_in(host, """
import asyncio
@probing.span("called", rank=1)
def called(x):
    probing.event("within", value=x)
    return x
@probing.span("counted")
def counted():
    yield 1
    yield 2
@probing.span("awaited")
async def awaited(n):
    async with probing.span("inner", n=n):
        await asyncio.sleep(0.01)
async def both():
    await asyncio.gather(awaited(1), awaited(2))
first = probing._rows._step
steps = [probing.step(), probing.step(8), probing.step(lr=0.1)]
assert called(3) == 3 and list(counted()) == [1, 2]
try:
    with probing.span("failing"):
        raise KeyError("x")
except KeyError:
    pass
asyncio.new_event_loop().run_until_complete(both())
opened = probing.span("open")
opened.__enter__()
print(first, *steps)
"""))
        self.assertEqual([["within", 9, '{"value": 3}', "called"]], self.ask(
            host.pid, "SELECT e.name, e.step, e.attributes, s.name FROM events e JOIN spans s USING(span) WHERE s.phase = 'begin'"))
        self.assertEqual([["awaited", None], ["awaited", None], ["called", None], ["counted", None], ["failing", "KeyError"],
                          ["inner", None], ["inner", None]],
                         self.ask(host.pid, "SELECT name, error FROM spans WHERE phase = 'end' AND duration_ms >= 0 ORDER BY name"))
        self.assertEqual([["awaited", "inner", 2]], self.ask(
            host.pid, "SELECT p.name, s.name, count(DISTINCT p.span) FROM spans s JOIN spans p ON p.span = s.parent "
            "WHERE s.phase = 'begin' AND p.phase = 'begin' GROUP BY 1, 2"))
        self.assertEqual([["open", host.pid]], self.ask(
            host.pid, "SELECT name, tid FROM spans GROUP BY span HAVING count(*) = 1"))
        self.assertEqual([[0, 1], [8, 0], [9, 0]], self.ask(host.pid, "SELECT step, last_ms IS NULL FROM steps"))
        self.run_in(host, "probing.event('long', first=1, rest='x' * 200)")
        self.assertEqual([['{"first": 1}']], self.ask(host.pid, "SELECT attributes FROM events WHERE name = 'long'"))

    def test_many_threads(self):
        host = self.begin()
        self.run_in(host, """
t = probing.ExternalTable("many", {"thread": int, "i": int, "text": str}, rows=50000)
def write(n):
    for i in range(5000):
        t.append(n, i, "thread %d row %d" % (n, i))
threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
        self.assertEqual([[40000, 8, 40000]], self.ask(
            host.pid, "SELECT count(*), count(DISTINCT thread), count(DISTINCT text) FROM many "
            "WHERE text = 'thread ' || thread || ' row ' || i"))
        self.assertEqual([[40000, 0]], self.ask(host.pid, "SELECT appended, dropped + unfit + stuck FROM python.rings"))

    def test_killed_while_threads_write(self):
        host = self.begin()
        self.run_in(host, """
t = probing.ExternalTable("busy", {"thread": int, "i": int, "text": str, "half": float}, rows=1000)
def write(n):
    i = 0
    while True:
        t.append(n, i, "%d wrote %d" % (n, i), i / 2)
        i += 1
for n in range(4): threading.Thread(target=write, args=(n,), daemon=True).start()
while not t.take(1): time.sleep(0.01)
""")
        judged = ("SELECT count(*), count(*) - count(DISTINCT text), sum(text <> thread || ' wrote ' || i OR half <> i / 2.0), "
                  "sum(i < before) FROM (SELECT *, lag(i) OVER (PARTITION BY thread ORDER BY time_ns, i) AS before FROM busy)")
        n_read = 0
        for _ in range(10):
            ((n, doubled, torn, disordered),) = self.ask(host.pid, judged)
            n_read += n
            self.assertEqual([0, 0, 0], [doubled, torn or 0, disordered or 0])
        self.assertGreater(n_read, 0)  # a single look may find that all rows have been evicted meanwhile
        self.end(host)
        ((n, doubled, torn, disordered),) = self.ask(host.pid, judged)
        self.assertEqual([0, 0, 0], [doubled, torn, disordered])
        ((size, rows, stuck),) = self.ask(host.pid, "SELECT size, rows, stuck FROM python.rings")
        self.assertEqual(n, rows)
        self.assertLessEqual(stuck, 4)
        self.assertGreaterEqual(rows, size - 4)  # each thread was within a row, or had its number and no slot yet

    def test_threads_that_begin_a_table_at_once_have_one(self):
        host = self.begin()
        self.assertEqual("[]\n", self.run_in(host, """
sys.setswitchinterval(1e-6)
tables = [probing.ExternalTable("at once %d" % n, {"a": int}, rows=8) for n in range(50)]
for t in tables:
    barrier = threading.Barrier(6)
    def first():
        barrier.wait()
        t.append(1)
    threads = [threading.Thread(target=first) for _ in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print([t.take() for t in tables if len(t.take()) != 6])
"""))
        self.assertEqual([[50, 300]], self.ask(host.pid, "SELECT count(*), sum(appended) FROM python.rings"))

    def test_forked_children_have_rings_of_their_own(self):
        host = self.begin()
        child = int(self.run_in(host, """
probing.log(who="parent")
hears, says = os.pipe()
child = os.fork()
if child == 0:
    probing.log(who="child")
    os.write(says, b"1")
    assert [row[1:] for row in probing._rows._logs[("who",)]._take()] == [("child",)]
    time.sleep(60)
    os._exit(0)
probing.log(who="parent again")
os.read(hears, 1)
print(child)
"""))
        self.addCleanup(os.kill, child, signal.SIGKILL)
        self.assertEqual([["parent"], ["parent again"]], self.ask(host.pid, "SELECT who FROM training_logs"))
        self.assertEqual([["child"]], self.ask(child, "SELECT who FROM training_logs"))

    def test_without_an_agent_it_is_harmless(self):
        host = self.begin(agent="")
        self.assertEqual("[] None None 3\n", self.run_in(host, """
t = probing.ExternalTable("mine", ["a"])
t.append([1]); t.append_many([[1]]); t.append(1, 2, 3)
probing.log(epoch=1); probing.event("x", y=object())
@probing.table
class Row:
    a: int
Row.append(Row(1)); Row.append(2, 3, 4, 5); Row.append_many([7])
with probing.span("s", a=1), probing.span("s"):
    pass
@probing.span("d", k=1)
def f(x): return x
print(t.take(), t.drop(), probing.step(), f(3))
"""))
        self.assertEqual([], glob.glob(self.folder + "/*"))
        self.run_in(host, "started = ctypes.CDLL(%r).probing_agent_start(0)\nassert started == 0\n" % LIBRARY)
        self.run_in(host, "for _ in range(100): time.sleep(0.001)\nf(4); t.append(7); probing.log(epoch=2)")
        self.assertEqual([["d"]], self.ask(host.pid, "SELECT name FROM spans WHERE phase = 'end'"))
        self.assertEqual([[7, 2]], self.ask(host.pid, "SELECT a, epoch FROM mine, training_logs"))

    def test_injected_later(self):
        need_injection()
        if "tsan" in PRELOADED.get("LD_PRELOAD", ""):
            self.skipTest("blocked threads are in ThreadSanitizer's library, which brings an allocator: no place there is safe")
        host = self.begin(agent="")
        self.run_in(host, "def log_on():\n while True: probing.log(epoch=1); time.sleep(0.01)\n"
                          "threading.Thread(target=log_on, daemon=True).start()")
        p.probing("inject", host.pid, check=p.OK)
        # the main thread was in a read(2)
        self.run_in(host, "while not getattr(probing._rows._logs.get(('epoch',)), '_take', len)(''): time.sleep(0.01)")
        self.assertGreater(self.ask(host.pid, "SELECT count(*) FROM training_logs")[0][0], 0)

    def test_detached_it_writes_no_more(self):
        if PRELOADED:
            self.skipTest("probing does not know the sanitized agent by its name")
        host = self.begin()
        self.run_in(host, "probing.log(epoch=1)")
        p.probing("detach", host.pid, check=p.OK)
        self.run_in(host, "probing.log(epoch=2); probing.log(other=1); probing.event('x')")
        self.assertEqual([[1]], self.ask(host.pid, "SELECT epoch FROM training_logs"))
        self.assertEqual([["training_logs"]], self.ask(host.pid, "SELECT name FROM python.rings"))


# at_once(act): what act(0), act(1) and act(2) return in three threads that begin together; an exception is returned, too.
AT_ONCE = """
import os, sys, threading
from probing import _comm, _torch
sys.setswitchinterval(1e-6)
def at_once(act):
    barrier, found = threading.Barrier(3), [None] * 3
    def run(i):
        barrier.wait()
        try:
            found[i] = act(i)
        except Exception as error:
            found[i] = error
    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return found
"""
# collect() of rows whose times the GPU has: which rows come more or less often than once.
COLLECT = """
class Event:
    probing_device = 0
    def query(self): return True
    def elapsed_time(self, other): return 1.0
class Trace:
    lost, rows = 0, []
    def append(self, *row): self.rows.append(row[0])
class Given:
    def give(self, *events): pass
cuda = _torch.Cuda.__new__(_torch.Cuda)
cuda.trace, cuda.events, cuda.pending, cuda.pid = Trace(), Given(), [], os.getpid()
cuda.is_capturing, cuda.collecting = lambda: False, threading.Lock()
def act(i):
    for n in range(2000):
        cuda.pending.append((Event(), Event(), 0, [i * 2000 + n] + [None] * 18))
        cuda.collect()
found = at_once(act)
cuda.collect()
print(found, sorted(cuda.trace.rows) == list(range(6000)))
"""


def interpreters_that_switch():
    """Without a GIL, and those that may switch threads within any statement (up to CPython 3.9)."""
    return [one for one in p.all_interpreters() if one.label in ("debian", "3_8") or not p.has_gil(one)]


@p.for_each_interpreter(globals(), interpreters_that_switch)
class AtOnce(RingCase):
    """Several threads of a program do the same at the same time."""

    def check(self, wanted, code):
        self.assertEqual(wanted + "\n", self.run_in(self.begin(), AT_ONCE + code))

    def test_steps_are_each_threads_own(self):
        self.check("[[], [], []]", "print(at_once(lambda i: [n for n in range(i * 10**6, i * 10**6 + 5000) if probing.step(n) != n]))")

    def test_tables_of_one_name_are_one(self):
        self.check("0 []", """
made = [at_once(lambda i: probing.ExternalTable.get_or_create("t%d" % k, ("a",))) for k in range(300)]
ended = [at_once(lambda i: one[0].drop()) for one in made]
print(sum(len(set(map(id, one))) > 1 for one in made), [one for one in ended if one != [None] * 3])
""")

    def test_messages_have_different_numbers(self):
        self.check("15000", """
group = _comm.Group("", "", 0, None, 2)
print(len(set(sum(at_once(lambda i: [group.next_message(0, 1) for _ in range(5000)]), []))))
""")

    def test_rows_of_the_gpu_are_collected_once(self):
        self.check("[None, None, None] True", COLLECT)

    def test_a_table_that_is_dropped_while_it_is_read(self):
        """By an argument's own code."""
        self.check("[]", """
class Drops:
    def __index__(self):
        table.drop()
        return 1
table = probing.ExternalTable("dropped", ("a",))
table.append(1)
print(table.take(Drops()))
""")


class ManyWriters(RingCase):
    """Four processes with four threads each, whose rows two readers judge; processes are killed while they write, and replaced."""
    KILLS = 4
    WRITE = """
t = probing.ExternalTable("busy", {"thread": int, "i": int, "text": str, "half": float}, rows=1000)
def write(n):
    i = 0
    while True:
        t.append(n, i, "%d wrote %d" % (n, i), i / 2)
        i += 1
for n in range(4): threading.Thread(target=write, args=(n,), daemon=True).start()
while not t.take(1): time.sleep(0.01)
"""
    # Rows, doubled ones, torn ones, those behind a later one of their thread, and those that are missing between two of it.
    JUDGE = ("SELECT count(*), count(*) - count(DISTINCT text), sum(text <> thread || ' wrote ' || i OR half <> i / 2.0), sum(i < before),"
             " sum(i - before > 1) FROM (SELECT *, lag(i) OVER (PARTITION BY thread ORDER BY time_ns, i) AS before FROM busy)")

    def test_rows_are_whole_single_and_complete(self):
        hosts = [self.begin() for _ in range(4)]
        for host in hosts:
            self.run_in(host, self.WRITE)
        ended, looks, wrong, killed = threading.Event(), [], [], set()

        def read():
            while not ended.is_set():
                for host in list(hosts):
                    done = p.probing("sql", host.pid, self.JUDGE, "-f", "json", env=self.environment)
                    if done.returncode != p.OK:
                        wrong.extend([] if host.pid in killed else [done.stderr])
                        continue
                    n, doubled, torn, disordered, _ = list(json.loads(done.stdout)[0].values())
                    looks.append(n)
                    if doubled or torn or disordered:
                        wrong.append((n, doubled, torn, disordered))

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        try:
            for i in range(self.KILLS):
                n = len(looks)
                p.wait_until(lambda: len(looks) >= n + 4 or wrong, 60, "four more looks")  # pylint: disable=cell-var-from-loop
                killed.add(hosts[i % 4].pid)
                hosts[i % 4].kill()
                hosts[i % 4].wait()
                self.judge_dead(hosts[i % 4])
                new = self.begin()
                self.run_in(new, self.WRITE)
                hosts[i % 4] = new
        finally:
            ended.set()
            for reader in readers:
                reader.join()
        self.assertEqual([], wrong)
        self.assertGreater(sum(looks), 0)

    def judge_dead(self, host):
        """All that its rings have: of each thread every row from some one on."""
        ((n, doubled, torn, disordered, missing),) = self.ask(host.pid, self.JUDGE)
        self.assertEqual([0, 0, 0, 0], [doubled, torn, disordered, missing])
        ((size, rows, stuck, dropped),) = self.ask(host.pid, "SELECT size, rows, stuck, dropped FROM python.rings")
        self.assertEqual((n, 0), (rows, dropped))
        self.assertLessEqual(stuck, 4)
        self.assertGreaterEqual(rows, size - 4)  # each thread was within a row, or had its number and no slot yet


class Folders(RingCase):
    def test_planted_folders_are_refused(self):
        mine = os.path.join(self.folder, "probing-%d" % os.geteuid())
        elsewhere = os.path.join(self.folder, "elsewhere")
        os.mkdir(elsewhere, 0o700)
        os.symlink(elsewhere, mine)
        host = self.begin()
        self.run_in(host, "probing.log(epoch=1); probing.log(epoch=2); probing.event('x')")
        self.assertEqual([], os.listdir(elsewhere))
        self.ask(host.pid, "SELECT * FROM training_logs", status=p.BAD_DATA)
        self.assertIn("%s is not a folder, or is a link: probing does not use it" % mine, self.said)
        _, said = self.end(host)
        self.assertEqual("probing: no rows of training_logs are kept: %s is not a folder, or is a link: probing does not use it\n" % mine, said)

    def test_full_memory_is_no_signal(self):
        p.need_root()
        full = os.path.join(self.folder, "full")
        os.mkdir(full)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=1777", "none", full], stderr=subprocess.DEVNULL)
        if mounted.returncode != 0:
            self.skipTest("no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", full])
        self.environment["PROBING_DATA_DIR"] = full
        host = self.begin()
        self.run_in(host, "for i in range(20000): probing.log(epoch=i)")
        self.assertIn("No space left on device", self.end(host)[1])

    def test_a_container_has_its_own(self):
        """Another PID, and another /dev/shm, which only the kernel's view of the process leads to."""
        place = p.own_pids()
        p.need_place(place)
        self.environment.pop("PROBING_DATA_DIR", None)
        within = place.prefix + ["sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
        host = self.begin(prefix=within)
        self.assertEqual("2\n", self.run_in(host, "probing.log(epoch=5); print(len(os.listdir('/dev/shm/probing-0')) + 1)"))
        with open("/proc/%d/task/%d/children" % (host.pid, host.pid)) as children:
            pid = int(children.read())
        self.assertNotEqual("%d\n" % pid, self.run_in(host, "print(os.getpid())"))
        self.assertEqual([[5]], self.ask(pid, "SELECT epoch FROM training_logs"))

    def test_there_is_a_limit(self):
        host = self.begin()
        self.run_in(host, """
tables = [probing.ExternalTable("t%d" % n, ["a"], rows=8) for n in range(300)]
for t in tables:
    t.append(1)
tables[0].drop()
probing.ExternalTable("last", {"a": int}, rows=8).append(2)
probing.ExternalTable("big", {"a": str}, rows=100000, text_bytes=4096).append("x")
""")
        self.assertEqual([[256, 256, 2]], self.ask(host.pid, "SELECT count(*), sum(appended), (SELECT a FROM last) FROM python.rings"))
        self.assertEqual("probing: no rows of t256 are kept: the process has 256 tables, or 256 MB of them\n", self.end(host)[1])

    def test_users_are_apart(self):
        p.need_root()
        p.need_program("setpriv")
        host = self.begin()
        self.run_in(host, "probing.log(secret=1)")
        user = ["setpriv", "--reuid=%d" % ORDINARY_USER, "--regid=%d" % ORDINARY_USER, "--clear-groups"]
        listed = subprocess.run(user + ["ls", os.path.join(self.folder, "probing-0")], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, universal_newlines=True)
        self.assertIn("Permission denied", listed.stderr)
        # what another user has planted under this user's name is not read, either
        os.rename(os.path.join(self.folder, "probing-0"), os.path.join(self.folder, "real"))
        shutil.copytree(os.path.join(self.folder, "real"), os.path.join(self.folder, "probing-0"))
        os.chown(os.path.join(self.folder, "probing-0"), ORDINARY_USER, ORDINARY_USER)
        os.chmod(os.path.join(self.folder, "probing-0"), 0o700)
        self.ask(host.pid, "SELECT * FROM training_logs", status=p.BAD_DATA)
        self.assertIn("belongs to another user, or is open to others: probing does not use it", self.said)

    def test_rows_of_ended_processes_are_removed_in_time(self):
        first = self.begin()
        self.run_in(first, "probing.log(epoch=1)")
        self.end(first)
        self.environment["PROBING_LOGLEVEL"] = "error"
        second = self.begin()
        self.run_in(second, "probing.log(epoch=2)")
        self.assertEqual([[1]], self.ask(first.pid, "SELECT epoch FROM training_logs"))
        (ended,) = glob.glob("%s/probing-*/%d.*/ended" % (self.folder, first.pid))
        os.utime(ended, (time.time() - 100000, time.time() - 100000))
        self.run_in(self.begin(), "probing.log(epoch=3)")
        self.ask(first.pid, "SELECT epoch FROM training_logs", status=p.NO_INPUT)
        self.assertIn("there is no process %d" % first.pid, self.said)

    def test_spoilt_files_are_errors(self):
        host = self.begin()
        self.run_in(host, "probing.log(epoch=1)")
        self.end(host)
        (path,) = glob.glob("%s/probing-*/%d.*/1.ring" % (self.folder, host.pid))
        with open(path, "r+b") as file:
            file.truncate(9000)
        self.ask(host.pid, "SELECT 1", status=p.NO_INPUT)
        self.assertIn("a ring of process %d is not read: 1.ring is damaged" % host.pid, self.said)


if __name__ == "__main__":
    unittest.main()
