"""Verdict: the answer to one check, with what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from kimi_eval.estimate import Estimate

_LONGEST_TEXT = 400  # characters of a value inside a finding; the whole value stands in the exchange


class Status(StrEnum):
    """What became of a check; each word has one meaning (README, "How to read a verdict")."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not_applicable"
    ERROR = "error"


class Level(StrEnum):
    """How much a claim weighs: MUST breaks users, SHOULD surprises them, OBSERVE never gates."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    OBSERVE = "OBSERVE"


class Contract(StrEnum):
    """Which promise a claim belongs to; the two are scored apart so that a plain engine can conform to the core."""

    CORE = "core"
    MOONSHOT = "moonshot"


@dataclass(frozen=True, slots=True)
class Finding:
    """Where a reply departs from the claim: the place, what was expected there, and what came."""

    where: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, got {self.actual}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one check in one variant.

    ``trials`` counts the answers it rests on, ``seconds`` is wall time, ``exchanges`` are the ids of the recorded
    exchanges, those that show a finding first. ``reason`` explains every status other than passed and failed.
    """

    id: str
    variant: str
    title: str
    level: Level
    contract: Contract
    status: Status
    spec: str
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    observed: str = ""
    rests_on_model: bool = False
    exchanges: tuple[str, ...] = ()
    estimate: Estimate | None = None
    trials: int = 0
    seconds: float = 0.0
    waiver: str | None = None
    outcomes: tuple[tuple[str, str, str], ...] = ()  # of a task: (item id, outcome, exchange id)

    @property
    def address(self) -> str:
        """The id with its variant, as pytest and `explain` spell it."""
        return f"{self.id}[{self.variant}]" if self.variant else self.id

    @property
    def area(self) -> str:
        """The first part of the id: the suite it belongs to."""
        return self.id.split("/", 1)[0]

    def to_json(self) -> dict[str, Any]:
        """A plain dict in which every enum is its word."""
        return {key: str(value) if isinstance(value, StrEnum) else value for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Verdict:
        """The inverse of `to_json`. Raises KeyError or ValueError on a damaged record."""
        return cls(
            id=data["id"],
            variant=data["variant"],
            title=data["title"],
            level=Level(data["level"]),
            contract=Contract(data["contract"]),
            status=Status(data["status"]),
            spec=data["spec"],
            findings=tuple(Finding(**finding) for finding in data["findings"]),
            reason=data["reason"],
            observed=data["observed"],
            rests_on_model=data["rests_on_model"],
            exchanges=tuple(data["exchanges"]),
            estimate=Estimate(**data["estimate"]) if data["estimate"] else None,
            trials=data["trials"],
            seconds=data["seconds"],
            waiver=data["waiver"],
            outcomes=tuple((item, outcome, exchange) for item, outcome, exchange in data["outcomes"]),
        )


def shown(value: object) -> str:
    """The repr of a value, cut in the middle when it is long, for a finding."""
    text = repr(value)
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]} … {text[-half:]} ({len(text):,} characters)"


def addresses(verdicts: Iterable[Verdict], status: Status) -> list[str]:
    """The addresses of the verdicts with that status, in order."""
    return [verdict.address for verdict in verdicts if verdict.status is status]
