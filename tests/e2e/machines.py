# SPDX-License-Identifier: MIT
"""Machines with names, networks and PIDs of their own, by namespaces, at a switch whose namespace is that of the user."""
import contextlib
import os
import signal
import subprocess
import tempfile
import unittest

import probing_test as t

SSH = """#!/bin/sh
host=$1
shift
exec nsenter -t "$(cat "$(dirname "$0")/$host.pid")" -n -p -m -u -- "$@"
"""


class Machine:
    def __init__(self, name, address, process, pid):
        self.name, self.address, self.process, self.pid = name, address, process, pid

    def enter(self, *command):
        return ["nsenter", "-t", str(self.pid), "-n", "-p", "-m", "-u", "--", *map(str, command)]

    def run(self, *command):
        return subprocess.run(self.enter(*command), check=True, capture_output=True, text=True).stdout

    def start(self, *command, **more):
        return subprocess.Popen(self.enter(*command), stdin=subprocess.DEVNULL, **more)

    def kill(self):
        """All of its processes end at once, as when it loses power."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(20)


def start_namespace(arguments, script):
    process = subprocess.Popen(["unshare", *arguments, "sh", "-c", script + "; echo ready; exec sleep 3600"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.stdout.readline() != "ready\n":
        raise unittest.SkipTest("namespaces cannot be made here: " + process.communicate()[1].strip())
    process.stdout.close()
    process.stderr.close()
    return process


class Machines:
    """n of them; use it as a context. folder: a folder that all of them see, with the script ssh."""

    def __init__(self, n):
        self.n, self.all, self.stack = n, [], contextlib.ExitStack()

    def __enter__(self):
        t.need_root()
        for program in "unshare", "nsenter", "ip":
            t.need_program(program)
        with contextlib.ExitStack() as stack:
            self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="probing-test."))
            self.switch = start_namespace(["--net"], "ip link set lo up && ip link add br0 type bridge && ip link set br0 up "
                                                     "&& ip addr add 10.77.0.254/24 dev br0")
            stack.callback(self.end, self.switch, self.switch.pid)
            for i in range(self.n):
                self.add(i, stack)
            path = os.path.join(self.folder, "ssh")
            with open(path, "w", encoding="utf-8") as file:
                file.write(SSH)
            os.chmod(path, 0o755)
            self.ssh = path
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *why):
        self.stack.close()

    @staticmethod
    def end(process, pid):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(20)

    def at_switch(self, *command):
        return ["nsenter", "-t", str(self.switch.pid), "-n", "--", *map(str, command)]

    def add(self, i, stack):
        name, address = "node%d" % i, "10.77.0.%d" % (i + 1)
        process = start_namespace(["--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"],
                                  "hostname %s && ip link set lo up" % name)
        pid = t.children_of(process.pid)[0]
        stack.callback(self.end, process, pid)
        machine = Machine(name, address, process, pid)
        subprocess.run(self.at_switch("ip", "link", "add", "to-" + name, "type", "veth", "peer", "name", "eth0", "netns", pid), check=True)
        subprocess.run(self.at_switch("ip", "link", "set", "to-" + name, "master", "br0", "up"), check=True)
        machine.run("ip", "addr", "add", address + "/24", "dev", "eth0")
        machine.run("ip", "link", "set", "eth0", "up")
        with open(os.path.join(self.folder, name + ".pid"), "w", encoding="utf-8") as file:
            file.write(str(pid))
        self.all.append(machine)
