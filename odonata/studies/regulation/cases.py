"""The hours of the study, by the statement that they are for; a part is one or more of these.

A **setting** is what distinguishes cases besides their seed. Every hour of a setting has the seed
of an hour of the default setting, so that differences are between hours with the same jobs, as far
as the types are the same, and the same signal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from odonata.jobs.signal import LEAST_DEVIATION, MOST_DEVIATION
from odonata.studies.regulation.simulation import GIVEN, NODES, Hour, simulate
from odonata.study.contract import digest
from pdes.errors import require

Setting = Mapping[str, Any]
"""Fields of `Hour` that differ from those of the default setting."""

DEFAULT: Setting = {}
AS_PRINTED: Setting = {"bid": GIVEN}
ALONE: Setting = {"standby": False}
RIVALS = ("tracking-only", "energy-qare")
LOADS = (0.25, 0.5, 0.75)
SIZES = (20, 50, 100, 500, 1000, 2500)
"""The thesis's go from 20 to 2,500; 50 is ours."""
LEVELS = {"loose": 0.5, "medium": 1.0, "tight": 2.0}
"""By which rates of delay are multiplied and thresholds divided: the thesis's table is lost."""
MIXES = {"W1": "qosg-W1", "W2": "qosg", "W3": "qosg-W3"}
TYPES = ("fs", "sc", "bt", "lu", "mg", "sp")
SIGNALS = ((0.40, 90, 20), (0.40, 30, 8), (0.40, 0, 0), (0.64, 90, 20), (0.64, 30, 8))
"""Standard deviation, and the two memories in s. No memory is what the conditions on delays assume.
"""
OTHERS = (101, 102, 103, 104)
"""Seeds of four other signals, with the jobs of each hour."""
AVERAGES_W, RESERVES_W = (16e3, 17e3, 18e3, 19e3, 20e3, 21e3), (2.5e3, 5e3, 7.5e3, 10e3)
"""Bids that are tried without standby jobs."""
SMALL, LARGE = 20, 1000
RATES: Mapping[str, tuple[Setting, tuple[float, ...]]] = {
    "six types": ({}, (1.5, 2.0, 3.0)),
    "20 servers": ({"nodes": SMALL}, (0.2, 0.5)),
    "1,000 servers": ({"nodes": LARGE}, (10.0, 20.0)),
    "bt alone": ({"mix": "bt"}, (2.0, 4.0, 8.0)),
}
"""Settings, and numbers by which rates of delay are multiplied there, with the same thresholds."""
WHITE: Setting = {"slow_s": 0, "fast_s": 0}
MOST_HOURS, MOST_MEMORY_S = 1000, 3600


@dataclass(frozen=True)
class RegulationPlan:
    """What is asked for."""

    parts: tuple[str, ...]
    hours: int
    deviation: float
    slow_s: int
    fast_s: int

    def __post_init__(self) -> None:
        require(1 <= self.hours <= MOST_HOURS, f"hours = {self.hours}: 1 .. {MOST_HOURS:,}")
        require(LEAST_DEVIATION <= self.deviation <= MOST_DEVIATION,
                f"deviation = {self.deviation:g}: {LEAST_DEVIATION:g} .. {MOST_DEVIATION:g}"
                )  # fmt: skip
        for name, value in (("slow-memory", self.slow_s), ("fast-memory", self.fast_s)):
            require(0 <= value <= MOST_MEMORY_S, f"{name} = {value}: 0 .. {MOST_MEMORY_S:,} s")

    def at(self, seed: int, setting: Setting) -> Hour:
        """Returns an hour of a setting."""
        mine = {"deviation": self.deviation, "slow_s": self.slow_s, "fast_s": self.fast_s}
        found = Hour(seed, **{**mine, **setting})
        return replace(found, kept=seed == 1 and kept(setting))

    def of(self, setting: Setting) -> list[Hour]:
        """Returns all hours of a setting."""
        return [self.at(seed, setting) for seed in range(1, self.hours + 1)]


def kept(setting: Setting) -> bool:
    """Tells whether the first hour of a setting is drawn."""
    return {name: value for name, value in setting.items() if name != "standby"} == AS_PRINTED


def rivals(standby: bool) -> dict[str, Setting]:
    """Returns the settings of other policies, at the bids of QoSG and at their own."""
    found: dict[str, Setting] = {}
    for name in RIVALS:
        for bid in ("qosg", name):
            found[f"{name}, {bid}"] = {"policy": name, "bid": bid, "standby": standby}
    return found


def settings(part: str) -> Iterator[Setting]:
    """Returns the settings of a part."""
    yield DEFAULT
    if part == "default":
        yield AS_PRINTED
    elif part == "policies":
        yield from rivals(True).values()
        yield from rivals(False).values()
    elif part == "load":
        yield from map(of_load, LOADS)
    elif part == "size":
        for nodes in SIZES:
            yield of_size(nodes)
            yield of_size(nodes, **AS_PRINTED)
        yield of_size(LARGE, **WHITE)
    elif part == "level":
        yield from map(of_level, LEVELS.values())
    elif part == "mix":
        yield from map(of_mix, MIXES)
    elif part == "types":
        yield from map(of_mix, TYPES)
    elif part == "signals":
        yield AS_PRINTED
        yield from ({**AS_PRINTED, "signal": seed} for seed in OTHERS)
        yield from (signal(*each) for each in SIGNALS)
    elif part == "standby":
        yield ALONE
        yield {**ALONE, **AS_PRINTED}
        yield from (tried(high, low) for high in AVERAGES_W for low in RESERVES_W)
    elif part == "rates":
        for setting, factors in RATES.values():
            yield from ({**setting, "rates": factor} for factor in (1.0, *factors))
    elif part == "warm":
        yield from warmed().values()
    else:
        yield from refitted().values()


def of_load(load: float) -> Setting:
    """Returns the setting of a utilisation."""
    return {} if load == 0.5 else {"load": load}


def of_size(nodes: int, **more: Any) -> Setting:
    """Returns the setting of a size of the machine."""
    return {**more, **({} if nodes == NODES else {"nodes": nodes})}


def of_level(level: float) -> Setting:
    """Returns the setting of a level of service."""
    return {} if level == 1.0 else {"level": level}


def of_mix(name: str) -> Setting:
    """Returns the setting of a mix of the thesis, or of a type alone."""
    mix = MIXES.get(name, name)
    return {} if mix == "qosg" else {"mix": mix}


def tried(average_w: float, reserve_w: float) -> Setting:
    """Returns the setting of a bid without standby jobs."""
    return {**ALONE, "bid": (average_w, reserve_w)}


def signal(deviation: float, slow_s: int, fast_s: int) -> Setting:
    """Returns the setting of another signal, whatever the plan's is."""
    return {"deviation": deviation, "slow_s": slow_s, "fast_s": fast_s}


def warmed() -> dict[str, Setting]:
    """Returns the settings whose hour comes after another one, by the names of those without."""
    return {name: {**setting, "before": 1}
            for name, setting in (("default", DEFAULT), ("printed bid", AS_PRINTED),
                                  ("75 %", of_load(0.75)), ("no standby", ALONE))}  # fmt: skip


def refitted() -> dict[str, Setting]:
    """Returns the settings in which the conditions on delays are fitted anew, by their names."""
    anew: Setting = {"bid": "refitted"}
    return {"default": anew, f"{SMALL} servers": {**anew, "nodes": SMALL},
            "75 %": {**anew, "load": 0.75}, "no standby": {**anew, **ALONE},
            **{f"{one} alone": {**anew, "mix": one} for one in ("fs", "bt")}}  # fmt: skip


def cases(asked: RegulationPlan) -> list[Hour]:
    """Returns each case once, in the order of the parts."""
    found = (case for part in asked.parts for setting in settings(part)
             for case in asked.of(setting))  # fmt: skip
    return [*dict.fromkeys(found)]


def mark() -> str:
    """Returns a digest of this simulator, of an hour of a small machine under every policy and
    bid."""
    few = [Hour(1, nodes=10, rates=0.1), Hour(1, nodes=10, bid="refitted", standby=False)]
    few += [Hour(1, nodes=10, policy=name, bid=GIVEN) for name in RIVALS]
    few += [Hour(1, nodes=10, policy="tracking-only", bid="tracking-only")]
    found = map(simulate, few)
    return digest(f"{it.average_w:.9g} {it.reserve_w:.9g} {it.error or 0:.9g} {it.standby:.9g} "
                  f"{sorted(it.q90.items())}" for it in found)  # fmt: skip
