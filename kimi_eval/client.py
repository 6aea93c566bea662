"""Client: the official `openai` client over a recording transport, for claims about what a user's client reads."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from kimi_eval.reply import REASONING_FIELDS
from kimi_eval.transcript import Exchange, Failure, without_secrets
from kimi_eval.wire import Wire

_LONGEST_REPLY = 64 << 20  # bytes; the client itself has no bound


@dataclass(slots=True)
class ClientReading:
    """What the official client made of a reply; `problem` is the exception it raised instead, in one line."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str | None, str]] = field(default_factory=list)  # (name, arguments)
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    problem: str = ""


class _Recording(httpx2.AsyncBaseTransport):
    """Passes everything through and notes it on the exchange."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, exchange: Exchange) -> None:
        self.inner = inner
        self.exchange = exchange
        self.start = time.perf_counter()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.exchange.body = await request.aread()
        self.start = time.perf_counter()
        response = await self.inner.handle_async_request(request)
        self.exchange.status = response.status_code
        self.exchange.headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw
        )
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        response.stream = _RecordedStream(stream, self)
        return response

    async def aclose(self) -> None:
        await self.inner.aclose()


class _RecordedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, recording: _Recording) -> None:
        self.inner = inner
        self.recording = recording

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for data in self.inner:
            size += len(data)
            self.recording.exchange.chunks.append((time.perf_counter() - self.recording.start, data))
            if size > _LONGEST_REPLY:
                self.recording.exchange.failure = Failure.TOO_LARGE
                raise httpx2.ReadError(f"more than {_LONGEST_REPLY:,} bytes of one reply")
            yield data

    async def aclose(self) -> None:
        await self.inner.aclose()


@cache
def _trust() -> ssl.SSLContext:
    """The certificates that this machine trusts, loaded once: each time costs 50 ms of a busy event loop."""
    return ssl.create_default_context()


async def read_with_client(wire: Wire, exchange: Exchange, body: dict[str, Any]) -> ClientReading:
    """Has the official client, retries off, send the body and read the reply; the bytes go onto the exchange."""
    deployment = wire.deployment
    exchange.request_headers = wire.shown_headers({"User-Agent": "openai-python"})
    exchange.started = time.time()
    timeouts = deployment.timeouts
    verify = _trust() if deployment.base_url.startswith("https:") else False
    transport = _Recording(httpx2.AsyncHTTPTransport(verify=verify, proxy=deployment.proxy), exchange)
    client = AsyncOpenAI(
        base_url=deployment.base_url,
        api_key=deployment.api_key or "none",
        max_retries=0,
        default_headers={name: value.get_secret_value() for name, value in deployment.headers.items()},
        timeout=httpx2.Timeout(timeouts.total, connect=timeouts.connect, read=timeouts.first_byte),
        http_client=DefaultAsyncHttpxClient(transport=transport),
    )
    reading = ClientReading()
    start = time.perf_counter()
    try:
        async with client:
            if body.get("stream"):
                await _read_stream(client, body, reading)
            else:
                await _read_whole(client, body, reading)
    except httpx2.TransportError as trouble:
        exchange.failure, exchange.failure_text = Failure.CLOSED, f"{type(trouble).__name__}: {trouble}"
    except Exception as trouble:  # whatever the client raises at a user is the answer to this check
        reading.problem = f"{type(trouble).__name__}: {trouble}"[:300]
        if exchange.status is None:
            exchange.failure, exchange.failure_text = Failure.CLOSED, reading.problem
    exchange.seconds = time.perf_counter() - start
    exchange.chunks = without_secrets(exchange.chunks, deployment.secrets)
    return reading


async def _read_whole(client: AsyncOpenAI, body: dict[str, Any], reading: ClientReading) -> None:
    completion = await client.chat.completions.create(**body)
    choice = completion.choices[0]
    reading.text = choice.message.content or ""
    reading.reasoning = _reasoning(choice.message)
    reading.finish_reason = choice.finish_reason
    for call in choice.message.tool_calls or ():
        if call.type == "function":
            reading.calls.append((call.function.name, call.function.arguments))
    reading.prompt_tokens = completion.usage.prompt_tokens if completion.usage else None


async def _read_stream(client: AsyncOpenAI, body: dict[str, Any], reading: ClientReading) -> None:
    calls: dict[int, list[str]] = {}
    async for chunk in await client.chat.completions.create(**body):
        if chunk.usage:
            reading.prompt_tokens = chunk.usage.prompt_tokens
        for choice in chunk.choices:
            delta = choice.delta
            reading.text += delta.content or ""
            reading.reasoning += _reasoning(delta)
            reading.finish_reason = choice.finish_reason or reading.finish_reason
            for piece in delta.tool_calls or ():
                call = calls.setdefault(piece.index, ["", ""])
                if piece.function:
                    call[0] += piece.function.name or ""
                    call[1] += piece.function.arguments or ""
    reading.calls = [(name, arguments) for name, arguments in calls.values()]


def _reasoning(part: Any) -> str:
    """The client has no field of its own for reasoning; unknown fields stay readable as extras."""
    extra = part.model_extra or {}
    return next((extra[name] for name in REASONING_FIELDS if isinstance(extra.get(name), str)), "")
