"""The job fidelity: a machine's months, in which a job is its nodes and its run time.

Read `layout` (what the state holds), `dispatch` (what happens), `scheduling` (the machine of the
scheduler's pass), then `model`.
"""
