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


@dataclass(slots=True)
class Event:
    """One block between blank lines: when its last byte arrived, its bytes, and the data field if it has one.

    Not frozen, only because that would triple the cost of making one.
    """

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
        blocks, rest = _blocks_with_carriage_returns(raw)
    else:
        *whole, rest = raw.split(b"\n\n")
        blocks, rest = [(block, len(block) + 2) for block in whole], rest.lstrip(b"\n")
    events: list[Event] = []
    keep = events.append
    ends = iter(_ends(chunks))
    chunk_end, seconds = next(ends, (0, 0.0))
    end = 0
    for block, length in blocks:
        end += length
        while chunk_end < end:
            chunk_end, seconds = next(ends)
        if block[:6] == b"data: " and b"\n" not in block and b"\r" not in block:
            keep(Event(seconds, block, block[6:]))
        elif block := block.lstrip(b"\n"):
            keep(_event(seconds, block))
    return events, rest


def _ends(chunks: Iterable[tuple[float, bytes]]) -> Iterable[tuple[int, float]]:
    """Pairs of (offset after the read, its arrival time)."""
    offset = 0
    for seconds, data in chunks:
        offset += len(data)
        yield offset, seconds


def _blocks_with_carriage_returns(raw: bytes) -> tuple[list[tuple[bytes, int]], bytes]:
    """Pairs of (bytes between blank lines, their length with the blank line), and the unfinished tail."""
    blocks, start = [], 0
    for blank in _BLANK_LINE.finditer(raw):
        if blank.group() == b"\r\n":  # one line end, not two
            continue
        blocks.append((raw[start : blank.start()], blank.end() - start))
        start = blank.end()
    return blocks, raw[start:].strip(b"\r\n")


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
