"""Runs the scenarios with the package for Python, and prints a line for each: its name, and what went wrong."""

import asyncio
import functools
import json
import os
import sys
import traceback

from flowfabric import Client, FlowFabricError, GateRefused, Permanent, Retry, Worker

PROXY, DIRECT, PATIENCE = os.environ["PROXY"], os.environ["DIRECT"], 60


class Wrong(Exception):
    pass


def matches(want, got, fill):
    """Whether an answer is as a scenario wants it. An object may have more members."""
    want = fill(want) if isinstance(want, str) else want
    if want == "$any":
        return True
    if want == "$none":
        return got is None
    if isinstance(want, dict):
        if "$count" in want:
            return isinstance(got, list) and len(got) == want["$count"]
        if "$numbered" in want:
            return got == [str(i) for i in range(want["$numbered"])]
        if "$contains" in want:
            return isinstance(got, str) and want["$contains"] in got
        return isinstance(got, dict) and all(matches(v, got.get(k), fill) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(matches(a, b, fill) for a, b in zip(want, got))
    return type(want) is type(got) and want == got or {type(want), type(got)} == {int, float} and want == got


def exact(a, b):
    """Whether two values are the same, numbers by their value."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


class Scenario:
    def __init__(self, data, unique):
        self.data, self.vars, self.effects, self.flags, self.told = data, {"u": unique}, {}, {}, {}
        self.workers, self.ports, self.client = {}, {}, None
        for name in data["kinds"]:
            self.vars[name] = f"{unique}-{name}"

    # Values

    def fill(self, value, more={}):
        if isinstance(value, dict):
            if "$repeat" in value:
                return value["$repeat"] * value["times"]
            if "$numbers" in value:
                return list(range(value["$numbers"]))
            if "$nested" in value:
                return functools.reduce(lambda out, _: {"in": out}, range(value["$nested"]), {})
            return {k: self.fill(v, more) for k, v in value.items()}
        if isinstance(value, list):
            return [self.fill(v, more) for v in value]
        if not isinstance(value, str):
            return value
        if value.startswith("$") and value[1:2].isalpha() and value not in ("$any", "$none"):
            return self.look(value[1:], more)
        while "${" in value:
            before, rest = value.split("${", 1)
            name, after = rest.split("}", 1)
            value = f"{before}{self.look(name, more)}{after}"
        return value

    def look(self, path, more):
        first, *rest = path.split(".")
        value = more[first] if first in more else self.vars[first]
        for part in rest:
            value = value[int(part)] if isinstance(value, list) else value[part]
        return value

    # What handlers do

    def effect(self, name, n=1):
        self.effects[name] = self.effects.get(name, 0) + n
        return self.effects[name]

    def flag(self, name):
        return self.flags.setdefault(name, asyncio.Event())

    def handler(self, ops):
        async def handle(task, input):
            known = {"input": input, "inputs": task.inputs, "tags": task.tags, "id": task.id, "attempt": task.attempt,
                     "kind": task.kind}
            return (await self.ops(task, ops, known))[1]
        return handle

    async def ops(self, task, ops, known):
        for op in ops:
            do, given = next(iter(op.items()))
            arg = self.fill(given, known) if do != "then" else given
            if do == "return":
                return True, arg
            if do in ("if_attempt", "if"):
                met = task.attempt == arg if do == "if_attempt" else arg[0] == arg[1]
                done, value = await self.ops(task, op["then"], known) if met else (False, None)
                if done:
                    return True, value
                continue
            value = await getattr(self, "do_" + do)(task, arg, self.fill(op, known))
            if "as" in op:
                known[op["as"]] = value
        return False, None

    async def do_effect(self, task, name, op): self.effect(name)
    async def do_count(self, task, name, op): return self.effect(name)
    async def do_tell(self, task, name, op): self.told[name] = op["value"]; self.flag("told " + name).set()
    async def do_same(self, task, pair, op): return pair[0] == pair[1]
    async def do_frames(self, task, texts, op):
        for one in texts: await task.frame(one)
    async def do_count_frames(self, task, n, op):
        for i in range(n): await task.frame(str(i))
    async def do_frame_json(self, task, value, op): await task.frame(json=value)
    async def do_log(self, task, arg, op):
        level, message, attributes = arg
        getattr(task.logger, {"warn": "warning"}.get(level, level))(message, extra=attributes)
    async def do_progress(self, task, arg, op): await task.progress(*arg)
    async def do_recorded(self, task, name, op): return task.recorded(name)
    async def do_token(self, task, key, op): return await task.token(key)
    async def do_expect_event(self, task, key, op): await task.expect(key, op["subject"], op.get("where"))
    async def do_close_token(self, task, key, op): await task.close_token(key)
    async def do_continue(self, task, input, op): await task.continue_as(input)
    async def do_delay(self, task, ms, op): await task.delay(ms / 1000)
    async def do_release(self, task, _, op): await task.release()
    async def do_cancel(self, task, reason, op): await task.cancel(reason)
    async def do_spend(self, task, amounts, op): await task.spend(**amounts)
    async def do_settle(self, task, number, op): await task.settle(number, **op["amounts"])
    async def do_unreserve(self, task, number, op): await task.unreserve(number)

    async def do_fail(self, task, message, op):
        category = op.get("category", "handler_error")
        if op.get("permanent"):
            raise Permanent(message, category=category)
        after = op.get("retry_after_ms")
        raise Retry(message, category=category, after=None if after is None else after / 1000)

    async def do_step(self, task, name, op):
        async def run():
            self.effect("step " + name)
            if "fail" in op:
                await self.do_fail(task, op["fail"], op)
            return op["value"]
        return await task.step(name, run, turn=op.get("turn", ""))

    async def do_wait(self, task, name, op):
        return {"value": (await task.wait(name, **op.get("options", {}))).value}

    async def do_ask(self, task, name, op):
        return {"name": (await task.ask(name, op["title"], **op.get("options", {}))).name}

    async def do_receive(self, task, mailbox, op):
        m = await task.receive(mailbox, **op.get("options", {}))
        return None if m is None else m.value

    async def do_children(self, task, wait, op):
        ended = await task.children(wait, op["list"], **op.get("options", {}))
        return {name: {"outcome": o.outcome, "value": o.value} for name, o in ended.items()}

    async def do_reserve(self, task, amounts, op):
        try:
            return await task.reserve(**amounts)
        except GateRefused:
            if not op.get("refused"):
                raise
            return "refused"

    async def do_acquire(self, task, service, op):
        call = await task.acquire(service, **op["estimate"])
        await (call.settled(**op["amounts"]) if op["end"] == "settled" else call.released())

    async def do_hold(self, task, name, op):
        self.flag("reached " + name).set()
        try:
            await self.flag("let " + name).wait()
        except asyncio.CancelledError:
            self.effect("lost " + name)
            raise

    async def do_hold_until_stopped(self, task, name, op):
        self.flag("reached " + name).set()
        await task.stopping.wait()

    async def do_enter(self, task, name, op):
        self.effects["most " + name] = max(self.effects.get("most " + name, 0), self.effect("in " + name))
    async def do_leave(self, task, name, op): self.effect("in " + name, -1)

    # What the driver does

    async def run(self):
        self.client = Client(await self.port("client"))
        try:
            if not self.data.get("manual"):
                await self.on_start("w", self.data.get("worker", {}))
            for step in self.data["do"]:
                await self.step(step)
        finally:
            for flag in list(self.flags):
                if flag.startswith("let "): self.flags[flag].set()
            for worker, running in self.workers.values(): worker.stop()
            await asyncio.gather(*(running for _, running in self.workers.values()), return_exceptions=True)
            await self.client.close()

    async def port(self, name):
        if name not in self.ports:
            self.ports[name] = await api(PROXY, "POST", "/new", {})
        return self.ports[name]["url"]

    async def step(self, step):
        do, given = next(iter(step.items()))
        op = {k: self.fill(v) for k, v in step.items() if k not in ("as", "expect", "error")}
        try:
            got = await asyncio.wait_for(getattr(self, "on_" + do)(op[do], op), PATIENCE)
        except FlowFabricError as e:
            if not matches(step.get("error"), e.code, self.fill) or "error" not in step:
                raise Wrong(f"{step}: {e}") from e
            return
        if "error" in step:
            raise Wrong(f"{step}: it answers {got}")
        if "expect" in step and not matches(step["expect"], got, lambda s: self.fill(s)):
            raise Wrong(f"{step}: it answers {got}")
        if "as" in step:
            self.vars[step["as"]] = got

    async def on_submit(self, kind, op): return await self.client.submit(kind, op.get("input"), **op.get("options", {}))
    async def on_submit_many(self, items, op): return await self.client.submit_many(items)
    async def on_submit_numbers(self, kind, op):
        return await self.client.submit_many([{"kind": kind, "input": i} for i in range(op["count"])])
    async def on_run(self, kind, op): return await self.client.run(kind, op.get("input"), **op.get("options", {}))
    async def on_result(self, id, op): return await self.client.result(id, within=op.get("within_ms", 50_000) / 1000)
    async def on_results(self, all, op): return [await self.client.result(one["id"], within=50) for one in all]
    async def on_get(self, id, op): return await self.client.get(id)
    async def on_why(self, id, op): return await self.client.why(id)
    async def on_cancel(self, id, op): return await self.client.cancel(id, reason=op.get("reason"))
    async def on_stop(self, id, op): return await self.client.stop(id)
    async def on_signal(self, token, op): return await self.client.signal(token, op["payload"])
    async def on_answer(self, id, op): return await self.client.answer(id, op["waitpoint"], op["payload"])
    async def on_send(self, id, op):
        return await self.client.send(id, op["mailbox"], op["payload"], **op.get("options", {}))
    async def on_list(self, what, op): return [one async for one in getattr(self.client, what)(**op.get("filters", {}))]
    async def on_publish(self, subject, op):
        return await self.client.publish(subject, op.get("data"), **op.get("options", {}))

    async def on_follow_logs(self, id, op):
        out = []
        async for line in self.client.follow_logs(id, **op.get("options", {})):
            out.append(line)
            if "upon" in op and line.get("message") == op["upon"]: self.flag("let " + op["lets"]).set()
        return out

    async def on_create_flow(self, kind, op):
        return await self.client.create_flow(kind, op["nodes"], **op.get("options", {}))
    async def on_cancel_flow(self, id, op): return await self.client.cancel_flow(id)
    async def on_put_schedule(self, name, op): return await self.client.put_schedule(name, op["kind"], **op["options"])
    async def on_get_schedule(self, name, op): return await self.client.get_schedule(name)
    async def on_pause_schedule(self, name, op): return await self.client.pause_schedule(name)
    async def on_resume_schedule(self, name, op): return await self.client.resume_schedule(name)
    async def on_delete_schedule(self, name, op): return await self.client.delete_schedule(name)
    async def on_effects(self, name, op): return self.effects.get(name, 0)
    async def on_let(self, name, op): self.flag("let " + name).set()
    async def on_reached(self, name, op): await self.flag("reached " + name).wait()
    async def on_told(self, name, op): await self.flag("told " + name).wait(); return self.told[name]

    async def on_same(self, pair, op): return exact(pair[0], pair[1])

    async def on_http(self, call, op):
        method, target = call.split(" ")
        return await api(DIRECT, method, target, op.get("body"))

    async def on_tail(self, id, op):
        frames, positions, end = [], [], None
        async for e in self.client.tail(id, **op.get("options", {})):
            if e["kind"] == "frame":
                frames.append(e["frame"]["value"] if "value" in e["frame"] else e["frame"].get("text"))
                positions.append(e["position"])
            elif e["kind"] == "end":
                end = e.get("state")
        return {"frames": frames, "positions": positions, "end": end}

    async def on_until(self, what, op):
        while True:
            if what.startswith("flow "):
                there = (await self.client.get_flow(op["id"]))["state"] == what[5:]
            elif what.startswith("waiting "):
                list = await api(DIRECT, "GET", f"/v1/executions/{op['id']}/waitpoints", None)
                there = any(w["key"] == what[8:] and w["state"] == "active" for w in list["items"])
            else:
                there = (await self.client.get(op["id"]))["state"] == what
            if there:
                return
            await asyncio.sleep(0.02)

    async def on_until_schema(self, kind, op):
        while kind not in (await api(DIRECT, "GET", "/v1/schemas", None))["kinds"]:
            await asyncio.sleep(0.02)

    async def on_until_logged(self, message, op):
        while not any([line.get("message") == message async for line in self.client.logs(op["id"])]):
            await asyncio.sleep(0.02)

    async def on_until_effect(self, name, op):
        while self.effects.get(name, 0) < op["is"]:
            await asyncio.sleep(0.02)

    async def on_fault(self, port, op):
        await self.port(port)
        fault = {"on": op["on"], "how": op["how"], "times": op.get("times", 1)}
        await api(PROXY, "POST", f"/{self.ports[port]['id']}", fault)

    async def on_start(self, name, op):
        if "fault" in op:
            await self.on_fault(name, op["fault"])
        how = {"lease": op.get("lease_ms", 10_000) / 1000, "drain": op.get("drain_ms", 20_000) / 1000}
        worker = Worker(await self.port(name), concurrency=op.get("concurrency", 16), **how)
        for kind, ops in self.data["kinds"].items():
            worker.handler(self.vars[kind], **self.data.get("schemas", {}).get(kind, {}))(self.handler(ops))
        self.workers[name] = worker, asyncio.create_task(worker.run(signals=False))
        await asyncio.sleep(0)

    async def on_drain(self, name, op): self.workers[name][0].stop()
    async def on_drained(self, name, op): await self.workers[name][1]


async def api(base, method, target, body):
    client = Client(base)
    try:
        return await client.api.call(method, target, body)
    finally:
        await client.close()


async def main():
    scenarios = json.load(open(sys.argv[1]))
    at_once = asyncio.Semaphore(8)

    async def one(i, data):
        async with at_once:
            wrong = ""
            try:
                await Scenario(data, f"py{i}").run()
            except Exception as e:
                wrong = str(e) if isinstance(e, Wrong) else traceback.format_exc()
            print(json.dumps({"name": data["name"], "wrong": wrong}), flush=True)

    await asyncio.gather(*(one(i, data) for i, data in enumerate(scenarios) if "python" not in data.get("not", [])))


asyncio.run(main())
