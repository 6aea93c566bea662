"""Markdown scorecard: one page in GitHub's flavour, for the job page of a CI service."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import quote

from tabulate import tabulate

from kimi_eval.render._arrangement import (
    CONTRACTS,
    MARKS,
    RESTS_ON_MODEL,
    RUN_DIR,
    SIMULATED,
    WORDS,
    Arrangement,
    Section,
    client_sentence,
    commands,
    kind,
    mix,
    together,
)
from kimi_eval.render._text import count, cut, dollars, duration, one_line, spans, visible
from kimi_eval.scorecard import Scorecard
from kimi_eval.verdict import Verdict

FILE = "scorecard.md"

# GitHub refuses a job summary above 1 MiB, so a page has to stay small however much is broken.
_LONGEST_VALUE = 400  # characters
_LONGEST_BLOCK = 1200
_MOST_TOLD = 30  # verdicts told in full in one section; the others are named
_MOST_FINDINGS = 5
_MOST_EXCHANGES = 5
_MOST_NAMED = 500  # lines of a list

# What starts markup anywhere, at the beginning of a line, or at the edge of a word; the last two begin a bare link.
_SPECIAL = re.compile(r"[\\`*\[\]<>|~$]|^[#+=-]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.")
_SPECIAL_IN_CELL = re.compile(rf"{_SPECIAL.pattern}|[&@]")


def render(card: Scorecard, *, links: bool = True, directory: str = RUN_DIR) -> str:
    """The page. ``links`` makes exchange ids point beside it; a job page, which has no files beside it, wants False."""
    view = Arrangement(card)
    blocks = [
        *_top(view, directory),
        *_section(view.broken, links, directory),
        *(block for section in view.sections for block in _section(section, links, directory)),
        *_observations(view, links),
        *_not_applicable(view),
        *_matrix(view),
        *_tasks(view, links),
        *_passed(view),
        *_provenance(card),
        *_cost(card),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _top(view: Arrangement, directory: str) -> Iterator[str]:
    card, headline = view.card, view.headline
    if card.simulated:
        yield f"**{_escape(SIMULATED)}**"
    yield f"# {MARKS[headline.kind]} {_escape(headline.word)}"
    yield _prose(headline.lead)
    yield "\n".join(f"- {_prose(reason)}" for reason in card.why)
    yield _prose(view.after(directory))
    yield " · ".join(view.tally.values())
    yield (
        f"{_code(card.model)} at {_code(card.base_url)}, profile {_code(card.profile)} (recognised by "
        f"{_prose(card.recognised_by)}), {_prose(card.run.started)}"
    )


def _section(section: Section, links: bool, directory: str) -> Iterator[str]:
    yield f"## {section.title} ({len(section.verdicts):,})"
    if not section.verdicts:
        yield "No MUST claim failed."
        return
    yield section.meaning
    for verdict in section.verdicts[:_MOST_TOLD]:
        yield from _told(verdict, section.kind, links, directory)
    if rest := section.verdicts[_MOST_TOLD:]:
        yield _details(f"and {len(rest):,} more", _named(rest))


def _told(verdict: Verdict, kind_: str, links: bool, directory: str) -> Iterator[str]:
    yield f"### {MARKS[kind_]} {_prose(verdict.title)}"
    label = f"**{verdict.level} {WORDS[kind_]}** {_code(verdict.address)}"
    yield f"{label} ({CONTRACTS[verdict.contract].lower()})"
    findings = [
        f"- {_code(finding.where)}: expected {_code(finding.expected)}, got {_code(finding.actual)}"
        for finding in verdict.findings[:_MOST_FINDINGS]
    ]
    if (more := len(verdict.findings) - _MOST_FINDINGS) > 0:
        findings.append(f"- and {more:,} more")
    yield "\n".join(findings)
    reason = cut(verdict.reason.strip(), _LONGEST_BLOCK)
    yield _block(reason) if "\n" in reason else _prose(reason)
    if verdict.observed:
        yield f"Observed: {_code(verdict.observed)}"
    if verdict.waiver:
        yield f"Waived: {_prose(verdict.waiver)}"
    if verdict.rests_on_model:
        yield f"_{RESTS_ON_MODEL}_"
    told = [f"Rate {verdict.estimate}"] if verdict.estimate else []
    told += [f"Spec: {_prose(verdict.spec)}"] if verdict.spec else []
    told += [f"Exchanges: {_exchanges(verdict.exchanges, links)}"] if verdict.exchanges else []
    yield " · ".join(told)
    yield _block("\n".join(commands(verdict, directory)), "sh")


def _observations(view: Arrangement, links: bool) -> Iterator[str]:
    if view.observations:
        yield f"## Observed ({len(view.observations):,})"
        yield "Where sources disagree, this is the way this deployment goes. Never counted against it."
        yield _capped(view.observations, lambda verdict: _observation(verdict, links))


def _observation(verdict: Verdict, links: bool) -> str:
    findings = "; ".join(str(finding) for finding in verdict.findings)
    said = _code(verdict.observed or findings or "nothing noted")
    seen = f" ({_exchanges(verdict.exchanges, links)})" if verdict.exchanges else ""
    return f"- {_prose(verdict.title)} **{said}** {_code(verdict.address)}{seen}"


def _not_applicable(view: Arrangement) -> Iterator[str]:
    if view.not_applicable:
        yield f"## Not applicable ({view.counts['not_applicable']:,})"
        for reason, verdicts in view.not_applicable:
            yield f"{_prose(reason)}\n\n{_named(verdicts)}"


def _matrix(view: Arrangement) -> Iterator[str]:
    yield "## Conformance by area"
    kinds = ("passed", "failed", "inconclusive", "not_applicable", "error", "observed")
    for contract, title in CONTRACTS.items():
        rows = [row for row in view.rows if row.contract is contract]
        if rows:
            lines = [[_cell(row.area), *(f"{row.counts[each]:,}" for each in kinds)] for row in rows]
            headers = [title, *(f"{MARKS[each]} {WORDS[each]}" for each in kinds)]
            yield _table(lines, headers, ("left", *("right" for _ in kinds)))


def _tasks(view: Arrangement, links: bool) -> Iterator[str]:
    if not view.tasks:
        return
    yield f"## Tasks ({len(view.tasks):,})"
    rows = []
    for verdict in view.tasks:
        outcomes = " · ".join(f"{_cell(outcome, code=False)} {number:,}" for outcome, number in mix(verdict))
        rate = str(verdict.estimate) if verdict.estimate else "–"
        rows.append([_cell(verdict.address), rate, outcomes or "–", f"{MARKS[kind(verdict)]} {WORDS[kind(verdict)]}"])
    yield _table(rows, ["task", "rate (95 % interval)", "outcomes", "verdict"])
    for verdict in view.tasks:
        shown = [
            f"- {_escape(outcome)}: {_code(item)} {_exchanges([exchange], links)}"
            for item, outcome, exchange in verdict.outcomes
            if outcome != "correct"
        ]
        if shown:
            more = [f"- and {len(shown) - _MOST_TOLD:,} more"] if len(shown) > _MOST_TOLD else []
            listed = "\n".join(shown[:_MOST_TOLD] + more)
            yield _details(f"{verdict.address}: {count(len(shown), 'item')} not correct", listed)


def _passed(view: Arrangement) -> Iterator[str]:
    if not view.passed:
        return
    yield f"## Passed ({view.counts['passed']:,})"
    for row, verdicts in view.passed:
        listed = _capped(
            verdicts, lambda verdict: f"- ✓ {_prose(verdict.title)} {_code(verdict.address)} {verdict.level}"
        )
        yield _details(f"{CONTRACTS[row.contract]}: {row.area} ({len(verdicts):,})", listed)


def _provenance(card: Scorecard) -> Iterator[str]:
    run = card.run
    yield "## Provenance"
    facts = [[_cell(fact.name), _cell(fact.value), fact.origin] for fact in card.facts]
    yield _table(facts, ["fact", "value", "origin"]) if facts else "No fact is known."
    asked = "every check of the tier" if run.whole else "only a part of the tier"
    lines = [
        f"Subject {_code(card.subject)}",
        f"Suite version {_code(card.suite_version)}",
        f"Run {_code(run.id)}, tier {_code(run.tier)}, effort {_code(run.effort)}, seed {_code(run.seed)}",
        f"Suites {', '.join(map(_code, run.suites)) or 'none'}; {asked} was asked",
    ]
    if run.interrupted:
        lines.append(f"**The run ended early:** {_prose(run.interrupted)}")
    yield "\n".join(f"- {line}" for line in lines)


def _cost(card: Scorecard) -> Iterator[str]:
    totals = card.totals
    yield "## What it took"
    lines = [
        f"{count(totals.requests, 'request')}, {count(totals.attempts, 'attempt')}, {duration(totals.seconds)}",
        f"{totals.prompt_tokens:,} prompt tokens, {totals.cached_tokens:,} of them cached",
        f"{totals.completion_tokens:,} completion tokens, {totals.reasoning_tokens:,} of them reasoning",
        f"Money: {dollars(totals.usd)}",
    ]
    yield "\n".join(f"- {line}" for line in lines)
    yield (
        _escape(client_sentence(card))
        if card.client.trusted or card.simulated
        else f"**{_escape(client_sentence(card))}**"
    )
    yield "## How to repeat"
    yield _block(card.run.command, "sh")


# --- building blocks --------------------------------------------------------------------------------------------------


def _named(verdicts: Sequence[Verdict]) -> str:
    groups = list(together(verdicts).items())
    lines = [f"- {_code(id_)}{_variants(variants)}" for id_, variants in groups[:_MOST_NAMED]]
    more = [f"- and {len(groups) - _MOST_NAMED:,} more"] if len(groups) > _MOST_NAMED else []
    return "\n".join(lines + more)


def _variants(variants: Sequence[str]) -> str:
    named = [variant for variant in variants if variant]
    return ": " + ", ".join(map(_code, named)) if named else ""


def _capped(verdicts: Sequence[Verdict], line: Callable[[Verdict], str]) -> str:
    lines = [line(verdict) for verdict in verdicts[:_MOST_NAMED]]
    more = [f"- and {len(verdicts) - _MOST_NAMED:,} more"] if len(verdicts) > _MOST_NAMED else []
    return "\n".join(lines + more)


def _exchanges(ids: Iterable[str], links: bool) -> str:
    ids = [id_ for id_ in ids if id_]
    shown = [f"[{_code(id_)}](exchanges/{quote(visible(id_), safe='')}.gz)" if links else _code(id_) for id_ in ids]
    more = [f"and {len(ids) - _MOST_EXCHANGES:,} more"] if len(ids) > _MOST_EXCHANGES else []
    return ", ".join(shown[:_MOST_EXCHANGES] + more)


def _table(rows: Sequence[Sequence[str]], headers: Sequence[str], align: Sequence[str] = ()) -> str:
    return tabulate(rows, headers, tablefmt="pipe", colalign=tuple(align) or None, disable_numparse=True)


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{html.escape(one_line(summary))}</summary>\n\n{content}\n\n</details>"


def _prose(text: str) -> str:
    return "".join(_code(part) if code else _escape(part) for code, part in spans(one_line(text, 2 * _LONGEST_VALUE)))


def _escape(text: str) -> str:
    """A literal text: no markup, no HTML, no mention, no link by itself."""
    escaped = _SPECIAL.sub(r"\\\g<0>", one_line(text).replace("&", "&amp;"))
    return escaped.replace("@", "@<!-- -->")


def _code(text: str) -> str:
    """A code span around any text: in it nothing is markup, and its fence is longer than any run of backticks."""
    if not text:
        return ""
    text = one_line(text, _LONGEST_VALUE)
    fence = _fence(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _cell(text: str, *, code: bool = True) -> str:
    """A literal text inside a table, where a code span cannot hold a pipe behind a backslash: entities can."""
    text = _SPECIAL_IN_CELL.sub(lambda match: f"&#{ord(match[0])};", one_line(text, _LONGEST_VALUE))
    return f"<code>{text}</code>" if code and text else text


def _block(text: str, language: str = "") -> str:
    fence = _fence(text, 3)
    return f"{fence}{language}\n{visible(text)}\n{fence}" if text else ""


def _fence(text: str, shortest: int) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(shortest, longest + 1)
