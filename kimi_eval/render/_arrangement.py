"""Arrangement: a scorecard sorted for a reader who wants to know first what is broken."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from kimi_eval.render._text import count, visible
from kimi_eval.scorecard import CERTIFIED, NOT_CERTIFIED, UNMEASURED, Scorecard
from kimi_eval.verdict import Contract, Level, Status, Verdict

SIMULATED = (
    "SIMULATED: this scorecard was made on kimi_eval's own simulated deployment. It says nothing about any model."
)
RESTS_ON_MODEL = "An inattentive model can break this, too."
RUN_DIR = "RUN_DIR"

# What became of a verdict, as a reader sees it: a claim that never gates is neither passed nor failed.
OBSERVED = "observed"
KINDS = ("failed", "error", "inconclusive", "passed", "observed", "not_applicable")
WORDS = {kind: kind.replace("_", " ") for kind in KINDS}
MARKS = {"failed": "✗", "error": "!", "inconclusive": "?", "passed": "✓", "observed": "○", "not_applicable": "–"}

CONTRACTS = {Contract.CORE: "Core contract", Contract.MOONSHOT: "Moonshot extensions"}
_ORDER = list(Level)


@dataclass(frozen=True, slots=True)
class Headline:
    """The outcome in one word, in one sentence, and what to do next."""

    kind: str  # lends its mark and colour
    word: str
    lead: str
    next: str


@dataclass(frozen=True, slots=True)
class Section:
    """Verdicts that need reading one by one, and what they have in common."""

    key: str
    kind: str
    title: str
    meaning: str
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the matrix: how many verdicts of an area became what."""

    contract: Contract
    area: str
    counts: Counter[str]


@dataclass(frozen=True)
class Arrangement:
    """The verdicts of a card in reading order; each list keeps the order of the card within it."""

    card: Scorecard

    @cached_property
    def headline(self) -> Headline:
        """What the reader learns before anything else."""
        return _headline(self.card, self.broken)

    @cached_property
    def broken(self) -> Section:
        """MUST claims that failed; shown even where there are none."""
        return Section(
            "broken",
            "failed",
            "Broken",
            "MUST claims that failed. Users of this deployment run into them.",
            self._of(Status.FAILED, Level.MUST),
        )

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """What else went wrong, the worst first; only sections that hold something."""
        sections = (
            Section(
                "surprising",
                "failed",
                "Surprising",
                "SHOULD claims that failed. They surprise users and do not decide the outcome.",
                self._of(Status.FAILED, Level.SHOULD),
            ),
            Section(
                "errors",
                "error",
                "Our bugs",
                "Checks of ours that broke. They say nothing about the deployment; please report them.",
                _by_level(self._of(Status.ERROR)),
            ),
            Section(
                "inconclusive",
                "inconclusive",
                "Not judged",
                "There was no answer to judge, or the numbers cannot tell. MUST claims among them block certification.",
                _by_level(self._of(Status.INCONCLUSIVE)),
            ),
        )
        return tuple(section for section in sections if section.verdicts)

    @cached_property
    def observations(self) -> tuple[Verdict, ...]:
        """OBSERVE claims that were answered, tasks aside."""
        return tuple(each for each in self.card.verdicts if kind(each) == OBSERVED and not is_task(each))

    @cached_property
    def not_applicable(self) -> tuple[tuple[str, tuple[Verdict, ...]], ...]:
        """The claims that do not apply, by reason."""
        groups: dict[str, list[Verdict]] = {}
        for verdict in self._of(Status.NOT_APPLICABLE):
            groups.setdefault(verdict.reason or "No reason was recorded.", []).append(verdict)
        return tuple((reason, tuple(verdicts)) for reason, verdicts in groups.items())

    @cached_property
    def tasks(self) -> tuple[Verdict, ...]:
        """The verdicts that rest on a rate over items."""
        return tuple(verdict for verdict in self.card.verdicts if is_task(verdict))

    @cached_property
    def passed(self) -> tuple[tuple[Row, tuple[Verdict, ...]], ...]:
        """The claims that hold, by contract and area."""
        groups = ((row, self._passed(row)) for row in self.rows)
        return tuple((row, verdicts) for row, verdicts in groups if verdicts)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The matrix: contracts apart, core first, areas in the order of the card."""
        rows: dict[tuple[Contract, str], Row] = {}
        for verdict in self.card.verdicts:
            place = (verdict.contract, verdict.area)
            row = rows.setdefault(place, Row(*place, Counter()))
            row.counts[kind(verdict)] += 1
        return tuple(sorted(rows.values(), key=lambda row: list(Contract).index(row.contract)))

    @cached_property
    def counts(self) -> Counter[str]:
        """How many verdicts became what."""
        return Counter(kind(verdict) for verdict in self.card.verdicts)

    @cached_property
    def tally(self) -> dict[str, str]:
        """The same in words, the worst first, without those that are none: ``5 failed (4 MUST)``."""
        words = {each: f"{self.counts[each]:,} {WORDS[each]}" for each in KINDS if self.counts[each]}
        if "failed" in words:
            words["failed"] += f" ({len(self.broken.verdicts):,} MUST)"
        return words

    def after(self, directory: str) -> str:
        """What to do next, and what the commands mean by the directory where the caller names none."""
        explained = directory == RUN_DIR and (self.broken.verdicts or self.sections)
        note = f"In the commands, `{RUN_DIR}` is the directory of this run." if explained else ""
        return " ".join(part for part in (self.headline.next, note) if part)

    def _of(self, status: Status, level: Level | None = None) -> tuple[Verdict, ...]:
        return tuple(
            verdict
            for verdict in self.card.verdicts
            if verdict.status is status and (level is None or verdict.level is level)
        )

    def _passed(self, row: Row) -> tuple[Verdict, ...]:
        return tuple(
            verdict
            for verdict in self.card.verdicts
            if kind(verdict) == "passed" and (verdict.contract, verdict.area) == (row.contract, row.area)
        )


def kind(verdict: Verdict) -> str:
    """The status, or ``observed`` for an answered claim that never gates."""
    answered = verdict.status in (Status.PASSED, Status.FAILED)
    return OBSERVED if answered and verdict.level is Level.OBSERVE else str(verdict.status)


def is_task(verdict: Verdict) -> bool:
    """Whether the verdict rests on a rate over items."""
    return verdict.estimate is not None or bool(verdict.outcomes)


def mix(verdict: Verdict) -> list[tuple[str, int]]:
    """The outcomes of a task's items with their numbers, correct first, then the most frequent."""
    numbers = Counter(str(outcome) for _, outcome, _ in verdict.outcomes)
    return sorted(numbers.items(), key=lambda pair: (pair[0] != "correct", -pair[1], pair[0]))


def commands(verdict: Verdict, directory: str) -> list[str]:
    """Shell commands that send the telling request again, and that explain the claim."""
    lines = []
    if verdict.exchanges:
        lines.append(_shell("kimi-eval", "replay", directory, verdict.exchanges[0], "--curl"))
    return [*lines, _shell("kimi-eval", "explain", verdict.address)]


def client_sentence(card: Scorecard) -> str:
    """Whether the timings of this card may be believed, and by what."""
    client = card.client
    measured = (
        f"Our event loop woke at most {client.loop_lag_p99_ms:,.1f} ms late 99 times in 100 "
        f"({client.loop_lag_max_ms:,.1f} ms at worst), used {client.cpu_share:.0%} of one CPU, and had up to "
        f"{count(client.in_flight, 'request')} open at once."
    )
    if client.trusted:
        return f"Our own client kept up; the timings may be believed. {measured}"
    if card.simulated:
        return f"Nothing here was timed: simulated answers take no time of their own. {measured}"
    return (
        "Our own client could not keep up, so do not believe any timing in this card; what passed and failed "
        f"is not affected. {measured} Run again on a quieter machine or with fewer requests at once."
    )


def _headline(card: Scorecard, broken: Section) -> Headline:
    if card.outcome == CERTIFIED:
        word = f"Certified: {card.level}" if card.level else "Certified"
        lead = "Every MUST claim that applies to this deployment holds."
        after = "It stands for the subject below only: a new engine, flag, driver or chip needs a new run."
        return Headline("passed", word, lead, after)
    if card.outcome == NOT_CERTIFIED:
        number = len(broken.verdicts)
        lead = f"{count(number, 'claim')} that users rely on {'is' if number == 1 else 'are'} broken."
        after = "Begin with the first one below: its command sends the telling request again."
        return Headline("failed", "Not certified", lead, after)
    if card.outcome == UNMEASURED:
        lead = "The run cannot tell: no MUST claim was seen to fail, but not every one was judged."
        ours = any(verdict.status is Status.ERROR for verdict in card.verdicts)
        return Headline("error" if ours else "inconclusive", "Not measured", lead, _after(card, ours))
    return Headline(OBSERVED, card.outcome.replace("_", " ").capitalize(), "", "")


def _after(card: Scorecard, ours: bool) -> str:
    if ours:
        return "Please report the checks that broke, with this card; the other verdicts stand."
    if card.run.whole or card.run.interrupted:
        return "Mend the cause, then repeat the run; its command stands at the end."
    return "Repeat the run without a selection of checks; its command stands at the end."


def _by_level(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    return tuple(sorted(verdicts, key=lambda verdict: _ORDER.index(verdict.level)))


def _shell(*words: str) -> str:
    return shlex.join([visible(word) for word in words])


def together(verdicts: Sequence[Verdict]) -> dict[str, list[str]]:
    """Ids with their variants, for a list that names many claims in little space."""
    variants: dict[str, list[str]] = {}
    for verdict in verdicts:
        variants.setdefault(verdict.id, []).append(verdict.variant)
    return variants
