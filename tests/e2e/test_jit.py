# SPDX-License-Identifier: MIT
"""Code that was generated at run time bears the names that its maker writes down.

Real makers: CPython's trampolines (-X perf, -X perf_jit) and Node.js; and
fixtures/jit.c, which replaces and moves its functions when told to.
"""
import collections
import contextlib
import glob
import os
import signal
import subprocess
import sys
import unittest

import by_work
import probing_test as t
from probing_test import fixture_command, probing, recorder

NAMELESS = "[anonymous code]"
UNNAMED_TRAMPOLINE = "[Python trampoline]"
SCRIPT = """
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
function repeat() { const end = Date.now() + %d; while (Date.now() < end) fibonacci(18); }
console.log("ready {}");
repeat();
"""


def remove_files(pid):
    """What a JIT leaves behind."""
    for path in glob.glob("/tmp/perf-%d.map" % pid) + glob.glob("/tmp/jit-%d.dump" % pid):
        with contextlib.suppress(OSError):
            os.unlink(path)


@contextlib.contextmanager
def target(command):
    with t.target(command) as started:
        try:
            yield started
        finally:
            remove_files(started.pid)


def folded(path, *options):
    return probing("flamegraph", path, "--format", "folded", "-o", "-", *options, check=t.OK).stdout


# ---- CPython's trampolines ----

def has_trampolines(python, option):
    """Whether the interpreter knows the option and can do it on this machine."""
    test = "import os, sys; print(os.getpid(), getattr(sys, 'is_stack_trampoline_active', bool)())"
    done = subprocess.run([python, "-X", option, "-c", test], capture_output=True, text=True, timeout=20)
    words = done.stdout.split()
    if len(words) == 2:
        remove_files(int(words[0]))
    return done.returncode == 0 and words[-1:] == ["True"]


class Trampolines:
    """callbacks.py knows the chains of callers that lead to its leaves."""
    option = None

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        python = cls.interpreter.path
        if not has_trampolines(python, cls.option):
            raise unittest.SkipTest("CPython %s has no -X %s here" % (cls.interpreter.version, cls.option))
        command = fixture_command("callbacks.py", "--seconds", t.LONGEST_TARGET_S, python=python)
        command[1:1] = ["-X", cls.option]
        with t.scratch(), target(command) as started:
            cls.recording, cls.truth = by_work.record(started, 3), started.truth
            cls.shown, cls.everything = folded("probing.db"), folded("probing.db", "--interpreter-frames")

    def between_marks(self, sample):
        """Names of the Python frames between Truth.round and Truth.burn."""
        names = [frame.name for frame in self.recording.python(sample.stack)]
        if "Truth.round" not in names or "Truth.burn" not in names:
            return None
        return tuple(names[names.index("Truth.round") + 1:names.index("Truth.burn")])

    @t.statistical(
        "one verified sample in a thousand may be wrong, and each chain of callers must be met by a sample", 0.0005)
    def test_each_function_once_per_call(self):
        expected = {tuple(name for name, _ in chain) for chain in self.truth["stacks"]}
        seen = collections.Counter(self.between_marks(s) for s in self.recording.samples
                                   if s.stack and s.verdict in t.SURE)
        del seen[None]
        n, right = sum(seen.values()), sum(seen[chain] for chain in expected)
        self.assertGreater(n, 20, "too few samples in leaves")
        self.assertShare(0.99, right / n, "of %s" % seen.most_common(4))
        self.assertEqual(set(), expected - set(seen), "never seen")

    @t.statistical("bounds the share of samples before a name was written", 0.0002)
    def test_trampolines_are_plumbing(self):
        trampolines, nameless = collections.Counter(), 0
        for sample in self.recording.samples:
            for frame in self.recording.path(sample.stack) if sample.stack else ():
                if frame.name.startswith("py::") or frame.name == UNNAMED_TRAMPOLINE:
                    self.assertEqual(("native", "internal"), (frame.kind, frame.role))
                    trampolines[frame.name] += 1
                nameless += frame.name == NAMELESS
        self.assertGreater(sum(trampolines.values()), len(self.recording.samples))
        self.assertLessEqual(nameless, self.max_nameless())
        self.check_names(trampolines)

    def max_nameless(self):
        """One in a hundred, or two where there are few."""
        return max(2, len(self.recording.samples) * 0.01)

    def check_names(self, names):
        """All trampolines stand in the file."""
        self.assertEqual(0, names[UNNAMED_TRAMPOLINE])
        self.assertTrue(any(name.startswith("py::Truth.burn:/") for name in names))

    @t.statistical("bounds the share of samples before a name was written", 0.0002)
    def test_flame_graph(self):
        """What is shown by default has none of them."""
        for text, least, most in (("py::", 0, 0), (UNNAMED_TRAMPOLINE, 0, 0),
                                  (NAMELESS, 0, self.max_nameless())):
            n = self.shown.count(text)
            self.assertTrue(least <= n <= most, "%d times %s" % (n, text))
        self.assertGreater(self.everything.count("py::"), 10)


class WithMap(Trampolines):
    option = "perf"


class WithDump(Trampolines):
    option = "perf_jit"

    def check_names(self, names):
        """CPython writes its dump through a buffer: the last ones may not be there yet."""


for interpreter in t.interpreters():
    if interpreter.version in ("3.12", "3.13"):
        for case in (WithMap, WithDump):
            name = "%s_%s" % (case.__name__, interpreter.label)
            globals()[name] = type(name, (case, t.Case), {"interpreter": interpreter, "__module__": __name__})


# ---- A program of ours ----

class Made(t.Case):
    """Records fixtures/jit.c; the names of what it made, in the order of first sight."""
    NIGHTLY_FOR_USERS = True  # names are found by a process without rights, whoever records

    def record(self, mode, path="jit.db"):
        """Recorded from before to after the replacement."""
        with target(fixture_command("jit", mode, t.LONGEST_TARGET_S)) as started:
            with recorder("--pid", started.pid, "-F", 499, "-o", path) as process:
                self.wait_for(path, 200)
                started.process.send_signal(signal.SIGUSR1)
                self.wait_for(path, 1000)
                status, _, err = t.stop_politely(process)
        self.assertEqual(0, status, err)
        self.recording = t.Recording(path)

    @staticmethod
    def wait_for(path, more):
        """Until the recorder has written so many samples, from now on."""
        wait = {"until": None}

        def enough():
            n = count_samples(path)
            if wait["until"] is None:
                wait["until"] = n + more
            return n >= wait["until"]
        t.wait_until(enough, 40, "%d samples" % more)

    def leaves(self):
        """What run_made called: share of samples by name, with the frames."""
        self.frames, seen = {}, collections.Counter()
        for sample in self.recording.samples:
            path = self.recording.path(sample.stack) if sample.stack else []
            for caller, frame in zip(path, path[1:]):
                if caller.name == "run_made" and frame.kind != "kernel":
                    self.frames.setdefault(frame.name, []).append(frame)
                    seen[frame.name] += 1
        total = sum(seen.values())
        self.assertGreater(total, 150)
        return {name: n / total for name, n in seen.items()}

    def check_replaced(self, first, second, third):
        shares = self.leaves()
        self.assertEqual({first, second, third} | (set(shares) & {NAMELESS}), set(shares))
        self.assertLess(shares.get(NAMELESS, 0), 0.01)
        # A fifth of the time before, the rest after; half of each in the first one.
        self.assertShare(0.3, shares[first], first)
        self.assertShare(0.04, shares[second], second)
        self.assertShare(0.04, shares[third], third)

    def check_order(self, second, third):
        """None of the old function's samples is younger than the new one's."""
        when = collections.defaultdict(list)
        for sample in self.recording.samples:
            for name in self.recording.names(sample.stack) if sample.stack else ():
                when[name].append(sample.timestamp)
        self.assertLess(max(when[second]), min(when[third]))

    @t.statistical("bounds shares of random samples", 0.0002)
    def test_map(self):
        self.record("map")
        self.check_replaced("made_first", "made_second", "made_third")
        self.check_order("made_second", "made_third")

    @t.statistical("bounds shares of random samples", 0.0002)
    def test_dump(self):
        self.record("dump")
        self.check_replaced("made_first", "made_second", "made_third")
        self.check_order("made_second", "made_third")
        frames = collections.Counter((frame.file, frame.line) for frame in self.frames["made_first"])
        self.assertShare(0.9, frames["made.src", 7] / sum(frames.values()), str(frames))

    @t.statistical("bounds shares of random samples", 0.0002)
    def test_written_after_it_has_run(self):
        self.record("late")
        shares = self.leaves()
        self.assertLess(shares.get(NAMELESS, 0), 0.01, shares)
        self.assertShare(0.3, shares["made_first"], "made_first")

    def test_nobody_tells(self):
        self.record("none")
        self.assertEqual({NAMELESS}, set(self.leaves()))

    @t.statistical("bounds shares of random samples", 0.0002)
    def test_python_functions_where_python_cannot_be_read(self):
        self.record("python")
        self.check_replaced("spam", "eggs", "beans")
        frame = self.frames["spam"][0]
        self.assertEqual(("python", None, "/made/spam.py"), (frame.kind, frame.role, frame.file))
        shown = folded("jit.db")
        self.assertIn(";run_made;spam (spam.py) ", shown)
        self.assertNotIn("py::", shown)

    @t.statistical("bounds shares of random samples", 0.0002)
    def test_two_processes_with_the_same_addresses(self):
        """A forked child runs what it was forked with, under the names that its parent wrote."""
        probing("record", "-F", 499, "-o", "fork.db", "--", *fixture_command("jit", "fork", 4), check=t.OK)
        self.recording = t.Recording("fork.db")
        for process in self.recording.processes:
            self.addCleanup(remove_files, process["pid"])
        by_pid = collections.defaultdict(collections.Counter)
        for sample in self.recording.samples:
            for name in self.recording.names(sample.stack) if sample.stack else ():
                by_pid[sample.pid][name] += 1
        self.assertEqual(2, len(by_pid))
        for pid, names in by_pid.items():
            with self.subTest(pid=pid):
                self.assertGreater(names["made_first"], 20)
                self.assertGreater(names["made_second"], 20)
                self.assertLess(names[NAMELESS], names["made_first"] * 0.02)
        # Frames of anonymous code are each process' own.
        stacks = {pid: {s.stack for s in self.recording.samples if s.pid == pid and s.stack
                        and self.recording.names(s.stack)[-1].startswith("made_")} for pid in by_pid}
        self.assertEqual(set(), set.intersection(*stacks.values()))

    @t.statistical("bounds shares of random samples", 0.0002)
    def test_in_another_pid_namespace(self):
        """The process knows itself, and names its file, by another number."""
        t.need_root()
        command = [t.need_program("unshare"), "--fork", "--pid", *fixture_command("jit", "map", 4)]
        self.addCleanup(remove_files, 1)
        probing("record", "-F", 499, "-o", "namespace.db", "--", *command, check=t.OK)
        self.recording = t.Recording("namespace.db")
        shares = self.leaves()
        self.assertShare(0.3, shares["made_first"], str(shares))
        self.assertLess(shares.get(NAMELESS, 0), 0.02)

    def test_ended_before_it_was_named(self):
        """A command that is over at once: its file is still there."""
        probing("record", "-F", 999, "-o", "short.db", "--", *fixture_command("jit", "map", 0.2), check=t.OK)
        self.recording = t.Recording("short.db")
        for process in self.recording.processes:
            self.addCleanup(remove_files, process["pid"])
        names = collections.Counter(name for s in self.recording.samples if s.stack
                                    for name in self.recording.names(s.stack))
        self.assertGreater(names["made_first"], 2)
        self.assertEqual(0, names[NAMELESS])


def count_samples(path):
    try:
        with contextlib.closing(t.connect(path)) as db:
            return db.execute("SELECT count(*) FROM sample").fetchone()[0]
    except t.sqlite3.Error:
        return 0


# ---- Node.js ----

class Node(t.Case):
    @t.statistical("bounds a share of random samples", 0.0002)
    def test_function_names(self):
        node = t.need_program("node")
        with open("script.js", "w") as script:
            script.write(SCRIPT % (t.LONGEST_TARGET_S * 1000))
        with target([node, "--perf-basic-prof", "script.js"]) as started:
            recording = by_work.record(started, 2)
        share = recording.share(lambda s: s.stack and "fibonacci" in recording.names(s.stack))
        self.assertShare(0.5, share, "fibonacci")
        frames = [f for s in recording.samples if s.stack for f in recording.path(s.stack) if f.name == "fibonacci"]
        self.assertTrue(all(f.kind == "native" and f.file.endswith("/script.js") for f in frames))


if __name__ == "__main__":
    sys.exit(unittest.main())
