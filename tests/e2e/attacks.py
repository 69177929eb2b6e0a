# SPDX-License-Identifier: MIT
"""What another user may try on a recording that root reads: files beside it, made-up contents, and how to watch root meanwhile."""
import collections
import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

import probing_test as t

OTHER = 65534  # the attacker
DOCUMENTED = {0, 1, 2, 3, 64, 65, 66, 73, 74, 77}  # probing --help; 126 and 127 are record's
MAX_RSS_KIB, MAX_CPU_SECONDS, MAX_SECONDS = 500 << 10, 60, 180  # other work may slow it down
HANG_SECONDS = 60  # of a verb that takes a tenth of a second: it waits for a file that was planted
SECRET_TEXT = "only root may read or remove this\n"
BESIDE = ("-journal", "-wal", "-shm")

Ended = collections.namedtuple("Ended", "status out err rss_kib seconds")


# ---- Another user ----

def become_other():
    os.setgroups([])
    os.setresgid(OTHER, OTHER, OTHER)
    os.setresuid(OTHER, OTHER, OTHER)


def start_as_other(function, *arguments):
    """Its process id; the function runs there as the other user."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            become_other()
            function(*arguments)
            status = 0
        except BaseException as error:
            print("as another user: %r" % error, file=sys.stderr)
        finally:
            os._exit(status)
    return pid


def as_other(function, *arguments):
    _, status = os.waitpid(start_as_other(function, *arguments), 0)
    if status != 0:
        raise AssertionError("the other user's part failed: %s" % function.__name__)


# ---- Root's verb, watched ----

def run(*arguments, timeout_s=MAX_SECONDS, **more):
    """Run the binary to its end, or end it after a time; status below 0: that signal."""
    return watch([t.BINARY, *map(str, arguments)], timeout_s, **more)


def watch(command, timeout_s=MAX_SECONDS, cpu_s=MAX_CPU_SECONDS, **more):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, **more)
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        timer = threading.Timer(timeout_s, os.kill, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(1 << 20).decode(errors="replace"))
    return Ended(process.returncode, *texts, usage.ru_maxrss, time.monotonic() - began)


def what_is_wrong(ended):
    """Sentences on a verb that was not to crash, hang or take much memory; none where it kept to that."""
    wrong = []
    if ended.status < 0 or ended.seconds > MAX_SECONDS:
        wrong.append("ended by signal %d after %.1f s" % (-ended.status, ended.seconds))
    elif ended.status not in DOCUMENTED:
        wrong.append("exit status %d is not documented" % ended.status)
    if ended.rss_kib > MAX_RSS_KIB:
        wrong.append("took %d MB of memory" % (ended.rss_kib >> 10))
    return wrong


# ---- Files ----

def state(path):
    """All that may not change of a file: kind, owner, inode, times and contents."""
    try:
        entry = os.lstat(path)
    except FileNotFoundError:
        return None
    contents = None
    if stat.S_ISLNK(entry.st_mode):
        contents = os.readlink(path)
    elif stat.S_ISREG(entry.st_mode):
        with open(path, "rb") as file:
            contents = file.read()
    elif stat.S_ISDIR(entry.st_mode):
        contents = sorted(os.listdir(path))
    return (stat.S_IFMT(entry.st_mode), stat.S_IMODE(entry.st_mode), entry.st_ino, entry.st_uid, entry.st_size,
            entry.st_mtime_ns, contents)


def tree(folder):
    """The state of all that is under a folder, but its folders' times."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(where, name)
            found[path] = state(path)
    return {path: one[:4] if stat.S_ISDIR(one[0]) else one for path, one in found.items()}


def difference(before, after):
    """What differs of two trees, without the contents."""
    def plain(one):
        return one and one[:6]
    return {path: (plain(before.get(path)), plain(after.get(path)))
            for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)}


def page_size_of(path):
    with open(path, "rb") as file:
        size = struct.unpack(">H", file.read(18)[16:18])[0]
    return 65536 if size == 1 else size


def geometry(database):
    """Bytes of a page, and how many pages there are."""
    page = page_size_of(database)
    return page, os.path.getsize(database) // page


def hot_journal(pages, names):
    """
    Of a database of that geometry(): a rollback journal that has to be rolled back before the database may be read, and changes nothing of it, but names a
    super-journal: SQLite removes that file afterwards. Source: sqlite.org/fileformat2.html, "The Rollback Journal";
    readSuperJournal() and pager_delsuper() in SQLite's pager.c.
    """
    (page, n_pages), name = pages, os.fsencode(names)
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 12345, n_pages, 512, page)
    lock_page = 0x40000000 // page + 1
    checksum = sum(byte - 256 if byte > 127 else byte for byte in name) & 0xffffffff
    trailer = struct.pack(">I", lock_page) + name + struct.pack(">II", len(name), checksum)
    return header.ljust(512, b"\0") + trailer + bytes.fromhex("d9d505f920a163d7")


def attackers_log(database):
    """The -wal of a copy of the recording in which the attacker has changed its command: valid, and of its page size."""
    with t.scratch():
        shutil.copy(database, "copy.db")
        with contextlib.closing(sqlite3.connect("copy.db")) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")
            db.execute("UPDATE run SET command = 'the attacker was here'")
            db.commit()
            with open("copy.db-wal", "rb") as log, open("copy.db-shm", "rb") as index:
                return log.read(), index.read()


def write_new(path, contents):
    with open(path, "wb") as file:
        file.write(contents)


# ---- The verbs that only read ----

def export(form):
    return ("export", "--to", form, "-q", "-o", "out." + form, "--force")


QUERY = "SELECT count(*), sum(weight) FROM sample"

# Name, then what comes before the recording and what behind it; they are run in a folder of root's own.
FEW_VERBS = {
    "info": (("info",), ()),
    "info --check": (("info", "--check"), ()),
    "report": (("report",), ()),
    "sql": (("sql",), (QUERY,)),
    "export sqlite": (export("sqlite"), ()),
    "compact": (("compact", "-q", "-o", "small.db", "--force"), ()),
    "merge": (("merge", "-q", "-o", "both.db", "--force"), ("OTHER",)),
    "diff": (("diff",), ("SAME",)),
}
VERBS = dict(FEW_VERBS, **{
    "tables": (("tables",), ()),
    "annotate": (("annotate",), ()),
    "flamegraph": (("flamegraph", "-o", "out.svg"), ()),
    "check": (("check", "--baseline", "OTHER"), ()),
    **{"export " + form: (export(form), ()) for form in
       ("folded", "svg", "pprof", "otlp", "speedscope", "chrome", "html", "callgrind", "gecko", "pstats")},
})


def arguments_of(verb, path, sound):
    """@sound: another recording, root's own."""
    before, behind = VERBS[verb]
    places = {"OTHER": sound, "SAME": path}
    return [places.get(a, a) for a in before] + [path] + [places.get(a, a) for a in behind]
