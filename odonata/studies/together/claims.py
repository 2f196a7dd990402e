"""What the study answers: first its question, then where the answer comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from odonata.results.statistics import Interval
from odonata.studies.together.cases import ALLOCATIONS, PUBLISHED, settings
from odonata.studies.together.found import MIDDLE_W, Measured, Queued, Setting
from odonata.study.contract import Claim
from odonata.study.verdicts import above, judged, percent, shown, watts

SIMPLE, LEVEL, NEDD = ALLOCATIONS
LEAST = 2
"""The fewest queues that an interval can be had of; of fewer nothing is claimed."""
BLIND, METERED, TYPES, WAITING = (
    (SIMPLE, power) for power in ("assumed", "metered", "by type", "by waiting")
)
KNOWING = NEDD, "by waiting"
"""The setting that goes by all that is known of the network."""


def claims(m: Measured) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    return [*_answer(m), *_steps(m), *_rows(m)]


def named(setting: Setting) -> str:
    """Returns the name of a setting."""
    return " + ".join(setting)


def _more(m: Measured, name: str, before: Setting, after: Setting, value: Callable[[Queued], float],
          show: Callable[[Interval], str]) -> Iterator[Claim]:  # fmt: skip
    """Yields whether something is more under a setting than under another: the whole interval of
    differences is to be above 0."""
    it = m.change(before, after, value)
    if it.of >= LEAST:
        yield judged(name, "", show(it), above(it, 0.0), it.mean > 0.0, it)


def _answer(m: Measured) -> Iterator[Claim]:
    """Yields the answer: how much more can be offered by who knows the network."""
    yield from _more(m, f"{named(KNOWING)} offers more than {named(BLIND)}, which takes all nodes "
                     "to compute", BLIND, KNOWING, m.offered, watts)  # fmt: skip
    yield from _more(m, f"{named(KNOWING)} offers more than {named(METERED)}, which reads the "
                     "meter of the machine", METERED, KNOWING, m.offered, watts)  # fmt: skip


def _steps(m: Measured) -> Iterator[Claim]:
    """Yields where that comes from: one step after the other, with all else the same."""
    for words, before, after in (
        ("reading the machine's meter", BLIND, METERED),
        ("what each type draws, beyond that", METERED, TYPES),
        ("capping first who loses least, beyond that", TYPES, WAITING),
        ("level-spread in place of simple, beyond that", WAITING, (LEVEL, "by waiting")),
        ("nedd in place of simple, likewise", WAITING, KNOWING),
        ("level-spread in place of simple, by meter only", METERED, (LEVEL, "metered")),
        ("nedd in place of simple, by meter only", METERED, (NEDD, "metered")),
    ):
        yield from _more(m, f"more is offered by {words}", before, after, m.offered, watts)
        yield from _more(m, f"more is saved by {words}", before, after, lambda it: it.saving,
                         lambda it: percent(it, 2))  # fmt: skip
        yield from _more(m, f"jobs are back sooner by {words}", before, after,
                         lambda it: -it.slower(MIDDLE_W), lambda it: percent(it, 2))  # fmt: skip
    for allocation in (LEVEL, NEDD):
        yield from _more(m, f"jobs wait less for the network by {allocation} than by {SIMPLE}, "
                         "where nothing is offered", WAITING, (allocation, "by waiting"),
                         lambda it: -it.free.network_us / it.blind.network_us, percent)  # fmt: skip


def _rows(m: Measured) -> Iterator[Claim]:
    """Yields what each setting came to, unjudged."""
    for setting in settings():
        offered = m.mean(setting, m.offered)
        if offered.of < LEAST:
            continue
        bad, bias, spread, slower, network, saving = (
            m.mean(setting, value)
            for value in (
                lambda it: it.offers[MIDDLE_W].bad or 0.0,
                lambda it: it.offers[MIDDLE_W].bias_w,
                lambda it: it.offers[MIDDLE_W].spread_w,
                lambda it: it.slower(MIDDLE_W),
                lambda it: it.offers[MIDDLE_W].network_us,
                lambda it: it.offers[MIDDLE_W].saving or 0.0,
            )
        )
        text = (f"offers {watts(offered)}; with {MIDDLE_W:,.0f} W: off in {percent(bad)}, "
                f"{watts(bias)} from its target, ± {spread.mean:,.0f} W; saves {percent(saving)}; "
                f"jobs {slower.mean:.3f} ± {slower.half:.3f} times as long, "
                f"{network.mean:.0f} us of it in the network")  # fmt: skip
        known = "published" if setting[1] in PUBLISHED else "this study"
        yield shown(f"{named(setting)} ({known})", "", text, offered)
