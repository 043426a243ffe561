"""Filters of lists, as the queries of the API have them."""

from __future__ import annotations

from typing import TypedDict


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
    shape: str
    version: str
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
    """Filters of a list of open waits. `asked` is only those with a question."""

    namespace: str
    lane: str
    kind: str
    assignee: str
    asked: bool
    root: str
    limit: int
