"""Leases: they are renewed while handlers run, and news of them is passed on to the handlers."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from .errors import FlowFabricError
from .models import ClaimAnswer

if TYPE_CHECKING:
    from .task import Task
    from .worker import Worker

log = logging.getLogger("flowfabric")

_MOST = 1000
_TRUST = 0.9  # of a lease is used, because the clocks of two machines differ


class Leases:
    """Renews the leases of a worker.

    A round renews what has run for a second, and waits at the server for a few seconds: stops and losses come at once.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._lease = worker.lease
        self._rest = min(1.0, worker.lease / 6)
        self._wait = min(5.0, worker.lease / 6)

    def until(self, began: float) -> float:
        """The time until which a lease that was given or renewed at another time may be trusted."""
        return began + self._lease * _TRUST

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            await asyncio.sleep(self._rest)
            before = time.monotonic() - self._rest
            tasks = [t for t in self._worker.running.values() if t.began <= before]
            parts = [tasks[i : i + _MOST] for i in range(0, len(tasks), _MOST)]
            await asyncio.gather(*(self._renew(part) for part in parts))

    async def _renew(self, tasks: list[Task]) -> None:
        began = time.monotonic()
        leases = [{"lease": t.lease, "stopping": t.heard} for t in tasks]
        body = {"max": 0, "wait_ms": int(1000 * self._wait), "leases": leases}
        one_try = self._wait + max(1.0, self._lease / 6)
        try:
            async with asyncio.timeout(min(t.until for t in tasks) - began):
                answer: ClaimAnswer = await self._worker.call("claim", body, timeout=one_try)
        except (FlowFabricError, TimeoutError) as e:
            log.warning("leases were not renewed: %r", e)
            for task in tasks:  # another worker may have it
                if task.until <= time.monotonic():
                    self._worker.lose(task)
            return
        news = {one["lease"]: one for one in answer.get("leases", [])}
        for task in tasks:
            one = news.get(task.lease)
            if one and not one["held"]:
                log.info("%s is not ours any more: %s", task.id, one.get("code"))
                self._worker.lose(task)
                continue
            task.until = self.until(began)
            if stop := one and one.get("stopping"):
                task.hear(stop)
