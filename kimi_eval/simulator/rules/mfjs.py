"""Moonshot flavoured JSON schema: the subset of JSON Schema a deployment accepts, and what is wrong with the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from kimi_eval.simulator.rules.rule import is_int, is_number

TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
ANNOTATIONS = {"title", "description", "default"}
ROOT_ONLY = {"$defs", "$id"}
OF_TYPE: dict[str, set[str]] = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern", "enum"},  # walle's own valid cases hold a pattern.
    "integer": {"minimum", "maximum", "enum"},
    "number": {"minimum", "maximum", "enum"},
    "boolean": {"enum"},
    "null": {"enum"},
}
RESERVED_PROPERTIES = {"$defs", "$ref", "anyOf", "required", "additionalProperties"}
_IS_OF_TYPE: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": is_int,
    "number": lambda value: is_number(value) and math.isfinite(value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
MAX_DEPTH, MAX_ANY_OF, MAX_ENUM = 30, 500, 1000  # walle conf.go defaults; its documents name smaller ones.


def violation(schema: Any, *, root_must_be_object: bool) -> str | None:
    """What makes the schema unacceptable, with the place; None for a good one."""
    if not isinstance(schema, dict):
        return "at path '': the schema must be an object"
    if root_must_be_object and _resolved(schema, schema).get("type") not in ("object", ["object"]):
        return "at path '': the root must be an object schema"
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, dict):
        return "at path '$defs': must be an object"
    for name, definition in definitions.items():
        if not name or "/" in name or not isinstance(definition, dict):
            return f"at path '$defs.{name}': a definition must be an object under a plain name"
    for problem in _problems(schema, schema, "", 0):
        return problem
    if not _terminates(schema, schema, frozenset()):
        return "at path '': the schema describes an endless value"
    return None


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    seen: set[str] = set()
    while isinstance(schema.get("$ref"), str) and schema["$ref"] not in seen:
        seen.add(schema["$ref"])
        target = resolve(schema["$ref"], root)
        if target is None:
            break
        schema = target
    return schema


def resolve(reference: str, root: dict[str, Any]) -> dict[str, Any] | None:
    """The schema a local reference points to."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    target: Any = root
    for part in reference[2:].split("/"):
        target = target.get(part) if isinstance(target, dict) else None
    return target if isinstance(target, dict) else None


def _problems(schema: Any, root: dict[str, Any], path: str, depth: int) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"at path '{path}': a schema must be an object"
        return
    if depth > MAX_DEPTH:
        yield f"at path '{path}': nested deeper than {MAX_DEPTH}"
        return
    if not schema:
        return  # The empty schema allows anything.
    extra = ANNOTATIONS | (ROOT_ONLY if not path else set())
    yield from _annotation_problems(schema, path)
    if "$ref" in schema:
        reference = schema["$ref"]
        if not isinstance(reference, str) or resolve(reference, root) is None:
            yield f"at path '{path}': $ref must point to a definition of this schema"
        yield from _unknown(schema, {"$ref"} | extra - {"default"}, path)
    elif "anyOf" in schema:
        yield from _unknown(schema, {"anyOf"} | extra - {"default"}, path)
        options = schema["anyOf"]
        if not isinstance(options, list) or not 1 <= len(options) <= MAX_ANY_OF:
            yield f"at path '{path}': anyOf must be a list of 1 to {MAX_ANY_OF} schemas"
            return
        for number, option in enumerate(options):
            yield from _problems(option, root, f"{path}.anyOf[{number}]", depth + 1)
    else:
        yield from _typed_problems(schema, root, path, depth, extra)
    if not path:
        for name, definition in schema.get("$defs", {}).items():
            yield from _problems(definition, root, f"$defs.{name}", depth + 1)


def _unknown(schema: dict[str, Any], known: set[str], path: str) -> Iterator[str]:
    for keyword in schema.keys() - known:
        yield f"at path '{path}': keyword {keyword} is not allowed here"


def _annotation_problems(schema: dict[str, Any], path: str) -> Iterator[str]:
    for keyword in ("title", "description", "$id"):
        if keyword in schema and not isinstance(schema[keyword], str):
            yield f"at path '{path}': {keyword} must be a string"


def _typed_problems(
    schema: dict[str, Any], root: dict[str, Any], path: str, depth: int, extra: set[str]
) -> Iterator[str]:
    types = schema.get("type")
    types = [types] if isinstance(types, str) else types
    if not isinstance(types, list) or not types or any(kind not in TYPES for kind in types):
        yield f"at path '{path}': type must be one of {', '.join(TYPES)} or a list of them"
        return
    yield from _unknown(schema, {"type"} | extra | set().union(*(OF_TYPE[kind] for kind in types)), path)
    yield from _range_problems(schema, types, path)
    if "enum" in schema:
        yield from _enum_problems(schema["enum"], types, path)
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield f"at path '{path}': properties must be an object"
        return
    for name, value in properties.items():
        if "/" in name and path.startswith("$defs."):
            yield f"at path '{path}': a property of a definition may not contain '/'"
        if name in RESERVED_PROPERTIES:
            yield f"at path '{path}': a property may not be named {name}"
        yield from _problems(value, root, f"{path}.{name}", depth + 1)
    required = schema.get("required", [])
    if not isinstance(required, list) or any(name not in properties for name in map(str, required)):
        yield f"at path '{path}': required must list declared properties"
    others = schema.get("additionalProperties", True)
    if not isinstance(others, bool):
        yield from _problems(others, root, f"{path}.additionalProperties", depth + 1)
    if "items" in schema:
        yield from _problems(schema["items"], root, f"{path}.items", depth + 1)


def _range_problems(schema: dict[str, Any], types: list[str], path: str) -> Iterator[str]:
    for low, high in (("minLength", "maxLength"), ("minItems", "maxItems")):
        for name in (low, high):
            if name in schema and not (is_int(schema[name]) and schema[name] >= 0):
                yield f"at path '{path}': {name} must be a non-negative integer"
                return
        if schema.get(low, 0) > schema.get(high, float("inf")):
            yield f"at path '{path}': {low} is greater than {high}"
    whole = "number" not in types
    for name in ("minimum", "maximum"):
        value = schema.get(name)
        if name in schema and not (is_int(value) if whole else is_number(value)):
            yield f"at path '{path}': {name} is not a valid {'integer' if whole else 'number'}"
            return
    if schema.get("minimum", float("-inf")) > schema.get("maximum", float("inf")):
        yield f"at path '{path}': minimum is greater than maximum"


def _enum_problems(values: Any, types: list[str], path: str) -> Iterator[str]:
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_ENUM:
        yield f"at path '{path}': enum must be a list of 1 to {MAX_ENUM} values"
        return
    if {"object", "array"} & set(types):
        yield f"at path '{path}': enum is not allowed beside type object or array"
    if any(not any(_IS_OF_TYPE[kind](value) for kind in types if kind in _IS_OF_TYPE) for value in values):
        yield f"at path '{path}': an enum value does not match the type"


def _terminates(schema: Any, root: dict[str, Any], open_references: frozenset[str]) -> bool:
    if not isinstance(schema, dict):
        return True
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference in open_references:
            return False
        return _terminates(resolve(reference, root), root, open_references | {reference})
    if "anyOf" in schema:
        return any(_terminates(option, root, open_references) for option in schema["anyOf"])
    if isinstance(schema.get("type"), list) and set(schema["type"]) - {"object", "array"}:
        return True
    open_references = open_references | ({"#"} if schema is root else set())
    needed = [schema["properties"][name] for name in schema.get("required", [])]
    if "items" in schema:
        needed.append(schema["items"])  # walle counts a list of itself as endless, although it could be empty.
    return all(_terminates(part, root, open_references) for part in needed)
