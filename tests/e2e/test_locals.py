# SPDX-License-Identifier: MIT
"""probing backtrace --locals: variables as they are, and what Python calls its threads."""
import json
import subprocess
import time

import probing_test as t

TRIES = 50


def backtrace(*arguments):
    return json.loads(t.probing("backtrace", "--json", "--no-native", *arguments, check=t.OK).stdout)


def is_cut(found):
    return any(frame["locals_cut"] for thread in found["threads"] for frame in thread["frames"])


def until_whole(take, is_whole):
    """What has all variables read in time, which a busy machine may not allow at once."""
    for _ in range(TRIES):
        found = take()
        if is_whole(found):
            return found
        time.sleep(0.1)
    raise AssertionError("the variables are cut in %d tries: %s" % (TRIES, found))


def whole_backtrace(*arguments):
    return until_whole(lambda: backtrace("--locals", *arguments), lambda found: not is_cut(found))


def whole_text(pid):
    return until_whole(lambda: t.probing("backtrace", pid, "--locals", check=t.OK).stdout,
                       lambda text: "\n      ...\n" not in text)


def variables(thread, function):
    """Of all frames of a function, by name: value and type."""
    return {each["name"]: [each["value"], each["type"]] for frame in thread["frames"]
            if frame["function"].split(".")[-1] == function for each in frame["locals"]}


def thread_named(found, name):
    threads = [thread for thread in found["threads"] if thread["python_name"] == name]
    if len(threads) != 1:
        raise AssertionError([thread["python_name"] for thread in found["threads"]])
    return threads[0]


@t.for_each_interpreter(globals())
class Holding(t.Case):
    ONE_FOR_USERS = True

    @classmethod
    def setUpClass(cls):
        t.need_interpreter(cls.interpreter)
        with t.fixture("holding.py", python=cls.interpreter.path, place=cls.interpreter.place) as started:
            cls.truth = started.truth
            cls.found = whole_backtrace(started.pid)
            cls.running = whole_backtrace(started.pid, "--no-stop")
            cls.without = backtrace(started.pid)
            cls.text = whole_text(started.pid)

    def setUp(self):
        """Nothing is sampled here: the right to perf_event_open does not matter."""

    def test_values(self):
        for found in self.found, self.running:
            holder = thread_named(found, self.truth["thread"])
            for function, expected in self.truth["locals"].items():
                seen = variables(holder, function)
                for name, value in expected.items():
                    with self.subTest(function + "." + name):
                        self.assertEqual(value, seen.get(name))

    def test_what_has_no_value_is_not_there(self):
        for name in self.truth["missing"]:
            self.assertNotIn(name, variables(thread_named(self.found, self.truth["thread"]), "hold"))

    def test_arguments(self):
        seen = variables(thread_named(self.found, self.truth["thread"]), "hold")
        self.assertEqual(["(7,)", "tuple"], seen["rest"])
        self.assertEqual(["{'extra': 8}", "dict"], seen["named"])

    def test_namespaces(self):
        main = thread_named(self.found, "MainThread")
        body = variables(main, "Body")
        self.assertEqual(["5", "int"], body["attribute"])
        self.assertEqual(["[2, 4]", "list"], body["twice"])
        self.assertNotIn("__module__", body)
        module = variables(main, "<module>")
        self.assertEqual(["<function park>", "function"], module["other_name"])
        self.assertNotIn("park", module)
        self.assertNotIn("Point", module)
        self.assertNotIn("sys", module)

    def test_thread_names(self):
        for found in self.found, self.running, self.without:
            self.assertEqual(["MainThread", self.truth["thread"]], [thread["python_name"] for thread in found["threads"]])
        heads = [line for line in self.text.splitlines() if line.startswith("Thread ")]
        self.assertIn(', in Python "MainThread"', heads[0])
        # From 3.14 Python tells the kernel, and a name is not said twice.
        if thread_named(self.found, self.truth["thread"])["name"] == self.truth["thread"][:15]:
            self.assertNotIn("in Python", heads[1])
        else:
            self.assertIn(', in Python "%s"' % self.truth["thread"], heads[1])

    def test_only_on_demand(self):
        for thread in self.without["threads"]:
            for frame in thread["frames"]:
                self.assertNotIn("locals", frame)

    def test_text(self):
        self.assertIn("\n      small = 42\n", self.text)
        self.assertIn("\n      attribute = 5\n", self.text)
        self.assertNotIn("\x1b", self.text)
        self.assertNotIn("\u202e", self.text)


class Arrays(t.Case):
    def setUp(self):
        self.interpreter = t.interpreters()[0]
        t.need_interpreter(self.interpreter)

    def test_arrays_and_tensors(self):
        done = subprocess.run([self.interpreter.path, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            self.skipTest("%s has no numpy" % self.interpreter.path)
        with t.fixture("holding.py", "--arrays", python=self.interpreter.path) as started:
            seen = variables(thread_named(whole_backtrace(started.pid), "arrays"), "hold")
        for name, value in started.truth["arrays"].items():
            with self.subTest(name):
                self.assertEqual(value, seen[name][0])


class Deep(t.Case):
    def setUp(self):
        t.need_interpreter(t.interpreters()[0])

    def test_reading_ends_in_time(self):
        with t.fixture("deep.py", "--depth", "20000") as started:
            thread = max(backtrace("--locals", started.pid)["threads"], key=lambda thread: len(thread["frames"]))
        frames = [frame for frame in thread["frames"] if frame["function"] == started.truth["function"]]
        self.assertEqual(started.truth["frames"], len(frames))
        cut = [frame["locals_cut"] for frame in frames]
        self.assertTrue(cut[-1])
        # From where there was no time left on, there are none.
        read = frames[:cut.index(True)]
        for frame in read:
            self.assertEqual({"depth", "stop"}, {each["name"] for each in frame["locals"]})
        for frame in frames[len(read) + 1:]:
            self.assertEqual([], frame["locals"])
