"""Frames: output of handlers, sent in the background, for many executions in one call."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from .api import encode
from .errors import FlowFabricError
from .models import FramesAnswer

if TYPE_CHECKING:
    from .task import Task
    from .worker import Worker

_MOST_BATCHES = 100  # of a call
_MOST_FRAMES = 100  # of a batch
_MOST_BATCH = 512 * 1024  # bytes
_MOST_CALL = 1200 * 1024


class Output:
    """The frames of one run that were not sent yet."""

    def __init__(self, task: Task, last: int) -> None:
        self.task = task
        self.last = last  # sequence of the newest frame that is stored
        self.pending: deque[bytes] = deque()
        self.error: BaseException | None = None
        self._sent: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Wait until all frames are stored, or refused."""
        while self.pending:
            if self._sent is None:
                self._sent = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._sent)
        if self.error:
            raise self.error

    def batch(self, room: int) -> bytes:
        """The next frames as a batch of at most `room` bytes; at least one frame. `sending` says how many."""
        self.sending, size = 0, 0
        room = min(room, _MOST_BATCH)
        for frame in self.pending:
            if self.sending and (self.sending >= _MOST_FRAMES or size + len(frame) > room):
                break
            self.sending, size = self.sending + 1, size + len(frame) + 1
        frames = b",".join([self.pending[i] for i in range(self.sending)])
        return b'{"lease":%b,"first":%d,"frames":[%b]}' % (encode(self.task.lease), self.last + 1, frames)

    def stored(self) -> None:
        """The frames of the last batch are stored."""
        for _ in range(self.sending):
            self.pending.popleft()
        self.last += self.sending
        self._settle()

    def refuse(self, error: BaseException) -> None:
        """Drop the frames. The run gets the error from its next frame or flush."""
        self.pending.clear()
        self.error = error
        self._settle()

    def _settle(self) -> None:
        if not self.pending and self._sent:
            self._sent.set_result(None)
            self._sent = None


class Frames:
    """Sends the frames of all runs of a worker, one call at a time: what comes meanwhile goes with the next."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._outputs: dict[Output, None] = {}  # those with frames, in the order of their turns
        self._some = asyncio.Event()

    def add(self, output: Output, frame: bytes) -> None:
        """Send a frame soon."""
        output.pending.append(frame)
        self._outputs[output] = None
        self._some.set()

    async def run(self) -> None:
        """Send frames until cancelled."""
        while True:
            await self._some.wait()
            batches: list[bytes] = []
            outputs: list[Output] = []
            size = 0
            for output in list(self._outputs):
                if output.pending and size < _MOST_CALL and len(outputs) < _MOST_BATCHES:
                    batch = output.batch(_MOST_CALL - size)
                    if outputs and size + len(batch) > _MOST_CALL:
                        break
                    outputs.append(output)
                    batches.append(batch)
                    size += len(batch)
                if output in outputs[-1:] or not output.pending:
                    del self._outputs[output]
            if outputs:
                await self._send(outputs, batches)
            for output in outputs:
                if output.pending:
                    self._outputs[output] = None
            if not self._outputs:
                self._some.clear()

    async def _send(self, outputs: list[Output], batches: list[bytes]) -> None:
        try:
            answer: FramesAnswer = await self._worker.call("frames", b'{"batches":[%b]}' % b",".join(batches))
        except FlowFabricError as e:
            if len(outputs) == 1:
                outputs[0].refuse(e)
            else:  # one of them is wrong, and refuses all
                for output, batch in zip(outputs, batches, strict=True):
                    await self._send([output], [batch])
            return
        for output, one in zip(outputs, answer.get("batches", []), strict=True):
            code = one.get("code")
            if not code:
                output.stored()
                continue
            output.refuse(FlowFabricError(code, "the frames were refused"))
            if not one["held"]:
                self._worker.lose(output.task)
