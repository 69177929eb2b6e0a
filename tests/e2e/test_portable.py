# SPDX-License-Identifier: MIT
"""The archive of scripts/portable, unpacked in root file systems that have none of our libraries: one that is newer than this one, and
one with an older glibc.

The build compiles the whole program and takes minutes: `scripts/test --nightly` runs this test (PROBING_NIGHTLY=1).
"""
import glob
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import bare_root
import probing_test as p

LOAD = "import time\nend = time.process_time() + 2\ndef busy():\n    while time.process_time() < end:\n        sum(range(1000))\nbusy()\n"


OLD = "bullseye"  # glibc 2.31 and Python 3.9; the program needs functions that came with 2.32 and 2.34 elsewhere
# In that root: the program, and the agent, in a Python that was built with this glibc.
USE_THERE = """
cd /opt/probing
bin/probing record -q -o /tmp/run.db -- python3 load.py
bin/probing report --total /tmp/run.db
python3 -c 'import time; print("ready", flush=True); time.sleep(60)' >/tmp/ready &
while ! grep -q ready /tmp/ready; do sleep 0.1; done
bin/probing inject $!
bin/probing eval $! '6 * 7'
kill $!
ldd --version | head -n 1
"""


class Portable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.environ.get("PROBING_NIGHTLY"):
            raise unittest.SkipTest("takes minutes: scripts/test --nightly runs it")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([os.path.join(p.ROOT, "scripts", "portable"), cls.folder.name], check=True, stdout=subprocess.DEVNULL, timeout=1500)
        archive, = glob.glob(os.path.join(cls.folder.name, "*.tar.gz"))
        subprocess.run(["tar", "-xzf", archive, "-C", cls.folder.name], check=True)
        cls.top = archive[:-len(".tar.gz")]
        with open(os.path.join(cls.top, "load.py"), "w", encoding="ascii") as file:
            file.write(LOAD)

    def old_root(self):
        """Made once. What skips one test skips all that need it."""
        root = os.path.join(self.folder.name, "root")
        if not os.path.isdir(root):
            bare_root.make(root, OLD, "python3-minimal")
        return root

    def test_image(self):
        """The recipe of an image, by buildah, without a registry: the base is the old root."""
        p.need_program("buildah")
        root, recipe = self.old_root(), os.path.join(p.ROOT, "examples", "container", "Containerfile")
        with tempfile.TemporaryDirectory() as images:
            def buildah(*arguments):
                done = subprocess.run(["buildah", "--storage-driver", "vfs", "--root", images + "/root", "--runroot", images + "/run", *arguments],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
                self.assertEqual(0, done.returncode, done.stderr[-2000:])
                return done.stdout.strip()

            subprocess.run(["tar", "-C", root, "-cf", images + "/base.tar", "."], check=True)
            base = buildah("from", "scratch")
            buildah("add", "--quiet", base, images + "/base.tar", "/")
            buildah("commit", "--quiet", base, "localhost/base")
            buildah("build", "--quiet", "--pull-never", "--isolation", "chroot", "--build-arg", "BASE=localhost/base", "-t", "localhost/probing", "-f", recipe,
                    self.folder.name)
            image = buildah("from", "--pull-never", "localhost/probing")
            buildah("copy", "--quiet", image, os.path.join(self.top, "load.py"), "/load.py")
            run = ["run", "--isolation", "chroot", "--cap-add", "CAP_SYS_PTRACE", image, "--"]
            buildah(*run, "probing", "record", "-q", "-o", "run.db", "--", "python3", "/load.py")
            self.assertRegex(buildah(*run, "probing", "report", "--total", "/recordings/run.db"), r"busy +load\.py")
            self.assertIn('"/usr/local/bin/probing"', buildah("inspect", image))
            buildah("rm", "--all")

    def test_another_root(self):
        if p.sid().missing:
            self.skipTest(p.sid().missing)
        enter = p.UNSHARE + ["sh", "-c", p.ENTER, "sh", p.SID_ROOT, p.FIXTURES, self.top]
        script = ("/mnt/built/bin/probing record -q -o /mnt/run.db -- /usr/bin/python3.14 /mnt/built/load.py\n"
                  "/mnt/built/bin/probing report --total /mnt/run.db\n")
        done = subprocess.run(enter + ["sh", "-e", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=3 * p.HANG_S, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stdout, r"busy +load\.py")

    def test_an_older_root(self):
        root = self.old_root()
        shutil.copytree(self.top, os.path.join(root, "opt", "probing"))
        said = bare_root.run(root, USE_THERE)
        shutil.rmtree(os.path.join(root, "opt", "probing"))
        self.assertRegex(said, r"busy +load\.py")
        self.assertIn("the agent is in process", said)
        self.assertRegex(said, r"(?m)^42$")
        self.assertRegex(said, r"GLIBC 2\.31")

    def test_another_folder_gives_the_same_bytes(self):
        """A copy of the tree elsewhere, built afresh: no path, time or order of this build is in the archive."""
        with tempfile.TemporaryDirectory() as folder:
            tree = os.path.join(folder, "another", "tree")
            shutil.copytree(p.ROOT, tree, symlinks=True, ignore=lambda at, names: [
                name for name in names if at == p.ROOT and (name.startswith("build") or name in (".git", "dist", "shared"))])
            subprocess.run([os.path.join(tree, "scripts", "portable"), folder], check=True, stdout=subprocess.DEVNULL, timeout=1500)
            archive, = glob.glob(os.path.join(folder, "*.tar.gz"))
            with open(archive, "rb") as second, open(self.top + ".tar.gz", "rb") as first:
                self.assertEqual(hashlib.sha256(first.read()).hexdigest(), hashlib.sha256(second.read()).hexdigest())

    def test_contents(self):
        top = self.top
        for name in ("bin/probing", "lib/probing/libprobing-agent.so", "lib/probing/probing_sqlite.so", "lib/python/probing/__init__.py",
                     "share/man/man1/probing.1", "share/licenses/libdw-dev.txt", "LICENSE"):
            self.assertTrue(os.path.isfile(os.path.join(top, name)), name)
        with open(os.path.join(top, "share", "licenses", "sbom.spdx.json"), encoding="utf-8") as file:
            parts = {part["name"]: part["versionInfo"] for part in json.load(file)["packages"]}
        self.assertTrue({"probing", "elfutils", "sqlite3", "libzstd"} <= set(parts), parts)
        self.assertTrue(all(parts.values()), parts)


if __name__ == "__main__":
    unittest.main()
