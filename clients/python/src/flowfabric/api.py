"""Calls of the API: JSON, authorization, and repeats."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import random
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast
from urllib.parse import quote, urlencode

from .errors import ConnectionLost, FlowFabricError, ProtocolError, refusal
from .http import Response, Transport
from .models import Payload

log = logging.getLogger("flowfabric")

AGAIN = (429, 502, 503, 504)
"""Statuses after which the same call may succeed."""

MAX_PAUSE = 5.0
MAX_RETRY_AFTER = 300.0


def encode(value: Any) -> bytes:
    """JSON as the API takes it. NaN, infinities and lone surrogates are no JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as e:  # UnicodeEncodeError is a ValueError
        raise FlowFabricError("invalid_input", f"the value is no JSON: {e}") from e


def decode(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        raise ProtocolError(f"the answer is no JSON: {e}") from e


def decode_object(text: bytes | str) -> dict[str, Any]:
    """What the API sends is an object always."""
    value = decode(text)
    if not isinstance(value, dict):
        raise ProtocolError("the answer is not a JSON object")
    return cast(dict[str, Any], value)


def value_of(payload: Payload | None) -> Any:
    """A payload: its JSON value, or its bytes."""
    if not payload:
        return None
    if "base64" in payload:
        return base64.b64decode(payload["base64"])
    return payload.get("value")


def path(*parts: str) -> str:
    """A path of the API. A name is quoted, so it cannot reach another route."""
    out = "/v1"
    for part in parts:
        if part in ("", ".", ".."):
            raise FlowFabricError("invalid_input", "an id or a name is empty, or only dots")
        try:
            out += "/" + quote(part, safe="")
        except UnicodeEncodeError as e:
            raise FlowFabricError("invalid_input", "a name is no valid Unicode") from e
    return out


def query_of(values: Mapping[str, Any]) -> str:
    """A query. None is left out, lists are repeated, mappings are key=value."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        if isinstance(value, Mapping):
            value = [f"{k}={v}" for k, v in cast(Mapping[str, Any], value).items()]
        for one in cast(list[Any], value) if isinstance(value, (list, tuple)) else [value]:
            pairs.append((name, "true" if one is True else str(one)))
    return "?" + urlencode(pairs) if pairs else ""


def pause_of(value: str | None) -> float | None:
    """The seconds of a Retry-After. A date is not understood: the usual pause is used."""
    try:
        seconds = float(value) if value else None
    except ValueError:
        return None
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, MAX_RETRY_AFTER)


class Backoff:
    """Pauses between tries, which grow and have jitter."""

    def __init__(self, within: float | None) -> None:
        self._within = within
        self.restart()

    def restart(self) -> None:
        """Begin again: the server has answered."""
        self._until = None if self._within is None else time.monotonic() + self._within
        self._next = 0.1

    async def pause(self, error: FlowFabricError) -> None:
        """Wait for the next try, or raise the error if the time for tries is over."""
        seconds = self._next * random.uniform(0.5, 1)
        if error.retry_after is not None:
            seconds = error.retry_after * random.uniform(1, 1.1)
        if self._until is not None and time.monotonic() + seconds > self._until:
            raise error
        self._next = min(self._next * 2, MAX_PAUSE)
        log.debug("trying again in %.1f s: %s", seconds, error)
        await asyncio.sleep(seconds)


class Api:
    """One server, and what every call needs."""

    def __init__(
        self, token: str, transport: Transport, *, timeout: float = 30.0, retry_for: float | None = 60.0
    ) -> None:
        self._transport = transport
        self._authorization = {"Authorization": "Bearer " + token} if token else {}
        self.timeout, self.retry_for = timeout, retry_for

    async def open(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> Response:
        """One try. A refusal is raised; the body of another answer is still to be read."""
        answer = await self._transport.request(
            method, target, {"Accept": "application/json", **self._authorization, **headers}, body, timeout
        )
        if answer.status < 300 or answer.status == 304:
            return answer
        text = await answer.read()
        retry_after = pause_of(answer.headers.get("retry-after"))
        try:
            problem = decode(text)
        except ProtocolError:  # a proxy answered
            problem = {}
        raise refusal(answer.status, problem, retry_after)

    async def call(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        retry_for: float | None = None,
    ) -> Any:
        """Carry out a call, again while the server is away or asks for a pause. A body of bytes is JSON already."""
        sent = dict(headers or {})
        text = b""
        if body is not None:
            text = body if isinstance(body, bytes) else encode(body)
            sent["Content-Type"] = "application/json"
        if query:
            target += query_of(query)
        backoff = Backoff(self.retry_for if retry_for is None else retry_for)
        while True:
            try:
                answer = await self.open(method, target, sent, text, timeout or self.timeout)
                data = await answer.read()
                return decode_object(data) if data else None
            except FlowFabricError as e:
                if not again(e):
                    raise
                await backoff.pause(e)

    async def pages(self, target: str, query: Mapping[str, Any]) -> AsyncIterator[Any]:
        """The items of a list, page by page."""
        cursor = None
        while True:
            page = await self.call("GET", target, query={**query, "cursor": cursor})
            items: list[Any] = page.get("items") or []
            for item in items:
                yield item
            cursor = page.get("next_cursor")
            if not cursor:
                return


def again(e: FlowFabricError) -> bool:
    """Whether the same call may succeed later."""
    return isinstance(e, ConnectionLost) or e.status in AGAIN
