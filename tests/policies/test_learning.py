"""What power a job is expected to draw, learned from samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pdes.errors import Refused
from policies.memory import Sizes, memory_of, remembered
from policies.power.learning import (
    HIGHS,
    OWN,
    PROJECT,
    REJECTED,
    UNKNOWN,
    Learned,
    begin,
    critical,
    estimates,
    finish,
    known,
    new,
    new_settings,
    take_samples,
)

MAXIMUM_W = 160.0


class Twin:
    """A second learner, made of lists, numpy's percentile and scipy's t-test."""

    def __init__(self, least: int, high: str, window: int, relearn: bool, kept: int) -> None:
        self.least, self.high_of, self.window = least, high, window
        self.relearn, self.kept = relearn, kept
        self.own: dict[int, list[float]] = {}
        self.project: dict[int, list[float]] = {}
        self.runs: dict[int, dict[str, Any]] = {}
        self.margin = np.inf

    def high(self, samples: list[float]) -> float:
        last = samples[-self.window :]
        if self.high_of == "p95":
            found = float(np.percentile(last, 95))
        elif self.high_of == "max":
            found = max(last)
        else:
            found = float(np.mean(last) + 2 * (np.std(last, ddof=1) if len(last) > 1 else 0.0))
        return min(found, MAXIMUM_W)

    def estimate(self, alike: int, project: int) -> tuple[float, int, list[float]]:
        for source, samples in ((OWN, self.own.get(alike, [])),
                                (PROJECT, self.project.get(project, []))):  # fmt: skip
            if len(samples) >= self.least:
                return self.high(samples), source, samples[-self.kept :]
        return MAXIMUM_W, UNKNOWN, []

    def begin(self, job: int, alike: int, project: int) -> None:
        profile, source, behind = self.estimate(alike, project)
        self.runs[job] = {"alike": alike, "project": project, "profile": profile, "total": 0,
                          "source": source, "behind": behind, "since": []}  # fmt: skip

    def rejected(self, one: list[float], two: list[float]) -> bool:
        if len({*one}) == 1 and len({*two}) == 1:
            return one[0] != two[0]
        from scipy.stats import ttest_ind

        with warnings.catch_warnings(action="ignore"):  # of one that is constant
            t = abs(float(ttest_ind(one, two, equal_var=True).statistic))
        limit = quantile(len(one) + len(two) - 2)
        self.margin = min(self.margin, abs(t - limit))
        return t > limit

    def sample(self, job: int, watts: float) -> None:
        run = self.runs[job]
        own = self.own.setdefault(run["alike"], [])
        project = self.project.setdefault(run["project"], [])
        for samples in (run["since"], own, project):
            samples.append(watts)
        run["total"] += 1
        if run["total"] < self.least:
            return
        since = run["since"][-self.kept :]
        if run["source"] == UNKNOWN:
            profile, source, behind = self.estimate(run["alike"], run["project"])
            if source != UNKNOWN:
                run.update(profile=profile, source=source, behind=behind, since=[])
        elif len(since) < self.least or (
            run["source"] != REJECTED and not self.rejected(run["behind"], since)
        ):
            return
        elif len(project) >= self.least and not self.rejected(project[-self.kept :], since):
            run.update(profile=self.high(project), source=PROJECT, since=[],
                       behind=project[-self.kept :])  # fmt: skip
        elif run["source"] != REJECTED:
            run.update(profile=MAXIMUM_W, source=REJECTED, behind=[], since=[])
        elif self.relearn:
            run.update(profile=self.high(since), source=OWN, behind=since, since=[])


@cache
def quantile(freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.995, freedom))


class Learner:
    """The learner of one test: jobs 0 to 3 are alike, 4 and 5, 6 and 7; the first six have one
    project."""

    alike_of = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    project_of = np.array([0, 0, 0, 0, 0, 0, 1, 1])

    def __init__(self, kept: int = 100, running: int = 8, **options: Any) -> None:
        self.kept = kept
        self.learned = Learned(**new(8, 3, 2, running, kept))
        self.settings = new_settings(MAXIMUM_W, kept=kept, **options)

    def begin(self, job: int) -> int:
        return begin(self.learned, job, self.alike_of[job], self.project_of[job], self.settings)

    def sample(self, jobs: list[int], watts: list[float]) -> int:
        return take_samples(self.learned, np.array(jobs, np.int64), np.array(watts, np.float64),
                            self.alike_of, self.project_of, self.settings)  # fmt: skip

    def draw(self, job: int, *watts: float) -> list[tuple[float, int]]:
        """Returns profile and source after each of these samples."""
        found = []
        for each in watts:
            self.sample([job], [each])
            found.append(self.profile(job))
        return found

    def profile(self, job: int) -> tuple[float, int]:
        return float(self.learned.profile_w[job]), int(self.learned.source[job])

    def estimate(self, job: int) -> tuple[float, int]:
        watts, source = np.zeros(1), np.zeros(1, np.int64)
        estimates(self.learned, np.array([job]), self.alike_of, self.project_of, self.settings,
                  watts, source)  # fmt: skip
        return float(watts[0]), int(source[0])


def around(mean: float, n: int, seed: int = 1) -> list[float]:
    noise = np.random.default_rng(seed).normal(0.0, 1.0, n)
    return [float(each) for each in mean + noise - noise.mean()]


LEVELS = (50.0, 50.0, 52.0, 80.0, 81.5, 170.0)
EVENTS = st.lists(
    st.tuples(st.sampled_from(["begin", "finish", "sample", "sample", "sample", "all", "all"]),
              st.sampled_from([0, 1, 4, 5, 6]), st.sampled_from(LEVELS), st.integers(1, 16)),
    min_size=10, max_size=30,
)  # fmt: skip


samples = given(
    events=EVENTS,
    seed=st.integers(0, 2**32),
    high=st.sampled_from(HIGHS),
    relearn=st.booleans(),
    noise=st.sampled_from([0.0, 1.5]),
    counts=st.sampled_from([(4, 30, 3), (5, 9, 9), (2, 3, 3)]),
)


@examples(4)
@samples
def test_it_does_what_a_learner_of_lists_does(**case: Any) -> None:
    assert_the_same_is_learned(**case)


@pytest.mark.long
@settings(max_examples=100)
@samples
def test_it_does_what_a_learner_of_lists_does_at_length(**case: Any) -> None:
    assert_the_same_is_learned(**case)


def assert_the_same_is_learned(
    events: list[tuple[str, int, float, int]],
    seed: int,
    high: str,
    relearn: bool,
    noise: float,
    counts: tuple[int, int, int],
) -> None:
    least, kept, window = counts
    options: dict[str, Any] = {"least": least, "high": high, "window": window, "relearn": relearn}
    learner, twin = Learner(kept, **options), Twin(kept=kept, **options)
    rng = np.random.default_rng(seed)
    start = [("begin", job, 0.0, 0) for job in (0, 4, 5)]
    for what, job, level, times in [*start, *events]:
        if what == "begin" and job not in twin.runs:
            assert learner.estimate(job) == pytest.approx(twin.estimate(*ids(job))[:2], rel=1e-12)
            assert learner.begin(job) >= 0
            twin.begin(job, *ids(job))
        elif what == "finish" and twin.runs.pop(job, None):
            finish(learner.learned, job)
        elif what in ("sample", "all"):
            jobs = [each for each in twin.runs if what == "all" or each == job]
            for _ in range(times if jobs else 0):
                watts = [(level if each == job else 50.0) + noise * float(rng.normal())
                         for each in jobs]  # fmt: skip
                learner.sample(jobs, watts)
                for each, its in zip(jobs, watts, strict=True):
                    twin.sample(each, its)
                assume(twin.margin > 1e-9)
                for each in jobs:
                    run = twin.runs[each]
                    assert learner.profile(each) == pytest.approx(
                        (run["profile"], run["source"]), rel=1e-12
                    )
        for each, run in twin.runs.items():
            assert learner.profile(each)[1] == run["source"]


def ids(job: int) -> tuple[int, int]:
    return int(Learner.alike_of[job]), int(Learner.project_of[job])


def test_a_month_of_noise_is_learned_as_by_a_learner_of_lists() -> None:
    options: dict[str, Any] = {"least": 20, "high": "p95", "window": 20, "relearn": True}
    learner, twin = Learner(**options), Twin(kept=100, **options)
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(25):
        jobs = [int(job) for job in rng.permutation(8)[: rng.integers(1, 4)]]
        for job in jobs:
            learner.begin(job)
            twin.begin(job, *ids(job))
        for phase in range(2):
            level = [60.0 + 2 * ids(job)[0] + rng.integers(0, 2) * 20 * phase for job in jobs]
            for _ in range(rng.integers(10, 60)):
                watts = [each + float(rng.normal()) for each in level]
                learner.sample(jobs, watts)
                for job, each in zip(jobs, watts, strict=True):
                    twin.sample(job, each)
                    run = twin.runs[job]
                    seen.add(run["source"])
                    assert learner.profile(job) == pytest.approx(
                        (run["profile"], run["source"]), rel=1e-12
                    )
        for job in jobs:
            finish(learner.learned, job)
            del twin.runs[job]
    assert twin.margin > 1e-9
    assert seen == {UNKNOWN, OWN, PROJECT, REJECTED}


def test_the_first_profile_comes_with_the_twentieth_sample() -> None:
    learner = Learner()
    learner.begin(0)
    found = learner.draw(0, *[70.0] * 30)
    assert found[:19] == [(MAXIMUM_W, UNKNOWN)] * 19
    assert found[19:] == [(70.0, OWN)] * 11


def test_a_waiting_job_goes_by_its_own_history_then_its_projects_then_the_maximum() -> None:
    learner = Learner()
    learner.begin(0)
    learner.draw(0, *[70.0] * 19)
    assert [learner.estimate(job) for job in (1, 4, 6)] == [(MAXIMUM_W, UNKNOWN)] * 3
    learner.draw(0, 70.0)
    assert learner.estimate(1) == (70.0, OWN)
    assert learner.estimate(4) == (70.0, PROJECT)
    assert learner.estimate(6) == (MAXIMUM_W, UNKNOWN)


def test_the_next_run_is_not_tested_before_its_twentieth_sample() -> None:
    learner = Learner()
    learner.begin(0)
    learner.draw(0, *[70.0] * 40)
    learner.begin(1)
    found = learner.draw(1, *[90.0] * 20)
    assert found == [(70.0, OWN)] * 19 + [(MAXIMUM_W, REJECTED)]


def test_a_job_whose_power_doubles_after_80_minutes_goes_to_the_maximum() -> None:
    learner = Learner()
    learner.begin(0)
    learner.begin(4)  # stands for ten jobs of the same project
    sources = []
    for at, others in enumerate(np.reshape(around(60, 600), (60, 10))):
        learner.draw(4, *others)
        learner.draw(0, 60.0 + at % 3 if at < 20 else 120.0 + at % 3)
        sources.append(learner.profile(0)[1])
    assert sources[18:21] == [UNKNOWN, OWN, OWN]
    changed = sources.index(REJECTED)
    assert changed == 39  # 20 samples since it had a profile
    assert set(sources[changed:]) == {REJECTED}
    assert learner.profile(0)[0] == MAXIMUM_W


def test_unless_its_project_looks_like_that() -> None:
    learner = Learner()
    learner.begin(0)
    learner.draw(0, *around(60, 22))
    learner.begin(4)  # of the same project, and not alike
    learner.draw(4, *around(120, 200, 2))
    finish(learner.learned, 0)
    learner.begin(1)
    found = learner.draw(1, *around(120, 60, 3))
    assert [source for _, source in found] == [OWN] * 19 + [PROJECT] * 41
    assert 120 < found[-1][0] < 123


def test_a_job_alone_in_its_project_is_compared_with_itself() -> None:
    learner = Learner()
    learner.begin(0)
    learner.draw(0, *around(60, 40))
    found = learner.draw(0, *around(120, 20, 2))
    assert found[0][1] == OWN
    assert found[-1][1] == PROJECT
    assert found[-1][0] == pytest.approx(121, abs=1)


def test_a_rejected_job_comes_back_when_its_project_stands_for_it() -> None:
    learner = Learner()
    learner.begin(4)
    learner.draw(4, *around(60, 150))
    learner.begin(0)
    learner.draw(0, *around(120, 20, 2))  # 20 of the project's latest 100
    assert learner.profile(0) == (MAXIMUM_W, REJECTED)
    found = learner.draw(0, *around(120, 100, 3))
    assert found[18] == (MAXIMUM_W, REJECTED)
    assert found[-1][1] == PROJECT


def test_a_rejected_job_relearns_only_if_asked() -> None:
    for relearn in (False, True):
        learner = Learner(relearn=relearn)
        learner.begin(0)
        learner.begin(4)
        learner.draw(0, *[60.0] * 30)
        for _ in range(60):
            learner.sample([4, 0], [60.0, 100.0])
        expected = (100.0, OWN) if relearn else (MAXIMUM_W, REJECTED)
        assert learner.profile(0) == expected


def test_without_variance_equal_means_are_kept_and_others_rejected() -> None:
    for watts, source in ((0.1, OWN), (0.1 * (1 + 1e-15), OWN), (0.1001, REJECTED)):
        learner = Learner()
        learner.begin(0)
        learner.draw(0, *[0.1] * 77)
        finish(learner.learned, 0)
        learner.begin(1)
        assert learner.draw(1, *[watts] * 20)[-1][1] == source


@given(st.lists(st.floats(0, 150), min_size=20, max_size=45), st.integers(1, 30))
def test_the_profile_is_numpys_percentile_of_the_latest_samples(
    samples: list[float], window: int
) -> None:
    learner = Learner(kept=30, window=window)
    learner.begin(0)
    learner.draw(0, *samples)
    assert learner.estimate(1) == (float(np.percentile(samples[-window:], 95)), OWN)


@given(st.lists(st.floats(0, 150), min_size=20, max_size=45))
def test_the_profile_may_be_the_largest_sample_or_two_deviations_up(samples: list[float]) -> None:
    last = samples[-20:]
    expected = {"max": max(last), "mean+2sd": min(np.mean(last) + 2 * np.std(last, ddof=1), 160.0)}
    for high, watts in expected.items():
        learner = Learner(high=high)
        learner.begin(0)
        learner.draw(0, *samples)
        assert learner.estimate(1)[0] == pytest.approx(watts, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("high", HIGHS)
def test_no_profile_exceeds_the_devices_maximum(high: str) -> None:
    learner = Learner(high=high)
    learner.begin(0)
    learner.draw(0, *around(MAXIMUM_W + 50, 30))
    assert learner.profile(0) == (MAXIMUM_W, OWN)
    assert learner.estimate(1) == (MAXIMUM_W, OWN)


def test_the_quantiles_are_students_to_ten_digits() -> None:
    from scipy.stats import t

    table = critical(0.01, 200)
    assert table[0] == np.inf
    assert table[1:] == pytest.approx(t.ppf(0.995, np.arange(1, 201)), rel=1e-9)
    assert table[38] == 2.711557602  # Student's, as printed tables have it: 2.7116
    assert [float(f"{each:.10g}") for each in table] == table.tolist()


def test_sets_of_jobs_are_counted_once_seen_and_once_known() -> None:
    learner = Learner()

    def rate() -> tuple[int, int]:
        return known(learner.learned, learner.settings)

    assert rate() == (0, 0)
    three = np.array([0, 1, 6])
    estimates(learner.learned, three, learner.alike_of, learner.project_of, learner.settings,
              np.zeros(3), np.zeros(3, np.int64))  # fmt: skip
    assert rate() == (0, 2)
    learner.begin(0)
    learner.draw(0, *[70.0] * 19)
    assert rate() == (0, 2)
    learner.draw(0, 70.0)
    assert rate() == (1, 2)
    learner.estimate(4)  # seen now, and its project is known
    assert rate() == (2, 3)


def test_slots_are_used_again_and_never_two_at_once() -> None:
    learner = Learner(running=2)
    first, second = learner.begin(0), learner.begin(1)
    assert {first, second} == {0, 1}
    assert learner.begin(2) == -1
    assert learner.sample([0, 1, 2], [50.0, 60.0, 70.0]) == 2
    finish(learner.learned, 0)
    finish(learner.learned, 0)
    assert learner.begin(2) == first
    assert learner.begin(3) == -1


def test_what_is_no_sample_is_not_taken() -> None:
    learner = Learner()
    learner.begin(0)
    assert learner.sample([0, 0, 0, 0], [np.nan, np.inf, -1.0, 0.0]) == 1
    assert learner.learned.own_seen[0] == 1


def test_it_lives_in_a_policys_memory() -> None:
    class Keeper:
        name = "keeper"

        def remembers(self, sizes: Sizes) -> dict[str, Any]:
            return new(sizes.jobs, 3, 2, 5)

    buffer, (layout,) = remembered((Keeper(),), Sizes(8, 1, 1, 1, 1))
    learner = Learner()
    for at in range(30):
        memory = memory_of(layout, buffer.copy())
        learner.learned = Learned(*(getattr(memory, each) for each in Learned._fields))
        if at == 0:
            learner.begin(0)
        learner.draw(0, 70.0)
        for name, array in learner.learned._asdict().items():
            getattr(memory_of(layout, buffer), name)[...] = array
    assert learner.profile(0) == (70.0, OWN)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maximum_w": 0.0}, "maximum_w = 0.0"),
        ({"least": 1}, "least = 1"),
        ({"least": 101}, "100 are kept"),
        ({"window": 0}, "window = 0"),
        ({"high": "p99"}, "one of p95"),
        ({"alpha": 1.0}, "alpha = 1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        new_settings(**{"maximum_w": 100.0, **options})


DRIVE = """
import hashlib
import numpy as np
from policies.power.learning import *
from policies.power.learning import Learned
alike, project, rng = np.arange(6) // 2, np.arange(6) // 4, np.random.default_rng(5)
digest = hashlib.sha256()
for high in ("p95", "max", "mean+2sd"):
    learned = Learned(**new(6, 3, 2, 6, 30))
    settings = new_settings(99.0, high=high, least=8, kept=30, relearn=True)
    for run in range(8):
        for job in range(6):
            begin(learned, job, alike[job], project[job], settings)
        for step in range(25):
            level = 60.0 + 15.0 * (step > 11) * (run % 2)
            take_samples(learned, np.arange(6), rng.normal(level, 2.0, 6), alike, project, settings)
            digest.update(learned.profile_w.tobytes() + learned.reference.tobytes())
    for array in learned:
        digest.update(array.tobytes())
    print(sorted(set(learned.source.tolist())), known(learned, settings))
print(digest.hexdigest())
"""


@pytest.mark.long
def test_the_same_bits_are_learned_without_the_compiler(python: Callable[..., str]) -> None:
    assert python(DRIVE, jit="0") == python(DRIVE, jit="1")
