"""Handlers that are no coroutine functions: each runs in a thread, with a task that blocks."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from .gates import Call
from .task import LeaseLost, Task, Turn

T = TypeVar("T")


class BlockingCall:
    """A call to a service, as flowfabric.gates.Call, whose methods block."""

    def __init__(self, task: BlockingTask, call: Call) -> None:
        self._task, self._call = task, call

    def settled(self, **used: int) -> None:
        self._task.run(self._call.settled(**used))

    def released(self) -> None:
        self._task.run(self._call.released())

    def refused(self, retry_after: float | None = None) -> None:
        self._task.run(self._call.refused(retry_after))


class BlockingTask:
    """The methods of Task, which block. A lost lease raises LeaseLost from the next of them."""

    def __init__(self, task: Task, loop: asyncio.AbstractEventLoop) -> None:
        self._task, self._loop = task, loop

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._task, name)
        if not inspect.iscoroutinefunction(found):
            return found

        @functools.wraps(found)
        def call(*args: Any, **options: Any) -> Any:
            return self.run(found(*args, **options))

        return call

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the worker's event loop, and wait for it."""
        if self._task.lost:
            work.close()
            raise LeaseLost()
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException as e:
            if self._task.lost:
                raise LeaseLost() from e
            raise

    @property
    def stopping(self) -> bool:
        """Whether somebody asked the execution to stop."""
        return self._task.stopping.is_set()

    def step(self, name: str, do: Callable[..., Any], *args: Any, turn: Turn = "") -> Any:
        """Run `do` once in this thread, and record what it returns. Later runs get the record. `turn` as in Task."""
        if self._task.recorded(name):
            return self.run(self._task.step(name, do))
        did: concurrent.futures.Future[Any] = concurrent.futures.Future()
        began = time.monotonic()
        try:
            did.set_result(do(*args))
        except Exception as e:
            did.set_exception(e)
        return self.run(self._task.step_done(name, did.result, began, turn))

    def acquire(self, service: str, **estimate: int) -> BlockingCall:
        """Wait for the turn of a call to a service."""
        return BlockingCall(self, self.run(self._task.acquire(service, **estimate)))


async def in_thread(do: Callable[..., Any], task: Task) -> Any:
    """Run a handler in a thread. When its lease is lost nobody waits for the thread, which ends at its next call."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(set_: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            set_(value)

    def work() -> None:
        try:
            value = do(BlockingTask(task, loop), task.input)
            told = (done.set_result, value)
        except StopIteration as e:  # a future refuses it
            told = (done.set_exception, RuntimeError(f"the handler raised {e!r}"))
        except BaseException as e:
            told = (done.set_exception, e)
        try:
            loop.call_soon_threadsafe(tell, *told)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    # A daemon, so that a handler that does not end does not keep the process alive after its drain.
    threading.Thread(target=work, name=f"flowfabric {task.id}", daemon=True).start()
    return await done
