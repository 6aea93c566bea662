"""Message: the rules for the conversation that is sent."""

from __future__ import annotations

from typing import Any

from kimi_eval.simulator.request import Request, as_list, reasoning_of
from kimi_eval.simulator.rules.rule import Verdict, rule

ROLES = ("system", "developer", "user", "assistant", "tool")


@rule("messages")
def messages_are_a_list_of_objects(request: Request) -> Verdict:
    messages = request.body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "Invalid request: messages must be a non-empty list"
    if not all(isinstance(message, dict) for message in messages):
        return "Invalid request: every message must be an object"
    return None


@rule("role")
def roles_are_known(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        if message.get("role") not in ROLES:
            return f"Invalid request: unknown role {message.get('role')!r} at position {position}"
    return None


@rule("content_type")
def content_is_text_or_parts(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        content = message.get("content")
        if content is not None and not isinstance(content, str | list):
            return f"Invalid request: content at position {position} must be a string or a list of parts"
        for part in as_list(content):
            if not isinstance(part, dict) or part.get("type") not in ("text", "image_url"):
                return f"Invalid request: unknown content part at position {position}"
            if part["type"] == "text" and not isinstance(part.get("text"), str):
                return f"Invalid request: a text part at position {position} has no text"
    return None


def _empty(message: dict[str, Any]) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        return not any(part.get("text") or "image_url" in part for part in content if isinstance(part, dict))
    return not content


def _must_not_be_empty(position: int, role: str) -> str:
    return f"Invalid request: the message at position {position} with role '{role}' must not be empty"


@rule("user_content")
def user_content_is_not_empty(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        if message.get("role") == "user" and _empty(message):
            return _must_not_be_empty(position, "user")
    return None


@rule("system_content")
def system_content_is_not_empty(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        if message.get("role") in ("system", "developer") and "tools" not in message and _empty(message):
            return _must_not_be_empty(position, str(message["role"]))
    return None


@rule("assistant_content")
def assistant_says_something(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        if message.get("role") != "assistant" or not _empty(message):
            continue
        if not as_list(message.get("tool_calls")) and not reasoning_of(message) and not message.get("partial"):
            return _must_not_be_empty(position, "assistant")
    return None


@rule("history_tool_calls")
def history_tool_calls_are_objects(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        calls = message.get("tool_calls")
        if calls is None:
            continue
        if not isinstance(calls, list):
            return f"Invalid request: tool_calls at position {position} must be a list"
        for call in calls:
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict) or not isinstance(function.get("name"), str):
                return f"Invalid request: a tool call at position {position} has no function name"
    return None


@rule("tool_call_id")
def tool_message_has_an_id(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        if message.get("role") == "tool" and not isinstance(message.get("tool_call_id"), str):
            return f"Invalid request: tool_call_id is required in the tool message at position {position}"
    return None


@rule("tool_call_id_known")
def tool_message_answers_a_call(request: Request) -> Verdict:
    known: list[Any] = []  # Ids are compared, never hashed: a client may send anything.
    for message in request.messages:
        known += [call.get("id") for call in as_list(message.get("tool_calls")) if isinstance(call, dict)]
        if message.get("role") == "tool" and message.get("tool_call_id") not in known:
            return f"Invalid request: tool_call_id {message.get('tool_call_id') or ''} is not found"
    return None


@rule("partial")
def partial_ends_the_conversation(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        if message.get("partial") is not True:
            continue
        if message.get("role") != "assistant" or position != len(request.messages) - 1:
            return "Invalid request: partial is only allowed in the last assistant message"
    return None


@rule("partial_with_json")
def partial_excludes_json_object(request: Request) -> Verdict:
    if request.partial is not None and request.response_format.get("type") == "json_object":
        return "Invalid request: partial mode cannot be combined with response_format json_object"
    return None
