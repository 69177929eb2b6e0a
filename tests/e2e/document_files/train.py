# SPDX-License-Identifier: MIT
"""The reader's program of the documents: train.py [SECONDS]. Rows and steps of its own, a coroutine, a second thread, and work."""
import asyncio
import sys
import threading
import time

from demo import compress, edit_distance
from model import Net

try:
    import probing
except ImportError:  # without the package it works as well
    probing = None

MIN_STEPS = 200  # also on a machine that is busy with others
model = Net()
epoch = 0


class Trainer:
    def step(self, number):
        return model.forward(3000) + edit_distance("larch linden maple oak", "elder hazel juniper") + len(compress(b"abcdefgh%d" % number * 100))


def step(number):
    loss = 1.0 / (number + 1)
    Trainer().step(number)
    return loss


def train(number):
    if probing:
        probing.step(number)
    loss = step(number)
    acc1 = 1 - loss
    if probing:
        probing.log(epoch=epoch, loss=loss)
    return acc1


async def serve(until):
    while time.monotonic() < until:
        await asyncio.sleep(0.01)


def main(seconds):
    global epoch
    until = time.monotonic() + seconds
    threading.Thread(target=lambda: asyncio.run(serve(until)), name="server", daemon=True).start()
    number = 0
    while time.monotonic() < until or number < MIN_STEPS:
        train(number)
        number += 1
        epoch = number // 100
        if number == 10:
            open("train.running", "w").close()


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] and not sys.argv[1].startswith("-") else 1)
