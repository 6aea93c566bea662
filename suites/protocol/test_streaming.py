"""Streaming: the grammar of every streamed reply, P0 and P1 of the vendor stream rules (protocol.md §3.4)."""

from typing import Any

from kimi_eval import (
    MOONSHOT,
    MUST,
    SHOULD,
    Chat,
    Reply,
    check,
    expect,
    function,
    invariant,
    note,
    require,
    user,
)

# --- framing ----------------------------------------------------------------------------------------------------------


@invariant("A stream is answered with content type text/event-stream.", MUST, spec="P0.6", over="streams")
def stream_is_an_event_stream(reply: Reply) -> None:
    expect(reply.content_type, "content-type").equals("text/event-stream")


@invariant("Every event is a JSON object or `[DONE]`.", MUST, spec="P0.6; HTML event streams", over="streams")
def events_are_json_or_done(reply: Reply) -> None:
    frames = {frame.index for frame in reply.frames}
    for index, event in enumerate(reply.events):
        if event.is_done:
            break
        if event.data is not None and index not in frames:
            note(f"event {index}", "a JSON object or [DONE]", repr(event.data[:200]))
    if reply.unfinished:
        note("end of the stream", "a blank line after the last event", repr(reply.unfinished[:200]))


@invariant(
    "Every event is one line `data: …`, without comments, other fields or CRLF.",
    MUST,
    spec="P0.6",
    over="streams",
    contract=MOONSHOT,
)
def events_are_plain_data_lines(reply: Reply) -> None:
    if b"\r\n" in reply.exchange.raw:
        note("line ends", "LF", "CRLF")
        return
    for index, event in enumerate(reply.events):
        if not event.is_strict:
            note(f"event {index}", "one line that begins with 'data: '", repr(event.raw[:120]))


@invariant("A stream closes with `data: [DONE]`, once, and nothing after it.", MUST, spec="P1.2; F099", over="streams")
def stream_closes_with_done(reply: Reply) -> None:
    if not reply.is_stream:
        return
    places = [index for index, event in enumerate(reply.events) if event.is_done]
    require(expect(len(places), "number of [DONE] events").equals(1))
    after = [event.raw for event in reply.events[places[0] + 1 :] if event.data is not None]
    expect(after, "events after [DONE]").is_empty()
    expect(reply.exchange.lingered, "connection open 2 s after [DONE]").equals(False)


# --- frames -----------------------------------------------------------------------------------------------------------


@invariant(
    "Every frame says its id, its object `chat.completion.chunk`, when it was created, and the model.",
    MUST,
    spec="P0.7, P1.4, P1.14",
    over="streams",
)
def frames_say_what_they_are(reply: Reply) -> None:
    for frame in reply.frames:
        if "error" in frame.data:
            continue
        good = (
            expect(frame.data.get("id"), f"{frame.where}: id").is_text()
            and expect(frame.data.get("object"), f"{frame.where}: object").equals("chat.completion.chunk")
            and expect(frame.data.get("created"), f"{frame.where}: created").is_a(int, "an integer")
            and expect(frame.data.get("model"), f"{frame.where}: model").is_text()
        )
        if not good:
            break


@invariant("Id, creation time and model are the same in every frame.", SHOULD, spec="P1.3, P1.14", over="streams")
def frames_belong_together(reply: Reply) -> None:
    for name in ("id", "created", "model"):
        values = list(dict.fromkeys(repr(frame.data[name]) for frame in reply.frames if name in frame.data))
        expect(values, f"values of {name}").satisfies(lambda values: len(values) <= 1, "one value in all frames")


@invariant("Every frame has a list of choices.", MUST, spec="P0.7; F096", over="streams")
def frames_have_choices(reply: Reply) -> None:
    for frame in reply.frames:
        if "error" not in frame.data and not expect(frame.data.get("choices"), f"{frame.where}: choices").is_a(
            list, "a list"
        ):
            break


@invariant("Every choice says its index and has a delta.", MUST, spec="P0.8", over="streams")
def choices_have_index_and_delta(reply: Reply) -> None:
    for frame in reply.frames:
        for choice in frame.choices:
            good = expect(choice.get("index"), f"{frame.where}: index").is_a(int, "an integer") and expect(
                choice.get("delta"), f"{frame.where}: delta"
            ).is_a(dict, "an object")
            if not good:
                return


@invariant(
    "A frame carries exactly one choice, with its finish reason even while that is null.",
    MUST,
    spec="P0.8",
    over="streams",
    contract=MOONSHOT,
)
def one_choice_a_frame(reply: Reply) -> None:
    for frame in reply.frames:
        if not frame.choices:
            continue
        good = expect(len(frame.choices), f"{frame.where}: number of choices").equals(1)
        if not good or not expect(sorted(frame.choices[0]), f"{frame.where}: keys of the choice").satisfies(
            lambda keys: "finish_reason" in keys, "finish_reason among them"
        ):
            break


@invariant(
    "The first frame of a choice names the role assistant and does not finish.", MUST, spec="P0.9", over="streams"
)
def first_frame_names_the_role(reply: Reply) -> None:
    if reply.choices():
        frame, choice = reply.choices()[0]
        delta = choice.get("delta")
        expect(delta.get("role") if isinstance(delta, dict) else None, f"{frame.where}: role").equals("assistant")
        expect(choice.get("finish_reason"), f"{frame.where}: finish_reason").equals(None)


@invariant("The role is named once.", SHOULD, spec="P1.6; F100", over="streams")
def role_is_named_once(reply: Reply) -> None:
    named = [frame.where for frame in reply.frames for delta in frame.deltas if delta.get("role")]
    expect(named, "frames that name the role").satisfies(lambda named: len(named) <= 1, "one frame at most")


@invariant("The first frame has the key `content`.", SHOULD, spec="P1.5", over="streams", contract=MOONSHOT)
def first_frame_has_content(reply: Reply) -> None:
    if reply.frames and reply.frames[0].deltas:
        keys = sorted(reply.frames[0].deltas[0])
        expect(keys, "keys of the first delta").satisfies(lambda keys: "content" in keys, "content among them")


@invariant("Text in a delta is a string or null.", MUST, spec="P0.10, P0.12", over="streams")
def deltas_hold_text(reply: Reply) -> None:
    for frame in reply.frames:
        for delta in frame.deltas:
            for name in ("content", "reasoning_content", "reasoning"):
                if delta.get(name) is not None and not expect(delta[name], f"{frame.where}: {name}").is_a(
                    str, "a string"
                ):
                    return


@invariant(
    "A delta has only keys that carry a value; none is null.",
    MUST,
    spec="P0.10, P0.12; F094",
    over="streams",
    contract=MOONSHOT,
)
def deltas_have_no_null(reply: Reply) -> None:
    for place, frame in enumerate(reply.frames):
        for delta in frame.deltas:
            # P1.5 allows the first frame to say `content: null`.
            null = [name for name, value in delta.items() if value is None and not (place == 0 and name == "content")]
            if not expect(null, f"{frame.where}: null keys").is_empty():
                return


@invariant(
    "A frame adds to one of reasoning, content and tool calls.", SHOULD, spec="P1", over="streams", contract=MOONSHOT
)
def one_kind_a_frame(reply: Reply) -> None:
    for frame in reply.frames:
        for delta in frame.deltas:
            kinds = [name for name in ("reasoning_content", "content", "tool_calls") if delta.get(name)]
            if len(kinds) > 1:
                note(frame.where, "one kind of increment", " and ".join(kinds))
                return


# --- reasoning --------------------------------------------------------------------------------------------------------


@invariant("Reasoning ends before the answer begins.", MUST, spec="protocol.md §1.3; F105", over="streams")
def reasoning_comes_first(reply: Reply) -> None:
    answering = False
    for frame, choice in reply.choices():
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            continue
        answering = answering or bool(delta.get("content")) or bool(delta.get("tool_calls"))
        if answering and (delta.get("reasoning_content") or delta.get("reasoning")):
            note(frame.where, "no reasoning after the answer began", "reasoning")
            return


@invariant(
    'One frame `reasoning_content: ""` stands between the reasoning and what follows it.',
    SHOULD,
    spec="P1.7",
    over="streams",
    contract=MOONSHOT,
)
def boundary_frame_ends_the_reasoning(reply: Reply) -> None:
    if not reply.reasoning or not (reply.text or reply.calls):
        return
    empty = [frame.where for frame in reply.frames for delta in frame.deltas if delta.get("reasoning_content") == ""]
    expect(empty, "frames with an empty reasoning_content").has_length(1)


# --- tool calls -------------------------------------------------------------------------------------------------------


def _pieces(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    return [
        (frame.where, piece)
        for frame in reply.frames
        for delta in frame.deltas
        for piece in (delta.get("tool_calls") if isinstance(delta.get("tool_calls"), list) else None) or ()
        if isinstance(piece, dict)
    ]


def _function(piece: dict[str, Any]) -> dict[str, Any]:
    function = piece.get("function")
    return function if isinstance(function, dict) else {}


def _opening(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    first: dict[Any, tuple[str, dict[str, Any]]] = {}
    for where, piece in _pieces(reply):
        first.setdefault(piece.get("index"), (where, piece))
    return list(first.values())


@invariant("The first piece of a call has its id, its type and its name.", MUST, spec="P0.13", over="streams")
def opening_piece_names_the_call(reply: Reply) -> None:
    for where, piece in _opening(reply):
        function = _function(piece)
        expect(piece.get("id"), f"{where}: tool_calls id").is_text()
        expect(piece.get("type"), f"{where}: tool_calls type").equals("function")
        expect(function.get("name"), f"{where}: tool_calls function.name").is_text()


@invariant(
    "The first piece of a call has empty arguments.", MUST, spec="P0.13, P1.8", over="streams", contract=MOONSHOT
)
def opening_piece_has_empty_arguments(reply: Reply) -> None:
    for where, piece in _opening(reply):
        function = _function(piece)
        expect(function.get("arguments"), f"{where}: arguments of the first piece").equals("")


@invariant("A later piece of a call repeats neither id nor name.", MUST, spec="P0.3", over="streams")
def later_pieces_only_add_arguments(reply: Reply) -> None:
    opening = [id(piece) for _, piece in _opening(reply)]
    for where, piece in _pieces(reply):
        if id(piece) in opening:
            continue
        function = _function(piece)
        if piece.get("id") or function.get("name"):
            note(
                where, "only index and arguments in a later piece", f"id {piece.get('id')!r}, {function.get('name')!r}"
            )
            return


@invariant(
    "A later piece has no keys but `index` and `function.arguments`.",
    MUST,
    spec="P0.3",
    over="streams",
    contract=MOONSHOT,
)
def later_pieces_have_no_other_keys(reply: Reply) -> None:
    opening = [id(piece) for _, piece in _opening(reply)]
    for where, piece in _pieces(reply):
        function = _function(piece)
        keys = sorted(piece) + [f"function.{name}" for name in sorted(function)]
        if id(piece) not in opening and keys != ["function", "index", "function.arguments"]:
            note(where, "index and function.arguments", ", ".join(keys))
            return


@invariant("The calls of a stream are numbered 0, 1, 2 … as they appear.", MUST, spec="P0.14; F025", over="streams")
def calls_are_numbered_from_zero(reply: Reply) -> None:
    indexes = [piece.get("index") for _, piece in _opening(reply)]
    expect(indexes, "indexes of the calls").equals(list(range(len(indexes))))
    ids: dict[object, object] = {}
    for where, piece in _pieces(reply):
        index = piece.get("index")
        if piece.get("id") and ids.setdefault(index, piece["id"]) != piece["id"]:
            note(where, f"the id {ids[index]!r} for index {index}", repr(piece["id"]))
            return


@invariant("The pieces of one call come together.", SHOULD, spec="P1.9", over="streams")
def calls_are_not_interleaved(reply: Reply) -> None:
    order = [piece.get("index") for _, piece in _pieces(reply)]
    runs = [index for place, index in enumerate(order) if place == 0 or order[place - 1] != index]
    expect(len(runs), "runs of pieces").equals(len(set(runs)))


@invariant("No delta holds an empty list of tool calls.", SHOULD, spec="F009", over="streams")
def no_delta_has_an_empty_list_of_calls(reply: Reply) -> None:
    empty = [frame.where for frame in reply.frames for delta in frame.deltas if delta.get("tool_calls") == []]
    expect(len(empty), "deltas with tool_calls: []").equals(0)


# --- the end ----------------------------------------------------------------------------------------------------------


@invariant("A choice finishes exactly once.", MUST, spec="P0.15, P1.11; F107", over="streams")
def a_choice_finishes_once(reply: Reply) -> None:
    if not reply.is_stream:
        return
    for index in sorted({choice.get("index", 0) for frame in reply.frames for choice in frame.choices}, key=repr) or [
        0
    ]:
        reasons = [choice.get("finish_reason") for _, choice in reply.choices(index)]
        expect([reason for reason in reasons if reason is not None], "finish reasons").has_length(1)


@invariant("Nothing is said after the finish reason.", MUST, spec="P1.12", over="streams")
def nothing_is_said_after_the_end(reply: Reply) -> None:
    ended = False
    for frame, choice in reply.choices():
        delta = choice.get("delta")
        said = [name for name, value in delta.items() if value and name != "role"] if isinstance(delta, dict) else []
        if ended and not expect(said, f"{frame.where}: after the finish reason").is_empty():
            return
        ended = ended or choice.get("finish_reason") is not None


@invariant(
    "The frame with the finish reason has an empty delta.",
    SHOULD,
    spec="P1.10, P1.12; F102",
    over="streams",
    contract=MOONSHOT,
)
def end_frame_has_an_empty_delta(reply: Reply) -> None:
    for frame, choice in reply.choices():
        if choice.get("finish_reason") is not None:
            expect(choice.get("delta"), f"{frame.where}: delta of the end frame").equals({})


# --- usage in streams -------------------------------------------------------------------------------------------------


@invariant(
    "With include_usage one frame without choices, after the end, carries the usage.",
    MUST,
    spec="P0.1; F095, F096",
    over="streams",
)
def usage_comes_in_a_frame_of_its_own(reply: Reply) -> None:
    options = reply.request.get("stream_options")
    if not reply.is_stream or not isinstance(options, dict) or options.get("include_usage") is not True:
        return
    summaries = [frame for frame in reply.frames if isinstance(frame.data.get("usage"), dict) and not frame.choices]
    require(expect(len(summaries), "frames with usage and no choices").equals(1))
    expect(summaries[0].data.get("choices"), f"{summaries[0].where}: choices").equals([])
    last = max((frame.index for frame, choice in reply.choices()), default=-1)
    expect(summaries[0].index, "place of the usage frame").satisfies(lambda place: place > last, "after all choices")


@invariant(
    "The end frame carries the usage inside its choice.", MUST, spec="P0.4; F114", over="streams", contract=MOONSHOT
)
def end_frame_carries_usage(reply: Reply) -> None:
    for frame, choice in reply.choices():
        if choice.get("finish_reason") is not None:
            expect(choice.get("usage"), f"{frame.where}: choices[0].usage").is_a(dict, "an object")


@invariant("No frame before the end carries usage.", SHOULD, spec="P1.15", over="streams", contract=MOONSHOT)
def middle_frames_carry_no_usage(reply: Reply) -> None:
    options = reply.request.get("stream_options")
    if isinstance(options, dict) and options.get("continuous_usage_stats"):
        return
    for frame, choice in reply.choices():
        if choice.get("finish_reason") is None and (choice.get("usage") or frame.data.get("usage")):
            note(frame.where, "no usage before the end", "usage")
            return


# --- checks with requests of their own --------------------------------------------------------------------------------


@check("A long answer comes in pieces, not in one.", MUST, spec="F003; OpenAI streaming", variants=("streamed",))
async def a_long_answer_comes_in_pieces(chat: Chat) -> None:
    reply = await chat.answer([user("Count from 1 to 60")])

    pieces = [frame for frame in reply.frames for delta in frame.deltas if delta.get("content")]
    expect(len(pieces), "frames with content").at_least(3)


@check(
    "`stream_options.include_internal_content` gives the token ids of every increment.",
    MUST,
    spec="P0.5",
    variants=("streamed",),
    contract=MOONSHOT,
)
async def internal_content_has_token_ids(chat: Chat) -> None:
    reply = await chat.answer(
        [user("What is 17 + 25?")],
        stream_options={"include_usage": True, "include_internal_content": True},
    )

    for frame in reply.frames:
        for delta in frame.deltas:
            if any(delta.get(name) for name in ("content", "reasoning_content", "tool_calls")):
                internal = delta.get("internal_content")
                ids = internal.get("token_ids") if isinstance(internal, dict) else None
                require(
                    expect(ids, f"{frame.where}: internal_content.token_ids").satisfies(
                        lambda ids: (
                            isinstance(ids, list) and bool(ids) and all(isinstance(i, int) and i >= 0 for i in ids)
                        ),
                        "a non-empty list of integers",
                    )
                )


@check(
    "The same question streamed and whole gets the same kind of answer.",
    MUST,
    spec="F002, F018, F114",
    variants=("text", "call"),
)
async def lanes_agree(chat: Chat) -> None:
    if chat.variant == "text":
        messages, more = [user("What is 40 + 2?")], dict[str, Any]()
    else:
        messages = [user('Call `note` with exactly these arguments: {"text": "two lanes"}')]
        more = {"tools": [function("note", {"text": {"type": "string"}})], "tool_choice": "required"}
    streamed, whole = await chat.many(
        chat.answer(messages, stream=True, **more), chat.answer(messages, stream=False, **more)
    )

    expect(streamed.finish_reason, "finish_reason of the stream").equals(whole.finish_reason)
    expect(len(streamed.calls), "number of calls in the stream").equals(len(whole.calls))
    expect([call.name for call in streamed.calls], "names in the stream").equals([call.name for call in whole.calls])
    expect(bool(streamed.reasoning), "reasoning in the stream").equals(bool(whole.reasoning))
    expect(bool(streamed.text.strip()) or bool(streamed.calls), "an answer in the stream").equals(True)
    expect(streamed.tokens("prompt_tokens"), "prompt_tokens of the stream").equals(whole.tokens("prompt_tokens"))
