"""Compares our bulk lane, full recording on, with the plain openai client and a bare aiohttp loop; prints ratios.

usage: python benchmarks/compare.py [--json]
All three talk to one local mock server in one run, each in a process of its own. Client and server are pinned to
different cores where there are two. Absolute figures belong to the machine; the ratios are what the project promises:
samples a second >= 2 times the client and >= 0.6 times the bare loop, <= 3 us of CPU a stream chunk, time to first
token within 10 % of the true one at 64 streams of 200 tokens a second, `kimi-eval --help` within 0.3 s. The true time
is the server's: each stream says when its first frame went out.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SAMPLES, IN_FLIGHT, STREAMS = 2000, 64, 64
BODY = {"model": "kimi-k3.1-pro", "messages": [{"role": "user", "content": "What is 6 times 7?"}]}
CONTENDERS = ("ours", "client", "bare")

Ask = Callable[[bool], Awaitable[float]]  # streamed? -> first token: seconds measured over true seconds


@contextlib.contextmanager
def mock_server() -> Iterator[str]:
    """The mock server's address for as long as the block runs."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "mock_server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    if (os.cpu_count() or 1) > 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process.pid, {1})
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.stdin.close()
        process.wait(5)


@contextlib.asynccontextmanager
async def ours(base: str, folder: Path) -> Any:
    """The bulk lane as a run uses it: limiter, retries, recording, metering."""
    from kimi_eval.deployment import Capabilities, Deployment
    from kimi_eval.journal import Journal
    from kimi_eval.profile import named
    from kimi_eval.runner import Runner, Settings

    runner = Runner(
        Deployment(base_url=base), named("generic"), Capabilities(), Journal(folder), Settings(concurrency=IN_FLIGHT)
    )
    runner.limiter.capacity = IN_FLIGHT  # the slow start is not what is measured
    number = 0

    async def ask(streamed: bool) -> float:
        nonlocal number
        number += 1
        reply = await runner.exchange(
            f"benchmark/{number}",
            "POST",
            "/chat/completions",
            {**BODY, "stream": streamed},
            headers={},
            hostile=False,
            cut_after=None,
            shared=False,
        )
        assert reply.exchange.answered
        if not streamed:
            return 0.0
        first = reply.exchange.first_byte_seconds or 0.0
        sent_at: float = reply.frames[0].data.get("sent_at", 0.0)
        return first / (sent_at - reply.exchange.started)

    async with runner.connected():
        yield ask


@contextlib.asynccontextmanager
async def client(base: str, folder: Path) -> Any:
    """The plain openai client, nothing recorded."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=base, api_key="none", max_retries=0) as openai:

        async def ask(streamed: bool) -> float:
            start = time.perf_counter()
            if not streamed:
                await openai.chat.completions.create(**BODY)  # type: ignore[call-overload]
                return 0.0
            first, sent_at, started = 0.0, 0.0, time.time()
            async for chunk in await openai.chat.completions.create(**BODY, stream=True):  # type: ignore[call-overload]
                first = first or time.perf_counter() - start
                sent_at = sent_at or (chunk.model_extra or {}).get("sent_at", 0.0)
            return first / (sent_at - started)

        yield ask


@contextlib.asynccontextmanager
async def bare(base: str, folder: Path) -> Any:
    """An aiohttp loop that reads and parses, and does nothing else."""
    import aiohttp
    import orjson

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:

        async def ask(streamed: bool) -> float:
            start, first, rest, sent_at, started = time.perf_counter(), 0.0, b"", 0.0, time.time()
            async with http.post(f"{base}/chat/completions", data=orjson.dumps({**BODY, "stream": streamed})) as reply:
                if not streamed:
                    orjson.loads(await reply.read())
                    return 0.0
                async for data in reply.content.iter_any():
                    first = first or time.perf_counter() - start
                    *events, rest = (rest + data).split(b"\n\n")
                    for event in events:
                        if not event.endswith(b"[DONE]"):
                            sent_at = sent_at or orjson.loads(event[6:]).get("sent_at", 0.0)
            return first / (sent_at - started)

        yield ask


async def _crowd(ask: Ask, count: int, in_flight: int, streamed: bool) -> list[float]:
    waiting = iter(range(count))
    results: list[float] = []

    async def work() -> None:
        for _ in waiting:
            results.append(await ask(streamed))

    await asyncio.gather(*(work() for _ in range(in_flight)))
    return results


async def measure(name: str, server: str) -> dict[str, float]:
    """All figures of one contender."""
    contender = {"ours": ours, "client": client, "bare": bare}[name]
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        # A folder for each part: what a folder holds already is not asked again.
        async with contender(f"{server}/whole/v1", Path(folder, "whole")) as ask:
            await _crowd(ask, IN_FLIGHT, IN_FLIGHT, False)
            start, cpu = time.perf_counter(), time.process_time()
            await _crowd(ask, SAMPLES, IN_FLIGHT, False)
            figures["samples_a_second"] = SAMPLES / (time.perf_counter() - start)
            figures["cpu_ms_a_sample"] = (time.process_time() - cpu) / SAMPLES * 1000
        async with contender(f"{server}/stream/v1", Path(folder, "stream")) as ask:
            await _crowd(ask, STREAMS, STREAMS, True)
            firsts = sorted(await _crowd(ask, STREAMS * 10, STREAMS, True))
            figures["first_token_p50"] = statistics.median(firsts)
            figures["first_token_p99"] = firsts[int(0.99 * len(firsts))]
        async with contender(f"{server}/flood/v1", Path(folder, "flood")) as ask:
            best = float("inf")
            for _ in range(3):
                cpu = time.process_time()
                await ask(True)
                best = min(best, time.process_time() - cpu)
            figures["cpu_us_a_chunk"] = best / 30_000 * 1e6
    return figures


def _help_seconds() -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "kimi_eval", "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    """Measures every contender in turn and prints the figures and what was promised of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--server", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contender:
        if (os.cpu_count() or 1) > 1 and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {0})
        print(json.dumps(asyncio.run(measure(given.contender, given.server))))
        return 0
    with mock_server() as server:
        figures = {}
        for name in CONTENDERS:
            command = [sys.executable, __file__, "--contender", name, "--server", server]
            figures[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    promises = _promises(figures)
    if given.json:
        print(json.dumps({"figures": figures, "promises": promises}, indent=1))
    else:
        for figure in figures["ours"]:
            print(f"{figure:<20}" + "  ".join(f"{name} {figures[name][figure]:10.2f}" for name in CONTENDERS))
        for promise in promises:
            print(f"{'kept  ' if promise['kept'] else 'BROKEN'} {promise['promise']}: {promise['value']}")
    return int(not all(promise["kept"] for promise in promises))


def _promises(figures: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    we, they, floor = figures["ours"], figures["client"], figures["bare"]
    to_client = we["samples_a_second"] / they["samples_a_second"]
    to_bare = we["samples_a_second"] / floor["samples_a_second"]
    late = we["first_token_p50"] - 1
    help_seconds = _help_seconds()
    return [
        {"promise": "samples/s, times the client, >= 2", "value": f"{to_client:.2f}", "kept": to_client >= 2},
        {"promise": "samples/s, times the bare loop, >= 0.6", "value": f"{to_bare:.2f}", "kept": to_bare >= 0.6},
        {
            "promise": "CPU a stream chunk, us, <= 3",
            "value": f"{we['cpu_us_a_chunk']:.2f}",
            "kept": we["cpu_us_a_chunk"] <= 3,
        },
        {"promise": "first token late by, <= 10 %", "value": f"{late:.1%}", "kept": abs(late) <= 0.1},
        {"promise": "`kimi-eval --help`, s, < 0.3", "value": f"{help_seconds:.2f}", "kept": help_seconds < 0.3},
    ]


if __name__ == "__main__":
    sys.exit(main())
