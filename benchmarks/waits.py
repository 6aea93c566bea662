"""How long pytest takes for 2,000 conversations of half a second each, 200 in flight: ideal is 5.0 s.

usage: python benchmarks/waits.py [COUNT]   exit code 1 above 8 s
The conversations are real requests to a local server, through pytest, the plugin, the limiter and the recorder.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROMISE = 8.0  # seconds
SUITE = '''"""Waits: a conversation that takes half a second."""

from kimi_eval import MUST, Chat, check, expect, user


@check("An answer comes.", MUST, spec="-", variants=tuple(f"{{n}}-whole" for n in range({count})))
async def an_answer_comes(chat: Chat) -> None:
    reply = await chat.answer([user(chat.variant)])

    expect(reply.text, "content").equals("ready")
'''
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "kimi-k3.1-pro",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ready"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
}
MODELS = {"object": "list", "data": [{"id": "kimi-k3.1-pro", "object": "model", "created": 1, "owned_by": "benchmark"}]}


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0].strip()
            await reader.readexactly(int(length or 0))
            if not head.startswith(b"GET"):
                await asyncio.sleep(0.5)
            body = json.dumps(MODELS if head.startswith(b"GET") else ANSWER).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _server() -> int:
    """Starts the server in a thread and gives its port."""
    ports: list[int] = []
    ready = threading.Event()

    async def main() -> None:
        server = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=1024)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
    ready.wait(5)
    return ports[0]


def main() -> int:
    """Runs pytest on a suite of its own and prints the time."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    port = _server()
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder, "suites", "test_waits.py")
        suite.parent.mkdir()
        suite.write_text(SUITE.format(count=count))
        Path(folder, "conftest.py").write_text('pytest_plugins = ["kimi_eval.pytest_plugin"]\n')
        words = [f"--target=http://127.0.0.1:{port}/v1", "--concurrency=200", "--out=run", "-q"]
        start = time.perf_counter()
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "suites", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - start
        card = json.loads(Path(folder, "run", "scorecard.json").read_text())
    print(run.stdout.strip().splitlines()[-1])
    in_flight = card["client"]["in_flight"]
    print(f"{count:,} conversations of 0.5 s: {seconds:.1f} s with pytest's start, {in_flight} in flight at most")
    return int(run.returncode != 0 or seconds > PROMISE * count / 2000)


if __name__ == "__main__":
    sys.exit(main())
