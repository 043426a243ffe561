"""Each operation of the worker, against a server."""

import asyncio
import threading
import unittest

import base
from flowfabric import FlowFabricError, GateRefused, LeaseLost, Permanent, Retry, Worker


class WorkerTest(base.Case):
    async def output(self, id):
        answer = await self.client.result(id, within=30)
        self.assertEqual(answer["state"], "completed", answer)
        return (answer.get("output") or {}).get("value")

    async def run_one(self, input=None, **options):
        made = await self.client.submit(self.kind, input, **options)
        return await self.output(made["id"])

    async def test_inputs_must_fit_the_schema_of_a_handler(self):
        worker = Worker(base.url(), drain=1, lease=3)
        schema = {"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}}

        @worker.handler(self.kind, input=schema, result={"type": "string"})
        async def do(task, input):
            return input["to"]

        await self.serve(worker)
        await self.until(lambda: worker._session)
        self.assertEqual(await self.run_one({"to": "a"}), "a")
        with self.assertRaises(FlowFabricError) as refused:
            await self.client.submit(self.kind, {"to": 7})
        self.assertEqual((refused.exception.code, refused.exception.field), ("input_does_not_fit", "/input/to"))

    async def test_steps_and_waits(self):
        did, tokens = [], []

        async def do(task, input):
            def first():
                did.append("first")
                return {"n": 2**60}

            async def hand_out(token):
                tokens.append(token)

            one = await task.step("first", first)
            await task.step("token", hand_out, await task.token("a"))
            answer = await task.wait("a")
            reply = await task.ask("b", "Is it good?", text="Look.", choices=["yes", {"name": "no", "label": "No"}])
            return [one, answer.value, answer.cause in ("signal", "already_satisfied"), reply.name]

        await self.serve(kind=do)
        made = await self.client.submit(self.kind)
        await self.until(lambda: tokens)
        await self.client.signal(tokens[0], {"x": 2**55})
        async def asked():
            return [a async for a in self.client.approvals(kind=self.kind) if a["name"] == "b"]
        found = await self.until(asked)
        await self.client.answer(made["id"], found[0]["waitpoints"][0]["key"], {"choice": "yes"})
        self.assertEqual(await self.output(made["id"]), [{"n": 2**60}, {"x": 2**55}, True, "yes"])
        self.assertEqual(did, ["first"])

    async def test_failures(self):
        runs = []

        async def do(task, input):
            runs.append(task.attempt)
            if input == "retry" and task.attempt == 1:
                raise Retry("no ink", category="ink", after=0)
            if input == "permanent":
                raise Permanent("never")
            if input == "step":
                await task.step("bad", lambda: 1 / 0)
            if input == "result":
                return float("nan")
            return task.attempt

        await self.serve(kind=do)
        self.assertEqual(await self.run_one("retry", retries=2), 2)
        wanted = {"permanent": "handler_error", "step": "handler_error", "result": "invalid_result"}
        for input, category in wanted.items():
            made = await self.client.submit(self.kind, input, retries=0)
            answer = await self.client.result(made["id"], within=20)
            self.assertEqual((answer["state"], answer["failure"]["category"]), ("failed", category))

    async def test_messages(self):
        async def do(task, input):
            got = [(await task.receive("none", look=True))]
            while (m := await task.receive("user")) and m.value != "bye":
                got.append(m.value)
                await task.step(f"say {len(got)}", task.frame, f"you said {m.value}. ")
            got.append(await task.receive("user", within_ms=100, on_timeout="auto_resume"))
            return got

        await self.serve(kind=do)
        made = await self.client.submit(self.kind)
        for text in ("one", "two"):
            await self.client.send(made["id"], "user", text)
            await asyncio.sleep(0.05)
        await self.client.send(made["id"], "user", "bye", idempotency_key="k")
        self.assertTrue((await self.client.send(made["id"], "user", "bye", idempotency_key="k"))["duplicate"])
        self.assertEqual(await self.output(made["id"]), [None, "one", "two", None])
        self.assertEqual([f["text"] for f in await self.frames(made["id"])], ["you said one. ", "you said two. "])

    async def test_children(self):
        async def leaf(task, input):
            if input == 3:
                raise Permanent("three")
            return input * 2

        async def do(task, input):
            ended = await task.children("all", [
                {"name": str(i), "kind": f"{self.kind}-leaf", "input": i} for i in range(1, 4)])
            return {name: [o.outcome, o.value] for name, o in ended.items()}

        await self.serve(kind=do, leaf=leaf)
        out = await self.run_one()
        self.assertEqual([out["1"][1], out["2"][1]], [2, 4])
        self.assertNotEqual(out["3"][0], out["1"][0])

    async def test_continue_delay_release_cancel(self):
        seen = []

        async def do(task, input):
            seen.append((input, task.claim.get("continues", 0)))
            if input == "start":
                await task.continue_as("again")
            if input == "delay" and seen.count(("delay", 0)) == 1:
                await task.delay(0.05)
            if input == "release" and seen.count(("release", 0)) == 1:
                await task.release()
            if input == "cancel":
                await task.cancel("enough")
            await task.progress(50, "half")
            return input

        await self.serve(kind=do)
        self.assertEqual(await self.run_one("start"), "again")
        self.assertIn(("again", 1), seen)
        self.assertEqual(await self.run_one("delay"), "delay")
        self.assertEqual(await self.run_one("release"), "release")
        made = await self.client.submit(self.kind, "cancel")
        self.assertEqual((await self.client.result(made["id"], within=20))["state"], "cancelled")

    async def test_gates(self):
        name = f"{self.kind}-gate"
        gate = {"limits": {"tokens": {"hard": 100}}}
        await self.client.api.call("PUT", f"/v1/gates/{name}", gate)

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

    async def test_threads(self):
        def do(task, input):
            self.assertIsNot(threading.current_thread(), threading.main_thread())
            n = task.step("n", lambda: input + 1)
            task.frame(f"n is {n}")
            task.progress(10)
            answer = task.ask("b", "ok?", choices=["yes", "no"])
            return [n, task.step("n", lambda: 0), answer.name, task.stopping]

        await self.serve(kind=do)
        made = await self.client.submit(self.kind, 1)
        async def asked():
            return [a async for a in self.client.approvals(kind=self.kind)]
        found = await self.until(asked)
        await self.client.answer(made["id"], found[0]["waitpoints"][0]["key"], {"choice": "yes"})
        self.assertEqual(await self.output(made["id"]), [2, 2, "yes", False])

    async def test_lost_lease_cancels(self):
        events = []

        async def do(task, input):
            events.append("began")
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                events.append("cancelled")
                raise

        def block(task, input):
            events.append("thread began")
            try:
                while True:
                    task.progress(1)
            except LeaseLost:
                events.append("thread lost")
                raise

        await self.serve(kind=do, thread=block)
        for kind, began, ended in ((self.kind, "began", "cancelled"),
                                   (f"{self.kind}-thread", "thread began", "thread lost")):
            made = await self.client.submit(kind)
            await self.until(lambda: began in events)
            await self.client.cancel(made["id"])
            await self.until(lambda: ended in events)
            self.assertEqual((await self.client.result(made["id"], within=20))["state"], "cancelled")

    async def test_leases_are_renewed(self):
        """A handler outlives its lease while the server is there, and is cancelled when nobody can renew it."""
        runs, ends = [], []

        async def do(task, input):
            runs.append(task.attempt)
            try:
                await asyncio.sleep(input)
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise

        proxy = base.Cutter(every=10**9, after=0)
        address = await proxy.start()
        self.addCleanup(proxy.close)
        await self.serve(worker=Worker(address, lease=2, drain=1), kind=do)
        await self.run_one(4)
        self.assertEqual((runs, ends), ([1], []))
        await self.client.submit(self.kind, 60)
        await self.until(lambda: len(runs) == 2)
        proxy.every = 1
        await self.until(lambda: ends)
        proxy.every = 10**9

    async def test_drain(self):
        began, ends = [], []

        async def do(task, input):
            began.append(input)
            try:
                await asyncio.sleep(input)
                ends.append(input)
                return "one"
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise

        worker, running = await self.serve(worker=Worker(base.url(), drain=0.7, lease=30), kind=do)
        short = await self.client.submit(self.kind, 0.3)
        long = await self.client.submit(self.kind, 60)
        await self.until(lambda: len(began) == 2)
        worker.stop()
        async with asyncio.timeout(10):
            await running
        self.assertEqual(await self.output(short["id"]), "one")
        self.assertEqual(ends, [0.3, "cancelled"])

        async def again(task, input):
            return "two"

        await self.serve(kind=again)  # it need not wait for the lease of 30 s
        self.assertEqual(await self.output(long["id"]), "two")

    async def test_session_is_opened_again(self):
        async def do(task, input):
            return input

        worker, _ = await self.serve(kind=do)
        await self.until(lambda: worker._session)
        await self.client.api.call("POST", f"/v1/workers/{worker._session}:close", {})
        self.assertEqual(await self.run_one(5), 5)

    async def test_cut_answers(self):
        did = []

        async def do(task, input):
            for i in range(20):
                await task.step(f"s{i}", did.append, (input, i))
                await task.frame(f"{i} ")
            return input

        proxy = base.Cutter(every=7, after=40)
        address = await proxy.start()
        self.addCleanup(proxy.close)
        await self.serve(worker=Worker(address, drain=1, lease=3), kind=do)
        made = await self.client.submit_many([{"kind": self.kind, "input": i} for i in range(4)])
        for i, m in enumerate(made):
            self.assertEqual(await self.output(m["id"]), i)
            answer = await self.client.get(m["id"])
            frames = [f for f in await self.frames(m["id"])]
            self.assertEqual([f["sequence"] for f in frames], list(range(1, len(frames) + 1)), answer)
        self.assertEqual(len(did), len(set(did)))
        self.assertEqual(len(did), 80)


if __name__ == "__main__":
    unittest.main()
