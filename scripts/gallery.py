"""Makes the pictures of docs/gallery.md again: runs the commands that it shows, in a directory of
their own, and keeps of each block the last picture that it made.

    python scripts/gallery.py
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "gallery.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```(?:\s*!\[[^\]]*\]\(([^)]+)\))?", re.DOTALL)
WIDEST = 1400
"""Pixels of the widest picture on the page."""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for language, text, shown in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            if language == "toml":
                (place / text.split()[1]).write_text(text, encoding="utf-8")
            if language == "sh":
                for line in text.replace("\\\n", " ").splitlines():
                    words = [sys.executable, "-m", *shlex.split(line)]
                    subprocess.run(words, cwd=place, check=True, stdout=subprocess.DEVNULL)
            if shown:
                newest = max(place.rglob("*.png"), key=lambda path: path.stat().st_mtime_ns)
                keep(newest, DOCS / shown)
                print(f"{shown}: {(DOCS / shown).stat().st_size:,} bytes")


def keep(picture: Path, target: Path) -> None:
    """Save a picture small: no wider than a page shows it, in 128 colours."""
    image = Image.open(picture).convert("RGB")
    image.thumbnail((WIDEST, 10 * WIDEST))
    few = image.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    main()
