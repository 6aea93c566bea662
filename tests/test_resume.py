"""Resuming: a run that was killed at any point goes on, asks nothing twice that was answered, and ends the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kimi_eval import catalog as catalogs
from kimi_eval.embedded import Gold
from kimi_eval.simulator import SimulatedDeployment
from tests.running import WINDOW

CONCURRENCY = 8
SUITES = ("--suite", "tools", "--suite", "protocol/streaming", "--suite", "tasks", "--suite", "protocol/invariants")
PREFLIGHT = 2  # requests that every start makes


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "kimi_eval", "certify", f"--concurrency={CONCURRENCY}", *words]


def same_in_both(folder: Path) -> dict[str, Any]:
    """The scorecard without what may differ between two runs: clocks, the nonce, and our own load."""
    card: dict[str, Any] = json.loads((folder / "scorecard.json").read_text())
    for name in ("client", "run"):
        del card[name]
    card["totals"] = {
        name: value for name, value in card["totals"].items() if name not in ("seconds", "cached_tokens", "usd")
    }
    for verdict in card["verdicts"]:
        del verdict["seconds"]
        verdict["observed"] = "" if "cached" in verdict["observed"] else verdict["observed"]
    return card


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 3])
def test_a_killed_run_is_resumed_to_the_same_scorecard(tmp_path: Path, kills: int) -> None:
    folder = tmp_path / "run"
    oracle = Gold(catalogs.load(), "public")
    with SimulatedDeployment(oracle=oracle, max_model_len=WINDOW, seconds_per_frame=0.0005) as server:
        arguments = [*SUITES, server.base_url, f"--out={folder}"]
        for _ in range(kills):
            process = subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            seen_before = server.requests_seen
            while server.requests_seen < seen_before + 60:
                assert process.poll() is None, process.stderr and process.stderr.read()
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            assert not (folder / "scorecard.json").exists()
            arguments = [f"--resume={folder}"]  # the run knows its target
        assert subprocess.run(command(*arguments), capture_output=True, check=False).returncode == 0
        asked = server.requests_seen

        nonce = json.loads((folder / "plan.json").read_text())["settings"]["nonce"]
        whole = tmp_path / "whole"
        whole.mkdir()
        subprocess.run(
            [sys.executable, "-c", _SAME_NONCE, nonce, *command(*SUITES, server.base_url, f"--out={whole}")[3:]],
            check=True,
            capture_output=True,
        )
        in_one_go = server.requests_seen - asked

    assert same_in_both(folder) == same_in_both(whole)
    assert asked <= in_one_go + kills * (CONCURRENCY + PREFLIGHT)


# The nonce is drawn at random by design; for the comparison the second run gets that of the first.
_SAME_NONCE = """
import secrets, sys
nonce = sys.argv.pop(1)
secrets.token_hex = lambda length=None: nonce
from kimi_eval.cli import main
main()
"""


def test_a_finished_run_resumed_asks_nothing_more(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with SimulatedDeployment(max_model_len=WINDOW) as server:
        arguments = ["--suite", "protocol/errors", server.base_url]
        first = subprocess.run(command(*arguments, f"--out={folder}"), capture_output=True, check=False)
        asked = server.requests_seen
        again = subprocess.run(command(f"--resume={folder}"), capture_output=True, check=False)

        assert (first.returncode, again.returncode) == (0, 0)
        assert server.requests_seen - asked == PREFLIGHT
