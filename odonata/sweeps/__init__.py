"""Sweeps: many experiments of one file, which differ in some keys and in their seeds.

Reading order: `axes` (what is varied), `plan` (the points, each an experiment), `outcomes` (what a
point gives), `study` (points as the cases of a study, so that they are simulated, kept and resumed
like those), `table` (means and intervals, CSV, xarray), `kept` (on disk), `words`, `drawing` and
`page` (for people).
"""
