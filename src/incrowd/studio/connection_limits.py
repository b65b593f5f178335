"""How many connections the studio holds, and for how long it waits for a request.

Anybody who can reach the port can open connections and send nothing. Each costs a file descriptor,
and when there are no more, nobody is answered. So a connection without a request is closed after
some seconds, and where there are too many, those that have waited the longest are closed first: a
browser, which sends its request at once, gets its answer.
"""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

MOST_CONNECTIONS = 256
HEADER_SECONDS = 10.0  # from the beginning of a connection, or the last answer, to a request
KEEP_ALIVE_SECONDS = 5


class BoundedProtocol(H11Protocol):
    """HTTP with a bound of connections, and of the time that a request may take to arrive."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, and close those that have waited longest if there are too many."""
        super().connection_made(transport)
        self._waits_since = self.loop.time()
        self._start_timer()
        others = [
            connection for connection in self.connections if isinstance(connection, BoundedProtocol)
        ]
        surplus = len(others) - compute_connection_limit()
        idle = sorted(
            (connection for connection in others if connection.is_idle),
            key=lambda connection: connection._waits_since,
        )
        for first in idle[: max(surplus, 0)]:
            first.transport.abort()
            self.connections.discard(first)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request, as long as for the first."""
        super().on_response_complete()
        self._waits_since = self.loop.time()
        self._start_timer()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._patience = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)

    def _stop_timer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _close_if_idle(self) -> None:
        """Close a connection on which no request has begun."""
        if self.is_idle:
            self.transport.abort()


def compute_connection_limit() -> int:
    """Return the bound of connections: a quarter of the files that the process may open."""
    if resource is None:
        return MOST_CONNECTIONS
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(min(MOST_CONNECTIONS, soft // 4), 8)


def make_config(app: ASGIApp, **more: Any) -> uvicorn.Config:
    """Return how the app is served."""
    return uvicorn.Config(
        app, http=BoundedProtocol, ws="none", log_level="error", access_log=False,
        server_header=False, lifespan="on", timeout_graceful_shutdown=2,
        timeout_keep_alive=KEEP_ALIVE_SECONDS, **more,
    )  # fmt: skip
