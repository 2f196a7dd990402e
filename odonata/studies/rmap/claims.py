"""The numbers of the study, each beside the one that the thesis prints.

The thesis has one trace of each kind and two random ones; we have many. A printed number **holds**
where the confidence interval of our mean comes near it, and in sign only where all of that interval
is on its side of 0 (`odonata.study.verdicts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from odonata.studies.rmap.cases import (
    BOTH,
    CHOICES,
    HIGH_W,
    LOW_W,
    QUEUED,
    RANDOM_1,
    RANDOM_2,
    RmapPlan,
)
from odonata.studies.rmap.changes import (
    Floats,
    Measured,
    Spread,
    change,
    chosen,
    claim,
    counted,
    each,
    shown,
    signed,
    spread,
    there,
    traces,
)
from odonata.studies.rmap.claims_of_costs import of_costs
from odonata.studies.rmap.claims_of_models import of_predictions, of_printed
from odonata.studies.rmap.claims_of_options import of_naive, of_options
from odonata.studies.rmap.simulation import (
    ADAPTIVE_0,
    ADAPTIVE_10,
    ADAPTIVE_20,
    ADAPTIVE_30,
    MARGIN,
    NAIVE,
    ORACLE_0,
    POLICIES,
    TRADITIONAL,
    UNLIMITED,
    row,
)
from odonata.study.contract import Claim
from odonata.study.verdicts import above, below, verdict, yes_or_no

ON_NAIVE = "rmap.md#what-makes-naive-so-slow"
ON_MARGIN = "rmap.md#what-the-model-has-to-do-with-it"
ON_SMALL, ON_UNBOUNDED, ON_QUEUES, ON_MODEL, ON_POWER, ON_LARGE = (
    f"rmap.md#{words}" for words in (
        "small-jobs-over-all-bounds", "unbounded", "who-gains-in-a-queue",
        "the-model-against-the-oracle", "power-of-single-jobs", "large-and-random-jobs",
    ))  # fmt: skip
"""The places in docs where differences are explained."""
PART = 0.0005
"""Percentages are printed to a tenth of one."""


class Printed(NamedTuple):
    """A change that the thesis prints; None as bound: its mean over all bounds, or what `over`
    makes of those."""

    kind: str
    policy: str
    against: str
    bound_w: float | None
    value: float
    cause: str
    over: Callable[..., Any] = np.mean
    source: str = "Patki 5.6.2"

    @property
    def calibrated(self) -> bool:
        """Tells whether the gap, which decides the sign, was chosen when it was known. It decides
        nothing for large jobs, and nothing against naive was known."""
        return self.against == TRADITIONAL and self.kind in ("small", BOTH, RANDOM_2)

    @property
    def section(self) -> str:
        return "5.6.3" if self.kind == QUEUED else self.source.removeprefix("Patki ")

    @property
    def where(self) -> str:
        if self.bound_w is not None:
            return f"{self.bound_w:,.0f} W"
        return "all bounds" if self.over is np.mean else "the bound with the largest change"


CHANGES = (
    Printed("large", ADAPTIVE_0, TRADITIONAL, None, -0.143, ON_LARGE),
    Printed("large", ADAPTIVE_0, TRADITIONAL, None, -0.246, ON_LARGE, np.min),
    Printed("large", ADAPTIVE_10, TRADITIONAL, None, -0.161, ON_LARGE),
    Printed("large", ADAPTIVE_0, NAIVE, None, -0.217, ON_NAIVE),
    Printed("large", ADAPTIVE_0, NAIVE, None, -0.473, ON_NAIVE, np.min),
    Printed("large", ADAPTIVE_0, UNLIMITED, None, -0.338, ON_UNBOUNDED),
    Printed("small", ADAPTIVE_0, TRADITIONAL, None, 0.166, ON_SMALL),
    Printed("small", ADAPTIVE_0, TRADITIONAL, None, 0.211, ON_SMALL, np.max),
    Printed("small", ADAPTIVE_0, TRADITIONAL, HIGH_W, -0.171, ON_SMALL),
    Printed(BOTH, ADAPTIVE_0, TRADITIONAL, None, -0.1852, ON_LARGE),
    Printed(BOTH, ADAPTIVE_0, TRADITIONAL, None, -0.312, ON_LARGE, np.min),
    Printed(BOTH, ADAPTIVE_0, NAIVE, None, -0.3607, ON_NAIVE),
    Printed(BOTH, ADAPTIVE_0, NAIVE, None, -0.538, ON_NAIVE, np.min),
    Printed(RANDOM_2, ADAPTIVE_0, TRADITIONAL, HIGH_W, -0.13, ON_POWER, np.mean, "Patki 5.6.4"),
    Printed(QUEUED, NAIVE, TRADITIONAL, LOW_W, 990 / 684 - 1, ON_NAIVE, np.mean,
            "Patki table 5.4"),
    Printed(QUEUED, ADAPTIVE_0, TRADITIONAL, LOW_W, -0.071, ON_QUEUES, np.mean, "Patki 5.6.3"),
    Printed(QUEUED, ADAPTIVE_10, TRADITIONAL, LOW_W, -0.105, ON_QUEUES, np.mean, "Patki 5.6.3"),
    Printed(QUEUED, ADAPTIVE_20, TRADITIONAL, LOW_W, -0.211, ON_QUEUES, np.mean, "Patki 5.6.3"),
    Printed(QUEUED, ADAPTIVE_30, TRADITIONAL, LOW_W, 536 / 684 - 1, ON_QUEUES, np.mean,
            "Patki table 5.4"),
)  # fmt: skip
"""The printed changes, in the order of the text; those of a table follow from its seconds."""
SLOWED = (ADAPTIVE_10, ADAPTIVE_20, ADAPTIVE_30)
PRINTED_S = 684
"""Table 5.4: the mean turnaround of one large trace at 6,500 W under traditional, in s."""
GAIN = {ADAPTIVE_0: 17, ADAPTIVE_10: 18, ADAPTIVE_20: 22}
"""Of 30 jobs of that trace, how many have a shorter turnaround than under traditional."""
MORE_POWER, SHORTER, AT_ONCE = 0.17, 28, 14
"""Of a random trace at 14,000 W: the mean over jobs of how much more power each is given, jobs with
a shorter turnaround, and jobs that do not wait under traditional."""
OFF_MEAN, OFF_MOST = 0.04, 0.10
"""By how much turnarounds with the model differ from those with the oracle."""


def claims(m: Measured) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    parts: dict[str, tuple[Callable[[Measured], Iterator[Claim]], ...]] = {
        "traces": (_changes, _thresholds, _altruism, _power, _model, _beside),
        "choices": (_choices,), "naive": (of_naive,), "options": (of_options,),
        "prediction": (of_predictions,), "printed": (of_printed, of_costs),
    }  # fmt: skip
    return [one for part, makers in parts.items() if part in m.asked.parts
            for make in makers for one in make(m) if one.of]  # fmt: skip


def _has(asked: RmapPlan, kind: str, bound_w: float | None = None) -> bool:
    """Tells whether traces of a kind were asked for, and a bound."""
    real = {BOTH: "random", RANDOM_1: "random", RANDOM_2: "random", QUEUED: "large"}.get(kind, kind)
    return real in asked.kinds and bound_w in (None, *asked.bounds_w)


# -- turnarounds


def _changes(m: Measured) -> Iterator[Claim]:
    for one in CHANGES:
        if _has(m.asked, one.kind, one.bound_w):
            found = spread(change(m, one.kind, one.policy, one.against, one.bound_w, one.over))
            # The largest of several changes has its sign by being chosen: that is no direction.
            said = (found.verdict(one.value, PART) if one.over is np.mean
                    else verdict(found.near(one.value, PART)))  # fmt: skip
            yield claim(f"{one.section}: {one.kind}, {one.where}: {one.policy} against "
                        f"{one.against}", signed(one.value), shown(found, one.value), found, said,
                        one.source, one.cause, one.calibrated)  # fmt: skip
    if _has(m.asked, QUEUED, LOW_W):
        found = spread(each(m, QUEUED, TRADITIONAL, LOW_W))
        yield claim(f"5.6.3: {QUEUED}, 6,500 W: turnaround, traditional", f"{PRINTED_S} s",
                    counted(found, PRINTED_S, " s"), found, verdict(found.near(PRINTED_S, 0.5)),
                    "Patki table 5.4", ON_QUEUES, True)  # fmt: skip


def _thresholds(m: Measured) -> Iterator[Claim]:
    """What slowing jobs down by 10 to 30 % changes, on average over these and all bounds."""
    for kind, words, printed in (("large", "", -0.021), (BOTH, "no better than by", -0.026),
                                 ("small", "no better than by", -0.026)):  # fmt: skip
        if _has(m.asked, kind):
            found = spread(np.mean([change(m, kind, it, ADAPTIVE_0) for it in SLOWED], axis=0))
            said = (verdict(above(found.it, printed), found.mean > printed) if words
                    else found.verdict(printed, PART))  # fmt: skip
            yield claim(f"5.6.2: {kind}, all bounds: adaptive 10 to 30 % against 0 %",
                        f"{words} {signed(printed)}".strip(), shown(found), found, said,
                        "Patki 5.6.2", ON_QUEUES)  # fmt: skip
    for kind in ("large", BOTH):
        if _has(m.asked, kind):
            found = spread(change(m, kind, UNLIMITED, ADAPTIVE_0))
            yield claim(f"5.6.2: {kind}, all bounds: unbounded against 0 %", "longer", shown(found),
                        found, verdict(above(found.it, 0.0), found.mean > 0), "Patki 5.6.2",
                        ON_UNBOUNDED)  # fmt: skip
    for against, cause in ((TRADITIONAL, ON_LARGE), (NAIVE, ON_NAIVE)):
        every = [spread(change(m, "large", ADAPTIVE_0, against, it)) for it in m.asked.bounds_w
                 if it <= HIGH_W and _has(m.asked, "large")]  # fmt: skip
        if kept := [it for it in every if it]:
            said = verdict(all(below(it.it, 0.0) for it in kept), all(it.mean < 0 for it in kept))
            yield claim(f"5.6.2: large: bounds at which adaptive 0 % is faster than {against}",
                        "all", f"{sum(below(it.it, 0.0) for it in kept)} of {len(kept)}", kept[0],
                        said, "Patki 5.6.2", cause, values={"bounds": len(kept)})  # fmt: skip


def _beside(m: Measured) -> Iterator[Claim]:
    """Every policy against traditional at every bound, of which the thesis prints curves alone."""
    for kind in m.asked.kinds:
        for policy in POLICIES:
            if policy == TRADITIONAL:
                continue
            means = {bound_w: it for bound_w in m.asked.bounds_w
                     if (it := spread(change(m, kind, policy, TRADITIONAL, bound_w)))}  # fmt: skip
            if means:
                yield Claim(f"by bound, {kind}: {policy} against traditional", "",
                            ", ".join(f"{100 * it.mean:+.0f}" for it in means.values()) + " %",
                            None, next(iter(means.values())).of,
                            {f"{bound_w:g} W": it.mean for bound_w, it in means.items()}
                            )  # fmt: skip


# -- who gains, and power


def _altruism(m: Measured) -> Iterator[Claim]:
    """Who gains in the trace of table 5.4."""
    if not _has(m.asked, QUEUED, LOW_W):
        return
    at = f"5.6.3: {QUEUED}, 6,500 W"
    for policy, jobs in GAIN.items():
        found = spread(each(m, QUEUED, policy, LOW_W, "gained"))
        yield _counted(f"{at}: jobs of 30 that gain, {policy}", jobs, found, above(found.it, 15.0))
    for what, jobs in (("gained", 13), ("same", 14), ("lost", 3)):
        found = spread(each(m, QUEUED, ADAPTIVE_20, LOW_W, f"{what} on 0 %"))
        yield _counted(f"{at}: jobs {what} with 20 % against 0 %", jobs, found)
    by_job = job_changes(m, QUEUED, LOW_W, ADAPTIVE_20, ADAPTIVE_0)
    for words, value, of in (("mean gain of those that gain", 0.128,
                              [-it[it < 0].mean() for it in by_job if (it < 0).any()]),
                             ("largest gain", 0.577, [-it.min() for it in by_job])):  # fmt: skip
        found = spread(np.array(of))
        yield claim(f"{at}: {words} with 20 % against 0 %", signed(value)[1:], shown(found, value),
                    found, verdict(found.near(value, PART)), "Patki 5.6.3", ON_QUEUES)  # fmt: skip
    found = spread(np.array([it.max() for it in by_job]))
    yield claim(f"{at}: largest loss with 20 % against 0 %", "< 1.9 %", shown(found), found,
                verdict(below(found.it, 0.019), found.mean < 0.019), "Patki 5.6.3",
                ON_QUEUES)  # fmt: skip


def _counted(name: str, printed: int, found: Spread, sign: bool = False,
             source: str = "Patki 5.6.3", cause: str = ON_QUEUES) -> Claim:  # fmt: skip
    """Returns a claim on a number of jobs of 30."""
    return claim(name, f"{printed}", counted(found, printed), found,
                 verdict(found.near(printed), sign), source, cause)  # fmt: skip


def job_changes(m: Measured, kind: str, bound_w: float, policy: str, against: str,
                what: str = "turnaround") -> list[Floats]:  # fmt: skip
    """Returns, trace by trace, by how much the turnaround or the power of each job is another."""
    found = []
    for case in traces(m.asked, kind):
        one = there(m, case)
        both = [one.lists.get(row(it, bound_w)) if one else None for it in (policy, against)]
        if both[0] is not None and both[1] is not None:
            ours, theirs = (_of_jobs(it, what) for it in both if it is not None)
            found.append(ours / theirs - 1.0)
    return found


def _of_jobs(lists: Any, what: str) -> Floats:
    end, submit, watts = (np.array(lists[name]) for name in ("end_s", "submit_s", "watts"))
    found: Floats = end - submit if what == "turnaround" else watts
    return found


def _power(m: Measured) -> Iterator[Claim]:
    if _has(m.asked, RANDOM_2, HIGH_W):
        at = f"5.6.4: {RANDOM_2}, 14,000 W"
        power = job_changes(m, RANDOM_2, HIGH_W, ADAPTIVE_0, TRADITIONAL, "power")
        for words, value, of in (("more power per job, mean", MORE_POWER, np.mean),
                                 ("more power per job, most", 0.70, np.max)):  # fmt: skip
            found = spread(np.array([float(of(it)) for it in power]))
            said = verdict(found.near(value, 0.005), of is np.mean and found.same_sign(value))
            yield claim(f"{at}: {words}, adaptive against traditional", signed(value),
                        shown(found, value), found, said, "Patki 5.6.4", ON_POWER)  # fmt: skip
        for name, policy, what, printed in (
            ("jobs of 30 that gain", ADAPTIVE_0, "gained", SHORTER),
            ("jobs of 30 that wait, traditional", TRADITIONAL, "waited", 30 - AT_ONCE),
        ):
            found = spread(each(m, RANDOM_2, policy, HIGH_W, what))
            sign = what == "gained" and above(found.it, 15.0)
            yield _counted(f"{at}: {name}", printed, found, sign, "Patki 5.6.4", ON_POWER)
        times = job_changes(m, RANDOM_2, HIGH_W, ADAPTIVE_0, TRADITIONAL)
        found = spread(np.array([float((it < -0.5).sum()) for it in times]))
        yield _counted(f"{at}: jobs of 30 that take less than half", 8, found, False,
                       "Patki 5.6.4", ON_POWER)  # fmt: skip
    for kind in m.asked.kinds:
        for bound_w in (LOW_W, HIGH_W):
            if bound_w not in m.asked.bounds_w:
                continue
            used = {name: spread(each(m, kind, policy, bound_w, "used")) for name, policy in
                    (("traditional", TRADITIONAL), ("naive", NAIVE), ("adaptive", ADAPTIVE_0))
                    }  # fmt: skip
            if all(used.values()):
                yield Claim(f"bound used, {kind}, {bound_w:,.0f} W: {', '.join(used)}", "",
                            ", ".join(f"{100 * it.mean:.0f}" for it in used.values()) + " %", None,
                            used["traditional"].of, {name: it.mean for name, it in used.items()}
                            )  # fmt: skip


# -- the model, and what it exceeds


def _model(m: Measured) -> Iterator[Claim]:
    """How far turnarounds with the model are off those with the oracle."""
    bounds = [it for it in m.asked.bounds_w if it <= HIGH_W]
    for kind in (RANDOM_1, *m.asked.kinds):
        if not bounds or not _has(m.asked, kind):
            continue
        off = np.array([[abs(change(m, kind, learned, oracle, it)) for it in bounds]
                        for learned, oracle in (("traditional model", TRADITIONAL),
                                                (ADAPTIVE_0, ORACLE_0))])  # fmt: skip
        mean, most = spread(off.mean(axis=(0, 1))), spread(off.max(axis=(0, 1)))
        claimed = kind == RANDOM_1
        said = mean.verdict(OFF_MEAN, 0.005) if claimed else None
        name = f"5.6.1: {kind}: turnaround off with the model, traditional and adaptive"
        yield claim(f"{name}, mean", "4 %" * claimed, shown(mean, OFF_MEAN if claimed else None),
                    mean, said, "Patki 5.6.1" * claimed, ON_MODEL)  # fmt: skip
        said = verdict(below(most.it, OFF_MOST), most.mean < OFF_MOST) if claimed else None
        yield claim(f"{name}, most", "< 10 %" * claimed, shown(most), most, said,
                    "Patki 5.6.1" * claimed, ON_MODEL)  # fmt: skip
    for policy, words in ((ADAPTIVE_0, "adaptive 0 %"),
                          ("adaptive margin", f"with a margin of {100 * MARGIN:.0f} %"),
                          ("adaptive spread", "trained on a spread"),
                          ("adaptive spread margin", "a spread and a margin"),
                          (ORACLE_0, "oracle")):  # fmt: skip
        every = _every(m, policy, "highest")
        if not len(every):
            continue
        above, claimed = _every(m, policy, "above"), policy == "adaptive margin"
        runs, top = float((every > 1 + 1e-9).mean()), float(every.max())
        yield claim(f"5.4: bound exceeded, {words}: runs, time, most", "never" * claimed,
                    f"{100 * runs:.1f} %, {100 * above.mean():.2f} %, "
                    f"{100 * max(0.0, top - 1):.1f} %", spread(every),
                    yes_or_no(runs == 0 if claimed else None), "Patki 5.4" * claimed, ON_MARGIN,
                    values={"runs": runs, "most": top})  # fmt: skip
    every = np.concatenate([_every(m, policy, "planned") for policy in POLICIES])
    if len(every):
        yield claim("5.2: plans above the bound, all policies", "none",
                    f"{(every > 1 + 1e-9).sum()}", spread(every),
                    yes_or_no(bool((every <= 1 + 1e-9).all())), "Patki 5.2", ON_MARGIN,
                    values={"most": float(every.max())})  # fmt: skip
    every = np.concatenate([_every(m, policy, "killed") for policy in POLICIES])
    if len(every):
        yield Claim("jobs killed, all policies", "", f"{every.sum():.0f} of {30 * len(every):,}",
                    None, len(every), {"killed": float(every.sum())})  # fmt: skip


def _every(m: Measured, policy: str, what: str) -> Floats:
    """Returns what was measured of all traces under all bounds."""
    found = np.concatenate([each(m, kind, policy, bound_w, what)
                            for kind in m.asked.kinds for bound_w in m.asked.bounds_w])  # fmt: skip
    finite: Floats = found[np.isfinite(found)]
    return finite


# -- choices


def _choices(m: Measured) -> Iterator[Claim]:
    """What the thesis leaves open: traditional's turnaround, and the changes against it of adaptive
    (0 and 20 %, unbounded) and naive."""
    for choice in (None, *CHOICES):
        for kind in m.asked.kinds:
            for bound_w in sorted({m.asked.low_w, HIGH_W}):
                base = chosen(m, kind, choice, TRADITIONAL, bound_w)
                seconds = spread(base)
                if not seconds:
                    continue
                values, texts = {"traditional_s": seconds.mean}, []
                for policy in (ADAPTIVE_0, ADAPTIVE_20, UNLIMITED, NAIVE, ORACLE_0):
                    found = spread(chosen(m, kind, choice, policy, bound_w) / base - 1)
                    if found:
                        values |= {policy: found.mean, f"{policy} low": found.low,
                                   f"{policy} high": found.high}  # fmt: skip
                        texts.append(f"{100 * found.mean:+.0f}")
                yield Claim(f"choices, {choice or 'as asked'}, {kind}, {bound_w:,.0f} W", "",
                            f"{seconds.mean:,.0f} s: {', '.join(texts[:4])} %", None, seconds.of,
                            values)  # fmt: skip
