"""What submissions, flows and schedules may say, as the bodies of the API have it."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Limit(TypedDict, total=False):
    """A limit of a key: how many run at once, or start within a time."""

    key: str
    concurrency: int
    rate: int
    per_ms: int


class WorkOptions(TypedDict, total=False):
    """Options of any execution."""

    lane: str
    priority: int
    capabilities: list[str]
    delay_ms: int
    delay_until: str
    deadline_ms: int
    deadline_at: str
    retries: int
    timeout_ms: int
    retention_s: dict[str, int]
    tags: dict[str, str]
    gates: list[str]
    limits: list[Limit]
    input_base64: str


class SubmitOptions(WorkOptions, total=False):
    """Options of a submission."""

    namespace: str
    idempotency_key: str
    unique_key: str
    key_window_ms: int
    debounce_key: str
    debounce_ms: int
    debounce_max_ms: int


class Submission(SubmitOptions, total=False):
    """One of many submissions."""

    kind: str
    input: Any


class Node(WorkOptions):
    """A node of a flow, or a child."""

    name: str
    kind: str
    input: NotRequired[Any]
    after: NotRequired[list[str]]
    inputs: NotRequired[dict[str, str]]
    policy: NotRequired[str]
    k: NotRequired[int]
    cancel_rest: NotRequired[bool]


class FlowOptions(TypedDict, total=False):
    """Options of a flow."""

    namespace: str
    tags: dict[str, str]
    gates: list[str]
    limits: list[Limit]
    idempotency_key: str
    unique_key: str
    open: bool


class ScheduleOptions(TypedDict, total=False):
    """Options of a schedule. It has one of cron and every_ms."""

    cron: str
    zone: str
    every_ms: int
    anchor: str
    first_run_now: bool
    catch_up: str
    overlap: str
    until: str
    max_runs: int
    jitter_ms: int
    namespace: str
    lane: str
    priority: int
    capabilities: list[str]
    deadline_ms: int
    retries: int
    timeout_ms: int
    retention_s: dict[str, int]
    tags: dict[str, str]
    gates: list[str]
    limits: list[Limit]
    input: Any
    input_base64: str
    nodes: list[Node]
    if_new: bool
    reason: str


class WaitOptions(TypedDict, total=False):
    """Options of a wait."""

    reason: str
    within_ms: int
    on_timeout: Literal[
        "fail", "cancel", "expire", "auto_resume", "auto_resume_with_timeout_signal", "auto_resume_open", "escalate"
    ]
    resume_after_ms: int


class ChildrenOptions(WaitOptions, total=False):
    """Options of a wait for children."""

    mode: str
    cancel_remaining: bool
    leave: bool
    others: list[dict[str, Any]]
    until: dict[str, Any]


class ListOptions(TypedDict, total=False):
    """Filters of a list of executions."""

    namespace: str
    state: str | list[str]
    lane: str
    kind: str
    category: str | list[str]
    since: str
    until: str
    error: str
    tag: dict[str, str]
    flow: str
    held_by: str
    newest: bool
    limit: int


class FlowListOptions(TypedDict, total=False):
    """Filters of a list of flows."""

    namespace: str
    kind: str
    state: str | list[str]
    oldest: bool
    limit: int


class ApprovalListOptions(TypedDict, total=False):
    """Filters of a list of questions."""

    namespace: str
    lane: str
    kind: str
    assignee: str
    root: str
    limit: int
