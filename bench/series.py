#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What compressed samples cost, and how fast they answer, against a plain table of the same rows.

Usage: bench/series.py [BUILD_FOLDER] [--samples N] [--seconds S] [--from FILE]... [--duckdb NODE_MODULES]

Records fixtures/demo.py (two threads, many stacks) and a loop (one thread, few stacks) at 999 Hz for S seconds
each (default 60), or takes the recordings named with --from. Prints the bytes a sample takes, column by column.
Then the first one's samples are repeated with later times until there are N (default 10 million), once as blocks
and once as a plain table, and both are asked the same questions. Times are CPU seconds of this process, the best
of three; the answers are compared. (A recording shorter than a block or two is a bad one to repeat: it would be seen to.)
With --duckdb the same rows are asked of DuckDB, too: a folder in which `npm install @duckdb/node-api` was run has it.
"""
import argparse
import contextlib
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(os.path.dirname(HERE), "fixtures")
COLUMNS = ("time", "thread", "cpu", "weight", "stack", "flags")
PLAIN = """CREATE TABLE sample(timestamp REAL NOT NULL, pid INTEGER NOT NULL, tid INTEGER NOT NULL, cpu INTEGER NOT NULL,
  weight INTEGER NOT NULL, verdict TEXT NOT NULL, stack_end TEXT NOT NULL, stack INTEGER, gil INTEGER, gc INTEGER,
  state TEXT)"""
NAMES = "JOIN stack USING (stack) JOIN named_frame USING (frame) GROUP BY name ORDER BY 2 DESC, 1 LIMIT 10"
LOOP = """import time
def work():
    total = 0
    for i in range(100000): total += i
end = time.time() + %d
while time.time() < end: work()"""


def number(data, at):
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def column_lengths(data):
    _, at = number(data, 5)
    lengths = []
    for _ in COLUMNS:
        length, at = number(data, at)
        lengths.append(length)
    return lengths


def print_sizes(name, path):
    """Bytes a sample, of all pages of sample_block as well."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        blocks = db.execute("SELECT samples, data FROM sample_block").fetchall()
        n = sum(samples for samples, _ in blocks)
        sums = [sum(column) / n for column in zip(*(column_lengths(data) for _, data in blocks))]
        try:
            pages = db.execute("SELECT sum(pgsize) FROM dbstat WHERE name = 'sample_block'").fetchone()[0] / n
        except sqlite3.Error:
            pages = float("nan")
        print("| %s | %d | %.2f | %s | %.2f |" % (name, n, sum(len(data) for _, data in blocks) / n,
                                                " | ".join("%.2f" % s for s in sums), pages))


def record(binary, path, *command):
    subprocess.run([binary, "record", "-q", "-F", "999", "-o", path, "--", "/usr/bin/python3", *command],
                   check=True, stdout=subprocess.DEVNULL)


def connect(build, path):
    db = sqlite3.connect(path)
    db.enable_load_extension(True)
    db.load_extension(os.path.join(build, "src", "extension", "probing_sqlite.so"))
    return db


def make_long(build, source, n):
    """The same n samples in blocks and in a plain table."""
    for path in ("blocks.db", "plain.db"):
        shutil.copy(source, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript("DELETE FROM sample_block; DELETE FROM stack_total; VACUUM")
    started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([os.path.join(build, "bench", "bench_series"), source, "blocks.db", str(n)], check=True)
    print("writing: %.2f us a sample" % (1e6 * (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - started) / n))
    with contextlib.closing(connect(build, "blocks.db")) as db:
        db.executescript("ATTACH 'plain.db' AS p; DROP TABLE p.sample_block; PRAGMA p.user_version = 1;"
                         "PRAGMA p.journal_mode = OFF; PRAGMA p.synchronous = OFF")
        db.execute(PLAIN.replace("TABLE sample", "TABLE p.sample"))
        db.execute("INSERT INTO p.sample SELECT timestamp, pid, tid, cpu, weight, verdict, stack_end, stack, gil, gc, state "
                   "FROM main.sample")
        db.commit()


def best(db, sql, *values):
    took = []
    for _ in range(3):
        started = time.process_time()
        rows = db.execute(sql, values).fetchall()
        took.append(time.process_time() - started)
    return min(took), rows


def questions(first, last):
    """Name, SQL for blocks, the same for a plain table, values."""
    middle = (first + last) / 2
    minute = (middle, middle + 60)
    totals = "SELECT name, sum(n) FROM (SELECT stack, sum(%s) AS n FROM %s GROUP BY stack) " + NAMES
    plain = totals % ("weight", "sample")
    tid = "tid = (SELECT max(tid) FROM thread)"
    within = "sample WHERE timestamp >= ? AND timestamp < ?"
    return [
        ("top functions, `sample_total`", totals % ("weight", "sample_total"), plain, ()),
        ("top functions, `sample`", plain, plain, ()),
        ("top functions of a minute, `sample_total`", totals % ("weight", "sample_total(?, ?)"),
         totals % ("weight", within), minute),
        ("top functions of a minute, `sample`", totals % ("weight", within), totals % ("weight", within), minute),
        ("a minute: count, sum", "SELECT count(*), sum(weight) FROM " + within, None, minute),
        ("one thread: count", "SELECT count(*) FROM sample WHERE " + tid, None, ()),
        ("by verdict: count", "SELECT verdict, count(*) FROM sample GROUP BY 1 ORDER BY 1", None, ()),
        ("the same, `sample_total`", "SELECT verdict, sum(samples) FROM sample_total GROUP BY 1 ORDER BY 1",
         "SELECT verdict, count(*) FROM sample GROUP BY 1 ORDER BY 1", ()),
        ("all: count", "SELECT count(*) FROM sample", None, ()),
        ("the last ten", "SELECT timestamp, tid FROM sample ORDER BY rowid DESC LIMIT 10", None, ()),
        ("one by number", "SELECT * FROM (SELECT timestamp, tid FROM sample WHERE rowid = 5000000)", None, ()),
    ]


def literal(sql, values):
    """For DuckDB, which is given text alone, and counts rows from 0."""
    sql = sql.replace("rowid = 5000000", "rowid = 4999999")
    for value in values:
        sql = sql.replace("?", repr(value), 1)
    return sql


def same(ours, theirs):
    """Sums may be decimals there, and times lose digits on the way through CSV."""
    return len(ours) == len(theirs) and all(
        len(a) == len(b) and all(x == y or (not isinstance(x, str) and abs(float(x) - float(y)) < 1e-4) for x, y in zip(a, b))
        for a, b in zip(ours, theirs))


def ask_duckdb(modules, asked):
    """CPU milliseconds of each question, and its rows."""
    for table in ("sample", "thread", "stack", "named_frame"):
        with open(table + ".csv", "wb") as out:
            subprocess.run(["sqlite3", "-csv", "-header", "plain.db", "SELECT * FROM " + table], check=True, stdout=out)
    with open("questions.json", "w", encoding="utf-8") as out:
        json.dump([literal(other or sql, values) for _, sql, other, values in asked], out)
    done = subprocess.run(["node", os.path.join(HERE, "duckdb.mjs"), modules, os.getcwd(), "questions.json"], check=True,
                          capture_output=True, text=True)
    answer = json.loads(done.stdout)
    print("file: DuckDB %.0f MB" % (answer["bytes"] / 1e6))
    return [(one["ms"], one["rows"]) for one in answer["answers"]]


def compare(build, duckdb):
    with contextlib.closing(connect(build, "blocks.db")) as blocks, \
            contextlib.closing(sqlite3.connect("plain.db")) as plain:
        first, = blocks.execute("SELECT min(started) FROM sample_block").fetchone()
        last, = blocks.execute("SELECT max(ended) FROM sample_block").fetchone()
        asked = questions(first, last)
        others = ask_duckdb(duckdb, asked) if duckdb else [None] * len(asked)
        print("| question | blocks, ms | plain table, ms | DuckDB, ms |\n|---|---|---|---|")
        for (name, sql, other, values), duck in zip(asked, others):
            ours, rows = best(blocks, sql, *values)
            theirs, expected = best(plain, other or sql, *values)
            print("| %s | %.1f | %.1f | %s |" % (name, 1e3 * ours, 1e3 * theirs, "%.1f" % duck[0] if duck else ""), flush=True)
            if rows != expected:
                sys.exit("the answers differ: %s, %s" % (rows[:3], expected[:3]))
            if duck and not same(rows, duck[1]):
                sys.exit("DuckDB's answer differs: %s, %s" % (rows[:3], duck[1][:3]))


def cpu_of(command):
    """CPU milliseconds of a command, the best of five."""
    took = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1e3 * min(took)


def open_and_ask(binary):
    for sql in ("SELECT name FROM thread", "SELECT count(*) FROM sample WHERE rowid > (SELECT max(first) FROM sample_block)"):
        print("open and ask, `%s`: %.1f ms; plain %s" % (
            sql, cpu_of([binary, "sql", "blocks.db", sql]),
            "%.1f ms" % cpu_of([binary, "sql", "plain.db", sql]) if "sample_block" not in sql else "-"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--samples", type=int, default=10000000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--duckdb")
    parser.add_argument("--from", action="append", dest="sources", default=[])
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    binary = os.path.join(build, "src", "cli", "probing")
    sources = [os.path.abspath(path) for path in options.sources]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if not sources:
            record(binary, "demo.db", os.path.join(FIXTURES, "demo.py"), "--seconds", str(options.seconds))
            record(binary, "loop.db", "-c", LOOP % options.seconds)
            sources = ["demo.db", "loop.db"]
        print("| bytes a sample | samples | all | %s | pages |\n|---|%s" % (" | ".join(COLUMNS), "---|" * 9))
        for path in sources:
            print_sizes(os.path.basename(path), path)
        make_long(build, sources[0], options.samples)
        print_sizes("long", "blocks.db")
        print("files: blocks %.0f MB, plain %.0f MB" % (os.path.getsize("blocks.db") / 1e6, os.path.getsize("plain.db") / 1e6))
        compare(build, options.duckdb and os.path.abspath(options.duckdb))
        open_and_ask(binary)
        os.chdir("/")


if __name__ == "__main__":
    main()
