"""Figures: one function per figure.

Reading order: `style` (how all of them look), `network` and `jobs` (drawn from an opened run),
`placement` and `machine` (drawn from the machine alone), `contents` (the figures of a report, in
order), `report` (the page, with its template and style).
"""
