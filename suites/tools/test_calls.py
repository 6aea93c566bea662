"""Calls: how many, in which order, under which names, out of how large a set."""

from kimi_eval import MOONSHOT, MUST, SHOULD, Chat, check, expect, function, in_both_lanes, require, user

WEATHER = function("get_weather", {"city": {"type": "string"}}, description="The current weather in a city.")
THREE_CITIES = "Oslo", "Lima", "Hanoi"


@check("Three calls asked for in one turn come as three.", MUST, spec="F008, F014, F018, F025", rests_on_model=True)
async def three_calls_come_as_three(chat: Chat) -> None:
    asked = "\n".join(f'Call `get_weather` with exactly these arguments: {{"city": "{city}"}}' for city in THREE_CITIES)
    reply = await chat.answer([user(asked)], tools=[WEATHER])

    require(expect(len(reply.calls), "number of tool calls").equals(3))
    cities = [(call.values or {}).get("city") for call in reply.calls]
    expect(cities, "cities, in the order of the calls").equals(list(THREE_CITIES))


@check("`parallel_tool_calls: false` gives one call at most.", SHOULD, spec="F031")
async def one_call_at_a_time_on_request(chat: Chat) -> None:
    asked = "\n".join(f'Call `get_weather` with exactly these arguments: {{"city": "{city}"}}' for city in THREE_CITIES)
    reply = await chat.answer([user(asked)], tools=[WEATHER], parallel_tool_calls=False)

    expect(len(reply.calls), "number of tool calls").at_most(1)


@check(
    "Words before a call stay words, and the call stays a call.",
    MUST,
    spec="F010; protocol.md §3.1",
    rests_on_model=True,
)
async def words_and_a_call_go_together(chat: Chat) -> None:
    asked = 'First say: Looking it up now.\nCall `get_weather` with exactly these arguments: {"city": "Turin"}'
    reply = await chat.answer([user(asked)], tools=[WEATHER])

    arguments = chat.call(reply, "get_weather")
    expect(arguments, "arguments").equals({"city": "Turin"})
    expect(reply.finish_reason, "finish_reason").equals("tool_calls")


NAMES = {
    "hyphen": "list-items",
    "underscore": "_list_items",
    "digits": "v2_items_2026",
    "64_characters": "n" + "ame_" * 15 + "end",
}


@check(
    "A tool of any legal name can be called.",
    MUST,
    spec="F033; KVV dynamic tools",
    variants=in_both_lanes(*NAMES),
    rests_on_model=True,
)
async def every_legal_name_works(chat: Chat) -> None:
    name = NAMES[chat.kind]
    reply = await chat.answer(
        [user(f'Call `{name}` with exactly these arguments: {{"page": "one"}}')],
        tools=[function(name, {"page": {"type": "string"}})],
        tool_choice="required",
    )

    arguments = chat.call(reply, name)
    expect(arguments, "arguments").equals({"page": "one"})


@check(
    "An illegal tool name is refused with 400.",
    MUST,
    spec="KVV dynamic tools; protocol.md §2.3",
    variants=("leading_digit", "at_sign", "empty", "257_characters"),
    contract=MOONSHOT,
)
async def illegal_names_are_refused(chat: Chat) -> None:
    names = {"leading_digit": "2items", "at_sign": "list@items", "empty": "", "257_characters": "n" * 257}
    await chat.refuses(
        [user("Reply with exactly this and nothing else: names")],
        right={"tools": [function("list_items")]},
        tools=[function(names[chat.variant])],
    )


@check("Two tools of one name are refused with 400.", MUST, spec="protocol.md §2.3", contract=MOONSHOT)
async def duplicate_names_are_refused(chat: Chat) -> None:
    await chat.refuses(
        [user("Reply with exactly this and nothing else: names")],
        right={"tools": [function("list_items")]},
        tools=[function("list_items"), function("list_items")],
    )


@check(
    "The call comes whatever the number of tools.",
    MUST,
    spec="F012",
    variants=in_both_lanes("1", "2", "8", "64"),
    rests_on_model=True,
)
async def any_number_of_tools_works(chat: Chat) -> None:
    others = [function(f"other_{number}", {"text": {"type": "string"}}) for number in range(1, int(chat.kind))]
    reply = await chat.answer(
        [user('Call `get_weather` with exactly these arguments: {"city": "Quito"}')], tools=[*others, WEATHER]
    )

    arguments = chat.call(reply, "get_weather")
    expect(arguments, "arguments").equals({"city": "Quito"})
