"""Server-Sent Events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from .errors import ProtocolError


@dataclass(slots=True)
class Event:
    id: str
    name: str
    data: str


async def events(pieces: AsyncIterator[bytes], limit: int) -> AsyncIterator[Event]:
    """The complete events of a body. An event that the connection cut is not given."""
    rest, size = bytearray(), 0
    last_id, name = "", ""
    data: list[str] = []
    async for piece in pieces:
        rest += piece
        *lines, tail = rest.split(b"\n")
        rest = bytearray(tail)
        if len(rest) > limit:
            raise ProtocolError(f"an event has more than {limit} bytes")
        for raw in lines:
            size += len(raw)
            if size > limit:
                raise ProtocolError(f"an event has more than {limit} bytes")
            try:
                line = bytes(raw).removesuffix(b"\r").decode()
            except UnicodeDecodeError as e:
                raise ProtocolError("an event is not UTF-8") from e
            if not line:
                if data:
                    yield Event(last_id, name, "\n".join(data))
                name, data, size = "", [], 0
                continue
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "id" and "\0" not in value:
                last_id = value
            elif field == "event":
                name = value
            elif field == "data":
                data.append(value)
