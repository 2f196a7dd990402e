"""The reference pages of the site, made from the program when the site is built: nothing of them
is kept, so nothing of them can be out of date."""

from __future__ import annotations

import html
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

import click

import odonata
import pdes
from odonata.commands.cli import cli
from odonata.commands.policies import catalogue
from odonata.experiment.experiment import REPEATED, SECTIONS, of
from odonata.experiment.keys import KINDS, STAGE, Key
from odonata.experiment.units import show_bandwidth, show_time
from odonata.experiment.values import words_of
from odonata.results import register
from pdes.words import declared
from topology.presets import PRESETS

GROUPS = {
    "Machines and what runs on them": (
        "Dragonfly LinkClass PRESETS Network Traffic Job Workload Power Experiment JobExperiment "
        "Cluster Source Trace Phold"
    ),
    "Running": "load run sweep simulate place read_trace Result Refused Fault",
    "What a run left": (
        "open open_sweep Run Swept Schedule JobRecord PowerRecord "
        "summary system utilisation carried busiest stall_to_flit traffic_matrix cable_matrix "
        "latency_percentiles counters_of job_counters network_energy"
    ),
    "What a run returned": (
        "performance Performance links aries Aries job_records measures Measures power_measures "
        "PowerMeasures draw_schedules"
    ),
    "Contracts of policies": (
        "AllocationPolicy SchedulingPolicy Discipline PowerPolicy BiddingPolicy Routing allocation "
        "scheduling discipline power bidding routing pattern traffic_pattern NO_MORE NOBODY "
        "parameter fitting backfilling load_plugin check_policy"
    ),
    "What policies see and answer": (
        "Sight View Request Running Ended Sizes PowerView Powered PowerDesk Budget Target Readings "
        "Choices Configuration Mold Caps Admitted Market Bid Trial"
    ),
}
"""Public names in reading order; those that no group has come last. What is not public, but a
contract or returned by what is, has a dot."""
ROWS = {
    "odonata.agents.layout": "Packets",
    "odonata.agents.packet": "A message, a packet, a credit",
    "odonata.agents.tracing": "Packets that are traced",
    "odonata.cluster.layout": "Jobs of months",
    "policies.scheduling.desk": "What disciplines work on",
    "odonata.jobs.board": "The scheduler of packets",
}
"""The modules that declare words of arrays, and what these are about."""
STUDY = "odonata.study.contract."
DATA = {
    "PRESETS": "The machines by name ([reference](machines.md)): `PRESETS[name].machine` is a "
    "`Dragonfly`, and `about`, `source` and `power` say what it is.",
    "NO_MORE": "What the function of a job pattern returns after the last message of a phase.",
    "NOBODY": "What the function of a job pattern returns where there is no message of this "
    "number, but may be one of a later number.",
}
"""The public names that are neither classes nor functions, and so have no docstring."""


def commands() -> str:
    """Returns the page of commands: each with its options, as click knows them, in the order of
    `odonata --help`."""
    context = click.Context(cli, info_name="odonata")
    for group in filter(_is_group, (cli.get_command(context, name) for name in cli.lines)):
        for name in group.list_commands(context):  # one command may be known by two names
            group.get_command(context, name).name = name
    rows = ((f'<a href="#odonata-{name}">{name}</a>', line) for name, line in cli.lines.items())
    parts = [
        _directive(
            f"click:: odonata.commands.{name}:command", prog=f"odonata {name}", nested="full"
        )
        for name in cli.lines
    ]
    return "\n".join([_table(("odonata", ""), rows), *parts])


def _is_group(command: Any) -> bool:
    return isinstance(command, click.Group)


def experiment_file() -> str:
    """Returns the page of keys: a table per section of an experiment file."""
    parts = [_keys("", "Above all sections", "", of(""))]
    for section, about in SECTIONS.items():
        shown = f"[{section}]" if section not in REPEATED else f"[[{section}]]"
        parts.append(_keys(section, f"`{shown}`", about, of(section)))
        if section == "jobs":
            about = "A stage of a job; as many as there are, in order."
            parts.append(_keys("stages", "`[[jobs.stages]]`", about, STAGE.values()))
    return "\n".join(parts)


def _keys(section: str, title: str, about: str, keys: Iterable[Key]) -> str:
    rows = ((f"`{key.name}`", _about(key), _value(key), _default(key)) for key in keys)
    anchor = f"({section}-keys)=\n" if section else ""
    table = _table(("key", "meaning", "value", "default"), rows, "keys")
    return f"{anchor}## {title}\n\n{about}\n\n{table}"


def _default(key: Key) -> str:
    """Returns the default of a key; in words, where it depends on something else."""
    return f"`{key.shown_default()}`" if key.default not in (None, "", ()) else key.shown_default()


def _value(key: Key) -> str:
    """Says what a key accepts: its kind, its range, or its words."""
    words = [f"`{word}`" for word in words_of(key)]
    shown = ", ".join(words) if words and key.kind == "word" else KINDS[key.kind]
    low, high = key.how.least, key.how.most
    if key.how.above is not None:
        shown += f", above {key.how.above}"
    if low is not None:
        shown += f", at least {_number(low)}"
    if high is not None:
        shown += f", at most {_number(high)}"
    return f"{shown}, or `{key.none}`" if key.none else shown


def _number(value: float) -> str:
    exponent = int(value).bit_length() - 1
    if value == 2**exponent and exponent > 20:
        return f"2^{exponent}"
    return f"2^{exponent + 1} - 1" if value == 2 ** (exponent + 1) - 1 > 2**20 else f"{value:,}"


def _about(key: Key) -> str:
    return key.about.removesuffix(".") + "."


def policies() -> str:
    """Returns the page of built-in policies: a table per kind."""
    parts = []
    for kind, entries in catalogue().items():
        rows = []
        for entry in entries:
            if entry.plugin:
                continue
            parameters = "; ".join(
                f"`{each.name} = {each.default}`" + (f" {each.about}" if each.about else "")
                for each in entry.parameters
            )
            rows.append((f"`{entry.name}`", entry.about, parameters, entry.source))
        table = _table(("name", "what it does", "parameters", "source"), rows, "policies")
        parts.append(f"## {kind}\n\n{table}")
    return "\n".join(parts)


def machines() -> str:
    """Returns the page of presets: shape, links and sources of each."""
    rows, links = [], []
    for name, preset in PRESETS.items():
        it = preset.machine
        shape = f"{it.nodes}, {it.routers}, {it.global_links}, {it.groups}"
        rows.append(
            (f"`{name}`", f"{it.n_nodes:,}", shape, it.cabling, preset.about, preset.source)
        )
        of_links = (it.terminal, it.local, it.global_)
        links.append((f"`{name}`", *(
            f"{show_bandwidth(link.bandwidth)}, {show_time(link.latency_ps)}" for link in of_links
        )))  # fmt: skip
    heads = ("name", "nodes", "p, a, h, g", "cabling", "what", "source")
    ends = ("name", "node and router", "within a group", "between groups")
    return f"## Shapes\n\n{_table(heads, rows)}\n## Links\n\n{_table(ends, links)}"


def words() -> str:
    """Returns the page of the words of arrays: a table per row of each module that declares any."""
    parts = []
    for name in ROWS:
        parts.append(f"## {ROWS[name]}\n\n`{name}`\n")
        named = [*declared(importlib.import_module(name))]
        for row in dict.fromkeys(row for row, _, _ in named):
            rows = ((f"`{each}`", word.unit, word.meaning) for of, each, word in named if of is row)
            parts.append(f"### {row.array}\n\n{_table(('word', 'unit', 'meaning'), rows)}")
    return "\n".join(parts)


def figures() -> str:
    """Returns the page of figures: a table of each kind, and of those that each job has."""
    heads = ("path", "name", "unit", "mean over", "better", "in `compare --json`")
    tables = [(about, register.of_kind(kind)) for kind, about in register.KINDS.items()]
    tables.append(("Of each job; of several that are alike, the mean over them.",
                   [*register.JOB_FIGURES]))  # fmt: skip
    parts = []
    for about, some in tables:
        rows = ((f"`{it.path}`", it.name.strip(), it.unit, it.over, it.better, f"`{it.compared}`")
                for it in some)  # fmt: skip
        parts.append(
            f"## {about.partition(',')[0].rstrip('.;')}\n\n{about}\n\n{_table(heads, rows)}"
        )
    return "\n".join(parts)


def python() -> str:
    """Returns the page of the public names of `odonata`, by group, and of those of `pdes`."""
    named = {name for names in GROUPS.values() for name in names.split()}
    rest = [name for name in odonata.__all__ if name not in named and name != "__version__"]
    groups = {**GROUPS, "More": " ".join(rest)} if rest else GROUPS
    parts = [_group(title, "odonata", names.split()) for title, names in groups.items()]
    own = [name for name in pdes.__all__ if name not in odonata.__all__ and name != "Rows"]
    engine = _group("The engine, for models of your own", "pdes", own)
    study = _group("Studies of your own", "", [STUDY + "Study", STUDY + "Case", STUDY + "Claim"])
    return "\n".join([*parts, study, engine])


def _group(title: str, module: str, names: list[str]) -> str:
    """Returns a section: links to its names, and then each of them."""
    paths = [name if "." in name else f"{module}.{name}" for name in names]
    to = ", ".join(f'<a href="#{it}"><code>{it.rpartition(".")[2]}</code></a>' for it in paths)
    return f"## {title}\n\n{to}\n\n" + "\n".join(map(_object, paths))


def _object(path: str) -> str:
    """Returns the directive that documents what a path names."""
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(module), name)
    if inspect.isclass(found):
        return _directive(f"autoclass:: {path}", members="")
    if callable(found):
        return _directive(f"autofunction:: {path}")
    return f"```{{py:data}} {path}\n\n{DATA.get(name, type(found).__name__)}\n```\n"


def _directive(line: str, **options: str) -> str:
    """Returns a directive of reStructuredText within Markdown."""
    given = [f"   :{name.replace('_', '-')}: {value}".rstrip()
             for name, value in options.items()]  # fmt: skip
    return "\n".join(["```{eval-rst}", f".. {line}", *given, "```", ""])


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], kind: str = "") -> str:
    """Returns a table of Markdown; `kind` is its class, by which site.css sets its columns."""
    lines = [heads, ("---",) * len(heads), *rows]
    table = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"
    return f"{{.{kind}}}\n{table}" if kind else table


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("[[", "\\[\\[")


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/commands": commands,
    "docs/reference/experiment-file": experiment_file,
    "docs/reference/policies": policies,
    "docs/reference/machines": machines,
    "docs/reference/python": python,
    "docs/reference/words": words,
    "docs/reference/figures": figures,
}
"""What is appended to each of these pages."""


def as_restructured_text(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Turns a docstring, which is plain text with a little Markdown, into reStructuredText."""
    text = "\n".join(lines)
    text = re.sub(r"(?<![\w*`])(\*\*?)(?=\w+\b(?!\*))", r"\\\1", text)
    text = re.sub(r"(?<=\w)_(?=[\s,.;:)])", r"\\_", text)
    lines[:] = html.unescape(text).split("\n")


def public_name(app: Any, env: Any, node: Any, shown: Any) -> Any:
    """Links a class that an annotation names by its home to its place in the reference."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    module = next((each for each in (odonata, pdes) if name in each.__all__), None)
    if module is None or node["reftarget"] == f"{module.__name__}.{name}":
        return None
    python = env.get_domain("py")
    target = f"{module.__name__}.{name}"
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, shown)
