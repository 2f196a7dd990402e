"""What holds of a job run's state at any time, for `--debug`, tests, and the end of every run."""

from __future__ import annotations

import numpy as np

from odonata.cluster import layout as w
from odonata.cluster.layout import State
from odonata.cluster.metrics import energies
from odonata.jobs.schedule import FINISHED, WAITING
from odonata.jobs.schedule import RUNNING as IS_RUNNING
from policies.power import floor as f
from policies.scheduling.desk import NEVER


def check(state: State, nodes: int) -> None:
    """Raise AssertionError where nodes, jobs, ends or energy of a machine were lost."""
    if len(state.kinds):
        _check_floor(state, nodes)
        return
    ctl, jobs = state.ctl, state.jobs
    running = state.running[: ctl[w.RUNNING]]
    held = jobs[running, w.NODES].sum()
    assert ctl[w.FREE] + held == ctl[w.ALL] == nodes, "a node was lost"
    assert (jobs[running, w.STATUS] == IS_RUNNING).all(), "a job that does not run holds nodes"
    assert (jobs[:, w.STATUS] == IS_RUNNING).sum() == len(running), "a running job was lost"
    assert (jobs[:, w.STATUS] >= FINISHED).sum() == ctl[w.DONE], "an end was lost"
    _check_ends(state)
    if ctl[w.POWERED]:
        _check_energy(state, nodes)
    queue = state.queue[ctl[w.FIRST] : ctl[w.LAST]]
    assert (np.diff(queue) > 0).all(), "the queue is out of order"
    if len(state.owner):
        owner = state.owner[:nodes]
        held = np.bincount(owner[owner >= 0], minlength=len(jobs))
        assert (held[running] == jobs[running, w.NODES]).all(), "a job has not its nodes"
        assert held.sum() == jobs[running, w.NODES].sum(), "a node has a job that does not run"


def _check_floor(state: State, nodes: int) -> None:
    """Check a machine that is regulated by type."""
    ctl, jobs, rows, tallies = state.ctl, state.jobs, state.rows, state.tallies
    status = jobs[:, w.STATUS]
    held = tallies[:, f.NODES].sum() + tallies[:, f.HALTED_NODES].sum()
    assert ctl[w.FREE] == state.floor[f.FREE], "idle nodes are counted twice"
    assert ctl[w.FREE] + held == ctl[w.ALL] == nodes, "a node was lost"
    assert (status >= FINISHED).sum() == ctl[w.DONE], "an end was lost"
    assert (status == IS_RUNNING).sum() == ctl[w.RUNNING], "a running job was lost"
    assert (status == WAITING).sum() == ctl[w.LAST] - ctl[w.FIRST], "a waiting job was lost"
    assert ctl[w.LAST] - ctl[w.FIRST] == state.floor[f.QUEUED], "a waiting job is not counted"
    paused = state.paused[: state.floor[f.PAUSED]]
    for kind, tally in enumerate(tallies):
        top = state.tops[tally[f.HEAP] :][: tally[f.RUNNING]]
        halted = paused[rows[paused, f.OF] == kind]
        assert (rows[top, f.OF] == kind).all(), "a job is among those of another type"
        assert (rows[top, f.SPOT] == np.arange(len(top))).all(), "a job has another place"
        assert rows[top, f.WIDTH].sum() == tally[f.NODES], "a node of a type was lost"
        assert rows[halted, f.WIDTH].sum() == tally[f.HALTED_NODES], "a suspended job was lost"
        assert len(halted) == tally[f.HALTED], "a suspended job is not counted"
        ends = state.progress[top, f.FINISH]
        above = (np.arange(1, len(top)) - 1) // 2
        assert (ends[above] <= ends[1:]).all(), "the heap of ends is out of order"
        if tally[f.STANDBY] == 0:
            mine = rows[: len(jobs), f.OF] == kind
            assert (mine & (status == WAITING)).sum() == tally[f.WAITING], "who waits was lost"
            running = tally[f.RUNNING] + tally[f.HALTED]
            assert (mine & (status == IS_RUNNING)).sum() == running, "who runs was lost"
    found = energies(state, max(int(ctl[w.METERED]), int(tallies[:, f.SINCE].max(initial=0))))
    by_type = state.kinds[tallies[:, f.STANDBY] == 0, f.JOULES].sum()
    due = int(tallies[:, f.SINCE].min(initial=0)) == int(tallies[:, f.SINCE].max(initial=0))
    assert not due or np.isclose(found.by_job_j.sum(), by_type), "types and jobs differ in energy"


def _check_ends(state: State) -> None:
    ctl, jobs = state.ctl, state.jobs
    running, heap = state.running[: ctl[w.RUNNING]], state.ending[: ctl[w.ENDING]]
    ends, ending = heap.T
    will = running[jobs[running, w.END_AT] < NEVER]
    assert sorted(will.tolist()) == sorted(ending.tolist()), "a job that will end is in no heap"
    assert (jobs[ending, w.HEAP_AT] == np.arange(len(ending))).all(), "a job has another place"
    assert (jobs[ending, w.END_AT] == ends).all(), "a job ends at another time"
    above = (np.arange(1, len(ending)) - 1) // 2
    assert (ends[above] <= ends[1:]).all(), "the heap of ends is out of order"
    dues = jobs[running, w.DUE]
    assert (dues[:-1] <= dues[1:]).all(), "the running jobs are out of order"


def _check_energy(state: State, nodes: int) -> None:
    ctl = state.ctl
    awake = ctl[w.FREE] - ctl[w.ASLEEP]
    assert 0 <= ctl[w.ASLEEP] <= ctl[w.FREE], "more nodes sleep than are idle"
    if len(state.node):
        asleep = state.node[:nodes, w.SLEEPS] == 1.0
        assert asleep.sum() == ctl[w.ASLEEP], "a node sleeps that is not counted"
        time = int(ctl[w.METERED])
        found = energies(state, max(time, int(state.jobs[:, w.BILLED].max())))
        whole = found.idle_j + found.sleep_j + found.by_job_j.sum()
        assert np.isclose(found.by_node_j.sum(), whole), "nodes and jobs took other energies"
    else:
        places = (ctl[w.BOTTOM] + np.arange(ctl[w.HEAPS])) % len(state.idle)
        assert state.idle[places, 1].sum() == awake, "an idle node was lost"
