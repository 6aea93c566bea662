"""Engines: `certify` runs to the end against a real server, without an error of ours.

Run by `python scripts/real_server.py run ENGINE -- env KIMI_EVAL_ENGINE=ENGINE python -m pytest -m engine`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ENGINE, URL = os.environ.get("KIMI_EVAL_ENGINE", ""), os.environ.get("KIMI_EVAL_BASE_URL", "")
TARGETS = Path(__file__).parent / "engines"

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        not (ENGINE and URL), reason="no real server: KIMI_EVAL_ENGINE and KIMI_EVAL_BASE_URL are not set"
    ),
]

# The small model is slow on a CPU; what takes long prompts is left to a run by hand.
PARTS = {
    "llamacpp": ["protocol", "tools/tool_choice", "thinking/channels", "structured"],
    "vllm": ["protocol", "tools", "thinking", "structured", "conversation", "probes", "tasks"],
}


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("run")
    suites = [f"--suite={part}" for part in PARTS[ENGINE]]
    command = [
        sys.executable,
        "-m",
        "kimi_eval",
        "certify",
        str(TARGETS / f"{ENGINE}.yaml"),
        f"--at={URL}",
        "--tier=smoke",
    ]
    run = subprocess.run([*command, *suites, f"--out={folder}"], capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr  # both servers break MUST claims, and the run itself is sound
    return dict(json.loads((folder / "scorecard.json").read_text()))


def failed(card: dict[str, Any]) -> set[str]:
    return {verdict["id"] for verdict in card["verdicts"] if verdict["status"] == "failed"}


def test_no_check_of_ours_breaks(card: dict[str, Any]) -> None:
    assert [verdict for verdict in card["verdicts"] if verdict["status"] == "error"] == []


def test_the_card_is_of_a_real_server(card: dict[str, Any]) -> None:
    assert card["simulated"] is False
    assert card["outcome"] == "not_certified"
    assert card["totals"]["prompt_tokens"] > 1000


# Each confirmed by hand on the recorded bytes; a new version that mends one is news worth a red test.
KNOWN = {
    "llamacpp": {
        "protocol/errors/an_unknown_model_is_refused",
        "tools/tool_choice/required_needs_tools",
        "tools/tool_choice/required_forces_a_call",
        "thinking/channels/reasoning_and_answer_arrive_apart",
        "protocol/streaming/frames_belong_together",
    },
    "vllm": {
        "protocol/parameters/top_logprobs_are_limited",  # streamed: 200, and the error inside the stream
        "protocol/errors/an_unknown_role_is_refused",
        "protocol/invariants/no_native_marker_leaks",
    },
}


def test_the_known_deviations_are_found(card: dict[str, Any]) -> None:
    assert KNOWN[ENGINE] - failed(card) == set()
