"""Connection: one response on its way out, and what a fault may do to it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass(slots=True)
class Connection:
    """The response as it will be sent. A transport fault changes the fields, pauses, or both.

    `cut_after` closes the socket after that many chunks; `stall_after` sends nothing more after that many;
    `extra_length` makes Content-Length wrong by that many bytes.
    """

    status: int
    headers: dict[str, str]
    chunks: list[bytes]
    streamed: bool = False
    seconds_before_each: float = 0.0
    cut_after: int | None = None
    stall_after: int | None = None
    extra_length: int = 0
    pauses: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of_json(cls, status: int, body: Any, headers: dict[str, str] | None = None) -> Connection:
        """A response with a JSON body; bytes pass as they are."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return cls(status, {"Content-Type": "application/json", **(headers or {})}, [data])

    def become(self, other: Connection) -> None:
        """Send the other response instead."""
        self.status, self.headers, self.chunks, self.streamed = (
            other.status,
            other.headers,
            other.chunks,
            other.streamed,
        )

    async def pause(self, seconds: float) -> None:
        """Let time pass before anything is sent."""
        await asyncio.sleep(seconds)
