#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whether programs compute the same with the agent in and out all the time: bench/agent_soak.py [--minutes 10] [--python PYTHON]

Two programs: resnet18 trains in one thread, and a site answers requests in two prefork workers (gunicorn where it is installed,
else a pool of processes here). Each runs once by itself for a quarter of the time, and once for as many steps or requests while probing
injects, evaluates, arms probes, queries and detaches in a loop. Every loss and every answer must be the same to the last bit, and
nothing may end. Prints a line for each program; exit status 1 where something differs or a command of probing failed.
PROBING_BINARY: default build/src/cli/probing.
"""
import argparse
import collections
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("PROBING_BINARY") or os.path.join(ROOT, "build", "src", "cli", "probing")

TRAINING = """
import sys, torch, torchvision
torch.manual_seed(1)
torch.set_num_threads(1)
model = torchvision.models.resnet18(num_classes=10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
def step():
    images, labels = torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,))
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return float(loss).hex()
while True:
    print(step(), flush=True)
"""

SITE = """
import hashlib, json, time
def work(path):
    data = json.dumps([[path, i, i * i] for i in range(300)]).encode()
    return hashlib.sha256(data * 20).hexdigest().encode()
def application(environ, start_response):
    body = work(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", str(len(body))), ("Content-Type", "text/plain")])
    return [body]
"""

# Where gunicorn is missing: two workers that share a socket, by the standard library alone.
SERVER = """
import os, socketserver, sys, wsgiref.simple_server as simple
sys.path.insert(0, sys.argv[1])
import site_application
class Quiet(simple.WSGIRequestHandler):
    def log_message(self, *ignored): pass
class Server(socketserver.ThreadingMixIn, simple.WSGIServer):
    daemon_threads = True
server = Server(("127.0.0.1", int(sys.argv[2])), Quiet)
server.set_app(site_application.application)
for _ in range(2):
    if os.fork() == 0:
        server.serve_forever()
os.wait()
"""

PROBES = {"training": "functions: [step]\nvariables: [loss@step, optimizer@__main__]\ninterval: 0.05\ntorch: on\n",
          "site": "functions: [site_application.work]\nvariables: [data@site_application.work]\ninterval: 0.05\n"}


class Disturber(threading.Thread):
    """probing on one process, all its verbs of the agent, until it is stopped."""

    def __init__(self, name, pids):
        super().__init__()
        self.pids, self.stopped = pids, threading.Event()
        self.done, self.failures = collections.Counter(), []
        self.config = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        self.config.write(PROBES[name])
        self.config.flush()

    def probing(self, *arguments):
        done = subprocess.run([BINARY, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)
        self.done[arguments[0]] += 1
        if done.returncode != 0 and not self.stopped.is_set():
            self.failures.append("%s: %d: %s" % (" ".join(map(str, arguments)), done.returncode, done.stdout[-300:]))

    def run(self):
        while not self.stopped.is_set():
            for pid in self.pids:
                self.probing("inject", pid)
                self.probing("eval", pid, "sum(range(10000))")
                self.probing("attach", pid, "--config", self.config.name)
                self.probing("eval", pid, "__import__('time').sleep(0.2)")
                self.probing("sql", pid, "SELECT count(*), sum(duration_ns) FROM python.function_call")
                self.probing("sql", pid, "SELECT name, value FROM python.variables")
                self.probing("sql", pid, "SELECT count(*) FROM python.backtrace")
                self.probing("memory", pid)
                self.probing("detach", pid)


def training(python, seconds, disturbs, wanted=None):
    """The losses of as many seconds, or of as many steps as @wanted has; and the disturber."""
    process = subprocess.Popen([python, "-u", "-c", TRAINING], stdout=subprocess.PIPE, text=True)
    losses, end = [], time.monotonic() + seconds
    losses.append(process.stdout.readline())
    disturber = Disturber("training", [process.pid]) if disturbs else None
    if disturber:
        disturber.start()
    while (len(losses) < len(wanted)) if wanted else time.monotonic() < end:
        line = process.stdout.readline()
        if not line:
            break
        losses.append(line)
    stop(disturber, process)
    return losses, disturber


def stop(disturber, process):
    if disturber:
        disturber.stopped.set()
        disturber.join()
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(child) for child in file.read().split()]


def serve(python, folder, port):
    with open(os.path.join(folder, "site_application.py"), "w") as file:
        file.write(SITE)
    try:
        subprocess.run([python, "-c", "import gunicorn"], check=True, stderr=subprocess.DEVNULL)
        command = [python, "-m", "gunicorn", "--workers", "2", "--threads", "2", "--bind", "127.0.0.1:%d" % port,
                   "--log-level", "warning", "--chdir", folder, "site_application:application"]
    except subprocess.CalledProcessError:
        command = [python, "-c", SERVER, folder, str(port)]
    process = subprocess.Popen(command, start_new_session=True)
    for _ in range(300):
        try:
            urllib.request.urlopen("http://127.0.0.1:%d/" % port, timeout=5).read()
            if len(children(process.pid)) == 2:
                return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the site does not answer")


def site(python, seconds, disturbs, wanted=None):
    """The answers, and what disturbed them."""
    port = 20000 + os.getpid() % 20000
    with tempfile.TemporaryDirectory() as folder:
        process = serve(python, folder, port)
        workers = children(process.pid)
        disturber = Disturber("site", workers) if disturbs else None
        if disturber:
            disturber.start()
        answers, end = [], time.monotonic() + seconds
        while (len(answers) < len(wanted)) if wanted else time.monotonic() < end:
            try:
                answers.append(urllib.request.urlopen("http://127.0.0.1:%d/%d" % (port, len(answers)), timeout=60).read())
            except OSError as error:
                answers.append(repr(error))
        after = children(process.pid)
        stop(disturber, process)
    if disturber and after != workers:
        disturber.failures.append("the workers were %s and are %s" % (workers, after))
    return answers, disturber


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--python", default="/usr/bin/python3")
    arguments = parser.parse_args()
    status = 0
    for name, run in ("training", training), ("site", site):
        begun = time.monotonic()
        wanted, _ = run(arguments.python, arguments.minutes * 60 / 4, False)
        alone_s, begun = time.monotonic() - begun, time.monotonic()
        got, disturber = run(arguments.python, 0, True, wanted)
        is_same = wanted == got
        print("%s: %d results, %s; alone %.0f s, disturbed %.0f s by %s; %d failures" % (
            name, len(wanted), "all the same" if is_same else "DIFFERENT", alone_s, time.monotonic() - begun,
            ", ".join("%d %s" % (n, verb) for verb, n in sorted(disturber.done.items())), len(disturber.failures)), flush=True)
        for failure in disturber.failures[:10]:
            print("  " + failure)
        status |= not is_same or bool(disturber.failures)
    return status


if __name__ == "__main__":
    sys.exit(main())
