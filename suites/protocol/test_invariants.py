"""Invariants: what every reply of a run must satisfy, whatever was asked."""

import re
from typing import Any

from kimi_eval import (
    MOONSHOT,
    MUST,
    SHOULD,
    Reply,
    degeneration,
    expect,
    invariant,
    note,
    parse_arguments,
)

FINISH_REASONS = {"stop", "length", "tool_calls", "content_filter"}

# Whole markers of the K3 and K2 formats, and the attribute syntax that is left where only the markers were stripped.
_MARKER = re.compile(
    # `|>` and `<|` alone are operators of several languages; next to a letter they are half a marker.
    r"<\|[a-z_]{2,40}\|>|</?think>|<\|?(?:open|close|sep|end_of_msg)\|?>|[a-z_]\|>|<\|[a-z_]"
    r"|call tool=\"|argument key=\"|tool_calls?_section_(?:begin|end)|tool_call_argument_begin"
    r"|\bfunctions\.[\w-]+:\d+\s*[<{]|<0x[0-9A-F]{2}>"
)
_INTERNALS = re.compile(
    r"Traceback \(most recent call last\)|site-packages|dist-packages|/home/\w+|/root/|File \"/|\.py\", line \d+"
    r"|\bat 0x[0-9a-f]{8,}|(?<![\w.])(?:10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+)"
    r"|\bsk-[A-Za-z0-9]{16,}"
)


def _asked(reply: Reply) -> str:
    return reply.exchange.body.decode("utf-8", "replace")


# --- text -------------------------------------------------------------------------------------------------------------


@invariant(
    "No marker of the model's own format, nor a fragment of one, is in content, reasoning or arguments.",
    MUST,
    spec="F001, F002, F005, F008, F010-F013, F046; protocol.md §1.3",
)
def no_native_marker_leaks(reply: Reply) -> None:
    asked = _asked(reply)
    texts = [("content", reply.text), ("reasoning", reply.reasoning)]
    texts += [(f"tool_calls[{n}].function.arguments", str(call.arguments or "")) for n, call in enumerate(reply.calls)]
    for where, text in texts:
        for found in _MARKER.finditer(text):
            # A marker that the user wrote may be quoted back.
            if found.group().strip() not in asked and found.group().replace('"', '\\"') not in asked:
                near = text[max(0, found.start() - 40) : found.end() + 40]
                note(where, "no marker of the model's format", repr(near))
                break


@invariant("The call that was parsed is not repeated as text.", MUST, spec="F010")
def no_call_is_repeated_as_text(reply: Reply) -> None:
    for number, call in enumerate(reply.calls):
        if isinstance(call.arguments, str) and len(call.arguments) > 8 and call.arguments in reply.text:
            note("content", f"not the arguments of tool_calls[{number}] once more", repr(reply.text[:200]))


@invariant("Every reply is valid UTF-8, and no character is lost.", MUST, spec="P0.11; F104, F139")
def text_is_whole_utf8(reply: Reply) -> None:
    raw = reply.exchange.raw
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as damage:
        note(f"byte {damage.start}", "valid UTF-8", repr(raw[max(0, damage.start - 20) : damage.start + 20]))
        return
    texts = [reply.text, reply.reasoning, *(str(call.arguments or "") for call in reply.calls)]
    if "\ufffd" not in _asked(reply):
        lost = next((text for text in texts if "\ufffd" in text), None)
        if lost is not None:
            place = lost.index("\ufffd")
            note("text", "no replacement character U+FFFD", repr(lost[max(0, place - 30) : place + 30]))


@invariant(
    "No text is degenerate: no endless repetition, no run of one character.", MUST, spec="F030, F075, F122, F123"
)
def no_text_is_degenerate(reply: Reply) -> None:
    for where, text in (("content", reply.text), ("reasoning", reply.reasoning)):
        if problem := degeneration(text):
            note(where, "text as a model writes it", problem)
    blanks = re.search(r"\s{64,}", reply.text)
    if blanks and len(set(blanks.group())) < 3:
        note("content", "fewer than 64 blanks in a row", f"{len(blanks.group())} blanks")


@invariant("A reply that stops on its own has an answer: content or a call.", MUST, spec="F023, F047, F051, F053, F080")
def an_answer_is_not_empty(reply: Reply) -> None:
    if reply.finish_reason == "stop" and not reply.calls:
        stops = reply.request.get("stop")
        if not stops or not _stopped_at_once(reply):
            expect(reply.text, "content with finish_reason stop").is_text()


def _stopped_at_once(reply: Reply) -> bool:
    """An answer that begins with the stop word is rightly empty; there is reasoning then, and nothing else."""
    return bool(reply.reasoning) and (reply.tokens("completion_tokens") or 0) > (reply.tokens("reasoning_tokens") or 0)


# --- structure --------------------------------------------------------------------------------------------------------


@invariant(
    "A whole reply is a `chat.completion` with id, creation time, model and a message of the assistant.",
    MUST,
    spec="protocol.md §3.1",
)
def whole_replies_have_their_fields(reply: Reply) -> None:
    if reply.streamed:
        return
    body = reply.body if isinstance(reply.body, dict) else {}
    expect(reply.content_type, "content-type").equals("application/json")
    expect(body.get("id"), "id").is_text()
    expect(body.get("object"), "object").equals("chat.completion")
    expect(body.get("created"), "created").is_a(int, "an integer")
    expect(body.get("model"), "model").is_text()
    expect(reply.choice.get("index"), "choices[0].index").equals(0)
    expect(reply.message.get("role"), "choices[0].message.role").equals("assistant")
    expect(reply.message, "keys of the message").satisfies(
        lambda message: "content" in message or bool(message.get("tool_calls")), "content among them"
    )
    for name in ("content", "reasoning_content", "reasoning"):
        value = reply.message.get(name)
        expect(value, f"choices[0].message.{name}").satisfies(
            lambda value: value is None or isinstance(value, str), "a string or null"
        )


@invariant("The finish reason is stop, length, tool_calls or content_filter.", MUST, spec="P0.15; protocol.md §3.3")
def finish_reason_is_legal(reply: Reply) -> None:
    if reply.streamed and reply.finish_reason is None:
        return  # said by a_choice_finishes_once
    expect(reply.finish_reason, "finish_reason").is_in(sorted(FINISH_REASONS))


@invariant("The finish reason is tool_calls exactly where there are calls.", MUST, spec="F028, F042")
def finish_reason_agrees_with_the_calls(reply: Reply) -> None:
    named = isinstance(reply.request.get("tool_choice"), dict)
    if reply.finish_reason == "tool_calls" and not reply.calls:
        note("tool_calls", "at least one call with finish_reason tool_calls", "none")
    if reply.calls and reply.finish_reason == "stop" and not named:
        note("finish_reason", "'tool_calls' next to a call", "'stop'")


@invariant(
    "The answer keeps to the token ceiling, and an answer that fills it says `length`.",
    MUST,
    spec="F042; protocol.md §2.1",
)
def answers_keep_to_the_ceiling(reply: Reply) -> None:
    ceiling = reply.request.get("max_completion_tokens", reply.request.get("max_tokens"))
    used = reply.tokens("completion_tokens")
    if isinstance(ceiling, bool) or not isinstance(ceiling, int) or used is None or ceiling < 1:
        return
    if reply.request.get("n") in (None, 1):
        expect(used, "completion_tokens").at_most(ceiling)
    if reply.finish_reason == "length" and reply.request.get("n") in (None, 1):
        window = (reply.tokens("prompt_tokens") or 0) + used
        if used < ceiling - 3 and window < 8192:  # a full window is the other legal reason
            note("completion_tokens", f"about {ceiling} with finish_reason length", str(used))


# --- tool calls -------------------------------------------------------------------------------------------------------


def _declared(reply: Reply) -> set[str]:
    tools = list(reply.request.get("tools") or [])
    for message in reply.request.get("messages") or []:
        if isinstance(message, dict) and isinstance(message.get("tools"), list):
            tools += message["tools"]
    return {
        tool["function"].get("name")
        for tool in tools
        if isinstance(tool, dict) and isinstance(tool.get("function"), dict)
    }


@invariant("Every call names a tool that was declared.", MUST, spec="F007, F038")
def calls_name_declared_tools(reply: Reply) -> None:
    declared = _declared(reply)
    for number, call in enumerate(reply.calls):
        if call.name not in declared:
            known = ", ".join(sorted(map(str, declared))) or "none was declared"
            note(f"tool_calls[{number}].function.name", f"one of the declared tools ({known[:200]})", repr(call.name))


@invariant(
    "The arguments of every call are a string that holds one JSON object.", MUST, spec="P0.14; F014, F018, F019, F032"
)
def arguments_are_one_object(reply: Reply) -> None:
    if reply.finish_reason == "length":
        return  # cut at the ceiling
    for number, call in enumerate(reply.calls):
        _, problem = parse_arguments(call.arguments)
        if problem is not None:
            shown = repr(call.arguments)[:200]
            note(
                f"tool_calls[{number}].function.arguments",
                "a string with the JSON of one object",
                f"{shown}: {problem}",
            )


@invariant("Every call has an id, and no two calls of a reply share one.", MUST, spec="protocol.md §3.2")
def call_ids_are_unique(reply: Reply) -> None:
    ids = [call.id for call in reply.calls]
    for number, call_id in enumerate(ids):
        expect(call_id, f"tool_calls[{number}].id").is_text()
        if call_id and call_id in ids[:number]:
            note(f"tool_calls[{number}].id", "an id of its own", repr(call_id))


@invariant("A call has type `function`.", MUST, spec="protocol.md §3.1")
def calls_have_type_function(reply: Reply) -> None:
    if not reply.streamed:
        for number, call in enumerate(reply.calls):
            expect(call.type, f"tool_calls[{number}].type").equals("function")


# --- usage ------------------------------------------------------------------------------------------------------------


@invariant("Usage reports prompt, completion and total tokens, and the total is their sum.", MUST, spec="P0.2; F109")
def usage_adds_up(reply: Reply) -> None:
    if not reply.streamed:
        expect(reply.usage, "usage").satisfies(bool, "an object with token counts")
    for where, usage in reply.usages:
        counts = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
        good = True
        for name, count in counts.items():
            good = (
                expect(count, f"{where}.{name}").satisfies(
                    lambda count: isinstance(count, int) and not isinstance(count, bool) and count >= 0, "a count"
                )
                and good
            )
        if good:
            total = usage["prompt_tokens"] + usage["completion_tokens"]
            expect(counts["total_tokens"], f"{where}.total_tokens").equals(total)
            expect(counts["prompt_tokens"], f"{where}.prompt_tokens").at_least(1)


@invariant("Cached tokens are part of the prompt tokens.", MUST, spec="F109")
def cached_tokens_are_part_of_the_prompt(reply: Reply) -> None:
    cached, prompt = reply.tokens("cached_tokens"), reply.tokens("prompt_tokens")
    if cached is not None and prompt is not None:
        expect(cached, "cached_tokens").at_least(0)
        expect(cached, "cached_tokens").at_most(prompt)


@invariant("Reasoning that arrived is counted, within the completion tokens.", MUST, spec="F111; P0.2")
def reasoning_is_counted(reply: Reply) -> None:
    counted, completion = reply.tokens("reasoning_tokens"), reply.tokens("completion_tokens")
    if counted is None or completion is None:
        return
    expect(counted, "reasoning_tokens").at_most(completion)
    if reply.reasoning.strip():
        expect(counted, "reasoning_tokens next to reasoning text").at_least(1)


@invariant(
    "Usage has `completion_tokens_details.reasoning_tokens` and `prompt_tokens_details.cached_tokens`.",
    MUST,
    spec="P0.2",
    contract=MOONSHOT,
)
def usage_has_its_details(reply: Reply) -> None:
    for where, usage in reply.usages:
        for group, name in (
            ("completion_tokens_details", "reasoning_tokens"),
            ("prompt_tokens_details", "cached_tokens"),
        ):
            details = usage.get(group)
            value = details.get(name) if isinstance(details, dict) else None
            expect(value, f"{where}.{group}.{name}").is_a(int, "an integer")


@invariant(
    "The headers X-Msh-Usage-Prompt-Tokens and X-Msh-Usage-Cached-Tokens repeat the usage.",
    MUST,
    spec="P0.18",
    contract=MOONSHOT,
)
def usage_headers_agree(reply: Reply) -> None:
    for header, name in (
        ("X-Msh-Usage-Prompt-Tokens", "prompt_tokens"),
        ("X-Msh-Usage-Cached-Tokens", "cached_tokens"),
    ):
        count = reply.tokens(name)
        if count is not None:
            expect(reply.exchange.header(header), header).equals(str(count))


@invariant("What was counted was also said: completion tokens have visible text.", SHOULD, spec="F041")
def counted_tokens_are_visible(reply: Reply) -> None:
    completion = reply.tokens("completion_tokens")
    if completion is None or reply.request.get("n") not in (None, 1):
        return
    said = len(reply.text) + len(reply.reasoning) + sum(len(str(call.arguments or "")) + 60 for call in reply.calls)
    # No vocabulary spends more than a token on a character of ordinary text; 200 allow for channel markers.
    expect(completion, "completion_tokens of what was said").at_most(200 + 4 * said)


# --- errors -----------------------------------------------------------------------------------------------------------


@invariant(
    "An error is JSON with a message, also where a stream was asked for.", MUST, spec="P0.17; F119", over="errors"
)
def errors_are_json(reply: Reply) -> None:
    expect(reply.content_type, "content-type of an error").equals("application/json")
    expect(reply.error.get("message"), "message of the error").is_text()


@invariant(
    "The error object stands under `error` and has a message and a type.",
    SHOULD,
    spec="P0.17; protocol.md §5; F119",
    over="errors",
)
def errors_have_the_envelope(reply: Reply) -> None:
    nested: Any = reply.body.get("error") if isinstance(reply.body, dict) else None
    if expect(nested, "error").is_a(dict, "an object"):
        expect(nested.get("message"), "error.message").is_text()
        expect(nested.get("type"), "error.type").is_text()


@invariant(
    "No error shows a stack trace, a file path, an inner address or a marker.", MUST, spec="F024, F175", over="errors"
)
def errors_show_no_internals(reply: Reply) -> None:
    text = reply.exchange.raw[:65536].decode("utf-8", "replace")
    if found := _INTERNALS.search(text):
        note("error body", "no internals", repr(text[max(0, found.start() - 40) : found.end() + 60]))
    elif (marker := _MARKER.search(text)) and marker.group() not in _asked(reply) and "<|" in marker.group():
        note(
            "error body", "no marker of the model's format", repr(text[max(0, marker.start() - 40) : marker.end() + 40])
        )


@invariant(
    "No request is answered with a server error.", MUST, spec="F035, F045, F085, F176; protocol.md §5", over="errors"
)
def nothing_is_a_server_error(reply: Reply) -> None:
    if reply.status not in (503, 529):  # overload, which the client is asked to wait out
        expect(reply.status, "status").at_most(499)
