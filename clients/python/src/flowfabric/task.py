"""What a handler does with an execution that its worker took."""

from __future__ import annotations

import asyncio
import base64
import inspect
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Unpack

from .api import decode, encode, value_of
from .errors import FlowFabricError, Permanent, Retry
from .frames import Output
from .gates import Gates
from .log import Lines, logger_of
from .models import (
    ChildOutcome,
    ChildrenBodyOptions,
    Claimed,
    NodeBody,
    StoredSignal,
    SuspendBodyOptions,
    SuspendResult,
)

if TYPE_CHECKING:
    from .worker import Worker

JSON = dict[str, Any]
Turn = Literal["", "over", "stopped", "begin"]
log = logging.getLogger("flowfabric")

_MOST_PENDING = 1000
_UNSET: Any = object()

# Refusals which say that the execution is not this worker's any more.
_LOST = {
    "stale_lease", "lease_expired", "lease_revoked", "lease_lost", "cancelled", "execution_deadline", "attempt_timeout",
    "execution_expired", "execution_not_active", "execution_not_found", "execution_terminal", "rewound",
    "stale_owner_cannot_append", "stream_closed",
}


class LeaseLost(BaseException):
    """A handler in a thread gets it when the execution is another worker's by now, or has ended."""


class Ended(BaseException):
    """The run ends here, and nothing more is to be told. It is no Exception, so that handlers do not catch it."""


@dataclass(slots=True)
class Answer:
    """What ended a wait."""

    cause: str
    value: Any = None
    name: str = ""
    by: str = ""
    reason: str = ""
    signals: list[StoredSignal] = field(default_factory=list[StoredSignal])


@dataclass(slots=True)
class Message:
    """A message of a mailbox."""

    number: int
    value: Any
    by: str = ""
    sent_at: str = ""


@dataclass(slots=True)
class Outcome:
    """How a child ended."""

    id: str
    outcome: str
    value: Any = None


class Task(Gates):
    """One run of a handler. After a wait the handler runs again from the top, with the answer."""

    def __init__(self, worker: Worker, claim: Claimed) -> None:
        super().__init__(list(claim.get("gates") or []))
        self._worker = worker
        self.claim = claim
        self.lease: str = claim["lease"]
        self.id: str = claim["id"]
        self.kind: str = claim["kind"]
        self.attempt: int = claim["attempt"]
        self.input = value_of(claim.get("input"))
        self.inputs = {name: value_of(p) for name, p in (claim.get("inputs") or {}).items()}
        self.tags: dict[str, str] = claim.get("tags") or {}
        self.stopping = asyncio.Event()
        self.lost = False
        self.heard: str = claim.get("stopping", "")  # the newest stop
        if self.heard:
            self.stopping.set()
        self.began = self.until = 0.0  # of the run, and how long its lease may be trusted, by time.monotonic
        self.work: asyncio.Task[None] | None = None
        self.completing = False  # its result goes with the next claim
        self.ended = False
        self.freed = False  # its slot is another's
        self.failed_step: tuple[BaseException, str, int] | None = None
        self._steps = {name: value_of(p) for name, p in (claim.get("steps") or {}).items()}
        self._received: dict[str, int] = {}
        self._output = Output(self, claim.get("last_sequence", 0))
        self._lines = Lines(lambda body: self.tell("log", **body), asyncio.get_running_loop())
        self._logger: logging.Logger | None = None

    # Calls

    async def call(self, verb: str, **body: Any) -> Any:
        """A call of the worker protocol about this execution. A lost lease cancels the handler."""
        self.check()
        try:
            return await self._worker.call(verb, {"lease": self.lease, **body})
        except FlowFabricError as e:
            if e.code in _LOST:
                log.info("%s is not ours any more: %s", self.id, e)
                self._worker.lose(self)
                raise asyncio.CancelledError("the lease is lost") from e
            raise

    async def tell(self, verb: str, **body: Any) -> Any:
        """A call that counts also when the lease is over."""
        return await self._worker.call(verb, {"lease": self.lease, **body})

    def check(self) -> None:
        """Raise what ends the run, if its lease is lost or it has ended."""
        if self.lost:
            raise asyncio.CancelledError("the lease is lost")
        if self.ended:
            raise Ended()

    def hear(self, stop: str) -> None:
        """Somebody asked the execution to stop what it says."""
        self.heard = stop
        self.stopping.set()

    async def send_all(self) -> None:
        """Wait until all frames are stored, and lines of the log as far as the server takes them."""
        await self._lines.drain()
        await self.flush()

    def forget_lines(self) -> None:
        """The lease is lost: no more lines are sent."""
        self._lines.close()

    async def end(self, verb: str, **body: Any) -> Any:
        """End the run with a call, after all frames were sent."""
        await self.send_all()
        answer = await self.call(verb, **body)
        self.ended = True
        return answer

    # Output

    @property
    def logger(self) -> logging.Logger:
        """What it is told is kept with the execution, and goes to the logger flowfabric.task.

        Of each attempt the last 1,000 lines and 256 KiB are kept, from the level `keep_logs` of the worker on.
        Attributes are in `extra`. Logging never fails, and never waits for the server.
        """
        if self._logger is None:
            self._logger = logger_of(self._worker.keep_logs, self._lines)
        return self._logger

    async def frame(
        self,
        text: str | None = None,
        *,
        json: Any = _UNSET,
        data: bytes | None = None,
        type: str = "token",
        correlation: str = "",
        source: str = "",
        live_ms: int = 0,
    ) -> None:
        """Append output that others follow live: a text, JSON or bytes. Frames are sent in the background."""
        self.check()
        if self._output.error:
            raise self._output.error
        frame: JSON = {"type": type}
        if text is not None:
            frame["text"] = text
        if json is not _UNSET:
            frame["json"] = json
        if data is not None:
            frame["base64"] = base64.b64encode(data).decode()
        for name, value in (("correlation", correlation), ("source", source), ("live_ms", live_ms)):
            if value:
                frame[name] = value
        self._worker.frames.add(self._output, encode(frame))
        if len(self._output.pending) >= _MOST_PENDING:
            await self.flush()

    async def flush(self) -> None:
        """Wait until all frames are stored."""
        await self._output.wait()

    async def progress(self, percent: int | None = None, message: str = "") -> None:
        """Say how far the execution is."""
        body: JSON = {} if percent is None else {"percent": percent}
        await self.call("progress", **body, **({"message": message} if message else {}))

    # What is kept between runs

    def recorded(self, name: str) -> bool:
        """Whether a step was recorded, by this run or an earlier one."""
        return name in self._steps

    async def step(self, name: str, do: Callable[..., Any], *args: Any, turn: Turn = "") -> Any:
        """Run `do` once, and record what it returns as JSON. Later runs get the record.

        `turn` is for a handler that talks in turns. The last word of one is "over", which is refused with the code
        turn_stopped while `stopping` is set; "stopped" records what there is of a turn that was stopped, and clears
        `stopping`; "begin" is the first step of the next one.
        """
        self.check()
        if name in self._steps:
            return self._steps[name]
        return await self.step_done(name, lambda: do(*args), time.monotonic(), turn)

    async def step_done(self, name: str, do: Callable[[], Any], began: float, turn: Turn = "") -> Any:
        """Record what `do` returns for a step that began at a time of time.monotonic."""
        try:
            value = do()
            if inspect.isawaitable(value):
                value = await value
        except Exception as e:
            self.failed_step = (e, name, int(1000 * (time.monotonic() - began)))
            raise
        took = int(1000 * (time.monotonic() - began))
        value = decode(encode(value))  # so that this run sees what later runs see
        await self.flush()
        said = await self.call("step", name=name, value=value, took_ms=took, **({"turn": turn} if turn else {}))
        self._steps[name] = value
        if turn == "stopped":
            self.stopping.clear()
        elif said.get("stopping"):
            self.hear(said["stopping"])
        return value

    async def token(self, key: str) -> str:
        """The token of a waitpoint, with which somebody can answer it. Hand it out inside a step."""
        return (await self.call("waitpoint", key=key))["token"]

    async def expect(self, key: str, subject: str, where: JSON | None = None) -> None:
        """Have the wait `key` take the next event of a subject that is published and matches.

        `where` has fields of its data, by names joined by dots, and the string, number, bool or None that each must
        have. Call it in every run, before what leads to the event, and then `wait(key)`, whose value is the data. An
        event that comes before the wait is kept for it. The wait has to begin within 7 days.
        """
        await self.call("expect", key=key, subject=subject, **({"where": where} if where else {}))

    async def close_token(self, key: str) -> None:
        """Take the token of a waitpoint back, or expect its event no more."""
        await self.call("close-waitpoint", key=key)

    async def wait(
        self,
        name: str,
        *,
        question: JSON | None = None,
        until: JSON | None = None,
        **options: Unpack[SuspendBodyOptions],
    ) -> Answer:
        """Wait for a signal on the waitpoint of this name, or for `until`. The slot is free meanwhile."""
        recorded = self.claim.get("waits", {}).get(name)
        if recorded is None:
            more: JSON = {"question": question} if question else {}
            if until:
                more["until"] = until
            recorded = (await self._suspend(wait=name, **more, **options))["answer"]
        answer: SuspendResult = recorded
        signals = answer.get("signals") or []
        return Answer(
            answer["cause"],
            value_of(signals[0]["payload"]) if signals else None,
            signals[0]["name"] if signals else "",
            answer.get("by", ""),
            answer.get("reason", ""),
            signals,
        )

    async def ask(
        self,
        name: str,
        title: str,
        *,
        text: str = "",
        choices: Iterable[str | JSON] = (),
        assignee: str = "",
        **options: Unpack[SuspendBodyOptions],
    ) -> Answer:
        """Ask people, and wait for their answer. `name` of the answer is the choice."""
        question: JSON = {"title": title}
        listed = [{"name": c} if isinstance(c, str) else c for c in choices]
        for key, value in (("text", text), ("choices", listed), ("assignee", assignee)):
            if value:
                question[key] = value
        return await self.wait(name, question=question, **options)

    async def _suspend(self, **body: Any) -> JSON:
        await self.send_all()
        reply = await self.call("suspend", **body)
        if reply["suspended"]:
            self.ended = True
            raise Ended()
        return reply

    async def receive(
        self, mailbox: str, *, look: bool = False, **options: Unpack[SuspendBodyOptions]
    ) -> Message | None:
        """The next message of a mailbox, which every later run gets, too.

        Without one it waits; None if the wait ended otherwise. With `look` it does not wait.
        """
        number = self._received[mailbox] = self._received.get(mailbox, 0) + 1
        took = ((self.claim.get("receipts") or {}).get(mailbox) or {}).get(str(number))
        while took is None or took.get("wait"):
            await self.flush()
            took = await self.call("receive", mailbox=mailbox, number=number, **({"look": True} if look else {}))
            if took.get("wait"):
                await self._suspend(until={"mailbox": mailbox, "number": number}, **options)
        if not took["messages"]:
            return None
        m = took["messages"][0]
        return Message(m["number"], value_of(m["payload"]), m.get("by", ""), m.get("sent_at", ""))

    async def children(
        self, wait: str, children: Iterable[NodeBody], **options: Unpack[ChildrenBodyOptions]
    ) -> dict[str, Outcome]:
        """Run other executions, and return how they ended, by name."""
        outcomes: dict[str, ChildOutcome] | None = self.claim.get("children", {}).get(wait)
        if outcomes is None:
            await self.send_all()
            reply = await self.call("children", wait=wait, children=list(children), **options)
            if reply["parked"]:
                self.ended = True
                raise Ended()
            outcomes = reply["outcomes"]
        return {
            name: Outcome(one["id"], one.get("outcome", ""), value_of(one.get("result")))
            for name, one in (outcomes or {}).items()
        }

    # Ends

    async def continue_as(self, input: Any = None) -> None:
        """Start the execution anew with another input, under its id. It does not return."""
        await self.end("continue", input=input)
        raise Ended()

    async def delay(self, seconds: float, *, service: str = "") -> None:
        """Go on later. It does not return."""
        await self.end("delay", delay_ms=max(0, int(seconds * 1000)), **({"service": service} if service else {}))
        raise Ended()

    async def release(self) -> None:
        """Give the execution back. It does not return."""
        await self.end("release")
        raise Ended()

    async def cancel(self, reason: str = "") -> None:
        """Cancel the execution. It does not return."""
        await self.end("cancel", **({"reason": reason} if reason else {}))
        raise Ended()

    async def fail(self, e: BaseException) -> None:
        """Tell that the run failed. The policy of the execution decides whether it is retried."""
        body: JSON = {"message": str(e) if isinstance(e, (Retry, Permanent)) else f"{type(e).__name__}: {e}"}
        body["message"] = body["message"].encode(errors="replace")[:1024].decode(errors="ignore")
        if isinstance(e, (Retry, Permanent)):
            body["category"] = e.category
        if isinstance(e, Permanent):
            body["permanent"] = True
        elif isinstance(e, Retry) and e.after is not None:
            body["retry_after_ms"] = max(0, int(e.after * 1000))
        if self.failed_step and self.failed_step[0] is e:
            body["step"], body["step_took_ms"] = self.failed_step[1:]
        try:
            await self.send_all()
        except FlowFabricError:  # often the reason for which it fails
            pass
        await self.call("fail", **body)
        self.ended = True
