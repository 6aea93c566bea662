"""Rewrites the generated parts of the README from the code, so that the two cannot disagree.

usage: python scripts/readme.py [--check]   with --check only tells, by exit code 1, that the README is stale
A part stands between `<!-- generated: NAME -->` and `<!-- end -->`; NAME is a function of this script.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent.parent))

from kimi_eval import catalog
from kimi_eval.cli import cli
from kimi_eval.deployment import from_file
from kimi_eval.problem import NotMeasured, Problem
from kimi_eval.profile import all_profiles
from kimi_eval.pytest_plugin import _FLAGS
from kimi_eval.scorecard import ClientCheck, Run, Scorecard, Totals, judge
from kimi_eval.verdict import Contract, Level, Status, Verdict

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def commands() -> str:
    """Every command with the first sentence of its help."""
    rows = []
    for name, command in cli.commands.items():
        said = " ".join((command.help or "").split("\n\n")[0].split())
        rows.append((f"`kimi-eval {name}`", said))
    return table(("command", "what it does"), rows)


def flags() -> str:
    """Every flag of certify; where its help is silent, that of the same flag of pytest speaks."""
    of_pytest = {name: str(how.get("help", "")) for name, how in _FLAGS}
    rows = []
    for option in cli.commands["certify"].params:
        if isinstance(option, click.Option):
            name = option.opts[0]
            said = " ".join((option.help or of_pytest.get(name, "").capitalize() + ".").split())
            default = f" Default: {option.default}." if option.show_default else ""
            rows.append(
                (f"`{name} {_value(option)}`".replace(" `", "`"), said + default, "yes" if name in of_pytest else "")
            )
    return table(("flag", "meaning", "pytest, too"), rows)


def _value(option: click.Option) -> str:
    """What stands behind a flag, in one word; click's own words change from version to version."""
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    if isinstance(option.type, click.IntRange | click.FloatRange):
        return "N"
    return option.metavar or option.type.name.upper()


def tiers() -> str:
    """How many items of each task a tier asks."""
    counts = sorted({task.count for task in catalog.load().tasks})
    rows = [
        (f"`{name}`", " or ".join(str(round(count * factor)) for count in counts))
        for name, factor in catalog.TIERS.items()
    ]
    return table(("tier", "items of each task"), rows)


def profiles() -> str:
    """Every profile, how it is recognised and what it takes for granted."""
    rows = []
    for profile in all_profiles().values():
        assumed = [name for name, present in profile.capabilities.items() if present]
        rows.append(
            (f"`{profile.name}`", profile.title, f"`{profile.reasoning_field}`", ", ".join(assumed) or "nothing")
        )
    return table(("profile", "for", "reasoning in", "taken for granted"), rows)


def targets() -> str:
    """Every example target."""
    rows = []
    for file in sorted((ROOT / "targets").glob("*.yaml")):
        target = from_file(file)
        engine, hardware = target.engine.name or "hosted", target.hardware.sku or "its own"
        rows.append((f"[{file.stem}](targets/{file.name})", engine, hardware, f"`{target.profile}`"))
    return table(("target", "engine", "hardware", "profile"), rows)


def outcomes() -> str:
    """What a run ends in: each case is put through the code that decides."""
    must, should = Level.MUST, Level.SHOULD
    passed, failed, unknown, broken = Status.PASSED, Status.FAILED, Status.INCONCLUSIVE, Status.ERROR
    cases: list[tuple[str, list[tuple[Level, Status]], bool, str]] = [
        ("Every MUST claim that applies passed, and every check was asked", [(must, passed)], True, ""),
        ("The same, and a SHOULD claim failed", [(must, passed), (should, failed)], True, ""),
        ("The same, but only a part was asked: `--suite`, `-k`, `-m`", [(must, passed)], False, ""),
        ("A MUST claim failed", [(must, passed), (must, failed)], True, ""),
        ("A MUST claim could not be judged", [(must, passed), (must, unknown)], True, ""),
        ("The run was interrupted or its budget was used up", [(must, passed)], True, "out of budget"),
        ("A check of ours broke", [(must, passed), (should, broken)], True, ""),
    ]
    rows: list[tuple[str, str, int]] = []
    for told, statuses, whole, interrupted in cases:
        card = _card([_verdict(level, status) for level, status in statuses], whole, interrupted)
        rows.append((told, f"`{card.outcome}`", card.exit_code))
    rows.append(("Nobody answers at that address, or it is no such API", "no scorecard", NotMeasured("").exit_code))
    rows.append(("The command line or a file needs mending", "no scorecard", Problem("").exit_code))
    return table(("what happened", "outcome", "exit code"), rows)


def _verdict(level: Level, status: Status) -> Verdict:
    return Verdict("suite/claim", "", "It holds.", level, Contract.CORE, status, "")


def _card(verdicts: Sequence[Verdict], whole: bool, interrupted: str) -> Scorecard:
    outcome, level, why = judge(verdicts, whole=whole, interrupted=interrupted)
    run = Run("", "", "", "", "", (), whole, "", interrupted)
    return Scorecard(
        outcome, level, why, False, run, "", "", "", "", "", (), "", tuple(verdicts), Totals(), ClientCheck()
    )


PARTS: dict[str, Callable[[], str]] = {
    part.__name__: part for part in (commands, flags, tiers, profiles, targets, outcomes)
}


def written(text: str) -> str:
    """The README's text with its generated parts made anew. Raises KeyError for a part that nobody makes."""
    return PART.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}\n{part[3]}", text)


def main() -> int:
    """Rewrites the file, or compares."""
    before = README.read_text(encoding="utf-8")
    after = written(before)
    if "--check" not in sys.argv:
        README.write_text(after, encoding="utf-8")
    return int("--check" in sys.argv and before != after)


if __name__ == "__main__":
    sys.exit(main())
