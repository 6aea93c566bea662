"""Parameters: rules of the contract that a deployment does not keep, and some that it invents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kimi_eval.fault import Fault, fault
from kimi_eval.simulator.connection import Connection
from kimi_eval.simulator.request import Request


def accepts(
    title: str, *rules: str, source: str, kind: str = "sampling", noticed_by: list[str]
) -> Callable[[Any], Fault]:
    """A fault that skips these rules; the function below gives it its name."""

    def make(named: Callable[[], None]) -> Fault:
        def skipped(request: Request) -> set[str]:
            return set(rules)

        skipped.__name__ = named.__name__
        return fault(title, source=source, kind=kind, at="rules", noticed_by=noticed_by)(skipped)

    return make


@accepts(
    "Any temperature is accepted.",
    "temperature",
    source="KVV params; protocol.md §6.3 (F163)",
    noticed_by=[
        "protocol/parameters/temperature_is_fixed",
        "protocol/parameters/impossible_values_are_refused[temperature_is_minus_one]",
        "protocol/parameters/impossible_values_are_refused[temperature_is_text]",
    ],
)
def any_temperature() -> None: ...


@accepts(
    "Any top_p is accepted.",
    "top_p",
    source="KVV params",
    noticed_by=[
        "protocol/parameters/top_p_is_fixed",
        "protocol/parameters/impossible_values_are_refused[top_p_is_two]",
    ],
)
def any_top_p() -> None: ...


@accepts(
    "Penalties are accepted.",
    "presence_penalty",
    "frequency_penalty",
    source="KVV params",
    noticed_by=["protocol/parameters/penalties_are_fixed"],
)
def any_penalty() -> None: ...


@accepts(
    "n = 2 is accepted, and one answer given.",
    "n",
    source="KVV params (F105)",
    noticed_by=["protocol/parameters/n_is_one", "protocol/parameters/impossible_values_are_refused[n_is_zero]"],
)
def any_n() -> None: ...


@accepts(
    "A ceiling of 0 or below is accepted.",
    "max_completion_tokens",
    source="sglang#36856 (F170)",
    kind="limits",
    noticed_by=["protocol/parameters/an_impossible_ceiling_is_refused"],
)
def any_ceiling() -> None: ...


@accepts(
    "Any number of stop words is accepted.",
    "stop_count",
    source="protocol.md §2.1",
    kind="limits",
    noticed_by=["protocol/parameters/stop_words_are_limited[six_words]"],
)
def many_stop_words() -> None: ...


@accepts(
    "Stop words of any length are accepted.",
    "stop_length",
    source="protocol.md §2.1",
    kind="limits",
    noticed_by=["protocol/parameters/stop_words_are_limited[33_bytes]"],
)
def long_stop_words() -> None: ...


@accepts(
    "Any number of top_logprobs is accepted.",
    "top_logprobs",
    source="sglang#36856 (F170)",
    kind="limits",
    noticed_by=["protocol/parameters/top_logprobs_are_limited"],
)
def any_top_logprobs() -> None: ...


@accepts(
    "A ceiling beyond the window is accepted.",
    "window",
    source="protocol.md §2.1 (F121)",
    kind="limits",
    noticed_by=[
        "protocol/parameters/an_over_long_prompt_is_refused",
        "protocol/parameters/a_ceiling_beyond_the_window_is_refused",
    ],
)
def no_window() -> None: ...


@accepts(
    "An unknown model is answered.",
    "model",
    source="protocol.md §5",
    kind="errors",
    noticed_by=["protocol/errors/an_unknown_model_is_refused"],
)
def any_model() -> None: ...


@accepts(
    "Messages may be missing.",
    "messages",
    source="protocol.md §2.1",
    kind="errors",
    noticed_by=["protocol/errors/messages_are_required"],
)
def no_messages_needed() -> None: ...


@accepts(
    "An unknown role is accepted.",
    "role",
    source="protocol.md §2.1",
    kind="errors",
    noticed_by=["protocol/errors/an_unknown_role_is_refused"],
)
def any_role() -> None: ...


@accepts(
    "A user message may be empty.",
    "user_content",
    source="protocol.md §2.1",
    kind="errors",
    noticed_by=["protocol/errors/an_empty_user_message_is_refused"],
)
def empty_user_message() -> None: ...


@accepts(
    "A tool of any name is accepted.",
    "tool_name",
    source="KVV dynamic tools",
    kind="tool_call",
    noticed_by=["tools/calls/illegal_names_are_refused"],
)
def any_tool_name() -> None: ...


@accepts(
    "Two tools may share a name.",
    "tool_name_unique",
    source="protocol.md §2.3",
    kind="tool_call",
    noticed_by=["tools/calls/duplicate_names_are_refused"],
)
def shared_tool_names() -> None: ...


@accepts(
    "Any word is accepted as tool_choice.",
    "tool_choice",
    source="KVV tool_choice",
    kind="tool_call",
    noticed_by=["tools/tool_choice/an_unknown_choice_is_refused"],
)
def any_tool_choice() -> None: ...


@accepts(
    "`required` is accepted without tools.",
    "tool_choice_required_needs_tools",
    source="KVV tool_choice",
    kind="tool_call",
    noticed_by=["tools/tool_choice/required_needs_tools"],
)
def required_without_tools() -> None: ...


@accepts(
    "Tools may be declared in a message of any role.",
    "dynamic_tools_role",
    "dynamic_tools_content",
    source="KVV dynamic tools (F037)",
    kind="tool_call",
    noticed_by=[
        "tools/dynamic/other_forms_are_refused[in_a_user_message]",
        "tools/dynamic/other_forms_are_refused[in_an_assistant_message]",
        "tools/dynamic/other_forms_are_refused[next_to_content]",
    ],
)
def dynamic_tools_in_any_role() -> None: ...


@accepts(
    "Tools may be declared next to content.",
    "dynamic_tools_content",
    source="KVV dynamic tools (F037)",
    kind="tool_call",
    noticed_by=["tools/dynamic/other_forms_are_refused[next_to_content]"],
)
def dynamic_tools_next_to_content() -> None: ...


@accepts(
    "Declared tools of any shape are accepted.",
    "dynamic_tools_list",
    "dynamic_tools_object",
    "dynamic_tools_unique",
    "tool_object",
    source="KVV dynamic tools (F037)",
    kind="tool_call",
    noticed_by=[
        "tools/dynamic/other_forms_are_refused[like_a_tool_of_the_request]",
        "tools/dynamic/other_forms_are_refused[no_function]",
        "tools/dynamic/other_forms_are_refused[no_name]",
        "tools/dynamic/other_forms_are_refused[no_type]",
        "tools/dynamic/other_forms_are_refused[not_a_list]",
        "tools/dynamic/other_forms_are_refused[null_item]",
        "tools/dynamic/other_forms_are_refused[twice_across_messages]",
        "tools/dynamic/other_forms_are_refused[twice_in_one_message]",
        "tools/dynamic/other_forms_are_refused[unknown_type]",
    ],
)
def dynamic_tools_of_any_shape() -> None: ...


@accepts(
    "A malformed response format is accepted.",
    "response_format_type",
    "response_format_json_schema",
    "response_format_name",
    "response_format_schema",
    "response_format_strict",
    source="KVV response_format",
    kind="structured_output",
    noticed_by=["structured/formats/malformed_formats_are_refused"],
)
def any_response_format() -> None: ...


@accepts(
    "A tool result needs no call.",
    "tool_call_id",
    "tool_call_id_known",
    source="protocol.md §4",
    kind="multi_turn",
    noticed_by=["tools/ids/results_need_their_call"],
)
def results_without_a_call() -> None: ...


# --- rules that are invented ------------------------------------------------------------------------------------------


def refused(connection: Connection, message: str, status: int = 400) -> None:
    """Sends a refusal in place of the answer."""
    connection.become(Connection.of_json(status, {"error": {"message": message, "type": "invalid_request_error"}}))


@fault(
    "Temperature 1 is refused.",
    source="Kimi-K2#124 (F163)",
    kind="sampling",
    at="transport",
    noticed_by=["protocol/parameters/temperature_is_fixed", "protocol/parameters/fixed_values_are_accepted"],
)
async def temperature_one_is_refused(request: Request, connection: Connection) -> None:
    if request.body.get("temperature") == 1:
        refused(connection, "invalid temperature: only 0.6 is allowed for this model")


@fault(
    "Unknown fields are refused.",
    source="protocol.md §2.1",
    kind="errors",
    at="transport",
    noticed_by=["protocol/parameters/unknown_fields_are_ignored"],
)
async def unknown_fields_are_refused(request: Request, connection: Connection) -> None:
    if any(name.startswith("kimi_eval") for name in request.body):
        refused(connection, "extra fields not permitted")


@fault(
    "Effort high is refused.",
    source="lobehub#17272 (F056)",
    kind="reasoning",
    at="transport",
    noticed_by=["thinking/effort/every_effort_is_accepted[high]"],
)
async def effort_high_is_refused(request: Request, connection: Connection) -> None:
    if request.body.get("reasoning_effort") == "high":
        refused(connection, "A parameter specified in the request is not valid")


@fault(
    "`strict` in a tool is a server error.",
    source="sglang#8087 (F035)",
    kind="tool_call",
    at="transport",
    noticed_by=[
        "tools/arguments/arguments_satisfy_the_schema",
        "tools/arguments/strict_is_accepted[true]",
        "protocol/invariants/errors_have_the_envelope",
        "protocol/invariants/nothing_is_a_server_error",
    ],
)
async def strict_is_500(request: Request, connection: Connection) -> None:
    if any(tool.get("strict") is True for tool in request.tools):
        connection.become(Connection.of_json(500, {"object": "error", "message": "Internal Server Error", "code": 500}))


@fault(
    "An assistant message without the key `content` is refused with 422.",
    source="kimi-code#3017 (F066)",
    kind="multi_turn",
    at="transport",
    noticed_by=[
        "conversation/history/content_next_to_calls_may_be_missing[absent-streamed]",
        "conversation/history/content_next_to_calls_may_be_missing[absent-whole]",
    ],
)
async def content_key_is_required(request: Request, connection: Connection) -> None:
    if any(message.get("role") == "assistant" and "content" not in message for message in request.messages):
        refused(connection, "messages.1.content: invalid input", 422)


@fault(
    "Malformed arguments in the history are refused.",
    source="smg#2564 (F069)",
    kind="multi_turn",
    at="transport",
    noticed_by=["conversation/history/broken_arguments_in_history_are_accepted"],
)
async def broken_history_is_refused(request: Request, connection: Connection) -> None:
    for message in request.messages:
        for call in message.get("tool_calls") or []:
            if not str(call["function"].get("arguments")).endswith("}"):
                refused(connection, "process_messages_failed")


@fault(
    "`auto` and `none` are refused without tools.",
    source="vLLM 0.33; protocol.md §6.3",
    kind="tool_call",
    at="transport",
    noticed_by=["tools/tool_choice/auto_and_none_need_no_tools"],
)
async def choice_needs_tools(request: Request, connection: Connection) -> None:
    if request.body.get("tool_choice") in ("auto", "none") and not request.tools:
        refused(connection, "When using `tool_choice`, `tools` must be set.")


@fault(
    "A body that is not JSON is a server error.",
    source="fakellm; protocol.md §5",
    kind="errors",
    at="error",
    noticed_by=["protocol/errors/broken_json_is_refused", "protocol/invariants/nothing_is_a_server_error"],
)
def broken_json_is_500(request: Request, told: tuple[int, Any]) -> tuple[int, Any]:
    if "JSON object" in told[1]["error"]["message"]:
        return 500, {"error": {"message": "Expecting value: line 1 column 1", "type": "server_error"}}
    return told


@fault(
    "An impossible temperature is clamped, not refused.",
    source="protocol.md §2.1 (F163)",
    kind="sampling",
    at="body",
    noticed_by=["protocol/parameters/impossible_values_are_refused"],
)
def impossible_values_are_clamped(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    clamped = dict(body)
    if clamped.get("temperature") in ("hot", -1):
        clamped["temperature"] = 1
    if clamped.get("top_p") == 2:
        clamped["top_p"] = 0.95
    if clamped.get("n") == 0:
        clamped["n"] = 1
    return clamped
