"""Reply: an answer as the JSON of a whole reply, with its usage."""

from __future__ import annotations

from typing import Any

from kimi_eval.simulator.answer import Answer, Call
from kimi_eval.simulator.request import Request
from kimi_eval.simulator.tokens import pieces

_OTHERS = "the of and to in is it that for was on are as with his they at be this have from".split()


def usage_of(answer: Answer, request: Request, cached_tokens: int) -> dict[str, Any]:
    """The usage object; it counts what was generated, whatever a parser made of it."""
    completion, prompt = answer.billed.completion_tokens(), len(request.prompt)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "completion_tokens_details": {"reasoning_tokens": answer.billed.reasoning_tokens()},
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }


def call_json(call: Call) -> dict[str, Any]:
    """A whole call."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def whole_reply(answer: Answer, request: Request, usage: dict[str, Any]) -> dict[str, Any]:
    """The body of a reply that is not streamed."""
    content: str | None = answer.content
    if answer.calls and not answer.content:
        content = request.variant.content_beside_calls
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [call_json(call) for call in answer.calls]
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    if request.logprobs:
        choice["logprobs"] = {"content": token_logprobs(pieces(answer.content), request.top_logprobs)}
    return {
        "id": request.id,
        "object": "chat.completion",
        "created": request.created,
        "model": request.model,
        "choices": [choice],
        "usage": usage,
    }


def token_logprobs(tokens: list[str], alternatives: int) -> list[dict[str, Any]]:
    """One entry for each token; the chosen token leads its own list of alternatives."""
    return [_entry(token, alternatives) for token in tokens]


def _entry(token: str, alternatives: int) -> dict[str, Any]:
    # Probability 0.9 for the chosen token and 0.04, 0.02, ... for the others: together below one.
    others = [f" {other}" for other in _OTHERS if f" {other}" != token]
    top = [_scored(token, -0.10536), *(_scored(other, -3.2189 - 0.6931 * n) for n, other in enumerate(others))]
    return {**_scored(token, -0.10536), "top_logprobs": top[:alternatives]}


def _scored(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": round(logprob, 4), "bytes": list(token.encode())}
