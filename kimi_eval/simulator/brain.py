"""Brain: an obedient rule-based model, which answers the last turn by the plain words in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from kimi_eval.simulator.answer import Answer, Call
from kimi_eval.simulator.instance import arguments_for, completion, leading_json, minimal
from kimi_eval.simulator.memory import recall, tool_results
from kimi_eval.simulator.render import compact
from kimi_eval.simulator.request import Request, as_dict, as_list, text_of
from kimi_eval.simulator.thought import think
from kimi_eval.simulator.tooling import asked_calls, weather_calls

GREETING = "Hello! How can I help you today?"
PREFACE = "I will look that up."
Rule = Callable[[Request], Answer | None]

_ONE_WORD = re.compile(r"Answer every question with exactly the word [\"'`]?([^\s\"'`.]+)")
_EXACTLY = re.compile(r"Reply with exactly this and nothing else:(.*)", re.DOTALL)
_VERBATIM = re.compile(r"Repeat the following text verbatim between <<< and >>>:\s*<<<(.*)>>>", re.DOTALL)
_SUM = re.compile(r"What is (-?\d+) ?([+*x×−-]) ?(-?\d+)")
_COUNT = re.compile(r"[Cc]ount from (-?\d{1,18}) to (-?\d{1,18})(?:,? separated by (commas|spaces|line breaks))?")
_OBJECT = re.compile(r"Give exactly this object:")
_LONGEST_COUNT = 200_000


def answer(request: Request, gold: Answer | None = None) -> Answer:
    """The whole answer, without regard to stop words and budget; a gold answer is given as it is."""
    spoken = gold or next(found for rule in RULES if (found := rule(request)) is not None)
    if request.partial is not None:
        spoken = _continued(spoken, request)
    if not request.parallel:
        spoken = replace(spoken, calls=spoken.calls[:1])
    if gold is None and spoken.calls and not spoken.content and _has_preface(request):
        spoken = replace(spoken, content=PREFACE)
    reasoning = (spoken.reasoning or think(request)) if request.thinking else ""
    return replace(spoken, reasoning=reasoning, finish_reason="tool_calls" if spoken.calls else "stop")


def _has_preface(request: Request) -> bool:
    # Some turns only, and the same ones in both lanes.
    return request.variant.preface_before_calls and len(request.question) % 2 == 0


def _continued(spoken: Answer, request: Request) -> Answer:
    prefix = request.partial or ""
    if spoken.content.startswith(prefix):
        return replace(spoken, content=spoken.content[len(prefix) :])
    ending = completion(prefix)
    return spoken if ending is None else Answer(content=ending)


def _forced(request: Request) -> Answer | None:
    if request.tool_choice != "required" or not request.tools:
        return None
    calls = asked_calls(request) or weather_calls(request)
    if not calls:
        tool = request.tools[0]
        calls = [Call(str(tool["name"]), arguments_for(tool.get("parameters")))]
    return Answer(calls=tuple(calls))


def _structured(request: Request) -> Answer | None:
    if not request.wants_json:
        return None
    schema = request.schema
    match = _OBJECT.search(request.question) or _EXACTLY.search(request.question)
    literal = (
        leading_json(request.question[match.end() if match.re is _OBJECT else match.start(1) :]) if match else None
    )
    if literal is not None and (schema is None or _allowed(literal, request)):
        return Answer(content=literal)
    return Answer(content='{"answer":"ok"}' if schema is None else compact(minimal(schema)))


def _allowed(literal: str, request: Request) -> bool:
    declared = request.response_format.get("json_schema") or {}
    if declared.get("strict") is False:
        return True
    try:
        return Draft202012Validator(request.schema or {}).is_valid(json.loads(literal, strict=False))
    except SchemaError:
        return True


def _one_word(request: Request) -> Answer | None:
    for message in request.messages:
        if message.get("role") in ("system", "developer"):
            match = _ONE_WORD.search(text_of(message))
            if match:
                return Answer(content=match[1])
    return None


def _results(request: Request) -> Answer | None:
    if request.last.get("role") != "tool":
        return None
    if not request.parallel and request.tool_choice != "none":
        called = [text for message in request.messages for text in _arguments(message)]
        rest = [call for call in weather_calls(request) if call.arguments not in called]
        if rest:
            return Answer(calls=tuple(rest))
    return Answer(content="; ".join(tool_results(request)))


def _arguments(message: dict[str, Any]) -> list[Any]:
    calls = [as_dict(call) for call in as_list(message.get("tool_calls"))]
    return [as_dict(call.get("function")).get("arguments") for call in calls]


def _exact(request: Request) -> Answer | None:
    match = _EXACTLY.search(request.question)
    asked = request.question.find("\nCall `")
    if match is None or 0 <= asked < match.start():
        return None
    return Answer(content=match[1].strip())


def _called(request: Request) -> Answer | None:
    if "Call `" not in request.question:
        return None
    calls = asked_calls(request)
    first = re.search(r"^First say: (.*)$", request.question, re.MULTILINE)
    said = first[1].strip() if first else ""
    if request.tool_choice == "none":
        return Answer(content=f"{said} I may not call a tool in this turn.".strip())
    if calls:
        return Answer(content=said, calls=tuple(calls))
    names = re.findall(r"Call `([^`\n]+)` with exactly these arguments:", request.question)
    return Answer(content=f"There is no tool named {names[0]} here.") if names else None


def _verbatim(request: Request) -> Answer | None:
    match = _VERBATIM.search(request.question)
    return Answer(content=match[1]) if match else None


def _arithmetic(request: Request) -> Answer | None:
    match = _SUM.search(request.question)
    if match is None or len(match[1]) + len(match[3]) > 4000:
        return None
    left, right = int(match[1]), int(match[3])
    if match[2] == "+":
        return Answer(content=str(left + right))
    return Answer(content=str(left - right if match[2] in "-−" else left * right))


def _counted(request: Request) -> Answer | None:
    match = _COUNT.search(request.question)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2])
    last = max(min(last, first + _LONGEST_COUNT), first - _LONGEST_COUNT)
    step = 1 if last >= first else -1
    separator = {"spaces": " ", "line breaks": "\n"}.get(match[3] or "commas", ", ")
    return Answer(content=separator.join(str(number) for number in range(first, last + step, step)))


def _remembered(request: Request) -> Answer | None:
    found = recall(request)
    return None if found is None else Answer(content=found)


def _about_itself(request: Request) -> Answer | None:
    question = request.question
    if "How many tools do you have" in question:
        return Answer(content=str(len(request.tools)))
    if "List the names of your tools" in question:
        return Answer(content=", ".join(request.tool_names))
    if re.search(r"[Ww]hat is your thinking[ _]effort", question):
        return Answer(content=request.effort)
    return None


def _weather(request: Request) -> Answer | None:
    calls = weather_calls(request) if request.tool_choice != "none" else []
    return Answer(calls=tuple(calls)) if calls else None


def _greeted(request: Request) -> Answer | None:
    return Answer(content=GREETING)


RULES: tuple[Rule, ...] = (
    _forced,
    _structured,
    _one_word,
    _results,
    _exact,
    _called,
    _verbatim,
    _arithmetic,
    _counted,
    _remembered,
    _about_itself,
    _weather,
    _greeted,
)
