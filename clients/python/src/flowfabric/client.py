"""The client: it submits, follows, answers and lists."""

from __future__ import annotations

import asyncio
import ssl
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, Unpack, cast

from . import sse
from .api import Api, Backoff, again, decode_object, encode, path, query_of, value_of
from .errors import ConnectionLost, FlowFabricError, TimedOut, refusal
from .filters import ApprovalListOptions, FlowListOptions, ListOptions
from .http import MAX_BODY, HTTPTransport, Transport
from .models import (
    Approval,
    BatchItem,
    Delivered,
    Explanation,
    FlowBodyOptions,
    FlowCancellation,
    FlowMade,
    FlowSnapshot,
    FlowSummary,
    Listed,
    LogLine,
    NodeBody,
    Published,
    Result,
    ScheduleInfo,
    SchedulePutOptions,
    ScheduleSet,
    Sent,
    Snapshot,
    Stopped,
    Submission,
    SubmissionOptions,
    Submitted,
    TailEvent,
)

JSON = dict[str, Any]

_MOST_WAIT = 60
_MOST_BATCH = 1000
_MOST_BYTES = 1_300_000


def _with_key(body: JSON, *others: str) -> JSON:
    """Give a body an idempotency key, so that a repeat of the call is recognised."""
    if not any(body.get(name) is not None for name in ("idempotency_key", *others)):
        body["idempotency_key"] = str(uuid.uuid4())
    return body


class Client:
    """A client of one server. Calls are repeated when the server is away or asks for a pause.

    `timeout` is for one try, `retry_for` for all tries together; None tries for ever. A stream of events that says
    nothing for `quiet` seconds is opened again: the server sends a comment at least every minute. `ssl_context` is for
    an address that begins with https; by default what the machine trusts is trusted.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        token: str = "",
        *,
        ssl_context: ssl.SSLContext | None = None,
        transport: Transport | None = None,
        timeout: float = 30.0,
        retry_for: float | None = 60.0,
        quiet: float = 90.0,
    ) -> None:
        self._quiet = quiet
        self._own = transport is None
        self._transport = transport or HTTPTransport(url, ssl_context=ssl_context)
        self.api = Api(token, self._transport, timeout=timeout, retry_for=retry_for)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, unless the application gave the transport."""
        if self._own:
            await self._transport.close()

    # Executions

    async def submit(self, kind: str, input: Any = None, **options: Unpack[SubmissionOptions]) -> Submitted:
        """Submit an execution. The answer has its `id`, and `duplicate` if an earlier submission made it."""
        body: JSON = {"kind": kind, **options}
        if "input_base64" not in body:
            body["input"] = input
        return await self.api.call("POST", path("executions"), _with_key(body, "unique_key", "debounce_key"))

    async def submit_many(self, submissions: Iterable[Submission]) -> list[BatchItem]:
        """Submit many. Each answer has an `id` or a `problem`, in the order of the submissions."""
        bodies = [_with_key(dict(s), "unique_key", "debounce_key") for s in submissions]
        out: list[BatchItem] = []
        part: list[bytes] = []

        async def send() -> None:
            body = b'{"items":[' + b",".join(part) + b"]}"
            part.clear()
            out.extend((await self.api.call("POST", "/v1/executions:batch", body))["items"])

        size = 0
        for text in map(encode, bodies):
            size += len(text)
            if part and (len(part) == _MOST_BATCH or size > _MOST_BYTES):
                await send()
                size = len(text)
            part.append(text)
        if part:
            await send()
        return out

    async def get(self, id: str) -> Snapshot:
        """How an execution is."""
        return await self.api.call("GET", path("executions", id))

    async def why(self, id: str) -> Explanation:
        """Why an execution does not run, or what it does."""
        return await self.api.call("GET", path("executions", id, "why"))

    async def result(self, id: str, *, within: float | None = None) -> Result:
        """Wait until an execution has ended: its `state`, and `output` or `failure`.

        TimedOut after `within` seconds.
        """
        until = None if within is None else time.monotonic() + within
        while True:
            left = _MOST_WAIT if until is None else until - time.monotonic()
            wait = max(0, min(_MOST_WAIT, int(left)))
            answer = await self.api.call(
                "GET",
                path("executions", id, "result"),
                headers={"Prefer": f"wait={wait}"} if wait else None,
                timeout=wait + self.api.timeout,
            )
            if answer.get("state") in _ENDED:
                return answer
            if until is not None:
                left = until - time.monotonic()
                if left <= 0:
                    raise TimedOut(f"{id} has not ended, it is {answer.get('state')}")
                if left < 1:
                    await asyncio.sleep(min(left, 0.1))

    async def run(self, kind: str, input: Any = None, **options: Unpack[SubmissionOptions]) -> Any:
        """Submit an execution, wait for its end, and return its output. FlowFabricError if it does not succeed."""
        made = await self.submit(kind, input, **options)
        answer = await self.result(made["id"])
        if answer["state"] != "completed":
            failure = answer.get("failure")
            if failure:
                raise FlowFabricError(failure["category"], failure.get("message", ""))
            raise FlowFabricError(answer["state"], answer.get("reason", ""))
        return value_of(answer.get("output"))

    async def tail(
        self,
        id: str,
        *,
        after: str = "",
        attempt: int | None = None,
        from_now: bool = False,
        durable: bool = False,
        own: bool = False,
    ) -> AsyncIterator[TailEvent]:
        """Follow the events of an execution until its end.

        `position` of an event is the `after` of a later call. A connection that was cut is made again, and no event
        is lost or given twice. `durable` leaves out what was for live readers, `own` the events of children.
        """
        where = {"attempt": attempt, "from_now": from_now, "durable": durable, "own": own}
        async with aclosing(self._follow(path("executions", id, "events"), where, after)) as events:
            async for event in events:
                yield cast(TailEvent, event)
                if event.get("kind") == "end" and not event.get("child"):
                    return

    async def _follow(self, target: str, query: JSON, after: str) -> AsyncGenerator[JSON, None]:
        """The events of a stream, over as many connections as it takes. The server says when there are no more."""
        backoff = Backoff(self.api.retry_for)
        ended = False
        while True:
            headers = {"Accept": "text/event-stream"}
            if after:
                headers["Last-Event-ID"] = after
            try:
                answer = await self.api.open("GET", target + query_of(query), headers, b"", self._quiet)
                try:
                    if answer.status == 204:
                        return
                    async for event in sse.events(_heard(answer.pieces(), backoff), MAX_BODY):
                        body = decode_object(event.data)
                        if event.name == "problem":
                            status = body.get("status")
                            raise refusal(status if isinstance(status, int) else 0, body, None)
                        after = event.id or after
                        backoff.restart()
                        ended = False
                        yield body
                finally:
                    await answer.close()
                if ended:
                    raise ConnectionLost("the stream of events ended early")
                ended = True  # the next answer tells whether that was all
            except FlowFabricError as e:
                if not again(e):
                    raise
                await backoff.pause(e)

    def logs(
        self, id: str, *, attempt: int | None = None, level: str | None = None, limit: int | None = None
    ) -> AsyncIterator[LogLine]:
        """What the handler of an execution logged, as far as it is kept, the oldest line first."""
        return self.api.pages(path("executions", id) + "/logs", _given(attempt=attempt, level=level, limit=limit))

    def follow_logs(
        self, id: str, *, attempt: int | None = None, level: str | None = None, after: str = ""
    ) -> AsyncIterator[LogLine]:
        """Follow what the handler of an execution logs, the oldest line first.

        It ends with the execution, or with the attempt if one is named. `cursor` of a line is the `after` of a later
        call. A connection that was cut is made again, and no line is lost or given twice.
        """
        lines = self._follow(path("executions", id, "logs", "events"), _given(attempt=attempt, level=level), after)
        return cast(AsyncIterator[LogLine], lines)

    async def send(self, id: str, mailbox: str, payload: Any = None, *, idempotency_key: str | None = None) -> Sent:
        """Send a message to a mailbox of an execution."""
        body = _with_key({"mailbox": mailbox, "payload": payload, **_given(idempotency_key=idempotency_key)})
        return await self.api.call("POST", path("executions", id, "messages"), body)

    async def signal(
        self,
        token: str,
        payload: Any = None,
        *,
        name: str | None = None,
        category: str | None = None,
        correlation: str | None = None,
        idempotency_key: str | None = None,
    ) -> Delivered:
        """Send a signal with the token of its waitpoint."""
        more = _given(name=name, category=category, correlation=correlation, idempotency_key=idempotency_key)
        return await self.api.call("POST", path("signals"), _with_key({"token": token, "payload": payload, **more}))

    async def answer(
        self,
        id: str,
        waitpoint: str,
        payload: Any = None,
        *,
        name: str | None = None,
        category: str | None = None,
        idempotency_key: str | None = None,
    ) -> Delivered:
        """Answer a waitpoint as an operator. A payload such as {"choice": "yes"} answers a question."""
        more = _given(name=name, category=category, idempotency_key=idempotency_key)
        target = path("executions", id, "waitpoints", waitpoint) + ":answer"
        return await self.api.call("POST", target, _with_key({"payload": payload, **more}))

    async def cancel(self, id: str, *, reason: str | None = None) -> None:
        """Cancel an execution."""
        await self.api.call("POST", path("executions", id) + ":cancel", _given(reason=reason))

    async def stop(self, id: str, *, reason: str | None = None) -> Stopped:
        """Ask an execution to end its turn and to keep what it has."""
        return await self.api.call("POST", path("executions", id) + ":stop", _given(reason=reason))

    def executions(self, **filters: Unpack[ListOptions]) -> AsyncIterator[Listed]:
        """All executions that match."""
        return self.api.pages(path("executions"), filters)

    def approvals(self, **filters: Unpack[ApprovalListOptions]) -> AsyncIterator[Approval]:
        """Open waits, the oldest first. With `asked` those with a question."""
        return self.api.pages(path("approvals"), filters)

    async def publish(
        self, subject: str, data: Any = None, *, id: str | None = None, namespace: str | None = None
    ) -> Published:
        """Publish an event: each trigger of its subject whose filter the data matches starts one execution.

        The data is its input. The server knows an `id` for a day: a repeat starts nothing and is a `duplicate`, and
        other data under it is refused with idempotency_conflict. Without an id one is made here.
        """
        body = {"subject": subject, "data": data, "id": id or str(uuid.uuid4()), **_given(namespace=namespace)}
        return await self.api.call("POST", "/v1/events:publish", body)

    # Flows

    async def create_flow(self, kind: str, nodes: Iterable[NodeBody], **options: Unpack[FlowBodyOptions]) -> FlowMade:
        """Create a flow. The answer has its `id`, and the executions of its `nodes` by name."""
        body = _with_key({"kind": kind, "nodes": list(nodes), **options}, "unique_key")
        return await self.api.call("POST", path("flows"), body)

    async def get_flow(self, id: str) -> FlowSnapshot:
        """How a flow is, and its nodes."""
        return await self.api.call("GET", path("flows", id))

    async def cancel_flow(self, id: str, *, policy: str | None = None, reason: str | None = None) -> FlowCancellation:
        """Cancel a flow: cancel_all, cancel_pending or flow_only."""
        return await self.api.call("POST", path("flows", id) + ":cancel", _given(policy=policy, reason=reason))

    def flows(self, **filters: Unpack[FlowListOptions]) -> AsyncIterator[FlowSummary]:
        """All flows that match."""
        return self.api.pages(path("flows"), filters)

    # Schedules

    async def put_schedule(self, name: str, kind: str, **options: Unpack[SchedulePutOptions]) -> ScheduleSet:
        """Create a schedule, or change it."""
        return await self.api.call("PUT", path("schedules", name), {"kind": kind, **options})

    async def get_schedule(self, name: str, *, next: int | None = None) -> ScheduleInfo:
        """How a schedule is, and its next runs."""
        return await self.api.call("GET", path("schedules", name), query={"next": next})

    async def pause_schedule(self, name: str, *, reason: str | None = None) -> None:
        """Let a schedule start nothing until it is resumed."""
        await self.api.call("POST", path("schedules", name) + ":pause", _given(reason=reason))

    async def resume_schedule(self, name: str, *, reason: str | None = None) -> None:
        """Resume a schedule that was paused."""
        await self.api.call("POST", path("schedules", name) + ":resume", _given(reason=reason))

    async def delete_schedule(self, name: str, *, reason: str | None = None) -> bool:
        """Delete a schedule. False: there is none, or a repeat of the call found it deleted."""
        try:
            await self.api.call("DELETE", path("schedules", name), query={"reason": reason})
        except FlowFabricError as e:
            if e.status == 404:
                return False
            raise
        return True

    def schedules(self, *, limit: int | None = None) -> AsyncIterator[ScheduleInfo]:
        """All schedules."""
        return self.api.pages(path("schedules"), {"limit": limit})


_ENDED = ("completed", "failed", "cancelled", "expired", "skipped")


async def _heard(pieces: AsyncIterator[bytes], backoff: Backoff) -> AsyncIterator[bytes]:
    """Pieces of a stream. Each but the first, which every connection has, says that the server is well."""
    first = True
    async for piece in pieces:
        if not first:
            backoff.restart()
        first = False
        yield piece


def _given(**members: Any) -> JSON:
    return {name: value for name, value in members.items() if value is not None}
