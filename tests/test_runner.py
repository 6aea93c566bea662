"""Runner: what is retried, what is counted, and how a check's outcome becomes a verdict."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kimi_eval.chat import Chat
from kimi_eval.claims import CORE, MOONSHOT, MUST, Check, check
from kimi_eval.deployment import Capabilities, Deployment, Limits, Prices, Timeouts
from kimi_eval.expectations import Inconclusive, NotApplicable, expect, require
from kimi_eval.journal import Journal
from kimi_eval.profile import named
from kimi_eval.runner import Budget, Runner, Settings
from kimi_eval.simulator import SimulatedDeployment
from kimi_eval.transcript import Failure
from kimi_eval.verdict import Status, Verdict
from tests.hostile import COMPLETION, Behaviour, Hostile, fixed, reply

GOOD = reply(json.dumps(COMPLETION).encode())
HELLO = [{"role": "user", "content": "hello"}]


def runner_for(url: str, folder: Path | None = None, **more: Any) -> Runner:
    deployment = Deployment(
        base_url=url,
        timeouts=Timeouts(connect=1, first_byte=1, idle=1, total=3),
        limits=more.pop("limits", Limits()),
        prices=more.pop("prices", None),
    )
    journal = Journal(folder) if folder else None
    settings = Settings(nonce="test", **more)
    return Runner(deployment, named("generic"), Capabilities(max_model_len=4096), journal, settings)


def judged(hold: Any, url: str, runner: Runner | None = None, **fields: Any) -> Verdict:
    claim = Check("name", "suite/topic", "It holds.", MUST, CORE, "-", ("whole",), (), False, False, hold)
    claim = Check(**{**{name: getattr(claim, name) for name in claim.__slots__}, **fields})

    async def main() -> Verdict:
        async with (runner or runner_for(url)).connected() as connected:
            return await connected.judge_check(claim, "whole")

    return asyncio.run(main())


def after(bad: list[bytes], good: bytes = GOOD) -> Behaviour:
    """A behaviour that gives the bad replies in order, then the good one."""
    waiting = list(bad)

    async def behave(writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
        writer.write(waiting.pop(0) if waiting else good)

    return behave


def error(status: str, more: str = "") -> bytes:
    return reply(b'{"error": {"message": "no", "type": "server_error"}}', status=status, more=more)


async def answers(chat: Chat) -> None:
    answer = await chat.answer(HELLO)
    expect(answer.text, "content").equals("ready")


# --- retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        [error("429 Too Many Requests", "Retry-After: 0\r\n")] * 5,
        [error("503 Service Unavailable")],
        [error("408 Request Timeout")] * 2,
        [b""],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\nConnection: close\r\n\r\n{"],
    ],
)
def test_transport_causes_are_retried_and_every_attempt_is_counted(bad: list[bytes], tmp_path: Path) -> None:
    with Hostile(after(bad)) as server:
        runner = runner_for(server.url, tmp_path)
        verdict = judged(answers, server.url, runner)

    assert verdict.status is Status.PASSED
    assert runner.meter.attempts == len(bad) + 1
    assert runner.meter.requests == 1


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        ([error("429 Too Many Requests", "Retry-After: 0\r\n")] * 9, Status.INCONCLUSIVE),
        ([b""] * 9, Status.INCONCLUSIVE),
        ([error("500 Internal Server Error")] * 9, Status.FAILED),
        ([error("400 Bad Request")] * 9, Status.FAILED),
    ],
)
def test_what_does_not_go_away_is_told(bad: list[bytes], status: Status) -> None:
    with Hostile(after(bad)) as server:
        assert judged(answers, server.url).status is status


def test_a_server_error_on_a_wrong_request_is_no_reason_to_retry() -> None:
    async def hold(chat: Chat) -> None:
        await chat.refuses(HELLO, right={}, temperature=9)

    behaviour = after([GOOD, error("500 Internal Server Error")])
    with Hostile(behaviour) as server:
        runner = runner_for(server.url)
        verdict = judged(hold, server.url, runner)

    assert verdict.status is Status.FAILED
    assert runner.meter.attempts == 2
    assert str(verdict.findings[0]).startswith("status: expected 400, got 500")


def test_a_refusal_does_not_count_where_the_sane_twin_is_refused_too() -> None:
    async def hold(chat: Chat) -> None:
        await chat.refuses(HELLO, right={}, temperature=9)

    with Hostile(fixed(error("400 Bad Request"))) as server:
        verdict = judged(hold, server.url)

    assert verdict.status is Status.FAILED
    assert verdict.findings[0].where == "the same request without the mistake"


# --- verdicts ---------------------------------------------------------------------------------------------------------


def raising(trouble: BaseException) -> Any:
    async def hold(chat: Chat) -> None:
        await chat.send("GET", "/models")
        raise trouble

    return hold


async def finds_and_stops(chat: Chat) -> None:
    await chat.send("GET", "/models")
    expect(1, "one").equals(2)
    expect("a", "two").equals("b")
    require(expect(3, "three").equals(4))
    expect(5, "four").equals(6)


async def asks_nothing(chat: Chat) -> None:
    expect(1, "one").equals(1)


def test_each_way_to_end_is_one_status() -> None:
    with Hostile(fixed(GOOD)) as server:
        seen = {
            name: judged(hold, server.url)
            for name, hold in {
                "passed": answers,
                "inconclusive": raising(Inconclusive("cannot tell")),
                "not_applicable": raising(NotApplicable("not declared")),
                "error": raising(ZeroDivisionError("ours")),
                "failed": finds_and_stops,
            }.items()
        }

    assert {name: str(verdict.status) for name, verdict in seen.items()} == {name: name for name in seen}
    assert [finding.where for finding in seen["failed"].findings] == ["one", "two", "three"]
    assert "ZeroDivisionError" in seen["error"].reason


def test_a_check_that_asked_nothing_is_never_green() -> None:
    with Hostile(fixed(GOOD)) as server:
        assert judged(asks_nothing, server.url).status is Status.ERROR


def test_capabilities_and_contracts_exclude() -> None:
    with Hostile(fixed(GOOD)) as server:
        vision = judged(answers, server.url, needs=("vision",))
        moonshot = judged(answers, server.url, contract=MOONSHOT)

    assert (vision.status, moonshot.status) == (Status.NOT_APPLICABLE, Status.NOT_APPLICABLE)
    assert "vision" in vision.reason
    assert "moonshot_extensions" in moonshot.reason


def test_an_answer_that_was_cut_is_no_answer() -> None:
    cut = json.loads(json.dumps(COMPLETION))
    cut["choices"][0]["finish_reason"] = "length"
    with Hostile(fixed(reply(json.dumps(cut).encode()))) as server:
        assert judged(answers, server.url).status is Status.INCONCLUSIVE


# --- money and limits -------------------------------------------------------------------------------------------------


def test_a_budget_ends_the_asking() -> None:
    async def many(chat: Chat) -> None:
        for number in range(10):
            await chat.answer([{"role": "user", "content": str(number)}])

    with Hostile(fixed(GOOD)) as server:
        runner = runner_for(server.url, budget=Budget(tokens=30))
        verdict = judged(many, server.url, runner)

    assert verdict.status is Status.INCONCLUSIVE
    assert "budget of 30 tokens" in verdict.reason
    assert runner.meter.tokens == 36


def test_money_is_by_the_prices_of_the_target() -> None:
    with Hostile(fixed(GOOD)) as server:
        runner = runner_for(server.url, prices=Prices(input=2.0, output=10.0))
        judged(answers, server.url, runner)

    assert runner.meter.usd(runner.deployment) == pytest.approx((9 * 2 + 3 * 10) / 1e6)


def test_every_request_says_its_effort_lane_and_ceiling() -> None:
    async def main(url: str) -> dict[str, Any]:
        async with runner_for(url, limits=Limits(max_completion_tokens=300)).connected() as runner:
            chat = Chat(runner, "case", "whole")
            return (await chat.answer(HELLO)).request

    with Hostile(fixed(GOOD)) as server:
        request = asyncio.run(main(server.url))

    assert request["reasoning_effort"] == "low"
    assert request["stream"] is False
    assert request["max_completion_tokens"] == 300


def test_the_same_shared_question_is_asked_once() -> None:
    async def main(url: str) -> int:
        async with runner_for(url).connected() as runner:
            chats = [Chat(runner, f"case {number}", "whole") for number in range(10)]
            body = chats[0].body(HELLO)
            await asyncio.gather(*(chat.send("POST", "/chat/completions", body, shared=True) for chat in chats))
            return runner.meter.requests

    with Hostile(fixed(GOOD)) as server:
        assert asyncio.run(main(server.url)) == 1


# --- the wire ---------------------------------------------------------------------------------------------------------


def test_arrival_times_are_those_of_the_bytes() -> None:
    async def main(url: str) -> Any:
        async with runner_for(url).connected() as runner:
            chat = Chat(runner, "case", "streamed")
            return await chat.answer([{"role": "user", "content": "Count from 1 to 30"}])

    with SimulatedDeployment(seconds_per_frame=0.01) as server:
        answer = asyncio.run(main(server.base_url))
    times = [frame.seconds for frame in answer.frames]

    assert times == sorted(times)
    assert times[-1] - times[0] >= 0.005 * (len(times) - 1)


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [("silent", Failure.TIMEOUT), ("dripping", Failure.TIMEOUT), ("endless", Failure.TOO_LARGE)],
)
def test_a_reply_that_does_not_end_is_ended(behaviour: str, failure: Failure) -> None:
    async def main(url: str) -> Failure:
        async with runner_for(url).connected() as runner:
            chat = Chat(runner, "case", "streamed")
            with pytest.raises(Inconclusive):
                await chat.ask(HELLO)
            return chat.replies[-1].exchange.failure

    with Hostile(behaviour) as server:
        assert asyncio.run(main(server.url)) is failure


def test_a_title_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="no sentence"):
        check("no full stop", MUST, spec="-")(answers)
