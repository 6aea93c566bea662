"""Limiter: never above its ceiling, first come first served, slow start, and less after a refusal."""

from __future__ import annotations

import asyncio

import pytest

from kimi_eval.limiter import START, Limiter


def test_never_more_than_the_capacity_are_inside_and_the_first_come_first() -> None:
    order: list[int] = []
    most = 0

    async def main() -> None:
        limiter = Limiter(5)
        inside = 0

        async def one(number: int) -> None:
            nonlocal inside, most
            async with limiter.slot():
                order.append(number)
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                inside -= 1

        await asyncio.gather(*(one(number) for number in range(50)))

    asyncio.run(main())

    assert most == 5
    assert order == list(range(50))


def test_a_waiter_that_is_cancelled_takes_no_slot_with_it() -> None:
    async def main() -> int:
        limiter = Limiter(1)
        async with limiter.slot():
            waiting = [asyncio.create_task(limiter._acquire()) for _ in range(10)]
            await asyncio.sleep(0)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        async with asyncio.timeout(1), limiter.slot():
            return limiter.used

    assert asyncio.run(main()) == 1


def test_it_starts_slowly_grows_while_used_and_never_passes_the_ceiling() -> None:
    limiter = Limiter(60)
    assert limiter.capacity == START

    limiter.used = 1
    limiter.went_well()
    assert limiter.capacity == START  # what is not used is not enlarged

    for _ in range(300):
        limiter.used = int(limiter.capacity)
        limiter.went_well()

    assert limiter.capacity == 60
    assert Limiter(200).capacity == 50
    assert Limiter(4).capacity == 4


def test_a_wave_of_refusals_counts_once() -> None:
    now = 10.0
    limiter = Limiter(60, clock=lambda: now)
    for _ in range(20):
        limiter.too_much()

    assert limiter.capacity == pytest.approx(START * 0.7)

    now = 12.0
    limiter.too_much()

    assert limiter.capacity == pytest.approx(START * 0.49)


def test_starts_are_paced() -> None:
    async def main() -> float:
        limiter = Limiter(100, per_minute=6000)
        start = asyncio.get_running_loop().time()

        async def one() -> None:
            async with limiter.slot():
                pass

        await asyncio.gather(*(one() for _ in range(21)))
        return asyncio.get_running_loop().time() - start

    assert asyncio.run(main()) >= 0.19  # 20 pauses of 10 ms
