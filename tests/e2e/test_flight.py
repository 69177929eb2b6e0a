# SPDX-License-Identifier: MIT
"""Dumps of PyTorch's Flight Recorder as recordings: their rows, and which rank has not come to which collective."""
import json
import os
import pickle
import sys
import unittest

import probing_test as t
from probing_test import probing

sys.path.append(os.path.join(t.ROOT, "fuzz"))
import make_flight_corpus as flight

SAME_FOR_ALL_USERS = True

CORPUS = os.path.join(t.ROOT, "fuzz", "corpus", "import_flight")
WORLD = {"0": ("default_pg", [0, 1, 2, 3])}


def ask(path, sql):
    return json.loads(probing("sql", path, sql, "-f", "json", check=t.OK).stdout)


def steps(n, last="completed", **more):
    """all_reduce 1 to n; more: of the last one."""
    return [flight.entry(i, "nccl:all_reduce", i + 1) for i in range(n - 1)] + [
        flight.entry(n - 1, "nccl:all_reduce", n, last, **more)]


class Flight(unittest.TestCase):
    def setUp(self):
        folder = t.scratch()
        folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)
        os.mkdir("dumps")

    def write(self, rank, entries, groups=WORLD, form=flight.as_pickle, name="dumps/nccl_trace_rank_%d", **more):
        with open(name % rank, "wb") as file:
            file.write(form(flight.dump(entries, groups, **more)))

    def imported(self, *files):
        done = probing("import", *files, "-o", "out.db", "--force", check=t.OK)
        about = json.loads(probing("info", "--check", "--json", "out.db", check=t.OK).stdout)[0]
        self.assertTrue(about["check"]["sound"] and about["check"]["verified"], about)
        return done.stderr

    def report(self):
        text = probing("report", "out.db", check=t.OK).stdout
        found = json.loads(probing("report", "out.db", "--json", check=t.OK).stdout)["collectives"]
        return text[text.index("Flight Recorder"):], found

    def test_a_rank_that_has_not_come(self):
        """Ranks 0 and 1 wait in number 41; rank 2 is after number 40, and rank 3 has left no dump."""
        for rank in 0, 1:
            self.write(rank, steps(41, "started"), form=flight.as_json if rank else flight.as_pickle)
        self.write(2, steps(40, line=31))
        with open("dumps/train.log", "w") as file:
            file.write("epoch 1\n")
        said = self.imported("dumps")
        self.assertIn("122 samples (flight)", said)
        self.assertIn("1 other file of dumps is of another format", said)
        text, found = self.report()
        self.assertEqual(["Flight Recorder: 3 dumps, 122 operations", "", "group 0 (default_pg), 4 ranks: not all have come to collective 41",
                          "  rank 2: not there; its last is all_reduce, number 40 (ended), called by train_step (train.py:31)",
                          "  rank 1: all_reduce, number 41 (started)",  # JSON has no frames
                          "  rank 0: all_reduce, number 41 (started), called by train_step (train.py:88)",
                          "  rank 3: no dump"], text.splitlines())
        group, = found["groups"]
        self.assertEqual(("behind", 41, 4), (group["state"], group["seq"], group["ranks"]))
        self.assertEqual([([2], True, False, 40), ([1], True, True, 41), ([0], True, True, 41), ([3], False, False, None)],
                         [(part["ranks"], part["has_dump"], part["has_come"], part["seq"]) for part in group["parts"]])
        self.assertEqual([{"rank": 0, "world_size": 4}, {"rank": 1, "world_size": 4}, {"rank": 2, "world_size": 4}],
                         ask("out.db", "SELECT rank, world_size FROM process ORDER BY 1"))
        folded = probing("export", "out.db", "--to", "folded", "-o", "-", check=t.OK).stdout
        self.assertRegex(folded, r"(?m)^rank 0 \(1\);<module> \(train.py\);train_step \(train.py\);wrapper \(.*\);all_reduce \(.*\);nccl:all_reduce \d+$")
        probing("compact", "out.db", "-o", "compact.db", check=t.OK)
        probing("merge", "compact.db", "out.db", "-o", "two.db", check=t.OK)
        self.assertEqual([{"n": 244}], ask("two.db", "SELECT count(*) AS n FROM comm_flight"))

    def test_states_of_groups(self):
        differs = [flight.entry(1, "nccl:broadcast", 2, "started")]
        cases = (("differs", 2, {0: steps(2, "started"), 1: steps(1) + differs}),
                 ("differs", 2, {0: steps(2, "started"), 1: steps(2, "started", sizes=((64, 65),))}),
                 ("goes_on", 3, {0: steps(3, "started"), 1: steps(3, "scheduled")}),
                 ("ended", 5, {0: steps(5), 1: steps(6)}),
                 ("behind", 1, {0: steps(1, "started"), 1: []}))
        for n, (state, seq, ranks) in enumerate(cases):
            with self.subTest(n, state=state):
                files = []
                for rank, entries in ranks.items():
                    files.append("case%d_%d" % (n, rank))
                    self.write(rank, entries, {"0": ("default_pg", [0, 1])}, name="case%d_%%d" % n)
                self.imported(*files)
                group, = self.report()[1]["groups"]
                self.assertEqual((state, seq, 2), (group["state"], group["seq"], group["ranks"]))

    def test_a_rank_with_several_dumps(self):
        """Of an earlier attempt, and as JSON, too: the newest one is compared, and a report says so."""
        later = [dict(one, time_created_ns=one["time_created_ns"] + 10**12) for one in steps(2, "started")]
        self.write(0, [flight.entry(0, "nccl:broadcast", 1, "started")], {"0": ("default_pg", [0, 1])}, name="dumps/first_%d")
        self.write(0, later, {"0": ("default_pg", [0, 1])})
        self.write(0, later, {"0": ("default_pg", [0, 1])}, flight.as_json, name="dumps/nccl_trace_rank_%d.json")
        self.write(1, steps(2, "started"), {"0": ("default_pg", [0, 1])})
        self.imported("dumps")
        text, found = self.report()
        self.assertEqual(("goes_on", 2, 2, 4), (found["groups"][0]["state"], found["groups"][0]["seq"], found["dumps_older"], found["dumps"]))
        self.assertIn("2 dumps are not compared: the rank has a newer one\n", text)

    def test_a_group_without_a_collective(self):
        self.write(0, steps(1), {"0": ("default_pg", [0, 1]), "1": ("unused", [0])})
        self.imported("dumps")
        self.assertEqual(["group 1 (unused), 1 rank: no collective", "  rank 0: no collective in this group"],
                         self.report()[0].splitlines()[-2:])

    def test_operations_of_which_the_oldest_are_gone(self):
        """The recorder of rank 0 keeps fewer: several operations of one number are not compared where only some are left."""
        both = [flight.entry(7, "nccl:all_gather", 5), flight.entry(8, "nccl:coalesced", 5), flight.entry(9, "nccl:all_reduce", 6)]
        self.write(0, both[1:], {"0": ("default_pg", [0, 1])})
        self.write(1, both, {"0": ("default_pg", [0, 1])})
        self.imported("dumps")
        self.assertEqual("ended", self.report()[1]["groups"][0]["state"])

    def test_gloo_forgets_operations_that_have_ended(self):
        """It does not see their end by events: they stay `scheduled`."""
        for rank in 0, 1:
            self.write(rank, [flight.entry(0, "gloo:all_reduce", 1, "scheduled", retired=True),
                              flight.entry(1, "gloo:all_reduce", 2, "scheduled", retired=rank == 1)], {"0": ("default_pg", [0, 1])})
        self.imported("dumps")
        text, found = self.report()
        self.assertEqual(("goes_on", 2), (found["groups"][0]["state"], found["groups"][0]["seq"]))
        self.assertIn("rank 0: all_reduce, number 2 (scheduled)", text)

    def test_gloo_has_no_names_of_groups(self):
        """As torch 2.14 writes it: pg_config has one group, whose name is empty."""
        for rank in 0, 1:
            self.write(rank, [flight.entry(n, "gloo:all_reduce", n + 1, "scheduled", group=group, retired=True)
                              for n, group in enumerate((("0", "default_pg"), ("2", "pair")))], {"": ("", [0, 1, 2])})
        self.imported("dumps")
        self.assertEqual([["0", "default_pg", "[0, 1, 2]"], ["2", "pair", None]], [list(row.values()) for row in ask(
            "out.db", 'SELECT DISTINCT "group", description, ranks FROM comm_flight_group ORDER BY 1')])
        self.assertEqual(("group 0 (default_pg), 3 ranks: no collective waits, the last is number 1", "  rank 2: no dump"),
                         tuple(self.report()[0].splitlines()[2:5:2]))

    def test_rows(self):
        """Each entry of a pickle, against Python's own reader."""
        for name in "pickle_2", "pickle_3", "pickle_4", "pickle_5", "json":
            with self.subTest(name):
                self.imported(os.path.join(CORPUS, name))
                rows = ask("out.db", "SELECT * FROM comm_flight ORDER BY record")
                with open(os.path.join(CORPUS, "pickle_2"), "rb") as file:
                    wanted = pickle.load(file)["entries"]
                self.assertEqual(len(wanted), len(rows))
                for row, entry in zip(rows, wanted):
                    backend, _, op = entry["profiling_name"].partition(":")
                    self.assertEqual((backend, op.split()[0], entry["state"], entry["process_group"][0], int(entry["is_p2p"]), entry["timeout_ms"],
                                      entry["p2p_seq_id"] if entry["is_p2p"] else entry["collective_seq_id"]),
                                     tuple(row[key] for key in ("backend", "op", "state", "group", "is_message", "timeout_ms", "seq")))
                    self.assertEqual(entry["input_sizes"], json.loads(row["shapes"]))
                    self.assertEqual(entry["input_dtypes"], json.loads(row["dtypes"]))
                    self.assertAlmostEqual(entry["time_created_ns"] / 1e9, row["created"], places=5)
                    self.assertEqual((entry["time_discovered_completed_ns"] is None, entry.get("duration_ms")),
                                     (row["completed"] is None, row["latency_ms"]))
                    place = (None, None, None) if name == "json" else ("/home/user/train.py", entry["frames"][2]["line"], "train_step")
                    self.assertEqual(place, (row["file"], row["line"], row["func"]))
                self.assertEqual([4 * (8 + 6), 4 * 4096, 40, 40, 4 * 4096], [row["bytes"] for row in rows])
                self.assertEqual([(1, 3), (3, 1)], [(row["src_rank"], row["dst_rank"]) for row in rows if row["is_message"]])
                groups = ask("out.db", 'SELECT "group", description, ranks, last_enqueued, last_completed FROM comm_flight_group ORDER BY 1')
                self.assertEqual([["0", "default_pg", "[0, 1, 2, 3]", 3, 2], ["1", "pipeline", "[1, 3]", None, None]],
                                 [list(row.values()) for row in groups])

    def test_messages_in_a_group_of_many_ranks(self):
        """Its ranks are one text, which is not read for each message."""
        ranks = list(range(1, 100001))
        self.write(0, [flight.message(n, "nccl:send 0->99999", n + 1, ("0", "default_pg")) for n in range(500)], {"0": ("default_pg", ranks)})
        self.imported("dumps")
        self.assertEqual([{"src_rank": 1, "dst_rank": 100000, "n": 500}],
                         ask("out.db", "SELECT src_rank, dst_rank, count(*) AS n FROM comm_flight GROUP BY 1, 2"))

    def test_a_small_file_does_not_become_a_huge_one(self):
        """20,000 times the same entry, with texts of 4 KB each."""
        text = "x" * 4000
        one = flight.entry(0, text + ":" + text, 1, text, process_group=(text, "default_pg"), frames=flight.frames(1, text, text))
        self.write(0, [one] * 20000)
        self.assertLess(os.path.getsize("dumps/nccl_trace_rank_0"), 200000)
        self.assertIn("its lists and texts are too often parts of each other", probing("import", "dumps", check=t.BAD_DATA).stderr)

    def test_a_folder_with_a_large_file(self):
        """Of a file that is no dump the beginning is read; the folder may be the current one."""
        self.write(0, steps(1))
        with open("dumps/model.pt", "wb") as file:
            file.truncate(1 << 42)
        os.chdir("dumps")
        self.assertIn("wrote imported.db", probing("import", ".", check=t.OK).stderr)

    def test_types_are_json(self):
        self.write(0, [flight.entry(0, "nccl:all_reduce", 1, dtype='Fl"o\\a\nt')])
        self.imported("dumps")
        self.assertEqual(["Fl?o?a?t"], json.loads(ask("out.db", "SELECT dtypes FROM comm_flight")[0]["dtypes"]))

    def test_what_torch_wrote(self):
        """torch 2.14, gloo, one rank: a sum, a broadcast, a sum."""
        self.imported(os.path.join(CORPUS, "torch-2.14-gloo_0"))
        self.assertEqual([["all_reduce", 1], ["broadcast", 2], ["all_reduce", 3]], [list(row.values()) for row in ask(
            "out.db", "SELECT op, seq FROM comm_flight WHERE is_ended AND state = 'scheduled' AND bytes = 64 AND func = '<module>' ORDER BY seq")])
        self.assertIn("group 0 (default_pg), 1 rank: no collective waits, the last is number 3\n", self.report()[0])

    def test_an_older_version(self):
        """Its name has no rank either."""
        self.imported(os.path.join(CORPUS, "old"))
        text, found = self.report()
        self.assertEqual(([], 1), (found["groups"], found["dumps_without_rank"]))
        self.assertIn("1 dump is not compared: the name of its file does not end with the rank\n", text)
        self.assertEqual([{"seq": 4, "op": "all_reduce"}], ask("out.db", "SELECT seq, op FROM comm_flight"))

    def test_what_is_no_dump(self):
        cases = (("harmful", "object of a class; .* runs nothing of a pickle"), ("cut", "its pickle is damaged"),
                 ("cut.json", "its JSON is damaged in line 1"), ("deep", None), ("own", None), ("root", "not a dump of PyTorch's Flight Recorder"))
        for name, says in cases:
            with self.subTest(name):
                done = probing("import", "--from", "flight", os.path.join(CORPUS, name), "-o", name + ".db")
                self.assertEqual(t.OK if says is None else t.BAD_DATA, done.returncode, done.stderr)
                self.assertNotIn("a pickle that is run", done.stdout)
                if says:
                    self.assertRegex(done.stderr, says)
                    self.assertFalse(os.path.exists(name + ".db"))
        with open("dumps/x.txt", "w") as file:
            file.write("nothing\n")
        self.assertIn("dumps has no file of the format flight", probing("import", "dumps", check=t.BAD_DATA).stderr)
        self.assertIn("one file at a time; only flight reads several",
                      probing("import", "dumps/x.txt", "dumps/x.txt", "--from", "folded", check=t.USAGE).stderr)
        with open("dumps/rank_0", "wb") as file:
            file.write(flight.as_pickle(flight.example())[:-20])
        self.assertIn("dumps/rank_0 cannot be imported as flight: its pickle is damaged", probing("import", "dumps", check=t.BAD_DATA).stderr)


if __name__ == "__main__":
    unittest.main()
