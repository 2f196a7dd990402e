"""What the thesis says in 2.5.2 and 2.5.3, and what came out here; and what the causes are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from odonata.studies.regulation.cases import (
    ALONE,
    AS_PRINTED,
    AVERAGES_W,
    DEFAULT,
    LARGE,
    LEVELS,
    LOADS,
    MIXES,
    OTHERS,
    RATES,
    RESERVES_W,
    RIVALS,
    SIGNALS,
    SIZES,
    TYPES,
    WHITE,
    Setting,
    of_level,
    of_load,
    of_mix,
    of_size,
    refitted,
    signal,
    tried,
    warmed,
)
from odonata.studies.regulation.found import (
    MOST_LATE,
    Measure,
    Measured,
    average,
    bad,
    error,
    keeps_both,
    keeps_qos,
    keeps_rule,
    late,
    left,
    mean_signal,
    q90,
    reserve,
    saving,
    standby,
    trend,
    weight,
)
from odonata.studies.regulation.simulation import PRINTED, types_of
from odonata.study.contract import Claim
from odonata.study.verdicts import (
    Place,
    above,
    below,
    judged,
    limits,
    near,
    percent,
    placed,
    shown,
    watts,
)
from odonata.traces.mix import LOAD, per_second
from policies.bidding.delays import least_weights

SAVING, ERROR, STANDBY_PART = 0.461, 0.043, 0.142
SAVING_AT_75, SAVING_ALONE, TRACKING_ERROR = 0.251, 0.144, 0.024
SAVING_OF = {"fs": 0.213, "bt": 0.398}
SAVING_BY_SIZE = 0.45
WEIGHTS_OF_FS = {"W1": 0.08, "W2": PRINTED.weights["fs"], "W3": 0.18}
MOST_ERROR = 0.07
"""Printed: what the error stays below under four other signals."""

PAGE = "regulation-study.md"
RIVALRY, LOADED = f"{PAGE}#as-in-the-thesis", f"{PAGE}#utilisation-size-service"
PLACES = (
    Place("^without standby jobs, own bid", "Zhang 2.5.2", RIVALRY),
    Place("^(with|without) standby jobs, ", ""),  # as the thesis did not do it
    Place("^at the printed bid", ""),  # the same once more
    Place(r"^25, 50, 75 %|^75 %", "Zhang 2.14", LOADED),
    Place("^100 servers: saving", ""),  # the default setting
    Place("servers: saving", "Zhang 2.11", LOADED),
    Place("^loose, medium, tight", "Zhang 2.12", LOADED),
    Place("^(W[13]: )?weight of .* from W1|^W[13]: weight", "Zhang 2.15",
          f"{PAGE}#mixes-and-single-types"),
    Place("alone: |the type that saves least", "Zhang 2.16", f"{PAGE}#mixes-and-single-types"),
    Place("^signal ", "Zhang 2.17", f"{PAGE}#other-signals"),
    Place("^no standby", "Zhang 2.5.2", f"{PAGE}#without-standby-jobs"),
    Place("error|energy of standby|hours$", "Zhang 2.5.2", f"{PAGE}#the-default-setting"),
    Place("average|reserve|saving|weight of|late jobs of", "Zhang 2.5.2"),
)  # fmt: skip
"""The places at which the thesis prints what claims are about."""


def claims(m: Measured) -> list[Claim]:
    """Returns the claims of the parts that are asked for and that there are all hours for."""
    if not m.has(DEFAULT):
        return []
    parts = {"default": _default, "policies": _policies, "load": _load, "size": _size,
             "level": _level, "mix": _mix, "types": _types, "signals": _signals,
             "standby": _standby, "rates": _rates, "refitted": _refitted,
             "warm": _warm}  # fmt: skip
    found = (claim for name in m.asked.parts for claim in parts[name](m))
    return placed([claim for claim in found if claim is not None], PLACES)


def _number(
    name: str, printed: float, m: Measured, setting: Setting, of: Measure, sign: bool = False
) -> Claim:
    """Returns whether a part of 1 is the printed one; `sign`: whether its direction at least is."""
    it = m.mean(setting, of)
    return judged(name, f"{100 * printed:.1f} %", percent(it), near(it, printed), sign, it)


def _kept(m: Measured, setting: Setting) -> str:
    """Returns in how many hours the tracking rule was kept, and in how many every type its QoS, of
    those in which something was offered."""
    offered = [it for it in m.hours(setting) if it.reserve_w]
    rule, qos = (sum(bool(of(it)) for it in offered) for of in (keeps_rule, keeps_qos))
    nothing = len(m.hours(setting)) - len(offered)
    others = f"; in {nothing} nothing is offered" if nothing else ""
    return f"rule kept in {rule}, QoS in {qos} of {len(offered)} hours{others}"


def _late_text(m: Measured, setting: Setting) -> str:
    name, it = m.worst_late(setting)
    return f"{name} {percent(it)}"


# -- the default setting


def _default(m: Measured) -> Iterator[Claim]:
    average_w, reserve_w = (m.mean(DEFAULT, of) for of in (average, reserve))
    yield shown("average", "20,600 W", watts(average_w), average_w, calibrated=True)
    yield shown("reserve", "10,111 W", watts(reserve_w), reserve_w, calibrated=True)
    for name, printed in PRINTED.weights.items():
        it = m.mean(DEFAULT, weight(name))
        yield shown(f"weight of {name}", f"{100 * printed:.1f} %", percent(it), it, calibrated=True)
    for words, setting in (("", DEFAULT), ("at the printed bid: ", AS_PRINTED)):
        if m.has(setting):
            yield from _hour(m, words, setting)


def _hour(m: Measured, words: str, setting: Setting) -> Iterator[Claim]:
    it = m.mean(setting, saving)
    yield shown(f"{words}saving", f"{100 * SAVING:.1f} %", percent(it), it, calibrated=True)
    off = m.mean(setting, error)
    yield _number(f"{words}mean error", ERROR, m, setting, error, below(off, ERROR))
    share = m.mean(setting, bad)
    yield judged(f"{words}seconds with an error above 0.3", "below 10 %", percent(share),
                 below(share, 0.1), share.mean < 0.1, share)  # fmt: skip
    part = m.mean(setting, standby)
    yield _number(f"{words}energy of standby jobs", STANDBY_PART, m, setting, standby,
                  above(part, 0))  # fmt: skip
    for name in TYPES:
        part = m.mean(setting, late(name))
        yield shown(
            f"{words}late jobs of {name}", "at most 10 %", percent(part), part, calibrated=True
        )
    both = m.mean(setting, keeps_both)
    yield judged(f"{words}hours", "1 of 1 keeps both", _kept(m, setting), both.mean == 1.0,
                 above(both, 0.5), both, calibrated=True)  # fmt: skip


# -- other policies


def _policies(m: Measured) -> Iterator[Claim]:
    for with_standby in (True, False):
        words = "with" if with_standby else "without"
        for bid in ("qosg", "own"):
            yield from _rivals(m, with_standby, bid, f"{words} standby jobs, {bid} bid")


def _rivals(m: Measured, with_standby: bool, bid: str, words: str) -> Iterator[Claim]:
    """Returns the claims about both other policies, at QoSG's bid or each at its own."""
    mine: Setting = {} if with_standby or bid == "own" else ALONE  # the thesis's has them
    of: dict[str, Setting] = {
        name: {"policy": name, "bid": "qosg" if bid == "qosg" else name, "standby": with_standby}
        for name in RIVALS
    }
    if not m.has(mine, *of.values()):
        return
    tracking, quality = (of[name] for name in RIVALS)
    yield _number(f"{words}: tracking-only, mean error", TRACKING_ERROR, m, tracking, error)
    less = m.change(tracking, mine, error)
    yield judged(f"{words}: tracking-only, error above that of qosg", "smaller", percent(less),
                 below(less, 0), less.mean < 0, less)  # fmt: skip
    more = m.change(quality, tracking, error)
    yield judged(f"{words}: energy-qare, error above that of tracking-only", "larger",
                 percent(more), above(more, 0), more.mean > 0, more)  # fmt: skip
    for name, setting in of.items():
        it = m.mean(setting, late())
        _, of_type = m.worst_late(setting)
        yield judged(f"{words}: {name}, late jobs of the worst type", "above 10 %",
                     _late_text(m, setting), above(of_type, MOST_LATE),
                     of_type.mean > MOST_LATE or it.mean > MOST_LATE, of_type)  # fmt: skip
        more = m.change(setting, mine, late())
        yield judged(f"{words}: {name}, late jobs of the worst type above those of qosg", "more",
                     percent(more), above(more, 0), more.mean > 0, more)  # fmt: skip
        yield shown(f"{words}: {name}", "", f"saving {percent(m.mean(setting, saving))}, error "
                    f"{percent(m.mean(setting, error))}, {_kept(m, setting)}",
                    m.mean(setting, saving))  # fmt: skip
    for name, against, paper in (("tracking-only", mine, "larger"),
                                 ("energy-qare", tracking, "smaller")):  # fmt: skip
        it = m.change(of[name], against, q90("sp"))
        sign = 1 if paper == "larger" else -1
        than = "qosg" if against is mine else "tracking-only"
        sure = above(it, 0) if sign > 0 else below(it, 0)
        yield judged(f"{words}: {name}, 90 % degradation of sp above that of {than}", paper,
                     f"{it.mean:+.2f} ± {it.half:.2f}", sure, sign * it.mean > 0, it)  # fmt: skip


# -- utilisation, size, service, mixes, types


def _load(m: Measured) -> Iterator[Claim | None]:
    every = [of_load(load) for load in LOADS]
    yield trend("25, 50, 75 %: saving", "falls", m, every, saving, -1)
    yield trend("25, 50, 75 %: average", "rises", m, every, average, 1, watts)
    if m.has(*every):
        less = m.change(every[-1], DEFAULT, saving)
        yield _number("75 %: saving", SAVING_AT_75, m, every[-1], saving, below(less, 0))
    yield from (_summary(m, f"{load:.0%}", of_load(load)) for load in LOADS)


def _summary(m: Measured, words: str, setting: Setting) -> Claim | None:
    """Returns what came of a setting, which is not judged."""
    if not m.has(setting):
        return None
    it = m.mean(setting, saving)
    if not m.mean(setting, reserve).mean:
        return shown(f"{words}: what came of it", "", f"{watts(m.mean(setting, average))}, and "
                     "nothing is offered", it)  # fmt: skip
    return shown(f"{words}: what came of it", "",
                 f"{watts(m.mean(setting, average))}, {watts(m.mean(setting, reserve))}; saving "
                 f"{percent(it)}, error {percent(m.mean(setting, error))}, standby "
                 f"{percent(m.mean(setting, standby), 0)}; late {_late_text(m, setting)}; work "
                 f"left {percent(m.mean(setting, left), 0)}; "
                 f"{_kept(m, setting)}", it)  # fmt: skip


def _size(m: Measured) -> Iterator[Claim | None]:
    for nodes in SIZES:
        setting = of_size(nodes)
        if m.has(setting):
            it = m.mean(setting, saving)
            yield judged(f"{nodes:,} servers: saving", "above 45 %", percent(it),
                         above(it, SAVING_BY_SIZE), above(it, 0), it)  # fmt: skip
    for nodes in SIZES:
        needed = servers_needed(nodes)
        yield Claim(f"{nodes:,} servers: those that the conditions need without a reserve", "",
                    f"{needed:,.1f}, {needed / nodes:.0%}", None, 0, {"servers": needed}
                    )  # fmt: skip
        yield _summary(m, f"{nodes:,} servers", of_size(nodes))
        yield _summary(m, f"{nodes:,} servers, printed bid for as many",
                       of_size(nodes, **AS_PRINTED))  # fmt: skip
    yield _summary(m, f"{LARGE:,} servers, signal without memory", of_size(LARGE, **WHITE))


def servers_needed(nodes: int) -> float:
    """Returns how many servers have to work on average so that the conditions on delays can be met
    at all, if their number never changes: what they ask for is the less per server, the larger a
    machine is. Half of the servers are what the work itself needs."""
    types = types_of(1.0, 1.0)
    chosen = [types[types.place(name)] for name in TYPES]
    work = np.array([it.shortest_s for it in chosen], float)
    rates = np.array(per_second(chosen, nodes, LOAD, None, True))
    least = np.array([it.delay_rate for it in chosen], float)
    return float(least_weights(rates, work, least, 1.0, 0.0).sum())


def _level(m: Measured) -> Iterator[Claim | None]:
    every = [of_level(level) for level in LEVELS.values()]
    words = ", ".join(LEVELS)
    yield trend(f"{words}: average", "rises", m, every, average, 1, watts)
    yield trend(f"{words}: saving", "falls", m, every, saving, -1)
    yield trend(f"{words}: energy of standby jobs", "rises", m, every, standby, 1)
    yield from (_summary(m, name, of_level(level)) for name, level in LEVELS.items())


def _mix(m: Measured) -> Iterator[Claim | None]:
    one, _, three = every = [of_mix(name) for name in MIXES]
    if not m.has(*every):
        return
    for name in ("W1", "W3"):
        it = m.mean(of_mix(name), weight("fs"))
        printed = WEIGHTS_OF_FS[name]
        yield judged(f"{name}: weight of fs", f"{100 * printed:.0f} %", percent(it),
                     near(it, printed, 0.005), False, it)  # fmt: skip
    for name in TYPES:
        rises = name in ("fs", "sc", "lu")
        it = m.change(three, one, weight(name))
        low, high = limits(it)
        sure = low > 0 if rises else high < 0
        yield judged(f"weight of {name} from W1 to W3", "rises" if rises else "falls",
                     f"{percent(m.mean(one, weight(name)))} to "
                     f"{percent(m.mean(three, weight(name)))}", sure,
                     (it.mean > 0) == rises, it)  # fmt: skip
    yield from (_summary(m, name, of_mix(name)) for name in MIXES)


def _types(m: Measured) -> Iterator[Claim | None]:
    for name, printed in SAVING_OF.items():
        if m.has(of_mix(name)):
            less = m.change(of_mix(name), DEFAULT, saving)
            yield _number(f"{name} alone: saving", printed, m, of_mix(name), saving, below(less, 0))
    if m.has(of_mix("fs"), of_mix("bt")):
        more = m.change(of_mix("bt"), of_mix("fs"), saving)
        yield judged("bt alone: saves more than fs", "by 18.5 points", percent(more),
                     near(more, SAVING_OF["bt"] - SAVING_OF["fs"]), above(more, 0), more
                     )  # fmt: skip
    if m.has(*map(of_mix, TYPES)):
        means = {name: m.mean(of_mix(name), saving) for name in TYPES}
        least = min(means, key=lambda name: means[name].mean)
        others = [m.change(of_mix(name), of_mix("fs"), saving) for name in TYPES if name != "fs"]
        yield judged("the type that saves least", "fs", least,
                     all(above(it, 0) for it in others), least == "fs", means[least])  # fmt: skip
    yield from (_summary(m, f"{name} alone", of_mix(name)) for name in TYPES)


# -- signals


def _signals(m: Measured) -> Iterator[Claim | None]:
    every: list[Setting] = [{**AS_PRINTED, "signal": seed} for seed in OTHERS]
    if m.has(AS_PRINTED, *every):
        for number, setting in enumerate(every, 1):
            it = m.mean(setting, error)
            yield judged(f"signal {number}: mean error at the printed bid",
                         f"below {100 * MOST_ERROR:.0f} %", percent(it),
                         below(it, MOST_ERROR), it.mean < MOST_ERROR, it)  # fmt: skip
            share = m.mean(setting, bad)
            yield judged(f"signal {number}: seconds with an error above 0.3", "below 10 %",
                         percent(share), below(share, 0.1), share.mean < 0.1, share)  # fmt: skip
            _, it = m.worst_late(setting)
            yield judged(f"signal {number}: late jobs of the worst type", "at most 10 %",
                         _late_text(m, setting), below(it, MOST_LATE), it.mean <= MOST_LATE, it
                         )  # fmt: skip
            it = m.mean(setting, saving)
            yield shown(f"signal {number}: saving", f"{100 * SAVING:.1f} %", percent(it), it,
                        calibrated=True)  # fmt: skip
        yield _by_signal(m, [AS_PRINTED, *every])
    for deviation, slow_s, fast_s in SIGNALS:
        memory = f"memory {slow_s} and {fast_s} s" if slow_s else "no memory"
        yield _summary(m, f"deviation {deviation:.2f}, {memory}", signal(deviation, slow_s, fast_s))


def _by_signal(m: Measured, settings: Sequence[Setting]) -> Claim:
    """Returns how much of what jobs wait is decided by the mean of the signal in an hour."""
    every = [it for setting in settings for it in m.hours(setting)]
    means, parts = (np.array([of(it) for it in every]) for of in (mean_signal, late()))
    vary = means.std() > 0 and parts.std() > 0
    together = float(np.corrcoef(means, parts)[0, 1]) if vary else 0.0
    low, high = parts[means < 0], parts[means >= 0]
    count = [int((some <= MOST_LATE).sum()) for some in (low, high)]
    return Claim("late jobs of the worst type, and the mean of the hour's signal", "",
                 f"correlation {together:+.2f}; at most 10 % late in {count[0]} of {len(low)} "
                 f"hours with a mean below 0, in {count[1]} of {len(high)} others", None,
                 len(every), {"correlation": together})  # fmt: skip


# -- without standby jobs, and conditions fitted anew


def _standby(m: Measured) -> Iterator[Claim | None]:
    if m.has(ALONE):
        less = m.change(ALONE, DEFAULT, saving)
        yield _number("no standby: saving", SAVING_ALONE, m, ALONE, saving, below(less, 0))
        it = m.mean(ALONE, bad)
        yield judged("no standby: seconds with an error above 0.3", "below 10 %", percent(it),
                     below(it, 0.1), it.mean < 0.1, it)  # fmt: skip
        for name, of in (("average", average), ("reserve", reserve)):
            it = m.change(ALONE, DEFAULT, of)
            yield judged(f"no standby: {name} above that with standby jobs", "smaller", watts(it),
                         below(it, 0), it.mean < 0, it)  # fmt: skip
        yield _summary(m, "no standby", ALONE)
    yield _summary(m, "no standby, printed bid", {**ALONE, **AS_PRINTED})
    every = {(high, low): tried(high, low) for high in AVERAGES_W for low in RESERVES_W}
    if not m.has(*every.values()):
        return
    for what, of in (("rule and QoS", keeps_both), ("the rule", keeps_rule)):
        kept = {bid: (m.count(setting, of), m.mean(setting, saving).mean)
                for bid, setting in every.items()}  # fmt: skip
        most = max(kept, key=kept.__getitem__)
        it = m.mean(every[most], saving)
        yield shown(f"no standby: of the bids tried, most hours that keep {what}", "",
                    f"{most[0]:,.0f} and {most[1]:,.0f} W: {kept[most][0]} of "
                    f"{len(m.hours(every[most]))}, saving {percent(it)}, late "
                    f"{_late_text(m, every[most])}", it)  # fmt: skip


def _rates(m: Measured) -> Iterator[Claim | None]:
    for name, (setting, factors) in RATES.items():
        for factor in (1.0, *factors):
            yield _summary(m, f"{name}, rates of delay x {factor:g}", {**setting, "rates": factor})


def _refitted(m: Measured) -> Iterator[Claim | None]:
    yield from (_summary(m, f"fitted anew, {name}", setting)
                for name, setting in refitted().items())  # fmt: skip


def _warm(m: Measured) -> Iterator[Claim | None]:
    for name, setting in warmed().items():
        empty = {key: value for key, value in setting.items() if key != "before"}
        yield _summary(m, f"{name}, from an empty machine", empty)
        yield _summary(m, f"{name}, after an hour", setting)
        if m.has(empty, setting):
            for what, of in (("error", error), ("late jobs of the worst type", late())):
                more = m.change(setting, empty, of)
                yield shown(f"{name}, after an hour: {what}, above that from an empty machine", "",
                            percent(more), more)  # fmt: skip
