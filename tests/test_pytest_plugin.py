"""pytest plugin: the suites behave as pytest users expect, and say the same as `certify`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from kimi_eval.simulator import SimulatedDeployment
from tests.running import WINDOW

ROOT = Path(__file__).parent.parent
SMALL = "suites/protocol/test_models.py"


def run(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def verdicts(folder: Path) -> dict[str, str]:
    lines = (folder / "verdicts.jsonl").read_text().splitlines()
    return {f"{v['id']}[{v['variant']}]": v["status"] for v in map(json.loads, lines)}


def test_a_check_is_an_item_for_each_variant(tmp_path: Path) -> None:
    listed = run("suites/tools/test_tool_choice.py", "--collect-only", "-q").stdout

    assert "test_tool_choice.py::required_forces_a_call[streamed]" in listed
    assert "test_tool_choice.py::required_forces_a_call[whole]" in listed


def test_collecting_asks_nothing(tmp_path: Path) -> None:
    with SimulatedDeployment(max_model_len=WINDOW) as server:
        run(SMALL, f"--target={server.base_url}", "--collect-only")

        assert server.requests_seen == 0


def test_levels_and_names_select(tmp_path: Path) -> None:
    must = run("suites/protocol", "--collect-only", "-q", "-m", "must and moonshot", "-k", "stop").stdout

    assert "stop_words_are_limited[six_words]" in must
    assert "a_stop_word_is_cut" not in must


def test_only_what_is_selected_is_asked(tmp_path: Path) -> None:
    out = run(SMALL, "-k", "the_model_is_listed", f"--out={tmp_path / 'run'}")

    assert out.returncode == 0, out.stdout
    assert verdicts(tmp_path / "run") == {"protocol/models/the_model_is_listed[]": "passed"}


def test_both_doors_give_the_same_verdicts(tmp_path: Path) -> None:
    fault = first_fault_of("tools/tool_choice")
    suites = ["--suite=tools/tool_choice", "--suite=protocol/invariants", f"--fault={fault}"]
    pytest_run = run("suites", *suites, f"--out={tmp_path / 'pytest'}")
    cli_run = subprocess.run(
        [sys.executable, "-m", "kimi_eval", "certify", *suites, f"--out={tmp_path / 'cli'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (pytest_run.returncode, cli_run.returncode) == (1, 1)
    assert verdicts(tmp_path / "pytest") == verdicts(tmp_path / "cli")
    assert "failed" in verdicts(tmp_path / "pytest").values()


def first_fault_of(suite: str) -> str:
    from kimi_eval.simulator.faults import all_faults

    return next(name for name, fault in all_faults().items() if any(n.startswith(suite) for n in fault.noticed_by))


def test_a_failure_shows_findings_and_how_to_repeat_them(tmp_path: Path) -> None:
    fault = first_fault_of("protocol/models")
    out = run(SMALL, f"--fault={fault}", f"--out={tmp_path / 'run'}").stdout

    assert "expected" in out
    assert "kimi-eval replay" in out
    assert "Traceback" not in out


def test_x_stops_at_the_first_failure(tmp_path: Path) -> None:
    fault = first_fault_of("protocol/models")
    out = run(SMALL, "-x", f"--fault={fault}", f"--out={tmp_path / 'run'}")

    assert "stopping after 1 failures" in out.stdout
    assert (tmp_path / "run" / "scorecard.json").exists()


def test_lf_asks_only_what_failed_last_time(tmp_path: Path) -> None:
    fault, cache = first_fault_of("protocol/models"), f"cache_dir={tmp_path / 'cache'}"
    base = [sys.executable, "-m", "pytest", SMALL, "-o", cache]
    subprocess.run([*base, f"--fault={fault}", f"--out={tmp_path / '1'}"], cwd=ROOT, capture_output=True, check=False)
    subprocess.run([*base, "--lf", f"--out={tmp_path / '2'}"], cwd=ROOT, capture_output=True, check=True)
    before, after = verdicts(tmp_path / "1"), verdicts(tmp_path / "2")

    assert set(after) == {address for address, status in before.items() if status == "failed"}


def test_junitxml_names_level_and_source(tmp_path: Path) -> None:
    run(SMALL, f"--junitxml={tmp_path / 'j.xml'}", f"--out={tmp_path / 'run'}")
    cases = ET.parse(tmp_path / "j.xml").findall(".//testcase")

    assert len(cases) == 2
    assert {p.get("name") for p in cases[0].findall(".//property")} >= {"level", "spec", "exchanges"}


def test_serial_gives_the_same_verdicts(tmp_path: Path) -> None:
    chosen = (
        "suites/protocol/test_errors.py",
        "suites/protocol/test_invariants.py",
        "-k",
        "broken_json or usage_adds_up",
    )
    run(*chosen, f"--out={tmp_path / 'ahead'}")
    serial = run(*chosen, "--serial", f"--out={tmp_path / 'serial'}")

    assert serial.returncode == 0, serial.stdout
    assert "Exception" not in serial.stdout + serial.stderr
    assert json.loads((tmp_path / "serial" / "scorecard.json").read_text())["run"]["interrupted"] == ""
    assert list((tmp_path / "serial" / "exchanges").glob("*.gz"))
    assert verdicts(tmp_path / "serial") == verdicts(tmp_path / "ahead")


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    with SimulatedDeployment(max_model_len=WINDOW, seconds_per_frame=0.02) as server:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pytest",
                "suites/tools",
                f"--target={server.base_url}",
                f"--out={tmp_path / 'run'}",
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        while server.requests_seen < 40:
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)

    card = json.loads((tmp_path / "run" / "scorecard.json").read_text())
    assert process.returncode == 2  # pytest's own word for an interruption
    assert "interrupted" in card["run"]["interrupted"]
    assert card["outcome"] != "certified"


def test_an_unknown_suite_is_one_sentence(tmp_path: Path) -> None:
    out = run("suites", "--suite=tools/tool_chioce")

    assert out.returncode == 4  # pytest's own word for a usage error
    assert "did you mean 'tools/tool_choice'?" in out.stderr + out.stdout


def test_the_plan_asks_nothing(tmp_path: Path) -> None:
    with SimulatedDeployment(max_model_len=WINDOW) as server:
        out = run(SMALL, f"--target={server.base_url}", "--plan")

        assert server.requests_seen == 0
        assert out.returncode == 0
        assert "2 claims, 2 requests" in out.stdout


@pytest.mark.slow
def test_thousands_of_slow_conversations_are_in_flight_at_once(tmp_path: Path) -> None:
    """Not a timed test: it counts how many were open at the same time."""
    suite = tmp_path / "suites" / "test_waits.py"
    suite.parent.mkdir()
    suite.write_text(
        "import asyncio\nfrom kimi_eval import *\n"
        "open_now = most = 0\n"
        "@check('Waiting is possible.', MUST, spec='-', variants=tuple(map(str, range(400))))\n"
        "async def waits(chat):\n"
        "    global open_now, most\n"
        "    open_now += 1; most = max(most, open_now)\n"
        "    await asyncio.sleep(0.2)\n"
        "    await chat.send('GET', '/models', shared=True)\n"
        "    open_now -= 1\n"
        "@check('Many waited at once.', MUST, spec='-', variants=('',), alone=True)\n"
        "async def many(chat):\n"
        "    await chat.send('GET', '/models')\n"
        "    expect(most, 'open at once').at_least(200)\n"
    )
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["kimi_eval.pytest_plugin"]\n')
    out = run("suites", "-q", "--concurrency=200", f"--out={tmp_path / 'run'}", "--import-mode=importlib", cwd=tmp_path)

    assert "401 passed" in out.stdout, out.stdout
