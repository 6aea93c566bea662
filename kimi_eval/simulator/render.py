"""Prompt: the tokens a conversation becomes, in the order and with the framing of the XTML chat format."""

from __future__ import annotations

import json
from typing import Any

from kimi_eval.simulator.images import UnreadableImage, read_image
from kimi_eval.simulator.request import Request, as_dict, as_list, image_url, reasoning_of, text_of
from kimi_eval.simulator.tokens import CLOSE, END, OPEN, SEP, pieces

# The stub that opens the answer's own channel is written by the server and not billed.
STUB = [OPEN, "think", SEP]


def render(request: Request) -> list[str]:
    """The billed prompt tokens of a request."""
    tokens: list[str] = []
    tools = as_list(request.body.get("tools"))
    if tools:
        tokens += _message("system", pieces("Tools\n" + compact(tools, sort=True)))
    if request.thinking:
        tokens += _message("system", pieces(_effort_text(request.effort)))
    tokens += _conversation(request)
    if tools_in_play(request) and request.tool_choice != "auto":
        tokens += _message("system", pieces(f"tool choice: {request.tool_choice}"))
    if request.wants_json:
        wanted = "Answer with one JSON object." if request.schema is None else compact(request.schema, sort=True)
        tokens += _message("system", pieces("response format: " + wanted))
    if request.partial is None:
        tokens += _open("message", 'role="assistant"')
    return tokens


def tools_in_play(request: Request) -> bool:
    """True when any tool is declared, at the top or inside a message."""
    return bool(request.tools)


def compact(value: Any, *, sort: bool = False) -> str:
    """JSON without blanks, keys deep-sorted when asked."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort)


def _effort_text(effort: str) -> str:
    # The published counts differ by one token between max and the other two.
    return "Thinking effort is max." if effort == "max" else f"Thinking effort is: {effort}."


def _open(tag: str, attributes: str = "") -> list[str]:
    return [OPEN, tag, *pieces(attributes), SEP]


def _close(tag: str) -> list[str]:
    return [CLOSE, tag, SEP]


def _channel(name: str, body: list[str]) -> list[str]:
    return [*_open(name), *body, *_close(name)]


def _message(role: str, body: list[str], attributes: str = "") -> list[str]:
    return [*_open("message", f'role="{role}"{attributes}'), *body, *_close("message"), END]


def _conversation(request: Request) -> list[str]:
    tokens: list[str] = []
    results: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for message in request.messages:
        role = message.get("role")
        if role == "tool":
            results.append(message)
            continue
        tokens += _results(results, calls)
        results = []
        if role == "assistant":
            calls = [call for call in as_list(message.get("tool_calls")) if isinstance(call, dict)]
            tokens += _assistant(message, calls, request)
            continue
        name = f' name="{message["name"]}"' if isinstance(message.get("name"), str) else ""
        shown = "system" if role == "developer" else str(role)
        if as_list(message.get("tools")):
            tokens += _message(shown, pieces("New tools\n" + compact(message["tools"], sort=True)), name)
        if message.get("content") or not as_list(message.get("tools")):
            tokens += _message(shown, _content(message), name)
    return tokens + _results(results, calls)


def _assistant(message: dict[str, Any], calls: list[dict[str, Any]], request: Request) -> list[str]:
    body: list[str] = []
    if request.thinking:
        body += _channel("think", pieces(reasoning_of(message)))
    if request.partial is not None and message is request.last:
        return [*_open("message", 'role="assistant"'), *body, *_open("response"), *_content(message)]
    body += _channel("response", _content(message))
    if calls:
        body += _channel("tools", [token for number, call in enumerate(calls, 1) for token in _call(number, call)])
    return _message("assistant", body)


def _call(number: int, call: dict[str, Any]) -> list[str]:
    function = as_dict(call.get("function"))
    text = function.get("arguments")
    try:
        arguments = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        arguments = None
    if isinstance(arguments, dict):
        body = [token for key, value in arguments.items() for token in _argument(key, value)]
    else:
        body = pieces(str(text))
    return [*_open("call", f'tool="{function.get("name")}" index="{number}"'), *body, *_close("call")]


def _argument(key: str, value: Any) -> list[str]:
    kind = "string" if isinstance(value, str) else "json"
    text = value if isinstance(value, str) else compact(value)
    return [*_open("argument", f'key="{key}" type="{kind}"'), *pieces(text), *_close("argument")]


def in_call_order(results: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tool results in the order in which their calls were made; unmatched ones stay at the end."""
    ids = [call.get("id") for call in calls]

    def place(result: dict[str, Any]) -> int:
        id = result.get("tool_call_id")
        return ids.index(id) if id in ids else len(ids)

    return sorted(results, key=place)


def _results(results: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[str]:
    names = {str(call.get("id")): as_dict(call.get("function")).get("name") for call in calls}
    tokens: list[str] = []
    for number, result in enumerate(in_call_order(results, calls), 1):
        name = names.get(str(result.get("tool_call_id")))
        tokens += _message("tool", _content(result), f' tool="{name}" index="{number}"')
    return tokens


def _content(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if not isinstance(content, list):
        return pieces(text_of(message))
    tokens: list[str] = []
    for part in content:
        url = image_url(part)
        if url is not None:
            tokens += _image(url)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            tokens += pieces(part["text"])
    return tokens


def _image(url: str) -> list[str]:
    try:
        image = read_image(url)
    except UnreadableImage:
        return pieces("[unreadable image]")
    pads = [f"<|media_pad:{image.digest}|>"] * image.pads()
    size = pieces(f"image {image.width}x{image.height}")
    return ["<|media_begin|>", *size, "<|media_content|>", *pads, "<|media_end|>"]
