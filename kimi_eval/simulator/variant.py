"""Variant: the legal freedoms a clean deployment takes, where the contract leaves a choice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """How a contract-true deployment chunks and which options it has."""

    name: str
    tokens_per_frame: tuple[int, int]
    tool_id: str
    ids_count_history: bool
    content_beside_calls: str | None
    preface_before_calls: bool
    prefix_cache: bool
    thinking_can_be_disabled: bool
    aligned_network_chunks: bool


VARIANTS = {
    "a": Variant(
        name="a",
        tokens_per_frame=(1, 1),
        tool_id="{name}_{number}",
        ids_count_history=True,
        content_beside_calls="",
        preface_before_calls=False,
        prefix_cache=True,
        thinking_can_be_disabled=True,
        aligned_network_chunks=True,
    ),
    "b": Variant(
        name="b",
        tokens_per_frame=(3, 7),
        tool_id="{name}:{number}",
        ids_count_history=False,
        content_beside_calls=None,
        preface_before_calls=True,
        prefix_cache=False,
        thinking_can_be_disabled=False,
        aligned_network_chunks=False,
    ),
}
