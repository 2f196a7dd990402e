"""The agents of the packet model: nodes, routers, tasks, and the network that is made of them.

In reading order, along the life of a packet: `packet` (what it is), `traffic` and `node` (its
message is generated), `router` (it arrives, and its path is chosen), `link` (it waits for the link
and is sent), `node` again (it is delivered). `patterns` and `task` send the messages of jobs.
`network` puts all of them together as a model for the engine, `audit` checks its invariants, and
`dealing` says what becomes of its state on other ranks.
"""
