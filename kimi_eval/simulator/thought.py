"""Thought: the reasoning text before an answer; longer at a higher effort, the same for the same request."""

from __future__ import annotations

from itertools import cycle, islice

from kimi_eval.simulator.request import Request

WORDS = {"low": 12, "high": 30, "max": 60}
_HEAD = 3  # Words kept from the start of the prompt; the rest of the room goes to its end.
_FILLER = (
    "I read the request again, look at what was said before, weigh which tools could help, "
    "check the form that is asked for, and then keep the answer short."
).split()


def think(request: Request) -> str:
    """A thought of about 12, 30 or 60 words, which restates the end of the user's prompt."""
    words = WORDS[request.effort]
    asked = [word for word in request.question[-2000:].split() if not _is_markup(word)]
    room = words - 6
    if len(asked) > room:
        asked = [*asked[:_HEAD], *asked[_HEAD - room :]]
    filler = islice(cycle(_FILLER), max(0, room - len(asked)))
    return " ".join(["The", "user", "writes:", *asked, *filler, "So", "I", "answer."])


def _is_markup(word: str) -> bool:
    return any(mark in word for mark in ("<|", "|>", "<think", "</think"))
