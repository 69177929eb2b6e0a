# SPDX-License-Identifier: MIT
"""Debian's packages: what debian/ says against what is there; and the packages, installed in a bare root.

The second builds the whole program and installs a system from apt's mirror, in minutes: `scripts/test --nightly` runs it (PROBING_NIGHTLY=1).
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import bare_root
import probing_test as p

SAME_FOR_ALL_USERS = True
DEBIAN = os.path.join(p.ROOT, "debian")
BUILD = os.path.abspath(os.path.join(os.path.dirname(p.BINARY), "..", ".."))
# Of `scripts/packages build`: what each Debian builder has, and what a build from a release's archive does without.
NOT_NAMED = {"gcc", "libc6-dev", "pkg-config", "python3", "nodejs", "npm", "libcmocka-dev", "meson", "ninja-build"}


def read(name):
    with open(os.path.join(DEBIAN, name), encoding="utf-8") as file:
        return file.read()


def is_in(path, pattern):
    """Whether dh_install takes a file by this line: * is no slash, and a folder is all that is in it."""
    return re.match(pattern.replace(".", "\\.").replace("*", "[^/]*") + "(/|$)", path) is not None


def run(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        raise AssertionError("%s: %s" % (" ".join(command[:4]), done.stdout[-3000:]))
    return done.stdout


# In the root: the packages with those they need, what they do, whole as they were unpacked, and gone again.
INSTALL = """
export DEBIAN_FRONTEND=noninteractive
apt-get -qq install -y --no-install-recommends /packages/*.deb >/packages/log 2>&1 || { cat /packages/log; exit 1; }
/packages/record
dpkg --verify probing python3-probing probing-doc
test -f /usr/share/doc/probing/README.Debian
apt-get -qq purge -y probing python3-probing probing-doc >/packages/log 2>&1
test ! -e /usr/bin/probing
test ! -e /usr/lib/python3/dist-packages/probing
echo removed
"""


class Files(unittest.TestCase):
    def test_version_is_the_programs(self):
        p.need_program("dpkg-parsechangelog")
        version = run("dpkg-parsechangelog", "-S", "Version", "-l", os.path.join(DEBIAN, "changelog")).strip()
        said = p.probing("--version", check=p.OK).stdout
        self.assertIn(version.rsplit("-", 1)[0], said)

    def test_source_package_is_prepared(self):
        """dpkg-source reads control, changelog, format and patches, and the rules name targets."""
        p.need_program("dpkg-source")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(DEBIAN, os.path.join(folder, "debian"))
            run("dpkg-source", "--before-build", folder)
            said = run("make", "-n", "-f", "debian/rules", "override_dh_auto_configure", cwd=folder)
            self.assertIn("-Dtests=false", said)
            run("dpkg-source", "--after-build", folder)

    def test_build_dependencies(self):
        """Those of scripts/packages, which the other builds have."""
        named = set(re.findall(r"[a-z0-9][a-z0-9.+-]+", re.search(r"Build-Depends:(.*?)\n\S", read("control"), re.S).group(1)))
        wanted = run(os.path.join(p.ROOT, "scripts", "packages"), "--list", "build").split()
        self.assertEqual([], sorted(set(wanted) - NOT_NAMED - named))

    def test_all_that_is_installed_is_in_a_package(self):
        """Each file in one package, and each line of the lists with a file."""
        p.need_program("meson")
        lists = {line.split()[0]: package for package in ("probing", "python3-probing") for line in read(package + ".install").split("\n") if line}
        used = set()
        with tempfile.TemporaryDirectory() as folder:
            run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder, timeout=120)
            for at, _, names in os.walk(folder):
                for name in names:
                    path = re.sub("^usr/local/(etc/)?", lambda found: found.group(1) or "usr/", os.path.relpath(os.path.join(at, name), folder))
                    owners = [line for line in lists if is_in(path, line)]
                    self.assertEqual(1, len({lists[line] for line in owners}), "%s: %s" % (path, owners))
                    used.update(owners)
        self.assertEqual(set(lists), used)


class Packages(unittest.TestCase):
    def test_installed_in_a_bare_root(self):
        if not os.environ.get("PROBING_NIGHTLY"):
            self.skipTest("takes minutes: scripts/test --nightly runs it")
        p.need_root()
        for program in "debootstrap", "dpkg-buildpackage", "dh", "dh_python3", "lintian":
            p.need_program(program)
        with tempfile.TemporaryDirectory() as folder:
            run(os.path.join(p.ROOT, "scripts", "debian"), os.path.join(folder, "packages"), timeout=1800,
                env=dict(os.environ, DEB_BUILD_OPTIONS="noautodbgsym"))  # which takes minutes to compress
            packages = glob.glob(os.path.join(folder, "packages", "*.deb"))
            self.assertEqual(3, len(packages), packages)
            self.assertEqual(1, len(glob.glob(os.path.join(folder, "packages", "*.dsc"))))
            self.install_and_record(os.path.join(folder, "root"), packages)

    def install_and_record(self, root, packages):
        with open("/etc/os-release") as release:
            bare_root.make(root, re.search(r"VERSION_CODENAME=(\w+)", release.read()).group(1), "python3")
        os.mkdir(os.path.join(root, "packages"))
        for path in packages + [os.path.join(DEBIAN, "tests", "record")]:
            shutil.copy(path, os.path.join(root, "packages"))
        said = bare_root.run(root, INSTALL, 600)
        self.assertIn("the packages work\n", said)
        self.assertRegex(said, r"removed\n$")


if __name__ == "__main__":
    unittest.main()
