"""Multi-turn: facts told, changed and asked for over several turns (tasks.md §6, slot recall with overwrite)."""

import random

from kimi_eval import Item, answer_line, in_turns, task, user

_SLOTS = "badge shelf gate crate berth locker ticket cabin".split()
_WORDS = "umbrella journal candle hoist quilt marble saddle anchor basket lantern pebble ribbon".split()


def _label(draw: random.Random) -> str:
    return f"{draw.choice(_WORDS)}{draw.randint(100, 999)}"


@task(
    "The latest value of a slot is recalled after overwrites.",
    spec="tasks.md §6 slot recall",
    ask=in_turns,
    score=answer_line,
)
def latest_value_of_a_slot(draw: random.Random) -> Item:
    slots = draw.sample(_SLOTS, 3)
    told = [(slot, _label(draw)) for slot in slots]
    told += [(slot, _label(draw)) for slot in draw.sample(slots, 2)]
    asked = draw.choice(slots)
    value = dict(told)[asked]
    turns = [f"For the record, my {slot} label is now {text}. Just say OK." for slot, text in told]
    question = f"What is my {asked} label now? Give it on the last line as: ANSWER: <label>"
    gold = (*({"content": "OK."} for _ in turns), {"content": f"ANSWER: {value}"})
    return Item(
        (user(turns[0]),), expect=value, gold=gold, turns=(*turns[1:], question), knobs=f"turns={len(turns) + 1}"
    )
