# SPDX-License-Identifier: MIT
"""The wheel: meson-python builds it from this tree, pip installs it into a virtual environment, both without a network.

The build compiles the whole tree and takes minutes: `scripts/test --nightly` runs this test (PROBING_NIGHTLY=1).
"""
import glob
import os
import re
import pwd
import shutil
import subprocess
import tempfile
import unittest
import zipfile

import probing_test as p
from container_case import run_in_container
from test_inject import need_injection

SAME_FOR_ALL_USERS = True
# The least to compile: the test measures no speed, draws no page and reads no frame in the kernel.
QUICK = ("optimization=0", "debug=false", "html=disabled", "bpf=disabled", "tracepoints=disabled")
PROGRAM = "import sys\nprint('ready {}', flush=True)\nsys.stdin.read()\n"


class Wheel(unittest.TestCase):
    def run_quietly(self, *command, **more):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=1200, **more)
        self.assertEqual(0, done.returncode, done.stdout[-3000:])
        return done.stdout

    def test_built_installed_and_removed(self):
        if not os.environ.get("PROBING_NIGHTLY"):
            self.skipTest("takes minutes: scripts/test --nightly runs it")
        need_injection()
        for module in "build", "mesonpy", "venv":
            if subprocess.run([p.DEBIAN_PYTHON, "-c", "import " + module], stderr=subprocess.DEVNULL).returncode != 0:
                self.skipTest("no Python module %s" % module)
        with tempfile.TemporaryDirectory() as folder:
            self.run_quietly(p.DEBIAN_PYTHON, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder,
                             "-Cbuilddir=" + os.path.join(folder, "build"), *["-Csetup-args=-D" + option for option in QUICK], p.ROOT)
            wheel, = glob.glob(os.path.join(folder, "*.whl"))
            self.check_names(wheel)
            home = os.path.join(folder, "venv")
            python = os.path.join(home, "bin", "python")
            self.run_quietly(p.DEBIAN_PYTHON, "-m", "venv", home)
            self.run_quietly(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel)
            self.check_program(home, python)
            self.check_container(folder, home, python)
            self.run_quietly(python, "-m", "pip", "uninstall", "--yes", "probing")
            left = glob.glob(os.path.join(home, "**", "*probing*"), recursive=True)
            self.assertEqual([], left)

    def check_names(self, wheel):
        with zipfile.ZipFile(wheel) as file:
            names = {os.path.basename(name) for name in file.namelist()}
        for name in ("probing", "probing.pth", "_start.py", "sitecustomize.py", "libprobing-agent.so",
                     "probing_sqlite.so"):
            self.assertIn(name, names)

    def check_program(self, home, python):
        program = os.path.join(home, "bin", "probing")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PROBING", "PYTHON"))}
        process = subprocess.Popen([python, "-c", PROGRAM], env=dict(environment, PROBING="1"), text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            p.await_ready(process)
            self.assertEqual("42\n", self.run_quietly(program, "eval", str(process.pid), "6 * 7", env=environment))
            out, err = process.communicate("", timeout=p.HANG_S)
            self.assertRegex(err, r"^probing: active in process \d+ \(followed: this process only\)\n$")
        finally:
            process.kill()
            process.communicate()
        # without the hook: the program finds the agent, SQLite's extension and what run needs in the package
        with p.target([python, "-c", "import time; print('ready {}', flush=True); time.sleep(60)"], env=environment) as target:
            self.assertIn("the agent is in process", self.run_quietly(program, "inject", str(target.pid), env=environment))
        self.assertIn("active in process", self.run_quietly(program, "run", python, "-c", "pass", env=environment))
        self.assertTrue(os.path.isfile(self.run_quietly(program, "info", "--extension", env=environment).strip()))
        needs = set(re.findall(r"^\t(lib\w+)\.so", self.run_quietly("ldd", program), re.M))
        self.assertEqual({"libc", "libm", "libpthread", "libdl"}, needs)
        shown = self.run_quietly(python, "-c", "import probing, sys; sys.stdout.write(probing.binary())", env=environment)
        self.assertEqual(program, shown)

    def check_container(self, folder, home, python):
        """The hook, the agent and the program as pip has installed them, in a container as it is."""
        if os.geteuid() != 0:
            return
        os.chmod(folder, 0o755)
        without_perf = os.path.join(folder, "without_perf")
        shutil.copy(os.path.join(p.BUILT_FIXTURES, "without_perf"), without_perf)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PROBING", "PYTHON", "XDG", "HOME"))}
        run_in_container(self, folder, pwd.getpwnam("nobody").pw_uid, [without_perf, "--strict"], os.path.join(home, "bin", "probing"), python,
                         dict(environment, PYTHONDONTWRITEBYTECODE="1"))


if __name__ == "__main__":
    unittest.main()
