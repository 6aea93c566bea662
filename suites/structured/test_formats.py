"""Formats: json_object and json_schema give what they promise, in content, next to reasoning."""

import json
from typing import Any

from kimi_eval import MOONSHOT, MUST, SHOULD, Chat, Reply, check, expect, in_both_lanes, note, require, user


def _schema(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **more}}


def _parsed(reply: Reply) -> Any:
    """The content as JSON; anything else stops the check with a finding."""
    try:
        return json.loads(reply.text)
    except ValueError:
        if not reply.text.strip() and reply.reasoning.strip()[:1] in ("{", "["):
            note("content", "the JSON document", "nothing; the JSON stands in the reasoning")
        else:
            note("content", "a JSON document and nothing else", repr(reply.text[:200]))
        require(False)


@check("`json_object` gives one JSON object as content.", MUST, spec="KVV response_format; F083")
async def json_object_is_an_object(chat: Chat) -> None:
    reply = await chat.answer(
        [user('Answer in JSON. Give exactly this object: {"city": "Oslo", "warm": false}')],
        response_format={"type": "json_object"},
    )

    expect(_parsed(reply), "content").is_a(dict, "an object")


SCHEMAS: dict[str, dict[str, Any]] = {
    "flat": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
        "required": ["city", "degrees"],
        "additionalProperties": False,
    },
    "nested": {
        "type": "object",
        "properties": {
            "trip": {
                "type": "object",
                "properties": {
                    "stops": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "nights": {"type": "integer"}},
                            "required": ["name", "nights"],
                            "additionalProperties": False,
                        },
                    }
                },
                "required": ["stops"],
                "additionalProperties": False,
            }
        },
        "required": ["trip"],
        "additionalProperties": False,
    },
    "references": {
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"}},
        "required": ["from", "to"],
        "additionalProperties": False,
        "$defs": {
            "place": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": False,
            }
        },
    },
    "choice": {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["c", "f"]},
            "value": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["unit", "value"],
        "additionalProperties": False,
    },
}


@check(
    "`json_schema` gives a document that satisfies the schema.",
    MUST,
    spec="KVV response_format; F082, F083, F089, F093",
    variants=in_both_lanes(*SCHEMAS),
)
async def json_schema_is_satisfied(chat: Chat) -> None:
    schema = SCHEMAS[chat.kind]
    reply = await chat.answer(
        [user("Describe a trip from Oslo to Lima as JSON, as short as you can.")], response_format=_schema(schema)
    )

    expect(_parsed(reply), "content").matches(schema)


@check("The document is compact: no line break, no tab.", SHOULD, spec="KVV response_format", contract=MOONSHOT)
async def the_document_is_compact(chat: Chat) -> None:
    reply = await chat.answer([user("Describe the weather in Lima as JSON.")], response_format=_schema(SCHEMAS["flat"]))

    expect(reply.text, "content").satisfies(
        lambda text: not set("\n\t\r") & set(text), "JSON without line breaks or tabs"
    )


@check("Reasoning goes on next to a format.", SHOULD, spec="F084", variants=("json_object", "json_schema"))
async def reasoning_goes_on(chat: Chat) -> None:
    chosen = {"type": "json_object"} if chat.variant == "json_object" else _schema(SCHEMAS["flat"])
    reply = await chat.answer([user("How warm is it in Lima? Answer in JSON.")], response_format=chosen)

    expect(reply.reasoning, "reasoning").is_text()


@check(
    "A malformed format is refused with 400.",
    MUST,
    spec="KVV response_format; protocol.md §2.4",
    variants=("unknown_type", "no_json_schema", "no_name", "no_schema", "strict_is_text", "schema_is_text"),
    contract=MOONSHOT,
)
async def malformed_formats_are_refused(chat: Chat) -> None:
    schema = SCHEMAS["flat"]
    wrong: dict[str, dict[str, Any]] = {
        "unknown_type": {"type": "yaml"},
        "no_json_schema": {"type": "json_schema"},
        "no_name": {"type": "json_schema", "json_schema": {"schema": schema}},
        "no_schema": {"type": "json_schema", "json_schema": {"name": "answer"}},
        "strict_is_text": _schema(schema, strict="yes"),
        "schema_is_text": {"type": "json_schema", "json_schema": {"name": "answer", "schema": "object"}},
    }
    await chat.refuses(
        [user("Describe the weather in Lima as JSON.")],
        right={"response_format": _schema(schema)},
        response_format=wrong[chat.variant],
    )
