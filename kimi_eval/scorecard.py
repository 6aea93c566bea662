"""Scorecard: the pure fold of verdicts into an outcome; the same verdicts always give the same card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kimi_eval.deployment import Fact
from kimi_eval.problem import NOT_MEASURED, OUR_BUG
from kimi_eval.verdict import Contract, Level, Status, Verdict

SCHEMA = "kimi-eval/scorecard/1"

CERTIFIED, NOT_CERTIFIED, UNMEASURED = "certified", "not_certified", "not_measured"


@dataclass(frozen=True, slots=True)
class ClientCheck:
    """How well our own client kept up; timings of a run whose client lagged are not to be trusted.

    Lags are milliseconds by which the event loop woke late, ``cpu_share`` is CPU seconds over wall seconds of the
    whole process, ``in_flight`` the most requests that were really open at once.
    """

    loop_lag_p99_ms: float = 0.0
    loop_lag_max_ms: float = 0.0
    cpu_share: float = 0.0
    in_flight: int = 0
    attempts: int = 0
    trusted: bool = True


@dataclass(frozen=True, slots=True)
class Totals:
    """What the run cost. Tokens are those that the deployment counted; dollars are None where no price is known."""

    requests: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    usd: float | None = None
    seconds: float = 0.0
    verdicts: Mapping[str, int] = field(default_factory=dict)  # by status


@dataclass(frozen=True, slots=True)
class Run:
    """How the run was asked for, enough to repeat it."""

    id: str
    started: str  # ISO 8601, UTC
    seed: str
    effort: str
    tier: str
    suites: tuple[str, ...]
    whole: bool  # whether every check of the tier was asked
    command: str
    interrupted: str = ""  # why it ended early, or nothing


@dataclass(frozen=True, slots=True)
class Scorecard:
    """What one run says about one deployment."""

    outcome: str
    level: str | None
    why: tuple[str, ...]
    simulated: bool
    run: Run
    base_url: str
    model: str
    profile: str
    recognised_by: str
    subject: str
    facts: tuple[Fact, ...]
    suite_version: str
    verdicts: tuple[Verdict, ...]
    totals: Totals
    client: ClientCheck

    @property
    def exit_code(self) -> int:
        """0 nothing failed, 1 a claim failed, 3 our bug, 4 not measured. A certified deployment is always 0."""
        statuses = Counter(verdict.status for verdict in gating(self.verdicts))
        if any(verdict.status is Status.ERROR for verdict in self.verdicts):
            return OUR_BUG
        if statuses[Status.FAILED]:
            return 1
        measured = any(verdict.status is Status.PASSED for verdict in self.verdicts)
        return NOT_MEASURED if statuses[Status.INCONCLUSIVE] or self.run.interrupted or not measured else 0

    def to_json(self) -> dict[str, Any]:
        """The content of ``scorecard.json``."""
        return {
            "schema": SCHEMA,
            "simulated": self.simulated,
            "outcome": self.outcome,
            "level": self.level,
            "why": list(self.why),
            "run": asdict(self.run),
            "deployment": {
                "base_url": self.base_url,
                "model": self.model,
                "profile": self.profile,
                "recognised_by": self.recognised_by,
                "subject": self.subject,
                "facts": [asdict(fact) for fact in self.facts],
            },
            "suite_version": self.suite_version,
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "totals": asdict(self.totals),
            "client": asdict(self.client),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scorecard:
        """The inverse of `to_json`. Raises ValueError on another schema, KeyError on a damaged card."""
        if data.get("schema") != SCHEMA:
            raise ValueError(f"a scorecard of schema {data.get('schema')!r}; this version reads {SCHEMA!r}")
        deployment, run = data["deployment"], data["run"]
        return cls(
            outcome=data["outcome"],
            level=data["level"],
            why=tuple(data["why"]),
            simulated=data["simulated"],
            run=Run(**{**run, "suites": tuple(run["suites"])}),
            base_url=deployment["base_url"],
            model=deployment["model"],
            profile=deployment["profile"],
            recognised_by=deployment["recognised_by"],
            subject=deployment["subject"],
            facts=tuple(Fact(**fact) for fact in deployment["facts"]),
            suite_version=data["suite_version"],
            verdicts=tuple(Verdict.from_json(verdict) for verdict in data["verdicts"]),
            totals=Totals(**data["totals"]),
            client=ClientCheck(**data["client"]),
        )


def gating(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts that decide: MUST claims. SHOULD claims count in the card, OBSERVE claims never do."""
    return [verdict for verdict in verdicts if verdict.level is Level.MUST]


def judge(verdicts: Sequence[Verdict], *, whole: bool, interrupted: str) -> tuple[str, str | None, tuple[str, ...]]:
    """The outcome, the level reached, and why, in sentences.

    A deployment is certified when every MUST claim that applies to it passed, each was asked, and none of our checks
    broke. The level is ``core`` or ``core + moonshot``, by the contracts that had claims to judge.
    """
    must = gating(verdicts)
    failed = [verdict for verdict in must if verdict.status is Status.FAILED]
    unknown = [verdict for verdict in must if verdict.status is Status.INCONCLUSIVE]
    broken = [verdict for verdict in verdicts if verdict.status is Status.ERROR]
    passed = [verdict for verdict in must if verdict.status is Status.PASSED]
    why: list[str] = []
    if failed:
        why.append(f"{_count(failed, 'MUST claim')} failed: {_names(failed)}.")
    if broken:
        why.append(f"{_count(broken, 'check')} of ours broke, which is our bug: {_names(broken)}.")
    if unknown:
        why.append(f"{_count(unknown, 'MUST claim')} could not be judged: {_names(unknown)}.")
    if interrupted:
        why.append(f"The run ended early ({interrupted}).")
    if not passed and not failed:
        why.append("No MUST claim was answered.")
    if failed:
        return NOT_CERTIFIED, None, tuple(why)
    if why:
        return UNMEASURED, None, tuple(why)
    if not whole:
        return UNMEASURED, None, ("Everything asked for passed, but only a part of the checks was asked for.",)
    moonshot = any(verdict.contract is Contract.MOONSHOT for verdict in passed)
    level = "core + moonshot" if moonshot else "core"
    return CERTIFIED, level, (f"Every MUST claim that applies passed ({len(passed)}).",)


def _count(verdicts: Sequence[Verdict], noun: str) -> str:
    return f"{len(verdicts)} {noun}{'s' if len(verdicts) != 1 else ''}"


def _names(verdicts: Sequence[Verdict], most: int = 5) -> str:
    names = [verdict.address for verdict in verdicts]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
