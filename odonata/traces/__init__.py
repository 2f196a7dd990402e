"""Traces of jobs: read from files, made by models, changed, and written.

Read `trace` (what a trace is), `reading` (files of any format), then one file per format (`swf`,
`batsim`, `sacct`, `karelian`) and per model (`poisson`, `lublin`, `mira`); `changing` filters and
rescales.
"""
