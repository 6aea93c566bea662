"""Console scorecard: what is broken, on a terminal or in a build log of any width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from kimi_eval.render._arrangement import (
    CONTRACTS,
    MARKS,
    RESTS_ON_MODEL,
    RUN_DIR,
    SIMULATED,
    Arrangement,
    Section,
    client_sentence,
    commands,
    kind,
    mix,
    together,
)
from kimi_eval.render._text import count, cut, dollars, duration, one_line, visible
from kimi_eval.scorecard import Scorecard
from kimi_eval.verdict import Verdict

FILE = "scorecard.txt"

# The sixteen colours of the terminal's own theme, so that the card is as readable as everything else on it.
_STYLES = {
    "failed": "red",
    "error": "magenta",
    "inconclusive": "yellow",
    "passed": "green",
    "observed": "cyan",
    "not_applicable": "dim",
}
_LONGEST_VALUE = 1200  # characters; the whole value stands in the exchange
_MOST_EXCHANGES = 4
_MATRIX = {
    "passed": "passed",
    "failed": "failed",
    "inconclusive": "not judged",
    "not_applicable": "n/a",
    "error": "our bug",
    "observed": "observed",
}


def render(card: Scorecard, *, colour: bool = False, width: int = 80, directory: str = RUN_DIR) -> str:
    """The card within ``width`` columns; without colour it holds no escape at all. The claims that hold are counted."""
    view = Arrangement(card)
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as captured:
        for block in _blocks(view, directory):
            console.print(block)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().split("\n")) + "\n"


def _blocks(view: Arrangement, directory: str) -> Iterator[RenderableType]:
    yield from _top(view, directory)
    if view.broken.verdicts:
        yield from _section(view.broken, directory)
    for section in view.sections:
        yield from _section(section, directory)
    yield from _observations(view)
    yield from _not_applicable(view)
    yield from _areas(view)
    yield from _tasks(view)
    yield from _provenance(view.card)
    yield from _last(view)


def _top(view: Arrangement, directory: str) -> Iterator[RenderableType]:
    card, headline = view.card, view.headline
    if card.simulated:
        yield Text(SIMULATED, style="bold reverse yellow")
        yield ""
    yield Text(f"{MARKS[headline.kind]} {one_line(headline.word)}", style=f"bold {_STYLES[headline.kind]}")
    yield _indented(_prose(headline.lead))
    for reason in card.why:
        yield _listed("-", _prose(reason))
    if after := view.after(directory):
        yield _indented(_prose(after, style="dim"))
    yield ""
    about = f"{card.model} at {card.base_url}, profile {card.profile} (recognised by {card.recognised_by})"
    yield _indented(Text(one_line(about)))


def _section(section: Section, directory: str) -> Iterator[RenderableType]:
    yield _heading(f"{section.title} ({len(section.verdicts):,})", _STYLES[section.kind])
    yield _indented(Text(section.meaning, style="dim"))
    for verdict in section.verdicts:
        yield ""
        yield _listed(MARKS[section.kind], _prose(verdict.title, style="bold"), _STYLES[section.kind], indent=0)
        yield _indented(_told(verdict, directory))


def _told(verdict: Verdict, directory: str) -> RenderableType:
    parts: list[RenderableType] = [Text(one_line(verdict.address))]
    for place, finding in enumerate(verdict.findings):
        if place:
            parts.append("")
        lines = {"where": finding.where, "expected": finding.expected, "got": finding.actual}
        parts.append(_pairs((name, _value(value)) for name, value in lines.items()))
    if verdict.reason:
        parts.append(Text(cut(visible(verdict.reason.strip()), _LONGEST_VALUE)))
    if verdict.observed:
        parts.append(_pairs([("observed", _value(verdict.observed))]))
    if verdict.waiver:
        parts.append(_pairs([("waived", _value(verdict.waiver))]))
    if verdict.rests_on_model:
        parts.append(Text(RESTS_ON_MODEL, style="italic"))
    about = [("level", f"{verdict.level}, {CONTRACTS[verdict.contract].lower()}")]
    about += [("rate", str(verdict.estimate))] if verdict.estimate else []
    about += [("spec", one_line(verdict.spec))] if verdict.spec else []
    about += [("seen in", _exchanges(verdict))] if verdict.exchanges else []
    parts.append(_pairs((name, Text(value, style="dim")) for name, value in about))
    parts += [_listed("$", Text(command, style="cyan"), "dim", indent=0) for command in commands(verdict, directory)]
    return Group(*parts)


def _observations(view: Arrangement) -> Iterator[RenderableType]:
    if view.observations:
        yield _heading(f"Observed ({len(view.observations):,})", _STYLES["observed"])
        for verdict in view.observations:
            findings = "; ".join(str(finding) for finding in verdict.findings)
            yield _listed(MARKS["observed"], _prose(verdict.title), _STYLES["observed"])
            yield _indented(Group(_value(verdict.observed or findings or "nothing noted"), _address(verdict)), 4)


def _not_applicable(view: Arrangement) -> Iterator[RenderableType]:
    if view.not_applicable:
        yield _heading(f"Not applicable ({view.counts['not_applicable']:,})", "bold")
        for reason, verdicts in view.not_applicable:
            yield _listed(MARKS["not_applicable"], _prose(cut(reason, _LONGEST_VALUE)))
            for id_, variants in together(verdicts).items():
                named = ", ".join(variant for variant in variants if variant)
                yield _indented(Text(one_line(f"{id_}: {named}" if named else id_), style="dim"), 4)


def _areas(view: Arrangement) -> Iterator[RenderableType]:
    yield _heading("Conformance by area", "bold")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", overflow="fold")
    for word in _MATRIX.values():
        table.add_column(word, justify="right", no_wrap=True)
    for contract, title in CONTRACTS.items():
        rows = [row for row in view.rows if row.contract is contract]
        if rows:
            table.add_row(Text(title, style="bold"))
        for row in rows:
            table.add_row(Text(f"  {one_line(row.area)}"), *(_number(row.counts[each], each) for each in _MATRIX))
    yield _indented(table)


def _tasks(view: Arrangement) -> Iterator[RenderableType]:
    if view.tasks:
        yield _heading(f"Tasks ({len(view.tasks):,})", "bold")
    for verdict in view.tasks:
        mark = kind(verdict)
        rate = str(verdict.estimate) if verdict.estimate else "no rate"
        outcomes = " · ".join(f"{one_line(outcome)} {number:,}" for outcome, number in mix(verdict))
        yield _listed(
            MARKS[mark], Text(rate, style="bold").append("  ").append_text(_prose(verdict.title)), _STYLES[mark]
        )
        yield _indented(Group(*([Text(outcomes)] if outcomes else []), _address(verdict)), 4)


def _provenance(card: Scorecard) -> Iterator[RenderableType]:
    run, totals = card.run, card.totals
    yield _heading("Provenance", "bold")
    facts = [
        (fact.name, Text(one_line(fact.value, _LONGEST_VALUE)).append(f" ({fact.origin})", style="dim"))
        for fact in card.facts
    ]
    asked = "every check of the tier" if run.whole else "only a part of the tier"
    told = [
        ("subject", card.subject),
        ("suite", f"{card.suite_version}, {', '.join(run.suites) or 'none'}; {asked} was asked"),
        ("run", f"{run.id}, {run.started}, tier {run.tier}, effort {run.effort}, seed {run.seed}"),
        ("requests", f"{totals.requests:,} in {count(totals.attempts, 'attempt')}, {duration(totals.seconds)}"),
        ("prompt", f"{totals.prompt_tokens:,} tokens, {totals.cached_tokens:,} of them cached"),
        ("completion", f"{totals.completion_tokens:,} tokens, {totals.reasoning_tokens:,} of them reasoning"),
        ("money", dollars(totals.usd)),
        ("repeat", run.command),
    ]
    if run.interrupted:
        told.append(("ended early", run.interrupted))
    yield _indented(_pairs([*facts, *((name, Text(one_line(value, _LONGEST_VALUE))) for name, value in told)]))
    yield ""
    yield _indented(
        Text(client_sentence(card), style="dim" if card.client.trusted or card.simulated else "bold yellow")
    )


def _last(view: Arrangement) -> Iterator[RenderableType]:
    """One line that repeats the outcome, since the end is what a terminal shows."""
    headline = view.headline
    numbers = ", ".join(view.tally.values())
    yield ""
    yield Rule(style="dim", characters="─")
    word = Text(f"{MARKS[headline.kind]} {one_line(headline.word)}", style=f"bold {_STYLES[headline.kind]}")
    simulated = " (SIMULATED)" if view.card.simulated else ""
    yield word.append(f"{simulated}: {numbers} in {duration(view.card.totals.seconds)}", style="not bold default")


# --- building blocks --------------------------------------------------------------------------------------------------


def _heading(title: str, style: str) -> RenderableType:
    return Group("", Rule(Text(title, style=f"bold {style}"), align="left", style="dim", characters="─"))


def _listed(mark: str, content: Text, style: str = "", indent: int = 2) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    content.overflow = "fold"
    grid.add_row(Text(mark, style=style), content)
    return _indented(grid, indent)


def _pairs(pairs: Iterable[tuple[str, Text]]) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", overflow="fold", min_width=9, max_width=28)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        value.overflow = "fold"
        grid.add_row(Text(one_line(name)), value)
    return grid


def _indented(content: RenderableType, by: int = 2) -> RenderableType:
    if isinstance(content, Text):
        content.overflow = "fold"
    return Padding(content, (0, 0, 0, by))


def _value(text: str) -> Text:
    return Text(one_line(text, _LONGEST_VALUE), overflow="fold")


def _address(verdict: Verdict) -> Text:
    return Text(one_line(verdict.address), style="dim")


def _prose(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style)


def _number(number: int, kind_: str) -> Text:
    return Text(f"{number:,}", style=_STYLES[kind_]) if number else Text("·", style="dim")


def _exchanges(verdict: Verdict) -> str:
    more = len(verdict.exchanges) - _MOST_EXCHANGES
    shown = ", ".join(map(one_line, verdict.exchanges[:_MOST_EXCHANGES]))
    return f"{shown} and {more:,} more" if more > 0 else shown
