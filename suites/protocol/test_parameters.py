"""Parameters: what is fixed, what is kept, what is refused. Every refusal has a sane twin in the same run."""

from typing import Any

from kimi_eval import (
    MOONSHOT,
    MUST,
    OMIT,
    SHOULD,
    Chat,
    Inconclusive,
    Reply,
    check,
    expect,
    note,
    require,
    user,
)

ONE_WORD = [user("Reply with exactly this and nothing else: fixed")]


@check(
    "Temperature is fixed at 1: every other value is refused with 400.",
    MUST,
    spec="KVV params; protocol.md §2.1; F163",
    variants=("1.1", "2.0", "-0.1"),
    contract=MOONSHOT,
)
async def temperature_is_fixed(chat: Chat) -> None:
    await chat.refuses(ONE_WORD, right={"temperature": 1}, temperature=float(chat.variant))


@check("top_p is fixed at 0.95: 0.8 is refused with 400.", MUST, spec="KVV params", contract=MOONSHOT)
async def top_p_is_fixed(chat: Chat) -> None:
    await chat.refuses(ONE_WORD, right={"top_p": 0.95}, top_p=0.8)


@check(
    "Both penalties are fixed at 0: 0.5 is refused with 400.",
    MUST,
    spec="KVV params",
    variants=("presence_penalty", "frequency_penalty"),
    contract=MOONSHOT,
)
async def penalties_are_fixed(chat: Chat) -> None:
    await chat.refuses(ONE_WORD, right={chat.variant: 0}, **dict[str, Any]({chat.variant: 0.5}))


@check("One answer is given: n = 2 is refused with 400.", MUST, spec="KVV params; protocol.md §2.1", contract=MOONSHOT)
async def n_is_one(chat: Chat) -> None:
    await chat.refuses(ONE_WORD, right={"n": 1}, n=2)


@check("The fixed values themselves, spelled out, are accepted.", MUST, spec="KVV params")
async def fixed_values_are_accepted(chat: Chat) -> None:
    await chat.answer(ONE_WORD, temperature=1.0, top_p=0.95, n=1, presence_penalty=0, frequency_penalty=0)


@check(
    "A value that no sampler can use is refused with 400.",
    SHOULD,
    spec="OpenAI API reference; F163, F170",
    variants=("temperature_is_text", "temperature_is_minus_one", "top_p_is_two", "n_is_zero"),
)
async def impossible_values_are_refused(chat: Chat) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "temperature_is_text": {"temperature": "hot"},
        "temperature_is_minus_one": {"temperature": -1},
        "top_p_is_two": {"top_p": 2},
        "n_is_zero": {"n": 0},
    }
    await chat.refuses(ONE_WORD, right={}, **wrong[chat.variant])


@check("An unknown field is ignored.", SHOULD, spec="protocol.md §2.1 (unknown top-level fields)")
async def unknown_fields_are_ignored(chat: Chat) -> None:
    await chat.answer(ONE_WORD, kimi_eval_unknown_field={"nested": [1, 2, 3]})


# --- the token ceiling ------------------------------------------------------------------------------------------------


def _was_cut(reply: Reply, ceiling: int) -> None:
    used = reply.tokens("completion_tokens")
    if reply.finish_reason == "stop" and used is not None and used < ceiling:
        raise Inconclusive(f"the model ended its answer by itself after {used} tokens")
    expect(reply.finish_reason, "finish_reason").equals("length")
    require(expect(used, "usage.completion_tokens").is_a(int, "an integer"))
    expect(used, "usage.completion_tokens").at_most(ceiling)


@check(
    "`max_completion_tokens` cuts the answer there, with finish reason `length`.",
    MUST,
    spec="protocol.md §2.1; F042, F102",
)
async def max_completion_tokens_is_kept(chat: Chat) -> None:
    reply = await chat.answer([user("Count from 1 to 300")], max_completion_tokens=24, may_be_cut=True)

    _was_cut(reply, 24)


@check("`max_tokens` does the same.", MUST, spec="protocol.md §2.1")
async def max_tokens_is_kept(chat: Chat) -> None:
    reply = await chat.answer([user("Count from 1 to 300")], max_completion_tokens=OMIT, max_tokens=24, may_be_cut=True)

    _was_cut(reply, 24)


@check("`max_completion_tokens` wins over `max_tokens`.", SHOULD, spec="protocol.md §2.1 (Kimi Code)")
async def max_completion_tokens_wins(chat: Chat) -> None:
    reply = await chat.answer([user("Count from 1 to 300")], max_completion_tokens=24, max_tokens=200, may_be_cut=True)

    _was_cut(reply, 24)


@check("A ceiling of 0 or below is refused with 400.", SHOULD, spec="OpenAI API reference; F170", variants=("0", "-1"))
async def an_impossible_ceiling_is_refused(chat: Chat) -> None:
    await chat.refuses(ONE_WORD, right={}, max_completion_tokens=int(chat.variant))


@check("Reasoning that uses up the ceiling stays reasoning; it never turns into content.", MUST, spec="F053")
async def a_spent_budget_is_no_answer(chat: Chat) -> None:
    reply = await chat.answer(
        [user("Name the capital of each country whose flag is only red and white, with one sentence on each.")],
        max_completion_tokens=8,
        may_be_cut=True,
    )

    expect(reply.finish_reason, "finish_reason").equals("length")
    if reply.reasoning:
        expect(reply.text, "content while the ceiling fell into the reasoning").is_empty()


# --- stop -------------------------------------------------------------------------------------------------------------


@check("A stop word ends the answer and is not part of it.", MUST, spec="P1.1; protocol.md §2.1", rests_on_model=True)
async def a_stop_word_is_cut(chat: Chat) -> None:
    reply = await chat.answer([user("Count from 1 to 20, separated by commas")], stop=["7"])

    expect(reply.finish_reason, "finish_reason").equals("stop")
    expect(reply.text, "content").lacks("7")
    expect(reply.text, "content").contains("6")


@check(
    "A stop word that occurs in the reasoning does not end it.",
    MUST,
    spec="F116; protocol.md §2.1",
    rests_on_model=True,
)
async def a_stop_word_does_not_match_in_reasoning(chat: Chat) -> None:
    reply = await chat.answer(
        [user("A pelican waits. Reply with exactly this and nothing else: heron")],
        stop=["pelican"],
    )

    expect(reply.text, "content").is_text()


@check(
    "At most five stop words, of at most 32 bytes each: more is refused with 400.",
    MUST,
    spec="protocol.md §2.1",
    variants=("six_words", "33_bytes"),
    contract=MOONSHOT,
)
async def stop_words_are_limited(chat: Chat) -> None:
    if chat.variant == "six_words":
        await chat.refuses(ONE_WORD, right={"stop": list("UVWXY")}, stop=list("UVWXYZ"))
    else:
        await chat.refuses(ONE_WORD, right={"stop": ["Q" * 32]}, stop=["Q" * 33])


# --- logprobs ---------------------------------------------------------------------------------------------------------


@check(
    "Log probabilities come for every token of the answer: finite, not positive, with the top alternatives and bytes.",
    MUST,
    spec="P1.17; F123, F176",
    needs=("logprobs",),
)
async def logprobs_are_sound(chat: Chat) -> None:
    reply = await chat.answer([user("What is 17 + 25?")], logprobs=True, top_logprobs=2)

    entries = _logprobs(reply)
    require(expect(len(entries), "number of logprobs entries").at_least(1))
    for number, entry in enumerate(entries):
        where = f"logprobs.content[{number}]"
        if not isinstance(entry, dict):
            note(where, "an object", repr(entry))
            return
        top = entry.get("top_logprobs")
        good = (
            expect(entry.get("token"), f"{where}.token").is_a(str, "a string")
            and expect(entry.get("logprob"), f"{where}.logprob").is_a((int, float), "a number")
            and expect(entry.get("logprob"), f"{where}.logprob").at_most(0)
            and expect(sorted(entry), f"keys of {where}").satisfies(lambda keys: "bytes" in keys, "bytes among them")
            and expect(top, f"{where}.top_logprobs").has_length(2)
        )
        if not good:
            return
    joined = b"".join(bytes(entry.get("bytes") or entry["token"].encode()) for entry in entries)
    if reply.text.strip() and reply.text.strip().encode() not in joined:
        note("logprobs.content[].bytes", f"bytes that spell the answer {reply.text!r}", repr(joined[:200]))


def _logprobs(reply: Reply) -> list[Any]:
    found: list[Any] = []
    for holder in [choice for _, choice in reply.choices()] if reply.is_stream else [reply.choice]:
        logprobs = holder.get("logprobs")
        if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
            found += logprobs["content"]
    return found


@check("More than 20 top_logprobs are refused with 400.", SHOULD, spec="protocol.md §2.1; F170", needs=("logprobs",))
async def top_logprobs_are_limited(chat: Chat) -> None:
    await chat.refuses(ONE_WORD, right={"logprobs": True, "top_logprobs": 20}, logprobs=True, top_logprobs=21)


# --- the window -------------------------------------------------------------------------------------------------------


def _window(chat: Chat) -> int:
    chat.needs("max_model_len")
    return chat.capabilities.max_model_len or 0


@check(
    "A prompt longer than the window is refused with 400, never cut.",
    MUST,
    spec="F118, F120; protocol.md §5",
    variants=("whole",),
)
async def an_over_long_prompt_is_refused(chat: Chat) -> None:
    # "7 " is a token of its own in every vocabulary we know; 5 % more than the window leaves no doubt.
    reply = await chat.ask([user("7 " * int(_window(chat) * 1.05))], hostile=True, max_completion_tokens=16)

    if reply.ok:
        counted = reply.tokens("prompt_tokens")
        note("status of a prompt beyond the window", "400", f"200, with {counted} prompt tokens counted")
    else:
        expect(reply.status, "status of a prompt beyond the window").is_in([400, 413])
    after = await chat.answer([user("Reply with exactly this and nothing else: alive")])
    expect(after.status, "status of a short request afterwards").equals(200)


@check(
    "Prompt and ceiling together beyond the window are refused with 400.",
    MUST,
    spec="protocol.md §2.1, §5",
    contract=MOONSHOT,
)
async def a_ceiling_beyond_the_window_is_refused(chat: Chat) -> None:
    await chat.refuses(ONE_WORD, right={}, max_completion_tokens=_window(chat))
