"""Tool choice: the rules for `tool_choice`."""

from __future__ import annotations

from kimi_eval.simulator.request import Request
from kimi_eval.simulator.rules.rule import Verdict, rule


@rule("tool_choice")
def tool_choice_is_a_known_word(request: Request) -> Verdict:
    choice = request.body.get("tool_choice")
    if choice is None or choice in ("auto", "none", "required") or isinstance(choice, dict):
        return None
    return f"invalid tool_choice: {choice!r}; allowed are auto, none, required"


@rule("tool_choice_named")
def named_tools_cannot_be_forced(request: Request) -> Verdict:
    if isinstance(request.body.get("tool_choice"), dict):
        return "tool_choice 'specified' is incompatible with thinking enabled"
    return None


@rule("tool_choice_required_needs_tools")
def required_needs_a_tool(request: Request) -> Verdict:
    if request.tool_choice == "required" and not request.tools:
        return "invalid tool_choice: 'required' needs at least one tool"
    return None
