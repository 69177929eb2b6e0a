# SPDX-License-Identifier: MIT
"""Tasks of asyncio: where they wait and for whom, and whose task a sample was taken in."""
import collections
import contextlib
import json
import re
import sys
import unittest

import by_work
import probing_test as t

SECONDS = 2

# What the interpreter itself does not lead to: the whole chain, innermost first.
BEHIND = {
    "generates": ["sleep", "numbers", "generates"],
    "by_method": ["sleep", "run", "by_method"],
}


def modern_interpreters():
    return [each for each in t.interpreters() if each.version is None or
            tuple(map(int, each.version.split("."))) >= (3, 6)]


def plain(name):
    """'Inner.method' of 3.11 is 'method' before."""
    return name.rsplit(".", 1)[-1]


def take(pid, *arguments):
    return json.loads(t.probing("backtrace", "--json", "--async", pid, *arguments, check=t.OK).stdout)


def by_function(threads):
    """Tasks by the function that they were made of: their outermost frame."""
    found = {}
    for thread in threads:
        names = [plain(task["frames"][-1]["function"]) for task in thread["tasks"]]
        for task, name in zip(thread["tasks"], names):
            found[name] = dict(task, thread=thread["name"], awaiters=[names[i] for i in task["awaited_by"]])
    return found


@t.for_each_interpreter(globals(), modern_interpreters)
class Waiting(unittest.TestCase):
    """Tasks that all wait, against what the interpreter knows of them."""
    ONE_FOR_USERS = True
    light = True

    @classmethod
    def setUpClass(cls):
        t.need_interpreter(cls.interpreter)
        with t.fixture("tasks.py", python=cls.interpreter.path, place=cls.interpreter.place) as started:
            cls.truth = started.truth["tasks"]
            cls.all = take(started.pid)
            cls.from_memory = take(started.pid, "--no-stop")
            cls.text = t.probing("backtrace", "--async", "--no-native", started.pid, check=t.OK).stdout
            cls.without = json.loads(t.probing("backtrace", "--json", started.pid, check=t.OK).stdout)
        cls.tasks = by_function(cls.all["threads"])

    def test_all_tasks_and_no_others(self):
        self.assertEqual(set(self.truth), set(self.tasks))
        self.assertEqual(len(self.truth), sum(len(thread["tasks"]) for thread in self.all["threads"]))
        self.assertNotIn("has_ended", self.tasks)

    def test_names(self):
        self.assertEqual({function: task["name"] for function, task in self.truth.items()},
                         {function: task["name"] for function, task in self.tasks.items()})

    def test_coroutines_and_lines(self):
        for function, truth in self.truth.items():
            with self.subTest(function):
                shown = [[frame["function"], frame["line"]] for frame in self.tasks[function]["frames"]]
                self.assertGreater(len(truth["frames"]), 0)
                self.assertEqual(truth["frames"], shown[-len(truth["frames"]):])
                self.assertEqual(BEHIND.get(function) or [plain(name) for name, _ in truth["frames"]],
                                 [plain(name) for name, _ in shown])

    def test_who_awaits_whom(self):
        self.assertEqual({function: task["awaited_by"] for function, task in self.truth.items()},
                         {function: task["awaiters"] for function, task in self.tasks.items()})

    def test_each_in_its_thread(self):
        elsewhere = self.tasks.pop("elsewhere")
        self.assertEqual("second", elsewhere["thread"])
        self.assertEqual(1, len({task["thread"] for task in self.tasks.values()}))
        self.assertNotEqual("second", self.tasks["nested"]["thread"])
        self.tasks["elsewhere"] = elsewhere

    def test_none_runs(self):
        self.assertEqual({False}, {task["running"] for task in self.tasks.values()})

    def test_from_memory(self):
        self.assertEqual(self.tasks, by_function(self.from_memory["threads"]))

    def test_only_when_asked_for(self):
        self.assertFalse(any("tasks" in thread for thread in self.without["threads"]))

    def test_text(self):
        name = self.truth["gathers"]["name"] or "gathers"
        child = self.truth["first_child"]["name"] or "first_child"
        line = self.truth["first_child"]["frames"][-1][1]
        self.assertRegex(self.text, r'\n  Task "%s", awaited by "%s"\n    sleep  \(tasks.py:\d+\)\n'
                                    r'    first_child  \(tasks.py:%d\)\n' % (re.escape(child), re.escape(name), line))
        self.assertRegex(self.text, r'\n  Task "%s"\n    gathers  \(' % re.escape(name))


@t.for_each_interpreter(globals(), modern_interpreters)
class Working(t.Case):
    """Two tasks that work in turns, and one that waits for both."""

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        with t.scratch(), t.fixture("tasks.py", "--work", python=cls.interpreter.path,
                                    place=cls.interpreter.place) as started:
            cls.recording = by_work.record(started, 1, 499, "async.db", "--async")
            cls.running = take(started.pid)
            cls.folded = t.probing("flamegraph", "--format", "folded", "-o", "-", "async.db", check=t.OK).stdout
            cls.report = t.probing("report", "--total", "async.db", check=t.OK).stdout

    def in_burn(self, recording, color):
        """Names of the tasks and Python functions that lead to it, of each sample in there."""
        for sample in recording.samples:
            path = [frame for frame in recording.path(sample.stack) if frame.kind in ("python", "task")] \
                if sample.stack else []
            if "burn_" + color in [frame.name for frame in path]:
                yield [plain(frame.name) for frame in path], [frame.name for frame in path if frame.kind == "task"]

    @t.statistical("a thread that went on to its other task before it was read has none", 0.0005)
    def test_each_sample_is_in_its_task(self):
        for color in "red", "blue":
            found = list(self.in_burn(self.recording, color))
            with_task = [tasks for _, tasks in found if tasks]
            self.assertGreater(len(found), 0)
            # Where the thread had gone on to the other task before it was looked at, there is none.
            self.assertGreater(len(with_task), len(found) / 4)
            self.assertNearlyAll(with_task.count(["task main", "task " + color]), len(with_task), color)

    @t.statistical("a sample may fall between two tasks", 0.0002)
    def test_waiting_coroutines_stand_between(self):
        paths = [path for path, tasks in self.in_burn(self.recording, "red") if tasks]
        for wanted in ["_run", "task main", "main", "task red", "red", "turns", "burn_red"],:
            right = sum(path[path.index("task main") - 1:path.index("burn_red") + 1] == wanted for path in paths
                        if "task main" in path)
            self.assertNearlyAll(right, len(paths), paths[0])

    def test_flame_graph_groups_by_task(self):
        self.assertRegex(self.folded, r"(?m);task main;main \((\w+/)?tasks.py\);task red;red \((\w+/)?tasks.py\);.*;burn_red ")

    def test_report_has_tasks(self):
        self.assertRegex(self.report, r"(?m)\btask main\b")

    def test_backtrace_shows_the_running_task(self):
        tasks = by_function(self.running["threads"])
        self.assertEqual({"main", "red", "blue"}, set(tasks))
        self.assertFalse(tasks["main"]["running"])
        for color in "red", "blue":
            self.assertEqual(["main"], tasks[color]["awaiters"])
            if tasks[color]["running"]:
                thread, task = ([frame["function"] for frame in frames if frame["kind"] == "python"]
                                for frames in (self.running["threads"][0]["frames"], tasks[color]["frames"]))
                self.assertIn("turns", task)
                self.assertEqual(thread[:len(task)], task)


@t.for_each_interpreter(globals(), modern_interpreters)
class Pending(t.Case):
    """The time of tasks that all wait, by --tasks."""
    light = True

    @classmethod
    def setUpClass(cls):
        t.need_perf()
        t.need_interpreter(cls.interpreter)
        with t.scratch(), t.fixture("tasks.py", python=cls.interpreter.path, place=cls.interpreter.place) as started:
            cls.truth = started.truth["tasks"]
            cls.said = t.probing("record", "--pid", started.pid, "-d", SECONDS, "-o", "tasks.db", "--mode", "wall", "--tasks",
                                 check=t.OK).stderr
            cls.recording = t.Recording("tasks.db")
            with contextlib.closing(t.connect("tasks.db")) as db:
                cls.rows = db.execute("SELECT stack, state, weight / 1e9, verdict FROM sample").fetchall()

    def paths(self):
        """(frames as (kind, name), seconds) of the rows of tasks."""
        for stack, state, seconds, _ in self.rows:
            if state == "await":
                yield [(frame.kind, plain(frame.name)) for frame in self.recording.path(stack)], seconds

    def test_each_task_that_awaits_no_other_has_its_time(self):
        awaiting = {name for task in self.truth.values() for name in task["awaited_by"]}
        seconds = dict.fromkeys(set(self.truth) - awaiting, 0)
        for path, weight in self.paths():
            at = max(i for i, (kind, _) in enumerate(path) if kind == "task")
            seconds[path[at + 1][1]] += weight  # KeyError: a task that awaits another one
        # A recorder that waits for a processor ends later.
        lasted = self.recording.run["ended"] - self.recording.run["started"]
        self.assertGreaterEqual(lasted, SECONDS)
        for function, weight in seconds.items():
            self.assertGreater(weight, lasted / 2, function)
            self.assertLess(weight, lasted * 1.2 + 0.3, function)

    def test_below_the_tasks_that_await_it(self):
        for path, _ in self.paths():
            tasks = [path[i + 1][1] for i, (kind, _) in enumerate(path) if kind == "task"]
            for outer, inner in zip(tasks, tasks[1:]):
                self.assertIn(outer, self.truth[inner]["awaited_by"])

    def test_the_wait_is_the_leaf(self):
        for path, _ in self.paths():
            self.assertEqual(("wait", "[await]"), path[-1])
            self.assertEqual({"task", "python"}, {kind for kind, _ in path[:-1]})

    def test_it_is_in_no_other_sum(self):
        tasks = sum(seconds for _, state, seconds, _ in self.rows if state == "await")
        others = sum(seconds for _, state, seconds, _ in self.rows if state != "await")
        self.assertAlmostEqual(tasks, self.recording.counters["task ns"] / 1e9, places=6)
        said = float(re.search(r"\(([\d.]+) s of threads' time\)", self.said).group(1))
        self.assertAlmostEqual(others, said, delta=0.02)
        self.assertRegex(self.said, r"asyncio tasks waited [\d.]+ s \(state await\)")

    def test_the_verdict_claims_no_instant(self):
        self.assertNotIn("exact", {verdict for _, state, _, verdict in self.rows if state == "await"})


class PendingByLine(t.Case):
    CODE = """
import asyncio
async def fetch():
    await asyncio.sleep(100)
async def main():
    tasks = [asyncio.ensure_future(fetch()) for i in range(3)]
    await asyncio.sleep(0)
    print("ready {}", flush=True)
    await asyncio.gather(*tasks)
asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
"""

    def test_report_shows_the_line_outside_of_asyncio(self):
        t.need_perf()
        with t.scratch(), t.target([t.DEBIAN_PYTHON, "-c", self.CODE]) as started:
            t.probing("record", "--pid", started.pid, "-d", 2, "--mode", "wall", "--tasks", check=t.OK)
            found = t.probing("report", "--by", "wait", "--no-native", check=t.OK).stdout
            self.assertRegex(found, r"(?m) fetch · \[await\] sleep +<string>:4$")
            without = t.probing("report", "--by", "wait", "--where", "state <> 'await'", check=t.OK).stdout
            self.assertNotIn("await", without)

    def test_only_with_a_mode_that_follows_waits(self):
        done = t.probing("record", "--tasks", "--pid", 1, check=t.USAGE)
        self.assertIn("add --mode wall", done.stderr)


class PendingInStep(t.Case):
    """A loop that wakes and sleeps while its tasks are read: all of them wait in one function, in the other the next time."""
    CODE = """
import asyncio
async def even(): await turn[0]
async def odd(): await turn[0]
async def walk():
    while True:
        await even()
        await odd()
def flip():
    turn[0].set_result(None)
    turn[0] = loop.create_future()
    loop.call_later(0.0005, flip)
loop = asyncio.new_event_loop()
turn = [loop.create_future()]
tasks = [loop.create_task(walk()) for i in range(200)]
loop.call_later(0.1, flip)
loop.call_later(0.2, lambda: print("ready {}", flush=True))
loop.run_forever()
"""

    def test_tasks_of_one_instant_are_in_one_function(self):
        t.need_perf()
        with t.scratch(), t.target([t.DEBIAN_PYTHON, "-c", self.CODE]) as started:
            t.probing("record", "--pid", started.pid, "-d", 4, "--mode", "wall", "--tasks", "-o", "steps.db", check=t.OK)
            with contextlib.closing(t.connect("steps.db")) as db:
                read = db.execute("SELECT timestamp, verdict, name FROM sample JOIN stack_path USING (stack) JOIN named_frame USING (frame) "
                                  "WHERE state = 'await' AND name IN ('even', 'odd')").fetchall()
        self.assertEqual({"even", "odd"}, {name for _, _, name in read})
        self.assertIn("approximate", {verdict for _, verdict, _ in read})
        functions = collections.defaultdict(set)
        for timestamp, verdict, name in read:
            if verdict != "approximate":
                functions[timestamp].add(name)
        self.assertEqual([], [names for names in functions.values() if len(names) > 1])


class NotAskedFor(t.Case):
    def test_no_tasks(self):
        recording, _ = by_work.record_fixture("tasks.py", "--work", seconds=0.5)
        self.assertIn("turns", recording.all_names())
        self.assertFalse([name for name in recording.all_names() if name.startswith("task ")])


if __name__ == "__main__":
    sys.exit(unittest.main())
