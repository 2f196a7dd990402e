"""The tables of docs/overprovisioning.md, which stand there between `<!-- points -->` and
`<!-- end -->`, say. Where a model is fitted anew, this puts the new ones in their place:

    python -m odonata.studies.rmap.pages docs/overprovisioning.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from odonata.studies.rmap.printed import Searched, packages, points, searched
from odonata.studies.rmap.statements import statements
from odonata.study.papers import table


def markdown() -> dict[str, str]:
    """Returns the tables of docs/overprovisioning.md, by name."""
    rows = [[it.machine, it.application, it.what, it.printed.name, f"{it.printed.seconds:g}",
             f"{it.ours.seconds:.1f}", _signed(it.error_s), f"{it.printed.watts:g}",
             f"{it.ours.watts:.1f}", _signed(it.error_w)] for it in points()]  # fmt: skip
    printed = table(["machine", "application", "point", "configuration", "printed s", "ours",
                     "error", "printed W", "ours", "error"], rows)  # fmt: skip
    rows = [[it.application, it.printed.name, it.found.name,
             f"{it.found.seconds:.2f} s, {it.found.watts:,.0f} W",
             f"{it.same_cap.seconds:.2f} s, {it.same_cap.watts:,.0f} W",
             "✓" if it.nodes_and_cores else "✗", _cap(it)] for it in searched()]  # fmt: skip
    best = table(["application", "printed", "found", "time and power", "with the printed cap",
                  "nodes and cores", "cap"], rows)  # fmt: skip
    rows = [[it.application, f"{it.wanted_w:g}" + ("" if it.printed else " (chosen)"),
             f"{it.ours_w:.1f}", _signed(it.ours_w / it.wanted_w - 1)]
            for it in packages()]  # fmt: skip
    drawn = table(["application", "W", "ours", "error"], rows)
    rows = [[it.where, it.about, it.printed, it.ours, it.verdict or "",
             "fitted" if it.fitted else ""] for it in statements()]  # fmt: skip
    said = table(["where", "what", "printed", "ours", "", ""], rows)
    return {"points": printed, "best": best, "packages": drawn, "statements": said}


def _cap(it: Searched) -> str:
    if it.printed.cap_w == it.found.cap_w:
        return "✓"
    return "a tie: neither cap binds" if it.ties else "✗"


def _signed(error: float) -> str:
    return f"{100 * error:+.1f} %"


def filled(text: str) -> str:
    """Returns a page with its tables as they are now."""
    for name, made in markdown().items():
        between = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = between.sub(lambda found, made=made: found[1] + made + found[2], text)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(filled(page.read_text()))
