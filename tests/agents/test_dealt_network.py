"""Random networks that go on with other ranks, twice: every digest, every figure of the outcome,
every series and every log is that of one rank that nobody disturbed.

Many more than the suite has time for:

    ODONATA_JIT=0 PYTHONPATH=. python tests/agents/test_dealt_network.py 0 2000
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent))

import numpy as np
import pytest
from random_networks import duration, random_network
from threads import bits, go

from odonata.agents import network as networks
from odonata.agents.dealing import dealing
from odonata.agents.layout import (
    ARRIVE,
    CREDIT_DUE,
    E_HEAD,
    EARLY,
    FAR,
    HEAD,
    PARTS,
    PLACE,
    Q_HEAD,
    RETURNS,
    SWITCH,
)
from odonata.agents.network import Network
from odonata.agents.ports import port_lines
from odonata.jobs.power import Power
from pdes.dealing import Other
from pdes.errors import Refused
from pdes.events import KEY, KIND_SHIFT
from pdes.partition import deal
from pdes.stream import Recording

OVER_RANKS = ("by_job", "spent", "job_latencies", "flows", "bytes", "pending")
"""Parts of an outcome that every rank has: they add up."""
IN_NO_ORDER = ("blocked", "waits")


def drawn(seed: int) -> Network | None:
    """Returns a random network, with power and telemetry where it has jobs; None if two ranks
    cannot have it."""
    rng, model = random.Random(f"dealt {seed}"), random_network(seed)
    if model.workload:
        told = {"telemetry_ps": rng.randint(100_000, 2_000_000),
                "telemetry_delay_ps": rng.randint(50_000, 1_000_000)}  # fmt: skip
        load = dataclasses.replace(model.workload, **told) if rng.random() < 0.5 else model.workload
        power = Power(rng.choice(("uniform", "naive", "dynamic-learner")),
                      cap=f"{model.machine.n_nodes * rng.choice((150, 250, 400))} W",
                      interval_ps=rng.randint(200_000, 2_000_000),
                      variation=rng.choice((0, 0.2)))  # fmt: skip
        model = dataclasses.replace(model, workload=load, power=rng.choice((None, power)))
    if model.machine.groups < 2 or len(model.units()) < 4:
        return None
    least = model.lookahead(deal(model.units(), model.weights(), 2))
    return model if least.time > 0 else None


def difference(model: Network, seed: int, record: bool) -> str | None:
    """Returns what differs between a run that went on with other ranks twice and one that nobody
    disturbed."""
    rng, end = random.Random(f"ranks {seed}"), duration(model, seed, 150)
    end = max(4, end)
    most = min(5, len(model.units()) - 1 - model.offset)
    ranks = rng.sample(range(1, most + 1), 2)
    ranks.append(rng.choice([n for n in range(1, most + 1) if n != ranks[1]]))
    cuts = sorted(rng.sample(range(1, end), 2)) if end > 4 else [1, 2]
    every = max(1, end // rng.randint(3, 20))

    def leg(number: int, until: int, recorded: Any, **how: Any) -> Any:
        alone = model.workload is not None and ranks[number] < most and rng.random() < 0.4
        given = dataclasses.replace(model, dedicated_scheduler=alone)
        return go(given, until, ranks[number], seed, protocol=rng.choice(("window", "null")),
                  show_compiling=False, record=recorded, **how)  # fmt: skip

    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        kept = [Recording(place / which, every, (*model.tables(every),), logs=(*model.logs(),))
                if record else None for which in ("parts", "whole")]  # fmt: skip
        leg(0, cuts[0] + 1, kept[0], checkpoint_dir=place / "saved", checkpoint_every=cuts[0])
        second = cuts[1] - cuts[1] % every or cuts[1]
        if second > cuts[0]:
            leg(1, second + 1, kept[0], resume=place / "saved", checkpoint_dir=place / "saved",
                checkpoint_every=second)  # fmt: skip
        ran = leg(2, end, kept[0], resume=place / "saved")
        whole = go(model, end, 1, record=kept[1], show_compiling=False)
        if ran.digest != whole.digest:
            return f"{ranks} ranks, cuts {cuts}: another digest"
        if found := _outcomes(ran.outcome, whole.outcome):
            return f"{ranks} ranks, cuts {cuts}: another {found}"
        if record:
            ours, theirs = bits(place / "parts"), bits(place / "whole")
            apart = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
            if apart:
                return f"{ranks} ranks, cuts {cuts}: other {', '.join(sorted(apart))}"
    return None


def _outcomes(ours: Any, theirs: Any) -> str | None:
    for name in theirs:
        one, other = ours[name], theirs[name]
        if name == "pending":  # how often a channel is looked at in vain depends on ranks
            continue
        if name in OVER_RANKS:
            one, other = one.sum(0), other.sum(0)
        if name in IN_NO_ORDER:
            one, other = (np.array(sorted(each.tolist())) for each in (one, other))
        if one.tobytes() != other.tobytes():
            return name
    return None


def held(state: Any, pending: Any) -> dict[str, bool]:
    """Returns what a state has at a cut."""
    kinds = pending[:, KEY] >> KIND_SHIFT
    heads = {
        "blocked": state.ports[:, 1:, HEAD], "credits": state.ports[:, 1:, RETURNS],
        "queued": state.queues[:, :, Q_HEAD], "rooms": state.rooms[:, :, RETURNS],
        "ejected": state.ejection[:, E_HEAD], "early": state.slots[:, :, EARLY],
        "parts": state.slots[:, :, PARTS],
    }  # fmt: skip
    events = {"moving": ARRIVE, "wakes": CREDIT_DUE, "arbitrates": SWITCH, "noticed": PLACE}
    return {name: bool((head >= 0).any()) for name, head in heads.items()} | {
        name: bool((kinds == kind).any()) for name, kind in events.items()
    }


def campaign(first: int, last: int, enough: int = 1000, recorded: int = 3) -> dict[str, int]:
    """Try the networks of these seeds, every so many of them recorded, and print those that differ,
    until that is `enough`. Returns how many were tried and `differ`, and how often a rank went on
    with each kind of thing."""
    seen: Counter[str] = Counter(tried=0, differ=0)
    usual = networks.to_local

    def watched(model: Any, state: Any, pending: Any, *rest: Any) -> None:
        seen.update(name for name, there in held(state, pending).items() if there)
        usual(model, state, pending, *rest)

    networks.to_local = watched
    try:
        for seed in range(first, last):
            model = drawn(seed)
            if model is None or seen["differ"] >= enough:
                continue
            seen["tried"] += 1
            try:
                found = difference(model, seed, seed % recorded == 0)
            except Refused:
                raise
            except Exception as error:
                found = f"{type(error).__name__}: {str(error)[-400:]}"
            if found:
                seen["differ"] += 1
                print(f"seed {seed}: {found}", flush=True)
    finally:
        networks.to_local = usual
    print(f"{seen['tried']} networks, {seen['differ']} differ: {dict(seen)}", flush=True)
    return dict(seen)


# -- the suite's share

HERE = Path(__file__).parent
APART = "import json, sys; sys.path += sys.argv[1:3]; from test_dealt_network import *; "
"""For a process without the compiler (`tests/agents/test_router_twin.py`)."""
KINDS = ("blocked", "credits", "queued", "rooms", "moving", "wakes", "arbitrates")


def apart(python: Callable[..., str], code: str) -> Any:
    said = python(APART + code, str(HERE), str(HERE.parent)).splitlines()
    found = json.loads(said[-1])
    assert not found.get("differ"), "\n".join(said[:-1])
    return found


def test_networks_go_on_with_other_ranks(python: Callable[..., str]) -> None:
    seen = apart(python, "print(json.dumps(campaign(0, 12)))")
    assert seen["tried"] >= 3
    assert min(seen[name] for name in KINDS) >= 1, seen


@pytest.mark.long
@pytest.mark.parametrize("share", range(12))
def test_more_networks_go_on_with_other_ranks(python: Callable[..., str], share: int) -> None:
    seen = apart(python, f"print(json.dumps(campaign({12 + 60 * share}, {72 + 60 * share})))")
    assert seen["tried"] >= 20
    assert min(seen.get(name, 0) for name in KINDS) >= 2, seen


WRONG = {
    "feeders": "networks.to_local = lambda model, state, *rest: state.ports.__setitem__("
    "(slice(None), 0, FAR), far_here(model, *model.groups_of(*rest[-2:])))",
    "far ends": "networks.to_local = lambda *given: None",
    "notices": "networks.Network.notices = ()",
    "sums": "networks.dealing = lambda model: {**dealing(model), 'by_job': Other.CONSTANT}",
    "chains": "networks.dealing = lambda model: {**dealing(model), 'slots': ByAgent("
    "dealing(model)['slots'].before)}",
}
"""Ways to deal that are wrong, each in a line."""


@pytest.mark.long
@pytest.mark.parametrize("how", WRONG)
def test_a_network_that_is_dealt_otherwise_is_found_out(
    python: Callable[..., str], how: str
) -> None:
    code = ("from odonata.agents.ports import far_here; from pdes.dealing import ByAgent;"
            f"{WRONG[how]};print(json.dumps(campaign(0, 200, enough=1)))")  # fmt: skip
    said = python(APART + code, str(HERE), str(HERE.parent)).splitlines()[-1]
    assert json.loads(said)["differ"] > 0


# -- what is declared


@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_every_array_is_declared(seed: int) -> None:
    model = random_network(seed)
    state = model.state(0, int(model.units()[-1]))
    assert {*model.dealing()} == {*state._fields}


def test_nothing_changes_what_is_declared_to_be_constant(python: Callable[..., str]) -> None:
    assert apart(python, "print(json.dumps({'changed': constants(range(8))}))")["changed"] == []


def constants(seeds: range) -> list[str]:
    """Returns the arrays that are declared to be constant and have changed in the end of a run."""
    changed: set[str] = set()

    class Watched(Network):
        def outcome(self, state: Any, *rest: Any) -> Any:
            fresh = self.state(0, int(self.units()[-1]))
            for name, how in dealing(self).items():
                same = np.array_equal(getattr(state, name), getattr(fresh, name))
                if how is Other.CONSTANT and not same:
                    changed.add(name)
            return super().outcome(state, *rest)

    for seed in seeds:
        model = drawn(seed) or random_network(seed)
        fields = {f.name: getattr(model, f.name) for f in dataclasses.fields(model)}
        go(Watched(**fields), duration(model, seed, 250), 1, show_compiling=False)
    return sorted(changed)


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_ports_know_their_far_ends_whichever_groups_a_rank_has(seed: int) -> None:
    """The far end of a far end is the port itself; what is not here is on the other rank."""
    model = random_network(seed)
    groups = model.machine.groups
    whole = port_lines(model, 0, groups)[:, 0, FAR]
    lit = np.flatnonzero(whole >= 0)
    assert (whole[whole[lit]] == lit).all()
    per_group = len(whole) // groups
    for cut in range(groups + 1):
        parts = [port_lines(model, *block)[:, 0, FAR] for block in ((0, cut), (cut, groups))]
        for part, first in zip(parts, (0, cut * per_group), strict=True):
            mine = whole[first : first + len(part)] - first
            here = (mine >= 0) & (mine < len(part)) & (whole[first : first + len(part)] >= 0)
            assert (part == np.where(here, mine, -1)).all()


if __name__ == "__main__":
    sys.exit(campaign(int(sys.argv[1]), int(sys.argv[2]))["differ"] > 0)
