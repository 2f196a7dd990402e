"""Keeps the options of commands that stand for keys of experiment files; help is made of them.

python scripts/options.py            # say whether they are not as the keys have them
python scripts/options.py --write    # have them so
"""

from __future__ import annotations

import json
import sys

from odonata.commands.options import OFFERED, declared


def made() -> str:
    """Returns what the file of options should have: a row for each option."""
    parts = (
        f"{json.dumps(part)}: [\n " + ",\n ".join(json.dumps(row) for row in rows) + "\n]"
        for part, rows in declared().items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    if not OFFERED.exists() or OFFERED.read_text() != made():
        print(OFFERED.name)
        if "--write" in sys.argv[1:]:
            OFFERED.write_text(made())
