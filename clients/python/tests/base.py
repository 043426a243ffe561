"""A server for the tests: `flowfabric dev`, whose program FLOWFABRIC_BIN names. It dies with the tests."""

import asyncio
import atexit
import contextlib
import json
import os
import subprocess
import unittest

from flowfabric import Client, HTTPTransport, Worker

_server = {}


def url():
    """The address of the API of a server that all tests share."""
    if not _server:
        _server.update(start())
    return _server["api"]


def start():
    command = [os.environ["FLOWFABRIC_BIN"], "dev", "--http", "127.0.0.1:0", "--addr", "127.0.0.1:0", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    atexit.register(child.stdout.close)
    atexit.register(child.wait)
    atexit.register(child.kill)
    return json.loads(child.stdout.readline())


class Case(unittest.IsolatedAsyncioTestCase):
    """A test with a client, and with workers that end with it."""

    number = 0

    async def asyncSetUp(self):
        Case.number += 1
        self.kind = f"kind-{Case.number}"
        self.client = Client(url())
        self.addAsyncCleanup(self.client.close)

    async def serve(self, worker=None, **handlers):
        """Run a worker with handlers of self.kind (named "kind") and of other kinds."""
        worker = worker or Worker(url(), drain=1, lease=3)
        for kind, do in handlers.items():
            worker.handler(self.kind if kind == "kind" else f"{self.kind}-{kind}")(do)
        running = asyncio.create_task(worker.run(signals=False))
        await asyncio.sleep(0)  # run has begun: stop reaches it

        async def end():
            worker.stop()
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await running

        self.addAsyncCleanup(end)
        return worker, running

    async def until(self, what, within=20):
        """Wait until what() is true."""
        async with asyncio.timeout(within):
            while True:
                found = what()
                if found := await found if asyncio.iscoroutine(found) else found:
                    return found
                await asyncio.sleep(0.01)

    async def output(self, id):
        answer = await self.client.result(id, within=30)
        self.assertEqual(answer["state"], "completed", answer)
        return (answer.get("output") or {}).get("value")

    async def run_one(self, input=None, **options):
        made = await self.client.submit(self.kind, input, **options)
        return await self.output(made["id"])

    async def active(self, id):
        return (await self.client.get(id))["state"] == "active"

    async def frames(self, id, **options):
        out = []
        async with asyncio.timeout(30):
            async for event in self.client.tail(id, **options):
                if event["kind"] == "frame":
                    out.append(event["frame"])
        return out


class Wrapped:
    """A transport to the server of the tests, for others to change."""

    def __init__(self):
        self.inner = HTTPTransport(url())

    async def request(self, method, target, headers, body, timeout):
        return await self.inner.request(method, target, headers, body, timeout)

    async def close(self):
        await self.inner.close()


class Cutter:
    """A proxy that cuts connections: each nth answer after so many bytes."""

    def __init__(self, every=3, after=120):
        self.every, self.after, self.count, self.on = every, after, 0, True

    async def start(self, tls=None):
        host, port = url().removeprefix("http://").split(":")
        self.target = host, int(port)
        self.server = await asyncio.start_server(self.carry, "127.0.0.1", 0, ssl=tls)
        return "http://127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    async def carry(self, reader, writer):
        try:
            up_reader, up = await asyncio.open_connection(*self.target)

            async def back():
                while data := await up_reader.read(65536):
                    self.count += 1
                    if self.on and self.count % self.every == 0:
                        writer.write(data[: self.after])
                        await writer.drain()
                        writer.transport.abort() if self.count % 2 else writer.close()
                        up.close()
                        return
                    writer.write(data)
                    await writer.drain()
                writer.close()

            task = asyncio.create_task(back())
            while data := await reader.read(65536):
                up.write(data)
                await up.drain()
            up.close()
            await task
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def close(self):
        self.server.close()
