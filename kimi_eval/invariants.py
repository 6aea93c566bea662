"""InvariantJudge: holds every invariant against every exchange of a run as it is recorded."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kimi_eval.claims import Invariant
from kimi_eval.expectations import Stop, belongs_to, notebook
from kimi_eval.reply import Reply
from kimi_eval.transcript import Failure
from kimi_eval.verdict import Finding, Status, Verdict

_MOST_FINDINGS = 20
_MOST_EXCHANGES = 20


@dataclass(slots=True)
class _Tally:
    findings: list[Finding] = field(default_factory=list)
    shown_by: list[str] = field(default_factory=list)
    judged: int = 0
    offending: int = 0
    broken: str = ""
    seconds: float = 0.0


class InvariantJudge:
    """Keeps the findings of each invariant; memory is bounded however many exchanges there are."""

    def __init__(self, invariants: Sequence[Invariant], excluded: Callable[[Invariant], str | None]) -> None:
        self._tallies = [(claim, _Tally()) for claim in invariants]
        self._excluded = excluded
        self._one_at_a_time = threading.Lock()

    def see(self, reply: Reply) -> None:
        """Judges one exchange by every invariant that is about its kind. May be called from any thread."""
        if not self._tallies or not reply.exchange.url.endswith("/chat/completions"):
            return
        kinds = _kinds(reply)
        with self._one_at_a_time:
            for claim, tally in self._tallies:
                if claim.over in kinds and not self._excluded(claim):
                    self._judge(claim, tally, reply)

    @staticmethod
    def _judge(claim: Invariant, tally: _Tally, reply: Reply) -> None:
        start = time.perf_counter()
        with notebook() as notes:
            belongs_to(reply.id)
            try:
                claim.holds(reply)
            except Stop:
                pass
            except Exception:
                tally.broken = tally.broken or f"exchange {reply.id}: {traceback.format_exc(limit=-4)}"
        tally.judged += 1
        tally.seconds += time.perf_counter() - start
        if notes.findings:
            tally.offending += 1
            tally.findings.extend(notes.findings[: _MOST_FINDINGS - len(tally.findings)])
            if len(tally.shown_by) < _MOST_EXCHANGES:
                tally.shown_by.append(reply.id)

    def verdicts(self) -> Iterator[Verdict]:
        """The verdict of each invariant over all that was seen."""
        for claim, tally in self._tallies:
            reason = self._excluded(claim) or ""
            if reason:
                status = Status.NOT_APPLICABLE
            elif tally.broken:
                status, reason = Status.ERROR, tally.broken
            elif tally.offending:
                status, reason = Status.FAILED, f"{tally.offending} of {tally.judged} {claim.over}"
            elif tally.judged:
                status = Status.PASSED
            else:
                status, reason = Status.NOT_APPLICABLE, f"this run has no {claim.over} to judge"
            yield Verdict(
                id=claim.id,
                variant="",
                title=claim.title,
                level=claim.level,
                contract=claim.contract,
                status=status,
                spec=claim.spec,
                findings=tuple(tally.findings),
                reason=reason,
                exchanges=tuple(tally.shown_by),
                trials=tally.judged,
                seconds=round(tally.seconds, 3),
            )


def _kinds(reply: Reply) -> frozenset[str]:
    """Which kinds of exchange this one is; see `invariant`."""
    exchange = reply.exchange
    kinds = {"exchanges"}
    if exchange.cut_by_us or exchange.status is None:
        return frozenset(kinds)
    complete = exchange.failure is Failure.NONE
    if reply.ok and complete:
        kinds.add("replies")
    # A stream that said all it had to say and then never ended is judged as a stream: that is its fault.
    if reply.ok and reply.streamed and (complete or reply.finish_reason is not None):
        kinds.add("streams")
    if exchange.status >= 400 and complete:
        kinds.add("errors")
    return frozenset(kinds)
