"""Checks that the confidence intervals of sweeps are right: on a queue whose mean is known.

    python scripts/intervals.py [--sweeps 400] [--seeds 10] [--jobs 2]

64 nodes of one router send to a partner each, so that a message waits only for its own node's link:
an M/D/1 queue, whose mean wait is load / (2 (1 - load)) services. Every sweep has seeds of its own.
The 95 % interval of the mean latency should have the true mean in 95 % of the sweeps; by chance it
is 93 to 97 % of 400 in 19 cases of 20. Exits 1 if that of Student's t is not.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from validate import mean_wait
from validation import Way, empty_ps

import odonata
from odonata.results.statistics import METHODS, interval

FILE = """
[machine]
nodes = 64
routers = 1
global_links = 0
groups = 1

[traffic]
pattern = "permutation"
load = {load}
warmup = "10 us"
measure = "40 us"

[run]
duration = "60 us"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--sweeps", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--load", type=float, default=0.5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "queue.toml"
        file.write_text(FILE.format(load=asked.load))
        found = odonata.sweep(file, seeds=asked.sweeps * asked.seeds, jobs=asked.jobs)
        network = odonata.load(file).model()
    assert isinstance(network, odonata.Network)
    slot_ps = network.traffic[0].slot_ps(network.machine)
    true_ns = (empty_ps(network, Way(0, 0)) + mean_wait(asked.load) * slot_ps) / 1e3
    (cell,) = found.cells("mean_latency_ns")
    print(f"mean latency of M/D/1 at a load of {asked.load:g}: {true_ns:.2f} ns; of all "
          f"{len(cell.values):,} runs: {interval(cell.values).mean:.2f} ± "
          f"{interval(cell.values).half:.2f} ns")  # fmt: skip
    covered = {}
    for method in METHODS:
        samples = [cell.values[at : at + asked.seeds]
                   for at in range(0, len(cell.values), asked.seeds)]  # fmt: skip
        made = [interval(sample, method=method) for sample in samples]
        covered[method] = sum(it.low <= true_ns <= it.high for it in made) / len(made)
        width = sum(it.half for it in made) / len(made)
        print(f"{method:10} {asked.sweeps} sweeps of {asked.seeds} seeds: {covered[method]:.1%} of "
              f"the 95 % intervals have it; they are ± {width:.2f} ns wide")  # fmt: skip
    sys.exit(not 0.93 <= covered["t"] <= 0.97)


if __name__ == "__main__":
    main()
