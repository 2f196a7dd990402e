"""The cases of the study, by the question that they answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from odonata.studies.rmap.simulation import (
    ADAPTIVE_0,
    ADAPTIVE_20,
    NAIVE,
    ORACLE_0,
    POLICIES,
    TRADITIONAL,
    UNLIMITED,
    Traced,
    Trained,
    simulate,
)
from odonata.study.contract import digest
from pdes.errors import require

Part = Traced | Trained
LOW_W, HIGH_W, PEAK_W = 6500.0, 14000.0, 14720.0
"""The lowest bound, the highest at which policies are compared, and what all nodes can draw."""
LEAST_W = 2000.0
"""The least bound: eight nodes with all cores and no cap draw up to 1,500 W, and 15 % may be kept
free."""
SHOWN_AT_W = {"large": LOW_W, "random": HIGH_W}
"""Under which bound single jobs of a kind are shown (figures 5.10 to 5.13)."""
CHOICE_TRACES = 30
COMPARED = (TRADITIONAL, NAIVE, ORACLE_0, ADAPTIVE_0, ADAPTIVE_20, UNLIMITED)
"""The policies whose sensitivity to choices is measured."""
GAPS_S = (10.0, 20.0, 30.0, 60.0, 120.0, 240.0)
CHOICES: Mapping[str, Mapping[str, Any]] = {
    **{f"a gap of {gap_s:g} s": {"gap_s": gap_s} for gap_s in GAPS_S},
    "recorded requests": {"requests": "recorded"},
    "first-fit": {"everywhere": (("backfill", "first-fit"),)},
    "no backfilling": {"everywhere": (("backfill", "none"),)},
    "short of either": {"adaptive": (("short_of", "either"),)},
    "short of either, a gap of 20 s": {"adaptive": (("short_of", "either"),), "gap_s": 20.0},
    "recorded requests, a gap of 20 s": {"requests": "recorded", "gap_s": 20.0},
    "noise of 5 %": {"noise": 0.05},
}
"""What the thesis leaves open, changed one at a time from what the study has."""
NOISES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
NOISE, TRAININGS = 0.02, 50
"""The level of noise that runs of the thesis had (P. 3.3: 1 to 2 % from run to run), and how often
the model is trained at each."""


@dataclass(frozen=True)
class RmapPlan:
    """The extent of the study: which of PARTS, how many traces of each kind, which kinds, bounds in
    W, the mean time between submissions, how users request times, and the first seed."""

    parts: tuple[str, ...]
    traces: int
    kinds: tuple[str, ...]
    bounds_w: tuple[float, ...]
    gap_s: float
    requests: str
    seed: int

    def __post_init__(self) -> None:
        require(1 <= self.traces <= 100_000, f"traces = {self.traces}: 1 .. 100000")
        require(0 <= self.seed < 2**62, f"seed = {self.seed}: 0 .. 2**62 - 1")
        require(0 < self.gap_s < math.inf, f"gap = {self.gap_s:g}: a number of seconds above 0")
        require(bool(self.bounds_w), "bounds: at least one, in W")
        for bound_w in self.bounds_w:
            require(LEAST_W <= bound_w <= 1e6, f"bounds: {bound_w:g} W is not within 2,000 .. "
                    "1,000,000 W; with less, an application could never start uncapped"
                    )  # fmt: skip

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + self.traces)

    @property
    def low_w(self) -> float:
        """Returns the lowest bound that was asked for."""
        return min(self.bounds_w)

    def traced(self, kind: str, seed: int) -> Traced:
        """Returns a trace under all policies and bounds."""
        bound_w = SHOWN_AT_W.get(kind)
        kept = (bound_w,) if bound_w in self.bounds_w else ()
        return Traced(kind, seed, tuple(sorted(set(self.bounds_w))), tuple(POLICIES), self.gap_s,
                      self.requests, kept=kept)  # type: ignore[arg-type]  # fmt: skip

    def chosen(self, kind: str, seed: int, choice: str) -> Traced:
        """Returns a trace at the lowest bound and at 14,000 W with one thing changed."""
        changed: dict[str, Any] = {"gap_s": self.gap_s, "requests": self.requests}
        changed |= CHOICES[choice]
        bounds_w = tuple(sorted({self.low_w, HIGH_W} & set(self.bounds_w)))
        return Traced(kind, seed, bounds_w, COMPARED, **changed)

    @property
    def chosen_seeds(self) -> range:
        return self.seeds[:CHOICE_TRACES]

    def trained(self, noise: float = NOISE, **how: Any) -> Trained:
        return Trained(noise, noise, TRAININGS, **how)


WAYS: dict[str, dict[str, Any]] = {
    "trained on all": {"share": 1.0},
    "without turbo": {"without_turbo": True},
}
"""How else the model is trained, without noise, to see what its errors come from."""


def _traces(asked: RmapPlan) -> Iterator[Part]:
    for seed in asked.seeds:
        for kind in asked.kinds:
            yield asked.traced(kind, seed)


def _choices(asked: RmapPlan) -> Iterator[Part]:
    for seed in asked.chosen_seeds:
        for kind in asked.kinds:
            for choice in CHOICES:
                yield asked.chosen(kind, seed, choice)


def _prediction(asked: RmapPlan) -> Iterator[Part]:
    for noise in NOISES:
        yield asked.trained(noise)
        yield asked.trained(noise, sampling="spread")
    for way in WAYS.values():
        yield asked.trained(0.0, **way)


MAKERS: dict[str, Callable[[RmapPlan], Iterator[Part]]] = {
    "prediction": _prediction,
    "traces": _traces,
    "choices": _choices,
}


def cases(asked: RmapPlan) -> list[Part]:
    """Returns each case once, in order of what is worth most."""
    made = (case for part, make in MAKERS.items() if part in asked.parts for case in make(asked))
    return list(dict.fromkeys(made))


def mark() -> str:
    """Returns a digest of this simulator under every policy, on one trace, and of the model."""
    some = Traced("random", 1, (LOW_W,), tuple(POLICIES), 60.0, noise=0.05)
    found = [simulate(some), simulate(Trained(0.02, 0.02, 2))]
    return digest(f"{name} {value:.9g}" for one in found for row in one.rows.values()
                  for name, value in row.items())  # fmt: skip
