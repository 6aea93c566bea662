"""Running: whole runs against the simulated deployment, for tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kimi_eval import catalog as catalogs
from kimi_eval.certify import Certification, Order
from kimi_eval.deployment import Deployment, Timeouts
from kimi_eval.embedded import Gold, fault_named
from kimi_eval.runner import Settings
from kimi_eval.scorecard import Scorecard
from kimi_eval.simulator import SimulatedDeployment
from kimi_eval.verdict import Status

WINDOW = 65_536  # small, so that the over-long prompt is cheap

# Long enough for an honest answer on a machine that is busy with other tests.
TIMEOUTS = Timeouts(connect=10, first_byte=40, idle=40, total=80)


def measured(
    folder: Path, *, fault: str | None = None, variant: str = "a", globs: tuple[str, ...] = (), items: float = 0.25
) -> Scorecard:
    """The scorecard of one run against a fresh simulated deployment."""
    catalog = catalogs.load()
    server = SimulatedDeployment(
        variant=variant,
        fault=fault_named(fault) if fault else None,
        oracle=Gold(catalog, "public"),
        max_model_len=WINDOW,
    )
    with server:
        deployment = Deployment(base_url=server.base_url, timeouts=TIMEOUTS)
        order = Order(deployment, catalog, globs, Settings(items=items, nonce="test"), folder)
        return asyncio.run(Certification(order).run())


def failed(card: Scorecard) -> set[str]:
    """The addresses of everything that failed."""
    return {verdict.address for verdict in card.verdicts if verdict.status is Status.FAILED}


def expected(fault_name: str) -> set[str]:
    """The addresses that a fault names: an id without a variant names all its variants."""
    catalog = catalogs.load()
    named = fault_named(fault_name).noticed_by
    addresses = {address: claim.id for address, claim in catalog.addresses()}
    unknown = [name for name in named if name not in addresses and name not in addresses.values()]
    assert not unknown, f"{fault_name} names checks that do not exist: {unknown}"
    return {address for address, id in addresses.items() if address in named or id in named}
