"""A process that has everything imported, and forks itself for each command.

To import numpy, numba, h5py, xarray and matplotlib takes longer than most commands of the tests.
What is forked is a process of its own, with its own directory, environment, output and end; only
its imports are older than its command line. Commands that change what is imported, or look at how
they were started, are started in full (`conftest.command`).
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

COMMANDS = ("run", "watch", "report", "compare", "diff", "mend", "schedule", "bench", "latency",
            "study", "packet", "sweep")  # fmt: skip
AT_START = ("ODONATA_CACHE_DIR", "PYTHON", "PMI", "MPI", "OMPI", "SLURM")
"""The beginnings of variables that are read when modules are imported, or that say how a process
was started. Another compiler than the zygote's is asked of another zygote."""
IMPORTS = (
    "h5py", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "rich.table",
    "scipy.special",
    "odonata.agents.network", "odonata.cluster.simulation", "odonata.experiment.reading",
    "odonata.figures.report", "odonata.results.diff", "odonata.results.execution",
    "odonata.results.measured", "odonata.study.report", "odonata.sweeps.page",
)  # fmt: skip


class Zygote:
    def __init__(self, **environment: str) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._environment = environment

    @staticmethod
    def can(words: tuple[str, ...], environment: Mapping[str, str]) -> bool:
        """Tells whether a command may be forked, given the variables that a test sets for it."""
        imports = "--debug" in words and environment.get("ODONATA_JIT") != "0"
        named = words[:1] != () and words[0] in COMMANDS
        return named and not imports and not any(it.startswith(AT_START) for it in environment)

    def run(
        self, words: tuple[str, ...], cwd: Path, environment: dict[str, str], patience: int
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, or the code behind a -c, with the result of subprocess.run."""
        process = self._started(environment)
        assert process.stdin is not None
        assert process.stdout is not None
        with tempfile.TemporaryDirectory() as place:
            order = {"words": words, "cwd": str(cwd), "place": place, "patience": patience,
                     "environment": environment}  # fmt: skip
            try:
                print(json.dumps(order), file=process.stdin, flush=True)
                status = process.stdout.readline()
                assert status, "the zygote died"
            except BaseException:  # what it will answer is not for the next command
                process.kill()
                self.close()
                raise
            out, said = (Path(place, name).read_text() for name in ("out", "err"))
        if int(status) == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(["odonata", *words], patience, out, said)
        return subprocess.CompletedProcess(["odonata", *words], int(status), out, said)

    def _started(self, environment: dict[str, str]) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                # Python may warn of a fork beside the threads of numpy, which numpy takes care of
                [sys.executable, "-W", "ignore::DeprecationWarning:__main__", __file__],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**environment, **self._environment},
            )  # fmt: skip
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


def serve() -> None:
    for name in IMPORTS:
        import_module(name)
    gc.freeze()  # what was imported is no garbage in any process that is forked
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(order)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _become(order: dict[str, Any]) -> None:
    from odonata.commands.cli import main

    status = 1
    try:
        for fd, path in enumerate(("/dev/null", f"{order['place']}/out", f"{order['place']}/err")):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), fd)
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["environment"])
        signal.alarm(order["patience"])
        if order["words"][0] == "-c":
            sys.argv = ["-c", *order["words"][2:]]
            exec(order["words"][1], {"__name__": "__main__"})
        else:
            sys.argv = ["odonata", *order["words"]]
            main()
        status = 0
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
