"""What `odonata regulate` prints for people: what hours came to, and which jobs were late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from odonata.commands.regulate_asked import Asked
from odonata.commands.regulate_notes import firsts, notes_of
from odonata.experiment.units import show_duration, show_power

if TYPE_CHECKING:
    from odonata.experiment.experiment import JobExperiment
    from odonata.results.regulated import Regulated

Q_TERM = (
    "Q: the degradation, (turnaround - time) / time without a cap, on average, as the wait; jobs "
    "that are not over in the end count as if they went on without a cap then."
)
LATE_TERM = "late: the part of the jobs at the limit of Q or beyond."
BEFORE_TERM = "before: without demand response, that is, as jobs come and without caps."


def tables(found: Regulated, made: JobExperiment, asked: Asked) -> Sequence[Any]:
    """Returns what is shown: a heading, a table of the hours and one of the types."""
    from rich.text import Text

    notes = [Text(word, "bold") for word in [*notes_of(found, made), *firsts(made, asked)]]
    return (Text(heading(made, asked), "bold"), hours_table(found), *notes, Text(),
            types_table(found), Text(terms(found), "dim"))  # fmt: skip


def terms(found: Regulated) -> str:
    """Returns what the titles of the table of types mean."""
    by_mean = found.runs[0].market.rules.mean_qos
    return " ".join([Q_TERM, *([] if by_mean else [LATE_TERM]), BEFORE_TERM])


def heading(made: JobExperiment, asked: Asked) -> str:
    """Returns what was simulated."""
    assert made.power is not None
    assert made.market is not None
    whose = asked.workload or str(asked.trace)
    if made.market.standby is not None:
        whose += f" and standby jobs ({made.market.standby})"
    count = asked.judged_each * len(asked.seeds)
    long = f"{count:,g} hour{'s' if count != 1 else ''}"
    first, last = asked.seeds[0], asked.seeds[-1]
    seeds = f"seeds {first} to {last}" if last > first else f"seed {first}"
    how = f"each from an empty machine, {seeds}" if asked.apart else f"in one run, {seeds}"
    if asked.warm_up_h:
        how += f", after {asked.warm_up_h:g} hours of warm-up that are not judged"
    bidding = made.market.bidding
    who = "" if bidding == made.power.policy else f", bids: {bidding}"
    return f"{whose} on {made.model().nodes:,} nodes, {made.power.policy}{who}: {long}, {how}"


def hours_table(found: Regulated) -> Any:
    """Returns what the hours came to."""
    from rich.table import Table

    from odonata.results.market_measures import qos_words
    from odonata.results.register import money

    it, rules = found.measures, found.runs[0].market.rules
    hours = sum(hour.hours for one in found.runs for hour in one.market.judged_hours)
    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
    shown.add_column(no_wrap=True, style="dim")
    shown.add_column(justify="right", no_wrap=True)
    shown.add_column()

    def number(value: float | None, how: Callable[[float], str]) -> str:
        return "-" if value is None else how(value)

    saving = number(it.saving, "{:.1%}".format)
    spread = ""
    if it.saving is not None and it.saving_high is not None:
        saving += f" ± {it.saving_high - it.saving:.1%}"
        spread = f"95 % interval over {len(found.runs)} runs; "
    split = [f"energy {money((it.cost_energy or 0) / hours)}",
             f"reserve {money((it.cost_reserve or 0) / hours)}"]  # fmt: skip
    split += [f"error {money(it.cost_error / hours)}"] if it.cost_error is not None else []
    split += [f"violations {money(it.cost_violation / hours)}"] if it.cost_violation else []
    both = sum(
        hour.tracking_ok and hour.qos_ok
        for one in found.runs
        for hour in one.market.judged_hours
        if hour.reserve_w
    )
    drawn, before = it.energy_kwh / hours, found.energy_without_kwh / hours
    offered = f"offered in {it.hours_offered:,} of {it.hours:,} hours"
    standby = found.bill_standby
    aside = f"; standby jobs add {standby:.1%}" if standby else ""
    rows = [
        ("average bid", number(it.average_w, show_power),
         "" if it.hours_offered == it.hours else offered),
        ("reserve bid", number(it.reserve_w, show_power), "to either side"),
        ("saving", saving, f"{spread}of what the average costs that was bid"),
        ("cost per hour", number(it.cost, lambda cost: money(cost / hours)), ", ".join(split)),
        ("cost before", money(found.cost_without / hours), "without demand response"),
        *([] if rules.warmup_us else [
            ("bill", number(found.bill, "{:+.1%}".format),
             f"against before, each with the price of the work that is left{aside}")]),
        ("work left", kwh(found.left_kwh), f"in the end, above idle nodes; without "
         f"demand response {kwh(found.left_without_kwh)}"),
        ("error, mean", number(it.error_mean, "{:.1%}".format), "of the reserve"),
        ("bad intervals", number(it.bad_share, "{:.1%}".format),
         f"off by more than {rules.limit:g} of the reserve"),
        ("kept the rule", f"{it.hours_kept} of {it.hours_offered}",
         f"hours with less than {rules.share:.0%} of bad intervals"),
        *([("excluded", f"{it.hours_excluded} of {it.hours}",
            "hours in which nothing could be offered, after too many that broke the rule")]
          if it.hours_excluded else []),
        ("kept QoS", f"{it.hours_qos} of {it.hours}",
         f"hours: {qos_words(rules.qos)}"),
        ("kept both", f"{both} of {it.hours_offered}", "hours with an offer"),
        ("energy per hour", kwh(drawn), f"without demand response {kwh(before)}"),
    ]  # fmt: skip
    if it.carbon_kg is not None and found.carbon_without_kg is not None:
        rows.append(("CO2 per hour", kg(it.carbon_kg / hours), "of what was drawn; without demand "
                     f"response {kg(found.carbon_without_kg / hours)}"))  # fmt: skip
    if it.standby_kwh and it.standby_started is not None:
        rows.append(("standby per hour", kwh(it.standby_kwh / hours),
                     f"{it.standby_started / hours:,.0f} jobs started"))  # fmt: skip
    for row in rows:
        shown.add_row(*row)
    return shown


def kwh(value: float) -> str:
    """Returns an energy for people, always in the unit of the prices."""
    return f"{value:,.0f} kWh" if value >= 100 else f"{value:.3g} kWh"


def kg(value: float) -> str:
    """Returns a mass for people."""
    return f"{value:,.0f} kg" if value >= 100 else f"{value:.3g} kg"


def _brief(seconds: float | None) -> str:
    """Returns a wait for people: less than a tenth of a second is none."""
    return show_duration(None if seconds is None else round(seconds, 1))


def types_table(found: Regulated) -> Any:
    """Returns how late the jobs of each type were, and who waits longer than before."""
    from rich.table import Table
    from rich.text import Text

    rules = found.runs[0].market.rules
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    shown.add_column("type", no_wrap=True)
    late = () if rules.mean_qos else ("late", "before")
    kept = "Q < limit" if rules.mean_qos else f"≤ {rules.late:.0%}"
    for title in ("jobs", "limit", *late, kept, "Q", "before", "wait", "before"):
        shown.add_column(title, justify="right", no_wrap=True)
    for regulated, without in found.types:
        if not regulated.jobs:
            continue
        kept = "" if regulated.threshold is None else "yes" if regulated.qos_ok else "NO"
        limit = "" if regulated.threshold is None else f"{regulated.threshold:g}"
        shares = [f"{it.late_share or 0:.1%}" for it in (regulated, without)]
        shown.add_row(
            Text(regulated.type), f"{regulated.jobs:,}", limit, *shares[: len(late)], kept,
            f"{regulated.mean_q or 0:.2f}", f"{without.mean_q or 0:.2f}",
            _brief(regulated.mean_wait_s), _brief(without.mean_wait_s),
        )  # fmt: skip
    return shown
