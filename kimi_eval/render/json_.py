"""JSON scorecard: the card itself, indented and in a stable order, for programs and for reading back."""

from __future__ import annotations

import json

from kimi_eval.render._text import json_safe
from kimi_eval.scorecard import Scorecard

FILE = "scorecard.json"


def render(card: Scorecard, *, links: bool = True, directory: str = "") -> str:
    """What `Scorecard.from_json` reads back unchanged; the options, which all formats take, change nothing here.

    orjson is of no use: it refuses a lone surrogate, which a server can send.
    """
    return json_safe(json.dumps(card.to_json(), indent=2, ensure_ascii=False)) + "\n"
