# SPDX-License-Identifier: MIT
"""The agent from a program's first line on: PROBING in the environment, and probing run."""
import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import probing_test as p
from test_agent import LIBRARY
from test_inject import need_injection

SCRIPT = "import os, sys, time\nprint('ready {}', flush=True)\nsys.stdin.read()\n"
SAYS_ENVIRONMENT = "import os; print(os.environ.get('PROBING'), os.environ.get('PYTHONPATH'), os.environ.get('PROBING_AGENT'))"
MODES = [  # PROBING, and whether x.py and other.py have the agent
    ("0", False, False), ("1", True, True), ("followed", True, True), ("2", True, True), ("nested", True, True),
    ("x.py", True, False), ("some/where/x.py", True, False), ("regex:^x", True, False), ("regex:o.*r", False, True),
    ("1,eval=off", True, True), ("regex:x{1,2}", True, False)]


class StartCase(unittest.TestCase):
    """The package where a user's own packages are, as pip install --user puts it there."""
    python = p.DEBIAN_PYTHON
    ready_s = 30  # until a program has started

    def setUp(self):
        need_injection()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.interpreter = self.python
        site = os.path.join(self.folder, "lib", "python" + p.version_of(self.interpreter), "site-packages")
        os.makedirs(site)
        os.symlink(os.path.join(p.ROOT, "python", "probing"), os.path.join(site, "probing"))
        for name in ("probing.pth", "probing.start"):
            shutil.copy(os.path.join(p.ROOT, "python", name), site)
        for name in ("x.py", "other.py", "torchrun"):
            self.write(name, SCRIPT)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def environment(self, **more):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PROBING", "PYTHON"))}
        return dict(environment, PYTHONUSERBASE=self.folder, PYTHONDONTWRITEBYTECODE="1", PROBING_AGENT=LIBRARY, **more)

    def run_python(self, *words, **more):
        return subprocess.run([self.interpreter] + list(words), env=self.environment(**more), cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=2 * self.ready_s)

    @contextlib.contextmanager
    def program(self, command, **more):
        process = subprocess.Popen(command, env=self.environment(**more), cwd=self.folder, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            p.await_ready(process, self.ready_s)
            yield process
        finally:
            process.kill()
            process.communicate()


class Hook(StartCase):
    def test_modes(self):
        for mode, x, other in MODES:
            for script, wanted in (("x.py", x), ("other.py", other)):
                with self.subTest(mode=mode, script=script):
                    done = self.run_python(script, PROBING=mode)
                    self.assertEqual((0, "ready {}\n"), (done.returncode, done.stdout))
                    self.assertRegex(done.stderr, r"^probing: active in process \d+ \(.*\)\n$" if wanted else "^$")

    def test_what_a_program_gets(self):
        with self.program([self.interpreter, "x.py"], PROBING="1,eval=off", PROBING_SAMPLE_RATE="0.5") as program:
            done = p.probing(program.pid, "eval", "1", check=p.FAILED)
            self.assertIn("probing.eval is off in this process", done.stderr)
            self.assertEqual(["probing.eval=off", "probing.sample_rate=0.5"],
                             p.probing("config", program.pid, "eval", "sample_rate", check=p.OK).stdout.splitlines())
            self.assertRegex(p.probing("inject", program.pid, check=p.OK).stdout, "has the agent already")
            self.assertRegex(p.probing("list", "-v", check=p.OK).stdout, r"(?m)^ *%d .* no-eval +\S*python" % program.pid)

    def test_mistakes_leave_the_program_alone(self):
        for environment, says in (({"PROBING": "yes"}, "PROBING=yes means nothing: it is 0, 1, "),
                                  ({"PROBING": "1,nonsense=1"}, "there is no key nonsense: the keys are "),
                                  ({"PROBING": "regex:("}, "is not a regular expression"),
                                  ({"PROBING": "1", "PROBING_SAMPLE_RATE": "fast"}, "probing.sample_rate cannot be 'fast': it is "),
                                  ({"PROBING": "1", "PROBING_LOGLEVEL": "loud"}, "PROBING_LOGLEVEL=loud means nothing: it is off, error, "),
                                  ({"PROBING": "1", "PROBING_AGENT": "/nowhere"}, "/nowhere is not there")):
            with self.subTest(environment):
                done = subprocess.run([self.interpreter, "x.py"], env=dict(self.environment(), **environment), cwd=self.folder,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual((0, "ready {}\n"), (done.returncode, done.stdout))
                self.assertRegex(done.stderr, "^probing: not active: ")
                self.assertIn(says, done.stderr)
                self.assertEqual(1, done.stderr.count("\n"))

    def test_children(self):
        child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'])"
        for mode, lines in (("1", 1), ("2", 2)):
            self.assertEqual(lines, self.run_python("-c", child, PROBING=mode).stderr.count("active in process"))
        forks = "import os, sys\nif os.fork() == 0:\n    print('ready {}', flush=True)\n    sys.stdin.read()\nelse:\n    os.wait()\n"
        with self.program([self.interpreter, "-c", forks], PROBING="2") as program:
            child, = p.children_of(program.pid)
            p.wait_until(lambda: p.probing("config", child).returncode == p.OK, 20, "the child's own agent")

    def test_launchers_pass_it_on(self):
        self.write("torchrun", "import subprocess, sys; subprocess.run([sys.executable, 'x.py'], stdin=subprocess.DEVNULL)")
        done = self.run_python("torchrun", PROBING="1")
        self.assertEqual("ready {}\n", done.stdout)
        self.assertEqual(1, done.stderr.count("active in process"))

    def test_a_script_first(self):
        script = self.write("first.py", "print('first')\nimport builtins\nbuiltins.answer = 42\n")
        done = self.run_python("-c", "print(answer)", PROBING="init:%s" % script)
        self.assertEqual("first\n42\n", done.stdout)
        self.assertRegex(done.stderr, "active in process")
        done = self.run_python("-c", "print(answer)", PROBING="init:%s+0" % script)
        self.assertEqual(("first\n42\n", ""), (done.stdout, done.stderr))
        wrong = self.write("wrong.py", "1/0\n")
        done = self.run_python("-c", "print('goes on')", PROBING="init:%s" % wrong)
        self.assertEqual("goes on\n", done.stdout)
        self.assertIn("ZeroDivisionError", done.stderr)

    def test_the_log_level(self):
        self.assertEqual("", self.run_python("x.py", PROBING="1", PROBING_LOGLEVEL="error").stderr)

    def test_it_imports_little(self):
        """What a program has not imported costs it time and memory, and may change how it behaves."""
        says = "import sys; print(*{name.split('.')[0] for name in sys.modules})"
        without = set(self.run_python("-c", says).stdout.split())
        self.assertIn("sys", without)
        self.assertLessEqual(set(self.run_python("-c", says, PROBING="1").stdout.split()) - without,
                             {"probing", "ctypes", "_ctypes", "struct", "_struct", "types", "importlib"})

    def test_nothing_is_loaded_without_it(self):
        done = self.run_python("-c", "import sys; print([name for name in sys.modules if 'probing' in name or 'ctypes' in name])")
        self.assertEqual("[]\n", done.stdout)


class Installed(unittest.TestCase):
    def test_meson_installs_the_hook(self):
        need_injection()
        build = os.path.join(os.path.dirname(p.BINARY), "..", "..")
        if not os.path.exists(os.path.join(build, "build.ninja")):
            self.skipTest("the program is a copy, outside of its build folder")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", folder, "--quiet"], check=True, timeout=60,
                           stdout=subprocess.DEVNULL)
            hook, = glob.glob(os.path.join(folder, "**", "probing.pth"), recursive=True)
            program = "import site, sys; site.addsitedir(sys.argv[1]); import os; print(os.environ.get('PROBING'))"
            done = subprocess.run([p.DEBIAN_PYTHON, "-c", program, os.path.dirname(hook)], env=dict(os.environ, PROBING="1"),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual("None\n", done.stdout)
            self.assertRegex(done.stderr, r"^probing: active in process \d+ \(followed: this process only\)\n$")
            # it would take the place of probing.pth, at a hundred times its cost
            self.assertFalse(os.path.exists(os.path.join(os.path.dirname(hook), "probing.start")))


def user_site(folder, version, *names):
    """A user's packages for an interpreter: another's hook, and what is named of python/."""
    site = os.path.join(folder, "lib", "python" + version, "site-packages")
    os.makedirs(site)
    with open(os.path.join(site, "another.pth"), "w") as file:
        file.write("import sys\n")
    for name in names:
        path = os.path.join(p.ROOT, "python", name)
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(site, name), ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, site)
    return folder


class Newest(unittest.TestCase):
    """CPython 3.14 and 3.15 in a root of their own: the hook's older form, its newer one (PEP 829), and both."""

    def test_forms(self):
        need_injection()
        p.need_place(p.sid())
        program = "import os; print(os.environ.get('PROBING'), len(os.listdir('/proc/self/task')))"
        for version, hooks, n_active in (("3.14", ["probing.pth"], 1), ("3.14", ["probing.start"], 0), ("3.15", ["probing.pth"], 1),
                                         ("3.15", ["probing.start"], 1), ("3.15", ["probing.pth", "probing.start"], 1)):
            with self.subTest(version=version, hooks=hooks), tempfile.TemporaryDirectory() as folder:
                user_site(os.path.join(folder, "user"), version, "probing", *hooks)
                shutil.copy(LIBRARY, folder)
                enter = p.UNSHARE + ["sh", "-c", p.ENTER, "sh", p.SID_ROOT, folder, p.BUILT_FIXTURES]
                done = subprocess.run(enter + ["env", "PYTHONUSERBASE=/mnt/fixtures/user", "PROBING=1", "PYTHONDONTWRITEBYTECODE=1",
                                               "PROBING_AGENT=/mnt/fixtures/libprobing-agent.so", "/usr/bin/python" + version, "-c", program],
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
                self.assertEqual((0, "None 3\n" if n_active else "1 1\n"), (done.returncode, done.stdout), done.stderr)
                self.assertEqual(n_active, done.stderr.count("probing: active in process"), done.stderr)
                self.assertEqual(n_active, done.stderr.count("\n"), done.stderr)


class Cost(unittest.TestCase):
    """Instructions that the hook adds, beside another one, to each start where PROBING is not set. valgrind takes seconds to count them."""
    NIGHTLY_FOR_USERS = True  # it does not depend on rights
    MAX_ADDED = 600000

    def added(self, version, python, **more):
        with tempfile.TemporaryDirectory() as folder:
            counts = []
            for names in [], ["probing.pth", "probing"]:
                base = user_site(os.path.join(folder, str(len(names))), version, *names)
                environment = {name: value for name, value in os.environ.items() if not name.startswith(("PROBING", "PYTHON"))}
                environment.update(PYTHONUSERBASE=base, PYTHONHASHSEED="0", **more)
                subprocess.run(python + ["-c", "pass"], env=environment, check=True, timeout=60)  # writes what is compiled once
                done = subprocess.run([p.need_program("valgrind"), "--tool=callgrind", "--callgrind-out-file=/dev/null"] + python +
                                      ["-c", "pass"], env=environment, capture_output=True, text=True, check=True, timeout=300)
                counts.append(int(re.search(r"Collected : (\d+)", done.stderr).group(1)))
            return counts[1] - counts[0]

    def test_debian(self):
        self.assertLessEqual(self.added(p.version_of(p.DEBIAN_PYTHON), [p.DEBIAN_PYTHON]), self.MAX_ADDED)

    def test_newest(self):
        """Run from here by its own loader, for its root has no valgrind."""
        root, machine = p.SID_ROOT, os.uname().machine
        loader = os.path.join(root, "lib64", "ld-linux-x86-64.so.2")
        if machine != "x86_64" or not os.access(loader, os.X_OK):
            self.skipTest("%s is not there; scripts/roots makes it" % loader)
        libraries = ":".join(os.path.join(root, folder, machine + "-linux-gnu") for folder in ("lib", "usr/lib"))
        python = [loader, "--library-path", libraries, os.path.join(root, "usr/bin/python3.15")]
        self.assertLessEqual(self.added("3.15", python, PYTHONHOME=os.path.join(root, "usr")), self.MAX_ADDED)


@p.for_each_interpreter(globals())
class Run(StartCase):
    ONE_FOR_USERS = True
    interpreter = None

    def setUp(self):
        mine = type(self).interpreter
        super().setUp()
        self.interpreter = mine.path
        p.need_interpreter(mine)
        if mine.place.prefix:
            self.skipTest("the hook's files are not in that place")

    def probing_run(self, *words, **more):
        return subprocess.run([p.BINARY, "run"] + list(words), env=dict(p.os.environ, PROBING_LOGLEVEL="", **more), cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)

    def test_a_command(self):
        done = self.probing_run(self.interpreter, "-c", SAYS_ENVIRONMENT + "; raise SystemExit(7)")
        self.assertEqual(7, done.returncode)
        if p.version_of(self.interpreter) == "2.7":
            self.assertEqual("", done.stderr)
            return
        self.assertEqual("None None None\n", done.stdout)
        self.assertRegex(done.stderr, r"^probing: active in process \d+ \(followed: this process only\)\n$")

    def test_recursive_and_the_own_sitecustomize(self):
        self.write("sitecustomize.py", "print('its own')\n")
        child = "import subprocess, sys; sys.stdout.flush(); subprocess.call([sys.executable, '-c', 'pass'])"
        done = self.probing_run("-r", self.interpreter, "-c", child, PYTHONPATH=self.folder)
        self.assertEqual((0, "its own\nits own\n"), (done.returncode, done.stdout))
        self.assertEqual(0 if p.version_of(self.interpreter) == "2.7" else 2, done.stderr.count("active in process"))


class RunOnce(StartCase):
    def test_the_agent_is_there(self):
        with self.program([p.BINARY, "launch", "-D", "sample_rate=0.2", "--", self.interpreter, "x.py"]) as program:
            self.assertEqual("3\n", p.probing(program.pid, "eval", "1 + 2", check=p.OK).stdout)
            self.assertEqual("probing.sample_rate=0.2\n", p.probing(program.pid, "config", "sample_rate", check=p.OK).stdout)

    def test_refusals(self):
        p.probing("run", "/nowhere/at/all", check=p.NOT_FOUND)
        p.probing("run", "/etc/passwd", check=p.NOT_EXECUTABLE)
        p.probing("run", check=p.USAGE)
        p.probing("run", "-D", "nonsense=1", "true", check=p.USAGE)
