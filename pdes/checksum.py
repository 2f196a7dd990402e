"""Text in JSON that carries its own checksum, so that a changed digit is not believed.

The last member of the object, `crc32`, is the CRC-32 of all bytes before the comma in front of it,
as eight hexadecimal digits. Other programs read such text as any JSON.
"""

from __future__ import annotations

import re
import zlib

NAME = "crc32"
LAST = re.compile(rb',\s*"crc32":\s*"([0-9a-f]{8})"\s*}\s*\Z')


def with_checksum(text: str) -> str:
    """Returns the text of an object in JSON, which has members, with its checksum as the last."""
    body = text.rstrip().removesuffix("}").rstrip()
    gap, end = ("\n ", "\n") if "\n" in body else ("", "")
    return f'{body},{gap}"{NAME}":"{zlib.crc32(body.encode()):08x}"{end}}}'


def is_intact(text: bytes) -> bool | None:
    """Tells whether the text is what its checksum was made of; None where it has none."""
    found = LAST.search(text)
    if found is None:
        return None
    return f"{zlib.crc32(text[: found.start()]):08x}".encode() == found[1]
