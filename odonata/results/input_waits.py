"""What the first packets of input queues waited for, where routers have crossbars: by class of the
input port, and where it was longest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from odonata.agents.metrics import INPUT_COUNTERS
from odonata.agents.network import Network

CAUSES = {"switch_ps": "crossbar", "room_ps": "no room", "eject_ps": "ejection"}
"""The counters of an input queue, each with its cause in words."""


class Waits(NamedTuple):
    """How many packets waited as the first of their queues, mean over time and over the input ports
    of a class (`by_class`: cause, packets; an input has a queue for each virtual channel); and the
    longest that a packet waited for the crossbar in ps, with the router and the input port where
    that was."""

    by_class: dict[str, dict[str, float]]
    longest_ps: int
    router: int
    port: int


def input_waits(network: Network, inputs: Any, time_ps: int) -> Waits:
    """Returns what first packets waited for. `inputs` are INPUT_COUNTERS by router and port, over
    a run that has reached `time_ps`."""
    m = network.machine
    port = np.arange(m.radix)
    kinds = np.where(port < m.nodes, "inject", np.where(port < m.nodes + m.routers - 1, "local",
                                                        "global"))  # fmt: skip
    lit = np.ones((m.n_routers, m.radix), bool)
    lit[:, m.nodes :] = m.ends() >= 0
    by_class = {}
    for kind in ("inject", "local", "global"):
        some = inputs[lit & (kinds == kind)]
        if len(some):
            means = some.mean(axis=0) / max(1, time_ps)
            by_class[kind] = {cause: float(means[INPUT_COUNTERS.index(name)])
                              for name, cause in CAUSES.items()}  # fmt: skip
    longest = inputs[:, :, INPUT_COUNTERS.index("longest_ps")]
    router, where = divmod(int(longest.argmax()), m.radix)
    return Waits(by_class, int(longest[router, where]), router, where)


def by_port(counters: Any) -> Any:
    """Returns INPUT_COUNTERS by router port, of those by port and virtual channel: sums, and of the
    longest wait the largest."""
    found = counters.sum(axis=-2)
    longest = INPUT_COUNTERS.index("longest_ps")
    found[..., longest] = counters[..., longest].max(axis=-1)
    return found
