"""What the thesis says in its section 2.9, and what came out here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from odonata.results.statistics import Interval, interval
from odonata.studies.bidding import cases
from odonata.studies.bidding.found import (
    SHARE,
    THRESHOLD,
    Measured,
    average,
    both,
    cost,
    difference,
    keeps_qos,
    keeps_rule,
    kept,
    mean,
    off,
    reserve,
    saving,
    worst,
)
from odonata.studies.bidding.simulation import FES, BiddingOutcome
from odonata.study.contract import Claim
from odonata.study.verdicts import Place, above, below, judged, near, percent, placed, shown, watts

PRINTED: Mapping[tuple[str, str], tuple[tuple[float, float], ...]] = {
    ("energy-qare", "fh"): ((7.7, 4.0), (2.2, 3.0), (73.9, 2.2)),
    ("energy-qare", FES): ((18.1, 1.8), (0.2, 4.8), (0.8, 1.0)),
    ("energy-qare", "adaptive"): ((2.0, 5.8), (1.9, 2.6), (0.1, 2.1)),
    ("qoscap", "fh"): ((9.3, 1.5), (18.0, 2.0), (70.4, 1.9)),
    ("qoscap", FES): ((20.3, 1.4), (4.1, 1.9), (2.8, 2.1)),
    ("qoscap", "adaptive"): ((1.0, 1.9), (0.2, 2.0), (0.7, 2.0)),
}
"""Table 2.7: the part of a day that is off the target, in per cent, and the largest mean
degradation of a type; of two days of meggie and one of emmy."""
SAVING = 0.10
"""Printed, of QoSCap with adaptive bids on the first of these days."""
BEST = "qoscap", "adaptive"
PLACES = (
    Place("^meggie: what .* saves$", "Zhang 2.9", "bidding.md#what-came-out"),
    Place("saves$", ""),  # it is printed of one day of meggie
    Place("", "Zhang table 2.7", "bidding.md#what-came-out"),
)


def claims(m: Measured) -> list[Claim]:
    """Returns the claims of the parts that are asked for and that there are all days for."""
    parts = {"table": _table, "busy": _busy, "causes": _causes, "fes": _fes}
    return placed([claim for name in m.asked.parts for claim in parts[name](m)], PLACES)


def named(policy: str, bid: Any) -> str:
    """Returns the name of a combination."""
    return f"{policy} + {'no offer' if bid == cases.NOTHING else bid}"


def _text(days: list[BiddingOutcome]) -> str:
    off_of, worst_of = mean(days, off), mean(days, worst)
    text = f"Q {worst_of.mean:.2f} ± {worst_of.half:.2f}, below 2 on {kept(days, keeps_qos)} days"
    if np.isnan(off_of.mean):
        return text
    return (f"off {percent(off_of)}, below 10 % on {kept(days, keeps_rule)}; {text}; saves "
            f"{percent(mean(days, saving))}")  # fmt: skip


def _rows(m: Measured, workload: cases.Workload) -> Iterator[Claim]:
    """Yields what each combination came to, unjudged."""
    for policy, bid in (*product(cases.POLICIES, cases.BIDS),
                        *((policy, cases.NOTHING) for policy in cases.POLICIES)):  # fmt: skip
        days = m.days(workload, policy, bid)
        if not days:
            continue
        yield shown(f"{workload.name}: {named(policy, bid)}", "", _text(days), mean(days, worst))


def _every(m: Measured, some: tuple[cases.Workload, ...], policy: str,
           bid: Any) -> list[BiddingOutcome]:  # fmt: skip
    """Returns the days of a combination over several workloads; none where some are missing."""
    every = [m.days(workload, policy, bid) for workload in some]
    return [day for days in every for day in days] if all(every) else []


def _table(m: Measured) -> Iterator[Claim]:
    for workload in cases.TABLE:
        yield from _rows(m, workload)
    best = _every(m, cases.TABLE, *BEST)
    if not best:
        return
    part = interval([float(both(day)) for day in best])
    yield judged("qoscap + adaptive keeps both rules", "on 3 of 3 days", f"on {kept(best, both)}",
                 all(map(both, best)), part.mean > 0.5, part)  # fmt: skip
    for policy, bid in product(cases.POLICIES, cases.BIDS):
        days = _every(m, cases.TABLE, policy, bid)
        if (policy, bid) == BEST or not days:
            continue
        fewer = interval([float(both(a)) - float(both(b)) for a, b in zip(best, days, strict=True)])
        yield judged(f"{named(policy, bid)} keeps both on fewer days", "yes",
                     f"on {kept(days, both)}; {percent(fewer)} fewer", above(fewer, 0.0),
                     fewer.mean > 0.0, fewer)  # fmt: skip
    yield from _printed(m)
    for workload in cases.TABLE:
        its = m.days(workload, *BEST)
        it = mean(its, saving)
        yield judged(f"{workload.name}: what qoscap + adaptive saves", f"{SAVING:.0%}",
                     percent(it), near(it, SAVING, 0.005), it.mean > 0.0, it)  # fmt: skip
    yield from _evenly(m)


def _printed(m: Measured) -> Iterator[Claim]:
    """Yields the numbers of table 2.7: the mean of the two days of meggie, and the day of emmy,
    beside ours. In sign only: as far as that, our whole interval is on the same side of the rule's
    limit."""
    for workload, days_of in ((cases.TABLE[0], slice(0, 2)), (cases.TABLE[2], slice(2, 3))):
        for policy, bid in product(cases.POLICIES, cases.BIDS):
            days = m.days(workload, policy, bid)
            if not days:
                continue
            pairs = PRINTED[policy, str(bid)][days_of]
            words = f"{workload.name}: {named(policy, bid)}"
            part, it = float(np.mean([bad for bad, _ in pairs])) / 100, mean(days, off)
            days_text = f", mean of {len(pairs)} days" * (len(pairs) > 1)
            yield judged(f"{words}: off the target", f"{part:.1%}{days_text}", percent(it),
                         near(it, part, 0.0005), _same_side(it, part, SHARE), it)  # fmt: skip
            q, it = float(np.mean([worst_q for _, worst_q in pairs])), mean(days, worst)
            yield judged(f"{words}: Q", f"{q:g}{days_text}", f"{it.mean:.2f} ± {it.half:.2f}",
                         near(it, q, 0.05), _same_side(it, q, THRESHOLD), it)  # fmt: skip


def _same_side(it: Interval, printed: float, limit: float) -> bool:
    return below(it, limit) if printed <= limit else above(it, limit)


def _evenly(m: Measured) -> Iterator[Claim]:
    """Yields what caps come to that are raised by one ratio."""
    for workload in cases.TABLE:
        turns, evenly = m.days(workload, *BEST), m.days(workload, *BEST, turns=False)
        if turns and evenly:
            it = difference(evenly, turns, worst)
            yield shown(f"{workload.name}: Q of caps that are raised by one ratio, less that of "
                        "caps in turn", "", f"{it.mean:+.2f} ± {it.half:.2f}", it)  # fmt: skip


def _busy(m: Measured) -> Iterator[Claim]:
    for workload in cases.BUSY:
        yield from _rows(m, workload)
    best, rival = (_every(m, cases.BUSY, policy, "adaptive")
                   for policy in ("qoscap", "energy-qare"))  # fmt: skip
    if best and rival:
        it = difference(best, rival, worst)
        yield judged("90 % busy: Q of qoscap is below that of energy-qare, both adaptive", "",
                     f"by {-it.mean:.2f} ± {it.half:.2f}", below(it, 0.0), it.mean < 0.0,
                     it)  # fmt: skip


def _fes(m: Measured) -> Iterator[Claim]:
    """Yields what FES comes to that tries each bid in several days."""
    for workload, policy in product(cases.TABLE, cases.POLICIES):
        days = m.days(workload, policy, FES, tried=cases.TRIED)
        if days:
            it, bids = mean(days, worst), f"bids {watts(mean(days, average))}"
            yield shown(f"{workload.name}: {policy} + fes, tried in {cases.TRIED} days", "",
                        f"{bids} and {watts(mean(days, reserve))}; {_text(days)}", it)  # fmt: skip
    for workload in cases.TABLE:
        best = m.days(workload, *BEST)
        days = m.days(workload, "qoscap", FES, tried=cases.TRIED)
        if best and days:
            it = difference(days, best, saving)
            yield shown(f"{workload.name}: what qoscap saves more with that bid than with adaptive "
                        "ones", "", f"{percent(it)} of what the average costs", it)  # fmt: skip
            it = difference(days, best, cost)
            yield shown(f"{workload.name}: what the day costs more with it", "",
                        f"{it.mean:+.1f} ± {it.half:.1f}", it)  # fmt: skip


def _causes(m: Measured) -> Iterator[Claim]:
    """Yields how QoS goes with the load, and with how unevenly jobs come."""
    for workload in cases.CAUSES:
        parts = []
        for policy, bid in ((*BEST,), ("energy-qare", "adaptive"), ("energy-qare", cases.NOTHING)):
            days = m.days(workload, policy, bid)
            if days:
                it = mean(days, worst)
                parts.append(f"{named(policy, bid)} {it.mean:.2f} ± {it.half:.2f} "
                             f"({kept(days, keeps_qos)} days)")  # fmt: skip
        if len(parts) == 3:
            yield Claim(f"{workload.name}: Q", "", "; ".join(parts), None, m.asked.days)
    for load in cases.LOADS:
        ends = [next(it for it in cases.CAUSES if (it.load, it.burst) == (load, burst))
                for burst in (cases.BURSTS[0], cases.BURSTS[-1])]  # fmt: skip
        for policy in cases.POLICIES:
            even, uneven = (m.days(workload, policy, "adaptive") for workload in ends)
            if even and uneven:
                it = difference(uneven, even, worst)
                yield shown(f"{load:.0%}: by how much Q of {policy} + adaptive grows where jobs "
                            f"come in groups of {cases.BURSTS[-1]:g}", "",
                            f"{it.mean:+.2f} ± {it.half:.2f}", it)  # fmt: skip
