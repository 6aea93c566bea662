"""Tool: the rules for tools declared at the top of a request, several of which hold for dynamic tools too."""

from __future__ import annotations

import re
from typing import Any

from kimi_eval.simulator.request import Request, as_list
from kimi_eval.simulator.rules.mfjs import violation
from kimi_eval.simulator.rules.rule import Verdict, rule

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,255}")


def functions(request: Request) -> list[dict[str, Any]]:
    """The function objects of all declared tools, named or not."""
    tools = [*as_list(request.body.get("tools"))]
    for message in request.messages:
        tools += as_list(message.get("tools"))
    return [tool["function"] for tool in tools if isinstance(tool, dict) and isinstance(tool.get("function"), dict)]


def object_problem(tools: list[Any], where: str) -> str | None:
    """What is wrong with the shape of the first malformed tool."""
    for position, tool in enumerate(tools):
        if not isinstance(tool, dict):
            return f"Invalid request: {where}[{position}] must be an object"
        if tool.get("type") != "function":
            return f"Invalid request: {where}[{position}].type must be function"
        function = tool.get("function")
        if not isinstance(function, dict):
            return f"Invalid request: {where}[{position}].function is required"
        if not isinstance(function.get("name"), str):
            return f"Invalid request: {where}[{position}].function.name is required"
    return None


@rule("tools")
def tools_are_a_list(request: Request) -> Verdict:
    tools = request.body.get("tools")
    return None if tools is None or isinstance(tools, list) else "Invalid request: tools must be a list"


@rule("tool_object")
def tools_are_functions(request: Request) -> Verdict:
    return object_problem(as_list(request.body.get("tools")), "tools")


@rule("tool_name")
def tool_names_are_identifiers(request: Request) -> Verdict:
    for function in functions(request):
        name = function.get("name")
        if isinstance(name, str) and not _NAME.fullmatch(name):
            return (
                f"Invalid request: function name {name[:80]!r} is invalid, must match ^[A-Za-z_][A-Za-z0-9_-]{{0,255}}$"
            )
    return None


@rule("tool_name_unique")
def tool_names_are_unique(request: Request) -> Verdict:
    seen: list[Any] = []
    for tool in as_list(request.body.get("tools")):
        name = (
            tool["function"].get("name") if isinstance(tool, dict) and isinstance(tool.get("function"), dict) else None
        )
        if name is not None and name in seen:
            return f"Invalid request: function name {name} is duplicated"
        seen.append(name)
    return None


@rule("tool_strict")
def strict_is_a_boolean(request: Request) -> Verdict:
    for function in functions(request):
        if function.get("strict") is not None and not isinstance(function["strict"], bool):
            return "Invalid request: tools.function.strict must be a boolean"
    return None


@rule("tool_parameters")
def parameters_are_moonshot_flavoured(request: Request) -> Verdict:
    for function in functions(request):
        parameters = function.get("parameters")
        if parameters is None:
            continue
        problem = violation(parameters, root_must_be_object=True)
        if problem:
            return (
                "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, "
                f"details: <{problem}>"
            )
    return None
