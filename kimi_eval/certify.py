"""Certify: the main job, from a target to a scorecard in a run folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kimi_eval import preflight
from kimi_eval.catalog import Catalog, Claim
from kimi_eval.deployment import Deployment, Fact
from kimi_eval.journal import Journal
from kimi_eval.preflight import Sighting
from kimi_eval.problem import Problem
from kimi_eval.reply import Reply
from kimi_eval.runner import Runner, Settings
from kimi_eval.scorecard import ClientCheck, Run, Scorecard, Totals, judge
from kimi_eval.transcript import load
from kimi_eval.verdict import Verdict
from kimi_eval.wire import Wire

Beside = Callable[[Runner], AbstractAsyncContextManager[None]]
PLAN_SCHEMA = "kimi-eval/plan/1"
_TRUSTED_LAG = 0.1  # of the median time to first byte; above it our own client may have made the delay (DESIGN §7)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done: the deployment, which claims, how, and where the results go."""

    deployment: Deployment
    catalog: Catalog
    globs: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    folder: Path = Path()
    model_given: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)  # that name the target; what resuming without one needs
    command: str = "kimi-eval certify"

    def selection(self) -> list[tuple[str, Claim]]:
        """The claims to judge. Raises Problem for a glob that fits nothing."""
        return self.catalog.select(self.globs)


class Certification:
    """One run: preflight, conversations, verdicts and the card, all of it on disk as it goes.

    ``runner``, ``sighting`` and ``journal`` exist once `start` has returned.
    """

    def __init__(
        self,
        order: Order,
        on_verdict: Callable[[Verdict], None] = lambda verdict: None,
        selection: Sequence[tuple[str, Claim]] | None = None,
    ) -> None:
        self.order = order
        self.selection = order.selection() if selection is None else list(selection)
        self.whole = len(self.selection) == len(list(order.catalog.addresses()))
        self.on_verdict = on_verdict
        self.started = datetime.now(UTC)
        self.runner: Runner
        self.sighting: Sighting
        self.journal: Journal
        self._clock = time.perf_counter()
        self._cpu = time.process_time()

    @contextlib.asynccontextmanager
    async def start(self) -> Any:
        """Looks at the deployment and opens the run folder; the block then has a connected runner."""
        order = self.order
        async with Wire(order.deployment) as wire:
            self.sighting = await preflight.look(wire, model_given=order.model_given, effort=order.settings.effort)
        self.journal = Journal(order.folder / "exchanges")
        for exchange in self.sighting.exchanges:
            self.journal.add(exchange)
        self._write_plan()
        with (order.folder / "verdicts.jsonl").open("w", encoding="utf-8") as verdicts:

            def reached(verdict: Verdict) -> None:
                verdicts.write(json.dumps(verdict.to_json(), ensure_ascii=True) + "\n")
                verdicts.flush()
                self.on_verdict(verdict)

            self.runner = Runner(
                self.sighting.deployment,
                self.sighting.profile,
                self.sighting.capabilities,
                self.journal,
                order.settings,
                order.catalog.invariants,
                reached,
            )
            async with self.runner.connected():
                yield self.runner

    async def run(self, beside: Beside | None = None) -> Scorecard:
        """The whole job. Cancellation leaves a card of what was measured before it is raised again.

        ``beside`` is entered with the connected runner and lasts as long as it asks: a progress line, for instance.
        """
        async with self.start() as runner:
            try:
                async with beside(runner) if beside else contextlib.nullcontext():
                    await runner.run(self.selection)
            except asyncio.CancelledError:
                self.finish("interrupted")
                raise
        return self.finish()

    def finish(self, interrupted: str = "") -> Scorecard:
        """Folds what was reached into the card and writes every file of the run folder."""
        card = self.card(interrupted or self.runner.stopped)
        with ThreadPoolExecutor(1) as disk:  # waits for the disk while the card is rendered
            closing = disk.submit(self.journal.close)
            write(card, self.order.folder)
        closing.result()
        return card

    def card(self, interrupted: str = "") -> Scorecard:
        """The card of what was reached so far."""
        runner, sighting = self.runner, self.sighting
        places = {address: place for place, (address, _) in enumerate(self.order.catalog.addresses())}
        verdicts = sorted(runner.verdicts, key=lambda verdict: places.get(verdict.address, len(places)))
        if interrupted and (unasked := len(self.selection) - len(verdicts)):
            interrupted += f"; {unasked} claims were not judged"
        outcome, level, why = judge(verdicts, whole=self.whole, interrupted=interrupted)
        settings = self.order.settings
        facts = (*sighting.deployment.declared(), *sighting.observed, *_assumed(sighting))
        return Scorecard(
            outcome=outcome,
            level=level,
            why=why,
            simulated=sighting.deployment.simulated,
            run=Run(
                id=self.order.folder.name,
                started=self.started.isoformat(timespec="seconds"),
                seed=settings.seed,
                effort=settings.effort,
                tier=settings.tier,
                suites=self.order.globs,
                whole=self.whole,
                command=self.order.command,
                interrupted=interrupted,
            ),
            base_url=sighting.deployment.base_url,
            model=sighting.deployment.model,
            profile=sighting.profile.name,
            recognised_by=sighting.recognised_by,
            subject=sighting.deployment.subject(sighting.observed),
            facts=facts,
            suite_version=self.order.catalog.version,
            verdicts=tuple(verdicts),
            totals=self._totals(verdicts),
            client=self._client_check(),
        )

    def _totals(self, verdicts: Sequence[Verdict]) -> Totals:
        meter = self.runner.meter
        usd = meter.usd(self.runner.deployment)
        return Totals(
            requests=meter.requests,
            attempts=meter.attempts,
            prompt_tokens=meter.prompt_tokens,
            cached_tokens=meter.cached_tokens,
            completion_tokens=meter.completion_tokens,
            reasoning_tokens=meter.reasoning_tokens,
            usd=None if usd is None else round(usd, 4),
            seconds=round(time.perf_counter() - self._clock, 1),
            verdicts=dict(Counter(str(verdict.status) for verdict in verdicts)),
        )

    def _client_check(self) -> ClientCheck:
        wire, seconds = self.runner.wire, time.perf_counter() - self._clock
        lags = sorted(wire.lags) or [0.0]
        p99 = lags[min(len(lags) - 1, round(0.99 * (len(lags) - 1)))]
        first_bytes = self.runner.first_bytes
        typical = 1000 * statistics.median(first_bytes) if first_bytes else 0.0
        return ClientCheck(
            loop_lag_p99_ms=round(p99, 1),
            loop_lag_max_ms=round(lags[-1], 1),
            cpu_share=round((time.process_time() - self._cpu) / max(seconds, 1e-9), 2),
            in_flight=wire.most_in_flight,
            attempts=self.runner.meter.attempts,
            trusted=p99 <= _TRUSTED_LAG * typical,
        )

    def _write_plan(self) -> None:
        """What resuming needs: a second run with the same plan asks the same bytes."""
        order = self.order
        plan = {
            "schema": PLAN_SCHEMA,
            "suite_version": order.catalog.version,
            "base_url": self.sighting.deployment.base_url,
            "model": self.sighting.deployment.model,
            "arguments": order.arguments,
            "globs": order.globs,
            "settings": asdict(order.settings),
            "claims": [address for address, _ in self.selection],
            "command": order.command,
        }
        (order.folder / "plan.json").write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")


def _assumed(sighting: Sighting) -> list[Fact]:
    declared = sighting.deployment.capabilities.model_dump(exclude_none=True)
    known = sighting.capabilities.model_dump(exclude_none=True)
    return [
        Fact(f"capabilities.{name}", str(value).lower(), "assumed")
        for name, value in known.items()
        if name not in declared and name in sighting.profile.capabilities
    ]


# --- the run folder ---------------------------------------------------------------------------------------------------


def new_folder(out: Path | None) -> tuple[Path, str]:
    """A folder for a new run and the run's own nonce. Raises Problem where it cannot be written, or holds a run."""
    nonce = secrets.token_hex(4)
    folder = out or Path("reports") / "runs" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{nonce}"
    if (folder / "plan.json").exists():
        raise Problem(f"{folder} already holds a run; go on with it by --resume {folder}, or choose another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as trouble:
        raise Problem(f"{folder}: cannot be written ({trouble.strerror}); choose another folder with --out") from None
    return folder, nonce


def read_plan(folder: Path, suite_version: str) -> dict[str, Any]:
    """The plan of a run that is to be resumed. Raises Problem where there is none, or the suites have changed."""
    path = folder / "plan.json"
    try:
        plan: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Problem(f"{folder} holds no run (no plan.json); give the folder of a run to --resume") from None
    except (OSError, ValueError) as trouble:
        raise Problem(f"{path}: cannot be read ({trouble}); start a new run") from None
    if plan.get("schema") != PLAN_SCHEMA:
        raise Problem(f"{path}: made by another version of kimi_eval (schema {plan.get('schema')!r}); start a new run")
    if plan["suite_version"] != suite_version:
        raise Problem(
            f"{folder} was made with suites {plan['suite_version']}, these are {suite_version}; "
            "finish it with the version that began it, or start a new run"
        )
    return plan


def write(card: Scorecard, folder: Path) -> None:
    """Writes the card in every format that a run folder holds; each file is replaced whole."""
    from kimi_eval.render import file_name, render

    for format in ("json", "html", "markdown", "junit"):
        name = file_name(format)
        scratch = folder / f".{name}.{os.getpid()}"
        scratch.write_text(render(card, format, directory=str(folder)), encoding="utf-8")
        scratch.replace(folder / name)


def read_card(folder: Path) -> Scorecard:
    """The card of a finished run. Raises Problem where there is none."""
    path = folder / "scorecard.json" if folder.is_dir() else folder
    try:
        return Scorecard.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise Problem(f"{path}: no such scorecard; give the folder of a finished run") from None
    except (OSError, ValueError, KeyError, TypeError) as trouble:
        raise Problem(f"{path}: not a scorecard that this version reads ({trouble})") from None


def find_exchange(folder: Path, id: str) -> Reply:
    """One recorded exchange by its id, the start of its id, or the address of a check (its first exchange).

    Raises Problem.
    """
    if not (folder / "exchanges").is_dir():
        raise Problem(f"{folder} holds no recorded exchanges; give the folder of a run")
    if (folder / "exchanges" / "journal.gz").exists():
        raise Problem(f"{folder} is a run that has not ended; finish it with --resume {folder}")
    files = sorted((folder / "exchanges").glob("*.gz"))
    fitting = [file for file in files if file.name.startswith(id)] if "/" not in id else []
    if not fitting and "/" in id:
        for verdict in read_card(folder).verdicts:
            if id in (verdict.address, verdict.id) and verdict.exchanges:
                fitting = [folder / "exchanges" / f"{verdict.exchanges[0]}.gz"]
                break
    if len(fitting) != 1:
        what = f"{len(fitting)} exchanges begin with" if fitting else "no exchange is called"
        raise Problem(f"{folder}: {what} {id!r}; the scorecard names the exchanges of every verdict")
    try:
        return Reply(load(fitting[0]))
    except (OSError, ValueError) as trouble:
        raise Problem(f"{trouble}") from None
