"""Experiments: what a user asks for, in one file.

Reading order: `units` (quantities as text), `keys` (everything that can be set), `values` (one
value, checked), `reading` (a whole file, checked), `progress` (how far a run has come).
"""
