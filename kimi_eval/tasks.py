"""Task: a family of generated items with one claim, how an item is asked and scored, and its gold answer."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kimi_eval.claims import suite_of
from kimi_eval.verdict import Contract, Level

if TYPE_CHECKING:
    from kimi_eval.chat import Chat
    from kimi_eval.reply import Reply

Message = dict[str, Any]


class Outcome(StrEnum):
    """What became of one item. Only a correct one counts as right; a transport failure counts neither way."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNPARSED = "unparsed"  # an answer, but not in the form that was asked for
    TRUNCATED = "truncated"
    EMPTY = "empty"
    DEGENERATE = "degenerate"
    REFUSED = "refused"
    TRANSPORT = "transport"


@dataclass(frozen=True, slots=True)
class Item:
    """One question with its answer.

    ``messages`` open the conversation. ``turns`` are further user messages, each sent after an answer. ``expect`` is
    what the scorer compares with. ``gold`` are the assistant messages of a perfect run, one for each request.
    """

    messages: tuple[Message, ...]
    expect: Any
    gold: tuple[Message, ...]
    turns: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    results: dict[str, str] = field(default_factory=dict)  # what a simulated tool answers, by name and arguments
    knobs: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a conversation about one item came to: the last reply, and every reply before it."""

    replies: tuple[Reply, ...]

    @property
    def last(self) -> Reply:
        """The reply that is scored."""
        return self.replies[-1]


Ask = Callable[["Chat", Item], Awaitable[Answer]]
Score = Callable[[Item, Answer], Outcome]


@dataclass(frozen=True, slots=True)
class Task:
    """A family of items drawn from a seed; asked like a check, answered with a rate and its interval."""

    name: str
    suite: str
    title: str
    spec: str
    version: int
    count: int
    make: Callable[[random.Random], Item]
    ask: Ask
    score: Score
    level: Level = Level.OBSERVE
    contract: Contract = Contract.CORE
    needs: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The address; a task has no variants."""
        return f"{self.suite}/{self.name}"

    def items(self, seed: str, count: int | None = None) -> Iterator[tuple[str, Item]]:
        """Pairs of (item id, item). The same seed gives the same items on every machine and Python version.

        Each item has its own generator, seeded by a string, so that asking for more items changes none.
        """
        for number in range(self.count if count is None else count):
            item_id = f"{self.id}.v{self.version}/{seed}/{number}"
            yield item_id, self.make(random.Random(item_id))


def task(
    title: str, *, spec: str, ask: Ask, score: Score, count: int = 12, version: int = 1, needs: tuple[str, ...] = ()
) -> Callable[[Callable[[random.Random], Item]], Task]:
    """Makes a Task of the function below, which draws one item. Raises ValueError where the title is no sentence."""

    def make(draw: Callable[[random.Random], Item]) -> Task:
        suite = suite_of(Path(draw.__code__.co_filename))
        if not title.endswith("."):
            raise ValueError(f"{suite}/{draw.__name__}: the title {title!r} is no sentence")
        return Task(draw.__name__, suite, title, spec, version, count, draw, ask, score, needs=needs)

    return make


# --- asking -----------------------------------------------------------------------------------------------------------


async def once(chat: Chat, item: Item) -> Answer:
    """Asks the item in one request."""
    return Answer((await chat.ask(list(item.messages), **_tools(item)),))


async def in_turns(chat: Chat, item: Item) -> Answer:
    """Asks turn by turn; each assistant message goes back verbatim, reasoning included."""
    messages = list(item.messages)
    replies = [await chat.ask(messages)]
    for turn in item.turns:
        if not replies[-1].ok or not replies[-1].text:
            break
        messages = [*messages, replies[-1].assistant_message(), {"role": "user", "content": turn}]
        replies.append(await chat.ask(messages))
    return Answer(tuple(replies))


async def with_tools(chat: Chat, item: Item, *, limit: int = 8) -> Answer:
    """Lets the model call tools until it answers in words, ``limit`` requests at most."""
    messages = list(item.messages)
    replies: list[Reply] = []
    while len(replies) < limit:
        reply = await chat.ask(messages, **_tools(item))
        replies.append(reply)
        if not reply.ok or not reply.calls or not item.results:
            break
        messages = [*messages, reply.assistant_message()]
        for call in reply.calls:
            result = item.results.get(call_key(call.name, call.values), "error: no such call is possible here")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return Answer(tuple(replies))


def call_key(name: object, arguments: dict[str, Any] | None) -> str:
    """How a call is spelled as a key: name and arguments with sorted keys."""
    inside = ", ".join(f"{key}={value!r}" for key, value in sorted((arguments or {}).items()))
    return f"{name}({inside})"


def _tools(item: Item) -> dict[str, Any]:
    return {"tools": list(item.tools)} if item.tools else {}


# --- scoring ----------------------------------------------------------------------------------------------------------

_ANSWER_LINE = re.compile(r"^\W*ANSWER\W*:\s*(.*?)\s*\W*$", re.IGNORECASE)


def condition(reply: Reply) -> Outcome | None:
    """The outcome of a reply that has no answer to compare, or None where it has one."""
    if reply.status is None or not reply.exchange.answered:
        return Outcome.TRANSPORT
    if not reply.ok:
        return Outcome.REFUSED
    if degeneration(reply.text) or degeneration(reply.reasoning):
        return Outcome.DEGENERATE
    if reply.finish_reason == "length":
        return Outcome.TRUNCATED
    if reply.finish_reason == "content_filter":
        return Outcome.REFUSED
    if not reply.text.strip() and not reply.calls:
        return Outcome.EMPTY
    return None


def answer_line(item: Item, answer: Answer) -> Outcome:
    """Compares the text after ``ANSWER:`` on the last line that has it with ``item.expect``, whole."""
    if (outcome := condition(answer.last)) is not None:
        return outcome
    lines = [line for line in answer.last.text.strip().splitlines() if line.strip()]
    found = next((match for line in reversed(lines) if (match := _ANSWER_LINE.match(line.strip()))), None)
    if found is None:
        return Outcome.UNPARSED
    given = found.group(1).strip().strip("*`$").strip()
    return Outcome.CORRECT if given == str(item.expect) else Outcome.WRONG


def calls_exactly(item: Item, answer: Answer) -> Outcome:
    """Compares the calls of all replies with ``item.expect``, a list of (name, arguments), in any order."""
    if (outcome := condition(answer.last)) is not None:
        return outcome
    made = [call for reply in answer.replies for call in reply.calls]
    if any(call.values is None for call in made):
        return Outcome.UNPARSED
    given = sorted(call_key(call.name, call.values) for call in made)
    wanted = sorted(call_key(name, arguments) for name, arguments in item.expect)
    return Outcome.CORRECT if given == wanted else Outcome.WRONG


# --- degeneration -----------------------------------------------------------------------------------------------------

_RUN = re.compile(r"([^\s\-_=*#.~|+])\1{49,}")  # rulers and table lines are legitimate
_LONGEST_PERIOD = 200
_MOST_REPEATS = 20


def degeneration(text: str) -> str | None:
    """What is wrong with a text that no healthy model writes, in one phrase, or None (tasks.md §2).

    Finds one character 50 times in a row, a period of up to 200 characters more than 20 times at the end, and 8 kB
    that compress to under 5 %. Linear in the length of the text.
    """
    if run := _RUN.search(text):
        return f"{run.group(1)!r} {len(run.group()):,} times in a row"
    if len(text) < 3 * _MOST_REPEATS:
        return None
    tail = text[-_LONGEST_PERIOD * (_MOST_REPEATS + 1) :]
    if period := _period_at_end(tail):
        return f"{tail[-period:]!r} more than {_MOST_REPEATS} times at the end"
    block = text[-8192:].encode("utf-8", "replace")
    if len(block) >= 8192 and len(zlib.compress(block)) / len(block) < 0.05:
        return "8 kB that compress to under 5 %"
    return None


def _period_at_end(tail: str) -> int | None:
    for period in range(3, _LONGEST_PERIOD + 1):
        length = period * (_MOST_REPEATS + 1)
        if length > len(tail):
            return None
        end = tail[-length:]
        if end[period:] == end[:-period] and any(character.isalnum() for character in end[:period]):
            return period
    return None
