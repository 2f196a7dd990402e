"""Types of jobs, by the name under which what runs jobs knows them; models of traces need them too,
so they are made in `odonata.traces.types`."""

from odonata.traces.job_type import JobType
from odonata.traces.types import Types

__all__ = ["JobType", "Types"]
