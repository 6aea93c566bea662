"""Pass-back: the whole assistant message goes back verbatim, and its reasoning is read."""

from kimi_eval import MUST, SHOULD, Chat, assistant, check, expect, require, user


@check(
    "A conversation goes on with the whole message sent back verbatim.",
    MUST,
    spec="protocol.md §4.1",
    rests_on_model=True,
)
async def a_conversation_goes_on(chat: Chat) -> None:
    code = chat.nonce()
    opening = user(f"The code for harbour is {code}. Reply with exactly this and nothing else: noted")
    first = await chat.answer([opening])
    second = await chat.answer([opening, first.assistant_message(), user("What is the code for harbour?")])

    expect(second.text, "content").contains(code)


@check(
    "Reasoning in the history is part of the prompt.",
    MUST,
    spec="protocol.md §4.2; F061, F062",
    variants=("reasoning_content", "own_field"),
)
async def reasoning_in_history_is_rendered(chat: Chat) -> None:
    field = "reasoning_content" if chat.variant == "reasoning_content" else chat.session.profile.reasoning_field
    thought = "The user greets me, so I should greet back in one short word. " * 12
    question = user("Reply with exactly this and nothing else: again")
    with_it, without = await chat.many(
        chat.answer([user("Hello!"), assistant("Hello.", **{field: thought}), question]),
        chat.answer([user("Hello!"), assistant("Hello.", **{field: ""}), question]),
    )

    require(expect(without.tokens("prompt_tokens"), "usage.prompt_tokens").is_a(int, "an integer"))
    more = (with_it.tokens("prompt_tokens") or 0) - (without.tokens("prompt_tokens") or 0)
    # 168 words of reasoning: at least half a token each in any vocabulary.
    expect(more, f"prompt tokens of 168 words in {field}").at_least(84)


@check(
    "What was said only in reasoning can be recalled, and without it cannot.",
    SHOULD,
    spec="protocol.md §4.1; F058, F061",
    rests_on_model=True,
)
async def reasoning_can_be_recalled(chat: Chat) -> None:
    code, field = chat.nonce(), chat.session.profile.reasoning_field
    opening, question = (
        user("Think of a code for lantern, and keep it to yourself."),
        user("What is the code for lantern?"),
    )
    thought = f"I choose one. The code for lantern is {code}."
    recalled, control = await chat.many(
        chat.answer([opening, assistant("I have one in mind.", **{field: thought}), question]),
        chat.answer([opening, assistant("I have one in mind.", **{field: "I choose one."}), question]),
    )

    expect(recalled.text, "content with the reasoning in the history").contains(code)
    expect(control.text, "content without it").lacks(code)
