# SPDX-License-Identifier: MIT
"""Rows of collectives and messages of torch.distributed, from ranks that really talk to each other."""
import contextlib
import functools
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import probing_test as p
from test_agent import LIBRARY
from test_start import StartCase

FIXTURE = os.path.join(p.ROOT, "fixtures", "collectives.py")
AS_TYPED = "SELECT src_rank, dst_rank, avg(latency_ms) FROM comm_metrics GROUP BY 1, 2"
LATE_S = 0.3
STORES = itertools.count()  # where ranks meet: a file of each start
MAX_RANKS = 4


@functools.lru_cache(maxsize=None)
def has_torch(python, what="torch.distributed.is_available()"):
    return p.has_modules(python, "torch") and subprocess.run([python, "-c", "import sys, torch, torch.distributed; sys.exit(not (%s))" % what],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class CommCase(unittest.TestCase):
    """Ranks of the fixture, each a process with the agent."""
    python = p.DEBIAN_PYTHON
    has_torchrun = True  # Debian's torch 2.14 is built without libuv, which torchrun needs
    timeout_s = 300      # of all ranks together, each of which imports torch: only ranks that hang take so long

    @classmethod
    def own_variables(cls, folder):
        return {"RESULT": os.path.join(folder, "result"), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
                "PROBING_DATA_DIR": folder, "USE_LIBUV": "0", "STORE": os.path.join(folder, "store.%d" % next(STORES)),
                "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor")}

    @classmethod
    def environment(cls, folder, **more):
        return dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **cls.own_variables(folder), **more)

    @classmethod
    def ranks(cls, folder, size, *arguments, spawn=False, agent=LIBRARY, environment=None):
        """What each rank wrote."""
        environment = environment or cls.environment(folder, **({"AGENT": agent} if agent else {}))
        command = [cls.python, "-m", "torch.distributed.run", "-r", "2", "-t", "2", "--log_dir", folder, "--nnodes", "1",
                   "--nproc_per_node", str(size), "--rdzv_backend", "c10d", "--rdzv_endpoint", "127.0.0.1:0", FIXTURE]
        if spawn or not cls.has_torchrun:
            command = [cls.python, FIXTURE, "--spawn", str(size)]
        done = subprocess.run(command + list(arguments), env=environment, timeout=cls.timeout_s, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise AssertionError("exit status %d: %s" % (done.returncode, done.stdout[-4000:]))
        results = []
        for rank in range(size):
            with open(os.path.join(folder, "result.%d" % rank)) as file:
                results.append(json.load(file))
        return results

    @classmethod
    @contextlib.contextmanager
    def folder(cls):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o700)
            yield folder

    @classmethod
    def sql(cls, folder, pid, query):
        done = p.probing("sql", pid, query, "-f", "json", check=p.OK, env=cls.environment(folder))
        return json.loads(done.stdout)


class Gloo(CommCase):
    NIGHTLY_FOR_USERS = True  # a program's own calls do not depend on rights; Hook's go through its files

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(LIBRARY):
            raise unittest.SkipTest("built without the agent")
        if not has_torch(cls.python):
            raise unittest.SkipTest("no torch.distributed for %s" % cls.python)
        cls.place = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.place)
        os.chmod(cls.place, 0o700)
        cls.plain = cls.ranks(cls.place, 2, agent=None)
        cls.two = cls.ranks(cls.place, 2, "--trace", "--late", str(LATE_S))

    def rows(self, rank, **wanted):
        return [row for row in self.two[rank]["comm_metrics"] if all(row[name] == value for name, value in wanted.items())]

    def test_results_are_equal_to_the_bit(self):
        self.assertEqual([one["digest"] for one in self.plain], [one["digest"] for one in self.two])

    def test_results_of_three_ranks_are_equal_to_the_bit(self):
        """A third is no power of two: whether a sum is divided, or multiplied by a rounded third, shows. Started by
        torch.multiprocessing."""
        with self.folder() as folder:
            plain = self.ranks(folder, 3, "--views", spawn=True, agent=None)
            traced = self.ranks(folder, 3, "--views", "--trace", spawn=True)
        self.assertEqual([one["digest"] for one in plain], [one["digest"] for one in traced])
        self.assertEqual([17, 17, 13], [len(one["comm_metrics"]) for one in traced])

    def test_sums_of_distributed_data_parallel(self):
        """A sum of all gradients a step, which the reducer starts in C++; the line is that of backward()."""
        for rank in range(2):
            sums = self.rows(rank, op="all_reduce", func="train")
            self.assertEqual([4 * (64 * 64 + 64 + 64 * 8 + 8)] * 4, [row["bytes"] for row in sums])
            self.assertEqual({1}, {row["async"] for row in sums})
            with open(FIXTURE) as file:
                self.assertIn("backward()", file.read().splitlines()[sums[0]["line"] - 1])
            self.assertEqual(FIXTURE, sums[0]["file"])

    def test_the_time_lasts_until_the_end(self):
        """Rank 1 calls late: rank 0 waits for it, although all_reduce(async_op=True) returned at once."""
        early, = self.rows(0, op="all_reduce", func="operations", group=self.rows(0)[0]["group"])
        late, = self.rows(1, op="all_reduce", func="operations", group=self.rows(1)[0]["group"])
        self.assertEqual((1, 1), (early["async"], late["async"]))
        self.assertGreaterEqual(early["latency_ms"], LATE_S * 1e3)
        for row, rank in ((early, 0), (late, 1)):  # of its own call
            self.assertLess(row["latency_ms"], self.two[rank]["took_ms"])
        self.assertEqual(early["seq"], late["seq"])

    def test_who_talks_to_whom(self):
        self.assertEqual([(0, 1, 4000, 1, 0), (0, 1, 40, 2, 1), (0, 1, 80, 3, 1)],
                         [tuple(row[name] for name in ("src_rank", "dst_rank", "bytes", "seq", "async"))
                          for row in self.rows(0, op="send")])
        self.assertEqual([(0, 1, 4000, 1, 0), (0, 1, 40, 2, 1), (0, 1, 80, 3, 0)],
                         [tuple(row[name] for name in ("src_rank", "dst_rank", "bytes", "seq", "async"))
                          for row in self.rows(1, op="recv")])
        self.assertEqual({(1, 0), (1, 1)}, {(row["src_rank"], row["dst_rank"]) for rank in range(2)
                                            for row in self.rows(rank, op="broadcast", func="operations")})
        self.assertEqual([(1, 0)], [(row["src_rank"], row["dst_rank"]) for row in self.rows(1, op="reduce")])

    def test_groups_and_their_numbers(self):
        for rank in range(2):
            groups = {}
            for row in sorted(self.two[rank]["comm_metrics"], key=lambda row: row["call"]):
                if row["op"] not in ("send", "recv"):
                    groups.setdefault(row["group"], []).append(row["seq"])
            self.assertEqual(2, len(groups))
            for numbers in groups.values():
                self.assertEqual(list(range(1, len(numbers) + 1)), numbers)
        self.assertEqual({("gloo", 2, 0)}, {(row["backend"], row["world_size"], row["rank"])
                                            for row in self.two[0]["comm_metrics"]})

    def test_as_typed(self):
        rows = self.sql(self.place, self.two[0]["pid"], AS_TYPED)
        self.assertIn((0, 1), {(row["src_rank"], row["dst_rank"]) for row in rows})
        for row in rows:
            own = [one["latency_ms"] for one in self.two[0]["comm_metrics"]
                   if (one["src_rank"], one["dst_rank"]) == (row["src_rank"], row["dst_rank"])]
            self.assertAlmostEqual(sum(own) / len(own), row["avg(latency_ms)"], places=6)

    def test_four_ranks(self):
        with self.folder() as folder:
            four = self.ranks(folder, MAX_RANKS, "--trace")
            for one in four:
                self.assertEqual(len(one["comm_started"]), len(one["comm_metrics"]))
            self.assertEqual([13] * MAX_RANKS, [max(row["seq"] for row in one["comm_metrics"] if row["world_size"] == MAX_RANKS)
                                                for one in four])
            self.assertIn({"n": 4}, self.sql(folder, four[3]["pid"], "SELECT count(*) AS n FROM comm_metrics WHERE op = 'all_reduce' "
                                                                     "AND func = 'train'"))

    def test_what_hangs(self):
        """An operation that has not ended is in comm_started alone; and the answer for all ranks names those that have not called it."""
        with self.folder() as folder:
            program = subprocess.Popen([self.python, FIXTURE, "--spawn", "2", "--trace", "--hang"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True,
                                       env=self.environment(folder, AGENT=LIBRARY))
            try:
                paths = [os.path.join(folder, "result.%d" % rank) for rank in (0, 1)]
                p.wait_until(lambda: all(os.path.exists(path) and os.path.getsize(path) > 0 for path in paths), self.timeout_s, "results")
                pids = []
                for path in paths:
                    with open(path) as file:
                        pids.append(json.load(file)["pid"])
                open_sql = ('SELECT op, "group", seq, func FROM comm_started WHERE call NOT IN (SELECT call FROM comm_metrics)')
                p.wait_until(lambda: self.sql(folder, pids[0], open_sql), self.timeout_s, "the operation that hangs")
                rows = self.sql(folder, pids[0], open_sql)
                for verb, more in (("backtrace", ()), ("report", ("-d", "1s"))):
                    told = p.probing("cluster", verb, "--pid", "%d,%d" % tuple(pids), *more, check=p.OK, env=self.environment(folder)).stdout
                    self.assertRegex(told, r"(?m)^group \S*: not all ranks have come to collective number 14\n  pid %d: after number 13, "
                                           r"barrier\n  pid %d: in number 14, all_reduce$" % (pids[1], pids[0]))
            finally:
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
        self.assertEqual([("all_reduce", 14, "run")], [(row["op"], row["seq"], row["func"]) for row in rows])


# The main thread ends while a thread of gloo writes the row: that thread lets the GIL go, and needs it again.
ENDS_MEANWHILE = """
import ctypes, os, sys, time, torch, torch.distributed as distributed, probing
from probing import _comm
store = sys.argv[1]
child = os.fork()
distributed.init_process_group("gloo", init_method="file://" + store, rank=int(child == 0), world_size=2)
if child == 0:
    while not os.path.exists(store + ".called"):
        time.sleep(0.01)
    distributed.all_reduce(torch.ones(4))
    os._exit(0)
probing.enable_torch_profiling("off,comm=on")
begun = []
class Slow(object):
    @staticmethod
    def append(*row):
        begun.append(row)
        time.sleep(0.5)
        print("written", flush=True)
_comm._comm.table = Slow
tensor = torch.ones(4)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))  # gloo's thread shall not be the one that frees it
work = distributed.all_reduce(tensor, async_op=True)
open(store + ".called", "w").close()
while not begun:
    time.sleep(0.01)
if "off" in sys.argv:
    probing.enable_torch_profiling("off")
"""


class Hook(StartCase):
    """Switched on by PROBING_TORCH_PROFILING, as a user does it, with torchrun."""
    ranks_of = CommCase  # of the same interpreter
    ready_s = 120  # two of them import torch, on a busy machine: only a program that hangs takes so long

    def test_of_the_environment(self):
        if not has_torch(self.python):
            self.skipTest("no torch.distributed for %s" % self.python)
        with CommCase.folder() as folder:
            environment = self.environment(PROBING="2", PROBING_TORCH_PROFILING="off,comm=on", PROBING_LOGLEVEL="warn",
                                           **CommCase.own_variables(folder))
            for one in self.ranks_of.ranks(folder, 2, environment=environment):
                self.assertEqual([{"sums": 4, "all": 17}], CommCase.sql(
                    folder, one["pid"], "SELECT sum(op = 'all_reduce' AND func = 'train') AS sums, count(*) AS 'all' FROM comm_metrics"))
                self.assertIn((0, 1), [(row["src_rank"], row["dst_rank"]) for row in CommCase.sql(folder, one["pid"], AS_TYPED)])

    def test_a_call_that_raises_does_not_hang(self):
        if not has_torch(self.python):
            self.skipTest("no torch.distributed for %s" % self.python)
        done = self.run_python("-c", """
import tempfile, torch, torch.distributed as distributed, probing
from probing import _comm
with tempfile.TemporaryDirectory() as folder:
    distributed.init_process_group("gloo", init_method="file://" + folder + "/store", rank=0, world_size=1)
    probing.enable_torch_profiling("off,comm=on")
    for length in 2, 3:
        try:
            distributed.all_gather([torch.ones(2)], torch.ones(length))
        except (RuntimeError, ValueError) as error:
            print("raised")
    print([(row[0], row[4] is None) for _, row in probing.ExternalTable.get("comm_metrics").take()], len(_comm._comm.pending))
    distributed.destroy_process_group()  # ends the threads of gloo
""", PROBING="1", PROBING_LOGLEVEL="warn")
        self.assertEqual("raised\n[('all_gather', False), ('all_gather', True)] 0\n", done.stdout, done.stderr)

    def test_the_end_waits_for_threads_of_gloo(self):
        """A thread that asks for the GIL of an interpreter that has ended would end the process by std::terminate."""
        if not has_torch(self.python):
            self.skipTest("no torch.distributed for %s" % self.python)
        for word in "on", "off":
            with self.subTest(word):
                done = self.run_python("-c", ENDS_MEANWHILE, os.path.join(self.folder, "store." + word), word, PROBING="1",
                                       PROBING_LOGLEVEL="warn", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
                self.assertEqual((0, "written\n"), (done.returncode, done.stdout), done.stderr)
                self.assertNotRegex(done.stderr, "probing|terminate")  # newer ones of gloo say with whom they are connected

    def test_off_leaves_nothing(self):
        if not has_torch(self.python):
            self.skipTest("no torch.distributed for %s" % self.python)
        done = self.run_python("-c", """
import torch, torch.distributed as distributed, probing
def methods():
    return dict(vars(distributed.ProcessGroup)), dict(vars(distributed.Work)), distributed.Reducer
before = methods()
for spec in ("on", "off,comm=on", "0.5"):
    probing.enable_torch_profiling(spec)
    assert methods() != before, spec
    probing.enable_torch_profiling("off")
    assert methods() == before, spec
probing.enable_torch_profiling("on,comm=off")
assert methods() == before
probing.enable_torch_profiling("on")
probing.disable_torch_profiling()
assert methods() == before
print("as before")
""", PROBING="1", PROBING_LOGLEVEL="warn")
        self.assertEqual(("as before\n", ""), (done.stdout, done.stderr))


class Nccl(CommCase):
    """One rank on one GPU; of rows that stay in the process, so that a machine without a build of probing can run it."""
    python = os.environ.get("PROBING_CUDA_PYTHON") or (sys.executable if p.has_modules(sys.executable, "torch") else p.DEBIAN_PYTHON)

    @classmethod
    def setUpClass(cls):
        if not has_torch(cls.python, "torch.cuda.is_available() and torch.distributed.is_nccl_available()"):
            raise unittest.SkipTest("no GPU that torch of %s can use with NCCL" % cls.python)
        cls.place = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.place)
        os.chmod(cls.place, 0o700)
        cls.plain, = cls.ranks(cls.place, 1, "--backend", "nccl", spawn=True, agent=None)
        cls.one, = cls.ranks(cls.place, 1, "--backend", "nccl", "--trace", spawn=True, agent=None)

    def test_results_are_equal_to_the_bit(self):
        self.assertEqual(self.plain["digest"], self.one["digest"])

    def test_sums_of_distributed_data_parallel(self):
        sums = [row for row in self.one["comm_metrics"] if row["op"] == "all_reduce" and row["world_size"] == 1 and row["async"]]
        self.assertGreaterEqual(len(sums), 4)
        self.assertEqual({4 * (64 * 64 + 64 + 64 * 8 + 8)}, {row["bytes"] for row in sums[:4]})

    def test_each_operation_ends(self):
        """With a time of the GPU, between its events."""
        self.assertEqual(sorted(row["call"] for row in self.one["comm_started"]),
                         sorted(row["call"] for row in self.one["comm_metrics"]))
        for row in self.one["comm_metrics"]:
            self.assertIsNotNone(row["latency_ms"], row)
            self.assertGreaterEqual(row["latency_ms"], 0, row)
            self.assertLess(row["latency_ms"], 10000, row)
            self.assertIn("nccl", row["backend"])


# The GPU fails: asking for its last events, too.
FAILS = """
from probing import _comm
comm = object.__new__(_comm.Comm)
comm.undo, comm.pending, comm.waited, comm.on_gpu, comm.callbacks = [], {}, {}, [1], set()
comm.can_record = lambda: 1 / 0
try:
    comm.collect()
except ZeroDivisionError:
    comm.fail()
print(comm.is_on, comm.on_gpu)
"""


# A GPU that does nothing of 5000 operations, then all of them.
OUTSTANDING = """
import collections, itertools, threading, types
from probing import _comm
torch = types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: True))
asked, is_done, rows = [], False, []
class Event:
    def query(self):
        asked.append(self)
        return is_done
    def elapsed_time(self, other):
        return 1.5
_comm._inside._events = types.SimpleNamespace(give=lambda *events: None)
comm = _comm.Comm.__new__(_comm.Comm)
comm.torch, comm.on_gpu, comm.pending, comm.lock = torch, collections.deque(), collections.OrderedDict(), threading.Lock()
comm.started = types.SimpleNamespace(append=lambda *row: None)
comm.table = types.SimpleNamespace(append=lambda *row: rows.append(row))
comm.can_record, comm.event = lambda: True, lambda device: Event()
most = 0
for i in range(5000):
    del asked[:]
    call = comm.begin(None, list(range(15)) + [i], "cuda:0")
    most = max(most, len(asked))
    comm.follow_gpu(call, None)
is_done = True
for i in range(5000, 5400):
    comm.follow_gpu(comm.begin(None, list(range(15)) + [i], "cuda:0"), None)
written = len(rows)
comm.collect()
print(most, len(comm.on_gpu), written > 5000, sorted(row[-1] for row in rows) == list(range(5400)), {row[4] for row in rows})
_comm.MAX_PENDING, is_done = 100, False
for i in range(300):
    comm.follow_gpu(comm.begin(None, list(range(15)) + [i], "cuda:0"), None)
print(len(comm.on_gpu), len(comm.pending))
"""


class Outstanding(unittest.TestCase):
    def test_few_events_are_asked(self):
        """An operation asks as many events of others however many there are, and all get their rows."""
        done = subprocess.run([p.DEBIAN_PYTHON, "-c", OUTSTANDING], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, PYTHONPATH=os.path.join(p.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1"))
        self.assertEqual("16 0 True True {1.5}\n100 100\n", done.stdout, done.stderr)


class Failing(unittest.TestCase):
    def test_it_does_not_reach_the_program(self):
        done = subprocess.run([p.DEBIAN_PYTHON, "-c", FAILS], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, PYTHONPATH=os.path.join(p.ROOT, "python"), PYTHONDONTWRITEBYTECODE="1"))
        self.assertEqual("False []\n", done.stdout, done.stderr)
        self.assertRegex(done.stderr, r"\Aprobing: rows of comm_metrics have ended, the program continues: ZeroDivisionError: .*\n\Z")


if __name__ == "__main__":
    unittest.main()
