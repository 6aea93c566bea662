"""Rewrites the generated parts of the README from the code, so that the two cannot disagree.

usage: python scripts/readme.py [--check]   with --check only tells, by exit code 1, that the README is stale
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from kimi_eval.cli import cli
from kimi_eval.profile import all_profiles

README = Path(__file__).parent.parent / "README.md"
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands() -> str:
    """The table of commands."""
    rows = []
    for name, command in cli.commands.items():
        first = (command.help or "").strip().split("\n\n")[0].replace("\n", " ")
        rows.append(f"| `kimi-eval {name}` | {' '.join(first.split())} |")
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def profiles() -> str:
    """The table of profiles."""
    rows = [f"| `{profile.name}` | {profile.title} |" for profile in all_profiles().values()]
    return "\n".join(["| profile | for |", "|---|---|", *rows])


def written(text: str) -> str:
    """The README's text with its generated parts made anew."""
    parts = {"commands": commands, "profiles": profiles}
    return PART.sub(lambda part: f"{part[1]}{parts[part[2]]()}\n{part[3]}", text)


def main() -> int:
    """Rewrites the file, or compares."""
    before = README.read_text(encoding="utf-8")
    after = written(before)
    if "--check" not in sys.argv:
        README.write_text(after, encoding="utf-8")
    return int("--check" in sys.argv and before != after)


if __name__ == "__main__":
    sys.exit(main())
