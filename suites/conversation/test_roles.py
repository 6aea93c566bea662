"""Roles: who says what is read as such."""

from kimi_eval import MUST, SHOULD, Chat, check, developer, expect, observe, system, user

ONE_WORD = "Answer every question with exactly the word {}."


@check("A system message is obeyed.", MUST, spec="protocol.md §2.1", rests_on_model=True)
async def system_is_obeyed(chat: Chat) -> None:
    reply = await chat.answer([system(ONE_WORD.format("OTTER")), user("Which animal builds dams?")])

    expect(reply.text, "content").contains("OTTER")


@check(
    "A developer message is obeyed, or refused with 400; it is not dropped.", SHOULD, spec="F068", rests_on_model=True
)
async def developer_is_not_dropped(chat: Chat) -> None:
    reply = await chat.ask([developer(ONE_WORD.format("MARTEN")), user("Which animal builds dams?")], hostile=True)

    if reply.ok:
        expect(reply.text, "content").contains("MARTEN")
        observe("obeyed")
    else:
        expect(reply.status, "status").equals(400)
        observe("refused with 400")


@check("Content may be a list of text parts.", MUST, spec="protocol.md §2.1", rests_on_model=True)
async def content_may_be_parts(chat: Chat) -> None:
    code = chat.nonce()
    parts = [{"type": "text", "text": "Reply with exactly this and nothing else: "}, {"type": "text", "text": code}]
    reply = await chat.answer([user(parts)])

    expect(reply.text, "content").contains(code)


@check("Text of every script comes back as it went.", MUST, spec="F104; protocol.md §3.4 P0.11", rests_on_model=True)
async def every_script_comes_back(chat: Chat) -> None:
    text = "안녕하세요 👩‍👩‍👧‍👦 你好 مرحبا Ελλάδα हिन्दी ñ 🏳️‍🌈"
    reply = await chat.answer([user(f"Reply with exactly this and nothing else: {text}")])

    expect(reply.text.strip(), "content").equals(text)
