"""Explanation: what a claim says, whence it comes, what it asks, and which faults it notices."""

from __future__ import annotations

import asyncio
import inspect
import json
import textwrap
from collections.abc import Callable
from typing import Any

from kimi_eval.catalog import Catalog, Claim
from kimi_eval.claims import Check, Invariant
from kimi_eval.runner import Runner, Settings
from kimi_eval.transcript import Exchange

_LONGEST_BODY = 2000  # characters of a request that is shown


def described(claim: Claim) -> dict[str, Any]:
    """A claim as JSON."""
    kind = "check" if isinstance(claim, Check) else "invariant" if isinstance(claim, Invariant) else "task"
    return {
        "id": claim.id,
        "kind": kind,
        "title": claim.title,
        "level": str(claim.level),
        "contract": str(claim.contract),
        "spec": claim.spec,
        "variants": list(claim.variants) if isinstance(claim, Check) else [],
        "needs": list(claim.needs),
        "noticed_faults": noticed_faults(claim.id),
    }


def noticed_faults(id: str) -> list[str]:
    """The names of the faults that name this claim."""
    from kimi_eval.simulator.faults import all_faults

    return [
        fault.name
        for fault in all_faults().values()
        if any(noticed.partition("[")[0] == id for noticed in fault.noticed_by)
    ]


def told(claim: Claim, catalog: Catalog) -> str:
    """The explanation as text, with the requests as they are sent to the simulated deployment."""
    data = described(claim)
    lines = [
        f"{claim.id}  ({data['kind']}, {claim.level}, contract: {claim.contract})",
        "",
        f"Claim     {claim.title}",
        f"Source    {claim.spec}",
    ]
    if data["variants"] and data["variants"] != [""]:
        lines.append(f"Variants  {', '.join(data['variants'])}")
    if claim.needs:
        lines.append(f"Needs     {', '.join(claim.needs)}")
    faults = data["noticed_faults"]
    lines += [f"Notices   {', '.join(faults) if faults else 'no fault of the simulator names it'}", ""]
    if isinstance(claim, Invariant):
        lines += [f"Judges all {claim.over} of a run and costs no request. What it says:", "", _source(claim.holds)]
        return "\n".join(lines)
    lines.append(
        "Requests, as sent in the first variant:" if isinstance(claim, Check) else "Request of the first item:"
    )
    for exchange in asyncio.run(_rehearsed(claim, catalog)):
        body = exchange.body.decode("utf-8", "replace")
        shown = body if len(body) <= _LONGEST_BODY else f"{body[:_LONGEST_BODY]}… ({len(body):,} characters)"
        lines += ["", f"  {exchange.method} {exchange.url.partition('/v1')[2] or exchange.url}", f"  {shown}"]
    lines += ["", "What it says:", "", _source(claim.hold if isinstance(claim, Check) else claim.make)]
    return "\n".join(lines)


def _source(function: Callable[..., Any]) -> str:
    return textwrap.indent(textwrap.dedent(inspect.getsource(function)).rstrip(), "  ")


async def _rehearsed(claim: Claim, catalog: Catalog) -> list[Exchange]:
    """The exchanges that a claim has with the simulated deployment."""
    from kimi_eval import profile
    from kimi_eval.deployment import Capabilities, from_url
    from kimi_eval.embedded import simulated

    seen: list[Exchange] = []
    with simulated(catalog, seed="public") as server:
        dialect = profile.named("moonshot")
        capabilities = Capabilities(**dialect.capabilities, max_model_len=1_048_576)
        settings = Settings(items=1e-9, nonce="explain")
        runner = Runner(from_url(server.base_url), dialect, capabilities, None, settings, on_exchange=seen.append)
        async with runner.connected():
            if isinstance(claim, Check):
                await runner.judge_check(claim, claim.variants[0])
            elif not isinstance(claim, Invariant):
                await runner.judge_task(claim)
    return seen


def faults_json() -> str:
    """The catalogue of faults as JSON."""
    from kimi_eval.simulator.faults import all_faults

    return json.dumps(
        [
            {
                "name": fault.name,
                "title": fault.title,
                "source": fault.source,
                "kind": fault.kind,
                "noticed_by": list(fault.noticed_by),
            }
            for fault in all_faults().values()
        ],
        indent=1,
    )


def faults_table() -> str:
    """The catalogue of faults as a table."""
    from tabulate import tabulate

    from kimi_eval.simulator.faults import all_faults

    rows = [(fault.name, fault.kind, fault.title, "\n".join(fault.noticed_by)) for fault in all_faults().values()]
    return tabulate(
        rows, headers=["fault", "kind", "what goes wrong", "noticed by"], maxcolwidths=[None, None, 50, None]
    )
