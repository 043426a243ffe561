"""SIGKILL of a worker, and another takes over."""

import asyncio
import signal
import sys
import tempfile
import unittest
from pathlib import Path

import base

CHILD = """
import asyncio, sys
from flowfabric import Worker

url, kind, ledger, slow = sys.argv[1:]
worker = Worker(url, lease=2, drain=1)

@worker.handler(kind)
async def do(task, input):
    def write(i):
        with open(ledger, "a") as f:
            f.write(f"{i}\\n")
        return i
    for i in range(10):
        if i == 5 and slow == "step":
            await task.step("five", asyncio.sleep, 60)
        await task.step(str(i), write, i)
        for j in range(20):
            await task.frame(f"{i}.{j} ")
            if (slow, i, j) == ("stream", 5, 10):
                await asyncio.sleep(60)
    return "done"

worker.run_blocking()
"""


class KillTest(base.Case):
    async def start(self, ledger, slow):
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, base.url(), self.kind, str(ledger), slow)

    async def take_over(self, slow, steps):
        with tempfile.TemporaryDirectory() as folder:
            ledger = Path(folder, "ledger")
            child = await self.start(ledger, slow)
            made = await self.client.submit(self.kind)
            lines = lambda: ledger.read_text().split() if ledger.exists() else []

            async def stuck():
                # What was done and not recorded would be done again, so the kill waits for the record.
                return (await self.client.get(made["id"]))["steps"] == steps

            await self.until(stuck)
            if slow == "stream":
                async for event in self.client.tail(made["id"]):
                    if event["kind"] == "frame" and event["frame"]["text"] == "5.10 ":
                        break
            child.kill()
            await child.wait()
            second = await self.start(ledger, "no")
            try:
                answer = await self.client.result(made["id"], within=40)
                self.assertEqual((answer["state"], answer["output"]["value"]), ("completed", "done"))
                second.send_signal(signal.SIGTERM)
                self.assertEqual(await asyncio.wait_for(second.wait(), 10), 0)
            finally:
                if second.returncode is None:
                    second.kill()
                    await second.wait()
            self.assertEqual(lines(), [str(i) for i in range(10)])  # each step once
        attempts = {}
        async for event in self.client.tail(made["id"]):
            self.assertNotEqual(event["kind"], "gap")
            if event["kind"] == "frame":
                attempts.setdefault(event["attempt"], []).append(event["frame"]["sequence"])
        for sequences in attempts.values():
            self.assertEqual(sequences, list(range(1, len(sequences) + 1)))
        self.assertEqual(len(attempts[max(attempts)]), 200)

    async def test_in_the_middle_of_a_stream(self):
        await self.take_over("stream", 6)

    async def test_in_the_middle_of_a_step(self):
        await self.take_over("step", 5)


if __name__ == "__main__":
    unittest.main()
