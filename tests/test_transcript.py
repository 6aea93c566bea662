"""Exchange and Journal: lossless to and from disk, whatever was sent and wherever a kill struck."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_eval.journal import Journal
from kimi_eval.transcript import Exchange, Failure, Lane, decode, encode, exchange_id, without_secrets

TEXT = st.text(max_size=30)
HEADERS = st.lists(st.tuples(TEXT, TEXT), max_size=4).map(tuple)
CHUNKS = st.lists(st.tuples(st.integers(0, 10**9).map(lambda n: n / 1_000_000), st.binary(max_size=50)), max_size=6)
EXCHANGES = st.builds(
    Exchange,
    id=st.text("0123456789abcdef", min_size=12, max_size=12),
    case=TEXT,
    lane=st.sampled_from(Lane),
    method=st.sampled_from(["GET", "POST"]),
    url=TEXT,
    request_headers=HEADERS,
    body=st.binary(max_size=100),
    attempt=st.integers(1, 9),
    hostile=st.booleans(),
    started=st.integers(0, 2**33).map(float),
    status=st.none() | st.integers(100, 599),
    headers=HEADERS,
    chunks=CHUNKS,
    seconds=st.integers(0, 10**9).map(lambda n: n / 1_000_000),
    failure=st.sampled_from(Failure),
    failure_text=TEXT,
    cut_by_us=st.booleans(),
    lingered=st.booleans(),
)


@given(EXCHANGES)
def test_an_exchange_survives_the_disk(exchange: Exchange) -> None:
    assert decode(encode(exchange)) == exchange


@given(EXCHANGES, st.data())
def test_damage_is_told_and_never_read(exchange: Exchange, data: st.DataObject) -> None:
    whole = encode(exchange)
    cut = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(ValueError, match="recorded"):
        decode(whole[:cut])


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_a_secret_is_overwritten_also_where_a_read_cuts_it(around: bytes, cuts: list[int]) -> None:
    secret = b"sk-canary-secret"
    raw = around + secret + around
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    chunks = [(float(start), raw[start:end]) for start, end in itertools.pairwise(places)]
    cleaned = without_secrets(chunks, [secret])
    joined = b"".join(data for _, data in cleaned)

    assert secret not in joined
    assert [(seconds, len(data)) for seconds, data in cleaned] == [(seconds, len(data)) for seconds, data in chunks]


def made(number: int, size: int = 10) -> Exchange:
    id = exchange_id(f"case {number}", b"body", 1, 1)
    exchange = Exchange(id, f"case {number}", Lane.BULK, "POST", "http://h/v1", (), b"body", status=200)
    exchange.chunks = [(0.25, bytes([number % 256]) * size)]
    return exchange


def test_an_id_is_of_the_content(tmp_path: Path) -> None:
    assert exchange_id("a", b"x", 1, 1) == exchange_id("a", b"x", 1, 1)
    assert len({exchange_id(c, b, o, a) for c in "ab" for b in (b"x", b"y") for o in (1, 2) for a in (1, 2)}) == 16


def test_a_journal_gives_back_what_was_added_during_the_run_and_after_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    everything = [made(number) for number in range(20)]
    for exchange in everything:
        journal.add(exchange)

    assert [journal.get(exchange.id) for exchange in everything] == everything

    journal.close()

    assert not (tmp_path / "journal.gz").exists()
    assert [Journal(tmp_path).get(exchange.id) for exchange in everything] == everything


@pytest.mark.parametrize("lost", [1, 7, 30])
def test_a_journal_that_was_cut_keeps_every_whole_exchange(lost: int, tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    everything = [made(number, size=100) for number in range(10)]
    for exchange in everything:
        journal.add(exchange)
    path = tmp_path / "journal.gz"
    path.write_bytes(path.read_bytes()[:-lost])
    again = Journal(tmp_path)

    assert [again.get(exchange.id) for exchange in everything[:-1]] == everything[:-1]
    assert again.get(everything[-1].id) is None

    again.add(everything[-1])

    assert Journal(tmp_path).get(everything[-1].id) == everything[-1]


def test_a_journal_may_be_closed_twice_and_takes_nothing_afterwards(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.add(made(1))
    journal.close()
    journal.close()
    journal.add(made(2))

    assert [path.name for path in tmp_path.iterdir()] == [f"{made(1).id}.gz"]


def test_a_later_exchange_takes_the_place_of_an_earlier(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    first, second = made(1), made(1, size=50)
    journal.add(first)
    journal.close()
    journal = Journal(tmp_path)
    journal.add(second)

    assert journal.get(first.id) == second
