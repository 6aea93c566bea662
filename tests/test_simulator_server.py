"""Server: the simulated deployment starts, ends and answers on its paths, whoever leaves in the middle."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web

from kimi_eval.fault import STAGES, Fault
from kimi_eval.simulator import SimulatedDeployment
from kimi_eval.simulator.answer import Answer
from kimi_eval.simulator.connection import Connection
from kimi_eval.simulator.pipeline import Pipeline
from kimi_eval.simulator.variant import VARIANTS

HELLO = {"model": "kimi-k3.1-pro", "messages": [{"role": "user", "content": "What is 1 + 1?"}]}
LONG = {**HELLO, "messages": [{"role": "user", "content": "Count from 1 to 2000"}], "stream": True}


@pytest.fixture
def server() -> Iterator[SimulatedDeployment]:
    with SimulatedDeployment() as running:
        yield running


def asked(
    server: SimulatedDeployment, method: str, path: str, body: Any = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.status, response.headers, response.read()
    connection.close()
    return answer


def request_bytes(body: Any) -> bytes:
    data = json.dumps(body).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(data) + data


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 5
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


# --- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/chat", "/v1/models/kimi-k3.1-pro", "/chat/completions"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_path_is_not_found(server: SimulatedDeployment, method: str, path: str) -> None:
    status, headers, body = asked(server, method, path, HELLO if method == "POST" else None)

    assert (status, headers["Content-Type"]) == (404, "application/json")
    assert json.loads(body)["error"]["type"] == "resource_not_found_error"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("PUT", "/v1/chat/completions", "POST"),
        ("POST", "/v1/models", "GET"),
        ("DELETE", "/health", "GET"),
    ],
)
def test_a_path_says_which_method_it_takes(server: SimulatedDeployment, method: str, path: str, allowed: str) -> None:
    status, headers, body = asked(server, method, path)

    assert (status, headers["Allow"]) == (405, allowed)
    assert set(json.loads(body)["error"]) == {"message", "type"}


@pytest.mark.parametrize(
    ("path", "expected"), [("/v1/models", 200), ("/health", 200), ("/v1/chat/completions", 405), ("/nowhere", 404)]
)
def test_head_is_answered_without_a_body(server: SimulatedDeployment, path: str, expected: int) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        line.sendall(f"HEAD {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        raw = b"".join(iter(lambda: line.recv(65_536), b""))

    assert raw.startswith(b"HTTP/1.1 %d " % expected)
    assert raw.endswith(b"\r\n\r\n")


# --- clients that leave -----------------------------------------------------------------------------------------------


def test_a_client_that_leaves_is_no_news(
    server: SimulatedDeployment, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for sent, read in ((request_bytes(LONG), 50), (request_bytes(LONG), 0), (request_bytes(LONG)[:-9], 0), (b"PO", 0)):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
            line.sendall(sent)
            line.recv(read)
    state = server.pipeline.state

    assert eventually(lambda: state["in_flight"] == 0 and state["abandoned"] >= 1)
    assert asked(server, "POST", "/v1/chat/completions", HELLO)[0] == 200
    assert capfd.readouterr() == ("", "")
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []


def test_a_bug_of_our_own_is_news(caplog: pytest.LogCaptureFixture) -> None:
    def broken(request: Any, answer: Any) -> Any:
        raise LookupError("a hook that breaks")

    with SimulatedDeployment(fault=Fault("broken", "It breaks.", "", "test", (), {"answer": broken})) as server:
        assert asked(server, "POST", "/v1/chat/completions", HELLO)[0] == 500
    assert "a hook that breaks" in caplog.text


# --- start and end ----------------------------------------------------------------------------------------------------


def test_it_starts_at_once_and_ends_at_once_even_with_a_reader_that_hangs() -> None:
    began = time.perf_counter()
    server = SimulatedDeployment(seconds_per_frame=5).start()
    started = time.perf_counter() - began
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        line.sendall(request_bytes(LONG))
        assert eventually(lambda: server.requests_seen == 1)
        began = time.perf_counter()
        server.stop()
        ended = time.perf_counter() - began

    assert started < 0.5
    assert ended < 2.0


def test_it_can_be_started_again_and_ended_twice() -> None:
    server = SimulatedDeployment()
    for _ in range(2):
        server.start()
        assert asked(server, "GET", "/health")[0] == 200
        server.stop()
        server.stop()


def test_a_taken_port_is_told_and_the_server_can_be_tried_again(server: SimulatedDeployment) -> None:
    second = SimulatedDeployment(port=server.port)
    with pytest.raises(OSError, match="address already in use"):
        second.start()
    server.stop()

    with second:
        assert asked(second, "GET", "/health")[0] == 200


@pytest.mark.parametrize("trouble", [OSError(24, "Too many open files"), MemoryError(), SystemExit(1)], ids=repr)
def test_starting_never_hangs_when_the_thread_dies(monkeypatch: pytest.MonkeyPatch, trouble: BaseException) -> None:
    async def dies(runner: web.ServerRunner) -> None:
        raise trouble

    monkeypatch.setattr(web.ServerRunner, "setup", dies)

    with pytest.raises(type(trouble)):
        SimulatedDeployment().start()


def test_starting_never_hangs_without_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("asyncio.events.new_event_loop", none_left)

    with pytest.raises(OSError, match="Too many open files"):
        SimulatedDeployment().start()


# --- faults and cache -------------------------------------------------------------------------------------------------

# What a hook is given at each stage, and whether it takes a whole reply, a stream, a refusal or a list of models.
GIVEN: dict[str, tuple[str, type]] = {
    "body": ("whole", dict),
    "rules": ("whole", type(None)),
    "prompt": ("whole", list),
    "answer": ("whole", Answer),
    "usage": ("whole", dict),
    "headers": ("whole", dict),
    "whole": ("whole", dict),
    "frames": ("stream", list),
    "wire": ("stream", list),
    "error": ("refusal", tuple),
    "models": ("models", dict),
    "transport": ("whole", Connection),
}


def test_every_stage_is_known_here() -> None:
    assert tuple(GIVEN) == STAGES


@pytest.mark.parametrize("stage", GIVEN)
def test_the_hook_of_each_stage_is_called_once_with_what_it_bends(stage: str) -> None:
    given: list[Any] = []

    def hook(request: Any, value: Any = None) -> Any:
        given.append(value)
        return () if stage == "rules" else value

    async def transport(request: Any, connection: Connection) -> None:
        given.append(connection)

    fault = Fault("bent", "It is bent.", "", "test", (), {stage: transport if stage == "transport" else hook})
    kind, expected = GIVEN[stage]
    with SimulatedDeployment(fault=fault) as server:
        if kind == "models":
            status = asked(server, "GET", "/v1/models")[0]
        else:
            more = {"stream": {"stream": True}, "refusal": {"n": 2}}.get(kind, {})
            status = asked(server, "POST", "/v1/chat/completions", HELLO | more)[0]

    assert status == (400 if kind == "refusal" else 200)
    assert [type(value) for value in given] == [expected]


def cached(pipeline: Pipeline, text: str) -> tuple[int, int]:
    """Cached and all prompt tokens of one request."""
    body = {**HELLO, "messages": [{"role": "user", "content": text}], "reasoning_effort": "low"}
    usage = json.loads(b"".join(pipeline.chat(json.dumps(body).encode())[1].chunks))["usage"]
    return usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]


def test_the_cache_serves_whole_blocks_that_two_prompts_share() -> None:
    pipeline = Pipeline(variant=VARIANTS["a"])
    shared = "word " * 600
    first, again = cached(pipeline, shared + "one"), cached(pipeline, shared + "one")
    other, foreign = cached(pipeline, shared + "two " * 300), cached(pipeline, "Start. " + shared)

    assert first[0] == 0
    assert again[0] == again[1] // 256 * 256
    assert other[0] == 512  # The third block of the first prompt was never whole.
    assert foreign[0] == 0


def test_a_deployment_without_a_prefix_cache_counts_none() -> None:
    pipeline = Pipeline(variant=VARIANTS["b"])

    assert [cached(pipeline, "word " * 600)[0] for _ in range(2)] == [0, 0]


def test_usage_headers_say_what_the_usage_says(server: SimulatedDeployment) -> None:
    _, headers, body = asked(server, "POST", "/v1/chat/completions", HELLO)

    assert headers["X-Msh-Usage-Prompt-Tokens"] == str(json.loads(body)["usage"]["prompt_tokens"])
    assert headers["X-Msh-Usage-Cached-Tokens"] == "0"
