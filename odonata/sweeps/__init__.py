"""Sweeps: many experiments of one file, which differ in some keys and in their seeds.

Reading order: `axes` (what is varied), `plan` (the points, each an experiment), `outcomes` (what a
point gives), `study` (points as the cases of a study, so that they are simulated, kept and resumed
like those), `table` (means and intervals, CSV, xarray), `kept` (on disk), `words`, `drawing` and
`page` (for people).
"""

FORMATS = ("png", "svg", "pdf")
"""What a picture is saved as."""
WIDTHS = ("screen", "column", "text")
"""How wide it is: for a screen, or one column or all the text of a paper."""
LOGS = ("x", "y", "x,y")
"""Which of its axes are logarithmic."""
