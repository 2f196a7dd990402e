"""A machine with its queue, as a model for the engine."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.cluster import audit, judged
from odonata.cluster import layout as w
from odonata.cluster.admission import admitted
from odonata.cluster.dispatch import handle
from odonata.cluster.layout import State
from odonata.cluster.market import Begun, Trading
from odonata.cluster.metrics import (
    ENDS,
    MOLDS,
    PLACEMENTS,
    POWERED_ENDS,
    SPEEDS,
    STARTS,
    TYPE_CAPS,
    energies,
    notes,
    series_table,
    standby_j,
    tables,
    waiting_rows,
)
from odonata.cluster.refusals import refuse_needs, refuse_power, refuse_regulation
from odonata.cluster.regulation import conclude_now, handler
from odonata.cluster.scheduling import BID_KEY, ArrayMachine, Slowdown, rehearse
from odonata.cluster.state import first_events, fresh_state
from odonata.jobs.asking import Policies
from odonata.jobs.floors import Kinds
from odonata.jobs.market import SERIES, MarketSettings, market_logs
from odonata.jobs.metering import CAPS, POWER, learned
from odonata.jobs.passes import Passes
from odonata.jobs.power import FILE, Power
from odonata.jobs.series import Steps
from odonata.jobs.series_dates import Period
from odonata.provisioning.table import Table as Measured
from odonata.traces.demand import Demand, constant, like_mira
from odonata.traces.demand_file import read_demand
from odonata.traces.source import Source
from odonata.traces.trace import COLUMNS, Trace
from odonata.traces.types import Types
from pdes.clock import LATEST
from pdes.dealing import Dealing, Deals, Other
from pdes.errors import Fault, Refused
from pdes.events import Rows, no_rows, pack
from pdes.log import Block, Log
from pdes.model import Audits, Decides, Decision, Ends, Lookahead, Model, Streams, Tally
from pdes.partition import Partition
from pdes.stream import Table
from policies.allocation import ALLOCATIONS, AllocationPolicy
from policies.memory import Buffer, Layout, Sizes, remembered
from policies.power import Choices, PowerPolicy
from policies.power import floor as f
from policies.power.floor import Regulate
from policies.power.simple import IdleSleep, Uncontrolled
from policies.register import PLUGINS, REGISTERS, Values
from policies.scheduling import SCHEDULINGS, SchedulingPolicy
from policies.scheduling.compiled import Compiled
from policies.views import Market
from topology import Dragonfly

OVERRUNS = ("kill", "extend")
DRAIN_KEY = int(pack(w.DRAIN, w.SCHEDULER, 0))
MONTH_US = 30 * 86400 * 10**6
"""How far one rank may be ahead of the others, in us, where there are several: they have nothing to
say to each other."""
MOST_RANKS = 4096
"""Agents besides the scheduler: they do nothing, and are there so that any number of ranks has
some."""


@dataclass(frozen=True, eq=False)
class Cluster(Model, Decides, Deals, Streams, Ends, Audits):
    """A machine that runs the jobs of a trace: `scheduling` and `allocation` are names of policies,
    and their parameters are dicts, as {"half_life": 86400.0}.

    Ranks of one run share nothing useful here: the first does all the work.
    """

    trace: Trace
    nodes: int
    scheduling: str = "fcfs"
    scheduling_parameters: Values = ()
    machine: Dragonfly | None = None
    """Where jobs are placed, on its first `nodes` nodes; None: nodes are only counted."""
    allocation: str = "level-spread"
    allocation_parameters: Values = ()
    overrun: str = "kill"
    """What happens to a job that runs for longer than it requested."""
    seed: int = 1
    slowdown: Slowdown | None = None
    """How many times as long as its run time a job takes where it is placed; None: once."""
    power: Power | None = None
    """What nodes draw, and who keeps them below a cap; None: nobody cares."""
    applications: Mapping[str, Measured] = field(default_factory=dict)
    """What was measured of applications, by name: their jobs are moldable, and where a power policy
    chooses a configuration for one, it takes the time and draws the watts that were measured."""
    market: MarketSettings | None = None
    """What the grid asks, and who bids for it; None: it asks nothing."""
    until_us: int | None = None
    """When the run ends, which a market has to know; None: when all jobs are over."""
    begun: Begun | None = None
    """How an hour begins in which a bid is tried; None: this is no such hour."""
    placement_seed: int | None = None
    """The seed of what allocation policies draw; None: that of all else."""

    @classmethod
    def of(
        cls,
        source: Source,
        scheduling: str = "fcfs",
        scheduling_parameters: Values = (),
        machine: Dragonfly | None = None,
        allocation: str = "level-spread",
        allocation_parameters: Values = (),
        seed: int = 1,
        power: Power | None = None,
        market: MarketSettings | None = None,
        until_us: int | None = None,
        placement_seed: int | None = None,
    ) -> Cluster:
        """Returns the machine that runs the jobs of a source, which is read now: with its nodes,
        and its `overrun`, without jobs that its power policy can never start. Where nobody says
        what jobs demand, those of Mira's model demand what Mira's did, and those of a mix what
        its types do."""
        measured = power.measured if power else {}
        unsaid = power is not None and power.types is power.demand is power.applications is None
        if power is not None and unsaid and source.types is not None:
            power = replace(power, types=source.types.name)
        kinds = power.kinds if power else None
        trace, nodes = source.trace(machine.n_nodes if machine else None, seed, measured, kinds)
        overrun = source.overrun
        if power is not None and power.regulates:
            overrun = "extend"  # nobody is killed where jobs are regulated by type
            trace = trace.where(slice(None), run_us=np.maximum(trace.run_us, 1))
        if power is not None and power.demand is None and kinds is None:
            power = replace(power, demand="mira" if source.model == "mira" else "constant")
        return admitted(cls(trace, nodes, scheduling, scheduling_parameters, machine, allocation,
                            allocation_parameters, overrun, seed, power=power,
                            applications=measured, market=market, until_us=until_us,
                            placement_seed=placement_seed))  # fmt: skip

    name, tick, kinds, fanout = "cluster", "us", w.KINDS, w.FANOUT
    alone = True

    @property
    def handle(self) -> Any:  # type: ignore[override]
        return handler(self.regulates) if self.regulates is not None else handle

    @property
    def variant(self) -> str:  # type: ignore[override]
        assert self.regulates is None or self.power_policy is not None
        return self.power_policy.name if self.regulates and self.power_policy else ""

    def __post_init__(self) -> None:
        if not len(self.trace):
            why = "".join(f"; {line}" for line in self.trace.account.lines())
            raise Refused(f"{self.trace.name}: no job is left to run{why}")
        if self.overrun not in OVERRUNS:
            raise Refused(f"overrun = {self.overrun!r}: one of {', '.join(OVERRUNS)}")
        if not isinstance(self.nodes, int | np.integer) or self.nodes < 1:
            raise Refused(f"nodes = {self.nodes!r}: a whole number, at least 1")
        if self.machine is not None and self.machine.n_nodes < self.nodes:
            raise Refused(f"nodes = {self.nodes:,}: the machine has {self.machine.n_nodes:,}")
        largest = int(self.trace.nodes.max())
        if largest > self.nodes:
            raise Refused(f"{self.trace.name}: a job needs {largest:,} nodes, and the machine has "
                          f"{self.nodes:,}")  # fmt: skip
        latest = float(self.trace.submit_us[-1]) + float(self.trace.run_us.astype(np.float64).sum())
        if latest > LATEST:
            raise Refused(f"{self.trace.name}: its jobs, one after the other, would take longer "
                          f"than {LATEST} us")  # fmt: skip
        allocation = self.policies[1]  # a name or a parameter may be wrong
        if allocation is not None and allocation.reads:
            raise Refused(f"allocation = {self.allocation}: it reads the counters of the network, "
                          'which there are only in a run with fidelity = "packet"')  # fmt: skip
        refuse_needs(self)
        if self.power is not None:
            refuse_power(self, self.power)
            refuse_regulation(self, self.power)
        _named = self.trading  # its hour or its signal may be wrong

    @cached_property
    def policies(self) -> tuple[SchedulingPolicy, AllocationPolicy | None]:
        """Returns the discipline and, where jobs are placed, the allocation."""
        placing = self.machine is not None
        return (
            SCHEDULINGS.make(self.scheduling, self.scheduling_parameters),
            ALLOCATIONS.make(self.allocation, self.allocation_parameters) if placing else None,
        )

    @cached_property
    def power_policy(self) -> PowerPolicy | None:
        """Returns the power policy that is asked; None where there is nothing to ask."""
        if self.power is None:
            return None
        policy = self.power.made(w.TICK_PS)
        return None if type(policy) in (Uncontrolled, IdleSleep) else policy

    @property
    def regulates(self) -> Regulate | None:
        """Returns the kernel of a power policy that steers jobs by type, None where it is asked in
        another way."""
        return None if self.power_policy is None else self.power_policy.regulate

    @cached_property
    def types(self) -> Kinds | None:
        """Returns the types of jobs, None where they have none."""
        table: Types | None = None if self.power is None else self.power.kinds
        if table is None:
            return None
        standby = self.market.standby if self.market is not None else None
        return Kinds.of(table, self.trace, standby)

    @property
    def period(self) -> Period:
        """Returns when the run takes place."""
        return Period.of(self.trace)

    @cached_property
    def cap(self) -> Steps | None:
        """Returns the cap of the machine over time, None where there is none."""
        if self.power is None:
            return None
        return self.power.checked_cap(self.nodes, w.TICK_PS, self.period)

    def steps(self, name: str) -> Steps | None:
        """Returns the price or the carbon intensity over time, None where there is none."""
        return None if self.power is None else self.power.steps(name, w.TICK_PS, self.period)

    @cached_property
    def trading(self) -> Trading | None:
        """Returns the market in which the machine takes part, None where it does in none."""
        return None if self.market is None else Trading(self, self.market)

    @cached_property
    def choices(self) -> Mapping[str, Choices]:
        """Returns the configurations that moldable jobs can run in, by application; none where no
        power policy is there to choose."""
        policy, known = self.power_policy, self.trace.applications
        if policy is None or not policy.selects:
            return {}
        return {name: table.choices for name, table in self.applications.items() if name in known}

    @cached_property
    def demand(self) -> Demand:
        """Returns what the nodes of each job draw that has no cap."""
        assert self.power is not None
        if self.begun is not None:
            return self.begun.demand
        if self.types is not None:
            most_w = np.array([each.most_w for each in self.types.rows])
            watts = most_w[self.types.of_job]
            return replace(constant(self.trace, 1.0), mean_w=watts)
        if self.power.of_mira:
            return like_mira(self.trace, self.seed)
        if self.power.demand is not None and self.power.demand.endswith(FILE):
            try:
                return read_demand(self.power.demand, self.trace, self.power.active_w)
            except Refused as refusal:
                raise Refused(f"power.demand = {self.power.demand}: {refusal}") from None
        return self._measured(constant(self.trace, self.power.active_w))

    def _measured(self, demand: Demand) -> Demand:
        """Returns the demand in which jobs of measured applications draw what these draw on as many
        nodes with all cores and no cap, unless a policy chooses another configuration for them."""
        watts = demand.mean_w.copy()
        for number, name in enumerate(self.trace.applications):
            if name in self.applications:
                some = np.flatnonzero(self.trace.application == number)
                watts[some] = self.applications[name].packed_node_w(self.trace.nodes[some])
        return replace(demand, mean_w=watts) if self.applications else demand

    @property
    def compiled(self) -> bool:
        """Tells whether passes are made without Python."""
        discipline = self.policies[0]
        asked = (self.machine, self.power_policy, self.market) != (None, None, None)
        return not asked and isinstance(discipline, Compiled)

    @property
    def decisions(self) -> tuple[int, ...]:  # type: ignore[override]
        if self.regulates is not None:
            return (w.DRAIN, w.BID)
        return (w.DRAIN,) if self.compiled else (w.DRAIN, w.BID, w.PASS, w.CONTROL)

    def plugins(self) -> dict[str, str]:
        """Returns what of it comes from plug-ins by file, each with a hash of the file."""
        names = [("scheduling", self.scheduling)]
        names += [("scheduling", it) for it in dict(self.scheduling_parameters).values()
                  if it in SCHEDULINGS]  # fmt: skip
        names += [("allocation", self.allocation)] * (self.machine is not None)
        names += [("power", self.power.policy)] if self.power else []
        names += [("bidding", self.market.bidding)] if self.market else []
        files = {str(path): plugin.sha256 for path, plugin in PLUGINS.items()}
        entries = [(kind, name, REGISTERS[kind].get(name)) for kind, name in names]
        return {f"{kind} {name}": files[entry.plugin][:16] for kind, name, entry in entries
                if entry is not None and entry.plugin in files}  # fmt: skip

    def parameters(self) -> dict[str, Any]:
        hashed = hashlib.blake2b(digest_size=16)
        for name in COLUMNS:
            hashed.update(np.ascontiguousarray(getattr(self.trace, name)).tobytes())
        found = {
            "trace": self.trace.name, "jobs": len(self.trace), "trace_hash": hashed.hexdigest(),
            "nodes": self.nodes, "scheduling": self.scheduling,
            "scheduling_parameters": json.dumps(dict(self.scheduling_parameters)),
            "overrun": self.overrun,
        }  # fmt: skip
        if self.machine is not None:
            found |= {
                "seed": self.seed, "machine": repr(self.machine), "allocation": self.allocation,
                "allocation_parameters": json.dumps(dict(self.allocation_parameters)),
            }  # fmt: skip
            if self.placement_seed is not None:
                found["placement_seed"] = self.placement_seed
        if self.power is not None:
            demand = self.demand
            for array in (demand.mean_w, demand.spread, demand.change_at, demand.change_to):
                hashed.update(array.tobytes())
            settings = {one.name: getattr(self.power, one.name) for one in fields(self.power)
                        if one.name not in ("cap", "demand")}  # fmt: skip
            found |= {"power": repr(settings),
                      "power_seed": self.seed, "demand_hash": hashed.hexdigest(),
                      "cap": repr(self.cap)}  # fmt: skip
        if self.trading is not None:
            found |= {"until_us": -1 if self.until_us is None else self.until_us,
                      "market": repr({one.name: getattr(self.market, one.name)
                                      for one in fields(self.market)  # type: ignore[arg-type]
                                      if one.name not in SERIES}),
                      "market_series": repr(self.trading.series)}  # fmt: skip
        if self.choices:
            tables = hashlib.blake2b(digest_size=16)
            for name, found_of in self.choices.items():
                tables.update(name.encode())
                tables.update(found_of.digest)
            found["choices_hash"] = tables.hexdigest()
        if plugins := self.plugins():
            found["plugins"] = json.dumps(plugins)
        return found

    # -- for the engine

    def units(self) -> Rows:
        return np.arange(MOST_RANKS + 2)

    def lookahead(self, partition: Partition) -> Lookahead:
        return Lookahead(MONTH_US, "all of a job run", one_rank=True)

    @cached_property
    def remembered(self) -> tuple[Buffer, tuple[Layout | None, ...]]:
        """Returns what policies written in Python remember; compiled ones have their own arrays."""
        discipline, allocation = self.policies
        asked = (None if isinstance(discipline, Compiled) else discipline, allocation,
                 self.power_policy, self.trading.policy if self.trading else None)  # fmt: skip
        buffer, layouts = remembered([it for it in asked if it is not None], self.sizes)
        found = iter(layouts)
        return buffer, tuple(None if it is None else next(found) for it in asked)

    @cached_property
    def sizes(self) -> Sizes:
        m = self.machine
        shape = (m.groups, m.n_routers) if m else (1, 1)
        nodes = m.n_nodes if m else self.nodes
        trace = self.trace
        smallest = max(1, int(trace.nodes.min()))
        return Sizes(
            len(trace), nodes, *shape, len(trace.users), len(trace.projects),
            int(trace.alike.max()) + 1 if self.power_policy else 1,
            max(1, min(len(trace), self.nodes // smallest)),
        )  # fmt: skip

    def state(self, first: int, last: int) -> State:
        return fresh_state(self, here=first == 0)

    def start(self, state: State, first: int, last: int) -> Rows:
        return first_events(self, state) if first == 0 else no_rows()

    @cached_property
    def passes(self) -> Passes:
        discipline, allocation = self.policies
        policies = Policies(discipline, allocation, self.power_policy, self.remembered[1],
                            self.trading.policy if self.trading else None)  # fmt: skip
        by_interval = self.power is not None and self.power.passes == "intervals"
        known = None if self.power is None else self._known
        seed = self.seed if self.placement_seed is None else self.placement_seed
        return Passes(policies, self.machine, seed, self.choices, by_interval, known)

    def _known(self, name: str) -> Steps | None:
        """Returns the price, the carbon intensity or the cap over time, None where there is
        none."""
        return self.cap if name == "cap" else self.steps(name)

    def _machine_of(self, state: State) -> ArrayMachine:
        """Returns the machine as its scheduler has it, made once per state."""
        latest: ArrayMachine | None = self.__dict__.get("_latest")
        if latest is None or latest.state is not state:
            latest = self.__dict__["_latest"] = ArrayMachine(
                state, self.trace, self.machine, self.passes.policies, self.tick, self.slowdown,
                self.power, self.choices, self.trading,
            )  # fmt: skip
        return latest

    def first_market(self) -> Market:
        """Returns what is known when the first bid is due."""
        return self.passes.market(self._machine_of(self.state(0, 1)))

    def decide(self, state: State, time: int, which: int, a: int, b: int) -> Decision:
        if which == DRAIN_KEY:
            return Decision([], self.noted(state))
        machine = self._machine_of(state)
        if which == BID_KEY:
            decision = machine.begin_hour(self.passes, time)
        else:
            decision = machine.decide(self.passes, time, a, b)
        if state.ctl[w.NOTES] < w.NOTES_KEPT:
            return decision
        return Decision(decision.events, [*self.noted(state), *decision.log])

    def rehearse(self, state: State) -> None:
        if not self.compiled and self.regulates is None and len(state.jobs):
            rehearse(self._machine_of(state), self.passes)

    def noted(self, state: State) -> list[tuple[str, Block]]:
        if state.floor[f.WRONG]:
            wrong = f.MISDEEDS[int(state.floor[f.WRONG])]
            raise Fault(f"power {self.variant}: {wrong}")
        return notes(state) if len(state.jobs) else []

    def conclude(self, state: State, time: int) -> None:
        if len(state.jobs) and self.regulates is not None:
            conclude_now(state, time)

    def tables(self, interval: int) -> Mapping[str, Table]:
        found = {**tables(self.trace, self.power is not None)}
        for name, unit, about in (("price", "1/kWh", "the price of a kWh"),
                                  ("carbon", "g/kWh", "the carbon intensity")):  # fmt: skip
            steps = self.steps(name)
            if steps is not None:
                found[name] = series_table(name, steps, unit, about)
        return found | judged.tables(self, found["jobs"])

    def logs(self) -> Mapping[str, Log]:
        placed = {"placements": PLACEMENTS} if self.machine is not None else {}
        if self.power is None:
            return {"starts": STARTS, "ends": ENDS} | placed
        placed |= {"molds": MOLDS} if self.choices else {}
        found = {"starts": STARTS, "ends": POWERED_ENDS, "power": POWER, "caps": CAPS,
                 "speeds": SPEEDS} | placed  # fmt: skip
        found |= market_logs(self.market) if self.market is not None else {}
        found |= {"type_caps": TYPE_CAPS} if self.regulates is not None else {}
        figures = self.power_policy.figures if self.power_policy else ()
        return found | ({"learned": learned(figures)} if figures else {})

    def fingerprint(self, state: State) -> npt.NDArray[Any]:
        """Returns one row, of the rank that has the scheduler: a hash of all but what is room to
        work in and what has yet to be collected."""
        if not len(state.jobs):
            return np.zeros((0, 2), np.uint64)
        hashed = hashlib.blake2b(digest_size=16)
        queue = waiting_rows(state)
        words = state.jobs[:, [w.STATUS, w.START, w.OVER, w.OVER]]
        words[:, 3] = np.ceil(state.work)
        arrays = [words, queue, state.owner, state.after, state.whole, state.real, state.memory,
                  state.slowdown]  # fmt: skip
        if self.power is not None:
            arrays += [state.energy, state.meter, state.node, state.idle, state.pace]
        if self.market is not None:
            arrays += [state.market, state.weights]
        if self.regulates is not None:
            kinds = state.kinds[:, f.KIND.hashed]
            arrays += [state.floor, kinds, state.tallies, state.rows, state.progress]
        for array in arrays:
            hashed.update(np.ascontiguousarray(array).tobytes())
        return np.frombuffer(hashed.digest(), np.uint64).reshape(1, 2)

    def dealing(self) -> Dealing:
        return dict.fromkeys(State._fields, Other.FIRST)

    def outcome(
        self, state: State, pending: Rows, parcels: Rows, time: int
    ) -> Mapping[str, npt.NDArray[Any]]:
        words = state.jobs[:, [w.STATUS, w.START, w.OVER]]
        return {
            "state": words[:, 0].astype(np.int8),
            "start_us": words[:, 1],
            "end_us": words[:, 2],
            **(self._power_outcome(state, time) if self.power is not None else {}),
        }

    def _power_outcome(self, state: State, time: int) -> dict[str, npt.NDArray[Any]]:
        """Returns the energies up to now, of jobs, of nodes and of the machine by what they were
        for."""
        if not len(state.jobs):
            none = np.zeros(0)
            names = ["energy_j", "node_j", "machine_j", "wakes"]
            names += ["standby_j", "standby_jobs"] * (self.regulates is not None)
            return dict.fromkeys(names, none)
        done = state.ctl[w.DONE] == len(state.jobs) and not state.ctl[w.RUN_UNTIL]
        found = energies(state, int(state.ctl[w.LAST_END]) if done else time)
        return {
            "energy_j": found.by_job_j, "node_j": found.by_node_j,
            "machine_j": np.array([found.idle_j, found.sleep_j, math.fsum(found.by_job_j)]),
            "wakes": state.ctl[[w.WAKES]],
            **(self._standby_outcome(state, int(state.ctl[w.LAST_END]) if done else time)
               if self.regulates is not None else {}),
        }  # fmt: skip

    def _standby_outcome(self, state: State, time: int) -> dict[str, npt.NDArray[Any]]:
        """Returns what standby jobs took and how many of them started and ended."""
        words = state.floor[[f.STANDBYS, f.STANDBYS_ENDED]]
        return {"standby_j": np.array([standby_j(state, time)]), "standby_jobs": words}

    def earliest(self) -> int:
        return int(self.trace.submit_us[-1])

    def tally(self, state: State) -> Tally | None:
        return Tally(int(state.ctl[w.DONE]), len(state.jobs), "jobs") if len(state.jobs) else None

    def left(self, state: State, pending: Callable[[], Rows]) -> int:
        if self.regulates is not None and self.until_us is not None:
            return 1  # the hours go on to their end
        return len(state.jobs) - int(state.ctl[w.DONE])

    def over(self, state: State) -> int | None:
        return int(state.ctl[w.LAST_END]) if len(state.jobs) else None

    def check(self, state: State, pending: Rows, parcels: Rows) -> None:
        if len(state.jobs):
            audit.check(state, self.nodes)
