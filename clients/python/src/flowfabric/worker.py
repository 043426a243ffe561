"""The worker: it takes executions, runs handlers, and keeps their leases."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .api import Api
from .errors import ConnectionLost, FlowFabricError, Permanent
from .http import HTTPTransport, Transport
from .task import Ended, Task
from .threads import in_thread

JSON = dict[str, Any]
Handler = Callable[..., Any]
H = TypeVar("H", bound=Handler)
log = logging.getLogger("flowfabric")

_MOST_CLAIM = 100
_MOST_LEASES = 1000
_WAIT = 20.0
_LAST_WORDS = 5.0  # for handlers that are cancelled, and for the calls that end a session


class Worker:
    """Handlers of many kinds in one session. A handler that is no coroutine function runs in a thread.

    `concurrency` is how many handlers run at once, `lease` for how many seconds a worker that died keeps its
    executions, `drain` how long handlers may go on after stop.
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
        transport: Transport | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}, want at least 1")
        if not 2 <= lease <= 600:
            raise ValueError(f"lease is {lease} s, want 2..600")
        self.handlers: dict[str, Handler] = {}
        self._schemas: dict[str, JSON] = {}
        self.concurrency, self.lease, self.drain = concurrency, lease, drain
        more = {"namespaces": list(namespaces), "lanes": list(lanes), "lane_weights": lane_weights,
                "capabilities": list(capabilities), "labels": labels, "version": version}  # fmt: skip
        self._says = {k: v for k, v in more.items() if v} | {
            "name": name, "concurrency": concurrency, "lease_ms": int(lease * 1000)
        }  # fmt: skip
        self._own = None if transport else HTTPTransport(url, max_idle=concurrency + 8)
        self._api = Api(url, token, transport=transport or self._own, retry_for=None)
        self._session = ""
        self._running: dict[str, Task] = {}
        self._works: set[asyncio.Task[None]] = set()
        self._runs: dict[Task, asyncio.Task[None]] = {}  # those whose handler may be cancelled
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

    async def call(self, verb: str, body: JSON, *, timeout: float | None = None) -> Any:
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
                body = {**self._says, "kinds": sorted(self.handlers)}
                if self._schemas:
                    body["schemas"] = self._schemas
                self._session = (await self._api.call("POST", "/v1/workers", body))["session"]
                log.info("session %s takes %s", self._session, ", ".join(sorted(self.handlers)))

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
        self._settled = asyncio.Event()
        self._slots = asyncio.Semaphore(self.concurrency)
        caught = self._catch() if signals else []
        taking = asyncio.create_task(self._take())
        renewing = asyncio.create_task(self._renew())
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({taking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for number in caught:
                self._loop.remove_signal_handler(number)
            failed = taking.done() and not taking.cancelled() and taking.exception()
            for one in (taking, stopping):
                one.cancel()
            await asyncio.gather(taking, stopping, return_exceptions=True)
            await self._end(renewing)
        if failed:
            raise failed

    def _catch(self) -> list[int]:
        caught = []
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # Windows, or another thread
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
                caught.append(number)
        return caught

    async def _end(self, renewing: asyncio.Task[None]) -> None:
        """Let handlers end, cancel those that do not, and give their executions back."""
        if self._works:
            await asyncio.wait(self._works, timeout=self.drain)
        left = list(self._running)
        for task in list(self._running.values()):
            self.lose(task)
        if self._works:
            await asyncio.wait(self._works, timeout=_LAST_WORDS)
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        try:
            async with asyncio.timeout(_LAST_WORDS):
                for some in _parts(left):
                    for lease in some:
                        with contextlib.suppress(FlowFabricError):
                            await self._api.call("POST", f"/v1/workers/{self._session}:release", {"lease": lease})
                if self._session:
                    await self._api.call("POST", f"/v1/workers/{self._session}:close", {"leases": []})
        except (FlowFabricError, TimeoutError) as e:
            log.warning("the session was not closed: %s", e)
        if self._own:
            await self._own.close()

    async def _take(self) -> None:
        await self._open("")
        while True:
            self._settled.clear()
            if len(self._running) >= 2 * self.concurrency:  # the server is slow to settle
                await self._settled.wait()
                continue
            await self._slots.acquire()
            free = 1
            while free < min(_MOST_CLAIM, 2 * self.concurrency - len(self._running)) and not self._slots.locked():
                await self._slots.acquire()
                free += 1
            claims: list[JSON] = []
            try:
                body = {"max": free, "wait_ms": int(_WAIT * 1000)}
                claims = (await self.call("claim", body, timeout=_WAIT + 30))["executions"]
            finally:
                for _ in range(free - len(claims)):
                    self._slots.release()
            for claim in claims:
                task = Task(self, claim)
                task.until = time.monotonic() + self.lease
                self._running[task.lease] = task
                work = asyncio.create_task(self._work(task))
                self._runs[task] = work
                self._works.add(work)
                work.add_done_callback(self._works.discard)

    # Leases

    async def _renew(self) -> None:
        """Renew all leases, three times as often as need be."""
        while True:
            await asyncio.sleep(self.lease / 3)
            for some in _parts(list(self._running)):
                began = time.monotonic()
                try:
                    async with asyncio.timeout(self.lease / 3):
                        answers = (await self.call("renew", {"leases": some}))["leases"]
                except (FlowFabricError, TimeoutError) as e:
                    log.warning("leases were not renewed: %s", e)
                    self._expire(some)
                    continue
                for answer in answers:
                    task = self._running.get(answer["lease"])
                    if task is None:
                        continue
                    if not answer["held"]:
                        log.info("%s is not ours any more: %s", task.id, answer.get("code"))
                        self.lose(task)
                        continue
                    task.until = began + self.lease
                    if answer.get("stopping"):
                        task.stopping.set()

    def _expire(self, leases: Iterable[str]) -> None:
        """Give up what nobody renewed in time: another worker may have it."""
        for lease in leases:
            task = self._running.get(lease)
            if task and task.until < time.monotonic():
                self.lose(task)

    def lose(self, task: Task) -> None:
        """Cancel the handler of a task, and tell nobody."""
        if not task.lost:
            task.lost = True
            work = self._runs.pop(task, None)
            if work and work is not asyncio.current_task():
                work.cancel()

    # Handlers

    async def _work(self, task: Task) -> None:
        try:
            try:
                if task.claim.get("input_lost"):
                    raise Permanent("the input was deleted from the store", category="input_lost")
                try:
                    result = await self._handle(task)
                finally:
                    self._free(task)  # the next handler runs while this execution is settled
                await self._complete(task, result)
            except Exception as e:
                if not task.lost and not task.ended:
                    log.info("%s fails: %s", task.id, e, exc_info=not isinstance(e, ConnectionLost))
                    await task.fail(e)
            except BaseExceptionGroup:
                if not task.ended and not task.lost:
                    raise
        except Ended:
            pass
        except asyncio.CancelledError:
            if not task.lost and not task.ended:
                await self._cancelled(task)
        except BaseException as e:  # the execution comes back when its lease is over
            log.warning("%s was not settled: %r", task.id, e)
        finally:
            self._running.pop(task.lease, None)
            self._runs.pop(task, None)
            self._free(task)
            self._settled.set()

    def _free(self, task: Task) -> None:
        """Let another handler run."""
        if not task.freed:
            task.freed = True
            self._slots.release()

    async def _handle(self, task: Task) -> Any:
        do = self.handlers.get(task.kind)
        if do is None:
            raise Permanent(f"the worker has no handler of kind {task.kind}")
        if inspect.iscoroutinefunction(do) or inspect.iscoroutinefunction(getattr(do, "__call__", None)):
            return await do(task, task.input)
        return await in_thread(do, task)

    async def _complete(self, task: Task, result: Any) -> None:
        await task.flush()
        try:
            await task.end("complete", result=result)
        except FlowFabricError as e:
            if e.status in (0, 400, 413) and not isinstance(e, ConnectionLost):
                raise Permanent(f"the result was refused: {e}", category="invalid_result") from e
            raise

    async def _cancelled(self, task: Task) -> None:
        """The handler was cancelled by its own code, or a program cancels run: give the execution back."""
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await task.call("release")
        except (FlowFabricError, TimeoutError, asyncio.CancelledError) as e:
            log.warning("%s was not released: %r", task.id, e)


def _parts(leases: list[str]) -> Iterable[list[str]]:
    for i in range(0, len(leases), _MOST_LEASES):
        yield leases[i : i + _MOST_LEASES]
