"""Wire: the bulk lane. It speaks HTTP itself, keeps every byte with its arrival time, and never repairs anything."""

from __future__ import annotations

import asyncio
import ssl
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp

from kimi_eval import __version__
from kimi_eval.deployment import Deployment
from kimi_eval.transcript import Exchange, Failure, Lane, without_secrets

_TICK = 0.05  # seconds between two looks for idle replies; also how the lag of our own event loop is measured
_LINGER = 2.0  # seconds that a connection may stay open after `data: [DONE]`
_SMALLEST_CAP = 16 << 20  # bytes that any reply may have
_KEPT = 1 << 20  # bytes of a reply that was stopped
_BYTES_A_TOKEN = 2048  # a stream frame of one token, with every optional field, stays well below this
_DONE_TAIL = b"[DONE]\n\n"


@dataclass(slots=True)
class _Watched:
    """A reply that is being read: the watcher ends it when it falls silent."""

    exchange: Exchange
    limit: asyncio.Timeout
    silent_since: float
    why: str = ""


class Wire:
    """A pool of connections to one deployment. Use as an asynchronous context manager.

    ``lags`` are the milliseconds by which our event loop woke late, one for each tick; ``in_flight`` is the number of
    requests that are open now and ``most_in_flight`` the most there were.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.lags: list[float] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._watched: dict[int, _Watched] = {}
        self._secrets = deployment.secrets
        self._headers = {"User-Agent": f"kimi-eval/{__version__}", "Accept-Encoding": "identity"}
        if key := deployment.api_key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._headers |= {name: value.get_secret_value() for name, value in deployment.headers.items()}

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.deployment.timeouts.connect),
            auto_decompress=False,
            skip_auto_headers=("Accept",),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._ticker = asyncio.create_task(self._tick())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ticker.cancel()
        await self._http.close()

    def shown_headers(self, extra: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """The request headers as they may be stored: every value that could be a secret is replaced."""
        secret = {"authorization", *(name.lower() for name in self.deployment.headers)}
        return tuple(
            (name, "(not recorded)" if name.lower() in secret else value)
            for name, value in {**self._headers, **extra}.items()
        )

    async def send(self, exchange: Exchange, extra: Mapping[str, str], *, cut_after: int | None = None) -> None:
        """Sends the request that the exchange describes and fills in the reply. Raises nothing but cancellation.

        ``cut_after`` stops reading, and drops the connection, after that many bytes of the body.
        """
        timeouts = self.deployment.timeouts
        exchange.request_headers = self.shown_headers(extra)
        exchange.started = time.time()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        start = time.perf_counter()
        try:
            async with asyncio.timeout(timeouts.first_byte) as limit:
                await self._converse(exchange, extra, start, limit, cut_after)
        except aiohttp.ClientError as trouble:  # its own timeouts are TimeoutErrors, too
            exchange.failure, exchange.failure_text = _failure(trouble, exchange)
        except TimeoutError:
            watched = self._watched.get(id(exchange))
            exchange.failure = Failure.TIMEOUT
            exchange.failure_text = (watched and watched.why) or (
                f"the reply was not complete after {timeouts.total:g} s"
                if exchange.chunks
                else f"no byte of a reply within {timeouts.first_byte:g} s"
            )
        except (OSError, ValueError, zlib.error) as trouble:
            exchange.failure, exchange.failure_text = _failure(trouble, exchange)
        finally:
            self.in_flight -= 1
            self._watched.pop(id(exchange), None)
            exchange.seconds = time.perf_counter() - start
            if self._secrets:
                exchange.chunks = without_secrets(exchange.chunks, self._secrets)
                exchange.headers = tuple((name, self._clean(value)) for name, value in exchange.headers)

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret.decode(), "*" * len(secret))
        return text

    async def _converse(
        self,
        exchange: Exchange,
        extra: Mapping[str, str],
        start: float,
        limit: asyncio.Timeout,
        cut_after: int | None,
    ) -> None:
        clock = time.perf_counter
        async with self._http.request(
            exchange.method,
            exchange.url,
            data=exchange.body or None,
            headers={**self._headers, **extra},
            proxy=self.deployment.proxy,
            allow_redirects=False,
        ) as response:
            exchange.status = response.status
            exchange.headers = tuple(
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers
            )
            decode = _decoder(response.headers.get("Content-Encoding", ""))
            cap, size = _cap(exchange.body), 0
            keep = exchange.chunks.append
            async for data in response.content.iter_any():
                now = clock() - start
                if decode is not None:
                    data = decode.decompress(data, cap - size + 1)
                    if decode.unconsumed_tail:
                        size = cap + 1
                if not exchange.chunks:
                    loop = asyncio.get_running_loop()
                    limit.reschedule(loop.time() + self.deployment.timeouts.total - now)
                    self._watched[id(exchange)] = _Watched(exchange, limit, start)
                keep((now, data))
                size += len(data)
                if size > cap:
                    exchange.failure = Failure.TOO_LARGE
                    exchange.failure_text = f"reading stopped after {cap:,} bytes of one reply, the first are kept"
                    exchange.chunks = _first_bytes(exchange.chunks)
                    response.close()
                    return
                if cut_after is not None and size >= cut_after:
                    exchange.cut_by_us = True
                    response.close()
                    return
                if data.endswith(_DONE_TAIL):
                    await self._after_done(exchange, response, start)
                    return

    async def _after_done(self, exchange: Exchange, response: aiohttp.ClientResponse, start: float) -> None:
        try:
            async with asyncio.timeout(_LINGER):
                async for data in response.content.iter_any():
                    exchange.chunks.append((time.perf_counter() - start, data))
                    if len(exchange.chunks[-1][1]) > _SMALLEST_CAP:
                        break
        except TimeoutError:
            exchange.lingered = True
            response.close()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        idle = self.deployment.timeouts.idle
        while True:
            due = loop.time() + _TICK
            await asyncio.sleep(_TICK)
            self.lags.append((loop.time() - due) * 1000)
            now = time.perf_counter()
            for watched in list(self._watched.values()):
                silent = now - watched.silent_since - watched.exchange.chunks[-1][0]
                if silent > idle and not watched.why:
                    watched.why = f"the stream fell silent for {idle:g} s"
                    watched.limit.reschedule(loop.time())


def _cap(body: bytes) -> int:
    """The most bytes a reply may have: enough for every token that the request allows, one a frame."""
    allowed = 0
    for name in (b'"max_completion_tokens":', b'"max_tokens":'):
        _, found, rest = body.partition(name)
        digits = rest[:12].lstrip().split(b",")[0].split(b"}")[0]
        if found and digits.isdigit():
            allowed = max(allowed, int(digits))
    return _SMALLEST_CAP + min(allowed, 1 << 20) * _BYTES_A_TOKEN


def _first_bytes(chunks: list[tuple[float, bytes]]) -> list[tuple[float, bytes]]:
    """The reads up to a megabyte: enough to see what a runaway reply is made of."""
    kept, size = [], 0
    for seconds, data in chunks:
        kept.append((seconds, data[: _KEPT - size]))
        size += len(data)
        if size >= _KEPT:
            break
    return kept


def _decoder(coding: str) -> zlib._Decompress | None:
    """A bounded decoder for a coding that came although identity was asked for."""
    return zlib.decompressobj(wbits=47) if coding.lower() in ("gzip", "deflate", "x-gzip") else None


def _failure(trouble: Exception, exchange: Exchange) -> tuple[Failure, str]:
    if isinstance(trouble, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError, ssl.SSLError)):
        return Failure.TLS, f"TLS failed: {_plain(trouble)}"
    if isinstance(trouble, aiohttp.ClientConnectorDNSError):
        return Failure.CONNECT, "no such host"
    if isinstance(trouble, aiohttp.ConnectionTimeoutError):
        return Failure.CONNECT, "no connection, TLS included, in the time that timeouts.connect allows"
    if isinstance(trouble, aiohttp.ClientConnectorError):
        return Failure.CONNECT, _plain(trouble)
    if isinstance(trouble, aiohttp.ClientPayloadError):
        read = len(exchange.raw)
        return Failure.CLOSED, f"the body ended early, after {read:,} bytes ({_plain(trouble)})"
    if isinstance(trouble, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError)):
        return Failure.CLOSED, f"the connection was closed ({_plain(trouble)})"
    return Failure.MALFORMED, f"not a readable HTTP reply ({_plain(trouble)})"


def _plain(trouble: BaseException) -> str:
    """The text of an exception on one line."""
    os_error = getattr(trouble, "os_error", trouble)
    text = getattr(os_error, "strerror", None) or str(os_error) or type(trouble).__name__
    return " ".join(text.split())[:200]


def new_exchange(
    id: str, case: str, method: str, url: str, body: bytes, *, attempt: int = 1, hostile: bool = False
) -> Exchange:
    """An exchange of the bulk lane that has not been sent yet."""
    return Exchange(
        id=id,
        case=case,
        lane=Lane.BULK,
        method=method,
        url=url,
        request_headers=(),
        body=body,
        attempt=attempt,
        hostile=hostile,
    )
