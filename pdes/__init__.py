"""A conservative parallel discrete-event engine on MPI. It knows no network.

To understand it, read in this order: `events` (time and the 32-byte row), `queue`, `random`,
`model` (what a model gives), `phold` (the shortest one), `loop` (the compiled hot loop), `protocol`
(how ranks agree), `engine` (one rank), `run` (from the first event to the last). Beside these stand
`partition`, `transport` with `launcher` and `watchman`, `checkpoint`, `signals`, `arrays`,
`errors`, and `jit`, where the compiler is met.
"""
