"""What a user of `odonata regulate` writes: an experiment, as the text of a file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.commands.bid_file import SUFFIX as BID_SUFFIX
from odonata.commands.bid_file import parameters, read_bid
from pdes.errors import Refused

if TYPE_CHECKING:
    from odonata.experiment.experiment import JobExperiment
    from odonata.sweeps.drafts import Draft
    from odonata.traces.types import Types

QOS_RULES = ("share", "mean")
"""Those of `policies.views.tracking`, which are not imported for `--help`."""
PRICES = ("energy_price", "reserve_price", "error_price")
SUFFIX = ".csv"
USUAL_HOURS = 20
MOST_HOURS = 24 * 366 * 10
APART = "without"
"""The label of the runs without demand response, on the axis of the sweep."""
WHERE = "odonata regulate"
"""What problems of the experiment are told of, where it is in no file."""


@dataclass(frozen=True)
class Asked:
    """The options that say what is simulated."""

    workload: str | None
    policy: str
    hours: float | None
    continuous: bool
    trace: Path | None = None
    types: str | None = None
    nodes: int | None = None
    load: float | None = None
    standby: str | None = None
    signal: str = "synthetic"
    deviation: float | None = None
    bid: str | None = None
    prices: str | None = None
    carbon: str | None = None
    warm_up: str | None = None
    qos: str = QOS_RULES[0]
    repair: bool = False
    repeat: bool = False
    preemption: bool = False
    epoch: str | None = None
    timezone: str | None = None
    seed: int = 1
    changes: tuple[str, ...] = ()
    plugins: tuple[Path, ...] = ()

    @property
    def apart(self) -> bool:
        """Tells whether each hour is a run of its own, from an empty machine."""
        return not self.continuous and self.trace is None

    @property
    def seeds(self) -> list[int]:
        """Returns the seed of each run."""
        count = int(self.hours or USUAL_HOURS)
        return [self.seed + at for at in range(count)] if self.apart else [self.seed]

    @property
    def by_policy(self) -> dict[str, Asked]:
        """Returns the same with each of the policies, by their names with parameters."""
        names = dict.fromkeys(word.strip() for word in self.policy.split(","))
        return {name: replace(self, policy=name) for name in names}

    def draft(self) -> Draft:
        """Returns the sweep that is simulated: the hours with each policy, and without demand
        response."""
        from odonata.results.regulated import WITHOUT
        from odonata.sweeps.axes import Axis, Value, toml
        from odonata.sweeps.drafts import Draft

        (first, asked), *others = self.by_policy.items()
        _, text = asked.experiment()
        values = [Value(first, ())]
        for name, one in others:
            one.experiment()  # which tells what is wrong with it
            said = one.sections()
            keys = {f"{of}.{key}": said[of][key]
                    for of, key in (("power", "policy"), ("market", "bidding"))}  # fmt: skip
            values.append(Value(name, tuple(f"{key}={toml(it)}" for key, it in keys.items())))
        response = Axis("response", (*values, Value(APART, WITHOUT)), labelled=True)
        return Draft(WHERE, text, [response], self.seeds)

    @property
    def hours_each(self) -> float:
        """Returns how long a run is, in hours, with the warm-up."""
        if self.hours is None and self.trace is not None:
            return self._whole()
        return self.warm_up_h + (1.0 if self.apart else self.hours or self._whole())

    @property
    def judged_each(self) -> float:
        """Returns how many hours of a run are judged."""
        return self.hours_each - self.warm_up_h

    @property
    def warm_up_h(self) -> float:
        """Returns how long the warm-up is, in hours."""
        if self.warm_up is None:
            return 0.0
        from odonata.experiment.units import time_ps

        try:
            found = time_ps(self.warm_up) / 3600e12
        except ValueError as error:
            raise Refused(f"--warm-up {self.warm_up}: {error}") from None
        if not 0 <= found <= MOST_HOURS:
            raise Refused(f"--warm-up {self.warm_up}: 0 h up to {MOST_HOURS:,} h")
        return float(found)

    def _whole(self) -> float:
        """Returns how many hours a run has where nobody says it: of a trace all in which jobs are
        submitted, from the first on. What comes when a run ends has not been submitted."""
        if self.trace is None:
            return USUAL_HOURS
        from odonata.traces.reading import read

        return 1.0 + read(str(self.trace), None, None).span_us // (3600 * 10**6)

    def check(self) -> None:
        """Refuse what does not belong together, or is no number of hours."""
        if (self.workload is None) == (self.trace is None):
            both = f"--workload {self.workload} and --trace {self.trace}: name one"
            raise Refused(both if self.workload else "which jobs? --workload W4, a mix that "
                          "`odonata types` lists, or --trace FILE with --types")  # fmt: skip
        if self.trace is not None and self.types is None:
            raise Refused(f"--trace {self.trace}: which types are its jobs of? --types mine.csv "
                          "(`odonata types aqa --csv mine.csv` writes a pattern)")  # fmt: skip
        if self.trace is not None and not self.trace.is_file():
            raise Refused(f"--trace {self.trace}: there is no such file")
        for change in self.changes:
            if (key := change.partition("=")[0].strip()) in INSTEAD:
                raise Refused(f"--set {change}: {INSTEAD[key]} says that")
        for option, number in (("--deviation", self.deviation), ("--load", self.load)):
            if number is not None and not math.isfinite(number):
                raise Refused(f"{option} {number}: a number")
        if self.hours is not None and not 0 < self.hours <= MOST_HOURS:
            raise Refused(f"--hours {self.hours:g}: more than 0, at most {MOST_HOURS:,}")
        if self.apart and self.hours is not None and self.hours != int(self.hours):
            raise Refused(f"--hours {self.hours:g}: a whole number, as each hour is a run of its "
                          "own; --continuous makes one run of any length")  # fmt: skip
        if self.trace is not None and self.judged_each <= 0:
            raise Refused(f"--warm-up {self.warm_up}: less than the {self.hours_each:,g} hours of "
                          f"{self.trace}, or nothing is left to be judged")  # fmt: skip
        if self.deviation is not None and self.signal != "synthetic":
            raise Refused(f"--deviation {self.deviation:g}: of a synthetic signal, and "
                          f"{self.signal} is a file: leave one out")  # fmt: skip
        if self.signal != "synthetic":
            file_of("--signal", self.signal)
        if self.types is not None and self.types.lower().endswith(SUFFIX):
            file_of("--types", self.types)

    def experiment(self) -> tuple[JobExperiment, str]:
        """Returns the experiment of the first seed, and the text of its file. Refused with all that
        is wrong with it, before anything runs."""
        from odonata.experiment.experiment import JobExperiment
        from odonata.experiment.reading import parse
        from odonata.sweeps.drafts import text_of_sections

        self.check()
        text = text_of_sections(self.sections())
        try:
            made = parse(text, WHERE, self.changes)
        except Refused as refusal:
            raise Refused(as_options(str(refusal))) from None
        assert isinstance(made, JobExperiment)
        if self.changes:
            text = made.to_toml()
        if made.market is not None and made.market.exclude_after and self.hours_each <= 1.0:
            raise Refused("--set market.exclude_after: hours that each begin with an empty machine "
                          "know of no hour before: add --continuous")  # fmt: skip
        return made, text

    def sections(self) -> dict[str, Mapping[str, Any]]:
        """Returns the experiment, section by section, without what is a default."""
        span = f"{self.hours_each:g} h"
        trace: dict[str, Any] = {"nodes": self.nodes, "load": self.load, "epoch": self.epoch,
                                 "timezone": self.timezone}  # fmt: skip
        if self.trace is not None:
            trace |= {"file": str(self.trace.resolve()), "begin": "first", "overrun": "extend"}
        else:
            workload = self.workload or ""
            trace |= {"model": "mix", "mix": mix_of(workload, self.types), "span": span}
            if self.nodes is None:
                trace["nodes"] = usual_nodes(workload, self.types)
        policy = named(self.policy, "power", "--policy")
        if self.preemption:
            policy["preemption"] = True
        types = self.types
        if types is not None and types.lower().endswith(SUFFIX):
            types = str(Path(types).resolve())
        signal = self.signal
        if signal != "synthetic":
            signal = str(Path(signal).resolve())
        market: dict[str, Any] = {"bidding": self.bidding, "signal": signal,
                                  "signal_deviation": self.deviation}  # fmt: skip
        market |= prices_of(self.prices) | {"standby": self.standby or self._usual_standby}
        market |= {"repair": "repair"} if self.repair else {}
        plugins = [str(path.resolve()) for path in self.plugins]
        market |= {"repeat": True} if self.repeat else {}
        market |= {"warmup": f"{self.warm_up_h:g} h"} if self.warm_up_h else {}
        market |= {"qos": self.qos} if self.qos != QOS_RULES[0] else {}
        return {
            "": {"name": "regulate", "fidelity": "job", "plugins": plugins or None},
            "trace": trace,
            "power": {"policy": policy, "types": types, "interval": "1 s",
                      "carbon": self._carbon()}, "market": market,
            "run": {"duration": span, "seed": self.seed}, "metrics": {"interval": "1 min"},
        }  # fmt: skip

    @property
    def _usual_standby(self) -> str | None:
        """Returns the type of standby jobs of the paper's machine that a mix is from."""
        from odonata.traces.mix import MIXES

        found = MIXES.get(self.workload or "")
        return found.standby if found is not None and self.types is None else None

    @property
    def bidding(self) -> dict[str, Any]:
        """Returns the bidding policy, with its parameters: by default the one that goes with the
        power policy."""
        if self.bid is None:
            from policies.bidding import BIDDINGS
            from policies.power import POWERS

            name = self.policy.split(":")[0].strip()
            if name in POWERS and not POWERS.named(name).missing:
                name = getattr(POWERS.named(name).build, "bidding", "") or name
            if name not in BIDDINGS:
                raise Refused(f"--policy {name}: no bidding policy has this name: say what is "
                              "offered, --bid 8434W,3435W, or who bids, --bid qosg")  # fmt: skip
            return {"name": name}
        if self.bid_file is not None:
            return {"name": "fixed", **parameters(read_bid(self.bid_file))}
        words = [word.strip() for word in self.bid.split(",")]
        if len(words) == 1 and not words[0][:1].isdigit():
            return named(self.bid, "bidding", "--bid")
        return {"name": "fixed", **offered(self.bid, words)}

    def _carbon(self) -> float | str | None:
        """Returns the carbon intensity: a number, or the name of a file."""
        if self.carbon is None:
            return None
        try:
            found = float(self.carbon)
        except ValueError:
            file_of("--carbon", self.carbon)
            return str(Path(self.carbon).resolve())
        if not 0 <= found < math.inf:
            raise Refused(f"--carbon {self.carbon}: grams of CO2 per kWh, 0 or more")
        return found

    @property
    def bid_file(self) -> Path | None:
        """Returns the file that says what is offered, if that is in a file."""
        named = self.bid is not None and self.bid.lower().endswith(BID_SUFFIX)
        return Path(self.bid or "") if named else None


def offered(text: str, words: Sequence[str]) -> dict[str, float]:
    """Returns the average and the reserve that '8434W,3435W' means, in W."""
    from odonata.experiment.units import power_w

    try:
        average, reserve = (power_w(word) for word in words)
    except ValueError as error:
        given = len(words) == 2 and words[0][:1].isdigit()
        why = f": {error}" if given else ""
        raise Refused(f"--bid {text}: an average and a reserve with units, as 8434W,3435W, or a "
                      "bidding policy, with parameters behind colons, as "
                      f"energy-qare:rule=cost:hours=6{why}") from None  # fmt: skip
    if not 0 <= reserve <= average:
        raise Refused(f"--bid {text}: a reserve from 0 W up to the average")
    return {"average": average, "reserve": reserve}


def prices_of(text: str | None) -> dict[str, Any]:
    """Returns the prices that '0.1,0.05,0.1' means: of energy, of reserve and of error."""
    if text is None:
        return {}
    words = [word.strip() for word in text.split(",")]
    if len(words) != len(PRICES):
        raise Refused(f"--prices {text}: three: per kWh, per kW of reserve and hour, and per kWh "
                      "of error, as 0.1,0.1,0.1; each may be a CSV file")  # fmt: skip
    found: dict[str, Any] = {}
    for name, word in zip(PRICES, words, strict=True):
        try:
            found[name] = float(word)
        except ValueError:
            file_of("--prices", word)
            found[name] = str(Path(word).resolve())
            continue
        if not math.isfinite(found[name]):
            raise Refused(f"--prices {text}: {word} is no price")
    return found


def file_of(option: str, name: str) -> None:
    """Refuse a name that is no CSV file."""
    if not name.lower().endswith((SUFFIX, f"{SUFFIX}.gz")):
        raise Refused(f"{option} {name}: a CSV file, whose name ends in {SUFFIX}")
    if not Path(name).is_file():
        raise Refused(f"{option} {name}: there is no such file")


def mix_of(text: str, types: str | None = None) -> str | list[str]:
    """Returns the name of a mix, or a list of types, which are those of one table: the one that was
    given, or one of those that come with this package."""
    from odonata.traces.mix import MIXES

    if text in MIXES:
        return text
    names = [word.strip() for word in text.split(",") if word.strip()] or [text]
    tables = tables_of(types)
    if not tables or any(set(names) <= {*table.names} for table in tables):
        return names
    where = types or " or ".join(table.name for table in tables)
    wrong = [name for name in names if not any(name in table.names for table in tables)]
    if not wrong:
        raise Refused(f"--workload {text}: no table has all these types; `odonata types` lists "
                      f"those of {where}")  # fmt: skip
    there = f"one of {', '.join(MIXES)}, or types of {where} with commas between them"
    if len(names) > 1:
        what = "is no type" if len(wrong) == 1 else "are no types"
        there = f"{', '.join(wrong)} {what} of {where}"
    which = "" if types is None else f": {', '.join(tables[0].names)}"
    raise Refused(f"--workload {text}: {there}{which or '; `odonata types` lists them'}")


def tables_of(types: str | None) -> list[Types]:
    """Returns the tables that the types of a workload may be of; none where there is something
    wrong with the one that was given, which the experiment tells."""
    from odonata.traces.types import Types
    from odonata.traces.types_file import BUILT_IN

    try:
        return [Types.of(name) for name in ([types] if types is not None else BUILT_IN)]
    except Refused:
        return []


def usual_nodes(workload: str, types: str | None = None) -> int:
    """Returns the nodes of the machine of the paper that a mix, or the table of its types, is
    from."""
    from odonata.traces.mix import MIXES

    if workload in MIXES:
        return MIXES[workload].nodes
    names = {*mix_of(workload, types)}
    table = next((one.name for one in tables_of(types) if names <= {*one.names}), None)
    of_table = [mix.nodes for mix in MIXES.values() if mix.table == table]
    if not of_table:
        raise Refused(f"--workload {workload}: on how many nodes? --nodes 36")
    return of_table[0]


def named(text: str, kind: str, option: str) -> dict[str, Any]:
    """Read 'energy-qare:limit=0.2'; a further parameter follows another colon."""
    from odonata.experiment.values import from_shell
    from policies.register import REGISTERS

    name, *given = (word.strip() for word in text.split(":"))
    if name not in REGISTERS[kind]:
        there = followers() if kind == "power" else [*REGISTERS[kind]]
        raise Refused(f"{option} {name}: one of {', '.join(there)}")
    found: dict[str, Any] = {"name": name}
    for word in given:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not (key and equals):
            raise Refused(f"{option} {text}: a name and a value after a colon, as limit=0.2")
        found[key] = from_shell(value)
    return found


def followers() -> list[str]:
    """Returns the names of the power policies that follow a target by types of jobs."""
    from policies.power import POWERS

    return [name for name in POWERS if getattr(POWERS[name].build, "regulate", None)]


INSTEAD = {"run.seed": "--seed", "run.duration": "--hours"}
"""Keys that a change may not set, as options say more with them, and these options."""
OPTIONS = {
    "trace.mix": "--workload", "trace.nodes": "--nodes", "trace.load": "--load",
    "trace.file": "--trace", "trace.epoch": "--epoch", "trace.timezone": "--timezone",
    "power.types": "--types", "power.carbon": "--carbon", "market.qos": "--qos",
    "market.warmup": "--warm-up", "market.standby": "--standby",
    "market.signal_deviation": "--deviation", "market.signal": "--signal",
    "power.policy": "--policy", "market.bidding": "--bid", "run.seed": "--seed",
    **{f"market.{price}": "--prices" for price in PRICES},
}  # fmt: skip
"""Keys that problems name, and the options that they are of."""
PATH_TWICE = re.compile(r'= "([^"]+)": \1: ')
"""How a problem of a file begins, which is the value of its key."""


def as_options(words: str) -> str:
    """Returns problems of the experiment, and what they advise to write into a file, in the words
    of the options that it was made from."""
    from odonata.jobs.market import AGAIN
    from odonata.jobs.series_repair import CURE
    from odonata.jobs.series_text import HOLD

    cures = {f'gaps = "{HOLD}"': "--set {section}.gaps=hold", CURE: "--repair", AGAIN: "--repeat"}
    lines = []
    for line in words.split("\n"):
        line = PATH_TWICE.sub(r'= "\1": ', line.removeprefix(f"{WHERE}: "))
        section = line.partition(".")[0]
        for cure, option in cures.items():
            line = line.replace(cure, option.format(section=section))
        for key, option in OPTIONS.items():
            if line.startswith((f"{key} ", f"{key}.", f"{key}:")):
                line = f"{option} ({key}){line.removeprefix(key)}"
                break
        lines.append(line)
    return "\n".join(lines)
