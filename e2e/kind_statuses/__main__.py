"""``python -m e2e.kind_statuses [--statuses N] [KIND …]``: statuses by chance, of each kind, against a real API server.

Valid and hostile ones in random sequences: none that we write may be refused, or be written twice. Prints what was seen
and stored of each kind, and what was wrong; a kind of which something was never stored has shown nothing of it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from e2e.controlplane.assets import MissingBinaries
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import Shape
from e2e.kind_statuses.run import play
from mirror.kinds.declared.choosing import built_in

STATUSES = 3000
MOST_SHOWN = 5


def main() -> int:
    """Run the command; the exit code is 1 if anything was wrong, or never stored."""
    options = _arguments()
    try:
        return asyncio.run(_run(options.kinds or list(built_in()), options.statuses, options.seed))
    except MissingBinaries as problem:
        print(problem, file=sys.stderr)
        return 1


async def _run(kinds: list[str], statuses: int, seed: int) -> int:
    wrong = 0
    async with Cluster.start("statuses", Shape()) as cluster, Client(cluster.kubeconfig) as client:
        for name in kinds:
            began = time.monotonic()
            outcome = await play(client, name, statuses, seed=seed)
            seen = ", ".join(f"{count} {what}" for what, count in sorted(outcome.seen.items()))
            print(f"{name}: {seen}; {len(outcome.wrong)} wrong; {time.monotonic() - began:.0f} s", flush=True)
            print(*(f"  {one}" for one in outcome.wrong[:MOST_SHOWN]), sep="\n", end="\n" if outcome.wrong else "")
            if outcome.unseen:
                print(f"  never stored: {', '.join(outcome.unseen)}; take more statuses")
            wrong += len(outcome.wrong) + len(outcome.unseen)
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.kind_statuses", description=__doc__)
    parser.add_argument("--statuses", type=int, default=STATUSES, help="how many of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("kinds", nargs="*", choices=[[], *built_in()], help="only these")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
