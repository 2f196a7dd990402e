"""Makes the sbatch files of the studies, which are alike but for their names and sizes.

python scripts/sbatch.py            # say which are not as they would be made
python scripts/sbatch.py --write    # make them
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PLACE = Path(__file__).parents[1] / "slurm_jobs"


class Size(NamedTuple):
    """How many ranks a study can use, and an example of what it can be asked for."""

    ranks: int
    example: str


STUDIES = {
    "level-spread": Size(64, "--part random --workloads 1000 --repeat 10"),
    "congestion": Size(64, "--application milc"),
    "nedd": Size(64, "--part queue --repetitions 20"),
    "wallace": Size(32, "--part caps --seed 2"),
    "rumyantsev": Size(16, "--trace krc2.csv"),
    "rmap": Size(32, "--part choices"),
    "regulation": Size(32, "--part size"),
    "aqa": Size(64, "--mixes W4,W5"),
    "bidding": Size(64, "--part busy"),
    "together": Size(64, "--repetitions 12"),
}
TEMPLATE = """\
#!/bin/bash
# The study {study} on a cluster, one simulation per rank, in pieces of an hour: two minutes
# before its time is up Slurm sends SIGUSR1, Odonata finishes what is under way, keeps it and exits
# 0, and the job puts itself back into the queue. What is done already is not simulated again, also
# after a crash.
#
#   sbatch slurm_jobs/{file}.sbatch [{example} ...]
#   OUT=DIR sbatch slurm_jobs/{file}.sbatch ...      # goes on in DIR, or begins there
#
#SBATCH --job-name={study}
#SBATCH --ntasks={ranks}
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={study}-%j.out
set -euo pipefail

out="${{OUT:-{study}-$SLURM_JOB_ID}}"
mkdir -p "$out"
srun --kill-on-bad-exit=1 odonata study {study} "$@" -o "$out" --json > "$out/last.json"

if grep -q '"completed": false' "$out/last.json"; then
  scontrol requeue "$SLURM_JOB_ID"
fi
"""


def made() -> Iterator[tuple[Path, str]]:
    """Yields the files and what is in them."""
    for study, (ranks, example) in STUDIES.items():
        file = study.replace("-", "_")
        text = TEMPLATE.format(study=study, file=file, ranks=ranks, example=example)
        yield PLACE / f"{file}.sbatch", text


if __name__ == "__main__":
    for path, text in made():
        if not path.exists() or path.read_text() != text:
            print(path.name)
            if "--write" in sys.argv[1:]:
                path.write_text(text)
