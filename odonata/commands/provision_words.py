"""The sentences of `odonata provision`: what to buy, how the other machines compare with it, why
there is no answer, and what else a buyer should know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def how(one: Mapping[str, Any]) -> str:
    """Returns in what way a machine has its watts."""
    if one["at_full_power"]:
        return "at full power"
    return "overprovisioned" if one["overprovisioned"] else "worst case"


def uses_of(found: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns what is known by application, and of the mix last, where there are several."""
    mix = {"the mix": found["mix"]} if found["mix"] else {}
    return {**found["applications"], **mix}


def answer(found: Mapping[str, Any]) -> list[str]:
    """Returns the buyer's answer: how many nodes of which kind, and a sentence on each other
    machine."""
    advice = found["recommendation"]
    what, it = list(uses_of(found).items())[-1]
    if advice is None:
        silent = [name for name, one in found["applications"].items() if one["why_not"]]
        why = "" if what in silent else f", as there is none for {', '.join(silent)}"
        return [f"No answer for {what}{why}:"]
    built = found["machines"]
    best = built[advice["buy"]]
    lines = [f"Buy {_named(best)}, limited by {best['limited_by']}: {_why(advice, what)}."]
    if best["at_full_power"]:
        lines.append("This is not overprovisioned: all are at full power, and "
                     f"{best['watts_left']:,.0f} W are left that this money cannot "
                     "use.")  # fmt: skip
    said = {_same(best, it["seconds_per_job"][advice["buy"]])}
    for rival in advice["rivals"]:
        other = built[rival["key"]]
        same = _same(other, it["seconds_per_job"][rival["key"]])
        if same not in said:  # it is another machine, not another name of one
            said.add(same)
            lines.append(_rival(rival, other, best, advice, found["currency"]))
    lines += [f"- {_named(built[key])}: its time is not known." for key, seconds
              in it["seconds_per_job"].items() if seconds is None]  # fmt: skip
    return lines


def _named(one: Mapping[str, Any]) -> str:
    return f"{one['nodes']:,} {one['name']} ({how(one)})"


def _same(one: Mapping[str, Any], seconds: float) -> tuple[Any, ...]:
    return one["name"], one["nodes"], one["cost"], seconds


def _why(advice: Mapping[str, Any], what: str) -> str:
    """Returns what speaks for the machine that is recommended."""
    buy = advice["buy"]
    if buy == advice["fastest"]:
        first = f"the fastest for {what}"
    else:
        first = (f"the cheapest of those that are within {_percent(advice['near'])} of the "
                 f"fastest for {what}")  # fmt: skip
    told = [first, *["the cheapest to buy"] * (buy == advice["cheapest"]),
            *["the cheapest per job"] * (buy == advice["cheapest_per_job"])]  # fmt: skip
    return " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))


def _rival(
    rival: Mapping[str, Any], other: Mapping[str, Any], best: Mapping[str, Any],
    advice: Mapping[str, Any], currency: str,
) -> str:  # fmt: skip
    """Returns a sentence on a machine that is not recommended."""
    cost = other["cost"] - best["cost"]
    sums = f"{abs(cost):,.0f} {currency} ({_percent(rival['dearer'])}) " if cost else ""
    words = [_by(rival["longer"], "time"), f"{sums}{_more(cost, 'to buy')}",
             _by(rival["dearer_per_job"], "per job")]  # fmt: skip
    verdict = ""
    if rival["dominated"]:
        verdict = ": nothing speaks for it"
    elif rival["nearly_as_fast"]:
        verdict = ": nearly as fast" + ", and dearer" * (cost > 0)
    elif rival["key"] == advice["cheapest_per_job"]:
        verdict = ": the cheapest per job, for those who can wait"
    return f"- {_named(other)}: {', '.join(words)}{verdict}."


def _by(share: float, what: str) -> str:
    return f"{_percent(share)} {_more(share, what)}" if share else _more(share, what)


def _more(value: float, what: str) -> str:
    return f"more {what}" if value > 0 else f"less {what}" if value < 0 else f"the same {what}"


def _percent(value: float) -> str:
    """Returns a share without its sign, to two figures or a tenth of a percent."""
    if 0.0 < abs(value) < 5e-4:
        return "less than 0.1%"
    return f"{abs(value):.1%}" if abs(value) < 0.0995 else f"{abs(value):.0%}"


def reasons(found: Mapping[str, Any]) -> list[str]:
    """Returns why there is no answer for an application, and what to change."""
    return [f"{name}: {it['why_not']}: {it['cure']}." for name, it in found["applications"].items()
            if it["why_not"]]  # fmt: skip


def notes(found: Mapping[str, Any]) -> list[str]:
    """Returns what a buyer should know about each application, in sentences: where its times come
    from, what it leaves unused, and what is odd about its table, once for each file."""
    said: list[str] = []
    odd: dict[str, None] = {}
    for name, it in found["applications"].items():
        if it["measured"]:
            line = it["line_not_used"]
            off = f" (a straight line would be {line['error']:.0%} off)" if line else ""
            said.append(f"{name}: the best times that were measured, on {it['from_nodes']} to "
                        f"{it['limit']} nodes, interpolated in logarithms{off}.")  # fmt: skip
        said += [f"{name}: {words}." for words in it["remarks"]]
        odd |= dict.fromkeys(it["repairs"])
    return [*said, *odd]


def starved(built: Iterable[Mapping[str, Any]]) -> str | None:
    """Returns a warning of machines that have so many nodes that each can hardly draw more than its
    least; None where there are none."""
    told = [
        f"{one['nodes']:,} {one['name']} have {one['watts_per_node']:,.0f} W each, and need "
        f"{one['least_w']:g} W at least" for one in built if one["starved"]
    ]  # fmt: skip
    if not told:
        return None
    return f"{'; '.join(told)}: can they compute as fast so near it? Measure, or buy fewer"
