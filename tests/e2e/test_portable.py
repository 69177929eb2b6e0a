# SPDX-License-Identifier: MIT
"""The archive of scripts/portable, unpacked in a root file system that has none of our libraries.

The build compiles the whole program and takes minutes: `scripts/test --nightly` runs this test (PROBING_NIGHTLY=1).
"""
import glob
import json
import os
import subprocess
import tempfile
import unittest

import probing_test as p

LOAD = "import time\nend = time.process_time() + 2\ndef busy():\n    while time.process_time() < end:\n        sum(range(1000))\nbusy()\n"


class Portable(unittest.TestCase):
    def test_another_root(self):
        if not os.environ.get("PROBING_NIGHTLY"):
            self.skipTest("takes minutes: scripts/test --nightly runs it")
        if p.sid().missing:
            self.skipTest(p.sid().missing)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.path.join(p.ROOT, "scripts", "portable"), folder], check=True, stdout=subprocess.DEVNULL, timeout=1500)
            archive, = glob.glob(os.path.join(folder, "*.tar.gz"))
            subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
            top = archive[:-len(".tar.gz")]
            self.check_contents(top)
            load = os.path.join(top, "load.py")
            with open(load, "w", encoding="ascii") as file:
                file.write(LOAD)
            enter = p.UNSHARE + ["sh", "-c", p.ENTER, "sh", p.SID_ROOT, p.FIXTURES, top]
            script = ("/mnt/built/bin/probing record -q -o /mnt/run.db -- /usr/bin/python3.14 /mnt/built/load.py\n"
                      "/mnt/built/bin/probing report /mnt/run.db\n")
            done = subprocess.run(enter + ["sh", "-e", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertRegex(done.stdout, r"busy +load\.py")

    def check_contents(self, top):
        for name in ("bin/probing", "lib/probing/libprobing-agent.so", "lib/probing/probing_sqlite.so", "lib/python/probing/__init__.py",
                     "share/man/man1/probing.1", "share/licenses/libdw-dev.txt", "LICENSE"):
            self.assertTrue(os.path.isfile(os.path.join(top, name)), name)
        with open(os.path.join(top, "share", "licenses", "sbom.spdx.json"), encoding="utf-8") as file:
            parts = {part["name"]: part["versionInfo"] for part in json.load(file)["packages"]}
        self.assertTrue({"probing", "elfutils", "sqlite3", "libzstd"} <= set(parts), parts)
        self.assertTrue(all(parts.values()), parts)


if __name__ == "__main__":
    unittest.main()
