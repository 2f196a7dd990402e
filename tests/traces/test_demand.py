"""The power of jobs: as on Mira over all of them, and repeated by those of one recipe. All seeds
are fixed, so nothing here is left to chance."""

import json
import sys
from dataclasses import fields, replace

import numpy as np
import pytest

from odonata.traces import demand as demand_model
from odonata.traces.demand import (
    PEAK_W,
    RACK_NODES,
    Demand,
    by_application,
    constant,
    level,
    like_mira,
    mean_at,
)
from odonata.traces.distributions import powers_of_two
from odonata.traces.mira import mira_year
from odonata.traces.poisson import poisson
from pdes.errors import Refused
from pdes.jit import entry

TABLE = {5: 56.60, 25: 61.20, 75: 71.03, 95: 74.57, 99: 77.99}
"""Table I of Wallace et al. (2016): percentiles of the jobs' power, in kW per rack."""


@pytest.fixture(scope="module")
def year():
    return mira_year()


def per_rack_kw(demand):
    return demand.mean_w * RACK_NODES / 1000


def columns(demand):
    return {one.name: getattr(demand, one.name) for one in fields(demand)}


@pytest.mark.parametrize("days", [365, 91])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_jobs_of_a_year_and_of_three_months_have_the_power_of_table_1(days, seed):
    kw = per_rack_kw(like_mira(mira_year(seed, days=days), seed + 10))
    assert kw.mean() == pytest.approx(65.76, rel=0.001)
    assert kw.std() == pytest.approx(6.18, rel=0.01)
    for percent, stated in TABLE.items():
        assert np.percentile(kw, percent) == pytest.approx(stated, rel=0.015), percent
    assert 36.48 < kw.min() < 38
    assert 97 < kw.max() < 100
    assert 0 < (kw > 90).sum() <= len(kw) / 1000, "a few are near the peak, and no more"


@pytest.mark.parametrize("share", [demand_model.CHANGE_SHARE, 1.0])
def test_no_node_draws_more_than_the_peak_not_even_behind_a_change(year, share, monkeypatch):
    monkeypatch.setattr(demand_model, "CHANGE_SHARE", share)
    demand = like_mira(year, 1)
    before = demand.mean_w / (demand.change_at + (1 - demand.change_at) * demand.change_to)
    for watts in (demand.mean_w, before, before * demand.change_to):
        assert watts.min() > 20
        assert watts.max() <= PEAK_W
    assert pytest.approx(97.65625) == PEAK_W


def test_projects_differ_greatly_their_users_slightly_and_repeats_hardly(year):
    demand = like_mira(year, 1)
    kw = per_rack_kw(demand)
    ordinary = (kw > 42) & (kw < 88)  # but for the few that are unlike their recipe

    def variance_left(*keys):
        """Returns the variance within groups, as a mean over jobs."""
        codes = np.zeros(len(year), np.int64)
        for key in keys:
            codes = codes * 10_000 + key
        codes, values = np.unique(codes[ordinary], return_inverse=True)[1], kw[ordinary]
        mean = np.bincount(codes, values) / np.bincount(codes)
        return float(((values - mean[codes]) ** 2).mean())

    whole = variance_left()
    within_projects = variance_left(year.project)
    within_users = variance_left(year.project, year.user)
    within_recipes = variance_left(year.project, year.user, year.application)
    assert whole > 10 * within_projects
    assert within_projects > 1.5 * within_users, "users of one project differ"
    assert within_users > 20 * within_recipes, "and so do the applications of one user"
    assert np.sqrt(within_recipes) / 65.76 == pytest.approx(0.001, rel=0.1)
    assert demand.spread.min() > 5 * np.sqrt(within_recipes) / 65.76, "well under the fluctuation"


def test_jobs_of_one_recipe_have_one_spread(year):
    demand = like_mira(year, 1)
    recipe = year.user * 10_000 + year.application
    _, first, codes = np.unique(recipe, return_index=True, return_inverse=True)
    assert (demand.spread == demand.spread[first][codes]).all()
    assert 0.01 <= demand.spread.min() < 0.0101 < 0.0199 < demand.spread.max() <= 0.02


def test_few_jobs_change_while_they_run(year):
    demand = like_mira(year, 1)
    changes = demand.change_to != 1
    assert 20 < changes.sum() < 80
    assert ((demand.change_at == 1) == ~changes).all()
    assert (np.abs(np.log(demand.change_to[changes])) > np.log(1.19)).all()
    assert (demand.change_to > 1).any()
    assert (demand.change_to < 1).any()


def test_a_seed_is_a_demand_and_another_seed_another(year):
    one, same, other = (columns(like_mira(year, seed)) for seed in (1, 1, 2))
    for name, column in one.items():
        assert (column == same[name]).all(), name
        assert (column != other[name]).any(), name


def test_a_large_project_is_no_tail():
    """One project with two fifths of the jobs leaves the distribution as it is at its ends."""
    trace = mira_year(days=91)
    heavy = np.arange(len(trace)) % 5 < 2
    trace = trace.where(slice(None), project=np.where(heavy, 0, trace.project),
                        user=np.where(heavy, 0, trace.user),
                        application=np.where(heavy, 0, trace.application))  # fmt: skip
    for seed in range(5):
        kw = per_rack_kw(like_mira(trace, seed))
        assert kw.mean() == pytest.approx(65.76, rel=0.001)
        for percent in (5, 95, 99):
            assert np.percentile(kw, percent) == pytest.approx(TABLE[percent], rel=0.015)


def test_without_projects_users_and_applications_jobs_of_one_size_repeat_each_other():
    trace = mira_year(days=91)
    nothing = np.zeros(len(trace), np.int64)
    strange = replace(trace, project=nothing, user=nothing, application=nothing,
                      projects=("",), users=("",), applications=("",))  # fmt: skip
    watts = like_mira(strange, 1).mean_w
    typical = {size: np.median(watts[trace.nodes == size]) for size in np.unique(trace.nodes)}
    assert len({*typical.values()}) == len(typical) == 10
    off = np.abs(watts / np.array([typical[size] for size in trace.nodes]) - 1)
    assert np.quantile(off, 0.99) < 0.004
    assert per_rack_kw(like_mira(strange, 1)).mean() == pytest.approx(65.76, rel=0.001)


def test_where_there_are_only_users_each_is_a_project():
    trace = poisson(4000, 64, users=40, sizes=powers_of_two(8))
    users_only = replace(trace, project=np.zeros(len(trace), np.int64), projects=("",))
    kw = per_rack_kw(like_mira(users_only, 1))
    mean = np.bincount(trace.user, kw) / np.bincount(trace.user)
    assert (kw - mean[trace.user]).std() < 0.5 * kw.std()


def test_one_recipe_is_one_level_and_no_jobs_are_no_demand():
    watts = like_mira(poisson(300, 4), 1).mean_w
    assert watts.mean() * RACK_NODES == pytest.approx(65_760, rel=0.001)
    assert watts.std() / watts.mean() < 0.002
    assert len(like_mira(poisson(300, 4).where(slice(0, 0)), 1)) == 0
    assert len(like_mira(poisson(300, 4).where(slice(0, 1)), 1)) == 1


def test_the_demand_of_a_part_of_a_trace_is_that_part_of_the_demand(year):
    demand = like_mira(year, 1)
    kept = year.nodes > 4096
    part = demand.where(kept)
    assert len(part) == kept.sum()
    for name, column in columns(part).items():
        assert (column == columns(demand)[name][kept]).all()
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_constant_and_by_application():
    trace = mira_year(days=20)
    same = constant(trace, 62.5)
    assert (same.mean_w == 62.5).all()
    assert (same.spread == 0).all()
    assert (same.change_to == 1).all()
    name = trace.applications[3]
    mixed = by_application(trace, {name: 80.0}, 60.0, spread=0.01)
    assert (mixed.mean_w == np.where(trace.application == 3, 80.0, 60.0)).all()
    assert (mixed.spread == 0.01).all()


def test_wrong_watts_are_refused():
    trace = mira_year(days=20)
    with pytest.raises(Refused, match="watts_per_node = -3: a finite number above 0"):
        constant(trace, -3)
    with pytest.raises(Refused, match="'hacc': the trace has no such application; it has 'appl"):
        by_application(trace, {"hacc": 70.0}, 60.0)
    with pytest.raises(Refused, match="watts of 'application 1' = nan"):
        by_application(trace, {"application 1": float("nan")}, 60.0)
    with pytest.raises(Refused, match=r"spread = 1\.5: a number from 0 to below 1"):
        constant(trace, 60.0, spread=1.5)
    with pytest.raises(Refused, match="seed = -1"):
        like_mira(trace, -1)
    one = np.ones(3)
    with pytest.raises(ValueError, match=r"spread: \(2,\) for 3 jobs"):
        Demand(one, one[:2], one, one)
    with pytest.raises(ValueError, match="mean_w, finite"):
        Demand(one * np.nan, one, one, one)


@entry
def fill(out, mean_w, spread, seed, job, first):
    for i in range(len(out)):
        out[i] = level(mean_w, spread, seed, job, first + i)


@entry
def walk(out, mean_w, change_at, change_to):
    for i in range(len(out)):
        out[i] = mean_at(mean_w, change_at, change_to, (i + 0.5) / len(out))


def levels_of(count, seed=7, job=3, first=0, spread=0.015):
    out = np.empty(count)
    fill(out, 64.0, spread, seed, job, first)
    return out


def test_levels_are_normal_around_the_mean():
    z = (levels_of(100_000) / 64 - 1) / 0.015
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    assert z.std() == pytest.approx(1, abs=0.01)
    for limit, share in ((1, 0.6827), (2, 0.9545)):
        assert (np.abs(z) < limit).mean() == pytest.approx(share, abs=0.006)
    assert 3.5 < np.abs(z).max() < 6
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 4 / np.sqrt(len(z)), "intervals share no words"


def test_a_level_depends_on_seed_job_and_interval_alone():
    some = levels_of(50)
    assert (levels_of(20, first=30) == some[30:]).all()
    assert not np.isin(levels_of(50, job=4), some).any()
    assert not np.isin(levels_of(50, seed=8), some).any()
    assert (levels_of(5, spread=0.0) == 64.0).all()


def test_a_change_keeps_the_mean_of_the_run():
    out = np.empty(1000)
    walk(out, 64.0, 0.25, 1.5)
    assert np.ptp(out[:250]) == np.ptp(out[250:]) == 0
    assert out[250] == pytest.approx(1.5 * out[249])
    assert out.mean() == pytest.approx(64.0)
    walk(out, 64.0, 1.0, 1.0)
    assert (out == 64.0).all()


def test_without_the_compiler_levels_are_the_same_to_the_last_bit(python):
    code = ("import sys, json; sys.path[:0] = json.loads(sys.argv[1])\n"
            "import test_demand as t\n"
            "print(json.dumps([x.hex() for x in t.levels_of(300).tolist()]))")  # fmt: skip
    plain = json.loads(python(code, json.dumps(sys.path)))
    assert plain == [x.hex() for x in levels_of(300).tolist()]
