"""Throughput of a worker: `python bench.py http://127.0.0.1:7788 [case…]`, with PYTHONPATH=src.

Cases: noop, threads, sleep, steps, frames. Each prints jobs a second, and what part of the CPU the process used.
"""

import asyncio
import sys
import time

from flowfabric import Client, Worker


async def noop(task, input):
    return input


def in_thread(task, input):
    return input


async def sleep(task, input):
    await asyncio.sleep(0.1)


async def steps(task, input):
    for i in range(5):
        await task.step(str(i), lambda: input)


async def frames(task, input):
    for _ in range(20):
        await task.frame("word ")
        await asyncio.sleep(0.005)


CASES = {"noop": (noop, 20000), "threads": (in_thread, 5000), "sleep": (sleep, 6400), "steps": (steps, 2000),
         "frames": (frames, 2000)}  # fmt: skip


async def measure(url: str, case: str, slots: int) -> None:
    do, count = CASES[case]
    kind = f"bench-{case}-{time.time_ns()}"
    async with Client(url) as client:
        await client.submit_many([{"kind": kind, "input": i} for i in range(count)])
        worker, done = Worker(url, concurrency=slots), 0

        def one(task, input):  # counts what ended, for either sort of handler
            nonlocal done
            done += 1
            if done == count:
                worker.stop()

        async def counted(task, input):
            await do(task, input)
            one(task, input)

        def counted_thread(task, input):
            do(task, input)
            one(task, input)

        worker.handler(kind)(counted if asyncio.iscoroutinefunction(do) else counted_thread)
        began, used = time.perf_counter(), time.process_time()
        await worker.run()
        took, used = time.perf_counter() - began, time.process_time() - used
        ended = len([e async for e in client.executions(kind=kind, state="completed", limit=500)])
    ideal = f", {ended / took / (slots / 0.1):.2f} of the ideal" if case == "sleep" else ""
    lost = "" if ended == count else f", {count - ended} did not complete"
    print(f"{case} x {slots} slots: {ended / took:.0f} jobs/s, {used / took:.2f} CPU{ideal}{lost}", flush=True)


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        asyncio.run(measure(sys.argv[1], name, 64))
