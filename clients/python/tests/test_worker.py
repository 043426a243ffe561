"""Each operation of the worker, against a server."""

import asyncio
import os
import socket
import ssl
import threading
import time
import unittest
import unittest.mock

import base
from flowfabric import Client, FlowFabricError, LeaseLost, Permanent, Retry, Worker


class WorkerTest(base.Case):
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

    async def test_a_worker_tells_that_no_server_answers(self):
        with socket.socket() as taken, unittest.mock.patch("flowfabric.worker._PATIENCE", 0.01):
            taken.bind(("127.0.0.1", 0))  # nobody listens, and nobody else can
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            with self.assertLogs("flowfabric", "WARNING") as told:
                await self.serve(Worker("http://" + address), kind=lambda task, input: None)
                await self.until(lambda: told.output)
        self.assertIn(f"the server does not answer, trying on: connection_lost: connect to {address}", told.output[0])

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

    async def test_a_turn_is_stopped(self):
        """A stop reaches the handler at once, its answer so far is kept, and the next turn is not stopped."""
        refused = []

        async def do(task, input):
            async def talk():
                for i in range(10**6):
                    if task.stopping.is_set():
                        return i
                    await task.frame(f"word {i} ")
                    await asyncio.sleep(0.01)

            said = 0
            if not task.recorded("first"):
                said = await talk()
                try:
                    await task.step("first", lambda: "all", turn="over")
                except FlowFabricError as e:
                    refused.append(e.code)
                    await task.step("first", lambda: said, turn="stopped")
            before = task.stopping.is_set()
            await task.step("question", lambda: "and now?", turn="begin")
            await task.step("second", lambda: "all", turn="over")
            return [await task.step("first", lambda: None), before, task.stopping.is_set()]

        def block(task, input):
            while not task.stopping:
                task.progress(1)
            return task.step("only", lambda: "stopped", turn="stopped")

        await self.serve(worker=Worker(base.url(), drain=1, lease=60), kind=do, thread=block)
        made = await self.client.submit(self.kind)
        async for event in self.client.tail(made["id"]):
            if event["kind"] == "frame":
                break
        began = time.monotonic()
        await self.client.stop(made["id"], reason="enough")
        out = await self.output(made["id"])
        self.assertLess(time.monotonic() - began, 15)  # the lease of 60 s is renewed every 5 s
        self.assertEqual((refused, out[1:]), (["turn_stopped"], [False, False]))
        self.assertGreater(out[0], 0)
        made = await self.client.submit(f"{self.kind}-thread")
        await self.until(lambda: self.active(made["id"]))
        await self.client.stop(made["id"])
        self.assertEqual(await self.output(made["id"]), "stopped")

    async def test_what_is_refused_is_refused_alone(self):
        """A result or a frame that is too large fails its execution, not those that share a call with it."""
        together = asyncio.Barrier(9)

        async def result(task, input):
            await together.wait()
            return "x" * input

        async def frame(task, input):
            await together.wait()
            for _ in range(3):  # a type that is too long is a mistake of the whole call, a text is one of its batch
                await task.frame("x" * input, type="t" * (500 if input == 4 else 5))

        await self.serve(worker=Worker(base.url(), concurrency=16, drain=1), kind=result, frame=frame)
        for kind, bad in ((self.kind, [2 << 20]), (f"{self.kind}-frame", [4, 100_000])):
            sizes = [1, 2, 3, 4, bad[-1], 10_000, 20_000, 50_000, 60_000]
            made = await self.client.submit_many([{"kind": kind, "input": n, "retries": 0} for n in sizes])
            for size, m in zip(sizes, made):
                answer = await self.client.result(m["id"], within=30)
                self.assertEqual(answer["state"], "failed" if size in bad else "completed", (kind, size))

    async def test_a_proxy_takes_less_than_the_server(self):
        """Results that are refused together are sent one by one."""
        class Small(base.Wrapped):
            async def request(self, method, target, headers, body, timeout):
                if len(body) > 3000:
                    raise FlowFabricError("http_413", status=413)
                return await super().request(method, target, headers, body, timeout)

        async def do(task, input):
            await asyncio.sleep(0.05)  # so that they end together
            return "x" * input

        small = Small()
        self.addAsyncCleanup(small.close)
        await self.serve(worker=Worker(concurrency=16, drain=1, transport=small), kind=do)
        sizes = [1000] * 6 + [4000]
        made = await self.client.submit_many([{"kind": self.kind, "input": n, "retries": 0} for n in sizes])
        ends = [(await self.client.result(m["id"], within=30))["state"] for m in made]
        self.assertEqual(ends, ["completed"] * 6 + ["failed"])

    async def test_slow_output_holds_claims_back(self):
        """While frames cannot be stored, the worker does not take more and more."""
        began, go = [], asyncio.Event()

        class Slow(base.Wrapped):
            async def request(self, method, target, *more):
                if target.endswith(":frames"):
                    await go.wait()
                return await super().request(method, target, *more)

        async def do(task, input):
            began.append(input)
            await task.frame("a")

        slow = Slow()
        self.addAsyncCleanup(slow.close)
        await self.serve(worker=Worker(concurrency=3, drain=1, transport=slow), kind=do)
        made = await self.client.submit_many([{"kind": self.kind, "input": i} for i in range(20)])
        await self.until(lambda: len(began) == 6)
        for m in made:  # time for more claims
            await self.client.get(m["id"])
        self.assertEqual(len(began), 6)
        go.set()
        for m in made:
            await self.output(m["id"])

    async def test_tls(self):
        """The worker and the client trust what their context trusts, and nothing else."""
        async def do(task, input):
            return input

        proxy = base.Cutter(every=10**9)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(os.environ["FLOWFABRIC_CERT"], os.environ["FLOWFABRIC_CERT_KEY"])
        address = (await proxy.start(server)).replace("http:", "https:")
        self.addCleanup(proxy.close)
        trusting = ssl.create_default_context(cafile=os.environ["FLOWFABRIC_CERT"])
        await self.serve(worker=Worker(address, drain=1, ssl_context=trusting), kind=do)
        async with Client(address, ssl_context=trusting) as client:
            self.assertEqual(await client.run(self.kind, "x" * 300_000), "x" * 300_000)
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # of the proxy, whose peer hangs up
        for program in (Client(address, retry_for=60).get("x"), self.refusing(address).run(signals=False)):
            with self.assertRaises(FlowFabricError) as caught:
                await program
            self.assertEqual(caught.exception.code, "certificate")

    def refusing(self, address):
        worker = Worker(address, drain=1)
        worker.handler(self.kind)(lambda task, input: None)
        return worker

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

    async def test_log(self):
        def odd(task, _):  # in a thread
            loop = []
            loop.append(loop)
            task.logger.debug("left out")
            task.logger.info("\ud800 %d", 1, extra={"loop": loop, "when": self, "nan": float("nan"), "a": {"b": {"c": None}}})
            task.logger.info("%d", "no number")
            try:
                raise ValueError("bad")
            except ValueError:
                task.logger.exception("x" * 20_000)

        async def many(task, _):
            for n in range(3000):
                task.logger.info("%d", n)

        await self.serve(kind=odd, many=many)
        with self.assertLogs("flowfabric.task", "ERROR"):  # they go there as well
            made = await self.client.submit(self.kind)
            self.assertEqual((await self.client.result(made["id"]))["state"], "completed")
        lines = [line async for line in self.client.logs(made["id"])]
        self.assertEqual([line["level"] for line in lines], ["info", "info", "error"])
        self.assertEqual(lines[0]["message"], "? 1")
        self.assertEqual(lines[0]["attributes"]["a.b.c"], None)
        self.assertEqual(lines[1]["message"], "%d")
        self.assertTrue(lines[2]["message"].endswith("…") and len(lines[2]["message"]) < 8192)
        made = await self.client.submit(self.kind + "-many")
        self.assertEqual((await self.client.result(made["id"]))["state"], "completed")
        lines = [line async for line in self.client.logs(made["id"])]
        self.assertLessEqual(len(lines), 1000)
        self.assertEqual(lines[-1]["message"], "2999")
        self.assertGreater(sum(line.get("dropped", 0) for line in lines), 0)

    async def test_log_off(self):
        calls = []

        async def quiet(task, _):
            calls.append(worker.running[task.lease]._lines._next)
            for _ in range(200):
                task.logger.debug("x")
            calls.append(len(task._lines._waiting))

        worker = Worker(base.url(), drain=1, lease=3, keep_logs="off")
        await self.serve(worker, kind=quiet)
        made = await self.client.submit(self.kind)
        self.assertEqual((await self.client.result(made["id"]))["state"], "completed")
        self.assertEqual([line async for line in self.client.logs(made["id"])], [])
        self.assertEqual(calls, [1, 0])
        with self.assertRaisesRegex(ValueError, "keep_logs"):
            Worker(base.url(), keep_logs="loud")


if __name__ == "__main__":
    unittest.main()
