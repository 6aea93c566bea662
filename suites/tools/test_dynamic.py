"""Dynamic tools: declared inside a system message, in the accepted forms only."""

from typing import Any

from kimi_eval import MOONSHOT, MUST, Chat, check, expect, function, system, user

STOCK = function("get_stock", {"item": {"type": "string"}}, description="How many of an item are left.")
ASKED = 'Call `get_stock` with exactly these arguments: {"item": "lamp"}'


@check(
    "A tool declared in a system message can be called.",
    MUST,
    spec="KVV dynamic tools; F037",
    variants=("first-streamed", "first-whole", "last-streamed", "last-whole"),
    contract=MOONSHOT,
)
async def a_dynamic_tool_is_called(chat: Chat) -> None:
    declaration = system("", tools=[STOCK])
    messages = [declaration, user(ASKED)] if chat.kind == "first" else [user(ASKED), declaration]
    reply = await chat.answer(messages, tool_choice="required")

    arguments = chat.call(reply, "get_stock")
    expect(arguments, "arguments").equals({"item": "lamp"})


@check(
    "Declaring a tool in a system message costs prompt tokens.", MUST, spec="F037", variants=("",), contract=MOONSHOT
)
async def a_dynamic_tool_is_rendered(chat: Chat) -> None:
    question = [user("Reply with exactly this and nothing else: stock")]
    without, declared = await chat.many(chat.answer(question), chat.answer([system("", tools=[STOCK]), *question]))

    expect(
        (declared.tokens("prompt_tokens") or 0) - (without.tokens("prompt_tokens") or 0), "prompt tokens more"
    ).at_least(20)


@check(
    "A declaration in any other form is refused with 400.",
    MUST,
    spec="KVV dynamic tools; protocol.md §2.3",
    variants=(
        "in_a_user_message",
        "in_an_assistant_message",
        "next_to_content",
        "not_a_list",
        "null_item",
        "unknown_type",
        "no_type",
        "no_function",
        "no_name",
        "twice_in_one_message",
        "twice_across_messages",
        "like_a_tool_of_the_request",
    ),
    contract=MOONSHOT,
)
async def other_forms_are_refused(chat: Chat) -> None:
    question = user("Reply with exactly this and nothing else: forms")
    function_part = STOCK["function"]
    wrong: dict[str, list[dict[str, Any]]] = {
        "in_a_user_message": [{**question, "tools": [STOCK]}],
        "in_an_assistant_message": [question, {"role": "assistant", "content": "Yes.", "tools": [STOCK]}, question],
        "next_to_content": [system("Be brief.", tools=[STOCK]), question],
        "not_a_list": [system("", tools=STOCK), question],
        "null_item": [system("", tools=[None]), question],
        "unknown_type": [system("", tools=[{**STOCK, "type": "gadget"}]), question],
        "no_type": [system("", tools=[{"function": function_part}]), question],
        "no_function": [system("", tools=[{"type": "function"}]), question],
        "no_name": [system("", tools=[{"type": "function", "function": {"parameters": {"type": "object"}}}]), question],
        "twice_in_one_message": [system("", tools=[STOCK, STOCK]), question],
        "twice_across_messages": [system("", tools=[STOCK]), question, system("", tools=[STOCK])],
        "like_a_tool_of_the_request": [system("", tools=[STOCK]), question],
    }
    more: dict[str, Any] = {"tools": [STOCK]} if chat.variant == "like_a_tool_of_the_request" else {}
    await chat.refuses(wrong[chat.variant], right={"messages": [system("", tools=[STOCK]), question]}, **more)
