"""The transport against servers that send anything."""

import asyncio
import random
import unittest

from flowfabric import Client, FlowFabricError, HTTPTransport, ProtocolError, TimedOut
from flowfabric.http import MAX_HEADER

GOOD = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"id":"x","a":1}'[:-3]
CHUNKED = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
           b"5;x=y\r\n{\"id\"\r\n6\r\n:\"x\"}\n\r\n0\r\nT: v\r\n\r\n")
EVENTS = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hi\r\nid: 1\nevent: frame\n"
          b'data: {"kind":"frame"}\n\nid: 2\ndata: {"kind":"end"}\n\n')


class HTTPTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.answer, self.requests, self.stay = b"", [], False
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = "http://127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]
        self.transport = HTTPTransport(self.url, max_body=1 << 20)

    async def asyncTearDown(self):
        await self.transport.close()
        self.server.close()

    async def serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.requests.append(head)
                writer.write(self.answer)
                await writer.drain()
                if not self.stay:
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def get(self, answer, timeout=5.0, stay=False):
        self.answer, self.stay = answer, stay
        response = await self.transport.request("GET", "/x", {}, b"", timeout)
        return await response.read()

    async def test_bodies(self):
        self.assertEqual(await self.get(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n"), b"")
        self.assertEqual(await self.get(CHUNKED), b'{"id":"x"}\n')
        self.assertEqual(await self.get(b"HTTP/1.0 200 OK\r\n\r\nto the end"), b"to the end")

    async def test_connections_are_kept(self):
        for _ in range(3):
            await self.get(CHUNKED, stay=True)
        self.assertEqual(len(self.transport._idle), 1)
        self.stay = False
        await self.get(CHUNKED)  # the server closes behind it
        self.assertEqual(await self.get(CHUNKED), b'{"id":"x"}\n')

    async def test_hostile_answers(self):
        head = b"HTTP/1.1 200 OK\r\n"
        for answer in (
            b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.1 99 X\r\n\r\n", b"HTTP/1.1 101 X\r\n\r\n",
            b"HTTP/1.1 +20 X\r\n\r\n",
            b"HTTP/1.1 100 C\r\n\r\n" * 20, head + b"no colon\r\n\r\n",
            head + b" A: b\r\n\r\n", head + b"A\n: b\r\n\r\n",
            head + b"Content-Length: -1\r\n\r\n", head + b"Content-Length: 1_0\r\n\r\n",
            head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            head + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            head + b"Transfer-Encoding: gzip, chunked\r\n\r\n", head + b"A: " + b"x" * 2 * MAX_HEADER + b"\r\n\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\n", head + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 100 + b"\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"T: v\r\n" * 20000 + b"\r\n",
            head + b"\r\n" + b"x" * (2 << 20),
        ):  # fmt: skip
            with self.assertRaises(ProtocolError, msg=answer[:60]):
                await self.get(answer)
        for answer in (b"", head, head + b"Content-Length: 9\r\n\r\nabc", CHUNKED[:-12]):
            with self.assertRaises(FlowFabricError, msg=answer[:60]):
                await self.get(answer)
        with self.assertRaises(TimedOut):
            await self.get(head, timeout=0.05, stay=True)

    async def test_random_bytes(self):
        """Nothing hangs, and nothing but FlowFabricError is raised."""
        rnd = random.Random(5)
        for _ in range(200):
            text = bytearray(rnd.choice([GOOD, CHUNKED, EVENTS, rnd.randbytes(rnd.randrange(200))]))
            for _ in range(rnd.randrange(6)):
                at = rnd.randrange(len(text) + 1)
                if rnd.random() < 0.5:
                    text[at : at + 1] = rnd.choice([b"\r\n", b"\n", b"\0", b":", b"9", b"\xff", rnd.randbytes(3)])
                else:
                    del text[at : at + rnd.randrange(9)]
            self.answer, self.stay = bytes(text), rnd.random() < 0.2
            client = Client(transport=self.transport, timeout=0.05, retry_for=0, quiet=0.05)
            async with asyncio.timeout(10):
                try:
                    if rnd.random() < 0.5:
                        await client.get("x")
                    else:
                        async for _ in client.tail("x"):
                            pass
                except FlowFabricError:
                    pass

    async def test_pauses_of_the_server(self):
        busy = b'HTTP/1.1 503 Busy\r\nRetry-After: 0.2\r\nContent-Length: 17\r\n\r\n{"code":"closed"}'
        async with Client(self.url, retry_for=5) as client:
            self.answer = busy
            asking = asyncio.create_task(client.get("x"))
            await asyncio.sleep(0.1)
            self.assertEqual(len(self.requests), 1)
            self.answer = GOOD.replace(b"13", b"10").replace(b',"a', b"}")
            self.assertEqual((await asking)["id"], "x")
        self.answer = busy
        async with Client(self.url, retry_for=0.05) as client:
            with self.assertRaises(FlowFabricError) as caught:
                await client.get("x")
        self.assertEqual((caught.exception.status, caught.exception.code), (503, "closed"))

    async def test_requests_cannot_be_split(self):
        for headers in ({"A": "b\r\nC: d"}, {"A": "b\0"}, {"A": "\u20ac"}):
            with self.assertRaises(FlowFabricError):
                await self.transport.request("GET", "/x", headers, b"", 1)
        for url in ("ftp://x", "http://", "x", "http://u:p@h", "http://h?q"):
            with self.assertRaises(ValueError):
                HTTPTransport(url)


if __name__ == "__main__":
    unittest.main()
