"""The job fidelity: a machine's months, in which a job is its nodes and its run time.

Read `layout` (what the state holds), `dispatch` (what happens), `decisions` (what Python decides),
then `model`.
"""
