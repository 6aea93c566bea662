"""Catalog: every check, invariant and task that the suites hold, found by place."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import ModuleType

from kimi_eval import __version__
from kimi_eval.claims import Check, Invariant
from kimi_eval.problem import Problem
from kimi_eval.tasks import Task

TIERS = {"smoke": 0.5, "quick": 1.0, "standard": 4.0, "full": 16.0}  # times the dozen items of a task
Claim = Check | Invariant | Task


def folder_of(kind: str) -> Path:
    """Where ``suites``, ``fixtures`` or ``targets`` are: in the checkout that this package is part of, or shipped."""
    package = Path(__file__).parent
    beside = package.parent / kind
    if beside.is_dir() and (package.parent / "pyproject.toml").is_file():
        return beside
    return package / "shipped" / kind


@dataclass(frozen=True, slots=True)
class Catalog:
    """All claims, in the order of their files and lines."""

    checks: tuple[Check, ...]
    invariants: tuple[Invariant, ...]
    tasks: tuple[Task, ...]
    version: str  # of the package, with the digest of every suite file

    def __iter__(self) -> Iterator[Claim]:
        yield from self.checks
        yield from self.invariants
        yield from self.tasks

    def addresses(self) -> Iterator[tuple[str, Claim]]:
        """Every verdict that a whole run gives: the address with its variant, and the claim."""
        for claim in self:
            for variant in claim.variants if isinstance(claim, Check) else ("",):
                yield (f"{claim.id}[{variant}]" if variant else claim.id), claim

    def select(self, globs: Sequence[str]) -> list[tuple[str, Claim]]:
        """The addresses that one of the globs fits, all of them without a glob.

        A glob is a suite (``tools``), a file (``tools/tool_choice``), an id, an address, or any of these with ``*``.
        Raises Problem for a glob that fits nothing, with the nearest id.
        """
        everything = list(self.addresses())
        if not globs:
            return everything
        chosen: dict[str, Claim] = {}
        for glob in globs:
            fitting = {address: claim for address, claim in everything if _fits(glob.rstrip("/"), address, claim.id)}
            if not fitting:
                raise Problem(f"no check is called {glob!r}; {self._hint(glob)}")
            chosen |= fitting
        return [(address, claim) for address, claim in everything if address in chosen]

    def find(self, address: str) -> Claim:
        """The claim with that id or address. Raises Problem with the nearest id where there is none."""
        for candidate, claim in self.addresses():
            if address in (candidate, claim.id):
                return claim
        raise Problem(f"no check is called {address!r}; {self._hint(address)}")

    def _hint(self, name: str) -> str:
        suites = [claim.suite for claim in self]
        names = list(
            dict.fromkeys([*suites, *(suite.split("/")[0] for suite in suites), *(claim.id for claim in self)])
        )
        near = get_close_matches(name, names, n=1)
        if not near:  # right in its last part only
            by_last = {known.rsplit("/", 1)[-1]: known for known in names}
            near = [by_last[last] for last in get_close_matches(name.rsplit("/", 1)[-1], by_last, n=1)]
        return f"did you mean {near[0]!r}?" if near else "`kimi-eval list` shows them all"


def _fits(glob: str, address: str, id: str) -> bool:
    if any(glob == part or id.startswith(f"{glob}/") for part in (address, id)):
        return True
    literal = glob.replace("[", "[[]")  # brackets hold a variant, not a character class
    return fnmatchcase(address, literal) or fnmatchcase(id, literal)


@cache
def load(folder: Path | None = None) -> Catalog:
    """Imports every ``test_*.py`` below the folder and collects what it defines. Raises what a broken suite raises."""
    folder = folder or folder_of("suites")
    checks: list[Check] = []
    invariants: list[Invariant] = []
    tasks: list[Task] = []
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("test_*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
        for value in vars(_imported(folder, file)).values():
            if isinstance(value, Check):
                checks.append(value)
            elif isinstance(value, Invariant):
                invariants.append(value)
            elif isinstance(value, Task):
                tasks.append(value)
    version = f"{__version__}+{digest.hexdigest()[:12]}"
    return Catalog(tuple(checks), tuple(invariants), tuple(tasks), version)


def _imported(folder: Path, file: Path) -> ModuleType:
    parts = file.relative_to(folder).with_suffix("").parts
    name = "kimi_eval_suites_" + "_".join(parts)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
