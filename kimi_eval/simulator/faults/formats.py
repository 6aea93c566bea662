"""Formats: faults of structured output."""

from __future__ import annotations

import json
from dataclasses import replace

from kimi_eval.fault import fault
from kimi_eval.simulator.answer import Answer
from kimi_eval.simulator.request import Request


@fault(
    "A schema is ignored.",
    source="ExtractBench#25; vllm#44012 (F082)",
    kind="structured_output",
    at="answer",
    noticed_by=["structured/formats/json_schema_is_satisfied"],
)
def schema_is_ignored(request: Request, answer: Answer) -> Answer:
    return replace(answer, content='{"answer":"as you like"}') if request.schema is not None else answer


@fault(
    "The document stands in the reasoning.",
    source="vllm#19222 (F083)",
    kind="structured_output",
    at="answer",
    noticed_by=[
        "structured/formats/json_object_is_an_object",
        "structured/formats/json_schema_is_satisfied",
        "protocol/invariants/an_answer_is_not_empty",
    ],
)
def document_stands_in_reasoning(request: Request, answer: Answer) -> Answer:
    if request.wants_json and not answer.calls:
        return answer.misread(reasoning=answer.content, content="")
    return answer


@fault(
    "A JSON object comes inside a code fence.",
    source="ExtractBench#25",
    kind="structured_output",
    at="answer",
    noticed_by=["structured/formats/json_object_is_an_object"],
)
def object_comes_in_a_fence(request: Request, answer: Answer) -> Answer:
    if request.response_format.get("type") == "json_object" and answer.content:
        return replace(answer, content=f"```json\n{answer.content}\n```")
    return answer


@fault(
    "A document is spread over lines.",
    source="KVV response_format",
    kind="structured_output",
    at="answer",
    noticed_by=["structured/formats/the_document_is_compact"],
)
def document_is_spread_out(request: Request, answer: Answer) -> Answer:
    if request.schema is None or answer.calls or answer.finish_reason == "length":
        return answer
    return replace(answer, content=json.dumps(json.loads(answer.content), indent=2))


@fault(
    "A nested document ends early, with finish reason stop.",
    source="vllm#49694 (F089)",
    kind="structured_output",
    at="answer",
    noticed_by=[
        "structured/formats/json_schema_is_satisfied[nested-streamed]",
        "structured/formats/json_schema_is_satisfied[nested-whole]",
    ],
)
def nested_documents_end_early(request: Request, answer: Answer) -> Answer:
    if request.schema is not None and "trip" in str(request.schema):
        return replace(answer, content=answer.content[:-3])
    return answer


@fault(
    "References of a schema are not followed.",
    source="vllm#46924 (F034)",
    kind="structured_output",
    at="answer",
    noticed_by=[
        "structured/formats/json_schema_is_satisfied[references-streamed]",
        "structured/formats/json_schema_is_satisfied[references-whole]",
    ],
)
def references_are_not_followed(request: Request, answer: Answer) -> Answer:
    if request.schema is not None and "$defs" in request.schema:
        return replace(answer, content='{"from":"Oslo","to":"Lima"}')
    return answer


@fault(
    "An enumeration of a schema is not kept.",
    source="vllm#37064 (F093)",
    kind="structured_output",
    at="answer",
    noticed_by=[
        "structured/formats/json_schema_is_satisfied[choice-streamed]",
        "structured/formats/json_schema_is_satisfied[choice-whole]",
    ],
)
def format_enum_is_not_kept(request: Request, answer: Answer) -> Answer:
    return replace(answer, content=answer.content.replace('"c"', '"kelvin"')) if request.schema is not None else answer
