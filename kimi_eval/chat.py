"""Chat: what a check talks through. It sends what the check spells out, plus what every request has.

Every request says its model, effort, lane and token ceiling explicitly; a check overrides each of them by naming it,
or leaves one out with ``OMIT``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kimi_eval.expectations import Inconclusive, NotApplicable, belongs_to, expect, note, require
from kimi_eval.reply import Reply
from kimi_eval.verdict import shown

if TYPE_CHECKING:
    from kimi_eval.client import ClientReading
    from kimi_eval.deployment import Capabilities, Deployment
    from kimi_eval.profile import Profile

OMIT: Any = object()  # as the value of a field: send the request without it

DEFAULT_CEILING = 8192  # tokens of a reply; at effort low the model spends up to about 7,000 on a hard question
_WORDS = (
    "amber birch cedar delta ember fjord grove heron inlet jetty kayak larch maple north otter plume quartz".split()
)


class Session(Protocol):
    """What a chat needs of the run: it sends, retries, records and counts."""

    deployment: Deployment
    profile: Profile
    capabilities: Capabilities
    effort: str
    seed: str

    async def exchange(
        self,
        case: str,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None,
        *,
        headers: Mapping[str, str],
        hostile: bool,
        cut_after: int | None,
        shared: bool,
    ) -> Reply:
        """Sends one request for a case and returns the reply to its final attempt."""

    async def client_exchange(self, case: str, body: dict[str, Any]) -> tuple[Reply, ClientReading]:
        """Has the official client send one request."""


@dataclass(slots=True)
class Chat:
    """One case's line to the deployment. Not shared between cases; concurrent asks within a case are fine."""

    session: Session
    case: str
    variant: str = ""
    _asked: list[Reply | None] = field(default_factory=list)
    _nonces: int = 0

    @property
    def replies(self) -> list[Reply]:
        """Every reply so far, in the order in which they were asked for, not in that of arrival."""
        return [reply for reply in self._asked if reply is not None]

    @property
    def streamed(self) -> bool:
        """Whether this variant asks for streams: it is called ``streamed``, or ``something-streamed``."""
        return self.variant.endswith("streamed")

    @property
    def kind(self) -> str:
        """The variant without its lane: ``newlines`` of ``newlines-streamed``."""
        return self.variant.removesuffix("-streamed").removesuffix("-whole")

    @property
    def capabilities(self) -> Capabilities:
        """Declared capabilities, completed by what the profile assumes and the preflight observed."""
        return self.session.capabilities

    def nonce(self) -> str:
        """A short word that no other place of this run contains; the same again when the run is resumed."""
        self._nonces += 1
        draw = random.Random(f"{self.session.seed}/{self.case}/{self._nonces}")
        return f"{draw.choice(_WORDS)}-{draw.randrange(1000, 10000)}"

    def ceiling(self, tokens: int = DEFAULT_CEILING) -> int:
        """So many tokens for a reply, or fewer where the window or the target's limits allow fewer."""
        if window := self.capabilities.max_model_len:
            tokens = min(tokens, max(16, window // 4))
        return min(tokens, self.session.deployment.limits.max_completion_tokens or tokens)

    def body(self, messages: Any, **fields: Any) -> dict[str, Any]:
        """The request body: messages, the fields that a check names, and what every request has."""
        body = {
            "model": self.session.deployment.model,
            "messages": messages,
            "stream": self.streamed,
            "reasoning_effort": self.session.effort,
            "max_completion_tokens": self.ceiling(),
            **fields,
        }
        if body["stream"] is True:
            body.setdefault("stream_options", {"include_usage": True})
        return {name: value for name, value in body.items() if value is not OMIT}

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        hostile: bool = False,
        cut_after: int | None = None,
        shared: bool = False,
    ) -> Reply:
        """Sends any request below the base URL.

        ``hostile`` marks a request that is wrong on purpose: it is not retried on a 5xx, which would be the finding.
        ``shared`` lets checks that ask the very same thing share one exchange. Raises Inconclusive where no complete
        reply arrived.
        """
        place = self._place()
        reply = await self.session.exchange(
            self.case,
            method,
            path,
            body,
            headers=headers or {},
            hostile=hostile,
            cut_after=cut_after,
            shared=shared,
        )
        self._asked[place] = reply
        belongs_to(reply.id)
        _must_be_complete(reply)
        if reply.status == 429:
            raise Inconclusive(f"429 after {reply.exchange.attempt} attempts: {reply.error_message}")
        return reply

    async def ask(self, messages: Any, *, hostile: bool = False, cut_after: int | None = None, **fields: Any) -> Reply:
        """One chat request, in the lane of the variant unless ``stream`` is named. Any status is returned."""
        body = self.body(messages, **fields)
        return await self.send("POST", "/chat/completions", body, hostile=hostile, cut_after=cut_after)

    async def answer(self, messages: Any, *, may_be_cut: bool = False, **fields: Any) -> Reply:
        """One chat request that must be answered with 200 and to the end.

        Any other status is a finding and stops the check. An answer cut at the token ceiling, unless ``may_be_cut``,
        raises Inconclusive: it cannot show what it would have said.
        """
        reply = await self.ask(messages, **fields)
        self.must_be_an_answer(reply)
        if reply.finish_reason == "length" and not may_be_cut:
            ceiling = reply.request.get("max_completion_tokens")
            raise Inconclusive(f"the answer was cut at {ceiling} tokens before it could show anything")
        return reply

    def must_be_an_answer(self, reply: Reply) -> None:
        """Stops the check with a finding where the reply is no answer: another status, or no readable body."""
        if not reply.ok:
            note("status", "200", f"{reply.status}: {shown(reply.error_message)}", reply.id)
            require(False)
        if not reply.frames and not isinstance(reply.body, dict):
            note("body", "JSON or an event stream of JSON", shown(reply.exchange.raw[:200]), reply.id)
            require(False)

    async def refuses(
        self, messages: Any, *, status: int | Sequence[int] = 400, right: Mapping[str, Any] | None = None, **wrong: Any
    ) -> Reply:
        """Asks a request with one mistake, which must get the documented status, and its sane twin, which must get 200.

        ``wrong`` are the fields that hold the mistake. ``right`` are the fields of the twin, and may name its
        ``messages``; without it the twin is the same request without the wrong fields.
        """
        sane = dict(right or {})
        twin_body = self.body(sane.pop("messages", messages), **sane)
        twin = await self.send("POST", "/chat/completions", twin_body, shared=True)
        if not twin.ok:
            note("the same request without the mistake", "200", f"{twin.status}: {shown(twin.error_message)}", twin.id)
        reply = await self.ask(messages, hostile=True, **wrong)
        allowed = [status] if isinstance(status, int) else list(status)
        if reply.status not in allowed:
            said = shown(reply.error_message) if not reply.ok else "an answer"
            note("status", " or ".join(map(str, allowed)), f"{reply.status}: {said}", reply.id)
        return reply

    async def read_with_client(self, messages: Any, **fields: Any) -> tuple[Reply, ClientReading]:
        """Has the official client ask the same; returns what arrived and what the client made of it."""
        place = self._place()
        reply, reading = await self.session.client_exchange(self.case, self.body(messages, **fields))
        self._asked[place] = reply
        belongs_to(reply.id)
        _must_be_complete(reply)
        return reply, reading

    def _place(self) -> int:
        self._asked.append(None)
        return len(self._asked) - 1

    async def many(self, *asks: Any) -> list[Reply]:
        """Several asks at once, in the order given."""
        return list(await asyncio.gather(*asks))

    def call(self, reply: Reply, name: str) -> dict[str, Any]:
        """The arguments of the only call of the reply, which must be of that tool. Anything else stops the check."""
        require(expect(len(reply.calls), "number of tool calls").equals(1))
        made = reply.calls[0]
        require(expect(made.name, "tool_calls[0].function.name").equals(name))
        values = made.values
        if values is None:
            note("tool_calls[0].function.arguments", "the JSON of one object", shown(made.arguments), reply.id)
            require(False)
        return values or {}

    def needs_window(self, tokens: int) -> None:
        """Raises NotApplicable where the window is known to be smaller than what the conversation takes."""
        window = self.capabilities.max_model_len
        if window is not None and window < tokens:
            raise NotApplicable(f"the window of {window:,} tokens is too small for it; {tokens:,} are needed")

    def needs(self, capability: str) -> None:
        """Raises NotApplicable unless the capability is declared, assumed by the profile, or observed."""
        if not getattr(self.capabilities, capability):
            raise NotApplicable(f"capability {capability} is neither declared nor observed")


def _must_be_complete(reply: Reply) -> None:
    if not reply.exchange.answered:
        raise Inconclusive(f"no complete reply: {reply.exchange.failure_text}")


# --- messages ---------------------------------------------------------------------------------------------------------


def user(content: Any, **more: Any) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": content, **more}


def system(content: Any, **more: Any) -> dict[str, Any]:
    """A system message."""
    return {"role": "system", "content": content, **more}


def developer(content: Any, **more: Any) -> dict[str, Any]:
    """A developer message, OpenAI's newer name for system."""
    return {"role": "developer", "content": content, **more}


def assistant(content: Any = OMIT, **more: Any) -> dict[str, Any]:
    """An assistant message of a history that we made up; without ``content`` it has no such key."""
    message = {"role": "assistant", "content": content, **more}
    return {name: value for name, value in message.items() if value is not OMIT}


def tool_result(call_id: Any, content: Any, **more: Any) -> dict[str, Any]:
    """The result of the call with that id."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def function(
    name: str, properties: Mapping[str, Any] | None = None, *, required: Sequence[str] | None = None, **more: Any
) -> dict[str, Any]:
    """A tool definition; all properties are required unless told otherwise."""
    parameters: dict[str, Any] = {"type": "object", "properties": dict(properties or {})}
    wanted = list(properties or {}) if required is None else list(required)
    if wanted:
        parameters["required"] = wanted
    description = more.pop("description", f"The function {name}.")
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters} | more}
