"""Everything that can be set, once: what an experiment file may hold (`reading`), what
the options of the command line are made from (`odonata.commands`), and what `odonata schema` tells.

Nothing heavy is imported here. So defaults and words are repeated from the dataclasses they end up
in, and a test holds the two together. What values a *field* accepts is said there too, by the class
that has it; `least`, `above` and `most` repeat that for editors, where a rule is that simple.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from odonata.experiment.units import (
    bandwidth,
    exact_bandwidth,
    show_size,
    show_time,
    signed_bytes,
    size_bytes,
    time_ps,
)

KINDS = {
    "text": "text",
    "word": "a word",
    "whole": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "time": 'a time with its unit, as "1.5 us"',
    "size": 'a size with its unit, as "4 KiB"',
    "signed size": 'a size with its unit, as "4 KiB" or "-4 KiB"',
    "bandwidth": 'a bandwidth with its unit, as "25 GB/s"',
    "wholes": "a list of whole numbers, as [4, 4]",
}
"""What a key holds, and how that is said to a user."""

READERS: dict[str, Callable[[str], float]] = {
    "time": time_ps,
    "size": size_bytes,
    "signed size": signed_bytes,
    "bandwidth": bandwidth,
}
WRITERS: dict[str, Callable[[Any], str]] = {
    "time": show_time,
    "size": show_size,
    "signed size": show_size,
    "bandwidth": exact_bandwidth,
}
"""Quantities, from text and exactly back."""

PRESET = "kim-1056"
NAME_LENGTH = 100


@dataclass(frozen=True)
class Key:
    """One thing that can be set."""

    section: str
    """Empty for what stands above all sections."""
    name: str
    kind: str
    default: str | int | float | bool | None
    """As a user would write it; None: it depends, and `otherwise` says on what."""
    about: str
    field: str
    """Where in an `Experiment` it ends up."""
    otherwise: str = ""
    words: tuple[str, ...] = ()
    """Of a word: those accepted. What can be registered (routings, presets) is asked there. Of a
    list: those that may stand in its place."""
    none: str = ""
    """The word that stands for None."""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    option: str = ""
    """On the command line, where it has another name there."""

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}" if self.section else self.name

    @property
    def last(self) -> str:
        """The field, in the object that has it."""
        return self.field.rpartition(".")[2]

    def write(self, value: Any) -> str:
        """A value of the field, as TOML."""
        if value is None:
            return quoted(self.none)
        if self.kind in WRITERS:
            return quoted(WRITERS[self.kind](value))
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, tuple):
            return str(list(value))
        return repr(value).lower()

    def shown_default(self) -> str:
        """For people, without the quotes of TOML."""
        if self.default is None:
            return self.otherwise
        return str(self.default).lower() if self.kind == "flag" else str(self.default) or "empty"


def quoted(text: str) -> str:
    """As a string of TOML, which is one of JSON but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _machine(name: str, kind: str, about: str, field: str = "", **more: Any) -> Key:
    more = {"otherwise": "the preset's"} | more
    return Key("machine", name, kind, None, about, f"network.machine.{field or name}", **more)


def _link(kind: str, field: str) -> tuple[Key, Key]:
    about = f"Of each {kind} link"
    return (
        _machine(f"{kind}_bandwidth", "bandwidth", f"{about}, each way.", f"{field}.bandwidth"),
        _machine(f"{kind}_latency", "time", f"{about}.", f"{field}.latency_ps"),
    )


def _network(name: str, kind: str, default: Any, about: str, field: str = "", **more: Any) -> Key:
    return Key("network", name, kind, default, about, f"network.{field or name}", **more)


def _traffic(name: str, kind: str, default: Any, about: str, field: str = "", **more: Any) -> Key:
    return Key("traffic", name, kind, default, about, f"network.traffic.{field or name}", **more)


def _scheduler(name: str, kind: str, default: Any, about: str, field: str, **more: Any) -> Key:
    return Key("scheduler", name, kind, default, about, f"network.traffic.{field}", **more)


def _nic(name: str, default: str, about: str) -> Key:
    return Key("nic", name, "time", default, about, f"network.traffic.{name}_ps")


def _job(name: str, kind: str, default: Any, about: str, field: str = "", **more: Any) -> Key:
    return Key(JOBS, name, kind, default, about, field or name, **more)


JOBS = "jobs"
"""The one section of which there are as many as one likes: [[jobs]]."""
MOST_JOBS = 100_000

KEYS = (
    Key("", "name", "text", None, "What it is called; results are found under it.", "name",
        otherwise="the file's"),
    Key("", "about", "text", "", "What it is for, in a line or more.", "about"),
    # -- machine
    Key("machine", "preset", "word", PRESET, "Start from this machine; `odonata topology --list` "
        "has them.", ""),
    _machine("nodes", "whole", "Nodes a router, p.", least=1, most=2**8),
    _machine("routers", "whole", "Routers a group, a.", least=1, most=2**10),
    _machine("global_links", "whole", "Global links a router, h.", least=0, most=2**8),
    _machine("groups", "whole", "Groups, g.", least=1, most=2**14),
    _machine("cabling", "word", "In which order a group's cables go to the others.",
             words=("absolute", "relative", "circulant")),
    _machine("links_per_pair", "whole", "Cables between two groups; all: as many as there are "
             "ports for.", least=1, most=2**18, none="all"),
    *_link("terminal", "terminal"),
    *_link("local", "local"),
    *_link("global", "global_"),
    # -- network
    _network("routing", "word", "minimal", "Which way packets go.",
             words=("minimal", "valiant", "ugal-l", "ugal-g", "par", "adaptive")),
    _network("via", "word", "group", "What a detour leads through, chosen at random.",
             words=("group", "router", "anywhere")),
    _network("threshold", "number", "auto", "Of adaptive routings: how many times worse the "
             "straight way must look; auto: the routing's own.", least=0, most=1e6, none="auto"),
    _network("bias", "signed size", "auto", "And how much worse, in addition; auto: the routing's "
             "own.", none="auto"),
    _network("packet", "size", "512 B", "The largest; longer messages are cut.",
             "packet_bytes"),
    _network("flit", "size", "16 B", "What counters count in; a power of two.", "flit_bytes"),
    _network("terminal_buffer", "size", "16 KiB", "Of each VC, at the end of a node's link."),
    _network("local_buffer", "size", "16 KiB", "Of each VC, at the end of a local link."),
    _network("global_buffer", "size", "32 KiB", "Of each VC, at the end of a global link."),
    _network("delay", "time", "50 ns", "What a router's pipeline takes.", "delay_ps"),
    _network("forwarding", "word", "cut-through",
             "Whether a packet goes on before its end has come.",
             words=("cut-through", "store")),
    _network("vcs", "word", "hops", "Virtual channels: another for each hop; one for all "
             "deadlocks.", words=("hops", "one")),
    # -- traffic
    _traffic("pattern", "word", "uniform", "Who talks to whom.", option="traffic",
             words=("uniform", "adversarial", "permutation", "transpose", "hotspot")),
    _traffic("load", "number", 0.3, "Offered, in parts of a node's link.", above=0, most=1),
    _traffic("arrivals", "word", "poisson", "How messages come, at each node.",
             words=("poisson", "bernoulli")),
    _traffic("message", "size", None, "Size of each.", "message_bytes",
             otherwise="one packet"),
    _traffic("messages", "whole", "any", "The most that a node sends.", least=0,
             most=2**62 - 1, none="any"),
    _traffic("stride", "whole", 1, "Adversarial: to the group so many on.",
             least=1 - 2**32, most=2**32 - 1),
    _traffic("hot", "number", 0.1, "Hotspot: the part that goes to the hot nodes.", least=0,
             most=1),
    _traffic("hot_every", "whole", 32, "Hotspot: one node of so many is hot.", least=1,
             most=2**40 - 1),
    _traffic("warmup", "time", "0 ps", "Measure only what is made after that.", "warmup_ps"),
    _traffic("measure", "time", "all", "And only for so long; all: to the end.", "measure_ps",
             none="all"),
    _traffic("stop", "time", "never", "When nodes stop sending.", "stop_ps", none="never"),
    # -- scheduler
    _scheduler("allocation", "word", "level-spread", "Who chooses the nodes of a job; `odonata "
               "policies` explains them.", "allocation",
               words=("level-spread", "rrn", "rrr", "simple", "slurm", "slurm-first-fit",
                      "jokanovic", "rdn", "rdr", "rdg")),
    _scheduler("order", "word", "fcfs", "Which waiting job is tried next.", "order",
               words=("fcfs", "small-first", "large-first")),
    _scheduler("launch", "time", "10 us", "What a command takes to a node, and word of a task's "
               "end to the scheduler.", "launch_ps"),
    _scheduler("tasks_per_node", "whole", 2, "Tasks that a node runs.", "tasks_per_node", least=1,
               most=128),
    # -- nic
    _nic("send", "50 ns", "What a message takes through it before it wants the link."),
    _nic("match", "100 ns", "What it needs for each message that comes, one after the other."),
    _nic("host", "150 ns", "What it takes to hand one over."),
    # -- run
    Key("run", "duration", "time", None, "How much time is simulated; done: until nothing is left "
        "to happen.", "end", otherwise="100 us, and with jobs done", none="done"),
    Key("run", "seed", "whole", 1, "Of all random numbers.", "network.seed", least=0,
        most=2**63 - 1),
    Key("run", "protocol", "word", "window", "How ranks agree on how far it is safe to go.",
        "protocol", words=("window", "null")),
    Key("run", "checkpoint_every", "time", "never", "Simulated time between two checkpoints.",
        "checkpoint_every", none="never"),
    # -- metrics
    Key("metrics", "interval", "time", None, "Simulated time between two samples.",
        "metrics.interval_ps", otherwise="10 us, for 20 .. 1,000 samples"),
    Key("metrics", "ports", "flag", True, "Keep the counters of every port.", "metrics.ports"),
    Key("metrics", "channels", "flag", False, "And of every virtual channel.",
        "metrics.channels"),
    Key("metrics", "flush", "time", "2 s", "Wall time: what a crash may lose, at most.",
        "metrics.flush_s"),
)  # fmt: skip

JOB_KEYS = (
    _job("name", "text", "", "What it is called; where there are several alike, with a number."),
    _job("nodes", "whole", None, "Nodes that it needs.", otherwise="must be given", least=1),
    _job("count", "whole", 1, "So many jobs that are alike.", least=1, most=MOST_JOBS),
    _job("pattern", "word", "all-to-all", "Which of its tasks talk to which.",
         words=("all-to-all", "broadcast", "tree-broadcast", "fft3d", "halo2d", "halo3d",
                "halo3d26", "allreduce", "random-ring", "incast", "uniform", "permutation")),
    _job("message", "size", "1 KiB", "Size of each message.", "message_bytes"),
    _job("iterations", "whole", 1, "How often it goes through its pattern.", least=1),
    _job("exchange", "word", "posted", "Whether all messages of a phase go out at once, or one "
         "partner comes after the other.", words=("posted", "pairwise")),
    _job("compute", "time", "0 ps", "What a task computes before each iteration.", "compute_ps"),
    _job("arrival", "time", "0 ps", "When it joins the queue.", "arrival_ps"),
    _job("grid", "wholes", "auto", "Of a pattern that is on one: its sides; auto: near-cubic.",
         none="auto"),
    _job("mapping", "wholes", "random", "How its tasks are dealt to the places on its nodes, or a "
         "list: the place of each.", words=("random", "linear")),
)  # fmt: skip
"""Of each of [[jobs]]. Their fields are those of a `Job`."""

SECTIONS = {
    "machine": "The machine: a preset, and what is different.",
    "network": "Its routers: how packets find their way, and what they wait for.",
    "traffic": "What its nodes send, where they run no jobs.",
    "scheduler": "Of jobs: which goes where, and when.",
    "nic": "Of jobs: what a message costs at either end, besides the network.",
    "run": "For how long, and how.",
    "metrics": "What is kept of it, and how often.",
}

ABOUT_JOBS = "A job; as many of these as there are jobs, in place of [traffic]."
OF_JOBS, NOT_OF_JOBS = ("scheduler", "nic"), ("traffic",)
"""Sections that an experiment has only if it runs jobs, or only if it does not."""

BY_PATH = {key.path: key for key in KEYS}
BY_FIELD = {key.field: key for key in KEYS if key.field}


def of(section: str) -> tuple[Key, ...]:
    return tuple(key for key in KEYS if key.section == section)


def of_job(number: int) -> tuple[Key, ...]:
    """The same of one of [[jobs]]: jobs[0].nodes, jobs[0].pattern and so on."""
    return tuple(replace(key, section=f"{JOBS}[{number}]") for key in JOB_KEYS)
