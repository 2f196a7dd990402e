"""What the paper does not ask: held-out hours, other signals, every step alone, weights that adapt,
and bids that know their risk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from odonata.bids.chance import Chance
from odonata.studies.aqa import cases
from odonata.studies.aqa.found import Group, Measured, always, counted, mean_of, of_counts
from odonata.studies.aqa.simulation import COLD, FRESH_HOURS, MARGIN, VARIANTS, WARM
from odonata.study.contract import Claim
from odonata.study.verdicts import above, below, judged, percent, shown

STEPS = ("in order", "no sharing", "whole jobs", "no caps", "planned caps", "gaps", "preemption")


def _group(m: Measured, policy: str, standby: str, sample: bool, variant: str = "") -> Group:
    return Group(m.asked.mixes, lambda mix: cases.of_mix(mix, policy, standby, sample), variant)


OWN_BIDS = "tracking-only, bids of its own"
PAIRS = (("aqa", "energy-qare"), ("aqa", cases.CHEAPEST), ("energy-qare", "tracking-only"),
         ("energy-qare", OWN_BIDS))  # fmt: skip
"""The pairs of policies that are compared: whether the first is better."""


def groups_of(m: Measured, standby: str, sample: bool) -> Mapping[str, Group]:
    """Returns the hours of all who bid; `tracking-only` has the bids of EnergyQARE, as in the
    paper."""
    found = {name: _group(m, name, standby, sample) for name in ("aqa", "energy-qare",
                                                                 cases.CHEAPEST)}  # fmt: skip
    return {**found, "tracking-only": found["energy-qare"].of("tracking-only"),
            OWN_BIDS: _group(m, "tracking-only", standby, sample)}  # fmt: skip


def samples(m: Measured) -> Iterator[Claim]:
    """Returns what bids keep and save, in sample and held out, with standby jobs and without."""
    for sample, how in ((True, "in sample"), (False, "held out")):
        for standby in ("", cases.FILLER):
            groups = groups_of(m, standby, sample)
            if not m.has(*groups.values()):
                continue
            aside = f", standby jobs {standby}" if standby else ", no standby jobs"
            for name, each in groups.items():
                it = m.share(each, "saving")
                middle = np.median(m.of_mixes(each, "saving"))
                yield shown(f"{how}{aside}: hours that {name} keeps", "", counted(m, each),
                            m.share(each))  # fmt: skip
                yield shown(f"{how}{aside}: saving of {name}", "",
                            f"{percent(it)}, median over the mixes {middle:.1%}", it)  # fmt: skip
            yield from _ordered(m, groups, f"{how}{aside}")
    held = groups_of(m, cases.FILLER, False)["aqa"]
    if m.has(held):
        yield from _steps(m, held)
        yield from _warm(m, held)


def _ordered(m: Measured, groups: Mapping[str, Group], words: str) -> Iterator[Claim]:
    for one, other in PAIRS:
        for key, what in (("kept", "keeps more hours"), ("saving", "saves more")):
            it = m.change(groups[one], groups[other], key)
            yield judged(f"{words}: {one} {what} than {other}", "", f"by {percent(it)}",
                         above(it, 0), it.mean > 0, it)  # fmt: skip


def _steps(m: Measured, held: Group) -> Iterator[Claim]:
    """Returns what every step of AQA does at the same bids."""
    for name in STEPS:
        other = held.of(name)
        kept, error = (m.change(other, held, key) for key in ("kept", "error"))
        yield shown(f"{name}: hours kept, beside all of AQA", "",
                    f"{counted(m, other)}; {percent(kept)} more", kept)  # fmt: skip
        there = percent(m.share(other, "error"))
        yield shown(f"{name}: error, beside all of AQA", "", f"{there}; {percent(error)} more",
                    error)  # fmt: skip


def _warm(m: Measured, held: Group) -> Iterator[Claim]:
    cold, warm = held.of(COLD), held.of(WARM)
    for name, each in (("that begins empty", cold), ("that begins with jobs", warm)):
        yield shown(f"an hour {name}: hours kept", "", counted(m, each), m.share(each))
    for key, word in (("kept", "hours kept"), ("error", "error"), ("saving", "saving")):
        it = m.change(warm, cold, key)
        yield shown(f"an hour that begins with jobs: {word}, beside the hour before", "",
                    f"{percent(it)} more", it)  # fmt: skip


# -- other signals


def signals(m: Measured) -> Iterator[Claim]:
    own = _group(m, "aqa", cases.FILLER, False)
    trained = Group(m.asked.mixes, always(cases.of_signal(deviation=cases.REAL)))
    if m.has(own, trained):
        moved = own.of("0.64")
        yield shown("bids made at 0.40: hours kept at 0.40", "", counted(m, own), m.share(own))
        for name, each in (("0.40", moved), ("0.64", trained)):
            yield shown(f"bids made at {name}: hours kept at 0.64", "", counted(m, each),
                        m.share(each))  # fmt: skip
        it = m.change(own, moved, "kept")
        yield judged("bids made at 0.40 keep fewer hours at 0.64", "", f"{percent(it)} fewer",
                     above(it, 0), it.mean > 0, it)  # fmt: skip
        it = m.change(trained, moved, "kept")
        yield judged("bids made at 0.64 keep more there than those made at 0.40", "",
                     f"{percent(it)} more", above(it, 0), it.mean > 0, it)  # fmt: skip
        yield shown("bids made at 0.64: saving there", "", percent(m.share(trained, "saving")),
                    m.share(trained, "saving"))  # fmt: skip
    for policy in ("aqa", "energy-qare"):
        short = Group(m.asked.mixes, always(cases.of_signal(policy, **cases.SHORT)))
        if m.has(short):
            yield shown(f"memories of 30 and 8 s: hours kept by {policy}", "", counted(m, short),
                        m.share(short))  # fmt: skip
            it = m.share(short, "saving")
            yield shown(f"memories of 30 and 8 s: saving of {policy}", "", percent(it), it)


# -- margins


def margins(m: Measured) -> Iterator[Claim]:
    own = _group(m, "aqa", cases.FILLER, False)
    groups = {(MARGIN, 6): own}
    groups |= {each: Group(m.asked.mixes, always(cases.of_training(*each)))
               for each in cases.TRAININGS}  # fmt: skip
    if not m.has(*groups.values()):
        return
    for (margin, train), group in sorted(groups.items(), key=lambda it: (it[0][1], it[0][0])):
        middle = np.median(m.of_mixes(group, "saving"))
        yield shown(f"made on {train} hours with a margin of {margin:g}: hours kept", "",
                    f"{counted(m, group)}; saving {middle:.1%}, the median over the mixes",
                    m.share(group))  # fmt: skip


# -- weights that adapt


def weights(m: Measured) -> Iterator[Claim]:
    own = _group(m, "aqa", cases.FILLER, False)
    made = Group(m.asked.mixes, always(cases.of_gain()))
    if not m.has(own, made):
        return
    for name, each in (("gain 1, at the bids of fixed weights", own.of("gain 1")),
                       ("gain 4, at the bids of fixed weights", own.of("gain 4")),
                       ("gain 16, at the bids of fixed weights", own.of("gain 16")),
                       (f"gain {cases.GAIN:g}, at bids made for it", made)):  # fmt: skip
        it = m.change(each, own, "kept")
        yield judged(f"weights that adapt keep more hours: {name}", "", f"{counted(m, each)}; "
                     f"{percent(it)} more", above(it, 0), it.mean > 0, it)  # fmt: skip
        saved = m.change(each, own, "saving")
        yield shown(f"… and save more: {name}", "", percent(saved), saved)


# -- risk


def risk(m: Measured) -> Iterator[Claim]:
    for mix in cases.RISKED:
        for deviation in (0.40, cases.REAL):
            found = m.outcome(mix, cases.of_risk(deviation)) if mix in m.asked.mixes else None
            if found is None:
                continue
            failed = FRESH_HOURS - sum(row["kept"] for row in found.hours[""])
            chance = Chance(*found.chance["judged"])
            low, high = chance.interval
            least, most = chance.next(FRESH_HOURS)
            fresh = of_counts(failed, FRESH_HOURS)
            name = f"{mix}, deviation {deviation:g}, risk {cases.RISK:.0%}"
            yield shown(f"{name}: chance of a failed hour", "",
                        f"{chance.share:.1%} ({low:.1%} to {high:.1%})",
                        of_counts(*found.chance["judged"]))  # fmt: skip
            yield judged(f"{name}: failed share of {FRESH_HOURS} fresh hours",
                         f"{least} to {most} hours, as foretold", f"{failed} ({percent(fresh)})",
                         least <= failed <= most, False, fresh)  # fmt: skip
            yield judged(f"{name}: it is not above the stated risk", "", percent(fresh),
                         below(fresh, cases.RISK), fresh.mean <= cases.RISK, fresh)  # fmt: skip
            saved = mean_of(row["saving"] for row in found.hours[""])
            yield shown(f"{name}: saving", "", percent(saved), saved)


PARTS: Mapping[str, Callable[[Measured], Iterable[Claim]]] = {
    "signals": signals, "margins": margins, "weights": weights, "risk": risk
}  # fmt: skip
assert set(STEPS) <= set(VARIANTS)
