"""Framing: faults of the event stream itself, between the JSON and the socket."""

from __future__ import annotations

from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.connection import Connection
from kimi_eval.simulator.request import Request

DONE = b"data: [DONE]\n\n"


@fault(
    "A stream ends without [DONE].",
    source="LightLLM#1262 (F099)",
    kind="streaming",
    at="wire",
    noticed_by=["protocol/streaming/stream_closes_with_done"],
)
def done_is_missing(request: Request, events: list[bytes]) -> list[bytes]:
    return [event for event in events if event != DONE]


@fault(
    "The socket stays open after [DONE].",
    source="LightLLM#1262 (F099)",
    kind="streaming",
    at="transport",
    noticed_by=["protocol/streaming/stream_closes_with_done"],
)
async def socket_stays_open(request: Request, connection: Connection) -> None:
    # Only one short question, so that a run does not wait for hundreds of them.
    if connection.streamed and "17 + 25" in request.question:
        connection.chunks.append(b"")
        connection.pauses[len(connection.chunks) - 1] = 4.0


@fault(
    "A frame follows [DONE].",
    source="P1.2",
    kind="streaming",
    at="wire",
    noticed_by=["protocol/streaming/stream_closes_with_done"],
)
def data_follows_done(request: Request, events: list[bytes]) -> list[bytes]:
    return [*events, b'data: {"late": true}\n\n']


@fault(
    "Comment lines keep the stream alive.",
    source="P0.6",
    kind="streaming",
    at="wire",
    noticed_by=["protocol/streaming/events_are_plain_data_lines"],
)
def comments_keep_alive(request: Request, events: list[bytes]) -> list[bytes]:
    return [b": keep-alive\n\n", *events]


@fault(
    "`data:` is not followed by a space.",
    source="P0.6",
    kind="streaming",
    at="wire",
    noticed_by=["protocol/streaming/events_are_plain_data_lines"],
)
def data_without_a_space(request: Request, events: list[bytes]) -> list[bytes]:
    return [event.replace(b"data: ", b"data:", 1) for event in events]


@fault(
    "Lines end in CRLF.",
    source="P0.6",
    kind="streaming",
    at="wire",
    noticed_by=["protocol/streaming/events_are_plain_data_lines"],
)
def lines_end_in_crlf(request: Request, events: list[bytes]) -> list[bytes]:
    return [event.replace(b"\n", b"\r\n") for event in events]


@fault(
    "A stream says it is plain JSON.",
    source="P0.6",
    kind="streaming",
    at="transport",
    noticed_by=["protocol/streaming/stream_is_an_event_stream"],
)
async def stream_says_it_is_json(request: Request, connection: Connection) -> None:
    if connection.streamed:
        connection.headers["Content-Type"] = "application/json"


@fault(
    "One event is cut JSON.",
    source="llmock malformed; P0.6",
    kind="streaming",
    at="wire",
    noticed_by=[
        "protocol/client/the_client_reads_an_answer[streamed]",
        "protocol/client/the_client_reads_calls[streamed]",
        "protocol/streaming/events_are_json_or_done",
        "protocol/streaming/a_choice_finishes_once",
    ],
)
def one_event_is_cut(request: Request, events: list[bytes]) -> list[bytes]:
    if len(events) < 5:
        return events
    return [*events[:2], events[2][: len(events[2]) // 2] + b"\n\n", *events[3:]]


@fault(
    "A stream that breaks off looks complete: no finish reason, no [DONE].",
    source="open-webui#29628 (F107)",
    kind="streaming",
    at="wire",
    noticed_by=[
        "protocol/streaming/stream_closes_with_done",
        "protocol/streaming/a_choice_finishes_once",
        "protocol/streaming/usage_comes_in_a_frame_of_its_own",
    ],
)
def stream_breaks_off(request: Request, events: list[bytes]) -> list[bytes]:
    long = len(events) > 150
    return events[: len(events) // 2] if long and not request.tools else events


@fault(
    "A multi-byte character is cut between two frames and lost.",
    source="dynamo#12630 (F104)",
    kind="streaming",
    at="frames",
    noticed_by=["conversation/roles/every_script_comes_back[streamed]", "protocol/invariants/text_is_whole_utf8"],
)
def characters_are_cut(request: Request, frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for frame in frames:
        for choice in frame["choices"]:
            content = choice["delta"].get("content")
            if content and any(ord(character) > 0xAC00 for character in content):
                choice["delta"]["content"] = content[:-1] + "\ufffd"
    return frames


@fault(
    "Bytes of a stream are not UTF-8.",
    source="vllm-ascend#11736 (F139)",
    kind="numerics",
    at="wire",
    noticed_by=[
        "conversation/roles/every_script_comes_back[streamed]",
        "tools/arguments/strings_arrive_exactly[unicode-streamed]",
        "protocol/invariants/text_is_whole_utf8",
        "protocol/streaming/events_are_json_or_done",
    ],
)
def bytes_are_not_utf8(request: Request, events: list[bytes]) -> list[bytes]:
    return [event.replace("안".encode(), b"\xec\x95") for event in events]


@fault(
    "An error before the stream is sent as an event stream with 200.",
    source="P0.17",
    kind="errors",
    at="transport",
    noticed_by=[
        "protocol/errors/an_unknown_role_is_refused[streamed]",
        "protocol/errors/an_empty_user_message_is_refused[streamed]",
        "protocol/parameters/top_p_is_fixed[streamed]",
        "protocol/parameters/n_is_one[streamed]",
        "protocol/parameters/top_logprobs_are_limited[streamed]",
        "protocol/parameters/a_ceiling_beyond_the_window_is_refused[streamed]",
        "tools/calls/duplicate_names_are_refused[streamed]",
        "tools/tool_choice/required_needs_tools[empty_list-streamed]",
        "tools/tool_choice/required_needs_tools[no_tools-streamed]",
        "tools/tool_choice/an_unknown_choice_is_refused[streamed]",
        "protocol/streaming/a_choice_finishes_once",
        "protocol/streaming/usage_comes_in_a_frame_of_its_own",
    ],
)
async def errors_are_streamed(request: Request, connection: Connection) -> None:
    if request.streamed and connection.status == 400:
        connection.status = 200
        connection.headers = {"Content-Type": "text/event-stream"}
        connection.chunks = [b"data: " + connection.chunks[0] + b"\n\n", DONE]


@fault(
    "A whole answer comes in one frame.",
    source="vllm#50604 (F003)",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/a_long_answer_comes_in_pieces"],
)
def content_comes_at_once(request: Request, frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first: dict[str, Any] | None = None
    kept = []
    for frame in frames:
        delta = frame["choices"][0]["delta"] if frame["choices"] else {}
        if not delta.get("content") or frame["choices"][0].get("logprobs") or "internal_content" in delta:
            kept.append(frame)
        elif first is None:
            first = frame
            kept.append(frame)
        else:
            first["choices"][0]["delta"]["content"] += delta["content"]
    return kept
