"""Errors: a mistake of the client is told with the documented status, and never answered as if it were none."""

from typing import Any

from kimi_eval import MOONSHOT, MUST, OMIT, SHOULD, Chat, check, expect, note, user

HELLO = [user("Reply with exactly this and nothing else: hello")]


@check("A body that is not JSON is refused with 400.", MUST, spec="protocol.md §5", variants=("cut_short", "not_json"))
async def broken_json_is_refused(chat: Chat) -> None:
    body = b'{"model": "kimi-k3.1-pro", "messages": [' if chat.variant == "cut_short" else b"messages=hello"
    reply = await chat.send("POST", "/chat/completions", body, hostile=True)

    expect(reply.status, "status").equals(400)


@check("An unknown model is refused with 404.", MUST, spec="protocol.md §2.1, §5")
async def an_unknown_model_is_refused(chat: Chat) -> None:
    await chat.refuses(HELLO, status=404, right={}, model="kimi-eval-no-such-model")


@check(
    "A request without usable messages is refused with 400.",
    MUST,
    spec="protocol.md §2.1",
    variants=("absent", "empty", "text", "message_is_text"),
)
async def messages_are_required(chat: Chat) -> None:
    wrong: dict[str, Any] = {"absent": OMIT, "empty": [], "text": "hello", "message_is_text": ["hello"]}
    await chat.refuses(wrong[chat.variant], right={"messages": HELLO})


@check("An unknown role is refused with 400.", SHOULD, spec="protocol.md §2.1")
async def an_unknown_role_is_refused(chat: Chat) -> None:
    await chat.refuses([{"role": "wizard", "content": "hello"}], right={"messages": HELLO})


@check("A user message without content is refused with 400.", SHOULD, spec="protocol.md §2.1", contract=MOONSHOT)
async def an_empty_user_message_is_refused(chat: Chat) -> None:
    await chat.refuses([user("")], right={"messages": HELLO})


@check("An unknown path is answered with 404.", SHOULD, spec="protocol.md §5", variants=("",))
async def an_unknown_path_is_not_found(chat: Chat) -> None:
    reply = await chat.send("POST", "/chat/kimi-eval-no-such-path", chat.body(HELLO), hostile=True)

    expect(reply.status, "status").equals(404)


@check("After a refusal the next request is answered.", MUST, spec="F085, F151", variants=("",))
async def a_refusal_leaves_the_server_well(chat: Chat) -> None:
    schema = {"type": "object", "properties": {"broken": "not a schema"}}
    response_format = {"type": "json_schema", "json_schema": {"name": "broken", "schema": schema}}
    reply = await chat.ask(HELLO, response_format=response_format, hostile=True)
    if reply.status is not None and reply.status >= 500:
        note("status of a request with a malformed schema", "400", str(reply.status), reply.id)
    after = await chat.answer(HELLO, may_be_cut=True)

    expect(after.status, "status of the next request").equals(200)
