"""What the paper says in its section 5, and what came out here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from odonata.results.statistics import Interval
from odonata.studies.aqa import beyond, cases
from odonata.studies.aqa.found import Group, Measured, always, counted, mean_of
from odonata.studies.aqa.printed import (
    FEASIBLE,
    PLACES,
    SCALE_SAVING,
    TABLE_4,
    W2_RIVALS,
    W3_ERRORS,
    W4_RIVALS,
    W4_WEIGHT,
    W5_ERRORS,
    W13_WEIGHTS,
)
from odonata.study.contract import Claim
from odonata.study.verdicts import (
    WIDEST,
    above,
    below,
    judged,
    near,
    percent,
    placed,
    shown,
    watts,
    yes_or_no,
)

POLICIES = {"aqa": ("aqa", ""), "energy-qare": ("energy-qare", ""),
            "tracking-only": ("energy-qare", "tracking-only")}  # fmt: skip
"""The bidder and the variant that stand for each policy of the paper."""


def claims(m: Measured) -> list[Claim]:
    """Returns the claims of the parts that are asked for and that there are all cases for."""
    parts = {"mixes": _mixes, "service": _service, "gradient": _descent, "printed": _printed,
             "scale": _scale}  # fmt: skip
    found: list[Claim] = []
    for part in m.asked.parts:
        if part in parts:
            found += parts[part](m)
        found += beyond.PARTS[part](m) if part in beyond.PARTS else ()
    return placed(found, PLACES)


def group(m: Measured, policy: str, standby: str = "", sample: bool = True) -> Group:
    """Returns the hours of all mixes under a policy."""
    whose, variant = POLICIES[policy]
    return Group(m.asked.mixes, lambda mix: cases.of_mix(mix, whose, standby, sample), variant)


# -- the fourteen mixes


def _mixes(m: Measured) -> Iterator[Claim]:
    if m.has(*(group(m, policy) for policy in POLICIES)):
        yield from _table_4(m)
        yield from _feasible(m)
        yield from _alone(m)
    yield from beyond.samples(m)


FEWEST = 5
"""A printed number cannot be judged by fewer hours, nor by an interval that is too wide."""


def _told(name: str, paper: str, ours: str, printed: float, it: Interval) -> Claim:
    """Returns whether a printed number is shown to hold."""
    if it.of < FEWEST or not it.half <= WIDEST * printed:
        return judged(name, paper, f"{ours}: too uncertain to tell", False, False, it)
    return judged(name, paper, ours, near(it, printed), False, it)


def as_printed(mix: str) -> cases.Setting:
    """Returns the setting of a mix as its row is printed: W3's is with standby jobs (5.3)."""
    return cases.of_mix(mix, standby=cases.FILLER if mix == "W3" else "")


def _table_4(m: Measured) -> Iterator[Claim]:
    for mix in m.asked.mixes:
        printed, setting = TABLE_4[mix], as_printed(mix)
        found = m.in_kept(mix, setting, "saving")
        hours = len(m.rows(mix, setting))
        if not found.of:
            yield Claim(
                f"{mix}: saving",
                f"{printed.saving:.0%}",
                f"no bid keeps all rules in any of {hours} hours",
                yes_or_no(False),
            )
            continue
        yield _told(f"{mix}: saving", f"{printed.saving:.0%}",
                    f"{percent(found)}, in {found.of} of {hours} hours that a bid keeps",
                    printed.saving, found)  # fmt: skip
    for mix in m.asked.mixes:
        setting = as_printed(mix)
        printed_w = TABLE_4[mix].average_w
        found = mean_of(bid["average_w"] for bid, row in zip(
            m.bids(mix, setting), m.rows(mix, setting), strict=True) if row["kept"])  # fmt: skip
        if found.of:
            yield _told(f"{mix}: average", f"{printed_w:,.0f} W, as follows", watts(found),
                        printed_w, found)  # fmt: skip


def _feasible(m: Measured) -> Iterator[Claim]:
    for policy, mixes in FEASIBLE.items():
        asked = [mix for mix in m.asked.mixes if mix in mixes]
        printed = len(asked) / len(m.asked.mixes)
        each = group(m, policy)
        if policy == "aqa":
            each = each._replace(setting=as_printed)
        found = m.share(each)
        yield judged(f"{policy}: mixes on which all constraints are met, in an hour",
                     f"{len(asked)} of {len(m.asked.mixes)}", counted(m, each),
                     near(found, printed), False, found)  # fmt: skip
    for one, other in (("aqa", "energy-qare"), ("energy-qare", "tracking-only")):
        it = m.change(group(m, one), group(m, other), "kept")
        yield judged(f"{one} meets them on more mixes than {other}", "yes", f"by {percent(it)}",
                     above(it, 0), it.mean > 0, it)  # fmt: skip


def _alone(m: Measured) -> Iterator[Claim]:
    """Returns what is said of single mixes."""
    for mix, mine, rivals in (("W4", TABLE_4["W4"].cost, W4_RIVALS),
                              ("W2", TABLE_4["W2"].cost, W2_RIVALS)):  # fmt: skip
        if mix not in m.asked.mixes:
            continue
        own = [row["cost"] for row in m.rows(mix, cases.of_mix(mix))]
        for policy, cost in rivals.items():
            whose, variant = POLICIES[policy]
            theirs = [row["cost"] for row in m.rows(mix, cases.of_mix(mix, whose), variant)]
            it = mean_of((b - a) / np.mean(own) for a, b in zip(own, theirs, strict=True))
            yield judged(f"{mix}: what {policy} costs more than AQA", f"{cost / mine - 1:.0%}",
                         percent(it), near(it, cost / mine - 1), above(it, 0), it)  # fmt: skip
    if "W4" in m.asked.mixes:
        for policy, (whose, variant) in POLICIES.items():
            rows = m.rows("W4", cases.of_mix("W4", whose), variant)
            it = mean_of(row["late"].get("is.D.64", 0.0) for row in rows)
            kept, limit = policy == "aqa", 0.1
            yield judged(f"W4: late jobs of is.D.64 under {policy}",
                         "at most 10 %" if kept else "above 10 %", percent(it),
                         below(it, limit) if kept else above(it, limit),
                         (it.mean < limit) == kept, it)  # fmt: skip
    if "W13" in m.asked.mixes:
        for name, printed in W13_WEIGHTS.items():
            it = mean_of(bid["weights"][name] for bid in m.bids("W13", cases.of_mix("W13")))
            yield judged(f"W13: weight of {name}", f"{printed:.1%}", percent(it),
                         near(it, printed), (it.mean > 1 / 8) == (printed > 1 / 8), it)  # fmt: skip


# -- thresholds


def _service(m: Measured) -> Iterator[Claim]:
    if cases.SERVICE not in m.asked.mixes:
        return
    for level, word in zip(cases.LEVELS, ("halved", "doubled"), strict=True):
        for standby in ("", cases.FILLER):
            groups = {policy: Group([cases.SERVICE], always(cases.of_service(level, 0, policy,
                                                                             standby)))
                      for policy in ("aqa", "energy-qare")}  # fmt: skip
            if not m.has(*groups.values()):
                continue
            aqa, other = groups["aqa"], groups["energy-qare"]
            aside = f", standby jobs {standby}" if standby else ""
            found = m.share(aqa)
            yield judged(f"{cases.SERVICE}, thresholds {word}{aside}: hours that AQA's bid keeps",
                         "" if standby else "all constraints met", counted(m, aqa),
                         found.mean == 1.0, False, found)  # fmt: skip
            it = m.change(aqa, other, "kept")
            yield judged(f"{cases.SERVICE}, thresholds {word}{aside}: more than EnergyQARE keeps",
                         "yes" if level < 1 else "", f"{counted(m, other)} by it; "
                         f"by {percent(it)}", above(it, 0), it.mean > 0, it)  # fmt: skip
    for standby in ("", cases.FILLER):
        for sample in (True, False):
            each = [Group([cases.SERVICE], always(cases.of_service(1.0, seed, "aqa", standby,
                                                                   sample)))
                    for seed in cases.DRAWN]  # fmt: skip
            if not m.has(*each):
                continue
            shares = [m.count(one)[0] / m.count(one)[1] for one in each]
            it = mean_of(shares)
            how = "in sample" if sample else "held out"
            aside = f", standby jobs {standby}" if standby else ""
            yield judged(f"{cases.SERVICE}, ten sets of thresholds, {how}{aside}: hours kept",
                         "all ten sets are met" if sample and not standby else "",
                         f"{percent(it)}; some hour of each of {sum(it > 0 for it in shares)} sets",
                         it.mean == 1.0, False, it)  # fmt: skip


# -- the descent


def _descent(m: Measured) -> Iterator[Claim]:
    for standby in ("", cases.FILLER):
        each = Group(m.asked.mixes, partial(cases.of_descent, standby=standby))
        if not m.has(each):
            continue
        found = m.share(each)
        aside = f", standby jobs {standby}" if standby else ""
        yield judged(f"descent{aside}: hours in which a bid keeps all rules",
                     "always, in fewer than 200 steps" if not standby else "", counted(m, each),
                     found.mean == 1.0, False, found)  # fmt: skip
    found_w4 = m.outcome("W4", cases.of_descent("W4")) if "W4" in m.asked.mixes else None
    if found_w4 is not None and found_w4.steps:
        last = found_w4.steps[-1]["weights"]
        printed = W4_WEIGHT["is.D.64"]
        it = Interval(last["is.D.64"], np.nan, np.nan, 1)
        yield judged("W4: weight of is.D.64 when the descent ends", f"{printed:.1%}", percent(it),
                     near(it, printed), max(last, key=last.get) == "is.D.64", it)  # fmt: skip


# -- printed bids


def _printed(m: Measured) -> Iterator[Claim]:
    if "W3" in m.asked.mixes:
        bids = cases.of_printed("W3")
        groups = {name: Group(["W3"], always(bids[name])) for name in bids}
        if m.has(*groups.values()):
            for name, printed in (("no standby jobs", W3_ERRORS[0]), (cases.FILLER, W3_ERRORS[1])):
                it = m.share(groups[name], "error")
                yield judged(f"W3 at its printed bid: error, {name}", f"{printed:.1%}",
                             percent(it), near(it, printed), False, it)  # fmt: skip
            it = m.change(groups["no standby jobs"], groups[cases.FILLER], "error")
            yield judged("W3: standby jobs lower the error", "by 15.4 points", f"by {percent(it)}",
                         near(it, W3_ERRORS[0] - W3_ERRORS[1]), above(it, 0), it)  # fmt: skip
            for name in (cases.FILLER, cases.DRAWS_LITTLE):
                for variant in ("", "gaps"):
                    it = m.share(groups[name].of(variant), "error")
                    how = "in every gap" if variant else "while nobody waits"
                    yield shown(f"W3: error with {name} as standby jobs, {how}", "", percent(it),
                                it)  # fmt: skip
    if "W5" in m.asked.mixes:
        bids_5 = cases.of_printed("W5")["no standby jobs"]
        yield from _preempted(m, "W5 at its printed bid", Group(["W5"], always(bids_5)))
        yield from _preempted(m, "W5 at its own bids", Group(["W5"], cases.of_mix))
    if "W4" in m.asked.mixes:
        for name, setting in cases.of_printed("W4").items():
            each = Group(["W4"], always(setting))
            if m.has(each):
                found = m.share(each)
                yield judged(f"W4 at its printed bid, seven weights alike, {name}: hours kept",
                             "1 of 1" if name.startswith("no") else "", counted(m, each),
                             found.mean == 1.0, False, found)  # fmt: skip


def _preempted(m: Measured, name: str, own: Group) -> Iterator[Claim]:
    other = own.of("preemption")
    if not m.has(own):
        return
    for each, printed, word in ((own, W5_ERRORS[0], "without"), (other, W5_ERRORS[1], "with")):
        it = m.share(each, "error")
        yield judged(f"{name}: error {word} preemption", f"{printed:.1%}", percent(it),
                     near(it, printed), False, it)  # fmt: skip
    it = m.change(own, other, "error")
    falls = sum(a > b for a, b in zip(m.by_hour(own, "error"), m.by_hour(other, "error"),
                                      strict=True))  # fmt: skip
    yield judged(f"{name}: preemption lowers the error", "by 3.3 points",
                 f"by {percent(it)}, in {falls} of {m.count(own)[1]} hours",
                 near(it, W5_ERRORS[0] - W5_ERRORS[1]), above(it, 0), it)  # fmt: skip
    for key, word in (("rule", "tracking rule"), ("qos", "QoS"), ("kept", "all rules")):
        it = m.change(other, own, key)
        yield shown(f"{name}: hours that keep {word}, without and with preemption", "",
                    f"{m.count(own, key)[0]} and {m.count(other, key)[0]}", it)  # fmt: skip


# -- ten thousand servers


def _scale(m: Measured) -> Iterator[Claim]:
    if "W1" not in m.asked.mixes:
        return
    large, small = (Group(["W1"], always(cases.of_scale(size, m.asked.hours))) for size in (100, 1))
    if m.has(large):
        it = m.share(large, "saving")
        yield judged("10,000 servers, jobs of 100 times the size: saving", f"{SCALE_SAVING:.0%}",
                     percent(it), near(it, SCALE_SAVING), above(it, 0), it)  # fmt: skip
        found = m.share(large)
        yield judged("… hours that a bid keeps", "1 of 1", counted(m, large), found.mean == 1.0,
                     found.mean > 0.5, found)  # fmt: skip
    for word, each in (("jobs of 100 times the size", large), ("as many more jobs", small)):
        outcome = m.outcome("W1", each.setting("W1"))
        if outcome is not None:
            seconds = 200.0 * outcome.seconds / outcome.trials
            it = Interval(seconds, np.nan, np.nan, 1)
            yield judged(f"10,000 servers, {word}: 200 trials take",
                         "a few minutes" if each is large else "", f"{seconds:.1f} s",
                         seconds < 120.0, below(it, 120.0), it)  # fmt: skip
