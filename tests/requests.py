"""Requests: some that keep the contract, one that breaks each of its rules, and the way to send them."""

from __future__ import annotations

import json
from typing import Any

from kimi_eval.fault import Fault
from kimi_eval.simulator.pipeline import EMPTY, Pipeline
from kimi_eval.simulator.variant import VARIANTS

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}
HARD_TEXT = "Zoë 👩‍👩‍👧 한국어 नमस्ते e\u0301 line\u2028break\nend"
EXACTLY = "Reply with exactly this and nothing else: "
SAVE = {"type": "function", "function": {"name": "save", "parameters": {"type": "object"}}}


def body_of(question: str, **fields: Any) -> dict[str, Any]:
    return {
        "model": "kimi-k3.1-pro",
        "messages": [{"role": "user", "content": question}],
        "reasoning_effort": "low",
        **fields,
    }


def sent(body: Any, variant: str = "a", fault: Fault = EMPTY) -> tuple[int, bytes, dict[str, str]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    _, connection = Pipeline(variant=VARIANTS[variant], fault=fault).chat(raw)
    return connection.status, b"".join(connection.chunks), connection.headers


def choice(question: str, variant: str = "a", **fields: Any) -> dict[str, Any]:
    status, data, _ = sent(body_of(question, **fields), variant)
    assert status == 200, data
    return json.loads(data)["choices"][0]  # type: ignore[no-any-return]


def call(number: int) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": "get_weather", "arguments": "{broken"}}


def history(*results: int, reasoning: str = "") -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "What is the weather in Oslo and Rome?"},
        {"role": "assistant", "content": None, "reasoning_content": reasoning, "tool_calls": [call(1), call(2)]},
        *({"role": "tool", "tool_call_id": f"c{number}", "content": f"{number} °C"} for number in results),
    ]


def named(name: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def with_message(**message: Any) -> dict[str, Any]:
    return {"messages": [message, {"role": "user", "content": "Hi"}]}


def schema_format(**json_schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": json_schema}}


PARTIAL = {"role": "assistant", "content": "a", "partial": True}
# For each rule a request that breaks it and no other.
BREAKING: dict[str, dict[str, Any]] = {
    "model": {"model": "other"},
    "stream": {"stream": "yes"},
    "stream_options": {"stream_options": 1},
    "temperature": {"temperature": "1"},
    "top_p": {"top_p": 0.8},
    "n": {"n": 2},
    "presence_penalty": {"presence_penalty": 0.5},
    "frequency_penalty": {"frequency_penalty": 0.5},
    "max_completion_tokens": {"max_completion_tokens": 0},
    "max_tokens": {"max_tokens": -1},
    "seed": {"seed": "x"},
    "reasoning_effort": {"reasoning_effort": "medium"},
    "thinking": {"thinking": {"keep": "last"}},
    "thinking_disabled": {"thinking": {"type": "disabled"}},
    "stop": {"stop": 5},
    "stop_count": {"stop": list("abcdef")},
    "stop_length": {"stop": "é" * 17},
    "logprobs": {"logprobs": 3},
    "top_logprobs": {"logprobs": True, "top_logprobs": 21},
    "parallel_tool_calls": {"parallel_tool_calls": "no"},
    "messages": {"messages": []},
    "role": with_message(role="robot", content="x"),
    "content_type": with_message(role="user", content={"text": "x"}),
    "user_content": with_message(role="user", content=""),
    "system_content": with_message(role="system", content=""),
    "assistant_content": with_message(role="assistant", content=""),
    "history_tool_calls": with_message(role="assistant", content="x", tool_calls=[{"id": "a"}]),
    "tool_call_id": {"messages": [*history(), {"role": "tool", "content": "x"}]},
    "tool_call_id_known": {"messages": [*history(), {"role": "tool", "content": "x", "tool_call_id": "c9"}]},
    "partial": with_message(**PARTIAL),
    "partial_with_json": {
        "messages": [{"role": "user", "content": "Hi"}, PARTIAL],
        "response_format": {"type": "json_object"},
    },
    "image": with_message(
        role="user", content=[{"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}}]
    ),
    "tools": {"tools": {"a": 1}},
    "tool_object": {"tools": [{"type": "function"}]},
    "tool_name": {"tools": [named("1st")]},
    "tool_name_unique": {"tools": [SAVE, SAVE]},
    "tool_strict": {"tools": [{"type": "function", "function": {"name": "a", "strict": "yes"}}]},
    "tool_parameters": {"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "string"}}}]},
    "tool_choice": {"tool_choice": "sometimes"},
    "tool_choice_named": {"tools": [SAVE], "tool_choice": {"type": "function", "function": {"name": "save"}}},
    "tool_choice_required_needs_tools": {"tool_choice": "required", "tools": []},
    "dynamic_tools_role": with_message(role="assistant", content=None, tool_calls=[call(1)], tools=[SAVE]),
    "dynamic_tools_content": with_message(role="system", content="x", tools=[SAVE]),
    "dynamic_tools_list": with_message(role="system", content="", tools={"a": 1}),
    "dynamic_tools_object": with_message(role="system", content="", tools=[{"type": "function"}]),
    "dynamic_tools_unique": {"tools": [SAVE], **with_message(role="system", content="", tools=[SAVE])},
    "response_format_type": {"response_format": {"type": "yaml"}},
    "response_format_json_schema": {"response_format": {"type": "json_schema"}},
    "response_format_name": schema_format(schema={"type": "object"}),
    "response_format_schema": schema_format(name="n", schema="x"),
    "response_format_strict": schema_format(name="n", schema={"type": "object"}, strict="yes"),
    "response_format_mfjs": schema_format(name="n", schema={"type": "object", "not": {}}),
}
