"""Open-loop traffic: every node generates messages at an offered load, whatever becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from odonata.agents.partners import FIXED, KIM
from pdes.clock import LATEST
from pdes.errors import Findings
from pdes.events import FOREVER, Rows
from pdes.jit import kernel
from pdes.random import log
from policies.parameters import check_arguments
from policies.register import REGISTERS, Entry, Register, check
from topology.dragonfly import Dragonfly
from topology.settings import setting

BUILT_IN = {
    "uniform": ("to any other node", KIM),
    "adversarial": ("to any node of the group `stride` further on", KIM),
    **{name: (fixed.about, fixed.source) for name, fixed in FIXED.items()},
    "hotspot": ("a part `hot` to every `hot_every`-th node, the rest uniform", KIM),
}
"""What each pattern is, and where it is from."""
SETTINGS = {"adversarial": ("stride",), "hotspot": ("hot", "hot_every")}
"""The fields of `Traffic` that are about one pattern only."""
PATTERNS = tuple(BUILT_IN)
ARRIVALS = ("poisson", "bernoulli")
UNIFORM, ADVERSARIAL, PARTNER, HOTSPOT, OWN = range(5)
"""How a destination is found: PARTNER in a table, OWN and all above by a kernel of a plug-in, the
others by a random draw."""


@dataclass(frozen=True)
class TrafficPattern(Entry):
    """A pattern of open-loop traffic by name."""

    destination: Any = None
    """The kernel of a plug-in, as `traffic_pattern` describes it."""
    settings: tuple[str, ...] = ()
    """The fields of `Traffic` that are about this pattern only."""


REGISTER: Register[TrafficPattern] = cast(Any, REGISTERS["traffic"])
REGISTER.entry = TrafficPattern
for _name, (_about, _source) in BUILT_IN.items():
    REGISTER.add(
        TrafficPattern(
            "traffic", _name, _about, _source, home=__name__, settings=SETTINGS.get(_name, ())
        )
    )

Written = TypeVar("Written", bound=Callable[..., int])


def traffic_pattern(name: str, *, about: str, source: str) -> Callable[[Written], Written]:
    """Register the decorated function as a pattern of open-loop traffic, and return it unchanged.

    `destination(node, nodes, group_nodes, word)` is compiled as a kernel and returns the node that
    a message of `node` goes to (`node` itself, or no node at all: no message); `word` is 32 random
    bits, `group_nodes` the number of nodes per group.
    """

    def decorate(written: Written) -> Written:
        check_arguments(
            written, "node, nodes, group_nodes, word", f"{written.__name__}: a traffic pattern is"
        )
        home = f"{written.__module__}.{written.__qualname__}"
        made = kernel(written)
        REGISTER.add(TrafficPattern("traffic", name, about, source, home=home, destination=made))
        return written

    return decorate


@dataclass(frozen=True)
class Traffic:
    """Open-loop traffic. `load` is a fraction of the injection bandwidth (that of a node's link).
    Messages generated in the `measure_ps` picoseconds after `warmup_ps` are those whose latency
    counts; the sources go on until `stop_ps`.

    uniform: to any other node. adversarial: to any node `stride` groups on. hotspot: a fraction
    `hot` of the messages to every 32nd node, the rest uniform. In the others every node has a fixed
    partner (`odonata.agents.partners`); one that is its own partner sends nothing. Arrivals are a
    Poisson process or, for bernoulli, happen with probability `load` in each slot, which is the
    time that a message takes on the node's link.
    """

    pattern: str = setting(
        "uniform", "word", "Which node sends to which.", register="traffic", option="traffic"
    )
    load: float = setting(
        0.3, "number", "Offered load, as a fraction of the bandwidth of a node's link.",
        above=0, most=1, accepted="above 0, at most 1 (of a node's link)",
    )  # fmt: skip
    arrivals: str = setting("poisson", "word", "How messages arrive at each node.", words=ARRIVALS)
    message_bytes: int = setting(
        512, "size", "Size of each message.", otherwise="one packet",
        least=1, below=2**40,
    )  # fmt: skip
    messages: int | None = setting(
        None, "whole", "The most messages that a node sends.", least=0, most=2**62 - 1, none="any"
    )
    stride: int = setting(
        1, "whole", "Adversarial traffic goes to the group this many after the node's own.",
        least=1 - 2**32, most=2**32 - 1,
    )  # fmt: skip
    hot: float = setting(
        0.1, "number", "Hotspot traffic: the fraction of messages to hot nodes.", least=0, most=1
    )
    hot_every: int = setting(
        32, "whole", "Hotspot traffic: one in this many nodes is hot.", least=1, most=2**40 - 1
    )
    warmup_ps: int = setting(0, "time", "Only messages generated after this are measured.")
    measure_ps: int | None = setting(
        None, "time", "How long messages are measured; all: to the end.", above=0, none="all"
    )
    stop_ps: int | None = setting(None, "time", "When nodes stop sending.", none="never")
    trial_ps: int | None = setting(
        None, "time", "Bernoulli arrivals: the time between two trials; auto: that of a message.",
        none="auto",
    )  # fmt: skip

    def __post_init__(self) -> None:
        found = check(self)
        last = 0 if found.problems else self.warmup_ps + (self.measure_ps or 0)
        found.unless(
            last <= LATEST,
            f"measurement until {last} ps",
            f"at most {LATEST} ps, 53 days",
            "measure_ps" if self.measure_ps else "warmup_ps",
            "warmup_ps",
        )
        found.refuse()

    def check_on(self, machine: Dragonfly, where: str, found: Findings) -> None:
        """Find what is invalid on this machine; `where` names this traffic."""
        gap = self.slot_ps(machine) / self.load
        found.unless(
            gap < 2**56,
            f"load = {self.load:g}",
            f"a message every {gap / 1e12:g} s; at least one every 72,000 s",
            f"{where}.load",
            f"{where}.message_bytes",
            "machine.terminal.bandwidth",
        )
        most = self.slot_ps(machine) / self.load
        found.unless(
            self.trial_ps is None or (self.arrivals == "bernoulli" and 0 < self.trial_ps <= most),
            f"trial = {self.trial_ps} ps",
            f"Bernoulli arrivals, and at most {most:.0f} ps, so that one message per trial will do",
            f"{where}.trial_ps",
            f"{where}.arrivals",
            f"{where}.load",
        )
        problem = FIXED[self.pattern].problem(machine) if self.pattern in FIXED else ""
        found.unless(
            not problem,
            f"pattern = {self.pattern}",
            f"it needs {problem}",
            f"{where}.pattern",
            "machine.groups",
            "machine.nodes",
            "machine.routers",
        )
        far = self.pattern == "adversarial"
        found.unless(
            machine.n_nodes > 1,
            f"nodes = {machine.nodes}",
            "a single node has no other to send to",
            "machine.nodes",
            "machine.routers",
            "machine.groups",
        )
        found.unless(
            not far or machine.groups > 1,
            f"groups = {machine.groups}",
            "adversarial traffic goes to another group",
            "machine.groups",
            f"{where}.pattern",
        )
        found.unless(
            not far or machine.groups == 1 or self.stride % machine.groups != 0,
            f"stride = {self.stride}",
            f"adversarial traffic goes to another group, 1 .. {machine.groups - 1} on",
            f"{where}.stride",
            f"{where}.pattern",
            "machine.groups",
        )

    @property
    def ends(self) -> bool:
        """Tells whether nodes stop generating messages by themselves."""
        return self.messages is not None or self.stop_ps is not None

    @property
    def how(self) -> int:
        return {"uniform": UNIFORM, "adversarial": ADVERSARIAL, "hotspot": HOTSPOT}.get(
            self.pattern, PARTNER
        )

    def slot_ps(self, machine: Dragonfly) -> float:
        """Returns the time that a message takes on its node's link, in ps, not rounded."""
        return self.message_bytes * 1e12 / machine.terminal.bandwidth

    def least_packet(self, packet_bytes: int) -> int:
        """Returns the size of the smallest packet of a message, in bytes."""
        return min(self.message_bytes % packet_bytes or packet_bytes, self.message_bytes)

    def pace(self, machine: Dragonfly) -> float:
        """Returns the factor of an exponential variate that gives the gap: in ps, or in slots
        (which are geometric: the integer part of an exponential variate)."""
        if self.arrivals == "poisson":
            return self.slot_ps(machine) / self.load
        plain = getattr(log, "py_func", log)  # our own: a library's may differ in the last bit
        chance = self.load
        if self.trial_ps is not None:
            chance *= self.trial_ps / self.slot_ps(machine)
        return -1.0 / float(plain(1.0 - min(chance, 1 - 1e-12)))

    def words(self, machine: Dragonfly, seed: int, own: Sequence[str]) -> list[int]:
        """Returns its row of `State.traffic`; `own` are the patterns of plug-ins in this run."""
        how = OWN + own.index(self.pattern) if self.pattern in own else self.how
        per_group = machine.routers * machine.nodes
        slot = round(self.slot_ps(machine)) if self.trial_ps is None else self.trial_ps
        slot = slot if self.arrivals == "bernoulli" else 0
        return [seed, how, machine.n_nodes, per_group, self.stride % machine.groups,
                self.message_bytes, -1 if self.messages is None else self.messages,
                FOREVER if self.stop_ps is None else self.stop_ps, slot,
                round(self.hot * 2**32), self.hot_every]  # fmt: skip

    def partners(self, machine: Dragonfly, seed: int, first: int, last: int) -> Rows:
        """Returns the fixed destination of each of the nodes first .. last - 1, or 0."""
        if self.pattern in FIXED:
            return FIXED[self.pattern].partners(machine, seed)[first:last]
        return np.zeros(last - first, np.int64)
