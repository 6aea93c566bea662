"""kimi_eval: does this deployment of Kimi K3.1 Pro really work, and is it as good as the reference?

What a suite needs is importable from here; a suite imports nothing else of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kimi_eval.chat import OMIT, Chat, assistant, developer, function, system, tool_result, user
    from kimi_eval.claims import CORE, LANES, MOONSHOT, MUST, OBSERVE, SHOULD, check, in_both_lanes, invariant
    from kimi_eval.expectations import Inconclusive, NotApplicable, expect, note, observe, require
    from kimi_eval.reply import Call, Frame, Reply, parse_arguments
    from kimi_eval.tasks import (
        Answer,
        Item,
        Outcome,
        answer_line,
        call_key,
        calls_exactly,
        condition,
        degeneration,
        in_turns,
        once,
        task,
        with_tools,
    )

_HOME = {
    "chat": "OMIT Chat assistant developer function system tool_result user",
    "claims": "CORE LANES MOONSHOT MUST OBSERVE SHOULD check in_both_lanes invariant",
    "expectations": "Inconclusive NotApplicable expect note observe require",
    "reply": "Call Frame Reply parse_arguments",
    "tasks": "Answer Item Outcome answer_line call_key calls_exactly condition degeneration in_turns once task "
    "with_tools",
}
_MODULE = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [  # provided by __getattr__
    "CORE", "LANES", "MOONSHOT", "MUST", "OBSERVE", "OMIT", "SHOULD", "Answer", "Call", "Chat", "Frame",
    "Inconclusive", "Item", "NotApplicable", "Outcome", "Reply", "answer_line", "assistant", "call_key",
    "calls_exactly", "check", "condition", "degeneration", "developer", "expect", "function", "in_both_lanes",
    "in_turns", "invariant", "note", "observe", "once", "parse_arguments", "require", "system", "task",
    "tool_result", "user", "with_tools",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Imports what a suite asks for when it asks, so that `kimi-eval --help` pays for none of it."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)
    globals()[name] = value
    return value
