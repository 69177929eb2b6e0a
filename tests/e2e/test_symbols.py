# SPDX-License-Identifier: MIT
"""Names of native code: each source of them, and 'probing symbolize' afterwards and elsewhere.

A library built here has one function that stays, shape_outer, and one that is
inlined into it, shape_inner; a driver loads it and calls it. What is known of
both tells which files were read: the inlined one needs debug information.
"""
import contextlib
import glob
import http.server
import os
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

import probing_test as t
import terminal

SHAPE = """
#include <stdint.h>
static volatile uint64_t sink;
static inline __attribute__((always_inline)) uint64_t shape_inner(uint64_t n)
{
	uint64_t value = n;
	for (unsigned i = 0; i < 100000; i++)
		value = value * 6364136223846793005u + i;
	return value;
}
__attribute__((noinline)) static void shape_outer(uint64_t n)
{
	sink += shape_inner(n) + VARIANT;
}
void shape_burn(void)
{
	shape_outer(sink);
	sink++;
}
"""

DRIVER = """
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	void (*burn)(void) = library ? (void (*)(void))dlsym(library, "shape_burn") : 0;
	time_t start = time(NULL);

	if (argc < 2 || !burn)
		return 1;
	puts("ready {}");
	fflush(stdout);
	while (time(NULL) < start + 60)
		burn();
	return 0;
}
"""

CART = """
namespace shop {
template <class T> struct Cart {
	static inline __attribute__((always_inline)) T price(T x)
	{
		for (unsigned i = 0; i < 100000; i++)
			x = x * 6364136223846793005u + i;
		return x;
	}
	__attribute__((noinline)) T total(T x) { return price(x) + 1; }
};
}
static volatile unsigned long sink;
extern "C" void shape_burn(void) { sink += shop::Cart<unsigned long>().total(sink); sink++; }
"""

CRATE = """
#![crate_type = "cdylib"]
pub mod shop {
    pub struct Cart { pub n: u64 }
    impl Cart {
        #[inline(never)]
        pub fn total(&self) -> u64 {
            let mut value = self.n;
            for i in 0..100000u64 {
                value = std::hint::black_box(value.wrapping_mul(6364136223846793005).wrapping_add(i));
            }
            value
        }
    }
}
#[no_mangle]
pub extern "C" fn shape_burn() {
    let cart = shop::Cart { n: std::hint::black_box(3) };
    std::hint::black_box(cart.total());
}
"""


# Functions that Go inlines, closures and methods.
SHOP = """
package main

import (
	"fmt"
	"sort"
	"time"
)

type shop struct{ items []int }

func small(x int) int { return x*7 + 3 }

//go:noinline
func burn(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += small(i) % 13
	}
	return sum
}

func (s *shop) fill(n int) {
	for i := 0; i < n; i++ {
		s.items = append(s.items, burn(i%50))
	}
	sort.Slice(s.items, func(a, b int) bool { return s.items[a] < s.items[b] })
}

func main() {
	fmt.Println("ready {}")
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); {
		s := &shop{}
		s.fill(20000)
	}
}
"""

MIXED = """
import time
import numpy, pandas
from pandas._libs import algos, lib
values = numpy.array([1, "a", 2.5, None] * 20000, dtype=object)
numbers = numpy.random.default_rng(1).random(20000)
print("ready {}", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    lib.fast_unique_multiple_list([list(range(2000))] * 3)
    lib.maybe_convert_objects(values[:2000])
    algos.kth_smallest(numbers.copy(), 10000)
    algos.rank_1d(numbers)
"""


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, **more)
    if done.returncode != 0:
        raise AssertionError("%s: %s%s" % (" ".join(map(str, command)), done.stdout, done.stderr))
    return done.stdout


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def build_library(path, variant=0, *flags):
    write("shape.c", SHAPE)
    run("cc", "-O2", "-g", "-fPIC", "-shared", "-Wl,--build-id", "-DVARIANT=%d" % variant, *flags, "shape.c", "-o", path)
    return path


def build_driver():
    write("driver.c", DRIVER)
    run("cc", "-O2", "driver.c", "-o", "driver", "-ldl")


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path)).group(1)


def by_build_id(folder, identity, ending=".debug"):
    path = os.path.join(folder, ".build-id", identity[:2], identity[2:] + ending)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def split(path, debug):
    """Make the library at path a stripped one, and debug its debug file."""
    run("objcopy", "--only-keep-debug", path, debug)
    run("strip", path)


def query(path, sql):
    with contextlib.closing(t.connect(path)) as db:
        return db.execute(sql).fetchall()


# All that is said of native places, in no order, without ids.
NAMES = """
WITH RECURSIVE chain(place, address, module, level, frame) AS (
  SELECT frame, address, module, 0, frame FROM frame WHERE kind = 'native' AND address IS NOT NULL
  UNION ALL
  SELECT place, chain.address, chain.module, level + 1, inlined_into FROM chain JOIN frame USING (frame)
  WHERE inlined_into IS NOT NULL)
SELECT chain.module, chain.address, frame.is_eval, level, function.name, function.symbol, function.role,
       function.module, frame.line
FROM chain JOIN frame USING (frame) LEFT JOIN function USING (function) ORDER BY 1, 2, 3, 4, 5"""

FORGET = """
UPDATE frame SET function = NULL, line = NULL, inlined_into = NULL WHERE kind IN ('native', 'kernel');
DELETE FROM frame WHERE frame >= 1 << 32;
DELETE FROM function WHERE kind IN ('native', 'kernel');"""


def forget_names(path):
    with contextlib.closing(t.connect(path, "rw")) as db:
        db.executescript(FORGET)


class Symbols(t.Case):
    def setUp(self):
        super().setUp()
        for program in ("cc", "objcopy", "strip", "readelf"):
            t.need_program(program)
        # Nobody's servers are asked unless the test says so.
        for name in ("DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH", "DEBUGINFOD_TIMEOUT"):
            if name in os.environ:
                self.addCleanup(os.environ.__setitem__, name, os.environ.pop(name))
        os.chmod(".", 0o755)
        build_driver()

    @contextlib.contextmanager
    def driver(self, library, **more):
        with t.target([os.path.abspath("driver"), os.path.abspath(library)], **more) as started:
            yield started

    def record(self, pid, *more, path="probing.db", seconds=0.5, env=None):
        """What the recorder said. @seconds: of the program's CPU time."""
        return t.record_for_cpu(pid, seconds, path, "-F", 999, *more, env=env)

    def record_library(self, library, *more, path="probing.db", env=None):
        with self.driver(library) as started:
            return self.record(started.pid, *more, path=path, env=env)

    def library_rows(self, path="probing.db", name="libshape.so"):
        """Where the library's samples fell: {(function, file, line, inlined_into's function)}."""
        return query(path, """
            SELECT f.name, place.file, f.line, caller.name, f.samples FROM (
              SELECT n.frame, n.name, n.line, n.inlined_into, sum(samples) AS samples
              FROM stack_total JOIN stack USING (stack) JOIN named_frame n USING (frame)
              WHERE n.module LIKE '%/NAME' GROUP BY 1) f
            JOIN named_frame place ON place.frame = f.frame
            LEFT JOIN named_frame caller ON caller.frame = f.inlined_into""".replace("NAME", name))

    def assert_has_lines(self, path="probing.db"):
        rows = self.library_rows(path)
        total = sum(row[4] for row in rows)
        self.assertGreater(total, 10, rows)
        inlined = sum(row[4] for row in rows if row[0] == "shape_inner" and row[3] == "shape_outer" and
                      (row[1] or "").endswith("shape.c") and row[2])
        self.assertShare(0.9, inlined / total, "shape_inner with its line, in shape_outer: %s" % rows)

    def assert_has_symbols(self, path="probing.db"):
        rows = self.library_rows(path)
        total = sum(row[4] for row in rows)
        self.assertGreater(total, 10, rows)
        self.assertShare(0.9, sum(row[4] for row in rows if row[0] == "shape_outer") / total, str(rows))
        self.assertEqual([], [row for row in rows if row[2]], "lines without debug information")

    def assert_nameless(self, path="probing.db"):
        rows = self.library_rows(path)
        self.assertGreater(sum(row[4] for row in rows), 10, rows)
        named = [row for row in rows if row[0].startswith("shape_") and row[0] != "shape_burn"]
        self.assertEqual([], named)


class WhileRecording(Symbols):
    """Sources that the recorder finds by itself."""

    def test_in_the_file(self):
        build_library("libshape.so")
        self.record_library("libshape.so")
        self.assert_has_lines()
        folded = t.probing("flamegraph", "--format", "folded", "-o", "-", check=t.OK).stdout
        self.assertRegex(folded, r"shape_burn;shape_outer;shape_inner \d+")
        t.probing("flamegraph", "-o", "flame.svg", check=t.OK)
        with open("flame.svg") as svg:
            self.assertIn("shape_inner", svg.read())

    def test_packed(self):
        """What is unpacked goes to TMPDIR, where that can be, and nothing of it is left."""
        os.mkdir("scratch")
        build_library("libshape.so", 0, "-gz=zlib")
        for folder in ("scratch", "nowhere"):
            self.record_library("libshape.so", path=folder + ".db", env=dict(os.environ, TMPDIR=os.path.abspath(folder)))
            self.assert_has_lines(folder + ".db")
        self.assertEqual([], os.listdir("scratch"))

    def test_stripped(self):
        split(build_library("libshape.so"), "elsewhere.debug")
        self.record_library("libshape.so")
        self.assert_nameless()

    def test_debug_link_beside(self):
        split(build_library("libshape.so"), "shape.debug")
        run("objcopy", "--add-gnu-debuglink=shape.debug", "libshape.so")
        self.record_library("libshape.so")
        self.assert_has_lines()

    def test_debug_link_in_debug_folder(self):
        os.mkdir(".debug")
        split(build_library("libshape.so"), ".debug/shape.debug")
        run("objcopy", "--add-gnu-debuglink=.debug/shape.debug", "libshape.so")
        self.record_library("libshape.so")
        self.assert_has_lines()

    def test_debug_link_by_checksum(self):
        """Without a build-id the link's checksum decides, and another build's file is not believed."""
        split(build_library("libshape.so", 0, "-Wl,--build-id=none"), "shape.debug")
        run("objcopy", "--add-gnu-debuglink=shape.debug", "libshape.so")
        self.record_library("libshape.so")
        self.assert_has_lines()
        split(build_library("other.so", 1, "-Wl,--build-id=none"), "shape.debug")
        self.record_library("libshape.so", path="other.db")
        self.assert_nameless("other.db")

    def test_debug_link_of_another_build(self):
        split(build_library("libshape.so"), "shape.debug")
        run("objcopy", "--add-gnu-debuglink=shape.debug", "libshape.so")
        split(build_library("other.so", 1), "shape.debug")
        self.record_library("libshape.so")
        self.assert_nameless()

    def test_debug_link_to_a_pipe_does_not_hang(self):
        split(build_library("libshape.so"), "shape.debug")
        run("objcopy", "--add-gnu-debuglink=shape.debug", "libshape.so")
        os.unlink("shape.debug")
        os.mkfifo("shape.debug")
        self.record_library("libshape.so")
        self.assert_nameless()

    def test_split_debug_information_in_a_pipe_does_not_hang(self):
        write("shape.c", SHAPE)
        run("cc", "-O2", "-g", "-gsplit-dwarf", "-fPIC", "-DVARIANT=0", "-c", "shape.c", "-o", "shape.o")
        run("cc", "-shared", "shape.o", "-o", "libshape.so")
        self.record_library("libshape.so")
        self.assert_has_lines()
        os.unlink("shape.dwo")
        os.mkfifo("shape.dwo")
        self.record_library("libshape.so", path="pipe.db")
        rows = self.library_rows("pipe.db")
        self.assertIn("shape_outer", {row[0] for row in rows})

    def test_common_debug_file_that_is_a_pipe_does_not_hang(self):
        build_library("libshape.so")
        os.mkfifo("pipe")
        with open("link", "wb") as file:
            file.write(os.path.abspath("pipe").encode() + b"\0" + b"x" * 20)
        run("objcopy", "--add-section", ".gnu_debugaltlink=link", "libshape.so")
        self.record_library("libshape.so")
        self.assertIn("shape_outer", {row[0] for row in self.library_rows()})

    def test_system_debug_files(self):
        libc = next(path for path in glob.glob("/usr/lib/*/libc.so.6") + ["/lib64/libc.so.6"] if os.path.exists(path))
        if not os.path.exists(by_build_id_path("/usr/lib/debug", build_id(libc))):
            self.skipTest("the debug file of libc is not installed (libc6-dbg)")
        with t.fixture("native_only", "qsort") as started:
            self.record(started.pid)
        lines = query("probing.db", "SELECT count(*) FROM named_frame WHERE module LIKE '%/libc.so.6' "
                                    "AND name LIKE '%msort%' AND file LIKE '%msort.c' AND line > 0")[0][0]
        self.assertGreater(lines, 0)

    def test_mini_debug_information(self):
        t.need_program("xz")
        build_library("full.so")
        shutil.copy("full.so", "libshape.so")
        run("strip", "libshape.so")
        symbols = [line.split()[-1] for line in run("nm", "full.so").splitlines() if line.split()[-2] in "tT"]
        write("keep", "\n".join(symbols) + "\n")
        run("objcopy", "-S", "--keep-symbols=keep", "full.so", "mini.debug")
        run("xz", "mini.debug")
        run("objcopy", "--add-section", ".gnu_debugdata=mini.debug.xz", "libshape.so")
        self.record_library("libshape.so")
        self.assert_has_symbols()

    def test_cxx(self):
        t.need_program("g++")
        write("cart.cc", CART)
        run("g++", "-O2", "-g", "-fPIC", "-shared", "cart.cc", "-o", "libshape.so")
        self.record_library("libshape.so")
        rows = self.library_rows()
        inlined = [row for row in rows if row[0] == "shop::Cart<unsigned long>::price"]
        self.assertEqual({"shop::Cart<unsigned long>::total"}, {row[3] for row in inlined}, rows)
        folded = t.probing("flamegraph", "--format", "folded", "-o", "-", check=t.OK).stdout
        self.assertRegex(folded, r";shop::Cart<unsigned long>::total;shop::Cart<unsigned long>::price \d+")

    def test_rust(self):
        if shutil.which("rustc") is None and not os.path.exists(os.path.expanduser("~/.cargo/bin/rustc")):
            self.skipTest("rustc is not installed")
        rustc = shutil.which("rustc") or os.path.expanduser("~/.cargo/bin/rustc")
        for mangling in ("legacy", "v0"):
            with self.subTest(mangling):
                write("cart.rs", CRATE)
                options = [] if mangling == "legacy" else ["-C", "symbol-mangling-version=v0"]
                run(rustc, "-O", "-g", *options, "cart.rs", "-o", "libshape.so")
                self.record_library("libshape.so", path=mangling + ".db")
                # What total() is made of is inlined into it, several functions deep.
                names = {row[0] for row in query(mangling + ".db", """
                    WITH RECURSIVE part(frame) AS (
                      SELECT frame FROM stack_total JOIN stack USING (stack) JOIN named_frame USING (frame)
                      WHERE module LIKE '%/libshape.so'
                      UNION SELECT inlined_into FROM part JOIN frame USING (frame) WHERE inlined_into IS NOT NULL)
                    SELECT name FROM part JOIN named_frame USING (frame)""")}
                self.assertTrue([name for name in names if re.search(r"Cart>?::total$", name)], names)
                self.assertFalse([name for name in names if re.search(r"17h[0-9a-f]{16}|^_R|^_ZN", name)], names)

    def test_deleted_library(self):
        t.need_root()
        identity = build_id(build_library("libshape.so"))
        with self.driver("libshape.so") as started:
            os.unlink("libshape.so")
            self.record(started.pid)
        self.assert_has_lines()
        self.assertEqual([(identity,)], query("probing.db", "SELECT build_id FROM module WHERE path LIKE '%shape%'"))

    def test_replaced_library(self):
        t.need_root()
        identity = build_id(build_library("libshape.so"))
        with self.driver("libshape.so") as started:
            write("wrong.c", "__attribute__((noinline)) void wrong_name(void) { for (volatile int i = 0; i < 9; i++) ; }\n"
                             "void shape_burn(void) { wrong_name(); wrong_name(); }\n" * 1)
            run("cc", "-O0", "-g", "-fPIC", "-shared", "wrong.c", "-o", "wrong.so")
            os.rename("wrong.so", "libshape.so")
            self.record(started.pid)
        self.assert_has_lines()
        self.assertEqual([], query("probing.db", "SELECT name FROM function WHERE name LIKE 'wrong%'"))
        self.assertEqual([(identity,)], query("probing.db", "SELECT build_id FROM module WHERE path LIKE '%shape%'"))

    def test_replaced_library_without_privilege(self):
        """map_files is closed to users: no names, and none of the wrong file, but the build-id is
        known from memory, so that the right one can be found later."""
        t.need_root()  # to become somebody else
        setpriv = t.need_program("setpriv")
        as_nobody = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
        identity = build_id(build_library("libshape.so"))
        os.mkdir("out")
        os.chmod("out", 0o777)
        for path in ("driver", "libshape.so"):
            os.chmod(path, 0o755)
        if subprocess.run(as_nobody + [t.BINARY, "--version"], capture_output=True).returncode != 0:
            self.skipTest("the binary cannot be run by another user")
        shutil.copy("libshape.so", "kept.so")
        command = as_nobody + [os.path.abspath("driver"), os.path.abspath("libshape.so")]
        with t.target(command) as started:
            build_library("wrong.so", 7, "-Dshape_outer=wrong_outer", "-Dshape_inner=wrong_inner")
            os.rename("wrong.so", "libshape.so")
            done = subprocess.run(as_nobody + [t.BINARY, "record", "--pid", str(started.pid), "-d", "3", "-F", "999",
                                               "-o", "out/probing.db"], capture_output=True, text=True, timeout=3 * t.HANG_S)
        if t.perf_refusal_of(65534 if os.geteuid() == 0 else os.geteuid()):
            self.skipTest("ordinary users may not sample here")
        self.assertEqual(t.OK, done.returncode, done.stderr)
        self.assert_nameless("out/probing.db")
        self.assertEqual([], query("out/probing.db", "SELECT name FROM function WHERE name LIKE 'wrong%'"))
        self.assertEqual([(identity,)],
                         query("out/probing.db", "SELECT build_id FROM module WHERE path LIKE '%shape%'"))
        said = t.probing("symbolize", "out/probing.db", check=t.OK).stderr
        self.assertIn("another build is here", said)
        self.assertIn(identity, said)
        self.assert_nameless("out/probing.db")
        shutil.copy("kept.so", by_build_id("debug", identity, ""))
        t.probing("symbolize", "out/probing.db", "--debug-dir", "debug", check=t.OK)
        self.assert_has_lines("out/probing.db")

    def record_in_root(self, enter):
        """The driver in a root of its own that lies in a mount namespace of its own."""
        t.need_root()
        t.need_program("unshare")
        build_library("libshape.so")
        libraries = re.findall(r"(/\S+)", run("ldd", "driver"))
        script = ["set -e", "mkdir root", "mount -t tmpfs none root", "mkdir -p root/hidden root/old"]
        for path in libraries:
            script.append("mkdir -p root%s && cp -L %s root%s" % (os.path.dirname(path), path, path))
        script += ["cp driver libshape.so root/hidden/", enter]
        with t.target(["unshare", "--mount", "sh", "-c", "\n".join(script)]) as started:
            self.record(started.pid)
        path = query("probing.db", "SELECT path FROM module WHERE path LIKE '%/hidden/libshape.so'")[0][0]
        self.assertFalse(os.path.exists(path))
        self.assert_has_lines()
        return path

    def test_another_root(self):
        """The process sees its library at a path that leads nowhere for us."""
        t.need_program("pivot_root")
        path = self.record_in_root("cd root && pivot_root . old && exec /hidden/driver /hidden/libshape.so")
        self.assertEqual("/hidden/libshape.so", path)

    def test_chroot(self):
        """Here the kernel gives a path that holds neither in our root nor in the process'."""
        t.need_program("chroot")
        self.record_in_root("exec chroot root /hidden/driver /hidden/libshape.so")

    def test_every_module_has_its_build_id(self):
        """Those loaded late and the vdso included."""
        write("clock.c", "#include <stdio.h>\n#include <time.h>\n#include <sys/time.h>\n"
                         "int main(void) { struct timespec t; time_t s = time(0); puts(\"ready {}\"); fflush(stdout);\n"
                         "while (time(0) < s + 60) for (int i = 0; i < 100; i++) clock_gettime(CLOCK_MONOTONIC, &t); }\n")
        run("cc", "-O2", "clock.c", "-o", "clock", "-Wl,--build-id")
        with t.target([os.path.abspath("clock")]) as started:
            self.record(started.pid)
        modules = query("probing.db", "SELECT path, build_id FROM module")
        self.assertEqual([], [path for path, identity in modules if not identity])
        self.assertIn("[vdso]", [path for path, _ in modules])
        before = query("probing.db", NAMES)
        self.assertTrue([row for row in before if row[4] and "vdso" in row[4] or row[4] == "clock_gettime"], before)
        forget_names("probing.db")
        t.probing("symbolize", check=t.OK)
        self.assertEqual(before, query("probing.db", NAMES))


def by_build_id_path(folder, identity):
    return os.path.join(folder, ".build-id", identity[:2], identity[2:] + ".debug")


class Go(t.Case):
    """A stripped program against the debug information that it had before."""
    NIGHTLY_FOR_USERS = True  # names are found by a process without rights, whoever records

    def build(self, *flags):
        write("shop.go", SHOP)
        run(t.need_program("go"), "build", *flags, "-o", "plain", "shop.go",
            env=dict(os.environ, GOCACHE=os.path.abspath("cache"), GO111MODULE="off", GOFLAGS="", HOME=os.getcwd()))
        shutil.copy("plain", "stripped")
        run("strip", "stripped")

    def record(self, program):
        with t.target([os.path.abspath(program)]) as started:
            t.record_for_cpu(started.pid, 1.5, program + ".db", "-F", 999)

    def chains(self, path):
        """Of each native place of the program: {address: [(function, line), ...]}, innermost first."""
        found = {}
        for address, _, name, line in query(path, """
                WITH RECURSIVE chain(address, level, frame) AS (
                  SELECT frame.address, 0, frame FROM frame JOIN module USING (module)
                  WHERE kind = 'native' AND frame.address IS NOT NULL AND path LIKE '%/stripped'
                  UNION ALL
                  SELECT chain.address, level + 1, inlined_into FROM chain JOIN frame USING (frame)
                  WHERE inlined_into IS NOT NULL)
                SELECT chain.address, level, name, line FROM chain JOIN named_frame USING (frame)
                ORDER BY 1, 2"""):
            found.setdefault(address, []).append((name, line))
        return found

    def truth(self, addresses):
        said = run("addr2line", "-a", "-f", "-i", "-e", "plain", *map(hex, addresses)).splitlines()
        found, at = {}, 0
        while at < len(said):
            if said[at].startswith("0x"):
                chain = found[int(said[at], 16)] = []
                at += 1
                continue
            line = re.search(r":(\d+)", said[at + 1])
            chain.append((said[at], int(line.group(1)) if line else None))
            at += 2
        return found

    @staticmethod
    def agree(chain, truth):
        """addr2line gives some inlined functions the name of the function around them, but their lines are right."""
        return [line for _, line in chain] == [line for _, line in truth] and \
            all(name in (own, truth[-1][0]) for (own, _), (name, _) in zip(chain, truth))

    def check(self):
        for program in "addr2line", "strip":
            t.need_program(program)
        self.record("stripped")
        found = self.chains("stripped.db")
        truth = self.truth(found)
        self.assertGreater(len(found), 20)
        wrong = [(chain, truth[address]) for address, chain in found.items() if not self.agree(chain, truth[address])]
        self.assertNearlyAll(len(found) - len(wrong), len(found), wrong[:5])
        names = [[name for name, _ in chain] for chain in found.values()]
        for wanted in ["main.burn"], ["main.small", "main.burn"], ["main.(*shop).fill.func1"]:
            self.assertIn(wanted, names)
        self.assertEqual([], query("stripped.db", "SELECT name FROM function WHERE name LIKE 'stripped+0x%'"))

    @t.statistical("each function must be met by a sample, and few may fall where addr2line errs", 0.0005)
    def test_stripped(self):
        t.need_perf()
        self.build()
        self.check()

    @t.statistical("each function must be met by a sample, and few may fall where addr2line errs", 0.0005)
    def test_stripped_and_position_independent(self):
        t.need_perf()
        self.build("-buildmode=pie")
        self.check()

    def test_without_debug_information_as_linked(self):
        """The same files and lines, from the program's own table."""
        t.need_perf()
        self.build("-ldflags=-w")
        self.record("plain")
        lines = query("plain.db", "SELECT DISTINCT file FROM named_frame WHERE name = 'main.burn' AND line BETWEEN 16 AND 19")
        self.assertEqual([(os.path.abspath("shop.go"),)], lines)


class Cython(t.Case):
    """Debian's pandas, whose modules are stripped."""
    NIGHTLY_FOR_USERS = True  # names are found by a process without rights, whoever records

    @t.statistical("each function must be met by a sample", 0.0002)
    def test_functions_are_named_as_in_tracebacks(self):
        t.need_perf()
        if subprocess.run([t.DEBIAN_PYTHON, "-c", "import pandas"], capture_output=True).returncode != 0:
            self.skipTest("python3-pandas is not installed")
        with t.target([t.DEBIAN_PYTHON, "-c", MIXED]) as started:
            t.record_for_cpu(started.pid, 3, "probing.db", "-F", 999)
        rows = dict(query("probing.db", "SELECT DISTINCT name, file FROM named_frame "
                                        "WHERE kind = 'native' AND module LIKE '%/pandas/_libs/%'"))
        for function, file in (("lib.fast_unique_multiple_list", "lib"), ("lib.maybe_convert_objects", "lib"),
                               ("algos.kth_smallest", "algos"), ("algos.rank_1d", "algos")):
            self.assertIn("pandas._libs." + function, rows)
            self.assertEqual("pandas/_libs/%s.pyx" % file, rows["pandas._libs." + function])


class Torch(t.Case):
    """Debian's torch, whose libraries are stripped, and fill tables of methods when they are loaded."""
    NIGHTLY_FOR_USERS = True  # names are found by a process without rights, whoever records
    PROGRAM = """
import torch
image, kernel = torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, 2, 2)
print("ready{}", flush=True)
while True:
    torch.conv2d(image, kernel)
    torch.add(image, 1)
"""

    @t.statistical("each function must be met by a sample", 0.0002)
    def test_functions_are_named_as_they_are_called(self):
        t.need_perf()
        if not t.has_modules(t.DEBIAN_PYTHON, "torch"):
            self.skipTest("python3-torch is not installed")
        with t.target([t.DEBIAN_PYTHON, "-c", self.PROGRAM]) as started:
            t.record_for_cpu(started.pid, 1, "probing.db", "-F", 999)
        names = {name for (name,) in query("probing.db", "SELECT DISTINCT name FROM named_frame WHERE kind = 'native' AND "
                                                         "module LIKE '%/libtorch_python.so%'")}
        self.assertLessEqual({"torch.conv2d", "torch.add"}, names)


class Pybind11(t.Case):
    """A module of its own, with debug information."""
    NIGHTLY_FOR_USERS = True  # names are found by a process without rights, whoever records
    SOURCE = """
#include <pybind11/pybind11.h>
static double price(int n) { volatile double s = 0; for (int i = 0; i < n; i++) s = s + i; return s; }
struct Cart { double sum = 1; double total() const { volatile double s = 0; for (int i = 0; i < 300000; i++) s = s + sum; return s; } };
PYBIND11_MODULE(shop, m) {
  m.def("price", &price);
  pybind11::class_<Cart>(m, "Cart").def(pybind11::init<>()).def("total", &Cart::total);
}
"""
    PROGRAM = """
import shop, time
def buy(until):
    cart = shop.Cart()
    while time.process_time() < until:
        shop.price(300000)
        cart.total()
buy(time.process_time() + 1.5)
"""

    def test_the_bound_function_is_below_the_line_that_calls_it(self):
        t.need_perf()
        t.need_program("g++")
        if not os.path.exists("/usr/include/pybind11/pybind11.h"):
            self.skipTest("pybind11-dev is not installed")
        include = run(t.DEBIAN_PYTHON, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])").strip()
        if not os.path.exists(include + "/Python.h"):
            self.skipTest("libpython3-dev is not installed")
        for name, text in (("shop.cpp", self.SOURCE), ("buy.py", self.PROGRAM)):
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        run("g++", "-O2", "-g", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-I" + include, "shop.cpp", "-o", "shop.so")
        t.probing("record", "-q", "-F", 999, "-o", "out.db", "--", t.DEBIAN_PYTHON, "-B", "buy.py", check=t.OK)
        shown, whole = (t.probing("flamegraph", "out.db", "-f", "folded", "-o", "-", *more, check=t.OK).stdout
                        for more in ([], ["--interpreter-frames"]))
        for function in "price", "Cart::total":
            below = {len(line.split(";buy (buy.py);")[1].split(";" + function)[0].split(";"))
                     for line in shown.splitlines() if ";buy (buy.py);" in line and ";%s " % function in line}
            self.assertEqual({1}, below, function)  # cpp_function::initialize()'s, which may contain the bound function
            self.assertIn(";pybind11::cpp_function::dispatcher;", whole)
            self.assertRegex(whole, r"pybind11::detail::argument_loader<[^;]*>::call_impl<[^\n]*;%s " % function)
        self.assertNotIn("pybind11::cpp_function::dispatcher", shown)
        self.assertNotIn("::call_impl<", shown)


PATIENCE_S = 30  # SERVER_PATIENCE_S of src/pipeline/name_server.c: so long a recorder waits for all answers together


class Server(http.server.ThreadingHTTPServer):
    """A debuginfod: files by (build-id, kind); counts what it is asked, and how long a client waits for a slow answer."""
    daemon_threads = True

    def __init__(self, files, delay_s=0, slow=""):
        """Questions that have slow in them are answered after delay_s seconds."""
        self.files, self.delay_s, self.slow, self.asked, self.held_s = files, delay_s, slow, [], []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server_address[1]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.server.delay_s and self.server.slow in self.path:
            began = time.monotonic()
            select.select([self.connection], [], [], self.server.delay_s)  # until the client leaves
            self.server.held_s.append(time.monotonic() - began)
        match = re.fullmatch(r"/buildid/([0-9a-f]+)/(\w+)", self.path)
        path = self.server.files.get(match.groups()) if match else None
        if path is None:
            with contextlib.suppress(ConnectionError):
                self.send_error(404)
            return
        with open(path, "rb") as file:
            content = file.read()
        with contextlib.suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)


class Debuginfod(Symbols):
    NIGHTLY_FOR_USERS = True  # names are found by a process without rights, whoever records

    def setUp(self):
        super().setUp()
        if not glob.glob("/usr/lib/*/libdebuginfod.so.1") + glob.glob("/usr/lib64/libdebuginfod.so.1"):
            self.skipTest("libdebuginfod is not installed")

    @contextlib.contextmanager
    def serve(self, files, delay_s=0):
        server = Server(files, delay_s)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def environment(self, url, **more):
        return dict(os.environ, DEBUGINFOD_URLS=url, DEBUGINFOD_CACHE_PATH=os.path.abspath("cache"), **more)

    def test_while_recording(self):
        identity = build_id(build_library("libshape.so"))
        split("libshape.so", "served.debug")
        with self.serve({(identity, "debuginfo"): "served.debug"}) as server:
            without = dict(os.environ, DEBUGINFOD_CACHE_PATH=os.path.abspath("cache"))
            self.record_library("libshape.so", env=without)
            self.assert_nameless()
            self.assertEqual([], server.asked)
            self.record_library("libshape.so", path="asked.db", env=self.environment(server.url))
            self.assert_has_lines("asked.db")
            self.assertIn("/buildid/%s/debuginfo" % identity, server.asked)
            n = len(server.asked)
            t.probing("symbolize", "--redo", "asked.db", check=t.OK)
            self.assertEqual(n, len(server.asked))

    def test_afterwards_with_nothing_here(self):
        identity = build_id(build_library("libshape.so"))
        self.record_library("libshape.so", "--no-symbols")
        split("libshape.so", "served.debug")
        os.rename("libshape.so", "served.so")
        said = t.probing("symbolize", check=t.OK).stderr
        self.assertIn("libshape.so", said)
        self.assertIn(identity, said)
        self.assert_nameless()
        files = {(identity, "debuginfo"): "served.debug", (identity, "executable"): "served.so"}
        with self.serve(files) as server:
            t.probing("symbolize", "--debuginfod", server.url, check=t.OK,
                      env=dict(os.environ, DEBUGINFOD_CACHE_PATH=os.path.abspath("cache")))
            self.assertIn("/buildid/%s/executable" % identity, server.asked)
        self.assert_has_lines()

    def test_a_server_that_lies(self):
        """What has another build-id than was asked for is not used."""
        identity = build_id(build_library("libshape.so"))
        split("libshape.so", "right.debug")
        split(build_library("other.so", 1), "served.debug")
        with self.serve({(identity, "debuginfo"): "served.debug"}) as server:
            self.record_library("libshape.so", env=self.environment(server.url))
            self.assertTrue(server.asked)
        self.assert_nameless()

    def test_nobody_listens(self):
        split(build_library("libshape.so"), "elsewhere.debug")
        started = time.monotonic()
        self.record_library("libshape.so", env=self.environment("http://127.0.0.1:9"))
        self.assertLess(time.monotonic() - started, t.HANG_S)
        self.assert_nameless()

    def test_progress_on_a_terminal(self):
        """While a server lets it wait: which file, of how many places. Ctrl-C changes nothing."""
        build_library("libshape.so")
        self.record_library("libshape.so", "--no-symbols")
        os.rename("libshape.so", "elsewhere.so")
        with self.serve({}, delay_s=600) as server:
            environment = {"DEBUGINFOD_CACHE_PATH": os.path.abspath("cache"), "DEBUGINFOD_TIMEOUT": "600"}
            with terminal.Terminal([t.BINARY, "symbolize", "--debuginfod", server.url], columns=120, environment=environment) as shown:
                shown.wait_for(lambda lines: re.search(r"\d+ of \d+ places(, \d+ (s|min|h) left)?  (driver|libshape\.so) *$", "\n".join(lines), re.M), 60)
                shown.press("\x03")
                shown.wait_for("interrupted; probing.db is unchanged", 60)
                self.assertEqual(-signal.SIGINT, shown.wait(60))

    def test_a_dead_server_does_not_hold_the_end_up(self):
        """It takes requests and never answers: after the first one it is left alone."""
        split(build_library("libshape.so"), "elsewhere.debug")
        with self.serve({}, delay_s=300) as server, self.driver("libshape.so") as program:
            started = time.monotonic()
            # So long that the recording has ended before, and much less than PATIENCE_S: also where the machine is busy.
            t.probing("record", "--pid", program.pid, "-d", 1, "-F", 999, "-o", "probing.db", check=t.OK,
                      env=self.environment(server.url, DEBUGINFOD_TIMEOUT="8"))
            t.wait_until(lambda: len(server.held_s) == len(server.asked), what="the end of the requests")
            self.assertLess(sum(server.held_s), PATIENCE_S)
            self.assertEqual(1, len(set(server.asked)), server.asked)  # the client may repeat it
            self.assert_nameless()
            (recorded_s, took_s), = query("probing.db", "SELECT ended - started, %f FROM run" % (time.monotonic() - started))
            self.assertLess(recorded_s, took_s - 1.5, "the time of names is none of the recording's")
            done = t.probing("symbolize", check=t.OK, env=self.environment(server.url, DEBUGINFOD_TIMEOUT="2"))
            self.assertIn("did not answer in time", done.stderr)


def listed_debug_package():
    """(package, a build-id) of apt's lists whose debug file is not here; None: there are no lists of any."""
    package = None
    for path in sorted(glob.glob("/var/lib/apt/lists/*_Packages*")):
        if path.endswith("_Packages"):
            command = ["cat", path]
        elif shutil.which("lz4") and path.endswith(".lz4"):
            command = ["lz4", "-dc", path]
        else:
            continue
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as listing:
            for line in listing.stdout:
                if line.startswith("Package: "):
                    package = line.split()[1]
                for identity in line.split()[1:] if line.startswith("Build-Ids: ") else ():
                    if not os.path.exists(by_build_id_path("/usr/lib/debug", identity)):
                        listing.kill()
                        return package, identity
    return None


class Remedies(Symbols):
    """What record and report say to do about functions without a name that take much time."""
    NIGHTLY_FOR_USERS = True  # names are found by a process without rights, whoever records

    def record_stripped(self, *flags):
        build_library("full.so", 0, *flags)
        run("strip", "full.so", "-o", "libshape.so")
        return self.record_library("libshape.so")

    def assert_said(self, remedy, *texts):
        for text in texts:
            found = re.search(r"^(\d+\.\d) % of self time is in functions without a name:\n"
                              r" +(\d+\.\d) % libshape\.so: " + remedy, text, re.M)
            self.assertTrue(found, text)
            self.assertGreater(float(found.group(1)), 50)
            self.assertGreater(float(found.group(2)), 50)
            self.assertIn("\nthen: probing symbolize probing.db\n", text)

    def test_the_package_with_this_build_id(self):
        package, identity = listed_debug_package() or (None, None)
        if not package:
            self.skipTest("apt has no list of a package with debug files that can be read here")
        said = self.record_stripped("-Wl,--build-id=0x" + identity)
        self.assertEqual(identity, build_id("libshape.so"))
        self.assert_said("apt install %s\n" % re.escape(package), said, t.probing("report", check=t.OK).stdout)

    def test_a_build_that_nobody_lists(self):
        said = self.record_stripped()
        shown = t.probing("report", check=t.OK).stdout
        identity = build_id("libshape.so")
        if os.access("/usr/bin/dnf", os.X_OK):
            self.assert_said("dnf .* install %s\n" % by_build_id_path("/usr/lib/debug", identity), said, shown)
        else:
            self.assert_said(r"no package .* \(build-id %s\); find it.*--debug-dir DIR" % identity, said, shown)
        # Servers may have it, and are asked by symbolize.
        env = dict(os.environ, DEBUGINFOD_URLS="http://127.0.0.1:9")
        self.assert_said("the debuginfod servers may have", t.probing("report", check=t.OK, env=env).stdout)
        # It does what it says: with the file at hand, nothing is without a name, and nothing is said.
        shutil.copy("full.so", by_build_id("debug", identity))
        t.probing("symbolize", "--debug-dir", "debug", "probing.db", check=t.OK)
        self.assertNotIn("without a name", t.probing("report", check=t.OK).stdout)

    def test_silent_where_it_matters_little(self):
        build_library("libshape.so")
        said = self.record_library("libshape.so")
        self.assertNotIn("without a name", said + t.probing("report", check=t.OK).stdout)

    def test_a_running_process_has_no_recording(self):
        build_library("full.so")
        run("strip", "full.so", "-o", "libshape.so")
        with self.driver("libshape.so") as started:
            shown = t.probing("report", started.pid, "-d", "0.5", check=t.OK).stdout
        self.assertRegex(shown, r"% libshape\.so: ")
        self.assertNotIn("probing symbolize", shown)


class Afterwards(Symbols):
    """probing symbolize."""
    NIGHTLY_FOR_USERS = True  # names are found by a process without rights, whoever records

    def test_same_rows_as_the_recorder(self):
        with t.fixture("demo.py") as started:
            t.record_for_cpu(started.pid, 1.5, "probing.db", "-F", 499)
        before = query("probing.db", NAMES)
        self.assertGreater(len(before), 50)
        kernel = query("probing.db", "SELECT address, name FROM frame JOIN function USING (function) "
                                     "WHERE frame.kind = 'kernel' ORDER BY 1")
        tree = query("probing.db", "SELECT * FROM stack")
        forget_names("probing.db")
        said = t.probing("symbolize", check=t.OK).stderr
        self.assertRegex(said, r"named 0 -> [1-9]")
        self.assertEqual(before, query("probing.db", NAMES))
        self.assertEqual(kernel, query("probing.db", "SELECT address, name FROM frame JOIN function USING (function) "
                                                     "WHERE frame.kind = 'kernel' ORDER BY 1"))
        self.assertEqual(tree, query("probing.db", "SELECT * FROM stack"))
        for options in ((), ("--redo",)):
            t.probing("symbolize", *options, check=t.OK)
            self.assertEqual(before, query("probing.db", NAMES))
            self.assertEqual([("ok",)], query("probing.db", "PRAGMA integrity_check"))
            self.assertEqual([(0,)], query("probing.db", "SELECT count(*) FROM frame WHERE frame >= 1 << 32 AND frame "
                                           "NOT IN (SELECT inlined_into FROM frame WHERE inlined_into IS NOT NULL)"))

    def test_on_another_machine(self):
        """Recorded without symbols, carried away: the debug folder has all, the paths lead nowhere."""
        identity = build_id(build_library("libshape.so"))
        with self.driver("libshape.so") as started:
            self.record(started.pid, path="with.db")
            self.record(started.pid, "--no-symbols", path="without.db")
        self.assertEqual([(0,)], query("without.db", "SELECT count(*) FROM frame WHERE function IS NOT NULL"))
        os.mkdir("elsewhere")
        shutil.copy("without.db", "elsewhere/probing.db")
        shutil.copy("libshape.so", by_build_id("debug", identity, ""))
        os.unlink("libshape.so")
        os.rename("driver", by_build_id("debug", build_id("driver"), ""))
        t.probing("symbolize", "elsewhere/probing.db", "--debug-dir", "debug", check=t.OK)
        self.assert_has_lines("elsewhere/probing.db")
        names = "SELECT DISTINCT function.name FROM frame JOIN function USING (function) JOIN module " \
                "ON module.module = function.module WHERE path LIKE '%/libshape.so' OR path LIKE '%/driver'"
        self.assertEqual(set(query("with.db", names)), set(query("elsewhere/probing.db", names)))
        self.assert_nameless("without.db")

    def test_debug_folder_with_the_debug_file_only(self):
        identity = build_id(build_library("libshape.so"))
        self.record_library("libshape.so", "--no-symbols")
        split("libshape.so", by_build_id("debug", identity))
        os.unlink("libshape.so")
        os.mkdir("empty")
        said = t.probing("symbolize", "--debug-dir", "empty", check=t.OK).stderr
        self.assertIn("not on this machine", said)
        t.probing("symbolize", "--debug-dir", "empty", "--debug-dir", "debug", check=t.OK)
        self.assert_has_lines()

    def test_debug_folder_and_sysroot_by_path(self):
        for folder, option in (("mirror", "--debug-dir"), ("image", "--sysroot")):
            with self.subTest(option):
                path = os.path.abspath(build_library("libshape.so"))
                self.record_library("libshape.so", "--no-symbols", path=folder + ".db")
                os.makedirs(folder + os.path.dirname(path))
                os.rename("libshape.so", folder + path)
                t.probing("symbolize", folder + ".db", option, folder, check=t.OK)
                self.assert_has_lines(folder + ".db")

    def test_symbols_first_lines_later(self):
        """What has a name, but no line, is completed; what has both is left as it is."""
        identity = build_id(build_library("full.so"))
        run("strip", "-g", "full.so", "-o", "libshape.so")
        self.record_library("libshape.so")
        self.assert_has_symbols()
        shutil.copy("full.so", by_build_id("debug", identity))
        t.probing("symbolize", "--debug-dir", "debug", check=t.OK)
        self.assert_has_lines()
        before = query("probing.db", NAMES)
        # Names never give way to those that say less: not even with --redo.
        said = t.probing("symbolize", "--redo", check=t.OK).stderr
        self.assertEqual(before, query("probing.db", NAMES), said)

    def test_another_build_is_never_used(self):
        identity = build_id(build_library("libshape.so"))
        self.record_library("libshape.so", "--no-symbols")
        build_library("libshape.so", 1)
        other = build_id("libshape.so")
        self.assertNotEqual(identity, other)
        said = t.probing("symbolize", "--force", check=t.OK).stderr
        self.assertRegex(said, r"libshape\.so, \d+ places?: another build is here \(build-id %s\) and was not used; %s"
                         % (other, identity))
        self.assert_nameless()

    def test_without_build_id_only_by_force(self):
        build_library("libshape.so", 0, "-Wl,--build-id=none")
        self.record_library("libshape.so", "--no-symbols")
        said = t.probing("symbolize", check=t.OK).stderr
        self.assertRegex(said, r"libshape\.so.*no build-id for it; --force")
        self.assert_nameless()
        t.probing("symbolize", "--force", check=t.OK)
        self.assert_has_lines()

    def test_package_that_would_help(self):
        """What dpkg says of the owner, for the libraries that lack symbols here."""
        dpkg = t.need_program("dpkg-query")
        with t.fixture("demo.py", python=t.DEBIAN_PYTHON) as started:
            self.record(started.pid, "--no-symbols", seconds=1.5)
        said = t.probing("symbolize", check=t.OK).stderr
        found = re.findall(r"^  (/\S+), .*install (\S+?)-dbg(?:sym)?,", said, re.M)
        if not found:
            self.skipTest("no library here lacks symbols: " + said)
        for path, package in found:
            names = {path, path[4:] if path.startswith("/usr/") else "/usr" + path}
            owners = "".join(subprocess.run([dpkg, "-S", name], capture_output=True, text=True).stdout
                             for name in names)
            self.assertRegex(owners, r"(?m)^%s(:\w+)?: " % re.escape(package), path)

    def test_kernel_of_another_machine(self):
        with t.fixture("demo.py") as started:
            self.record(started.pid)
        names = "SELECT name FROM frame JOIN function USING (function) WHERE frame.kind = 'kernel' ORDER BY frame"
        before = query("probing.db", names)
        if not before:
            self.skipTest("kernel frames have no names for this user")
        for change in ("host = 'elsewhere'", "kernel = '1.2.3'"):
            with self.subTest(change), contextlib.closing(t.connect("probing.db", "rw")) as db:
                shutil.copy("probing.db", "other.db")
                with contextlib.closing(t.connect("other.db", "rw")) as other:
                    other.executescript(FORGET + "UPDATE run SET %s;" % change)
                said = t.probing("symbolize", "other.db", check=t.OK).stderr
                self.assertIn("kernel functions stay without a name", said)
                self.assertEqual([], query("other.db", names))
                t.probing("symbolize", "--force", "other.db", check=t.OK)
                self.assertEqual(before, query("other.db", names))
                self.assertIsNotNone(db)

    def test_refusals(self):
        self.assertSentence(t.probing("symbolize", "none.db", check=t.NO_INPUT).stderr, "none.db")
        write("text.db", "this is no recording, however long it may be " * 100)
        self.assertSentence(t.probing("symbolize", "text.db", check=t.BAD_DATA).stderr, "text.db")
        with contextlib.closing(sqlite3.connect("other.db")) as db:
            db.executescript("CREATE TABLE a(b)")
        self.assertSentence(t.probing("symbolize", "other.db", check=t.BAD_DATA).stderr, "not a recording")
        t.probing("symbolize", "--debug-dir", "nowhere", check=t.USAGE)

    def test_while_it_is_recorded(self):
        with t.fixture("demo.py") as started, t.recorder("--pid", started.pid, "-d", 30) as recorder:
            t.wait_for_samples("probing.db")
            said = t.probing("symbolize", check=t.NO_OUTPUT).stderr
            self.assertSentence(said, "probing.db is being recorded")
            status, _, err = t.stop_politely(recorder)
            self.assertEqual(t.OK, status, err)
        t.probing("symbolize", check=t.OK)
        self.assertEqual([("ok",)], query("probing.db", "PRAGMA integrity_check"))

    def test_after_a_killed_recorder(self):
        with t.fixture("demo.py") as started:
            with t.recorder("--pid", started.pid, "-d", 30, "--no-symbols") as recorder:
                t.wait_for_samples("probing.db")
                recorder.kill()
                recorder.wait()
        t.probing("symbolize", check=t.OK)
        self.assertFalse(os.path.exists("probing.db-wal"))
        self.assertGreater(query("probing.db", "SELECT count(function) FROM frame WHERE kind = 'native'")[0][0], 3)

    def test_killed_half_way(self):
        """Waits for a server that never answers when it is killed: the file is as it was."""
        if not glob.glob("/usr/lib/*/libdebuginfod.so.1"):
            self.skipTest("libdebuginfod is not installed")
        identity = build_id(build_library("libshape.so"))
        self.record_library("libshape.so", "--no-symbols")
        # The library is the last thing looked for: what stands before it has been named by then.
        os.rename("libshape.so", "hidden.so")
        with contextlib.closing(t.connect("probing.db", "rw")) as db:
            db.executescript("UPDATE frame SET module = 1000 WHERE module = (SELECT module FROM module WHERE build_id = "
                             "'%s'); UPDATE module SET module = 1000 WHERE build_id = '%s';" % (identity, identity))
        before = query("probing.db", NAMES)
        with open("probing.db", "rb") as file:
            bytes_before = file.read()
        for number, expected in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, -signal.SIGINT),
                                 (signal.SIGTERM, -signal.SIGTERM)):
            with self.subTest(number), contextlib.ExitStack() as stack:
                server = Server({}, 600, identity)
                threading.Thread(target=server.serve_forever, daemon=True).start()
                stack.callback(server.server_close)
                stack.callback(server.shutdown)
                environment = dict(os.environ, DEBUGINFOD_URLS=server.url, DEBUGINFOD_TIMEOUT="600",
                                   DEBUGINFOD_CACHE_PATH=os.path.abspath("cache"))
                process = subprocess.Popen([t.BINARY, "symbolize"], env=environment, stderr=subprocess.PIPE, text=True)
                stack.callback(process.stderr.close)
                stack.callback(process.wait)
                stack.callback(process.kill)
                t.wait_until(lambda: any(identity in path for path in server.asked), what="the question for the library")
                process.send_signal(number)
                self.assertEqual(expected, process.wait(timeout=t.HANG_S))
                with open("probing.db", "rb") as file:
                    self.assertEqual(bytes_before, file.read())
                # As its next reader finds it, who also clears away what was left beside it.
                t.probing("sql", "probing.db", "SELECT 1", check=t.OK)
                self.assertEqual(before, query("probing.db", NAMES))
        os.rename("hidden.so", "libshape.so")
        t.probing("symbolize", check=t.OK)
        self.assert_has_lines()

    def test_late_libraries_have_their_build_id(self):
        """Also where no names are looked up, and the library came after the start."""
        with t.fixture("dlopen.py", "--delay", 3) as started, t.recorder("--pid", started.pid, "-F", 999, "--no-symbols") as recorder:
            t.await_recording(recorder)
            t.wait_until(lambda: "native_lib.so" in open("/proc/%d/maps" % started.pid).read(), what="the library")
            t.wait_for_cpu(1, started.pid)
            status, _, said = t.stop_politely(recorder)
            self.assertEqual(t.OK, status, said)
        modules = dict(query("probing.db", "SELECT path, build_id FROM module"))
        late = [path for path in modules if path.endswith("native_lib.so")]
        self.assertEqual(1, len(late), modules)
        self.assertEqual(build_id(late[0]), modules[late[0]])
        self.assertEqual([], [path for path, identity in modules.items() if not identity])
        t.probing("symbolize", check=t.OK)
        self.assertEqual([("native_work",)], query("probing.db", "SELECT DISTINCT name FROM named_frame WHERE module "
                                                   "LIKE '%/native_lib.so' AND name = 'native_work'"))

    def test_no_symbols_opens_no_file(self):
        build_library("libshape.so")
        said = self.record_library("libshape.so", "--no-symbols")
        self.assertIn("probing symbolize", said)
        self.assertEqual([(0,)], query("probing.db", "SELECT count(*) FROM function WHERE kind <> 'python'"))
        self.assertEqual([(0,)], query("probing.db", "SELECT count(*) FROM frame JOIN module USING (module) "
                                                     "WHERE build_id IS NULL"))


if __name__ == "__main__":
    sys.exit(unittest.main())
