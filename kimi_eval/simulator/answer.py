"""Answer: what the model said in one turn, before it is put into JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kimi_eval.simulator.tokens import CLOSE, OPEN, SEP, pieces


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; `arguments` is the JSON text exactly as generated."""

    name: str
    arguments: str
    id: str = ""

    def header(self) -> list[str]:
        """The tokens that open the call, up to its first argument."""
        return [OPEN, "call", *pieces(self.name), SEP]

    def tokens(self) -> list[str]:
        """All tokens of the call."""
        return [*self.header(), *pieces(self.arguments), CLOSE]


@dataclass(frozen=True, slots=True)
class Answer:
    """A turn of the model. `generated` is what it really wrote, when a parser made something else of it."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[Call, ...] = ()
    finish_reason: str = "stop"
    generated: Answer | None = None

    @property
    def billed(self) -> Answer:
        """The answer whose tokens are counted: what was generated, whatever became of it."""
        return self.generated or self

    def misread(self, **changes: Any) -> Answer:
        """This answer as a faulty parser would hand it on; the tokens stay those that were generated."""
        return replace(self, generated=self.billed, **changes)

    def completion_tokens(self) -> int:
        """Tokens of reasoning, content and calls together."""
        calls = sum(len(call.tokens()) for call in self.calls)
        return self.reasoning_tokens() + len(pieces(self.content)) + calls

    def reasoning_tokens(self) -> int:
        """Tokens of the reasoning alone."""
        return len(pieces(self.reasoning))


def cut_at_stop(answer: Answer, words: list[str], *, keep_word: bool = False) -> Answer:
    """The answer cut before the earliest stop word of its content; calls after that point were never generated."""
    found = [(answer.content.find(word), word) for word in words if word and word in answer.content]
    if not found:
        return answer
    position, word = min(found)
    kept = answer.content[: position + len(word) if keep_word else position]
    return replace(answer, content=kept, calls=(), finish_reason="stop")


def cut_to_budget(answer: Answer, budget: int, *, keep_open_call: bool) -> Answer:
    """The answer's first `budget` tokens; shorter answers are untouched, longer ones finish with `length`."""
    if answer.completion_tokens() <= budget:
        return answer
    reasoning, left = _take(answer.reasoning, budget)
    content, left = _take(answer.content, left)
    calls: list[Call] = []
    for call in answer.calls:
        whole = len(call.tokens())
        if left >= whole:
            calls.append(call)
            left -= whole
            continue
        room = left - len(call.header())
        if keep_open_call and room > 0:
            calls.append(replace(call, arguments="".join(pieces(call.arguments)[:room])))
        break
    return replace(answer, reasoning=reasoning, content=content, calls=tuple(calls), finish_reason="length")


def _take(text: str, budget: int) -> tuple[str, int]:
    tokens = pieces(text)
    return ("".join(tokens[:budget]), max(0, budget - len(tokens)))
