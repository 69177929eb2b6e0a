# SPDX-License-Identifier: MIT
"""systemd/: the recorder that is always on, its configuration, its change to a new recorder, and the units' restrictions."""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import probing_test as p
from test_exports import receiver

SAME_FOR_ALL_USERS = True
FOLDER = os.path.join(p.ROOT, "systemd")
UNITS = ("probing.service", "probing@.service", "probing-ship.service")
# It is killed when its test ends, which waits up to two minutes for one step.
LOAD = "import time\nend = time.monotonic() + 600\ndef busy():\n    while time.monotonic() < end:\n        sum(range(1000))\nprint('ready {}', flush=True)\nbusy()\n"

# What the script needs of a recorder; each answer takes longer than the script waits for a part of it.
SLOWLY = """#!/bin/bash
for word; do
	[ "$word" != --help ] || exit 0
	[ "$before" != --control ] || control=$word
	[ "$before" != -o ] || : >"$word"
	before=$word
done
exec 3<>"${control%,*}" 4<>"${control#*,}"
trap 'exit 0' TERM
while read -r command <&3; do
	printf o >&4; sleep 0.25; printf 'k seconds=1.0 ' >&4; sleep 0.25; echo 'samples=5 lost=0 bytes=1024' >&4
	[ "$command" != stop ] || exit 0
done
"""


def unit_text(name):
    with open(os.path.join(FOLDER, name + ".in")) as file:
        return file.read()


def setting(name, key):
    return re.search("^%s=(.*)$" % key, unit_text(name), re.M).group(1)


class ServiceCase(p.Case):
    def setUp(self):
        super().setUp()
        p.need_program("bash")
        self.script, self.ship_script = (self.install(name) for name in ("always-on", "ship-all"))
        for name in "state", "run":
            os.mkdir(name)
        self.python = os.path.abspath("serviced%d" % os.getpid())  # no other test's Python has this name
        shutil.copy(os.path.realpath(p.DEBIAN_PYTHON), self.python)
        self.environment = dict(os.environ, STATE_DIRECTORY=os.path.abspath("state"), RUNTIME_DIRECTORY=os.path.abspath("run"))

    @staticmethod
    def install(name):
        script = os.path.abspath(name)
        with open(os.path.join(FOLDER, name + ".in")) as source, open(script, "w") as to:
            to.write(source.read().replace("@bindir@", os.path.dirname(os.path.abspath(p.BINARY))))
        os.chmod(script, 0o755)
        return script

    def configure(self, *lines):
        with open("probing.conf", "w") as config:
            config.write("\n".join(["processes = " + os.path.basename(self.python), "frequency = 49", "retention = 1h", "metrics = 0"]
                                   + list(lines)) + "\n")

    def say(self):
        with open("said") as said:
            return said.read()

    @contextlib.contextmanager
    def service(self, prefix=(), load={}):
        """It runs, records a busy program, and is ended as systemd does it."""
        with open("said", "w") as said, p.target([self.python, "-c", LOAD], **load):
            process = subprocess.Popen(list(prefix) + [self.script, "probing.conf"], env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=said, stderr=said)
            try:
                p.wait_until(lambda: any(map(p.has_samples, glob.glob("state/*.db"))) or process.poll() is not None, 30, "samples")
                self.assertIsNone(process.poll(), self.say())
                yield process
                process.terminate()
                self.assertEqual(0, process.wait(30), self.say())
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait(30)
        self.assertEqual([], os.listdir("run"))

    def times(self, path):
        """(first sample, last sample, pauses) in nanoseconds."""
        with contextlib.closing(p.connect(path)) as db:
            first, last = db.execute("SELECT min(timestamp), max(timestamp) FROM sample").fetchone()
            return first, last, db.execute("SELECT started, ended FROM pause ORDER BY started").fetchall()


class Service(ServiceCase):
    def test_mistakes_of_the_configuration(self):
        for line, says in (("colour = red", r"probing\.conf:5: unknown key 'colour': the keys are processes, "),
                           ("retention", r"probing\.conf:5: 'retention' is no line such as 'retention = 1d'"),
                           ("rows = perhaps", r"probing\.conf:5: rows is yes or no, not 'perhaps'"),
                           ("frequency = fast", r"probing\.conf: the frequency must be a number .* not fast$"),
                           ("max-size = 3", r"probing\.conf: the size in bytes must be from ")):
            self.configure(line)
            done = subprocess.run([self.script, "--check", "probing.conf"], env=self.environment, stderr=subprocess.PIPE, text=True)
            self.assertEqual(p.USAGE, done.returncode, done.stderr)
            self.assertSentence(done.stderr, says)
        done = subprocess.run([self.script, "nowhere.conf"], env=self.environment, stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.NO_INPUT, done.returncode)
        done = subprocess.run([self.script, "--check", os.path.join(FOLDER, "probing.conf")], stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.OK, done.returncode, done.stderr)

    def test_change_to_a_new_recorder(self):
        """No sample is in both files, and little time in none."""
        self.configure()
        with self.service() as process:
            process.send_signal(signal.SIGHUP)
            p.wait_until(lambda: "handed over" in self.say() or process.poll() is not None, 120, "the new recorder")
            new, = (path for path in glob.glob("state/*.db") if path in self.say().split("handed over")[1].split(" to ")[1])
            p.wait_for_samples(new)
        old, = (path for path in glob.glob("state/*.db") if path != new)
        said = self.say()
        self.assertEqual(2, len(re.findall(r"^probing: \d+ samples in [\d.]+ s, 0 lost, \d+ KiB: /", said, re.M)), said)
        of_old, of_new = self.times(old), self.times(new)
        self.assertLessEqual(of_old[1], of_new[0])
        new_pause, old_pause = of_new[2][0], of_old[2][-1]
        self.assertLess(new_pause[0], old_pause[0])  # the new one is attached, and waits, before the old one pauses
        gap_s = (new_pause[1] - old_pause[0]) / 1e9
        self.assertTrue(0 <= gap_s < 20, gap_s)  # two answers, each of which the script gives 10 s (max_answer_s)
        for path in old, new:
            self.assertEqual((1, "ok"), (p.Recording(path).run["clean"], p.Recording(path).integrity))

    def test_change_from_a_slow_recorder(self):
        """One that does not answer for some seconds is still handed over from: what it has is no reason to begin again."""
        self.configure()
        with self.service() as process:
            recorder, = p.children_of(process.pid)
            os.kill(recorder, signal.SIGSTOP)
            try:
                process.send_signal(signal.SIGHUP)
                time.sleep(4)
            finally:
                os.kill(recorder, signal.SIGCONT)
            p.wait_until(lambda: re.search("handed over|has begun", self.say()), 120, "the new recorder")
        self.assertIn("handed over", self.say())

    def test_answers_that_come_in_parts(self):
        """As they do where the script is not scheduled while it reads. A recorder of the test writes them slowly."""
        self.configure()
        with open("probing", "w") as file:
            file.write(SLOWLY)
        os.chmod("probing", 0o755)
        self.environment["PROBING_BINARY"] = os.path.abspath("probing")
        with open("said", "w") as said:
            process = subprocess.Popen([self.script, "probing.conf"], env=self.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            p.wait_until(lambda: glob.glob("state/*.db"), 60, "the recorder")
            process.send_signal(signal.SIGHUP)
            p.wait_until(lambda: re.search("handed over|goes on", self.say()), 60, "the new recorder")
            self.assertRegex(self.say(), "(?s)probing: 5 samples in 1.0 s, 0 lost, 1 KiB: .*handed over from .* to ")
        finally:
            process.terminate()
            process.wait(60)

    def test_a_change_while_nothing_runs(self):
        """The recorder that waits is replaced by one that waits."""
        self.configure()
        with open("said", "w") as said:
            process = subprocess.Popen([self.script, "probing.conf"], env=self.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            p.wait_until(lambda: "waiting for a process" in self.say(), 60, "the recorder")
            process.send_signal(signal.SIGHUP)
            p.wait_until(lambda: "a new recorder has begun" in self.say(), 60, "the new recorder")
        finally:
            process.terminate()
            process.wait(60)
        self.assertEqual([], os.listdir("run"))

    def test_a_change_that_fails(self):
        """The old recorder goes on."""
        self.configure()
        with self.service() as process:
            self.configure("colour = red")
            process.send_signal(signal.SIGHUP)
            p.wait_until(lambda: "goes on as it was" in self.say(), 120, "the answer")
            self.assertIsNone(process.poll())
            self.configure()
            os.rename("run", "away")  # the new one has no place for its FIFOs
            process.send_signal(signal.SIGHUP)
            p.wait_until(lambda: "the new recorder did not start: the old one goes on" in self.say(), 120, "the answer")
            os.rename("away", "run")
            self.assertIsNone(process.poll())
        self.assertEqual(1, p.Recording(*glob.glob("state/*.db")).run["clean"])

    def test_recorder_that_dies(self):
        self.configure()
        with open("said", "w") as said, p.target([self.python, "-c", LOAD]):
            process = subprocess.Popen([self.script, "probing.conf"], env=self.environment, stdin=subprocess.DEVNULL, stdout=said,
                                       stderr=said)
            p.wait_until(lambda: any(map(p.has_samples, glob.glob("state/*.db"))), 30, "samples")
            recorder, = p.children_of(process.pid)
            os.kill(recorder, signal.SIGKILL)
            self.assertEqual(137, process.wait(20))  # so that systemd starts it again
        self.assertIn("the recorder ended with status 137", self.say())


class Ship(ServiceCase):
    @staticmethod
    def has_processes(group):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        return True

    def test_recordings_that_begin_later_are_sent(self):
        """It waits for the first one, sends it, and then a second one; SIGTERM to all its processes ends it."""
        if "without libcurl" in p.probing("ship", "x", "--to", "http://127.0.0.1/x").stderr:
            self.skipTest("built without libcurl")
        p.need_perf()
        os.mkdir("recordings")
        with receiver() as (address, requests, _), open("said", "w") as said:
            process = subprocess.Popen([self.ship_script], stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                                       env=dict(self.environment, SHIP_TO="otlp+" + address, SHIP_OPTIONS="--job batch --every 1s", SHIP_PAUSE_S="0.2",
                                                SHIP_FOLDER=os.path.abspath("recordings")))
            try:
                for n in 1, 2:
                    p.probing("record", "-q", "-o", "new.db", "--rate", 199, "--", p.DEBIAN_PYTHON, "-c",
                              "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: sum(range(1000))", check=p.OK)
                    os.rename("new.db", "recordings/%d.db" % n)
                    p.wait_until(lambda n=n: len(requests) == n or process.poll() is not None, 60, "the recording's samples")
                    self.assertIsNone(process.poll(), self.say())
            finally:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(30)
                p.wait_until(lambda: not self.has_processes(process.pid), 30, "the end of the ship")  # which writes here until then
        self.assertEqual(2, len(glob.glob("state/*.db")))
        done = subprocess.run([self.ship_script], stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.USAGE, done.returncode)
        self.assertSentence(done.stderr, "SHIP_TO is missing")


def allowed_calls(words):
    """Names of system calls, of words as systemd.exec(5) has them."""
    found = set()
    for word in words:
        if word.startswith("@"):
            listed = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", word], stdout=subprocess.PIPE, check=True, text=True).stdout
            found |= allowed_calls(line.strip() for line in listed.splitlines()[1:] if re.match(r"^ +[@\w]", line))
        else:
            found.add(word)
    return found


class Restrictions(ServiceCase):
    """The recorder works with what the units leave it: the kernel is asked, by their own lines."""

    def under(self, unit, user):
        """A prefix of the command."""
        bounding = ",".join("+" + name[len("CAP_"):].lower() for name in setting(unit, "CapabilityBoundingSet").split())
        words = setting(unit, "SystemCallFilter").split()
        header = "/usr/include/%s-linux-gnu/asm/unistd_64.h" % os.uname().machine
        if not os.path.exists(header):
            self.skipTest("no %s, which has the numbers of system calls" % header)
        with open(header) as file:
            numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", file.read()))
        calls = sorted(int(numbers[name]) for name in allowed_calls(words) if name in numbers)
        self.assertGreater(len(calls), 200)
        private = ["unshare", "--mount", "sh", "-e", "-c",
                   'mount --bind "$1" "$1"; mount -o remount,bind,ro /; shift; exec "$@"', "sh", os.getcwd()]
        # unshare and setpriv need what the unit forbids: the filter begins behind them.
        with open("restricted.py", "w") as file:
            file.write("import os, sys\nsys.path.insert(0, %r)\nimport call_filter\ncall_filter.restrict(%r)\n"
                       "os.execv(sys.argv[1], sys.argv[1:])\n" % (os.getcwd(), calls))
        shutil.copy(os.path.join(p.HERE, "call_filter.py"), ".")
        return private + ["setpriv", "--bounding-set", "-all," + bounding, *user, p.DEBIAN_PYTHON, "-B", "restricted.py"]

    def record_restricted(self, unit, user=(), **more):
        for program in "unshare", "setpriv", "systemd-analyze":
            p.need_program(program)
        p.need_root()
        if p.namespaces_refusal():
            self.skipTest(p.namespaces_refusal())
        self.configure()
        with self.service(self.under(unit, user), **more):
            pass
        path, = glob.glob("state/*.db")
        recording = p.Recording(path)
        self.assertEqual(1, recording.run["clean"])
        self.assertIn("busy", recording.all_names())
        return recording, self.say()

    def test_the_machines(self):
        recording, said = self.record_restricted("probing.service")
        self.assertEqual("wakeup" if p.bpf_refusal() else "bpf", recording.run["stack_source"], said)
        self.assertTrue(any(module["path"].endswith("libc.so.6") for module in recording.modules))

    def test_one_users(self):
        """Another user's processes are left out, and that user's rights and two capabilities are enough."""
        p.need_root()
        user = 65534
        os.chmod(".", 0o755)
        shutil.copy(p.BINARY, "probing")
        self.environment.update(PROBING_BINARY=os.path.abspath("probing"), PROBING_USER=str(user))
        for name in "state", "run":
            os.chown(name, user, user)
        capabilities = ",".join("+" + name[len("CAP_"):].lower() for name in setting("probing@.service", "AmbientCapabilities").split())
        recording, said = self.record_restricted(
            "probing@.service", ["--reuid", str(user), "--regid", str(user), "--clear-groups", "--inh-caps", capabilities,
                                 "--ambient-caps", capabilities], load={"user": user, "group": user, "extra_groups": []})
        self.assertEqual("wakeup", recording.run["stack_source"], said)

    def test_analyzed(self):
        p.need_program("systemd-analyze")
        for name in UNITS:
            with open(name.replace("@.", "@root."), "w") as to:
                to.write(re.sub("@libexecdir@/probing", os.getcwd(), unit_text(name)).replace("@sysconfdir@", "/etc"))
            checked = subprocess.run(["systemd-analyze", "verify", "--man=no", os.path.abspath(to.name)], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)
            self.assertEqual((0, ""), (checked.returncode, checked.stdout))
            exposure = subprocess.run(["systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold=40",
                                       os.path.abspath(to.name)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(0, exposure.returncode, exposure.stdout[-300:])


if __name__ == "__main__":
    unittest.main()
