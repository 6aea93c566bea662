"""State: faults that depend on what was asked before, or on who else asks now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.answer import Answer
from kimi_eval.simulator.request import Request

SALAD = " and the of it and" * 30


@fault(
    "Answers of concurrent requests are swapped.",
    source="mlx-lm#965 (F148)",
    kind="concurrency",
    at="answer",
    noticed_by=["probes/state/answers_are_not_mixed_up[text]"],
)
def answers_are_swapped(request: Request, answer: Answer) -> Answer:
    # The short codes of one crowd are alike but for the code; everybody gets that of the one before.
    alone = request.state["in_flight"] < 2
    if alone or "nothing else:" not in request.question or not request.streamed or request.tools:
        return answer
    code = answer.content.strip()
    if (
        not isinstance(request.last.get("content"), str)
        or not code[-4:].isdigit()
        or "-" not in code
        or len(request.messages) > 1
    ):
        return answer
    before: str = request.state.get("code", code)
    request.state["code"] = code
    return replace(answer, content=before)


@fault(
    "The call of another concurrent request is returned.",
    source="mlx-lm#965 (F148)",
    kind="concurrency",
    at="answer",
    noticed_by=["probes/state/answers_are_not_mixed_up[call]"],
)
def calls_are_swapped(request: Request, answer: Answer) -> Answer:
    if len(answer.calls) != 1 or not request.streamed or "-" not in answer.calls[0].arguments[-8:]:
        return answer
    if answer.calls[0].name != "echo" or not answer.calls[0].arguments[-6:-2].isdigit():
        return answer
    before = request.state.get("call", answer.calls[0])
    request.state["call"] = answer.calls[0]
    return replace(answer, calls=(before,))


@fault(
    "The first answer is right, every repetition of the request is garbled.",
    source="vllm-ascend#5269 (F078)",
    kind="multi_turn",
    at="answer",
    noticed_by=["probes/state/repeats_are_as_good_as_the_first", "probes/state/a_prompt_finds_its_own_context"],
)
def repetitions_are_garbled(request: Request, answer: Answer) -> Answer:
    if "code for ferry" not in request.question:
        return answer
    key = "seen " + " ".join(request.prompt)
    seen = request.state.get(key, 0)
    request.state[key] = seen + 1
    return replace(answer, content="的的 <<<//") if seen else answer


@fault(
    "A prompt that comes back for the third time finds the context of another.",
    source="local-inference-lab/vllm#480 (F075, F072)",
    kind="multi_turn",
    at="answer",
    noticed_by=["probes/state/repeats_are_as_good_as_the_first", "probes/state/a_prompt_finds_its_own_context"],
)
def evicted_prompts_find_another(request: Request, answer: Answer) -> Answer:
    if "code for ferry" not in request.question or len(request.prompt) < 200:
        return answer
    asked: dict[str, int] = request.state.setdefault("contexts", {})
    asked[answer.content] = asked.get(answer.content, 0) + 1
    if asked[answer.content] < 3:
        return answer
    return replace(answer, content=next((code for code in asked if code != answer.content), "amber-0000"))


@fault(
    "One long prompt poisons every later answer.",
    source="vllm#51039 (F122)",
    kind="long_context",
    at="answer",
    noticed_by=[
        "probes/state/a_long_prompt_harms_nobody",
        "protocol/invariants/no_text_is_degenerate",
    ],
)
def long_prompt_poisons(request: Request, answer: Answer) -> Answer:
    if len(request.prompt) > 8_000 and "grain grain" in str(request.messages[0].get("content"))[:40]:
        request.state["poisoned"] = True
        return answer
    return replace(answer, content="!" * 64) if request.state.get("poisoned") and answer.content else answer


@fault(
    "The request after a cancelled one sees one token of context.",
    source="sglang#36552 (F079)",
    kind="concurrency",
    at="prompt",
    noticed_by=["probes/state/a_client_that_leaves_harms_nobody"],
)
def cancelled_requests_spoil_the_next(request: Request, prompt: list[str]) -> list[str]:
    if request.question.startswith("Count from") and request.question.endswith(("401", "402", "403", "404")):
        request.state["cancelled"] = True
        return prompt
    return prompt[:1] if request.state.get("cancelled") and "ferry" in request.question else prompt


@fault(
    "Cached tokens are counted below zero.",
    source="sglang#32761 (F109)",
    kind="usage",
    at="usage",
    noticed_by=["protocol/invariants/cached_tokens_are_part_of_the_prompt"],
)
def cached_tokens_go_negative(request: Request, usage: dict[str, Any]) -> dict[str, Any]:
    return {**usage, "prompt_tokens_details": {"cached_tokens": -usage["prompt_tokens_details"]["cached_tokens"] - 1}}


@fault(
    "A long answer falls into a loop.",
    source="kimi-code#3214 (F040)",
    kind="numerics",
    at="answer",
    noticed_by=["protocol/invariants/no_text_is_degenerate"],
)
def long_answers_loop(request: Request, answer: Answer) -> Answer:
    return answer.misread(content=answer.content + SALAD) if "Count from 1 to 60" in request.question else answer


@fault(
    "Answers in scripts other than Latin lose their marks.",
    source="dynamo#12630 (F104)",
    kind="streaming",
    at="answer",
    noticed_by=["conversation/roles/every_script_comes_back"],
)
def other_scripts_are_damaged(request: Request, answer: Answer) -> Answer:
    return replace(answer, content=answer.content.replace("\u200d", "").replace("ñ", "n"))
