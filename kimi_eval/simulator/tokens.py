"""Tokens: a small deterministic tokenizer of our own; joined, the pieces are the text again."""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

# The framing tokens of the chat format. Text never yields them: a piece of text holds at most four letters,
# so a marker typed by a user costs one token for each of its parts.
OPEN, CLOSE, SEP, END = "<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"
MARKERS = (OPEN, CLOSE, SEP, END)

VOCABULARY = 163_584  # Merge ranks of the real tokenizer; token ids stay below it.

_SYLLABIC = r"\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
_PIECE = re.compile(rf" ?[^\W\d_{_SYLLABIC}]{{1,4}}|\d{{1,3}}|.", re.DOTALL)


def pieces(text: str) -> list[str]:
    """The tokens of a text: up to four letters with one blank before them, up to three digits, or one character."""
    if len(text) <= 4096:
        return list(_short(text))
    return _PIECE.findall(text)


@lru_cache(maxsize=8192)
def _short(text: str) -> tuple[str, ...]:
    return tuple(_PIECE.findall(text))


def token_id(piece: str) -> int:
    """A stable id for a piece."""
    return zlib.crc32(piece.encode("utf-8", "surrogatepass")) % VOCABULARY
