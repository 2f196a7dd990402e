"""A buyer's own prices, in a TOML file. Sums are in one currency, which the file may name; every
other unit is in the name of its key. All that is wrong with a file is shown at once.

`scripts/prices.toml` is an example with every key; `purchase` has what the prices buy.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from odonata.provisioning.cost import Rack
from odonata.provisioning.scaling import LIMIT, Curve, Line
from odonata.provisioning.search import UNLIMITED, best_at_each_n
from odonata.provisioning.table import Table
from pdes.errors import Findings, Problem, Refused
from topology.settings import Setting, meant

LONGEST_FILE = 2**20
MOST_NODES = 100_000


def _not_empty(text: str) -> None:
    if not text.strip() or not text.isprintable():
        raise ValueError("text, not empty")


KINDS = {
    "text": Setting("text", "", accepted="text, not empty", rule=_not_empty),
    "number": Setting("number", "", above=-1e18, below=1e18, accepted="a finite number"),
    "positive": Setting("number", "", least=1e-9, below=1e18, accepted="a number above 0"),
    "sum": Setting("number", "", least=0, below=1e18, accepted="a number, 0 or more"),
    "whole": Setting("whole", "", least=1, most=MOST_NODES,
                     accepted=f"a whole number from 1 to {MOST_NODES:,}"),
    "loss": Setting("number", "", least=0, below=1,
                    accepted="a share from 0 to below 1, as 0.27 for 27 %"),
    "share": Setting("number", "", above=0, most=1,
                     accepted="a share above 0, up to 1, as 0.85 for 85 %"),
    "word": Setting("word", "", words=("time", "thesis"), accepted='"time" or "thesis"'),
}  # fmt: skip
"""What a value may be."""
BARE = ("number", "positive", "sum", "whole")
"""Those that are numbers whose unit is in the name of their key."""


class Key(NamedTuple):
    """A key of the file: what its value may be, what it means, and whether it must be given."""

    kind: str
    about: str
    needed: bool = False


NODE = {
    "name": Key("text", "what tables call this kind of node"),
    "price": Key("positive", "one node, without its rack", True),
    "power_max_w": Key("positive", "the most that a node draws"),
    "power_min_w": Key("positive", "the least that a node draws"),
    "sockets": Key("whole", "sockets of a node, for the most that it draws"),
    "socket_tdp_w": Key("positive", "thermal design power of one socket"),
    "memory_tdp_w": Key("sum", "the most that the memory of one socket draws"),
    "base_w": Key("sum", "all else in the node, with its part of the switches"),
    "score": Key("positive", "a benchmark's score, more is faster"),
    "cores": Key("whole", "cores of a node"),
}
SECTIONS: dict[str, dict[str, Key]] = {
    "": {"currency": Key("text", "the word that stands behind sums")},
    "budget": {
        "money": Key("positive", "for nodes and racks", True),
        "power_w": Key("positive", "for all nodes together", True),
    },
    "high_end": NODE,
    "cheaper": NODE,
    "performance": {
        "loss": Key("loss", "the share of a cheaper node's time that a high-end node saves"),
        "from_scores": Key("word", "how scores become that share"),
    },
    "rack": {
        "nodes": Key("whole", "nodes that a rack holds", True),
        "price": Key("sum", "an empty rack with its switch", True),
    },
    "running": {
        "years": Key("positive", "that the machine is used", True),
        "maintenance_share": Key("sum", "per year, in parts of what was paid"),
        "maintenance": Key("sum", "per year, as a sum"),
        "price_per_kwh": Key("sum", "of electricity and cooling", True),
        "power_w": Key("positive", "drawn on average; otherwise all of the budget"),
        "staff": Key("sum", "per year"),
        "utilisation": Key("share", "the share of the time in which nodes have jobs", True),
    },
}
APPLICATION = {
    "slope": Key("number", "seconds per cheaper node, below 0 where more are faster"),
    "intercept": Key("positive", "seconds, where the line meets no nodes"),
    "table": Key("text", "a CSV file of measured configurations, beside this file"),
    "measured": Key("text", "the application's name in that file"),
    "bound_w": Key("positive", "what all nodes of a job may draw, in place of its share"),
    "from_nodes": Key("whole", "the smallest number of nodes for which its times hold"),
    "limit": Key("whole", "the largest"),
    "jobs_at_once": Key("whole", "jobs of this application that share the machine"),
    "weight": Key("positive", "how often it runs, beside the others"),
}


# -- what a file holds


@dataclass(frozen=True)
class Kind:
    """A kind of node."""

    name: str
    price: float
    max_w: float | None
    min_w: float | None
    cores: int | None


@dataclass(frozen=True)
class Application:
    """An application's times, and what part it has in the mix."""

    line: Line | Curve
    """A line as it is given, or the curve of a table."""
    weight: float = 1.0
    jobs_at_once: int = 1
    bound_w: float | None = None
    """What a job may draw, whatever its machine's share is; None for that share."""
    repairs: tuple[str, ...] = ()
    """What is odd about its table, in sentences."""


@dataclass(frozen=True)
class RunningCosts:
    """What a year costs besides the machine itself."""

    years: float
    maintenance_share: float
    maintenance: float
    price_per_kwh: float
    power_w: float
    staff: float
    utilisation: float


@dataclass(frozen=True)
class Prices:
    """All that a buyer told."""

    currency: str
    money: float
    power_w: float
    high_end: Kind
    cheaper: Kind
    r_p: float
    rack: Rack
    applications: Mapping[str, Application]
    running: RunningCosts | None = None


# -- reading


def read_prices(path: Path | str, changes: Sequence[str] = ()) -> Prices:
    """Returns the prices in a file, with `changes` such as "budget.money=70000". Refused with all
    that is wrong: the file, the key, the value, and what is accepted."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
        if len(content) > LONGEST_FILE:
            raise Refused(f"{path}: more than {LONGEST_FILE} bytes: these are no prices")
        tree = tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused(f"{path}: line {line}: not text in UTF-8, which TOML is") from None
    except RecursionError:
        raise Refused(f"{path}: nested too deeply: sections, and keys in them, are all") from None
    except ValueError as error:  # of which TOMLDecodeError is one
        place = re.search(r" \(at (line \d+, column \d+|end of document)\)$", str(error))
        said = f"{place[1]}: {str(error)[: place.start()]}" if place else str(error)
        raise Refused(f"{path}: {said}") from None
    for change in changes:
        _change(tree, change)
    return _Reader(str(path)).prices(tree, Path(path).parent)


def value_of(text: str) -> Any:
    """Returns the value of a `--set`: as TOML if it is that, else as text."""
    try:
        tree = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tree["value"] if len(tree) == 1 else text


def _change(tree: dict[str, Any], change: str) -> None:
    path, equals, text = change.partition("=")
    *sections, name = (part.strip() for part in path.split("."))
    if not equals or not name:
        raise Refused(f"--set {change}: a key and its value are needed, as budget.money=70000")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise Refused(f"--set {change}: {section} is no section")
    tree[name] = value_of(text)


def shown(value: Any) -> str:
    """Returns a value as TOML, on one line, but short."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a section"
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Reader:
    """One file, and the problems that were found in it."""

    def __init__(self, where: str) -> None:
        self.where, self.wrong = where, Findings()

    def note(self, path: str, given: str, rule: str) -> None:
        """Note a problem of a key, or of a section."""
        self.wrong.problems.append(Problem((path,), f"{self.where}: {path}{given}", rule))

    def section(self, tree: Any, path: str, keys: Mapping[str, Key]) -> dict[str, Any]:
        """Returns the sound values of a section."""
        if not isinstance(tree, dict):
            self.note(path, f" = {shown(tree)}", f"a section is needed, [{path}]")
            return {}
        found = {}
        before = f"{path}." if path else ""
        for name, value in tree.items():
            key = keys.get(name)
            if key is None:
                hint = meant(name.replace("-", "_"), keys, before) or f"; one of {', '.join(keys)}"
                self.note(before + name, "", f"unknown{hint}")
            elif KINDS[key.kind].wrong(value):
                bare = ", without a unit" if isinstance(value, str) and key.kind in BARE else ""
                self.note(before + name, f" = {shown(value)}", KINDS[key.kind].accepted + bare)
            else:
                number = isinstance(value, int) and key.kind != "whole"
                found[name] = float(value) if number else value
        for name, key in keys.items():
            if key.needed and name not in tree:
                self.note(before + name, " is missing", f"{key.about}; {KINDS[key.kind].accepted}")
        return found

    def prices(self, tree: dict[str, Any], folder: Path) -> Prices:
        """Returns what the file holds, or refuses it."""
        tree = dict(tree)
        given = tree.pop("applications", {})
        nested = {name: tree.pop(name) for name in tuple(tree) if name in SECTIONS}
        top = SECTIONS[""] | dict.fromkeys([*SECTIONS, "applications"], Key("number", ""))
        del top[""]
        found = {"": self.section(tree, "", top)}
        for name, keys in SECTIONS.items():
            optional = name in ("", "performance", "rack", "running")
            if name and (name in nested or not optional):
                found[name] = self.section(nested.get(name, {}), name, keys)
        high_end = self.kind(found, "high_end", "power_max_w")
        cheaper = self.kind(found, "cheaper", "power_min_w")
        r_p = self.loss(found)
        bound = found["budget"].get("power_w", math.inf)
        applications = self.applications(given, folder)
        running = self.running(found, high_end, cheaper, bound)
        self.wrong.refuse()
        rack = (
            Rack(found["rack"]["nodes"], found["rack"]["price"]) if "rack" in found else Rack(1, 0)
        )
        return Prices(found[""].get("currency", "USD"), found["budget"]["money"], bound, high_end,
                      cheaper, r_p, rack, applications, running)  # fmt: skip

    def kind(self, found: Mapping[str, Mapping[str, Any]], path: str, needed: str) -> Kind:
        """Returns a kind of node; its maximum may be a sum over its parts."""
        told = found[path]
        parts = [name for name in ("socket_tdp_w", "memory_tdp_w", "base_w", "sockets")
                 if name in told]  # fmt: skip
        most = told.get("power_max_w")
        if parts and most is not None:
            self.note(f"{path}.power_max_w", f" = {shown(most)}",
                      f"give it or its parts, not both: {', '.join(parts)}")  # fmt: skip
        elif parts and ("socket_tdp_w" not in told or "sockets" not in told):
            self.note(f"{path}.{parts[0]}", f" = {shown(told[parts[0]])}",
                      "sockets and socket_tdp_w go with it")  # fmt: skip
        elif parts:
            each = told["socket_tdp_w"] + told.get("memory_tdp_w", 0.0)
            most = told["sockets"] * each + told.get("base_w", 0.0)
        least = told.get("power_min_w")
        if (most if needed == "power_max_w" else least) is None and not self._about(path, needed):
            also = ", or sockets and socket_tdp_w" if needed == "power_max_w" else ""
            self.note(f"{path}.{needed}", " is missing",
                      f"{NODE[needed].about}; {KINDS['positive'].accepted}{also}")  # fmt: skip
        if (
            most is not None
            and least is not None
            and least > most
            and not self._about(path, "power_max_w")
        ):
            self.note(f"{path}.power_min_w", f" = {shown(least)}",
                      f"at most what the node draws at its maximum, {most:g}")  # fmt: skip
        return Kind(told.get("name", path.replace("_", "-")), told.get("price", math.nan), most,
                    least, told.get("cores"))  # fmt: skip

    def _about(self, path: str, *names: str) -> bool:
        """Tells whether something is noted of one of these keys already."""
        return any(problem.fields[0] in [f"{path}.{name}" for name in names]
                   or problem.fields[0] == path for problem in self.wrong.problems)  # fmt: skip

    def loss(self, found: Mapping[str, Mapping[str, Any]]) -> float:
        """Returns r_p, as it is given or by the scores of both kinds."""
        told = found.get("performance", {})
        fast, slow = (found[kind].get("score") for kind in ("high_end", "cheaper"))
        if "loss" in told:
            if fast is not None or slow is not None or "from_scores" in told:
                self.note("performance.loss", f" = {shown(told['loss'])}",
                          "give it or scores, not both")  # fmt: skip
            return float(told["loss"])
        if fast is None or slow is None:
            if not self._about("performance", "loss") and not any(
                self._about(kind, "score") for kind in ("high_end", "cheaper")
            ):
                self.note("performance.loss", " is missing",
                          f"{KINDS['loss'].accepted}; or high_end.score and "
                          "cheaper.score")  # fmt: skip
            return 0.0
        loss = loss_of_scores(fast, slow, told.get("from_scores", "time"))
        if not 0 <= loss < 1:
            self.note("high_end.score", f" = {shown(fast)}",
                      f"at least cheaper.score, {slow:g}"
                      + (", and less than twice that" if loss >= 1 else ""))  # fmt: skip
        return loss

    def applications(self, given: Any, folder: Path) -> dict[str, Application]:
        """Returns the applications by name."""
        if not isinstance(given, dict) or not given:
            self.note("applications", "" if given == {} else f" = {shown(given)}",
                      "one section each, as [applications.LU-MZ], and one at least")  # fmt: skip
            return {}
        found = {}
        for name, tree in given.items():
            path = f"applications.{name}"
            before = len(self.wrong.problems)
            told = self.section(tree, path, APPLICATION)
            if len(self.wrong.problems) == before and (it := self.line(told, path, folder)):
                line, repairs = it
                found[name] = Application(line, told.get("weight", 1.0),
                                          told.get("jobs_at_once", 1), told.get("bound_w"),
                                          repairs)  # fmt: skip
        return found

    def line(
        self, told: Mapping[str, Any], path: str, folder: Path
    ) -> tuple[Line | Curve, tuple[str, ...]] | None:
        """Returns an application's line or curve, and what is odd about its table."""
        has_line = "slope" in told or "intercept" in told
        if has_line == ("table" in told):
            self.note(path, "", "slope and intercept, or a table, not both" if has_line
                      else "slope and intercept are needed, or a table")  # fmt: skip
            return None
        if has_line:
            if "slope" not in told or "intercept" not in told:
                self.note(path, "", "slope and intercept go together")
                return None
            if alone := [name for name in ("measured", "bound_w") if name in told]:
                self.note(f"{path}.{alone[0]}", "", "this goes with a table only")
                return None
            line = Line(told["slope"], told["intercept"], told.get("limit", LIMIT),
                        told.get("from_nodes", 1))  # fmt: skip
            self.check_range(told, path, 1, MOST_NODES, line)
            return line, ()
        try:
            name = told.get("measured", path.removeprefix("applications."))
            table, repairs = measured(folder / told["table"], name)
            nodes = table.nodes.tolist()
            curve = curve_of(table, told.get("from_nodes", nodes[0]), told.get("limit", nodes[-1]))
            self.check_range(told, path, nodes[0], nodes[-1], curve)
            return curve, repairs
        except Refused as refusal:
            self.note(path, "", str(refusal))
            return None

    def check_range(
        self, told: Mapping[str, Any], path: str, least: int, most: int, line: Line | Curve
    ) -> None:
        """Note a range of nodes that is empty, or wider than what was measured."""
        for name, value in (("from_nodes", line.from_nodes), ("limit", line.limit)):
            if name in told and not least <= value <= most:
                self.note(f"{path}.{name}", f" = {value}",
                          f"from {least} to {most}, as was measured")  # fmt: skip
        if line.from_nodes > line.limit and least <= line.limit <= line.from_nodes <= most:
            self.note(f"{path}.from_nodes", f" = {line.from_nodes}",
                      f"at most limit, {line.limit}")  # fmt: skip

    def running(
        self, found: Mapping[str, Mapping[str, Any]], high_end: Kind, cheaper: Kind, bound: float
    ) -> RunningCosts | None:
        """Returns the running costs, if they are given."""
        if "running" not in found:
            return None
        told = found["running"]
        if "maintenance" in told and "maintenance_share" in told:
            self.note("running.maintenance", f" = {shown(told['maintenance'])}",
                      "give it or maintenance_share, not both")  # fmt: skip
        for path, kind in (("high_end", high_end), ("cheaper", cheaper)):
            if kind.cores is None and not self._about(path, "cores"):
                self.note(f"{path}.cores", " is missing",
                          f"{NODE['cores'].about}, for core hours; "
                          f"{KINDS['whole'].accepted}")  # fmt: skip
        if told.get("power_w", 0.0) > bound:
            self.note("running.power_w", f" = {shown(told['power_w'])}",
                      f"at most the budget's, {bound:g}")  # fmt: skip
        return RunningCosts(told.get("years", 1.0), told.get("maintenance_share", 0.0),
                            told.get("maintenance", 0.0), told.get("price_per_kwh", 0.0),
                            told.get("power_w", bound), told.get("staff", 0.0),
                            told.get("utilisation", 1.0))  # fmt: skip


def loss_of_scores(fast: float, slow: float, how: str = "time") -> float:
    """Returns r_p from the scores of both kinds of node. "time": the share of its time that the
    faster one saves, which is what the equations take. "thesis": by how much its score is higher,
    which the thesis puts in its place: 27 % for PassMark 17,812 and 13,985, where "time" is
    21 %."""
    return fast / slow - 1 if how == "thesis" else 1 - slow / fast


def measured(path: Path, application: str) -> tuple[Table, tuple[str, ...]]:
    """Returns the table of an application in a file, and what is odd about it."""
    from odonata.provisioning.table_file import read_tables

    read = read_tables(path)
    table = read.tables.get(application)
    if table is None:
        near = ", ".join(read.tables)
        raise Refused(f"{path}: it has no application {application}; it has {near}: name one as "
                      "measured")  # fmt: skip
    about = re.compile(rf"(?<!\w){re.escape(application)}(?!\w)")
    return table, tuple(words for words in read.repairs if about.search(words))


def curve_of(table: Table, from_nodes: int, limit: int) -> Curve:
    """Returns the best times of a table at each number of nodes, by what a node draws."""
    nodes, node_w, seconds = [], [], []
    for most in best_at_each_n(table, UNLIMITED):
        here = [table.point(int(at)) for at in (table.nodes == most.nodes).nonzero()[0]]
        kept: list[tuple[float, float]] = []
        for point in sorted(here, key=lambda it: (it.watts, it.seconds)):
            if not kept or point.seconds < kept[-1][1]:
                kept.append((point.watts / point.nodes, point.seconds))
        nodes.append(most.nodes)
        node_w.append(tuple(watts for watts, _ in kept))
        seconds.append(tuple(time for _, time in kept))
    return Curve(tuple(nodes), tuple(node_w), tuple(seconds), from_nodes, limit)
