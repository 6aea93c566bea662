"""Exchange: one request and what came back, byte for byte, with arrival times; lossless to and from disk."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

_LAYOUT = 1  # of the file; a reader refuses one it does not know


class Failure(StrEnum):
    """Why an exchange has no complete reply."""

    NONE = ""
    CONNECT = "connect"  # no connection: refused, no such host, unreachable
    TLS = "tls"
    TIMEOUT = "timeout"  # nothing, or too little, in the time that the target's timeouts allow
    CLOSED = "closed"  # the connection ended before the reply was complete
    MALFORMED = "malformed"  # not HTTP, or a body that its own headers contradict
    TOO_LARGE = "too_large"  # more bytes than a reply may have; reading stopped


class Lane(StrEnum):
    """Who spoke HTTP: our own bulk lane, or the official client."""

    BULK = "bulk"
    CLIENT = "client"


@dataclass(slots=True)
class Exchange:
    """One request and its reply as they went over the wire.

    ``chunks`` are the reads of the response body as (seconds since the request was sent, bytes), after removal of a
    content coding that we had not asked for. ``request_headers``
    hold no secret: keys are replaced before the exchange is built. ``attempt`` counts from 1; earlier attempts of the
    same request are exchanges of their own. ``hostile`` marks a request that is wrong on purpose, ``cut_by_us`` a
    reply that the check itself stopped reading.
    """

    id: str
    case: str
    lane: Lane
    method: str
    url: str
    request_headers: tuple[tuple[str, str], ...]
    body: bytes
    attempt: int = 1
    hostile: bool = False
    started: float = 0.0  # seconds since the epoch
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    seconds: float = 0.0
    failure: Failure = Failure.NONE
    failure_text: str = ""
    cut_by_us: bool = False
    lingered: bool = False  # the connection stayed open after the terminator of a stream

    @property
    def raw(self) -> bytes:
        """The response body as it arrived."""
        return b"".join(data for _, data in self.chunks)

    @property
    def answered(self) -> bool:
        """Whether a complete reply arrived (whatever it says)."""
        return self.status is not None and (self.failure is Failure.NONE or self.cut_by_us)

    @property
    def first_byte_seconds(self) -> float | None:
        """Seconds from sending to the first byte of the response body."""
        return self.chunks[0][0] if self.chunks else None

    def header(self, name: str) -> str | None:
        """The value of the first response header with that name, whatever its case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)

    def request_json(self) -> Any:
        """The request body as JSON, or None where it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def exchange_id(case_key: str, body: bytes, occurrence: int, attempt: int) -> str:
    """Twelve hex digits that name an exchange by its content, so that a resumed run finds it again."""
    digest = hashlib.sha256(f"{case_key}\0{occurrence}\0{attempt}\0".encode())
    digest.update(body)
    return digest.hexdigest()[:12]


def encode(exchange: Exchange) -> bytes:
    """The file content of an exchange: gzip of one JSON line, then the request body, then the response body."""
    head = {
        "layout": _LAYOUT,
        "id": exchange.id,
        "case": exchange.case,
        "lane": exchange.lane,
        "method": exchange.method,
        "url": exchange.url,
        "request_headers": exchange.request_headers,
        "request_bytes": len(exchange.body),
        "attempt": exchange.attempt,
        "hostile": exchange.hostile,
        "started": exchange.started,
        "status": exchange.status,
        "headers": exchange.headers,
        "arrivals": [(round(seconds, 6), len(data)) for seconds, data in exchange.chunks],
        "seconds": round(exchange.seconds, 6),
        "failure": exchange.failure,
        "failure_text": exchange.failure_text,
        "cut_by_us": exchange.cut_by_us,
        "lingered": exchange.lingered,
    }
    line = json.dumps(head, ensure_ascii=True, separators=(",", ":")).encode()
    return gzip.compress(b"".join((line, b"\n", exchange.body, exchange.raw)), compresslevel=1, mtime=0)


def decode(data: bytes) -> Exchange:
    """The inverse of `encode`. Raises ValueError on a damaged file or an unknown layout."""
    try:
        line, _, rest = gzip.decompress(data).partition(b"\n")
        head = json.loads(line)
    except (OSError, EOFError, ValueError) as damage:
        raise ValueError(f"not a recorded exchange: {damage}") from None
    if head.get("layout") != _LAYOUT:
        raise ValueError(f"recorded in layout {head.get('layout')!r}, this version reads {_LAYOUT}")
    body, raw = rest[: head["request_bytes"]], rest[head["request_bytes"] :]
    ends = list(itertools.accumulate(length for _, length in head["arrivals"]))
    if (ends[-1] if ends else 0) != len(raw):
        raise ValueError("the recorded bytes and their arrival table disagree")
    starts = [0, *ends][: len(ends)]
    return Exchange(
        id=head["id"],
        case=head["case"],
        lane=Lane(head["lane"]),
        method=head["method"],
        url=head["url"],
        request_headers=tuple((name, value) for name, value in head["request_headers"]),
        body=body,
        attempt=head["attempt"],
        hostile=head["hostile"],
        started=head["started"],
        status=head["status"],
        headers=tuple((name, value) for name, value in head["headers"]),
        chunks=[
            (seconds, raw[start:end]) for (seconds, _), start, end in zip(head["arrivals"], starts, ends, strict=True)
        ],
        seconds=head["seconds"],
        failure=Failure(head["failure"]),
        failure_text=head["failure_text"],
        cut_by_us=head["cut_by_us"],
        lingered=head["lingered"],
    )


def load(path: Path) -> Exchange:
    """Reads one exchange. Raises OSError, or ValueError naming the file when it is damaged."""
    try:
        return decode(path.read_bytes())
    except ValueError as damage:
        raise ValueError(f"{path}: {damage}") from None


def without_secrets(chunks: Sequence[tuple[float, bytes]], secrets: Sequence[bytes]) -> list[tuple[float, bytes]]:
    """The same reads with every secret overwritten by asterisks, also where a read boundary cuts through one."""
    raw = b"".join(data for _, data in chunks)
    if not any(secret in raw for secret in secrets):
        return list(chunks)
    for secret in secrets:
        raw = raw.replace(secret, b"*" * len(secret))
    cleaned, start = [], 0
    for seconds, data in chunks:
        cleaned.append((seconds, raw[start : start + len(data)]))
        start += len(data)
    return cleaned
