"""How much faster more ranks are: the table of docs/engine.md, in Markdown.

    python scripts/scaling.py [--ranks 1,2,4,8,16] [--protocol window,null] [--repeat 3]

Runs of all kinds take turns, so that a machine that is shared slows all of them alike. Each number
is the median speed over that on one rank, in brackets the range; the digests of a workload must be
the same.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from itertools import product

from bench import WORKLOAD, odonata

from odonata.study.papers import table

SCALED = {
    "PHOLD, 1,024 processes": f"bench phold {WORKLOAD}",
    "codes-c, 1,056 nodes": "bench dragonfly --preset codes-c --duration 200us",
    "16,512 nodes, load 0.3": "bench dragonfly --nodes 8 --routers 16 --global-links 8 "
    "--groups 129 --traffic uniform --load 0.3 --duration 8us",
}
"""The workloads, each a second or more on one rank."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ranks", default="1,2,4,8,16", help="numbers of ranks, 1 among them")
    parser.add_argument("--protocol", default="window,null")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kind")
    asked = parser.parse_args()
    ranks, protocols = [int(it) for it in asked.ranks.split(",")], asked.protocol.split(",")
    kinds = [*product(SCALED, protocols, ranks)]
    speeds: dict[tuple[str, str, int], list[float]] = {kind: [] for kind in kinds}
    digests: dict[str, set[str]] = {name: set() for name in SCALED}
    for turn in range(asked.repeat + 1):
        for name, protocol, n in kinds:
            run = odonata(f"{SCALED[name]} --protocol {protocol} --json", n)
            digests[name].add(run["digest"])
            if turn:  # the first turn warms caches, of kernels and of files
                speeds[name, protocol, n].append(run["events_per_second"])
    rows = []
    for name, protocol in product(SCALED, protocols):
        alone = statistics.median(speeds[name, protocol, 1])
        cells = [[speed / alone for speed in sorted(speeds[name, protocol, n])] for n in ranks]
        rows.append([name, protocol, f"{alone / 1e6:.1f} M",
                     *(f"{statistics.median(it):.1f} ({it[0]:.1f} .. {it[-1]:.1f})"
                       for it in cells[1:])])  # fmt: skip
    head = ["workload", "protocol", "events/s on 1 rank", *(f"{n} ranks" for n in ranks[1:])]
    print(table(head, rows))
    differ = [name for name, found in digests.items() if len(found) > 1]
    print(f"DIGESTS DIFFER: {differ}" if differ else "one digest for each workload")
    print(f"{platform.machine()}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
