# SPDX-License-Identifier: MIT
"""probing cluster on three machines with a training of six ranks by torchrun and gloo, and what goes wrong in such jobs.

Namespaces are the machines (machines.py). A deadlock, a straggler, a slow link, a cut network and a dead machine are made, and must be named.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

import machines
import probing_test as t
from test_cluster_https import make_certificates
from test_metrics import limited_group, throttling

PORT = 7070
DELAY_MS = 60  # of a slow link, in each direction
TRAINING = os.path.join(t.FIXTURES, "ranks_steps.py")
N_RANKS = 6
GIVE_UP = ("--host-timeout", "14s")  # a host; a rank of a busy machine keeps its ten seconds


@contextlib.contextmanager
def slowed(pid):
    """A processor that is hardly there: the process is stopped five sixths of the time."""
    ended = threading.Event()

    def alternate():
        while not ended.is_set():
            os.kill(pid, signal.SIGSTOP)
            ended.wait(0.25)
            os.kill(pid, signal.SIGCONT)
            ended.wait(0.05)
    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        os.kill(pid, signal.SIGCONT)


class Training(t.Case):
    light = True

    @classmethod
    def setUpClass(cls):
        if not t.has_modules(t.DEBIAN_PYTHON, "torch"):
            raise unittest.SkipTest("torch is not installed for " + t.DEBIAN_PYTHON)
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.machines = cls.stack.enter_context(machines.Machines(3))
        cls.folder = cls.machines.folder
        make_certificates(cls.folder, [machine.address for machine in cls.machines.all])
        for machine in cls.machines.all:
            cls.start_server(machine)
            cls.start_ranks(machine)
        cls.urls = ["https://%s:%d" % (machine.address, PORT) for machine in cls.machines.all]
        t.wait_until(lambda: all(os.path.exists(cls.path("ready%d" % rank)) for rank in range(N_RANKS)), 300, "six ranks")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def start(cls, machine, *command, **more):
        process = machine.start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
        cls.stack.callback(process.wait, 20)  # they end with their machine
        cls.stack.callback(process.kill)

    @classmethod
    def start_server(cls, machine):
        cls.start(machine, t.BINARY, "serve", "--listen", "%s:%d" % (machine.address, PORT), "--tls-certificate", cls.path("node.pem"),
                  "--tls-key", cls.path("node.key"), "--token-file", cls.path("token"), "--ca-file", cls.path("ca.pem"))

    @classmethod
    def start_ranks(cls, machine):
        environment = dict(os.environ, GLOO_SOCKET_IFNAME="eth0", OMP_NUM_THREADS="1")
        cls.start(machine, t.DEBIAN_PYTHON, "-m", "torch.distributed.run", "-r", "2", "-t", "2", "--log_dir", cls.path(machine.name),
                  "--nnodes", "3", "--node_rank", cls.machines.all.index(machine), "--nproc_per_node", "2", "--master_addr",
                  cls.machines.all[0].address, "--master_port", "29533", TRAINING, cls.folder, env=environment)

    # ---- Questions ----

    def by_ssh(self, verb, *arguments):
        return t.probing("cluster", verb, "--hosts", "node[0-2]", "--ssh", self.machines.ssh, "--remote-probing", t.BINARY, *arguments)

    def by_https(self, verb, *arguments, urls=None):
        """From the switch, where nothing but the network leads to the machines."""
        done = subprocess.run(self.machines.at_switch(t.BINARY, "cluster", verb, "--hosts", ",".join(urls or self.urls), "--token-file",
                                                      self.path("token"), "--ca-file", self.path("ca.pem"), *arguments),
                              capture_output=True, text=True)
        if "built without" in done.stdout + done.stderr:
            raise unittest.SkipTest("built without libmicrohttpd or libcurl")
        return done

    def pids_here(self):
        """As this test sees them: by their start in the mounted /proc of the tests."""
        found = {}
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError, ValueError):
                with open("/proc/%d/environ" % int(name), "rb") as file:
                    variables = file.read().split(b"\0")
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    if TRAINING.encode() not in file.read().split(b"\0"):
                        continue
                for variable in variables:
                    if variable.startswith(b"RANK="):
                        found[int(variable[5:])] = int(name)
        return found

    @contextlib.contextmanager
    def away(self, rank):
        with open(self.path("skip"), "w", encoding="utf-8") as file:
            file.write(str(rank))
        try:
            yield
        finally:
            os.unlink(self.path("skip"))

    # ---- Healthy ----

    def test_a_ranks_by_both_ways(self):
        wanted = [("node%d" % (rank // 2), rank, rank % 2, N_RANKS, "none:29533", "running") for rank in range(N_RANKS)]
        for ask in self.by_ssh, self.by_https:
            nodes = json.loads(ask("nodes", "-f", "json").stdout)
            self.assertEqual(wanted, [tuple(node[key] for key in ("host", "rank", "local_rank", "world_size", "job", "status"))
                                      for node in nodes])

    def test_b_one_recording(self):
        recording = self.path("all.db")
        done = self.by_ssh("record", "--", "--mode", "wall", "-d", "1", "--no-native", "-o", recording)
        self.assertEqual(t.OK, done.returncode, done.stderr)
        rows = json.loads(t.probing("sql", recording, "-f", "json", "SELECT DISTINCT host, rank, local_rank FROM sample WHERE rank "
                                    "NOT NULL ORDER BY rank", check=t.OK).stdout)
        self.assertEqual([("node%d" % (rank // 2), rank, rank % 2) for rank in range(N_RANKS)], [tuple(row.values()) for row in rows])
        report = json.loads(t.probing("report", recording, "--by", "rank", "--where", "host = 'node1'", "--json", check=t.OK).stdout)
        self.assertEqual(["2", "3"], sorted(row["rank"] for row in report["rows"]))

    # ---- What goes wrong ----

    def test_c_deadlock(self):
        with self.away(3):
            # More than half of them are enough for the sentence: the others may still be on their way there.
            t.wait_until(lambda: "\nranks 0-2,4,5 are in all_reduce, called by add_up  (ranks_steps.py:"
                         in self.by_https("backtrace", "--no-native").stdout, 60, "five ranks that wait")
            by_ssh, by_https = self.by_ssh("backtrace").stdout, self.by_https("backtrace", "--no-native").stdout
        self.assertIn("  rank 3: not there, but in load_batch  (ranks_steps.py:", by_ssh)
        self.assertIn("\nranks 0-2,4,5 are in all_reduce, called by add_up  (ranks_steps.py:", by_https)
        self.assertRegex(by_https, r"  rank 3  \(pid \d+ on https://10\.77\.0\.2:7070\)\n      load_batch")

    def test_d_straggler(self):
        pid = self.pids_here()[4]
        with slowed(pid):
            time.sleep(0.5)
            text = self.by_https("report", "-d", "5", "--samples", "30").stdout
        self.assertRegex(text, r"\nrank 4 \(pid \d+ on https://10\.77\.0\.3:7070\) differs:\n", text)
        odd = text.split("\nrank 4 (pid ")[1].split("\n\n")[0]
        self.assertRegex(odd, r"samples in compute  \(ranks_steps.py\)")

    def test_d_straggler_by_quota(self):
        """So little that it is used up also where the machine is busy."""
        pid = self.pids_here()[4]
        with limited_group("probing_test_%d" % os.getpid(), quota_us=2000, memory=None) as joins:
            if not joins:
                self.skipTest("no cgroup with a quota may be made here")
            with contextlib.ExitStack() as stack:
                for file in joins:
                    self.join(file, pid)
                    stack.callback(self.join, os.path.join(os.path.dirname(os.path.dirname(file)), "cgroup.procs"), pid)
                t.wait_until(lambda: throttling(joins)[1] > 0, 60, "the group to be throttled")
                text = self.by_https("report", "-d", "3").stdout
        odd = text.split("\nrank 4 (pid ")[1].split("\n\n")[0]
        self.assertRegex(odd, r"\n  throttled by its control group: \d+\.\d\d %; the median of all is 0\.00 ")
        self.assertIn("\n  likely cause: the quota of its control group, 0.02 CPUs (cpu.max), is used up", odd)

    @staticmethod
    def join(file, pid):
        with open(file, "w", encoding="utf-8") as out:
            out.write(str(pid))

    @contextlib.contextmanager
    def slow_link(self, machine, url):
        """The URL of a machine whose link is slow: by the kernel's netem, or by a program where the kernel has none."""
        delay = subprocess.run(machine.enter(t.need_program("tc"), "qdisc", "add", "dev", "eth0", "root", "netem", "delay", "%dms" % DELAY_MS),
                               capture_output=True, text=True)
        if delay.returncode == 0:
            try:
                yield url
            finally:
                machine.run("tc", "qdisc", "del", "dev", "eth0", "root")
            return
        relay = machine.start(t.DEBIAN_PYTHON, os.path.join(t.FIXTURES, "slow_relay.py"), str(DELAY_MS), machine.address, str(PORT + 1),
                              str(PORT), stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual("ready\n", relay.stdout.readline())
            yield "https://%s:%d" % (machine.address, PORT + 1)
        finally:
            relay.kill()  # what it runs in the machine ends with the machine
            relay.wait(20)
            relay.stdout.close()

    def test_d_slow_link(self):
        with self.slow_link(self.machines.all[1], self.urls[1]) as slow:
            done = self.by_https("record", "--", "-d", "0.5", "--no-native", "-o", self.path("slow.db"),
                                 urls=[self.urls[0], slow, self.urls[2]])
        self.assertEqual(t.OK, done.returncode, done.stderr)
        self.assertEqual([slow], re.findall(r"probing: host (\S+): its link is slow: the shortest round trip takes \d+\.\d ms", done.stderr))

    def test_e_cut_network(self):
        """The machine runs, and nobody reaches it: its ranks are missing, and the others wait for them."""
        machine = self.machines.all[1]
        port = "to-" + machine.name
        subprocess.run(self.machines.at_switch("ip", "link", "set", port, "down"), check=True)
        try:
            t.wait_until(lambda: "ranks 2,3: missing" in self.by_https("backtrace", "--no-native", *GIVE_UP).stdout, 60,
                         "the machine that nobody reaches")
            text = self.by_https("backtrace", "--no-native", *GIVE_UP, "--fan-out", "1").stdout
        finally:
            subprocess.run(self.machines.at_switch("ip", "link", "set", port, "up"), check=True)
        self.assertRegex(text, r"host https://10\.77\.0\.2:7070: .*(connect|time)")
        self.assertIn("Job none:29533: 4 of 6 ranks read\nranks 2,3: missing: the hosts that answered have no process of them\n", text)
        self.assertIn("all_reduce", text)

    def test_f_dead_machine(self):
        self.machines.all[2].kill()
        for ask, name in (self.by_ssh, "node2"), (self.by_https, "https://10.77.0.3:7070"):
            text = ask("nodes", "-f", "json", *GIVE_UP).stdout
            nodes = json.loads(text)
            self.assertEqual([4, 5], [node["rank"] for node in nodes if node["status"] == "missing"], text)
            self.assertEqual([name], [node["addr"] for node in nodes if node["status"] == "unreachable"], text)


if __name__ == "__main__":
    sys.exit(unittest.main())
