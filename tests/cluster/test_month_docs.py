"""The page that leads from a trace to a figure is run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_python_of_the_page_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers aside, which another version of NumPy may draw otherwise."""
    text = (DOCS / "months-of-jobs.md").read_text()
    pairs = re.findall(r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(pairs) == 3
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code, shown in pairs:
        exec(code, names)
        printed = capsys.readouterr().out
        assert re.sub(r"[\d.,]+", "0", printed).split() == re.sub(r"[\d.,]+", "0", shown).split()
    assert len(pairs[0][0].strip().splitlines()) <= 10
    assert (tmp_path / "months.png").stat().st_size > 20_000
