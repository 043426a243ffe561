"""Answers that are lost, and cancellations at any place: nothing hangs, nothing is lost, nothing is done twice."""

import asyncio
import random
import unittest

import base
from flowfabric import ConnectionLost, Worker


class Cut(base.Wrapped):
    """A transport that loses one request, before it is sent or after the server has carried it out."""

    def __init__(self, number, sent):
        super().__init__()
        self.left, self.sent = number, sent

    async def request(self, *call):
        self.left -= 1
        if self.left == 0 and not self.sent:
            raise ConnectionLost("cut before")
        cut = self.left == 0
        answer = await super().request(*call)
        if cut:
            await answer.read()
            raise ConnectionLost("cut after")
        return answer


class CutsTest(base.Case):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.did = []

    async def do(self, task, input):
        await task.step("one", self.did.append, input)
        await task.frame("a")
        await asyncio.sleep(0.01)
        await task.frame("b")
        return input

    async def submit(self, count):
        made = await self.client.submit_many([{"kind": self.kind, "input": i} for i in range(count)])
        return [m["id"] for m in made]

    async def test_answers_are_lost(self):
        """A proxy carries every request, and loses each fifth answer: the server did what the worker repeats."""
        proxy = base.Cutter(every=5, after=0)
        address = await proxy.start()
        self.addCleanup(proxy.close)
        ids = await self.submit(60)
        await self.serve(worker=Worker(address, lease=5, concurrency=20, drain=1), kind=self.do)
        self.assertEqual([await self.output(id) for id in ids], list(range(60)))
        self.assertEqual(sorted(self.did), list(range(60)))
        self.assertGreater(proxy.count, 20)

    async def test_each_request_is_cut(self):
        """Each of the first requests in turn, of a worker with three executions."""
        for number in range(1, 9):
            for sent in (False, True):
                self.did.clear()
                self.kind += "x"
                ids = await self.submit(3)
                cut = Cut(number, sent)
                self.addAsyncCleanup(cut.close)
                worker, running = await self.serve(worker=Worker(transport=cut, lease=3, drain=1), kind=self.do)
                with self.subTest(number=number, sent=sent):
                    self.assertEqual([await self.output(id) for id in ids], [0, 1, 2])
                    self.assertEqual(sorted(self.did), [0, 1, 2])
                worker.stop()
                async with asyncio.timeout(20):
                    await running

    async def test_run_is_cancelled_anywhere(self):
        """Whatever the worker waits for, run ends, and another worker has the work."""
        rnd = random.Random(7)
        ids = await self.submit(60)
        for _ in range(30):
            worker, running = await self.serve(worker=Worker(base.url(), lease=2, drain=0.05), kind=self.do)
            for _ in range(int(2 ** rnd.uniform(0, 10))):
                await asyncio.sleep(0)  # one turn of the loop
            if rnd.random() < 0.5:
                running.cancel()
            else:
                worker.stop()
            done, _ = await asyncio.wait({running}, timeout=20)
            self.assertTrue(done, "run has not ended")
            self.assertEqual(worker.running, {})
        await self.serve(kind=self.do)
        self.assertEqual([await self.output(id) for id in ids], list(range(60)))


if __name__ == "__main__":
    unittest.main()
