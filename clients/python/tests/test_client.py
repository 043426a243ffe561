"""Each operation of the client, against a server."""

import asyncio
import time
import unittest
import unittest.mock
from datetime import datetime, timedelta, timezone

import base
import flowfabric.api
from flowfabric import Client, ConnectionLost, FlowFabricError, NotFound, TimedOut

PLANES = "a\u00e9\u20ac\ud7ff\ue000\U0001f600\U00020000\U000e0001\U0010fffd\u0000\u2028 \"\\</script>"


async def echo(task, input):
    return input


class ClientTest(base.Case):
    async def test_submit_and_result(self):
        await self.serve(kind=echo)
        values = [None, True, 0, -1, 2**53 + 1, 2**63, 10**40, 1.5, "", PLANES, [[]], {"": {PLANES: [1, None]}}]
        for value in values:
            self.assertEqual(await self.client.run(self.kind, value), value)
        made = await self.client.submit(self.kind, values, lane="default", priority=5, retries=1, timeout_ms=60000,
                                        tags={"team.region": "b"}, deadline_ms=600000, retention_s={"completed": 60})
        answer = await self.client.result(made["id"], within=20)
        self.assertEqual((answer["state"], answer["output"]["value"]), ("completed", values))
        self.assertEqual((await self.client.get(made["id"]))["tags"], {"team.region": "b"})
        self.assertIn("sentence", await self.client.why(made["id"]))

    async def test_keys(self):
        first = await self.client.submit(self.kind, 1, idempotency_key="one")
        again = await self.client.submit(self.kind, 1, idempotency_key="one")
        self.assertEqual((again["id"], again["duplicate"]), (first["id"], True))
        a, b = [await self.client.submit(self.kind, 1) for _ in range(2)]
        self.assertNotEqual(a["id"], b["id"])
        unique = [await self.client.submit(self.kind, 1, unique_key="u") for _ in range(2)]
        self.assertEqual(unique[0]["id"], unique[1]["id"])

    async def test_many(self):
        await self.serve(kind=echo)
        made = await self.client.submit_many(
            [{"kind": self.kind, "input": i} for i in range(20)] + [{"kind": self.kind, "priority": 10**6}])
        self.assertIn("problem", made[-1])
        ids = [m["id"] for m in made[:-1]]
        out = await asyncio.gather(*(self.client.result(id, within=20) for id in ids))
        self.assertEqual([o["output"]["value"] for o in out], list(range(20)))
        listed = {e["id"] async for e in self.client.executions(kind=self.kind, state="completed", limit=3)}
        self.assertEqual(listed, set(ids))

    async def test_silent_stream_is_cut(self):
        """A stream that said nothing but comments for long goes on after a cut."""
        now = 0.0

        class Answer:
            status, headers = 200, {}

            def __init__(self, *pieces):
                self.left = pieces

            async def pieces(self):
                nonlocal now
                for piece in self.left:
                    now += 15
                    if piece is None:
                        raise ConnectionLost("cut")
                    yield piece

            async def close(self):
                pass

        class Server:
            answers = [Answer(*[b": \n\n"] * 20, None), Answer(b'id: 1\ndata: {"kind":"end"}\n\n')]

            async def request(self, *call):
                return self.answers.pop(0)

        client = Client(transport=Server(), retry_for=30)
        with unittest.mock.patch.object(flowfabric.api, "time", unittest.mock.Mock(monotonic=lambda: now)):
            self.assertEqual([e async for e in client.tail("x")], [{"kind": "end"}])

    async def test_result_in_time(self):
        made = await self.client.submit(self.kind, 1)
        began = time.monotonic()
        with self.assertRaises(TimedOut):
            await self.client.result(made["id"], within=0.3)
        self.assertLess(time.monotonic() - began, 5)
        await self.client.cancel(made["id"], reason="a test")
        await self.client.cancel(made["id"])
        answer = await self.client.result(made["id"])
        self.assertEqual((answer["state"], answer["reason"]), ("cancelled", "a test"))

    async def test_errors(self):
        with self.assertRaises(FlowFabricError) as caught:
            await self.client.submit(self.kind, 1, priority=10**6)
        e = caught.exception
        self.assertEqual((e.status, e.code), (400, "invalid_input"))
        self.assertTrue(e.detail and e.request_id)
        with self.assertRaises(NotFound):
            await self.client.get("4-01a22af5-c18c-7240-bf07-3f26b253c1d3")
        for id in ("", ".", "..", "a/../../healthz", "x?y#z", "\r\nX: y", "\ud800", PLANES):
            with self.assertRaises(FlowFabricError):
                await self.client.get(id)
        for value in (float("nan"), float("inf"), "\ud800", object(), {1, 2}):
            with self.assertRaises(FlowFabricError) as caught:
                await self.client.submit(self.kind, value)
            self.assertEqual(caught.exception.code, "invalid_input")
        deep = []
        for _ in range(100_000):
            deep = [deep]
        with self.assertRaises(FlowFabricError):
            await self.client.submit(self.kind, deep)
        with self.assertRaises(FlowFabricError):
            await self.client.submit(self.kind, "x" * (2 << 20))
        with self.assertRaises(FlowFabricError) as caught:
            await Client("http://127.0.0.1:1", retry_for=0.3).get("x")
        self.assertEqual(caught.exception.code, "connection_lost")

    async def test_tail(self):
        async def story(task, input):
            for i in range(250):
                await task.frame(f"{i}")
                if i % 10 == 0:
                    await asyncio.sleep(0.001)
            await task.frame(json={"n": 2**60})
            await task.frame(data=b"\x00\xff")
            await task.frame(PLANES)

        await self.serve(kind=story)
        made = await self.client.submit(self.kind)
        events = [e async for e in self.client.tail(made["id"])]
        frames = [e["frame"] for e in events if e["kind"] == "frame"]
        self.assertEqual([f["sequence"] for f in frames], list(range(1, 254)))
        self.assertEqual([f["text"] for f in frames[:250]], [str(i) for i in range(250)])
        self.assertEqual([frames[250]["value"], frames[251]["base64"], frames[252]["text"]],
                         [{"n": 2**60}, "AP8=", PLANES])
        for i in (0, 100, len(events) - 2):
            after = events[i]["position"]
            rest = [e["position"] async for e in self.client.tail(made["id"], after=after)]
            self.assertEqual(rest, [e["position"] for e in events[i + 1 :]])
        self.assertEqual([e async for e in self.client.tail(made["id"], after=events[-1]["position"])], [])

    async def test_cut_answers(self):
        async def story(task, input):
            for i in range(300):
                await task.frame(f"{i} ")
                await asyncio.sleep(0.002)
            return input

        proxy = base.Cutter(every=4)
        through = Client(await proxy.start())
        self.addCleanup(proxy.close)
        self.addAsyncCleanup(through.close)
        await self.serve(kind=story)
        made = await through.submit(self.kind, 7)
        positions, text = [], ""
        async with asyncio.timeout(60):
            async for e in through.tail(made["id"]):
                positions.append(e["position"])
                text += e.get("frame", {}).get("text", "")
        self.assertEqual(text, "".join(f"{i} " for i in range(300)))
        self.assertEqual(len(set(positions)), len(positions))
        self.assertGreater(proxy.count, 8)
        for i in range(10):
            await through.submit(f"{self.kind}-cut", i)
        self.assertEqual(len([e async for e in self.client.executions(kind=f"{self.kind}-cut", state="waiting")]), 10)

    async def test_flows(self):
        async def add(task, input):
            return input + sum(task.inputs.values())

        await self.serve(kind=add)
        flow = await self.client.create_flow("sum", [
            {"name": "a", "kind": self.kind, "input": 1},
            {"name": "b", "kind": self.kind, "input": 2, "after": ["a"], "inputs": {"a": "a"}}])
        self.assertEqual((await self.client.result(flow["nodes"]["b"], within=20))["output"]["value"], 3)
        self.assertEqual(len((await self.client.get_flow(flow["id"]))["nodes"]), 2)
        other = await self.client.create_flow("sum", [{"name": "a", "kind": "nobody"}], idempotency_key=self.kind)
        await self.client.cancel_flow(other["id"], reason="a test")
        self.assertEqual((await self.client.result(other["nodes"]["a"], within=20))["state"], "cancelled")
        self.assertTrue({flow["id"], other["id"]} <= {f["id"] async for f in self.client.flows(limit=1)})

    async def test_schedules(self):
        name = self.kind
        made = await self.client.put_schedule(name, self.kind, cron="0 3 * * *", zone="UTC", input={"a": 1})
        self.assertEqual((made["name"], made["already"]), (name, False))
        await self.client.pause_schedule(name)
        self.assertTrue((await self.client.get_schedule(name))["paused"])
        await self.client.resume_schedule(name)
        info = await self.client.get_schedule(name, next=3)
        self.assertEqual((info["paused"], len(info["next_runs"])), (False, 3))
        self.assertIn(name, [s["name"] async for s in self.client.schedules(limit=1)])
        self.assertTrue(await self.client.delete_schedule(name))
        self.assertFalse(await self.client.delete_schedule(name))
        soon = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()
        made = await self.client.submit(self.kind, 1, delay_until=soon)
        self.assertEqual((await self.client.get(made["id"]))["state"], "delayed")


if __name__ == "__main__":
    unittest.main()
