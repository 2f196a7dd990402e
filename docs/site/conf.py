"""Sphinx builds the site by this file (`make docs`): of docs/, and of README, CONTRIBUTING and
CHANGELOG, so that links between all of these work.

All pages are Markdown that reads the same without Sphinx. What the site has beyond them is made
here: navigation, from the links of docs/index.md; reference pages, from the program itself
(`generated`); and the titles of pages in place of links that show a file name.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes

sys.path.insert(0, str(Path(__file__).parent))

import generated

from odonata import __version__

ROOT = Path(__file__).parents[2]
project = f"Odonata {__version__}"
author = "the authors of Odonata"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "sphinx_copybutton",
]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = [
    "docs/site",
    *(f"{path.name}/**" for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"),
]
smartquotes = False
default_role = "code"
"""Docstrings write code between single backticks, as Markdown does."""

myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
nitpick_ignore_regex = [(r"py:.*", r".*")]
"""Annotations name classes of numpy, xarray and click, whose pages an offline build cannot reach;
and types of ours that are not public. Links between pages are all checked."""

html_theme = "furo"
html_title = project
html_static_path = ["static"]
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True


def read(app: Any, name: str, source: list[str]) -> None:
    """Appends to a page what the site has beyond the file, and takes out links to folders, which
    it does not have."""
    if name == root_doc:
        source[0] += "\n" + navigation(source[0])
    elif name in generated.PAGES:
        source[0] += "\n" + generated.PAGES[name]()
    home = (ROOT / name).parent

    def without_folder(link: re.Match[str]) -> str:
        return link[1] if (home / link[2]).is_dir() else link[0]

    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(([\w./-]+)\)", without_folder, source[0])


def navigation(index: str) -> str:
    """Returns a table of contents per heading of the index, of the pages that it links to there."""
    parts = []
    for section in index.split("\n## ")[1:]:
        caption = section.partition("\n")[0]
        pages = re.findall(r"^- \[([^\]]+)\]\(([^)#]+)\.md\)", section, re.MULTILINE)
        entries = "\n".join(f"{text} <{page}>" for text, page in pages)
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n")
    return "\n".join(parts)


def name_pages(app: Any, tree: nodes.document, page: str) -> None:
    """Shows the title of a page where a link shows its file name, which is all that the Markdown
    can show."""
    for link in tree.findall(nodes.reference):
        target = re.fullmatch(r"(?:\.\./|\w+/)*([\w-]+)\.md", link.astext())
        if target and link.get("internal"):
            found = [name for name in app.env.titles if name.split("/")[-1] == target[1]]
            if len(found) == 1:
                link.children = [nodes.emphasis(text=app.env.titles[found[0]].astext())]


def setup(app: Any) -> None:
    app.connect("source-read", read)
    app.connect("doctree-resolved", name_pages)
    app.connect("autodoc-process-docstring", generated.as_restructured_text)
    app.connect("missing-reference", generated.public_name)
