"""Usage: token counts that mean something."""

from kimi_eval import MUST, OBSERVE, Chat, check, expect, observe, require, system, user


@check("The same prompt costs the same prompt tokens streamed and whole.", MUST, spec="F095, F114", variants=("",))
async def both_lanes_count_the_prompt_alike(chat: Chat) -> None:
    messages = [system("You are terse."), user("Reply with exactly this and nothing else: lanes")]
    streamed, whole = await chat.many(chat.answer(messages, stream=True), chat.answer(messages, stream=False))

    require(expect(whole.tokens("prompt_tokens"), "usage.prompt_tokens of the whole reply").is_a(int, "an integer"))
    expect(streamed.tokens("prompt_tokens"), "usage.prompt_tokens of the stream").equals(whole.tokens("prompt_tokens"))


@check(
    "A longer prompt costs more prompt tokens, by about its length.",
    MUST,
    spec="F118; protocol.md §3.1",
    variants=("",),
)
async def a_longer_prompt_costs_more(chat: Chat) -> None:
    words = "river stone lamp window garden bottle ladder candle button pocket " * 40
    question = "Reply with exactly this and nothing else: counted"
    short, long = await chat.many(
        chat.answer([system("Ignore this: river."), user(question)]),
        chat.answer([system(f"Ignore this: {words}"), user(question)]),
    )
    before, after = short.tokens("prompt_tokens"), long.tokens("prompt_tokens")

    require(expect(before, "usage.prompt_tokens").is_a(int, "an integer"))
    # 400 common words: at least half a token each in any vocabulary, at most six of a tiny one.
    expect((after or 0) - (before or 0), "prompt tokens of 400 more words").satisfies(
        lambda more: 200 <= more <= 2400, "200 to 2,400"
    )


@check(
    "A long prompt asked twice is partly served from the cache.", OBSERVE, spec="protocol.md §6.3, §9", variants=("",)
)
async def a_repeated_prompt_is_cached(chat: Chat) -> None:
    notes = f"{chat.nonce()}: " + "The ferry left the harbour before the fog came in. " * 120
    messages = [system(notes), user("Reply with exactly this and nothing else: twice")]
    await chat.answer(messages)
    again = await chat.answer(messages)

    cached, prompt = again.tokens("cached_tokens"), again.tokens("prompt_tokens")
    observe(f"{cached} of {prompt} prompt tokens were cached" if cached is not None else "cached tokens not reported")
