# SPDX-License-Identifier: MIT
"""A place as in a container: an ordinary user, and a seccomp filter without perf events, BPF, tracing and memory of others."""
import os
import pwd
import shutil
import subprocess
import tempfile

import probing_test as t
from test_agent import LIBRARY
from test_inject import need_injection


class ContainerCase(t.Case):
    """self.folder has the package, the agent and the program probing, all of the ordinary user: where `pip install --user`
    would put them for him. A command in there is run with self.filter before it, and **self.user."""

    def setUp(self):
        super().setUp()
        need_injection()
        self.folder = tempfile.mkdtemp(prefix="probing-test.")
        self.addCleanup(shutil.rmtree, self.folder)
        site = os.path.join(self.folder, "lib", "python" + t.version_of(t.DEBIAN_PYTHON), "site-packages")
        os.makedirs(site)
        shutil.copytree(os.path.join(t.ROOT, "python", "probing"), os.path.join(site, "probing"))
        for name in ("probing.pth", "probing.start"):
            shutil.copy(os.path.join(t.ROOT, "python", name), site)
        self.agent = os.path.join(self.folder, os.path.basename(LIBRARY))
        self.binary = os.path.join(self.folder, "probing")
        self.filter = [os.path.join(self.folder, "without_perf"), "--container"]
        for path in (t.BINARY, LIBRARY, os.path.join(t.BUILT_FIXTURES, "without_perf")):
            shutil.copy(path, self.folder)
        self.user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            for path, folders, files in os.walk(self.folder):
                for name in [path] + [os.path.join(path, file) for file in files]:
                    os.chown(name, nobody.pw_uid, nobody.pw_gid)
                    os.chmod(name, 0o755)

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROBING", "PYTHON", "XDG", "HOME"))}
        return dict(kept, HOME=self.folder, PYTHONUSERBASE=self.folder, PYTHONDONTWRITEBYTECODE="1",
                    PROBING_AGENT=self.agent, PROBING_BINARY=self.binary, **more)

    def probing(self, *arguments):
        """What it says on stderr."""
        done = subprocess.run([*self.filter, self.binary, *map(str, arguments)], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                              env=self.environment(), timeout=60, **self.user)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stderr
