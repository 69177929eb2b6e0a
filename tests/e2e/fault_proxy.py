# SPDX-License-Identifier: MIT
"""A proxy on loopback that does to requests what networks and dying servers do."""
import collections
import http.client
import random
import re
import socket
import threading
import time

# lost: the server carries the request out, the answer is lost. cut: the server gets a part of the body, and then nothing.
# empty: the body ends before its first byte, properly closed; the answer is passed on. half: the same in its middle.
# refuse: the connection ends before the request. slow: the answer comes late.
FAULTS = ("lost", "cut", "empty", "half", "refuse", "slow")
SLOW_S = 0.3


class Proxy:
    """Listens on a free port. share: how many of the inserts meet a fault; each is counted in self.faults."""

    def __init__(self, port, share=0.0, seed=1):
        self.port, self.share = port, share
        self.random = random.Random(seed)
        self.faults = collections.Counter()
        self.inserts = []  # (path, body) of those that the server carried out
        self.sizes = collections.Counter()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client:
            reader = client.makefile("rb")
            try:
                while self._request(client, reader):
                    pass
            except (OSError, http.client.HTTPException):
                pass  # as for the client: the connection ends

    def _choose(self, head):
        with self.lock:
            if b"INSERT" not in head.split(b"\r\n", 1)[0] or self.random.random() >= self.share:
                return None
            fault = self.random.choice(FAULTS)
            self.faults[fault] += 1
            return fault

    def _request(self, client, reader):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = reader.readline()
            if not line:
                return False
            head += line
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                       if line.lower().startswith(b"content-length:")), 0)
        body = reader.read(length)
        fault = self._choose(head)
        if fault == "refuse":
            return False
        with socket.create_connection(("127.0.0.1", self.port), 60) as server:
            n = {"cut": len(body) * 2 // 3, "empty": 0, "half": len(body) // 2}.get(fault, len(body))
            server.sendall(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + body[:n])
            if fault == "cut":
                return False
            if fault in ("empty", "half"):
                server.shutdown(socket.SHUT_WR)
                server.settimeout(2)  # a server that waits for the rest
            answer = http.client.HTTPResponse(server)
            answer.begin()
            text = answer.read()
            if fault == "lost":
                return False
            if fault == "slow":
                time.sleep(SLOW_S)
            if answer.status == 200 and b"INSERT" in head.split(b"\r\n", 1)[0]:
                path = head.split(b" ")[1].decode()
                with self.lock:
                    self.inserts.append((path, body))
                    self.sizes[re.search(r"\.([a-z]+)_local", path)[1]] += len(body)
            lines = ["HTTP/1.1 %d %s" % (answer.status, answer.reason), "Content-Length: %d" % len(text)]
            lines += ["%s: %s" % (name, value) for name, value in answer.getheaders() if name.startswith("X-ClickHouse")]
            client.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
        return True
