# SPDX-License-Identifier: MIT
"""scripts/quickstart, with programs in place of meson and ninja that say how they were called: only its record is real."""
import glob
import os
import shutil
import subprocess
import unittest

import probing_test as t

SAME_FOR_ALL_USERS = True

MESON = """#!/bin/sh
echo "$*" >>called
touch build/build.ninja
mkdir -p build/src/cli
ln -sf %s build/src/cli/probing
"""


class Quickstart(t.Case):
    def put(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def run_it(self):
        done = subprocess.run(["scripts/quickstart", "3"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120, check=False,
                              env=dict(os.environ, PATH=os.path.abspath("stubs") + ":" + os.environ["PATH"]))
        self.assertEqual(0, done.returncode, done.stdout[-2000:])
        return done.stdout

    def test_builds_once_and_leaves_a_build_as_it_is(self):
        os.makedirs("fixtures")
        for path in glob.glob(os.path.join(t.ROOT, "fixtures", "*.py")):
            shutil.copy(path, "fixtures")
        os.makedirs("scripts")
        shutil.copy(os.path.join(t.ROOT, "scripts", "quickstart"), "scripts")
        self.put("scripts/packages", "#!/bin/sh\n")
        self.put("stubs/ninja", "#!/bin/sh\n")
        self.put("stubs/meson", MESON % t.BINARY)
        first = self.run_it()
        self.assertIn("edit_distance", first)
        with open("flamegraph.svg", encoding="utf-8") as file:
            self.assertIn("edit_distance", file.read())
        self.run_it()
        with open("called", encoding="utf-8") as file:
            self.assertEqual("setup --buildtype=release build\n", file.read())


if __name__ == "__main__":
    unittest.main()
