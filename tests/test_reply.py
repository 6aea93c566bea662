"""Reply: a stream reads the same whether its frames are parsed all at once or one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_eval import reply as replies
from kimi_eval.reply import Reply
from kimi_eval.transcript import Exchange, Lane

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6), lambda inner: st.lists(inner, max_size=2)
)
USAGE = st.fixed_dictionaries({"prompt_tokens": st.integers(0, 9)})
CHOICE = st.fixed_dictionaries(
    {"index": st.integers(0, 1), "delta": st.dictionaries(st.text(max_size=4), JSON, max_size=2)},
    optional={"usage": USAGE},
)
FRAME = st.fixed_dictionaries(
    {"id": st.text(max_size=4)}, optional={"choices": st.lists(CHOICE, max_size=2), "usage": USAGE}
)
EVENT = FRAME.map(
    lambda frame: b"data: " + json.dumps(frame, ensure_ascii=False).encode("utf-8", "replace")
) | st.sampled_from(
    [b": ping", b"data: [DONE]", b"data: {", b"data: 1", b"data: {},{}", b"data:{}", b'data: {"a":\n1}', b"data: {}\r"]
)


def of(raw: bytes) -> Reply:
    exchange = Exchange(
        "x", "case", Lane.BULK, "POST", "http://h/v1/chat/completions", (), b'{"stream":true}', status=200
    )
    exchange.headers = (("Content-Type", "text/event-stream"),)
    exchange.chunks = [(0.5, raw)]
    return Reply(exchange)


def seen(reply: Reply) -> Any:
    return [(frame.index, frame.data) for frame in reply.frames], reply.usages, reply.done, reply.unfinished


@given(st.lists(EVENT, max_size=8), st.sampled_from([b"data: [DONE]\n\n", b"", b"data: [DONE]", b"data: [DONE]\n\n\n"]))
def test_all_at_once_reads_as_one_by_one(events: list[bytes], end: bytes) -> None:
    raw = b"".join(event + b"\n\n" for event in events) + end
    fast = seen(of(raw))
    all_at_once = replies._all_at_once
    replies._all_at_once = lambda raw: None
    try:
        slow = seen(of(raw))
    finally:
        replies._all_at_once = all_at_once

    assert fast == slow


def test_a_plain_stream_is_parsed_all_at_once() -> None:
    frames = [{"choices": [{"index": 0, "delta": {"content": f'"usage" {n}\n\ndata: '}}]} for n in range(5)]
    raw = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames) + b"data: [DONE]\n\n"

    assert replies._all_at_once(raw) == frames


@pytest.mark.parametrize("arguments", ['{"a": 1, "a": 2}', "[1]", "", "{", '{"a": NaN}', "null"])
def test_arguments_that_are_no_single_object_have_a_problem(arguments: str) -> None:
    value, problem = replies.parse_arguments(arguments)

    assert value is None
    assert problem
