"""What the thesis says in its chapter 4 of what nodes cost, and what its own equations give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from odonata.provisioning import cost
from odonata.provisioning.prices import loss_of_scores
from odonata.results.statistics import Interval
from odonata.studies.rmap.changes import Measured
from odonata.study.contract import Claim, Verdict
from odonata.study.verdicts import near, verdict

ERRATA = "buying.md#errata"
RACK_MONEY = 64_800.0
"""The price of one rack of high-end nodes (4.4.2)."""
DECIMALS = {"n_wc": 0, "n_lim": 0, "c_wc": 1, "n_ovp": 0, "t_ovp": 2, "t_wc": 2, "s_ovp": 2}
"""With how many each column of table 4.9 is printed."""
MISPRINTED = "SP-MZ"
"""The application whose times in table 4.9 do not follow from table 4.8."""
BT_LOSSES = (0.10, 0.20)
"""Printed: the range of r_p in which overprovisioning is faster for BT-MZ."""


def of_costs(m: Measured) -> Iterator[Claim]:
    yield from _table()
    yield from _break_even()
    yield from _racks()


def _claim(name: str, source: str, printed: float, ours: float, digits: int = 0, unit: str = "",
           sign: bool = False, cause: str = ERRATA) -> Claim:  # fmt: skip
    said = verdict(near(Interval(ours, ours, ours, 1), printed, 0.5 * 10.0**-digits), sign)
    known = said is not Verdict.HOLDS or name.endswith(MISPRINTED)
    return Claim(name, f"{printed:,.{digits}f}{unit}", f"{ours:,.{digits + 1}f}{unit}", said, 1,
                 {"value": ours}, source, False, cause if known else "")  # fmt: skip


def _table() -> Iterator[Claim]:
    """Table 4.9, by its columns; those before the times are the same for all applications."""
    found = {name: cost.provision(cost.Inputs(), line) for name, line in cost.APPLICATIONS.items()}
    first = next(iter(found))
    for column, digits in DECIMALS.items():
        for name in cost.APPLICATIONS:
            printed, ours = (float(getattr(it[name], column)) for it in (cost.PRINTED, found))
            whose = f", {name}" if column in ("t_ovp", "t_wc", "s_ovp") else ""
            if whose or name == first:
                sign = column == "s_ovp" and (printed > 1) == (ours > 1)
                yield _claim(f"table 4.9: {column}{whose}", "Patki table 4.9", printed, ours,
                             digits, sign=sign)  # fmt: skip
        if column == "s_ovp":
            for name in cost.APPLICATIONS:
                printed, ours = (float(getattr(it[name], column)) for it in (cost.PRINTED, found))
                side = verdict((printed > 1) == (ours > 1))
                words = {True: "overprovisioned", False: "worst case"}
                yield Claim(f"table 4.9: the faster machine for {name}", words[printed > 1],
                            words[ours > 1], side, 1, {"s_ovp": ours}, "Patki table 4.9", False,
                            "" if side is Verdict.HOLDS else ERRATA)  # fmt: skip


def _break_even() -> Iterator[Claim]:
    source, usual = "Patki 4.4.5", cost.Inputs()
    for name in ("SPhot", "SP-MZ"):
        found = cost.break_evens(usual, cost.APPLICATIONS[name])["r_c"].value or float("nan")
        yield _claim(f"4.4.5: {name}: r_c from which overprovisioning pays", source, 2.0, found, 1)
    for words, changed in (("at r_c 1.5", {"r_c": 1.5}), ("at r_p 40 %", {"r_p": 0.40})):
        s_ovp = cost.provision(replace(usual, **changed), cost.APPLICATIONS["LU-MZ"]).s_ovp or 0.0
        said = verdict(s_ovp > 1)
        yield Claim(f"4.4.5: LU-MZ: s_ovp {words}", "> 1", f"{s_ovp:.3f}", said, 1,
                    {"s_ovp": s_ovp}, source, False,
                    "" if said is Verdict.HOLDS else ERRATA)  # fmt: skip
    line = cost.APPLICATIONS["BT-MZ"]
    ends = [cost.provision(replace(usual, r_p=loss), line).s_ovp or 0.0 for loss in BT_LOSSES]
    said = verdict(min(ends) > 1, max(ends) > 1)
    most = cost.break_evens(usual, line)["r_p"].value or 0.0
    yield Claim("4.4.5: BT-MZ: overprovisioning pays with r_p of", "10 .. 20 %",
                f"up to {100 * most:.1f} %", said, 1, {"r_p": most}, source, False,
                "" if said is Verdict.HOLDS else ERRATA)  # fmt: skip
    none = [name for name in ("r_c", "power_w") if cost.break_evens(usual,
                                                                    line)[name].value is not None
    ]  # fmt: skip
    yield Claim("4.4.5: BT-MZ: inputs of which more makes it pay, of r_c and power", "none",
                ", ".join(none) or "none", verdict(not none), 1, {}, source)  # fmt: skip


def _racks() -> Iterator[Claim]:
    source, rack = "Patki 4.4.2", cost.Rack()
    found = cost.cost_ratio(RACK_MONEY, cost.HIGH_END_PRICE, cost.CHEAPER_PRICE, rack)
    assert found is not None
    each = rack.cost(rack.nodes, cost.CHEAPER_PRICE) / rack.nodes
    yield _claim("4.4.2: a high-end node with its part of a rack", source, 4050,
                 found.high_end_each, 0, " USD")  # fmt: skip
    yield _claim(
        "4.4.2: a cheaper node with its part of a full rack", source, 2450, each, 0, " USD"
    )
    yield _claim("4.4.2: a cheaper node, mean of the two racks", source, 2800,
                 found.cheaper_mean_of_racks, 0, " USD")  # fmt: skip
    yield _claim("4.4.2: nodes more than 16 for the money of one rack", source, 8,
                 found.cheaper_nodes - rack.nodes)  # fmt: skip
    yield _claim("4.4.2: r_c for the money of one rack", source, cost.TWO_RACKS, found.by_rack, 2)
    yield _claim("4.4.2: r_c of many racks", source, cost.MANY_RACKS,
                 cost.limit_ratio(cost.HIGH_END_PRICE, cost.CHEAPER_PRICE, rack), 1)  # fmt: skip
    yield _claim("4.4.3: time that the high-end node saves, by its score", "Patki 4.4.3", 0.27,
                 loss_of_scores(*cost.SCORES), 2)  # fmt: skip
    yield _claim("table 4.1: a core hour of Hopper in use", "Patki table 4.1",
                 cost.HOPPER_PER_CORE_HOUR, cost.HOPPER.per_core_hour, 3, " USD")  # fmt: skip
