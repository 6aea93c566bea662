"""Memory: what a conversation has stated before, in text, tool results and preserved thoughts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kimi_eval.simulator.render import in_call_order
from kimi_eval.simulator.request import Request, as_list, reasoning_of, text_of

UNKNOWN = "I do not know."
_ASKED = re.compile(r"What is the code for ([^?\n]+)\?")
_VALUE = re.compile(r"(.+?)\.(?!\w)")


def recall(request: Request) -> str | None:
    """The latest code stated for the key that the user asks about; None when no code is asked for."""
    asked = _ASKED.findall(request.question)
    if not asked:
        return None
    statement = f"The code for {asked[-1].strip()} is "
    for text in _latest_first(request):
        position = text.rfind(statement)
        if position >= 0:
            match = _VALUE.match(text, position + len(statement))
            if match:
                return match[1]
    return UNKNOWN


def _latest_first(request: Request) -> Iterator[str]:
    for message in reversed(request.messages):
        yield text_of(message)
        if request.thinking and message.get("role") == "assistant":
            yield reasoning_of(message)


def tool_results(request: Request) -> list[str]:
    """The texts of all tool results since the last user turn, each step's in the order of its calls."""
    texts: list[str] = []
    results: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for message in request.messages:
        if message.get("role") == "tool":
            results.append(message)
            continue
        texts += [text_of(result) for result in in_call_order(results, calls)]
        results = []
        if message.get("role") == "user":
            texts = []
        if message.get("role") == "assistant":
            calls = [call for call in as_list(message.get("tool_calls")) if isinstance(call, dict)]
    return texts + [text_of(result) for result in in_call_order(results, calls)]
