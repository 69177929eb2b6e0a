# SPDX-License-Identifier: MIT
"""An event loop whose tasks wait in several ways, to be made an image of.

Says its pid. For 3.7 and up; see make_asyncio_corpus.py.
"""
import asyncio
import os
import sys
import time
import types


async def sleeps():
    await asyncio.sleep(1000)


async def numbers():
    yield 1
    await asyncio.sleep(1000)


async def iterates():
    async for _ in numbers():
        pass


@types.coroutine
def generator():
    yield from asyncio.get_event_loop().create_future()


class Awaitable:
    def __await__(self):
        return self.run().__await__()

    async def run(self):
        await generator()


async def awaits():
    await Awaitable()


async def gathers():
    await asyncio.gather(*tasks[:2])


async def runs():
    await asyncio.sleep(0.1)
    sys.stdout.write("%d\n" % os.getpid())
    sys.stdout.flush()
    time.sleep(1000)


async def waits(task):
    await task


async def groups():
    async with asyncio.TaskGroup() as group:
        group.create_task(sleeps())
        await asyncio.sleep(1000)


async def main():
    for coroutine in sleeps(), iterates(), gathers(), awaits(), runs():
        tasks.append(asyncio.ensure_future(coroutine))
    if hasattr(asyncio, "TaskGroup"):
        tasks.append(asyncio.ensure_future(groups()))
    await waits(tasks[4])


tasks = []
asyncio.run(main())
