"""Simulator: a clean deployment keeps the contract in both variants, and each fault bends it without breaking it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest

from kimi_eval.fault import STAGES
from kimi_eval.simulator import SimulatedDeployment
from kimi_eval.simulator.faults import all_faults
from kimi_eval.simulator.pipeline import Pipeline
from kimi_eval.simulator.variant import VARIANTS
from tests.requests import BREAKING, EXACTLY, HARD_TEXT, SAVE, WEATHER, body_of, choice, sent

FAULTS = all_faults()

SCENARIOS: dict[str, dict[str, Any]] = {
    "text": {"question": EXACTLY + HARD_TEXT},
    "one call": {"question": "What is the weather in Oslo?", "tools": [WEATHER]},
    "three calls": {"question": "What is the weather in Oslo, Lima and Rome?", "tools": [WEATHER, SAVE]},
    "cut": {"question": "Count from 1 to 500", "max_completion_tokens": 90},
    "stopped": {"question": EXACTLY + "one two STOP three", "stop": ["STOP"]},
    "object": {"question": 'Give exactly this object: {"a": [1, 2]}', "response_format": {"type": "json_object"}},
    "scored": {"question": "What is 12 * 12?", "logprobs": True, "top_logprobs": 3},
}


def frames_of(scenario: str, variant: str, *, options: bool = True) -> tuple[list[dict[str, Any]], dict[str, str]]:
    extra: dict[str, Any] = (
        {"stream_options": {"include_usage": True, "include_internal_content": True}} if options else {}
    )
    status, data, headers = sent(body_of(**SCENARIOS[scenario], stream=True, **extra), variant)
    events = data.decode().split("\n\n")
    assert status == 200
    assert events[-2:] == ["data: [DONE]", ""]
    assert all(event.startswith("data: {") for event in events[:-2])
    return [json.loads(event[6:]) for event in events[:-2]], headers


both_variants = pytest.mark.parametrize("variant", ["a", "b"])
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS)


@both_variants
@each_scenario
def test_frames_keep_their_envelope(scenario: str, variant: str) -> None:
    frames, headers = frames_of(scenario, variant)

    assert {tuple(frame[key] for key in ("id", "object", "created", "model")) for frame in frames} == {
        (frames[0]["id"], "chat.completion.chunk", frames[0]["created"], "kimi-k3.1-pro")
    }
    assert [len(frame["choices"]) for frame in frames] == [1] * (len(frames) - 1) + [0]
    assert frames[-1]["usage"] == frames[-2]["choices"][0]["usage"]
    assert headers["X-Msh-Usage-Prompt-Tokens"] == str(frames[-1]["usage"]["prompt_tokens"])
    assert not any("usage" in frame or "usage" in frame["choices"][0] for frame in frames[:-2])
    assert "usage" not in frames_of(scenario, variant, options=False)[0][-1]


@both_variants
@each_scenario
def test_deltas_follow_the_order_of_the_contract(scenario: str, variant: str) -> None:
    choices = [frame["choices"][0] for frame in frames_of(scenario, variant)[0][:-1]]
    deltas = [choice["delta"] for choice in choices]
    kinds = ["+".join(sorted(delta.keys() - {"internal_content"})) for delta in deltas[1:-1]]

    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[-1] == {}
    assert [choice["finish_reason"] for choice in choices[:-1]] == [None] * (len(choices) - 1)
    assert kinds == sorted(kinds, key=["reasoning_content", "content", "tool_calls"].index)
    assert [d["reasoning_content"] for d in deltas if "reasoning_content" in d].index("") == kinds.count(
        "reasoning_content"
    ) - 1
    assert all(delta["internal_content"]["token_ids"] for delta in deltas[1:-1])
    assert "\ufffd" not in json.dumps(choices, ensure_ascii=False)


@both_variants
@each_scenario
def test_a_stream_joins_to_the_whole_reply(scenario: str, variant: str) -> None:
    frames = frames_of(scenario, variant)[0]
    whole = json.loads(sent(body_of(**SCENARIOS[scenario]), variant)[1])
    message: dict[str, Any] = {"content": "", "reasoning_content": "", "tool_calls": []}
    for delta in (frame["choices"][0]["delta"] for frame in frames[:-1]):
        for kind in ("content", "reasoning_content"):
            message[kind] += delta.get(kind, "")
        for call in delta.get("tool_calls", []):
            if "id" in call:
                assert (call["index"], call["function"]["arguments"]) == (len(message["tool_calls"]), "")
                message["tool_calls"].append({**call, "function": dict(call["function"])})
            else:
                assert set(call) == {"index", "function"}
                message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]

    expected = whole["choices"][0]["message"]
    assert message["content"] == (expected["content"] or "")
    assert message["reasoning_content"] == expected["reasoning_content"]
    assert [call["function"] for call in message["tool_calls"]] == [
        c["function"] for c in expected.get("tool_calls", [])
    ]
    assert frames[-2]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert frames[-1]["usage"] == whole["usage"]


def test_variants_differ_where_the_contract_leaves_a_choice() -> None:
    question = "What is the weather in Oslo?"
    asked: dict[str, Any] = {"tools": [WEATHER]}

    assert choice(question, "a", **asked)["message"]["tool_calls"][0]["id"] == "get_weather_0"
    assert choice(question, "b", **asked)["message"]["tool_calls"][0]["id"] == "get_weather:0"
    assert "reasoning_content" not in choice("hi", "a", thinking={"type": "disabled"})["message"]
    assert sent(body_of("hi", thinking={"type": "disabled"}), "b")[0] == 400


@pytest.mark.parametrize("ceiling", [1, 7, 40, 200])
def test_a_ceiling_is_kept_exactly(ceiling: int) -> None:
    reply = json.loads(sent(body_of("Count from 1 to 500", max_completion_tokens=ceiling))[1])

    assert reply["usage"]["completion_tokens"] == ceiling
    assert reply["choices"][0]["finish_reason"] == "length"


def test_a_prompt_seen_before_is_cached_in_whole_blocks() -> None:
    server, body = Pipeline(), json.dumps(body_of("word " * 700)).encode()
    counts = []
    for _ in range(2):
        usage = json.loads(b"".join(server.chat(body)[1].chunks))["usage"]
        counts.append(usage["prompt_tokens_details"]["cached_tokens"])

    assert counts == [0, usage["prompt_tokens"] // 256 * 256]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_bends_requests_of_every_kind_without_a_crash(name: str) -> None:
    fault = FAULTS[name]
    bodies = [body_of(**fields, stream=stream) for fields in SCENARIOS.values() for stream in (False, True)]
    bodies += [{**body_of("Hi"), **change} for change in BREAKING.values()]
    for variant in VARIANTS.values():
        pipeline = Pipeline(variant=variant, fault=fault)
        for body in bodies:
            _, connection = pipeline.chat(json.dumps(body).encode())
            assert all(isinstance(chunk, bytes) for chunk in connection.chunks)

    assert fault.title.endswith(".")
    assert set(fault.hooks) <= set(STAGES)


def over_http(**options: Any) -> tuple[SimulatedDeployment, list[tuple[int, str]]]:
    async def visit(url: str) -> list[tuple[int, str]]:
        key = {"Authorization": "Bearer wrong"} if options else {}
        asked: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", "/v1/models", {}),
            ("GET", "/health", {}),
            ("GET", "/v1/nothing", {}),
            ("POST", "/v1/chat/completions", {"json": body_of("What is 1 + 1?", stream=True)}),
            ("POST", "/v1/chat/completions", {"data": b"no gzip", "headers": {"Content-Encoding": "gzip", **key}}),
        ]
        async with aiohttp.ClientSession(headers=key) as session:
            answers = []
            for method, path, extra in asked:
                async with session.request(method, url + path, **extra) as response:
                    answers.append((response.status, await response.text()))
            return answers

    with SimulatedDeployment(**options) as server:
        return server, asyncio.run(visit(server.base_url.removesuffix("/v1")))


@both_variants
def test_the_server_answers_on_its_paths(variant: str) -> None:
    server, answers = over_http(variant=variant)

    assert [status for status, _ in answers] == [200, 200, 404, 200, 400]
    assert json.loads(answers[0][1])["data"][0]["id"] == "kimi-k3.1-pro"
    assert answers[3][1].endswith("data: [DONE]\n\n")
    assert server.requests_seen == 5


def test_a_wrong_key_is_refused() -> None:
    answers = over_http(api_key="right")[1]

    assert [status for status, _ in answers] == [401, 200, 404, 401, 400]
    assert json.loads(answers[3][1])["error"]["type"] == "incorrect_api_key_error"


def test_the_server_starts_at_once() -> None:
    began = time.perf_counter()
    with SimulatedDeployment():
        seconds = time.perf_counter() - began

    assert seconds < 0.5  # Measured: 0.005 s.
