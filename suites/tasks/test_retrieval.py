"""Retrieval: one fact among many alike in a few thousand tokens (tasks.md §7, multi-key needles)."""

import random

from kimi_eval import Item, answer_line, once, task, user

_ADJECTIVES = "quaint lively patient silver crooked hollow amber distant narrow gentle rusty woven".split()
_NOUNS = "quarry cistern tannery chapel granary harbour orchard lantern bridge mill kiln vestry".split()
_NAMES = "Magnus Beatrix Cedric Dorothea Xanthe Osric Philippa Ansel".split()


@task(
    "One registry number among forty is found in a long text.",
    spec="tasks.md §7 multi-key",
    ask=once,
    score=answer_line,
)
def one_number_among_many(draw: random.Random) -> Item:
    keys = draw.sample([f"{adjective} {noun}" for adjective in _ADJECTIVES for noun in _NOUNS], 40)
    numbers = {key: draw.randint(1_000_000, 9_999_999) for key in keys}
    sentences = []
    for key in keys:
        sentences.append(f"The registry number of the {key} is {numbers[key]}.")
        for _ in range(3):
            one, other = draw.sample(_NAMES, 2)
            sentences.append(
                f"{one} and {other} walked to the {draw.choice(_ADJECTIVES)} {draw.choice(_NOUNS)} "
                f"and counted {draw.randint(2, 99)} stones on the way."
            )
    wanted = draw.choice(keys)
    text = (
        "Read this record.\n\n" + " ".join(sentences) + f"\n\nWhat is the registry number of the {wanted}? "
        "Give it on the last line as: ANSWER: <number>"
    )
    gold = ({"content": f"ANSWER: {numbers[wanted]}"},)
    return Item((user(text),), expect=numbers[wanted], gold=gold, knobs="keys=40")
