"""Runs an experiment, from its file to a directory of results.

The directory has `experiment.toml` (all of it, defaults too), a file of metrics per rank, `run.h5`
which joins them when the run is over, and `checkpoint/`. It belongs to one run: another one is
refused unless it is asked to resume or to overwrite.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from odonata import __version__
from odonata.experiment.experiment import Experiment, JobExperiment
from odonata.experiment.progress import ProgressLine
from odonata.experiment.reading import load, parse
from odonata.jobs.metering import JobEnergy
from odonata.jobs.schedule import Schedule
from odonata.results import job_table as accounts
from odonata.results.facts import has_metrics
from odonata.results.kept_summary import SUMMARY, keep
from odonata.results.measured import Measured
from odonata.results.performance import job_energy, schedule_of
from odonata.results.run import open as open_run
from pdes import turnover
from pdes.checkpoint import begun_with, newest
from pdes.clock import TICKS
from pdes.driver import Result, run
from pdes.errors import Refused
from pdes.hdf5 import Source, read
from pdes.join import JOINED, LOCK, extend, is_joined, join, mend, ranks_of, status_of
from pdes.replacing import partial_name, write_whole
from pdes.signals import StopSignals
from pdes.stream import COMPLETE, NAME, Recording, times_of
from pdes.transport import Transport, together, world
from policies.register import PLUGINS, REGISTERS

AnyExperiment = Experiment | JobExperiment
EXPERIMENT, CHECKPOINT = "experiment.toml", "checkpoint"
SWF = "jobs.swf"
"""The jobs of a run of the job fidelity, in the Standard Workload Format, with their waits."""
TABLES = (accounts.FILE, SWF)
"""What is written of the jobs when a run is over; where packets are simulated, only the first."""


@dataclass(frozen=True)
class RunOptions:
    """The options of `odonata run`, and its file."""

    file: Path | None
    out: Path | None
    changes: Sequence[str] = ()
    resume: bool = False
    overwrite: bool = False
    debug: bool = False
    progress: bool | None = None
    metrics: bool = True
    plugins: Sequence[Path] = ()
    dedicated_scheduler: bool = False
    trace_packets: int | None = None


@dataclass(frozen=True)
class Finished:
    """The outcome of a run."""

    experiment: AnyExperiment
    out: Path
    result: Result

    @cached_property
    def measured(self) -> Measured:
        """Returns what was measured: from its files, where these have more than the result."""
        made, kept = self.experiment, has_metrics(self.result)
        if not isinstance(made, Experiment):
            if not kept:
                return Measured(made)
            with open_run(self.out) as run:
                return Measured.of_run(run)
        found = Measured.of_packets(made, self.result)
        if kept and made.power is not None:
            with open_run(self.out) as run:
                found = replace(found, power=run.power_measures, market=run.market)
        return found


def asked(options: RunOptions) -> tuple[AnyExperiment, Path]:
    """Returns the experiment, and its directory."""
    experiment, out = _asked(options)
    if experiment.metrics.trace_packets is not None and not options.metrics:
        raise Refused(f"metrics.trace_packets = {experiment.metrics.trace_packets}: the paths of "
                      "packets are kept with the metrics; leave out --no-metrics")  # fmt: skip
    return experiment, out


def _asked(options: RunOptions) -> tuple[AnyExperiment, Path]:
    changes = [*options.changes]
    changes += ["run.dedicated_scheduler=true"] * options.dedicated_scheduler
    if options.trace_packets is not None:
        changes.append(f"metrics.trace_packets={options.trace_packets}")
    if options.file is None:
        if not options.resume or options.out is None:
            raise Refused("which experiment? odonata run FILE, or to go on: "
                          "odonata run --resume -o DIR")  # fmt: skip
        kept = options.out / EXPERIMENT
        if not kept.exists():
            raise Refused(f"{options.out}: holds no run ({EXPERIMENT} is not there)")
        return load(kept, changes, options.plugins), options.out
    experiment = load(options.file, changes, options.plugins)
    return experiment, options.out or Path("out") / experiment.name


def execute(
    options: RunOptions, replaced: Callable[[Path], None] = lambda out: None
) -> Finished | None:
    """Run an experiment on all the ranks there are. Returns None where nothing was left to be done.
    `replaced` is called with the directory of a run whose place this one takes, to remove what was
    made of it."""
    transport = world()
    experiment, out = together(transport, lambda: asked(options))
    with _claimed(out, transport, options, experiment):
        resume = None
        if options.resume:
            together(transport, lambda: _finish(out) if transport.rank == 0 else None)
            if together(transport, lambda: _is_complete(out, experiment, options.metrics)):
                together(transport, lambda: _rejoin(out, experiment, transport.rank))
                return None
            resume = together(transport, lambda: _checkpoint(out, experiment))
        together(transport, lambda: _prepare(out, experiment, options, resume, transport, replaced))
        tick, end = experiment.tick, ticks(experiment, experiment.run.end)
        shown = options.progress
        line = None if shown is False else ProgressLine(end, tick, shown)
        left = how_to_go_on(out, experiment, options.metrics, transport.size)
        try:
            result = run(
                experiment.model(),
                end,
                protocol=experiment.run.protocol,
                checkpoint_dir=out / CHECKPOINT,
                checkpoint_every=ticks(experiment, experiment.run.checkpoint_every),
                resume=resume,
                debug=options.debug,
                progress=line,
                record=recording(experiment, out) if options.metrics else None,
                transport=transport,
                interrupted=left,
            )
        except KeyboardInterrupt:
            print(f"odonata: interrupted; {left}", file=sys.stderr)
            raise
        finally:
            if line:
                line.close()
        finished = Finished(experiment, out, result)
        with StopSignals(True):  # nothing is left to be stopped, and this is only known now
            if transport.rank == 0:
                for name in TABLES:  # of where it was stopped before
                    (out / name).unlink(missing_ok=True)
                if options.metrics:
                    join(out, out / JOINED)
                _keep_jobs(finished, options.metrics)
            transport.everyone(None)
            if isinstance(experiment, JobExperiment) and experiment.run.end is None:
                from odonata.cluster.simulation import check_all_done

                check_all_done(experiment.model(), result)
            if transport.rank == 0 and options.metrics and result.completed:
                keep(finished)
            transport.everyone(None)
    return finished


def _finish(out: Path) -> None:
    """Finish the renaming of files that a run which died had begun, and remove what it left half
    written."""
    turnover.finish(out)
    for name in (EXPERIMENT, *TABLES, SUMMARY):
        for left in out.glob(partial_name(Path(name), "*").name):
            left.unlink()
    for left in out.glob(f".{JOINED}.*"):
        left.unlink()


def how_to_go_on(out: Path, experiment: AnyExperiment, metrics: bool, ranks: int) -> str:
    """Returns what is kept of a run that is interrupted, and how it goes on."""
    kept = f"what was measured is in {out}, " if metrics else ""
    since = "from its last checkpoint"
    if experiment.run.checkpoint_every is None and newest(out / CHECKPOINT) is None:
        since = "from the beginning, as it writes no checkpoints (run.checkpoint_every)"
    launched = f"mpiexec -n {ranks} " if ranks > 1 else ""
    without = "" if metrics else " --no-metrics"
    return f"{kept}and it goes on {since} with: {launched}odonata run --resume -o {out}{without}"


def ticks(experiment: AnyExperiment, time_ps: int | None) -> int | None:
    """Returns a time in ticks of the experiment's model; None stays None."""
    return None if time_ps is None else time_ps // TICKS[experiment.tick]


def _keep_jobs(finished: Finished, metrics: bool) -> None:
    """Write the table of jobs of a run that has come to where it was to; of one without packets
    only with metrics, as its logs are where all is."""
    made, out = finished.experiment, finished.out
    if not isinstance(made, Experiment):
        if metrics:
            _made_again(out)
    elif made.jobs:
        jobs = schedule_of(made.model(), finished.result, made.name)
        _write_jobs(jobs, out, made.name, job_energy(made.model(), finished.result, jobs))


def _write_jobs(jobs: Schedule, out: Path, name: str, taken: JobEnergy | None) -> None:
    """Write the table of jobs; of packets with their energies if any of them is done."""
    known = taken if not jobs.asked or jobs.done.any() else None
    accounts.write_csv(jobs, out / accounts.FILE, name, known)


def _rejoin(out: Path, experiment: AnyExperiment, rank: int) -> None:
    """Write what is made of the ranks' files of a complete run, if it was interrupted before that;
    refused if it is damaged."""
    if rank > 0:
        return
    joined = is_joined(out / JOINED, ranks_of(out)[0])
    if not joined:
        join(out, out / JOINED)
    tables = TABLES if isinstance(experiment, JobExperiment) else TABLES[: bool(experiment.jobs)]
    if not joined or not all((out / name).exists() for name in tables):
        _made_again(out)


def _made_again(out: Path) -> None:
    """Write what is made of the metrics of a run that is over: the hours of its market into
    `run.h5`, and the table of its jobs."""
    from odonata.results.market import keep_hours

    with open_run(out) as run:
        if run.market is not None and run.complete:
            extend(out / JOINED, partial(keep_hours, run.market))
        if run.has("jobs"):
            taken = None if run.power is None else run.power.by_job
            _write_jobs(run.schedule, out, run.experiment.name, taken)
        if not run.has("network"):
            accounts.write_swf(run.schedule, out / SWF, [f"Experiment: {run.experiment.name}"])


def _is_complete(out: Path, experiment: AnyExperiment, metrics: bool) -> bool:
    """Tells whether nothing is left of the run that is there, if one is. It cannot go on with
    another experiment, as where its file was damaged, nor without the metrics it has written."""
    first = out / NAME.format(0)
    if metrics and not _has_recorded(out):
        return False
    if not first.exists():
        others = [path.name for path in (out / JOINED, *out.glob(turnover.ANY)) if path.exists()]
        if others or (metrics and newest(out / CHECKPOINT)):
            raise Refused(
                f"{first}: is missing, and the run cannot go on without it; --overwrite begins "
                "again" + ", --no-metrics goes on with a run that was begun so" * (not others)
            )
        return False
    if not metrics:
        raise Refused(f"{out}: was begun with metrics, and cannot go on with --no-metrics")
    with Source(first) as file:
        file.check()
        text = file.tried(lambda it: it.attrs["experiment"])
    _compare(out, parse(text, str(first), stand_in=True), experiment)
    return status_of(out)[0] == COMPLETE


def _has_recorded(out: Path) -> bool:
    """Tells whether anything would be lost if the run there began anew. A run that was killed while
    its ranks created their files has some of them, with nothing in any."""
    if newest(out / CHECKPOINT) or (out / JOINED).exists():
        return True

    def has(file: Any) -> bool:
        tick = file.attrs.get("tick", "ps")
        logged = f"logged_{tick}" in file and file[f"logged_{tick}"][()] > 0
        return bool(logged or len(times_of(file)) or file["status"][()] == COMPLETE)

    return any(read(path, has) for path in out.glob(turnover.ANY))


def _checkpoint(out: Path, experiment: AnyExperiment) -> Path | None:
    """Returns where the run there goes on from, if anywhere, on whichever ranks."""
    found = newest(out / CHECKPOINT)
    if found:
        _check_plugins(out, found, experiment)
    return found


def _check_plugins(out: Path, checkpoint: Path, experiment: AnyExperiment) -> None:
    """Refuse to go on with policies whose files have been edited since."""
    begun = json.loads(begun_with(checkpoint).get("plugins", "{}"))
    changed = {policy: REGISTERS[kind][name].plugin
               for policy, sha256 in experiment.model().plugins().items()
               for kind, _, name in [policy.partition(" ")]
               if begun.get(policy, sha256) != sha256}  # fmt: skip
    if changed:
        files = ", ".join(dict.fromkeys(changed.values()))
        raise Refused(
            f"{out}: {files} (which brings {', '.join(changed)}) has changed since this run was "
            "begun; put back what it was, or begin again with --overwrite"
        )


def recording(experiment: AnyExperiment, out: Path) -> Recording:
    metrics, (tables, logs) = experiment.metrics, experiment.recorded()
    interval = ticks(experiment, metrics.interval_ps)
    assert interval is not None
    return Recording(
        out, interval, tables, metrics.flush_ps / 1e12, provenance(experiment), logs=logs
    )


def provenance(experiment: AnyExperiment) -> dict[str, Any]:
    """Returns the provenance of a file."""
    packages = ("numpy", "numba", "h5py", "mpi4py")
    of_trace: dict[str, Any] = {}
    if isinstance(experiment, JobExperiment):
        model = experiment.model()
        of_trace = {"trace": model.trace.name, "nodes": model.nodes,
                    "account": json.dumps(asdict(model.trace.account))}  # fmt: skip
        if (clock := model.trace.clock) is not None:
            of_trace |= {"epoch": clock.date(0), "clock": json.dumps(asdict(clock))}
    return of_trace | {
        "experiment": experiment.to_toml(),
        "id": secrets.token_hex(8),
        "name": experiment.name,
        "seed": experiment.run.seed,
        "odonata": __version__,
        "python": platform.python_version(),
        "packages": json.dumps({name: _version(name) for name in packages}),
        "host": platform.node(),
        "platform": platform.platform(),
        "plugins": json.dumps({str(path): one.sha256 for path, one in PLUGINS.items()}),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except ImportError:
        return None


# -- whose directory it is


@contextmanager
def _claimed(
    out: Path, transport: Transport, options: RunOptions, experiment: AnyExperiment
) -> Iterator[None]:
    """Take the directory, or refuse: it holds another run, or one writes to it now."""
    handle = together(transport, lambda: _claim(out, transport.rank, options, experiment))
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _claim(out: Path, rank: int, options: RunOptions, experiment: AnyExperiment) -> int | None:
    if rank > 0:
        return None
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{out}: cannot be written to: {error.strerror}") from None
    handle = _lock(out)
    kept = out / EXPERIMENT
    if kept.exists() and options.resume:
        _compare(out, load(kept, stand_in=True), experiment)
    elif not options.overwrite and ((out / NAME.format(0)).exists() or newest(out / CHECKPOINT)):
        raise Refused(f"{out}: holds a run already; --resume goes on with it, --overwrite replaces "
                      "it, -o names another place")  # fmt: skip
    return handle


def _lock(out: Path) -> int:
    """Hold the lock until the handle is closed; in name only if the file system has no locks."""
    try:
        handle = os.open(out / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise Refused(f"{out}: cannot be written to: {error.strerror}") from None
    for patience in (0.05, 0.05, 0.0):  # somebody may just be looking whether it is held
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return handle
            time.sleep(patience)
        else:
            return handle
    os.close(handle)
    raise Refused(f"{out}: another run is writing there")


def mended(out: Path) -> list[Path]:
    """Close the files that had been left open, for `odonata mend`. Returns them."""
    ranks_of(out)
    handle = _lock(out)
    try:
        turnover.finish(out)
        files = mend(out)
        join(out, out / JOINED, _digest(out))
        if status_of(out)[0] == COMPLETE:
            _made_again(out)
    finally:
        os.close(handle)
    return files


def _digest(out: Path) -> dict[str, str]:
    """Returns the digest as an attribute, if `run.h5` has it."""
    with suppress(Refused):
        if is_joined(out / JOINED, ranks_of(out)[0]):
            return {"digest": read(out / JOINED, lambda file: str(file.attrs["digest"]))}
    return {}


def _compare(out: Path, theirs: AnyExperiment, ours: AnyExperiment) -> None:
    """Refuse to go on with another experiment. On which ranks, and by which protocol, does not
    matter; nor where its plug-ins are, only what is in them (`_check_plugins`)."""
    how = {name: getattr(ours.run, name) for name in ("protocol", "dedicated_scheduler")}
    theirs = replace(theirs, plugins=ours.plugins, run=replace(theirs.run, **how))
    if theirs == ours:
        return
    begun, asked = theirs.written(), ours.written()
    different = [
        f"{path} = {begun.get(path, 'not there')}, not {asked.get(path, 'there')}"
        for path in {**begun, **asked}
        if begun.get(path) != asked.get(path)
    ]
    raise Refused(f"{out}: was begun with " + "; ".join(different))


def _prepare(
    out: Path,
    experiment: AnyExperiment,
    options: RunOptions,
    resume: Path | None,
    transport: Transport,
    replaced: Callable[[Path], None],
) -> None:
    """Remove what this run replaces."""
    if transport.rank > 0:
        return
    if resume is None:
        if (out / NAME.format(0)).exists():
            replaced(out)
        for name in (JOINED, *TABLES, SUMMARY):
            (out / name).unlink(missing_ok=True)
        _remove_all(out / CHECKPOINT)
        turnover.remove_all(out)
    kept = out / EXPERIMENT
    its_own = kept.exists() and (options.file is None or kept.samefile(options.file))
    if not (its_own and load(kept, stand_in=True) == experiment):
        write_whole(kept, experiment.to_toml())


def _remove_all(directory: Path) -> None:
    """Remove a directory; whoever is killed meanwhile leaves nothing of it under its name."""
    going = directory.with_name(f".{directory.name}")
    shutil.rmtree(going, ignore_errors=True)
    if directory.exists():
        directory.rename(going)
        shutil.rmtree(going)
