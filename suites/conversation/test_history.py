"""History: earlier turns are accepted in every legal form, counted, and read."""

from typing import Any

from kimi_eval import (
    MOONSHOT,
    MUST,
    OBSERVE,
    OMIT,
    SHOULD,
    Chat,
    assistant,
    check,
    expect,
    function,
    in_both_lanes,
    observe,
    require,
    tool_result,
    user,
)

WEATHER = function("get_weather", {"city": {"type": "string"}}, description="The current weather in a city.")


def made(call_id: str, arguments: str) -> dict[str, Any]:
    """A call of the history."""
    return {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


@check(
    "An assistant message with calls may have content empty, null or absent.",
    MUST,
    spec="protocol.md §2.5, §10 C16; F066, F067",
    variants=in_both_lanes("empty", "null", "absent"),
)
async def content_next_to_calls_may_be_missing(chat: Chat) -> None:
    content = {"empty": "", "null": None, "absent": OMIT}[chat.kind]
    reply = await chat.answer(
        [
            user("What is the weather in Oslo?"),
            assistant(
                content, reasoning_content="I look it up.", tool_calls=[made("get_weather_0", '{"city": "Oslo"}')]
            ),
            tool_result("get_weather_0", "rain, 9 C"),
        ],
        tools=[WEATHER],
    )

    expect(reply.text or reply.calls, "content").satisfies(bool, "an answer")


@check("Calls and results of the history are part of the prompt.", MUST, spec="F067", variants=("empty", "null"))
async def calls_in_history_are_rendered(chat: Chat) -> None:
    content = "" if chat.variant == "empty" else None
    city = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch"
    call = assistant(content, reasoning_content="", tool_calls=[made("get_weather_0", f'{{"city": "{city}"}}')])
    question = user("Reply with exactly this and nothing else: history")
    without, with_it = await chat.many(
        chat.answer([user("Hello!"), question], tools=[WEATHER]),
        chat.answer([user("Hello!"), call, tool_result("get_weather_0", "rain, 9 C"), question], tools=[WEATHER]),
    )

    require(expect(without.tokens("prompt_tokens"), "usage.prompt_tokens").is_a(int, "an integer"))
    more = (with_it.tokens("prompt_tokens") or 0) - (without.tokens("prompt_tokens") or 0)
    expect(more, "prompt tokens of a call and its result").at_least(20)


@check(
    "Arguments in the history that are no JSON object are accepted.",
    MUST,
    spec="protocol.md §1.3; F069",
    variants=("cut_short", "null", "list", "empty"),
    contract=MOONSHOT,
)
async def broken_arguments_in_history_are_accepted(chat: Chat) -> None:
    arguments = {"cut_short": '{"city": "Oslo"', "null": "null", "list": "[1]", "empty": ""}[chat.variant]
    reply = await chat.answer(
        [
            user("What is the weather in Oslo?"),
            assistant("", reasoning_content="I look it up.", tool_calls=[made("get_weather_0", arguments)]),
            tool_result("get_weather_0", "rain, 9 C"),
            user("Reply with exactly this and nothing else: onward"),
        ],
        tools=[WEATHER],
    )

    expect(reply.text, "content").is_text()


@check("A tool result is read.", MUST, spec="F067", rests_on_model=True)
async def a_tool_result_is_read(chat: Chat) -> None:
    code = chat.nonce()
    reply = await chat.answer(
        [
            user("What is the weather in Oslo?"),
            assistant("", reasoning_content="I look it up.", tool_calls=[made("get_weather_0", '{"city": "Oslo"}')]),
            tool_result("get_weather_0", f"Station {code} reports rain."),
        ],
        tools=[WEATHER],
    )

    expect(reply.text, "content").contains(code)


@check(
    "Results in another order than their calls cost the same prompt: they are matched by id.",
    MUST,
    spec="protocol.md §4.5",
    variants=("",),
)
async def results_are_matched_by_id(chat: Chat) -> None:
    calls = [made("call_a", '{"city": "Oslo"}'), made("call_b", '{"city": "Lima"}')]
    opening = [
        user("What is the weather in Oslo and Lima?"),
        assistant("", reasoning_content="Both.", tool_calls=calls),
    ]
    oslo, lima = tool_result("call_a", "rain, 9 C"), tool_result("call_b", "sunny, 21 C")
    in_order, reversed_ = await chat.many(
        chat.answer([*opening, oslo, lima], tools=[WEATHER]), chat.answer([*opening, lima, oslo], tools=[WEATHER])
    )

    expect(reversed_.tokens("prompt_tokens"), "usage.prompt_tokens with the results reversed").equals(
        in_order.tokens("prompt_tokens")
    )


@check(
    "A partial last message is continued, or refused; never answered with nothing.",
    SHOULD,
    spec="protocol.md §2.5; F080",
    contract=MOONSHOT,
)
async def a_partial_message_is_continued(chat: Chat) -> None:
    reply = await chat.ask(
        [user("Count from 1 to 5, separated by commas"), assistant("1, 2,", partial=True)], hostile=True
    )

    if reply.ok:
        expect(reply.text, "content").is_text()
        expect(reply.text.strip(), "content").satisfies(
            lambda text: not text.startswith("1, 2,"), "no repetition of it"
        )
    else:
        expect(reply.status, "status").equals(400)


@check(
    "History without reasoning next to a call is answered, or refused with 400.",
    OBSERVE,
    spec="protocol.md §4.3, §10 C15; F063",
    variants=("absent", "null", "empty"),
)
async def history_without_reasoning(chat: Chat) -> None:
    forms: dict[str, dict[str, Any]] = {
        "absent": {},
        "null": {"reasoning_content": None},
        "empty": {"reasoning_content": ""},
    }
    reply = await chat.ask(
        [
            user("What is the weather in Oslo?"),
            assistant("", tool_calls=[made("get_weather_0", '{"city": "Oslo"}')], **forms[chat.variant]),
            tool_result("get_weather_0", "rain, 9 C"),
        ],
        tools=[WEATHER],
        hostile=True,
    )

    observe("answered" if reply.ok else f"refused with {reply.status}: {reply.error_message[:120]}")
