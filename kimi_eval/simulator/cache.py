"""Prefix cache: which leading blocks of a prompt were seen before."""

from __future__ import annotations

BLOCK = 256  # Tokens in a block, as measured on the coding endpoint.
_MOST_BLOCKS = 200_000


class PrefixCache:
    """Blocks are known by the hash of everything up to their end; the oldest leave first."""

    def __init__(self) -> None:
        self._known: dict[int, None] = {}

    def remember(self, tokens: list[str]) -> int:
        """How many leading tokens were cached before; from now on all whole blocks are.

        At least one token is always computed, so the count stays below the prompt's length.
        """
        chain, hits, unbroken = 0, 0, True
        for start in range(0, len(tokens) - BLOCK + 1, BLOCK):
            chain = hash((chain, tuple(tokens[start : start + BLOCK])))
            unbroken = unbroken and chain in self._known
            if unbroken and start + BLOCK < len(tokens):
                hits += BLOCK
            self._known[chain] = None
        while len(self._known) > _MOST_BLOCKS:
            del self._known[next(iter(self._known))]
        return hits
