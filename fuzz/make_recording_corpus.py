#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes the corpora of fuzz_schema, fuzz_beside and fuzz_block_bounds, each case named for what it tries."""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("run process thread module function frame stack stack_total counter sample_block anchor_location pause bench_run "
         "named_frame hot_function gil other seen other_x").split()
REPLACED, BEHIND, GENERATED, INSIDE = range(4)
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"

SCHEMA = {
    "sound": ("run", BEHIND, ""),
    "attach_behind_a_table": ("bench_run", BEHIND, "ATTACH 'made.db' AS a; CREATE TABLE a.t(x)"),
    "attach_behind_a_view": ("hot_function", BEHIND, "ATTACH 'made.db' AS a; CREATE TABLE a.t(x)"),
    "attach_behind_another_table": ("other", BEHIND, "ATTACH 'made.db' AS a; CREATE TABLE a.t(x)"),
    "attach_behind_another_view": ("seen", BEHIND, "ATTACH 'made.db' AS a; CREATE TABLE a.t(x)"),
    "attach_behind_an_index": ("other_x", BEHIND, "ATTACH 'made.db' AS a; CREATE TABLE a.t(x)"),
    "vacuum_into_behind_another_table": ("other", BEHIND, "COMMIT; VACUUM INTO 'made.db'"),
    "attach_outside_of_the_transaction": ("other", BEHIND, "COMMIT; ATTACH 'made.db' AS a; CREATE TABLE a.t(x); BEGIN"),
    "other_attach_alone": ("other", REPLACED, "ATTACH 'made.db' AS a"),
    "other_generated_zeros": ("other", GENERATED, "zeroblob(900000000)"),
    "other_generated_hex": ("other", GENERATED, "hex(zeroblob(90000000))"),
    "other_check_large": ("other", INSIDE, "CHECK (length(zeroblob(900000000)) > 0)"),
    "other_as_select": ("other", REPLACED, "CREATE TABLE other AS SELECT 1 AS x"),
    "other_drops": ("other", BEHIND, "DROP TABLE frame; DROP TABLE stack"),
    "other_virtual": ("other", REPLACED, "CREATE VIRTUAL TABLE other USING fts5(x)"),
    "seen_endless": ("seen", REPLACED, "CREATE VIEW seen AS " + ENDLESS),
    "seen_reads": ("seen", REPLACED, "CREATE VIEW seen AS SELECT readfile('/etc/shadow')"),
    "index_on_large": ("other_x", REPLACED, "CREATE INDEX other_x ON other(hex(zeroblob(90000000)))"),
    "index_as_trigger": ("other_x", REPLACED, "CREATE TRIGGER other_x AFTER INSERT ON other BEGIN DELETE FROM frame; END"),
    "vacuum_into_behind": ("counter", BEHIND, "COMMIT; VACUUM INTO 'made.db'"),
    "attach_alone": ("pause", REPLACED, "ATTACH 'made.db' AS a"),
    "no_sql": ("frame", REPLACED, ""),
    "noise": ("frame", REPLACED, "\1\2 CREATE ("),
    "table_as_select": ("pause", REPLACED, "CREATE TABLE pause AS " + ENDLESS),
    "endless_view": ("hot_function", REPLACED, "CREATE VIEW hot_function AS " + ENDLESS),
    "view_as_table": ("frame", REPLACED, "CREATE VIEW frame AS SELECT 1 AS frame"),
    "view_of_itself": ("gil", REPLACED, "CREATE VIEW gil AS SELECT * FROM gil"),
    "virtual_table": ("pause", REPLACED, "CREATE VIRTUAL TABLE pause USING sample(x)"),
    "virtual_table_as_run": ("run", REPLACED, "CREATE VIRTUAL TABLE run USING dbstat"),
    "generated_zeros": ("counter", GENERATED, "zeroblob(900000000)"),
    "generated_zeros_of_run": ("run", GENERATED, "zeroblob(900000000)"),
    "generated_zeros_of_frames": ("frame", GENERATED, "zeroblob(900000000)"),
    "generated_zeros_of_blocks": ("sample_block", GENERATED, "zeroblob(900000000)"),
    "generated_hex": ("function", GENERATED, "hex(zeroblob(90000000))"),
    "generated_random": ("stack", GENERATED, "randomblob(900000000)"),
    "generated_of_itself": ("stack", GENERATED, "made + 1"),
    "generated_reads": ("run", GENERATED, "readfile('/etc/shadow')"),
    "generated_loads": ("run", GENERATED, "load_extension('made.so')"),
    "generated_stored": ("counter", INSIDE, "y AS (value) STORED"),
    "hidden_column": ("counter", INSIDE, "y HIDDEN"),
    "check_large": ("counter", INSIDE, "CHECK (length(zeroblob(900000000)) > 0)"),
    "default_large": ("pause", INSIDE, "y DEFAULT (hex(zeroblob(90000000)))"),
    "column_too_much": ("frame", INSIDE, "y TEXT NOT NULL"),
    "column_twice": ("frame", INSIDE, "frame INTEGER"),
    "multi_db_columns": ("pause", INSIDE, ", ".join("c%d" % i for i in range(700))),
    "deep": ("counter", GENERATED, "(" * 1500 + "1" + ")" * 1500),
    "references": ("stack", INSIDE, "FOREIGN KEY (frame) REFERENCES nothing ON DELETE CASCADE"),
    "collation": ("function", INSIDE, "y TEXT COLLATE nothing"),
}


def changes(*places):
    return b"".join(struct.pack(">HB", at, value) for at, value in places)


def journal(name, pages=64, records=0):
    """Of nothing, but with a super-journal."""
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", records, 1, pages, 512, 512)
    name = name.encode()
    return head.ljust(512, b"\0") + struct.pack(">I", 0x40000000 // 512 + 1) + name + struct.pack(
        ">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7")


JOURNAL, LOG, BOTH, INDEX = range(4)
MENDED, WHOLE = 1, 2
BESIDE = {
    "journal_as_it_is": (JOURNAL, 0, b""),
    "journal_with_a_super_journal": (JOURNAL, WHOLE, journal("x.db")),
    "journal_with_its_own_name": (JOURNAL, WHOLE, journal("x.db-journal")),
    "journal_that_shortens": (JOURNAL, WHOLE, journal("x.db", 1)),
    "journal_that_grows": (JOURNAL, WHOLE, journal("x.db", 1 << 20)),
    "journal_of_large_pages": (JOURNAL, 0, changes((24, 0), (25, 1), (26, 0), (27, 0))),
    "journal_of_many_records": (JOURNAL, 0, changes((8, 255), (9, 255), (10, 255), (11, 255))),
    "journal_empty": (JOURNAL, WHOLE, b""),
    "journal_of_zeros": (JOURNAL, WHOLE, bytes(600)),
    "journal_noise": (JOURNAL, WHOLE, bytes((i * 37 + 11) % 256 for i in range(2000))),
    "log_as_it_is": (LOG, 0, b""),
    "log_page_of_schema": (LOG, MENDED, changes(*((56 + 20 + i, 255) for i in range(40)))),
    "log_beyond_the_end": (LOG, MENDED, changes((32, 0), (33, 255), (34, 255), (35, 255))),
    "log_commits_small": (LOG, MENDED, changes((36, 0), (37, 0), (38, 0), (39, 1))),
    "log_of_large_pages": (LOG, MENDED, changes((8, 0), (9, 1), (10, 0), (11, 0))),
    "log_empty": (LOG, WHOLE, b""),
    "log_cut": (LOG, WHOLE, bytes.fromhex("377f0682002de218")),
    "log_noise": (LOG, WHOLE, bytes((i * 41 + 7) % 256 for i in range(3000))),
    "both": (BOTH, 0, b""),
    "index_empty": (INDEX, 0, b""),
    "index_of_zeros": (INDEX, 0, bytes(32768)),
    "index_of_ones": (INDEX, 0, b"\xff" * 32768),
    "index_cut": (INDEX, 0, bytes(100)),
}

FIRST, SAMPLES, STARTED, ENDED, WEIGHT, THREADS, NO_THREADS, CUT, NO_BLOB, WORD, HUGE, TURNED, GONE = range(13)
END = 0xfff0  # behind it are -1, the least, the largest, ...
BOUNDS = {
    "sound": [],
    "first_overlaps": [(1, FIRST, 30)],
    "first_the_same": [(1, FIRST, 1)],
    "first_largest": [(3, FIRST, END + 2)],
    "first_near_the_largest": [(3, FIRST, END + 3)],
    "first_least": [(0, FIRST, END + 1)],
    "first_zero": [(0, FIRST, 0)],
    "first_backwards": [(0, FIRST, 1000), (1, FIRST, 500)],
    "gap": [(1, GONE, 0)],
    "samples_fewer": [(0, SAMPLES, 10)],
    "samples_more": [(0, SAMPLES, 9999)],
    "samples_none": [(2, SAMPLES, 0)],
    "samples_negative": [(2, SAMPLES, END)],
    "samples_largest": [(3, SAMPLES, END + 2)],
    "samples_wrap": [(3, FIRST, END + 3), (0, SAMPLES, END + 2)],
    "samples_as_text": [(0, WORD, 0)],
    "samples_as_a_large_real": [(0, HUGE, 0)],
    "times_turned": [(0, TURNED, 0)],
    "times_of_others": [(0, STARTED, 9), (1, ENDED, 1)],
    "weight_other": [(0, WEIGHT, 1), (1, WEIGHT, END + 2), (2, WEIGHT, END + 2)],
    "threads_zeros": [(0, THREADS, 8)],
    "threads_odd": [(0, THREADS, 13)],
    "threads_empty": [(0, THREADS, 0)],
    "threads_unknown": [(0, NO_THREADS, 0), (1, NO_THREADS, 0)],
    "data_cut": [(0, CUT, 20)],
    "data_empty": [(0, CUT, 0)],
    "data_a_number": [(0, NO_BLOB, 7)],
    "all_gone": [(i, GONE, 0) for i in range(4)],
}


def main():
    made = {"schema": {name: bytes((NAMES.index(table), how)) + text.encode() for name, (table, how, text) in SCHEMA.items()},
            "beside": {name: bytes((what, how)) + more for name, (what, how, more) in BESIDE.items()},
            "block_bounds": {name: b"".join(struct.pack(">BBH", *group) for group in groups) for name, groups in BOUNDS.items()}}
    for corpus, cases in made.items():
        folder = os.path.join(HERE, "corpus", corpus)
        os.makedirs(folder, exist_ok=True)
        for name, contents in cases.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(contents)


if __name__ == "__main__":
    main()
