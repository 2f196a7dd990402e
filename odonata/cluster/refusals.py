"""What a run of jobs refuses of the section [power], before anything is simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odonata.cluster import layout as w
from odonata.jobs.power import Power
from pdes.errors import Refused
from policies.scheduling import has_order

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster

MOST_READINGS = 10**8
"""The most measurements of power between the first submission and the last."""


NEEDS = {"price": "the price of electricity", "carbon": "the carbon intensity of electricity",
         "cap": "the cap of the machine"}  # fmt: skip
"""What a scheduling policy may go by of [power], in words."""


def refuse_needs(model: Cluster) -> None:
    """Refuse a scheduling policy that goes by what the run does not have."""
    for name in model.policies[0].needs:
        if model.power is None or getattr(model.power, name) is None:
            raise Refused(f"scheduling {model.scheduling}: it goes by {NEEDS[name]}: set "
                          f"power.{name}, as a list of [time, value] or a CSV file (with `odonata "
                          f"schedule`, --power none --set {name}=FILE.csv)")  # fmt: skip


def refuse_power(model: Cluster, power: Power) -> None:
    """Refuse what of [power] cannot be on this machine, with these jobs."""
    policy, discipline = model.power_policy, model.policies[0]
    model.cap  # noqa: B018 which may be impossible
    for name in ("price", "carbon"):
        model.steps(name)
    often = model.trace.span_us // power.interval(w.TICK_PS, w.USUAL_INTERVAL_PS)
    if often > MOST_READINGS:
        raise Refused(f"power.interval = {power.interval_ps} ps: {often:,} measurements until "
                      f"the last submission; at most {MOST_READINGS:,}")  # fmt: skip
    if power.variation and model.machine is None:
        raise Refused(f"power.variation = {power.variation:g}: nodes differ only on a machine "
                      "on which jobs are placed")  # fmt: skip
    most_w = float(model.demand.mean_w.max()) * (1 + power.variation)
    if most_w > power.maximum * (1 + 1e-12):
        raise Refused(f"power.maximum = {power.maximum:g} W: a job draws {most_w:g} W on its "
                      "least efficient node")  # fmt: skip
    names = model.trace.applications
    known = {name: it for name, it in model.applications.items() if name in names}
    if power.applications is not None and model.applications and not known:
        raise Refused(f"power.applications = {power.applications}: {model.trace.name} has no "
                      f"job of {', '.join(model.applications)}, but jobs of "
                      f"{', '.join(filter(None, names[:8])) or 'no name'}")  # fmt: skip
    for name, table in known.items():
        if table.least_node_w < power.idle:
            raise Refused(f"power.idle = {power.idle:g} W: a node of {name} draws "
                          f"{table.least_node_w:g} W in one of its configurations")  # fmt: skip
        if table.most_node_w > power.maximum:
            raise Refused(f"power.maximum = {power.maximum:g} W: a node of {name} draws "
                          f"{table.most_node_w:g} W in one of its configurations")  # fmt: skip
    if power.wake_ps % w.TICK_PS:
        raise Refused(f"power.wake_time = {power.wake_ps} ps: a whole number of microseconds")
    if policy is not None and policy.selects and not has_order(discipline):
        raise Refused(f"power.policy = {power.policy}: it chooses jobs in the order of a "
                      f"discipline, and {model.scheduling} has none; fcfs and wfp have, for "
                      "example")  # fmt: skip


def refuse_regulation(model: Cluster, power: Power) -> None:
    """Refuse what cannot be where a policy regulates jobs by type, and a market whose standby jobs
    nobody would start."""
    market, policy = model.market, model.power_policy
    if policy is None or policy.regulate is None:
        if market is not None and market.made(w.TICK_PS).by_types and model.begun is None:
            raise Refused(f"market.bidding = {market.bidding}: it goes by types of jobs: set "
                          "power.types, and a power policy that follows the target by types, as "
                          "tracking-only, energy-qare or qosg")  # fmt: skip
        if market is not None and market.standby is not None:
            raise Refused(f"market.standby = {market.standby}: only a power policy starts standby "
                          "jobs that follows the target by types of jobs: tracking-only, "
                          "energy-qare, qosg")  # fmt: skip
        return
    what = f"power.policy = {power.policy}: it follows the target of a bid by types of jobs"
    sleeps = (power.sleep_w, power.wake_ps, power.wake_j) != (None, Power.wake_ps, Power.wake_j)
    for wrong, why in (
        (market is None, "; a section [market] is needed"),
        (power.kinds is None, ", and jobs have none: set power.types"),
        (model.machine is not None, " on nodes that are only counted: leave out [machine]"),
        (sleeps, ", and no node sleeps: leave out power.sleep, wake_time and wake_energy"),
        (power.cap is not None, ", and keeps to no cap: leave out power.cap"),
        (model.scheduling != "fcfs", ", and starts jobs itself: leave out scheduler.order"),
    ):
        if wrong:
            raise Refused(what + why)
    standby = None if model.types is None else model.types.standby
    if standby is not None and (standby.nodes or 1) > model.nodes:
        raise Refused(f"market.standby = {standby.name}: a standby job needs {standby.nodes:,} "
                      f"nodes, and the machine has {model.nodes:,}: none would ever start; name a "
                      "type that fits, or none")  # fmt: skip
