"""State: an answer does not depend on who else asks, nor on what was asked before."""

from kimi_eval import MUST, Chat, Inconclusive, check, expect, function, note, system, user

STORY = "The ferry left the harbour before the fog came in, and nobody on the quay could tell where it was bound. "


@check(
    "Answers of concurrent requests are not mixed up.",
    MUST,
    spec="F148, F088, F009",
    variants=("text", "call"),
    rests_on_model=True,
)
async def answers_are_not_mixed_up(chat: Chat) -> None:
    codes = [chat.nonce() for _ in range(16)]
    if chat.variant == "text":
        asks = [chat.answer([user(f"Reply with exactly this and nothing else: {code}")], stream=True) for code in codes]
    else:
        tool = function("echo", {"text": {"type": "string"}}, description="Gives the text back.")
        asks = [
            chat.answer(
                [user(f'Call `echo` with exactly these arguments: {{"text": "{code}"}}')],
                tools=[tool],
                tool_choice="required",
                stream=True,
            )
            for code in codes
        ]
    replies = await chat.many(*asks)

    for code, reply in zip(codes, replies, strict=True):
        said = reply.text + "".join(str(call.arguments) for call in reply.calls)
        foreign = [other for other in codes if other != code and other in said + reply.reasoning]
        if foreign:
            note("content", f"nothing of another request, only {code}", f"{foreign[0]} of another request", reply.id)
        elif code not in said:
            note("content", f"the code {code}", repr(said[:120]), reply.id)


@check(
    "The same request asked again and again gets an equally good answer.",
    MUST,
    spec="F072, F078",
    variants=("",),
    rests_on_model=True,
)
async def repeats_are_as_good_as_the_first(chat: Chat) -> None:
    code = chat.nonce()
    messages = [system(f"The code for ferry is {code}. " + STORY * 30), user("What is the code for ferry?")]
    first = await chat.answer(messages, stream=True)
    if code not in first.text:
        raise Inconclusive("the first answer is no better than the others could be")
    for number in range(2, 6):
        reply = await chat.answer(messages, stream=True)
        expect(reply.text, f"content of answer {number}").contains(code)


@check(
    "A prompt that comes back after others finds its own context.",
    MUST,
    spec="F072, F075",
    variants=("",),
    rests_on_model=True,
)
async def a_prompt_finds_its_own_context(chat: Chat) -> None:
    codes = [chat.nonce() for _ in range(3)]
    prompts = [
        [system(f"The code for ferry is {code}. " + STORY * 30), user("What is the code for ferry?")] for code in codes
    ]
    for place, turn in enumerate((0, 1, 0, 2, 0, 1)):
        reply = await chat.answer(prompts[turn], stream=True)
        if place == 0 and codes[turn] not in reply.text:
            raise Inconclusive("the prompt is not understood when it is new")
        foreign = [code for code in codes if code != codes[turn] and code in reply.text]
        expect(foreign, "codes of other prompts in content").is_empty()
        expect(reply.text, "content").contains(codes[turn])


@check(
    "Short questions are answered as well after a long prompt as before it.",
    MUST,
    spec="F122, F123",
    variants=("",),
    alone=True,
    rests_on_model=True,
)
async def a_long_prompt_harms_nobody(chat: Chat) -> None:
    window = chat.capabilities.max_model_len or 32_768
    words = min(30_000, window // 3)
    before, after = chat.nonce(), chat.nonce()
    ask = "Reply with exactly this and nothing else: {}"
    first = await chat.answer([user(ask.format(before))], stream=True)
    if before not in first.text:
        raise Inconclusive("the short question is not answered before the long prompt either")
    await chat.answer([system(f"{chat.nonce()} " + "grain " * words), user(ask.format("long"))], stream=True)
    last = await chat.answer([user(ask.format(after))], stream=True)

    expect(last.text, "content after the long prompt").contains(after)


@check(
    "A client that leaves in the middle of a stream harms nobody.",
    MUST,
    spec="F079, F149",
    variants=("",),
    alone=True,
    rests_on_model=True,
)
async def a_client_that_leaves_harms_nobody(chat: Chat) -> None:
    before, after = chat.nonce(), chat.nonce()
    question = user("What is the code for ferry?")
    first = await chat.answer([system(f"The code for ferry is {before}."), question], stream=True)
    if before not in first.text:
        raise Inconclusive("the question is not answered before others leave either")
    await chat.many(
        *(chat.ask([user(f"Count from {start} to {start + 400}")], stream=True, cut_after=200) for start in range(1, 5))
    )
    reply = await chat.answer([system(f"The code for ferry is {after}."), question], stream=True)

    expect(reply.text, "content after others left").contains(after)
    expect(reply.tokens("prompt_tokens"), "usage.prompt_tokens after others left").at_least(10)
