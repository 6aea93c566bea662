"""Faults: every known way a deployment goes wrong, found by place."""

from __future__ import annotations

import importlib
import pkgutil

from kimi_eval.fault import Fault


def all_faults() -> dict[str, Fault]:
    """All faults of this folder by name, in the order of their modules and lines.

    Raises: ValueError when two faults bear one name.
    """
    found: dict[str, Fault] = {}
    for module in pkgutil.iter_modules(__path__):
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if not isinstance(value, Fault):
                continue
            if found.setdefault(value.name, value) is not value:
                raise ValueError(f"two faults are named {value.name!r}")
    return found
