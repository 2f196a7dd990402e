"""The machine: groups, routers, nodes, links, cabling. Pure structure, no time."""
