"""Decisions only: a policy is asked and answers; it never touches the engine.

Read `views` (what a policy may see), `parameters`, `memory` and `policy` (what all have in common),
`register` (policies by name, and plug-ins); then one folder per kind. `testing` is for authors.
"""
