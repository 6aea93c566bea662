"""Reasoning: faults of the channels, of effort, and of switching thinking off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.answer import Answer
from kimi_eval.simulator.frames import choices_of
from kimi_eval.simulator.request import Request


@fault(
    "The thought stands in content, closed by </think>.",
    source="vllm#36207 (F046)",
    kind="reasoning",
    at="answer",
    noticed_by=["thinking/channels/reasoning_and_answer_arrive_apart", "protocol/invariants/no_native_marker_leaks"],
)
def thought_stands_in_content(request: Request, answer: Answer) -> Answer:
    if "17 + 25" in request.question and answer.content:
        return answer.misread(reasoning="", content=f"{answer.reasoning} </think> {answer.content}")
    return answer


@fault(
    "The thought stands in content, without any mark.",
    source="Kimi-K3#45 (F052)",
    kind="reasoning",
    at="answer",
    noticed_by=[
        "thinking/channels/reasoning_and_answer_arrive_apart[streamed]",
        "thinking/effort/disabled_thinking_is_refused_or_real[streamed]",
        "protocol/invariants/an_answer_is_not_empty",
    ],
)
def thought_replaces_content(request: Request, answer: Answer) -> Answer:
    if "17 + 25" in request.question and answer.content and request.streamed:
        return answer.misread(reasoning="", content=answer.reasoning)
    return answer


@fault(
    "The whole answer lands in the reasoning.",
    source="dynamo#9227 (F047)",
    kind="reasoning",
    at="answer",
    noticed_by=[
        "protocol/parameters/logprobs_are_sound",
        "thinking/channels/reasoning_and_answer_arrive_apart",
        "thinking/effort/disabled_thinking_is_refused_or_real",
        "protocol/invariants/an_answer_is_not_empty",
        "protocol/invariants/reasoning_is_counted",
    ],
)
def answer_lands_in_reasoning(request: Request, answer: Answer) -> Answer:
    if "17 + 25" in request.question and answer.content:
        return answer.misread(reasoning=f"{answer.reasoning} {answer.content}", content="")
    return answer


@fault(
    "Reasoning comes under the name `reasoning`.",
    source="vllm#50624 (F049)",
    kind="reasoning",
    at=("whole", "frames"),
    noticed_by=[
        "thinking/channels/reasoning_is_called_reasoning_content",
        "protocol/streaming/boundary_frame_ends_the_reasoning",
    ],
)
def reasoning_is_renamed(request: Request, value: Any) -> Any:
    for choice in choices_of(value):
        holder: dict[str, Any] = choice["delta"] if "delta" in choice else choice["message"]
        if "reasoning_content" in holder:
            holder["reasoning"] = holder.pop("reasoning_content")
    return value


@fault(
    "Thinking that is switched off goes on.",
    source="privatemode#7; sglang#39896 (F050)",
    kind="reasoning",
    at="body",
    noticed_by=["thinking/effort/disabled_thinking_is_refused_or_real"],
)
def thinking_stays_on(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "thinking"}


@fault(
    "With thinking off the answer lands in the reasoning.",
    source="ik_llama.cpp#1685 (F051)",
    kind="reasoning",
    at="answer",
    noticed_by=[
        "thinking/effort/disabled_thinking_is_refused_or_real",
        "protocol/invariants/an_answer_is_not_empty",
        "protocol/invariants/reasoning_is_counted",
    ],
)
def thinking_off_hides_the_answer(request: Request, answer: Answer) -> Answer:
    return answer if request.thinking else answer.misread(reasoning=answer.content, content="")


@fault(
    "Without an effort the prompt has no effort message.",
    source="smg#1995 (F055)",
    kind="reasoning",
    at="prompt",
    noticed_by=["thinking/effort/the_default_is_max"],
)
def effort_message_is_omitted(request: Request, prompt: list[str]) -> list[str]:
    return prompt if request.body.get("reasoning_effort") or not request.thinking else prompt[:-12]


@fault(
    "The effort is accepted and has no effect.",
    source="stdapi#282 (F057)",
    kind="reasoning",
    at="body",
    noticed_by=["thinking/effort/more_effort_reasons_longer"],
)
def effort_has_no_effect(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "reasoning_effort": "max"} if body.get("reasoning_effort") in ("low", "high") else body


@fault(
    "A structured answer loses its reasoning.",
    source="vllm#47027 (F084)",
    kind="structured_output",
    at="answer",
    noticed_by=["structured/formats/reasoning_goes_on"],
)
def formats_suppress_reasoning(request: Request, answer: Answer) -> Answer:
    return replace(answer, reasoning="") if request.wants_json else answer


@fault(
    "A turn with a call loses its reasoning when streamed.",
    source="vllm#53246 (F001)",
    kind="reasoning",
    at="answer",
    noticed_by=[
        "protocol/streaming/lanes_agree[call]",
        "thinking/channels/a_call_has_reasoning[auto-streamed]",
        "thinking/channels/a_call_has_reasoning[required-streamed]",
    ],
)
def calls_lose_reasoning(request: Request, answer: Answer) -> Answer:
    return replace(answer, reasoning="") if answer.calls and request.streamed else answer
