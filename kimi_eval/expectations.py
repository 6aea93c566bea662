"""Expectation: what a check says about a value; one that does not hold leaves a Finding and the check goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from kimi_eval.verdict import Finding, shown


class Stop(Exception):
    """Ends a check early; not an error. The runner reads which kind it is."""


class Unmet(Stop):
    """A requirement does not hold, its finding is recorded, and the rest of the check would make no sense."""


class Inconclusive(Stop):
    """There is no answer to judge, or it cannot tell. The text says why."""


class NotApplicable(Stop):
    """The profile or the declared capabilities exclude the claim. The text says which."""


@dataclass(slots=True)
class Notebook:
    """What one run of a check has noted so far: findings, the exchanges that show them, and an observation."""

    findings: list[Finding]
    shown_by: list[str]
    observed: str = ""
    exchange: str | None = None  # the exchange that findings belong to until the next one is asked

    def add(self, finding: Finding, exchange: str | None = None) -> None:
        """Notes a finding, and which exchange shows it."""
        self.findings.append(finding)
        by = exchange or self.exchange
        if by and by not in self.shown_by:
            self.shown_by.append(by)


_open: ContextVar[Notebook] = ContextVar("kimi_eval_notebook")


@contextmanager
def notebook() -> Iterator[Notebook]:
    """Collects the findings of the code inside it, tasks it starts included."""
    notes = Notebook([], [])
    token = _open.set(notes)
    try:
        yield notes
    finally:
        _open.reset(token)


def note(where: str, expected: str, actual: str, exchange: str | None = None) -> None:
    """Leaves a finding in the words given."""
    _open.get().add(Finding(where, expected, actual), exchange)


def observe(text: str) -> None:
    """Records which way a deployment goes where sources disagree. Never gates."""
    notes = _open.get()
    notes.observed = f"{notes.observed}; {text}" if notes.observed else text


def belongs_to(exchange: str) -> None:
    """Findings from here on are shown by this exchange."""
    notes = _open.get(None)
    if notes is not None:
        notes.exchange = exchange


@dataclass(frozen=True, slots=True)
class Expectation:
    """A value with the place it stands at. Every method tells whether it holds and leaves a finding where not."""

    value: Any
    where: str

    def _judge(self, holds: bool, expected: str, actual: str | None = None) -> bool:
        if not holds:
            note(self.where, expected, shown(self.value) if actual is None else actual)
        return holds

    def equals(self, expected: object) -> bool:
        """The value is that, and of the same kind (True is not 1)."""
        same = self.value == expected and isinstance(self.value, bool) == isinstance(expected, bool)
        return self._judge(same, shown(expected))

    def differs_from(self, other: object) -> bool:
        """The value is not that."""
        return self._judge(self.value != other, f"anything but {shown(other)}")

    def is_in(self, allowed: Collection[object]) -> bool:
        """The value is one of those."""
        return self._judge(self.value in allowed, "one of " + ", ".join(shown(item) for item in allowed))

    def is_a(self, kind: type | tuple[type, ...], name: str) -> bool:
        """The value is of that type, which ``name`` says in JSON's words. A boolean is not a number."""
        right = isinstance(self.value, kind) and (kind is bool or not isinstance(self.value, bool))
        return self._judge(right, name)

    def is_text(self) -> bool:
        """The value is a string with something in it other than white space."""
        return self._judge(isinstance(self.value, str) and bool(self.value.strip()), "a non-empty string")

    def is_empty(self) -> bool:
        """The value is absent, null, or has no items."""
        return self._judge(not self.value, "nothing")

    def is_true(self, expected: str, actual: str | None = None) -> bool:
        """The value is true; ``expected`` says what that means."""
        return self._judge(bool(self.value), expected, actual if actual is not None else shown(self.value))

    def at_least(self, bound: float) -> bool:
        """The value is a number not below the bound."""
        return self._judge(_is_number(self.value) and self.value >= bound, f"at least {bound:,}")

    def at_most(self, bound: float) -> bool:
        """The value is a number not above the bound."""
        return self._judge(_is_number(self.value) and self.value <= bound, f"at most {bound:,}")

    def has_length(self, length: int) -> bool:
        """The value has exactly that many items."""
        actual = len(self.value) if isinstance(self.value, (Sequence, dict)) else None
        return self._judge(actual == length, f"{length} items", f"{actual} items: {shown(self.value)}")

    def contains(self, part: str) -> bool:
        """The text contains that part."""
        return self._judge(isinstance(self.value, str) and part in self.value, f"text with {shown(part)} in it")

    def lacks(self, part: str) -> bool:
        """The text does not contain that part."""
        return self._judge(isinstance(self.value, str) and part not in self.value, f"text without {shown(part)}")

    def matches(self, schema: dict[str, Any]) -> bool:
        """The value is valid against the JSON Schema (Draft 2020-12)."""
        import jsonschema  # 0.2 s, and few checks need it

        validator = jsonschema.Draft202012Validator(schema)
        problems = sorted(validator.iter_errors(self.value), key=lambda problem: list(problem.absolute_path))
        for problem in problems[:5]:
            path = "".join(f"[{part!r}]" for part in problem.absolute_path)
            note(f"{self.where}{path}", "a value valid against the schema", problem.message[:300])
        return not problems

    def satisfies(self, holds: Callable[[Any], bool], expected: str) -> bool:
        """The value has a property that ``expected`` describes."""
        return self._judge(holds(self.value), expected)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def expect(value: object, where: str) -> Expectation:
    """Says something about a value; a claim that does not hold leaves a finding, and the check goes on."""
    return Expectation(value, where)


def require(holds: bool) -> None:
    """Stops the check where an expectation that the rest stands on did not hold: ``require(expect(…).equals(…))``."""
    if not holds:
        raise Unmet
