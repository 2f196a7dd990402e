"""`odonata regulate`."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from odonata.commands.regulate import command
from odonata.commands.regulate_asked import Asked, as_options, offered
from odonata.experiment.reading import load, parse
from odonata.results.measured import simulated_facts
from odonata.sweeps.drafts import text_of_sections
from odonata.sweeps.kept import sweep
from pdes.errors import Refused
from policies.bidding import BIDDINGS

FIXED = ("--bid", "8434W,3435W", "--nodes", "36")


def invoke(*words: Any) -> str:
    result = CliRunner().invoke(command, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("regulate")
    text = invoke("--workload", "W4", "--hours", 2, *FIXED, "--standby", "bt.C.16", "--json",
                  "--write", folder / "mine.toml", "--csv", folder / "mine.csv",
                  "--plot", folder / "mine.svg")  # fmt: skip
    return json.loads(text), folder


def test_programs_get_each_hour_and_each_type(told: tuple[dict[str, Any], Path]) -> None:
    facts, _ = told
    assert [hour["seed"] for hour in facts["hours"]] == facts["seeds"] == [1, 2]
    for hour in facts["hours"]:
        assert (hour["average_w"], hour["reserve_w"]) == (8434, 3435)
        assert 0 < hour["error_mean"] < 1
        assert hour["tracking_ok"] is (hour["bad_share"] < 0.1)
        cost = 0.1 * (8.434 - 3.435 + 3.435 * hour["error_mean"])
        assert hour["cost"] == pytest.approx(cost)
        assert hour["saving"] == pytest.approx(1 - cost / 0.8434)
        late = [it["late_share"] <= 0.1 for it in hour["types"].values() if it["jobs"]]
        assert hour["qos_ok"] is all(late)
    assert facts["saving"] == pytest.approx(np.mean([it["saving"] for it in facts["hours"]]))
    assert facts["standby_started"] > 0
    for name, of in facts["types"].items():
        jobs = [hour["types"][name]["jobs"] for hour in facts["hours"]]
        means = [hour["types"][name]["mean_q"] for hour in facts["hours"]]
        assert of["jobs"] == sum(jobs)
        assert of["mean_q"] == pytest.approx(np.average(means, weights=jobs))
        assert of["without"]["mean_q"] < of["mean_q"]
        assert of["without"]["mean_wait_s"] < of["mean_wait_s"]
    assert facts["cost_violation"] == 0


def test_the_experiment_that_is_written_gives_the_same_hour(
    told: tuple[dict[str, Any], Path],
) -> None:
    facts, folder = told
    made = load(folder / "mine.toml")
    assert made.run.seed == 1
    found = simulated_facts(made)
    assert found["digest"] == facts["hours"][0]["digest"]
    assert found["market"]["by_hour"][0]["cost"] == facts["hours"][0]["cost"]


def test_the_sweep_that_is_written_has_every_hour_with_and_without(
    told: tuple[dict[str, Any], Path],
) -> None:
    facts, folder = told
    found = sweep(folder / "mine.toml")
    assert found.axes == {"response": ("energy-qare", "without")}
    digests = [it.digest if it else "" for it in found.at(0)]
    assert digests == [hour["digest"] for hour in facts["hours"]]
    assert "market.saving" not in found.at(1)[0].figures  # type: ignore[union-attr]


def test_policies_stand_side_by_side(tmp_path: Path) -> None:
    """Each as it is alone; the hours without demand response are the same."""
    asked = ("--workload", "W4", "--hours", 1, *FIXED)
    both = json.loads(invoke(*asked, "--policy", "energy-qare:limit=0.2,tracking-only", "--csv",
                             tmp_path / "both.csv", "--json"))["policies"]  # fmt: skip
    for name, of in zip(("energy-qare:limit=0.2", "tracking-only"), both, strict=True):
        assert of == json.loads(invoke(*asked, "--policy", name, "--json"))
    assert both[0]["energy_without_kwh"] == both[1]["energy_without_kwh"]
    with (tmp_path / "both.csv").open() as file:
        policies = [row["policy"] for row in csv.DictReader(file)]
    assert policies == ["energy-qare:limit=0.2", "tracking-only"]


def test_hours_are_written_as_rows_and_drawn(told: tuple[dict[str, Any], Path]) -> None:
    facts, folder = told
    with (folder / "mine.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["saving"]) for row in rows] == [it["saving"] for it in facts["hours"]]
    assert rows[0]["tracking_ok"] in ("True", "False")
    assert int(rows[1]["cg.C.4 jobs"]) == facts["hours"][1]["types"]["cg.C.4"]["jobs"]
    drawn = (folder / "mine.svg").read_text()
    assert drawn.startswith("<?xml")


def test_people_see_what_is_saved_and_who_waits() -> None:
    text = invoke("--workload", "W4", "--hours", 1, *FIXED)
    for words in ("W4 on 36 nodes, energy-qare, bids: fixed: 1 hour", "saving", "kept the rule",
                  "without demand response", "cg.C.4", "limit of Q",
                  "less than the 6,084 W that idle nodes draw (to 4,999 W)"):  # fmt: skip
        assert words in " ".join(text.split())


def test_one_run_of_several_hours_is_kept(tmp_path: Path) -> None:
    text = invoke("--workload", "W4", "--hours", 0.1, "--continuous", *FIXED, "-o",
                  tmp_path / "out", "--policy", "tracking-only", "--json")  # fmt: skip
    facts = json.loads(text)
    (hour,) = facts["hours"]
    assert hour["hours"] == pytest.approx(0.1)
    assert (tmp_path / "out" / "seed-0001" / "summary.json").exists()
    with pytest.raises(Refused, match="there is something in it"):
        invoke("--workload", "W4", "--hours", 1, *FIXED, "-o", tmp_path / "out")


def test_jobs_may_be_those_of_a_trace_with_types(tmp_path: Path) -> None:
    types = "type,by,power_max_w,power_min_w,slowdown,q_threshold\nmine,any,300,150,1.5,2\n"
    (tmp_path / "mine.csv").write_text(types)
    rows = [f"{number} {60 * number} -1 100 2 -1 -1 2 200 -1 1 1 1 1 1 1 -1 -1"
            for number in range(1, 50)]  # fmt: skip
    (tmp_path / "march.swf").write_text("; MaxNodes: 8\n" + "\n".join(rows) + "\n")
    facts = json.loads(invoke("--trace", tmp_path / "march.swf", "--types", tmp_path / "mine.csv",
                              "--bid", "1500W,300W", "--hours", 1, "--json"))  # fmt: skip
    assert facts["nodes"] == 8
    assert facts["continuous"] is True
    assert list(facts["types"]) == ["mine"]
    assert facts["types"]["mine"]["jobs"] == 49


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "which jobs? --workload W4"),
        (("--workload", "W15"), "--workload W15: one of W1,"),
        (("--workload", "bt.C.16,cg.C.16"), "--workload bt.C.16,cg.C.16: cg.C.16 is no type of aqa "
         "or qosg"),
        (("--workload", "bt.C.16,bt"), "no table has all these types"),
        (("--workload", "bt.C.16", "--types", "qosg"), "with commas between them: fs, sc, bt, lu"),
        (("--workload", "W4", "--hours", "0"), "--hours 0: more than 0"),
        (("--workload", "W4", "--hours", "1.5"), "--continuous makes one run of any length"),
        (("--workload", "W4", "--bid", "8434,3435"), "with units, as 8434W,3435W"),
        (("--workload", "W4", "--bid", "1W,2W"), "a reserve from 0 W up to the average"),
        (("--workload", "W4", "--bid", "nobody"), "--bid nobody: one of"),
        (("--workload", "W4", "--bid", "energy-qare:steps=4,hours=1"), "parameters behind colon"),
        (("--workload", "W4", "--set", "run.seed=7"), "--set run.seed=7: --seed says that"),
        (("--workload", "W4", "--set", "run.duration = done"), "done: --hours says that"),
        (("--workload", "W4", "--load", "nan"), "--load nan: a number"),
        (("--workload", "W4", "--deviation", "inf"), "--deviation inf: a number"),
        (("--workload", "W4", "--policy", "nobody", "--bid", "2W,1W"), "--policy nobody: one of"),
        (("--workload", "W4", "--policy", "none"), "no bidding policy has this name"),
        (("--workload", "W4", "--policy", "none", "--bid", "2W,1W"), "it does not follow a target"),
        (("--workload", "W4", "--prices", "1,2"), "--prices 1,2: three"),
        (("--workload", "W4", "--prices", "1,2,x"), "--prices x: a CSV file"),
        (("--workload", "W4", "--signal", "none.csv"), "--signal none.csv: there is no such file"),
        (("--workload", "W4", "--standby", "nope"),
         r'--standby \(market.standby\) = "nope": no type of aqa, which has bt.C.16, bt.C.25,'),
        (("--workload", "W4", "--load", "-1"), r"--load \(trace.load\)"),
        (("--workload", "W4", "--nodes", "2"), "the machine has 2 nodes"),
        (("--trace", "none.swf"), "which types are its jobs of?"),
        (("--workload", "W4", "--write", "mine.txt"), "the name must end in .toml"),
        (("--workload", "W4", "--csv", "/nowhere/mine.csv"), "there is no directory"),
        (("--workload", "W4", "--carbon", "-4"), "--carbon -4: grams of CO2 per kWh"),
        (("--workload", "W4", "--carbon", "x"), "--carbon x: a CSV file"),
        (("--workload", "W4", "--warm-up", "2"), "--warm-up 2: "),
        (("--workload", "W4", "--warm-up", "-2h"), "--warm-up -2h: "),
        (("--workload", "W4", "--set", "market.exclude_after=2"), "add --continuous"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(Refused, match=why.replace("?", r"\?")) as refused:
        invoke(*words)
    assert "\n" not in str(refused.value)


def test_options_make_the_experiment_that_a_file_would() -> None:
    asked = Asked("W4", "energy-qare:limit=0.2", 20, False, preemption=True, load=0.4,
                  standby="bt.C.16", deviation=0.4, bid="9kW,2kW", prices="0.1,0.05,0.2",
                  changes=("market.violation=2",))  # fmt: skip
    made, text = asked.experiment()
    assert parse(text, "again") == made
    assert dict(made.power.policy_parameters) == {"limit": 0.2, "preemption": True}  # type: ignore[union-attr]
    assert made.market is not None
    assert dict(made.market.bidding_parameters) == {"average": 9000, "reserve": 2000}
    assert (made.market.reserve_price, made.market.violation) == (0.05, 2)
    assert made.trace.load == 0.4
    assert asked.seeds == list(range(1, 21))
    assert offered("9kW,2kW", ["9kW", "2kW"]) == {"average": 9000, "reserve": 2000}
    assert text_of_sections({"": {"name": 'a "b"'}, "x": {"y": None, "z": [1, True]}}) == (
        'name = "a \\"b\\""\n\n[x]\nz = [1, true]\n'
    )
    assert as_options("odonata regulate: trace.load = 3: no") == "--load (trace.load) = 3: no"
    assert math.isclose(made.run.end or 0, 3600e12)


def test_a_workload_may_be_types_of_a_table(tmp_path: Path) -> None:
    """On the machine of the paper that the table is from."""
    for workload, names, table, nodes in (
        ("bt", ("bt",), "qosg", 100), ("bt.C.16,cg.D.16", ("bt.C.16", "cg.D.16"), "aqa", 35),
    ):  # fmt: skip
        made, _ = Asked(workload, "qosg", 1, False).experiment()
        model = made.model()
        assert model.nodes == nodes
        assert model.types is not None
        assert {*model.types.names} == {*names} == {*model.trace.applications}
        assert made.trace.types is not None
        assert made.trace.types.name == table
    (tmp_path / "mine.csv").write_text("type,power_max_w,power_min_w,slowdown,time_min_s,nodes\n"
                                       "mine,300,150,1.5,60,2\n")  # fmt: skip
    mine = Asked("mine", "qosg", 1, False, types=str(tmp_path / "mine.csv"))
    with pytest.raises(Refused, match=r"on how many nodes\? --nodes 36"):
        mine.experiment()
    made, _ = replace(mine, nodes=8).experiment()
    assert made.model().trace.applications == ("mine",)


def test_the_machine_of_the_thesis_has_standby_jobs() -> None:
    for words, standby in (((), "ft"), (("none",), None), (("bt",), "bt")):
        made, _ = Asked("qosg", "qosg", 1, False, standby=words[0] if words else None).experiment()
        assert made.market is not None
        assert made.market.standby == standby
    for workload, types in (("W4", None), ("qosg", "qosg"), ("fs,sc", None)):
        made, _ = Asked(workload, "qosg", 1, False, types=types, nodes=40).experiment()
        assert made.market is not None
        assert made.market.standby is None


def test_several_runs_at_a_time_give_what_one_after_the_other_gives() -> None:
    words = ("--workload", "qosg", "--nodes", 20, "--bid", "3kW,1kW", "--hours", 4, "--policy",
             "qosg", "--json")  # fmt: skip
    assert invoke(*words, "--jobs", 2) == invoke(*words, "--jobs", 1)


def test_hours_apart_all_follow_the_first_hour_of_a_file(tmp_path: Path) -> None:
    rows = "".join(f"{4 * at},{math.sin(at / 40):.3f}\n" for at in range(1800))
    (tmp_path / "mine.csv").write_text(f"time_s,signal\n{rows}")
    words = ("--workload", "W4", *FIXED, "--signal", tmp_path / "mine.csv", "--hours", 2)
    assert "All hours follow the first hour of" in " ".join(invoke(*words).split())
    assert "All hours" not in invoke(*words, "--continuous")


def test_hours_apart_all_have_the_prices_of_the_first_hour(tmp_path: Path) -> None:
    """Prices with dates are those of the hour at the epoch."""
    rows = "2026-03-02T00:00,0.1\n2026-03-02T12:00,0.2\n2026-03-02T13:00,0.3\n"
    (tmp_path / "day.csv").write_text(f"time,price\n{rows}")
    words = ("--workload", "W4", *FIXED, "--prices", f"{tmp_path / 'day.csv'},0.1,0.1", "--epoch",
             "2026-03-02T12:00", "--timezone", "Europe/Stockholm", "--hours", 2)  # fmt: skip
    note = "All hours have the prices of the first hour (energy_price changes over time)"
    assert note in " ".join(invoke(*words).split())
    for more, prices in (((), [0.2, 0.2]), (("--continuous",), [0.2, 0.3])):
        hours = json.loads(invoke(*words, *more, "--json"))["hours"]
        assert [hour["energy_price"] for hour in hours] == prices
    assert "All hours" not in invoke(*words, "--continuous")


def test_a_date_that_is_none_is_the_fault_of_its_option() -> None:
    with pytest.raises(Refused, match=r'--epoch \(trace.epoch\) = "soon": .*date'):
        invoke("--workload", "W4", *FIXED, "--epoch", "soon")


@pytest.mark.parametrize(
    ("nodes", "load", "average", "words"),
    [(35, 0.3, 9000, ("nobody waited", "standby jobs (--standby) fill")),
     (12, 0.9, 4600, ("jobs waited that could not start", "narrower jobs"))],
)  # fmt: skip
def test_a_note_says_why_the_machine_drew_too_little(
    nodes: int, load: float, average: int, words: tuple[str, str]
) -> None:
    workload = "bt.C.16" if nodes == 35 else "lu.D.224"
    shown = " ".join(invoke("--workload", workload, "--policy", "tracking-only", "--nodes", nodes,
                            "--load", load, "--hours", 1, "--bid",
                            f"{average}W,300W").split())  # fmt: skip
    assert "the machine drew too little more often than too much" in shown
    assert all(word in shown for word in words)


@pytest.mark.parametrize(
    ("rows", "cure"),
    [(("0,0.1", "2,0.2", "4,0.3"), "have it begin anew with --repeat, or let the last value hold "
      "with --set market.gaps=hold"),
     (("0,0.1", "2,", "4,0.3"), "let the last one hold with --repair"),
     (("0,0.1", "2,0.2", "4,0.3", "8,0.4"), "let the last value hold with --set market.gaps=hold"),
     (("0,0.1", "2,1.01", "4,0.3"), "clip with --repair")],
)  # fmt: skip
def test_a_signal_is_mended_with_options_of_the_command(
    tmp_path: Path, rows: tuple[str, ...], cure: str
) -> None:
    (tmp_path / "mine.csv").write_text("\n".join(["time_s,signal", *rows]))
    words = ("--workload", "W4", *FIXED, "--signal", tmp_path / "mine.csv", "--hours", 1)
    with pytest.raises(Refused, match=rf"^--signal \(market.signal\) = .*{cure}$"):
        invoke(*words)
    changes = [["--repair"], ["--repeat"], ["--set", "market.gaps=hold"]]
    asked = [word for more in changes if " ".join(more) in cure for word in more]
    hours = json.loads(invoke(*words, *asked, "--set", "market.gaps=hold", "--json"))["hours"]
    assert len(hours) == 1


def test_an_idle_node_that_draws_too_much_is_told_with_its_watts(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("type,by,power_max_w,power_min_w,slowdown,time_min_s,nodes\n"
                                       "idle,idle,160,,,,\nmine,,300,150,1.5,60,2\n")  # fmt: skip
    with pytest.raises(Refused, match=r"^power.idle = 160 W: at most 150 W, which a node of type "
                       "mine draws under the lowest cap$"):  # fmt: skip
        invoke("--workload", "mine", "--nodes", 9, "--types", tmp_path / "mine.csv", "--bid",
               "1kW,100W")  # fmt: skip


def test_what_is_repaired_is_said_once(tmp_path: Path) -> None:
    """Several processes read the signal, and the first one tells."""
    rows = "\n".join(f"{2 * at},{1.25 if at == 7 else 0.1}" for at in range(1800))
    (tmp_path / "mine.csv").write_text(f"time_s,signal\n{rows}\n")
    words = ["--workload", "W4", *FIXED, "--signal", "mine.csv", "--hours", "4", "--jobs", "2",
             "--repair"]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "odonata", "regulate", *words], cwd=tmp_path,
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stderr.count("1 value beyond") == 1


def test_a_note_says_why_the_machine_drew_too_much() -> None:
    shown = " ".join(invoke("--workload", "W4", "--nodes", 35, "--hours", 1, "--bid", "7kW,1500W",
                            "--policy", "energy-qare").split())  # fmt: skip
    assert "the machine drew too much more often than too little" in shown
    assert "energy-qare starts jobs that get late whatever the target is" in shown
    shown = " ".join(invoke("--workload", "W4", "--nodes", 35, "--hours", 1, "--bid", "8859W,0W",
                            "--policy", "energy-qare").split())  # fmt: skip
    assert "In hours that broke" not in shown


def test_a_job_that_can_never_start_is_named(tmp_path: Path) -> None:
    """Tracking-only starts jobs in order of arrival, and none that takes it above its target."""
    widths = [4 if at == 3 else 1 for at in range(8)]
    rows = [f"{at + 1} {60 * at} -1 60 {nodes} -1 -1 {nodes} 60 -1 1 1 1 1 1 -1 -1 -1\n"
            for at, nodes in enumerate(widths)]  # fmt: skip
    (tmp_path / "few.swf").write_text("; MaxNodes: 4\n" + "".join(rows))
    (tmp_path / "mine.csv").write_text("type,by,power_max_w,power_min_w,slowdown\n"
                                       "idle,idle,100,,\nall,any,300,200,1.5\n")  # fmt: skip
    words = ("--trace", tmp_path / "few.swf", "--types", tmp_path / "mine.csv", "--nodes", 4,
             "--hours", 1, "--bid", "1000W,150W", "--policy", "tracking-only")  # fmt: skip
    shown = " ".join(invoke(*words).split())
    assert (
        "Job 4 (4 nodes) cannot start: with it alone the machine draws 1,200 W, and no bid "
        "goes above 1,150 W. The 4 that came after it wait for their turn: bid more"
    ) in shown
    assert "lower bid" not in shown
    words = (*words[:-3], "1000W,250W", *words[-2:])
    assert "cannot start" not in " ".join(invoke(*words).split())


def test_a_bid_that_is_out_of_reach_is_told() -> None:
    words = ("--workload", "bt.C.16", "--nodes", 10, "--hours", 1, "--policy", "tracking-only")
    shown = " ".join(invoke(*words, "--bid", "3000W,1500W").split())
    assert "In 1 of 1 hours the bid goes down to less than the 1,690 W that idle nodes" in shown
    assert "In 1 of 1 hours the bid goes up to more than the 3,390 W that all nodes draw" in shown
    assert "In 1 of 1" not in " ".join(invoke(*words, "--bid", "2500W,500W").split())


def test_a_written_experiment_has_its_plug_ins(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    words = ("--plugin", tmp_path / "mine.py", "--workload", "W4", "--policy", "tracking-only",
             "--bid", "mine", "--hours", 1, "--json", "--write",
             tmp_path / "mine.toml")  # fmt: skip
    try:
        found = json.loads(invoke(*words))
        made: Any = load(tmp_path / "mine.toml")
    finally:
        BIDDINGS.pop("mine", None)
    assert found["average_w"] == 7000.0
    assert [*made.plugins] == [str(tmp_path / "mine.py")]


MINE = """
from odonata import Bid, BiddingPolicy, bidding

@bidding("mine", about="a test's", source="ours")
class Mine(BiddingPolicy):
    def bid(self, market):
        return Bid(7000.0, 500.0)
"""


def test_a_trace_of_whole_hours_keeps_its_last_job(tmp_path: Path) -> None:
    rows = [f"{at + 1} {1200 * at} -1 60 1 -1 -1 1 60 -1 1 1 1 1 1 -1 -1 -1\n" for at in range(4)]
    (tmp_path / "few.swf").write_text("; MaxNodes: 4\n" + "".join(rows))
    (tmp_path / "mine.csv").write_text("type,by,power_max_w,power_min_w,slowdown\n"
                                       "idle,idle,100,,\nall,any,300,200,1.5\n")  # fmt: skip
    found = json.loads(invoke("--trace", tmp_path / "few.swf", "--types", tmp_path / "mine.csv",
                              "--nodes", 4, "--bid", "1000W,100W", "--json"))  # fmt: skip
    assert found["types"]["all"]["jobs"] == 4
    assert found["hours_count"] == 2


def test_a_warm_up_is_simulated_first_and_not_judged(tmp_path: Path) -> None:
    words = ("--workload", "W4", "--bid", "8434W,6000W", "--continuous", "--qos", "mean",
             "--carbon", 400, "--set", "market.hour=10min", "--policy",
             "tracking-only")  # fmt: skip
    facts = json.loads(invoke(*words, "--hours", 1, "--warm-up", "30min", "--json",
                              "--plot", tmp_path / "mine.svg"))  # fmt: skip
    assert facts["warm_up_s"] == 1800
    assert [hour["judged"] for hour in facts["hours"]] == [False] * 3 + [True] * 6
    assert facts["hours_count"] == 6
    judged = [hour for hour in facts["hours"] if hour["judged"]]
    assert facts["cost"] == pytest.approx(math.fsum(hour["cost"] for hour in judged))
    assert facts["carbon_kg"] == pytest.approx(0.4 * facts["energy_kwh"])
    assert facts["carbon_without_kg"] == pytest.approx(0.4 * facts["energy_without_kwh"])
    assert facts["bill"] is None
    assert facts["qos"] == "mean"
    for name, of in facts["types"].items():
        threshold = facts["hours"][0]["types"][name]["threshold"]
        assert of["qos_ok"] is (of["mean_q"] < threshold)
    assert "mean Q" in (tmp_path / "mine.svg").read_text()
    shown = " ".join(invoke(*words, "--hours", 1, "--warm-up", "30min").split())
    assert "1 hour, in one run, seed 1, after 0.5 hours of warm-up that are not judged" in shown
    assert "of each type below its threshold" in shown
    assert "Q < limit" in shown
    assert " late" not in shown
    assert "CO2 per hour" in shown


def test_qoscap_has_a_bidding_policy_of_another_name() -> None:
    asked = Asked("W4", "qoscap:early=0.8", 1, False)
    assert asked.bidding == {"name": "adaptive"}
    assert Asked("W4", "qosg", 1, False).bidding == {"name": "qosg"}
