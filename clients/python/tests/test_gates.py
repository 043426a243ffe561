"""Amounts, calls to services, and what gates do about them."""

import asyncio
import unittest

import base
from flowfabric import GateRefused, Retry


class GatesTest(base.Case):
    async def gate(self, action):
        name = f"{self.kind}-{action}"
        body = {"limits": {"tokens": {"hard": 100}}, "on_hard": action}
        await self.client.api.call("PUT", f"/v1/gates/{name}", body)
        return name

    async def give(self, name, **amounts):
        await self.client.api.call("POST", f"/v1/gates/{name}:raise", {"amounts": amounts})

    async def test_gates(self):
        name = await self.gate("reject")

        async def do(task, input):
            await task.spend(tokens=10)
            a = await task.reserve(tokens=50)
            await task.settle(a, tokens=20)
            b = await task.reserve(tokens=50)
            await task.unreserve(b)
            try:
                await task.reserve(tokens=500)
            except GateRefused as e:
                return e.gate

        await self.serve(kind=do)
        self.assertEqual(await self.run_one(gates=[name]), name)

    async def test_spend_with_a_key(self):
        """A gate counts a key once, also when the handler runs again."""
        async def do(task, input):
            await task.spend("plan", tokens=40)
            if task.attempt == 1:
                raise Retry("again", after=0)
            await task.spend("write", tokens=10)

        name = await self.gate("reject")
        await self.serve(kind=do)
        await self.run_one(gates=[name], retries=1)
        gate = await self.client.api.call("GET", f"/v1/gates/{name}")
        self.assertEqual(gate["headroom"], {"tokens": 50})

    async def test_service(self):
        async def do(task, input):
            for end in ("settled", "released", "refused"):
                call = await task.acquire(f"{self.kind}/model", tokens=10)
                await (call.settled(tokens=5) if end == "settled" else getattr(call, end)())
            return "done"

        model = {"service": {"per_minute": {"tokens": 100000}, "calls": 2}}
        await self.client.api.call("PUT", f"/v1/gates/{self.kind}%2Fmodel", model)
        await self.serve(kind=do)
        self.assertEqual(await self.run_one(), "done")

    async def test_reject(self):
        """The handler gets the error for a spend, too, and may go on."""
        async def do(task, input):
            await task.spend(tokens=90)
            try:
                await task.spend(tokens=20)
            except GateRefused as e:
                await task.spend(tokens=10)  # that fits
                return e.gate

        name = await self.gate("reject")
        await self.serve(kind=do)
        self.assertEqual(await self.run_one(gates=[name]), name)

    async def test_fail(self):
        async def do(task, input):
            await task.reserve(tokens=500)

        await self.serve(kind=do)
        made = await self.client.submit(self.kind, gates=[await self.gate("fail")], retries=3)
        answer = await self.client.result(made["id"], within=20)
        self.assertEqual((answer["state"], answer["failure"]["category"]), ("failed", "gate"))

    async def test_block(self):
        """The execution goes back in line, its slot is free, and it comes back when there is room."""
        runs = []

        async def do(task, input):
            runs.append(input)
            if task.gates:
                await task.settle(await task.reserve(tokens=80), tokens=80)
            return input

        name = await self.gate("block")
        await self.serve(worker=base.Worker(base.url(), concurrency=1, drain=1), kind=do)
        self.assertEqual(await self.run_one("first", gates=[name]), "first")
        large = await self.client.submit(self.kind, "large", gates=[name])

        async def blocked():
            return len(runs) > 1 and (await self.client.get(large["id"]))["state"] != "active"

        await self.until(blocked)
        self.assertEqual(await self.run_one("small"), "small")
        self.assertEqual((await self.client.get(large["id"]))["state"], "waiting_gate")
        await self.give(name, tokens=100)
        self.assertEqual(await self.output(large["id"]), "large")
        self.assertEqual(runs, ["first", "large", "small", "large"])

    async def test_ask(self):
        """A person is asked; the answer decides, and what was asked before is not asked again."""
        runs = []

        async def do(task, input):
            runs.append(1)
            try:
                number = await task.reserve(tokens=150)
            except GateRefused as e:
                return f"without {e.gate}"
            await task.settle(number, tokens=150)
            return "with"

        name = await self.gate("ask")
        await self.serve(kind=do)
        for choice, want in (("reject", f"without {name}"), ("approve", "with")):
            runs.clear()
            made = await self.client.submit(self.kind, gates=[name])

            async def asked():
                return [a async for a in self.client.approvals(kind=self.kind)]

            found = (await self.until(asked))[0]
            self.assertEqual(found["question"]["title"], f"{name} needs 150 tokens")
            if choice == "approve":
                await self.give(name, tokens=100)
            await self.client.answer(made["id"], found["waitpoints"][0]["key"], {"choice": choice})
            self.assertEqual(await self.output(made["id"]), want)
            self.assertEqual(len(runs), 2)


if __name__ == "__main__":
    unittest.main()
