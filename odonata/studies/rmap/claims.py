"""The numbers of the study, each beside the one that the thesis prints.

The thesis has one trace of each kind and two random ones; we have many. A printed change **holds**
where our mean has its sign and 90 % of our traces lie around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from odonata.studies.rmap.cases import (
    CHOICES,
    HIGH_W,
    LOW_W,
    RmapPlan,
)
from odonata.studies.rmap.changes import (
    Floats,
    Outcomes,
    change,
    chosen,
    counted,
    each,
    shown,
    signed,
    spread,
    there,
    traces,
)
from odonata.studies.rmap.claims_of_models import of_predictions, of_printed
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
from odonata.study.verdicts import yes_or_no


class Printed(NamedTuple):
    """A change that the thesis prints; None as bound: its mean over all bounds."""

    kind: str
    policy: str
    against: str
    bound_w: float | None
    value: float
    where: str = ""
    """The table of the thesis, where it is one."""


CHANGES = (
    Printed("large", ADAPTIVE_0, TRADITIONAL, LOW_W, -0.143),
    Printed("random", ADAPTIVE_0, TRADITIONAL, LOW_W, -0.1852),
    Printed("small", ADAPTIVE_0, TRADITIONAL, LOW_W, 0.166),
    Printed("large", ADAPTIVE_0, TRADITIONAL, None, -0.143),
    Printed("random", ADAPTIVE_0, TRADITIONAL, None, -0.1852),
    Printed("small", ADAPTIVE_0, TRADITIONAL, None, 0.166),
    Printed("small", ADAPTIVE_0, TRADITIONAL, HIGH_W, -0.171),
    Printed("large", ADAPTIVE_0, NAIVE, None, -0.217),
    Printed("random", ADAPTIVE_0, NAIVE, None, -0.3607),
    Printed("large", ADAPTIVE_10, TRADITIONAL, None, -0.161),
    Printed("large", ADAPTIVE_0, UNLIMITED, None, -0.338),
    Printed("large", ADAPTIVE_10, ADAPTIVE_0, None, -0.021),
    Printed("random", ADAPTIVE_0, TRADITIONAL, HIGH_W, -0.13),
    Printed("large", NAIVE, TRADITIONAL, LOW_W, 990 / 684 - 1, "table 5.4, "),
    Printed("large", ADAPTIVE_0, TRADITIONAL, LOW_W, -0.071, "table 5.4, "),
    Printed("large", ADAPTIVE_10, TRADITIONAL, LOW_W, -0.105, "table 5.4, "),
    Printed("large", ADAPTIVE_20, TRADITIONAL, LOW_W, -0.211, "table 5.4, "),
    Printed("large", ADAPTIVE_30, TRADITIONAL, LOW_W, 536 / 684 - 1, "table 5.4, "),
)
"""In the order of the text; the last five are those of table 5.4. At 6,500 W the first three are
set beside the printed means over all bounds, as these are all that is printed."""
TABLE_S = {TRADITIONAL: 684, NAIVE: 990, ADAPTIVE_0: 636, ADAPTIVE_10: 613, ADAPTIVE_20: 536,
           ADAPTIVE_30: 536}  # fmt: skip
"""Table 5.4: mean turnarounds of one large trace at 6,500 W, in s."""
GAIN = {ADAPTIVE_0: 17, ADAPTIVE_10: 18, ADAPTIVE_20: 22}
"""Of 30 jobs of that trace, how many have a shorter turnaround than under traditional."""
MORE_POWER, SHORTER, AT_ONCE = 0.17, 28, 14
"""Of a random trace at 14,000 W: the mean over jobs of how much more power each is given, jobs with
a shorter turnaround, and jobs that do not wait under traditional."""
NEAREST = "a gap of 20 s"
"""The choice with which traditional takes about as long as in table 5.4."""
OFF_MEAN, OFF_MOST = 0.04, 0.10
"""By how much turnarounds with the model differ from those with the oracle."""


def claims(asked: RmapPlan, outcomes: Outcomes) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    found: list[Claim] = []
    if "traces" in asked.parts:
        found += _changes(asked, outcomes)
        found += _altruism(asked, outcomes)
        found += _power(asked, outcomes)
        found += _model(asked, outcomes)
        found += _beside(asked, outcomes)
    if "choices" in asked.parts:
        found += _long_queue(asked, outcomes)
        found += _choices(asked, outcomes)
    if "prediction" in asked.parts:
        found += of_predictions(asked, outcomes)
    if "printed" in asked.parts:
        found += of_printed()
    return found


# -- turnarounds


def _changes(asked: RmapPlan, outcomes: Outcomes) -> Iterator[Claim]:
    for one in CHANGES:
        if one.kind not in asked.kinds or one.bound_w not in (None, *asked.bounds_w):
            continue
        found = spread(change(asked, outcomes, one.kind, one.policy, one.against, one.bound_w))
        if found is None:
            continue
        where = "all bounds" if one.bound_w is None else f"{one.bound_w:,.0f} W"
        same_sign = found.mean * one.value > 0
        yield Claim(f"{one.where}{one.kind}, {where}: {one.policy} against {one.against}",
                    signed(one.value),
                    shown(found), yes_or_no(same_sign and found.has(one.value)), found.of,
                    {**found.values, "same_sign": float(same_sign)})  # fmt: skip
    for policy, seconds in TABLE_S.items() if "large" in asked.kinds else ():
        found = spread(each(asked, outcomes, "large", policy, LOW_W))
        if found is not None:
            yield Claim(f"table 5.4, large, 6,500 W: turnaround, {policy}", f"{seconds} s",
                        f"{found.mean:,.0f} s ({found.low:,.0f} .. {found.high:,.0f})",
                        yes_or_no(found.has(seconds)), found.of, found.values)  # fmt: skip


def _beside(asked: RmapPlan, outcomes: Outcomes) -> Iterator[Claim]:
    """Every policy against traditional at every bound, of which the thesis prints curves alone."""
    for kind in asked.kinds:
        for policy in POLICIES:
            if policy == TRADITIONAL:
                continue
            means = [spread(change(asked, outcomes, kind, policy, TRADITIONAL, bound_w))
                     for bound_w in asked.bounds_w]  # fmt: skip
            kept = [it for it in means if it is not None]
            if kept:
                values = {f"{bound_w:g} W": it.mean
                          for bound_w, it in zip(asked.bounds_w, means, strict=True)
                          if it is not None}  # fmt: skip
                yield Claim(f"{kind}, by bound: {policy} against traditional", "",
                            ", ".join(f"{100 * it.mean:+.0f}" for it in kept) + " %", None,
                            kept[0].of, values)  # fmt: skip


# -- who gains, and power


def _altruism(asked: RmapPlan, outcomes: Outcomes) -> Iterator[Claim]:
    if "large" not in asked.kinds:
        return
    for policy, jobs in GAIN.items():
        found = spread(each(asked, outcomes, "large", policy, LOW_W, "gained"))
        if found is not None:
            yield Claim(
                f"large, 6,500 W: jobs of 30 that gain, {policy}",
                f"{jobs}",
                counted(found),
                yes_or_no(found.has(jobs)),
                found.of,
                found.values,
            )
    for what, jobs in (("gained", 13), ("same", 14), ("lost", 3)):
        found = spread(each(asked, outcomes, "large", ADAPTIVE_20, LOW_W, f"{what} on 0 %"))
        if found is not None:
            yield Claim(
                f"large, 6,500 W: jobs {what} with 20 % against 0 %",
                f"{jobs}",
                counted(found),
                yes_or_no(found.has(jobs)),
                found.of,
                found.values,
            )


def _power(asked: RmapPlan, outcomes: Outcomes) -> Iterator[Claim]:
    if "random" in asked.kinds and HIGH_W in asked.bounds_w:
        found = spread(given(asked, outcomes, "random", HIGH_W))
        if found is not None:
            yield Claim(
                "random, 14,000 W: power of a job, adaptive against traditional",
                signed(MORE_POWER),
                shown(found),
                yes_or_no(found.has(MORE_POWER)),
                found.of,
                found.values,
            )
        for name, policy, what, printed in (
            ("jobs of 30 that gain", ADAPTIVE_0, "gained", SHORTER),
            ("jobs of 30 that wait, traditional", TRADITIONAL, "waited", 30 - AT_ONCE),
        ):
            found = spread(each(asked, outcomes, "random", policy, HIGH_W, what))
            if found is not None:
                yield Claim(f"random, 14,000 W: {name}", f"{printed}", counted(found),
                            yes_or_no(found.has(printed)), found.of, found.values)  # fmt: skip
    for kind in asked.kinds:
        for bound_w in (LOW_W, HIGH_W):
            if bound_w not in asked.bounds_w:
                continue
            used = [spread(each(asked, outcomes, kind, policy, bound_w, "used"))
                    for policy in (TRADITIONAL, NAIVE, ADAPTIVE_0)]  # fmt: skip
            kept = [it for it in used if it is not None]
            if len(kept) == 3:
                yield Claim(f"{kind}, {bound_w:,.0f} W: bound used, traditional, naive, adaptive",
                            "", ", ".join(f"{100 * it.mean:.0f}" for it in kept) + " %", None,
                            kept[0].of, {"traditional": kept[0].mean, "naive": kept[1].mean,
                                         "adaptive": kept[2].mean})  # fmt: skip


def given(asked: RmapPlan, outcomes: Outcomes, kind: str, bound_w: float) -> Floats:
    """Returns, trace by trace, the mean over jobs of how much more power adaptive gives to each
    than traditional, as a share."""
    found = []
    for case in traces(asked, kind):
        one = there(outcomes, case)
        both = [one.lists.get(row(policy, bound_w)) if one else None
                for policy in (ADAPTIVE_0, TRADITIONAL)]  # fmt: skip
        if both[0] is None or both[1] is None:
            found.append(np.nan)
        else:
            ratio = np.array(both[0]["watts"]) / np.array(both[1]["watts"])
            found.append(float(ratio.mean()) - 1.0)
    return np.array(found)


# -- the model, and what it exceeds


def _model(asked: RmapPlan, outcomes: Outcomes) -> Iterator[Claim]:
    for learned, oracle in (("traditional model", TRADITIONAL), ("naive model", NAIVE),
                            (ADAPTIVE_0, ORACLE_0)):  # fmt: skip
        for kind in asked.kinds:
            bounds = [it for it in asked.bounds_w if it <= HIGH_W]
            if not bounds:
                continue
            off = np.array([abs(change(asked, outcomes, kind, learned, oracle, it))
                            for it in bounds])  # fmt: skip
            mean, most = spread(off.mean(axis=0)), spread(off.max(axis=0))
            if mean is None or most is None:
                continue
            claimed, word = kind == "random" and learned != "naive model", learned.split()[0]
            yield Claim(
                f"{kind}: turnaround off with the model, {word}: mean of five bounds",
                "4 %" * claimed,
                shown(mean),
                yes_or_no(mean.has(OFF_MEAN) if claimed else None),
                mean.of,
                mean.values,
            )
            yield Claim(
                f"{kind}: turnaround off with the model, {word}: most of five bounds",
                "< 10 %" * claimed,
                shown(most),
                yes_or_no(most.mean < OFF_MOST if claimed else None),
                most.of,
                most.values,
            )
    for policy, words in ((ADAPTIVE_0, "adaptive 0 %"),
                          ("adaptive margin", f"with a margin of {100 * MARGIN:.0f} %"),
                          ("adaptive spread", "trained on a spread"),
                          ("adaptive spread margin", "a spread and a margin"),
                          (ORACLE_0, "oracle")):  # fmt: skip
        every = _every(asked, outcomes, policy, "highest")
        if not len(every):
            continue
        above, claimed = _every(asked, outcomes, policy, "above"), policy == "adaptive margin"
        runs, top = float((every > 1 + 1e-9).mean()), float(every.max())
        yield Claim(f"bound exceeded, {words}: runs, time, most", "never" * claimed,
                    f"{100 * runs:.1f} %, {100 * above.mean():.2f} %, "
                    f"{100 * max(0.0, top - 1):.1f} %", yes_or_no(runs == 0 if claimed else None),
                    len(every), {"runs": runs, "most": top})  # fmt: skip
    every = np.concatenate([_every(asked, outcomes, policy, "planned") for policy in POLICIES])
    if len(every):
        yield Claim(
            "plans above the bound, all policies",
            "none",
            f"{(every > 1 + 1e-9).sum()}",
            yes_or_no(bool((every <= 1 + 1e-9).all())),
            len(every),
            {"most": float(every.max())},
        )
    every = np.concatenate([_every(asked, outcomes, policy, "killed") for policy in POLICIES])
    if len(every):
        yield Claim("jobs killed, all policies", "", f"{every.sum():.0f} of {30 * len(every):,}",
                    None, len(every), {"killed": float(every.sum())})  # fmt: skip


def _every(asked: RmapPlan, outcomes: Outcomes, policy: str, what: str) -> Floats:
    """Returns what was measured of all traces under all bounds."""
    found = np.concatenate([each(asked, outcomes, kind, policy, bound_w, what)
                            for kind in asked.kinds for bound_w in asked.bounds_w])  # fmt: skip
    finite: Floats = found[np.isfinite(found)]
    return finite


# -- choices


def _choices(asked: RmapPlan, outcomes: Outcomes) -> Iterator[Claim]:
    """What the thesis leaves open: traditional's turnaround, and the changes against it of adaptive
    (0 and 20 %, unbounded) and naive."""
    for choice in (None, *CHOICES):
        for kind in asked.kinds:
            for bound_w in sorted({asked.low_w, HIGH_W}):
                base = chosen(asked, outcomes, kind, choice, TRADITIONAL, bound_w)
                seconds = spread(base)
                if seconds is None:
                    continue
                values, texts = {"traditional_s": seconds.mean}, []
                for policy in (ADAPTIVE_0, ADAPTIVE_20, UNLIMITED, NAIVE, ORACLE_0):
                    found = spread(
                        chosen(asked, outcomes, kind, choice, policy, bound_w) / base - 1
                    )
                    if found is not None:
                        values |= {policy: found.mean, f"{policy} low": found.low,
                                   f"{policy} high": found.high}  # fmt: skip
                        texts.append(f"{100 * found.mean:+.0f}")
                yield Claim(f"{choice or 'as asked'}, {kind}, {bound_w:,.0f} W", "",
                            f"{seconds.mean:,.0f} s: {', '.join(texts[:4])} %", None, seconds.of,
                            values)  # fmt: skip


def _long_queue(asked: RmapPlan, outcomes: Outcomes) -> Iterator[Claim]:
    """Table 5.4 once more, with the gap at which traditional's turnaround is the printed one."""
    if "large" not in asked.kinds or asked.low_w != LOW_W:
        return
    base = chosen(asked, outcomes, "large", NEAREST, TRADITIONAL)
    for policy in (TRADITIONAL, NAIVE, ADAPTIVE_0, ADAPTIVE_20):
        ours = chosen(asked, outcomes, "large", NEAREST, policy)
        found, seconds = spread(ours / base - 1.0), TABLE_S[policy]
        if found is None:
            continue
        printed = seconds / TABLE_S[TRADITIONAL] - 1.0
        if policy == TRADITIONAL:
            mean = spread(base)
            assert mean is not None
            yield Claim(f"large, {NEAREST}: turnaround, {policy}", f"{seconds} s",
                        f"{mean.mean:,.0f} s ({mean.low:,.0f} .. {mean.high:,.0f})",
                        yes_or_no(mean.has(seconds)), mean.of, mean.values)  # fmt: skip
        else:
            holds = found.mean * printed > 0 and found.has(printed)
            yield Claim(f"large, {NEAREST}: {policy} against traditional", signed(printed),
                        shown(found), yes_or_no(holds), found.of, found.values)  # fmt: skip
    for policy, what, words, jobs in (
        (ADAPTIVE_0, "gained", "that gain, 0 %", 17),
        (ADAPTIVE_20, "gained", "that gain, 20 %", 22),
        (ADAPTIVE_20, "gained on 0 %", "gained with 20 % against 0 %", 13),
        (ADAPTIVE_20, "same on 0 %", "same with 20 % against 0 %", 14),
        (ADAPTIVE_20, "lost on 0 %", "lost with 20 % against 0 %", 3),
    ):
        found = spread(chosen(asked, outcomes, "large", NEAREST, policy, what=what))
        if found is not None:
            yield Claim(f"large, {NEAREST}: jobs of 30 {words}", f"{jobs}", counted(found),
                        yes_or_no(found.has(jobs)), found.of, found.values)  # fmt: skip
