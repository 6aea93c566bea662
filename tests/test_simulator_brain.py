"""Brain: the simulated model does what the words of the last turn say, and remembers the whole conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kimi_eval.simulator.instance import minimal
from kimi_eval.simulator.oracle import wrong
from kimi_eval.simulator.tokens import pieces
from tests.requests import EXACTLY, HARD_TEXT, SAVE, WEATHER, body_of, choice, history, sent


def content(question: str, **fields: Any) -> str:
    return str(choice(question, **fields)["message"]["content"])


def calls(question: str, **fields: Any) -> list[tuple[str, Any]]:
    found = choice(question, **fields)["message"].get("tool_calls", [])
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (EXACTLY + HARD_TEXT, HARD_TEXT),
        ("Repeat the following text verbatim between <<< and >>>: <<<  a\n>b >>>", "  a\n>b "),
        ("What is 17 + 25?", "42"),
        ("What is 6 × 7?", "42"),
        ("What is 6x7?", "42"),
        ("What is 5 - 8?", "-3"),
        ("Count from 1 to 4", "1, 2, 3, 4"),
        ("Count from 3 to 1, separated by line breaks", "3\n2\n1"),
        ("The code for RED is 12-A. The code for RED is v1.5. What is the code for RED?", "v1.5"),
        ("What is the code for BLUE?", "I do not know."),
        ("How many tools do you have?", "0"),
        ("What is your thinking effort?", "low"),
        ("Hi", "Hello! How can I help you today?"),
    ],
)
def test_the_brain_answers_by_the_words_of_the_question(question: str, answer: str) -> None:
    assert content(question) == answer


def test_calls_are_made_as_asked() -> None:
    text = 'First say: Now.\nCall `save` with exactly these arguments: {"b": 1, "a": "x y"}\n'
    both = text + "Call `get_weather` with exactly these arguments: {}"
    tools: dict[str, Any] = {"tools": [WEATHER, SAVE]}
    made = choice(both, **tools)["message"]

    assert made["content"] == "Now."
    assert made["tool_calls"][0]["function"]["arguments"] == '{"b":1,"a":"x y"}'
    assert len(made["tool_calls"]) == 2
    assert calls(both, parallel_tool_calls=False, **tools) == [("save", {"b": 1, "a": "x y"})]
    assert calls(both, tool_choice="none", **tools) == []
    assert calls(text, tools=[WEATHER]) == []
    assert calls("Hi", tool_choice="required", **tools) == [("get_weather", {"city": "text"})]


def test_dynamic_tools_are_declared_in_system_messages() -> None:
    messages = [
        {"role": "system", "content": "", "tools": [WEATHER]},
        {"role": "user", "content": "What is the weather in Oslo and Rome?"},
    ]
    body = {**body_of(""), "messages": messages, "tool_choice": "required"}

    found = json.loads(sent(body)[1])["choices"][0]["message"]["tool_calls"]
    assert [call["function"]["arguments"] for call in found] == ['{"city":"Oslo"}', '{"city":"Rome"}']


def test_results_are_read_in_the_order_of_their_calls() -> None:
    replies = [json.loads(sent({**body_of(""), "messages": history(*order)})[1]) for order in ((1, 2), (2, 1))]

    assert [reply["choices"][0]["message"]["content"] for reply in replies] == ["1 °C; 2 °C"] * 2
    assert replies[0]["usage"]["prompt_tokens"] == replies[1]["usage"]["prompt_tokens"]


def test_preserved_thoughts_are_rendered_and_remembered() -> None:
    ask = {"role": "user", "content": "What is the code for KEY?"}
    thought = "The code for KEY is 7731."
    replies = [
        json.loads(sent({**body_of(""), "messages": [*history(1, 2, reasoning=text), ask]})[1])
        for text in ("", thought)
    ]
    known, unknown = (reply["usage"]["prompt_tokens"] for reply in reversed(replies))

    assert replies[1]["choices"][0]["message"]["content"] == "7731"
    assert known - unknown == len(pieces(thought))


def test_structured_answers_are_compact_and_valid() -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": ["x"], "type": "string"}, "node": {"$ref": "#/$defs/Node"}},
        "required": ["kind", "node"],
        "$defs": {"Node": {"type": "array", "items": {"type": "integer", "minimum": 3}, "minItems": 2}},
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}

    assert content("Hi", response_format=wanted) == '{"kind":"x","node":[3,3]}'
    assert content('Give exactly this object: {"kind": "y"}', response_format=wanted) == '{"kind":"x","node":[3,3]}'
    assert content("Hi", response_format={"type": "json_object"}) == '{"answer":"ok"}'


def test_a_one_word_instruction_wins() -> None:
    for role in ("system", "developer"):
        messages = [
            {"role": role, "content": "Answer every question with exactly the word OTTER."},
            {"role": "user", "content": "What is 1 + 1?"},
        ]
        assert json.loads(sent({**body_of(""), "messages": messages})[1])["choices"][0]["message"]["content"] == "OTTER"


def test_a_partial_message_is_continued() -> None:
    messages = [
        {"role": "user", "content": EXACTLY + "alpha beta"},
        {"role": "assistant", "content": "alpha ", "partial": True},
    ]
    assert json.loads(sent({**body_of(""), "messages": messages})[1])["choices"][0]["message"]["content"] == "beta"


def test_effort_sets_the_length_of_the_thought() -> None:
    lengths = [
        len(choice("Hi", reasoning_effort=effort)["message"]["reasoning_content"].split())
        for effort in ("low", "high", "max")
    ]
    assert lengths == [12, 30, 60]


def test_endless_schemas_still_yield_a_value() -> None:
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}

    assert list(minimal(endless)) == ["a"]


def test_pieces_join_to_the_text() -> None:
    assert "".join(pieces(HARD_TEXT)) == HARD_TEXT
    assert pieces("<|open|>") == ["<", "|", "open", "|", ">"]


@pytest.mark.parametrize(
    ("gold", "near"), [("x = 19", "x = 10"), ("Answer: B", "Answer: A"), ("left right", "left thgirx")]
)
def test_a_near_miss_is_wrong_by_little(gold: str, near: str) -> None:
    assert wrong(gold) == near
