"""Results: what a run leaves, and what follows from it.

Reading order: `execution` (an experiment becomes a directory), `run` (that directory, opened),
`performance`, `derived` and `aries` (figures), `job_table`, `summary_rows`, `diff`.
"""
