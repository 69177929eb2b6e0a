# SPDX-License-Identifier: MIT
"""Programs in PID and mount namespaces of their own, recorded from outside.

In a namespace of its own a program has other process and thread ids than we see,
its files are found through /proc/PID/root alone, and its libc is another one.
"""
import os
import re
import subprocess
import sys
import unittest

import probing_test as t
import test_native


def build_id(path):
    notes = subprocess.run([t.need_program("readelf"), "-n", path], capture_output=True, text=True, check=True)
    found = re.search(r"Build ID: ([0-9a-f]+)", notes.stdout)
    return found.group(1) if found else None


def namespace_ids(pid):
    """The ids of a process, ours first, its own last (proc_pid_status(5), NSpid)."""
    with open("/proc/%d/status" % pid) as status:
        return [int(word) for word in re.search(r"^NSpid:(.*)$", status.read(), re.M).group(1).split()]


@t.for_each_interpreter(globals(), t.container_interpreters)
class Containers(t.Case):
    """What holds whether or not the interpreter's frames can be read."""
    light = True

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        with t.scratch(), t.fixture("demo.py", python=cls.interpreter.path, place=cls.interpreter.place) as started:
            cls.recording = t.record_cpu(started, 3)
            cls.pid, cls.ids = started.pid, namespace_ids(started.pid)
            cls.tids = {int(tid) for tid in os.listdir("/proc/%d/task" % started.pid)}
            cls.build_ids = {path: build_id("/proc/%d/root%s" % (started.pid, path))
                             for path in cls.modules() if path.startswith("/")}

    @classmethod
    def modules(cls):
        """path -> build-id of all recorded files."""
        return {module["path"]: module["build_id"] for module in cls.recording.modules}

    def of_thread(self, name):
        tids = {thread["tid"] for thread in self.recording.threads if thread["name"] == name}
        return [sample for sample in self.recording.samples if sample.tid in tids and sample.stack]

    def test_ids_are_ours(self):
        self.assertEqual([self.pid, 1], self.ids)
        self.assertEqual(self.pid, self.recording.run["pid"])
        self.assertEqual([self.pid], [process["pid"] for process in self.recording.processes])
        self.assertEqual(self.tids, {thread["tid"] for thread in self.recording.threads})
        self.assertEqual(set(), {sample.tid for sample in self.recording.samples} - self.tids)

    def test_files_are_those_of_its_root(self):
        """By content: a file at the same path outside is another one."""
        self.assertIn(os.path.realpath(self.interpreter.path), self.build_ids)
        self.assertGreater(len(self.build_ids), 4)
        self.assertEqual(self.build_ids, {path: self.modules()[path] for path in self.build_ids})

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_stacks_are_whole(self):
        ends = self.recording.ends()
        self.assertGreater(len(self.recording.samples), 100, "too few samples to judge")
        self.assertShare(0.99, (ends["complete"] + ends["completed"]) / sum(ends.values()), str(ends))

    @t.statistical("some samples fall on a thread's first and last steps, before and after its stack is whole", 0.0002)
    def test_main_thread_is_named_from_the_first_function_on(self):
        samples = [sample for sample in self.recording.samples if sample.tid == self.pid and sample.stack]
        self.assertGreater(len(samples), 50)
        begun = sum(t.subsequence(self.recording.names(sample.stack), ["_start", "Py_BytesMain"])
                    for sample in samples)
        self.assertShare(0.99, begun / len(samples), str(self.recording.names(samples[0].stack)))

    @t.statistical("a library's function must be met by so many samples", 0.0002)
    def test_libraries_by_thread(self):
        for thread, function, n_least in (("archive", "sqlite3_step", 20), (self.main_name(), "compress", 5)):
            with self.subTest(thread):
                found = [sample for sample in self.of_thread(thread)
                         if any(t.same_name(name, function) for name in self.recording.names(sample.stack))]
                self.assertGreater(len(found), n_least)

    def main_name(self):
        return next(thread["name"] for thread in self.recording.threads if thread["tid"] == self.pid)


# A program of this machine on another one's libc: its thread start, its signal return, its qsort.
class InSid:
    place = t.sid()


class ThreadsInSid(InSid, test_native.Threads):
    pass


class SignalFramesInSid(InSid, test_native.SignalFrames):
    pass


class CallbacksInSid(InSid, test_native.Callbacks):
    pass


if __name__ == "__main__":
    sys.exit(unittest.main())
