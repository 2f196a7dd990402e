"""What a sweep varies: axes of values, from `--set` and from the section [sweep] of a file.

An **axis** has a name and some **values**; each value has a label and the changes, as `--set`
has them, that it makes to the file. The axis of a key has one change per value:

    [sweep]
    network.routing = ["minimal", "ugal-l"]

An axis of any other name has a table of changes for each of its labels, to vary several keys
together:

    [sweep.sharing]
    alone = { "jobs[1]" = "none" }
    shared = {}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from odonata.experiment.experiment import SECTIONS, SWEEP
from odonata.experiment.keys import quoted
from odonata.experiment.units import time_ps
from odonata.experiment.values import from_shell, plain, show
from odonata.results.statistics import CONFIDENCE, METHODS, RESAMPLED
from odonata.sweeps import FORMATS, LOGS, WIDTHS
from pdes.errors import Refused

MOST_VALUES = 10_000
CHOICES = {
    "interval": (*METHODS, RESAMPLED),
    "format": FORMATS,
    "width": WIDTHS,
    "log": ("", *LOGS),
}
"""The options of [sweep] that are one of some words."""
RANGE = re.compile(r"([-+]?[\d.]+(?:[eE][-+]?\d+)?):([-+]?[\d.]+(?:[eE][-+]?\d+)?)"
                   r":([\d.]+(?:[eE][-+]?\d+)?)")  # fmt: skip
"""First, last and step of a range of numbers."""
BARE = re.compile(r"[A-Za-z0-9_-]+")
"""A key of TOML that needs no quotes."""


class Value(NamedTuple):
    """One of the values of an axis."""

    label: str
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Axis:
    """What is varied, under a name: a key, or, if it is `labelled`, several keys together."""

    name: str
    values: tuple[Value, ...]
    labelled: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(value.label for value in self.values)


@dataclass(frozen=True)
class Wanted:
    """All that [sweep] and the command line ask for. `seeds` are numbers that are added to the seed
    of the file."""

    axes: tuple[Axis, ...] = ()
    seeds: int = 1
    figures: tuple[str, ...] = ()
    against: str = ""
    plot: str = ""
    interval: str = ""
    """"": that of Student's t or, where seeds are replicates of a trace, their spread."""
    confidence: float = CONFIDENCE
    over: str = ""
    ratio: bool = False
    log: str = ""
    format: str = FORMATS[0]
    width: str = WIDTHS[0]

    saturation: float = 0.0
    """How finely the load is looked for at which networks saturate, as a part of it; 0: not."""
    longest: str = ""
    """How long a run may be made that has not settled, where saturation is looked for."""
    beyond: bool = False
    """Whether curves go on to the last load, however far beyond saturation."""


OPTIONS = ("seeds", "figures", "against", "plot", "interval", "confidence", "over", "ratio", "log",
           "format", "width", "saturation", "longest", "beyond")  # fmt: skip
"""The keys of [sweep] that are not axes."""


def of_file(
    tree: Mapping[str, Any], where: str, problems: list[str], before: Wanted | None = None
) -> Wanted:
    """Returns what the section [sweep] of a file asks for, and what was asked for `before` by files
    that it includes, except for what it replaces; what is wrong in it is added to the problems."""
    before = before or Wanted()
    table = tree.get(SWEEP, {})
    if not isinstance(table, dict):
        problems.append(f"{where}: {SWEEP} = {show(table)}: a section, [{SWEEP}]")
        return before
    said = {name: table[name] for name in OPTIONS if name in table}
    wrong = [name for name, value in said.items() if not fits(name, value)]
    problems += [f"{where}: {SWEEP}.{name} = {show(said[name])}: {ACCEPTED[name]}"
                 for name in wrong]  # fmt: skip
    good: dict[str, Any] = {
        name: tuple(value) if name == "figures" else value
        for name, value in said.items()
        if name not in wrong
    }
    rest = {name: value for name, value in table.items() if name not in OPTIONS}
    axes = {axis.name: axis for axis in (*before.axes, *axes_of(rest, where, problems))}
    return replace(before, axes=tuple(axes.values()), **good)


ACCEPTED = {
    "seeds": "how many, 1 .. 1,000,000",
    "figures": 'a list of figures, as ["mean_latency_ns"]',
    "against": 'an axis and one of its labels, as "network.routing=minimal"',
    "plot": 'a figure, an axis, and perhaps another, as "throughput:traffic.load:network.routing"',
    "over": 'an axis to average over, or several: "run.seed.placement"',
    "ratio": "true or false",
    "confidence": "a number above 0 and below 1",
    **{name: f"one of {', '.join(filter(None, words))}" for name, words in CHOICES.items()},
    "saturation": "a part of the load, 0 .. 1, as 0.01; 1 stops past saturation and searches no "
    "further",
    "longest": 'a time with its unit, as "200 us"',
    "beyond": "true or false",
}


def fits(name: str, value: Any) -> bool:
    """Tells whether an option of [sweep] can have a value."""
    if name == "seeds":
        return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000
    if name == "figures":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if name in CHOICES:
        return value in CHOICES[name]
    if name == "ratio":
        return isinstance(value, bool)
    if name == "confidence":
        return isinstance(value, float) and 0 < value < 1
    if name == "saturation":
        return isinstance(value, float | int) and 0 <= value <= 1
    if name == "beyond":
        return isinstance(value, bool)
    if name == "longest" and value:
        return isinstance(value, str) and _is_time(value)
    return isinstance(value, str)


def _is_time(text: str) -> bool:
    try:
        return time_ps(text) > 0
    except ValueError:
        return False


def axes_of(table: Mapping[str, Any], where: str, problems: list[str]) -> Iterator[Axis]:
    """Returns the axes that a table names; what is wrong in it is added to the problems."""
    for name, value in table.items():
        if isinstance(value, list):
            yield from _of_key(name, value, where, problems)
        elif isinstance(value, dict) and name.partition(".")[0].partition("[")[0] in SECTIONS:
            inner = {f"{name}.{key}": each for key, each in value.items()}
            yield from axes_of(inner, where, problems)
        elif isinstance(value, dict) and "." not in name and _of_tables(value):
            labels = [Value(label, tuple(_changes(changes))) for label, changes in value.items()]
            yield Axis(name, tuple(labels), labelled=True)
        else:
            problems.append(
                f"{where}: {SWEEP}.{plain(name)} = {show(value)}: a list of the values of a key, "
                "or a table of labels, each with a table of changes: "
                'alone = { "jobs[1]" = "none" }'
            )


def _of_tables(value: Mapping[str, Any]) -> bool:
    return bool(value) and all(isinstance(changes, dict) for changes in value.values())


def _of_key(key: str, values: Sequence[Any], where: str, problems: list[str]) -> Iterator[Axis]:
    """Returns the axis of a key whose values are given as TOML."""
    made = tuple(Value(label_of(value), (f"{key}={toml(value)}",)) for value in values)
    if not values or len({value.label for value in made}) < len(made):
        problems.append(f"{where}: {SWEEP}.{plain(key)} = {show(values)}: values that differ, one "
                        "at least")  # fmt: skip
        return
    yield Axis(key, made)


def _changes(table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Returns a table of changes as `--set` has them; [network] in it is network.routing=..."""
    for name, value in table.items():
        nested = isinstance(value, dict) and (prefix + name).partition(".")[0] in SECTIONS
        if nested and not _is_policy(value) and "[" not in name:
            yield from _changes(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}={toml(value)}"


def _is_policy(value: Mapping[str, Any]) -> bool:
    return "name" in value


def of_shell(given: Sequence[str]) -> tuple[list[Axis], list[str]]:
    """Returns the axes among `--set`s, those with several values, and the other changes."""
    axes, changes = [], []
    for change in given:
        key, equals, text = (part.strip() for part in change.partition("="))
        values = [*spread(text)] if equals else []
        if len(values) < 2:
            changes.append(change)
        else:
            axes.append(Axis(key, tuple(Value(label_of(from_shell(value)), (f"{key}={value}",))
                                        for value in dict.fromkeys(values))))  # fmt: skip
    return axes, changes


def key_of(change: str) -> str:
    """Returns the key, or the axis, that a change such as "traffic.load=0.3" is of."""
    return change.partition("=")[0].strip()


def merged(axes: Sequence[Axis], changes: Sequence[str]) -> tuple[dict[str, Axis], list[str]]:
    """Returns the axes by name, and the changes that are made to all points, if the command line
    asks for these changes: of a labelled axis they name labels, and any other axis of the same name
    they replace. Refused where two axes, or an axis and a change, set the same key."""
    labelled = {axis.name: axis for axis in axes if axis.labelled}
    every = {axis.name: axis for axis in axes}
    own = [change for change in changes if key_of(change) in labelled]
    for change in own:
        name, _, text = (part.strip() for part in change.partition("="))
        every[name] = _chosen(labelled[name], text)
    varied, rest = of_shell([change for change in changes if change not in own])
    for change in rest:
        every.pop(key_of(change), None)
    every |= {axis.name: axis for axis in varied}
    _check_apart(every, rest)
    return every, rest


def _check_apart(axes: Mapping[str, Axis], fixed: Sequence[str]) -> None:
    """Refuse a key that is set twice: which of its values holds nobody could tell."""
    owners: dict[str, str] = {key_of(change): "--set" for change in fixed}
    for axis in axes.values():
        keys = {key_of(change) for value in axis.values
                for change in value.changes}  # fmt: skip
        for key in sorted(keys):
            if key in owners:
                raise Refused(f"{key}: {owners[key]} sets it, and so does the axis {axis.name}; "
                              f"--set {axis.name}=LABEL leaves one of its values")  # fmt: skip
            owners[key] = f"the axis {axis.name}"


def _chosen(axis: Axis, text: str) -> Axis:
    """Returns an axis with the values whose labels a text has: one, or several with commas."""
    labels = [text] if text in axis.labels else [_unquoted(part) for part in _split(text)]
    unknown = [label for label in labels if label not in axis.labels]
    if unknown:
        raise Refused(f"--set {axis.name}={unknown[0]}: one of {', '.join(axis.labels)}")
    return replace(axis, values=tuple(value for value in axis.values if value.label in labels))


def _unquoted(text: str) -> str:
    quoted_alike = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted_alike else text


def spread(text: str) -> Iterator[str]:
    """Returns the values of a text: it is split at commas outside of brackets and quotes, and what
    is a range of numbers, first:last:step, becomes these.

    >>> [*spread('minimal,"a,b",{name="nedd", count=2},0.1:0.3:0.1')]
    ['minimal', '"a,b"', '{name="nedd", count=2}', '0.1', '0.2', '0.3']
    """
    for part in _split(text):
        yield from _numbers(part) if RANGE.fullmatch(part) else [part]


def _split(text: str) -> list[str]:
    """Returns the parts of a text between commas. A quote begins where a value does, so that of
    "Bob's" is none; within one, the letter after a backslash does not end it."""
    parts, depth, quote, word, escaped = [], 0, "", "", False
    for letter in text:
        if quote:
            quote = "" if letter == quote and not escaped else quote
            escaped = letter == "\\" and quote == '"' and not escaped
        elif letter in "\"'" and word.rstrip()[-1:] in ("", ",", "=", *"[{("):
            quote = letter
        elif letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(word.strip())
            word = ""
            continue
        word += letter
    return [part for part in [*parts, word.strip()] if part]


def _numbers(text: str) -> list[str]:
    """Returns the numbers of a range, its last included."""
    first, last, step = (float(word) for word in text.split(":"))
    if step <= 0 or last < first or (last - first) / step >= MOST_VALUES:
        return [text]  # which no key accepts, and says so
    count = int((last - first) / step + 1e-9) + 1
    whole = all("." not in word and "e" not in word.lower() for word in text.split(":"))
    return [f"{round(first + n * step)}" if whole else f"{first + n * step:.12g}"
            for n in range(count)]  # fmt: skip


def label_of(value: Any) -> str:
    """Returns a short text for a value: of a policy with parameters, these behind its name."""
    if isinstance(value, dict):
        rest = {key: each for key, each in value.items() if key != "name"}
        words = [str(value["name"])] if "name" in value else []
        return " ".join(words + [f"{key}={label_of(each)}" for key, each in rest.items()])
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(label_of, value))}]"
    return str(value)


def toml(value: Any) -> str:
    """Returns a value as TOML, on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        inner = ", ".join(f"{key_text(key)} = {toml(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return str(value)


def key_text(key: str) -> str:
    """Returns a key as TOML, which has quotes only where it needs them."""
    return key if BARE.fullmatch(key) else quoted(key)


def number_of(label: str) -> float | int | str:
    """Returns a label as a number, if it is one."""
    for kind in (int, float):
        try:
            return kind(label)
        except ValueError:
            pass
    return label
