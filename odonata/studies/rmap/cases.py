"""The cases of the study, by the question that they answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from odonata.studies.rmap.simulation import (
    ADAPTIVE_0,
    ADAPTIVE_10,
    ADAPTIVE_20,
    ADAPTIVE_30,
    NAIVE,
    OPTIONS,
    ORACLE_0,
    POLICIES,
    READ,
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
RANDOM_1, RANDOM_2 = PATTERN_NAMES = ("random trace 1", "random trace 2")
PATTERNS = dict(zip(PATTERN_NAMES, ("early", "even"), strict=True))
"""The two random traces of the thesis, and how their jobs arrive."""
BOTH, QUEUED = "both random traces", "large, queued"
"""What is said of both of these; and large jobs that queue as long as those of table 5.4."""
QUEUED_S = 20.0
"""The gap of those: with it traditional takes about as long as in table 5.4."""
ON_RANDOM = (TRADITIONAL, "traditional model", NAIVE, ORACLE_0, ADAPTIVE_0, ADAPTIVE_10,
             ADAPTIVE_20, ADAPTIVE_30, UNLIMITED)  # fmt: skip
"""The policies under which the two random traces are simulated."""
IN_QUEUES = (TRADITIONAL, NAIVE, ADAPTIVE_0, ADAPTIVE_10, ADAPTIVE_20, ADAPTIVE_30)
"""Those of table 5.4."""
VARIATION = 0.23
"""By how much sockets differ in power (P. 7.1)."""
VARIED = (TRADITIONAL, NAIVE, ORACLE_0, ADAPTIVE_0, f"{ORACLE_0} least margin")
"""The policies under which nodes differ."""
OPTIONAL = (TRADITIONAL, NAIVE, ORACLE_0, f"{NAIVE} priorities", f"{ORACLE_0} priorities",
            f"{NAIVE} partition", f"{ORACLE_0} partition")  # fmt: skip
"""Those under which priorities and a partition are tried."""
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
        return Traced(kind, seed, self.ends_w, COMPARED, **changed)

    def random(self, which: str, seed: int) -> Traced:
        """Returns one of the two random traces, with another seed."""
        kept = (HIGH_W,) if HIGH_W in self.bounds_w and which == RANDOM_2 else ()
        bounds_w = tuple(sorted({it for it in self.bounds_w if it <= HIGH_W}))
        return Traced("random", seed, bounds_w, ON_RANDOM, self.gap_s, self.requests, kept=kept,
                      arrivals=PATTERNS[which])  # fmt: skip

    def queued(self, seed: int) -> Traced:
        """Returns a large trace whose jobs queue for as long as in table 5.4."""
        return Traced("large", seed, (LOW_W,), IN_QUEUES, QUEUED_S, self.requests, kept=(LOW_W,))

    def read(self, kind: str, seed: int, gap_s: float) -> Traced:
        """Returns a trace under every reading of naive."""
        from odonata.studies.rmap.readings import READINGS

        policies = (TRADITIONAL, NAIVE, ADAPTIVE_0, *(READ + name for name in READINGS))
        bounds_w = tuple(sorted({it for it in self.bounds_w if it <= HIGH_W}))
        return Traced(kind, seed, bounds_w, policies, gap_s, self.requests)

    def optional(self, seed: int) -> Traced:
        """Returns a random trace with priorities, and with a partition."""
        return Traced("random", seed, self.ends_w, OPTIONAL, self.gap_s, self.requests)

    def varied(self, kind: str, seed: int, variation: float) -> Traced:
        """Returns a trace on nodes that differ, or on those that do not."""
        return Traced(kind, seed, self.ends_w, VARIED, self.gap_s, self.requests,
                      variation=variation)  # fmt: skip

    @property
    def ends_w(self) -> tuple[float, ...]:
        """Returns the lowest bound and 14,000 W, as far as they were asked for."""
        return tuple(sorted({self.low_w, HIGH_W} & set(self.bounds_w)))

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
        if "random" in asked.kinds and min(asked.bounds_w) <= HIGH_W:
            for which in PATTERNS:
                yield asked.random(which, seed)
        if "large" in asked.kinds and LOW_W in asked.bounds_w:
            yield asked.queued(seed)


def _choices(asked: RmapPlan) -> Iterator[Part]:
    for seed in asked.chosen_seeds:
        for kind in asked.kinds:
            for choice in CHOICES:
                yield asked.chosen(kind, seed, choice)


def _naive(asked: RmapPlan) -> Iterator[Part]:
    if min(asked.bounds_w) > HIGH_W:
        return
    for seed in asked.chosen_seeds:
        for kind in asked.kinds:
            yield asked.read(kind, seed, asked.gap_s)
        if "large" in asked.kinds:
            yield asked.read("large", seed, QUEUED_S)


def _options(asked: RmapPlan) -> Iterator[Part]:
    for seed in asked.chosen_seeds:
        if "random" in asked.kinds:
            yield asked.optional(seed)
        for kind in asked.kinds:
            yield asked.varied(kind, seed, 0.0)
            yield asked.varied(kind, seed, VARIATION)


def _prediction(asked: RmapPlan) -> Iterator[Part]:
    for noise in NOISES:
        yield asked.trained(noise)
        yield asked.trained(noise, sampling="spread")
    for way in WAYS.values():
        yield asked.trained(0.0, **way)


MAKERS: dict[str, Callable[[RmapPlan], Iterator[Part]]] = {
    "prediction": _prediction,
    "traces": _traces,
    "naive": _naive,
    "options": _options,
    "choices": _choices,
}


def cases(asked: RmapPlan) -> list[Part]:
    """Returns each case once, in order of what is worth most."""
    made = (case for part, make in MAKERS.items() if part in asked.parts for case in make(asked))
    return list(dict.fromkeys(made))


def mark() -> str:
    """Returns a digest of this simulator under every policy, on one trace, and of the model."""
    some = Traced("random", 1, (LOW_W,), tuple(POLICIES), 60.0, noise=0.05)
    early = Traced("large", 1, (LOW_W,), (TRADITIONAL, *OPTIONS), 60.0, arrivals="early")
    even = Traced("random", 1, (LOW_W,), (NAIVE,), 60.0, arrivals="even", variation=VARIATION)
    read = RmapPlan((), 1, (), (LOW_W,), 60.0, "packed", 1).read("random", 1, 60.0)
    found = [simulate(it) for it in (some, early, even, read, Trained(0.02, 0.02, 2))]
    return digest(f"{name} {value:.9g}" for one in found for row in one.rows.values()
                  for name, value in row.items())  # fmt: skip
