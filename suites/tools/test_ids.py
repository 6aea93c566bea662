"""Ids: opaque, given by the server, and accepted back in any spelling."""

from kimi_eval import (
    MOONSHOT,
    MUST,
    OBSERVE,
    SHOULD,
    Chat,
    assistant,
    check,
    expect,
    function,
    in_both_lanes,
    observe,
    tool_result,
    user,
)

WEATHER = function("get_weather", {"city": {"type": "string"}}, description="The current weather in a city.")


@check(
    "A loop of call, result and answer works with the message sent back verbatim.",
    MUST,
    spec="protocol.md §4; F024, F032, F067",
    rests_on_model=True,
)
async def a_loop_goes_round(chat: Chat) -> None:
    asked = user("What is the weather in Oslo and Lima?")
    first = await chat.answer([asked], tools=[WEATHER])
    expect(len(first.calls), "number of tool calls").at_least(1)
    results = [tool_result(call.id, f"{(call.values or {}).get('city')}: sunny, 21 C") for call in first.calls]
    second = await chat.answer([asked, first.assistant_message(), *results], tools=[WEATHER])

    expect(second.calls, "tool_calls after the results").is_empty()
    expect(second.text, "content after the results").contains("21")


IDS = {
    "openai": "call_a1B2c3D4e5F6g7H8",
    "anthropic": "toolu_01A09q90qw90lq917835lq9",
    "uuid": "3f2b8c1e-7d4a-4e9b-9c55-0a1b2c3d4e5f",
    "kimi_k2": "functions.get_weather:0",
    "sanitised": "functions_get_weather_0",
    "kimi_k3": "get_weather_0",
}


@check(
    "An id of any style in the history is accepted, and the tool is called again.",
    MUST,
    spec="F023, F024",
    variants=in_both_lanes(*IDS),
    rests_on_model=True,
)
async def ids_of_any_style_are_accepted(chat: Chat) -> None:
    call_id = IDS[chat.kind]
    made = {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    reply = await chat.answer(
        [
            user("What is the weather in Oslo?"),
            assistant("", reasoning_content="I look it up.", tool_calls=[made]),
            tool_result(call_id, "rain, 9 C"),
            assistant("It rains in Oslo, 9 C.", reasoning_content="The tool says rain."),
            user('Call `get_weather` with exactly these arguments: {"city": "Lima"}'),
        ],
        tools=[WEATHER],
    )

    arguments = chat.call(reply, "get_weather")
    expect(arguments, "arguments").equals({"city": "Lima"})


@check(
    "A tool message without an id, or with one that no call has, is refused with 400.",
    SHOULD,
    spec="protocol.md §4; KVV",
    variants=("absent", "unknown"),
    contract=MOONSHOT,
)
async def results_need_their_call(chat: Chat) -> None:
    made = {
        "id": "get_weather_0",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
    }
    opening = [
        user("What is the weather in Oslo?"),
        assistant("", reasoning_content="I look it up.", tool_calls=[made]),
    ]
    wrong = {"role": "tool", "content": "rain"} if chat.variant == "absent" else tool_result("get_weather_7", "rain")
    await chat.refuses(
        [*opening, wrong],
        right={"messages": [*opening, tool_result("get_weather_0", "rain")], "tools": [WEATHER]},
        tools=[WEATHER],
    )


@check(
    "Ids have one style, whatever the lane and the choice.",
    OBSERVE,
    spec="protocol.md §3.2, §10 C6; F020, F021",
    variants=("",),
)
async def the_style_of_ids(chat: Chat) -> None:
    asked = [user('Call `get_weather` with exactly these arguments: {"city": "Oslo"}')]
    replies = await chat.many(
        *(
            chat.answer(asked, tools=[WEATHER], tool_choice=choice, stream=stream)
            for choice in ("auto", "required")
            for stream in (True, False)
        )
    )

    observe(" ".join(dict.fromkeys(str(call.id)[:40] for reply in replies for call in reply.calls)) or "no call came")
