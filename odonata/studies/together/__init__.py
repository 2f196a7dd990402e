"""Allocation, power policy and bid together, which Zhang (2021, 4.2) and Patki (2015, 7.3) leave as
future work: does knowing the network change how much power a machine can offer?

Reading order: `simulation`, `cases`, `found`, `claims`, `figures`. What is heavy is imported when
it is needed, so that the study can be listed at once.
"""

from __future__ import annotations

from odonata.study.contract import Option, Packaged


class Together(Packaged):
    name = "together"
    about = "Does knowing the network change how much power a machine can offer?"
    options = (
        Option("repetitions", "Queues of jobs, each with a signal, the same for all.", 24, int),
        Option("average", "The average that is bid, in W, for 72 nodes.", 15_500.0, float,
               field="average_w"),
        Option("waiting", "What a node draws whose job waits for the network, in W: 290 or more is "
               "what it draws computing.", 180.0, float, field="waiting_w"),
        Option("slower", "How many times as long jobs may take, from arrival to end, as by simple "
               "where nothing is offered.", 1.25, float),
    )  # fmt: skip
    notes = (
        "After ± is half of a confidence interval of 95 % over the repetitions, of differences "
        "between runs with the same jobs and the same signal. What can be offered is the largest "
        "reserve of those tried with which a queue keeps the tracking rule (the machine is off its "
        "target by more than 0.3 of the reserve in less than 10 % of the intervals) and its jobs "
        "take no longer, on average, than they may; 0 where none does."
    )
