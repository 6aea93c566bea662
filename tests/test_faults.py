"""Faults: each turns red exactly the checks that it names, and the clean deployment none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kimi_eval import catalog as catalogs
from kimi_eval.claims import Invariant
from kimi_eval.scorecard import CERTIFIED
from kimi_eval.simulator.faults import all_faults
from kimi_eval.verdict import Level, Status, addresses
from tests.running import expected, failed, measured

FAULTS = all_faults()
# After this one no later question can be judged, which is said as inconclusive; no other may leave a claim unjudged.
SPOILS_THE_REST = {"long_prompt_poisons"}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_exactly_the_checks_that_a_fault_names_turn_red(name: str, tmp_path: Path) -> None:
    card = measured(tmp_path, fault=name)

    assert failed(card) == expected(name)
    assert addresses(card.verdicts, Status.ERROR) == []
    if name not in SPOILS_THE_REST:
        assert addresses(card.verdicts, Status.INCONCLUSIVE) == []


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["a", "b"])
@pytest.mark.parametrize("run", range(20))
def test_nothing_turns_red_on_a_clean_deployment(variant: str, run: int, tmp_path: Path) -> None:
    card = measured(tmp_path, variant=variant)

    bad = {str(verdict.status) for verdict in card.verdicts} - {"passed", "not_applicable"}
    assert bad == set(), [v.address for v in card.verdicts if str(v.status) in bad]
    assert (card.outcome, card.exit_code, card.simulated) == (CERTIFIED, 0, True)


def test_there_are_faults_of_many_kinds() -> None:
    assert len(FAULTS) >= 30
    assert len({fault.kind for fault in FAULTS.values()}) >= 6


def test_every_fault_is_noticed() -> None:
    assert [name for name, fault in FAULTS.items() if not fault.noticed_by] == []


def test_every_must_claim_and_every_invariant_has_a_fault() -> None:
    noticed = {name.partition("[")[0] for fault in FAULTS.values() for name in fault.noticed_by}
    wanted = {claim.id for claim in catalogs.load() if isinstance(claim, Invariant) or claim.level is Level.MUST}

    assert sorted(wanted - noticed) == []


def test_every_name_in_a_fault_is_an_address() -> None:
    for name in FAULTS:
        assert expected(name)
