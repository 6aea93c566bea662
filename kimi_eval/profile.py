"""Profile: an engine's dialect as data, detected or named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any

import yaml

from kimi_eval.problem import Problem


@dataclass(frozen=True, slots=True)
class Profile:
    """How an engine spells things, and which claims do not apply to it and why.

    ``detect`` holds patterns for what the deployment shows of itself: ``owned_by``, ``header`` (``name: value`` lines)
    and ``field`` (keys of a chat reply). ``capabilities`` are assumed where the target declares nothing.
    """

    name: str
    title: str
    reasoning_field: str
    detect: Mapping[str, str] = field(default_factory=dict)
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    notes: str = ""

    def excludes(self, check_id: str) -> str | None:
        """Why a check does not apply, or None where it does."""
        return self.not_applicable.get(check_id)


@cache
def all_profiles() -> dict[str, Profile]:
    """Every profile of ``profiles/``, by name."""
    found = {}
    for file in sorted(resources.files("kimi_eval").joinpath("profiles").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            data: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
            profile = Profile(name=file.name.removesuffix(".yaml"), **data)
            found[profile.name] = profile
    return found


def named(name: str) -> Profile:
    """The profile of that name. Raises Problem with the nearest names where there is none."""
    profiles = all_profiles()
    if name not in profiles:
        near = get_close_matches(name, profiles, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "known are " + ", ".join(profiles)
        raise Problem(f"there is no profile {name!r}; {hint}")
    return profiles[name]


def detect(owned_by: str, headers: Mapping[str, str], fields: frozenset[str]) -> tuple[Profile, str]:
    """The profile whose pattern fits what a deployment shows, and by what it was recognised.

    Falls back to ``generic``.
    """
    lines = "\n".join(f"{name.lower()}: {value}" for name, value in headers.items())
    shown = {"owned_by": owned_by, "header": lines, "field": "\n".join(sorted(fields))}
    for profile in all_profiles().values():
        for source, pattern in profile.detect.items():
            if found := re.search(pattern, shown[source], re.MULTILINE | re.IGNORECASE):
                return profile, f"{source} {found.group()!r}"
    return all_profiles()["generic"], "nothing that a known engine shows"
