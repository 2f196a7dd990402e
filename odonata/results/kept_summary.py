"""The summary of a run: what `odonata run` shows when it is over, and again of a run that is
complete already.

It is kept beside the metrics, in `summary.json`, as `--json` prints it, with the wall-clock figures
of the run itself, and a checksum. Where it is missing (the run was killed just before it was
written, or is of an older version) or has been changed, it is made of the metrics, without those.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.results.facts import facts, has_metrics, jobs_per_second, result_facts, run_facts
from odonata.results.measured import AnyExperiment, Measured
from pdes.checksum import NAME as CHECKSUM
from pdes.checksum import is_intact, with_checksum
from pdes.replacing import write_whole

if TYPE_CHECKING:
    from odonata.results.execution import Finished

SUMMARY = "summary.json"
"""What `odonata run --json` prints of a complete run."""


def keep(finished: Finished) -> None:
    """Write the summary of a run that is complete."""
    text = json.dumps(run_facts(finished), indent=1, ensure_ascii=False)
    write_whole(finished.out / SUMMARY, with_checksum(text) + "\n")


def kept(out: Path, experiment: AnyExperiment) -> dict[str, Any]:
    """Returns what `odonata run --json` printed of the complete run in a directory; without its
    summary, what of that is in its metrics."""
    from odonata.results.run import open as open_run

    with open_run(out) as run:
        digest = run.digest
    try:
        text = (out / SUMMARY).read_bytes()
        facts = json.loads(text)
    except (OSError, ValueError):
        return _measured(out, experiment)
    if is_intact(text) and digest in (None, facts.get("digest")):
        del facts[CHECKSUM]
        return facts | {"out": str(out)}  # type: ignore[no-any-return]
    return _measured(out, experiment)


def _measured(out: Path, experiment: AnyExperiment) -> dict[str, Any]:
    """Returns the summary without what is only known when a run is over."""
    from odonata.results.run import open as open_run

    with open_run(out) as run:
        known = {"name": experiment.name, "out": str(out), "completed": run.complete,
                 "ranks": int(run.attributes["ranks"]), "digest": run.digest,
                 "time_ps": run.simulated_ps}  # fmt: skip
        return known | facts(Measured.of_run(run))


@dataclass(frozen=True)
class Summary:
    """What is shown of a run."""

    out: Path
    known: Mapping[str, Any]
    """What the engine knows, by the names of `Result`; what is not known is not there."""
    metrics: bool
    """Whether there are any."""
    measured: Measured
    speed: float | None = None
    """Jobs per second, of a run without packets."""

    @classmethod
    def of(cls, finished: Finished) -> Summary:
        """Returns the summary of a run that has just been executed."""
        result, packets = finished.result, "network" in finished.experiment.facets
        return cls(finished.out, result_facts(result), has_metrics(result), finished.measured,
                   None if packets else jobs_per_second(result))  # fmt: skip

    @classmethod
    def of_files(cls, out: Path, made: AnyExperiment) -> Summary:
        """Returns the summary of the complete run in a directory."""
        from odonata.results.derived import recorded
        from odonata.results.run import open as open_run

        known = kept(out, made)
        with open_run(out) as run:
            measured = Measured.of_run(run)
            if measured.performance is not None and not recorded(run, "ports"):
                of_ports = {name: known[name] for name in ("links", "inputs") if name in known}
                measured = replace(measured, performance=replace(measured.performance, **of_ports))
        return cls(out, known, True, measured, known.get("jobs_per_second"))
