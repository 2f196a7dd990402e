"""Studies: many simulations of one question, kept in one place, judged and drawn from there.

Reading order: `contract` (what a study gives), `worker` (a process that does tasks), `pool` (tasks
on processes or ranks), `store` (outcomes on disk), `filling` (simulate what is missing), `measured`
(the outcomes of a plan), `report` (claims and figures of what there is). The studies themselves are
in `odonata.studies`.
"""
