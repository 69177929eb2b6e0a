# SPDX-License-Identifier: MIT
"""Where a boot has put the kernel and its modules is told by no recording, and by nothing that is made of one."""
import contextlib
import gzip
import os
import re
import sqlite3
import subprocess
import sys
import unittest

import probing_test as t

KERNEL_HALF, LAST_PAGE = -(1 << 47), -4096  # signed; the last page is error codes, no memory
HEXADECIMAL = re.compile(r"ffff[89a-f][0-9a-f]{11}", re.I)
DECIMAL = re.compile(r"(?<![\d.])(-\d{5,15}|18446\d{15})(?![\d.])")
VARINT = re.compile(rb"[\x80-\xff]{9}\x01")  # in protobuf: a number of 2^63 or more
BUSY = "import os\nfor i in range(15000): os.listdir('/proc/self/fd')"
FORMATS = ("folded", "svg", "speedscope", "chrome", "html", "callgrind", "gecko")

NAMES = "SELECT frame.frame, name FROM frame JOIN function USING (function) WHERE frame.kind = 'kernel' ORDER BY 1"
PLACES = "SELECT frame, address FROM frame WHERE kind = 'kernel' ORDER BY 1"


def in_kernel_half(value):
    return KERNEL_HALF <= value < LAST_PAGE


def addresses_in_text(text):
    found = HEXADECIMAL.findall(text)
    for number in DECIMAL.findall(text):
        value = int(number) - (1 << 64 if int(number) >= 1 << 63 else 0)
        if in_kernel_half(value):
            found.append(number)
    return found


def addresses_in(path):
    """Each value of the file that could be an address in the kernel, with its table and column."""
    found = []
    with contextlib.closing(t.connect(path)) as db:
        tables = [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")] + ["sample"]
        for table in tables:
            rows = db.execute('SELECT * FROM "%s"' % table)
            columns = [column[0] for column in rows.description]
            for row in rows:
                if row[0] == "checksum":  # a hash: any number
                    continue
                found += [(table, column, value) for column, value in zip(columns, row)
                          if (isinstance(value, int) and in_kernel_half(value)) or
                          (isinstance(value, str) and addresses_in_text(value))]
    return found


def query(path, sql):
    with contextlib.closing(t.connect(path)) as db:
        return db.execute(sql).fetchall()


def change(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(sql)


def kallsyms():
    """Address and name of all code that the kernel lists."""
    with open("/proc/kallsyms") as lines:
        return [(int(line.split()[0], 16), line.split()[2]) for line in lines if line.split()[1] in "tTwW"]


class KernelPlaces(t.RecordedCase):
    def setUp(self):
        t.need_root()
        super().setUp()
        self.before = query("probing.db", NAMES)
        self.assertGreater(len(self.before), 3, "the recording has kernel frames with names")

    def assert_no_address_in_exports(self, path):
        for form in FORMATS:
            with self.subTest(form):
                t.probing("export", path, "--to", form, "-o", "out." + form, "--force", check=t.OK)
                with open("out." + form, errors="replace") as made:
                    self.assertEqual([], addresses_in_text(made.read()))
        t.probing("export", path, "--to", "pprof", "-o", "out.pb.gz", "--force", check=t.OK)
        with gzip.open("out.pb.gz") as made:
            self.assertEqual([], VARINT.findall(made.read()))
        t.probing("export", path, "--to", "sqlite", "-o", "out.sqlite", "--force", check=t.OK)
        self.assertEqual([], addresses_in("out.sqlite"))

    def test_no_value_of_a_recording_is_a_kernel_address(self):
        self.assertEqual([], addresses_in("probing.db"))
        self.assertTrue(all(address is not None and address >= 0 for _, address in query("probing.db", PLACES)))

    def test_the_same_where_names_are_left_out(self):
        t.probing("record", "-F", 499, "--no-symbols", "-o", "bare.db", "--", sys.executable, "-c", BUSY, check=t.OK)
        self.assertEqual([], addresses_in("bare.db"))
        t.probing("symbolize", "bare.db", check=t.OK)
        self.assertGreater(len(query("bare.db", NAMES)), 3)

    def test_symbolize_finds_the_same_names(self):
        places = query("probing.db", PLACES)
        change("probing.db", "UPDATE frame SET function = NULL WHERE kind = 'kernel'; UPDATE run SET started = 1000;")
        t.probing("symbolize", check=t.OK)
        self.assertEqual(self.before, query("probing.db", NAMES))
        self.assertEqual(places, query("probing.db", PLACES))

    def test_exports(self):
        self.assert_no_address_in_exports("probing.db")

    def test_recordings_of_before(self):
        """Absolute addresses are read, so that names can be completed, but exports leave them out."""
        address, name = next(one for one in kallsyms() if one[1] == "vfs_read")
        change("probing.db", "UPDATE frame SET function = NULL, address = %d WHERE kind = 'kernel'" % (address + 1 - (1 << 64)))
        self.assertNotEqual([], addresses_in("probing.db"), "this test looks for them")
        t.probing("symbolize", check=t.OK)
        self.assertEqual({name}, {row[1] for row in query("probing.db", NAMES)})
        self.assert_no_address_in_exports("probing.db")

    def test_tracepoint(self):
        """Its fields call_site and ptr are addresses in the kernel."""
        t.need_tracefs()
        subprocess.run(t.WITH_TRACEFS + [t.BINARY, "record", "-e", "kmem:kmalloc", "-c", "50", "-o", "kmalloc.db", "--",
                                                  sys.executable, "-c", BUSY], check=True, capture_output=True, timeout=3 * t.HANG_S)
        columns = query("kmalloc.db", "SELECT call_site, ptr, bytes_req FROM \"kmem:kmalloc\"")
        self.assertGreater(len(columns), 5)
        self.assertEqual({(None, None)}, {row[:2] for row in columns})
        self.assertTrue(all(row[2] > 0 for row in columns))
        self.assertEqual([], addresses_in("kmalloc.db"))

    def test_live_tables_and_backtrace(self):
        with t.fixture("demo.py") as target:
            said = t.probing("backtrace", target.pid, "--json", check=t.OK).stdout
            self.assertEqual([], addresses_in_text(said))
            for table in ("python.backtrace", "process.maps", "process.envs", "process.fds", "system.process"):
                done = t.probing("sql", target.pid, "SELECT * FROM %s" % table, "--format", "csv", check=t.OK)
                rows = [line for line in done.stdout.splitlines() if "[vsyscall]" not in line]  # the same on all machines
                self.assertEqual([], addresses_in_text("\n".join(rows)), table)


class HiddenKernel(t.Case):
    """kptr_restrict lets /proc/kallsyms show zeros."""

    def test_nothing_is_stored_where_addresses_are_hidden(self):
        t.need_root()
        refusal = t.namespaces_refusal()
        if refusal:
            self.skipTest(refusal)
        with open("zeros", "w") as hidden, open("/proc/kallsyms") as lines:
            hidden.writelines("0" * 16 + line[16:] for line in lines)
        script = 'mount --bind zeros /proc/kallsyms && exec "$@"'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", t.BINARY, "record", "-F", "499",
                               "-o", "probing.db", "--", sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=3 * t.HANG_S)
        self.assertTrue(os.path.exists("probing.db"), done.stderr)
        self.assertGreater(query("probing.db", "SELECT count(*) FROM frame WHERE kind = 'kernel'")[0][0], 3)
        self.assertEqual([(0, 0)], query("probing.db", "SELECT count(address), count(function) FROM frame WHERE kind = 'kernel'"))
        self.assertEqual([], addresses_in("probing.db"))


if __name__ == "__main__":
    sys.exit(unittest.main())
