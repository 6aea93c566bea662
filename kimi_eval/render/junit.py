"""JUnit report: every verdict as a test case, for the test page of a CI service."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from kimi_eval.render._arrangement import RESTS_ON_MODEL, RUN_DIR, SIMULATED, commands, kind
from kimi_eval.render._text import one_line, visible
from kimi_eval.scorecard import Scorecard
from kimi_eval.verdict import Level, Status, Verdict

FILE = "junit.xml"
_LONGEST_MESSAGE = 300  # characters; CI services show a message on one line


def render(card: Scorecard, *, links: bool = True, directory: str = RUN_DIR) -> str:
    """One suite for each area, one case for each verdict. JUnit knows no links, so ``links`` changes nothing.

    A claim that never gates is never a failure: not answered, it is skipped with its reason. A run that ended early or
    asked nothing has a suite of its own with an error, since a CI service takes a report without red for success.
    """
    name = "kimi_eval, SIMULATED" if card.simulated else "kimi_eval"
    unfinished = _unfinished(card)
    root = ElementTree.Element("testsuites", {"name": name, **_counted(card.verdicts, errors=1 if unfinished else 0)})
    areas: dict[str, list[Verdict]] = {}
    for verdict in card.verdicts:
        areas.setdefault(verdict.area, []).append(verdict)
    for area, verdicts in areas.items():
        suite = _suite(root, card, area, _counted(verdicts))
        for verdict in verdicts:
            _case(suite, verdict, directory)
    if unfinished:
        suite = _suite(root, card, "run", _counted([], errors=1))
        case = ElementTree.SubElement(suite, "testcase", {"classname": "kimi_eval.run", "name": "reaches_its_end"})
        _outcome(case, "error", "not_measured", unfinished, " ".join(card.why))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _unfinished(card: Scorecard) -> str:
    if card.run.interrupted:
        return f"The run ended early: {card.run.interrupted}"
    return "" if card.verdicts else "Nothing was asked."


def _suite(root: ElementTree.Element, card: Scorecard, area: str, counted: dict[str, str]) -> ElementTree.Element:
    title = f"{area} (SIMULATED)" if card.simulated else area
    attributes = {"name": title, "timestamp": card.run.started, **counted}
    suite = ElementTree.SubElement(root, "testsuite", _visible(attributes))
    _properties(suite, _about(card))
    return suite


def _case(suite: ElementTree.Element, verdict: Verdict, directory: str) -> None:
    *place, name = verdict.id.split("/")
    variant = f"[{verdict.variant}]" if verdict.variant else ""
    attributes = {"classname": ".".join(place), "name": name + variant, "time": f"{verdict.seconds:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", _visible(attributes))
    about = {
        "title": verdict.title,
        "level": verdict.level,
        "contract": verdict.contract,
        "spec": verdict.spec,
        "exchanges": " ".join(verdict.exchanges),
        "rate": str(verdict.estimate) if verdict.estimate else "",
        "waiver": verdict.waiver or "",
    }
    _properties(case, about)
    match _tag(verdict):
        case "failure" if verdict.status is Status.FAILED:
            message = str(verdict.findings[0]) if verdict.findings else verdict.title
            _outcome(case, "failure", verdict.level, message, _story(verdict, directory))
        case "failure":
            _outcome(case, "failure", "inconclusive", verdict.reason, _story(verdict, directory))
        case "error":
            _outcome(case, "error", "error", verdict.reason, _story(verdict, directory))
        case "skipped":
            _outcome(case, "skipped", verdict.status, verdict.reason or str(verdict.status), "")
    if verdict.observed:
        ElementTree.SubElement(case, "system-out").text = visible(f"observed: {verdict.observed}")


def _tag(verdict: Verdict) -> str:
    if verdict.status is Status.ERROR:
        return "error"
    if verdict.status is Status.NOT_APPLICABLE:
        return "skipped"
    if verdict.status is Status.INCONCLUSIVE:
        return "skipped" if verdict.level is Level.OBSERVE else "failure"
    return "failure" if kind(verdict) == "failed" else ""


def _story(verdict: Verdict, directory: str) -> str:
    lines = [verdict.title, *map(str, verdict.findings), verdict.reason]
    if verdict.rests_on_model:
        lines.append(RESTS_ON_MODEL)
    lines.append(f"spec: {verdict.spec}" if verdict.spec else "")
    lines.append(f"exchanges: {' '.join(verdict.exchanges)}" if verdict.exchanges else "")
    return "\n".join([*(line for line in lines if line), *commands(verdict, directory)])


def _outcome(case: ElementTree.Element, tag: str, type_: str, message: str, text: str) -> None:
    attributes = {"type": str(type_), "message": one_line(message, _LONGEST_MESSAGE)}
    ElementTree.SubElement(case, tag, attributes).text = visible(text) or None


def _about(card: Scorecard) -> dict[str, str]:
    return {
        "simulated": SIMULATED if card.simulated else "false",
        "outcome": card.outcome,
        "level": card.level or "",
        "why": " ".join(card.why),
        "model": card.model,
        "base_url": card.base_url,
        "profile": card.profile,
        "subject": card.subject,
        "suite_version": card.suite_version,
        "run": card.run.id,
        "seed": card.run.seed,
        "effort": card.run.effort,
        "tier": card.run.tier,
        "command": card.run.command,
        "interrupted": card.run.interrupted,
    }


def _properties(parent: ElementTree.Element, values: dict[str, str]) -> None:
    properties = ElementTree.SubElement(parent, "properties")
    for name, value in values.items():
        if value:
            ElementTree.SubElement(properties, "property", {"name": name, "value": one_line(str(value))})


def _counted(verdicts: Sequence[Verdict], errors: int = 0) -> dict[str, str]:
    tags = [_tag(verdict) for verdict in verdicts]
    return {
        "tests": str(len(tags) + errors),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error") + errors),
        "skipped": str(tags.count("skipped")),
        "time": f"{sum(verdict.seconds for verdict in verdicts):.3f}",
    }


def _visible(attributes: dict[str, str]) -> dict[str, str]:
    return {name: one_line(value) for name, value in attributes.items()}
