"""`odonata provision`: is it worth buying more nodes than can be powered, and how many of which?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, print_table
from odonata.commands.provision_words import answer, how, notes, reasons, starved, uses_of
from pdes import launcher
from pdes.errors import Refused

if TYPE_CHECKING:
    from odonata.provisioning.cost import Inputs
    from odonata.provisioning.prices import Prices
    from odonata.provisioning.purchase import Machine
    from odonata.provisioning.scaling import Curve, Line

COMPARED = ("t_ovp", "t_wc", "s_ovp", "n_lim")


@click.command("provision", context_settings=SETTINGS)
@click.argument("prices", required=False, type=click.Path(path_type=Path))
@click.option("--application", "applications", multiple=True, metavar="NAME",
              help="Show only this application; repeatable.")  # fmt: skip
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="A change to PRICES, as budget.money=70000; without it r_c, r_p, power_w, "
              "node_max_w or node_min_w of the model; repeatable.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Draw there how the answer changes with each input.")  # fmt: skip
@click.option("--near", type=click.FloatRange(0, 1, max_open=True), metavar="SHARE",
              help="With PRICES: a machine that takes longer than the fastest by no more than this "
              "share of its time is nearly as fast, and the cheapest of these is recommended; 0: "
              "only the fastest.  [default: 0.01]")  # fmt: skip
@json_option
def command(**asked: Any) -> None:
    """Compare fewer high-end nodes with more cheaper nodes than can be powered at once.

    PRICES is a TOML file of your own; docs/buying.md explains it. Without it, the tables of the
    thesis that the model is from are computed anew, with the printed values beside them.
    """
    if launcher.rank() == 0:
        report(**asked)


def report(
    prices: Path | None,
    *,
    applications: Sequence[str] = (),
    changes: Sequence[str] = (),
    out: Path | None = None,
    near: float | None = None,
    as_json: bool = False,
) -> None:
    """Compute, draw and print, of a buyer's prices or of the thesis."""
    if prices is None:
        if near is not None:
            raise Refused(f"--near {near:g}: which machine to buy is asked with a file of prices")
        _thesis(applications, changes, out, as_json)
        return
    from odonata.provisioning.prices import read_prices
    from odonata.provisioning.recommendation import NEAR

    told = read_prices(prices, changes)
    told = replace(told, applications=_only(told.applications, applications))
    found = price_facts(told, NEAR if near is None else near)
    drawn = []
    if out is not None:
        from odonata.figures.provision import FIGURES

        drawn = _draw(out, {name: partial(make, told) for name, make in FIGURES.items()})
    if as_json:
        print_json(found | {"figures": [str(path) for path in drawn]})
    else:
        print_table(*price_tables(told, found), least=100, highlight=False)
        _say_drawn(drawn)


def _thesis(
    applications: Sequence[str], changes: Sequence[str], out: Path | None, as_json: bool
) -> None:
    from odonata.provisioning.cost import APPLICATIONS

    inputs, lines = changed_inputs(changes), _only(APPLICATIONS, applications)
    found = thesis_facts(inputs, lines)
    drawn = []
    if out is not None:
        from odonata.figures.provision import sweeps

        drawn = _draw(out, {"sweeps": partial(sweeps, inputs, lines)})
    if as_json:
        print_json(found | {"figures": [str(path) for path in drawn]})
    else:
        print_table(*thesis_tables(found), least=100, highlight=False)
        _say_drawn(drawn)


def _only(known: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    for name in wanted:
        if name not in known:
            raise Refused(f"--application {name}: one of {', '.join(known)}")
    return {name: it for name, it in known.items() if not wanted or name in wanted}


def changed_inputs(changes: Sequence[str]) -> Inputs:
    """Returns the inputs of the thesis, with changes such as "r_c=1.65"."""
    from odonata.provisioning.cost import Inputs
    from odonata.provisioning.prices import value_of

    given = {}
    for change in changes:
        name, _, text = change.partition("=")
        value = value_of(text)
        if name.strip() not in Inputs.__dataclass_fields__:
            raise Refused(f"--set {change}: without a file of prices, one of "
                          f"{', '.join(Inputs.__dataclass_fields__)}, as r_c=1.65")  # fmt: skip
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Refused(f"--set {change}: a number is needed, as r_c=1.65")
        given[name.strip()] = float(value)
    return Inputs(**given)


def _draw(out: Path, figures: Mapping[str, Callable[[], Any]]) -> list[Path]:
    from odonata.figures.style import save, style

    out.mkdir(parents=True, exist_ok=True)
    drawn = []
    with style():
        for name, make in figures.items():
            drawn.append(out / f"{name}.png")
            save(make(), drawn[-1], "png")
    return drawn


def _say_drawn(drawn: Sequence[Path]) -> None:
    for path in drawn:
        print(f"drawn: {path}")


# -- the thesis: what programs read


def thesis_facts(inputs: Inputs, lines: Mapping[str, Line]) -> dict[str, Any]:
    """Returns tables 4.1 and 4.9, cost ratios and break-even points, with what is printed."""
    from odonata.provisioning import cost
    from odonata.provisioning.prices import loss_of_scores

    printed = inputs == cost.Inputs()
    rack, (fast, slow) = cost.Rack(), cost.SCORES
    money = rack.cost(rack.nodes, cost.HIGH_END_PRICE)
    ratio = cost.cost_ratio(money, cost.HIGH_END_PRICE, cost.CHEAPER_PRICE, rack)
    assert ratio is not None
    hopper = cost.HOPPER
    return {
        "inputs": asdict(inputs),
        "r_c_bound": cost.r_c_bound(inputs),
        "applications": {
            name: _application_facts(inputs, line, cost.PRINTED[name] if printed else None)
            for name, line in lines.items()
        },
        "cost_ratio": {
            "two_racks": ratio.high_end_each / round(ratio.cheaper_mean_of_racks, -2),
            "two_racks_by_node": ratio.by_node,
            "two_racks_by_rack": ratio.by_rack,
            "many_racks": cost.limit_ratio(cost.HIGH_END_PRICE, cost.CHEAPER_PRICE, rack),
            "printed": {"two_racks": cost.TWO_RACKS, "many_racks": cost.MANY_RACKS},
        },
        "core_hour": {
            "usd": hopper.per_core_hour,
            "usd_per_year": hopper.per_year,
            "core_hours_per_year": hopper.core_hours,
            "power_usd_at_10_cents": cost.energy_cost(2.6e6, 0.10),
            "printed": {"usd": cost.HOPPER_PER_CORE_HOUR, "usd_per_year": 21_100_000,
                        "core_hours_per_year": 1_142_275_968},
        },
        "r_p_of_scores": {"thesis": loss_of_scores(fast, slow, "thesis"),
                          "time": loss_of_scores(fast, slow)},
    }  # fmt: skip


def _application_facts(inputs: Inputs, line: Line, printed: Any) -> dict[str, Any]:
    from odonata.provisioning.cost import break_evens, hundredth_up, provision, without_floors

    found = asdict(provision(inputs, line))
    facts = {"slope": line.slope, "intercept": line.intercept, "limit": line.limit, **found}
    facts["printed"] = facts["difference"] = None
    if printed is not None:
        facts["printed"] = {key: value for key, value in asdict(printed).items()
                            if key != "why_not"}  # fmt: skip
        facts["difference"] = {name: found[name] / getattr(printed, name) - 1
                               for name in COMPARED if found[name] is not None}  # fmt: skip
        # of which s_ovp has two digits; its own times have more
        facts["difference"]["s_ovp_of_printed_times"] = (
            found["t_wc"] / found["t_ovp"] / (printed.t_wc / printed.t_ovp) - 1
        )
    points = break_evens(inputs, line)
    r_c = points["r_c"].value
    facts["break_even"] = {
        **{name: point.value for name, point in points.items()},
        "r_c": None if r_c is None else hundredth_up(r_c),
        "r_c_exact": r_c,
        "without_floors": without_floors(inputs, line),
        "why_none": {name: point.why_none for name, point in points.items() if point.why_none},
        "benefits": {name: point.benefits for name, point in points.items()},
    }
    return facts


# -- the thesis: what people read


def thesis_tables(found: Mapping[str, Any]) -> list[Any]:
    """Returns the same as tables, not wider than 100 columns."""
    given = found["inputs"]
    head = (f"cost ratio r_c {given['r_c']:g}, performance loss r_p {given['r_p']:.3g}, power "
            f"budget {given['power_w']:,g} W,\nhigh-end node at most {given['node_max_w']:g} W, "
            f"cheaper node at least {given['node_min_w']:g} W")  # fmt: skip
    return [head, "", _table_4_9(found), "", _break_even_table(found), "", *_thesis_notes(found)]


def _columns(*names: str, title: str = "") -> Any:
    from rich.table import Table

    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim",
                 title=title or None, title_justify="left", title_style="bold")  # fmt: skip
    for at, name in enumerate(names):
        rows.add_column(name, justify="right" if at else "left", no_wrap=True)
    return rows


def _table_4_9(found: Mapping[str, Any]) -> Any:
    compared = any(it["printed"] for it in found["applications"].values())
    names = ["", "n_wc", "n_lim", "n_ovp"]
    for name in ("t_ovp s", "t_wc s", "s_ovp"):
        names += [name, "printed", "by"] if compared else [name]
    rows = _columns(*names, title="Table 4.9" if compared else "As table 4.9")
    for name, it in found["applications"].items():
        cells = [f"{it[key]:,}" for key in ("n_wc", "n_lim", "n_ovp")]
        for key, form in (("t_ovp", ".2f"), ("t_wc", ".2f"), ("s_ovp", ".4f")):
            cells.append("-" if it["s_ovp"] is None else f"{it[key]:{form}}")
            if compared:
                by = it["difference"].get(key)
                cells += [f"{it['printed'][key]:.2f}", "-" if by is None else f"{by:+.1%}"]
        rows.add_row(name, *cells)
        if it["why_not"]:
            rows.add_row("", it["why_not"])
    return rows


def _break_even_table(found: Mapping[str, Any]) -> Any:
    rows = _columns("", "r_c from", "r_p to", "power from", "node max to", "node min to",
                    title="Break-even: s_ovp is 1 or more, all else as above")  # fmt: skip
    forms = {"r_c": "{:.2f}", "r_p": "{:.1%}", "power_w": "{:,.0f} W", "node_max_w": "{:.0f} W",
             "node_min_w": "{:.0f} W"}  # fmt: skip
    for name, it in found["applications"].items():
        rows.add_row(name, *_points(it["break_even"], forms))
        other = it["break_even"]["without_floors"]
        rows.add_row("[dim]  fractions of nodes[/dim]", *(
            f"[dim]{'none' if other[key] is None else form.format(other[key])}[/dim]"
            for key, form in forms.items()))  # fmt: skip
    return rows


def _thesis_notes(found: Mapping[str, Any]) -> list[str]:
    ratio, hour, scores = found["cost_ratio"], found["core_hour"], found["r_p_of_scores"]
    lines = [
        f"From r_c {found['r_c_bound']:.2f} on watts bind, not money. Lines hold to 48 nodes, and "
        "while their time is above 0.",
        "",
        "[bold]Effective cost ratio[/bold], 16 nodes of 3,300 or 1,700 USD in racks of 12,000 USD",
        f"  one high-end rack's money   {ratio['two_racks']:.2f}   (printed 1.45: 4,050 over 2,800,"
        f" a rounded mean of two racks;\n{'':37}not rounded, 2,825: "
        f"{ratio['two_racks_by_rack']:.2f}; 24 nodes for 16: {ratio['two_racks_by_node']:.2f})",
        f"  many racks                  {ratio['many_racks']:.2f}   (printed 1.7: 4,050 over 2,400"
        " in place of 2,450)",
        "",
        "[bold]Table 4.1[/bold], a core hour of Hopper in use",
        f"  {hour['usd_per_year']:,.0f} USD a year over {hour['core_hours_per_year']:,.0f} core "
        f"hours: {hour['usd']:.4f} USD (printed 0.018)",
        f"  2.6 MW at 10 cents per kWh are {hour['power_usd_at_10_cents']:,.0f} USD a year, not "
        "the printed 2,600,000",
        "",
        "[bold]r_p[/bold] of PassMark scores 17,812 and 13,985",
        f"  {scores['thesis']:.3f} as the thesis takes it, by how much the score is higher; "
        f"{scores['time']:.3f} of the time is saved",
    ]
    if any(it["printed"] for it in found["applications"].values()):
        lines.insert(0, "n_lim is printed as 50, which 140 W give; 180 W give 38.")
    return lines


# -- a buyer's prices: what programs read


def price_facts(prices: Prices, near: float) -> dict[str, Any]:
    """Returns what the prices buy, what each application makes of it, and what to buy, where times
    that differ by no more than a share, `near`, are nearly equal."""
    from odonata.provisioning.cost import cost_ratio, limit_ratio
    from odonata.provisioning.purchase import machines

    ratio = cost_ratio(prices.money, prices.high_end.price, prices.cheaper.price, prices.rack)
    several = len(prices.applications) > 1
    built = {_key(prices, one): _machine_facts(prices, one) for one in machines(prices)}
    facts: dict[str, Any] = {
        "currency": prices.currency,
        "budget": {"money": prices.money, "power_w": prices.power_w},
        "r_p": prices.r_p,
        "cost_ratio": {
            "this_budget": None if ratio is None else ratio.by_node,
            "many_racks": limit_ratio(prices.high_end.price, prices.cheaper.price, prices.rack),
        },
        "machines": built,
        "applications": {name: _use_facts(prices, name) for name in prices.applications},
        "mix": _use_facts(prices, None) if several else None,
        "warning": starved(built.values()),
    }
    return facts | {"recommendation": _recommendation(facts, near)}


def _recommendation(facts: Mapping[str, Any], near: float) -> dict[str, Any] | None:
    """Returns what to buy for the mix, or for the only application, of all machines whose time is
    known; None where that of one of the two that are compared is not."""
    from odonata.provisioning.recommendation import Offer, recommended

    what, it = list(uses_of(facts).items())[-1]
    if it["s_ovp"] is None:
        return None
    offers = [Offer(key, seconds, facts["machines"][key]["cost"], it["cost_per_job"][key])
              for key, seconds in it["seconds_per_job"].items() if seconds is not None]  # fmt: skip
    found = recommended(offers, near)
    return None if found is None else {"of": what, **asdict(found)}


def _key(prices: Prices, one: Machine) -> str:
    return f"{'high_end' if one.kind is prices.high_end else 'cheaper'}_{one.name}"


def _machine_facts(prices: Prices, one: Machine) -> dict[str, Any]:
    from odonata.provisioning.purchase import running_cost

    running = running_cost(prices, one)
    facts = {key: value for key, value in asdict(one).items() if key != "kind"}
    return {
        "name": one.kind.name,
        "nodes": one.nodes,
        "limited_by": one.limited_by,
        **facts,
        "least_w": one.kind.min_w,
        "starved": one.starved,
        "cost_per_year": None if running is None else running.per_year,
        "cost_per_core_hour": None if running is None else running.per_core_hour,
    }


def _use_facts(prices: Prices, name: str | None) -> dict[str, Any]:
    from odonata.provisioning.cost import BreakEven, break_even
    from odonata.provisioning.purchase import (
        SWEPT,
        cost_per_job,
        cure,
        job_time,
        machines,
        mix_time,
        price_sweep,
        remarks,
        speedup,
    )

    built = machines(prices)
    s, why_not = speedup(prices, name)
    facts: dict[str, Any] = {}
    if name is not None:
        told = prices.applications[name]
        facts = {**_times_facts(told.line), "weight": told.weight,
                 "jobs_at_once": told.jobs_at_once, "bound_w": told.bound_w,
                 "repairs": list(told.repairs), "remarks": remarks(prices, name),
                 "cure": cure(prices, name) if s is None else "",
                 "n_wc": built[0].nodes // told.jobs_at_once,
                 "n_ovp": built[1].nodes // told.jobs_at_once}  # fmt: skip
    times = {
        _key(prices, one): mix_time(prices, one)[0]
        if name is None
        else job_time(prices, prices.applications[name], one)[0]
        for one in built
    }
    facts["t_wc"], facts["t_ovp"] = (times[_key(prices, one)] for one in built[:2])
    points: dict[str, BreakEven] = {
        what: BreakEven(None, f"no answer to begin with: {why_not}", ())
        if s is None
        else break_even(price_sweep(prices, what, name), up)
        for what, up in SWEPT.items()
    }
    faster = None if s is None else "neither" if s == 1 else _key(prices, built[1 if s > 1 else 0])
    return facts | {
        "s_ovp": s,
        "why_not": why_not,
        "faster": faster,
        "seconds_per_job": times,
        "cost_per_job": {_key(prices, one): cost_per_job(prices, one, name) for one in built},
        "break_even": {
            **{what: point.value for what, point in points.items()},
            "why_none": {what: point.why_none for what, point in points.items() if point.why_none},
            "benefits": {what: point.benefits for what, point in points.items()},
        },
    }


def _times_facts(line: Line | Curve) -> dict[str, Any]:
    """Returns where an application's times come from. Of a table: the best that were measured by
    number of nodes, and the straight line through them, which is not used, with its mean error."""
    from odonata.provisioning.scaling import Line, fitted_line

    facts: dict[str, Any] = {"slope": None, "intercept": None, "from_nodes": line.from_nodes,
                             "limit": line.limit, "measured": None,
                             "line_not_used": None}  # fmt: skip
    if isinstance(line, Line):
        return facts | {"slope": line.slope, "intercept": line.intercept}
    best = [some[-1] for some in line.seconds]
    facts["measured"] = dict(zip(line.nodes, best, strict=True))
    if len(best) > 1:
        straight, error = fitted_line(line.nodes, best, line.limit)
        facts["line_not_used"] = {"slope": straight.slope, "intercept": straight.intercept,
                                  "error": error}  # fmt: skip
    return facts


# -- a buyer's prices: what people read


def price_tables(prices: Prices, found: Mapping[str, Any]) -> list[Any]:
    """Returns the same as tables, not wider than 100 columns."""
    from rich.text import Text

    ratio = found["cost_ratio"]
    head = (f"{prices.money:,.0f} {prices.currency} and {prices.power_w:,.0f} W; with its part of "
            f"the racks, a high-end node costs {_or_dash(ratio['this_budget'], '.2f')} times a\n"
            f"cheaper one ({ratio['many_racks']:.2f} times if all racks are full), and takes "
            f"{prices.r_p:.1%} less time")  # fmt: skip
    tables = [Text(head), "", _machine_table(prices, found), "", _use_table(prices, found)]
    first, *others = answer(found)
    tables += ["", Text(first, "bold"), *map(Text, others), *map(Text, reasons(found))]
    if found["warning"]:
        advice = found["recommendation"]
        but = "But " if advice and found["machines"][advice["buy"]]["starved"] else ""
        tables.append(Text(f"{but}{found['warning']}."))
    return tables + [Text(words, "dim") for words in notes(found)]


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def _machine_table(prices: Prices, found: Mapping[str, Any]) -> Any:
    built, money = found["machines"], prices.currency
    rows = _columns("", *(f"{it['name']},\n{how(it)}" for it in built.values()))
    shown = [("nodes", "nodes", ",d"), ("limited by", "limited_by", ""),
             (f"cost, {money}", "cost", ",.0f"), (f"left, {money}", "money_left", ",.0f"),
             ("needed, W", "watts_needed", ",.0f"), ("left, W", "watts_left", ",.0f"),
             ("per node, W", "watts_per_node", ",.0f")]  # fmt: skip
    if prices.running is not None:
        shown += [(f"a year, {money}", "cost_per_year", ",.0f"),
                  (f"a core hour, {money}", "cost_per_core_hour", ".4f")]  # fmt: skip
    for name, key, form in shown:
        rows.add_row(name, *(_or_dash(it[key], form) for it in built.values()))
    for what, key, form in ((", s a job", "seconds_per_job", ",.2f"),
                            (f", {money} a job", "cost_per_job", ",.4f")):  # fmt: skip
        if key == "seconds_per_job" or prices.running is not None:
            rows.add_row()
            for name, it in uses_of(found).items():
                rows.add_row(f"{name}{what}", *(_or_dash(it[key][each], form) for each in built))
    return rows


def _use_table(prices: Prices, found: Mapping[str, Any]) -> Any:
    money = prices.currency
    heads = ("speed-up by\noverprovisioning", f"is 1 or more\nwith {money} from", "\nwith W from",
             f"cheaper node,\n{money} to", "performance\nloss to")  # fmt: skip
    rows = _columns("", *heads)
    forms = {"money": "{:,.0f}", "power_w": "{:,.0f}", "price": "{:,.0f}", "loss": "{:.1%}"}
    for name, it in uses_of(found).items():
        points = _points(it["break_even"], forms) if it["s_ovp"] is not None else ["-"] * len(forms)
        rows.add_row(name, _or_dash(it["s_ovp"], ".2f"), *points)
    return rows


def _points(points: Mapping[str, Any], forms: Mapping[str, str]) -> list[str]:
    reasons = points["why_none"]
    return [form.format(points[key]) if points[key] is not None
            else "always" if reasons[key] == "always" else "none"
            for key, form in forms.items()]  # fmt: skip
