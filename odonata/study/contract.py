"""What a study gives, so that all else is done for it: a paper's question as a `Study`.

A **plan** is how much of it somebody asks for, a **case** one simulation, an **outcome** what it
gave, and a **claim** a sentence of the paper beside what the outcomes say. A study names the cases
of a plan and says what follows from outcomes; they are simulated in any order, on processes or MPI
ranks (`filling`), kept and resumed (`store`), and reported and drawn (`report`). Asked again for
the same, it must name the same cases.

A whole study, which `odonata study dice --rolls 20` would run if `odonata.studies` listed it:

    @dataclass(frozen=True)
    class Roll(Case):
        sides: int
        seed: int

    @dataclass(frozen=True)
    class DicePlan:
        rolls: int

    @dataclass(frozen=True)
    class Shown:
        value: int

    class Dice(Study[DicePlan, Roll, Shown]):
        name, about = "dice", "Is the mean of a die half of its sides and a half?"
        options = (Option("rolls", "Rolls of each die.", 10, int),)
        outcome = Shown

        def ask(self, rolls):
            return DicePlan(rolls)

        def cases(self, asked, outcomes):
            return [Roll(sides, seed) for sides in (6, 20) for seed in range(asked.rolls)]

        def simulate(self, case):
            return Shown(random.Random(case.key).randint(1, case.sides))

        def mark(self):
            return digest(self.simulate(Roll(6, seed)).value for seed in range(9))

        def claims(self, asked, outcomes):
            shown = [outcomes[c.key].value for c in self.cases(asked, {}) if c.key in outcomes
                     and c.sides == 6]
            mean = sum(shown) / len(shown)
            return [Claim("mean of a die", "3.5", f"{mean:.2f}", yes_or_no(abs(mean - 3.5) < 1),
                          len(shown))]
"""

from __future__ import annotations

import hashlib
import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin, get_type_hints

from pdes.errors import require

C = TypeVar("C", bound="Case")
O = TypeVar("O")  # noqa: E741
P = TypeVar("P")
ALL = "all"
"""The first of an option's choices where they can be asked for together."""


class Case:
    """One simulation: a frozen dataclass whose fields are all that it depends on, and nothing else.
    Its `str` names it in messages."""

    def fields(self) -> dict[str, Any]:
        """Returns what the key is made of and the store writes beside the outcome, JSON-able."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @cached_property
    def key(self) -> str:
        """Returns a digest of its fields, the same in every process and version of Python."""
        text = json.dumps(self.fields(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def weight(self) -> float:
        """Returns about how long it takes to simulate, in any unit that all cases of the study
        share."""
        return 1.0


@dataclass(frozen=True)
class Option:
    """Something a user can ask for: `--name VALUE`, or `flag` in its place. `parse` turns the text
    into the value and raises ValueError saying what is accepted; the default is parsed too where it
    is text. `several`: the option may be repeated, and its value is a tuple."""

    name: str
    about: str
    default: Any = None
    parse: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    several: bool = False
    flag: str = ""
    metavar: str = ""
    field: str = ""
    """The field of the plan that it is for, if that has another name."""

    def of_plan(self, given: Any) -> tuple[str, Any]:
        """Returns the field of the plan that it is for, and its value if this is given; None:
        nothing is. Where it is one of several names, or all, the value is a tuple of these."""
        value = self.default if given is None else given
        if given is None and isinstance(value, str):
            value = self.parse(value)
        require(not self.choices or value in self.choices,
                f"{self.name} = {value!r}: one of {', '.join(self.choices)}")  # fmt: skip
        if self.choices[:1] == (ALL,):
            value = self.choices[1:] if value == ALL else (value,)
        return self.field or self.name, tuple(value) if self.several else value


class Verdict(StrEnum):
    """What is said of a claim; `odonata.study.verdicts` says by which rule."""

    HOLDS = "holds"
    SIGN = "in sign only"
    NOT = "does not hold"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what we found.

    `paper` is "" where it gives no number, `verdict` None where there is nothing to judge; `of` is
    how many values it is drawn from, and `values` are the numbers, for machines. `source` is where
    the paper prints it ("Zhang 3.10"); a claim that was judged and has one is on the page of all
    papers. `calibrated`: the model was made with this number in view, so that it is no evidence.
    `cause` is where the difference is explained, a page of docs and a heading ("nedd.md#causes").
    """

    name: str
    paper: str
    ours: str
    verdict: Verdict | None = None
    of: int = 0
    values: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    calibrated: bool = False
    cause: str = ""

    @property
    def holds(self) -> bool | None:
        """Tells whether it holds; None where it is not judged."""
        return None if self.verdict is None else self.verdict is Verdict.HOLDS


class Study(ABC, Generic[P, C, O]):
    """A question, and how it is answered. `P` is its plan (a frozen dataclass, which `ask` makes
    of the options), `C` its cases, `O` their outcomes. It has no state of its own: it is sent to
    other processes by its name."""

    name: ClassVar[str]
    about: ClassVar[str]
    """A sentence for `odonata study`, and its source."""
    options: ClassVar[tuple[Option, ...]] = ()
    notes: ClassVar[str] = ""
    """How to read the table of claims."""
    outcome: type[O]
    """The class of outcomes: a dataclass of what JSON can hold."""
    sequential: ClassVar[bool] = False
    """True where outcomes decide which cases come next: `cases` is then asked again after every
    outcome, and a case that it names no longer is not simulated."""

    share: str = ""
    """The name of a share of the cases, where several jobs of a cluster have one each: its outcomes
    are in a file of their own."""
    tolerant: ClassVar[bool] = False
    """True where the other cases are simulated though one has failed: it is named, and simulated
    again when the same is asked for again."""

    @abstractmethod
    def ask(self, *args: Any, **options: Any) -> P:
        """Returns the plan that is asked for. Raises Refused where it makes no sense."""

    @abstractmethod
    def cases(self, asked: P, outcomes: Mapping[str, O]) -> Sequence[C]:
        """Returns all cases that are needed, as far as these outcomes (by key) say, done or not:
        each once, in the order in which they are worth most when time runs out. Raises Refused
        where one could not be simulated: it is asked before any is."""

    @abstractmethod
    def simulate(self, case: C) -> O:
        """Returns the outcome, on this core, whatever ranks there are. Only the case may decide it.
        Raises Fault, with the reason alone, where there is none."""

    @abstractmethod
    def mark(self) -> str:
        """Returns a digest over small simulations with all that cases use: outcomes of simulators
        with different marks are not mixed. It also compiles what is needed."""

    @abstractmethod
    def claims(self, asked: P, outcomes: Mapping[str, O]) -> list[Claim]:
        """Returns the claims that there are outcomes for."""

    def begin(self, asked: P, directory: Path) -> None:
        """Write what is to be known of this study beside its outcomes, into a directory that is
        there and is its own."""
        return None

    def figures(
        self, asked: P, outcomes: Mapping[str, O], directory: Path, pdf: bool
    ) -> list[Path]:
        """Draw the figures that there are outcomes for into `directory` (which may have to be
        made), as .png and, where it is wanted, as .pdf. Returns where they are."""
        return []

    def revive(self, fields: dict[str, Any]) -> O:
        """Returns an outcome from its fields as JSON has them, where lists stand for tuples. Raises
        ValueError, KeyError or TypeError where they are none."""
        return self.outcome(**fields)


class Packaged(Study[Any, Any, Any]):
    """A study that is a package, with a module for each of its parts, which are imported when they
    are needed, so that studies can be listed at once. Of the study `Dice`, `cases` has `DicePlan`,
    which is made of the options (those of Option.field), `cases` and `mark`; `simulation` has
    `simulate` and `DiceOutcome`; `claims` has `Measured`, which is made of a plan and of outcomes,
    and `claims`, which are made of that, as are the figures in `FIGURES` of the module `figures`,
    by name."""

    _package: ClassVar[str]
    _stem: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Note where the parts of a study are; what is made of a study has the same."""
        if Packaged in cls.__bases__:
            cls._package, cls._stem = cls.__module__, cls.__name__

    def _of(self, module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"{self._package}.{module}"), name)

    def ask(self, *args: Any, **options: Any) -> Any:
        """Returns the plan of these options, by position or by name; others have their defaults."""
        given = dict(zip((option.name for option in self.options), args, strict=False)) | options
        require(len(given) == len(args) + len(options), "an option is given twice")
        unknown = given.keys() - {option.name for option in self.options}
        require(not unknown, f"options {', '.join(sorted(unknown))}: {self.name} has none of these")
        return self._of("cases", f"{self._stem}Plan")(
            **dict(option.of_plan(given.get(option.name)) for option in self.options)
        )

    def cases(self, asked: Any, outcomes: Mapping[str, Any]) -> Sequence[Any]:
        return self._of("cases", "cases")(asked)  # type: ignore[no-any-return]

    def simulate(self, case: Any) -> Any:
        return self._of("simulation", "simulate")(case)

    def revive(self, fields: dict[str, Any]) -> Any:
        kind = self._of("simulation", f"{self._stem}Outcome")
        kinds = get_type_hints(kind, vars(importlib.import_module(kind.__module__)))
        return kind(**{name: _revived(value, kinds[name]) for name, value in fields.items()})

    def mark(self) -> str:
        return self._of("cases", "mark")()  # type: ignore[no-any-return]

    def measured(self, asked: Any, outcomes: Mapping[str, Any]) -> Any:
        """Returns what claims and figures are made of."""
        return self._of("claims", "Measured")(asked, outcomes)

    def claims(self, asked: Any, outcomes: Mapping[str, Any]) -> list[Claim]:
        return [*self._of("claims", "claims")(self.measured(asked, outcomes))]

    def figures(
        self, asked: Any, outcomes: Mapping[str, Any], directory: Path, pdf: bool
    ) -> list[Path]:
        from odonata.figures.style import draw_all

        makers = self._of("figures", "FIGURES")
        return draw_all(makers, self.measured(asked, outcomes), directory, pdf)


def _revived(value: Any, kind: Any) -> Any:
    """Returns a value as JSON has it as what it is declared to be: tuples for lists, at any
    depth."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(_revived(one, inner[0]) for one in value)
    if inner and isinstance(value, dict):
        return {name: _revived(one, inner[1]) for name, one in value.items()}
    return value


def digest(things: Iterable[object]) -> str:
    """Returns a mark: a few letters that stand for the text of these."""
    total = hashlib.sha256()
    for thing in things:
        total.update(f"{thing}\n".encode())
    return total.hexdigest()[:12]
