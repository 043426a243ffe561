"""The server is killed and started again on the same store, while a worker works."""

import asyncio
import os
import shutil
import socket
import tempfile
import unittest
from pathlib import Path

import base
from flowfabric import Client, Worker


class RestartTest(base.Case):
    async def asyncSetUp(self):
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if not program:
            if os.environ.get("CI"):
                self.fail("there is no redis-server")
            self.skipTest("there is no redis-server")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.ledger = Path(folder.name, "ledger")
        store = f"{folder.name}/s"
        await self.child(program, "--port", "0", "--unixsocket", store, "--save", "", "--dir", folder.name)
        await self.until(lambda: os.path.exists(store))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
        self.command = [os.environ["FLOWFABRIC_BIN"], "serve", "--url", f"unix://{store}", "--addr", address]
        self.url, self.kind = f"http://{address}", "work"
        self.client = Client(self.url)
        self.addAsyncCleanup(self.client.close)

    async def child(self, *command):
        out = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL)

        async def end():
            if out.returncode is None:
                out.kill()
                await out.wait()

        self.addAsyncCleanup(end)
        return out

    def lines(self):
        return self.ledger.read_text().split() if self.ledger.exists() else []

    async def test_nothing_is_lost_or_doubled(self):
        def write(line):
            with self.ledger.open("a") as f:
                f.write(line + "\n")

        async def do(task, input):
            for i in range(6):
                await task.step(str(i), write, f"{input}.{i}")
                await task.frame(f"{i} ")
                await asyncio.sleep(0.02)
            return input

        server = await self.child(*self.command)
        made = await self.client.submit_many([{"kind": self.kind, "input": i} for i in range(50)])
        worker, running = await self.serve(worker=Worker(self.url, concurrency=10, lease=20, drain=1), kind=do)
        for part in (60, 120, 200):
            await self.until(lambda: len(self.lines()) >= part, within=60)
            server.kill()
            await server.wait()
            server = await self.child(*self.command)
        for i, m in enumerate(made):
            answer = await self.client.result(m["id"], within=90)
            self.assertEqual((answer["state"], answer["output"]["value"]), ("completed", i))
            self.assertEqual([f["text"] for f in await self.frames(m["id"])], [f"{j} " for j in range(6)])
        worker.stop()
        await running
        self.assertEqual(sorted(self.lines()), sorted(f"{i}.{j}" for i in range(50) for j in range(6)))


if __name__ == "__main__":
    unittest.main()
