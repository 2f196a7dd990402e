"""Runs a study from its question to its answer: simulate what is missing, then report and draw."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.experiment.terminal import plain_console
from odonata.study import store
from odonata.study.contract import C, Claim, O, P, Study, Verdict
from odonata.study.filling import Ran, fill
from pdes.transport import world

if TYPE_CHECKING:
    from rich.console import Group

SUMMARY, FIGURES = "summary.json", "figures"
"""The names of the summary and of the figures in a study's directory."""
MARKS = {Verdict.HOLDS: "✓", Verdict.SIGN: "±", Verdict.NOT: "✗", None: ""}
KEY = "✓ holds, ± in sign only, ✗ does not; c: the model was made with this number in view."


@dataclass(frozen=True)
class Report:
    """The results of a study. `figures` are relative to its directory; `ran` is None where nothing
    was to be simulated."""

    study: str
    asked: Mapping[str, Any]
    store: Mapping[str, Any]
    ran: Ran | None
    completed: bool
    claims: Sequence[Claim]
    figures: Sequence[str]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)


def report(
    study: Study[P, C, O], asked: P, out: Path, jobs: int, *, only: bool, pdf: bool, as_json: bool
) -> None:
    """Run `odonata study NAME`; one rank of all prints. `only`: simulate nothing."""
    ran, kept = (None, None) if only else fill(study, asked, out, jobs)
    if world().rank > 0:
        return
    found = concluded(study, asked, out, kept or store.read(out, study), ran, pdf)
    if as_json:
        print(found.to_json())
        return
    console = plain_console(highlight=False, markup=False)
    if not console.is_terminal:  # a line of a file or a pipe may be longer
        console.width = max(console.width, 160)
    if found.claims:
        console.print(table(study, found.claims))
    if found.figures:
        console.print(f"{len(found.figures)} figures in {out / FIGURES}")
    if ran is not None:
        console.print(str(ran))


def concluded(
    study: Study[P, C, O], asked: P, out: Path, kept: store.Store[O], ran: Ran | None, pdf: bool
) -> Report:
    """Draw the figures and write the summary, in `out`; neither after a signal to stop, when there
    may be little time left."""
    claims, pictures = list[Claim](), list[Path]()
    if ran is None or not ran.stopped:
        claims = study.claims(asked, kept.outcomes)
        pictures = study.figures(asked, kept.outcomes, out / FIGURES, pdf)
    found = Report(
        study.name,
        asdict(asked),  # type: ignore[call-overload]
        kept.head,
        ran,
        all(case.key in kept.outcomes for case in study.cases(asked, kept.outcomes)),
        claims,
        [str(path.relative_to(out)) for path in pictures],
    )
    if claims:
        (out / SUMMARY).write_text(found.to_json() + "\n")
    return found


def table(study: Study[Any, Any, Any], claims: Sequence[Claim]) -> Group:
    """Returns the claims, not wider than 80 columns where their words are not; those below that
    have nothing printed beside them."""
    from rich.console import Group
    from rich.table import Table

    rows, others = (Table(box=None, pad_edge=False, collapse_padding=True) for _ in range(2))
    rows.add_column("claim")
    for name in ("paper", "here", "", "of"):
        rows.add_column(name, justify="right", no_wrap=True)
    others.add_column("besides", ratio=2)
    others.add_column("", ratio=3)
    others.add_column("of", justify="right")
    for claim in claims:
        if claim.paper or claim.verdict is not None:
            mark = MARKS[claim.verdict] + "c" * claim.calibrated
            rows.add_row(claim.name, claim.paper, claim.ours, mark, f"{claim.of:,}")  # fmt: skip
        else:
            others.add_row(claim.name, claim.ours, f"{claim.of:,}")
    tables = [each for each in (rows, others) if each.row_count]
    judged = [KEY] if any(claim.verdict or claim.calibrated for claim in claims) else []
    notes = [study.notes] if study.notes else []
    return Group(*(part for each in tables for part in (each, "")), *judged, *notes)
