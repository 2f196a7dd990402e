"""A command that gets a signal at a certain moment: before the n-th of its steps that touch a file.

A **step** is whatever makes, changes or removes a file of the run, and whatever begins or ends a
sample: Python's own calls are seen by an audit hook, and those of HDF5 by functions in the place of
h5py's. One rank's steps are the same in every run of an experiment, whatever the other ranks do, as
long as nothing is flushed because of the time of day; so a number names a moment, and a list of the
steps of an undisturbed run names them all. Nothing of this is known to the code that is tested.

As a program, so that it can be started under mpiexec:

    python tests/moments.py list FILE run ...           the steps of each rank, to FILE.<rank>
    python tests/moments.py SIGNAL:RANK:STEP run ...    this signal, to this rank, before this step

A step is named by its number, or by what it begins with: then it is the first of these.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGING = ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
FILES = ("h5", "toml", "json", "csv", "swf", "new", "partial", "aside", "ranks", "h5.tmp")
"""What the names of a run's files end with, or those of its directories contain."""


def watch(reached: Callable[[str], None]) -> None:
    """Have `reached` be called with the name of each step before it is taken."""
    import h5py

    from pdes import stream

    def audit(event: str, words: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = words
            if isinstance(path, str) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                _reach("write", path)
        elif event in CHANGING:
            _reach(event.removeprefix("os."), *words[: 2 if event == "os.rename" else 1])

    def _reach(what: str, *paths: Any) -> None:
        names = [Path(os.fsdecode(path)).name for path in paths]
        if any(name.split(".")[-1].split("-")[0] in FILES or "at-" in name for name in names):
            reached(" ".join([what, *names]))

    def before(owner: Any, name: str, word: str, after: bool = False) -> None:
        call = getattr(owner, name)

        def step(*given: Any, **named: Any) -> Any:
            reached(word)
            answer = call(*given, **named)
            if after:
                reached(f"{word}: done")
            return answer

        setattr(owner, name, step)

    def write(path: Path, content: bytes) -> int:
        """In two halves, with a moment between them."""
        half = len(content) // 2
        with path.open("wb") as file:
            file.write(content[:half])
            file.flush()
            _reach("half", path)
            return half + file.write(content[half:])

    def write_text(path: Path, text: str, encoding: str | None = None) -> int:
        return write(path, text.encode(encoding or "utf-8"))

    Path.write_bytes = write  # type: ignore[method-assign, assignment]
    Path.write_text = write_text  # type: ignore[method-assign, assignment]
    before(h5py.File, "flush", "flush")
    before(h5py.File, "close", "close", after=True)
    before(h5py.Dataset, "resize", "resize")
    before(os, "fsync", "sync")
    before(stream, "open_file", "create", after=True)
    before(stream, "seal", "seal", after=True)
    before(stream.Recorder, "take", "sample", after=True)
    before(stream.Recorder, "finish", "finish", after=True)
    sys.addaudithook(audit)


def run(order: str, *words: str) -> None:
    """Run `odonata` with these words, and do as ordered (see above)."""
    from odonata.__main__ import main
    from pdes import launcher, watchman

    watchman.begin()
    steps: list[str] = []
    sent: list[str] = []
    if order == "list":
        place, *rest = words
        noted = os.open(f"{place}.{launcher.rank()}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        watch(lambda step: void(os.write(noted, f"{step}\n".encode())))
    else:
        name, rank, which = order.split(":", 2)
        rest = [*words]

        def reached(step: str) -> None:
            steps.append(step)
            named = str(len(steps) - 1) == which or step.startswith(which)
            if named and launcher.rank() == int(rank) and not sent:
                sent.append(step)
                os.kill(os.getpid(), signal.Signals[name])

        watch(reached)
    sys.argv = ["odonata", *rest]
    main()


def void(_: object) -> None:
    return None


if __name__ == "__main__":
    del sys.path[0]  # where folders are called as packages are
    run(*sys.argv[1:])
