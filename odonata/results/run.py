"""The results of a run of packets: its metrics as xarray objects (`odonata.open("out")`)."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.agents.computing import cap_stretches
from odonata.agents.layout import BIN_BITS, BIN_ONE, BINS
from odonata.agents.metrics import SPENT
from odonata.agents.network import Network
from odonata.experiment.experiment import Experiment
from odonata.jobs.board import BEGAN, DONE, JOB, OVER, QUEUED, RUNNING, STATUS, Words
from odonata.jobs.metering import PowerRecord
from odonata.jobs.record import JobRecord, records
from odonata.results.alone import measured, slowdowns
from odonata.results.job_network import FIGURES, JobNetwork, facts, job_network
from odonata.results.market import Market
from odonata.results.opened import Opened
from odonata.results.packet_market import market_of
from odonata.results.power_measures import PowerMeasures, power_measures
from pdes.errors import Refused
from topology import Dragonfly

if TYPE_CHECKING:
    import xarray as xr

    from odonata.results.operator_counters import Counters
    from odonata.results.packet_trace import PacketTrace
    from odonata.results.seen import Seen


class Run(Opened):
    """An opened run of packets. Times are picoseconds."""

    experiment: Experiment

    @property
    def network(self) -> Network:
        return self.experiment.model()

    @property
    def machine(self) -> Dragonfly:
        return self.network.machine

    # -- what was measured

    @cached_property
    def ports(self) -> xr.Dataset:
        """Returns the counters of every port of every router, summed over its virtual channels."""
        return self._table("ports", self._of_ports())

    @cached_property
    def channels(self) -> xr.Dataset:
        """Returns the same by virtual channel, where that was asked for (`metrics.channels`)."""
        return self._table("channels", self._of_ports())

    @cached_property
    def inputs(self) -> xr.Dataset:
        """Returns what the first packets at every input port waited for, where routers have
        crossbars and ports were recorded."""
        return self._table("inputs", self._of_ports())

    @cached_property
    def nodes(self) -> xr.Dataset:
        m = self.machine
        router = np.arange(m.n_nodes) // m.nodes
        return self._table("nodes", {
            "node": ("node", np.arange(m.n_nodes)),
            "router": ("node", router),
            "group": ("node", router // m.routers),
        })  # fmt: skip

    @cached_property
    def groups(self) -> xr.Dataset:
        edges = ((np.arange(BINS) + BIN_ONE) << BIN_BITS).view(np.float64)
        groups = np.arange(self.machine.groups)
        return self._table("groups", {
            "group": ("group", groups),
            "source_group": ("source_group", groups),
            "from_ps": ("bin", edges, {"unit": "ps", "about": "where a bin of latencies begins"}),
        })  # fmt: skip

    @cached_property
    def jobs(self) -> xr.Dataset:
        """Returns every job, as far as is known; times that are not are -1, and energies, where
        power was simulated, are NaN. The nodes of each are in `job_records`. What was asked for is
        taken from the experiment, since older files have no column for all of it."""
        from xarray import Dataset

        board, _ = self._board
        start, end = board[:, BEGAN], board[:, OVER]
        text = {name: np.char.decode(self.read(f"jobs/{name}").astype("S"), "utf-8")
                for name in ("name", "pattern")}  # fmt: skip
        jobs = self.network.jobs
        text |= {name: np.array([getattr(job, name) for job in jobs], str)
                 for name in ("user", "project", "application")}  # fmt: skip
        requested = [-1 if job.requested_ps is None else job.requested_ps for job in jobs]
        arrival = self.read("jobs/arrival_ps")
        begun, over = start >= 0, end >= 0
        columns = {
            **text, "nodes": self.read("jobs/nodes"),
            "requested_ps": np.array(requested, np.int64), "arrival_ps": arrival,
            "start_ps": start, "end_ps": end, "waiting_ps": np.where(begun, start - arrival, -1),
            "run_time_ps": np.where(over, end - start, -1),
        }  # fmt: skip
        if self._taken is not None:
            energy_j, received = self._taken.T
            per_byte = energy_j / np.where(received > 0, received, np.nan)
            columns |= {"energy_j": energy_j, "received_bytes": received, "j_per_byte": per_byte}
        columns |= self._network_columns()
        units = dict.fromkeys((name for name in columns if name.endswith("_ps")), "ps")
        units |= {"energy_j": "J", "received_bytes": "B", "j_per_byte": "J/B", "bytes": "B"}
        found = {name: ("job", values, {"unit": units[name]} if name in units else {})
                 for name, values in columns.items()}  # fmt: skip
        return Dataset(found, {"job": np.arange(len(start))})

    @cached_property
    def stages(self) -> xr.Dataset:
        """Returns every stage of every job, and what its tasks did with their time, summed over
        tasks; without the times while they are not known."""
        from xarray import Dataset

        columns: dict[str, Any] = {"job": self.read("stages/job")}
        for name in ("name", "pattern"):
            columns[name] = np.char.decode(self.read(f"stages/{name}").astype("S"), "utf-8")
        known = bool(self.job_network)
        columns |= {name: self.read(f"stages/{name}") for name in SPENT if known}
        units = {name: {"unit": "ps", "about": words} for name, (_, words) in SPENT.items()}
        return Dataset({name: ("stage", values, units.get(name, {}))
                        for name, values in columns.items()})  # fmt: skip

    def _network_columns(self) -> dict[str, Any]:
        """Returns what is known of the packets of jobs, and of their slowdowns."""
        found = {
            "alone_ps": np.array(self.alone_ps or [-1] * len(self.network.jobs), np.int64),
            "slowdown": np.array(slowdowns(self.job_records, self.alone_ps), float),
        }
        if jobs := self.job_network:
            figures = [facts(job) for job in jobs]
            for name in FIGURES:
                counts = name in ("packets", "bytes", "non_minimal_packets")
                kind = np.int64 if counts else np.float64
                found[name] = np.array([it[name] for it in figures], kind)
            found["stall_to_flit"] = np.array(self.job_stalls, float)
        return found

    @cached_property
    def job_stalls(self) -> list[float]:
        """Returns the stall-to-flit ratio of each job's routers while it ran, as `job_counters`
        has it; NaN where ports were not recorded, where the job has not run for an interval, and
        where there are too many samples to be read at once."""
        from odonata.results.derived import MOST_TILE_SAMPLES, recorded, tile_samples
        from odonata.results.operator_counters import job_counters

        if not recorded(self, "ports") or not 0 < tile_samples(self) <= MOST_TILE_SAMPLES:
            return [math.nan] * len(self.network.jobs)
        return [it.stall_to_flit for it in job_counters(self, counters=self.counters)]

    @cached_property
    def counters(self) -> Counters:
        """Returns its counters as an operator reads them (`counters_of`), read once."""
        from odonata.results.operator_counters import counters_of

        return counters_of(self)

    @cached_property
    def job_network(self) -> list[JobNetwork]:
        """Returns what the network did for each job; empty while that is not known."""
        return job_network(self)

    @cached_property
    def alone_ps(self) -> list[int] | None:
        """Returns how long each job takes alone, in ps, -1 where that was not measured; None where
        nothing was (`odonata slowdown`)."""
        return measured(self.path, self.attributes["id"], len(self.network.jobs))

    @cached_property
    def job_records(self) -> list[JobRecord]:
        """Returns a record per job, with the labels of its nodes."""
        return records(self.network.jobs, *self._board, self._taken, self._stretches)

    @cached_property
    def _stretches(self) -> list[float]:
        """Returns by how much caps stretched what each job computes; right of those that are over.
        Empty where that is not known: while a run goes on, and without power."""
        network, known = self.network, "stages/computed_ps" in self.file
        if self._taken is None or not known or self.state in ("running", "died", "failed"):
            return []
        spent = np.stack([self.read(f"stages/{name}") for name in SPENT], axis=-1)
        if network.workload is None or len(spent) != sum(len(job.parts) for job in network.jobs):
            return []
        return cap_stretches(network.workload, network.seed, spent)

    @cached_property
    def seen(self) -> list[Seen | None]:
        """Returns by job what the scheduler saw of the network when it started it; None where
        nothing had been reported, or the job has not been started. Empty where the scheduler is
        told nothing of the network."""
        from odonata.results.seen import LOGS, seen_by_job

        if "seen" not in self.file:
            return []
        return seen_by_job(self, {name: self._log(name) for name in LOGS})

    @cached_property
    def packet_trace(self) -> PacketTrace:
        """Returns the paths of the packets that were traced (`metrics.trace_packets`)."""
        from odonata.results.packet_trace import packet_trace

        return packet_trace(self)

    @cached_property
    def power(self) -> PowerRecord | None:
        """Returns what was measured of power, None where it was not simulated. What nodes took that
        is not of a job which has ended counts as idle."""
        if self.experiment.power is None or not len(self.times):
            return None
        logs = {name: self._log(name) for name in ("power", "caps")}
        figures = self._log("learned") if "learned" in self.file else {}
        figures.pop("time_ps", None)
        latency = self.experiment.scheduler.launch_ps  # until the scheduler heard of a reading
        readings, caps = logs["power"], logs["caps"]
        by_job = np.nan_to_num(self._taken[:, 0])
        total = math.fsum(self.read("nodes/energy_j", len(self.times) - 1).tolist())
        return PowerRecord(
            readings["time_ps"] - latency, readings["power_w"], readings["cap_w"],
            readings["cause"], int(self.times[-1]), by_job, total - math.fsum(by_job), 0.0, 0.0,
            (caps["time_ps"], caps["job"], caps["cap_w"]), (np.zeros(0, np.int64), np.zeros(0)),
            figures, 1e-12,
            np.array([it.cap_stretch for it in self.job_records], np.float64),
        )  # fmt: skip

    @cached_property
    def power_measures(self) -> PowerMeasures | None:
        """Returns the measures of power, None where it was not simulated."""
        return None if self.power is None else power_measures(self.power, None)

    @cached_property
    def market(self) -> Market | None:
        """Returns the hours of a market, None where the machine took part in none."""
        return market_of(self)

    @cached_property
    def _taken(self) -> Any:
        """Returns the energy and the bytes of every job, NaN where that is not known yet; None
        where no power was simulated."""
        if "ends" not in self.file or "energy_j" not in self.file["ends"]:
            return None
        ends, taken = self._log("ends"), np.full((len(self.network.jobs), 2), np.nan)
        taken[ends["job"]] = np.column_stack((ends["energy_j"], ends["received_bytes"]))
        return taken

    @cached_property
    def _board(self) -> tuple[Words, Words]:
        """Returns the scheduler's board (`odonata.jobs.board`), from the logs of starts and ends
        or, for an older run, from samples; -1 for what is not known."""
        if not self.experiment.jobs:
            raise Refused(f"{self.path}: ran no jobs ([[jobs]])")
        nodes = np.array([job.nodes for job in self.network.jobs])
        board = np.full((len(nodes), len(JOB)), -1, np.int64)
        labels = np.full(nodes.sum(), -1, np.int64)
        if "starts" in self.file:
            starts, ends = self._log("starts"), self._log("ends")
            job = starts["job"]
            board[job, BEGAN], board[ends["job"], OVER] = starts["start_ps"], ends["end_ps"]
            first = np.cumsum(nodes) - nodes
            places = [np.arange(first[n], first[n] + nodes[n]) for n in job.tolist()]
            if places:
                where = np.concatenate(places)
                labels[where] = self.read("starts/labels", slice(len(where)))
        elif len(self.times):
            last = len(self.times) - 1
            board[:, BEGAN] = self.read("jobs/start_ps", last)
            board[:, OVER] = self.read("jobs/end_ps", last)
            labels[:] = self.read("jobs/labels", last)
        board[:, STATUS] = np.where(board[:, BEGAN] >= 0, RUNNING, QUEUED)
        board[board[:, OVER] >= 0, STATUS] = DONE
        return board, labels

    def _of_ports(self) -> dict[str, Any]:
        m = self.machine
        router, port = np.arange(m.n_routers), np.arange(m.radix)
        kind = np.where(port < m.nodes, "node", np.where(port < m.nodes + m.routers - 1,
                                                         "local", "global"))  # fmt: skip
        ends = np.full((m.n_routers, m.radix), -1)
        ends[:, m.nodes :] = m.ends()
        return {
            "router": ("router", router),
            "port": ("port", port),
            "group": ("router", router // m.routers),
            "kind": ("port", kind),
            "to_router": (("router", "port"), np.where(ends >= 0, ends // m.radix, -1)),
            "to_port": (("router", "port"), np.where(ends >= 0, ends % m.radix, -1)),
            "lit": (("router", "port"), (ends >= 0) | (port < m.nodes)),
        }
