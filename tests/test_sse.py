"""Event: the reader follows the event stream grammar, however the bytes are cut into reads."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_eval import sse


def read(chunks: list[tuple[float, bytes]]) -> tuple[list[sse.Event], bytes]:
    """The events and the rest; the two ways to split agree."""
    blocks, rest = sse.split(b"".join(data for _, data in chunks))
    events = sse.timed(chunks)
    assert [event.raw for event in events] == blocks
    return events, rest


LINE = st.sampled_from(
    [
        b"data: {}",
        b"data:{}",
        b'data: {"a": 1}',
        b": comment",
        b"event: error",
        b"data",
        b"id: 7",
        b"\xf0\x9f\xa6\xa6",
        b"data: [DONE]",
    ]
)
STREAM = st.lists(st.tuples(LINE, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans()), max_size=12)


def joined(lines: list[tuple[bytes, bytes, bool]]) -> bytes:
    return b"".join(line + end + (end if blank else b"") for line, end, blank in lines)


@given(STREAM, st.lists(st.integers(1, 40), max_size=20))
def test_reading_does_not_depend_on_where_the_bytes_are_cut(lines: Any, sizes: list[int]) -> None:
    raw = joined(lines)
    chunks, rest = [], raw
    for number, size in enumerate(sizes):
        chunks.append((float(number), rest[:size]))
        rest = rest[size:]
    chunks.append((99.0, rest))
    whole, tail = read([(0.0, raw)])
    cut, cut_tail = read(chunks)

    assert [(e.raw, e.data, e.name) for e in cut] == [(e.raw, e.data, e.name) for e in whole]
    assert cut_tail == tail
    assert [e.seconds for e in cut] == sorted(e.seconds for e in cut)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_ends_a_line(end: bytes) -> None:
    events, rest = read([(0.5, b"data: one" + end + b"data: two" + end + end + b"data: three" + end + end)])

    assert [event.data for event in events] == [b"one\ntwo", b"three"]
    assert rest == b""


def test_an_event_arrives_with_its_last_byte() -> None:
    events, _ = read([(1.0, b"data: {"), (2.0, b"}\n"), (3.0, b"\ndata: x\n\n")])

    assert [(event.data, event.seconds) for event in events] == [(b"{}", 3.0), (b"x", 3.0)]


def test_what_is_unfinished_is_no_event() -> None:
    events, rest = read([(0.0, b'data: {"a": 1}\n\ndata: {"b"')])

    assert len(events) == 1
    assert rest == b'data: {"b"'


def test_comments_and_fields_are_kept_and_have_no_data() -> None:
    events, _ = read([(0.0, b": ping\n\nevent: error\ndata: {}\n\n")])

    assert [(event.data, event.name, event.is_strict) for event in events] == [
        (None, None, False),
        (b"{}", b"error", False),
    ]


def test_ten_megabytes_in_one_line_are_read_in_linear_time() -> None:
    def seconds(size: int) -> float:
        start = time.process_time()
        read([(0.0, b"data: " + b"x" * size + b"\n\n")])
        return time.process_time() - start

    assert seconds(10_000_000) < 100 * max(seconds(1_000_000), 0.002)
