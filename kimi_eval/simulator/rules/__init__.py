"""Rules: every validation of the contract, in the order in which a request meets them."""

from __future__ import annotations

from collections.abc import Collection

from kimi_eval.simulator.request import Request
from kimi_eval.simulator.rules import choice, conversation, declarations, dynamic, formats, media, sampling  # noqa: F401
from kimi_eval.simulator.rules.rule import RULES, Refusal

__all__ = ["RULES", "SERVER_RULES", "Refusal", "first_refusal"]

# Checked outside the body: the key, the JSON itself, and the window once the prompt is rendered.
SERVER_RULES = ("authentication", "json", "window")


def first_refusal(request: Request, skipped: Collection[str] = ()) -> Refusal | None:
    """The refusal of the first rule that the request breaks."""
    for name, broken in RULES.items():
        if name in skipped:
            continue
        verdict = broken(request)
        if verdict is not None:
            return Refusal(verdict) if isinstance(verdict, str) else verdict
    return None
