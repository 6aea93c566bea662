"""Runner: has many conversations at once, with one limiter, one recorder and one purse, and judges each."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import itertools
import random
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import orjson

from kimi_eval.chat import Chat
from kimi_eval.claims import Check, Invariant
from kimi_eval.deployment import Capabilities, Deployment
from kimi_eval.estimate import share
from kimi_eval.expectations import Inconclusive, NotApplicable, Unmet, belongs_to, notebook
from kimi_eval.invariants import InvariantJudge
from kimi_eval.journal import Journal
from kimi_eval.limiter import Limiter
from kimi_eval.profile import Profile
from kimi_eval.reply import Reply
from kimi_eval.tasks import Answer, Item, Outcome, Task
from kimi_eval.transcript import Exchange, Failure, Lane, exchange_id
from kimi_eval.verdict import Finding, Status, Verdict
from kimi_eval.wire import Wire, new_exchange

if TYPE_CHECKING:
    from kimi_eval.client import ClientReading

DEFAULT_CONCURRENCY = 64
_MOST_FINDINGS = 20  # of one verdict; the rest is counted
_SMALL = 32 << 10  # bytes of an exchange that are written and judged without leaving the event loop
_TRANSPORT_STATUS = frozenset({408, 409, 425, 429})
# Attempts that may end in the same way. TIMEOUT and the rest took their time already: 1. A connection that the server
# closes just as we use it again is nobody's fault: 3.
_ATTEMPTS = {Failure.CONNECT: 3, Failure.CLOSED: 3}
Job = Callable[[], Coroutine[Any, Any, Verdict]]
_LONGEST_PAUSE = 60.0  # seconds that a Retry-After may ask of us


@dataclass(slots=True)
class Meter:
    """What the run has used so far. Tokens are what the deployment counted."""

    requests: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0

    def add(self, reply: Reply) -> None:
        """Counts one attempt."""
        self.attempts += 1
        self.requests += reply.exchange.attempt == 1
        if not reply.ok:
            return
        self.prompt_tokens += max(0, reply.tokens("prompt_tokens") or 0)
        self.cached_tokens += max(0, reply.tokens("cached_tokens") or 0)
        self.completion_tokens += max(0, reply.tokens("completion_tokens") or 0)
        self.reasoning_tokens += max(0, reply.tokens("reasoning_tokens") or 0)

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def usd(self, deployment: Deployment) -> float | None:
        """Dollars by the target's prices, or None where it names none."""
        prices = deployment.prices
        if prices is None:
            return None
        cached = min(self.cached_tokens, self.prompt_tokens)
        cached_price = prices.input if prices.cached_input is None else prices.cached_input
        fresh = self.prompt_tokens - cached
        return (fresh * prices.input + cached * cached_price + self.completion_tokens * prices.output) / 1e6


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a run stops asking: tokens, dollars, seconds; None is no ceiling."""

    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is asked for. ``seed`` draws the items; ``nonce`` is this run's own and makes prompts cold."""

    effort: str = "low"
    seed: str = "public"
    nonce: str = ""
    tier: str = "quick"
    items: float = 1.0  # of each task, as a multiple of its own count
    concurrency: int = DEFAULT_CONCURRENCY
    budget: Budget = field(default_factory=Budget)


class OutOfBudget(Inconclusive):
    """Nothing more is asked: a ceiling of the run is reached."""


class Runner:
    """One run against one deployment: a Session for every chat, and the judge of every claim.

    ``journal`` keeps the exchanges; without it nothing is recorded. What it holds already is not asked again, which is
    all that resuming is. ``on_verdict`` is called once for each verdict as it is reached, ``on_exchange`` for each
    attempt of a request, both in the runner's event loop.
    """

    def __init__(
        self,
        deployment: Deployment,
        profile: Profile,
        capabilities: Capabilities,
        journal: Journal | None,
        settings: Settings,
        invariants: Sequence[Invariant] = (),
        on_verdict: Callable[[Verdict], None] = lambda verdict: None,
        on_exchange: Callable[[Exchange], None] = lambda exchange: None,
    ) -> None:
        self.deployment = deployment
        self.profile = profile
        self.capabilities = capabilities
        self.settings = settings
        self.effort = settings.effort
        self.seed = settings.nonce or settings.seed
        self.meter = Meter()
        self.invariants = InvariantJudge(invariants, self._excluded)
        self.on_verdict = on_verdict
        self.on_exchange = on_exchange
        self.verdicts: list[Verdict] = []
        self.journal = journal
        ceiling = min(settings.concurrency, deployment.limits.concurrency or settings.concurrency)
        self.limiter = Limiter(ceiling, per_minute=deployment.limits.requests_per_minute)
        self.wire: Wire
        self.stopped = ""
        self.first_bytes: list[float] = []  # seconds, of the first thousand replies
        self._occurrences: Counter[tuple[str, str]] = Counter()
        self._shared: dict[str, asyncio.Future[Reply]] = {}
        self._started = time.monotonic()

    # --- running ----------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[Runner]:
        """Opens the wire for as long as the block runs."""
        await asyncio.to_thread(import_module, "jsonschema")  # 0.2 s that the first check with a schema would wait
        with _rare_collection():
            async with Wire(self.deployment) as self.wire:
                try:
                    yield self
                finally:
                    for asked in self._shared.values():
                        asked.cancel()
                    self._shared.clear()  # bound to this event loop

    async def run(self, claims: Sequence[tuple[str, Check | Invariant | Task]]) -> list[Verdict]:
        """Asks every selected claim: the crowd at once, then those that want to be alone, then the invariants."""
        crowd: list[Job] = []
        alone: list[Job] = []
        for address, claim in claims:
            if isinstance(claim, Check):
                job = partial(self.judge_check, claim, address[len(claim.id) + 1 : -1])
                (alone if claim.alone else crowd).append(job)
            elif isinstance(claim, Task):
                crowd.append(partial(self.judge_task, claim))
        await _at_most(4 * self.limiter.ceiling, crowd)
        await _at_most(1, alone)
        self.fold_invariants({claim.id for _, claim in claims if isinstance(claim, Invariant)})
        return self.verdicts

    def fold_invariants(self, wanted: Collection[str]) -> None:
        """Gives the verdicts of these invariants over everything seen so far, those that were not given before."""
        given = {verdict.id for verdict in self.verdicts}
        for verdict in self.invariants.verdicts():
            if verdict.id in wanted and verdict.id not in given:
                self._reached(verdict)

    def _reached(self, verdict: Verdict) -> Verdict:
        self.verdicts.append(verdict)
        self.on_verdict(verdict)
        return verdict

    def _excluded(self, claim: Check | Invariant | Task) -> str | None:
        """Why a claim does not apply to this deployment, or None."""
        if reason := self.profile.excludes(claim.id):
            return reason
        if claim.contract == "moonshot" and not self.capabilities.moonshot_extensions:
            return "capability moonshot_extensions is not declared"
        missing = [name for name in claim.needs if not getattr(self.capabilities, name)]
        return f"capability {missing[0]} is not declared" if missing else None

    async def judge_check(self, claim: Check, variant: str) -> Verdict:
        """Has one conversation of a check and gives its verdict. Raises nothing but cancellation."""
        address = f"{claim.id}[{variant}]" if variant else claim.id
        chat = Chat(self, address, variant)
        start = time.perf_counter()
        status, reason = Status.PASSED, ""
        with notebook() as notes:
            if excluded := self._excluded(claim):
                status, reason = Status.NOT_APPLICABLE, excluded
            else:
                try:
                    await claim.hold(chat)
                except Unmet:
                    pass
                except NotApplicable as told:
                    status, reason = Status.NOT_APPLICABLE, str(told)
                except Inconclusive as told:
                    status, reason = Status.INCONCLUSIVE, str(told)
                except Exception:
                    status, reason = Status.ERROR, traceback.format_exc(limit=-6)
            if notes.findings and status is not Status.ERROR:
                status = Status.FAILED
            elif status is Status.PASSED and not chat.replies and self.deployment.base_url:
                status, reason = Status.ERROR, "the check passed without asking anything"
        others = [reply.id for reply in chat.replies if reply.id not in notes.shown_by]
        return self._reached(
            Verdict(
                id=claim.id,
                variant=variant,
                title=claim.title,
                level=claim.level,
                contract=claim.contract,
                status=status,
                spec=claim.spec,
                findings=_bounded(notes.findings),
                reason=reason,
                observed=notes.observed,
                rests_on_model=claim.rests_on_model,
                exchanges=tuple(dict.fromkeys([*notes.shown_by, *others])),
                trials=len(chat.replies),
                seconds=round(time.perf_counter() - start, 3),
            )
        )

    async def judge_task(self, claim: Task) -> Verdict:
        """Asks every item of a task at once and gives the share that is right, with its interval."""
        start = time.perf_counter()
        if excluded := self._excluded(claim):
            return self._reached(_task_verdict(claim, Status.NOT_APPLICABLE, excluded, (), start))
        count = max(1, round(claim.count * self.settings.items))
        items = list(claim.items(self.settings.seed, count))
        try:
            outcomes = await asyncio.gather(*(self._item(claim, item_id, item) for item_id, item in items))
        except Exception:
            broken = traceback.format_exc(limit=-6)
            return self._reached(_task_verdict(claim, Status.ERROR, broken, (), start))
        counted = [outcome for outcome in outcomes if outcome[1] is not Outcome.TRANSPORT]
        status = Status.PASSED if counted else Status.INCONCLUSIVE
        reason = "" if counted else "no item was answered"
        return self._reached(_task_verdict(claim, status, reason, outcomes, start))

    async def _item(self, claim: Task, item_id: str, item: Item) -> tuple[str, Outcome, str]:
        chat = Chat(self, item_id, "streamed")
        with notebook():
            try:
                answer = await claim.ask(chat, item)
            except Inconclusive:
                return item_id, Outcome.TRANSPORT, chat.replies[-1].id if chat.replies else ""
            return item_id, claim.score(item, _checked(answer)), answer.last.id

    # --- the session that chats talk through ------------------------------------------------------------------------

    async def exchange(
        self,
        case: str,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None,
        *,
        headers: Mapping[str, str],
        hostile: bool,
        cut_after: int | None,
        shared: bool,
    ) -> Reply:
        """Sends one request and returns its last attempt; see `Session`."""
        data = body if isinstance(body, bytes) else orjson.dumps(body) if body is not None else b""
        digest = hashlib.sha256(f"{method} {path}\0".encode() + data).hexdigest()
        if shared:
            if digest not in self._shared:
                self._shared[digest] = asyncio.ensure_future(
                    self._attempts("shared", method, path, data, digest, headers, hostile, cut_after)
                )
            reply = await asyncio.shield(self._shared[digest])
        else:
            reply = await self._attempts(case, method, path, data, digest, headers, hostile, cut_after)
        belongs_to(reply.id)
        return reply

    async def _attempts(
        self,
        case: str,
        method: str,
        path: str,
        data: bytes,
        digest: str,
        headers: Mapping[str, str],
        hostile: bool,
        cut_after: int | None,
    ) -> Reply:
        self._occurrences[case, digest] += 1
        occurrence = self._occurrences[case, digest]
        extra = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"} if data else {}
        causes: Counter[str] = Counter()
        for attempt in itertools.count(1):
            id = exchange_id(f"{case}\0{method} {path}", data, occurrence, attempt)
            stored = self.journal.get(id) if self.journal else None
            if stored is not None and stored.answered:
                exchange = stored
            else:
                exchange = new_exchange(
                    id, case, method, self.deployment.base_url + path, data, attempt=attempt, hostile=hostile
                )
                await self._send(exchange, {**extra, **headers}, cut_after)
            reply = await self._counted(exchange)
            cause, most = _cause(exchange)
            causes[cause] += 1
            if causes[cause] >= most:
                return reply
            if stored is None:
                await asyncio.sleep(_pause(exchange))
        raise AssertionError("unreachable")

    async def _send(self, exchange: Exchange, headers: Mapping[str, str], cut_after: int | None) -> None:
        async with self.limiter.slot():
            self._within_budget()
            await self.wire.send(exchange, headers, cut_after=cut_after)
        if exchange.status in (429, 503):
            self.limiter.too_much()
        elif exchange.answered:
            self.limiter.went_well()
        if exchange.first_byte_seconds is not None and len(self.first_bytes) < 1000:
            self.first_bytes.append(exchange.first_byte_seconds)
        await self._record(exchange)

    async def client_exchange(self, case: str, body: dict[str, Any]) -> tuple[Reply, ClientReading]:
        """Has the official client send one request; never taken from the disk, since its reading is the point."""
        # 0.7 s of importing, which only this lane needs; in a thread, so that the other conversations go on.
        read_with_client = (await asyncio.to_thread(import_module, "kimi_eval.client")).read_with_client

        data = orjson.dumps(body)
        exchange = new_exchange(
            exchange_id(f"{case}\0client", data, 1, 1),
            case,
            "POST",
            f"{self.deployment.base_url}/chat/completions",
            data,
        )
        exchange.lane = Lane.CLIENT
        async with self.limiter.slot():
            self._within_budget()
            reading = await read_with_client(self.wire, exchange, body)
        await self._record(exchange)
        reply = await self._counted(exchange)
        belongs_to(reply.id)
        return reply, reading

    async def _counted(self, exchange: Exchange) -> Reply:
        """Meters one attempt and holds the invariants against it; a long one in a thread, to keep our clock right."""
        reply = Reply(exchange)
        if sum(len(data) for _, data in exchange.chunks) < _SMALL:
            self.invariants.see(reply)
        else:
            await asyncio.to_thread(self.invariants.see, reply)
        self.meter.add(reply)
        self.on_exchange(exchange)
        return reply

    def _within_budget(self) -> None:
        budget = self.settings.budget
        spent = self.meter.usd(self.deployment)
        if budget.tokens is not None and self.meter.tokens >= budget.tokens:
            self.stopped = f"the budget of {budget.tokens:,} tokens is used up"
        elif budget.usd is not None and spent is not None and spent >= budget.usd:
            self.stopped = f"the budget of ${budget.usd:.2f} is used up"
        elif budget.seconds is not None and time.monotonic() - self._started >= budget.seconds:
            self.stopped = f"the {budget.seconds / 60:g} minutes are over"
        if self.stopped:
            raise OutOfBudget(f"not asked: {self.stopped}")

    async def _record(self, exchange: Exchange) -> None:
        if self.journal is None:
            return
        if len(exchange.body) + sum(len(data) for _, data in exchange.chunks) < _SMALL:
            self.journal.add(exchange)
        else:
            await asyncio.to_thread(self.journal.add, exchange)


@contextlib.contextmanager
def _rare_collection() -> Iterator[None]:
    """Lets the garbage collector look seldom: a run makes many objects that stay, which it would scan in vain."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _cause(exchange: Exchange) -> tuple[str, int]:
    """Why the request may be sent again, and how many attempts may end for that reason. Only transport causes count."""
    status = exchange.status
    if exchange.failure in _ATTEMPTS:
        return exchange.failure, _ATTEMPTS[exchange.failure]
    if status in _TRANSPORT_STATUS:
        return str(status), 6 if status == 429 else 3
    if status is not None and status >= 500 and not exchange.hostile:
        return "5xx", 2
    return "", 1


def _pause(exchange: Exchange) -> float:
    """Seconds before the next attempt: what the deployment asks for, or exponential with jitter."""
    asked = exchange.header("retry-after")
    if asked is not None:
        with contextlib.suppress(ValueError):
            return min(_LONGEST_PAUSE, max(0.0, float(asked)))
    return min(30.0, 0.5 * 2.0 ** (exchange.attempt - 1)) * random.uniform(0.75, 1.25)


def _bounded(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    if len(findings) <= _MOST_FINDINGS:
        return tuple(findings)
    left_out = len(findings) - _MOST_FINDINGS
    return (*findings[:_MOST_FINDINGS], Finding("more", "nothing", f"{left_out} more findings of this kind"))


def _checked(answer: Answer) -> Answer:
    if not answer.replies:
        raise ValueError("a task asked nothing")
    return answer


def _task_verdict(
    claim: Task, status: Status, reason: str, outcomes: Sequence[tuple[str, Outcome, str]], start: float
) -> Verdict:
    counted = [outcome for _, outcome, _ in outcomes if outcome is not Outcome.TRANSPORT]
    mix: defaultdict[str, int] = defaultdict(int)
    for _, outcome, _ in outcomes:
        mix[outcome] += 1
    return Verdict(
        id=claim.id,
        variant="",
        title=claim.title,
        level=claim.level,
        contract=claim.contract,
        status=status,
        spec=claim.spec,
        reason=reason,
        observed=", ".join(f"{mix[word]} {word}" for word in Outcome if mix[word]),
        rests_on_model=True,
        exchanges=tuple(exchange for _, outcome, exchange in outcomes if exchange and outcome != Outcome.CORRECT),
        estimate=share(counted.count(Outcome.CORRECT), len(counted)) if counted else None,
        trials=len(outcomes),
        seconds=round(time.perf_counter() - start, 3),
        outcomes=tuple((item, str(outcome), exchange) for item, outcome, exchange in outcomes),
    )


async def _at_most(workers: int, jobs: Sequence[Job]) -> None:
    """Runs the jobs in order, so many at once."""
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:
            await job()

    async with asyncio.TaskGroup() as group:
        for _ in range(min(workers, len(jobs))):
            group.create_task(work())
