"""``python -m e2e.job_scenarios``: play scenarios on two sides and show what differs; all of them unless named.

``--left upstream --right upstream`` proves the suite itself: two runs of one controller must not differ.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from e2e.job_scenarios import groups
from e2e.job_scenarios.explained import EXPLAINED
from e2e.job_scenarios.playing import find_differences
from e2e.job_scenarios.scenario import SCENARIOS, Scenario
from e2e.job_scenarios.side import KINDS
from e2e.job_scenarios.trace import Trace


def main() -> int:
    """Run the command; the exit code is 1 if something differs that nobody has explained."""
    options = _arguments()
    assert groups.__all__
    chosen = [
        one
        for one in SCENARIOS.values()
        if not options.names or one.name in options.names or one.group in options.names
    ]
    began = time.monotonic()

    def tell(one: Scenario, left: Trace, right: Trace) -> None:
        if options.traces:
            _write(options.traces, one.name, options.left, left, options.right, right)

    found = asyncio.run(find_differences(chosen, options.left, options.right, tell=tell))
    print(f"{len(chosen)} scenarios in {time.monotonic() - began:.0f} s")
    unexplained = 0
    for name, difference in found.items():
        is_known = difference.is_explained_by(EXPLAINED.get(name))
        unexplained += not is_known
        print(f"\n#### {name}: {EXPLAINED[name].because if is_known else SCENARIOS[name].cites}\n{difference.text}")
    print(f"\n{unexplained} of {len(chosen)} scenarios differ without an explanation")
    return 1 if unexplained else 0


def _write(directory: Path, name: str, left: str, one: Trace, right: str, other: Trace) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.left-{left}").write_text(one.text + "\n")
    (directory / f"{name}.right-{right}").write_text(other.text + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.job_scenarios", description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios or groups (all)")
    parser.add_argument("--left", choices=KINDS, default="upstream")
    parser.add_argument("--right", choices=KINDS, default="ours")
    parser.add_argument("--traces", type=Path, help="a directory for both traces of each scenario")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
