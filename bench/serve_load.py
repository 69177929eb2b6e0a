#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What probing serve takes, and what clients that mean no good change for others.

Usage: bench/serve_load.py [BUILD_FOLDER] [--clients N] [--seconds S]

Serves fixtures/demo.py, and a recording of it, and prints tables:
1. the page: bytes of its files, plain and as gzip packs them; in Chromium, where there is one, the first paint of a page that was never loaded;
2. a live view: CPU time of the server and of the verbs that answer, while the view is open for S seconds (default 20);
3. others: how long a question takes beside N clients (default 1000) that ask, are silent, send a byte a second, read their answer slowly, or send
   a body of 1 GB. Each row is a median and a maximum of questions that a client with a token asks meanwhile.
"""
import argparse
import contextlib
import gzip
import http.client
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "browser"))
import devtools  # noqa: E402

TOKEN = "a token of the benchmark"
QUESTIONS = 20
WARMUP_S = 5
VIEWS = (("overview of a process", "view=overview&target={pid}"), ("backtrace each second", "view=backtrace&target={pid}&period=1"),
         ("backtrace each 5 s", "view=backtrace&target={pid}&period=5"), ("timeline of a recording that goes on", "view=timeline&target=live.db"))


def cpu_s(pid):
    """Of a process, with its children that have ended."""
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def workers_s(pid):
    """Of its children that still run."""
    total = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/children" % (pid, tid)) as children:
            for child in children.read().split():
                with contextlib.suppress(OSError):
                    total += cpu_s(int(child))
    return total


class Server:
    def __init__(self, probing, *targets):
        self.process = subprocess.Popen([probing, "serve", *targets], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=dict(os.environ, PROBING_AUTH_TOKEN=TOKEN))
        self.link = self.process.stdout.readline().strip()
        self.place = self.link.split("/")[2]
        self.address = self.place.split(":")[0], int(self.place.split(":")[1])

    def ask(self, path, method="GET", body=None):
        connection = http.client.HTTPConnection(self.place, timeout=120)
        try:
            connection.request(method, path, body, {"Authorization": "Bearer " + TOKEN})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def connect(self):
        return socket.create_connection(self.address, 120)

    def head(self, method, path, more=""):
        return ("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n" % (method, path, self.place, TOKEN, more)).encode()

    def end(self):
        self.process.terminate()
        self.process.wait()


# ---- The page ----

def files_of_page(server):
    left, sizes = ["/"], {}
    while left:
        path = left.pop()
        status, body = server.ask(path)
        assert status == 200, path
        sizes[path] = len(body), len(gzip.compress(body))
        text = body.decode()
        found = [urllib.parse.urljoin(path, name) for name in re.findall(r'(?:import\(|import |from )"(\.[^"]+)"', text)]
        if path == "/":
            found += re.findall(r'(?:src|href)="(/[^"]+)"', text)
        left += [name for name in found if name not in sizes and name not in left]
    return sizes


def measure_page(server, page):
    sizes = files_of_page(server)
    print("page: %d files, %.0f KB, %.0f KB packed" % (len(sizes), sum(a for a, _ in sizes.values()) / 1e3, sum(b for _, b in sizes.values()) / 1e3))
    if not page:
        print("no first paint: there is no Chromium here")
        return
    page.send("Page.navigate", url=server.link)
    page.until("document.querySelectorAll('nav a').length > 1 && performance.getEntriesByName('first-contentful-paint').length === 1")
    paint = page.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    page.until("document.querySelectorAll('.overview .tile').length > 0")
    print("first paint after %.0f ms, the overview's numbers after %.0f ms" % (paint, page.run("performance.now()")))


# ---- A live view ----

def measure_views(server, page, target, seconds):
    print("\n| view | server, % of a core |\n|---|---|")
    for name, fragment in VIEWS:
        page.run("location.hash = '#%s'" % fragment.format(pid=target))
        time.sleep(WARMUP_S)
        before, began = all_s(server), time.monotonic()
        time.sleep(seconds)
        print("| %s | %.2f |" % (name, 100 * (all_s(server) - before) / (time.monotonic() - began)))


def all_s(server):
    return cpu_s(server.process.pid) + workers_s(server.process.pid)


# ---- Others ----

def questions(server):
    """Milliseconds of questions that another client asks, and how many were refused because eight were being answered."""
    times, refused = [], 0
    for _ in range(QUESTIONS):
        began = time.monotonic()
        status, _ = server.ask("/query?target=live.db", "POST", "SELECT count(*) FROM function")
        times.append(1000 * (time.monotonic() - began))
        refused += status == 503
        assert status in (200, 503), status
    return sorted(times), refused


def row(name, server, clients):
    """@clients: a context, in which the other clients are."""
    with clients:
        times, refused = questions(server)
    print("| %s | %.1f | %.1f | %d |" % (name, times[len(times) // 2], times[-1], refused), flush=True)


@contextlib.contextmanager
def sockets(server, n, first=b""):
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(n):
            client = stack.enter_context(server.connect())
            with contextlib.suppress(OSError):  # it may be closed at once
                client.sendall(first)
            clients.append(client)
        yield clients


@contextlib.contextmanager
def dripping(server, n, first, more):
    """A byte a second from each."""
    stop = threading.Event()

    def drip(clients):
        while not stop.wait(1):
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(more)

    with sockets(server, n, first) as clients:
        thread = threading.Thread(target=drip, args=(clients,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@contextlib.contextmanager
def asking(server, n):
    """As many that ask for the health of the server again and again, by 20 threads."""
    stop = threading.Event()
    head = server.head("GET", "/health")

    def ask(clients):
        while not stop.is_set():
            for client in clients:
                with contextlib.suppress(OSError):
                    client.sendall(head)
                    client.recv(4096)

    with sockets(server, n) as clients:
        threads = [threading.Thread(target=ask, args=(clients[i::20],)) for i in range(20)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@contextlib.contextmanager
def sending(server, n_bytes):
    """One that sends as much as it can of a body that is too long, again and again."""
    stop = threading.Event()
    block = b"x" * (1 << 20)

    def send():
        while not stop.is_set():
            with contextlib.suppress(OSError), server.connect() as client:
                client.sendall(server.head("POST", "/query", "Content-Length: %d\r\n" % n_bytes))
                for _ in range(n_bytes // len(block)):
                    if stop.is_set():
                        break
                    client.sendall(block)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure_others(server, n):
    print("\n| beside | median ms | longest ms | refused |\n|---|---|---|---|")
    row("nobody", server, contextlib.nullcontext())
    row("%d that ask for /health" % n, server, asking(server, n))
    row("%d that are silent" % n, server, sockets(server, n))
    row("%d with half a request" % n, server, sockets(server, n, server.head("GET", "/apis/overview")[:-2]))
    row("%d that send a byte a second" % n, server, dripping(server, n, b"GET / HTTP/1.1\r\nX: ", b"x"))
    row("%d that do not read their answer" % n, server, sockets(server, n, server.head("GET", "/serve/page/timeline.js") * 20))
    row("one with a body of 1 GB", server, sending(server, 1 << 30))
    status = open("/proc/%d/status" % server.process.pid).read()
    print("\nserver: %s MB at most" % (int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) // 1024))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=os.path.join(ROOT, "build"))
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    probing = os.path.join(os.path.abspath(arguments.build), "src", "cli", "probing")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard < arguments.clients + 200 else arguments.clients + 200, hard))
    with tempfile.TemporaryDirectory(prefix="probing-load.") as folder, contextlib.ExitStack() as stack:
        os.chdir(folder)
        target = subprocess.Popen(["/usr/bin/python3", "-B", os.path.join(ROOT, "fixtures", "demo.py")], stdout=subprocess.DEVNULL)
        stack.callback(target.wait)
        stack.callback(target.kill)
        time.sleep(1)
        recorder = subprocess.Popen([probing, "record", "-q", "-p", str(target.pid), "-o", "live.db"], stderr=subprocess.DEVNULL)
        stack.callback(recorder.wait)
        stack.callback(recorder.terminate)
        while not os.path.exists("live.db"):
            time.sleep(0.1)
        time.sleep(2)
        server = Server(probing, str(target.pid), "live.db")
        stack.callback(server.end)
        browser = devtools.find_browser()
        page = stack.enter_context(devtools.opened(browser)) if browser else None
        measure_page(server, page)
        if page:
            measure_views(server, page, target.pid, arguments.seconds)
            page.send("Page.navigate", url="about:blank")
        measure_others(server, arguments.clients)


if __name__ == "__main__":
    main()
