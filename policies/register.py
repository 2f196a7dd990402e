"""Policies by name: those of this package, and those that other packages and files bring.

There is one register per kind. Each holds an `Entry` per policy, which says what the policy is,
where it comes from and what it may be given; `make` returns the policy itself.

A plug-in is a Python file that registers policies when it is imported. `load_plugin("mine.py")`,
`plugins = ["mine.py"]` in an experiment file or `--plugin mine.py` on the command line make them
known by name. Processes that are started afterwards find it in the environment (`ODONATA_PLUGINS`,
paths separated as in PATH), which a user may also set.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import importlib
import os
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pdes.errors import Findings, Refused
from pdes.interrupt import by_signal, interruptible
from policies.parameters import Parameter
from topology import settings

KINDS = ("routing", "allocation", "scheduling", "power", "bidding", "traffic", "pattern", "profile")
MISSING = "its plug-in is missing"
OF_YOUR_OWN = "; one of your own: --plugin FILE, or plugins = [...]"
"""The end of a message about a name that is not registered."""
ENVIRONMENT = "ODONATA_PLUGINS"
OURS = ("policies", "odonata")
BUILT_IN = tuple(f"policies.{kind}" for kind in KINDS[:5])
"""Importing these enters the built-in policies."""

Values = Mapping[str, Any] | Iterable[tuple[str, Any]]


@dataclass(frozen=True)
class Entry:
    """What a register knows of one policy."""

    kind: str
    name: str
    about: str = ""
    """One line."""
    source: str = ""
    """The paper."""
    build: Callable[..., Any] | None = None
    """Returns the policy, from its parameters as keyword arguments."""
    parameters: tuple[Parameter, ...] = ()
    memory: bool = False
    """Does it remember anything between two questions?"""
    home: str = ""
    """The module and name of what was registered."""
    plugin: str = ""
    """The file or the distribution that brought it; empty if it is built in."""
    missing: bool = False
    """It stands for one whose plug-in is not here."""

    def make(self, values: Values = ()) -> Any:
        """Returns the policy with these parameters, the others as they are by default. Refused
        where there is no such parameter or it cannot have that value."""
        whose = f"{self.kind} {self.name}"
        if self.missing or self.build is None:
            raise Refused(f"{whose}: {MISSING}; give it with --plugin FILE, or install it")
        made = self.checked(values)
        try:
            return self.build(**made)
        except ValueError as error:
            raise Refused(f"{whose}: {error}") from error

    def checked(self, values: Values) -> dict[str, Any]:
        """Returns all its parameters, these and the others as they are by default. Refused as in
        `make`."""
        whose = f"{self.kind} {self.name}"
        given, known = dict(values), {each.name: each for each in self.parameters}
        for name in given:
            if name not in known:
                have = f"it has {', '.join(known)}" if known else "it has no parameters"
                raise Refused(f"{whose}: {name}: unknown; {have}{_meant(name, known)}")
        return {
            each.name: each.checked(given.get(each.name, each.default), whose)
            for each in self.parameters
        }


E = TypeVar("E", bound=Entry)


class Register(dict[str, E], Generic[E]):
    """Entries of one kind, by name.

    Another package adds its own by an entry point of the group `odonata.KIND`, which names the
    module, or something in it, that registers them. It is not imported before somebody asks for a
    name that is unknown, or for all of them.
    """

    def __init__(self, kind: str, entry: type[E]) -> None:
        super().__init__()
        self.kind = kind
        self.entry = entry
        self.broken: dict[str, str] = {}
        """Entry points that could not be loaded, and why."""
        self._loaded = False

    def add(self, entry: E) -> None:
        """Enter a policy. The same one may be entered again, as where a module is reloaded or a
        plug-in was edited; under a name that something else has, none is."""
        if _importing and not _importing[-1].brings_along(entry.home):
            entry = dataclasses.replace(entry, plugin=_importing[-1].plugin)
        there = self.get(entry.name)
        again = there is None or there.missing or there.home == entry.home
        if there is not None and not again and (not entry.plugin or entry.plugin != there.plugin):
            owner = there.plugin or there.home
            raise ValueError(f"{self.kind} {entry.name!r} is taken by {owner}: choose another name")
        self[entry.name] = entry
        if entry.plugin:
            _entered.append((self.kind, entry.name))

    def known(self, name: str) -> bool:
        """Tells whether there is one of that name, after looking at what other packages bring."""
        if name not in self or self[name].missing:
            self.load()
        return name in self and not self[name].missing

    def named(self, name: str) -> E:
        """Returns the entry of that name; refused where there is none, with those that are near."""
        if not self.known(name) and name not in self:
            if name in self.broken:
                raise Refused(f"{self.kind} {name!r}: its {self.broken[name]}")
            known = f"one of {', '.join(self)}{_meant(name, self)}"
            raise Refused(f"{self.kind} {name!r}: {known}{OF_YOUR_OWN}")
        return self[name]

    def make(self, name: str, values: Values = ()) -> Any:
        """Returns the policy of that name with these parameters (`Entry.make`)."""
        return self.named(name).make(values)

    def placeholder(self, name: str) -> E:
        """Returns the entry of that name or, where there is none, enters one that stands for it: so
        that what a run left can be opened without the plug-in that ran. It refuses to be made."""
        if not self.known(name) and name not in self:
            self[name] = self.entry(self.kind, name, MISSING, missing=True)
        return self[name]

    def load(self) -> None:
        """Import what other packages and the environment's plug-ins bring; once."""
        if self._loaded:
            return
        self._loaded = True
        load_from_environment()
        for point in entry_points(group=f"odonata.{self.kind}"):
            try:
                with _importing_from(point.dist.name if point.dist else point.value):
                    point.load()
            except BaseException as error:  # theirs, and nobody else's policies may suffer
                if by_signal(error):
                    raise
                why = f"{type(error).__name__}: {error}"
                self.broken[point.name] = f"entry point {point.value} does not load: {why}"


def _meant(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), 3, 0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""


REGISTERS: dict[str, Register[Any]] = {kind: Register(kind, Entry) for kind in KINDS}
"""The register of each kind; those of built-in policies fill as their packages are imported."""


def register(kind: str) -> Register[Any]:
    """Returns the register of one kind."""
    return REGISTERS[kind]


def placeholder(kind: str, name: str) -> Entry:
    """Returns what stands for a policy whose plug-in is gone (`Register.placeholder`)."""
    entry: Entry = REGISTERS[kind].placeholder(name)
    return entry


def check(thing: Any, found: Findings | None = None, about: Callable[[str], str] = str) -> Findings:
    """Returns the findings, after adding the fields of an object that are not as they are declared
    (`topology.settings`), names of policies among them; `about` names its fields."""
    found = Findings() if found is None else found
    for one, how in settings.settings_of(type(thing)):
        if how.register:
            names, name = REGISTERS[how.register], getattr(thing, one.name)
            found.unless(names.known(name) or name in names, f"{how.name or one.name} = {name}",
                         f"one of {', '.join(names)}{settings.meant(name, names)}",
                         about(one.name))  # fmt: skip
    for problem in settings.check(thing):
        found.unless(False, problem.given, problem.rule, *map(about, problem.fields))
    return found


# -- plug-ins by file


@dataclass(frozen=True)
class Plugin:
    """A file that was loaded."""

    name: str
    """The file's name without its suffix."""
    path: Path
    sha256: str
    """A digest of its content, which distinguishes results of different versions of the file."""
    registered: tuple[tuple[str, str], ...]
    """Kind and name of each policy that it registered."""

    @property
    def module(self) -> str:
        """The name under which it is imported. It depends on the file's name and content and not on
        its place, so that kernels compiled for it are found again."""
        return f"odonata_plugin_{re.sub(r'[^0-9a-zA-Z]', '_', self.name)}_{self.sha256[:16]}"


PLUGINS: dict[Path, Plugin] = {}
"""The files that this process has loaded."""


class Importing(NamedTuple):
    """A plug-in that is being imported, and the modules that were there before."""

    plugin: str
    before: frozenset[str]

    def brings_along(self, home: str) -> bool:
        """Tells whether it is a built-in policy that is registered, because the plug-in is the
        first to import the module that it is in."""
        module = home
        while module not in sys.modules and module:
            module = module.rpartition(".")[0]
        return module.partition(".")[0] in OURS and module not in self.before


_importing: list[Importing] = []
"""The innermost is the last."""
_entered: list[tuple[str, str]] = []
"""Kind and name of all that plug-ins have entered, in order."""


@contextmanager
def _importing_from(plugin: str) -> Iterator[None]:
    for module in BUILT_IN:
        importlib.import_module(module)
    _importing.append(Importing(plugin, frozenset(sys.modules)))
    try:
        yield
    finally:
        _importing.pop()


def plugin_path(name: Path | str, home: Path | None = None) -> Path:
    """Returns the absolute path of a plug-in, which may be named relative to `home`, whether or not
    it is there. Refused where that cannot be said in one line, or be a path at all."""
    try:
        path = ((home or Path()) / Path(name).expanduser()).absolute()
    except RuntimeError as error:  # a home directory that there is not
        raise Refused(f"plug-in {str(name)!r}: {error}") from None
    if len(f"{path}.".splitlines()) > 1 or "\0" in str(path):
        raise Refused(f"plug-in {str(name)!r}: a line break or a null character in its name")
    return path


def load_plugin(path: Path | str) -> Plugin:
    """Import a file that registers policies. Nothing happens where it was loaded before and has not
    changed; where it has changed, its policies are replaced. Refused with the file, the line and
    the reason where it cannot be imported, and then nothing of it is registered."""
    path = plugin_path(path)
    try:
        path = path.resolve()
        content = path.read_bytes()
    except OSError as error:
        raise Refused(f"plug-in {path}: {error.strerror}") from error
    plugin = Plugin(path.stem, path, hashlib.sha256(content).hexdigest(), ())
    before = PLUGINS.get(path)
    if before is not None and before.sha256 == plugin.sha256:
        return before
    first = len(_entered)
    replaced = {(kind, name): REGISTERS[kind].pop(name, None)
                for kind, name in (before.registered if before else ())}  # fmt: skip

    def put_back() -> None:
        for kind, name in _entered[first:]:
            REGISTERS[kind].pop(name, None)
        for (kind, name), entry in replaced.items():
            REGISTERS[kind][name] = entry

    with interruptible():
        try:
            _execute(plugin, content)
        except BaseException as error:
            put_back()
            if by_signal(error):
                raise
            raise Refused(f"plug-in {path}{_line(error, str(path))}: "
                          f"{type(error).__name__}: {_reason(error)}") from error  # fmt: skip
    registered = tuple(dict.fromkeys(_entered[first:]))
    if not registered:
        put_back()
        raise Refused(f"plug-in {path}: it registers nothing; write @allocation(...), for example, "
                      "above a function")  # fmt: skip
    PLUGINS[path] = plugin = dataclasses.replace(plugin, registered=registered)
    os.environ[ENVIRONMENT] = os.pathsep.join(map(str, PLUGINS))
    return plugin


def _execute(plugin: Plugin, content: bytes) -> None:
    """Run the file as a module. What was read is what is run: no compiled copy of an older version
    can come in between."""
    module = types.ModuleType(plugin.module)
    module.__file__ = str(plugin.path)
    sys.modules[plugin.module] = module
    try:
        with _importing_from(str(plugin.path)):
            exec(compile(content, str(plugin.path), "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[plugin.module]
        raise


def load_from_environment() -> None:
    """Load the plug-ins that the environment names."""
    for path in os.environ.get(ENVIRONMENT, "").split(os.pathsep):
        if path and path not in [each.plugin for each in _importing]:
            load_plugin(path)


def _line(error: BaseException, path: str) -> str:
    if isinstance(error, SyntaxError) and error.filename == path:
        return f", line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == path]  # fmt: skip
    return f", line {lines[-1]}" if lines else ""


def _reason(error: BaseException) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def described(error: BaseException) -> str:
    """Says what went wrong in a policy, and in which line of which file, if it is one of its
    author's and not of ours. An interrupt by SIGINT is no mistake of the policy's, and is raised
    again."""
    if by_signal(error):
        raise error
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename) in PLUGINS]
    others = [frame for frame in frames if not _is_ours(Path(frame.filename))]
    where = (own or others)[-1:]
    return f"{type(error).__name__}: {error}" + "".join(
        f" ({frame.filename}, line {frame.lineno})" for frame in where
    )


def _is_ours(file: Path) -> bool:
    """Tells whether a file is of a package of ours."""
    home = Path(__file__).parents[1]
    return file.is_relative_to(home) and file.relative_to(home).parts[0] in (*OURS, "pdes")
