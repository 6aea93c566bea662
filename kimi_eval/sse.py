"""Event: one frame of a server-sent event stream, parsed from recorded bytes and never repaired.

The reader follows the event stream grammar of the HTML standard (lines end in LF, CRLF or CR; a blank line ends an
event; several data lines are joined by LF) and keeps what it saw, so that stricter rules can be judged afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DONE = b"[DONE]"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r)(?:\r\n|\n|\r)+")


@dataclass(frozen=True, slots=True)
class Event:
    """One block between blank lines: when its last byte arrived, its bytes, and the data field if it has one."""

    seconds: float
    raw: bytes
    data: bytes | None
    name: bytes | None = None

    @property
    def is_done(self) -> bool:
        """Whether this is the terminator."""
        return self.data == DONE

    @property
    def is_strict(self) -> bool:
        """Whether it is exactly one line ``data: …`` (rule P0.6)."""
        return self.raw.startswith(b"data: ") and b"\n" not in self.raw and b"\r" not in self.raw


def read(chunks: Sequence[tuple[float, bytes]]) -> tuple[list[Event], bytes]:
    """All complete events of a response body, and the bytes after the last blank line.

    ``chunks`` are the reads of the body as (seconds, bytes). An unfinished event is not an event: it is returned as
    the rest, for the caller to report.
    """
    raw = b"".join(data for _, data in chunks)
    if b"\r" in raw:
        blocks = _blocks_with_carriage_returns(raw)
    else:
        blocks = _blocks(raw)
    events: list[Event] = []
    ends = iter(_ends(chunks))
    chunk_end, seconds = next(ends, (0, 0.0))
    rest = b""
    for block, end in blocks:
        if end < 0:
            rest = block
            break
        while chunk_end < end:
            chunk_end, seconds = next(ends)
        if not block:
            continue
        if block.startswith(b"data: ") and b"\n" not in block and b"\r" not in block:
            events.append(Event(seconds, block, block[6:]))
        else:
            events.append(_event(seconds, block))
    return events, rest


def _ends(chunks: Iterable[tuple[float, bytes]]) -> Iterable[tuple[int, float]]:
    """Pairs of (offset after the read, its arrival time)."""
    offset = 0
    for seconds, data in chunks:
        offset += len(data)
        yield offset, seconds


def _blocks(raw: bytes) -> Iterable[tuple[bytes, int]]:
    """Pairs of (bytes between blank lines, offset after the blank line); the unfinished tail has offset -1."""
    start = 0
    parts = raw.split(b"\n\n")
    for part in parts[:-1]:
        start += len(part) + 2
        yield part.lstrip(b"\n"), start
    if tail := parts[-1].lstrip(b"\n"):
        yield tail, -1


def _blocks_with_carriage_returns(raw: bytes) -> Iterable[tuple[bytes, int]]:
    start = 0
    for blank in _BLANK_LINE.finditer(raw):
        if blank.group() == b"\r\n":  # one line end, not two
            continue
        yield raw[start : blank.start()], blank.end()
        start = blank.end()
    if tail := raw[start:].strip(b"\r\n"):
        yield tail, -1


def _event(seconds: float, block: bytes) -> Event:
    data: list[bytes] = []
    name: bytes | None = None
    for line in _LINE_END.split(block):
        field, colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value if colon else b"")
        elif field == b"event":
            name = value
    return Event(seconds, block, b"\n".join(data) if data else None, name)
