"""Checks the simulated network against formulas, queueing theory, the known limits of a dragonfly,
and BookSim.

    python scripts/validate.py [--quick] [--only NAME] [--plots DIR] [--json]

Every claim gives rows: what was measured, what is expected, and the tolerance. Exits 1 unless all
hold. What is compared with what, and why it may differ, is in docs/validation.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from against_booksim import booksim
from rich.console import Console
from rich.table import Table
from validation import (
    COLOURS,
    US,
    How,
    Row,
    Way,
    empty_ps,
    minimal_paths,
    picture,
    simulate,
    within,
)

from odonata import (
    Dragonfly,
    LinkClass,
    Network,
    Traffic,
    run,
)
from odonata.agents.layout import DELIVERED, HOPS, LATENCY_SUM, LONGEST
from odonata.agents.network import COUNTERS
from odonata.sweeps.limits import limit

SLOW_INSIDE = dict(  # noqa: C408
    terminal=LinkClass(25e9, 30_000),
    local=LinkClass(16e9, 70_000),
    global_=LinkClass(20e9, 400_001),
)
SLOW_OUTSIDE = dict(  # noqa: C408
    terminal=LinkClass(25e9, 30_000), local=LinkClass(20e9, 70_000), global_=LinkClass(12.5e9, 999)
)
EMPTY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cut-through": ({}, {}),
    "slow local links, relative": ({**SLOW_INSIDE, "cabling": "relative"}, {}),
    "slow global links, circulant": ({**SLOW_OUTSIDE, "cabling": "circulant"}, {}),
    "store and forward": (SLOW_OUTSIDE, {"forwarding": "store"}),
    "ugal-l": ({}, {"routing": "ugal-l"}),
    "ugal-g": ({}, {"routing": "ugal-g"}),
    "par": ({}, {"routing": "par"}),
    "adaptive": ({}, {"routing": "adaptive"}),
    "valiant by a group": (SLOW_OUTSIDE, {"routing": "valiant"}),
    "valiant by a router": (SLOW_INSIDE, {"routing": "valiant", "via": "router"}),
    "messages of 4 packets": ({}, {}),
}


def zero_load(how: How) -> list[Row]:
    """One message per node goes to a fixed partner, so rarely that none meets another (no counter
    shows any waiting): each latency is the formula's, to the picosecond."""
    rows, measured = [], {}
    for name, (links, settings) in EMPTY.items():
        if how.quick and settings.get("routing", "valiant") != "valiant":
            continue
        machine = Dragonfly(2, 4, 2, 9, **links)
        pieces = 4 if "messages" in name else 1
        found = alone(machine, settings, pieces, seeds=2 if how.quick else 30)
        for way, (ours, formula) in sorted(found.items(), key=lambda one: in_order(one[0])):
            wrong = np.flatnonzero(ours != formula)
            shown = ours[wrong[0]] if len(wrong) else ours[0]
            what = f"{name}: {way.name}, {len(ours)} pairs"
            rows.append(Row(what, float(shown), float(formula), "exact", not len(wrong), "ps"))
        measured[name] = found
    if how.plots:
        draw_zero_load(measured, how.plots / "zero-load.png")
    return rows


def in_order(way: Way) -> tuple[int, int, str]:
    return way.across, way.local, way.name


def name_of(local: int, across: int, leaves: bool) -> str:
    """Returns the kind of a minimal path; `leaves`: the source's own router has the cable."""
    if not across:
        return "same group" if local else "same router"
    if local == 1:
        return "global, local" if leaves else "local, global"
    return "local, global, local" if local else "global"


def alone(
    machine: Dragonfly, settings: dict[str, Any], pieces: int, seeds: int
) -> dict[Way, tuple[Any, int]]:
    """Returns, by kind of path, the sum of the latencies of each message's packets, and the
    expected one."""
    local, across = minimal_paths(machine)
    sums: dict[Way, list[int]] = {}
    for seed in range(1, seeds + 1):
        traffic = Traffic("permutation", load=1e-7 * pieces, message_bytes=512 * pieces, messages=1)
        network = Network(machine, traffic, seed=seed, **settings)
        end = round(40 * network.traffic[0].slot_ps(network.machine) / traffic.load)
        outcome = run(network, end, show_compiling=False).outcome
        waited = outcome["counters"][..., COUNTERS.index("stall_ps") :]
        nics = machine.routers * machine.radix
        assert not waited[:, :nics].any(), "packets met, and waited for each other"
        partners = traffic.partners(machine, seed, 0, machine.n_nodes)
        routers = np.arange(machine.n_nodes) // machine.nodes
        tally = outcome["nodes"][partners]
        assert (tally[:, DELIVERED] == pieces).all()
        for source, (got, to) in enumerate(zip(tally, partners // machine.nodes, strict=True)):
            start = routers[source]
            hops = int(local[start, to]), int(across[start, to])
            gate = machine.gates()[start // machine.routers, to // machine.routers, 0]
            own = gate // machine.global_links == start % machine.routers
            way = Way(*hops, name_of(*hops, own))
            visited = got[HOPS] // pieces
            if settings.get("routing") == "valiant" and way.across:
                way = Way(int(visited) - 3, 2, f"{visited - 3} local, 2 global")
            assert visited == way.local + way.across + 1, "a packet went astray"
            assert pieces > 1 or got[LONGEST] == got[LATENCY_SUM]
            sums.setdefault(way, []).append(int(got[LATENCY_SUM]))
    one = network.serialisation(machine.terminal, network.packet_bytes)
    queued = one * pieces * (pieces - 1) // 2
    single = replace(network, traffic=replace(traffic, message_bytes=512))
    return {way: (np.array(some), pieces * empty_ps(single, way) + queued)
            for way, some in sums.items()}  # fmt: skip


# -- a single queue


def mean_wait(load: float) -> float:
    """Returns the mean wait of M/D/1, in service times: Poisson arrivals, one server, constant
    service."""
    return load / (2 * (1 - load))


def queue(how: How) -> list[Row]:
    """256 nodes of one router send to a partner each. Where a message waits for its node's link is
    the only queue: packets leave it one at a time, and each output has one source."""
    loads = (0.3, 0.6) if how.quick else (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
    machine = Dragonfly(256, 1, 0, 1)
    rows, waits = [], []
    for load in loads:
        several = []
        for seed in range(1, 4 if how.quick else 7):
            span = round(US * (60 if how.quick else 250) * max(1.0, 0.04 / (1 - load) ** 2))
            traffic = Traffic("permutation", load, warmup_ps=span // 4, measure_ps=span)
            network = Network(machine, traffic, seed=seed)
            latency = simulate(network, after=20 * US).mean_latency_ns * 1e3
            several.append(
                (latency - empty_ps(network, Way(0, 0)))
                / network.traffic[0].slot_ps(network.machine)
            )
        ours = statistics.mean(several)
        error = statistics.stdev(several) / len(several) ** 0.5
        waits.append((ours, error))
        what = f"wait at load {load}, ± {error / ours:.1%} by chance"
        rows.append(within(what, ours, mean_wait(load), 0.02, "services"))
    if how.plots:
        draw_queue(loads, waits, how.plots / "queue.png")
    return rows


# -- saturation

LARGE = Dragonfly(4, 8, 4, 33)


def accepted(pattern: str, routing: str, load: float, **settings: Any) -> float:
    """Loads as fractions of the injection bandwidth; the measurement begins when buffers have
    filled."""
    traffic = Traffic(pattern, load, warmup_ps=30 * US, measure_ps=20 * US)
    return simulate(Network(LARGE, traffic, routing, **settings)).throughput


def full_at(pattern: str, routing: str) -> float:
    """Returns the load at which the first link is full."""
    found = limit(Network(LARGE, Traffic(pattern)), routing)
    assert found is not None
    return found.load


def saturation(how: How) -> list[Row]:
    """Measure the accepted load when every node offers all it can, and check that slightly less
    than that is accepted in full."""
    rows: list[Row] = []
    direct = full_at("adversarial", "minimal")
    full: dict[tuple[str, str], float] = {}

    def flood(pattern: str, routing: str) -> float:
        full[pattern, routing] = accepted(pattern, routing, 1.0)
        return full[pattern, routing]

    def steady(pattern: str, routing: str, load: float) -> None:
        ours = accepted(pattern, routing, load)
        rows.append(within(f"{pattern}, {routing}, offered {load:.3f}", ours, load, 0.02))

    ours = flood("adversarial", "minimal")
    rows.append(within("adversarial, minimal: 1/(a·p)", ours, direct, 0.03))
    steady("adversarial", "minimal", 0.9 * direct)
    if how.quick:
        return rows
    ours, half = flood("adversarial", "valiant"), full_at("adversarial", "valiant")
    rows.append(Row("adversarial, valiant", ours, 0.5, "0.45 … 0.5", 0.45 <= ours <= 0.5))
    rows.append(within("adversarial, valiant: (g-2)/(g-1)/2", ours, half, 0.01))
    steady("adversarial", "valiant", 0.95 * half)
    ours = flood("uniform", "minimal")
    rows.append(Row("uniform, minimal", ours, 1.0, "> 0.8", ours > 0.8))
    ours, half = flood("uniform", "valiant"), full_at("uniform", "valiant")
    rows.append(within("uniform, valiant: half, and what stays in its group", ours, half, 0.01))
    for routing in ("ugal-l", "ugal-g", "par"):
        for pattern in ("uniform", "adversarial"):
            best = max(full[pattern, "minimal"], full[pattern, "valiant"])
            ours = flood(pattern, routing)
            what = f"{pattern}, {routing}: the better of minimal and valiant"
            rows.append(Row(what, ours, best, "> 90 %", ours >= 0.9 * best))
            steady(pattern, routing, round(0.9 * best, 3))
    if how.plots:
        draw_saturation(full, how.plots / "saturation.png")
    return rows


# -- pictures


def draw_zero_load(measured: dict[str, dict[Way, tuple[Any, int]]], path: Path) -> None:
    def draw(axes: Any) -> None:
        singles = {name: found for name, found in measured.items() if "messages" not in name}
        ways = sorted({way for found in singles.values() for way in found}, key=in_order)
        for i, (name, found) in enumerate(singles.items()):
            x = np.array([ways.index(way) for way in found]) + (i - len(singles) / 2) * 0.07
            colour = f"C{i}"
            formulas = [formula / 1e3 for _, formula in found.values()]
            axes.scatter(x, formulas, marker="_", s=260, color=colour, lw=1.5, label=name)
            for at, (ours, _) in zip(x, found.values(), strict=True):
                axes.scatter([at] * len(ours), ours / 1e3, s=14, color=colour, zorder=3)
        axes.set_xticks(range(len(ways)), [way.name.replace(", ", "\n") for way in ways])
        axes.set_ylabel("latency (ns)")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8, frameon=False, ncols=2)

    picture(path, "Alone in the network: every packet (dots), the formula (bars)", draw, 11)


def draw_queue(loads: Sequence[float], waits: Sequence[tuple[float, float]], path: Path) -> None:
    def draw(axes: Any) -> None:
        x = np.linspace(0.02, max(loads) + 0.02, 200)
        axes.plot(x, mean_wait(x), color=COLOURS[0], label="M/D/1")
        means, errors = zip(*waits, strict=True)
        axes.errorbar(loads, means, [2 * error for error in errors], fmt="o", color=COLOURS[1],
                      capsize=4, label="Odonata, ± 2 standard errors")  # fmt: skip
        axes.set_xlabel("load")
        axes.set_ylabel("mean wait (service times)")
        axes.legend(frameon=False)

    picture(path, "One link, Poisson arrivals", draw)


def draw_saturation(full: dict[tuple[str, str], float], path: Path) -> None:
    def draw(axes: Any) -> None:
        routings = list(dict.fromkeys(routing for _, routing in full))
        for i, pattern in enumerate(("uniform", "adversarial")):
            x = np.arange(len(routings)) + (i - 0.5) * 0.38
            bars = axes.bar(x, [full[pattern, routing] for routing in routings], 0.36,
                            color=COLOURS[i], label=pattern)  # fmt: skip
            axes.bar_label(bars, fmt="%.3f", fontsize=9)
            best = max(full[pattern, "minimal"], full[pattern, "valiant"])
            axes.axhline(0.9 * best, color=COLOURS[i], lw=1, ls="--")
        axes.set_xticks(range(len(routings)), routings)
        axes.set_ylabel("accepted (parts of injection bandwidth)")
        axes.set_ylim(0, 1.12)
        axes.legend(frameon=False, ncols=2, loc="upper right")

    picture(
        path, "1,056 nodes, all that can be offered; dashes: 90 % of the better oblivious", draw
    )


CLAIMS = {"zero-load": zero_load, "queue": queue, "booksim": booksim, "saturation": saturation}


def about(claim: Callable[..., Any]) -> str:
    return " ".join((claim.__doc__ or "").split())


def show(found: dict[str, list[Row]]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    for name, rows in found.items():
        table = Table(title=f"{name}: {about(CLAIMS[name])}", title_justify="left", min_width=100)
        for column in ("what", "ours", "should be", "tolerance", "unit", ""):
            table.add_column(column, justify="right" if column in ("ours", "should be") else "left")
        for row in rows:
            digits = ".0f" if row.unit == "ps" else ".2f" if row.unit == "cycles" else ".4f"
            verdict = {True: "holds", False: "[red]FAILS[/red]", None: "shown"}[row.holds]
            numbers = (f"{value:,{digits}}" for value in (row.ours, row.reference))
            table.add_row(row.what, *numbers, row.tolerance, row.unit, verdict)
        console.print(table)
    rows = [row for some in found.values() for row in some if row.holds is not None]
    failed = [row.what for row in rows if row.holds is False]
    console.print(f"{len(rows) - len(failed)} of {len(rows)} hold")
    for what in failed:
        console.print(f"does not hold: {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less of it, in half a minute")
    parser.add_argument("--only", choices=CLAIMS, help="one claim")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="leave pictures (PNG) there")
    parser.add_argument("--json", action="store_true", help="the rows, for machines")
    asked = parser.parse_args()
    names = [asked.only] if asked.only else list(CLAIMS)
    found = {name: CLAIMS[name](How(asked.quick, asked.plots)) for name in names}
    if asked.json:
        report = {name: [asdict(row) for row in rows] for name, rows in found.items()}
        print(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        show(found)
    sys.exit(any(row.holds is False for rows in found.values() for row in rows))


if __name__ == "__main__":
    main()
