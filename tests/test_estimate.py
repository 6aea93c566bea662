"""Estimate: the Wilson interval against golden values and its laws."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_eval.estimate import share

GOLDEN = Path(__file__).parent.parent.parent / "shared" / "golden" / "stats_golden.json"


@pytest.mark.skipif(not GOLDEN.exists(), reason="the golden values are not beside this checkout")
def test_wilson_agrees_with_the_golden_values() -> None:
    entries = json.loads(GOLDEN.read_text())["entries"]
    wilson = [entry for entry in entries if entry["method"].startswith("Wilson score interval, two-sided 95%")]

    assert wilson
    for entry in wilson:
        estimate = share(entry["inputs"]["successes"], entry["inputs"]["n"])
        assert [estimate.low, estimate.high] == pytest.approx(entry["value"], abs=entry["tol"])


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share(drawn: tuple[int, int]) -> None:
    successes, n = drawn
    estimate = share(successes, n)

    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_mirrored(drawn: tuple[int, int]) -> None:
    successes, n = drawn
    one, other = share(successes, n), share(n - successes, n)

    assert one.low == pytest.approx(1 - other.high, abs=1e-12)


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_what_is_no_share_is_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        share(successes, n)


def test_an_estimate_reads_as_a_rate_with_its_interval() -> None:
    assert str(share(93, 100)) == "0.93 (0.86–0.97, n=100)"
