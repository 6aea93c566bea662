"""Replay: a recorded request, sent once more or printed as a command."""

from __future__ import annotations

import asyncio
import difflib
import json
import shlex

from kimi_eval.deployment import Deployment
from kimi_eval.problem import NotMeasured
from kimi_eval.reply import Reply
from kimi_eval.transcript import Exchange
from kimi_eval.wire import Wire, new_exchange

_SHOWN_HEADERS = ("content-type", "content-encoding", "transfer-encoding", "retry-after")


def as_curl(recorded: Reply) -> str:
    """A shell command that sends the same bytes; the key stays a variable."""
    exchange = recorded.exchange
    words = ["curl", "-sS", "-i", "--no-buffer", "-X", exchange.method, shlex.quote(exchange.url)]
    words += ["-H", '"Authorization: Bearer $KIMI_API_KEY"']
    for name, value in exchange.request_headers:
        if name.lower() not in ("authorization", "user-agent", "accept-encoding"):
            words += ["-H", shlex.quote(f"{name}: {value}")]
    if exchange.body:
        words += ["--data-binary", shlex.quote(exchange.body.decode("utf-8", "surrogateescape"))]
    return " ".join(words)


def sent_again(recorded: Reply, deployment: Deployment) -> str:
    """Sends the recorded request to the deployment and tells what differs. Raises NotMeasured without a reply."""
    old = recorded.exchange
    path = old.url[old.url.index("/v1") + 3 :] if "/v1" in old.url else old.url[len(deployment.base_url) :]
    new = new_exchange(old.id, old.case, old.method, deployment.base_url + path, old.body, hostile=old.hostile)
    asyncio.run(_send(deployment, new))
    if new.status is None:
        raise NotMeasured(f"{new.url}: {new.failure_text}; the recorded reply had status {old.status}")
    before, after = _lines(old), _lines(new)
    diff = list(difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=1))
    if not diff:
        return f"The same reply as recorded ({old.status}, {len(old.raw):,} bytes)."
    return "\n".join(diff)


async def _send(deployment: Deployment, exchange: Exchange) -> None:
    async with Wire(deployment) as wire:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        await wire.send(exchange, headers if exchange.body else {})


def _lines(exchange: Exchange) -> list[str]:
    """A reply as lines that can be compared: ids and clocks, which differ between any two replies, are masked."""
    reply = Reply(exchange)
    lines = [f"status {exchange.status}"]
    lines += [f"{name.lower()}: {value}" for name, value in exchange.headers if name.lower() in _SHOWN_HEADERS]
    if exchange.failure_text:
        lines.append(f"failure: {exchange.failure_text}")
    if reply.is_stream:
        lines += [
            f"content: {reply.content!r}",
            f"reasoning: {reply.reasoning!r}",
            *(f"call: {call}" for call in reply.calls),
            f"finish_reason: {reply.finish_reason!r}",
            f"usage: {json.dumps(reply.usage, sort_keys=True)}",
            f"frames: {len(reply.frames)}, [DONE]: {reply.done}",
        ]
    elif isinstance(reply.body, dict):
        masked = {key: "…" if key in ("id", "created") else value for key, value in reply.body.items()}
        lines += json.dumps(masked, indent=1, ensure_ascii=False, sort_keys=True).splitlines()
    else:
        lines += exchange.raw.decode("utf-8", "backslashreplace").splitlines()
    return lines
