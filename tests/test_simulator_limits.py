"""Limits: the simulated deployment accepts everything up to the edge of a rule, and cuts exactly where it is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kimi_eval.simulator.rules import RULES
from tests.requests import EXACTLY, SAVE, WEATHER, body_of, call, choice, history, named, schema_format, sent

HI = {"role": "user", "content": "Hi"}
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
OBJECT: dict[str, Any] = {"type": "object"}


def before(**message: Any) -> dict[str, Any]:
    return {"messages": [message, HI]}


# For each rule requests that keep it, as near to breaking it as there are.
KEEPING: dict[str, list[dict[str, Any]]] = {
    "model": [{}],
    "stream": [{"stream": None}, {"stream": False}, {"stream": True}],
    "stream_options": [{"stream_options": {}}, {"stream_options": {"include_usage": "yes"}}],
    "temperature": [{"temperature": 1}, {"temperature": 1.0}, {"temperature": None}],
    "top_p": [{"top_p": 0.95}],
    "n": [{"n": 1}],
    "presence_penalty": [{"presence_penalty": 0}, {"presence_penalty": 0.0}],
    "frequency_penalty": [{"frequency_penalty": 0}, {"frequency_penalty": -0.0}],
    "max_completion_tokens": [{"max_completion_tokens": 1}, {"max_completion_tokens": 1_000_000}],
    "max_tokens": [{"max_tokens": 1}],
    "seed": [{"seed": 0}, {"seed": -(2**40)}],
    "reasoning_effort": [{"reasoning_effort": effort} for effort in ("low", "high", "max", None)],
    "thinking": [{"thinking": {}}, {"thinking": {"type": "enabled", "keep": "all", "effort": "high"}}],
    "thinking_disabled": [{"thinking": {"type": "enabled"}}],
    "stop": [{"stop": "x"}, {"stop": []}, {"stop": None}],
    "stop_count": [{"stop": list("abcde")}],
    "stop_length": [{"stop": "é" * 16}, {"stop": ["q" * 32]}],
    "logprobs": [{"logprobs": False}, {"logprobs": True}],
    "top_logprobs": [{"logprobs": True, "top_logprobs": 0}, {"logprobs": True, "top_logprobs": 20}],
    "parallel_tool_calls": [{"parallel_tool_calls": False}],
    "messages": [{"messages": [HI]}],
    "role": [before(role=role, content="x") for role in ("system", "developer", "user", "assistant")],
    "content_type": [before(role="user", content="x"), before(role="user", content=[{"type": "text", "text": "x"}])],
    "user_content": [before(role="user", content=" ")],
    "system_content": [before(role="system", content="x")],
    "assistant_content": [
        before(role="assistant", content="", reasoning_content="I think."),
        before(role="assistant", content=None, tool_calls=[call(1)]),
    ],
    "history_tool_calls": [before(role="assistant", content="x", tool_calls=[])],
    "tool_call_id": [{"messages": history(1, 2)}],
    "tool_call_id_known": [{"messages": history(2, 1)}],
    "partial": [{"messages": [HI, {"role": "assistant", "content": "a", "partial": True}]}],
    "partial_with_json": [
        {"messages": [HI, {"role": "assistant", "content": "a"}], "response_format": {"type": "json_object"}}
    ],
    "image": [
        before(role="user", content=[{"type": "image_url", "image_url": url}]) for url in (PIXEL, {"url": PIXEL})
    ],
    "tools": [{"tools": []}, {"tools": None}],
    "tool_object": [{"tools": [named("a")]}],
    "tool_name": [{"tools": [named("a" * 256)]}, {"tools": [named("_A-1")]}],
    "tool_name_unique": [{"tools": [SAVE, WEATHER]}],
    "tool_strict": [{"tools": [{"type": "function", "function": {"name": "a", "strict": False}}]}],
    "tool_parameters": [{"tools": [{"type": "function", "function": {"name": "a", "parameters": OBJECT}}]}],
    "tool_choice": [{"tools": [SAVE], "tool_choice": word} for word in ("auto", "none", "required")],
    "tool_choice_named": [{"tools": [SAVE], "tool_choice": "required"}],
    "tool_choice_required_needs_tools": [
        {"tool_choice": "none"},
        {"tool_choice": "required", **before(role="system", content="", tools=[SAVE])},
    ],
    "dynamic_tools_role": [before(role="system", tools=[SAVE]), before(role="developer", content="", tools=[SAVE])],
    "dynamic_tools_content": [before(role="system", content=None, tools=[SAVE])],
    "dynamic_tools_list": [before(role="system", content="", tools=[])],
    "dynamic_tools_object": [before(role="system", content="", tools=[named("a")])],
    "dynamic_tools_unique": [{"tools": [WEATHER], **before(role="system", content="", tools=[SAVE])}],
    "response_format_type": [{"response_format": {"type": "text"}}, {"response_format": {"type": "json_object"}}],
    "response_format_json_schema": [schema_format(name="n", schema=OBJECT)],
    "response_format_name": [schema_format(name="n" * 64, schema=OBJECT)],
    "response_format_schema": [schema_format(name="n", schema={})],
    "response_format_strict": [schema_format(name="n", schema=OBJECT, strict=True)],
    "response_format_mfjs": [schema_format(name="n", schema={"type": "object", "not": {}}, strict=False)],
}

each_lane = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
both_variants = pytest.mark.parametrize("variant", ["a", "b"])


def test_every_rule_has_requests_that_keep_it() -> None:
    assert set(KEEPING) == set(RULES)


@both_variants
@each_lane
@pytest.mark.parametrize("rule", KEEPING)
def test_what_keeps_a_rule_is_answered(rule: str, streamed: bool, variant: str) -> None:
    for fields in KEEPING[rule]:
        status, data, _ = sent({"stream": streamed, **body_of("Hi"), **fields}, variant)

        assert status == 200, data


@both_variants
def test_a_stop_word_ends_the_content_before_itself(variant: str) -> None:
    question = EXACTLY + "one two STOP three STOP"
    free, cut = choice(question, variant), choice(question, variant, stop=["three", "STOP"])

    assert free["message"]["content"] == "one two STOP three STOP"
    assert (cut["message"]["content"], cut["finish_reason"]) == ("one two ", "stop")
    assert cut["message"]["reasoning_content"] == free["message"]["reasoning_content"]


@both_variants
def test_what_was_cut_at_a_stop_word_is_not_billed(variant: str) -> None:
    question = EXACTLY + "one two STOP " + "word " * 100
    bills = [
        json.loads(sent(body_of(question, **more), variant)[1])["usage"]["completion_tokens"]
        for more in ({}, {"stop": "STOP"})
    ]

    assert bills[0] - bills[1] >= 100


def test_a_call_after_a_stop_word_was_never_made() -> None:
    text = "First say: Looking STOP here.\nCall `save` with exactly these arguments: {}"
    cut = choice(text, tools=[SAVE], stop="STOP")

    assert (cut["message"]["content"], cut["finish_reason"]) == ("Looking ", "stop")
    assert "tool_calls" not in cut["message"]


@both_variants
@each_lane
@pytest.mark.parametrize("ceiling", [1, 13, 60])
def test_a_ceiling_cuts_to_the_beginning_of_the_same_answer(ceiling: int, streamed: bool, variant: str) -> None:
    question = "Count from 1 to 200"
    full = choice(question, variant)["message"]
    fields = {"max_completion_tokens": ceiling, "stream": streamed, "stream_options": {"include_usage": True}}
    data = sent(body_of(question, **fields), variant)[1]
    if streamed:
        frames = [json.loads(event[6:]) for event in data.decode().split("\n\n")[:-2]]
        deltas = [frame["choices"][0]["delta"] for frame in frames[:-1]]
        content = "".join(delta.get("content", "") for delta in deltas)
        reasoning = "".join(delta.get("reasoning_content", "") for delta in deltas)
        usage, reason = frames[-1]["usage"], frames[-2]["choices"][0]["finish_reason"]
    else:
        reply = json.loads(data)
        message, reason = reply["choices"][0]["message"], reply["choices"][0]["finish_reason"]
        content, reasoning, usage = message["content"], message["reasoning_content"], reply["usage"]

    assert (usage["completion_tokens"], reason) == (ceiling, "length")
    assert full["content"].startswith(content)
    assert full["reasoning_content"].startswith(reasoning)
    assert content == "" or reasoning == full["reasoning_content"]


def test_a_ceiling_that_is_just_enough_does_not_cut() -> None:
    usage = json.loads(sent(body_of("What is 1 + 1?"))[1])["usage"]
    needed = usage["completion_tokens"]

    assert choice("What is 1 + 1?", max_completion_tokens=needed)["finish_reason"] == "stop"
    assert choice("What is 1 + 1?", max_completion_tokens=needed - 1)["finish_reason"] == "length"
