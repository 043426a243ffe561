"""Claims: they take executions for the free slots of a worker, and complete what is done."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from .api import encode
from .errors import FlowFabricError
from .models import ClaimAnswer, Claimed

if TYPE_CHECKING:
    from .task import Task
    from .worker import Worker

log = logging.getLogger("flowfabric")

LOOPS = 4
"""How many claims may be under way at once: one that waits for work, and others that complete what is done."""

_MOST = 100  # of a claim
_FEW = 16
_MOST_BYTES = 1024 * 1024
_WAIT = 20.0


class Claims:
    """The claims of a worker. It has room for `free` more handlers.

    A claim that has nothing to complete waits at the server for work, and the slots that it asked for are taken
    meanwhile. Others complete what is done, and take what there is for the slots that are left.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.free = worker.concurrency
        self.stopped = False
        # Handlers that begin with one claim may end at once, and then wait for the next claim together. So a claim has
        # a part of them only.
        self._most = min(_MOST, max(_FEW, worker.concurrency // 16))
        self._done: deque[tuple[Task, bytes]] = deque()
        self._waiting: asyncio.Task[Any] | None = None  # the call that waits for work
        self._idle: deque[asyncio.Future[None]] = deque()  # loops with nothing to do

    def slot_free(self) -> None:
        """A handler has ended."""
        self.free += 1
        self.wake()

    def _room(self) -> int:
        """For how many executions there is room. There may be as many again that are settled, if that is slow."""
        if self.stopped:
            return 0
        return min(self.free, self._most, 2 * self._worker.concurrency - len(self._worker.running))

    def complete(self, task: Task, result: bytes) -> None:
        """Complete an execution with the next claim. `result` is JSON."""
        self._done.append((task, b'{"lease":%b,"result":%b}' % (encode(task.lease), result)))
        self.wake()

    def stop(self) -> None:
        """Take nothing more. What is done is completed still."""
        self.stopped = True
        if self._waiting:
            self._waiting.cancel()

    def wake(self) -> None:
        """Have a loop look again whether it can claim."""
        while self._idle:
            one = self._idle.popleft()
            if not one.done():
                one.set_result(None)
                return

    async def run(self) -> None:
        """Claim until cancelled. LOOPS of these run at once."""
        while True:
            while not self._done and (self._waiting or self._room() <= 0):
                idle = asyncio.get_running_loop().create_future()
                self._idle.append(idle)
                await idle
            await self._claim()

    def _take(self) -> list[tuple[Task, bytes]]:
        """What the next claim completes."""
        out: list[tuple[Task, bytes]] = []
        size = 0
        while self._done and len(out) < self._most:
            size += len(self._done[0][1])
            if out and size > _MOST_BYTES:
                break
            out.append(self._done.popleft())
        return out

    async def _claim(self) -> None:
        done = self._take()
        most = max(0, self._room())
        self.free -= most
        claims: list[Claimed] = []
        try:
            wait = 0.0 if done else _WAIT
            complete = b",".join([text for _, text in done])
            body = b'{"max":%d,"wait_ms":%d,"complete":[%b]}' % (most, 1000 * wait, complete)
            call = self._worker.call("claim", body, timeout=wait + 30)
            answer: ClaimAnswer = await (call if done else self._wait(call))
            claims = answer["executions"]
        except FlowFabricError as e:
            if not done or e.status not in (400, 413):
                raise
            await self._complete_each(done)  # one of them is wrong, and refuses all
            return
        finally:
            self.free += most - len(claims)
            self.wake()
        for claim in claims:
            self._worker.start(claim)
        for (task, _), one in zip(done, answer.get("completed", []), strict=True):
            self._settle(task, one["held"], one.get("code", ""))

    async def _wait(self, call: Coroutine[Any, Any, ClaimAnswer]) -> ClaimAnswer:
        """The answer of a call that stop may end."""
        self._waiting = asyncio.create_task(call)
        try:
            return await self._waiting
        except asyncio.CancelledError:
            self._waiting.cancel()
            me = asyncio.current_task()
            if not self.stopped or (me and me.cancelling()):
                raise
            return {"executions": []}
        finally:
            self._waiting = None

    async def _complete_each(self, done: list[tuple[Task, bytes]]) -> None:
        for task, text in done:
            try:
                await self._worker.call("complete", text)
            except FlowFabricError as e:
                self._settle(task, e.status not in (404, 409), e.code)
            else:
                self._settle(task, True, "")

    def _settle(self, task: Task, held: bool, code: str) -> None:
        if code and held:
            self._worker.refused(task, code)
            return
        if code:
            log.info("%s is not ours any more: %s", task.id, code)
        self._worker.forget(task)
