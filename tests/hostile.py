"""Hostile: servers on loopback that do what no server should, for tests."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

Behaviour = Callable[[asyncio.StreamWriter, dict[str, Any]], Awaitable[None]]

MODELS = {"object": "list", "data": [{"id": "kimi-k3.1-pro", "object": "model", "created": 1, "owned_by": "hostile"}]}
MESSAGE = {"role": "assistant", "content": "ready", "reasoning_content": "Short."}
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "kimi-k3.1-pro",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}


def reply(body: bytes, *, status: str = "200 OK", kind: str = "application/json", more: str = "") -> bytes:
    """The bytes of a whole HTTP reply."""
    # Closed each time: a client that used the connection again just as we close it would see a fault that is not meant.
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n{more}\r\n".encode() + body


def fixed(data: bytes) -> Behaviour:
    """Always the same bytes."""

    async def behave(writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
        writer.write(data)

    return behave


def error(status: str, message: str) -> Behaviour:
    """Always that error."""
    return fixed(
        reply(json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode(), status=status)
    )


async def silent(writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
    """Never answers."""
    await asyncio.sleep(60)


async def dripping(writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
    """One byte a second, of a body that is a thousand bytes long."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
    for _ in range(60):
        await writer.drain()
        await asyncio.sleep(1)
        writer.write(b" ")


async def endless(writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
    """A stream of frames without end."""
    frame = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n' * 200
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(20_000):
        writer.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        await writer.drain()


async def one_long_line(writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
    """100 MB without a line end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000006\r\n\r\ndata: ")
    for _ in range(1000):
        writer.write(b"x" * 100_000)
        await writer.drain()


BOMB = gzip.compress(b"0" * 200_000_000, compresslevel=9)

BEHAVIOURS: dict[str, Behaviour] = {
    "silent": silent,
    "dripping": dripping,
    "endless": endless,
    "one_long_line": one_long_line,
    "gzip_bomb": fixed(reply(BOMB, more="Content-Encoding: gzip\r\n")),
    "content_length_too_long": fixed(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\nConnection: close\r\n\r\n{}"
    ),
    "content_length_too_short": fixed(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"
        + json.dumps(COMPLETION).encode()
    ),
    "invalid_utf8": fixed(reply(json.dumps(COMPLETION).encode().replace(b"ready", b"re\xff\xfey"))),
    "nan": fixed(reply(json.dumps(COMPLETION).encode().replace(b'"created": 1', b'"created": NaN'))),
    "empty_body": fixed(reply(b"")),
    "closes_at_once": fixed(b""),
    "not_http": fixed(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "html": fixed(reply(b"<!doctype html><title>Welcome</title>", kind="text/html")),
}


class Hostile:
    """A server in a thread: ``models`` for GET, ``chat`` for POST; a context manager.

    ``well_until`` chat requests are answered properly before the hostility begins.
    """

    def __init__(
        self,
        chat: Behaviour | str,
        *,
        models: Behaviour | None = None,
        well_until: int = 0,
        prefix: str = "/v1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.chat = BEHAVIOURS[chat] if isinstance(chat, str) else chat
        self.models = models or fixed(reply(json.dumps(MODELS).encode()))
        self.well_until, self.prefix, self.tls = well_until, prefix, tls
        self.chats = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}{self.prefix}"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(5)

    async def _main(self, ready: threading.Event) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._over.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, path, *_ = head.split()
                length = next(
                    (
                        int(line.split(":")[1])
                        for line in head.lower().split("\r\n")
                        if line.startswith("content-length:")
                    ),
                    0,
                )
                body = await reader.readexactly(length)
                request = json.loads(body) if body[:1] == b"{" and body.endswith(b"}") else {}
                if not path.startswith(f"{self.prefix}/"):
                    await error("404 Not Found", "no such path")(writer, request)
                elif method == "GET":
                    await self.models(writer, request)
                elif self.chats < self.well_until:
                    self.chats += 1
                    writer.write(reply(json.dumps(COMPLETION).encode()))
                else:
                    self.chats += 1
                    await self.chat(writer, request)
                    await writer.drain()
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
