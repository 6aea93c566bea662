"""Event: one frame of a server-sent event stream, parsed from recorded bytes and never repaired.

The reader follows the event stream grammar of the HTML standard (lines end in LF, CRLF or CR; a blank line ends an
event; several data lines are joined by LF) and keeps what it saw, so that stricter rules can be judged afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

DONE = b"[DONE]"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r)(?:\r\n|\n|\r)+")


class Event:
    """One block between blank lines: when its last byte arrived, its bytes, and the data field if it has one.

    Not a dataclass, and its fields are read from the bytes on demand: a long answer has tens of thousands of events.
    """

    __slots__ = ("raw", "seconds")

    def __init__(self, seconds: float, raw: bytes) -> None:
        self.seconds = seconds
        self.raw = raw

    @property
    def data(self) -> bytes | None:
        """The data field, its lines joined by LF, or None where there is none."""
        if self.is_strict:
            return self.raw[6:]
        values = self._values(b"data")
        return b"\n".join(values) if values else None

    @property
    def name(self) -> bytes | None:
        """The last event field, or None."""
        values = self._values(b"event")
        return values[-1] if values else None

    @property
    def is_done(self) -> bool:
        """Whether this is the terminator."""
        return len(self.raw) < 32 and self.data == DONE

    @property
    def is_strict(self) -> bool:
        """Whether it is exactly one line ``data: …`` (rule P0.6)."""
        raw = self.raw
        return raw[:6] == b"data: " and b"\n" not in raw and b"\r" not in raw

    def _values(self, wanted: bytes) -> list[bytes]:
        values = []
        for line in _LINE_END.split(self.raw):
            field, _, value = line.partition(b":")
            if field == wanted:
                values.append(value.removeprefix(b" "))
        return values


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
        if block[:1] == b"\n":
            block = block.lstrip(b"\n")
        if block:
            keep(Event(seconds, block))
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
