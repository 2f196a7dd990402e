"""The reference pages of the site have all that the program has, and the site has no dead links."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest
from conftest import clean_environment
from pages import DOCS, ROOT, blocks

import odonata
from odonata.commands.cli import cli
from odonata.commands.policies import catalogue
from odonata.commands.schema_shown import json_schema
from topology.presets import PRESETS

REFERENCE = DOCS / "reference"


@pytest.fixture(scope="module")
def generated() -> Iterator[dict[str, str]]:
    """What is appended to each page, by the name of the page."""
    sys.path.insert(0, str(DOCS / "site"))
    import generated

    yield {name.rpartition("/")[2]: make() for name, make in generated.PAGES.items()}
    sys.path.remove(str(DOCS / "site"))


def commands(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=words)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{words} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{words} {name}")


def keys(schema: dict[str, object], section: str = "") -> Iterator[tuple[str, str]]:
    """Yields the section and the name of every key of a JSON Schema."""
    for name, about in schema.get("properties", {}).items():  # type: ignore[attr-defined]
        within = [about, about.get("items", {}), *about.get("anyOf", ())]
        tables = [
            it for it in within if "properties" in it and "name" not in it.get("required", ())
        ]
        if tables and not section:
            yield from keys(tables[0], name)
        else:
            yield section, name


# -- what is generated


def test_the_page_of_the_experiment_file_has_every_key_of_the_schema(
    generated: dict[str, str],
) -> None:
    parts = re.split(r"^## `?\[*([\w. ]+?)\]*`?$", generated["experiment-file"], flags=re.M)
    page = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = [*keys(json_schema())]
    assert len(found) > 100
    for section, name in found:
        assert f"| `{name}` |" in page[section or "Above all sections"], (section, name)


def test_the_pages_of_policies_and_machines_have_every_name(generated: dict[str, str]) -> None:
    for entries in catalogue().values():
        for entry in entries:
            assert f"| `{entry.name}` |" in generated["policies"], entry
    for name in PRESETS:
        assert generated["machines"].count(f"| `{name}` |") == 2, name


def test_the_page_of_python_has_every_public_name(generated: dict[str, str]) -> None:
    named = re.findall(
        r"(?:autoclass::|autofunction::|py:data}) odonata\.(\w+)$", generated["python"], re.M
    )
    assert sorted(named) == sorted({*odonata.__all__} - {"__version__"})


def test_the_page_of_commands_has_every_command(generated: dict[str, str]) -> None:
    assert re.findall(r":prog: odonata (\w+)", generated["commands"]) == [*cli.lines]


def test_nothing_that_is_generated_is_kept(generated: dict[str, str]) -> None:
    """The files in Git only say where to find it."""
    assert {path.stem for path in REFERENCE.glob("*.md")} == {*generated}
    for path in REFERENCE.glob("*.md"):
        assert len(path.read_text().splitlines()) < 25
        assert blocks(path)


# -- the site


class Page(HTMLParser):
    """The links of a page, and what they can lead to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text = path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value and tag != "link":
                self.links.append(value)


@pytest.mark.long
def test_the_site_is_built_without_a_warning_and_has_no_dead_links(tmp_path: Path) -> None:
    site = tmp_path / "site"
    words = ["-q", "-n", "-W", "--keep-going", "-c", "docs/site", "-d", str(tmp_path / "trees")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *words, str(ROOT), str(site)],
        cwd=ROOT, env=clean_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 35
    for page in pages.values():
        for link in page.links:
            to = urlsplit(link)
            target = (page.path.parent / unquote(to.path)).resolve() if to.path else page.path
            assert to.scheme or target.exists(), (page.path, link)
            if not to.scheme and to.fragment and target in pages:
                assert unquote(to.fragment) in pages[target].anchors, (page.path, link)
    reference = pages[site / "docs" / "reference" / "commands.html"]
    for words_of, command in commands(cli, "odonata"):
        for parameter in command.params:
            for option in parameter.opts if isinstance(parameter, click.Option) else ():
                if option not in ("--help", "-h"):
                    anchor = f"cmdoption-{words_of.replace(' ', '-')}-{option.lstrip('-')}"
                    assert anchor in reference.anchors, anchor
    assert '"lookahead"' in (site / "searchindex.js").read_text()
