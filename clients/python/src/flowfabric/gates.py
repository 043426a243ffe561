"""Amounts that a handler counts against gates, and calls to services."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from .errors import FlowFabricError, Permanent


class GateRefused(FlowFabricError):
    """A gate has no room for the amounts, and leaves it to the handler what to do."""

    def __init__(self, gate: str, breaches: Any) -> None:
        super().__init__("gate_refused", f"gate {gate} has no room: {breaches}")
        self.gate, self.breaches = gate, breaches


class Call:
    """A call to a service whose turn has come. Say how it ended: settled, released or refused."""

    def __init__(self, task: Gates, body: dict[str, Any]) -> None:
        self._task, self._body = task, body

    async def settled(self, **used: int) -> None:
        """The call was made, and used this."""
        await self._task.tell("end-call", how="settled", used=used, **self._body)

    async def released(self) -> None:
        """The call was certainly not made."""
        await self._task.tell("end-call", how="released", **self._body)

    async def refused(self, retry_after: float | None = None) -> None:
        """The service answered 429, maybe with a Retry-After in seconds."""
        more = {} if retry_after is None else {"retry_after_ms": int(retry_after * 1000)}
        await self._task.tell("end-call", how="refused", **more, **self._body)


class Gates:
    """The part of Task that counts."""

    id: str

    def __init__(self, gates: list[str]) -> None:
        self.gates = gates
        self._spent: dict[str, int] = {}
        self._reserved = 0
        self._calls = 0
        self._asks = 0

    async def call(self, verb: str, **body: Any) -> Any:
        raise NotImplementedError

    async def tell(self, verb: str, **body: Any) -> Any:
        raise NotImplementedError

    async def release(self) -> None:
        raise NotImplementedError

    async def delay(self, seconds: float, *, service: str = "") -> None:
        raise NotImplementedError

    async def ask(self, name: str, title: str, **options: Any) -> Any:
        raise NotImplementedError

    async def spend(self, key: str = "", /, **amounts: int) -> None:
        """Count what was used of every gate of the execution, and of those above. Without a gate it counts nothing.

        A gate counts the same `key`, 1 to 64 bytes of printable ASCII without spaces, once within 24 hours, also in
        later runs of the execution. Without a key every run counts again.
        """
        more = {"key": key} if key else {}
        gates = [gate for gate in self.gates if ":" not in gate]  # others are limits of keys
        for gate in gates:  # the list grows
            while True:
                self._spent[gate] = self._spent.get(gate, 0) + 1
                said = await self.tell("spend", gate=gate, sequence=self._spent[gate], amounts=amounts, **more)
                if said["verdict"] != "HARD_BREACH" or said["counted"]:
                    break
                await self._no_room(gate, said, amounts)
            if said.get("parent") and said["parent"] not in gates:
                gates.append(said["parent"])

    async def reserve(self, **amounts: int) -> int:
        """Set aside the most that a call may use, and return the number for settle or unreserve."""
        while True:
            self._reserved += 1
            number = self._reserved
            said = await self.call("reserve", reservation=number, amounts=amounts)
            if said["reserved"]:
                return number
            if not said.get("over"):  # else the number was used up by a call whose answer was lost
                await self._no_room(said["gate"], said, amounts)

    async def settle(self, number: int, **amounts: int) -> None:
        """Say what the call used. It counts also when the lease is lost."""
        await self.tell("settle", reservation=number, amounts=amounts)

    async def unreserve(self, number: int) -> None:
        """Give a reservation back: the call was certainly not made."""
        await self.tell("unreserve", reservation=number)

    async def _no_room(self, gate: str, said: dict[str, Any], amounts: dict[str, int]) -> None:
        """Do what the gate says. It returns when a person granted more."""
        action, breaches = said.get("action"), said.get("breaches")
        if action == "block":  # the execution comes back when there is room for the amounts
            await self.release()
        if action == "fail":
            raise Permanent(f"gate {gate} has no room: {breaches}", category="gate")
        if action != "ask":
            raise GateRefused(gate, breaches)
        self._asks += 1
        listed = ", ".join(f"{n} {name}" for name, n in sorted(amounts.items()))
        answer = await self.ask(
            f"{gate[:60]} {listed[:50]} #{self._asks}",
            f"{gate} needs {listed}"[:200],
            choices=["approve", "reject"],
        )
        if answer.name != "approve":
            raise GateRefused(gate, breaches)

    async def acquire(self, service: str, **estimate: int) -> Call:
        """Wait for the turn of a call to a service. The slot is free when the turn is far."""
        self._calls += 1
        began = time.monotonic()
        body = {"service": service, "call": self._calls, "estimate": estimate}
        while True:
            waited = int(1000 * (time.monotonic() - began))
            said = await self.call("acquire", waited_ms=waited, **body)
            if said["admitted"]:
                return Call(self, body)
            pause = said.get("retry_ms", 0) / 1000
            if not said.get("stay"):
                await self.delay(pause, service=service)
            await asyncio.sleep(pause)
