"""Experiments: what a user asks for, in one file.

Reading order: `units` (quantities as text), `keys` (a key, made from the field it sets), `sections`
and `experiment` (an experiment and all its keys), `values` (one value, checked), `given`,
`policies` and `building` (a whole file, checked), `reading` (from disk), `progress` (how far a run
has come).
"""
