"""Command-line options that several commands share. As in `cli`, nothing heavy is imported here."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from odonata.units import bandwidth, size_bytes, time_ps
from pdes.errors import Refused

if TYPE_CHECKING:
    from topology import Dragonfly

DEFAULT_PRESET = "kim-1056"
KINDS = ("terminal", "local", "global")
SHAPE = ("nodes", "routers", "global_links", "groups", "cabling", "links_per_pair")


class Quantity(click.ParamType):  # type: ignore[type-arg]
    """A number with a unit, by one of the parsers of `odonata.units`."""

    def __init__(self, name: str, parse: Callable[[str], float | None]) -> None:
        self.name, self.parse = name, parse

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


TIME = Quantity("TIME", time_ps)
BANDWIDTH = Quantity("RATE", bandwidth)
SIZE = Quantity("SIZE", size_bytes)


def _copies(text: str) -> int | None:
    if text == "all":
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r}: a whole number, or all") from None


COPIES = Quantity("N|all", _copies)
UNSET = object()


def machine_options(command: Any) -> Any:
    """The options that describe a machine, and `machine: Dragonfly` in their place.

    A preset comes first, and what is given explicitly overrides it; the command is told which it
    was, as `preset`. One that also has an argument NAME takes the preset from there too.
    """

    @functools.wraps(command)
    def with_machine(**options: Any) -> Any:
        name, option = options.pop("name", None), options.pop("preset")
        if name and option and name != option:
            raise Refused(f"two presets, {name} and {option}: name one")
        preset = name or option or DEFAULT_PRESET
        links = {kind: (options.pop(f"{kind}_bandwidth"), options.pop(f"{kind}_latency"))
                 for kind in KINDS}  # fmt: skip
        shape = {key: options.pop(key) for key in SHAPE}
        options["machine"] = chosen(preset, links, shape)
        options["preset"] = preset
        return command(**options)

    whole = click.INT
    decorators = [
        click.option("--preset", metavar="NAME",
                     help=f"Start from this machine, by default {DEFAULT_PRESET}; "
                          "`odonata topology --list` has them."),
        click.option("--nodes", type=whole, help="Nodes a router, p."),
        click.option("--routers", type=whole, help="Routers a group, a."),
        click.option("--global-links", type=whole, help="Global links a router, h."),
        click.option("--groups", type=whole, help="Groups, g."),
        click.option("--cabling", help="absolute, relative or circulant."),
        click.option("--links-per-pair", type=COPIES, default=UNSET,
                     help="Cables between two groups; all: as many as there are ports for."),
    ]  # fmt: skip
    for kind in KINDS:
        decorators += [
            click.option(f"--{kind}-bandwidth", type=BANDWIDTH, help=f"Of each {kind} link."),
            click.option(f"--{kind}-latency", type=TIME, help=f"Of each {kind} link."),
        ]
    for decorate in reversed(decorators):
        with_machine = decorate(with_machine)
    return with_machine


def chosen(
    preset: str, links: dict[str, tuple[float | None, int | None]], shape: dict[str, Any]
) -> Dragonfly:
    """A preset, with whatever is not None (or UNSET) in place of its own."""
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
            raise Refused(f"{kind} {error}") from None
        changes["global_" if kind == "global" else kind] = link
    try:
        return replace(machine, **changes)
    except BadMachine as error:
        raise Refused(str(error)) from None


NETWORK = {"routing": "routing", "via": "via", "threshold": "threshold", "bias": "bias",
           "packet": "packet_bytes", "flit": "flit_bytes", "terminal_buffer": "terminal_buffer",
           "local_buffer": "local_buffer", "global_buffer": "global_buffer", "delay": "delay_ps",
           "forwarding": "forwarding", "vcs": "vcs", "seed": "seed"}  # fmt: skip
TRAFFIC = {"traffic": "pattern", "load": "load", "arrivals": "arrivals", "warmup": "warmup_ps",
           "measure": "measure_ps", "message": "message_bytes", "messages": "messages",
           "stride": "stride", "hot": "hot"}  # fmt: skip
"""What an option is called in `Network` and in `Traffic`."""


def network_options(command: Any, curve: bool = False) -> Any:
    """The options of a machine, its routers and its traffic, and `network: Network` in their place.

    A preset may come with a workload of its own (`odonata.workloads`); what is given explicitly
    overrides it. `curve`: see `curve_options`.
    """

    @machine_options
    @functools.wraps(command)
    def with_network(machine: Dragonfly, preset: str, **options: Any) -> Any:
        from odonata.agents.network import Network
        from odonata.agents.traffic import Traffic
        from odonata.workloads import workload

        given = {key: options.pop(key) for key in (*NETWORK, *TRAFFIC) if key in options}
        given = {key: value for key, value in given.items() if value is not None}
        if curve:
            names = [name.strip() for name in given.get("routing", Network.routing).split(",")]
            given["routing"], options["routings"] = names[0], names
        network, traffic, end = workload(preset)
        network |= {NETWORK[key]: value for key, value in given.items() if key in NETWORK}
        traffic |= {TRAFFIC[key]: value for key, value in given.items() if key in TRAFFIC}
        if "packet_bytes" in network and "message_bytes" not in traffic:
            traffic["message_bytes"] = network["packet_bytes"]
        if options.get("end", 0) is None:
            options["end"] = end
        built = Network(machine, Traffic(**traffic), **network)
        return command(network=built, **options)

    text, whole = click.STRING, click.INT
    fixed = [] if curve else [
        click.option("--load", type=float, help="Offered, in parts of a node's link."),
        click.option("--messages", type=whole, help="The most that a node sends."),
        click.option("--warmup", type=TIME, help="Measure only what is made after that."),
        click.option("--measure", type=TIME, help="And only for so long.  [default: to the end]"),
    ]  # fmt: skip
    several = " Several, with commas: as many curves." if curve else ""
    decorators = [
        click.option("--routing",
                     help=f"minimal, valiant, ugal-l, ugal-g, par or adaptive.{several}"),
        click.option("--via", type=text,
                     help="Detours lead through a random group, a router, or anywhere."),
        click.option("--threshold", type=float, help="Of adaptive routings: how many times worse "
                     "the straight way must look."),
        click.option("--bias", type=SIZE, help="And how much worse, in addition."),
        click.option("--traffic", type=text,
                     help="uniform, adversarial, permutation, transpose or hotspot."),
        click.option("--hot", type=float, help="Hotspot: the part that goes to every 32nd node."),
        click.option("--stride", type=whole, help="Adversarial: to the group so many on."),
        *fixed,
        click.option("--arrivals", type=text, help="poisson or bernoulli."),
        click.option("--message", type=SIZE, help="By default one packet."),
        click.option("--packet", type=SIZE, help="The largest."),
        click.option("--flit", type=SIZE, help="In which counters count; a power of two."),
        click.option("--terminal-buffer", type=SIZE, help="Of each VC, at a node's router."),
        click.option("--local-buffer", type=SIZE, help="Of each VC, at the end of a local link."),
        click.option("--global-buffer", type=SIZE, help="And of a global one."),
        click.option("--delay", type=TIME, help="Of a router's pipeline."),
        click.option("--forwarding", type=text, help="cut-through, or store (and forward)."),
        click.option("--vcs", type=text, help="hops; or one, which deadlocks."),
        click.option("--seed", type=whole, help="Of all random numbers.  [default: 1]"),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        with_network = decorate(with_network)
    return with_network


def curve_options(command: Any) -> Any:
    """The same without --load, for a command that asks for `loads` itself; and --routing may name
    several: the network has the first, and the command is told all, as `routings`."""
    return network_options(command, curve=True)
