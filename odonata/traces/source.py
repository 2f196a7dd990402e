"""Where the jobs of a run come from: a file, or a model that makes them; and what is changed."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.traces.clock import clock_given, parse_epoch, zone_of
from odonata.traces.mix import LOAD, MIXES, MOST_BURST, mix, table_for
from odonata.traces.trace import LEAST_JOB_BYTES
from odonata.traces.types import Types
from pdes.arrays import host_memory
from pdes.errors import Findings, Refused
from policies.register import check
from topology.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odonata.provisioning.table import Table
    from odonata.traces.trace import Trace

FORMATS = ("swf", "batsim", "sacct", "karelian")
"""The formats of `odonata.traces.reading`, which is imported when a file is read: this module is
part of every experiment, those of packets too."""
MOST_NODES = 10**9
MODELS = ("poisson", "lublin", "mira", "rmap-small", "rmap-large", "rmap-random", "mix")
REQUESTS = ("recorded", "exact")
BEGINS = ("recorded", "first")
MOST_JOBS, MOST_LOAD, MOST_SHARE = 10**9, 20, 1e9
USUAL_JOBS = 10_000
"""Jobs that a model makes where nobody says how many; Mira's year has its own number, and so have
the traces of RMAP."""
HOUR_PS = 3600 * 10**12


@dataclass(frozen=True)
class Source:
    """The section [trace]: a file, or a model by its name, and changes to what it gives."""

    file: str = setting(
        "", "text", "A file of jobs: SWF (plain or gzip), a Batsim workload, sacct --parsable2 or "
        "the Karelian CSV; relative to this file.",
    )  # fmt: skip
    model: str | None = setting(
        None, "word", "A model that makes jobs, in place of a file.", words=MODELS, none="none"
    )
    format: str | None = setting(
        None, "word", "The format of the file.", words=FORMATS, none="auto"
    )
    jobs: int | None = setting(
        None, "whole", "How many jobs the model makes.", least=1, most=MOST_JOBS, none="auto"
    )
    nodes: int | None = setting(
        None, "whole", "Nodes of the machine that runs them; larger jobs are dropped.", least=1,
        most=MOST_NODES, none="auto",
    )  # fmt: skip
    first: int | None = setting(
        None, "whole", "Only so many jobs, from the beginning.", least=1, most=MOST_JOBS, none="all"
    )
    load: float | None = setting(
        None, "number", "The offered load: gaps between submissions are rescaled to it.", above=0,
        most=MOST_LOAD, none="as it is",
    )  # fmt: skip
    resample_ps: int | None = setting(
        None, "time", "The weeks of the file drawn anew, in blocks of this length, as 7 d: another "
        "trace with every seed, so that seeds are repetitions.", least=HOUR_PS, none="none",
        accepted="at least 1 h",
    )  # fmt: skip
    scale_sizes: bool = setting(
        False, "flag", "Scale sizes of jobs from the trace's own machine to this one's nodes."
    )
    requests: str = setting(
        "recorded", "word", "Requested times: as recorded (where none is, the run time), or exact: "
        "the run time of every job.", words=REQUESTS,
    )  # fmt: skip
    overrun: str = setting(
        "kill", "word", "A job that runs for longer than requested is killed then, or runs on. The "
        "scheduler does that (`Cluster.of`, or an experiment), and not the trace.",
        words=("kill", "extend"),
    )  # fmt: skip
    epoch: str | None = setting(
        None, "date", "The date of time 0 of the trace, by which dated caps, prices and carbon "
        "intensities are placed.", none="auto",
        otherwise="what the file tells: UnixStartTime of SWF, the first submission of sacct",
        rule=parse_epoch,
    )  # fmt: skip
    begin: str = setting(
        "recorded", "word", "When the run begins: at the trace's own time 0, or at the first "
        "submission.", words=BEGINS,
    )  # fmt: skip
    timezone: str | None = setting(
        None, "zone", "The time zone of the trace, of dates that have none of their own, and of "
        "what is shown.", none="auto", otherwise="what the file tells, as TimeZoneString of SWF",
        rule=zone_of,
    )  # fmt: skip
    warmup_ps: int = setting(
        0, "time", "Jobs that are submitted in so long from the first submission on are not "
        "measured.",
    )  # fmt: skip
    cooldown_ps: int = setting(
        0, "time", "Jobs that are submitted in so long before the last submission are not measured."
    )
    mix: Any = setting(
        None, "texts", "What arrives where the model is mix: the name of a mix of a paper, or a "
        "list of types of jobs; `odonata types` has both. `load` is the share of the nodes that is "
        "busy on average.", words=tuple(MIXES), none="none",
        accepted=f"one of {', '.join(MIXES)}, or a list of types of jobs",
    )  # fmt: skip
    shares: tuple[float, ...] | None = setting(
        None, "numbers", "How much of the load each type of a mix has, relative to the others.",
        above=0, most=MOST_SHARE, none="auto",
        otherwise="those of the mix, which are equal unless its name says more",
    )  # fmt: skip
    span_ps: int = setting(HOUR_PS, "time", "For how long jobs of a mix arrive.", above=0)
    sized: bool = setting(
        True, "flag", "Whether the rate at which jobs of a mix arrive takes into account that jobs "
        "have several nodes; if not, large ones bring more load than was asked for.",
    )  # fmt: skip
    burst: float = setting(
        1.0, "number", "How many jobs of a type of a mix come at once, on average.", least=1,
        most=MOST_BURST,
    )  # fmt: skip
    swing: float = setting(
        0.0, "number", "By how much the rate at which jobs of a mix come rises and falls over a "
        "day, as a part of its mean: highest at 14:00 of the run's time.", least=0, most=1,
    )  # fmt: skip

    def __post_init__(self) -> None:
        if isinstance(self.mix, list):
            object.__setattr__(self, "mix", tuple(self.mix))
        found = Findings()
        found.unless(
            not (self.file and self.model), f"model = {self.model}",
            f"there is a file as well, {self.file}: name one", "model", "file",
        )  # fmt: skip
        found.unless(
            not (self.file and self.jobs), f"jobs = {self.jobs}",
            "of a model, and there is a file; `first` takes some of its jobs", "jobs", "file",
        )  # fmt: skip
        found.unless(
            not (self.model and self.format), f"format = {self.format}",
            f"of a file, and the jobs are made by {self.model}", "format", "model",
        )  # fmt: skip
        if self.resample_ps is not None:
            blocks = f"resample = {self.resample_ps / HOUR_PS:g} h"
            found.unless(
                not self.model, blocks,
                f"of a file, and the jobs are made by {self.model}: others with every seed",
                "resample_ps", "model",
            )  # fmt: skip
        self._check_mix(found)
        check(self, found)
        found.refuse()

    def _check_mix(self, found: Findings) -> None:
        """Note what only a mix has where there is none, and what a mix does not have."""
        if self.model != "mix":
            instead = f"model = {self.model}" if self.model else "the jobs are those of a file"
            for name, usual in (("mix", None), ("shares", None), ("span_ps", HOUR_PS),
                                ("sized", True), ("burst", 1.0), ("swing", 0.0)):  # fmt: skip
                value = getattr(self, name)
                found.unless(value == usual, f"{name.removesuffix('_ps')} = {value}",
                             f"of model = mix, and {instead}", name, "model")  # fmt: skip
            return
        found.unless(self.mix is not None, "model = mix",
                     f"which mix? mix = one of {', '.join(MIXES)}, or a list of types of jobs",
                     "model", "mix")  # fmt: skip
        found.unless(self.mix != (), "mix = ()", "a list of at least one type of jobs", "mix")
        found.unless(self.jobs is None, f"jobs = {self.jobs}",
                     "a mix has the jobs that arrive within its span: give span, or `first`",
                     "jobs", "model")  # fmt: skip
        found.unless(
            self.shares != (), "shares = ()", "a number for each type of the mix", "shares"
        )

    @property
    def types(self) -> Types | None:
        """Returns the table that has the types of the mix, where no other is named; None: there is
        no mix."""
        if self.model != "mix":
            return None
        return Types.of(MIXES[self.mix].table) if self.mix in MIXES else table_for(self.mix)

    def trace(
        self,
        machine_nodes: int | None = None,
        seed: int = 1,
        measured: Mapping[str, Table] | None = None,
        types: Types | None = None,
    ) -> tuple[Trace, int]:
        """Returns the jobs as they are scheduled, each with a requested time, and the number of
        nodes that run them: those asked for, or the machine's, or those that the trace tells of. A
        model of moldable jobs makes them of the applications that were `measured`, if any were; a
        mix, of these `types`, or of those of its own table."""
        from odonata.traces.changing import filled

        wanted = self.nodes if self.nodes is not None else machine_nodes
        given = self.given(wanted, seed, measured, types)
        nodes = wanted if wanted is not None else given.machine_nodes
        if nodes is None:
            raise Refused(f"{self.file}: does not say how many nodes its machine has: give --nodes "
                          f"(trace.nodes), at least {int(given.nodes.max()):,}")  # fmt: skip
        return filled(self.changed(given, nodes, seed)), nodes

    def given(
        self,
        nodes: int | None,
        seed: int = 1,
        measured: Mapping[str, Table] | None = None,
        types: Types | None = None,
    ) -> Trace:
        """Returns the jobs as the file has them, or as the model makes them for so many nodes, with
        the wall clock that was told or given."""
        if not self.file and self.model is None:
            raise Refused("which jobs? a file, or a model: " + ", ".join(MODELS))
        if self.model == "mix":
            trace = self._mixed(nodes, seed, types)
        elif self.model:
            trace = self._made(nodes, seed, measured)
        else:
            trace = _read(self.file, self.format, self.timezone)
        return replace(trace, clock=clock_given(trace.clock, self.epoch, self.timezone))

    def changed(self, trace: Trace, nodes: int, seed: int = 1) -> Trace:
        """Returns the jobs of a trace with all changes that were asked for, on so many nodes; a
        model has made them for the load. The load is that of what was drawn anew, as it would be of
        another trace."""
        from odonata.traces.changing import first, from_zero, limited, onto, rescaled

        if self.first is not None:
            trace = first(trace, self.first)
        if self.resample_ps is not None:
            from odonata.traces.windows import resampled

            trace = resampled(trace, self.resample_ps // 10**6, seed)
        if self.scale_sizes:
            trace = onto(trace, nodes)
        trace = limited(trace, nodes)
        if self.requests == "exact":
            trace = trace.where(slice(None), requested_us=np.maximum(trace.run_us, 1))
        if self.load is not None and self.model is None:
            trace = rescaled(trace, self.load, nodes)
        return from_zero(trace) if self.begin == "first" else trace

    def _made(self, nodes: int | None, seed: int, measured: Mapping[str, Table] | None) -> Trace:
        from odonata.traces.lublin import lublin
        from odonata.traces.mira import mira_year
        from odonata.traces.poisson import poisson
        from odonata.traces.rmap import JOBS, NODES, rmap

        jobs, load = self.jobs or USUAL_JOBS, self.load
        need, have = jobs * LEAST_JOB_BYTES, host_memory()
        if need > have:
            raise Refused(f"jobs = {jobs:,}: they need {need / 1e9:,.0f} GB of memory or more, and "
                          f"there are {have / 1e9:,.0f} GB")  # fmt: skip
        given: dict[str, Any] = {} if load is None else {"load": load}
        if self.model == "mira":
            return mira_year(seed, jobs=self.jobs, **given)
        if self.model is not None and self.model.startswith("rmap-"):
            kind = self.model.removeprefix("rmap-")
            return rmap(kind, self.jobs or JOBS, nodes or NODES, seed=seed, load=load,
                        measured=measured or None)  # fmt: skip
        if nodes is None:
            raise Refused(f"model = {self.model}: for a machine of how many nodes?")
        if self.model == "lublin":
            return lublin(jobs, nodes, seed=seed, load=load)
        return poisson(jobs, nodes, seed=seed, **given)

    def _mixed(self, nodes: int | None, seed: int, types: Types | None) -> Trace:
        """Returns the jobs of a mix; of one of a paper, on its machine unless another is given."""
        table = types or self.types
        assert table is not None
        known = MIXES.get(self.mix) if isinstance(self.mix, str) else None
        names = known.types if known else tuple(self.mix)
        nodes = nodes or (known.nodes if known else None)
        if nodes is None:
            raise Refused("model = mix: for a machine of how many nodes?")
        load = self.load or (known.load if known else LOAD)
        shares = self.shares if self.shares is not None else known.shares if known else None
        return mix(table, names, nodes, load=load, span_s=self.span_ps * 1e-12, seed=seed,
                   shares=shares, sized=self.sized, burst=self.burst, swing=self.swing,
                   name=self.mix if known else "mix")  # fmt: skip


def _read(file: str, format: str | None, timezone: str | None) -> Trace:
    """Returns the trace in a file, which is read once for experiments that differ in what becomes
    of it."""
    from odonata.traces.reading import read

    try:
        about = os.stat(file)
    except OSError:
        return read(file, format, timezone)  # which tells what is wrong
    regular = stat.S_ISREG(about.st_mode)  # a pipe can be read only once
    state = (about.st_mtime_ns, about.st_size) if regular else ()
    return _last_read(file, format, timezone, about.st_ino, *state)


@lru_cache(maxsize=1)
def _last_read(file: str, format: str | None, timezone: str | None, *_state: int) -> Trace:
    from odonata.traces.reading import read

    return read(file, format, timezone)
