"""Channels: reasoning and answer arrive apart, each in its own field."""

from kimi_eval import MOONSHOT, MUST, Chat, check, expect, function, user


@check("A reply has reasoning, and an answer apart from it.", MUST, spec="protocol.md §3.1; F046, F047, F049, F052")
async def reasoning_and_answer_arrive_apart(chat: Chat) -> None:
    reply = await chat.answer([user("What is 17 + 25?")])

    expect(reply.reasoning, "reasoning").is_text()
    expect(reply.text, "content").is_text()
    if reply.reasoning.strip() and len(reply.reasoning) > 40:
        expect(reply.text, "content").lacks(reply.reasoning.strip()[:200])


@check("Reasoning arrives in `reasoning_content`.", MUST, spec="P0.12; protocol.md §6.3; F049", contract=MOONSHOT)
async def reasoning_is_called_reasoning_content(chat: Chat) -> None:
    reply = await chat.answer([user("What is 18 + 25?")])

    expect(list(reply.reasoning_fields), "fields with reasoning").equals(["reasoning_content"])


@check(
    "A turn that calls a tool has reasoning, too.",
    MUST,
    spec="F001, F029; protocol.md §4",
    variants=("auto-streamed", "auto-whole", "required-streamed", "required-whole"),
)
async def a_call_has_reasoning(chat: Chat) -> None:
    tool = function("get_weather", {"city": {"type": "string"}}, description="The current weather in a city.")
    reply = await chat.answer(
        [user('Call `get_weather` with exactly these arguments: {"city": "Oslo"}')], tools=[tool], tool_choice=chat.kind
    )

    if expect(len(reply.calls), "number of tool calls").equals(1):
        expect(reply.reasoning, "reasoning").is_text()
