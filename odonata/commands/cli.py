"""The command line: the names of the commands, each of which is in a file of its own.

Nothing heavy is imported here, and no command before it is called: `odonata --help` is instant.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from odonata import __version__
from odonata.commands.group import SETTINGS, LazyGroup
from pdes import launcher
from pdes.errors import Fault, Refused, os_words
from pdes.shown import say

cli = LazyGroup(
    "odonata",
    context_settings=SETTINGS,
    help="""Simulate a dragonfly supercomputer: its packets, its jobs, its watts.

    Every command works alone and under mpiexec, and gives the same answer on any number of ranks.
    """,
    lines={
        "run": "Run an experiment FILE, and keep what it measures.",
        "watch": "Follow the run in DIR while it goes on.",
        "report": "Make a page, or figures, of the run in DIR; finished or not.",
        "compare": "Compare runs: what was asked for, and what came of it.",
        "sweep": "Run an experiment FILE with many values and seeds: means and intervals.",
        "slowdown": "Find out how much longer each job of a run took than it would have alone.",
        "diff": "Compare the metrics of two runs bit for bit.",
        "counters": "Show the counters of a run as an operator of a Cray reads them.",
        "packet": "Follow a packet of a run hop by hop, in words and as a timeline.",
        "debug": "Run an experiment FILE in pdb: stop at a router, a node, a job or a packet.",
        "mend": "Close the files that a run which died left open.",
        "latency": "Measure latency over load, and find where the network is saturated.",
        "study": "Simulate all that a paper's question takes, and draw its figures.",
        "papers": "Count which printed numbers of the papers hold, from results of studies.",
        "schedule": "Run the jobs of a trace on a machine: months in a second, without packets.",
        "trace": "Show what is in a file of jobs; filter it, rescale it, and write it as SWF.",
        "regulate": "Simulate hours of demand response: what they save, and who waits for it.",
        "bid": "Find what a machine may offer for an hour, and how sure that is.",
        "signal": "Show what a regulation signal is like: a FILE, or one that is made.",
        "configurations": "Find the nodes, cores and caps that are fastest within a power bound.",
        "allocate": "Place jobs on an idle machine, and show which nodes each of them gets.",
        "provision": "Compare fewer high-end nodes with more cheaper ones than can be powered.",
        "topology": "Describe, draw or export a machine: a preset NAME, or one of your own.",
        "policies": "List the policies there are, and explain them.",
        "applications": "List the application profiles there are, and explain them.",
        "types": "List types of jobs, with what they draw under a cap, and mixes of them.",
        "profile": "Find out whether network congestion slows an application down.",
        "gpcnet": "Measure the impact of congestion, as the benchmark GPCNeT does.",
        "schema": "Show what an experiment file may hold.",
        "bench": "Run a known workload and measure how fast it is simulated.",
        "warm": "Compile what runs need, ahead of them and on all cores.",
        "doctor": "Find out whether this installation works, alone and on two ranks.",
    },
)
click.version_option(__version__, prog_name="odonata")(cli)


def main() -> None:
    """The console command: `cli`, with errors as one line, once, whatever the number of ranks."""
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        if launcher.rank() == 0:
            error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Refused as refusal:
        _leave(2, str(refusal))
    except (Fault, OSError, MemoryError) as error:
        if "--debug" in sys.argv or sys.argv[1:2] == ["debug"]:
            raise
        words = os_words(error) if isinstance(error, OSError) else str(error)
        _leave(1, words or type(error).__name__)


def _leave(status: int, reason: str) -> NoReturn:
    """Ends this rank; all ranks come here together, and one says why."""
    if launcher.rank() == 0:
        for line in reason.split("\n"):
            say(line)
    sys.exit(status)
