"""Estimate: a rate with its interval and the number of trials it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass

_Z_95 = 1.959963984540054  # two-sided 95 % quantile of the standard normal distribution


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share in [0, 1] with a two-sided 95 % interval over ``n`` trials."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f}, n={self.n})"


def share(successes: int, n: int) -> Estimate:
    """The share of successes with its Wilson score interval (Wilson 1927).

    Raises ValueError unless ``0 <= successes <= n`` and ``n > 0``.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} successes in {n} trials are not a share")
    z2 = _Z_95 * _Z_95
    centre = (successes + z2 / 2) / (n + z2)
    half = _Z_95 / (n + z2) * math.sqrt(successes * (n - successes) / n + z2 / 4)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Estimate(value=successes / n, low=low, high=high, n=n)
