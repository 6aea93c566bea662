"""Reasoning: chains that are only right when every step is (tasks.md §3, chain_exec)."""

import random

from kimi_eval import Item, answer_line, once, task, user

_WORDS = (
    "anvil barrel cistern dockside estuary flagon granary hoist inkwell jetty kiln lathe manuscript needle orchard "
    "pulley quay rafter sluice tunnel urn vestry workbench yard"
).split()


@task(
    "A chain of additions modulo 1,000 ends in the right total.",
    spec="tasks.md §3 chain_exec",
    ask=once,
    score=answer_line,
)
def chain_of_additions(draw: random.Random) -> Item:
    steps = draw.choice((12, 18, 24))
    names = draw.sample(_WORDS, 8)
    value = {name: draw.randint(-99, 99) for name in names}
    chain = [draw.choice(names) for _ in range(steps)]
    total = 500
    for name in chain:
        total = (total + value[name]) % 1000
    table = ", ".join(f"{name}={number}" for name, number in value.items())
    text = (
        f"Each word below stands for an integer: {table}.\n"
        "Start with the total 500. Go through the list in order; for every word add its integer and reduce the total "
        "modulo 1000, so that it stays between 0 and 999.\n"
        f"List: {' '.join(chain)}\n"
        "Give the final total on the last line as: ANSWER: <number>"
    )
    return Item((user(text),), expect=total, gold=({"content": f"ANSWER: {total}"},), knobs=f"steps={steps}")
