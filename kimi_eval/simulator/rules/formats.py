"""Response format: the rules for `response_format`."""

from __future__ import annotations

from typing import Any

from kimi_eval.simulator.request import Request, as_dict
from kimi_eval.simulator.rules.mfjs import violation
from kimi_eval.simulator.rules.rule import Verdict, rule


@rule("response_format_type")
def response_format_has_a_known_type(request: Request) -> Verdict:
    wanted = request.body.get("response_format")
    if wanted is None:
        return None
    if not isinstance(wanted, dict) or wanted.get("type") not in ("text", "json_object", "json_schema"):
        return "invalid response_format: type must be text, json_object or json_schema"
    return None


def _declared(request: Request) -> dict[str, Any] | None:
    if request.response_format.get("type") != "json_schema":
        return None
    return as_dict(request.response_format.get("json_schema"))


@rule("response_format_json_schema")
def json_schema_is_present(request: Request) -> Verdict:
    if _declared(request) is not None and not isinstance(request.response_format.get("json_schema"), dict):
        return "invalid response_format: json_schema is required"
    return None


@rule("response_format_name")
def json_schema_has_a_name(request: Request) -> Verdict:
    declared = _declared(request)
    if declared and not (isinstance(declared.get("name"), str) and declared["name"]):
        return "invalid response_format: json_schema.name is required"
    return None


@rule("response_format_schema")
def json_schema_has_a_schema(request: Request) -> Verdict:
    declared = _declared(request)
    if declared is not None and not isinstance(declared.get("schema"), dict):
        return "invalid response_format: json_schema.schema is required and must be an object"
    return None


@rule("response_format_strict")
def strict_is_a_boolean(request: Request) -> Verdict:
    declared = _declared(request)
    if declared and declared.get("strict") is not None and not isinstance(declared["strict"], bool):
        return "invalid response_format: json_schema.strict must be a boolean"
    return None


@rule("response_format_mfjs")
def schema_is_moonshot_flavoured(request: Request) -> Verdict:
    declared = _declared(request)
    if declared is None or declared.get("strict") is False or not isinstance(declared.get("schema"), dict):
        return None
    problem = violation(declared["schema"], root_must_be_object=False)
    return (
        f"invalid response_format: json_schema.schema is not a valid moonshot flavored json schema, <{problem}>"
        if (problem)
        else None
    )
