"""History: faults of what becomes of earlier turns on their way into the prompt."""

from __future__ import annotations

from typing import Any

from kimi_eval.fault import fault
from kimi_eval.simulator.request import Request, as_list

Body = dict[str, Any]


def each_message(body: Body, change: Any) -> Body:
    """The body with every message changed, or left out where the change gives None."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return body
    changed = [change(message) for message in messages]
    return {**body, "messages": [message for message in changed if message is not None]}


@fault(
    "Reasoning in the history is dropped.",
    source="vllm#38488 (F061)",
    kind="multi_turn",
    at="body",
    noticed_by=["thinking/pass_back/reasoning_in_history_is_rendered", "thinking/pass_back/reasoning_can_be_recalled"],
)
def history_loses_reasoning(request: Request, body: Body) -> Body:
    def without(message: Body) -> Body:
        return {key: value for key, value in message.items() if key not in ("reasoning_content", "reasoning")}

    return each_message(body, without)


@fault(
    "Only the first half of the reasoning in the history is kept.",
    source="litellm#41380 (F062)",
    kind="multi_turn",
    at="body",
    noticed_by=["thinking/pass_back/reasoning_in_history_is_rendered", "thinking/pass_back/reasoning_can_be_recalled"],
)
def history_keeps_half_the_reasoning(request: Request, body: Body) -> Body:
    def halved(message: Body) -> Body:
        thought = message.get("reasoning_content")
        return {**message, "reasoning_content": thought[: len(thought) // 4]} if isinstance(thought, str) else message

    return each_message(body, halved)


@fault(
    "An assistant message whose content is null is dropped with its calls.",
    source="mlx-openai-server#205 (F067)",
    kind="multi_turn",
    at="body",
    noticed_by=["conversation/history/calls_in_history_are_rendered[null]"],
)
def null_content_drops_the_message(request: Request, body: Body) -> Body:
    dropped: list[Any] = []

    def kept(message: Body) -> Body | None:
        if message.get("role") == "assistant" and "content" in message and message["content"] is None:
            dropped.extend(call.get("id") for call in as_list(message.get("tool_calls")) if isinstance(call, dict))
            return None
        return None if message.get("tool_call_id") in dropped else message

    return each_message(body, kept)


@fault(
    "Tool results are dropped.",
    source="smg#1873 (F058, F067)",
    kind="multi_turn",
    at="body",
    noticed_by=["conversation/history/a_tool_result_is_read", "tools/ids/a_loop_goes_round"],
)
def results_are_dropped(request: Request, body: Body) -> Body:
    def emptied(message: Body) -> Body:
        return {**message, "content": "ok"} if message.get("role") == "tool" else message

    return each_message(body, emptied)


@fault(
    "Tool results are matched by their order, not by id.",
    source="protocol.md §4.5",
    kind="multi_turn",
    at="prompt",
    noticed_by=["conversation/history/results_are_matched_by_id"],
)
def results_are_matched_by_order(request: Request, prompt: list[str]) -> list[str]:
    ids = [message.get("tool_call_id") for message in request.messages if message.get("role") == "tool"]
    made = [call["id"] for message in request.messages for call in message.get("tool_calls") or []]
    return prompt if ids == made[: len(ids)] else [*prompt, *prompt[-5:]]


@fault(
    "System messages are dropped.",
    source="vllm#50543 (F068)",
    kind="multi_turn",
    at="body",
    noticed_by=["conversation/roles/system_is_obeyed"],
)
def system_is_dropped(request: Request, body: Body) -> Body:
    def kept(message: Body) -> Body | None:
        return None if message.get("role") == "system" and "OTTER" in str(message.get("content")) else message

    return each_message(body, kept)


@fault(
    "Developer messages are dropped.",
    source="vllm#50543 (F068)",
    kind="multi_turn",
    at="body",
    noticed_by=["conversation/roles/developer_is_not_dropped"],
)
def developer_is_dropped(request: Request, body: Body) -> Body:
    return each_message(body, lambda message: None if message.get("role") == "developer" else message)


@fault(
    "Only the first part of a message is read.",
    source="protocol.md §2.1",
    kind="multi_turn",
    at="body",
    noticed_by=["conversation/roles/content_may_be_parts", "protocol/invariants/an_answer_is_not_empty"],
)
def only_the_first_part_is_read(request: Request, body: Body) -> Body:
    def first(message: Body) -> Body:
        content = message.get("content")
        return {**message, "content": content[:1]} if isinstance(content, list) else message

    return each_message(body, first)


@fault(
    "Earlier turns are forgotten.",
    source="dynamo; protocol.md §4.1 (F065)",
    kind="multi_turn",
    at="body",
    noticed_by=[
        "thinking/pass_back/a_conversation_goes_on",
        "thinking/pass_back/reasoning_in_history_is_rendered",
        "thinking/pass_back/reasoning_can_be_recalled",
        "tools/dynamic/other_forms_are_refused[in_an_assistant_message]",
    ],
)
def earlier_turns_are_forgotten(request: Request, body: Body) -> Body:
    messages = body.get("messages")
    if not isinstance(messages, list) or len(messages) < 3 or body.get("tools"):
        return body
    if all(isinstance(message, dict) and message.get("role") in ("user", "assistant") for message in messages):
        return {**body, "messages": messages[-1:]}
    return body


@fault(
    "A partial message is ignored: a new turn repeats its beginning.",
    source="chutes#42 (F080)",
    kind="multi_turn",
    at="body",
    noticed_by=["conversation/history/a_partial_message_is_continued"],
)
def partial_is_ignored(request: Request, body: Body) -> Body:
    def without(message: Body) -> Body | None:
        return None if message.get("partial") else message

    return each_message(body, without)


@fault(
    "The model goes on with the user's text.",
    source="vLLM blog 2025-10-28 (F065)",
    kind="multi_turn",
    at="answer",
    noticed_by=["tools/tool_choice/auto_calls_when_needed"],
)
def users_text_is_continued(request: Request, answer: Any) -> Any:
    if "weather in Oslo?" in request.question and len(request.messages) == 1 and request.tool_choice == "auto":
        return answer.misread(calls=(), content=" And also in Rome?", finish_reason="stop")
    return answer
