"""The cases of the study, by part. A **setting** is what distinguishes cases beside their mix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from odonata.studies.aqa.printed import TABLE_4, W3_BID, W4_BID, W4_WEIGHT, W5_BID
from odonata.studies.aqa.simulation import COLD, OWN, VARIANTS, WARM, Offer, simulate
from odonata.study.contract import digest
from odonata.traces.mix import MIXES
from pdes.errors import Refused, require

Setting = Mapping[str, Any]
"""Fields of `Offer`."""

FILLER = "bt.C.16"
"""The type of standby jobs: its jobs are the smallest and draw the most."""
DRAWS_LITTLE = "is.D.4"
"""A type whose standby jobs add 35 W per server."""
STANDBYS = ("", FILLER)
CHEAPEST = "energy-qare, cheapest"
BIDDERS = ("aqa", "energy-qare", CHEAPEST, "tracking-only")
"""Who bids: EnergyQARE bids what is best for the QoS, as in the paper, or what is cheapest.
Tracking alone has EnergyQARE's bids, as in the paper, which is a variant, or bids of its own."""
RIVALS = ("aqa", "energy-qare")
SEEN = ("W4", "W13", "W5")
"""Mixes whose first hour is drawn."""
SERVICE, LEVELS, DRAWN = "W4", (0.5, 2.0), range(1, 11)
"""The mix whose thresholds are halved, doubled and drawn ten times: the paper's."""
REAL = 0.64
"""The standard deviation of a day of RegD."""
SHORT = {"slow_s": 30, "fast_s": 8}
SCALE = {"nodes": 10_000, "sample": True, "candidates": 200, "kept": True}
RISK, RISKED = 0.1, ("W2", "W4", "W5", "W9")
RISK_TRAINING = {"risk": RISK, "train": 40, "candidates": 300, "standby": FILLER}
TRAININGS = ((0.0, 6), (0.25, 6), (0.6, 6), (0.4, 12))
"""Margins, and hours that bids are made on: others than the usual ones."""
GAIN = 1.0
AGAIN = (*(name for name in VARIANTS if name != "tracking-only"), WARM)
"""What AQA's held-out bids are judged by again."""
MOST_HOURS, MOST_CANDIDATES = 1000, 100_000


def mixes_of(text: str) -> tuple[str, ...]:
    """Returns mixes by their names."""
    if text == "all":
        return tuple(TABLE_4)
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for name in names:
        if name not in TABLE_4:
            raise Refused(f"mixes = {name or text}: all, or some of {', '.join(TABLE_4)}")
    return names


@dataclass(frozen=True)
class AqaPlan:
    """What is asked for."""

    parts: tuple[str, ...]
    mixes: tuple[str, ...]
    hours: int
    candidates: int

    def __post_init__(self) -> None:
        require(2 <= self.hours <= MOST_HOURS, f"hours = {self.hours}: 2 .. {MOST_HOURS:,}")
        require(1 <= self.candidates <= MOST_CANDIDATES,
                f"candidates = {self.candidates}: 1 .. {MOST_CANDIDATES:,}")  # fmt: skip

    def of(self, mix: str, setting: Setting) -> Offer:
        """Returns a case."""
        how = MIXES[mix]
        fields = {"nodes": how.nodes, "judge": self.hours, "candidates": self.candidates}
        return Offer(mix, **{**fields, **setting})


# -- settings


def of_mix(mix: str, policy: str = "aqa", standby: str = "", sample: bool = True) -> Setting:
    """Returns the setting of a mix under a policy, one of BIDDERS."""
    found: dict[str, Any] = {"policy": policy, "standby": standby, "sample": sample}
    if policy == CHEAPEST:
        found |= {"policy": "energy-qare", "rule": "cost"}
    elif policy == "energy-qare":
        found["also"] = ("tracking-only",)
    elif policy == "aqa" and sample:
        found["also"] = () if standby else ("preemption",)
    elif policy == "aqa" and standby:
        found["also"] = AGAIN
    if sample and not standby and mix in SEEN and policy in RIVALS:
        found["kept"] = True
    return found


def of_service(
    level: float = 1.0, drawn: int = 0, policy: str = "aqa", standby: str = "", sample: bool = True
) -> Setting:
    """Returns the setting of other thresholds."""
    found = {**of_mix(SERVICE, policy, standby, sample), "level": level, "drawn": drawn}
    if policy == "aqa":
        found["also"] = ()
    return found


def of_signal(policy: str = "aqa", **signal: Any) -> Setting:
    """Returns the setting of held-out bids for another signal."""
    found = {"policy": policy, "standby": FILLER, **signal}
    return found if policy == "aqa" else {**found, "also": ("tracking-only",)}


def of_training(margin: float, train: int) -> Setting:
    """Returns the setting of held-out bids with another margin, or made on other hours."""
    return {"standby": FILLER, "margin": margin, "train": train}


def of_descent(mix: str, standby: str = "") -> Setting:
    """Returns the setting of the paper's descent."""
    kept = {"kept": True} if mix == "W4" else {}
    return {"optimiser": "gradient", "sample": True, "standby": standby, **kept}


def of_printed(mix: str) -> Mapping[str, Setting]:
    """Returns the settings of a printed bid, by name."""
    if mix == "W3":
        bid: Setting = {"bid": W3_BID, "sample": True, "kept": True}
        return {"no standby jobs": bid, FILLER: {**bid, "standby": FILLER, "also": ("gaps",)},
                DRAWS_LITTLE: {**bid, "standby": DRAWS_LITTLE, "also": ("gaps",)}}  # fmt: skip
    if mix == "W5":
        return {"no standby jobs": {"bid": W5_BID, "sample": True, "also": ("preemption",)}}
    others = [name for name in MIXES["W4"].types if name not in W4_WEIGHT]
    left = (1.0 - sum(W4_WEIGHT.values())) / len(others)
    weights = tuple(W4_WEIGHT.items()) + tuple((name, left) for name in others)
    bid = {"bid": W4_BID, "weights": weights, "sample": True}
    return {"no standby jobs": bid, FILLER: {**bid, "standby": FILLER}}


PRINTED_BIDS = ("W3", "W4", "W5")


def of_scale(size: int, hours: int) -> Setting:
    """Returns the setting of 10,000 servers, on which jobs have so many times their nodes."""
    standby = "" if size > 1 else FILLER
    return {**SCALE, "size": size, "standby": standby, "judge": hours if size > 1 else 2}


def of_gain() -> Setting:
    """Returns the setting of bids that are made for weights that adapt."""
    return {"standby": FILLER, "options": (("gain", GAIN),)}


def of_risk(deviation: float) -> Setting:
    """Returns the setting of bids at a stated risk."""
    return {**RISK_TRAINING, "deviation": deviation}


def settings(asked: AqaPlan, part: str) -> Iterator[tuple[str, Setting]]:
    """Returns the settings of a part, each with its mix."""
    service, scale = SERVICE in asked.mixes, "W1" in asked.mixes
    if part == "mixes":
        for mix in asked.mixes:
            for policy in BIDDERS:
                for sample in (True, False):
                    yield from ((mix, of_mix(mix, policy, each, sample)) for each in STANDBYS)
    elif part == "service" and service:
        for standby in STANDBYS:
            for policy in RIVALS:
                yield SERVICE, of_mix(SERVICE, policy, standby)
                yield from ((SERVICE, of_service(level, 0, policy, standby)) for level in LEVELS)
            for sample in (True, False):
                yield from ((SERVICE, of_service(1.0, seed, "aqa", standby, sample))
                            for seed in DRAWN)  # fmt: skip
    elif part == "signals":
        for mix in asked.mixes:
            yield mix, of_mix(mix, "aqa", FILLER, False)
            yield mix, of_signal(deviation=REAL)
            yield from ((mix, of_signal(policy, **SHORT)) for policy in RIVALS)
    elif part == "margins":
        for mix in asked.mixes:
            yield mix, of_mix(mix, "aqa", FILLER, False)
            yield from ((mix, of_training(*each)) for each in TRAININGS)
    elif part == "gradient":
        for mix in asked.mixes:
            yield from ((mix, of_descent(mix, standby)) for standby in STANDBYS)
    elif part == "printed":
        for mix in PRINTED_BIDS:
            if mix in asked.mixes:
                yield from ((mix, each) for each in of_printed(mix).values())
        if "W5" in asked.mixes:
            yield "W5", of_mix("W5")
    elif part == "scale" and scale:
        yield from (("W1", of_scale(size, asked.hours)) for size in (100, 1))
    elif part == "weights":
        for mix in asked.mixes:
            yield mix, of_mix(mix, "aqa", FILLER, False)
            yield mix, of_gain()
    elif part == "risk":
        for mix in RISKED:
            if mix in asked.mixes:
                yield from ((mix, of_risk(deviation)) for deviation in (0.40, REAL))


def cases(asked: AqaPlan) -> list[Offer]:
    """Returns each case once, in the order of the parts."""
    found = (asked.of(mix, each) for part in asked.parts for mix, each in settings(asked, part))
    return [*dict.fromkeys(found)]


def mark() -> str:
    """Returns a digest of this simulator, of small cases of every kind."""
    few = [
        Offer("W6", judge=2, train=2, candidates=20, also=("preemption", "gain 1", WARM)),
        Offer("W6", judge=1, sample=True, candidates=5, optimiser="gradient", standby=FILLER),
        Offer("W6", policy="energy-qare", judge=1, sample=True, also=("tracking-only",)),
    ]
    return digest(f"{name} {sorted(row.items(), key=str)}" for it in map(simulate, few)
                  for name in (OWN, "tracking-only", "preemption", "gain 1", COLD, WARM)
                  for row in it.hours.get(name, ()))  # fmt: skip
