#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small service with one fault: the program of docs/tutorial.md.

Usage: service.py slow|gil|io|leak|hang [SECONDS]

slow  one kind of request takes most of the time
gil   a thread computes, and delays the one that answers
io    requests wait for a database that answers after 20 ms, over one connection that they share
leak  a cache that never forgets
hang  two threads take two locks, each in another order
"""
import itertools
import json
import socket
import sys
import threading
import time

CATALOGUE = [{"name": "article %d" % i, "tags": ["t%d" % (i % 7), "t%d" % (i % 11)]} for i in range(3000)]
CACHE = {}
stop = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 600)


def handle_status():
    return json.dumps({"articles": len(CATALOGUE)})


def handle_search(word):
    found = [article for article in CATALOGUE if word in json.dumps(article)]  # makes JSON of the whole catalogue
    return json.dumps(found[:10])


def handle_report(number):
    CACHE[number] = ("report %d; " % number) * 10_000  # the number is never the same
    return len(CACHE[number])


def compute():
    while time.monotonic() < stop:
        sum(i * i for i in range(100_000))


def answer():
    while time.monotonic() < stop:
        time.sleep(0.002)
        handle_status()


def database(connection):
    while connection.recv(100):
        time.sleep(0.02)
        connection.sendall(b"row")


def query(connection, lock):
    with lock:
        connection.sendall(b"SELECT")
        return connection.recv(100)


def handle_orders(connection, lock):
    while time.monotonic() < stop:
        query(connection, lock)


def transfer(first, second):
    with first:
        time.sleep(0.1)
        with second:
            return True


def start(function, *arguments):
    threading.Thread(target=function, args=arguments, name=function.__name__, daemon=True).start()


def main(fault):
    if fault == "slow":
        for number in itertools.count():
            handle_search("t3") if number % 20 == 0 else handle_status()
            if time.monotonic() > stop:
                break
    elif fault == "gil":
        start(compute)
        answer()
    elif fault == "io":
        ours, theirs = socket.socketpair()
        start(database, theirs)
        lock = threading.Lock()
        for _ in range(3):
            start(handle_orders, ours, lock)
        handle_orders(ours, lock)
    elif fault == "leak":
        for number in itertools.count():
            handle_report(number)
            time.sleep(0.005)
            if time.monotonic() > stop:
                break
    elif fault == "hang":
        one, other = threading.RLock(), threading.RLock()
        start(transfer, one, other)
        transfer(other, one)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
