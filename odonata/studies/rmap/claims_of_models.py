"""What the study says of models: the errors of predictions, and what is printed of applications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from odonata.studies.rmap.cases import NOISE, NOISES, WAYS, RmapPlan
from odonata.studies.rmap.changes import Outcomes, signed, there
from odonata.studies.rmap.prediction import LIMITS, UNDER_10
from odonata.study.contract import Claim
from odonata.study.verdicts import yes_or_no


def of_predictions(asked: RmapPlan, outcomes: Outcomes) -> Iterator[Claim]:
    usual = there(outcomes, asked.trained(NOISE))
    if usual is not None:
        apps = {name: one for name, one in usual.rows.items() if name != "all"}
        for what, limit in LIMITS.items():
            worst = max(apps, key=lambda name: apps[name][what])
            value = apps[worst][what]
            yield Claim(
                f"time, noise of 2 %: {what} error, worst application",
                f"< {100 * limit:g} %",
                f"{100 * value:.1f} % ({worst})",
                yes_or_no(value < limit),
                len(apps),
                {name: one[what] for name, one in apps.items()},
            )
        every = usual.rows["all"]
        yield Claim(
            "power, noise of 2 %: points more than 10 % too low",
            "4 %",
            _shares(every, 10),
            yes_or_no(every["under 10"] <= UNDER_10),
            len(apps),
            dict(every),
        )
        yield Claim("power, noise of 2 %: points more than 15 % too low", "0", _shares(every, 15),
                    yes_or_no(every["under 15 most"] == 0), len(apps), dict(every))  # fmt: skip
    rows = [(f"noise of {100 * noise:g} %{words}", asked.trained(noise, **how))
            for words, how in ((("", {}), (", spread", {"sampling": "spread"})))
            for noise in NOISES]  # fmt: skip
    rows += [(f"no noise, {words}", asked.trained(0.0, **way)) for words, way in WAYS.items()]
    for words, case in rows:
        found = there(outcomes, case)
        if found is None:
            continue
        apps = {name: one for name, one in found.rows.items() if name != "all"}
        every = found.rows["all"]
        highest = {what: max(one[what] for one in apps.values()) for what in LIMITS}
        yield Claim(f"{words}: time, worst application; power > 10, 15 % too low", "",
                    ", ".join(f"{100 * it:.1f}" for it in highest.values())
                    + f" %; {100 * every['under 10']:.1f}, {100 * every['under 15']:.2f} %", None,
                    case.trainings, {**highest, **every})  # fmt: skip
        yield Claim(f"{words}: trainings that keep the limits: time, power", "",
                    f"{100 * every['kept time']:.0f}, {100 * every['kept power']:.0f} %", None,
                    case.trainings, {"time": every["kept time"], "power": every["kept power"]}
                    )  # fmt: skip


def _shares(every: Mapping[str, float], percent: int) -> str:
    mean, low, high = (every[f"under {percent}{end}"] for end in ("", " least", " most"))
    return f"{100 * mean:.2f} % ({100 * low:.2f} .. {100 * high:.2f})"


# -- chapter 3


def of_printed() -> Iterator[Claim]:
    from odonata.studies.rmap.printed import points, searched
    from odonata.studies.rmap.statements import statements

    for it in points():
        yield Claim(f"{it.machine}, {it.application} {it.printed.name}",
                    f"{it.printed.seconds:g} s, {it.printed.watts:,g} W",
                    f"{signed(it.error_s)}, {signed(it.error_w)}", yes_or_no(it.holds), 1,
                    {"seconds": it.ours.seconds, "watts": it.ours.watts})  # fmt: skip
    for found in searched():
        ours = found.found.name + (" or any higher cap" if found.ties else "")
        same = found.nodes_and_cores and (found.ties or found.printed[:3] == found.found[:3])
        yield Claim(
            f"3,500 W: best of {found.application}", found.printed.name, ours, yes_or_no(same), 1
        )
    for said in statements():
        yield Claim(said.name, said.printed, said.ours, yes_or_no(said.holds), 1)
