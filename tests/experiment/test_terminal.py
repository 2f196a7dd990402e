"""Tables are shown whole: however narrow a terminal is, no word and no number is cut in two."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console, Group
from rich.table import Table

from odonata.experiment.terminal import plain_console

HEADS = ("routing", "latency, mean (ns)", "ratio", "what it is")
ROWS = (
    ("ugal-l", "1,347.8 ± 12.4", "+286.5%", "chosen at the source by local queues"),
    ("minimal", "109,282.0 *", "-", "the shortest path"),
    ("a-name-without-any-gap-that-is-long", "7", "-12.25%", ""),
)


def table(**how: object) -> Table:
    made = Table(**how)  # type: ignore[arg-type]
    for head in HEADS:
        made.add_column(head, justify="left" if head in (HEADS[0], HEADS[3]) else "right")
    for row in ROWS:
        made.add_row(*row)
    return made


def drawn(width: int, part: object, kind: object = plain_console) -> str:
    file = io.StringIO()
    console = kind(file=file, width=width)  # type: ignore[operator]
    console.print(part, markup=False)
    assert console.width == width
    return file.getvalue()


@pytest.mark.parametrize("width", [1, 20, 40, 60, 79, 80, 120])
@pytest.mark.parametrize("how", [{"box": None, "pad_edge": False}, {"min_width": 64}, {}])
def test_no_number_and_no_word_is_cut_at_any_width(width: int, how: dict[str, object]) -> None:
    for shown in (drawn(width, table(**how)), drawn(width, Group("a title", table(**how)))):
        assert "…" not in shown
        for name, mean, ratio, about in ROWS:
            assert all(word in shown for word in (name, mean, ratio, *about.split()))
        lines = [line for line in shown.splitlines() if re.search("[│┃]", line)]
        assert len({len(line) for line in lines}) <= 1


@pytest.mark.parametrize("how", [{"box": None, "pad_edge": False}, {}])
@pytest.mark.parametrize("width", [110, 120, 200])
def test_a_table_that_has_room_is_drawn_as_ever(width: int, how: dict[str, object]) -> None:
    assert drawn(width, table(**how)) == drawn(width, table(**how), Console)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_in_a_column_that_is_bound_long_words_go_on_in_the_next_line(width: int) -> None:
    bound = table(box=None, pad_edge=False)
    bound.columns[0].max_width = bound.columns[1].max_width = 10
    shown = drawn(width, bound)
    assert "…" not in shown
    assert "".join(line[:10].strip() for line in shown.splitlines()[-4:]).endswith(ROWS[2][0])
    assert all(mean in shown for _, mean, _, _ in ROWS), "numbers are whole all the same"


def test_a_table_without_columns_is_nothing() -> None:
    assert drawn(80, Table()).strip() == ""
