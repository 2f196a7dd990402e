"""Fit the models of applications to what T. Patki's thesis prints, and print their parameters.

    python scripts/fit_applications.py [NAME ...]

`odonata/provisioning/fitted.py` has what this prints, rounded. Residuals are relative errors: of
the times (weight 10) and watts (20) of the printed points; of the statements of section 3.4 about
the same application (3); of the line through the best times by nodes (1); and of the distance of
every parameter from where the search begins (0.05), which decides where nothing else does. That
the printed configuration is the best within 3,500 W is a residual too (60), as long as another is
faster. The search begins at several random points and keeps the best.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from odonata.provisioning.applications import SOCKETS, Application, estimate, table_of
from odonata.provisioning.fitted import MACHINES, PRINTED, PRINTED_CAB
from odonata.provisioning.table import Point, Table

BOUND_W, STARTS, PRIOR = 3500.0, 8, 0.05
Free = dict[str, tuple[float, float, float]]
"""Where the search for a parameter begins, and the least and the most that it may be."""
COMMON: Free = {
    "exponent": (2.33, 1.8, 3.0), "serial": (0.1, 1e-4, 4.0), "static_w": (30.0, 15.0, 45.0),
}  # fmt: skip
BOUND_BY_MEMORY: Free = {
    "memory": (0.3, 1e-4, 0.95), "contention": (1.0, 1e-4, 60.0), "crowding": (4.0, 1.0, 40.0),
    "waiting": (0.6, 0.2, 1.0), "saturation": (5.0, 1.0, 16.0),
}  # fmt: skip
FREE: dict[str, Free] = {
    "SPhot": COMMON | {"work": (1100, 300, 3000), "memory": (0.02, 1e-4, 0.3),
                       "core_w": (4.9, 2, 9), "dram_w": (4, 3, 6)},
    "SP-MZ": COMMON | BOUND_BY_MEMORY | {"work": (60, 10, 300), "core_w": (4.9, 1, 9),
                                         "crowding": (15, 1, 40)},
    "BT-MZ": COMMON | BOUND_BY_MEMORY | {"work": (120, 30, 300), "core_w": (6.6, 2, 9)},
    "LU-MZ": COMMON | BOUND_BY_MEMORY | {"work": (250, 30, 600), "core_w": (6, 2, 9)},
}  # fmt: skip
FREE_CAB: Free = {
    "work": (2700, 1000, 6000), "memory": (0.6, 0.1, 0.97), "contention": (0.1, 1e-3, 5.0),
    "crowding": (6.0, 1.0, 20.0), "caching": (0.2, 1e-3, 1.5), "serial": (1.0, 0.01, 10.0),
    "static_w": (27.0, 18.0, 45.0), "core_w": (6.0, 2.0, 12.0), "waiting": (0.5, 0.1, 1.0),
    "saturation": (6.0, 2.0, 12.0),
}  # fmt: skip
LINES = {"SPhot": (-1.114, 73.07), "SP-MZ": (-0.112, 7.0), "BT-MZ": (-0.069, 8.5),
         "LU-MZ": (-0.542, 25.93)}  # fmt: skip
"""Table 4.8: slope and intercept of the best time by nodes."""
SINGLE_W = {"SPhot": {4: 44.6, 16: 82.1}, "BT-MZ": {4: 54.5, 16: 105.7}}
"""Of a package of a single node without a cap, by the cores of the node (section 3.3)."""
RELATIVE = {
    "SP-MZ": (((12, 16, 115), (24, 4, 115), 2.16), ((32, 16, 115), (32, 4, 115), 1.15),
              ((32, 4, 115), (32, 14, 115), 1.72), ((28, 4, 51), (22, 8, 80), 1.22)),
    "LU-MZ": (((32, 4, 115), (32, 8, 115), 1.17),),
}  # fmt: skip
"""By which factor a configuration takes longer than another (section 3.4)."""

Configured = tuple[int, int, float]


def at(application: Application, of: Configured, with_memory: bool) -> tuple[float, float]:
    """Returns the seconds and the watts of a configuration."""
    nodes, cores, cap_w = (np.array([float(it)]) for it in of)
    found = estimate(application, nodes, cores, cap_w)
    socket_w = found.package_w + (found.dram_w if with_memory else 0.0)
    return float(found.seconds[0]), float(SOCKETS * of[0] * socket_w[0])


def of_point(application: Application, point: Point, with_memory: bool) -> Iterator[float]:
    seconds, watts = at(application, point[:3], with_memory)
    yield 10 * np.log(seconds / point.seconds)
    yield 20 * np.log(watts / point.watts)


def of_rzmerl(name: str, application: Application) -> Iterator[float]:
    """Yields the residuals of an application of class C."""
    for point in PRINTED[name]:
        yield from of_point(application, point, True)
    table, best = table_of(name, application, MACHINES["rzmerl"].grid), PRINTED[name].best
    seconds, watts = at(application, best[:3], True)
    others = (table.nodes != best.nodes) | (table.cores != best.cores)
    yield 60 * max(0.0, np.log(seconds / _fastest(table, others)) + 0.003)
    yield 100 * max(0.0, np.log(watts / (BOUND_W - 1)))
    more = PRINTED[name].packed_max._replace(nodes=PRINTED[name].packed_max.nodes + 2)
    yield 20 * max(0.0, np.log(BOUND_W / at(application, more[:3], True)[1]))
    slope, intercept = LINES[name]
    for nodes in range(8, 33, 4):
        yield np.log(_fastest(table, table.nodes == nodes) / (slope * nodes + intercept))
    for cores, package_w in SINGLE_W.get(name, {}).items():
        one = estimate(application, np.ones(1), np.array([float(cores)]), np.array([115.0]))
        yield 3 * np.log(one.package_w[0] / package_w)
    for slower, faster, factor in RELATIVE.get(name, ()):
        ratio = at(application, slower, True)[0] / at(application, faster, True)[0]
        yield 3 * np.log(ratio / factor)


def _fastest(table: Table, some: np.ndarray) -> float:
    """Returns the least time among these points within the bound; the time at the least power where
    none is."""
    fits = some & (table.watts <= BOUND_W)
    if not fits.any():
        return float(table.seconds[some][table.watts[some].argmin()])
    return float(table.seconds[fits].min())


def of_cab(application: Application) -> Iterator[float]:
    """Yields the residuals of SP-MZ of class D: table 5.2, and 93 W per package (figure 5.2)."""
    for point in PRINTED_CAB:
        seconds, watts = at(application, point[:3], False)
        yield 20 * np.log(seconds / point.seconds)
        yield 20 * np.log(watts / point.watts)
    yield 20 * np.log(at(application, (64, 16, 115.0), False)[1] / (64 * SOCKETS * 93.0))


def fit(free: Free, residuals: Callable[[Application], Iterator[float]]) -> Application:
    """Returns the application with the least sum of squares."""
    names = [*free]
    first, least, most = np.log(np.array([*free.values()])).T
    random = np.random.default_rng(1)

    def made(logs: np.ndarray) -> Application:
        return replace(Application(work=1.0), **dict(zip(names, np.exp(logs), strict=True)))

    def of(logs: np.ndarray) -> np.ndarray:
        return np.array([*residuals(made(logs)), *(PRIOR * (logs - first))])

    tries = []
    for number in range(STARTS):
        begin = first + (random.normal(0, 0.5, len(names)) if number else 0.0)
        begin = np.clip(begin, least + 1e-6, most - 1e-6)
        tries.append(least_squares(of, begin, bounds=(least, most), diff_step=1e-3, max_nfev=150))
    return made(min(tries, key=lambda it: it.cost).x)


def main(names: list[str]) -> None:
    for name in names or [*FREE, "cab"]:
        of_c = name != "cab"
        if of_c:
            found = fit(FREE[name], lambda it, name=name: of_rzmerl(name, it))
        else:
            found = fit(FREE_CAB, of_cab)
        free = FREE[name] if of_c else FREE_CAB
        print(name if of_c else "SP-MZ of cab", {it: float(f"{getattr(found, it):.4g}")
                                                for it in free})  # fmt: skip
        for point in PRINTED[name] if of_c else PRINTED_CAB:
            seconds, watts = at(found, point[:3], of_c)
            print(f"  {point.name}: {seconds:.2f} s ({seconds / point.seconds - 1:+.1%}), "
                  f"{watts:.0f} W ({watts / point.watts - 1:+.1%})")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
