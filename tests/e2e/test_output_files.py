# SPDX-License-Identifier: MIT
"""Files that verbs make: whom they are for, what is replaced, and what others can reach through them.

The attacks run as root in folders that user 65534 may write to, while a process of that user plants links, FIFOs and
files under the names that are used, as fast as it can. It may spoil the output; outside of the folder it must reach nothing.
"""
import contextlib
import os
import stat
import subprocess
import sys
import time
import unittest

import probing_test as t
from probing_test import probing

SOMEBODY = 65534
TRIES = 20
MIN_SWAPS = 100  # of a try that counts: the attacker was at work

# Arguments: the folder, a file outside that it shall reach, the name that is written to. Says how often it has swapped.
ATTACKER = r"""
import itertools, os, sys, time
folder, precious, target = sys.argv[1:]
os.chdir(folder)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
os.umask(0)
new = os.path.join(os.path.dirname(precious), "new")

def put(make, name):
    try:
        make(".mine")
        os.rename(".mine", name)
    except OSError:
        try:
            os.unlink(".mine")
        except OSError:
            pass

link = lambda name: os.symlink(precious, name)
dangling = lambda name: os.symlink(new, name)
fifo = lambda name: os.mkfifo(name, 0o666)
plain = lambda name: os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o666))
gone = None
kinds = itertools.cycle([link, plain, gone, dangling, plain, gone, fifo, gone])
for n, kind in enumerate(kinds):
    # what a process number would be good for
    if n % 50 == 0:
        with open("/proc/loadavg") as loadavg:
            last = int(loadavg.read().split()[-1])
        for pid in range(last, last + 30):
            put(dangling if pid % 2 else link, ".%s.%d" % (target, pid))
    if kind:
        put(kind, target)
    else:
        try:
            os.unlink(target)
        except OSError:
            pass
    end = time.monotonic() + 0.001  # long enough to be met
    while time.monotonic() < end:
        for name in os.listdir("."):
            if name.startswith(".") and name != ".mine" and name.count(".") > 1 and not os.path.islink(name):
                put(dangling if n % 2 else link, name)
    if n % 10 == 9:
        print(n, flush=True)
"""


def folded(path="in.folded"):
    with open(path, "w") as out:
        for i in range(40):
            out.write("main;work;step_%d %d\n" % (i, i + 1))
    return path


class Files(t.Case):
    """A recording that needs no permission to be made."""

    def setUp(self):
        folder = t.scratch()
        os.chmod(folder.__enter__(), 0o755)
        self.addCleanup(folder.__exit__, None, None, None)
        self.addCleanup(os.umask, os.umask(0o022))
        probing("import", "-q", folded(), "-o", "one.db", check=t.OK)
        os.chmod("one.db", 0o644)

    def assertMode(self, mode, path):
        found = os.stat(path).st_mode & 0o7777
        self.assertEqual(mode, found, "%s: %o, not %o" % (path, found, mode))


def makers(to="."):
    """(verb's arguments, file) of all that makes files out of recordings."""
    return [(command + ["-o", os.path.join(to, out)], os.path.join(to, out)) for command, out in (
        (["flamegraph", "one.db"], "out.svg"), (["export", "-q", "one.db", "--to", "folded"], "out.folded"),
        (["export", "-q", "one.db", "--to", "sqlite", "--force"], "out.sqlite"), (["compact", "-q", "one.db", "--force"], "out.db"),
        (["merge", "-q", "one.db", "one.db", "--force"], "merged.db"), (["import", "-q", "in.folded", "--force"], "imported.db"),
        (["diff", "one.db", "one.db", "--format", "json"], "out.json"))]


class Modes(Files):
    def each(self, *more):
        for command, out in makers():
            with self.subTest(command=command):
                probing(*command, *more, check=t.OK)
                yield out

    def test_new_files_are_for_their_user(self):
        os.umask(0)
        for out in self.each():
            self.assertMode(0o600, out)
        mask = 0o277 if os.geteuid() == 0 else 0o077  # SQLite opens its files again, which takes root then
        os.umask(mask)
        for _, out in makers():
            os.unlink(out)
        for out in self.each():
            self.assertMode(0o600 & ~mask, out)

    def test_chmod(self):
        os.umask(0)
        for out in self.each("--chmod", "644"):
            self.assertMode(0o644, out)
        os.umask(0o027)
        for out in self.each("--chmod", "0644"):  # of what is replaced, too
            self.assertMode(0o640, out)

    def test_replaced_files_keep_their_permissions(self):
        os.umask(0o077)
        for _, out in makers():
            with open(out, "w"):
                os.chmod(out, 0o604)
        for out in self.each():
            self.assertMode(0o604, out)

    def test_modes_that_are_refused(self):
        for mode in ("0", "0000", "4755", "2755", "1755", "666", "620", "602", "888", "rw", "", "-600", " 600"):
            said = probing("export", "one.db", "--to", "folded", "-o", "out", "--chmod", mode, check=t.USAGE)
            self.assertIn("--chmod takes", said.stderr)
        self.assertFalse(os.path.exists("out"))

    def test_verbs_that_run_commands(self):
        t.need_perf()
        os.umask(0)
        probing("record", "-q", "-o", "run.db", "--chmod", "640", "--", "true", check=t.OK)
        self.assertMode(0o640, "run.db")
        probing("bench", "-q", "-n", 1, "-o", "bench.db", "--", "true", check=t.OK)
        self.assertMode(0o600, "bench.db")
        probing("bench", "-q", "-n", 1, "-o", "public.db", "--chmod", "644", "--", "true", check=t.OK)
        self.assertMode(0o644, "public.db")
        probing("top", "--once", "--output", "log", "--", "echo", "text", check=t.OK)
        self.assertMode(0o600, "log")
        self.assertEqual([], [name for name in os.listdir(".") if name.startswith(".")])


class Streams(Files):
    def test_a_fifo_that_nobody_reads(self):
        os.mkfifo("fifo")
        for command in (["flamegraph", "one.db"], ["export", "one.db", "--to", "folded"], ["diff", "one.db", "one.db"]):
            began = time.monotonic()
            said = probing(*command, "-o", "fifo", timeout=20, check=t.NO_OUTPUT)
            self.assertSentence(said.stderr, "^probing: fifo is a FIFO that nobody reads: start its reader first$")
            self.assertLess(time.monotonic() - began, 10)

    def test_a_fifo_that_is_read(self):
        os.mkfifo("fifo")
        reader = os.open("fifo", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        probing("export", "-q", "one.db", "--to", "folded", "-o", "fifo", check=t.OK)
        self.assertEqual(40, os.read(reader, 65536).count(b"\n"))

    def test_descriptors(self):
        """As the shell's >(COMMAND) has them."""
        done = probing("export", "-q", "one.db", "--to", "folded", "-o", "/dev/stdout", check=t.OK)
        self.assertEqual(40, done.stdout.count("\n"))
        with open("redirected", "w") as out:
            subprocess.run([t.BINARY, "export", "-q", "one.db", "--to", "folded", "-o", "/dev/stdout"], stdout=out, check=True)
        with open("redirected") as text:
            self.assertEqual(40, text.read().count("\n"))


class Links(Files):
    def test_own_links_stay(self):
        os.mkdir("there")
        for command, out in makers():
            with self.subTest(command=command):
                target = os.path.join("there", os.path.basename(out))
                os.symlink(target, out)
                probing(*command, check=t.OK)  # dangling
                probing(*command, check=t.OK)
                self.assertEqual(target, os.readlink(out))
                self.assertGreater(os.stat(target).st_size, 0)

    def refuse_each(self, plant, *patterns):
        """In folders that all may write to, sticky or not."""
        t.need_root()
        os.mkdir("outside")
        for mode in (0o1777, 0o777):
            os.mkdir("public")
            os.chmod("public", mode)
            for command, out in makers("public"):
                with self.subTest(command=command, mode=oct(mode)):
                    with open("outside/precious", "w") as precious:
                        precious.write("precious")
                    plant(out)
                    os.chown(out, SOMEBODY, SOMEBODY, follow_symlinks=False)
                    before = os.lstat(out)
                    said = probing(*command, timeout=20, check=t.NO_OUTPUT)
                    self.assertSentence(said.stderr, *patterns)
                    self.assertEqual(before.st_ino, os.lstat(out).st_ino)
                    self.assertEqual(["precious"], os.listdir("outside"))
                    self.assertEqual((0, 0o644), (os.stat("outside/precious").st_uid,
                                                  os.stat("outside/precious").st_mode & 0o7777))
            for name in os.listdir("public"):
                os.unlink(os.path.join("public", name))
            os.rmdir("public")

    def test_somebody_elses_link(self):
        self.refuse_each(lambda out: os.symlink("../outside/precious", out), "leads through a symbolic link of another user")

    def test_somebody_elses_dangling_link(self):
        self.refuse_each(lambda out: os.symlink("../outside/new", out), "leads through a symbolic link of another user")

    def test_somebody_elses_fifo(self):
        self.refuse_each(os.mkfifo, "belongs to another user")

    def test_somebody_elses_file(self):
        def plant(out):
            with open(out, "w"):
                pass
        self.refuse_each(plant, "belongs to another user")

    def test_somebody_elses_folder_link(self):
        t.need_root()
        os.mkdir("outside")
        os.mkdir("public")
        os.chmod("public", 0o1777)
        os.symlink("../outside", "public/way")
        os.chown("public/way", SOMEBODY, SOMEBODY, follow_symlinks=False)
        for command, _ in makers("public/way"):
            with self.subTest(command=command):
                said = probing(*command, check=t.NO_OUTPUT)
                self.assertSentence(said.stderr, "leads through a symbolic link of another user")
        self.assertEqual([], os.listdir("outside"))

    def test_logs(self):
        t.need_root()
        t.need_perf()
        os.mkdir("public")
        with open("precious", "w") as precious:
            precious.write("precious")
        for mode in (0o1777, 0o777):
            os.chmod("public", mode)
            for plant in (lambda out: os.symlink("../precious", out), lambda out: os.symlink("../new", out), os.mkfifo,
                          lambda out: os.close(os.open(out, os.O_CREAT))):
                plant("public/log")
                os.chown("public/log", SOMEBODY, SOMEBODY, follow_symlinks=False)
                said = probing("top", "--once", "--output", "public/log", "--", "true", timeout=20, check=t.NO_OUTPUT)
                self.assertSentence(said.stderr, "another user")
                os.unlink("public/log")
        self.assertFalse(os.path.exists("new"))
        with open("precious") as precious:
            self.assertEqual("precious", precious.read())

    def test_the_owner_of_a_replaced_file_keeps_it(self):
        t.need_root()
        os.mkdir("home")
        os.chown("home", SOMEBODY, SOMEBODY)
        for command, out in makers("home"):
            with self.subTest(command=command):
                with open(out, "w"):
                    os.chown(out, SOMEBODY, SOMEBODY)
                probing(*command, check=t.OK)
                self.assertEqual(SOMEBODY, os.stat(out).st_uid)


class Attacks(Files):
    """Somebody else is at work in the folder meanwhile."""
    alone = True

    def setUp(self):
        t.need_root()
        super().setUp()
        os.mkdir("outside")
        with open("outside/precious", "w") as precious:
            precious.write("precious")
        os.chmod("outside/precious", 0o640)
        self.before = os.stat("outside/precious")

    @contextlib.contextmanager
    def attacker(self, target):
        process = subprocess.Popen([sys.executable, "-c", ATTACKER, "public", os.path.abspath("outside/precious"), target],
                                   stdout=subprocess.PIPE, text=True)
        try:
            process.stdout.readline()
            yield process
        finally:
            process.kill()
            said = process.stdout.read()
            process.stdout.close()
            process.wait()
            self.n_swaps += int((said.split() or ["0"])[-1])

    def assertNothingReached(self, what):
        self.assertEqual(["precious"], os.listdir("outside"), what)
        now = os.stat("outside/precious")
        self.assertEqual((self.before.st_uid, self.before.st_gid, self.before.st_mode, self.before.st_mtime_ns),
                         (now.st_uid, now.st_gid, now.st_mode, now.st_mtime_ns), what)
        with open("outside/precious") as precious:
            self.assertEqual("precious", precious.read(), what)

    def give_way(self, out):
        """In a sticky folder what root has made stays, and the attacker waits for its end."""
        with contextlib.suppress(OSError):
            os.unlink(out)

    def clear(self):
        for name in os.listdir("public"):
            path = os.path.join("public", name)
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.rmdir(path)
            else:
                os.unlink(path)

    def withstand(self, mode, owner):
        os.mkdir("public")
        os.chown("public", owner, owner)
        os.chmod("public", mode)
        self.n_swaps = n_made = 0
        for command, out in makers("public"):
            with self.attacker(os.path.basename(out)):
                for _ in range(TRIES):
                    done = probing(*command, timeout=30)
                    self.assertGreaterEqual(done.returncode, 0, done.stderr)  # it may fail, but not crash
                    n_made += done.returncode == t.OK
                    self.give_way(out)
                    self.assertNothingReached(command)
            self.clear()
        self.assertGreater(self.n_swaps, MIN_SWAPS)
        self.assertGreater(n_made, 0)

    def test_in_a_sticky_folder(self):
        self.withstand(0o1777, 0)

    def test_in_a_folder_that_everybody_may_write_to(self):
        self.withstand(0o777, 0)

    def test_in_a_folder_of_theirs(self):
        self.withstand(0o755, SOMEBODY)

    def test_in_a_sticky_folder_of_theirs(self):
        self.withstand(0o1777, SOMEBODY)

    def test_of_a_log(self):
        t.need_perf()
        os.mkdir("public")
        os.chmod("public", 0o1777)
        self.n_swaps = 0
        with self.attacker("log"):
            for _ in range(TRIES):
                probing("top", "--once", "--output", "public/log", "--", "echo", "text", timeout=30)
                self.assertNothingReached("top")
                self.give_way("public/log")
        self.assertGreater(self.n_swaps, MIN_SWAPS)


class Control(t.Case):
    """The FIFOs of record --control."""

    def refused(self, pattern):
        said = probing("record", "-o", "out.db", "--control", "fifo", "--", "true", timeout=20, check=t.NO_OUTPUT)
        self.assertSentence(said.stderr, pattern)
        self.assertFalse(os.path.exists("out.db"))

    def test_one_that_everybody_may_write_to(self):
        os.mkfifo("fifo")
        os.chmod("fifo", 0o622)
        self.refused("everybody may write to the FIFO fifo")
        self.assertTrue(stat.S_ISFIFO(os.stat("fifo").st_mode))

    def test_one_of_somebody_else(self):
        t.need_root()
        os.mkfifo("fifo")
        os.chown("fifo", SOMEBODY, SOMEBODY)
        self.refused("belongs to another user")

    def test_a_link_of_somebody_else(self):
        t.need_root()
        os.mkfifo("own")
        os.symlink("own", "fifo")
        os.chown("fifo", SOMEBODY, SOMEBODY, follow_symlinks=False)
        self.refused("symbolic link of another user")

    def test_only_what_was_made_is_removed(self):
        with t.recorder("-o", "out.db", "--control", "fifo,reply", "--", "sleep", 60) as process:
            t.wait_until(lambda: os.path.exists("reply"), 20, "the FIFOs")
            t.wait_until(lambda: os.path.exists("out.db"), 20, "the recording")
            self.assertEqual(0o600, os.stat("fifo").st_mode & 0o777)
            program = t.child_of(process.pid)  # of a recorder that is still there
            os.rename("fifo", "moved")
            with open("fifo", "w") as another:
                another.write("precious")
            with open("moved", "w") as control:
                control.write("stop\n")
            os.kill(program, 15)
            process.communicate(timeout=30)
        with open("fifo") as another:
            self.assertEqual("precious", another.read())
        self.assertTrue(stat.S_ISFIFO(os.stat("moved").st_mode))
        self.assertFalse(os.path.exists("reply"))


if __name__ == "__main__":
    unittest.main()
