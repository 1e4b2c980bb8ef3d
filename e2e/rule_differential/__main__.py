"""``python -m e2e.rule_differential --seed 7 --rounds 10``: look for differences by hand, with any seed."""

from __future__ import annotations

import argparse
import asyncio

from e2e.api_contract import servers
from e2e.rule_differential.run import Report, compare
from tests.contract.api import Api


def main() -> int:
    """Run the command; the exit code is 1 if something differs."""
    parser = argparse.ArgumentParser(prog="python -m e2e.rule_differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="what rules and objects are drawn from (1)")
    parser.add_argument("--rounds", type=int, default=4, help="definitions of 40 rules, each with 25 objects (4)")
    options = parser.parse_args()
    report = asyncio.run(run(options.seed, options.rounds))
    print(", ".join(f"{count} {what}" for what, count in report.asked.items()))
    for difference in report.differences[:20]:
        print(f"\n{difference}")
    return 1 if report.differences else 0


async def run(seed: int, rounds: int) -> Report:
    """Compare a real server of its own with ours.

    Raises:
        MissingBinaries: there is none.
    """
    async with servers.real() as real, servers.embedded() as ours:
        return await compare(Api(real, "default"), Api(ours, "default"), seed=seed, rounds=rounds)


if __name__ == "__main__":
    raise SystemExit(main())
