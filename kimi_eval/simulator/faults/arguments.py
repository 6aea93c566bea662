"""Arguments: faults of what a call is made with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.answer import Answer
from kimi_eval.simulator.request import Request


def rewritten(answer: Answer, change: Callable[[str], str]) -> Answer:
    """The answer with the arguments of every call changed."""
    return replace(answer, calls=tuple(replace(call, arguments=change(call.arguments)) for call in answer.calls))


def values_changed(answer: Answer, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Answer:
    """The answer with the values of every call changed; arguments that are cut stay as they are."""

    def changed(arguments: str) -> str:
        try:
            values = json.loads(arguments)
        except ValueError:
            return arguments
        return json.dumps(change(values), ensure_ascii=False, separators=(",", ":"))

    return rewritten(answer, changed)


def texts_changed(answer: Answer, change: Callable[[str], Any]) -> Answer:
    """The answer with every string value changed."""
    return values_changed(
        answer,
        lambda values: {key: change(value) if isinstance(value, str) else value for key, value in values.items()},
    )


@fault(
    "A value that looks like JSON is parsed, not kept as text.",
    source="sglang#34604 (F005)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/arguments/strings_arrive_exactly[json-streamed]",
        "tools/arguments/strings_arrive_exactly[json-whole]",
        "tools/arguments/strings_arrive_exactly[list-streamed]",
        "tools/arguments/strings_arrive_exactly[list-whole]",
        "tools/arguments/strings_arrive_exactly[word_true-streamed]",
        "tools/arguments/strings_arrive_exactly[word_true-whole]",
    ],
)
def json_like_text_is_parsed(request: Request, answer: Answer) -> Answer:
    def parsed(text: str) -> Any:
        return json.loads(text) if re.fullmatch(r"true|\[1\]|\{.*\}", text) else text

    return texts_changed(answer, parsed)


@fault(
    "A call with an empty or a JSON-like argument is handed on as markup.",
    source="sglang#34604 (F005)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/arguments/strings_arrive_exactly[empty-streamed]",
        "tools/arguments/strings_arrive_exactly[empty-whole]",
        "tools/arguments/strings_arrive_exactly[list-streamed]",
        "tools/arguments/strings_arrive_exactly[list-whole]",
        "protocol/invariants/no_native_marker_leaks",
    ],
)
def odd_arguments_become_markup(request: Request, answer: Answer) -> Answer:
    if any(call.arguments in ('{"text":""}', '{"text":"[1]"}') for call in answer.calls):
        text = "".join(f'<|open|>call tool="{call.name}" index="1"<|sep|>{call.arguments}' for call in answer.calls)
        return answer.misread(content=text, calls=(), finish_reason="stop")
    return answer


@fault(
    "A line feed in an argument drops the call.",
    source="sglang#19120 (F016)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/arguments/strings_arrive_exactly[backslashes-streamed]",
        "tools/arguments/strings_arrive_exactly[backslashes-whole]",
        "tools/arguments/strings_arrive_exactly[code-streamed]",
        "tools/arguments/strings_arrive_exactly[code-whole]",
        "tools/arguments/strings_arrive_exactly[newlines-streamed]",
        "tools/arguments/strings_arrive_exactly[newlines-whole]",
        "protocol/invariants/an_answer_is_not_empty",
    ],
)
def line_feeds_drop_the_call(request: Request, answer: Answer) -> Answer:
    if any("\\n" in call.arguments and "echo" in call.name for call in answer.calls):
        return answer.misread(calls=(), content="", finish_reason="stop")
    return answer


@fault(
    "Arguments beyond 8 kB are cut.",
    source="vllm#38579 (F015)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/arguments/a_long_string_arrives_whole", "protocol/invariants/arguments_are_one_object"],
)
def arguments_are_cut_at_8_kb(request: Request, answer: Answer) -> Answer:
    return rewritten(answer, lambda arguments: arguments[:8192])


@fault(
    "Quotes inside a string are not escaped.",
    source="vllm#41739 (F019)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/arguments/strings_arrive_exactly[backslashes-streamed]",
        "tools/arguments/strings_arrive_exactly[backslashes-whole]",
        "tools/arguments/strings_arrive_exactly[code-streamed]",
        "tools/arguments/strings_arrive_exactly[code-whole]",
        "tools/arguments/strings_arrive_exactly[json-streamed]",
        "tools/arguments/strings_arrive_exactly[json-whole]",
        "tools/arguments/strings_arrive_exactly[quotes-streamed]",
        "tools/arguments/strings_arrive_exactly[quotes-whole]",
        "tools/arguments/strings_arrive_exactly[shell-streamed]",
        "tools/arguments/strings_arrive_exactly[shell-whole]",
        "protocol/invariants/arguments_are_one_object",
    ],
)
def quotes_are_not_escaped(request: Request, answer: Answer) -> Answer:
    return rewritten(answer, lambda arguments: arguments.replace('\\"', '"'))


@fault(
    "Backslashes are doubled.",
    source="vllm#41739 (F019)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/arguments/strings_arrive_exactly[backslashes-streamed]",
        "tools/arguments/strings_arrive_exactly[backslashes-whole]",
        "tools/arguments/strings_arrive_exactly[json-streamed]",
        "tools/arguments/strings_arrive_exactly[json-whole]",
    ],
)
def backslashes_are_doubled(request: Request, answer: Answer) -> Answer:
    return texts_changed(answer, lambda text: text.replace("\\", "\\\\"))


@fault(
    "Leading zeros of a text are lost.",
    source="dynamo frontend-crates#196 (F007)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/arguments/strings_arrive_exactly[digits-streamed]",
        "tools/arguments/strings_arrive_exactly[digits-whole]",
    ],
)
def digits_become_a_number(request: Request, answer: Answer) -> Answer:
    return texts_changed(answer, lambda text: int(text) if text.isdigit() else text)


@fault(
    "Characters beyond the first plane are lost in arguments.",
    source="dynamo#12630 (F104)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/arguments/strings_arrive_exactly[unicode-streamed]",
        "tools/arguments/strings_arrive_exactly[unicode-whole]",
        "protocol/invariants/text_is_whole_utf8",
    ],
)
def emoji_are_lost(request: Request, answer: Answer) -> Answer:
    return texts_changed(answer, lambda text: "".join("\ufffd" if ord(c) > 0xFFFF else c for c in text))


@fault(
    "An integer arrives as text.",
    source="dynamo frontend-crates#196 (F007)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/arguments/numbers_keep_their_value"],
)
def integers_become_text(request: Request, answer: Answer) -> Answer:
    return values_changed(answer, lambda values: {k: str(v) if type(v) is int else v for k, v in values.items()})


@fault(
    "Numbers go through a float of 32 bits.",
    source="vllm#50543 (F070)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/arguments/numbers_keep_their_value"],
)
def numbers_lose_digits(request: Request, answer: Answer) -> Answer:
    return values_changed(
        answer, lambda values: {k: float(f"{v:.7g}") if type(v) in (int, float) else v for k, v in values.items()}
    )


@fault(
    "A nested object arrives as text that holds JSON.",
    source="vllm#46924 (F034)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/arguments/nested_values_keep_their_type"],
)
def objects_become_text(request: Request, answer: Answer) -> Answer:
    return values_changed(
        answer, lambda values: {k: json.dumps(v) if isinstance(v, dict) else v for k, v in values.items()}
    )


@fault(
    "An argument that is null is left out.",
    source="vllm#28806 (F032)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/arguments/nested_values_keep_their_type"],
)
def null_is_left_out(request: Request, answer: Answer) -> Answer:
    return values_changed(answer, lambda values: {k: v for k, v in values.items() if v is not None})


@fault(
    "The arguments of a tool without parameters are an empty text.",
    source="vllm#28806 (F032)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/arguments/no_parameters_is_an_empty_object", "protocol/invariants/arguments_are_one_object"],
)
def no_arguments_are_empty_text(request: Request, answer: Answer) -> Answer:
    return rewritten(answer, lambda arguments: "" if arguments == "{}" else arguments)


@fault(
    "A required argument is missing.",
    source="dynamo frontend-crates#196 (F007)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/arguments/arguments_satisfy_the_schema"],
)
def required_argument_is_missing(request: Request, answer: Answer) -> Answer:
    return values_changed(answer, lambda values: {k: v for k, v in values.items() if k != "unit"})


@fault(
    "An enumeration is not kept under `strict`.",
    source="vllm#37064 (F093)",
    kind="structured_output",
    at="answer",
    noticed_by=["tools/arguments/arguments_satisfy_the_schema"],
)
def strict_enum_is_not_kept(request: Request, answer: Answer) -> Answer:
    return values_changed(answer, lambda values: {**values, "unit": "kelvin"} if "unit" in values else values)


@fault(
    "An argument comes twice.",
    source="dynamo frontend-crates#196 (F007)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/arguments/arguments_satisfy_the_schema", "protocol/invariants/arguments_are_one_object"],
)
def argument_comes_twice(request: Request, answer: Answer) -> Answer:
    if "How warm is it" not in request.question:
        return answer
    return rewritten(answer, lambda arguments: arguments[:-1] + ',"city":"Lima"}')


@fault(
    "The arguments of a whole call are an object, not a text.",
    source="protocol.md §3.1",
    kind="tool_call",
    at="whole",
    noticed_by=[
        "tools/calls/three_calls_come_as_three[whole]",
        "tools/calls/words_and_a_call_go_together[whole]",
        "tools/calls/any_number_of_tools_works[1-whole]",
        "tools/calls/any_number_of_tools_works[2-whole]",
        "tools/calls/any_number_of_tools_works[64-whole]",
        "tools/calls/any_number_of_tools_works[8-whole]",
        "tools/ids/ids_of_any_style_are_accepted[anthropic-whole]",
        "tools/ids/ids_of_any_style_are_accepted[kimi_k2-whole]",
        "tools/ids/ids_of_any_style_are_accepted[kimi_k3-whole]",
        "tools/ids/ids_of_any_style_are_accepted[openai-whole]",
        "tools/ids/ids_of_any_style_are_accepted[sanitised-whole]",
        "tools/ids/ids_of_any_style_are_accepted[uuid-whole]",
        "protocol/invariants/arguments_are_one_object",
    ],
)
def arguments_are_an_object(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    for call in body["choices"][0]["message"].get("tool_calls", []):
        if request.tool_choice == "auto":
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return body
