"""Instance: the smallest value that a schema allows, and JSON text kept as it was written but without blanks."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from kimi_eval.simulator.render import compact
from kimi_eval.simulator.rules.mfjs import resolve

_BLANK_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\s+', re.DOTALL)
_DEEP = 6


def minimal(schema: Any, root: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """A valid value with every property; below some depth only the required ones, so that recursion ends."""
    if not isinstance(schema, dict) or not schema:
        return {} if depth == 0 else "text"
    root = schema if root is None else root
    if isinstance(schema.get("$ref"), str):
        return minimal(resolve(schema["$ref"], root), root, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return minimal(_option(schema[keyword], depth), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    return _typed(_type_of(schema), schema, root, depth)


def _option(options: list[Any], depth: int) -> Any:
    # The shallowest way out: a plain value where one is offered, once the value has grown deep.
    plain = [option for option in options if isinstance(option, dict) and _type_of(option) not in ("object", "array")]
    plain = [option for option in plain if "$ref" not in option]
    return plain[0] if plain and depth >= _DEEP else options[0]


def _type_of(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return str(kind[0]) if kind else "string"
    return kind if isinstance(kind, str) else ("object" if "properties" in schema else "string")


def _typed(kind: str, schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    if kind == "object":
        properties = schema.get("properties") or {}
        required = schema.get("required") or []
        names = list(properties) if depth < _DEEP else [name for name in properties if name in required]
        value = {name: minimal(properties[name], root, depth + 1) for name in names}
        return value | {name: "text" for name in required if name not in properties}
    if kind == "array":
        return [minimal(schema.get("items"), root, depth + 1) for _ in range(int(schema.get("minItems", 0)))]
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = "text".ljust(int(schema.get("minLength", 0)), "x")
    return text[: int(schema["maxLength"])] if "maxLength" in schema else text


def _number(schema: dict[str, Any], *, whole: bool) -> int | float:
    low, high = schema.get("minimum", 0), schema.get("maximum")
    value: int | float = low if high is None or low <= high else high
    return math.ceil(value) if whole else value


def without_blanks(text: str) -> str:
    """JSON text without blanks between its parts; strings and the spelling of numbers stay byte for byte."""
    return _BLANK_OR_STRING.sub(lambda match: match[0] if match[0].startswith('"') else "", text)


def leading_json(text: str) -> str | None:
    """The JSON object that the text starts with, without blanks; None when it starts with none."""
    text = text.lstrip()
    if not text.startswith("{"):
        return None
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text)
    except ValueError:
        return None
    return without_blanks(text[:end])


def completion(prefix: str) -> str | None:
    """A short text that turns the beginning of a JSON object into a whole one."""
    if not prefix.lstrip().startswith("{"):
        return None
    for ending in (
        "",
        "}",
        "1}",
        '"}',
        "]}",
        "1]}",
        '"]}',
        "1}}",
        '"ok":1}',
        ":1}",
        '":1}',
        '"ok"}',
        '"answer":"ok"}',
        "}}",
    ):
        try:
            json.loads(prefix + ending)
        except ValueError:
            continue
        return ending
    return None


def arguments_for(parameters: Any) -> str:
    """Argument text for a tool with these parameters."""
    value = minimal(parameters) if isinstance(parameters, dict) else {}
    return compact(value if isinstance(value, dict) else {})
