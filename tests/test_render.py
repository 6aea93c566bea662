"""Rendering, tested: every format tells the same card, what is broken first, whatever a server wrote into it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import count, groupby, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension

from kimi_eval.deployment import Fact
from kimi_eval.estimate import share
from kimi_eval.render import FORMATS, file_name, render
from kimi_eval.render._text import cut, duration, visible
from kimi_eval.scorecard import ClientCheck, Run, Scorecard, Totals, judge
from kimi_eval.verdict import Contract, Finding, Level, Status, Verdict

SIMULATED = (
    "SIMULATED: this scorecard was made on kimi_eval's own simulated deployment. It says nothing about any model."
)
EVIL = (
    '<script>window.pwned = 1</script><img src="http://evil.example/x.png" onerror="window.pwned = 1">'
    "</code></pre></details>\x1b[2J\x1b]0;title\x07\x00\x9b31m\ud800\u202egnp.exe\u2066\ufeff\ufffe "
    "| a | b | `code` ``` ~~~ [link](javascript:alert(1)) ]]> &amp; {{ 7 * 7 }} @everyone http://evil.example/y "
    "\r\n# heading\r\n"
)
LONG = "lorem ipsum " * 850


# --- the sample card --------------------------------------------------------------------------------------------------


def verdict(id_: str, title: str, status: Status = Status.PASSED, **given: Any) -> Verdict:
    number = next(_numbers)
    values: dict[str, Any] = {
        "variant": "",
        "level": Level.MUST,
        "contract": Contract.CORE,
        "spec": "chat completions, response",
        "exchanges": (f"{number * 7919:012x}",),
        "trials": 1,
        "seconds": 0.4 + number % 7,
    }
    return Verdict(id=id_, title=title, status=status, **(values | given))


_numbers: Iterator[int] = count(1)


def sample() -> Scorecard:
    """A card with verdicts of every kind, hostile text among them."""
    global _numbers
    _numbers = count(1)
    verdicts = [*_failed(), *_unanswered(), *_observed(), *_passed(), *_tasks()]
    outcome, level, why = judge(verdicts, whole=True, interrupted="")
    return Scorecard(
        outcome=outcome,
        level=level,
        why=why,
        simulated=False,
        run=Run(
            id="20261201-050412-3f9c",
            started="2026-12-01T05:04:12Z",
            seed="public",
            effort="high",
            tier="smoke",
            suites=("protocol", "tools", "thinking", "structured", "conversation", "tasks"),
            whole=True,
            command="kimi-eval certify https://m890.example.net/v1 --tier smoke --effort high --seed public",
        ),
        base_url="https://m890.example.net/v1",
        model="kimi-k3.1-pro",
        profile="sglang",
        recognised_by="owned_by 'sglang'",
        subject="sha256:9f2c4e1ab03d77c5e2f8a1d6b94c03e7a5d81f62b3c94e07d1a8f5b2c6e39d40",
        facts=(
            Fact("base_url", "https://m890.example.net/v1", "declared"),
            Fact("engine.name", "sglang", "declared"),
            Fact("engine.version", "0.6.2", "declared"),
            Fact(
                "engine.args",
                "--tp 16 --dp 4 --enable-dp-attention --tool-call-parser kimi_k3 --reasoning-parser kimi_k3 "
                "--speculative-algorithm EAGLE --mem-fraction-static 0.88",
                "declared",
            ),
            Fact("hardware.sku", "M890", "declared"),
            Fact("hardware.count", "64", "declared"),
            Fact("quantisation", "w4a8 | int4 experts", "declared"),
            Fact("models.owned_by", "sglang", "observed"),
            Fact("header.server", EVIL, "observed"),
            Fact("capabilities.logprobs", "true", "assumed"),
        ),
        suite_version="0.1.0",
        verdicts=tuple(verdicts),
        totals=Totals(
            requests=1843,
            attempts=1861,
            prompt_tokens=2_914_882,
            cached_tokens=1_204_096,
            completion_tokens=812_440,
            reasoning_tokens=640_113,
            usd=4.1873,
            seconds=252.4,
            verdicts={"passed": 24, "failed": 9},
        ),
        client=ClientCheck(
            loop_lag_p99_ms=3.1, loop_lag_max_ms=11.8, cpu_share=0.31, in_flight=128, attempts=1861, trusted=True
        ),
    )


def _failed() -> list[Verdict]:
    finish = Finding("choices[0].finish_reason", "'tool_calls'", "'stop'")
    return [
        verdict(
            "tools/tool_choice/required_forces_a_call",
            "With `tool_choice: required` the reply holds at least one tool call.",
            Status.FAILED,
            variant="streamed",
            spec="tool use, tool_choice",
            findings=(
                finish,
                Finding("choices[0].message.tool_calls", "at least one call", "nothing"),
                Finding("choices[0].message.content", "nothing", "'I would call get_weather(city=\"Pärnu\") now.'"),
            ),
            exchanges=tuple(f"{number:012x}" for number in range(0xC0FFEE, 0xC0FFEE + 9)),
            rests_on_model=True,
            trials=3,
            seconds=12.41,
        ),
        verdict(
            "tools/tool_choice/required_forces_a_call",
            "With `tool_choice: required` the reply holds at least one tool call.",
            Status.FAILED,
            variant="whole",
            spec="tool use, tool_choice",
            findings=(finish,),
            rests_on_model=True,
        ),
        verdict(
            "protocol/errors/hostile_text_is_shown",
            "An error names the parameter that is wrong.",
            Status.FAILED,
            findings=(Finding("error.message", "text with 'temperature' in it", EVIL), Finding(EVIL, EVIL, LONG)),
            reason=EVIL,
            observed=EVIL,
        ),
        verdict(
            "protocol/usage/stream_ends_with_usage",
            "The last choice of a stream carries `usage`.",
            Status.FAILED,
            contract=Contract.MOONSHOT,
            findings=(Finding("choices[0].usage", "an object", "None"),),
            waiver="accepted until 2027-01-31, issue 812",
        ),
        verdict(
            "protocol/models/lists_the_model",
            "`GET /models` lists the model under the name that requests use.",
            Status.FAILED,
            level=Level.SHOULD,
            findings=(Finding("data[*].id", "'kimi-k3.1-pro' among them", "['/models/k31']"),),
            exchanges=(),
        ),
    ]


def _unanswered() -> list[Verdict]:
    trace = 'Traceback (most recent call last):\n  File "test_ids.py", line 31, in ids_are_unique\n' + (
        "    first, second = reply.calls\nValueError: not enough values to unpack (expected 2, got 1)\n"
    )
    no_extensions = "The profile `sglang` has no Moonshot extensions."
    return [
        verdict("tools/ids/ids_are_unique", "No two calls share an id.", Status.ERROR, reason=trace),
        verdict(
            "protocol/streaming/first_chunk_has_a_role",
            "The first chunk of a stream carries the role.",
            Status.INCONCLUSIVE,
            variant="64 at once",
            reason="No reply within 300 s (timeout), 3 attempts.",
        ),
        verdict(
            "conversation/history/an_empty_turn_is_read",
            "An empty assistant turn in the history is read.",
            Status.INCONCLUSIVE,
            level=Level.SHOULD,
            reason=f"HTTP 503 after back-off: {EVIL}",
            exchanges=(),
        ),
        *(
            verdict(
                f"protocol/files/{name}",
                title,
                Status.NOT_APPLICABLE,
                variant=variant,
                contract=Contract.MOONSHOT,
                reason=no_extensions,
                exchanges=(),
                trials=0,
                seconds=0.0,
            )
            for name, title in (("upload_returns_an_id", "An upload returns an id."), ("delete_works", "A file goes."))
            for variant in ("streamed", "whole")
        ),
        verdict(
            "conversation/images/an_image_url_is_read",
            "An image as a data URL is read.",
            Status.NOT_APPLICABLE,
            reason="The target declares vision: false.",
            exchanges=(),
        ),
    ]


def _observed() -> list[Verdict]:
    return [
        verdict(
            "thinking/channels/reasoning_field",
            "Reasoning arrives in one field of the message.",
            level=Level.OBSERVE,
            observed="reasoning_content",
        ),
        verdict(
            "protocol/parameters/n_above_one",
            "`n: 2` is answered in a documented way.",
            Status.FAILED,
            level=Level.OBSERVE,
            findings=(Finding("status", "400 or two choices", "200 with one choice"),),
        ),
        verdict("protocol/tokens/unknown_effort", "An unknown effort is answered.", level=Level.OBSERVE, observed=EVIL),
    ]


def _passed() -> list[Verdict]:
    claims = {
        "protocol/streaming/closes_with_done": "A stream closes with `data: [DONE]`.",
        "protocol/streaming/one_id_per_stream": "All chunks of a stream share one id.",
        "protocol/parameters/stop_is_kept": "Text ends before a stop sequence.",
        "protocol/errors/unknown_model_is_404": "A request for an unknown model gets 404.",
        "tools/arguments/arguments_are_json": "Arguments of a call are one JSON object.",
        "tools/parallel/two_calls_in_one_reply": "Two independent questions lead to two calls in one reply.",
        "thinking/pass_back/reasoning_is_accepted": "Reasoning passed back with a tool result is accepted.",
        "structured/json_schema/answer_is_valid": "With a schema, the content is valid against it.",
        "conversation/roles/developer_is_system": "The role `developer` is read as `system`.",
    }
    plain = [verdict(id_, title, variant=variant) for id_, title in claims.items() for variant in ("streamed", "whole")]
    return [
        *plain,
        verdict("protocol/usage/cached_tokens", "Usage counts cached tokens.", contract=Contract.MOONSHOT),
        verdict("tools/dynamic/tool_appears", "A tool sent later is used.", contract=Contract.MOONSHOT, trials=3),
        verdict("structured/json_object/is_an_object", "JSON mode answers one object.", level=Level.SHOULD),
        verdict("protocol/errors/extra_words", EVIL, level=Level.SHOULD, observed="twice <b>bold</b>"),
        verdict("tools/schemas/enum_is_kept", "An enum in a schema is kept.", variant="مرحبا | שלום"),
        verdict("protocol/invariants/ids_are_not_empty", "Every reply has an id.", exchanges=(), trials=1843),
    ]


def _tasks() -> list[Verdict]:
    def outcomes(name: str, **numbers: int) -> tuple[tuple[str, str, str], ...]:
        names = [outcome for outcome, number in numbers.items() for _ in range(number)]
        return tuple((f"tasks/{name}.v1/public/{at}", each, f"{at:012x}") for at, each in enumerate(names))

    return [
        verdict(
            "tasks/reasoning/sums_in_words",
            "A chain of additions in words is worked out.",
            level=Level.OBSERVE,
            estimate=share(186, 200),
            outcomes=outcomes("reasoning", correct=186, wrong=8, unparsed=3, truncated=2, empty=1),
            trials=200,
        ),
        verdict(
            "tasks/tool_use/picks_the_right_tool",
            "The right tool among twenty is called with the right arguments.",
            level=Level.OBSERVE,
            estimate=share(17, 40),
            outcomes=outcomes("tool_use", correct=17, wrong=9, degenerate=6, refused=4, transport=3, surprised=1),
            trials=40,
        ),
        verdict(
            "tasks/retrieval/needle",
            "A sentence in 128k tokens is found.",
            estimate=share(12, 12),
            outcomes=outcomes("retrieval", correct=12),
            trials=12,
        ),
        verdict(
            "tasks/coding/small_functions",
            "A small function passes its tests.",
            Status.INCONCLUSIVE,
            level=Level.SHOULD,
            estimate=share(9, 20),
            reason="20 items cannot tell 0.45 from 0.50.",
            trials=20,
        ),
    ]


def certified() -> Scorecard:
    """A card without a blemish."""
    card = sample()
    verdicts = tuple(each for each in card.verdicts if each.status in (Status.PASSED, Status.NOT_APPLICABLE))
    outcome, level, why = judge(verdicts, whole=True, interrupted="")
    return replace(card, verdicts=verdicts, outcome=outcome, level=level, why=why)


def unmeasured() -> Scorecard:
    """A card of an interrupted run without a failure, made by a client that lagged."""
    card = sample()
    verdicts = tuple(each for each in card.verdicts if each.status is not Status.FAILED)
    outcome, level, why = judge(verdicts, whole=False, interrupted="Ctrl-C")
    run = replace(card.run, whole=False, interrupted="Ctrl-C after 74 of 120 claims")
    client = replace(card.client, trusted=False, loop_lag_p99_ms=412.0, loop_lag_max_ms=2210.5, cpu_share=1.0)
    totals = replace(card.totals, usd=None)
    return replace(
        card, verdicts=verdicts, outcome=outcome, level=level, why=why, run=run, client=client, totals=totals
    )


# --- all formats ------------------------------------------------------------------------------------------------------


@pytest.fixture
def file_of(snapshot: SnapshotAssertion) -> Callable[[str], SnapshotAssertion]:
    """Snapshots as files that open in the program they are made for."""

    def of(extension: str) -> SnapshotAssertion:
        kind = type("Snapshot", (SingleFileSnapshotExtension,), {"file_extension": extension})
        return snapshot.use_extension(kind)

    return of


@pytest.mark.parametrize("make", [sample, certified, unmeasured])
@pytest.mark.parametrize("name", FORMATS)
def test_output_is_the_one_we_looked_at(
    name: str, make: Callable[[], Scorecard], file_of: Callable[[str], SnapshotAssertion]
) -> None:
    card = replace(make(), simulated=make is certified)

    assert render(card, name).encode() == file_of(file_name(name).rpartition(".")[2])


def test_formats_are_found_by_place() -> None:
    assert FORMATS == ("console", "html", "json", "junit", "markdown")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(KeyError):
        render(sample(), "pdf")


def test_importing_the_package_imports_no_library_of_a_format() -> None:
    heavy = "{'jinja2', 'rich', 'tabulate'}"
    program = f"import sys, kimi_eval.render; print(sorted({heavy} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize("name", FORMATS)
def test_a_simulated_card_says_so_before_anything_else(name: str) -> None:
    simulated = replace(certified(), simulated=True)
    text = render(simulated, name)

    match name:
        case "json":
            assert json.loads(text)["simulated"] is True
        case "junit":
            root = ElementTree.fromstring(text)
            assert "SIMULATED" in root.attrib["name"]
            for suite in root:
                assert "SIMULATED" in suite.attrib["name"]
                assert suite.find("properties/property[@name='simulated']").attrib["value"] == SIMULATED  # type: ignore[union-attr]
        case "html":
            assert SIMULATED in html.unescape(text)
            assert text.index("SIMULATED: this") < text.index("<h1>")
            assert "<title>SIMULATED" in text
        case "markdown":
            assert text.startswith(f"**{SIMULATED}**\n")
        case "console":
            assert " ".join(text.split()).startswith(SIMULATED)


@pytest.mark.parametrize("name", sorted({*FORMATS} - {"json", "junit"}))
def test_a_real_card_never_says_simulated(name: str) -> None:
    assert "SIMULATED" not in render(sample(), name)


@pytest.mark.parametrize("name", FORMATS)
def test_no_character_reaches_a_reader_that_hides_reorders_or_moves(name: str) -> None:
    unsafe = {
        character
        for character in render(sample(), name)
        if character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")
    }

    assert unsafe == set()


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_be_written_as_utf8_and_ends_in_one_newline(name: str) -> None:
    text = render(sample(), name)

    assert text.encode("utf-8").decode() == text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("name", ["html", "markdown", "console", "junit"])
def test_what_is_broken_comes_with_the_commands_that_repeat_it(name: str) -> None:
    text = html.unescape(" ".join(render(sample(), name, directory="runs/r1").split()))

    assert "kimi-eval replay runs/r1 000000c0ffee --curl" in text
    assert "kimi-eval explain 'tools/tool_choice/required_forces_a_call[streamed]'" in text


@pytest.mark.parametrize("name", ["html", "markdown", "console"])
def test_sections_stand_in_the_order_in_which_an_engineer_needs_them(name: str) -> None:
    text = render(sample(), name)
    titles = ["Not certified", "Broken", "Surprising", "Our bugs", "Not judged", "Observed", "Not applicable"]
    titles += ["Conformance by area", "Tasks", "Provenance"]
    heads = {
        "html": r"<h[12]>(?:<svg.*?</svg>)?\s*(?:<span>)?{}\b",
        "markdown": r"#+ (?:. )?{}\b",
        "console": r"{} ?[(\n─]|^. {}$",
    }
    found = [re.search(heads[name].replace("{}", title), text, re.MULTILINE | re.DOTALL) for title in titles]
    places = [match.start() if match else -1 for match in found]

    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["html", "markdown", "console", "junit"])
def test_a_claim_that_rests_on_the_model_says_so(name: str) -> None:
    assert "An inattentive model can break this, too." in render(sample(), name)


@pytest.mark.parametrize("name", ["html", "markdown", "console"])
def test_a_client_that_lagged_warns_in_a_plain_sentence(name: str) -> None:
    warning = "Our own client could not keep up, so do not believe any timing in this card"

    assert warning in " ".join(render(unmeasured(), name).split())
    assert warning not in " ".join(render(sample(), name).split())


@pytest.mark.parametrize("name", FORMATS)
def test_a_card_without_verdicts_is_a_card(name: str) -> None:
    outcome, level, why = judge([], whole=True, interrupted="")
    empty = replace(sample(), verdicts=(), facts=(), outcome=outcome, level=level, why=why)

    assert "No MUST claim was answered." in render(empty, name)


@pytest.mark.parametrize("name", FORMATS)
def test_an_outcome_of_a_later_version_is_still_told(name: str) -> None:
    later = render(replace(sample(), outcome="certified_smoke"), name)

    assert "certified smoke" in later.lower().replace("_", " ")


# --- JSON and JUnit ---------------------------------------------------------------------------------------------------


def test_json_is_read_back_unchanged() -> None:
    card = sample()

    assert Scorecard.from_json(json.loads(render(card, "json"))) == card


def test_junit_counts_what_it_holds() -> None:
    root = ElementTree.fromstring(render(sample(), "junit"))
    told = {name: int(root.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    held = {
        "tests": len(root.findall(".//testcase")),
        "failures": len(root.findall(".//failure")),
        "errors": len(root.findall(".//error")),
        "skipped": len(root.findall(".//skipped")),
    }

    assert told == held
    assert told == {"tests": len(sample().verdicts), "failures": 8, "errors": 1, "skipped": 5}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("required_forces_a_call[streamed]", ("failure", "MUST")),
        ("lists_the_model", ("failure", "SHOULD")),
        ("first_chunk_has_a_role[64 at once]", ("failure", "inconclusive")),
        ("ids_are_unique", ("error", "error")),
        ("an_image_url_is_read", ("skipped", "not_applicable")),
        ("n_above_one", None),
        ("closes_with_done[whole]", None),
    ],
)
def test_junit_gives_every_status_its_element(name: str, expected: tuple[str, str] | None) -> None:
    root = ElementTree.fromstring(render(sample(), "junit"))
    case = root.find(f".//testcase[@name='{name}']")
    assert case is not None
    found = [(child.tag, child.attrib["type"]) for child in case if child.tag in ("failure", "error", "skipped")]

    assert found == ([expected] if expected else [])


def test_junit_never_fails_an_observation_that_was_not_answered() -> None:
    silent = [replace(each, status=Status.INCONCLUSIVE, reason="no reply") for each in _observed()]
    root = ElementTree.fromstring(render(replace(sample(), verdicts=tuple(silent)), "junit"))

    assert (root.attrib["failures"], root.attrib["skipped"]) == ("0", "3")


def test_junit_of_a_run_that_ended_early_is_red() -> None:
    passed = [verdict("tools/ids/ids_are_unique", "No two calls share an id.")]
    run = replace(sample().run, interrupted="Ctrl-C")
    root = ElementTree.fromstring(render(replace(sample(), verdicts=tuple(passed), run=run), "junit"))
    error = root.find("testsuite[@name='run']/testcase[@name='reaches_its_end']/error")
    assert error is not None

    assert (root.attrib["errors"], error.attrib["message"]) == ("1", "The run ended early: Ctrl-C")


def test_junit_spells_a_case_as_pytest_does() -> None:
    root = ElementTree.fromstring(render(sample(), "junit"))
    case = root.find(".//testcase[@name='required_forces_a_call[streamed]']")
    assert case is not None

    assert case.attrib["classname"] == "tools.tool_choice"


# --- console ----------------------------------------------------------------------------------------------------------


def test_console_without_colour_has_no_escape() -> None:
    assert "\x1b" not in render(sample(), "console", colour=False)


def test_console_in_colour_has_no_escape_but_for_colours() -> None:
    text = render(sample(), "console", colour=True)

    assert "\x1b[" in text
    assert "\x1b" not in re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_console_says_the_same_with_and_without_colour() -> None:
    coloured = re.sub(r"\x1b\[[0-9;]*m", "", render(sample(), "console", colour=True))

    assert [line.rstrip() for line in coloured.split("\n")] == render(sample(), "console").split("\n")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_console_keeps_to_its_width(width: int) -> None:
    widest = max(cell_len(line) for line in render(sample(), "console", width=width).split("\n"))

    assert widest <= width


def test_console_shows_a_finding_whole() -> None:
    marker = "x" * 350 + "END"
    failed = replace(_failed()[0], findings=(Finding("content", "'a'", marker),))
    text = render(replace(sample(), verdicts=(failed,)), "console", width=80)

    assert marker in "".join(text.split())


# --- Markdown ---------------------------------------------------------------------------------------------------------


def test_markdown_lets_no_markup_of_a_server_through() -> None:
    outside = _without_code(render(sample(), "markdown"))

    assert not re.search(r"(?<!\\)<(?!/?(details|summary|code)>|!-- -->)", outside)
    assert not re.search(r"(?<!\\)\]\((?!exchanges/)", outside)
    assert "@everyone" not in outside
    assert not re.search(r"^# heading", outside, re.MULTILINE)


def test_markdown_tables_have_the_same_number_of_cells_in_every_line() -> None:
    groups = groupby(render(sample(), "markdown").split("\n"), key=lambda line: line.startswith("|"))
    tables = [{line.count("|") for line in lines} for is_table, lines in groups if is_table]

    assert tables == [{8}, {8}, {5}, {4}]


def test_markdown_of_a_thoroughly_broken_deployment_fits_a_job_summary() -> None:
    finding = Finding("choices[0].message.content", "'" + "a" * 398 + "'", "'" + "b" * 398 + "'")
    many = tuple(
        replace(each, id=f"{each.id}_{number}", findings=(finding,) * 5)
        for number in range(400)
        for each in _failed() + _unanswered()
    )

    assert len(render(replace(sample(), verdicts=many), "markdown").encode()) < 2**20  # GitHub's limit for a step


def test_markdown_links_exchanges_only_where_they_stand_beside_it() -> None:
    assert "](exchanges/000000c0ffee.gz)" in render(sample(), "markdown")
    assert "](exchanges/" not in render(sample(), "markdown", links=False)


def _without_code(text: str) -> str:
    text = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


# --- HTML -------------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page in order, with what must not be among them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "link", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_html_is_well_formed_however_hostile_its_values() -> None:
    page = Page(render(sample(), "html"))

    assert (page.wrong, page.open) == ([], [])


def test_html_asks_for_nothing_from_outside_and_runs_nothing() -> None:
    text = render(sample(), "html")
    page = Page(text)
    names = {name for _, attributes in page.elements for name in attributes}
    addresses = {
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action", "data", "poster", "background", "xlink:href")
    }

    assert {tag for tag, _ in page.elements} & {"script", "img", "iframe", "object", "embed", "form", "base"} == set()
    assert [name for name in names if name.startswith("on") or name == "style"] == []
    assert {address for address in addresses if not re.match(r"#|exchanges/|data:,$", address)} == set()
    assert "@import" not in text
    assert "url(" not in text


def test_html_escapes_what_a_server_wrote() -> None:
    text = render(sample(), "html")

    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;window.pwned = 1&lt;/script&gt;" in text
    assert r"\x1b[2J" in text


def test_html_fragments_exist_once_and_lead_somewhere() -> None:
    page = Page(render(sample(), "html"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    fragments = {
        attributes["href"][1:] for _, attributes in page.elements if attributes.get("href", "").startswith("#")
    }

    assert len(ids) == len(set(ids))
    assert fragments - set(ids) == set()


def test_html_headings_descend_one_step_at_a_time() -> None:
    levels = [int(tag[1]) for tag, _ in Page(render(sample(), "html")).elements if re.fullmatch(r"h[1-6]", tag)]

    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))


def test_html_table_headers_say_what_they_head() -> None:
    headers = [attributes for tag, attributes in Page(render(sample(), "html")).elements if tag == "th"]

    assert all(attributes.get("scope") for attributes in headers)


def test_html_links_exchanges_only_when_asked() -> None:
    assert 'href="exchanges/000000c0ffee.gz"' in render(sample(), "html")
    assert 'href="exchanges/' not in render(sample(), "html", links=False)


def test_an_exchange_id_cannot_lead_out_of_its_directory() -> None:
    climbing = replace(_failed()[1], exchanges=("../../etc/passwd",))
    for name in ("html", "markdown"):
        text = render(replace(sample(), verdicts=(climbing,)), name)

        assert "exchanges/..%2F..%2Fetc%2Fpasswd.gz" in text


# --- HTML in a real browser -------------------------------------------------------------------------------------------

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_LOOK = """
const frame = document.querySelector("iframe");
const told = {};
window.addEventListener("error", event => { told.error = event.message; });
frame.addEventListener("load", () => {
  const page = frame.contentDocument, view = frame.contentWindow, found = new Map();
  page.querySelectorAll("details").forEach(each => each.open = true);
  const channel = text => text.match(/[\\d.]+/g).map(Number);
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a)); };
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = text => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
  const behind = element => { if (!element) return [255, 255, 255];
    const own = rgba(view.getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own.slice(0, 3) : over(own, behind(element.parentElement)); };
  const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = colour => { const [r, g, b] = colour.map(v => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b; };
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  told.faint = []; told.texts = 0; told.pale = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest(".hidden, style")) continue;
    const style = view.getComputedStyle(element), back = behind(element);
    const fore = over(rgba(element.closest("svg") ? style.fill : style.color), back);
    const [low, high] = [light(fore), light(back)].sort((a, b) => a - b);
    const contrast = (high + .05) / (low + .05);
    told.texts += 1; told.pale += light(back) > .5;
    if (contrast < 4.5) told.faint.push([contrast.toFixed(2), element.tagName, walker.currentNode.data.slice(0, 40)]);
  }
  told.width = page.documentElement.clientWidth;
  told.scrolled = page.documentElement.scrollWidth;
  told.beyond = [...page.querySelectorAll("body *")].filter(each => !each.closest(".scroll, .hidden, .skip") &&
    each.getBoundingClientRect().right > told.width + 1).map(each => each.tagName + "." + each.className);
  told.requests = view.performance.getEntriesByType("resource").map(each => each.name);
  told.pwned = view.pwned ?? null;
  document.body.innerHTML = "";
  const out = document.createElement("pre"); out.id = "told"; out.textContent = JSON.stringify(told);
  document.body.append(out);
});
frame.srcdoc = document.getElementById("page").textContent;
"""


@pytest.mark.browser
@pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium on this machine; install the package chromium")
@pytest.mark.parametrize("make", [sample, certified, unmeasured])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_shows_the_page_legibly(
    width: int, dark: bool, make: Callable[[], Scorecard], tmp_path: Path
) -> None:
    told = _look(render(replace(make(), simulated=True), "html"), width, dark, tmp_path)

    assert told["faint"] == []
    assert told["beyond"] == []
    assert told["scrolled"] <= told["width"] <= width
    assert told["requests"] == []
    assert told["pwned"] is None
    assert told["texts"] > 200
    assert (told["pale"] > told["texts"] / 2) is not dark


def _look(page: str, width: int, dark: bool, directory: Path) -> dict[str, Any]:
    """What a browser makes of the page in a frame of that width, every fold open."""
    assert _CHROMIUM is not None
    frame = directory / "frame.html"
    frame.write_text(
        f'<!doctype html><meta charset="utf-8"><textarea hidden id="page">{html.escape(page)}</textarea>'
        f'<iframe style="width:{width}px;height:900px;border:0"></iframe><script>{_LOOK}</script>',
        encoding="utf-8",
    )
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    flags += [f"--user-data-dir={directory / 'profile'}", f"--window-size={width + 40},1000"]
    flags += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=5000", "--dump-dom"]
    shown = subprocess.run(
        [_CHROMIUM, *flags, frame.as_uri()], capture_output=True, text=True, encoding="utf-8", timeout=120, check=True
    )
    told = re.search(r'<pre id="told">(.*?)</pre>', shown.stdout, re.DOTALL)
    assert told is not None, shown.stderr[-2000:]
    return json.loads(html.unescape(told[1]))  # type: ignore[no-any-return]


# --- words and numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0.0 s"),
        (0.84, "0.8 s"),
        (42.2, "42 s"),
        (252.4, "4 min 12 s"),
        (3599.6, "1 h 00 min"),
        (11_000, "3 h 03 min"),
    ],
)
def test_durations_read_naturally(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_what_cannot_be_seen_is_escaped_and_the_rest_is_kept() -> None:
    assert visible("a\x1b[31mb\u202ec\ud800 – 你好 مرحبا 👍\n\t") == r"a\x1b[31mb\u202ec\ud800 – 你好 مرحبا 👍" + "\n\t"


def test_a_cut_text_says_how_long_it_was() -> None:
    assert cut("a" * 500 + "b" * 500, 10) == "aaaaa … bbbbb (1,000 characters)"
