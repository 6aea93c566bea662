"""Bad input: each ends in one clear sentence and the right exit code, and loses nothing that was measured."""

from __future__ import annotations

import gzip
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kimi_eval.simulator import SimulatedDeployment
from tests.hostile import BEHAVIOURS, COMPLETION, Hostile, error, fixed, reply
from tests.running import WINDOW

USAGE, NOT_MEASURED = 2, 4
SHORT = "timeouts: {connect: 1, first_byte: 1.5, idle: 1.5, total: 3}\n"
SECRET = "sk-canary-7f3a9c51e2"


def certify(*words: str, key: str | None = None, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KIMI_API_KEY": key or ""}
    command = [sys.executable, "-m", "kimi_eval", "certify", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)


def sentence(run: subprocess.CompletedProcess[str]) -> str:
    """What stderr says: one line, no traceback."""
    lines = [line for line in run.stderr.splitlines() if line.startswith("kimi-eval: ")]
    assert len(lines) == 1, run.stderr
    assert "Traceback" not in run.stderr
    return lines[0]


def target(tmp_path: Path, url: str, more: str = SHORT) -> str:
    path = tmp_path / "target.yaml"
    path.write_text(f"base_url: {url}\n{more}")
    return str(path)


# --- addresses --------------------------------------------------------------------------------------------------------


def test_no_such_host(tmp_path: Path) -> None:
    run = certify("http://no-such-host.invalid/v1", f"--out={tmp_path / 'r'}")

    assert run.returncode == NOT_MEASURED
    assert "no such host" in sentence(run)


def test_connection_refused(tmp_path: Path) -> None:
    run = certify("http://127.0.0.1:9/v1", f"--out={tmp_path / 'r'}")

    assert run.returncode == NOT_MEASURED
    assert "cannot connect" in sentence(run)


def test_tls_with_a_certificate_that_nobody_trusts(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-days", "2", "-keyout", str(key), "-out", str(cert)]
    if subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject], capture_output=True, check=False
    ).returncode:
        pytest.skip("openssl is not on this machine")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with Hostile("html", tls=context) as server:
        run = certify(server.url, f"--out={tmp_path / 'r'}")

    assert run.returncode == NOT_MEASURED
    assert "TLS failed" in sentence(run)


def test_https_on_a_port_that_speaks_http(tmp_path: Path) -> None:
    with Hostile("html") as server:
        run = certify(target(tmp_path, server.url.replace("http:", "https:")), f"--out={tmp_path / 'r'}")

    assert run.returncode == NOT_MEASURED
    assert "TLS" in sentence(run)


def test_what_is_neither_an_address_nor_a_file(tmp_path: Path) -> None:
    for words in ("ftp://host/v1", "no-such-file.yaml", "http:///v1", "https://user:key@host/v1"):
        run = certify(words, f"--out={tmp_path / 'r'}")

        assert run.returncode == USAGE
        assert sentence(run)


# --- what an address may answer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, SECRET])
def test_401(tmp_path: Path, key: str | None) -> None:
    refusal = error("401 Unauthorized", f"Incorrect API key provided: {SECRET}")
    with Hostile(refusal, models=refusal) as server:
        run = certify(server.url, f"--out={tmp_path / 'r'}", key=key)

    assert run.returncode == NOT_MEASURED
    assert "KIMI_API_KEY" in sentence(run)
    assert ("is not set" in sentence(run)) == (key is None)
    assert key is None or SECRET not in run.stderr + run.stdout


def test_404_on_v1(tmp_path: Path) -> None:
    missing = error("404 Not Found", "no such path")
    with Hostile(missing, models=missing) as server:
        run = certify(server.url, f"--out={tmp_path / 'r'}")

    assert run.returncode == NOT_MEASURED
    assert "404" in sentence(run)


def test_a_url_without_v1(tmp_path: Path) -> None:
    with Hostile(fixed(reply(json.dumps(COMPLETION).encode()))) as server:
        run = certify(server.url.removesuffix("/v1"), f"--out={tmp_path / 'r'}")

    assert run.returncode == USAGE
    assert f"{server.url} has" in sentence(run)


def test_an_unknown_model(tmp_path: Path) -> None:
    with Hostile("html") as server:
        run = certify(server.url, "--model=kimi-k3.1-por", f"--out={tmp_path / 'r'}")

    assert run.returncode == USAGE
    assert "did you mean 'kimi-k3.1-pro'?" in sentence(run)


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ("html", "web page"),
        ("silent", "no byte"),
        ("dripping", "not complete"),
        ("endless", "stopped after"),
        ("one_long_line", "stopped after"),
        ("gzip_bomb", "stopped after"),
        ("content_length_too_long", "ended early"),
        ("content_length_too_short", "not a readable HTTP reply"),
        ("invalid_utf8", "not JSON"),
        ("nan", "not JSON"),
        ("empty_body", "not JSON"),
        ("closes_at_once", "closed"),
        ("not_http", "not a readable HTTP reply"),
    ],
)
def test_a_hostile_server_is_told_at_once(behaviour: str, told: str, tmp_path: Path) -> None:
    with Hostile(behaviour) as server:
        run = certify(target(tmp_path, server.url), f"--out={tmp_path / 'r'}")

    assert run.returncode == NOT_MEASURED
    assert told in sentence(run)


@pytest.mark.parametrize("behaviour", sorted(BEHAVIOURS))
def test_a_server_that_turns_hostile_ends_the_claims_and_not_the_run(behaviour: str, tmp_path: Path) -> None:
    with Hostile(behaviour, well_until=1) as server:
        run = certify(
            target(tmp_path, server.url),
            "--suite=protocol/usage",
            "--suite=protocol/invariants",
            f"--out={tmp_path / 'r'}",
        )
    card = json.loads((tmp_path / "r" / "scorecard.json").read_text())

    assert run.returncode in (1, NOT_MEASURED), run.stderr
    assert card["totals"]["verdicts"].get("error", 0) == 0
    assert card["outcome"] != "certified"


def test_memory_stays_bounded(tmp_path: Path) -> None:
    measure = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], capture_output=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    for behaviour in ("one_long_line", "endless", "gzip_bomb"):
        with Hostile(behaviour, well_until=1) as server:
            words = [target(tmp_path, server.url), "--suite=protocol/usage", f"--out={tmp_path / behaviour}"]
            command = [sys.executable, "-c", measure, sys.executable, "-m", "kimi_eval", "certify", *words]
            run = subprocess.run(command, capture_output=True, text=True, check=True)

        assert int(run.stdout) / 1024 < 600, behaviour  # MB: several such replies at once, each stopped at its cap


# --- files and names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "base_url: http://h/v1\nhardwre: {sku: H200}\n",
            "target.yaml:2: 'hardwre' is not a known key; did you mean 'hardware'?",
        ),
        ("base_url: http://h/v1\nhardware:\n  sku: H200\n  cuont: 8\n", "target.yaml:4: 'hardware.cuont'"),
        ("base_url: http://h/v1\nlimits: {concurrency: many}\n", "target.yaml:2: limits.concurrency"),
        ("model: kimi\n", "'base_url' is missing"),
        ("base_url: http://h/v1\napi_key: sk-123456\n", "target.yaml:2: a key does not belong into a file"),
        ("base_url: [unclosed\n", "not YAML"),
        ("- a\n- b\n", "a target file is a mapping"),
        ("base_url: h\n", "neither an http(s) URL"),
        ("base_url: http://h/v1\nprofile: vlm\n", "did you mean 'vllm'?"),
    ],
)
def test_a_target_file_with_a_mistake(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "target.yaml"
    path.write_text(text)
    run = certify(str(path), f"--out={tmp_path / 'r'}")

    assert run.returncode == USAGE
    assert told in sentence(run)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--suite=tools/tool_chioce"], "did you mean 'tools/tool_choice'?"),
        (["--profile=moonshoot", "http://127.0.0.1:9/v1"], "did you mean 'moonshot'?"),
        (["--fault=none_still_call"], "did you mean 'none_still_calls'?"),
        (["--fault=none_still_calls", "http://127.0.0.1:9/v1"], "leave TARGET away"),
        (["--header=nonsense", "http://127.0.0.1:9/v1"], "Name: value"),
        (["--resume=/no/such/run"], "holds no run"),
    ],
)
def test_a_wrong_name(words: list[str], told: str, tmp_path: Path) -> None:
    run = certify(*words, *([] if "--resume" in words[0] else [f"--out={tmp_path / 'r'}"]))

    assert run.returncode == USAGE
    assert told in sentence(run)


def test_an_unknown_check_to_explain() -> None:
    command = [sys.executable, "-m", "kimi_eval", "explain", "tools/tool_choice/required_force_a_call"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert run.returncode == USAGE
    assert "did you mean 'tools/tool_choice/required_forces_a_call'?" in sentence(run)


def test_an_out_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = certify(f"--out={tmp_path / 'file' / 'r'}")

    assert run.returncode == USAGE
    assert "cannot be written" in sentence(run)


def test_an_out_folder_that_holds_a_run_and_a_run_of_other_suites(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    certify("--suite=protocol/models", f"--out={folder}")
    again = certify("--suite=protocol/models", f"--out={folder}")
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "suite_version": "0.0.1+000000000000"}))
    other = certify(f"--resume={folder}")

    assert (again.returncode, other.returncode) == (USAGE, USAGE)
    assert "already holds a run" in sentence(again)
    assert "was made with suites 0.0.1" in sentence(other)


# --- interruption and secrets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_everything_and_says_how_to_go_on(how: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with SimulatedDeployment(max_model_len=WINDOW, seconds_per_frame=0.02) as server:
        command = [sys.executable, "-m", "kimi_eval", "certify", server.base_url, "--suite=tools", f"--out={folder}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while server.requests_seen < 60:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(how)
        said = process.communicate(timeout=30)[1]
    card = json.loads((folder / "scorecard.json").read_text())

    assert process.returncode == NOT_MEASURED
    assert f"--resume {folder}" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert card["run"]["interrupted"].startswith("interrupted")
    assert list((folder / "exchanges").glob("*.gz"))


def test_a_key_is_nowhere(tmp_path: Path) -> None:
    echo = dict(
        COMPLETION,
        choices=[
            {
                "index": 0,
                "message": {"role": "assistant", "content": f"key {SECRET} and header s3cret-header"},
                "finish_reason": "stop",
            }
        ],
    )
    folder = tmp_path / "r"
    behaviour = fixed(reply(json.dumps(echo).encode(), more=f"X-Echo: Bearer {SECRET}\r\n"))
    with Hostile(behaviour) as server:
        run = certify(
            server.url,
            "--suite=protocol/usage",
            "--suite=protocol/invariants",
            "--suite=conversation/roles",
            "--header=X-Tenant: s3cret-header",
            f"--out={folder}",
            key=SECRET,
        )
        one = next(path for path in (folder / "exchanges").glob("*.gz") if "preflight" not in path.name)
        curl = subprocess.run(
            [sys.executable, "-m", "kimi_eval", "replay", str(folder), one.name.removesuffix(".gz"), "--curl"],
            env={**os.environ, "KIMI_API_KEY": SECRET},
            capture_output=True,
            text=True,
            check=True,
        )
    everything = [run.stdout, run.stderr, curl.stdout]
    for path in folder.rglob("*"):
        if path.is_file():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            everything.append(data.decode("utf-8", "replace"))

    assert len(everything) > 8
    assert not [text[:200] for text in everything if SECRET in text or "s3cret-header" in text]
    assert "$KIMI_API_KEY" in curl.stdout
