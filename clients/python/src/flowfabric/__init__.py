"""Client and worker for FlowFabric, over the HTTP API of `flowfabric serve` and `flowfabric dev --http`.

Client submits executions, follows them and answers them. Worker runs handlers. The module flowfabric.sync has a client
for programs without asyncio.
"""

from .client import Client
from .errors import ConnectionLost, FlowFabricError, NotFound, Permanent, ProtocolError, Retry, TimedOut
from .gates import GateRefused
from .http import HTTPTransport, Response, Transport
from .task import Answer, LeaseLost, Message, Outcome, Task
from .worker import Worker

__all__ = [
    "Answer",
    "Client",
    "ConnectionLost",
    "FlowFabricError",
    "GateRefused",
    "HTTPTransport",
    "LeaseLost",
    "Message",
    "NotFound",
    "Outcome",
    "Permanent",
    "ProtocolError",
    "Response",
    "Retry",
    "Task",
    "TimedOut",
    "Transport",
    "Worker",
]
