"""``python -m e2e.api_differential --seed 7 --count 5000 --shrink``: look for differences by hand, with any seed."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from e2e.api_differential.run import Report
from e2e.api_differential.server import comparison
from e2e.controlplane.assets import MissingBinaries


def main() -> int:
    """Run the command; the exit code is 1 if something differs."""
    options = _arguments()
    try:
        report = asyncio.run(_run(options))
    except MissingBinaries as problem:
        print(problem, file=sys.stderr)
        return 1
    return 1 if report.differences else 0


async def _run(options: argparse.Namespace) -> Report:
    async with comparison() as both:
        began = time.monotonic()
        report = await both.run(seed=options.seed, count=options.count)
        print(f"{report}, in {time.monotonic() - began:.1f} s")
        # One of each sort, the simplest, is enough to begin with.
        sorts = {one.key: one for one in sorted(report.differences, key=lambda one: -len(one.case.steps))}
        for difference in list(sorts.values())[: options.show]:
            print(f"\n{await both.shrink(difference) if options.shrink else difference}")
    return report


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.api_differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="what the cases are drawn from (1)")
    parser.add_argument("--count", type=int, default=1500, help="how many creates, updates, status writes each (1500)")
    parser.add_argument("--shrink", action="store_true", help="show the smallest request for each sort of difference")
    parser.add_argument("--show", type=int, default=20, help="how many sorts of differences to show (20)")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
