"""Targets: every example loads, says what to change, and declares what a run depends on."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kimi_eval.deployment import Deployment, Prices, from_file
from kimi_eval.profile import all_profiles, named

FOLDER = Path(__file__).parent.parent / "targets"
FILES = sorted(FOLDER.iterdir())
BACKENDS = [
    "official",
    "vllm-h200",
    "sglang-b300",
    "tokenspeed-b200",
    "nim-*",
    "m890-*",
    "ppu-810e-*",
    "ascend-*",
    "mi355x-*",
    "h200-*",
    "qwen-ai",
]

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_of_interest_has_an_example(backend: str) -> None:
    assert list(FOLDER.glob(f"{backend}.yaml"))


@each_file
def test_an_example_loads_with_its_profile(file: Path) -> None:
    target = from_file(file)

    assert target.profile is not None
    assert named(target.profile) in all_profiles().values()


@each_file
def test_an_example_declares_what_a_run_depends_on(file: Path) -> None:
    target = from_file(file)

    assert {"base_url", "model", "api_key_env", "profile", "capabilities", "limits"} <= target.model_fields_set
    assert target.api_key_env.endswith("_API_KEY")
    assert target.capabilities.max_model_len is not None
    assert target.limits.concurrency is not None


@each_file
def test_an_example_begins_with_what_to_change(file: Path) -> None:
    first = file.read_text(encoding="utf-8").splitlines()[0]

    assert first.startswith("# ")
    assert "Change " in first


@each_file
def test_a_placeholder_is_marked_and_says_what_belongs_there(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not line.startswith("#")]  # the opening speaks of the mark
    invented = re.compile(r"\.example\b|: unknown\b|0000000|nightly")

    assert [line for line in lines if invented.search(line) and "# replace: " not in line] == []
    assert [line for line in lines if re.search(r"replace:\s*$", line)] == []


@each_file
def test_only_the_official_example_names_a_real_host(file: Path) -> None:
    host = urlsplit(from_file(file).base_url).hostname or ""

    assert host.endswith(".example") == (file.stem != "official")


def test_the_official_example_has_the_published_prices() -> None:
    assert from_file(FOLDER / "official.yaml").prices == Prices(input=2.0, cached_input=0.2, output=10.0)


def test_requantised_weights_are_told() -> None:
    target: Deployment = from_file(FOLDER / "ascend-a3.yaml")

    assert "re-quantised" in str(target.quantisation)
    assert "another model" in (FOLDER / "ascend-a3.yaml").read_text(encoding="utf-8")
