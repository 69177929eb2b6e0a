# SPDX-License-Identifier: MIT
"""What becomes of a recording's file: killed recorders, damage of every kind, full and read-only disks, power loss."""
import contextlib
import hashlib
import importlib.util
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import probing_test as t
from probing_test import fixture, probing, recorder

# Flipped bits; as an ordinary user, and in CI, some will do.
FLIPS = int(os.environ.get("PROBING_FLIPS") or (120 if os.geteuid() == 0 else 40))
# Allocations of a recorder that are made to fail, one in each run.
POINTS = int(os.environ.get("PROBING_POINTS") or 16)
KNOWN = {t.OK, t.FAILED, t.USAGE, t.BAD_DATA, t.NO_INPUT, t.NO_OUTPUT, t.IO, t.NOT_PERMITTED}


def load_kills():
    spec = importlib.util.spec_from_file_location("kills", os.path.join(t.ROOT, "bench", "kills.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(path):
    """(exit status, the one object of info --check --json or None, what was said)."""
    done = probing("info", "--check", "--json", path)
    about = json.loads(done.stdout) if done.stdout.strip() else []
    return done.returncode, about[0] if about else None, done.stderr


def contents(path):
    """Everything in the real tables, as one number; None where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
            db.text_factory = bytes
            tables = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
                                " ORDER BY name").fetchall()
            for name, sql in tables:
                digest.update(name + sql)
                for row in db.execute("SELECT * FROM \"%s\"" % name.decode()):
                    digest.update(repr(row).encode())
    except sqlite3.Error:
        return None
    return digest.digest()


class Recorded(t.Case):
    """A small recording that ended cleanly, copied for each test."""

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with fixture("demo.py") as target:
            t.record_cpu(target, 0.6, 299)

    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(self.folder, "probing.db"), "probing.db")


class Damage(Recorded):
    NIGHTLY_FOR_USERS = True  # a file is as damaged for everybody

    def test_sound(self):
        status, about, said = check("probing.db")
        self.assertEqual((t.OK, True, True), (status, about["check"]["sound"], about["check"]["verified"]), said)

    def test_cut_at_every_page(self):
        size = os.path.getsize("probing.db")
        for n_bytes in range(0, size, 4096):
            with open("cut.db", "wb") as cut, open("probing.db", "rb") as whole:
                cut.write(whole.read(n_bytes))
            status, _, said = check("cut.db")
            self.assertEqual(t.BAD_DATA, status, "%d of %d bytes: %s" % (n_bytes, size, said))
            self.assertSentence(said)

    def test_a_flipped_bit(self):
        """Damage is said, or there is none: not one value has changed."""
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        with open("probing.db", "rb") as file:
            whole = file.read()
        before = contents("probing.db")
        n_seen = 0
        for i in range(FLIPS):
            bit = rng.randrange(len(whole) * 8)
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            with open("flipped.db", "wb") as file:
                file.write(damaged)
            status, about, said = check("flipped.db")
            where = "seed %d, flip %d, bit %d: %d %s" % (seed, i, bit, status, said)
            self.assertIn(status, (t.OK, t.BAD_DATA), where)
            n_seen += status != t.OK
            if status == t.OK and about["check"]["verified"]:
                self.assertEqual(before, contents("flipped.db"), where)
            elif status != t.OK:
                self.assertTrue(said.startswith("probing: "), where)
            if i % 20 == 0:
                self.use_all(where)
        self.assertGreater(n_seen, FLIPS // 10)  # most of a small file is room

    def use_all(self, where):
        """Whatever reads it ends by itself, with a status that means something."""
        for verb in (["report"], ["sql", "SELECT count(*), max(name) FROM sample LEFT JOIN stack USING (stack) LEFT JOIN"
                                  " named_frame USING (frame)"], ["flamegraph", "-o", "-"],
                     ["compact", "-q", "-o", "new.db", "--force"], ["export", "-q", "--to", "sqlite", "-o", "new.sqlite", "--force"]):
            arguments = verb[:1] + ["flipped.db"] + verb[1:]
            self.assertIn(probing(*arguments).returncode, KNOWN, "%s: %s" % (verb, where))

    def test_changed_by_another_program(self):
        with contextlib.closing(sqlite3.connect("probing.db")) as db, db:
            db.execute("UPDATE function SET name = 'renamed' WHERE function = (SELECT min(function) FROM function)")
        status, about, said = check("probing.db")
        self.assertEqual((t.BAD_DATA, 1), (status, about["check"]["n_wrong"]))
        self.assertSentence(said, "another program changed it")

    def test_a_page_number_above_the_largest(self):
        """SQLite calls that a full disk."""
        with contextlib.closing(sqlite3.connect("probing.db")) as db:
            with db:
                db.execute("UPDATE function SET name = hex(zeroblob(9000)) WHERE function = (SELECT max(function) FROM function)")
            page, size = db.execute("SELECT min(pageno), max(pgsize) FROM dbstat WHERE name = 'function' AND pagetype = 'overflow'"
                                    " AND path LIKE '%+000000'").fetchone()
        with open("probing.db", "r+b") as file:
            file.seek((page - 1) * size)  # where the number of the next page is
            file.write(b"\x80")
        status, _, said = check("probing.db")
        self.assertEqual(t.BAD_DATA, status, said)
        self.assertSentence(said, "is damaged")
        for verb in (["report"], ["compact", "-o", "new.db"], ["export", "--to", "sqlite", "-o", "new.sqlite"]):
            said = probing(verb[0], "probing.db", *verb[1:], check=t.BAD_DATA)
            self.assertSentence(said.stderr, "is damaged")

    def test_a_value_that_the_tables_forbid(self):
        def change_schema(change):
            with contextlib.closing(sqlite3.connect("probing.db")) as db, db:
                db.execute("PRAGMA writable_schema = ON")
                db.execute("UPDATE sqlite_schema SET sql = %s WHERE name = 'stack'" % change)

        change_schema("replace(sql, 'NOT NULL', '/* may be NULL */')")
        with contextlib.closing(sqlite3.connect("probing.db")) as db, db:
            db.execute("UPDATE stack SET frame = NULL WHERE stack = (SELECT max(stack) FROM stack)")
        change_schema("replace(sql, '/* may be NULL */', 'NOT NULL')")
        said = probing("compact", "probing.db", "-o", "new.db", check=t.BAD_DATA)
        self.assertSentence(said.stderr, "probing.db is damaged")

    def test_symbolize_keeps_the_sum(self):
        probing("symbolize", "--redo", "-q", "probing.db", check=t.OK)
        status, about, _ = check("probing.db")
        self.assertEqual((t.OK, True), (status, about["check"]["verified"]))

    def test_newer_version(self):
        with contextlib.closing(sqlite3.connect("probing.db")) as db:
            db.execute("PRAGMA user_version = 99")
        for verb in (["info"], ["sql", "SELECT 1"], ["compact"], ["export", "--to", "sqlite"]):
            said = probing(verb[0], "probing.db", *verb[1:], check=t.BAD_DATA)
            self.assertSentence(said.stderr, "newer version")


class Killed(t.Case):
    def test_at_random_moments(self):
        said = []
        wrong, with_samples = load_kills().run(t.BINARY, 20 if os.geteuid() == 0 else 8, 4, random.randrange(1 << 30), said.append)
        self.assertEqual([], wrong, said)
        self.assertGreater(with_samples, 0)

    def test_what_is_said_of_it(self):
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-F", 499, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            self.assertIn("it is being recorded", probing("info", "out.db", check=t.OK).stdout)
            process.kill()
            process.wait()
        text = probing("info", "--check", "out.db", check=t.OK).stdout
        self.assertRegex(text, r"ended +not cleanly: its recorder was killed; its last sample is from \d{4}-\d\d-\d\d .*, \d+\.\d s after")
        self.assertRegex(text, "check +intact, but not verified")
        self.assertRegex(text, "in the log beside it")
        # written anew it stands alone, and what there is of it has a sum
        probing("compact", "-q", "out.db", check=t.OK)
        self.assertEqual(["out.db"], os.listdir("."))
        status, about, _ = check("out.db")
        self.assertEqual((t.OK, True, False), (status, about["check"]["verified"], about["runs"][0]["clean"]))

    def test_two_recorders_of_one_file(self):
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            said = probing("record", "--pid", target.pid, "-d", 1, "-o", "out.db", check=t.NO_OUTPUT)
            self.assertIn("another recorder", said.stderr)
            self.assertSentence(probing("compact", "out.db", check=t.NO_OUTPUT).stderr, "is being recorded")
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        self.assertEqual(t.OK, check("out.db")[0])

    def test_a_recording_that_is_moved_away(self):
        for where in ("elsewhere.db", None):
            with self.subTest(where), fixture("demo.py") as target, recorder("--pid", target.pid, "-q", "-o", "out.db") as process:
                t.wait_for_samples("out.db")
                os.rename("out.db", where) if where else os.unlink("out.db")
                status, _, said = t.stop_politely(process)
                self.assertEqual(t.IO, status, said)
                self.assertSentence(said, "out.db was moved or deleted .*: .* after its recorder has ended")
            if where:
                status, about, said = check(where)
                self.assertEqual(t.OK, status, said)
                self.assertGreater(about["samples"], 0)

    def test_readers_while_it_is_recorded(self):
        counts = []
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-F", 999, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            began = time.monotonic()
            while not counts or time.monotonic() < began + 2 or (counts[0] == counts[-1] and time.monotonic() < began + 40):
                status, about, said = check("out.db")
                self.assertEqual((t.OK, True), (status, about["is_being_recorded"]), said)
                counts.append(about["samples"])
            probing("compact", "-q", "out.db", "-o", "copy.db", check=t.OK)
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        self.assertEqual(sorted(counts), counts)
        self.assertLess(counts[0], counts[-1])
        self.assertEqual(t.OK, check("copy.db")[0])
        self.assertGreaterEqual(check("copy.db")[1]["samples"], counts[-1])

    def test_power_loss(self):
        """The log may end anywhere: what is left is whole up to some commit, and longer where more is left."""
        rng = random.Random(random.randrange(1 << 30))
        n_cut = 0
        with fixture("demo.py") as target, recorder("--pid", target.pid, "-F", 1999, "-o", "out.db") as process:
            t.wait_for_samples("out.db")
            for _ in range(4 if os.geteuid() == 0 else 2):
                time.sleep(rng.uniform(0, 0.4))
                process.send_signal(signal.SIGSTOP)
                try:
                    shutil.copy("out.db", "left.db")
                    with open("out.db-wal", "rb") as log:
                        whole = log.read()
                finally:
                    process.send_signal(signal.SIGCONT)
                n_before = -1
                for n_bytes in sorted([0, len(whole)] + [rng.randrange(len(whole) + 1) for _ in range(6)]):
                    for beside in ("left.db-shm", "left.db-wal"):
                        with contextlib.suppress(FileNotFoundError):
                            os.unlink(beside)
                    shutil.copy("left.db", "opened.db")
                    with open("opened.db-wal", "wb") as log:
                        log.write(whole[:n_bytes])
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink("opened.db-shm")
                    status, about, said = check("opened.db")
                    self.assertEqual(t.OK, status, "%d of %d bytes: %s" % (n_bytes, len(whole), said))
                    self.assertGreaterEqual(about["samples"], n_before)
                    n_before = about["samples"]
                    n_cut += 0 < n_bytes < len(whole)
            self.assertEqual(t.OK, t.stop_politely(process)[0])
        self.assertGreater(n_cut, 0)


def limit_files(n_bytes):
    """For a child, before its exec: no file beyond that size, and the signal's disposition as a shell leaves it."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    return limit


def limited(n_bytes, *verb):
    return probing(*verb, preexec_fn=limit_files(n_bytes))


class Disks(Recorded):
    """What cannot be written leaves everything as it was."""

    VERBS = (["compact", "probing.db"], ["compact", "probing.db", "-o", "small/out.db"],
             ["merge", "probing.db", "other.db", "-o", "small/out.db"],
             ["export", "probing.db", "--to", "sqlite", "-o", "small/out.sqlite"],
             ["export", "probing.db", "--to", "svg", "-o", "small/out.svg"])

    def setUp(self):
        super().setUp()
        shutil.copy("probing.db", "other.db")
        os.mkdir("small")
        self.before = contents("probing.db")

    def expect_nothing(self, done, *statuses):
        self.assertIn(done.returncode, statuses, done.stderr)
        self.assertSentence(done.stderr)
        self.assertEqual([], os.listdir("small"))
        self.assertEqual(["other.db", "probing.db", "small"], sorted(os.listdir(".")))
        self.assertEqual(self.before, contents("probing.db"))

    def test_a_limit_of_size(self):
        folded = os.path.join(self.folder, "folded.txt")
        probing("export", "probing.db", "--to", "folded", "-o", folded, check=t.OK)
        verbs = self.VERBS + (["import", folded, "-o", "small/out.db"],
                              ["flamegraph", "probing.db", "-o", "small/out.svg"],
                              ["export", "probing.db", "--to", "html", "-o", "small/out.html"])
        for kib in (1, 8, 32):
            for verb in verbs:
                with self.subTest(verb, kib=kib):
                    done = limited(kib << 10, *verb)
                    if verb[-1].endswith(".svg") and kib > 8 and done.returncode == t.OK:
                        os.unlink("small/out.svg")
                        continue  # a picture may be that small
                    self.expect_nothing(done, t.IO)
                    self.assertRegex(done.stderr, "(?i)file too large|file size limit")

    def test_a_limit_of_size_on_standard_output(self):
        for verb in (["report", "probing.db"], ["export", "probing.db", "--to", "html", "-o", "-"], ["--help"],
                     ["sql", "probing.db", "SELECT * FROM sample", "-f", "csv"]):
            with self.subTest(verb), open("small/text", "w") as text:
                done = subprocess.run([t.BINARY] + verb, stdin=subprocess.DEVNULL, stdout=text, stderr=subprocess.PIPE,
                                      text=True, preexec_fn=limit_files(100))
                self.assertEqual(t.IO, done.returncode, done.stderr)
                self.assertSentence(done.stderr, "standard output.*File too large")

    def test_a_full_disk(self):
        t.need_root()
        script = "mount -t tmpfs -o size=64k tmpfs small && shift 0 && exec \"$@\""
        for verb in self.VERBS[1:4]:
            with self.subTest(verb):
                done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", t.BINARY] + verb, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                if "mount:" in done.stderr or "unshare:" in done.stderr:
                    raise unittest.SkipTest("may not mount a tmpfs: " + done.stderr.strip())
                self.expect_nothing(done, t.IO)

    def test_a_read_only_disk(self):
        if os.geteuid() != 0:
            os.chmod("small", 0o555)
            for verb in self.VERBS[1:]:
                with self.subTest(verb):
                    self.expect_nothing(probing(*verb), t.NO_OUTPUT)
            os.chmod("small", 0o755)
            return
        script = "mount -t tmpfs tmpfs small && cp probing.db small/in.db && mount -o remount,ro small && exec \"$@\""
        for verb, status in [(verb, t.NO_OUTPUT) for verb in self.VERBS[1:]] + [
                (["compact", "small/in.db"], t.NO_OUTPUT), (["info", "--check", "small/in.db"], t.OK),
                (["record", "-o", "small/new.db", "--", "true"], t.NO_OUTPUT)]:
            with self.subTest(verb):
                done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", t.BINARY] + verb, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                if "mount:" in done.stderr or "unshare:" in done.stderr:
                    raise unittest.SkipTest("may not mount a tmpfs: " + done.stderr.strip())
                if status == t.OK:
                    self.assertEqual(t.OK, done.returncode, done.stderr)
                else:
                    self.expect_nothing(done, status)

    def test_recording_until_the_size_limit(self):
        with fixture("demo.py") as target:
            done = limited(256 << 10, "record", "--pid", target.pid, "-F", 4999, "-d", 50, "-q", "-o", "small/out.db")
            self.assertTrue(target.is_running())
        self.assertEqual(t.IO, done.returncode, done.stderr)
        self.assertSentence(done.stderr, "small/out.db")
        status, about, said = check("small/out.db")
        self.assertEqual((t.OK, False), (status, about["runs"][0]["clean"]), said)
        self.assertGreater(about["samples"], 0)

    def test_a_recording_that_cannot_begin(self):
        for kib in (1, 8, 32):
            with self.subTest(kib=kib):
                self.expect_nothing(limited(kib << 10, "record", "-o", "small/out.db", "--", "true"), t.IO)

    def test_the_signal_of_the_limit_is_the_command_s_own(self):
        show = ["sh", "-c", "grep SigIgn /proc/self/status; ulimit -f"]
        for ignored in (signal.SIG_DFL, signal.SIG_IGN):
            with self.subTest(ignored):
                runs = [subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True,
                                       preexec_fn=lambda: signal.signal(signal.SIGXFSZ, ignored)).stdout
                        for command in (show, [t.BINARY, "record", "-q", "-o", "small/out.db", "--"] + show)]
                self.assertEqual(runs[0], runs[1])
                mask = int(runs[1].split()[1], 16)
                self.assertEqual(ignored == signal.SIG_IGN, bool(mask >> signal.SIGXFSZ - 1 & 1))


# Ever new functions and stacks: what a recorder keeps of them grows without end.
GROWING = """
import random, time
def make(n):
    names = ["f%d_%d" % (n, i) for i in range(40)]
    functions = {}
    for name in names:
        exec("def %s(depth, ways):\\n  s = sum(range(600))\\n"
             "  return functions[ways[depth]](depth + 1, ways) if depth < 60 else s" % name, {"functions": functions}, functions)
    for _ in range(30):
        functions[names[0]](0, [random.choice(names) for _ in range(61)])
stop, n = time.monotonic() + 100, 0
print("ready {}", flush=True)
while time.monotonic() < stop:
    make(n)
    n += 1
"""


class Memory(t.Case):
    NIGHTLY_FOR_USERS = True  # everybody's memory ends

    def test_a_recorder_without_memory_leaves_no_clean_run(self):
        for n_bytes in (0, 256 << 10):
            path = "%d.db" % n_bytes
            with self.subTest(n_bytes), t.target([t.DEBIAN_PYTHON, "-c", GROWING]) as target, \
                    recorder("--pid", target.pid, "-F", 4999, "-d", 80, "-q", "-o", path) as process:
                t.wait_for_samples(path)
                with open("/proc/%d/statm" % process.pid) as statm:
                    most = int(statm.read().split()[0]) * resource.getpagesize() + n_bytes
                resource.prlimit(process.pid, resource.RLIMIT_AS, (most, most))
                _, said = process.communicate(timeout=90)
                self.assertEqual(t.FAILED, process.returncode, said)
                self.assertSentence(said, "memory.*%s|%s.*memory" % (path, path))
                self.assertTrue(target.is_running())
                status, about, said = check(path)
                self.assertEqual((t.OK, False), (status, about["runs"][0]["clean"]), said)
                self.assertGreater(about["samples"], 0)

    def record_with(self, target, which, path):
        preload = os.path.join(t.BUILT_FIXTURES, "failing_malloc.so")
        return probing("record", "--pid", target.pid, "-F", 999, "-d", 0.2, "-q", "--no-symbols", "-o", path,
                       env=dict(os.environ, LD_PRELOAD=preload, FAILING_MALLOC=str(which)))

    def test_one_allocation_that_fails_is_told_and_leaves_no_clean_run(self):
        n_told = 0
        with fixture("demo.py") as target:
            whole = self.record_with(target, "count", "whole.db")
            self.assertEqual(t.OK, whole.returncode, whole.stderr)
            n_allocations = int(re.fullmatch(r"(\d+) allocations\n", whole.stderr).group(1))
            for i in range(POINTS):
                which = n_allocations * (2 * i + 1) // (2 * POINTS)
                path = "%d.db" % which
                with self.subTest(which, of=n_allocations):
                    done = self.record_with(target, which, path)
                    if not os.path.exists(path):
                        self.assertIn(done.returncode, (t.FAILED, t.NO_OUTPUT), done.stderr)
                        self.assertSentence(done.stderr)
                        continue
                    self.assertIn(done.returncode, (t.OK, t.FAILED), done.stderr)
                    with contextlib.closing(sqlite3.connect(path)) as db:
                        self.assertEqual([("ok",)], db.execute("PRAGMA integrity_check").fetchall())
                        clean = db.execute("SELECT coalesce(max(clean), 0) FROM run").fetchone()[0]
                    self.assertEqual(done.returncode == t.OK, bool(clean), done.stderr)
                    if done.returncode != t.OK:
                        self.assertSentence(done.stderr, "(?i)memory|unavailable")
                        n_told += "recording stopped" in done.stderr
        self.assertGreater(n_told, 0)


class Days(t.Case):
    def test_retention_by_the_environment(self):
        environment = dict(os.environ, PROBING_RETENTION_DAYS="%.9f" % (1 / 86400))
        with fixture("demo.py") as target:
            said = probing("record", "--pid", target.pid, "-F", 499, "-d", 3.5, "-o", "out.db", env=environment, check=t.OK)
        self.assertIn("newest", said.stderr)
        about = json.loads(probing("info", "--json", "out.db", check=t.OK).stdout)[0]
        self.assertGreater(about["dropped"], 0)

    def test_days_that_are_none(self):
        for days in ("soon", "-1", "0", "1e9"):
            said = probing("record", "-o", "out.db", "--", "true", env=dict(os.environ, PROBING_RETENTION_DAYS=days),
                           check=t.USAGE)
            self.assertIn("PROBING_RETENTION_DAYS", said.stderr)
        self.assertEqual([], os.listdir("."))


if __name__ == "__main__":
    sys.exit(unittest.main())
