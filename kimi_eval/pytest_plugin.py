"""pytest plugin: the other door. Every check is an item; the runner works ahead, each item waits for its verdict."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterable
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kimi_eval.claims import Check, Invariant
from kimi_eval.problem import Problem
from kimi_eval.tasks import Task
from kimi_eval.verdict import Status, Verdict

_FLAGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--target", {"metavar": "URL|FILE", "help": "deployment to measure; without it the embedded simulated one"}),
    ("--at", {"metavar": "URL", "help": "the address, in place of the one in the target file"}),
    ("--model", {"help": "model id to ask for"}),
    ("--suite", {"action": "append", "default": [], "metavar": "GLOB", "help": "ask only these checks; repeatable"}),
    ("--tier", {"choices": ("smoke", "quick", "standard", "full"), "default": "quick", "help": "items per task"}),
    ("--effort", {"choices": ("low", "high", "max"), "default": "low", "help": "reasoning effort of every request"}),
    ("--profile", {"help": "the engine's dialect, in place of detecting it"}),
    ("--header", {"action": "append", "default": [], "metavar": "'NAME: VALUE'", "help": "sent along; never stored"}),
    ("--seed", {"default": "public", "help": "what the task items are drawn from"}),
    ("--concurrency", {"type": int, "default": 64, "help": "most requests in flight"}),
    ("--budget-tokens", {"type": int, "help": "stop asking after that many tokens"}),
    ("--budget-usd", {"type": float, "help": "the same in dollars"}),
    ("--max-minutes", {"type": float, "help": "the same in minutes"}),
    ("--fault", {"metavar": "NAME", "help": "embedded deployment only: bend it with that fault"}),
    ("--variant", {"choices": ("a", "b"), "default": "a", "help": "embedded deployment only: which clean dialect"}),
    ("--accuracy", {"type": float, "default": 1.0, "help": "embedded deployment only: share of task items right"}),
    ("--out", {"metavar": "DIR", "help": "folder of the run"}),
    ("--resume", {"metavar": "DIR", "help": "go on with an unfinished run"}),
    ("--plan", {"action": "store_true", "help": "say what would be asked and what it costs, and stop"}),
    ("--serial", {"action": "store_true", "help": "judge one check at a time in the main thread, for a debugger"}),
)
_ENGINE = pytest.StashKey["Engine"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the flags that pytest shares with `kimi-eval certify`."""
    group = parser.getgroup("kimi_eval", "kimi_eval: measure a deployment of Kimi K3.1 Pro")
    for name, how in _FLAGS:
        group.addoption(name, dest="kimi_" + name[2:].replace("-", "_"), **how)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers that select by level and contract."""
    for marker in ("must", "should", "observe"):
        config.addinivalue_line("markers", f"{marker}: claims of level {marker.upper()}")
    config.addinivalue_line("markers", "core: claims of the OpenAI-shaped core")
    config.addinivalue_line("markers", "moonshot: claims of the Moonshot extensions")


class CheckFailed(Exception):
    """Carries a verdict that is not good to pytest's report."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.address)
        self.verdict = verdict


class ClaimItem(pytest.Item):
    """One address of the catalog."""

    def __init__(self, *, claim: Check | Invariant | Task, address: str, **more: Any) -> None:
        super().__init__(**more)
        self.claim = claim
        self.address = address
        self.add_marker(str(claim.level).lower())
        self.add_marker(str(claim.contract))
        self.user_properties += [("level", str(claim.level)), ("spec", claim.spec)]

    def runtest(self) -> None:
        """Waits for the verdict and passes it on in pytest's words."""
        verdict = self.config.stash[_ENGINE].verdict(self.address)
        self.user_properties.append(("exchanges", " ".join(verdict.exchanges)))
        if verdict.status is Status.NOT_APPLICABLE:
            pytest.skip(verdict.reason)
        if verdict.status is not Status.PASSED:
            raise CheckFailed(verdict)
        if verdict.estimate or verdict.observed:
            self.add_report_section("call", "observed", f"{verdict.estimate or ''} {verdict.observed}".strip())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The findings, the exchanges that show them, and how to repeat them, in place of our own traceback."""
        if not isinstance(excinfo.value, CheckFailed):
            return super().repr_failure(excinfo, style)
        verdict, folder = excinfo.value.verdict, self.config.stash[_ENGINE].folder
        lines = [
            f"{verdict.status}: {verdict.title}",
            f"  {verdict.level} · {verdict.address} · source: {verdict.spec}",
        ]
        lines += [f"  {finding}" for finding in verdict.findings]
        if verdict.reason:
            lines.append(f"  {verdict.reason.strip()}")
        if verdict.exchanges:
            lines.append(f"  repeat: kimi-eval replay {folder} {verdict.exchanges[0]} --curl")
        return "\n".join(lines)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the claim stands."""
        return self.path, None, self.address


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[ClaimItem] | None:
    """A module-level check becomes one item for each variant; an invariant or a task becomes one."""
    if not isinstance(obj, (Check, Invariant, Task)):
        return None
    variants = obj.variants if isinstance(obj, Check) else ("",)
    return [
        ClaimItem.from_parent(
            collector,
            name=f"{obj.name}[{variant}]" if variant else obj.name,
            claim=obj,
            address=f"{obj.id}[{variant}]" if variant else obj.id,
        )
        for variant in variants
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps what ``--suite`` names, and puts the invariants last, since they need every exchange of the run."""
    ours = [item for item in items if isinstance(item, ClaimItem)]
    if not ours:
        return
    if globs := config.getoption("kimi_suite"):
        from kimi_eval import catalog

        try:
            wanted = {address for address, _ in catalog.load().select(globs)}
        except Problem as problem:
            raise pytest.UsageError(str(problem)) from None
        dropped = [item for item in ours if item.address not in wanted]
        if dropped:
            config.hook.pytest_deselected(items=dropped)
            items[:] = [item for item in items if item not in dropped]
    items.sort(key=lambda item: isinstance(item, ClaimItem) and _turn(item))


def _turn(item: ClaimItem) -> int:
    if isinstance(item.claim, Invariant):
        return 2
    return int(isinstance(item.claim, Check) and item.claim.alone)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Hands exactly the selected items to the runner, which starts at once."""
    ours = [item for item in session.items if isinstance(item, ClaimItem)]
    config = session.config
    if not ours or config.option.collectonly:
        return
    if getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        raise pytest.UsageError("xdist would ask everything in every worker; leave -n away, --concurrency is the knob")
    try:
        config.stash[_ENGINE] = engine = Engine(config, ours)
        if config.getoption("kimi_plan"):
            engine.planned = engine.plan()
            pytest.exit("only the plan was asked for", returncode=0)
        engine.start()
    except Problem as problem:
        raise pytest.UsageError(str(problem)) from None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stops the runner and writes the scorecard of what was reached."""
    engine = session.config.stash.get(_ENGINE, None)
    if engine is not None:
        engine.stop()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Says the outcome and where the scorecard is."""
    engine = config.stash.get(_ENGINE, None)
    if engine is not None and engine.planned:
        terminalreporter.write_line(engine.planned)
    if engine is None or engine.card is None:
        return
    card = engine.card
    if card.simulated:
        terminalreporter.write_line("SIMULATED: measured on kimi_eval's own simulated deployment.", bold=True)
    terminalreporter.write_line(f"{card.outcome.replace('_', ' ')}: {' '.join(card.why)}")
    terminalreporter.write_line(f"scorecard: {engine.folder / 'scorecard.html'}")


class Engine:
    """The runner in a thread and an event loop of its own, with one future for each item."""

    def __init__(self, config: pytest.Config, items: Iterable[ClaimItem]) -> None:
        from kimi_eval import catalog as catalogs
        from kimi_eval.certify import new_folder, read_plan
        from kimi_eval.cli import as_planned, order_of, target_of

        given = {name.removeprefix("kimi_"): value for name, value in vars(config.option).items() if "kimi_" in name}
        given |= {"suites": tuple(given["suite"]), "headers": given["header"]}
        self.catalog = catalogs.load()
        self.selection = [(item.address, item.claim) for item in items]
        resume = Path(given["resume"]) if given["resume"] else None
        if resume:
            plan = read_plan(resume, self.catalog.version)
            self.folder, nonce = resume, plan["settings"]["nonce"]
            given |= as_planned(plan, given)
        elif given["plan"]:
            self.folder, nonce = Path(), "plan"
        else:
            self.folder, nonce = new_folder(Path(given["out"]) if given["out"] else None)
        self.given = given
        self.card: Any = None
        self.planned = ""
        self.serial = bool(given["serial"])
        self._exit = contextlib.ExitStack()
        deployment, named = self._exit.enter_context(target_of(given, self.catalog))
        self.order = order_of(given, self.catalog, deployment, self.folder, nonce, named)
        self._futures: dict[str, Future[Verdict]] = {address: Future() for address, _ in self.selection}
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def plan(self) -> str:
        """The text that ``--plan`` prints."""
        from kimi_eval.deployment import from_url
        from kimi_eval.embedded import simulated
        from kimi_eval.plan import rehearse, table

        with self._exit, simulated(self.catalog, seed=self.given["seed"]) as server:
            order = replace(self.order, deployment=from_url(server.base_url))
            return table(
                asyncio.run(rehearse(order, self.order.deployment if self.given["target"] else None, self.selection))
            )

    def start(self) -> None:
        """Looks at the deployment, then starts the runner ahead of pytest. Raises Problem."""
        from kimi_eval.certify import Certification

        self.certification = Certification(self.order, self._reached, self.selection)
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work(ready)), name="kimi_eval", daemon=True)
        self._thread.start()
        ready.result()

    async def _work(self, ready: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        try:
            async with self.certification.start() as runner:
                ready.set_result(None)
                try:
                    if self.serial:
                        await asyncio.Event().wait()  # the main thread judges, and writes the card when it stops
                    else:
                        await runner.run(self.selection)
                        self.card = self.certification.finish()
                except asyncio.CancelledError:
                    if not self.serial:
                        self.card = self.certification.finish("interrupted")
        except BaseException as trouble:
            if not ready.done():
                ready.set_exception(trouble)
            elif not isinstance(trouble, asyncio.CancelledError):
                raise
        finally:
            for future in self._futures.values():
                future.cancel()

    def _reached(self, verdict: Verdict) -> None:
        future = self._futures.get(verdict.address)
        if future is not None and not future.done():
            future.set_result(verdict)

    def verdict(self, address: str) -> Verdict:
        """Waits for the verdict of an item. Raises pytest's failure where the run ended without one."""
        if self.serial and not self._futures[address].done():
            self._judge_here(address)
        try:
            return self._futures[address].result()
        except CancelledError:
            pytest.fail("the run ended before this claim was judged", pytrace=False)

    def _judge_here(self, address: str) -> None:
        """One claim in the main thread, where a breakpoint works; its requests still have one loop of their own."""
        runner = self.certification.runner
        claim = dict(self.selection)[address]

        async def judged() -> None:
            async with runner.connected():
                if isinstance(claim, Check):
                    await runner.judge_check(claim, address[len(claim.id) + 1 : -1])
                elif isinstance(claim, Task):
                    await runner.judge_task(claim)
                else:
                    runner.fold_invariants({name for name, _ in self.selection})

        asyncio.run(judged())

    def stop(self) -> None:
        """Ends the runner; what was reached is on disk already, the card is written now."""
        thread, loop, task = self._thread, self._loop, self._task
        if thread and loop and task:
            if thread.is_alive() and self.card is None:
                with contextlib.suppress(RuntimeError):  # the loop has just closed
                    loop.call_soon_threadsafe(task.cancel)
            thread.join(30)
            if self.serial:
                everything = all(future.done() and not future.cancelled() for future in self._futures.values())
                self.card = self.certification.finish("" if everything else "interrupted")
        self._exit.close()
