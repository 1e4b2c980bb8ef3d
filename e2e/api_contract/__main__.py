"""``python -m e2e.api_contract --server real|embedded [names]``: play cases, and tell what is not as it should be."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from pathlib import Path

from e2e.api_contract import servers
from e2e.controlplane.assets import MissingBinaries
from tests.contract.run import Outcome, play
from tests.contract.suite import chosen


def main() -> int:
    """Run the command; the exit code is 1 if a case failed."""
    options = _arguments()
    if options.list:
        cases = chosen(options.names)
        print(*cases, sep="\n")
        print(f"{len(cases)} cases: {dict(Counter(case.group for case in cases))}")
        return 0
    try:
        outcomes = asyncio.run(_run(options))
    except MissingBinaries as problem:
        print(problem, file=sys.stderr)
        return 1
    failed = [one for one in outcomes if one.problem]
    print(*sorted(failed, key=str), sep="\n")
    slowest = ", ".join(f"{one.case} {one.seconds:.1f} s" for one in sorted(outcomes, key=lambda one: -one.seconds)[:5])
    print(f"slowest: {slowest}")
    where = options.kubeconfig or options.server
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} cases are as they should be on {where}")
    return 1 if failed else 0


async def _run(options: argparse.Namespace) -> list[Outcome]:
    where = servers.existing(options.kubeconfig) if options.kubeconfig else servers.start(options.server)
    async with where as server:
        began = time.monotonic()
        outcomes = await play(server, chosen(options.names))
        print(f"played in {time.monotonic() - began:.1f} s")
        return outcomes


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.api_contract", description=__doc__)
    parser.add_argument("--server", choices=(servers.REAL, servers.EMBEDDED), default=servers.EMBEDDED)
    parser.add_argument("--kubeconfig", type=Path, help="play on this server instead, as its administrator")
    parser.add_argument("--list", action="store_true", help="name the cases and play none")
    parser.add_argument("names", nargs="*", help="only cases whose group or name contains one of these")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
