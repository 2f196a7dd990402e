"""Tells what `price-aware` saves on a trace, with a day-ahead price that is made by a formula.

    python scripts/cheaper_hours.py --prices prices.csv --begin 1993-10-01 --days 93 --seed 1
    python scripts/cheaper_hours.py TRACE --begin 1993-10-01 [--first 3000] [--loads recorded,0.8]

The price of an hour is 0.10 per kWh, times the number of `SHAPE` for that hour of the day (cheap at
night and around noon, dear in the morning and in the evening), times a factor of the day,
exp(0.2 z - 0.02), where z is normal, drawn from the seed. It is of no market, and of no year.
Without `--prices`, each policy of `POLICIES` runs the jobs of the trace under the curves of several
seeds, beside `easy`; what is shown are means over the curves, with 95 % intervals.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.jobs.power import Power
from odonata.results.power_measures import power_measures
from odonata.results.statistics import interval
from odonata.traces.source import Source

SHAPE = (0.62, 0.57, 0.54, 0.53, 0.56, 0.70, 0.95, 1.22, 1.30, 1.18, 1.00, 0.85,
         0.74, 0.70, 0.76, 0.92, 1.15, 1.42, 1.55, 1.46, 1.24, 1.02, 0.84, 0.70)  # fmt: skip
"""By hour of the day; divided by their mean, so that the mean price is 0.10."""
POLICIES: dict[str, dict[str, Any]] = {
    "price-aware": {},
    "price-aware:part=4": {"part": 4.0},
    "price-aware:part=0": {"part": 0.0},
    "price-aware:bound=24:part=4": {"bound": 24.0, "part": 4.0},
    "price-aware:bound=24:part=12": {"bound": 24.0, "part": 12.0},
}
HOUR_US = 3600 * 10**6


class Found(NamedTuple):
    """What a run came to."""

    bill: float
    """What all that the machine drew cost."""
    moved: float
    """What the jobs drew above idle nodes cost: of the bill the part that their starts change."""
    wait_h: float


def prices(begin: str, days: int, seed: int) -> Iterator[tuple[str, float]]:
    """Yields the date of each hour and its price per kWh."""
    rng, first = np.random.default_rng(seed), datetime.fromisoformat(begin)
    mean = sum(SHAPE) / len(SHAPE)
    for day in range(days):
        factor = np.exp(0.2 * rng.standard_normal() - 0.02)
        for hour, part in enumerate(SHAPE):
            date = first + timedelta(days=day, hours=hour)
            yield date.isoformat(timespec="minutes"), 0.1 * factor * part / mean


def write(path: Path, begin: str, days: int, seed: int) -> None:
    rows = [f"{date},{price:.6f}" for date, price in prices(begin, days, seed)]
    path.write_text("\n".join(["time,price_per_kwh", *rows, ""]))


def measured(
    trace: str, first: int | None, load: float | None, begin: str, seed: int, parameters: Any
) -> Found:
    """Returns what a run came to; `parameters` None: by easy."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "prices.csv"
        write(file, begin, 400, seed)
        power = Power(price=str(file))
        name = "easy" if parameters is None else "price-aware"
        source = Source(file=trace, first=first, load=load)
        model = Cluster.of(source, name, tuple((parameters or {}).items()), power=power)
        schedule, _, record = simulate(model)
        price = model.steps("price")
    assert record is not None
    assert price is not None
    bill = power_measures(record, None, price).cost
    assert bill is not None
    above_kw = (power.active_w - power.idle) / 1000
    rows = zip(schedule.trace.nodes.tolist(), schedule.start_us.tolist(),
               schedule.end_us.tolist(), strict=True)  # fmt: skip
    moved = sum(nodes * price.integral(start, end) for nodes, start, end in rows)
    wait_us = (schedule.start_us - schedule.trace.submit_us).mean()
    return Found(bill, above_kw * moved / HOUR_US, float(wait_us) / HOUR_US)


def of(values: list[float], unit: str) -> str:
    """Returns a mean and its interval as text."""
    mean, low, high, *_ = interval(values)
    return f"{mean:.1f} ({low:.1f} .. {high:.1f}) {unit}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("trace", nargs="?")
    parser.add_argument(
        "--prices", type=Path, help="only write the prices of one seed to this file"
    )
    parser.add_argument("--begin", default="1993-10-01", help="the first day of the prices")
    parser.add_argument("--days", type=int, default=93)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int)
    parser.add_argument("--loads", default="recorded", help="offered loads, with commas")
    parser.add_argument("--curves", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    if asked.prices is not None:
        write(asked.prices, asked.begin, asked.days, asked.seed)
        return
    if asked.trace is None:
        parser.error("a trace, or --prices FILE")
    with ProcessPoolExecutor(asked.jobs) as pool:
        for word in asked.loads.split(","):
            load = None if word == "recorded" else float(word)
            found = {
                name: [pool.submit(measured, asked.trace, asked.first, load, asked.begin, seed,
                                   parameters) for seed in range(1, asked.curves + 1)]
                for name, parameters in {"easy": None, **POLICIES}.items()
            }  # fmt: skip
            done = {name: [each.result() for each in row] for name, row in found.items()}
            base = done.pop("easy")
            print(f"load {word}: easy waits {base[0].wait_h * 60:.0f} min",
                  flush=True)  # fmt: skip
            for name, row in done.items():
                pairs = list(zip(base, row, strict=True))
                bill = of([100 * (1 - one.bill / b.bill) for b, one in pairs], "% of the bill")
                moved = of([100 * (1 - one.moved / b.moved) for b, one in pairs], "% above idle")
                wait = of([60 * one.wait_h for one in row], "min wait")
                print(f"  {name:28} {bill:34} {moved:34} {wait}", flush=True)


if __name__ == "__main__":
    main()
