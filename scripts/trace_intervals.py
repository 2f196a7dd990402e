"""Checks that intervals from one trace are right: on traces whose true means are known.

    python scripts/trace_intervals.py [--traces 100] [--replicates 20] [--block 7]
    python scripts/trace_intervals.py --model lublin --load 0.75 --weeks 16

A very long trace is simulated under two disciplines, which gives the true means. It is then cut
into short traces. Of each, replicates are made (`trace.resample`) and simulated, and the interval
of every figure is their spread, as in a sweep. The true mean should be in 95 % of them, and is to
be in 90 to 98 %: exits 1 if chance (one case in a thousand) does not explain another part.

The first week of each trace and replicate is a warm-up. Jobs arrive as a Poisson process, or as the
Lublin-Feitelson model has them, with its day and half the rate on weekends.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.results.schedule_measures import job_times
from odonata.results.statistics import RESAMPLED, interval, ratio
from odonata.traces.distributions import Exponential, powers_of_two
from odonata.traces.lublin import lublin
from odonata.traces.poisson import poisson
from odonata.traces.trace import SECOND, Trace
from odonata.traces.windows import DAY_US, WEEK_US, resampled

Floats = npt.NDArray[np.float64]
NODES, PER_WEEK, EMPTY = 32, 300, 8
"""Nodes of the machine, jobs per week, and the weeks without jobs between two replicates that are
simulated one after the other: until then no queue of any is left."""
DISCIPLINES = ("easy", "wfp")
FIGURES = ("mean wait", "bounded slowdown", "utilisation", "ratio of waits", "ratio of slowdowns")
WEEKDAY, WEEKEND = 7 / 6, 7 / 12
"""The rate of arrivals, relative to its mean."""
CASES = (("poisson", 0.6, 26), ("poisson", 0.85, 52), ("lublin", 0.6, 26), ("lublin", 0.75, 52))
"""Models, loads, and weeks of a trace: queues that are long remembered need more of them."""
LEAST, MOST = 0.90, 0.98


class Case(NamedTuple):
    """What is tried: a model at a load, traces of so many weeks, and replicates of each."""

    model: str
    load: float
    weeks: int
    traces: int
    replicates: int
    block_us: int = WEEK_US
    seed: int = 11


def long_trace(case: Case) -> Trace:
    """Returns the jobs of all traces, one after the other."""
    if case.model == "poisson":
        jobs = round(1.02 * case.weeks * case.traces * PER_WEEK)
        sizes = powers_of_two(NODES)
        mean_s = case.load * NODES * WEEK_US / SECOND / (sizes.mean * PER_WEEK)
        return poisson(jobs, NODES, load=case.load, seed=case.seed, sizes=sizes,
                       runs=Exponential(mean_s))  # fmt: skip
    few = lublin(10_000, NODES, load=case.load, seed=case.seed)
    jobs = round(1.02 * case.weeks * case.traces * len(few) * WEEK_US / few.span_us)
    made = lublin(jobs, NODES, load=case.load, seed=case.seed)
    passed = np.cumsum([0.0, *[WEEKDAY] * 5, *[WEEKEND] * 2])
    week, rest = np.divmod(made.submit_us, WEEK_US)
    moved = week + np.interp(rest, passed * DAY_US, np.arange(8) * DAY_US) / WEEK_US
    return made.where(slice(None), submit_us=np.rint(moved * WEEK_US).astype(np.int64))


def figures(traces: Sequence[Trace], weeks: int) -> Floats:
    """Returns the first three figures under both disciplines [trace, discipline, figure] of traces
    of so many weeks, of which the first is a warm-up."""
    apart = (weeks + EMPTY) * WEEK_US
    columns: dict[str, Any] = {name: np.concatenate([getattr(it, name) for it in traces])
                               for name, _ in traces[0].columns()}  # fmt: skip
    of = np.repeat(np.arange(len(traces)), [len(it) for it in traces])
    columns |= {"submit_us": columns["submit_us"] + of * apart, "number": np.arange(len(of))}
    joined = replace(traces[0], **columns)
    begin = of * apart + WEEK_US
    end = begin + (weeks - 1) * WEEK_US
    inside = joined.submit_us >= begin
    count = np.bincount(of, inside)
    made = []
    for name in DISCIPLINES:
        schedule = simulate(Cluster(joined, NODES, name)).schedule
        times = job_times(schedule)
        held = np.clip(schedule.end_us, begin, end) - np.clip(schedule.start_us, begin, end)
        made.append([
            np.bincount(of, times.wait_us * inside) / count / SECOND,
            np.bincount(of, times.bounded_slowdown * inside) / count,
            np.bincount(of, held * joined.nodes) / ((weeks - 1) * WEEK_US * NODES),
        ])  # fmt: skip
    return np.array(made).transpose(2, 0, 1)


def covered(case: Case, method: str = RESAMPLED) -> tuple[Floats, Floats, Floats]:
    """Returns, by figure, the true means, the part of the intervals that have them, and how wide
    these are relative to the means (the median)."""
    whole = long_trace(case)
    weeks = int(whole.submit_us[-1]) // WEEK_US
    (true,) = figures([whole], weeks)
    truth = np.array([*true[0], *true[1, :2] / true[0, :2]])
    hits, widths = [], []
    for number in range(min(case.traces, weeks // case.weeks)):
        begin = number * case.weeks * WEEK_US
        first, last = np.searchsorted(
            whole.submit_us, [begin, begin + case.weeks * WEEK_US + DAY_US]
        )
        some = slice(first, last)  # with a day more, so that the last week is whole
        trace = whole.where(some, submit_us=whole.submit_us[some] - begin)
        made = figures([resampled(trace, case.block_us, seed) for seed in range(case.replicates)],
                       case.weeks)  # fmt: skip
        every = [interval(made[:, 0, at].tolist(), method=method) for at in range(3)]
        every += [ratio(made[:, 0, at].tolist(), made[:, 1, at].tolist(), method=method)
                  for at in range(2)]  # fmt: skip
        hits.append([it.low <= true <= it.high for it, true in zip(every, truth, strict=True)])
        widths.append([it.half / it.mean for it in every])
    return truth, np.mean(hits, axis=0), np.median(widths, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    for name, usual in (("traces", 100), ("replicates", 20), ("block", 7), ("weeks", 26)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--model", choices=("poisson", "lublin"))
    parser.add_argument("--load", type=float, default=0.75)
    asked = parser.parse_args()
    cases = [(asked.model, asked.load, asked.weeks)] if asked.model else CASES
    print(f"{asked.traces} traces, {asked.replicates} replicates of each in blocks of "
          f"{asked.block} d:\nhow many of the 95 % intervals have the true mean, and half of their "
          f"width\n\n{'':23}" + "".join(f"{name:>20}" for name in FIGURES))  # fmt: skip
    wrong = False
    for model, load, weeks in cases:
        case = Case(model, load, weeks, asked.traces, asked.replicates, asked.block * DAY_US)
        _, parts, widths = covered(case)
        words = (f"{part:11.1%} ±{width:6.1%} " for part, width in zip(parts, widths, strict=True))
        print(f"{model:8}{load:6g}{weeks:3} weeks" + "".join(words), flush=True)
        wrong |= any(not allowed(part, asked.traces) for part in parts)
    sys.exit(wrong)


def allowed(part: float, of: int) -> bool:
    """Tells whether a part of so many intervals is what 90 to 98 % of all may give by chance."""
    from scipy.stats import binom

    count = round(part * of)
    return bool(binom.cdf(count, of, LEAST) > 0.0005 and binom.sf(count - 1, of, MOST) > 0.0005)


if __name__ == "__main__":
    main()
