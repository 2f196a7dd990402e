"""What the study says of models: the errors of predictions, and what is printed of applications."""

from __future__ import annotations

from collections.abc import Iterator

from odonata.results.statistics import interval
from odonata.studies.rmap.cases import NOISE, NOISES, WAYS
from odonata.studies.rmap.changes import Measured, signed, there
from odonata.studies.rmap.prediction import LIMITS, UNDER_10
from odonata.study.contract import Claim, Verdict
from odonata.study.verdicts import below, near, percent, values_of, verdict

ON_POWER = "rmap.md#the-model"
ON_STATEMENTS = "overprovisioning.md#those-that-do-not-hold-and-why"
SOURCE = "Patki 5.4"


def of_predictions(m: Measured) -> Iterator[Claim]:
    usual = there(m, m.asked.trained(NOISE))
    if usual is not None:
        apps = {name: one for name, one in usual.rows.items() if name != "all"}
        for what, limit in LIMITS.items():
            worst = max(apps, key=lambda name: apps[name][what])
            it = interval(usual.lists[worst][what])
            said = verdict(below(it, limit), it.mean < limit)
            yield Claim(f"5.4: time, noise of 2 %: {what} error, worst application",
                        f"< {100 * limit:g} %", f"{percent(it)} ({worst})", said, it.of,
                        {**values_of(it), **{name: one[what] for name, one in apps.items()}},
                        SOURCE, False, "" if said is Verdict.HOLDS else ON_POWER)  # fmt: skip
        for under, limit, words in ((10, UNDER_10, "4 %"), (15, 0.0, "0")):
            it = interval(usual.lists["all"][f"under {under}"])
            near_it = near(it, limit) or below(it, limit + 0.02) if limit else it.high <= 0
            said = verdict(near_it)
            yield Claim(f"5.4: power, noise of 2 %: points more than {under} % too low", words,
                        percent(it, 2), said, it.of, values_of(it), SOURCE, False,
                        "" if said is Verdict.HOLDS else ON_POWER)  # fmt: skip
    rows = [(f"noise of {100 * noise:g} %{words}", m.asked.trained(noise, **how))
            for words, how in ((("", {}), (", spread", {"sampling": "spread"})))
            for noise in NOISES]  # fmt: skip
    rows += [(f"no noise, {words}", m.asked.trained(0.0, **way)) for words, way in WAYS.items()]
    for words, case in rows:
        found = there(m, case)
        if found is None:
            continue
        apps = {name: one for name, one in found.rows.items() if name != "all"}
        every = found.rows["all"]
        highest = {what: max(one[what] for one in apps.values()) for what in LIMITS}
        yield Claim(f"prediction, {words}: time, worst application; power > 10, 15 % too low", "",
                    ", ".join(f"{100 * it:.1f}" for it in highest.values())
                    + f" %; {100 * every['under 10']:.1f}, {100 * every['under 15']:.2f} %", None,
                    case.trainings, {**highest, **every})  # fmt: skip
        yield Claim(f"prediction, {words}: trainings that keep the limits: time, power", "",
                    f"{100 * every['kept time']:.0f}, {100 * every['kept power']:.0f} %", None,
                    case.trainings, {"time": every["kept time"], "power": every["kept power"]}
                    )  # fmt: skip


def of_printed(m: Measured) -> Iterator[Claim]:
    from odonata.studies.rmap.printed import points, searched
    from odonata.studies.rmap.statements import statements

    for it in points():
        table = "4.2" if it.machine == "rzmerl" else "5.2"
        said = verdict(it.holds)
        yield Claim(f"table {table}: {it.application} {it.printed.name}",
                    f"{it.printed.seconds:g} s, {it.printed.watts:,g} W",
                    f"{it.ours.seconds:.1f} s, {it.ours.watts:,.0f} W "
                    f"({signed(it.error_s)}, {signed(it.error_w)})", said, 1,
                    {"seconds": it.ours.seconds, "watts": it.ours.watts}, f"Patki table {table}",
                    True, "" if it.holds else ON_STATEMENTS)  # fmt: skip
    for found in searched():
        ours = found.found.name
        if found.ties and found.printed[:3] != found.found[:3]:
            ours += ", and as good under the printed cap"
        same = found.nodes_and_cores and (found.ties or found.printed[:3] == found.found[:3])
        yield Claim(f"table 4.2: best of {found.application}", found.printed.name, ours,
                    verdict(same, found.nodes_and_cores), 1, {}, "Patki table 4.2", True,
                    "" if same else ON_STATEMENTS)  # fmt: skip
    for one in statements():
        cause = "" if one.verdict in (None, Verdict.HOLDS) else ON_STATEMENTS
        yield Claim(one.name, one.printed, one.ours, one.verdict, 1, {**one.values},
                    one.source if one.printed else "", one.fitted and bool(one.printed), cause
                    )  # fmt: skip
