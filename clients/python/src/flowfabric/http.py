"""HTTP/1.1 over asyncio streams: as much as the API needs. An application may give another Transport."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from .errors import ConnectionLost, FlowFabricError, ProtocolError, TimedOut

MAX_HEADER = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
_PIECE = 64 * 1024


class Response(Protocol):
    """An answer whose body is still to be read. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes: ...

    def pieces(self) -> AsyncIterator[bytes]: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """What carries requests to the API. It raises FlowFabricError, ConnectionLost if another try may help."""

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> Response: ...

    async def close(self) -> None: ...


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def close(self) -> None:
        # An abort does not wait for a peer that does not read.
        self.writer.transport.abort()


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

    async def read(self) -> bytes:
        parts, size = [], 0
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
                async with _errors(self._timeout, "the body"):
                    part = await self._next()
                if part is None:
                    done = True
                    break
                if part:
                    yield part
        finally:
            if done:
                self._finish()
            else:
                await self.close()

    async def _next(self) -> bytes | None:
        """The next piece of the body, b"" when nothing but framing was read, None at its end."""
        reader = self._conn.reader
        if self._chunked:
            return await self._next_chunked()
        if self._left == 0:
            return None
        if self._left is None:  # until the connection ends
            part = await reader.read(_PIECE)
            if part:
                return part
            self._keep = False
            return None
        part = await reader.read(min(_PIECE, self._left))
        if not part:
            raise ConnectionLost("the body ended early")
        self._left -= len(part)
        return part

    async def _next_chunked(self) -> bytes | None:
        reader = self._conn.reader
        if not self._left:
            line = await _line(reader)
            digits = line.split(b";", 1)[0].strip()
            # int() alone would take signs, underscores and prefixes.
            if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
                raise ProtocolError("the size of a chunk is no number")
            self._left = int(digits, 16)
            if self._left == 0:
                size = 0
                while trailer := await _line(reader):
                    size += len(trailer)
                    if size > MAX_HEADER:
                        raise ProtocolError("the trailer is too large")
                return None
        part = await reader.read(min(_PIECE, self._left))
        if not part:
            raise ConnectionLost("a chunk ended early")
        self._left -= len(part)
        if self._left == 0 and await reader.readexactly(2) != b"\r\n":
            raise ProtocolError("a chunk does not end with a line end")
        return part

    def _finish(self) -> None:
        if self._open:
            self._open = False
            self._transport._give_back(self._conn, self._keep)

    async def close(self) -> None:
        if self._open:
            self._open = False
            self._transport._give_back(self._conn, False)


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
    ) -> HTTPResponse:
        head = self._head(method, target, headers, body)
        while True:
            conn, used = await self._connection()
            try:
                async with _errors(timeout, "the answer"):
                    conn.writer.write(head + body)
                    await conn.writer.drain()
                    status, fields = await _read_head(conn.reader)
                return HTTPResponse(self, conn, status, fields, timeout)
            except TimedOut:
                conn.close()
                raise
            except ConnectionLost:
                conn.close()
                if not used:
                    raise
                # The server had closed an idle connection. The API's calls may be repeated.
            except BaseException:
                conn.close()
                raise

    def _head(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
        lines = [f"{method} {self._prefix}{target} HTTP/1.1", f"Host: {self._authority}"]
        if body or method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if any(c < " " or c == "\x7f" for line in lines for c in line):
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
            if not conn.reader.at_eof() and not conn.writer.is_closing():
                return conn, True
            conn.close()
        async with _errors(self._connect_timeout, "a connection"):
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=MAX_HEADER)
        return _Connection(reader, writer), False

    def _give_back(self, conn: _Connection, keep: bool) -> None:
        if keep and not self._closed and len(self._idle) < self._max_idle:
            self._idle.append(conn)
        else:
            conn.close()

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class _errors:
    """A time limit, and the package's own errors for everything that can go wrong with a stream."""

    def __init__(self, timeout: float, what: str) -> None:
        self._timeout, self._what = asyncio.timeout(timeout), what

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: object) -> None:
        try:
            await self._timeout.__aexit__(kind, e, trace)  # type: ignore[arg-type]
        except TimeoutError as late:
            raise TimedOut(f"{self._what} did not come in time") from late
        if isinstance(e, asyncio.IncompleteReadError):
            raise ConnectionLost(f"the connection ended before {self._what}") from e
        if isinstance(e, asyncio.LimitOverrunError):
            raise ProtocolError(f"{self._what} has a line that is too long") from e
        if isinstance(e, ssl.SSLCertVerificationError):
            raise FlowFabricError("certificate", str(e)) from e
        if isinstance(e, (OSError, EOFError)):
            raise ConnectionLost(f"{self._what}: {e}") from e


async def _line(reader: asyncio.StreamReader) -> bytes:
    return (await reader.readuntil(b"\n")).rstrip(b"\r\n")


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    for _ in range(8):
        raw = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = raw[:-4].split("\r\n")
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
        raise ProtocolError("the length of the body is no number")
    return int(length), False
