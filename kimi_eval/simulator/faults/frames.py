"""Frames: faults of the JSON inside a stream's frames."""

from __future__ import annotations

from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.frames import choices_of
from kimi_eval.simulator.request import Request

Frames = list[dict[str, Any]]


def deltas(frames: Frames) -> list[dict[str, Any]]:
    """Every delta of the stream."""
    return [choice["delta"] for choice in choices_of(frames)]


@fault(
    "The id changes from frame to frame.",
    source="P1.3",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/frames_belong_together"],
)
def id_changes(request: Request, frames: Frames) -> Frames:
    return [{**frame, "id": f"{frame['id'][:-4]}{number:04d}"} for number, frame in enumerate(frames)]


@fault(
    "`created` is a float.",
    source="P1.4",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/frames_say_what_they_are"],
)
def created_is_a_float(request: Request, frames: Frames) -> Frames:
    return [{**frame, "created": frame["created"] + 0.5} for frame in frames]


@fault(
    "Frames call themselves `chat.completion`.",
    source="P0.7",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/frames_say_what_they_are"],
)
def object_is_of_the_other_kind(request: Request, frames: Frames) -> Frames:
    return [{**frame, "object": "chat.completion"} for frame in frames]


@fault(
    "The usage frame has no key `choices`.",
    source="ATOM#1711 (F096)",
    kind="streaming",
    at="frames",
    noticed_by=[
        "protocol/client/the_client_reads_an_answer[streamed]",
        "protocol/client/the_client_reads_calls[streamed]",
        "protocol/streaming/frames_have_choices",
        "protocol/streaming/usage_comes_in_a_frame_of_its_own",
    ],
)
def usage_frame_lacks_choices(request: Request, frames: Frames) -> Frames:
    return [{key: value for key, value in frame.items() if key != "choices" or value} for frame in frames]


@fault(
    "The usage frame carries a choice.",
    source="litellm#28735 (F096)",
    kind="streaming",
    at="frames",
    noticed_by=[
        "protocol/streaming/usage_comes_in_a_frame_of_its_own",
        "protocol/streaming/middle_frames_carry_no_usage",
    ],
)
def usage_frame_has_a_choice(request: Request, frames: Frames) -> Frames:
    choice = {"index": 0, "delta": {}, "finish_reason": None}
    return [frame if frame["choices"] else {**frame, "choices": [choice]} for frame in frames]


@fault(
    "No usage frame comes although it was asked for.",
    source="CLIProxyAPI#1279 (F095)",
    kind="usage",
    at="frames",
    noticed_by=[
        "protocol/client/the_client_reads_an_answer[streamed]",
        "protocol/streaming/usage_comes_in_a_frame_of_its_own",
    ],
)
def usage_frame_is_missing(request: Request, frames: Frames) -> Frames:
    return [frame for frame in frames if frame["choices"]]


@fault(
    "The end frame has no usage in its choice.",
    source="sglang#39897 (F114)",
    kind="usage",
    at="frames",
    noticed_by=["protocol/streaming/end_frame_carries_usage"],
)
def end_frame_lacks_usage(request: Request, frames: Frames) -> Frames:
    for frame in frames:
        for choice in frame["choices"]:
            choice.pop("usage", None)
    return frames


@fault(
    "Every frame carries usage, unasked.",
    source="P1.15",
    kind="usage",
    at="frames",
    noticed_by=["protocol/streaming/middle_frames_carry_no_usage"],
)
def every_frame_carries_usage(request: Request, frames: Frames) -> Frames:
    usage = next(choice["usage"] for frame in frames for choice in frame["choices"] if "usage" in choice)
    for frame in frames[1:]:
        for choice in frame["choices"]:
            choice.setdefault("usage", dict(usage))
    return frames


@fault(
    "Choices have no index.",
    source="P0.8",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/choices_have_index_and_delta"],
)
def index_is_missing(request: Request, frames: Frames) -> Frames:
    for frame in frames:
        for choice in frame["choices"]:
            del choice["index"]
    return frames


@fault(
    "Two choices share a frame.",
    source="P0.8 (F105)",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/one_choice_a_frame"],
)
def two_choices_share_a_frame(request: Request, frames: Frames) -> Frames:
    if len(frames) > 4 and len(frames[2]["choices"]) == 1:
        frames[2]["choices"].append({"index": 0, "delta": {}, "finish_reason": None})
    return frames


@fault(
    "The finish reason is left out while it is null.",
    source="P0.8",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/one_choice_a_frame"],
)
def null_finish_reason_is_left_out(request: Request, frames: Frames) -> Frames:
    for frame in frames:
        for choice in frame["choices"]:
            if choice["finish_reason"] is None:
                del choice["finish_reason"]
    return frames


@fault(
    "The role is never named.",
    source="dynamo#12741 (F100)",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/first_frame_names_the_role"],
)
def role_is_never_named(request: Request, frames: Frames) -> Frames:
    for delta in deltas(frames):
        delta.pop("role", None)
    return frames


@fault(
    "Every delta names the role.",
    source="dynamo#12741 (F100)",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/role_is_named_once"],
)
def role_is_repeated(request: Request, frames: Frames) -> Frames:
    for delta in deltas(frames):
        if delta:
            delta["role"] = "assistant"
    return frames


@fault(
    "The first frame has no key `content`.",
    source="P1.5",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/first_frame_has_content"],
)
def first_frame_lacks_content(request: Request, frames: Frames) -> Frames:
    frames[0]["choices"][0]["delta"].pop("content", None)
    return frames


@fault(
    "Every delta carries null keys.",
    source="sglang#39897 (F094)",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/deltas_have_no_null"],
)
def null_keys_everywhere(request: Request, frames: Frames) -> Frames:
    empty: dict[str, Any] = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}
    for frame in frames:
        for choice in frame["choices"]:
            if choice["finish_reason"] is None:
                choice["delta"] = {**empty, **choice["delta"]}
    return frames


@fault(
    "A token that is a number arrives as a number.",
    source="P0.10",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/deltas_hold_text"],
)
def numbers_are_not_text(request: Request, frames: Frames) -> Frames:
    for delta in deltas(frames):
        if str(delta.get("content", "")).isdigit() and request.question.startswith("Count from 1 to 60"):
            delta["content"] = int(delta["content"])
    return frames


@fault(
    "Reasoning goes on after the answer began.",
    source="dynamo#11997 (F105)",
    kind="reasoning",
    at="frames",
    noticed_by=["protocol/streaming/reasoning_comes_first"],
)
def reasoning_follows_the_answer(request: Request, frames: Frames) -> Frames:
    if not request.response_format or len(frames) < 12:
        return frames
    late = {**frames[1], "choices": [{"index": 0, "delta": {"reasoning_content": " wait"}, "finish_reason": None}]}
    return [*frames[:-2], late, *frames[-2:]]


@fault(
    "No frame ends the reasoning.",
    source="P1.7",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/boundary_frame_ends_the_reasoning"],
)
def boundary_frame_is_missing(request: Request, frames: Frames) -> Frames:
    kept = []
    for frame in frames:
        if frame["choices"] and frame["choices"][0]["delta"].get("reasoning_content") == "":
            continue
        kept.append(frame)
    return kept


@fault(
    "The last reasoning and the first content share a frame.",
    source="P1 (one kind a frame)",
    kind="streaming",
    at="frames",
    noticed_by=[
        "protocol/streaming/one_kind_a_frame",
        "protocol/streaming/reasoning_comes_first",
        "protocol/streaming/boundary_frame_ends_the_reasoning",
    ],
)
def kinds_share_a_frame(request: Request, frames: Frames) -> Frames:
    for before, after in zip(frames, frames[2:], strict=False):
        if not (before["choices"] and after["choices"]):
            continue
        thought, said = before["choices"][0]["delta"], after["choices"][0]["delta"]
        if thought.get("reasoning_content") and said.get("content"):
            said["reasoning_content"], thought["reasoning_content"] = (
                thought["reasoning_content"][-1],
                thought["reasoning_content"][:-1],
            )
            break
    return frames


@fault(
    "Token ids are not sent although they were asked for.",
    source="sglang#39896; P0.5",
    kind="streaming",
    at="frames",
    noticed_by=["protocol/streaming/internal_content_has_token_ids"],
)
def internal_content_is_dropped(request: Request, frames: Frames) -> Frames:
    for delta in deltas(frames):
        delta.pop("internal_content", None)
    return frames
