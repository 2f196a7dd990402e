"""The register of figures: every number that users see of a run, declared once.

A **figure** is a number: its path in the facts of a run (`odonata run --json`), its name, its unit,
how it is written, what it is a mean over, and whether more of it is better. The summary of a run,
`compare`, `sweep` and its objective, reports, CSV files and the reference all read what is declared
here. A new figure is one entry, with `read` where its number is not among the facts yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odonata.experiment.units import show_duration, show_energy, show_power
from odonata.jobs.metering import CAUSES
from odonata.results.steadiness import MARKED, SHORT, UNSETTLED

if TYPE_CHECKING:
    from odonata.results.measured import Measured

NETWORK, JOBS, SCHEDULE, POWER, MARKET = "network", "jobs", "schedule", "power", "market"
KINDS = {
    NETWORK: "Of the network, where packets are simulated.",
    JOBS: "Of jobs whose packets are simulated.",
    SCHEDULE: "Of jobs without packets.",
    POWER: "Of power, where it is simulated.",
    MARKET: "Of a market for regulation, where the machine takes part in one.",
}
KWH = 3.6e6
"""Joules of a kWh."""
LESS, MORE = "less", "more"
LATENCY, LOAD = "latency", "load"
Text = Callable[[float], str]


@dataclass(frozen=True)
class Figure:
    """A number that users see."""

    path: str
    """Where it is in the facts of a run; what sweeps and their CSV files call it."""
    name: str
    kind: str
    """One of KINDS."""
    form: str | Text
    """How it is written: a format, behind whose name the unit stands, or a function that adds the
    unit."""
    unit: str = ""
    scale: float = 1.0
    """What the number of the facts is multiplied by where people read it."""
    over: str = ""
    """What it is a mean over; "" where it is none."""
    better: str = ""
    """Whether more of it is better, or less; "" where nobody could tell."""
    note: str = ""
    """What is to be known of it, beside it in the summary of a run."""
    alias: str = ""
    """What `compare --json` calls it, where that is not its path."""
    read: Callable[[Measured], float | None] | None = None
    """How it is read from what was measured, where the facts do not have it by themselves."""
    row: bool = False
    """Whether it has a row of its own in the summary of a run of packets."""
    steady: str = ""
    """What it would be read as a steady mean of, LATENCY or LOAD."""
    usual: int = 0
    """Its place among those that a sweep shows unasked; 0: it is not."""
    everywhere: bool = True
    """Whether it is compared also where no run has it."""

    @property
    def title(self) -> str:
        """Returns its name with its unit, for axes and heads of columns."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def head(self) -> str:
        """Returns its name as it stands before a number that is written by `text`."""
        return self.title if isinstance(self.form, str) else self.name

    @property
    def compared(self) -> str:
        """Returns what `compare --json` calls it."""
        return self.alias or self.path

    def text(self, value: float | None) -> str:
        """Returns a number as people read it; what would be shown as 0 and is not, to one digit."""
        if value is None:
            return "-"
        if not isinstance(self.form, str):
            return self.form(value)
        text = self.form.format(value)
        return f"{value:.0e}" if value and not any(map(text.__contains__, "123456789")) else text

    def value(self, it: Measured) -> float | None:
        """Returns its number of a run, as people read it; None where there is none."""
        found = it.flat.get(self.path)
        return found if found is None or self.scale == 1 else found * self.scale


def number(value: float | None) -> str:
    """Returns a number with three figures; "-" where there is none."""
    if value is None:
        return "-"
    return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"


def money(value: float) -> str:
    """Returns an amount of money, with four figures at least; of next to nothing with three."""
    if 0.0 < abs(value) < 0.001:
        return f"{value:.3g}"
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.4f}"


def part(value: float) -> str:
    """Returns a part of something as per cent."""
    return f"{value:.2%}"


def energy(kwh: float) -> str:
    return show_energy(kwh * KWH)


def _sum(values: Sequence[float | None]) -> float | None:
    """Returns the sum of values that are all known."""
    return None if None in values else math.fsum(values)  # type: ignore[arg-type]


def _known_mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _per_byte(it: Measured) -> float | None:
    joules = _sum([job.energy_j for job in it.records])
    received = _sum([job.received_bytes for job in it.records])
    return joules / received * 1e9 if joules is not None and received else None


def _link(kind: str) -> Iterator[Figure]:
    for what, words, form, better in (
        ("utilisation", "utilisation", "{:.1%}", ""),
        ("max_utilisation", "busiest", "{:.1%}", ""),
        ("stall_to_flit", "credit stalls per flit", "{:.3f}", LESS),
    ):
        yield Figure(f"links.{kind}.{what}", f"{kind} links, {words}", NETWORK, form,
                     over="" if what == "max_utilisation" else "time and links", better=better,
                     alias=f"{kind}.{what}")  # fmt: skip


def _latency(what: str, words: str, form: str, over: str = "", usual: int = 0) -> Figure:
    return Figure(f"{what}_latency_ns", f"latency, {words}", NETWORK, form, "ns", over=over,
                  better=LESS, steady=LATENCY, usual=usual)  # fmt: skip


def _of_cause(cause: str) -> Figure:
    return Figure(f"violations.{cause}", f"  {cause}", POWER, "{:,.0f}", better=LESS,
                  read=lambda it: it.violations([cause]), everywhere=False)  # fmt: skip


_BY_LINK = [[*_link(kind)] for kind in ("global", "local", "eject", "inject")]
FIGURES: tuple[Figure, ...] = (
    # -- of jobs whose packets are simulated
    Figure("jobs_done", "jobs done", JOBS, "{:,.0f}", better=MORE, alias="jobs.done",
           read=lambda it: sum(job.end_ps is not None for job in it.records)),
    Figure("makespan_ps", "makespan", JOBS, "{:,.1f}", "us", 1e-6, better=LESS,
           alias="jobs.makespan_us", usual=6),
    Figure("mean_waiting_ps", "wait, mean", JOBS, "{:,.1f}", "us", 1e-6, "jobs", LESS,
           alias="jobs.waiting_us"),
    Figure("mean_run_time_ps", "run time, mean", JOBS, "{:,.1f}", "us", 1e-6, "jobs", LESS,
           alias="jobs.run_time_us"),
    Figure("mean_slowdown_alone", "slowdown against alone, mean", JOBS, "{:.2f}", over="jobs",
           better=LESS, alias="jobs.slowdown", read=lambda it: _known_mean(it.slowdowns)),
    Figure("jobs_energy_j", "energy of jobs", JOBS, "{:,.4g}", "J", better=LESS,
           alias="jobs.energy_j", read=lambda it: _sum([job.energy_j for job in it.records]),
           everywhere=False),
    Figure("jobs_nj_per_byte", "energy per byte received", JOBS, "{:,.4g}", "nJ", better=LESS,
           alias="jobs.nj_per_byte", read=_per_byte, everywhere=False),
    # -- of a network
    Figure("packets", "packets delivered", NETWORK, "{:,.0f}"),
    Figure("offered", "offered load", NETWORK, "{:.3f}", over="time and nodes"),
    Figure("throughput", "throughput", NETWORK, "{:.3f}", over="time and nodes", better=MORE,
           steady=LOAD, usual=7),
    _latency("mean", "mean", "{:,.1f}", "packets", 8),
    _latency("median", "median", "{:,.0f}"),
    _latency("p99", "99 %", "{:,.0f}", usual=9),
    _latency("max", "longest", "{:,.0f}"),
    Figure("mean_hops", "routers per packet", NETWORK, "{:.2f}", over="packets", better=LESS),
    *(kind[at] for at in range(3) for kind in _BY_LINK),
    # -- of jobs without packets
    Figure("measured_jobs", "jobs", SCHEDULE, "{:,.0f}", alias="jobs"),
    Figure("finished", "finished", SCHEDULE, "{:,.0f}", better=MORE),
    Figure("killed", "killed", SCHEDULE, "{:,.0f}", better=LESS, note="at their requested time"),
    Figure("mean_wait_s", "wait, mean", SCHEDULE, show_duration, "s", 1, "jobs", LESS,
           "from submission to start", usual=10),
    Figure("median_wait_s", "wait, median", SCHEDULE, show_duration, "s", better=LESS),
    Figure("p95_wait_s", "wait, 95 %", SCHEDULE, show_duration, "s", better=LESS),
    Figure("max_wait_s", "wait, longest", SCHEDULE, show_duration, "s", better=LESS),
    Figure("mean_turnaround_s", "turnaround, mean", SCHEDULE, show_duration, "s", 1, "jobs", LESS,
           "from submission to end"),
    Figure("mean_slowdown", "slowdown, mean", SCHEDULE, number, over="jobs", better=LESS,
           note="turnaround over service time"),
    Figure("mean_bounded_slowdown", "bounded slowdown, mean", SCHEDULE, number, over="jobs",
           better=LESS, note="service time 10 s or more", usual=11),
    Figure("utilisation", "utilisation", SCHEDULE, part, over="time and nodes", better=MORE,
           note="of all node-time", usual=12),
    Figure("makespan_s", "makespan", SCHEDULE, show_duration, "s", better=LESS,
           note="first submission to last end", usual=13),
    Figure("mean_queue_length", "queue, mean", SCHEDULE, number, over="time", better=LESS,
           note="jobs"),
    Figure("max_queue_length", "queue, longest", SCHEDULE, "{:,.0f}", better=LESS, note="jobs"),
    Figure("mean_waste", "idle while jobs wait", SCHEDULE, number, over="time", better=LESS,
           note="nodes, mean"),
    *(Figure(f"{fewest}{word}_per_job", f"{fewest}{word} per job".replace("_", " "), SCHEDULE,
             "{:.3g}", over="time and jobs", everywhere=False)
      for word in ("groups", "routers") for fewest in ("", "fewest_")),
    # -- of power
    Figure("energy_kwh", "energy", POWER, energy, "kWh", better=LESS, usual=14, everywhere=False),
    Figure("mean_power_w", "power, mean", POWER, show_power, "W", over="time", everywhere=False),
    Figure("peak_power_w", "power, highest", POWER, show_power, "W", better=LESS,
           everywhere=False),
    Figure("capping_success", "within the cap", POWER, part, over="readings", better=MORE,
           everywhere=False),
    Figure("violations", "violating intervals", POWER, "{:,.0f}", better=LESS, everywhere=False,
           read=lambda it: it.violations(CAUSES[1:])),
    *map(_of_cause, CAUSES[1:]),
    Figure("learning_rate", "profiles known", POWER, part, over="jobs", better=MORE,
           everywhere=False),
    Figure("cost", "cost", POWER, "{:,.2f}", better=LESS, everywhere=False),
    Figure("co2_kg", "CO2", POWER, lambda kg: f"{kg:,.1f} kg", "kg", better=LESS,
           everywhere=False),
    # -- of a market
    *(Figure(f"market.{path}", name, MARKET, form, unit, over=over, better=better, usual=usual,
             everywhere=False)
      for path, name, form, unit, over, better, usual in (
          ("average_w", "average bid", show_power, "W", "time", "", 0),
          ("reserve_w", "reserve bid", show_power, "W", "time", MORE, 0),
          ("saving", "saving", part, "", "", MORE, 1),
          ("cost", "cost in the market", money, "", "", LESS, 0),
          ("cost_drawn", "price of what was drawn", money, "", "", LESS, 0),
          ("error_mean", "error, mean", part, "", "time", LESS, 2),
          ("bad_share", "bad intervals", part, "", "time", LESS, 3),
          ("hours_kept", "hours that kept the rule", "{:,.0f}", "", "", MORE, 0),
          ("hours_excluded", "hours excluded", "{:,.0f}", "", "", LESS, 0),
          ("hours_qos", "hours that kept QoS", "{:,.0f}", "", "", MORE, 0),
          ("worst_late_share", "late, worst type", part, "", "jobs", LESS, 4),
          ("latest_mean_q", "degradation, worst type", "{:.2f}", "", "jobs", LESS, 0),
          ("standby_kwh", "standby energy", energy, "kWh", "", LESS, 0),
          ("carbon_kg", "CO2 of the market's hours", "{:,.1f}", "kg", "", LESS, 0),
      )),
)  # fmt: skip
JOB_FIGURES: tuple[Figure, ...] = (
    Figure("jobs.run_time_ps", "run time", JOBS, "{:,.1f}", "us", 1e-6, better=LESS, usual=5),
    Figure("jobs.waiting_ps", "wait", JOBS, "{:,.1f}", "us", 1e-6, better=LESS),
    Figure("jobs.bytes", "received", JOBS, "{:,.2f}", "MB", 1e-6),
    Figure("jobs.mean_latency_ps", "latency, mean", JOBS, "{:,.0f}", "ns", 1e-3, "packets", LESS),
    Figure("jobs.p99_latency_ps", "latency, 99 %", JOBS, "{:,.0f}", "ns", 1e-3, better=LESS),
    Figure("jobs.communication", "part of the time in MPI", JOBS, "{:.1%}", better=LESS),
    Figure("jobs.non_minimal_hops", "non-minimal hops", JOBS, "{:.1%}"),
    Figure("jobs.stall_to_flit", "stalls per flit", JOBS, "{:.3f}", better=LESS),
    Figure("jobs.slowdown", "slowdown", JOBS, "{:.2f}", better=LESS),
    Figure("jobs.energy_j", "energy", JOBS, "{:,.4g}", "J", better=LESS),
)
"""The figures that each job has."""
BY_PATH: Mapping[str, Figure] = {it.path: it for it in (*FIGURES, *JOB_FIGURES)}
USUAL = tuple(it.path for it in sorted((it for it in BY_PATH.values() if it.usual),
                                       key=lambda it: it.usual))  # fmt: skip
"""The figures that a sweep shows where none is asked for: the first of these that there are."""
SUFFIXES = {"_ps": ("us", 1e-6), "_ns": ("ns", 1.0), "_us": ("us", 1.0), "_s": ("s", 1.0),
            "_j": ("J", 1.0), "_kwh": ("kWh", 1.0), "_w": ("W", 1.0), "_kg": ("kg", 1.0)
            }  # fmt: skip


def figure(path: str) -> Figure:
    """Returns the figure at a path of the facts; of one that is not declared, what its name tells.

    >>> figure("jobs.run_time_ps").title, figure("links.global.utilisation").title
    ('run time (us)', 'global links, utilisation')
    >>> figure("market.cost_error").title, figure("last_arrival_ns").title
    ('cost error', 'last arrival (ns)')
    """
    if path in BY_PATH:
        return BY_PATH[path]
    name, unit, scale = path, "", 1.0
    for suffix, (symbol, factor) in SUFFIXES.items():
        if path.endswith(suffix):
            name, unit, scale = path.removesuffix(suffix), symbol, factor
            break
    for kind in ("jobs", *KINDS):
        name = name.removeprefix(f"{kind}.")
    return Figure(path, name.replace("_", " ").replace(".", ", "), NETWORK, "{:,.6g}", unit, scale)


def of_kind(*kinds: str) -> list[Figure]:
    """Returns the figures of some kinds, in reading order."""
    return [it for it in FIGURES if it.kind in kinds]


def misleads(verdict: str, path: str) -> bool:
    """Tells whether a figure of a run would be read as a mean of a steady state, and is none:
    latencies where the run is marked, throughput where it has not settled."""
    steady = BY_PATH[path].steady if path in BY_PATH else ""
    if steady == LOAD:
        return verdict in (UNSETTLED, SHORT)
    return steady == LATENCY and verdict in MARKED


def flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float | None]]:
    """Returns the numbers of a tree of facts, by their paths. What a job's packets did, and what
    was measured of power, are one level too deep for a name."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from flat(value, prefix if name in ("network", "power") else f"{prefix}{name}.")
        elif value is None or isinstance(value, bool | int | float):
            known = value is not None and math.isfinite(value)
            yield prefix + name, value if known else None
