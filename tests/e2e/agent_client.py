# SPDX-License-Identifier: MIT
"""The agent's protocol once more, in Python: what the tests hold the real one against. See src/agent/protocol.h."""
import socket
import struct

VERSION = 1
HELLO, EVALUATE, INTERRUPT, DETACH, WELCOME, STARTED, OUTPUT, RESULT, REFUSED, BYE, CONFIGURE, CONFIGURATION = range(1, 13)
VALUE, NOTHING, EXCEPTION, INTERRUPTED, NOT_STARTED, ABANDONED = range(6)
WITH_NUMBER = (WELCOME, OUTPUT, RESULT)


class Client:
    def __init__(self, pid, timeout_s=20):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout_s)
        self.socket.connect("\0probing-%d" % pid)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.socket.close()

    def send(self, kind, payload=b"", version=VERSION):
        self.socket.sendall(struct.pack("=IHH", 8 + len(payload), kind, version) + payload)

    def _read(self, n_bytes):
        got = b""
        while len(got) < n_bytes:
            more = self.socket.recv(n_bytes - len(got))
            if not more:
                raise EOFError
            got += more
        return got

    def receive(self):
        """(kind, number or None, text)"""
        n_bytes, kind, version = struct.unpack("=IHH", self._read(8))
        assert version == VERSION
        payload = self._read(n_bytes - 8)
        if kind in WITH_NUMBER:
            return kind, struct.unpack("=I", payload[:4])[0], payload[4:]
        return kind, None, payload

    def ask(self, kind, payload=b""):
        self.send(kind, payload)
        return self.receive()

    def begin(self, code, timeout_ms=0):
        self.send(EVALUATE, struct.pack("=I", timeout_ms) + code.encode())

    def finish(self):
        """(outcome, text, stdout, stderr) of what was begun; outcome None: refused."""
        printed = {1: b"", 2: b""}
        while True:
            kind, number, text = self.receive()
            if kind == OUTPUT:
                printed[number] += text
            elif kind in (RESULT, REFUSED):
                return number, text.decode(), printed[1].decode(), printed[2].decode()

    def evaluate(self, code, timeout_ms=0):
        self.begin(code, timeout_ms)
        return self.finish()
