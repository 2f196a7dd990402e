"""The traces of RMAP's evaluation."""

import numpy as np
import pytest

from odonata.provisioning.fitted import tables
from odonata.traces.rmap import KINDS, OVERESTIMATE, packed_s, rmap
from odonata.traces.source import Source
from pdes.errors import Refused


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_ask_for_the_nodes_of_their_kind(kind: str) -> None:
    least, most = KINDS[kind]
    for seed in range(1, 6):
        trace = rmap(kind, seed=seed)
        assert len(trace) == 30
        assert trace.machine_nodes == 64
        assert ((trace.nodes >= least) & (trace.nodes <= most) & (trace.nodes % 4 == 0)).all()
        assert trace.submit_us[0] == 0
        assert (np.diff(trace.submit_us) >= 0).all()


def test_requests_exceed_the_packed_time_by_up_to_a_fifth() -> None:
    trace = rmap("random", 300, seed=3)
    for name, nodes, run_us in zip(trace.application, trace.nodes, trace.run_us, strict=True):
        table = tables("cab")[trace.applications[name]]
        assert run_us == pytest.approx(packed_s(table, nodes) * 1e6, abs=1)
    ratio = trace.requested_us / trace.run_us
    assert (ratio >= 1).all()
    assert (ratio <= 1 + OVERESTIMATE + 1e-6).all()
    assert ratio.mean() == pytest.approx(1.1, abs=0.01)


def test_recorded_requests_are_those_of_any_configuration_on_these_nodes() -> None:
    trace = rmap("small", seed=2, requests="recorded")
    for name, nodes, requested in zip(trace.application, trace.nodes, trace.requested_us,
                                      strict=True):  # fmt: skip
        table = tables("cab")[trace.applications[name]]
        some = np.rint(table.seconds[table.nodes == nodes] * 1e6)
        assert requested in some


def test_a_gap_or_a_load_sets_the_rate() -> None:
    slow, fast = (rmap("large", 2000, seed=1, gap_s=gap) for gap in (100.0, 25.0))
    assert slow.span_us / 1999 == pytest.approx(100e6, rel=0.05)
    assert slow.span_us == pytest.approx(4 * fast.span_us, rel=1e-6)
    assert rmap("random", 2000, seed=1, load=0.5).load(64) == pytest.approx(0.5, rel=0.1)


def test_jobs_arrive_early_or_evenly_where_that_is_asked_for() -> None:
    """Of the same process: the mean gap is the same, and the jobs are."""
    places = {}
    for arrivals in ("poisson", "early", "even"):
        some = [rmap("random", seed=seed, arrivals=arrivals) for seed in range(1, 9)]
        submits = np.array([it.submit_us for it in some])
        places[arrivals] = submits / submits[:, -1:]
        assert (some[0].nodes == rmap("random", seed=1).nodes).all()
    even = np.linspace(0, 1, 30)
    assert places["early"].mean() < 0.42 < places["poisson"].mean()
    assert abs(places["even"] - even).max() < 0.15 < abs(places["poisson"] - even).max()


def test_the_model_can_be_named_in_a_source() -> None:
    trace, nodes = Source(model="rmap-large").trace(None, 7)
    assert nodes == 64
    assert (trace.submit_us == rmap("large", seed=7).submit_us).all()
    assert len(Source(model="rmap-small", jobs=5).trace(None, 7)[0]) == 5


@pytest.mark.parametrize(("given", "words"), [
    ({"kind": "large", "arrivals": "late"}, "arrivals = late: one of poisson, early, even"),
    ({"kind": "huge"}, "kind = huge: one of small, large, random"),
    ({"kind": "large", "nodes": 32}, "large jobs ask for 40 to 64 nodes of 32, and SPhot was"),
    ({"kind": "small", "requests": "exact"}, "requests = exact: one of packed, recorded"),
    ({"kind": "small", "gap_s": 0.0}, "gap_s = 0.0: a finite number above 0"),
])  # fmt: skip
def test_what_cannot_be_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(Refused, match=words):
        rmap(**given)  # type: ignore[arg-type]
