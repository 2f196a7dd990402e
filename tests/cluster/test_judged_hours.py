"""What `judge` says of a trial is what the market of a run says of the hour that it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from odonata.cluster.model import Cluster
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.results.market_memory import simulate_market
from odonata.traces.mix import MIXES, mix
from odonata.traces.types import Types
from pdes.transport import Serial
from policies.bidding.judging import judge
from policies.views import Bid, Trial

PS = 10**12


@pytest.mark.parametrize(
    ("bid", "settings", "interval_s"),
    [(Bid(9000.0, 2000.0), {}, 1),
     (Bid(9000.0, 2000.0), {"violation": 0.5, "energy_price": 0.2, "error_price": 0.4}, 1),
     (Bid(14000.0, 300.0), {"violation": 0.5, "hour_ps": 1800 * PS, "limit": 0.1}, 2),
     (Bid(8000.0, 3000.0), {"energy_price": -0.1, "late": 0.0, "share": 0.9}, 2),
     (Bid(9000.0, 0.0), {"violation": 0.5}, 1)],
)  # fmt: skip
@pytest.mark.parametrize("standby", [None, "bt.C.16"])
def test_an_hour_is_judged_as_the_market_of_a_run_judges_it(
    bid: Bid, settings: dict[str, Any], interval_s: int, standby: str | None
) -> None:
    how = MIXES["W4"]
    types = Types.of(how.table)
    length = settings.get("hour_ps", 3600 * PS) // 10**6
    trace = mix(types, how.types, how.nodes, span_s=length / 1e6)
    offered = (("average", bid.average_w), ("reserve", bid.reserve_w))
    model = Cluster(
        trace, how.nodes, power=Power("aqa", (), types=types, interval_ps=interval_s * PS),
        market=MarketSettings("fixed", offered, signal="synthetic", standby=standby, **settings),
        until_us=length,
    )  # fmt: skip
    run = simulate_market(model, length, transport=Serial())
    assert run.market is not None
    assert run.market.types is not None
    (hour,) = run.market.by_hour
    seen, names = run.market.tracking, run.market.types.names
    quality = {name: run.market.quality[run.market.types.of_job == at]
               for at, name in enumerate(names)}  # fmt: skip
    quality = {name: it[~np.isnan(it)] for name, it in quality.items()}
    trial = Trial(seen.power_w, seen.target_w, bid.reserve_w, 0, 0, quality)
    found = judge(model.first_market(), bid, trial)
    assert found.cost == pytest.approx(hour.cost)
    assert found.error == pytest.approx(hour.error_mean or 0.0)
    assert found.bad == pytest.approx(hour.bad_share or 0.0)
    assert (found.kept_rule, found.kept_qos) == (hour.tracking_ok, hour.qos_ok)
    late = {it.type: it.late_share for it in hour.types if it.jobs}
    assert found.late == pytest.approx({name: late[name] for name in found.late})
    if found.saving is None:
        assert hour.saving is None or math.isnan(hour.saving)
    elif bid.reserve_w:
        assert found.saving == pytest.approx(hour.saving)
