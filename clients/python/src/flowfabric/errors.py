"""Errors of the package."""

from __future__ import annotations

from typing import Any, cast


class FlowFabricError(Exception):
    """A call failed. The API's refusals have a status and a code; a failed connection has status 0."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        status: int = 0,
        field: str = "",
        request_id: str = "",
        remedy: str = "",
        retry_after: float | None = None,
        problem: dict[str, Any] | None = None,
    ) -> None:
        place = f" ({field})" if field else ""
        super().__init__(f"{code}{place}: {detail}" if detail else code + place)
        self.code = code
        self.detail = detail
        self.status = status
        self.field = field
        self.request_id = request_id
        self.remedy = remedy
        self.retry_after = retry_after
        self.problem = problem or {}


class NotFound(FlowFabricError):
    """The thing is not there, or the token may not see it."""


class ConnectionLost(FlowFabricError):
    """The connection failed. The call may have been carried out or not."""

    def __init__(self, detail: str) -> None:
        super().__init__("connection_lost", detail)


class TimedOut(ConnectionLost):
    """The answer did not come in time. The call may have been carried out or not."""

    def __init__(self, detail: str) -> None:
        FlowFabricError.__init__(self, "timed_out", detail)


class ProtocolError(FlowFabricError):
    """The other side sent something that is not HTTP, not JSON, or too large."""

    def __init__(self, detail: str) -> None:
        super().__init__("protocol_error", detail)


class Retry(Exception):
    """A handler raises it to fail the attempt. The policy decides when it runs again, or `after` seconds do."""

    def __init__(self, message: str, *, category: str = "handler_error", after: float | None = None) -> None:
        super().__init__(message)
        self.category = category
        self.after = after


class Permanent(Exception):
    """A handler raises it to fail the execution without a retry."""

    def __init__(self, message: str, *, category: str = "handler_error") -> None:
        super().__init__(message)
        self.category = category


def refusal(status: int, answer: Any, retry_after: float | None) -> FlowFabricError:
    """The error for an answer of the API. A proxy may have sent anything."""
    problem = cast(dict[str, Any], answer) if isinstance(answer, dict) else {}

    def text(name: str) -> str:
        value = problem.get(name)
        return value if isinstance(value, str) else ""

    kind = NotFound if status == 404 else FlowFabricError
    return kind(
        text("code") or f"http_{status}",
        text("detail") or text("title"),
        status=status,
        field=text("field"),
        request_id=text("request_id"),
        remedy=text("remedy"),
        retry_after=retry_after,
        problem=problem,
    )
