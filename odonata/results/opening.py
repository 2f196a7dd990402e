"""Opens a run, of whichever fidelity: `odonata.open("out")`."""

from __future__ import annotations

from pathlib import Path

from odonata.results.run import Run
from odonata.results.schedule_run import ScheduleRun
from pdes.errors import Refused
from pdes.hdf5 import read
from pdes.join import ranks_of


def open(path: str | Path) -> Run | ScheduleRun:
    """Returns the run in a directory; refused where there is none."""
    path = Path(path)
    if not path.is_dir():
        raise Refused(f"{path}: there is no such directory")
    model = read(ranks_of(path)[0], lambda file: str(file.attrs["model"]))
    return ScheduleRun(path) if model == "cluster" else Run(path)
