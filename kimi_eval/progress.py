"""Progress: one live line on a terminal, one line every 30 s elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import TextIO

from kimi_eval.runner import Runner
from kimi_eval.verdict import Status, Verdict

_LIVE, _LOGGED = 0.2, 30.0  # seconds between two lines


class Progress:
    """Counts verdicts and says where the run stands: done/total, in flight, tokens, money, failures, time left."""

    def __init__(self, total: int, stream: TextIO | None = None, *, live: bool | None = None) -> None:
        self.total = total
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty() if live is None else live
        self.counts: Counter[Status] = Counter()
        self.started = time.monotonic()

    def reached(self, verdict: Verdict) -> None:
        """Counts one verdict."""
        self.counts[verdict.status] += 1

    def line(self, runner: Runner) -> str:
        """The line as it stands now."""
        done, meter = self.counts.total(), runner.meter
        seconds = time.monotonic() - self.started
        usd = meter.usd(runner.deployment)
        parts = [
            f"{done}/{self.total} claims",
            f"{runner.wire.in_flight} open",
            f"{meter.requests:,} requests",
            f"{meter.tokens:,} tokens",
            *([f"${usd:.2f}"] if usd is not None else []),
            f"{self.counts[Status.FAILED]} failed",
            _left(seconds, done, self.total),
        ]
        return " · ".join(parts)

    @contextlib.asynccontextmanager
    async def shown(self, runner: Runner) -> AsyncIterator[None]:
        """Keeps the line up to date while the block runs."""
        task = asyncio.create_task(self._show(runner))
        try:
            yield
        finally:
            task.cancel()
            if self.live:
                self.stream.write("\r\x1b[K")
                self.stream.flush()

    async def _show(self, runner: Runner) -> None:
        while True:
            await asyncio.sleep(_LIVE if self.live else _LOGGED)
            line = self.line(runner)
            if self.live:
                width = shutil.get_terminal_size().columns
                self.stream.write(f"\r\x1b[K{line[: width - 1]}")
            else:
                self.stream.write(f"{line}\n")
            self.stream.flush()


def _left(seconds: float, done: int, total: int) -> str:
    if done < 5 or done >= total:
        return f"{seconds:.0f} s"
    left = seconds / done * (total - done)
    return f"~{left:.0f} s left" if left < 90 else f"~{left / 60:.0f} min left"
