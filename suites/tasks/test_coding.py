"""Coding: what a program prints. No model code runs, so the answer is predicted (tasks.md §4, output_prediction)."""

import random

from kimi_eval import Item, answer_line, once, task, user


@task("The output of a small program is predicted.", spec="tasks.md §4 output_prediction", ask=once, score=answer_line)
def output_of_a_program(draw: random.Random) -> Item:
    modulus, factor, offset = draw.choice((7, 9, 11, 13)), draw.randint(2, 6), draw.randint(1, 9)
    first, rounds, threshold = draw.randint(3, 30), draw.randint(5, 9), draw.randint(20, 60)
    program = "\n".join(
        (
            f"a, b = {first}, 0",
            f"for i in range({rounds}):",
            f"    if a % {modulus} < {modulus // 2}:",
            f"        a = a * {factor} + i",
            "    else:",
            f"        a = a // 2 + {offset}",
            f"        b += a % {modulus}",
            f"    if a > {threshold}:",
            f"        a -= {threshold}",
            "        b += 1",
            "print(a * 100 + b)",
        )
    )
    a, b = first, 0
    for i in range(rounds):
        if a % modulus < modulus // 2:
            a = a * factor + i
        else:
            a = a // 2 + offset
            b += a % modulus
        if a > threshold:
            a -= threshold
            b += 1
    printed = a * 100 + b
    text = (
        f"What does this Python program print?\n\n```python\n{program}\n```\n\n"
        "Trace it step by step, then give what it prints on the last line as: ANSWER: <output>"
    )
    return Item((user(text),), expect=printed, gold=({"content": f"ANSWER: {printed}"},), knobs=f"rounds={rounds}")
