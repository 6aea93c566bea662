"""Instance: the smallest value that a schema allows, and JSON text kept as it was written but without blanks."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from kimi_eval.simulator.render import compact
from kimi_eval.simulator.request import as_dict, as_list
from kimi_eval.simulator.rules.mfjs import resolve
from kimi_eval.simulator.rules.rule import is_int, is_number

_BLANK_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\s+', re.DOTALL)
_DEEP = 6
_MOST_REFERENCES = 16
_LARGEST_COUNT = 100_000


def minimal(schema: Any, root: dict[str, Any] | None = None, depth: int = 0, references: int = 0) -> Any:
    """A valid value with every property; below some depth only the required ones, so that recursion ends.

    A malformed or endless schema, which only a skipped rule lets in, yields some value all the same.
    """
    if not isinstance(schema, dict) or not schema or references > _MOST_REFERENCES:
        return {} if depth == 0 else "text"
    root = schema if root is None else root
    if isinstance(schema.get("$ref"), str):
        return minimal(resolve(schema["$ref"], root), root, depth + 1, references + 1)
    for keyword in ("anyOf", "oneOf"):
        if as_list(schema.get(keyword)):
            return minimal(_option(schema[keyword], depth), root, depth + 1, references)
    if "const" in schema:
        return schema["const"]
    if as_list(schema.get("enum")):
        return schema["enum"][0]
    return _typed(_type_of(schema), schema, root, depth, references)


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


def _typed(kind: str, schema: dict[str, Any], root: dict[str, Any], depth: int, references: int) -> Any:
    if kind == "object":
        properties = as_dict(schema.get("properties"))
        required = [name for name in as_list(schema.get("required")) if isinstance(name, str)]
        names = list(properties) if depth < _DEEP else [name for name in properties if name in required]
        value = {name: minimal(properties[name], root, depth + 1, references) for name in names}
        return value | {name: "text" for name in required if name not in properties}
    if kind == "array":
        item = schema.get("items")
        return [minimal(item, root, depth + 1, references) for _ in range(_count(schema, "minItems", 0))]
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = "text".ljust(_count(schema, "minLength", 0), "x")
    return text[: _count(schema, "maxLength", len(text))]


def _count(schema: dict[str, Any], name: str, default: int) -> int:
    value = schema.get(name)
    return min(value, _LARGEST_COUNT) if is_int(value) and value >= 0 else default


def _number(schema: dict[str, Any], *, whole: bool) -> int | float:
    low = schema["minimum"] if is_number(schema.get("minimum")) else 0
    high = schema["maximum"] if is_number(schema.get("maximum")) else math.inf
    value: int | float = low if low <= high else high
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
