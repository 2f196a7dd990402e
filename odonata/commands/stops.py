"""Where `odonata debug` stops, and how: in pdb, in the frame of the handler of an event.

The handler of a network is called through `Stops`. Where an event is one to stop at, its handler
runs under a debugger that lets everything pass until the function is entered that does the work
(`odonata.agents.router.arrive` for the arrival of a packet): there it prints the event in words and
asks. When the handler returns, the debugger lets go; if the user was stepping, it stops again at
the next event.
"""

from __future__ import annotations

import pdb
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from types import CodeType, FrameType
from typing import Any

from odonata.agents import dispatch, ejection, link, node, reports, router, switch, task
from odonata.agents.layout import (
    ARRIVE,
    CREDIT_DUE,
    DELIVER,
    GENERATE,
    JOB,
    REACH,
    SAMPLE,
    START,
    STEP,
    SWITCH,
)
from odonata.agents.network import Network
from odonata.agents.tracing import NUMBER
from odonata.commands.event_words import event_words, packet_words, place_of
from odonata.experiment.units import show_time, time_ps
from pdes.errors import Refused
from pdes.events import agent_of, kind_of, port_of
from pdes.model import Decision

PLACES = "router:17, node:5, job:NAME, time:3us, packet:12345 or scheduler"

CODE: dict[int, tuple[Any, ...]] = {
    ARRIVE: (router.arrive,),
    REACH: (ejection.reach,),
    DELIVER: (dispatch.hand_over, dispatch.drop),
    CREDIT_DUE: (dispatch.grant,),
    SWITCH: (switch.switch,),
    GENERATE: (node.generate,),
    START: (task.command,),
    STEP: (task.proceed,),
    SAMPLE: (reports.sample,),
}
"""The functions that do the work for events of a kind; for other kinds it is `dispatch.handle`."""


class Prompt(pdb.Pdb):
    """A debugger that stops where it is told to, once, and then as pdb does."""

    def __init__(self) -> None:
        super().__init__(nosigint=True)
        self.prompt = "(odonata) "
        self._codes: frozenset[CodeType] = frozenset()
        self._wanted: Callable[[FrameType], bool] = lambda frame: True
        self._announce: Callable[[FrameType], None] = lambda frame: None
        self.stepping = False
        """Whether the user was stepping when the handler returned."""

    def call(
        self,
        codes: Iterable[CodeType],
        wanted: Callable[[FrameType], bool],
        announce: Callable[[FrameType], None],
        function: Callable[[], Any],
    ) -> Any:
        """Returns what a function does; stops where it comes to one of these codes in a frame that
        is wanted, after it was announced."""
        self.reset()
        self._codes, self._wanted, self._announce = frozenset(codes), wanted, announce
        if not self._codes:
            self.botframe = sys._getframe()
            self.set_continue()
        sys.settrace(self.trace_dispatch)
        try:
            return function()
        finally:
            sys.settrace(None)
            asked = not self._codes
            self.stepping = asked and self.stoplineno != -1
            self._codes = frozenset()

    def stop_here(self, frame: FrameType) -> bool:
        if self._codes:
            return frame.f_code in self._codes and self._wanted(frame)
        return super().stop_here(frame)

    def user_call(self, frame: FrameType, argument_list: Any) -> None:
        if not self._codes:
            super().user_call(frame, argument_list)

    def user_line(self, frame: FrameType) -> None:
        if self._codes:
            self._codes = frozenset()
            self._announce(frame)
            caller = frame.f_back
            while caller is not None and caller.f_code.co_filename != __file__:
                caller.f_trace = self.trace_dispatch  # so that `n` leads back to it
                caller = caller.f_back
        super().user_line(frame)


class Stops:
    """The places at which a run stops, from the words of --break-at and --packet."""

    def __init__(self, model: Network, places: Iterable[str], packets: Iterable[int]) -> None:
        self.model = model
        self.agents: set[int] = set()
        self.packets = set(packets)
        self.jobs: set[int] = set()
        self.times: list[int] = []
        self.scheduler = False
        self.count = 0
        """How often it has stopped."""
        for place in places:
            self._add(place)
        self.times.sort()
        m = model.machine
        self._near = {number: self._node_agent(number % m.n_nodes) for number in self.packets}
        """The agent at which each packet is, as far as is known: at first its node."""
        self._prompt = Prompt()
        self._handle = model.handle

    def _node_agent(self, number: int) -> int:
        m = self.model.machine
        group, index = divmod(number, m.routers * m.nodes)
        return ((group + self.model.offset) << self.model.agent_bits) + m.routers + index

    def _add(self, place: str) -> None:
        what, _, which = place.partition(":")
        m, jobs = self.model.machine, self.model.jobs
        if what == "scheduler" and not which:
            if not jobs:
                raise Refused("--break-at scheduler: there are no [[jobs]], and no scheduler")
            self.scheduler = True
        elif what == "time":
            try:
                self.times.append(time_ps(which))
            except ValueError as error:
                raise Refused(f"--break-at {place}: {error}") from None
        elif what == "job":
            found = [number for number, job in enumerate(jobs)
                     if which in (job.name, str(number))]  # fmt: skip
            if not found:
                known = ", ".join(job.name or str(number) for number, job in enumerate(jobs))
                raise Refused(f"--break-at {place}: the jobs are {known or 'none'}")
            self.jobs.update(found)
        elif what in ("router", "node", "packet") and which.isdecimal():
            number, most = int(which), {"router": m.n_routers, "node": m.n_nodes}.get(what)
            if most is not None and number >= most:
                raise Refused(f"--break-at {place}: {what}s are 0 .. {most - 1}")
            if what == "packet":
                self.packets.add(number)
            elif what == "node":
                self.agents.add(self._node_agent(number))
            else:
                group, index = divmod(number, m.routers)
                self.agents.add(((group + self.model.offset) << self.model.agent_bits) + index)
        else:
            raise Refused(f"--break-at {place}: a place is {PLACES}")

    def network(self) -> Network:
        """Returns the network, whose handler stops at these places."""
        stops = self

        class Debugged(Network):
            handle = property(lambda self: stops.handle)  # type: ignore[assignment]

            def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Decision:
                plain = super().decide
                return stops.decide(lambda: plain(state, time, key, a, b), time)

        given = {field.name: getattr(self.model, field.name) for field in fields(self.model)}
        return Debugged(**given)

    def handle(self, sim: Any, state: Any, time: int, key: int, a: int, b: int) -> None:
        """Handle an event, and stop at it if it is one to stop at."""
        kind, agent, now = kind_of(key), int(agent_of(key)), int(time)
        borne = kind in (ARRIVE, REACH, DELIVER) and not (kind == DELIVER and port_of(key))
        number = int(sim.pool.rows[a, NUMBER]) if borne else -1
        if number in self._near:
            self._near[number] = agent
            if kind == DELIVER:
                del self._near[number]
        due = bool(self.times) and now >= self.times[0]

        def go() -> None:
            self._handle(sim, state, time, key, a, b)

        def announce(frame: FrameType) -> None:
            self._say(event_words(self.model, sim, state, now, key, a))

        if (due or self._prompt.stepping or agent in self.agents or number in self.packets
                or (self.jobs and self._of_job(state, kind, key, a))):  # fmt: skip
            self.times = [date for date in self.times if date > now]
            codes = [_code(function) for function in CODE.get(kind, (dispatch.handle,))]
            self._prompt.call(codes, lambda frame: True, announce, go)
        elif agent in self._near.values() and number < 0:
            self._prompt.call(
                [_code(link.launch)],
                lambda frame: self._watched(sim, frame),
                lambda frame: self._granted(sim, state, now, key, frame),
                go,
            )
        elif self._prompt.breaks:
            self._prompt.call((), lambda frame: False, announce, go)
        else:
            go()

    def decide(self, go: Callable[[], Decision], time: int) -> Decision:
        """Have the scheduler decide, and stop there if that is asked for."""

        def announce(frame: FrameType) -> None:
            self._say([f"{show_time(int(time))}: the scheduler decides"])

        if not self.scheduler and not self._prompt.stepping:
            return go()
        codes = [_code(Network.decide)]
        return self._prompt.call(codes, lambda frame: True, announce, go)  # type: ignore[no-any-return]

    def _watched(self, sim: Any, frame: FrameType) -> bool:
        """Tells whether this is the frame in which one of the packets is granted a link."""
        number = int(sim.pool.rows[frame.f_locals["number"], NUMBER])
        return number in self.packets and number in self._near

    def _granted(self, sim: Any, state: Any, time: int, key: int, frame: FrameType) -> None:
        place = place_of(self.model, state, key)
        number = frame.f_locals["number"]
        self._say([f"{show_time(time)}: a packet is granted the link at {place.name}",
                   *packet_words(self.model, sim, state, number, time)])  # fmt: skip

    def _of_job(self, state: Any, kind: int, key: int, a: int) -> bool:
        """Tells whether an event is the start or a step of a task of one of the jobs."""
        if kind != STEP:
            return kind == START and a in self.jobs
        node_here = place_of(self.model, state, key).node
        return int(state.slots[node_here, port_of(key), JOB]) in self.jobs

    def _say(self, lines: Iterable[str]) -> None:
        self.count += 1
        first, *rest = lines
        print("\n".join([f"--- {first}", *(f"    {line}" for line in rest)]), flush=True)


def _code(function: Any) -> CodeType:
    code: CodeType = getattr(function, "py_func", function).__code__
    return code
