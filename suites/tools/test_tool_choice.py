"""tool_choice: auto may call, none forbids, required forces; anything else is refused."""

from kimi_eval import (
    MOONSHOT,
    MUST,
    OBSERVE,
    OMIT,
    SHOULD,
    Chat,
    Inconclusive,
    check,
    expect,
    function,
    note,
    observe,
    user,
)

WEATHER = function("get_weather", {"city": {"type": "string"}}, description="The current weather in a city.")
SMALL_TALK = [user("Hi, how are you today?")]


@check("`required` forces a call, even where none is wanted.", MUST, spec="KVV tool_choice; F004, F030")
async def required_forces_a_call(chat: Chat) -> None:
    reply = await chat.answer(SMALL_TALK, tools=[WEATHER], tool_choice="required", may_be_cut=True)

    if reply.finish_reason == "length" and not reply.text and not reply.calls:
        raise Inconclusive("the ceiling fell into the reasoning")
    expect(len(reply.calls), "number of tool calls").at_least(1)
    expect(reply.finish_reason, "finish_reason").equals("tool_calls")


@check("`none` forbids calls.", MUST, spec="KVV tool_choice; F029")
async def none_forbids_calls(chat: Chat) -> None:
    reply = await chat.answer([user("What is the weather in Oslo?")], tools=[WEATHER], tool_choice="none")

    expect(reply.calls, "tool_calls").is_empty()
    expect(reply.finish_reason, "finish_reason").equals("stop")


@check(
    "`auto` calls where a tool is needed.", MUST, spec="KVV tool_choice; F001, F005, F037, F065", rests_on_model=True
)
async def auto_calls_when_needed(chat: Chat) -> None:
    reply = await chat.answer([user("What is the weather in Oslo?")], tools=[WEATHER], tool_choice="auto")

    expect(len(reply.calls), "number of tool calls").equals(1)
    expect(reply.finish_reason, "finish_reason").equals("tool_calls")


@check("`auto` answers in words where no tool is needed.", MUST, spec="KVV tool_choice; F002", rests_on_model=True)
async def auto_may_answer_in_words(chat: Chat) -> None:
    reply = await chat.answer([user("What is 2 + 2?")], tools=[WEATHER], tool_choice="auto")

    expect(reply.calls, "tool_calls").is_empty()
    expect(reply.text, "content").is_text()


@check(
    "`required` without tools is refused with 400.",
    MUST,
    spec="KVV tool_choice",
    variants=("no_tools-streamed", "no_tools-whole", "empty_list-streamed", "empty_list-whole"),
)
async def required_needs_tools(chat: Chat) -> None:
    tools = OMIT if chat.kind == "no_tools" else []
    await chat.refuses(SMALL_TALK, right={}, tools=tools, tool_choice="required")


@check("`auto` and `none` need no tools.", MUST, spec="KVV tool_choice", variants=("auto", "none"), contract=MOONSHOT)
async def auto_and_none_need_no_tools(chat: Chat) -> None:
    reply = await chat.answer(SMALL_TALK, tool_choice=chat.variant)

    expect(reply.calls, "tool_calls").is_empty()
    expect(reply.text, "content").is_text()


@check("An unknown word is refused with 400.", MUST, spec="KVV tool_choice")
async def an_unknown_choice_is_refused(chat: Chat) -> None:
    await chat.refuses(
        SMALL_TALK, right={"tools": [WEATHER], "tool_choice": "auto"}, tools=[WEATHER], tool_choice="perhaps"
    )


@check(
    "Naming a function: refused, obeyed or ignored, but never a crash.",
    OBSERVE,
    spec="protocol.md §10 C7",
    variants=("whole",),
)
async def a_named_function(chat: Chat) -> None:
    choice = {"type": "function", "function": {"name": "get_weather"}}
    reply = await chat.ask(SMALL_TALK, tools=[WEATHER], tool_choice=choice, hostile=True)

    observe(f"refused with {reply.status}" if not reply.ok else "obeyed" if reply.calls else "ignored")


@check("`required` next to a response format gives a call, or 400 that says so.", SHOULD, spec="F006")
async def required_next_to_a_format(chat: Chat) -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    reply = await chat.ask(
        [user("What is the weather in Lima?")],
        tools=[WEATHER],
        tool_choice="required",
        response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
        hostile=True,
    )

    if reply.ok and not reply.calls:
        note("tool_calls", "a call, or status 400", f"200 with content {reply.text[:100]!r}")
    elif not reply.ok:
        expect(reply.status, "status").equals(400)
