"""Papers: what README, CONTRIBUTING and their neighbours say is what the code does."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shlex
import struct
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
import yaml

from kimi_eval import __version__
from kimi_eval import catalog as catalogs
from kimi_eval.cli import cli
from kimi_eval.deployment import from_file
from kimi_eval.embedded import fault_named
from kimi_eval.fault import Fault
from kimi_eval.problem import Problem
from kimi_eval.profile import Profile
from kimi_eval.transcript import Exchange, Failure, Lane, encode
from kimi_eval.verdict import Contract, Level, Status
from tests.running import failed, measured

ROOT = Path(__file__).parent.parent
PAPERS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "fixtures/README.md", "reports/README.md"]
GENERATED = re.compile(r"<!-- generated: (\w+) -->.*?<!-- end -->", re.DOTALL)
# A whole file of an example: the first line says where it belongs.
EXAMPLE = re.compile(r"```(?:python|yaml)\n# (\S+\.(?:py|yaml))\n(.*?)```", re.DOTALL)


def text_of(paper: str) -> str:
    return (ROOT / paper).read_text(encoding="utf-8")


def module_at(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"at_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES = dict(EXAMPLE.findall(text_of("CONTRIBUTING.md")))


# --- generated parts --------------------------------------------------------------------------------------------------


def test_the_generated_parts_are_fresh() -> None:
    done = subprocess.run([sys.executable, "scripts/readme.py", "--check"], cwd=ROOT, check=False)

    assert done.returncode == 0, "run: python scripts/readme.py"


def test_every_part_that_can_be_generated_is_used() -> None:
    assert sorted(GENERATED.findall(text_of("README.md"))) == sorted(module_at(ROOT / "scripts" / "readme.py").PARTS)


# --- commands and links -----------------------------------------------------------------------------------------------


def commands(start: str) -> list[str]:
    """Everything in the papers that begins so, up to the end of its line or code span, without what is generated."""
    found = []
    for paper in PAPERS:
        text = EXAMPLE.sub("", GENERATED.sub("", text_of(paper)))
        for line in re.findall(rf"(?<![\w/-])({start} [^`\n]*)", text):
            found.append(re.split(r" && | \| |\s+#", line)[0].strip())
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("line", commands("kimi-eval"))
def test_a_command_line_of_ours_can_be_parsed(line: str) -> None:
    name, *words = shlex.split(line)[1:]
    context = cli.commands[name].make_context(name, words)

    assert isinstance(context, click.Context)


@pytest.mark.parametrize("line", commands("kimi-eval"))
def test_what_a_command_line_names_exists(line: str) -> None:
    name, *words = shlex.split(line)[1:]
    given = cli.commands[name].make_context(name, words).params
    catalog = catalogs.load()

    target = given.get("target")
    assert not target or "://" in target or (ROOT / target).is_file()
    assert catalog.select(given.get("suites") or ())
    if given.get("fault"):
        assert fault_named(given["fault"])
    if (
        name == "explain"
        and f"suites/{Path(given['id']).parent.parent}/test_{Path(given['id']).parent.name}.py" not in (EXAMPLES)
    ):
        assert catalog.find(given["id"])


def python_lines() -> list[str]:
    return [line for line in commands("python") if not line.startswith(("python -m venv", "python -m pip"))]


@pytest.fixture(scope="module")
def flags_of_pytest() -> set[str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {flat(flag) for flag in re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", done.stdout)}


def flat(flag: str) -> str:
    """``--junitxml`` and ``--junit-xml`` are one flag."""
    return flag.replace("-", "") if flag.startswith("--") else flag


@pytest.mark.parametrize("line", python_lines())
def test_what_a_python_line_runs_exists(line: str, flags_of_pytest: set[str]) -> None:
    for words in (part.split() for part in re.split(r" -- (?:env \S+ )?", line)):
        assert words[0] == "python"
        if words[1] == "-m":
            assert words[2] == "pytest"
            assert {flat(word.partition("=")[0]) for word in words[3:] if word.startswith("-")} <= flags_of_pytest
            paths = [word for word in words[3:] if "/" in word or word == "suites"]
        else:
            paths = [words[1]]
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_there_are_lines_to_look_at() -> None:
    assert len(commands("kimi-eval")) > 15
    assert len(python_lines()) > 5


def test_ci_runs_the_test_command_of_the_readme() -> None:
    (command,) = re.findall(r"^(python -m pip install -U pip && .*)$", text_of("README.md"), re.MULTILINE)

    assert command in text_of(".ci/run").replace(" -q", "")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_relative_link_leads_somewhere(paper: str) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text_of(paper)) if "://" not in link]

    assert [link for link in links if not ((ROOT / paper).parent / link).exists()] == []


def test_the_examples_for_ci_are_yaml() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", text_of("README.md"), re.DOTALL)

    assert [list(yaml.safe_load(block)) for block in blocks] == [["jobs"], ["kimi"]]


def test_the_picture_is_1200_pixels_wide() -> None:
    data = (ROOT / "docs" / "scorecard.png").read_bytes()

    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">I", data[16:20]) == (1200,)


# --- words ------------------------------------------------------------------------------------------------------------


def first_cells(paper: str, head: str) -> list[str]:
    """The code words in the first column of the table that begins with that head."""
    table = text_of(paper).partition(f"| {head} |")[2].partition("\n\n")[0]
    return [word for line in table.splitlines()[2:] for word in re.findall(r"`([^`]+)`", line.split("|")[1])]


def test_the_words_of_a_verdict_are_all_told() -> None:
    assert first_cells("README.md", "word") == [str(status) for status in Status]


def test_levels_and_contracts_are_told() -> None:
    section = text_of("README.md").partition("## How to read a verdict")[2].partition("\n## ")[0]

    assert [word for word in (*Level, *Contract) if f"**{word}**" not in section] == []


def test_the_markers_of_our_tests_are_told() -> None:
    markers = tomllib.loads(text_of("pyproject.toml"))["tool"]["pytest"]["ini_options"]["markers"]

    assert first_cells("CONTRIBUTING.md", "marker") == [marker.partition(":")[0] for marker in markers]


def test_the_head_of_a_recorded_exchange_is_told() -> None:
    head, _, _ = _unpacked(encode(Exchange("x", "case", Lane.BULK, "POST", "http://h/v1", (), b"{}"))).partition(b"\n")

    assert first_cells("reports/README.md", "key of the head") == list(json.loads(head))
    assert [word for word in Failure if word and f"`{word}`" not in text_of("reports/README.md")] == []
    assert [word for word in Lane if f"`{word}`" not in text_of("reports/README.md")] == []


def _unpacked(data: bytes) -> bytes:
    import gzip

    return gzip.decompress(data)


def test_the_changelog_and_the_licence_are_those_of_this_version() -> None:
    assert tomllib.loads(text_of("pyproject.toml"))["project"]["version"] == __version__
    assert __version__ in text_of("CHANGELOG.md")
    # The text that the Apache Software Foundation publishes, to the byte.
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


# --- the worked examples of CONTRIBUTING ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every example in its place."""
    folder = tmp_path_factory.mktemp("house")
    for path, body in EXAMPLES.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body, encoding="utf-8")
    return folder


def test_an_example_of_each_thing_is_there() -> None:
    kinds = ["suites/tools/", "suites/protocol/", "suites/tasks/", "kimi_eval/simulator/faults/", "kimi_eval/profiles/"]
    kinds += ["targets/", "kimi_eval/render/"]

    assert [kind for kind in kinds if not any(path.startswith(kind) for path in EXAMPLES)] == []
    assert [path for path in EXAMPLES if (ROOT / path).exists()] == []


def fault_in(folder: Path) -> Fault:
    values = [vars(module_at(file)).values() for file in (folder / "kimi_eval/simulator/faults").glob("*.py")]
    (found,) = [value for some in values for value in some if isinstance(value, Fault)]
    return found


@pytest.fixture
def our_catalog(laid_out: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[catalogs.Catalog]:
    """The catalog of the examples, in place of the real one."""
    catalog = catalogs.load(laid_out / "suites")
    monkeypatch.setattr(catalogs, "load", lambda: catalog)
    return catalog


@pytest.mark.parametrize("variant", ["a", "b"])
def test_the_example_claims_hold_on_a_clean_deployment(
    our_catalog: catalogs.Catalog, tmp_path: Path, variant: str
) -> None:
    card = measured(tmp_path, variant=variant, items=1)

    assert [len(our_catalog.checks), len(our_catalog.invariants), len(our_catalog.tasks)] == [1, 1, 1]
    assert {verdict.status for verdict in card.verdicts} == {Status.PASSED}
    assert [verdict.estimate.value for verdict in card.verdicts if verdict.estimate] == [1.0]


def test_the_example_fault_is_noticed_by_what_it_names(
    our_catalog: catalogs.Catalog, laid_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = fault_in(laid_out)
    monkeypatch.setattr("tests.running.fault_named", lambda name: fault)

    assert failed(measured(tmp_path, fault=fault.name)) == set(fault.noticed_by)
    with pytest.raises(Problem):
        fault_named(fault.name)


def test_the_example_profile_fits_the_example_target(laid_out: Path, our_catalog: catalogs.Catalog) -> None:
    (profile_file,) = (laid_out / "kimi_eval/profiles").iterdir()
    (target_file,) = (laid_out / "targets").iterdir()
    profile = Profile(profile_file.stem, **yaml.safe_load(profile_file.read_text(encoding="utf-8")))

    assert from_file(target_file).profile == profile.name
    assert [id for id in profile.not_applicable if not our_catalog.find(id)] == []
    assert profile.capabilities.keys() <= type(from_file(target_file).capabilities).model_fields.keys()


def test_the_example_format_renders_a_card(laid_out: Path, tmp_path: Path) -> None:
    (file,) = (laid_out / "kimi_eval/render").iterdir()
    card = measured(tmp_path, globs=("protocol/models",))
    lines = module_at(file).render(card).splitlines()

    assert len(lines) == 1 + len(card.verdicts)
    assert lines[1].startswith("protocol/models/the_model_is_listed,MUST,passed")
