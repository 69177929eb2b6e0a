# SPDX-License-Identifier: MIT
"""The tests of torch with the newest one of Debian sid, which `scripts/roots torch` makes: in minutes, so by night alone.

The interpreter of that root runs in its own mount namespace, over a copy in memory of what it changes. This tree and
the folder of temporary files are at their own paths in there, and its processes have the numbers that they have outside.
"""
import atexit
import json
import os
import pickle
import shutil
import signal
import subprocess
import tempfile
import unittest

import probing_test as p
import test_comm
import test_torch_trace

TORCH_ROOT = os.path.join(os.path.dirname(p.SID_ROOT), "torch")

# Goes on as the Python of a root, which is read-only below a copy in memory. It is one process, as recordings of it shall be.
ENTER = """#!/usr/bin/python3 -ISB
import ctypes, os, sys
root, folders = ROOT, FOLDERS
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
libc = ctypes.CDLL(None, use_errno=True)
def check(result, what):
    if result != 0:
        sys.exit("%s: %s" % (what, os.strerror(ctypes.get_errno())))
def mount(source, target, kind, flags, options=None):
    check(libc.mount(*[text.encode() if text is not None else None for text in (source, target, kind)], ctypes.c_ulong(flags),
                     options.encode() if options else None), "mount " + target)
check(libc.unshare(0x20000), "unshare")  # CLONE_NEWNS
mount(None, "/", None, MS_REC | MS_PRIVATE)
at = root + "/mnt/"
mount("none", root + "/mnt", "tmpfs", 0)
for name in "upper", "work", "all":
    os.mkdir(at + name)
mount("none", at + "all", "overlay", 0, "lowerdir=%s,upperdir=%supper,workdir=%swork" % (root, at, at))
for folder in folders:
    os.makedirs(at + "all" + folder, exist_ok=True)
    mount(folder, at + "all" + folder, None, MS_BIND | MS_REC)
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", SCRATCH)
here = os.getcwd()
os.chroot(at + "all")
os.chdir(here)
os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv[1:])
"""


def missing():
    """Why the newest torch cannot be tested; None: it can."""
    if not os.environ.get("PROBING_NIGHTLY"):
        return "takes minutes: set PROBING_NIGHTLY=1"
    if not os.path.isdir(TORCH_ROOT):
        return "%s is not there; `scripts/roots torch` makes it" % TORCH_ROOT
    return p.namespaces_refusal()


def python_of_root():
    """A program that is the interpreter of the root."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    shared = ["/proc", "/dev", "/sys", p.ROOT, os.path.dirname(os.path.realpath(p.BINARY)), os.path.realpath(p.BUILT_FIXTURES),
              tempfile.gettempdir()]
    path = os.path.join(folder, "python3")
    with open(path, "w") as file:
        file.write(ENTER.replace("ROOT", repr(TORCH_ROOT)).replace("FOLDERS", repr([os.path.abspath(one) for one in shared]))
                   .replace("SCRATCH", repr(os.path.join(folder, "inductor"))))
    os.chmod(path, 0o755)
    return path


MISSING = missing()
PYTHON = python_of_root() if MISSING is None else None


class Newest(unittest.TestCase):
    def test_which_it_is(self):
        if MISSING:
            self.skipTest(MISSING)
        said = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], check=True, capture_output=True, text=True).stdout
        self.assertGreaterEqual([int(part) for part in said.split(".")[:2]], [2, 0])


def with_newest(case, **more):
    return type(case.__name__ + "_newest", (case,), dict(more, python=PYTHON, ready_s=300, timeout_s=600, has_torchrun=False, __module__=__name__))


class Gloo(test_comm.Gloo):
    """gloo's operations are in PyTorch's Flight Recorder, too, where it is on."""

    def test_dumps_of_the_flight_recorder(self):
        """Of two ranks one hangs in a sum: dumps that each of them writes, and what the report makes of them."""
        with self.folder() as folder:
            dumps = os.path.join(folder, "dumps")
            program = subprocess.Popen([self.python, test_comm.FIXTURE, "--spawn", "2", "--trace", "--hang"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True, env=self.environment(
                                           folder, AGENT=test_comm.LIBRARY, TORCH_FR_BUFFER_SIZE="1000"))
            try:
                paths = [os.path.join(folder, "result.%d" % rank) for rank in (0, 1)]
                p.wait_until(lambda: all(os.path.exists(path) and os.path.getsize(path) > 0 for path in paths), self.timeout_s, "results")
                pids = []
                for path in paths:
                    with open(path) as file:
                        pids.append(json.load(file)["pid"])
                hangs = "SELECT op FROM comm_started WHERE call NOT IN (SELECT call FROM comm_metrics)"
                p.wait_until(lambda: self.sql(folder, pids[0], hangs), self.timeout_s, "the operation that hangs")
                for rank, pid in enumerate(pids):
                    done = p.probing("eval", pid, "import probing\nprobing.dump_flight_recorder(%r)" % dumps, check=p.OK,
                                     env=self.environment(folder), timeout=self.timeout_s)
                    self.assertEqual("[%r]\n" % os.path.join(dumps, "rank_%d" % rank), done.stdout)
            finally:
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
            out = os.path.join(folder, "hang.db")
            p.probing("import", dumps, "-o", out, check=p.OK)
            found = json.loads(p.probing("report", out, "--json", check=p.OK).stdout)["collectives"]
            with open(os.path.join(dumps, "rank_0"), "rb") as file:
                entries = pickle.load(file)["entries"]
        self.assertEqual(2, found["dumps"])
        world, = [group for group in found["groups"] if group["description"] == "default_pg"]
        last = max(entry["collective_seq_id"] for entry in entries if entry["process_group"][1] == "default_pg")
        self.assertEqual(("behind", last, 2), (world["state"], world["seq"], world["ranks"]))
        behind, waits = world["parts"]
        self.assertEqual(([1], False, last - 1, "ended"), (behind["ranks"], behind["has_come"], behind["seq"], behind["state"]))
        self.assertEqual(([0], True, "all_reduce", "scheduled", "run", test_comm.FIXTURE),
                         tuple(waits[key] for key in ("ranks", "has_come", "op", "state", "func", "file")))


if MISSING is None:
    for one in ("Resnet", "Imported", "Recorded", "Tracks", "Injected", "Unharmed", "Ranks", "Example"):
        globals()[one + "_newest"] = with_newest(getattr(test_torch_trace, one))
    Gloo_newest = with_newest(Gloo)
    Hook_newest = with_newest(test_comm.Hook, ranks_of=Gloo_newest)
del Gloo  # it runs with that torch only


if __name__ == "__main__":
    unittest.main()
