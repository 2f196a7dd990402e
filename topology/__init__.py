"""The machine: groups, routers, nodes, links, cabling. Pure structure, no time."""

from topology.dragonfly import BadMachine, Dragonfly, LinkClass

__all__ = ["BadMachine", "Dragonfly", "LinkClass"]
