"""Endings: faults of how an answer finishes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.answer import Answer
from kimi_eval.simulator.request import Request

Frames = list[dict[str, Any]]


def end_of(frames: Frames) -> int:
    """The place of the end frame."""
    return next(
        place for place, frame in enumerate(frames) if any(choice["finish_reason"] for choice in frame["choices"])
    )


@fault(
    "The end frame comes twice.",
    source="P1.11",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/a_choice_finishes_once"],
)
def end_comes_twice(request: Request, frames: Frames) -> Frames:
    place = end_of(frames)
    return [*frames[: place + 1], frames[place], *frames[place + 1 :]]


@fault(
    "No frame names a finish reason.",
    source="P0.15 (F107)",
    kind="streaming",
    at="frames",
    noticed_by=[
        "protocol/parameters/max_completion_tokens_is_kept[streamed]",
        "protocol/parameters/max_tokens_is_kept[streamed]",
        "protocol/parameters/max_completion_tokens_wins[streamed]",
        "protocol/parameters/a_spent_budget_is_no_answer[streamed]",
        "protocol/parameters/a_stop_word_is_cut[streamed]",
        "protocol/streaming/lanes_agree",
        "tools/calls/words_and_a_call_go_together[streamed]",
        "tools/tool_choice/required_forces_a_call[streamed]",
        "tools/tool_choice/none_forbids_calls[streamed]",
        "tools/tool_choice/auto_calls_when_needed[streamed]",
        "protocol/streaming/a_choice_finishes_once",
        "protocol/streaming/middle_frames_carry_no_usage",
    ],
)
def end_is_never_named(request: Request, frames: Frames) -> Frames:
    frames[end_of(frames)]["choices"][0]["finish_reason"] = None
    return frames


@fault(
    "The last token rides on the end frame.",
    source="vllm#35705 (F102)",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/internal_content_has_token_ids", "protocol/streaming/end_frame_has_an_empty_delta"],
)
def last_token_rides_on_the_end(request: Request, frames: Frames) -> Frames:
    place = end_of(frames)
    before = frames[place - 1]["choices"][0]["delta"]
    if request.logprobs or not before.get("content"):
        return frames
    frames[place]["choices"][0]["delta"] = {"content": before["content"]}
    return [*frames[: place - 1], *frames[place:]]


@fault(
    "A token follows the finish reason.",
    source="P1.12",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/nothing_is_said_after_the_end"],
)
def token_follows_the_end(request: Request, frames: Frames) -> Frames:
    place = end_of(frames)
    if "content" not in frames[place - 1]["choices"][0]["delta"]:
        return frames
    return [*frames[: place - 1], frames[place], frames[place - 1], *frames[place + 1 :]]


@fault(
    "A normal end is called `stop_163586`, the number of the stop token.",
    source="ATOM#1727",
    kind="streaming",
    at="answer",
    noticed_by=[
        "protocol/parameters/a_stop_word_is_cut",
        "tools/tool_choice/none_forbids_calls",
        "protocol/invariants/finish_reason_is_legal",
    ],
)
def stop_token_is_the_reason(request: Request, answer: Answer) -> Answer:
    return replace(answer, finish_reason="stop_163586") if answer.finish_reason == "stop" else answer


@fault(
    "`finish_reason` is tool_calls next to no calls, when a call was required and not parsed.",
    source="vllm#53255 (F028)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/tool_choice/required_forces_a_call[whole]",
        "protocol/invariants/finish_reason_agrees_with_the_calls",
    ],
)
def tool_calls_without_calls(request: Request, answer: Answer) -> Answer:
    if request.tool_choice == "required" and not request.streamed and "how are you" in request.question:
        return answer.misread(calls=(), content="Hello!", finish_reason="tool_calls")
    return answer


@fault(
    "`finish_reason` is stop next to a call.",
    source="vllm#43155 (F029)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "protocol/streaming/lanes_agree[call]",
        "tools/tool_choice/required_forces_a_call[streamed]",
        "protocol/invariants/finish_reason_agrees_with_the_calls",
    ],
)
def stop_next_to_a_call(request: Request, answer: Answer) -> Answer:
    if answer.calls and request.tool_choice == "required" and request.streamed:
        return replace(answer, finish_reason="stop")
    return answer


@fault(
    "An answer that was cut at the ceiling says it stopped.",
    source="vllm#47963 (F042)",
    kind="limits",
    at="answer",
    noticed_by=[
        "protocol/parameters/max_completion_tokens_is_kept",
        "protocol/parameters/max_tokens_is_kept",
        "protocol/parameters/max_completion_tokens_wins",
        "protocol/parameters/a_spent_budget_is_no_answer",
        "protocol/invariants/an_answer_is_not_empty",
    ],
)
def cut_answers_say_stop(request: Request, answer: Answer) -> Answer:
    return replace(answer, finish_reason="stop") if answer.finish_reason == "length" else answer


@fault(
    "The ceiling is overrun by a quarter.",
    source="protocol.md §2.1",
    kind="limits",
    at="answer",
    noticed_by=[
        "protocol/parameters/max_completion_tokens_is_kept",
        "protocol/parameters/max_tokens_is_kept",
        "protocol/parameters/max_completion_tokens_wins",
        "protocol/invariants/answers_keep_to_the_ceiling",
    ],
)
def ceiling_is_overrun(request: Request, answer: Answer) -> Answer:
    if answer.finish_reason != "length":
        return answer
    return replace(answer, reasoning=answer.reasoning + " and on and on it goes" * 2)


@fault(
    "`max_tokens` is ignored.",
    source="protocol.md §2.1",
    kind="limits",
    at="body",
    noticed_by=["protocol/parameters/max_tokens_is_kept", "protocol/invariants/answers_keep_to_the_ceiling"],
)
def max_tokens_is_ignored(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "max_tokens" or "max_completion_tokens" in body}


@fault(
    "`max_tokens` wins over `max_completion_tokens`.",
    source="protocol.md §2.1",
    kind="limits",
    at="body",
    noticed_by=["protocol/parameters/max_completion_tokens_wins", "protocol/invariants/answers_keep_to_the_ceiling"],
)
def max_tokens_wins(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    if "max_tokens" in body and "max_completion_tokens" in body:
        return {**body, "max_completion_tokens": body["max_tokens"]}
    return body


@fault(
    "Reasoning that used up the ceiling is handed on as content.",
    source="hermes-agent#22949 (F053)",
    kind="limits",
    at="answer",
    noticed_by=["protocol/parameters/a_spent_budget_is_no_answer"],
)
def spent_budget_becomes_content(request: Request, answer: Answer) -> Answer:
    if answer.finish_reason == "length" and answer.reasoning and not answer.content and request.budget < 12:
        return answer.misread(content=answer.reasoning)
    return answer


@fault(
    "The stop word stays in the text.",
    source="P1.1",
    kind="limits",
    at="answer",
    noticed_by=["protocol/parameters/a_stop_word_is_cut"],
)
def stop_word_stays(request: Request, answer: Answer) -> Answer:
    word = next((word for word in request.stop_words if word in request.draft.content), "")
    return replace(answer, content=answer.content + word) if word else answer


@fault(
    "Stop words are ignored.",
    source="P1.1",
    kind="limits",
    at="body",
    noticed_by=["protocol/parameters/a_stop_word_is_cut", "protocol/parameters/stop_words_are_limited[33_bytes]"],
)
def stop_is_ignored(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    stop = body.get("stop")
    return {**body, "stop": None} if isinstance(stop, list) and len(stop) == 1 else body


@fault(
    "A stop word in the reasoning ends the answer.",
    source="vllm#38499 (F116)",
    kind="limits",
    at="answer",
    noticed_by=[
        "protocol/parameters/a_stop_word_does_not_match_in_reasoning",
        "protocol/invariants/an_answer_is_not_empty",
    ],
)
def stop_matches_in_reasoning(request: Request, answer: Answer) -> Answer:
    for word in request.stop_words:
        if word in answer.reasoning:
            return replace(answer, reasoning=answer.reasoning.partition(word)[0], content="", calls=())
    return answer


@fault(
    "The answer has no text, and nothing says why.",
    source="sglang#25358 (F023)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/tool_choice/auto_may_answer_in_words", "protocol/invariants/an_answer_is_not_empty"],
)
def answer_to_arithmetic_is_empty(request: Request, answer: Answer) -> Answer:
    return answer.misread(content="") if request.question.strip() == "What is 2 + 2?" else answer
