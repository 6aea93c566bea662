"""Check: one claim about a deployment. Invariant: one claim about every exchange of a run."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kimi_eval.verdict import Contract, Level

if TYPE_CHECKING:
    from kimi_eval.chat import Chat
    from kimi_eval.reply import Reply

MUST, SHOULD, OBSERVE = Level.MUST, Level.SHOULD, Level.OBSERVE
CORE, MOONSHOT = Contract.CORE, Contract.MOONSHOT

LANES = ("streamed", "whole")


def in_both_lanes(*kinds: str) -> tuple[str, ...]:
    """The variants of a check that asks several kinds of thing, each streamed and whole."""
    return tuple(f"{kind}-{lane}" for kind in kinds for lane in LANES)


_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Check:
    """One claim: its title says what holds, ``hold`` has the conversation that shows it.

    ``variants`` are the ways in which the same claim is asked; the empty string stands for a single unnamed way.
    ``needs`` are the declared capabilities without which the claim does not apply. ``alone`` asks it after the crowd,
    with nothing else in flight. ``rests_on_model`` says that an inattentive model, too, can break the claim.
    """

    name: str
    suite: str  # the file's place under suites/, without `test_` and suffix: "tools/tool_choice"
    title: str
    level: Level
    contract: Contract
    spec: str
    variants: tuple[str, ...]
    needs: tuple[str, ...]
    alone: bool
    rests_on_model: bool
    hold: Callable[[Chat], Awaitable[None]]

    @property
    def id(self) -> str:
        """The address without a variant."""
        return f"{self.suite}/{self.name}"


@dataclass(frozen=True, slots=True)
class Invariant:
    """One claim about every exchange of the run: a pure function of a reply, which costs no request.

    ``over`` says which exchanges are judged: ``replies`` (status 200 to a chat request), ``streams`` (those that were
    asked to be streamed), ``errors`` (status 4xx or 5xx), or ``exchanges`` (all).
    """

    name: str
    suite: str
    title: str
    level: Level
    contract: Contract
    spec: str
    over: str
    needs: tuple[str, ...]
    holds: Callable[[Reply], None]

    @property
    def id(self) -> str:
        """The address; an invariant has no variants."""
        return f"{self.suite}/{self.name}"


def check(
    title: str,
    level: Level,
    *,
    spec: str,
    variants: tuple[str, ...] = LANES,
    contract: Contract = CORE,
    needs: tuple[str, ...] = (),
    alone: bool = False,
    rests_on_model: bool = False,
) -> Callable[[Callable[[Chat], Awaitable[None]]], Check]:
    """Makes a Check of the function below. ``spec`` names the source of the rule.

    Raises ValueError where the title is no sentence or the name no address.
    """

    def make(hold: Callable[[Chat], Awaitable[None]]) -> Check:
        name, suite = _address(hold, title)
        return Check(name, suite, title, level, contract, spec, variants, needs, alone, rests_on_model, hold)

    return make


def invariant(
    title: str,
    level: Level,
    *,
    spec: str,
    over: str = "replies",
    contract: Contract = CORE,
    needs: tuple[str, ...] = (),
) -> Callable[[Callable[[Reply], None]], Invariant]:
    """Makes an Invariant of the function below. Raises ValueError as `check` does, and on an unknown ``over``."""

    def make(holds: Callable[[Reply], None]) -> Invariant:
        name, suite = _address(holds, title)
        if over not in ("replies", "streams", "errors", "exchanges"):
            raise ValueError(f"{suite}/{name}: over={over!r} is not replies, streams, errors or exchanges")
        return Invariant(name, suite, title, level, contract, spec, over, needs, holds)

    return make


def _address(function: Callable[..., object], title: str) -> tuple[str, str]:
    name = function.__name__
    suite = suite_of(Path(function.__code__.co_filename))
    if not _NAME.match(name):
        raise ValueError(f"{suite}/{name}: a check is named in lower_case_with_underscores")
    if not title.endswith("."):
        raise ValueError(f"{suite}/{name}: the title {title!r} is no sentence; say what holds, with a full stop")
    return name, suite


def suite_of(file: Path) -> str:
    """The suite that a file is: its path below the nearest folder ``suites``, without ``test_`` and suffix.

    A file outside any such folder is a suite of its own name.
    """
    topic = file.stem.removeprefix("test_")
    parts = file.parent.parts
    if "suites" not in parts:
        return topic
    last = len(parts) - 1 - parts[::-1].index("suites")
    return "/".join((*parts[last + 1 :], topic))
