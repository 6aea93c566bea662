"""Text: words and numbers for a reader, and what a model or a server wrote made safe to print without hiding any."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Everything that moves a cursor, reorders or hides its neighbours, or cannot be written: C0 and C1 controls but for tab
# and line feed, soft hyphen, zero-width and bidirectional controls, separators, surrogates, tags, and noncharacters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef"
    "\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e007f"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(1, 17))
    + "]"
)
_CODE = re.compile(r"`([^`]+)`")


def visible(text: str) -> str:
    r"""The text with every character that cannot be seen, or must not be sent, as an escape such as ``\x1b``."""
    return _UNSAFE.sub(_escape, text)


def one_line(text: str, most: int | None = None) -> str:
    r"""The same on one line, with line breaks as ``\n``; a longer text than ``most`` characters is cut."""
    return cut(visible(text).replace("\n", "\\n").replace("\t", "\\t"), most)


def cut(text: str, most: int | None) -> str:
    """A text longer than ``most`` characters, cut in the middle and saying so."""
    if most is None or len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … {text[-half:]} ({len(text):,} characters)"


def spans(text: str) -> Iterator[tuple[bool, str]]:
    """The parts of a sentence as (is code, text): code is what stands between two backticks."""
    for place, part in enumerate(_CODE.split(text)):
        if part:
            yield place % 2 == 1, part


def json_safe(text: str) -> str:
    """JSON whose strings hold unsafe characters, with those as JSON escapes: the same values, safe to print."""
    return _UNSAFE.sub(_json_escape, text)


def count(number: int, noun: str, nouns: str = "") -> str:
    """``1 claim``, ``2 claims``."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def duration(seconds: float) -> str:
    """``0.8 s``, ``42 s``, ``4 min 12 s``, ``1 h 03 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min"


def dollars(usd: float | None) -> str:
    """``$1.23``, ``$0.0042``, or that no price is known."""
    if usd is None:
        return "no price known"
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
