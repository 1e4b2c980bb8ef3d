"""Would the random flows find it? Plants one fault after the other into a copy of ``mirror/`` and lets them look.

``python tests/flows/planted_faults.py [--only NAME] [--seeds N]`` prints for each by which seed it was found, and ends
with exit code 1 if one was not. A fault is a change of one place of the text; ``test_planted_faults`` keeps each
applicable. Each is found within ``--seeds`` seeds of 2,000 steps.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIRST_SEED = 500_000


@dataclass(frozen=True)
class PlantedFault:
    """A change of the text of one file, which breaks what a rule promises."""

    name: str
    file: str
    """Below ``mirror/``."""
    before: str
    after: str

    def plant(self, root: Path) -> None:
        """Change it in the copy below ``root``.

        Raises:
            ValueError: the text is not there, or not once; the fault has to be written anew.
        """
        path = root / "mirror" / self.file
        text = path.read_text()
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: {self.file} has the text {text.count(self.before)} times, not once")
        path.write_text(text.replace(self.before, self.after))


FAULTS: tuple[PlantedFault, ...] = ()


def main() -> int:
    """Parse the arguments and try; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[fault.name for fault in FAULTS])
    parser.add_argument("--seeds", type=int, default=10, help="so many at most for each")
    options = parser.parse_args()
    missed = 0
    for fault in FAULTS:
        if options.only in (None, fault.name):
            began = time.monotonic()
            found = look_for(fault, options.seeds)
            missed += not found
            print(f"{fault.name}: {found or 'NOT FOUND'} ({time.monotonic() - began:.0f} s)", flush=True)
    return 1 if missed else 0


def look_for(fault: PlantedFault, seeds: int) -> str:
    """Plant it, and play; by which seed and rule it was found, or nothing."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        shutil.copytree(ROOT / "mirror", root / "mirror", ignore=shutil.ignore_patterns("__pycache__"))
        fault.plant(root)
        for number in range(FIRST_SEED, FIRST_SEED + seeds):
            told = _play(root, number)
            if told:
                return f"seed {number}: {told}"
    return ""


def _play(root: Path, number: int) -> str:
    """One seed in a process of its own, which imports the copy; the rule that was broken."""
    program = (
        "import sys, mirror, marathon\n"
        f"assert mirror.__file__.startswith({str(root)!r}), mirror.__file__\n"
        f"print(marathon.play({number}, only='interference')[1])"
    )
    found = os.pathsep.join((str(root), str(Path(__file__).parent), str(ROOT / "tests")))
    environment = {**os.environ, "PYTHONPATH": found}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, cwd=root
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    lines = [line for line in done.stdout.splitlines() if "Error" in line]
    return lines[0].strip() if lines else ""


if __name__ == "__main__":
    sys.exit(main())
