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

COMMANDS = ("run", "bench", "diff", "report")


class Zygote:
    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    @staticmethod
    def can(words: tuple[str, ...]) -> bool:
        return words[:1] != () and words[0] in COMMANDS and "--debug" not in words

    def run(
        self, words: tuple[str, ...], cwd: Path, environment: dict[str, str], patience: int
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, with the arguments and the result of subprocess.run."""
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
                [sys.executable, __file__],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
            )  # fmt: skip
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


def serve() -> None:

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
