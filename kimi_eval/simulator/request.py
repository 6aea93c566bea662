"""Request: one chat request as the simulated deployment sees it, read leniently so that a skipped rule still works."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kimi_eval.simulator.answer import Answer
from kimi_eval.simulator.variant import Variant

EFFORTS = ("low", "high", "max")
DEFAULT_OUTPUT_TOKENS = 131_072  # The official default of max_completion_tokens.


@dataclass(slots=True)
class Request:
    """The parsed body; `state` lives as long as the server, `draft` is the answer before stop words and budget."""

    body: dict[str, Any]
    variant: Variant
    state: dict[str, Any]
    window: int
    messages: list[dict[str, Any]] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    prompt: list[str] = field(default_factory=list)
    draft: Answer = field(default_factory=Answer)
    id: str = ""
    created: int = 0

    @classmethod
    def of(cls, body: dict[str, Any], *, variant: Variant, state: dict[str, Any], window: int) -> Request:
        """Read what can be read of a body, valid or not."""
        messages = [message for message in as_list(body.get("messages")) if isinstance(message, dict)]
        declared = [*as_list(body.get("tools"))]
        for message in messages:
            declared += as_list(message.get("tools"))
        tools = [
            tool["function"]
            for tool in declared
            if isinstance(tool, dict) and isinstance(tool.get("function"), dict) and tool["function"].get("name")
        ]
        return cls(body, variant, state, window, messages, tools)

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def streamed(self) -> bool:
        return self.body.get("stream") is True

    def stream_option(self, name: str) -> bool:
        """True when `stream_options` switches this option on."""
        return as_dict(self.body.get("stream_options")).get(name) is True

    @property
    def thinking(self) -> bool:
        return as_dict(self.body.get("thinking")).get("type") != "disabled"

    @property
    def effort(self) -> str:
        """The effort in force: `thinking.effort` wins over `reasoning_effort`; the default is max."""
        chosen = as_dict(self.body.get("thinking")).get("effort") or self.body.get("reasoning_effort")
        return chosen if chosen in EFFORTS else "max"

    @property
    def tool_choice(self) -> str:
        choice = self.body.get("tool_choice")
        return choice if choice in ("none", "required") else "auto"

    @property
    def tool_names(self) -> list[str]:
        return [str(tool["name"]) for tool in self.tools]

    @property
    def parallel(self) -> bool:
        return self.body.get("parallel_tool_calls") is not False

    @property
    def output_tokens(self) -> int | None:
        """The asked budget; max_completion_tokens wins over the deprecated max_tokens."""
        for name in ("max_completion_tokens", "max_tokens"):
            value = self.body.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
                return value
        return None

    @property
    def budget(self) -> int:
        """How many tokens may be generated."""
        room = max(1, self.window - len(self.prompt))
        return min(self.output_tokens or DEFAULT_OUTPUT_TOKENS, room)

    @property
    def stop_words(self) -> list[str]:
        stop = self.body.get("stop")
        return [stop] if isinstance(stop, str) else [word for word in as_list(stop) if isinstance(word, str)]

    @property
    def response_format(self) -> dict[str, Any]:
        return as_dict(self.body.get("response_format"))

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema of a json_schema response format."""
        if self.response_format.get("type") != "json_schema":
            return None
        return as_dict(as_dict(self.response_format.get("json_schema")).get("schema"))

    @property
    def wants_json(self) -> bool:
        return self.response_format.get("type") in ("json_object", "json_schema")

    @property
    def logprobs(self) -> bool:
        return self.body.get("logprobs") is True

    @property
    def top_logprobs(self) -> int:
        value = self.body.get("top_logprobs")
        return value if isinstance(value, int) and 0 <= value <= 20 else 0

    @property
    def last(self) -> dict[str, Any]:
        return self.messages[-1] if self.messages else {}

    @property
    def partial(self) -> str | None:
        """The text to be continued in partial mode."""
        if self.last.get("role") == "assistant" and self.last.get("partial") is True:
            return text_of(self.last)
        return None

    @property
    def question(self) -> str:
        """The text of the last user message."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                return text_of(message)
        return ""

    @property
    def calls_in_history(self) -> int:
        return sum(len(as_list(message.get("tool_calls"))) for message in self.messages)


def as_list(value: Any) -> list[Any]:
    """The value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_dict(value: Any) -> dict[str, Any]:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def text_of(message: dict[str, Any]) -> str:
    """The text of a message: its string, or its text parts joined by line breaks."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(
        part["text"]
        for part in as_list(content)
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )


def reasoning_of(message: dict[str, Any]) -> str:
    """The preserved thought of an assistant message, under either of its two names."""
    for name in ("reasoning_content", "reasoning"):
        value = message.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def image_url(part: Any) -> str | None:
    """The URL of an image part, which may stand in an object or bare."""
    if not isinstance(part, dict) or part.get("type") != "image_url":
        return None
    value = part.get("image_url")
    url = value.get("url") if isinstance(value, dict) else value
    return url if isinstance(url, str) else None
