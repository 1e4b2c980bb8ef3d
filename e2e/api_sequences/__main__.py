"""``python -m e2e.api_sequences --seed N --count N [--shrink]``: look for differences by hand, with any seed."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from e2e.api_contract import servers
from e2e.api_sequences.run import Pair, Report, pair
from e2e.api_sequences.shrink import Shrinking
from e2e.api_sequences.verdicts import Verdicts, compare
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


async def _run(options: argparse.Namespace) -> Report | Verdicts:
    async with AsyncExitStack() as stack:
        real = None
        if options.kubeconfig:
            real = await stack.enter_async_context(servers.existing(options.kubeconfig))
        both = await stack.enter_async_context(pair(real))
        began = time.monotonic()
        if options.paths:
            return await _compare(both, options)
        report = await both.run(seed=options.seed, count=options.count)
        print(f"{report}, in {time.monotonic() - began:.1f} s")
        # One of each sort, the shortest, is enough to begin with.
        often = Counter(one.key for one in report.differences)
        sorts = {one.key: one for one in sorted(report.differences, key=lambda one: -one.position)}
        shown = [sorts[key] for key, _ in often.most_common(options.show)]
        if options.shrink:
            shown = await asyncio.gather(*(Shrinking(both, one).run() for one in shown))
        for one in shown:
            print(f"\n{often[one.key]} like this: {one.key}\n{one}")
    return report


async def _compare(both: Pair, options: argparse.Namespace) -> Verdicts:
    began = time.monotonic()
    verdicts = await compare(both, seed=options.seed, count=options.count)
    print(f"{verdicts}, in {time.monotonic() - began:.1f} s")
    for asked, real, ours in verdicts.differences[: options.show]:
        print(f"\n{asked}\n  theirs: {real}\n  ours:   {ours}")
    return verdicts


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.api_sequences", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="what the sequences are drawn from (1)")
    parser.add_argument(
        "--count", type=int, default=300, help="how many sequences, of some ten requests each, or paths (300)"
    )
    parser.add_argument("--shrink", action="store_true", help="show the smallest sequence for each sort of difference")
    parser.add_argument("--paths", action="store_true", help="single requests with odd paths, for users of few rights")
    parser.add_argument("--show", type=int, default=20, help="how many sorts of differences to show (20)")
    parser.add_argument("--kubeconfig", type=Path, help="a real server that is there already; its storage gets full")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
