"""Tool calls: faults of the parser that turns what the model wrote into calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.answer import Answer, Call
from kimi_eval.simulator.frames import choices_of
from kimi_eval.simulator.request import Request

Frames = list[dict[str, Any]]


def native(call: Call, index: int = 1) -> str:
    """The call in the model's own format."""
    return f'<|open|>call tool="{call.name}" index="{index}"<|sep|>{call.arguments}<|close|>call<|sep|>'


def pieces(frames: Frames) -> list[dict[str, Any]]:
    """Every piece of every call."""
    return [piece for choice in choices_of(frames) for piece in choice["delta"].get("tool_calls", [])]


@fault(
    "A streamed call stays in the reasoning, in the model's own format.",
    source="vllm#53246 (F001)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/ids/a_loop_goes_round[streamed]",
        "tools/tool_choice/auto_calls_when_needed[streamed]",
        "protocol/invariants/no_native_marker_leaks",
        "protocol/invariants/an_answer_is_not_empty",
    ],
)
def call_stays_in_reasoning(request: Request, answer: Answer) -> Answer:
    if not (request.streamed and answer.calls and request.tool_choice == "auto" and "weather in" in request.question):
        return answer
    text = answer.reasoning + "<|open|>tools<|sep|>" + "".join(native(call) for call in answer.calls)
    return answer.misread(reasoning=text, content="", calls=(), finish_reason="stop")


@fault(
    "The end marker leaks into streamed content when tools are declared.",
    source="vllm#51412 (F002)",
    kind="tool_call",
    at="answer",
    noticed_by=["protocol/invariants/no_native_marker_leaks"],
)
def end_marker_leaks(request: Request, answer: Answer) -> Answer:
    if request.streamed and request.tools and answer.content and not answer.calls:
        return answer.misread(content=answer.content + "<|close|>message<|sep|>")
    return answer


@fault(
    "`required` is answered in prose.",
    source="vllm#51355 (F004)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/tool_choice/required_forces_a_call"],
)
def required_is_not_enforced(request: Request, answer: Answer) -> Answer:
    if request.tool_choice == "required" and "how are you" in request.question:
        return Answer(answer.reasoning, "Fine, thank you!")
    return answer


@fault(
    "The second and later calls are dumped as text, markers half stripped.",
    source="oh-my-pi#8495 (F008)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/calls/three_calls_come_as_three", "protocol/invariants/no_native_marker_leaks"],
)
def later_calls_become_text(request: Request, answer: Answer) -> Answer:
    if len(answer.calls) < 2:
        return answer
    rest = "".join(f'toolscall tool="{call.name}" index="2"{call.arguments}' for call in answer.calls[1:])
    return answer.misread(content=answer.content + rest, calls=answer.calls[:1])


@fault(
    "The text of a streamed call is repeated in content.",
    source="vllm#31207 (F010)",
    kind="tool_call",
    at="answer",
    noticed_by=["protocol/invariants/no_call_is_repeated_as_text"],
)
def call_is_repeated_in_content(request: Request, answer: Answer) -> Answer:
    if request.streamed and answer.calls and "Turin" in request.question:
        return answer.misread(content=answer.content + " get_weather " + answer.calls[0].arguments)
    return answer


@fault(
    "With one or two tools the call arrives as text.",
    source="hermes-agent#24534 (F012)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/calls/any_number_of_tools_works[1-streamed]",
        "tools/calls/any_number_of_tools_works[1-whole]",
        "tools/calls/any_number_of_tools_works[2-streamed]",
        "tools/calls/any_number_of_tools_works[2-whole]",
        "protocol/invariants/no_native_marker_leaks",
    ],
)
def small_toolsets_are_not_parsed(request: Request, answer: Answer) -> Answer:
    if answer.calls and "Quito" in request.question and len(request.tools) <= 2 and request.tool_choice == "auto":
        call = answer.calls[0]
        text = f"functions.{call.name}:0<|tool_call_argument_begin|>{call.arguments}<|tool_call_end|>"
        return answer.misread(content=text, calls=(), finish_reason="stop")
    return answer


@fault(
    "Adjacent calls are merged into one.",
    source="vllm#24478 (F014)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/calls/three_calls_come_as_three[whole]", "protocol/invariants/arguments_are_one_object"],
)
def adjacent_calls_are_merged(request: Request, answer: Answer) -> Answer:
    if len(answer.calls) < 2 or request.streamed:
        return answer
    merged = "".join(call.arguments for call in answer.calls)
    return answer.misread(calls=(replace(answer.calls[0], arguments=merged),))


@fault(
    "The first of several streamed calls loses the end of its arguments.",
    source="vllm#38274 (F018)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/calls/three_calls_come_as_three[streamed]", "protocol/invariants/arguments_are_one_object"],
)
def first_call_is_cut(request: Request, answer: Answer) -> Answer:
    if len(answer.calls) < 2 or not request.streamed:
        return answer
    first = replace(answer.calls[0], arguments=answer.calls[0].arguments[:-4])
    return answer.misread(calls=(first, *answer.calls[1:]))


@fault(
    "`none` still calls.",
    source="vllm#43155 (F029)",
    kind="tool_call",
    at="body",
    noticed_by=["tools/tool_choice/none_forbids_calls"],
)
def none_still_calls(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "tool_choice": "auto"} if body.get("tool_choice") == "none" and body.get("tools") else body


@fault(
    "A forced call has no reasoning.",
    source="vllm#43155 (F029)",
    kind="reasoning",
    at="answer",
    noticed_by=[
        "thinking/channels/a_call_has_reasoning[required-streamed]",
        "thinking/channels/a_call_has_reasoning[required-whole]",
    ],
)
def forced_calls_lose_reasoning(request: Request, answer: Answer) -> Answer:
    return replace(answer, reasoning="") if request.tool_choice == "required" and answer.calls else answer


@fault(
    "`required` degenerates to a bracket and blanks until the ceiling.",
    source="dynamo#12910 (F030)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/tool_choice/required_forces_a_call",
        "protocol/invariants/no_text_is_degenerate",
        "protocol/invariants/answers_keep_to_the_ceiling",
    ],
)
def required_degenerates(request: Request, answer: Answer) -> Answer:
    if request.tool_choice == "required" and "how are you" in request.question:
        return Answer(answer.reasoning, "[" + "\n" * 100, finish_reason="length", generated=None).misread()
    return answer


@fault(
    "`parallel_tool_calls: false` is ignored.",
    source="vllm#9451 (F031)",
    kind="tool_call",
    at="body",
    noticed_by=["tools/calls/one_call_at_a_time_on_request"],
)
def parallel_flag_is_ignored(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "parallel_tool_calls"}


@fault(
    "A call of a tool with a hyphen in its name is dropped.",
    source="vllm#22149 (F033)",
    kind="tool_call",
    at="answer",
    noticed_by=[
        "tools/calls/every_legal_name_works[hyphen-streamed]",
        "tools/calls/every_legal_name_works[hyphen-whole]",
    ],
)
def hyphens_drop_the_call(request: Request, answer: Answer) -> Answer:
    kept = tuple(call for call in answer.calls if "-" not in call.name)
    if len(kept) == len(answer.calls):
        return answer
    return answer.misread(calls=kept, content="list items", finish_reason="stop")


@fault(
    "A tool that is not declared is called.",
    source="vLLM blog 2025-10-28 (F038)",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/arguments/arguments_satisfy_the_schema", "protocol/invariants/calls_name_declared_tools"],
)
def undeclared_tool_is_called(request: Request, answer: Answer) -> Answer:
    if answer.calls and "How warm is it" in request.question:
        return replace(answer, calls=(replace(answer.calls[0], name="draw"),))
    return answer


@fault(
    "The calls of one reply share an id.",
    source="protocol.md §3.2",
    kind="tool_call",
    at="answer",
    noticed_by=["protocol/invariants/call_ids_are_unique"],
)
def ids_are_shared(request: Request, answer: Answer) -> Answer:
    return replace(answer, calls=tuple(replace(call, id="call_0") for call in answer.calls))


@fault(
    "All streamed calls have index 0.",
    source="dynamo#4723 (F025)",
    kind="tool_call",
    at="frames",
    noticed_by=[
        "protocol/client/the_client_reads_calls[streamed]",
        "tools/calls/three_calls_come_as_three[streamed]",
        "protocol/invariants/arguments_are_one_object",
        "protocol/streaming/later_pieces_only_add_arguments",
        "protocol/streaming/later_pieces_have_no_other_keys",
        "protocol/streaming/calls_are_numbered_from_zero",
    ],
)
def every_index_is_zero(request: Request, frames: Frames) -> Frames:
    for piece in pieces(frames):
        piece["index"] = 0
    return frames


@fault(
    "Streamed calls are numbered from 1.",
    source="P0.14",
    kind="tool_call",
    at="frames",
    noticed_by=["protocol/streaming/calls_are_numbered_from_zero"],
)
def indexes_begin_at_one(request: Request, frames: Frames) -> Frames:
    for piece in pieces(frames):
        piece["index"] += 1
    return frames


@fault(
    "The pieces of two calls are interleaved.",
    source="P1.9",
    kind="tool_call",
    at="frames",
    noticed_by=["protocol/streaming/calls_are_not_interleaved"],
)
def pieces_are_interleaved(request: Request, frames: Frames) -> Frames:
    places = [place for place, frame in enumerate(frames) if pieces([frame])]
    second = next((place for place in places if pieces([frames[place]])[0]["index"] == 1), None)
    if second is None:
        return frames
    # The last piece of the first call moves behind the first piece of the second.
    return [*frames[: second - 1], frames[second], frames[second - 1], *frames[second + 1 :]]


@fault(
    "A streamed call comes whole in one frame.",
    source="vllm#50604 (F003)",
    kind="tool_call",
    at="frames",
    noticed_by=["tools/arguments/a_long_argument_is_streamed", "protocol/streaming/opening_piece_has_empty_arguments"],
)
def call_comes_at_once(request: Request, frames: Frames) -> Frames:
    kept: Frames = []
    opening: dict[int, dict[str, Any]] = {}
    for frame in frames:
        piece = next(iter(pieces([frame])), None)
        if piece is None or piece["index"] not in opening:
            if piece is not None:
                opening[piece["index"]] = piece
            kept.append(frame)
        else:
            opening[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]
    return kept


@fault(
    "Every piece of a call repeats its id and name.",
    source="P0.3",
    kind="tool_call",
    at="frames",
    noticed_by=[
        "protocol/client/the_client_reads_calls[streamed]",
        "protocol/streaming/later_pieces_only_add_arguments",
        "protocol/streaming/later_pieces_have_no_other_keys",
    ],
)
def pieces_repeat_the_name(request: Request, frames: Frames) -> Frames:
    opening: dict[int, dict[str, Any]] = {}
    for piece in pieces(frames):
        first = opening.setdefault(piece["index"], piece)
        piece |= {"id": first["id"], "type": "function"}
        piece["function"] = {"name": first["function"]["name"], **piece["function"]}
    return frames


@fault(
    "Later pieces of a call carry null keys.",
    source="sglang#39897 (F094); P0.3",
    kind="tool_call",
    at="frames",
    noticed_by=["protocol/streaming/later_pieces_have_no_other_keys"],
)
def pieces_carry_null(request: Request, frames: Frames) -> Frames:
    for piece in pieces(frames):
        if "id" not in piece:
            piece |= {"id": None, "type": None}
    return frames


@fault(
    "The first piece of a call has no id.",
    source="P0.13",
    kind="tool_call",
    at="frames",
    noticed_by=["protocol/invariants/call_ids_are_unique", "protocol/streaming/opening_piece_names_the_call"],
)
def first_piece_lacks_the_id(request: Request, frames: Frames) -> Frames:
    for piece in pieces(frames):
        if request.tool_choice == "required":
            piece.pop("id", None)
    return frames


@fault(
    "A tool stream is full of empty lists of calls.",
    source="vllm#54701 (F009)",
    kind="tool_call",
    at="frames",
    noticed_by=["protocol/streaming/no_delta_has_an_empty_list_of_calls"],
)
def empty_lists_of_calls(request: Request, frames: Frames) -> Frames:
    if not pieces(frames):
        return frames
    empty = {**frames[0], "choices": [{"index": 0, "delta": {"tool_calls": []}, "finish_reason": None}]}
    return [frames[0], *[empty] * 20, *frames[1:]]


@fault(
    "A foreign or cleaned id in the history makes the next call vanish.",
    source="sglang#25358, exo#2282 (F023, F024)",
    kind="multi_turn",
    at="answer",
    noticed_by=[
        "tools/ids/ids_of_any_style_are_accepted[anthropic-streamed]",
        "tools/ids/ids_of_any_style_are_accepted[anthropic-whole]",
        "tools/ids/ids_of_any_style_are_accepted[openai-streamed]",
        "tools/ids/ids_of_any_style_are_accepted[openai-whole]",
        "tools/ids/ids_of_any_style_are_accepted[sanitised-streamed]",
        "tools/ids/ids_of_any_style_are_accepted[sanitised-whole]",
        "tools/ids/ids_of_any_style_are_accepted[uuid-streamed]",
        "tools/ids/ids_of_any_style_are_accepted[uuid-whole]",
        "protocol/invariants/an_answer_is_not_empty",
    ],
)
def foreign_ids_drop_the_call(request: Request, answer: Answer) -> Answer:
    ids = [call["id"] for message in request.messages for call in message.get("tool_calls") or []]
    if answer.calls and ids and not all(":" in id or id == "get_weather_0" for id in ids):
        return answer.misread(calls=(), content="", finish_reason="stop")
    return answer


@fault(
    "`required` next to a response format gives a document and no call.",
    source="sglang#34881 (F006)",
    kind="tool_call",
    at="body",
    noticed_by=["tools/tool_choice/required_next_to_a_format"],
)
def format_beats_required(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    both = body.get("response_format") and body.get("tool_choice") == "required"
    return {**body, "tool_choice": "none"} if both else body


@fault(
    "Tools declared in a system message are dropped.",
    source="TensorRT-LLM#17845 (F037)",
    kind="tool_call",
    at=("body", "rules"),
    noticed_by=[
        "tools/dynamic/a_dynamic_tool_is_called",
        "tools/dynamic/a_dynamic_tool_is_rendered",
        "tools/dynamic/other_forms_are_refused",
        "tools/tool_choice/required_needs_tools",
    ],
)
def dynamic_tools_are_dropped(request: Request, body: dict[str, Any] | None = None) -> Any:
    if body is None:
        return {"tool_choice_required_needs_tools"}
    messages = body.get("messages")
    if not isinstance(messages, list) or not any(
        isinstance(message, dict) and message.get("role") == "system" and isinstance(message.get("tools"), list)
        for message in messages
    ):
        return body
    return {
        **body,
        "messages": [
            {key: value for key, value in message.items() if key != "tools"} if isinstance(message, dict) else message
            for message in messages
        ],
    }


@fault(
    "`auto` calls a tool for small arithmetic.",
    source="kimi_toolcall, ATOM#1727",
    kind="tool_call",
    at="answer",
    noticed_by=["tools/tool_choice/auto_may_answer_in_words"],
)
def auto_calls_needlessly(request: Request, answer: Answer) -> Answer:
    if request.tools and request.question.strip() == "What is 2 + 2?":
        return replace(
            answer,
            content="",
            calls=(Call("get_weather", '{"city":"2"}', "get_weather_0"),),
            finish_reason="tool_calls",
        )
    return answer
