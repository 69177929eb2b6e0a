# SPDX-License-Identifier: MIT
"""The commands that the older probing documents, in a shell and as its pages have them: they work, or say what to type instead."""
import os
import subprocess
import textwrap
import time
import unittest

import probing_test as p
import terminal
from test_start import SAYS_ENVIRONMENT, StartCase

IMAGENET = """
    import argparse, torch, torchvision
    parser = argparse.ArgumentParser()
    parser.add_argument("-a", "--arch")
    parser.add_argument("-b", "--batch-size", type=int)
    parser.add_argument("--dummy", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = getattr(torchvision.models, arguments.arch)(num_classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(3):
        images, labels = torch.randn(arguments.batch_size, 3, 64, 64), torch.randint(0, 10, (arguments.batch_size,))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model.eval()(images), labels)
        loss.backward()
        optimizer.step()
        print(float(loss).hex(), flush=True)
    """

TRAIN = """
    import gc, threading
    class Model:
        def __init__(self):
            self.weights = [1, 2, 3]
        def forward(self, x):
            return sum(w * x for w in self.weights)
    model = Model()
    steps = 0
    def train():
        global steps
        steps += 1
        acc1 = model.forward(steps)
        loss = 1 / steps
        for _ in range(20000):
            pass
        return loss, acc1
    print("ready", flush=True)
    while True:
        train()
    """

# A training as the pages of the older probing have it; with torch where that is installed.
DOCUMENTED = """
    import time
    import probing
    try:
        import torch
        model = torch.nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    except ImportError:
        torch = None
    def forward(epoch):
        return model(torch.ones(4, 8)).pow(2).mean() if torch else 1 / (epoch + 1)
    def train(epoch):
        for i in range(5):
            loss = forward(epoch)
            if torch:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            acc1 = float(loss) * 2
            probing.step()
            probing.log(epoch=epoch, step=i, loss=loss)
    print("ready", flush=True)
    time.sleep(0.5)
    for epoch in range(10 ** 6):
        train(epoch)
        time.sleep(0.05)
    """

PROBES = "functions: [train, Model.forward]\nvariables: [loss@train, acc1@train]\ninterval: 0.05\n"


def has_torch():
    return p.has_modules(p.DEBIAN_PYTHON, "torch", "torchvision")


class Shell:
    """One shell that a user types lines into; each answers (status, stdout, stderr)."""

    def __init__(self, folder, environment):
        self.folder, self.n = folder, 0
        self.process = subprocess.Popen(["bash"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def path(self, kind, n=None):
        return os.path.join(self.folder, "line-%d.%s" % (n or self.n, kind))

    def read(self, kind, n=None):
        with open(self.path(kind, n)) as file:
            return file.read()

    def type(self, line):
        self.n += 1
        with open(self.path("typed"), "w") as file:
            file.write(line)
        self.process.stdin.write('eval "$(cat %s)" >%s 2>%s </dev/null; echo $?\n' %
                                 (self.path("typed"), self.path("out"), self.path("err")))
        self.process.stdin.flush()
        return int(self.process.stdout.readline()), self.read("out"), self.read("err")

    def end(self):
        self.process.communicate("kill $(jobs -p) 2>/dev/null; wait\n", timeout=30)


class Typed(StartCase):
    def setUp(self):
        super().setUp()
        for name, text in (("imagenet.py", IMAGENET), ("train.py", TRAIN)):
            os.makedirs(os.path.join(self.folder, "examples"), exist_ok=True)
            self.write(os.path.join("examples", name) if name == "imagenet.py" else name, textwrap.dedent(text))
        self.write("custom_probes.yaml", PROBES)
        os.mkdir(os.path.join(self.folder, "bin"))
        os.symlink(self.interpreter, os.path.join(self.folder, "bin", "python"))
        os.symlink(p.BINARY, os.path.join(self.folder, "bin", "probing"))
        environment = self.environment(HOME=self.folder, XDG_CACHE_HOME=self.folder)
        environment["PATH"] = os.path.join(self.folder, "bin") + ":" + environment["PATH"]
        self.shell = Shell(self.folder, environment)
        self.addCleanup(self.shell.end)

    def type(self, line, status=p.OK):
        done = self.shell.type(line)
        self.assertEqual(status, done[0], (line, done))
        return done[1]

    def refused(self, line, *says, status=p.USAGE):
        done = self.shell.type(line)
        self.assertEqual(status, done[0], (line, done))
        for sentence in says:
            self.assertIn(sentence, " ".join(done[2].split()), line)

    def train(self, line="python train.py & PID=$!"):
        """Its PID, once it trains."""
        self.type(line)
        n = self.shell.n
        p.wait_until(lambda: "ready" in self.shell.read("out", n), 30, "the program's start")
        self.errors = lambda: self.shell.read("err", n)
        return int(self.type("echo $PID"))


class Inside(Typed):
    NIGHTLY_FOR_USERS = True  # what an agent does for its program does not depend on rights

    def test_probing_at_the_start_of_a_training(self):
        if not has_torch():
            self.skipTest("no torch")
        line = "python examples/imagenet.py -a resnet18 --dummy -b 1"
        alone = self.type(line)
        self.assertEqual(3, alone.count("0x"))
        status, out, err = self.shell.type("PROBING=1 " + line)
        self.assertEqual((0, alone), (status, out))
        self.assertRegex(err, r"^probing: active in process \d+ \(followed: this process only\)\n$")

    def test_inject_and_eval(self):
        for line in "probing $PID inject", "probing -t $PID inject", "probing inject $PID", "probing $PID in", "probing i $PID":
            pid = self.train()
            self.assertRegex(self.type(line), "^the agent is in process %d " % pid)
            self.assertEqual("[1, 2, 3]\n", self.type('probing $PID eval "print(model.weights)"'))
            self.type("kill $PID")
        self.train()
        self.assertEqual("14\n15\n", self.type('probing -t $PID eval "import math\nfor i in 14, 15:\n    print(i)"'))
        status, out, err = self.shell.type('probing $PID e "print(1)\nmodel.nothing"')
        self.assertEqual((p.FAILED, "1\n"), (status, out))
        self.assertRegex(err, r"(?s)Traceback.*AttributeError: 'Model' object has no attribute 'nothing'\n$")
        if has_torch():
            self.assertRegex(self.type('probing $PID eval "import torch; print(torch.cuda.is_available())"'), "^(True|False)\n$")

    def test_stacks(self):
        self.train()
        for line in "probing $PID backtrace", "probing $PID bt", "probing $PID b $PID":
            self.assertIn("train", self.type(line))
        self.assertIn("MainThread", self.type('probing $PID "SELECT * FROM python.backtrace"'))
        for verb in "query", "q":
            rows = self.type('probing $PID %s "SELECT func,file,lineno,depth,frame_type FROM python.backtrace ORDER BY depth LIMIT 10" '
                             '-f csv' % verb).splitlines()
            self.assertEqual("func,file,lineno,depth,frame_type", rows[0])
            self.assertGreaterEqual(len(rows), 3)

    def test_views(self):
        pid = self.train()
        for line in "probing $PID memory", "probing $PID mem":
            self.assertRegex(self.type(line), r"(?m)^rss +\d")
        for verb, name in ("flamegraph", "f.svg"), ("flame", "g.svg"), ("fg", "h.svg"):
            self.type("probing $PID %s -o %s -d 1" % (verb, name))
            with open(os.path.join(self.folder, name)) as file:
                self.assertIn("<svg", file.read(), verb)
        self.type("probing $PID flamegraph -j -o f.json -d 1")
        with open(os.path.join(self.folder, "f.json")) as file:
            self.assertIn("speedscope", file.read())
        for verb in "tables", "tbl":
            self.assertIn("python.backtrace", self.type("probing $PID " + verb))
        for line in "probing list -v", "probing ls --tree", "probing l":
            self.assertRegex(self.type(line), r"(?m)^ *%d .*python train\.py" % pid)

    def test_config(self):
        self.train("PROBING=1 python train.py & PID=$!")
        self.assertIn("probing.sample_rate=default", self.type("probing $PID config"))
        self.assertEqual("probing.sample_rate=0.1\n", self.type("probing $PID config probing.sample_rate=0.1"))
        self.assertEqual("probing.sample_rate=0.1\n", self.type("probing -t $PID cfg probing.sample_rate"))
        self.assertEqual("probing.torch.profiling=on\n", self.type("probing $PID config probing.torch.profiling=on"))
        for key, instead in (("probing.pprof.sample_freq=99", "probing.sample_rate"),
                             ("probing.server.address=0.0.0.0", "opens no port")):
            for line in "probing $PID config " + key, "probing $PID config " + key.split("=")[0], "probing $PID inject -D " + key:
                self.refused(line, "there is no key %s: " % key.split("=")[0], instead)
        self.refused("probing $PID config probing.nothing=1", "there is no key probing.nothing: the keys are probing.crash")

    def test_variables_of_the_environment(self):
        pid = self.train("PROBING_SAMPLE_RATE=0.1 PROBING_RETENTION_DAYS=7 PROBING=1 python train.py & PID=$!")
        self.assertEqual("probing.sample_rate=0.1\nprobing.retention_days=7\n",
                         self.type("probing $PID config sample_rate retention_days"))
        self.assertEqual("probing: active in process %d (followed: this process only)\n" % pid, self.errors())
        pid = self.train('PROBING_TORCH_WATCH_VARS="loss@train" PROBING_PORT=8080 PROBING=1 python train.py & PID=$!')
        lines = self.errors().splitlines()
        self.assertEqual(2, len(lines), lines)
        self.assertIn("PROBING_PORT has no effect: probing opens no port", lines[1])
        self.assertEqual("probing.watch_vars=loss@train\n", self.type("probing $PID config probing.torch.watch_vars"))
        p.wait_until(lambda: "  loss" in self.type("probing $PID 'SELECT * FROM python.variables LIMIT 5'"), 20, "values")

    def test_run_and_launch(self):
        for verb in "run", "launch", "launch -r":
            pid = self.train("probing %s python train.py & PID=$!" % verb)
            self.assertRegex(self.errors(), r"^probing: active in process %d \(.*\)\n$" % pid)
            self.assertEqual("[1, 2, 3]\n", self.type('probing $PID eval "print(model.weights)"'))
        # nothing is left of it for the children of the program
        self.assertEqual("None None None\n", self.type("probing run python -c '%s'" % SAYS_ENVIRONMENT.replace("'", '"')))

    def test_attach(self):
        pid = self.train()
        self.assertEqual("process %d has probes on 2 functions and 2 variables\n" % pid,
                         self.type("probing attach $PID --config custom_probes.yaml"))

        def values():
            return self.type('probing $PID "SELECT DISTINCT name FROM python.variables ORDER BY name" -f csv').split()
        p.wait_until(lambda: values() == ["name", "acc1", "loss"], 20, "the variables' values")
        self.assertRegex(self.type("probing $PID 'SELECT * FROM python.variables'"), r"train +loss|loss")

    def test_the_prompt(self):
        terminal.need_pyte()
        pid = self.train()
        screen = terminal.Terminal(["bash", "-c", "%s -t %d repl" % (p.BINARY, pid)], rows=40, columns=120,
                                   environment={"HOME": self.folder})
        self.addCleanup(screen.__exit__)
        screen.wait_for(lambda lines: ">>>" in lines)
        screen.press("[x.weights for x in gc.get_objects() if type(x) is Model]\r")
        screen.wait_for(lambda lines: "[[1, 2, 3]]" in lines)


class Documented(Typed):
    """Statements of its pages, against the rows of a training that runs."""

    def setUp(self):
        super().setUp()
        self.write("documented.py", textwrap.dedent(DOCUMENTED))

    def rows(self, sql, status=p.OK):
        """Without the heading: fields of each row."""
        return [line.split(",") for line in self.type('probing $PID "%s" -f csv --no-header' % sql, status).splitlines()]

    def test_a_training(self):
        pid = self.train('PROBING_TORCH_WATCH_VARS="loss@train,acc1@train" PROBING_TRACE=forward PROBING_CRASH=1 PROBING=1 '
                         'python documented.py & PID=$!')
        self.assertEqual("probing: active in process %d (followed: this process only)\n" % pid, self.errors())
        p.wait_until(lambda: len(self.rows("SELECT * FROM python.variables WHERE name = 'acc1'")) > 5, 30, "variables")
        p.wait_until(lambda: self.rows("SELECT 1 FROM training_logs WHERE epoch = 2"), 30, "the end of epoch 1")
        variables = self.rows("SELECT timestamp, step, func, name, value FROM python.variables")
        self.assertEqual({("train", "loss"), ("train", "acc1")}, {tuple(row[2:4]) for row in variables})
        self.assertTrue(all(float(row[4]) >= 0 for row in variables), variables)
        self.assertGreater(max(int(row[1] or 0) for row in variables), 1)
        timed = self.rows("SELECT operation_name, avg(duration_ms), count(*) FROM profiling_data GROUP BY operation_name")
        self.assertEqual(["forward"], [row[0] for row in timed])
        self.assertTrue(float(timed[0][1]) > 0 and int(timed[0][2]) > 5, timed)
        logs = self.rows("SELECT epoch, avg(loss), min(loss) FROM training_logs GROUP BY epoch")
        self.assertEqual([str(i) for i in range(len(logs))], [row[0] for row in logs])
        self.assertTrue(all(0 <= float(row[2]) <= float(row[1]) for row in logs), logs)
        self.assertEqual(1, len(self.rows("SELECT * FROM memory_usage WHERE timestamp > now() - interval '5 min'")))
        for hour, memory in self.rows("SELECT hour(timestamp), avg(memory_mb) FROM memory_usage GROUP BY hour(timestamp)"):
            self.assertTrue(0 <= int(hour) < 24 and float(memory) > 1)
        self.assertEqual([["5"]], self.rows("SELECT count(*) FROM training_logs WHERE epoch = 1 AND timestamp > now() - 600"))
        self.assertIn("probing.watch_vars=loss@train,acc1@train\n", self.type("probing $PID config"))
        # in a process that began without any, too
        self.type("probing $PID config probing.trace=train probing.torch.watch_vars=default")
        p.wait_until(lambda: self.rows("SELECT 1 FROM profiling_data WHERE operation_name = 'train'"), 20, "calls of train()")
        # and after its death
        self.assertEqual(128 + 11, self.shell.type("kill -SEGV $PID; wait $PID")[0])
        self.assertIn("forward", str(self.rows("SELECT operation_name, avg(duration_ms), count(*) FROM profiling_data GROUP BY 1")))
        self.assertRegex(self.type("probing crash $PID"), r"(?s)SIGSEGV .*<module>  \(documented.py.*== Last rows of training_logs")


class Elsewhere(Typed):
    """What this probing has under another name, or not at all."""

    def test_tables(self):
        self.train()
        for table, instead in (("python.torch_trace", "probing.torch.profiling=on makes each pass"),
                               ("profiling_data", "python.function_time"), ("training_logs", "python.variables"),
                               ("python.memory", "memory_usage")):
            self.refused('probing $PID "SELECT * FROM %s"' % table, "no such table: " + table, instead, status=p.BAD_DATA)

    def test_verbs_and_remote_processes(self):
        self.refused("probing rdma", "there is no verb rdma: ")
        for line in "probing -t 10.0.0.1:8080 backtrace", "probing node7:8080 query 'SELECT 1'", "probing --target=[::1]:8080 eval 1":
            self.refused(line, "probing connects to no port; on the machine of the process, probing list shows its PID")


if __name__ == "__main__":
    unittest.main()
