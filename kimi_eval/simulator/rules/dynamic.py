"""Dynamic tool: the rules for tools declared inside a system message."""

from __future__ import annotations

from typing import Any

from kimi_eval.simulator.request import Request, as_list
from kimi_eval.simulator.rules.declarations import object_problem
from kimi_eval.simulator.rules.rule import Verdict, rule


@rule("dynamic_tools_role")
def only_system_messages_declare_tools(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        if message.get("tools") is not None and message.get("role") not in ("system", "developer"):
            return f"Invalid request: tools are only allowed in system messages, not at position {position}"
    return None


@rule("dynamic_tools_content")
def declaring_messages_have_no_content(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        if message.get("tools") is not None and message.get("content"):
            return f"Invalid request: content must be empty beside tools at position {position}"
    return None


@rule("dynamic_tools_list")
def dynamic_tools_are_a_list(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        if "tools" in message and not isinstance(message["tools"], list):
            return f"Invalid request: tools at position {position} must be a list"
    return None


@rule("dynamic_tools_object")
def dynamic_tools_are_functions(request: Request) -> Verdict:
    for position, message in enumerate(request.messages):
        problem = object_problem(as_list(message.get("tools")), f"messages[{position}].tools")
        if problem:
            return problem
    return None


@rule("dynamic_tools_unique")
def dynamic_names_are_unique(request: Request) -> Verdict:
    seen = {_name(tool) for tool in as_list(request.body.get("tools"))} - {None}
    for message in request.messages:
        for tool in as_list(message.get("tools")):
            name = _name(tool)
            if name is not None and name in seen:
                return f"Invalid request: function name {name} is duplicated"
            seen.add(name)
    return None


def _name(tool: Any) -> str | None:
    function = tool.get("function") if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None
