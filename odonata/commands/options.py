"""Command-line options that several commands share. As in `cli`, nothing heavy is imported here:
the options of a machine and of a network are made from their fields when a command that has them is
called."""

from __future__ import annotations

import difflib
import functools
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from odonata.experiment.units import bandwidth, signed_bytes, size_bytes, time_ps
from pdes.errors import Refused, require

if TYPE_CHECKING:
    from odonata.experiment.keys import Key
    from topology import Dragonfly

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
debug_option = click.option(
    "--debug",
    is_flag=True,
    help="One rank, JIT off, everything checked after every event: some 600 events per second.",
)
progress_option = click.option(
    "--progress/--no-progress",
    default=None,
    help="Show how far it is; by default on a terminal, and seldom elsewhere.",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    default=lambda: cores(),
    help="Simulations at a time, by default one per core; under mpiexec one per rank.",
)
write_option = click.option(
    "--write",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.toml",
    help="Write the sweep that this is, for `odonata sweep`.",
)
plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A file of Python that registers policies or patterns; repeatable.",
)
plot_option = click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw it, as .png, .svg or .pdf.",
)

KINDS = ("terminal", "local", "global")
SHAPE = ("nodes", "routers", "global_links", "groups", "cabling", "links_per_pair")
UNSET = object()
"""The value of an option that was not given, where None can be asked for by a word (`Key.none`)."""


def cores() -> int:
    """Returns how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Quantity(click.ParamType):  # type: ignore[type-arg]
    """A value that is read by a function, such as the parsers of `odonata.experiment.units`."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self.parse = name, parse

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _number(kind: type[int] | type[float], text: str) -> float:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is not {'a whole' if kind is int else 'a'} number") from None


TIME = Quantity("TIME", time_ps)
TYPES: dict[str, Any] = {
    "text": click.STRING,
    "word": click.STRING,  # what is none is refused later, with the rest
    "whole": click.INT,
    "number": click.FLOAT,
    "flag": click.BOOL,
    "time": TIME,
    "size": Quantity("SIZE", size_bytes),
    "signed size": Quantity("SIZE", signed_bytes),
    "bandwidth": Quantity("RATE", bandwidth),
}
NULLABLE = {"whole": ("N", functools.partial(_number, int)),
            "number": ("NUMBER", functools.partial(_number, float))}  # fmt: skip


OFFERED = Path(__file__).with_name("options.json")


class Offered(NamedTuple):
    """An option that stands for a key: what its help needs of the key. They are made of the keys
    (`declared`) and kept in a file, as the keys are declared beside what they set, which takes a
    second to import."""

    name: str
    option: str
    kind: str
    none: str
    about: str

    @property
    def type(self) -> Any:
        plain = TYPES[self.kind]
        if not self.none:
            return plain
        name, parse = NULLABLE.get(self.kind) or (plain.name, plain.parse)

        def parse_or_none(text: str) -> float | None:
            if text == self.none:
                return None
            try:
                return parse(text)
            except ValueError as error:
                raise ValueError(f"{error}; or {self.none}") from None

        return Quantity(f"{name}|{self.none}", parse_or_none)

    def added_to(self, command: Any, more: str = "") -> Any:
        """Returns the command with this option; `more` help."""
        return click.option(
            f"--{self.option.replace('_', '-')}",
            self.option,
            type=self.type,
            default=UNSET if self.none else None,
            metavar="NAME" if self.option == "preset" else None,
            help=self.about + more,
        )(command)


def offered() -> dict[str, list[Offered]]:
    """Returns the options of a machine, of a network and of its traffic."""
    kept = json.loads(OFFERED.read_text(encoding="utf-8"))
    return {part: [Offered(*row) for row in rows] for part, rows in kept.items()}


def declared() -> dict[str, list[Offered]]:
    """Returns the same as the keys have it; `python scripts/options.py --write` keeps it."""
    from odonata.experiment.keys import MACHINE_KEYS
    from odonata.experiment.values import words_of

    network, traffic = network_keys()
    parts = {"machine": MACHINE_KEYS, "network": network, "traffic": traffic}
    return {
        part: [Offered(key.name, key.option, key.kind, key.none,
                       _help(key, () if part == "machine" else words_of(key)))
               for key in keys]
        for part, keys in parts.items()
    }  # fmt: skip


def network_keys() -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Returns the keys of a network that are options, and those of its traffic."""
    from odonata.experiment.experiment import BY_PATH, needs_jobs, of

    nodes = tuple(key for key in of("nic") if not needs_jobs(key))
    return ((*of("network"), *nodes, BY_PATH["run.seed"]),
            tuple(key for key in of("traffic") if key.field))  # fmt: skip


def _help(key: Key, words: tuple[str, ...]) -> str:
    about, words = key.about, words or key.how.words
    if words and key.name != "preset":
        about = f"{about[:-1]}: {', '.join(words[:-1])} or {words[-1]}."
    if key.name == "preset":
        about += f"  [default: {key.default}]"
    if key.section == "run" or (key.how.otherwise and key.section != "machine"):
        about += f"  [default: {key.shown_default()}]"
    return about


def _given(options: dict[str, Any], table: tuple[Key, ...]) -> dict[str, Any]:
    """Returns which of these were given, by field; they are removed from the options."""
    values = {key: options.pop(key.option) for key in table if key.option in options}
    return {
        key.field: value
        for key, value in values.items()
        if value is not (UNSET if key.none else None)
    }


def machine_options(command: Any, fitting: bool = False) -> Any:
    """The options that describe a machine, and `machine: Dragonfly` in their place.

    A preset comes first, and what is given explicitly overrides it; the command gets its name as
    `preset`. One that also has an argument NAME takes the preset from there too.
    `fitting`: see `floor_options`.
    """

    @functools.wraps(command)
    def with_machine(**options: Any) -> Any:
        from odonata.experiment.keys import PRESET

        name, preset = options.pop("name", None), options.pop("preset")
        if name and preset and name != preset:
            raise Refused(f"two presets, {name} and {preset}: name one")
        preset = name or preset or PRESET
        links = {kind: (options.pop(f"{kind}_bandwidth"), options.pop(f"{kind}_latency"))
                 for kind in KINDS}  # fmt: skip
        shape = {key: options.pop(key) for key in SHAPE}
        options["machine"] = (chosen_to_fit if fitting else chosen)(preset, links, shape)
        options["preset"] = preset
        return command(**options)

    for each in reversed(offered()["machine"]):
        with_machine = each.added_to(with_machine)
    return with_machine


def chosen(
    preset: str, links: dict[str, tuple[float | None, int | None]], shape: dict[str, Any]
) -> Dragonfly:
    """Returns a preset, with whatever is not None (or UNSET) in place of its own."""
    from dataclasses import replace

    from topology import BadMachine, LinkClass
    from topology.presets import PRESETS

    if preset not in PRESETS:
        near = difflib.get_close_matches(preset, PRESETS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Refused(f"preset {preset!r}: one of {', '.join(PRESETS)}{hint}")
    machine = PRESETS[preset].machine
    kept = ("links_per_pair",)
    changes = {k: v for k, v in shape.items() if v is not UNSET and (v is not None or k in kept)}
    for kind, (rate, latency) in links.items():
        own = machine.link(kind)
        try:
            link = LinkClass(
                own.bandwidth if rate is None else rate,
                own.latency_ps if latency is None else latency,
            )
        except BadMachine as error:
            raise Refused("\n".join(f"{kind} {problem}" for problem in error.problems)) from None
        changes["global_" if kind == "global" else kind] = link
    try:
        return replace(machine, **changes)
    except BadMachine as error:
        raise Refused(str(error)) from None


def floor_options(command: Any) -> Any:
    """The same for a command that has no use for cables: where the preset's global links do not
    suit the shape that is asked for, and none are given, there are as few as do."""
    return machine_options(command, fitting=True)


def chosen_to_fit(
    preset: str, links: dict[str, tuple[float | None, int | None]], shape: dict[str, Any]
) -> Dragonfly:
    """As `chosen`, but with the fewest global links that join any two groups by one cable, or by
    as many as are asked for, where that is what the machine would be refused for."""
    from topology.presets import PRESETS

    try:
        return chosen(preset, links, shape)
    except Refused:
        if preset not in PRESETS or shape["global_links"] is not None:
            raise
    own, pairs = PRESETS[preset].machine, shape["links_per_pair"]
    others = (own.groups if shape["groups"] is None else shape["groups"]) - 1
    routers = max(1, own.routers if shape["routers"] is None else shape["routers"])
    if pairs is None:  # all, evenly
        least = others // math.gcd(others, routers)
    else:
        pairs = pairs if pairs is not UNSET else 1 if others else None
        least = -(-others * (pairs or 0) // routers)
    fitted = {"global_links": max(0, least), "links_per_pair": pairs}
    return chosen(preset, links, shape | fitted)


SWEPT = ("load", "messages", "warmup", "measure", "stop")
"""Keys of traffic that a command for curves sets itself."""


def network_options(command: Any, curve: bool = False) -> Any:
    """The options of a machine, its routers and its traffic, and `network: Network` in their place.

    A preset may come with a workload of its own (`presets`); what is given explicitly
    overrides it. `curve`: see `curve_options`.
    """

    @machine_options
    @functools.wraps(command)
    def with_network(machine: Dragonfly, preset: str, plugins: Any, **options: Any) -> Any:
        from odonata.agents.network import Network
        from odonata.agents.routers import ROUTERS
        from odonata.agents.traffic import Traffic
        from odonata.commands.presets import workload
        from policies.register import load_plugin

        for path in plugins:
            load_plugin(path)
        network, traffic, end = workload(preset)
        of_network, of_traffic = network_keys()
        given = _given(options, of_network)
        router = given.pop("", "ideal")
        require(router in ROUTERS, f"router = {router}: must be one of {', '.join(ROUTERS)}")
        network |= {**ROUTERS[router], **given}
        traffic |= _given(options, of_traffic)
        if curve:
            for of, key, name in (
                (network, "routing", "routings"),
                (traffic, "pattern", "patterns"),
            ):
                usual = Network.routing if of is network else Traffic.pattern
                options[name] = [word.strip() for word in of.get(key, usual).split(",")]
                of[key] = options[name][0]
            options["plugins"] = tuple(map(str, plugins))
        if "packet_bytes" in network and "message_bytes" not in traffic:
            traffic["message_bytes"] = network["packet_bytes"]
        if options.get("end", 0) is None:
            options["end"] = end
        built = Network(machine, (Traffic(**traffic),), **network)
        return command(network=built, **options)

    rows = offered()
    for each in reversed([*rows["network"], *rows["traffic"]]):
        if not (curve and each.name in SWEPT):
            several = curve and each.option in ("routing", "traffic")
            more = " Several, with commas: as many curves." * several
            with_network = each.added_to(with_network, more)
    return plugin_option(with_network)


def curve_options(command: Any) -> Any:
    """Adds the same options without --load, for a command that asks for `loads`; and --routing and
    --traffic may name several: the network has the first, and the command gets all as `routings`
    and `patterns`, and the `plugins` too."""
    return network_options(command, curve=True)
