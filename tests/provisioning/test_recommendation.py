"""What is recommended is never dominated in its own table, and who is nearly as fast is told so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odonata.provisioning.recommendation import Offer, recommended
from pdes.errors import Refused

OFFERS = st.lists(
    st.tuples(st.floats(0.1, 1e4), st.floats(1.0, 1e9), st.none() | st.floats(1e-6, 1e3)),
    min_size=1, max_size=6,
).map(lambda rows: [Offer(str(at), *row) for at, row in enumerate(rows)])  # fmt: skip


@given(OFFERS, st.sampled_from((0.0, 0.01, 0.3)))
def test_what_is_recommended_is_never_dominated(offers: list[Offer], near: float) -> None:
    found = recommended(offers, near)
    assert found is not None
    by_key = {it.key: it for it in offers}
    best, fastest = by_key[found.buy], by_key[found.fastest]
    assert not any(it.dominates(best) for it in offers)
    assert best.seconds <= fastest.seconds * (1 + near)
    assert fastest.seconds == min(it.seconds for it in offers)
    assert by_key[found.cheapest].cost == min(it.cost for it in offers)
    assert {found.buy, *(it.key for it in found.rivals)} == {*by_key}
    for rival in found.rivals:
        other = by_key[rival.key]
        if rival.dominated:
            assert best.dominates(other)
            assert rival.dearer_per_job >= 0
        # Whoever is faster is so by hardly anything, and dearer.
        assert other.seconds >= best.seconds or (rival.nearly_as_fast and other.cost >= best.cost)


def test_only_the_fastest_is_bought_where_nothing_is_nearly_as_fast() -> None:
    offers = [Offer("a", 19.73, 60.3), Offer("b", 19.75, 56.0), Offer("c", 30.0, 50.0)]
    chosen = {near: recommended(offers, near) for near in (0.0, 0.001, 0.0011, 0.6)}
    assert [it.buy for it in chosen.values() if it] == ["a", "a", "b", "c"]


def test_equals_are_none_the_better_and_none_the_worse() -> None:
    found = recommended([Offer("a", 10.0, 5.0), Offer("b", 10.0, 5.0)])
    assert found is not None
    (rival,) = found.rivals
    assert (rival.longer, rival.dearer, rival.dominated, rival.nearly_as_fast) == (
        0,
        0,
        False,
        True,
    )


def test_a_machine_that_costs_more_and_saves_it_by_the_job_is_not_dominated() -> None:
    found = recommended([Offer("a", 10.0, 5.0, 2.0), Offer("b", 11.0, 6.0, 1.0)])
    assert found is not None
    assert (found.buy, found.cheapest_per_job) == ("a", "b")
    assert not found.rivals[0].dominated


def test_costs_per_job_that_are_known_of_some_only_are_not_compared() -> None:
    found = recommended([Offer("a", 10.0, 5.0, 1e-9), Offer("b", 8.0, 5.0)])
    assert found is not None
    assert found.cheapest_per_job == "b"


def test_without_offers_there_is_no_advice_and_a_share_is_a_share() -> None:
    assert recommended([]) is None
    with pytest.raises(Refused, match="near = 1: a share of the time, from 0 to below 1"):
        recommended([], 1.0)
