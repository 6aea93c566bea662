"""Arguments: what a tool is called with is exactly what was meant, whatever it looks like."""

import json
from typing import Any

from kimi_eval import MUST, SHOULD, Chat, check, expect, function, in_both_lanes, require, user

ECHO = function("echo", {"text": {"type": "string"}}, description="Gives the text back.")

STRINGS = {
    "empty": "",
    "quotes": "She said \"stop\" and then 'go'.",
    "word_true": "true",
    "digits": "00123",
    "list": "[1]",
    "shell": 'grep -n "a b" *.txt | awk \'{print $1}\' && echo "$HOME"',
    "code": 'def f(x):\n    if x < 3 and x > 1:\n\treturn {\'a\': [1, 2], "b": f"{x!r}"}\n',
    "newlines": "one\ntwo\r\nthree\tfour\u2028five",
    "backslashes": "C:\\new\\table \\u0041 \\\\server\\share \\",
    "json": '{"key": "v", "list": [1, "two"], "deep": {"quote": "\\"x\\""}}',
    "unicode": "Grüße 안녕하세요 你好 👩‍👩‍👧‍👦 é ñ ﷽ \U0001f3f3️‍🌈",
}


@check(
    "A string argument arrives exactly as it was meant.",
    MUST,
    spec="F005, F016, F019, F104",
    variants=in_both_lanes(*STRINGS),
    rests_on_model=True,
)
async def strings_arrive_exactly(chat: Chat) -> None:
    text = STRINGS[chat.kind]
    asked = f"Call `echo` with exactly these arguments: {json_of({'text': text})}"
    reply = await chat.answer([user(asked)], tools=[ECHO], tool_choice="required")

    arguments = chat.call(reply, "echo")
    expect(arguments.get("text"), "tool_calls[0].function.arguments['text']").equals(text)


@check("A long argument arrives whole.", MUST, spec="F015, F041", rests_on_model=True)
async def a_long_string_arrives_whole(chat: Chat) -> None:
    chat.needs_window(65_536)
    text = " ".join(f"line-{number:03d}" for number in range(1000))
    asked = f"Call `echo` with exactly these arguments: {json_of({'text': text})}"
    reply = await chat.answer(
        [user(asked)], tools=[ECHO], tool_choice="required", max_completion_tokens=chat.ceiling(16_384)
    )

    arguments = chat.call(reply, "echo")
    expect(arguments.get("text"), "tool_calls[0].function.arguments['text']").equals(text)


@check(
    "A long argument is streamed while it is made.", SHOULD, spec="F003", variants=("streamed",), rests_on_model=True
)
async def a_long_argument_is_streamed(chat: Chat) -> None:
    text = " ".join(f"word-{number:03d}" for number in range(200))
    asked = f"Call `echo` with exactly these arguments: {json_of({'text': text})}"
    reply = await chat.answer([user(asked)], tools=[ECHO], tool_choice="required")

    require(expect(len(reply.calls), "number of tool calls").at_least(1))
    pieces = [frame for frame in reply.frames for delta in frame.deltas if delta.get("tool_calls")]
    expect(len(pieces), "pieces in which 2 kB of arguments came").at_least(4)


@check("Numbers keep their value and their kind.", MUST, spec="protocol.md §1.3; F007, F070", rests_on_model=True)
async def numbers_keep_their_value(chat: Chat) -> None:
    number = {"type": "number"}
    tool = function(
        "measure", {"count": {"type": "integer"}, "big": {"type": "integer"}, "ratio": number, "tiny": number}
    )
    asked = (
        "Call `measure` with exactly these arguments: "
        '{"count": 3, "big": 9007199254740991, "ratio": 0.25, "tiny": 0.0000001}'
    )
    reply = await chat.answer([user(asked)], tools=[tool], tool_choice="required")

    arguments = chat.call(reply, "measure")
    for name, value in {"count": 3, "big": 9007199254740991}.items():
        expect(arguments.get(name), f"arguments[{name!r}]").is_a(int, "an integer")
        expect(arguments.get(name), f"arguments[{name!r}]").equals(value)
    expect(arguments.get("ratio"), "arguments['ratio']").equals(0.25)
    expect(arguments.get("tiny"), "arguments['tiny']").equals(1e-7)


@check("Objects, lists, booleans and null arrive as such, not as text.", MUST, spec="F034, F093", rests_on_model=True)
async def nested_values_keep_their_type(chat: Chat) -> None:
    period = {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["day", "week"]},
            "days": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["kind", "days"],
    }
    tool = function("book", {"period": period, "paid": {"type": "boolean"}, "note": {"type": ["string", "null"]}})
    asked = (
        "Call `book` with exactly these arguments: "
        '{"period": {"kind": "week", "days": [1, 2, 3]}, "paid": true, "note": null}'
    )
    reply = await chat.answer([user(asked)], tools=[tool], tool_choice="required")

    arguments = chat.call(reply, "book")
    expect(arguments.get("period"), "arguments['period']").equals({"kind": "week", "days": [1, 2, 3]})
    expect(arguments.get("paid"), "arguments['paid']").equals(True)
    expect(arguments.get("note", "absent"), "arguments['note']").equals(None)


@check("Arguments satisfy the schema that was declared.", MUST, spec="F007, F093")
async def arguments_satisfy_the_schema(chat: Chat) -> None:
    schema = {
        "type": "object",
        "properties": {"unit": {"type": "string", "enum": ["c", "f"]}, "city": {"type": "string"}},
        "required": ["unit", "city"],
        "additionalProperties": False,
    }
    tool = {
        "type": "function",
        "function": {"name": "forecast", "description": "A forecast.", "parameters": schema, "strict": True},
    }
    reply = await chat.answer([user("How warm is it in Quito?")], tools=[tool], tool_choice="required")

    arguments = chat.call(reply, "forecast")
    expect(arguments, "arguments").matches(schema)


@check("A tool without parameters is called with an empty object.", MUST, spec="F032", rests_on_model=True)
async def no_parameters_is_an_empty_object(chat: Chat) -> None:
    reply = await chat.answer(
        [user("Call `now` with exactly these arguments: {}")], tools=[function("now")], tool_choice="required"
    )

    arguments = chat.call(reply, "now")
    expect(arguments, "arguments").equals({})


@check(
    "`strict` true, false or absent: the tool is called all the same.",
    MUST,
    spec="F035",
    variants=("true", "false", "absent"),
)
async def strict_is_accepted(chat: Chat) -> None:
    strict: dict[str, Any] = {"true": {"strict": True}, "false": {"strict": False}, "absent": {}}[chat.variant]
    tool = function("echo", {"text": {"type": "string"}}, **strict)
    reply = await chat.answer([user("Say hello with the tool.")], tools=[tool], tool_choice="required")

    expect(len(reply.calls), "number of tool calls").at_least(1)


def json_of(value: object) -> str:
    """The JSON that a prompt asks for, in ASCII only where the text is."""
    return json.dumps(value, ensure_ascii=False)
