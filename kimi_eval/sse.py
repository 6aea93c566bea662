"""Event: one frame of a server-sent event stream, parsed from recorded bytes and never repaired.

The reader follows the event stream grammar of the HTML standard (lines end in LF, CRLF or CR; a blank line ends an
event; several data lines are joined by LF) and keeps what it saw, so that stricter rules can be judged afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

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


def split(raw: bytes) -> tuple[list[bytes], bytes]:
    """The complete events of a response body as bytes, and the bytes after the last blank line.

    An unfinished event is not an event: it is the rest, for the caller to report.
    """
    if _is_plain(raw):
        *whole, rest = raw.split(b"\n\n")
        return whole, rest
    blocks, rest = _blocks(raw)
    return [block for block, _ in blocks if block], rest


def timed(chunks: Sequence[tuple[float, bytes]]) -> list[Event]:
    """The events of `split` with the time at which the last byte of each arrived.

    ``chunks`` are the reads of the body as (seconds, bytes).
    """
    events: list[Event] = []
    ends = iter(_ends(chunks))
    chunk_end, seconds = next(ends, (0, 0.0))
    for block, end in _blocks(b"".join(data for _, data in chunks))[0]:
        while chunk_end < end:
            chunk_end, seconds = next(ends)
        if block:
            events.append(Event(seconds, block))
    return events


def _is_plain(raw: bytes) -> bool:
    """Whether every event ends in exactly one LF LF, so that splitting there is all there is to do."""
    return b"\r" not in raw and b"\n\n\n" not in raw and raw[:1] != b"\n"


def _blocks(raw: bytes) -> tuple[list[tuple[bytes, int]], bytes]:
    """Pairs of (bytes between blank lines, offset after the blank line), and the unfinished tail."""
    if not _is_plain(raw):
        blocks, start = [], 0
        for blank in _BLANK_LINE.finditer(raw):
            if blank.group() == b"\r\n":  # one line end, not two
                continue
            blocks.append((raw[start : blank.start()].strip(b"\r\n"), blank.end()))
            start = blank.end()
        return blocks, raw[start:].strip(b"\r\n")
    *whole, rest = raw.split(b"\n\n")
    return list(zip(whole, accumulate(len(block) + 2 for block in whole), strict=True)), rest


def _ends(chunks: Iterable[tuple[float, bytes]]) -> Iterable[tuple[int, float]]:
    """Pairs of (offset after the read, its arrival time)."""
    offset = 0
    for seconds, data in chunks:
        offset += len(data)
        yield offset, seconds
