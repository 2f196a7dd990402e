"""The text of a trace's file, piece by piece: plain or gzip, never all of it at once.

A piece is some bytes of the text; a block is a piece that consists of whole lines. A line ends
with \\n, \\r\\n or \\r.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from pdes.errors import Refused, os_words

PIECE = 1 << 22
"""The most bytes of text in a piece."""
PACKED = 1 << 16
"""The most bytes that are unpacked at once, so also those that are lost where gzip is damaged."""
LONGEST_LINE = 1 << 20
"""Bytes. Beyond it, a file is not one of lines."""
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
SUFFIXES = (".swf", ".json", ".csv", ".txt", ".sacct", ".psv", ".log", ".dat")

Where = str | os.PathLike[str]


def name_of(path: Where) -> str:
    """Returns what a trace from this file is called: its name without .gz and its own suffix."""
    name = Path(path).name
    for suffixes in ((".gz",), SUFFIXES):
        stem, suffix = os.path.splitext(name)
        if stem and suffix.lower() in suffixes:
            name = stem
    return name


def pieces(path: Where) -> Iterator[bytes]:
    """Yields the text of a file, unpacked where it is gzip, without a byte order mark; no piece is
    empty. Whatever stops it is refused."""
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise Refused(os_words(error)) from error
    except ValueError as error:  # a null byte in the path
        raise Refused(f"{os.fspath(path)!r}: {error}; check the path") from error
    with file:
        first = _read(file, path, PACKED)
        packed = first.startswith(GZIP)
        begun = False
        for piece in _unpacked(first, file, path) if packed else _plain(first, file, path):
            yield piece if begun else piece.removeprefix(BOM)
            begun = True


def _read(file: BinaryIO, path: Where, size: int) -> bytes:
    try:
        return file.read(size)
    except OSError as error:
        raise Refused(f"{os.fspath(path)}: {os_words(error)}") from error


def _plain(first: bytes, file: BinaryIO, path: Where) -> Iterator[bytes]:
    piece = first
    while piece:
        yield piece
        piece = _read(file, path, PIECE)


def _unpacked(first: bytes, file: BinaryIO, path: Where) -> Iterator[bytes]:
    """Yields the text of all members of a gzip file, one after another."""
    unpacker = zlib.decompressobj(31)
    lines = size = 0
    packed = first
    gathered: list[bytes] = []

    def problem(words: str) -> Refused:
        return Refused(f"{os.fspath(path)}: the gzip file {words} after {lines:,} lines "
                       f"({size:,} bytes) of text: fetch it again")  # fmt: skip

    while True:
        while packed:
            if unpacker.eof:  # another member, or what some programs pad files with
                packed = packed.lstrip(b"\0")
                if not packed:
                    break
                if not GZIP.startswith(packed[:2]):
                    raise problem("ends, and something else follows,")
                unpacker = zlib.decompressobj(31)
            try:
                text = unpacker.decompress(packed, PACKED)
            except zlib.error as error:
                raise problem("is damaged") from error
            packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            lines, size = lines + text.count(b"\n"), size + len(text)
            gathered.append(text)
            if len(gathered) * PACKED >= PIECE:
                if text := b"".join(gathered):
                    yield text
                gathered.clear()
        packed = _read(file, path, PACKED)
        if not packed:
            break
    if not unpacker.eof:
        raise problem("is cut off")
    if text := b"".join(gathered):
        yield text


def blocks(pieces: Iterable[bytes], path: Where) -> Iterator[bytes]:
    """Yields the same text in whole lines; the last line may lack its end."""
    rest = b""
    lines = 0
    for piece in pieces:
        text = rest + piece
        _refuse_long_lines(text, lines, path)
        cut = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        if cut:
            yield text[:cut]
            lines += text.count(b"\n", 0, cut)
        rest = text[cut:]
    if rest:
        yield rest


def _refuse_long_lines(text: bytes, before: int, path: Where) -> None:
    at = 0
    while at + LONGEST_LINE < len(text):
        end = max(text.rfind(mark, at, at + LONGEST_LINE + 1) for mark in (b"\n", b"\r"))
        if end < 0:
            number = before + text.count(b"\n", 0, at) + 1
            raise Refused(f"{os.fspath(path)}: line {number:,} has more than {LONGEST_LINE:,} "
                          "bytes: a trace has one job per line")  # fmt: skip
        at = end + 1


def lines(blocks: Iterable[bytes]) -> Iterator[str]:
    """Yields the lines that are not blank, without their ends."""
    for block in blocks:
        for line in block.splitlines():
            if line.strip():
                yield words(line)


def words(line: bytes) -> str:
    """Returns text that is UTF-8 or, failing that, Latin-1, which old files are in."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")
