"""Logs: what handlers say of their runs, sent in the background, and kept with the execution."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Literal

from .errors import FlowFabricError

JSON = dict[str, Any]
LogLevel = Literal["debug", "info", "warn", "error", "off"]

LEVELS: dict[str, int] = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
_LINGER = 0.2  # seconds for which the first line of a call waits for others
_MOST_LINES = 100  # of a call
_MOST_KEPT = 1000  # lines that wait
_MOST_TEXT = 8192  # characters of a message, and of an attribute
_PATIENCE = 5.0  # seconds for a call
_OWN = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}  # what every record has


class Lines:
    """The lines of one run that were not sent yet. Adding one never fails, and never waits."""

    def __init__(self, send: Callable[[JSON], Awaitable[Any]], loop: asyncio.AbstractEventLoop) -> None:
        self._send, self._loop = send, loop
        self._mutex = threading.Lock()  # handlers may run in threads
        self._waiting: deque[JSON] = deque()
        self._dropped, self._next = 0, 1
        self._woken = self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    def add(self, line: JSON) -> None:
        """Send a line soon."""
        with self._mutex:
            if self._closed:
                return
            self._waiting.append(line)
            if len(self._waiting) > _MOST_KEPT:
                self._waiting.popleft()
                self._dropped += 1
            if self._woken and len(self._waiting) != _MOST_LINES:
                return
            self._woken = True
            full = len(self._waiting) >= _MOST_LINES
        try:
            self._loop.call_soon_threadsafe(self._wake, full)
        except RuntimeError:  # the worker has ended
            self.close()

    def _wake(self, full: bool) -> None:
        if self._sending is None and full:
            self._begin()
        elif self._sending is None and self._timer is None:
            self._timer = self._loop.call_later(_LINGER, self._begin)

    def _begin(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._sending is None:
            self._sending = self._loop.create_task(self._send_all())

    async def drain(self) -> None:
        """Try to send what waits. It raises nothing."""
        while self._sending or self._waiting:
            self._begin()
            if self._sending:
                await asyncio.shield(self._sending)

    async def _send_all(self) -> None:
        while True:
            with self._mutex:
                lines = [self._waiting.popleft() for _ in range(min(_MOST_LINES, len(self._waiting)))]
                dropped, self._dropped = self._dropped, 0
                self._woken = bool(lines)
                if not lines:
                    self._dropped = dropped
                    self._sending = None
                    return
                first = self._next
                self._next += len(lines)  # also if nobody knows whether they are stored
            body: JSON = {"first": first, "lines": lines, **({"dropped": dropped} if dropped else {})}
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._send(body)
            except (FlowFabricError, TimeoutError):
                with self._mutex:
                    self._dropped += dropped + len(lines)

    def close(self) -> None:
        """Drop what waits, and take no more."""
        with self._mutex:
            self._closed = True
            self._waiting.clear()
        if self._timer:
            self._loop.call_soon_threadsafe(self._timer.cancel)
            self._timer = None


class _Keeper(logging.Handler):
    """Makes lines of records."""

    def __init__(self, lines: Lines, level: int, elsewhere: logging.Logger) -> None:
        super().__init__(level)
        self._lines, self._elsewhere = lines, elsewhere

    def handle(self, record: logging.LogRecord) -> bool:
        if record.levelno >= self.level:
            self._lines.add(_line(record))
        if self._elsewhere.isEnabledFor(record.levelno):
            self._elsewhere.handle(record)
        return True


def logger_of(level: LogLevel, lines: Lines) -> logging.Logger:
    """A logger whose records become lines from a level on, and go to the logger flowfabric.task as well."""
    elsewhere = logging.getLogger("flowfabric.task")
    if level == "off":
        return elsewhere
    own = logging.Logger("flowfabric.task", min(LEVELS[level], elsewhere.getEffectiveLevel()))
    own.addHandler(_Keeper(lines, LEVELS[level], elsewhere))
    return own


def _line(record: logging.LogRecord) -> JSON:
    try:
        message = record.getMessage()
    except Exception:  # the arguments do not fit the text
        message = str(record.msg)
    level = next((name for name in ("error", "warn", "info") if record.levelno >= LEVELS[name]), "debug")
    line: JSON = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
        "level": level,
        "message": _cut(message),
    }
    attributes: JSON = {}
    _flat(attributes, "", {k: v for k, v in record.__dict__.items() if k not in _OWN})
    if record.exc_info and record.exc_info[0]:
        attributes["exception"] = _cut(logging.Formatter().formatException(record.exc_info))
    if attributes:
        line["attributes"] = attributes
    return line


def _flat(out: JSON, group: str, attributes: dict[Any, Any], depth: int = 0) -> None:
    """Attributes in groups get names with dots."""
    for name, value in attributes.items():
        key = _cut(f"{group}{name}")
        if isinstance(value, dict) and depth < 8:
            _flat(out, key + ".", value, depth + 1)  # pyright: ignore[reportUnknownArgumentType]
        else:
            out[key] = _value(value)


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(value)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str).encode(errors="replace").decode()
        return json.loads(text) if len(text) <= _MOST_TEXT else _cut(text)
    except Exception:
        return _cut(repr(value))


def _cut(text: str) -> str:
    """The text without what JSON refuses, and not longer than a line may be."""
    short = text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…"
    return short.encode(errors="replace").decode()
