# SPDX-License-Identifier: MIT
"""What is configured in the agent of a process, what it changes, and the memory of a process."""
import json
import tempfile
import time
import unittest

import probing_test as p
from test_inject import SLEEPS, InjectCase, need_injection

GROWS = """
import gc, sys, threading, time, tracemalloc
if sys.argv[1:] == ["trace"]:
    tracemalloc.start()
kept = []
print("ready {}", flush=True)
while True:
    time.sleep(0.01)
"""


@p.for_each_interpreter(globals())
class Configure(InjectCase):
    ONE_FOR_USERS = True

    def test_set_get_and_list(self):
        with self.program(SLEEPS) as target:
            done = p.probing(target.pid, "config", check=p.FAILED)
            self.assertEqual("probing: process %d has no agent: probing inject %d loads it\n" % (target.pid, target.pid), done.stderr)
            p.probing(target.pid, "inject", "-D", "follow_forks=on", check=p.OK)
            done = p.probing(target.pid, "config", check=p.OK)
            self.assertEqual(["probing.crash=default  (off)", "probing.eval=default  (on)", "probing.follow_forks=on",
                              "probing.sample_rate=default  (0.0101, which is 99 Hz)",
                              "probing.retention_days=default  (keep all)", "probing.torch.profiling=default  (off)",
                              "probing.torch.sample_rate=default  (as probing.torch.profiling has it)",
                              "probing.trace=default  (none)", "probing.watch_vars=default  (none)"], done.stdout.splitlines())
            done = p.probing(target.pid, "config", "probing.sample_rate=0.1", check=p.OK)
            self.assertEqual("probing.sample_rate=0.1\n", done.stdout)
            self.assertEqual("probing.sample_rate=0.1\n", p.probing("-t", target.pid, "config", "sample_rate", check=p.OK).stdout)
            body = json.loads(p.probing("config", target.pid, "--json", check=p.OK).stdout)
            self.assertEqual({"probing.crash": None, "probing.eval": None, "probing.follow_forks": True, "probing.sample_rate": 0.1,
                              "probing.retention_days": None, "probing.torch.profiling": None, "probing.torch.sample_rate": None,
                              "probing.trace": None, "probing.watch_vars": None}, body)

    def test_eval_off(self):
        with self.program(SLEEPS) as target:
            p.probing("inject", target.pid, "-D", "eval=off", check=p.OK)
            for words in (["eval", target.pid, "1"], ["repl", target.pid]):
                done = p.probing(*words, check=p.FAILED)
                self.assertEqual(("", "probing: the agent in process %d does not run the code: probing.eval is off in this process\n"
                                  % target.pid), (done.stdout, done.stderr))
            done = p.probing("config", target.pid, "eval=on", check=p.FAILED)
            self.assertRegex(done.stderr, "probing.eval is off, and stays off until the process ends")
            # also through an end and a new beginning of the agent
            p.probing("detach", target.pid, check=p.OK)
            p.probing("eval", target.pid, "1", check=p.FAILED)
            self.assertRegex(p.probing("list", check=p.OK).stdout, r"(?m)^ *%d .* no-eval " % target.pid)
            done = p.probing("memory", target.pid, check=p.OK)
            self.assertRegex(done.stderr, "probing.eval is off")
            self.assertRegex(done.stdout, "(?m)^rss +")


class OnePid(unittest.TestCase):
    """Verbs for one process refuse a command line without a PID, or with two."""

    def test_usage(self):
        for words in (["memory"], ["inject"], ["repl"], ["detach"], ["eval"], ["config", "eval=off"]):
            with self.subTest(words):
                done = p.probing(*words, check=p.USAGE)
                self.assertIn("probing %s: the PID of the process is missing\n" % words[0], done.stderr)
        for verb in ("memory", "inject", "repl", "detach", "doctor"):
            with self.subTest(verb):
                done = p.probing(verb, 1, 2, check=p.USAGE)
                self.assertIn("probing %s: one process at a time: 2?\n" % verb, done.stderr)

    def test_define_is_one_row(self):
        rows = [[line for line in p.probing(verb, "--help", check=p.OK).stdout.splitlines() if "--define" in line]
                for verb in ("inject", "run")]
        self.assertEqual(1, len(rows[0]))
        self.assertEqual(*rows)


class Keys(unittest.TestCase):
    def setUp(self):
        need_injection()

    def test_help_documents_each(self):
        keys = p.probing("config", check=p.OK).stdout.splitlines()
        self.assertEqual(9, len(keys))
        text = " ".join(p.probing("config", "--help", check=p.OK).stdout.split())
        for key in keys:
            self.assertIn(" ".join(key.split()), text)

    def test_what_is_not_allowed(self):
        with p.target([p.DEBIAN_PYTHON, "-c", SLEEPS]) as target:
            for word, says in (("nonsense=1", "there is no key nonsense: the keys are probing.crash, "),
                               ("nonsense", "there is no key nonsense"),
                               ("sample_rate=20", "it is 0.00005 to 10 s, or default"), ("eval=2", "it is on or off")):
                done = p.probing("config", target.pid, word, check=p.USAGE)
                self.assertIn(says, " ".join(done.stderr.split()))
                p.probing("inject", target.pid, "-D", word, check=p.USAGE)
            self.assertRegex(p.probing("list", check=p.OK).stdout, r"(?m)^ *%d .* - +\S*python" % target.pid)


class Memory(unittest.TestCase):
    def setUp(self):
        need_injection()
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.environment = dict(p.os.environ, XDG_CACHE_HOME=home.name)
        self.home = home.name

    def look(self, pid):
        return json.loads(p.probing("memory", pid, "--json", check=p.OK, env=self.environment).stdout)

    def test_from_outside(self):
        with p.target([p.DEBIAN_PYTHON, "-c", GROWS]) as target:
            done = p.probing(target.pid, "memory", check=p.OK, env=self.environment)
            self.assertRegex(done.stderr, "has no agent")
            self.assertRegex(done.stdout, r"(?m)^rss +\d+\.\d MiB$")
            body = self.look(target.pid)
            self.assertFalse(body["agent"])
            self.assertIn("vms_bytes", body)
            self.assertNotIn("python_blocks", body)
            self.assertEqual(0, body["growth"]["vms_bytes"])
            self.assertEqual(1, len(p.os.listdir(p.os.path.join(self.home, "probing", "memory"))))

    def test_growth_from_inside(self):
        with p.target([p.DEBIAN_PYTHON, "-c", GROWS, "trace"]) as target:
            p.probing("inject", target.pid, check=p.OK)
            first = self.look(target.pid)
            self.assertTrue(first["agent"])
            self.assertIsNone(first["growth"])
            self.assertFalse(first["torch"])
            p.probing("eval", target.pid, "kept.append(bytearray(50 << 20))\nkept += [object() for i in range(20000)]", check=p.OK)
            second = self.look(target.pid)
            self.assertGreater(second["growth"]["rss_bytes"], 45 << 20)
            self.assertGreater(second["growth"]["tracemalloc_bytes"], 50 << 20)
            self.assertGreaterEqual(second["growth"]["python_blocks"], 19000)
            self.assertGreater(second["growth"]["seconds"], 0)
            done = p.probing(target.pid, "memory", check=p.OK, env=self.environment)
            self.assertRegex(done.stdout, r"(?m)^tracemalloc +5\d\.\d MiB  [-+]\d")
            self.assertRegex(done.stdout, r"growth since the last call, \d+\.\d s ago\n$")
        # what was kept of processes that have ended goes
        with p.target([p.DEBIAN_PYTHON, "-c", GROWS]) as target:
            self.look(target.pid)
            names = p.os.listdir(p.os.path.join(self.home, "probing", "memory"))
            self.assertEqual([str(target.pid)], [name.split("-")[0] for name in names])

    def test_caches_of_torch_per_device(self):
        """A stand-in for torch, with two devices of which it says what torch.cuda says: there may be no GPU here."""
        stand_in = ("import sys, types; torch = sys.modules['torch'] = types.ModuleType('torch'); cuda = torch.cuda = types.SimpleNamespace("
                    "is_available=lambda: True, is_initialized=lambda: made, device_count=lambda: 2); made = False\n"
                    "for i, name in enumerate(('memory_allocated', 'max_memory_allocated', 'memory_reserved', 'max_memory_reserved')):\n"
                    "    setattr(cuda, name, lambda device, i=i: (device + 1) << 20 + i)\n")
        with p.target([p.DEBIAN_PYTHON, "-c", stand_in + GROWS]) as target:
            p.probing("inject", target.pid, check=p.OK)
            body = self.look(target.pid)
            self.assertTrue(body["torch"])
            self.assertEqual([], [name for name in body if name.startswith("cuda")])  # looking does not initialise it
            p.probing("eval", target.pid, "made = True", check=p.OK)
            body = self.look(target.pid)
            self.assertEqual((1 << 20, 2 << 21, 1 << 22, 2 << 23), tuple(body[name] for name in (
                "cuda_0_memory_allocated_bytes", "cuda_1_max_memory_allocated_bytes", "cuda_0_memory_reserved_bytes",
                "cuda_1_max_memory_reserved_bytes")))
            p.probing("eval", target.pid, "cuda.memory_reserved = lambda device: 100 << 20", check=p.OK)
            done = p.probing(target.pid, "memory", check=p.OK, env=self.environment)
            self.assertRegex(done.stdout, r"(?m)^cuda_0_memory_reserved +100\.0 MiB  \+96\.0 MiB$")

    def test_no_such_process(self):
        p.probing("memory", 4194303, check=p.NO_INPUT)


class Environment(p.Case):
    """What the environment, or the agent of the process, says of recordings where no option does."""

    def recorded_hz(self, *words, **environment):
        p.probing("record", *words, "-o", "out.db", env=dict(p.os.environ, **environment), check=p.OK)
        hz = p.connect("out.db").execute("SELECT hz FROM run").fetchone()[0]
        p.os.unlink("out.db")
        return hz

    def test_the_rate(self):
        p.need_perf()
        need_injection()
        with p.target([p.DEBIAN_PYTHON, "-c", SLEEPS]) as target:
            one = ["--pid", target.pid, "-d", "0.2"]
            self.assertEqual(10, self.recorded_hz(*one, PROBING_SAMPLE_RATE="0.1"))
            self.assertEqual(99, self.recorded_hz(*one, PROBING_SAMPLE_RATE=""))
            self.assertEqual(50, self.recorded_hz(*one, "-F", 50, PROBING_SAMPLE_RATE="0.1"))
            p.probing(target.pid, "config", "probing.sample_rate=0.04", check=p.OK)
            self.assertEqual(25, self.recorded_hz(*one, PROBING_SAMPLE_RATE="0.1"))
            for rate in ("fast", "0", "-1", "11"):
                done = p.probing("record", *one, env=dict(p.os.environ, PROBING_SAMPLE_RATE=rate), check=p.USAGE)
                self.assertIn("PROBING_SAMPLE_RATE (in the environment)", done.stderr)

    def test_the_retention_of_a_process(self):
        p.need_perf()
        need_injection()
        with p.fixture("demo.py") as target:
            p.probing(target.pid, "config", "probing.retention_days=%.9f" % (1 / 86400), check=p.OK)
            p.probing("record", "--pid", target.pid, "-F", 499, "-d", 3.5, "-o", "out.db", check=p.OK)
        self.assertGreater(json.loads(p.probing("info", "--json", "out.db", check=p.OK).stdout)[0]["dropped"], 0)

    def test_the_folder(self):
        p.need_perf()
        p.os.mkdir("data")
        environment = dict(p.os.environ, PROBING_DATA_DIR=p.os.path.abspath("data"))
        p.probing("record", "--", p.DEBIAN_PYTHON, "-c", "sum(range(10**7))", env=environment, check=p.OK)
        self.assertIn("probing.db", p.os.listdir("data"))
        self.assertNotIn("probing.db", p.os.listdir("."))
        p.probing("report", env=environment, check=p.OK)
        p.probing("sql", "SELECT 1", env=environment, check=p.OK)
        for verb in ("record", "report", "info"):
            done = p.probing(*([verb] + (["--", "true"] if verb == "record" else [])),
                             env=dict(environment, PROBING_DATA_DIR="/nowhere"), check=p.USAGE)
            self.assertIn("PROBING_DATA_DIR (in the environment) is /nowhere, which is not a folder", done.stderr)

    def test_the_log_level(self):
        p.need_perf()
        words = ["record", "-o", "out.db", "--", p.DEBIAN_PYTHON, "-c", "sum(range(10**7))"]
        self.assertEqual("", p.probing(*words, env=dict(p.os.environ, PROBING_LOGLEVEL="error"), check=p.OK).stderr)
        self.assertNotEqual("", p.probing(*words, env=dict(p.os.environ, PROBING_LOGLEVEL="info"), check=p.OK).stderr)
        done = p.probing(*words, env=dict(p.os.environ, PROBING_LOGLEVEL="loud"), check=p.USAGE)
        self.assertIn("PROBING_LOGLEVEL (in the environment) is loud: it is off, error, warn", done.stderr)
