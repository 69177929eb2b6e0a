# SPDX-License-Identifier: MIT
"""Another user attacks while root reads recordings: by files beside them, by what is in them, and by changing both meanwhile.

Reading removes, changes and creates nothing but what the verb's output is; it does not crash, hang or take much memory.
"""
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import struct
import sys
import unittest

import attacks
import probing_test as t

MUTATIONS = int(os.environ.get("PROBING_MUTATIONS") or (1000 if os.environ.get("PROBING_NIGHTLY") else 100))


class Attack(t.Case):
    """home/secret is root's alone, home/shared is everybody's and sticky, home/work is where root's verbs run."""
    maxDiff = None
    geometry = (0, 0)  # of the recording; each class has another one

    @classmethod
    def setUpClass(cls):
        t.need_root()
        t.need_perf()
        folder = t.scratch()
        cls.folder = folder.__enter__()
        cls.addClassCleanup(folder.__exit__, None, None, None)
        with t.fixture("demo.py") as target:
            t.record_cpu(target, 0.7, 299, "sound.db")
        Attack.geometry = attacks.geometry(os.path.join(cls.folder, "sound.db"))
        cls.log, cls.index = attacks.attackers_log(os.path.join(cls.folder, "sound.db"))

    def setUp(self):
        super().setUp()
        self.home = os.getcwd()
        os.chmod(self.home, 0o755)
        self.secret, self.shared, self.work = (os.path.join(self.home, name) for name in ("secret", "shared", "work"))
        os.mkdir(self.secret, 0o700)
        os.mkdir(self.work, 0o755)
        os.mkdir(self.shared)
        os.chmod(self.shared, 0o1777)
        self.kept = os.path.join(self.secret, "kept")
        self.restore_kept()
        self.sound = self.place_sound(os.path.join(self.secret, "sound.db"))

    def restore_kept(self):
        """An attack that succeeded has removed it."""
        if not os.path.exists(self.kept):
            attacks.write_new(self.kept, attacks.SECRET_TEXT.encode())
            os.chmod(self.kept, 0o600)

    def place_sound(self, path, owner=0):
        shutil.copyfile(os.path.join(self.folder, "sound.db"), path)
        os.chmod(path, 0o644)
        os.chown(path, owner, owner)
        return path

    def attackers_folder(self):
        folder = os.path.join(self.home, "attackers")
        os.mkdir(folder, 0o755)
        os.chown(folder, attacks.OTHER, attacks.OTHER)
        return folder

    def run_verb(self, verb, path, **more):
        return attacks.run(*attacks.arguments_of(verb, path, self.sound), cwd=self.work, **more)


# ---- 1. Files beside a recording ----

class Plants:
    """What the other user puts beside a recording. Each takes the recording's path and the file that is root's alone."""

    @staticmethod
    def hot_journal(path, kept):
        attacks.write_new(path + "-journal", attacks.hot_journal(Attack.geometry, kept))

    @staticmethod
    def journal_of_zeros(path, kept):
        attacks.write_new(path + "-journal", bytes(512))

    @staticmethod
    def log_of_the_attacker(path, kept):
        attacks.write_new(path + "-wal", PlantedFiles.log)

    @staticmethod
    def log_and_index_of_the_attacker(path, kept):
        attacks.write_new(path + "-wal", PlantedFiles.log)
        attacks.write_new(path + "-shm", PlantedFiles.index)

    @staticmethod
    def index_of_noise(path, kept):
        attacks.write_new(path + "-shm", random.Random(1).randbytes(32768))

    @staticmethod
    def empty_index(path, kept):
        attacks.write_new(path + "-wal", PlantedFiles.log)
        attacks.write_new(path + "-shm", b"")


def add_kinds():
    """Each of the three names as a link, a FIFO and a folder."""
    kinds = {
        "symlink": lambda name, kept: os.symlink(kept, name),
        "dangling_symlink": lambda name, kept: os.symlink(os.path.join(os.path.dirname(kept), "made"), name),
        "hard_link": lambda name, kept: os.link(kept, name),
        "fifo": lambda name, kept: os.mkfifo(name),
        "folder": lambda name, kept: os.mkdir(name),
    }
    for suffix in attacks.BESIDE:
        for kind, make in kinds.items():
            def plant(path, kept, suffix=suffix, make=make):
                make(path + suffix, kept)
            setattr(Plants, "%s_as_%s" % (suffix[1:], kind), staticmethod(plant))


add_kinds()
PLANTS = sorted(name for name in vars(Plants) if not name.startswith("_"))


class PlantedFiles(Attack):
    log = index = b""
    is_attackers = False  # whose the recording is, and so what its log says

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        PlantedFiles.log, PlantedFiles.index = cls.log, cls.index

    def plant(self, name, path):
        """Returns what has been planted: paths."""
        if "hard_link" in name:
            with open("/proc/sys/fs/protected_hardlinks") as setting:
                if setting.read().strip() != "0":
                    return []  # nobody can make one
        attacks.as_other(getattr(Plants, name), path, self.kept)
        return [path + suffix for suffix in attacks.BESIDE if os.path.lexists(path + suffix)]

    def clear(self, path):
        """What was planted beside a recording, and what a verb has left there."""
        for one in (path + suffix for suffix in attacks.BESIDE):
            if os.path.isdir(one) and not os.path.islink(one):
                os.rmdir(one)
            elif os.path.lexists(one):
                os.unlink(one)
        self.restore_kept()

    def judge(self, ended, planted, before, folders):
        """What did not hold, as sentences."""
        wrong = attacks.what_is_wrong(ended)
        after = {path: one for folder in folders for path, one in attacks.tree(folder).items()}
        if self.is_attackers:  # the index of a log, as SQLite makes it for whoever reads it first
            after = {path: one for path, one in after.items() if path in before or not path.endswith("-shm")}
        wrong += ["changed: %s: %s" % (path, change) for path, change in attacks.difference(before, after).items()]
        if self.is_attackers and planted[0].endswith("-wal") and ended.status == 65:
            return wrong  # the log is the owner's own, and part of a recording that no longer matches its checksum
        if ended.status not in (0, 2, 3) and not any(os.path.basename(path) in ended.err for path in planted):
            wrong.append("failed (%d), and no planted file is named: %s" % (ended.status, ended.err.strip()))
        if not self.is_attackers and "the attacker was here" in ended.out:
            wrong.append("shows what the attacker wrote as the recording's")
        return wrong

    def attack(self, path, verbs, folders, plants=PLANTS):
        for name in plants:
            planted = self.plant(name, path)
            try:
                if planted:
                    self.try_verbs(name, path, planted, verbs, folders)
            finally:
                self.clear(path)

    def try_verbs(self, name, path, planted, verbs, folders):
        before = {one: what for folder in folders for one, what in attacks.tree(folder).items()}
        for verb in verbs:
            with self.subTest(planted=name, verb=verb):
                wrong = self.judge(self.run_verb(verb, path, timeout_s=attacks.HANG_SECONDS), planted, before, folders)
                self.assertEqual([], wrong)
            if {one: what for folder in folders for one, what in attacks.tree(folder).items()} != before or \
               any("ended by signal" in sentence for sentence in wrong):
                return  # the attack has succeeded: further verbs would find something else

    def test_every_verb_leaves_a_hot_journal_and_what_it_names(self):
        """The journal names a file of root's as its super-journal, which SQLite would remove when it rolls back."""
        path = self.place_sound(os.path.join(self.shared, "x.db"))
        for verb in attacks.VERBS:
            planted = self.plant("hot_journal", path)
            self.try_verbs("hot_journal", path, planted, [verb], [self.secret, self.shared])
            self.clear(path)

    def test_roots_recording_in_a_sticky_folder(self):
        path = self.place_sound(os.path.join(self.shared, "x.db"))
        self.attack(path, attacks.FEW_VERBS, [self.secret, self.shared])

    def test_the_attackers_recording_in_a_folder_of_his(self):
        self.is_attackers = True
        path = self.place_sound(os.path.join(self.attackers_folder(), "x.db"), attacks.OTHER)
        self.attack(path, attacks.FEW_VERBS, [self.secret, os.path.dirname(path)])

    def test_recording_as_a_symlink(self):
        """Files are beside the link, which leads to root's own recording, or to one of the attacker's."""
        folder = self.attackers_folder()
        real = self.place_sound(os.path.join(folder, "real.db"), attacks.OTHER)
        for target in (self.sound, real):
            self.is_attackers = target == real
            path = os.path.join(folder, "x.db")
            attacks.as_other(os.symlink, target, path)
            for name in ("hot_journal", "log_of_the_attacker", "shm_as_symlink", "wal_as_fifo"):
                for beside in sorted({path, target} - {self.sound}):
                    planted = self.plant(name, beside)
                    with self.subTest(target=os.path.basename(target), beside=os.path.basename(beside)):
                        self.try_verbs(name, path, planted, ["info", "sql", "compact"], [self.secret, folder])
                    self.clear(beside)
            os.unlink(path)

    def test_symlink_to_another_file_than_a_recording(self):
        path = os.path.join(self.attackers_folder(), "x.db")
        attacks.as_other(os.symlink, self.kept, path)
        before = attacks.tree(self.secret)
        for verb in attacks.FEW_VERBS:
            with self.subTest(verb):
                ended = self.run_verb(verb, path)
                self.assertIn(ended.status, attacks.DOCUMENTED - {0})
                self.assertNotIn(attacks.SECRET_TEXT.split()[0] + " root may", ended.out + ended.err)
                self.assertEqual({}, attacks.difference(before, attacks.tree(self.secret)))

    def test_symbolize(self):
        """It may change the recording, and nothing else; what it then says is not the attacker's."""
        path = self.place_sound(os.path.join(self.shared, "x.db"))
        for name in PLANTS:
            planted = self.plant(name, path)
            if not planted:
                continue
            before = attacks.tree(self.shared), attacks.tree(self.secret)
            with self.subTest(planted=name):
                ended = attacks.run("symbolize", path, cwd=self.work, timeout_s=attacks.HANG_SECONDS)
                after = attacks.tree(self.shared), attacks.tree(self.secret)
                for one in before + after:
                    one.pop(path, None)
                self.assertEqual([], attacks.what_is_wrong(ended))
                self.assertEqual([{}, {}], [attacks.difference(*pair) for pair in zip(before, after)])
                self.assertTrue(ended.status == 0 or any(os.path.basename(one) in ended.err for one in planted), ended.err)
            self.clear(path)
            with self.subTest(planted=name, after="symbolize"):
                self.assertNotIn("the attacker was here", attacks.run("info", path, cwd=self.work).out)
            self.place_sound(path)

    def test_query_of_the_python_package(self):
        path = self.place_sound(os.path.join(self.shared, "x.db"))
        script = "import probing, sys\ntry:\n print(probing.query(sys.argv[1], sys.argv[2], pandas=False))\n" \
                 "except probing.Error as error:\n sys.exit(str(error))"
        environment = dict(os.environ, PYTHONPATH=os.path.join(t.ROOT, "python"), PROBING_BINARY=t.BINARY)
        for name in ("hot_journal", "log_of_the_attacker"):
            planted = self.plant(name, path)
            before = {**attacks.tree(self.shared), **attacks.tree(self.secret)}
            with self.subTest(planted=name):
                ended = attacks.watch([sys.executable, "-B", "-c", script, "SELECT command FROM run", path], env=environment,
                                      cwd=self.work)
                self.assertEqual([], self.judge(ended, planted, before, [self.shared, self.secret]))
            self.clear(path)


# ---- 2. What is in a recording ----

BIG = "zeroblob(900000000)"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"


def set_sql(db, name, sql):
    changed = db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name)).rowcount
    assert changed == 1, name


def append_sql(db, name, more):
    """Behind the whole statement: SQLite reads the first statement only, who executes the text all."""
    sql, = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    set_sql(db, name, sql + more)


def add_column(db, name, column):
    """Before the closing bracket of CREATE TABLE. Of generated columns and CHECKs nothing is stored, so that rows stay right."""
    sql, = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    at = sql.rindex(")")
    head = sql[:at].rstrip()
    set_sql(db, name, head + "\n, " + column + ")" + sql[at + 1:])


def add_view(db, name, select):
    db.execute("DELETE FROM sqlite_schema WHERE type = 'view' AND name = ?", (name,))
    db.execute("INSERT INTO sqlite_schema VALUES('view', ?1, ?1, 0, ?2)", (name, "CREATE VIEW %s AS %s" % (name, select)))


def add_table(db, name, sql):
    db.execute("PRAGMA writable_schema = OFF")
    db.execute("CREATE TABLE %s(x)" % name)
    db.execute("INSERT INTO %s VALUES(1)" % name)
    db.execute("PRAGMA writable_schema = ON")
    set_sql(db, name, sql)


def add_trigger(db, on, body):
    """At each row that is put, changed or removed."""
    for event in ("INSERT", "UPDATE", "DELETE"):
        name = "%s_%s" % (on, event)
        db.execute("INSERT INTO sqlite_schema VALUES('trigger', ?1, ?2, 0, ?3)",
                   (name, on, "CREATE TRIGGER %s AFTER %s ON %s BEGIN %s; END" % (name, event, on, body)))


def attach(outside, before="", behind=""):
    return before + "; ATTACH '%s/made.db' AS a; CREATE TABLE a.t(x); INSERT INTO a.t VALUES(1)" % outside + behind


# Each changes a copy of a sound recording; outside is a folder in which everybody may make files.
CONTENTS = {
    "second statement of a table": lambda db, outside: append_sql(db, "counter", attach(outside)),
    "second statement of another table": lambda db, outside: add_table(db, "extra", "CREATE TABLE extra(x)" + attach(outside)),
    "second statement outside of the transaction": lambda db, outside: add_table(
        db, "extra", "CREATE TABLE extra(x)" + attach(outside, "; COMMIT", "; BEGIN")),
    "second statement of an index": lambda db, outside: (
        db.execute("PRAGMA writable_schema = OFF"), db.execute("CREATE INDEX extra ON counter(value)"),
        db.execute("PRAGMA writable_schema = ON"), append_sql(db, "extra", attach(outside, "; COMMIT", "; BEGIN"))),
    "second statement of a view": lambda db, outside: append_sql(db, "hot_function", attach(outside)),
    "second statement of a block's table": lambda db, outside: append_sql(db, "sample_block", attach(outside)),
    "VACUUM INTO behind a table": lambda db, outside: append_sql(db, "run", "; COMMIT; VACUUM INTO '%s/made.db'" % outside),
    "journal kept behind a table": lambda db, outside: append_sql(
        db, "run", "; COMMIT; PRAGMA journal_mode = PERSIST; BEGIN; DELETE FROM run"),
    "ATTACH alone": lambda db, outside: add_table(db, "extra", "ATTACH '%s/made.db' AS a" % outside),
    "table as a SELECT": lambda db, outside: add_table(db, "extra", "CREATE TABLE extra AS SELECT %s AS x" % BIG),
    "trigger that loads": lambda db, outside: add_trigger(db, "counter", "SELECT load_extension('%s/made.so')" % outside),
    "trigger that writes": lambda db, outside: add_trigger(db, "frame", "SELECT writefile('%s/made', 'x')" % outside),
    "trigger without end": lambda db, outside: add_trigger(
        db, "frame", "INSERT INTO counter SELECT 'x' || x, x FROM (%s)" % ENDLESS),
    "trigger that is large": lambda db, outside: add_trigger(db, "counter", "UPDATE run SET command = hex(%s)" % BIG),
    "trigger on changes": lambda db, outside: add_trigger(db, "function", "DELETE FROM frame"),
    "view that loads": lambda db, outside: add_view(db, "hot_function", "SELECT load_extension('%s/made.so')" % outside),
    "view that writes": lambda db, outside: add_view(db, "gil", "SELECT writefile('%s/made', 'x'), edit('x', 'touch')" % outside),
    "view that reads": lambda db, outside: add_view(db, "gc", "SELECT readfile('/etc/shadow')"),
    "view of a pragma": lambda db, outside: add_view(db, "gc", "SELECT * FROM pragma_database_list, pragma_journal_mode('WAL')"),
    "view without end": lambda db, outside: add_view(db, "timeline", ENDLESS),
    "view of itself": lambda db, outside: add_view(db, "gc", "SELECT * FROM gc"),
    "view as named_frame": lambda db, outside: add_view(db, "named_frame", ENDLESS),
    "view as sample": lambda db, outside: add_view(db, "sample", ENDLESS),
    "view as sample_total": lambda db, outside: add_view(db, "sample_total", ENDLESS),
    "view as a table of SQLite": lambda db, outside: add_view(db, "sqlite_stat1", ENDLESS),
    "large generated column": lambda db, outside: add_column(db, "counter", "big AS (%s)" % BIG),
    "large generated column of run": lambda db, outside: add_column(db, "run", "big AS (hex(%s))" % BIG),
    "large generated column of frames": lambda db, outside: add_column(db, "frame", "big AS (%s)" % BIG),
    "large generated column of stack_total": lambda db, outside: add_column(db, "stack_total", "big AS (%s)" % BIG),
    "large generated column of another table": lambda db, outside: add_table(
        db, "extra", "CREATE TABLE extra(x, big AS (zeroblob(x * 900000000)))"),
    "generated column that counts": lambda db, outside: add_table(
        db, "extra", "CREATE TABLE extra(x, y AS (hex(zeroblob(100000000))), z AS (y || y), w AS (z || z))"),
    "generated columns on each other": lambda db, outside: add_table(db, "extra", "CREATE TABLE extra(x, %s)" % ", ".join(
        "c%d AS (%s || %s)" % (i + 1, *["c%d" % i if i else "printf('%1000s', x)"] * 2) for i in range(60))),
    "CHECK that is large": lambda db, outside: add_column(db, "counter", "CHECK (length(hex(%s)) > 0)" % BIG),
    "CHECK that takes long": lambda db, outside: add_column(
        db, "frame", "CHECK ('%s' NOT GLOB '%s')" % ("a" * 5000, "*a" * 40 + "b")),
    "DEFAULT that is large": lambda db, outside: add_column(db, "counter", "big DEFAULT (hex(%s))" % BIG),
    "index on a large expression": lambda db, outside: db.execute(
        "INSERT INTO sqlite_schema VALUES('index', 'evil', 'frame', (SELECT rootpage FROM sqlite_schema WHERE name = 'counter'),"
        " 'CREATE INDEX evil ON frame(hex(zeroblob(400000000)))')"),
    "index on another table's pages": lambda db, outside: db.execute(
        "INSERT INTO sqlite_schema VALUES('index', 'evil', 'frame', (SELECT rootpage FROM sqlite_schema WHERE name = 'frame'),"
        " 'CREATE INDEX evil ON frame(kind)')"),
    "hidden columns": lambda db, outside: add_column(db, "counter", "__hidden__x HIDDEN"),
    "virtual table": lambda db, outside: db.execute(
        "INSERT INTO sqlite_schema VALUES('table', 'evil', 'evil', 0, 'CREATE VIRTUAL TABLE evil USING fts5(x)')"),
    "virtual table of files": lambda db, outside: db.execute(
        "INSERT INTO sqlite_schema VALUES('table', 'evil', 'evil', 0, ?)",
        ("CREATE VIRTUAL TABLE evil USING csv(filename='%s/secret/kept')" % os.path.dirname(outside),)),
    "virtual table of ours": lambda db, outside: db.execute(
        "INSERT INTO sqlite_schema VALUES('table', 'evil', 'evil', 0, 'CREATE VIRTUAL TABLE evil USING sample(x)')"),
    "virtual table as sample": lambda db, outside: db.execute(
        "INSERT INTO sqlite_schema VALUES('table', 'sample', 'sample', 0, 'CREATE VIRTUAL TABLE sample USING dbstat(main)')"),
    "two thousand columns": lambda db, outside: add_table(
        db, "extra", "CREATE TABLE extra(%s)" % ", ".join("c%d" % i for i in range(2000))),
    "thirty thousand columns": lambda db, outside: add_table(
        db, "extra", "CREATE TABLE extra(%s)" % ", ".join("c%d" % i for i in range(30000))),
    "deep expression": lambda db, outside: add_view(db, "gc", "SELECT " + "(" * 900 + "1" + ")" * 900),
    "very deep expression": lambda db, outside: add_view(db, "gc", "SELECT " + "(" * 100000 + "1" + ")" * 100000),
    "deep views": lambda db, outside: [add_view(db, "v%d" % i, "SELECT a.x FROM %s a, %s b" % (
        ("v%d" % (i - 1),) * 2 if i else ("(SELECT 1 AS x)",) * 2)) for i in range(40)],
    "huge name": lambda db, outside: add_view(db, "n" * 1000000, "SELECT 1"),
    "huge text": lambda db, outside: append_sql(db, "run", " -- " + "x" * 20000000),
    "name with quotes": lambda db, outside: add_view(db, "\"a\"\"; ATTACH '%s/made.db' AS a; --\"" % outside, "SELECT 1"),
    "table of negative pages": lambda db, outside: db.execute("UPDATE sqlite_schema SET rootpage = -5 WHERE name = 'frame'"),
    "table of a page beyond": lambda db, outside: db.execute("UPDATE sqlite_schema SET rootpage = 1 << 30 WHERE name = 'frame'"),
    "two tables of the same pages": lambda db, outside: db.execute(
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'stack') WHERE name = 'frame'"),
    "table without rowid": lambda db, outside: append_sql(db, "counter", " WITHOUT ROWID"),
    "schema of itself": lambda db, outside: add_table(db, "extra", "CREATE TABLE sqlite_schema(x)"),
}

CONTENT_VERBS = ("info", "info --check", "report", "annotate", "flamegraph", "tables", "sql", "diff", "check", "export sqlite",
                 "export pprof", "export folded", "compact", "merge")


class Contents(Attack):
    def make(self, change):
        path = self.place_sound(os.path.join(self.attackers_folder(), "x.db"), attacks.OTHER)
        outside = os.path.join(self.home, "outside")
        os.mkdir(outside)
        os.chmod(outside, 0o1777)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA writable_schema = ON")
            db.execute("BEGIN")
            change(db, outside)
            db.execute("COMMIT")
            version, = db.execute("PRAGMA schema_version").fetchone()
            db.execute("PRAGMA schema_version = %d" % (version + 1))
        return path, outside

    @staticmethod
    def remove_made(outside):
        """So that the next verb is judged by itself."""
        for name in os.listdir(outside):
            os.unlink(os.path.join(outside, name))

    def try_content(self, change):
        path, outside = self.make(change)
        folders = [self.secret, os.path.dirname(path), outside]
        before = {one: what for folder in folders for one, what in attacks.tree(folder).items()}
        failed = []
        for verb in CONTENT_VERBS:
            ended = self.run_verb(verb, path)
            failed += [verb + ": " + sentence for sentence in self.judge(ended, before, folders)]
            self.remove_made(outside)
            if ended.seconds > attacks.MAX_SECONDS:
                break  # so would others
        shutil.copy(path, os.path.join(outside, "symbolized.db"))
        before.update(attacks.tree(outside))
        ended = attacks.run("symbolize", "--redo", os.path.join(outside, "symbolized.db"), cwd=self.work)
        before.pop(os.path.join(outside, "symbolized.db"))
        failed += ["symbolize: " + one for one in self.judge(ended, before, folders) if "symbolized.db: " not in one]
        self.assertEqual([], failed)

    def judge(self, ended, before, folders):
        wrong = attacks.what_is_wrong(ended)
        after = {path: one for folder in folders for path, one in attacks.tree(folder).items()}
        wrong += ["changed: %s: %s" % pair for pair in attacks.difference(before, after).items()]
        if ended.status != 0 and ended.status > 3 and len(ended.err.strip().splitlines()) != 1:
            wrong.append("not one sentence: %r" % ended.err[:300])
        return wrong

    def test_triggers_do_not_run(self):
        """Neither where a recording is changed in place, nor in what is made of it."""
        def change(db, outside):
            for on in ("frame", "function"):
                add_trigger(db, on, "INSERT OR REPLACE INTO counter VALUES('fired', 1)")
        path, _ = self.make(change)
        with contextlib.closing(sqlite3.connect(path)) as db:
            self.assertEqual(6, db.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'").fetchone()[0])
        shutil.copy(path, "symbolized.db")
        for name, arguments in (("symbolized.db", ("symbolize", "--redo", "symbolized.db")),
                                ("small.db", ("compact", path, "-o", "small.db")),
                                ("both.db", ("merge", path, self.sound, "-o", "both.db")),
                                ("plain.sqlite", ("export", path, "--to", "sqlite", "-o", "plain.sqlite"))):
            with self.subTest(arguments[0]):
                self.assertEqual([], attacks.what_is_wrong(attacks.run(*arguments)))
                if os.path.exists(name):
                    with contextlib.closing(sqlite3.connect(name)) as db:
                        self.assertEqual([], db.execute("SELECT * FROM counter WHERE name = 'fired'").fetchall())

    def test_deep_views_are_not_expanded_for_each_table(self):
        """What lists tables or columns begins again for each table while one view needs more memory than there is."""
        path, _ = self.make(CONTENTS["deep views"])
        for arguments in (("tables", path), ("sql", path, "SELECT * FROM nosuch"), ("sql", path, "SELECT nosuch FROM sample"),
                          ("sql", path, self.sound, "SELECT count(*) FROM sample")):
            with self.subTest(arguments):
                ended = attacks.run(*arguments, cpu_s=20, cwd=self.work)  # of which a list takes one or two
                self.assertEqual([], attacks.what_is_wrong(ended))

    def test_endless_view_that_is_asked(self):
        """It stands for one of ours, so that whoever asks that one is caught in it."""
        path, _ = self.make(lambda db, outside: add_view(db, "hot_function", ENDLESS))
        ended = attacks.run("sql", path, "SELECT count(*) FROM hot_function", cwd=self.work)
        self.assertEqual([], attacks.what_is_wrong(ended))


def add_contents():
    for name, change in CONTENTS.items():
        def test(self, change=change):
            self.try_content(change)
        setattr(Contents, "test_" + name.replace(" ", "_").replace("'", ""), test)


add_contents()


# ---- 3. Files that change while root reads ----

class Changing(Attack):
    TRIES = 20
    alone = True  # the attacker never rests

    def setUp(self):
        super().setUp()
        self.path = self.place_sound(os.path.join(self.attackers_folder(), "x.db"), attacks.OTHER)

    @contextlib.contextmanager
    def attacker(self, act):
        """The other user does it again and again, until the block ends."""
        def again(begun):
            while True:
                with contextlib.suppress(OSError):
                    act()
                if begun:
                    os.write(begun.pop(), b"x")
        reader, writer = os.pipe()
        pid = attacks.start_as_other(again, [writer])
        os.close(writer)
        try:
            self.assertEqual(b"x", os.read(reader, 1), "the attacker lives")
            yield
        finally:
            os.close(reader)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def try_verbs(self, act):
        before = attacks.tree(self.secret)
        failed = []
        with self.attacker(act):
            for i in range(self.TRIES):
                verb = ("info --check", "report", "compact", "sql", "export sqlite")[i % 5]
                ended = self.run_verb(verb, self.path, timeout_s=attacks.HANG_SECONDS)
                failed += ["%s: %s" % (verb, sentence) for sentence in attacks.what_is_wrong(ended)]
                if ended.seconds >= attacks.HANG_SECONDS:
                    break
        self.assertEqual([], failed)
        self.assertEqual({}, attacks.difference(before, attacks.tree(self.secret)))

    def swap(self, suffix, *ways):
        """Replaces a file beside the recording by one made in each of these ways, in turn."""
        path, kept = self.path + suffix, self.kept

        def act():
            for way in ways:
                with contextlib.suppress(OSError):
                    if os.path.isdir(path) and not os.path.islink(path):
                        os.rmdir(path)
                    else:
                        os.unlink(path)
                way(path, kept)
        return act

    @staticmethod
    def as_symlink(path, kept):
        os.symlink(kept, path)

    @staticmethod
    def as_fifo(path, kept):
        os.mkfifo(path)

    @staticmethod
    def as_folder(path, kept):
        os.mkdir(path)

    def as_log(self, path, kept):
        attacks.write_new(path, self.log)

    def as_index(self, path, kept):
        attacks.write_new(path, self.index)

    def as_journal(self, path, kept):
        attacks.write_new(path, attacks.hot_journal(Attack.geometry, kept))

    def test_journal(self):
        self.try_verbs(self.swap("-journal", self.as_journal, self.as_symlink, self.as_folder, self.as_journal))

    def test_journal_as_fifo(self):
        self.try_verbs(self.swap("-journal", self.as_fifo, self.as_journal))

    def test_log(self):
        self.try_verbs(self.swap("-wal", self.as_log, self.as_symlink, self.as_folder, self.as_log))

    def test_log_as_fifo(self):
        self.try_verbs(self.swap("-wal", self.as_fifo, self.as_log))

    def test_index(self):
        attacks.as_other(self.as_log, self.path + "-wal", None)
        self.try_verbs(self.swap("-shm", self.as_index, self.as_symlink, self.as_folder, self.as_index))

    def test_index_that_is_cut(self):
        """SQLite maps it: to read behind its new end is SIGBUS."""
        attacks.as_other(self.as_log, self.path + "-wal", None)
        attacks.as_other(self.as_index, self.path + "-shm", None)
        index, log = self.path + "-shm", self.path + "-wal"

        def act():
            os.truncate(index, 0)
            with open(index, "r+b") as file:
                file.write(self.index)
            if not os.path.exists(log):
                self.as_log(log, None)
        self.try_verbs(act)

    def test_recording_that_is_cut(self):
        with open(self.path, "rb") as file:
            contents = file.read()

        def act():
            for size in (0, 50, 4096, len(contents) // 2):
                os.truncate(self.path, size)
                with open(self.path, "r+b") as file:
                    file.write(contents)
        self.try_verbs(act)

    def test_recording_as_a_link(self):
        real = self.place_sound(self.path + ".real", attacks.OTHER)

        def as_hard_link(path, kept):
            os.link(real, path)
        self.try_verbs(self.swap("", as_hard_link, self.as_symlink, as_hard_link, self.as_folder))

    def test_recording_as_a_fifo(self):
        real = self.place_sound(self.path + ".real", attacks.OTHER)

        def as_hard_link(path, kept):
            os.link(real, path)
        self.try_verbs(self.swap("", as_hard_link, self.as_fifo))


# ---- 4. Damaged recordings ----

class Mutations(Attack):
    """PROBING_MUTATIONS says how many; each is made from a number of its own, which a failure names."""
    VERBS = ("info --check", "report", "sql", "export sqlite", "export pprof", "compact", "merge", "info", "flamegraph", "annotate",
             "tables", "diff", "check", "export speedscope")

    @staticmethod
    def flip_bytes(chance, contents, page):
        for _ in range(chance.choice((1, 3, 10, 100, 1000))):
            contents[chance.randrange(len(contents))] = chance.randrange(256)

    @staticmethod
    def flip_header(chance, contents, page):
        for _ in range(chance.randint(1, 4)):
            contents[chance.randrange(16, 100)] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))

    @staticmethod
    def flip_page_headers(chance, contents, page):
        for _ in range(chance.randint(1, 6)):
            number = chance.randrange(len(contents) // page)
            at = number * page + (100 if number == 0 else 0) + chance.randrange(12)
            contents[at] = chance.choice((0, 2, 5, 10, 13, 255, chance.randrange(256)))

    @staticmethod
    def flip_cell_pointers(chance, contents, page):
        for _ in range(chance.randint(1, 6)):
            number = chance.randrange(len(contents) // page)
            at = number * page + (100 if number == 0 else 0) + 8 + 2 * chance.randrange(40)
            contents[at:at + 2] = struct.pack(">H", chance.choice((0, 8, page - 1, chance.randrange(65536))))

    @staticmethod
    def cut(chance, contents, page):
        del contents[chance.choice((chance.randrange(1, len(contents)), page * chance.randrange(1, len(contents) // page))):]

    @staticmethod
    def swap_pages(chance, contents, page):
        one, other = (page * chance.randrange(1, len(contents) // page) for _ in range(2))
        contents[one:one + page], contents[other:other + page] = contents[other:other + page], contents[one:one + page]

    WORDS = (b"NULL", b"TEXT", b"BLOB", b"AS (1)", b"UNIQUE", b"CHECK (0)", b"PRIMARY KEY", b"DEFAULT", b"REFERENCES frame", b"(", b")",
             b",", b"'", b'"', b";", b"--", b"/*", b"SELECT", b"\0", b"WITHOUT ROWID", b"STRICT", b"HIDDEN", b"COLLATE x")

    @classmethod
    def change_schema(cls, chance, path):
        """A word of a table's text becomes another one; its length in the file does not matter to SQLite's own update."""
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.text_factory = bytes
            db.execute("PRAGMA writable_schema = ON")
            rows = db.execute("SELECT rowid, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
            for _ in range(chance.randint(1, 3)):
                row, sql = chance.choice(rows)
                words = sql.split(b" ")
                at = chance.randrange(len(words))
                words[at:at + chance.randrange(3)] = [chance.choice(cls.WORDS + (chance.choice(words),))]
                db.execute("UPDATE sqlite_schema SET sql = CAST(? AS TEXT) WHERE rowid = ?", (b" ".join(words), row))

    @classmethod
    def mutate(cls, number, path):
        chance = random.Random(number)
        with open(path, "rb") as file:
            contents = bytearray(file.read())
        if number % 7 == 6:
            cls.change_schema(chance, path)
            return
        ways = (cls.flip_bytes, cls.flip_header, cls.flip_page_headers, cls.flip_cell_pointers, cls.cut, cls.swap_pages)
        ways[number % 7](chance, contents, attacks.page_size_of(path))
        attacks.write_new(path, contents)

    def test_verbs(self):
        path = os.path.join(self.home, "x.db")
        failed = []
        for number in range(MUTATIONS):
            self.place_sound(path)
            self.mutate(number, path)
            verb = self.VERBS[number // 7 % len(self.VERBS)]
            before = attacks.state(path)
            ended = self.run_verb(verb, path)
            wrong = attacks.what_is_wrong(ended)
            if attacks.state(path) != before:
                wrong.append("the recording has changed")
            failed += ["mutation %d, %s: %s" % (number, verb, sentence) for sentence in wrong]
            for suffix in attacks.BESIDE:
                if os.path.lexists(path + suffix):
                    failed.append("mutation %d, %s: leaves %s" % (number, verb, suffix))
                    os.unlink(path + suffix)
        self.assertEqual([], failed)


if __name__ == "__main__":
    sys.exit(unittest.main())
