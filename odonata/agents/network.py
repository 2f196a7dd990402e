"""A network with its traffic and its jobs, as a model for the engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.agents import ejection, flows, tracing
from odonata.agents import layout as w
from odonata.agents.commands import events_of, power_events
from odonata.agents.dealing import dealing, to_global, to_local
from odonata.agents.decided import Start
from odonata.agents.description import SEEDED, NetworkDescription, rate_at, rate_of
from odonata.agents.dispatch import Routers, handler, receiver
from odonata.agents.fingerprint import assemble, fingerprint
from odonata.agents.following import Dealings
from odonata.agents.layout import State
from odonata.agents.link import GRANTS
from odonata.agents.metrics import (
    COUNTERS,
    LOGS,
    POWERED_ENDS,
    counted,
    counted_inputs,
    tables,
)
from odonata.agents.node import first_messages
from odonata.agents.partners import FIXED
from odonata.agents.patterns import REGISTER as PATTERNS
from odonata.agents.ports import crossbars, port_lines
from odonata.agents.power import arrays as power_arrays
from odonata.agents.power import no_power, supply
from odonata.agents.power import outcome as power_outcome
from odonata.agents.reports import no_telemetry, reports_of_an_event
from odonata.agents.router import Way
from odonata.agents.scheduling import Reported, Scheduler
from odonata.agents.seen import SEEN
from odonata.agents.seen import rows_of as seen_rows
from odonata.agents.switch import CROSSINGS
from odonata.agents.task import MOST_TASKS
from odonata.agents.traffic import REGISTER as TRAFFIC_PATTERNS
from odonata.agents.workload import no_jobs
from odonata.jobs.board import (
    DONE,
    JOB_BYTES,
    JOB_ENERGY_J,
    OVER,
    STATUS,
    Board,
    Ledger,
)
from odonata.jobs.market import SERIES, market_logs
from odonata.jobs.metering import CAPS, POWER, learned
from pdes.dealing import Dealing, Deals
from pdes.events import FOREVER, KEY, KIND_SHIFT, TIME, WORDS, A, Rows, no_rows, pack
from pdes.log import Appended, Log
from pdes.model import Audits, Carries, Decides, Decision, Ends, Lookahead, Model, Streams, Tally
from pdes.partition import Partition
from pdes.stream import Table
from policies.register import PLUGINS, REGISTERS
from policies.routing import ROUTINGS
from policies.views import Counters
from topology.dragonfly import Dragonfly


@dataclass(frozen=True)
class Network(NetworkDescription, Model, Carries, Decides, Deals, Streams, Ends, Audits):
    """A network as a model for the engine; `NetworkDescription` describes the fields."""

    name = "dragonfly"
    bearers, receipts = (w.ARRIVE, w.REACH, w.DELIVER, w.PLACE), (w.CREDIT_DUE,)
    decisions, notices = (w.DECIDE,), (w.PLACE, w.METERS_OFF)
    kinds = w.KINDS
    aside = ("dedicated_scheduler",)

    @property
    def parcel(self) -> int:  # type: ignore[override]
        return self.packet_words

    @property
    def receive(self) -> Any:  # type: ignore[override]
        return receiver(self.inside)

    @property
    def perpetual(self) -> tuple[int, ...]:  # type: ignore[override]
        return (w.SAMPLE, w.TELL) if self.telemetry else ()

    @property
    def takes(self) -> int:  # type: ignore[override]
        """Returns enough for what one event grants: where there are crossbars or ejection buffers,
        a packet may take three parcels, for the room in as many buffers."""
        if self.inside.plain:
            return GRANTS + 1
        return 3 * max(GRANTS, CROSSINGS) + 1

    @property
    def inside(self) -> Routers:
        """Returns what of routers and nodes kernels are compiled for."""
        how = ejection.ALWAYS
        if self.ejection is not None:
            how = ejection.HALF if self.duplex == "half" else ejection.FULL
        way = Way(self.detours, self.sight == "output")
        return Routers(
            w.CREDITS.index(self.credits), self.switched, self.buffered, way, how,
            self.injection_channels > 1, self.trace_packets is not None,
        )  # fmt: skip

    @property
    def fanout(self) -> int:  # type: ignore[override]
        """Returns enough for what one event grants and, where nodes have caps, for the ends of all
        tasks of a node to be predicted anew."""
        grants = 2 * GRANTS if self.inside.plain else 5 * max(GRANTS, CROSSINGS)
        reports = reports_of_an_event(self.machine) if self.telemetry else 0
        return max(grants + 2 + (MOST_TASKS if self.power else 0), reports)

    def parameters(self) -> dict[str, Any]:
        found = asdict(self)
        del found["power"], found["market"]
        for name in ("trace_packets", *(f"{what}_seed" for what in SEEDED)):
            if found[name] is None:  # as in runs from before there was such a thing
                del found[name]
        if self.power:
            found |= {"power": repr(replace(self.power, cap=None)),
                      "cap": repr(self.power.checked_cap(self.machine.n_nodes, 1))}  # fmt: skip
        if self.market and self.exchange:
            settings = {one.name: getattr(self.market, one.name) for one in fields(self.market)
                        if one.name not in SERIES}  # fmt: skip
            found |= {"market": repr(settings), "market_series": repr(self.exchange.trade.series)}
        parts = {"machine": found.pop("machine"), "workload": found.pop("workload") or {}}
        parts |= {f"traffic.{n}": part for n, part in enumerate(found.pop("traffic"))}
        for part, of_part in parts.items():
            found |= {f"{part}.{name}": value for name, value in of_part.items()}
        if self.workload:
            found["workload.jobs"] = json.dumps(found["workload.jobs"])
        if plugins := self.plugins():
            found["plugins"] = json.dumps(plugins)
        return found

    def plugins(self) -> dict[str, str]:
        """Returns what of it comes from plug-ins by file, each with a hash of the file: a run is
        not resumed with another version of a policy."""
        names = [("routing", self.routing), *(("traffic", t.pattern) for t in self.traffic)]
        if self.workload:
            names += [("allocation", self.workload.allocation),
                      ("scheduling", self.workload.order),
                      *(("pattern", name) for name in self.workload.own)]  # fmt: skip
        if self.power:
            names.append(("power", self.power.policy))
        if self.market:
            names.append(("bidding", self.market.bidding))
        files = {str(path): plugin.sha256 for path, plugin in PLUGINS.items()}
        entries = [(kind, name, REGISTERS[kind].get(name)) for kind, name in names]
        return {f"{kind} {name}": files[entry.plugin][:16] for kind, name, entry in entries
                if entry is not None and entry.plugin in files}  # fmt: skip

    @property
    def handle(self) -> Any:  # type: ignore[override]
        own, jobs = self._own_traffic, self.workload
        return handler(
            ROUTINGS.named(self.routing),
            tuple(TRAFFIC_PATTERNS.named(name).destination for name in own)
            if self.traffic
            else None,
            tuple(PATTERNS.named(name).peer for name in jobs.own) if jobs else None,
            self.power is not None,
            self.inside,
            self.telemetry is not None,
        )

    @property
    def _own_traffic(self) -> tuple[str, ...]:
        """Returns the traffic patterns that plug-ins bring, in the order in which they are
        numbered."""
        names = dict.fromkeys(traffic.pattern for traffic in self.traffic)
        return tuple(name for name in names if TRAFFIC_PATTERNS.named(name).destination)

    @property
    def variant(self) -> str:  # type: ignore[override]
        parts = ["traffic"] * bool(self.traffic) + ["jobs"] * (self.workload is not None)
        how = " with power" * (self.power is not None) + " through crossbars" * self.switched
        how += " to nodes that push back" * (self.ejection is not None)
        how += " with telemetry" * (self.telemetry is not None)
        how += ", traced" * (self.trace_packets is not None)
        return f"{self.routing} routing of {' and '.join(parts)}{how}"

    @property
    def alone(self) -> bool:  # type: ignore[override]
        return self.dedicated_scheduler and self.workload is not None

    # -- for the engine

    def units(self) -> Rows:
        return np.arange(self.machine.groups + self.offset + 1) << self.agent_bits

    def weights(self) -> npt.NDArray[np.float64]:
        return np.concatenate((np.zeros(self.offset), np.ones(self.machine.groups)))

    def lookahead(self, partition: Partition) -> Lookahead:
        """Returns the least time in ps between cause and effect on two ranks. A packet takes the
        link's latency and the far router's pipeline; a credit the latency, after what passes
        until room is given back; a command of the scheduler its launch latency, and a report to it
        its delay."""
        m, last = self.machine, int(partition.unit_starts[1]) - 1 - self.offset
        packet = Lookahead(
            m.global_.latency_ps + min(self.delay_ps, self.shortest_ps + self.credit_delay_ps),
            f"a packet, or a credit, over the global cable from group {max(0, last)} to group "
            f"{max(0, last) + 1}",
        )
        if self.workload is None:
            return packet
        command = Lookahead(self.workload.launch_ps, "a command of the scheduler's (launch)")
        if self.telemetry:
            delay = self.telemetry.delay_ps
            command = min(command, Lookahead(delay, "a report to the scheduler (telemetry_delay)"))
        return command if self.alone and partition.ranks == 2 else min(packet, command)

    def state(self, first: int, last: int) -> State:
        m = self.machine
        g0, g1 = self.groups_of(first, last)
        how = ROUTINGS.named(self.routing)
        n = (g1 - g0) * m.routers * m.nodes
        ports = port_lines(self, g0, g1)
        slow = np.zeros((len(ports), self.channels, len(w.SLOW)), np.int64)
        slow[:, :, w.WAKE] = FOREVER
        bias = how.bias * self.packet_bytes if self.bias is None else self.bias
        gates = m.gates()[g0:g1]
        until = FOREVER if self.measure_ps is None else self.warmup_ps + self.measure_ps
        jobs = no_jobs() | no_power() | no_telemetry() | Dealings.nowhere()._asdict()
        if self.workload:
            scheduler = self.scheduler if self.has_scheduler(first) else None
            seed = self.seed_of("traffic")
            jobs = self.workload.arrays(seed, n, len(self.traffic), scheduler)
            jobs |= self._power_arrays(g0, g1, scheduler)
            jobs |= (
                self.exchange.fresh(scheduler)
                if self.exchange and scheduler
                else Dealings.nowhere()
            )._asdict()
            jobs |= (self.telemetry.arrays(m, scheduler is not None) if self.telemetry
                     else no_telemetry())  # fmt: skip
        state = State(
            shape=np.array(
                [m.nodes, m.routers, m.groups, m.radix, self.agent_bits, g0,
                 m.routers * (m.radix + m.nodes), m.copies, *self.bases,
                 int(self.channels > 2), -1 if self.vcs == "hops" else 0, w.VIAS.index(self.via),
                 bias, self.offset, w.ARBITERS.index(self.arbiter), self.output_buffer or 0,
                 self.injection_channels]
            ),
            gates=((gates // max(1, m.global_links)) << w.GATE_BITS)
            | gates % max(1, m.global_links),
            latencies=np.array(
                [link.latency_ps + self.credit_delay_ps
                 for link in (m.terminal, m.local, m.global_)]
            ),
            rates=np.array(
                [*(rate_of(link) for link in (m.terminal, m.local, m.global_)),
                 self.crossbar_rate, rate_at(self.ejection or m.terminal.bandwidth)]
            ),
            threshold=np.array([how.threshold if self.threshold is None else self.threshold]),
            delay=np.array([self.delay_ps, self.allocation_ps]),
            largest=np.array([self.packet_bytes]),
            flit=np.array([self.flit_bytes - 1]),
            whole=np.array([self.first_bytes]),
            measured=np.array([self.warmup_ps, until]),
            **self._sources(g0, g1),
            ports=ports,
            slow=slow,
            **crossbars(self, g0, g1, len(ports)),
            nodes=np.zeros((n, len(w.OF_NODE)), np.int64),
            history=np.zeros(n, np.uint64),
            histogram=np.zeros((g1 - g0, w.BINS), np.int64),
            received=np.zeros((g1 - g0, m.groups), np.int64),
            **flows.arrays(g1 - g0),
            **jobs,
        )  # fmt: skip
        return state if self.trace_packets is None else tracing.traced(state, self.trace_packets)

    def _power_arrays(self, g0: int, g1: int, scheduler: Scheduler | None) -> dict[str, Any]:
        """Returns the arrays of `State` that are about power."""
        if self.power is None:
            return no_power()
        assert self.workload is not None
        per_group = self.machine.routers * self.machine.nodes
        return power_arrays(
            self.power, self.draws, np.arange(g0 * per_group, g1 * per_group),
            self.machine.n_nodes, self.workload.tasks_per_node, self.seed,
            scheduler.fresh_ledger() if scheduler else Ledger.fresh(0, 0),
        )  # fmt: skip

    def _sources(self, g0: int, g1: int) -> dict[str, Any]:
        """Returns the arrays of `State` that are about open-loop traffic."""
        m, per_group = self.machine, self.machine.routers * self.machine.nodes
        seed = self.seed_of("traffic")
        none = [[seed, 0, m.n_nodes, per_group, *[0] * (len(w.TRAFFIC) - 4)]]
        nodes, sources = (g1 - g0) * per_group, len(self.traffic)
        partners = [t.partners(m, seed, g0 * per_group, g1 * per_group) for t in self.traffic]
        words = [t.words(m, seed, self._own_traffic) for t in self.traffic]
        streams = sources + self.offset
        return {
            "traffic": np.array(words or none),
            "pace": np.array([t.pace(m) for t in self.traffic] or [0.0]),
            "partners": np.array(partners, np.int64).reshape(sources, nodes),
            "drawn": np.zeros((streams if streams > 1 else 0, nodes), np.int64),
        }

    def start(self, state: State, first: int, last: int) -> Rows:
        rows = [self._arrivals()] if self.has_scheduler(first) else [no_rows()]
        g0, g1 = self.groups_of(first, last)
        if self.power:
            rows.append(_first(w.METER, int(state.metering[w.INTERVAL]), self._node_agents(g0, g1)))
        if self.telemetry:
            rows.append(_first(w.SAMPLE, self.telemetry.interval_ps, self._router_agents(g0, g1)))
        return np.concatenate(rows + [self._messages(state, s, g0, g1)
                                      for s in range(len(self.traffic))])  # fmt: skip

    def _node_agents(self, g0: int, g1: int) -> Rows:
        """Returns the agents of all nodes of these groups."""
        m = self.machine
        groups = (np.arange(g0, g1) + self.offset)[:, None] << self.agent_bits
        return (groups + m.routers + np.arange(m.routers * m.nodes)).reshape(-1)

    def _router_agents(self, g0: int, g1: int) -> Rows:
        """Returns the agents of all routers of these groups."""
        groups = (np.arange(g0, g1) + self.offset)[:, None] << self.agent_bits
        return (groups + np.arange(self.machine.routers)).reshape(-1)

    def _arrivals(self) -> Rows:
        """Returns the events at which jobs arrive, or the cap of the machine changes."""
        power = self.scheduler.power
        changes = power.cap.changes if power and power.cap else ()
        times = np.unique([*self.scheduler.submitted.tolist(), *changes])
        rows = np.zeros((len(times), WORDS), np.int64)
        rows[:, TIME], rows[:, KEY] = times, pack(w.DECIDE, w.SCHEDULER, 0)
        if self.market is None:
            return rows
        first = _first(w.DECIDE, 0, np.array([w.SCHEDULER]))
        first[:, A] = w.HOUR
        return np.concatenate([rows, first])

    def _messages(self, state: State, source: int, g0: int, g1: int) -> Rows:
        """Returns the events of every node's first message of one traffic."""
        m, traffic = self.machine, self.traffic[source]
        keys = pack(w.GENERATE, self._node_agents(g0, g1), source)
        rows = np.zeros((len(keys), WORDS), np.int64)
        first_node = g0 * m.routers * m.nodes
        first_messages(state, source, rows, keys, first_node)
        sends = np.full(len(rows), traffic.messages != 0)
        sends &= rows[:, TIME] < state.traffic[source, w.STOP]
        if traffic.pattern in FIXED:
            sends &= state.partners[source] != np.arange(first_node, first_node + len(rows))
        return rows[sends]  # type: ignore[no-any-return]

    @cached_property
    def scheduler(self) -> Scheduler:
        """Returns the scheduler. The network must have jobs."""
        assert self.workload is not None
        power = supply(self.power, self.machine) if self.power else None
        return self.workload.scheduler(
            self.machine, self.seed_of("placement"), power, self.exchange
        )

    def decide(self, state: State, time: int, key: int, a: int, b: int) -> Decision:
        board, reported = Board.of(state), cache(partial(self._reported, state, time))
        ledger = None if self.power is None else Ledger.of(state)
        serial = b if a == w.AGAIN else 0
        dealings = None if self.market is None else Dealings.of(state)
        decided = self.scheduler.decide(board, time, reported, ledger, serial, dealings,
                                        a == w.HOUR)  # fmt: skip
        events = [events_of(self, state, decided.starts)]
        if self.power is not None:
            events.append(power_events(self, state, time, decided))
        rows = self._rows(state, decided.starts, decided.ended)
        seen = self._seen(reported, time, decided.starts)
        return Decision(np.concatenate(events), [*rows, *seen, *decided.log])

    def rehearse(self, state: State) -> None:
        if self.exchange is not None and len(state.board):
            self.exchange.rehearse(self.scheduler)

    def _reported(self, state: State, time: int) -> Counters | None:
        """Returns what the network has reported to the scheduler."""
        if self.telemetry is None:
            return None
        return self.telemetry.seen(state.heard, self.machine, time)

    def _seen(self, reported: Reported, time: int, starts: Sequence[Start]) -> Appended:
        """Returns the rows of logs about what the scheduler saw when it placed these jobs; of those
        whose users named their nodes there are none."""
        placed = [start for start in starts if not self.jobs[start.job].on]
        if self.telemetry is None or not placed:
            return ()
        return seen_rows(self.telemetry, reported(), time, placed)

    def _rows(
        self, state: State, starts: Sequence[Start], ended: Sequence[int]
    ) -> list[tuple[str, Sequence[Any]]]:
        """Returns the rows of logs about jobs that start and that have ended."""
        rows: list[tuple[str, Sequence[Any]]] = [
            ("ends", (number, state.board[number, OVER], *self._taken(state, number)))
            for number in ended
        ]
        return rows + [("starts", (start.job, start.time, start.labels)) for start in starts]

    def _taken(self, state: State, number: int) -> tuple[float, ...]:
        """Returns the energy that a job took and the bytes that it received, if that is known."""
        if self.power is None:
            return ()
        account = state.accounts[number]
        return float(account[JOB_ENERGY_J]), int(account[JOB_BYTES])

    def logs(self) -> Mapping[str, Log]:
        kept = {} if self.trace_packets is None else tracing.LOGS
        if self.workload is None:
            return kept
        kept = kept | LOGS | (SEEN if self.telemetry else {})
        if self.power is None:
            return kept
        assert self.scheduler.power is not None
        figures = self.scheduler.power.policy.figures
        more = {"learned": learned(figures)} if figures else {}
        more |= market_logs(self.market) if self.market else {}
        return kept | {"ends": POWERED_ENDS, "power": POWER, "caps": CAPS} | more

    @property
    def noted_every(self) -> int | None:  # type: ignore[override]
        return None if self.trace_packets is None else tracing.NOTED_EVERY

    def noted(self, state: Any) -> Appended:
        return () if self.trace_packets is None else tracing.notes(state)

    def fingerprint(self, state: State) -> Any:
        return fingerprint(self, state)

    def assemble(self, parts: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        return assemble(self, parts)

    def dealing(self) -> Dealing:
        return dealing(self)

    def to_global(
        self, state: State, pending: Rows, parcels: Rows, first: int, last: int
    ) -> None:  # fmt: skip
        to_global(self, state, pending, parcels, first, last)

    def to_local(
        self, state: State, pending: Rows, parcels: Rows, first: int, last: int
    ) -> None:  # fmt: skip
        to_local(self, state, pending, parcels, first, last)

    def outcome(self, state: State, pending: Rows, parcels: Rows, time: int) -> dict[str, Any]:
        from odonata.agents.audit import findings

        counters, busy = counted(state, time, self.channels)
        m, groups = self.machine, len(state.histogram)
        ports = m.routers * (m.radix + m.nodes)
        return {
            "counters": np.moveaxis(counters, 0, 2).reshape(
                groups, ports, self.channels, len(COUNTERS)
            ),
            "busy_ps": busy.reshape(groups, ports),
            **(
                {"inputs": _by_router(counted_inputs(state, time), groups, m)}
                if self.switched
                else {}
            ),
            "nodes": state.nodes,
            "histogram": state.histogram,
            "flows": flows.by_level(state.flows, state.span_bits)[None],
            "board": state.board,
            "labels": state.labels,
            "pending": np.array([(~np.isin(pending[:, KEY] >> KIND_SHIFT, self.perpetual)).sum()]),
            **(
                {
                    "by_job": state.by_job[None],
                    "spent": state.spent[None],
                    "job_latencies": state.job_latencies[None],
                }
                if self.workload
                else {}
            ),
            **(power_outcome(state) if self.power else {}),
            **findings(self, state, pending, parcels),
        }

    def tables(self, interval: int) -> Mapping[str, Table]:
        return tables(self, interval)

    def tally(self, state: State) -> Tally | None:
        if self.workload is None or not len(state.board):
            return None
        every = int(self.workload.waited_for.sum())
        return Tally(every - (self._unfinished(state) >> 40), every, "jobs")

    def left(self, state: State, pending: Callable[[], Rows]) -> int:
        """Returns the bytes on their way, as far as this rank knows, plus the jobs that are not
        done and the messages yet to be generated: 0 when the run is complete, which traffic that
        never ends never is."""
        if not self.ends:
            return 1
        generated, delivered = (
            state.nodes[:, [w.GENERATED_BYTES, w.DELIVERED_BYTES]].sum(axis=0).tolist()
        )
        to_come = 0
        if self.traffic:
            to_come = int((pending()[:, KEY] >> KIND_SHIFT == w.GENERATE).sum())
        return int(generated - delivered) + self._unfinished(state) + (to_come << 40)

    def goal(self, state: State, pending: Callable[[], Rows]) -> int:
        """Returns what `left` does; but a run without an end whose traffic has none either ends
        with its jobs."""
        if self.workload and not self.ends:
            return self._unfinished(state)
        return self.left(state, pending)

    def _unfinished(self, state: State) -> int:
        """Returns the jobs that are not done, where the scheduler is, each as more than any number
        of bytes."""
        left = state.board[:, STATUS] != DONE
        if len(left) and self.workload:
            left &= self.workload.waited_for
        return int(left.sum()) << 40

    watches = True

    def suspects(self, state: State, time: int) -> int:
        from odonata.agents.audit import long_waits

        return long_waits(state, time)

    def evidence(self, state: State, pending: Rows, parcels: Rows) -> dict[str, Any]:
        from odonata.agents.audit import findings

        return findings(self, state, pending, parcels)

    def stuck(self, evidence: Sequence[Any]) -> bool:
        from odonata.agents.audit import deadlock

        blocked, waits = (np.concatenate([part[name] for part in evidence])
                          for name in ("blocked", "waits"))  # fmt: skip
        return bool(deadlock(blocked, waits))

    def over(self, state: State) -> int:
        """Returns when the last packet was delivered or the last task ended, in ps."""
        last = state.nodes[:, w.LAST_IN].max(initial=0)
        return int(max(last, state.board[:, OVER].max(initial=0)))

    def check(self, state: State, pending: Rows, parcels: Rows) -> None:
        from odonata.agents.audit import check

        check(self, state, pending, parcels)


def _first(kind: int, time: int, agents: Rows) -> Rows:
    """Returns the events at which these agents do something for the first time."""
    rows = np.zeros((len(agents), WORDS), np.int64)
    rows[:, TIME], rows[:, KEY] = time, pack(kind, agents, 0)
    return rows


def _by_router(counters: Rows, groups: int, m: Dragonfly) -> Rows:
    """Returns what port rows have by group and port of its routers, without its nodes' ports."""
    found = counters.reshape(groups, m.routers * (m.radix + m.nodes), *counters.shape[1:])
    return found[:, : m.routers * m.radix]  # type: ignore[no-any-return]
