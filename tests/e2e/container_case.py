# SPDX-License-Identifier: MIT
"""A place as in a container: an ordinary user, and a seccomp filter without perf events, BPF, tracing and memory of others."""
import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile

import probing_test as t
from test_agent import LIBRARY
from test_inject import need_injection


class ContainerCase(t.Case):
    """filter_name: --container, as Docker's default profile, or --strict. self.folder has the package, the agent and the program probing, all of the ordinary user: where `pip install --user`
    would put them for him. A command in there is run with self.filter before it, and **self.user."""

    filter_name = "--container"

    def setUp(self):
        super().setUp()
        need_injection()
        self.folder = tempfile.mkdtemp(prefix="probing-test.")
        self.addCleanup(shutil.rmtree, self.folder)
        site = os.path.join(self.folder, "lib", "python" + t.version_of(t.DEBIAN_PYTHON), "site-packages")
        os.makedirs(site)
        shutil.copytree(os.path.join(t.ROOT, "python", "probing"), os.path.join(site, "probing"))
        for name in ("probing.pth", "probing.start"):
            shutil.copy(os.path.join(t.ROOT, "python", name), site)
        self.agent = os.path.join(self.folder, os.path.basename(LIBRARY))
        self.binary = os.path.join(self.folder, "probing")
        self.filter = [os.path.join(self.folder, "without_perf"), self.filter_name]
        for path in (t.BINARY, LIBRARY, os.path.join(t.BUILT_FIXTURES, "without_perf")):
            shutil.copy(path, self.folder)
        self.user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            for path, folders, files in os.walk(self.folder):
                for name in [path] + [os.path.join(path, file) for file in files]:
                    os.chown(name, nobody.pw_uid, nobody.pw_gid)
                    os.chmod(name, 0o755)

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROBING", "PYTHON", "XDG", "HOME"))}
        return dict(kept, HOME=self.folder, PYTHONUSERBASE=self.folder, PYTHONDONTWRITEBYTECODE="1",
                    PROBING_AGENT=self.agent, PROBING_BINARY=self.binary, **more)

    def probing(self, *arguments):
        """What it says on stderr."""
        done = subprocess.run([*self.filter, self.binary, *map(str, arguments)], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                              env=self.environment(), timeout=60, **self.user)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stderr


TRAIN = """
import os, sys, threading, time
def train_step():
    return sum(i * i for i in range(20000))
def wait_for_data():
    time.sleep(0.05)
def load():
    while True: wait_for_data()
threading.Thread(target=load, daemon=True).start()
while time.process_time() < 1.5 or not os.path.exists(sys.argv[1]): train_step()
"""

# Arguments: the folder of the program, the number of the user, the filter and its name, the program probing, python3. Root is read-only but for
# a tmpfs, where the user is; what the program maps and all else is as it was.
AS_IT_IS = """
set -e
mount -t tmpfs -o mode=1777,size=64m none "$1/work"
mount -o remount,bind,ro /
cd "$1/work"
export HOME="$1/work" BINARY="$5" PYTHON="$6" TRAIN="$1/train.py"
exec setpriv --reuid "$2" --regid "$2" --clear-groups --bounding-set=-all "$3" "$4" sh -ec '
! touch /nothing 2> nothing
PROBING=1 PROBING_RECORD=always.db "$PYTHON" "$TRAIN" has_looked 2> said &
while ! grep -q "recording into" said; do sleep 0.05; kill -0 $! || { cat said; exit 1; }; done
"$BINARY" doctor $! > doctor || true
"$BINARY" record --pid $! -d 1 -o beside.db 2>> said || true
touch has_looked
wait $!
pid=$(sed -n "s/.*recording into .* (process \\([0-9]*\\))/\\1/p" said)
while [ -e /proc/$pid ]; do sleep 0.05; done
PROBING=1 "$PYTHON" "$TRAIN" has_recorded 2> said_again &
while ! grep -q "active in" said_again; do sleep 0.05; done
"$BINARY" record --pid $! -d 2 -F 99 -o hand.db 2>> said_again
"$BINARY" record --mode wall --pid $! -d 2 -o wall.db 2>> said_again
for file in always hand wall; do
    echo "== $file"
    "$BINARY" info $file.db
    "$BINARY" flamegraph --format folded $file.db -o -
    "$BINARY" flamegraph $file.db -o $file.svg >&2
done
echo "== said"; cat said said_again
echo "== doctor"; cat doctor
' sh
"""


@contextlib.contextmanager
def names_are_taken():
    """The names that agents of a container would have, which shares its network with another one: by others of the same number, or of a longer one."""
    with contextlib.ExitStack() as stack:
        for number in range(1, 60):
            for name in "probing-%d", "probing-%d000000":
                other = stack.enter_context(socket.socket(socket.AF_UNIX))
                with contextlib.suppress(OSError):  # it is taken already
                    other.bind("\0" + name % number)
        yield


def run_in_container(case, folder, user, within, binary, python, environment):
    """A training in a namespace with an ordinary user, a filter (@within: its program and its name), a read-only root and a tmpfs: recorded from its start, then
    another one by hand. Returns what is in each part of the output."""
    refusal = t.namespaces_refusal()
    if refusal:
        case.skipTest(refusal)
    t.need_program("setpriv")
    os.makedirs(os.path.join(folder, "work"))
    with open(os.path.join(folder, "train.py"), "w") as file:
        file.write(TRAIN)
    with names_are_taken():
        done = subprocess.run(t.UNSHARE + ["--mount-proc", "sh", "-c", AS_IT_IS, "sh", folder, str(user), *within, binary, python],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, cwd="/",
                              env=environment)
    case.assertEqual(0, done.returncode, done.stderr + done.stdout[-2000:])
    parts = {}
    for part in done.stdout.split("== ")[1:]:
        name, _, text = part.partition("\n")
        parts[name] = text
    for name in "always", "hand", "wall":
        case.assertRegex(parts[name], r"mode +%s, .*stack source agent" % ("wall" if name == "wall" else "cpu"))
        case.assertRegex(parts[name], r"(?m)^\S.*train_step[^\n]* \d+$")
    case.assertRegex(parts["always"], r"ended +20\d\d-")
    case.assertRegex(parts["wall"], r"(?m)^\S.*wait_for_data[^\n]*;\[sleep\] \d+$")
    case.assertIn("another recorder samples it already", parts["said"])
    case.assertRegex(parts["doctor"], r"ok +agent_sampling +the agent listens")
    case.assertIn("Recording works (stack source: agent).", parts["doctor"])
    return parts
