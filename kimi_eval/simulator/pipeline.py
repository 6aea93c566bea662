"""Pipeline: the way of one request through rules, prompt, answer and encoding to a response."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from kimi_eval.fault import Fault
from kimi_eval.simulator import brain
from kimi_eval.simulator.answer import Answer, Call, cut_at_stop, cut_to_budget
from kimi_eval.simulator.cache import PrefixCache
from kimi_eval.simulator.connection import Connection
from kimi_eval.simulator.frames import Framer, encoded, network_chunks
from kimi_eval.simulator.oracle import Oracle, consult
from kimi_eval.simulator.render import render
from kimi_eval.simulator.reply import usage_of, whole_reply
from kimi_eval.simulator.request import Request
from kimi_eval.simulator.rules import first_refusal
from kimi_eval.simulator.rules.rule import Refusal
from kimi_eval.simulator.rules.sampling import MODEL
from kimi_eval.simulator.variant import VARIANTS, Variant

EMPTY = Fault("none", "Nothing is wrong.", "", "none", (), {})


@dataclass(slots=True)
class Pipeline:
    """What a server is, without the network. `state` lives as long as the server does."""

    variant: Variant = VARIANTS["a"]
    fault: Fault = EMPTY
    oracle: Oracle | None = None
    accuracy: float = 1.0
    api_key: str | None = None
    seconds_per_frame: float = 0.0
    window: int = 1_048_576
    seed: int = 0
    state: dict[str, Any] = field(default_factory=lambda: {"in_flight": 0, "abandoned": 0})
    cache: PrefixCache = field(default_factory=PrefixCache)
    started: int = field(default_factory=lambda: int(time.time()))

    def request_of(self, body: Any) -> Request:
        """The request read from a body, valid or not."""
        body = body if isinstance(body, dict) else {}
        request = Request.of(body, variant=self.variant, state=self.state, window=self.window)
        request.id = f"chatcmpl-{secrets.token_hex(12)}"
        request.created = int(time.time())
        return request

    def chat(self, raw: bytes, authorization: str | None = None) -> tuple[Request, Connection]:
        """The answer to POST /v1/chat/completions."""
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError:
            body = None
        request = self.request_of(body)
        if isinstance(body, dict):
            request = self.request_of(self.fault.bend("body", request, body))
        refusal = self._refusal(request, body, authorization, self._skipped(request))
        if refusal is not None:
            return request, self._refused(request, refusal)
        return request, self._answered(request)

    def models(self, authorization: str | None = None) -> tuple[Request, Connection]:
        """The answer to GET /v1/models."""
        request = self.request_of({})
        refusal = self._authentication(authorization)
        if refusal is not None:
            return request, self._refused(request, refusal)
        model = {
            "id": MODEL,
            "object": "model",
            "created": self.started,
            "owned_by": "kimi-eval-simulator",
            "root": MODEL,
            "max_model_len": self.window,
            "context_length": self.window,
        }
        listed = self.fault.bend("models", request, {"object": "list", "data": [model]})
        return request, Connection.of_json(200, listed)

    def error(self, refusal: Refusal) -> tuple[Request, Connection]:
        """The answer to anything else."""
        request = self.request_of({})
        return request, self._refused(request, refusal)

    def _skipped(self, request: Request) -> set[str]:
        return set(self.fault.hooks["rules"](request)) if "rules" in self.fault.hooks else set()

    def _authentication(self, authorization: str | None) -> Refusal | None:
        if self.api_key is None:
            return None
        if not authorization:
            return Refusal("Invalid Authentication", 401, "invalid_authentication_error")
        if authorization != f"Bearer {self.api_key}":
            return Refusal("Incorrect API key provided", 401, "incorrect_api_key_error")
        return None

    def _refusal(self, request: Request, body: Any, authorization: str | None, skipped: set[str]) -> Refusal | None:
        refusal = None if "authentication" in skipped else self._authentication(authorization)
        if refusal is None and not isinstance(body, dict):
            refusal = Refusal("Invalid request: the body must be a JSON object")
        refusal = refusal or first_refusal(request, skipped)
        if refusal is None:
            request.prompt = self.fault.bend("prompt", request, render(request))
            refusal = None if "window" in skipped else self._too_long(request)
        return refusal

    def _too_long(self, request: Request) -> Refusal | None:
        asked = len(request.prompt) + (request.output_tokens or 1)
        if asked <= self.window:
            return None
        return Refusal(f"Your request exceeded model token limit : {self.window} (requested: {asked})")

    def _refused(self, request: Request, refusal: Refusal) -> Connection:
        status, body = self.fault.bend("error", request, (refusal.status, refusal.body))
        return Connection.of_json(status, body)

    def _draft(self, request: Request) -> Answer:
        gold = None
        if self.oracle is not None:
            gold = consult(self.oracle, request, accuracy=self.accuracy, seed=self.seed)
        return brain.answer(request, gold)

    def _answered(self, request: Request) -> Connection:
        request.draft = with_ids(self._draft(request), request)
        answer = cut_at_stop(request.draft, request.stop_words)
        answer = cut_to_budget(answer, request.budget, keep_open_call=self.variant.content_beside_calls is not None)
        answer = self.fault.bend("answer", request, answer)
        cached = self.cache.remember(request.prompt) if self.variant.prefix_cache else 0
        usage = self.fault.bend("usage", request, usage_of(answer, request, cached))
        headers = self.fault.bend("headers", request, _usage_headers(usage))
        if request.streamed:
            return self._stream(request, answer, usage, headers)
        body = self.fault.bend("whole", request, whole_reply(answer, request, usage))
        connection = Connection.of_json(200, body, headers)
        connection.pauses = {0: self.seconds_per_frame * answer.completion_tokens()}
        return connection

    def _stream(self, request: Request, answer: Answer, usage: dict[str, Any], headers: dict[str, str]) -> Connection:
        frames = self.fault.bend("frames", request, Framer(request).frames(answer, usage))
        events = self.fault.bend("wire", request, encoded(frames))
        one_by_one = self.seconds_per_frame > 0 or "transport" in self.fault.hooks
        chunks = network_chunks(events, request, one_by_one=one_by_one)
        headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache", **headers}
        return Connection(200, headers, chunks, True, self.seconds_per_frame)


def with_ids(answer: Answer, request: Request) -> Answer:
    """The answer with an id on each call, in the variant's spelling."""
    variant = request.variant
    first = request.calls_in_history if variant.ids_count_history else 0

    def named(number: int, call: Call) -> Call:
        return replace(call, id=variant.tool_id.format(name=call.name, number=number))

    return replace(answer, calls=tuple(named(number, call) for number, call in enumerate(answer.calls, first)))


def _usage_headers(usage: dict[str, Any]) -> dict[str, str]:
    return {
        "X-Msh-Usage-Prompt-Tokens": str(usage["prompt_tokens"]),
        "X-Msh-Usage-Cached-Tokens": str(usage["prompt_tokens_details"]["cached_tokens"]),
        "x-trace-id": secrets.token_hex(16),
    }
