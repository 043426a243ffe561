"""A client for programs without asyncio. It runs flowfabric.Client in one event loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Self, TypeVar, cast

from . import client as _async

T = TypeVar("T")


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="flowfabric", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a blocking call would stop its own event loop")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:  # such as KeyboardInterrupt
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Client:
    """The methods of flowfabric.Client, which block. Those that give many things are iterators."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._loop = Loop()
        try:
            self._client = _async.Client(*args, **options)
        except BaseException:
            self._loop.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread."""
        self._loop.run(self._client.close())
        self._loop.close()

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> tuple[bool, Any]:
            try:
                return True, await anext(items)
            except StopAsyncIteration:
                return False, None

        try:
            while (found := self._loop.run(following()))[0]:
                yield found[1]
        finally:
            self._loop.run(cast(AsyncGenerator[T, None], items).aclose())

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        answer = getattr(self._client, name)(*args, **options)
        return self._loop.run(answer) if inspect.iscoroutine(answer) else self._each(answer)


def _blocking(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Client, *args: Any, **options: Any) -> Any:
        return self._call(name, *args, **options)  # pyright: ignore[reportPrivateUsage]

    return call


for _name, _method in vars(_async.Client).items():
    if inspect.isfunction(_method) and not _name.startswith("_") and _name != "close":
        setattr(Client, _name, _blocking(_name, _method))
