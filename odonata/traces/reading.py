"""Files of jobs, whatever their format: it is found by what a file holds, then by its suffix."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from itertools import chain

from odonata.traces import batsim, karelian, sacct, swf
from odonata.traces.changing import since_first
from odonata.traces.lines import Where, pieces
from odonata.traces.trace import Trace
from pdes.errors import Refused

FORMATS: dict[str, Callable[[Iterable[bytes], Where], Trace]] = {
    "swf": swf.read,
    "batsim": batsim.read,
    "sacct": sacct.read,
    "karelian": karelian.read,
}
SUFFIXES = {".swf": "swf", ".json": "batsim", ".sacct": "sacct", ".csv": "karelian"}
ABOUT = ("SWF (plain or gzip), a Batsim workload (JSON), the output of sacct --parsable2, and CSV "
         f"with the columns {','.join(karelian.COLUMNS)}")  # fmt: skip

HEAD = 1 << 16
"""How many bytes are looked at to find a file's format."""
OTHERS = {
    b"\xff\xfe": "UTF-16 text: convert it (iconv -f UTF-16 -t UTF-8)",
    b"\xfe\xff": "UTF-16 text: convert it (iconv -f UTF-16 -t UTF-8)",
    b"BZh": "compressed by bzip2: unpack it (bunzip2), or pack it with gzip",
    b"\xfd7zXZ": "compressed by xz: unpack it (unxz), or pack it with gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it (unzstd), or pack it with gzip",
    b"PK\x03\x04": "a zip archive: unpack it (unzip)",
    b"\x1f\x8b": "compressed by gzip twice: unpack it once (gunzip)",
    b"\x89HDF": "an HDF5 file, not a trace: name a file of jobs",
}

_NUMBER = re.compile(rb"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")


def read(path: Where, format: str | None = None, timezone: str | None = None) -> Trace:
    """Returns the trace that a file holds, of this `format` (a key of FORMATS) or of the one that
    it is found to have. Its `account` tells what was dropped or repaired, by reason; a file of
    which no job can be kept is refused. Dates without a zone, as sacct has them, are of
    `timezone`. Times that count from 1970 are counted from the first submission."""
    if format is not None and format not in FORMATS:
        raise Refused(f"format {format!r}: known are {', '.join(FORMATS)}")
    text = pieces(path)
    first = next(text, b"")
    where = os.fspath(path)
    if where.endswith(".toml") and format is None:
        raise Refused(f"{where}: an experiment file: odonata run {where}")
    for mark, what in OTHERS.items():
        if first.startswith(mark):
            raise Refused(f"{where}: {what}")
    if b"\0" in first[:HEAD]:
        raise Refused(f"{where}: a binary file: a trace is text ({ABOUT})")
    if not first.strip() and not (first := b"".join(chain([first], text))).strip():
        raise Refused(f"{where}: the file is empty: check that all of it was written or fetched")
    found = format or format_of(first[:HEAD], path)
    if found is None:
        raise Refused(
            f"{where}: neither its text nor its suffix tells its format: known are {ABOUT}"
        )
    if found == "sacct":
        return sacct.read(chain([first], text), path, timezone)
    return since_first(FORMATS[found](chain([first], text), path))


def format_of(head: bytes, path: Where = "") -> str | None:
    """Returns the format of a text that begins like this; None where nothing tells it."""
    begin = head.lstrip()
    if begin.startswith(b"{"):
        return "batsim"
    if begin.startswith(b";"):
        return "swf"
    line = begin.splitlines()[0] if begin else b""
    titles = line.lower().replace(b'"', b"")
    if b"|" in line and {b"jobid", b"jobidraw", b"submit", b"elapsed"} & {*titles.split(b"|")}:
        return "sacct"
    if b"," in line and {name.encode() for name in karelian.COLUMNS} & {*titles.split(b",")}:
        return "karelian"
    fields = line.split()[: swf.FIELDS]  # what follows may be text
    if len(fields) > 2 and all(_NUMBER.fullmatch(field) for field in fields):
        return "swf"
    name = os.fspath(path).lower().removesuffix(".gz")
    return SUFFIXES.get(os.path.splitext(name)[1])


read_trace = read
"""The same, under the name that it has in `odonata`."""
