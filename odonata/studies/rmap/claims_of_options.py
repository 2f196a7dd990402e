"""What the study says of readings of naive, and of what the thesis mentions and does not try."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from odonata.studies.rmap import simulation
from odonata.studies.rmap.cases import HIGH_W, QUEUED_S, VARIATION, VARIED
from odonata.studies.rmap.changes import Floats, Measured, of_cases, spread
from odonata.studies.rmap.readings import READINGS
from odonata.study.contract import Claim


def _change(m: Measured, cases: list[simulation.Traced], policy: str, against: str, bound_w: float,
            what: str = "turnaround_s") -> Floats:  # fmt: skip
    ours, theirs = (of_cases(m, cases, simulation.row(it, bound_w), what)
                    for it in (policy, against))  # fmt: skip
    return ours / theirs - 1.0


def _text(values: Floats, found: dict[str, float], name: str) -> str | None:
    """Returns a mean change with its interval, in percent, and writes it down; None: it has no
    values."""
    it = spread(values)
    if not it:
        return None
    found |= {name: it.mean, f"{name} ±": it.it.half, "traces": it.of}
    return f"{100 * it.mean:+.0f} ± {100 * it.it.half:.0f}"


def of_naive(m: Measured) -> Iterator[Claim]:
    """Naive against traditional at the lowest bound and over all bounds, and adaptive, as in the
    study, against naive over all bounds: for each reading, kind of jobs and gap."""
    bounds = [it for it in m.asked.bounds_w if it <= HIGH_W]
    if not bounds:
        return
    for kind, gap_s in (*((it, m.asked.gap_s) for it in m.asked.kinds), ("large", QUEUED_S)):
        if kind in m.asked.kinds:
            cases = [m.asked.read(kind, seed, gap_s) for seed in m.asked.chosen_seeds]
            for policy in (simulation.NAIVE, *(simulation.READ + name for name in READINGS)):
                values: dict[str, float] = {}
                low = _change(m, cases, policy, simulation.TRADITIONAL, m.asked.low_w)
                every = np.mean([_change(m, cases, policy, simulation.TRADITIONAL, it)
                                 for it in bounds], axis=0)  # fmt: skip
                other = np.mean([_change(m, cases, simulation.ADAPTIVE_0, policy, it)
                                 for it in bounds], axis=0)  # fmt: skip
                texts = [_text(low, values, "lowest bound"), _text(every, values, "all bounds"),
                         _text(other, values, "adaptive against it")]  # fmt: skip
                if None not in texts:
                    own = policy == simulation.NAIVE
                    words = "as in the study" if own else policy.removeprefix(simulation.READ)
                    yield Claim(f"naive, {kind}, a gap of {gap_s:g} s: {words}", "",
                                f"{', '.join(map(str, texts))} %", None, int(values["traces"]),
                                values)  # fmt: skip


def of_options(m: Measured) -> Iterator[Claim]:
    if "random" in m.asked.kinds:
        yield from _of_classes(m)
    yield from _of_nodes(m)


def _of_classes(m: Measured) -> Iterator[Claim]:
    """What priorities and a partition change, for whom, against the same policy without."""
    cases = [m.asked.optional(seed) for seed in m.asked.chosen_seeds]
    for bound_w in m.asked.ends_w:
        for name, classes in (("priorities", simulation.PROJECTS),
                              ("partition", ("small", "larger"))):  # fmt: skip
            for policy in (simulation.NAIVE, simulation.ORACLE_0):
                values: dict[str, float] = {}
                texts = []
                for who in ("", *classes):
                    what = f"turnaround_s {who}".strip()
                    some = _change(m, cases, f"{policy} {name}", policy, bound_w, what)
                    text = _text(some, values, who or "all")
                    texts.append(f"{who or 'all'} {text}")
                if values:
                    yield Claim(f"options, {name}, {bound_w:,.0f} W: {policy}", "",
                                f"{'; '.join(texts)} %", None,
                                int(values["traces"]), values)  # fmt: skip


def _of_nodes(m: Measured) -> Iterator[Claim]:
    """What it changes that nodes differ, against nodes that do not."""
    for kind in m.asked.kinds:
        alike, other = ([m.asked.varied(kind, seed, it) for seed in m.asked.chosen_seeds]
                        for it in (0.0, VARIATION))  # fmt: skip
        for bound_w in m.asked.ends_w:
            for policy in VARIED:
                values: dict[str, float] = {}
                name = simulation.row(policy, bound_w)
                text = _text(of_cases(m, other, name, "turnaround_s")
                             / of_cases(m, alike, name, "turnaround_s") - 1.0, values,
                             "turnaround")  # fmt: skip
                if text is None:
                    continue
                above = of_cases(m, other, name, "above")
                highest = of_cases(m, other, name, "highest")
                values |= {"time above": float(np.nanmean(above)),
                           "highest": float(np.nanmax(highest))}  # fmt: skip
                yield Claim(f"options, nodes that differ, {kind}, {bound_w:,.0f} W: {policy}", "",
                            f"{text} %; above the bound {100 * values['time above']:.1f} % of the "
                            f"time, by up to {100 * max(0.0, values['highest'] - 1):.0f} %", None,
                            int(values["traces"]), values)  # fmt: skip
