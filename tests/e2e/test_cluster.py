# SPDX-License-Identifier: MIT
"""Distributed jobs: which rank is odd, what is missing, other machines, documents."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import unittest

import probing_test as t

AWAY = 2  # this rank skips a collective operation


def line_of(text):
    """Where ranks.py has it."""
    with open(os.path.join(t.FIXTURES, "ranks.py"), encoding="utf-8") as source:
        return [line.strip() for line in source].index(text) + 1


@contextlib.contextmanager
def job(n, port, python=t.DEBIAN_PYTHON, world_size=None, first=0):
    """Ranks without torch, which wait for each other as in a collective operation; yields their processes."""
    with contextlib.ExitStack() as stack:
        processes = []
        for rank in range(first, first + n):
            environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size or n),
                               MASTER_PORT=str(port))
            processes.append(stack.enter_context(t.target(
                [python, os.path.join(t.FIXTURES, "ranks.py"), str(AWAY)], env=environment)))
        yield processes


def backtrace(*arguments, **more):
    return t.probing("cluster", "backtrace", *arguments, **more)


class Ranks(t.Case):
    """One job on this machine."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.processes = cls.stack.enter_context(job(4, 4001))
        cls.local = ("--job", "4001")

    def text(self, *arguments):
        return backtrace(*self.local, *arguments, check=t.OK).stdout

    def test_the_odd_one_is_first_with_its_line(self):
        lines = self.text("--no-native").splitlines()
        self.assertEqual("Job 4001: 4 of 4 ranks read", lines[0])
        at = lines.index("2 classes of equal stacks, the odd ones first:")
        self.assertRegex(lines[at + 1], r"^  rank 2  \(pid %d on " % self.processes[AWAY].pid)
        self.assertIn("load_batch  (ranks.py:%d)" % line_of("time.sleep(60)"), lines[at + 2])
        self.assertRegex(lines[at + 3], "^  ranks 0,1,3: 3 alike")
        self.assertIn("all_reduce  (ranks.py:%d)" % line_of("os.read(PIPE[0], 1)"), lines[at + 4])
        self.assertIn("read for descriptor", lines[at + 4])

    def test_the_tree_has_the_ranks_of_each_branch(self):
        tree = self.text().split("outermost frame first:\n\n")[1]
        self.assertRegex(tree, re.compile(r"^<module>  \(ranks.py:\d+\)\nrank 2:\n  train  .*\n  load_batch  .*\n  time.sleep  "
                                          r".*^ranks 0,1,3:\n  train  .*\n  all_reduce  .*\n  posix.read  ", re.M | re.S))

    def test_other_threads_on_request(self):
        self.assertNotIn("background", self.text())
        self.assertRegex(self.text("--threads"), r"ranks 0-3: 4 alike.*\n      background  \(ranks.py:%d\)"
                         % (line_of("def background():") + 1))

    def test_all_frames_show_the_start(self):
        self.assertNotIn("_start", self.text())
        self.assertRegex(self.text("--all-frames"), "outermost frame first:\n\n_start")

    def test_by_launcher_pattern_and_pid(self):
        mine = sorted(p.pid for p in self.processes)
        for arguments in (["--launcher", str(os.getpid()), *self.local], ["ranks.py", *self.local],
                          ["--pid", ",".join(map(str, mine))]):
            with self.subTest(arguments):
                read = json.loads(backtrace("--json", *arguments, check=t.OK).stdout)
                self.assertEqual(mine, sorted(rank["pid"] for rank in read["hosts"][0]["ranks"]))

    def test_some_pids_miss_nobody(self):
        self.assertNotIn("missing", backtrace("--pid", str(self.processes[0].pid), check=t.OK).stdout)

    def test_json_is_shown_again(self):
        with t.scratch():
            backtrace(*self.local, "--json", "-o", "all.json", check=t.OK)
            shown = backtrace("--from", "all.json", check=t.OK).stdout
            self.assertRegex(shown, r"rank 2  \(pid %d on " % self.processes[AWAY].pid)
            with open("all.json", "a", encoding="utf-8") as file:
                file.write("{")
            self.assertIn("no document", backtrace("--from", "all.json", check=t.BAD_DATA).stderr)

    def test_pictures_name_ranks(self):
        for form in "svg", "html":
            with self.subTest(form):
                done = backtrace(*self.local, "--format", form)
                if "this build of probing cannot write" in done.stderr:
                    continue
                self.assertEqual(t.OK, done.returncode, done.stderr)
                self.assertIn("[rank 2]", done.stdout)
                self.assertIn("[ranks 0,1,3]", done.stdout)

    def test_a_stopped_rank_is_odd_and_stays_stopped(self):
        pid = self.processes[1].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            t.wait_until(lambda: t.state_of(pid) == "T")
            text = self.text()
            self.assertEqual("T", t.state_of(pid))
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertRegex(text, r"  rank 1  \(pid %d .*\n.*; stopped by a signal" % pid)

    def test_ranks_of_others_are_named(self):
        """A process that ends meanwhile, and one that never was."""
        text = backtrace("--pid", "%d,%d" % (self.processes[0].pid, 4194303), check=t.OK).stdout
        self.assertRegex(text, r"pid 4194303 \(host .*\): gone: there is no process 4194303")


class Missing(t.Case):
    def test_a_killed_rank_is_missing(self):
        with job(3, 4002, world_size=4, first=1) as processes:
            os.kill(processes[1].pid, signal.SIGKILL)
            processes[1].process.wait()
            text = backtrace("--job", "4002", check=t.OK).stdout
        self.assertIn("Job 4002: 2 of 4 ranks read\nranks 0,2: missing: the hosts that answered have no process of them\n",
                      text)

    def test_no_ranks(self):
        self.assertIn("no rank of the job", backtrace("--job", "no such job", check=t.NO_INPUT).stderr)
        self.assertIn("no Python process here has", backtrace("no such command line", check=t.NO_INPUT).stderr)

    def test_usage(self):
        for line in (["--hosts", "-oProxyCommand=x"], ["--hosts", "a[x]"], ["--hosts", "a", "--pid", "1"],
                     ["--format", "pdf"], ["a", "b"], ["--from", "x", "--hosts", "a"], ["--ssh", " "]):
            with self.subTest(line):
                backtrace(*line, check=t.USAGE)
        t.probing("cluster", check=t.USAGE)
        self.assertIn("no verb dance of cluster", t.probing("cluster", "dance", check=t.USAGE).stderr)


# As ssh: the host, then words that a shell reads. Each host sees the ranks of its own job.
SSH = """#!/bin/sh
host=$1
shift
echo "$host: $*" >>"$(dirname "$0")/log"
case $host in
silent) exec sleep 60 ;;
refused) echo 'Permission denied (publickey).' >&2; exit 255 ;;
old) echo '{"probing_cluster":99,"hosts":[]}' ;;
noise) echo 'Welcome to noise' ;;
*) sh -c "$* --job $host" ;;
esac
"""


class Hosts(t.Case):
    """Two machines, of which each has half of a job; three that fail."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.stack.enter_context(job(2, 4003, world_size=5))
        cls.stack.enter_context(job(2, 4004, world_size=5, first=2))

    def ask(self, hosts, *arguments, **more):
        with t.scratch():
            with open("ssh", "w", encoding="utf-8") as file:
                file.write(SSH)
            os.chmod("ssh", 0o755)
            done = backtrace("--hosts", hosts, "--ssh", os.path.abspath("ssh"), "--remote-probing", t.BINARY, *arguments,
                             **more)
            with open("log", encoding="utf-8") as file:
                return done, file.read()

    def test_each_failure_is_a_line(self):
        done, _ = self.ask("4003,4004,silent,refused,old,noise", "--host-timeout", "4s", check=t.OK)
        for line in ("host refused: Permission denied (publickey).", "host silent: no answer in time",
                     "host old: its probing is of another version, with another format: install this one's there",
                     "host noise: its answer is no document of probing cluster"):
            self.assertIn(line + "\n", done.stdout)
        self.assertIn("Job 4003: 2 of 5 ranks read\nranks 2-4: missing", done.stdout)
        self.assertRegex(done.stdout, r"rank 2  \(pid \d+ on 4004\)\n      load_batch")

    def test_brackets_and_quotes(self):
        done, log = self.ask("400[3-4]", "--no-native", "it's \"$(x)\" ranks", check=None)
        self.assertEqual(["4003", "4004"], sorted(line.split(":")[0] for line in log.splitlines()))
        self.assertIn("""-- 'it'\\''s "$(x)" ranks'""", log)
        self.assertEqual(t.FAILED, done.returncode)

    def test_a_file_of_hosts(self):
        with t.scratch():
            with open("hosts", "w", encoding="utf-8") as file:
                file.write("# ours\n4003 slots=8\n\n  400[4-4]  # last\n")
            path = os.path.abspath("hosts")
            done = backtrace("--hosts-file", path, "--ssh", "sh -c true", check=t.FAILED)
        self.assertIn("host 4003: its answer", done.stdout)
        self.assertIn("host 4004: its answer", done.stdout)


class Torch(t.Case):
    """A real process group of gloo: one rank skips a collective operation."""

    @classmethod
    def setUpClass(cls):
        if subprocess.run([t.DEBIAN_PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode != 0:
            raise unittest.SkipTest("torch is not installed for " + t.DEBIAN_PYTHON)

    def test_the_rank_that_skips_a_collective_operation(self):
        environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        with t.scratch():
            command = [t.DEBIAN_PYTHON, "-m", "torch.distributed.run", "-r", "2", "-t", "2", "--log_dir", os.getcwd(),
                       "--nproc_per_node", "4", "--master_addr", "127.0.0.1", "--master_port", "29531",
                       os.path.join(t.FIXTURES, "ranks.py"), "--torch", str(AWAY)]
            launcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
            try:
                for _ in range(4):
                    self.assertIn("ready", launcher.stdout.readline())
                wanted = ("\nranks 0,1,3 are in all_reduce, called by all_reduce  (ranks.py:%d)\n"
                          "  rank 2: not there, but in load_batch  (ranks.py:%d), in time.sleep"
                          % (line_of("torch.distributed.all_reduce(torch.zeros(4))"), line_of("time.sleep(60)")))
                t.wait_until(lambda: wanted in backtrace("--launcher", str(launcher.pid)).stdout, 20, "the deadlock")
                found = backtrace("--launcher", str(launcher.pid), check=t.OK).stdout
                self.assertIn("Job none:29531: 4 of 4 ranks read\n", found)
                self.assertRegex(found, r"\nranks 0,1,3:\n(  .*\n)*  all_reduce  \(distributed_c10d.py:\d+\)\n(  .*\n)*"
                                        r"  .*\[libtorch")
            finally:
                launcher.terminate()
                launcher.wait(20)
                launcher.stdout.close()


if __name__ == "__main__":
    sys.exit(unittest.main())
