"""Mock server: one fixed answer after a fixed delay, or a stream at a fixed rate; a process of its own.

usage: python mock_server.py   prints its port; ends when standard input closes.
Raw asyncio and bytes that were encoded once, so that it is several times faster than every client measured against it.
POST /whole/v1/chat/completions answers after 50 ms. POST /stream/v1/chat/completions streams FRAMES frames, one every
5 ms, the first after 50 ms. POST /flood/v1/chat/completions sends the same frames without a pause, many in one write.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

DELAY = 0.050  # seconds before the first byte
STEP = 0.005  # seconds between two frames: 200 tokens a second
FRAMES = 40
FLOOD = 30_000

_COMMON = {"id": "chatcmpl-0123456789abcdef01234567", "created": 1, "model": "kimi-k3.1-pro"}
_USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
_MESSAGE = {"role": "assistant", "content": "The answer is 42.", "reasoning_content": "6 times 7."}
_WHOLE = json.dumps(
    {
        **_COMMON,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": _MESSAGE, "finish_reason": "stop"}],
        "usage": _USAGE,
    }
).encode()


def _frame(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = json.dumps({**_COMMON, "object": "chat.completion.chunk", "choices": [choice]}).encode()
    return b"data: " + data + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


_FIRST = _frame({"role": "assistant", "content": ""})
_TOKEN = _frame({"content": "word "})
_LAST = _frame({}, "stop") + b"data: [DONE]\n\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_WHOLE) + _WHOLE


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            start = loop.time()
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            if head.startswith(b"POST /whole"):
                await asyncio.sleep(start + DELAY - loop.time())
                writer.write(_REPLY)
            elif head.startswith(b"POST /flood"):
                block = _chunk(_TOKEN) * 100
                writer.write(_HEAD + _chunk(_FIRST))
                for _ in range(FLOOD // 100):
                    writer.write(block)
                    await writer.drain()
                writer.write(_chunk(_LAST) + b"0\r\n\r\n")
            else:
                await asyncio.sleep(start + DELAY - loop.time())
                # When it really went out, which a loaded machine may make later than DELAY.
                stamp = _FIRST[:-3] + b',"sent_at":%.6f}\n\n' % time.time()
                writer.write(_HEAD + _chunk(stamp))
                for number in range(FRAMES):
                    await asyncio.sleep(max(0.0, start + DELAY + (number + 1) * STEP - loop.time()))
                    writer.write(_chunk(_TOKEN))
                writer.write(_chunk(_LAST) + b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serves until standard input ends."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=4096, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
