"""Embedded: the simulated deployment as a target of our own, which answers every task through its gold path."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from kimi_eval.catalog import TIERS, Catalog
from kimi_eval.deployment import Deployment, Timeouts
from kimi_eval.problem import OUR_BUG, Problem

if TYPE_CHECKING:
    from kimi_eval.fault import Fault
    from kimi_eval.simulator import SimulatedDeployment

# What takes longer than this on loopback is a fault that hangs; a real deployment gets the default minutes.
_TIMEOUTS = Timeouts(connect=10.0, first_byte=30.0, idle=30.0, total=90.0)


class Gold:
    """An oracle: finds the item that a conversation is about by its first user message, and knows its gold answer."""

    def __init__(self, catalog: Catalog, seed: str) -> None:
        self._items: dict[str, tuple[int, tuple[dict[str, Any], ...]]] = {}
        for task in catalog.tasks:
            for _, item in task.items(seed, round(task.count * max(TIERS.values()))):
                opening = sum(message["role"] == "assistant" for message in item.messages)
                self._items[_key(item.messages)] = (opening, item.gold)

    def __call__(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> dict[str, Any] | None:
        """The gold assistant message for this point of the conversation, or None where it is about no item."""
        found = self._items.get(_key(messages))
        if found is None:
            return None
        opening, gold = found
        step = sum(message.get("role") == "assistant" for message in messages) - opening
        return gold[step] if 0 <= step < len(gold) else None


def _key(messages: Any) -> str:
    first = next((message.get("content") for message in messages if message.get("role") == "user"), "")
    return first if isinstance(first, str) else repr(first)


def fault_named(name: str) -> Fault:
    """The simulator's fault of that name. Raises Problem with the nearest name."""
    from kimi_eval.simulator.faults import all_faults

    faults = all_faults()
    if name not in faults:
        near = get_close_matches(name, faults, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`kimi-eval simulate --list-faults` shows them all"
        raise Problem(f"no fault is called {name!r}; {hint}")
    return faults[name]


def simulated(
    catalog: Catalog, *, seed: str, variant: str = "a", fault: str | None = None, accuracy: float = 1.0, port: int = 0
) -> SimulatedDeployment:
    """A simulated deployment that knows the catalog's items of that seed; not started. Raises Problem."""
    from kimi_eval.simulator import SimulatedDeployment

    return SimulatedDeployment(
        variant=variant,
        fault=fault_named(fault) if fault else None,
        oracle=Gold(catalog, seed),
        accuracy=accuracy,
        port=port,
    )


@contextlib.contextmanager
def embedded(*, seed: str, variant: str = "a", fault: str | None = None, accuracy: float = 1.0) -> Iterator[Deployment]:
    """Runs the simulated deployment for as long as the block runs, and gives it as a target. Raises Problem.

    It is a process of its own, so that its work does not delay our clock, and in a session of its own, so that Ctrl-C
    reaches us alone. It ends when we do, however we end: then its standard input closes.
    """
    if fault:
        fault_named(fault)
    words = ["simulate", "--until-input-ends", f"--seed={seed}", f"--variant={variant}", f"--accuracy={accuracy}"]
    server = subprocess.Popen(
        [sys.executable, "-m", "kimi_eval", *words, *([f"--fault={fault}"] if fault else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        said = server.stdout.readline()
        url = next((word for word in said.split() if word.startswith("http://")), None)
        if url is None:
            raise Problem(f"the simulated deployment did not start: {said.strip() or 'see above'}", exit_code=OUR_BUG)
        yield Deployment(base_url=url.rstrip(","), timeouts=_TIMEOUTS)
    finally:
        server.stdin.close()
        try:
            server.wait(3)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()
