"""Oracle: gold answers for task items, and near misses for the share that shall be wrong."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from kimi_eval.simulator.answer import Answer, Call
from kimi_eval.simulator.render import compact
from kimi_eval.simulator.request import Request, text_of

Oracle = Callable[[list[dict[str, Any]], list[dict[str, Any]] | None], dict[str, Any] | None]


def consult(oracle: Oracle, request: Request, *, accuracy: float, seed: int) -> Answer | None:
    """The gold answer, or with probability 1 - accuracy a near miss; the coin is fixed by seed and first user turn."""
    gold = oracle(request.messages, request.body.get("tools"))
    if gold is None:
        return None
    calls = gold.get("tool_calls") or []
    content = gold.get("content") or ""
    if _coin(request, seed) >= accuracy:
        calls, content = (_wrong_calls(calls), content) if calls else (calls, wrong(content))
    return Answer(
        reasoning=str(gold.get("reasoning") or ""),
        content=str(content),
        calls=tuple(Call(call["name"], _text(call.get("arguments"))) for call in calls),
    )


def _coin(request: Request, seed: int) -> float:
    first = next((text_of(message) for message in request.messages if message.get("role") == "user"), "")
    digest = hashlib.sha256(f"{seed}\n{first}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else compact(arguments or {})


def wrong(text: str) -> str:
    """The text with its last digit changed; without one its last option letter; without that its last word."""
    digits = list(re.finditer(r"\d", text))
    if digits:
        place = digits[-1].start()
        return f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}"
    options = list(re.finditer(r"\b[A-J]\b", text))
    if options:
        place = options[-1].start()
        return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
    head, _, last = text.rstrip().rpartition(" ")
    return f"{head} {last[::-1]}x".strip()


def _wrong_calls(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    *others, last = calls
    arguments = last.get("arguments")
    if not isinstance(arguments, dict) or not arguments:
        return others
    name = list(arguments)[-1]
    return [*others, {**last, "arguments": {**arguments, name: _wrong_value(arguments[name])}}]


def _wrong_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return wrong(value)
    return None
