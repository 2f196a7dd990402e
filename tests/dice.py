"""A study that takes no time: the worked example of `odonata.study.contract`, with pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odonata.study.contract import Case, Claim, Option, Study, digest
from odonata.study.verdicts import yes_or_no
from pdes.errors import Fault, require

LOADED = 13
"""A die of so many sides cannot be rolled."""


@dataclass(frozen=True)
class Roll(Case):
    sides: int
    seed: int
    pause: float = 0.0

    @property
    def weight(self) -> float:
        return float(self.sides)

    def __str__(self) -> str:
        return f"roll {self.seed} of {self.sides} sides"


@dataclass(frozen=True)
class DicePlan:
    rolls: int = 10
    sides: tuple[int, ...] = (6, 20)
    pause: float = 0.0


@dataclass(frozen=True)
class Shown:
    value: int


class Dice(Study[DicePlan, Roll, Shown]):
    name, about = "dice", "Is the mean of a die half of its sides and a half?"
    options = (Option("rolls", "Rolls of each die.", 10, int),)
    outcome = Shown

    def ask(self, rolls: int) -> DicePlan:
        require(rolls > 0, f"rolls = {rolls}: at least 1")
        return DicePlan(rolls)

    def cases(self, asked: DicePlan, outcomes: Mapping[str, Shown]) -> Sequence[Roll]:
        return [Roll(s, seed, asked.pause) for s in asked.sides for seed in range(asked.rolls)]

    def simulate(self, case: Roll) -> Shown:
        time.sleep(case.pause)
        if case.sides == LOADED:
            raise Fault("this die is loaded")
        return Shown(random.Random(f"{case.sides} {case.seed}").randint(1, case.sides))

    def mark(self) -> str:
        return digest(self.simulate(Roll(6, seed)).value for seed in range(9))

    def claims(self, asked: DicePlan, outcomes: Mapping[str, Shown]) -> list[Claim]:
        keys = [case.key for case in self.cases(asked, {}) if case.sides == 6]
        shown = [outcomes[key].value for key in keys if key in outcomes]
        if not shown:
            return []
        mean = sum(shown) / len(shown)
        return [
            Claim("mean of a die", "3.5", f"{mean:.2f}", yes_or_no(abs(mean - 3.5) < 1), len(shown))
        ]

    def figures(
        self, asked: DicePlan, outcomes: Mapping[str, Shown], directory: Path, pdf: bool
    ) -> list[Path]:
        directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / name for name in ("dice.png", "dice.pdf")[: 1 + pdf]]
        for path in paths:
            path.write_text(f"{len(outcomes)} rolls")
        return paths


class UntilSix(Dice):
    """Rolls until the first six; looks `AHEAD` rolls beyond what is known."""

    name, sequential = "until-six", True
    AHEAD = 3

    def cases(self, asked: DicePlan, outcomes: Mapping[str, Shown]) -> Sequence[Roll]:
        wanted: list[Roll] = []
        unknown = 0
        while unknown < self.AHEAD and len(wanted) < asked.rolls:
            wanted.append(Roll(6, len(wanted), asked.pause))
            shown: Any = outcomes.get(wanted[-1].key)
            if shown is None:
                unknown += 1
            elif shown.value == 6:
                break
        return wanted
