"""HTTP/1.1 over connections of asyncio: as much as the API needs. An application may give another Transport."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from .errors import ConnectionLost, FlowFabricError, ProtocolError, TimedOut

MAX_HEADER = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
_PIECE = 64 * 1024
_AHEAD = 256 * 1024  # bytes that wait to be read; the other side sends no more until they are
_CONTROL = re.compile("[\0-\x1f\x7f]")


class Response(Protocol):
    """An answer whose body is still to be read. Names of headers are in lower case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes: ...

    def pieces(self) -> AsyncIterator[bytes]: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """What carries requests to the API. It raises FlowFabricError, ConnectionLost if another try may help."""

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> Response: ...

    async def close(self) -> None: ...


class _Connection(asyncio.Protocol):
    """A connection, and what has come and was not read yet."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = False
        self._error: Exception | None = None
        self._paused = False
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        if len(self.data) > _AHEAD and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self.ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self._error = self._error or exc
        self._wake()

    def _wake(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)

    def _late(self, what: str) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_exception(TimedOut(f"{what} did not come in time"))

    async def more(self, within: float, what: str) -> None:
        """Wait until more has come, at most `within` seconds. ConnectionLost if no more comes."""
        if self.ended:
            raise ConnectionLost(f"{what}: {self._error}" if self._error else f"the connection ended before {what}")
        if self._paused:
            self._paused = False
            self.transport.resume_reading()
        self._waiting = self._loop.create_future()
        timer = self._loop.call_later(max(0.0, within), self._late, what)
        try:
            await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    def take(self, most: int) -> bytes:
        """At most so many of the bytes that have come."""
        part = bytes(self.data[:most])
        del self.data[:most]
        return part

    def line(self) -> bytes | None:
        """The next line without its end, None if it has not come."""
        end = self.data.find(b"\n")
        if end < 0:
            if len(self.data) > MAX_HEADER:
                raise ProtocolError(f"a line has more than {MAX_HEADER} bytes")
            return None
        return self.take(end + 1).rstrip(b"\r\n")

    async def head(self, within: float) -> bytes:
        """The next head, without the empty line."""
        until, seen = self._loop.time() + within, 0
        while (end := self.data.find(b"\r\n\r\n", seen)) < 0:
            if len(self.data) > MAX_HEADER:
                break
            seen = max(0, len(self.data) - 3)
            await self.more(until - self._loop.time(), "the answer")
        if not 0 <= end <= MAX_HEADER:
            raise ProtocolError(f"the head has more than {MAX_HEADER} bytes")
        return self.take(end + 4)[:-4]

    def close(self) -> None:
        self.transport.abort()  # it does not wait for a peer that does not read


class HTTPResponse:
    """An answer of HTTPTransport. Its connection is used again when the body was read to its end."""

    def __init__(
        self, transport: HTTPTransport, conn: _Connection, status: int, headers: dict[str, str], timeout: float
    ) -> None:
        self.status, self.headers = status, headers
        self._transport, self._conn, self._timeout = transport, conn, timeout
        self._open = True
        self._keep = headers.get("connection", "").lower() != "close"
        self._left, self._chunked = _framing(status, headers)
        self._trailer = -1  # bytes of it that were read; -1: the last chunk has not come

    async def read(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in self.pieces():
            size += len(part)
            if size > self._transport.max_body:
                await self.close()
                raise ProtocolError(f"the body has more than {self._transport.max_body} bytes")
            parts.append(part)
        return b"".join(parts)

    async def pieces(self) -> AsyncIterator[bytes]:
        done = False
        try:
            while self._open:
                part = self._next_chunked() if self._chunked else self._next()
                if part:
                    yield part
                elif part is None:
                    done = True
                    break
                else:
                    await self._conn.more(self._timeout, "the rest of the body")
        finally:
            if done:
                self._finish()
            else:
                await self.close()

    def _next(self) -> bytes | None:
        """The next piece of the body, b"" when it has not come, None at its end."""
        if self._left is None:  # until the connection ends
            if self._conn.ended and not self._conn.data:
                self._keep = False
                return None
            return self._conn.take(_PIECE)
        if self._left == 0:
            return None
        part = self._conn.take(min(_PIECE, self._left))
        self._left -= len(part)
        return part

    def _next_chunked(self) -> bytes | None:
        conn = self._conn
        while True:
            if self._trailer >= 0:
                while (line := conn.line()) is not None:
                    if not line:
                        return None
                    self._trailer += len(line)
                    if self._trailer > MAX_HEADER:
                        raise ProtocolError("the trailer is too large")
                return b""
            if not self._left:
                if (line := conn.line()) is None:
                    return b""
                digits = line.split(b";", 1)[0].strip()
                # int() alone would take signs, underscores and prefixes.
                if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
                    raise ProtocolError("the size of a chunk is not a number")
                self._left = int(digits, 16) + 2  # with the line end behind it
                if self._left == 2:
                    self._trailer = 0
                continue
            if self._left > 2:
                part = conn.take(min(_PIECE, self._left - 2))
                self._left -= len(part)
                return part
            if len(conn.data) < 2:
                return b""
            if conn.take(2) != b"\r\n":
                raise ProtocolError("a chunk does not end with a line end")
            self._left = 0

    def _finish(self) -> None:
        if self._open:
            self._open = False
            self._transport.give_back(self._conn, self._keep)

    async def close(self) -> None:
        if self._open:
            self._open = False
            self._transport.give_back(self._conn, False)


class HTTPTransport:
    """Connections to one server, which are kept for the next request."""

    def __init__(
        self,
        url: str,
        *,
        ssl_context: ssl.SSLContext | None = None,
        connect_timeout: float = 10.0,
        max_body: int = MAX_BODY,
        max_idle: int = 16,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the address {url!r} must begin with http:// or https:// and have a host")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("the address must have no user, query or fragment")
        self._tls = (ssl_context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._host, self._port = parts.hostname, parts.port or (443 if self._tls else 80)
        self._authority = parts.netloc
        self._prefix = parts.path.rstrip("/")
        self._connect_timeout = connect_timeout
        self.max_body, self._max_idle = max_body, max_idle
        self._idle: list[_Connection] = []
        self._closed = False

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> Response:
        request = self._head(method, target, headers, body) + body
        while True:
            conn, used = await self._connection()
            try:
                conn.transport.write(request)
                status, fields = await _read_head(conn, timeout)
                return HTTPResponse(self, conn, status, fields, timeout)
            except BaseException as e:
                conn.close()
                if not used or not isinstance(e, ConnectionLost) or isinstance(e, TimedOut):
                    raise
                # The server had closed an idle connection. The API's calls may be repeated.

    def _head(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
        lines = [f"{method} {self._prefix}{target} HTTP/1.1", f"Host: {self._authority}"]
        if body or method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if _CONTROL.search("".join(lines)):
            raise FlowFabricError("invalid_input", "a header has a control character")
        try:
            return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        except UnicodeEncodeError as e:
            raise FlowFabricError("invalid_input", "a header has a character outside Latin-1") from e

    async def _connection(self) -> tuple[_Connection, bool]:
        if self._closed:
            raise FlowFabricError("closed", "the client is closed")
        while self._idle:
            conn = self._idle.pop()
            if not conn.ended and not conn.data and not conn.transport.is_closing():
                return conn, True
            conn.close()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, conn = await loop.create_connection(_Connection, self._host, self._port, ssl=self._tls)
        except TimeoutError as e:
            raise TimedOut(f"connect to {self._host}:{self._port}: no answer within {self._connect_timeout:g} s") from e
        except ssl.SSLCertVerificationError as e:
            raise FlowFabricError("certificate", str(e)) from e
        except OSError as e:
            raise ConnectionLost(f"connect to {self._host}:{self._port}: {e}") from e
        return conn, False

    def give_back(self, conn: _Connection, keep: bool) -> None:
        """Keep a connection whose answer was read to its end for the next request, or close it."""
        if keep and not self._closed and len(self._idle) < self._max_idle:
            self._idle.append(conn)
        else:
            conn.close()

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


async def _read_head(conn: _Connection, timeout: float) -> tuple[int, dict[str, str]]:
    for _ in range(8):
        lines = (await conn.head(timeout)).decode("latin-1").split("\r\n")
        start = lines[0].split(" ", 2)
        if len(start) < 2 or start[0] not in ("HTTP/1.1", "HTTP/1.0") or not _digits(start[1], 3):
            raise ProtocolError("the other side does not speak HTTP/1.1")
        status = int(start[1])
        if status < 100 or status == 101:
            raise ProtocolError(f"the status is {status}")
        if status < 200:  # an interim answer
            continue
        fields: dict[str, str] = {}
        if start[0] == "HTTP/1.0":
            fields["connection"] = "close"
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip() or "\n" in line or "\r" in line or "\0" in line:
                raise ProtocolError("a header has no name, or a line end")
            name, value = name.lower(), value.strip()
            if name in fields and name in ("content-length", "transfer-encoding"):
                raise ProtocolError(f"the header {name} is there twice")
            fields[name] = value
        return status, fields
    raise ProtocolError("there are too many interim answers")


def _digits(text: str, most: int) -> bool:
    return 0 < len(text) <= most and text.isascii() and text.isdigit()


def _framing(status: int, headers: Mapping[str, str]) -> tuple[int | None, bool]:
    """The bytes of the body, None if it ends with the connection; and whether it comes in chunks."""
    if status in (204, 304):
        return 0, False
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked" or length is not None:
            raise ProtocolError("the body has a transfer coding that is not known, or two lengths")
        return 0, True
    if length is None:
        return None, False
    if not _digits(length, 15):
        raise ProtocolError("the length of the body is not a number")
    return int(length), False
