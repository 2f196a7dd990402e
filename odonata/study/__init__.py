"""Studies: many simulations of one question, kept in one place and drawn from there.

A **point** is one simulation, an **outcome** what it gave (`points`). Which points the Level-Spread
study has is in `levelspread`; they are simulated in any order, on any number of processes or ranks
(`sweep`), and their outcomes kept (`store`). Numbers (`summary`) and pictures (`figures`) are made
from what is kept, by asking for the same points again.
"""
