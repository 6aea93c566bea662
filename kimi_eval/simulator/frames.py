"""Frame: one event of a stream, from the role frame to the usage summary."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import orjson

from kimi_eval.simulator.answer import Answer, Call
from kimi_eval.simulator.reply import token_logprobs
from kimi_eval.simulator.request import Request
from kimi_eval.simulator.tokens import CLOSE, pieces, token_id

DONE = b"data: [DONE]\n\n"


class Framer:
    """Builds the frames of one stream."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._base = {
            "id": request.id,
            "object": "chat.completion.chunk",
            "created": request.created,
            "model": request.model,
        }
        self._random = Random(len(request.prompt))

    def frames(self, answer: Answer, usage: dict[str, Any]) -> list[dict[str, Any]]:
        """Every frame of the stream, the summary last when it was asked for."""
        frames = [self.delta({"role": "assistant", "content": ""})]
        for group in self._groups(answer.reasoning):
            frames.append(self.increment({"reasoning_content": "".join(group)}, group))
        if answer.reasoning and (answer.content or answer.calls or answer.finish_reason != "length"):
            frames.append(self.increment({"reasoning_content": ""}, [CLOSE]))
        for group in self._groups(answer.content):
            frames.append(self._content(group))
        for index, call in enumerate(answer.calls):
            frames += self._call(index, call)
        frames.append(self.end(answer.finish_reason, usage))
        if self.request.stream_option("include_usage"):
            frames.append(self.summary(usage))
        return frames

    def delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        """A frame with this delta."""
        return {**self._base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    def increment(self, delta: dict[str, Any], tokens: list[str]) -> dict[str, Any]:
        """A frame that carries new tokens; their ids stand beside them when they were asked for."""
        if self.request.stream_option("include_internal_content"):
            delta = {**delta, "internal_content": {"token_ids": [token_id(token) for token in tokens]}}
        return self.delta(delta)

    def end(self, finish_reason: str, usage: dict[str, Any]) -> dict[str, Any]:
        """The frame that ends the choice."""
        choice = {"index": 0, "delta": {}, "finish_reason": finish_reason, "usage": usage}
        return {**self._base, "choices": [choice]}

    def summary(self, usage: dict[str, Any]) -> dict[str, Any]:
        """The usage frame after all choices."""
        return {**self._base, "choices": [], "usage": usage}

    def _content(self, group: list[str]) -> dict[str, Any]:
        frame = self.increment({"content": "".join(group)}, group)
        if self.request.logprobs:
            frame["choices"][0]["logprobs"] = {"content": token_logprobs(group, self.request.top_logprobs)}
        return frame

    def _call(self, index: int, call: Call) -> Iterator[dict[str, Any]]:
        function = {"name": call.name, "arguments": ""}
        opening = {"index": index, "id": call.id, "type": "function", "function": function}
        yield self.increment({"tool_calls": [opening]}, call.header())
        for group in self._groups(call.arguments):
            chunk = {"index": index, "function": {"arguments": "".join(group)}}
            yield self.increment({"tool_calls": [chunk]}, group)

    def _groups(self, text: str) -> Iterator[list[str]]:
        low, high = self.request.variant.tokens_per_frame
        tokens = pieces(text)
        position = 0
        while position < len(tokens):
            size = low if low == high else self._random.randint(low, high)
            yield tokens[position : position + size]
            position += size


def choices_of(value: Any) -> list[dict[str, Any]]:
    """Every choice of a whole reply, or of all frames of a stream: what a fault of both lanes bends."""
    return [choice for part in (value if isinstance(value, list) else [value]) for choice in part["choices"]]


def encoded(frames: list[Any]) -> list[bytes]:
    """The frames as server-sent events and the terminator; bytes among the frames pass as they are."""
    events = [frame if isinstance(frame, bytes) else b"data: " + orjson.dumps(frame) + b"\n\n" for frame in frames]
    return [*events, DONE]


def network_chunks(events: list[bytes], request: Request, *, one_by_one: bool) -> list[bytes]:
    """The events as they are handed to the network: each alone, many together, or cut anywhere."""
    if not request.variant.aligned_network_chunks:
        data, random, chunks, position = b"".join(events), Random(len(request.prompt)), [], 0
        while position < len(data):
            size = random.randint(7, 1500)
            chunks.append(data[position : position + size])
            position += size
        return chunks
    if one_by_one:
        return events
    return [b"".join(events[start : start + 64]) for start in range(0, len(events), 64)]
