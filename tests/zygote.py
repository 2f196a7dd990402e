"""A process that has everything imported, and forks itself for each command.

To import numpy, numba and h5py takes longer than most commands of the tests. What is forked is a
process of its own, with its own directory, environment, output and end; only its imports are older
than its command line. Commands that change what is imported, or look at how they were started, are
started in full (`conftest.command`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

COMMANDS = ("run", "diff", "mend", "watch", "report", "bench", "compare", "allocate", "policies")


class Zygote:
    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    @staticmethod
    def can(words: tuple[str, ...]) -> bool:
        return words[:1] != () and words[0] in COMMANDS and "--debug" not in words

    def run(self, words: tuple[str, ...], cwd: Path, patience: float) -> Any:
        """As subprocess.run."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as place:
            order = {"words": words, "cwd": str(cwd), "place": place, "patience": int(patience)}
            print(json.dumps(order), file=self._process.stdin, flush=True)
            status = int(self._process.stdout.readline())
            told, said = (Path(place, name).read_text() for name in ("out", "err"))
        if status == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(["odonata", *words], patience, told, said)
        return subprocess.CompletedProcess(["odonata", *words], status, told, said)

    def close(self) -> None:
        self._process.communicate()


def serve() -> None:
    import odonata.bench
    import odonata.compare
    import odonata.figures
    import odonata.report
    import odonata.running  # noqa: F401

    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(order)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _become(order: dict[str, Any]) -> None:
    from odonata.cli import main

    status = 1
    try:
        for fd, path in enumerate(("/dev/null", f"{order['place']}/out", f"{order['place']}/err")):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), fd)
        os.chdir(order["cwd"])
        signal.alarm(order["patience"])
        sys.argv = ["odonata", *order["words"]]
        main()
        status = 0
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
