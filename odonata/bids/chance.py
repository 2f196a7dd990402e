"""The chance of an event, from how often it was seen: with an interval, and what follows for trials
that are still to come."""

from __future__ import annotations

from typing import NamedTuple

LEVEL = 0.95


class Chance(NamedTuple):
    """An event that was seen in some of the trials, which do not depend on each other."""

    seen: int
    trials: int

    @property
    def share(self) -> float:
        return self.seen / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """Returns the limits of the chance, at 95 %: by Clopper and Pearson, which holds the level
        whatever the chance is."""
        return _least(self.seen, self.trials, LEVEL), _most(self.seen, self.trials, LEVEL)

    @property
    def below(self) -> float:
        """Returns what the chance is below, at 95 %: the limit of one side alone."""
        return _most(self.seen, self.trials, 2.0 * LEVEL - 1.0)

    def next(self, trials: int) -> tuple[int, int]:
        """Returns between which numbers the event will be seen in so many more trials, at 95 %. The
        chance is as uncertain there as these trials leave it (Jeffreys)."""
        from scipy.stats import betabinom

        made = betabinom(trials, self.seen + 0.5, self.trials - self.seen + 0.5)
        tail = (1.0 - LEVEL) / 2.0
        return int(made.ppf(tail)), int(made.ppf(1.0 - tail))


def _least(seen: int, trials: int, level: float) -> float:
    from scipy.stats import beta

    return float(beta.ppf((1.0 - level) / 2.0, seen, trials - seen + 1)) if seen else 0.0


def _most(seen: int, trials: int, level: float) -> float:
    from scipy.stats import beta

    whole = seen == trials
    return 1.0 if whole else float(beta.ppf((1.0 + level) / 2.0, seen + 1, trials - seen))
