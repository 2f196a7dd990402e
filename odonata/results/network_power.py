"""The energy of the network of a run, from the counters of its ports (model: `topology.power`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odonata.experiment.units import show_energy, show_power
from odonata.results.derived import total_over_time
from odonata.results.run import Run
from pdes.errors import Refused
from topology.power import NetworkPower
from topology.presets import power_of

PS_PER_S = 1e12


class NetworkEnergy(NamedTuple):
    """The energy of a network over a run, in joules; nodes and their network adapters are not part
    of it."""

    router_j: float
    terminal_j: float
    local_j: float
    global_j: float
    total_j: float
    """The sum of these four."""
    idle_j: float
    """What it would have been without any traffic."""
    mean_w: float
    """The mean power over the time that was simulated."""
    per_delivered_byte_j: float | None
    """The total per byte delivered to a node; None where none was."""


def energy_rows(run: Run) -> list[tuple[str, str, str]]:
    """Returns a row of a name, a figure and a note about the energy of the network, where ports
    were recorded."""
    if "ports" not in run.file or run.simulated_ps <= 0:
        return []
    found = network_energy(run)
    return [("energy of the network", show_energy(found.total_j),
             f"{show_power(found.mean_w)}, by the watts of the machine's preset; "
             f"{found.idle_j / found.total_j:.1%} of it idle")]  # fmt: skip


def network_energy(run: Run, power: NetworkPower | None = None) -> NetworkEnergy:
    """Returns the energy of a run's network over the time that it has simulated. The power is that
    of the machine's preset or, for a machine with other routers, the generic one, unless it is
    given. Refused where ports were not recorded, or nothing has been simulated yet."""
    m = run.machine
    power = power or power_of(m)
    ports, duration_ps = run.ports, run.simulated_ps
    if duration_ps <= 0:
        raise Refused(f"{run.path}: has no sample yet, so its network has no energy: wait for one")
    duration_s = duration_ps / PS_PER_S
    lit = ports.lit.transpose("router", "port").data
    busy = np.where(lit, total_over_time(ports.busy_ps), 0)
    load = busy.sum(axis=1) / (lit.sum(axis=1) * duration_ps)
    first_global = m.nodes + m.routers - 1
    sending_ps = {
        "terminal": int(busy[:, : m.nodes].sum())
        + int(total_over_time(run.nodes.inject_busy_ps).sum()),
        "local": int(busy[:, m.nodes : first_global].sum()),
        "global": int(busy[:, first_global:].sum()),
    }
    parts = power.energy_j(
        m, duration_s, load, {kind: ps / PS_PER_S for kind, ps in sending_ps.items()}
    )
    delivered = int(total_over_time(run.nodes.received_bytes).sum())
    return NetworkEnergy(
        *parts,
        total_j=parts.total_j,
        idle_j=power.idle_w(m) * duration_s,
        mean_w=parts.total_j / duration_s,
        per_delivered_byte_j=parts.total_j / delivered if delivered else None,
    )
