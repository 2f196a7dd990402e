"""More nodes than power. In reading order: `table` (what was measured of an application in each
configuration), `table_file`, `applications` (eight of them, as models) and `fitted`, `search` (the
best configuration within a power bound), `scaling`, `cost`, `prices` and `purchase` (is a larger
machine worth it?)."""
