# SPDX-License-Identifier: MIT
"""examples/kubernetes: each file's options are right, and its capabilities are enough for the recording it is for.

No cluster is needed: the recorder runs here with a file's own arguments, user and capabilities, beside a program of another user.
"""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import unittest

import probing_test as p

SAME_FOR_ALL_USERS = True
FOLDER = os.path.join(p.ROOT, "examples", "kubernetes")
LOAD = "import time\ndef busy():\n    while True:\n        sum(range(1000))\nprint('ready {}', flush=True)\nbusy()\n"


def documents(name):
    try:
        import yaml
    except ImportError:
        raise unittest.SkipTest("no Python module yaml")
    with open(os.path.join(FOLDER, name)) as file:
        return list(yaml.safe_load_all(file))


def recorder(name):
    """The container that records, of the last document."""
    document = documents(name)[-1]
    spec = document["spec"]
    containers = spec.get("template", {"spec": spec})["spec"]["containers"]
    return next(one for one in containers if one["image"] == "probing")


class Kubernetes(p.Case):
    def test_parsed(self):
        kinds = {name: [one.get("kind") for one in documents(os.path.basename(name))] for name in glob.glob(os.path.join(FOLDER, "*"))}
        self.assertEqual([["Namespace", "DaemonSet"], ["Pod"], [None], [None]], sorted(kinds.values(), key=str))
        for name in "sidecar.yaml", "daemonset.yaml":
            one = recorder(name)
            p.probing(*one["args"], "--help", check=p.OK)
            self.assertEqual(["ALL"], one["securityContext"]["capabilities"]["drop"])
            self.assertFalse(one["securityContext"]["allowPrivilegeEscalation"])
            mounted = {mount["mountPath"] for mount in one["volumeMounts"]}
            self.assertIn(os.path.dirname(one["args"][-1].split("=")[1]), mounted)

    def test_a_patch_sends_to_a_fleet(self):
        """Beside the recorder of daemonset.yaml, of whose volumes it reads one."""
        one = recorder("fleet.yaml")
        p.probing(*one["args"], "--help", check=p.OK)
        self.assertEqual({"drop": ["ALL"]}, one["securityContext"]["capabilities"])
        theirs = {mount["name"]: mount["mountPath"] for mount in recorder("daemonset.yaml")["volumeMounts"]}
        ours = {mount["name"]: mount["mountPath"] for mount in one["volumeMounts"]}
        self.assertEqual(theirs, {name: ours[name] for name in theirs})
        self.assertIn(recorder("daemonset.yaml")["args"][-1].split("=")[1], one["args"])

    def test_documented_rights(self):
        """docs/installing.md names the same capabilities."""
        with open(os.path.join(p.ROOT, "docs", "installing.md")) as file:
            text = file.read()
        profile, = documents("debug-profile.yaml")
        for name, rights in (("sidecar.yaml", recorder("sidecar.yaml")["securityContext"]), ("daemonset.yaml", recorder("daemonset.yaml")["securityContext"]),
                             ("debug-profile.yaml", profile["securityContext"])):
            row, = re.findall(r"^\|[^\n]*%s[^\n]*$" % re.escape(name), text, re.M)
            self.assertEqual(set(rights["capabilities"]["add"]), set(re.findall(r"`([A-Z_]{3,})`", row)), row)

    @contextlib.contextmanager
    def program(self, user, prefix):
        python = os.path.abspath("contained%d" % os.getpid())
        shutil.copy(os.path.realpath(p.DEBIAN_PYTHON), python)
        os.chmod(".", 0o755)
        with p.target(prefix + ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", python, "-c", LOAD]):
            yield os.path.basename(python)

    def record(self, arguments, rights, prefix=()):
        """A recording with these arguments, and these capabilities alone."""
        bounding = ",".join(["-all"] + ["+" + name.lower() for name in rights["capabilities"]["add"]])
        with self.program(1000, list(prefix)) as name:
            given = [re.sub("^--comm=.*", "--comm=" + name, argument).replace("/recordings/", os.getcwd() + "/") for argument in arguments]
            path = given[-1].split("=")[1]
            process = subprocess.Popen(["setpriv", "--no-new-privs", "--bounding-set", bounding, p.BINARY] + given + ["--frequency=199"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                p.wait_until(lambda: p.has_samples(path) or process.poll() is not None, 120, "samples")
            finally:
                process.send_signal(signal.SIGTERM)
                said = process.communicate(timeout=30)[1]
        self.assertEqual(0, process.returncode, said)
        recording = p.Recording(path)
        self.assertIn("busy", recording.all_names())
        return recording

    def need(self):
        p.need_root()
        p.need_perf()
        p.need_program("setpriv")

    def test_sidecar(self):
        self.need()
        one = recorder("sidecar.yaml")
        recording = self.record(one["args"], one["securityContext"])
        self.assertEqual("wakeup", recording.run["stack_source"])
        self.assertEqual(1, recording.run["kernel_frames"])

    def test_ephemeral(self):
        self.need()
        profile, = documents("debug-profile.yaml")
        self.record(recorder("sidecar.yaml")["args"], profile["securityContext"])

    def test_each_node(self):
        self.need()
        one = recorder("daemonset.yaml")
        recording = self.record(one["args"], one["securityContext"])
        self.assertEqual("wakeup" if p.bpf_refusal() else "bpf", recording.run["stack_source"])


if __name__ == "__main__":
    unittest.main()
