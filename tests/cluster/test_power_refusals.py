"""What cannot be in a section [power] is refused in one line, and a policy that answers nonsense is
named; nothing that was simulated before is lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import trace_of
from files import refusal
from naive import Job
from test_energy import settings_with

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.experiment.reading import parse
from odonata.results.run import open as open_run
from pdes.errors import Fault, Refused
from policies.power import POWERS, Admitted, Caps, Configuration, PowerPolicy, Speed, power

JOBS = """
fidelity = "job"
[trace]
model = "poisson"
jobs = 20
nodes = 8
"""


def problems(lines: str, *changes: str) -> str:
    """Returns what is wrong with a section [power], which must be one thing, said in one line."""
    (line,) = refusal(f"{JOBS}[power]\n{lines}", *changes)
    return line


@pytest.mark.parametrize(
    ("lines", "cure"),
    [
        ('cap = "700 W"', "8 nodes draw 800 W when they are all idle"),
        ('cap = [["0 s", "2 kW"], ["1 h", "799 W"]]', "8 nodes draw 800 W"),
        ('policy = "idle-sleep"\ncap = "79 W"', "8 nodes draw 80 W when they are all asleep"),
        ("cap = 3000", 'a power with its unit, as "3000 kW"'),
        ('cap = "3000"', "bare number"),
        ('cap = "-1 kW"', "not negative"),
        ('cap = "2 kWh"', "is an energy, not a power"),
        ('cap = "2 h"', "not a power"),
        ('cap = "nan W"', "not a power"),
        ('cap = [["0 s", "2 kW"], ["10 s", 3000]]', "pair 2: 3000 is a bare number"),
        ('cap = [["2 kW", "0 s"]]', "pair 1"),
        ('cap = [["10 s", "2 kW"]]', "nothing is known before it"),
        ('cap = [["0 s", "2 kW"], ["0 s", "3 kW"]]', "times ascend"),
        ('cap = [["0 s", "2 kW"], ["9 s", "3 kW"], ["8 s", "3 kW"]]', "times ascend"),
        ("cap = []", "empty"),
        ('cap = "no-such-file.csv"', "No such file"),
        ('wake_time = "0 s"', "more than 0"),
        ('wake_time = "1 ns"\nwake_energy = "1 J"', "microsecond"),
        ('least = "300 W"', "at most active, 290 W"),
        ('idle = "291 W"', "at most active, 290 W"),
        ('sleep = "200 W"', "at most idle, 100 W"),
        ('active = "100 W"\nleast = "50 W"\nidle = "50 W"\nmaximum = "90 W"', "at most maximum"),
        ("slowdown = 0.9", "power.slowdown = 0.9: 1 .. 1,000"),
        ("variation = 0.23", "a machine on which jobs are placed"),
        ("variation = -0.1", "0 .. 10"),
        ('interval = "0 s"', 'power.interval = "0 s": above 0, or auto'),
        ('interval = "1 ns"', "microsecond"),
        ('passes = "sometimes"', "one of events, intervals"),
        ('limits = "none"', "one of stretch, fixed"),
        ('policy = "naiv"', "did you mean naive?"),
        ('policy = { name = "naive", deadlock = "wait" }', "one of run, idle"),
        ('policy = { name = "dynamic-learner", window = 0 }', "window"),
    ],
)
def test_what_cannot_be_is_refused_with_its_cure(lines: str, cure: str) -> None:
    line = problems(lines)
    assert line.startswith("demo.toml: power.")
    assert cure in line


@pytest.mark.parametrize("order", ["conservative", "lcfs-pr", "spf"])
def test_a_policy_that_chooses_needs_a_discipline_with_an_order(order: str) -> None:
    line = problems('policy = "dynamic-learner"\ncap = "2 kW"', f"scheduler.order={order}")
    assert order in line
    assert "fcfs and wfp" in line


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("time,power\n0 s,2 kW\n,3 kW\n", "line 3"),
        ("time,power\n0 s,2 kW\n1 h,\n2 h,3 kW\n", "line 3"),
        ("time,power\n0 s,2 kW\n1 h,3000\n", "line 3"),
        ("time,power\n0 s,2 kWh\n", "line 2, column power: '2 kWh' is an energy"),
        ("time,power\n2 kW,0 s\n", "line 2"),
        ("time,price\n0 s,2\n", "line 1: the column 'price'"),
        ("time_s,watts\n0,2 kW\n", "line 2"),
        ("time,power\n10 s,2 kW\n", "nothing is known before it"),
        ("time,power\n0 s,2 kW\n2 h,3 kW\n1 h,2 kW\n", "line 4"),
        ("time_h,watts\n0,2000\n1,2000\n2,2000\n3,2000\n9,3000\n10,2000\n", "line 6"),
        ("time_s,watts\n0,-5\n", "not negative"),
        ("time_s,watts\n0,nan\n", "line 2"),
        ("time_s,watts\n", "line"),
        ("", "empty"),
    ],
)
def test_a_cap_file_that_is_wrong_is_named_with_its_line(
    text: str, cure: str, tmp_path: Path
) -> None:
    (tmp_path / "cap.csv").write_text(text)
    line = problems(f'cap = "{tmp_path}/cap.csv"')
    assert "cap.csv" in line
    assert cure in line


def test_a_gap_may_be_held_over_where_that_is_said(tmp_path: Path) -> None:
    rows = "time_h,watts\n0,2000\n1,2100\n2,2200\n3,2300\n9,3000\n10,2000\n"
    (tmp_path / "cap.csv").write_text(rows)
    made = parse(f'{JOBS}[power]\ngaps = "hold"\ncap = "{tmp_path}/cap.csv"', "demo.toml")
    assert made.model().cap.at(5 * 3600 * 10**6) == 2300  # type: ignore[union-attr]


# -- policies that answer nonsense

HERE = Job(0, 0, 30, 2, None)
LATER = Job(1, 5, 30, 2, None)


def only(what: str, answer: Any) -> type[PowerPolicy]:
    """Returns a policy that answers one question with this."""

    def reply(self: Any, view: Any, *more: Any) -> Any:
        return answer(view) if callable(answer) else answer

    return type("Odd", (PowerPolicy,), {what: reply, "selects": what == "select"})


@pytest.fixture
def odd() -> Iterator[Callable[[type[PowerPolicy]], None]]:
    yield power("odd", about="a test's", source="nobody's")  # type: ignore[misc]
    POWERS.pop("odd", None)


ANSWERS: dict[str, tuple[str, Any]] = {
    "caps that are none": ("caps", None),
    "caps that are a dict": ("caps", {0: 3.0}),
    "no mapping": ("caps", Caps(None)),  # type: ignore[arg-type]
    "nobody to suspend": ("caps", Caps(suspend=None)),  # type: ignore[arg-type]
    "a cap of a job that waits or is not there": ("caps", Caps({7: 100.0})),
    "a cap of a job that is no number": ("caps", Caps({"x": 100.0})),  # type: ignore[dict-item]
    "to suspend who does not run": ("caps", Caps(suspend=[7])),
    "both at once": ("caps", lambda view: Caps(
        suspend=[job.run.request.number for job in view.running],
        resume=[job.run.request.number for job in view.running]) if view.running else Caps()),
    "a cap that is not a number": ("caps", lambda view: capped(view, math.nan)),
    "a cap below 0": ("caps", lambda view: capped(view, -1.0)),
    "a cap that is a text": ("caps", lambda view: capped(view, "100 W")),
    "again in the past": ("caps", lambda view: Caps(again=view.time)),
    "again at no time": ("caps", Caps(again=math.nan)),  # type: ignore[arg-type]
    "again at a part of a tick": ("caps", Caps(again=1e9 + 0.5)),  # type: ignore[arg-type]
    "again after the end of time": ("caps", Caps(again=10**30)),
    "a speed of 0": ("caps", Caps(speed=Speed(0.0, 1.0, 1.0))),
    "a speed that is none": ("caps", Caps(speed=Speed(math.nan, 1.0, 1.0))),
    "watts below 0": ("caps", Caps(speed=Speed(1.0, -1.0, 1.0))),
    "a speed that is a number": ("caps", Caps(speed=2.0)),  # type: ignore[arg-type]
    "more nodes than asked for": ("configure", Configuration(3)),
    "more nodes than there are": ("configure", Configuration(10**6)),
    "a configuration that is a number": ("configure", 2),
    "a configuration with a cap that is none": ("configure", Configuration(2, cap_w=math.nan)),
    "a configuration with a cap that is a text": (
        "configure", Configuration(2, cap_w="100 W")),  # type: ignore[arg-type]
    "none of those that wait": ("select", None),
    "numbers": ("select", [0]),
    "a job that is not there": ("select", Admitted([7])),
    "a job twice": ("select", Admitted([0, 0])),
    "who is forced and does not start": ("select", Admitted([], [0])),
    "no numbers": ("select", Admitted(None)),  # type: ignore[arg-type]
    "figures without names": ("observe", (1.0,)),
    "no figures": ("observe", None),
    "figures that are texts": ("observe", ("many",)),
}  # fmt: skip


def capped(view: Any, watts: Any) -> Caps:
    return Caps({job.run.request.number: watts for job in view.running})


@pytest.mark.parametrize("case", ANSWERS)
def test_a_policy_that_answers_nonsense_is_named(case: str, odd: Any) -> None:
    odd(only(*ANSWERS[case]))
    model = Cluster(trace_of([HERE, LATER]), 8, power=settings_with(policy="odd"))
    with pytest.raises(Fault, match=r"^power odd(:| failed)"):
        simulate(model)


def test_a_policy_that_chooses_more_nodes_than_are_idle_is_named(odd: Any) -> None:
    odd(only("select", lambda view: Admitted([job.number for job in view.queue])))
    jobs = [Job(n, 0, 30, 3, None) for n in range(3)]
    with pytest.raises(Fault, match="power odd: it chose jobs of 9 nodes in sum, and 8 are idle"):
        simulate(Cluster(trace_of(jobs), 8, power=settings_with(policy="odd")))


@pytest.mark.parametrize("what", ["observe", "caps", "configure", "select"])
def test_a_policy_that_fails_is_named_with_what_it_was_asked(what: str, odd: Any) -> None:
    odd(only(what, lambda view: 1 / 0))
    with pytest.raises(Fault, match=rf"^power odd failed \({what}\): ZeroDivisionError"):
        simulate(Cluster(trace_of([HERE]), 8, power=settings_with(policy="odd")))


@pytest.mark.long
def test_a_policy_that_suspends_for_ever_is_named_and_the_run_ends(odd: Any) -> None:
    odd(only("caps", lambda view: Caps(suspend=[job.run.request.number for job in view.running])))
    with pytest.raises(Fault, match="power odd"):
        simulate(Cluster(trace_of([HERE]), 8, power=settings_with(policy="odd")))


PLUGIN = """
from policies.power import Caps, PowerPolicy, power

@power("tires", about="answers nonsense after a while", source="a test")
class Tires(PowerPolicy):
    def caps(self, view):
        return Caps({10**6: 1.0} if view.time > 10**10 else {})
"""


def test_what_was_simulated_before_a_fault_stays_readable(
    odonata: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "tires.py").write_text(PLUGIN)
    (tmp_path / "x.toml").write_text(
        JOBS + '[power]\npolicy = "tires"\ncap = "5 kW"\n[metrics]\ninterval = "1 h"\n'
        'flush = "1 ms"\n'
    )
    done = odonata("run", "x.toml", "--plugin", "tires.py", "-o", "out", "--json")
    assert done.returncode != 0
    assert "power tires: it caps job 1000000, which does not run" in done.stderr
    assert "Traceback" not in done.stderr
    with open_run(tmp_path / "out") as found:
        assert not found.complete
        assert len(found.system.queue) > 0
    assert odonata("watch", "out", "--once").returncode == 0


def test_a_power_that_is_made_in_python_is_checked_the_same_way() -> None:
    with pytest.raises(Refused, match="least = 300 W: at most active, 200 W"):
        settings_with(least_w=300.0)
    with pytest.raises(Refused, match=r"power\.cap"):
        Cluster(trace_of([HERE]), 8, power=settings_with(cap="700 W"))
