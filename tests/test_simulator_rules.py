"""Rules: each validation of the simulated deployment refuses what it names, and a fault can switch it off."""

from __future__ import annotations

import json

import pytest

from kimi_eval.fault import Fault
from kimi_eval.simulator.rules import RULES
from tests.requests import BREAKING, body_of, sent

# What breaks these leaves nothing that the next rule could accept.
FOLLOWED_BY_ANOTHER = {"tool_call_id", "response_format_json_schema"}


def test_every_rule_has_a_request_that_breaks_it() -> None:
    assert set(BREAKING) == set(RULES)


@pytest.mark.parametrize("rule", BREAKING)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_broken_rule_is_refused_as_json(rule: str, streamed: bool) -> None:
    status, data, headers = sent({"stream": streamed, **body_of("Hi"), **BREAKING[rule]}, "b")

    assert status == (404 if rule == "model" else 400)
    assert set(json.loads(data)["error"]) == {"message", "type"}
    assert headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("rule", BREAKING)
def test_a_fault_can_switch_each_rule_off(rule: str) -> None:
    lenient = Fault("lenient", "Skips one rule.", "", "test", (), {"rules": lambda request: {rule}})
    status = sent({**body_of("Hi"), **BREAKING[rule]}, "b", lenient)[0]

    assert status == (400 if rule in FOLLOWED_BY_ANOTHER else 200)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b'"x"', b"null"])
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    assert sent(raw)[0] == 400


def test_a_ceiling_beyond_the_window_names_both_numbers() -> None:
    status, data, _ = sent(body_of("Hi", max_completion_tokens=1_048_576))

    assert status == 400
    assert "Your request exceeded model token limit : 1048576 (requested: " in json.loads(data)["error"]["message"]
