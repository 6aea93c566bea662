"""Effort: low, high and max are accepted, rendered, and felt."""

from kimi_eval import MOONSHOT, MUST, OBSERVE, OMIT, SHOULD, Chat, check, expect, observe, require, user

QUESTION = [user("What is 17 + 25?")]


@check("Effort low, high and max are accepted.", MUST, spec="protocol.md §2.2; F056", variants=("low", "high", "max"))
async def every_effort_is_accepted(chat: Chat) -> None:
    reply = await chat.answer(QUESTION, reasoning_effort=chat.variant, may_be_cut=True)

    expect(reply.reasoning or reply.text, "reasoning or content").is_text()


@check(
    "Without an effort the prompt is that of effort max.",
    MUST,
    spec="protocol.md §2.2, §1.3; F055",
    variants=("",),
    contract=MOONSHOT,
)
async def the_default_is_max(chat: Chat) -> None:
    omitted, explicit = await chat.many(
        chat.answer(QUESTION, reasoning_effort=OMIT, may_be_cut=True),
        chat.answer(QUESTION, reasoning_effort="max", may_be_cut=True),
    )

    require(expect(explicit.tokens("prompt_tokens"), "usage.prompt_tokens at effort max").is_a(int, "an integer"))
    expect(omitted.tokens("prompt_tokens"), "usage.prompt_tokens without an effort").equals(
        explicit.tokens("prompt_tokens")
    )


PUZZLES = (
    "A farmer has hens and rabbits: 35 heads and 94 legs. How many hens are there?",
    "How many integers from 1 to 200 are divisible by 6 or by 8?",
    "In how many ways can 5 different books stand on a shelf if two of them must stand side by side?",
    "What is the smallest number that leaves 1 when divided by 2, 3, 4, 5 and 6, and is a multiple of 7?",
)


@check(
    "Effort max reasons longer than effort low, over four puzzles.",
    SHOULD,
    spec="F057; KVV thinking",
    variants=("",),
    rests_on_model=True,
)
async def more_effort_reasons_longer(chat: Chat) -> None:
    asks = [
        chat.answer([user(puzzle)], reasoning_effort=effort, stream=True, may_be_cut=True)
        for effort in ("low", "max")
        for puzzle in PUZZLES
    ]
    replies = await chat.many(*asks)
    lengths = [len(reply.reasoning) for reply in replies]
    low, high = sum(lengths[: len(PUZZLES)]), sum(lengths[len(PUZZLES) :])

    # The catalogue expects a ratio below 0.7 (F057); four puzzles show only that there is an effect.
    expect(low, "characters of reasoning at effort low").satisfies(
        lambda low: low < high, f"fewer than {high:,} at max"
    )


@check(
    "Another word for the effort is refused, or ignored.",
    OBSERVE,
    spec="protocol.md §2.2, §10 C4; F056",
    variants=("medium", "none", "xhigh"),
)
async def another_effort(chat: Chat) -> None:
    reply = await chat.ask(QUESTION, reasoning_effort=chat.variant, hostile=True)

    told = "answered with reasoning" if reply.reasoning else "answered without reasoning"
    observe(told if reply.ok else f"refused with {reply.status}")


@check(
    "Thinking cannot be half off: `disabled` is refused, or there is no reasoning.",
    MUST,
    spec="protocol.md §10 C1; F050, F051",
    contract=MOONSHOT,
)
async def disabled_thinking_is_refused_or_real(chat: Chat) -> None:
    reply = await chat.ask(QUESTION, thinking={"type": "disabled"}, reasoning_effort=OMIT, hostile=True)

    if reply.ok:
        expect(reply.reasoning, "reasoning with thinking disabled").is_empty()
        expect(reply.text, "content with thinking disabled").is_text()
        observe("accepted, without reasoning")
    else:
        expect(reply.status, "status").equals(400)
        observe("refused with 400")
