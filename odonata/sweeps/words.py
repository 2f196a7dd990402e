"""The results of a sweep in words: rows of means and ratios, for terminals and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from odonata.results.register import figure as figure_of
from odonata.results.statistics import RESAMPLED
from odonata.results.steadiness import SATURATED, SHORT, UNSETTLED
from odonata.sweeps.outcomes import JOBS, plus_minus
from odonata.sweeps.table import Baseline, Cell, Compared, Swept

MARK = " *"
"""Stands behind means that are not of a steady state, and behind the number of points where one is
not."""


INSTEAD = (
    "With trace.resample every seed has the weeks of a file's trace drawn anew. Else vary what "
    "ought not to matter, such as its load (trace.load) or which part of it is taken (trace.first; "
    "odonata trace --from --to), or the seed of a model of jobs."
)
"""How to learn how far a difference holds where nothing is random."""
ADVICE = {
    True: "--seeds 5 gives some.",
    False: f"other seeds would give the same runs, as nothing here is random. {INSTEAD}",
    None: "--seeds 5 gives some, where the seed decides anything.",
}
"""What to do about a sweep with one seed, by `Swept.seeded`."""


HOW = {"t": "Student's t", "bootstrap": "bootstrap",
       RESAMPLED: "their spread: each has weeks of the trace drawn anew"}  # fmt: skip
"""What intervals are, by method."""


def by_kind(figures: Sequence[str]) -> list[list[str]]:
    """Returns the figures of jobs and those of runs, apart: each if there are any."""
    of_jobs = [name for name in figures if name.startswith(JOBS)]
    of_runs = [name for name in figures if not name.startswith(JOBS)]
    return [some for some in (of_jobs, of_runs) if some]


def heads(found: Swept, figures: Sequence[str], baseline: Baseline | None) -> list[str]:
    """Returns the heads of the columns of `rows`."""
    columns = [*found.axes, *["job"] * figures[0].startswith(JOBS)]
    for name in figures:
        columns += [figure_of(name).title, *([f"× {baseline.label}"] if baseline else [])]
    return [*columns, "of"]


def rows(found: Swept, figures: Sequence[str], baseline: Baseline | None) -> list[list[str]]:
    """Returns a row for each combination, and for each job where these are figures of jobs: means
    with their intervals, ratios to the baseline, and of how many points that is."""
    cells = {name: {(it.labels, it.job): it for it in found.cells(name)} for name in figures}
    beside = {name: found.against(name, baseline) if baseline else {} for name in figures}
    made = []
    for labels, job in dict.fromkeys(place for name in figures for place in cells[name]):
        words, count = [], 0
        for name in figures:
            cell = cells[name].get((labels, job))
            words.append("-" if cell is None else mean_text(found, name, cell))
            count = max(count, 0 if cell is None else found.interval(cell).of)
            if baseline:
                words.append("" if cell is None else ratio_text(beside[name].get(cell)))
        mark = MARK if found.marked(labels) else ""
        made.append([*labels, *[job] * figures[0].startswith(JOBS), *words, f"{count}{mark}"])
    return made


def mean_text(found: Swept, figure: str, cell: Cell) -> str:
    """Returns a mean and half of its interval, in the unit in which the figure is shown."""
    made, scale = found.interval(cell), figure_of(figure).scale
    mark = MARK if found.misleads(figure, cell.labels) else ""
    return plus_minus(made.mean * scale, made.half * scale) + mark


def ratio_text(compared: Compared | None) -> str:
    """Returns a ratio with its interval, marked where the difference is not significant."""
    if compared is None:
        return ""
    mark = " ~" if compared.significant is False else ""
    return plus_minus(compared.ratio.mean, compared.ratio.half) + mark


def notes(found: Swept, baseline: Baseline | None) -> list[str]:
    """Returns what a reader has to know, first what the numbers are."""
    how = HOW[found.method]
    of = "replicates" if found.method == RESAMPLED else "seeds"
    same = found.combinations_alike
    alike = len(same) == len(found.combinations)
    lines = [f"One seed: there are no intervals; {ADVICE[found.seeded]}"]
    over = repetitions(found).replace("seeds", of)
    if alike:
        lines = [f"All {over} give the same run everywhere: nothing random "
                 f"decides it, and ± 0 says nothing about other runs. {INSTEAD}"]  # fmt: skip
    elif found.repetitions > 1:
        lines = [f"± is half of the {100 * found.confidence:.4g} % confidence interval of the mean "
                 f"over {over} ({how})."]  # fmt: skip
    if found.averaged and found.combinations_twice:
        lines.append(f"At {found.combinations_twice:,} of {len(found.combinations):,} combinations "
                     "some of these runs are the same to the last bit: intervals take them as "
                     "independent, and are too narrow there.")  # fmt: skip
    if baseline:
        lines.append(
            f"× {baseline.label}: the mean ratio to {baseline.axis}={baseline.label}, "
            "seed by seed; ~ the difference is not significant at this confidence."
        )
    if same and not alike:
        lines.append(f"All seeds give the same run at {len(same):,} of "
                     f"{len(found.combinations):,} combinations: nothing random decides it there, "
                     "and ± 0 says nothing about other runs.")  # fmt: skip
    lines += [*_marks(found)]
    if found.missing:
        lines.append(f"INCOMPLETE: {found.missing:,} of {len(found.keys):,} points are missing.")
    return lines + [f"failed: {line}" for line in found.failures]


def repetitions(found: Swept) -> str:
    """Returns of what means are: "5 seeds and 3 values of run.seed.placement (15 runs)"."""
    count = len(found.seeds)
    words = [f"{count} seed{'s' * (count > 1)}"]
    words += [f"{len(labels)} values of {name}" for name, labels in found.averaged.items()]
    return " and ".join(words) + f" ({found.repetitions:,} runs)" * bool(found.averaged)


def _marks(found: Swept) -> Iterator[str]:
    """Returns what the marks stand for: each verdict, with how many points have it."""
    verdicts = Counter(it.verdict for it in found.known if it.marked)
    for verdict, count in verdicts.items():
        yield f"* {verdict}: {count:,} of {len(found.known):,} points; {ABOUT[verdict]}"


ABOUT = {
    SATURATED: "the network accepts less than it is offered, so latencies grow with the duration "
    "of the run, and there is no mean to which they settle.",
    UNSETTLED: "what was measured is not of a steady state, and neither is its mean: a longer "
    "warm-up (traffic.warmup) and a longer run (run.duration) may settle it.",
    SHORT: "too little was measured to tell whether it is of a steady state.",
}
