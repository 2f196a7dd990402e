"""What the thesis says of its figures 3.2 to 3.8 in numbers and words, beside what we found; and,
with `claims_random`, of the others.

A sentence about all policies, patterns and ratios **holds** where it does for each of them, with
its whole interval; in sign only where it does on average. Of a range, each end is compared with
the same end of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise

from odonata.results.statistics import Interval, interval
from odonata.studies.levelspread import claims_random
from odonata.studies.levelspread.cases import (
    COMPACT,
    LARGE_NODES,
    LARGER,
    LEVEL_SPREAD,
    LONG_KB,
    LOWER,
    MACHINE,
    MESSAGES,
    PATTERNS,
    POLICIES,
    RATIOS,
    SMALL_NODES,
    SPREADING,
    heterogeneous,
    homogeneous,
    motivation,
    nodes_of,
    quarters,
)
from odonata.studies.levelspread.measures import (
    HALF,
    Cell,
    Measured,
    Seeds,
    averaged,
    claim,
    ends,
    less,
    relative_to,
    saved,
    times,
)
from odonata.studies.levelspread.simulation import LARGE, SMALL
from odonata.study.contract import Claim
from odonata.study.verdicts import above, near, percent, verdict

KINDS = ((SMALL, "small jobs"), (LARGE, "large jobs"))


def claims(m: Measured) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    parts = (_motivation, _homogeneous, _quarters, _ports, _ratios, _machines, _messages,
             claims_random.claims, _utilisation, _large_messages)  # fmt: skip
    return [claim for part in parts for claim in part(m) if claim.of]


# -- kinds of claims


def number(name: str, printed: float, it: Interval, source: str, why: str, besides: str = "", *,
           calibrated: bool = False) -> Claim:  # fmt: skip
    """Returns the claim that what is saved is as much as was printed."""
    said = verdict(near(it, printed, HALF), above(it, 0))
    return claim(name, f"{100 * printed:.0f} %", percent(it) + besides, said, it, source, why,
                 calibrated=calibrated)  # fmt: skip


def everywhere(name: str, paper: str, several: Iterable[Seeds], source: str, why: str) -> Claim:
    """Returns the claim that something is above 0 in each of several cells."""
    cells = list(several)
    found, middle = [interval(cell) for cell in cells], interval(averaged(cells))
    if not middle.of:
        return Claim(name, paper, "")
    there = sum(above(it, 0) for it in found)
    ours = f"in {there} of {len(found)}; on average {percent(middle)}"
    said = verdict(there == len(found), above(middle, 0))
    return claim(name, paper, ours, said, middle, source, why)


def unchanged(name: str, paper: str, several: Iterable[Seeds], source: str, why: str) -> Claim:
    """Returns the claim that several ratios are 1: each holds as a printed number would. In sign
    only: on average they are."""
    cells = list(several)
    found, middle = [interval(cell) for cell in cells], interval(averaged(cells))
    if not middle.of:
        return Claim(name, paper, "")
    there = sum(near(it, 1) for it in found)
    least, most = (pick(it.mean for it in found) for pick in (min, max))
    ours = f"within a tenth in {there} of {len(found)}; {least:.2f} .. {most:.2f}"
    return claim(name, paper, ours, verdict(there == len(found), near(middle, 1)), middle, source,
                 why)  # fmt: skip


def spanned(name: str, several: Iterable[Seeds]) -> Claim:
    """Returns how far savings reach from the least to the most, which nothing is printed of."""
    cells = list(several)
    both, middle = ends(cells), interval(averaged(cells))
    if both is None:
        return Claim(name, "", "")
    low, high = both
    ours = f"{100 * low.mean:.0f} .. {100 * high.mean:.0f}, mean {percent(middle)}"
    return Claim(name, "", ours, None, len(cells),
                 {"least": low.mean, "most": high.mean, "mean": middle.mean})  # fmt: skip


# -- figure 3.2


def _motivation(m: Measured) -> Iterator[Claim]:
    def by_pattern(large: bool, one: str, other: str) -> list[Seeds]:
        return [saved(*(times(m, motivation(m.asked, large, pattern, policy), SMALL)
                        for policy in (one, other))) for pattern in PATTERNS]  # fmt: skip

    yield everywhere("3.2, 17 × 16 nodes: RDG over RDN, by pattern", "faster",
                     by_pattern(False, "rdg", "rdn"), "Zhang 3.2", "figure-32")  # fmt: skip
    parts = by_pattern(True, "rdn", "rdg")
    both, middle = ends(parts), interval(averaged(parts))
    if both:
        besides = f" (by pattern {100 * both[0].mean:.0f} .. {100 * both[1].mean:.0f})"
        yield number("3.2, 4 × 68 nodes: RDN over RDG, mean over patterns", 0.30, middle,
                     "Zhang 3.2", "figure-32", besides)  # fmt: skip


# -- figures 3.4 to 3.6


def _homogeneous(m: Measured) -> Iterator[Claim]:
    @cache
    def time(nodes: int, pattern: str, ratio: float, policy: str) -> Seeds:
        return times(m, homogeneous(m.asked, nodes, pattern, ratio, policy), SMALL)

    def savings(nodes: int, ratios: Iterable[float], ones: Sequence[str], others: Sequence[str],
                patterns: Sequence[str] = PATTERNS) -> list[Seeds]:  # fmt: skip
        return [saved(time(nodes, pattern, ratio, one), time(nodes, pattern, ratio, other))
                for ratio in ratios for pattern in patterns for one in ones
                for other in others]  # fmt: skip

    compact, spread = (LEVEL_SPREAD, *COMPACT), (LEVEL_SPREAD, *SPREADING)
    # That exchanges are pairwise and a broadcast a tree was read in SST, after both had been tried
    # otherwise and these numbers looked at.
    both = ends(savings(SMALL_NODES, RATIOS, compact, SPREADING))
    if both:
        for which, printed, it in zip(("least", "most"), (0.15, 0.89), both, strict=True):
            yield number(f"3.4a, 16 nodes: compact over spreading, {which}", printed, it,
                         "Zhang 3.4", "what-16-node-jobs-gain",
                         calibrated=which == "least")  # fmt: skip
    both = ends(savings(LARGE_NODES, [1.0], [LEVEL_SPREAD], ["simple"]))
    if both:
        for which, printed, it in zip(("least", "most"), (0.22, 0.54), both, strict=True):
            yield number(f"3.4b, 64 nodes, ratio 1: over Simple, {which}", printed, it,
                         "Zhang 3.4", "what-64-node-jobs-gain", calibrated=True)  # fmt: skip
    yield everywhere("3.4b, 64 nodes: Level-Spread and spreading over compact", "faster",
                     savings(LARGE_NODES, RATIOS, spread, COMPACT), "Zhang 3.4",
                     "what-64-node-jobs-gain")  # fmt: skip
    parts = (("3.4a, 16 nodes", SMALL_NODES, compact, SPREADING),
             ("3.4b, 64 nodes", LARGE_NODES, spread, COMPACT))  # fmt: skip
    for part, nodes, ones, others in parts:
        yield everywhere(f"{part}: gain, the slower the global links", "larger",
                         (less(averaged(savings(nodes, [low], ones, others, [pattern])),
                               averaged(savings(nodes, [high], ones, others, [pattern]))) for low,
                          high in pairwise(RATIOS) for pattern in PATTERNS), "Zhang 3.4",
                         "bandwidth-ratios")  # fmt: skip
    for ratio in RATIOS:
        yield spanned(f"3.4a, ratio {fraction(ratio)}: compact over spreading",
                      savings(SMALL_NODES, [ratio], compact, SPREADING))  # fmt: skip
    for ratio in RATIOS:
        yield spanned(f"3.4b, ratio {fraction(ratio)}: spreading too, over Simple",
                      savings(LARGE_NODES, [ratio], spread, ["simple"]))  # fmt: skip
    for pattern in PATTERNS:
        alone = savings(LARGE_NODES, [1.0], [LEVEL_SPREAD], ["simple"], [pattern])
        yield spanned(f"3.4b, ratio 1, {pattern}: over Simple", alone)


def _quarters(m: Measured) -> Iterator[Claim]:
    """Relative to Simple, beside jobs of 64 nodes of the same pattern, policy and ratio."""

    def to_simple(nodes: int, pattern: str, ratio: float, policy: str, machine: str) -> Seeds:
        return relative_to(*(times(m, homogeneous(m.asked, nodes, pattern, ratio, name, machine),
                                   SMALL) for name in (policy, "simple")))  # fmt: skip

    yield unchanged("four quarter-machine jobs: times over Simple's, beside 64 nodes", "very close",
                    (relative_to(to_simple(nodes, pattern, ratio, policy, machine),
                                 to_simple(LARGE_NODES, pattern, ratio, policy, MACHINE))
                     for machine, nodes, ratio in quarters() for pattern in PATTERNS
                     for policy in POLICIES if policy != "simple"), "Zhang 3.4.1",
                    "jobs-of-a-quarter-machine")  # fmt: skip


def _ports(m: Measured) -> Iterator[Claim]:
    """Yields claims about ports for all-to-all at a ratio of 1: for each class of links the median
    or the largest count of a port under one policy, less that under another, as a part of their
    sum."""

    def counts(nodes: int, policy: str, link: str, count: str, which: int, minus: int) -> Seeds:
        found = [m.of(point) for point in homogeneous(m.asked, nodes, "all-to-all", 1.0, policy)]
        return [None if one is None else
                one.ports[link][count][which] - (one.ports[link][count][minus] if minus else 0)
                for one in found]  # fmt: skip

    def apart(nodes: int, ones: Sequence[str], others: Sequence[str], count: str, which: int,
              minus: int = 0) -> list[Seeds]:  # fmt: skip
        def part(one: str, other: str, link: str) -> Seeds:
            a, b = (counts(nodes, name, link, count, which, minus) for name in (one, other))
            return [None if x is None or y is None else (y - x) / (x + y) if x + y else 0.0
                    for x, y in zip(a, b, strict=True)]  # fmt: skip

        return [part(one, other, link) for link in ("local", "global") for one in ones
                for other in others]  # fmt: skip

    compact, spread = (LEVEL_SPREAD, *COMPACT), (LEVEL_SPREAD, *SPREADING)
    why = "ports"
    yield everywhere("3.5, 16 nodes: packets of a port (median), compact against spreading",
                     "fewer", apart(SMALL_NODES, compact, SPREADING, "packets", 2), "Zhang 3.5",
                     why)  # fmt: skip
    yield everywhere("3.5, 16 nodes: waiting at a port (third quartile), likewise", "less",
                     apart(SMALL_NODES, compact, SPREADING, "waiting_ps", 3), "Zhang 3.5",
                     why)  # fmt: skip
    yield everywhere("3.6, 64 nodes: packets of a port (median), spreading against compact",
                     "more", apart(LARGE_NODES, COMPACT, spread, "packets", 2), "Zhang 3.6",
                     why)  # fmt: skip
    yield everywhere("3.6, 64 nodes: between the quartiles of packets, likewise", "less",
                     apart(LARGE_NODES, spread, COMPACT, "packets", 3, 1), "Zhang 3.6",
                     why)  # fmt: skip
    yield everywhere("3.6, 64 nodes: waiting at the worst port, likewise", "less",
                     apart(LARGE_NODES, spread, COMPACT, "waiting_ps", 4), "Zhang 3.6",
                     why)  # fmt: skip


# -- figures 3.7 and 3.8

Where = dict[str, object]


class Mixed:
    """Jobs of both sizes: what Level-Spread saves, somewhere in figures 3.7 and 3.8."""

    def __init__(self, m: Measured) -> None:
        self._m = m

    def time(self, kind: int, pattern: str, policy: str, **where: object) -> Seeds:
        cell: Cell = heterogeneous(self._m.asked, pattern, policy, **where)  # type: ignore[arg-type]
        return times(self._m, cell, kind)

    def saved(self, kind: int, pattern: str, policy: str, **where: object) -> Seeds:
        """Returns what Level-Spread saves of the time with a policy."""
        return saved(self.time(kind, pattern, LEVEL_SPREAD, **where),
                     self.time(kind, pattern, policy, **where))  # fmt: skip

    def mean(self, kind: int, pattern: str, policies: Sequence[str], **where: object) -> Seeds:
        """Returns what Level-Spread saves of the mean time with several policies."""
        return saved(self.time(kind, pattern, LEVEL_SPREAD, **where),
                     averaged(self.time(kind, pattern, policy, **where)
                              for policy in policies))  # fmt: skip

    def cells(self, kind: int, policies: Sequence[str], places: Iterable[Where]) -> list[Seeds]:
        return [self.saved(kind, pattern, policy, **where) for where in places
                for pattern in PATTERNS for policy in policies]  # fmt: skip

    def both(self, policies: Sequence[str], places: Iterable[Where]) -> list[Seeds]:
        """Returns the mean saving of the small and the large jobs."""
        return [averaged(self.saved(kind, pattern, policy, **where) for kind in (SMALL, LARGE))
                for where in places for pattern in PATTERNS for policy in policies]  # fmt: skip


def _ratios(m: Measured) -> Iterator[Claim]:
    mixed = Mixed(m)
    places: list[Where] = [{"ratio": ratio} for ratio in RATIOS]
    yield from _stars("3.7a", mixed, places)
    for kind, policies in ((SMALL, SPREADING), (LARGE, COMPACT)):
        yield everywhere(f"3.7a, {KINDS[kind][1]}: gain, the slower the global links", "larger",
                         (less(mixed.mean(kind, pattern, policies, ratio=low),
                               mixed.mean(kind, pattern, policies, ratio=high)) for low,
                          high in pairwise(RATIOS) for pattern in PATTERNS), "Zhang 3.7",
                         "bandwidth-ratios")  # fmt: skip
    for ratio, where in zip(RATIOS, places, strict=True):
        yield from _row(f"3.7a, ratio {fraction(ratio)}", mixed, where)


def _stars(figure: str, mixed: Mixed, places: Sequence[Where]) -> Iterator[Claim]:
    """Where the star of Level-Spread lies: beside one class of policies, ahead of the other."""
    why = "where-the-star-lies"
    for kind, like, ahead in ((SMALL, COMPACT, SPREADING), (LARGE, SPREADING, COMPACT)):
        jobs = KINDS[kind][1]
        yield unchanged(f"{figure}, {jobs}: times over those of {_class(like)} policies", "similar",
                        (relative_to(mixed.time(kind, pattern, LEVEL_SPREAD, **where),
                                     mixed.time(kind, pattern, policy, **where)) for where in places
                         for pattern in PATTERNS for policy in like), "Zhang 3.7", why)  # fmt: skip
        yield everywhere(f"{figure}, {jobs}: over {_class(ahead)} policies", "faster",
                         mixed.cells(kind, ahead, places), "Zhang 3.7", why)  # fmt: skip


def _class(policies: Sequence[str]) -> str:
    return "compact" if policies is COMPACT else "spreading"


def _row(name: str, mixed: Mixed, where: Where) -> Iterator[Claim]:
    for kind, policies in ((SMALL, SPREADING), (LARGE, COMPACT)):
        yield spanned(f"{name}: {KINDS[kind][1]} over {_class(policies)}, mean of each pattern",
                      (mixed.mean(kind, pattern, policies, **where)
                       for pattern in PATTERNS))  # fmt: skip


def _machines(m: Measured) -> Iterator[Claim]:
    mixed, most = Mixed(m), LARGER[-1]
    for pattern, printed in (("broadcast", 0.32), ("all-to-all", 0.64)):
        it = interval(mixed.mean(SMALL, pattern, SPREADING, machine=most))
        yield number(f"3.7b, 1,056 nodes, small jobs: {pattern}, over the mean of spreading",
                     printed, it, "Zhang 3.7", "broadcast")  # fmt: skip
    places: list[Where] = [{"machine": machine} for machine in LARGER]
    yield from _stars("3.7b", mixed, places)
    yield everywhere("3.7b, mean of small and large jobs: over every baseline", "faster",
                     mixed.both((*COMPACT, *SPREADING), places), "Zhang 3.7",
                     "where-the-star-lies")  # fmt: skip
    for kind, policies in ((SMALL, SPREADING), (LARGE, COMPACT)):
        yield everywhere(f"3.7b, {KINDS[kind][1]}: gain on 1,056 nodes, beside fewer", "larger",
                         (less(mixed.mean(kind, pattern, policies, machine=most),
                               mixed.mean(kind, pattern, policies, machine=machine))
                          for machine in LARGER[:-1] for pattern in PATTERNS), "Zhang 3.7",
                         "larger-machines")  # fmt: skip
    for machine, where in zip(LARGER, places, strict=True):
        yield from _row(f"3.7b, {nodes_of(machine):,} nodes", mixed, where)


def _messages(m: Measured) -> Iterator[Claim]:
    mixed, middle = Mixed(m), len(MESSAGES) // 2
    by_large, by_small = MESSAGES[middle::-1], MESSAGES[middle:]

    def steps(kind: int, rows: Sequence[tuple[int, int]], base: str) -> list[Seeds]:
        """Returns by how much spreading policies lose from a row to the next, over `base`."""

        def lost(pattern: str, row: tuple[int, int]) -> Seeds:
            return averaged(relative_to(*(mixed.time(kind, pattern, name, messages=row)
                                          for name in (policy, base))) for policy in SPREADING
            )  # fmt: skip

        return [less(lost(pattern, after), lost(pattern, before)) for before,
                after in pairwise(rows) for pattern in PATTERNS]  # fmt: skip

    why, longer = "figure-38", "jobs under spreading, the longer the messages of the"
    yield everywhere(f"3.8, small {longer} large", "slower", steps(SMALL, by_large, LEVEL_SPREAD),
                     "Zhang 3.8", why)  # fmt: skip
    yield everywhere(f"3.8, large {longer} small", "slower", steps(LARGE, by_small, "simple"),
                     "Zhang 3.8", why)  # fmt: skip
    places: list[Where] = [{"messages": row} for row in MESSAGES]
    yield everywhere("3.8, mean of small and large jobs: over every baseline, in all rows",
                     "faster", mixed.both((*COMPACT, *SPREADING), places), "Zhang 3.8",
                     why)  # fmt: skip
    for row, where in zip(MESSAGES, places, strict=True):
        yield from _row(f"3.8, {row[0]} : {row[1]} KB", mixed, where)


# -- what is said to change nothing

Time = Callable[[str, str, bool], Seeds]
"""Returns the times of a pattern and a policy, where something is changed or not."""


def _changed(
    m: Measured, homo: Where, hetero: Where, everything: bool
) -> Iterator[tuple[str, list[Time]]]:
    """Returns, for jobs of one size and of both, the places that are compared."""
    ratios = RATIOS if everything else (1.0,)

    def one_size(nodes: int, ratio: float) -> Time:
        def time(pattern: str, policy: str, changed: bool) -> Seeds:
            more = homo if changed else {}
            return times(m, homogeneous(m.asked, nodes, pattern, ratio, policy, **more),  # type: ignore[arg-type]
                         SMALL)  # fmt: skip

        return time

    def both_sizes(kind: int, where: Where) -> Time:
        def time(pattern: str, policy: str, changed: bool) -> Seeds:
            more = hetero if changed else {}
            return Mixed(m).time(kind, pattern, policy, **where, **more)

        return time

    places: list[Where] = [{"ratio": ratio} for ratio in ratios]
    places += [{"machine": machine} for machine in LARGER] if everything else []
    yield "3.4a, 16 nodes", [one_size(SMALL_NODES, ratio) for ratio in ratios]
    yield "3.4b, 64 nodes", [one_size(LARGE_NODES, ratio) for ratio in ratios]
    for kind, jobs in KINDS:
        yield f"3.7, {jobs}", [both_sizes(kind, where) for where in places]


def _beside(found: list[Time]) -> list[Seeds]:
    """Returns times over Simple's, changed over unchanged, of every pattern and other policy."""

    def over(time: Time, pattern: str, policy: str, changed: bool) -> Seeds:
        return relative_to(time(pattern, policy, changed), time(pattern, "simple", changed))

    return [relative_to(*(over(time, pattern, policy, changed) for changed in (True, False)))
            for time in found for pattern in PATTERNS for policy in POLICIES
            if policy != "simple"]  # fmt: skip


def _utilisation(m: Measured) -> Iterator[Claim]:
    most: Where = {"most": LOWER}
    for name, found in _changed(m, most, most, True):
        source = "Zhang 3.4.2" if name.startswith("3.7") else "Zhang 3.4.1"
        yield unchanged(f"{name} at {LOWER} % utilisation: times over Simple's, beside 90 %",
                        "the same", _beside(found), source, "utilisation")  # fmt: skip


def _large_messages(m: Measured) -> Iterator[Claim]:
    homo: Where = {"kilobytes": LONG_KB}
    hetero: Where = {"messages": (LONG_KB, LONG_KB)}
    source, why = "Zhang 3.4.3", "messages-of-100-kb"
    for name, found in _changed(m, homo, hetero, False):
        yield unchanged(f"{name}, 100 KB in all jobs: times over Simple's, beside 1 KB",
                        "the same", _beside(found), source, why)  # fmt: skip
        longer = [relative_to(time(pattern, policy, True), time(pattern, policy, False))
                  for time in found for pattern in PATTERNS for policy in POLICIES]  # fmt: skip
        middle, every = interval(averaged(longer)), [interval(cell) for cell in longer]
        if middle.of:
            there = sum(near(it, LONG_KB) for it in every)
            means = [it.mean for it in every]
            ours = (f"{min(means):.0f} .. {max(means):.0f}, mean {middle.mean:.0f}; within a tenth "
                    f"in {there} of {len(every)}")  # fmt: skip
            said = verdict(there == len(every), near(middle, LONG_KB))
            yield claim(f"{name}, 100 KB in all jobs: times over those of 1 KB", "about 100", ours,
                        said, middle, source, why)  # fmt: skip
    for pattern in PATTERNS:
        cells = [times(m, homogeneous(m.asked, LARGE_NODES, pattern, 1.0, name, kilobytes=LONG_KB),
                       SMALL) for name in (LEVEL_SPREAD, "simple")]  # fmt: skip
        yield spanned(f"3.4b, ratio 1, 100 KB, {pattern}: over Simple", [saved(*cells)])


def fraction(ratio: float) -> str:
    return "1/4" if ratio == 0.25 else f"{ratio:g}"
