"""Errors: faults of how a mistake is told, of the models list, and of whole replies."""

from __future__ import annotations

from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.connection import Connection
from kimi_eval.simulator.request import Request

Told = tuple[int, Any]


@fault(
    "A refusal has status 422.",
    source="kimi-code#3017 (F066)",
    kind="errors",
    at="error",
    noticed_by=[
        "protocol/errors/broken_json_is_refused",
        "protocol/errors/messages_are_required",
        "protocol/errors/an_unknown_role_is_refused",
        "protocol/errors/an_empty_user_message_is_refused",
        "protocol/parameters/temperature_is_fixed",
        "protocol/parameters/top_p_is_fixed",
        "protocol/parameters/penalties_are_fixed",
        "protocol/parameters/n_is_one",
        "protocol/parameters/impossible_values_are_refused",
        "protocol/parameters/an_impossible_ceiling_is_refused",
        "protocol/parameters/stop_words_are_limited",
        "protocol/parameters/top_logprobs_are_limited",
        "protocol/parameters/an_over_long_prompt_is_refused",
        "protocol/parameters/a_ceiling_beyond_the_window_is_refused",
        "structured/formats/malformed_formats_are_refused",
        "tools/calls/illegal_names_are_refused",
        "tools/calls/duplicate_names_are_refused",
        "tools/dynamic/other_forms_are_refused",
        "tools/ids/results_need_their_call",
        "tools/tool_choice/required_needs_tools",
        "tools/tool_choice/an_unknown_choice_is_refused",
    ],
)
def refusals_are_422(request: Request, told: Told) -> Told:
    return (422, told[1]) if told[0] == 400 else told


@fault(
    "An error body is flat.",
    source="Switchyard#426 (F119)",
    kind="errors",
    at="error",
    noticed_by=["protocol/invariants/errors_have_the_envelope"],
)
def errors_are_flat(request: Request, told: Told) -> Told:
    status, body = told
    return status, {"object": "error", "message": body["error"]["message"], "type": "BadRequestError", "code": status}


@fault(
    "An error is plain text.",
    source="P0.17",
    kind="errors",
    at="transport",
    noticed_by=["protocol/invariants/errors_are_json", "protocol/invariants/errors_have_the_envelope"],
)
async def errors_are_plain_text(request: Request, connection: Connection) -> None:
    if connection.status >= 400:
        connection.headers["Content-Type"] = "text/plain"
        connection.chunks = [b"Bad Request"]


@fault(
    "An error shows a stack trace.",
    source="litellm#39748 (F175)",
    kind="security",
    at="error",
    noticed_by=["protocol/invariants/errors_show_no_internals"],
)
def errors_show_a_traceback(request: Request, told: Told) -> Told:
    status, body = told
    text = 'Traceback (most recent call last):\n  File "/usr/lib/python3/site-packages/engine/serve.py", line 88'
    return status, {"error": {**body["error"], "message": text}}


@fault(
    "A malformed schema is a server error.",
    source="vllm#17313 (F085)",
    kind="structured_output",
    at="error",
    noticed_by=["protocol/errors/a_refusal_leaves_the_server_well", "protocol/invariants/nothing_is_a_server_error"],
)
def malformed_schema_is_500(request: Request, told: Told) -> Told:
    status, body = told
    properties = (request.schema or {}).get("properties", {})
    if isinstance(properties, dict) and any(not isinstance(value, dict) for value in properties.values()):
        return 500, {"error": {"message": "Internal Server Error", "type": "server_error"}}
    return status, body


@fault(
    "Every request for log probabilities is a server error.",
    source="sglang#5984 (F176)",
    kind="numerics",
    at="transport",
    noticed_by=[
        "protocol/parameters/logprobs_are_sound",
        "protocol/parameters/top_logprobs_are_limited",
        "protocol/invariants/errors_have_the_envelope",
        "protocol/invariants/nothing_is_a_server_error",
    ],
)
async def logprobs_are_500(request: Request, connection: Connection) -> None:
    if request.logprobs and connection.status == 200:
        message = {"object": "error", "message": "Out of range float values are not JSON compliant", "code": 500}
        connection.become(Connection.of_json(500, message))


@fault(
    "Now and then a request is a server error, gone when it is asked again.",
    source="vllm#49694 (F089)",
    kind="concurrency",
    at="transport",
    noticed_by=["protocol/invariants/nothing_is_a_server_error"],
)
async def now_and_then_500(request: Request, connection: Connection) -> None:
    # By content, not by count, so that it is the same request in every run.
    first = not request.state.setdefault("lost a worker", False)
    if first and "kimi_eval_unknown_field" in request.body and connection.status == 200:
        request.state["lost a worker"] = True
        connection.become(Connection.of_json(500, {"error": {"message": "worker lost", "type": "server_error"}}))


@fault(
    "The models list does not name the model.",
    source="protocol.md §7",
    kind="errors",
    at="models",
    noticed_by=["protocol/models/the_model_is_listed"],
)
def models_list_is_empty(request: Request, listed: dict[str, Any]) -> dict[str, Any]:
    return {**listed, "data": []}


@fault(
    "The entries of the models list have an id only.",
    source="OpenAI API reference",
    kind="errors",
    at="models",
    noticed_by=["protocol/models/entries_have_their_fields"],
)
def models_have_an_id_only(request: Request, listed: dict[str, Any]) -> dict[str, Any]:
    kept = ("id", "owned_by", "max_model_len")
    return {**listed, "data": [{name: entry[name] for name in kept} for entry in listed["data"]]}


@fault(
    "An unknown path is answered with 200.",
    source="protocol.md §5",
    kind="errors",
    at="transport",
    noticed_by=["protocol/errors/an_unknown_path_is_not_found"],
)
async def unknown_paths_are_fine(request: Request, connection: Connection) -> None:
    if connection.status == 404 and not request.body:
        connection.become(Connection.of_json(200, {"status": "ok"}))


@fault(
    "A whole reply has no creation time.",
    source="protocol.md §3.1",
    kind="errors",
    at="whole",
    noticed_by=["protocol/invariants/whole_replies_have_their_fields"],
)
def whole_reply_lacks_created(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    del body["created"]
    return body


@fault(
    "The message of a whole reply has no role.",
    source="protocol.md §3.1",
    kind="errors",
    at="whole",
    noticed_by=[
        "thinking/pass_back/a_conversation_goes_on[whole]",
        "tools/ids/a_loop_goes_round[whole]",
        "protocol/invariants/whole_replies_have_their_fields",
    ],
)
def whole_message_lacks_role(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    del body["choices"][0]["message"]["role"]
    return body


@fault(
    "A whole call has no type.",
    source="protocol.md §3.1",
    kind="tool_call",
    at="whole",
    noticed_by=["protocol/client/the_client_reads_calls[whole]", "protocol/invariants/calls_have_type_function"],
)
def whole_call_lacks_type(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    for call in body["choices"][0]["message"].get("tool_calls", []):
        del call["type"]
    return body
