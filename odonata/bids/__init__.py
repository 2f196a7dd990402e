"""Bids that are made before a run: trained on some simulated hours, judged on others, with the
chance of a failed hour. Reading order: `asking`, `chance`, `training`, `risk`, `plan`, `searching`,
`drawing`.
"""
