"""Layers: imports point down only, suites see nothing but the package's face, and `--help` is quick to load."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kimi_eval"

# From the ground up. A module may import from its own layer and from those before it.
LAYERS = {
    "nouns": "problem deployment profile transcript verdict estimate scorecard fault",
    "authoring": "claims tasks expectations chat wire client sse reply limiter",
    "output": "render",
    "process": "certify plan runner catalog preflight invariants embedded explain replay progress journal",
    "entry": "cli pytest_plugin __main__",
}
ORDER = list(LAYERS)
LAYER_OF = {module: layer for layer, modules in LAYERS.items() for module in modules.split()}
SLOW = {"aiohttp", "openai", "pydantic", "jsonschema", "jinja2", "rich", "orjson", "yaml", "tabulate", "pytest"}


def files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.py") if "shipped" not in file.parts)


def place(file: Path) -> str:
    """The first part of a module's name below the package: ``render`` for everything inside it."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, late, for types only, or by `import_module` alike."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports are absolute here"
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield node.lineno, first.value


def inner(file: Path) -> Iterator[tuple[str, str]]:
    """Where a file imports something of this package, and which part of it."""
    for line, name in imports(file):
        top, _, rest = name.partition(".")
        if top == "kimi_eval" and rest != "__version__":
            yield f"{file.relative_to(ROOT)}:{line}", rest.partition(".")[0]


def test_every_module_has_its_layer() -> None:
    found = {place(file) for file in files(PACKAGE)} - {"__init__", "simulator"}

    assert sorted(found - set(LAYER_OF)) == [], "say in LAYERS where it belongs"
    assert sorted(set(LAYER_OF) - found) == [], "in LAYERS, and gone"


def test_imports_point_down_only() -> None:
    upward = []
    for file in files(PACKAGE):
        source = LAYER_OF.get(place(file))
        if source is None:
            continue
        for where, target in inner(file):
            # The simulated deployment stands beside the house; only processes and entries start it.
            layer = "process" if target == "simulator" else LAYER_OF[target]
            if ORDER.index(layer) > ORDER.index(source):
                upward.append(f"{where}: {source} imports {target}, which is {layer}")

    assert upward == []


def test_the_simulator_imports_nouns_and_itself() -> None:
    nouns = {*LAYERS["nouns"].split(), "simulator"}
    other = [
        f"{where}: {target}"
        for file in files(PACKAGE / "simulator")
        for where, target in inner(file)
        if target not in nouns
    ]

    assert other == []


def test_a_renderer_sees_the_card_and_nothing_behind_it() -> None:
    nouns = {*LAYERS["nouns"].split(), "render"}
    other = [
        f"{where}: {target}"
        for file in files(PACKAGE / "render")
        for where, target in inner(file)
        if target not in nouns
    ]

    assert other == []


def test_the_face_of_the_package_shows_authoring_only() -> None:
    from kimi_eval import _HOME

    assert {LAYER_OF[module] for module in _HOME} == {"authoring"}


def test_suites_import_the_face_of_the_package_and_the_standard_library_only() -> None:
    foreign = []
    for file in files(ROOT / "suites"):
        for line, name in imports(file):
            top, _, rest = name.partition(".")
            if top == "kimi_eval" and rest and "." not in rest and rest not in LAYER_OF:
                continue
            if top not in sys.stdlib_module_names:
                foreign.append(f"{file.relative_to(ROOT)}:{line}: {name}")

    assert foreign == []


@pytest.mark.parametrize("words", [["--help"], ["certify", "--help"], ["--version"]], ids=" ".join)
def test_help_loads_nothing_slow(words: list[str]) -> None:
    code = (
        "import sys\nfrom kimi_eval.cli import main\n"
        f"sys.argv = ['kimi-eval', *{words!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('loaded:', *{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = done.stdout.rpartition("loaded:")[2].split()

    assert "click" in loaded
    assert sorted(SLOW & set(loaded)) == []
