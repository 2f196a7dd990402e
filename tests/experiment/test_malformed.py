"""Many malformed files: none gives a traceback, and every mistake is named."""

from __future__ import annotations

import string

import pytest
from conftest import examples
from files import FILES, OPEN, WRONG, attempt, refusal, written
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from odonata.experiment.experiment import BY_PATH, KEYS, SECTIONS, of
from odonata.experiment.keys import quoted
from odonata.experiment.reading import parse

MANY = settings(examples(60), suppress_health_check=[HealthCheck.too_slow])


ABSURD = {
    "machine.nodes": str(2**50), "machine.routers": str(2**50), "machine.groups": str(2**50),
    "machine.global_links": str(2**50), "machine.links_per_pair": str(2**50),
    "machine.local_bandwidth": '"1e9 TB/s"', "machine.global_latency": '"1000 s"',
    "network.packet": '"1 GiB"', "network.flit": '"1 GiB"', "network.local_buffer": '"999 TiB"',
    "network.threshold": "1e300", "network.bias": '"-999 TiB"', "network.delay": '"1e6 s"',
    "traffic.load": "1e-300", "traffic.message": '"999 TiB"', "traffic.messages": str(2**62),
    "traffic.stride": str(2**40), "traffic.hot": "1e10", "traffic.hot_every": str(2**50),
    "run.seed": "-1", "metrics.interval": '"1 ps"', "metrics.flush": '"1 s"'.replace("1", "1e6"),
}  # fmt: skip
"""One at a time: several may hide each other."""


VALID = parse("", "valid.toml").written()


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """The path of a key that there is not, by one edit."""
    key = draw(st.sampled_from(OPEN))
    at = draw(st.integers(0, len(key.name) - 1))
    letter = draw(st.sampled_from(string.ascii_lowercase))
    name = draw(st.sampled_from([
        key.name[:at] + key.name[at + 1 :],
        key.name[:at] + letter + key.name[at:],
        key.name[:at] + letter + key.name[at + 1 :],
        key.name[:at] + key.name[at + 1 : at + 2] + key.name[at] + key.name[at + 2 :],
        key.name.upper(),
        key.name.replace("_", "-") + "-" * ("_" not in key.name),
    ]))  # fmt: skip
    path = f"{key.section}.{name}" if key.section else name
    assume(path not in BY_PATH and path not in {*SECTIONS, "jobs"})
    return path


wrong_values = st.sampled_from(OPEN).flatmap(
    lambda key: st.tuples(st.just(key.path), st.sampled_from(WRONG[key.kind]))
)
unknown_paths = st.tuples(
    st.sampled_from(["", *(f"{section}." for section in SECTIONS if section != "jobs")]),
    st.text(string.ascii_lowercase + string.digits + "_", min_size=1, max_size=20),
).map("".join)


@MANY
@example([("plugins", "1"), ("network.routing", "1")], [], [])
@example([("plugins", "1"), ("network.routing", '"nonsense"')], [], [])
@given(
    st.lists(wrong_values, max_size=4),
    st.lists(misspelt(), max_size=2),
    st.lists(
        unknown_paths.filter(lambda path: path not in {*BY_PATH, *SECTIONS, "jobs"}), max_size=2
    ),
)
def test_each_of_several_mistakes_is_named(
    wrong: list[tuple[str, str]], misspelt: list[str], unknown: list[str]
) -> None:
    assume(wrong or misspelt or unknown)
    problems = refusal(written(VALID | dict.fromkeys([*misspelt, *unknown], "1") | dict(wrong)))
    for path in dict(wrong):
        assert sum(line.startswith(f"demo.toml: {path} = ") for line in problems) == 1, path
    for path in {*misspelt, *unknown}:
        assert sum(line.startswith(f"demo.toml: {path}: unknown; ") for line in problems) == 1, path
    for path in misspelt:
        line = next(line for line in problems if line.startswith(f"demo.toml: {path}: "))
        assert "did you mean" in line or "it belongs" in line
    assert len(problems) == len({*dict(wrong), *misspelt, *unknown})


@pytest.mark.parametrize(
    "name", ["\\n", "\\u0000", "\\u0085.py", "~no-such-user/x.py", "a" * 5000, "/etc/passwd/x.py"]
)
def test_a_plugin_that_no_file_can_be_is_named_and_does_not_keep_a_run_from_being_read(
    name: str,
) -> None:
    text = written({"plugins": f'["{name}"]'})
    (problem,) = refusal(text)
    assert problem.startswith('demo.toml: plugins = ["')
    parse(text, "demo.toml", stand_in=True)


@pytest.mark.parametrize("path", ABSURD)
def test_an_absurd_size_is_refused_at_once_and_named(path: str) -> None:
    problems = refusal(written({path: ABSURD[path]}))
    assert any(line.startswith(f"demo.toml: {path} = ") for line in problems), problems


toml_values = st.recursive(
    st.booleans().map(lambda flag: str(flag).lower())
    | st.integers().map(str)
    | st.floats().map(str)
    | st.text(string.printable, max_size=9).map(quoted)
    | st.from_regex(r'"-?[0-9]{1,25}(\.[0-9]{1,3})? ?(ps|us|s|B|KiB|GiB|GB/s)"', fullmatch=True),
    lambda inner: st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(items)}]"),
    max_leaves=3,
)


@MANY
@given(
    st.dictionaries(
        st.sampled_from([key.path for key in KEYS if key.section != "jobs"]),
        toml_values,
        max_size=8,
    )
)
def test_whatever_a_file_holds_it_is_refused_in_words_or_right(given: dict[str, str]) -> None:
    made, problems = attempt(written(given))
    assert all(line.startswith("demo.toml: ") for line in problems)
    if made:
        assert parse(made.to_toml(), "again.toml") == made
    else:
        assert any(path in line for path in BY_PATH for line in problems)


@MANY
@given(st.text(max_size=40), st.integers(0, 2000), st.integers(0, 40))
def test_a_torn_file_is_refused_in_words_or_right(junk: str, at: int, cut: int) -> None:
    text = FILES[0].read_text()
    _, problems = attempt(text[:at] + junk + text[at + cut :])
    assert all(line.startswith("demo.toml: ") for line in problems)


@MANY
@given(st.text(max_size=20) | st.tuples(st.sampled_from(sorted(BY_PATH)), st.text(max_size=12)).map(
    "=".join))  # fmt: skip
def test_whatever_a_change_holds_it_is_refused_in_words_or_right(change: str) -> None:
    _, problems = attempt("", change)
    assert all(line.startswith(("--set ", "demo.toml: ")) for line in problems)
    assert len(problems) <= 3


tables = st.dictionaries(
    st.sampled_from([*(key.name for key in of("traffic")), "name", "nodes", "x"]), toml_values,
    max_size=4,
)  # fmt: skip
policies = st.sampled_from(['"fcfs"', '{ name = "rdn" }', '{ name = "rdn", x = 1 }', "{ x = 1 }",
                            "{ name = 3 }", '{ name = "nobody", x = [] }', "[]"])  # fmt: skip


@MANY
@given(st.lists(tables, max_size=3), st.booleans(), policies, st.sampled_from(["", *"ab"]))
def test_whatever_parts_and_policies_hold_they_are_refused_in_words_or_right(
    traffics: list[dict[str, str]], jobs: bool, policy: str, change: str
) -> None:
    lines = ["[[jobs]]", "nodes = 2"] * jobs + ["[scheduler]", f"allocation = {policy}"]
    for table in traffics:
        lines += ["[[traffic]]", *(f"{name} = {value}" for name, value in table.items())]
    changes = {"": (), "a": ("scheduler.allocation.y=1",), "b": ("traffic.load=0.2",)}[change]
    made, problems = attempt("\n".join(lines), *changes)
    assert all(line.startswith(("--set ", "demo.toml: ")) for line in problems)
    if made:
        assert parse(made.to_toml(), "again.toml") == made
