"""Parameter: the rules for the model's name and for the plain fields of a request."""

from __future__ import annotations

from typing import Any

from kimi_eval.simulator.request import EFFORTS, Request
from kimi_eval.simulator.rules.rule import Refusal, Verdict, is_int, is_number, rule

MODEL = "kimi-k3.1-pro"


@rule("model")
def model_is_served(request: Request) -> Verdict:
    model = request.body.get("model")
    if not isinstance(model, str) or not model:
        return "Invalid request: model is required and must be a string"
    if model != MODEL:
        return Refusal(f"Not found the model {model} or Permission denied", 404, "resource_not_found_error")
    return None


@rule("stream")
def stream_is_a_boolean(request: Request) -> Verdict:
    stream = request.body.get("stream")
    return None if stream is None or isinstance(stream, bool) else "invalid stream: must be a boolean"


@rule("stream_options")
def stream_options_is_an_object(request: Request) -> Verdict:
    options = request.body.get("stream_options")
    return None if options is None or isinstance(options, dict) else "invalid stream_options: must be an object"


def _fixed(request: Request, name: str, allowed: float) -> Verdict:
    value: Any = request.body.get(name)
    if value is None or (is_number(value) and value == allowed):
        return None
    return f"invalid {name}: only {allowed:g} is allowed for this model"


@rule("temperature")
def temperature_is_one(request: Request) -> Verdict:
    return _fixed(request, "temperature", 1)


@rule("top_p")
def top_p_is_fixed(request: Request) -> Verdict:
    return _fixed(request, "top_p", 0.95)


@rule("n")
def n_is_one(request: Request) -> Verdict:
    return _fixed(request, "n", 1)


@rule("presence_penalty")
def presence_penalty_is_zero(request: Request) -> Verdict:
    return _fixed(request, "presence_penalty", 0)


@rule("frequency_penalty")
def frequency_penalty_is_zero(request: Request) -> Verdict:
    return _fixed(request, "frequency_penalty", 0)


def _positive(request: Request, name: str) -> Verdict:
    value = request.body.get(name)
    if value is None or (is_int(value) and value >= 1):
        return None
    return f"invalid {name}: must be an integer of at least 1"


@rule("max_completion_tokens")
def max_completion_tokens_is_positive(request: Request) -> Verdict:
    return _positive(request, "max_completion_tokens")


@rule("max_tokens")
def max_tokens_is_positive(request: Request) -> Verdict:
    return _positive(request, "max_tokens")


@rule("seed")
def seed_is_an_integer(request: Request) -> Verdict:
    seed = request.body.get("seed")
    return None if seed is None or is_int(seed) else "invalid seed: must be an integer"


@rule("reasoning_effort")
def reasoning_effort_is_known(request: Request) -> Verdict:
    effort = request.body.get("reasoning_effort")
    if effort is None or effort in EFFORTS:
        return None
    return f"invalid reasoning_effort: {effort!r}; allowed are low, high, max"


@rule("thinking")
def thinking_is_well_formed(request: Request) -> Verdict:
    thinking = request.body.get("thinking")
    if thinking is None:
        return None
    if not isinstance(thinking, dict):
        return "invalid thinking: must be an object"
    if thinking.get("type", "enabled") not in ("enabled", "disabled"):
        return "invalid thinking: type must be enabled or disabled"
    if thinking.get("keep", "all") not in ("all", None):
        return "invalid thinking: only keep=all is allowed for this model"
    if thinking.get("effort", "max") not in (*EFFORTS, None):
        return "invalid thinking: effort must be one of low, high, max"
    return None


@rule("thinking_disabled")
def thinking_may_be_fixed(request: Request) -> Verdict:
    if request.thinking or request.variant.thinking_can_be_disabled:
        return None
    return "invalid thinking: only type=enabled is allowed for this model"


@rule("stop")
def stop_is_short(request: Request) -> Verdict:
    stop = request.body.get("stop")
    if stop is None:
        return None
    words = [stop] if isinstance(stop, str) else stop
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return "invalid stop: must be a string or a list of strings"
    return None


@rule("stop_count")
def stop_words_are_few(request: Request) -> Verdict:
    return "invalid stop: at most 5 stop words are allowed" if len(request.stop_words) > 5 else None


@rule("stop_length")
def stop_words_are_short(request: Request) -> Verdict:
    if any(len(word.encode()) > 32 for word in request.stop_words):
        return "invalid stop: a stop word may have at most 32 bytes"
    return None


@rule("logprobs")
def logprobs_is_a_boolean(request: Request) -> Verdict:
    value = request.body.get("logprobs")
    return None if value is None or isinstance(value, bool) else "invalid logprobs: must be a boolean"


@rule("top_logprobs")
def top_logprobs_is_in_range(request: Request) -> Verdict:
    value = request.body.get("top_logprobs")
    if value is None:
        return None
    if not is_int(value) or not 0 <= value <= 20:
        return "invalid top_logprobs: must be an integer from 0 to 20"
    if not request.logprobs:
        return "invalid top_logprobs: logprobs must be true when top_logprobs is given"
    return None


@rule("parallel_tool_calls")
def parallel_tool_calls_is_a_boolean(request: Request) -> Verdict:
    value = request.body.get("parallel_tool_calls")
    return None if value is None or isinstance(value, bool) else "invalid parallel_tool_calls: must be a boolean"
