"""Plan: what a run would ask and cost, rehearsed on the simulated deployment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kimi_eval.catalog import Claim
from kimi_eval.certify import Order
from kimi_eval.deployment import Capabilities, Deployment
from kimi_eval.profile import named
from kimi_eval.reply import Reply
from kimi_eval.runner import Runner
from kimi_eval.tasks import Task
from kimi_eval.transcript import Exchange

# Completion tokens of one answer of the real model, by effort. Low: the simplest questions stay below 1,000, hard ones
# took 5,561 to 7,356 in the spot check of protocol.md §2.2. High and max are multiples we assume, not measurements.
_ANSWER_TOKENS = {"low": (600, 4000), "high": (1500, 12000), "max": (3000, 24000)}
_TOKENS_A_SECOND = 50.0  # of one stream, assumed where nothing is known


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would take. Requests and prompt tokens are counted in a rehearsal; the rest says its assumption."""

    claims: int
    requests: int
    requests_by_suite: dict[str, int]
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    minutes: float
    assumptions: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {"schema": "kimi-eval/estimate/1", **asdict(self)}


async def rehearse(
    order: Order, target: Deployment | None, selection: Sequence[tuple[str, Claim]] | None = None
) -> Estimate:
    """Has every selected conversation with the order's deployment, which is a simulated one, and adds up.

    ``selection`` are the claims, those of the order where it is not given. ``target`` is the deployment that the run
    is for: its prices, ceilings and declared capabilities count.
    """
    wanted = target or order.deployment
    profile = named(wanted.profile or "moonshot")
    declared = wanted.capabilities.model_dump(exclude_none=True)
    capabilities = Capabilities(**{"max_model_len": 1_048_576, **profile.capabilities, **declared})
    limits = wanted.limits.model_copy(update={"requests_per_minute": None})  # a rehearsal need not wait
    rehearsal = order.deployment.model_copy(update={"limits": limits})
    selection = order.selection() if selection is None else selection
    seen: list[Exchange] = []
    runner = Runner(rehearsal, profile, capabilities, None, order.settings, on_exchange=seen.append)
    async with runner.connected():
        await runner.run(selection)
    return _added_up(seen, selection, order, wanted)


def _added_up(
    seen: Sequence[Exchange], selection: Sequence[tuple[str, Claim]], order: Order, wanted: Deployment
) -> Estimate:
    tasks = {claim.id for _, claim in selection if isinstance(claim, Task)}
    easy, hard = _ANSWER_TOKENS[order.settings.effort]
    by_suite: Counter[str] = Counter()
    prompt = completion = 0
    for exchange in seen:
        by_suite[exchange.case.split("/", 1)[0]] += 1
        if exchange.status != 200 or not exchange.url.endswith("/chat/completions"):
            continue
        reply = Reply(exchange)
        prompt += reply.tokens("prompt_tokens") or 0
        ceiling = reply.request.get("max_completion_tokens") or hard
        of_a_task = exchange.case.partition(".v")[0] in tasks
        completion += min(ceiling, max(hard if of_a_task else easy, reply.tokens("completion_tokens") or 0))
    prices = wanted.prices
    usd = (prompt * prices.input + completion * prices.output) / 1e6 if prices else None
    lanes = min(order.settings.concurrency, wanted.limits.concurrency or order.settings.concurrency)
    longest = hard / _TOKENS_A_SECOND
    minutes = max(longest, completion / _TOKENS_A_SECOND / lanes) / 60
    if wanted.limits.requests_per_minute:
        minutes = max(minutes, len(seen) / wanted.limits.requests_per_minute)
    return Estimate(
        claims=len(selection),
        requests=len(seen),
        requests_by_suite=dict(sorted(by_suite.items())),
        prompt_tokens=prompt,
        completion_tokens=completion,
        usd=None if usd is None else round(usd, 2),
        minutes=round(minutes, 1),
        assumptions=(
            f"an answer takes {easy:,} completion tokens, that of a task {hard:,} (effort {order.settings.effort})",
            f"a stream gives {_TOKENS_A_SECOND:g} tokens a second, {lanes} at once",
            "prompt tokens are the simulator's count; the real vocabulary differs by some per cent",
        ),
    )


def table(estimate: Estimate) -> str:
    """The estimate as text."""
    money = f"${estimate.usd:,.2f}" if estimate.usd is not None else "unknown; the target file names no prices"
    lines = [
        f"{estimate.claims} claims, {estimate.requests:,} requests",
        *(f"  {suite:<14}{count:>6,}" for suite, count in estimate.requests_by_suite.items()),
        f"prompt tokens      {estimate.prompt_tokens:>10,}",
        f"completion tokens  {estimate.completion_tokens:>10,}  (assumed)",
        f"money              {money:>10}",
        f"minutes            {estimate.minutes:>10}  (assumed)",
        "",
        *(f"Assumed: {assumption}." for assumption in estimate.assumptions),
        "Nothing was asked of the deployment.",
    ]
    return "\n".join(lines)
