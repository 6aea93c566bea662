"""Tasks: the same items everywhere, gold at 1, an empty and a near-miss answer at 0, outcomes that mean something."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_eval import catalog as catalogs
from kimi_eval.reply import Reply
from kimi_eval.simulator.oracle import wrong
from kimi_eval.tasks import Answer, Item, Outcome, Task, answer_line, degeneration
from kimi_eval.transcript import Exchange, Lane

TASKS = {task.id: task for task in catalogs.load().tasks}

# Of the first dozen public items; a change here is a new version of the task.
DIGESTS = {
    "tasks/coding/output_of_a_program": "de1badfbb1a62b86",
    "tasks/multi_turn/latest_value_of_a_slot": "7ffc350745261183",
    "tasks/reasoning/chain_of_additions": "bedafcb7e52951e9",
    "tasks/retrieval/one_number_among_many": "5c5585d598724c40",
    "tasks/tool_use/calls_that_a_question_needs": "2cde05e8bce57714",
}


def digest(task: Task) -> str:
    items = [(item_id, asdict(item)) for item_id, item in task.items("public")]
    return hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()[:16]


def reply(content: str | None = "", *, calls: list[tuple[str, Any]] = [], **more: Any) -> Reply:  # noqa: B006
    message = {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for n, (name, arguments) in enumerate(calls)
        ],
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop", **more}
    exchange = Exchange("x", "case", Lane.BULK, "POST", "http://h/v1/chat/completions", (), b"{}", status=200)
    exchange.chunks = [(0.1, orjson.dumps({"choices": [choice]}))]
    return Reply(exchange)


def replies(messages: tuple[dict[str, Any], ...]) -> Answer:
    return Answer(
        tuple(
            reply(
                message.get("content", ""), calls=[(c["name"], c["arguments"]) for c in message.get("tool_calls", [])]
            )
            for message in messages
        )
    )


def near_miss(gold: tuple[dict[str, Any], ...]) -> Answer:
    changed = []
    for message in gold:
        calls = [
            {**call, "arguments": {k: wrong(v) for k, v in call["arguments"].items()}}
            for call in message.get("tool_calls", [])
        ]
        changed.append({**message, "content": wrong(message["content"]), "tool_calls": calls})
    return replies(tuple(changed))


@pytest.mark.parametrize("id", TASKS)
def test_items_are_the_same_everywhere(id: str) -> None:
    assert digest(TASKS[id]) == DIGESTS[id]


def test_items_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "import json; from kimi_eval import catalog; from dataclasses import asdict\n"
        "for t in catalog.load().tasks: print(json.dumps([asdict(i) for _, i in t.items('fresh', 5)]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }

    assert len(outputs) == 1


@pytest.mark.parametrize("id", TASKS)
def test_more_items_change_none(id: str) -> None:
    few, many = list(TASKS[id].items("fresh", 5)), list(TASKS[id].items("fresh", 40))

    assert many[:5] == few
    assert len({json.dumps(item.messages) for _, item in many}) == 40


@pytest.mark.parametrize("id", TASKS)
def test_gold_scores_one_and_empty_and_near_miss_nothing(id: str) -> None:
    task = TASKS[id]
    for _, item in task.items("fresh", 30):
        assert task.score(item, replies(item.gold)) is Outcome.CORRECT
        assert task.score(item, replies(({"content": ""},))) is Outcome.EMPTY
        assert task.score(item, near_miss(item.gold)) in (Outcome.WRONG, Outcome.UNPARSED)


ITEM = Item((), expect=42, gold=())


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ("ANSWER: 42", Outcome.CORRECT),
        ("I think so.\n\n**ANSWER: 42**\n", Outcome.CORRECT),
        ("answer: 42", Outcome.CORRECT),
        ("ANSWER: 41\nANSWER: 42", Outcome.CORRECT),
        ("ANSWER: 42\nANSWER: 41", Outcome.WRONG),
        ("ANSWER: 142", Outcome.WRONG),
        ("ANSWER: 42 or 43", Outcome.WRONG),
        ("It is 42.", Outcome.UNPARSED),
        ("", Outcome.EMPTY),
        (None, Outcome.EMPTY),
        ("!" * 80, Outcome.DEGENERATE),
    ],
)
def test_an_answer_line_is_compared_whole(content: str | None, outcome: Outcome) -> None:
    assert answer_line(ITEM, Answer((reply(content),))) is outcome


def test_a_cut_answer_is_truncated_and_not_wrong() -> None:
    assert answer_line(ITEM, Answer((reply("ANSWER: 4", finish_reason="length"),))) is Outcome.TRUNCATED


def test_reasoning_is_never_scored() -> None:
    exchange = reply("No idea.")
    exchange.message["reasoning_content"] = "ANSWER: 42"

    assert answer_line(ITEM, Answer((exchange,))) is Outcome.UNPARSED


@pytest.mark.parametrize(
    "text",
    ["!" * 50, "and the " * 60, "字" * 60, "ab" * 200, "x " + "0123456789" * 900],
)
def test_degenerate_text_is_noticed(text: str) -> None:
    assert degeneration(text)


@pytest.mark.parametrize(
    "text",
    [
        "-" * 200,
        "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {n * n} |" for n in range(200)),
        ", ".join(map(str, range(1, 400))),
        "\n".join(f"{n}. Item number {n} is fine." for n in range(300)),
        "ha" * 9,
        " ".join(f"line-{number:03d}" for number in range(1000)),
    ],
)
def test_honest_text_is_not_degenerate(text: str) -> None:
    assert degeneration(text) is None


@given(st.text(max_size=40), st.integers(21, 40))
def test_a_short_period_at_the_end_is_noticed(period: str, times: int) -> None:
    if len(period) >= 3 and any(character.isalnum() for character in period):
        assert degeneration("A beginning. " + period * times)
