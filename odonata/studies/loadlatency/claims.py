"""The limits that the structure of a machine sets, beside what the curves show.

Routings that do not adapt are saturated where the first link is full (`limits`): under adversarial
traffic and minimal routing, the cables between two groups (Kim et al., 2008). At low load the
latency is that of the minimal path through an empty network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from odonata.studies.loadlatency.cases import Curve, Sweep, curves, zero_load_ps
from odonata.studies.loadlatency.limits import limit
from odonata.studies.loadlatency.simulation import Point
from odonata.study.contract import Claim
from odonata.study.verdicts import yes_or_no

LOW_LOAD = 0.05
NEAR = 0.05
"""The fraction by which latency at a low load may differ from the formula."""
FULL = 0.03
"""The fraction by which saturation throughput may."""


def claims(asked: Sweep, outcomes: Mapping[str, Point]) -> list[Claim]:
    """Returns two claims for each curve, where there is a formula to compare it with."""
    return [claim for curve in curves(asked, outcomes) for claim in _about(asked, curve)]


def _about(asked: Sweep, curve: Curve) -> Iterator[Claim]:
    bound = limit(asked.network, curve.routing)
    found, holds = curve.throughput, None
    ours = "not settled" if found is None else f"{found:.3f}"
    if found is not None and curve.saturated_at is None:
        ours = f"{ours}, not saturated"
    elif found is not None and bound is not None:
        holds = abs(found / bound.load - 1) <= FULL if bound.exact else found <= bound.load
    facts = {} if found is None else {"throughput": found}
    yield Claim(f"{curve.routing}: saturation throughput", "" if bound is None else str(bound),
                ours, yes_or_no(holds), len(curve.points), facts)  # fmt: skip
    zero, first = zero_load_ps(asked.network), curve.points[0]
    if curve.routing == "minimal" and zero is not None and first.load <= LOW_LOAD:
        mean = first.performance.mean_latency_ns
        yield Claim(f"minimal: latency at load {first.load:g}", f"{zero / 1e3:.0f} ns",
                    f"{mean:.0f} ns", yes_or_no(abs(mean / (zero / 1e3) - 1) <= NEAR),
                    first.performance.measured_packets, {"mean_ns": mean})  # fmt: skip
