"""Tool use: which calls the words of a user's turn ask for."""

from __future__ import annotations

import re
from typing import Any

from kimi_eval.simulator.answer import Call
from kimi_eval.simulator.instance import leading_json, minimal
from kimi_eval.simulator.render import compact
from kimi_eval.simulator.request import Request, as_dict, as_list

_ASKED = re.compile(r"Call `([^`\n]+)` with exactly these arguments:")
_WEATHER = re.compile(r"weather (?:like )?(?:today |now )?(?:in|for) (.+?)(?:[?.!\n]|$)", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_TRAILING = re.compile(r"\s+(?:today|now|right now|tomorrow|please)$", re.IGNORECASE)


def asked_calls(request: Request) -> list[Call]:
    """The calls spelled out in the last user turn, as far as their tools are declared."""
    text = request.question
    calls = []
    for match in _ASKED.finditer(text):
        rest = text[match.end() :]
        arguments = leading_json(rest)
        if arguments is None:
            arguments = rest.split("\n", 1)[0].strip()
        if match[1] in request.tool_names:
            calls.append(Call(match[1], arguments))
    return calls


def weather_calls(request: Request) -> list[Call]:
    """One call for each city whose weather is asked, when a tool takes a city."""
    match = _WEATHER.search(request.question)
    if match is None:
        return []
    for tool in request.tools:
        properties = as_dict(as_dict(tool.get("parameters")).get("properties"))
        field = next((name for name in ("city", "location") if name in properties), None)
        if field is not None:
            cities = [_TRAILING.sub("", city).strip() for city in _BETWEEN.split(match[1])]
            return [Call(str(tool["name"]), _weather_arguments(tool, field, city)) for city in cities if city]
    return []


def _weather_arguments(tool: dict[str, Any], field: str, city: str) -> str:
    parameters = as_dict(tool.get("parameters"))
    required = [name for name in as_list(parameters.get("required")) if name != field]
    filled = as_dict(minimal(parameters)) if required else {}
    return compact({field: city} | {name: filled[name] for name in required if name in filled})
