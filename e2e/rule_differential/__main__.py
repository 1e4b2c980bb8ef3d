"""``python -m e2e.rule_differential --seed 7 --rounds 10``: look for differences by hand, with any seed."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable, Iterator
from itertools import takewhile

from e2e.api_contract import servers
from e2e.rule_differential.answers import Report
from e2e.rule_differential.run import compare
from tests.contract.api import Api


def main() -> int:
    """Run the command; the exit code is 1 if something differs."""
    parser = argparse.ArgumentParser(prog="python -m e2e.rule_differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="what rules and objects are drawn from (1)")
    parser.add_argument("--rounds", type=int, default=4, help="definitions of each of both sorts (4)")
    parser.add_argument("--first", type=int, default=0, help="the round to begin with, such as one that differed (0)")
    parser.add_argument("--minutes", type=float, help="begin no other round after so many")
    options = parser.parse_args()
    report = Report(show=lambda difference: print(f"{difference}\n", flush=True))
    rounds = range(options.first, options.first + options.rounds)
    try:
        asyncio.run(run(options.seed, _in_time(rounds, options.minutes), report))
    finally:
        print(", ".join(f"{count} {what}" for what, count in report.asked.items()))
    return 1 if report.differences else 0


def _in_time(rounds: range, minutes: float | None) -> Iterator[int]:
    began = time.monotonic()
    return takewhile(lambda _: minutes is None or time.monotonic() - began < minutes * 60, rounds)


async def run(seed: int, rounds: Iterable[int], report: Report) -> None:
    """Compare a real server of its own with ours.

    Raises:
        MissingBinaries: there is none.
    """
    async with servers.real() as real, servers.embedded() as ours:
        await compare(Api(real, "default"), Api(ours, "default"), seed=seed, rounds=rounds, report=report)


if __name__ == "__main__":
    raise SystemExit(main())
