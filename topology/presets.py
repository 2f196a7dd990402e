"""Machines by name, each with the sources of its numbers, and which numbers are our choice."""

from __future__ import annotations

from dataclasses import dataclass, replace

from topology.dragonfly import Dragonfly, LinkClass
from topology.power import ARIES, SLINGSHOT, NetworkPower, generic


@dataclass(frozen=True)
class Preset:
    """A machine, its description, the source of its numbers, and the power of its network, which
    has sources of its own."""

    machine: Dragonfly
    about: str
    source: str
    power: NetworkPower


GIBI = 2.0**30
NS = 1000

_KIM = "J. Kim, W. J. Dally, S. Scott, D. Abts: Technology-Driven, Highly-Scalable Dragonfly "\
       "Topology, ISCA 2008"  # fmt: skip
_ZHANG = "Y. Zhang: thesis (Boston University), table 3.1; SST's 40 ns a link"


def _alike(machine: Dragonfly, link: LinkClass) -> Dragonfly:
    """Returns the machine with the same cable everywhere."""
    return replace(machine, terminal=link, local=link, global_=link)


def _unmeasured(machine: Dragonfly, about: str, source: str) -> Preset:
    """Returns the preset of a machine for whose network no power is published."""
    return Preset(machine, about, source, generic(machine))


def _levelspread(routers: int, global_links: int, groups: int) -> Preset:
    return _unmeasured(
        _alike(Dragonfly(4, routers, global_links, groups), LinkClass(1e9, 40 * NS)),
        f"Level-Spread study, a={routers} g={groups}; its global links also at 2 or 32 Gbit/s",
        _ZHANG,
    )


_KIM_1056 = Dragonfly(4, 8, 4, 33)
_CODES = "CODES (Mubarak et al., TPDS 2017), model dragonfly{}, as we measured it"

PRESETS: dict[str, Preset] = {
    "kim-72": _unmeasured(
        Dragonfly(2, 4, 2, 9),
        "the example of the dragonfly paper; links of our choice",
        f"{_KIM}, figure 5",
    ),
    "kim-1056": _unmeasured(
        _KIM_1056,
        "the 1K network the dragonfly paper evaluates; links of our choice",
        f"{_KIM}, section 4",
    ),
    "levelspread-272": _levelspread(4, 4, 17),
    "levelspread-528": _levelspread(4, 8, 33),
    "levelspread-544": _levelspread(8, 2, 17),
    "levelspread-1056": _levelspread(8, 4, 33),
    "codes-c": _unmeasured(
        replace(
            _KIM_1056,
            terminal=LinkClass(5.25 * GIBI, 100 * NS),
            local=LinkClass(5.25 * GIBI, 100 * NS),
            global_=LinkClass(4.7 * GIBI, 100 * NS),
        ),
        "kim-1056 with the links of CODES's example: our workload C",
        _CODES.format(""),
    ),
    "codes-d": _unmeasured(
        _alike(_KIM_1056, LinkClass(2 * GIBI, 100 * NS)),
        "kim-1056, every link 2 GiB/s: our workload D; latency of our choice",
        _CODES.format("-dally"),
    ),
    "theta": Preset(
        Dragonfly(
            4,
            96,
            10,
            12,
            links_per_pair=87,
            terminal=LinkClass(16e9, 100 * NS),
            local=LinkClass(5.25e9, 100 * NS),
            global_=LinkClass(4.7e9, 100 * NS),
        ),
        "as large as Theta, a Cray XC40; but its groups are grids of 6 × 16, cabled along rows "
        "and columns, and all-to-all here; 87 links a pair (all ports) and 100 ns are ours",
        "ALCF, Theta machine overview: 24 racks, two a group; B. Alverson et al.: Cray XC Series "
        "Network, WP-Aries01-1112: 96 routers a group, 10 optical ports, 5.25, 4.7 and 16 GB/s",
        ARIES,
    ),
    "aries-group": _unmeasured(
        Dragonfly(
            4,
            16,
            15,
            6,
            links_per_pair=48,
            terminal=LinkClass(16e9, 100 * NS),
            local=LinkClass(5.25e9, 100 * NS),
            global_=LinkClass(5.25e9, 100 * NS),
        ),
        "one electrical group of a Cray XC40, as Cori is made of: 6 chassis of 16 routers, all-to-"
        "all within a chassis (our local links), 48 links between any two (our global links); "
        "100 ns are ours",
        "B. Alverson et al.: Cray XC Series Network, WP-Aries01-1112: 96 routers a group, 15 links "
        "within the chassis, 3 to each of the 5 others, 5.25 GB/s, 16 GB/s to nodes",
    ),
    "frontier": Preset(
        Dragonfly(16, 32, 16, 74, links_per_pair=4),
        "the compute groups of Frontier, HPE Slingshot, 16 endpoints a switch, four of them a "
        "node; without its storage and service groups; latencies of our choice",
        "S. Atchley et al.: Frontier: Exploring Exascale, SC'23; four links a pair also in "
        "glennklockwood.com/garden/systems/frontier",
        SLINGSHOT,
    ),
    "large-262k": Preset(
        Dragonfly(16, 32, 16, 513),
        "the largest balanced dragonfly of 64-port switches with 16 nodes each; not built",
        "ours, by the balance a = 2p = 2h of Kim et al., ISCA 2008",
        SLINGSHOT,
    ),
}


def power_of(machine: Dragonfly) -> NetworkPower:
    """Returns the power of a machine's network: that of the preset which has the same routers and
    cables, in whichever number and with whichever cabling and latencies, or else the generic one.
    """
    for preset in PRESETS.values():
        if _equipment(preset.machine) == _equipment(machine):
            return preset.power
    return generic(machine)


def _equipment(machine: Dragonfly) -> tuple[float, ...]:
    """Returns what the power of routers and cables depends on: how many ports a router has of each
    kind, and their bandwidths."""
    links = (machine.terminal, machine.local, machine.global_)
    ports = (machine.nodes, machine.routers - 1, machine.global_links)
    return (*ports, *(link.bandwidth for link in links))
