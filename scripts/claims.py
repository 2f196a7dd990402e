"""Simulates whole studies anew and compares what they claim with what docs show.

    python scripts/claims.py                  # all studies: some hours on two cores
    python scripts/claims.py rmap nedd        # these
    python scripts/claims.py --write rmap     # and keep what they claim now in docs/papers

Studies are kept in out/claims, so that what is cut short goes on with the same command. The status
is 1 where a claim is another than in docs/papers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tables import KEPT, ROOT, kept, read

from odonata.studies import named

TRACE = ROOT.parent / "shared" / "data" / "krc2.csv"
ASKED = {"rumyantsev": ("--trace", str(TRACE)), "nedd": ("--part", "application")}
"""What a study has to be asked beside its name."""
TIMED = "trials take"
"""How the names of claims end that are about the speed of this machine."""


def again(name: str) -> Path:
    """Returns the summary of a whole study that is simulated now, as far as that was not done."""
    place = ROOT / "out" / "claims" / f"{name}-{named(name).mark()}"
    subprocess.run([sys.executable, "-m", "odonata", "study", name, *ASKED.get(name, ()),
                    "-o", str(place)], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    return place / "summary.json"


def differences(then: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Yields what is claimed otherwise."""
    before, after = ({one["name"]: one for one in some["claims"]} for some in (then, now))
    for name in {**before, **after}:
        texts = [f"{one['paper']!r}: {one['ours']!r}, {one['verdict']}" if one else "nothing"
                 for one in (before.get(name), after.get(name))]  # fmt: skip
        if texts[0] != texts[1] and not name.endswith(TIMED):
            yield f"{then['study']}: {name}: {texts[0]}, and now {texts[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("studies", nargs="*", help="all that docs/papers has, if none is named")
    parser.add_argument("--write", action="store_true", help="keep what they claim now")
    asked = parser.parse_args()
    wrong = False
    for name in asked.studies or [path.stem for path in kept()]:
        if str(TRACE) in ASKED.get(name, ()) and not TRACE.exists():
            print(f"{name}: not simulated: {TRACE.name} is not there")
            continue
        file, now = KEPT / f"{name}.json", again(name)
        then = read(file) if file.exists() else {"study": name, "claims": []}
        found = [*differences(then, read(now))]
        if asked.write:
            file.write_text(now.read_text())
        wrong |= bool(found) and not asked.write
        print("\n".join(found) or f"{name}: as docs show it", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
