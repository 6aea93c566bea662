"""Command line: one of the two doors to the catalog, the runner and the scorecard."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kimi_eval import __version__
from kimi_eval.problem import NOT_MEASURED, OUR_BUG, Problem

if TYPE_CHECKING:
    from kimi_eval.catalog import Catalog
    from kimi_eval.certify import Order
    from kimi_eval.deployment import Deployment
    from kimi_eval.runner import Runner
    from kimi_eval.scorecard import Scorecard

_TIERS = ("smoke", "quick", "standard", "full")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kimi-eval")
def cli() -> None:
    """Does this deployment of Kimi K3.1 Pro really work, and is it as good as the reference?

    \b
    kimi-eval certify                        the main job, on the embedded simulated deployment
    kimi-eval certify https://HOST/v1        the same on yours; the key comes from $KIMI_API_KEY
    kimi-eval certify targets/NAME.yaml      the same, with everything declared about it
    kimi-eval plan https://HOST/v1           what that would ask and cost, without asking it
    kimi-eval explain CHECK                  what a check claims, and the request that shows it

    Exit codes: 0 certified or passed, 1 a claim failed, 2 usage, 3 our bug, 4 not measured.
    """


def _shared(function: Callable[..., None]) -> Callable[..., None]:
    """The flags that certify and plan share with pytest."""
    options = [
        click.argument("target", required=False),
        click.option("--at", metavar="URL", help="The address, in place of the one in the target file."),
        click.option("--model", help="Model id to ask for.  [default: kimi-k3.1-pro, or the only one served]"),
        click.option("--suite", "suites", multiple=True, metavar="GLOB", help="Ask only these checks; repeatable."),
        click.option("--tier", type=click.Choice(_TIERS), default="quick", show_default=True, help="Items per task."),
        click.option(
            "--effort",
            type=click.Choice(["low", "high", "max"]),
            default="low",
            show_default=True,
            help="Reasoning effort of every request that does not ask for another.",
        ),
        click.option("--profile", help="The engine's dialect, in place of detecting it."),
        click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Sent along; never stored."),
        click.option("--seed", default="public", show_default=True, help="What the task items are drawn from."),
        click.option("--concurrency", type=click.IntRange(1), default=64, show_default=True, help="Most in flight."),
        click.option("--budget-tokens", type=click.IntRange(1), help="Stop asking after that many tokens."),
        click.option("--budget-usd", type=click.FloatRange(0, min_open=True), help="The same in dollars."),
        click.option("--max-minutes", type=click.FloatRange(0, min_open=True), help="The same in minutes."),
        click.option("--fault", metavar="NAME", help="Embedded deployment only: bend it with that fault."),
        click.option("--variant", type=click.Choice(["a", "b"]), default="a", help="Embedded deployment only."),
        click.option("--accuracy", type=click.FloatRange(0, 1), default=1.0, help="Embedded deployment only."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON in place of text."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@cli.command()
@_shared
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run.  [default: reports/runs/ID]")
@click.option("--resume", type=click.Path(path_type=Path), metavar="DIR", help="Go on with an unfinished run.")
@click.option("--plan", "plan_only", is_flag=True, help="Say what would be asked and what it costs, and stop.")
def certify(out: Path | None, resume: Path | None, plan_only: bool, **given: Any) -> None:
    """Measure a deployment and write its scorecard.

    TARGET is a URL such as https://HOST/v1 or a target file. Without it the embedded simulated deployment is measured,
    which shows what a run looks like and needs no network.

    \b
    kimi-eval certify http://127.0.0.1:8000/v1 --model kimi-k3.1-pro
    kimi-eval certify targets/vllm-h200.yaml --suite tools --suite 'protocol/streaming*'
    kimi-eval certify --resume reports/runs/20261201-101500-1a2b3c4d
    """
    if plan_only:
        _plan(given)
        return
    from kimi_eval import catalog as catalogs
    from kimi_eval.certify import new_folder, read_plan

    catalog = catalogs.load()
    if resume is not None:
        if out is not None:
            raise Problem("--resume goes on in the folder of the run; leave --out away")
        plan = read_plan(resume, catalog.version)
        folder, nonce = resume, plan["settings"]["nonce"]
        given = {**given, **as_planned(plan, given)}
    else:
        catalog.select(given["suites"])  # a wrong name is told before anything is started
        folder, nonce = new_folder(out)
    with target_of(given, catalog) as (deployment, model_given):
        order = order_of(given, catalog, deployment, folder, nonce, model_given)
        card = _run(order)
    _show(card, folder, as_json=given["as_json"])
    sys.exit(card.exit_code)


_OF_THE_TARGET = ("target", "at", "profile", "fault", "variant", "accuracy")


def as_planned(plan: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The flags of the first run, so that resuming asks the same bytes. Budgets and concurrency may be changed.

    The target is that of the first run unless one is given; extra headers are secret and must be given again.
    """
    settings = plan["settings"]
    same_target = {} if given["target"] else plan["arguments"]
    return same_target | {
        "suites": tuple(plan["globs"]),
        "seed": settings["seed"],
        "tier": settings["tier"],
        "effort": settings["effort"],
        "model": plan["model"],
    }


@cli.command()
@_shared
def plan(**given: Any) -> None:
    """Say what certify would ask and cost, without asking the deployment anything.

    The selected checks are rehearsed on the embedded simulated deployment, so requests and prompt sizes are counted,
    not guessed. Answers of the real model are longer: the table says by what assumption.
    """
    _plan(given)


def _plan(given: dict[str, Any]) -> None:
    import asyncio
    import json

    from kimi_eval import catalog as catalogs
    from kimi_eval.deployment import from_url
    from kimi_eval.embedded import simulated
    from kimi_eval.plan import rehearse, table

    catalog = catalogs.load()
    catalog.select(given["suites"])
    with contextlib.ExitStack() as stack:
        if given["target"]:
            deployment, _ = stack.enter_context(target_of(given, catalog))
        else:
            deployment = None
        server = stack.enter_context(simulated(catalog, seed=given["seed"]))
        order = order_of(given, catalog, from_url(server.base_url), Path(), "plan", False)
        estimate = asyncio.run(rehearse(order, deployment))
    click.echo(json.dumps(estimate.to_json(), indent=1) if given["as_json"] else table(estimate))


@contextlib.contextmanager
def target_of(given: dict[str, Any], catalog: Catalog) -> Iterator[tuple[Deployment, bool]]:
    """The deployment that the arguments name, and whether they name its model."""
    from kimi_eval import profile as profiles
    from kimi_eval.deployment import from_file, from_url, parse_header
    from kimi_eval.embedded import embedded

    target, bent = given["target"], given["fault"] or given["variant"] != "a" or given["accuracy"] != 1.0
    if target and bent:
        raise Problem("--fault, --variant and --accuracy bend the embedded deployment; leave TARGET away")
    headers = dict(parse_header(text) for text in given["headers"])
    if given["profile"]:
        profiles.named(given["profile"])
    more = {"model": given["model"], "profile": given["profile"]}
    if not target:
        with embedded(
            seed=given["seed"],
            variant=given["variant"],
            fault=given["fault"],
            accuracy=given["accuracy"],
        ) as deployment:
            yield deployment.model_copy(update={k: v for k, v in more.items() if v}), bool(given["model"])
        return
    if "://" in target:
        yield from_url(target, headers=headers or None, **more), bool(given["model"])
        return
    declared = from_file(Path(target))
    if given["at"]:
        more["base_url"] = from_url(given["at"]).base_url
    update = {name: value for name, value in more.items() if value}
    if headers:
        update["headers"] = {**declared.headers, **headers}
    if declared.profile:
        profiles.named(declared.profile)
    named = bool(given["model"]) or "model" in declared.model_fields_set
    yield declared.model_copy(update=update), named


def order_of(
    given: dict[str, Any], catalog: Catalog, deployment: Deployment, folder: Path, nonce: str, model_given: bool
) -> Order:
    from kimi_eval.catalog import TIERS
    from kimi_eval.certify import Order
    from kimi_eval.runner import Budget, Settings

    minutes = given["max_minutes"]
    settings = Settings(
        effort=given["effort"],
        seed=given["seed"],
        nonce=nonce,
        tier=given["tier"],
        items=TIERS[given["tier"]],
        concurrency=given["concurrency"],
        budget=Budget(given["budget_tokens"], given["budget_usd"], minutes * 60 if minutes else None),
    )
    arguments = {name: given[name] for name in _OF_THE_TARGET}
    globs = tuple(given["suites"])
    return Order(deployment, catalog, globs, settings, folder, model_given, arguments, _command(given))


def _command(given: dict[str, Any]) -> str:
    """The command that repeats the run, without anything secret in it."""
    words = ["kimi-eval", "certify", *([given["target"]] if given["target"] else [])]
    defaults = {"tier": "quick", "effort": "low", "seed": "public", "variant": "a"}
    for name in ("at", "model", "profile", "tier", "effort", "seed", "fault", "variant"):
        if given[name] and given[name] != defaults.get(name):
            words += [f"--{name}", given[name]]
    if given["accuracy"] != 1.0:
        words += ["--accuracy", f"{given['accuracy']:g}"]
    for glob in given["suites"]:
        words += ["--suite", f"'{glob}'" if set(glob) & set("*[?") else glob]
    return " ".join(words)


def _run(order: Order) -> Scorecard:
    import asyncio

    from kimi_eval.certify import Certification
    from kimi_eval.progress import Progress

    selection = order.selection()
    progress = Progress(len(selection))
    certification = Certification(order, progress.reached, selection)

    def beside(runner: Runner) -> contextlib.AbstractAsyncContextManager[None]:
        _announce(certification)
        return progress.shown(runner)

    async def measured() -> Scorecard:
        import signal

        main = asyncio.current_task()
        assert main is not None
        with contextlib.suppress(NotImplementedError):  # not on Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, main.cancel)
        return await certification.run(beside)

    try:
        return asyncio.run(measured())
    except (KeyboardInterrupt, asyncio.CancelledError):
        kept = f"; everything measured is kept, go on with: {order.command} --resume {order.folder}"
        raise Problem(f"interrupted{kept}", exit_code=NOT_MEASURED) from None


def _announce(certification: Any) -> None:
    sighting = certification.sighting
    where = "the embedded simulated deployment" if sighting.deployment.simulated else sighting.deployment.base_url
    click.echo(
        f"{sighting.deployment.model} at {where}, profile {sighting.profile.name} (by {sighting.recognised_by}; "
        f"--profile overrides), {len(certification.selection)} claims, results in {certification.order.folder}",
        err=True,
    )


def _show(card: Scorecard, folder: Path, *, as_json: bool) -> None:
    import shutil

    from kimi_eval.render import render

    if as_json:
        click.echo(render(card, "json"), nl=False)
        return
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = min(110, shutil.get_terminal_size((100, 24)).columns)
    click.echo(render(card, "console", colour=colour, width=width, directory=str(folder)), nl=False, color=colour)
    click.echo(f"\nScorecard: {folder / 'scorecard.html'}  (also .json, .md and junit.xml beside it)")


@cli.command("list")
@click.option("--suite", "suites", multiple=True, metavar="GLOB", help="Only these; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of text.")
def list_(suites: tuple[str, ...], as_json: bool) -> None:
    """List every check, invariant and task with its level and claim."""
    import json

    from tabulate import tabulate

    from kimi_eval import catalog as catalogs
    from kimi_eval.explain import described

    catalog = catalogs.load()
    claims = list(dict.fromkeys(claim for _, claim in catalog.select(suites)))
    if as_json:
        click.echo(json.dumps([described(claim) for claim in claims], indent=1))
        return
    rows = [(claim.id, claim.level, claim.contract, claim.title) for claim in claims]
    click.echo(tabulate(rows, headers=["id", "level", "contract", "claim"], maxcolwidths=[None, None, None, 70]))
    click.echo(f"\n{len(claims)} claims, suites {catalog.version}; `kimi-eval explain ID` tells more of each.")


@cli.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of text.")
def explain(id: str, as_json: bool) -> None:
    """Tell what a check claims, by which source, with which request, and which faults it notices."""
    import json

    from kimi_eval import catalog as catalogs
    from kimi_eval.explain import described, told

    catalog = catalogs.load()
    claim = catalog.find(id)
    click.echo(json.dumps(described(claim), indent=1) if as_json else told(claim, catalog))


@cli.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("id")
@click.option("--curl", is_flag=True, help="Print the command that sends it, and send nothing.")
@click.option("--target", help="Send it there in place of where it was sent: a URL or a target file.")
def replay(run: Path, id: str, curl: bool, target: str | None) -> None:
    """Send a recorded request again and show what differs, or print it as a curl command.

    ID is an exchange id, its first digits, or the address of a check. The key is read from $KIMI_API_KEY.
    """
    from kimi_eval.certify import find_exchange
    from kimi_eval.deployment import from_file, from_url
    from kimi_eval.replay import as_curl, sent_again

    recorded = find_exchange(run, id)
    if curl:
        click.echo(as_curl(recorded))
        return
    if target and "://" not in target:
        deployment = from_file(Path(target))
    else:
        deployment = from_url(target or recorded.exchange.url.removesuffix("/models").removesuffix("/chat/completions"))
    click.echo(sent_again(recorded, deployment))


@cli.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--format", "format_", default="console", show_default=True, help="console, html, markdown, junit, json.")
def render(run: Path, format_: str) -> None:
    """Print the scorecard of a run in another format."""
    from kimi_eval.certify import read_card
    from kimi_eval.render import FORMATS
    from kimi_eval.render import render as rendered

    if format_ not in FORMATS:
        raise Problem(f"there is no format {format_!r}; there are {', '.join(FORMATS)}")
    options: dict[str, Any] = {"colour": sys.stdout.isatty(), "width": 100} if format_ == "console" else {}
    click.echo(rendered(read_card(run), format_, directory=str(run), **options), nl=False)


@cli.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen.  [default: any free port]")
@click.option("--fault", metavar="NAME", help="Bend it with that fault.")
@click.option("--variant", type=click.Choice(["a", "b"]), default="a", show_default=True, help="Which clean dialect.")
@click.option("--accuracy", type=click.FloatRange(0, 1), default=1.0, show_default=True, help="Task items right.")
@click.option("--seed", default="public", show_default=True, help="The seed of the items that it knows.")
@click.option("--until-input-ends", is_flag=True, hidden=True, help="Stop when standard input closes.")
@click.option("--list-faults", is_flag=True, help="List the faults and the checks that notice each.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of text.")
def simulate(
    port: int,
    fault: str | None,
    variant: str,
    accuracy: float,
    seed: str,
    until_input_ends: bool,
    list_faults: bool,
    as_json: bool,
) -> None:
    """Serve the simulated deployment on loopback until Ctrl-C, or list its faults."""
    from kimi_eval.explain import faults_json, faults_table

    if list_faults:
        click.echo(faults_json() if as_json else faults_table())
        return
    from kimi_eval import catalog as catalogs
    from kimi_eval.embedded import simulated

    server = simulated(catalogs.load(), seed=seed, variant=variant, fault=fault, accuracy=accuracy, port=port)
    try:
        server.start()
    except OSError as trouble:
        raise Problem(f"port {port} cannot be listened on ({trouble.strerror}); choose another --port") from None
    click.echo(f"SIMULATED deployment at {server.base_url}" + (f", bent by {fault}" if fault else ""))
    sys.stdout.flush()
    if until_input_ends:
        sys.stdin.read()
        server.stop()
    else:
        server.serve_forever()


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell: eval "$(kimi-eval completion bash)"."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "kimi-eval", "_KIMI_EVAL_COMPLETE").source())


def main() -> None:
    """Runs the command line; a Problem is one sentence on stderr, our own bug a traceback and exit code 3."""
    try:
        cli.main(prog_name="kimi-eval", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(NOT_MEASURED)
    except click.ClickException as usage:
        usage.show()
        sys.exit(2)
    except Problem as problem:
        click.echo(f"kimi-eval: {problem}", err=True)
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception:
        import traceback

        traceback.print_exc()
        click.echo("kimi-eval: this is a bug of ours; please report it with the lines above", err=True)
        sys.exit(OUR_BUG)
