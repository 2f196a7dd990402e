"""The congestors of GPCNeT, and the preset of the machine that it runs on unless another is named.

Commands import this to list their options, so it imports nothing.
"""

CONGESTORS = ("rma-broadcast", "rma-incast", "p2p-incast", "all-to-all")
MACHINE = "aries-group"
