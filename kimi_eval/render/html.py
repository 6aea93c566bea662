"""HTML scorecard: one self-contained page without scripts or requests, for a browser of any size or for paper."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from kimi_eval.render._arrangement import (
    CONTRACTS,
    KINDS,
    RESTS_ON_MODEL,
    RUN_DIR,
    SIMULATED,
    WORDS,
    Arrangement,
    Row,
    client_sentence,
    commands,
    kind,
    mix,
)
from kimi_eval.render._text import count, cut, dollars, duration, spans, visible
from kimi_eval.scorecard import Scorecard
from kimi_eval.verdict import Verdict

FILE = "scorecard.html"

_LONGEST_VALUE = 20_000  # characters; the whole value stands in the exchange
_MOST_ITEMS = 300  # of a task's items that are not correct
_OUTCOMES = ("correct", "wrong", "unparsed", "truncated", "empty", "degenerate", "refused", "transport")
_MATRIX = ("passed", "failed", "inconclusive", "not_applicable", "error", "observed")


def render(card: Scorecard, *, links: bool = True, directory: str = RUN_DIR) -> str:
    """The page. With ``links`` an exchange id leads to ``exchanges/ID.gz`` beside the page."""
    view = Arrangement(card)
    anchors = _anchors(card.verdicts)
    page = _template().render(
        view=view,
        card=card,
        links=links,
        directory=directory,
        why=[_why(view, anchors, reason) for reason in card.why],
        anchor=lambda verdict: anchors[verdict.address],
        first=lambda row, kind_: anchors[_first(view, row, kind_).address],
    )
    return page.strip() + "\n"


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "address": _address,
        "dollars": dollars,
        "duration": duration,
        "exchange_path": _exchange_path,
        "outcome_class": lambda outcome: outcome if outcome in _OUTCOMES else "other",
        "prose": _prose,
    }
    environment.globals |= {
        "CONTRACTS": CONTRACTS,
        "KINDS": KINDS,
        "MATRIX": _MATRIX,
        "MOST_ITEMS": _MOST_ITEMS,
        "RESTS_ON_MODEL": RESTS_ON_MODEL,
        "SIMULATED": SIMULATED,
        "WORDS": WORDS,
        "client_sentence": client_sentence,
        "commands": commands,
        "count": count,
        "kind": kind,
        "mix": mix,
    }
    return environment.get_template("scorecard.html.jinja")


def _finalize(value: Any) -> Any:
    """Makes every value that the page prints visible before Jinja escapes it."""
    return value if isinstance(value, (Markup, int)) else cut(visible(str(value)), _LONGEST_VALUE)


def _prose(text: str) -> Markup:
    """A sentence whose parts between backticks are code."""
    parts = (
        Markup("<code>{}</code>").format(part) if code else escape(part)
        for code, part in spans(cut(visible(text), _LONGEST_VALUE))
    )
    return Markup("").join(parts)


def _address(text: str) -> Markup:
    """An address that breaks between its parts where a line is too short for it."""
    return Markup("<wbr>").join(re.split(r"(?<=[/_])(?=.)|(?=\[)", visible(text)))


def _why(view: Arrangement, anchors: dict[str, str], reason: str) -> Markup:
    """A reason for the outcome, in which every address leads to its verdict."""
    named = {each.address for section in (view.broken, *view.sections) for each in section.verdicts} & set(anchors)
    if not named:
        return _prose(reason)
    longest_first = sorted(named, key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", reason)
    link = Markup('<a href="#{}">{}</a>')
    return Markup("").join(
        link.format(anchors[part], _address(part)) if part in named else _prose(part) for part in parts
    )


def _exchange_path(id_: str) -> str:
    return f"exchanges/{quote(visible(id_), safe='')}.gz"


def _anchors(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """A fragment for every address: readable, valid, and not the same for two."""
    anchors: dict[str, str] = {}
    taken: set[str] = set()
    for verdict in verdicts:
        base = "v-" + re.sub(r"[^A-Za-z0-9_]+", "-", verdict.address).strip("-")
        anchor, number = base, 2
        while anchor in taken:
            anchor, number = f"{base}-{number}", number + 1
        taken.add(anchor)
        anchors[verdict.address] = anchor
    return anchors


def _first(view: Arrangement, row: Row, kind_: str) -> Verdict:
    return next(
        verdict
        for verdict in view.card.verdicts
        if (verdict.contract, verdict.area) == (row.contract, row.area) and kind(verdict) == kind_
    )
