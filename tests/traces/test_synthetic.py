"""Models of jobs: what they draw is what they say. All seeds are fixed, so nothing here is left to
chance; tolerances are some standard errors wide."""

import numpy as np
import pytest

from odonata.traces import lublin as lublin_model
from odonata.traces import mira as mira_model
from odonata.traces.distributions import (
    Constant,
    Exact,
    Exponential,
    Factor,
    Hyperexponential,
    Lognormal,
    SizesAmong,
    Uniform,
    UniformSizes,
    powers_of_two,
    same_size,
    stream,
)
from odonata.traces.lublin import lublin
from odonata.traces.mira import mira_year
from odonata.traces.poisson import poisson
from odonata.traces.trace import SECOND
from pdes.errors import Refused

HOUR = 3600 * SECOND
MINUTE = 60 * SECOND


@pytest.fixture(scope="module")
def year():
    return mira_year()


def hours_of_day(trace):
    return np.bincount(trace.submit_us // HOUR % 24, minlength=24) / len(trace)


MODELS = {
    "poisson": lambda seed: poisson(500, 64, seed=seed, users=7, requests=Factor()),
    "lublin": lambda seed: lublin(500, 128, seed=seed, load=0.7, kinds="both"),
    "mira": lambda seed: mira_year(seed, days=20),
}


@pytest.mark.parametrize("model", MODELS)
def test_a_seed_is_a_trace_and_another_seed_another(model):
    one, same, other = MODELS[model](1), MODELS[model](1), MODELS[model](2)
    assert all((dict(same.columns())[name] == column).all() for name, column in one.columns())
    assert (one.users, one.projects, one.applications) == (
        same.users, same.projects, same.applications)  # fmt: skip
    assert (one.submit_us != other.submit_us).any()
    assert (one.run_us != other.run_us).any()


@pytest.mark.parametrize("model", MODELS)
def test_a_model_says_what_it_is(model):
    trace = MODELS[model](3)
    assert "Seed: 3" in trace.header
    assert trace.header[0].startswith("Model: ")
    assert f"jobs = {len(trace)}" in trace.header[1]
    assert trace.account.records == len(trace)
    assert not trace.account.lines()
    assert (trace.number == np.arange(1, len(trace) + 1)).all()
    assert trace.machine_nodes
    assert trace.nodes.max() <= trace.machine_nodes
    assert (trace.requested_us >= trace.run_us).all()
    assert (trace.wait_us == -1).all()


@pytest.mark.parametrize("model", MODELS)
def test_names_are_in_order_of_appearance(model):
    trace = MODELS[model](1)
    for column, names in ((trace.user, trace.users), (trace.project, trace.projects),
                          (trace.application, trace.applications)):  # fmt: skip
        _, first = np.unique(column, return_index=True)
        assert len(first) == len(names)
        assert (np.diff(first) > 0).all()
        assert all(names)
    assert trace.users[0] == "user 1"
    assert trace.projects[-1] == f"project {len(trace.projects)}"


# --- distributions ---


@pytest.mark.parametrize(
    ("runs", "variation"),
    [(Constant(40.0), 0.0), (Exponential(40.0), 1.0), (Uniform(10.0, 70.0), 60 / 40 / 12**0.5),
     (Lognormal(40.0, 1.5), 1.5), (Hyperexponential(40.0, 3.0), 3.0),
     (Hyperexponential(40.0, 1.0), 1.0)],
)  # fmt: skip
def test_run_times_have_the_mean_and_the_variation_that_they_name(runs, variation):
    drawn = runs.draw(stream(1, 1), 400_000)
    assert runs.mean == 40.0
    assert (drawn > 0).all()
    assert drawn.mean() == pytest.approx(40.0, rel=0.015)
    assert drawn.std() / drawn.mean() == pytest.approx(variation, rel=0.03)


@pytest.mark.parametrize(
    ("sizes", "mean", "shares"),
    [(same_size(8), 8, {8: 1.0}), (UniformSizes(3, 6), 4.5, {3: 0.25, 6: 0.25}),
     (SizesAmong((2, 7), (3.0, 1.0)), 3.25, {2: 0.75, 7: 0.25}),
     (powers_of_two(10), 3.75, {1: 0.25, 2: 0.25, 4: 0.25, 8: 0.25}),
     (powers_of_two(4, (0.0, 1.0, 1.0)), 3.0, {1: 0.0, 2: 0.5, 4: 0.5})],
)  # fmt: skip
def test_sizes_are_drawn_as_often_as_they_say(sizes, mean, shares):
    drawn = sizes.draw(stream(1, 1), 100_000)
    assert sizes.mean == mean
    assert drawn.max() == sizes.largest
    for size, share in shares.items():
        assert (drawn == size).mean() == pytest.approx(share, abs=0.006)


def test_requests_are_exact_or_a_factor_of_the_run_time_in_whole_minutes():
    run_us = np.array([0, 1, 59 * SECOND, 60 * SECOND, 61 * SECOND, 10**12])
    assert (Exact().draw(stream(1, 1), run_us) == [1, *run_us[1:]]).all()
    asked = Factor(most=3.0).draw(stream(1, 1), run_us)
    assert (asked >= run_us).all()
    assert (asked % MINUTE == 0).all()
    assert (asked > 0).all()
    assert (asked < 3 * run_us + MINUTE + 1).all()
    always_half = Factor(most=0.5, least=0.5).draw(stream(1, 1), run_us)
    assert always_half[-1] == 10**12 // 2 // MINUTE * MINUTE + MINUTE


# --- Poisson ---


def test_poisson_submissions_have_the_rate_that_gives_the_load():
    trace = poisson(200_000, 10, load=0.6, runs=Exponential(50.0))
    gaps = np.diff(trace.submit_us) / SECOND
    assert trace.submit_us[0] == 0
    assert gaps.mean() == pytest.approx(50.0 / (0.6 * 10), rel=0.01)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, rel=0.01)
    assert trace.run_us.mean() == pytest.approx(50.0 * SECOND, rel=0.01)
    assert (trace.nodes == 1).all()
    assert (trace.requested_us == trace.run_us).all()


@pytest.mark.parametrize("load", [0.3, 0.9, 1.4])
def test_poisson_jobs_offer_the_load_whatever_their_distributions(load):
    trace = poisson(200_000, 100, load=load, sizes=powers_of_two(64), runs=Lognormal(900.0, 1.5))
    assert trace.load(100) == pytest.approx(load, rel=0.03)


def test_one_server_waits_as_long_as_theory_says():
    trace = poisson(1_000_000, 1, load=0.7, runs=Exponential(60.0))
    grown = trace.run_us[:-1] - np.diff(trace.submit_us)
    walk = np.concatenate([[0], np.cumsum(grown)])
    wait_us = walk - np.minimum.accumulate(walk)  # Lindley
    expected = 60.0 * SECOND * 0.7 / 0.3
    assert wait_us.mean() == pytest.approx(expected, rel=0.024)  # three standard errors


def test_other_sizes_leave_submissions_in_proportion():
    one = poisson(1000, 64, seed=5)
    other = poisson(1000, 64, seed=5, sizes=same_size(2))
    assert np.allclose(other.submit_us, 2 * one.submit_us, atol=2)
    assert (one.run_us == other.run_us).all()


def test_users_are_as_many_as_asked_for_and_the_first_are_busy():
    trace = poisson(20_000, 4, users=12)
    jobs_of = np.sort(np.bincount(trace.user))[::-1]
    assert len(trace.users) == 12
    assert len(trace.projects) == 3
    assert jobs_of[0] / jobs_of[1] == pytest.approx(2.0, rel=0.1)


# --- Lublin and Feitelson ---


PUBLISHED = (lublin_model.COMBINED, lublin_model.BATCH, lublin_model.INTERACTIVE)


def test_lublin_constants_are_those_of_the_program_for_128_nodes():
    """As m_lublin99.c has them: serial, power of two; ULow, UMed, UHi, Uprob; a1, b1, a2, b2, pa,
    pb; aarr, barr, anum, bnum, arar."""
    found = [(k.serial, k.pow2, k.ulow, 7 - k.uhi_below - k.umed_below, 7 - k.uhi_below, k.uprob,
              k.a1, k.b1, k.a2, k.b2, k.pa, k.pb, k.aarr, k.barr, k.anum, k.bnum, k.arar)
             for k in PUBLISHED]  # fmt: skip
    assert found == [
        (0.244, 0.576, 0.8, 4.5, 7, 0.86, 4.2, 0.94, 312, 0.03, -0.0054, 0.78,
         10.2303, 0.4871, 8.1737, 3.9631, 1.0225),
        (0.2927, 0.6686, 1.2, 5, 7, 0.875, 6.57, 0.823, 639.1, 0.0156, -0.003, 0.6986,
         6.0415, 0.8531, 6.1271, 5.2740, 1.0519),
        (0.1541, 0.625, 1, 3, 5.5, 0.705, 3.8351, 0.6605, 7.073, 0.6856, -0.0118, 0.9156,
         6.5510, 0.6621, 8.9186, 3.6680, 0.9797),
    ]  # fmt: skip


def uniform_in_two_stages(kind, nodes, points=200_001):
    """log2 of sizes, evenly spaced in probability."""
    high = np.log2(nodes) - kind.uhi_below
    middle = high - kind.umed_below
    u = (np.arange(points) + 0.5) / points
    return np.where(u < kind.uprob,
                    kind.ulow + u / kind.uprob * (middle - kind.ulow),
                    middle + (u - kind.uprob) / (1 - kind.uprob) * (high - middle))  # fmt: skip


@pytest.mark.parametrize("kind", PUBLISHED, ids=lambda kind: kind.name)
def test_lublin_sizes_are_serial_and_powers_of_two_as_often_as_published(kind):
    nodes = lublin(60_000, 128, kinds=(kind,)).nodes
    assert (nodes == 1).mean() == pytest.approx(kind.serial, abs=0.006)
    log2 = uniform_in_two_stages(kind, 128)
    others = np.floor(2**log2 + 0.5).astype(int)
    by_chance = ((others & (others - 1)) == 0).mean()
    expected = kind.pow2 + (1 - kind.serial - kind.pow2) * by_chance
    power = (nodes > 1) & ((nodes & (nodes - 1)) == 0)
    assert power.mean() == pytest.approx(expected, abs=0.007)
    mean = (kind.serial + kind.pow2 * (2 ** np.floor(log2 + 0.5)).mean()
            + (1 - kind.serial - kind.pow2) * others.mean())  # fmt: skip
    assert nodes.mean() == pytest.approx(mean, rel=0.02)
    assert nodes.max() == {"combined": 128, "batch": 128, "interactive": 45}[kind.name]


@pytest.mark.parametrize("kind", PUBLISHED, ids=lambda kind: kind.name)
def test_lublin_run_times_of_serial_jobs_are_two_gammas(kind):
    trace = lublin(100_000, 128, kinds=(kind,))
    run_s = trace.run_us[trace.nodes == 1] / SECOND
    rng, p = stream(99, 0), kind.pa + kind.pb
    first = rng.random(400_000) < p
    logs = np.where(first, kind.b1 * rng.standard_gamma(kind.a1, 400_000),
                    kind.b2 * rng.standard_gamma(kind.a2, 400_000))  # fmt: skip
    logs = logs[logs <= 12]
    assert (run_s % 1 == 0).all()
    assert run_s.min() >= 1
    assert run_s.max() < np.exp(12)
    for limit_s in (10, 100, 1000, 5000, 10_000, 20_000):
        assert (run_s < limit_s).mean() == pytest.approx((np.exp(logs) < limit_s).mean(), abs=0.012)


def test_larger_lublin_jobs_run_longer():
    trace = lublin(50_000, 128)
    long = trace.run_us > 5000 * SECOND
    small, large = trace.nodes <= 4, trace.nodes >= 64
    assert long[large].mean() > long[small].mean() + 0.25


def test_lublin_arrivals_have_the_published_daily_cycle():
    """Against the gamma distribution itself, summed in steps of a hundredth of a half hour."""
    kind = lublin_model.COMBINED
    steps = np.arange(10.5, 58.5, 0.01) + 0.005
    density = steps ** (kind.anum - 1) * np.exp(-steps / kind.bnum)
    expected = np.roll(density.reshape(48, 100).sum(axis=1), 10)
    assert lublin_model.daily_weights(kind) == pytest.approx(expected / expected.mean(), rel=1e-4)
    found = hours_of_day(lublin(100_000, 128))
    assert found == pytest.approx(expected.reshape(24, 2).sum(axis=1) / expected.sum(), abs=0.004)
    assert found[11:18].min() > 6 * found[4]
    assert found.argmin() in (4, 5)


def test_the_lublin_clock_pays_for_each_half_hour_as_it_passes():
    """One job after the other, as the model is described: a gap buys time, dear in busy hours."""
    kind = lublin_model.BATCH
    weights = lublin_model.daily_weights(kind)
    gaps = np.exp(stream(97, 0).normal(7.0, 2.0, 500))
    bucket, left, passed, expected = 0, 0.0, 0.0, []
    for gap in gaps:
        left += gap / 1800
        while left > weights[bucket % 48]:
            left -= weights[bucket % 48]
            bucket += 1
            passed += 1800
        expected.append(passed + 1800 * left / weights[bucket % 48])
    assert bucket > 10 * 48
    assert lublin_model.in_day(kind, np.cumsum(gaps)) == pytest.approx(np.array(expected))


def test_lublin_gaps_have_the_published_mean():
    kind = lublin_model.COMBINED
    logs = kind.barr * stream(98, 0).standard_gamma(kind.aarr * kind.arar, 1_000_000)
    mean_s = np.exp(logs[logs <= 13]).mean()
    trace = lublin(100_000, 128)
    assert trace.span_us / SECOND / len(trace) == pytest.approx(mean_s, rel=0.04)


@pytest.mark.parametrize("kinds", ["combined", "both"])
def test_lublin_arrivals_are_brought_to_a_load_and_keep_their_day(kinds):
    own = lublin(100_000, 256, kinds=kinds)
    trace = lublin(100_000, 256, kinds=kinds, load=0.85)
    assert trace.load(256) == pytest.approx(0.85, rel=1e-6)
    assert sorted(trace.nodes) == sorted(own.nodes)
    assert hours_of_day(trace) == pytest.approx(hours_of_day(own), abs=0.012)


def test_lublin_kinds_are_applications():
    trace = lublin(20_000, 128, kinds="both")
    assert sorted(trace.applications) == ["batch", "interactive"]
    interactive = trace.application == trace.applications.index("interactive")
    assert 0.8 < interactive.mean() < 0.9
    assert trace.run_us[interactive].mean() < trace.run_us[~interactive].mean() / 10


@pytest.mark.parametrize("nodes", [1, 2, 3, 100, 1056])
@pytest.mark.parametrize("kinds", ["combined", "both"])
def test_lublin_jobs_fit_machines_of_any_size(nodes, kinds):
    trace = lublin(3000, nodes, kinds=kinds)
    assert trace.nodes.min() == 1
    assert nodes / 2 < trace.nodes.max() <= nodes


# --- Mira ---


def test_a_mira_year_has_the_jobs_and_the_machine_that_are_stated(year):
    assert len(year) == 24_565
    assert year.machine_nodes == 49_152 == 48 * 1024
    assert 364 < year.span_us / (24 * HOUR) < 365.1
    assert year.load(49_152) == pytest.approx(0.83, rel=1e-4)
    assert set(year.nodes) == set(mira_model.SIZES)
    assert (year.nodes % 512 == 0).all()


def test_mira_sizes_have_the_shares_that_were_chosen(year):
    shares = [(year.nodes == size).mean() for size in mira_model.SIZES]
    assert mira_model.SHARES.sum() == pytest.approx(1.0)
    assert shares == pytest.approx(mira_model.SHARES, abs=0.01)


def test_mira_requests_are_round_and_within_limits(year):
    minutes = year.requested_us / MINUTE
    assert (minutes % 5 == 0).all()
    assert minutes.min() >= 5
    assert minutes.max() <= 24 * 60
    assert minutes[year.nodes <= 4096].max() <= 12 * 60
    assert 0.005 < (year.run_us == year.requested_us).mean() < 0.1
    assert 0.4 < (year.run_us / year.requested_us).mean() < 0.8


def test_most_mira_jobs_reach_twenty_samples_of_four_minutes(year):
    assert 0.6 < (year.run_us >= 80 * MINUTE).mean() < 0.9


def test_jobs_of_a_mira_recipe_repeat_each_other(year):
    recipe = np.unique(np.stack([year.application, year.nodes]), axis=1, return_inverse=True)[1]
    log_run = np.log(year.run_us)
    middle = np.array([np.median(log_run[recipe == one]) for one in range(recipe.max() + 1)])
    within = np.abs(log_run - middle[recipe])
    assert np.median(within) < 0.15 < 0.3 < np.median(np.abs(log_run - np.median(log_run)))


def test_a_mira_code_or_user_is_of_one_project(year):
    for column in (year.application, year.user):
        pairs = np.unique(np.stack([column, year.project]), axis=1)
        assert pairs.shape[1] == column.max() + 1


def test_after_26_days_nearly_all_mira_jobs_are_of_projects_that_are_known(year):
    """A project is known once a job of it has run for 80 minutes."""
    known = np.full(len(year.projects), np.inf)
    long = year.run_us >= 80 * MINUTE
    np.minimum.at(known, year.project[long], (year.submit_us + 80 * MINUTE)[long])
    later = year.submit_us > 26 * 24 * HOUR
    assert (known[year.project] < year.submit_us)[later].mean() > 0.94
    begun = np.full(len(year.projects), 0)
    begun[year.project[::-1]] = year.submit_us[::-1] // (24 * HOUR)
    assert (begun >= mira_model.LATE_DAY).sum() >= mira_model.LATE_PROJECTS * 0.8


def test_mira_submissions_follow_day_and_week(year):
    hours = hours_of_day(year)
    assert hours[10:17].min() > 2 * hours[2:5].max()
    day = year.submit_us // (24 * HOUR)
    weekend = np.isin((day + 2) % 7, (5, 6))  # Monday is 0, and the first day a Wednesday
    assert weekend.mean() == pytest.approx(1.1 / 6.45, abs=0.01)


def test_fewer_mira_days_have_as_many_jobs_a_day_and_the_same_load():
    month = mira_year(days=30, load=0.6)
    assert len(month) == round(24_565 * 30 / 365)
    assert month.load(49_152) == pytest.approx(0.6, rel=1e-3)
    assert len(mira_year(days=30, jobs=500)) == 500


# --- refusals ---


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("jobs = 0", lambda: poisson(0, 4)),
        ("jobs = 2.5", lambda: poisson(2.5, 4)),
        ("nodes = 0", lambda: poisson(1, 0)),
        ("load = 0: a finite number above 0", lambda: poisson(1, 4, load=0)),
        ("load = nan", lambda: poisson(1, 4, load=float("nan"))),
        ("seed = -1", lambda: poisson(1, 4, seed=-1)),
        ("users = 0", lambda: poisson(1, 4, users=0)),
        ("sizes up to nodes = 4", lambda: poisson(1, 4, sizes=same_size(5))),
        ("fit a trace", lambda: poisson(1000, 4, runs=Constant(1e11))),
        ("mean = -3", lambda: Exponential(-3)),
        ("high = 1", lambda: Uniform(2, 1)),
        ("variation = 0.5: 1 or more", lambda: Hyperexponential(1, 0.5)),
        ("largest = 2", lambda: UniformSizes(3, 2)),
        ("one for each of 2", lambda: SizesAmong((1, 2), (1.0,))),
        ("one of them above 0", lambda: SizesAmong((1, 2), (0.0, 0.0))),
        ("most = 0.5", lambda: Factor(most=0.5)),
        ("jobs = 0", lambda: lublin(0, 4)),
        ("jobs = 1: with a load", lambda: lublin(1, 4, load=0.5)),
        ("load = -1", lambda: lublin(9, 4, load=-1)),
        ("kinds = some: combined, both", lambda: lublin(9, 4, kinds="some")),
        ("days = 0", lambda: mira_year(days=0)),
        ("jobs = 1", lambda: mira_year(jobs=1)),
        ("load = 50: .* is accepted", lambda: mira_year(days=5, load=50)),
    ],
)
def test_nonsense_is_refused_by_name(words, make):
    with pytest.raises(Refused, match=words):
        make()
