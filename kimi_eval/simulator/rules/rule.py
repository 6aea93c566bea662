"""Rule: one validation of the contract, under the short name by which a fault can switch it off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

from kimi_eval.simulator.request import Request


@dataclass(frozen=True, slots=True)
class Refusal:
    """A 4xx answer of the contract."""

    message: str
    status: int = 400
    type: str = "invalid_request_error"

    @property
    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type}}


Verdict = Refusal | str | None
Rule = Callable[[Request], Verdict]

RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register the decorated function; it returns a message or a Refusal where the request breaks the rule."""

    def register(function: Rule) -> Rule:
        if name in RULES:
            raise ValueError(f"two rules are named {name!r}")
        RULES[name] = function
        return function

    return register


def is_int(value: Any) -> TypeGuard[int]:
    """True for an integer that is not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[int | float]:
    """True for a number that is not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)
