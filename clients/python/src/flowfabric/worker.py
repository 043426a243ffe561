"""The worker: it takes executions, runs handlers, and keeps their leases."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import signal
import ssl
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from .api import Api, again, encode
from .claims import LOOPS, Claims
from .errors import ConnectionLost, FlowFabricError, Permanent, Retry
from .frames import Frames
from .http import HTTPTransport, Transport
from .leases import Leases
from .log import LEVELS, LogLevel
from .models import Claimed
from .task import Ended, Task
from .threads import in_thread

JSON = dict[str, Any]
Handler = Callable[..., Any]
H = TypeVar("H", bound=Handler)
log = logging.getLogger("flowfabric")

_MOST_RESULT = 1024 * 1024
_BAD_RESULT = "invalid_result"
_PATIENCE = 10.0  # with a server that opens no session, before a warning
_LAST_WORDS = 5.0  # for handlers that are cancelled, and for the calls that end a session


class Worker:
    """Handlers of many kinds in one session. A handler that is no coroutine function runs in a thread.

    `concurrency` is how many handlers run at once, `lease` for how many seconds a worker that died keeps its
    executions, 2..600, `drain` for how many seconds handlers may go on after stop. `ssl_context` is for an address that
    begins with https, where the default trusts what the machine trusts. `keep_logs` is the level from which on lines of
    Task.logger are kept with their execution: debug, info, warn, error, or off.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        token: str = "",
        *,
        name: str = "python",
        concurrency: int = 8,
        lease: float = 30.0,
        drain: float = 20.0,
        namespaces: Sequence[str] = (),
        lanes: Sequence[str] = (),
        lane_weights: dict[str, int] | None = None,
        capabilities: Sequence[str] = (),
        labels: dict[str, str] | None = None,
        version: str = "",
        keep_logs: LogLevel = "info",
        ssl_context: ssl.SSLContext | None = None,
        transport: Transport | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}, want at least 1")
        if not 2 <= lease <= 600:
            raise ValueError(f"lease is {lease} s, want 2..600")
        if keep_logs not in (*LEVELS, "off"):
            raise ValueError(f"keep_logs is {keep_logs!r}, want debug, info, warn, error or off")
        self.keep_logs: LogLevel = keep_logs
        self.handlers: dict[str, Handler] = {}
        self._schemas: dict[str, JSON] = {}
        self.concurrency, self.lease, self.drain = concurrency, lease, drain
        more = {"namespaces": list(namespaces), "lanes": list(lanes), "lane_weights": lane_weights,
                "capabilities": list(capabilities), "labels": labels, "version": version}  # fmt: skip
        self._says = {k: v for k, v in more.items() if v} | {
            "name": name, "concurrency": concurrency, "lease_ms": int(lease * 1000)
        }  # fmt: skip
        self._own = transport is None
        self._transport = transport or HTTPTransport(url, ssl_context=ssl_context, max_idle=concurrency + 8)
        self._api = Api(token, self._transport, retry_for=None)
        self._session = ""
        self.running: dict[str, Task] = {}  # what it has leases of
        self._works: set[asyncio.Task[None]] = set()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def handler(self, kind: str, *, input: JSON | None = None, result: JSON | None = None) -> Callable[[H], H]:
        """A decorator: the function handles executions of this kind. It gets the Task and the input.

        `input` and `result` are JSON Schemas, which the worker publishes when it starts: from then on an input that
        does not fit is refused when it is submitted, and `flowfabric types` writes types of both. Default: it says
        nothing.
        """

        def register(do: H) -> H:
            if kind in self.handlers:
                raise ValueError(f"kind {kind!r} has a handler already")
            self.handlers[kind] = do
            if schemas := {k: v for k, v in (("input", input), ("result", result)) if v is not None}:
                self._schemas[kind] = schemas
            return do

        return register

    # Calls

    async def call(self, verb: str, body: JSON | bytes, *, timeout: float | None = None) -> Any:
        """A call of the worker protocol. A session that is gone is opened again: leases do not depend on it."""
        while True:
            session = self._session
            try:
                return await self._api.call("POST", f"/v1/workers/{session}:{verb}", body, timeout=timeout)
            except FlowFabricError as e:
                if e.code != "session_not_found":
                    raise
            await self._open(session)

    async def _open(self, gone: str) -> None:
        async with self._opening:
            if self._session == gone:  # else another call opened it
                body: JSON = {**self._says, "kinds": sorted(self.handlers)}
                if self._schemas:
                    body["schemas"] = self._schemas
                self._session = (await self._register(body))["session"]
                log.info("session %s takes %s", self._session, ", ".join(sorted(self.handlers)))

    async def _register(self, body: JSON) -> Any:
        while True:
            try:
                return await self._api.call("POST", "/v1/workers", body, retry_for=_PATIENCE)
            except FlowFabricError as e:
                if not again(e):
                    raise
                log.warning("the server does not answer, trying on: %s", e)

    # Life

    def stop(self) -> None:
        """Take no more work, and let handlers end. It may be called from a signal handler or another thread."""
        if self._loop and self._stop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    def run_blocking(self) -> None:
        """run, for a program without asyncio."""
        asyncio.run(self.run())

    async def run(self, *, signals: bool = True) -> None:
        """Work until stop, SIGTERM or SIGINT; then drain. A refusal of the session itself is raised."""
        if not self.handlers:
            raise ValueError("the worker has no handlers")
        self._loop, self._stop, self._opening = asyncio.get_running_loop(), asyncio.Event(), asyncio.Lock()
        self._empty = asyncio.Event()
        self._empty.set()
        self._claims, self.frames, self._leases = Claims(self), Frames(self), Leases(self)
        caught = self._catch() if signals else []
        serving = asyncio.create_task(self._serve())
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for number in caught:
                self._loop.remove_signal_handler(number)
            stopping.cancel()
            failed = serving.exception() if serving.done() and not serving.cancelled() else None
            try:
                await self._end(serving)
            finally:
                serving.cancel()
        if failed:
            raise failed

    async def _serve(self) -> None:
        await self._open("")
        loops = [asyncio.create_task(self._claims.run()) for _ in range(LOOPS)]
        loops += [asyncio.create_task(self.frames.run()), asyncio.create_task(self._leases.run())]
        try:
            await asyncio.gather(*loops)
        finally:
            for one in loops:
                one.cancel()
            await asyncio.gather(*loops, return_exceptions=True)

    def _catch(self) -> list[int]:
        caught: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # Windows, or another thread
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
                caught.append(number)
        return caught

    async def _end(self, serving: asyncio.Task[None]) -> None:
        """Let handlers end, cancel those that do not, and give their executions back."""
        self._claims.stop()
        if not serving.done():  # else nothing can be completed any more
            await self._emptied(serving, self.drain)
        left = list(self.running.values())
        for task in left:
            self.lose(task)
        await self._emptied(serving, _LAST_WORDS)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        left = [task for task in left if task.lost or task.lease in self.running]
        self.running.clear()
        try:
            async with asyncio.timeout(_LAST_WORDS):
                for i in range(0, len(left), 16):
                    await asyncio.gather(*(self._release(task) for task in left[i : i + 16]))
                if self._session:
                    await self._api.call("POST", f"/v1/workers/{self._session}:close", {"leases": []})
        except (FlowFabricError, TimeoutError) as e:
            log.warning("the session was not closed: %s", e)
        if self._own:
            await self._transport.close()

    async def _emptied(self, serving: asyncio.Task[None], within: float) -> None:
        """Wait until nothing is left that runs or is to be completed, while that can be."""
        empty = asyncio.create_task(self._empty.wait())
        waits = {empty} if serving.done() else {empty, serving}
        await asyncio.wait(waits, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        empty.cancel()

    async def _release(self, task: Task) -> None:
        with contextlib.suppress(FlowFabricError):  # it may have ended
            await self._api.call("POST", f"/v1/workers/{self._session}:release", {"lease": task.lease})

    # Executions

    def start(self, claim: Claimed) -> None:
        """Run the handler of an execution that was taken, or give it back after stop."""
        task = Task(self, claim)
        task.began = time.monotonic()
        task.until = self._leases.until(task.began)
        self.running[task.lease] = task
        self._empty.clear()
        task.work = self._spawn(self._give_back(task) if self._claims.stopped else self._work(task))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        out = asyncio.create_task(work)
        self._works.add(out)
        out.add_done_callback(self._works.discard)
        return out

    def lose(self, task: Task) -> None:
        """Cancel the handler of a task, and tell nobody."""
        if not task.lost and not task.completing:
            task.lost = True
            task.forget_lines()
            if task.work and task.work is not asyncio.current_task():
                task.work.cancel()

    def forget(self, task: Task) -> None:
        """The worker has nothing more to do with an execution."""
        self.running.pop(task.lease, None)
        self._claims.wake()
        if not self.running:
            self._empty.set()

    def refused(self, task: Task, code: str) -> None:
        """The result of a task was refused: fail it."""
        task.completing, task.ended = False, False
        task.work = self._spawn(self._fail(task, Permanent(f"the result was refused: {code}", category=_BAD_RESULT)))

    # Handlers

    async def _work(self, task: Task) -> None:
        try:
            if task.claim.get("input_lost"):
                raise Permanent("the input was deleted from the store", category="input_lost")
            try:
                result = await self._handle(task)
            finally:
                self._free(task)  # the next handler runs while this execution is settled
            text = _result(result)
            await task.send_all()
            task.check()
            task.completing = task.ended = True
            self._claims.complete(task, text)
        except Ended:
            pass
        except asyncio.CancelledError:
            if not task.lost and not task.ended:
                await self._give_back(task)
        except Exception as e:
            await self._fail(task, e)
        except BaseException as e:  # the execution comes back when its lease is over
            if not task.lost and not task.ended:
                log.warning("%s was not settled: %r", task.id, e)
        finally:
            self._free(task)
            if not task.completing:
                self.forget(task)

    def _free(self, task: Task) -> None:
        """Let another handler run."""
        if not task.freed:
            task.freed = True
            self._claims.slot_free()

    async def _handle(self, task: Task) -> Any:
        do = self.handlers.get(task.kind)
        if do is None:
            raise Permanent(f"the worker has no handler of kind {task.kind}")
        if inspect.iscoroutinefunction(do) or inspect.iscoroutinefunction(getattr(do, "__call__", None)):
            return await do(task, task.input)
        return await in_thread(do, task)

    async def _fail(self, task: Task, e: Exception) -> None:
        try:
            if not task.lost and not task.ended:
                meant = isinstance(e, (Retry, Permanent, ConnectionLost))  # where it was raised tells nothing
                log.info("%s fails: %s", task.id, e, exc_info=None if meant else e)
                await task.fail(e)
        except FlowFabricError as refused:
            log.warning("%s was not settled: %r", task.id, refused)
        except asyncio.CancelledError:
            pass
        finally:
            self.forget(task)

    async def _give_back(self, task: Task) -> None:
        """Release an execution that nobody works on: it came after stop, or its handler was cancelled."""
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await task.call("release")
        except (FlowFabricError, TimeoutError, asyncio.CancelledError) as e:
            log.warning("%s was not released: %r", task.id, e)
        finally:
            self._free(task)
            self.forget(task)


def _result(value: Any) -> bytes:
    """A result as JSON."""
    try:
        text = encode(value)
    except FlowFabricError as e:
        raise Permanent(f"the result was refused: {e}", category=_BAD_RESULT) from e
    if len(text) > _MOST_RESULT:
        raise Permanent(f"the result has {len(text)} bytes, want at most {_MOST_RESULT}", category=_BAD_RESULT)
    return text
