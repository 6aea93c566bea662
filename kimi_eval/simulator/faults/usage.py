"""Usage: faults of the token counts."""

from __future__ import annotations

from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.answer import Answer
from kimi_eval.simulator.frames import choices_of
from kimi_eval.simulator.request import Request

Usage = dict[str, Any]


@fault(
    "The total is not the sum.",
    source="P0.2 (F109)",
    kind="usage",
    at="usage",
    noticed_by=["protocol/invariants/usage_adds_up"],
)
def total_is_not_the_sum(request: Request, usage: Usage) -> Usage:
    return {**usage, "total_tokens": usage["total_tokens"] + 1}


@fault(
    "More tokens were cached than the prompt has.",
    source="sglang#32761 (F109)",
    kind="usage",
    at="usage",
    noticed_by=["protocol/invariants/cached_tokens_are_part_of_the_prompt"],
)
def more_cached_than_prompt(request: Request, usage: Usage) -> Usage:
    return {**usage, "prompt_tokens_details": {"cached_tokens": usage["prompt_tokens"] + 2}}


@fault(
    "Reasoning is counted as 0 tokens.",
    source="vllm-ascend#13070 (F111)",
    kind="usage",
    at="usage",
    noticed_by=["protocol/invariants/reasoning_is_counted"],
)
def reasoning_counts_nothing(request: Request, usage: Usage) -> Usage:
    return {**usage, "completion_tokens_details": {"reasoning_tokens": 0}}


@fault(
    "The details of usage are missing.",
    source="vllm#44398 (F111)",
    kind="usage",
    at=("whole", "frames"),
    noticed_by=["protocol/invariants/usage_has_its_details"],
)
def details_are_missing(request: Request, value: Any) -> Any:
    for part in value if isinstance(value, list) else [value]:
        for holder in (part, *part["choices"]):
            if "usage" in holder:
                kept = ("prompt_tokens", "completion_tokens", "total_tokens")
                holder["usage"] = {name: holder["usage"][name] for name in kept}
    return value


@fault(
    "A whole reply has no usage.",
    source="sglang#954 (F095)",
    kind="usage",
    at="whole",
    noticed_by=[
        "conversation/history/calls_in_history_are_rendered",
        "protocol/streaming/lanes_agree[call]",
        "tools/dynamic/a_dynamic_tool_is_rendered",
        "protocol/invariants/usage_adds_up",
    ],
)
def whole_reply_has_no_usage(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    if request.tools:
        del body["usage"]
    return body


@fault(
    "Streams count three prompt tokens more than whole replies.",
    source="smg#2564 (F110, F114)",
    kind="usage",
    at="usage",
    noticed_by=["protocol/streaming/lanes_agree", "protocol/usage/both_lanes_count_the_prompt_alike"],
)
def lanes_count_differently(request: Request, usage: Usage) -> Usage:
    more = 3 if request.streamed else 0
    return {
        **usage,
        "prompt_tokens": usage["prompt_tokens"] + more,
        "total_tokens": usage["total_tokens"] + more,
    }


@fault(
    "The usage headers are missing.",
    source="sglang#39895; P0.18",
    kind="usage",
    at="headers",
    noticed_by=["protocol/invariants/usage_headers_agree"],
)
def usage_headers_are_missing(request: Request, headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not name.startswith("X-Msh-")}


@fault(
    "The header counts the generation stub, the usage does not.",
    source="P0.18 (F110)",
    kind="usage",
    at="headers",
    noticed_by=["protocol/invariants/usage_headers_agree"],
)
def usage_header_is_off_by_three(request: Request, headers: dict[str, str]) -> dict[str, str]:
    return {**headers, "X-Msh-Usage-Prompt-Tokens": str(int(headers["X-Msh-Usage-Prompt-Tokens"]) + 3)}


@fault(
    "Tokens are counted that nobody sees.",
    source="sglang#23363 (F041)",
    kind="usage",
    at="usage",
    noticed_by=["protocol/invariants/counted_tokens_are_visible"],
)
def counted_tokens_vanish(request: Request, usage: Usage) -> Usage:
    if not (request.tools and request.streamed and "Call `" in request.question):
        return usage
    more = 50 * usage["completion_tokens"] + 2000
    more = min(more, max(0, request.budget - usage["completion_tokens"]))
    return {
        **usage,
        "completion_tokens": usage["completion_tokens"] + more,
        "total_tokens": usage["total_tokens"] + more,
    }


@fault(
    "A long prompt is cut at the front, silently.",
    source="ollama#17944 (F118)",
    kind="limits",
    at=("prompt", "rules"),
    noticed_by=[
        "protocol/parameters/an_over_long_prompt_is_refused",
        "protocol/parameters/a_ceiling_beyond_the_window_is_refused",
    ],
)
def long_prompts_are_cut(request: Request, prompt: list[str] | None = None) -> Any:
    if prompt is None:
        return {"window"}
    keep = request.window - 20_000
    return prompt[-keep:] if len(prompt) > request.window else prompt


@fault(
    "Prompt tokens are the same for every prompt.",
    source="sglang#36552 (F079)",
    kind="usage",
    at="usage",
    noticed_by=[
        "conversation/history/calls_in_history_are_rendered",
        "probes/state/a_client_that_leaves_harms_nobody",
        "protocol/usage/a_longer_prompt_costs_more",
        "thinking/pass_back/reasoning_in_history_is_rendered",
        "tools/dynamic/a_dynamic_tool_is_rendered",
    ],
)
def prompt_tokens_are_constant(request: Request, usage: Usage) -> Usage:
    return {
        **usage,
        "prompt_tokens": 1,
        "total_tokens": 1 + usage["completion_tokens"],
        "prompt_tokens_details": {"cached_tokens": 0},
    }


@fault(
    "Log probabilities are dropped without a word.",
    source="P1.17",
    kind="sampling",
    at=("whole", "frames"),
    noticed_by=["protocol/parameters/logprobs_are_sound"],
)
def logprobs_are_dropped(request: Request, value: Any) -> Any:
    for choice in choices_of(value):
        choice.pop("logprobs", None)
    return value


@fault(
    "A log probability is positive.",
    source="vllm#42426 (F123)",
    kind="numerics",
    at=("whole", "frames"),
    noticed_by=["protocol/parameters/logprobs_are_sound"],
)
def a_logprob_is_positive(request: Request, value: Any) -> Any:
    for choice in choices_of(value):
        for entry in (choice.get("logprobs") or {}).get("content", []):
            entry["logprob"] = 0.25
    return value


@fault(
    "The bytes of the tokens do not spell the answer.",
    source="P1.17 (F176)",
    kind="numerics",
    at=("whole", "frames"),
    noticed_by=["protocol/parameters/logprobs_are_sound"],
)
def logprob_bytes_are_wrong(request: Request, value: Any) -> Any:
    for choice in choices_of(value):
        for entry in (choice.get("logprobs") or {}).get("content", []):
            entry["bytes"] = [63]
    return value


@fault(
    "The answer turns into one character without end.",
    source="vllm#42426 (F123)",
    kind="numerics",
    at="answer",
    noticed_by=["protocol/invariants/no_text_is_degenerate"],
)
def one_character_without_end(request: Request, answer: Answer) -> Answer:
    return answer.misread(content="!" * 120) if "Count from 1 to 60" in request.question else answer
