"""Limiter: how many requests are in flight at once; it grows while all goes well and backs off on a 429 or 503."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

START = 16.0  # or a quarter of the ceiling, where that is more
_BACK_OFF = 0.7  # of the capacity is kept when the deployment says it is too much
_COOLDOWN = 1.0  # seconds in which further refusals are the echo of the same overload
_BUSY = 0.8  # of the capacity must be in use before more is allowed


class Limiter:
    """An adaptive semaphore: slow start, additive increase, multiplicative decrease, never above ``ceiling``.

    Waiters are served in order of arrival. ``per_minute`` paces the starts of requests besides.
    """

    def __init__(
        self, ceiling: int, *, per_minute: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.ceiling = ceiling
        self.capacity = min(max(START, ceiling / 4), float(ceiling))
        self.used = 0
        self._slow_start = True
        self._cooled_at = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._clock = clock
        self._pause = 60.0 / per_minute if per_minute else 0.0
        self._next_start = 0.0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Waits for room for one request and holds it."""
        await self._acquire()
        try:
            yield
        finally:
            self.used -= 1
            self._wake()

    async def _acquire(self) -> None:
        if self.used >= int(self.capacity) or self._waiting:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter  # whoever wakes us has counted us already
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self.used -= 1
                    self._wake()
                raise
        else:
            self.used += 1
        if self._pause:
            now = self._clock()
            start = max(now, self._next_start)
            self._next_start = start + self._pause
            if start > now:
                await asyncio.sleep(start - now)

    def _wake(self) -> None:
        while self._waiting and self.used < int(self.capacity):
            waiter = self._waiting.popleft()
            if not waiter.done():
                self.used += 1
                waiter.set_result(None)

    def went_well(self) -> None:
        """A request was answered: allow more, if what is allowed is used."""
        if self.used < _BUSY * int(self.capacity):
            return
        step = 1.0 if self._slow_start else 1.0 / self.capacity
        self.capacity = min(float(self.ceiling), self.capacity + step)
        self._wake()

    def too_much(self) -> None:
        """The deployment refused for load: allow less, once for each wave of refusals."""
        now = self._clock()
        if now < self._cooled_at:
            return
        self._cooled_at = now + _COOLDOWN
        self._slow_start = False
        self.capacity = max(1.0, self.capacity * _BACK_OFF)
