"""README and its neighbours: what they say is what the code does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kimi_eval.cli import cli
from kimi_eval.deployment import from_file
from kimi_eval.profile import named

ROOT = Path(__file__).parent.parent
PAPERS = ["README.md", "CONTRIBUTING.md", "reports/README.md"]
TARGETS = sorted((ROOT / "targets").glob("*.yaml"))


def test_the_generated_parts_are_fresh() -> None:
    assert subprocess.run([sys.executable, "scripts/readme.py", "--check"], cwd=ROOT, check=False).returncode == 0


def command_lines() -> list[str]:
    lines = []
    for paper in PAPERS:
        for line in re.findall(r"^(?:.*&& )?(kimi-eval [^#\n`]*)", (ROOT / paper).read_text(), re.MULTILINE):
            lines.append(line.strip())
    return lines


@pytest.mark.parametrize("line", command_lines())
def test_every_command_line_is_one_that_exists(line: str) -> None:
    name, *words = shlex.split(line)[1:]
    command = cli.commands[name]
    known = {option for parameter in command.params for option in parameter.opts}

    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known
    command.make_context(name, list(words), resilient_parsing=True)
    assert isinstance(command, click.Command)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_relative_link_leads_somewhere(paper: str) -> None:
    text = (ROOT / paper).read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in link:
            assert ((ROOT / paper).parent / link).exists(), link


@pytest.mark.parametrize("path", TARGETS, ids=lambda path: path.stem)
def test_every_example_target_loads(path: Path) -> None:
    target = from_file(path)

    assert target.profile
    assert named(target.profile)
    assert path.read_text().startswith("# ")
    assert target.capabilities.max_model_len


def test_there_are_examples_for_the_backends_of_interest() -> None:
    names = " ".join(path.stem for path in TARGETS)

    for wanted in (
        "official",
        "vllm",
        "sglang",
        "tokenspeed",
        "nim",
        "m890",
        "810e",
        "ascend",
        "mi355x",
        "h200",
        "qwen",
    ):
        assert wanted in names
