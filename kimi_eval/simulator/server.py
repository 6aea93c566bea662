"""Simulated deployment: an HTTP server on loopback that behaves as the contract says, bent by at most one fault."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from aiohttp import web

from kimi_eval.fault import Fault
from kimi_eval.simulator.connection import Connection
from kimi_eval.simulator.oracle import Oracle
from kimi_eval.simulator.pipeline import EMPTY, Pipeline
from kimi_eval.simulator.request import Request
from kimi_eval.simulator.rules.rule import Refusal
from kimi_eval.simulator.variant import VARIANTS

NAME = "kimi-eval-simulator"  # Says what it is in every response, whatever a fault does to the rest.
_METHOD = {"/v1/chat/completions": "POST", "/v1/models": "GET", "/health": "GET", "/v1/health": "GET"}
LARGEST_BODY = 256 * 2**20  # Bytes; a window of a million tokens in JSON takes about 8 MB, ten images the rest.


def _is_news(record: logging.LogRecord) -> bool:
    """A client that leaves, as some checks do on purpose, is no news."""
    return not (record.exc_info and isinstance(record.exc_info[1], ConnectionError | web.RequestPayloadError))


_LOG = logging.getLogger("kimi_eval.simulator")
_LOG.addFilter(_is_news)


class SimulatedDeployment:
    """A server in a thread of its own, with its own event loop; a context manager.

    `seconds_per_frame` paces streams, `accuracy` is the share of the oracle's items that are answered right.
    """

    def __init__(
        self,
        *,
        variant: str = "a",
        fault: Fault | None = None,
        oracle: Oracle | None = None,
        accuracy: float = 1.0,
        api_key: str | None = None,
        port: int = 0,
        seconds_per_frame: float = 0.0,
        max_model_len: int = 1_048_576,
        seed: int = 0,
    ) -> None:
        self.pipeline = Pipeline(
            variant=VARIANTS[variant],
            fault=fault or EMPTY,
            oracle=oracle,
            accuracy=accuracy,
            api_key=api_key,
            seconds_per_frame=seconds_per_frame,
            window=max_model_len,
            seed=seed,
        )
        self.requests_seen = 0
        self.port = port
        self._thread: threading.Thread | None = None
        self._end: Callable[[], object] | None = None
        self._problem: BaseException | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> Self:
        """Listen; returns once requests are accepted.

        Raises: OSError when the port is taken; whatever else keeps the thread from listening.
        """
        ready = threading.Event()
        self._problem = None
        self._thread = threading.Thread(target=self._run, args=(ready,), name="simulated-deployment", daemon=True)
        self._thread.start()
        ready.wait()
        if self._problem is not None:
            self.stop()
            raise self._problem
        return self

    def stop(self) -> None:
        """Close every connection, hanging ones too, and end the thread."""
        if self._end is not None:
            with contextlib.suppress(RuntimeError):  # The loop has ended by itself.
                self._end()
        if self._thread is not None:
            self._thread.join()
        self._end = self._thread = None

    def serve_forever(self) -> None:
        """Serve until the process is interrupted."""
        if self._thread is None:
            self.start()
        try:
            while self._thread is not None and self._thread.is_alive():
                self._thread.join(0.5)
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, ready: threading.Event) -> None:
        try:
            with asyncio.Runner() as turns:
                turns.run(self._serve(ready))
        except BaseException as problem:
            if ready.is_set():
                raise
            self._problem = problem  # `start` raises it where somebody sees it.
        finally:
            ready.set()  # Whatever happened here, `start` must not wait for ever.

    async def _serve(self, ready: threading.Event) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        runner = web.ServerRunner(web.Server(self._handle, access_log=None, logger=_LOG), shutdown_timeout=0.05)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self.port).start()
            self.port = runner.addresses[0][1]
            self._end = lambda: loop.call_soon_threadsafe(stopped.set)
            ready.set()
            await stopped.wait()
        finally:
            await runner.cleanup()

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        self.requests_seen += 1
        state = self.pipeline.state
        state["in_flight"] += 1
        try:
            request, connection = await self._respond(incoming)
            transport = self.pipeline.fault.hooks.get("transport")
            if transport is not None:
                await transport(request, connection)
            return await _send(incoming, connection)
        except (ConnectionError, asyncio.CancelledError):
            state["abandoned"] += 1
            raise
        finally:
            state["in_flight"] -= 1

    async def _respond(self, incoming: web.BaseRequest) -> tuple[Request, Connection]:
        pipeline, authorization = self.pipeline, incoming.headers.get("Authorization")
        path, method = incoming.path.rstrip("/"), incoming.method
        allowed = _METHOD.get(path)
        if allowed is None:
            missing = f"The requested resource was not found: {incoming.path}"
            return pipeline.error(Refusal(missing, 404, "resource_not_found_error"))
        if method != allowed and (method, allowed) != ("HEAD", "GET"):
            request, connection = pipeline.error(Refusal(f"{method} is not allowed at {path}, only {allowed}", 405))
            connection.headers["Allow"] = allowed
            return request, connection
        if path == "/v1/models":
            return pipeline.models(authorization)
        if path != "/v1/chat/completions":
            return pipeline.request_of({}), Connection.of_json(200, {"status": "ok"})
        try:
            raw = await _body(incoming)
        except web.RequestPayloadError:
            return pipeline.error(Refusal("Invalid request: the body cannot be decoded"))
        if raw is None:
            return pipeline.error(Refusal("Invalid request: the body is too large", 413))
        return pipeline.chat(raw, authorization)


async def _body(incoming: web.BaseRequest) -> bytes | None:
    data = bytearray()
    async for chunk in incoming.content.iter_any():
        data += chunk
        if len(data) > LARGEST_BODY:
            return None
    return bytes(data)


async def _send(incoming: web.BaseRequest, connection: Connection) -> web.StreamResponse:
    response = web.StreamResponse(status=connection.status, headers={"Server": NAME, **connection.headers})
    if not connection.streamed:
        length = sum(map(len, connection.chunks))
        response.content_length = length + connection.extra_length
    await asyncio.sleep(connection.pauses.get(0, 0.0))
    await response.prepare(incoming)
    if incoming.method == "HEAD":  # The length of a body, and never the body.
        return response
    for number, chunk in enumerate(connection.chunks):
        if number == connection.cut_after:
            break
        if number == connection.stall_after:
            await asyncio.sleep(3600)
        if number:
            await asyncio.sleep(connection.pauses.get(number, 0.0))
        if connection.seconds_before_each:
            await asyncio.sleep(connection.seconds_before_each)
        await response.write(chunk)
    if connection.cut_after is not None or connection.extra_length > 0:
        if incoming.transport is not None:
            incoming.transport.close()
        return response
    with contextlib.suppress(ConnectionError):
        await response.write_eof()
    return response
