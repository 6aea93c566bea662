"""Rendering: a scorecard as text in one of the formats, each of which is one module of this package."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any, cast

from kimi_eval.scorecard import Scorecard

_MODULES = {
    module.name.rstrip("_"): f"{__name__}.{module.name}"
    for module in pkgutil.iter_modules(__path__)
    if not module.name.startswith("_")
}
FORMATS = tuple(sorted(_MODULES))


def render(card: Scorecard, format: str, **options: Any) -> str:
    """The card in that format, ending in one newline. It holds no lone surrogate, so that it can be written as UTF-8.

    Options are those of the format's own ``render``. All take ``directory``, the run directory as the commands that
    repeat a finding spell it; the files take ``links``, whether exchange ids point to ``exchanges/ID.gz`` beside them;
    the console takes ``colour`` and ``width``. Raises KeyError where there is no such format.
    """
    return cast(str, _module(format).render(card, **options))


def file_name(format: str) -> str:
    """What the file of that format is called inside a run directory. Raises KeyError where there is no such format."""
    return cast(str, _module(format).FILE)


def _module(name: str) -> ModuleType:
    return import_module(_MODULES[name])
