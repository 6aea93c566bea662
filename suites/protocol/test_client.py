"""Client: the official `openai` client reads this deployment, and reads what really arrived."""

from kimi_eval import MUST, Chat, check, expect, function, user


@check(
    "The official client reads an answer, its reasoning and its usage as they arrived.",
    MUST,
    spec="knowledge/engines.md §6",
)
async def the_client_reads_an_answer(chat: Chat) -> None:
    reply, reading = await chat.read_with_client([user("What is 17 + 25?")])

    expect(reading.problem, "exception raised by the client").is_empty()
    expect(reading.text, "text read by the client").equals(reply.text)
    expect(reading.text or reading.reasoning, "anything read by the client").is_text()
    expect(reading.reasoning, "reasoning read by the client").equals(reply.reasoning)
    expect(reading.finish_reason, "finish reason read by the client").equals(reply.finish_reason)
    expect(reading.prompt_tokens, "prompt tokens read by the client").is_a(int, "an integer")


@check(
    "The official client reads two calls as they arrived.", MUST, spec="knowledge/engines.md §6", rests_on_model=True
)
async def the_client_reads_calls(chat: Chat) -> None:
    asked = "\n".join(f'Call `note` with exactly these arguments: {{"text": "{text}"}}' for text in ("first", "second"))
    reply, reading = await chat.read_with_client(
        [user(asked)], tools=[function("note", {"text": {"type": "string"}})], tool_choice="required"
    )

    expect(reading.problem, "exception raised by the client").is_empty()
    expect(len(reading.calls), "calls read by the client").at_least(1)
    expect(reading.calls, "calls read by the client").equals([(call.name, call.arguments) for call in reply.calls])
