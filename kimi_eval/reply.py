"""Reply: a view on an Exchange; nothing is filled in that did not arrive."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from kimi_eval import sse
from kimi_eval.transcript import Exchange

_DONE = b"\n\ndata: [DONE]\n\n"
REASONING_FIELDS = ("reasoning_content", "reasoning")  # the contract's name first, then vLLM's


class Frame:
    """One JSON object of a stream with its place among the events and its arrival time.

    ``choices`` are those that are objects (none in a summary frame), ``deltas`` the deltas of theirs that are objects.
    Not a dataclass: a long answer has tens of thousands of them, and most are never looked into.
    """

    __slots__ = ("_choices", "_deltas", "_reply", "data", "index")
    _choices: list[dict[str, Any]]
    _deltas: list[dict[str, Any]]

    def __init__(self, index: int, data: dict[str, Any], reply: Reply) -> None:
        self.index = index
        self.data = data
        self._reply = reply

    @property
    def seconds(self) -> float:
        """When the last byte of its event arrived."""
        return self._reply.events[self.index].seconds

    @property
    def where(self) -> str:
        """The place, for a finding."""
        return f"frame {self.index}"

    @property
    def choices(self) -> list[dict[str, Any]]:
        """The choices of this frame."""
        try:
            return self._choices
        except AttributeError:
            listed = self.data.get("choices")
            self._choices = (
                [choice for choice in listed if isinstance(choice, dict)] if isinstance(listed, list) else []
            )
            return self._choices

    @property
    def deltas(self) -> list[dict[str, Any]]:
        """The deltas of its choices."""
        try:
            return self._deltas
        except AttributeError:
            self._deltas = [choice["delta"] for choice in self.choices if isinstance(choice.get("delta"), dict)]
            return self._deltas


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call as it arrived; a value that never came is None."""

    index: Any
    id: Any
    type: Any
    name: Any
    arguments: Any

    @property
    def values(self) -> dict[str, Any] | None:
        """The arguments as an object, or None where they are not the JSON of one object without repeated keys."""
        value, problem = parse_arguments(self.arguments)
        return value if problem is None else None


def parse_arguments(arguments: object) -> tuple[dict[str, Any] | None, str | None]:
    """The arguments of a call as an object, and what is wrong with them in one phrase (or None)."""
    if not isinstance(arguments, str):
        return None, f"a {type(arguments).__name__} in place of a string"

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if repeated := next((key for key in keys if keys.count(key) > 1), None):
            raise ValueError(f"the key {repeated!r} twice")
        return dict(pairs)

    try:
        value = json.loads(arguments, object_pairs_hook=unique, parse_constant=_no_constant)
    except ValueError as problem:
        return None, str(problem)
    except RecursionError:
        return None, "nesting too deep to parse"
    if not isinstance(value, dict):
        return None, f"JSON of a {type(value).__name__}, not of an object"
    return value, None


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word}, which is not JSON")


class Reply:
    """What one exchange says, read from its recorded bytes once and on demand.

    ``streamed`` tells what was asked for; whether the answer is a stream is told by ``is_stream``.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    @property
    def id(self) -> str:
        """The exchange's id."""
        return self.exchange.id

    @property
    def status(self) -> int | None:
        """The HTTP status, or None where no status line arrived."""
        return self.exchange.status

    @property
    def ok(self) -> bool:
        """Whether the status is 200."""
        return self.exchange.status == 200

    @cached_property
    def request(self) -> dict[str, Any]:
        """The request body; empty where it was not a JSON object."""
        body = self.exchange.request_json()
        return body if isinstance(body, dict) else {}

    @property
    def streamed(self) -> bool:
        """Whether a stream was asked for."""
        return self.request.get("stream") is True

    @property
    def content_type(self) -> str:
        """The media type without parameters, in lower case."""
        return (self.exchange.header("content-type") or "").partition(";")[0].strip().lower()

    @property
    def is_stream(self) -> bool:
        """Whether the answer is framed as an event stream."""
        return self.content_type == "text/event-stream" or (
            self.streamed and self.ok and self.exchange.raw[:5] == b"data:"
        )

    @cached_property
    def body(self) -> Any:
        """The response body as JSON, or None where it is not JSON."""
        try:
            return orjson.loads(self.exchange.raw)
        except ValueError:
            return None

    # --- the stream -------------------------------------------------------------------------------------------------

    @cached_property
    def _split(self) -> tuple[list[bytes], bytes]:
        return sse.split(self.exchange.raw) if self.is_stream else ([], b"")

    @cached_property
    def events(self) -> list[sse.Event]:
        """Every complete event of the stream."""
        return sse.timed(self.exchange.chunks) if self.is_stream else []

    @property
    def unfinished(self) -> bytes:
        """Bytes after the last blank line of the stream."""
        return self._split[1]

    @cached_property
    def frames(self) -> list[Frame]:
        """The events that are JSON objects, in order of arrival, up to the terminator."""
        if (objects := _all_at_once(self.exchange.raw)) is not None and self.is_stream:
            return [Frame(index, data, self) for index, data in enumerate(objects)]
        frames: list[Frame] = []
        keep, loads = frames.append, orjson.loads
        for index, raw in enumerate(self._split[0]):
            try:
                parsed = loads(raw[6:])  # after `data: `, which is how nearly every event begins
            except ValueError:
                event = sse.Event(0.0, raw)
                if event.is_done:
                    break
                parsed = _json(event.data)
            else:
                if raw[:6] != b"data: ":
                    parsed = _json(sse.Event(0.0, raw).data)
            if isinstance(parsed, dict):
                keep(Frame(index, parsed, self))
        return frames

    @property
    def done(self) -> bool:
        """Whether ``[DONE]`` arrived."""
        return any(len(raw) < 32 and sse.Event(0.0, raw).is_done for raw in self._split[0])

    def choices(self, index: int = 0) -> list[tuple[Frame, dict[str, Any]]]:
        """The stream's choices with that index, each with its frame. A missing index counts as 0."""
        return [(frame, choice) for frame in self.frames for choice in frame.choices if choice.get("index", 0) == index]

    # --- the message ------------------------------------------------------------------------------------------------

    @property
    def choice(self) -> dict[str, Any]:
        """The first choice of a whole reply; empty where there is none."""
        choices = self.body.get("choices") if isinstance(self.body, dict) else None
        return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}

    @property
    def message(self) -> dict[str, Any]:
        """The message of a whole reply; empty where there is none."""
        message = self.choice.get("message")
        return message if isinstance(message, dict) else {}

    def _joined(self, key: str) -> str | None:
        if not self.is_stream:
            value = self.message.get(key)
            return value if isinstance(value, str) else None
        parts = [delta[key] for delta in self._deltas if isinstance(delta.get(key), str)]
        return "".join(parts) if parts else None

    @cached_property
    def _deltas(self) -> list[dict[str, Any]]:
        return [choice["delta"] for _, choice in self.choices() if isinstance(choice.get("delta"), dict)]

    @cached_property
    def content(self) -> str | None:
        """The text of the answer; None where no text arrived at all."""
        return self._joined("content")

    @property
    def text(self) -> str:
        """The text of the answer, empty where none arrived."""
        return self.content or ""

    @cached_property
    def reasoning_fields(self) -> tuple[str, ...]:
        """Which of the known reasoning fields carry text in this reply."""
        return tuple(name for name in REASONING_FIELDS if self._joined(name))

    @cached_property
    def reasoning(self) -> str:
        """The reasoning, under whichever known field name it arrived; empty where none did."""
        return self._joined(self.reasoning_fields[0]) or "" if self.reasoning_fields else ""

    @cached_property
    def finish_reason(self) -> Any:
        """The last finish reason that is not null, or None."""
        if not self.is_stream:
            return self.choice.get("finish_reason")
        reasons = (choice.get("finish_reason") for _, choice in reversed(self.choices()))
        return next((reason for reason in reasons if reason is not None), None)

    @cached_property
    def calls(self) -> list[Call]:
        """The tool calls, in order of first appearance."""
        return self._streamed_calls() if self.is_stream else self._whole_calls()

    def _whole_calls(self) -> list[Call]:
        calls = []
        listed = self.message.get("tool_calls")
        for position, call in enumerate(listed if isinstance(listed, list) else []):
            call = call if isinstance(call, dict) else {}
            function = _object(call.get("function"))
            calls.append(
                Call(position, call.get("id"), call.get("type"), function.get("name"), function.get("arguments"))
            )
        return calls

    def _streamed_calls(self) -> list[Call]:
        parts: dict[Any, dict[str, Any]] = {}
        for delta in self._deltas:
            listed = delta.get("tool_calls")
            for piece in listed if isinstance(listed, list) else []:
                if not isinstance(piece, dict):
                    continue
                index = piece.get("index")
                call = parts.setdefault(index if isinstance(index, int) else repr(index), {"index": index})
                function = _object(piece.get("function"))
                for key, value in (("id", piece.get("id")), ("type", piece.get("type"))):
                    if value is not None:
                        call.setdefault(key, value)
                if function.get("name") is not None:
                    call.setdefault("name", function["name"])
                arguments = function.get("arguments")
                if isinstance(arguments, str):
                    call["arguments"] = call.get("arguments", "") + arguments
                elif arguments is not None:
                    call["arguments"] = arguments
        return [
            Call(call.get("index"), call.get("id"), call.get("type"), call.get("name"), call.get("arguments"))
            for call in parts.values()
        ]

    @cached_property
    def usages(self) -> list[tuple[str, dict[str, Any]]]:
        """Every usage object with its place, in order of arrival."""
        if not self.is_stream:
            usage = self.body.get("usage") if isinstance(self.body, dict) else None
            return [("usage", usage)] if isinstance(usage, dict) else []
        holders: list[Frame] = []
        left = self.exchange.raw.count(b'"usage"')  # a long answer has thousands of frames without
        for frame in reversed(self.frames):
            if left <= 0:
                break
            here = ("usage" in frame.data) + sum("usage" in choice for choice in frame.choices)
            left -= here
            if here:
                holders.append(frame)
        found = []
        for frame in reversed(holders):
            for position, choice in enumerate(frame.choices):
                if isinstance(choice.get("usage"), dict) and choice["usage"]:
                    found.append((f"{frame.where}: choices[{position}].usage", choice["usage"]))
            if isinstance(frame.data.get("usage"), dict) and frame.data["usage"]:
                found.append((f"{frame.where}: usage", frame.data["usage"]))
        return found

    @property
    def usage(self) -> dict[str, Any]:
        """The last usage object; empty where none arrived."""
        return self.usages[-1][1] if self.usages else {}

    def tokens(self, name: str) -> int | None:
        """A count of the last usage by its name; nested names of the details are found too. None where absent."""
        usage = self.usage
        nested = {
            "reasoning_tokens": ("completion_tokens_details",),
            "cached_tokens": ("prompt_tokens_details",),
        }.get(name, ())
        for group in nested:
            details = usage.get(group)
            if isinstance(details, dict) and (count := _count(details.get(name))) is not None:
                return count
        return _count(usage.get(name))

    @property
    def error(self) -> dict[str, Any]:
        """The error object: nested under ``error``, or the flat body some engines send; empty where there is none."""
        if not isinstance(self.body, dict):
            return {}
        nested = self.body.get("error")
        if isinstance(nested, dict):
            return nested
        if isinstance(nested, str):
            return {"message": nested}
        return self.body if "message" in self.body else {}

    @property
    def error_message(self) -> str:
        """The message of the error, or the first bytes of the body where there is no such object."""
        message = self.error.get("message")
        return message if isinstance(message, str) else self.exchange.raw[:200].decode("utf-8", "replace")

    def assistant_message(self) -> dict[str, Any]:
        """The whole assistant message, to be sent back verbatim in the next turn.

        A whole reply is returned as it came. A stream is joined under the field names it used; a field that did not
        arrive stays absent.
        """
        if not self.is_stream:
            return dict(self.message)
        message: dict[str, Any] = {"role": "assistant"}
        if self.content is not None:
            message["content"] = self.content
        elif self.calls:
            message["content"] = ""
        for name in self.reasoning_fields:
            message[name] = self._joined(name)
        if self.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": call.type, "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.calls
            ]
        return message


def _all_at_once(raw: bytes) -> list[dict[str, Any]] | None:
    """The objects of a stream in which every event is ``data: {…}`` and the last ``data: [DONE]``; None for any other.

    One call parses them all, at half the cost of a call for each. JSON holds no raw line feed, so what stands between
    two events stands nowhere else.
    """
    if raw[:6] != b"data: " or raw[-len(_DONE) :] != _DONE:
        return None
    try:
        objects: list[Any] = orjson.loads(b"[" + raw[6 : -len(_DONE)].replace(b"\n\ndata: ", b",") + b"]")
    except ValueError:
        return None
    # A comma inside an event would pass for two; so would a line feed that JSON allows between two tokens.
    one_each = raw.count(b"\n\n") == len(objects) + 1 and raw.count(b"\n") == 2 * (len(objects) + 1)
    return objects if one_each and b"\r" not in raw and all(type(data) is dict for data in objects) else None


def _json(data: bytes | None) -> Any:
    try:
        return orjson.loads(data or b"")
    except ValueError:
        return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
