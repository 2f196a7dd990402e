"""The limits that the structure of a machine sets, beside what the curves show.

Under adversarial traffic all a·p nodes of a group send to one other group, so minimal routing is
saturated where the cables between two groups are full (Kim et al., 2008). At low load the latency
is that of the minimal path through an empty network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from odonata.studies.loadlatency.cases import Curve, Sweep, curves, zero_load_ps
from odonata.studies.loadlatency.simulation import Point, traffic_of
from odonata.study.contract import Claim

LOW_LOAD = 0.05
NEAR = 0.05
"""The fraction by which throughput, or latency at a low load, may differ from the formula."""


def claims(asked: Sweep, outcomes: Mapping[str, Point]) -> list[Claim]:
    """Returns two claims for each curve, where there is a formula to compare it with."""
    return [claim for curve in curves(asked, outcomes) for claim in _about(asked, curve)]


def _about(asked: Sweep, curve: Curve) -> Iterator[Claim]:
    bound = _full_cables(asked) if curve.routing == "minimal" else None
    ours, holds = f"{curve.throughput:.3f}", None
    if curve.saturated_at is None:
        ours = f"{ours}, not saturated"
    elif bound is not None:
        holds = abs(curve.throughput / bound - 1) <= NEAR
    yield Claim(f"{curve.routing}: saturation throughput", "" if bound is None else f"{bound:.3f}",
                ours, holds, len(curve.points), {"throughput": curve.throughput})  # fmt: skip
    zero, first = zero_load_ps(asked.network), curve.points[0]
    if curve.routing == "minimal" and zero is not None and first.load <= LOW_LOAD:
        mean = first.performance.mean_latency_ns
        yield Claim(f"minimal: latency at load {first.load:g}", f"{zero / 1e3:.0f} ns",
                    f"{mean:.0f} ns", abs(mean / (zero / 1e3) - 1) <= NEAR,
                    first.performance.measured_packets, {"mean_ns": mean})  # fmt: skip


def _full_cables(asked: Sweep) -> float | None:
    """Returns the load at which the cables between two groups are full; None where the traffic does
    not all go from one group to one other."""
    m = asked.network.machine
    if traffic_of(asked.network).pattern != "adversarial":
        return None
    group = m.routers * m.nodes * m.terminal.bandwidth
    return min(1.0, m.copies * m.global_.bandwidth / group)
