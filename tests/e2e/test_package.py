# SPDX-License-Identifier: MIT
"""The package `probing` in processes whose Python has none: the agent brings it."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import probing_test as p
from test_inject import need_injection

WANTED = ("debian", "3_6", "3_8", "3_11", "3_13")

# Runs a line of stdin each, and knows no package probing.
HOST = """
import sys, threading
threading.Thread(target=len, args=("",)).start()  # up to CPython 3.6 a program without threads has no GIL to take
print("ready {}", flush=True)
space = globals()
for line in sys.stdin:
    exec(line, space)
    print("done", flush=True)
"""
FINDERS = "print(sum(getattr(one, '__name__', '') == 'Finder' for one in sys.meta_path))"
CALL = "__import__('sys')._probing_agent['call'](%r, %r)"


def interpreters():
    return [one for one in p.interpreters() if one.label in WANTED]


@p.for_each_interpreter(globals(), interpreters)
class Package(unittest.TestCase):
    interpreter = None

    def setUp(self):
        need_injection()
        p.need_interpreter(self.interpreter)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self.environment["PROBING_DATA_DIR"] = self.folder

    def begin(self, path=None):
        environment = dict(self.environment, PYTHONPATH=path) if path else self.environment
        host = subprocess.Popen([self.interpreter.path, "-u", "-c", HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, universal_newlines=True, env=environment)
        self.addCleanup(self.end, host)
        p.await_ready(host)
        return host

    @staticmethod
    def end(host):
        host.kill()
        host.communicate()

    def run_in(self, host, line):
        return p.run_in(host, line)

    def ask(self, pid, sql):
        done = p.probing("sql", pid, sql, "-f", "json", check=p.OK, env=self.environment)
        return [list(row.values()) for row in json.loads(done.stdout)]

    def evaluate(self, host, code, check=p.OK):
        return p.probing(host.pid, "eval", code, check=check, env=self.environment)

    def test_it_is_imported_from_the_agent(self):
        host = self.begin()
        p.probing("inject", host.pid, check=p.OK)
        if self.interpreter.version in ("3.6", "3.7"):
            said = "needs CPython 3.8 or newer: this is %s\n" % self.interpreter.version
            self.assertIn(said, self.evaluate(host, "import probing", check=p.FAILED).stderr)
            self.assertEqual("CPython 3.8 or newer is needed for that, and this is %s\n" % self.interpreter.version,
                             self.evaluate(host, CALL % ("_rows", "event")).stdout)
            return
        # code of the program itself finds it, before any evaluation
        self.assertEqual("None\n", self.run_in(host, "import probing; print(probing.log(epoch=1, loss=0.5))"))
        self.evaluate(host, "import probing; probing.log(epoch=2, loss=0.25)")
        self.assertEqual("True\n", self.evaluate(host, "sys.modules['probing._rows'] is probing._rows").stdout)
        self.assertEqual([[1, 0.5], [2, 0.25]], self.ask(host.pid, "SELECT epoch, loss FROM training_logs ORDER BY 1"))
        self.assertEqual("", self.evaluate(host, "probing.span('a').__enter__() and None").stdout)
        self.assertIn('File "<probing>/__init__.py"', self.evaluate(host, "probing.nothing", check=p.FAILED).stderr)
        self.assertIn("raise AttributeError(", self.evaluate(host, "probing.nothing", check=p.FAILED).stderr)
        self.assertEqual("1\n", self.run_in(host, FINDERS))
        # the agent's end leaves calls that do nothing; the next agent has the same package
        p.probing("detach", host.pid, check=p.OK)
        self.assertEqual("None\n", self.run_in(host, "import probing; print(probing.log(epoch=3, loss=0))"))
        p.probing("inject", host.pid, check=p.OK)
        self.evaluate(host, "import probing; probing.log(epoch=4, loss=0)")
        self.assertEqual([[1], [2], [4]], self.ask(host.pid, "SELECT epoch FROM training_logs ORDER BY 1"))
        self.assertEqual("1\n", self.run_in(host, FINDERS))

    def test_another_package_of_that_name(self):
        if self.interpreter.version in ("3.6", "3.7"):
            self.skipTest("it has no package")
        with open(os.path.join(self.folder, "probing.py"), "w") as file:
            file.write("__version__ = '9.9'\n")
        host = self.begin(self.folder)
        p.probing("inject", host.pid, check=p.OK)
        self.assertEqual("'9.9'\n", self.evaluate(host, "import probing; probing.__version__").stdout)
        self.assertRegex(self.evaluate(host, CALL % ("_rows", "event")).stdout,
                         r"^its Python has another package probing \(9.9, .*probing.py\): install probing [0-9.]+ there, or rename")

    def test_a_folder_of_that_name_is_no_package(self):
        if self.interpreter.version in ("3.6", "3.7"):
            self.skipTest("it has no package")
        os.mkdir(os.path.join(self.folder, "probing"))
        host = self.begin(self.folder)
        p.probing("inject", host.pid, check=p.OK)
        self.assertEqual("None\n", self.run_in(host, "import probing; print(probing.log(epoch=1))"))

    def test_the_installed_one_comes_first(self):
        if self.interpreter.version in ("3.6", "3.7"):
            self.skipTest("it has no package")
        host = self.begin(os.path.join(p.ROOT, "python"))
        p.probing("inject", host.pid, check=p.OK)
        self.assertEqual("%r\n" % os.path.join(p.ROOT, "python", "probing", "_rows.py"),
                         self.evaluate(host, "import probing._rows; probing._rows.__file__").stdout)
        # by the call that verbs use
        self.evaluate(host, "__import__('sys')._probing_agent['call']('_rows', 'event', 'began')")
        self.assertEqual([["began"]], self.ask(host.pid, "SELECT name FROM events"))


class Version(unittest.TestCase):
    def test_the_package_has_the_programs(self):
        with open(os.path.join(p.ROOT, "python", "probing", "__init__.py")) as file:
            version = [line.split('"')[1] for line in file if line.startswith("__version__")]
        self.assertIn(version[0], p.probing("--version", check=p.OK).stdout)


if __name__ == "__main__":
    unittest.main()
