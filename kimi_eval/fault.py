"""Fault: a way a deployment goes wrong, and exactly which checks must notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Stage = Literal[
    "body", "rules", "prompt", "answer", "usage", "headers", "whole", "frames", "wire", "error", "models", "transport"
]
Hook = Callable[..., Any]

STAGES: tuple[str, ...] = get_args(Stage)


@dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """One fault. `hooks` holds, for each stage of the simulated deployment it bends, the function that bends it."""

    name: str
    title: str
    source: str
    kind: str
    noticed_by: tuple[str, ...]
    hooks: dict[str, Hook] = field(repr=False)

    def also(self, *stages: Stage) -> Callable[[Hook], Hook]:
        """Attach the decorated function to further stages of this fault."""

        def attach(hook: Hook) -> Hook:
            self.hooks.update(dict.fromkeys(stages, hook))
            return hook

        return attach

    def bend(self, stage: Stage, request: Any, value: Any) -> Any:
        """The value as this fault leaves it at that stage; untouched where the fault has no hook there."""
        hook = self.hooks.get(stage)
        return value if hook is None else hook(request, value)


def fault(
    title: str, *, source: str, kind: str, at: Stage | tuple[Stage, ...], noticed_by: list[str] | tuple[str, ...] = ()
) -> Callable[[Hook], Fault]:
    """Turn the decorated function into a Fault that bears the function's name and bends the stages `at`."""
    stages = (at,) if isinstance(at, str) else at

    def make(hook: Hook) -> Fault:
        unknown = set(stages) - set(STAGES)
        if unknown:
            raise ValueError(f"fault {hook.__name__}: unknown stages {sorted(unknown)}; known are {STAGES}")
        return Fault(hook.__name__, title, source, kind, tuple(noticed_by), dict.fromkeys(stages, hook))

    return make
